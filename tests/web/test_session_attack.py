"""Judges with strong tastes of their own, one after the other, through HTTP: the session attack.

The public hardly prefers any of six items, and every judge has a clear opinion. A judge who answers 60 questions then
proves their own opinion. Without ballots the service lets them, and what it proves is false for the public in most
studies; so no page, report or download may claim the public. With ballots each judge is asked once, and at most a share
delta of the studies may claim something false.
"""

import pytest

from shortlist import load_study
from shortlist.study.claims import SENTENCES
from tests.guarantee.test_ballots import Public
from tests.web.server import Owner, Unlimited, owner_key, take, vote

DELTA = 0.1
ABOUT_PUBLIC = ("public that the judges come from", "on average over the public")


@pytest.fixture(scope="module")
def unlimited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attack")
    made = Unlimited(f"sqlite:///{folder / 'studies.db'}", folder).start()
    owner = Owner(made, owner_key(made, made.new_owner_link().partition("#")[2]))
    yield owner
    owner.close()
    made.end()


def play(owner, claim, seed, judges, questions, leave=0.0):
    """One judge after the other, each with one taste; some leave halfway. Returns the name, and whether what is claimed
    is false for the public."""
    public, name = Public(seed), f"{claim} {seed}"
    owner.create(name, public.items, 2, delta=DELTA, judges_claim=claim, seed=seed)
    for judge in owner.judges(name, *(f"person {number}" for number in range(judges))):
        says, turn = public.judge(), take(judge, name)
        stays = questions // 2 if public.rng.random() < leave else questions
        for _ in range(stays):
            if not turn["questions"]:
                break
            sides = [turn["questions"][0][side]["title"] for side in ("first", "second")]
            turn = vote(judge, turn["questions"][0]["id"], says(*sides), hold=1).json()["next"]
        if turn["questions"]:
            judge.post(f"/api/studies/{name}/leave", json={"showing": turn["questions"][0]["id"]})
        if turn["state"] == "done":
            break
    study = load_study(name, owner.server.storage)
    study.settle()
    return name, public.is_false(study)


def said(owner, name):
    """Everything that people read about the result."""
    owner.http.put(f"/api/studies/{name}/published", json={"published": True})
    api = f"/api/studies/{name}"
    pages = [f"/studies/{name}", f"/results/{name}", f"/present/{name}", api, f"{api}/results", f"{api}/report.html"]
    with owner.server.client() as browser:
        browser.post("/api/sessions", json={"token": owner.server.new_owner_link().partition("#")[2]})
        return [browser.get(page).text for page in pages]


def claims_public(text):
    return any(words in text for words in ABOUT_PUBLIC)


@pytest.mark.slow
def test_without_ballots_the_public_is_not_claimed_and_with_them_no_taste_is_proved(unlimited):
    attacked = [play(unlimited, "each", seed, 3, 200) for seed in range(3)]
    name = next(name for name, is_false in attacked if is_false)  # for the public
    assert not any(claims_public(text) for text in said(unlimited, name))
    name, is_false = play(unlimited, "public", 0, 20, 10, leave=0.1)
    assert not is_false
    assert unlimited.look(name)["claims"] == [SENTENCES["public"]]
    assert any(claims_public(text) for text in said(unlimited, name))


@pytest.mark.sweep
def test_sessions_are_fooled_and_ballots_keep_delta(unlimited):
    """Through HTTP, 30 studies each. If a share of 0.3 of them were false, 5 or fewer were with probability 0.08."""
    attacked = [play(unlimited, "each", seed, 10, 200)[1] for seed in range(100, 130)]
    with_ballots = [play(unlimited, "public", seed, 100, 10, leave=0.1)[1] for seed in range(100, 130)]
    assert sum(attacked) >= 9
    assert sum(with_ballots) <= 5
