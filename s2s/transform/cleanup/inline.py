"""Inline calls: emit the body of the called function in place of the call.

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
from collections.abc import Callable, Sequence

from ...analysis.elementwise_blocks import may_be_infinite
from ...ir.graph import MISSING, Block, Function, Op, Value, blocks_of, walk
from ...ir.reemit import emit_block, rebuild
from ...ir.types import Array
from ...ops.arrays.index_pattern import paired
from ...ops.program.checkpoint import Rerun, again, anew
from ...ops.program.custom_rules import is_ruled
from ...ops.program.random import first_draw
from ...ops.program.recursive_callee import calls_itself

SMALL = 6  # ops: a function that reads better inlined than under its name


# Note [Helpers that look into an array]
# The cotangent of `u` in `mean(u, i)`, which reads u[i - 1] and u[i + 1], is an array as long as u
# with two numbers in it.  A backward part of its own would make one for each call, so that a loop
# over i took the square of the time.  In place, the loop adds the two numbers to its u_bar.
# Considered: to hand u_bar to the backward part, as those of functions that call themselves do.  It
# would stay a call, but one that writes into its arguments, for whoever reads or calls it.


# Note [Masks of masks]
# A derivative leaves out what np.where did not choose.  Its own derivative does so as long as it
# sees the choice: what one part of it was handed from another, a square root, say, gets a cotangent
# that is 0 there, and would multiply it by the slope of the root, which is NaN.  So what calls such
# a derivative is differentiated with it in place.


def inline(function: Function) -> Function:
    """Inline calls of small straight-line functions, except those with derivative rules.

    In loops also calls of those that look into an array: Note [Helpers that look into an array];
    and all calls where derivatives leave out what a choice did not take: Note [Masks of masks].  A
    function that is computed everywhere, with a slope that may be infinite, and whose results
    np.where chooses from, is run in place, too: what is left out of its results has no part in any
    of its cotangents.
    """
    if any(map(calls_masked_sweep, (op for op in walk(function.block) if op.name == "call"))):
        return inline_where(function, lambda callee, again, *_: not again)
    repeated: set[Op] = set(calls_in_loops(function.block))
    chosen = {op for block in blocks_of(function.block) for op in calls_to_choose_from(block)}

    def wanted(callee: Function, again: bool, op: Op, inputs: Sequence[Value]) -> bool:
        if again:
            return False
        calls = [each for each in walk(callee.block) if each.name == "call"]
        inner = calls if op in repeated else calls_in_loops(callee.block)
        if op in chosen and may_be_infinite(callee.block.ops):
            return True
        if reads_vectors(inputs) or returns_vectors(callee):
            return True
        found = (is_small(callee) or op in repeated and reads_at_runtime_index(callee)
                 or any(map(is_reading_call, calls_in_loops(callee.block))))
        if found:
            repeated.update(inner)
        return found

    return inline_where(function, wanted)


def reads_vectors(inputs: Sequence[Value]) -> bool:
    """Test whether one of these is a result of `eigh` or `svd`, or some of its elements."""
    return any(_is_decomposition(x.op)
               or x.op is not None and x.op.record.moves and reads_vectors(x.op.inputs[:1])
               for x in inputs)


def _is_decomposition(op: Op | None) -> bool:
    return op is not None and op.record.spectrum is not None


def returns_vectors(callee: Function) -> bool:
    """Test whether `callee` returns vectors computed by `eigh` or `svd`: only after inlining is it
    visible what is computed from them (transform/stabilise/spectral_functions.py).
    """
    if any(_is_decomposition(y.op) for y in callee.results):
        return True
    for op in walk(callee.block):
        if (op.name == "call" and not calls_itself(op.attrs["callee"])
                and not isinstance(op.attrs["callee"], Rerun)):
            if (reads_vectors(op.inputs) or not is_ruled(op.attrs["callee"])
                    and returns_vectors(op.attrs["callee"].function_for(op.inputs))):
                return True
    return False


def calls_in_loops(block: Block, in_loop: bool = False) -> list[Op]:
    """Return the calls in `block` that stand in loops."""
    found = []
    for op in block.ops:
        if op.name == "call" and in_loop:
            found.append(op)
        for inner in op.blocks:
            found += calls_in_loops(inner, in_loop or op.name in ("for", "while"))
    return found


def is_reading_call(op: Op) -> bool:
    """Test whether `op` is a call of a function that reads array elements at run-time indices."""
    callee = op.attrs["callee"]
    return (not calls_itself(callee) and not isinstance(callee, Rerun)
            and reads_at_runtime_index(callee.function_for(op.inputs)))


def reads_at_runtime_index(callee: Function) -> bool:
    """Test whether `callee`, or a function it calls, reads an array argument at an index known only
    at run time.
    """
    arrays = {p for p in callee.params if isinstance(p.type, Array)}
    for op in walk(callee.block) if arrays else ():
        if (op.name == "getitem" and op.inputs[0] in arrays
                and any(p == "i" and o.constant is MISSING
                        for p, o in paired(op.attrs["pattern"], op.inputs[1:]))):
            return True
        if op.name == "call" and not arrays.isdisjoint(op.inputs) and is_reading_call(op):
            return True
    return False


def calls_to_choose_from(block: Block) -> set[Op]:
    """Return the calls in `block` whose results are operands of np.where, which may leave elements
    out.
    """
    found, sides = set(), [x for op in block.ops if op.record.selects
                           for x in op.inputs[1:]]
    seen = set(sides)
    while sides:
        op = sides.pop().op
        if op is not None and op.name == "call":
            found.add(op)
        elif op is not None and op.record.elementwise or op is not None and op.name == "item":
            sides += [x for x in op.inputs if x not in seen]
            seen.update(op.inputs)
    return found


def calls_masked_sweep(op: Op) -> bool:
    """Test whether `op` calls a reverse sweep that leaves out elements that a choice did not take.
    """
    callee = op.attrs["callee"]
    if calls_itself(callee) or isinstance(callee, Rerun) or is_ruled(callee):
        return False
    return any(each.name == "call" and calls_masked_sweep(each) or each.name == "strong_product"
               or each.record.selects and each.line is not None and each.line.backwards
               and any(type(side.constant) in (int, float) and side.constant == 0
                       for side in each.inputs[1:])
               for each in walk(callee.function_for(op.inputs).block))


def inline_all(function: Function) -> Function:
    """Inline all calls except those of recursive functions and of functions with derivative rules.
    """
    return inline_where(function, lambda *_: True)


def inline_ruled(function: Function) -> Function:
    """Inline all calls except those of recursive functions, once no more derivatives are taken."""
    return inline_where(function, lambda *_: True, rules=False)


def inline_draws(function: Function) -> Function:
    """Inline calls of functions that draw random numbers, except recursive ones."""
    def draws(callee: Function, *_) -> bool:
        return first_draw(callee) is not None

    called = (op.attrs["callee"].function_for(op.inputs) for op in walk(function.block)
              if op.name == "call")
    return inline_where(function, draws) if any(map(draws, called)) else function


def is_small(callee: Function) -> bool:
    """Test whether `callee` is a handful of ops without loops, branches or calls."""
    ops = [op for op in walk(callee.block) if not op.record.structural]
    return len(ops) <= SMALL and not any(op.blocks or op.name == "call" for op in ops)


def only_calls(callee: Function) -> bool:
    """Test whether `callee` does nothing but call another function."""
    return ([op.name for op in callee.block.ops if not op.record.structural]
            == ["call"])


def inline_where(function: Function, wanted: Callable[..., bool],
                 rules: bool = True) -> Function:
    """Inline the calls for which `wanted` holds, except those with derivative rules where `rules`
    is set.

    `wanted(callee, again, op, inputs)` also takes whether the call is checkpointed, the call
    itself, and its operands, emitted again.
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
        if not wanted(body, reruns, op, inputs) and (reruns or not only_calls(body)):
            return None
        if reruns:
            run = next(runs)
            inputs = [anew(x, run) for x in inputs]
        open_calls.append(op.attrs["callee"])
        results = emit_block(body.block, inputs, {}, rule)
        open_calls.pop()
        return results

    return rebuild(function, rule=rule)


def drop_rerun_barriers(function: Function) -> Function:
    """Remove the barriers that keep values of checkpointed reruns from being shared, once their
    calls are inlined.
    """
    if not any(op.record is again for op in walk(function.block)):
        return function
    return rebuild(function, rule=lambda op, inputs: inputs if op.record is again else None)
