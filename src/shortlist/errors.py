"""One tree of errors; each message states the fact and the way out.

ShortlistError
├── BadInput
│   ├── BadProblem       items, k, delta, tolerance, budget, options
│   ├── BadFamily        unknown family, sigma that is not positive
│   ├── BadOutcome       a vote that is no number, or out of range
│   ├── BadVotes         a vote file or vote arrays that cannot be read
│   ├── BadInstance      a simulation that cannot be set up
│   ├── BadJudge         a judge, or a way of running it, that cannot be set up
│   ├── BadCases         cases that cannot be read
│   └── TieAtTheLine     utilities without a unique top k
├── UnknownItem
├── UnknownQuestion
├── AlreadyAnswered
├── StudyDone
├── NothingToAsk
├── VoidJudge
├── JudgeFailed          the run is over; `study` has every answer until then
├── JudgeUnavailable     one try: a judge that may answer later
├── JudgeUnclear         one try: an answer that says nothing
├── NotConverged
└── GapNotReached
"""

from typing import Any


class ShortlistError(Exception):
    """Root of all errors raised on purpose."""


class BadInput(ShortlistError):
    """Something was given that cannot be used; nothing was changed."""


class BadProblem(BadInput):
    """Items, k, delta, tolerance, budget or an option out of range."""


class BadFamily(BadInput):
    """An unknown comparison family, or one with impossible parameters."""


class BadOutcome(BadInput):
    """A vote whose outcome is not a number the family allows."""


class BadVotes(BadInput):
    """A vote file or vote arrays that cannot be understood."""


class BadInstance(BadInput):
    """A simulated instance or method that cannot be set up."""


class BadJudge(BadInput):
    """A judge, or a way of running it, that cannot be set up."""


class BadCases(BadInput):
    """Cases that cannot be read, or are given twice."""


class TieAtTheLine(BadInput):
    """Utilities whose k-th and (k+1)-th best are equal: no unique top k."""

    def __init__(self, k: int) -> None:
        super().__init__(
            f"utilities number {k} and {k + 1} from the top are equal, so there is no unique top {k}; "
            "give utilities with a gap at the line, or another k"
        )


class UnknownItem(ShortlistError):
    """An item that is not part of the study."""

    def __init__(self, item: object) -> None:
        super().__init__(f"{item!r} is not an item of this question; name one of its two items")


class UnknownQuestion(ShortlistError):
    """An answer to a question that was never asked."""

    def __init__(self, question_id: object) -> None:
        super().__init__(f"question {question_id!r} was never asked here; answer one that ask() gave out")


class AlreadyAnswered(ShortlistError):
    """A second answer to one question."""

    def __init__(self, question_id: object) -> None:
        super().__init__(f"question {question_id!r} is closed already; ask for a new one")


class StudyDone(ShortlistError):
    """A question was wanted from a study that has its verdict."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the study is done ({reason}); read its verdict, there is nothing left to ask")


class NothingToAsk(ShortlistError):
    """All votes of the budget are asked for already, or this judge may be shown nothing that is needed."""


class VoidJudge(ShortlistError):
    """A question was wanted for a judge whose votes were voided."""

    def __init__(self, judge: str) -> None:
        super().__init__(f"the votes of judge {judge!r} were voided; ask somebody else")


class JudgeFailed(ShortlistError):
    """A judge raised, answered nonsense or gave up. `study` has every answer until then, `run` says what it cost."""

    study: Any = None
    run: Any = None


class JudgeUnavailable(ShortlistError):
    """A judge that may answer later: busy, down, crashed. It is asked again after a while, `retry_after`
    seconds if it says so."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class JudgeUnclear(ShortlistError):
    """An answer that is none: a refusal, garbage. The judge is asked again, then the question is skipped."""

    def __init__(self, message: str, tokens: tuple[int, int] = (0, 0)) -> None:
        super().__init__(message)
        self.tokens = tokens  # read and written, paid for all the same


class NotConverged(ShortlistError):
    """The convex solver did not reach its optimum; please report the votes that caused it."""

    def __init__(self, steps: int, last_step: float) -> None:
        super().__init__(
            f"the fit did not converge in {steps} Newton steps (last step {last_step:.1e}); "
            "a smaller bound makes the problem better conditioned"
        )


class GapNotReached(ShortlistError):
    """The oracle game was not solved to the wanted precision."""

    def __init__(self, rounds: int, rate: float, rate_upper: float) -> None:
        super().__init__(
            f"after {rounds} rounds the rate is only known to lie in [{rate:.6g}, {rate_upper:.6g}]; "
            "ask for a wider gap"
        )
