"""A logistic loss and its derivative share one exponential, and agree with the two functions of
NumPy for every number.
"""

import numpy as np
import pytest

import s2s

Z = np.array(
    [
        -1e308,
        -800.0,
        -745.0,
        -37.0,
        -1.0,
        -1e-300,
        -0.0,
        0.0,
        5e-324,
        0.3,
        1.0,
        36.0,
        37.0,
        710.0,
        1e300,
    ]
)


def loss(z):
    return np.sum(np.logaddexp(0.0, z) * np.arange(1.0, 1.0 + len(z)))


def other_order(z):
    return np.sum(np.logaddexp(z, 0) ** 2)


def elsewhere(z):
    return np.sum(np.logaddexp(2.5, 3 * z))


def of_a_number(z):
    return np.logaddexp(0.0, z) * z


def regression(w, x, y):
    z = x @ w
    return np.mean(np.logaddexp(0.0, z) - y * z)


def run(t, *args):
    text, names = s2s.jit(t).lower(*args).loops, {}
    exec(text, names)
    name = [line for line in text.splitlines() if line.startswith("def ")][-1][4:].partition("(")[0]
    return text, names[name](*args)


@pytest.mark.parametrize("f", [loss, other_order, elsewhere])
def test_loops_agree_with_the_definition(f):
    z = Z[(np.abs(Z) < 1e3)]
    text, (value, slope) = run(s2s.value_and_grad(f), z)
    wanted, wanted_slope = s2s.value_and_grad(f)(z)
    assert text.count("np.exp(") == 1 and "logaddexp" not in text
    assert np.isclose(value, wanted, rtol=1e-14, atol=0)
    # exp(z - y) loses digits where z is large
    np.testing.assert_allclose(slope, wanted_slope, rtol=1e-12, atol=0)


def test_derivative_is_the_logistic_function():
    text, slope = run(s2s.grad(lambda z: np.sum(np.logaddexp(0.0, z))), Z)
    wanted = [np.exp(x) / (1 + np.exp(x)) if x < 0 else 1 / (1 + np.exp(-x)) for x in Z]
    np.testing.assert_allclose(slope, wanted, rtol=5e-16, atol=0)


def test_infinities_and_nan():
    value, slope = run(
        s2s.value_and_grad(lambda z: np.sum(np.logaddexp(0.0, z))), np.array([-np.inf, 1.0])
    )[1]
    assert value == np.logaddexp(0.0, 1.0) and slope[0] == 0.0
    value, slope = run(
        s2s.value_and_grad(lambda z: np.sum(np.logaddexp(0.0, z))), np.array([np.inf, 1.0])
    )[1]
    assert value == np.inf and slope[0] == 1.0
    value, slope = run(
        s2s.value_and_grad(lambda z: np.sum(np.logaddexp(0.0, z))), np.array([np.nan, 1.0])
    )[1]
    assert np.isnan(value) and np.isnan(slope[0]) and slope[1] > 0.7


def test_number_and_regression():
    for f, args in (
        (of_a_number, (0.7,)),
        (regression, (np.ones(3) / 3, np.arange(12.0).reshape(4, 3), np.zeros(4))),
    ):
        text, found = run(s2s.value_and_grad(f), *args)
        wanted = s2s.value_and_grad(f)(*args)
        assert text.count("np.exp(") == 1
        for a, b in zip(found, wanted):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_what_is_no_such_pair_stays():
    def of_two(a, b):
        return np.sum(np.logaddexp(a, b))

    assert "logaddexp" in run(s2s.grad(of_two), Z[3:12], Z[3:12])[0]
    assert "logaddexp" in run(lambda z: np.logaddexp(0.0, z), Z)[0]
    assert "logaddexp" in run(s2s.grad(lambda z: np.sum(np.logaddexp(-np.inf, z))), Z[3:12])[0]


@pytest.mark.compile
def test_compiled():
    args = np.ones(3) / 3, np.random.default_rng(0).normal(size=(20, 3)), np.zeros(20)
    gradient = s2s.value_and_grad(regression)
    for a, b in zip(s2s.jit(gradient, cache=False)(*args), gradient(*args)):
        np.testing.assert_allclose(a, b, rtol=1e-13)
