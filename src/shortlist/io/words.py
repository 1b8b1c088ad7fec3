"""How a word says who won, as the first item's share of the win: 1, 0.75, 0.5, 0.25 or 0."""

from collections.abc import Iterable, Mapping

from shortlist.errors import BadVotes
from shortlist.io.cells import number, shown

BOTH_BAD = ("tie (bothbad)", "tie (both bad)", "both_bad", "bothbad", "both bad")
TIES = dict.fromkeys(("tie", "draw", "equal", *BOTH_BAD), 0.5)
GRADES = {
    "a>>b": 1.0, "a>b": 0.75, "a=b": 0.5, "b>a": 0.25, "b>>a": 0.0,
    "b<<a": 1.0, "b<a": 0.75, "b=a": 0.5, "a<b": 0.25, "a<<b": 0.0,
}  # fmt: skip
RESULTS = {"1-0": 1.0, "0-1": 0.0, "1/2-1/2": 0.5, "½-½": 0.5, "0.5-0.5": 0.5}
SIDES = (("first", "second"), ("left", "right"), ("model_a", "model_b"), ("item_a", "item_b"), ("white", "black"))
FORMULA = ("=", "+", "-", "@")


def plain(word: str) -> str:
    """A word without capitals, typographic dashes and the double brackets of a judge's verdict."""
    return word.lower().replace("–", "-").removeprefix("[[").removesuffix("]]")


def vocabulary(first: str, second: str) -> dict[str, float]:
    """All words that name an outcome in a file whose item columns have these names, such as model_a and model_b."""
    sides = {word: share for pair in SIDES for word, share in zip(pair, (1.0, 0.0), strict=True)}
    ends = first.strip().lower(), second.strip().lower()
    (start, _, one), (begin, _, other) = (end.replace(" ", "_").rpartition("_") for end in ends)
    own = {ends[0]: 1.0, ends[1]: 0.0} | ({one: 1.0, other: 0.0} if start == begin else {})
    return sides | own | TIES | GRADES | RESULTS


def share_of(word: str | None, first: str | None, second: str | None, words: Mapping[str, float]) -> float:
    """What a word says of these two items. A word that could mean two things is refused."""
    if word is None:
        raise BadVotes("there is no winner; a skipped question is not a vote")
    said = plain(word)
    meant = {share for item, share in ((first, 1.0), (second, 0.0)) if item == word}
    meant |= {words[said]} if said in words else set()
    if len(meant) == 1:
        return meant.pop()
    if meant:
        raise BadVotes(f"winner {shown(word)} is an item's name and also a word with another meaning here")
    raise BadVotes(f"winner {shown(word)} is neither {shown(first)} nor {shown(second)}, a side or a tie")


def share_of_preference(cell: object) -> float:
    """AlpacaEval: 1 if the first output is preferred, 2 if the second, 1.5 a draw, which was once written 0."""
    preference = number(cell)
    if preference == 0:
        return 0.5
    if not 1 <= preference <= 2:
        raise BadVotes(f"preference {preference:g} is not between 1 (the first output) and 2 (the second)")
    return 2 - preference


def notes(words: Iterable[str | None]) -> list[str]:
    """What a reader of the report should know about the words that were met."""
    met = {plain(word) for word in words if word is not None}
    said = []
    if met & GRADES.keys():
        said.append("grades A>>B, A>B, A=B, B>A, B>>A are read as 1, 0.75, 0.5, 0.25, 0")
    if met & set(BOTH_BAD):
        said.append("both bad is read as a tie")
    return said
