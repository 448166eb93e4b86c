"""Fuse nests that touch an array at different distances from their counters, by shifting one.

    for i in range(n):                     for i in range(n + 2):
        v[i] += t[i]                           if i < n:
    for i in range(n):           becomes           v[i] += t[i]
        v[i + 2] += t[i]                       if i >= 2:
                                                   v[i] += t[i - 2]

The adjoint of a stencil adds to each of its places in a nest of its own. Shifted, all touch in each
trip the element of that trip alone, and one kernel makes them.
"""

from __future__ import annotations

from ...analysis.dependence import Trip
from ...ir.builder import Builder
from ...ir.graph import Block, Op, Value, free_values, op_free_values
from ...ir.types import INT
from ...ops.core import elementwise as ew
from ...ops.core.control import for_record, if_record
from ...ops.core.record import RECORDS, value
from ...ops.program.effects import has_effects
from ..loops.contract_arrays import replace_uses
from ..loops.fuse import Facts


def align_nests(fusion) -> bool:
    """Align nests in the blocks that the host runs; return whether there are such.

    `fusion` knows the memory and the roles of the loops of a function.
    """
    found, pending = False, [fusion.function.block]
    for block in pending:
        position = 0
        while position < len(block.ops):
            second = block.ops[position]
            first = earlier_nest(fusion, block, position)
            shift = None if first is None else shift_of(fusion, first, second, block)
            if shift is None:
                position += 1
                continue
            place = block.ops.index(first)
            new = aligned(first, second, shift)
            block.ops[place:position + 1] = [*block.ops[place + 1:position], *new]
            fusion.renew()
            found = True
        pending += [inner for op in block.ops if fusion.roles.of(op) is None
                    for inner in op.blocks]
    return found


def earlier_nest(fusion, block: Block, position: int) -> Op | None:
    """The last loop before the one at `position`, if no op between the two depends on it."""
    if block.ops[position].name != "for":
        return None
    for k in range(position - 1, -1, -1):
        op = block.ops[k]
        if op.name == "for":
            between = block.ops[k + 1:position]
            independent = not any(has_effects(x) or fusion.must_follow(x, op) for x in between)
            return op if independent else None
        if op.blocks:
            return None
    return None


def shift_of(fusion, first: Op, second: Op, block: Block) -> int | None:
    """By how many trips the second loop is to come later than the first, which may be less than 0;
    None if the two may not, or need not, be aligned.
    """
    if any(fusion.roles.of(loop) != ["own"] * len(loop.outputs) or loop.inputs[0].constant != 0
           or loop.inputs[2].constant != 1 for loop in (first, second)):
        return None
    handed = [y for y in first.outputs if y in op_free_values(second)]
    if not handed or any(second.inputs[3:].count(y) != 1 or y in free_values(second.blocks[0])
                         or fusion.used_elsewhere(y, second, block) for y in handed):
        return None
    a, b = Facts(first, fusion.memory), Facts(second, fusion.memory)
    if any(x in b.reads for x in first.inputs[3:]) or not fusion.share_only(first, second, handed,
                                                                            []):
        return None
    if any(x in a.reads for x in second.inputs[3:] if x not in handed):
        return None
    one, other = Trip(first.blocks[0]), Trip(second.blocks[0])
    shifts = set()
    for y in handed:
        p = one.body.params[1 + first.outputs.index(y)]
        q = other.body.params[1 + second.inputs[3:].index(y)]
        both = [{trip.distance(op, k) for op, k in trip.touching(trip.versions(v))}
                for trip, v in ((one, p), (other, q))]
        if any(len(found) != 1 or None in found for found in both):
            return None
        (d,), (e,) = both
        shifts.add(e - d)
    return shifts.pop() if len(shifts) == 1 else None


def aligned(first: Op, second: Op, shift: int) -> list[Op]:
    """The two loops as one, the second `shift` trips later, and the ops that count its trips."""
    before, after = max(-shift, 0), max(shift, 0)  # of the first, and of the second
    with Builder(Block(), first.line) as counting:
        ends = [loop.inputs[1] if n == 0 else RECORDS["add"](loop.inputs[1], value(n))
                for loop, n in ((first, before), (second, after))]
        bounds = [value(0), ends[0] if ends[0] is ends[1] else RECORDS["max_"](*ends), value(1)]
    starts, latest = list(first.inputs[3:]), list(first.outputs)
    for x, y in zip(second.inputs[3:], second.outputs):
        if x in latest:
            latest[latest.index(x)] = y
        else:
            starts.append(x)
            latest.append(y)
    params = [Value(y.type, y.name) for y in latest]
    index = Value(INT, first.blocks[0].params[0].name)
    env = dict(zip(starts, params))
    body = Block([index, *params])
    for loop, n, end in ((first, before, ends[0]), (second, after, ends[1])):
        (own,) = loop.blocks
        with Builder(body, loop.line):
            is_in = ew.less(index, end)
            if n:
                is_in = ew.logical_and(ew.greater_equal(index, value(n)), is_in)
        inner = Block([], own.ops, list(own.yields))
        with Builder(Block(), loop.line) as counter:
            i = index if n == 0 else RECORDS["subtract"](index, value(n))
        inner.ops = [*counter.block.ops, *own.ops]
        current = [env[x] for x in loop.inputs[3:]]
        replace_uses(inner, {own.params[0]: i, **dict(zip(own.params[1:], current))})
        branch = Op(if_record, [is_in], {}, [inner, Block([], [], list(current))], [], loop.line)
        branch.outputs = [Value(y.type, y.name, branch) for y in loop.outputs]
        body.ops.append(branch)
        env.update(zip(loop.inputs[3:], branch.outputs))
        env.update(zip(loop.outputs, branch.outputs))
    body.yields = [env[y] for y in latest]
    new = Op(for_record, [*bounds, *starts], dict(first.attrs), [body], latest, first.line)
    for y in latest:
        y.op = new
    return [*counting.block.ops, new]
