import numpy as np
import pytest

from shortlist.errors import BadVotes
from shortlist.families import Gaussian
from shortlist.io.votes import read_votes


def write(tmp_path, text):
    file = tmp_path / "votes.csv"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "text",
    [
        "first,second,outcome\nx,y,1\ny,x,0\nx,z,0.5\n",
        "model_a,model_b,winner\nx,y,model_a\ny,x,model_b\nx,z,tie\n",
        "left,right,winner\nx,y,left\ny,x,right\nx,z,tie\n",
        "judge,A,B,Winner\nann,x,y,x\nann,y,x,x\nann,x,z,Tie\n",
    ],
)
def test_formats(tmp_path, text):
    table = read_votes(write(tmp_path, text))
    assert table.items == ("x", "y", "z")
    assert list(zip(table.first, table.second, strict=True)) == [(0, 1), (1, 0), (0, 2)]
    np.testing.assert_array_equal(table.outcome, [1, 0, 0.5])


def test_weights_and_a_byte_order_mark(tmp_path):
    table = read_votes(write(tmp_path, "\ufefffirst,second,outcome,weight\nx,y,0.75,20\n"))
    assert table.weight.tolist() == [20]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "columns none"),
        ("first,second,outcome\n", "no votes"),
        ("who,whom,outcome\nx,y,1\n", "two item columns"),
        ("first,second,outcome\nx,y,1\nx,y,maybe\n", "line 3: 'maybe' is not a number"),
        ("first,second,winner\nx,y,z\n", "line 2: winner 'z'"),
        ("first,second,outcome\nx,x,1\n", "line 2: 'x' against 'x'"),
        ("first,second,outcome\nx\n", "line 2: the row has more or fewer"),
        ("first,second,outcome\nx,y,1,9\n", "line 2: the row has more or fewer"),
        ("first,second,outcome\n\n\nx,y,1\nx,y,zz\n", "line 5"),
        ("first,second,outcome\nx,y,7\n", "line 2: outcome 7.0"),
        ("first,second,outcome,weight\nx,y,1,-1\n", "line 2: weight"),
    ],
)
def test_bad_files_name_the_line(tmp_path, text, message):
    with pytest.raises(BadVotes, match=message):
        read_votes(write(tmp_path, text))


def test_a_winner_is_no_measured_difference(tmp_path):
    with pytest.raises(BadVotes, match="needs an outcome column"):
        read_votes(write(tmp_path, "first,second,winner\nx,y,x\n"), Gaussian())
    assert read_votes(write(tmp_path, "first,second,outcome\nx,y,-3.5\n"), Gaussian()).outcome.tolist() == [-3.5]
