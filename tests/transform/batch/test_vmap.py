"""vmap against stacked calls: array style where lanes agree, lane style where they do not, in both
modes.
"""

import math

import numpy as np
import pytest

import s2s
from s2s import passes
from s2s.errors import ShapeMismatchError, TypeMismatchError

rng = np.random.default_rng(7)
A, V, M = rng.normal(size=(5, 4)), rng.normal(size=(6, 4)), rng.normal(size=(6, 3, 4))
S = rng.uniform(0.5, 3.0, size=6)


def stacked(f, in_axes, args, out_axes=0):
    """What vmap means: one call per lane, and the results stacked."""
    count = next(np.shape(x)[a] for x, a in zip(args, in_axes) if a is not None)
    lanes = [
        f(*(x if a is None else np.take(x, k, axis=a) for x, a in zip(args, in_axes)))
        for k in range(count)
    ]
    if isinstance(lanes[0], tuple):
        return tuple(
            np.stack([lane[k] for lane in lanes], axis=out_axes) for k in range(len(lanes[0]))
        )
    return np.stack(lanes, axis=out_axes)


def check(f, in_axes, *args, tolerance=1e-12):
    """vmap(f) equals stacked calls; so does vmap(grad) of a sum of f; and grad of vmap matches the
    sum of grads.
    """
    agree(s2s.vmap(f, in_axes)(*args), stacked(f, in_axes, args), tolerance)


def check_gradients(f, in_axes, *args, tolerance=1e-10):
    """Reverse and forward mode, inside and outside of vmap, against lane by lane."""
    wrt = tuple(k for k, x in enumerate(args) if np.asarray(x).dtype.kind == "f")

    def total(*xs):
        return np.sum(f(*xs))

    gradient = s2s.grad(total, wrt)
    lanes = stacked(gradient, in_axes, args)
    agree(s2s.vmap(gradient, in_axes)(*args), lanes, tolerance)
    batched = s2s.vmap(f, in_axes)

    def total_of_all(*xs):
        return np.sum(batched(*xs))

    whole = s2s.grad(total_of_all, wrt)(*args)
    for k, bar, lane_bars in zip(wrt, whole, lanes):
        axis = in_axes[k]
        expected = np.sum(lane_bars, axis=0) if axis is None else np.moveaxis(lane_bars, 0, axis)
        agree(bar, expected, tolerance)
    dots = [
        rng.normal(size=np.shape(x)) if k in wrt else np.zeros(np.shape(x))
        for k, x in enumerate(args)
    ]
    _, y_dot = s2s.jvp(total_of_all, args, tuple(d if np.ndim(d) else float(d) for d in dots))
    agree(y_dot, sum(np.sum(bar * dots[k]) for k, bar in zip(wrt, whole)), 1e-8)


def agree(got, expected, tolerance):
    if isinstance(expected, tuple):
        assert len(got) == len(expected)
        for a, b in zip(got, expected):
            agree(a, b, tolerance)
    else:
        assert np.shape(got) == np.shape(expected)
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


# -------------------------------------------------------------------------------------- array style


def layer(W, x):
    return np.tanh(W @ x)


def test_matrix_times_vector_becomes_one_matrix_product():
    batched = s2s.vmap(layer, (None, 0))
    agree(batched(A, V), stacked(layer, (None, 0), (A, V)), 1e-12)
    assert "np.tanh(x @ W.T)" in batched.source
    assert "for" not in batched.source.split('"""')[2]


@pytest.mark.lengthy
def test_gradient_of_matrix_times_vector():
    check_gradients(layer, (None, 0), A, V)
    check_gradients(layer, (None, 1), A, np.ascontiguousarray(V.T))


def scaled(x, a):
    return a * x + np.sum(x) - x.shape[0]


def standardised(x):
    return (x - np.mean(x)) / np.sqrt(np.var(x) + 1.0)


def table(m):
    return np.sum(m, axis=1) + np.max(m, axis=-1) + m[:, 0] + m.T[1]


def quadratic(m, v):
    return v @ (m.T @ m) @ v


def outer_of(v, w):
    return np.outer(v, w).ravel()


def chosen(v):
    return np.where(v > 0.0, v, 0.1 * v)[::-1]


def joined(v, a):
    return np.concatenate([v, np.array([a, 2.0 * a])])


def written(v, a):
    w = v.copy()
    w[1] = a
    w[2:] += 3.0 * v[0]
    return w


