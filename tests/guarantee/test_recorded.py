"""Recorded votes and cases are used once each: counted false claims, with the safeguard and without it.

S* is fixed beforehand: in pure noise every set of k items is one that no outsider is expected to beat, so for each of
them a proof that contradicts it may happen in a share delta of the studies. Drawn again and again, few votes prove
whatever they happen to say.
"""

import random
from itertools import combinations

import pytest
from scipy.stats import binomtest

import shortlist as package
from shortlist.errors import NothingToAsk
from tests.cli.conftest import shortlist as commands  # noqa: F401
from tests.guarantee.test_edges import contradicts

pytestmark = pytest.mark.slow
ITEMS = [f"item {number}" for number in range(8)]
FILES, VOTES, DELTA = 12, 9, 0.05
TRUTH = set(ITEMS[:3])


def noise(seed, votes=VOTES):
    """A file of coin flips, in random order."""
    rng = random.Random(seed)
    rows = [(a, b, rng.choice((a, b))) for a, b in combinations(ITEMS, 2) for _ in range(votes)]
    rng.shuffle(rows)
    return rows


def write(folder, rows):
    (folder / "items.txt").write_text("\n".join(ITEMS))
    (folder / "votes.csv").write_text("first,second,winner\n" + "".join(",".join(row) + "\n" for row in rows))


def test_files_of_noise_prove_nothing_and_every_run_ends(commands):  # noqa: F811
    proved = 0
    for seed in range(FILES):
        write(commands.folder, noise(seed))
        arguments = ["items.txt", "-k", 3, "--delta", DELTA, "--votes", "votes.csv", "--seed", seed]
        found = commands.json("run", *arguments, "--name", f"noise {seed}")
        proved += found["reason"] == "certified"
        rows = package.load_study(f"noise {seed}", "sqlite:///shortlist.db").rows
        assert len({row.case for row in rows}) == len(rows) <= FILES * VOTES * 28
        if not found["done"]:
            assert f"{len(rows)} of 252 votes were used. Not proved." in found["warnings"][-1]
    assert proved <= 2


def test_the_same_files_drawn_with_replacement_prove_noise():
    wrong = 0
    for seed in range(FILES // 2):
        recorded = {pair: [] for pair in combinations(ITEMS, 2)}
        for first, second, winner in noise(seed):
            recorded[first, second].append(winner)
        rng = random.Random(1000 + seed)
        study = package.create_study(ITEMS, 3, DELTA, max_votes=20_000, seed=seed)
        while not study.verdict.done:
            question = study.ask()
            study.tell(question, winner=rng.choice(recorded[tuple(sorted((question.first, question.second)))]))
        wrong += contradicts(study.verdict, TRUTH)
    assert wrong >= FILES // 2 - 1


def test_honest_recorded_votes_still_prove(commands):  # noqa: F811
    rng = random.Random(1)
    rows = [(a, b, a if rng.random() < 0.85 else b) for a, b in combinations(ITEMS, 2) for _ in range(80)]
    rng.shuffle(rows)
    write(commands.folder, rows)
    found = commands.json("run", "items.txt", "-k", 3, "--delta", DELTA, "--votes", "votes.csv", "--workers", 1)
    assert (found["reason"], set(found["top"])) == ("certified", TRUTH)
    assert "votes like the recorded ones (each of the 2,240 was used at most once)" in found["guarantee"]


STUDIES, CASES = 100, [f"case {number}" for number in range(15)]


def on_few_cases(seed, claim):
    """A benchmark: every pair is judged on the same cases, and each case has an order of its own. In all cases of the
    world every order is equally frequent. Returns the verdict, and for each item whether it is the best in the cases of
    the study: no other beats it in more than half of them."""
    rng = random.Random(seed)
    order = {case: rng.sample("abc", 3) for case in CASES}
    study = package.create_study(["a", "b", "c"], 1, DELTA, max_votes=150, cases_claim=claim, seed=seed)
    while not study.verdict.done:
        try:
            question = study.ask(cases=CASES)
        except NothingToAsk:
            break
        study.tell(question, winner=min(question.first, question.second, key=order[question.case].index))

    def beats(one, other):
        return sum(ranks.index(one) < ranks.index(other) for ranks in order.values()) > len(CASES) / 2

    return study.verdict, {one for one in "abc" if not any(beats(other, one) for other in "abc" if other != one)}


def share_of(false):
    return sum(false) / STUDIES


def test_cases_like_these_are_used_once():
    found = [on_few_cases(seed, "like these")[0] for seed in range(STUDIES)]
    false = sum(contradicts(verdict, {"a"}) for verdict in found)
    assert false / STUDIES <= 0.08
    assert binomtest(false, STUDIES, DELTA, alternative="greater").pvalue > 0.01


def test_cases_that_are_used_again_prove_something_about_these_cases_only():
    found = [on_few_cases(seed, "these") for seed in range(STUDIES)]
    assert share_of(contradicts(verdict, {"a"}) for verdict, _ in found) > 0.1
    assert share_of(bool(best) and contradicts(verdict, best) for verdict, best in found) <= 0.08
