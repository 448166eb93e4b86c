"""Selection of elements: take, diagonals, sorting, partitions, differences."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_shape, meet
from ...ir.graph import Value
from ...ir.types import Array, Type, Unknown, may_be_one
from ..core import array_raise_conditions
from ..core.axis_numbers import normal_axis, static_axis
from ..core.batch_rules import on_all_lanes, over_one_axis
from ..core.copy import copy
from ..core.define_elementwise import is_none
from ..core.dependence_rules import anything, gathered
from ..core.elementwise import maximum, minimum
from ..core.kinks import IN_ORDER, Kink, kinked, ties_at_places, ties_in_order
from ..core.record import (
    FUNCTIONS,
    RECORDS,
    define,
    dims_of,
    dtype_of,
    numpy_function,
    rank,
    static,
    value,
)
from ..core.shape import length, literal, members, named_extent, numpy_call, zeros_of
from ..core.signs import and_zero
from . import stablehlo_arrays
from .axes import expand_dims, moveaxis
from .concatenate import along, concatenate_record
from .create import arange, array, zeros
from .index import additem, getitem, put, setitem, take
from .index_pattern import parse_index
from .reduce import sum_record
from .reshape import ravel


@numpy_function(np.take, method="take")
def take_(x: Value, indices, axis=None, out=None, mode="raise") -> Value:
    """np.take along an axis, or from the flattened array; with mode="wrap" and "clip" no index is
    out of bounds.
    """
    x, axis = value(x), static_axis(axis)
    entry = indices if members(indices) is None else array(indices)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    if dtype_of(value(entry).type) == "bool":  # not a mask here
        entry = FUNCTIONS[np.multiply](entry, 1)
    match static(mode):
        case "wrap":
            entry = RECORDS["remainder"](value(entry), length(x, axis=axis))
        case "clip":
            entry = RECORDS["clip"](value(entry), value(0), length(x, axis=axis) - 1)
        case other if other != "raise":
            raise UnsupportedError(f"np.take with mode={other!r}", current().line,
                                   'say "raise", "wrap" or "clip"')
    return taken(x, axis, entry)


def taken(x: Value, axis: int, entry) -> Value:
    """np.take along an axis: x[:, entry] in C order, which plain indexing has only along the first
    axis.
    """
    part = take(x, along(axis, entry))
    return copy(part) if axis != 0 and rank(x) != 1 and rank(value(entry)) != 0 else part


def add_along_axis(values, indices, shape, axis):
    """Zeros of this shape, to which each value is added at its index along the axis."""
    result = np.zeros(shape, np.asarray(values).dtype)
    axis = axis % len(shape)
    grid = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = indices
    np.add.at(result, tuple(grid), values)
    return result


def _fold_picked(x: Value, indices: Value, *, axis: int):
    """Fold for a known rank to an index: `x[np.arange(n)[:, None], indices]`."""
    count = rank(x)
    if count is None or rank(indices) is None:
        return None
    if rank(indices) != count:
        raise TypeMismatchError(
            f"np.take_along_axis with {count} and {rank(indices)} axes",
            current().line,
            "give the indices as many axes as the array",
        )
    axis = normal_axis(axis, count)
    grid = [indices if k == axis
            else expand_dims(arange(length(_counted(x, indices, k), axis=k)),
                             tuple(j for j in range(count) if j != k)) for k in range(count)]
    return take(x, tuple(grid))


def _counted(x: Value, indices: Value, axis: int) -> Value:
    """The operand whose lengths count positions along an axis: the array, or the indices if they
    have its length, where one index array is read in step.
    """
    n, m = x.type.dims[axis], indices.type.dims[axis]
    if n == m or may_be_one(n) or may_be_one(m):
        return x
    meet(n, m)
    return indices


picked_along = define(
    "take_along_axis",  # where the rank is unknown
    evaluate=lambda x, indices, *, axis: np.take_along_axis(x, indices, axis),
    infer=lambda x, indices, *, axis: Unknown(fresh_shape(), dtype_of(x.type)),
    fold=_fold_picked,
    vjp=lambda bar, y, x, indices, *, axis: (added_along(bar, indices, x, axis=axis), None),
    linear=(0,),
    syntax=lambda x, indices, *, axis: numpy_call("take_along_axis", x, indices, literal(axis)),
    cheap=True,
    moves=(0,),
    leaves_out=True,
    stablehlo=stablehlo_arrays.taken_along,
)
added_along = define(
    "add_along_axis",  # (y_bar, indices, x; axis): in the shape of x
    evaluate=lambda bar, indices, x, *, axis: add_along_axis(bar, indices, np.shape(x), axis),
    infer=lambda bar, indices, x, *, axis: Unknown(
        x.type.shape if rank(x) is None else None, dtype_of(bar.type)
    ),
    vjp=lambda bar, y, y_bar, indices, x, *, axis: (
        picked_along(bar, indices, axis=axis),
        None,
        None,
    ),
    linear=(0,),
    helper=add_along_axis,
    syntax=lambda bar, indices, x, *, axis: ast.Call(
        ast.Name("add_along_axis", ast.Load()),
        [bar, indices, numpy_call("shape", x), literal(axis)],
        [],
    ),
    shapes=(2,), same_shape=2,
    depends=gathered(
        lambda places, bar, indices, x, *, axis: np.take_along_axis(places, indices, axis)),
)


@numpy_function(np.take_along_axis)
def take_along_axis(x: Value, indices, axis=-1) -> Value:
    """np.take_along_axis."""
    return picked_along(value(x), value(indices), axis=static_axis(axis))


@numpy_function(np.sort)
def sort(x: Value, axis=-1, kind=None, *, stable=None) -> Value:
    """np.sort: the derivative is permuted as the elements are."""
    x, axis = value(x), static_axis(axis)
    if axis is None:
        x, axis = ravel(x), -1
    return (
        take(x, argsort(x, axis=-1))
        if rank(x) == 1
        else take_along_axis(x, argsort(x, axis=axis), axis)
    )


argsort = define(
    "argsort",
    evaluate=lambda x, *, axis: np.argsort(x, axis=axis),
    infer=lambda x, *, axis: (
        Unknown(x.type.shape, "int64") if rank(x) is None else Array("int64", dims_of(x.type))
    ),
    syntax=lambda x, *, axis: numpy_call("argsort", x, axis=literal(axis) if axis != -1 else None),
    partials=(None,),
    depends=anything, batch=over_one_axis, contiguous="operands", same_shape=0,
    stablehlo=stablehlo_arrays.in_order,
)

kinked(argsort, Kink(IN_ORDER, ties_in_order))


@numpy_function(np.argsort, method="argsort")
def argsort_(x: Value, axis=-1, kind=None, *, stable=None) -> Value:
    """np.argsort, without derivative.  A stable sort is np.lexsort."""
    x, axis = value(x), static_axis(axis)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    if not (static(kind) in ("stable", "mergesort") or static(stable)):
        return argsort(x, axis=axis)
    if rank(x) != 1:
        raise UnsupportedError("a stable np.argsort of something else than a vector",
                               current().line, "sort row by row, or leave kind= out")
    return FUNCTIONS[np.lexsort]((x,))


argpartition = define(
    "argpartition",
    evaluate=lambda x, *, kth, axis: np.argpartition(x, kth, axis=axis),
    infer=lambda x, *, kth, axis: argsort.infer(x, axis=axis),
    syntax=lambda x, *, kth, axis: numpy_call("argpartition", x, literal(kth),
                                              axis=literal(axis) if axis != -1 else None),
    partials=(None,), raises=array_raise_conditions.PLACE,
)
kinked(argpartition, Kink(IN_ORDER, ties_at_places))


def _partitioned(x: Value, kth, axis) -> tuple[Value, Value, int]:
    """The array, its partition order, and the axis."""
    x, axis = value(x), static_axis(axis)
    if axis is None:
        x, axis = ravel(x), -1
    return x, argpartition(x, kth=static(kth, "kth="), axis=axis), axis


@numpy_function(np.argpartition, method="argpartition")
def argpartition_(x: Value, kth, axis=-1) -> Value:
    """np.argpartition, without derivative."""
    return _partitioned(x, kth, axis)[1]


@numpy_function(np.partition)
def partition(x: Value, kth, axis=-1) -> Value:
    """np.partition, in the order of np.argpartition: the derivative is permuted as the elements
    are.
    """
    x, order, axis = _partitioned(x, kth, axis)
    return take(x, order) if rank(x) == 1 else take_along_axis(x, order, axis)


# ---------------------------------------------------------------------------------------- diagonals


def _infer_diagonal(x: Value, *, k: int) -> Type:
    if rank(x) is None:
        return Unknown(fresh_shape(), dtype_of(x.type))
    if rank(x) != 2:
        raise UnsupportedError(f"the diagonal of {x.type}", current().line, "take it of a matrix")
    n, m = dims_of(x.type)
    if isinstance(n, int) and isinstance(m, int):
        return Array(x.type.dtype, (max(0, min(n + min(k, 0), m - max(k, 0))),))
    return Array(x.type.dtype, (n if n == m and k == 0 else named_extent(("diagonal", n, m, k)),))


def _places(bar: Value, k: int) -> tuple[Value, Value]:
    """Rows and columns of the k-th diagonal, which is as long as `bar`."""
    along_it = arange(length(bar, axis=0))
    return (along_it + -k if k < 0 else along_it), (along_it + k if k > 0 else along_it)


def _vjp_diagonal(bar, y, x, *, k):
    pattern, operands = parse_index(_places(bar, k))

    def accumulate(x_bar):
        if x_bar is None:
            return setitem(zeros_of(x), bar, *operands, pattern=pattern)
        return additem(x_bar, bar, *operands, pattern=pattern)

    return (accumulate,)


def _batch_diagonal(flags, x: Value, *, k: int):
    rows, columns = (length(x, axis=axis) for axis in (1, 2))
    square = dims_of(x.type)[1] == dims_of(x.type)[2] and k == 0
    places = arange(rows if square else maximum(minimum(rows + min(k, 0), columns - max(k, 0)), 0))
    return getitem(x, places + max(-k, 0), places + max(k, 0), pattern=("...", "i", "i"))


diagonal_record = define(
    "diagonal",
    evaluate=lambda x, *, k: np.diagonal(x, k),
    infer=_infer_diagonal,
    vjp=_vjp_diagonal,
    linear=(0,),
    syntax=lambda x, *, k: numpy_call("diagonal", x, *([literal(k)] if k else [])),
    cheap=True,
    views=(0,),
    moves=(0,),
    batch=_batch_diagonal,
    read_only=True, leaves_out=True,
)


@numpy_function(np.diagonal, method="diagonal", view="read-only")
def diagonal(x: Value, offset=0, axis1=0, axis2=1) -> Value:
    """np.diagonal: for a stack of matrices, along two of the axes."""
    x, k = value(x), static(offset)
    first, second = static_axis(axis1), static_axis(axis2)
    if rank(x) in (None, 2) and (first, second) == (0, 1):
        return diagonal_record(x, k=k)
    if rank(x) is None:
        raise UnsupportedError("the diagonal along some axes of an array of unknown rank",
                               current().line, "call the function once, or annotate the parameter")
    first, second = normal_axis(first, rank(x)), normal_axis(second, rank(x))
    if first == second:
        raise TypeMismatchError(f"the diagonal along axes {first} and {second}", current().line,
                                "name two axes")
    front = moveaxis(x, (first, second), (0, 1))
    if rank(x) == 2:
        return diagonal_record(front, k=k)
    rows, columns = (length(front, axis=n) - abs(k) if shortened else length(front, axis=n)
                     for n, shortened in ((0, k < 0), (1, k > 0)))
    along_it = arange(maximum_of(minimum_of(rows, columns), 0))
    places = along_it + -k if k < 0 else along_it, along_it + k if k > 0 else along_it
    return moveaxis(take(front, places), 0, -1)


def minimum_of(a, b) -> Value:
    return RECORDS["min_"](value(a), value(b))


def maximum_of(a, b) -> Value:
    return RECORDS["max_"](value(a), value(b))


@numpy_function(np.diag, view="read-only")
def diag(x: Value, k=0) -> Value:
    """np.diag: the diagonal of a matrix, or a matrix with this diagonal."""
    x, k = value(x), static(k)
    if rank(x) != 1:
        return diagonal_record(x, k=k)
    n = length(x, axis=0) + abs(k)
    return put(zeros((n, n), dtype=value(np.dtype(dtype_of(x.type)))), _places(x, k), x)


@numpy_function(np.trace, method="trace")
def trace(x: Value, offset=0, axis1=0, axis2=1) -> Value:
    """np.trace of a matrix, or of each matrix of a stack."""
    found = diagonal(x, offset, axis1, axis2)
    return sum_record(found, axis=None if rank(found) in (None, 1) else -1, keepdims=False)


def _triangle(name: str, function: Callable):
    record = define(
        name,
        evaluate=lambda x, *, k: function(x, k),
        infer=lambda x, *, k: _of_matrix(x, name),
        vjp=lambda bar, y, x, *, k: (record(bar, k=k),),
        linear=(0,),
        syntax=lambda x, *, k: numpy_call(name, x, *([literal(k)] if k else [])),
        cheap=True,
        moves=(0,),
        batch=on_all_lanes,
        leaves_out=True, least=and_zero,
    )

    @numpy_function(function)
    def triangle(m: Value, k=0) -> Value:
        return record(value(m), k=static(k))

    return triangle


def _of_matrix(x: Value, what: str) -> Type:
    if rank(x) is not None and rank(x) < 2:
        raise TypeMismatchError(f"np.{what} of {x.type}", current().line, "give it a matrix")
    return x.type


triu, tril = _triangle("triu", np.triu), _triangle("tril", np.tril)

# -------------------------------------------------------------------------------------- differences


def _end(x: Value, end: Value, axis: int) -> Value:
    """The `prepend` or `append` operand of `x` along an axis: a number is broadcast to one element.
    """
    if rank(end) != 0 or rank(x) is None:
        return end
    axis = normal_axis(axis, rank(x))
    return RECORDS["broadcast_to"](end,
                                   *(value(1) if k == axis else length(x, axis=k)
                                     for k in range(rank(x))))


@numpy_function(np.diff)
def diff(x: Value, n=1, axis=-1, prepend=None, append=None) -> Value:
    """np.diff, n times, with `prepend` and `append`."""
    x, axis = value(x), static_axis(axis)
    ends = [None if is_none(end) else value(end) for end in (prepend, append)]
    if ends != [None, None]:
        before, after = ([] if end is None else [_end(x, end, axis)] for end in ends)
        x = concatenate_record(*before, x, *after, axis=axis)
    for _ in range(static(n)):
        x = take(x, along(axis, slice(1, None))) - take(x, along(axis, slice(None, -1)))
    return x
