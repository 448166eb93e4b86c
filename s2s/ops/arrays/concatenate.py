"""Concatenation, stacking and splitting of arrays."""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_extent, fresh_shape, meet
from ...ir.graph import Op, Value
from ...ir.types import Array, Extent, Scalar, Tuple, Type, Unknown
from ..core.axis_numbers import normal_axes, normal_axis, static_axis
from ..core.batch_rules import all_batched
from ..core.chain_rule import like_operand
from ..core.record import (
    ALL,
    RECORDS,
    array_type,
    common_dtype,
    define,
    dims_of,
    dtype_of,
    numpy_function,
    rank,
    static,
    value,
)
from ..core.shape import length, literal, members, named_extent, numpy_call, shaped_like
from . import stablehlo_arrays
from .axes import atleast_1d, atleast_2d, expand_dims, transpose_record
from .create import array
from .index import take
from .reshape import ravel, reshape


def joined_dtype(xs: tuple[Value, ...]) -> str | None:
    """The common dtype of concatenated arrays."""
    return common_dtype(*(dtype_of(x.type) for x in xs))


def arrays(xs) -> list[Value]:
    """The members of a sequence argument; for an array, its items along the first axis."""
    found = members(xs)
    if found is None:
        dims = dims_of(value(xs).type)
        if not dims or not isinstance(dims[0], int):
            raise UnsupportedError(
                "arrays to join whose number is not known",
                current().line,
                "write them as a tuple or list",
            )
        found = [take(xs, k) for k in range(dims[0])]
    if not found:
        raise TypeMismatchError("no arrays to join", current().line, "give at least one")
    # np.concatenate(([0.0], x))
    return [array(x) if isinstance(x.type, Tuple) else x for x in map(value, found)]


def _sum_extents(extents: list):
    """The length of concatenated axes, if symbolic offsets express it exactly."""
    number = sum(d for d in extents if isinstance(d, int))
    symbols = [d for d in extents if isinstance(d, Extent)]
    if not symbols:
        return number
    if (len(symbols) == 1 and not symbols[0].accepts_any
        and (symbols[0].offset >= 0 or symbols[0].least)):
        return replace(symbols[0], offset=symbols[0].offset + number)
    if any(d.accepts_any for d in symbols):
        return fresh_extent()
    found = named_extent(("end to end", number, *sorted(symbols, key=str)))
    return (found if number == 1 or any(d.may_be_one for d in symbols)
            else replace(found, symbol_may_be_one=False))


def _infer_concatenate(*xs: Value, axis: int) -> Type:
    known = [x.type for x in xs if not isinstance(x.type, Unknown)]
    ranks = {rank(x) for x in xs} - {None}
    if len(ranks) > 1 or 0 in ranks:
        kinds = ", ".join(str(t) for t in known)
        raise TypeMismatchError(
            f"concatenate of {kinds}",
            current().line,
            "give arrays with equally many axes; np.append and np.stack take numbers",
        )
    if len(known) < len(xs):
        return Unknown(fresh_shape(), joined_dtype(xs))
    count = ranks.pop()
    k = normal_axis(axis, count)
    dims = [
        _agreed([t.dims[j] for t in known]) if j != k else _sum_extents([t.dims[j] for t in known])
        for j in range(count)
    ]
    return Array(joined_dtype(xs), tuple(dims))


def _agreed(extents: list):
    """The common extent of axes that must be equal."""
    numbers = {d for d in extents if isinstance(d, int)}
    if len(numbers) > 1:
        raise TypeMismatchError(
            f"arrays of lengths {', '.join(map(str, sorted(numbers)))} do not join",
            current().line,
            "make them equal along all other axes",
        )
    for d in extents[1:]:
        meet(extents[0], d)
    return numbers.pop() if numbers else next((d for d in extents if not d.may_be_one), extents[0])


def along(axis: int, entry) -> tuple:
    """The index with `entry` on this axis and full slices on the others."""
    return (
        (*(slice(None),) * axis, entry)
        if axis >= 0
        else (..., entry, *(slice(None),) * (-axis - 1))
    )


def _is_one_row(x: Value, axis: int) -> bool:
    """Whether `x` is an array with this axis, of length 1, inserted for the concatenation."""
    if (rank(x) is None or x.op is None or x.op.name != "expand_dims"
        or not isinstance(x.op.attrs["axis"], int)):
        return False
    return normal_axis(x.op.attrs["axis"], rank(x)) == normal_axis(axis, rank(x))


