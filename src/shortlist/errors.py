"""The tree of errors. Each message is one line: what is wrong, and what to do.

ShortlistError
├── BadInput
│   ├── BadProblem       items, k, delta, tolerance, budget, options
│   ├── BadFamily        unknown family, sigma that is not positive
│   ├── BadOutcome       a vote that is not a number, or out of range
│   ├── BadVotes         a vote file or vote arrays that cannot be read
│   ├── BadOutputs       outputs of items on cases that cannot be read, or are not complete
│   ├── BadProof         a proof that does not hold, or cannot be read or written
│   ├── BadInstance      a simulation that cannot be set up
│   ├── UnknownStudy, StudyExists, StudyDiffers    a name in a storage
│   ├── BadStorage       a storage that cannot be used
│   │   ├── StorageUnavailable    it may respond later
│   │   └── BrokenChain, StudyReplaced, ForeignStorage, StorageOutdated
│   ├── BadJudge         a judge, or a way of running it, that cannot be set up
│   ├── BadCases         cases that cannot be read
│   ├── SetupChanged     texts, cases or judge settings that differ from those of earlier votes
│   ├── BadUpload        a file that is not an image, or too big
│   └── TieAtCutoff      ratings without a unique top k
├── UnknownItem
├── UnknownQuestion
├── AlreadyAnswered
├── LateAnswer
├── NotYours             a question that was given to another judge
├── StudyDone
├── StudyPaused
├── StudyArchived        it can be read, and nothing can be added
├── NothingToAsk         CasesUsedUp, BallotDone, BallotsOpen
├── VoidJudge
├── JudgeFailed          the run has ended; `study` has every answer so far
├── JudgeUnavailable     one call: the judge may answer later
├── JudgeUnclear         one call: the answer could not be understood
├── OutOfMoney           one call: it might cost more than is left
├── NotInstalled         a missing optional package
├── NotConverged
└── GapNotReached
"""

from collections.abc import Sequence
from typing import Any


class ShortlistError(Exception):
    """Root of all errors raised on purpose. `exit_code` is how a command ends that raises it."""

    exit_code = 2


class BadInput(ShortlistError):
    """The input cannot be used; nothing was changed."""


class BadProblem(BadInput):
    """Items, k, delta, tolerance, budget or an option out of range."""


class BadFamily(BadInput):
    """An unknown comparison family, or one with impossible parameters."""


class BadOutcome(BadInput):
    """A vote whose outcome is not a number the family allows."""


class BadVotes(BadInput):
    """A vote file or vote arrays that cannot be read."""


class BadOutputs(BadInput):
    """Outputs of items on cases that cannot be read, or are not complete."""


class BadProof(BadInput):
    """A proof that does not hold, or a file of one that cannot be read or written."""


class BadInstance(BadInput):
    """A simulated instance or method that cannot be set up."""


class BadJudge(BadInput):
    """A judge, or a way of running it, that cannot be set up."""


class BadCases(BadInput):
    """Cases that cannot be read, or are given twice."""


class SetupChanged(BadInput):
    """What a run shows or asks with is not what earlier votes of the study were given on. Nothing was asked."""


class BadUpload(BadInput):
    """A file that is not an image, or too big."""


class TieAtCutoff(BadInput):
    """Utilities whose k-th and (k+1)-th best are equal, so there is no unique top k."""

    def __init__(self, k: int) -> None:
        super().__init__(
            f"utilities number {k} and {k + 1} from the top are equal, so there is no unique top {k}; "
            "give utilities with a gap there, or another k"
        )


class UnknownItem(ShortlistError):
    """An item that is not part of the study."""

    def __init__(self, item: object) -> None:
        super().__init__(f"{item!r} is not an item of this question; give one of its two items")


class UnknownQuestion(ShortlistError):
    """An answer to a question that was never asked."""

    def __init__(self, question_id: object) -> None:
        super().__init__(f"question {question_id!r} was never asked in this study; answer one that `ask` returned")


class AlreadyAnswered(ShortlistError):
    """A second answer to the same question."""

    def __init__(self, question_id: object) -> None:
        super().__init__(f"question {question_id!r} is already answered or closed; ask for a new one")


