"""Derivatives raise where the program does, and nowhere else: divisions by zero of Python's own
numbers.
"""

import math
import warnings

import numpy as np
import pytest
from scipy import special

import s2s

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def masked(x):
    return np.where(x == 0.0, 1.0, np.sin(x) / x)


def masked_twice(x):
    y = np.where(x > 0.0, np.sqrt(x), 0.0)
    return np.where(y > 0.0, np.log(y) / y, -x)


def in_a_loop(x):
    total = 0.0
    for k in range(3):
        total = total + np.where(x == k, 1.0, np.sin(x - k) / (x - k))
    return total


def in_a_branch(x):
    y = 0.0
    if x > 1.0:
        y = np.cos(x)
    return np.sin(y) / np.float64(3.0) + np.where(y == 0.0, x, np.tan(y) / y)


# name -> (function, argument, first derivative, second derivative), of Python floats where these
# divide by zero
RUN = {
    "masked": (masked, 0.0, 0.0, 0.0),
    "masked_twice": (masked_twice, 0.0, -1.0, 0.0),
    "in_a_loop": (in_a_loop, 1.0, 0.0, None),
    "in_a_branch": (in_a_branch, 0.0, 1.0, 0.0),
    "sinc": (lambda x: np.sin(x) / x, 0.0, math.nan, math.nan),
    "log": (lambda x: np.log(x), 0.0, math.inf, -math.inf),
    "sqrt": (lambda x: math.sqrt(x), 0.0, math.inf, -math.inf),
    "power": (lambda x: x**0.5, 0.0, math.inf, -math.inf),
    "other_power": (lambda x: x**1.5, 0.0, 0.0, math.inf),
    "math_pow": (lambda x: math.pow(x, 0.5), 0.0, math.inf, -math.inf),
    "exponent": (lambda x: x ** (x + 0.5), 0.0, math.inf, None),
    "small": (lambda x: x**-2, 1e-150, -math.inf, math.inf),
    "large": (lambda x: x**-2.0, 1e160, 0.0, 0.0),
    "asin": (lambda x: math.asin(x), 1.0, math.inf, None),
    "acosh": (lambda x: math.acosh(x), 1.0, math.inf, None),
    "hypot": (lambda x: math.hypot(x, 0.0), 0.0, 0.0, math.nan),
    "atan2": (lambda x: math.atan2(x, 0.0), 0.0, math.nan, None),
    "logit": (lambda x: special.logit(x), 1.0, math.inf, None),
    "numpys": (lambda x: np.float64(1.0) / x, 0.0, -math.inf, None),
    "arctan": (lambda x: math.atan(1.0 / (x + 1.0)), 0.0, -0.5, 0.5),
}


def both(t, x):
    """What `t` gives, interpreted and compiled."""
    return t(x), s2s.jit(t)(x)


@pytest.mark.parametrize("name", RUN)
def test_does_not_raise(name):
    f, x, first, second = RUN[name]
    f(x)
    values = [
        s2s.grad(f)(x),
        s2s.jvp(f, (x,), (1.0,))[1],
        s2s.vjp(f, x)[1](1.0)[0],
        s2s.value_and_grad(f)(x)[1],
    ]
    np.testing.assert_allclose(values, [first] * 4, rtol=1e-14)
    curvatures = [
        s2s.grad(s2s.grad(f))(x),
        s2s.jvp(s2s.grad(f), (x,), (1.0,))[1],
        s2s.grad(lambda x: s2s.jvp(f, (x,), (1.0,))[1])(x),
    ]
    if second is not None:
        np.testing.assert_allclose(curvatures, [second] * 3, rtol=1e-14)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["masked", "log", "sqrt", "in_a_loop"])
def test_does_not_raise_compiled(name):
    f, x, first, second = RUN[name]
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(x), first)
    curvature = s2s.jit(s2s.grad(s2s.grad(f)))(x)
    if second is not None:
        np.testing.assert_allclose(curvature, second)


