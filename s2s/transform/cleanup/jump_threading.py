"""Jump threading: move an `if` into the branch that has just decided its condition.

    >>> show(thread_jumps(read('''
    ... def f(x: 'float64'):
    ...     if x < 0:
    ...         raised = True
    ...         y = 0.0
    ...     else:
    ...         raised = False
    ...         y = np.sqrt(x)
    ...     if raised:
    ...         z = -x
    ...     else:
    ...         z = y + 1.0
    ...     return z
    ... ''')))
    def f(x):
        if x < 0:
            z = -x
        else:
            y = np.sqrt(x)
            z = y + 1.0
        return z

So an exception that is caught, or a function with several `return`s that is run in place, leaves no
flag behind where no loop comes between, however deep inside the first `if` the flag is set
(merge_branches.py joins those that simply ask the same).  What follows is repeated on no path.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builder import Builder, at
from ...ir.graph import MISSING, Block, Function, Op, Value, op_free_values, walk
from ...ir.reemit import emit_op
from ...ops.core.control import if_
from ...ops.program.effects import has_effects

ROUNDS = 10


def thread_jumps(function: Function) -> Function:
    """Move each `if` into the preceding one that decides its condition."""
    for _ in range(ROUNDS):
        blocks = [function.block, *(inner for op in walk(function.block) for inner in op.blocks)]
        if not any(_follower(block, k) for block in blocks for k in range(len(block.ops))):
            break
        block = Block([Value(p.type, p.name) for p in function.params])
        with Builder(block):
            block.yields = _emit(function.block, block.params, {})
        function = function.remade(block)
    return function


def _emit(block: Block, args: Sequence[Value], env: dict[Value, Value]) -> list[Value]:
    """Emit the ops of `block`, merging those that belong together; return its yields."""
    env.update(zip(block.params, args, strict=True))
    done: set[Op] = set()
    for k, op in enumerate(block.ops):
        if op in done:
            continue
        with at(op.line):
            follower = _follower(block, k)
            if follower is not None:
                between = block.ops[k + 1:block.ops.index(follower)]
                for other in between:
                    _emit_one(other, env)
                done.update((follower, *between))
                _emit_both(op, follower, env)
            else:
                _emit_one(op, env)
    return [env.get(y, y) for y in block.yields]


def _emit_one(op: Op, env: dict[Value, Value]) -> None:
    if not op.blocks:
        emit_op(op, env)
        return
    outputs = op.record.rebuild(op, [env.get(x, x) for x in op.inputs],
                                lambda block, args=(): _emit(block, args, env))
    env.update(zip(op.outputs, outputs, strict=True))


def _emit_both(first: Op, second: Op, env: dict[Value, Value]) -> None:
    """Emit two `if`s as one."""
    names = [o.name for o in first.outputs], [o.name for o in second.outputs]
    k = first.outputs.index(second.inputs[0])

    def arm(block: Block) -> list[Value]:
        yields = _emit(block, (), env)
        env.update(zip(first.outputs, yields, strict=True))
        results = if_(yields[k], lambda: _emit(second.blocks[0], (), env),
                      lambda: _emit(second.blocks[1], (), env), names[1])
        return [*yields, *results]

    outputs = if_(env.get(first.inputs[0], first.inputs[0]), lambda: arm(first.blocks[0]),
                  lambda: arm(first.blocks[1]), [*names[0], *names[1]])
    env.update(zip([*first.outputs, *second.outputs], outputs, strict=True))


def _follower(block: Block, k: int) -> Op | None:
    """Return the next `if` in `block` whose condition op number `k`, an `if`, decides, if it may be
    moved there.
    """
    op = block.ops[k]
    if op.name != "if":
        return None
    made = set(op.outputs)
    for other in block.ops[k + 1:]:
        if other.name == "if" and other.inputs[0] in made:
            ends = _ends(op, op.outputs.index(other.inputs[0]))
            if ends is None or any(ends.count(side) > 1 and not _is_bare(inner)
                                   for side, inner in zip((True, False), other.blocks)):
                return None
            return other
        if not made.isdisjoint(op_free_values(other)) or has_effects(other):
            return None
    return None


def _ends(op: Op, k: int) -> list[bool] | None:
    """Return an output of an `if` at the end of each path through it; None where that is not known.
    """
    found: list[bool] = []
    for block in op.blocks:
        end = block.yields[k]
        if end.constant is not MISSING:
            found.append(bool(end.constant))
        elif end.op is not None and end.op.name == "if" and end.op in block.ops:
            inner = _ends(end.op, end.op.outputs.index(end))
            if inner is None:
                return None
            found += inner
        else:
            return None
    return found


def _is_bare(block: Block) -> bool:
    """Test whether an arm holds only constants, so that it may be repeated at the end of each path
    that leads to it.
    """
    return all(op.name == "constant" for op in block.ops)
