"""The error bound over time: one series, kept with the study, for the terminal, the page and the report.

A point is added when the bound changes or the votes grew by 5 %. Points are part of the fold, so every process
that has read the same events has the same series.
"""

from typing import NamedTuple

from shortlist.core import loop
from shortlist.core.problem import Problem
from shortlist.core.stopping.base import StoppingRule
from shortlist.core.tally import Block

GROWTH = 1.05
MOST_FITS = 500  # constrained fits that one point of a glr study may cost


class BoundPoint(NamedTuple):
    """The error bound after `votes` votes, and about how many more votes were needed then."""

    votes: int
    error_bound: float
    votes_left: float | None


BoundHistory = tuple[BoundPoint, ...]
START: BoundHistory = (BoundPoint(0, 1.0, None),)


def extended(history: BoundHistory, state: loop.State, pending: Block | None) -> BoundHistory:
    """The series, with a point for this state if one is due."""
    verdict, last = state.verdict, history[-1]
    grown = verdict.votes >= GROWTH * last.votes and verdict.votes > last.votes
    ended = verdict.done and verdict.votes != last.votes
    if not (grown or ended or (verdict.error_bound != last.error_bound and _reports(state))):
        return history
    bound = verdict.error_bound if _reports(state) or verdict.done else _examined(state, pending)
    return (*history, BoundPoint(verdict.votes, bound, verdict.votes_left))


def is_recorded(problem: Problem, stopping: StoppingRule) -> bool:
    """Whether the series is kept: the error bound of a glr study with many items takes too long."""
    return stopping.name != "glr" or problem.k * (problem.n - problem.k) <= MOST_FITS


def _reports(state: loop.State) -> bool:
    """Whether the stopping rule's cheap check gives an error bound. The check of glr only decides whether to stop."""
    return state.stopping.name != "glr"


def _examined(state: loop.State, pending: Block | None) -> float:
    if not is_recorded(state.problem, state.stopping):
        return 1.0
    return loop.examine(state, pending).error_bound
