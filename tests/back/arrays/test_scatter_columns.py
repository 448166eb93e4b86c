"""Columns of picked rows are added where the rows stand: nobody makes an array of the rows."""

import numpy as np
import pytest

import s2s
from s2s.ir.graph import Function, walk
from s2s.ops.arrays.create import zeros_like
from s2s.ops.arrays.index import additem, put, setitem, take
from s2s.ops.core.copy import copy

from ..loops.test_distribute_gathers import central, wave
from ..test_lowering import call
from .test_move_reshapes import check

RNG = np.random.default_rng(0)
X, PICKED, V, W = (
    RNG.normal(size=(5, 3)),
    np.array([4, 0, -1, 4, 2, 0]),
    RNG.normal(size=6),
    RNG.normal(size=6),
)


def makes_rows(function: Function) -> bool:
    """Whether the loop form has an array of as many rows as are picked."""
    return any(op.name == "buffer" and len(op.output.type.dims) > 1 for op in walk(function.block))


def columns(*written):
    """A program that adds to picked rows an array of zeros in which these are written: ops,
    columns, and what is written of x, y, z, u, v.
    """
    def body(*arrays):
        x, picked, *_ = arrays
        rows = zeros_like(take(x, picked))
        for record, k, which in written:
            rows = record(rows, which(*arrays), k, pattern=("...", "i"))
        return additem(copy(x), rows, picked, pattern=("i",))
    return body


def first(x, picked, v, w):
    return v


def second(x, picked, v, w):
    return call(np.sin, w) * v


def number(x, picked, v, w):
    return 2.5


@pytest.mark.parametrize("body", [
    columns((setitem, 0, first)),
    columns((setitem, 2, first), (additem, 0, second)),
    columns((additem, 1, second), (setitem, 1, first), (additem, 2, number)),
])
def test_columns_are_added_where_the_rows_stand(body):
    assert not makes_rows(check(body, X, PICKED, V, W))


@pytest.mark.parametrize("body", [
    columns((setitem, 0, first), (additem, 0, second)),
    columns((setitem, -1, first), (setitem, 2, second)),
], ids=["added to twice", "counted from the end"])
def test_columns_that_may_be_one_are_added_in_their_row_first(body):
    assert makes_rows(check(body, X, PICKED, V, W))


def test_rows_that_others_read_are_made():
    def body(x, picked, v, w):
        rows = setitem(zeros_like(take(x, picked)), v, 1, pattern=("...", "i"))
        return additem(copy(x), rows, picked, pattern=("i",)), rows * 2.0

    assert makes_rows(check(body, X, PICKED, V, W))


def test_columns_that_are_overwritten_meanwhile_are_what_they_were():
    def body(x, picked, v, w):
        v = v * 2.0
        rows = setitem(zeros_like(take(x, picked)), v, 1, pattern=("...", "i"))
        v = put(v, 0, 100.0)
        return additem(copy(x), rows, picked, pattern=("i",)), v

    check(body, X, PICKED, V, W)


def test_rows_that_only_broadcast_to_those_picked_are_made():
    def body(x, picked, v, w):
        rows = setitem(call(np.zeros, (1, 3)), call(np.sum, v), 1, pattern=("...", "i"))
        return additem(copy(x), rows, picked, pattern=("i",))

    assert makes_rows(check(body, X, PICKED, V, W))


def test_integers_are_added_to_integers_alone():
    def body(x, picked, v, w):
        rows = setitem(zeros_like(take(x, picked)), v, 1, pattern=("...", "i"))
        return additem(copy(x), rows, picked, pattern=("i",))

    check(body, np.arange(15).reshape(5, 3), PICKED, V, W)


# ---------------------------------------------------------------------------------- whole programs


def springs(x, edges, rest):
    """Springs in the plane, told by the columns of their ends."""
    a, b = x[edges[:, 0]], x[edges[:, 1]]
    dx, dy = a[:, 0] - b[:, 0], a[:, 1] - b[:, 1]
    stretch = np.sqrt(dx * dx + dy * dy + 1e-3) - rest
    return 0.5 * np.sum(stretch * stretch) + np.sum(np.exp(-dx) * np.sin(b[:, 2]))


