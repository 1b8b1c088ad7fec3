"""The whole algorithm on one page: ask -> vote -> estimate -> certify -> learn.

A state is a value and a round is a function, so a study is a fold over its votes: the same votes and seed give the
same state and the same next question. No input or output, no clock, no hidden randomness.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np

from shortlist.certificates.verdict import Verdict
from shortlist.dice import Dice
from shortlist.errors import NothingToAsk
from shortlist.estimate import fit
from shortlist.facts import Facts, Questions
from shortlist.ledger import empty_ledger
from shortlist.pairs import Floats, Ints
from shortlist.problem import Problem
from shortlist.rules.rule import Memory, Rule
from shortlist.tally import Block, Tally, Vote, empty_tally

PATIENCE = 200  # questions to try for a judge who must not see some pairs
A_FEW = 4  # rounds of learning from votes out of turn: it is done again when they are settled
Evidence = Any  # a certificate's own value; only the certificate looks inside


class Certificate(Protocol):
    """A way of stopping."""

    @property
    def name(self) -> str: ...
    @property
    def wants(self) -> frozenset[str]:
        """Which of `mle` and `ledger` it reads."""
        ...

    @property
    def every(self) -> float:
        """Check again when the votes grew by this share."""
        ...

    def any_order(self, problem: Problem) -> bool:
        """May answers count as they come in, or only in the order asked?"""
        ...

    def start(self, problem: Problem) -> Evidence:
        """Evidence before the first vote."""
        ...

    def check(
        self, evidence: Evidence, problem: Problem, facts: Facts, out: Questions | None = None
    ) -> tuple[Evidence, Verdict[int]]:
        """Is it enough? Cheap: made after every vote."""
        ...

    def examine(self, evidence: Evidence, problem: Problem, facts: Facts, out: Questions | None = None) -> Verdict[int]:
        """All that can be said now: made when a person looks."""
        ...


class State(NamedTuple):
    """Everything the next step needs."""

    problem: Problem
    rule: Rule
    certificate: Certificate
    seed: int
    facts: Facts
    verdict: Verdict[int]
    memory: Memory
    evidence: Evidence
    checked: int  # votes at the last check

    @property
    def tally(self) -> Tally:
        return self.facts.tally

    @property
    def theta_hat(self) -> Floats:
        """The best estimate there is."""
        return self.facts.theta


def start(problem: Problem, rule: Rule, certificate: Certificate, seed: int = 0) -> State:
    """The state before the first vote."""
    wanted = (rule.wants | certificate.wants) or {"mle"}  # something must put the items in order
    mle = np.zeros(problem.n) if "mle" in wanted else None
    facts = Facts(empty_tally(problem.n), mle, empty_ledger(problem) if "ledger" in wanted else None)
    evidence, verdict = certificate.check(certificate.start(problem), problem, facts)
    return State(problem, rule, certificate, seed, facts, verdict, rule.start(problem), evidence, 0)


def ask(state: State, out: Sequence[int] = (), avoid: frozenset[int] = frozenset()) -> int:
    """The pair to show next; `out` are the pairs shown already and not answered yet, `avoid` those not to show."""
    waiting = np.asarray(out, dtype=np.int64)
    for attempt in range(PATIENCE if avoid else 1):
        dice = _ask_dice(state, len(out), attempt)
        pair = int(state.rule.questions(state.memory, state.facts, waiting, 1, dice)[0][0])
        if pair not in avoid:
            return pair
        waiting = np.append(waiting, np.full(2 ** min(attempt, 14), pair))  # as if out more and more often
    raise NothingToAsk(f"{PATIENCE} tries found no question that this judge may be shown; ask another judge, or later")


def ask_block(state: State, size: int) -> tuple[Ints, Floats]:
    """The pairs the next `size` questions go to, and how many each: for simulations that learn in blocks."""
    return state.rule.questions(state.memory, state.facts, np.empty(0, dtype=np.int64), size, _ask_dice(state, 0, 0))


def bets(state: State, first: Ints, second: Ints) -> Floats:
    """What is bet on the next votes, to be fixed when they are asked; 0 where nobody bets."""
    return np.zeros(len(first)) if state.facts.ledger is None else state.facts.ledger.bets(first, second)


def bet(state: State, first: int, second: int) -> float:
    """The same for one vote."""
    pair: tuple[Any, Any] = first, second
    return 0.0 if state.facts.ledger is None else float(state.facts.ledger.bets(*pair))


def tell(state: State, vote: Vote, out: Questions | None = None) -> State:
    """The state after one more vote. A verdict once reached stays."""
    if state.verdict.done:
        return state
    return _round(state, _add(state, vote, out), 1, out)


def tell_block(state: State, block: Block, out: Questions | None = None) -> State:
    """The state after a block of votes, learned from as if the estimate had stood still meanwhile."""
    if state.verdict.done:
        return state
    tally, ledger = state.tally.add_block(state.problem.family, block), state.facts.ledger
    if ledger is not None:
        ledger = ledger.add(block, ledger.bets(block.first, block.second), out)
    return _round(state, Facts(tally, state.facts.mle, ledger), round(block.votes), out)


def withdraw(state: State, votes: Sequence[Vote], out: Questions | None = None) -> State:
    """The state after votes were taken back, which may only weaken what is proved; see `Ledger.withdraw`."""
    if state.verdict.done:
        return state
    ledger = state.facts.book.withdraw(*_as_block(votes))
    tally = reduce(lambda tally, vote: tally.add(state.problem.family, vote, -1.0), votes, state.tally)
    forgetful = state._replace(evidence=state.certificate.start(state.problem))
    return check(_estimate(forgetful, Facts(tally, state.facts.mle, ledger)), out)


def lose(state: State, votes: Sequence[Vote]) -> State:
    """The state after questions were given up that both items may have lost; see `Ledger.doubting`."""
    if state.verdict.done:
        return state
    return state._replace(facts=state.facts._replace(ledger=state.facts.book.doubting(*_as_block(votes))))


def check(state: State, out: Questions | None = None) -> State:
    """The state with its verdict looked at again: what is out has changed."""
    return state if state.verdict.done else _certify(state, round(state.tally.votes), out)


def look_ahead(state: State, votes: Sequence[Vote]) -> State:
    """The state with votes that came out of turn: good for choosing questions, never for a verdict."""
    if not votes:
        return state
    facts = reduce(lambda so_far, vote: _add(state._replace(facts=so_far), vote), votes, state.facts)
    state = _estimate(state, facts)
    memory = state.memory
    for place in range(min(len(votes), A_FEW)):
        memory = state.rule.learn(memory, state.problem, state.facts, 1, _learn_dice(state, 0, place + 1))
    return state._replace(memory=memory)


def examine(state: State, out: Questions | None = None) -> Verdict[int]:
    """All that can be said now."""
    if state.verdict.done:
        return state.verdict
    verdict = state.certificate.examine(state.evidence, state.problem, state.facts, out)
    return verdict if verdict.done else _hopeful(state, verdict)


def questions_out(votes: Sequence[Vote]) -> Questions | None:
    """Questions that are out, for a certificate; None if there are none."""
    return Questions(*_as_block(votes)) if votes else None


def _as_block(votes: Sequence[Vote]) -> tuple[Block, Floats]:
    ends = np.array([(vote.first, vote.second) for vote in votes], dtype=np.int64)
    values = np.array([(vote.outcome, vote.bet) for vote in votes])
    return Block(ends[:, 0], ends[:, 1], values[:, 0], np.ones(len(votes))), values[:, 1]


def _as_plain(vote: Vote) -> tuple[Block, Floats]:
    """One vote as a block of plain numbers in place of arrays; see `ledger`."""
    first: Any = vote.first
    second: Any = vote.second
    outcome, count, bet = np.array((vote.outcome, 1.0, vote.bet))
    return Block(first, second, outcome, count), bet


def _add(state: State, vote: Vote, out: Questions | None = None) -> Facts:
    facts, ledger = state.facts, state.facts.ledger
    if ledger is not None:
        ledger = ledger.add(*_as_plain(vote), out)
    return Facts(facts.tally.add(state.problem.family, vote), facts.mle, ledger)


def _round(state: State, facts: Facts, rounds: int, out: Questions | None) -> State:
    state, votes = _estimate(state, facts), round(facts.tally.votes)
    if votes >= state.checked * (1 + state.certificate.every) or _used_up(state.problem, votes):
        state = _certify(state, votes, out)
    return state if state.verdict.done else _learn(state, rounds)


def _estimate(state: State, facts: Facts) -> State:
    if facts.mle is not None:
        facts = facts._replace(mle=fit(state.problem.family, facts.tally, state.problem.bound, facts.mle))
    return state._replace(facts=facts)


def _certify(state: State, votes: int, out: Questions | None) -> State:
    problem, certificate = state.problem, state.certificate
    evidence, verdict = certificate.check(state.evidence, problem, state.facts, out)
    if not verdict.done and _used_up(problem, votes):
        verdict = certificate.examine(evidence, problem, state.facts, out)
        verdict = replace(verdict, done=True, reason=verdict.reason or "budget", votes_left=None)
    elif not verdict.done:
        verdict = _hopeful(state, verdict)
    return state._replace(evidence=evidence, verdict=verdict, checked=votes)


def _used_up(problem: Problem, votes: int) -> bool:
    return problem.max_votes is not None and votes >= problem.max_votes


def _hopeful(state: State, verdict: Verdict[int]) -> Verdict[int]:
    """With the votes so far, and the rule's estimate of the votes to go if it has one."""
    left = state.rule.votes_left(state.memory, state.facts)
    return verdict.after(round(state.tally.votes), verdict.votes_left if left is None else left)


def _learn(state: State, rounds: int) -> State:
    memory = state.rule.learn(state.memory, state.problem, state.facts, rounds, _learn_dice(state))
    return state if memory is state.memory else state._replace(memory=memory)


def _ask_dice(state: State, out: int, attempt: int) -> Dice:
    return Dice((state.seed, round(state.tally.votes) + out, attempt + 1))


def _learn_dice(state: State, *place: int) -> Dice:
    return Dice((state.seed, round(state.tally.votes), *place))
