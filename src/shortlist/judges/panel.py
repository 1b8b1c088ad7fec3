"""Several judges as one: each question goes to one of them, drawn at random, or to all of them.

Both make a claim about the mean of the judges' answers. With "random" this needs that the drawing depends on nothing
that happened before: the study's seed and the question's number decide, after the pair and the bet are fixed, as they
do for a case. With "mean" one vote is the mean of all answers to a question: they are about one pair on one case, so
they are not several votes.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

from shortlist.core.draws import digest, draw_number
from shortlist.errors import BadJudge
from shortlist.judges.base import Ask, Call, Case, Judge, RecordedJudge, Reply

How = Literal["random", "mean"]


@dataclass(frozen=True)
class PanelJudge:
    """A panel of judges, whose votes are stored under one name.

    how: "random" asks one of them, drawn at random for each question. "mean" asks all of them, and the vote is the mean
        of their answers.
    name: by default made from the names and settings of the judges.
    """

    judges: Sequence[Judge]
    how: How = "random"
    name: str = ""

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            raise BadJudge(f"how is {self.how!r}; choose one of {', '.join(get_args(How))}")
        names = [judge.name for judge in self.judges]
        if len(names) < 2 or len(set(names)) < len(names):
            raise BadJudge("a panel needs at least two judges with different names")
        if any(isinstance(judge, RecordedJudge | PanelJudge) for judge in self.judges):
            raise BadJudge("recorded votes and panels cannot be part of a panel; give single judges")
        if not self.name:
            object.__setattr__(self, "name", self.default_name)

    @property
    def default_name(self) -> str:
        return f"panel-{digest(self.how, *(f'{judge.name} {_settings(judge)}' for judge in self.judges))}"

    @property
    def settings(self) -> dict[str, Any]:
        members = {judge.name: _settings(judge) for judge in self.judges}
        return {"kind": "panel", "how": self.how, "judges": members}

    @property
    def max_parallel(self) -> int | None:
        return min((judge.max_parallel for judge in self.judges if judge.max_parallel is not None), default=None)

    @property
    def shows_references(self) -> bool:
        return any(getattr(judge, "shows_references", False) for judge in self.judges)

    def check_cases(self, cases: Sequence[Case] | None) -> None:
        """Raise BadJudge unless all judges can be asked about these cases."""
        for judge in self.judges:
            if (check := getattr(judge, "check_cases", None)) is not None:
                check(cases)

    def asked(self, seed: int, question: int) -> tuple[int, ...]:
        """Which judges a question goes to."""
        if self.how == "mean":
            return tuple(range(len(self.judges)))
        return (draw_number(len(self.judges), "panel", seed, question),)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        async with AsyncExitStack() as stack:
            asks = [await stack.enter_async_context(judge.open()) for judge in self.judges]

            async def ask(call: Call) -> Reply:
                assert call.member is not None
                return await asks[call.member](call)

            yield ask


def _settings(judge: Judge) -> Any:
    return getattr(judge, "settings", None)
