"""Play a sampling rule, or a baseline, against a known world or on recorded votes, run after run, on all cores.

growth = 0 is the reference: one question, one vote, one round. growth > 0 is lazy: the allocation is refreshed each
time the votes have grown by that share, and the block of questions in between is drawn at once. Runs are reproducible
with any number of jobs: each has its own child of one seed, and linear algebra runs on one thread.

A replay draws recorded votes with replacement, so the same vote counts many times. That is a fair way to compare
methods and to plan a study, but it says nothing about the items beyond the file: a replay is a simulation, never a
proof.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from shortlist.baselines import BASELINES, check_baseline, run_baseline
from shortlist.core import loop
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Floats, Ints, all_pairs, n_pairs, pair_ends, pair_items
from shortlist.core.problem import Problem, real, whole
from shortlist.core.sampling import ASKS_ALLOWED, SAMPLING_RULES, default_stopping
from shortlist.core.sampling.base import SamplingRule
from shortlist.core.sampling.tracking import OnlineOracle, Oracle, OracleTracking
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.stopping.base import StoppingRule
from shortlist.core.tally import Block, Vote
from shortlist.errors import BadInstance, BadProblem
from shortlist.simulation.worlds import Instance, Recorded, World

KNOWING = ("oracle", "online-oracle")  # the true utilities
METHODS = (*SAMPLING_RULES, *KNOWING, *BASELINES)
DEFAULT_METHOD = "bridge"
OWN_RULE = "own"  # how a baseline stops
LAZY_GROWTH = 0.001
SIMULATED = "simulated: how many votes a method would have needed"
Answers = Callable[[Ints, Ints, Floats], Block]  # so many fresh votes on each pair of a first and a second item


@dataclass(frozen=True)
class Run:
    """The result of one run."""

    comparisons: int
    correct: bool
    certified: bool
    reason: str | None
    top: tuple[int, ...]
    error_bound: float
    seconds: float


@dataclass(frozen=True)
class Simulation:
    """All runs of one cell, in the order of their seeds."""

    instance: str
    n: int
    k: int
    delta: float
    method: str
    stopping: str
    seed: int
    growth: float
    runs: tuple[Run, ...]

    @property
    def comparisons(self) -> Floats:
        return np.array([run.comparisons for run in self.runs], dtype=np.float64)

    @property
    def mean_comparisons(self) -> float:
        return float(self.comparisons.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean; 0 for a single run."""
        return _standard_error(self.comparisons)

    @property
    def correct(self) -> int:
        return sum(run.correct for run in self.runs)


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class _Cell:
    """What every run of a simulation shares; small, because it travels to other processes."""

    instance: Instance
    method: str | SamplingRule
    stopping: StoppingRule | None  # None for a baseline
    delta: float
    growth: float
    bound: float | None
    tolerance: float
    max_votes: int | None
    inner: OracleTracking  # what oracle-tracking and online-oracle play with
    w_star: Floats | None = None  # over the pairs of the unshuffled world


