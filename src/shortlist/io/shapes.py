"""Rows of an unusual shape, straightened to one vote a row before anything is understood."""

from typing import Any

from shortlist.io.cells import shown
from shortlist.io.formats import GAME_ENDS, GAME_SCORE, ONE_HOT, plain_title
from shortlist.io.source import BadRow, Source
from shortlist.io.words import GRADES, plain

ANSWERS = {"100": "model_a", "010": "model_b", "001": "tie"}


def straighten(source: Source) -> Source:
    """The same votes with one in each row; most files are straight already."""
    titles = {plain_title(name): number for number, name in enumerate(source.names)}
    if titles.keys() >= {"model", "baseline", "games"}:
        return _two_games(source, *(titles[title] for title in ("model", "baseline", "games")))
    if titles.keys() >= set(ONE_HOT) and "winner" not in titles:
        return _one_hot(source, [titles[title] for title in ONE_HOT])
    return source


def _two_games(source: Source, model: int, baseline: int, games: int) -> Source:
    """Arena-Hard: each row is judged twice. The baseline is answer A in the first game, and B in the second."""
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
    """Both grades; a judge who gave none leaves a null, and then the row is no pair of votes."""
    found = [game.get("score") for game in games if isinstance(game, dict)] if hasattr(games, "__iter__") else []
    scores = [score for score in found if isinstance(score, str) and plain(score) in GRADES]
    return (scores[0], scores[1]) if len(found) == len(scores) == 2 else None


def _one_hot(source: Source, places: list[int]) -> Source:
    """Three columns of 0 and 1, of which one is 1, become one column of words."""
    cells = zip(*(source.column(place) for place in places), strict=True)
    words = [ANSWERS.get("".join(map(_digit, row))) for row in cells]
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
