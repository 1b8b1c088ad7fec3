"""Does a judge agree with people? Questions that the judge has answered are put to people again, drawn at random. And
what do a judge's answers go with, beside quality: length, one text for all cases, verdicts inside texts, families.

A *unit* is a pair on a case, with the judge's answer over all orders in which it was asked. Half of the draws are from
all units of the study, the other half from those at the cutoff. Draws are with replacement; people are asked once, and
their answer serves again. So the agreement in draws from all units is the mean of independent draws, and
`mean_interval` is valid at any time. What people answer never enters the study.

What answers go with is a diagnosis, not a correction: a result that was corrected for length rests on a model, and a
proof rests on none.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from shortlist.analysis.checks import Check, percent
from shortlist.analysis.judges import Share, wilson, win_chances
from shortlist.core.arrays import certify
from shortlist.core.draws import draw_number
from shortlist.errors import BadVotes
from shortlist.study.rows import counted
from shortlist.study.study import Study
from shortlist.votes.cells import VERDICT_MARK

ALPHA = 0.05  # the chance to accuse a judge falsely, over all accusations together
LEAST = 0.7  # a judge who agrees with people less often is accused
LONGER = 1.1  # lengths with a smaller ratio are equal
GRID = np.linspace(0.0, 1.0, 1001)
ENOUGH = 30  # answers before a verdict says more than "too few"
SEVERAL = 20  # answers of a judge before anything is said about what they go with
FAR = 3.3  # standard deviations from what the ratings expect
MOST_ALIKE = 0.5  # the share of cases on which an item may repeat one text
FAMILIES = ("gpt", "claude", "gemini", "gemma", "llama", "mistral", "qwen", "deepseek", "grok", "vicuna")

Lengths = Mapping[str, Mapping[str | None, int]]  # of the texts of items, by case


class Unit(NamedTuple):
    """A pair on a case, and the share of the win that a judge gave to `low`, the item listed first."""

    low: str
    high: str
    case: str | None
    judge: str | None
    share: float  # a mean over the orders in which the judge was asked: 0, 1/2 or 1 each
    shown_first: int = 0  # 1 if `low` was shown first, -1 if `high`, 0 if both orders were asked
    gap: float = 0.0  # between the ratings of the two
    longer: int = 0  # 1 if the text of `low` is longer, -1 if that of `high` is, 0 if neither or not known

    @property
    def question(self) -> tuple[str, str, str | None]:
        """What a person is asked."""
        return self.low, self.high, self.case


class Answer(NamedTuple):
    """What a person said: the share of the win for `low`, the item that the study lists first. `stream` says what the
    question was drawn from: all units, or those at the line."""

    person: str
    low: str
    high: str
    case: str | None
    share: float
    stream: str = "all"

    @property
    def question(self) -> tuple[str, str, str | None]:
        return self.low, self.high, self.case


def units_of(study: Study, judges: Sequence[str] | None = None, lengths: Lengths | None = None) -> list[Unit]:
    """What the judges of a study have answered, by default all that ran in it, or all if none did."""
    wanted = set(judges or (one.judge for one in study.setups.judges))
    answers: dict[tuple[str, str, str | None, str | None], dict[int, float]] = defaultdict(dict)
    place = {item: number for number, item in enumerate(study.items)}
    tie = study.problem.family.tie
    for row in counted(study.rows):
        if row.outcome is None or (wanted and row.judge not in wanted):
            continue
        is_low = place[row.first] < place[row.second]
        low, high = (row.first, row.second) if is_low else (row.second, row.first)
        share = (1 + np.sign(row.outcome - tie)) / 2
        answers[low, high, row.case, row.judge][1 if is_low else -1] = float(share if is_low else 1 - share)
    ratings = study.utilities
    return [
        Unit(
            *key, sum(given.values()) / len(given), next(iter(given)) if len(given) == 1 else 0,
            abs(ratings[key[0]] - ratings[key[1]]), _longer(lengths, *key[:3]),
        )
        for key, given in answers.items()
    ]  # fmt: skip


def _longer(lengths: Lengths | None, low: str, high: str, case: str | None) -> int:
    if lengths is None:
        return 0
    one, other = (lengths.get(item, {}).get(case) for item in (low, high))
    if one is None or other is None or max(one, other) < LONGER * min(one, other):
        return 0
    return 1 if one > other else -1


class AuditDraws:
    """Which question comes next: from all units, and from those at the cutoff, in turn."""

    def __init__(self, units: Sequence[Unit], top: Sequence[str], seed: int) -> None:
        if not units:
            raise BadVotes("the judge has answered nothing yet, so there is nothing to audit; run the study first")
        self._seed, inside = seed, set(top)
        self._all = list(dict.fromkeys(unit.question for unit in units))
        across = [unit for unit in units if (unit.low in inside) != (unit.high in inside)]
        nearest = float(np.median([unit.gap for unit in across])) if across else 0.0
        self._line = list(dict.fromkeys(unit.question for unit in across if unit.gap <= nearest))

    def draw(self, person: str, number: int) -> tuple[tuple[str, str, str | None], str, bool]:
        """The question of a draw, from which units it is, and whether `low` is shown first."""
        stream = "line" if number % 2 and self._line else "all"
        listed = self._all if stream == "all" else self._line
        place = draw_number(len(listed), f"audit {person}", self._seed, number)
        return listed[place], stream, bool(draw_number(2, f"audit side {person}", self._seed, number))


def mean_interval(values: Sequence[float], alpha: float = ALPHA) -> tuple[float, float]:
    """An interval for the mean of independent draws from [0, 1] that is valid at any time.

    For every m two bets are made that the mean is above, or below, m; m is left out once their average wealth reaches
    1/alpha (Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, 2024).
    """
    open_ones, above, below = np.ones(len(GRID), dtype=np.bool_), np.zeros(len(GRID)), np.zeros(len(GRID))
    total, square = 0.5, 0.25
    with np.errstate(divide="ignore"):
        most_above, most_below = 0.5 / GRID, 0.5 / (1 - GRID)
    for number, value in enumerate(values, 1):
        mean, variance = total / number, square / number
        stake = math.sqrt(2 * math.log(2 / alpha) / (variance * number * math.log(1 + number)))
        above += np.log1p(np.minimum(stake, most_above) * (value - GRID))
        below += np.log1p(-np.minimum(stake, most_below) * (value - GRID))
        open_ones &= np.logaddexp(above, below) - math.log(2) < math.log(1 / alpha)
        total, square = total + value, square + (value - mean) ** 2
    left = np.flatnonzero(open_ones)
    if not len(left):
        return 0.0, 1.0  # only if the draws are not from one distribution
    step = GRID[1]
    return max(0.0, float(GRID[left[0]] - step)), min(1.0, float(GRID[left[-1]] + step))


def lean(wins: Sequence[bool]) -> float:
    """Evidence that more than half of draws are wins: a stake that grows only if they are, by betting on the share so
    far. It reaches 1/alpha with probability at most alpha if not, at any time."""
    wealth = best = 1.0
    won = 0
    for number, is_won in enumerate(wins):
        bet = max(0.0, 2 * (won + 0.5) / (number + 1) - 1)
        wealth *= 1 + bet * (1 if is_won else -1)
        best, won = max(best, wealth), won + is_won
    return best


@dataclass(frozen=True)
class Split:
    """The agreement in a part of the answers, each question once."""

    name: str
    agreement: Share


@dataclass(frozen=True)
class Audit:
    """What people's answers say about a judge. `agreement` is about a question drawn at random from all that the judge
    answered; `low` and `high` are valid at any time. An answer agrees by 1, by 1/2 if one of the two is a tie."""

    answers: int
    people: int
    agreement: float | None
    low: float
    high: float
    at_the_line: Share
    splits: tuple[Split, ...]
    accusations: tuple[str, ...]
    disagreements: tuple[tuple[Answer, Unit], ...]
    people_in: tuple[str, ...]
    people_out: tuple[str, ...]
    contradicts: tuple[str, ...]
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self)


def audit(study: Study, units: Sequence[Unit], answers: Sequence[Answer]) -> Audit:
    """Compare what people answered, in the order in which they did, with a judge's answers."""
    by_question = defaultdict(list)
    for unit in units:
        by_question[unit.question].append(unit)
    compared = [(answer, unit) for answer in answers for unit in by_question[answer.question]]
    once = list({(answer.person, unit): (answer, unit) for answer, unit in compared}.values())
    at_random = [_agrees(answer, unit) for answer, unit in compared if answer.stream == "all"]
    line = [_agrees(answer, unit) for answer, unit in once if answer.stream == "line"]
    low, high = mean_interval(at_random, ALPHA)
    accusations = _accusations(units, once, at_random)
    inside, outside = _people_prove(study, answers)
    top = study.verdict.top
    contradicts = tuple(
        item for item in study.items if (item in outside and item in top) or (item in inside and item not in top)
    )
    agreement = float(np.mean(at_random)) if at_random else None
    found = Audit(
        len(once), len({answer.person for answer in answers}), agreement, low, high, wilson(sum(line), len(line)),
        tuple(_splits(units, once)), accusations, tuple((a, u) for a, u in once if _agrees(a, u) == 0.0), inside,
        outside, contradicts, "",
    )  # fmt: skip
    return Audit(**{**vars(found), "sentence": _sentence(found, study)})


