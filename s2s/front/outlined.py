"""What a function that is checkpointed does becomes a call, whatever it does: a call whose callee says so.

A function that is called in place (it writes into its arguments, closes over the caller's names, takes a list) leaves
its ops among those of its caller.  When the caller is finished, these ops are taken out of it: a function of the values
that they read, which returns those that are read later.  So a write into an argument is an argument and a result,
as everywhere in SSA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import Line
from ..ir.builder import Builder, add_op, current
from ..ir.graph import MISSING, Block, Function, Op, Source, free_values, walk
from ..ir.rebuild import clone
from ..ir.substitute import substitute
from ..ir.types import Undefined
from ..ops.checkpoint import Outlined, Rerun
from ..ops.control import call
from ..ops.recursive import Recursive


@dataclass(eq=False)
class Marked:
    """Ops of a block that are what a checkpointed function does."""

    block: Block
    ops: list[Op]
    name: str
    source: Source
    line: Line | None


def mark(session, name: str, source: Source, run):
    """What `run()` returns, whose ops are to be outlined."""
    block, line = current().block, current().line
    start = len(block.ops)
    result = run()
    if not session.recursions:  # functions that call themselves have tapes of their own
        session.marked.append(Marked(block, block.ops[start:], name, source, line))
    return result


def outline(top: Block, marked: Sequence[Marked]) -> None:
    """Make calls of the marked ops, those inside others first, in place."""
    for k, each in enumerate(marked):
        made = _outlined(top, each)
        for other in marked[k + 1:]:
            if other.block is each.block and made is not None and set(each.ops) <= set(other.ops):
                place = other.ops.index(each.ops[0])
                other.ops = [op for op in other.ops if op not in each.ops]
                other.ops.insert(place, made)


def _outlined(top: Block, marked: Marked) -> Op | None:
    block = marked.block
    ops = [op for op in block.ops if op in set(marked.ops) and op.name != "constant" and not _is_unbound(op)]
    if not ops or block not in {top, *(inner for op in walk(top) for inner in op.blocks)}:
        return None
    if len(ops) == 1 and ops[0].name == "call" and not isinstance(ops[0].attrs["callee"], (Rerun, Recursive)):
        ops[0].attrs = {**ops[0].attrs, "callee": Rerun(ops[0].attrs["callee"])}
        return None
    last = block.ops.index(ops[-1])
    inside = {v for op in ops for v in op.outputs}
    read = set(free_values(Block([], block.ops[last + 1:], block.yields)))
    results = [v for op in ops for v in op.outputs if v in read]
    free = [x for x in free_values(Block([], ops, [])) if x not in inside]
    constants = [x.op for x in free if x.constant is not MISSING or _is_unbound(x.op)]
    given = [x for x in free if x.op is None or x.op not in constants]
    function = clone(Function(marked.name, Block(given, [*constants, *ops], results), marked.source, "", len(results) != 1))
    rest = [op for op in block.ops[:last + 1] if op not in set(ops)]
    with Builder(Block(), marked.line) as builder:
        made = add_op(call, given, {"callee": Rerun(Outlined(function))}, [v.type for v in results],
                      names=[v.name for v in results])
    block.ops = [*rest, *builder.block.ops, *block.ops[last + 1:]]
    substitute(block, dict(zip(results, made.outputs)))
    return made


def _is_unbound(op: Op | None) -> bool:
    return op is not None and len(op.outputs) == 1 and isinstance(op.output.type, Undefined)
