"""NumPy's functions of a list that grows at run time, where np.array(xs) would not do."""

from __future__ import annotations

import numpy as np

from ...errors import UnsupportedError
from ...ir.builder import current, emit
from ...ir.graph import MISSING, Value
from ...ir.types import Scalar
from ..arrays.create import as_dtype
from ..core.axis_numbers import normal_axis, static_axis
from ..core.control import for_loop, tape_len, tape_push
from ..core.record import FUNCTIONS, rank, value
from .list_arrays import list_concatenate, list_stack
from .list_ops import list_get, list_of
from .list_queries import list_max, list_min
from .list_sums import list_sum, list_total


def _array(xs: Value, dtype=None, copy=True) -> Value:
    return as_dtype(list_stack(xs), dtype)


def _stack(xs: Value, axis=0) -> Value:
    axis = static_axis(axis)
    y = list_stack(xs)
    return y if axis == 0 else FUNCTIONS[np.moveaxis](y, 0, axis)


def _concatenate(xs: Value, axis=0) -> Value:
    if static_axis(axis) == 0:
        return list_concatenate(xs)
    inner = rank(list_get(xs, value(0)))
    if inner is None:
        raise UnsupportedError("np.concatenate of a list of arrays of unknown rank", current().line,
                               "use np.stack")
    axis = normal_axis(static_axis(axis), inner)
    turned = list_concatenate(_each(xs, lambda x: FUNCTIONS[np.moveaxis](x, axis, 0)))
    return FUNCTIONS[np.moveaxis](turned, 0, axis)


def _each(xs: Value, function) -> Value:
    """The list [function(x) for x in xs]."""
    n = tape_len(xs)
    (ys,) = for_loop(0, n, 1, [emit(list_of)],
                     lambda i, ys: [tape_push(ys, function(list_get(xs, i)))])
    return ys


def _vstack(xs: Value) -> Value:
    return list_stack(xs) if rank(list_get(xs, value(0))) == 1 else list_concatenate(xs)


def _hstack(xs: Value) -> Value:
    inner = rank(list_get(xs, value(0)))
    return list_stack(xs) if inner == 0 else _concatenate(xs, 0 if inner == 1 else 1)


def _column_stack(xs: Value) -> Value:
    if rank(list_get(xs, value(0))) == 2:
        return _concatenate(xs, 1)
    return FUNCTIONS[np.transpose](list_stack(xs))


def _sum(xs: Value, start=0) -> Value:
    start = value(start)
    if start.constant is not MISSING and type(start.constant) is int and start.constant == 0:
        return list_sum(xs)
    y = list_sum(xs) + start  # the type of the result
    if isinstance(start.type, Scalar) and isinstance(y.type, Scalar):
        start = (FUNCTIONS[float](start)
                 if y.type.dtype == "float64" and start.type.dtype == "int64" else start)
    return list_total(xs, start)


# NumPy's and Python's functions of a run-time list; all others get np.array(xs)
OF_LISTS = {
    np.array: _array,
    np.asarray: _array,
    np.stack: _stack,
    np.concatenate: _concatenate,
    np.vstack: _vstack,
    np.hstack: _hstack,
    np.column_stack: _column_stack,
    sum: _sum,
    max: list_max,
    min: list_min,
    len: tape_len,
}
