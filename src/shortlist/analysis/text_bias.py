"""What a judge's answers go with, beside quality: length, one text for all cases, verdicts inside texts, families.

These are diagnoses, not corrections: a result that was corrected for length rests on a model, and a proof rests on
none.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shortlist.analysis.audit import Unit, lengths_of, units_of
from shortlist.analysis.checks import Check, percent
from shortlist.analysis.judges import wilson, win_chances
from shortlist.study.study import Study
from shortlist.votes.cells import VERDICT_MARK

ENOUGH = 20  # answers of a judge before anything is said about them
FAR = 3.3  # standard deviations from what the ratings expect
MOST_ALIKE = 0.5  # the share of cases on which an item may repeat one text
FAMILIES = ("gpt", "claude", "gemini", "gemma", "llama", "mistral", "qwen", "deepseek", "grok", "vicuna")


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
        if len(rows) < ENOUGH:
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