def recurrence(v):
    s = np.zeros(len(v))
    for i in range(1, len(v)):
        s[i] = 0.5 * s[i - 1] + v[i] * v[i]
    return s


def shared_branch(v, n):
    if n > 2:
        v = v * 2.0
    else:
        v = np.sin(v)
    return v


def by_index(v, k):
    return v[k] * v[k - 1]


def from_table(t, k):
    return t[k] + 1.0


def column(t, k):
    return t[1:, k] * t[0, k]


def part_of_row(t, k):
    return t[k, 1:3] + t[k, -1]


def halved_row(t, k):
    t = t.copy()
    t[k, 1:] *= 0.5
    t[0, k] += 1.0
    return t


def logsumexp(v):
    m = np.max(v)
    return m + np.log(np.sum(np.exp(v - m)))


ARRAY_STYLE = [
    (scaled, (0, 0), (V, S)),
    (scaled, (0, None), (V, 2.0)),
    (scaled, (None, 0), (V[0], S)),
    (standardised, (0,), (V,)),
    (table, (0,), (M,)),
    (quadratic, (0, 0), (M, V)),
    (quadratic, (0, None), (M, V[0])),
    (quadratic, (None, 0), (M[0], V)),
    (outer_of, (0, 0), (V, V[::-1].copy())),
    (outer_of, (None, 0), (V[0], V)),
    (chosen, (0,), (V,)),
    (joined, (0, 0), (V, S)),
    (joined, (None, 0), (V[0], S)),
    (written, (0, 0), (V, S)),
    (written, (None, 0), (V[0], S)),
    (recurrence, (0,), (V,)),
    (shared_branch, (0, None), (V, 3)),
    (shared_branch, (0, None), (V, 1)),
    (logsumexp, (0,), (V,)),
    (logsumexp, (1,), (V,)),
]


@pytest.mark.parametrize(
    "f, in_axes, args", ARRAY_STYLE, ids=[f"{f.__name__}-{a}" for f, a, _ in ARRAY_STYLE]
)
def test_array_style(f, in_axes, args):
    check(f, in_axes, *args)
    check_gradients(f, in_axes, *args)


@pytest.mark.parametrize("f, in_axes, args", [
    (by_index, (0, 0), (V, np.array([0, 1, 2, 3, -1, 1]))),
    (by_index, (None, 0), (V[0], np.array([0, 1, 2, 3, -1, 1]))),
    (from_table, (None, 0), (A, np.array([0, 4, 2]))),
    (from_table, (0, 0), (M, np.array([0, 1, 2, 2, 1, 0]))),
    (column, (0, 0), (M, np.array([0, 1, 2, 3, 1, 0]))),
    (column, (None, 0), (A, np.array([0, 3, 1]))),
    (part_of_row, (0, 0), (M, np.array([0, 1, 2, 2, 1, 0]))),
    (part_of_row, (None, 0), (A, np.array([0, 4]))),
    (halved_row, (0, 0), (M, np.array([0, 1, 2, 2, 1, 0]))),
    (halved_row, (None, 0), (A, np.array([0, 3]))),
])
def test_index_that_differs_from_lane_to_lane(f, in_axes, args):
    check(f, in_axes, *args)
    check_gradients(f, in_axes, *args)


def test_out_axes():
    got = s2s.vmap(layer, (None, 0), 1)(A, V)
    agree(got, stacked(layer, (None, 0), (A, V), 1), 1e-12)


def test_results_that_no_lane_changes():
    agree(
        s2s.vmap(lambda x, y: (x + 1.0, y * 2.0), (0, None))(S, 3.0), (S + 1.0, np.full(6, 6.0)), 0
    )


def test_vmap_of_vmap():
    pairs = s2s.vmap(s2s.vmap(lambda a, b: a * np.exp(-b), (None, 0)), (0, None))
    agree(pairs(S, V[0]), S[:, None] * np.exp(-V[0]), 1e-12)


def test_one_lane_and_none():
    agree(s2s.vmap(layer, (None, 0))(A, V[:1]), np.tanh(V[:1] @ A.T), 1e-12)
    assert s2s.vmap(layer, (None, 0))(A, V[:0]).shape == (0, 5)


# --------------------------------------------------------------------------------------- lane style


