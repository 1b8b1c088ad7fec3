"""Claims about cases: which cases questions draw, and what a guarantee says about them."""

import random
import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist
from shortlist.errors import BadCases, BadProblem, CasesUsedUp, NothingToAsk, SetupChanged, StudyDiffers

ITEMS = list("abcde")
CASES = [f"case {number}" for number in range(30)]


def new_study(**options):
    return shortlist.create_study(ITEMS, k=2, **{"delta": 1e-30, **options})


FATES = ["tell", "skip", "undo", "lease", "leave", "batch"]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.sampled_from(FATES), max_size=60))
def test_no_case_is_drawn_twice_whatever_becomes_of_its_question(seed, fates):
    study, rng = new_study(seed=seed), random.Random(seed)
    for fate in fates:
        try:
            asked = study.ask(
                3 if fate == "batch" else 1,
                judge=rng.choice("xyz"),
                cases=CASES,
                once=True,
                lease=-1.0 if fate == "lease" else None,
            )
        except CasesUsedUp:
            assert len(study.rows) == 30
            break
        if fate in ("tell", "undo"):
            study.tell(asked[0], rng.random())
        if fate == "undo":
            study.undo(asked[0])
        if fate == "skip":
            study.skip(asked[0])
    cases = [row.case for row in study.rows]
    assert len(set(cases)) == len(cases)


def test_a_case_counts_as_used_however_it_was_drawn():
    study = new_study()
    used = {study.ask(cases=CASES[:10]).case for _ in range(50)}
    left = [study.ask(cases=CASES[:10], once=True).case for _ in range(10 - len(used))]
    assert used.isdisjoint(left)
    with pytest.raises(CasesUsedUp, match="10 of 10 cases are used"):
        study.ask(cases=CASES[:10], once=True)
    assert study.ask(cases=CASES[:10]).case in CASES[:10]


def test_the_draw_is_uniform_among_what_is_left():
    second = Counter()
    for seed in range(400):
        study = new_study(seed=seed)
        first, other = study.ask(2, cases=["x", "y", "z"], once=True)
        second[first.case, other.case] += 1
    assert len(second) == 6
    assert all(40 < count < 95 for count in second.values())


def test_cases_by_pair():
    cases = {("a", "b"): ["x", "y"], ("d", "c"): ["y", "z"]}
    study, found = new_study(), []
    while True:
        try:
            question = study.ask(cases=cases, once=True)
        except NothingToAsk:
            break
        study.tell(question, 0.5)
        found.append((frozenset((question.first, question.second)), question.case))
    assert len({case for _, case in found}) == len(found) == 3
    assert all(case in cases["a", "b"] if pair == frozenset("ab") else case in cases["d", "c"] for pair, case in found)
    with pytest.raises(CasesUsedUp, match="give more cases"):
        study.ask(pair=("a", "e"), cases=cases, once=True)
    with pytest.raises(BadProblem, match="pass the cases"):
        study.ask(once=True)
    with pytest.raises(BadProblem, match="not a pair"):
        study.ask(cases={("a", "a"): ["x"]}, once=True)
    with pytest.raises(BadProblem, match="pass once=True"):
        new_study().ask(cases=cases)


@pytest.mark.parametrize("sampling", ["bridge", "uniform", "track-and-stop", "oracle-tracking"])
def test_every_sampling_rule_uses_all_cases_of_all_pairs(sampling):
    cases = {(a, b): [f"{a}{b}{number}" for number in range(2)] for a in ITEMS for b in ITEMS if a < b}
    study, rng = new_study(sampling=sampling, stopping="edges"), random.Random(2)
    for _ in range(20):
        question = study.ask(cases=cases, once=True)
        study.tell(question, float(rng.random() < 0.5))
    with pytest.raises(CasesUsedUp, match="20 of 20"):
        study.ask(cases=cases, once=True)


def test_threads_share_the_cases(tmp_path):
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    shortlist.create_study(ITEMS, 2, 1e-30, storage=url, name="many", cases_claim="like these")
    cases, failures, together = [f"case {number}" for number in range(120)], [], threading.Barrier(4)

    def work(number):
        try:
            study, rng = shortlist.load_study("many", url), random.Random(number)
            study.skip(study.ask(judge=f"judge {number}", cases=cases))
            together.wait()
            while True:
                question = study.ask(judge=f"judge {number}", cases=cases)
                study.tell(question, float(rng.random() < 0.5)) if rng.random() < 0.8 else study.skip(question)
        except CasesUsedUp:
            pass
        except Exception as reason:
            failures.append(reason)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    study = shortlist.load_study("many", url)
    assert not failures
    assert sorted(row.case for row in study.rows) == sorted(cases)
    assert len({row.judge for row in study.rows}) == 4


def test_the_claim_is_a_setting_of_the_study(tmp_path):
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    shortlist.create_study(ITEMS, 2, storage=url, name="one", cases_claim="like these")
    study = shortlist.load_study("one", url)
    assert study.cases_claim == "like these"
    with pytest.raises(StudyDiffers, match="cases_claim is like these there and these here"):
        shortlist.create_study(ITEMS, 2, storage=url, name="one", load_if_exists=True)
    with pytest.raises(BadProblem, match="pass the cases"):
        study.ask()
    with pytest.raises(BadProblem, match="imported votes"):
        study.import_votes(["a"], ["b"], [1.0])
    with pytest.raises(BadProblem, match="choose one of 'these', 'like these'"):
        shortlist.create_study(ITEMS, 2, cases_claim="all")


