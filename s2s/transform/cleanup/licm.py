"""Loop-invariant code motion (LICM): compute before a loop what is the same in each trip.

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

Only ops that cannot raise leave a loop that may make no trip; from a loop known to make one, any
pure op that every trip runs may leave.  Inner loops come first, so that an op climbs as far as it
can.

Where a trip repeats what costs a pass over arrays, a matrix product above all, a test that the loop
makes a trip is worth its place: loop inversion.  A product with a Hessian in the steps of conjugate
gradients is such a program: what the gradient at `x` has computed is the same in all of them.

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

What has no trips has no derivative either.  An op whose slope may be infinite, at 0 say, would make
of the cotangent 0 that no trip adds to a NaN, 0 * inf: such an op is given 1 to work on unless the
loop makes a trip.

    >>> show(licm(read('''
    ... def f(x, k: 'float64', n: 'int64'):
    ...     for i in range(n):
    ...         x = x * np.log(k)
    ...     return x
    ... ''')))
    def f(x, k, n):
        t = np.log(k if n > 0 else 1.0)
        for i in range(n):
            x = x * t
        return x

Of what is compiled no derivative is taken any more: `licm_of_values` moves it as it is.

Considered: to leave such ops in the loop, whose reverse sweep then repeats loop-invariant work, and
saves it if it is an array; to move them, or the loop with them, behind the test, where an array
would need zeros as a stand-in, an outer loop could not hoist them further, and parallelisation and
fusion of loops would have to look into branches; and to clear the cotangents of their operands,
once in each sweep of a derivative of a derivative.  Selecting the operands is a single op.

Considered: to hoist expensive ops untested where the lengths are known to agree, which costs a loop
of no trips a product that it never needed; and to do so for native code alone, which has one branch
less in its reverse sweep, but then each trip of the reverse sweep computes a product of its own,
and each trip of the forward sweep saves the same value.
"""

from __future__ import annotations

from ...analysis.side_effects import (
    is_buffer,
    is_steep,
    is_total,
    maybe_unbound,
    owned_buffers,
    runs_at_least_once,
    values_of,
)
from ...ir.builder import Builder, add_op
from ...ir.graph import MISSING, OPERATORS, Block, Function, Op, Value, walk
from ...ir.reemit import emit_block
from ...ir.types import Array, is_inexact
from ...ops.core.control import if_record
from ...ops.core.record import RECORDS, dtype_of, value
from ...ops.program.effects import has_effects


def licm(function: Function) -> Function:
    """Move loop-invariant ops out of the loops of `function`."""
    return _run(function, differentiable=True)


def licm_of_values(function: Function) -> Function:
    """Move loop-invariant ops out of loops of a function of which no more derivatives are taken."""
    return _run(function, differentiable=False)


def _run(function: Function, differentiable: bool) -> Function:
    _hoist(function.block, owned_buffers(function), maybe_unbound(function),
           values_of(function.block), differentiable)
    return function


def _hoist(block: Block, owned: set, unbound: set, above: set, differentiable: bool) -> None:
    """Hoist ops out of the loops of `block`, where the values `above` are in scope."""
    ops = []
    for op in block.ops:
        for inner in op.blocks:
            _hoist(inner, owned, unbound, above, differentiable)
        if op.name in ("for", "while"):
            ops += _hoist_untested(op, owned, unbound, above, differentiable)
            ops += _invert(op, owned, unbound, above) or [op]
        else:
            ops.append(op)
    block.ops = ops


def _hoist_untested(loop: Op, owned: set, unbound: set, above: set,
                    differentiable: bool) -> list[Op]:
    """Take out of `loop` the ops that need no test before them, and return them."""
    runs = runs_at_least_once(loop)
    sure = set(loop.blocks[0].ops) if loop.name == "while" else set()
    gone = _hoist_out(loop, owned, unbound, runs, differentiable)
    steep = ({op for op in gone if is_steep(op) and op not in sure} if differentiable and not runs
             else set())
    return _guard_steep(loop, gone, steep, above) if steep else gone


def _hoist_out(loop: Op, owned: set, unbound: set, runs: bool,
               differentiable: bool = False) -> list[Op]:
    """Take the loop-invariant ops out of `loop` and return them in order; `runs` says that it makes
    a trip.
    """
    gone = _invariants(loop, owned, unbound, runs, differentiable)
    left = set(gone)
    for block in loop.blocks:
        block.ops = [op for op in block.ops if op not in left]
    return gone


