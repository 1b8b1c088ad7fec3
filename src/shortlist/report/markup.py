"""HTML from nested calls. Plain strings are escaped always, so that no name can become markup."""

from collections.abc import Iterable, Sequence
from html import escape

VOID = frozenset({"meta", "br"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | None | Iterable["Child"]


def tag(name: str, *children: Child, **attributes: str | None) -> Html:
    """<name attribute="...">children</name>; class_ is class, aria_label is aria-label, None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    opening = f"<{name}{written}>"
    return Html(opening if name in VOID else f"{opening}{join(children)}</{name}>")


def join(children: Child) -> Html:
    """Children one after the other, strings escaped."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str):
        return Html(escape(children))
    return Html("".join(join(child) for child in children))


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Child]], numbers: frozenset[int]) -> Html:
    """A table whose first column names its rows; `numbers` are the columns to align right."""

    def cell(kind: str, column: int, content: Child, scope: str | None = None) -> Html:
        return tag(kind, content, class_="number" if column in numbers else None, scope=scope)

    titles = tag("tr", [cell("th", column, title, "col") for column, title in enumerate(head)])
    body = [
        tag("tr", [cell("td" if column else "th", column, content, None if column else "row") for column, content in
                   enumerate(row)])
        for row in rows
    ]  # fmt: skip
    whole = tag("table", tag("thead", titles), tag("tbody", body), aria_label=caption)
    wide = tag("div", whole, class_="wide", role="region", aria_label=caption, tabindex="0")
    return tag("figure", tag("figcaption", caption, "."), wide, class_="table")


def folded(summary: str, content: Child, fold: bool = True) -> Child:
    """The content, behind a line to click if asked."""
    return tag("details", tag("summary", summary), content) if fold else content


def name(text: str) -> Html:
    """A user's name for something, in its own writing direction."""
    return tag("bdi", text)
