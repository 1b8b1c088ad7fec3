"""Which column plays which part: recognised by name, or told by a map. The table in docs/vote-files.md is this one."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shortlist.errors import BadVotes
from shortlist.io.cells import printable, shown

VERDICTS = ("outcome", "winner", "loser")
TARGETS = ("first", "second", *VERDICTS, "weight", "judge", "case")
GAME_ENDS, GAME_SCORE = ("games: answer A", "games: answer B"), "games: score"
TIE_MARKS = ("tie", "draw", "is_tie", "is_draw")
ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie")


class Format(NamedTuple):
    """Two item columns and the columns that say who won; where several are there they must agree."""

    name: str
    first: str
    second: str
    verdicts: tuple[str, ...]
    first_won: bool = False  # the columns themselves say it


FORMATS = (
    Format("plain", "first", "second", VERDICTS),
    Format("lmarena", "model_a", "model_b", VERDICTS),
    Format("left and right", "left", "right", VERDICTS),
    Format("plain", "item_a", "item_b", VERDICTS),
    Format("plain", "a", "b", VERDICTS),
    Format("crowd-kit", "left", "right", ("label",)),
    Format("lmarena, one column for each answer", "model_a", "model_b", ("/".join(ONE_HOT),)),
    Format("Arena-Hard grades", "model_a", "model_b", ("score",)),
    Format("Arena-Hard judgments", *GAME_ENDS, (GAME_SCORE,)),
    Format("AlpacaEval", "generator_1", "generator_2", ("preference",)),
    Format("chess results", "white", "black", ("result", "winner")),
    Format("winner and loser", "winner", "loser", ("outcome",), first_won=True),
    Format("gavel decisions", "winner_id", "loser_id", (), first_won=True),
)
EXTRAS = {
    "weight": ("weight",),
    "judge": ("judge", "judge_id", "worker", "worker_id", "annotator", "annotator_id", "user", "user_id"),
    "case": ("case", "case_id", "question_id", "question", "prompt_id", "prompt", "uid", "instruction"),
}


class Parts(NamedTuple):
    """The number of the column for each part; `verdicts` are read as their names say."""

    format: str
    first: int
    second: int
    verdicts: dict[str, int]
    first_won: bool
    extras: dict[str, int]

    def places(self) -> dict[str, int]:
        """Every part that has a column."""
        return {"first": self.first, "second": self.second, **self.verdicts, **self.extras}


def read_map(text: Sequence[str]) -> dict[str, str]:
    """`first=colA,second=colB` as a mapping. A comma may be part of a column's name unless a target follows it."""
    columns: dict[str, str] = {}
    for part in (part for given in text for part in re.split(rf",(?=\s*(?:{'|'.join(TARGETS)})\s*=)", given)):
        target, equals, column = part.partition("=")
        if not equals or target.strip() not in TARGETS:
            raise BadVotes(f"map {shown(part)} is not TARGET=COLUMN with a target of {', '.join(TARGETS)}")
        if target.strip() in columns:
            raise BadVotes(f"the map names {target.strip()} twice")
        columns[target.strip()] = column.strip()
    return columns


def find_parts(file: str, names: Sequence[str], columns: Mapping[str, str]) -> Parts:
    """The parts of a file with these columns. An extra mapped to nothing is not read."""
    book = Book(file, names)
    told = book.told(columns)
    parts = book.mapped(told) if is_whole(columns) else book.recognised()
    for extra, known in EXTRAS.items():
        if extra in columns:
            place = told.get(extra)
        else:
            place = next((at for title in known if (at := book.find(title)) is not None), None)
        if place is not None and place not in parts.places().values():
            parts.extras[extra] = place
    book.refuse_twins(parts, set(told.values()))
    return parts


def is_whole(columns: Mapping[str, str]) -> bool:
    """Does the map say more than where the extras are?"""
    return not columns.keys() <= EXTRAS.keys()


