"""What a browser would make of a page: a strict reader for tests."""

import re
from html.parser import HTMLParser
from itertools import pairwise


class Page(HTMLParser):
    """Balanced tags, ids, text and everything that could load or run something."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.text, self.loads = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self._note(tag, dict(attributes))
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self._note(tag, dict(attributes))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)

    def _note(self, tag, attributes):
        if "id" in attributes:
            self.ids.append(attributes["id"])
        for name, value in attributes.items():
            assert not name.startswith("on"), f"{tag} would run {value}"
            if name.split(":")[-1] in ("href", "src", "srcset", "action", "data"):
                self.loads.append(value)

    @property
    def words(self):
        return re.sub(r"\s+", " ", " ".join(self.text))


def check(text):
    """A page that is whole, loads nothing and runs nothing."""
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids)), "ids are not unique"
    assert not {"script", "link", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    for target in page.loads:
        assert target.startswith(("#", "data:image/png;base64,")), target
        assert not target.startswith("#") or target[1:] in page.ids, target
    for target in re.findall(r"url\(([^)]*)\)", text):
        assert target.strip("\"'#") in page.ids, target
    for label in re.findall(r'aria-labelledby="([^"]*)"', text):
        assert set(label.split()) <= set(page.ids)
    assert "http:" not in text
    assert "https:" not in text
    assert page.tags.count("h1") == 1
    headings = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(later <= earlier + 1 for earlier, later in pairwise(headings))
    return page
