"""The invariants of the IR, one function each; `verify` checks them all.

`S2S_CHECK=ir` runs it after every pass.  What it finds is a bug in s2s.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import VerifyError
from .builder import Builder
from .graph import Block, Function, Value, blocks_of, walk
from .reemit import clone
from .types import Array, Extent, List, Tuple, Type, join


def verify(function: Function, lengths: bool = True) -> Function:
    """Return `function` unchanged if every invariant holds; otherwise raise VerifyError.

    Without `lengths` an extent may be called one name here and another there, as in the loop form,
    which has asked whether they are equal.
    """
    checked = function if lengths else _without_names(clone(function))
    values_are_defined_once(checked)
    values_are_defined_before_use(checked)
    outputs_know_their_op(checked)
    blocks_match_their_op(checked)
    types_are_inferred(checked)
    return function


def _without_names(function: Function) -> Function:
    """Copy `function` with all extents but 1 replaced by one."""
    for block in blocks_of(function.block):
        for value in (*block.params, *(y for op in block.ops for y in op.outputs)):
            value.type = _of_one_extent(value.type)
    return function


def _of_one_extent(type: Type) -> Type:
    match type:
        case Array(dtype, dims):
            return Array(dtype, tuple(1 if d == 1 else Extent("n", 0, False) for d in dims))
        case List(item):
            return replace(type, item=_of_one_extent(item))
        case Tuple(items):
            return replace(type, items=tuple(map(_of_one_extent, items)))
    return type


def values_are_defined_once(function: Function) -> None:
    """Check that no value is the parameter or output of two places."""
    seen: set[Value] = set()

    def visit(block: Block) -> None:
        for value in block.params:
            define(value, None)
        for op in block.ops:
            for value in op.outputs:
                define(value, op)
            for inner in op.blocks:
                visit(inner)

    def define(value: Value, op) -> None:
        if value in seen:
            raise VerifyError(f"{value} is defined twice", op.line if op else None)
        seen.add(value)

    visit(function.block)


def values_are_defined_before_use(function: Function) -> None:
    """Check that every value read is defined earlier in its block or in a block around it."""

    def visit(block: Block, outer: frozenset[Value]) -> None:
        known = set(outer) | set(block.params)
        for op in block.ops:
            for value in op.inputs:
                if value not in known:
                    raise VerifyError(f"{op} reads {value} before it is defined", op.line)
            for inner in op.blocks:
                visit(inner, frozenset(known))
            known.update(op.outputs)
        for value in block.yields:
            if value not in known:
                raise VerifyError(f"{function.name} yields {value}, which is not defined there")

    visit(function.block, frozenset())


def outputs_know_their_op(function: Function) -> None:
    """Check that `value.op` is the op that has the value among its outputs, None for parameters."""
    for op in walk(function.block):
        if any(value.op is not op for value in op.outputs):
            raise VerifyError(f"an output of {op} belongs to another op", op.line)
        if any(param.op is not None for block in op.blocks for param in block.params):
            raise VerifyError(f"a parameter inside {op} belongs to an op", op.line)


def blocks_match_their_op(function: Function) -> None:
    """Check that ops with blocks have as many parameters and yields as their record requires."""
    for op in walk(function.block):
        if op.record.check is not None:
            op.record.check(op)
        elif op.blocks:
            raise VerifyError(f"{op} owns blocks that its record does not know", op.line)


def types_are_inferred(function: Function) -> None:
    """Check that the type of every output is at least as wide as what its record infers now."""
    for op in walk(function.block):
        if op.record.check is not None:
            continue
        with Builder(line=op.line):
            types = op.record.infer(*op.inputs, **op.attrs)
        types = types if isinstance(types, list) else [types]
        for value, type in zip(op.outputs, types, strict=True):
            if join(value.type, type) is None:
                raise VerifyError(f"{value} is inferred to be {type}: {op}", op.line)


