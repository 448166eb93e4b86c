"""Special functions: values, derivatives of any order, and their spelling for single numbers."""

import math

import numba
import numpy as np
import pytest
from scipy import special as scipy_special

import s2s
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value
from s2s.ir.interpret import interpret
from s2s.ir.types import Array, Extent, Scalar, Unknown
from s2s.ops.core.derivative_rules import tangent_of
from s2s.ops.core.record import FUNCTIONS, value
from s2s.ops.math import special

VECTOR = Array("float64", (Extent("n", 0, False),))
OPS = {
    "erf": [-1.2, 0.3, 2.0],
    "erfc": [-1.2, 0.3, 2.0],
    "ndtr": [-1.2, 0.3, 2.0],
    "gammaln": [0.3, 2.0, 7.5],
    "gamma": [0.3, 2.0, 4.5],
    "digamma": [0.3, 2.0, 7.5],
    "expit": [-3.0, 0.3, 40.0],
    "logit": [0.1, 0.5, 0.9],
    "log_expit": [-3.0, 0.3, 4.0],
}


def traced(kinds, rule):
    block = Block([Value(k, f"x{i}") for i, k in enumerate(kinds)])
    with Builder(block):
        block.yields = [value(rule(*block.params))]
    return Function("f", block)


def slope(rule):
    """The derivative of a rule on one Value, by walking what it emits."""

    def derivative(x):
        known = {x: value(1.0)}

        def dot(v):
            if v not in known:
                known[v] = None
                if v.op is not None:
                    dots = [dot(i) for i in v.op.inputs]
                    if any(d is not None for d in dots):
                        known[v] = tangent_of(v.op.record, dots, v, *v.op.inputs, **v.op.attrs)
            return known[v]

        return dot(rule(x))

    return derivative


@pytest.mark.parametrize("name", sorted(OPS))
@pytest.mark.parametrize("kind", [VECTOR, Scalar("float64"), Scalar("float64", True)])
def test_value_and_derivatives(name, kind):
    function = getattr(scipy_special, name)
    op = FUNCTIONS[function]
    for x in [np.array(OPS[name])] if kind is VECTOR else map(np.float64, OPS[name]):
        close = np.testing.assert_allclose
        close(interpret(traced([kind], op), x), function(x), rtol=1e-13)
        h = 1e-5
        if np.max(x) < 30:
            close(
                interpret(traced([kind], slope(op)), x),
                (function(x + h) - function(x - h)) / (2 * h),
                rtol=1e-6,
            )
            first = traced([kind], slope(op))
            close(
                interpret(traced([kind], slope(slope(op))), x),
                (interpret(first, x + h) - interpret(first, x - h)) / (2 * h),
                rtol=1e-6,
                atol=1e-8,
            )


@pytest.mark.lengthy
@pytest.mark.parametrize("order", range(4))
def test_polygamma_of_a_number_is_scipys(order):
    compiled = numba.njit(special.polygamma)
    for x in (0.1, 1.0, 3.7, 60.0):
        expected = scipy_special.polygamma(order, x)
        assert special.polygamma(order, x) == pytest.approx(expected, rel=1e-13, abs=1e-13)
        assert compiled(order, x) == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.lengthy
@pytest.mark.parametrize("order", range(4))
def test_polygamma_where_it_is_negative_or_huge(order):
    compiled = numba.njit(special.polygamma, error_model="numpy")
    function = scipy_special.digamma if order == 0 else lambda x: scipy_special.polygamma(order, x)
    for x in (-0.3, -31.7, -999.75, -1000.3, -3000.1):
        expected = function(x)
        assert special.polygamma(order, x) == pytest.approx(expected, rel=1e-11)
        assert compiled(order, x) == pytest.approx(expected, rel=1e-11)
    for x in (0.0, -0.0, -1.0, -2.0, -1e18, -1e300, -np.inf, 1e300, np.inf, np.nan):
        expected = pytest.approx(function(x), nan_ok=True)
        assert special.polygamma(order, x) == expected
        assert compiled(order, x) == expected
    assert math.isfinite(special.polygamma(order, -1e15 - 0.25))


