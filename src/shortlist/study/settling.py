"""When answers become final, and what becomes of questions that are not answered.

A vote's result is the last answer when it settles, with the bet, the sides and the case of its question. Until then the
question counts as pending. A question that the judge has seen and not answered may be silent because of what the answer
would have been, so it is lost for good where votes can be lost. One that was never shown is dropped without effect.
"""

import numpy as np

from shortlist.core.pairs import pair_number
from shortlist.study.events import DROPPED, EXPIRED, LEFT, CountedVote, Event, Lost, Settled, Skipped
from shortlist.study.state import StudyState, Unsettled

SETTLES_AFTER = 30.0  # seconds in which a person may take an answer back
BALLOT_LEASE = 3600.0  # seconds that a person has for the next question of a ballot, where nothing else is said


def due(state: StudyState, now: float) -> list[Event]:
    """What is to happen by now: answers settle, leases end."""
    found: list[Event] = []
    for question in state.unsettled.values():
        if question.is_answered:
            if question.settles is None or question.settles <= now:
                found.append(Settled(question.asked.question))
        elif question.is_pending and question.asked.lease is not None and question.asked.lease < now:
            found.append(closing(state, question, EXPIRED))
    return found


def closing(state: StudyState, question: Unsettled, reason: str) -> Event:
    """How a question ends that nobody answers: lost if it was shown or is on a ballot, else dropped. Measured
    differences and rules that need the order know no largest loss, so there it is skipped."""
    number, is_seen = question.asked.question, question.asked.shown or question.asked.place is not None
    return Lost(number, reason) if is_seen and state.any_order else Skipped(number, reason)


def skipping(state: StudyState, number: int, reason: str) -> Event:
    """A judge skips a question. If its answer was taken back before, or it is on a ballot, it is lost."""
    question = state.unsettled[number]
    is_lost = question.reopened or question.asked.place is not None
    return closing(state, question, reason) if is_lost else Skipped(number, reason)


def also_asked(state: StudyState, vote: CountedVote) -> list[Event]:
    """Close the other questions that the judge of an undone vote holds on its pair: their bets were made before the
    undo, and an answer to them would be the vote again."""
    pair = {vote.first, vote.second}
    return [
        closing(state, question, DROPPED)
        for question in state.unsettled.values()
        if question.is_pending and question.asked.judge == vote.judge
        if {question.asked.first, question.asked.second} == pair
    ]


def answers_of(state: StudyState, judge: str | None) -> list[Event]:
    """Settle every answer of a judge."""
    theirs = (question for question in state.unsettled.values() if question.asked.judge == judge)
    return [Settled(question.asked.question) for question in theirs if question.is_answered]


def all_answers(state: StudyState) -> list[Event]:
    """Settle every answer."""
    return [Settled(number) for number, question in state.unsettled.items() if question.is_answered]


def leaving(state: StudyState, judge: str) -> list[Event]:
    """A judge leaves: answers settle, answers taken back and the rest of a ballot are lost, and what was not shown is
    dropped. Another question on the screen keeps its lease, so that the judge may come back to it."""
    found = answers_of(state, judge)
    for question in state.unsettled.values():
        asked = question.asked
        is_over = question.reopened or not asked.shown or asked.place is not None
        if asked.judge == judge and question.is_pending and is_over:
            found.append(closing(state, question, LEFT))
    return found


def useless(state: StudyState, judge: str) -> list[Event]:
    """Drop questions that were prefetched for a judge and not shown, if their pair needs no more votes. Nothing is
    taken from a ballot: the judge's own answers may be why."""
    return [
        Skipped(question.asked.question, DROPPED)
        for question in state.unsettled.values()
        if question.asked.judge == judge and question.is_pending and not question.asked.shown
        if question.asked.place is None
        if _needs_no_vote(state, question)
    ]  # fmt: skip


def _needs_no_vote(state: StudyState, question: Unsettled) -> bool:
    asked, ledger = question.asked, state.ahead.evidence.ledger
    if state.bets_nothing(asked.judge, pair_number(state.ahead.problem.n, asked.first, asked.second)):
        return True
    both = np.array([asked.first, asked.second])
    return ledger is not None and bool(ledger.is_proved(both, both[::-1]).any())
