"""What a program throws away has no influence, in whatever way: the oracle never computes it (Note
[Strong zeros], ops/core/chain_rule.py).
"""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest
from scipy import special
from scipy.spatial.distance import cdist

import s2s
from s2s.ir.builder import Builder, emit
from s2s.ir.graph import Block, Function, Value, walk
from s2s.ir.interpret import interpret
from s2s.ir.types import Array
from s2s.ir.verify import verify
from s2s.ops.core.record import RECORDS
from s2s.passes import recorded
from s2s.transform.cleanup.strong_products import lower_strong_products

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
LINE = np.array([0.3, -1.2, 2.0, 0.9])
PLANE = np.array([[0.3, 1.0], [2.0, -1.0], [0.1, 0.2]])
ZERO = np.array([0.0, 2.0, 3.0])
PROGRAMS = {}


def distances(x):
    return np.sqrt((x[:, None] - x) ** 2)


def of_pairs(g, times=1.0):
    """The sum of g(distance) over pairs of points, of which each is one."""
    def reference(x):
        pairs = [(i, j) for i in range(len(x)) for j in range(i)]
        return sum(times * g(np.sum((x[i] - x[j]) ** 2) ** 0.5) for i, j in pairs)
    return reference


def rest(g):
    """The sum of g over all but the first."""
    return lambda x: np.sum(g(x[1:]))


def program(reference, x=LINE):
    def add(f):
        PROGRAMS[f.__name__] = f, reference, x
        return f
    return add


# ---------------------------------------------------------------------------------- structural ways


@program(of_pairs(lambda d: d))
def upper_triangle(x):
    return np.sum(np.triu(distances(x), 1))


@program(of_pairs(lambda d: 1 / d))
def indices_of_a_triangle(x):
    return np.sum(1 / distances(x)[np.triu_indices(len(x), 1)])


@program(of_pairs(lambda d: d**2 + d, 2.0))
def written_over_by_indices(x):
    w = distances(x)
    n = len(x)
    w[np.arange(n), np.arange(n)] = 0
    return np.sum(w**2 + w)


@program(of_pairs(lambda d: 1 / d, 2.0))
def diagonal_filled(x):
    w = 1 / distances(x)
    np.fill_diagonal(w, 0)
    return np.sum(w)


@program(of_pairs(lambda d: 1 / d))
def masked_write_and_a_triangle(x):
    r = distances(x)
    r[r > 0] = 1 / r[r > 0]
    return np.sum(np.triu(r, 1))


@program(of_pairs(lambda d: 1 / d, 2.0))
def masked_write_and_zeros_that_count(x):
    r = distances(x)
    r[r > 0] = 1 / r[r > 0]
    return np.sum(r)


@program(of_pairs(lambda d: 1 / d, 2.0), PLANE)
def masked_write_of_norms(x):
    z = x[:, None] - x
    r = np.sqrt(np.sum(z * z, axis=-1))
    r[r > 0] = 1 / r[r > 0]
    return np.sum(r)


@program(of_pairs(lambda d: 1 / d))
def triangle_and_a_mask(x):
    t = np.triu(distances(x))
    return (1 / t[t > 1e-6]).sum()


@program(of_pairs(lambda d: 1 / d))
def elements_in_loops(x):
    d, s = distances(x), 0.0
    for i in range(len(x)):
        for j in range(i):
            s += 1 / d[i, j]
    return s


@program(of_pairs(lambda d: d**2 + 1 / d))
def filled_by_loops(x):
    n = len(x)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            d[i, j] = np.sqrt((x[i] - x[j]) ** 2)
    return np.sum(np.triu(d, 1) ** 2) + np.sum(1 / d[np.triu_indices(n, 1)])


@program(of_pairs(lambda d: d, 2.0))
def zeros_written_in_a_loop(x):
    d = distances(x)
    for i in range(len(x)):
        d[i, i] = 0.0
    return np.sum(d)


