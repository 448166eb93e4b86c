"""Batching rules that ops share: the result of `vmap` on each.

A record states one of these, or a rule of its own. A rule is `batch(flags, *xs, **attrs)`: the
flagged xs have the lane axis in front, and so has the result; None means that there is no rule for
these operands, and the op runs lane by lane. One that several ops share has their record as its
first argument (`shared`, record.py). The rule of an elementwise op is `batch(*xs, **attrs)`, on
operands with aligned axes; most need none.

Rules are built from one another's ops: a batched product is a sum, a batched index needs `arange`,
a batched concatenation broadcasts its parts over the lanes. Those of modules above an op's own are
called by name.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from ...ir.graph import MISSING, Value
from ...ir.types import NONE, Scalar
from .axis_numbers import normal_axes
from .dependence_rules import anything
from .record import (
    FUNCTIONS,
    RECORDS,
    Record,
    define,
    dtype_of,
    no_jvp,
    no_vjp,
    rank,
    shared,
    value,
)

# ------------------------------------------------------------------------------------------- lanes


def align(x: Value, own: int, count: int, flag: bool = True) -> Value:
    """A value with `own` axes per lane, reshaped to broadcast against values with `count` axes per
    lane.
    """
    if not flag or own == count:
        return x
    return RECORDS["getitem"](x, pattern=("...", *(None,) * (count - own), ...))


def align_all(flags: Sequence[bool], xs: Sequence[Value]) -> list[Value]:
    """All of `xs`, with their lane axes aligned."""
    ranks = [rank(x) - flag for x, flag in zip(xs, flags)]
    return [align(x, own, max(ranks), flag) for x, own, flag in zip(xs, ranks, flags)]


def lane_count(flags: Sequence[bool], xs: Sequence[Value]) -> Value:
    """The number of lanes, from operands of which at least one is batched."""
    return next(RECORDS["length"](x, axis=0) for x, flag in zip(xs, flags) if flag)


def check_lanes(n, m):
    if n != m:
        raise ValueError("vmap over arguments of different lengths: each must have as many lanes")


same_lanes = define(
    "same_lanes", evaluate=check_lanes, infer=lambda n, m: NONE, helper=check_lanes, pure=False,
    fold=lambda n, m: value(None)
        if n is m or n.constant is not MISSING and n.constant == m.constant else None,
    vjp=no_vjp, jvp=no_jvp,
    syntax=lambda n, m: ast.Call(ast.Name("check_lanes", ast.Load()), [n, m], []), depends=anything)


def check_core(n, m, name):
    if n != m:
        raise ValueError(f"the core dimension {name} has the lengths {n} and {m}")


same_core = define(
    "same_core", evaluate=lambda n, m, *, name: check_core(n, m, name),
    infer=lambda n, m, *, name: NONE, helper=check_core, pure=False, vjp=no_vjp, jvp=no_jvp,
    fold=lambda n, m, *, name: value(None) if n is m else None,
    syntax=lambda n, m, *, name: ast.Call(ast.Name("check_core", ast.Load()),
                                          [n, m, ast.Constant(name)], []), depends=anything)


def check_calls(n, m):
    if n != m:
        raise ValueError(f"calls of a recursive function make arrays of lengths {n} and {m}: say "
                         "vmap(..., lanes='apart'), so that each lane makes its own calls")


same_in_calls = define(
    "same_in_calls", evaluate=check_calls, infer=lambda n, m: NONE, helper=check_calls, pure=False,
    fold=lambda n, m: value(None) if n is m else None, vjp=no_vjp, jvp=no_jvp,
    syntax=lambda n, m: ast.Call(ast.Name("check_calls", ast.Load()), [n, m], []),
    depends=anything)


def batched_over(x: Value, count: Value, dtype: str | None = None) -> Value:
    """`x`, broadcast over `count` lanes."""
    dtype = dtype or dtype_of(x.type)
    shape = value((count, *(RECORDS["length"](x, axis=k) for k in range(rank(x)))))
    match x.op.name if x.op is not None else "":
        case "zeros_like" | "zeros":
            return FUNCTIONS[np.zeros](shape, dtype=dtype)
        case "empty" | "empty_like":
            return FUNCTIONS[np.empty](shape, dtype=dtype)
    if isinstance(x.type, Scalar):
        return FUNCTIONS[np.full](shape, x, dtype=dtype)
    return filled(shape, x, dtype)


def filled(shape: Value, x: Value, dtype: str) -> Value:
    """A new array of this shape that holds `x`, broadcast."""
    return RECORDS["setitem"](FUNCTIONS[np.empty](shape, dtype=dtype), x, pattern=(...,))


def all_batched(flags: Sequence[bool], xs: Sequence[Value]) -> list[Value]:
    """All of `xs`, broadcast over the lanes where they are not batched."""
    count = lane_count(flags, xs)
    return [x if flag else batched_over(x, count) for flag, x in zip(flags, xs)]


def shifted(axis, own: int):
    """Axis numbers of one lane with `own` axes, as those of all lanes."""
    axes = tuple(k + 1 for k in normal_axes(axis, own))
    return axes[0] if len(axes) == 1 and not isinstance(axis, tuple) else axes


def sum_of_lanes(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The sum of `x` along these of the axes of all lanes."""
    return RECORDS["sum"](x, axis=axes[0] if len(axes) == 1 else axes, keepdims=keepdims)


# ------------------------------------------------------------------------------------------- rules


@shared
def on_all_lanes(record: Record, flags, x: Value, **attrs):
    """Rule: the op itself, which does to a stack what it does to each of its members."""
    return record(x, **attrs)


@shared
def over_axes(record: Record, flags, x: Value, *, axis, **attrs):
    """Rule: a reduction, whose axes move by the lane axis."""
    own = rank(x) - 1
    if own:
        return record(x, axis=shifted(axis, own), **attrs)
    # of one number: a truth value, a count
    dtype = dtype_of(record.infer(Value(Scalar(dtype_of(x.type))), axis=axis, **attrs))
    return x if dtype == dtype_of(x.type) else RECORDS["astype"](x, dtype=dtype)


@shared
def over_one_axis(record: Record, flags, x: Value, *rest: Value, axis, **attrs):
    """Rule: an op along one axis; along all of them, flattened, only if there is only one."""
    own = rank(x) - 1
    if any(flags[1:]) or not flags[0] or axis is None and own != 1:
        return None
    return record(x, *rest, axis=shifted(axis or 0, own), **attrs)