def newton(a, tolerance):
    x = a + 1.0
    while abs(x * x - a) > tolerance:
        x = 0.5 * (x + a / x)
    return x


def trips(a, tolerance):
    n = 0
    x = a + 1.0
    while abs(x * x - a) > tolerance:
        x = 0.5 * (x + a / x)
        n += 1
    return n


def relu(x):
    if x > 1.5:
        y = x * x
    elif x > 1.0:
        y = 3.0 * x
    else:
        y = np.sin(x)
    return y


def power_by_loop(x, n):
    y = 1.0
    for _ in range(n):
        y = y * x
    return y


def bisection(c):
    lo, hi = 0.0, 4.0
    for _ in range(60):
        middle = 0.5 * (lo + hi)
        if middle * middle > c:
            hi = middle
        else:
            lo = middle
    return lo


def early(x):
    for k in range(10):
        x = x * 1.5
        if x > 10.0:
            return x * k
    return -x


def relaxed(v, tolerance):
    v = v.copy()
    while np.sum(v * v) > tolerance:
        for i in range(1, len(v)):
            v[i] = 0.5 * (v[i] + 0.1 * v[i - 1])
        v[0] = 0.5 * v[0]
    return v


def mixed(W, x, tolerance):
    y = W @ x
    s = np.sum(y * y) + 1.0
    while s > tolerance:
        s = math.sqrt(s)
    return y * s


def inner_pair(x, n):
    total = 0.0
    for _ in range(n):
        total, x = total + x * x, 0.5 * x
    return total, x


def of_pair(x, n):
    a, b = inner_pair(x, n)
    return a * b


def replaced(x, y, a, n):
    """The loop over `a`, between two that lanes run each for itself, is the same in every lane."""
    z = y
    for _ in range(n):
        z = z * y
    for _ in a:
        x = 1.0
    return x + z + a[4] ** 2


LANE_STYLE = [
    (of_pair, (0, 0), (S, np.array([0, 1, 2, 3, 4, 5]))),
    (replaced, (None, 0, None, 0), (0.3, S, S, np.array([0, 1, 2, 3, 4, 5]))),
    (newton, (0, None), (S, 1e-12)),
    (newton, (0, 0), (S, np.full(6, 1e-12))),
    (relu, (0,), (S,)),
    (power_by_loop, (0, 0), (S, np.array([0, 1, 2, 3, 4, 5]))),
    (early, (0,), (np.append(S, 20.0),)),
    (relaxed, (0, None), (V, 0.01)),
    (mixed, (None, 0, None), (A, V, 1.2)),
]


@pytest.mark.parametrize(
    "f, in_axes, args", LANE_STYLE, ids=[f"{f.__name__}-{a}" for f, a, _ in LANE_STYLE]
)
def test_lane_style(f, in_axes, args):
    check(f, in_axes, *args)
    check_gradients(f, in_axes, *args)


def test_branch_in_a_loop_that_lanes_share():
    check(bisection, (0,), S)


def test_each_lane_has_its_own_trip_count():
    a = np.array([1.0, 2.0, 1e6, 1e12])
    counts = s2s.vmap(trips, (0, None))(a, 1e-3)
    agree(counts, np.array([trips(x, 1e-3) for x in a]), 0)
    assert len(set(counts)) > 2


def test_divergent_code_reads_as_the_user_wrote_it():
    batched = s2s.vmap(newton, (0, None))
    batched(S, 1e-12)
    body = batched.source.split('"""')[2]
    assert body.count("for lane in range(") == 1
    assert "while abs(x_1 * x_1 - a_1) > tolerance:" in body


def test_matrix_product_stays_one_beside_divergent_code():
    batched = s2s.vmap(mixed, (None, 0, None))
    batched(A, V, 1.2)
    before, _, _ = batched.source.partition("for lane")
    assert "x @ W.T" in before


def test_second_order_through_vmap():
    curvature = s2s.vmap(s2s.grad(s2s.grad(newton)), (0, None))
    agree(curvature(S, 1e-14), -0.25 * S ** -1.5, 1e-6)


# ----------------------------------------------------------------------------------------- compiled


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, in_axes, args",
    [(layer, (None, 0), (A, V)), *LANE_STYLE[1:2], *LANE_STYLE[-2:]],
    ids=["layer", "newton", "relaxed", "mixed"],
)
def test_compiled(f, in_axes, args):
    def total(*xs):
        return np.sum(f(*xs))

    agree(s2s.jit(s2s.vmap(f, in_axes))(*args), stacked(f, in_axes, args), 1e-12)
    gradient = s2s.vmap(s2s.grad(total), in_axes)
    agree(s2s.jit(gradient)(*args), gradient(*args), 1e-10)


