"""A soak: processes share a judge for a long time while faults happen at random.

`python -m tests.soak [--minutes 30] [--processes 8] [--storage PostgreSQL]`. Every process is killed, suspended or
loses its connections now and then. On PostgreSQL half of the processes are on machines of their own, whose clocks jump
by up to two hours. In the end a vote budget lets everything that is pending be answered. Then the chain is checked, the
study is read again without its snapshot, and the calls that were paid are compared with the votes. A call that is under
way when its process is killed may be paid again, and no other.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from shortlist import load_study
from shortlist.errors import StorageUnavailable
from shortlist.study.events import Told
from shortlist.study.maintenance import check_study
from shortlist.study.sql import close_databases, open_database
from tests.faults import STORAGES, Scene, new_url, server

OVER = 600.0  # seconds in which all processes must have ended
PROGRAM = """
import os, platform, random, sys, time
jumps = random.Random(os.getpid())
shifts = [jumps.uniform(-{shift}, {shift}) for _ in range(64)]
now = time.time
time.time = lambda: now() + shifts[int(time.monotonic() / 7) % 64]
platform.node = lambda: "{machine}"
from shortlist import CallableJudge, load_study, run_study
from shortlist.errors import StorageUnavailable
paid = open("{log}", "ab", buffering=0)
def judge(call):
    paid.write(b"%d %.1f\\n" % (call.id, time.monotonic()))
    time.sleep(0.05)
    return "first" if call.id % 7 % 3 else "second"
def work():
    study = load_study("items", sys.argv[1])
    if not study.verdict.done:
        run_study(study, CallableJudge(judge, name="judge", takes_call=True), workers=3, storage_patience=30)
        time.sleep(0.5)
    return study.verdict.done
done = False
while not done:
    try:
        done = work()
    except StorageUnavailable as reason:
        print(reason, file=sys.stderr)
