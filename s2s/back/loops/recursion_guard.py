"""Guard native recursion: raise RecursionError before the native stack overflows.

    def f(n):                      def f(n, depth):
        ...                            if depth > 6000:
        f(n - 1)       becomes             raise RecursionError("maximum recursion depth exceeded")
                                       ...
                                       f(n - 1, depth + 1)
"""

from __future__ import annotations

from ...ir.builder import Builder, emit
from ...ir.graph import Block, Function, Value, walk
from ...ir.types import INT, Array
from ...ops.core.control import if_
from ...ops.core.record import value
from ...ops.program.effects import Made, Plain, raise_record
from ...ops.program.recursive_callee import calls_itself, recursive_callees

STACK = 4_000_000  # bytes for the calls: half of a usual thread stack
LEAST = 1000  # Python's own limit


def guard_depth(function: Function) -> Function:
    """Count the depth of recursive calls, in place, and raise before it is too large."""
    callees = recursive_callees(function)
    guarded = {callee: Value(INT, "depth") for callee in callees if calls_itself(callee)}
    for callee in callees:
        _hand_on(callee.function.block, guarded, guarded.get(callee))
    _hand_on(function.block, guarded, None)
    for callee, depth in guarded.items():
        block, limit = callee.function.block, deepest(callee.function)
        with Builder(Block(list(block.params))) as builder:
            if_(depth > value(limit), _raise, lambda: ())
        block.params.append(depth)
        block.ops[:0] = builder.block.ops
    return function


def deepest(function: Function) -> int:
    """The recursion depth of `function` that surely fits on the stack."""
    made = [v for op in walk(function.block) for v in op.outputs]
    arrays = sum(isinstance(v.type, Array) for v in (*made, *function.params))
    return max(LEAST, STACK // (512 + 96 * arrays + 16 * len(made)) // 100 * 100)


def _raise() -> tuple:
    emit(raise_record, thrown=Made(RecursionError, (Plain("maximum recursion depth exceeded"),)),
         cause=None)
    return ()


def _hand_on(block: Block, guarded: dict, depth: Value | None) -> None:
    ops, block.ops = block.ops, []
    for op in ops:
        for inner in op.blocks:
            _hand_on(inner, guarded, depth)
        if op.name == "call" and op.attrs["callee"] in guarded:
            with Builder(Block(), op.line) as builder:
                op.inputs.append(value(0) if depth is None else depth + 1)
            block.ops += builder.block.ops
        block.ops.append(op)
