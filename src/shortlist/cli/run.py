"""`shortlist run`: a program, a language model or recorded votes judge a study. `shortlist judge`: a person does."""

import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import typer

from shortlist.analysis.audit import check_texts
from shortlist.analysis.checks import Check
from shortlist.cli.app import RESUME, this_command
from shortlist.cli.judge_options import (
    AS_NEW_JUDGE,
    COMMAND,
    CRITERIA,
    ESTIMATE,
    HEADER,
    JUDGE_NAME,
    KEEP,
    KEEP_TEXTS,
    KEY_HEADER,
    KEY_VARIABLE,
    MAX_COST,
    MAX_TOKENS,
    ME,
    MODEL,
    PANEL,
    PATTERN,
    PRICE,
    PRICES,
    PROMPT,
    QUERY,
    RECORDED,
    RECORDED_MAP,
    REQUEST_OPTION,
    RPM,
    STYLE,
    SYSTEM,
    TEMPERATURE,
    TPM,
    UNIT,
    URL,
    VERDICT,
    Answer,
    JudgeOptions,
    Kind,
    ModelOptions,
    Panel,
    Style,
    Unit,
    recorded_pairs,
    with_pictures,
)
from shortlist.cli.keyboard import judge_in_terminal
from shortlist.cli.options import (
    ADVANCED,
    BALLOT_SIZE,
    CASES,
    CASES_CLAIM,
    CONFIG,
    DELTA,
    FAMILY,
    JSON,
    JUDGES_CLAIM,
    MAX_VOTES,
    MIN_JUDGES,
    SAMPLING,
    SIGMA,
    STOPPING,
    STORAGE,
    TOLERANCE,
    Claim,
    JudgesClaim,
    K,
    console,
    count_of,
    exit_with,
    note,
    print_json,
    progress_bar,
    record_config,
    say,
)
from shortlist.cli.outputs import (
    ACCEPT,
    FILTER,
    FORMAT,
    MISSING,
    ONLY,
    REPEAT,
    THINKING,
    TURN,
    WIDE,
    Material,
    Missing,
    OutputOptions,
    Thinking,
    read_material,
)
from shortlist.cli.run_display import RunDisplay, calls_made, estimate_lines
from shortlist.cli.studies import NAME, current_result, plain_name_errors, print_result
from shortlist.core.families import Family, make_family
from shortlist.errors import (
    BadCases,
    BadJudge,
    BadOutputs,
    BadStorage,
    JudgeFailed,
    StorageUnavailable,
    StudyDiffers,
    StudyReplaced,
)
from shortlist.judges.base import Judge, RecordedJudge
from shortlist.judges.calls import StoragePatience
from shortlist.judges.cases import read_cases
from shortlist.judges.estimate import SIMULATIONS, ScratchStorage, estimate_run
from shortlist.judges.meter import Meter
from shortlist.judges.run import listed_cases, run_study
from shortlist.judges.run_log import StudyRun, save_texts
from shortlist.judges.setup import set_up
from shortlist.study.create import create_study, load_study, open_storage
from shortlist.study.schema import shown, sqlite_file
from shortlist.study.storage import MemoryStorage, Storage
from shortlist.study.study import Study
from shortlist.votes.files import STANDARD_INPUT
from shortlist.votes.items import read_items

CALLS = "Calls to the judge"


class Order(StrEnum):
    """The sides on which a judge sees the two items."""

    random = "random"
    both = "both"


MATERIAL = typer.Argument(
    ...,
    metavar="ITEMS",
    help="Items: a text file with one item per line, a CSV, TSV or JSON Lines file with columns name and content, or a "
    "folder of files. Or outputs, with their items and cases: files as `shortlist outputs` reads them.",
)
ORDER = typer.Option(
    Order.random,
    help="Show the two items in random order, or ask in both orders and take the mean.",
    rich_help_panel=CALLS,
)
MAX_CALLS = typer.Option(
    None,
    min=1,
    help="Stop after this many calls. Run the same command with a higher limit to continue.",
    rich_help_panel=CALLS,
)
WORKERS = typer.Option(8, min=1, help="Number of questions that are asked at the same time.", rich_help_panel=CALLS)
RETRIES = typer.Option(3, min=0, help="How often a failed call is tried again.", rich_help_panel=CALLS)
TIME_LIMIT = typer.Option(300.0, help="Seconds until a call is given up.", rich_help_panel=CALLS)
PATIENCE = typer.Option(
    600.0,
    min=0.0,
    help="Seconds to wait for a judge that does not respond, such as a server that is down.",
    rich_help_panel=CALLS,
)
STORAGE_PATIENCE = typer.Option(
    60.0,
    min=0.0,
    help="Seconds to wait for a storage that does not respond. Answers are kept meanwhile.",
    rich_help_panel=CALLS,
)
SEED = typer.Option(0, help="Random seed: which item is shown first, which case is drawn.", rich_help_panel=ADVANCED)
STUDY_NAME = typer.Option(
    None, "--name", help="Name of the study. Default: the name of the file, or of the folder of several files."
)


