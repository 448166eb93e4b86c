"""Functions with rules of their own, foreign functions, and what solvers return, judged without the
compiler's help.

Rules that are right are judged by dual numbers, through the function itself; where a rule says
something else on purpose, to show that it was asked, the numbers are worked out by hand.
tests/peers/test_custom_rules.py compares with JAX.
"""

import ctypes
import ctypes.util
import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
import scipy.special
from judge import judge

import s2s
from s2s.ops.program.custom_rules import RULES

# --------------------------------------------------------------------------------------- custom_jvp


@s2s.custom_jvp
def sine(x):
    return np.sin(x)


@sine.defjvp
def sine_jvp(primals, tangents):
    x, = primals
    x_dot, = tangents
    return sine(x), np.cos(x) * x_dot


@s2s.custom_jvp
def twice(x):
    return x * 1.0


twice.defjvp(lambda primals, tangents: (twice(primals[0]), 2.0 * tangents[0]))


def in_loops_and_branches(x, n):
    total = np.zeros(3)
    for i in range(n):
        if x > 0.2:
            total[i % 3] += sine(x * (i + 1.0))
        else:
            total[0] += x * sine(x)
        x = sine(x) * 0.9
    return np.sum(total * total)


@pytest.mark.parametrize("f, args", [
    (lambda x: sine(x), (0.3,)),
    (lambda x: sine(sine(x) * x) / x, (0.3,)),
    (in_loops_and_branches, (1.3, 5)),
    (in_loops_and_branches, (1.3, 0)),
    (lambda x: np.sum(sine(x) * np.cos(x)), (np.array([0.3, 1.2, -0.4]),)),
], ids=["alone", "composed", "loop", "no trip", "array"])
def test_a_right_rule_is_the_derivative(f, args):
    judge(f, *args, wrt=0)


def while_it_decreases(x):
    n = 0
    while x > 0.1:
        x = sine(x) * 0.7
        n += 1
        if n > 5:
            break
    return x * n


def test_rule_in_a_while():
    judge(while_it_decreases, 0.9)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args", [(in_loops_and_branches, (1.3, 5)), (while_it_decreases, (0.9,))]
)
def test_rule_in_loops_compiled(f, args):
    judge(f, *args, wrt=0, compiled=True)


def test_the_rule_is_asked_and_not_the_function():
    assert s2s.grad(twice)(3.0) == 2.0
    assert s2s.jvp(twice, (3.0,), (1.0,)) == (3.0, 2.0)
    assert s2s.grad(lambda x: twice(twice(x)) * x)(3.0) == 3.0 + 4.0 * 3.0


def test_the_primal_is_a_call_in_generated_code():
    t = s2s.value_and_grad(lambda x: twice(x) * x)
    assert t(3.0) == (9.0, 9.0)
    assert "twice(x)" in t.source and "def twice(x):" in t.source


def test_a_rule_given_anew_is_the_rule():
    f = s2s.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda p, t: (f(p[0]), 2.0 * t[0]))
    d = s2s.grad(lambda x: f(x))
    assert d(1.0) == 2.0
    f.defjvp(lambda p, t: (f(p[0]), 5.0 * t[0]))
    assert d(1.0) == 5.0


FACTOR = 2.0


@s2s.custom_jvp
def scaled(x):
    return np.sin(x)


@scaled.defjvp
def scaled_jvp(primals, tangents):
    x, = primals
    return scaled(x), FACTOR * tangents[0] * np.cos(x)


def scaled_in_a_callee(x):
    for _ in range(2):
        x = scaled(x) * x
    return x


def test_what_a_rule_reads_from_outside_is_read_at_each_call(monkeypatch):
    d, inside, second = (
        s2s.grad(scaled),
        s2s.grad(lambda x: scaled_in_a_callee(x) + x),
        s2s.grad(s2s.grad(scaled)),
    )
    for factor in (2.0, 3.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        assert math.isclose(d(0.4), factor * math.cos(0.4))
        assert math.isclose(second(0.4), -factor * math.sin(0.4))
        x, slope = 0.5, 1.0
        for _ in range(2):
            x, slope = math.sin(x) * x, slope * (math.sin(x) + x * factor * math.cos(x))
        assert math.isclose(inside(0.5), slope + 1.0)


def counted_down(x, n):
    if n == 0:
        return x
    return sine(counted_down(x, n - 1)) * x


def test_rule_inside_a_recursive_function():
    judge(counted_down, 0.5, 3, wrt=0)


def test_rule_over_lanes():
    x = np.array([0.3, 0.7, 1.1])
    np.testing.assert_allclose(s2s.vmap(s2s.grad(twice))(x), 2.0)
    np.testing.assert_allclose(s2s.grad(lambda x: np.sum(s2s.vmap(twice)(x) ** 2))(x), 4 * x)
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(while_it_decreases))(x), [s2s.grad(while_it_decreases)(v) for v in x]
    )


