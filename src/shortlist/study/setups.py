"""What the votes of a study were given on: digests of the texts and cases that judges were shown, and of the settings
they answered with. A run compares them with what it comes with (judges/setup.py)."""

import hashlib
import json
from typing import Any, NamedTuple

from shortlist.study.events import JudgeSetup, Materials, TextShown


class Setups(NamedTuple):
    """The fold of the events about texts, cases and judges."""

    texts: dict[str, str] | None = None  # by item; None if no run has said
    cases: dict[str, str] | None = None  # by id; empty: the items are compared without cases
    shown: dict[str, dict[str | None, str]] = {}  # noqa: RUF012  by item and case id, from a function; never changed
    judges: tuple[JudgeSetup, ...] = ()  # one for each name that votes are stored under, the newest last

    def with_materials(self, event: Materials) -> "Setups":
        texts = self.texts if event.texts is None else event.texts
        return self._replace(texts=texts, cases=self.cases if event.cases is None else event.cases)

    def with_text(self, event: TextShown) -> "Setups":
        texts = {**self.shown.get(event.item, {}), event.case: event.digest}
        return self._replace(shown={**self.shown, event.item: texts})

    def with_judge(self, event: JudgeSetup) -> "Setups":
        others = [other for other in self.judges if other.judge != event.judge]
        return self._replace(judges=(*others, event))

    def text_of(self, item: str, case: str | None) -> str | None:
        """The digest of the text that judges were shown for an item on a case."""
        shown = self.shown.get(item, {}).get(case)
        return shown if shown is not None or self.texts is None else self.texts.get(item)


def fingerprint(value: Any) -> str:
    """32 letters that stand for a value that JSON can hold. Raises TypeError or ValueError if it cannot."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()