RAISE = {
    "reciprocal": (lambda x: 1.0 / x, ZeroDivisionError),
    "constant": (lambda x: x / (x - x), ZeroDivisionError),
    "power": (lambda x: x**-1, ZeroDivisionError),
    "log": (lambda x: math.log(x), (ValueError, ZeroDivisionError)),
    "remainder": (lambda x: 3.0 % x, ZeroDivisionError),
}


@pytest.mark.parametrize("name", RAISE)
def test_raises_where_the_program_does(name):
    f, kind = RAISE[name]
    for t in (f, s2s.grad(f), s2s.value_and_grad(f), lambda x: s2s.jvp(f, (x,), (1.0,))):
        with pytest.raises(kind):
            t(0.0)


def test_a_division_that_the_program_guards_is_pythons():
    """The text says np.divide only where Python might raise."""
    assert (
        "np"
        not in s2s.grad(lambda x: 1.0 / x + math.log(x) + math.atan(x) + 2.0 * x / 3).source.split(
            '"""'
        )[2]
    )


def test_numpys_warning_of_the_derivative():
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
        assert s2s.grad(lambda x: np.log(x))(0.0) == np.inf


def test_mean_of_nothing():
    """NumPy's nan with a warning, not an error."""

    def f(x):
        return x[x > 10.0].mean() + np.sum(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, slope = s2s.value_and_grad(f)(np.ones(3))
        assert np.isnan(value)
        np.testing.assert_array_equal(slope, np.ones(3))
        np.testing.assert_array_equal(s2s.jvp(f, (np.ones(3),), (np.ones(3),))[1], np.nan)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * np.sqrt(x),
        lambda x: np.sqrt(x) * x,
        lambda x: x * math.sqrt(x),
        lambda x: 3.0 * x * np.sqrt(x) / 3.0,
        lambda x: -x * -np.sqrt(x),
    ],
)
def test_a_number_times_its_root_has_a_slope_at_zero(f):
    slope = s2s.grad(f)
    assert slope(0.0) == 0.0
    for x in (0.3, 4.0, 1e300, 1e-300):
        assert slope(x) == pytest.approx(1.5 * math.sqrt(x), rel=1e-15)
    assert s2s.grad(slope)(4.0) == pytest.approx(0.375, rel=1e-14)
    assert s2s.jvp(f, (4.0,), (1.0,))[1] == pytest.approx(3.0, rel=1e-15)


def test_arrays_times_their_roots():
    x = np.array([0.0, 1.0, 4.0])
    slope = s2s.grad(lambda x: np.sum(x * np.sqrt(x)))
    np.testing.assert_array_equal(slope(x), [0.0, 1.5, 3.0])
    assert " / " not in slope.source


def test_one_divisor_of_many_is_divided_by_once():
    """The cotangent of the divisor is a sum, whose terms are all over it."""
    def f(x, s):
        y = x / s
        return np.sum(y * y * y)

    x, s = np.array([1.0, -2.0, 3.0]), 1.7
    gradient = s2s.grad(f, argnums=1)
    assert gradient(x, s) == pytest.approx(-3 * np.sum(x**3) / s**4, rel=1e-14)
    assert any(
        "np.sum(" in line and line.rstrip().endswith("/ s") for line in gradient.source.splitlines()
    )
    batched = s2s.vmap(gradient, in_axes=(None, 0))(x, np.array([1.7, 0.3]))
    assert batched == pytest.approx([-3 * np.sum(x**3) / t**4 for t in (1.7, 0.3)], rel=1e-13)


