"""Sparse Jacobians and Hessians: patterns, colours, sweeps, and the matrices, against dense ones
and hyper-dual numbers.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from oracles import dual
from scipy import sparse

import s2s
from s2s.sparse.colouring import columns, symmetric
from s2s.transformed import Transformed

rng = np.random.default_rng(0)
LINE = rng.normal(size=12)
SQUARE = rng.normal(size=(5, 4))


def loop_stencil(u, k):
    r = np.zeros(len(u))
    for i in range(1, len(u) - 1):
        r[i] = k * (u[i - 1] - 2 * u[i] + u[i + 1]) + u[i] ** 2
    return r


def slice_stencil(u, k):
    r = u.copy()
    r[1:-1] = k * (u[:-2] - 2 * u[1:-1] + u[2:]) + u[1:-1] ** 3
    return r


def upwind(u, k):
    r = np.empty_like(u)
    for i in range(1, len(u) - 1):
        if u[i] > 0:
            r[i] = u[i] * (u[i] - u[i - 1])
        else:
            r[i] = u[i] * (u[i + 1] - u[i])
    r[0] = u[0]
    r[-1] = u[-1] * k
    return r


def five_points(u, k):
    r = u.copy()
    r[1:-1, 1:-1] = (
        u[:-2, 1:-1]
        + u[2:, 1:-1]
        + u[1:-1, :-2]
        + u[1:-1, 2:]
        - 4 * u[1:-1, 1:-1]
        + k * np.exp(u[1:-1, 1:-1])
    )
    return r


def five_points_loop(u, k):
    r = u.copy()
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            r[i, j] = (
                u[i - 1, j]
                + u[i + 1, j]
                + u[i, j - 1]
                + u[i, j + 1]
                - 4 * u[i, j]
                + k * np.exp(u[i, j])
            )
    return r


def gauss_seidel(u, k):
    u = u.copy()
    for _ in range(2):
        for i in range(1, len(u) - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1]) + k * np.sin(u[i])
    return u


def roots(x, k):
    y = x.copy()
    for i in range(len(x)):
        z = 1.0 + x[i] ** 2
        while abs(z * z - k - x[i] ** 2) > 1e-10:
            z = z - (z * z - k - x[i] ** 2) / (2 * z)
        y[i] = z
    return y


def sorted_products(x, k):
    s = np.sort(x)
    return s[1:] * s[:-1] * k


def positive(x, k):
    return x[x > 0] ** 2 * k


def scattered(x, k):
    y = np.zeros(5)
    np.add.at(y, np.arange(len(x)) % 5, np.sin(k * x))
    return y


def gathered(x, k):
    i = np.array([0, 3, 3, 7, 1])
    return x[i] ** 2 * x[i + 1] * k


def running_total(x, k):
    return np.cumsum(x ** 2) * k


def chosen(x, k):
    return np.where(x > k, x**2, x[::-1]) * np.maximum(x, np.roll(x, 1))


def product_of_matrices(x, k):
    a = x.reshape(3, 4)
    return (a @ a.T * k).ravel()


def list_of_terms(x, k):
    terms = []
    for i in range(len(x) - 2):
        terms.append(x[i] * x[i + 2] * k)
    return np.array(terms)


def windows(x, k):
    total = []
    for i in range(0, len(x), 3):
        part = x[i:i + 3]
        total.append(np.sum(part * part) + np.prod(part) * k)
    return np.stack(total)


def linear_systems(x, k):
    a = np.array([[2.0, k], [0.5, 3.0]])
    b = x.reshape(2, 6)
    return np.linalg.solve(a, b).ravel()


def contracted(x, k):
    a = x.reshape(2, 2, 3)
    return np.einsum("ijk,ilk->ijl", a, a).ravel() * k


PROGRAMS = [
    loop_stencil,
    slice_stencil,
    upwind,
    gauss_seidel,
    roots,
    sorted_products,
    positive,
    scattered,
    gathered,
    running_total,
    chosen,
    product_of_matrices,
    list_of_terms,
    windows,
    linear_systems,
    contracted,
    five_points,
    five_points_loop,
]


def jacobian_by_duals(f, x, *rest):
    """One column for each element, by dual numbers run through the user's own function."""
    columns = []
    for k in range(x.size):
        direction = np.zeros(x.size)
        direction[k] = 1.0
        columns.append(
            np.ravel(dual(f, (x, *rest), (direction.reshape(x.shape), *(None for _ in rest)))[1])
        )
    return np.stack(columns, axis=1)


