"""Every format of docs/guides/vote-files.md, recognised without a hint; and maps for the others."""

import json
from pathlib import Path

import pytest

from shortlist.core.families import Gaussian
from shortlist.errors import BadVotes
from shortlist.votes.formats import EXTRAS, FORMATS, GAME_ENDS, ONE_HOT, PAIR_COLUMNS, PAIR_ENDS, read_map
from shortlist.votes.read import inspect_votes, read_votes

DOCS = Path(__file__).parent.parent.parent / "docs" / "guides" / "vote-files.md"


def write(tmp_path, text, name="votes.csv"):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8", newline="")
    return file


def votes(table):
    pairs = zip(table.first.tolist(), table.second.tolist(), table.outcome.tolist(), strict=True)
    return [(table.items[i], table.items[j], outcome) for i, j, outcome in pairs]


XYZ = [("x", "y", 1), ("y", "x", 0), ("x", "z", 0.5)]


@pytest.mark.parametrize(
    ("text", "format", "expected"),
    [
        ("first,second,outcome\nx,y,1\ny,x,0\nx,z,0.5\n", "plain", XYZ),
        ("first,second,winner\nx,y,x\ny,x,second\nx,z,draw\n", "plain", XYZ),
        ("first,second,winner,loser\nx,y,x,y\ny,x,x,y\nx,z,tie,tie\n", "plain", XYZ),
        ("First Second Winner\nx y x\ny x x\nx z tie\n".replace(" ", ";"), "plain", XYZ),
        ("a,b,winner\nx,y,A\ny,x,b\nx,z,equal\n", "plain", XYZ),
        ("item_a,item_b,winner\nx,y,a\ny,x,item_b\nx,z,both_bad\n", "plain", XYZ),
        ("model_a\tmodel_b\twinner\nx\ty\tmodel_a\ny\tx\tmodel_b\nx\tz\ttie (bothbad)\n", "lmarena", XYZ),
        (
            "id,model_a,model_b,winner_model_a,winner_model_b,winner_tie\n1,x,y,1,0,0\n2,y,x,0,1,0\n3,x,z,0,0,1\n",
            "lmarena, one column for each answer",
            XYZ,
        ),
        ("model_x,model_y,winner,left,right\n8,9,left,x,y\n9,8,right,y,x\n8,7,tie,x,z\n", "left and right", XYZ),
        ("worker,left,right,label\nann,x,y,x\nbob,y,x,x\n", "crowd-kit", XYZ[:2]),
        ("winner,loser\nx,y\ny,x\n", "winner and loser", [("x", "y", 1), ("y", "x", 1)]),
        ("Annotator ID,Winner ID,Loser ID,Time\n1,10,20,2016-01-01\n", "gavel decisions", [("10", "20", 1)]),
        (
            "model_a,model_b,score\nx,y,A>>B\nx,y,A>B\nx,y,A=B\nx,y,B>A\nx,y,[[B>>A]]\nx,y,A<<B\n",
            "Arena-Hard grades",
            [("x", "y", grade) for grade in (1, 0.75, 0.5, 0.25, 0, 0)],
        ),
        (
            "generator_1,generator_2,preference\nx,y,1\ny,x,2.0\nx,z,1.5\nx,z,0\nx,y,1.25\n",
            "AlpacaEval",
            [*XYZ, ("x", "z", 0.5), ("x", "y", 0.75)],
        ),
        ("White,Black,Result\nx,y,1-0\ny,x,0-1\nx,z,1/2-1/2\n", "chess results", XYZ),
        ("white,black,winner\nx,y,white\ny,x,Black\nx,z,draw\n", "chess results", XYZ),
        ("white,black,result\nx,y,1–0\ny,x,0–1\nx,z,½-½\n", "chess results", XYZ),
    ],
)
def test_recognised(tmp_path, text, format, expected):
    file = write(tmp_path, text)
    assert inspect_votes(file).format == format
    assert votes(read_votes(file)) == expected


