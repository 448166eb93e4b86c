"""Find what a rule for tangents adds that is no multiple of them: reverse mode would lose it.

    def rule(primals, tangents):
        return x * x, 2 * x * x_dot + 1.5        1.5 is a constant term, and np.ones(3) is one
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.graph import MISSING, Function, Op, Value, free_values


def has_constant_term(function: Function, tangents: Iterable[Value],
                      results: Iterable[Value]) -> bool:
    """Whether one of the `results` is surely affine in the `tangents`, and not linear.

    Sums, products with what does not depend on tangents, choices and linear ops are looked through;
    what else there is, loops say, is taken for linear.
    """
    varied = set(tangents)
    for op in function.block.ops:
        read = [*op.inputs, *(x for block in op.blocks for x in free_values(block))]
        if any(x in varied for x in read):
            varied.update(op.outputs)
    return any(_adds(y, varied, {}) for y in results)


def _adds(y: Value, varied: set[Value], known: dict[Value, bool]) -> bool:
    if y not in varied:
        return not _is_zero(y)
    if y.op is None:
        return False
    if y not in known:
        known[y] = any(_adds(x, varied, known) for x in _terms(y, varied))
    return known[y]


def _terms(y: Value, varied: set[Value]) -> list[Value]:
    """The operands that y, which depends on tangents, is zero with."""
    op = y.op
    if op.blocks:
        return []
    if op.name == "multiply" or op.record.divides and op.inputs[1] not in varied:
        own = [x for x in op.inputs if x in varied]
        return own if len(own) == 1 else []
    summed = _summed(op)
    return summed if all(x in summed for x in op.inputs if x in varied) else []


def _summed(op: Op) -> list[Value]:
    """The operands that `op` gives zero for, if all are: of sums, choices and linear ops."""
    if op.record.selects:
        return op.inputs[1:]
    partials = op.record.partials or ()
    if op.record.elementwise and partials and all(isinstance(p, (int, float)) for p in partials):
        return op.inputs
    return [x for k, x in enumerate(op.inputs) if k in op.record.linear]


def _is_zero(y: Value) -> bool:
    """Whether y is known to be zero."""
    if y.constant is not MISSING:
        return isinstance(y.constant, (bool, int, float, complex)) and y.constant == 0
    if y.op is None or y.op.blocks:
        return False
    if y.op.record.fill == 0:
        return True
    if y.op.name == "multiply":
        return any(map(_is_zero, y.op.inputs))
    summed = y.op.inputs[:1] if y.op.record.divides else _summed(y.op)
    return bool(summed) and all(map(_is_zero, summed))
