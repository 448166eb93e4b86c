"""Cotangents of lists, tuples and objects: zeros of their form, and sums member by member.

The cotangent of a list has the length of the list, and as items the cotangents of its items.
"""

from __future__ import annotations

import ast

import numpy as np

from ...errors import UnsupportedError
from ...ir.builder import current, emit, join_types
from ...ir.graph import Value
from ...ir.types import Array, List, Scalar, Static, Tape, Tuple, Type, Unknown, carries_derivative
from ..core.control import (
    container_syntax,
    item,
    made_of,
    member_syntax,
    members_of,
    packed,
    tape_copy,
)
from ..core.dependence_rules import follows, nothing, spread_as
from ..core.record import WITH_ARGUMENTS, define, no_jvp, no_vjp
from ..core.shape import NARROW, float_dtype, kind_of_item, numpy_call, zeros_of
from .list_ops import call_syntax, list_of, plus_of_kind, union_by_item
from .list_sums import list_full


def _zero(kind, x):
    match kind:
        case ("list", inner):
            return [_zero(inner, y) for y in x]
        case ("members", form, *inner):
            return made_of(map(_zero, inner, members_of(x)), form)
        case "number":
            return 0.0
        case ("number", dtype):
            return 0j if dtype == "complex128" else np.dtype(dtype).type(0)
        case ("array", dtype):
            return np.zeros(np.shape(x), dtype)
        case "fixed":
            return x
    return np.zeros(np.shape(x))


def _zero_syntax(kind, x: ast.expr, depth: int = 0) -> ast.expr:
    match kind:
        case ("list", "number" | ("number", _)):
            return ast.BinOp(ast.List([_zero_syntax(kind[1], x)], ast.Load()), ast.Mult(),
                             call_syntax("len", x))
        case ("list", inner):
            name = "x" if depth == 0 else f"x_{depth}"
            element = _zero_syntax(inner, ast.Name(name, ast.Load()), depth + 1)
            return ast.ListComp(element, [ast.comprehension(ast.Name(name, ast.Store()), x, [], 0)])
        case ("members", form, *inner):
            return container_syntax(*(_zero_syntax(k, member_syntax(x, form, n), depth)
                                      for n, k in enumerate(inner)), form=form)
        case "number":
            return ast.Constant(0.0)
        case ("number", "complex128"):
            return ast.Constant(0j)
        case ("number", dtype):
            return numpy_call(dtype, ast.Constant(0.0))
        case ("array", dtype):
            return numpy_call("zeros", numpy_call("shape", x),
                              ast.Attribute(ast.Name("np", ast.Load()), dtype, ast.Load()))
        case "fixed":
            return x
    return numpy_call("zeros", numpy_call("shape", x))


def plus_syntax(kind, x: ast.expr, y: ast.expr, depth: int = 0) -> ast.expr:
    match kind:
        case ("list", inner):
            a, b = ("a", "b") if depth == 0 else (f"a_{depth}", f"b_{depth}")
            element = plus_syntax(inner, ast.Name(a, ast.Load()), ast.Name(b, ast.Load()),
                                  depth + 1)
            pair = ast.Tuple([ast.Name(a, ast.Store()), ast.Name(b, ast.Store())], ast.Store())
            return ast.ListComp(element, [ast.comprehension(pair, call_syntax("zip", x, y), [], 0)])
        case ("members", form, *inner):
            return container_syntax(*(plus_syntax(k, member_syntax(x, form, n),
                                                  member_syntax(y, form, n), depth)
                                      for n, k in enumerate(inner)), form=form)
        case "fixed":
            return x
    return ast.BinOp(x, ast.Add(), y)


def _cotangent_type(type: Type) -> Type:
    match type:
        case Tape(item):
            return Tape(_cotangent_type(item))
        case List(item):
            return List(_cotangent_type(item))
        case Tuple(items, form):
            return Tuple(tuple(map(_cotangent_type, items)), form)
        case Scalar(dtype):
            dtype = dtype if dtype is None else float_dtype(type)
            return Scalar(dtype, dtype not in NARROW)
        case Array(dtype, dims):
            return Array(dtype if carries_derivative(type) else "float64", dims)
    return type


def _fold_zeros(xs: Value, *, kind):
    """Fold zeros for a new list, item by item."""
    if xs.op is not None and xs.op.record is list_of:
        attrs = {name: _cotangent_type(item) for name, item in xs.op.attrs.items()}
        return emit(list_of, *map(zeros_of, xs.op.inputs), **attrs)
    if xs.op is not None and xs.op.record is list_full:
        return list_full(zeros_of(xs.op.inputs[0]), xs.op.inputs[1])
    return None


list_zeros = define(
    "list_zeros",  # (xs): a zero cotangent
    evaluate=lambda xs, *, kind: _zero(kind, xs),
    infer=lambda xs, *, kind: _cotangent_type(xs.type),
    fold=_fold_zeros,
    syntax=lambda xs, *, kind: _zero_syntax(kind, xs),
    vjp=no_vjp,
    jvp=no_jvp,
    depends=nothing,
    fill=0,
)

@follows(0, 1)
def _depends_plus(unions, y, deps, a, b, **attrs):
    return union_by_item(unions, spread_as(deps[0], a), spread_as(deps[1], b))


list_plus = define(
    "list_plus",  # (a, b): the sum of two cotangents, item by item
    evaluate=lambda a, b, *, kind: plus_of_kind(kind, a, b),
    infer=lambda a, b, *, kind: join_types(a.type, b.type, "a cotangent"),
    syntax=lambda a, b, *, kind: plus_syntax(kind, a, b),
    # each empties its own
    vjp=lambda bar, y, a, b, *, kind: (bar, tape_copy(bar) if isinstance(bar.type, Tape) else bar),
    linear=(0, 1),
    depends=_depends_plus,
)


def sum_of(a: Value, b: Value) -> Value:
    """The sum of two cotangents of one value."""
    match a.type:
        case Scalar() if a.constant == 0.0:  # for a container whose other members have one
            return b
        case Scalar() if b.constant == 0.0:
            return a
        case List():
            return list_plus(a, b, kind=kind_of_item(a.type))
        case Tuple(items):
            return packed([sum_of(item(a, index=k), item(b, index=k)) for k in range(len(items))],
                          a.type.form)
        case Static():
            return a
    return a + b


def _into_member(bar: Value, t: Value, index: int):
    """Add the cotangent of a member to that of a tuple read from a list."""
    if isinstance(t.type, Unknown):
        raise UnsupportedError(
            f"whether {t.name or 'what is taken apart'} is a tuple or an array "
            "is known only at a call",
            current().line, WITH_ARGUMENTS)

    def enter(old):
        whole = zeros_of(t) if old is None else old
        members = [item(whole, index=k) for k in range(len(t.type.items))]
        members[index] = bar if old is None else sum_of(members[index], bar)
        return packed(members, t.type.form)

    return enter


item.vjp = lambda bar, y, t, *, index: (_into_member(bar, t, index),)
