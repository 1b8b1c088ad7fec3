"""Commands in this process and in a folder of their own. A real process is for signals, terminals and kills."""

import json
import sys
from dataclasses import dataclass

import pytest

from shortlist.cli.app import main
from shortlist.study.sql import close_databases


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


class Shortlist:
    """`shortlist("status", "fruit")` runs the command and gives what it printed."""

    def __init__(self, folder, monkeypatch, capsys):
        self.folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys

    def __call__(self, *arguments, code=None):
        """Without a code: done, whether with or without a proof."""
        self._monkeypatch.setattr(sys, "argv", ["shortlist", *map(str, arguments)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        done = Done(end.value.code, *self._capsys.readouterr())
        assert done.code in ((0, 3) if code is None else (code,)), done.err
        return done

    def json(self, *arguments):
        """The one JSON object that the command prints."""
        return json.loads(self(*arguments, "--json").out)

    def refused(self, *arguments):
        """The one line with which wrong input is refused."""
        done = self(*arguments, code=2)
        assert done.err.startswith("shortlist: ")
        assert (done.err.count("\n"), done.out) == (1, "")
        return done.err


@pytest.fixture
def shortlist(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    yield Shortlist(tmp_path, monkeypatch, capsys)
    close_databases()
