"""Real programs as judges, well behaved and not."""

import json
import os
import sys
import textwrap

import pytest

import shortlist
from shortlist.errors import BadInput, BadJudge, JudgeFailed, JudgeUnclear
from shortlist.judges.base import Call, Case
from shortlist.judges.command import read_reply, write_call
from tests.judges.world import AT_ONCE, new_study, told
from tests.patience import PATIENCE, is_running, wait_until_gone

START = "import json, os, sys, time\n"
GOOD = "q = json.loads(sys.stdin.readline())\nprint(json.dumps({'winner': min(q['first'], q['second'])}))"
KEPT = """
for line in sys.stdin:
    q = json.loads(line)
    print(json.dumps({'id': q['id'], 'winner': 'first' if q['first'] < q['second'] else 'second'}), flush=True)
"""


def program(tmp_path, code):
    """A judge in a file; without site-packages it starts quickly."""
    file = tmp_path / "judge.py"
    file.write_text(START + textwrap.dedent(code))
    return [sys.executable, "-I", "-S", str(file)]


def run(command, votes=3, keep=False, processes=1, **options):
    study = new_study(max_votes=votes)
    judge = shortlist.CommandJudge(command, keep=keep, processes=processes)
    quick = {"backoff": AT_ONCE, "workers": 2, "retries": 1, "warn": lambda text: None, **options}
    return study, shortlist.run_study(study, judge, **quick)


def test_a_program_run_for_every_question(tmp_path):
    study, found = run(program(tmp_path, GOOD), votes=6)
    assert found.verdict.votes == 6
    for answer in told(study):
        assert answer.outcome == float(answer.first < answer.second)


def test_what_a_program_is_told(tmp_path):
    log = tmp_path / "log"
    code = f"line = sys.stdin.read()\nopen({str(log)!r}, 'a').write(line)\nprint(json.dumps({{'outcome': 0.75}}))"
    contents = {item: f"ß {item}\nline" for item in ["ann", "bob", "cid", "dee"]}
    study, _ = run(program(tmp_path, code), cases=[shortlist.Case("c1", "do it")], contents=contents, votes=1)
    question, told_line = study.question(0), json.loads(log.read_text().splitlines()[0])
    assert told_line == {
        "id": "0",
        "first": question.first,
        "second": question.second,
        "first_text": f"ß {question.first}\nline",
        "second_text": f"ß {question.second}\nline",
        "case": {"id": "c1", "text": "do it"},
    }
    assert told(study)[0].outcome == 0.75


def test_a_command_may_be_a_string():
    study, _ = run('printf \'{"winner": "first"}\'')
    assert [answer.outcome for answer in told(study)] == [1.0] * 3


def test_a_program_that_is_kept(tmp_path):
    log = tmp_path / "log"
    code = f"open({str(log)!r}, 'a').write(f'{{os.getpid()}}\\n')\n" + KEPT
    study, _ = run(program(tmp_path, code), votes=20, keep=True, workers=8)
    pids = log.read_text().split()
    assert len(pids) == 1
    wait_until_gone(int(pids[0]))
    for answer in told(study):
        assert answer.outcome == float(answer.first < answer.second)
    _, found = run(program(tmp_path, code), votes=20, keep=True, processes=3, workers=8)
    assert found.verdict.votes == 20
    assert 1 <= len(log.read_text().split()) - 1 <= 3


def test_a_kept_program_asked_in_both_orders(tmp_path):
    _, found = run(program(tmp_path, KEPT), votes=5, keep=True, position="both")
    assert found.costs.calls == 10
    assert found.stats.flip_rate == 0.0


HANG_TWICE = """
while read -r line; do
    id=${line#*\\"id\\": \\"}
    id=${id%%\\"*}
    if [ "$id" = 0 ]; then
        echo $$ >> LOG
        sleep 3600
    elif [ "$id" = 1 ]; then
        sleep 3600 &
        echo $! >> LOG
        sleep 3600
    fi
    printf '{"id": "%s", "winner": "first"}\\n' "$id"
done
"""


@pytest.mark.parametrize("keep", [False, True])
def test_a_program_over_its_time_is_killed_with_its_children(tmp_path, keep):
    """Question 0 hangs, and question 1 hangs beside a child in the background.

    A shell must start within the limit, so the limit grows until both questions have reached one.
    """
    log = tmp_path / "log"
    command = ["sh", "-c", HANG_TWICE.replace("LOG", str(log))]
    for limit in (1, 4, 16, 64, 256):
        log.write_text("")
        study, found = run(command, keep=keep, processes=2, time_limit=float(limit), retries=0)
        pids = [int(pid) for pid in log.read_text().split()]
        for pid in pids:
            wait_until_gone(pid)
        if len(pids) == 2:
            break
    assert len(pids) == 2
    assert found.skipped[0] == found.skipped[1] == f"no answer within {limit} seconds"
    assert len(told(study)) == 3