def where(f) -> np.ndarray:
    """An argument for one of the programs."""
    return SQUARE if f in (five_points, five_points_loop) else LINE[:4] if f is roots else LINE


# by floats: how often a loop runs, or which element is read
DECIDED = roots, sorted_products, positive


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_sparse_is_dense_and_what_is_left_out_is_zero_for_other_numbers(f):
    """A pattern that is kept holds for numbers that take other paths."""
    jacobian = s2s.jacobian(f, sparse=True)
    x = where(f)
    found = jacobian(x, 0.7)
    assert isinstance(found, sparse.csr_array) and found.has_sorted_indices
    np.testing.assert_allclose(
        found.toarray(), jacobian_by_duals(f, x, 0.7), rtol=1e-12, atol=1e-13
    )
    kept = jacobian.plan(x, 0.7)
    assert kept.reusable == (f not in DECIDED)
    other = np.random.default_rng(1).normal(size=x.shape)
    plan = jacobian.plan(other, 0.3)
    assert (plan is kept) == kept.reusable
    np.testing.assert_allclose(
        jacobian(other, 0.3).toarray(), jacobian_by_duals(f, other, 0.3), rtol=1e-12, atol=1e-13
    )


def banded(n: int, inside: range) -> np.ndarray:
    pattern = np.eye(n, dtype=bool)
    for i in inside:
        pattern[i, i - 1:i + 2] = True
    return pattern


def test_the_pattern_of_a_stencil_is_exact():
    plan = s2s.jacobian(slice_stencil, sparse=True).plan(LINE, 0.7)
    np.testing.assert_array_equal(plan.pattern.toarray(), banded(12, range(1, 11)))
    assert (plan.mode, plan.sweeps) == ("columns", 3)
    wanted = banded(12, range(1, 11))
    wanted[[0, 11]] = False
    np.testing.assert_array_equal(
        s2s.jacobian(loop_stencil, sparse=True).pattern(LINE, 0.7).toarray(), wanted
    )


def test_both_sides_of_a_branch_on_floats_are_in_the_pattern():
    pattern = s2s.jacobian(upwind, sparse=True).pattern(LINE, 0.7)
    np.testing.assert_array_equal(pattern.toarray(), banded(12, range(1, 11)))


@pytest.mark.parametrize("f", [five_points, five_points_loop])
def test_the_pattern_of_five_points_is_exact(f):
    n, m = SQUARE.shape
    wanted = np.eye(n * m, dtype=bool)
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            for k in (i * m + j - 1, i * m + j + 1, (i - 1) * m + j, (i + 1) * m + j):
                wanted[i * m + j, k] = True
    plan = s2s.jacobian(f, sparse=True).plan(SQUARE, 0.7)
    np.testing.assert_array_equal(plan.pattern.toarray(), wanted)
    assert plan.sweeps <= 8


# --------------------------------------------------------------------------- what floats may decide


def compacted(x, k):
    y = np.zeros(len(x))
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            y[n] = x[i] ** 2 * k
            n += 1
    return y


def counted_in_a_list(x, k):
    places = []
    for i in range(len(x)):
        if x[i] > 0:
            places.append(i)
    y = np.zeros(len(x))
    for j in range(len(np.array(places))):
        y[j] = x[j + 1] * k
    return y


def one_of_two_lengths(x, k):
    part = x[:3] if x[0] > 0 else x[2:7]
    y = np.zeros(len(x))
    for j in range(len(part)):
        y[j] = part[j] * k
    return y


def until_large(x, k):
    s = 0.0
    for i in range(len(x)):
        s += x[i] ** 2
        if s > k:
            break
    return np.array([s, x[0]])


