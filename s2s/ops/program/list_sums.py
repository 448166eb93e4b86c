"""Sums of lists that grow at run time, and their transposes: one number or array, repeated.

    list_full(x, n)   [x] * n            list_sum(xs)            sum(xs)
    exact_sum(xs)     math.fsum(xs)      list_total(xs, start)   sum(xs, start)

What math.fsum and the sum of arrays are in native code stands here, too.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import BOOL, FLOAT, INT, UNDEFINED, Array, List, Scalar, Type, Unknown
from ..core import raise_conditions
from ..core.control import item_type, tape_len
from ..core.dependence_rules import anything
from ..core.record import Record, becomes, define, no_jvp, no_vjp
from ..core.shape import shaped_like, zeros_of
from .list_ops import call_syntax

list_full = define(
    "list_full",  # (x, n): [x] * n
    evaluate=lambda x, n: [x] * n,
    infer=lambda x, n: List(x.type),
    syntax=lambda x, n: ast.BinOp(ast.List([x], ast.Load()), ast.Mult(), n),
    vjp=lambda bar, y, x, n: (total_of(bar, x), None),
    linear=(0,),
    views=(0,),
    moves=(0,), native="compiled", contiguous="operands",
)


def total_of(xs: Value, like: Value) -> Value:
    """The sum of the items of `xs`, which are all of the kind of `like`."""
    match like.type:
        case Scalar():
            return list_sum(xs)
        case Array() | Unknown():
            return shaped_like(list_total(xs, zeros_of(like)), like)
    raise UnsupportedError(f"the derivative of a repeated {like.type}", current().line,
                           "append the items one by one")


def _infer_sum(xs: Value) -> Type:
    match xs.type.item:
        case Scalar("bool"):
            return INT
        case Scalar() | Array() | Unknown() as type:
            return item_type(List(type))
    if xs.type.item == UNDEFINED:
        return INT
    raise TypeMismatchError(f"sum of a {xs.type}", current().line,
                            "put numbers or arrays into the list")


def _vjp_sum(bar, y, xs):
    return (list_full(bar, tape_len(xs)),)


list_sum = define(
    "list_sum",
    evaluate=sum,
    infer=_infer_sum,
    syntax=lambda xs: call_syntax("sum", xs),
    vjp=_vjp_sum,
    linear=(0,),
    depends=anything, from_zero=True, native="compiled",
)
FSUM = ast.Attribute(ast.Name("math", ast.Load()), "fsum", ast.Load())
sum_overflows = define(
    "sum_overflows",  # whether math.fsum raises OverflowError, because a partial sum overflows
    evaluate=lambda xs: raise_conditions.overflows(math.fsum, xs),
    infer=lambda xs: BOOL,
    syntax=lambda xs: call_syntax("overflows", FSUM, xs),
    helper=raise_conditions.overflows,
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
)
exact_sum = define(
    "exact_sum",  # math.fsum
    evaluate=math.fsum,
    infer=lambda xs: FLOAT,
    syntax=lambda xs: ast.Call(
        ast.Attribute(ast.Name("math", ast.Load()), "fsum", ast.Load()), [xs], []),
    differentiated_as=lambda y, xs: (list_sum, (xs,), {}),
    raises=(raise_conditions.Raises(OverflowError, lambda xs: sum_overflows(xs), ([1e308, 1e308],),
                                    natively=False),),
    depends=anything,
)


def parts_of_sum(xs):
    """Three sums of `xs`: of the finite ones, of the others, and of the infinite ones among these.

    The first is given in parts, numbers whose bits do not overlap (Shewchuk 1997).  The last part
    is infinite where the sum overflows on the way; what comes after that is passed over.
    """
    parts = [0.0][:0]
    special, infinite = 0.0, 0.0
    for x in xs:
        x = float(x)
        if not math.isfinite(x):
            special += x
            if math.isinf(x):
                infinite += x
            del parts[0:]
            continue
        count = 0
        for k in range(len(parts)):
            y = parts[k]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                parts[count] = low
                count += 1
            x = high
        del parts[count:]
        parts.append(x)
        if not math.isfinite(x):
            break
    return parts, special, infinite


def overflows_on_the_way(xs):
    """Whether math.fsum(xs) raises OverflowError, as loops."""
    parts, _, _ = parts_of_sum(xs)
    return len(parts) > 0 and not math.isfinite(parts[-1])


def summed_exactly(xs):
    """math.fsum as loops, which round the sum once."""
    parts, special, infinite = parts_of_sum(xs)
    if len(parts) > 0 and not math.isfinite(parts[-1]):
        raise OverflowError("intermediate overflow in fsum")
    if special != 0.0:
        if math.isnan(infinite):
            raise ValueError("-inf + inf in fsum")
        return special
    high, low = 0.0, 0.0
    while len(parts) > 0 and low == 0.0:
        x = high
        y = parts.pop()
        high = x + y
        low = y - (high - x)
    if len(parts) > 0 and (low < 0.0 and parts[-1] < 0.0 or low > 0.0 and parts[-1] > 0.0):
        y = low * 2.0
        x = high + y
        if y == x - high:
            high = x
    return high


exact_sum.lower = becomes(define(
    "native_exact_sum", evaluate=summed_exactly, infer=lambda xs: FLOAT,
    syntax=lambda xs: call_syntax("summed_exactly", xs), helper=summed_exactly))
sum_overflows.lower = becomes(define(
    "native_sum_overflows", evaluate=overflows_on_the_way, infer=lambda xs: BOOL,
    syntax=lambda xs: call_syntax("overflows_on_the_way", xs), helper=overflows_on_the_way))
list_total = define(
    "list_total",  # (xs, start): sum(xs, start) of arrays
    evaluate=sum,
    infer=lambda xs, start: start.type,
    syntax=lambda xs, start: call_syntax("sum", xs, start),
    vjp=lambda bar, y, xs, start: (list_full(bar, tape_len(xs)), bar),
    linear=(0, 1),
    depends=anything, native="compiled", contiguous="operands",
)


def summed_arrays(xs):
    """sum(xs) of arrays, in native code."""
    if len(xs) == 0:
        raise ValueError("the sum of no arrays is a number, which compiled code has no rank for")
    total = 0 + xs[0]
    for k in range(1, len(xs)):
        total = total + xs[k]
    return total


def summed_to(xs, start):
    """sum(xs, start) of arrays, in native code."""
    total = start.copy()
    for x in xs:
        total = total + x
    return total


def _native_sum(name: str, function: Callable, infer: Callable) -> Record:
    return define(name, evaluate=function, infer=infer, helper=function,
                  syntax=lambda *xs: call_syntax(function.__name__, *xs))


native_sum = _native_sum("native_sum", summed_arrays, _infer_sum)
native_total = _native_sum("native_total", summed_to, lambda xs, start: start.type)


def _is_of_arrays(xs: Value) -> bool:
    return isinstance(xs.type.item, Array)


list_sum.lower = lambda op, xs: native_sum(xs) if _is_of_arrays(xs) else None
list_total.lower = lambda op, xs, start: (
    native_total(xs, start)
    if _is_of_arrays(xs) and start.type == op.output.type and isinstance(start.type, Array)
    else None)
