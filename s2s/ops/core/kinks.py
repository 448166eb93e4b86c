"""Non-differentiable points of ops: corners, ties, steps, 0 / 0.

There the derivative that a rule states is a convention. An op marks these points in `Record.kinks`,
by tests on its operands; only `s2s.conventions` reads them, to check one run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .define_elementwise import IN_MATH
from .record import Record

COMPARED = "a comparison of equals: the derivative is that of the side that it chose"
ASKED = ("a number is asked whether it is 0, and is: the derivative is that of the side that it "
         "chose")
SIZE = "a size at 0: the derivative is taken as 0, that of all directions at once"
STEEP = "infinitely steep here: the derivative is inf, or 0 where this is thrown away"
ROOT = ("a root at 0, infinitely steep: the derivative is inf, or 0 where it is the length of a "
        "vector or is thrown away")
CORNER = "a corner: the derivative is taken as 0, the mean of both sides"
ON_EDGE = "on an edge: the derivative is that of the side that is chosen"
IN_ORDER = "a tie: equal elements are taken in the order in which they came to stand"


@dataclass(frozen=True)
class Kink:
    """A test for non-differentiable points: `where(y, *xs, **attrs)` marks the elements at one;
    `what` says why, and which convention holds.

    `of` are the numbers of the operands whose derivative is meant, None for all: a power may be
    smooth in its base but not in its exponent.  `through` are the numbers of the results by which
    the derivative has to pass, None for any.  `always`: even where it holds all around, since the
    derivative that is taken is infinite or NaN.  `shown` are the numbers of the operands that a
    user knows, None for all.
    """

    what: str
    where: Callable
    of: tuple[int, ...] | None = None
    through: tuple[int, ...] | None = None
    always: bool = False
    shown: tuple[int, ...] | None = None


def kinked(record: Record, *kinks: Kink) -> None:
    """Register the kinks of an op, and of its twin in Python's math module."""
    for each in {record, IN_MATH.get(record, record)}:
        each.kinks = (*each.kinks, *kinks)


def at_zero(y, x):
    return np.equal(x, 0)


def asked_of_zero(y, x, **attrs):
    """Whether np.any or np.all says False of numbers: some at 0 would have to be no longer 0."""
    return np.logical_not(y)


def on_cut(y, x, *rest):
    """On the negative real axis, where complex logarithms and roots jump."""
    return np.iscomplexobj(x) & np.equal(np.imag(x), 0) & np.less(np.real(x), 0)


def at_integers(y, x, *rest):
    return np.equal(x, np.floor(x))


def at_halves(y, x, *rest):
    """The steps of rounding, to the number of decimals in `rest`."""
    scaled = np.multiply(x, 10.0 ** (rest[0] if rest and rest[0] is not None else 0))
    return np.equal(scaled - np.floor(scaled), 0.5)


def equal_operands(y, a, b):
    return np.equal(a, b)


def zero_over_zero(y, a, b):
    return np.equal(a, 0) & np.equal(b, 0)


def size_zero(y, *xs, **attrs):
    return np.equal(y, 0)


def ties_of_extreme(y, x, *, axis, keepdims):
    """Whether the maximum or minimum along `axis` occurs more than once."""
    x, y = np.asarray(x), np.asarray(y)
    if not keepdims and axis is not None:
        y = np.expand_dims(y, axis)
    return np.sum(np.equal(x, y), axis=axis) > 1


def ties_of_place(y, x, *, axis, keepdims):
    """The same for argmax and argmin."""
    x = np.asarray(x)
    flat, axis = (x.ravel(), 0) if axis is None else (x, axis)
    place = np.reshape(y, np.shape(np.sum(flat, axis=axis, keepdims=True)))
    return np.sum(np.equal(flat, np.take_along_axis(flat, place, axis)), axis=axis) > 1


def ties_in_order(y, x, *, axis=-1, **attrs):
    """Whether neighbours are equal after sorting."""
    x = np.asarray(x)
    ordered = np.sort(x.ravel() if axis is None else x, axis=-1 if axis is None else axis)
    return np.any(np.diff(ordered, axis=-1 if axis is None else axis) == 0)


def ties_at_places(y, x, *, kth, axis):
    """Whether an element at a place of `kth` is equal to its neighbour in order."""
    ordered = np.moveaxis(np.sort(x, axis=axis), axis, -1)
    n = ordered.shape[-1]
    places = {k % n for k in np.ravel(kth)}
    equal = np.diff(ordered, axis=-1) == 0
    return np.any(equal[..., [k for k in range(n - 1) if k in places or k + 1 in places]], axis=-1)


def ties_of_keys(y, *keys):
    """Whether neighbours in the order of np.lexsort are equal in a key that is no integer, and in
    those that stand above it.
    """
    alike, found = True, False
    for key in reversed(keys):
        alike = alike & (np.diff(np.asarray(key)[y]) == 0)
        found = found | (alike & np.issubdtype(np.asarray(key).dtype, np.inexact))
    return np.any(found)


def among(y, edges, x, *rest, **attrs):
    """Whether a number coincides with an edge."""
    return np.isin(x, edges)
