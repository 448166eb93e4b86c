"""Second derivatives where a size is 0: right where they exist, NaN where they do not, never a
convention's 0.
"""

from __future__ import annotations

import cmath
import math

import mpmath
import numpy as np
import pytest

import s2s

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
I2, A = np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
# three of the four bins of its transform are empty
Z2, BIN = np.zeros(2), np.array([1.0, -1.0, 1.0, -1.0])


def helper(v):
    return np.linalg.norm(v)


def twice(r):
    return r * r


def squares_in_a_loop(x):
    total = 0.0
    for i in range(2):
        r = np.hypot(x[2 * i], x[2 * i + 1])
        total += r**2 * (1 + i)
    return total


def by_rows(x):
    return np.sum(np.linalg.norm(np.reshape(x, (2, 2)), axis=1) ** 2)


def rows_by_index(x):
    r = np.linalg.norm(np.reshape(x, (2, 2)), axis=1)
    return r[0] ** 2 + 3 * r[1] * r[1]


SQUARES = {  # f, where a size is 0, its second derivatives there
    "norm(x - 1) ** 2": (lambda x: np.linalg.norm(x - 1) ** 2, np.ones(2), 2 * I2),
    "norm * norm": (lambda x: np.linalg.norm(x) * np.linalg.norm(x), Z2, 2 * I2),
    "r * c * r": (lambda x: (r := helper(x)) * 3.0 * r, Z2, 6 * I2),
    "in a helper": (lambda x: twice(helper(x)), Z2, 2 * I2),
    "norm ** 4": (lambda x: np.linalg.norm(x) ** 4, Z2, 0 * I2),
    "np.square(norm)": (lambda x: np.square(np.linalg.norm(x)), Z2, 2 * I2),
    "np.power(norm, 2.0)": (lambda x: np.power(np.linalg.norm(x), 2.0), Z2, 2 * I2),
    "pow": (lambda x: pow(np.linalg.norm(x), 2), Z2, 2 * I2),
    "(norm / 2) ** 2": (lambda x: (np.linalg.norm(x) / 2) ** 2, Z2, I2 / 2),
    "(-norm) ** 2": (lambda x: (-np.linalg.norm(x)) ** 2, Z2, 2 * I2),
    "1 / (1 + norm ** 2)": (lambda x: 1 / (1 + np.linalg.norm(x) ** 2), Z2, -2 * I2),
    "frobenius": (lambda x: np.linalg.norm(np.outer(x, [1.0, 2.0]), "fro") ** 2, Z2, 10 * I2),
    "rows": (by_rows, np.array([0.0, 0.0, 1.0, 2.0]), 2 * np.eye(4)),
    "rows, by index": (rows_by_index, np.zeros(4), np.diag([2.0, 2.0, 6.0, 6.0])),
    "np.array of norms": (
        lambda x: np.sum(np.array([helper(x), 2 * helper(x - 1)]) ** 2),
        Z2,
        10 * I2,
    ),
    "abs ** 2": (lambda x: np.sum(abs(x) ** 2), np.array([0.0, 2.0]), 2 * I2),
    "np.roll of abs ** 2": (
        lambda x: np.sum(np.roll(np.abs(x), 1) ** 2),
        np.array([0.0, 2.0]),
        2 * I2,
    ),
    "np.tile of abs ** 2": (
        lambda x: np.sum(np.tile(np.abs(x), 2) ** 2),
        np.array([0.0, 2.0]),
        4 * I2,
    ),
    "np.repeat of abs ** 2": (
        lambda x: np.sum(np.repeat(np.abs(x), 3) ** 2),
        np.array([0.0, 2.0]),
        6 * I2,
    ),
    "np.tril of hypot ** 2": (lambda x: np.sum(np.tril(np.hypot(x[:, None], x)) ** 2), Z2, 6 * I2),
    "abs @ abs": (lambda x: np.abs(x) @ np.abs(x), np.array([0.0, 2.0]), 2 * I2),
    "np.vdot of abs": (lambda x: np.vdot(np.abs(x), np.abs(x)), np.array([0.0, 2.0]), 2 * I2),
    "mean of abs ** 2": (lambda x: np.mean(np.abs(A @ x) ** 2), Z2, 2 / 3 * A.T @ A),
    "np.einsum of abs": (
        lambda x: np.einsum("i,i->", np.abs(x), np.abs(x)),
        np.array([0.0, 2.0]),
        2 * I2,
    ),
    "hypot ** 2": (lambda x: np.hypot(x[0], 2 * x[1]) ** 2, Z2, np.diag([2.0, 8.0])),
    "hypot in a loop": (squares_in_a_loop, np.zeros(4), np.diag([2.0, 2.0, 4.0, 4.0])),
    "math.hypot ** 2": (lambda x: math.hypot(x[0], x[1], x[0]) ** 2, Z2, np.diag([4.0, 2.0])),
    "an empty bin": (lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2), BIN, 8 * np.eye(4)),
    "abs(z) ** 2": (lambda x: abs(x[0] + 2j * x[1]) ** 2, Z2, np.diag([2.0, 8.0])),
    "std ** 2": (lambda x: np.std(x) ** 2, np.full(3, 2.0), 2 / 3 * (np.eye(3) - 1 / 3)),
    "std of some ** 2": (
        lambda x: np.std(x, where=np.array([True, True, False]), ddof=1) ** 2,
        np.full(3, 2.0),
        np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
    ),
    "nanstd ** 2": (lambda x: np.nanstd(x) ** 2, np.full(3, 2.0), 2 / 3 * (np.eye(3) - 1 / 3)),
    "exp(-norm ** 2)": (lambda x: np.exp(-(np.linalg.norm(x) ** 2)), Z2, -2 * I2),
    "ridge": (
        lambda w: np.sum((A @ w - 1) ** 2) + 0.5 * np.linalg.norm(w) ** 2,
        Z2,
        2 * A.T @ A + I2,
    ),
    "sqrt ** 2": (lambda x: np.sqrt(np.sum(x**2)) ** 2, Z2, 2 * I2),
    "(x ** 0.5) ** 2": (lambda x: np.sum(((x * x) ** 0.5) ** 2), Z2, 2 * I2),
    "norm of order 4": (lambda x: np.linalg.norm(x, 4) ** 4, np.array([0.0, 0.0]), 0 * I2),
    "norms of rows": (
        lambda x: np.sum(np.linalg.norm(x[:, None] * [1.0, 2.0], 4, axis=1) ** 8),
        Z2,
        0 * I2,
    ),
    "cube of a cube root": (lambda x: np.sum(np.cbrt(x) ** 3 * x), Z2, 2 * I2),
}
EVEN = {
    "cos(norm)": (lambda x: np.cos(np.linalg.norm(x)), Z2, -I2),
    "cos(abs)": (
        lambda x: np.sum(np.cos(abs(x))),
        np.array([0.0, 1.0]),
        np.diag([-1.0, -np.cos(1)]),
    ),
    "sinc(norm)": (lambda x: np.sinc(np.linalg.norm(x) / np.pi), np.zeros(3), -np.eye(3) / 3),
    "cosh(hypot)": (lambda x: np.cosh(np.hypot(x[0], x[1])), Z2, I2),
    "norm ** 3": (lambda x: np.linalg.norm(x) ** 3, Z2, 0 * I2),
    "norm of order 3": (
        lambda x: np.linalg.norm(x, 3.0) ** 3,
        np.array([0.0, 2.0]),
        np.diag([0.0, 12.0]),
    ),
    "cos(abs(z))": (lambda x: np.cos(abs(x[0] + 2j * x[1])), Z2, -np.diag([1.0, 4.0])),
    "cos(std)": (lambda x: np.cos(np.std(x)), np.full(3, 2.0), -(np.eye(3) - 1 / 3) / 3),
    "an angle in a loop": (
        lambda x: sum(np.cosh(np.linalg.norm(x[2 * i : 2 * i + 2])) for i in range(2)),
        np.zeros(4),
        np.eye(4),
    ),
    "sqrt(1 + r * r)": (lambda x: math.sqrt(1 + math.hypot(x[0], x[1]) ** 2), Z2, I2),
}
KINKS = {
    "norm": lambda x: np.linalg.norm(x),
    "hypot": lambda x: np.hypot(x[0], x[1]),
    "std": lambda x: np.std(x),
    "exp(-norm)": lambda x: np.exp(-np.linalg.norm(x)),
    "norm + norm ** 2": lambda x: np.linalg.norm(x) + np.linalg.norm(x) ** 2,
}


