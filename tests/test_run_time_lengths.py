"""Lengths that only a run knows, 1 among them: values, exceptions and derivatives are those of
Python, interpreted and in loops.

Loops run as Python text, in which an index outside of an array raises.  Where native code raises
what Python does not, the interpreted form answers; that is `elsewhere` here.
"""

from __future__ import annotations

import numpy as np
import pytest

import s2s
from s2s import pipeline
from s2s.back.loop_pipeline import lower
from s2s.runtime.entry.length_agreement import checker

X = np.arange(12.0).reshape(3, 4)
I, J = np.array([0, 2, 0]), np.array([0, 1, 3])
RNG = np.random.default_rng(3)
A, B = RNG.random((2, 3, 2, 2)) + 2 * np.eye(2), RNG.random((2, 3, 2, 2))


def outcome(f, *args):
    """What a call gives, on copies; the exception, if it raises."""
    try:
        with np.errstate(all="ignore"):
            return f(*(x.copy() if isinstance(x, np.ndarray) else x for x in args))
    except Exception as error:
        return error


def in_loops(t):
    """The loops of `t` as a function that Python runs: those that suppose nothing of lengths."""
    def run(*args):
        function = t.lower(*args).function
        ask = checker(function, lambda: None)
        if ask is not None:
            # what it captures has no length
            ask(*args, *[None] * (len(function.params) - len(args)))
        module = pipeline.render(lower(pipeline.flattened(function)), native=True)
        names = dict(module.given)
        exec(module.text, names)
        return names[module.entry](*args)
    return run


def differences(f, args, wrt, h=1e-6):
    found = []
    for k in wrt:
        slope = np.zeros_like(args[k])
        for place in np.ndindex(slope.shape):
            ends = []
            for step in (h, -h):
                moved = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
                moved[k][place] += step
                ends.append(f(*moved))
            slope[place] = (ends[0] - ends[1]) / (2 * h)
        found.append(slope)
    return found


def leaves(x):
    return (
        [leaf for member in x for leaf in leaves(member)] if isinstance(x, (tuple, list)) else [x]
    )


def assert_alike(found, wanted, tolerance=1e-9):
    """Both raise, or both give the same."""
    assert isinstance(found, Exception) is isinstance(wanted, Exception), (found, wanted)
    if not isinstance(wanted, Exception):
        for a, b in zip(leaves(found), leaves(wanted), strict=True):
            assert np.shape(a) == np.shape(b)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def judge(f, args, elsewhere=False):
    """Values and gradients of `f` in loops, interpreted and in lanes are Python's; lanes may be
    refused.

    With `elsewhere` loops may raise what Python does not, as long as they compute nothing else.
    """
    wanted = outcome(f, *args)
    found = outcome(in_loops(s2s.jit(f)), *args)
    if not (elsewhere and isinstance(found, ValueError)):
        assert_alike(found, wanted)
    lanes = [np.stack([x, x]) if isinstance(x, np.ndarray) else x for x in args]
    axes = tuple(0 if isinstance(x, np.ndarray) else None for x in args)
    wanted_lanes = wanted if isinstance(wanted, Exception) else np.stack([wanted, wanted])
    found = outcome(s2s.vmap(f, in_axes=axes), *lanes)
    if not isinstance(found, s2s.UnsupportedError):
        assert_alike(found, wanted_lanes)
    wrt = tuple(k for k, x in enumerate(args) if isinstance(x, np.ndarray) and x.dtype.kind == "f")
    for loss in (lambda y: np.sum(np.sin(y) * y), lambda y: 3.0 * np.sum(y)):
        def number(*xs, loss=loss):
            return loss(f(*xs))

        slopes = outcome(lambda *xs, number=number: differences(number, xs, wrt), *args)
        gradient = s2s.grad(number, argnums=wrt)
        assert_alike(outcome(gradient, *args), slopes, 1e-6)
        found = outcome(in_loops(s2s.jit(gradient)), *args)
        if not (elsewhere and isinstance(found, ValueError)):
            assert_alike(found, slopes, 1e-6)


