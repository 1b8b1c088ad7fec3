"""Changes of the items of a study: before the first question, corrections after it, and a new study from an old one."""

import re

import pytest

from shortlist import create_study, load_study
from shortlist.errors import BadProblem
from shortlist.study.create import check_take_over, take_over_votes
from shortlist.study.proof import make_proof
from shortlist.verify import check
from tests.web.server import take, vote
from tests.web.test_security import png

ITEMS = ["ant", "bee", "cat"]


def put(owner, study, items, **more):
    listed = [{"name": item} if isinstance(item, str) else item for item in items]
    return owner.http.put(f"/api/studies/{study}/items", json={"items": listed, **more})


def correct(owner, study, item, **parts):
    return owner.http.post(f"/api/studies/{study}/items/correct", json={"item": item, **parts})


def names(owner, study):
    return [item["name"] for item in owner.http.get(f"/api/studies/{study}/items").json()["items"]]


def test_items_can_be_changed_until_the_first_question(server, owner, name):
    address = owner.http.post("/api/uploads", files={"file": ("a.png", png(), "image/png")}).json()["address"]
    owner.create(name, [{"name": "ant", "image": address}, "bee", "cat"], k=2, instructions="Which?", min_judges=2)
    (ann,) = owner.judges(name, "Ann")  # a link that was given out before
    changed = put(owner, name, ["dog", {"name": "ant", "text": "six legs", "image": address}, "eel", "fox"], k=3)
    assert changed.status_code == 200, changed.text
    assert changed.json()["can_edit"]
    board = owner.look(name)
    assert {item["name"] for item in board["items"]} == {"ant", "dog", "eel", "fox"}
    assert (board["settings"]["k"], board["settings"]["min_judges"]) == (3, 2)
    assert board["settings"]["instructions"] == "Which?"
    question = take(ann, name)["questions"][0]
    assert {question["first"]["title"], question["second"]["title"]} <= {"ant", "dog", "eel", "fox"}
    refused = put(owner, name, ITEMS)
    assert refused.status_code == 422
    assert "only before the first question" in refused.json()["detail"]
    assert names(owner, name) == ["dog", "ant", "eel", "fox"]
    assert load_study(name, server.storage).items == ("dog", "ant", "eel", "fox")


