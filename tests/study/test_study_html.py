"""Studies and verdicts in a notebook."""

import re

from shortlist import create_study
from tests.report.html import Page

EVIL = "<script>alert(1)</script>"


def told(votes):
    study = create_study(["ash", "birch & co", EVIL], 1, 0.05, seed=1)
    for _ in range(votes):
        question = study.ask()
        study.tell(question, winner=min(question.first, question.second))
    return study


def test_a_study_is_its_verdict_and_a_table_of_items():
    study = told(6)
    page = Page(study._repr_html_())
    assert str(study.verdict) in page.words
    assert "6 votes so far" in page.words
    assert page.tags.count("tr") == 4
    assert all(item in page.words for item in study.items)
    assert "script" not in page.tags


def test_the_answer_comes_first_and_votes_are_those_that_count():
    study = told(6)
    rows = re.findall(
        r"<tr><td>(\d)</td><td>(.*?)</td><td>.*?</td><td>(\d+)</td><td>(.*?)</td></tr>", study._repr_html_()
    )
    assert [int(rank) for rank, *_ in rows] == [1, 2, 3]
    assert [status.split(",")[0] for *_, status in rows] == ["in", "out", "out"]
    assert sum(int(votes) for _, _, votes, _ in rows) == 2 * len(study.votes)


def test_a_verdict_says_what_is_proved():
    study = told(0)
    assert "in, not proved" in study.verdict._repr_html_()
    while not study.verdict.done:
        question = study.ask()
        study.tell(question, winner=min(question.first, question.second))
    page = Page(study.examine()._repr_html_())
    assert "in, proved" in page.words
    assert "not proved" not in page.words
    assert "to go" not in page.words
    assert page.tags.count("td") == 6
