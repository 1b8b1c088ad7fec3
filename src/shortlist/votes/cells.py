"""Read the cells of a vote file: names, labels, numbers, and who won. A cell that cannot be read has a short reason."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from shortlist.core.families import Family
from shortlist.core.outcomes import outcome_of_share, share_of
from shortlist.core.pairs import Floats
from shortlist.core.problem import shown
from shortlist.errors import BadOutcome, BadVotes, UnknownItem

NESTED = (dict, list, tuple, set, np.ndarray)
EXACT = 2**53  # whole floats below it are exact
BOTH_BAD = ("tie (bothbad)", "tie (both bad)", "both_bad", "bothbad", "both bad")
TIES = dict.fromkeys(("tie", "draw", "equal", *BOTH_BAD), 0.5)
# a verdict as language models write it
VERDICT_MARK = re.compile(r"\[\[\s*(?:[ABC]|[AB]\s*[<>=]{1,2}\s*[AB])\s*\]\]|\[RESULT\]\s*[AB]\b", re.IGNORECASE)
GRADES = {
    "a>>b": 1.0, "a>b": 0.75, "a=b": 0.5, "b>a": 0.25, "b>>a": 0.0,
    "b<<a": 1.0, "b<a": 0.75, "b=a": 0.5, "a<b": 0.25, "a<<b": 0.0,
}  # fmt: skip
RESULTS = {"1-0": 1.0, "0-1": 0.0, "1/2-1/2": 0.5, "½-½": 0.5, "0.5-0.5": 0.5}
SIDES = (("first", "second"), ("left", "right"), ("model_a", "model_b"), ("item_a", "item_b"), ("white", "black"))

T = TypeVar("T")
Names = list[str | None]
Reasons = dict[int, str]  # row number -> why it could not be read


def printable(text: str, limit: int = 60) -> str:
    """The text without characters that control a terminal, shortened."""
    return shown(text, limit).strip("'\"") if len(text) > limit or not text.isprintable() else text


def name(cell: Any) -> str | None:
    """The name in a cell, without the blanks around it; None if the cell is empty."""
    try:
        text = (cell if isinstance(cell, str) else _as_text(cell)).strip()
        text.encode()  # JSON can contain half a surrogate pair, which cannot be written to a file
    except ValueError:
        raise BadVotes(f"{shown(cell)} is not text") from None
    if "\0" in text:
        raise BadVotes(f"{shown(text)} contains a NUL character")
    return text or None


def _as_text(cell: Any) -> str:
    """A cell of another type as text: a missing cell is empty, and 5.0 is the name 5."""
    if cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell)):
        return ""
    if isinstance(cell, NESTED):
        raise BadVotes(f"{shown(cell)} is not a name")
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < EXACT:
        return str(int(cell))
    return cell.decode() if isinstance(cell, bytes) else str(cell)


def label(cell: Any) -> str | None:
    """A judge or a case: like a name, but it may be a list or an object, which is written as JSON."""
    if isinstance(cell, NESTED):
        plain = cell.tolist() if isinstance(cell, np.ndarray) else cell
        return name(json.dumps(plain, default=str, ensure_ascii=False))
    return name(cell)


def number(cell: Any) -> float:
    """The number in a cell. True and False are not numbers."""
    if isinstance(cell, bool | np.bool_ | bytes) or (isinstance(cell, str) and "_" in cell):
        raise BadVotes(f"{shown(cell)} is not a number")
    try:
        return float(cell) + 0.0  # no -0.0
    except (TypeError, ValueError, OverflowError):
        hint = "; write it with a decimal point" if isinstance(cell, str) and "," in cell else ""
        raise BadVotes(f"{shown(cell)} is not a number{hint}") from None


def each(
    cells: Sequence[Any], parse: Callable[[Any], T | None], bad: Reasons, hashable: bool = False
) -> list[T | None]:
    """Parse every cell, each distinct one once. Where that fails the value is None, and `bad` gets the reason."""
    keys = cells if hashable else [cell if cell.__class__ is str else (cell.__class__, repr(cell)) for cell in cells]
    values: dict[Any, T | None] = {}
    reasons: dict[Any, str] = {}
    for key, cell in dict(zip(keys, cells, strict=True)).items():
        try:
            values[key] = parse(cell)
        except BadVotes as reason:
            values[key], reasons[key] = None, str(reason)
    if reasons:
        for row, key in enumerate(keys):
            if key in reasons:
                bad.setdefault(row, reasons[key])
    return [values[key] for key in keys]


def floats(values: Sequence[float | None]) -> Floats:
    """As an array; None becomes nan."""
    return np.array(values, dtype=np.float64)


# --- who won ---


def plain_word(word: str) -> str:
    """A word in lower case, with plain dashes and without the double brackets of a judge's verdict."""
    return word.lower().replace("–", "-").removeprefix("[[").removesuffix("]]")