"""


class Soak:
    """Processes at work, and what is known of them and of their votes."""

    def __init__(self, scene, processes, seed):
        self.scene, self.rng = scene, random.Random(seed)
        self.happened, self.under_way, self.seen, self.read = Counter(), Counter(), Counter(), 0
        self.logs = {}  # by process, in the order of their start: the system uses the number of a process again
        create = ["create", "items.txt", "-k", "2", "--delta", "1e-200", "--name", "items", "--storage", scene.url]
        scene.start([sys.executable, "-m", "shortlist", *create]).wait(0)
        self.lives = [self.begin(number) for number in range(processes)]

    def begin(self, number):
        """Start a process: with an odd number on a machine of its own, if the storage has a clock of its own."""
        is_elsewhere = number % 2 and not self.scene.is_sqlite
        machine, shift = (number, 7200.0) if is_elsewhere else ("here", 0.0)
        log = self.scene.folder / f"paid-{len(self.logs)}.log"
        program = PROGRAM.format(machine=machine, shift=shift, log=log.name)
        life = self.scene.start([sys.executable, "-c", program, self.scene.url])
        self.logs[id(life)] = log
        return life

    def look(self):
        """Read the votes that were added. None of them may ever be missing."""
        try:
            entries = open_database(self.scene.url).since("items", self.read)
        except StorageUnavailable:  # our own connection was ended too
            return self.look()
        self.read += len(entries)
        told = (entry.event for entry in entries if isinstance(entry.event, Told))
        self.seen.update((event.question, event.outcome) for event in told)
        return {question for question, _ in self.seen}

    def paid(self, life):
        """The questions that a process has paid for."""
        return Counter(question for question, _ in self.payments(life))

    def payments(self, life):
        """The questions that a process has paid for, and when."""
        log = self.logs.get(id(life))
        lines = log.read_text().splitlines() if log is not None and log.exists() else []
        return [(int(question), float(at)) for question, at in map(str.split, lines)]

    def explain(self, question):
        """Say which processes paid for a question, and when."""
        for life in self.scene.started:
            for at in (at for found, at in self.payments(life) if found == question):
                ended = "killed" if life.process.returncode else "not killed"
                print(f"question {question}: process {life.process.pid}, {ended}, at {at:.1f} s", file=sys.stderr)

    def unsaved(self):
        """The questions whose answers wait in a file for the next run."""
        lines = (line for file in self.scene.unsaved() for line in file.read_text().splitlines())
        return {json.loads(line)["question"] for line in lines}

    def fault(self):
        what, number = self.rng.choice(["kill", "suspend", "end connections"]), self.rng.randrange(len(self.lives))
        if what == "end connections" and self.scene.is_sqlite:
            return
        self.happened[what] += 1
        if what == "kill":
            self.kill(number)
        elif what == "suspend":
            os.kill(self.lives[number].process.pid, signal.SIGSTOP)
            time.sleep(self.rng.uniform(0.1, 3.0))
            os.kill(self.lives[number].process.pid, signal.SIGCONT)
        else:
            self.scene.terminate()

    def kill(self, number):
        """Kill a process. It is suspended first, to see what it is doing: nobody takes its questions over until then,
        so a call that is paid again later is one that was under way now."""
        life = self.lives[number]
        os.kill(life.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, life.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.under_way.update(set(self.paid(life)) - self.look() - self.unsaved())
        life.kill()
        self.lives[number] = self.begin(number)

    def run(self, minutes):
        began, said = time.monotonic(), 0
        while (passed := (time.monotonic() - began) / 60) < minutes:
            time.sleep(self.rng.uniform(0.2, 2.0))
            self.fault()
            if passed >= said:
                said = int(passed) + 1
                votes = len(self.look())
                print(f"{passed:.0f} of {minutes:g} minutes: {votes:,} votes, {dict(self.happened)}", file=sys.stderr)
        self.finish()

    def finish(self):
        """Let all that is pending be answered; questions of killed processes are free when their leases end."""
        study = load_study("items", self.scene.url)
        study.change(max_votes=study.verdict.votes + len(study.pending) + 20)
        ended = [life.process.wait(OVER) for life in self.lives]
        assert not any(ended), [life.said for life in self.lives]

    def found(self):
        close_databases()
        checked, study = check_study(open_database(self.scene.url), "items"), load_study("items", self.scene.url)
        told = [entry.event for entry in study.entries if isinstance(entry.event, Told)]
        votes, questions = (
            Counter((event.question, event.outcome) for event in told),
            {event.question for event in told},
        )
        self.scene.execute("DELETE FROM snapshots")
        again = load_study("items", self.scene.url)
        paid = sum((self.paid(life) for life in self.scene.started), Counter())
        twice = paid - self.under_way - Counter(set(paid))
        for question in twice:
            self.explain(question)
        return {
            "votes": len(told),
            "calls paid": paid.total(),
            "of these again after a kill": sum(min(paid[one] - 1, times) for one, times in self.under_way.items()),
            "lost": (self.seen - votes).total(),
            "doubled": len(told) - len(questions),
            "paid twice": twice.total(),
            "paid and not stored": len(set(paid) - questions),
            "stored and not paid": len(questions - set(paid)),
            "still pending": len(study.pending),
            "left in files": len(self.scene.unsaved()),
            "broken": int(bool(checked.problem)),
            "replays otherwise": int((again.examine(), again.utilities) != (study.examine(), study.utilities)),
        }


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument("--processes", type=int, default=8)
    options.add_argument("--storage", choices=STORAGES, default="PostgreSQL")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    with server() as database_url, tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), new_url(given.storage, folder, database_url))
        with scene:
            soak = Soak(scene, given.processes, given.seed)
            soak.run(given.minutes)
            found = soak.found()
    print(f"{given.storage}: {dict(soak.happened)}")
    for what, number in found.items():
        print(f"{number:>9,}  {what}")
    sys.exit(any(list(found.values())[3:]))


if __name__ == "__main__":
    main()
