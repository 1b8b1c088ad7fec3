"""Vote file formats: which column is what, recognised by its name or given by a map.

docs/guides/vote-files.md has the same table.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shortlist.core.problem import shown
from shortlist.errors import BadInput, BadVotes
from shortlist.votes.cells import GRADES, plain_word, printable
from shortlist.votes.files import BadRow, Source

VERDICTS = ("outcome", "winner", "loser")
TARGETS = ("first", "second", *VERDICTS, "weight", "judge", "case", "id")
GAME_ENDS, GAME_SCORE = ("games: answer A", "games: answer B"), "games: score"
PAIR_ENDS, PAIR_WINNER = ("games: first answer", "games: second answer"), "games: won"
PAIR_COLUMNS = ("model_1", "model_2", "g1_winner", "g2_winner")
TIE_MARKS = ("tie", "draw", "is_tie", "is_draw")
ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie")
ONE_HOT_WORDS = {"100": "model_a", "010": "model_b", "001": "tie"}


class Format(NamedTuple):
    """Two item columns and the columns that say who won. If a file has several of these, they must agree."""

    name: str
    first: str
    second: str
    verdicts: tuple[str, ...]
    first_won: bool = False  # the item columns themselves say who won


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
    Format("MT-bench pairs", *PAIR_ENDS, (PAIR_WINNER,)),
    Format("AlpacaEval", "generator_1", "generator_2", ("preference",)),
    Format("chess results", "white", "black", ("result", "winner")),
    Format("winner and loser", "winner", "loser", ("outcome",), first_won=True),
    Format("gavel decisions", "winner_id", "loser_id", (), first_won=True),
)
EXTRAS = {
    "weight": ("weight",),
    "judge": ("judge", "judge_id", "worker", "worker_id", "annotator", "annotator_id", "user", "user_id"),
    "case": ("case", "case_id", "question_id", "question", "prompt_id", "prompt", "uid", "instruction"),
    "id": ("vote_id",),
}


class Parts(NamedTuple):
    """The number of the column for each part of a vote; `verdicts` say who won."""

    format: str
    first: int
    second: int
    verdicts: dict[str, int]
    first_won: bool
    extras: dict[str, int]

    def places(self) -> dict[str, int]:
        """Every part that has a column."""
        return {"first": self.first, "second": self.second, **self.verdicts, **self.extras}


def read_map(text: Sequence[str], targets: Sequence[str] = TARGETS, error: type[BadInput] = BadVotes) -> dict[str, str]:
    """Parse `first=colA,second=colB`. A comma may be part of a column's name unless a target follows it."""
    columns: dict[str, str] = {}
    for part in (part for given in text for part in re.split(rf",(?=\s*(?:{'|'.join(targets)})\s*=)", given)):
        target, equals, column = part.partition("=")
        if not equals or target.strip() not in targets:
            raise error(f"map {shown(part)} is not TARGET=COLUMN with a target of {', '.join(targets)}")
        if target.strip() in columns:
            raise error(f"the map names {target.strip()} twice")
        columns[target.strip()] = column.strip()
    return columns


def find_parts(file: str, names: Sequence[str], columns: Mapping[str, str]) -> Parts:
    """The parts of a file with columns of these names. `weight`, `judge`, `case` or `id` mapped to "" is not
    read."""
    titles = Titles(file, names)
    told = titles.told(columns)
    parts = titles.mapped(told) if is_whole(columns) else titles.recognised()
    for extra, known in EXTRAS.items():
        if extra in columns:
            place = told.get(extra)
        else:
            place = next((at for known_title in known if (at := titles.find(known_title)) is not None), None)
        if place is not None and place not in parts.places().values():
            parts.extras[extra] = place
    titles.refuse_twins(parts, set(told.values()))
    return parts


def is_whole(columns: Mapping[str, str]) -> bool:
    """Whether the map names more than the extras."""
    return not columns.keys() <= EXTRAS.keys()


