"""The ballot of a judge in a study about the public: opened once, as a whole, and never changed.

The list does not depend on who the judge is, and everything on it is fixed when it is opened: pairs, sides, cases and
bets. Pairs that the judge must not see, such as their own work, are left out if they are known then.
"""

import numpy as np

from shortlist.core.draws import Draws, draw_number
from shortlist.core.pairs import pair_items, pair_number
from shortlist.core.sampling.ballot import Listed, draw_ballot
from shortlist.errors import BallotsOpen, CasesUsedUp, NothingToAsk
from shortlist.study.claims import CasePool
from shortlist.study.events import Asked
from shortlist.study.state import StudyState

DRAW = 2  # the kind of draw, beside those of the loop


def open_ballot(
    state: StudyState, judge: str, size: int, avoid: frozenset[int], cases: CasePool, lease: float | None,
    run: str | None = None,
) -> list[Asked]:  # fmt: skip
    """The questions of a new ballot, in the order of their places. Raises BallotsOpen if open ballots may complete the
    proof, and NothingToAsk if they use up the vote budget or no pair may be asked."""
    if state.ballots.open and _would_end(state):
        raise BallotsOpen(len(state.ballots.open))
    closed = cases.closed_pairs(state.ahead.problem.n) if cases else frozenset[int]()
    listed = _draw(state, min(size, _votes_left(state, size)), avoid | closed)
    if not listed:
        raise NothingToAsk("no pair is left that this judge may see; ask another judge")
    return questions_of(state, listed, Asked(0, 0, 0, 0.0, judge, None, lease, run, shown=False), cases)


def _would_end(state: StudyState) -> bool:
    """Whether all is proved, if the open ballots are left aside."""
    ahead = state.ahead
    return ahead.stopping.check(ahead.stopping_memory, ahead.problem, ahead.evidence)[1].done


def _votes_left(state: StudyState, size: int) -> int:
    budget = state.ahead.problem.max_votes
    if budget is None:
        return size
    left = budget - len(state.not_final) - round(state.ahead.evidence.tally.votes)
    if left <= 0:
        raise NothingToAsk(f"all {budget} votes of the budget are on open ballots; wait until these are closed")
    return left


def _draw(state: StudyState, size: int, avoid: frozenset[int]) -> list[Listed]:
    ahead, n = state.ahead, state.ahead.problem.n
    pending = np.array([pair_number(n, asked.first, asked.second) for asked in state.not_final], np.int64)
    draws = Draws((ahead.seed, state.n_asked, DRAW))
    memory, places = ahead.sampling_memory, state.ballots.places
    return draw_ballot(memory, ahead.evidence, pending, size, places, draws, np.array(sorted(avoid), np.int64))


def questions_of(state: StudyState, listed: list[Listed], blank: Asked, cases: CasePool) -> list[Asked]:
    """The list as questions. It ends early where the cases end."""
    seed, found = state.ahead.seed, list[Asked]()
    for place, (pair, bet) in enumerate(listed):
        number, (i, j) = state.n_asked + place, pair_items(state.ahead.problem.n, pair)
        if draw_number(2, "side", seed, number):
            i, j, bet = j, i, -bet
        question = blank._replace(question=number, first=i, second=j, bet=bet, place=place)
        if cases:
            try:
                case = cases.draw(seed, number, pair)
            except CasesUsedUp:
                if not found:
                    raise
                break
            question = question._replace(case=case, pool=cases.size, drawing=cases.drawing)
        found.append(question)
    return found
