"""Docs that cannot drift: names, files, commands and the README's own code."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shortlist
from shortlist.experiments.sweep import sweep_names

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "shortlist"
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


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


@pytest.mark.parametrize("doc", DOCS, ids=lambda path: path.name)
def test_links_lead_somewhere_and_no_machine_is_named(doc):
    text = doc.read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (doc.parent / target).exists(), target
    assert not re.search(r"/(home|root|work|tmp)/", text)


def test_every_command_in_the_docs_exists():
    commands = {
        "demo", "certify", "oracle", "simulate", "replay", "experiment", "votes", "create", "status", "ask", "tell",
        "import", "export", "storage", "report", "run", "judge", "serve",
    }  # fmt: skip
    for doc in DOCS:
        for line in re.findall(r"^\$ shortlist (\w+)", doc.read_text(), re.MULTILINE):
            assert line in commands


def test_every_experiment_is_explained():
    text = (ROOT / "docs" / "reproduce.md").read_text()
    for name in sweep_names():
        assert f"run {name}" in text or f"plot {name}" in text, name
    made = re.search(r"^FIGURES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made
    assert {*made[1].split(), "smoke", "times-the-bound"} == set(sweep_names())


def test_the_readme_mentions_every_public_function():
    text = (ROOT / "README.md").read_text()
    for name in (
        "create_study",
        "find_top",
        "run_study",
        "fit",
        "certify",
        "solve_oracle",
        "simulate",
        "read_votes",
        "write_votes",
        "write_report",
    ):
        assert name in shortlist.__all__
        assert name in text


def test_the_readme_code_runs_and_prints_what_it_says():
    text = (ROOT / "README.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=120, capture_output=True, text=True)
    said = re.search(r"print\(study.verdict\)  # (.*)", text)
    assert said
    assert said[1] in done.stdout


def test_the_code_about_judges_runs():
    text = (ROOT / "docs" / "judges.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=120, capture_output=True, text=True)
    assert done.stdout.count("Top 2 of 4") == 2
    assert "asking again gives no new votes" in done.stdout


def test_the_code_about_reports_runs(tmp_path):
    text = (ROOT / "docs" / "report.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "4 items\n"
    assert (tmp_path / "report.html").exists()


def test_the_makefile_explains_itself():
    text = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "check", "slow", "bench"):
        assert target in text