@program(of_pairs(lambda d: 1 / d), PLANE)
def distances_of_scipy(x):
    return np.sum(1 / cdist(x, x)[np.triu_indices(len(x), 1)])


@program(of_pairs(lambda d: 4 * (d**-12.0 - d**-6.0)), PLANE)
def potential_with_poles(x):
    z = x[:, None] - x
    i6 = (1.0 / np.sum(z * z, axis=-1)) ** 3
    e = 4 * (i6 * i6 - i6)
    np.fill_diagonal(e, 0.0)
    return 0.5 * np.sum(e)


@program(of_pairs(lambda d: d, 2.0))
def mask_as_a_factor(x):
    return np.sum(distances(x) * (1.0 - np.eye(len(x))))


@program(of_pairs(lambda d: d, 2.0))
def comparison_as_a_factor(x):
    d = distances(x)
    return np.sum(d * (d > 0))


@program(of_pairs(lambda d: d, 2.0))
def mask_read_in_loops(x):
    d, m, s = distances(x), 1.0 - np.eye(len(x)), 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            s += m[i, j] * d[i, j]
    return s


@program(of_pairs(lambda d: 1 / d, 2.0))
def reshaped_around_the_diagonal(x):
    n = len(x)
    return np.sum(1 / distances(x).ravel()[1:].reshape(n - 1, n + 1)[:, :-1])


@program(of_pairs(lambda d: d**2))
def rows_in_a_list(x):
    return np.sum(np.tril(np.array([np.sqrt((x - x[i]) ** 2) for i in range(len(x))]), -1) ** 2)


@program(of_pairs(lambda d: 1 / d))
def lists_of_lists(x):
    n = len(x)
    r = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            r[i][j] = np.sqrt((x[i] - x[j]) ** 2)
    s = 0.0
    for i in range(n):
        for j in range(i):
            s += 1.0 / r[i][j]
    return s


def filled(x, n):
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            t = x[i] - x[j]
            w = np.sqrt(t * t)
            if i > 10:
                w = w * 2.0
            d[i, j] = w
    for k in range(3):
        if k > 5:
            d = d * 2.0
    return d


@program(of_pairs(lambda d: d**3))
def a_function_that_is_called(x):
    return np.sum(np.triu(filled(x, len(x)), 1) ** 3)


@program(of_pairs(lambda d: 1 / d, 2.0))
def self_interaction_is_infinitely_far(x):
    r = distances(x)
    np.fill_diagonal(r, np.inf)
    return np.sum(1 / r)


# ---------------------------------------------------------------------- functions with steep slopes


@program(rest(np.sqrt), ZERO)
def slice_of_roots(x):
    return np.sum(np.sqrt(x)[1:])


@program(rest(lambda x: 0.5 * np.log(x)), ZERO)
def slice_of_logs_of_roots(x):
    return np.sum(np.log(np.sqrt(x))[1:])


@program(rest(np.sqrt), ZERO)
def sorted_away(x):
    return np.sum(np.sort(np.sqrt(x))[1:])


@program(lambda x: np.sqrt(x[2]), ZERO)
def losers_of_a_loop(x):
    m = 0.0
    for v in np.sqrt(x):
        m = max(m, v)
    return m


@program(rest(np.sqrt), ZERO)
def deleted(x):
    return np.sum(np.delete(np.sqrt(x), 0))


@program(lambda x: np.sqrt(x[1]) + 2 * np.sqrt(x[2]), ZERO)
def repeated_zero_times(x):
    return np.sum(np.repeat(np.sqrt(x), [0, 1, 2]))


@program(lambda x: np.sqrt(x[1]) * x[1] ** 2, ZERO)
def rows_repeated_zero_times(x):
    counts = (np.arange(3) == 1).astype(int)
    return np.sum(np.repeat(np.sqrt(x)[:, None] * x ** 2, counts, axis=0)[:, 1])


@program(lambda x: np.sqrt(x[1]) * np.sqrt(x[2]), ZERO)
def appended(x):
    roots = []
    for v in x:
        roots.append(math.sqrt(v))
    return roots[1] * roots[2]


