"""Which code produced a run: the version of shortlist and, inside its repository, the commit."""

import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import shortlist

PACKAGE = Path(shortlist.__file__).parent
REPOSITORY = PACKAGE.parents[1]
CODE = (str(PACKAGE), str(Path(__file__).parent), ":(exclude)experiments/results")  # what decides a run's outcome


class Provenance(NamedTuple):
    version: str
    commit: str  # empty outside the repository; ends in -dirty if the code has uncommitted changes

    def __str__(self) -> str:
        return f"shortlist {self.version}" + (f" ({self.commit})" if self.commit else "")


@cache
def provenance() -> Provenance:
    """The code that runs in this process."""
    if not (REPOSITORY / ".git").exists():  # another project's repository says nothing about this code
        return Provenance(shortlist.__version__, "")
    commit = _git("rev-parse", "--short=10", "HEAD")
    changed = commit and _git("status", "--porcelain", "--", *CODE)
    return Provenance(shortlist.__version__, f"{commit}-dirty" if changed else commit)


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
