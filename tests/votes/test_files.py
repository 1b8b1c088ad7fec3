"""Files as they come: marks, endings, quotes, encodings, sizes; and files that are something else."""

import csv
import gzip
import json
import sys

import pytest

from shortlist.errors import BadVotes, NotInstalled
from shortlist.votes.read import inspect_votes, read_votes

HEAD = "first,second,outcome\n"


def write(tmp_path, data, name="votes.csv"):
    file = tmp_path / name
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return file


@pytest.mark.parametrize(
    "text",
    [
        "\ufefffirst,second,outcome\nx,y,1\n",
        "first,second,outcome\r\nx,y,1\r\n",
        "first,second,outcome\rx,y,1\r",
        "\n\n  \nfirst,second,outcome\n\nx,y,1\n\n,,\n",
        "first,second,outcome\nx,y,1",
        ' first , "second" , outcome \n x , y , 1 \n'.replace(' "second" ', ' "second"'),
        "first;second;outcome\nx;y;1\n",
        "first|second|outcome\nx|y|1\n",
        "first\tsecond\toutcome\nx\ty\t1\n",
        '"first";"second";"outcome"\n"x";"y";"1"\n',
        '"note, with comma";first;second;outcome\n1;x;y;1\n',
        '[{"first": "x", "second": "y", "outcome": 1}]',
        '\ufeff[\n  {"first": "x", "second": "y", "outcome": 1}\n]\n',
        '{"first": "x", "second": "y", "outcome": 1}\r\n\r\n',
        '{"first": "x", "second": "y", "outcome": 1.0, "weight": 1, "note": {"deep": [null]}}',
    ],
)
def test_one_vote_in_many_dresses(tmp_path, text):
    table = read_votes(write(tmp_path, text, "votes.txt"))
    assert (table.items, table.outcome.tolist()) == (("x", "y"), [1])


def test_names_may_hold_anything_that_is_text(tmp_path):
    text = HEAD + '"one\ntwo","a ""b"", c",1\n=1+1,@x,0\nπ 日本,🙂,0.5\nx,y,1\n'
    table = read_votes(write(tmp_path, text))
    assert table.items == ("one\ntwo", 'a "b", c', "=1+1", "@x", "π 日本", "🙂", "x", "y")
    assert table.line.tolist() == [2, 4, 5, 6]


def test_a_huge_field_is_just_a_field(tmp_path):
    limit = csv.field_size_limit()
    long = "z" * 1_000_000
    table = read_votes(write(tmp_path, f"first,second,outcome,note\n{long},y,1,{long}\n"))
    assert table.items[0] == long
    assert csv.field_size_limit() == limit
    with pytest.raises(BadVotes) as error:
        read_votes(write(tmp_path, f"first,second,winner\nx,y,{long}\n"))
    assert len(str(error.value)) < 500


def test_a_stray_quotation_mark_costs_its_own_line_only(tmp_path):
    rows = [f"x,y,{row % 2}" for row in range(100)]
    rows[10], rows[20], rows[21], rows[60], rows[99] = 'x,"y,1', '"x,y,1', 'x,y",1', 'x,"y"z,1', 'x,y,"1'
    reading = inspect_votes(write(tmp_path, HEAD + "\n".join(rows)))
    assert [row.line for row in reading.bad_rows] == [12, 22, 62, 101]
    assert 'y"' in reading.table.items  # inside a field a mark is a mark
    assert len(reading.table) == 96


def test_lines_of_json_that_are_broken(tmp_path):
    good = '{"first": "x", "second": "y", "winner": "x"}'
    broken = ["{", "[1]", '"x"', "null", '{"first": "x", "first": "y"}', "[" * 100_000, "9" * 5000, '{"first": NaN}']
    lines = [good, *broken, '{"first": "\\ud800", "second": "y", "winner": "tie"}', "", good]
    reading = inspect_votes(write(tmp_path, "\n".join(lines), "votes.jsonl"))
    assert [row.line for row in reading.bad_rows] == list(range(2, 11))
    assert reading.table.line.tolist() == [1, 12]
    assert all("\n" not in reason and len(reason) < 200 for _, reason in reading.bad_rows)


