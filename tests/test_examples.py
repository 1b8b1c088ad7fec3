"""The examples run as they are, and find what is best in their worlds."""

import re
import subprocess
import sys
import tomllib
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


def test_the_gate_of_a_build(tmp_path):
    """The judge of this test prefers what comes first in the alphabet, nine times of ten."""
    (tmp_path / "items.txt").write_text("ann\nbob\ncid\ndee\n")
    (tmp_path / "cases.txt").write_text("\n".join(f"case {number}" for number in range(60)))
    (tmp_path / "judge.py").write_text(
        "import json, sys, zlib\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    slips = zlib.crc32((q['first'] + q['second'] + q['case']['id']).encode()) % 10 == 0\n"
        "    winner = 'first' if (q['first'] < q['second']) != slips else 'second'\n"
        "    print(json.dumps({'id': q['id'], 'winner': winner}), flush=True)\n"
    )
    (tmp_path / "shortlist.toml").write_text(
        f"items = 'items.txt'\nk = 2\ncases = 'cases.txt'\njudge = \"{sys.executable} judge.py\"\nkeep = 2\n"
    )
    gate = [sys.executable, str(EXAMPLES / "ci" / "gate.py")]

    def ended(item, *options):
        command = [*gate, item, "--config", "shortlist.toml", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)

    few = ended("bob", "--max-calls", "3", "--name", "few")
    assert (few.returncode, "nothing is proved" in few.stderr) == (3, True)
    assert ended("bob").returncode == 0
    out = ended("cid")
    assert (out.returncode, "is not in the top 2: " in out.stderr) == (1, True)
    unknown = ended("eve")
    assert (unknown.returncode, "there is no item" in unknown.stderr) == (2, True)
    assert ended("bob", "--delta", "7").returncode == 2
    read = tomllib.loads((EXAMPLES / "ci" / "shortlist.toml").read_text())
    assert read["judge"]["key-variable"] in (EXAMPLES / "ci" / "prompts.yml").read_text()
