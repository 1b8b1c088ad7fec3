"""The words of the pages, in the reader's language.

`words/en.json` has every text, by page; the other files translate it. The browser says which languages its reader
prefers, and what a language lacks is shown in English. To add a language, copy en.json and translate it.

A text may have {places} for values. A text with a number `n` may have two forms, "one" and "other".
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "words"
FIRST = "en"
Text = str | dict[str, str]


@lru_cache
def languages() -> tuple[str, ...]:
    """The languages that there are words in."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.json")))


@lru_cache
def load(language: str) -> Mapping[str, Mapping[str, Text]]:
    """All texts by page and name; English where the language lacks one."""
    first = json.loads((FOLDER / f"{FIRST}.json").read_text("utf-8"))
    own = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))
    return {page: {**texts, **own.get(page, {})} for page, texts in first.items()}


def choose_language(accepted: str | None) -> str:
    """The best language for an Accept-Language header such as `de-CH, de;q=0.9, en;q=0.8`."""
    wanted = []
    for place, part in enumerate((accepted or "").split(",")[:50]):
        tag, _, quality = part.strip().partition(";q=")
        try:
            weight = float(quality or 1)
        except ValueError:
            weight = 0.0
        if weight > 0 and (known := tag.strip().lower().partition("-")[0]) in languages():
            wanted.append((-weight, place, known))
    return min(wanted)[2] if wanted else FIRST


class Words:
    """The texts of one language: `words("judge.skip")`, `words("judge.answers", n=3)`."""

    def __init__(self, accepted: str | None) -> None:
        self.language = choose_language(accepted)
        self._texts = load(self.language)

    def __call__(self, name: str, **values: Any) -> str:
        page, _, rest = name.partition(".")
        found = self._texts[page][rest]
        text = found if isinstance(found, str) else found["one" if values.get("n") == 1 else "other"]
        return text.format(**values) if values else text

    def has(self, name: str) -> bool:
        page, _, rest = name.partition(".")
        return rest in self._texts.get(page, {})

    def for_script(self, *pages: str) -> str:
        """The texts of these pages as JSON, for the page's script."""
        found = {f"{page}.{name}": text for page in pages for name, text in self._texts.get(page, {}).items()}
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