def test_entries_of_an_array_know_their_lines(tmp_path):
    entries = [{"first": "x", "second": "y", "winner": winner} for winner in ("x", "z", "y")]
    reading = inspect_votes(write(tmp_path, json.dumps([*entries, 7], indent=1), "votes.json"))
    assert reading.table.line.tolist() == [2, 12]
    assert [row.line for row in reading.bad_rows] == [7, 17]


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"", "v.csv", "columns none"),
        (b"\n \n", "v.csv", "columns none"),
        (b"", "v.jsonl", "columns none"),
        (b"[]", "v.json", "columns none"),
        (b"[", "v.json", "line 1: the array does not end"),
        (b'[{"first": 1}', "v.json", "line 1: a comma or the end of the array is missing"),
        (b'[{"first": 1}] x', "v.json", "does not end"),
        (b'[\n{"first": 1},\n{"first" 1}]', "v.json", "line 3: not JSON"),
        (b"{\n}", "v.json", "one object per line"),
        (b'{"\\ud800": 1}', "v.json", "a key that is not text"),
        (b"first,second\nx,y", "v.json", "does not begin like JSON"),
        (b"[id],x\n1,2\n", "v.csv", "columns \\[id\\], x"),
        (b'"first,second,outcome\nx,y,1\n', "v.csv", "line 1: the quotation marks of the header"),
        (b"first,second,outcome\nx,\xe9,1\n", "v.csv", "line 2: not UTF-8"),
        ("first,second,outcome\nx,y,1\n".encode("utf-16"), "v.csv", "is UTF-16"),
        (b"\x1f\x8b\x08\x00", "v.csv.gz", "cannot read"),
        (gzip.compress(gzip.compress(b"first", mtime=0), mtime=0), "v.csv.gz", "compressed twice"),
        (b"PK\x03\x04\x14", "v.csv", "an archive; unpack it"),
        (b"\xd0\xcf\x11\xe0", "v.xls", "an old Excel workbook"),
        (b"\x00\x01\x02\x03", "v.bin", "columns"),
        (b"first,second,outcome\n", "v.csv", "contains no votes"),
        (b"first,second,outcome\nx,a\x00b,1\n", "v.csv", "NUL character"),
        (b"first,second,outcome,weight\nx,y,1,1e15\n", "v.csv", "weight 1e\\+15"),
        (b"first,second,outcome,weight\nx,y,1,inf\n", "v.csv", "weight inf"),
        (b"first,second,outcome,weight\nx,y,1,nan\n", "v.csv", "weight nan"),
        (b"first,second,outcome,weight\nx,y,1,\n", "v.csv", "'' is not a number"),
        (b"first,second,outcome\nx,y,nan\n", "v.csv", "outcome nan"),
        (b"first,second,outcome\nx,y,1e999\n", "v.csv", "outcome inf"),
        (b"first,second,outcome\nx,y,1_0\n", "v.csv", "'1_0' is not a number"),
        (b"first;second;outcome\nx;y;0,5\n", "v.csv", "decimal point"),
        (b'{"first": "x", "second": "y", "outcome": true}', "v.jsonl", "True is not a number"),
        (b'{"first": "x", "second": "y", "outcome": 1' + b"0" * 400 + b"}", "v.jsonl", "is not a number"),
        (b'{"first": ["x"], "second": "y", "outcome": 1}', "v.jsonl", "is not a name"),
        (b"generator_1,generator_2,preference\nx,y,3\n", "v.csv", "preference 3"),
        (b"white,black,result\nx,y,*\n", "v.csv", "winner '\\*'"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, data, name, message):
    with pytest.raises(BadVotes, match=message) as error:
        read_votes(write(tmp_path, data, name))
    assert "\n" not in str(error.value)
    assert name in str(error.value)


def test_weights_that_no_double_can_count(tmp_path):
    rows = "x,y,1,1e12\n" * 1001
    with pytest.raises(BadVotes, match="add up to more than"):
        read_votes(write(tmp_path, "first,second,outcome,weight\n" + rows))


def test_what_is_no_file(tmp_path):
    for source, message in ((tmp_path, "cannot read"), ("a\0b", "cannot read"), (7, "not from int"), (None, "a path")):
        with pytest.raises(BadVotes, match=message):
            read_votes(source)


def test_packed_files_and_standard_input(tmp_path, monkeypatch):
    plain = write(tmp_path, HEAD + "x,y,1\n")
    lines = write(tmp_path, gzip.compress(b'{"first": "x", "second": "y", "outcome": 1}'), "votes.jsonl.gz")
    packed = write(tmp_path, gzip.compress(plain.read_bytes()), "votes.csv.gz")
    unnamed = write(tmp_path, gzip.compress(plain.read_bytes()), "votes")
    expected = read_votes(plain).outcome.tolist()
    for file in (lines, packed, unnamed):
        assert read_votes(file).outcome.tolist() == expected
    for file in (plain, packed):
        with file.open("rb") as opened:
            monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": opened}))
            reading = inspect_votes("-")
        assert (reading.file, reading.table.outcome.tolist()) == ("standard input", expected)
    with pytest.raises(BadVotes, match="cannot read"):
        read_votes(write(tmp_path, packed.read_bytes()[:-9], "cut.csv.gz"))


def test_excel_says_how_to_get_its_reader(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(NotInstalled, match=r"an Excel file needs openpyxl: pip install 'shortlist\[frames\]'"):
        read_votes(write(tmp_path, b"PK", "votes.xlsx"))


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in ([None, None], ["first", "second", "outcome"], ["x", "y", 1], [None], ["y", "x", 0.5]):
        book.active.append(row)
    book.create_sheet("no cells")
    book.save(tmp_path / "votes.xlsx")
    reading = inspect_votes(tmp_path / "votes.xlsx")
    assert reading.table.outcome.tolist() == [1, 0.5]
    assert (reading.numbered_by, reading.table.line.tolist()) == ("row", [3, 5])
    book.create_sheet("more").append(["a"])
    book.save(tmp_path / "two.xlsx")
    with pytest.raises(BadVotes, match="2 sheets with cells"):
        read_votes(tmp_path / "two.xlsx")
    with pytest.raises(BadVotes, match="cannot read"):
        read_votes(write(tmp_path, b"PK\x03\x04 broken", "broken.xlsx"))
