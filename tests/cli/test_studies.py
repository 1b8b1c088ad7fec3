"""The commands on stored studies, as a person or a script would call them."""

import csv

import pytest

from shortlist import load_study, read_votes
from shortlist.study.rows import STATUSES
from shortlist.study.schema import HEAD


@pytest.fixture
def fruit(shortlist):
    """The commands, in a folder with a file of items."""
    (shortlist.folder / "items.txt").write_text("apple\nbanana\n\ncherry \ndate\n")
    return shortlist


def test_a_study_from_the_first_question_to_an_export(fruit):
    assert "Top 1" not in fruit("create", "items.txt", "--name", "fruit", "-k", 1, "--delta", 0.2).out
    order = "banana", "apple", "cherry", "date"
    for _ in range(3):
        (question,) = fruit.json("ask", "fruit", "--judge", "ann")["questions"]
        better = min(question["first"], question["second"], key=order.index)
        told = fruit.json("tell", "fruit", question["id"], better)
    assert told["votes"] == 3
    question = fruit.json("ask", "fruit")["questions"][0]
    better = min(question["first"], question["second"], key=order.index)
    fruit("tell", "fruit", question["id"], better)
    assert "already answered or closed" in fruit.refused("tell", "fruit", question["id"], "first")
    fruit("export", "fruit", "votes.csv")
    rows = list(csv.DictReader((fruit.folder / "votes.csv").read_text().splitlines()))
    assert [row["judge"] for row in rows] == ["ann"] * 3 + [""]
    load_study("fruit", "sqlite:///shortlist.db").undo(question["id"])
    assert "1 undone vote left out." in fruit("export", "fruit", "votes.csv").out
    many = "\n".join(
        f"{a},{b},{a},bob" for a, b in 20 * [("banana", "apple"), ("banana", "cherry"), ("banana", "date")]
    )
    (fruit.folder / "more.csv").write_text(f"first,second,winner,judge\n{many}\n")
    assert "Top 1 of 4: banana" in fruit("import", "fruit", "more.csv").out
    status = fruit.json("status", "fruit")
    assert status["done"]
    assert status["top"] == ["banana"]
    assert status["advice"] is None
    assert fruit.json("storage", "list") == {"studies": ["fruit"], "archived": []}
    assert f"{HEAD} -> {HEAD}" in fruit("storage", "upgrade", "sqlite:///shortlist.db").out


def test_answers(fruit):
    fruit("create", "items.txt", "--name", "fruit", "-k", 1)
    for answer in ("first", "second", "tie", "skip", 0.75):
        number = fruit.json("ask", "fruit")["questions"][0]["id"]
        fruit("tell", "fruit", number, answer)
    outcomes = [row.outcome for row in load_study("fruit", "sqlite:///shortlist.db").rows]
    assert outcomes == [1.0, 0.0, 0.5, None, 0.75]


def test_status_names_what_is_pending_and_paused(fruit):
    fruit("create", "items.txt", "--name", "fruit", "-k", 1)
    assert fruit("ask", "fruit", "--count", 2).out.count("question ") == 2
    load_study("fruit", "sqlite:///shortlist.db").pause()
    said = fruit("status", "fruit").out
    assert "Votes and questions: 0 counted, 2 pending." in said
    assert "The study is paused." in said
    assert "paused" in fruit.refused("ask", "fruit")


def test_votes_of_a_voided_judge_count_nowhere(fruit):
    """Also those that were imported after the verdict."""
    rows = "\n".join(f"apple,{other},apple,ann" for other in 30 * ["banana", "cherry", "date"])
    (fruit.folder / "ann.csv").write_text(f"first,second,winner,judge\n{rows}\n")
    (fruit.folder / "eve.csv").write_text("first,second,winner,judge\ndate,apple,date,eve\ndate,apple,date,eve\n")
    fruit("create", "items.txt", "--name", "fruit", "-k", 1)
    fruit("import", "fruit", "ann.csv")
    assert fruit.json("import", "fruit", "eve.csv")["counts"]["counted"] == 92
    load_study("fruit", "sqlite:///shortlist.db").void("eve")
    status = fruit.json("status", "fruit")
    assert status["done"]
    assert status["counts"] == {**dict.fromkeys(STATUSES, 0), "counted": 90, "voided": 2}
    assert "90 counted, 2 voided." in fruit("status", "fruit").out
    exported = fruit("export", "fruit", "votes.csv").out
    assert "90 votes written to votes.csv." in exported
    assert "2 votes of voided judges left out." in exported
    assert "eve" not in (fruit.folder / "votes.csv").read_text()
    assert fruit.json("export", "fruit", "votes.csv") == {
        "votes": 90, "undone": 0, "voided": 2, "lost": 0, "file": "votes.csv",
    }  # fmt: skip


def test_wrong_calls_end_in_one_line_and_write_nothing(fruit):
    assert "no storage" in fruit.refused("status", "fruit")
    assert "cannot read" in fruit.refused("create", "nothing.txt", "--name", "fruit", "-k", 1)
    assert "must be from 1 to 3" in fruit.refused("create", "items.txt", "--name", "fruit", "-k", 7)
    for option in ("sampling", "stopping", "family"):
        assert "unknown" in fruit.refused("create", "items.txt", "--name", "fruit", "-k", 1, f"--{option}", "magic")
    assert not (fruit.folder / "shortlist.db").exists()
    fruit("create", "items.txt", "--name", "fruit", "-k", 1)
    assert "already exists; choose another --name" in fruit.refused("create", "items.txt", "--name", "fruit", "-k", 1)
    assert "no study named 'frut'" in fruit.refused("status", "frut")
    assert "was never asked" in fruit.refused("tell", "fruit", 3, "tie")
    fruit("ask", "fruit")
    assert "is not an answer" in fruit.refused("tell", "fruit", 0, "perhaps")
    assert "no votes to export" in fruit.refused("export", "fruit", "votes.csv")
    (fruit.folder / "bad.csv").write_text("first,second,winner\napple,kiwi,apple\n")
    assert "'kiwi'" in fruit.refused("import", "fruit", "bad.csv")
    assert fruit.json("status", "fruit")["votes"] == 0


