"""When Python and NumPy raise for arrays and lists: lengths that do not agree, counts below zero,
indices out of range, and extremes of nothing (raise_conditions.py says how this is stated).
"""

from __future__ import annotations

import numpy as np

from ...ir.graph import OPERATORS, Value
from ...ir.types import Array, Scalar
from .raise_conditions import (
    Raises,
    all_of,
    both,
    constant_of,
    differs,
    dtype_or_float,
    either,
    equals,
    is_at_most,
    is_less,
    is_more,
    is_zero,
)
from .record import RECORDS, value


def extent(x: Value, axis: int) -> Value:
    """The length of one axis of x."""
    return RECORDS["length"](x, axis=axis)


def unlike(n: Value, m: Value):
    """Whether two lengths differ."""
    if n is m or constant_of(n) is not None and constant_of(n) == constant_of(m):
        return None
    known = n if constant_of(n) is not None else m
    return (differs(m if known is n else n, known.constant) if constant_of(known) is not None
            else OPERATORS["not_equal"](n, m))


def do_not_agree(n: Value, m: Value, broadcasts: bool | str):
    """Whether axes of these lengths do not match; with `broadcasts` one may be 1, or the second."""
    return all_of(unlike(n, m), *(differs(x, 1) for x in (n, m)
                                  if broadcasts and (x is m or broadcasts != "second")))


def is_negative_count(n: Value):
    """Whether the count n is negative."""
    return is_less(n, 0) if isinstance(n.type, Scalar) else None


def any_is_negative(*counts: Value, **attrs):
    """Whether one of the counts is negative."""
    found = None
    for n in counts:
        found = either(found, is_negative_count(n))
    return found