def test_math_functions():
    for function, twin in (
        (math.erf, scipy_special.erf),
        (math.lgamma, scipy_special.gammaln),
        (math.gamma, scipy_special.gamma),
    ):
        kind = [Scalar("float64", True)]
        assert interpret(traced(kind, FUNCTIONS[function]), 2.5) == pytest.approx(twin(2.5))
        assert interpret(traced(kind, slope(FUNCTIONS[function])), 2.5) == pytest.approx(
            interpret(traced([VECTOR], slope(FUNCTIONS[twin])), np.array([2.5]))[0])


def test_expit_does_not_overflow():
    with np.errstate(all="raise"):
        assert (
            interpret(
                traced([Scalar("float64")], FUNCTIONS[scipy_special.expit]), np.float64(-700.0)
            )
            > 0
        )


def test_xlogy_at_zero():
    for kind in ([VECTOR] * 2, [Scalar("float64")] * 2):
        f = traced(kind, lambda a, b: FUNCTIONS[scipy_special.xlogy](a, b))
        args = (np.zeros(1), np.zeros(1)) if kind[0] is VECTOR else (np.float64(0), np.float64(0))
        assert np.all(interpret(f, *args) == 0)


@pytest.mark.parametrize(
    "function, logarithm, b",
    [(scipy_special.xlogy, np.log, 2.0), (scipy_special.xlog1py, np.log1p, 2.0)],
)
def test_slopes_of_a_times_logarithm_at_zero(function, logarithm, b):
    """It is linear in a, there as well; where the logarithm is not finite 0 stands for a limit."""
    least = 0.0 if logarithm is np.log else -1.0

    def of_number(a, b):
        return function(a, b)

    def of_arrays(a, b):
        return np.sum(function(a, b))

    for f, make in ((of_number, float), (of_arrays, lambda x: np.array([x]))):
        slopes = s2s.grad(f, argnums=(0, 1))
        np.testing.assert_allclose(
            np.ravel(slopes(make(0.0), make(b))), (logarithm(b), 0.0), rtol=1e-15
        )
        np.testing.assert_array_equal(np.ravel(slopes(make(0.0), make(least))), (0.0, 0.0))
        np.testing.assert_allclose(
            np.ravel(s2s.grad(lambda a: np.sum(slopes(a, make(b))[1]))(make(0.0))),
            1 / (b - least),
            rtol=1e-15,
        )  # noqa: B023
    for a, x in ((0.0, np.inf), (0.0, -3.0), (0.0, np.nan), (1.0, -3.0)):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(s2s.value_and_grad(of_number)(a, x)[0], function(a, x))


def test_softmax():
    x = np.array([[1.0, 2.0, 700.0], [0.0, 0.5, 1.0]])
    f = traced(
        [Array("float64", (2, 3))], lambda v: FUNCTIONS[scipy_special.softmax](v, axis=value(1))
    )
    np.testing.assert_allclose(interpret(f, x), scipy_special.softmax(x, axis=1))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "x",
    [
        [1.0, math.inf, 2.0],
        [math.inf, math.inf],
        [-math.inf, 1.0, 2.0],
        [-math.inf, -math.inf],
        [1.0, 2.0, 700.0],
        [3.0, 1.0, -800.0],
    ],
)
def test_softmax_is_scipys_bit_for_bit(x):
    x = np.array(x)
    wanted = scipy_special.softmax(x)
    np.testing.assert_array_equal(
        s2s.jvp(lambda x: scipy_special.softmax(x), (x,), (x,))[0], wanted
    )
    np.testing.assert_array_equal(s2s.vmap(lambda x: scipy_special.softmax(x))(x[None])[0], wanted)
    slopes = np.diag(wanted) - np.outer(wanted, wanted)
    if np.all(np.isfinite(wanted)):
        np.testing.assert_allclose(
            s2s.jacrev(lambda x: scipy_special.softmax(x))(x), slopes, atol=1e-15
        )
        np.testing.assert_allclose(
            s2s.jacfwd(lambda x: scipy_special.softmax(x))(x), slopes, atol=1e-15
        )