def _agrees(answer: Answer, unit: Unit) -> float:
    return 1.0 - abs(answer.share - unit.share)


def _accusations(
    units: Sequence[Unit], once: Sequence[tuple[Answer, Unit]], at_random: Sequence[float]
) -> tuple[str, ...]:
    """What the answers prove against the judge, each with a third of the error. Which answer a judge prefers where it
    disagrees is counted once for each question: drawn again, a question says nothing new about the judge."""
    level, found = 3 / ALPHA, []
    _, high = mean_interval(at_random, ALPHA / 3)
    if high < LEAST:
        found.append(f"It agrees with people on fewer than {LEAST:.0%} of the questions (at most {high:.0%}).")
    apart = [(answer, unit) for answer, unit in once if _agrees(answer, unit) == 0.0]
    longer = [(unit.share > 0.5) == (unit.longer > 0) for _, unit in apart if unit.longer]
    of_all = [(unit.share > 0.5) == (unit.longer > 0) for unit in units if unit.longer and unit.share != 0.5]
    if of_all and np.mean(of_all) > 0.5 and lean(longer) >= level:
        found.append(
            f"Where it disagrees with people it prefers the longer answer: {sum(longer)} of {len(longer)} times "
            f"(and in {np.mean(of_all):.0%} of all its answers)."
        )
    first = [(unit.share > 0.5) == (unit.shown_first > 0) for _, unit in apart if unit.shown_first]
    for side, wins in (("first", first), ("second", [not one for one in first])):
        if lean(wins) >= 2 * level:
            found.append(
                f"Where it disagrees with people it prefers the answer shown {side}: {sum(wins)} of {len(wins)} times."
            )
    return tuple(found)


