"""Who won each row, from all columns that say so: they must agree."""

from collections.abc import Mapping, Sequence

import numpy as np

from shortlist.errors import BadOutcome, BadVotes
from shortlist.families import Family
from shortlist.io import words
from shortlist.io.cells import Reasons, each, name, number
from shortlist.io.formats import Parts
from shortlist.io.source import Source
from shortlist.pairs import Floats

Names = list[str | None]


def outcomes(
    source: Source, parts: Parts, family: Family, ends: tuple[Names, Names], bad: Reasons
) -> tuple[Floats, set[str | None]]:
    """The outcomes, and the words that were met. A number is what it is; words have to agree with it on who won."""
    if family.win is None and "outcome" not in parts.verdicts:
        raise BadVotes(f"a winner is no measured difference; the {family.name} family needs an outcome column")
    shares: dict[str, Floats] = {"winner": np.ones(len(ends[0]))} if parts.first_won else {}
    met: set[str | None] = set()
    known = words.vocabulary(source.names[parts.first], source.names[parts.second])
    for verdict, place in parts.verdicts.items():
        if verdict == "preference":
            shares[verdict] = floats(each(source.column(place), words.share_of_preference, bad))
        elif verdict != "outcome":
            said = each(source.column(place), name, bad)
            shares[verdict] = _shares(said, ends, known, verdict == "loser", bad)
            met.update(said)
    if "outcome" in parts.verdicts:
        outcome = floats(each(source.column(parts.verdicts["outcome"]), number, bad))
    else:
        outcome = _scaled(family, next(iter(shares.values())))
    _refuse_disagreement(outcome - family.tie, shares, "outcome" if "outcome" in parts.verdicts else "winner", bad)
    _refuse_outcomes(family, outcome, bad)
    return outcome, met


def floats(values: Sequence[float | None]) -> Floats:
    """As an array; None becomes nan."""
    return np.array(values, dtype=np.float64)


def _shares(said: Names, ends: tuple[Names, Names], known: Mapping[str, float], lost: bool, bad: Reasons) -> Floats:
    def parse(told: tuple[str | None, str | None, str | None]) -> float:
        return words.share_of(told[0], told[1], told[2], known)

    shares = floats(each(list(zip(said, *ends, strict=True)), parse, bad, hashable=True))
    return 1 - shares if lost else shares


def _scaled(family: Family, shares: Floats) -> Floats:
    """Shares of a win as the family's outcomes."""
    assert family.win is not None
    losing = float(family.flip(np.asarray(family.win)))
    return losing + shares * (family.win - losing)


def _refuse_disagreement(lead: Floats, shares: Mapping[str, Floats], told: str, bad: Reasons) -> None:
    for verdict, share in shares.items():
        both = np.isfinite(lead) & np.isfinite(share)
        for row in np.flatnonzero(both & (np.sign(lead) != np.sign(share - 0.5))).tolist():
            bad.setdefault(row, f"{told} and {verdict} do not agree on who won")


def _refuse_outcomes(family: Family, outcome: Floats, bad: Reasons) -> None:
    try:
        return family.check(outcome)
    except BadOutcome:
        pass  # some row; which one is asked only now, as it takes long
    for row in range(len(outcome)):
        try:
            family.check(outcome[row : row + 1])
        except BadOutcome as reason:
            bad.setdefault(row, str(reason))