def test_unknown_rank():
    f = traced([Unknown("s")], slope(FUNCTIONS[scipy_special.erf]))
    assert interpret(f, 0.0) == pytest.approx(2 / math.sqrt(math.pi))


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        scipy_special.exp1,
        scipy_special.gamma,
        scipy_special.erf,
        scipy_special.rgamma,
        scipy_special.dawsn,
    ],
)
def test_complex_numbers_in_native_code(function):
    """Native code calls SciPy for them: arrays, numbers, and derivatives, which are holomorphic."""
    z, h = np.array([0.3 + 0.2j, 1.1 - 0.4j, 0.8 + 1.3j]), 1e-6
    np.testing.assert_allclose(
        s2s.jit(lambda z: function(z) * 2.0)(z), function(z) * 2.0, rtol=1e-14
    )
    np.testing.assert_allclose(s2s.jit(lambda z: function(z[1]))(z), function(z[1]), rtol=1e-14)
    slope = (function(z[0] + h) - function(z[0] - h)) / (2 * h)
    np.testing.assert_allclose(
        s2s.jit(s2s.grad(lambda z: function(z), holomorphic=True))(z[0]), slope, rtol=1e-8
    )
    found = s2s.jit(s2s.grad(lambda z: np.sum(np.abs(function(z)) ** 2)))(z)
    np.testing.assert_allclose(
        found, 2 * np.conj(function(z)) * (function(z + h) - function(z - h)) / (2 * h), rtol=1e-7
    )


COMPLEX = [
    scipy_special.erfcx,
    scipy_special.dawsn,
    scipy_special.log_ndtr,
    scipy_special.rgamma,
    scipy_special.spence,
    scipy_special.expi,
]


@pytest.mark.parametrize("function", COMPLEX, ids=lambda function: function.__name__)
def test_slopes_of_complex_numbers(function):
    """Arrays, NumPy's numbers and Python's, on both sides of where the slopes of real ones are told
    apart.
    """
    z, h = (
        np.array([0.7 + 0.3j, -0.4 + 0.2j, 0.01 + 0.02j, 3 - 2j, 60 + 1j, 36 + 36j, -3 + 0.1j]),
        1e-6,
    )
    wanted = (function(z + h) - function(z - h)) / (2 * h)
    np.testing.assert_allclose(
        s2s.jvp(lambda z: function(z), (z,), (np.ones_like(z),))[1], wanted, rtol=1e-6
    )
    slope = s2s.grad(lambda z: function(z), holomorphic=True)
    np.testing.assert_allclose([slope(x) for x in z], wanted, rtol=1e-6)
    np.testing.assert_allclose([slope(complex(x)) for x in z], wanted, rtol=1e-6)


def test_dtypes_of_functions_of_an_order_are_scipys():
    x = np.array([0.7, 0.02, 0.3], np.float32)
    for f in (
        lambda x: scipy_special.gammainc(1.5, x),
        lambda x: scipy_special.hyp2f1(1.0, 0.5, 2.5, x),
        lambda x: scipy_special.expn(2, x),
        lambda x: scipy_special.expn(2.0, x),
        lambda x: scipy_special.jv(1.5, x),
        lambda x: scipy_special.betainc(2.0, 3, x),
    ):
        for at in (x, x[0]):
            wanted = f(at).dtype
            assert s2s.eval_shape(f, at).dtype == wanted
            assert [v.dtype for v in s2s.jvp(f, (at,), (np.ones_like(at),))] == [wanted] * 2
            assert s2s.grad(lambda x: np.sum(f(x)))(at).dtype == np.float32  # noqa: B023


