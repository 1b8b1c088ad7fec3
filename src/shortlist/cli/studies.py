"""Commands on a stored study: create, status, ask, tell, import, export; and verify, on a proof of one."""

import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from shortlist.analysis.votes import as_table
from shortlist.cli.options import (
    ADVANCED,
    BALLOT_SIZE,
    CASES_CLAIM,
    DELTA,
    FAMILY,
    ITEMS,
    JSON,
    JUDGES_CLAIM,
    MAP,
    MAX_VOTES,
    MIN_JUDGES,
    SAMPLING,
    SIGMA,
    SKIP_BAD,
    STOPPING,
    STORAGE,
    TOLERANCE,
    UNIT,
    VOTES,
    Claim,
    JudgesClaim,
    K,
    console,
    count_of,
    load_single_votes,
    print_items,
    print_json,
    print_verdict,
    say,
    working,
)
from shortlist.core.sampling import why_edges
from shortlist.core.stopping.base import Verdict
from shortlist.errors import BadProblem, BadVotes, StudyDiffers, StudyExists
from shortlist.study.create import create_study, load_study
from shortlist.study.proof import check_proof, replay_proof, write_proof
from shortlist.study.questions import BALLOT_LEASE
from shortlist.study.rows import counted
from shortlist.study.storage import Spent
from shortlist.study.study import Study
from shortlist.verify import sentences
from shortlist.votes.items import read_items
from shortlist.votes.table import write_votes

NAME = typer.Argument(..., metavar="NAME", help="Name of the study.")
FIXED_SETTING = typer.Option(None, hidden=True, help="Cannot be changed: `set` says why.")


