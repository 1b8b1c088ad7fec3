"""The whole algorithm on one page: ask -> vote -> estimate -> certify -> learn.

A state is a value and a round is a function, so a study is a fold over its votes: the same votes and seed give the
same state and the same next question. No input or output, no clock, no hidden randomness.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import numpy as np

from shortlist.certificates.verdict import Verdict
from shortlist.estimate import fit
from shortlist.pairs import Floats, Ints
from shortlist.problem import Problem
from shortlist.rules.rule import Memory, Rule
from shortlist.tally import Tally, Vote, empty_tally
from shortlist.tracking import hand_out, most_behind

A_FEW = 4  # rounds of learning from votes out of turn: it is done again when they are settled
Evidence = Any  # a certificate's own value; only the certificate looks inside


class Certificate(Protocol):
    """A way of stopping."""

    @property
    def name(self) -> str: ...
    @property
    def every(self) -> float:
        """Check again when the votes grew by this share."""
        ...

    def start(self, problem: Problem) -> Evidence:
        """Evidence before the first vote."""
        ...

    def check(
        self, evidence: Evidence, problem: Problem, tally: Tally, theta_hat: Floats
    ) -> tuple[Evidence, Verdict[int]]:
        """Is it enough? Cheap: made after every vote."""
        ...

    def examine(self, problem: Problem, tally: Tally, theta_hat: Floats) -> Verdict[int]:
        """All that can be said now: made when a person looks."""
        ...


@dataclass(frozen=True)
class State:
    """Everything the next step needs."""

    problem: Problem
    rule: Rule
    certificate: Certificate
    seed: int
    tally: Tally
    theta_hat: Floats
    verdict: Verdict[int]
    memory: Memory
    evidence: Evidence
    checked: int  # votes at the last check


def start(problem: Problem, rule: Rule, certificate: Certificate, seed: int = 0) -> State:
    """The state before the first vote."""
    tally, theta = empty_tally(problem.n), np.zeros(problem.n)
    evidence, verdict = certificate.check(certificate.start(problem), problem, tally, theta)
    return State(problem, rule, certificate, seed, tally, theta, verdict, rule.start(problem), evidence, 0)


def ask(state: State, out: Sequence[int] = ()) -> int:
    """The pair to show next; `out` are the pairs shown already and not answered yet."""
    waiting = np.asarray(out, dtype=np.int64)
    return most_behind(state.rule.behind(state.memory, state.tally, waiting, 1))


def ask_block(state: State, size: int) -> tuple[Ints, Floats]:
    """The pairs the next `size` questions go to, and how many each: for simulations that learn in blocks."""
    return hand_out(state.rule.behind(state.memory, state.tally, np.empty(0, dtype=np.int64), size), size)


def tell(state: State, vote: Vote) -> State:
    """The state after one more vote. A verdict once reached stays."""
    if state.verdict.done:
        return state
    return _round(state, state.tally.add(state.problem.family, vote), 1)


def tell_block(state: State, pairs: Ints, counts: Floats, sums: Floats) -> State:
    """The state after a block of votes, learned from as if the estimate had stood still meanwhile."""
    return _round(state, state.tally.add_block(pairs, counts, sums), round(float(counts.sum())))


def look_ahead(state: State, votes: Sequence[Vote]) -> State:
    """The state with votes that came out of turn: good for choosing questions, never for a verdict."""
    if not votes:
        return state
    tally = reduce(lambda so_far, vote: so_far.add(state.problem.family, vote), votes, state.tally)
    state = _estimate(state, tally)
    rng, memory = np.random.default_rng((state.seed, round(tally.votes))), state.memory
    for _ in votes[:A_FEW]:
        memory = state.rule.learn(memory, state.problem, state.theta_hat, 1, rng)
    return replace(state, memory=memory)


def examine(state: State) -> Verdict[int]:
    """All that can be said now."""
    if state.verdict.done:
        return state.verdict
    return state.certificate.examine(state.problem, state.tally, state.theta_hat)


def _round(state: State, tally: Tally, rounds: int) -> State:
    state, votes = _estimate(state, tally), round(tally.votes)
    if votes >= state.checked * (1 + state.certificate.every) or votes == state.problem.max_votes:
        state = _certify(state, votes)
    return state if state.verdict.done else _learn(state, rounds)


def _estimate(state: State, tally: Tally) -> State:
    problem = state.problem
    return replace(state, tally=tally, theta_hat=fit(problem.family, tally, problem.bound, state.theta_hat))


def _certify(state: State, votes: int) -> State:
    problem, certificate = state.problem, state.certificate
    evidence, verdict = certificate.check(state.evidence, problem, state.tally, state.theta_hat)
    if not verdict.done and votes == problem.max_votes:
        verdict = certificate.examine(problem, state.tally, state.theta_hat)
        verdict = replace(verdict, done=True, reason=verdict.reason or "budget", votes_left=None)
    return replace(state, evidence=evidence, verdict=verdict, checked=votes)


def _learn(state: State, rounds: int) -> State:
    rng = np.random.default_rng((state.seed, round(state.tally.votes)))
    return replace(state, memory=state.rule.learn(state.memory, state.problem, state.theta_hat, rounds, rng))
