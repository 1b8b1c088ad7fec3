"""When answers become final, and what becomes of questions that are not answered.

A vote's result is the last answer when it settles, with the bet, the sides and the case of its question. Until then the
question counts as pending. A question that the judge has seen and not answered may be silent because of what the answer
would have been, so it is lost for good where votes can be lost. One that was never shown is dropped without effect.
"""

import numpy as np

from shortlist.core.pairs import pair_number
from shortlist.study.events import (
    DROPPED,
    EXPIRED,
    LEFT,
    VOIDED,
    CountedVote,
    Event,
    Lost,
    Settled,
    Skipped,
    Withdrawn,
)
from shortlist.study.state import StudyState, Unsettled

SETTLES_AFTER = 30.0  # seconds in which a person may take an answer back
UNDO_STEPS = 3  # answers that a person may take back, the last ones
FRESH = 0.1  # of a lease, in which it is not written again
BALLOT_LEASE = 3600.0  # seconds that a person has for the next question of a ballot, where nothing else is said


def due(state: StudyState, now: float) -> list[Event]:
    """What is to happen by now: answers settle, leases end."""
    found: list[Event] = []
    if state.archived:  # nothing happens until it is taken out of the archive
        return found
    for question in state.unsettled.values():
        if question.is_answered:
            if question.settles is None or question.settles <= now:
                found.append(Settled(question.asked.question))
        elif question.is_pending and question.asked.lease is not None and question.asked.lease < now:
            found.append(closing(state, question, EXPIRED))
    return found


def is_fresh(state: StudyState, number: int, lease: float | None, until: float | None) -> bool:
    """Whether a question is on the screen already, with a lease that began so lately that renewing it changes
    little."""
    asked = state.unsettled[number].asked
    if not asked.shown or lease is None or until is None or asked.lease is None:
        return asked.shown and asked.lease == until
    return 0 <= until - asked.lease < FRESH * lease


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


def still_free(state: StudyState) -> int:
    """How many answers of a judge stay open to an undo when they give another, or skip."""
    return UNDO_STEPS - 1 if state.any_order else 0


def answers_of(state: StudyState, judge: str | None, keep: int = 0) -> list[Event]:
    """Settle the answers of a judge, except for the last `keep`."""
    theirs = [found for found in state.unsettled.values() if found.asked.judge == judge and found.is_answered]
    theirs.sort(key=lambda found: found.settles or 0.0)  # in the order of the answers
    return [Settled(found.asked.question) for found in theirs[: len(theirs) - keep]]


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


def voiding(state: StudyState, votes: tuple[CountedVote, ...], judge: str) -> list[Event]:
    """A judge is voided: answers settle, all votes, which are given, are withdrawn, and nothing stays pending."""
    theirs = (question for question in state.unsettled.values() if question.asked.judge == judge)
    pending = [closing(state, question, VOIDED) for question in theirs if question.is_pending]
    return [*answers_of(state, judge), Withdrawn(votes, judge), *pending]


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