def at_a_place_in_time(x, k):
    n = int(k * 4)
    return x[n:n + 3] ** 2


def halved(x, a, b):
    m = 0.5 * (a + b)
    w = x * (b - a) * m
    if abs(w) < 0.05:
        return w
    return halved(x, a, m) + halved(x, m, b) * x


def recursive(x, k):
    y = np.zeros(3)
    for i in range(3):
        y[i] = halved(x[i], 0.0, k)
    return y


@pytest.mark.parametrize(
    "f",
    [compacted, counted_in_a_list, one_of_two_lengths, until_large, at_a_place_in_time, recursive],
    ids=lambda f: f.__name__,
)
def test_a_pattern_that_floats_decide_is_found_at_each_call(f):
    jacobian = s2s.jacobian(f, sparse=True)
    assert not jacobian.plan(LINE, 0.7).reusable
    for sign in (1.0, -1.0):
        np.testing.assert_allclose(
            jacobian(sign * LINE, 0.7).toarray(), jacobian_by_duals(f, sign * LINE, 0.7), rtol=1e-12
        )


def checked(x, k):
    y = x * k
    for i in range(1, len(x)):
        if abs(x[i]) > 100.0:
            raise ValueError(f"x[{i}] is too large")
        try:
            y[i] = float(x[i - 1]) / float(x[i])
        except ZeroDivisionError:
            y[i] = x[0]
    return y


def branches_in_branches(x, k):
    y = np.zeros(len(x))
    for i in range(1, len(x) - 1):
        if x[i] > 0:
            if x[i + 1] > 0:
                y[i] = x[i] * x[i + 1]
            else:
                y[i] = x[i] * k
        elif x[i] < -1:
            y[i] = x[i - 1] * x[i]
    return y


@pytest.mark.lengthy
@pytest.mark.parametrize("f, entries", [(checked, 12 + 11 + 10), (branches_in_branches, 30)])
def test_all_sides_of_branches_are_followed(f, entries):
    plan = s2s.jacobian(f, sparse=True).plan(LINE, 0.7)
    assert plan.reusable and plan.pattern.nnz == entries
    for sign in (1.0, -1.0, 20.0):
        missing = (jacobian_by_duals(f, sign * LINE, 0.7) != 0) & ~plan.pattern.toarray()
        assert not missing.any()


# ------------------------------------------------------------------------------- rules of one's own


@s2s.custom_jvp
def rounded(x):
    return np.round(x)


@rounded.defjvp
def straight_through(primals, tangents):
    return np.round(primals[0]), tangents[0]


@s2s.custom_vjp
def clipped(x):
    return x * 1.0


clipped.defvjp(lambda x: (x * 1.0, x), lambda x, x_bar: (np.clip(x_bar, -1.0, 1.0) * x,))


def test_the_pattern_is_that_of_the_rule_and_not_of_the_function():
    found = s2s.jacobian(lambda x: rounded(x[1:]) * 2.0, sparse=True)(LINE)
    np.testing.assert_array_equal(found.toarray(), 2.0 * np.eye(12)[1:])


def test_rules_for_reverse_mode_take_rows():
    def f(x):
        return clipped(x[1:]) * x[:-1]

    jacobian = s2s.jacobian(f, sparse=True)
    np.testing.assert_allclose(jacobian(LINE).toarray(), s2s.jacrev(f)(LINE), rtol=1e-14)
    assert (jacobian.plan(LINE).mode, jacobian.plan(LINE).sweeps) == ("rows", 2)


def test_the_derivative_of_a_gradient_by_a_rule_need_not_be_symmetric():
    def f(x):
        return np.sum(clipped(x) * x[::-1])

    wanted = s2s.hessian(f)(LINE)
    assert not np.allclose(wanted, wanted.T)
    np.testing.assert_allclose(s2s.hessian(f, sparse=True)(LINE).toarray(), wanted, rtol=1e-14)