def test_arena_hard_judgments_are_two_games_with_the_sides_swapped(tmp_path):
    games = [{"score": "B>>A", "judgment": "long"}, {"score": "A>B", "judgment": "text"}]
    row = {"uid": "q1", "judge": "j", "model": "new", "baseline": "old", "games": games}
    broken = [{**row, "games": [games[0], {"score": None}]}, {**row, "games": None}, {**row, "games": [None, None]}]
    file = write(tmp_path, "\n".join(map(json.dumps, [row, *broken, row])), "judgments.jsonl")
    reading = inspect_votes(file)
    assert votes(reading.table) == [("old", "new", 0), ("new", "old", 0.75)] * 2
    assert (reading.table.judge, reading.table.case) == (("j",) * 4, ("q1",) * 4)
    assert reading.table.line.tolist() == [1, 1, 5, 5]
    assert [row.line for row in reading.bad_rows] == [2, 3, 4]
    assert reading.columns_not_read == ()
    assert "0.75" in reading.notes[0]


def test_mt_bench_pairs_are_two_games_with_the_sides_swapped(tmp_path):
    row = {"question_id": 7, "model_1": "x", "model_2": "y", "judge": ["j", "pair-v2"], "turn": 1}
    winners = [("model_1", "model_1"), ("tie", "model_2"), ("error", "model_1"), ("x", "y")]
    rows = [{**row, "g1_winner": one, "g2_winner": other} for one, other in winners]
    reading = inspect_votes(write(tmp_path, "\n".join(map(json.dumps, rows)), "j_pair.jsonl"))
    assert reading.format == "MT-bench pairs"
    assert votes(reading.table) == [("x", "y", 1), ("y", "x", 0), ("x", "y", 0.5), ("y", "x", 1)]
    assert reading.table.case == ("7",) * 4
    assert set(reading.table.judge) == {'["j", "pair-v2"]'}
    assert [bad.line for bad in reading.bad_rows] == [3, 4]
    assert "an error is not a vote" in reading.bad_rows[0].reason


@pytest.mark.parametrize(("grade", "share"), [("A<<B", 0), ("A<B", 0.25), ("B=A", 0.5), ("[[B<A]]", 0.75), ("B<<A", 1)])
def test_grades_from_the_other_side(tmp_path, grade, share):
    file = write(tmp_path, f"model_a,model_b,score\nx,y,{grade}\n")
    assert votes(read_votes(file)) == [("x", "y", share)]
    games = {"model": "y", "baseline": "x", "games": [{"score": grade}, {"score": "A=B"}]}
    judged = write(tmp_path, json.dumps(games), "judgments.jsonl")
    assert votes(read_votes(judged))[0] == ("x", "y", share)


def test_extras(tmp_path):
    file = write(tmp_path, "first,second,outcome,weight,worker,question_id\nx,y,1,2.5,ann,7\nx,y,0,0,,8\n")
    table = read_votes(file)
    assert table.weight.tolist() == [2.5, 0]
    assert table.judge == ("ann", None)
    assert table.case == ("7", "8")
    assert table.line.tolist() == [2, 3]
    plain = read_votes(write(tmp_path, "first,second,outcome\nx,y,1\n"))
    assert (plain.judge, plain.case) == (None, None)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("x,y,1,y", "outcome and winner do not agree"),
        ("x,y,0.5,x", "outcome and winner do not agree"),
        ("x,y,0.4,tie", "outcome and winner do not agree"),
        ("x,y,0.4,", "there is no winner"),
    ],
)
def test_outcome_and_winner_must_agree(tmp_path, row, reason):
    file = write(tmp_path, f"first,second,outcome,winner\nx,y,0.75,x\nx,y,0,second\nx,y,0.5,tie\n{row}\n")
    with pytest.raises(BadVotes, match=f"line 5: {reason}"):
        read_votes(file)
    assert read_votes(file, skip_bad=True).outcome.tolist() == [0.75, 0, 0.5]


def test_a_measured_difference_must_agree_with_the_winner_too(tmp_path):
    reading = inspect_votes(write(tmp_path, "first,second,outcome,winner\nx,y,-3,y\nx,y,2,y\nx,y,0,tie\n"), Gaussian())
    assert reading.table.outcome.tolist() == [-3, 0]
    assert [row.line for row in reading.bad_rows] == [3]


@pytest.mark.parametrize("row", ["left,right,left", "b,a,right"])
def test_a_name_that_is_also_the_right_word_is_fine(tmp_path, row):
    assert len(read_votes(write(tmp_path, f"left,right,winner\n{row}\n"))) == 1


@pytest.mark.parametrize(
    ("row", "columns"), [("right,left,right", "left,right"), ("b,a,a", "a,b"), ("tie,x,tie", "a,b")]
)
def test_a_winner_with_two_meanings_is_refused(tmp_path, row, columns):
    with pytest.raises(BadVotes, match="another meaning"):
        read_votes(write(tmp_path, f"{columns},winner\n{row}\n"))


