"""Recompute cheap elements in the loop that reads them (rematerialisation).

    d = np.empty(3)                                   s = 0.0
    s = 0.0                                           for k in range(3):
    for k in range(3):                                    t = x[i, k] - y[j, k]
        t = x[i, k] - y[j, k]         becomes             s += t * t
        d[k] = t                                      e = np.exp(-s)
        s += t * t                                    for k in range(3):
    e = np.exp(-s)                                        x_bar[i, k] += e * (x[i, k] - y[j, k])
    for k in range(3):
        x_bar[i, k] += e * d[k]

A load of an element, or the sum of two, costs what storing a number and loading it costs; but an
array that each trip fills anew prevents vectorising the trips (distribute_stages.py,
distribute_gathers.py) and the inner loop. The pass is sound where no operand of the elements is
overwritten. One sum gives the same bits in both places. A product does not: LLVM contracts a
multiplication and an addition into one rounding, and `t[i] - t[j]` of squares is no longer 0 where
i is j. Nor do two operations: an element that is the maximum might no longer equal the maximum.

Considered: arrays of one strip's trips for what one stage computes in a loop and another reads.
They are needed for expensive values, and cost memory; here they would gain nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from ...analysis.dependence import counts_from_zero
from ...ir.graph import Block, Function, Op, Readers, Value, blocks_of, readers_of, walk
from ...ir.substitute import substitute
from ...ir.types import INT, Array
from ..loopir.length_checks import compared
from ..loopir.ops import buffer
from .forward_stores import is_same
from .reuse_dying_buffers import only_write

LOADS, SUMS = 2, 1  # limits for one recomputed element
READERS = 3  # most loops that recompute it


def rematerialise(function: Function) -> Function:
    """Recompute cheap elements instead of storing them in arrays, in the loops of `function`."""
    if not any(op.record is buffer for op in walk(function.block)):
        return function
    readers = readers_of(function.block)
    blocks = list(blocks_of(function.block))
    home = {op: block for block in blocks for op in block.ops}
    counters = {block.params[0] for op in home if op.name == "for" and counts_from_zero(op)
                for block in op.blocks}
    same: dict[Value, Value] = {}
    needed_now: set[Value] = set()  # operands of recomputed ops, which `readers` does not know
    for allocation in [op for op in home if op.record is buffer]:
        found = _stored_array(allocation, readers, counters)
        needed = None if found is None else _recomputation(found.write, found.loop, readers)
        if (needed is not None and needed_now.isdisjoint(found.loop.outputs)
                and same.keys().isdisjoint([found.write.inputs[1],
                                            *(x for op in needed for x in op.inputs)])):
            needed_now.update(x for op in needed for x in op.inputs)
            done: dict[tuple, Value] = {}
            for op in found.reading:
                place, where = home[op].ops.index(op), (home[op], *op.inputs[1:])
                if where not in done:
                    env = dict(zip(found.write.inputs[2:], op.inputs[1:]))
                    home[op].ops[place:place] = [_copy_op(each, env) for each in needed]
                    done[where] = env.get(found.write.inputs[1], found.write.inputs[1])
                home[op].ops.remove(op)
                same[op.output] = done[where]
            _drop(found.write, found.loop, allocation.output, home)
    substitute(function.block, same)
    return function


class StoredArray(NamedTuple):
    """An array that one loop fills, and other loops read at their counters."""

    loop: Op
    write: Op
    reading: list[Op]


def _stored_array(allocation: Op, readers: Readers, counters: set[Value]) -> StoredArray | None:
    """The fill and the reads of the array of `allocation`; None if it is used otherwise."""
    if len(readers[allocation.output]) != 1 or allocation.attrs["zero"]:
        return None
    ((loop, _),) = readers[allocation.output]
    if loop is None or loop.name != "for":
        return None
    k = loop.inputs.index(allocation.output) - 3
    write = only_write(loop, k)
    reading = [op for op, _ in readers[loop.outputs[k]]]
    if write is None or not 0 < len(reading) <= READERS or any(op is not None
                                                               for op, _ in readers[write.output]):
        return None
    if not all(op is not None and op.name == "getitem"
               and not isinstance(op.output.type, Array) and counters.issuperset(op.inputs[1:])
               for op in reading) or not _is_filled(allocation, loop, write):
        return None
    return StoredArray(loop, write, reading)


def _is_filled(allocation: Op, loop: Op, write: Op) -> bool:
    """Whether `write` fills the array, so that every read is of a computed element.

    The loops around it, of which `loop` is the outermost, must visit all indices.
    """
    ends = {op.blocks[0].params[0]: op.inputs[1] for op in (loop, *walk(loop.blocks[0]))
            if op.name == "for" and op.inputs[2].constant == 1 and op.inputs[0].constant == 0}
    return all(i in ends and not compared(n).isdisjoint(compared(ends[i]))
               or i in ends and is_same(n, ends[i])
               for i, n in zip(write.inputs[2:], allocation.inputs, strict=True))


def _recomputation(write: Op, loop: Op, readers: Readers) -> list[Op] | None:
    """The ops that compute what `write` stores.

    None if they are expensive or read overwritten memory.
    """
    if write.inputs[1].type.dtype != write.inputs[0].type.dtype:
        return None
    inside = {op: None for op in walk(loop.blocks[0])}
    free = {x for block in blocks_of(loop.blocks[0])
            for x in block.params}.difference(write.inputs[2:])
    found, pending = set(), [write.inputs[1]]
    while pending:
        x = pending.pop()
        if x in free:
            return None
        op = x.op
        if op not in inside or op in found:
            continue
        if op.name == "getitem":
            array = op.inputs[0]
            if (isinstance(op.output.type, Array) or array in free or array.op in inside
                    or any(reader is None or reader.blocks or reader.record.writes is not None
                           for reader, _ in readers[array])):
                return None
            pending += op.inputs[1:]
        elif (op.record.signs or op.name == "constant" or op.name == "multiply"
              and op.output.type == INT):
            pending += op.inputs
        else:
            return None
        found.add(op)
    if (sum(op.name == "getitem" for op in found) > LOADS
            or sum(bool(op.record.signs) and op.output.type != INT for op in found) > SUMS):
        return None
    return [op for op in inside if op in found]


def _copy_op(op: Op, env: dict[Value, Value]) -> Op:
    """A copy of the op with its inputs mapped by `env`, to which its output is added."""
    copy = Op(op.record, [env.get(x, x) for x in op.inputs], op.attrs, [], [], op.line)
    copy.outputs.append(Value(op.output.type, op.output.name, copy))
    env[op.output] = copy.output
    return copy


def _drop(write: Op, loop: Op, array: Value, home: dict[Op, Block]) -> None:
    """Remove the array `array`, which `write` fills, from the carries of `loop`."""
    while loop is not None:
        k = loop.inputs.index(array) - 3
        (body,) = loop.blocks
        array, end = body.params[1 + k], body.yields[k]
        del loop.inputs[3 + k], loop.outputs[k], body.params[1 + k], body.yields[k]
        loop = None if end is write.output else end.op
    home[write].ops.remove(write)
