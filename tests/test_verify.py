"""verify.py by itself: it runs on a bare Python, and what breaks a rule of docs/guarantee.md does not pass."""

import copy
import json
import math
import random
import re
import subprocess
import sys
from contextlib import suppress
from itertools import permutations, product
from pathlib import Path

import pytest

from shortlist import create_study, verify
from shortlist.study.events import CONFLICT, Materials, Skipped
from shortlist.study.proof import make_proof
from tests.study.random_studies import KINDS, play, rehashed

SOURCE = Path(verify.__file__)
UNSEEN = {
    "at", "judge", "case", "lease", "run", "pool", "drawing", "cells", "source", "reason", "repeated", "digest",
    "settles", "shown", "outcome", "bet", "first", "second", "weight", "share", "unit", "question", "error", "chains",
    "paid", "id",
}  # fields that a forger may change where no rule is broken  # fmt: skip


def test_it_runs_on_a_bare_python_in_an_empty_environment(tmp_path):
    (tmp_path / "verify.py").write_text(SOURCE.read_text())
    study = play(0)
    (tmp_path / "proof.jsonl").write_text(make_proof(study))
    command = [sys.executable, "-I", "-S", "verify.py", "proof.jsonl"]
    ran = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert (
        f"Proved: the top {study.problem.k} of {study.problem.n} items is {', '.join(study.verdict.top)}." in ran.stdout
    )
    assert study.head.hash in ran.stdout
    assert "No file can show that the answers are real" in " ".join(ran.stdout.split())
    text = (tmp_path / "proof.jsonl").read_text().replace('"outcome":1.0', '"outcome":0.0', 1)
    (tmp_path / "proof.jsonl").write_text(text)
    ran = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True)
    assert ran.returncode == 1
    assert re.search(r"line \d+: this record does not have the hash", ran.stderr)
    assert not ran.stdout


def test_it_imports_the_standard_library_only():
    names = re.findall(r"^(?:from|import) (\w+)", SOURCE.read_text(), re.MULTILINE)
    assert set(names) <= sys.stdlib_module_names


# ---- edits that leave the hashes alone


def leaves(value, path=()):
    """The paths to all values that are not containers, and to empty containers."""
    if isinstance(value, dict) and value:
        for name in value:
            yield from leaves(value[name], (*path, name))
    elif isinstance(value, list) and value:
        for place, part in enumerate(value):
            yield from leaves(part, (*path, place))
    else:
        yield path


def changed(value, rng):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 2])
    if isinstance(value, float):
        return rng.choice([1 - value, value + 0.25, -value, 0.75])
    if isinstance(value, str):
        return value + "x"
    return rng.choice(["x", 1, 0.5, [1]])


def edited(text, rng):
    """The lines after one random change of one field, which line it is, and the field."""
    lines = text.splitlines()
    while True:
        place = rng.randrange(len(lines))
        parsed = json.loads(lines[place])
        path = rng.choice(list(leaves(parsed)))
        holder = parsed
        for part in path[:-1]:
            holder = holder[part]
        old = copy.deepcopy(holder[path[-1]])
        holder[path[-1]] = changed(old, rng)
        if holder[path[-1]] != old:
            new = [*lines[:place], verify.compact(parsed), *lines[place + 1 :]]
            return new, place + 1, [part for part in path if isinstance(part, str)]


def shuffled(text, rng):
    """The lines after one was removed, moved, doubled or exchanged."""
    lines = text.splitlines()
    one, other = rng.sample(range(len(lines)), 2)
    act = rng.choice(["remove", "exchange", "double"])
    if act == "remove":
        del lines[one]
    elif act == "exchange":
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines.insert(other, lines[one])
    return lines


def refuse(lines):
    with pytest.raises(verify.Bad, match=r"^line \d+: ") as caught:
        verify.check("\n".join([*lines, ""]))
    return int(re.match(r"line (\d+)", str(caught.value))[1])


def tamper(proofs, times, seed=0):
    rng = random.Random(seed)
    for _ in range(times):
        text = rng.choice(proofs)
        lines, number, _ = edited(text, rng)
        assert refuse(lines) in (number, number + 1, len(lines))
        refuse(shuffled(text, rng))


@pytest.fixture(scope="module")
def proofs():
    return [make_proof(play(seed, steps=30)) for seed in (0, 1, 2, 4, 8, 11, 14, 15, 16)]