@pytest.mark.parametrize(
    ("items", "more", "said"),
    [
        (["ant", "ant"], {}, "ant"),
        (["ant", "bee"], {"k": 2}, "k is 2"),
        ([{"name": "ant", "image": "/uploads/" + "0" * 24}, "bee"], {"k": 1}, "was not uploaded here"),
        ([{"name": "ant", "image": "https://*/"}, "bee"], {"k": 1}, "one site"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(owner, name, items, more, said):
    owner.create(name, ITEMS)
    refused = put(owner, name, items, **more)
    assert refused.status_code == 422
    assert said in refused.json()["detail"]
    assert names(owner, name) == ITEMS


def test_a_correction_is_an_event_and_a_caveat(server, owner, name):
    owner.create(name, [{"name": "Kiet", "text": "a kiet"}, "Tram", "Bus"], delta=0.3)
    (ann,) = owner.judges(name, "Ann")
    first = take(ann, name)["questions"][0]
    vote(ann, first["id"], 1)
    assert correct(owner, name, "Kiet", name="Kite", text="a kite").status_code == 200
    assert correct(owner, name, "Kiet", name="Kite").status_code == 200  # the same again is no event
    while (turn := take(ann, name))["state"] == "open":
        question = turn["questions"][0]
        titles = [question[side]["title"] for side in ("first", "second")]
        assert "Kiet" not in titles
        for side in ("first", "second"):
            assert (question[side]["html"] == "a kite") == (question[side]["title"] == "Kite")
        vote(ann, question["id"], float(titles[0] == "Kite" or (titles[1] != "Kite" and titles[0] < titles[1])))
    board = owner.look(name)
    assert "Proved: Kite is the best of 3" in board["plain"]
    listed = owner.http.get("/api/studies").json()["studies"]
    assert [study["sentence"] for study in listed if study["name"] == name] == [board["plain"]]
    assert [item["title"] for item in board["items"] if item["name"] == "Kiet"] == ["Kite"]
    caveats = [text for text in board["verdict"]["caveats"] if "was corrected" in text or "were corrected" in text]
    on_it = "Kiet" in (first["first"]["title"], first["second"]["title"])
    assert len(caveats) == on_it  # without votes on it there is nothing to know
    if on_it:
        assert re.search(r"The name and text of 'Kiet' were corrected after 1 vote on it \(\d{4}-", caveats[0])
    study = load_study(name, server.storage)
    assert [type(entry.event).__name__ for entry in study.entries].count("Corrected") == 1
    assert check(make_proof(study))["verdict"]["top"] == ["Kiet"]


def test_a_corrected_text_is_another_text_for_models(owner, name, server):
    """Their answers are kept by what they were shown; a run with the old text is refused."""
    owner.create(name, [{"name": "a", "text": "one"}, {"name": "b", "text": "two"}])
    before = load_study(name, server.storage).setups.texts
    correct(owner, name, "a", text="won")
    after = load_study(name, server.storage).setups.texts
    assert after["a"] != before["a"]
    assert after["b"] == before["b"]


def test_corrections_that_cannot_be_are_refused(owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    for body, said in (({"item": "dog", "name": "x"}, "not an item"), ({"item": "ant", "name": "bee"}, "another item"),
                       ({"item": "ant", "image": "javascript:alert(1)"}, "not the address")):  # fmt: skip
        refused = owner.http.post(f"/api/studies/{name}/items/correct", json=body)
        assert refused.status_code == 422
        assert said in refused.json()["detail"]
    for refused in (ann.get(f"/api/studies/{name}/items"), ann.put(f"/api/studies/{name}/items", json={"items": []}),
                    ann.post(f"/api/studies/{name}/items/correct", json={"item": "ant", "name": "x"})):  # fmt: skip
        assert refused.status_code in (401, 429)


def test_a_new_study_takes_over_all_votes(server, owner, name):
    address = owner.http.post("/api/uploads", files={"file": ("a.png", png(), "image/png")}).json()["address"]
    owner.create(name, [{"name": "ant", "image": address}, "bee", "cat", "dog"])
    ann, eve = owner.judges(name, "Ann", "Eve")
    for _ in range(12):
        for judge, right in ((ann, True), (eve, False)):
            question = take(judge, name)["questions"][0]
            vote(judge, question["id"], float((question["first"]["title"] < question["second"]["title"]) == right))
    owner.http.post(f"/api/studies/{name}/void", json={"judge": "Eve"})
    items = [{"name": "ant", "image": address}, {"name": "bee"}, {"name": "cat"}, {"name": "eel"}]
    body = {"name": f"{name} 2", "items": items, "k": 1, "from_study": name, "takes_over": True}
    made = owner.http.post("/api/studies", json=body)
    assert made.status_code == 201, made.text
    old, new = (load_study(study, server.storage) for study in (name, f"{name} 2"))
    kept = [(row.first, row.second, row.outcome) for row in old.rows
            if row.status in ("counted", "voided") and "dog" not in (row.first, row.second)]  # fmt: skip
    assert sorted((row.first, row.second, row.outcome) for row in new.rows) == sorted(kept)
    assert {row.judge for row in new.rows if row.status == "voided"} == {"judge #2"}  # one-sided here as it was there
    people = {judge["name"]: judge["is_voided"] for judge in owner.look(f"{name} 2")["judges"]}
    assert people == {"Ann": False, "Eve": True}  # the same people, so that nobody counts as two judges
    assert any("were taken over from study" in text for text in made.json()["verdict"]["caveats"])
    picture = owner.http.get(f"/api/studies/{name} 2/items").json()["items"][0]["image"]
    assert picture != address  # a copy: each study shows its own


def test_what_was_undone_cannot_be_taken_over():
    """It counted against an item there. A new study would forget that."""
    old = create_study(ITEMS, 1)
    question = old.ask(judge="Ann")
    old.tell(question, winner=question.first)
    check_take_over(old, ITEMS, "each", "these")
    with pytest.raises(BadProblem, match="each judge and these cases"):
        check_take_over(old, ITEMS, "public", "these")
    with pytest.raises(BadProblem, match="fewer than two items"):
        check_take_over(old, ["ant", "eel"], "each", "these")
    old.undo(question)
    with pytest.raises(BadProblem, match="1 votes of study 'study' were undone"):
        check_take_over(old, ITEMS, "each", "these")


def test_votes_are_taken_over_once():
    old, new = create_study(ITEMS, 1), create_study([*ITEMS, "dog"], 1)
    for _ in range(5):
        question = old.ask(judge="Ann")
        old.tell(question, winner=min(question.first, question.second))
    take_over_votes(old, new)
    take_over_votes(old, new)
    assert len(new.votes) == 5
