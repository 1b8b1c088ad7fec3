"""How many judges does a proof about the public take? Plays judging events with ballots, and prints the tables of
docs/guides/public.md.

    python benchmarks/public.py                         all of it, about an hour on two quiet cores
    python benchmarks/public.py --items 8 -k 1 --events 10

The last item in beats the first item out in 60, 69, 77 or 88 % of votes. Utilities are normal, tastes of judges have a
standard deviation of 0.5, each judge gets a ballot of ten pairs, and one judge in ten leaves halfway. Judges start five
at a time until 20 have answered, ten at a time until 50, then 20 at a time. Each event is played once, and what was
proved after 20, 50, 100 and 200 judges is read from it. Finished events are appended to --log and not played again.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import shortlist
from shortlist.errors import BallotsOpen, StudyDone

ROWS = [(8, 1), (8, 3), (12, 1), (12, 3), (12, 5), (30, 1), (30, 3)]
GAPS = {60: 0.4, 69: 0.8, 77: 1.2, 88: 2.0}  # percent of votes of the last item in, and the gap in utility
JUDGES = (20, 50, 100, 200)
TASTE, LEAVE, DELTA = 0.5, 0.1, 0.05


class Event(NamedTuple):
    """One event to play; `at_once` judges start together, None for few at first."""

    n: int
    k: int
    percent: int
    seed: int
    at_once: int | None = None
    ballot_size: int = 10
    most: int = JUDGES[-1]


def play(event: Event) -> dict[str, Any]:
    """After how many judges the event was proved (None: not at all), whether the proof is right, and the numbers of
    judges after which the likely answer was right."""
    rng = np.random.default_rng((5, *event[:4]))
    items, theta = make_public(event, rng)
    study = shortlist.create_study(
        sorted(items), event.k, DELTA, seed=event.seed, judges_claim="public", ballot_size=event.ballot_size
    )
    top, judges, right = set(items[: event.k]), 0, []
    while judges < event.most and not study.verdict.done:
        wave = wave_size(event, judges)
        answer(study, judges, wave, items, theta, rng)
        judges += wave
        right += [judges] if judges in JUDGES and set(study.verdict.top) == top else []
    proved = study.verdict.reason == "certified"
    right += [size for size in JUDGES if size > judges and set(study.verdict.top) == top]
    is_right = set(study.verdict.top) == top if proved else None
    return {**event._asdict(), "proved": judges if proved else None, "is_right": is_right, "right": right}


def make_public(event: Event, rng: np.random.Generator) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Items with their utilities, best first, scaled so that the public's means stay about Bradley-Terry."""
    theta = np.sort(rng.standard_normal(event.n))[::-1]
    theta[: event.k] += GAPS[event.percent] - (theta[event.k - 1] - theta[event.k])
    return [f"item {number}" for number in rng.permutation(event.n)], theta * np.sqrt(1 + np.pi / 4 * TASTE**2)


def wave_size(event: Event, judges: int) -> int:
    wanted = event.at_once or (5 if judges < 20 else 10 if judges < 50 else 20)
    return min(wanted, min(size for size in (*JUDGES, event.most) if size > judges) - judges)


def answer(
    study: shortlist.Study, begin: int, wave: int, items: list[str], theta: np.ndarray[Any, Any],
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """A wave of judges: all open their ballots, then all answer."""
    opened = []
    with suppress(BallotsOpen, StudyDone):
        for number in range(begin, begin + wave):
            opened.append((f"judge {number}", study.ballot(f"judge {number}")))
    for judge, listed in opened:
        taste = dict(zip(items, theta + TASTE * rng.standard_normal(len(items)), strict=True))
        stays = (len(listed) + 1) // 2 if rng.random() < LEAVE else len(listed)
        for question in listed[:stays]:
            chance = 1 / (1 + np.exp(taste[question.second] - taste[question.first]))
            study.tell(question, float(rng.random() < chance))
        study.settle(judge)


def finished(log: Path) -> Iterator[dict[str, Any]]:
    if log.exists():
        yield from map(json.loads, log.read_text().splitlines())


def play_all(events: list[Event], log: Path, processes: int) -> None:
    """Play what the log does not have yet."""
    done = {tuple(found[part] for part in Event._fields) for found in finished(log)}
    left = [event for event in events if tuple(event) not in done]
    with log.open("a") as file, get_context("spawn").Pool(processes) as pool:
        for number, found in enumerate(pool.imap_unordered(play, left), 1):
            file.write(json.dumps(found) + "\n")
            file.flush()
            print(f"\r{number}/{len(left)} events\033[K", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def print_tables(found: list[dict[str, Any]]) -> None:
    cells: dict[tuple[int, int, int], list[dict[str, Any]]] = defaultdict(list)
    for one in found:
        cells[one["n"], one["k"], one["percent"]].append(one)
    heads = " | ".join(f"{size} judges" for size in JUDGES)
    for title, share in (("Events with a proof", proved_by), ("Events whose likely answer is right", right_by)):
        print(f"\n{title}, where the last item in gets {' / '.join(map(str, GAPS))} % of votes:\n")
        print(f"| items, k | {heads} |\n|{'---|' * (len(JUDGES) + 1)}")
        for n, k in dict.fromkeys((n, k) for n, k, _ in cells):
            columns = [
                " / ".join(f"{share(cells[n, k, percent], size):.2g}" for percent in GAPS if (n, k, percent) in cells)
                for size in JUDGES
            ]
            print(f"| {n}, {k} | {' | '.join(columns)} |")
    proofs = [one["is_right"] for one in found if one["proved"] is not None]
    print(f"\n{len(found):,} events, {len(proofs):,} proofs, {proofs.count(False)} of them wrong (delta {DELTA:g})")


def proved_by(events: list[dict[str, Any]], size: int) -> float:
    return sum(one["proved"] is not None and one["proved"] <= size for one in events) / len(events)


def right_by(events: list[dict[str, Any]], size: int) -> float:
    return sum(size in one["right"] for one in events) / len(events)


def main() -> None:
    parser = argparse.ArgumentParser(description="How many judges does a proof about the public take?")
    parser.add_argument("--items", type=int, help="only events with this number of items")
    parser.add_argument("-k", type=int, help="only events with this k")
    parser.add_argument("--events", type=int, default=40, help="events for each cell of the table")
    parser.add_argument("--at-once", type=int, help="judges that start together; default: few at first")
    parser.add_argument("--ballot-size", type=int, default=10)
    parser.add_argument("--log", type=Path, default=Path("public-events.jsonl"), help="finished events, to resume")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    rows = [(n, k) for n, k in ROWS if options.items in (None, n) and options.k in (None, k)]
    events = [
        Event(n, k, percent, seed, options.at_once, options.ballot_size)
        for seed in range(options.events) for n, k in rows for percent in GAPS
    ]  # fmt: skip
    play_all(events, options.log, options.processes)
    wanted = set(events)
    print_tables([one for one in finished(options.log) if Event(*(one[part] for part in Event._fields)) in wanted])


if __name__ == "__main__":
    main()