def put_at_two(x, i, j):
    y = x.copy()
    y[i[i > 0], j] = 7.0
    return y


def put_numbers_at_two(x, i, j):
    y = x.copy()
    y[i[i > 0], j] = x[0, 1:]
    return y


def add_at_two(x, i, j):
    y = x.copy()
    np.add.at(y, (i[i > 0], j), x[0, 1:])
    return y


INDICES = {
    "masked": lambda x, i, j: x[i[i > 0], j],
    "sliced": lambda x, i, j: x[i[:1], j],
    "both": lambda x, i, j: x[i[i > 0], j[j > 2]],
    "the second": lambda x, i, j: x[i, j[j > 2]],
    "with a slice": lambda x, i, j: x[None, i[i > 0], j] * 2.0,
    "unique": lambda x, i, j: x[np.unique(i), j[:2]],
    "of two axes": lambda x, i, j: x[i[:, None], j[j > 2]],
    "one of two axes": lambda x, i, j: x[i[i > 0][:, None], j],
    "put": put_at_two,
    "put numbers": put_numbers_at_two,
    "added": add_at_two,
}


@pytest.mark.parametrize(
    "i",
    [I, np.array([0, 2, 1]), np.array([1, 2, 1]), np.array([0, 0, 0])],
    ids=["one", "two", "three", "none"],
)
@pytest.mark.parametrize("name", INDICES)
def test_arrays_of_indices_of_which_one_may_have_length_one(name, i):
    judge(INDICES[name], (X, i, J))


def add_to_slice(t, y, k, w):
    t = t.copy()
    t[k:k + w] += y
    return t


def add_to_view(t, y, k, w):
    t = t.copy()
    v = t[k:k + w]
    v += y
    return t


def add_to_rest(t, y, k, w):
    t = t.copy()
    t[k:] += y
    return t


def add_and_store(t, y, k, w):
    t = t.copy()
    t[k:k + w] = t[k:k + w] + y
    return t


def store(t, y, k, w):
    t = t.copy()
    t[k:k + w] = y * 2.0
    return t


def multiply_slice(t, y, k, w):
    t = t.copy()
    t[k:k + w] *= y[:w]
    return t


@pytest.mark.parametrize("k, w", [(2, 3), (4, 3), (2, 1), (6, 2), (0, 6)])
@pytest.mark.parametrize(
    "f", [add_to_slice, add_to_view, add_to_rest, add_and_store, store, multiply_slice]
)
def test_what_is_written_to_slices_is_as_long_as_they_are(f, k, w):
    judge(f, (np.arange(6.0), np.array([1.0, 2.0, 4.0]), k, w))


def whole_written(t, y):
    t = t.copy()
    t[:] = y[:-1]
    return t


def row_written(t, y):
    rows = np.zeros((3, len(t)))
    rows[1] = 2.0 * y[1:]
    return rows


def column_written(t, y):
    rows = np.ones((len(t), 2))
    rows[:, 0] = y[1:] * t[0]
    return rows


def written_or_else(t, y):
    rows = np.zeros((3, len(t)))
    try:
        rows[1] = y[1:] * t[0]
    except ValueError:
        rows[0] = t * t
    return rows


def one_written_or_else(t, y):
    one = np.zeros((2, len(t) - 3))
    try:
        one[1, :] = y[1:] * t[0]
    except ValueError:
        one[0] = t[0] ** 2
    return one


@pytest.mark.parametrize("count", [2, 3, 5, 6])
@pytest.mark.parametrize("f", [whole_written, row_written, column_written, written_or_else,
                               one_written_or_else], ids=lambda f: f.__name__)
def test_only_what_is_written_may_have_length_one(f, count):
    judge(f, (np.linspace(0.5, 1.5, 4), np.linspace(1.0, 2.0, count)))


