"""Outline the ops of checkpointed functions into `call` ops that are marked as checkpointed.

A function that is inlined (it writes into its arguments, closes over the caller's names, takes a
list) leaves its ops among those of its caller.  When the caller is finished, these ops are
outlined: a function of the values that they read, which returns those that are read later. So a
write into an argument is an argument and a result, as everywhere in SSA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import Line
from ...ir.builder import Builder, add_op, current
from ...ir.graph import MISSING, Block, Function, Op, Source, Value, free_values, walk
from ...ir.reemit import clone
from ...ir.substitute import substitute
from ...ir.types import Array, Extent, Undefined
from ...ops.core.control import call
from ...ops.program.checkpoint import Outlined, Rerun, is_plain


@dataclass(eq=False)
class MarkedOps:
    """The ops that belong to one call of a checkpointed function."""

    ops: list[Op]
    name: str
    source: Source
    line: Line | None


def mark(session, name: str, source: Source, run: Callable):
    """Run `run()`, marking the ops that it emits for outlining; returns its result."""
    builder = current()
    start = len(builder.block.ops)
    result = run()
    if not session.recursions:  # recursive functions have tapes of their own
        session.marked.append(MarkedOps(builder.block.ops[start:], name, source, builder.line))
    return result


def outline(top: Block, session) -> None:
    """Replace the marked ops in the finished block `top` by calls, innermost first, in place."""
    home = {
        op: block
        for block in (top, *(inner for op in walk(top) for inner in op.blocks))
        for op in block.ops
    }
    for k, each in enumerate(session.marked):
        ops = [
            op for op in each.ops if op in home and op.name != "constant" and not _is_unbound(op)
        ]
        if not ops or len({home[op] for op in ops}) > 1:
            continue
        made = _outline_call(each, home[ops[0]], ops)
        home[made] = home[ops[0]]
        for other in session.marked[k + 1:]:
            if set(ops) <= set(other.ops):
                other.ops[other.ops.index(ops[0])] = made
                other.ops = [op for op in other.ops if op is made or op not in ops]


def _outline_call(marked: MarkedOps, block: Block, ops: list[Op]) -> Op:
    """The call that replaces `ops` of `block`."""
    if len(ops) == 1 and ops[0].name == "call" and is_plain(ops[0].attrs["callee"]):
        ops[0].attrs = {**ops[0].attrs, "callee": Rerun(ops[0].attrs["callee"])}
        return ops[0]
    last = block.ops.index(ops[-1])
    inside = {v for op in ops for v in op.outputs}
    read = set(free_values(Block([], block.ops[last + 1:], block.yields)))
    results = [v for op in ops for v in op.outputs if v in read]
    free = [x for x in free_values(Block([], ops, [])) if x not in inside]
    constants = [x.op for x in free if x.constant is not MISSING or _is_unbound(x.op)]
    given = [x for x in free if x.op is None or x.op not in constants]
    function = clone(
        Function(marked.name, Block(given, [*constants, *ops], results), marked.source, "",
                 len(results) != 1))
    given = _without_lengths(function, given)
    with Builder(Block(), marked.line) as builder:
        made = add_op(call, given, {"callee": Rerun(Outlined(function))}, [v.type for v in results],
                      names=[v.name for v in results])
    block.ops = [
        *(op for op in block.ops[:last + 1] if op not in ops), *builder.block.ops,
        *block.ops[last + 1:]
    ]
    substitute(block, dict(zip(results, made.outputs)))
    return made


def _without_lengths(function: Function, given: list[Value]) -> list[Value]:
    """`given` without arrays of which `function` reads only lengths that another array has, too;
    its parameters likewise, in place.
    """
    reads = [op for op in walk(function.block)]
    kept = []
    for param, x in zip(function.params, given):
        asked = [op for op in reads if param in op.inputs]
        others = {
            d: (p, axis)
            for p in function.params if p is not param and isinstance(p.type, Array)
            for axis, d in enumerate(p.type.dims) if isinstance(d, Extent) and not d.accepts_any
        }
        dims = [
            op.inputs[0].type.dims[op.attrs["axis"]] for op in asked
            if op.name == "length" and isinstance(param.type, Array)
        ]
        yielded = any(param in block.yields
                      for block in (function.block, *(b for op in reads for b in op.blocks)))
        if not dims or len(dims) < len(asked) or yielded or not all(d in others for d in dims):
            kept.append((param, x))
            continue
        for op, d in zip(asked, dims):
            op.inputs, op.attrs = [others[d][0]], {**op.attrs, "axis": others[d][1]}
        function.block.params = [p for p in function.params if p is not param]
    return [x for _, x in kept]


def _is_unbound(op: Op | None) -> bool:
    return op is not None and len(op.outputs) == 1 and isinstance(op.output.type, Undefined)