def _people_prove(study: Study, answers: Sequence[Answer]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which items people's answers by themselves prove to be in the top k, or not."""
    if not answers:
        return (), ()
    number = {item: place for place, item in enumerate(study.items)}
    first, second = (np.array([number[getattr(one, side)] for one in answers], np.int64) for side in ("low", "high"))
    share = np.array([one.share for one in answers], np.float64)
    verdict = certify(first, second, share, study.problem.k, study.problem.delta, n=len(study.items))
    sides = verdict.certainly_in, verdict.certainly_out
    inside, outside = (tuple(study.items[item] for item in side) for side in sides)
    return inside, outside


def _splits(units: Sequence[Unit], once: Sequence[tuple[Answer, Unit]]) -> list[Split]:
    near = float(np.median([unit.gap for unit in units])) if units else 0.0
    parts: dict[str, list[float]] = {}
    for answer, unit in once:
        names = [f"judge {unit.judge}", "close pairs" if unit.gap <= near else "clear pairs"]
        if unit.shown_first and unit.share != 0.5:
            preferred_first = (unit.share > 0.5) == (unit.shown_first > 0)
            names.append(f"judge preferred the answer shown {'first' if preferred_first else 'second'}")
        if unit.longer and unit.share != 0.5:
            names.append(
                f"judge preferred the {'longer' if (unit.share > 0.5) == (unit.longer > 0) else 'shorter'} answer"
            )
        for name in names:
            parts.setdefault(name, []).append(_agrees(answer, unit))
    return [Split(name, wilson(sum(found), len(found))) for name, found in sorted(parts.items())]


def _sentence(found: Audit, study: Study) -> str:
    """The verdict in words."""
    if found.contradicts:
        return (
            f"The people contradict the result: by their own answers {', '.join(found.contradicts)} "
            f"{'is' if len(found.contradicts) == 1 else 'are'} on the other side of the cutoff."
        )
    if found.accusations:
        return "Do not rely on this judge without reading its answers. " + " ".join(found.accusations)
    if found.answers < ENOUGH or found.low < LEAST:
        more = (
            ""
            if found.agreement is None
            else f" So far they agree on {found.agreement:.0%} (between {found.low:.0%} and {found.high:.0%})."
        )
        return f"Too few answers to tell: {found.answers} so far.{more}"
    return (
        f"The judge agrees with people on {found.agreement:.0%} of the questions that it answered (at least "
        f"{found.low:.0%}, with 95 % confidence), and nothing in their answers contradicts its top {study.problem.k}."
    )


def lengths_of(contents: Mapping[str, Any] | None, cases: Sequence[Any] | None) -> Lengths | None:
    """How long the texts of items are, by case."""
    if contents is None:
        return None
    ids = [None] if cases is None else [case.id for case in cases]
    return {
        item: {case: len(text if isinstance(text, str) else text.get(case, "")) for case in ids}
        for item, text in contents.items()
    }


def check_texts(study: Study, texts: Mapping[str, Any], cases: Sequence[Any] | None) -> tuple[Check, ...]:
    """Checks of a study whose texts are known: a text for each item, or one for each item and case."""
    units = units_of(study, None, lengths_of(texts, cases))
    found = [_length(study, units), _ruler(study, texts, cases), _one_text(texts), _marks(texts), _family(study)]
    return tuple(check for check in found if check is not None)


def _length(study: Study, units: Sequence[Unit]) -> Check | None:
    """Does the longer text win more often than the ratings expect, given who was longer?"""
    by_judge, ratings = defaultdict(list), study.utilities
    for unit in units:
        if unit.longer and unit.share != 0.5:
            lead = unit.longer * (ratings[unit.low] - ratings[unit.high])
            by_judge[unit.judge].append(((unit.share > 0.5) == (unit.longer > 0), lead))
    sentences, is_far = [], False
    for judge, rows in by_judge.items():
        if len(rows) < SEVERAL:
            continue
        won, leads = np.array([one[0] for one in rows]), np.array([one[1] for one in rows])
        chance = win_chances(study.problem.family, leads)
        share, expected = wilson(float(won.sum()), len(won)), float(chance.mean())
        spread = max(float(np.sqrt((chance * (1 - chance)).sum())) / len(won), 1e-9)
        is_far = is_far or (share.share - expected) / spread > FAR
        sentences.append(
            f"Judge {judge}: the text that is at least 10 % longer won {percent(share.share)} of {len(won):,} answers "
            f"({percent(share.low)} to {percent(share.high)}); the ratings expect {percent(expected)}."
        )
    if not sentences:
        return None
    said = " Its preference goes with length beyond what the ratings explain." if is_far else ""
    return Check("Length", "warning" if is_far else "ok", " ".join(sentences) + said)


def _ruler(study: Study, texts: Mapping[str, Any], cases: Sequence[Any] | None) -> Check | None:
    """Which items would a judge choose who always prefers the longer text?"""
    lengths = lengths_of(texts, cases)
    if lengths is None or not set(study.items) <= lengths.keys():
        return None
    table = np.array([list(lengths[item].values()) for item in study.items])
    if len(table.shape) != 2 or not table.any():
        return None
    wins = ((table[:, None] > table[None]) + 0.5 * (table[:, None] == table[None])).mean(axis=2) > 0.5
    order = np.argsort(-wins.sum(axis=1), kind="stable")[: study.problem.k].tolist()
    others = [place for place in range(len(table)) if place not in order]
    if not wins[np.ix_(order, others)].all():
        return Check("A ruler as judge", "ok", "A judge who always prefers the longer text would find no clear top.")
    chosen = [study.items[place] for place in order]
    is_same = set(chosen) == set(study.verdict.top)
    same = "the same top as the judge's" if is_same else "not the judge's top"
    sentence = f"A judge who always prefers the longer text would choose {', '.join(chosen)}: {same}."
    if not is_same:
        return Check("A ruler as judge", "ok", sentence)
    hint = " The longer items may be the better ones; `shortlist audit` compares the judge with people."
    return Check("A ruler as judge", "warning", sentence + hint)


def _one_text(texts: Mapping[str, Any]) -> Check | None:
    shares = {}
    for item, text in texts.items():
        if isinstance(text, Mapping) and len(text) > 2:
            shares[item] = Counter(text.values()).most_common(1)[0][1] / len(text)
    if not shares:
        return None
    alike = {item: share for item, share in shares.items() if share > MOST_ALIKE}
    if not alike:
        return Check("One text for all", "ok", "No item gives one text on most cases.")
    named = ", ".join(f"{item} ({percent(share)} of the cases)" for item, share in alike.items())
    return Check(
        "One text for all",
        "warning",
        f"One and the same text on most cases: {named}. Such an item may be broken, or made to please a judge.",
    )


def _marks(texts: Mapping[str, Any]) -> Check:
    found = {item: sum(bool(VERDICT_MARK.search(text)) for text in _all(content)) for item, content in texts.items()}
    marked = {item: count for item, count in found.items() if count}
    if not marked:
        return Check("Verdicts inside texts", "ok", "No text contains a verdict such as [[A]].")
    named = ", ".join(f"{item} ({count:,})" for item, count in marked.items())
    return Check(
        "Verdicts inside texts",
        "warning",
        f"Texts contain a verdict such as [[A]], which may sway a judge: {named}. Read them.",
    )


def _all(content: Any) -> Sequence[str]:
    return list(content.values()) if isinstance(content, Mapping) else [str(content)]


def _family(study: Study) -> Check | None:
    """Is a judge of the family of an item? One judge alone cannot show that it prefers its own."""
    names = {one.judge: f"{one.judge} {one.given} {' '.join(one.panel)}".lower() for one in study.setups.judges}
    same = [
        f"{judge} and {item} ({family})"
        for family in FAMILIES
        for judge, words in names.items()
        for item in study.items
        if family in words and family in item.lower()
    ]
    if not same:
        return None
    way_out = "Models may prefer their own family. Ask a second judge, or compare with people: `shortlist audit`."
    return Check("Judge and item of one family", "warning", f"{'; '.join(same[:3])}. {way_out}")