def _invariants(loop: Op, owned: set, unbound: set, runs: bool,
                differentiable: bool = False) -> list[Op]:
    """Return the ops that may leave `loop`, in order."""
    varies = set().union(*map(values_of, loop.blocks))
    quick = _is_quick(loop)
    found = []
    for block in loop.blocks:
        # the test of a `while` runs at least once, and so does all that it computes
        certain = runs or (loop.name == "while" and block is loop.blocks[0])
        for op in block.ops:
            certain = certain and not has_effects(op)  # an op that may raise stays after effects
            safe = certain or (is_total(op) and not any(x in unbound for x in op.inputs)
                               and not (differentiable and is_steep(op)
                                        and not (quick and op.record.tame_at_one)))
            if safe and _may_leave(op, varies, owned):
                found.append(op)
                varies.difference_update(op.outputs)
    return found


def _guard_steep(loop: Op, gone: list[Op], steep: set[Op], above: set) -> list[Op]:
    """Emit the hoisted ops `gone` with the operands of `steep` ones replaced by 1 where the loop
    makes no trip.
    """
    before = Block()
    with Builder(before, line=loop.line, above=above) as builder:
        first = next(k for k, op in enumerate(gone) if op in steep)
        before.ops += gone[:first]
        runs = _makes_a_trip(loop)
        for op in gone[first:]:
            if op in steep:
                builder.line = op.line
                op.inputs = [_one_unless(runs, x) for x in op.inputs]
            before.ops.append(op)
    return before.ops


def _one_unless(runs: Value, x: Value) -> Value:
    """Return `x`, or 1 where a loop does not run."""
    if x.constant is not MISSING:
        return x
    dtype = dtype_of(x.type) or "float64"
    one = True if dtype == "bool" else 1.0 if is_inexact(dtype) else 1
    return RECORDS["where" if isinstance(x.type, Array) else "select"](runs, x, value(one))


def _makes_a_trip(loop: Op) -> Value:
    """Emit the test that a loop makes a trip, for a loop whose test is cheap."""
    if loop.name == "while":
        (runs,) = emit_block(loop.blocks[0], loop.inputs, {})
        return runs
    lo, hi, step = loop.inputs[:3]
    ends = (lo, hi) if step.constant > 0 else (hi, lo)
    return (OPERATORS["less"](*ends) if ends[0].constant is MISSING
            else OPERATORS["greater"](*reversed(ends)))


def _may_leave(op: Op, varies: set, owned: set) -> bool:
    if (op.blocks or has_effects(op) or op.record.writes is not None
            or any(x in varies for x in op.inputs)):
        return False
    if any(is_buffer(x.type) and x in owned for x in op.outputs):
        return False
    return op.name != "call"


def _invert(loop: Op, owned: set, unbound: set, above: set) -> list[Op]:
    """Guard `loop` by a test that it makes a trip, and hoist into the guard (loop inversion);
    nothing where that does not pay.
    """
    if (not any(_is_array_pass(op) for op in _invariants(loop, owned, unbound, True))
            or not _is_quick(loop)):
        return []
    before, arm = Block(), Block()
    outputs, inits = loop.outputs, loop.inputs[3 * (loop.name == "for"):]
    with Builder(before, above=above):
        runs = _makes_a_trip(loop)
        arm.ops = [*_hoist_out(loop, owned, unbound, True), loop]
        loop.outputs = [Value(y.type, y.name, loop) for y in outputs]
        # a copy, since dead carries leave the loop's list
        arm.yields = [*loop.outputs]
        made = add_op(if_record, [runs], {}, [y.type for y in outputs], [arm, Block(yields=inits)],
                      [y.name for y in outputs])
    made.line, made.outputs = loop.line, outputs
    for y in outputs:
        y.op = made
    return before.ops


def _is_array_pass(op: Op) -> bool:
    """Test whether `op` costs more than a branch: it reads the elements of an array, not as part of
    another pass over them.
    """
    reads = (x for k, x in enumerate(op.inputs) if k not in (*op.record.views, *op.record.shapes))
    return not op.record.elementwise and any(isinstance(x.type, Array) and x.type.dims
                                             for x in reads)


def _is_quick(loop: Op) -> bool:
    """Test whether the first condition of `loop` is cheap and free of side effects."""
    if loop.name == "for":
        step = loop.inputs[2].constant
        return step is not MISSING and step != 0
    return not any(has_effects(op) or op.name in ("for", "while", "call")
                   or _is_array_pass(op) for op in walk(loop.blocks[0]))
