"""The whole algorithm on one page: ask -> vote -> evidence -> estimate -> stop? -> learn.

A state is a value and a round is a function, so a study is a fold over its votes: the same votes and seed give the
same state and the same next question. No input or output, no clock, no hidden randomness. What else can happen to a
state, such as an undo, is in `revisions`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shortlist.core.betting import Ledger
from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence, no_evidence
from shortlist.core.pairs import Floats, Ints, n_pairs
from shortlist.core.problem import Problem
from shortlist.core.sampling import planned_by, suited
from shortlist.core.sampling.base import SamplingMemory, SamplingRule
from shortlist.core.sampling.learn_then_prove import TwoPhases
from shortlist.core.sampling.plan import Plan, make_plan
from shortlist.core.sampling.sharpen import Sharpen
from shortlist.core.stopping.base import StoppingMemory, StoppingRule, Verdict
from shortlist.core.stopping.cuts import Cuts
from shortlist.core.stopping.edges import Edges
from shortlist.core.tally import Block, Tally, Vote, evolve
from shortlist.errors import NeedsJudges, NothingToAsk


class State(NamedTuple):
    """Everything the next step needs."""

    problem: Problem
    sampling: SamplingRule
    stopping: StoppingRule
    seed: int
    evidence: Evidence
    verdict: Verdict[int]
    sampling_memory: SamplingMemory
    stopping_memory: StoppingMemory
    checked: int  # votes at the last check

    @property
    def tally(self) -> Tally:
        return self.evidence.tally

    @property
    def theta_hat(self) -> Floats:
        """The best estimate there is."""
        return self.evidence.theta


def start(problem: Problem, sampling: SamplingRule, stopping: StoppingRule, seed: int = 0) -> State:
    """The state before the first vote."""
    sampling = suited(sampling, stopping)
    wants = (sampling.wants | stopping.wants) or frozenset({"mle"})  # something must put the items in order
    evidence = no_evidence(problem, wants, stopping if isinstance(stopping, Cuts) else None)
    memory, verdict = stopping.check(stopping.start(problem), problem, evidence)
    return State(problem, sampling, stopping, seed, evidence, verdict, sampling.start(problem), memory, 0)


def ask(
    state: State, pending: Sequence[int] = (), avoid: frozenset[int] = frozenset(), judge: int | None = None
) -> int:
    """The pair to show next. `pending` are the pairs shown and not answered yet, `avoid` those not to show. If a proof
    needs several judges, this one is asked nothing where more of their votes prove nothing."""
    avoid |= state.problem.withdrawn_pairs
    if judge is not None and state.problem.min_judges > 1 and (full := full_pairs(state, judge, avoid)):
        avoid |= full
    waiting = np.asarray(pending, dtype=np.int64)
    draws = Draws((state.seed, round(state.evidence.tally.votes) + len(pending), 1))
    round_now = state.sampling_memory, state.evidence, waiting, 1, draws
    allowed = state.problem.allowed
    if not avoid:
        pairs, _ = state.sampling.questions(*round_now)
    elif avoid.issuperset(range(n_pairs(state.problem.n)) if allowed is None else allowed):
        pairs = np.empty(0, dtype=np.int64)
    else:
        pairs, _ = state.sampling.questions(*round_now, np.array(sorted(avoid)))
    if len(pairs):
        return int(pairs[0])
    raise NothingToAsk("no useful pair is left that this judge may see; ask another judge, or later")


def full_pairs(state: State, judge: int, avoid: frozenset[int] = frozenset()) -> frozenset[int]:
    """The pairs on which more votes of this judge prove nothing (`Ledger.is_full`). Raises NeedsJudges if no other pair
    of the plan is left: pairs outside the plan would take many votes and prove little."""
    ledger, problem, memory = state.evidence.kept_ledger, state.problem, state.sampling_memory
    if isinstance(state.sampling, Sharpen) or (isinstance(memory, TwoPhases) and memory.learning):
        return frozenset()  # they still teach something
    planned = planned_by(memory)
    if planned is None or planned.plan is None:
        pairs = np.arange(n_pairs(problem.n)) if problem.allowed is None else np.array(problem.allowed)
        return frozenset(pairs[ledger.is_full(judge, pairs, problem.delta)].tolist())
    wanted, full = _wanted(ledger, planned.plan, judge, avoid)
    if wanted and wanted == full:  # the plan may be some votes old
        draws = Draws((state.seed, round(state.evidence.tally.votes), 3))
        again = _wanted(ledger, make_plan(ledger, draws.generator()), judge, avoid)
        if again[0] == again[1]:
            raise NeedsJudges(problem.min_judges)
        full |= again[1]
    return full


def _wanted(ledger: Ledger, plan: Plan, judge: int, avoid: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
    """The pairs of the plan that the judge may see, and those of them that are full."""
    full = plan.pairs[ledger.is_full(judge, plan.pairs, plan.delta)]
    return frozenset(plan.pairs.tolist()) - avoid, frozenset(full.tolist()) - avoid


def ask_block(state: State, size: int) -> tuple[Ints, Floats]:
    """The pairs the next `size` questions go to, and how many each: for simulations that learn in blocks."""
    nothing, draws = np.empty(0, dtype=np.int64), Draws((state.seed, round(state.evidence.tally.votes), 1))
    return state.sampling.questions(state.sampling_memory, state.evidence, nothing, size, draws)


def bet(state: State, first: int, second: int) -> float:
    """What is bet on the next vote on a pair; to be fixed when it is asked. 0 without a ledger of bets."""
    if state.evidence.ledger is None:
        return 0.0
    pair: Any = first, second  # plain numbers, as in `one_vote`
    return float(state.evidence.ledger.bets(*pair))


def tell(state: State, vote: Vote, pending: Block | None = None) -> State:
    """The state after one more vote. Once a verdict is reached, later votes do not change it."""
    if state.verdict.done:
        return state
    return next_round(state, state.evidence.add(state.problem, vote, pending), 1, pending)


def tell_block(state: State, votes: Block, pending: Block | None = None) -> State:
    """The state after a block of votes, with bets placed now, as if the estimate did not change meanwhile."""
    if state.verdict.done:
        return state
    evidence = state.evidence.add_block(state.problem, state.evidence.place_bets(votes), pending)
    return next_round(state, evidence, round(votes.votes), pending)


def next_round(state: State, evidence: Evidence, rounds: int, pending: Block | None) -> State:
    """evidence -> estimate -> stop? -> learn."""
    state = state._replace(evidence=evidence if evidence.mle is None else evidence.estimate(state.problem))
    votes = round(evidence.tally.votes)
    if votes >= min(state.checked * (1 + state.stopping.every), state.problem.max_votes or math.inf):
        state = check_stop(state, pending)
    return state if state.verdict.done else learn(state, rounds)


def check_stop(state: State, pending: Block | None = None) -> State:
    """The state with the stopping rule's verdict on its votes; a budget that is used up ends a study too."""
    problem, stopping, votes = state.problem, state.stopping, round(state.evidence.tally.votes)
    memory, verdict = stopping.check(state.stopping_memory, problem, state.evidence, pending)
    if not verdict.done and votes >= (problem.max_votes or math.inf):
        verdict = stopping.examine(memory, problem, state.evidence, pending)
        verdict = replace(verdict, done=True, reason=verdict.reason or "budget", votes_left=None)
    elif not verdict.done:
        verdict = _with_forecast(state, verdict)
    return state._replace(stopping_memory=memory, verdict=verdict, checked=votes)


