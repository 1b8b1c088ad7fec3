"""Several processes on one study: every vote is there, once, and belongs to who gave it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shortlist import create_study, load_study
from tests.patience import PATIENCE


def play_together(url, folder, hands, votes):
    create_study([f"item {i}" for i in range(20)], 5, 1e-9, storage=url, name="many", max_votes=votes)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("concurrent_process.py")), url]
    processes = [
        subprocess.Popen([*command, f"hand {i}", str(folder / f"{i}.log")], env=environment, stderr=subprocess.PIPE)
        for i in range(hands)
    ]
    for hand in processes:
        _, said = hand.communicate(timeout=2 * PATIENCE)
        assert hand.returncode == 0, said.decode()
        assert all(line.startswith(b"waiting up to") for line in said.splitlines()), said.decode()
    return load_study("many", url)


def check(url, folder, hands, votes):
    study = play_together(url, folder, hands, votes)
    told = {}
    for i in range(hands):
        for line in (folder / f"{i}.log").read_text().splitlines():
            number, rest = line.split(" ", 1)
            assert int(number) not in told, "two hands told one question"
            told[int(number)] = f"hand {i}", rest
    kept = {a.question: (a.judge, f"{a.first} {a.second} {a.outcome}") for a in study.rows}
    assert kept == told
    assert len(kept) == study.verdict.votes == votes
    assert study.verdict.reason == "budget"


@pytest.mark.slow
def test_four_processes_lose_and_double_nothing(url, tmp_path):
    check(url, tmp_path, hands=4, votes=200)


@pytest.mark.sweep
def test_eight_processes_and_ten_thousand_votes(url, tmp_path):
    check(url, tmp_path, hands=8, votes=10_000)
