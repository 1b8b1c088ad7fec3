"""Which pairs known answers decide, against a second implementation in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from shortlist.study.claims import AnswerTable
from shortlist.study.events import Asked

CASES = ["c1", "c2", "c3"]


def asked(first, second, case, cells=1, judge="me", pool=3, number=0):
    return Asked(number, first, second, 0.0, judge, case, pool=pool, drawing="replaced", cells=cells)


def decided(cells, size, refused=0):
    """Who is ahead of whom by {(case, shown first): what item 0 got}, if every other cell may be anything."""
    got, total = sum(map(Fraction, cells.values()), Fraction(0)), 2 * size
    if cells and len(cells) + refused == total:
        got += Fraction(refused, 2)
        return {(0, 1)} if 2 * got >= total else {(1, 0)}
    if 2 * got >= total:
        return {(0, 1)}
    return {(1, 0)} if 2 * (len(cells) - got) > total else set()


@pytest.mark.parametrize("grades", [(0.0, 1.0), (0.0, 0.5, 1.0), (0.0, 0.1, 0.3, 0.7, 0.9, 1.0)])
def test_a_pair_is_decided_exactly_when_no_other_answers_could_change_it(grades):
    rng = np.random.default_rng(3)
    for _ in range(200):
        table, cells, size = AnswerTable(), {}, int(rng.integers(1, 4))
        names = CASES[:size]
        places = [(case, side) for case in names for side in (0, 1)]
        for place in rng.permutation(len(places)).tolist():
            case, side = places[place]
            outcome = float(rng.choice(grades))
            table = table.answered(asked(side, 1 - side, case, pool=size), names, 2, outcome)
            cells[case, side] = Fraction(outcome) if side == 0 else 1 - Fraction(outcome)
            assert table.facts(2, 1, (), ()) == decided(cells, size)
        is_tie = 2 * sum(cells.values()) == 2 * size
        assert table.ties(2) == ([(0, 1)] if is_tie else [])


def test_an_answer_about_both_orders_is_two_cells():
    table = AnswerTable().answered(asked(0, 1, "c1", cells=2), CASES, 2, 0.75)  # 1.5 of 6 cells
    table = table.answered(asked(1, 0, "c2", cells=2), CASES, 2, 0.5)
    assert table.facts(2, 1, (), ()) == frozenset()
    assert table.answered(asked(0, 1, "c3", cells=2), CASES, 2, 0.25).facts(2, 1, (), ()) == {(0, 1)}  # a tie
    assert table.answered(asked(0, 1, "c3", cells=2), CASES, 2, 0.125).facts(2, 1, (), ()) == {(1, 0)}
    one = table.answered(asked(0, 1, "c3"), CASES, 2, 1.0)  # one order of the last case: 3.5 of 6
    assert one.facts(2, 1, (), ()) == {(0, 1)}
    both = one.answered(asked(0, 1, "c3", cells=2), CASES, 2, 0.0)  # it counts once, as part of both
    assert both.facts(2, 1, (), ()) == {(1, 0)}


def test_what_was_refused_twice_is_a_tie_once_all_else_is_known():
    table = AnswerTable()
    for case in CASES:
        for side in (0, 1):
            if (case, side) != ("c3", 1):
                table = table.answered(asked(side, 1 - side, case), CASES, 2, 0.5)
    assert table.facts(2, 1, (), ()) == frozenset()
    once = table.skipped(asked(1, 0, "c3"), CASES, 2, "unclear")
    assert once.facts(2, 1, (), ()) == frozenset()
    twice = once.skipped(asked(1, 0, "c3"), CASES, 2, "unclear")
    assert (twice.facts(2, 1, (), ()), twice.refused) == ({(0, 1)}, 1)
    answered = twice.answered(asked(1, 0, "c3"), CASES, 2, 1.0)  # it was clear after all
    assert (answered.facts(2, 1, (), ()), answered.refused) == ({(1, 0)}, 0)
    assert once.skipped(asked(1, 0, "c3"), CASES, 2, "lease ran out").facts(2, 1, (), ()) == frozenset()


def test_what_is_not_of_the_table_decides_nothing():
    for other in (asked(0, 1, "c1", cells=0), asked(0, 1, "c9"), asked(0, 1, "c1", pool=4)):
        assert AnswerTable().answered(other, CASES, 2, 1.0).pairs == {}
    assert AnswerTable().answered(asked(0, 1, "c1"), None, 2, 1.0).pairs == {}


def whole(outcome, judge="me"):
    table = AnswerTable()
    for case in CASES:
        for side in (0, 1):
            table = table.answered(asked(side, 1 - side, case, judge=judge), CASES, 2, outcome if side == 0 else 0.0)
    return table


def test_undone_voided_and_changed_answers_decide_nothing():
    table = whole(1.0)
    assert table.facts(2, 1, (), ()) == {(0, 1)}
    assert table.facts(2, 1, {("me", 0)}, ()) == frozenset()
    assert table.facts(2, 1, (), {"me"}) == frozenset()
    changed = table.answered(asked(0, 1, "c1"), CASES, 2, 0.0)
    assert (changed.changed, changed.facts(2, 1, (), ())) == ({"me"}, frozenset())


def test_a_fact_may_need_several_judges():
    table = whole(1.0)
    for case in CASES:
        for side in (0, 1):
            table = table.answered(asked(side, 1 - side, case, judge="you"), CASES, 2, 1.0 - side)
    assert table.facts(2, 2, (), ()) == {(0, 1)}
    assert whole(1.0).facts(2, 2, (), ()) == frozenset()
