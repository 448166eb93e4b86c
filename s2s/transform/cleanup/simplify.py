"""Simplify a function by emitting it again, with all that is now known of its values.

    >>> show(simplify(read('''
    ... def f(x: 'float64[n]', k: 'float64'):
    ...     y = x.copy()
    ...     for i in range(len(y)):
    ...         k = k
    ...         y[i] = y[i] * k * 1 + (len(y) - len(x) + i)
    ...     return y
    ... ''')))
    def f(x, k):
        y = x.copy()
        for i in range(len(x)):
            y[i] = y[i] * k + i
        return y

Emitting folds constants, `x * 1`, and what the types prove.  This adds the simplifications that
need more than one op: a carry that every trip yields unchanged is replaced by its initial value, a
branch result that is the same in both arms by that value, and the length of an array created like
an argument by the length of the argument.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builder import Builder
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.reemit import rebuild
from ...ir.substitute import substitute
from ...ir.types import Array, Extent
from ...ops.core.control import tape_pop, tape_push
from ...ops.core.elementwise import logical_not
from ...ops.core.record import value
from .dce import carry_offset
from .hoist_tape_lengths import hoist_in_place


def simplify(function: Function) -> Function:
    """Fold constants, identities and what the types prove in `function`."""
    same: dict[Value, Value] = {}
    flags = condition_values(function)
    for op in walk(function.block):
        if op.name in ("for", "while"):
            flags -= _trailing_exit(op)
            _keep_unread_carries(op, function.block)
            _drop_constant_carries(op, same)
        elif op.name == "if":
            _drop_equal_results(op, same, flags, function.block)
    substitute(function.block, same)
    share_length_queries(function.block, [function.params[k] for k in function.late])
    hoist_in_place(function)
    return rebuild(function)


def _keep_unread_carries(op: Op, top: Block) -> None:
    """Yield unread carries unchanged from a loop that ends in its first trip."""
    _, params, yields = carry_offset(op)
    body = op.blocks[-1]
    if not op.attrs["breaks"] or body.yields[0].constant is not True:
        return
    read = ({x for user in walk(top) for x in user.inputs}
            | {y for user in walk(top) for b in user.blocks for y in b.yields} | {*top.yields})
    for k, out in enumerate(op.outputs):
        if out not in read:
            body.yields[yields + k] = body.params[params + k]


def _drop_constant_carries(op: Op, same: dict[Value, Value]) -> None:
    """Drop loop carries whose every trip yields their own parameter or their initial value."""
    inputs, params, yields = carry_offset(op)
    body = op.blocks[-1]
    constant = [k for k, param in enumerate(body.params[params:])
                if body.yields[yields + k] in (param, op.inputs[inputs + k])]
    for k in constant:
        init = op.inputs[inputs + k]
        same[op.outputs[k]] = init
        for block in op.blocks:
            same[block.params[k + (params if block is body else 0)]] = init
    for k in reversed(constant):
        del op.inputs[inputs + k], op.outputs[k], body.params[params + k], body.yields[yields + k]
        if op.name == "while":
            del op.blocks[0].params[k]


def _drop_equal_results(op: Op, same: dict[Value, Value], flags: set[Value], top: Block) -> None:
    """Drop branch results that both arms yield alike from outside, or as one truth value; a result
    that is True in one arm and False in the other is the condition.

    Unless the program could tell NumPy's truth values from Python's.
    """
    asked = op.inputs[0]
    for k in reversed(range(len(op.outputs))):
        first, second = (block.yields[k] for block in op.blocks)
        if first is not second and isinstance(first.constant,
                                              bool) and first.constant is second.constant:
            with Builder(line=op.line) as builder:
                first = second = value(first.constant)
            top.ops[:0] = builder.block.ops  # in scope of what follows
        said = (first.constant is True and second.constant is False
                and getattr(asked.type, "dtype", "") == "bool")
        if first is second or said and (asked.type == op.outputs[k].type or op.outputs[k] in flags):
            same[op.outputs[k]] = first if first is second else asked
            for block in op.blocks:
                del block.yields[k]
            del op.outputs[k]


def condition_values(function: Function) -> set[Value]:
    """Return the truth values that are used only as conditions."""
    found: set[Value] = set()
    read: set[Value] = set(function.results)
    flows: list[tuple[Value, Value]] = []  # the first is used as the second is

    def visit(block: Block) -> None:
        found.update(p for p in block.params)
        for op in block.ops:
            found.update(op.outputs)
            match op.name:
                case "if":
                    for inner in op.blocks:
                        flows.extend(zip(inner.yields, op.outputs))
                case "for" | "while":
                    inputs, params, yields = carry_offset(op)
                    read.update(op.inputs[:inputs])
                    body = op.blocks[-1]
                    for init, param, end, out in zip(op.inputs[inputs:], body.params[params:],
                                                     body.yields[yields:], op.outputs):
                        flows.extend(((init, param), (end, param), (param, out), (out, param)))
                    if op.name == "while":
                        flows.extend(zip(body.params, op.blocks[0].params))
                case _ if op.record in (tape_push, tape_pop, logical_not):
                    flows.extend((x, y) for x in op.inputs for y in op.outputs)
                case _:
                    read.update(op.inputs)
            for inner in op.blocks:
                visit(inner)

    visit(function.block)
    while True:
        more = {x for x, y in flows if y in read and x not in read}
        if not more:
            return found - read
        read |= more


def _trailing_exit(loop: Op) -> set[Value]:
    """Return the exit flag of a loop body that ends in `if c: ...; break`, a form to be kept as it
    is.
    """
    body = loop.blocks[-1]
    return (set(body.ops[-1].outputs) & {body.yields[0]} if loop.attrs["breaks"] and body.ops
            else set())


def share_length_queries(block: Block, late: Sequence[Value] = ()) -> None:
    """Query each length once, at the first value that is known to have it.

    Loops create new versions of an array, and a length read from the last of them would delay
    everything that depends on it until the loop is done; equal extents mean equal lengths, so any
    value will do.  Lengths of arguments are read before anything else: the argument may be
    overwritten later.  But n + 1 or n * m, where n is the length of another, is no length of its
    own: it belongs to a cotangent, which only the reverse sweep is given.  Values in `late` are not
    asked for lengths that other values have, since they are computed from results that may need
    that length.
    """
    arguments = set(block.params) - {*late}
    on_top: dict[Extent, Op] = {}
    same: dict[Value, Value] = {}

    def visit(block: Block, first: dict[Extent, tuple[Value, int]],
              asked: dict[Extent, Value]) -> None:
        def meet(value: Value) -> None:
            if isinstance(value.type, Array):
                for axis, dim in enumerate(value.type.dims):
                    if isinstance(dim, Extent) and not dim.accepts_any and not (
                            value in arguments and any(follows_from(dim, d) for d in first)):
                        first.setdefault(dim, (value, axis))

        for param in block.params:
            if param not in late:
                meet(param)
        kept = []
        for op in block.ops:
            for inner in op.blocks:
                visit(inner, dict(first), dict(asked))
            for out in op.outputs:
                meet(out)
            dim = queried_extent(op)
            if dim not in first:
                kept.append(op)
            elif dim in asked:
                same[op.output] = asked[dim]
            elif dim in on_top:
                same[op.output] = on_top[dim].output
            else:
                value, axis = first[dim]
                moved = value in arguments and value is not op.inputs[0]
                op.inputs, op.attrs = [value], {**op.attrs, "axis": axis}
                asked[dim] = op.output
                if moved:
                    on_top[dim] = op
                else:
                    kept.append(op)
        block.ops = kept

    visit(block, {}, {})
    block.ops[:0] = on_top.values()
    substitute(block, same)


def follows_from(dim: Extent, other: Extent) -> bool:
    """Test whether `dim` is computed from another extent: n + 1, or n * m (ops/arrays/reshape.py).
    """
    return dim.offset != 0 and other.symbol == dim.symbol or f"({other})" in dim.symbol


def queried_extent(op: Op) -> Extent | None:
    """Return the extent that a `length` op queries, if it is a symbol with one meaning everywhere.
    """
    if op.name == "length" and isinstance(op.inputs[0].type, Array):
        dim = op.inputs[0].type.dims[op.attrs["axis"]]
        if isinstance(dim, Extent) and not dim.accepts_any:
            return dim
    return None
