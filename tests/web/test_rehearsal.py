"""The program of the tutorial for a judging event plays judges until the study is proved."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "judging-event.md"


@pytest.mark.slow
def test_the_rehearsal_of_the_tutorial_ends_with_a_proof(owner, name, tmp_path):
    text = PAGE.read_text()
    program = re.search(r'```python title="rehearse.py"\n(.*?)```', text, re.DOTALL)
    lines = re.search(r"```text\n(    Harbour.*?)```", text, re.DOTALL)
    items = [line.split("|") for line in lines[1].strip().splitlines()]
    owner.create(name, [{"name": poster.strip(), "text": about.strip()} for poster, about in items], 2, delta=0.6)
    made = owner.http.post(f"/api/studies/{name}/judges", json={"names": ["Bob", "Cleo"]}).json()["links"]
    (tmp_path / "rehearse.py").write_text(program[1])
    command = [sys.executable, "rehearse.py", name, *(link["link"] for link in made)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=True)
    board = owner.look(name)
    assert board["verdict"]["done"]
    counts = board["counts"]  # the last answers settle after the one that is enough
    assert done.stdout.startswith(f"{counts['counted'] + counts['answered']} votes.")
    assert board["verdict"]["votes"] <= counts["counted"] <= board["verdict"]["votes"] + 6  # three of each judge
