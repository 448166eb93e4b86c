"""Inline checks of lengths and indices in native code.

    def same_length(n, m):
        if n != m:
            raise ValueError("operands could not be broadcast together: their lengths differ")
        return n

is in `.loops` and in exported modules. Numba compiles each such function separately, in 10 to 15
ms, and emits thirty instructions for each call, with a branch for every possible outcome; here it
is a comparison and a branch.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import textwrap
from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...back.loopir import ops
from ...ops.core import batch_rules
from ...ops.program import custom_rules
from . import grow_tape


def _check(of: Callable, emit: Callable, gives: types.Type = types.intp):
    """An intrinsic for the Python function `of` of integers: `emit(builder, fail_if, *numbers)`
    returns its result.
    """
    def typed(*given):
        kinds = [types.unliteral(t) for t in given]
        if not all(isinstance(t, types.Integer) for t in kinds):
            return None

        def lowered(context, builder, sig, args):
            def fail_if(condition: ir.Value) -> None:
                with builder.if_then(condition, likely=False):
                    context.call_conv.return_user_exc(builder, *raised(of))

            found = emit(builder, fail_if,
                         *(_word(context, builder, x, t) for x, t in zip(args, sig.args)))
            return context.get_dummy_value() if found is None else found

        return gives(*kinds), lowered

    names = ", ".join(inspect.signature(of).parameters)
    made = eval(f"lambda typingctx, {names}: typed({names})", {"typed": typed})
    made.__name__ = made.__qualname__ = of.__name__
    module = of.__module__.removeprefix("s2s.").replace(".", "/")
    made.__doc__ = f"{of.__name__}({names}), as s2s/{module}.py has it in Python."
    return intrinsic(made)


def _word(context, builder, x: ir.Value, kind: types.Integer) -> ir.Value:
    """The number as a machine word, saturated."""
    x = context.cast(builder, x, kind, types.intp)
    if kind.signed or kind.bitwidth < x.type.width:
        return x
    return builder.select(builder.icmp_signed("<", x, x.type(0)),
                          x.type((1 << (x.type.width - 1)) - 1), x)


@functools.cache
def raised(of: Callable) -> tuple[type, tuple[str]]:
    """The exception raised in the source of a check, and its message."""
    (made,) = (node.exc for node in ast.walk(ast.parse(source(of))) if isinstance(node, ast.Raise))
    return getattr(builtins, made.func.id), (made.args[0].value,)


@functools.cache
def source(of: Callable) -> str:
    """The source text of the function, as generated modules contain it."""
    return textwrap.dedent(inspect.getsource(of)).rstrip()


def _same(builder, fail_if, n, m):
    fail_if(builder.icmp_signed("!=", n, m))
    return n


def _broadcast(builder, fail_if, n, m):
    is_one = builder.icmp_signed("==", n, n.type(1))
    either = builder.or_(is_one, builder.icmp_signed("==", m, m.type(1)))
    fail_if(builder.not_(builder.or_(either, builder.icmp_signed("==", n, m))))
    return builder.select(is_one, m, n)


def _spread(builder, fail_if, n, m):
    fail_if(builder.and_(builder.icmp_signed("!=", m, n), builder.icmp_signed("!=", m, m.type(1))))
    return n


def _inside(builder, fail_if, n, end, length):
    fail_if(builder.and_(builder.icmp_signed(">", end, length),
                         builder.icmp_signed(">", n, n.type(0))))
    return n


def _nonempty(builder, fail_if, n):
    fail_if(builder.icmp_signed("==", n, n.type(0)))
    return n


def _supposed(builder, fail_if, n):
    fail_if(builder.icmp_signed("==", n, n.type(1)))
    return n


def _count(builder, fail_if, n):
    fail_if(builder.icmp_signed("<", n, n.type(0)))
    return n


def _place(builder, fail_if, k, n):
    fail_if(builder.or_(builder.icmp_signed("<", k, builder.neg(n)),
                        builder.icmp_signed(">=", k, n)))
    return builder.select(builder.icmp_signed("<", k, k.type(0)), builder.add(k, n), k)


def _bound(builder, fail_if, k, n):
    zero, moved = k.type(0), builder.add(k, n)
    low = builder.select(builder.icmp_signed(">", moved, zero), moved, zero)
    high = builder.select(builder.icmp_signed("<", n, k), n, k)
    return builder.select(builder.icmp_signed("<", k, zero), low, high)


def _lanes(builder, fail_if, n, m):
    fail_if(builder.icmp_signed("!=", n, m))


same_length = _check(ops.same_length, _same)
broadcast_length = _check(ops.broadcast_length, _broadcast)
needs_length = _check(ops.needs_length, _lanes, types.none)
supposed_alike = _check(ops.supposed_alike, _lanes, types.none)
spread_length = _check(ops.spread_length, _spread)
stays_inside = _check(ops.stays_inside, _inside)
nonempty_length = _check(ops.nonempty_length, _nonempty)
supposed_length = _check(ops.supposed_length, _supposed)
count_of = _check(ops.count_of, _count)
place_in = _check(ops.place_in, _place)
slice_bound = _check(ops.slice_bound, _bound)
check_lanes = _check(batch_rules.check_lanes, _lanes, types.none)
check_rule_length = _check(custom_rules.check_rule_length, _lanes, types.none)
check_direction_length = _check(custom_rules.check_direction_length, _lanes, types.none)

CHECKS = [ops.same_length, ops.needs_length, ops.broadcast_length, ops.spread_length,
          ops.stays_inside, ops.nonempty_length, ops.supposed_length, ops.supposed_alike,
          ops.count_of, ops.place_in, ops.slice_bound, batch_rules.check_lanes,
          custom_rules.check_rule_length, custom_rules.check_direction_length]
# check -> native module
WRITTEN = (dict.fromkeys(CHECKS, __name__)
           | dict.fromkeys(grow_tape.FUNCTIONS.values(), grow_tape.__name__))


def written_in_place(text: str) -> tuple[list[str], set[int]]:
    """The checks that a native text defines: import statements to use instead, and the lines to
    leave out.
    """
    imports, lines = [], set()
    for of, where in WRITTEN.items():
        at = text.find(f"{source(of)}\n") if f"def {of.__name__}(" in text else -1
        if at == 0 or at > 0 and text[at - 1] == "\n":
            first = text.count("\n", 0, at) + 1
            lines.update(range(first, first + source(of).count("\n") + 1))
            imports.append(f"from {where} import {of.__name__}")
    return imports, lines
