"""Studies as this worker has read them. Nothing here is the truth: every write reads what other workers added first."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache

from shortlist.errors import NotJudgedHere, UnknownStudy
from shortlist.judges.judge import Case
from shortlist.study.create import load_study
from shortlist.study.questions import Question
from shortlist.study.sql import Database
from shortlist.study.study import Study
from shortlist.web.people import study_id
from shortlist.web.sheet import Card, Sheet, load_sheet
from shortlist.web.watch import Watch

KEPT = 200  # studies in memory; the others are loaded from their snapshots when asked for


@dataclass
class Opened:
    """A study with what its judges are shown."""

    id: int
    study: Study
    sheet: Sheet
    watch: Watch = field(default_factory=Watch)
    last_mark: int = 0  # votes when the error bound was last written down

    def __post_init__(self) -> None:
        self.card = lru_cache(2000)(self._card)
        self._cases = {case.id: case for case in self.sheet.cases}
        self.case_ids = tuple(self._cases)

    def case(self, question: Question) -> Case | None:
        return None if question.case is None else self._cases[question.case]

    def _card(self, item: str, case: Case | None) -> Card:
        return self.sheet.card(item, case)


class Shelf:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._lock = threading.Lock()
        self._studies: OrderedDict[str, Opened] = OrderedDict()
        self._loading: dict[str, threading.Lock] = {}

    def open(self, name: str) -> Opened:
        """The study of that name; raises UnknownStudy, or NotJudgedHere."""
        with self._lock:
            if name in self._studies:
                self._studies.move_to_end(name)
                return self._studies[name]
            loading = self._loading.setdefault(name, threading.Lock())
        with loading:  # one thread loads it, the others wait
            if name not in self._studies:
                self._put(name, self._load(name))
            return self._studies[name]

    def _load(self, name: str) -> Opened:
        number = study_id(self.database, name)
        if number is None:
            raise UnknownStudy(name)
        study = load_study(name, self.database)
        if study.problem.family.win is None:
            raise NotJudgedHere(name)
        return Opened(number, study, load_sheet(self.database, number))

    def _put(self, name: str, opened: Opened) -> None:
        with self._lock:
            self._studies[name] = opened
            self._loading.pop(name, None)
            while len(self._studies) > KEPT:
                self._studies.popitem(last=False)
