"""Derivatives give no floating-point warnings where the program itself gives none."""

import itertools
import math
import warnings

import numpy as np
import pytest

import s2s

INF = np.inf
AWKWARD = (0.0, -0.0, INF, -INF, np.nan, 1e200, -1e200, 1e-200, -1e-200, 1.0, -1.0, 0.5, 3.0)
OF_ONE = """
    exp exp2 expm1 log1p sqrt cbrt square sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh
    arccosh arctanh degrees sinc absolute fabs floor ceil rint nan_to_num
""".split()
OF_TWO = """
    logaddexp logaddexp2 hypot arctan2 maximum minimum fmax fmin copysign remainder fmod power
    heaviside
""".split()
SPECIAL = "erf erfc ndtr log_ndtr expit log_expit gammaln gamma".split()
IN_MATH = "atan asinh hypot erf erfc atan2 pow fmod tanh expm1 log1p".split()
PROGRAMS = [
    *(f"np.{name}(x)" for name in OF_ONE),
    *(f"np.{name}(x, y)" for name in OF_TWO),
    *(f"special.{name}(x)" for name in SPECIAL),
    *(f"math.{name}({'x, y' if name in ('hypot', 'atan2', 'pow', 'fmod') else 'x'})"
      for name in IN_MATH),
    *(COMPOSED := ("1 / (1 + np.exp(-x))", "np.log1p(np.exp(x))", "np.sqrt(x * x + 1)")),
]


def is_loud(f, *args) -> bool:
    """Whether a call of f warns, or raises instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            f(*args)
        except (RuntimeWarning, ArithmeticError, ValueError):
            return True
    return False


@pytest.mark.parametrize("text", PROGRAMS)
def test_derivatives_warn_only_where_the_program_does(text):
    special = pytest.importorskip("scipy.special") if text.startswith("special") else None
    names = ("x", "y") if "x, y" in text else ("x",)
    f = s2s.from_source(f"def f({', '.join(names)}):\n    return {text}\n",
                        {"np": np, "math": math, "special": special})
    total = s2s.from_source(f"def f({', '.join(names)}):\n    return np.sum({text})\n",
                            {"np": np, "math": math, "special": special})
    asked = 0
    for numbers in itertools.product(AWKWARD if len(names) == 1 else AWKWARD[::2] + (-INF,),
                                     repeat=len(names)):
        for primal, args in ((f, numbers), (total, [np.array([n]) for n in numbers])):
            if primal is total and text.startswith("math") or is_loud(primal, *args):
                continue
            if text in COMPOSED and math.isinf(numbers[0]):
                continue  # the chain rule multiplies 0 by infinity, and says so
            asked += 1
            every, ones = tuple(range(len(args))), [np.ones_like(x) for x in args]
            ones = [float(one) for one in ones] if primal is f else ones
            assert not is_loud(s2s.grad(primal, argnums=every), *args), numbers
            assert not is_loud(s2s.jvp(primal), *args, *ones), numbers
            if len(args) == 1:
                assert not is_loud(s2s.hessian(primal), *args), numbers
    assert asked > 5


def test_slopes_that_overflow_on_the_way_are_right():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert s2s.grad(lambda x: np.arctan(x))(1e200) == 0.0
        assert s2s.grad(lambda x, y: np.logaddexp(x, y))(-INF, -INF) == 0.0
        assert s2s.grad(lambda x, y: np.logaddexp(x, y))(-INF, 1.0) == 0.0


def test_the_program_itself_warns_beside_a_silent_slope():
    f = s2s.value_and_grad(lambda x: np.exp(x) + np.arctan(x))
    with pytest.warns(RuntimeWarning, match="overflow encountered in exp"):
        f(np.float64(1e200))


def test_no_block_for_numbers_of_python():
    """Python's own numbers do not warn."""
    assert "errstate" not in s2s.grad(lambda x: math.atan(x) * x).lower(1.0).source[-60:]


@pytest.mark.parametrize("v", [(-INF, -INF), (INF, INF), (-INF, 1.0), (1e200, -1e200)], ids=str)
def test_curvature_of_a_logarithm_of_a_sum_is_silent(v):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = s2s.hessian(lambda v: np.logaddexp(v[0], v[1]))(np.array(v))
    assert (found == 0).all() or np.isnan(found).all() and v == (INF, INF)
