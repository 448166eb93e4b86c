"""Find values that the reverse sweep must read from a tape bit for bit, and may not recompute.

    q = z * z + c * z              q_tape[t] = q
    s += np.max(q)        saves    ...
                                   q = q_tape[t]              (not: q = z * z + c * z)
                                   q_bar = np.where(q == q_max, s_bar, 0.0)

An expression compiled twice may differ in the last bit: LLVM contracts a product with the addition
that follows it, but not where the product has another reader; an exponential in a vector loop
differs from that of the remaining elements.  As a number it is as good either way, but a decision
based on it is not: no element of q would equal the maximum any more, and its gradient would be 0; a
branch would be taken in one sweep and not in the other; an index would differ.  So comparisons of
such numbers, and integers computed from them, are saved, not recomputed, and so are the values that
an adjoint compares with one selected from them.

Considered: to leave such roundings to no compiler; it costs loops of scalars up to a third of their
speed, and does not help with exponentials.
"""

from __future__ import annotations

from collections.abc import Container

from ..ir.graph import Block, Function, Op, Value, walk
from ..ir.types import is_inexact
from ..ops.core.record import dtype_of
from ..ops.core.shape import spread
from .alias import content_inputs


def bit_exact_values(function: Function, adjoint: Block,
                     made_again: Container[Op] = ()) -> set[Value]:
    """Return the values of `function` that `adjoint`, a reverse sweep or a tangent sweep, must not
    recompute.
    """
    loose = _inexact_values(function.block, made_again)
    found = {y for op in walk(function.block)
             if any(x in loose for x in content_inputs(op)) for y in op.outputs
             if str(dtype_of(y.type)).startswith(("bool", "int", "uint"))}
    for op in walk(adjoint):
        if op.record.is_equality:
            x, y = map(_source, op.inputs)
            found |= {a for a, b in ((x, y), (y, x)) if a in loose and b.op is not None
                      and a in map(_source, b.op.inputs)}
    return found


def _inexact_values(block: Block, made_again: Container[Op]) -> set[Value]:
    """Return the numbers that may differ in the last bits when they are recomputed from saved
    values.
    """
    found: set[Value] = set()
    for op in walk(block):
        if (not op.blocks and (op.record.cheap or op in made_again)
                and not (found.isdisjoint(op.inputs) and _is_bit_exact(op))):
            found.update(y for y in op.outputs if is_inexact(dtype_of(y.type)))
    return found


def _is_bit_exact(op: Op) -> bool:
    """Test whether `op`, on bit-identical numbers, is bit-identical when it is recomputed."""
    if op.record.views:
        return True
    is_complex = any(str(dtype_of(x.type)).startswith("complex") for x in op.inputs)
    if op.record.is_sum:
        return is_complex or not any(_is_product(_source(x)) for x in op.inputs)
    is_exact = op.record.exact or op.record.chooses or bool(op.record.moves)
    return is_exact and not is_complex or len(op.outputs) == 1 and _is_product(op.output)


def _is_product(x: Value) -> bool:
    """Test whether x is a product of real numbers, which a following addition may fuse with before
    it is rounded.
    """
    if x.op is None or not x.op.record.contracts or str(dtype_of(x.type)).startswith("complex"):
        return False
    is_power = len(x.op.inputs) == 2 and not x.op.record.multilinear
    return not is_power or isinstance(x.op.inputs[1].constant, int)


def _source(x: Value) -> Value:
    """Return the value that `x` is a view, or the negative, of; an empty list has none."""
    while x.op is not None and x.op.inputs and not x.op.blocks and x.op.record.writes is None and (
            x.op.record.views or x.op.record.signs == (-1,) or x.op.record is spread):
        x = x.op.inputs[x.op.record.views[0] if x.op.record.views else 0]
    return x