def test_no_edit_passes(proofs):
    tamper(proofs, 150)


@pytest.mark.sweep
def test_none_of_many_edits_passes():
    tamper([make_proof(play(seed)) for seed in range(2 * len(KINDS))], 2000)


# ---- forgeries: the writer makes all hashes fit


def forge(study, change):
    """The records and the verdict after a change, with hashes that fit."""
    lines = [json.loads(line) for line in make_proof(study).splitlines()]
    change(lines)
    return rehashed([verify.compact(line) for line in lines])


def bodies(lines, kind):
    return [line["body"] for line in lines[1:-1] if line["kind"] == kind]


def plain(n=3, stopping="edges", **settings):
    study = create_study([f"item {place}" for place in range(n)], 1, 0.3, seed=1, stopping=stopping, **settings)
    while not study.verdict.done:
        question = study.ask()
        study.tell(question, winner=min(question.first, question.second))
    return study


def public():
    study = create_study(["a", "b", "c", "d"], k=1, delta=0.3, seed=1, judges_claim="public", ballot_size=3)
    for number in range(6):
        for question in study.ballot(f"judge {number}"):
            study.tell(question, winner=min(question.first, question.second))
    return study


def person():
    study = create_study(["a", "b", "c"], k=1, seed=1)
    question = study.ask(judge="ann")
    study.tell(question, winner="a" if "a" in (question.first, question.second) else "b", settle=False)
    study.undo(question)
    study.skip(question)
    later = study.ask(judge="ann", pair=("a", "b"))
    study.tell(later, winner="a")
    study.undo(later)
    study.tell(study.ask(judge="ann", pair=("a", "b")), winner="b")
    return study


def imported():
    study = create_study(["a", "b", "c"], k=1, seed=1)
    units, ids = [f"case {row // 2}" for row in range(6)], [f"vote {row}" for row in range(6)]
    for _ in range(2):
        study.import_votes(["a"] * 6, ["b"] * 6, [1.0] * 6, unit=units, id=ids)
    return study


def by_cuts():
    return plain(4, stopping="cuts", sampling="bridge")


def imported_by_cuts():
    """One case, two pairs: against two items, and across one set."""
    study = create_study(["a", "b", "c", "d"], k=2, seed=1, stopping="cuts")
    study.import_votes(["a", "b"] * 3, ["c", "d"] * 3, [1.0] * 6, unit=[f"case {row // 2}" for row in range(6)])
    return study


def joined():
    """Rows 0 and 2 share nothing, and are one unit through row 1."""
    study = create_study(["a", "b", "c"], k=1, seed=1)
    study.import_votes(["a"] * 4, ["b"] * 4, [1.0] * 4, unit=[("1", "x"), ("1", "y"), ("2", "y"), ("3", "z")])
    return study


def drop_told(lines):
    del lines[[line.get("kind") for line in lines].index("told")]


def double_told(lines):
    place = [line.get("kind") for line in lines].index("told")
    lines.insert(place, copy.deepcopy(lines[place]))


def as_kind(old, new, **body):
    def change(lines):
        record = next(line for line in lines[1:-1] if line["kind"] == old)
        record["kind"], record["body"] = new, {**record["body"], **body}

    return change


def verdict(**parts):
    return lambda lines: lines[-1]["verdict"].update(parts)


def body(kind, at, /, **parts):
    return lambda lines: bodies(lines, kind)[at].update(parts)


def settings(lines, **parts):
    lines[0]["spec"] = json.dumps({**json.loads(lines[0]["spec"]), **parts})


def steps_to(lines, at, value):
    for step in lines[-1]["verdict"]["chains"]:
        step[at] = value


def early_steps(lines):
    for _, chain in lines[-1]["verdict"]["chains"]:
        for step in chain:
            step[1] = 3


