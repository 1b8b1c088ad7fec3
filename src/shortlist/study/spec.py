"""What a study was created with, in a form that a storage can keep."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from shortlist import loop
from shortlist.certificates import CERTIFICATES
from shortlist.errors import BadProblem
from shortlist.families import make_family
from shortlist.problem import Problem
from shortlist.rules import RULES
from shortlist.rules.rule import Rule

Named = dict[str, Any]  # a rule or certificate: its name, and its options


@dataclass(frozen=True)
class Spec:
    items: tuple[str, ...]
    k: int
    delta: float
    family: str
    sigma: float
    bound: float
    tolerance: float
    max_votes: int | None
    allowed: tuple[int, ...] | None
    method: Named
    rule: Named
    seed: int

    def problem(self) -> Problem:
        family = make_family(self.family, self.sigma)
        sizes = len(self.items), self.k, self.delta
        return Problem(*sizes, family, self.bound, self.tolerance, self.max_votes, self.allowed)

    def asking(self) -> Rule:
        made: Rule = RULES[self.method["name"]](**self.method["options"])
        return made

    def stopping(self) -> loop.Certificate:
        made: loop.Certificate = CERTIFICATES[self.rule["name"]](**self.rule["options"])
        return made

    def dump(self) -> str:
        return json.dumps(asdict(self))

    def differences(self, other: "Spec") -> list[str]:
        """How this one differs from another that is there already, in words."""
        return [
            f"{part.name} is {_short(theirs)} there and {_short(ours)} here"
            for part in fields(self)
            if (theirs := getattr(other, part.name)) != (ours := getattr(self, part.name))
        ]


def make_spec(items: Sequence[str], problem: Problem, rule: Rule, certificate: loop.Certificate, seed: int) -> Spec:
    return Spec(
        tuple(items), problem.k, problem.delta, problem.family.name, getattr(problem.family, "sigma", 1.0),
        problem.bound, problem.tolerance, problem.max_votes, problem.allowed, _named(rule, RULES, "method"),
        _named(certificate, CERTIFICATES, "rule"), seed,
    )  # fmt: skip


def load_spec(text: str) -> Spec:
    parts = json.loads(text)
    for name in ("items", "allowed"):
        parts[name] = None if parts[name] is None else tuple(parts[name])
    return Spec(**parts)


def _named(thing: Any, known: dict[str, Any], what: str) -> Named:
    kind = known.get(thing.name)
    if kind is None or type(thing) is not kind:
        raise BadProblem(f"a {what} of your own cannot be stored; keep the study in memory, or choose a known one")
    plain = kind()
    changed = {part.name: getattr(thing, part.name) for part in fields(thing)}
    return {"name": thing.name, "options": {key: v for key, v in changed.items() if v != getattr(plain, key)}}


def _short(value: Any) -> str:
    text = str(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."