def plain_title(name: str) -> str:
    """`Winner ID` and `winner-id` both become winner_id."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


def unit_columns(file: str, names: Sequence[str], parts: Parts, unit: str | None) -> tuple[str, list[int]]:
    """What the unit of a row is called, and the columns that name it: no column if every row is a unit of its own.

    `unit` is row, case, judge, the title of a column, or two of these joined by a comma. Default: the column `unit`, or
    the case, if there is one.
    """
    if unit is None and (place := Titles(file, names).find("unit")) is not None:
        return "unit", [place]
    if unit is None:
        return ("case", [parts.extras["case"]]) if "case" in parts.extras else ("row", [])
    words = [word.strip() for word in unit.split(",")]
    if words == ["row"]:
        return "row", []
    return ",".join(sorted(words)), [Titles(file, names).unit_column(word, parts) for word in words]


class Titles:
    """The titles of a file's columns."""

    def __init__(self, file: str, names: Sequence[str]) -> None:
        self.file, self.names = file, names
        self.exact: dict[str, list[int]] = {}
        self.titles: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            self.exact.setdefault(name, []).append(number)
            self.titles.setdefault(plain_title(name), []).append(number)

    def find(self, title: str) -> int | None:
        """A column with that title; case is ignored."""
        return next(iter(self.titles.get(plain_title(title), ())), None)

    def unit_column(self, word: str, parts: Parts) -> int:
        """The column that names the unit: the one of that part of a vote, or of that title."""
        place = parts.extras.get(word, self.find(word)) if word else None
        if place is None:
            part = word in ("case", "judge")
            hint = f"name its column with --map {word}=COLUMN" if part else f"its columns are {self}"
            raise BadVotes(f"{self.file} has no column {shown(word)} for the unit; {hint}")
        return place

    def refuse_twins(self, parts: Parts, told: set[int]) -> None:
        """Raise BadVotes if a part has two columns with the same title, because either could be meant."""
        for place in parts.places().values():
            name = self.names[place]
            same = self.exact[name] if place in told else self.titles[plain_title(name)]
            if len(same) > 1:
                raise BadVotes(f"{self.file} has {len(same)} columns called {shown(name)}; rename all but one")

    def refuse_ties(self) -> None:
        """Raise BadVotes if a file of winners and losers also marks ties: the winner of a tie would count as one."""
        marks = [title for title in TIE_MARKS if title in self.titles]
        if marks:
            raise BadVotes(
                f"{self.file} has a column {marks[0]} beside winner and loser, which cannot be read together; "
                "write ties as first, second and outcome 0.5, or map winner and loser if there are no ties"
            )

    def told(self, columns: Mapping[str, str]) -> dict[str, int]:
        """The column numbers of a map."""
        places = {}
        for target, column in columns.items():
            if target not in TARGETS:
                raise BadVotes(f"the map names {shown(target)}; targets are {', '.join(TARGETS)}")
            if not column and target in EXTRAS:
                continue
            place = self.exact[column][0] if column in self.exact else self.find(str(column))
            if place is None:
                raise BadVotes(f"{self.file} has no column {shown(column)} for {target}; its columns are {self}")
            places[target] = place
        return places

    def mapped(self, told: Mapping[str, int]) -> Parts:
        """The parts in a map. What it omits is recognised: both item columns, or the columns that say who won."""
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
            f"{self.file} has columns {self}; it needs two item columns such as first and second, and "
            "outcome or winner, or a map such as first=COLUMN,second=COLUMN,winner=COLUMN"
        )

    def __str__(self) -> str:
        some = ", ".join(printable(name, 40) for name in self.names[:20])
        return (some or "none") + (f" and {len(self.names) - 20} more" if len(self.names) > 20 else "")


# --- formats with another shape than one vote per row ---


def one_vote_per_row(source: Source) -> Source:
    """The same votes with one vote per row, for the formats that have another shape."""
    titles = {plain_title(name): number for number, name in enumerate(source.names)}
    if titles.keys() >= {"model", "baseline", "games"}:
        return _two_games(source, *(titles[title] for title in ("model", "baseline", "games")))
    if titles.keys() >= set(PAIR_COLUMNS):
        return _two_winners(source, [titles[title] for title in PAIR_COLUMNS])
    if titles.keys() >= set(ONE_HOT) and "winner" not in titles:
        return _one_hot(source, [titles[title] for title in ONE_HOT])
    return source


def _two_games(source: Source, model: int, baseline: int, games: int) -> Source:
    """Arena-Hard: each row has two games. The baseline is answer A in the first game, and B in the second."""
    models, baselines, played = source.column(model), source.column(baseline), source.column(games)
    scores = [_scores(cell) for cell in played]
    bad = [
        BadRow(source.lines[row], f"games {shown(played[row])} are not two games with a grade each")
        for row, score in enumerate(scores)
        if score is None
    ]
    kept = [(row, score) for row, score in enumerate(scores) if score is not None]
    added = {
        GAME_ENDS[0]: [end for row, _ in kept for end in (baselines[row], models[row])],
        GAME_ENDS[1]: [end for row, _ in kept for end in (models[row], baselines[row])],
        GAME_SCORE: [grade for _, score in kept for grade in score],
    }
    return source.picked([row for row, _ in kept for _ in range(2)], added, (model, baseline, games), bad)


def _scores(games: Any) -> tuple[str, str] | None:
    """Both grades. None if one is missing, because then the row is not a pair of votes."""
    found = [game.get("score") for game in games if isinstance(game, dict)] if hasattr(games, "__iter__") else []
    scores = [score for score in found if isinstance(score, str) and plain_word(score) in GRADES]
    return (scores[0], scores[1]) if len(found) == len(scores) == 2 else None


def _two_winners(source: Source, places: list[int]) -> Source:
    """MT-bench: each row has two games. model_1 is shown first in the first game, and second in the other."""
    models = [source.column(place) for place in places[:2]]
    winners = list(zip(*(source.column(place) for place in places[2:]), strict=True))
    kept = [row for row, both in enumerate(winners) if set(both) <= {"model_1", "model_2", "tie"}]
    bad = [
        BadRow(source.lines[row], f"{shown(winners[row])} are not the winners of two games; an error is not a vote")
        for row in sorted({*range(len(winners))} - {*kept})
    ]
    names = {"model_1": 0, "model_2": 1}
    added = {
        PAIR_ENDS[0]: [models[game][row] for row in kept for game in (0, 1)],
        PAIR_ENDS[1]: [models[1 - game][row] for row in kept for game in (0, 1)],
        PAIR_WINNER: [models[names[said]][row] if said in names else said for row in kept for said in winners[row]],
    }
    return source.picked([row for row in kept for _ in range(2)], added, places, bad)


def _one_hot(source: Source, places: list[int]) -> Source:
    """Three columns with one 1 and two 0 become one column of words."""
    cells = zip(*(source.column(place) for place in places), strict=True)
    words = [ONE_HOT_WORDS.get("".join(map(_digit, row))) for row in cells]
    bad = [
        BadRow(source.lines[row], f"not exactly one of {', '.join(ONE_HOT)} is 1")
        for row, word in enumerate(words)
        if word is None
    ]
    kept = [row for row, word in enumerate(words) if word is not None]
    return source.picked(kept, {"/".join(ONE_HOT): [words[row] for row in kept]}, places, bad)


def _digit(cell: Any) -> str:
    """0 or 1, however it is written."""
    return {"1": "1", "0": "0", "1.0": "1", "0.0": "0", "True": "1", "False": "0"}.get(str(cell).strip(), "?")
