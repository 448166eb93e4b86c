"""Inlining: the body of a called function in place of the call.

    >>> show(inline(read('''
    ... def square(x):
    ...     return x * x
    ... def f(x):
    ...     return square(x) + square(2.0)
    ... ''')))
    def f(x):
        return x * x + 4.0

The body is emitted again on the call's arguments, so that what they are known to be folds into it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ..ir.graph import Function, Op, Value, walk
from ..ir.rebuild import emit_block, rebuild
from ..ops.checkpoint import Rerun, again, anew
from ..ops.draws import first_draw
from ..ops.recursive import calls_itself
from ..ops.rules import is_ruled

SMALL = 6  # ops: what reads better in place than under a name of its own


def inline(function: Function) -> Function:
    """`function` with calls of small straight-line functions replaced by what they do; not where they have rules."""
    return inlined(function, lambda callee, again: is_small(callee) and not again)


def inline_all(function: Function) -> Function:
    """`function` without calls, except those of functions that call themselves or have rules for derivatives."""
    return inlined(function, lambda callee, again: True)


def inline_ruled(function: Function) -> Function:
    """`function`, of which no derivative is asked any more, without calls, except of functions that call themselves."""
    return inlined(function, lambda callee, again: True, rules=False)


def inline_draws(function: Function) -> Function:
    """`function` without calls of functions that draw, except of those that call themselves."""
    def draws(callee: Function, again: bool = False) -> bool:
        return first_draw(callee) is not None

    called = (op.attrs["callee"].function_for(op.inputs) for op in walk(function.block) if op.name == "call")
    return inlined(function, draws) if any(map(draws, called)) else function


def is_small(callee: Function) -> bool:
    """Whether `callee` is a handful of ops without loops, branches or calls."""
    ops = [op for op in walk(callee.block) if op.name not in ("constant", "tuple", "item")]
    return len(ops) <= SMALL and not any(op.blocks or op.name == "call" for op in ops)


def only_calls(callee: Function) -> bool:
    """Whether all that `callee` does is to call another function."""
    return [op.name for op in callee.block.ops if op.name not in ("constant", "tuple", "item")] == ["call"]


def inlined(function: Function, wanted: Callable[[Function, bool], bool], rules: bool = True) -> Function:
    """`function`, with what they do in the place of calls of the functions that are `wanted`, unless they have `rules`.

    `wanted(callee, again)` is told whether the call is checkpointed.
    """
    if not any(op.name == "call" for op in walk(function.block)):
        return function
    open_calls: list = []
    runs = itertools.count()

    def rule(op: Op, inputs: list[Value]):
        if op.name != "call" or op.attrs["callee"] in open_calls:
            return None
        if calls_itself(op.attrs["callee"]) or rules and is_ruled(op.attrs["callee"]):
            return None
        reruns = isinstance(op.attrs["callee"], Rerun)
        body = op.attrs["callee"].function_for(inputs)
        if not wanted(body, reruns) and (reruns or not only_calls(body)):
            return None
        if reruns:
            run = next(runs)
            inputs = [anew(x, run) for x in inputs]
        open_calls.append(op.attrs["callee"])
        results = emit_block(body.block, inputs, {}, rule)
        open_calls.pop()
        return results

    return rebuild(function, rule=rule)


def apart(function: Function) -> Function:
    """`function`, whose calls that run again have been inlined: what they are given is what it is, and nothing is shared any more."""
    if not any(op.record is again for op in walk(function.block)):
        return function
    return rebuild(function, rule=lambda op, inputs: inputs if op.record is again else None)
