"""Medians, quantiles and percentiles, by sorting and linear interpolation.

Among equal elements the derivative goes to the ones that the sort puts there, as in JAX. If one
element is NaN, so are all results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ...errors import UnsupportedError
from ...ir.builder import current
from ...ir.graph import MISSING, Value
from ...ir.types import Scalar
from ..core.axis_numbers import static_axis
from ..core.cast import as_dtype, astype
from ..core.elementwise import (
    bitwise_and,
    floor,
    greater_equal,
    isnan,
    less_equal,
    minimum,
    where,
)
from ..core.record import FUNCTIONS, dtype_of, numpy_function, rank, static, value
from ..core.shape import length
from .argument_checks import CHECKS, within_hundred, within_one
from .axes import expand_dims, moveaxis
from .create import array_record
from .index import take
from .reduce import any_record, as_array, mean
from .reshape import ravel


def _sorted(x, axis) -> tuple[Value, Value]:
    """`x` sorted along `axis` (None: flattened), which is moved to the front, and its length."""
    x, axis = as_array(x), static_axis(axis)
    if isinstance(axis, tuple):
        raise UnsupportedError("a quantile along several axes", current().line,
                               "reshape them into one axis")
    x = ravel(x) if axis is None else x if axis == 0 else moveaxis(x, axis, 0)
    return FUNCTIONS[np.sort](x, axis=0 if rank(x) != 1 else -1), length(x, axis=0)


def _or_nan(result: Value, ordered: Value) -> Value:
    last = take(ordered, -1)
    return where(isnan(last), last, result)


def _kept(result: Value, axis, keepdims) -> Value:
    if not static(keepdims):
        return result
    axis = static_axis(axis)
    if axis is None:
        raise UnsupportedError("a quantile of all elements with keepdims", current().line,
                               "give it an axis, or leave keepdims out")
    return expand_dims(result, axis)


@numpy_function(np.median)
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False) -> Value:
    """np.median."""
    ordered, n = _sorted(a, axis)
    middle = mean(take(ordered, slice((n - 1) // 2, n // 2 + 1)), axis=0)
    # an empty one has mean NaN
    is_nan = any_record(isnan(take(ordered, slice(-1, None))), axis=0, keepdims=False)
    nan = as_dtype(value(np.nan), dtype_of(middle.type)) if rank(middle) == 0 else np.nan
    return _kept(where(is_nan, nan, middle), axis, keepdims)


def _in_range(check: Callable, q: Value, most: int) -> Value:
    """`q`, after a check that all of it lies between 0 and `most`; NaN does not."""
    asked = q.op.inputs if q.op is not None and q.op.record is array_record else [q]
    inside = [bitwise_and(less_equal(0, x), less_equal(x, most)) for x in asked
              if not _lies_between(x, most)]
    if not inside:
        return q
    return CHECKS[check](q, functools.reduce(bitwise_and, inside))


def _lies_between(x: Value, most: int) -> bool:
    return (x.constant is not MISSING
            and bool(np.all((0 <= np.asarray(x.constant)) & (x.constant <= most))))


@numpy_function(np.quantile)
def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear",
             keepdims=False) -> Value:
    """np.quantile by linear interpolation; `q`, a number or vector, has no derivative."""
    return _quantile(a, _in_range(within_one, as_array(q), 1), axis, method, keepdims)


def _quantile(a, q: Value, axis, method, keepdims) -> Value:
    if static(method) != "linear":
        raise UnsupportedError(f"a quantile with method={static(method)!r}", current().line,
                               "use method='linear'")
    ordered, n = _sorted(a, axis)
    if q.type == Scalar("float64", weak=True) and ordered.type.dtype == "float32":
        q = astype(q, dtype="float32")
    at = (n - 1) * q
    below = floor(at)
    k = astype(below, dtype="int64")
    share = at - below
    if rank(share):
        share = expand_dims(share, tuple(range(1, rank(ordered)))) if rank(ordered) > 1 else share
    low, high = take(ordered, k), take(ordered, minimum(k + 1, n - 1))
    gap = high - low
    between = where(greater_equal(share, 0.5), high - gap * (1 - share), low + gap * share)
    return _kept(_or_nan(between, ordered), axis, keepdims)


@numpy_function(np.percentile)
def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear",
               keepdims=False) -> Value:
    """np.percentile, like np.quantile."""
    q = _in_range(within_hundred, as_array(q), 100) / value(100)
    return _quantile(a, q, axis, method, keepdims)