def run(
    items: list[Path] = MATERIAL, k: int = K, config: Path | None = CONFIG,
    judge: str | None = COMMAND, keep: int | None = KEEP, judge_url: list[str] | None = URL,
    model: list[str] | None = MODEL, prompt: Path | None = PROMPT, temperature: float | None = TEMPERATURE,
    system: Path | None = SYSTEM, criteria: str | None = CRITERIA, prompt_style: Style | None = STYLE,
    verdict: Kind | None = VERDICT, verdict_pattern: str | None = PATTERN, max_tokens: int | None = MAX_TOKENS,
    option: list[str] | None = REQUEST_OPTION, header: list[str] | None = HEADER, query: list[str] | None = QUERY,
    key_variable: list[str] | None = KEY_VARIABLE, key_header: str = KEY_HEADER, rpm: float | None = RPM,
    tpm: float | None = TPM, panel: Panel = PANEL, keep_texts: Answer = KEEP_TEXTS,
    price: str | None = PRICE, prices: str | None = PRICES, max_cost: float | None = MAX_COST,
    estimate: bool = ESTIMATE,
    votes: Path | None = RECORDED, columns: list[str] | None = RECORDED_MAP, unit: Unit | None = UNIT,
    judge_name: str | None = JUDGE_NAME, as_new_judge: bool = AS_NEW_JUDGE,
    missing: Missing = MISSING, turn: str = TURN, repeat: str = REPEAT, only: list[str] | None = ONLY,
    wide: bool = WIDE, thinking: Thinking = THINKING, format: str | None = FORMAT, filter: str | None = FILTER,
    accept: list[str] | None = ACCEPT,
    cases: Path | None = CASES, cases_claim: Claim = CASES_CLAIM, judges_claim: JudgesClaim = JUDGES_CLAIM,
    ballot_size: int = BALLOT_SIZE, min_judges: int = MIN_JUDGES, order: Order = ORDER,
    delta: float = DELTA, tolerance: float = TOLERANCE, max_votes: int | None = MAX_VOTES,
    max_calls: int | None = MAX_CALLS, workers: int = WORKERS, retries: int = RETRIES, time_limit: float = TIME_LIMIT,
    patience: float = PATIENCE, storage_patience: float = STORAGE_PATIENCE,
    sampling: str = SAMPLING, stopping: str | None = STOPPING, family: str = FAMILY, sigma: float = SIGMA,
    seed: int = SEED, name: str | None = STUDY_NAME, storage: str = STORAGE, as_json: bool = JSON,
) -> None:  # fmt: skip
    """Find the best k items with a program, a language model or recorded votes as judge.

    The items are listed in a file, or come with their outputs on cases from the files of another tool.
    Progress is saved after every vote. Run the same command again to resume. Exit codes: 0 proved, 3 ended without a
    proof, 2 wrong input, 4 the judge or the storage failed and the run can be resumed, 130 interrupted.
    """
    fields, titles = (columns, None) if votes is None else (None, columns)
    shown_options = OutputOptions(fields, missing, turn, repeat, only, wide, thinking, format, filter, accept)
    listed, outcomes = read_material(items, cases, shown_options), make_family(family, sigma)
    models = ModelOptions(
        judge_url, model, prompt, temperature, system, criteria, prompt_style, verdict, verdict_pattern, max_tokens,
        option, header, query, key_variable, key_header, rpm, tpm, panel,
        price, prices,
    )  # fmt: skip
    options = JudgeOptions(judge, keep, models, votes, titles, unit, judge_name)
    chosen = options.make(listed.names, listed.cases, outcomes)
    listed = with_pictures(listed, chosen)
    if chosen is not None:
        Meter(chosen, max_cost)  # refuses a ceiling that cannot be kept
    _check_material(listed, cases_claim, missing, outcomes, is_recorded=votes is not None)
    if chosen is None and as_json:
        raise BadJudge("--judge me works in the terminal and does not print JSON; leave out --json")
    create = partial(
        create_study, listed.names, k, delta, storage=storage, name=name or _name(items), load_if_exists=True,
        tolerance=tolerance, max_votes=max_votes, sampling=sampling, stopping=stopping, family=family, sigma=sigma,
        allowed=recorded_pairs(chosen, listed.names), cases_claim=cases_claim.words, judges_claim=judges_claim.value,
        ballot_size=ballot_size, min_judges=min_judges, seed=seed,
    )  # fmt: skip
    shown_and_asked: dict[str, Any] = {
        "workers": workers, "cases": listed.cases, "contents": listed.contents, "position": order.value,
        "as_new_judge": as_new_judge, "known_answer": listed.known_answer,
    }  # fmt: skip
    if estimate:
        scratch = _copied(storage, name or _name(items))
        study = _create_or_resume(partial(create, storage=scratch), scratch, max_votes)
        return _show_estimate(study, chosen, shown_and_asked, (max_calls, max_cost), as_json)
    study = _create_or_resume(create, storage, max_votes)
    if changed := record_config(study, config):
        note(changed)
    if chosen is None:
        judge_in_terminal(study, judge_name or ME, listed.contents, listed.cases, storage_patience)
        return exit_with(study.verdict)
    asking = partial(
        run_study, study, chosen, **shown_and_asked, retries=retries, time_limit=time_limit, max_calls=max_calls,
        storage_patience=storage_patience, patience=patience, max_cost=max_cost, keep_texts=keep_texts is Answer.yes,
    )  # fmt: skip
    keep = keep_texts is Answer.yes
    found = _run_watched(study, asking, chosen, listed, as_new_judge, storage, keep)
    _show(study, found, listed, as_json, StoragePatience(storage_patience, note))
    exit_with(study.verdict)


