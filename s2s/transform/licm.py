"""Loop-invariant motion: what a loop computes alike on every trip is computed before it.

    >>> show(licm(read('''
    ... def f(x, k, n):
    ...     for i in range(n):
    ...         x = x * np.sin(k)
    ...     return x
    ... ''')))
    def f(x, k, n):
        t = np.sin(k)
        for i in range(n):
            x = x * t
        return x

Only ops that cannot raise leave a loop that may make no trip; from a loop known to make one, any pure op
that every trip runs may leave.  Inner loops come first, so that an op climbs as far as it can.
"""

from __future__ import annotations

from ..ir.graph import Block, Function, Op
from ..ops.acts import has_effects
from .effects import (
    is_buffer,
    is_total,
    maybe_unbound,
    owned_buffers,
    runs_at_least_once,
    values_of,
)


def licm(function: Function) -> Function:
    """`function`, in which loops repeat nothing that does not depend on the trip."""
    _hoist(function.block, owned_buffers(function), maybe_unbound(function))
    return function


def _hoist(block: Block, owned: set, unbound: set) -> None:
    ops = []
    for op in block.ops:
        for inner in op.blocks:
            _hoist(inner, owned, unbound)
        if op.name in ("for", "while"):
            ops += _leaving(op, owned, unbound)
        ops.append(op)
    block.ops = ops


def _leaving(loop: Op, owned: set, unbound: set) -> list[Op]:
    """The ops taken out of `loop`, in order."""
    varies = set().union(*map(values_of, loop.blocks))
    runs = runs_at_least_once(loop)
    gone = []
    for block in loop.blocks:
        # the test of a `while` runs at least once, and so does all that it computes
        certain = runs or (loop.name == "while" and block is loop.blocks[0])
        staying = []
        for op in block.ops:
            certain = certain and not has_effects(op)  # what may raise stays behind what acts
            safe = certain or (is_total(op) and not any(x in unbound for x in op.inputs))
            if safe and _may_leave(op, varies, owned):
                gone.append(op)
                varies.difference_update(op.outputs)
            else:
                staying.append(op)
        block.ops = staying
    return gone


def _may_leave(op: Op, varies: set, owned: set) -> bool:
    if op.blocks or has_effects(op) or op.record.writes is not None or any(x in varies for x in op.inputs):
        return False
    if any(is_buffer(x.type) and x in owned for x in op.outputs):
        return False
    return op.name != "call"
