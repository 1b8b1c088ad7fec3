"""One tree of errors; each message states the fact and the way out.

ShortlistError
├── BadInput
│   ├── BadProblem       items, k, delta, tolerance, budget, options
│   ├── BadFamily        unknown family, sigma that is not positive
│   ├── BadOutcome       a vote that is no number, or out of range
│   ├── BadVotes         a vote file or vote arrays that cannot be read
│   ├── BadInstance      a simulation that cannot be set up
│   ├── BadExperiment    an unknown experiment or cell, or results that do not fit it
│   ├── UnknownStudy, StudyExists, StudyDiffers    a name in a storage
│   ├── BadStorage       a place for studies that cannot be used
│   │   └── StorageOutdated
│   ├── BadJudge         a judge, or a way of running it, that cannot be set up
│   ├── BadCases         cases that cannot be read
│   ├── BadUpload        a file that is no picture, or too big
│   └── TieAtTheLine     utilities without a unique top k
├── UnknownItem
├── UnknownQuestion
├── AlreadyAnswered
├── LateAnswer
├── NotYours             a question that another judge was given
├── StudyDone
├── StudyPaused
├── NothingToAsk
├── VoidJudge
├── JudgeFailed          the run is over; `study` has every answer until then
├── JudgeUnavailable     one try: a judge that may answer later
├── JudgeUnclear         one try: an answer that says nothing
├── RunsFailed           an experiment that could not be played to its end
├── NotInstalled         an optional package that is needed
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


class BadExperiment(BadInput):
    """An unknown experiment or cell, or results on disk that do not fit it."""


class BadJudge(BadInput):
    """A judge, or a way of running it, that cannot be set up."""


class BadCases(BadInput):
    """Cases that cannot be read, or are given twice."""


class BadUpload(BadInput):
    """A file that is no picture, or too big."""


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
        super().__init__(f"question {question_id!r} was never asked here; answer one that was given out")


class AlreadyAnswered(ShortlistError):
    """A second answer to one question."""

    def __init__(self, question_id: object) -> None:
        super().__init__(f"question {question_id!r} is closed already; ask for a new one")


class NothingToUndo(UnknownQuestion):
    """A question without a vote that could be taken back."""

    def __init__(self, question_id: object) -> None:
        ShortlistError.__init__(self, f"question {question_id!r} has no vote to take back")


class LateAnswer(ShortlistError):
    """An answer to a question whose lease ran out."""

    def __init__(self, question_id: object) -> None:
        super().__init__(f"question {question_id!r} was given up before this answer; it is kept and does not count")


class NotYours(ShortlistError):
    """An answer to a question that another judge was given."""

    def __init__(self, question_id: object) -> None:
        super().__init__(f"question {question_id!r} was given to another judge; answer your own")


class StudyDone(ShortlistError):
    """A question was wanted from a study that has its verdict."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the study is done ({reason}); read its verdict, there is nothing left to ask")


class NothingToAsk(ShortlistError):
    """All votes of the budget are asked for already, or this judge may be shown nothing that is needed."""


class VoidJudge(ShortlistError):
    """A question was wanted for a judge whose votes were voided, or such votes were to be imported."""

    def __init__(self, judge: str) -> None:
        super().__init__(f"the votes of judge {judge!r} were voided; ask somebody else, and import none of theirs")


class UnknownStudy(BadInput):
    """No study of that name."""

    def __init__(self, name: str, names: list[str] | None = None) -> None:
        """`names` are those that there are, to be left out where they are nobody's business."""
        there = f"; there are {', '.join(sorted(names)[:10])}" if names else "; there are none"
        super().__init__(f"no study is called {name!r}{'' if names is None else there}")


class NotJudgedHere(BadProblem):
    """A study that the web pages cannot put to a judge."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the study {name!r} is of measured differences, which two buttons cannot answer")


class StudyExists(BadInput):
    """The name is taken."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is a study called {name!r} already; choose another name")


class StudyDiffers(BadInput):
    """A study of that name was created with something else."""

    def __init__(self, name: str, differences: list[str]) -> None:
        self.name, self.differences = name, differences
        super().__init__(f"the study {name!r} exists and differs: {'; '.join(differences)}; choose another name")


class StudyPaused(ShortlistError):
    """A question was wanted while the owner keeps the study closed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the study {name!r} is closed for now; its owner can open it again")


class BadStorage(BadInput):
    """A place for studies that cannot be used."""


class StorageOutdated(BadStorage):
    """A database made by another version."""

    def __init__(self, url: str, found: str | None, wanted: str) -> None:
        newer = found is not None and found > wanted
        remedy = "it was made by a newer shortlist; install that" if newer else f"run: shortlist storage upgrade {url}"
        super().__init__(f"{url} has schema {found or 'none'}, and this version needs {wanted}; {remedy}")


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


class RunsFailed(ShortlistError):
    """An experiment could not be played to its end; what was finished is saved."""


class NotInstalled(ShortlistError):
    """Something needs an optional package that is not there."""

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'shortlist[{extra}]'")


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
