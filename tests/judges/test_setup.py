"""A vote is about what the judge was shown: what a study records of it, and what it refuses."""

import asyncio
import threading

import pytest

import shortlist
from shortlist.errors import BadJudge, SetupChanged
from shortlist.judges.setup import settings_of
from shortlist.study.events import fingerprint
from tests.judges.world import AT_ONCE, ITEMS, new_study, noisy

pytestmark = pytest.mark.slow

CASES = [shortlist.Case(f"c{number}", f"case {number}") for number in range(3)]
TEXTS = {item: f"{item} as it was" for item in ITEMS}


def run(study, judge, **options):
    return shortlist.run_study(study, judge, **{"backoff": AT_ONCE, "warn": lambda text: None, **options})


class Asked:
    """A judge that notes the calls it gets, with settings of one's choice."""

    max_parallel = None

    def __init__(self, name="me", **settings):
        self.name, self.calls = name, []
        if settings:
            self.settings = settings

    def open(self):
        return shortlist.CallableJudge(self._answer, takes_call=True).open()

    def _answer(self, call):
        self.calls.append(call)
        return min(call.first, call.second)


def part(study, judge, **options):
    return run(study, judge, **{"cases": CASES, "contents": TEXTS, "max_calls": 8, "workers": 1, **options})


def refused(study, judge, **options):
    before, calls = study.entries, len(judge.calls)
    with pytest.raises(SetupChanged) as caught:
        run(study, judge, **{"cases": CASES, "contents": TEXTS, **options})
    assert (study.entries, len(judge.calls)) == (before, calls)
    return str(caught.value)


def fresh(**options):
    return new_study(**{"delta": 1e-9, "max_votes": 60, **options})


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        ({"contents": {**TEXTS, "ann": "ann as she is"}}, lambda call: "ann" in (call.first, call.second)),
        ({"cases": [shortlist.Case("c0", "another"), *CASES[1:]]}, lambda call: call.case.id == "c0"),
        ({"judge": Asked(prompt="be mild")}, lambda call: True),
    ],
    ids=["text", "case", "settings"],
)
def test_an_answer_is_reused_only_for_exactly_what_was_shown(change, is_new):
    """One cache for several studies with the same names of items, cases and judge. Once it is full, nothing is asked;
    after a change, only what the judge was never shown."""
    options = {"judge": Asked(prompt="be strict"), "cases": CASES, "contents": TEXTS, "cache": shortlist.MemoryCache()}
    seed = 0
    while len(options["cache"]) < 4 * 3 * len(CASES):
        run(fresh(seed=(seed := seed + 1)), **options)
    full = Asked(prompt="be strict")
    run(fresh(), **{**options, "judge": full})
    assert full.calls == []
    changed = {**options, "judge": Asked(prompt="be strict"), **change}
    run(fresh(), **changed)
    assert changed["judge"].calls
    assert all(map(is_new, changed["judge"].calls))


def test_settings_are_named_and_the_judge_is_found_again():
    study, strict = fresh(), Asked(prompt="be strict", temperature=0.0)
    part(study, strict)
    mild = Asked(prompt="be mild", temperature=0.0)
    said = refused(study, mild)
    assert "judge 'me' has another prompt than judge 'me'" in said
    assert "as_new_judge=True" in said
    found = part(study, mild, as_new_judge=True)
    counts = {judge: len(study.rows_of(judge)) for judge in ("me", "me#2")}
    assert any(text.endswith("by judge 'me' with another prompt, and still count") for text in found.warnings)
    assert min(counts.values()) >= 8
    assert [(one.judge, one.given) for one in study.setups.judges] == [("me", "me"), ("me#2", "me")]
    part(study, mild)
    part(study, mild, as_new_judge=True)
    part(study, strict)
    assert {row.judge for row in study.rows} == {"me", "me#2"}
    assert len(study.setups.judges) == 2
    assert "another prompt and temperature than judge 'me#2'" in refused(study, Asked(prompt="x", temperature=1.0))
    part(study, Asked(prompt="x", temperature=1.0), as_new_judge=True)
    assert study.setups.judges[-1].judge == "me#3"