@program(rest(lambda x: x**0.25), ZERO)
def power_below_one(x):
    return np.sum((x**0.25)[1:])


@program(lambda x: np.sum(x[1:] ** x[1]), np.array([0.0, 0.5, 3.0]))
def power_that_varies(x):
    return np.sum((x ** x[1])[1:])


@program(rest(lambda x: np.arccos(x) + np.arcsin(x) ** 2), np.array([1.0, 0.2, 0.3]))
def angles(x):
    return np.sum((np.arccos(x) + np.arcsin(x) ** 2)[1:])


@program(rest(np.arccosh), np.array([1.0, 2.2, 1.3]))
def hyperbolic_angles(x):
    return np.sum(np.arccosh(x)[1:])


@program(rest(special.loggamma), ZERO)
def poles_of_gammaln(x):
    return np.sum(special.gammaln(x)[1:])


@program(lambda x: np.sum(x[1:] ** 1.5) + np.sum(x**3), ZERO)
def joined_with_others(x):
    return np.sum(np.concatenate([np.sqrt(x), x])[1:] ** 3)


@program(lambda x: np.sum(x[1:] ** 1.5), ZERO)
def table_of_which_some_is_read(x):
    d = np.sqrt(x)
    out = np.zeros(3)
    for i in range(3):
        out[i] += d[i] ** 3
    return np.sum(out[1:])


def recursive(x, k):
    if k == 0:
        return np.sqrt(x)
    return recursive(x, k - 1) * 1.5


@program(rest(lambda x: 2.25 * np.sqrt(x)), ZERO)
def recursion(x):
    return np.sum(recursive(x, 2)[1:])


@program(rest(lambda x: 2 * np.sqrt(x)), ZERO)
def checkpointed(x):
    return np.sum(s2s.checkpoint(lambda x: np.sqrt(x) * 2.0)(x)[1:])


# ---------------------------------------------------------- quotients that branches and loops leave


DIVISORS = np.array([0.0, 1.0, 2.0])


@program(lambda x: x[1], ZERO)
def inverse_that_a_branch_leaves(x):
    c = 1 / x[0]
    return c if c < 0.5 else x[1]


@program(lambda x: x[1], np.array([1.0, 0.7, 0.9]))
def quotient_that_a_branch_leaves(x):
    c = x[0] / DIVISORS[0]
    d = c * c + 3 * c
    if d < 0.5:
        return d
    return x[1]


@program(rest(lambda x: 1 / x + x), ZERO)
def inverses_that_a_loop_passes_over(x):
    s, k = 0.0, -1
    while k < len(x) - 1:
        k += 1
        c = 1 / x[k]
        if c > 100:
            continue
        s += c + x[k]
    return s


@program(lambda x: x[1], ZERO)
def sum_of_inverses_that_a_branch_leaves(x):
    f = 1 / x
    t = np.sum(f) + np.sum(f * f)
    return t if t < 5 else x[1]


@program(lambda x: np.sum(x) / 2, np.array([1.0, 0.7, 0.9]))
def quotient_of_an_array_that_trips_write_over(x):
    for k in range(3):
        y = x / DIVISORS[k]
    return np.sum(y)


@program(lambda x: np.sum(x), np.array([1.0, 0.7, 0.9]))
def list_of_quotients(x):
    rows = []
    for k in range(3):
        rows.append(x / DIVISORS[k])
    return np.sum(rows[1])


@program(rest(lambda x: 1 / x), ZERO)
def inverses_of_eigenvalues(x):
    w = np.linalg.eigvalsh(np.diag(x))
    f = np.zeros(3)
    for i in range(3):
        f[i] = 1 / w[i]
    f[0] = 0
    return np.sum(f)


# ----------------------------------------------- one result of a loop, or a call, and not the other


@program(lambda x: np.sum(x), ZERO)
def carries_between_which_a_branch_decides(x):
    s, y = 0.0, 0.0
    for k in range(3):
        s = s + x[k]
        y = y * y + np.log(x[k]) - 1 / x[k]
    return s if y > 5 else (y if y < -1e300 else 2 * y)