def of_two_indices(x, rows, columns, w):
    p = x[rows, columns]
    return np.sum(np.tanh(p[:, 1]) * w * p[:, 0])


def of_matrices(x, picked, w):
    """Of each matrix that is picked the last column of each row."""
    m = x[picked]
    return np.sum(np.cos(m[:, :, 2]) * w[:, None] + m[..., 0] ** 2)


def one_after_the_other(x, picked, w):
    """A table that is read again once it has been written to."""
    x = x.copy()
    for k in range(2):
        r = x[picked]
        x[k] += np.mean(np.sin(r[:, 0] * w) + r[:, 2])
    return np.sum(x * x)


N = np.arange(700)
PROGRAMS = {
    "springs": (
        springs,
        lambda: (
            wave(60).reshape(20, 3),
            np.stack([N % 20 - 20, (N * 7 + 1) % 20], axis=1),
            wave(700) ** 2,
        ),
    ),
    "of two indices": (
        of_two_indices,
        lambda: (wave(120).reshape(5, 8, 3), N % 5, -(N % 8) - 1, wave(700)),
    ),
    "of matrices": (of_matrices, lambda: (wave(60).reshape(5, 4, 3), N % 5, wave(700))),
    "one after the other": (
        one_after_the_other,
        lambda: (wave(15).reshape(5, 3), N % 5, wave(700)),
    ),
    "of nothing": (springs, lambda: (wave(60).reshape(20, 3), np.zeros((0, 2), int), wave(0))),
}


@pytest.mark.compile
@pytest.mark.parametrize("f, args", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("parallel", [False, True])
def test_programs(f, args, parallel):
    args = args()
    gradient = s2s.value_and_grad(f)
    for found in (gradient(*args), s2s.jit(gradient, parallel=parallel)(*args)):
        np.testing.assert_allclose(found[0], f(*args), rtol=1e-12)
        np.testing.assert_allclose(
            found[1], central(lambda x: f(x, *args[1:]), args[0]), rtol=1e-6, atol=1e-7
        )
    second = s2s.jvp(s2s.grad(f))
    along = [np.cos(args[0]), *(np.zeros_like(x) for x in args[1:])]
    for a, b in zip(second(*args, *along), s2s.jit(second)(*args, *along)):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["springs", "of two indices"])
def test_what_is_scattered_is_kept_for_a_strip_at_most(name):
    f, args = PROGRAMS[name]
    text = s2s.grad(f).lower(*args()).loops
    made = [
        line.split("np.")[1]
        for line in text.splitlines()
        if "= np.empty" in line or "= np.zeros" in line
    ]
    # the result alone has more than one axis
    assert sum(each.startswith("zeros((") for each in made) == 1 and "// 256" in text, made
    assert all("256" in each or "zeros(" in each for each in made), made


@pytest.mark.lengthy
def test_single_precision_stays_single():
    args = [x.astype(np.float32) if x.dtype == np.float64 else x for x in PROGRAMS["springs"][1]()]
    gradient = s2s.grad(springs)
    found = s2s.jit(gradient)(*args)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, gradient(*args), rtol=2e-4, atol=2e-4)


@pytest.mark.lengthy
def test_what_does_not_fit_raises():
    x, edges, rest = PROGRAMS["springs"][1]()
    gradient = s2s.jit(s2s.grad(springs))
    gradient(x, edges, rest)
    with pytest.raises(IndexError):
        gradient(x[:, :2].copy(), edges, rest)
    with pytest.raises(IndexError):
        gradient(x, edges + 20, rest)
    with pytest.raises(ValueError):
        gradient(x, edges, rest[:-1])

    def wider(x, picked, v):
        rows = np.zeros((len(picked), 4))
        rows[:, 1] = v
        x = x.copy()
        np.add.at(x, picked, rows)
        return x

    for f in (wider, s2s.jit(wider)):
        with pytest.raises(ValueError):
            f(np.ones((5, 3)), PICKED, V)