def _check_material(listed: Material, claim: Claim, missing: Missing, outcomes: Family, is_recorded: bool) -> None:
    """Raise what is wrong with the cases for this claim, or with outputs that lose by being missing."""
    if claim is Claim.like_these and listed.cases is None and not is_recorded:
        raise BadCases("a claim about cases like these needs cases; give --cases FILE")
    if missing is Missing.lose and outcomes.is_measured:
        raise BadOutputs("a missing output has no measured difference; choose --missing refuse or drop")
    if claim is Claim.like_these and listed.has_repeats:
        raise BadCases("repeats of a case are not cases drawn afresh; claim these cases, or take one repeat")


def _run_watched(
    study: Study, asking: Callable[..., StudyRun], judge: Judge, listed: Material, as_new_judge: bool, storage: str,
    keep_texts: bool,
) -> StudyRun:  # fmt: skip
    """Let `asking` run with a display of how far it is. If it ends early, say how to resume."""
    on_cases = listed_cases(study, judge, listed.cases)
    setup = set_up(study, judge, on_cases, listed.contents, as_new_judge)  # refuses before anything is printed
    if keep_texts and not listed.files and not isinstance(judge, RecordedJudge):
        save_texts(study, listed.contents, listed.cases)
    error = f"error at most {study.problem.stated_delta:g}"
    title = f"{study.name} in {shown(storage)}: best {study.problem.k} of {len(listed.names)}, {error}"
    print(f"{'resuming' if study.verdict.votes else 'new study'} {title}", file=sys.stderr)
    with RunDisplay(study, title) as display:
        _warn_of_others(study, setup.judge, display)
        try:
            return asking(progress=display.show, warn=display.warn)
        except (JudgeFailed, BadStorage) as failure:
            failure.args = (f"{failure}; {_saved(study)}. {RESUME}{this_command()}",)
            if type(failure) in (BadStorage, StudyReplaced):  # it worked when the run began, and may work again
                raise StorageUnavailable(str(failure)) from None
            raise
        except KeyboardInterrupt:
            display.__exit__(None, None, None)
            print(f"shortlist: interrupted; {_saved(study)}. {RESUME}{this_command()}", file=sys.stderr)
            sys.exit(130)


def _copied(storage: str, name: str) -> ScratchStorage:
    """A copy of the study in memory, so that nothing is written; empty if there is none."""
    is_new = storage.startswith("sqlite:///") and not sqlite_file(storage).exists()
    return ScratchStorage(MemoryStorage() if is_new else open_storage(storage, create=False), name)


