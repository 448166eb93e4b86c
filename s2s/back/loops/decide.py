"""Take the branches that constants decide, and compute what has constants alone for operands.

    if True:
        t = 2.0 * 2.0             becomes        y = x * 4.0
        y = x * t
    else:
        y = 1.0

The program's own are folded long before.  Supposed lengths decide what was asked of them once the
function is specialised to them, and stacked tapes ask whether arrays of constant length are full.
"""

from __future__ import annotations

from ...ir.builder import Builder
from ...ir.graph import MISSING, Block, Function, Op, Value
from ...ir.substitute import substitute
from ...ir.types import Scalar


def decide(function: Function) -> Function:
    """Fold the constants and the decided branches of `function`, a loop form, in place."""
    same: dict[Value, Value] = {}
    _block(function.block, same)
    substitute(function.block, same)
    return function


def _block(block: Block, same: dict[Value, Value]) -> None:
    ops, block.ops = block.ops, []
    for op in ops:
        op.inputs = [same.get(x, x) for x in op.inputs]
        for inner in op.blocks:
            _block(inner, same)
        if op.name == "if" and type(op.inputs[0].constant) is bool:
            taken = op.blocks[0 if op.inputs[0].constant else 1]
            block.ops += taken.ops
            for output, end in zip(op.outputs, taken.yields):
                end = same.get(end, end)
                if end.op in taken.ops:
                    end.name = output.name or end.name
                same[output] = end
        elif (known := _known(op)) is not None:
            if known not in op.inputs:
                block.ops.append(known.op)
            same[op.output] = known
        else:
            block.ops.append(op)


def _known(op: Op) -> Value | None:
    """The constant or the operand that an op on numbers computes, if some of them are constants and
    it is known: `y if True else z` is y.  An array would be no new one.
    """
    if (not op.record.elementwise or op.record.fold is None
            or not all(isinstance(x.type, Scalar) for x in (*op.inputs, *op.outputs))
            or all(x.constant is MISSING for x in op.inputs)):
        return None
    with Builder(Block(), op.line):
        found = op.record.fold(*op.inputs, **op.attrs)
    if found is None or found.type.dtype != op.output.type.dtype:
        return None
    return found if found in op.inputs or found.constant is not MISSING else None
