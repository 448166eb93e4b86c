"""Hoist allocations that both arms of a branch begin with to before the branch.

    >>> show(hoist_common(read('''
    ... def f(x: 'float64[n]', c: 'bool'):
    ...     if c:
    ...         y = np.zeros_like(x)
    ...     else:
    ...         y = np.zeros_like(x)
    ...         y[0] = 1.0
    ...     return y
    ... ''')))
    def f(x, c):
        y = np.zeros_like(x)
        if not c:
            y[0] = 1.0
        return y

Cotangents are why: each side starts the same ones from zero.  What is computed stays where the user
wrote it.
"""

from __future__ import annotations

from ...analysis.side_effects import maybe_unbound, values_of
from ...analysis.value_numbering import key_of
from ...ir.graph import Block, Function, Op, Value
from ...ir.substitute import substitute


def hoist_common(function: Function) -> Function:
    """Hoist zero cotangents that both arms of a branch start from."""
    _hoist(function.block, maybe_unbound(function))
    return function


def _hoist(block: Block, unbound: set[Value]) -> None:
    """Hoist ops common to both arms, except those that read values `unbound` on some path, which
    may have no shape.
    """
    ops: list[Op] = []
    for op in block.ops:
        for inner in op.blocks:
            _hoist(inner, unbound)
        if op.name == "if":
            ops += _shared(op, unbound)
        ops.append(op)
    block.ops = ops


def _shared(branch: Op, unbound: set[Value]) -> list[Op]:
    """Take the common ops out of both arms of `branch`, and return them in order."""
    gone: list[Op] = []
    first, second = branch.blocks
    inside = values_of(first) | values_of(second) | unbound
    for op in list(first.ops):
        if not _may_leave(op, inside):
            continue
        twin = next((other for other in second.ops if _may_leave(other, inside)
                     and key_of(other) == key_of(op)), None)
        if twin is None or [y.type for y in twin.outputs] != [y.type for y in op.outputs]:
            continue
        first.ops.remove(op)
        second.ops.remove(twin)
        for out, other in zip(op.outputs, twin.outputs):
            out.name = out.name or other.name
        substitute(second, dict(zip(twin.outputs, op.outputs)))
        inside.difference_update(op.outputs)
        gone.append(op)
    return gone


def _may_leave(op: Op, inside: set) -> bool:
    is_made = op.record.fill is not None and op.record.allocates is None  # which cannot raise
    return is_made and not any(x in inside for x in op.inputs)