def orders(f):
    return {
        "hessian": s2s.hessian(f),
        "rev over rev": s2s.jacrev(s2s.jacrev(f)),
        "fwd over fwd": s2s.jacfwd(s2s.jacfwd(f)),
        "rev over fwd": s2s.jacrev(s2s.jacfwd(f)),
        "hvp": lambda x: np.array([s2s.hvp(f, (x,), (d,)) for d in np.eye(len(x))]),
    }


@pytest.mark.lengthy
@pytest.mark.parametrize("name", SQUARES)
def test_square_of_a_root_in_every_order(name):
    f, x, right = SQUARES[name]
    for order, second in orders(f).items():
        np.testing.assert_allclose(second(x), right, rtol=1e-12, atol=1e-12, err_msg=order)
    moved = x + np.linspace(0.3, 0.7, len(x))  # the value is what the program computes, bit for bit
    assert s2s.value_and_grad(f)(moved)[0] == f(moved)


@pytest.mark.parametrize("name", EVEN)
def test_even_function_of_a_size(name):
    f, x, right = EVEN[name]
    seconds = orders(f)
    for order in ("hessian", "hvp"):
        np.testing.assert_allclose(
            seconds.pop(order)(x), right, rtol=1e-12, atol=1e-12, err_msg=order
        )
    for order, second in seconds.items():
        found = second(x)
        is_there = ~np.isnan(found)
        np.testing.assert_allclose(
            found[is_there], right[is_there], rtol=1e-12, atol=1e-12, err_msg=order
        )