FORGERIES = {
    "a question answered twice": (plain, double_told, "so it cannot be told"),
    "a question that was not asked": (plain, body("told", 0, question=99), "cannot be read"),
    "an older question": (plain, body("told", 1, question=0), "so it cannot be told"),
    "a bet of everything": (plain, body("asked", 3, bet=40.0), "not in range"),
    "an outcome above 1": (plain, body("told", 3, outcome=1.5), "not between 0 and 1"),
    "a question number left out": (plain, body("asked", 1, question=2), "not the next one"),
    "an item against itself": (plain, body("asked", 1, first=0, second=0), "no pair"),
    "a winner out of nothing": (plain, verdict(top=["item 2"]), "do not prove this top"),
    "an item called proved": (plain, verdict(certainly_in=["item 1"]), "an item is not proved"),
    "a smaller error": (plain, verdict(error=0.01), "delta is not"),
    "a smaller delta": (plain, verdict(delta=0.01), "delta is not"),
    "steps without evidence": (
        plain,
early_steps,
        "does not prove the step",
    ),
    "a step that rests on itself": (
        plain, lambda lines: lines[-1]["verdict"]["chains"][0][1][0].__setitem__(3, [1, 2]), "not absorbed"
    ),
    "a grid that is not there": (
        plain,
        lambda lines: lines[-1]["verdict"]["chains"][0][1][0].__setitem__(slice(2, 4), ["grid", [0]]),
        "grid does not count",
    ),
    "a taken back answer that is skipped": (person, as_kind("lost", "skipped"), "only be answered or lost"),
    "a bet after an undo": (person, body("asked", 2, bet=1.0, weight=1.0), "must not bet on it again"),
    "a vote that is withdrawn twice": (
        person, lambda lines: bodies(lines, "withdrawn")[0]["votes"].append(bodies(lines, "withdrawn")[0]["votes"][0]),
        "does not count",
    ),
    "a second ballot": (
        public, lambda lines: [one.update(judge="judge 0") for one in bodies(lines, "asked")], "second ballot"
    ),
    "a ballot that grows": (public, body("asked", 3, place=3, judge="judge 0"), "grew after it was opened"),
    "a skip on a ballot": (public, as_kind("told", "skipped", reason=""), "only be answered or lost"),
    "a question beside the ballots": (public, body("asked", 0, place=None), "has ballots"),
    "a target twice on a ballot": (
        public,
        lambda lines: [
            one.update(first=0, second=1, bet=1.0) for one in bodies(lines, "asked") if one["judge"] == "judge 3"
        ],
        "against an item twice",
    ),
    "a unit that weighs two votes": (imported, body("imported", 0, weight=[1.0] * 6), "more than one vote"),
    "a unit that weighs two votes in the grid": (imported, body("imported", 0, share=[1.0] * 6), "more than one vote"),
    "a unit through another row": (joined, body("imported", 0, share=[1.0, 0.0, 1.0, 1.0]), "more than one vote"),
    "a list of cases of its own": (lambda: on_cases(0), body("asked", 3, pool=1), "another list of cases"),
    "a set that was not rejected yet": (by_cuts, lambda lines: steps_to(lines, 2, 3), "does not prove the step"),
    "a set that another pair rejects": (by_cuts, lambda lines: steps_to(lines, 0, 3), "does not prove the step"),
    "a loss that is paid with more than there is": (
        by_cuts,
        lambda lines: lines[-1]["verdict"].update(paid=[[[0, 1, 50.0, -50.0]] for _ in lines[-1]["verdict"]["paid"]]),
        "does not prove the step",
    ),
    "a loss that is paid with no number": (
        by_cuts,
        lambda lines: lines[-1]["verdict"].update(paid=[[[0, 1, math.nan, 0.0]] for _ in lines[-1]["verdict"]["paid"]]),
        "no number",
    ),
    "single items under the rule cuts": (by_cuts, lambda lines: steps_to(lines, 3, "bets"), "no such steps"),
    "cuts with a tolerance": (by_cuts, lambda lines: settings(lines, tolerance=0.2), "nothing with such settings"),
    "cuts on ballots": (by_cuts, lambda lines: settings(lines, judges_claim="public"), "nothing with such settings"),
    "cuts by several judges": (by_cuts, lambda lines: settings(lines, min_judges=2), "nothing with such settings"),
    "a unit that weighs two votes across a set": (
        imported_by_cuts, body("imported", 0, weight=[1.0] * 6), "more than one vote"
    ),
    "another study's constants": (plain, lambda lines: lines[0].update(cash=0.0), "another version"),
    "an unknown kind": (plain, as_kind("told", "believed"), "no kind of record"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_that_breaks_a_rule_does_not_pass(name):
    make, change, message = FORGERIES[name]
    text = forge(make(), lambda lines: None)
    verify.check(text)  # the honest one passes
    with pytest.raises(verify.Bad, match=rf"^line \d+: .*{message}"):
        verify.check(forge(make(), change))


def test_a_unit_never_grows():
    study = create_study(["a", "b"], k=1, seed=1)
    for name in ("x", "y"):
        study.import_votes(["a"] * 3, ["b"] * 3, [1.0] * 3, unit=["u", "v", "w"], id=[name] * 3)

    def change(lines):
        bodies(lines, "imported")[1]["weight"] = [1.0] * 3

    with pytest.raises(verify.Bad, match="a row weighs that was seen before"):
        verify.check(forge(study, change))


def test_a_unit_that_shares_a_label_with_an_earlier_import_weighs_nothing():
    study = joined()
    study.import_votes(["a"] * 3, ["b"] * 3, [1.0] * 3, unit=[("4", "x"), ("4", "v"), ("5", "w")], id=["y"] * 3)
    assert [row.weight for row in study.rows] == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    verify.check(make_proof(study))

    def change(lines):
        bodies(lines, "imported")[1]["weight"] = [0.0, 1.0, 1.0]

    with pytest.raises(verify.Bad, match="a row weighs that was seen before"):
        verify.check(forge(study, change))


def test_conflicts_of_interest_cut_a_ballot_only_when_it_is_opened():
    study = create_study(["a", "b", "c", "d"], 1, judges_claim="public")
    assert study.ballot("ann", avoid=[("a", "b"), ("a", "c"), ("a", "d")])
    assert study.ballot("bob")
    verify.check(make_proof(study))
    study.tell(study.ask(judge="bob"), "tie")
    with study.transaction():
        study._add(Skipped(study.ask(judge="bob").id, CONFLICT))
    with pytest.raises(verify.Bad, match="can only be answered or lost"):
        verify.check(make_proof(study))


def test_a_step_whose_votes_were_withdrawn_does_not_count():
    """The step is true of its record, but a vote against the same item was withdrawn later."""
    study = plain()
    text = make_proof(study)
    record = json.loads(text.splitlines()[-1])["verdict"]["record"]
    study.undo(0)

    def change(lines):
        lines[-1]["verdict"]["record"] = len(lines) - 3

    assert verify.check(make_proof(study))["verdict"]["record"] == record
    with pytest.raises(verify.Bad, match="was withdrawn"):
        verify.check(forge(study, change))


def test_what_a_forger_can_hide():
    """Answers, bets, judges and times can be invented, and questions left out: the file still agrees with itself. The
    replay sees bets; only a head that was published earlier shows the rest."""
    study = plain()

    def invent(lines):
        for asked in bodies(lines, "asked"):
            asked["judge"] = "a friend"
        lines[1]["at"] += 1.0

    forged = verify.check(forge(study, invent))
    assert forged["hash"] != study.head.hash


def test_random_forgeries_pass_only_where_no_rule_is_broken(proofs):
    rng = random.Random(1)
    for _ in range(150):
        lines, _, path = edited(rng.choice(proofs), rng)
        with suppress(verify.Bad, KeyError, TypeError, ValueError, AttributeError):
            verify.check(rehashed(lines))
            assert path[-1] in {*UNSEEN, "number", "previous", "hash"}  # the last three are made again


# ---- cuts


def bare(n, k, rng):
    """The accounts of a study with this many items, at random."""
    spec = {"items": ["x"] * n, "k": k, "tolerance": 0.0, "judges_claim": "each", "cases_claim": "these"}
    study = verify.Study({**spec, "stopping": {"name": "cuts"}}, 1, set())
    for x, v in permutations(range(n), 2):
        if rng.random() < 0.8:
            study.sums["bets", v][x, None, False] = rng.gauss(0.5, 2.0)
    study.known = {ends for ends in permutations(range(n), 2) if rng.random() < 0.05}
    return study


def test_whatever_a_loss_is_paid_with_no_set_has_less():
    """All sets with `out` outside and v inside that are not rejected, one by one."""
    rng = random.Random(3)
    for _ in range(300):
        n = rng.randint(2, 5)
        study = bare(n, 1, rng)
        u, v = rng.sample(range(n), 2)
        out = study.reach(u)
        m = {
            (x, y): verify.wealth(sum(study.sums["bets", y][x, None, False] for _ in "1"))
            for x, y in permutations(range(n), 2)
        }
        paid = [[x, y, rng.gauss(0, 1), rng.gauss(0, 1)] for x, y in permutations(range(n), 2) if rng.random() < 0.5]
        least = math.inf
        for inside in product([False, True], repeat=n):
            crossed = [(x, y) for x, y in permutations(range(n), 2) if not inside[x] and inside[y]]
            if inside[v] and not any(inside[x] for x in out) and study.known.isdisjoint(crossed):
                least = min(least, sum(m[ends] for ends in crossed))
        assert study.least(out, v, paid) <= least + 1e-9
        assert study.least(out, v, []) <= least + 1e-9


# ---- known answers


def on_cases(seed=0, cells=1, **settings):
    """A study whose judge always gives the same answers, which decide it: two items are exactly equal."""
    cases, n = ["c0", "c1", "c2", "c3"], 3 + seed % 2
    study = create_study([f"item {place}" for place in range(n)], 1 + seed % (n - 1), 0.001, seed=seed, **settings)
    study.record([Materials(None, dict.fromkeys(cases, "text"))])
    while not study.verdict.done:
        for judge in [f"judge {number}" for number in range(study.problem.min_judges)]:
            if not study.verdict.done:
                question = study.ask(judge=judge, cases=cases, cells=cells)
                value = random.Random(f"{question.first} {question.second} {question.case}").choice(
                    [0.0, 0.5, 1.0, 0.1]
                )
                study.tell(question, 0.5 if cells == 2 else value)
    return study


def steps_of(lines):
    """Rows that begin with an item, the record from which on it is proved, and how; of either rule."""
    verdict = lines[-1]["verdict"]
    if "paid" in verdict:
        return [row[1:] for row in verdict["chains"]]
    return [step for _, chain in verdict["chains"] for step in chain]


def test_known_answers_are_worked_out_again():
    """For both halves of the cutoff, one order or both, one judge or two; with a replay."""
    kinds = set()
    for seed in range(12):
        study = on_cases(seed, cells=1 + seed % 2, min_judges=1 + (seed % 3 == 0))  # then it is edges, else cuts
        text = make_proof(study)
        found = verify.check(text)
        assert (found["verdict"]["top"] is None) == (study.verdict.reason == "no top")
        kinds |= {step[2] for step in steps_of([json.loads(line) for line in text.splitlines()])}
        if found["has_table"]:
            assert "exact ties counted for the item listed first" in " ".join(verify.sentences(found))
    assert "table" in kinds


@pytest.mark.parametrize(
    "forgery",
    ["another answer", "a longer list", "answers may change", "used once", "a change of mind", "a voided judge"],
)
def test_known_answers_that_decide_nothing_are_refused(forgery):
    study = on_cases(0, cells=1)
    assert "table" in {step[2] for step in steps_of([json.loads(line) for line in make_proof(study).splitlines()])}

    def change(lines):
        if forgery == "another answer":
            for told in bodies(lines, "told"):
                told["outcome"] = 0.5
                break
            for told, asked in zip(bodies(lines, "told"), bodies(lines, "asked"), strict=False):
                told["outcome"] = 1.0 if asked["first"] > asked["second"] else 0.0
        for asked in bodies(lines, "asked"):
            asked["pool"] += forgery == "a longer list"
            asked["cells"] *= forgery != "answers may change"
            asked["drawing"] = "replaced" if forgery != "used once" else None
        if forgery == "a change of mind":
            seen = {}
            for told, asked in zip(bodies(lines, "told"), bodies(lines, "asked"), strict=False):
                if seen.setdefault((asked["first"], asked["second"], asked["case"]), told) is not told:
                    told["outcome"] = 1.0 - told["outcome"] if told["outcome"] != 0.5 else 0.75
        if forgery == "a voided judge":
            body = {"votes": [], "judge": "judge 0"}
            number = len(lines) - 2
            record = {
                "number": number,
                "at": lines[-2]["at"],
                "kind": "withdrawn",
                "body": body,
                "previous": "",
                "hash": "",
            }
            lines.insert(-1, record)
            lines[-1]["verdict"]["record"] = number

    with pytest.raises(verify.Bad):
        verify.check(forge(study, change))