class NothingToUndo(UnknownQuestion):
    """A question without a vote to undo."""

    def __init__(self, question_id: object) -> None:
        ShortlistError.__init__(self, f"question {question_id!r} has no vote to undo")


class LateAnswer(ShortlistError):
    """An answer to a question whose lease has expired."""

    def __init__(self, question_id: object) -> None:
        super().__init__(
            f"question {question_id!r} expired before this answer; the answer is stored but does not count"
        )


class NotYours(ShortlistError):
    """An answer to a question that was given to another judge."""

    def __init__(self, question_id: object) -> None:
        super().__init__(f"question {question_id!r} was given to another judge; answer your own")


class StudyDone(ShortlistError):
    """A question was requested from a study that already has its verdict."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the study is done ({reason}) and asks no more questions; read its verdict")


class NothingToAsk(ShortlistError):
    """The vote budget is used up by pending questions, or no useful pair may be shown to this judge."""


class CasesUsedUp(NothingToAsk):
    """Each case serves one question, and none is left for a pair that a proof needs."""

    def __init__(self, used: int, total: int) -> None:
        super().__init__(
            f"{used:,} of {total:,} cases are used, each for one question, and no pair that a proof needs has one "
            "left; give more cases"
        )
        self.used, self.total = used, total


class BallotDone(NothingToAsk):
    """The judge has had their ballot, and each judge gets one."""

    def __init__(self, judge: str) -> None:
        super().__init__(
            f"{judge} has finished their ballot, thank you; each judge gets one ballot in this study, so ask another "
            "judge"
        )


class BallotsOpen(NothingToAsk):
    """The ballots that are open may complete the proof, so no new one is opened until they are closed."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"the {'ballot that is' if count == 1 else f'{count:,} ballots that are'} open may complete the proof, so "
            "no new ballot is opened now; come back when they are answered or their time is over"
        )


class NeedsJudges(NothingToAsk):
    """A proof needs several judges, and more votes of this one would add nothing to it."""

    def __init__(self, min_judges: int) -> None:
        super().__init__(
            f"another judge is needed: a proof must rest on at least {min_judges} judges, and this judge has given all "
            "that counts; invite another judge"
        )


class VoidJudge(ShortlistError):
    """A question was requested for a voided judge, or an import has votes of a voided judge."""

    def __init__(self, judge: str) -> None:
        super().__init__(f"judge {judge!r} is voided; ask another judge, and do not import this judge's votes")


class UnknownStudy(BadInput):
    """There is no study of that name."""

    def __init__(self, name: str, names: list[str] | None = None) -> None:
        """`names` are the studies that exist; leave them out where the caller may not know them."""
        there = f"; studies here: {', '.join(sorted(names)[:10])}" if names else "; there are no studies here"
        super().__init__(f"there is no study named {name!r}{'' if names is None else there}")


class NotJudgedHere(BadProblem):
    """A study that cannot be judged on the web pages."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the study {name!r} needs measured differences; enter them in Python or on the command line")


class StudyExists(BadInput):
    """A study of that name already exists."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"a study named {name!r} already exists; choose another name")


class StudyDiffers(BadInput):
    """A study of that name exists with other settings: `differences` has a phrase for each, by name."""

    def __init__(self, name: str, differences: dict[str, str], way_out: str = "choose another name") -> None:
        self.name, self.differences = name, differences
        super().__init__(
            f"a study named {name!r} already exists with other settings: {'; '.join(differences.values())}; {way_out}"
        )

    @property
    def can_change(self) -> bool:
        """Whether all that differs can be changed with `Study.change`."""
        return self.differences.keys() <= {"max_votes", "delta", "min_judges"}


class StudyPaused(ShortlistError):
    """A question was requested from a paused study."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the study {name!r} is paused; its owner can resume it")


class StudyArchived(ShortlistError):
    """Something was to be added to an archived study."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the study {name!r} is archived, so it can only be read; to continue with it, run: shortlist unarchive "
            f"{name!r}"
        )