def _vjp_concatenate(bar, y, *xs, axis):
    parts, start = [], value(0)
    for k, x in enumerate(xs):
        end = start + length(x, axis=axis)
        if _is_one_row(x, axis):
            last = k == len(xs) - 1 and k > 0
            row = take(bar, along(axis, -1 if last else start))
            parts.append(like_operand(expand_dims(row, x.op.attrs["axis"]), x))
        else:
            cut = slice(None if k == 0 else start, None if k == len(xs) - 1 and k > 0 else end)
            parts.append(like_operand(shaped_like(take(bar, along(axis, cut)), x), x))
        start = end
    return tuple(parts)


def _sequence_syntax(name: str):
    def syntax(*xs: ast.expr, axis: int) -> ast.expr:
        return numpy_call(name, ast.Tuple(list(xs), ast.Load()), axis=literal(axis or None))

    return syntax


def _batch_concatenate(flags, *xs: Value, axis: int):
    xs = all_batched(flags, xs)
    return concatenate_record(*xs, axis=normal_axes(axis, rank(xs[0]) - 1)[0] + 1)


concatenate_record = define(
    "concatenate",
    evaluate=lambda *xs, axis: np.concatenate(xs, axis),
    infer=_infer_concatenate,
    fold=lambda *xs, axis: xs[0] if len(xs) == 1 and rank(xs[0]) not in (0, None) else None,
    vjp=_vjp_concatenate,
    linear=ALL,
    syntax=_sequence_syntax("concatenate"),
    cheap=True,
    moves=ALL,
    batch=_batch_concatenate,
    stablehlo=stablehlo_arrays.joined,
)


@numpy_function(np.concatenate, np.concat)
def concatenate(xs, axis=0, out=None) -> Value:
    """np.concatenate."""
    axis = static_axis(axis)
    if axis is None:
        return concatenate_record(*map(ravel, map(atleast_1d, arrays(xs))), axis=0)
    return concatenate_record(*arrays(xs), axis=axis)


@numpy_function(np.hstack)
def hstack(xs) -> Value:
    """np.hstack."""
    xs = [atleast_1d(x) for x in arrays(xs)]
    if any(rank(x) is None for x in xs):
        raise UnsupportedError(
            "np.hstack of arrays of unknown rank", current().line, "use np.concatenate with an axis"
        )
    return concatenate_record(*xs, axis=0 if rank(xs[0]) == 1 else 1)


@numpy_function(np.vstack)
def vstack(xs) -> Value:
    """np.vstack."""
    return concatenate_record(*map(atleast_2d, arrays(xs)), axis=0)


@numpy_function(np.column_stack)
def column_stack(xs) -> Value:
    """np.column_stack."""
    xs = arrays(xs)
    if any(rank(x) is None for x in xs):
        raise UnsupportedError(
            "np.column_stack of arrays of unknown rank", current().line, "use np.stack with axis=1"
        )
    return concatenate_record(
        *(x if rank(x) >= 2 else transpose_record(atleast_2d(x), axes=None) for x in xs), axis=1
    )


append_record = define(
    "append",  # (x, v): a vector, and a number after it
    evaluate=np.append,
    infer=lambda x, v: Array(joined_dtype((x, v)), (_sum_extents([x.type.dims[0], 1]),)),
    vjp=lambda bar, y, x, v: (
        like_operand(shaped_like(take(bar, slice(None, -1)), x), x),
        like_operand(take(bar, -1), v),
    ),
    linear=(0, 1),
    syntax=lambda x, v: numpy_call("append", x, v),
    cheap=True,
    moves=(0, 1),
    lower=lambda op, x, v: concatenate_record(x, array((v,)), axis=0),
)


@numpy_function(np.append)
def append(x: Value, values, axis=None) -> Value:
    """np.append."""
    x, v = as_operand(x), as_operand(values)
    if rank(x) == 1 and isinstance(v.type, Scalar) and static_axis(axis) is None:
        return append_record(x, v)
    return concatenate((x, v), axis)


def as_operand(x) -> Value:
    """A list or tuple as an array, anything else as it is."""
    return value(x) if members(x) is None else array(x)


# -------------------------------------------------------------------------------------------- stack


def _infer_stack(*xs: Value, axis: int) -> Type:
    ranks = {rank(x) for x in xs} - {None}
    if len(ranks) > 1:
        raise TypeMismatchError(
            f"a stack of {', '.join(str(x.type) for x in xs)}",
            current().line,
            "stack arrays of one shape",
        )
    if not ranks or any(isinstance(x.type, Unknown) for x in xs) and ranks != {0}:
        return Unknown(fresh_shape(), joined_dtype(xs))
    count = ranks.pop()
    dims = [
        _agreed([dims_of(x.type)[j] for x in xs if not isinstance(x.type, Unknown)])
        for j in range(count)
    ]
    dims.insert(normal_axis(axis, count + 1), len(xs))
    return array_type(joined_dtype(xs), tuple(dims))


