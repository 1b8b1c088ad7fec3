"""Who judges, from what was said on the command line."""

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shortlist.errors import BadJudge, NotInstalled

ME = "me"


@dataclass(frozen=True)
class Choice:
    """The options about the judge."""

    command: str | None
    keep: int | None
    url: str | None
    model: str | None
    prompt: Path | None
    temperature: float | None
    votes: Path | None
    columns: list[str] | None
    name: str | None

    def make(self, items: tuple[str, ...], cases: Any, family: Any, seed: int) -> Any:
        """The judge; None is the person at the keyboard. Whatever can be seen to be wrong is refused now."""
        self._check()
        if self.votes is not None:
            return self._recorded(self.votes, items, family, seed)
        if self.command is not None:
            return None if self.command == ME else self._program(self.command)
        return self._language_model(cases)

    def _check(self) -> None:
        if sum(given is not None for given in (self.command, self.url, self.votes)) != 1:
            raise BadJudge('who judges? give one of --judge "COMMAND", --judge-url URL --model NAME, --votes FILE')
        for option, value, belongs in (
            ("--keep", self.keep, self.command), ("--model", self.model, self.url), ("--prompt", self.prompt, self.url),
            ("--temperature", self.temperature, self.url), ("--map", self.columns or None, self.votes),
        ):  # fmt: skip
            if value is not None and belongs is None:
                raise BadJudge(f"{option} is for another kind of judge; leave it out")

    def _program(self, command: str) -> Any:
        from shortlist.judges.command import CommandJudge

        judge = CommandJudge(command, self.name or "", self.keep is not None, self.keep or 1)
        if shutil.which(judge.command[0]) is None:
            raise BadJudge(f"there is no program {judge.command[0]!r}; give one that can be run, or its path")
        return judge

    def _language_model(self, cases: Any) -> Any:
        from shortlist.judges.endpoint import EndpointJudge
        from shortlist.judges.judge import Asked
        from shortlist.judges.prompt import write_prompt

        if self.model is None:
            raise BadJudge("--judge-url needs a model; give --model NAME")
        if find_spec("httpx") is None:
            raise NotInstalled("a language model as a judge", "httpx", "llm")
        prompt = None if self.prompt is None else _read(self.prompt)
        judge = EndpointJudge(str(self.url), self.model, prompt, self.temperature, name=self.name or "")
        write_prompt(prompt, Asked(0, "", "", case=cases[0] if cases else None))  # does it show what it must?
        return judge

    def _recorded(self, path: Path, items: tuple[str, ...], family: Any, seed: int) -> Any:
        from shortlist.cli.votes import load_votes
        from shortlist.judges.recorded import RecordedJudge

        table = load_votes(path, family, self.columns, False)
        if (table.weight != 1).any():
            raise BadJudge(f"{path} counts votes in a weight column; a judge draws single votes")
        sides = ([table.items[i] for i in side.tolist()] for side in (table.first, table.second))
        rows = zip(*sides, table.outcome.tolist(), strict=True)
        ours = [row for row in rows if row[0] in items and row[1] in items]
        if not ours:
            raise BadJudge(f"{path} has no votes between two of the items; are they called the same there?")
        return RecordedJudge(*zip(*ours, strict=True), family=family, seed=seed, name=self.name or path.name)


def recorded_pairs(judge: Any, n: int) -> list[tuple[str, str]] | None:
    """The pairs that have votes; None if all have."""
    return None if len(judge.pairs) == n * (n - 1) // 2 else sorted(judge.pairs)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadJudge(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None