class BadStorage(BadInput):
    """A storage that cannot be used."""


class StorageUnavailable(BadStorage):
    """A storage that does not respond now. What it has stored is safe, and the same work can be tried again."""

    exit_code = 4


class BrokenChain(BadStorage):
    """The events of a study are not the ones that were written. `number` is the first that is not."""

    def __init__(self, study: str, number: int, why: str = "") -> None:
        self.number = number
        self.why = why or f"event {number:,} is missing, or it or the event before it was changed"
        super().__init__(
            f"the record of study {study!r} was changed: {self.why}. Restore a backup; nothing after this point can be "
            "trusted. To see what can be saved, run: shortlist storage check URL"
        )


class StudyReplaced(BadStorage):
    """The stored study is not the one that this process has read."""

    def __init__(self, study: str) -> None:
        super().__init__(
            f"study {study!r} was deleted, replaced or changed by another program since it was loaded; load it again"
        )


class ForeignStorage(BadStorage):
    """A database with the tables of another program."""

    def __init__(self, url: str, tables: Sequence[str]) -> None:
        super().__init__(
            f"{url} has tables of another program ({', '.join(tables[:3])}{', ...' if len(tables) > 3 else ''}) and no "
            "studies. Choose another database. To keep studies beside those tables, run: shortlist storage upgrade "
            + url
        )


class StorageOutdated(BadStorage):
    """A database of another version of shortlist."""

    def __init__(self, url: str, found: str | None, wanted: str) -> None:
        newer = found is not None and found > wanted
        remedy = (
            "a newer version of shortlist wrote it; install that version"
            if newer
            else f"run: shortlist storage upgrade {url}"
        )
        super().__init__(f"{url} has schema {found or 'none'}, and this version needs {wanted}; {remedy}")


class JudgeFailed(ShortlistError):
    """A judge failed permanently. `study` has every answer so far, `run` has the costs."""

    exit_code = 4
    study: Any = None
    run: Any = None


class JudgeUnavailable(ShortlistError):
    """A judge that may answer later: busy, down, crashed. It is called again after `retry_after` seconds, or after
    a default delay."""

    exit_code = 4

    def __init__(
        self, message: str, retry_after: float | None = None, said: Any = None, may_be_the_question: bool = False,
        is_outage: bool = True,
    ) -> None:  # fmt: skip
        """said: if the call was received and may have to be paid for, what is known of it. may_be_the_question: if
        other calls are answered meanwhile, this question is skipped. is_outage: it is worth waiting for the judge, for
        longer than the retries take."""
        super().__init__(message)
        self.retry_after, self.said = retry_after, said
        self.may_be_the_question, self.is_outage = may_be_the_question, is_outage


class OutOfMoney(ShortlistError):
    """A call that was not made, because it might cost more than is left."""


class JudgeUnclear(ShortlistError):
    """An answer that cannot be understood, or a refusal. The judge is called again, then the question is skipped."""

    def __init__(
        self, message: str, tokens: tuple[int, ...] = (0, 0), said: Any = None, is_final: bool = False
    ) -> None:
        """tokens: read and written; they are paid for even if the answer is unclear. said: the answer in full.
        is_final: the judge would say the same again, so the question is skipped at once."""
        super().__init__(message)
        self.tokens, self.said, self.is_final = tokens, said, is_final


class NotInstalled(ShortlistError):
    """An optional package is needed and missing."""

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'shortlist[{extra}]'")


class NotConverged(ShortlistError):
    """The convex solver did not converge. Please report the votes that caused it."""

    def __init__(self, steps: int, last_step: float) -> None:
        super().__init__(
            f"the fit did not converge in {steps} Newton steps (last step {last_step:.1e}); try a smaller bound"
        )


class GapNotReached(ShortlistError):
    """The oracle problem was not solved to the requested precision."""

    def __init__(self, rounds: int, rate: float, rate_upper: float) -> None:
        super().__init__(
            f"after {rounds} rounds the information rate is between {rate:.6g} and {rate_upper:.6g}; "
            "accept a larger gap"
        )
