"""A study as a proof: what verify.py says about it agrees with the product, and replays follow the seed."""

import json
from collections import Counter

import pytest

import shortlist
from shortlist import create_study, load_study, verify
from shortlist.errors import BadProblem, BadProof
from shortlist.study.proof import certify_proof, make_proof, read_study, replay_proof, write_proof
from tests.study.random_studies import KINDS, play, rehashed


def agree(seed, storage=None, kind=None):
    """Whether anything is proved by a random study; verify.py must find the same."""
    return agreed(play(seed, storage, kind=kind))


def agreed(study):
    found, verdict = verify.check(make_proof(study)), study.examine()
    is_proved = verdict.reason == "certified"
    assert found["verdict"]["top"] == (list(verdict.top) if is_proved else None)
    assert found["verdict"]["certainly_in"] == list(verdict.certainly_in)
    assert found["verdict"]["certainly_out"] == list(verdict.certainly_out)
    assert (found["records"], found["hash"]) == study.head
    states = Counter(row.status for row in study.rows if row.question is not None)
    assert found["counts"]["lost"] == sum(row.status in ("lost", "late") and is_lost(study, row) for row in study.rows)
    assert found["counts"]["pending"] == states["pending"]
    return is_proved, verdict.proves


def is_lost(study, row):
    return any(type(entry.event).__name__ == "Lost" and entry.event.question == row.question for entry in study.entries)


def test_verify_agrees_with_a_random_study_of_each_kind():
    proved, _ = zip(*(agree(seed) for seed in range(len(KINDS))), strict=True)
    assert sum(proved) >= 5


def test_a_vote_that_is_withdrawn_after_the_budget_ended_a_study_changes_no_proof():
    agree(1301, kind="changes, tolerant imports")


@pytest.mark.slow
def test_verify_agrees_with_random_studies():
    """Two more of each kind. Many are proved, so that there is something to agree about."""
    proved, proves = zip(*(agree(seed) for seed in range(len(KINDS), 3 * len(KINDS))), strict=True)
    assert sum(proved) >= 15
    assert sum(proves) >= 20


@pytest.mark.sweep
def test_verify_agrees_with_many_random_studies():
    proved, _ = zip(*(agree(seed) for seed in range(1000, 1500)), strict=True)
    assert sum(proved) >= 200


@pytest.mark.sweep
def test_verify_agrees_with_many_random_studies_by_cuts():
    kinds = [kind for kind in KINDS if "cuts" in kind]
    proved, _ = zip(*(agree(seed, kind=kinds[seed % len(kinds)]) for seed in range(2000, 2500)), strict=True)
    assert sum(proved) >= 200


def verdict_in_proof(study):
    return json.loads(make_proof(study).splitlines()[-1])["verdict"]


@pytest.mark.slow
def test_a_stored_study_has_the_same_proof_as_one_in_memory(tmp_path):
    url = f"sqlite:///{tmp_path}/studies.db"
    for seed in range(len(KINDS)):
        in_memory = play(seed)
        assert agree(seed, url) == agreed(in_memory)
        assert verdict_in_proof(load_study(f"study {seed}", url)) == verdict_in_proof(in_memory)


def test_the_last_hash_is_the_head_of_the_study_in_memory_and_in_a_database(tmp_path):
    for storage in (None, f"sqlite:///{tmp_path}/studies.db"):
        study = play(1, storage)
        assert json.loads(make_proof(study).splitlines()[-2])["hash"] == study.head.hash


def test_before_the_first_vote_the_proof_shows_the_settings_and_proves_nothing():
    study = create_study(["a", "b", "c"], k=1)
    found = verify.check(make_proof(study))
    assert found["verdict"]["top"] is None
    assert found["hash"] == study.head.hash
    assert "Nothing is proved yet." in verify.sentences(found)


@pytest.mark.parametrize(
    "settings", [{"stopping": "glr"}, {"stopping": "posterior"}, {"family": "gaussian"}], ids=lambda one: str(one)
)
def test_only_edges_and_cuts_with_votes_have_a_proof(settings):
    study = create_study(["a", "b", "c"], k=1, sampling="uniform", **{"stopping": "edges", **settings})
    with pytest.raises(BadProblem, match="have a proof that others can check"):
        make_proof(study)


def test_a_rule_of_ones_own_has_no_proof():
    class Own(shortlist.Uniform):
        pass

    study = create_study(["a", "b"], k=1, sampling=Own(), stopping="edges")
    with pytest.raises(BadProblem, match="rule of your own"):
        make_proof(study)


# ---- replay


def replayed(study, tmp_path):
    file = tmp_path / "proof.jsonl"
    write_proof(study, file)
    return replay_proof(file)