def test_a_short_name_is_a_side_only_in_columns_that_say_so(tmp_path):
    assert votes(read_votes(write(tmp_path, "first,second,winner\nb,a,a\n"))) == [("b", "a", 0)]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"first": "colA", "second": "colB", "winner": "Who"}, ("x", "y", 1)),
        ({"first": "colB", "second": "colA", "loser": "Who"}, ("y", "x", 1)),
        ({"first": "cola", "second": "COLB", "outcome": "y"}, ("x", "y", 0.25)),
        ({"winner": "colA", "loser": "colB"}, ("x", "y", 1)),
        ({"first": "colA", "second": "colB"}, ("x", "y", 0)),
    ],
)
def test_maps(tmp_path, columns, expected):
    file = write(tmp_path, "colA,colB,Who,y,winner,weight\nx,y,colA,0.25,second,3\n".replace("colA,0", "x,0"))
    reading = inspect_votes(file, columns=columns)
    assert votes(reading.table) == [expected]
    assert (reading.format, reading.table.weight.tolist()) == ("mapped", [3])


def test_a_map_of_extras_leaves_the_rest_recognised(tmp_path):
    file = write(tmp_path, "model_a,model_b,winner,rater,weight\nx,y,tie,ann,9\n")
    table = read_votes(file, columns={"judge": "rater", "weight": ""})
    assert (table.judge, table.weight.tolist()) == (("ann",), [1])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"first": "one"}, "both first and second"),
        ({"first": "one", "second": "two"}, "map one of outcome, winner, loser"),
        ({"winner": "won"}, "map first and second"),
        (
            {"first": "one", "second": "nowhere", "winner": "won"},
            "no column 'nowhere' for second; its columns are one, two, won",
        ),
        ({"frist": "one"}, "'frist'"),
        ({"outcome": ""}, "no column ''"),
        ({"first": 3, "second": "two", "winner": "won"}, "no column 3"),
        ({}, "needs two item columns"),
    ],
)
def test_maps_that_do_not_fit(tmp_path, columns, message):
    with pytest.raises(BadVotes, match=message):
        read_votes(write(tmp_path, "one,two,won\nx,y,x\n"), columns=columns)


def test_a_map_on_the_command_line():
    assert read_map(["first=a, b,second= c,winner=d=e"]) == {"first": "a, b", "second": "c", "winner": "d=e"}
    assert read_map(["first=a", "second=b"]) == {"first": "a", "second": "b"}
    assert read_map(["weight="]) == {"weight": ""}
    for wrong in ("first", "fst=a", "first=a,first=b", ""):
        with pytest.raises(BadVotes, match="map"):
            read_map([wrong])


def test_twin_columns_are_refused_only_where_they_matter(tmp_path):
    with pytest.raises(BadVotes, match="2 columns called 'winner'"):
        read_votes(write(tmp_path, "first,second,winner,Winner\nx,y,x,y\n"))
    assert len(read_votes(write(tmp_path, "first,second,winner,note,note\nx,y,x,1,2\n"))) == 1
    table = read_votes(write(tmp_path, "a,a,first,second,Won,won\n1,2,x,y,x,y\n"), columns={
        "first": "first", "second": "second", "winner": "won",
    })  # fmt: skip
    assert table.outcome.tolist() == [0]


def test_winner_and_loser_beside_a_mark_for_ties_are_not_guessed_at(tmp_path):
    file = write(tmp_path, "winner,loser,Tie\nx,y,0\nx,y,1\n")
    with pytest.raises(BadVotes, match="a column tie beside winner and loser"):
        read_votes(file)
    assert len(read_votes(file, columns={"winner": "winner", "loser": "loser"})) == 2


def test_the_docs_have_every_format_and_every_extra():
    text = DOCS.read_text()
    for known in FORMATS:
        assert known.name in text
        for column in (
            () if known.first in (GAME_ENDS[0], PAIR_ENDS[0]) else (known.first, known.second, *known.verdicts)
        ):
            assert all(f"`{part}`" in text for part in column.split("/")), column
    for title in (*ONE_HOT, *PAIR_COLUMNS, "games", *(title for known in EXTRAS.values() for title in known)):
        assert f"`{title}`" in text
