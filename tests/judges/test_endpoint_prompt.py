import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.errors import BadJudge
from shortlist.judges.base import Call, Case
from shortlist.judges.endpoint import CASE_PROMPT, PLAIN_PROMPT, read_verdict, write_prompt

PLAIN = Call(1, "ann", "bob")
FULL = Call(1, "ann", "bob", "text of ann", "text of bob", Case("c", "a task"))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Both are fine, but A is shorter.\n[[A]]", "first"),
        ("[[B]]", "second"),
        ("[[C]]", "tie"),
        ("**[[ b ]]**", "second"),
        ("Verdict: [[A]].\n\nI hope this helps!", "first"),
        ("You asked for [[A]], [[B]] or [[C]].\nMy verdict: [[B]]\n", "second"),
        ("<think>[[A]] maybe, or [[C]]</think>\n[[B]]", "second"),
        ("<think>so [[A]]</think>", None),
        ("<think>The verdict could be\n[[A]]", None),
        ("<think>one</think>\n<THINKING>or\n[[B]]", None),
        ("<reasoning>[[A]]</reasoning>\n[[B]]", "second"),
        ("Answer A wins.\nA", "first"),
        ("Final verdict: B.", "second"),
        ("The answer is **C**", "tie"),
        ("[A]", "first"),
        ("\\boxed{[[A]]}", "first"),
        ("[[A]] and [[B]]", None),
        ("[[A]]\nno, wait\n[[B]]", "second"),
        ("[[A]]\n[[B]]\nHard to say.", None),
        ("A tie", None),
        ("I would say a", None),
        ("Answer A is better", None),
        ("[[D]]", None),
        ("", None),
    ],
)
def test_verdicts(text, verdict):
    assert read_verdict(text) == verdict


@given(st.text())
def test_any_text_is_read_without_harm(text):
    assert read_verdict(text) in ("first", "second", "tie", None)
    assert read_verdict(text + "\n[[B]]") == "second"


@given(st.text(), st.text(), st.text())
def test_texts_are_shown_as_they_are(first, second, case):
    """Also if they look like fields of the prompt."""
    asked = Call(1, "ann", "bob", first, second, Case("c", case))
    assert write_prompt("<{first}|{second}|{case}|{other}|{}>", asked) == f"<{first}|{second}|{case}|{{other}}|{{}}>"


def test_the_default_prompts():
    plain, full = write_prompt(None, PLAIN), write_prompt(None, FULL)
    assert "ann" in plain
    assert "[Task]" not in plain
    assert full.index("a task") < full.index("text of ann") < full.index("text of bob") < full.index("[[C]]")
    assert "ann\n" not in full.replace("text of ann\n", "")
    for prompt in (PLAIN_PROMPT, CASE_PROMPT):
        assert all(mark in prompt for mark in ("[[A]]", "[[B]]", "[[C]]"))


def test_a_prompt_and_cases_must_go_together():
    with pytest.raises(BadJudge, match="no cases"):
        write_prompt("{case}{first}{second}", PLAIN)
    with pytest.raises(BadJudge, match="does not show"):
        write_prompt("{first}{second}", FULL)
