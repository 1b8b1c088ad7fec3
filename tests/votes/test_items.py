"""Items from files and folders."""

import base64

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shortlist.errors import BadProblem, BadUpload
from shortlist.votes.items import picture_url, read_items


@pytest.mark.parametrize(
    ("name", "text", "names", "contents"),
    [
        ("a.txt", "\ufeffone\n\n  two \r\nthree", ("one", "two", "three"), None),
        ("a.lst", "one, with a comma\ntwo", ("one, with a comma", "two"), None),
        ("a.csv", 'name,content\none,"1\n1"\ntwo,2\n', ("one", "two"), {"one": "1\n1", "two": "2"}),
        ("a.csv", "id,colour\n1,red\n2,blue\n", ("1", "2"), None),
        ("a.tsv", "item\ttext\none\t1, 1\ntwo\t2\n", ("one", "two"), {"one": "1, 1", "two": "2"}),
        ("a.jsonl", '{"name": "one", "content": "1"}\n\n{"name": "two", "content": "2"}', ("one", "two"),
         {"one": "1", "two": "2"}),
        ("a.jsonl", '{"name": "one"}\n{"name": "two"}', ("one", "two"), None),
    ],
)  # fmt: skip
def test_files(tmp_path, name, text, names, contents):
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert read_items(tmp_path / name) == (names, contents, frozenset())


def test_a_folder_shows_texts_and_paths(tmp_path):
    (tmp_path / "b.txt").write_text("the text")
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "inner").mkdir()
    found = read_items(tmp_path)
    assert found.names == ("a.jpg", "b.txt")
    assert found.contents == {"a.jpg": str(tmp_path / "a.jpg"), "b.txt": "the text"}
    assert found.files == {"a.jpg"}


def test_a_column_of_paths_has_files(tmp_path):
    (tmp_path / "a.csv").write_text("name,path\none,one.png\ntwo,two.png\n")
    assert read_items(tmp_path / "a.csv").files == {"one", "two"}


def test_a_picture_becomes_a_data_url(tmp_path):
    data = b"GIF89a" + bytes([1, 0, 1, 0]) + bytes(10)
    (tmp_path / "a.gif").write_bytes(data)
    assert picture_url(tmp_path / "a.gif") == "data:image/gif;base64," + base64.b64encode(data).decode()
    (tmp_path / "a.txt").write_text("not a picture")
    (tmp_path / "big.gif").write_bytes(data + bytes(5_000_000))
    for name, said in (("a.txt", "not a PNG"), ("big.gif", "too large"), ("none.gif", "cannot read")):
        with pytest.raises(BadUpload, match=said):
            picture_url(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "name,content\n,x\n", "line 2 has no name"),
        ("a.csv", "name,content\none,1\ntwo,2, and more\n", "line 3 has more cells than the first line"),
        ("a.jsonl", '{"name": "one"}\n[1]', "line 2 has no name"),
        ("a.jsonl", '{"name": "one"}\n{', "line 2 is not JSON"),
        ("a.jsonl", '{"name": "one", "content": 3}', "line 1 has a content that is not text"),
        ("a.txt", "", "contains no items"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadProblem, match=said):
        read_items(tmp_path / name)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=80), ending=st.sampled_from(["txt", "csv", "tsv", "jsonl"]))
def test_any_bytes_are_items_or_refused_in_one_line(tmp_path, data, ending):
    file = tmp_path / f"items.{ending}"
    file.write_bytes(data)
    try:
        found = read_items(file)
    except BadProblem as error:
        said = str(error)
    else:
        assert all(name == name.strip() != "" for name in found.names)
        return
    assert "\n" not in said.replace(str(file), "")