def _show_estimate(
    study: Study, judge: Judge | None, options: Mapping[str, Any], ceilings: tuple[int | None, float | None],
    as_json: bool,
) -> None:  # fmt: skip
    if judge is None:
        raise BadJudge("an estimate is about the calls to a program or a language model; leave out --estimate")
    with progress_bar("simulating", SIMULATIONS) as finished:
        found = estimate_run(study, judge, **options, progress=finished)
    if as_json:
        return print_json({"name": study.name, **found.to_dict()})
    for line in estimate_lines(found, *ceilings):
        say(line, "")


def _create_or_resume(create: Callable[[], Study], storage: str | Storage, max_votes: int | None) -> Study:
    with plain_name_errors():
        try:
            return create()
        except StudyDiffers as other:
            return _with_higher_budget(other, storage, max_votes)


def _with_higher_budget(other: StudyDiffers, storage: str | Storage, max_votes: int | None) -> Study:
    """The stored study with a higher vote budget. If anything else differs, the error is raised again."""
    study = load_study(other.name, storage)
    limit = study.problem.max_votes
    if set(other.differences) != {"max_votes"} or max_votes is None or limit is None or max_votes < limit:
        raise other
    study.change(max_votes=max_votes)
    return study


def _name(items: Sequence[Path]) -> str:
    """A name for the study from that of its items; of several files from that of their folder."""
    path = items[0].resolve() if len(items) == 1 else items[0].resolve().parent
    stem = "outputs" if str(items[0]) == STANDARD_INPUT else path.stem
    return re.sub(r"[^\w .-]", "-", stem).lstrip(" .-")[:100] or "study"


def _warn_of_others(study: Study, judge: str, display: "RunDisplay") -> None:
    others = sorted({str(question.judge) for question in study.pending if question.judge != judge})
    if others:
        display.warn(
            f"some questions are pending with {', '.join(others)} and count as losses until they are answered; run "
            f"that judge again, or close them with: shortlist tell {shlex.quote(study.name)} NUMBER skip"
        )


def _saved(study: Study) -> str:
    return f"{count_of(study.verdict.votes, 'vote')} saved"


def _show(study: Study, found: StudyRun, listed: Material, as_json: bool, patience: StoragePatience) -> None:
    verdict, spent = patience(partial(current_result, study))
    share, checks = found.stats.first_share, patience(partial(_checks, study, listed))
    if as_json:
        rates = {"first_share": share, "flip_rate": found.stats.flip_rate, "agreement": found.stats.agreement}
        ending = {"warnings": found.warnings, "used_up": found.used_up, "claims": study.claims}
        ending |= {"configs": study.setups.configs, "checks": [vars(check) for check in checks]}
        own = {"name": study.name, "costs": vars(found.costs), **rates, **ending, "utilities": study.utilities}
        return print_json({**verdict.to_dict(), **own})
    print_result(study, verdict, spent)
    sides = "" if share is None else f" The item shown first won {share:.0%} of the answers."
    console().print()
    say(f"Calls in this run: {calls_made(found)}.{sides}")
    if found.stats.agreement is not None:
        again, agreed = count_of(found.stats.compared, "time"), f"{found.stats.agreement:.0%}"
        say(f"Two judges of the panel answered the same question {again}, and agreed in {agreed} of them.")
    for check in checks:
        if check.status == "warning":
            say(f"Have a look: {check.sentence}")
    if found.needs_judge:
        say(f"Run another judge on this study to continue (--name {shlex.quote(study.name)}).")
    elif not study.verdict.done and not found.used_up:
        say("Run the same command again to continue.")


def _checks(study: Study, listed: Material) -> tuple[Check, ...]:
    """What the judge's answers go with beside quality, if texts were shown."""
    if listed.files or not any((listed.contents or {}).values()):
        return ()
    return check_texts(study, listed.contents or {}, listed.cases)


def judge(
    name: str = NAME,
    judge: str = typer.Option(ME, "--as", help="Your name. It is stored with your votes."),
    items: Path | None = typer.Option(None, help="File or folder of items, to show their contents."),
    cases: Path | None = CASES,
    storage_patience: float = STORAGE_PATIENCE,
    storage: str = STORAGE,
) -> None:
    """Judge pairs in the terminal.

    Every answer is saved; run the command again to continue. Keys: 1 or left arrow, 2 or right arrow, t for a tie, s to
    skip, u to undo, q to quit.
    """
    study = load_study(name, storage)
    contents = None if items is None else read_items(items).contents
    known = None if cases is None else read_cases(cases)
    judge_in_terminal(study, judge, contents, known, storage_patience, shows_texts=items is not None)
