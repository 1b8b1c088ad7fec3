"""What the requests of one worker share. All of it can be lost: the truth is in the database."""

from dataclasses import dataclass, field

from shortlist.study.sql import Database
from shortlist.web.limits import Rate
from shortlist.web.metrics import Metrics
from shortlist.web.settings import Settings
from shortlist.web.shelf import Shelf


@dataclass
class Service:
    settings: Settings
    database: Database
    metrics: Metrics
    shelf: Shelf = field(init=False)
    tokens: Rate = field(init=False)
    failures: Rate = field(init=False)

    def __post_init__(self) -> None:
        self.shelf = Shelf(self.database)
        self.tokens = Rate(self.settings.token_rate)
        self.failures = Rate(self.settings.failure_rate)