def _vjp_stack(bar, y, *xs, axis):
    return tuple(
        like_operand(shaped_like(take(bar, along(axis, k)), x), x) for k, x in enumerate(xs)
    )


def _batch_stack(flags, *xs: Value, axis: int):
    xs = all_batched(flags, xs)
    return stack_record(*xs, axis=normal_axes(axis, rank(xs[0]))[0] + 1)


def _lower_stack(op: Op, *xs: Value) -> Value | None:
    """Join the arrays along the new axis, which each is given."""
    axis = op.attrs["axis"]
    return (concatenate_record(*(expand_dims(x, axis) for x in xs), axis=axis)
            if isinstance(xs[0].type, Array) else None)


stack_record = define(
    "stack",
    evaluate=lambda *xs, axis: np.stack(xs, axis),
    infer=_infer_stack,
    vjp=_vjp_stack,
    linear=ALL,
    syntax=_sequence_syntax("stack"),
    cheap=True,
    moves=ALL,
    batch=_batch_stack,
    stablehlo=stablehlo_arrays.stacked,
    lower=_lower_stack,
)


@numpy_function(np.stack)
def stack(xs, axis=0, out=None) -> Value:
    """np.stack."""
    xs, axis = arrays(xs), static_axis(axis)
    if axis == 0 and all(isinstance(x.type, Scalar) for x in xs):
        return array(tuple(xs))
    return stack_record(*xs, axis=axis)


@numpy_function(np.split, view="parts")
def split(x: Value, sections, axis=0) -> Value:
    """np.split into equal parts, or at given indices: a tuple of arrays."""
    x, axis, places = value(x), static_axis(axis), members(sections)
    sections = static(sections, "where to split") if places is None else tuple(places)
    if isinstance(sections, int):
        axis = _axis_to_split(x, axis)
        dims = dims_of(x.type)
        whole = dims[axis]
        if not isinstance(whole, int):  # raises if the parts would not be equal
            lengths = [length(x, axis=k) for k in range(len(dims))]
            parts = reshape(x, *lengths[:axis], value(sections), value(-1), *lengths[axis + 1 :])
            return value(tuple(take(parts, along(axis, k)) for k in range(sections)))
        if whole % sections:
            raise TypeMismatchError(
                f"{whole} does not divide into {sections} equal parts",
                current().line,
                "use np.array_split, or a number that divides it",
            )
        sections = tuple(whole // sections * k for k in range(1, sections))
    return _parts_between(x, sections, axis)


@numpy_function(np.array_split, view="parts")
def array_split(x: Value, sections, axis=0) -> Value:
    """np.array_split: where the parts cannot be equal, the first ones are longer by one."""
    x, axis, sections = value(x), static_axis(axis), static(sections, "where to split")
    if isinstance(sections, int):
        if sections <= 0:
            raise TypeMismatchError("number sections must be larger than 0", current().line,
                                    "split into one part at least")
        whole = length(x, axis=_axis_to_split(x, axis))
        size, longer = whole // sections, whole % sections
        if isinstance(whole.constant, int):
            size, longer = divmod(whole.constant, sections)
        minimum = min if isinstance(longer, int) else RECORDS["minimum"]
        sections = tuple(size * k + minimum(longer, k) for k in range(1, sections))
    return _parts_between(x, sections, axis)


def _axis_to_split(x: Value, axis: int) -> int:
    if not dims_of(x.type):
        raise UnsupportedError(
            "splitting an array of unknown rank", current().line, "slice the parts out one by one"
        )
    return normal_axis(axis, len(dims_of(x.type)))


def _parts_between(x: Value, sections, axis: int) -> Value:
    bounds = [None, *sections, None]
    return value(tuple(take(x, along(axis, slice(lo, hi))) for lo, hi in zip(bounds, bounds[1:])))


def _split_along(axis: int):
    return lambda x, sections: split(x, sections,
                                     axis if len(dims_of(value(x).type)) > 1 or axis > 1 else 0)


numpy_function(np.vsplit, view="parts")(_split_along(0))
numpy_function(np.hsplit, view="parts")(_split_along(1))
numpy_function(np.dsplit, view="parts")(_split_along(2))