@program(lambda x: np.sum(x), ZERO)
def carries_of_nested_loops(x):
    s, y, k = 0.0, 1.0, 0
    while k < 3:
        for i in range(3):
            s = s + x[i] / 3
            y = y + s / x[i] + 1 / x[i]
        k += 1
    return s if not y < 5 else y


@program(lambda x: np.sum(x), ZERO)
def arrays_as_carries(x):
    s, y = np.zeros(3), np.zeros(3)
    for k in range(3):
        s = s + x
        y = y * s + 1 / x
    t = y.sum()
    return np.sum(s) / 3 if not t < 5 else t


def sums(x, n):
    s, y = 0.0, 0.0
    for k in range(n):
        s = s + x[k]
        y = y + 1 / x[k]
        if y > 1e300:
            y = y * 2
    for k in range(3):
        if k > 5:
            y = y * 2
    return s, y


@program(lambda x: np.sum(x), ZERO)
def results_of_a_call(x):
    s, y = sums(x, 3)
    z = 2 * y
    return s if y > 5 else z


def inverses(x, n):
    d = np.zeros(n)
    for i in range(n):
        t = 1 / x[i]
        if i > 10:
            t = t * 2
        d[i] = t
    for k in range(3):
        if k > 5:
            d = d * 2.0
    return d


@program(rest(lambda x: 1 / x**2), ZERO)
def products_of_results_of_a_call(x):
    d = inverses(x, len(x))
    return np.sum((d * d)[1:])


# ------------------------------------------------------------------- missing data, infinite weights


DATA = np.array([np.nan, 0.5, 0.25])
WEIGHTS = np.array([np.inf, 1.0, 2.0])
MODEL = np.array([1.0, 0.7, 0.9])


def of_data(x):
    return np.sum((x[1:] - DATA[1:]) ** 2)


@program(of_data, MODEL)
def residuals_where_there_are_data(x):
    return np.sum(((x - DATA) ** 2)[~np.isnan(DATA)])


@program(of_data, MODEL)
def residuals_that_are_finite(x):
    r = (x - DATA) ** 2
    return np.sum(r[np.isfinite(r)])


@program(of_data, MODEL)
def residuals_that_are_themselves(x):
    r = (x - DATA) ** 2
    return np.sum(r[r == r])


@program(of_data, MODEL)
def residuals_set_to_zero(x):
    r = (x - DATA) ** 2
    r[np.isnan(r)] = 0
    return np.sum(r)


@program(of_data, MODEL)
def residuals_by_the_numbers_of_data(x):
    return np.sum(((x - DATA) ** 2)[np.flatnonzero(~np.isnan(DATA))])


@program(of_data, MODEL)
def residuals_in_a_loop(x):
    s = 0.0
    for k in range(len(x)):
        r = (x[k] - DATA[k]) ** 2
        if not math.isnan(r):
            s += r
    return s


@program(of_data, MODEL)
def residuals_in_a_list(x):
    return sum(v for v in [(x[k] - DATA[k]) ** 2 for k in range(3)] if not np.isnan(v))


def squares(x, y, n):
    r = np.zeros(n)
    for k in range(n):
        t = x[k] - y[k]
        if k > 10:
            t = t * 2
        r[k] = t * t
    for k in range(3):
        if k > 5:
            r = r * 2
    return r


@program(of_data, MODEL)
def residuals_of_a_call(x):
    r = squares(x, DATA, 3)
    return np.sum(r[~np.isnan(r)])


@program(lambda x: x[0] * x[2], MODEL)
def error_that_is_not_finite(x):
    e = 0.0
    for k in range(3):
        e += (x[k] - DATA[k]) ** 2
    if not np.isfinite(e):
        return x[0] * x[2]
    return e


@program(lambda x: np.sum((x[1:] * WEIGHTS[1:]) ** 2), MODEL)
def weights_that_are_small(x):
    return np.sum(((x * WEIGHTS) ** 2)[WEIGHTS < 5])


