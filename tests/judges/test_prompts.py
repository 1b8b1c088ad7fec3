import math
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.core.outcomes import SHARES
from shortlist.errors import BadJudge
from shortlist.judges.base import Call, Case
from shortlist.judges.prompts import (
    CASE_PROMPT,
    PLAIN_PROMPT,
    STYLES,
    check_fit,
    check_style,
    check_template,
    default_prompt,
    read_grades,
    read_json,
    read_letters,
    read_logprob,
    read_pattern,
    without_reasoning,
    write_prompt,
)

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
    assert read(text) == verdict


def read(text, how=read_letters):
    """What an answer says, without its reasoning, as a word."""
    said = without_reasoning(text)
    share = None if said is None else how(said)
    return {value: word for word, value in SHARES.items()}.get(share, share)


@given(st.text())
def test_any_text_is_read_without_harm(text):
    assert read(text) in ("first", "second", "tie", None)
    assert read(text + "\n[[B]]") == "second"
    assert read(text, read_json) in ("first", "second", "tie", None)
    assert read(text + "\n[[A<<B]]", read_grades) == "second"


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("[[A>>B]]", 1.0),
        ("I think\n[[A>B]]", 0.75),
        ("[[A=B]]", 0.5),
        ("[[B=A]]", 0.5),
        ("[[B>A]]", 0.25),
        ("[[A<B]]", 0.25),
        ("[[b >> a]]", 0.0),
        ("[[A<<B]]", 0.0),
        ("[[B<A]]", 0.75),
        ("[[B<<A]]", 1.0),
        ("[[A>B]] at first.\nIn the end [[B>A]].", 0.25),
        ("[[A>B]] or [[B>A]]", None),
        ("[[A>A]]", None),
        ("[[A>B]]\n[[B>A]]\nHard to say.", None),
        ("[[A]]", None),
    ],
)
def test_grades(text, share):
    assert read_grades(text) == share


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"reason": "shorter", "winner": "A"}', "first"),
        ('```json\n{"winner": "b"}\n```', "second"),
        ('Here it is:\n{"winner": "tie"}', "tie"),
        ('{"winner": "neither"}', None),
        ('{"winner": 1}', None),
        ("this server does not know response_format\n[[B]]", "second"),
    ],
)
def test_json(text, verdict):
    assert read(text, read_json) == verdict


@pytest.mark.parametrize(
    ("pattern", "text", "verdict"),
    [
        (r"GRADE: (\w)", "GRADE: A", "first"),
        (r"GRADE: (\w)", "GRADE: A\nno\nGRADE: B", "second"),
        (r"GRADE: (\w)", "GRADE: A or GRADE: B", None),
        (r"GRADE: (\w)", "GRADE: X", None),
        (r"(?P<first>one)|(?P<second>two)|(?P<tie>both)", "I prefer two", "second"),
        (r"(?P<first>one)|(?P<second>two)", "one two", None),
        ("[ABC]$", "the better one is C", "tie"),
    ],
)
def test_regular_expressions(pattern, text, verdict):
    assert read(text, partial(read_pattern, re.compile(pattern))) == verdict


def test_prometheus_marks():
    assert read("Feedback: good. [RESULT] B") == "second"


def top(**weights):
    listed = [{"token": token, "logprob": math.log(weight)} for token, weight in weights.items()]
    return {"logprobs": {"content": [{"token": "x", "logprob": 0.0, "top_logprobs": listed}]}}


def test_probabilities_of_two_letters():
    assert read_logprob(top(A=0.6, B=0.3), ("A", "B")) == pytest.approx(2 / 3)
    assert read_logprob(top(A=0.2, **{" A": 0.1}, B=0.3), ("A", "B")) == pytest.approx(1 / 2)
    assert read_logprob(top(m=0.25, M=0.75), ("m", "M")) == pytest.approx(1 / 4)
    assert read_logprob(top(A=0.3, B=0.1, The=0.6), ("A", "B")) is None
    for nonsense in ({}, {"logprobs": None}, {"logprobs": {"content": []}}, {"logprobs": {"content": [3]}}):
        assert read_logprob(nonsense, ("A", "B")) is None


