"""What a judge is shown for an item: its name, its text, or what it says on a case."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from shortlist.errors import BadJudge
from shortlist.judges.callables import in_thread
from shortlist.judges.judge import Asked, Case

Contents = Mapping[str, str] | Mapping[str, Mapping[str, str]] | Callable[[str, Case | None], str]


def check_contents(contents: Contents, items: Sequence[str]) -> None:
    """Is there something to show for every item? What a function gives is seen when it is called."""
    if isinstance(contents, Mapping):
        missing = [item for item in items if item not in contents]
        if missing:
            raise BadJudge(f"no text for {', '.join(map(repr, missing[:5]))}; contents needs an entry for every item")
    elif not callable(contents):
        raise BadJudge("contents must map items to texts, items to texts by case id, or be a function (item, case)")


async def fill(asked: Asked, contents: Contents | None) -> Asked:
    """The call with the texts of both items. A function may take its time: it runs in a thread."""
    if contents is None:
        return asked
    if isinstance(contents, Mapping):
        texts = [_look_up(contents[item], item, asked.case) for item in (asked.first, asked.second)]
    else:
        texts = [_checked(await in_thread(contents, item, asked.case), item) for item in (asked.first, asked.second)]
    return replace(asked, first_text=texts[0], second_text=texts[1])


def _look_up(entry: str | Mapping[str, str], item: str, case: Case | None) -> str:
    if not isinstance(entry, Mapping):
        return _checked(entry, item)
    if case is None or case.id not in entry:
        raise BadJudge(f"no text of {item!r} for case {case.id if case else None!r}; contents needs one for every case")
    return _checked(entry[case.id], item)


def _checked(text: object, item: str) -> str:
    if not isinstance(text, str):
        raise BadJudge(f"the text of {item!r} is a {type(text).__name__}; give a string")
    return text
