"""Contract arrays of which each trip of a loop uses only its own row (array contraction).

    t = np.empty(n)                              for i in range(n):
    for i in range(n):                               t = np.exp(x[i])
        t[i] = np.exp(x[i])         becomes          total += t
        total += t[i]

An array of one axis becomes a number; one of several axes, a buffer that the next trip can use
again (hoist_buffers.py). Nothing outside the loop may read the array, and every index at which the
loop accesses it must begin with the index of the trip.

An array of few elements that are all accessed at constant indices, `p[0]`, `p[1]`, `p[2]`, becomes
as many numbers (scalar replacement of aggregates).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...analysis.dependence import Trip, counts_from_zero
from ...ir.builder import Builder
from ...ir.graph import Block, Op, Value, free_values, op_free_values, walk
from ...ir.types import Array, Scalar
from ..loopir.length_checks import CHECKS
from ..loopir.ops import as_dtype, buffer
from ..loopir.reductions import zero_of

MOST_NUMBERS = 16  # elements of an array that is replaced by scalars


def contract_arrays(block: Block, to_numbers: bool = False) -> None:
    """Contract the arrays that `block` allocates for one of its loops; or only those of one number
    for each trip.
    """
    reads: dict[Op, set[Value]] = {}  # by op of `block`
    for allocation in [op for op in block.ops if op.record is buffer]:
        if to_numbers and any(d != 1 for d in allocation.output.type.dims[1:]):
            continue
        for op in block.ops:
            if op not in reads:
                reads[op] = set(op_free_values(op))
        trip = _only_user(allocation.output, block, reads)
        if trip is not None:
            del reads[trip.loop]
            _shrink(allocation, trip, block)


class TripLoop(NamedTuple):
    """A loop, and what its trips do."""

    loop: Op
    trip: Trip


def _only_user(array: Value, block: Block, reads: Mapping[Op, set[Value]]) -> TripLoop | None:
    """The only loop to use `array`, if it carries it and each trip uses only its own row."""
    users = [op for op in block.ops if array in reads[op]]
    if len(users) != 1 or users[0].name != "for" or array in block.yields:
        return None
    loop = users[0]
    if (loop.inputs.count(array) != 1 or array not in loop.inputs[3:]
            or loop.inputs[2].constant not in (1, -1)):
        return None
    k = loop.inputs.index(array) - 3
    (body,) = loop.blocks
    output = loop.outputs[k]
    if loop.attrs["breaks"] or output in block.yields or any(output in reads[op]
                                                             for op in block.ops):
        return None
    # its trips read what the array was before the first
    if not counts_from_zero(loop) or array in free_values(body):
        return None
    trip = Trip(body)
    versions = dict.fromkeys(trip.versions(body.params[1 + k]))
    if not all(trip.becomes(body.params[1 + k], v)
               for v in (body.yields[k], *versions)) or not trip.stays_in_row(body.params[1 + k]):
        return None
    for v in versions:
        for user, place in trip.uses.get(v, ()):
            if isinstance(user, Block) or user.blocks:
                continue
            if (place != 0 or user.record.indices is None
                    or any(isinstance(x.type, Array) for x in (*user.inputs[1:], *user.outputs)
                           if x not in versions)):
                return None
            if (any(p != "i" for p in user.attrs["pattern"])
                    or len(user.attrs["pattern"]) != array.type.rank):
                return None
    return TripLoop(loop, trip)


def _shrink(allocation: Op, around: TripLoop, block: Block) -> None:
    """Remove the axis of the trips from the array of `allocation`."""
    loop, trip = around
    k = loop.inputs.index(allocation.output) - 3
    (body,) = loop.blocks
    param = body.params[1 + k]
    versions = list(trip.versions(param))
    del loop.inputs[3 + k], loop.outputs[k], body.params[1 + k], body.yields[k]
    block.ops.remove(allocation)
    if allocation.output.type.rank > 1:
        type = Array(allocation.output.type.dtype, allocation.output.type.dims[1:])
        body.ops.insert(0, Op(buffer, allocation.inputs[1:],
                              {**allocation.attrs, "dims": type.dims}, [], [param],
                              allocation.line))
        param.op = body.ops[0]
        for v in versions:
            v.type = type
        for op in walk(body):
            if op.record.indices is not None and op.inputs[0] in versions:
                del op.inputs[1 if op.name == "getitem" else 2]
                op.attrs = {**op.attrs, "pattern": op.attrs["pattern"][1:]}
        return
    _as_number(body, param, versions, allocation.output.type.dtype)


def _as_number(body: Block, param: Value, versions: list[Value], dtype: str) -> None:
    """Replace the versions of an array of which one element is used by that element."""
    first = Block()
    with Builder(first):
        new = {param: zero_of(dtype)}
    changing = set(versions)

    def visit(block: Block) -> None:
        ops: list[Op] = []
        for op in block.ops:
            if op.record.indices is not None and op.inputs[0] in changing:
                ops += _of_number(op, dtype, new)
                continue
            for inner in op.blocks:
                visit(inner)
            ops.append(op)
        block.ops = ops

    for v in versions:
        v.type = Scalar(dtype)
    visit(body)
    body.ops[:0] = first.ops
    replace_uses(body, new)


def _of_number(op: Op, dtype: str, new: dict[Value, Value]) -> list[Op]:
    """Rewrite `op`, on an element of an array, for the number that replaces the array."""
    with Builder(Block(), op.line) as builder:
        if op.name == "getitem":
            new[op.output] = op.inputs[0]
        elif op.name == "setitem":
            new[op.output] = as_dtype(op.inputs[1], dtype)
        else:
            new[op.output] = as_dtype(op.inputs[0] + as_dtype(op.inputs[1], dtype), dtype)
    return builder.block.ops


# ------------------------------------------------------------------------------------ few elements


def scalarise_arrays(block: Block) -> None:
    """Replace small arrays that `block` allocates and indexes by constants by scalars."""
    for allocation in [op for op in block.ops if op.record is buffer]:
        places = _places(allocation)
        if (places and allocation.output not in block.yields
                and _uses_named(allocation.output, block, places)):
            _part(allocation, block, places)


def _places(allocation: Op) -> list[tuple[int, ...]]:
    """All indices of an array of known, few elements."""
    lengths = [n.constant for n in allocation.inputs]
    if not all(type(n) is int and 0 < n <= MOST_NUMBERS
               for n in lengths) or np.prod(lengths) > MOST_NUMBERS:
        return []
    return list(np.ndindex(*lengths))


def _uses_named(array: Value, block: Block, places: list) -> bool:
    """Whether `array` and its later versions in `block` are only accessed at constant indices."""
    versions, known = {array}, set(places)

    def named(op: Op, inside: bool) -> bool:
        used = versions & set(op.inputs)
        if used and (op.record.indices is None or op.inputs[0] not in used
                     or any(x in used for x in op.inputs[1:])
                     or any(p != "i" for p in op.attrs["pattern"]) or place_of(op) not in known):
            return False
        if used and op.name != "getitem":
            versions.add(op.output)
        return not (used and inside and op.name != "getitem") and all(
            named(inner, True) for block in op.blocks for inner in block.ops) and all(
            versions.isdisjoint(block.yields) for block in op.blocks)

    return all(named(op, False) for op in block.ops) and versions.isdisjoint(block.yields)


def place_of(op: Op) -> tuple:
    """The constant index of the element that `op` accesses; () if it is not constant."""
    place = tuple(x.constant for x in op.inputs[1 if op.name == "getitem" else 2:])
    return place if all(type(k) is int for k in place) else ()


def _part(allocation: Op, block: Block, places: list) -> None:
    dtype = allocation.output.type.dtype
    with Builder(Block(), allocation.line) as builder:
        # version of the array -> its elements
        holds = {allocation.output: {place: zero_of(dtype) for place in places}}
    new: dict[Value, Value] = {}
    ops: list[Op] = []
    for op in block.ops:
        if op is allocation:
            ops += builder.block.ops
        elif op.record.indices is not None and op.inputs[0] in holds:
            elements, place = holds[op.inputs[0]], place_of(op)
            if op.name == "getitem":
                new[op.output] = elements[place]
                continue
            with Builder(Block(), op.line) as one:
                x = as_dtype(op.inputs[1], dtype)
                x = x if op.name == "setitem" else as_dtype(elements[place] + x, dtype)
            ops += one.block.ops
            holds[op.output] = {**elements, place: x}
        else:
            for inner in op.blocks:
                _read_elements(inner, holds, new)
            ops.append(op)
    block.ops = ops
    replace_uses(block, new)


def _read_elements(block: Block, holds: dict[Value, dict], new: dict[Value, Value]) -> None:
    """Replace reads of elements in `block` by the scalars that hold them."""
    ops = []
    for op in block.ops:
        if op.name == "getitem" and op.inputs[0] in holds:
            new[op.output] = holds[op.inputs[0]][place_of(op)]
            continue
        for inner in op.blocks:
            _read_elements(inner, holds, new)
        ops.append(op)
    block.ops = ops


# -------------------------------------------------------------------------------- checks of lengths


def hoist_checks(loop: Op) -> list[Op]:
    """Hoist length checks that no trip changes out of `loop`; return them."""
    (body,) = loop.blocks
    inside = {v for v in body.params} | {v for op in walk(body) for v in op.outputs}
    moved = []
    for op in list(body.ops):
        if op.record in CHECKS and inside.isdisjoint(op.inputs):
            body.ops.remove(op)
            inside.discard(op.output)
            moved.append(op)
    return moved


def resolved(v: Value, new: dict[Value, Value]) -> Value:
    while v in new:
        v = new[v]
    return v


def replace_uses(block: Block, new: dict[Value, Value]) -> None:
    """Replace uses of v by `new[v]` in `block` and the blocks in it."""
    if not new:
        return
    old = new.keys()
    for op in walk(block):
        for values in (op.inputs, *(inner.yields for inner in op.blocks)):
            if not old.isdisjoint(values):
                values[:] = [resolved(x, new) for x in values]
    block.yields[:] = [resolved(y, new) for y in block.yields]
