"""Give each lane a tape of its own, where a loop over lanes fills one tape.

    tape = []                                    for lane in range(n):
    for lane in range(n):                            tape = []
        ... tape.append(x) ...      becomes          ... tape.append(x) ...
        ... x = tape.pop() ...                       ... x = tape.pop() ...

    tape = []                                    for lane in range(n):
    for lane in range(n):                            ... tape[count, lane] = x ...
        ... tape.append(x) ...                       counts[lane] = count
    for lane in range(n - 1, -1, -1):  becomes   for lane in range(n - 1, -1, -1):
        ... x = tape.pop() ...                       count = counts[lane]
                                                     ... x = tape[count, lane] ...

A stack orders the lanes that share it. But the reverse sweep pops in each trip what the same trip
has pushed: so the trips are independent if each has a column. The second form is a mark of the two
loops, which kernel.py and host.py act on.
"""

from __future__ import annotations

from ...analysis.dependence import runs_back
from ...ir.graph import Block, Function, Op, Value, op_free_values, walk
from ...ir.types import Scalar, Tape
from ...ops.core.control import tape_new
from .nests import LANE_TAPES as MARK
from .nests import Roles, tape_role
from .thread_body import is_lane_code


def sink_tapes(function: Function) -> Function:
    """Move tapes that are empty between the trips of a loop into it; `function` is changed."""
    pending = [function.block]
    for block in pending:
        for op in list(block.ops):
            if op.record is tape_new:
                users = [loop for loop in block.ops if op.output in op_free_values(loop)]
                if len(users) == 1 and is_emptied(op.output, users[0], block):
                    sink(op, users[0], block)
        pending += [inner for op in block.ops for inner in op.blocks]
    return function


def is_emptied(tape: Value, loop: Op, block: Block) -> bool:
    """Whether each trip of `loop` pops what it has pushed on `tape`, which nothing else uses."""
    if loop.name != "for" or loop.attrs["breaks"] or loop.inputs[3:].count(tape) != 1:
        return False
    k = loop.inputs[3:].index(tape)
    left = loop.outputs[k]
    return (tape_role(loop.blocks[0], k) == "both" and left not in block.yields
            and not any(left in op_free_values(op) for op in block.ops))


def sink(new: Op, loop: Op, block: Block) -> None:
    """Make the tape `new` at the head of each trip of `loop`."""
    k = loop.inputs[3:].index(new.output)
    (body,) = loop.blocks
    param = body.params[1 + k]
    again = Op(tape_new, [], dict(new.attrs), [], [param], new.line)
    param.op = again
    block.ops.remove(new)
    body.ops.insert(0, again)
    del loop.inputs[3 + k], loop.outputs[k], body.params[1 + k], body.yields[k]


def mark_lane_tapes(function: Function, is_final: bool = True) -> Function:
    """Mark the pairs of loops of `function`, a loop form, of which one pops what the other has
    pushed, lane by lane; if `is_final`, only those that can be kernels as they are.
    """
    for op in walk(function.block):
        op.attrs.pop(MARK, None)
    roles = Roles(function)
    pending = [function.block]
    for block in pending:
        pairs = {}
        for op in block.ops:
            if op.record is tape_new and (pair := pair_of(op.output, block)) is not None:
                pairs[op.output] = pair
        mark(pairs, roles, is_final)
        pending += [inner for op in block.ops if roles.of(op) is None for inner in op.blocks]
    return function


def pair_of(tape: Value, block: Block) -> tuple[Op, Op] | None:
    """The loop of `block` that fills `tape` and the one that empties it, if these alone use it."""
    forth = only_user(tape, block)
    if forth is None or (k := carry_of(tape, forth)) is None:
        return None
    filled = forth.outputs[k]
    back = only_user(filled, block)
    if (back is None or (j := carry_of(filled, back)) is None
            or not isinstance(filled.type.item, Scalar) or not runs_back(forth, back)
            or tape_role(forth.blocks[0], k) != "push" or tape_role(back.blocks[0], j) != "pop"
            or only_user(back.outputs[j], block) is not None or back.outputs[j] in block.yields):
        return None
    return forth, back


def only_user(x: Value, block: Block) -> Op | None:
    """The op of `block` that uses `x`, if it is the only one, and `block` does not end with it."""
    users = [op for op in block.ops if x in op_free_values(op)]
    return users[0] if len(users) == 1 and x not in block.yields else None


def carry_of(tape: Value, loop: Op) -> int | None:
    """The number of the carry of `loop` that starts as `tape`."""
    if loop.name != "for" or loop.attrs["breaks"] or loop.inputs.count(tape) != 1:
        return None
    return loop.inputs.index(tape) - 3


def mark(pairs: dict[Value, tuple[Op, Op]], roles: Roles, is_final: bool) -> None:
    """Mark the loops of `pairs` that can be kernels: a loop whose tapes are not all in pairs
    cannot, nor can what empties or fills a tape together with it.
    """
    while pairs:
        loops = list(dict.fromkeys(loop for pair in pairs.values() for loop in pair))
        for loop in loops:
            loop.attrs[MARK] = True
            roles.forget(loop)
        tapes = {x for tape, (forth, _) in pairs.items()
                 for x in (tape, forth.outputs[carry_of(tape, forth)])}
        bad = [loop for loop in loops
               if any(isinstance(x.type, Tape) and x not in tapes for x in loop.inputs)
               or roles.of(loop) is None
               or is_final and not is_lane_code(loop.blocks[0])]
        if not bad:
            return
        for loop in loops:
            del loop.attrs[MARK]
            roles.forget(loop)
        pairs = {tape: pair for tape, pair in pairs.items() if not set(bad).intersection(pair)}
