"""Claims about cases: how a question draws its case, and which words a guarantee then needs.

With replacement, the draws are about the mean over these cases. If every case serves one question of the study, a case
is as good as a new one, so the draws are about cases like these. Recorded votes are cases of their pair, used once.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Literal, NamedTuple, get_args

from shortlist.core.draws import draw_case
from shortlist.core.pairs import n_pairs
from shortlist.errors import BadProblem, CasesUsedUp
from shortlist.study.events import Drawing

CasesClaim = Literal["these", "like these"]


def check_claim(claim: str) -> CasesClaim:
    """Raise BadProblem unless this is a claim about cases."""
    for known in get_args(CasesClaim):
        if claim == known:
            return known  # type: ignore[no-any-return]
    raise BadProblem(f"cases_claim is {claim!r}; choose one of {', '.join(map(repr, get_args(CasesClaim)))}")


class Pools(NamedTuple):
    """From how many cases the questions of a study drew theirs, by the way of drawing; the largest number counts."""

    replaced: int = 0
    once: int = 0
    recorded: int = 0

    def after(self, drawing: Drawing, size: int) -> "Pools":
        """After one more question. Returns itself if nothing changed."""
        if size <= getattr(self, drawing):
            return self
        return self._replace(**{drawing: size})

    @property
    def is_once(self) -> bool:
        """Whether questions had cases, and none may have had the case of another."""
        return any(self) and not self.replaced

    @property
    def words(self) -> str:
        """What the questions are about, to follow a guarantee; empty if none had a case."""
        found = []
        if self.replaced:
            found.append(f"by the judges' answers, on average over {_these(self.replaced)}")
        if self.once:
            used = f"each of the {self.once:,} cases was used at most once"
            found.append(f"on average over cases like these ({used})")
        if self.recorded:
            used = f"each of the {self.recorded:,} was used at most once"
            found.append(f"on average over votes like the recorded ones ({used})")
        return f"items are compared {', and '.join(found)}" if found else ""


def _these(count: int) -> str:
    return "this one case" if count == 1 else f"these {count:,} cases"


def with_claim(guarantee: str, pools: Pools) -> str:
    """The guarantee of a study: that of its stopping rule, and what its questions are about."""
    return f"{guarantee}; {pools.words}" if guarantee and pools.words else guarantee


class CasePool:
    """The cases that questions draw from: one list for all pairs, or a list for each pair by its number."""

    def __init__(self, cases: Sequence[str] | Mapping[int, Sequence[str]], used: Set[str] | None = None) -> None:
        """`used` are the cases that earlier questions had, if each case serves one question; None: all are open."""
        self._cases, self._used, self._new = cases, used, set[str]()

    def __bool__(self) -> bool:
        return bool(self._cases) or isinstance(self._cases, Mapping)

    @property
    def drawing(self) -> Drawing:
        if self._used is None:
            return "replaced"
        return "recorded" if isinstance(self._cases, Mapping) else "once"

    @property
    def size(self) -> int:
        return len(set().union(*self._cases.values())) if isinstance(self._cases, Mapping) else len(self._cases)

    def closed_pairs(self, n: int) -> frozenset[int]:
        """The pairs that have no case left."""
        if not isinstance(self._cases, Mapping):
            if next(self._open(self._cases), None) is None:
                raise self.used_up()
            return frozenset()
        having = {pair for pair, cases in self._cases.items() if next(self._open(cases), None) is not None}
        return frozenset(range(n_pairs(n))) - having

    def draw(self, seed: int, question: int, pair: int) -> str:
        """The case of a question about this pair: uniform among those that are open. Raises CasesUsedUp."""
        cases = self._cases.get(pair, ()) if isinstance(self._cases, Mapping) else self._cases
        left = cases if self._used is None else list(self._open(cases))
        if not left:
            raise self.used_up()
        drawn = draw_case(seed, question, left)
        self._new.add(drawn)
        return drawn

    def used_up(self) -> CasesUsedUp:
        """The error to raise when nothing is left to ask."""
        cases = set().union(*self._cases.values()) if isinstance(self._cases, Mapping) else set(self._cases)
        used = set() if self._used is None else {case for case in cases if case in self._used or case in self._new}
        return CasesUsedUp(len(used), len(cases))

    def _open(self, cases: Sequence[str]) -> Iterator[str]:
        if self._used is None:
            return iter(cases)
        return (case for case in cases if case not in self._used and case not in self._new)


NO_CASES = CasePool(())
