"""np.searchsorted of a number, in native code: in a short vector, count the smaller numbers
(branch-free linear search).

Binary search has an unpredictable branch at each step: with 20 numbers it takes 20 ns for random
queries and 4 for sorted ones. Counting takes 2.5, vectorised and without a branch, and is faster up
to 50 numbers and more. Considered: branch-free binary search: three times as long as Numba's search
for sorted queries.

NaN sorts after all numbers, as in NumPy.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

SHORT = 48


def place_before(a, v):
    """np.searchsorted(a, v)."""
    return np.searchsorted(a, v)


def place_behind(a, v):
    """np.searchsorted(a, v, side="right")."""
    return np.searchsorted(a, v, side="right")


def _is_simple(a, v) -> bool:
    real = (types.Float, types.Integer)
    return (isinstance(a, types.Array) and a.ndim == 1 and isinstance(a.dtype, real)
            and isinstance(types.unliteral(v), real))


@overload(place_before)
def _place_before(a, v):
    if not _is_simple(a, v):
        return lambda a, v: np.searchsorted(a, v)

    def place(a, v):
        low, high = 0, len(a)
        if high <= SHORT and v == v:
            for x in a:
                low += x < v
            return low
        while low < high:
            k = (low + high) >> 1
            if a[k] < v or (v != v and a[k] == a[k]):
                low = k + 1
            else:
                high = k
        return low

    return place


@overload(place_behind)
def _place_behind(a, v):
    if not _is_simple(a, v):
        return lambda a, v: np.searchsorted(a, v, side="right")

    def place(a, v):
        low, high = 0, len(a)
        if high <= SHORT and v == v:
            for x in a:
                low += x <= v
            return low
        while low < high:
            k = (low + high) >> 1
            if a[k] <= v or v != v:
                low = k + 1
            else:
                high = k
        return low

    return place
