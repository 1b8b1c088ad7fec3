"""Contents of messages as text, and thinking."""

import pytest

from shortlist.outputs.rows import asked, said, without_thinking


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("plain", "plain"),
        (" plain with blanks \n", " plain with blanks \n"),
        ("<think>a</think>b", "b"),
        ("<THINKING>\na\n</THINKING>\n\nb\n", "b"),
        ("<think>a</think><think>b</think>c", "c"),
        ("Sure. <think>a</think> c", "Sure.  c"),
        ("a</think>b", "b"),
        ("<think>a", None),
        ("<think>a</think>b<think>c", None),
        ("[THINK]a[/THINK]b", "b"),
        ("a < b and think > c", "a < b and think > c"),
        ("<think></think>", ""),
    ],
)
def test_thinking(text, answer):
    assert without_thinking(text) == answer


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("a", "a"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}], "b"),
        ([{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "b"}], "<think>t</think>\nb"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        (float("nan"), ""),
        (7, "7"),
    ],
)
def test_contents(content, text):
    assert said(content) == (text, True)


@pytest.mark.parametrize("content", [{"answer": "7"}, [], [1, 2], ["a", "b"], {"text": "a"}])
def test_what_is_no_text(content):
    assert not said(content).is_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        ([{"role": "system", "content": "s"}, {"role": "user", "content": "a"}], "a"),
        ('[{"role": "user", "content": "a"}]', "a"),
        ('[{"role" is broken', '[{"role" is broken'),
        ({"q": "a"}, "a"),
        ({"q": "a", "n": 2}, "q: a\nn: 2"),
        (
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
            "user: a\n\nassistant: b\n\nuser: c",
        ),
    ],
)
def test_what_was_asked(value, text):
    assert asked(value) == text
