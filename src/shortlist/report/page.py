"""The report of a study as one HTML page: no scripts, nothing loaded, light and dark, on paper and on a phone."""

from importlib.resources import files
from pathlib import Path

from shortlist import __version__
from shortlist.errors import BadInput
from shortlist.findings.findings import Findings, findings_of
from shortlist.report.items import items_section
from shortlist.report.judges import judges_section
from shortlist.report.markup import Html, name, tag
from shortlist.report.pairs import asked_section, matrix_section
from shortlist.report.trust import trust_section
from shortlist.report.verdict import bound_section, verdict_section
from shortlist.study.study import Study

# Even if a name slipped through as markup, the browser would run and load nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(source: Study | Findings, path: str | Path) -> None:
    """The report of a study, or of findings, as an HTML file. Raises BadInput if it cannot be written."""
    text = make_report(source)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as reason:
        raise BadInput(f"cannot write {path}: {reason.strerror or reason}") from None


def make_report(source: Study | Findings) -> str:
    """The whole page. Raises NotInstalled without matplotlib."""
    found = findings_of(source)
    sections = [
        items_section(found), bound_section(found), asked_section(found), matrix_section(found), trust_section(found),
        judges_section(found),
    ]  # fmt: skip
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{found.name}: top {found.problem.k} of {found.problem.n}"),
        tag("style", Html(files("shortlist.report").joinpath("page.css").read_text())),
    )
    title = tag("header", tag("p", "Report of a study" if found.method else "Report of a vote file", class_="kind"),
                tag("h1", name(found.name)), verdict_section(found))  # fmt: skip
    foot = tag("footer", tag("p", f"Made by shortlist {__version__}. docs/report.md says how each figure is computed."))
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', title, tag('main', sections), foot), lang='en')}\n"
