"""Simplification: the program emitted again, with what is now known of it.

    >>> show(simplify(read('''
    ... def f(x: 'float64[n]', k):
    ...     y = x.copy()
    ...     for i in range(3):
    ...         k = k
    ...         y[i] = y[i] * k * 1 + (len(y) - len(x))
    ...     return y
    ... ''')))

Emitting folds: constants, `x * 1`, what the types prove.  Here are added the simplifications that need
more than one op: a carry that every trip hands on unchanged is no carry, a branch result that is the same
on both sides is no branch result, and the length of an array that the program made is the length of the
argument it was made like.
"""

from __future__ import annotations

from ..ir.graph import Block, Function, Op, Value, walk
from ..ir.rebuild import clone, rebuild
from ..ir.substitute import substitute
from ..ir.types import Array, Extent
from .dce import carry_offset


def simplify(function: Function) -> Function:
    """`function` with everything folded that folds."""
    function = clone(function)
    same: dict[Value, Value] = {}
    for op in walk(function.block):
        if op.name in ("for", "while"):
            _drop_constant_carries(op, same)
        elif op.name == "if":
            _drop_equal_results(op, same)
    substitute(function.block, same)
    lengths_from_arguments(function.block, {})
    return rebuild(function)


def _drop_constant_carries(op: Op, same: dict[Value, Value]) -> None:
    """A carry whose every trip yields its own parameter is what it started from."""
    inputs, params, yields = carry_offset(op)
    body = op.blocks[-1]
    constant = [k for k, param in enumerate(body.params[params:]) if body.yields[yields + k] is param]
    for k in constant:
        init = op.inputs[inputs + k]
        same[op.outputs[k]] = init
        for block in op.blocks:
            same[block.params[k + (params if block is body else 0)]] = init
    for k in reversed(constant):
        del op.inputs[inputs + k], op.outputs[k], body.params[params + k], body.yields[yields + k]
        if op.name == "while":
            del op.blocks[0].params[k]


def _drop_equal_results(op: Op, same: dict[Value, Value]) -> None:
    """A result that both branches take from outside, and alike, is that value."""
    for k in reversed(range(len(op.outputs))):
        first, second = (block.yields[k] for block in op.blocks)
        if first is second:
            same[op.outputs[k]] = first
            for block in op.blocks:
                del block.yields[k]
            del op.outputs[k]


def lengths_from_arguments(block: Block, first: dict[Extent, tuple[Value, int]]) -> None:
    """Ask for each length at the first value that is known to have it.

    Loops make new versions of an array, and a length asked of the last of them would hold up everything
    that depends on it until the loop is done; equal extents mean equal lengths, so any value will do.
    """
    first = dict(first)

    def meet(value: Value) -> None:
        if isinstance(value.type, Array):
            for axis, dim in enumerate(value.type.dims):
                if isinstance(dim, Extent) and not dim.accepts_any:
                    first.setdefault(dim, (value, axis))

    for param in block.params:
        meet(param)
    for op in block.ops:
        if op.name == "length" and isinstance(op.inputs[0].type, Array):
            known = first.get(op.inputs[0].type.dims[op.attrs["axis"]])
            if known is not None:
                op.inputs, op.attrs = [known[0]], {**op.attrs, "axis": known[1]}
        for inner in op.blocks:
            lengths_from_arguments(inner, first)
        for out in op.outputs:
            meet(out)
