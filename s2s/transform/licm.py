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

Where a trip repeats what costs a pass over arrays, a matrix product above all, a test that the loop makes a trip is worth its
place: loop inversion.  A product with a Hessian in the steps of conjugate gradients is such a program: what the gradient at `x` has
computed is the same in all of them.

    >>> show(licm(read('''
    ... def f(A: 'float64[n, m]', x: 'float64[k]', r: 'float64'):
    ...     while r > 1:
    ...         r = r / np.sum(A @ x)
    ...     return r
    ... ''')))
    def f(A, x, r):
        if r > 1:
            t = np.sum(A @ x)
            while r > 1:
                r = r / t
        return r

Considered: to take it out untested where the lengths are known to agree, which costs a loop of no trips a product that it never
needed; and to do so for native code alone, which has one branch less to go back through, but then each trip of the way back has a
product of its own, and each trip forwards saves what is the same in all of them.
"""

from __future__ import annotations

from ..ir.builder import Builder, add_op
from ..ir.graph import MISSING, OPERATORS, Block, Function, Op, Value, walk
from ..ir.rebuild import emit_block
from ..ir.types import Array
from ..ops.acts import has_effects
from ..ops.control import if_record
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
    _hoist(function.block, owned_buffers(function), maybe_unbound(function), values_of(function.block))
    return function


def _hoist(block: Block, owned: set, unbound: set, above: set) -> None:
    """Of `block`, in a function that has the values `above`."""
    ops = []
    for op in block.ops:
        for inner in op.blocks:
            _hoist(inner, owned, unbound, above)
        if op.name in ("for", "while"):
            ops += _leaving(op, owned, unbound, runs_at_least_once(op))
            ops += _behind_a_test(op, owned, unbound, above) or [op]
        else:
            ops.append(op)
    block.ops = ops


def _leaving(loop: Op, owned: set, unbound: set, runs: bool) -> list[Op]:
    """The ops taken out of `loop`, in order; `runs` says that it makes a trip."""
    gone = _invariants(loop, owned, unbound, runs)
    left = set(gone)
    for block in loop.blocks:
        block.ops = [op for op in block.ops if op not in left]
    return gone


def _invariants(loop: Op, owned: set, unbound: set, runs: bool) -> list[Op]:
    """The ops that may leave `loop`, in order."""
    varies = set().union(*map(values_of, loop.blocks))
    found = []
    for block in loop.blocks:
        # the test of a `while` runs at least once, and so does all that it computes
        certain = runs or (loop.name == "while" and block is loop.blocks[0])
        for op in block.ops:
            certain = certain and not has_effects(op)  # what may raise stays behind what acts
            safe = certain or (is_total(op) and not any(x in unbound for x in op.inputs))
            if safe and _may_leave(op, varies, owned):
                found.append(op)
                varies.difference_update(op.outputs)
    return found


def _may_leave(op: Op, varies: set, owned: set) -> bool:
    if op.blocks or has_effects(op) or op.record.writes is not None or any(x in varies for x in op.inputs):
        return False
    if any(is_buffer(x.type) and x in owned for x in op.outputs):
        return False
    return op.name != "call"


def _behind_a_test(loop: Op, owned: set, unbound: set, above: set) -> list[Op]:
    """`loop` behind a test that it makes a trip, with what may leave it then; nothing where that does not pay."""
    if not any(_goes_through_an_array(op) for op in _invariants(loop, owned, unbound, True)) or not _is_quick(loop):
        return []
    before, arm = Block(), Block()
    outputs, inits = loop.outputs, loop.inputs[3 * (loop.name == "for"):]
    with Builder(before, above=above):
        if loop.name == "for":
            lo, hi, step = loop.inputs[:3]
            runs = OPERATORS["less" if step.constant > 0 else "greater"](lo, hi)
        else:
            (runs,) = emit_block(loop.blocks[0], inits, {})
        arm.ops = [*_leaving(loop, owned, unbound, True), loop]
        arm.yields = loop.outputs = [Value(y.type, y.name, loop) for y in outputs]
        made = add_op(if_record, [runs], {}, [y.type for y in outputs], [arm, Block(yields=inits)], [y.name for y in outputs])
    made.line, made.outputs = loop.line, outputs
    for y in outputs:
        y.op = made
    return before.ops


def _goes_through_an_array(op: Op) -> bool:
    """Whether `op` costs more than a test: it reads the elements of an array, and not as a part of another pass over them."""
    reads = (x for k, x in enumerate(op.inputs) if k not in (*op.record.views, *op.record.shapes))
    return not op.record.elementwise and not op.record.cheap and any(isinstance(x.type, Array) and x.type.dims for x in reads)


def _is_quick(loop: Op) -> bool:
    """Whether it costs little, and does nothing else, to ask whether `loop` makes a trip."""
    if loop.name == "for":
        step = loop.inputs[2].constant
        return step is not MISSING and step != 0
    return not any(has_effects(op) or op.name in ("for", "while", "call") or _goes_through_an_array(op) for op in walk(loop.blocks[0]))