def conjugate_gradients(matvec, b):
    """The system is solved until the residual is small: for tangents it is they who decide how
    often.
    """
    x = np.zeros(len(b))
    r = b * 1.0
    p = r.copy()
    while np.sum(r * r) > 1e-24:
        q = matvec(p)
        a = np.sum(r * r) / np.sum(p * q)
        x = x + a * p
        before = np.sum(r * r)
        r = r - a * q
        p = r + np.sum(r * r) / before * p
    return x


def test_systems_that_are_solved_by_iteration():
    def f(b):
        def matvec(v):
            return 3.0 * v[:4] + 0.5 * v[3::-1]

        return (
            s2s.custom_linear_solve(matvec, b[:4] * b[:4], conjugate_gradients, symmetric=True)
            * b[4:8]
        )

    jacobian = s2s.jacobian(f, sparse=True)
    solution = np.linalg.inv(3.0 * np.eye(4) + 0.5 * np.eye(4)[::-1])
    wanted = np.zeros((4, 12))
    wanted[:, :4] = LINE[4:8, None] * solution * (2 * LINE[:4])
    wanted[:, 4:8] = np.diag(solution @ LINE[:4] ** 2)
    np.testing.assert_allclose(jacobian(LINE).toarray(), wanted, rtol=1e-9, atol=1e-11)
    assert jacobian.plan(LINE).pattern.nnz == 4 * 5


def test_what_stop_gradient_holds_is_no_entry():
    found = s2s.jacobian(lambda x: x[1:] * s2s.stop_gradient(x[:-1]), sparse=True)(LINE)
    assert found.nnz == 11


# -------------------------------------------------------------------------------- bundle adjustment


def project(cameras, points, camera_of, point_of, seen):
    """Two residuals for each observation: a small rotation, a pinhole, one term of distortion."""
    c, p = cameras[camera_of], points[point_of]
    x = p + np.stack([c[:, 1] * p[:, 2] - c[:, 2] * p[:, 1], c[:, 2] * p[:, 0] - c[:, 0] * p[:, 2],
                      c[:, 0] * p[:, 1] - c[:, 1] * p[:, 0]], axis=1) + c[:, 3:6]
    q = x[:, :2] / x[:, 2:]
    r2 = np.sum(q * q, axis=1)
    return (q * (c[:, 6] * (1.0 + c[:, 7] * r2))[:, None] - seen).ravel()


def project_loop(cameras, points, camera_of, point_of, seen):
    r = np.empty(2 * len(seen))
    for k in range(len(seen)):
        c = cameras[camera_of[k]]
        p = points[point_of[k]]
        x0 = p[0] + c[1] * p[2] - c[2] * p[1] + c[3]
        x1 = p[1] + c[2] * p[0] - c[0] * p[2] + c[4]
        x2 = p[2] + c[0] * p[1] - c[1] * p[0] + c[5]
        r2 = (x0 * x0 + x1 * x1) / (x2 * x2)
        scale = c[6] * (1.0 + c[7] * r2) / x2
        r[2 * k] = x0 * scale - seen[k, 0]
        r[2 * k + 1] = x1 * scale - seen[k, 1]
    return r


CAMERA_OF = np.array([0, 1, 2, 0, 1, 2, 1, 0])
POINT_OF = np.array([0, 0, 0, 1, 1, 2, 2, 3])
SCENE = (
    rng.normal(size=(3, 8)) * 0.1,
    rng.normal(size=(4, 3)) + np.array([0.0, 0.0, 5.0]),
    CAMERA_OF,
    POINT_OF,
    rng.normal(size=(8, 2)),
)


