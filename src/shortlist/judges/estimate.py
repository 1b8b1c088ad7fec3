"""What a run will need, before it asks: calls and cost, from low to high.

The study is copied into memory and played to its end, several times, by the run itself with a simulated judge. Each
time the items have other utilities, drawn from the posterior given the study's votes: a normal prior, whose spread is
drawn too, and without votes the prior alone. Answers that are stored are used, as the run would use them. The lowest
and the highest of m simulations hold the true number with probability (m - 1)/(m + 1), if the prior is right.
Retries and skips are not simulated.
"""

import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from shortlist.core.draws import draw_number
from shortlist.core.ridge import laplace
from shortlist.errors import BadJudge, UnknownStudy
from shortlist.judges.base import Ask, Call, Case, Judge, PanelJudge, RecordedJudge, Reply, Tokens, as_judge
from shortlist.judges.cases import Contents
from shortlist.judges.meter import WRITTEN, guess_tokens
from shortlist.judges.pending import KnownAnswer
from shortlist.judges.run import Position, run_study
from shortlist.judges.run_log import StudyRun
from shortlist.study.create import load_study
from shortlist.study.storage import AnswerKey, JudgeReply, MemoryStorage, Spent, Storage
from shortlist.study.study import Study

SIMULATIONS = 20
SPREAD = 0.5  # of the logarithm of the prior's standard deviation, which is about 1 in log-odds
TIES, OUT_OF = 1, 10  # the share of ties before any vote has said
MOST = 10_000  # votes and calls of a simulation
SHORT = 10  # tokens that a model writes at least
LONG = 3 * WRITTEN  # and at most, if it has no limit
SEVERAL = 20  # answers whose mean cost is better than a guess
FINE = 10**9


