"""Items' texts as HTML that can do nothing: no raw HTML, no scripts, links and pictures from http(s) only."""

import html
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from shortlist.errors import BadProblem


def plain(text: str) -> str:
    """The text as it is; the page keeps its line breaks."""
    return html.escape(text)


def markdown(text: str) -> str:
    """CommonMark with tables. What looks like HTML is shown, not obeyed; pictures come only from the item itself."""
    rendered: str = _renderer().render(text)
    return rendered


def check_image(address: str) -> str:
    """An https picture, or one that was uploaded here."""
    if address.startswith("/uploads/"):
        return address
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise BadProblem(f"{address[:80]!r} is no address of a picture; give https://... or upload it")
    if set(address) & set(" \"'<>;,\\\n\r\t") or not address.isascii() or (port is not None and port == 0):
        raise BadProblem(f"{address[:80]!r} has characters that an address must not have; encode them")
    return address


def origin(address: str) -> str | None:
    """The site that a picture comes from, for the page's content policy; None if it is here."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else None


@lru_cache(1)
def _renderer() -> Any:
    from markdown_it import MarkdownIt

    class Harmless(MarkdownIt):
        def validateLink(self, url: str) -> bool:
            return urlsplit(url.strip()).scheme.lower() in ("http", "https", "mailto")

    parser = Harmless("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.disable("image")
    parser.add_render_rule("link_open", _link_open)
    return parser


def _link_open(self: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    tokens[place].attrSet("rel", "noopener noreferrer nofollow")
    tokens[place].attrSet("target", "_blank")
    rendered: str = self.renderToken(tokens, place, options, env)
    return rendered