@given(st.text(), st.text(), st.text())
def test_texts_are_shown_as_they_are(first, second, case):
    """Also if they look like fields of the prompt."""
    asked = Call(1, "ann", "bob", first, second, Case("c", case))
    assert write_prompt("<{first}|{second}|{case}|{other}|{}>", asked) == f"<{first}|{second}|{case}|{{other}}|{{}}>"


def test_the_default_prompts():
    plain, full = (write_prompt(default_prompt(call is FULL, "letters", False), call) for call in (PLAIN, FULL))
    assert "ann" in plain
    assert "[Task]" not in plain
    assert full.index("a task") < full.index("text of ann") < full.index("text of bob") < full.index("[[C]]")
    assert "ann\n" not in full.replace("text of ann\n", "")
    for prompt in (PLAIN_PROMPT, CASE_PROMPT):
        assert all(mark in prompt for mark in ("[[A]]", "[[B]]", "[[C]]"))


@pytest.mark.parametrize(("kind", "mark"), [("grades", "[[A>>B]]"), ("json", '"winner"'), ("logprob", "one letter")])
def test_the_default_prompt_asks_for_the_kind_of_verdict(kind, mark):
    prompt = write_prompt(default_prompt(True, kind, True), FULL, criteria="Be brief.")
    assert mark in prompt
    assert "[[C]]" not in prompt
    assert "by these criteria: Be brief." in prompt


@pytest.mark.parametrize(
    ("style", "prompt"),
    [
        ("arena-hard", "{QUESTION}|{REFERENCE}|{ANSWER_A}|{ANSWER_B}"),
        ("mt-bench", "{question}|{ref_answer_1}|{answer_a}|{answer_b}"),
        ("prometheus", "{instruction}|{reference_answer}|{response_A}|{response_B}"),
    ],
)
def test_prompts_of_other_tools(style, prompt):
    call = Call(1, "ann", "bob", "one", "two", Case("c", "why?", "because"))
    check_template(prompt, STYLES[style])
    assert write_prompt(prompt, call, STYLES[style]) == "why?|because|one|two"
    with pytest.raises(BadJudge, match="does not show"):
        check_template("{first} {second}", STYLES[style])


def test_alpaca_eval_has_no_reference():
    assert write_prompt("{instruction}|{output_1}|{output_2}", FULL, STYLES["alpaca-eval"]).startswith("a task|text of")


def test_a_picture_is_a_part_of_the_message():
    url = "data:image/png;base64,AAAA"
    parts = write_prompt("See {first} and {second}.", Call(1, "ann", "bob", url, "a text"))
    assert parts == [
        {"type": "text", "text": "See "},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": " and a text."},
    ]


@pytest.mark.parametrize(
    ("prompt", "criteria", "complaint"),
    [
        ("{% for x in y %}{first}{second}", None, "no template language"),
        ("{first}{second}", "Be brief.", "does not show {criteria}"),
        ("{first}{second}{criteria}", None, "no criteria are given"),
        ("{first}", None, "does not show {second}"),
    ],
)
def test_prompts_that_cannot_work(prompt, criteria, complaint):
    with pytest.raises(BadJudge, match=complaint):
        check_template(prompt, criteria=criteria)


def test_a_prompt_and_cases_must_go_together():
    own = check_style(None, True)
    with pytest.raises(BadJudge, match="no cases"):
        check_fit("{case}{first}{second}", own, None)
    with pytest.raises(BadJudge, match="does not show"):
        check_fit("{first}{second}", own, [FULL.case])
    with pytest.raises(BadJudge, match="1 of 2 cases have none, such as 'c'"):
        check_fit("{case}{first}{second}{reference}", own, [FULL.case, Case("d", "text", "right")])
