"""What a run shows and asks with, compared with what the study's earlier votes were given on.

A vote is about what the judge was shown, so an edited text is another item, and a judge with another prompt is another
judge. A study holds digests of its texts, its cases and the settings of its judges (`Study.setups`). A run that comes
with others is refused before anything is asked. As long as no question was answered or is pending, all may change.

The text of a function (item, case) is known only when the function was called: it is compared then, before the judge is
called (`record_texts`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.core.draws import digest
from shortlist.errors import BadJudge, SetupChanged
from shortlist.judges.base import Call, Case, Judge, PanelJudge
from shortlist.judges.cases import Contents, case_of, text_of
from shortlist.study.claims import CasesClaim
from shortlist.study.events import Corrected, JudgeSetup, Materials, TextShown, fingerprint
from shortlist.study.storage import AnswerKey
from shortlist.study.study import Study

LISTED = 5  # names in a message
WORDS = {
    "base_url": "base URL",
    "options": "set of options",
    "votes": "set of recorded votes",
    "references": "set of reference answers",
    "system": "system prompt",
    "prompt_style": "prompt style",
    "verdict": "kind of verdict",
    "max_tokens": "limit of tokens",
}


@dataclass(frozen=True)
class RunSetup:
    """What a run shows and asks with. Votes are stored under the name `judge`."""

    judge: str
    given: str  # the judge's own name
    settings: Mapping[str, str]  # digests
    cases: Mapping[str, Case] | None
    contents: Contents | None
    notes: tuple[str, ...] = ()
    members: tuple[tuple[str, Mapping[str, str]], ...] = ()  # of a panel: names, and digests of settings

    def needs_texts(self, call: Call) -> bool:
        """Must a function be called before it is known what this call shows?"""
        return call.first_text is None and not (self.contents is None or isinstance(self.contents, Mapping))

    def key(self, call: Call) -> AnswerKey:
        """Calls with the same key share one answer: the same judge, asked with the same settings, is shown the same
        texts and case in the same order. Without cases, each question has keys of its own."""
        case, question = (None, call.id) if call.case is None else (call.case.id, None)
        given, settings = (self.given, self.settings) if call.member is None else self.members[call.member]
        if self.needs_texts(call):
            return AnswerKey(given, case, call.first, call.second, "", call.id)
        text = None if call.case is None else call.case.text
        shown = fingerprint([settings, text, call.first_text, call.second_text])
        return AnswerKey(given, case, call.first, call.second, shown, question)


def set_up(
    study: Study, judge: Judge, cases: Sequence[Case] | None, contents: Contents | None, as_new_judge: bool = False
) -> RunSetup:
    """Compare what a run comes with to what the study has recorded, and record what is new.

    Raises SetupChanged with all that differs; then nothing is written.
    """
    by_id = None if cases is None else {case.id: case for case in cases}
    settings, materials = settings_of(judge, cases), _materials(study, contents, by_id)
    panel = judge if isinstance(judge, PanelJudge) else None
    members = () if panel is None else tuple((one.name, settings_of(one, cases)) for one in panel.judges)
    names, how = tuple(name for name, _ in members), "" if panel is None else panel.how
    with study.transaction():
        changes = _material_changes(study, materials, contents, by_id)
        earlier = _with_other_settings(study, judge, settings)
        known = [
            one for one in study.setups.judges if judge.name in (one.given, one.judge) and one.settings == settings
        ]
        refused = [] if known or as_new_judge else _judge_changes(study, judge, settings, earlier)
        if changes or refused:
            raise SetupChanged(f"nothing was asked: {'. '.join([*changes, *refused])}")
        name = known[-1].judge if known else _free_name(study, judge.name)
        for question in study.pending_of(name):
            case_of(question, study.seed, by_id)  # raises if its case was not given
        _record(study, materials, [] if known else [JudgeSetup(name, judge.name, settings, names, how)])
        notes = [_note(study, one, settings) for one in earlier]
    return RunSetup(name, judge.name, settings, by_id, contents, tuple(notes), members)


def set_up_materials(
    study: Study, contents: Contents | None, cases: Sequence[Case] | None, shows_texts: bool = True
) -> None:
    """The same for people, who have no settings. `shows_texts` is False if they are shown names and not texts."""
    by_id = None if cases is None else {case.id: case for case in cases}
    materials = _materials(study, contents, by_id)
    if not shows_texts:
        materials = materials._replace(texts=None)
    with study.transaction():
        changes = _material_changes(study, materials, contents, by_id)
        if changes:
            raise SetupChanged(f"nothing was asked: {'. '.join(changes)}")
        _record(study, materials, [])


def correct_materials(
    study: Study, item: str, parts: Sequence[str], contents: Contents, cases: Sequence[Case] | None
) -> None:
    """Record that judges are shown something else of an item from now on, because its owner corrected it."""
    known = None if cases is None else {case.id: case for case in cases}
    study.record([_materials(study, contents, known), Corrected(item, tuple(parts))])


def record_texts(study: Study, call: Call) -> None:
    """Record the texts of a call that a function returned. Raises SetupChanged if judges were shown others before."""
    new = _new_texts(study, call)
    if new:
        with study.transaction():  # another run may have recorded them by now
            study.record(_new_texts(study, call))


def settings_of(judge: Judge, cases: Sequence[Case] | None = None) -> dict[str, str]:
    """Digests of all that decides a judge's answers, by setting. Empty for a judge that does not say."""
    settings: Any = getattr(judge, "settings", None)
    if settings is None:
        return {}
    named = settings if isinstance(settings, Mapping) else {"settings": settings}
    if getattr(judge, "shows_references", False):
        named = {**named, "references": {case.id: case.reference for case in cases or ()}}
    try:
        return {str(name): fingerprint(value) for name, value in named.items()}
    except (TypeError, ValueError) as reason:
        raise BadJudge(f"the settings of judge {judge.name!r} cannot be written as JSON: {reason}") from None


