"""What `shortlist serve` was started with, and how a worker process is told."""

import json
import os
from dataclasses import asdict, dataclass

VARIABLE = "SHORTLIST_SERVE"


@dataclass(frozen=True)
class Settings:
    storage: str = "sqlite:///shortlist.db"
    lease: float = 600.0  # seconds a judge may take over a question
    upload_bytes: int = 5_000_000  # one image
    body_bytes: int = 2_000_000  # any other request
    token_rate: float = 20.0  # requests a second of one token, in each worker
    address_rate: float = 300.0  # of one address: a whole office may sit behind it
    failure_rate: float = 1.0  # wrong tokens a second of one address

    def tell_workers(self) -> None:
        """Workers are new processes: they read this."""
        os.environ[VARIABLE] = json.dumps(asdict(self))


def told() -> Settings:
    """The settings that this worker was started with."""
    return Settings(**json.loads(os.environ.get(VARIABLE, "{}")))
