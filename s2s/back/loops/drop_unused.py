"""Dead-code elimination in the loop form, where a check of lengths outlives its loop.

Results of loops that nothing reads stay: the printer drops them (back/print/prepare.py).
"""

from __future__ import annotations

from ...ir.graph import Block, Function, Op, Value, walk
from ...ops.program.effects import has_effects
from .loop_bounds import PINNED


def drop_unused(function: Function) -> Function:
    """Remove, in place, the pure ops of `function` whose outputs nothing reads."""
    used: set[Value] = set()

    def visit(block: Block) -> None:
        used.update(block.yields)
        kept = []
        for op in reversed(block.ops):
            if not op.blocks and not has_effects(op) and not any(o in used for o in op.outputs):
                if op.record not in PINNED:
                    continue
                # its loop is gone, but Python would still raise
                op.record = PINNED[op.record]
            if op.blocks and _idle(op) and not any(o in used for o in op.outputs):
                continue
            for inner in reversed(op.blocks):
                visit(inner)
            used.update(op.inputs)
            kept.append(op)
        block.ops = kept[::-1]

    visit(function.block)
    return function


def _idle(op: Op) -> bool:
    """Whether an op with blocks has no effects, terminates, and only computes values."""
    return op.name != "while" and not has_effects(op) and all(inner.name != "while"
                                      for block in op.blocks for inner in walk(block))
