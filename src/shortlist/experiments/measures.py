"""What one run of a cell yields. A run depends on its cell's definition and its number alone, wherever it is played.

comparisons: until the answer is certified, as `shortlist simulate` counts them; `lower-bound` is no method but the
fewest that any method can need in that run's world. shares: of the comparisons that each pair got; `w-star` is the
allocation that is best for the true utilities. milliseconds: to choose one question and learn from its answer.
"""

import json
import time
from functools import lru_cache
from typing import Any

import numpy as np

from shortlist import loop
from shortlist.certificates import CERTIFICATES
from shortlist.errors import BadExperiment, BadInstance
from shortlist.experiments.origin import origin
from shortlist.experiments.sweep import LOWER_BOUND, W_STAR, Cell
from shortlist.instances import Instance, World
from shortlist.io.instances import make_instance
from shortlist.oracle import Oracle, solve_oracle
from shortlist.pairs import n_pairs, pair_items
from shortlist.problem import Problem
from shortlist.rules import RULES, default_rule
from shortlist.rules.oracle_tracking import OracleTracking
from shortlist.simulation import LAZY_GROWTH, METHODS, draw_world, play, prepare, shares
from shortlist.tally import Vote
from shortlist.threads import one_thread

Definition = dict[str, Any]
ASKERS = (*RULES, "oracle", "online-oracle")  # not those that ask in their own way and tell only the answer
PLAYED_BY = {"comparisons": (*METHODS, LOWER_BOUND), "shares": (*ASKERS, W_STAR), "milliseconds": tuple(RULES)}
VOTES_AN_ITEM, ROUNDS = 20, 100  # when decisions are timed, and how many


def check_cell(cell: Cell) -> None:
    """Raise BadInput unless this version can play the cell; cheap."""
    if cell.measure not in PLAYED_BY:
        raise BadExperiment(f"unknown measure {cell.measure!r}; choose one of {', '.join(PLAYED_BY)}")
    known = PLAYED_BY[cell.measure]
    if cell["method"] not in known:
        raise BadExperiment(
            f"cell {cell.id}: unknown method {cell['method']!r}; this version plays {', '.join(known)}, "
            "and --cell can leave the others out"
        )
    instance = _instance(cell.definition)
    if instance.n != cell["n"]:
        raise BadInstance(f"cell {cell.id}: {cell['instance']} has {instance.n} items, and n is {cell['n']}")
    if cell["method"] in (LOWER_BOUND, W_STAR) and draw_world(instance, 0, 0).theta is None:
        raise BadInstance(f"cell {cell.id}: {cell['method']} needs true utilities, and {instance.name} has none")
    Problem(instance.n, instance.k, cell["delta"])
    if cell["method"] in METHODS:
        _prepare(cell.definition, solve=False)


def measure_run(definition: Definition, number: int) -> dict[str, Any]:
    """Play run `number`: its result, its time, and the code that played it."""
    began = time.perf_counter()
    with one_thread():
        result = _MEASURES[definition["measure"]](definition, number)
    return {**origin()._asdict(), "result": result, "seconds": round(time.perf_counter() - began, 3)}


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
    """Of a study that has votes on pairs at random already, and a few rounds more to find its feet."""
    instance, name, seed = _instance(definition), definition["method"], definition["seed"]
    world, rng = draw_world(instance, seed, number), np.random.default_rng((seed, number))
    problem = Problem(instance.n, instance.k, definition["delta"])
    state = loop.start(problem, RULES[name](), CERTIFICATES[default_rule(name)](), seed)
    pairs = rng.integers(0, n_pairs(instance.n), VOTES_AN_ITEM * instance.n)
    state = loop.look_ahead(state, [_vote(state, world, int(pair), rng)[0] for pair in pairs])
    spent = np.zeros(2 * ROUNDS)
    for place in range(len(spent)):
        began = time.perf_counter()
        vote, answering = _vote(state, world, loop.ask(state), rng)
        state = loop.tell(state, vote)
        spent[place] = time.perf_counter() - began - answering
    if state.verdict.done:
        raise BadInstance(f"{name} was done before its decisions could be timed; choose a smaller delta")
    return {"milliseconds": 1000 * float(spent[ROUNDS:].mean())}


def _vote(state: loop.State, world: World, pair: int, rng: np.random.Generator) -> tuple[Vote, float]:
    """A vote on the pair with what is bet on it, and the seconds that the judge took."""
    i, j = pair_items(state.problem.n, pair)
    bet = loop.bet(state, i, j)
    began = time.perf_counter()
    block = world.votes(rng, state.problem.family, np.array([i]), np.array([j]), np.ones(1))
    vote = Vote(i, j, float(block.outcome @ block.counts), bet)
    return vote, time.perf_counter() - began


_MEASURES = {"comparisons": _comparisons, "shares": _shares, "milliseconds": _milliseconds}


def _instance(definition: Definition) -> Instance:
    return make_instance(definition["instance"], definition["k"], definition["n"], definition.get("gap", 0.1))


def _solved(definition: Definition, number: int) -> Oracle:
    theta = draw_world(_instance(definition), definition["seed"], number).theta
    assert theta is not None
    return solve_oracle(theta, definition["k"])


@lru_cache(maxsize=8)
def _prepared(definition: str) -> Any:
    """A process plays many runs of a cell; the oracle's allocation, for one, is computed only once."""
    return _prepare(json.loads(definition), solve=True)


def _prepare(cell: Definition, solve: bool) -> Any:
    return prepare(
        _instance(cell), cell["method"], delta=cell["delta"], rule=cell.get("rule"),
        learner=OracleTracking(alpha=cell["alpha"]) if "alpha" in cell else None,
        growth=cell.get("growth", LAZY_GROWTH), solve=solve,
    )  # fmt: skip
