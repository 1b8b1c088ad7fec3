from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import rel_entr

from shortlist.core.families import BradleyTerry, Gaussian, make_family
from shortlist.errors import BadFamily, BadOutcome

FAMILIES = [BradleyTerry(), Gaussian(), Gaussian(0.3)]
ETA = np.linspace(-8, 8, 41)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_mean_and_variance_are_derivatives_of_the_log_partition(family):
    h = 1e-5
    up, here, down = (family.moments(ETA + shift) for shift in (h, 0.0, -h))
    np.testing.assert_allclose(
        (up.log_partition - down.log_partition) / (2 * h), here.mean, atol=1e-6 * here.mean.max()
    )
    np.testing.assert_allclose((up.mean - down.mean) / (2 * h), here.variance, atol=1e-7)
    assert np.all(here.variance <= family.variance_bound)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_kl_is_zero_at_home_and_positive_elsewhere(family):
    np.testing.assert_allclose(family.divergence(ETA, ETA), 0, atol=1e-14)
    assert np.all(family.divergence(ETA, ETA + 0.1) > 0)


def test_bradley_terry_kl_is_that_of_coins():
    p, q = (1 / (1 + np.exp(-eta)) for eta in (ETA, ETA[::-1] / 3))
    expected = rel_entr(p, q) + rel_entr(1 - p, 1 - q)
    np.testing.assert_allclose(BradleyTerry().divergence(ETA, ETA[::-1] / 3), expected, rtol=1e-9, atol=1e-12)


def test_gaussian_kl_in_closed_form():
    np.testing.assert_allclose(Gaussian(0.5).divergence(ETA, 0 * ETA), ETA**2 / (2 * 0.25))


@pytest.mark.parametrize("eta", [-30.0, -5.0, 0.0, 5.0, 30.0])
@pytest.mark.parametrize("eta_alt", [-30.0, -1.0, 0.0, 1e-7, 30.0])
def test_divergence_against_many_digits(eta, eta_alt):
    with localcontext() as context:
        context.prec = 60
        x, y = Decimal(eta), Decimal(eta_alt)
        exact = (1 + y.exp()).ln() - (1 + x.exp()).ln() - (y - x) / (1 + (-x).exp())
    found = BradleyTerry().divergence(np.array([eta]), np.array([eta_alt]))[0]
    assert found == pytest.approx(float(exact), rel=1e-8, abs=1e-30)


def test_bradley_terry_stays_exact_in_the_tails():
    moments = BradleyTerry().moments(np.array([-40.0, 40.0]))
    np.testing.assert_allclose(moments.variance, np.exp(-40.0), rtol=1e-12)
    np.testing.assert_allclose(moments.log_partition, [0.0, 40.0], atol=1e-13)


def test_margin_is_where_the_outcome_exceeds_even_by_the_tolerance():
    family = BradleyTerry()
    assert family.expect(np.array([family.margin(0.1)]))[0] == pytest.approx(0.6)
    assert Gaussian(2.0).margin(0.3) == 0.3


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_draws_have_the_expected_mean_and_noise(family):
    rng = np.random.default_rng(3)
    eta = np.array([-1.0, 0.0, 2.0])
    counts = np.full(3, 50_000.0)
    mean = family.expect(eta)
    error = (family.draw(rng, mean, counts) - counts * mean) / np.sqrt(counts)
    spread = (
        np.sqrt(family.moments(eta).variance) / family.variance_bound * (0.25 if family.name == "bradley-terry" else 1)
    )
    assert np.all(np.abs(error) < 4 * spread)


def test_bad_families_and_outcomes():
    for sigma in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(BadFamily, match="positive"):
            Gaussian(sigma)
    with pytest.raises(BadFamily, match="choose one of"):
        make_family("thurstone")
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(BadOutcome, match=r"\[0, 1\]"):
            BradleyTerry().check(np.array([0.5, bad]))
    with pytest.raises(BadOutcome, match="not a finite number in range"):
        Gaussian().check(np.array([float("nan")]))
