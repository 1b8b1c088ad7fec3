"""How people start: `create_study` for their own loop, `find_top` for the loop in one call."""

import asyncio
import inspect
import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from shortlist import loop
from shortlist.certificates import CERTIFICATES
from shortlist.certificates.verdict import Verdict
from shortlist.checks import whole
from shortlist.errors import (
    BadOutcome,
    BadProblem,
    JudgeFailed,
    NothingToAsk,
    StudyDiffers,
    StudyExists,
    UnknownItem,
)
from shortlist.families import Family, make_family
from shortlist.problem import Problem
from shortlist.rules import RULES, default_rule
from shortlist.rules.rule import Rule
from shortlist.study.spec import load_spec, make_spec
from shortlist.study.storage import Storage
from shortlist.study.study import Question, Study, check_items, check_pairs

Judge = Callable[[str, str], Any]


def create_study(
    items: Sequence[str],
    k: int,
    delta: float = 0.05,
    *,
    storage: str | Storage | None = None,
    name: str | None = None,
    load_if_exists: bool = False,
    method: str | Rule = "bridge",
    rule: str | loop.Certificate | None = None,
    family: str | Family = "bradley-terry",
    sigma: float = 1.0,
    bound: float = 10.0,
    tolerance: float = 0.0,
    max_votes: int | None = None,
    allowed: Iterable[tuple[str, str]] | None = None,
    seed: int = 0,
) -> Study:
    """A study that looks for the best k items with error at most delta.

    method: how to ask, a name or a rule such as OracleTracking(alpha=0.3).
    rule: when to stop, a name or a certificate such as Glr(lam=1.0); left out, edges, and glr for the paper's methods.
    family: bradley-terry (wins, ties, grades in [0, 1]) or gaussian (measured differences with noise sigma).
    bound: the largest utility thought possible, in log-odds (gaussian: in units of the outcome).
    tolerance: how much better an outsider may be, in win probability (gaussian: in units of the outcome).
    max_votes: end with the best answer so far after that many votes.
    allowed: the pairs of items that may be asked, if not all (bridge only).
    seed: of sides and of what the rule draws; the same seed and answers give the same questions.

    storage: where to keep it, sqlite:///FILE or postgresql://USER@HOST/DATABASE; left out, in memory.
    name: what to find it by in its storage.
    load_if_exists: go on with the study of that name, if it was created with the same items and options.

    Without a tolerance or max_votes, a tie between the k-th and the next item is asked about for ever.
    """
    names = check_items(items)
    asking = _by_name(method, RULES, "method", "learn")
    if allowed is not None and asking.name != "bridge":
        raise BadProblem(f"method {asking.name} asks all pairs; with allowed= choose method='bridge'")
    speaks, pairs = make_family(family, sigma), None if allowed is None else check_pairs(names, allowed)
    problem = Problem(len(names), k, delta, speaks, bound, tolerance, max_votes, pairs)
    stopping = _by_name(default_rule(asking) if rule is None else rule, CERTIFICATES, "rule", "check")
    number = whole("seed", seed, 0)
    if storage is None:
        return Study(names, problem, asking, stopping, number, check_name(name or "study"))
    if name is None:
        raise BadProblem("a stored study needs a name; give name=")
    spec, place = make_spec(names, problem, asking, stopping, number), open_storage(storage)
    try:
        place.create(check_name(name), spec.dump())
    except StudyExists:
        differences = spec.differences(load_spec(place.spec(name)))
        if not load_if_exists:
            raise
        if differences:
            raise StudyDiffers(name, differences) from None
    return load_study(name, place)


def load_study(name: str, storage: str | Storage) -> Study:
    """The study of that name, where it stands; raises UnknownStudy."""
    place = open_storage(storage)
    spec = load_spec(place.spec(name))
    return Study(spec.items, spec.problem(), spec.asking(), spec.stopping(), spec.seed, name, place)


def open_storage(storage: str | Storage) -> Storage:
    """A storage by its URL, or as it is."""
    if not isinstance(storage, str):
        return storage
    from shortlist.study.sql import open_database  # brings a database library along

    return open_database(storage)


def check_name(name: str) -> str:
    """A name for a study: what a person can type and a URL can hold."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w][\w .-]{0,99}", name):
        raise BadProblem(f"{name!r} is no name for a study; use up to 100 letters, digits, spaces, dots, - and _")
    return name


def find_top(
    items: Sequence[str], k: int, judge: Judge, delta: float = 0.05, *, workers: int = 1, **options: Any
) -> Verdict[str]:
    """Ask `judge(first, second)` until the best k are certain; options as in `create_study`.

    The judge returns the better item's name, "tie", or a number from the first item's side. It may be async;
    `workers` questions are out at once. If it fails, JudgeFailed.study holds all answers until then.
    """
    whole("workers", workers, 1)
    study = create_study(items, k, delta, **options)
    if inspect.iscoroutinefunction(judge) or inspect.iscoroutinefunction(getattr(judge, "__call__", None)):  # noqa: B004
        return _run(_find_async(study, judge, workers))
    with ThreadPoolExecutor(workers) as pool:
        running: dict[Future[Any], Question] = {}
        try:
            while not study.verdict.done:
                for question in _more(study, workers - len(running)):
                    running[pool.submit(judge, question.first, question.second)] = question
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    _record(study, running.pop(future), future)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return study.verdict


async def _find_async(study: Study, judge: Judge, workers: int) -> Verdict[str]:
    running: dict[asyncio.Future[Any], Question] = {}
    try:
        while not study.verdict.done:
            for question in _more(study, workers - len(running)):
                running[asyncio.ensure_future(judge(question.first, question.second))] = question
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                _record(study, running.pop(task), task)
    finally:
        for task in running:
            task.cancel()
    return study.verdict


def _run(search: Coroutine[Any, Any, Verdict[str]]) -> Verdict[str]:
    """Run to the end, also where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(search)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, search).result()


def _more(study: Study, count: int) -> list[Question]:
    """Up to that many new questions; none once the vote budget is all asked for."""
    if count == 0:
        return []
    try:
        return study.ask(count)
    except NothingToAsk:
        return []


def _record(study: Study, question: Question, finished: Future[Any] | asyncio.Future[Any]) -> None:
    pair = f"{question.first!r} against {question.second!r}"
    failure = finished.exception()
    if failure is not None:
        raise _failed(study, f"the judge failed on {pair}: {failure!r}") from failure
    answer = finished.result()
    if answer is None:
        raise _failed(study, f"the judge answered None on {pair}; it must return a name, 'tie' or a number")
    try:
        if isinstance(answer, str) and answer != "tie":
            study.tell(question, winner=answer)
        else:
            study.tell(question, answer)
    except (BadOutcome, UnknownItem) as reason:
        raise _failed(study, f"the judge answered {answer!r} on {pair}: {reason}") from reason


def _failed(study: Study, message: str) -> JudgeFailed:
    error = JudgeFailed(message)
    error.study = study
    return error


def _by_name(choice: Any, known: dict[str, Any], what: str, sign: str) -> Any:
    if hasattr(choice, sign):
        return choice
    if not isinstance(choice, str) or choice not in known:
        raise BadProblem(f"unknown {what} {choice!r}; choose one of {', '.join(known)}")
    return known[choice]()
