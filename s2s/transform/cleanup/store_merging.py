"""Store merging: merge several writes to one element into one, where nothing reads it in between.

    t = u_bar[i]                          t = u_bar[i]
    u_bar[i] = 0.0              becomes   u_bar[i + 1] += k * t
    u_bar[i + 1] += k * t                 u_bar[i] = t
    u_bar[i] += t

An adjoint takes the cotangent of an element that a write destroyed (`t = u_bar[i]; u_bar[i] = 0`)
and then adds to the same element what its reads contributed.  Between the two stand writes to its
neighbours; they are stepped over only if the indices are proved to differ: the same base with other
offsets, where neither can be negative (a negative index means an element from the end).

Note [Slices that are cleared and added to]
    t = u_bar[1:-1].copy()                t = u_bar[1:-1]
    u_bar[1:-1] = 0.0           becomes   u_bar[1:-1] = t - 2.0 * k * t
    u_bar[:-2] += k * t                   u_bar[:-2] += k * t
    u_bar[1:-1] += t - 2.0 * k * t
Slices of a stencil overlap, so the last write cannot take over what the first did.  But what an
adjoint adds may be added in any order: the slice starts as what was to be added to it, if that can
be computed so early, and t, which is read no later, needs no copy.  What the user's program adds
keeps its order, and its rounding.
"""

from __future__ import annotations

from collections import Counter

from ...analysis.affine import indices_differ
from ...ir.builder import Builder
from ...ir.graph import Block, Function, Op, Value, blocks_of, walk
from ...ir.substitute import substitute
from ...ops.arrays.index import additem, getitem, setitem
from ...ops.arrays.index_pattern import is_basic, is_same_index
from ...ops.core.identities import base_offset
from ...ops.program.effects import has_effects

MOVED = 8  # the most ops to move up for a value


def merge_stores(function: Function) -> Function:
    """Merge writes to one element into the last of them."""
    counters = {op.blocks[0].params[0]: op for op in walk(function.block) if op.name == "for"}
    reads = Counter(_reads(function.block))
    for block in blocks_of(function.block):
        _merge(block, reads, counters)
    return function


def _reads(block: Block):
    yield from block.yields
    for op in block.ops:
        yield from op.inputs
        for inner in op.blocks:
            yield from _reads(inner)


def _merge(block: Block, reads: Counter, counters: dict[Value, Op]) -> None:
    position = {op: k for k, op in enumerate(block.ops)}
    for op in list(block.ops):
        if op.record not in (setitem, additem) or op not in block.ops:
            continue
        if not _is_element(op):
            _start_with(op, block, position, reads)
            continue
        earlier = _earlier_write(op, position, reads, counters)
        if earlier is None:
            _start_with(op, block, position, reads)
            continue
        if op.record is additem:
            if earlier.record is setitem and earlier.inputs[1].constant == 0:
                op.record = setitem
            elif earlier.record is setitem:
                continue
            else:
                with Builder(line=op.line) as builder:
                    total = earlier.inputs[1] + op.inputs[1]
                at = block.ops.index(op)
                block.ops[at:at] = builder.block.ops
                op.inputs[1] = total
        _skip(earlier, block, reads)
        block.ops.remove(earlier)
    for op in list(block.ops):
        _drop_if_unchanged(op, block, counters)


def _skip(write: Op, block: Block, reads: Counter) -> None:
    """Let all who read the array after `write` read it as it was before."""
    before, after = write.inputs[0], write.output
    substitute(block, {after: before})
    reads[before] += reads[after] - 1  # `write` itself reads it no more


def _start_with(op: Op, block: Block, position: dict[Op, int], reads: Counter) -> None:
    """Initialise a slice that an adjoint clears with what `op` adds to it.
    Note [Slices that are cleared and added to]
    """
    if (op.record is not additem or not _is_backwards(op)
            or not is_basic(op.attrs["pattern"], op.inputs[2:])):
        return
    first = op
    while ((before := first.inputs[0].op) in position and before.record is additem
           and reads[before.output] == 1 and _is_backwards(before)):
        first = before
    if (first is op or before not in position or before.record is not setitem
            or reads[before.output] != 1 or not _is_backwards(before)):
        return
    if before.inputs[1].constant != 0 or not is_same_index(op.attrs["pattern"], op.inputs[2:],
                                                           before.attrs["pattern"],
                                                           before.inputs[2:]):
        return
    position = {other: k for k, other in enumerate(block.ops)}  # in their current order
    start = position[first]
    moved = _computed_between(op.inputs[1], start, position)
    if moved is None:
        return
    before.inputs[1] = op.inputs[1]
    _skip(op, block, reads)
    rest = [other for other in block.ops[start:] if other is not op and other not in moved]
    block.ops[start:] = [*(other for other in block.ops[start:] if other in moved), before, *rest]
    block.ops.remove(before)  # at its position, which is earlier


def _computed_between(x: Value, start: int, position: dict[Op, int]) -> set[Op] | None:
    """Return the few elementwise ops from `start` on that compute `x`; None if it takes others."""
    found: set[Op] = set()
    todo = [x]
    while todo:
        op = todo.pop().op
        if op is None or position.get(op, -1) < start or op in found:
            continue
        if not op.record.elementwise or has_effects(op) or len(found) == MOVED:
            return None
        found.add(op)
        todo += op.inputs
    return found


def _is_backwards(op: Op) -> bool:
    return op.line is not None and op.line.backwards


def _drop_if_unchanged(op: Op, block: Block, counters: dict[Value, Op]) -> None:
    """Remove `a[i] = a[i]`, also where other elements have been written since the read."""
    read = op.inputs[1].op if op.record is setitem else None
    if not (read is not None and read.record is getitem and _is_element(op)
            and read.attrs == op.attrs and len(read.inputs) + 1 == len(op.inputs)
            and all(map(_same, read.inputs[1:], op.inputs[2:]))):
        return
    state = op.inputs[0]
    while state is not read.inputs[0]:
        before = state.op
        if (before is None or before.record not in (setitem, additem) or not _is_element(before)
                or not _differ(before, op, counters)):
            return
        state = before.inputs[0]
    substitute(block, {op.output: op.inputs[0]})
    block.ops.remove(op)


def _earlier_write(op: Op, position: dict[Op, int], reads: Counter,
                   counters: dict[Value, Op]) -> Op | None:
    """Return the earlier write to the same element that `op` can take over, if nothing reads the
    array in between.
    """
    state = op.inputs[0]
    while reads[state] == 1 and state.op in position and state.op.record in (setitem, additem):
        before = state.op
        if not _is_element(before):
            return None
        if _same_index(before, op):
            return before
        if not _differ(before, op, counters):
            return None
        state = before.inputs[0]
    return None


def _is_element(op: Op) -> bool:
    return (set(op.attrs["pattern"]) == {"i"}
            and all(hasattr(x.type, "weak") and x.type.dtype != "bool" for x in op.inputs[2:]))


def _same_index(a: Op, b: Op) -> bool:
    return len(a.inputs) == len(b.inputs) and all(map(_same, a.inputs[2:], b.inputs[2:]))


def _same(i: Value, j: Value) -> bool:
    return i is j or base_offset(i) == base_offset(j)


def _differ(a: Op, b: Op, counters: dict[Value, Op]) -> bool:
    """Test whether the two writes are proved to be to different elements."""
    return len(a.inputs) == len(b.inputs) and any(
        indices_differ(i, j, counters) for i, j in zip(a.inputs[2:], b.inputs[2:]))