def judged(fruit, votes, name="fruit"):
    """So many answers, always for the item that comes first in the alphabet."""
    for _ in range(votes):
        (question,) = fruit.json("ask", name)["questions"]
        fruit("tell", name, question["id"], min(question["first"], question["second"]))


def test_set_raises_the_budget_of_a_study_that_has_ended(fruit):
    fruit("create", "items.txt", "--name", "fruit", "-k", 1, "--max-votes", 2)
    judged(fruit, 2)
    assert "Vote budget used up after 2 votes" in fruit("status", "fruit").out
    assert "Not proved yet: 2 votes so far" in fruit("set", "fruit", "--max-votes", 3).out
    judged(fruit, 1)
    found = fruit.json("set", "fruit", "--max-votes", "none")
    assert (found["votes"], found["done"], found["max_votes"]) == (3, False, None)
    assert fruit.json("set", "fruit", "--max-votes", 3)["reason"] == "budget"


def test_set_lowers_delta_and_says_at_what_price(fruit):
    fruit("create", "items.txt", "--name", "fruit", "-k", 1, "--delta", 0.2)
    assert "was lowered" not in fruit("set", "fruit", "--delta", 0.1).out  # nothing could be seen yet
    judged(fruit, 1)
    said = " ".join(fruit("set", "fruit", "--delta", 0.01).out.split())
    assert "was lowered to 0.01 after votes could be seen, so a proof states an error of 0.1:" in said
    assert said in " ".join(fruit("status", "fruit").out.split())
    assert fruit.json("status", "fruit")["delta"] == 0.01


def test_set_refuses_everything_else_with_the_reason(fruit):
    fruit("create", "items.txt", "--name", "fruit", "-k", 1)
    before = fruit.json("status", "fruit")["head"]
    assert "give --max-votes, --delta, --min-judges or --withdraw" in fruit.refused("set", "fruit")
    assert "can only be made smaller" in fruit.refused("set", "fruit", "--delta", 0.2)
    assert "or none for no limit" in fruit.refused("set", "fruit", "--max-votes", "many")
    assert "'nobody'" in fruit.refused("set", "nobody", "--max-votes", 3)
    for option in ("k", "tolerance", "stopping", "cases-claim", "judges-claim", "items"):
        said = fruit.refused("set", "fruit", f"--{option}", "2")
        assert f"{option.replace('-', '_')} cannot be changed" in said
        assert "Create a new study" in said
    assert fruit.json("status", "fruit")["head"] == before


def test_several_studies_of_the_same_items_are_a_caveat(fruit):
    for name in ("one", "two"):
        assert "Caveat" not in fruit("create", "items.txt", "--name", name, "-k", 1).out or name == "two"
    said = " ".join(fruit("status", "one").out.split())
    assert "Caveat: 2 studies of these items are in this storage. If you report one of them, report all" in said
    fruit("report", "one", "--out", "one.html")
    page = (fruit.folder / "one.html").read_text()
    assert "2 studies of these items are in this storage" in page
    assert fruit.json("status", "one")["head"]["hash"] in page
    fruit("delete", "two", "--yes")
    assert "Caveat" not in fruit("status", "one").out


def test_a_proof_from_the_export_to_its_verdict(fruit):
    fruit("create", "items.txt", "--name", "fruit", "-k", 1, "--delta", 0.2)
    study = load_study("fruit", "sqlite:///shortlist.db")
    while not study.verdict.done:
        question = study.ask(judge="ann")
        study.tell(question, winner=min(question.first, question.second))
    out = fruit("export", "fruit", "--proof", "proof.jsonl").out
    assert f"Head: {study.head.events} {study.head.hash}." in " ".join(out.split())
    said = " ".join(fruit("verify", "proof.jsonl", "--replay").out.split())
    assert "Proved: the top 1 of 4 items is apple." in said
    assert "wrong with probability at most 0.2" in said
    assert f"Replayed: pair, side and bet of {len(study.rows)} questions follow" in said
    assert fruit.json("verify", "proof.jsonl")["head"] == study.head._asdict()
    assert fruit.json("certify", "proof.jsonl")["sentence"] == str(study.verdict)
    assert "give a vote file to write, or --proof FILE" in fruit.refused("export", "fruit")
    assert "Give -k" in fruit.refused("certify", "votes.csv")
    text = (fruit.folder / "proof.jsonl").read_text()
    (fruit.folder / "proof.jsonl").write_text(text.replace('"judge":"ann"', '"judge":"bob"', 1))
    ran = fruit("verify", "proof.jsonl", code=2)
    assert "line 2: this record does not have the hash that it says" in ran.err


def test_an_export_keeps_cases_and_units(fruit):
    fruit("create", "items.txt", "--name", "fruit", "-k", 1)
    study = load_study("fruit", "sqlite:///shortlist.db")
    study.tell(study.ask(cases=["rain"]), "tie")
    study.import_votes(["apple", "apple"], ["banana", "banana"], [1.0, 0.0], unit=["u", "u"])
    fruit("export", "fruit", "votes.csv")
    table = read_votes("votes.csv")
    assert table.case == ("rain", None, None)
    assert table.unit is not None
    assert len(set(table.unit)) == 2
    assert table.unit[1] == table.unit[2] == "u"
