"""What the requests of one worker share: settings, database, open studies, rate limits and metrics.

The database holds the truth, and every write to a study first reads what other workers added. Everything else here can
be lost and built again.
"""

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from sqlalchemy import select
from starlette.types import Scope

from shortlist.analysis.judges import JudgeAgreement
from shortlist.errors import NotJudgedHere, UnknownStudy
from shortlist.judges.setup import set_up_materials
from shortlist.study.create import load_study
from shortlist.study.questions import BALLOT_LEASE, SETTLES_AFTER
from shortlist.study.schema import studies
from shortlist.study.sql import Database
from shortlist.study.study import Study
from shortlist.web.display import Display, load_display

VARIABLE = "SHORTLIST_SERVE"
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
BURST = 3.0  # seconds of requests that may come at once
MOST_STUDIES = 200  # in memory; others are loaded from their snapshots when they are needed
MOST_CARDS = 2000
AT_WORK = 600.0  # seconds after which a judge who does nothing is not counted on
MOST_CLIENTS = 20_000  # remembered by a rate limit


@dataclass(frozen=True)
class Settings:
    """What `shortlist serve` was started with."""

    storage: str = "sqlite:///shortlist.db"
    address: str | None = None  # under which people reach the service, for links
    lease: float = 600.0  # seconds a judge may take to answer a question
    undo: float = SETTLES_AFTER  # seconds in which a judge may take an answer back at no cost
    upload_bytes: int = 20_000_000  # size limit of one picture, sound or film
    body_bytes: int = 5_000_000  # size limit of any other request
    token_rate: float = 20.0  # requests a second from one token, in each worker
    address_rate: float = 300.0  # requests a second from one address: a whole office may share it
    failure_rate: float = 1.0  # wrong tokens a second from one address

    def tell_workers(self) -> None:
        """Put the settings into the environment, where new worker processes read them."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> "Settings":
        """The settings that this worker was started with."""
        return cls(**json.loads(os.environ.get(VARIABLE, "{}")))


class RateLimit:
    """A token bucket for each client: it refills by `rate` a second and holds BURST seconds of requests, at least 10.

    Each worker counts for itself, so w workers allow up to w times the rate.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.full, self.clock = rate, max(BURST * rate, 10.0), clock
        self._lock = threading.Lock()
        self._levels: dict[str, tuple[float, float]] = {}

    def allow(self, client: str) -> bool:
        """Count one request of this client; False if the client must wait."""
        with self._lock:
            now = self.clock()
            level, then = self._levels.get(client, (self.full, now))
            level = min(self.full, level + (now - then) * self.rate) - 1.0
            if level < 0:
                return False
            if len(self._levels) >= MOST_CLIENTS:
                self._levels.clear()  # a flood of addresses must not fill the memory
            self._levels[client] = level, now
            return True


class Metrics:
    """Counts and times for Prometheus.

    With several workers `shortlist serve` sets PROMETHEUS_MULTIPROC_DIR before they start: each worker then writes its
    numbers to files in that folder, and a scrape of any worker adds up all of them.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("shortlist_requests", "Requests answered.", labels, registry=self.registry)
        self.votes = Counter("shortlist_votes", "Answers of judges.", ("status",), registry=self.registry)
        self.seconds = Histogram(
            "shortlist_request_seconds", "Time to answer a request.", ("route",), buckets=BUCKETS,
            registry=self.registry,
        )  # fmt: skip

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.requests.labels(method if method in METHODS else "other", route, status).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All numbers in the text format of Prometheus."""
        if METRICS_FOLDER not in os.environ:
            return generate_latest(self.registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)


class Agreements(NamedTuple):
    """How judges agreed when this many votes counted and this many had been undone or voided."""

    counted: int
    withdrawn: int
    judges: dict[str, JudgeAgreement]
    shares: dict[str | None, float]  # of the evidence