STACKS = {
    "of one": lambda a, b, k: np.linalg.solve(a, b[:, :1]),
    "sliced": lambda a, b, k: np.linalg.solve(a, b[:, :k]),
    "both sliced": lambda a, b, k: np.linalg.solve(a[:, :k], b[:, :k]),
    "matrices sliced": lambda a, b, k: np.linalg.solve(a[:, :k], b),
    "the first axis": lambda a, b, k: np.linalg.solve(a[:k], b),
    "larger": lambda a, b, k: np.linalg.solve(a, b[:, :, :k]),
}


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", STACKS)
def test_stacks_of_systems_of_which_one_may_have_length_one(name, k):
    judge(STACKS[name], (A, B, k), elsewhere=True)


def test_stacks_of_one_are_spread_in_loops():
    """Not by the interpreted form: along an axis that is known to have length 1 the others go
    on.
    """
    a, b = A, B[:, :1]
    text = s2s.jit(lambda a, b: np.linalg.solve(a, b)).lower(a, b).loops
    assert "objmode" not in text and "stays_inside(" not in text


COMPILED = {
    "indices": (INDICES["masked"], (X, I, J)),
    "put": (put_numbers_at_two, (X, I, J)),
    "too short a slice": (add_to_slice, (np.arange(6.0), np.ones(3), 4, 3)),
    "far too long": (add_to_slice, (np.arange(6.0), np.ones(200_000), 2, 3)),
    "a view": (add_to_view, (np.arange(6.0), np.ones(3), 4, 3)),
    "stack": (STACKS["of one"], (A, B, 1)),
    "sliced stack": (STACKS["sliced"], (A, B, 1)),
}


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_native_code_stays_in_its_memory(name, monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "memory")
    f, args = COMPILED[name]
    assert_alike(outcome(s2s.jit(f, cache=False), *args), outcome(f, *args))


def of_masks(product):
    return lambda x, i, j: product(x[i[i > 0]], x[j[j > 0]])


PRODUCTS = {
    "of rows": of_masks(lambda a, b: a.T @ b),
    "of vectors": of_masks(lambda a, b: a[:, 0] @ b[:, 1]),
    "inner": of_masks(lambda a, b: np.inner(a[:, 0], b[:, 1])),
    "inner of rows": of_masks(lambda a, b: np.inner(a.T, b.T)),
    "vdot": of_masks(lambda a, b: np.vdot(a[:, 0], b[:, 1])),
    "a vector": of_masks(lambda a, b: a[:, 0] @ b),
    "a vector behind": of_masks(lambda a, b: a.T @ b[:, 2]),
    "tensordot": of_masks(lambda a, b: np.tensordot(a, b, ((0,), (0,)))),
    "tensordot of two axes": of_masks(lambda a, b: np.tensordot(a, b, 2)),
    "einsum": of_masks(lambda a, b: np.einsum("ij,ik->jk", a, b)),
    "einsum of rows": of_masks(lambda a, b: np.einsum("ij,ij->i", a, b)),
    "einsum of vectors": of_masks(lambda a, b: np.einsum("i,i->", a[:, 0], b[:, 1])),
    "sums": of_masks(lambda a, b: np.sum(a * b)),
}


@pytest.mark.parametrize(
    "i, j",
    [
        ([1, 2, 1], [2, 1, 1]),
        ([1, 2, 1], [1, 1, 0]),
        ([1, 2, 1], [1, 0, 0]),
        ([1, 0, 0], [1, 2, 0]),
        ([0, 0, 2], [1, 0, 0]),
    ],
)
@pytest.mark.parametrize("name", PRODUCTS)
def test_axes_that_are_summed_over_are_equally_long(name, i, j):
    """A product of elements would spread one of length 1, and a cotangent would be as long as the
    other operand.
    """
    judge(PRODUCTS[name], (X, np.array(i), np.array(j)))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y, k: x[:k] @ y,
        lambda x, y, k: y @ x[:k],
        lambda x, y, k: np.dot(x[:k], y[:2]),
        lambda x, y, k: np.outer(x, x)[:, :k] @ y,
        lambda x, y, k: y @ np.outer(x, x)[:k],
    ],
    ids=["first", "second", "both", "matrix", "rows"],
)
def test_products_of_slices(f, k):
    judge(f, (np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 6.0]), k))