def test_texts_and_settings_that_changed_are_one_error():
    study = fresh()
    part(study, Asked(prompt="be strict"))
    said = refused(study, Asked(prompt="be mild"), contents={**TEXTS, "bob": "new"}, cases=CASES[:2])
    for words in ("the text of 'bob' is not the same", "case 'c2' is gone", "another prompt"):
        assert words in said
    assert "the texts of 'ann', 'bob', 'cid' and 'dee' are" in refused(study, Asked(prompt="be strict"), contents=None)
    assert "no cases are given, and there were 3" in refused(study, Asked(prompt="be strict"), cases=None)


def test_async_code_is_refused_too():
    study = fresh()
    part(study, Asked(prompt="be strict"))
    for judge, texts in ((Asked(prompt="be mild"), TEXTS), (Asked(prompt="be strict"), {**TEXTS, "ann": "new"})):
        with pytest.raises(SetupChanged):
            asyncio.run(shortlist.arun_study(study, judge, cases=CASES, contents=texts))
        assert not judge.calls
    asyncio.run(shortlist.arun_study(study, Asked(prompt="be mild"), cases=CASES, contents=TEXTS, as_new_judge=True))
    assert {row.judge for row in study.rows} == {"me", "me#2"}


def test_a_judge_without_settings_is_known_by_its_name():
    study = fresh()
    part(study, Asked())
    part(study, Asked())
    part(study, Asked("you"))
    assert "another kind" in refused(study, Asked("me", kind="model", prompt="be strict"))
    plain = fresh()
    run(plain, noisy(1), max_calls=4)
    assert run(plain, noisy(2)).verdict.done
    with pytest.raises(BadJudge, match="cannot be written as JSON"):
        run(fresh(), Asked(prompt=object()))


def test_a_study_of_another_process_remembers(tmp_path):
    from shortlist.study.sql import close_databases

    url = f"sqlite:///{tmp_path / 'studies.db'}"
    study = fresh(storage=url, name="demo")
    part(study, Asked(prompt="be strict"))
    setups = study.setups
    close_databases()
    again = shortlist.load_study("demo", url)
    assert again.setups == setups
    assert setups.cases == {case.id: fingerprint(case.text) for case in CASES}
    assert setups.texts == {item: fingerprint(text) for item, text in TEXTS.items()}
    assert "the text of 'dee' is not the same" in refused(
        again, Asked(prompt="be strict"), contents={**TEXTS, "dee": "new"}
    )
    assert part(again, Asked(prompt="be strict"), max_calls=None).verdict.done


def test_a_snapshot_holds_the_setups(monkeypatch, tmp_path):
    monkeypatch.setattr("shortlist.study.sync.SNAPSHOT", 10)
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    study = fresh(storage=url, name="demo")
    run(study, Asked(prompt="be strict"), contents=lambda item, case: f"{item} {case}", max_calls=30)
    assert study.storage.snapshot("demo") is not None
    assert shortlist.load_study("demo", url).setups == study.setups


def test_texts_by_item_and_case():
    texts = {item: {case.id: f"{item} on {case.id}" for case in CASES} for item in ITEMS}
    study, judge = fresh(), Asked()
    part(study, judge, contents=texts)
    assert {call.first_text for call in judge.calls} <= {f"{item} on c{n}" for item in ITEMS for n in range(3)}
    edited = {**texts, "cid": {**texts["cid"], "c1": "new"}}
    assert "the text of 'cid' is not the same" in refused(study, judge, contents=edited)
    unused = {item: {**by_case, "c9": "not a case of this study"} for item, by_case in texts.items()}
    part(study, judge, contents=unused)


def test_a_slow_function_runs_in_parallel_and_once_for_each_text():
    """No text is returned before three questions look for theirs at the same time."""
    asked, busy, lock = [], threading.Event(), threading.Lock()
    study = fresh()

    def text(item, case):
        with lock:
            asked.append((item, case.id))
            if len(asked) == 3:
                busy.set()
        assert busy.wait(60.0)
        return f"{item} on {case.id}"

    judge = Asked()
    found = run(study, judge, cases=CASES, contents=text, workers=8, position="both")
    assert found.verdict.done
    assert len(asked) == len(set(asked)) <= 4 * 3
    assert found.costs.saved > 0
    for call in judge.calls:
        assert call.first_text == f"{call.first} on {call.case.id}"
        assert call.second_text == f"{call.second} on {call.case.id}"


