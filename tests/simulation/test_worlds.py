import numpy as np
import pytest

from shortlist.errors import BadInput, BadInstance, TieAtCutoff
from shortlist.simulation.worlds import Matrix, RandomUtilities, Sst, Utilities, constant, make_instance


def test_equally_spaced_is_the_papers():
    world = make_instance("equally-spaced", 5, 20, gap=0.25).draw(np.random.default_rng(0))
    np.testing.assert_allclose(world.theta, [(21 - 2 * i) / 2 * 0.25 for i in range(1, 21)])
    assert world.top == (0, 1, 2, 3, 4)
    assert world.expected[0, 1] == pytest.approx(1 / (1 + np.exp(-0.25)))


def test_random_utilities_are_centred_with_a_gap_at_the_line():
    for seed in range(20):
        theta = RandomUtilities(10, 3).draw(np.random.default_rng(seed)).theta
        assert abs(theta.sum()) < 1e-9
        assert theta[2] - theta[3] >= 0.02
        assert np.ptp(theta) <= 10


def test_sst_bands_are_strongly_transitive_but_no_utilities():
    for seed in range(10):
        wins = Sst(12, 4).draw(np.random.default_rng(seed)).expected
        assert wins[3, 4] >= 0.51
        np.testing.assert_allclose(wins + wins.T, 1)
        for i in range(12):
            for j in range(i + 2, 12):
                assert np.all(wins[i, j] >= np.maximum(wins[i, i + 1 : j], wins[i + 1 : j, j]) - 1e-12)


def test_constant_and_matrix():
    world = constant(4, 2, 0.6).draw(np.random.default_rng(0))
    assert world.expected[0, 3] == 0.6
    assert world.expected[3, 0] == 0.4
    assert world.top == (0, 1)
    cycle_at_the_top = ((0.5, 0.9, 0.1, 0.8), (0.1, 0.5, 0.9, 0.8), (0.9, 0.1, 0.5, 0.8), (0.2, 0.2, 0.2, 0.5))
    assert Matrix(cycle_at_the_top, 3).draw(np.random.default_rng(0)).top == (0, 1, 2)
    with pytest.raises(BadInstance, match="no top 1"):
        Matrix(cycle_at_the_top, 1).draw(np.random.default_rng(0))


def test_files(tmp_path):
    utilities = tmp_path / "u.csv"
    utilities.write_text("# best first\n2, 1\n0 -3\n")
    world = make_instance(f"utilities:{utilities}", 2).draw(np.random.default_rng(0))
    np.testing.assert_allclose(world.theta, [2, 1, 0, -3])
    matrix = tmp_path / "m.csv"
    matrix.write_text("0.5,0.7\n0.3,0.5\n")
    assert make_instance(f"matrix:{matrix}", 1).draw(np.random.default_rng(0)).top == (0,)


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_instance("nonsense", 1, 3),
        lambda: make_instance("sst", 1),
        lambda: make_instance("normal:wide", 1, 3),
        lambda: make_instance("normal:-1", 1, 3),
        lambda: make_instance("normal", 1, 3),
        lambda: make_instance("sst", 3, 3),
        lambda: make_instance("constant", 1, 3, p=0.5),
        lambda: make_instance("equally-spaced", 1, 3, gap=0.0),
        lambda: make_instance("utilities:/nowhere", 1),
        lambda: Matrix(((0.5, 0.7), (0.7, 0.5)), 1),
        lambda: Matrix(((0.5, 0.7),), 1),
        lambda: Utilities((1.0, float("nan")), 1),
    ],
)
def test_bad_instances_are_refused(make):
    with pytest.raises(BadInput):
        make()


def test_a_tie_at_the_line_is_refused(tmp_path):
    with pytest.raises(TieAtCutoff):
        Utilities((1.0, 0.0, 0.0), 2).draw(np.random.default_rng(0))
    words = tmp_path / "words"
    words.write_text("one,two\n")
    with pytest.raises(BadInstance, match="not a number"):
        make_instance(f"utilities:{words}", 1)


def test_normal_utilities_have_their_spread_and_a_gap_at_the_cutoff():
    draws = [make_instance("normal:1.5", 5, 20).draw(np.random.default_rng(seed)).theta for seed in range(300)]
    assert all(theta[4] - theta[5] >= 0.02 for theta in draws)
    assert np.std(draws, ddof=0) == pytest.approx(1.5 * np.sqrt(19 / 20), rel=0.04)  # four standard errors; centred


def test_near_ties_are_on_both_sides_of_the_cutoff():
    theta = make_instance("near-ties", 5, 10).draw(np.random.default_rng(0)).theta
    assert np.diff(theta)[[3, 5]] == pytest.approx([-0.003, -0.003])
    assert np.diff(theta)[4] == pytest.approx(-0.4)