@pytest.mark.parametrize("name", KINKS)
def test_no_second_derivative_at_a_kink(name):
    f, x = KINKS[name], np.zeros(2)
    np.testing.assert_array_equal(s2s.grad(f)(x), 0.0)
    np.testing.assert_array_equal(s2s.jvp(f, (x,), (np.ones(2),))[1], 0.0)
    for order, second in orders(f).items():
        assert np.isnan(np.diag(second(x))).all(), order


def test_a_slope_that_changes_has_no_second_derivative_where_abs_is_0():
    x = np.array([0.0, 1.0])
    # on both sides
    np.testing.assert_array_equal(s2s.hessian(lambda x: np.sum(np.abs(x)) + x @ x)(x), 2 * I2)
    for f in (
        lambda x: np.sum(np.abs(x)) ** 2,
        lambda x: np.abs(x[0]) * x[1],
        lambda x: np.exp(-np.abs(x[0])) + x[1],
    ):
        assert np.isnan(s2s.hessian(f)(x)[0, 0])
        np.testing.assert_array_equal(s2s.grad(f)(x)[0], 0.0)


def test_roots_of_negative_numbers_stay_nan():
    assert np.isnan(s2s.grad(lambda x: np.sqrt(x) ** 2)(-1.0))
    assert np.isnan(s2s.jvp(lambda x: np.sqrt(x) * np.sqrt(x), (np.float64(-1.0),), (1.0,))[1])
    assert s2s.grad(lambda x: np.sqrt(x) ** 2)(0.0) == 1.0
    if hasattr(math, "cbrt"):  # of Python 3.11
        assert s2s.grad(lambda x: math.cbrt(x) ** 3)(0.0) == 1.0
    assert s2s.grad(lambda x: cmath.sqrt(x * x).real ** 2)(2.0) == 4.0


@pytest.mark.lengthy
def test_what_is_discarded_or_asks_nothing_does_not_poison():
    x = np.array([0.0, 0.0, 1.0, 2.0, 3.0, 5.0])

    def pairs(x):
        p = np.reshape(x, (3, 2))
        return np.linalg.norm(p[:, None] - p[None], axis=-1)

    def kernel(x):
        return np.sum(np.exp(-pairs(x)))

    def upper(x):
        return np.sum(1 / pairs(x)[np.triu_indices(3, 1)])

    def masked(x):
        r = np.linalg.norm(np.reshape(x, (3, 2)), axis=1)
        return np.sum(np.where(r > 0, np.log(np.where(r > 0, r, 1.0)), 0.0))

    for f in (kernel, upper, masked):
        h = 1e-5
        right = np.array(
            [(s2s.grad(f)(x + h * d) - s2s.grad(f)(x - h * d)) / (2 * h) for d in np.eye(6)]
        )
        if f is masked:
            right[:2] = right[:, :2] = 0.0  # where the mask does not choose
        found = s2s.hessian(f)(x)
        np.testing.assert_allclose(found, right, rtol=1e-6, atol=1e-6)


