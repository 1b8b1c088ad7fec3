import json

import pytest
from scipy.stats import chisquare, fisher_exact

import shortlist
from shortlist.core.draws import draw_case
from shortlist.errors import BadCases
from shortlist.judges.cases import check_cases, read_cases
from tests.judges.world import ITEMS


def file(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_text_file_has_a_case_per_line(tmp_path):
    cases = read_cases(file(tmp_path, "c.txt", "\ufeffone\r\n\n  two, 2  \nthrée"))
    assert [case.text for case in cases] == ["one", "two, 2", "thrée"]
    assert len({case.id for case in cases}) == 3


def test_ids_stay_when_a_file_grows(tmp_path):
    before = read_cases(file(tmp_path, "c.txt", "one\ntwo"))
    after = read_cases(file(tmp_path, "c.txt", "zero\none\ntwo"))
    assert after[1:] == before
    assert check_cases(["one", "two"]) == before


def test_json_lines(tmp_path):
    lines = [{"id": 7, "text": "one\ntwo", "more": []}, {"text": "three"}, {"id": "x", "text": "four"}]
    cases = read_cases(file(tmp_path, "c.jsonl", "\n".join(map(json.dumps, lines)) + "\n\n"))
    assert [case.text for case in cases] == ["one\ntwo", "three", "four"]
    assert (cases[0].id, cases[2].id) == ("7", "x")


def test_csv(tmp_path):
    cases = read_cases(file(tmp_path, "c.CSV", 'id,text,notes\na,"one, ""1""\nsecond line",x\n,two,\n'))
    assert [case.text for case in cases] == ['one, "1"\nsecond line', "two"]
    assert cases[0].id == "a"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.txt", "\n \n", "contains no cases"),
        ("c.txt", "one\ntwo\none", "line 3 repeats the case of line 1"),
        ("c.txt", b"\xff\xfe\x00", "cannot read"),
        ("c.jsonl", '{"text": "one"}\nnope', "line 2 is not JSON"),
        ("c.jsonl", "[" * 100_000, "line 1 is not JSON"),
        ("c.jsonl", '{"text": 3}', "line 1: a case needs a text"),
        ("c.jsonl", '"one"', "line 1: a case needs a text"),
        ("c.jsonl", '{"id": [1], "text": "one"}', "line 1: id"),
        ("c.jsonl", '{"id": 1, "text": "one"}\n{"id": "1", "text": "two"}', "line 2 repeats"),
        ("c.csv", "id,prompt\n1,one", "has no column `text`"),
        ("c.csv", "id,text\n1", "line 2: a case needs a text"),
        ("c.csv", "", "has no column"),
        ("c.xlsx", "", "is not a .txt, .jsonl, .csv file"),
    ],
)
def test_files_that_make_no_sense(tmp_path, name, text, said):
    with pytest.raises(BadCases) as caught:
        read_cases(file(tmp_path, name, text))
    assert said in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(BadCases, match="No such file"):
        read_cases(tmp_path / "c.txt")


@pytest.mark.parametrize("cases", ["one", [], ["one", "one"], [3], [""], [shortlist.Case("a", "x")] * 2])
def test_lists_that_make_no_sense(cases):
    with pytest.raises(BadCases):
        check_cases(cases)


def test_cases_are_drawn_fairly_and_the_same_again():
    cases = check_cases([str(number) for number in range(10)])
    drawn = [draw_case(3, question, cases) for question in range(5000)]
    assert chisquare([drawn.count(case) for case in cases]).pvalue > 1e-3
    assert drawn == [draw_case(3, question, cases) for question in range(5000)]
    assert drawn != [draw_case(4, question, cases) for question in range(5000)]


def test_cases_know_nothing_of_sides():
    cases = check_cases(["one", "two"])
    table = [[0, 0], [0, 0]]
    study = shortlist.create_study(ITEMS, k=2, sampling="uniform", stopping="edges", seed=1)
    for question in study.ask(600):
        one = draw_case(study.seed, question.id, cases) == cases[0]
        table[one][question.first < question.second] += 1
    assert fisher_exact(table).pvalue > 1e-3
