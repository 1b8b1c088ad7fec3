"""A question about two given items, as after an undo."""

import pytest

from shortlist import create_study
from shortlist.errors import BadProblem


def test_the_pair_is_asked_in_both_orders():
    study = create_study(["a", "b", "c"], 1, 1e-9)
    asked = [study.ask(pair=("b", "a")) for _ in range(40)]
    assert {frozenset((question.first, question.second)) for question in asked} == {frozenset("ab")}
    assert {question.first for question in asked} == {"a", "b"}
    assert len({question.id for question in asked}) == 40


def test_wrong_pairs_are_refused():
    study = create_study(["a", "b", "c"], 1, allowed=[("a", "b"), ("b", "c")])
    for pair in (("a", "c"), ("a", "a"), ("a", "x")):
        with pytest.raises(BadProblem, match="pair"):
            study.ask(pair=pair)
    assert study.pending == []
