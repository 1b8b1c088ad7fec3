"""The page: whole, closed to the network, safe with any name, and it says what the analysis says."""

import re
from importlib.resources import files

import numpy as np
import pytest
from markupsafe import Markup

import shortlist
from shortlist.analysis import analyse_study, analyse_votes
from shortlist.errors import BadInput
from shortlist.report.page import environment, make_report, write_report
from shortlist.study.rows import STATUSES
from tests.analysis.studies import KINDS, analysis_of, report_of, study_of, table
from tests.report.html import check

pytestmark = pytest.mark.slow

EVIL = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "</title></svg><svg onload=alert(3)>", "a & b < c",
    "$\\frac{1}{0}$ $x_", "‮desrever", "line\nbreak\ttab", "ü" * 300, "javascript:alert(4)", "{{7*7}} ${x} %s",
)  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    ["certified", "no votes", "one vote", "paused", "gaussian", "only ties", "graded", "imported", "voided", "pending",
     "one judge", "nobody named", "budget", "glr"],
)  # fmt: skip
def test_a_report_of_every_kind_of_study(kind):
    analysis, page = analysis_of(kind), check(report_of(kind))
    for one in analysis.ranking.items:
        assert one.item in page.words
    for one in analysis.checks.results:
        assert re.sub(r"\s+", " ", f"{one.name}. {one.sentence}") in page.words
    assert analysis.verdict.guarantee in page.words
    assert ("Guarantee:" in page.words) == bool(analysis.verdict.guarantee)
    for caveat in analysis.verdict.caveats:
        assert f"Caveat: {caveat}" in page.words
    said = {
        "paused": "is paused", "budget": "budget is used up", "voided": "of a voided judge are not counted: bob.",
        "pending": "3 questions are pending.",
    }  # fmt: skip
    for other, words in said.items():
        assert (words in page.words) == (other == kind)


def test_the_answer_and_its_bound_are_on_it():
    verdict, page = study_of("certified").verdict, check(report_of("certified"))
    assert f"Proved: the top 2 of 6 after {verdict.votes:,} votes." in page.words
    assert f"The error bound is {verdict.error_bound:.2g}; you allowed 0.2." in page.words
    assert "not proved" not in page.words
    assert "not proved" in check(report_of("paused")).words


def test_every_status_is_on_it():
    page, counts = check(report_of("voided")), analysis_of("voided").counts
    for status in STATUSES:
        assert re.search(rf"\b{status}\s+{getattr(counts, status)}\s", page.words), status


def test_a_report_of_a_vote_file():
    page = check(make_report(analyse_votes(table(300), 2, name="votes.csv")))
    assert "Report on a vote file" in page.words
    assert "votes.csv" in page.words


def test_glr_of_many_items_says_why_it_has_no_curve():
    study = shortlist.create_study([f"item {i}" for i in range(60)], 20, stopping="glr", sampling="uniform")
    analysis = analyse_study(study)
    assert analysis.bound_history == ()
    section = environment().get_template("error_bound.html.j2")
    assert "takes too long" in section.render(analysis=analysis, figures={"bound": None})


def test_names_stay_names():
    """Items, judges and file names that try to be markup, formulas or directions."""
    rng = np.random.default_rng(1)
    pairs = [rng.permutation(len(EVIL))[:2] for _ in range(300)]
    judges = [EVIL[int(number)] for number in rng.integers(0, len(EVIL), 300)]
    votes = shortlist.make_table(
        [EVIL[i] for i, _ in pairs], [EVIL[j] for _, j in pairs], rng.integers(0, 2, 300).astype(float), judge=judges
    )
    text = make_report(analyse_votes(votes, 3, name=EVIL[0]))
    page = check(text)
    for name in EVIL:
        assert re.sub(r"\s+", " ", name) in page.words
    assert "<script" not in text
    assert "<img" not in text
    assert text.count("<svg") == len(re.findall(r'<svg viewBox="[\d. ]+" role="img"', text))


def test_strings_are_escaped_and_markup_is_not():
    template = environment().from_string('<p title="{{ text }}">{{ text }}{{ markup }}</p>')
    assert template.render(text='<b>"', markup=Markup("<b>")) == '<p title="&lt;b&gt;&#34;">&lt;b&gt;&#34;<b></p>'
    for name in environment().list_templates():
        source = files("shortlist.report").joinpath("templates", name).read_text()
        assert not re.search(r"\|\s*safe\b|autoescape", source), name


def test_the_same_study_makes_the_same_bytes():
    def without_times(text):
        """Nor the hash of the record, which covers them."""
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC|\b[0-9a-f]{64}\b", "", text)

    assert without_times(make_report(KINDS["one vote"]())) == without_times(report_of("one vote"))


def test_many_items_stay_small():
    rng, n = np.random.default_rng(2), 200
    pairs = [rng.permutation(n)[:2] for _ in range(8000)]
    votes = shortlist.make_table(
        [f"item {i}" for i, _ in pairs], [f"item {j}" for _, j in pairs], [float(i < j) for i, j in pairs]
    )
    text = make_report(analyse_votes(votes, 20, stopping="posterior"))
    check(text)
    assert len(text) < 700_000


def test_a_report_that_cannot_be_written(tmp_path):
    study = study_of("no votes")
    with pytest.raises(BadInput, match="cannot write"):
        write_report(study, tmp_path / "nowhere" / "report.html")
    write_report(study, tmp_path / "report.html")
    check((tmp_path / "report.html").read_text(encoding="utf-8"))


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_can_be_read():
    """WCAG AA: 4.5 to 1 for everything that is text, on both papers, in light, dark and print."""
    css = files("shortlist.report").joinpath("templates", "page.css").read_text()
    palettes = [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in css.split(":root")[1:]]
    assert len(palettes) == 3
    for palette in palettes:
        for paper in ("paper", "wash"):
            for ink in ("ink", "soft", "blue", "orange", "fine", "look"):
                lights = sorted(luminance(palette[name]) for name in (paper, ink))
                assert (lights[1] + 0.05) / (lights[0] + 0.05) >= 4.5, (paper, ink)