def test_polygamma_of_complex_numbers_is_refused():
    assert np.isfinite(s2s.jvp(lambda z: scipy_special.gamma(z), (1.0 + 2j,), (1.0 + 0j,))[1])
    with pytest.raises(s2s.S2SError, match="polygamma of complex numbers, which the derivative "
                                           "of digamma is"):
        s2s.grad(lambda z: scipy_special.digamma(z), holomorphic=True)(1.0 + 2j)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "x",
    [
        [1e17, 1e17],
        [1e10, 1e10 + 1.0, 3.0],
        [1e308, 1e308, -1e308],
        [-np.inf, 0.0],
        [np.inf, 0.0],
        [-np.inf, -np.inf],
    ],
)
def test_log_softmax_beside_a_large_maximum(x):
    x = np.array(x)
    with np.errstate(all="ignore"):  # SciPy's own are warned of
        np.testing.assert_array_equal(
            s2s.vmap(lambda x: scipy_special.log_softmax(x))(x[None])[0],
            scipy_special.log_softmax(x),
        )
    if np.all(np.isfinite(x)):
        right = np.eye(len(x)) - scipy_special.softmax(x)
        for t in (s2s.jacfwd, s2s.jacrev):
            np.testing.assert_allclose(
                t(lambda x: scipy_special.log_softmax(x))(x), right, atol=1e-15
            )


def mpmath_slopes(f, x: float) -> tuple[float, float]:
    """The first and second derivative of a function of mpmath's, by differences of hundreds of
    digits.
    """
    mp = pytest.importorskip("mpmath")
    h = mp.mpf(10) ** -30 * min(1, abs(mp.mpf(x)) or 1)
    with mp.workdps(
        150 + 2 * int(-mp.log10(h)) + 2 * int(max(0, mp.log10(abs(x) / h) if x else 0))
    ):
        below, at, above = (f(mp.mpf(x) + k * h) for k in (-1, 0, 1))
        return float((above - below) / (2 * h)), float((above - 2 * at + below) / (h * h))


def of_mpmath(name: str):
    mp = pytest.importorskip("mpmath")
    return {
        "exprel": lambda x: mp.expm1(x) / x if x else mp.mpf(1),
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "dawsn": lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
        "log_ndtr": lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
        "i1": lambda x: mp.besseli(1, x),
        "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
        "j1": lambda x: mp.besselj(1, x),
        "spence": lambda x: mp.polylog(2, 1 - x),
        "ellipk": mp.ellipk,
        "ellipe": mp.ellipe,
        "ellipkm1": lambda x: mp.ellipk(1 - x),
        "rgamma": mp.rgamma,
        "log_expit": lambda x: -mp.log1p(mp.exp(-x)),
    }[name]