class Range(NamedTuple):
    """The least, the middle and the most of all simulations."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """What a run will need from now on."""

    calls: Range
    votes: Range
    cost: Range | None  # None if the judge has no price
    simulations: int
    proved: int  # of the simulations, those that ended with a proof
    cut_off: int  # of the simulations, those that were not played to their end: `high` is too low
    known_votes: int  # that the simulations start from
    spent: float  # on the study so far

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        ranges = {name: None if (one := getattr(self, name)) is None else one._asdict() for name in RANGES}
        return {**asdict(self), **ranges}


RANGES = "calls", "votes", "cost"


class ScratchStorage(MemoryStorage):
    """A study copied into memory. Cached answers and replies are read where it came from, and nothing is written
    there. Empty if there is no study of that name."""

    def __init__(self, source: Storage, name: str) -> None:
        super().__init__()
        self._source, self._found = source, dict[AnswerKey, float | None]()
        try:
            spec = source.spec(name)
        except UnknownStudy:
            self._source = MemoryStorage()
            return
        self.create(name, spec)
        with self.writing(name) as writer:
            writer.add([entry._replace(previous="", hash="") for entry in source.since(name, 0)], "")

    def known_answer(self, name: str, key: AnswerKey) -> float | None:
        own = super().known_answer(name, key)
        if own is not None or name not in self._source.names():
            return own
        if key not in self._found:
            self._found[key] = self._source.known_answer(name, key)
        return self._found[key]

    def keep_answer(self, name: str, key: AnswerKey, outcome: float) -> float:
        known = self.known_answer(name, key)
        return super().keep_answer(name, key, outcome) if known is None else known

    def replies(self, name: str) -> list[JudgeReply]:
        return self._source.replies(name) if name in self._source.names() else []

    def spent(self, name: str) -> Spent:
        return self._source.spent(name) if name in self._source.names() else Spent()


@dataclass
class _World:
    """Utilities, and the answers that follow. The same call always has the same answer."""

    number: int
    utilities: dict[str, float]
    ties: float
    prices: list[Judge]
    least: float = 0.0  # what the calls so far cost, if answers are short
    most: float = 0.0

    def answer(self, call: Call) -> str:
        case = call.id if call.case is None else call.case.id
        drawn = draw_number(FINE, "estimate", self.number, call.member, case, call.first, call.second) / FINE
        if drawn < self.ties:
            return "tie"
        share = 1 / (1 + np.exp(self.utilities[call.second] - self.utilities[call.first]))  # a tie is half of a win
        return "first" if drawn - self.ties < share - self.ties / 2 else "second"

    def pay(self, call: Call) -> None:
        judge = self.prices[call.member or 0]
        price, request = getattr(judge, "price", None), getattr(judge, "request", None)
        if price is None or request is None:
            return
        read, limit = round(guess_tokens(request(call))), getattr(judge, "limit", None) or LONG
        self.least += price.cost(Tokens(read, min(SHORT, limit)))
        self.most += price.cost(Tokens(read, limit))


@dataclass(frozen=True)
class _Simulated:
    """A judge with the name and the settings of another, who answers as the world says."""

    name: str
    settings: Any
    default_name: str | None
    shows_references: bool
    max_parallel: int | None
    world: _World = field(repr=False)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        async def ask(call: Call) -> Reply:
            self.world.pay(call)
            return Reply(self.world.answer(call))

        yield ask


def estimate_run(
    study: Study,
    judge: Judge | Callable[..., Any],
    *,
    workers: int = 8,
    cases: Iterable[Case | str] | None = None,
    contents: Contents | None = None,
    position: Position = "random",
    as_new_judge: bool = False,
    known_answer: KnownAnswer | None = None,
    simulations: int = SIMULATIONS,
    progress: Callable[[int], None] | None = None,
) -> Estimate:
    """How many calls `run_study` with these arguments would make from now on, and what they would cost, from low to
    high. The judge is not asked, and nothing is stored. `progress` is called with the number of simulations so far.
    """
    judge = as_judge(judge)
    if isinstance(judge, RecordedJudge):
        raise BadJudge("recorded votes cost nothing, so there is nothing to estimate; leave out --estimate")
    if study.problem.family.is_measured:
        raise BadJudge(
            "an estimate needs wins, ties or grades: measured differences have no scale that is known before"
        )
    given = None if cases is None else list(cases)
    base = ScratchStorage(study.storage, study.name)
    played: list[tuple[StudyRun, _World]] = []
    for number in range(simulations):
        copy = load_study(study.name, ScratchStorage(base, study.name))
        world = _world(copy, judge, number)
        run = _play(copy, _as_simulated(judge, world), workers=workers, cases=given, contents=contents,
                    position=position, as_new_judge=as_new_judge, known_answer=known_answer)  # fmt: skip
        played.append((run, world))
        if progress is not None:
            progress(number + 1)
    return _summary(study, judge, played)


def _world(study: Study, judge: Judge, number: int) -> _World:
    rng = np.random.default_rng([study.seed, number])
    spread = float(np.exp(SPREAD * rng.standard_normal()))
    drawn = laplace(study.problem.family, study.tally, spread).draw(rng, 1)[0]
    outcomes = [outcome for _, _, outcome, _ in study.votes]
    ties = (TIES + outcomes.count(0.5)) / (OUT_OF + len(outcomes))
    utilities = dict(zip(study.items, map(float, drawn), strict=True))
    return _World(number, utilities, ties, list(judge.judges) if isinstance(judge, PanelJudge) else [judge])


def _as_simulated(judge: Judge, world: _World) -> Judge:
    if isinstance(judge, PanelJudge):
        return PanelJudge([_as_simulated(one, world) for one in judge.judges], judge.how, judge.name)
    return _Simulated(
        judge.name, getattr(judge, "settings", None), getattr(judge, "default_name", None),
        getattr(judge, "shows_references", False), judge.max_parallel, world,
    )  # fmt: skip


def _play(study: Study, judge: Judge, **options: Any) -> StudyRun:
    enough = threading.Event()

    def watch(so_far: StudyRun) -> None:
        if so_far.verdict.votes >= MOST:
            enough.set()

    return run_study(study, judge, max_calls=MOST, stop=enough, progress=watch, warn=lambda _: None, **options)


def _summary(study: Study, judge: Judge, played: list[tuple[StudyRun, _World]]) -> Estimate:
    before, spent = study.verdict.votes, study.spent.cost
    calls = [run.costs.calls for run, _ in played]
    is_cut = [not run.verdict.done and max(run.verdict.votes, run.costs.calls) >= MOST for run, _ in played]
    return Estimate(
        _range(calls), _range([run.verdict.votes - before for run, _ in played]), _cost(study, judge, played),
        len(played), sum(run.verdict.reason == "certified" for run, _ in played), sum(is_cut), before, spent,
    )  # fmt: skip


def _cost(study: Study, judge: Judge, played: list[tuple[StudyRun, _World]]) -> Range | None:
    """From what earlier answers of the judge cost, with their retries. Without such, from the letters of the prompts,
    and a few or many tokens written."""
    replies = [reply for reply in study.storage.replies(study.name) if reply.cost is not None]
    answers = sum(reply.outcome is not None for reply in replies)
    if answers >= SEVERAL:
        each = sum(reply.cost or 0.0 for reply in replies) / answers
        return _range([each * run.costs.calls for run, _ in played])
    if not any(hasattr(one, "request") and getattr(one, "price", None) for one in played[0][1].prices):
        return None
    middle = float(np.median([(world.least + world.most) / 2 for _, world in played]))
    return Range(min(world.least for _, world in played), middle, max(world.most for _, world in played))


def _range(values: list[Any]) -> Range:
    return Range(min(values), float(np.median(values)), max(values))
