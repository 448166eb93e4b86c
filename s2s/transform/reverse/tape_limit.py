"""Checkpoint loops whose tapes may grow past a memory limit, with as many snapshots as the limit
holds.

    for i in range(n): x = x * np.sin(x)     becomes, for a limit of 1 MB,
    for i in s2s.checkpoint(range(n), memory="1MB"): x = x * np.sin(x)

Whether a tape would pass the limit is known when the loop is entered.  Two designs were considered:
both sweeps in two versions and an `if` around them; and this one, in which the number of snapshots
is what depends on the run.  With no more trips than snapshots, each trip leaves one, and none is
run again: the snapshots are the tape.

That holds where the state is no larger than what a trip would save: a loop over numbers, or one
that makes or sweeps whole arrays.  A loop that writes single elements of an array, and saves these,
is left as it is: its tape is about as large as what it writes.  So is a loop whose state has no
size that is known before it, and one that draws.  Loops inside a loop are held to the limit on
their own: a run saves at most as many limits as loops are nested.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.propagate import loop_parts
from ...ir.graph import Block, Function, Op, blocks_of, walk
from ...ir.reemit import clone
from ...ir.types import Array, Unknown, carries_derivative
from ...ops.program.checkpoint import Outlined, Plan, Rerun
from ...ops.program.custom_rules import is_ruled
from ...ops.program.random import first_draw
from ...ops.program.recursive_callee import Recursive
from .adjoint import Adjoint
from .checkpoint_adjoint import has_size
from .sweeps import Sweeps
from .tape import known_trips
from .vjp import split_vjp, whole_vjp

FEW = 64  # a loop known to make at most so many trips is not worth a snapshot


def limit_tapes(function: Function, wrt: Sequence[int], limit: int) -> Function:
    """Checkpoint loops of `function` so that each saves at most `limit` bytes for the cotangents of
    the parameters in `wrt`.
    """
    function = clone(function)
    if not any(op.name in ("for", "while", "call") for op in walk(function.block)):
        return function
    sweeps = Sweeps(Adjoint(function, [function.params[k] for k in wrt], split_vjp, whole_vjp))
    sweeps.plan()
    for op in walk(function.block):
        if op.name in ("for", "while") and "plan" not in op.attrs and _is_held_to_it(op, sweeps):
            op.attrs = {**op.attrs, "plan": Plan(memory=limit)}
        elif op.name == "call":
            callee = op.attrs["callee"]
            inner = callee.callee if isinstance(callee, Rerun) else callee
            if not isinstance(inner, Recursive) and not is_ruled(inner):
                called = inner.function_for(op.inputs)
                floats = [k for k, p in enumerate(called.params) if carries_derivative(p.type)]
                made = Outlined(limit_tapes(called, floats, limit))
                op.attrs = {**op.attrs, "callee": Rerun(made) if inner is not callee else made}
    return function


def _is_held_to_it(op: Op, sweeps: Sweeps) -> bool:
    """Test whether the loop saves something in each trip, and its state is about as large as that.
    """
    inits, params, _, body = loop_parts(op)
    inside = set(blocks_of(body))
    saved = [(region, v) for (region, v) in sweeps.kinds if region.primal in inside]
    if not saved or is_few(op) or first_draw(Function("step", Block([], [op], []))) is not None:
        return False
    if not all(has_size(p, x) for p, x in zip(params, inits)):
        return False
    arrays = any(isinstance(p.type, Array) for p in params)
    own = all(region.primal is body or not region.is_loop for region, _ in saved)
    return not (arrays and own and not any(isinstance(v.type, (Array, Unknown)) for _, v in saved))


def is_few(op: Op) -> bool:
    """Test whether a loop is known to run FEW times at most."""
    trips = known_trips(op)
    return trips is not None and trips <= FEW