def _materials(study: Study, contents: Contents | None, cases: Mapping[str, Case] | None) -> Materials:
    digests = {name: fingerprint(case.text) for name, case in (cases or {}).items()}
    if contents is not None and not isinstance(contents, Mapping):
        return Materials(None, digests)
    return Materials({item: _text_digest(contents, item, cases) for item in study.items}, digests)


def _text_digest(contents: Any, item: str, cases: Mapping[str, Case] | None) -> str:
    if contents is None or not isinstance(contents[item], Mapping):
        return _shown_digest(contents, item, None)
    shown = [None] if cases is None else cases.values()
    return fingerprint({case.id if case else "": text_of(contents, item, case) for case in shown})


def _shown_digest(contents: Contents | None, item: str, case: Case | None) -> str:
    """An item without a text is shown by its name."""
    text = text_of(contents, item, case)
    return fingerprint(item if text is None else text)


def _material_changes(
    study: Study, materials: Materials, contents: Contents | None, cases: Mapping[str, Case] | None
) -> list[str]:
    """What is not as it was, in one sentence with the way out; none if nothing was asked yet."""
    texts = _changed_texts(study, materials, contents, cases)
    changes = [_text_change(texts)] if texts else []
    if study.setups.cases is not None and materials.cases is not None:
        changes += _case_changes(study.setups.cases, materials.cases, cases or {}, study.cases_claim)
    if not changes or not any(row.question is not None and row.status != "skipped" for row in study.rows):
        return []
    return [
        f"study {study.name!r} has votes on other texts or cases: {'; '.join(changes)}. Every vote is about what its "
        "judge was shown: an edited text is another item, and other cases are another question. Start a study of "
        "another name (--name), or put back what was changed"
    ]


def _changed_texts(
    study: Study, materials: Materials, contents: Contents | None, cases: Mapping[str, Case] | None
) -> list[str]:
    before = study.setups
    if materials.texts is None:
        return []
    if before.texts is not None:
        return [item for item in study.items if before.texts.get(item) != materials.texts[item]]
    found = []
    for item, shown in before.shown.items():
        there = {case: None if case is None else (cases or {}).get(case) for case in shown}
        known = [case for case, now in there.items() if case is None or now is not None]
        if any(_shown_digest(contents, item, there[case]) != shown[case] for case in known):
            found.append(item)
    return found


def _text_change(items: Sequence[str]) -> str:
    return f"the text{'s' * (len(items) > 1)} of {_listed(items)} {'are' if len(items) > 1 else 'is'} not the same"


