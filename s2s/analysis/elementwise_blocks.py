"""Test whether loops, branches and calls compute an array elementwise.

    for k in range(n):          each element of y after the loop depends on that element of y
        y = y * a + np.sin(y)   before it; with np.sum(y) instead of np.sin(y) it depends on all

Then elements of their results that are left out (Note [Masks stay outermost]) do not contribute to
the cotangents of their operands, although zero cotangents pass through them and meet their slopes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import Op, Value, walk
from ..ir.types import Array, Scalar, carries_derivative
from ..ops.program.checkpoint import is_plain
from .activity import loop_parts
from .side_effects import is_steep


def is_elementwise(op: Op, x: Value, outputs: Sequence[Value]) -> bool:
    """Test whether each element of these `outputs` of `op` depends on `x` only through its
    corresponding element.
    """
    found = {x: True}
    _follow([op], found, x)
    return all(found.get(y, True) for y in outputs)


def may_be_infinite(ops: Sequence[Op]) -> bool:
    """Test whether a slope in `ops`, or in their callees, may be infinite or NaN at finite
    operands.
    """
    return any(is_steep(op) or any(may_be_infinite(list(walk(block))) for block in op.blocks)
               or op.name == "call" and is_plain(op.attrs["callee"])
               and may_be_infinite(op.attrs["callee"].function_for(op.inputs).block.ops)
               for op in ops)


def _follow(ops: Sequence[Op], found: dict[Value, bool], x: Value) -> None:
    """Add to `found` the values that depend on those in it, each with whether it does so
    elementwise, in the shape of `x`.
    """
    for op in ops:
        match op.name:
            case "for" | "while":
                inits, params, yields, body = loop_parts(op)
                _note(found, zip(params, inits))
                while True:
                    before = dict(found)
                    _follow(body.ops, found, x)
                    _note(found, zip(params, yields))
                    if found == before:
                        break
                _note(found, zip(op.outputs, params))
            case "if":
                for block in op.blocks:
                    _follow(block.ops, found, x)
                    _note(found, zip(op.outputs, block.yields))
            case "call" if is_plain(op.attrs["callee"]):
                function = op.attrs["callee"].function_for(op.inputs)
                given = [(param, y) for param, y in zip(function.params, op.inputs) if y in found]
                inside = {param: found[y] and _shape(y) == _shape(x) for param, y in given}
                if given:
                    _follow(function.block.ops, inside, given[0][0])
                    _note(found, zip(op.outputs, function.results), inside)
            case _:
                read = [found[y] for y in op.inputs if y in found]
                if read:
                    alike = op.record.elementwise and all(_shape(y) == _shape(x)
                                                          for y in op.outputs)
                    found.update((y, alike and all(read)) for y in op.outputs
                                 if carries_derivative(y.type))


def _note(found: dict[Value, bool], pairs, of: dict[Value, bool] | None = None) -> None:
    """Mark each first of `pairs` elementwise if the second is, and if it was before."""
    of = found if of is None else of
    for y, source in pairs:
        if source in of and carries_derivative(y.type):
            found[y] = found.get(y, True) and of[source]


def _shape(x: Value):
    return x.type.dims if isinstance(x.type, Array) else () if isinstance(x.type, Scalar) else x
