"""The examples run as they are, and find what is best in their worlds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
BEST = {
    "prompts.py": {"reason then check", "three examples", "step by step"},
    "scores.py": {"program a", "program b"},
    "photos.py": {"bridge.jpg", "harbour.jpg"},
}


def test_every_example_is_here_and_in_the_list():
    files = {file.name for file in EXAMPLES.glob("*.py")}
    assert files == set(BEST)
    told = (EXAMPLES / "README.md").read_text()
    assert all(f"({name})" in told for name in files)


@pytest.mark.parametrize("name", BEST)
def test_examples(name, tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    (top,) = re.findall(r"Top \d of \d+: (.*)\. Error at most 0\.0", done.stdout)
    assert set(top.split(", ")) == BEST[name]
    assert not list(tmp_path.iterdir())
