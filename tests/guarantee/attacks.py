"""Attacks: ways to get votes into a study or a file that are not what the theorem assumes, played on pure noise.

Each attack is played with its safeguard and without it, through the public interface and the commands. The safeguard is
switched off by means of the test only: a patch, labels that say nothing, or the same votes told another way. A run is
fooled if it makes a claim that is false. `python -m tests.guarantee.attacks` prints the table of docs/attacks.md.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from unittest.mock import patch

from shortlist import create_study

DELTA = 0.05
IN_STUDIES = ("attacks_imports", "attacks_records", "attacks_settling")
MODULES = ("attacks_files", "attacks_imports", "attacks_records", "attacks_settling", "attacks_people")


@dataclass(frozen=True)
class Attack:
    """`fooled(safeguard, seed)` plays one study or file. `runs` are with the safeguard and without it in `make test`,
    and `many` in `make slow`. `breaks` is False where only the bound is larger without the safeguard, and no excess is
    measured."""

    name: str
    safeguard: str
    assumes: str  # what is left to assume with the safeguard
    fooled: Callable[[bool, int], bool]
    runs: tuple[int, int] = (100, 20)
    many: tuple[int, int] = (1000, 400)
    breaks: bool = True

    def share(self, safeguard: bool, runs: int, tick: Callable[[], None] = lambda: None) -> float:
        """The share of runs that are fooled, with the seeds 0, 1, ..."""
        found = 0
        for seed in range(runs):
            found += self.fooled(safeguard, seed)
            tick()
        return found / runs


def all_attacks() -> list[Attack]:
    return [attack for module in MODULES for attack in attacks_of(module)]


def attacks_of(module: str) -> list[Attack]:
    found: list[Attack] = import_module(f"tests.guarantee.{module}").ATTACKS
    return found


@contextmanager
def stopping(name: str) -> Iterator[None]:
    """The studies of attacks have this stopping rule. Commands and files keep theirs, and so do attacks on ballots and
    on the number of judges, which are for `edges`."""
    with ExitStack() as patches:
        for module in (*IN_STUDIES, "attacks_people") if name == "edges" else IN_STUDIES:
            studies = partial(create_study, stopping=name)
            patches.enter_context(patch(f"tests.guarantee.{module}.create_study", studies))
        yield


def row(attack: Attack, runs: tuple[int, int]) -> str:
    """A row of the table. Progress goes to standard error."""
    shares = []
    for safeguard, size in zip((False, True), runs[::-1], strict=True):
        done = 0

        def tick(size: int = size, safeguard: bool = safeguard) -> None:
            nonlocal done
            done += 1
            word = "on" if safeguard else "off"
            print(f"\r{attack.name}, safeguard {word}: {done}/{size}\033[K", end="", file=sys.stderr, flush=True)

        shares.append(attack.share(safeguard, size, tick))
    print("\r\033[K", end="", file=sys.stderr)
    off, on = shares
    return f"| {attack.name} | {attack.safeguard} | {attack.assumes} | {off:.2f} of {runs[1]} | {on:.3f} of {runs[0]} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Play all attacks and print the table of docs/attacks.md.")
    parser.add_argument("--many", action="store_true", help="as many runs as make slow")
    parser.add_argument("--runs", type=int, help="so many runs with the safeguard, and as many without it")
    parser.add_argument("--only", default="", help="attacks whose name contains this")
    parser.add_argument("--stopping", default="edges", help="the stopping rule of studies (not of files and commands)")
    options = parser.parse_args()
    with stopping(options.stopping):
        table(options)


def table(options: argparse.Namespace) -> None:
    print("| attack | safeguard | what is left to assume | false claims without it | with it |\n|---|---|---|---|---|")
    for attack in all_attacks():
        if options.only in attack.name:
            runs = attack.many if options.many else attack.runs
            print(row(attack, (options.runs,) * 2 if options.runs else runs), flush=True)


if __name__ == "__main__":
    main()
