"""Programs that found something wrong once: each row is what a user wrote, and is judged from every
side.

A program goes through reverse, forward and second order, the text printed before and after a call
run on its own, vmap against calls one by one, and, for those marked so, native code.
"""

import ast

import numpy as np
import pytest
from oracles import central_difference, direction, inner, is_close

import s2s

pytestmark = pytest.mark.slow

X = np.array([0.3, -0.7, 1.2, 0.9, -0.4])
M = np.arange(12.0).reshape(3, 4) * 0.3 - 1.1
COLUMN = np.array([[1.0], [2.0], [0.5]])


def both_broadcast(x, y):
    return np.sum((x + y) * x) + np.sum(x * 2 / (1 + y**2))


def ends_of_slices(x):
    return np.sum(x[::-1] * x) + np.sum(x[-1:0:-2] ** 2) + np.sum(x[-3:] * x[:3]) + np.sum(x[5:])


def new_axes(x):
    return np.sum(x[:, None] * x[None, :] * np.arange(len(x))) + np.sum(x[..., None] ** 2)


def triangle(x):
    s = 0.0
    for i in range(len(x)):
        p = 1.0
        for j in range(i):
            p = p * (x[i] - x[j])
            for k in range(j):
                s += x[k] * p
        s = s + p
    return s


def bubble_sort(x):
    a = x.copy()
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return np.sum(a * np.arange(len(a)) ** 2) + a[0] ** 2


def cholesky(A):
    L = np.zeros((len(A), len(A)))
    for i in range(len(A)):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return np.sum(np.log(np.diag(L))) + L[2, 0] ** 2


def writes_and_breaks(x):
    a = x.copy()
    for i in range(1, len(x)):
        a[i] += a[i - 1] ** 2
        if a[i] > 1.3:
            break
        a[i - 1] *= 0.5
    return np.sum(a**2) * i


def views_of_rows_and_columns(m):
    a = m.copy()
    for i in range(1, len(a)):
        row, above, column = a[i], a[i - 1], a[:, i]
        row += above * 0.5
        row[0] = row[1] * above[0]
        column *= 2.0
    return np.sum(a**2)


def three_buffers(u):
    before, now, after = u.copy(), u.copy(), np.empty_like(u)
    for _ in range(5):
        after[0] = after[-1] = 0.0
        for i in range(1, len(u) - 1):
            after[i] = 2 * now[i] - before[i] + 0.2 * (now[i + 1] - 2 * now[i] + now[i - 1])
        before, now, after = now, after, before
    return np.sum(now**2) + before[1]


def endless_until_it_returns(x):
    a, k = x.copy(), 0
    while True:
        a[k % 5] = np.sin(a[(k + 1) % 5]) + a[k % 5]
        k += 1
        if a[0] > 2 or k > 12:
            return np.sum(a**3)


ROWS = [
    (both_broadcast, X[:4], COLUMN),
    (both_broadcast, X, X[:1, None]),
    (both_broadcast, 2.0, M),
    (both_broadcast, M, M[:, :1]),
    (both_broadcast, X[:1], COLUMN),
    (ends_of_slices, X),
    (new_axes, X),
    (new_axes, X[:1]),
    (triangle, X),
    (writes_and_breaks, X),
    (views_of_rows_and_columns, M),
    (three_buffers, X),
    (endless_until_it_returns, X),
    (bubble_sort, X),
    (cholesky, M @ M.T + 3 * np.eye(3)),
]
LANES = [(triangle, (0,), (M,)), (new_axes, (0,), (M,)), (both_broadcast, (0, 0), (M, COLUMN))]
by_name = {"ids": lambda x: x[0].__name__ if isinstance(x, tuple) else None}


def copies(args):
    return [x.copy() if isinstance(x, np.ndarray) else x for x in args]


def wrt(args):
    return tuple(k for k, x in enumerate(args) if np.asarray(x).dtype.kind == "f")


def directions(args):
    rng = np.random.default_rng(0)
    return [direction(x, rng) if k in wrt(args) else 0 for k, x in enumerate(args)]


def alone(text):
    """The last function of a module's text."""
    names = {}
    exec(compile(text, "<text>", "exec"), names)
    return names[[d.name for d in ast.parse(text).body if isinstance(d, ast.FunctionDef)][-1]]


