"""Repetition and broadcasting: np.repeat, np.tile, np.broadcast_to.

Each is linear, and its transpose sums the copies of an element: a sum along an axis, or else a
helper function that is printed along.
"""

from __future__ import annotations

import ast

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_extent
from ...ir.graph import MISSING, Op, Value
from ...ir.types import Array, Scalar, Type, is_inexact
from ..core.array_raise_conditions import COUNTS_AFTER_ONE
from ..core.axis_numbers import normal_axis, static_axis
from ..core.batch_rules import align, over_one_axis
from ..core.dependence_rules import gathered
from ..core.record import broadcast_dims, define, dims_of, dtype_of, numpy_function, rank, value
from ..core.shape import (
    extent_of,
    is_array,
    length,
    lengths_of,
    literal,
    named_extent,
    numpy_call,
    shape_giver,
    spread,
    sum_to,
    zeros_of,
)
from .axes import expand_dims
from .concatenate import along
from .create import arange, array
from .index import additem
from .index_pattern import parse_index
from .reduce import as_array, sum_record
from .reshape import like_shape, only, product_extent, ravel, rearranged, unknown_like

# ---------------------------------------------------------------------------------------- repeating


def _infer_repeat(x: Value, count: Value, *, axis) -> Type:
    if rank(x) is None:
        return unknown_like(x) if axis is not None else Array(dtype_of(x.type), (fresh_extent(),))
    dims = list(dims_of(x.type)) if axis is not None else [product_extent(dims_of(x.type))]
    k = normal_axis(axis or 0, len(dims))
    times = count.constant
    if isinstance(count.type, Array) and (count.type.rank != 1 or is_inexact(count.type.dtype)):
        raise TypeMismatchError(f"np.repeat with counts {count.type}", current().line,
                                "give a vector of integers")
    if isinstance(times, int) and (times == 1 or isinstance(dims[k], int)):
        dims[k] = product_extent((dims[k], times))
    else:
        dims[k] = named_extent(("repeat", dims[k], count if times is MISSING else times))
    return rearranged(x, tuple(dims))


def _lower_of_number(op: Op, x: Value, *counts: Value) -> Value | None:
    """Repeat a number as the only element of an array."""
    return op.record(array((x,)), *counts, **op.attrs) if isinstance(x.type, Scalar) else None


def _lower_to_number(op: Op, y_bar: Value, *inputs: Value) -> Value | None:
    """Sum up what a number was repeated to."""
    return (sum_record(y_bar, axis=None, keepdims=False) if isinstance(op.output.type, Scalar)
            else None)


def sum_repeats(y_bar, shape, count, axis):
    """The transpose of np.repeat(x, count, axis) for x of this shape: the repeats of each element, summed."""
    axis = len(shape) if axis is None else axis % len(shape) + 1
    return np.sum(np.reshape(y_bar, shape[:axis] + (count,) + shape[axis:]), axis=axis)


repeat_record = define(
    "repeat",  # (x, count; axis): each element, count times
    evaluate=lambda x, count, *, axis: np.repeat(x, count, axis),
    infer=_infer_repeat,
    vjp=lambda bar, y, x, count, *, axis: (
        unrepeat(bar, x, count, axis=axis) if isinstance(count.type, Scalar)
        else _added_up(bar, x, count, axis),
        None,
    ),
    linear=(0,),
    syntax=lambda x, count, *, axis: numpy_call("repeat", x, count, axis=literal(axis)),
    raises=COUNTS_AFTER_ONE,
    cheap=True,
    moves=(0,), leaves_out=lambda x, count: isinstance(count.type, Array),  # repeated 0 times
    batch=over_one_axis,
    lower=_lower_of_number,
)
unrepeat = define(
    "unrepeat",  # (y_bar, x, count; axis): summed to the shape of x
    evaluate=lambda bar, x, count, *, axis: sum_repeats(bar, np.shape(x), count, axis),
    infer=lambda bar, x, count, *, axis: like_shape(bar, x),
    vjp=lambda bar, y, y_bar, x, count, *, axis: (repeat_record(bar, count, axis=axis), None, None),
    linear=(0,),
    helper=sum_repeats,
    syntax=lambda bar, x, count, *, axis: ast.Call(
        ast.Name("sum_repeats", ast.Load()),
        [bar, numpy_call("shape", x), count, ast.Constant(axis)],
        [],
    ),
    shapes=(1,), same_shape=1,
    depends=gathered(lambda places, bar, x, count, *, axis: np.repeat(places, count, axis)),
    lower=_lower_to_number,
)


@numpy_function(np.repeat, method="repeat")
def repeat(x: Value, repeats, axis=None) -> Value:
    """np.repeat, with one count for all elements or one for each."""
    x, repeats, axis = value(x), as_array(repeats), static_axis(axis)
    if isinstance(repeats.type, Array):
        if rank(x) is None:
            raise UnsupportedError(
                "np.repeat of an array of unknown rank with a count for each element",
                current().line,
                "call the function once",
            )
        x, axis = (ravel(x), 0) if axis is None else (x, normal_axis(axis, rank(x)))
    return repeat_record(x, repeats, axis=axis if rank(x) != 1 else None)


def _added_up(bar: Value, x: Value, counts: Value, axis):
    """The cotangent of x, whose elements along an axis were repeated `counts` times (a segmented
    sum).
    """
    axis = axis or 0
    places = repeat_record(arange(length(x, axis=axis)), counts, axis=None)
    pattern, operands = parse_index(along(axis, places))
    return lambda x_bar: additem(zeros_of(x) if x_bar is None else x_bar, bar, *operands,
                                 pattern=pattern)


