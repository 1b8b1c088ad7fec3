"""One call to a judge, with as many tries as it takes."""

import asyncio
import random
from dataclasses import dataclass

from shortlist.checks import real, whole
from shortlist.errors import BadJudge, JudgeFailed, JudgeUnavailable, JudgeUnclear, ShortlistError
from shortlist.judges.judge import Ask, Asked, Reply, Skip, Tokens
from shortlist.judges.stats import Costs


@dataclass(frozen=True)
class Backoff:
    """How long to wait before a retry: `first` seconds, then twice as long each time up to `most`, shortened by dice so
    that workers do not come back all at once. A judge may ask for more, but not for more than `patience`."""

    first: float = 1.0
    most: float = 60.0
    patience: float = 600.0

    def __post_init__(self) -> None:
        for name in ("first", "most", "patience"):
            if real(name, getattr(self, name)) < 0:
                raise BadJudge(f"{name} is {getattr(self, name)}; give a number of seconds")

    def delay(self, retry: int, wanted: float | None = None) -> float:
        """Seconds before that retry (0 is the first one), not less than the judge wants."""
        usual = min(self.first * 2.0 ** min(retry, 60), self.most) * random.uniform(0.5, 1.0)
        return usual if wanted is None else max(usual, wanted + random.uniform(0.0, self.first))


@dataclass(frozen=True)
class Patience:
    """How often and how long to try."""

    retries: int = 3
    time_limit: float | None = 300.0  # seconds for one try
    backoff: Backoff = Backoff()

    def __post_init__(self) -> None:
        whole("retries", self.retries, 0)
        if self.time_limit is not None and real("time_limit", self.time_limit) <= 0:
            raise BadJudge(f"time_limit is {self.time_limit}; give seconds, or None for no limit")


async def persist(ask: Ask, asked: Asked, patience: Patience, costs: Costs) -> Reply:
    """The judge's reply, or a Skip when the last try was unclear or too slow. Raises JudgeFailed."""
    for retry in range(patience.retries + 1):
        costs.calls += 1
        costs.retries += retry > 0
        try:
            async with asyncio.timeout(patience.time_limit):
                reply = await ask(asked)
            if not isinstance(reply, Reply):
                raise JudgeFailed(f"it returned a {type(reply).__name__}, not a Reply")
        except (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError) as reason:
            if _is_our_own(reason):
                raise
            skip, wait = _weigh(reason, retry, asked, patience, costs)
        else:
            _count(reply.tokens, costs)
            return reply
        if retry < patience.retries:
            await asyncio.sleep(wait)
    return Reply(skip)


def _weigh(reason: BaseException, retry: int, asked: Asked, patience: Patience, costs: Costs) -> tuple[Skip, float]:
    """What to say if this was the last try, and how long to wait if not. Raises if there must be no other."""
    if isinstance(reason, JudgeUnclear):
        return _unclear(reason, costs), 0.0
    if isinstance(reason, TimeoutError):
        costs.unclear += 1
        return Skip(_too_slow(patience.time_limit)), patience.backoff.delay(retry)
    wanted = reason.retry_after if isinstance(reason, JudgeUnavailable) else None
    hopeless = isinstance(reason, ShortlistError) and not isinstance(reason, JudgeUnavailable)
    if hopeless or retry == patience.retries or (wanted or 0.0) > patience.backoff.patience:
        raise _gave_up(asked, reason, retry + 1) from (None if isinstance(reason, ShortlistError) else reason)
    return Skip(str(reason)), patience.backoff.delay(retry, wanted)


def _unclear(reason: JudgeUnclear, costs: Costs) -> Skip:
    costs.unclear += 1
    _count(Tokens(*reason.tokens), costs)
    return Skip(str(reason))


def _too_slow(time_limit: float | None) -> str:
    return "no answer in time" if time_limit is None else f"no answer within {time_limit:g} seconds"


def _count(tokens: Tokens, costs: Costs) -> None:
    costs.prompt_tokens += tokens.prompt
    costs.completion_tokens += tokens.completion


def _is_our_own(reason: BaseException) -> bool:
    """Was it the runner that cancelled this call, or did the judge make it up?"""
    task = asyncio.current_task()
    return isinstance(reason, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _gave_up(asked: Asked, reason: BaseException, tries: int) -> JudgeFailed:
    what = str(reason) if isinstance(reason, ShortlistError) else repr(reason)
    return JudgeFailed(f"the judge failed on {asked}: {what}" + (f" ({tries} tries)" if tries > 1 else ""))
