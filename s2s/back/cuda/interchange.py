"""Interchange a loop in order with the independent loop in it, so that one kernel makes all trips.

    for s in range(steps):                       for i in range(n):
        for i in range(n):           becomes         for s in range(steps):
            y[i] = y[i] * y[i] + x[i]                    y[i] = y[i] * y[i] + x[i]

That is legal where the independent loop is all that a trip does, and what it writes it touches only
at the index of its own trip: no trip ever reads what another has written.
"""

from __future__ import annotations

from ...ir.graph import MISSING, Block, Function, Op, Value, free_values, walk
from ...ir.types import Array
from ...ops.core.control import for_record
from .nests import Roles, is_light


def interchange_loops(function: Function) -> bool:
    """Interchange loops of `function`, a loop form, in place; return whether there are such."""
    roles, found = Roles(function), False
    blocks = [function.block, *(b for op in walk(function.block) for b in op.blocks)]
    for block in blocks:
        for op in list(block.ops):
            inner = independent_loop(op, roles)
            if inner is not None:
                position, new = block.ops.index(op), interchanged(op, inner)
                block.ops[position:position + 1] = [*constant_bounds(new), new]
                found = True
    return found


def independent_loop(loop: Op, roles: Roles) -> Op | None:
    """The independent loop that is all a trip of `loop` does, if both may be interchanged."""
    if (loop.name != "for" or loop.attrs["breaks"] or "plan" in loop.attrs
            or roles.of(loop) is not None or not loop.blocks[0].ops):
        return None
    (body,) = loop.blocks
    *before, inner = body.ops
    if roles.of(inner) != ["own"] * len(body.yields) or not loop.outputs:
        return None
    starts = inner.inputs[3:]
    inside = {body.params[0], *(y for op in before for y in op.outputs)}
    if (not all(isinstance(p.type, Array) for p in body.params[1:])
            or set(starts) != set(body.params[1:]) or len(starts) != len(body.params) - 1
            or any(y is not inner.outputs[starts.index(p)]
                   for p, y in zip(body.params[1:], body.yields))
            or not set(body.params[1:]).isdisjoint(free_values(inner.blocks[0]))
            or not all(is_light(op) and set(body.params[1:]).isdisjoint(op.inputs)
                       for op in before)
            or any(x in inside and x.constant is MISSING for x in inner.inputs[:3])):
        return None
    return inner


def interchanged(loop: Op, inner: Op) -> Op:
    """`loop` in each trip of `inner`, the independent loop in it."""
    (body,), (own,) = loop.blocks, inner.blocks
    order = [inner.inputs[3:].index(p) for p in body.params[1:]]
    params = [Value(p.type, p.name) for p in body.params[1:]]
    ordered = Op(loop.record, [*loop.inputs[:3], *params], dict(loop.attrs),
                 [Block([body.params[0], *(own.params[1 + j] for j in order)],
                        [*body.ops[:-1], *own.ops], [own.yields[j] for j in order])],
                 [], loop.line)
    ordered.outputs = [Value(y.type, y.name, ordered) for y in loop.outputs]
    new = Op(for_record, [*inner.inputs[:3], *loop.inputs[3:]], dict(inner.attrs),
             [Block([own.params[0], *params], [ordered], list(ordered.outputs))],
             list(loop.outputs), inner.line)
    for y in new.outputs:
        y.op = new
    return new


def constant_bounds(loop: Op) -> list[Op]:
    """Give `loop` constants of its own for those that bound it; return them."""
    found: list[Op] = []
    for k, x in enumerate(loop.inputs[:3]):
        if x.constant is not MISSING:
            new = Op(x.op.record, [], dict(x.op.attrs), [], [], loop.line)
            new.outputs = [Value(x.type, x.name, new)]
            loop.inputs[k] = new.output
            found.append(new)
    return found