@dataclass
class OpenStudy:
    """A study with what its judges see."""

    id: int
    study: Study
    display: Display
    agreements: Agreements | None = None
    is_checked: bool = False  # that judges see here what earlier votes were given on
    seen: dict[str, float] = field(default_factory=dict)  # judges at work, and when each was here last

    def __post_init__(self) -> None:
        self.card = lru_cache(MOST_CARDS)(self.display.card)
        self.corrections = len(self.study.corrections)
        self.cases = {case.id: case for case in self.display.cases}
        self.case_ids = tuple(self.cases)

    def check_materials(self) -> None:
        """Record what judges see here. Raises SetupChanged if earlier votes were given on something else."""
        if not self.is_checked:
            set_up_materials(self.study, self.display.texts(self.study.items), self.display.cases or None)
            self.is_checked = True

    def at_work(self, judge: str, within: float = AT_WORK) -> set[str]:
        """The judges who were here lately, this one among them."""
        now = time.monotonic()
        self.seen[judge] = now
        return {name for name, then in self.seen.copy().items() if now - then <= within}

    def lease(self, usual: float) -> float:
        """Seconds that a judge has for a question. A ballot is lost with its lease, so that one is long."""
        return max(usual, BALLOT_LEASE) if self.study.judges_claim == "public" else usual


class OpenStudies:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._lock = threading.Lock()
        self._studies: OrderedDict[str, OpenStudy] = OrderedDict()
        self._loading: dict[str, threading.Lock] = {}

    def open(self, name: str) -> OpenStudy:
        """The study of that name. Raises UnknownStudy, or NotJudgedHere."""
        number = study_id(self.database, name)  # another worker may have deleted it, or let it begin again
        with self._lock:
            if self._is_current(name, number):
                self._studies.move_to_end(name)
                return self._studies[name]
            loading = self._loading.setdefault(name, threading.Lock())
        with loading:  # one thread loads the study, the others wait
            if not self._is_current(name, number):
                self._put(name, self._load(name, number))
            return self._studies[name]

    def clear(self) -> None:
        """Forget all studies: the database has others now."""
        with self._lock:
            self._studies.clear()

    def _is_current(self, name: str, number: int) -> bool:
        """Whether the study in memory is that of this number, and shows what was corrected last."""
        opened = self._studies.get(name)
        return opened is not None and opened.id == number and opened.corrections == len(opened.study.corrections)

    def _load(self, name: str, number: int) -> OpenStudy:
        self.database.forget(name)
        study = load_study(name, self.database)
        if study.problem.family.is_measured:
            raise NotJudgedHere(name)
        return OpenStudy(number, study, load_display(self.database, number))

    def _put(self, name: str, opened: OpenStudy) -> None:
        with self._lock:
            self._studies[name] = opened
            self._loading.pop(name, None)
            while len(self._studies) > MOST_STUDIES:
                self._studies.popitem(last=False)


def study_id(database: Database, name: str) -> int:
    """The study's number in the database. Raises UnknownStudy."""
    with database.reading() as connection:
        found: int | None = connection.scalar(select(studies.c.id).where(studies.c.name == name))
    if found is None:
        raise UnknownStudy(name)
    return found


def newest_studies(database: Database, most: int, before: str | None = None) -> list[str]:
    """Names of the newest studies, or of the newest that are older than `before`, newest first."""
    newest = select(studies.c.name).order_by(studies.c.id.desc()).limit(most)
    if before is not None:
        newest = newest.where(studies.c.id < study_id(database, before))
    with database.reading() as connection:
        return list(connection.scalars(newest))


class Service:
    """One for each worker process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stopping = False  # set by the first signal to stop, so that streams end
        self.database = Database(settings.storage, flush_later=True)
        self.studies = OpenStudies(self.database)
        self.metrics = Metrics()
        self.tokens = RateLimit(settings.token_rate)
        self.addresses = RateLimit(settings.address_rate)
        self.failures = RateLimit(settings.failure_rate)


def client_address(scope: Scope) -> str:
    """The network address that a request comes from."""
    return str(scope["client"][0]) if scope.get("client") else "unknown"
