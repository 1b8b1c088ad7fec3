"""Shared by all tests: the reference cases, computed by an interior-point cone solver independently of this package."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from shortlist.core.families import make_family
from shortlist.core.linalg import one_thread
from shortlist.core.tally import Tally, tally_votes

# A busy machine is slow, and no test may fail for it.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

DATA = Path(__file__).parent / "data"
REFERENCE: list[dict[str, Any]] = json.loads((DATA / "reference.json").read_text())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a browser or a PostgreSQL, so that a quick run can leave it out."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if "browser" in fixtures:
            item.add_marker("browser")
        if "postgres" in fixtures or any(isinstance(value, str) and value == "postgres" for value in parameters):
            item.add_marker("postgres")


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    """As every public call does; tests that call the core directly must not fight over the cores either."""
    with one_thread():
        yield


@pytest.fixture(params=REFERENCE, ids=lambda case: f"{case['family']}-{case['seed']}")
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def case_tally(case: dict[str, Any]) -> Tally:
    """The case's votes; rows weigh as many votes as they stand for."""
    family = make_family(case["family"])
    counts, sums = np.array(case["counts"]), np.array(case["sums"])
    seen = counts > 0
    first, second = np.array(case["pairs"]).T
    return tally_votes(
        family, first[seen], second[seen], (sums / np.where(seen, counts, 1))[seen], counts[seen], case["n"]
    )


def random_votes(rng: np.random.Generator, n: int, votes: int, spread: float) -> tuple[Any, Any, Any]:
    """Win/lose votes on random pairs under random utilities."""
    theta = spread * rng.normal(size=n)
    first = rng.integers(0, n, votes)
    second = (first + rng.integers(1, n, votes)) % n
    wins = rng.random(votes) < 1 / (1 + np.exp(theta[second] - theta[first]))
    return first, second, wins.astype(float)
