"""All of Python's math and cmath: values bit for bit, derivatives against differences, nothing
refused.
"""

import cmath
import math

import numpy as np
import pytest

import s2s

POINTS = {"acosh": 1.3, "gamma": 2.3, "lgamma": 2.3}
CALLS = {  # where a function takes other things than one number
    "atan2": "math.atan2(x, 2.0)",
    "copysign": "math.copysign(x, -1.0)",
    "fmod": "math.fmod(x, 0.3)",
    "hypot": "math.hypot(x, 2.0) + math.hypot(x, 2.0, 3 * x) + math.hypot(x) + math.hypot(0.0, "
    "0.0, 0.0)",
    "ldexp": "math.ldexp(x, 3)",
    "nextafter": "math.nextafter(x, 2.0)",
    "pow": "math.pow(x, 1.5)",
    "remainder": "math.remainder(x, 0.3) + math.remainder(-x, 0.9)",
    "dist": "math.dist([x, 1.0, x * x], (2.0, 3 * x, 0.5))",
    "gcd": "x * math.gcd(12, 18)",
    "lcm": "x * math.lcm(4, 6)",
    "comb": "x * math.comb(5, 2)",
    "perm": "x * math.perm(5, 2)",
    "isclose": "x * math.isclose(1.0, 1.0 + 1e-12)",
    "fsum": "math.fsum([x, x * x, 1.0])",
    "prod": "math.prod([x, x, 2.0])",
    "isqrt": "x * math.isqrt(17)",
    "factorial": "x * math.factorial(4)",
    "frexp": "x * math.frexp(10 * x)[1] + math.frexp(-10 * x)[0]",
    "modf": "math.modf(3 * x)[0] * math.modf(3 * x)[1]",
    "sumprod": "math.sumprod([x, 2.0], [x, x])",
    "fma": "math.fma(x, 2.0, x)",
}
OF_COMPLEX = {
    "phase": "cmath.phase(z)",
    "polar": "cmath.polar(z)[0] * cmath.polar(z)[1]",
    "rect": "abs(cmath.rect(x, 2 * x)) + cmath.rect(x, 2 * x).real",
    "isclose": "x * cmath.isclose(z, z * (1 + 1e-12))",
    "isfinite": "x * cmath.isfinite(z)",
    "isinf": "x + cmath.isinf(z)",
    "isnan": "x + cmath.isnan(z)",
}
OF_MATH = [
    name
    for name in sorted(vars(math))
    if callable(getattr(math, name)) and not name.startswith("_")
]
OF_CMATH = [
    name
    for name in sorted(vars(cmath))
    if callable(getattr(cmath, name)) and not name.startswith("_")
]


def judge_call(text: str, x: float) -> None:
    f = s2s.from_source(
        f"def f(x):\n    z = x + 0.3j\n    return {text} + 0.0 * x\n",
        {"math": math, "cmath": cmath},
    )
    assert s2s.value_and_grad(f)(x)[0] == f(x)
    for g in (f, s2s.grad(f)):
        h = 1e-5
        slope = (g(x + h) - g(x - h)) / (2 * h)
        assert np.isclose(s2s.grad(g)(x), slope, 1e-6, 1e-6)
        assert np.isclose(s2s.jvp(g, (x,), (1.0,))[1], slope, 1e-6, 1e-6)


@pytest.mark.parametrize("name", OF_MATH)
def test_every_function_of_math(name):
    judge_call(CALLS.get(name, f"math.{name}(x)"), POINTS.get(name, 0.7))


@pytest.mark.parametrize("name", OF_CMATH)
def test_every_function_of_cmath(name):
    judge_call(OF_COMPLEX.get(name, f"cmath.{name}(z).real + 2 * cmath.{name}(z).imag"), 0.6)