@pytest.mark.lengthy
def test_single_precision_and_lanes():
    f = lambda x: np.cos(np.linalg.norm(x)) + np.linalg.norm(x - 1) ** 2  # noqa: E731
    found = s2s.hessian(f)(np.zeros(2, np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, I2, atol=1e-6)
    xs = np.array([[0.0, 0.0], [1.0, 1.0], [0.3, 0.4]])
    for second in (
        s2s.hessian(f),
        lambda x: s2s.jvp(s2s.grad(f), (x,), (np.array([1.0, 2.0]),))[1],
    ):
        np.testing.assert_allclose(s2s.vmap(second)(xs), [second(x) for x in xs], rtol=1e-12)
    g = lambda x: np.sum(np.linalg.norm(x, axis=0) ** 2) + np.std(x, axis=1)[0] ** 2  # noqa: E731
    stack = np.stack([np.zeros((2, 3)), np.arange(6.0).reshape(2, 3)])
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(g))(stack), [s2s.grad(g)(x) for x in stack], rtol=1e-12
    )
    np.testing.assert_allclose(
        s2s.vmap(s2s.hessian(g))(stack), [s2s.hessian(g)(x) for x in stack], rtol=1e-12
    )


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["an empty bin", "rows", "cos(norm)", "cos(abs)", "cos(std)", "hypot in a loop"]
)
def test_compiled(name):
    f, x, right = {**SQUARES, **EVEN}[name]
    np.testing.assert_allclose(s2s.jit(s2s.hessian(f))(x), right, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(x + 0.5), s2s.grad(f)(x + 0.5), rtol=1e-12)


@pytest.mark.compile
def test_compiled_kink():
    f = lambda x: np.linalg.norm(x) + np.hypot(x[0], x[1])  # noqa: E731
    assert np.isnan(np.diag(s2s.jit(s2s.hessian(f))(Z2))).all()
    np.testing.assert_array_equal(s2s.jit(s2s.value_and_grad(f))(Z2)[1], 0.0)


# squares of quotients by a root, of an integer, of a number, of an array of integers
ROOTS_OF_NUMBERS = {
    "by sqrt(2)": (lambda x: (x / math.sqrt(2)) * (x / math.sqrt(2)), lambda x: x),
    "exp": (
        lambda x: math.exp(-(x / math.sqrt(2)) * (x / math.sqrt(2))),
        lambda x: -x * math.exp(-x * x / 2),
    ),
    "erf": (
        lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))),
        lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    ),
    "by np.sqrt": (
        lambda x: np.sum((x / np.sqrt(np.array([2, 3]))) * (x / np.sqrt(np.array([2, 3])))),
        lambda x: 5 * x / 3,
    ),
    "one over": (lambda x: x * (1 / math.sqrt(3)) * (1 / math.sqrt(3)), lambda x: 1 / 3),
    "under the root": (lambda x: (2 / math.sqrt(x)) * (2 / math.sqrt(x)), lambda x: -4 / x**2),
}


@pytest.mark.parametrize("case", ROOTS_OF_NUMBERS.values(), ids=ROOTS_OF_NUMBERS)
def test_quotients_by_roots(case):
    f, slope = case
    x, h = 0.3, 1e-6
    curvature = (slope(x + h) - slope(x - h)) / (2 * h)
    assert math.isclose(s2s.grad(f)(x), slope(x), rel_tol=1e-13)
    for second in (s2s.grad(s2s.grad(f)), s2s.hessian(f), s2s.jacfwd(s2s.jacfwd(f))):
        assert math.isclose(second(x), curvature, rel_tol=1e-7, abs_tol=1e-9)


@pytest.mark.lengthy
@pytest.mark.parametrize("axis", [0, -1, (0, 1)])
@pytest.mark.parametrize("outer", [s2s.jacfwd, s2s.jacrev])
@pytest.mark.parametrize("inner", [s2s.jacfwd, s2s.jacrev])
def test_second_derivatives_of_sizes_along_axes(outer, inner, axis):
    def cubes(x):
        return np.sum(np.linalg.norm(np.reshape(x, (3, 2)), axis=axis) ** 3)

    x = A.ravel()
    together = np.arange(6).reshape(3, 2)
    sets = [[together.ravel()], together.T, together][
        0 if axis == (0, 1) else 1 if axis == 0 else 2
    ]
    right = np.zeros((6, 6))
    for own in sets:
        r = np.linalg.norm(x[own])
        right[np.ix_(own, own)] = 3 * r * np.eye(len(own)) + 3 * np.outer(x[own], x[own]) / r
    np.testing.assert_allclose(outer(inner(cubes))(x), right, rtol=1e-12)


