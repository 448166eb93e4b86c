"""Custom derivative rules: `custom_jvp`, `custom_vjp`.

A call of such a function is a `call` op whose callee is `ruled`: it provides its derivative rules
as functions, and stays a call through every pass, is printed as one, and is not inlined until no
more derivatives are taken. Each level of differentiation queries the callee; the code of a rule is
then an ordinary program for the next derivative. Considered: (1) an op of its own, which owns the
function and its rules as blocks: every pass, the printer and the loop form would have to learn what
they know of calls. (2) Replacing the call, while the program is read, by what the rule computes:
then the value would be computed by the rule even without a derivative, and a second derivative
could not apply the rule to the call inside the rule.

The interface of a ruled callee, besides `name` and `function_for(values)`:

    count             the number of call inputs that are arguments; the others are captured data
    own               the number of those that are arguments of the user's function; the others are
                      its closure
    fixed             the non-differentiated arguments (by number)
    getters(values)   the getters of the captured data, in the order of the inputs
    jvp(values)       f_jvp(*xs, *x_dots, *captures) -> (*ys, *y_dots); an x_dot for each argument
                      that carries a derivative and is not fixed, a y_dot for each result that
                      carries one; None if there is no such rule
    vjp(values)       the Halves of the derivative; None if there is no such rule
    missing(mode)     the error to raise for a missing rule

The rules' own captured data are captures of these functions, by getter.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...ir.graph import MISSING, Function, Op, Value
from ...ir.types import NONE, Array, Unknown, carries_derivative
from ..core.dependence_rules import anything
from ..core.record import Record, define, no_jvp, no_vjp, value
from ..core.shape import length, shaped_like

# a library's function -> its replacement with custom rules
RULES: dict[object, object] = {}


def rules_given() -> tuple:
    """A key that changes whenever a rule is added to a function from outside, for cache
    invalidation.
    """
    return tuple(map(id, RULES.values()))


@dataclass(frozen=True, eq=False)
class Halves:
    """forward(*xs, *captures) -> (*ys, *residuals), and backward(*xs at `arguments`, *residuals,
    *y_bars, *captures) -> x_bars, of the arguments `covers`.
    """

    forward: Function
    backward: Function
    # arguments, and then captures of the forward part, that the backward part reads
    arguments: tuple[int, ...]
    covers: tuple[int, ...]  # arguments with a cotangent; for others it is zero

    def residuals(self, results: int) -> list[Value]:
        """The values that the forward part saves, besides its `results`."""
        return self.forward.results[results:]


def is_ruled(callee) -> bool:
    """Whether a callee has custom rules."""
    return hasattr(callee, "getters")


def differentiable_arguments(callee, values: Sequence[Value]) -> list[int]:
    """The arguments of a callee with custom rules that have a tangent."""
    return [k
            for k in range(callee.count)
            if k not in callee.fixed and carries_derivative(values[k].type)]


def captured(op: Op) -> dict[Callable, Value]:
    """The captured data of a call of a function with custom rules, by getter."""
    callee = op.attrs["callee"]
    return dict(zip(callee.getters(op.inputs), op.inputs[callee.count:]))


# Considered: comparing shapes in one op that returns the array.  A length is a number in every
# lane, so this needs no batching rule, and native code has a comparison.
def check_rule_length(n, m):
    if n != m:
        raise ValueError("a rule gives an array of another length than that of what it belongs to")


def check_direction_length(n, m):
    if n != m:
        raise ValueError("a tangent or cotangent is an array of another length than what it belongs to")


REFUSALS = dict.fromkeys(  # own checks -> the remedy
    (check_rule_length.__name__, check_direction_length.__name__),
    "give it the shape of what it belongs to")


def _length_check(name: str, check: Callable) -> Record:
    return define(name, evaluate=check, infer=lambda n, m: NONE, helper=check, pure=False,
                  fold=lambda n, m: value(None)
                      if n is m or n.constant is not MISSING and n.constant == m.constant else None,
                  vjp=no_vjp, jvp=no_jvp,
                  syntax=lambda n, m: ast.Call(ast.Name(check.__name__, ast.Load()), [n, m], []),
                  depends=anything)


# lengths of an axis of a rule's result, and of its primal
rule_length = _length_check("rule_length", check_rule_length)
# of arguments of jvp, a pullback, ...
direction_length = _length_check("direction_length", check_direction_length)


def in_shape(bar: Value, x: Value, check: Record | None = None) -> Value:
    """`bar`, computed by a rule for `x`, with the extents of `x`: checked at run time if types do
    not prove them.
    """
    if (isinstance(bar.type, Array) and isinstance(x.type, Array) and bar.type.rank == x.type.rank
        and bar.type.dims != x.type.dims):
        for axis, (n, m) in enumerate(zip(bar.type.dims, x.type.dims)):
            if n != m:
                (check or rule_length)(length(bar, axis=axis), length(x, axis=axis))
        return shaped_like(bar, x)
    return (shaped_like(bar, x) if isinstance(bar.type, Unknown) and isinstance(x.type, Array)
            else bar)


class Lifted:
    """A callee with custom rules whose captured data are passed as arguments, too."""

    def __init__(self, callee, extra: Sequence[Callable], types: Sequence):
        self.callee, self.extra, self.types = callee, tuple(extra), tuple(types)
        self.name, self.count, self.own, self.fixed = (callee.name, callee.count, callee.own,
                                                       callee.fixed)
        self.jvp, self.vjp, self.missing = callee.jvp, callee.vjp, callee.missing

    def function_for(self, values: Sequence[Value]) -> Function:
        inner = self.callee.function_for(values)
        params = [*inner.params, *(Value(type) for type in self.types)]
        block = type(inner.block)(params, inner.block.ops, inner.block.yields)
        return inner.remade(block, captures={})

    def getters(self, values: Sequence[Value]) -> tuple:
        return (*self.callee.getters(values), *self.extra)


def with_cotangents(results: Sequence[Value], arguments: Sequence[Value], given: Sequence[Value],
                    backward: Callable) -> tuple:
    """The op that returns `results` and whose cotangents `backward(*given, *y_bars)` passes on to
    `arguments`; and its inputs.
    """
    count, first = len(results), len(results) + len(arguments)
    wanted = [k for k, y in enumerate(results) if carries_derivative(y.type)]

    def themselves(*inputs):
        return tuple(inputs[:count]) if count != 1 else inputs[0]

    def vjp(bars, ys, *inputs):
        bars = bars if count != 1 else (bars,)
        found = backward(inputs[count:first], inputs[first:], [bars[k] for k in wanted])
        return (*[None] * count, *found, *[None] * len(given))

    record = Record("ruled", evaluate=themselves, infer=lambda *xs: [x.type for x in xs[:count]],
                    fold=themselves, vjp=vjp,
                    partials=(*[None] * count, *[1] * len(arguments), *[None] * len(given)),
                    cheap=True, stands_for=lambda op, out: op.inputs[op.outputs.index(out)])
    return record, [*results, *arguments, *given]