@pytest.mark.slow
def test_the_corners_of_what_is_said_in_python():
    def parts(x):
        return math.frexp(x)

    def rest(x, y):
        return math.remainder(x, y)

    def unit(x):
        return math.ulp(x)

    numbers = [
        0.0,
        -0.0,
        1.0,
        0.5,
        -2.0,
        3.0,
        5e-324,
        1e-310,
        2.2e-308,
        1.7976931348623157e308,
        math.inf,
        -math.inf,
        math.nan,
        np.nextafter(1.0, 0),
        np.nextafter(2.0, 3),
        1 / 3,
        -1e300,
        *2.0 ** np.arange(-1074.0, 1023, 97),
    ]
    for x in map(float, numbers):
        assert repr(s2s.value_and_grad(parts, has_aux=True)(x)[0]) == repr(math.frexp(x))
        assert repr(s2s.value_and_grad(unit)(x)[0]) == repr(math.ulp(x))
        for y in (1.0, -0.3, 2.5, 1e-300, math.inf):
            if not math.isinf(x):
                assert repr(s2s.value_and_grad(rest)(x, y)[0]) == repr(math.remainder(x, y)), (x, y)
    with pytest.raises(ValueError):
        s2s.grad(rest)(1.0, 0.0)


@pytest.mark.compile
def test_compiled():
    def f(x):
        m, e = math.frexp(10 * x)
        total = (
            m * e
            + math.hypot(x, 2.0, 3 * x)
            + math.dist((x, 1.0), (2.0, x))
            + math.remainder(x, 0.3)
        )
        if hasattr(math, "cbrt"):
            total = total + math.cbrt(x) * math.exp2(x)
        return total + math.nextafter(x, 2.0) + math.ulp(x)

    assert np.isclose(s2s.jit(f)(0.7), f(0.7), 1e-14)
    assert np.isclose(s2s.jit(s2s.grad(f))(0.7), s2s.grad(f)(0.7), 1e-13)
    assert np.allclose(s2s.vmap(f)(np.array([0.7, 0.9])), [f(0.7), f(0.9)])


@pytest.mark.parametrize(
    "x",
    [np.float32(1.5), float("inf"), -float("inf"), float("nan"), -0.25, np.float64(-3.0)],
    ids=str,
)
def test_the_parts_of_a_number_that_may_not_be_finite(x):
    value, _ = s2s.jvp(lambda x: math.modf(x), (x,), (type(x)(1.0),))
    np.testing.assert_array_equal(value, math.modf(x))
    np.testing.assert_array_equal(np.signbit(value), np.signbit(math.modf(x)))


def methods_of_numbers(x, n):
    total = 0.0
    for k in range(-n, n):
        v = x * k
        total += v * v if (10 * v).is_integer() else v * k.bit_length()
    return total * n.bit_length() if (x / 0.25).is_integer() else total


@pytest.mark.parametrize("of", [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_methods_of_numbers(of):
    for x in (0.25, 0.3, 0.1):
        value, slope = of(s2s.value_and_grad(methods_of_numbers))(x, 9)
        np.testing.assert_allclose(value, methods_of_numbers(x, 9), rtol=1e-14)
        per = sum(
            2 * x * k * k if (10 * (x * k)).is_integer() else k * k.bit_length()
            for k in range(-9, 9)
        )
        np.testing.assert_allclose(slope, per * (4 if (x / 0.25).is_integer() else 1), rtol=1e-13)
    assert not s2s.jvp(lambda x: x * float((x / 0.0).is_integer()), (np.float64(1.0),), (1.0,))[0]


def test_arrays_have_no_method_is_integer():
    with pytest.raises(s2s.errors.UnsupportedError, match="the method is_integer of an array"):
        s2s.grad(lambda x: np.sum(np.where(x.is_integer(), x, 2 * x)))(np.array([1.0, 2.5]))
    assert s2s.grad(lambda x: x[0] if x[0].is_integer() else 2 * x[0])(np.array([1.0, 2.5]))[0] == 1