def simulate(
    instance: Instance,
    method: str | SamplingRule = DEFAULT_METHOD,
    runs: int = 100,
    seed: int = 1,
    *,
    delta: float = 0.01,
    stopping: str | StoppingRule | None = None,
    learner: OracleTracking | None = None,
    growth: float = LAZY_GROWTH,
    jobs: int = 1,
    bound: float | None = None,
    tolerance: float = 0.0,
    max_votes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Play `runs` independent runs; `progress` is called with the number finished so far.

    A baseline stops by itself and takes neither a stopping rule nor a tolerance. `learner` holds the options of
    oracle-tracking and online-oracle. bound=None takes the larger of 10 and twice the largest utility, up to the
    largest bound of the family. With jobs > 1 the calling script needs the usual `if __name__ == "__main__":` guard.
    """
    if isinstance(instance, Recorded):
        raise BadInstance("recorded votes are no known world, so nothing about them can be right or wrong; use replay")
    cell = prepare(
        instance, method, delta=delta, stopping=stopping, learner=learner, growth=growth, bound=bound,
        tolerance=tolerance, max_votes=max_votes,
    )  # fmt: skip
    played = play_runs(cell, runs, seed, jobs, progress)
    return Simulation(instance.name, instance.n, instance.k, delta, *describe(cell), seed, growth, played)


def play_runs(cell: _Cell, runs: int, seed: int, jobs: int, progress: Callable[[int], None] | None) -> tuple[Run, ...]:
    """Play that many runs, in the order of their numbers."""
    for option, value, least in (("runs", runs, 1), ("jobs", jobs, 1), ("seed", seed, 0)):
        whole(option, value, least)
    finished: dict[int, Run] = {}
    for number, run in _play_all(cell, np.random.SeedSequence(seed).spawn(runs), jobs):
        finished[number] = run
        if progress is not None:
            progress(len(finished))
    return tuple(finished[number] for number in range(runs))


def describe(cell: _Cell) -> tuple[str, str]:
    """The names of the method and of its stopping rule."""
    method = cell.method if isinstance(cell.method, str) else cell.method.name
    return method, OWN_RULE if cell.stopping is None else cell.stopping.name


def prepare(
    instance: Instance,
    method: str | SamplingRule = DEFAULT_METHOD,
    *,
    delta: float = 0.01,
    stopping: str | StoppingRule | None = None,
    learner: OracleTracking | None = None,
    growth: float = LAZY_GROWTH,
    bound: float | None = None,
    tolerance: float = 0.0,
    max_votes: int | None = None,
    solve: bool = True,
) -> _Cell:
    """Check the input, and compute what all runs of a simulation share, for `play`. Bad input is refused before any
    process starts. With solve=False each run computes the oracle's allocation itself."""
    _check(method, growth)
    inner = OracleTracking() if learner is None else learner
    cell = _Cell(instance, method, None, delta, growth, bound, tolerance, max_votes, inner)
    world = instance.draw(np.random.default_rng(0))
    if method in KNOWING and world.theta is None:
        raise BadInstance(f"method {method} needs true utilities, and instance {instance.name} has none")
    if solve and method == "oracle" and instance.fixed:
        cell = replace(cell, w_star=_w_star(world, cell))
    return replace(cell, stopping=_stopping_rule(method, stopping, _problem(cell, world)))


def play(cell: _Cell, seed: int, number: int) -> Run:
    """Run `number` of `simulate` with this seed. The result does not depend on the other runs."""
    return _play(cell, run_seed(seed, number))


def shares(cell: _Cell, seed: int, number: int) -> Floats:
    """Which share of that run's comparisons each pair got, over the pairs of the world before it was shuffled."""
    with one_thread():
        stage = set_up(cell, run_seed(seed, number))
        state = _ask_until_done(cell, stage)
    counts: Floats = np.zeros(n_pairs(cell.instance.n))
    counts[state.tally.pairs] = state.tally.counts
    return _relabel(counts / counts.sum(), np.argsort(stage.order))


def draw_world(instance: Instance, seed: int, number: int) -> World:
    """The world of that run, before its items are shuffled."""
    return instance.draw(np.random.default_rng(run_seed(seed, number)))


def run_seed(seed: int, number: int) -> np.random.SeedSequence:
    """Number `number` of the children that `SeedSequence(seed).spawn` gives."""
    return np.random.SeedSequence(seed, spawn_key=(number,))


def _stopping_rule(
    method: str | SamplingRule, stopping: str | StoppingRule | None, problem: Problem
) -> StoppingRule | None:
    """The stopping rule, by name or as an object. The default is that of a study, and a baseline has its own."""
    if _is_baseline(method):
        if stopping is not None:
            raise BadInstance(f"method {method} has its own stopping rule; leave out the stopping rule")
        return None
    if stopping is None:
        stopping = default_stopping(method, problem)
    if not isinstance(stopping, str):
        return stopping
    if stopping not in STOPPING_RULES:
        raise BadInstance(f"unknown stopping rule {stopping!r}; choose one of {', '.join(STOPPING_RULES)}")
    made: StoppingRule = STOPPING_RULES[stopping]()
    return made


def _is_baseline(method: str | SamplingRule) -> bool:
    return isinstance(method, str) and method in BASELINES


def _check(method: str | SamplingRule, growth: float) -> None:
    if isinstance(method, str) and method not in METHODS:
        raise BadInstance(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    if not 0 <= real("growth", growth) <= 1:
        raise BadProblem(f"growth is {growth}; it is a share of the votes from 0 (after every vote) to 1")


def _play_all(cell: _Cell, seeds: list[np.random.SeedSequence], jobs: int) -> Iterator[tuple[int, Run]]:
    if jobs == 1 or len(seeds) == 1:
        for number, seed in enumerate(seeds):
            yield number, _play(cell, seed)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(seeds)), mp_context=context) as pool:
        with _ctrl_c_waits():
            numbers = {pool.submit(_play, cell, seed): number for number, seed in enumerate(seeds)}
        try:
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        except BaseException:
            for worker in list(pool._processes.values()):  # else Ctrl-C waits for runs that are not used
                worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Ctrl-C takes effect at the end. Processes started inside ignore Ctrl-C; the main process ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _play(cell: _Cell, seed: np.random.SeedSequence) -> Run:
    began = time.perf_counter()
    with one_thread():
        stage = set_up(cell, seed)
        end = _baseline_end(cell, stage) if cell.stopping is None else _end(_ask_until_done(cell, stage))
    return Run(
        end.votes,
        is_right(stage.world, stage.problem, end.top),
        end.reason == "certified",
        end.reason,
        tuple(sorted(int(stage.order[i]) for i in end.top)),
        end.error_bound,
        time.perf_counter() - began,
    )