def test_uniform_loop_around_lanes_that_stop_by_themselves():
    def f(x):
        for _ in range(3):
            while abs(x) > 1.1:
                x = 0.9 * np.sqrt(abs(x))
            x = x + np.sum(np.array([x * x, x]))
        return x

    check_gradients(f, (0,), S)


# ------------------------------------------------------------------------------------------- errors


def test_lanes_of_different_lengths_are_refused():
    f = s2s.vmap(lambda v, k: 2 * v[:k], (0, 0))
    agree(f(V, np.full(6, 3)), 2 * V[:, :3], 0)
    with pytest.raises(ValueError, match="lanes of vmap make arrays of different shapes"):
        f(V, np.array([1, 2, 3, 1, 2, 3]))
    with pytest.raises(ValueError, match="vmap over no lanes, and only a lane tells the shape"):
        f(V[:0], np.zeros(0, int))


@pytest.mark.parametrize(
    "transform", [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)]
)
def test_arguments_with_different_numbers_of_lanes(transform):
    product = transform(s2s.vmap(lambda x, n: power_by_loop(x, n)))
    agree(product(S, np.arange(6)), S ** np.arange(6), 1e-12)
    with pytest.raises(
        ShapeMismatchError, match=r"x.shape\[0\] is 6 and n.shape\[0\] is 7\n.*equally many lanes"
    ):
        product(S, np.arange(7))
    with pytest.raises(TypeMismatchError, match="another number of lanes"):
        product(S, np.arange(1))


def test_no_batched_argument():
    with pytest.raises(TypeMismatchError, match="no batched argument"):
        s2s.vmap(layer, (None, None))(A, V[0])


def test_axis_that_is_not_there():
    with pytest.raises(TypeMismatchError, match="vmap over axis 1 of x"):
        s2s.vmap(layer, (None, 1))(A, V[0])


