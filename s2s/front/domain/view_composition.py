"""Compose chained indexing, `x[p][q]`, into one index of `x`, so that writes through nested views
reach the base array.

    x[2:][i]        is   x[i + 2]            where i is not negative
    x[1:-1][1:]     is   x[2:-1]
    a[k][:, 0]      is   a[k, :, 0]
    x[lo:hi][i]     is   x[within(i, len(x), lo, hi, None)]   where nothing is known of i
    a.T[i, j]       is   a[j, i]
    a.ravel()[i]    is   a[i // m, i % m]                     where `a` has m columns

Both are equal for every array for which the first does not raise, and the second raises where the
first does; where that cannot be proved, there is no such index, and the view is written back as a
whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ir.graph import Value
from ...ir.types import Array, Extent, Scalar
from ...ops.arrays.index import within
from ...ops.arrays.index_pattern import Pattern, is_advanced, is_integer, paired
from ...ops.core.identities import base_offset
from ...ops.core.record import value
from ...ops.core.shape import extent_of, length
from ...ops.core.signs import Least, Walk, sure_least

Index = tuple[Pattern, list[Value]]
Counters = dict[Value, tuple]  # the counter of a loop -> (lo, hi, step) of its range


def compose_index(x: Value, first: Index, second: Index, counters: Counters) -> Index | None:
    """The index into `x` equivalent to `second` after `first`; `first` has integers, slices and new
    axes.
    """
    if set(first[0]) <= {"i"}:
        copies = is_advanced(*second)
        return None if copies else ((*first[0], *second[0]), [*first[1], *second[1]])
    if not isinstance(x.type, Array):
        return None
    outer = _entries(*first, x.type.rank)
    axes = [entry for entry in outer if not is_one(entry)]
    if (inner := _entries(*second, len(axes))) is None:
        return None
    arrays = any(isinstance(entry, Value) and not is_integer(entry) for entry in inner)
    if arrays and (len(axes) < len(outer) or None in axes):
        return None  # adjacent integers and arrays form one index
    dims, made = list(x.type.dims), []
    for entry in outer:
        axis = x.type.rank - len(dims)
        if entry is not None:
            extent = dims.pop(0)
        if is_one(entry):
            made.append(entry)
            continue
        while inner and inner[0] is None:
            made.append(inner.pop(0))
        picked = inner.pop(0)
        if entry is None:
            if picked == FULL:
                made.append(None)
            elif not is_one(picked) or picked.constant not in (0, -1):
                return None
            continue
        if entry == FULL or picked == FULL:
            made.append(picked if entry == FULL else entry)
        elif isinstance(picked, tuple):
            made.append(_slice_of_slice(entry, picked, extent, counters))
        elif is_integer(picked):
            made.append(_element_of_slice(x, axis, extent, entry, picked, counters))
        else:
            return None
        if made[-1] is MISSING:
            return None
    return _index_of_entries(made + inner)


def _index_of_entries(entries: list) -> Index:
    """The index with these entries."""
    pattern, operands = [], []
    for entry in entries:
        if isinstance(entry, tuple):
            pattern.append("".join("." if bound is None else "x" for bound in entry))
            operands += [value(bound) for bound in entry if bound is not None]
        else:
            pattern.append(None if entry is None else "i")
            operands += [] if entry is None else [value(entry)]
    while pattern and pattern[-1] == "...":
        pattern.pop()
    return tuple(pattern) or (...,), operands


@dataclass(frozen=True)
class TransposeIndex:
    """`a.T[i, j]` as a[j, i]: an index into a transpose, whose k-th axis is axis order[k] of `a`.
    """

    order: tuple[int, ...]

    def __call__(self, x: Value, index: Index, counters: Counters) -> Index | None:
        entries = _entries(*index, len(self.order))
        if (entries is None or None in entries
            or any(is_one(entry) and not is_integer(entry) for entry in entries)):
            return None
        left = [axis for axis, entry in zip(self.order, entries) if not is_one(entry)]
        return (_index_of_entries([entries[self.order.index(k)]
                                   for k in range(len(entries))]) if left == sorted(left) else None)


def through_ravel(x: Value, index: Index, counters: Counters) -> Index | None:
    """`a.ravel()[i]` as a[i // m, i % m], which holds for negative i, too."""
    entries = _entries(*index, 1)
    if entries is None or len(entries) != 1 or not is_one(entries[0]) or not is_integer(entries[0]):
        return None
    i, places = entries[0], []
    if i.constant in (0, -1):
        return _index_of_entries([i] * x.type.rank)
    for k in range(x.type.rank - 1, 0, -1):
        n = length(x, axis=k)
        places.insert(0, i % n)
        i = i // n
    return _index_of_entries([i, *places])


def through_reshape(lengths: list[Value]) -> Callable:
    """`x.reshape(n, m)[i, j]` as x[i * m + j], if j is provably in 0 .. m - 1."""

    def place(x: Value, index: Index, counters: Counters) -> Index | None:
        entries = _entries(*index, len(lengths))
        if entries is None or not all(is_one(entry) and is_integer(entry) for entry in entries):
            return None
        if not all(_is_inside(i, extent_of(n), counters) for i, n in zip(entries[1:], lengths[1:])):
            return None
        at = entries[0]
        for i, n in zip(entries[1:], lengths[1:]):
            at = i if at.constant == 0 else at * n if i.constant == 0 else at * n + i
        return _index_of_entries([at])

    return place


def _is_inside(i: Value, extent, counters: Counters) -> bool:
    """Whether the integer `i` is provably in range(extent)."""
    if not is_natural(i, counters):
        return False
    if type(i.constant) is int:
        return isinstance(extent, int) and i.constant < extent
    return _is_less(_end_of(i, counters), extent)


def _end_of(i: Value, counters: Counters):
    """A provable exclusive upper bound of the natural number `i`, a counter plus or minus a number,
    as an extent; None if unknown.
    """
    base, offset = base_offset(i)
    if base not in counters or not is_natural(base, counters):
        return None
    start, stop, step = counters[base]
    pace = _least(step, counters)
    if pace is None or pace <= 0:
        return None
    end, shift = base_offset(value(stop))
    if (end is not None and end.op is not None and end.op.name == "length"
        and isinstance(end.op.inputs[0].type, Array)):
        extent = end.op.inputs[0].type.dims[end.op.attrs["axis"]]
        # a length of n - 2 is 0 where n is 1, but then there is no trip, unless the range goes on
        # behind its end
        if (hasattr(extent, "symbol") and not extent.accepts_any
            and (shift <= 0 or extent.offset >= 0)):
            return Extent(extent.symbol, extent.offset + shift + offset)
    bound = extent_of(value(stop))
    return bound + offset if isinstance(bound, int) else Extent(bound.symbol, bound.offset + offset)


def _is_less(end, extent) -> bool:
    """Whether one extent is provably at most another."""
    if isinstance(end, int) and isinstance(extent, int):
        return end <= extent
    same = isinstance(end, Extent) and isinstance(extent, Extent) and end.symbol == extent.symbol
    return same and end.offset <= extent.offset


FULL = (None, None, None)  # the full slice
MISSING = type("Missing", (), {"__repr__": lambda self: "none that is known"})()


def is_one(entry) -> bool:
    """Whether an entry removes its axis from a view: an integer, or one of an array of positions.
    """
    return isinstance(entry, Value)


def _entries(pattern: Pattern, operands: list, rank: int) -> list | None:
    """The entries of the index, one per axis (and new axis): a Value, the three bounds of a slice,
    or None.
    """
    found, rest = [], 0
    for p, operand in paired(pattern, operands):
        if p == "i":
            named = 1 if is_integer(operand) else getattr(operand.type, "rank", None)
            if named is None or (named > 1 and operand.type.dtype == "bool"):
                return None  # a mask of several axes
            found.append(operand)
        elif p is None or p is ...:
            found.append(p)
        else:
            found.append(tuple(None if b is None or b.constant is None else b for b in operand))
        rest += p is not None and p is not ...
    if rest > rank:
        return None
    if ... not in pattern:
        found.append(...)
    k = next(k for k, entry in enumerate(found) if entry is ...)
    return found[:k] + [FULL] * (rank - rest) + found[k + 1:]


def _constant_bound(bound):
    """The constant value of a bound: None if absent, MISSING if only known at run time."""
    if bound is None:
        return None
    return bound.constant if type(bound.constant) is int else MISSING


def _element_of_slice(x: Value, axis: int, extent, bounds: tuple, i: Value,
                      counters: Counters) -> Value:
    """x[lo:hi:step][i] as an element of x."""
    lo, hi, step = map(_constant_bound, bounds)
    if isinstance(extent, int) and MISSING not in (lo, hi, step) and type(i.constant) is int:
        places = range(extent)[slice(lo, hi, step)]
        if -len(places) <= i.constant < len(places):
            return value(places[i.constant])
    stride = 1 if step is None else step
    if stride is not MISSING and is_natural(i, counters):
        ends = hi is None or _is_below(i, extent, lo, hi, stride, counters)
        if stride > 0 and ends and (bounds[0] is None or is_natural(bounds[0], counters)):
            at = i if stride == 1 else i * stride
            return (at
                    if lo in (None, 0)
                    else bounds[0] + at
                    if type(at.constant) is int
                    else at + bounds[0])
        if stride == -1 and lo is None and hi is None:
            base, offset = base_offset(i)
            return (value(-1 - offset)
                    if base is None
                    else value(-1 - offset) - base
                    if offset != -1
                    else -base)
    if stride == 1 and hi is None and type(i.constant) is int and i.constant < 0 and _leaves(
            -i.constant, extent, bounds[0], counters):
        return i
    return within(i, length(x, axis=axis), *(value(bound) for bound in bounds))


def _leaves(count: int, extent, lo: Value | None, counters: Counters) -> bool:
    """Whether at least `count` elements of an axis provably follow `lo`, a counter plus or minus a
    number.
    """
    if lo is None:
        return True
    end = _end_of(lo, counters) if is_natural(lo, counters) else None
    return (isinstance(extent, Extent)
            and _is_less(end, Extent(extent.symbol, extent.offset - count + 1)))


def _is_below(i: Value, extent, lo, hi, stride, counters: Counters) -> bool:
    """Whether `i` is provably less than the length of x[lo:hi]."""
    if (stride != 1 or MISSING in (lo, hi) or hi is None or hi >= 0
        or not isinstance(extent, Extent)):
        return False
    return _is_less(_end_of(i, counters), Extent(extent.symbol, extent.offset - (lo or 0) + hi))


def _slice_of_slice(outer: tuple, inner: tuple, extent, counters: Counters):
    """x[lo:hi:step][a:b:c] as one slice of x; MISSING unless that is provably equal."""
    lo, hi, step = map(_constant_bound, outer)
    a, b, c = map(_constant_bound, inner)
    if isinstance(extent, int) and MISSING not in (lo, hi, step, a, b, c):
        places = range(extent)[slice(lo, hi, step)][slice(a, b, c)]
        if not places:
            return (value(0), value(0), None)
        end = None if places.stop < 0 else places.stop
        return tuple(None if bound is None else value(bound)
                     for bound in (places.start, end, places.step))
    stride, pace = 1 if step is None else step, 1 if c is None else c
    if MISSING in (stride, pace) or min(stride, pace) <= 0:
        return MISSING
    if not all(bound is None or is_natural(bound, counters) for bound in (outer[0], inner[0])):
        return MISSING
    start = _sum(outer[0], inner[0], stride)
    if b is None:
        stop = outer[1]
    elif hi is None and is_natural(inner[1], counters):
        stop = _sum(outer[0], inner[1], stride)
    elif (b is not MISSING and b < 0 and stride == 1
          and (hi is None or (hi is not MISSING and hi < 0))):
        stop = value(b + (hi or 0))
    else:
        return MISSING
    pace = stride * pace
    return start, stop, None if pace == 1 else value(pace)


def _sum(lo: Value | None, a: Value | None, stride: int) -> Value | None:
    """The position of the a-th element after `lo`."""
    if a is None:
        return lo
    a = a if stride == 1 else a * value(stride)
    return a if lo is None else lo + a if type(a.constant) is int else a + lo


def is_natural(i: Value, counters: Counters) -> bool:
    """Whether the integer `i` is provably non-negative."""
    least = _least(i, counters)
    return least is not None and least >= 0


def _least(i: Value | int, counters: Counters) -> int | None:
    """A provable lower bound of the integer `i`; None if unknown."""
    def of_counter(x: Value, bound: Walk) -> Least | None:
        if x not in counters:
            return None
        lo, hi, step = counters[x]
        step = bound(step) if type(step) is int or type(step.constant) is int else None
        low = step and bound(lo if step.number > 0 else hi)
        return low and Least(low.number + (step.number < 0))

    is_number = isinstance(i, int) or isinstance(i, Value) and isinstance(i.type, Scalar)
    return sure_least(i, of_counter) if is_number else None
