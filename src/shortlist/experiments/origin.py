"""Which code played a run: the version, and the commit where the package is used from its repository."""

import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from shortlist import __version__

PACKAGE = Path(__file__).parents[1]


class Origin(NamedTuple):
    version: str
    commit: str  # empty for an installed package; ends in -dirty if the code was changed since

    def __str__(self) -> str:
        return f"shortlist {self.version}" + (f" ({self.commit})" if self.commit else "")


@cache
def origin() -> Origin:
    if not (PACKAGE.parents[1] / ".git").exists():  # some other project's repository says nothing about us
        return Origin(__version__, "")
    commit = _git("rev-parse", "--short=10", "HEAD")
    changed = commit and _git("status", "--porcelain", "--", str(PACKAGE))
    return Origin(__version__, f"{commit}-dirty" if changed else commit)


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=PACKAGE, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
