"""Who won: turns a word, an item's name or a number into an outcome, as seen from the first item.

Every answer passes through here: what a judge function returns, what a command prints, what a language model's verdict
means, what `Study.tell` is given and what a cell of a vote file says. A *share* is the first item's part of the win: 1
if it won, 0 if the second item won, 0.5 for a tie, and grades between them.
"""

from typing import Any, TypeVar

import numpy as np

from shortlist.core.families import Family
from shortlist.core.pairs import Floats
from shortlist.core.problem import shown
from shortlist.errors import BadOutcome, UnknownItem

TIE = "tie"
SHARES = {"first": 1.0, "second": 0.0, TIE: 0.5}  # the words that every judge can use

Share = TypeVar("Share", float, Floats)


def outcome_of(answer: Any, first: str, second: str, family: Family) -> float:
    """The outcome of an answer: an item's name, "first", "second", "tie" or a number.

    Names take precedence over sides, because an item may be called "second". Raises BadOutcome or UnknownItem.
    """
    if not isinstance(answer, str):
        return outcome_of_number(answer, family)
    meaning = None if answer in (first, second) else SHARES.get(answer)
    return outcome_of_share(share_of(answer, first, second, meaning), family)


def outcome_told(outcome: Any, winner: Any, first: str, second: str, family: Family) -> float:
    """The outcome of an answer that is given either as an outcome or as the name of the winner."""
    if (outcome is None) == (winner is None):
        raise BadOutcome("give exactly one of outcome and winner=")
    if winner is None and not isinstance(outcome, str):
        return outcome_of_number(outcome, family)
    if winner is None and outcome != TIE:
        raise BadOutcome(f"outcome {shown(outcome)} is not a number; for a name use winner=, for a tie 'tie'")
    if winner is None:
        return outcome_of_share(SHARES[TIE], family)
    if not isinstance(winner, str):
        raise UnknownItem(winner)
    return outcome_of_share(share_of(winner, first, second, None), family)


def outcome_of_number(value: Any, family: Family) -> float:
    """A number as an outcome. Raises BadOutcome if it is not a single number that the family allows."""
    try:
        number = np.asarray(None if isinstance(value, str | bytes) else value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        number = np.asarray(np.nan)
    if number.ndim != 0:
        raise BadOutcome(f"outcome {shown(value)} is not a single number; answer one question at a time")
    if np.isnan(number):
        raise BadOutcome(f"outcome {shown(value)} is not a number; give a number, an item's name or 'tie'")
    family.check(number)
    return float(number)


def outcome_of_share(share: Share, family: Family) -> Share:
    """A share, or an array of them, on the family's scale. Families of measured differences have no shares."""
    if family.is_measured:
        if isinstance(share, float) and share == SHARES[TIE]:
            return family.tie
        raise BadOutcome(f"the {family.name} family needs the measured difference, not a winner")
    loss = flipped(family.win, family)
    return loss + share * (family.win - loss)


def share_of(word: str, first: str | None, second: str | None, meaning: float | None) -> float:
    """The share that a word gives to the first item: the word is an item's name, or has a meaning of its own.

    Raises UnknownItem if it is neither, and BadOutcome if it could mean two things.
    """
    meant = set() if meaning is None else {meaning}
    if word == first:
        meant.add(1.0)
    if word == second:
        meant.add(0.0)
    if not meant:
        raise UnknownItem(word)
    if len(meant) > 1:
        raise BadOutcome(f"winner {shown(word)} is ambiguous: an item has this name, and it also has another meaning")
    return meant.pop()


def winner_of(share: float, first: str, second: str) -> str:
    """The name of the winner, or "tie"."""
    return {1.0: first, 0.0: second}.get(share, TIE)


def flipped(outcome: float, family: Family) -> float:
    """The same outcome as seen from the other item."""
    return float(family.flip(np.asarray(outcome)))
