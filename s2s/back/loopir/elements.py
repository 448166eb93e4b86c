"""Lazy arrays: views and generated arrays as index arithmetic instead of memory.

`Elements` gives one element of an array and its length along each axis. A slice of an array in
memory is that array read at shifted indices; `np.arange(n)` is the index itself. Neither is
materialised unless something needs it as an array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...analysis.affine import is_below, lower_bound
from ...ir.graph import Op, Value
from ...ir.types import Array
from ...ops.arrays.index import getitem
from ...ops.arrays.index_pattern import expand, paired
from ...ops.core.control import at_least_zero
from ...ops.core.record import value
from .loop_builder import add, multiply, op_named, subtract
from .ops import checked_place, slice_bound_op

Index = Sequence[Value]


@dataclass(eq=False)
class Elements:
    """A lazy array: its type, its lengths, its elements, and the array in memory on demand."""

    type: Array
    lengths: tuple[Value, ...]
    at: Callable[[Index], Value]
    # materialises it; None if a loop must fill it
    whole: Callable[[], Value] | None = None
    value: Value | None = None  # the array in memory, if it is there
    generated: bool = False  # reading it reads no memory
    same_as: Value | None = None  # an array in memory with the same elements at the same indices


def in_memory(x: Value, lengths: Sequence[Value], type: Array | None = None) -> Elements:
    """The elements of an array in memory."""
    return Elements(type or x.type, tuple(lengths), lambda index: read(x, index), lambda: x, x)


def read(x: Value, index: Index) -> Value:
    """x[i, j, ...] with an index for each axis."""
    return getitem(x, *index, pattern=("i",) * len(index))


# ------------------------------------------------------------------------------------------- slices


@dataclass(eq=False)
class Stride:
    """One axis of a slice, whose element i is element start + i * step of the source."""

    start: Value
    step: int
    length: Value

    def __call__(self, i: Value) -> Value:
        if self.step == -1:
            return subtract(self.start, i)
        return add(i if self.step == 1 else multiply(i, self.step), self.start)


def stride(n: Value, lo: Value | None, hi: Value | None, step: Value | None) -> Stride | None:
    """The slice of an axis of length `n`; None if its step is known only at run time.

    None as well for unknown bounds with a negative step.
    """
    if step is not None and not isinstance(step.constant, int):
        return None
    by = 1 if step is None else int(step.constant)
    if any(b is not None and not isinstance(b.constant, int) for b in (lo, hi)):
        if by < 1:
            return None
        first = value(0) if lo is None else _bound(lo, n)
        last = n if hi is None else _bound(hi, n)
        return Stride(first, by, _steps(first, last, by))
    start, stop = (None if b is None else int(b.constant) for b in (lo, hi))
    start = None if start == 0 and by > 0 else start
    if isinstance(n.constant, int):
        chosen = range(n.constant)[slice(start, stop, by)]
        return Stride(value(chosen.start), chosen.step, value(len(chosen)))
    if start is None and stop is None:
        count = n if abs(by) == 1 else op_named("floor_divide", add(n, abs(by) - 1), abs(by))
        return Stride(value(0) if by > 0 else subtract(n, 1), by, count)
    if by < 1:
        return None
    first = (value(0) if start is None else value(start) if start > 0
             else at_least_zero(add(n, start)))
    last = n if stop is None else add(n, stop) if stop < 0 else op_named("minimum", n, stop)
    return Stride(first, by, _steps(first, last, by))


def _bound(k: Value, n: Value) -> Value:
    """A slice bound on an axis of length `n`: `k` itself, where `n` is at least that."""
    return slice_bound_op(k, n) if _rest(n, k) is None else k


def _rest(whole: Value, part: Value) -> Value | None:
    """The other terms of a sum that contains `part`; None if there is no such sum.

    The other terms must not be negative. An axis of concatenated arrays is as long as they are
    together, and is sliced where one of them begins.
    """
    (terms, number), (taken, least) = _terms(whole), _terms(part)
    for x in taken:
        found = next((k for k, y in enumerate(terms) if _is_same_length(x, y)), None)
        if found is None:
            return None
        del terms[found]
    if not 0 <= least <= number or any((low := lower_bound(x, {})) is None or low < 0
                                       for x in (*taken, *terms)):
        return None
    return (functools.reduce(add, [*terms, value(number - least)]) if terms
            else value(number - least))


def _terms(n: Value) -> tuple[list[Value], int]:
    """The terms of a sum, and its constant."""
    if type(n.constant) is int:
        return [], n.constant
    if n.op is None or n.op.name != "add":
        return [n], 0
    (first, number), (second, more) = map(_terms, n.op.inputs)
    return [*first, *second], number + more


def _is_same_length(n: Value, m: Value) -> bool:
    return (n is m or all(x.op is not None and x.op.name == "length" for x in (n, m))
            and n.op.inputs[0] is m.op.inputs[0] and n.op.attrs == m.op.attrs)


def _steps(first: Value, last: Value, by: int) -> Value:
    """The number of indices from `first` up to but not including `last`, in steps of `by`."""
    rest = _rest(last, first) if by == 1 else None
    if rest is not None:
        return rest
    length = subtract(last, first)
    return at_least_zero(length if by == 1 else op_named("floor_divide", add(length, by - 1), by))


def view_index(source: Elements, op: Op, operands: Sequence[Value],
               counters: dict[Value, Op], checks: bool) -> tuple[list[Value], Callable] | None:
    """Lengths and index map of a basic index; None if some bound is known only at run time.

    `checks` checks an index of a generated array that may be out of bounds: a row of np.eye(n) is
    no reason to materialise it.
    """
    maps: list[tuple] = []
    lengths: list[Value] = []
    axis = 0
    for p, operand in paired(expand(op.attrs["pattern"], source.type.rank), operands):
        if p is None:
            maps.append(("new",))
            lengths.append(value(1))
            continue
        n = source.lengths[axis]
        axis += 1
        if p == "i":
            constant = operand.constant
            if isinstance(constant, int) and constant < 0:
                operand = add(n, constant)
            elif (not isinstance(constant, int) and source.value is None
                  and not is_below(operand, n, counters)):
                if not (checks and source.generated):
                    # a negative index would have to be wrapped, and a large one rejected
                    return None
                operand = checked_place(operand, n)
            maps.append(("fixed", operand))
        else:
            bounds = (None, None, None) if p == "..." else operand
            sliced = stride(n, *bounds)
            if sliced is None:
                return None
            maps.append(("slice", sliced))
            lengths.append(sliced.length)

    def index_of(index: Index) -> list[Value]:
        rest, full = list(index), []
        for kind, *what in maps:
            if kind == "new":
                rest.pop(0)
            elif kind == "fixed":
                full.append(what[0])
            else:
                full.append(what[0](rest.pop(0)))
        return full

    return lengths, index_of


# -------------------------------------------------------------------------------------------- views


def basic_view(source: Elements, op: Op, operands: Sequence[Value], whole: Callable,
               counters: dict[Value, Op], checks: bool) -> Elements | None:
    """The elements of `x[1:-1, None, 0]`: mapped indices, or a NumPy view of unknown bounds.

    `counters` maps the counter of each enclosing `for` to an op that has its bounds; `checks` emits
    checks, which a device kernel cannot do.
    """
    found = view_index(source, op, operands, counters, checks)
    if found is None:
        return None
    lengths, index_of = found
    lengths = [value(d) if isinstance(d, int) else n for d, n in zip(op.output.type.dims, lengths)]
    return Elements(op.output.type, tuple(lengths), lambda index: source.at(index_of(index)), whole)


def transposed(source: Elements, op: Op, axes: Sequence[int], whole: Callable) -> Elements:
    """The elements of an array with its axes permuted."""
    lengths = tuple(source.lengths[a] for a in axes)

    def at(index: Index) -> Value:
        full = [None] * len(axes)
        for i, a in zip(index, axes):
            full[a] = i
        return source.at(full)

    return Elements(op.output.type, lengths, at, whole)


def flat_index(index: Index, lengths: Sequence[Value]) -> Value:
    """The position of an element in C order."""
    position = index[0]
    for i, n in zip(index[1:], lengths[1:]):
        position = add(multiply(position, n), i)
    return position


def unflat_index(position: Value, lengths: Sequence[Value]) -> list[Value]:
    """The index of the element at a position in C order."""
    index = []
    for n in reversed(lengths[1:]):
        index.append(op_named("remainder", position, n))
        position = op_named("floor_divide", position, n)
    return [position, *reversed(index)]


def reshaped(source: Elements, op: Op, lengths: Sequence[Value], whole: Callable) -> Elements:
    """The elements of an array reshaped to `lengths`, in C order."""
    def at(index: Index) -> Value:
        if not index:
            return source.at([value(0)] * source.type.rank)
        return source.at(unflat_index(flat_index(index, lengths), source.lengths))

    return Elements(op.output.type, tuple(lengths), at, whole)
