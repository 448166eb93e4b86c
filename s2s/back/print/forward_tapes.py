"""Read what a trip has put on a tape from the variable, where the same trip takes it off again.

    for i in range(n):                              for i in range(n):
        if x[i] > 0.0:                                  if x[i] > 0.0:
            y = np.exp(A @ x)                               y = np.exp(A @ x)
            y_tape[i] = y               prints as           ...
            ...                                         if x[i] > 0.0:
        if x[i] > 0.0:                                      x_bar += y_bar * y
            x_bar += y_bar * y_tape[i]

The sweeps of a loop may share its trips (transform/reverse/fuse_sweeps.py).  What a branch computes
there is forwarded here only: the other branch leaves the variable unbound, as Python may, but
native code would have to give it a value.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.path_conditions import Facts, assume, facts_by_block
from ...ir.builder import Builder
from ...ir.graph import Function, Op, Value, walk
from ...ir.reemit import clone
from ...ir.substitute import substitute
from ...ops.core.control import make_undefined, tape_pop, tape_push
from ...transform.cleanup.dce import dce


def forward_tapes(function: Function) -> Function:
    """Return `function`, or a copy in which reads of tapes in the trip that wrote are forwarded."""
    wanted = [k for k, (op, facts) in enumerate(_reads(function)) if _written(op, facts)]
    if not wanted and not any(map(_is_pushed, walk(function.block))):
        return function
    function = clone(function)
    same: dict[Value, Value] = {}
    for op in filter(_is_pushed, walk(function.block)):
        same.update(zip(op.outputs, op.inputs[0].op.inputs))
    made: dict[tuple, Value] = {}
    reads = [*_reads(function)]
    for op, facts in (reads[k] for k in wanted):
        same[op.output] = _exported(op.inputs[0], op.inputs[1:], facts, made)
    substitute(function.block, same)
    return dce(function)


def _is_pushed(op: Op) -> bool:
    """Test whether `op` pops what has just been pushed."""
    made = op.inputs[0].op if op.record is tape_pop else None
    return made is not None and made.record is tape_push


def _reads(function: Function):
    """Yield the reads of elements of arrays just written to, and what holds there."""
    for block, facts in facts_by_block(function).items():
        for op in block.ops:
            if op.name == "getitem" and {*op.attrs["pattern"]} == {"i"} and (
                    op.inputs[0].op is not None and op.inputs[0].op.name in ("if", "setitem")):
                yield op, facts


def _written(op: Op, facts: Facts) -> bool:
    """Test whether `op` reads what was written at the same index on the only path to it."""
    store = _store(op.inputs[0], op.inputs[1:], facts)
    return (store is not None and store.attrs["pattern"] == op.attrs["pattern"]
            and store.inputs[1].op is not None
            and store.inputs[1].type == op.output.type)


def _store(array: Value, index: Sequence[Value], facts: Facts) -> Op | None:
    """Return the write at this index that makes `array` on the only path that `facts` allow."""
    while array.op is not None:
        op = array.op
        if op.name == "setitem":
            return op if op.inputs[2:] == index else None
        found = _only_arm(op, facts)
        if found is None:
            return None
        arm, facts = found
        array = op.blocks[arm].yields[op.outputs.index(array)]
    return None


def _only_arm(op: Op, facts: Facts) -> tuple[int, Facts] | None:
    """Return the arm of a branch that was taken, and what holds then; None if it is not known."""
    if op.name != "if":
        return None
    ways = [(arm, there) for arm in (0, 1)
            if (there := assume(facts, op.inputs[0], arm == 0)) is not None]
    return ways[0] if len(ways) == 1 else None


def _exported(array: Value, index: Sequence[Value], facts: Facts, made: dict) -> Value:
    """Return what was written, handed on by the branches around the write."""
    op = array.op
    if op.name == "setitem":
        return op.inputs[1]
    arm, facts = _only_arm(op, facts)
    inner = _exported(op.blocks[arm].yields[op.outputs.index(array)], index, facts, made)
    key = op, arm, inner
    if key not in made:
        made[key] = Value(inner.type, inner.name, op)
        op.outputs.append(made[key])
        op.blocks[arm].yields.append(inner)
        with Builder(op.blocks[1 - arm]):
            op.blocks[1 - arm].yields.append(make_undefined())
    return made[key]