def slopes_of_norm(x, p):
    """The gradient of the p-norm, in numbers of 60 digits that neither overflow nor underflow."""
    with mpmath.workdps(60):
        x = [mpmath.mpf(float(v)) for v in x]
        size = sum(abs(v) ** p for v in x) ** (1 / mpmath.mpf(p))
        return [float(mpmath.sign(v) * (abs(v) / size) ** (p - 1)) if size else 0.0 for v in x]


ORDERS = [3, 1.5, 2.5, 4, 1.25]
POINTS = [
    np.zeros(3),
    np.array([0.0, 1.0, -2.0]),
    np.array([0.5, -1.0, 2.0]),
    np.array([1e60, 0.0, -2e60]),
    np.array([1e-60, 3e-60, 0.0]),
]


@pytest.mark.parametrize("p", ORDERS)
def test_norms_of_other_orders(p):
    def f(x):
        return np.linalg.norm(x, p)

    for x in POINTS:
        wanted = slopes_of_norm(x, p)
        for found in (s2s.grad(f)(x), s2s.jacfwd(f)(x), s2s.vmap(s2s.grad(f))(np.stack([x, x]))[1]):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    x = POINTS[2]
    for second in (s2s.hessian(f), s2s.jacrev(s2s.grad(f)), s2s.jacfwd(s2s.jacfwd(f))):
        h = 1e-6
        wanted = [
            (np.array(slopes_of_norm(x + d, p)) - slopes_of_norm(x - d, p)) / (2 * h)
            for d in h * np.eye(3)
        ]
        np.testing.assert_allclose(second(x), wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.lengthy
@pytest.mark.parametrize("p", [3, 1.5])
def test_norms_of_other_orders_along_an_axis_and_of_complex_numbers(p):
    M = np.array([[0.0, 1.0, -2.0], [0.0, 3.0, 0.5]])
    wanted = np.stack([slopes_of_norm(c, p) for c in M.T], axis=1)
    for f in (
        lambda M: np.sum(np.linalg.norm(M, p, axis=0)),
        lambda M: np.sum(np.linalg.norm(M.T, p, axis=1, keepdims=True)),
    ):
        np.testing.assert_allclose(s2s.grad(f)(M), wanted, rtol=1e-13)
        np.testing.assert_allclose(s2s.jacfwd(f)(M), wanted, rtol=1e-13)
    z = M[0] + 1j * M[1]
    size = np.linalg.norm(z, p)
    found = s2s.grad(lambda x, y: np.linalg.norm(x + 1j * y, p), (0, 1))(M[0], M[1])
    with np.errstate(invalid="ignore"):
        slope = np.where(z == 0, 0, z / np.abs(z) * (np.abs(z) / size) ** (p - 1))
    np.testing.assert_allclose(found, [slope.real, slope.imag], rtol=1e-13)


@pytest.mark.parametrize("p", [3, 1.5])
def test_second_derivatives_of_norms_of_other_orders_at_0_are_nan(p):
    found = s2s.hessian(lambda x: np.linalg.norm(x, p))(np.zeros(2))
    assert np.isnan(np.diag(found)).all()
    assert np.isnan(s2s.jacrev(s2s.grad(lambda x: np.linalg.norm(x, p)))(np.zeros(2))).all()


@pytest.mark.compile
def test_norms_of_other_orders_compiled():
    for x in POINTS:
        np.testing.assert_allclose(
            s2s.jit(s2s.grad(lambda x: np.linalg.norm(x, 3)))(x), slopes_of_norm(x, 3), rtol=1e-12
        )


def test_sparse_derivatives_of_norms_of_other_orders():
    x = np.arange(6.0).reshape(3, 2) + 1
    found = s2s.jacobian(lambda x: np.linalg.norm(np.reshape(x, (3, 2)), 3, axis=1), sparse=True)(
        x.ravel()
    ).toarray()
    for k in range(3):
        np.testing.assert_allclose(found[k, 2 * k: 2 * k + 2], slopes_of_norm(x[k], 3), rtol=1e-13)
    assert np.count_nonzero(found) == 6