NEAR_ZERO = (-3.0, -0.11, -0.09, -1e-5, -1e-9, 1e-20, 1e-9, 0.05, 0.7)
AT_ENDS = {
    "exprel": (*NEAR_ZERO, 0.0, 40.0),
    "ellipk": (*NEAR_ZERO, 0.0, 1 - 1e-9),
    "ellipe": (*NEAR_ZERO, 0.0, 1 - 1e-9),
    "ellipkm1": (1e-9, 0.5, 0.95, 1 - 1e-9, 1 - 2.0**-53, 1.0),
    "spence": (1e-9, 0.5, 0.95, 1 - 1e-9, 1.0, 1 + 1e-9, 1.05, 30.0),
    "i1": (*NEAR_ZERO, 0.0, 20.0),
    "i1e": (*NEAR_ZERO, 20.0),
    "j1": (*NEAR_ZERO, 0.0),
    "erfcx": (-3.0, 0.0, 3.0, 49.0, 51.0, 800.0),
    "dawsn": (-800.0, -49.0, 0.0, 3.0, 51.0, 800.0),
    "log_ndtr": (-800.0, -80.0, -60.0, -3.0, 0.0, 3.0, 30.0),
    "rgamma": (-20.0, -3.0, -1.0, -1e-20, 0.0, 1e-20, 0.49, 0.51, 3.0, 100.0),
    "log_expit": (-300.0, -40.0, -1.0, 0.0, 1.0, 30.0),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", sorted(AT_ENDS))
def test_slopes_of_every_order_are_mpmaths(name):
    """Where they are quotients of nearly 0, and where what they are made of is 0, infinite or has
    lost its digits.
    """
    function, points = getattr(scipy_special, name), AT_ENDS[name]

    def f(x):
        return function(x)

    def slopes(x):
        return np.sum(s2s.grad(lambda x: np.sum(function(x)))(x))

    wanted = np.array([mpmath_slopes(of_mpmath(name), x) for x in points]).T
    first = s2s.grad(f)
    with np.errstate(all="ignore"):
        for found in (
            np.array([first(x) for x in points]),
            np.array([s2s.jvp(f, (x,), (1.0,))[1] for x in points]),
            s2s.grad(lambda x: np.sum(function(x)))(np.array(points)),
            s2s.vmap(first)(np.array(points)),
        ):
            np.testing.assert_allclose(found, wanted[0], rtol=1e-11, atol=1e-300)
        for found in (
            np.array([s2s.grad(first)(x) for x in points]),
            np.array([s2s.jvp(first, (x,), (1.0,))[1] for x in points]),
            s2s.grad(slopes)(np.array(points)),
        ):
            if name == "log_expit":  # where expit is 1 but for rounding, its slope is 0
                found, rest = found[1:], wanted[1][1:]
                np.testing.assert_allclose(found, rest, rtol=1e-9, atol=1e-16)
            else:
                np.testing.assert_allclose(
                    found, wanted[1], rtol=1e-8, atol=1e-13 if name in ("j1", "i1e") else 1e-300
                )


@pytest.mark.compile
@pytest.mark.parametrize("name", ["exprel", "log_ndtr", "rgamma", "log_expit"])
def test_such_slopes_in_native_code(name):
    function, points = getattr(scipy_special, name), AT_ENDS[name]
    wanted = [mpmath_slopes(of_mpmath(name), x)[0] for x in points]
    with np.errstate(all="ignore"):
        found = s2s.jit(s2s.grad(lambda x: np.sum(function(x))))(np.array(points))
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-300)


def test_log_ndtr_where_the_density_underflows():
    for x in (-1e5, -1e8, -1e100):
        slope = s2s.grad(lambda x: scipy_special.log_ndtr(x))
        assert slope(x) == pytest.approx(-x, rel=1e-9)
        assert s2s.grad(slope)(x) == pytest.approx(-1.0, rel=1e-9)


@pytest.mark.parametrize(
    "function, x", [(scipy_special.boxcox, 1e300), (scipy_special.boxcox1p, 1e300)]
)
def test_powers_that_overflow_do_not_raise(function, x):
    """SciPy's value is infinite, of a Python number as well."""
    with np.errstate(all="ignore"):
        assert s2s.value_and_grad(lambda b: function(x, b))(2.0)[0] == np.inf
        assert s2s.value_and_grad(lambda b: function(b, 2.0))(x)[0] == np.inf


@pytest.mark.parametrize("x", [1e-320, -1e-320, 5.562684646268003e-309, 5.56268464626801e-309])
def test_gamma_of_tiny_numbers_is_scipys(x):
    """math.gamma raises where SciPy's is infinite."""
    value, slope = s2s.value_and_grad(lambda x: scipy_special.gamma(x))(x)
    assert value == scipy_special.gamma(x) and slope == -np.inf


@pytest.mark.parametrize("x", [2.556347e305, 2.5564e305, 1.7e308])
def test_log_gamma_of_huge_numbers_is_scipys(x):
    value, slope = s2s.value_and_grad(lambda x: scipy_special.gammaln(x))(x)
    assert value == pytest.approx(scipy_special.gammaln(x), rel=1e-15)
    assert slope == pytest.approx(math.log(x))