def test_a_program_that_leaves_a_child_behind_is_not_waited_for(tmp_path):
    """The child keeps the pipe open, one of them out of reach of the group's end."""
    log = tmp_path / "log"
    code = f"""
    if os.fork() == 0:
        time.sleep(3600)
    if os.fork() == 0:
        os.setsid()
        open({str(log)!r}, "a").write(f"{{os.getpid()}}\\n")
        time.sleep(3600)
        os._exit(0)
    """
    _, found = run(program(tmp_path, textwrap.dedent(code) + GOOD), votes=2, time_limit=PATIENCE)
    assert (found.verdict.votes, found.costs.skips, found.costs.retries) == (2, 0, 0)
    for pid in log.read_text().split():
        if is_running(int(pid)):
            os.kill(int(pid), 9)


@pytest.mark.parametrize("keep", [False, True])
def test_a_program_that_dies_is_tried_again_and_then_named(tmp_path, keep):
    code = "sys.stderr.write('no\\nGPU')\nsys.exit(3)"
    with pytest.raises(JudgeFailed, match=r"status 3: no GPU \(2 tries\)") as caught:
        run(program(tmp_path, code), keep=keep)
    assert not told(caught.value.study)


def test_a_kept_program_that_dies_now_and_then_is_started_again(tmp_path):
    code = KEPT.replace("q = json", "\n    if int(time.time_ns() / 1e6) % 3 == 0: sys.exit(1)\n    q = json")
    _, found = run(program(tmp_path, code), votes=10, keep=True, retries=30)
    assert found.verdict.votes == 10
    assert found.costs.skips == 0


def test_a_program_that_dies_of_a_signal(tmp_path):
    with pytest.raises(JudgeFailed, match="status -11"):
        run(program(tmp_path, "os.kill(os.getpid(), 11)"))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    "said", ["hello", "[1]", '{"winner": "eve"}', '{"winner": "first", "outcome": 1}', '{"outcome": NaN}', "", "{}"]
)
def test_a_program_that_prints_garbage_is_skipped_and_then_named(tmp_path, said, keep):
    with pytest.raises(JudgeFailed, match="the last 20 questions were all skipped"):
        run(["sh", "-c", f"read line; echo '{said}'; cat > /dev/null"], keep=keep, retries=0)


def test_a_program_that_never_stops_printing(tmp_path):
    with pytest.raises(JudgeFailed, match="more than 1,048,576 bytes"):
        run(["yes"], retries=0)
    with pytest.raises(JudgeFailed, match="more than 1,048,576 bytes"):
        run(["sh", "-c", "yes | tr -d '\\n'"], retries=0, keep=True)


def test_a_kept_program_that_loses_step_is_never_believed(tmp_path):
    """It says everything twice: the second copy must not become the answer to the next question."""
    code = KEPT + "    print(json.dumps({'id': q['id'], 'winner': 'second'}), flush=True)\n    time.sleep(0.02)\n"
    study, _ = run(program(tmp_path, code), votes=10, keep=True, retries=3)
    for answer in told(study):
        assert answer.outcome == float(answer.first < answer.second)


def test_a_grade_out_of_range_is_a_failure_not_a_skip():
    with pytest.raises(JudgeFailed, match=r"answered 7.0 on .* not in \[0, 1\]"):
        run("echo '{\"outcome\": 7}'")


def test_a_program_that_skips(tmp_path):
    code = GOOD.replace("print(", "print(json.dumps({'skip': 'no idea'})) if q['id'] == '1' else print(")
    _, found = run(program(tmp_path, code), votes=4)
    assert dict(found.skipped) == {1: "no idea"}
    assert found.verdict.votes == 4


@pytest.mark.parametrize("command", ["", [], "'", ["a\0b"], [1]])
def test_commands_that_are_none(command):
    with pytest.raises(BadJudge, match="command"):
        shortlist.CommandJudge(command)


def test_a_program_that_does_not_exist():
    with pytest.raises(JudgeFailed, match="cannot run 'no-such-program-here'"):
        run("no-such-program-here --now")
    with pytest.raises(BadInput, match="processes"):
        shortlist.CommandJudge("x", processes=0)


CALL = Call(7, "ann", "bob", case=Case("c", "text"))


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ('{"winner": "first"}', "ann"),
        ('{"winner": "bob", "why": "nicer"}', "bob"),
        ('{"winner": "tie"}', "tie"),
        ('{"outcome": 0.25, "winner": null}', 0.25),
        ('{"outcome": 1, "id": "7"}', 1.0),
        ('loading\n{"winner": "second"}\n\n', "bob"),
        ('{\n"winner":\n"second"}', "bob"),
        ('{"skip": "dark"}', shortlist.Skip("dark")),
    ],
)
def test_answers_that_are_understood(said, answer):
    assert read_reply(said.encode(), CALL).answer == answer


@pytest.mark.parametrize(
    "said",
    ['{"winner": "first", "id": "8"}', '{"outcome": true}', '{"outcome": "1"}', '{"outcome": 1e999}', "null", "nope"],
)
def test_answers_that_are_not(said):
    with pytest.raises(JudgeUnclear):
        read_reply(said.encode(), CALL)


def test_an_item_called_second():
    call = Call(7, "second", "bob")
    assert read_reply(b'{"winner": "first"}', call).answer == "second"
    with pytest.raises(JudgeUnclear, match="both a side and an item"):
        read_reply(b'{"winner": "second"}', call)
    assert read_reply(b'{"winner": "second"}', Call(7, "bob", "second")).answer == "second"
    assert write_call(call).endswith(b"\n")
