"""Every format as two items on two cases; each cell is compared with what was written."""

import gzip
import json
import re
from pathlib import Path

import pytest

from shortlist import inspect_outputs, read_outputs
from shortlist.outputs.formats import FORMATS, NAMES
from shortlist.outputs.rows import KINDS
from tests.outputs.samples import ASKED, CASES, DSPY_MAP, ITEMS, SAID, SAMPLES, dspy, long_lines, write

DOCS = Path(__file__).parents[2] / "docs" / "guides" / "outputs.md"
SHARED = Path(__file__).parents[2].parent / "shared" / "outputs"


@pytest.mark.parametrize("name", SAMPLES)
def test_every_cell_of_every_format(tmp_path, name):
    make, format, options, named, has_ids = SAMPLES[name]
    found = read_outputs(make(tmp_path), **options)
    assert {one.format for one in found.files} <= {format, "batch requests"}
    assert set(found.items) == {named.format(item) for item in ITEMS}
    asked = {case.id: ASKED[case.id] for case in found.cases} if has_ids else None
    texts = {case.id: case.text for case in found.cases}
    assert [text.rpartition("Turn 2: ")[2] for text in texts.values()] == list(ASKED.values())
    assert asked is None or list(asked) == list(CASES)
    ids = dict(zip(CASES, texts, strict=True))
    for (item, case), said in SAID.items():
        assert found.texts[named.format(item)][ids[case]] == said
    assert {len(cells) for cells in found.texts.values()} == {2}


@pytest.mark.parametrize("name", ["Inspect", "HELM", "lm-eval", "MT-bench", "Phoenix", "long lines", "DSPy"])
def test_references(tmp_path, name):
    make, _, options, _, _ = SAMPLES[name]
    expected = {"Inspect": "t", "lm-eval": "t", "MT-bench": "hi\nr"}.get(name, "r")
    assert {case.reference for case in read_outputs(make(tmp_path), **options).cases} == {expected}


def test_scores(tmp_path):
    make = SAMPLES["lm-eval"][0]
    assert read_outputs(make(tmp_path)).scores["lab/north"] == {case: {"exact_match": 0.0} for case in CASES}


def test_a_packed_file_and_standard_input(tmp_path, monkeypatch):
    (plain,) = long_lines(tmp_path)
    packed = tmp_path / "long.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    expected = read_outputs(plain).texts
    assert read_outputs(packed).texts == expected
    with plain.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        found = read_outputs("-")
    assert found.texts == expected
    assert found.files[0].file == "standard input"


def test_a_map_replaces_parts_of_a_known_format(tmp_path):
    make = SAMPLES["OpenAI batch"][0]
    found = read_outputs(make(tmp_path), map={"item": "@file", "output": "response.body.choices.0.message.role"})
    assert set(found.items) == set(ITEMS)
    assert {text for texts in found.texts.values() for text in texts.values()} == {"assistant"}


def test_without_a_map_nothing_is_guessed(tmp_path):
    found = inspect_outputs(dspy(tmp_path))
    assert {one.name for one in found.problems} >= {"unknown format"}
    assert "its fields are question, example_answer, pred_answer" in found.problems[0].text
    wrong = inspect_outputs(dspy(tmp_path), map={**DSPY_MAP, "output": "answer"})
    assert "there is no field 'answer'" in wrong.problems[0].text
    assert not found.items


def test_a_map_may_name_the_item_alone(tmp_path):
    rows = [{"run": i, "id": c, "prompt": ASKED[c], "response": said} for (i, c), said in SAID.items()]
    file = write(tmp_path / "a.jsonl", *rows)
    assert inspect_outputs(file).problems[0].name == "unknown format"
    found = read_outputs(file, map={"item": "run"})
    assert found.texts == {item: {case: SAID[item, case] for case in CASES} for item in ITEMS}
    files = [write(tmp_path / f"{i}.jsonl", *(row for row in rows if row["run"] == i)) for i in ITEMS]
    assert read_outputs(files, map={"text": "prompt"}).items == ITEMS


def test_a_format_can_be_named(tmp_path):
    file = write(tmp_path / "a.jsonl", *({"instruction": c, "output": "o", "model": i} for c in "xy" for i in "ab"))
    assert inspect_outputs(file).files[0].format == "AlpacaEval"
    found = read_outputs(file, format="long")
    assert (found.items, found.files[0].format) == (("a", "b"), "long")


def test_each_sample_fits_its_own_format_first(tmp_path):
    """The order of the table matters where two fit."""
    for number, (make, format, options, _, _) in enumerate(SAMPLES.values()):
        (tmp_path / str(number)).mkdir()
        found = inspect_outputs(make(tmp_path / str(number)), **options)
        assert found.files[0].format == format


def test_the_docs_have_every_format_and_every_problem():
    text = DOCS.read_text()
    for name in (*NAMES, *KINDS):
        assert f"`{name}`" in text, name
    assert len({known.name for known in FORMATS}) == len(FORMATS)


# --- samples beside the repository; they are not part of it ---

OPTIONS = {"dspy": {"map": {"item": "@file", "text": "question", "output": "pred_answer"}}, "wide.csv": {"wide": True}}


def shared_samples():
    found = [path for path in sorted(SHARED.glob("*")) if path.name not in ("README.md", "inspect", "traps")]
    return [[path] for path in found] + [sorted(SHARED.glob(f"inspect/*.{kind}")) for kind in ("json", "eval")]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the samples are not there")
def test_shared_samples():
    samples = shared_samples()
    assert len(samples) > 20
    for paths in samples:
        found = read_outputs(paths, **OPTIONS.get(paths[0].name, {}))
        assert [re.sub(r"\W*(acme|question)\W*", "", item)[:4] for item in sorted(found.items)] == ["alph", "beta"], (
            paths
        )
        assert [len(texts) for texts in found.texts.values()] == [2, 2]
        json.dumps(found.as_dict())


@pytest.mark.skipif(not SHARED.is_dir(), reason="the samples are not there")
def test_shared_traps():
    found = inspect_outputs(SHARED / "traps")
    places = {(one.name, one.where.rpartition(", ")[2]) for one in found.problems}
    assert places >= {
        ("thinking", "line 1"), ("empty", "line 2"), ("error", "line 3"), ("duplicate", "line 5"),
        ("case differs", "line 7"), ("not text", "line 8"), ("unended thinking", "line 9"),
        ("one text", "gamma"), ("verdict mark", "case c1"), ("verdict mark", "case c2"),
    }  # fmt: skip
