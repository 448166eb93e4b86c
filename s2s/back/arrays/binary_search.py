"""Expand searches in a sorted vector into a loop over the values.

    k = np.searchsorted(a, v)     becomes     k = np.empty(len(v), dtype=np.int64)
                                              for i in range(len(v)):
                                                  k[i] = np.searchsorted(a, v[i])

A number is searched for in native code (runtime/kernels/searchsorted.py), and the uses of its
position are fused into the same loop. Numba's function of an array takes a second to compile for
each kind of arguments, that of np.digitize two and a half.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ...ir.graph import Op, Value
from ...ir.types import Array, Scalar
from ...ops.arrays.axes import expand_dims
from ...ops.arrays.create import empty
from ...ops.arrays.index import put, take
from ...ops.arrays.search import digitize_record, searchsorted_record
from ...ops.core.control import for_loop
from ...ops.core.record import define, lowers, rank, stays, value
from ...ops.core.shape import length


def digitized(x, bins, right):
    """np.digitize of a vector: the bin that each number is in."""
    n = len(bins)
    y = np.empty(len(x), np.int64)
    falls = bins[0] > bins[n - 1] if n > 0 else False
    for k in range(n - 1):
        if bins[k] < bins[k + 1] if falls else bins[k] > bins[k + 1]:
            raise ValueError("bins must be monotonically increasing or decreasing")
    for i in range(len(x)):
        v, low, high = x[i], 0, n
        while low < high:
            k = (low + high) // 2
            if falls:
                behind = bins[k] >= v if right else bins[k] > v
            elif right:
                behind = bins[k] < v or v != v
            else:
                behind = bins[k] <= v or v != v
            if behind:
                low = k + 1
            else:
                high = k
        y[i] = low
    return y


DIGITIZED = define(
    digitized.__name__,
    evaluate=lambda x, bins, *, right: np.digitize(x, bins, right),
    infer=lambda x, bins, *, right: Array("int64", x.type.dims),
    helper=digitized, contiguous="operands",
    syntax=lambda x, bins, *, right: ast.Call(ast.Name(digitized.__name__, ast.Load()),
                                              [x, bins, ast.Constant(right)], []))


@lowers(searchsorted_record, cuda=stays)
def expand_search(op: Op, of: Value, v: Value) -> Value | None:
    """`op`, a search for each element of an array, as a loop; None where Numba compiles it."""
    if not (isinstance(v.type, Array) and is_real(of) and is_real(v)):
        return None

    def of_each(v: Value) -> Value:
        return for_each(v, of_each) if rank(v) else op.record(of, v, **op.attrs)

    return of_each(v)


@lowers(digitize_record, cuda=stays)
def expand_digitize(op: Op, x: Value, bins: Value) -> Value | None:
    """`op`, np.digitize, as a loop; None where Numba compiles it."""
    if not (is_real(x) and is_real(bins)):
        return None

    def of_each(x: Value) -> Value:
        return for_each(x, of_each) if rank(x) > 1 else DIGITIZED(x, bins, **op.attrs)

    return of_each(x) if rank(x) else take(of_each(expand_dims(x, 0)), (0,))


def for_each(x: Value, found: Callable[[Value], Value]) -> Value:
    """An array of integers, with the shape of x, of `found` of each element."""
    lengths = [value(d) if isinstance(d, int) else length(x, axis=k)
               for k, d in enumerate(x.type.dims)]
    start = empty(value(tuple(lengths)), dtype="int64")
    start.type = Array("int64", x.type.dims)  # with lengths that other values have
    (result,) = for_loop(0, lengths[0], 1, [start],
                       lambda i, result: [put(result, (i,), found(take(x, (i,))))])
    return result


def is_real(x: Value) -> bool:
    """Whether it is a number or an array of an ordered dtype."""
    return isinstance(x.type, Scalar | Array) and np.dtype(x.type.dtype).kind in "fi"
