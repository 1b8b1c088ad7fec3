"""What one run of a cell measures. A run depends only on its cell's definition and its number.

- comparisons: votes until the answer is certified, as `shortlist simulate` counts them. `lower-bound` is not a method
  but the fewest comparisons that any method can need in that run's world.
- shares: the fraction of comparisons that each pair gets. `w-star` is the best allocation for the true utilities.
- milliseconds: the time to choose one question and learn from its answer.
- exact: whether the answer is exactly the top k after 100, 200, 500, 1,000 and 2,000 votes, up to `max_votes`.
- proofs: votes until the answer is proved, at most `max_votes`. These two compare sampling rules (`races`).
"""

import json
import time
from functools import lru_cache
from typing import Any

import numpy as np

from experiments.errors import BadExperiment
from experiments.provenance import provenance
from experiments.races import RULES, Race, exact_sets, proof
from experiments.sweep import LOWER_BOUND, RACES, W_STAR, Cell
from shortlist import make_instance
from shortlist.core import loop, revisions
from shortlist.core.linalg import one_thread
from shortlist.core.oracle import Oracle, solve_oracle
from shortlist.core.pairs import n_pairs, pair_items
from shortlist.core.problem import Problem
from shortlist.core.sampling import SAMPLING_RULES, default_stopping
from shortlist.core.sampling.tracking import OracleTracking
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.tally import Vote
from shortlist.errors import BadInstance
from shortlist.simulation.run import LAZY_GROWTH, METHODS, draw_world, play, prepare, shares
from shortlist.simulation.worlds import Instance, World

Definition = dict[str, Any]
SAMPLED = (*SAMPLING_RULES, "oracle", "online-oracle")  # not the baselines, which do not report their pairs
PLAYED_BY = {
    "comparisons": (*METHODS, LOWER_BOUND),
    "shares": (*SAMPLED, W_STAR),
    "milliseconds": tuple(SAMPLING_RULES),
    **dict.fromkeys(RACES, RULES),
}
VOTES_AN_ITEM, ROUNDS = 20, 100  # votes before decisions are timed, and how many decisions


def check_cell(cell: Cell) -> None:
    """Raise BadInput unless this version can run the cell. Cheap."""
    if cell.measure not in PLAYED_BY:
        raise BadExperiment(f"unknown measure {cell.measure!r}; choose one of {', '.join(PLAYED_BY)}")
    known = PLAYED_BY[cell.measure]
    if cell["method"] not in known:
        raise BadExperiment(
            f"cell {cell.id}: unknown method {cell['method']!r}; this version has {', '.join(known)}, "
            "and --cell can leave the others out"
        )
    instance = _instance(cell.definition)
    if instance.n != cell["n"]:
        raise BadInstance(f"cell {cell.id}: {cell['instance']} has {instance.n} items, and n is {cell['n']}")
    if cell["method"] in (LOWER_BOUND, W_STAR) and draw_world(instance, 0, 0).theta is None:
        raise BadInstance(f"cell {cell.id}: {cell['method']} needs true utilities, which {instance.name} does not have")
    Problem(instance.n, instance.k, cell["delta"])
    if cell.measure in RACES:
        _race(cell.definition).prepare()
    elif cell["method"] in METHODS:
        _prepare(cell.definition, solve=False)


def measure_run(definition: Definition, number: int) -> dict[str, Any]:
    """Compute run `number`: its result, its time and the code that computed it."""
    began = time.perf_counter()
    with one_thread():
        result = _MEASURES[definition["measure"]](definition, number)
    return {**provenance()._asdict(), "result": result, "seconds": round(time.perf_counter() - began, 3)}


def _comparisons(definition: Definition, number: int) -> dict[str, Any]:
    if definition["method"] == LOWER_BOUND:
        return {"comparisons": _solved(definition, number).lower_bound(definition["delta"]), "correct": None}
    run = play(_prepared(json.dumps(definition)), definition["seed"], number)
    return {"comparisons": run.comparisons, "correct": run.correct}


def _shares(definition: Definition, number: int) -> dict[str, Any]:
    if definition["method"] == W_STAR:
        return {"shares": _solved(definition, number).weights.tolist()}
    return {"shares": shares(_prepared(json.dumps(definition)), definition["seed"], number).tolist()}


def _milliseconds(definition: Definition, number: int) -> dict[str, Any]:
    """The mean over some rounds of a study that already has votes on random pairs and some warm-up rounds."""
    instance, name, seed = _instance(definition), definition["method"], definition["seed"]
    world, rng = draw_world(instance, seed, number), np.random.default_rng((seed, number))
    problem = Problem(instance.n, instance.k, definition["delta"])
    state = loop.start(problem, SAMPLING_RULES[name](), STOPPING_RULES[default_stopping(name, problem)](), seed)
    pairs = rng.integers(0, n_pairs(instance.n), VOTES_AN_ITEM * instance.n)
    state = revisions.look_ahead(state, [_vote(state, world, int(pair), rng)[0] for pair in pairs])
    spent = np.zeros(2 * ROUNDS)
    for place in range(len(spent)):
        began = time.perf_counter()
        vote, answering = _vote(state, world, loop.ask(state), rng)
        state = loop.tell(state, vote)
        spent[place] = time.perf_counter() - began - answering
    if state.verdict.done:
        raise BadInstance(f"{name} finished before its decisions could be timed; choose a smaller delta")
    return {"milliseconds": 1000 * float(spent[ROUNDS:].mean())}


def _vote(state: loop.State, world: World, pair: int, rng: np.random.Generator) -> tuple[Vote, float]:
    """A vote on the pair with its bet, and the seconds that the judge took."""
    i, j = pair_items(state.problem.n, pair)
    bet = loop.bet(state, i, j)
    began = time.perf_counter()
    block = world.votes(rng, state.problem.family, np.array([i]), np.array([j]), np.ones(1))
    vote = Vote(i, j, float(block.outcome @ block.counts), bet)
    return vote, time.perf_counter() - began


def _exact(definition: Definition, number: int) -> dict[str, Any]:
    return {"exact": exact_sets(_race(definition), definition["seed"], number)}


def _proofs(definition: Definition, number: int) -> dict[str, Any]:
    found = proof(_race(definition), definition["seed"], number)
    return {"proofs": found.votes, "proved": found.proved, "correct": found.correct}


def _race(definition: Definition) -> Race:
    names = ("method", "delta", "growth", "max_votes", "stopping")
    return Race(_instance(definition), **{name: definition[name] for name in names if name in definition})


_MEASURES = {
    "comparisons": _comparisons, "shares": _shares, "milliseconds": _milliseconds, "exact": _exact, "proofs": _proofs,
}  # fmt: skip


def _instance(definition: Definition) -> Instance:
    return make_instance(definition["instance"], definition["k"], definition["n"], definition.get("gap", 0.1))


def _solved(definition: Definition, number: int) -> Oracle:
    theta = draw_world(_instance(definition), definition["seed"], number).theta
    assert theta is not None
    return solve_oracle(theta, definition["k"])


@lru_cache(maxsize=8)
def _prepared(definition: str) -> Any:
    """Cached, because a process computes many runs of a cell and the oracle's allocation is expensive."""
    return _prepare(json.loads(definition), solve=True)


def _prepare(cell: Definition, solve: bool) -> Any:
    return prepare(
        _instance(cell), cell["method"], delta=cell["delta"], stopping=cell.get("stopping"),
        learner=OracleTracking(alpha=cell["alpha"]) if "alpha" in cell else None,
        growth=cell.get("growth", LAZY_GROWTH), solve=solve,
    )  # fmt: skip
