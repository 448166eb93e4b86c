"""Functions of one number in a lane of `vmap`: what computes a number there is not what computes
all lanes.
"""

import cmath
import inspect

import numpy as np
import pytest
import scipy.special as sp
from scipy import stats

import s2s
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Value
from s2s.ir.types import Array, Extent, Scalar
from s2s.ops.core.record import RECORDS

LANES = Extent("lanes", 0, False)
DTYPES = {
    **dict.fromkeys(
        ("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"), "int64"
    ),
    **{name: "complex128" for name in RECORDS if name.startswith("cmath.")},
}
ATTRS = {
    "astype": {"dtype": "int64"},
    "convert": {"dtype": "float64"},
    "polygamma_of_number": {"order": 2},
}


def attributes(record):
    """Values for the attributes that the op's derivative names: the orders of Bessel functions and
    their kind.
    """
    named = [p.name for partial in record.partials if callable(partial)
             for p in inspect.signature(partial).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return ATTRS.get(record.name, dict.fromkeys(named, 2))


@pytest.mark.parametrize(
    "name",
    sorted(name for name, record in RECORDS.items() if record.elementwise and record.partials),
)
def test_every_elementwise_op_is_one_of_all_lanes(name):
    """Its rule gives an element for each lane, or is None: then it runs lane by lane."""
    record, dtype = RECORDS[name], DTYPES.get(name, "float64")
    lanes = [Value(Array(dtype, (LANES,)), "x") for _ in record.partials]
    if name in ("round", "round_decimal"):
        lanes[1] = Value(Scalar("int64"), "n")
    if name == "ldexp":
        lanes[1] = Value(Array("int64", (LANES,)), "n")
    with Builder(Block()):
        y = (record.batch or record)(*lanes, **attributes(record))
    assert y is None or isinstance(y.type, Array) and y.type.dims == (LANES,)


X, Y = np.array([0.3, 0.6, 0.9]), np.array([1.7, 0.4, 2.3])


def logistic_loss(x, y):
    p = sp.expit(2 * x - y)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


def branch(x, y):
    return sp.digamma(x + 1) * y if x < 0.5 else sp.expit(y) * x


OF_NUMBERS = {
    "expit": lambda x, y: sp.expit(x) * y,
    "digamma": lambda x, y: sp.digamma(x) + sp.psi(y),
    "polygamma": lambda x, y: sp.polygamma(2, x) * y,
    "gamma": lambda x, y: sp.gamma(x) / sp.gamma(y),
    "gammaln": lambda x, y: sp.gammaln(x * y),
    "beta": lambda x, y: sp.beta(x, y) + sp.betaln(y, x),
    "multigammaln": lambda x, y: sp.multigammaln(x + 3, 2) * y,
    "log_expit": lambda x, y: sp.log_expit(x - y) + sp.logit(x),
    "beta.logpdf": lambda x, y: stats.beta.logpdf(0.3, x, y),
    "gamma.logpdf": lambda x, y: stats.gamma.logpdf(x, y),
    "t.logpdf": lambda x, y: stats.t.logpdf(x, y),
    "poisson.logpmf": lambda x, y: stats.poisson.logpmf(3, x * y),
    "logistic_loss": logistic_loss,
    "branch": branch,
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_special_functions_of_numbers_in_lanes(name):
    """vmap, its derivatives and the derivative's vmap against Python's loop over numbers and its
    differences.
    """
    f, h = OF_NUMBERS[name], 1e-6
    np.testing.assert_allclose(s2s.vmap(f)(X, Y), [f(x, y) for x, y in zip(X, Y)], rtol=1e-12)
    dx = np.array([(f(x + h, y) - f(x - h, y)) / (2 * h) for x, y in zip(X, Y)])
    dy = np.array([(f(x, y + h) - f(x, y - h)) / (2 * h) for x, y in zip(X, Y)])
    for found in (
        s2s.vmap(s2s.grad(f, argnums=(0, 1)))(X, Y),
        s2s.grad(lambda x, y: np.sum(s2s.vmap(f)(x, y)), argnums=(0, 1))(X, Y),
    ):
        np.testing.assert_allclose(found, (dx, dy), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        s2s.jvp(s2s.vmap(f), (X, Y), (Y, X))[1], dx * Y + dy * X, rtol=1e-6, atol=1e-7
    )
    first = s2s.grad(f)
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(first))(X, Y),
        [(first(x + h, y) - first(x - h, y)) / (2 * h) for x, y in zip(X, Y)],
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("name", ["expit", "polygamma", "beta.logpdf"])
def test_special_functions_of_numbers_in_lanes_compiled(name):
    f, h = OF_NUMBERS[name], 1e-6
    found = s2s.jit(s2s.vmap(s2s.grad(f)))(X, Y)
    np.testing.assert_allclose(
        found, [(f(x + h, y) - f(x - h, y)) / (2 * h) for x, y in zip(X, Y)], rtol=1e-6
    )


def test_other_functions_of_numbers_in_lanes():
    """Those of cmath, Python's round, and NumPy's reductions of one number."""
    x = np.array([0.5, 1.5, 2.675, -0.3])
    for f in (
        lambda x: cmath.exp(1j * x),
        lambda x: cmath.sqrt(x),
        lambda x: cmath.log(x + 1j),
        lambda x: cmath.phase(x + 2j),
        lambda x: cmath.isnan(x),
        lambda x: round(x),
        lambda x: round(x, 2),
        lambda x: np.any(x),
        lambda x: np.all(x - 0.5),
        lambda x: np.count_nonzero(x),
        lambda x: np.sum(x > 1),
        lambda x: np.prod(x),
    ):
        found, expected = s2s.vmap(f)(x), np.array([f(number) for number in x])
        np.testing.assert_allclose(found, expected, rtol=1e-15)
        assert found.dtype == expected.dtype
    dx = s2s.grad(lambda x: np.sum(np.real(s2s.vmap(lambda x: cmath.exp(2j * x))(x))))(x)
    np.testing.assert_allclose(dx, -2 * np.sin(2 * x), rtol=1e-14)
