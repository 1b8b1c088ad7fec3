"""What judges said, kept with the study: every try that may have to be paid for, with tokens, time and cost."""

from contextlib import suppress
from typing import Any, NamedTuple

from shortlist.core.outcomes import outcome_of
from shortlist.errors import BadOutcome, UnknownItem
from shortlist.judges.base import NO_TOKENS, Call, Said, Skip, Tokens
from shortlist.judges.prompts import PICTURE
from shortlist.judges.setup import RunSetup
from shortlist.study.events import fingerprint
from shortlist.study.storage import JudgeReply, storable
from shortlist.study.study import Study


class Try(NamedTuple):
    """One try of a call, and what came of it."""

    attempt: int
    at: float  # seconds since 1970
    seconds: float
    answer: Any  # a Skip with the reason if there was none
    said: Said
    tokens: Tokens = NO_TOKENS
    cost: float | None = None


class ReplyLog:
    """Collects what the judge said, and stores it. Used from one thread. With `keep_texts` False, only numbers and
    digests are kept."""

    def __init__(self, study: Study, setup: RunSetup, keep_texts: bool) -> None:
        self._study, self._setup, self._keep_texts = study, setup, keep_texts
        self._known = set(study.storage.texts(study.name)) if keep_texts else set[str]()  # texts that are stored
        self._texts: dict[str, str] = {}
        self.unstored: list[JudgeReply] = []

    def add(self, call: Call, tries: tuple[Try, ...]) -> None:
        for one in tries:
            self.unstored.append(self._row(call, one))

    def store(self) -> None:
        """Store what was collected; it can be tried again."""
        if not self.unstored:
            return
        self._study.storage.add_replies(self._study.name, self.unstored, self._texts)
        self._known |= self._texts.keys()
        self._texts, self.unstored = {}, []

    def lines(self) -> list[dict[str, Any]]:
        """What is not stored yet, for a file."""
        texts = [self._texts, *({} for _ in self.unstored[1:])]
        return [{"reply": reply._asdict(), "texts": shown} for reply, shown in zip(self.unstored, texts, strict=False)]

    def _row(self, call: Call, one: Try) -> JudgeReply:
        is_skip, outcome = isinstance(one.answer, Skip), None
        with suppress(BadOutcome, UnknownItem):
            outcome = None if is_skip else outcome_of(one.answer, call.first, call.second, self._study.problem.family)
        text, reasoning = (storable(said) if self._keep_texts else None for said in (one.said.text, one.said.reasoning))
        first, second = (call.first_text or call.first, call.second_text or call.second)
        case = None if call.case is None else self._digest(call.case.text)
        return JudgeReply(
            call.id, self._setup.judge, "" if call.member is None else self._setup.members[call.member][0],
            None if call.case is None else call.case.id, call.first, call.second, outcome,
            one.answer.reason if is_skip else "", one.attempt, one.at, one.seconds, one.said.request, one.said.model,
            text, reasoning, one.tokens.prompt, one.tokens.cached, one.tokens.completion, one.cost,
            self._digest(first), self._digest(second), case,
        )  # fmt: skip

    def _digest(self, text: str) -> str | None:
        """The digest of a text, which is stored once."""
        if not self._keep_texts:
            return None
        kept = storable(f"[picture of {len(text):,} letters]" if text.startswith(PICTURE) else text)
        digest = fingerprint(kept)
        if digest not in self._known:
            self._texts[digest] = kept
        return digest