def sum_tiles(y_bar, shape, counts):
    """The transpose of np.tile(x, counts) for x of this shape: the tiles, summed."""
    shape, counts = tuple(shape), tuple(counts)
    rank = max(len(shape), len(counts))
    padded = (1,) * (rank - len(shape)) + shape
    counts = (1,) * (rank - len(counts)) + counts
    parts = np.reshape(y_bar, [n for pair in zip(counts, padded) for n in pair])
    return np.sum(parts, axis=tuple(range(0, 2 * rank, 2))).reshape(shape)


def _infer_tile(x: Value, *counts: Value) -> Type:
    if rank(x) is None:
        return unknown_like(x)
    dims, known = dims_of(x.type), [n.constant for n in counts]
    size = max(len(dims), len(known))
    dims = (1,) * (size - len(dims)) + dims
    counts = (1,) * (size - len(known)) + tuple(counts)
    return rearranged(
        x,
        tuple(_tiled(d, n if isinstance(n, int) else n.constant, n) for d, n in zip(dims, counts)),
    )


def _tiled(d, times, n):
    if isinstance(times, int) and (times == 1 or isinstance(d, int)):
        return product_extent((d, times))
    return named_extent(("tile", d, n if times is MISSING else times))


def _batch_tile(flags, x: Value, *counts: Value):
    own = rank(x) - flags[0]
    if not flags[0] or any(flags[1:]):
        return None
    x = x if len(counts) <= own else expand_dims(x, tuple(range(1, len(counts) - own + 1)))
    return tile_record(x, value(1), *[value(1)] * (own - len(counts)), *counts)


tile_record = define(
    "tile",  # (x, *counts)
    evaluate=lambda x, *counts: np.tile(x, counts),
    infer=_infer_tile,
    vjp=lambda bar, y, x, *counts: (untile(bar, x, *counts), *(None for _ in counts)),
    linear=(0,),
    syntax=lambda x, *counts: numpy_call("tile", x, only(list(counts))),
    raises=COUNTS_AFTER_ONE,
    cheap=True,
    moves=(0,),
    batch=_batch_tile,
    lower=_lower_of_number,
)
untile = define(
    "untile",  # (y_bar, x, *counts): summed to the shape of x
    evaluate=lambda bar, x, *counts: sum_tiles(bar, np.shape(x), counts),
    infer=lambda bar, x, *counts: like_shape(bar, x),
    vjp=lambda bar, y, y_bar, x, *counts: (
        tile_record(bar, *counts),
        None,
        *(None for _ in counts),
    ),
    linear=(0,),
    helper=sum_tiles,
    syntax=lambda bar, x, *counts: ast.Call(
        ast.Name("sum_tiles", ast.Load()),
        [bar, numpy_call("shape", x), ast.Tuple(list(counts), ast.Load())],
        [],
    ),
    shapes=(1,), same_shape=1,
    depends=gathered(lambda places, bar, x, *counts: np.tile(places, counts)),
    lower=_lower_to_number,
)


@numpy_function(np.tile)
def tile(x: Value, reps) -> Value:
    """np.tile."""
    counts = lengths_of(reps)
    if counts is None:
        raise UnsupportedError(
            "np.tile with counts of unknown length", current().line, "write them one by one"
        )
    return tile_record(value(x), *counts)


# ------------------------------------------------------------------------------------- broadcast_to


def _infer_broadcast(x: Value, *sizes: Value) -> Type:
    dims = tuple(map(extent_of, sizes))
    if rank(x) is not None:
        if rank(x) > len(dims):
            raise TypeMismatchError(
                f"an array of {rank(x)} axes does not broadcast to {len(dims)}",
                current().line,
                "broadcast to at least as many axes",
            )
        broadcast_dims(dims_of(x.type), dims)
    return rearranged(x, dims)


def _batch_broadcast_to(flags, x: Value, *sizes: Value):
    if not flags[0] or any(flags[1:]):
        return None
    return broadcast_to_record(align(x, rank(x) - 1, len(sizes)), length(x, axis=0), *sizes)


broadcast_to_record = define(
    "broadcast_to",  # (x, *sizes)
    evaluate=lambda x, *sizes: np.broadcast_to(x, sizes),
    infer=_infer_broadcast,
    fold=lambda x, *sizes: x if is_array(x) and _infer_broadcast(x, *sizes) == x.type else None,
    vjp=lambda bar, y, x, *sizes: (sum_to(bar, x), *(None for _ in sizes)),
    linear=(0,),
    syntax=lambda x, *sizes: numpy_call("broadcast_to", x, only(list(sizes))),
    raises=COUNTS_AFTER_ONE,
    cheap=True,
    views=(0,),
    moves=(0,), batch=_batch_broadcast_to, read_only=True, same_elements=True, broadcasts=True,
)


@numpy_function(np.broadcast_to, view="read-only")
def broadcast_to(x: Value, shape, subok=False) -> Value:
    """np.broadcast_to."""
    giver = shape_giver(shape)
    if giver is not None and rank(giver) is None:
        return spread(value(x), giver)
    sizes = lengths_of(shape)
    if sizes is None:
        raise UnsupportedError(
            "a shape of unknown length", current().line, "write its members one by one"
        )
    return broadcast_to_record(value(x), *sizes)