def test_another_text_of_a_function_is_noticed_before_the_judge_is_called():
    study, judge = fresh(), Asked()
    part(study, judge, contents=lambda item, case: f"{item} on {case.id}")
    calls, votes = len(judge.calls), study.verdict.votes
    shown = {item for call in judge.calls for item in (call.first, call.second)}
    with pytest.raises(SetupChanged, match=r"the text of '\w+' on case 'c\d' is not the one"):
        run(study, judge, cases=CASES, contents=lambda item, case: "new" if item in shown else "x", workers=1)
    assert (len(judge.calls), study.verdict.votes) == (calls, votes)
    mapping = {item: {case.id: f"{item} on {case.id}" for case in CASES} for item in ITEMS}
    one = judge.calls[0].first
    assert f"the text of {one!r} is" in refused(study, judge, contents={**mapping, one: TEXTS[one]})
    assert part(study, judge, contents=mapping, max_calls=None).verdict.done


def test_a_function_that_fails_is_called_again():
    tries = []

    def text(item, case):
        tries.append(item)
        if len(tries) < 3:
            raise OSError("the disk is asleep")
        return f"about {item}"

    found = run(new_study(max_votes=5), Asked(), contents=text, retries=3, workers=1)
    assert found.verdict.votes == 5
    assert (found.costs.calls, found.costs.retries) == (5, 0)  # of the judge
    failed = new_study()
    with pytest.raises(shortlist.errors.JudgeFailed, match="asleep"):
        run(failed, Asked(), contents=lambda item, case: tries.clear() or text(item, case), retries=1, workers=1)
    assert [row.status for row in failed.rows] == ["skipped"]


def test_a_limit_of_calls_holds_while_texts_are_found():
    judge = Asked()
    run(fresh(), judge, contents=lambda item, case: item, max_calls=10, workers=8)
    assert len(judge.calls) == 10


def test_the_first_of_two_runs_that_start_together_decides(tmp_path):
    """Both come with a text of their own; one of them is refused."""
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    fresh(storage=url, name="demo")
    start, ends, asked = threading.Barrier(2, timeout=60.0), [], threading.Event()

    class Slow(Asked):
        def _answer(self, call):
            asked.set()
            return super()._answer(call)

    def work(place):
        study = shortlist.load_study("demo", url)
        start.wait()
        if place:
            assert asked.wait(60.0)
        try:
            run(study, Slow(), cases=CASES, contents={**TEXTS, "ann": f"{place}"})
            ends.append("done")
        except SetupChanged:
            ends.append("refused")

    hands = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join()
    assert sorted(ends) == ["done", "refused"]


def test_settings_of_every_kind(tmp_path):
    program = tmp_path / "judge.py"
    program.write_text("one")
    (tmp_path / "calls.log").write_text("")
    command = shortlist.CommandJudge(["python", str(program), f"--log={tmp_path / 'calls.log'}"])
    before = settings_of(command)
    assert set(before) == {"kind", "command", f"program {program}"}
    (tmp_path / "calls.log").write_text("a program writes its log")
    assert settings_of(command) == before
    program.write_text("two")
    assert settings_of(command) != before
    assert set(settings_of(shortlist.CommandJudge(["python", "-c", "pass\n" * 1000]))) == {"kind", "command"}
    assert settings_of(shortlist.CommandJudge(command.command, keep=True, processes=3)) == settings_of(command)

    def recorded(outcome, **options):
        return settings_of(shortlist.RecordedJudge(["a", "a"], ["b", "b"], [1.0, outcome], **options))

    assert recorded(1) == recorded(1.0, name="again") != recorded(0.5)
    url = "http://localhost:1/v1"
    model = shortlist.EndpointJudge(url, "tiny", key_variable="SECRET")
    other = shortlist.EndpointJudge(url, "tiny", key_variable=None, name="x", max_parallel=2)
    assert settings_of(model) == settings_of(other)
    for changed in ({"prompt": "{first} {second}"}, {"temperature": 0.5}, {"options": {"seed": 1}}):
        assert settings_of(shortlist.EndpointJudge(url, "tiny", **changed)) != settings_of(model)
    assert settings_of(shortlist.CallableJudge(min)) == {}
