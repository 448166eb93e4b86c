"""Move a product that a trip passes to the next one's sum into that sum, to fuse multiply and add.

    for k in range(n - 1, -1, -1):              t, u = 0.0, 1.0
        t = x_bar + a[k]                        for k in range(n - 1, -1, -1):
        x_bar = t * d                becomes        t = t * u + a[k]
                                                    u = d

The adjoint of `x = x * d + a[k]`, and of all that grows or decays, is such a recurrence. Its
latency is three or four cycles for the addition and as many for the product on the left, four for
one fused multiply-add on the right; other uses of the product can wait. The adjoint of a Newton
iteration of scalar loops took 1.13 times as long. The first trip multiplies by 1, which changes no
number.

Considered: x_bar * d + a[k] * d. Its recurrence is as short, but it needs one more product, and in
the first trip multiplies by d, which may be infinite.
"""

from __future__ import annotations

from ....ir.builder import Builder, at
from ....ir.graph import Block, Function, Op, Value, blocks_of
from ....ir.substitute import substitute
from ....ir.types import Scalar
from ....ops.core.record import value
from ...loopir.loop_builder import op_named
from .shorten_recurrences import carries_behind, is_sum, uses_in


def postpone_products(function: Function) -> Function:
    """Carry factors instead of products that are added to, in place, in the loops of `function`."""
    same: dict[Value, Value] = {}
    for block in list(blocks_of(function.block)):
        for op in list(block.ops):
            if op.name == "for" and not op.attrs["breaks"]:
                for k in range(len(op.outputs)):
                    same.update(_carry_factors(block, op, k))
    if same:
        substitute(function.block, same)
    return function


def _carry_factors(block: Block, loop: Op, k: int) -> dict[Value, Value]:
    """Carry the factors of carry `k`, if it is such a recurrence.

    Returns replacements of its results.
    """
    (body,) = loop.blocks
    param, end = body.params[1 + k], body.yields[k]
    product = end.op
    if (product is None or product.name != "multiply" or product not in body.ops
            or not all(map(_is_double, (param, *product.inputs)))):
        return {}
    uses = uses_in(body)
    sums = [op for op in body.ops if param in op.inputs]
    if body.yields.count(end) != 1 or uses.get(param) != 1 or len(sums) != 1 or not is_sum(sums[0]):
        return {}
    behind = carries_behind(body)
    late = [x for x in product.inputs if param in behind.get(x, ())]
    if len(late) != 1:
        return {}
    (total,), (factor,) = late, [x for x in product.inputs if x is not late[0]]
    with Builder(Block(), loop.line) as before:
        one = value(1.0)
    place = block.ops.index(loop)
    block.ops[place:place] = before.block.ops
    scale = Value(factor.type)
    with Builder(Block(), sums[0].line) as inner:
        made = op_named("multiply", param, scale)
    if uses[end] == 1:
        body.ops.remove(product)
    sums[0].inputs = [made if x is param else x for x in sums[0].inputs]
    place = body.ops.index(sums[0])
    body.ops[place:place] = inner.block.ops
    param.name = total.name or param.name
    body.yields[k] = total
    body.params.append(scale)
    body.yields.append(factor)
    loop.inputs.append(one)
    old, ends = loop.outputs[k], [Value(param.type, param.name, loop), Value(factor.type, "", loop)]
    loop.outputs[k] = ends[0]
    loop.outputs.append(ends[1])
    with Builder(Block()) as after, at(loop.line):
        new = op_named("multiply", *ends)
    new.name = old.name
    place = block.ops.index(loop) + 1
    block.ops[place:place] = after.block.ops
    return {old: new}


def _is_double(x: Value) -> bool:
    return isinstance(x.type, Scalar) and x.type.dtype == "float64"