def test_lengths_are_asked_of_values_in_scope():
    """The extent of a slice is met in two loops; only one of them is open when a lane's result
    needs it.
    """

    def shifted(x, a):
        for _ in range(3):
            a[3:] = a[:2]
        return np.sum(a) * x

    x, a = np.array([0.5, 2.0]), np.arange(5.0)
    with passes.checked():
        value, (x_bar, a_bar) = s2s.vmap(s2s.value_and_grad(shifted, (0, 1)), (0, None))(x, a)
    for lane in range(2):
        expected = s2s.value_and_grad(shifted, (0, 1))(x[lane], a)
        np.testing.assert_allclose(value[lane], expected[0])
        np.testing.assert_allclose(x_bar[lane], expected[1][0])
        np.testing.assert_allclose(a_bar[lane], expected[1][1])


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)], ids=str)
@pytest.mark.parametrize(
    "product, ranks",
    [
        (np.matmul, (2, 3)),
        (np.matmul, (3, 2)),
        (np.matmul, (3, 3)),
        (np.linalg.solve, (2, 3)),
        (np.linalg.solve, (3, 3)),
        (np.matmul, (1, 2)),
        (np.matmul, (2, 1)),
        (np.matmul, (1, 3)),
        (np.matmul, (3, 1)),
    ],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_products_of_matrices_with_stacks_of_as_many(product, ranks, axes):
    rng = np.random.default_rng(3)  # all extents alike, so that no shape gives a wrong axis away
    a, b = (rng.normal(size=(3,) * (own + (axis is not None))) for own, axis in zip(ranks, axes))
    lanes = [
        product(a if axes[0] is None else a[k], b if axes[1] is None else b[k]) for k in range(3)
    ]
    np.testing.assert_allclose(s2s.vmap(product, in_axes=axes)(a, b), np.stack(lanes), rtol=1e-12)


def test_a_write_of_what_has_no_known_rank():
    def f(a, b):
        z = a * 1.0
        z[:, 1:] = b[:, None] if b.shape[0] == a.shape[0] else 2.0
        return np.sum(z**2)

    a, b = np.arange(16.0).reshape(2, 4, 2), np.arange(8.0).reshape(2, 4)
    np.testing.assert_array_equal(
        s2s.vmap(s2s.grad(f))(a, b), np.stack([s2s.grad(f)(*each) for each in zip(a, b)])
    )


def of_many_defaults(x, y, p=2.0, mode="square", n=2, w=None, *, q=3.0):
    for _ in range(n):
        x = x * x if mode == "square" else x
    return np.sum(x * y * (1.0 if w is None else w)) * p * q


@pytest.mark.parametrize("through", [lambda t: t, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_defaults_are_what_all_lanes_share(through):
    """Without an entry of their own in `in_axes`, as in JAX."""
    x, y = np.arange(6.0).reshape(3, 2) / 3, np.array([0.5, -1.0])
    batched = through(s2s.vmap(of_many_defaults, in_axes=(0, None)))
    np.testing.assert_allclose(batched(x, y), [of_many_defaults(row, y) for row in x])
    np.testing.assert_allclose(
        batched(x, y, 1.5, n=3), [of_many_defaults(row, y, 1.5, n=3) for row in x]
    )
    each = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(
        batched(x, y, w=each, q=each),
        [of_many_defaults(row, y, w=w, q=w) for row, w in zip(x, each)],
    )
    gradient = s2s.grad(of_many_defaults, argnums=(0, 1))
    for got, wanted in zip(
        through(s2s.vmap(gradient))(x, x), zip(*(gradient(row, row) for row in x))
    ):
        np.testing.assert_allclose(got, wanted)
    with pytest.raises(TypeMismatchError, match="7 arguments and in_axes 1 entries"):
        s2s.vmap(of_many_defaults, in_axes=(0,))(x, y)


def weighed(x, w=np.array([1.0, 2.0])):  # noqa: B008  the default is an array
    return np.sum(x * w)


def test_an_array_that_is_a_default_may_be_taken_two_ways():
    """It was taken apart, one element for each lane."""
    x = np.array([[0.5, 1.0], [-1.0, 2.0]])
    for in_axes in (0, (0,)):
        with pytest.raises(TypeMismatchError, match="whether lanes share w"):
            s2s.vmap(weighed, in_axes)(x)
        np.testing.assert_allclose(s2s.vmap(weighed, in_axes)(x, w=x), np.sum(x * x, axis=1))
    np.testing.assert_allclose(s2s.vmap(weighed, (0, None))(x), [2.5, 3.0])
    np.testing.assert_allclose(s2s.vmap(weighed, (0, 0))(x, np.ones(2)), [1.5, 1.0])


CUBES, SMALL = (
    np.cos(np.arange(54.0)).reshape(6, 3, 3) + 2.0 * np.eye(3),
    np.sin(np.arange(18.0)).reshape(6, 3),
)


def check_whichever_has_lanes(*functions):
    for f in functions:
        for in_axes, args in [
            ((0, 0), (CUBES, SMALL)),
            ((0, None), (CUBES, SMALL[0])),
            ((None, 0), (CUBES[0], SMALL)),
        ]:
            check(f, in_axes, *args)


def test_products_and_solutions_whichever_has_lanes():
    check_whichever_has_lanes(
        lambda a, b: a @ b, lambda a, b: b @ a, lambda a, b: np.linalg.solve(a, b)
    )


def test_joined_arrays_whichever_has_lanes():
    check_whichever_has_lanes(
        lambda a, b: np.concatenate((a, b[None]), axis=0),
        lambda a, b: np.concatenate((b[:, None], a), axis=-1),
        lambda a, b: np.concatenate((a, a * b), axis=1),
    )


def test_products_of_vectors_and_stacks_whichever_have_lanes():
    stacks = np.sin(np.arange(72.0)).reshape(6, 2, 2, 3)
    for in_axes, args in [
        ((0, 0), (SMALL, SMALL[::-1])),
        ((0, None), (SMALL, SMALL[0])),
        ((None, 0), (SMALL[0], SMALL)),
        ((0, 0), (stacks, SMALL)),
        ((0, None), (stacks, SMALL[0])),
        ((None, 0), (stacks[0], SMALL)),
    ]:
        check(lambda a, b: a @ b, in_axes, *args)


def test_ops_along_an_axis_and_along_all():
    for f in (np.cumsum, np.argmax, np.argmin, np.sort, np.flip):
        check(lambda x, f=f: f(x), (0,), SMALL)
        check(lambda x, f=f: f(x, axis=0), (0,), CUBES)
    check(lambda x: np.cumsum(x), (0,), CUBES)
    check(lambda x: np.argmax(x), (0,), CUBES)
    for in_axes, args in [
        ((0, 0), (SMALL, np.arange(6))),
        ((0, None), (SMALL, 2)),
        ((None, 0), (SMALL[0], np.arange(6))),
    ]:
        check(lambda x, k: np.roll(x, k), in_axes, *args)


def cut_short(x, n):
    u, t = x, 0.0
    for k in range(4):
        if k == n:
            break
        t = t + np.sin(t + u) * u
        u = u * 0.9
    return t


def test_tapes_of_loops_that_lanes_leave_at_other_trips():
    check(cut_short, (0, 0), S, np.arange(6))
    check_gradients(cut_short, (0, 0), S, np.arange(6))


def test_loops_that_lanes_share_stay_one():
    def f(x, n):
        k = 0
        while k < n:
            x = np.sin(x) * x
            k += 1
        return x

    check_gradients(f, (0, None), S, 3)
    assert "lane" not in s2s.vmap(s2s.grad(f), (0, None)).lower(S, 3).source.split('"""')[2]


def test_each_lane_prints(capsys):
    def f(x):
        seen = []
        while x > 0.3:
            seen.append(x)
            x = x * 0.8
        print("seen")
        return sum(seen)

    found = s2s.vmap(f)(S)
    assert capsys.readouterr().out == len(S) * "seen\n"
    agree(found, stacked(f, (0,), (S,)), 1e-14)


def bound_in_some_lanes(x, v, W):
    if x > 1.5:
        u = v * x
        while u[0] > 0.1:
            u = u * 0.5
    t = np.sum(np.tanh(W @ v))  # of all lanes at once, between two loops over them
    if x > 1.5:
        t = t + np.sum(np.sin(u))
        while t > 0.3:
            t = t * 0.5
    return t


def test_names_that_some_lanes_leave_unbound():
    W = np.sin(np.arange(9.0)).reshape(3, 3)
    assert 0 < sum(S > 1.5) < len(S)
    check(bound_in_some_lanes, (0, 0, None), S, SMALL, W)
    check_gradients(bound_in_some_lanes, (0, 0, None), S, SMALL, W)


def test_tuples_from_lists_that_differ_from_lane_to_lane():
    def f(x, v):
        seen = [(x, v)]
        while x > 0.6:
            x = x * 0.7
            seen.append((x, v * x))
        return seen[-1], seen[0]

    found = s2s.vmap(f)(S, SMALL)
    for k, (x, v) in enumerate(zip(S, SMALL)):
        for got, wanted in zip(found, f(x, v)):
            agree(tuple(each[k] for each in got), wanted, 1e-14)


def summed_up(x):
    return sum(x)


def mean_of_none(x):
    return sum(x) / (1.0 + len(x))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(3, 0), (0, 0), (2, 3)])
def test_pythons_sum_of_lanes_without_elements_has_the_axis_of_lanes(shape, dtype):
    x = np.ones(shape, dtype)
    for f in (summed_up, mean_of_none):
        found = s2s.vmap(f)(x)
        np.testing.assert_array_equal(found, [f(lane) for lane in x])
        assert found.shape == shape[:1]


def test_pythons_sum_of_nothing_in_nested_lanes_and_derivatives():
    x = np.ones((2, 3, 0))
    np.testing.assert_array_equal(s2s.vmap(s2s.vmap(summed_up))(x), np.zeros((2, 3)))
    np.testing.assert_array_equal(
        s2s.vmap(s2s.vmap(lambda x: sum(x, 1.5)))(x), np.full((2, 3), 1.5)
    )
    value, slope = s2s.vmap(s2s.value_and_grad(summed_up))(x[0])
    assert value.shape == (3,) and slope.shape == (3, 0)
    value, dot = s2s.jvp(s2s.vmap(summed_up), (x[0],), (x[0],))
    assert value.shape == dot.shape == (3,)
    y = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(s2s.vmap(s2s.grad(lambda y: sum(y * y)))(y), 2 * y)


@pytest.mark.compile
def test_pythons_sum_of_nothing_compiled():
    for x in (np.ones((3, 0)), np.arange(6.0).reshape(3, 2)):
        np.testing.assert_array_equal(s2s.jit(s2s.vmap(summed_up))(x), np.sum(x, axis=1))
