"""Docs that cannot drift: names, links, commands, and every block of code."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.sweep import sweep_names
from shortlist.cli.app import app
from tests.docs_pages import check_output, parse, run_page

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "shortlist"
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page_id(path):
    return path.relative_to(ROOT).as_posix()


def names_in_the_source():
    found = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
    return found


def test_every_name_of_the_notation_exists():
    table = (ROOT / "docs" / "notation.md").read_text()
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("|") and "`" in line]
    written = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(written) > 30
    assert written <= names_in_the_source()


def test_the_map_names_every_module():
    text = (ROOT / "docs" / "architecture.md").read_text()
    drawn = set(re.findall(r"^  (\w+)(?:\.py|/)", text, re.MULTILINE))
    real = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert drawn == real
    words = set(re.findall(r"\w+", "".join(re.findall(r"```.*?```", text, re.DOTALL))))
    modules = {path.stem for path in SOURCE.rglob("*.py") if "migrations" not in path.parts}
    assert not modules - words - {"__init__"}
    ours = re.search(r"^src/shortlist/\n(.*?)^experiments/", text, re.MULTILINE | re.DOTALL).group(1)
    assert set(re.findall(r"(\w+)\.py", ours)) <= modules


def anchors(page):
    """The headings of a page as the site and code hosts link them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("doc", DOCS, ids=page_id)
def test_links_lead_somewhere_and_no_machine_is_named(doc):
    text = doc.read_text()
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", text):
        file = doc.parent / target if target else doc
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"
    assert not re.search(r"/(home|root|work|tmp)/", text)


def test_every_experiment_is_explained():
    text = (ROOT / "docs" / "guides" / "reproduce.md").read_text()
    for name in sweep_names():
        assert f"run {name}" in text or f"plot {name}" in text, name
    made = re.search(r"^FIGURES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made
    assert {*made[1].split(), "smoke", "times-the-bound"} == set(sweep_names())


def test_the_readme_has_an_example_for_each_audience():
    text = (ROOT / "README.md").read_text()
    for words in ("shortlist run", "shortlist serve", "shortlist certify", "create_study", "shortlist simulate"):
        assert words in text


@pytest.mark.parametrize("page", DOCS, ids=page_id)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """Its Python in order in one namespace, its commands in the same folder; what is said to be printed is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHORTLIST_STORAGE", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # small simulations in this process; their results are the same
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    run_page(page)


@pytest.mark.parametrize(
    "words",
    ["nothing", "votes", "votes a.csv --no-such-option", "simulate --instance sst -k two"],
)
def test_a_wrong_command_in_a_page_is_noticed(words):
    with pytest.raises(Exception, match=r"."):
        parse(app, words.split())


def test_wrong_output_in_a_page_is_noticed():
    check_output("Top 2 of 4: a, b.\nError at most 0.047, 32 votes.", "Top 2 of 4: …\n… 32 votes.")
    with pytest.raises(AssertionError):
        check_output("Top 2 of 4: a, b. Error at most 0.047, 32 votes.", "Top 2 of 4: … 33 votes.")
    check_output("mean 1,205 ± 143.5 of 3 runs", "mean 691 ± 87 of 3 runs", numbers_differ=True)
    with pytest.raises(AssertionError):
        check_output("mean 1,205 ± 143.5 of 3 runs", "mean 691 ± 87 of 3 worlds", numbers_differ=True)


def commands_of(test):
    """Which of make's commands run a test, by its marks and those of its parameters."""
    path, name = test.split("::")
    tree = ast.parse((ROOT / "tests" / path).read_text())
    values = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign)
              for target in node.targets if isinstance(target, ast.Name)}  # fmt: skip
    (found,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    used = {node.id for decorator in found.decorator_list for node in ast.walk(decorator) if isinstance(node, ast.Name)}
    told = [*found.decorator_list, *(values[name] for name in {*used, "pytestmark"} & values.keys())]
    marks = {node.attr for part in told for node in ast.walk(part) if isinstance(node, ast.Attribute)}
    if {arg.arg for arg in found.args.args} & {"postgres_url", "browser"}:
        marks.add("slow")
    # `make slow` plays all of this file once more, with more runs
    more = {"slow"} if "sweep" in marks or path == "guarantee/test_edges.py" else set()
    return {"test"} | more if "slow" in marks else more or {"check"}


def test_every_promise_has_its_test():
    """Each test of docs/tests.md exists, and is run by the commands that its row names."""
    text = (ROOT / "docs" / "tests.md").read_text()
    test = r"`([\w/]+\.py::\w+)`"
    rows = [line for line in text.splitlines() if line.startswith("|") and re.search(test, line)]
    assert len(rows) > 50
    for row in rows:
        commands = set(row.rstrip("| ").rpartition("|")[2].strip().split(", "))
        assert commands == set().union(*(commands_of(found) for found in re.findall(test, row))), row
    for found in re.findall(test, text):
        assert commands_of(found)


def test_the_site_has_every_page():
    pages = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert pages == {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}


def test_the_makefile_explains_itself():
    text = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "check", "slow", "bench", "docs"):
        assert target in text


@pytest.mark.slow
def test_the_way_of_one_vote_names_every_file_that_it_passes():
    """Shared helpers with a line of their own in the map are left out."""
    command = [sys.executable, str(ROOT / "benchmarks" / "one_vote.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    passed = set(re.findall(r"^ +\d+ +([\w/]+\.py):", printed, re.MULTILINE))
    way = (ROOT / "docs" / "architecture.md").read_text().split("## The way of one vote")[1].split("\n## ")[0]
    assert len(passed) > 20
    assert {file for file in passed if f"`{file}`" not in way} <= {"core/problem.py", "core/sampling/__init__.py"}