@pytest.mark.parametrize("row", ROWS, **by_name)
def test_every_mode_agrees_with_differences(row):
    f, *args = row
    dots = directions(args)
    along = [d if k in wrt(args) else None for k, d in enumerate(dots)]
    y, slope = f(*copies(args)), central_difference(f, args, along)
    assert s2s.jvp(f, args, dots)[0] == y and is_close(s2s.jvp(f, args, dots)[1], slope, 1e-6, 1e-7)
    gradient = s2s.grad(f, argnums=wrt(args))
    given = copies(args)
    texts, bars = [gradient.source], gradient(*given)
    assert all(map(np.array_equal, args, given)), "an argument was changed"
    assert is_close(inner(bars, [dots[k] for k in wrt(args)]), slope, 1e-6, 1e-7)
    for text in (*texts, gradient.source):
        for bar, again in zip(bars, alone(text)(*copies(args)), strict=True):
            assert is_close(bar, again, 1e-12)
    weights = directions(bars)
    slope = central_difference(lambda *args: inner(gradient(*args), weights), args, along)
    assert is_close(inner(s2s.jvp(gradient, args, dots)[1], weights), slope, 1e-6, 1e-7)


@pytest.mark.compile
@pytest.mark.parametrize("row", [ROWS[0], ROWS[5]], **by_name)
def test_native_code_agrees(row):
    f, *args = row
    gradient = s2s.grad(f, argnums=wrt(args))
    for a, b in zip(s2s.jit(gradient)(*args), gradient(*args), strict=True):
        assert is_close(a, b, 1e-11)


@pytest.mark.parametrize("row", LANES, **by_name)
def test_lanes_agree_with_calls_one_by_one(row):
    f, axes, args = row
    function = s2s.value_and_grad(f, argnums=wrt(args))
    values, bars = s2s.vmap(function, in_axes=axes)(*args)
    for k in range(len(args[0])):
        value, lane = function(*(x[k] for x in args))
        assert is_close(values[k], value, 1e-12) and is_close(
            tuple(bar[k] for bar in bars), lane, 1e-12
        )


class Model:
    """An object that is called, and has methods and data."""

    def __init__(self, k):
        self.w, self.k = np.arange(5.0), k

    def loss(self, x):
        return np.sum(self.w * x**self.k)

    def __call__(self, x):
        return 2 * self.loss(x)


model = Model(2)


def uses_a_model(x):
    return model(x) + model.loss(x)


def test_objects_that_are_called_are_read_at_each_call():
    global model
    gradient = s2s.grad(uses_a_model)
    for model in (Model(2), Model(3)):  # noqa: F402
        assert is_close(gradient(X), 3 * model.k * model.w * X ** (model.k - 1))
        model.w = model.w + 1
        assert is_close(gradient(X), 3 * model.k * model.w * X ** (model.k - 1))
        assert is_close(s2s.grad(model)(X), 2 * s2s.grad(model.loss)(X))


def rows_swapped(a):
    a = a.copy()
    a[0], a[1] = a[1], a[0]  # row 1 is a view of what row 0 has become
    return np.sum(a * np.arange(len(a)))


def test_what_is_still_to_be_assigned_may_be_a_view():
    x = np.array([3.0, 5.0, 7.0])
    for args in ((x,), (np.stack([x, x * x, x + 1]),)):
        assert s2s.api.as_transformed(rows_swapped)(*args) == rows_swapped(*args)
    text = s2s.api.as_transformed(rows_swapped).source
    assert alone(text)(x) == rows_swapped(x)


@pytest.mark.compile
def test_what_nothing_reads_is_not_assigned_before_a_break():
    """Numba finds no type for such a name."""
    assert is_close(s2s.jit(endless_until_it_returns)(X), endless_until_it_returns(X))


def integer_arithmetic(n, k):
    return np.fmod(n, k) + n**k + n // k


@pytest.mark.compile
def test_native_integers_are_pythons():
    native = s2s.jit(integer_arithmetic)
    for n, k in ((-7, 3), (7, -3), (-7, -3), (2, 10)):
        assert native(n, k) == integer_arithmetic(n, k)