def test_integers_have_zeros_for_tangents():
    @s2s.custom_jvp
    def power(x, n):
        return x ** n, n

    power.defjvp(
        lambda primals, tangents: (power(*primals), (7.0 * tangents[0] + tangents[1], tangents[1]))
    )
    assert s2s.grad(lambda x: power(x, 3)[0] * power(x, 3)[1])(2.0) == 21.0


def test_single_precision_stays():
    assert s2s.grad(lambda x: np.sum(sine(x)))(np.ones(2, np.float32)).dtype == np.float32


def test_rule_with_writes_in_place():
    @s2s.custom_jvp
    def pinned(x):
        y = x.copy()
        y[0] = 0.0
        return y * 2

    @pinned.defjvp
    def rule(primals, tangents):
        d = tangents[0].copy()
        d[0] = 5 * d[1]
        return pinned(primals[0]), d * 2

    x = np.arange(3.0)
    y, y_dot = s2s.jvp(pinned, (x,), (np.ones(3),))
    np.testing.assert_array_equal(y, [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(y_dot, [10.0, 2.0, 2.0])
    np.testing.assert_array_equal(
        s2s.vjp(pinned, x)[1](np.array([1.0, 2.0, 3.0]))[0], [0.0, 2 * 2 + 10, 6.0]
    )


def test_an_argument_that_comes_back_may_be_written_into():
    same = s2s.custom_jvp(lambda x: x)
    same.defjvp(lambda p, t: (p[0], 2 * t[0]))

    def f(x):
        y = same(x)
        y[0] = 3.0
        return np.sum(y * y)

    x = np.ones(3)
    value, slope = s2s.value_and_grad(f)(x)
    assert value == 11.0
    np.testing.assert_array_equal(slope, [0.0, 4.0, 4.0])
    np.testing.assert_array_equal(x, 1.0)


class Model:
    def __init__(self, w):
        self.w = w

    @s2s.custom_jvp
    def dot(self, x):
        return np.sum(self.w * x)

    @dot.defjvp
    def dot_jvp(primals, tangents):
        self, x = primals
        return self.dot(x), 2 * np.sum(self.w * tangents[1])

    def dot3(self, x):
        return np.sum(self.w * x)

    dot3 = s2s.custom_vjp(dot3, nondiff_argnums=0)

    def fwd(self, x):
        return self.dot3(x), None

    def bwd(self, _, y_bar):
        return (3 * self.w * y_bar,)

    dot3.defvjp(fwd, bwd)


def test_rules_of_methods():
    model = Model(np.arange(3.0))
    first, second = s2s.grad(model.dot), s2s.grad(lambda x: model.dot3(x) ** 2)
    np.testing.assert_array_equal(first(np.ones(3)), [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(second(np.ones(3)), 6 * 3 * model.w)
    model.w = np.ones(3)
    np.testing.assert_array_equal(first(np.ones(3)), 2.0)


@dataclass
class Line:
    slope: np.ndarray
    offset: float


def test_cotangents_of_objects():
    @s2s.custom_vjp
    def at(line, x):
        return np.sum(line.slope * x) + line.offset

    at.defvjp(
        lambda line, x: (at(line, x), (line, x)),
        lambda res, g: (Line(res[1] * g * 2, g * 7.0), res[0].slope * g),
    )
    line, x = s2s.grad(at, argnums=(0, 1))(Line(np.arange(3.0), 2.0), np.ones(3))
    np.testing.assert_array_equal(line.slope, 2.0)
    assert line.offset == 7.0
    np.testing.assert_array_equal(x, np.arange(3.0))


def test_rules_made_inside_a_program():
    def f(x, a):
        @s2s.custom_jvp
        def g(y):
            return np.sin(y)

        @g.defjvp
        def rule(primals, tangents):
            return g(primals[0]), 2.0 * np.cos(primals[0]) * tangents[0]

        return g(x) * a

    assert math.isclose(s2s.grad(f)(0.3, 2.0), 4 * math.cos(0.3))
    assert math.isclose(s2s.grad(s2s.grad(f))(0.3, 2.0), -4 * math.sin(0.3))
    assert math.isclose(s2s.jvp(s2s.grad(f), (0.3, 2.0), (0.0, 1.0))[1], 2 * math.cos(0.3))


def test_a_custom_vjp_with_a_rule_for_tangents_serves_both_modes():
    f = s2s.custom_vjp(lambda x: np.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda x, g: (3 * np.cos(x) * g,))
    f.defjvp(lambda p, t: (f(p[0]), 5 * np.cos(p[0]) * t[0]))
    assert math.isclose(s2s.grad(f)(0.3), 3 * math.cos(0.3))
    assert math.isclose(s2s.jvp(f, (0.3,), (1.0,))[1], 5 * math.cos(0.3))
    assert math.isclose(s2s.hessian(f)(0.3), -3 * math.sin(0.3))


def test_checkpointed_rule():
    judge(lambda x: s2s.checkpoint(lambda y: sine(y) * y)(x) * x, 0.7)


# ------------------------------------------------------------------------------------------ refused


def refused(text, call):
    with pytest.raises(s2s.S2SError) as found:
        call()
    assert text in str(found.value)


def with_jvp(rule, function=lambda x: np.sin(x)):
    f = s2s.custom_jvp(function)
    f.defjvp(rule)
    return f


def with_vjp(fwd, bwd):
    f = s2s.custom_vjp(lambda x: np.sin(x))
    f.defvjp(fwd, bwd)
    return f


def written_into(x):
    x[0] = 1.0
    return np.sum(x)


@pytest.mark.lengthy
def test_what_is_wrong_with_a_rule_is_said():
    one = (1.0,)
    refused(
        "is a custom_jvp function without a rule",
        lambda: s2s.grad(s2s.custom_jvp(lambda x: x))(1.0),
    )
    refused(
        "is a custom_vjp function without a rule",
        lambda: s2s.jvp(s2s.custom_vjp(lambda x: x), one, one),
    )
    only = with_vjp(lambda x: (np.sin(x), x), lambda x, g: (g,))
    refused(
        "has a rule for reverse mode only (defvjp), and forward mode is asked",
        lambda: s2s.jvp(only, one, one),
    )
    refused(
        "returns float64, and a pair is needed", lambda: s2s.grad(with_jvp(lambda p, t: t[0]))(1.0)
    )
    refused("gives the tangent as (float64, float64), where float64 is needed",
            lambda: s2s.grad(with_jvp(lambda p, t: (p[0], (t[0], t[0]))))(1.0))
    refused("gives a tangent as float64[3], where float64 is needed",
            lambda: s2s.grad(with_jvp(lambda p, t: (p[0], np.ones(3) * t[0])))(1.0))
    refused(
        "is not linear in the tangents",
        lambda: s2s.grad(with_jvp(lambda p, t: (p[0], t[0] ** 2)))(1.0),
    )
    refused(
        "is not linear in the tangents",
        lambda: s2s.grad(with_jvp(lambda p, t: (p[0], t[0] + 1.0)))(1.0),
    )
    refused(
        "is not linear in the tangents", lambda: s2s.grad(with_jvp(lambda p, t: (p[0], 1.0)))(1.0)
    )
    x, y = np.ones(3), np.array([1.0, 2.0, 3.0])
    for rule in (
        lambda p, t: (p[0], np.ones(3)),
        lambda p, t: (p[0], 2.0 * t[0] + y),
        lambda p, t: (p[0], np.where(p[0] > 0, t[0], p[0])),
        lambda p, t: (p[0], np.concatenate((t[0][:1], p[0][1:]))),
        lambda p, t: (p[0], -(3.0 * (t[0] - p[0]) / 2.0)),
    ):
        refused(
            "is not linear in the tangents",
            lambda rule=rule: s2s.grad(lambda x: np.sum(with_jvp(rule)(x)))(x),
        )
    for rule in (
        lambda p, t: (p[0], np.zeros(3)),
        lambda p, t: (p[0], 0.0 * p[0] * t[0] + np.zeros(3)),
        lambda p, t: (p[0], np.where(p[0] > 3, t[0], 0.0)),
        lambda p, t: (p[0], t[0] * 0 + (5 * np.zeros_like(p[0]) + 7 * np.zeros(3)) / 2),
    ):
        slope = s2s.grad(lambda x: np.sum(with_jvp(rule)(x)))(x)  # noqa: B023
        np.testing.assert_array_equal(slope, np.zeros(3))
    refused(
        "is not linear in the tangents",
        lambda: s2s.grad(with_jvp(lambda p, t: (p[0], np.where(t[0] > 0, t[0], 0.0))))(1.0),
    )
    refused(
        "a pair is needed: the value and the residuals",
        lambda: s2s.grad(with_vjp(lambda x: np.sin(x), None))(1.0),
    )
    refused(
        "a tuple is needed: a cotangent for each argument",
        lambda: s2s.grad(with_vjp(lambda x: (x, x), lambda x, g: g))(1.0),
    )
    refused(
        "has 1 arguments to differentiate",
        lambda: s2s.grad(with_vjp(lambda x: (x, x), lambda x, g: (g, g)))(1.0),
    )
    refused(
        "gives the cotangent of x as float64[2]",
        lambda: s2s.grad(with_vjp(lambda x: (x, x), lambda x, g: (g * np.ones(2),)))(1.0),
    )
    named = s2s.custom_vjp(lambda p: p["a"] * p["b"])
    for wrong in (
        lambda r, g: ((g, g),),
        lambda r, g: ({"a": g, "c": g},),
        lambda r, g: ({"a": g},),
    ):
        named.defvjp(lambda p: (p["a"] * p["b"], None), wrong)
        refused(
            "the rule of f gives the cotangent of p as",
            lambda: s2s.grad(lambda x: named({"a": x, "b": x}))(1.0),
        )
    refused(
        "written_into writes into its argument",
        lambda: s2s.grad(s2s.custom_jvp(written_into))(np.ones(2)),
    )
    each = s2s.custom_jvp(lambda x, y: x * y)
    each.defjvps(lambda t, ans, x, y: y * t)
    refused("has 2 arguments to differentiate", lambda: s2s.grad(each)(1.0, 2.0))
    fixed = s2s.custom_jvp(lambda x, y: x * y, nondiff_argnums=1)
    fixed.defjvp(lambda y, p, t: (fixed(p[0], y), t[0]))
    refused("in which it is said to have no derivative", lambda: s2s.grad(fixed, 1)(1.0, 2.0))
    closing = s2s.custom_jvp(lambda f, x: f(x), nondiff_argnums=0)
    closing.defjvp(lambda f, p, t: (closing(f, p[0]), t[0]))
    refused(
        "which it or its rule closes over",
        lambda: s2s.grad(lambda a: closing(lambda y: y * a, 2.0))(1.0),
    )
    itself = with_jvp(lambda p, t: (itself(p[0]), itself(t[0])), lambda x: 2.0 * x)
    refused(
        "calls f on tangents, and its reverse would do so without end",
        lambda: s2s.grad(itself)(1.0),
    )
    assert s2s.jvp(itself, one, one) == (2.0, 2.0)


def test_what_a_rule_captures_in_a_recursive_function_is_refused():
    def rec(x, n):
        return x if n == 0 else scaled(rec(x, n - 1)) * x

    refused("captures FACTOR, in a function that calls itself", lambda: s2s.grad(rec)(0.5, 2))


# ------------------------------------------------------------------------------------------ foreign


def bracketed(a, b):
    """x with x**3 + a x = b."""
    return scipy.optimize.brentq(lambda x: x ** 3 + a * x - b, -10.0, 10.0, xtol=1e-14)


cubic = s2s.custom_vjp(bracketed, like=0.0)


def cubic_fwd(a, b):
    x = cubic(a, b)
    return x, (x, a)


def cubic_bwd(residuals, x_bar):
    x, a = residuals
    slope = 3 * x * x + a
    return -x / slope * x_bar, x_bar / slope


cubic.defvjp(cubic_fwd, cubic_bwd)


def difference(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2 * h)


def test_a_function_of_scipy_is_called_as_it_is():
    d = s2s.grad(lambda a, b: cubic(a, b) ** 2, argnums=(0, 1))
    assert math.isclose(
        d(1.0, 2.0)[0], difference(lambda a: bracketed(a, 2.0) ** 2, 1.0), rel_tol=1e-7
    )
    assert math.isclose(
        d(1.0, 2.0)[1], difference(lambda b: bracketed(1.0, b) ** 2, 2.0), rel_tol=1e-7
    )
    second = s2s.grad(lambda a: d(a, 2.0)[0])
    assert math.isclose(second(1.0), difference(lambda a: d(a, 2.0)[0], 1.0), rel_tol=1e-6)
    assert "bracketed(a, b)" in d.source
    np.testing.assert_allclose(
        s2s.vmap(lambda a: d(a, 2.0)[0])(np.array([1.0, 2.0])), [d(1.0, 2.0)[0], d(2.0, 2.0)[0]]
    )


@pytest.mark.compile
def test_a_function_of_scipy_is_called_from_native_code():
    d = s2s.grad(lambda a, b: cubic(a, b) ** 2, argnums=(0, 1))
    np.testing.assert_allclose(s2s.jit(d)(1.0, 2.0), d(1.0, 2.0), rtol=1e-12)
    assert "objmode" in s2s.jit(d).lower(1.0, 2.0).loops


def test_a_function_in_c():
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    libm.cbrt.restype, libm.cbrt.argtypes = ctypes.c_double, [ctypes.c_double]
    cbrt = s2s.custom_jvp(libm.cbrt, like=0.0)
    cbrt.defjvp(lambda p, t: (cbrt(p[0]), t[0] / (3 * cbrt(p[0]) ** 2)))
    assert math.isclose(s2s.grad(lambda x: cbrt(x) * x)(8.0), 8 / 3)
    assert math.isclose(s2s.grad(s2s.grad(cbrt))(8.0), -2 / 9 / 32)


def test_like_says_the_shape_of_the_result():
    fit = s2s.custom_vjp(np.polyfit, nondiff_argnums=2, like=lambda x, y, n: np.zeros(n + 1))

    def bwd(n, residuals, c_bar):
        x, y = residuals
        v = np.stack((x, np.ones_like(x)), axis=1)
        return None, v @ np.linalg.solve(v.T @ v, c_bar)

    fit.defvjp(lambda x, y, n: (fit(x, y, n), (x, y)), bwd)
    x = np.linspace(0.1, 1.0, 4)
    slope = s2s.grad(lambda y: fit(x, y, 1)[0])(x ** 2)
    np.testing.assert_allclose(slope, [np.polyfit(x, e, 1)[0] for e in np.eye(4)], atol=1e-12)


def test_what_cannot_be_read_and_does_not_say_what_it_returns_is_refused():
    f = s2s.custom_vjp(bracketed)
    f.defvjp(cubic_fwd, cubic_bwd)
    refused(
        "say what it returns, and it is called as it is: s2s.custom_vjp(bracketed, like=...)",
        lambda: s2s.grad(f)(1.0, 2.0),
    )


@pytest.fixture
def own_rules():
    before = dict(RULES)
    yield
    RULES.clear()
    RULES.update(before)


def test_a_function_of_a_library_is_given_a_derivative(own_rules):
    hyp0f1 = scipy.special.hyp0f1  # of which d/dx hyp0f1(v, x) is hyp0f1(v + 1, x) / v
    refused("s2s does not know", lambda: s2s.grad(lambda x: scipy.special.hyp0f1(2, x))(0.7))
    s2s.defderivative(hyp0f1, None, lambda y, v, x: scipy.special.hyp0f1(v + 1, x) / v)

    def f(x):
        return np.sum(scipy.special.hyp0f1(2, x) * x)

    x = np.linspace(0.3, 1.0, 3)
    np.testing.assert_allclose(s2s.grad(f)(x), hyp0f1(2, x) + x * hyp0f1(3, x) / 2)
    np.testing.assert_allclose(
        s2s.jvp(s2s.grad(f), (x,), (np.ones(3),))[1], hyp0f1(3, x) + x * hyp0f1(4, x) / 6
    )
    assert "from scipy.special import hyp0f1" in s2s.grad(f).source
    refused(
        "in which it is said to have no derivative",
        lambda: s2s.grad(lambda v: scipy.special.hyp0f1(v, 0.3))(1.0),
    )
    refused("without a derivative", lambda: s2s.defderivative(scipy.special.yv))


def test_a_function_that_s2s_knows_is_given_another_derivative(own_rules):
    f = s2s.grad(lambda x: np.sum(np.floor(x) ** 2))
    np.testing.assert_array_equal(f(np.array([1.5, 2.5])), 0.0)
    s2s.defderivative(np.floor, lambda y, x: 1.0)
    np.testing.assert_array_equal(f(np.array([1.5, 2.5])), [2.0, 4.0])


# ------------------------------------------------------------------------- implicit differentiation


def newton(g, x):
    for _ in range(30):
        slope = (g(x + 1e-6) - g(x - 1e-6)) / 2e-6
        x = x - g(x) / slope
    return x


def cube_root(t):
    return s2s.custom_root(lambda x: x ** 3 - t, 1.0, newton, lambda g, y: y / g(1.0))


def test_root_of_a_number_to_fourth_order():
    d, wanted, power = cube_root, 1.0, 1 / 3
    for _ in range(4):
        d = s2s.grad(d)
        wanted *= power
        power -= 1
        assert math.isclose(d(2.0), wanted * 2.0 ** power, rel_tol=1e-9)
    assert math.isclose(s2s.jvp(cube_root, (2.0,), (1.0,))[1], 2.0 ** (-2 / 3) / 3)
    np.testing.assert_allclose(s2s.vmap(s2s.grad(cube_root))(np.array([1.0, 8.0])), [1 / 3, 1 / 12])
    first = s2s.grad(cube_root)
    first(2.0)
    assert "newton(1.0, t)" in first.source


@pytest.mark.compile
def test_root_compiled():
    assert math.isclose(s2s.jit(s2s.grad(cube_root))(2.0), 2.0 ** (-2 / 3) / 3)


def fsolve(f, x0):
    return scipy.optimize.fsolve(f, x0, xtol=1e-13)


A = np.array([[4.0, 1.0, 0.2], [0.5, 3.0, 0.1], [0.3, 0.2, 5.0]])
B = np.array([1.0, -2.0, 0.5])


def by_scipy(a, b):
    def f(x):
        return a @ x + 0.1 * x ** 3 - b

    x = s2s.custom_root(f, np.zeros(3), fsolve)
    return np.sum(x ** 2)


@pytest.mark.lengthy
def test_root_found_by_scipy_in_both_modes_and_twice():
    slopes = s2s.grad(by_scipy, argnums=(0, 1))(A, B)
    rng = np.random.default_rng(0)
    da, db = rng.normal(size=(3, 3)), rng.normal(size=3)
    along = difference(lambda t: by_scipy(A + t * da, B + t * db), 0.0)
    assert math.isclose(np.sum(slopes[0] * da) + slopes[1] @ db, along, rel_tol=1e-6)
    assert math.isclose(s2s.jvp(by_scipy, (A, B), (da, db))[1], along, rel_tol=1e-6)
    g = s2s.grad(by_scipy, argnums=1)
    np.testing.assert_allclose(
        s2s.hessian(by_scipy, argnums=1)(A, B) @ db,
        difference(lambda t: g(A, B + t * db), 0.0),
        rtol=1e-5,
    )
    assert "fsolve(lambda x: f(x, a, b)" in g.source


def test_a_solver_that_is_not_read_is_not_called_from_native_code():
    refused("fsolve, which s2s does not read (", lambda: s2s.jit(by_scipy)(A, B))
    refused("is handed a function in native code", lambda: s2s.jit(by_scipy)(A, B))
    refused(
        "bracketed, which s2s does not read, on a GPU",
        lambda: s2s.jit(s2s.vmap(lambda a: cubic(a, 2.0)), target="cuda")(B),
    )


@pytest.mark.lengthy
def test_cotangents_in_a_dict_are_in_no_order():
    product = s2s.custom_vjp(lambda x, y: x * y)
    product.defvjp(
        lambda x, y: (x * y, (x, y)), lambda kept, bar: {"y": kept[0] * bar, "x": kept[1] * bar}
    )

    def inside(x, y):
        f = s2s.custom_vjp(lambda x, y: x * y)
        f.defvjp(
            lambda x, y: (x * y, (x, y)), lambda kept, bar: {"y": kept[0] * bar, "x": kept[1] * bar}
        )
        return f(x, y)

    for f in (product, inside):
        with pytest.raises(
            s2s.errors.TypeMismatchError,
            match=r"returns dict\(.*, and .* (is needed|has 2 arguments to differentiate)",
        ):
            s2s.grad(f)(0.3, 0.2)
    product.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, bar: [kept[1] * bar, kept[0] * bar])
    assert s2s.grad(product, argnums=(0, 1))(0.3, 0.2) == (0.2, 0.3)


def test_nondiff_arguments_by_name():
    @functools.partial(s2s.custom_vjp, nondiff_argnums=1, nondiff_argnames=("how", "n"))
    def f(x, n, how=np.sin):
        return how(x) ** n

    f.defvjp(lambda x, n, how: (f(x, n, how), x), lambda n, how, x, y_bar: (n * how(x) * y_bar,))
    assert f.nondiff_argnums == (1, 2)
    np.testing.assert_allclose(s2s.grad(f)(0.5, 3), 3 * np.sin(0.5))
    np.testing.assert_allclose(s2s.grad(lambda x: f(x, how=np.cos, n=2))(0.5), 2 * np.cos(0.5))
    with pytest.raises(ValueError, match="nondiff_argnames='m': f has the parameters x, n"):
        s2s.custom_jvp(lambda x, n: x, nondiff_argnames="m")


@pytest.mark.lengthy
def test_the_rule_of_a_fixed_point_solves_another():
    """As in JAX's tutorial: what the rule backwards gives to the function is a function of its own
    each time.
    """
    @functools.partial(s2s.custom_vjp, nondiff_argnums=0)
    def settled(f, a, x):
        for _ in range(30):
            x = f(a, x)
        return x

    def forward(f, a, x):
        x = settled(f, a, x)
        return x, (a, x)

    def backward(f, kept, x_bar):
        a, x = kept
        _, through_a = s2s.vjp(lambda a: f(a, x), a)
        u = settled(
            lambda p, u: p[2] + s2s.vjp(lambda x: f(p[0], x), p[1])[1](u)[0], (a, x, x_bar), x_bar
        )
        return through_a(u)[0], None

    settled.defvjp(forward, backward)

    def root(a):
        return settled(lambda a, x: 0.5 * (x + a / x), a, 1.0)

    for order, expected in (
        (1, 0.5 * 2**-0.5),
        (2, -0.25 * 2**-1.5),
        (3, 0.375 * 2**-2.5),
        (4, -0.9375 * 2**-3.5),
    ):
        root = s2s.grad(root)
        np.testing.assert_allclose(root(2.0), expected, rtol=1e-13 * 10**order)


class NotShown:
    def __repr__(self):
        raise AssertionError("shown")


def test_what_a_program_reads_is_not_written_out_for_an_error_that_nobody_sees():
    text = """def f(x):
    def twice(x):
        return 2.0 * x
    ruled = s2s.custom_vjp(twice)
    ruled.defvjp(lambda x: (ruled(x), x), lambda kept, y_bar: (3.0 * y_bar,))
    return ruled(x)
"""
    program = s2s.from_source(text, {"s2s": s2s, "around": NotShown()})
    assert s2s.grad(program)(2.0) == 3.0
    with pytest.raises(s2s.DerivativeError, match="twice has a rule for reverse mode only"):
        s2s.jvp(program, (2.0,), (1.0,))


def test_fixed_point():
    def iterate(f, y):
        while abs(f(y) - y) > 1e-14:
            y = f(y)
        return y

    def f(a):
        return s2s.custom_fixed_point(lambda y: a * np.cos(y), 1.0, iterate)

    y = f(0.5)
    assert math.isclose(s2s.grad(f)(0.5), math.cos(y) / (1 + 0.5 * math.sin(y)))
    assert math.isclose(s2s.grad(s2s.grad(f))(0.5), difference(s2s.grad(f), 0.5), rel_tol=1e-6)


def conjugate_gradient(matvec, b):
    x = np.zeros_like(b)
    r = b - matvec(x)
    p = r.copy()
    while r @ r > 1e-28:
        q = matvec(p)
        step = (r @ r) / (p @ q)
        x = x + step * p
        new = r - step * q
        p = new + (new @ new) / (r @ r) * p
        r = new
    return x


def gmres(matvec, b):
    op = scipy.sparse.linalg.LinearOperator((b.size, b.size), matvec=matvec)
    return scipy.sparse.linalg.gmres(op, b, rtol=1e-14)[0]


def by_factors(a, b):
    return np.sum(np.sin(np.linalg.solve(a, b)))


@pytest.mark.parametrize("matrix, solve, options", [
    (A @ A.T, conjugate_gradient, {"symmetric": True}),
    (A, gmres, {"transpose_solve": gmres}),
], ids=["conjugate gradients", "scipy's gmres"])
def test_linear_solve(matrix, solve, options):
    if "symmetric" in options:
        def f(a, b):
            return np.sum(
                np.sin(s2s.custom_linear_solve(lambda x: a @ x, b, solve, symmetric=True))
            )
    else:
        def f(a, b):
            return np.sum(np.sin(s2s.custom_linear_solve(lambda x: a @ x, b, solve, gmres)))

    got, wanted = (
        s2s.grad(f, argnums=(0, 1))(matrix, B),
        s2s.grad(by_factors, argnums=(0, 1))(matrix, B),
    )
    np.testing.assert_allclose(got[0], wanted[0], atol=1e-10)
    np.testing.assert_allclose(got[1], wanted[1], atol=1e-10)
    np.testing.assert_allclose(
        s2s.hessian(f, argnums=1)(matrix, B),
        s2s.hessian(by_factors, argnums=1)(matrix, B),
        atol=1e-9,
    )
    along = (matrix * 0.3, B * 0.7)
    assert math.isclose(
        s2s.jvp(f, (matrix, B), along)[1], s2s.jvp(by_factors, (matrix, B), along)[1], rel_tol=1e-8
    )


def test_linear_solve_without_transpose_goes_forwards_only():
    def f(b):
        return np.sum(s2s.custom_linear_solve(lambda x: A @ x, b, gmres))

    assert math.isclose(s2s.jvp(f, (B,), (B,))[1], f(B), rel_tol=1e-9)
    refused(
        "give custom_linear_solve a transpose_solve, or say symmetric=True", lambda: s2s.grad(f)(B)
    )


def test_root_of_trees_needs_a_tangent_solve():
    def solve(f, x):
        for _ in range(60):
            r = f(x)
            x = (x[0] - 0.2 * r[0], x[1] - 0.2 * r[1])
        return x

    def f(t, tangent_solve):
        x, y = s2s.custom_root(
            lambda v: (2 * v[0] - t, 3 * v[1] - v[0] * t), (0.0, 0.0), solve, tangent_solve
        )
        return x * y

    def cramer(g, r):
        a, c = g((1.0, 0.0))
        b, d = g((0.0, 1.0))
        det = a * d - b * c
        return (d * r[0] - b * r[1]) / det, (a * r[1] - c * r[0]) / det

    assert math.isclose(
        s2s.grad(lambda t: f(t, cramer))(1.2),
        difference(lambda t: t / 2 * t * t / 6, 1.2),
        rel_tol=1e-6,
    )
    refused(
        "custom_root of a container, without tangent_solve",
        lambda: s2s.grad(lambda t: f(t, None))(1.2),
    )


def test_root_needs_a_tangent_like_itself():
    def solve(f, x):
        for _ in range(60):
            x = x - 0.2 * f(x)
        return x

    def f(t, tangent_solve):
        return np.sum(s2s.custom_root(lambda x: 2 * x - t, np.zeros(3), solve, tangent_solve))

    assert math.isclose(s2s.grad(f)(1.2, lambda g, y: y / 2), 1.5, rel_tol=1e-9)
    for tangent_solve in (lambda g, y: np.outer(y, y), lambda g, y: np.sum(y)):
        refused(
            "tangent_solve returns what is not like x",
            lambda: s2s.grad(lambda t: f(t, tangent_solve))(1.2),
        )


def test_outside_programs_they_are_what_they_call():
    assert math.isclose(cube_root(8.0), 2.0)
    assert sine(0.5) == np.sin(0.5)
    np.testing.assert_allclose(
        s2s.custom_linear_solve(lambda x: A @ x, B, gmres), np.linalg.solve(A, B)
    )


def test_rules_with_defaults_keep_them():
    found = []
    for c in (1.0, 2.0):
        f = s2s.custom_jvp(lambda x, c=c: x * c)
        f.defjvp(lambda p, t, c=c: (p[0] * c, 10 * c * t[0]))
        found.append(f)
    assert s2s.grad(lambda x: found[0](x))(1.0) == 10.0
    assert s2s.grad(lambda x: found[1](x))(1.0) == 20.0


def test_symbolic_zeros_are_refused():
    refused(
        "symbolic_zeros=True",
        lambda: s2s.custom_jvp(lambda x: x).defjvp(lambda p, t: (p[0], t[0]), symbolic_zeros=True),
    )
    refused(
        "symbolic_zeros=True",
        lambda: s2s.custom_vjp(lambda x: x).defvjp(None, None, symbolic_zeros=True),
    )


def test_what_solvers_return_over_lanes():
    def solved(a, b):
        return s2s.custom_linear_solve(
            lambda x: a @ x,
            b,
            lambda mv, b: np.linalg.solve(a, b),
            lambda vm, b: np.linalg.solve(a.T, b),
        )

    rights = np.stack([B, 2 * B, B - 1])

    def total(a):
        return np.sum(s2s.vmap(solved, in_axes=(None, 0))(a, rights) ** 2)

    wanted = sum(s2s.grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2))(A, b) for b in rights)
    np.testing.assert_allclose(s2s.grad(total)(A), wanted, atol=1e-12)


def root_in_a_branch(t, w):
    s = 0.0
    for _ in range(3):
        if t > 0.4:
            s = s + s2s.custom_root(lambda x: x + 0.3 * np.sin(x * w) - t, t, newton) * w
        t = t * 0.8
    return s


def test_root_in_loops_and_branches():
    d = s2s.grad(root_in_a_branch, argnums=(0, 1))
    assert math.isclose(
        d(0.7, 0.5)[0], difference(lambda t: root_in_a_branch(t, 0.5), 0.7), rel_tol=1e-7
    )
    assert math.isclose(
        d(0.7, 0.5)[1], difference(lambda w: root_in_a_branch(0.7, w), 0.5), rel_tol=1e-7
    )
    assert math.isclose(
        s2s.hessian(root_in_a_branch)(0.7, 0.5),
        difference(lambda t: d(t, 0.5)[0], 0.7),
        rel_tol=1e-6,
    )


@pytest.mark.lengthy
def test_jacobian_takes_the_mode_for_which_there_are_rules():
    backward = s2s.custom_vjp(lambda x: np.sin(x))
    backward.defvjp(lambda x: (np.sin(x), x), lambda x, g: (3.0 * g * np.cos(x),))

    x = np.array([0.3, 0.5, 0.7])
    for f in (
        lambda x: backward(x),
        lambda x: backward(x[1:]) * x[:-1],
        lambda x: np.concatenate((backward(x), x)),
    ):
        np.testing.assert_allclose(s2s.jacobian(f)(x), s2s.jacrev(f)(x))


def test_what_a_loop_makes_of_tangents_is_read_linearly():
    """A rule whose loop carries the tangent is transposed; one that reads twice what the loop has
    made of it is refused.
    """
    def repeated(p, t):
        dot, z = t[0], np.cos(p[0])
        for _ in range(3):
            dot, z = dot * np.sin(z), np.sin(z) * p[0]
        return np.sin(p[0]), dot * z

    def summed(p, t):
        dot, z = 0.0, np.cos(p[0])
        for _ in range(3):
            dot, z = dot + t[0] * np.sin(z), np.sin(z) * p[0]
        return np.sin(p[0]), dot * z

    for rule in (repeated, summed):
        assert s2s.grad(with_jvp(rule))(0.3) == pytest.approx(rule((0.3,), (1.0,))[1], rel=1e-14)

    def squared(p, t):
        dot = t[0]
        for _ in range(3):
            dot = dot * p[0]
        return np.sin(p[0]), dot * dot

    def sum_squared(p, t):
        dot = 0.0
        for _ in range(3):
            dot = dot + t[0]
        return np.sin(p[0]), dot * np.tanh(dot)

    def halved(p, t):
        dot = t[0]
        while dot > 0.1:
            dot = dot * 0.5
        return np.sin(p[0]), t[0] * np.exp(dot)

    for rule in (squared, sum_squared, halved):
        refused("is not linear in the tangents", lambda rule=rule: s2s.grad(with_jvp(rule))(0.3))


def ruled_by(function, bwd):
    """`function` with a rule whose residuals are its arguments."""
    ruled = s2s.custom_vjp(function)
    ruled.defvjp(lambda *args: (function(*args), args), bwd)
    return ruled


@pytest.mark.parametrize("x", [1.5, np.array([1.5, 2.0]), np.float32(1.5)], ids=str)
def test_a_complex_cotangent_of_a_real_function_is_refused(x):
    f = ruled_by(lambda x: x * x, lambda args, bar: (2j * bar * args[0],))
    pair = ruled_by(lambda p: p["a"] * p["b"],
                    lambda args, bar: ({"a": bar, "b": 1j * bar * args[0]["a"]},))
    for g in (
        s2s.grad(lambda x: np.sum(f(x))),
        s2s.jit(s2s.grad(lambda x: np.sum(f(3.0 * x)))),
        s2s.grad(lambda x: np.sum(s2s.vmap(f)(np.stack([x, x])))),
    ):
        refused("gives the cotangent of x as complex", lambda g=g: g(x))
    refused("gives the cotangent of p as complex",
            lambda: s2s.grad(lambda x: np.sum(pair({"a": x, "b": x})))(x))


@pytest.mark.lengthy
def test_the_real_part_counts_where_complex_numbers_are_about():
    f = ruled_by(lambda x: np.exp(1j * x), lambda args, bar: (1j * bar * np.exp(1j * args[0]),))
    g = ruled_by(lambda x, z: np.real(x * z), lambda args, bar: (bar * args[1], bar * args[0]))
    x, z = 0.7, 0.3 - 1.2j
    real_of = s2s.grad(lambda x: np.real(f(x)) + 2 * np.imag(f(x) ** 2))(x)
    assert real_of == pytest.approx(-np.sin(x) + 4 * np.cos(2 * x), rel=1e-14)
    assert s2s.grad(lambda x: g(x, z) ** 2)(x) == pytest.approx(2 * x * z.real**2, rel=1e-14)
