"""The error bound over time: the study's records folded once more, and looked at now and then.

Only the evidence is folded, with the bets that were stored when questions were asked; how they were chosen does not
matter to it. Between two looks votes are added as one block, so an account that was enough for a moment in between may
be missed. With a look at every vote, which small studies get, the bound is exactly the study's own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shortlist.certificates.verdict import Verdict
from shortlist.estimate import fit
from shortlist.facts import Facts, Questions
from shortlist.ledger import empty_ledger, in_parts
from shortlist.loop import Certificate, questions_out
from shortlist.pairs import Floats
from shortlist.problem import Problem
from shortlist.study.records import VOIDED, Asked, Cast, Imported, Skipped, TakenBack, Told
from shortlist.study.storage import Entry
from shortlist.tally import Block, Vote, empty_tally
from shortlist.threads import one_thread

LOOKS = 200
FITS = 4000  # constrained fits that the curve of a glr study may cost: k(n-k) for each look
FEW_LOOKS = 8  # less is no curve


@dataclass(frozen=True)
class Bounds:
    """The error bound after so many votes; `note` says what is not there."""

    votes: tuple[int, ...]
    bound: tuple[float, ...]
    note: str = ""


class Step(NamedTuple):
    """What the fold does next: votes that count, votes taken back, votes from elsewhere, on which bets are made, or
    questions that nobody will answer."""

    votes: tuple[Vote, ...] = ()
    back: tuple[Vote, ...] = ()
    imported: Imported | None = None
    lost: tuple[Vote, ...] = ()  # given up, and lost by both items
    out: tuple[Vote, ...] = ()  # asked and not answered after it


def error_bounds(
    problem: Problem, certificate: Certificate, entries: Sequence[Entry], last: Verdict[str], looks: int = LOOKS
) -> Bounds:
    """The bound at about `looks` moments; the last is the verdict's own."""
    if certificate.name == "glr":
        looks = min(looks, FITS // (problem.k * (problem.n - problem.k)))
        if looks < FEW_LOOKS:
            return Bounds((), (), "not computed: the glr bound of so many items takes too long to compute again")
    steps = list(_steps(certificate.any_order(problem), entries))
    votes, bound = [0], [1.0]
    with one_thread():
        for count, value in _looks(_Fold(problem, certificate), steps, last, looks):
            votes, bound = [*votes, count], [*bound, value]
    if len(votes) > 1 and votes[-1] == last.votes:
        votes, bound = votes[:-1], bound[:-1]
    return Bounds((*votes, last.votes), (*bound, last.error_bound)) if last.votes else Bounds((0,), (1.0,))


def _looks(fold: "_Fold", steps: Sequence[Step], last: Verdict[str], looks: int) -> Iterator[tuple[int, float]]:
    """After a verdict nothing counts."""
    stride, seen = max(1.0, last.votes / looks), 0.0
    for step in steps:
        for _ in fold.take(step):
            if last.done and fold.votes >= last.votes:
                return
            if abs(fold.votes - seen) >= stride:
                seen = fold.votes
                yield round(seen), fold.look()


class _Fold:
    """Facts and evidence after the steps so far. Votes wait in a block until someone looks."""

    def __init__(self, problem: Problem, certificate: Certificate) -> None:
        self.problem, self.certificate, wants = problem, certificate, certificate.wants
        self.facts = Facts(
            empty_tally(problem.n),
            np.zeros(problem.n) if "mle" in wants else None,
            empty_ledger(problem) if "ledger" in wants else None,
        )
        self.evidence, self.waiting = certificate.start(problem), list[Vote]()
        self.out: tuple[Vote, ...] = ()

    @property
    def votes(self) -> float:
        return self.facts.tally.votes + len(self.waiting)

    def take(self, step: Step) -> Iterator[None]:
        """Do the step, and pause wherever one might look."""
        self.waiting += step.votes
        if step.back or step.lost or step.imported is not None:
            self._settle()
        self.out = step.out
        if step.back:
            self._withdraw(step.back)
        if step.lost:
            lost = self.facts.book.doubting(_block(step.lost), np.array([vote.bet for vote in step.lost]))
            self.facts = self.facts._replace(ledger=lost)
        if step.imported is not None:
            yield from self._import(step.imported)
        yield

    def look(self) -> float:
        """The error bound now."""
        self._settle()
        facts = self.facts
        if facts.mle is not None:
            facts = facts._replace(mle=fit(self.problem.family, facts.tally, self.problem.bound, facts.mle))
        self.facts, out = facts, self._questions()
        self.evidence, verdict = self.certificate.check(self.evidence, self.problem, facts, out)
        if not verdict.done:
            verdict = self.certificate.examine(self.evidence, self.problem, facts, out)
        return verdict.error_bound

    def _questions(self) -> Questions | None:
        return questions_out(self.out) if self.certificate.any_order(self.problem) else None

    def _settle(self) -> None:
        if self.waiting:
            self._add(_block(self.waiting), np.array([vote.bet for vote in self.waiting]))
            self.waiting = []

    def _add(self, block: Block, bets: Floats) -> None:
        facts, ledger = self.facts, self.facts.ledger
        ledger = None if ledger is None else ledger.add(block, bets, self._questions())
        self.facts = Facts(facts.tally.add_block(self.problem.family, block), facts.mle, ledger)

    def _withdraw(self, votes: Sequence[Vote]) -> None:
        ledger = self.facts.book.withdraw(_block(votes), np.array([vote.bet for vote in votes]))
        tally = self.facts.tally
        for vote in votes:
            tally = tally.add(self.problem.family, vote, -1.0)
        self.facts, self.evidence = Facts(tally, self.facts.mle, ledger), self.certificate.start(self.problem)

    def _import(self, votes: Imported) -> Iterator[None]:
        """In parts whose bets stand before the first vote is read, with a check after each, as the study does it."""
        for part in in_parts(votes.block, self.facts.tally.votes):
            ledger = self.facts.ledger
            bets = np.zeros(len(part.first)) if ledger is None else ledger.bets(part.first, part.second)
            self._add(part, bets)
            if ledger is not None:
                self.evidence, _ = self.certificate.check(self.evidence, self.problem, self.facts, self._questions())
            yield


def _block(votes: Sequence[Vote]) -> Block:
    ends = np.array([(vote.first, vote.second) for vote in votes], dtype=np.int64)
    return Block(ends[:, 0], ends[:, 1], np.array([vote.outcome for vote in votes]), np.ones(len(votes)))


def _steps(any_order: bool, entries: Sequence[Entry]) -> Iterator[Step]:
    """The records as steps. Where the order matters, a vote counts once all questions before it are closed."""
    turns: dict[int, tuple[Asked, float | None, bool]] = {}
    for _, _, record in entries:
        match record:
            case Asked():
                turns[record.question] = record, None, False
            case Told(question, outcome):
                turns[question] = turns[question][0], outcome, True
                yield Step(votes=_settled(turns, question, any_order), out=_out(turns))
            case Skipped(question, reason) if reason == VOIDED and any_order:
                asked = turns.pop(question)[0]
                yield Step(lost=(Vote(asked.first, asked.second, 0.0, asked.bet),), out=_out(turns))
            case Skipped(question, _):
                turns[question] = turns[question][0], None, True
                yield Step(votes=_settled(turns, question, any_order), out=_out(turns))
            case TakenBack(votes, _) if votes:
                yield Step(back=tuple(_cast(cast) for cast in votes), out=_out(turns))
            case Imported():
                yield Step(imported=record, out=_out(turns))


def _settled(turns: dict[int, tuple[Asked, float | None, bool]], closed: int, any_order: bool) -> tuple[Vote, ...]:
    """The votes that count from now on; they leave `turns`."""
    ready = [closed] if any_order else []
    if not any_order:
        for number, (_, _, over) in turns.items():
            if not over:
                break
            ready.append(number)
    taken = [turns.pop(number) for number in ready]
    return tuple(
        Vote(asked.first, asked.second, outcome, asked.bet) for asked, outcome, _ in taken if outcome is not None
    )


def _out(turns: dict[int, tuple[Asked, float | None, bool]]) -> tuple[Vote, ...]:
    return tuple(Vote(asked.first, asked.second, 0.0, asked.bet) for asked, _, closed in turns.values() if not closed)


def _cast(cast: Cast) -> Vote:
    return Vote(cast.first, cast.second, cast.outcome, cast.bet)