@program(lambda x: 3 * x[2] ** 2, MODEL)
def infinity_that_trips_write_over(x):
    for k in range(3):
        y = x[k] * math.inf
        if k == 2:
            y = 3 * x[k] ** 2
    return y


@program(lambda x: np.sum(x[1:] ** 2), MODEL)
def infinite_factor_of_an_array(x):
    return np.sum((x * np.array([np.inf, 1.0, 1.0]) * x)[1:])


# a cotangent that is 0 where an entry counts: its slope is finite, and its second derivative is not
# 0


@program(of_pairs(lambda d: (d - 1) ** 2), np.array([0.0, 1.0, 2.5]))
def springs_at_rest(x):
    return np.sum(np.triu((distances(x) - 1.0) ** 2, 1))


@program(of_pairs(lambda d: (1 - np.exp(-(d - 1))) ** 2), np.array([0.0, 1.0, 2.5]))
def bonds_at_rest(x):
    return np.sum(((1 - np.exp(-(distances(x) - 1.0))) ** 2)[np.triu_indices(len(x), 1)])


def gradient_of(f, x):
    """By complex step, which loses no digits."""
    slopes = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        z = x.astype(complex)
        z[i] += 1e-30j
        slopes[i] = np.imag(f(z)) / 1e-30
    return slopes