def vocabulary(first: str, second: str) -> dict[str, float]:
    """The share of the win that each word gives to the first item, in a file whose item columns have these names."""
    sides = {word: share for pair in SIDES for word, share in zip(pair, (1.0, 0.0), strict=True)}
    ends = first.strip().lower(), second.strip().lower()
    (start, _, one), (begin, _, other) = (end.replace(" ", "_").rpartition("_") for end in ends)
    own = {ends[0]: 1.0, ends[1]: 0.0} | ({one: 1.0, other: 0.0} if start == begin else {})
    return sides | own | TIES | GRADES | RESULTS


def outcomes(
    verdicts: Mapping[str, Sequence[Any]],
    first_won: bool,
    words: Mapping[str, float],
    items: tuple[Names, Names],
    family: Family,
    bad: Reasons,
) -> tuple[Floats, set[str | None]]:
    """The outcomes, and the words that occur.

    `verdicts` are the columns that say who won: they must agree in every row, and `outcome` gives the number. With
    `first_won` the columns themselves say it.
    """
    if family.is_measured and "outcome" not in verdicts:
        raise BadVotes(f"a winner is not a measured difference; the {family.name} family needs an outcome column")
    shares: dict[str, Floats] = {"winner": np.ones(len(items[0]))} if first_won else {}
    found: set[str | None] = set()
    for verdict, cells in verdicts.items():
        if verdict == "preference":
            shares[verdict] = floats(each(cells, _preference, bad))
        elif verdict != "outcome":
            said = each(cells, name, bad)
            shares[verdict] = _shares(said, items, words, verdict == "loser", bad)
            found.update(said)
    if "outcome" in verdicts:
        outcome = floats(each(verdicts["outcome"], number, bad))
    else:
        outcome = outcome_of_share(next(iter(shares.values())), family)
    _refuse_disagreement(outcome - family.tie, shares, "outcome" if "outcome" in verdicts else "winner", bad)
    _refuse_outcomes(family, outcome, bad)
    return outcome, found


def word_notes(words: Iterable[str | None]) -> list[str]:
    """How some of the words were read."""
    found = {plain_word(word) for word in words if word is not None}
    notes = []
    if found & GRADES.keys():
        notes.append("grades A>>B, A>B, A=B, B>A, B>>A are read as 1, 0.75, 0.5, 0.25, 0")
    if found & set(BOTH_BAD):
        notes.append("both bad is read as a tie")
    return notes


def _shares(said: Names, items: tuple[Names, Names], words: Mapping[str, float], lost: bool, bad: Reasons) -> Floats:
    def parse(row: tuple[str | None, str | None, str | None]) -> float:
        return _share(*row, words)

    shares = floats(each(list(zip(said, *items, strict=True)), parse, bad, hashable=True))
    return 1 - shares if lost else shares


def _share(word: str | None, first: str | None, second: str | None, words: Mapping[str, float]) -> float:
    if word is None:
        raise BadVotes("there is no winner; a skipped question is not a vote")
    try:
        return share_of(word, first, second, words.get(plain_word(word)))
    except UnknownItem:
        raise BadVotes(f"winner {shown(word)} is neither {shown(first)} nor {shown(second)}, a side or a tie") from None
    except BadOutcome as reason:
        raise BadVotes(str(reason)) from None


def _preference(cell: object) -> float:
    """AlpacaEval: 1 if the first output is preferred, 2 if the second; 1.5 is a draw, and so is 0 in old files."""
    preference = number(cell)
    if preference == 0:
        return 0.5
    if not 1 <= preference <= 2:
        raise BadVotes(f"preference {preference:g} is not between 1 (the first output) and 2 (the second)")
    return 2 - preference


def _refuse_disagreement(lead: Floats, shares: Mapping[str, Floats], told: str, bad: Reasons) -> None:
    for verdict, share in shares.items():
        both = np.isfinite(lead) & np.isfinite(share)
        for row in np.flatnonzero(both & (np.sign(lead) != np.sign(share - 0.5))).tolist():
            bad.setdefault(row, f"{told} and {verdict} do not agree on who won")


def _refuse_outcomes(family: Family, outcome: Floats, bad: Reasons) -> None:
    try:
        return family.check(outcome)
    except BadOutcome:
        pass  # at least one row is bad; to find out which takes longer
    for row in range(len(outcome)):
        try:
            family.check(outcome[row : row + 1])
        except BadOutcome as reason:
            bad.setdefault(row, str(reason))
