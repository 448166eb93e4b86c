"""Effects of an op other than its results: whether it may raise, what it costs, which buffers it
gives away.  Output and draws are in ops/program/effects.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..ir.graph import MISSING, Block, Function, Op, Value, walk
from ..ir.types import Array, List, Scalar, Tape, Tuple, Type, Unknown, is_inexact
from ..ops.core.record import dtype_of
from .propagate import propagate


def is_total(op: Op) -> bool:
    """Test whether `op` cannot raise, whatever its operands, so that it may be executed
    speculatively.

    Python's own numbers raise when divided by zero, and a run may hand those to any scalar; so do
    the functions of its math module outside their domains, int() of a NaN, and arrays whose shapes
    are not proved to broadcast.
    """
    if op.record.total:
        return all(isinstance(x.type, (Scalar, Array, Tuple)) for x in op.inputs)
    if not op.record.elementwise or not all(isinstance(x.type, (Scalar, Array, Unknown))
                                            for x in op.inputs):
        return False
    # Considered: to leave x ** 2 in loops, as x may be 1e200 and a loop make no trip; it costs
    # every program that squares a parameter
    is_known_power = op.inputs[-1:] and op.inputs[-1].constant is not MISSING
    if any(each.kind is not None and not (each.tries and is_known_power)
           and each.is_possible(op.inputs, op.attrs) for each in op.record.raises):
        return False
    arrays = {x for x in op.inputs if not isinstance(x.type, Scalar)}
    return len(arrays) <= 1 or len({getattr(x.type, "dims", x) for x in arrays}) == 1


def is_steep(op: Op) -> bool:
    """Test whether a slope of `op` may be infinite, or NaN, at finite operands.  Note [Slopes],
    ops/core/record.py
    """
    return (op.record.elementwise and op.record.slope_at(op.inputs) != "finite"
            and any(is_inexact(dtype_of(y.type)) for y in op.outputs))


def maybe_unbound(function: Function) -> set[Value]:
    """Return the values that may be unbound at run time: names bound only in a loop or a branch
    that may not run.

    What reads them raises, so it may run only where the program runs it.  A call may hand one on,
    among what the callee saves.
    """
    return _maybe_unbound(function.block, {function: frozenset()})


def _maybe_unbound(block: Block, known: dict[Function, frozenset[int]]) -> set[Value]:
    """Apply `maybe_unbound` to a block; `known` caches the unbound results of functions, none for
    one being analysed.
    """
    found = set()
    for op in walk(block):
        if op.name == "undefined":
            found.update(op.outputs)
        elif op.name == "call":
            callee = op.attrs["callee"].function_for(op.inputs)
            if callee not in known:
                known[callee] = frozenset()
                unbound = _maybe_unbound(callee.block, known)
                known[callee] = frozenset(k for k, y in enumerate(callee.results) if y in unbound)
            found.update(op.outputs[k] for k in known[callee])
    return reachable_values(block, found)


def without_shape(block: Block, unbound: set[Value]) -> set[Value]:
    """Return the values in `block` that may have another shape at run time than their types say,
    where some are `unbound` on some path.

    The stand-in for an unbound array has no elements.  Ops that read only its shape, such as those
    that make zeros for its cotangent, run all the same, and so do the ops on their results; ops
    that read its elements raise, or do not run.
    """
    unbound = reachable_values(block, unbound)
    made = {y for op in walk(block) if any(op.inputs[k] in unbound for k in op.record.shapes)
            for y in op.outputs}
    return unbound | reachable_values(block, made, through=True)


def reachable_values(block: Block, values: set[Value],
                     through: bool | Callable[[Op], bool] = False) -> set[Value]:
    """Return `values` with the branch results, loop carries and tape items in `block` that may be
    one of them; with `through`, also what any op, or those it selects, computes from them.
    """
    facts = dict.fromkeys(values, True)

    def computed(op: Op) -> Iterator[tuple[Value, bool]]:
        # tapes of a first sweep are read again by a second
        if ((op.record.on_tapes or through and (through is True or through(op)))
                and any(x in facts for x in op.inputs)):
            yield from ((y, True) for y in op.outputs)

    return set(propagate(block, facts, computed, in_conditions=True) if facts else ())


def owned_buffers(function: Function) -> set[Value]:
    """Return the values whose memory an in-place write may take over, so that two of them must not
    be merged.

    Sharing `np.zeros(n)` between two cotangents would save an allocation and cost a copy.  So would
    sharing `[0.0]` between two rows of a list of lists, or having one for all trips that append it.
    """
    found: set[Value] = set()
    for op in walk(function.block):
        if op.record.writes is not None:
            found.add(op.inputs[op.record.writes])
        if op.name in ("for", "while", "call"):
            found.update(x for x in op.inputs if is_buffer(x.type))
        if any(isinstance(y.type, List) and not isinstance(y.type, Tape)
               and isinstance(y.type.item, List) for y in op.outputs):
            found.update(x for x in op.inputs if isinstance(x.type, List))
        for block in op.blocks:
            found.update(y for y in block.yields if is_buffer(y.type))
    return found


def is_buffer(type: Type) -> bool:
    """Test whether values of `type` may own memory."""
    return isinstance(type, (Array, Unknown, List))


def runs_at_least_once(op: Op) -> bool:
    """Test whether a loop is known to make a trip."""
    if op.name != "for":
        return False
    bounds = [x.constant for x in op.inputs[:3]]
    return all(isinstance(b, int) for b in bounds) and len(range(*bounds)) > 0


def values_of(block: Block) -> set[Value]:
    """Return everything that `block` and its nested blocks define."""
    found = set(block.params)
    for op in walk(block):
        found.update(op.outputs)
        for inner in op.blocks:
            found.update(inner.params)
    return found
