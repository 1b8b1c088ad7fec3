"""The server of a language model dies in mid-run, or says nothing: real processes, killed for real."""

import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import shortlist
from tests.judges.world import ITEMS

ROOT = Path(__file__).parents[2]
CASES = [f"case {number}" for number in range(60)]
SOON = shortlist.Backoff(first=0.05, most=0.05)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@contextmanager
def server(port, file, *options):
    command = [sys.executable, "-m", "tests.judges.server_process", str(port), str(file), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return free_port(), tmp_path / "paid.txt"


def judge_at(port):
    return shortlist.EndpointJudge(f"http://127.0.0.1:{port}/v1", "tiny", key_variable=None)


def run(study, port, **options):
    return shortlist.run_study(
        study, judge_at(port), cases=CASES, **{"backoff": SOON, "workers": 4, "patience": 60.0, **options}
    )


def new_study(tmp_path):
    return shortlist.create_study(ITEMS, 2, storage=f"sqlite:///{tmp_path}/s.db", name="s", delta=0.1)


def test_a_server_that_is_killed_and_started_again_goes_on(place, tmp_path):
    """Answers that it had generated and not sent are paid for by nobody but the server; all others are stored, and no
    question is asked again that has its answer."""
    port, file = place
    study, warnings, stack = new_study(tmp_path), [], []

    def progress(so_far):
        if len(stack) == 1 and so_far.verdict.votes >= 10:
            stack[0].kill()
            stack[0].wait()
            stack.append(None)

    def warn(text):
        warnings.append(text)
        if "waiting for the judge" in text and len(stack) == 2:
            second = server(port, file)
            stack.append(second.__enter__())
            stack.append(second)

    with server(port, file) as first:
        stack.append(first)
        found = run(study, port, progress=progress, warn=warn)
    assert found.verdict.reason == "certified"
    assert len(stack) == 4, warnings
    stack[3].__exit__(None, None, None)
    paid = file.read_text().splitlines()
    answers = [reply for reply in study.storage.replies("s") if reply.outcome is not None]
    lost = len(paid) - len(answers)
    assert 0 <= lost <= 4  # under way when it was killed, with 4 workers
    assert len(answers) == len({(reply.case, reply.first, reply.second) for reply in answers})  # none twice
    stored = {(row.case, row.first, row.second) for row in study.rows if row.outcome is not None}
    assert stored <= {(reply.case, reply.first, reply.second) for reply in answers}


def test_a_server_that_accepts_and_sends_nothing_is_given_up_and_named(place, tmp_path):
    port, file = place
    study = new_study(tmp_path)
    with server(port, file, "silent"), pytest.raises(shortlist.errors.JudgeFailed, match="questions were all skipped"):
        run(study, port, time_limit=0.2, retries=0, workers=8)
    assert study.verdict.votes == 0
    with server(port, file):
        assert run(study, port).verdict.reason == "certified"
    paid = file.read_text().splitlines()
    answers = [reply for reply in study.storage.replies("s") if reply.outcome is not None]
    assert len(paid) == len(set(paid)) == len(answers)