class Stage(NamedTuple):
    """A run before its first question: the world, and the world with shuffled items that the method sees."""

    rng: np.random.Generator
    sorted_world: World
    order: Ints
    world: World
    problem: Problem


def set_up(cell: _Cell, seed: np.random.SeedSequence) -> Stage:
    """A run before its first question. Its world and the order of the items depend on the seed and instance only."""
    rng = np.random.default_rng(seed)
    sorted_world = cell.instance.draw(rng)
    order = rng.permutation(cell.instance.n) if sorted_world.recording is None else np.arange(cell.instance.n)
    world = _shuffled(sorted_world, order)
    return Stage(rng, sorted_world, order, world, _problem(cell, world))


def begin(cell: _Cell, stage: Stage) -> loop.State:
    """The state before the first vote."""
    assert cell.stopping is not None, "a baseline asks by itself"
    rule = _make_rule(cell, stage.sorted_world, stage.world, stage.order)
    return loop.start(stage.problem, rule, cell.stopping, int(stage.rng.integers(2**62)))


def _ask_until_done(cell: _Cell, stage: Stage) -> loop.State:
    state = begin(cell, stage)
    answers = partial(stage.world.votes, stage.rng, stage.problem.family)
    while not state.verdict.done:
        state = advance(state, answers, cell.growth, stage.problem.max_votes)
    return state


class _End(NamedTuple):
    """The end of a run, by a stopping rule or by a baseline."""

    votes: int
    reason: str | None
    top: tuple[int, ...]
    error_bound: float


def _end(state: loop.State) -> _End:
    verdict = state.verdict
    return _End(verdict.votes, verdict.reason, verdict.top, verdict.error_bound)


def _baseline_end(cell: _Cell, stage: Stage) -> _End:
    problem, world = stage.problem, stage.world
    found = run_baseline(str(cell.method), world.expected, problem.k, problem.delta, stage.rng, problem.max_votes)
    reason, bound = ("certified", problem.delta) if found.certified else ("budget", 1.0)
    return _End(found.comparisons, reason, found.top, bound)


def advance(state: loop.State, answers: Answers, growth: float, most: int | None = None) -> loop.State:
    """The state after one more vote, or a block of the share `growth` of the votes; at most `most` votes in all."""
    if growth == 0:
        i, j = pair_items(state.problem.n, loop.ask(state))
        block = answers(np.array([i]), np.array([j]), np.ones(1))
        return loop.tell(state, Vote(i, j, float(block.outcome @ block.counts), loop.bet(state, i, j)))
    votes = round(state.tally.votes)
    size = max(1, int(growth * votes))
    if most is not None:
        size = min(size, most - votes)
    pairs, counts = loop.ask_block(state, size)
    return loop.tell_block(state, answers(*pair_ends(state.problem.n, pairs), counts))


def is_right(world: World, problem: Problem, top: tuple[int, ...]) -> bool:
    """Whether the answer is right: no outsider beats a member by more than the tolerance."""
    rest = np.setdiff1d(np.arange(problem.n), top)
    even = float(problem.family.expect(np.zeros(1))[0])
    if world.recording is not None and not problem.tolerance:
        return top == world.top  # recorded votes may contradict each other by chance
    return bool(np.all(world.expected[np.ix_(rest, np.array(top))] <= even + problem.tolerance + 1e-12))


def _shuffled(world: World, order: Ints) -> World:
    """Item a of the new world is item order[a] of the old one, so that breaking ties by position does not help."""
    top = tuple(map(int, np.flatnonzero(np.isin(order, world.top))))
    theta = None if world.theta is None else world.theta[order]
    return World(world.expected[np.ix_(order, order)], top, theta, world.recording)