# name -> (function of float32 and a count, its derivative): where s2s divides as NumPy does
SINGLE = {
    "mean": (lambda x, n: np.mean(x), lambda x, n: np.full_like(x, 1 / len(x))),
    "over_its_length": (lambda x, n: 3.0 * np.sum(x * x) / len(x), lambda x, n: 6 * x / len(x)),
    "each_over_a_number": (lambda x, n: np.sum(x / n), lambda x, n: np.full_like(x, 1 / n)),
    "twice": (lambda x, n: np.sum(np.exp(x) / n) / len(x), lambda x, n: np.exp(x) / (n * len(x))),
    "negative": (lambda x, n: -np.sum(x * x) / (n * n), lambda x, n: -2 * x / n**2),
    "of_a_number": (
        lambda x, n: np.sin(x[0]) / n,
        lambda x, n: np.array([np.cos(x[0]) / n, 0, 0, 0]),
    ),
}


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compile)])
@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_stays(name, compiled):
    """A count is an int, and np.divide(1.0, n) a float64: derivatives of float32 are float32 in
    every step all the same.
    """
    f, slope = SINGLE[name]
    grad = s2s.grad(f)
    x = np.array([0.5, 1.5, -2.0, 3.0], np.float32)
    source = grad.lower(x, 4).source
    assert "float64" not in source and "astype" not in source
    found = (s2s.jit(grad) if compiled else grad)(x, 4)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, slope(x.astype(float), 4), rtol=1e-6)
    pulled, = s2s.vjp(lambda x: f(x, 4), x)[1](np.float32(2.0))
    assert pulled.dtype == np.float32
    np.testing.assert_allclose(pulled, 2 * slope(x.astype(float), 4), rtol=1e-6)


def test_single_precision_does_not_raise():
    """Where there is nothing to count."""
    nothing = np.zeros(0, np.float32)
    for name in ("mean", "over_its_length"):
        assert s2s.grad(SINGLE[name][0])(nothing, 4).shape == (0,)
    for name in ("each_over_a_number", "twice", "negative", "of_a_number"):
        found = s2s.grad(SINGLE[name][0])(np.ones(4, np.float32), 0)
        assert found.dtype == np.float32 and not np.all(np.isfinite(found))
    assert s2s.vmap(s2s.grad(SINGLE["each_over_a_number"][0]))(
        np.ones((3, 4), np.float32), np.array([0, 1, 2])
    ).tolist() == [[np.inf] * 4, [1.0] * 4, [0.5] * 4]
    curvature = s2s.grad(lambda x: np.sum(s2s.grad(SINGLE["over_its_length"][0])(x, 4)))
    np.testing.assert_allclose(curvature(np.ones(4, np.float32)), 1.5)
    assert curvature(nothing).shape == (0,)


@pytest.mark.parametrize(
    "f",
    [
        lambda z: 1.5 * np.var(z),
        lambda z: np.sin(2 * np.var(z)) * 3,
        lambda z: (z * z).sum() * 0.25 / z.size,
    ],
)
def test_numbers_before_the_derivative_of_a_mean_of_nothing(f):
    assert s2s.grad(f)(np.array([])).shape == (0,)
    z = np.array([0.5, 1.5, 4.0])
    h = 1e-6 * np.eye(3)
    np.testing.assert_allclose(s2s.grad(f)(z), [(f(z + e) - f(z - e)) / 2e-6 for e in h], rtol=1e-6)


def grown(x, v):
    return x * 1e200 * 1e200 * v


def shrunk(x, v):
    return x * 1e-200 / 1e200 * v


@pytest.mark.parametrize("f, v, right", [(grown, 1e-300, 1e100), (shrunk, 1e300, 1e-100)])
def test_numbers_whose_product_is_too_large_or_too_small_stay_two(f, v, right):
    assert math.isclose(s2s.grad(f)(1.0 / v, v), right)
    assert math.isclose(s2s.vjp(f, np.full(2, 1.0 / v), v)[1](np.ones(2))[0][1], right)


def test_a_product_that_is_thrown_away_may_be_too_large():
    def f(x):
        try:
            y = x * 1e200 * 1e200
            if math.isinf(y):
                raise OverflowError
        except OverflowError:
            y = 3.0 * x
        return y

    assert s2s.grad(f)(1.0) == 3.0 == s2s.jacfwd(f)(1.0)
