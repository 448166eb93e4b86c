"""np.delete and np.insert: remove or insert elements.

The new positions of the other elements are found by applying the op to a vector of indices.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_extent
from ...ir.graph import Value
from ...ir.types import Array, Extent, Scalar, Type, is_inexact
from ..core import array_raise_conditions
from ..core.axis_numbers import normal_axis
from ..core.chain_rule import like_operand
from ..core.define_elementwise import is_none
from ..core.elementwise import logical_not
from ..core.record import define, dims_of, dtype_of, numpy_function, rank, static, value
from ..core.shape import length, literal, named_extent, numpy_call, zeros_of
from .concatenate import along
from .create import arange, ones, zeros
from .index import setitem, take
from .index_pattern import parse_index
from .reduce import as_array, sum_record
from .reshape import ravel, rearranged


def _check_places(x: Value, what: str) -> None:
    if is_inexact(dtype_of(x.type)):
        raise TypeMismatchError(f"{what} at {x.type}", current().line, "name places by integers")


def _shorter(extent, x: Value):
    """The length of an axis after removing the elements at `x`."""
    if not isinstance(x.type, Scalar):
        return named_extent(("delete", extent, x))
    k = x.constant
    if isinstance(extent, int):
        if not extent or isinstance(k, int) and not -extent <= k < extent:
            raise TypeMismatchError(
                f"index {k} is out of range for an axis of length {extent}", current().line,
                f"use an index from {-extent} to {extent - 1}" if extent else "")
        return extent - 1
    return fresh_extent() if extent.accepts_any else replace(extent, offset=extent.offset - 1)


def _infer_delete(x: Value, places: Value, *, axis: int | None) -> Type:
    _check_places(places, "np.delete")
    dims, axis = list(dims_of(x.type)), axis or 0
    dims[axis] = _shorter(dims[axis], places)
    return Array(dtype_of(x.type), tuple(dims))


def _vjp_delete(bar, y, x, places, *, axis):
    axis = axis or 0
    kept = delete_record(arange(length(x, axis=axis)), places, axis=None)
    pattern, operands = parse_index(along(axis, kept))

    def spread_out(x_bar):
        whole = setitem(zeros_of(x), bar, *operands, pattern=pattern)
        return whole if x_bar is None else x_bar + whole

    return spread_out, None


def _batch_delete(flags, x: Value, places: Value, *, axis):
    if flags[1]:
        return None
    return delete_record(x, places, axis=1 if axis is None else axis % (rank(x) - 1) + 1)


delete_record = define(
    # (x, places; axis), None for that of a vector: an integer, or an array of integers or truth
    # values
    "delete",
    evaluate=lambda x, places, *, axis: np.delete(x, places, axis),
    infer=_infer_delete,
    vjp=_vjp_delete,
    linear=(0,),
    syntax=lambda x, places, *, axis: numpy_call("delete", x, places, axis=literal(axis)),
    moves=(0,), leaves_out=True, raises=array_raise_conditions.DELETE, contiguous="operands",
    batch=_batch_delete,
)


@numpy_function(np.delete)
def delete(x: Value, obj, axis=None) -> Value:
    """np.delete at an integer, or at an array of integers or booleans."""
    x = value(x)
    if isinstance(value(obj).constant, slice):
        raise UnsupportedError("np.delete of a slice", current().line,
                               "put together what stays with np.concatenate")
    if rank(x) is None:
        raise UnsupportedError("np.delete from an array of unknown rank", current().line,
                               "call the function once")
    if is_none(axis):
        x, axis = ravel(x), 0
    axis = normal_axis(static(axis, "an axis"), rank(x))
    return delete_record(x, as_array(obj), axis=axis if rank(x) > 1 else None)


def _infer_insert(x: Value, place: Value, v: Value) -> Type:
    _check_places(place, "np.insert")
    if not isinstance(place.type, Scalar) or rank(x) != 1 or rank(v) not in (0, 1):
        raise UnsupportedError(f"np.insert of {v.type} into {x.type} at {place.type}",
                               current().line, "put slices together with np.concatenate")
    (extent,) = dims_of(x.type)
    more = 1 if rank(v) == 0 else v.type.dims[0]
    if not isinstance(more, int):
        extent = named_extent(("insert", extent, more))
    elif isinstance(extent, Extent):
        extent = fresh_extent() if extent.accepts_any or extent.offset < 0 else replace(
            extent, offset=extent.offset + more)
    else:
        extent += more
    return rearranged(x, (extent,))


def _places_of_new(x: Value, place: Value, v: Value) -> Value:
    """A mask of the result: True for inserted elements."""
    truth = value(np.dtype(bool))
    new = ones(length(v, axis=0), dtype=truth) if rank(v) else value(True)
    return insert_record(zeros(length(x, axis=0), dtype=truth), place, new)


def _vjp_insert(bar, y, x, place, v):
    new = _places_of_new(x, place, v)
    part = take(bar, new)
    return (take(bar, logical_not(new)), None,
            like_operand(part if rank(v) else sum_record(part, axis=None, keepdims=False), v))


insert_record = define(
    "insert",  # (x, place, v): into a vector, at one place
    evaluate=lambda x, place, v: np.insert(x, place, v),
    infer=_infer_insert,
    vjp=_vjp_insert,
    linear=(0, 2),
    syntax=lambda x, place, v: numpy_call("insert", x, place, v),
    moves=(0, 2), raises=array_raise_conditions.INSERT, contiguous="operands",
)


@numpy_function(np.insert)
def insert(x: Value, obj, values, axis=None) -> Value:
    """np.insert of a number or a vector at one position of a vector."""
    x = value(x)
    if not is_none(axis) and normal_axis(static(axis, "an axis"), rank(x) or 0):
        raise UnsupportedError("np.insert along another axis than the first", current().line,
                               "put slices together with np.concatenate")
    return insert_record(ravel(x) if is_none(axis) else x, value(obj), as_array(values))
