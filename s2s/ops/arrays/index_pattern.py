"""Index patterns: an index such as `x[1:-1, None, i]`, split into a static part and its operands.

An index is split in two: a static `pattern`, one entry per position,

    "i"   an operand: an integer, or an array of integers or booleans
    "abc" a slice; a, b, c are "." where a bound is absent and "x" where it is the next operand
    None  a new axis        ...  the axes that nothing else names

and the operands it consumes, in order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_extent, trips_of
from ...ir.graph import Value
from ...ir.length_assumptions import is_assuming_not_one
from ...ir.types import Array, Dim, Extent, Scalar, is_inexact
from ..core.record import broadcast_dims, dims_of, is_static, static, value
from ..core.shape import base_offset, extent_of, named_extent, supposed_extent

Pattern = tuple


def is_advanced(pattern: Pattern, operands) -> bool:
    """Whether the index is advanced (some operand is an array), so that it copies."""
    return any(p == "i" and not is_integer(x) for p, x in paired(pattern, operands) if p == "i")


def is_integer(x: Value) -> bool:
    """Whether an operand selects a single position."""
    return isinstance(x.type, Scalar) and x.type.dtype != "bool"


def paired(pattern: Pattern, operands):
    """Each entry with its operand(s)."""
    rest = list(operands)
    for p in pattern:
        if p == "i":
            yield p, rest.pop(0)
        elif isinstance(p, str):
            yield p, tuple(rest.pop(0) if c == "x" else None for c in p)
        else:
            yield p, None


def index_operands(pattern: Pattern, operands) -> Iterator[tuple[str, Value]]:
    """The entries that are one operand, an integer or an array, with it: not slices."""
    return ((p, x) for p, x in paired(pattern, operands) if p == "i")


def expand(pattern: Pattern, rank: int) -> Pattern:
    """The pattern with its explicit or implied ellipsis replaced by full slices."""
    named = sum(p is not None and p is not ... for p in pattern)
    if named > rank:
        raise TypeMismatchError(
            f"{named} indices for an array of {rank} axes",
            current().line,
            "use as many indices as the array has axes",
        )
    fill = ("...",) * (rank - named)
    if ... in pattern:
        k = pattern.index(...)
        return pattern[:k] + fill + pattern[k + 1 :]
    return pattern + fill


def index_dims(x: Value, operands, pattern: Pattern) -> tuple:
    """The extents of `x[...]`."""
    dims = list(dims_of(x.type))
    consumed = sum(_axes_of(p, o) for p, o in paired(pattern, operands))
    basic, advanced, places = [], [], []
    for p, operand in paired(
        expand(pattern, len(dims) - consumed + count_named(pattern)), operands
    ):
        if p is None:
            basic.append(1)
        elif p == "i":
            places.append(len(basic))
            advanced.append(_picked(dims, operand))
        else:
            basic.append(_slice_extent(dims.pop(0), *operand))
    if not places:
        return tuple(basic)
    shape = broadcast_dims(*advanced)
    # adjacent index arrays put their axes in place, separated ones in front
    first = places[0] if len(set(places)) == 1 or not shape else 0
    return tuple(basic[:first]) + shape + tuple(basic[first:])


def count_named(pattern: Pattern) -> int:
    """How many entries name an axis."""
    return sum(p is not None and p is not ... for p in pattern)


def _axes_of(p, operand) -> int:
    """How many axes one entry of an index names."""
    if p == "i" and isinstance(operand.type, Array) and operand.type.dtype == "bool":
        return operand.type.rank
    return 0 if p is None or p is ... else 1


def _picked(dims: list, operand: Value) -> tuple:
    """The extents that replace the axes named by integers or arrays, which are removed from `dims`.
    """
    match operand.type:
        case Scalar("bool"):
            raise UnsupportedError(
                "a truth value as an index",
                current().line,
                "use np.where, or an array of truth values",
            )
        case Scalar(dtype) | Array(dtype) if dtype is not None and np.dtype(dtype).kind in "fc":
            raise TypeMismatchError(
                f"an index of type {operand.type}",
                current().line,
                "index with integers, slices or arrays of integers",
            )
        case Scalar():
            extent, k = dims.pop(0), operand.constant
            if isinstance(k, int) and isinstance(extent, int) and not -extent <= k < extent:
                raise TypeMismatchError(
                    f"index {k} is out of range for an axis of length {extent}",
                    current().line,
                    f"use an index from {-extent} to {extent - 1}" if extent else "",
                )
            return ()
        case Array("bool", mask):
            for extent in mask:
                other = dims.pop(0)
                if (isinstance(extent, int) and isinstance(other, int) and extent != other
                    and 0 not in mask):  # which NumPy takes for any length
                    raise TypeMismatchError(
                        f"a mask of length {extent} for an axis of length {other}",
                        current().line,
                        "make the mask as long as the axis",
                    )
            return (named_extent(("mask", operand)),)
        case Array(_, picked):
            dims.pop(0)
            return picked
    raise UnsupportedError(
        f"an index of type {operand.type}",
        current().line,
        "index with integers, slices or arrays of integers",
    )


def _slice_extent(extent, lo, hi, step):
    """The length of a slice of an axis, exact where offsets from its ends are known.

    Slices with equal bounds of axes of equal length have equal lengths, known or unknown.
    """
    for b in (lo, hi, step):
        if b is not None and isinstance(b.type, Scalar) and is_inexact(b.type.dtype or "int64"):
            raise TypeMismatchError(
                f"a slice bound of type {b.type}", current().line, "slice with integers"
            )
    bounds = [None if b is None or b.constant is None else b for b in (lo, hi, step)]
    known = [
        None if b is None else b.constant if isinstance(b.constant, int) else "?" for b in bounds
    ]
    if known[2] == 0:
        raise TypeMismatchError("a slice with step 0", current().line, "give a step other than 0")
    start, stop, stride = known
    if start in (None, 0) and stop is None and stride in (None, 1, -1):
        return extent
    key = "slice", extent, *(k if k != "?" else b for k, b in zip(known, bounds))
    supposes = is_assuming_not_one() and not _comes_to_one(extent, lo, hi)
    if isinstance(extent, int):
        return ((supposed_extent if supposes else named_extent)(key) if "?" in known
                else len(range(extent)[slice(*known)]))
    if stop == "?" and isinstance(start, int | None) and (start or 0) >= 0:
        stop = _from_the_end(extent, bounds[1])
    if stride not in (None, 1) or "?" in (start, stop) or extent.accepts_any:
        return (fresh_extent() if extent.accepts_any else supposed_extent(key)
                if supposes and stride in (None, 1) else named_extent(key))
    start = start or 0
    if start >= 0 and (stop is None or stop < 0):
        rest = replace(extent, offset=extent.offset - start + (stop or 0))
        return supposed_extent(key) if supposes and rest.may_be_one_though_long else rest
    if (known_length := _length_inside(extent, start, stop)) is not None:
        return known_length
    is_one = start == -1 if stop is None else stop - start == 1
    return supposed_extent(key) if supposes and not is_one else named_extent(key)


def _comes_to_one(extent: Dim, lo: Value | None, hi: Value | None) -> bool:
    """Whether a slice that grows or shrinks with the trips of a loop, x[:i] or x[i:], gets length 1
    in one of them.
    """
    if hi is not None and (lo is None or lo.constant == 0):
        shortest = _extreme(hi, of_all=min)
    elif lo is not None and (hi is None or extent_of(hi) == extent):
        shortest = _difference(extent, _extreme(lo, of_all=max))
    else:
        return False
    return isinstance(shortest, int) and shortest <= 1


def _extreme(bound: Value, of_all: Callable) -> Dim | None:
    """The minimum or maximum of a bound that changes by 1 per trip of a loop, as an extent; None
    for other bounds.
    """
    base, offset = base_offset(bound)
    if base is None:
        return None
    if base.op is not None and base.op.name == "subtract":
        found = _difference(extent_of(base.op.inputs[0]),
                            _extreme(base.op.inputs[1], max if of_all is min else min))
        return None if found is None else found + offset
    trips = trips_of(base)
    if trips is None or trips[2].constant not in (1, -1):
        return None
    start, stop, step = trips
    is_first = (step.constant == 1) == (of_all is min)
    found, offset = (extent_of(start if is_first else stop),
                     offset if is_first else offset - step.constant)
    return (found + offset if isinstance(found, int)
            else replace(found, offset=found.offset + offset))


def _difference(n: Dim, m: Dim | None) -> int | None:
    """n - m, if it is constant."""
    if isinstance(n, Extent) and isinstance(m, Extent):
        return n.offset - m.offset if n.symbol == m.symbol else None
    return n - m if isinstance(n, int) and isinstance(m, int) else None


def _length_inside(extent: Extent, start: int, stop: int | None) -> int | None:
    """The length of x[start:stop] if both are counted from the same end and the axis is known to be
    long enough.
    """
    if start >= 0 and stop is not None and stop >= 0:
        return max(stop - start, 0) if stop <= start or stop <= extent.least else None
    if start < 0 and (stop is None or stop < 0):
        return (max((stop or 0) - start, 0) if (stop or 0) <= start or -start <= extent.least
                else None)
    return None


def _from_the_end(extent: Extent, stop: Value):
    """Turn x[:len(x) - 1] into x[:-1], for at most 2, since a shorter x would wrap around."""
    bound = extent_of(stop)
    if (
        isinstance(bound, Extent)
        and bound.symbol == extent.symbol
        and 0 <= extent.offset - bound.offset <= 2
    ):
        return bound.offset - extent.offset or None
    return "?"


def is_basic(pattern: Pattern, operands) -> bool:
    """Whether the index has only integers and slices, so that it names no element twice."""
    return all(is_integer(x) for p, x in paired(pattern, operands) if p == "i")


def is_same_index(pattern: Pattern, operands, other: Pattern, others) -> bool:
    """Whether two indices are equal: the same values, or the same constants."""
    return pattern == other and all(
        a is b or (type(a.constant) is int and type(b.constant) is int and a.constant == b.constant)
        for a, b in zip(operands, others, strict=True)
    )


# --------------------------------------------------------------------------------- as Python has it


def parse_index(key) -> tuple[Pattern, list[Value]]:
    """Pattern and operands of the expression in the brackets: Values, numbers, slices, None, ...,
    tuples.
    """
    pattern, operands = [], []
    for k in key if isinstance(key, tuple) else (key,):
        if k is None or k is ...:
            pattern.append(k)
        elif isinstance(k, slice):
            bounds = [k.start, k.stop, k.step]
            absent = [
                b is None or (isinstance(b, Value) and is_static(b) and static(b) is None)
                for b in bounds
            ]
            pattern.append("".join("." if a else "x" for a in absent))
            operands += [value(b) for b, a in zip(bounds, absent) if not a]
        else:
            pattern.append("i")
            operands.append(value(k))
    return tuple(pattern), operands


def python_index(pattern: Pattern, operands):
    """The index as a Python object, for operands that are arrays and numbers."""
    entries = tuple(
        slice(*o) if isinstance(p, str) and p != "i" else o if p == "i" else p
        for p, o in paired(pattern, operands)
    )
    return entries[0] if len(entries) == 1 else entries


def index_syntax(pattern: Pattern, operands) -> ast.expr:
    """The index as a Python expression."""
    entries = []
    for p, o in paired(pattern, operands):
        if p == "i":
            entries.append(o)
        elif isinstance(p, str):
            entries.append(ast.Slice(*o))
        else:
            entries.append(ast.Constant(p))
    return entries[0] if len(entries) == 1 else ast.Tuple(entries, ast.Load())
