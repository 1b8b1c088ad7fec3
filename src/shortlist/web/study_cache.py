"""The studies that this worker has in memory. The database holds the truth: every write first reads what other workers
added."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import select

from shortlist.analysis.agreement import JudgeAgreement
from shortlist.errors import NotJudgedHere, UnknownStudy
from shortlist.study.create import load_study
from shortlist.study.schema import studies
from shortlist.study.sql import Database
from shortlist.study.study import Study
from shortlist.web.display import Display, load_display

MOST_STUDIES = 200  # in memory; others are loaded from their snapshots when they are needed
MOST_CARDS = 2000


class Agreements(NamedTuple):
    """How judges agreed when this many votes counted and this many had been undone or voided."""

    counted: int
    withdrawn: int
    judges: dict[str, JudgeAgreement]


@dataclass
class OpenStudy:
    """A study with what its judges see."""

    id: int
    study: Study
    display: Display
    agreements: Agreements | None = None

    def __post_init__(self) -> None:
        self.card = lru_cache(MOST_CARDS)(self.display.card)
        self.cases = {case.id: case for case in self.display.cases}
        self.case_ids = tuple(self.cases)


class StudyCache:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._lock = threading.Lock()
        self._studies: OrderedDict[str, OpenStudy] = OrderedDict()
        self._loading: dict[str, threading.Lock] = {}

    def open(self, name: str) -> OpenStudy:
        """The study of that name. Raises UnknownStudy, or NotJudgedHere."""
        with self._lock:
            if name in self._studies:
                self._studies.move_to_end(name)
                return self._studies[name]
            loading = self._loading.setdefault(name, threading.Lock())
        with loading:  # one thread loads the study, the others wait
            if name not in self._studies:
                self._put(name, self._load(name))
            return self._studies[name]

    def _load(self, name: str) -> OpenStudy:
        number = study_id(self.database, name)
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


def newest_studies(database: Database, most: int) -> list[str]:
    """Names of the newest studies, newest first."""
    with database.reading() as connection:
        return list(connection.scalars(select(studies.c.name).order_by(studies.c.id.desc()).limit(most)))