def plain_title(name: str) -> str:
    """`Winner ID` and `winner-id` are winner_id."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


class Book:
    """The titles of a file's columns, to look parts up in."""

    def __init__(self, file: str, names: Sequence[str]) -> None:
        self.file, self.names = file, names
        self.exact: dict[str, list[int]] = {}
        self.titles: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            self.exact.setdefault(name, []).append(number)
            self.titles.setdefault(plain_title(name), []).append(number)

    def find(self, title: str) -> int | None:
        """A column with that title, however it is capitalised."""
        return next(iter(self.titles.get(plain_title(title), ())), None)

    def refuse_twins(self, parts: Parts, told: set[int]) -> None:
        """To take one of two columns with the same title would be a guess."""
        for place in parts.places().values():
            name = self.names[place]
            same = self.exact[name] if place in told else self.titles[plain_title(name)]
            if len(same) > 1:
                raise BadVotes(f"{self.file} has {len(same)} columns called {shown(name)}; rename all but one")

    def refuse_ties(self) -> None:
        """A winner and a loser beside a mark for ties: who is called the winner of a tie would count as one."""
        marks = [title for title in TIE_MARKS if title in self.titles]
        if marks:
            raise BadVotes(
                f"{self.file} has a column {marks[0]} beside winner and loser, which cannot be read together; "
                "write ties as outcome 0.5 of first and second, or map winner and loser if there are none"
            )

    def told(self, columns: Mapping[str, str]) -> dict[str, int]:
        """Where the columns of a map are."""
        places = {}
        for target, column in columns.items():
            if target not in TARGETS:
                raise BadVotes(f"the map names {shown(target)}; targets are {', '.join(TARGETS)}")
            if not column and target in EXTRAS:
                continue
            place = self.exact[column][0] if column in self.exact else self.find(str(column))
            if place is None:
                raise BadVotes(f"{self.file} has no column {shown(column)} for {target}; it has {self}")
            places[target] = place
        return places

    def mapped(self, told: Mapping[str, int]) -> Parts:
        """What a map leaves out is recognised: the item columns, or the columns that say who won, but never half."""
        verdicts = {verdict: told[verdict] for verdict in VERDICTS if verdict in told}
        if "first" in told and "second" in told:
            verdicts = verdicts or {name: at for name in VERDICTS if (at := self.find(name)) is not None}
            if not verdicts:
                raise BadVotes(f"map one of {', '.join(VERDICTS)} as well; {self.file} has columns {self}")
            return Parts("mapped", told["first"], told["second"], verdicts, False, {})
        if "first" in told or "second" in told:
            raise BadVotes("map both first and second, or neither")
        if "winner" in told and "loser" in told:
            del verdicts["winner"], verdicts["loser"]
            return Parts("mapped", told["winner"], told["loser"], verdicts, True, {})
        for known in FORMATS:
            first, second = self.find(known.first), self.find(known.second)
            if first is not None and second is not None and not known.first_won:
                return Parts("mapped", first, second, verdicts, False, {})
        raise BadVotes(f"map first and second as well; {self.file} has columns {self}")

    def recognised(self) -> Parts:
        """The first format that fits."""
        for known in FORMATS:
            first, second = self.find(known.first), self.find(known.second)
            if first is None or second is None:
                continue
            verdicts = {verdict: at for verdict in known.verdicts if (at := self.find(verdict)) is not None}
            if known.first_won:
                self.refuse_ties()
            if verdicts or known.first_won:
                return Parts(known.name, first, second, verdicts, known.first_won, {})
        raise BadVotes(
            f"{self.file} has columns {self}; needed are two item columns such as first,second and one of "
            "outcome, winner, or a map such as first=COLUMN,second=COLUMN,winner=COLUMN"
        )

    def __str__(self) -> str:
        some = ", ".join(printable(name, 40) for name in self.names[:20])
        return (some or "none") + (f" and {len(self.names) - 20} more" if len(self.names) > 20 else "")