def test_one_that_is_known_is_not_spread_in_a_product():
    judge(lambda x, y: x[:1] @ y, (np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 6.0])))
    judge(lambda x, y: x[:, :1] @ y, (X, X))


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "x, i",
    [
        (X, [[0], [1], [2]]),
        (X, [[0, 1]]),
        (X, [[0], [1]]),
        (X[:1], [[0], [1], [2]]),
        (X[:1], [[3, 0]]),
        (X[:2], [[0], [1], [2]]),
    ],
    ids=["as many", "one row", "too few", "of one row", "one of one", "too many"],
)
def test_take_along_axis_spreads_the_other_axes(x, i):
    judge(lambda x, i: np.take_along_axis(x, i, 1), (x, np.array(i)))
    judge(lambda x, i: np.take_along_axis(x, i, axis=0), (x.T, np.array(i).T))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_take_along_axis_of_lengths_that_a_run_knows(k):
    i = np.array([[0], [1], [2]])
    judge(lambda x, i, k: np.take_along_axis(x, i[:k], 1), (X, i, k))
    judge(lambda x, i, k: np.take_along_axis(x[:k], i, 1), (X, i, k))


@pytest.mark.lengthy
@pytest.mark.parametrize("k", [1, 2, 3])
def test_as_many_values_as_places_to_interpolate_between(k):
    judge(
        lambda x, xp, fp, k: np.interp(x, xp, fp[:k]),
        (np.array([0.5, 1.7]), np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 5.0]), k),
    )


def test_as_many_values_as_places_in_a_loop():
    def f(x, xp, fp):
        total = 0.0
        for y in x:
            total += np.interp(y, xp, fp)
        return total

    args = np.array([0.5, 1.7]), np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0])
    for t in (s2s.grad(f, argnums=2), in_loops(s2s.jit(f))):
        with pytest.raises(ValueError):
            t(*args)


def test_what_raises_says_which_lengths():
    gradient = s2s.grad(lambda x, y, k: x[:k] @ y)
    with pytest.raises(ValueError, match="axes that are summed over together have lengths 3 and 1"):
        gradient(np.ones(3), np.ones(3), 1)


@pytest.mark.compile
@pytest.mark.slow
def test_an_index_that_is_no_int64_is_not_counted_from_the_end():
    largest = np.array([0, 2**64 - 1], np.uint64)
    with pytest.raises(OverflowError):
        X[largest[-1]]
    for f in (lambda x, i: x[i[-1]], lambda x, i: x[0, 0] + np.eye(4)[i[-1]]):
        with pytest.raises(OverflowError):
            s2s.jit(f)(X, largest)
    np.testing.assert_array_equal(s2s.jit(lambda x, i: x[i])(X, largest), X[largest])


@pytest.mark.lengthy
@pytest.mark.parametrize("k", [1, 2, 3])
def test_as_many_weights_as_numbers(k):
    x, w = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 6.0])
    judge(lambda x, w, k: np.average(x, weights=w[:k]), (x, w, k))
    judge(lambda x, w, k: np.average(x[:k], weights=w), (x, w, k))
    judge(lambda x, w, k: np.average(np.outer(x, x), axis=0, weights=w[:k]), (x, w, k))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_vectors_of_vecdot_are_equally_long(k):
    judge(
        lambda x, y, k: np.vecdot(np.outer(x, x)[:, :k], y),
        (np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 6.0]), k),
    )


@pytest.mark.lengthy
@pytest.mark.parametrize("k", [0, 1, 2])
def test_loops_over_nothing_ask_for_nothing(k):
    """A slice of nothing begins behind its end; what makes no trip leaves no array."""
    judge(
        lambda x, y, k: np.diff(x[2 - k :]) * y[:1], (np.array([1.0, 2.0]), np.array([3.0, 5.0]), k)
    )