def hessian_of(f, x, h=1e-5):
    directions = h * np.eye(x.size).reshape(-1, *x.shape)
    return np.array(
        [(gradient_of(f, x + d) - gradient_of(f, x - d)) / (2 * h) for d in directions]
    ).reshape(x.shape * 2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_derivatives(name):
    f, reference, x = PROGRAMS[name]
    right = gradient_of(reference, x)
    np.testing.assert_allclose(s2s.grad(f)(x), right, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(s2s.jacfwd(f)(x), right, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(s2s.grad(f)(x.astype(np.float32)), right, rtol=2e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_and_lanes(name):
    f, reference, x = PROGRAMS[name]
    right, v = hessian_of(reference, x), np.linspace(1.0, 2.0, x.size).reshape(x.shape)
    along = np.tensordot(right, v, x.ndim)
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(s2s.hessian(f)(x), right, **close)
    np.testing.assert_allclose(s2s.grad(lambda x: np.sum(s2s.grad(f)(x) * v))(x), along, **close)
    np.testing.assert_allclose(s2s.grad(lambda x: s2s.jvp(f, (x,), (v,))[1])(x), along, **close)
    slopes, lanes = gradient_of(reference, x), np.stack([x, x])
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(f))(lanes), np.stack([slopes, slopes]), rtol=1e-10, atol=1e-12
    )
    if name != "deleted":  # whose shape one lane is asked for
        np.testing.assert_allclose(
            s2s.grad(lambda x: np.sum(s2s.vmap(f)(x)))(lanes),
            np.stack([slopes, slopes]),
            rtol=1e-10,
            atol=1e-12,
        )


@pytest.mark.compile
@pytest.mark.parametrize(
    "name",
    [
        "upper_triangle",
        "filled_by_loops",
        "potential_with_poles",
        "comparison_as_a_factor",
        "appended",
        "inverses_that_a_loop_passes_over",
        "carries_of_nested_loops",
        "residuals_in_a_loop",
        "infinite_factor_of_an_array",
    ],
)
def test_compiled(name):
    f, reference, x = PROGRAMS[name]
    np.testing.assert_allclose(
        s2s.jit(s2s.grad(f))(x), gradient_of(reference, x), rtol=1e-9, atol=1e-12
    )


def test_directions_that_do_not_touch_an_entry():
    f = lambda x, y: np.sqrt(x) + y * y  # noqa: E731
    assert s2s.jvp(f, (0.0, 3.0), (0.0, 1.0))[1] == 6.0
    np.testing.assert_array_equal(
        s2s.jacfwd(np.sqrt)(np.array([0.0, 4.0])), [[np.inf, 0.0], [0.0, 0.25]]
    )
    np.testing.assert_array_equal(
        s2s.jacrev(np.sqrt)(np.array([0.0, 4.0])), [[np.inf, 0.0], [0.0, 0.25]]
    )
    pullback = s2s.vjp(lambda x: (np.sqrt(x), np.sum(x)), np.array([0.0, 4.0]))[1]
    np.testing.assert_array_equal(pullback((np.zeros(2), 1.0))[0], [1.0, 1.0])


def test_entries_that_count_are_as_steep_as_before():
    assert s2s.grad(lambda x: np.sum(np.sqrt(x)))(np.array([0.0, 4.0]))[0] == np.inf
    assert s2s.grad(lambda x: np.sum(np.triu(np.sqrt(x))))(np.zeros((2, 2)))[0, 1] == np.inf
    assert np.isnan(s2s.grad(lambda x: np.sum(np.sqrt(x * x * x)))(ZERO)[0])
    assert np.isnan(s2s.grad(lambda x: np.sum(np.sqrt(x * x * x)[:1]))(ZERO)[0])


def loop_under_one_condition(x):
    s, y = 0.0, 0.0
    for k in range(len(x)):
        s = s + x[k]
        y = y + 1 / x[k]
    if y < 5:
        return s + y
    return x[0] * 3


def loop_that_finds_the_least(x):
    least = np.inf
    for k in range(len(x)):
        if x[k] * x[k] < least:
            least = 2 * x[k] * x[k]
    return least


@pytest.mark.parametrize("f", [
    lambda x: np.sum(np.sqrt(1.0 + x * x)[1:]),
    lambda x: np.sum(np.log(np.sum(np.exp(x[:, None] * x), axis=1))[1:]),
    lambda x: np.sum(np.sqrt(x)) + np.sqrt(x)[1],
    lambda x: np.sum(np.tanh(x)[1:]),
    lambda x: np.sum((x / np.sqrt(np.maximum(np.sum(x), 1e-9)))[1:]),
    lambda x: np.sum(special.logsumexp(x * x[:, None], axis=1)[1:]),
    loop_under_one_condition,
    loop_that_finds_the_least,
])
def test_what_cannot_be_steep_or_is_not_thrown_away_is_multiplied_plainly(f):
    gradient = s2s.grad(f)
    gradient(LINE)
    assert "!= 0.0" not in gradient.source
    assert RECORDS["strong_product"] not in {op.record for op in walk(gradient.current.block)}


def test_a_loop_that_fills_an_array_throws_nothing_away():
    def roots(x):
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[i] = np.sqrt(x[i])
        s = 0.0
        for i in range(len(y)):
            s += y[i] * y[i]
        return s

    gradient = s2s.grad(roots)
    np.testing.assert_allclose(gradient(np.array([1.0, 4.0])), [1.0, 1.0])
    assert "!= 0.0" not in gradient.source


@pytest.mark.parametrize("name", ["strong_product", "strong_both"])
@pytest.mark.parametrize(
    "a, b",
    [
        (np.array([0.0, 2.0, 0.0]), np.array([np.inf, 3.0, 1.0])),
        (np.array([True, False, True]), np.array([2.0, np.nan, 0.0])),
        (0.0, np.array([np.inf, 1.0])),
        (2.0, -1.5),
        (0.0, np.inf),
    ],
)
def test_strong_products_print_as_what_they_compute(name, a, b):
    record = RECORDS[name]
    text = ast.unparse(record.syntax(ast.Name("a", ast.Load()), ast.Name("b", ast.Load())))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(eval(text, {"np": np, "a": a, "b": b}), record.evaluate(a, b))


@pytest.mark.parametrize("name", ["strong_product", "strong_both"])
@pytest.mark.parametrize(
    "a, b",
    [
        (np.array([0.0, 2.0, 3.0]), np.array([True, False, True])),
        (np.array([True, False, True]), np.array([2.0, np.nan, 0.0])),
        (np.array([0.0, 2.0, 0.0]), np.array([np.inf, 3.0, 1.0])),
    ],
)
def test_lowered_strong_products_are_what_they_compute(name, a, b):
    """A factor that is a mask has its part, whichever of the two it is."""
    params = [Value(Array(x.dtype.name, (3,)), "x") for x in (a, b)]
    with Builder(Block(params=params)) as builder:
        builder.block.yields = [emit(RECORDS[name], *params)]
    function = lower_strong_products(Function("f", builder.block))
    assert not any(op.record is RECORDS[name] for op in walk(function.block))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(interpret(function, a, b), RECORDS[name].evaluate(a, b))


def test_strong_products_in_nested_loops_ask_where_they_stand():
    """Loops are emitted more than once, and a block may stand where one stood that is gone."""
    def program(w, x):
        total = 0.0
        for i in range(4):
            for j in range(4):
                total = total + w[i] * w[j] * x[0, 0] / (1 + i + j)
        return total

    with recorded() as stages:
        s2s.vjp(s2s.grad(program, argnums=(0, 1)), (1.0, 0.99, 1.02, 1.01), np.ones((3, 4)))
    spelled = [lower_strong_products(function) for _, function in stages]
    assert any(each is not function for each, (_, function) in zip(spelled, stages))
    for each in spelled:
        verify(each)


def last_root(x, a):
    y = 0.0
    for k in range(3):
        y = np.sqrt(x[k])
    return y


def last_quotient(x, a):
    y, z, k = 0.0, 0.0, 0
    while k < 3:
        y = x[k] / a[k]
        z = 2.0 * y
        k += 1
    return y + z


def last_inverse(x, a):
    y = 0.0
    for k in range(3):
        y = 1.0 / x[k] + np.log(x[k]) + x[k] ** 0.5
    return y


@pytest.mark.parametrize(
    "f, right",
    [
        (last_root, 0.5 / 0.9**0.5),
        (last_quotient, 1.5),
        (last_inverse, -1 / 0.81 + 1 / 0.9 + 0.5 / 0.9**0.5),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_each_trip_writes_over(f, right):
    x, a = np.array([0.0, 0.5, 0.9]), np.array([0.0, 1.0, 2.0])
    for t in (s2s.grad(f), s2s.jacfwd(f)):
        np.testing.assert_allclose(t(x, a), [0.0, 0.0, right], rtol=1e-14)
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(f), in_axes=(0, None))(x[None], a), [[0.0, 0.0, right]], rtol=1e-14
    )


def bounded(x):
    return np.sum(
        np.minimum(1 / x, 5.0) + np.maximum(np.sqrt(x), 0.1) + np.clip(np.log(x), -10.0, 10.0)
    )


def bounded_in_a_loop(x):
    s = 0.0
    for k in range(3):
        y = np.fmin(1 / x[k], 5.0)
        s += 3 * y * y
    return s


@pytest.mark.parametrize(
    "f, reference",
    [(bounded, lambda x: 1 / x + np.sqrt(x) + np.log(x)), (bounded_in_a_loop, lambda x: 3 * x**-2)],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_a_bound_takes_the_place_of(f, reference):
    slopes, v = gradient_of(rest(reference), ZERO), np.array([1.0, 2.0, 3.0])
    for t in (s2s.grad(f), s2s.jacfwd(f)):
        np.testing.assert_allclose(t(ZERO), slopes, rtol=1e-10)
    np.testing.assert_allclose(
        s2s.grad(lambda x: np.sum(s2s.vmap(f)(x)))(ZERO[None]), slopes[None], rtol=1e-10
    )
    second = hessian_of(rest(reference), ZERO)
    np.testing.assert_allclose(s2s.hessian(f)(ZERO), second, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        s2s.grad(lambda x: np.sum(s2s.grad(f)(x) * v))(ZERO), second @ v, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    "f, reference",
    [
        (lambda x: np.sum((1.0 / np.minimum(1.0 / x, 5.0))[:2]), lambda x: x[1]),
        (lambda x: np.sum(np.log(np.maximum(np.sqrt(x), 0.1))[:2]), lambda x: 0.5 * np.log(x[1])),
        (
            lambda x: np.sum(np.sqrt(np.clip(np.log(x), -9.0, 9.0) + 9.0)[:2]),
            lambda x: np.sqrt(np.log(x[1]) + 9.0),
        ),
        (
            lambda x: np.sum(np.triu(np.sqrt(np.fmin(1.0 / x, 5.0) * np.ones((3, 1))))[0, :2]),
            lambda x: np.sqrt(1.0 / x[1]),
        ),
    ],
)
def test_a_bound_before_a_slice(f, reference):
    """Entries are discarded twice: by the slice, whose cotangents meet a steep slope, and before it
    by the bound.
    """
    slopes = gradient_of(reference, ZERO)
    for t in (s2s.grad(f), s2s.jacfwd(f)):
        np.testing.assert_allclose(t(ZERO), slopes, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(s2s.vmap(s2s.grad(f))(ZERO[None])[0], slopes, rtol=1e-8, atol=1e-10)
    second = hessian_of(reference, ZERO)
    np.testing.assert_allclose(s2s.hessian(f)(ZERO), second, rtol=1e-5, atol=1e-5)


def test_what_is_subtracted_from_itself_depends_on_nothing():
    """Also where what is made of the difference, 0, has an infinite slope."""
    for f, slope in (
        (lambda x: math.sqrt(x - x), 0.0),
        (lambda x: np.sum(np.sqrt(x * 2.0 - x * 2.0)), 0.0),
        (lambda x: np.cbrt(x - x) + 3.0 * x, 3.0),
    ):
        assert (
            s2s.grad(f)(2.0) == s2s.jvp(f, (2.0,), (1.0,))[1] == slope
            and s2s.hessian(f)(2.0) == 0.0
        )


def quotients(x):
    """Quotients, of which a bound takes the place where they are infinite."""
    return np.fmin(np.exp(x) / np.maximum(x, 0.0), 5.0)


def then_a_loop(x, n):
    s = np.sum(np.tanh(quotients(x)))
    for _ in range(n):
        s = np.sum(x**3)
    return s


def then_some_trips(x, n):
    s = quotients(x)
    for i in range(n):
        if i == 1:
            s = x**3
    return np.sum(s)


def then_an_inner_loop(x, n):
    t = 0.0
    for _ in range(2):
        s = quotients(x)
        for _ in range(n):
            s = x**3
        t += np.sum(s)
    return t


def then_a_loop_with_an_exit(x, n):
    s, k = np.sum(quotients(x)), 0
    while k < n:
        if s > 100.0:
            break
        s, k = np.sum(x**3), k + 1
    return s


def then_handed_on(x, n):
    s, t = quotients(x), x
    for _ in range(n):
        s, t = t, x**3
    return np.sum(s)


@pytest.mark.parametrize("f", [then_a_loop, then_some_trips, then_an_inner_loop,
                               then_a_loop_with_an_exit, then_handed_on])
@pytest.mark.parametrize("n", range(4))
def test_what_stood_in_a_name_before_a_loop_that_may_have_no_trip(f, n):
    x, v, h = np.array([1.7, -0.3, 1.2]), np.array([1.0, 2.0, 3.0]), 1e-3 * np.eye(3)
    slopes = [(f(x + d, n) - f(x - d, n)) / 2e-6 for d in 1e-3 * h]
    for g in (s2s.grad(f), s2s.jacfwd(f), s2s.jit(s2s.grad(f))):
        np.testing.assert_allclose(g(x, n), slopes, rtol=1e-6, atol=1e-6)
    curvature = [(f(x + d, n) - 2 * f(x, n) + f(x - d, n)) / 1e-6 for d in h]
    np.testing.assert_allclose(
        s2s.hvp(lambda x: f(x, n), (x,), (v,)), curvature * v, rtol=1e-4, atol=1e-4
    )