def _case_changes(
    before: Mapping[str, str], now: Mapping[str, str], cases: Mapping[str, Case], claim: CasesClaim
) -> list[str]:
    """What is not as it was. A claim about cases like these allows more of them."""
    if bool(before) != bool(now):
        return [
            f"no cases are given, and there were {len(before):,}" if before else "cases are given, and there were none"
        ]
    edited = [name for name in now if name in before and before[name] not in ("", now[name])]
    new = [_shown_case(cases[name]) for name in now if name not in before and claim == "these"]
    gone = [name for name in before if name not in now]
    edits = [f"the text of case{'s' * (len(edited) > 1)} {_listed(edited)} is not the same"] if edited else []
    return edits + [
        f"case{'s' * (len(names) > 1)} {_listed(names)} {'are' if len(names) > 1 else 'is'} {what}"
        for names, what in ((new, "new"), (gone, "gone"))
        if names
    ]


def _shown_case(case: Case) -> str:
    """An id that was made from the text says nothing to a reader."""
    return case.id if case.id != digest(case.text) else case.text[:40]


def _with_other_settings(study: Study, judge: Judge, settings: Mapping[str, str]) -> list[JudgeSetup]:
    """Judges with answers that the user may take for this one: of the same name, or if this one's name is made from its
    settings, of the same kind."""
    unnamed = getattr(judge, "default_name", None) == judge.name
    return [
        one
        for one in study.setups.judges
        if one.settings != settings
        and (judge.name in (one.given, one.judge) or (unnamed and one.settings.get("kind") == settings.get("kind")))
        and _has_answers(study, one.judge)
    ]


def _has_answers(study: Study, judge: str) -> bool:
    """Or may have some soon: its pending questions count too."""
    return any(row.status != "skipped" for row in study.rows_of(judge))


def _judge_changes(study: Study, judge: Judge, settings: Mapping[str, str], earlier: Sequence[JudgeSetup]) -> list[str]:
    if not earlier:
        return []
    last = earlier[-1]
    return [
        f"judge {judge.name!r} has another {_changed(last.settings, settings)} than judge {last.judge!r}, who answered "
        f"study {study.name!r} before. To go on as a new judge, give --as-new-judge (in Python as_new_judge=True) or "
        "another --judge-name; or put back what was changed"
    ]


def _note(study: Study, earlier: JudgeSetup, settings: Mapping[str, str]) -> str:
    votes = sum(row.status == "counted" for row in study.rows_of(earlier.judge))
    given = f"{votes:,} vote{' was' if votes == 1 else 's were'} given by judge {earlier.judge!r}"
    return f"{given} with another {_changed(earlier.settings, settings)}, and still count"


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    names = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    return _joined(["kind"] if "kind" in names else [WORDS.get(name, name) for name in names])


def _free_name(study: Study, name: str) -> str:
    """The name itself, or with a number if it has votes that were given with other settings."""
    taken = {one.judge for one in study.setups.judges if _has_answers(study, one.judge)}
    number = 1
    while (free := name if number == 1 else f"{name}#{number}") in taken:
        number += 1
    return free


def _record(study: Study, materials: Materials, judges: list[JudgeSetup]) -> None:
    texts = None if materials.texts == study.setups.texts else materials.texts
    cases = None if materials.cases == study.setups.cases else materials.cases
    new: list[Materials | TextShown | JudgeSetup] = [] if texts is cases is None else [Materials(texts, cases)]
    if new or judges:
        study.record([*new, *judges])


def _new_texts(study: Study, call: Call) -> list[TextShown]:
    new, case = [], None if call.case is None else call.case.id
    for item, text in ((call.first, call.first_text), (call.second, call.second_text)):
        before, now = study.setups.text_of(item, case), fingerprint(text)
        if before is not None and before != now:
            on = "" if case is None else f" on case {case!r}"
            raise SetupChanged(
                f"study {study.name!r} cannot go on: the text of {item!r}{on} is not the one that judges were shown "
                "before, and an edited text is another item. Start a study of another name, or put the old text back. "
                "A function must return the same text whenever it is given the same item and case"
            )
        new += [TextShown(item, case, now)] if before is None else []
    return new


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - LISTED:,} more"] if len(names) > LISTED else []
    return _joined([*map(repr, names[:LISTED]), *more])


def _joined(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