def learn(state: State, rounds: int, *place: int) -> State:
    """The state after the sampling rule learned from its evidence; `place` gives other draws to repeated rounds."""
    draws = Draws((state.seed, round(state.evidence.tally.votes), *place))
    memory = state.sampling.learn(state.sampling_memory, state.problem, state.evidence, rounds, draws)
    return state if memory is state.sampling_memory else state._replace(sampling_memory=memory)


def examine(state: State, pending: Block | None = None) -> Verdict[int]:
    """The full verdict, for people; `check_stop` computes only what stopping needs."""
    if state.verdict.done:
        return state.verdict
    verdict = state.stopping.examine(state.stopping_memory, state.problem, state.evidence, pending)
    return verdict if verdict.done else _with_forecast(state, verdict)


def filled(state: State, pending: Block | None = None) -> Floats:
    """How much of the proof about each item is there, from 0 to 1. A stopping rule that does not say so has one number
    for all: how far the error bound has come on its way to delta, on a logarithmic scale."""
    problem = state.problem
    if state.verdict.reason == "certified":
        return np.ones(problem.n)
    if isinstance(state.stopping, Edges | Cuts):
        return state.stopping.filled(problem, state.evidence, pending)
    share = math.log(max(state.verdict.error_bound, problem.delta)) / math.log(problem.delta)
    return np.full(problem.n, share)


def _with_forecast(state: State, verdict: Verdict[int]) -> Verdict[int]:
    """With the votes so far, and the sampling rule's estimate of the votes to go if it has one."""
    left = state.sampling.votes_left(state.sampling_memory, state.evidence)
    votes_left = verdict.votes_left if left is None else left
    return evolve(verdict, votes=round(state.evidence.tally.votes), votes_left=votes_left)