def is_empty(x: Value, *, axis, keepdims: bool):
    """Whether x is empty along `axis`, so that its extreme is undefined."""
    if not isinstance(x.type, Array):
        return None
    axes = range(x.type.rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    found = None
    for k in axes:
        found = either(found, equals(extent(x, k % x.type.rank), 0))
    return found


def fills_not(x: Value, *sizes: Value):
    """Whether the size of x does not match this shape; -1 stands for the remaining length."""
    if not isinstance(x.type, Array):
        return None
    whole, part, is_open = RECORDS["size"](x), value(1), False
    for n in sizes:
        if constant_of(n) == -1:
            is_open = True
        else:
            part = part * n
    if not is_open:
        return unlike(whole, part)
    rest = both(is_more(part, 0),
                differs(OPERATORS["remainder"](whole, RECORDS["max_"](part, value(1))), 0))
    return either(is_at_most(part, 0), rest) if constant_of(part) != 1 else None


def steps_by_zero(x: Value, *operands: Value, pattern: tuple):
    """Whether a slice of x has step 0."""
    rest, found = list(operands), None
    for p in pattern:
        if not isinstance(p, str):
            continue
        here, rest = rest[:p.count("x")], rest[p.count("x"):]
        if p == "i":
            rest = (here + rest)[1:]
        elif len(p) == 3 and p[2] == "x":
            found = either(found, equals(here[-1], 0))
    return found


def fits_not(x: Value, v: Value, *operands: Value, pattern: tuple):
    """Whether v does not broadcast to the slices of x that are written; whole axes are known to
    agree.
    """
    if (not isinstance(v.type, Array) or not isinstance(x.type, Array)
        or not any(isinstance(p, str) and p != "i" and p != "..." for p in pattern)
        or not all(p is None or p is ... or isinstance(p, str) for p in pattern)):
        return None
    place, found = RECORDS["getitem"](x, *operands, pattern=pattern), None
    if not isinstance(place.type, Array) or place.type.rank < v.type.rank:
        return None
    for k in range(1, v.type.rank + 1):
        if v.type.dims[-k] not in (1, place.type.dims[-k]):
            n, m = extent(v, v.type.rank - k), extent(place, place.type.rank - k)
            found = either(found, both(unlike(n, m), differs(n, 1)))
    return found


def is_not_finite_somewhere(a: Value, *_, **attrs):
    """Whether a matrix contains infinities or NaN."""
    if not isinstance(a.type, Array) or not str(a.type.dtype).startswith(("float", "complex")):
        return None
    return RECORDS["not_"](RECORDS["all"](OPERATORS["isfinite"](a), axis=None, keepdims=False))


def _any(x):
    """Whether any element of a boolean array is true; a boolean as it is."""
    return (RECORDS["any"](x, axis=None, keepdims=False)
            if isinstance(x, Value) and isinstance(x.type, Array) else x)


def indexed_outside(x: Value, *operands: Value, pattern: tuple):
    """Whether an index array is out of bounds of x, or a mask has another length."""
    rest, axis, found = list(operands), 0, None
    if not isinstance(x.type, Array):
        return None
    for p in pattern:
        if p is ... or axis >= x.type.rank:
            return found
        if p is None:
            continue
        if p != "i":
            del rest[:p.count("x")]
            axis += 1
            continue
        index = rest.pop(0)
        if not isinstance(index.type, Array):
            axis += 1
        elif dtype_or_float(index) == "bool":
            for k in range(index.type.rank):
                if axis + k < x.type.rank and index.type.dims[k] != x.type.dims[axis + k]:
                    found = either(found, unlike(extent(x, axis + k), extent(index, k)))
            axis += index.type.rank
        else:
            count = extent(x, axis)
            found = either(found, _any(OPERATORS["bitwise_or"](index < -count, index >= count)))
            axis += 1
    return found


def number_outside(x: Value, *operands: Value, pattern: tuple):
    """Whether an index that is a number is out of bounds of x."""
    rest, axis, found = list(operands), 0, None
    for p in pattern if isinstance(x.type, Array) else ():
        if p is ... or axis >= x.type.rank:
            break
        if p is None:
            continue
        if p != "i":
            del rest[:p.count("x")]
        elif isinstance((index := rest.pop(0)).type, Array):
            break
        elif dtype_or_float(index) != "bool":
            count = extent(x, axis)
            found = either(found, either(index < -count, index >= count))
        axis += 1
    return found


def number_written_outside(x: Value, v: Value, *operands: Value, pattern: tuple):
    """The same for x[...] = v."""
    return number_outside(x, *operands, pattern=pattern)


def written_outside(x: Value, v: Value, *operands: Value, pattern: tuple):
    """The same for x[...] = v."""
    return indexed_outside(x, *operands, pattern=pattern)


def is_outside(xs: Value, i: Value):
    """Whether the index of xs[i] is out of range."""
    n = RECORDS["tape_len"](xs)
    return either(is_less(i, -n) if constant_of(i) is None or constant_of(i) < 0 else None,
                  OPERATORS["greater_equal"](i, n))


def has_no_items(xs: Value, *_):
    """Whether a list is empty."""
    return equals(RECORDS["tape_len"](xs), 0)


def is_missing(xs: Value, x: Value):
    """Whether a list does not contain x."""
    return equals(RECORDS["list_count"](xs, x), 0)


COUNTS = (Raises(ValueError, any_is_negative, (-1,)),)
COUNTS_AFTER_ONE = (Raises(ValueError, any_is_negative, (0.0, -1), operands=slice(1, None)),)
COUNTS_AFTER_TWO = (Raises(ValueError, any_is_negative, (0.0, 1.0, -1), operands=slice(2, None)),)
EXTREME = (Raises(ValueError, is_empty, (np.zeros(0),), natively=False),)
RESHAPE = (Raises(ValueError, fills_not, (np.zeros(3), 2), natively=False),)


def deleted_outside(x: Value, places: Value, *, axis: int | None):
    """Whether an index at which np.delete removes something is out of bounds."""
    return None if dtype_or_float(places) == "bool" else _out_of(places, extent(x, axis or 0))


def inserted_outside(x: Value, place: Value, *_):
    """Whether the index at which np.insert puts something is out of bounds; it may be the end."""
    count = extent(x, 0)
    return either(place < -count, place > count)


def placed_outside(x: Value, *, kth, axis: int):
    """Whether there is no place `kth`, or one of them, on an axis."""
    count, found = extent(x, axis), None
    for k in kth if isinstance(kth, tuple) else (kth,):
        found = either(found, _out_of(value(k), count))
    return found


def _out_of(index: Value, count: Value):
    return either(_any(index < -count), _any(index >= count))


def any_below_zero(x: Value, *_):
    """Whether an element of an array of integers is negative."""
    return _any(x < 0)


def one_is_empty(a: Value, v: Value):
    """Whether one of two vectors has no elements."""
    return either(equals(extent(a, 0), 0), equals(extent(v, 0), 0))


DELETE = (Raises(IndexError, deleted_outside, natively=False),)
INSERT = (Raises(IndexError, inserted_outside, natively=False),)
PLACE = (Raises(ValueError, placed_outside, natively=False),)
COUNT_NUMBERS = (Raises(ValueError, any_below_zero, natively=False),)
OF_SOME = (Raises(ValueError, one_is_empty, natively=False),)
READ = (Raises(IndexError, indexed_outside, natively=False),
        Raises(IndexError, number_outside, natively=False, in_brackets=False),
        Raises(ValueError, steps_by_zero, natively=False))
WRITE = (Raises(IndexError, written_outside, natively=False),
         Raises(IndexError, number_written_outside, natively=False, in_brackets=False),
         Raises(ValueError,
                lambda x, v, *operands, pattern: steps_by_zero(x, *operands, pattern=pattern),
                natively=False), Raises(ValueError, fits_not, natively=False))
RANGE = (Raises(ZeroDivisionError, is_zero, (0, 1, 0), operands=(2,)),)
POP_LAST = (Raises(IndexError, has_no_items, ([],), natively=False),)
POP = (Raises(IndexError, has_no_items, ([], 0), natively=False),
       Raises(IndexError, is_outside, ([0], 3), natively=False))
FIND = (Raises(ValueError, is_missing, ([], 0), natively=False),)
EXTREME_OF_LIST = (Raises(ValueError, has_no_items, ([],), natively=False),)
