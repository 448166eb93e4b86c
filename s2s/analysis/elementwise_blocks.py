"""Test whether loops, branches and calls compute an array elementwise.

    for k in range(n):          each element of y after the loop depends on that element of y
        y = y * a + np.sin(y)   before it; with np.sum(y) instead of np.sin(y) it depends on all

Then elements of their results that are left out (Note [Masks stay outermost]) do not contribute to
the cotangents of their operands, although zero cotangents pass through them and meet their slopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.graph import Block, Op, Value, walk
from ..ir.types import Array, Scalar, carries_derivative
from ..ops.program.checkpoint import is_plain
from .propagate import propagate
from .side_effects import is_steep


def is_elementwise(op: Op, x: Value, outputs: Sequence[Value]) -> bool:
    """Test whether each element of these `outputs` of `op` depends on `x` only through its
    corresponding element.
    """
    found = _follow(Block([], [op], []), {x: True}, x)
    return all(found.get(y, True) for y in outputs)


def may_be_infinite(ops: Sequence[Op]) -> bool:
    """Test whether a slope in `ops`, or in their callees, may be infinite or NaN at finite
    operands.
    """
    return any(is_steep(op) or any(may_be_infinite(list(walk(block))) for block in op.blocks)
               or op.name == "call" and is_plain(op.attrs["callee"])
               and may_be_infinite(op.attrs["callee"].function_for(op.inputs).block.ops)
               for op in ops)


def _follow(block: Block, found: dict[Value, bool], x: Value) -> dict[Value, bool]:
    """Add to `found` the values that depend on those in it, each with whether it does so
    elementwise, in the shape of `x`.
    """

    def computed(op: Op) -> Iterator[tuple[Value, bool]]:
        if op.name == "call" and is_plain(op.attrs["callee"]):
            function = op.attrs["callee"].function_for(op.inputs)
            given = [(param, y) for param, y in zip(function.params, op.inputs) if y in found]
            if given:
                inside = {param: found[y] and _shape(y) == _shape(x) for param, y in given}
                _follow(function.block, inside, given[0][0])
                yield from ((out, inside[y]) for out, y in zip(op.outputs, function.results)
                            if y in inside and carries_derivative(out.type))
            return
        read = [found[y] for y in op.inputs if y in found]
        if read:
            alike = op.record.elementwise and all(_shape(y) == _shape(x) for y in op.outputs)
            yield from ((y, alike and all(read)) for y in op.outputs if carries_derivative(y.type))

    return propagate(block, found, computed, join=lambda a, b: a and b,
                     accepts=lambda y: carries_derivative(y.type))


def _shape(x: Value):
    return x.type.dims if isinstance(x.type, Array) else () if isinstance(x.type, Scalar) else x