def _problem(cell: _Cell, world: World) -> Problem:
    largest = 0.0 if world.theta is None else float(np.abs(world.theta).max())
    bound = min(max(10.0, 2 * largest), cell.instance.family.max_bound) if cell.bound is None else cell.bound
    if bound <= largest:
        raise BadProblem(f"a utility of this instance is {largest:g}, which is not inside the bound {bound:g}")
    size = cell.instance
    allowed = getattr(size, "allowed", None)
    if allowed is not None and getattr(cell.method, "name", cell.method) not in ASKS_ALLOWED:
        raise BadInstance(f"method {cell.method} asks all pairs, but some have no votes here; use --method bridge")
    if _is_baseline(cell.method):
        _check_baseline(cell, world)
    return Problem(size.n, size.k, cell.delta, size.family, bound, cell.tolerance, cell.max_votes, allowed)


def _check_baseline(cell: _Cell, world: World) -> None:
    """Baselines need wins and losses and no tolerance. Recorded wins and losses are allowed."""
    check_baseline(str(cell.method), cell.instance.n, cell.delta)
    if cell.tolerance:
        raise BadInstance(f"method {cell.method} has no tolerance; leave it out, or use --method bridge")
    if cell.instance.family.is_measured:
        raise BadInstance(
            f"method {cell.method} compares by win or lose; use --family bradley-terry, or --method bridge"
        )
    if world.recording is not None and not np.isin(world.recording.outcomes, (0.0, 1.0)).all():
        raise BadInstance(
            f"method {cell.method} takes no ties or grades, and these votes have some; use --method bridge"
        )


def _make_rule(cell: _Cell, sorted_world: World, world: World, order: Ints) -> SamplingRule:
    if not isinstance(cell.method, str):
        return cell.method
    if cell.method == "oracle-tracking":
        return cell.inner
    if cell.method in SAMPLING_RULES:
        return SAMPLING_RULES[cell.method]()
    assert world.theta is not None, "checked by prepare"
    if cell.method == "online-oracle":
        return OnlineOracle(world.theta, cell.inner)
    w_star = _w_star(sorted_world, cell) if cell.w_star is None else cell.w_star
    return Oracle(_relabel(w_star, order))


def _w_star(world: World, cell: _Cell) -> Floats:
    assert world.theta is not None, "checked by prepare"
    from shortlist.core.oracle import solve_oracle  # imports a linear-programming library

    problem = _problem(cell, world)
    return solve_oracle(world.theta, problem.k, problem.family, bound=problem.bound).weights


def _relabel(w: Floats, order: Ints) -> Floats:
    n = len(order)
    square: Floats = np.zeros((n, n))
    first, second = all_pairs(n)
    square[first, second] = square[second, first] = w
    return square[order[first], order[second]]


@dataclass(frozen=True)
class ReplayRun:
    """The result of one run."""

    votes: int
    stopped: bool  # before the vote budget was used up
    agrees: bool  # with the top k by all recorded votes
    top: tuple[int, ...]
    seconds: float


@dataclass(frozen=True)
class Replay:
    """All runs on one file, in the order of their seeds."""

    n: int
    k: int
    delta: float
    method: str
    stopping: str
    seed: int
    growth: float
    runs: tuple[ReplayRun, ...]
    note: str = SIMULATED

    @property
    def votes(self) -> Floats:
        return np.array([run.votes for run in self.runs], dtype=np.float64)

    @property
    def mean_votes(self) -> float:
        return float(self.votes.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean; 0 for a single run."""
        return _standard_error(self.votes)


def replay(
    recorded: Recorded,
    method: str | SamplingRule = DEFAULT_METHOD,
    runs: int = 20,
    seed: int = 1,
    *,
    delta: float = 0.05,
    stopping: str | StoppingRule | None = None,
    growth: float = LAZY_GROWTH,
    jobs: int = 1,
    tolerance: float = 0.0,
    max_votes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Replay:
    """Play `runs` runs in which a question about a pair is answered by one of its recorded votes, drawn with
    replacement. Options as in `simulate`."""
    options = {"delta": delta, "stopping": stopping, "growth": growth, "tolerance": tolerance, "max_votes": max_votes}
    cell = prepare(recorded, method, **options)  # type: ignore[arg-type]  # one type for all of them
    played = play_runs(cell, runs, seed, jobs, progress)
    ended = tuple(ReplayRun(run.comparisons, run.certified, run.correct, run.top, run.seconds) for run in played)
    return Replay(recorded.n, recorded.k, delta, *describe(cell), seed, growth, ended)
