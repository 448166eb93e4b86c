"""Find the conditions of a loop's early exits, whose values are known constants in all trips but
the last.

    for i in range(n):
        total = total + x[i]
        if total > limit:           # so far the loop went on, and this was False
            break

The reverse sweep need not save `total` in every trip to decide again whether to leave: if some trip
left the loop, it was the last, where the reverse sweep begins.  Note [The trip that leaves] in
transform/reverse/tape.py gives the consequences for what is saved.

Three designs were considered.  To take the last trip out of the loop back gives two copies of its
adjoint, and four where a loop that is left stands in another.  To carry the answer through the loop
back, False after its first trip, costs a bit per trip in the next derivative.  To ask for the
number of the trip, as here, costs no memory in either, and takes the same time (these two were
measured).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.graph import MISSING, Block, Op, Value


@dataclass(frozen=True)
class ExitCondition:
    """A condition in a loop body: equal to `of` (or its negation), and to `otherwise` in each trip
    that does not leave the loop.
    """

    of: Value
    opposite: bool = False
    otherwise: bool = False


def exit_conditions(body: Block, stop: Value) -> dict[Value, ExitCondition]:
    """Return what is known of the conditions in a loop body, where `stop` says that the trip is the
    last.
    """
    found: dict[Value, ExitCondition] = {}
    if stop.constant is MISSING and stop.op in body.ops:
        found[stop] = ExitCondition(stop)
        _gather(body, stop, found, body)
    return found


def _gather(block: Block, end: Value, found: dict[Value, ExitCondition], body: Block) -> None:
    """Add what follows from `end`, a value of `block`, being the exit condition there."""
    stop = body.yields[0]
    for op in block.ops:
        if op.name == "if" and end in op.outputs:
            ends = [inner.yields[op.outputs.index(end)] for inner in op.blocks]
            constants = [y.constant for y in ends]
            asked = op.inputs[0]
            if asked.op in block.ops:
                if constants in ([True, False], [False, True]):
                    found.setdefault(asked, ExitCondition(stop, opposite=constants[1]))
                elif True in constants and block is body:
                    found.setdefault(asked, ExitCondition(asked, otherwise=constants[1] is True))
            for inner, y in zip(op.blocks, ends):
                if y.op in inner.ops and y.constant is MISSING:
                    found.setdefault(y, ExitCondition(stop))
                    _gather(inner, y, found, body)
    for op in block.ops:
        if op.record.negates and op.inputs[0] is end:
            found.setdefault(op.output, ExitCondition(stop, opposite=True))
        elif op.record.negates and op.output is end and op.inputs[0].op in block.ops:
            found.setdefault(op.inputs[0], ExitCondition(stop, opposite=True))


def carry_of(op: Op, asked: dict[Value, ExitCondition], v: Value) -> Value | None:
    """Return the output of a loop that equals the value of `v` in the last trip, if a trip was
    made.
    """
    body = op.blocks[-1]
    for out, end in zip(op.outputs, body.yields[1:] if op.attrs["breaks"] else body.yields):
        if end is v or v in asked and asked.get(end) == asked[v]:
            return out
    return None
