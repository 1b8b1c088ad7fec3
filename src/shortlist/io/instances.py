"""Simulated worlds by the name they have on the command line, and from files of numbers."""

import csv
from pathlib import Path

from shortlist.errors import BadInstance
from shortlist.families import BradleyTerry, Family
from shortlist.instances import Instance, Matrix, RandomUtilities, Sst, Utilities, check_size, constant, equally_spaced

INSTANCES = ("equally-spaced", "random-utilities", "sst", "constant", "utilities:FILE", "matrix:FILE")
BRADLEY_TERRY_ONLY = ("sst", "constant", "matrix")


def make_instance(
    name: str, k: int, n: int | None = None, gap: float = 0.1, p: float = 0.6, family: Family | None = None
) -> Instance:
    """An instance by its name on the command line; `utilities:FILE` and `matrix:FILE` read numbers from a file."""
    speaks = BradleyTerry() if family is None else family
    kind, _, file = name.partition(":")
    if kind in BRADLEY_TERRY_ONLY and speaks.win is None:
        raise BadInstance(f"instance {name!r} is made of win probabilities; it needs the bradley-terry family")
    if kind == "utilities" and file:
        return Utilities(tuple(value for row in _numbers(file) for value in row), k, speaks)
    if kind == "matrix" and file:
        return Matrix(tuple(map(tuple, _numbers(file))), k)
    if n is None:
        raise BadInstance(f"instance {name!r} needs n, the number of items")
    check_size(n, k)
    if name == "equally-spaced":
        return equally_spaced(n, k, gap, speaks)
    if name == "random-utilities":
        return RandomUtilities(n, k, family=speaks)
    if name == "sst":
        return Sst(n, k)
    if name == "constant":
        return constant(n, k, p)
    raise BadInstance(f"unknown instance {name!r}; choose one of {', '.join(INSTANCES)}")


def _numbers(file: str) -> list[list[float]]:
    """Rows of numbers, separated by commas or blanks; lines that start with # are comments."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadInstance(f"cannot read {file}: {getattr(reason, 'strerror', None) or reason}") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    try:
        rows = [[float(cell) for cell in " ".join(row).split()] for row in csv.reader(lines)]
    except ValueError as reason:
        raise BadInstance(f"{file} holds something that is not a number: {reason}") from None
    if not rows:
        raise BadInstance(f"{file} holds no numbers")
    return rows