def create(
    items: Path = ITEMS,
    name: str = typer.Option(..., help="Name of the new study."),
    k: int = K,
    delta: float = DELTA,
    tolerance: float = TOLERANCE,
    max_votes: int | None = MAX_VOTES,
    cases_claim: Claim = CASES_CLAIM,
    judges_claim: JudgesClaim = JUDGES_CLAIM,
    ballot_size: int = BALLOT_SIZE,
    min_judges: int = MIN_JUDGES,
    sampling: str = SAMPLING,
    stopping: str | None = STOPPING,
    family: str = FAMILY,
    sigma: float = SIGMA,
    seed: int = typer.Option(
        0, help="Random seed: which item of a pair is shown first, and what the rules draw.", rich_help_panel=ADVANCED
    ),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Create a study.

    Then judge it with `shortlist judge`, or from a script with `shortlist ask` and `shortlist tell`.
    """
    with plain_name_errors():
        study = create_study(
            read_items(items).names, k, delta, storage=storage, name=name, tolerance=tolerance, max_votes=max_votes,
            sampling=sampling, stopping=stopping, family=family, sigma=sigma, cases_claim=cases_claim.words,
            judges_claim=judges_claim.value, ballot_size=ballot_size, min_judges=min_judges, seed=seed,
        )  # fmt: skip
    show_study(study, as_json)


@contextmanager
def plain_name_errors() -> Iterator[None]:
    """Report a name that is taken in terms of the command line."""
    try:
        yield
    except StudyExists as taken:
        raise BadProblem(f"a study named {taken.name!r} already exists; choose another --name") from None
    except StudyDiffers as other:
        change = f"change it with shortlist set {shlex.quote(other.name)}, " if other.can_change else ""
        raise BadProblem(
            f"a study named {other.name!r} already exists with other settings: {'; '.join(other.differences.values())};"
            f" {change}use the same items and options to continue it, or choose another --name"
        ) from None


def set_limits(
    name: str = NAME,
    max_votes: str | None = typer.Option(
        None, metavar="N|none", help="The new vote budget. If the old one is used up, the study goes on."
    ),
    delta: float | None = typer.Option(None, help="The new allowed probability that the answer is wrong: smaller."),
    min_judges: int | None = typer.Option(None, min=1, help="The new number of judges that a proof rests on at least."),
    withdraw: str | None = typer.Option(
        None, metavar="ITEM", help="Withdraw this item. The answer is among the others."
    ),
    items: str | None = FIXED_SETTING,
    k: str | None = FIXED_SETTING,
    tolerance: str | None = FIXED_SETTING,
    stopping: str | None = FIXED_SETTING,
    cases_claim: str | None = FIXED_SETTING,
    judges_claim: str | None = FIXED_SETTING,
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Change the vote budget, delta or the number of judges of a study, or withdraw an item.

    A higher budget continues a study that has used up its budget, with the same proof: all answers count. A budget of
    no more than the votes so far ends the study. Delta can only be made smaller; after the first question a proof still
    states the largest delta that was in force. With fewer judges, what is proved stays; with more, it is worked out
    again. Nothing more is asked about a withdrawn item, its votes stay in the record, and a proof states a larger
    error. Other settings cannot be changed.
    """
    fixed = {"items": items, "k": k, "tolerance": tolerance, "stopping": stopping, "cases_claim": cases_claim,
             "judges_claim": judges_claim}  # fmt: skip
    changes: dict[str, Any] = {option: value for option, value in fixed.items() if value is not None}
    if max_votes is not None:
        changes["max_votes"] = _budget(max_votes)
    if delta is not None:
        changes["delta"] = delta
    if min_judges is not None:
        changes["min_judges"] = min_judges
    if not changes and withdraw is None:
        raise BadProblem("nothing to change; give --max-votes, --delta, --min-judges or --withdraw")
    study = load_study(name, storage)
    if withdraw is not None:
        study.withdraw_item(withdraw)
    if changes:
        study.change(**changes)
    show_study(study, as_json)


def _budget(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise BadProblem(f"--max-votes is {text!r}; give a whole number, or none for no limit") from None


def status(name: str = NAME, storage: str = STORAGE, as_json: bool = JSON) -> None:
    """Show the current result of a study.

    Prints the best answer so far, its error bound and guarantee, and which items are proved to be in or out.
    """
    show_study(load_study(name, storage), as_json)


def current_result(study: Study) -> tuple[Verdict[str], Spent]:
    """Where a study stands, and what it cost: all that is read from the storage before a result is printed."""
    study.close_due()
    with working("Computing the error bound"):
        return study.examine(), study.spent


def show_study(study: Study, as_json: bool) -> None:
    """Print the current result of a study."""
    print_result(study, *current_result(study), as_json)


def print_result(study: Study, verdict: Verdict[str], spent: Spent, as_json: bool = False) -> None:
    if as_json:
        state = {"name": study.name, "paused": study.paused, "archived": study.archived, "delta": study.problem.delta,
                 "max_votes": study.problem.max_votes, "counts": study.counts, "advice": study.advice,
                 "head": study.head._asdict(), "claims": study.claims, "spent": spent._asdict(),
                 "sampling": study.sampling.name, "stopping": study.stopping.name}  # fmt: skip
        return print_json({**verdict.to_dict(), **state, "utilities": study.utilities, "chances": study.chances()})
    print_verdict(verdict)
    for claim in study.claims:
        say(claim)
    say(f"Votes and questions: {_counted(study)}.")
    say(f"Questions are chosen by {study.sampling.name}, and the answer is proved by {study.stopping.name}.")
    if study.stopping.name == "edges" and (why := why_edges(study.sampling, study.problem, study.judges_claim)):
        say(f"Not by cuts, which needs fewer votes: {why}.")
    if spent.calls:
        say(f"Answers kept: {spent_in_words(spent)}. To read them: shortlist read {shlex.quote(study.name)}")
    say(f"Record: {count_of(study.head.events, 'event')}, hash {study.head.hash}.")
    if study.archived:
        say("The study is archived.")
    elif study.paused:
        say("The study is paused.")
    if study.advice:
        say(f"{study.advice[0].upper()}{study.advice[1:]}.")
    print_study_items(study, verdict)


def spent_in_words(spent: Spent) -> str:
    """What all runs of a study cost."""
    words = [f"{spent.calls:,}"]
    if spent.prompt_tokens or spent.completion_tokens:
        words.append(f"{spent.prompt_tokens:,} tokens read and {spent.completion_tokens:,} written")
    if spent.cost:
        words.append(
            f"cost {spent.cost:.4g}" + (f" without {spent.unpriced:,} of no known price" if spent.unpriced else "")
        )
    return ", ".join(words)


def _counted(study: Study) -> str:
    """How many rows of the study have each status, in words; what does not occur is left out."""
    return ", ".join(f"{count:,} {status}" for status, count in study.counts.items() if count or status == "counted")


def print_study_items(study: Study, verdict: Verdict[str]) -> None:
    """The table of items of a study."""
    votes = Counter(item for row in counted(study.rows) for item in (row.first, row.second))
    print_items(verdict, study.utilities, votes, study.chances())


def ask(
    name: str = NAME,
    judge: str | None = typer.Option(None, help="Name of the judge who answers. It is stored with the votes."),
    count: int = typer.Option(1, min=1, help="How many questions to get."),
    lease: float | None = typer.Option(
        None,
        help="A question that is not answered within this many seconds counts as lost by both items. Default: no "
        "limit, and one hour for a ballot.",
    ),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Get the next questions to put to a judge.

    Answer each one with `shortlist tell`, or close it with the answer `skip`. A pending question counts as a loss for
    both items until it is answered. In a study about the public these are the next questions of the judge's ballot.
    """
    study = load_study(name, storage)
    if lease is None and study.judges_claim == "public":
        lease = BALLOT_LEASE
    questions = study.ask(count, judge=judge, lease=lease)
    if as_json:
        return print_json({"questions": [{"id": q.id, "first": q.first, "second": q.second} for q in questions]})
    for question in questions:
        console().print(f"question {question.id}: {question.first} or {question.second}?")


def tell(
    name: str = NAME,
    question: int = typer.Argument(..., metavar="NUMBER", help="Number of the question, as printed by `ask`."),
    answer: str = typer.Argument(
        ...,
        metavar="ANSWER",
        help="first, second, tie, skip, the name of the better item, or a number (1: first wins, 0: second wins).",
    ),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Answer a question."""
    study = load_study(name, storage)
    _tell_answer(study, question, answer)
    show_study(study, as_json)


def _tell_answer(study: Study, question: int, answer: str) -> None:
    """The name of an item goes before the words for sides: an item may be named `first`."""
    if answer in study.items:
        study.tell(question, winner=answer)
    elif answer == "skip":
        study.skip(question)
    elif answer in ("first", "second"):
        study.tell(question, winner=getattr(study.question(question), answer))
    else:
        study.tell(question, "tie" if answer == "tie" else _number(answer))


def _number(answer: str) -> float:
    try:
        return float(answer)
    except ValueError:
        raise BadProblem(
            f"{answer!r} is not an answer; give first, second, tie, skip, the name of an item or a number"
        ) from None


def import_votes(
    name: str = NAME,
    votes: Path = VOTES,
    columns: list[str] | None = MAP,
    unit: str | None = UNIT,
    skip_bad: bool = SKIP_BAD,
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Add votes from a file to a study.

    The guarantee needs all votes on each pair, in the order in which they were cast: do not select them by outcome, and
    do not sort them. Rows that were imported before are left out, so a file that has grown can be imported again. For a
    second file of new votes, name a column that tells its rows from earlier ones: --map id=COLUMN.
    """
    study = load_study(name, storage)
    table = load_single_votes(votes, study.problem.family, columns, skip_bad, "a study", unit)
    first, second = ([table.items[i] for i in side.tolist()] for side in (table.first, table.second))
    with working(f"Adding {len(table):,} votes"):
        study.import_votes(
            first, second, table.outcome.tolist(), table.judge or (), votes.name, table.unit or (), table.id or ()
        )
    show_study(study, as_json)


def export(
    name: str = NAME,
    votes: Path | None = typer.Argument(
        None, metavar="FILE", help="Vote file to write: .csv, .tsv, .jsonl, .json or .parquet."
    ),
    proof: Path | None = typer.Option(
        None, metavar="FILE", help="Write a proof that anyone can check with `shortlist verify`, or with verify.py."
    ),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Write the votes of a study, or its proof, to a file.

    A vote file has every vote that counts, in the order in which the votes were cast. Undone votes and votes of voided
    judges are left out. A proof has everything that happened, with the names of the judges: ask them before you publish
    it.
    """
    if (votes is None) == (proof is None):
        raise BadProblem("give a vote file to write, or --proof FILE")
    if proof is not None:
        return _export_proof(load_study(name, storage), proof, as_json)
    assert votes is not None
    study = load_study(name, storage)
    study.settle()
    rows, counts = counted(study.rows), study.counts
    if not rows:
        raise BadVotes(f"the study {name!r} has no votes to export")
    write_votes(votes, as_table(rows))
    if as_json:
        left_out = {"undone": counts["undone"], "voided": counts["voided"], "lost": counts["lost"]}
        return print_json({"votes": len(rows), **left_out, "file": str(votes)})
    say(f"{count_of(len(rows), 'vote')} written to {votes}.", "")
    if counts["undone"]:
        say(f"{count_of(counts['undone'], 'undone vote')} left out.", "")
    if counts["voided"]:
        say(f"{count_of(counts['voided'], 'vote')} of voided judges left out.", "")
    if counts["lost"]:
        say(f"{count_of(counts['lost'], 'lost question')} left out.", "")
    if counts["undone"] or counts["voided"] or counts["lost"]:
        say("A proof from this file is valid only if no vote was withdrawn or lost because of its outcome.", "")


def _export_proof(study: Study, file: Path, as_json: bool) -> None:
    with working("Collecting the steps of the proof"):
        write_proof(study, file)
    verdict, head = study.examine(), study.head
    if as_json:
        return print_json({"proved": verdict.proves, "head": head._asdict(), "file": str(file)})
    say(f"Proof written to {file}. Head: {head.events} {head.hash}.", "")
    if not verdict.proves:
        say("Nothing is proved yet; the file shows what happened so far.", "")
    say(f"Check it with: shortlist verify {file}", "")


def verify(
    proof: Path = typer.Argument(..., metavar="FILE", help="Proof to check, as written by `shortlist export --proof`."),
    replay: bool = typer.Option(
        False, "--replay", help="Also repeat from the seed which pairs were asked and what was bet."
    ),
    as_json: bool = JSON,
) -> None:
    """Check a proof.

    Works the verdict out again from the records and the theorem, and prints what is proved. The exit code is 2 if
    anything is wrong. Compare the head that it prints with one that was published earlier.
    """
    with working("Checking the proof"):
        found = check_proof(proof)
        replayed = replay_proof(proof) if replay else None
    if as_json:
        parts = {part: found["verdict"][part] for part in ("top", "certainly_in", "certainly_out", "error")}
        head = {"events": found["records"], "hash": found["hash"]}
        return print_json({**parts, "head": head, "replayed": None if replayed is None else replayed._asdict()})
    for sentence in (*sentences(found), *(() if replayed is None else replayed.sentences)):
        say(sentence, "")
