"""How people start: `create_study` for their own loop, `find_top` for the loop in one call."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from shortlist import loop
from shortlist.certificates import CERTIFICATES
from shortlist.certificates.verdict import Verdict
from shortlist.errors import BadProblem, JudgeFailed, ShortlistError
from shortlist.families import Family, make_family
from shortlist.problem import Problem
from shortlist.rules import RULES
from shortlist.rules.rule import Rule
from shortlist.study.study import Question, Study

Judge = Callable[[str, str], Any]


def create_study(
    items: Sequence[str],
    k: int,
    delta: float = 0.05,
    *,
    storage: None = None,
    method: str | Rule = "oracle-tracking",
    rule: str | loop.Certificate = "glr",
    family: str | Family = "bradley-terry",
    sigma: float = 1.0,
    bound: float = 10.0,
    tolerance: float = 0.0,
    max_votes: int | None = None,
    seed: int = 0,
) -> Study:
    """A study that looks for the best k items with error at most delta.

    method: how to ask, a name or a rule such as OracleTracking(alpha=0.3). rule: when to stop, a name or a
    certificate such as Glr(lam=1.0). Without a tolerance or max_votes, a tie between the k-th and the next item
    is asked about for ever.
    """
    if storage is not None:
        raise BadProblem("studies live in memory only; leave storage=None")
    if seed < 0:
        raise BadProblem(f"seed is {seed}; give 0 or more")
    problem = Problem(len(items), k, delta, make_family(family, sigma), bound, tolerance, max_votes)
    asking = _by_name(method, RULES, "method")
    stopping = _by_name(rule, CERTIFICATES, "rule")
    return Study(items, problem, asking, stopping, seed)


def find_top(
    items: Sequence[str], k: int, judge: Judge, delta: float = 0.05, *, workers: int = 1, **options: Any
) -> Verdict[str]:
    """Ask `judge(first, second)` until the best k are certain; options as in `create_study`.

    The judge returns the better item's name, "tie", or a number from the first item's side. It may be async;
    `workers` questions are out at once.
    """
    if workers < 1:
        raise BadProblem(f"workers is {workers}; at least one question must be out at a time")
    study = create_study(items, k, delta, **options)
    if inspect.iscoroutinefunction(judge):
        return asyncio.run(_find_async(study, judge, workers))
    with ThreadPoolExecutor(workers) as pool:
        running: dict[Future[Any], Question] = {}
        while not study.verdict.done:
            while len(running) < workers:
                question = study.ask()
                running[pool.submit(judge, question.first, question.second)] = question
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                _record(study, running.pop(future), future.exception(), future)
        pool.shutdown(wait=False, cancel_futures=True)
    return study.verdict


async def _find_async(study: Study, judge: Callable[[str, str], Awaitable[Any]], workers: int) -> Verdict[str]:
    running: dict[asyncio.Task[Any], Question] = {}
    try:
        while not study.verdict.done:
            while len(running) < workers:
                question = study.ask()
                running[asyncio.ensure_future(judge(question.first, question.second))] = question
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                _record(study, running.pop(task), task.exception(), task)
    finally:
        for task in running:
            task.cancel()
    return study.verdict


def _record(study: Study, question: Question, failure: BaseException | None, finished: Any) -> None:
    if failure is not None:
        raise JudgeFailed(
            f"the judge failed on {question.first!r} against {question.second!r}: {failure!r}"
        ) from failure
    answer = finished.result()
    try:
        if isinstance(answer, str) and answer != "tie":
            study.tell(question, winner=answer)
        else:
            study.tell(question, answer)
    except ShortlistError as reason:
        raise JudgeFailed(
            f"the judge answered {answer!r} on {question.first!r} against {question.second!r}: {reason}"
        ) from reason


def _by_name(choice: Any, known: dict[str, Any], what: str) -> Any:
    if not isinstance(choice, str):
        return choice
    if choice not in known:
        raise BadProblem(f"unknown {what} {choice!r}; choose one of {', '.join(known)}")
    return known[choice]()