@pytest.mark.parametrize("f", [project, project_loop])
def test_bundle_adjustment(f):
    jacobian = s2s.jacobian(f, (0, 1), sparse=True)
    by_cameras, by_points = jacobian(*SCENE)
    wanted = s2s.jacobian(f, (0, 1))(*SCENE)
    np.testing.assert_allclose(
        by_cameras.toarray(), wanted[0].reshape(16, -1), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(
        by_points.toarray(), wanted[1].reshape(16, -1), rtol=1e-12, atol=1e-13
    )
    plan = jacobian.plan(*SCENE)
    sees = np.zeros((16, 3 * 8 + 4 * 3), bool)
    for k, (c, p) in enumerate(zip(CAMERA_OF, POINT_OF)):
        sees[2 * k:2 * k + 2, 8 * c:8 * c + 8] = True
        sees[2 * k:2 * k + 2, 24 + 3 * p:24 + 3 * p + 3] = True
    exact = plan.pattern.toarray()
    assert (
        not (exact & ~sees).any()
        and exact.sum() == (np.hstack([w.reshape(16, -1) for w in wanted]) != 0).sum()
    )
    assert plan.sweeps <= 8 + 3


def test_an_index_that_changes_changes_the_pattern():
    def f(x, i):
        return x[i] ** 2

    jacobian = s2s.jacobian(f, sparse=True)
    one, other = np.array([0, 3, 5]), np.array([0, 4, 5])
    first = jacobian.plan(LINE, one)
    assert jacobian.plan(LINE, other) is not first
    for i in (one, other):
        np.testing.assert_allclose(jacobian(LINE, i).toarray(), np.diag(2 * LINE)[i])
    assert jacobian.plan(LINE + 1.0, one) is first


# ----------------------------------------------------------------------------------------- Hessians


def rosenbrock(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total


def rosenbrock_in_slices(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def separate(x):
    return np.sum(np.cosh(x) * np.exp(-x))


def arrow(x):
    return np.sum(x[0] * x[1:] ** 2) + x[0] ** 3


def huber(x):
    total = 0.0
    for i in range(len(x) - 1):
        d = x[i + 1] - x[i] * x[i]
        if abs(d) < 1.0:
            total += 0.5 * d * d
        else:
            total += abs(d) - 0.5
    return total


def energy_of_a_chain(x):
    p = x.reshape(-1, 2)
    d = p[1:] - p[:-1]
    return np.sum((np.sqrt(np.sum(d * d, axis=1)) - 1.0) ** 2) + np.sum(p[:, 1])


def sum_of_a_list(x):
    terms = []
    for i in range(len(x) - 1):
        terms.append(x[i] * x[i + 1] ** 2)
    return sum(terms)


def roots_in_a_chain(x):
    total = 0.0
    for i in range(len(x) - 1):
        z = 1.0 + x[i] ** 2
        while abs(z * z - 2 - x[i] ** 2) > 1e-10:
            z = z - (z * z - 2 - x[i] ** 2) / (2 * z)
        total += z * x[i + 1]
    return total


def sorted_pairs(x):
    s = np.sort(x)
    return np.sum(s[1:] * s[:-1] ** 2)


def linear(x):
    return np.sum(3 * x)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f, sweeps",
    [
        (sum_of_a_list, 3),
        (roots_in_a_chain, 3),
        (sorted_pairs, 3),
        (linear, 0),
        (rosenbrock, 3),
        (rosenbrock_in_slices, 3),
        (separate, 1),
        (arrow, 2),
        (huber, 3),
        (energy_of_a_chain, 6),
    ],
)
def test_sparse_hessian_is_dense(f, sweeps):
    hessian = s2s.hessian(f, sparse=True)
    found = hessian(LINE)
    np.testing.assert_allclose(found.toarray(), s2s.hessian(f)(LINE), rtol=1e-12, atol=1e-12)
    assert (found != found.T).nnz == 0
    assert hessian.plan(LINE).sweeps == sweeps


@pytest.mark.parametrize("norms", [
    lambda p: np.sqrt(np.sum(p * p, axis=1)),
    lambda p: np.linalg.norm(p, axis=1),
    lambda p: np.sqrt(np.mean(p ** 2, axis=1)),
    lambda p: np.sqrt(np.sum(p ** 2, axis=1, keepdims=True))[:, 0],
])
def test_a_norm_of_each_row_depends_on_the_row(norms):
    hessian = s2s.hessian(lambda x: np.sum((norms(x.reshape(-1, 2)) - 1.0) ** 3), sparse=True)
    np.testing.assert_array_equal(
        hessian.pattern(LINE).toarray(), np.kron(np.eye(6), np.ones((2, 2))) != 0
    )
    np.testing.assert_array_equal(
        s2s.jacobian(lambda x: norms(x.reshape(-1, 2)), sparse=True).pattern(LINE).toarray(),
        np.kron(np.eye(6), np.ones((1, 2))) != 0,
    )


def test_linear_terms_are_not_in_a_hessian():
    pattern = s2s.hessian(lambda x: np.sum(x[:-1] * 3.0) + x[0] * x[-1], sparse=True).pattern(LINE)
    wanted = np.zeros((12, 12), bool)
    wanted[0, -1] = wanted[-1, 0] = True
    np.testing.assert_array_equal(pattern.toarray(), wanted)


def test_convolution_in_a_hessian():
    """The Hessian of the sum of w * convolve(a, b): a and b meet where w says, and neither meets
    itself.
    """
    w = np.array([1.0, 0.0, 3.0, 0.0, 5.0, 6.0])

    def f(x):
        return np.sum(w * np.convolve(x[:4], x[4:]))

    wanted = np.zeros((7, 7))
    for i in range(4):
        for j in range(3):
            wanted[i, 4 + j] = wanted[4 + j, i] = w[i + j]
    np.testing.assert_array_equal(
        s2s.hessian(f, sparse=True)(np.arange(1.0, 8.0)).toarray(), wanted
    )


def test_blocks_of_a_hessian():
    def energy(a, b):
        return np.sum(a[:, 0] * b) + np.sum(a ** 3) + b[0] ** 4

    a, b = rng.normal(size=(4, 2)), rng.normal(size=4)
    (aa, ab), (ba, bb) = s2s.hessian(energy, (0, 1), sparse=True)(a, b)
    wanted = s2s.hessian(energy, (0, 1))(a, b)
    for got, w, shape in (
        (aa, wanted[0][0], (8, 8)),
        (ab, wanted[0][1], (8, 4)),
        (ba, wanted[1][0], (4, 8)),
        (bb, wanted[1][1], (4, 4)),
    ):
        np.testing.assert_allclose(got.toarray(), w.reshape(shape), rtol=1e-13)


# ------------------------------------------------------------------------------------------ colours


def random_pattern(seed: int, n: int = 40, m: int = 30) -> sparse.csr_array:
    found = np.random.default_rng(seed).random((m, n)) < 0.08
    return sparse.csr_array(found)


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_one_colour_have_no_row_in_common(seed):
    pattern = random_pattern(seed)
    colours = columns(pattern)
    dense = pattern.toarray().astype(int)
    for colour in range(colours.max() + 1):
        assert dense[:, colours == colour].sum(1).max() <= 1
    assert (colours[dense.any(0)] >= 0).all() and colours.max() + 1 >= dense.sum(1).max()


@pytest.mark.parametrize("seed", range(8))
def test_every_entry_of_a_symmetric_matrix_stands_alone_in_one_of_its_places(seed):
    square = random_pattern(seed, 30, 30).toarray()
    dense = square | square.T
    if seed % 2:
        dense |= np.eye(30, dtype=bool)
    colours = symmetric(sparse.csr_array(dense))

    def alone(i, j):
        return sum(dense[i, k] and colours[k] == colours[j] for k in range(30)) == 1

    for i, j in zip(*np.nonzero(dense)):
        assert alone(i, j) or alone(j, i)


def test_an_arrow_takes_two_colours_and_not_as_many_as_columns():
    dense = np.eye(500, dtype=bool)
    dense[0] = dense[:, 0] = True
    assert symmetric(sparse.csr_array(dense)).max() + 1 == 2
    assert columns(sparse.csr_array(dense)).max() + 1 == 500


def test_as_many_sweeps_as_colours(monkeypatch):
    """The tangents that the sweep is given are as many as there are colours, and it is called
    once.
    """
    seen = []
    call = Transformed.call

    def counting(self, *args, **keywords):
        if self.kind in ("columns", "rows"):
            seen.append((self.kind, args[-1].shape))
        return call(self, *args, **keywords)

    # columns and rows take any number of arguments, so each call comes here
    monkeypatch.setattr(Transformed, "call", counting)
    s2s.jacobian(slice_stencil, sparse=True)(np.zeros(1000), 0.7)
    s2s.hessian(rosenbrock_in_slices, sparse=True)(np.zeros(1000))
    s2s.jacobian(lambda x: np.array([np.sum(x[:500]), np.prod(x[400:])]), sparse=True)(
        np.ones(1000)
    )
    assert seen == [("columns", (3, 1000)), ("columns", (3, 1000)), ("rows", (2, 2))]


# -------------------------------------------------------------------------------------- conventions


def test_containers_and_axes_are_flattened_as_ravel_pytree_does():
    def f(p, n):
        return {"z": p["b"] * p["a"][0, 1], "a": (np.sum(p["a"], axis=0), p["b"][:n])}

    p = {"b": rng.normal(size=3), "a": rng.normal(size=(2, 3))}
    found = s2s.jacobian(f, sparse=True)(p, 2).toarray()
    dense = s2s.jacobian(f)(p, 2)
    rows = [np.hstack([block["a"].reshape(k, 6), block["b"].reshape(k, 3)])
            for block, k in ((dense["a"][0], 3), (dense["a"][1], 2), (dense["z"], 3))]
    np.testing.assert_allclose(found, np.vstack(rows))


def test_numbers_and_empty_matrices():
    assert s2s.jacobian(lambda x: x * x, sparse=True)(3.0).toarray() == [[6.0]]
    none = s2s.jacobian(lambda x: np.ones(3), sparse=True)(LINE)
    assert none.shape == (3, 12) and none.nnz == 0
    assert s2s.jacobian(lambda x: x ** 2, sparse=True)(np.zeros(0)).shape == (0, 0)


def test_single_precision_stays_single():
    assert s2s.jacobian(lambda x: x ** 2, sparse=True)(np.ones(3, np.float32)).dtype == np.float32


def test_captured_values_are_part_of_what_a_pattern_holds_for():
    places = np.array([0, 1, 2])

    def f(x):
        return x[places] ** 2

    jacobian = s2s.jacobian(f, sparse=True)
    assert jacobian(LINE).toarray()[2, 2] != 0
    places = np.array([0, 1, 5])
    assert jacobian(LINE).toarray()[2, 5] != 0


def test_the_source_of_the_sweeps_is_there():
    jacobian = s2s.jacobian(loop_stencil, sparse=True)
    with pytest.raises(s2s.TypeMismatchError, match="before any call"):
        print(jacobian.source)
    jacobian(LINE, 0.7)
    assert "r_dot[:, i] = " in jacobian.source


def test_the_plan_says_what_it_is():
    jacobian = s2s.jacobian(slice_stencil, sparse=True)
    assert str(jacobian.plan(LINE, 0.7)) == ("12 x 12, 32 entries, 3 sweeps over columns; kept "
                                             "for the next call")
    assert "found again at each call" in str(s2s.jacobian(positive, sparse=True).plan(LINE, 0.7))


class Wave:
    def __init__(self, speed):
        self.speed = speed

    @s2s.jacobian(sparse=True)
    def slope(self, u):
        return self.speed * (u[1:] - u[:-1]) ** 2

    def energy(self, u):
        return np.sum(self.speed * (u[1:] - u[:-1]) ** 2)


def test_methods():
    wave = Wave(2.0)
    found = wave.slope(LINE)
    np.testing.assert_allclose(
        found.toarray(), jacobian_by_duals(lambda u: 2.0 * (u[1:] - u[:-1]) ** 2, LINE)
    )
    assert s2s.hessian(wave.energy, sparse=True)(LINE).nnz == 34


def test_what_is_transformed_already():
    def f(x):
        return np.sum(x[1:] ** 2 * x[:-1])

    wanted = s2s.hessian(f)(LINE)
    np.testing.assert_allclose(
        s2s.jacobian(s2s.grad(f), sparse=True)(LINE).toarray(), wanted, rtol=1e-14
    )
    np.testing.assert_allclose(
        s2s.hessian(s2s.jit(f), sparse=True)(LINE).toarray(), wanted, rtol=1e-14
    )

    def squares(x):
        return s2s.vmap(lambda a, b: a * a * b)(x[1:], x[:-1])

    assert s2s.jacobian(squares, sparse=True)(LINE).nnz == 22


def test_arguments_by_name_and_defaults():
    def f(u, *, k=2.0):
        return u[1:] * u[:-1] * k

    wanted = jacobian_by_duals(lambda u: u[1:] * u[:-1] * 3.0, LINE)
    np.testing.assert_allclose(s2s.jacobian(f, "u", sparse=True)(LINE, k=3.0).toarray(), wanted)
    np.testing.assert_allclose(s2s.jacobian(f, sparse=True)(u=LINE).toarray() * 1.5, wanted)


def test_pickled():
    jacobian = pickle.loads(pickle.dumps(s2s.jacobian(loop_stencil, sparse=True)))
    assert jacobian(LINE, 0.7).nnz == 30


def test_a_caller_s_arrays_stay_as_they_are():
    def f(x):
        x[0] = 2.0
        return x[1:] * x[:-1]

    before = LINE.copy()
    assert s2s.jacobian(f, sparse=True)(LINE).nnz == 21
    np.testing.assert_array_equal(LINE, before)


@pytest.mark.lengthy
def test_what_the_program_raises_is_raised_where_it_raises_it():
    def f(x):
        if x[0] > 100.0:
            raise ValueError("too large")
        return x * x

    jacobian = s2s.jacobian(f, sparse=True)
    assert jacobian(LINE).nnz == 12
    for x in (LINE + 200.0, np.ones(3) * 200.0):
        with pytest.raises(ValueError, match="too large"):
            jacobian(x)


def test_code_is_generated_once_where_a_pattern_is_found_at_each_call(monkeypatch):
    jacobian = s2s.jacobian(sorted_products, sparse=True)
    jacobian(LINE, 0.7)
    monkeypatch.setattr("s2s.derive.batched_seeds.columns", None)
    monkeypatch.setattr("s2s.pipeline.flatten_calls", None)
    assert jacobian(-LINE, 0.7).nnz == 22


def test_nothing_is_printed_by_the_run_that_finds_the_pattern(capsys):
    def f(x):
        print("once")
        return x * x

    s2s.jacobian(f, sparse=True).plan(LINE)
    assert capsys.readouterr().out == ""


def test_what_is_refused():
    with pytest.raises(s2s.TypeMismatchError, match="jacobian with sparse=True and has_aux=True"):
        s2s.jacobian(loop_stencil, has_aux=True, sparse=True)
    with pytest.raises(
        s2s.TypeMismatchError,
        match="with respect to n, which is or holds an integer: it has no derivative",
    ):
        s2s.jacobian(lambda n: n * 1.0, sparse=True)(3)
    with pytest.raises(s2s.UnsupportedError, match="with respect to z, which is complex"):
        s2s.jacobian(lambda z: z * 1.0, sparse=True)(np.ones(3) * 1j)
    with pytest.raises(s2s.UnsupportedError, match="transform first and ask for it last"):
        s2s.grad(s2s.jacobian(loop_stencil, sparse=True))(LINE, 0.7)


@pytest.mark.compile
def test_sweeps_are_compiled():
    for transform, f, args in (
        (s2s.jacobian, upwind, (LINE, 0.7)),
        (s2s.hessian, rosenbrock, (LINE,)),
        (s2s.jacobian, scattered, (LINE, 0.7)),
    ):
        fast = s2s.jit(transform(f, sparse=True))
        np.testing.assert_allclose(
            fast(*args).toarray(), transform(f)(*args), rtol=1e-12, atol=1e-12
        )
        assert fast(*args).nnz == transform(f, sparse=True)(*args).nnz


@pytest.mark.compile
def test_bundle_adjustment_compiled():
    fast = s2s.jit(s2s.jacobian(project_loop, (0, 1), sparse=True))
    for found, wanted in zip(fast(*SCENE), s2s.jacobian(project_loop, (0, 1))(*SCENE)):
        np.testing.assert_allclose(found.toarray(), wanted.reshape(16, -1), rtol=1e-12, atol=1e-13)
