"""A judge's work over HTTP: nothing is lost, doubled or taken for another's, and nothing is told too early."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from shortlist import create_study, load_study
from shortlist.cli.app import app
from shortlist.errors import SetupChanged
from shortlist.judges.cases import check_cases
from shortlist.judges.setup import set_up_materials
from shortlist.report.page import POLICY
from shortlist.study.claims import SENTENCES
from tests.web.server import take, vote

ITEMS = ["ant", "bee", "cat", "dog", "elk"]


def better(question):
    """Judges who prefer what comes first in the alphabet."""
    return 1 if question["first"]["title"] < question["second"]["title"] else 0


def settle(server, name):
    """What half a minute does."""
    load_study(name, server.storage).settle()


def number(question):
    return int(question["id"].rpartition(".")[2])


def test_a_study_from_creation_to_certificate(owner, server, name):
    board = owner.create(name, ITEMS, k=2, delta=0.1)
    assert board["state"] == "open"
    assert board["verdict"]["votes"] == 0
    judges = owner.judges(name, "Ann", "Bob")
    told = {}
    hands = {judge: take(judge, name, 2) for judge in judges}
    while any(turn["state"] == "open" for turn in hands.values()):
        for judge, turn in hands.items():
            if turn["state"] == "open":
                question = turn["questions"][0]
                said = vote(judge, question["id"], better(question), 2).json()
                assert said["status"] == "answered"
                told[question["id"]] = better(question)
                hands[judge] = said["next"]
    assert {turn["message"] for turn in hands.values()} == {"The top 2 is proved. Thank you for your answers."}
    settle(server, name)
    board = owner.look(name)
    assert board["state"] == "done"
    assert sorted(board["verdict"]["top"]) == ["ant", "bee"]
    assert board["verdict"]["error_bound"] <= 0.1
    kept = load_study(name, server.storage).rows
    assert {f"{name}.{a.question}": a.outcome for a in kept if a.outcome is not None} == told
    assert {item["name"] for item in board["items"] if item["proved"] == "in"} == {"ant", "bee"}
    assert sum(judge["counts"]["counted"] for judge in board["judges"]) == len(told)
    assert min(judge["agreement"] for judge in board["judges"]) > 0.9  # with what the other's few votes rate higher
    bounds = [point["error_bound"] for point in board["bound_history"]]
    assert bounds[-1] == board["verdict"]["error_bound"]
    assert bounds[0] > bounds[-1]
    lines = owner.http.get(f"/api/studies/{name}/votes.csv").text.splitlines()
    assert len(lines) == 1 + len(told)
    report = owner.http.get(f"/api/studies/{name}/report.html")
    assert report.headers["content-security-policy"] == POLICY
    assert "the top 2 of 5" in report.text


def test_measured_differences_are_not_judged_here(owner, server, name):
    create_study(ITEMS, 2, family="gaussian", storage=server.storage, name=name)
    assert name not in [line["name"] for line in owner.http.get("/api/studies").json()["studies"]]
    answer = owner.http.get(f"/api/studies/{name}")
    assert answer.status_code == 422
    assert "measured differences" in answer.json()["detail"]


def test_the_same_answer_twice_counts_once_and_another_is_refused(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name)["questions"][0]["id"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: vote(ann, question, 1), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()["status"] for answer in answers} == {"answered"}
    assert vote(ann, question, 0).status_code == 409
    board = owner.look(name)
    assert (board["verdict"]["votes"], board["counts"]["answered"], board["recent"]) == (0, 1, [])
    settle(server, name)
    assert vote(ann, question, 1).json()["status"] == "counted"
    assert vote(ann, question, 0).status_code == 409
    assert owner.look(name)["verdict"]["votes"] == 1


def test_a_reload_gives_the_same_questions(owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    assert take(ann, name, 2)["questions"] == take(ann, name, 2)["questions"]
    assert owner.look(name)["counts"]["pending"] == 2


def test_pending_questions_count_as_asked(owner, name):
    owner.create(name, [f"item {i}" for i in range(30)], k=5)
    ids, pairs = [], []
    for judge in owner.judges(name, *(f"judge {i}" for i in range(10))):
        for question in take(judge, name, 2)["questions"]:
            ids.append(question["id"])
            pairs.append(frozenset((question["first"]["title"], question["second"]["title"])))
    assert len(set(ids)) == 20
    assert len(set(pairs)) > 15


def test_nobody_answers_for_another(owner, name):
    owner.create(name, ITEMS)
    ann, bob = owner.judges(name, "Ann", "Bob")
    question = take(ann, name)["questions"][0]["id"]
    assert vote(bob, question, 1).status_code == 403
    assert bob.post(f"/api/questions/{question}/undo", json={}).status_code == 403
    assert owner.look(name)["verdict"]["votes"] == 0


def test_an_undo_is_free_until_the_answer_settles(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name, 2)["questions"][0]
    for outcome in (1, 0):
        vote(ann, question["id"], outcome, 2)
        for _ in range(2):  # twice is once
            said = ann.post(f"/api/questions/{question['id']}/undo", json={"hold": 2}).json()
            assert said["status"] == "reopened"
            assert said["next"]["questions"][0] == question
    board = owner.look(name)
    assert (board["verdict"]["votes"], board["counts"]["undone"], board["counts"]["answered"]) == (0, 0, 0)
    said = ann.post(f"/api/questions/{question['id']}/vote", json={"skip": "not displayed"}).json()
    assert said["status"] == "lost"  # it can only be answered or lost
    assert owner.look(name)["judges"][0]["counts"]["lost"] == 1


def test_an_answer_settles_after_three_more(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    turn, given = take(ann, name, 2), []
    for _ in range(4):
        given.append(turn["questions"][0])
        turn = vote(ann, given[-1]["id"], 1, 2).json()["next"]
    first, second = given[0], given[-1]
    assert turn["undo"] == [question["id"] for question in given[1:]]
    board = owner.look(name)
    assert (board["counts"]["counted"], board["counts"]["answered"], board["verdict"]["votes"]) == (1, 3, 1)
    said = ann.post(f"/api/questions/{first['id']}/undo", json={"hold": 2}).json()
    assert said["status"] == "undone"
    study = load_study(name, server.storage)
    again = study.question(number(said["next"]["questions"][0]))
    assert {again.first, again.second} == {first["first"]["title"], first["second"]["title"]}
    assert (again.id > number(second), again.bet) == (True, 0.0)


def test_an_undo_brings_the_pair_back(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name, 2)["questions"][0]
    vote(ann, question["id"], 1, 2)
    settle(server, name)
    for _ in range(2):  # twice is once
        said = ann.post(f"/api/questions/{question['id']}/undo", json={"hold": 2}).json()
        again = said["next"]["questions"][0]
        assert said["status"] == "undone"
        assert again["id"] != question["id"]
        assert {again[side]["title"] for side in ("first", "second")} == {
            question[side]["title"] for side in ("first", "second")
        }
    board = owner.look(name)
    assert (board["verdict"]["votes"], board["counts"]["pending"]) == (0, len(said["next"]["questions"]))
    assert vote(ann, question["id"], 1).status_code == 409
    assert vote(ann, again["id"], 0).json()["status"] == "answered"
    assert board["judges"][0]["counts"]["undone"] == 1


def test_a_skip_is_no_vote_and_can_be_taken_back(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name)["questions"][0]["id"]
    for _ in range(2):
        said = ann.post(f"/api/questions/{question}/vote", json={"skip": "not displayed"})
        assert said.json()["status"] == "skipped"
    assert vote(ann, question, 1).status_code == 409
    said = ann.post(f"/api/questions/{question}/undo", json={"hold": 1}).json()
    assert said["status"] == "skipped"
    assert vote(ann, said["next"]["questions"][0]["id"], 1).json()["status"] == "answered"
    settle(server, name)
    board = owner.look(name)
    assert (board["verdict"]["votes"], board["judges"][0]["counts"]["skipped"]) == (1, 1)


def test_ties_only_where_they_are_allowed(owner, name):
    owner.create(name, ITEMS, ties=False)
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name)["questions"][0]["id"]
    assert vote(ann, question, 0.5).status_code == 422
    assert vote(ann, question, 7).status_code == 422
    assert vote(ann, question, 0).status_code == 200


def test_pausing_and_closing(owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name)["questions"][0]["id"]
    for state in ("paused", "closed"):
        assert owner.http.put(f"/api/studies/{name}/state", json={"state": state}).json()["state"] == state
        assert take(ann, name, 2)["state"] == state
    assert vote(ann, question, 1).json()["status"] == "answered"  # pending questions still count
    owner.http.put(f"/api/studies/{name}/state", json={"state": "open"})
    assert take(ann, name)["state"] == "open"


def test_an_archived_study_can_only_be_read(owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    one, two = (question["id"] for question in take(ann, name, 2)["questions"])
    vote(ann, one, 1)
    board = owner.http.put(f"/api/studies/{name}/state", json={"state": "archived"}).json()
    assert (board["state"], board["counts"]["counted"]) == ("archived", 1)
    refused = vote(ann, two, 1)
    assert (refused.status_code, "archived" in refused.json()["detail"]) == (409, True)
    assert take(ann, name, 2)["state"] == "closed"
    assert owner.http.put(f"/api/studies/{name}/settings", json={"max_votes": 9}).status_code == 409
    assert owner.http.get(f"/api/studies/{name}/votes.csv").status_code == 200
    listed = {study["name"]: study["state"] for study in owner.http.get("/api/studies").json()["studies"]}
    assert listed[name] == "archived"
    assert owner.http.put(f"/api/studies/{name}/state", json={"state": "open"}).json()["state"] == "open"
    assert vote(ann, two, 1).json()["status"] == "answered"


def test_the_budget_ends_a_study_and_the_last_questions_are_waited_for(owner, name):
    owner.create(name, ITEMS, max_votes=2)
    ann, bob = owner.judges(name, "Ann", "Bob")
    questions = take(ann, name, 2)["questions"]
    assert take(bob, name)["state"] == "waiting"
    for question in questions:
        last = vote(ann, question["id"], 1, 1).json()
    assert last["next"]["state"] == "done"
    assert last["next"]["message"] == "All planned answers are in. Thank you."


def test_a_voided_judge_is_asked_nothing_more(server, owner, name):
    owner.create(name, ITEMS)
    ann, bob = owner.judges(name, "Ann", "Bob")
    for judge in (ann, bob):
        vote(judge, take(judge, name)["questions"][0]["id"], 1)
    load_study(name, server.storage).settle("judge #2")  # Ann's answer is not settled
    board = owner.http.post(f"/api/studies/{name}/void", json={"judge": "Ann"}).json()
    assert board["verdict"]["votes"] == 1
    assert [
        (judge["name"], judge["is_voided"], judge["counts"]["counted"], judge["counts"]["voided"])
        for judge in board["judges"]
    ] == [("Ann", True, 0, 1), ("Bob", False, 1, 0)]
    assert ann.post(f"/api/studies/{name}/questions", json={}).status_code == 401


def test_the_owner_takes_one_vote_back(owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name)["questions"][0]["id"]
    vote(ann, question, 1)
    board = owner.http.post(f"/api/questions/{question}/void").json()
    assert board["verdict"]["votes"] == 0
    assert [vote["status"] for vote in board["recent"]] == ["undone"]


def test_a_blind_study_hides_names_and_judges_never_see_the_ranking(owner, name):
    items = [{"name": f"secret-{i}", "text": f"text {i}"} for i in range(4)]
    owner.create(name, items, blind=True)
    (ann,) = owner.judges(name, "Ann")
    turn = take(ann, name, 2)
    for _ in range(10):
        said = vote(ann, turn["questions"][0]["id"], 1, 2)
        turn = said.json()["next"]
        assert "secret" not in json.dumps(said.json()).replace(name, "")
        assert set(turn) == {
            "state",
            "message",
            "questions",
            "answered",
            "progress",
            "ballot",
            "left",
            "needed",
            "undo",
        }
    assert ann.get(f"/api/studies/{name}").status_code == 401


def test_cases_are_drawn_and_items_speak_to_them(owner, name):
    cases = ["red?", "blue?"]
    items = [{"name": item, "answers": {case: f"{item} says {case}" for case in cases}} for item in ITEMS]
    owner.create(name, items, cases=cases)
    (ann,) = owner.judges(name, "Ann")
    seen, turn = set(), take(ann, name)
    for _ in range(20):
        question = turn["questions"][0]
        seen.add(question["case"])
        assert question["first"]["html"] == f"{question['first']['title']} says {question['case']}"
        turn = vote(ann, question["id"], 0.5, 1).json()["next"]
    assert seen == set(cases)


def test_late_answers_are_kept_and_do_not_count(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    study = load_study(name, server.storage)
    question = study.ask(judge="judge #1", lease=-1.0)  # over already
    study.ask(judge="Bob")  # closes it
    for _ in range(2):
        assert vote(ann, f"{name}.{question.id}", 1).json()["status"] == "late"
    assert owner.look(name)["verdict"]["votes"] == 0
    study.refresh()
    assert len([entry for entry in study.entries if type(entry.event).__name__ == "Late"]) == 1


def test_a_slow_judge_loses_no_vote_while_the_page_is_visible(server, owner, name):
    owner.create(name, ITEMS)
    ann, bob = owner.judges(name, "Ann", "Bob")
    on_screen, following = take(ann, name, 2)["questions"]
    study = load_study(name, server.storage)
    assert (study.is_shown(number(on_screen)), study.is_shown(number(following))) == (True, False)
    for _ in range(3):
        study.show(number(on_screen), lease=-1)  # as if the time were over, and nobody has noticed
        turn = ann.post(f"/api/questions/{on_screen['id']}/show", json={"hold": 2}).json()
        assert turn["questions"] == [on_screen, following]
        owner.look(name)  # closes what is due
    said = ann.post(
        f"/api/questions/{on_screen['id']}/vote", json={"outcome": 1, "hold": 2, "showing": following["id"]}
    ).json()
    assert (said["status"], said["next"]["questions"][0]) == ("answered", following)
    study.refresh()
    assert study.is_shown(number(following))
    assert bob.post(f"/api/questions/{following['id']}/show", json={}).status_code == 403
    study.show(number(following), lease=-1)  # the page is hidden and says nothing
    board = owner.look(name)
    assert (board["counts"]["lost"], board["counts"]["skipped"]) == (1, 0)
    assert ann.post(f"/api/questions/{following['id']}/show", json={}).status_code == 409
    assert vote(ann, following["id"], 1).json()["status"] == "late"


def test_a_prefetched_question_is_dropped_without_effect(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    on_screen, following = take(ann, name, 2)["questions"]
    load_study(name, server.storage).settle("judge #1")  # she leaves
    board = owner.look(name)
    assert (board["counts"]["skipped"], board["counts"]["lost"], board["counts"]["pending"]) == (1, 0, 1)
    again = take(ann, name, 2)["questions"]
    assert again[0] == on_screen
    assert again[1]["id"] != following["id"]


def test_a_prefetched_question_whose_pair_was_proved_is_replaced(server, owner, name):
    owner.create(name, ["ant", "bee", "cat"], delta=0.2)
    (ann,) = owner.judges(name, "Ann")
    take(ann, name)
    study = load_study(name, server.storage)
    pair = ("ant", "cat")
    waiting = study.ask(judge="judge #1", pair=pair, lease=600, shown=False)
    for _ in range(40):
        study.tell(study.ask(judge="Bob", pair=pair), winner="ant")
    assert not study.verdict.done
    held = take(ann, name, 2)["questions"]
    assert waiting.id not in [number(question) for question in held]
    assert load_study(name, server.storage).row(waiting.id).reason == "no longer needed"
    assert vote(ann, f"{name}.{waiting.id}", 1).json()["status"] == "late"


def test_studies_of_the_command_line_are_there_too(server, owner, name):
    from shortlist import create_study

    create_study(ITEMS, 2, storage=server.storage, name=name)
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name)["questions"][0]
    assert {question["first"]["title"], question["second"]["title"]} <= set(ITEMS)
    assert name in {study["name"] for study in owner.http.get("/api/studies").json()["studies"]}


def test_a_ballot_from_the_first_pair_to_the_thanks(server, owner, name):
    board = owner.create(name, ITEMS, k=1, judges_claim="public", ballot_size=4)
    assert board["settings"]["judges_claim"] == "public"
    assert board["claims"] == [SENTENCES["public"]]
    (judge,) = owner.judges(name, "Ann")
    turn, seen = take(judge, name, 2), []
    while turn["state"] == "open":
        assert turn["ballot"] == 4
        question = turn["questions"][0]
        seen.append(question["place"])
        said = vote(judge, question["id"], better(question), 2).json()
        turn = said["next"]
    assert seen == [0, 1, 2, 3]
    assert (turn["state"], turn["message"]) == (
        "finished",
        "That was your last pair. Thank you! Each judge is asked about a fixed number of pairs, so you are done.",
    )
    assert take(judge, name)["state"] == "finished"
    assert owner.look(name)["counts"]["counted"] == 4


def test_a_skipped_pair_of_a_ballot_is_lost_and_an_hour_is_given(server, owner, name):
    owner.create(name, ITEMS, k=1, judges_claim="public", ballot_size=3)
    (judge,) = owner.judges(name, "Ann")
    first = take(judge, name, 2)["questions"][0]
    study = load_study(name, server.storage)
    leases = {asked.lease - study.entries[0].at for asked in study._state.pending}
    assert all(3590 < seconds < 3700 for seconds in leases)
    said = judge.post(f"/api/questions/{first['id']}/vote", json={"skip": "cannot judge", "hold": 2}).json()
    assert said["status"] == "lost"
    assert said["next"]["questions"][0]["place"] == 1
    second = said["next"]["questions"][0]
    vote(judge, second["id"], 1, 2)
    settle(server, name)
    undone = judge.post(f"/api/questions/{second['id']}/undo", json={"hold": 2}).json()
    assert undone["status"] == "undone"
    assert [question["place"] for question in undone["next"]["questions"]] == [2]  # the pair is not asked again


def test_the_owner_changes_the_limits(owner, server, name):
    owner.create(name, ITEMS, k=2, max_votes=2)
    (judge,) = owner.judges(name, "Ann")
    for _ in range(2):
        question = take(judge, name)["questions"][0]
        vote(judge, question["id"], better(question))
    settle(server, name)
    assert take(judge, name)["state"] == "done"

    def change(**settings):
        return owner.http.put(f"/api/studies/{name}/settings", json=settings)

    board = change(max_votes=4).json()
    assert (board["state"], board["settings"]["max_votes"]) == ("open", 4)
    assert take(judge, name)["state"] == "open"
    board = change(delta=0.01).json()
    assert board["settings"]["delta"] == 0.01
    assert board["claims"][-1].startswith("The accepted error (delta) was lowered to 0.01 after votes could be seen")
    assert change(max_votes=None).json()["settings"]["max_votes"] is None
    head = load_study(name, server.storage).head
    for settings in ({"k": 3}, {"tolerance": 0.1}, {"stopping": "glr"}, {"judges_claim": "public"}, {"self": 1}):
        refused = change(**settings)
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith(f"{next(iter(settings))} cannot be changed")
    assert "smaller" in change(delta=0.5).json()["detail"]
    assert change(delta=None).status_code == 422
    assert judge.put(f"/api/studies/{name}/settings", json={"max_votes": 5}).status_code in (401, 403)
    assert load_study(name, server.storage).head == head


def test_cases_like_these_are_used_once(owner, server, name):
    refused = owner.http.post(
        "/api/studies",
        json={"name": name, "items": [{"name": "a"}, {"name": "b"}], "k": 1, "cases_claim": "like these"},
    )
    assert "needs cases" in refused.json()["detail"]
    board = owner.create(name, ITEMS, k=2, cases=["one", "two", "three"], cases_claim="like these")
    assert board["settings"]["cases_claim"] == "like these"
    (judge,) = owner.judges(name, "Ann")
    seen = []
    while (turn := take(judge, name))["state"] == "open":
        seen.append(turn["questions"][0]["case"])
        vote(judge, turn["questions"][0]["id"], better(turn["questions"][0]))
    assert sorted(seen) == ["one", "three", "two"]
    assert turn["state"] == "done"
    assert turn["message"] == "All planned answers are in. Thank you."


def test_texts_shown_on_the_web_are_recorded_and_compared(owner, server, name):
    items = [{"name": "a", "text": "first text"}, {"name": "b", "text": "B", "answers": {"one": "on one"}}, "c"]
    owner.create(name, items, k=1, cases=["one", "two"])
    study = load_study(name, server.storage)
    cases = check_cases(["one", "two"])
    by_case = {case.id: "on one" if case.text == "one" else "B" for case in cases}
    shown = {"a": "first text", "b": by_case, "c": "c"}
    set_up_materials(study, shown, cases)  # the same again is fine
    (judge,) = owner.judges(name, "Ann")
    question = take(judge, name)["questions"][0]
    vote(judge, question["id"], 1)
    with pytest.raises(SetupChanged, match="the text of 'a' is not the same"):
        set_up_materials(study, {**shown, "a": "edited"}, cases)


def test_judges_on_the_web_must_see_what_earlier_judges_saw(owner, server, name):
    study = create_study(ITEMS, 2, storage=server.storage, name=name)
    set_up_materials(study, {item: f"text of {item}" for item in ITEMS}, None)
    study.tell(study.ask(judge="model"), 1.0)
    (judge,) = owner.judges(name, "Ann")
    refused = judge.post(f"/api/studies/{name}/questions", json={"hold": 1})
    assert refused.status_code == 422
    assert "has votes on other texts or cases" in refused.json()["detail"]
    assert owner.look(name)["verdict"]["votes"] == 1  # the owner still sees the study


def test_one_judge_cannot_prove_alone_unless_the_owner_says_so(owner, name):
    """The default for people is two judges. The first one is thanked and waits, and the owner is told what to do."""
    items = [{"name": item} for item in ITEMS]
    board = owner.http.post("/api/studies", json={"name": name, "items": items, "k": 1}).json()
    assert board["settings"]["min_judges"] == 2
    ann, bob = owner.judges(name, "Ann", "Bob")

    def answers(judge):
        turn = take(judge, name)
        while turn["state"] == "open":
            (question,) = turn["questions"]
            first, second = question["first"]["title"], question["second"]["title"]
            turn = vote(judge, question["id"], float(ITEMS.index(first) < ITEMS.index(second)), 1).json()["next"]
        return turn

    turn = answers(ann)
    assert turn["state"] == "others"
    assert turn["message"].startswith("Thank you! The result now needs answers of other judges.")
    board = owner.look(name)
    assert board["state"] == "open"
    assert board["advice"].startswith("another judge is needed: a proof must rest on at least 2 judges")
    assert answers(bob)["state"] == "done"
    board = owner.look(name)
    assert "rests on at least 2 judges" in board["verdict"]["guarantee"]


def test_the_number_of_judges_can_be_lowered_on_the_way(owner, name):
    owner.create(name, ITEMS, min_judges=2)
    changed = owner.http.put(f"/api/studies/{name}/settings", json={"min_judges": 1}).json()
    assert changed["settings"]["min_judges"] == 1
    assert owner.http.put(f"/api/studies/{name}/settings", json={"min_judges": None}).status_code == 422
    with_tolerance = {"name": f"{name} t", "items": [{"name": item} for item in ITEMS], "k": 1, "tolerance": 0.1}
    assert owner.http.post("/api/studies", json=with_tolerance).json()["settings"]["min_judges"] == 1
    refused = owner.http.post("/api/studies", json={**with_tolerance, "name": f"{name} u", "min_judges": 2})
    assert refused.status_code == 422
    assert "no tolerance" in refused.json()["detail"]


def test_people_judge_what_a_run_has_shown_to_a_model(owner, server, name, tmp_path, monkeypatch):
    """`shortlist run` keeps texts and cases, so that the service shows them, blind."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"item": item, "case": case, "text": f"Ask {case}", "output": f"{item[::-1]} on {case}"}
        for item in ITEMS
        for case in ("c1", "c2", "c3")
    ]
    (tmp_path / "out.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "judge.py").write_text('print(\'{"winner": "tie"}\')')
    options = ["-k", "2", "--judge", "python judge.py", "--max-votes", "3", "--max-calls", "2", "--seed", "1"]
    found = CliRunner().invoke(app, ["run", "out.jsonl", *options, "--name", name, "--storage", server.storage])
    assert found.exit_code == 3, found.output
    load_study(name, server.storage).change(max_votes=None)
    (judge,) = owner.judges(name, "Ann")
    question = take(judge, name, 1)["questions"][0]
    assert question["case"] in ("Ask c1", "Ask c2", "Ask c3")
    case = question["case"].split()[1]
    for side in ("first", "second"):
        assert question[side]["title"] is None
        assert question[side]["html"] in {f"{item[::-1]} on {case}" for item in ITEMS}
    assert vote(judge, question["id"], 1, 1).json()["status"] == "answered"
    settle(server, name)
    assert len({row.judge for row in load_study(name, server.storage).rows if row.outcome is not None}) == 2