def by_name(first, second, case):
    return min(first, second)


def test_a_guarantee_names_its_claim_and_is_empty_while_nothing_is_proved():
    for claim, words in (
        ("these", "by this judge's answers, on average over these 30 cases"),
        ("like these", "on average over cases like these (each of the 30 cases was used at most once)"),
    ):
        study = shortlist.create_study(["a", "b"], 1, cases_claim=claim)
        assert study.verdict.guarantee == study.examine().to_dict()["guarantee"] == ""
        verdict = shortlist.run_study(study, by_name, cases=CASES).verdict
        assert verdict.reason == "certified"
        assert verdict.guarantee.endswith(words)
        assert study.examine().guarantee == verdict.guarantee
    without = shortlist.find_top(["a", "b"], 1, min)
    assert without.guarantee
    assert "case" not in without.guarantee


def test_a_study_draws_from_one_list_of_cases(tmp_path):
    """Else an owner could choose for each question the cases on which a favourite wins."""
    url = f"sqlite:///{tmp_path}/studies.db"
    study, few, many = new_study(storage=url, name="cases"), CASES[:2], CASES[::-1]
    with pytest.raises(BadCases, match="a case is listed twice"):
        study.ask(cases=["one", "two", "one"])
    assert study.entries == []
    study.skip(study.ask(judge="x", cases=CASES))
    study.ask(cases=many)  # in any order
    other = shortlist.load_study("cases", url)
    for now in (study, other):
        for cases in (few, [*CASES, "one more"], [*CASES[1:], "another"]):
            with pytest.raises(BadCases, match="the questions so far drew from a list of 30 cases"):
                now.ask(cases=cases)
        with pytest.raises(BadCases, match="the questions so far were about cases"):
            now.ask()
    assert study.setups.cases.keys() == set(CASES)
    plain = new_study()
    plain.ask()
    with pytest.raises(BadCases, match="the questions so far were asked without cases"):
        plain.ask(cases=CASES)


def test_a_run_goes_on_with_the_cases_of_earlier_questions():
    study, cases = new_study(max_votes=3), [shortlist.Case(id, f"text of {id}") for id in CASES]
    study.tell(study.ask(cases=CASES), "tie")
    with pytest.raises(SetupChanged, match="case 'case 29' is gone"):
        shortlist.run_study(study, by_name, cases=cases[:-1])
    assert shortlist.run_study(study, by_name, cases=cases).verdict.votes == 3
    assert all(study.setups.cases.values())


def test_other_votes_beside_cases_are_named():
    study = new_study(max_votes=50)
    study.tell(study.ask(cases=CASES), "tie")
    study.import_votes([ITEMS[0]] * 3, [ITEMS[1]] * 3, [1.0, 0.0, 1.0])
    recorded = new_study(max_votes=50)
    for _ in range(3):
        recorded.tell(recorded.ask(cases={("a", "b"): CASES}, once=True), "tie")
    for _ in range(3):
        recorded.tell(recorded.ask(), "tie")
    for now in (study, recorded):
        assert "or recorded votes, and about 3 other votes" in " ".join(now.examine().caveats)


def test_a_budget_with_nothing_proved_has_no_guarantee():
    study = shortlist.create_study(["a", "b"], 1, max_votes=2)
    for outcome in (1.0, 0.0):
        study.tell(study.ask(), outcome)
    assert (study.verdict.reason, study.verdict.guarantee) == ("budget", "")


def test_a_run_about_cases_like_these_ends_with_its_cases():
    study = new_study(cases_claim="like these")
    shortlist.run_study(study, shortlist.CallableJudge(by_name, "one"), cases=CASES[:12], warn=lambda text: None)
    run = shortlist.run_study(study, shortlist.CallableJudge(by_name, "two"), cases=CASES, warn=lambda text: None)
    assert len({row.case for row in study.rows}) == len(study.rows) == len(CASES)
    assert Counter(row.judge for row in study.rows) == {"one": 12, "two": 18}
    assert run.used_up
    assert run.warnings[-1] == "All cases are used up, each for one question: 30 of 30. Not proved."
    assert "cases" not in "".join(study.examine().caveats)  # one that serves one question is as good as a new one


def test_caveats_are_part_of_the_verdict():
    study = shortlist.create_study(["a", "b"], 1)
    question = study.ask(judge="ann")
    study.tell(question, winner="a")
    assert study.verdict.caveats == ()
    judge = shortlist.CallableJudge(min, "ann")
    verdict = shortlist.run_study(study, judge, workers=1, warn=lambda text: None).verdict
    assert "got the same answer" in verdict.caveats[0]
    assert study.verdict is study.verdict
    assert study.examine().caveats == verdict.caveats
    assert verdict.to_dict()["caveats"] == list(verdict.caveats)
    assert "got the same answer" in verdict._repr_html_()