@pytest.mark.slow
def test_random_studies_replay(tmp_path):
    found = [replayed(play(seed), tmp_path) for seed in range(len(KINDS))]
    totals = [sum(column) for column in zip(*found, strict=True)]
    assert totals[0] > 400  # questions whose pair follows
    assert totals[1] > 10  # pairs that the player chose
    assert totals[3] > 5  # imports


def test_cases_are_drawn_by_the_seed(tmp_path):
    study = create_study(["a", "b", "c"], k=1, delta=0.5, seed=3)
    for _ in range(30):
        question = study.ask(cases=["x", "y", "z"])
        study.tell(question, winner=min(question.first, question.second))
        if study.verdict.done:
            break
    assert replayed(study, tmp_path).cases == len(study.rows)
    lines = (tmp_path / "proof.jsonl").read_text().splitlines()
    asked = [place for place, line in enumerate(lines) if '"kind":"asked"' in line]
    case = study.rows[-1].case
    lines[asked[-1]] = lines[asked[-1]].replace(f'"case":"{case}"', f'"case":"{"y" if case == "x" else "x"}"')
    with pytest.raises(BadProof, match="seed draws another case"):
        replay_text(lines, tmp_path)


def replay_text(lines, tmp_path):
    file = tmp_path / "changed.jsonl"
    file.write_text(rehashed(lines))
    return replay_proof(file)


def test_bets_that_were_made_up_later_do_not_pass(tmp_path):
    """verify.py cannot see where a bet comes from; the replay can."""
    study = create_study(["a", "b", "c"], k=1, delta=0.3, seed=1)
    for place in range(12):
        question = study.ask()
        study.tell(question, float(place % 2))
    assert not study.examine().proves
    lines = make_proof(study).splitlines()
    outcomes = {}
    for line in map(json.loads, lines[1:-1]):
        if line["kind"] == "told":
            outcomes[line["body"]["question"]] = line["body"]["outcome"]
    for place, line in enumerate(lines[1:-1], 1):
        record = json.loads(line)
        if record["kind"] == "asked":
            record["body"]["bet"] = 4.0 if outcomes[record["body"]["question"]] else -4.0
            lines[place] = verify.compact(record)
    verify.check(rehashed(lines))  # agrees with itself
    with pytest.raises(BadProof, match=r"line \d+: a bet does not follow"):
        replay_text(lines, tmp_path)


def test_the_side_follows_from_the_seed(tmp_path):
    study = create_study(["a", "b"], k=1, seed=1)
    study.tell(study.ask(), "tie")
    lines = make_proof(study).splitlines()
    record = json.loads(lines[1])
    body = record["body"]
    body["first"], body["second"], body["bet"] = body["second"], body["first"], -body["bet"]
    lines[1] = verify.compact(record)
    with pytest.raises(BadProof, match="line 2: the seed shows the other item first"):
        replay_text(lines, tmp_path)


@pytest.mark.parametrize("part", ["bet", "weight", "share"])
def test_bets_and_weights_of_imports_follow(part, tmp_path):
    study = create_study(["a", "b", "c"], k=1, seed=1)
    study.import_votes(["a", "a", "b"] * 4, ["b", "c", "c"] * 4, [1.0, 1.0, 0.0] * 4)
    lines = make_proof(study).splitlines()
    record = json.loads(lines[1])
    record["body"][part][5] *= 0.5
    lines[1] = verify.compact(record)
    with pytest.raises(BadProof, match=f"line 2: a {part} does not follow"):
        replay_text(lines, tmp_path)


def test_an_import_that_looks_sorted_cannot_be_passed_off_as_another(tmp_path):
    study = create_study(["a", "b"], k=1, seed=1)
    study.import_votes(["a"] * 80, ["b"] * 80, [1.0] * 40 + [0.0] * 40)
    lines = make_proof(study).splitlines()
    assert '"is_sorted":true' in lines[1]
    lines[1] = lines[1].replace('"is_sorted":true', '"is_sorted":false')
    with pytest.raises(BadProof, match=r"line 2: .*(look sorted|does not follow)"):
        replay_text(lines, tmp_path)


def test_certify_of_a_proof_is_the_verdict_of_the_study(tmp_path):
    study = play(0)
    assert study.verdict.reason == "certified"
    write_proof(study, tmp_path / "proof.jsonl")
    assert certify_proof(tmp_path / "proof.jsonl") == study.examine()
    assert read_study(tmp_path / "proof.jsonl").head == study.head


def test_what_is_no_proof_is_refused(tmp_path):
    with pytest.raises(BadProof, match="cannot read"):
        replay_proof(tmp_path / "nothing.jsonl")
    (tmp_path / "other.jsonl").write_text("a\n")
    with pytest.raises(BadProof, match="line 1"):
        replay_proof(tmp_path / "other.jsonl")
    with pytest.raises(BadProof, match="cannot write"):
        write_proof(play(0), tmp_path / "no folder" / "proof.jsonl")
