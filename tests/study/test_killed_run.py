"""`shortlist run` with 8 workers, killed with SIGKILL at random moments and started again: nothing is lost or doubled,
and the verdict is the one of a run that nobody killed.

What "the one of a run that nobody killed" means needs care: answers come back in another order every time, and the next
question depends on the answers there are. Two set-ups make equality a theorem.

1. `uniform` with `glr`. What uniform asks next depends on how often each pair was asked, and on nothing else, so the
   questions are the same whatever the order of answers. The judge answers by the question's number alone. And glr folds
   answers in the order asked. So the verdict is a function of the seed, and an undisturbed run with other delays must
   end with exactly the same one.
2. `bridge` with `edges`, and cases. Here the questions do depend on the order of answers. But where a study stands is
   the fold of its events, and who asked or was killed in between does not enter. So a study in memory that is asked
   and told in the recorded order, without a pause, must give out exactly the recorded questions, cases and bets, and
   end with exactly the same verdict. The judge answers by pair, order and case.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shortlist import Call, Case, CommandJudge, create_study, load_study
from shortlist.errors import BadStorage, UnknownStudy
from shortlist.judges.setup import RunSetup, settings_of
from shortlist.study.events import Asked, JudgeSetup, Materials, Skipped, TakenOver, Told
from shortlist.study.sql import close_databases
from tests.patience import PATIENCE
from tests.study.killed_run_judge import allow, better_first

ITEMS = [f"item {number}" for number in range(6)]
CASES = [f"case {number}" for number in range(300)]  # so that there is something left to pay for
STOPPING = {"uniform": "glr", "bridge": "edges"}
VOTES_PER_LIFE = 40


class Killer:
    """Starts the command and kills it; after each kill looks at what is there."""

    def __init__(self, folder, url, method, kills):
        self.folder, self.url, self.method, self.log = folder, url, method, folder / "calls.log"
        self.votes = 60 + VOTES_PER_LIFE * kills
        (folder / "items.txt").write_text("\n".join(ITEMS))
        (folder / "cases.csv").write_text("id,text\n" + "\n".join(f"{case},{case}" for case in CASES))
        self.log.touch()
        self.rng = random.Random(kills)
        self.told, self.known, self.kills = {}, {}, 0

    def judge(self, log):
        return f"{sys.executable} {Path(__file__).with_name('killed_run_judge.py')} {log}"

    def command(self, url, log):
        command = ["run", "items.txt", "-k", "2", "--delta", "1e-30", "--max-votes", str(self.votes), "--json"]
        command += ["--sampling", self.method, "--stopping", STOPPING[self.method], "--storage", url]
        command += ["--judge", self.judge(log), "--keep", "8", "--workers", "8", "--judge-name", "judge"]
        return [sys.executable, "-m", "shortlist", *command, *(["--cases", "cases.csv"] * (self.method == "bridge"))]

    def start(self, url, log):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(self.command(url, log), cwd=self.folder, env=environment, text=True, **pipes)

    def finish(self, url, log):
        said, trouble = self.start(url, log).communicate(timeout=PATIENCE)
        assert said, trouble
        return json.loads(said)

    def kill_once(self):
        """Kill the run when the judge was called so often, or now and then while it starts."""
        called = len(self.log.read_bytes().splitlines())
        allow(self.log, called + VOTES_PER_LIFE)
        process = self.start(self.url, self.log)
        if self.rng.random() < 0.2:
            time.sleep(self.rng.uniform(0.0, 2.0))
        else:
            wanted = called + self.rng.randint(1, VOTES_PER_LIFE)
            while len(self.log.read_bytes().splitlines()) < wanted and process.poll() is None:
                time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "the study ended too soon to be killed"
        self.kills += 1

    def look(self):
        """All that was recorded is recorded still, once; what was paid for is never paid for again."""
        close_databases()
        try:
            study = load_study("items", self.url)
        except (BadStorage, UnknownStudy):  # killed before there was one
            assert not self.told
            return None
        told = [entry.event for entry in study.entries if isinstance(entry.event, Told)]
        now = {record.question: record.outcome for record in told}
        assert len(now) == len(told), "a vote is doubled"
        assert self.told.items() <= now.items(), "a vote is missing"
        calls = [tuple(json.loads(line)) for line in self.log.read_bytes().splitlines()]
        assert not any(words in self.known for words in calls[self.known.pop("calls", 0) :]), "paid for twice"
        self.told, self.known = now, {"calls": len(calls)}
        setup = RunSetup("judge", "judge", settings_of(CommandJudge(self.judge(self.log))), {}, None)
        for words in {words for words in calls if len(words) == 3}:
            case, first, second = words
            key = setup.key(Call(0, first, second, case=Case(case, case)))
            if study.storage.known_answer("items", key) is not None:
                self.known[words] = True
        for answer in study.rows:
            if answer.outcome is not None:
                assert answer.outcome == expected(study.question(answer.question))
        return study


def expected(question):
    words = (str(question.id),) if question.case is None else (question.case, question.first, question.second)
    return float(better_first(*words))


def replay(study, entries):
    """Ask and tell in the recorded order."""
    for entry in entries:
        match entry.event:
            case Asked() as asked:
                question = study.ask(judge=asked.judge, cases=CASES)
                seen = study.items.index(question.first), study.items.index(question.second)
                assert (question.id, *seen) == (asked.question, asked.first, asked.second)
                assert (question.bet, question.case) == (asked.bet, asked.case)
            case Told(number, _):
                study.tell(number, expected(study.question(number)))
            case Skipped(number, _):
                study.skip(number)
            case other:
                assert isinstance(other, TakenOver | Materials | JudgeSetup)


def kill_and_compare(folder, url, other_url, method, kills):
    killer = Killer(folder, url, method, kills)
    while killer.kills < kills:
        killer.kill_once()
        killer.look()
    allow(killer.log, None)
    found = killer.finish(url, killer.log)
    study = killer.look()
    assert found["done"]
    assert found["votes"] == killer.votes
    assert any(isinstance(entry.event, TakenOver) for entry in study.entries)
    if method == "uniform":
        undisturbed = killer.finish(other_url, folder / "other.log")
        for key in ("top", "error_bound", "votes", "done", "reason", "statistic", "threshold", "utilities"):
            assert found[key] == undisturbed[key], key
        return
    memory = create_study(ITEMS, 2, 1e-30, max_votes=killer.votes, sampling=method)
    replay(memory, study.entries)
    assert memory.verdict == study.verdict
    assert memory.examine() == study.examine()
    assert memory.utilities == study.utilities


@pytest.mark.slow
@pytest.mark.parametrize("method", STOPPING)
def test_a_run_that_is_killed_three_times(sqlite_url, tmp_path, method):
    kill_and_compare(tmp_path, sqlite_url, f"sqlite:///{tmp_path / 'other.db'}", method, 3)


@pytest.mark.sweep
@pytest.mark.parametrize("method", STOPPING)
def test_a_run_that_is_killed_fifty_times(url, tmp_path, method):
    kill_and_compare(tmp_path, url, f"sqlite:///{tmp_path / 'other.db'}", method, 50)
