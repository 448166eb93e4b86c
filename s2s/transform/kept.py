"""Elements that outlive the loop that wrote them: the reverse sweep reads them where they are.

A loop nest that fills a table (`d[i, j] = ... d[i - 1, j] ... d[i, j - 1]`, a running sum, a tape) writes
each element once and never destroys what it has read.  So what it read is still in the finished table,
and needs no tape.  Note [Written once]

The nest has one write to the array, at (i + a, j + b, ...) for its counters i, j, ...  A read at
(i + a', j + b', ...) names the element that is written d = (a' - a, b' - b, ...) trips away.  Where d, in
the order of the loops and in the direction in which they count, is negative, that trip is over or never
comes, so the element is final.  Indices must be proved not to be negative, since those count from the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..ir.graph import MISSING, Block, Function, Op, Value, walk
from ..ir.types import Array, Scalar
from ..ops.fold import base_offset
from ..ops.index import getitem, setitem
from ..ops.places import lower_bound


@dataclass(frozen=True)
class Kept:
    """Where a value stands after the loops: an element (or a row) of a finished array."""

    array: Value
    indices: tuple[Value, ...]


def kept_values(function: Function) -> dict[Value, Kept]:
    """The values inside the loops of `function` that can be read from an array after them."""
    counters = {op.blocks[0].params[0]: op for op in walk(function.block) if op.name == "for"}
    found: dict[Value, Kept] = {}
    for op in function.block.ops:
        if op.name == "for":
            for k, out in enumerate(op.outputs):
                if isinstance(out.type, Array):
                    found.update(_kept_by(op, k, counters))
    return found


def _kept_by(outer: Op, k: int, counters: dict[Value, Op]) -> dict[Value, Kept]:
    """What the carry `k` of an outermost loop keeps."""
    nest, write = _single_write(outer, k)
    if write is None or set(write.attrs["pattern"]) != {"i"}:
        return {}
    places = [base_offset(i) for i in write.inputs[2:]]
    order = {loop.blocks[0].params[0]: n for n, loop in enumerate(nest)}
    if sorted(order[base] for base, _ in places if base in order) != list(range(len(nest))):
        return {}  # not each trip an element of its own
    if not all(_is_natural(i, counters) for i in write.inputs[2:]):
        return {}
    array = outer.outputs[k]
    found = {}
    v = write.inputs[1]
    if _fills(v, array.type, len(places)):
        found[v] = Kept(array, tuple(write.inputs[2:]))
    before, after = write.inputs[0], write.output
    for op in walk(nest[-1].blocks[0]):
        if op.record is getitem and op.inputs[0] in (before, after) and op.attrs == write.attrs:
            trips = _trips_away(op.inputs[1:], places, order, nest)
            if trips is not None and (trips < _zeros(trips) or (trips == _zeros(trips) and op.inputs[0] is after)):
                if all(_is_natural(i, counters) for i in op.inputs[1:]):
                    found[op.output] = Kept(array, tuple(op.inputs[1:]))
    return found


def _single_write(outer: Op, k: int) -> tuple[list[Op], Op | None]:
    """The loops, outermost first, through which a carry goes to the only op that writes it; and that op."""
    nest, loop = [], outer
    while True:
        if loop.name != "for" or not isinstance(loop.inputs[2].constant, int):
            return nest, None
        nest.append(loop)
        body = loop.blocks[0]
        param, end = body.params[1 + k], body.yields[k + (1 if loop.attrs["breaks"] else 0)]
        if end.op is None or end.op not in body.ops:
            return nest, None
        if end.op.record is setitem:
            alone = end.op.inputs[0] is param and _only_read(body, {param, end.op.output}, end.op)
            return nest, end.op if alone else None
        if end.op.name != "for":
            return nest, None
        inner = end.op.outputs.index(end)
        if end.op.inputs[3 + inner] is not param or not _only_read(body, {param, end}, end.op):
            return nest, None
        loop, k = end.op, inner


def _only_read(body: Block, states: set[Value], writer: Op) -> bool:
    """Whether `body` hands these versions of an array to nothing but reads of elements, and to `writer` once."""
    for op in walk(body):
        if op is writer:
            if Counter(op.inputs)[op.inputs[0]] > 1 and op.inputs[0] in states:
                return False
            continue
        if any(x in states for x in op.inputs) and not (op.record is getitem and op.inputs[0] in states
                                                        or op.name in ("length", "shape", "size", "zeros_like")):
            return False
    return True


def _trips_away(indices, places, order: dict[Value, int], nest: list[Op]) -> list[int] | None:
    """How many trips of each loop lie between now and the write to the element that is read."""
    trips = [0] * len(nest)
    for i, (base, offset) in zip(indices, places, strict=True):
        other, shift = base_offset(i)
        if other is not base or (base not in order and shift != offset):
            return None
        if base in order:
            step = nest[order[base]].inputs[2].constant
            trips[order[base]] = (shift - offset) * (1 if step > 0 else -1)
    return trips


def _zeros(trips: list[int]) -> list[int]:
    return [0] * len(trips)


def _is_natural(i: Value, counters: dict[Value, Op]) -> bool:
    """Whether an index is proved not to be negative."""
    low = lower_bound(i, counters)
    return low is not None and low >= 0


def _fills(v: Value, array: Array, count: int) -> bool:
    """Whether writing `v` at `count` indices leaves exactly `v` there: no cast, no broadcast."""
    dims = v.type.dims if isinstance(v.type, Array) else ()
    return (isinstance(v.type, (Scalar, Array)) and v.type.dtype == array.dtype and dims == array.dims[count:]
            and v.constant is MISSING)
