"""Elementwise ops: a table of the derivatives learned at school.

Each row: the op's name in NumPy, how compiled scalar code spells it, and ∂y/∂x for each operand as a
function of the result `y` and the operands.  Both modes, batching and fusion follow from that.
A partial of 1 or -1 is written as the number; None says that the operand carries no derivative.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ..ir.builder import current
from ..ir.graph import MISSING, OPERATORS, Value
from ..ir.types import Array, Scalar, Type, Unknown, is_inexact
from ..errors import TypeMismatchError
from .record import (FUNCTIONS, RECORDS, array_type, broadcast_dims, constant, define, dims_of, dtype_of, emit,
                     promote, same_shape, value)

# ------------------------------------------------------------------------------------------- the types


def _number(x: Value) -> Type:
    if not isinstance(x.type, (Scalar, Array, Unknown)):
        raise TypeMismatchError(f"{x.name or 'this'} is {x.type}, and a number or an array is needed", current().line)
    return x.type


def _unknown_shape(types: list[Type]) -> str | None:
    """The shape symbol of an elementwise result of unknown rank: that of its operands if they agree."""
    shapes = {t.shape if isinstance(t, Unknown) else dims_of(t) for t in types
              if not isinstance(t, Scalar)}
    return shapes.pop() if len(shapes) == 1 and isinstance(next(iter(shapes)), str) else None


def _infer(result_dtype: Callable) -> Callable:
    def infer(*xs: Value) -> Type:
        types = [_number(x) for x in xs]
        if any(dtype_of(t) is None for t in types):
            dtype, weak = (result_dtype(None, False), False)
        else:
            dtype, weak = promote(*types)
            dtype, weak = result_dtype(dtype, weak), weak and result_dtype is _arithmetic
        if any(isinstance(t, Unknown) for t in types):
            return Unknown(_unknown_shape(types), dtype)
        dims = broadcast_dims(*map(dims_of, types))
        return array_type(dtype, dims) if dims else Scalar(dtype, weak)

    return infer


def _arithmetic(dtype: str | None, weak: bool) -> str | None:
    return dtype


def _inexact(dtype: str | None, weak: bool) -> str | None:
    """NumPy's rule for sin and its kind: integers become floats."""
    if dtype is None or is_inexact(dtype):
        return dtype
    return np.sin(np.empty(0, dtype)).dtype.name


def _boolean(dtype: str | None, weak: bool) -> str:
    return "bool"


# -------------------------------------------------------------------------------------- the definition


def elementwise(name: str, *partials, scalar: str = "", dtype: Callable = _inexact, syntax: Callable | None = None,
                evaluate: Callable | None = None, functions: tuple = (), fold: Callable | None = None):
    """Define an elementwise op.  `partials`: one (y, *xs) -> ∂y/∂x, 1, -1 or None per operand."""
    compute = evaluate or getattr(np, name)

    def folded(*xs: Value):
        constants = [x.constant for x in xs]
        if syntax is not None and all(isinstance(c, (int, float)) for c in constants):
            try:
                return emit(constant, value=_python(compute, constants))
            except ArithmeticError:
                return None  # let the run raise it
        simpler = fold(*xs) if fold is not None else None
        return simpler if simpler is not None else _absorb_broadcast(record, xs)

    record = define(name, evaluate=compute, infer=_infer(dtype), fold=folded, partials=partials,
                    syntax=syntax or _call_syntax(name), elementwise=True, cheap=True, scalar=scalar)
    for function in (getattr(np, name, None), *functions):
        if function is not None:
            FUNCTIONS[function] = record
    return record


def _python(compute: Callable, constants: list):
    """Fold an operator as Python would have computed it: Python numbers stay Python numbers."""
    result = compute(*constants)
    if isinstance(result, np.generic) and all(not isinstance(c, np.generic) for c in constants):
        return result.item()
    return result


def _call_syntax(name: str) -> Callable:
    def syntax(*args: ast.expr) -> ast.expr:
        return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load()), list(args), [])

    return syntax


def _absorb_broadcast(record, xs: tuple[Value, ...]):
    """Note [Broadcasts are absorbed]: `full(shape of x, s) * x` is `s * x` where the shapes are proved equal.

    The cotangent of a sum is a number spread over an array; almost always something elementwise reads it.
    """
    for k, x in enumerate(xs):
        if x.op is not None and x.op.record.name in ("spread", "broadcast_to"):
            others = [*xs[:k], x.op.inputs[0], *xs[k + 1:]]
            result = record.infer(*others)
            if same_shape(result, record.infer(*xs)) and dtype_of(result) == dtype_of(record.infer(*xs)):
                return emit(record, *others)
    return None


def _binary(op: ast.operator) -> Callable:
    return lambda a, b: ast.BinOp(a, op, b)


def _compare(op: ast.cmpop) -> Callable:
    return lambda a, b: ast.Compare(a, [op], [b])


# ------------------------------------------------------------------------------- identities, bit for bit


def _is(x: Value, number) -> bool:
    c = x.constant
    return c is not MISSING and isinstance(c, (int, float)) and not isinstance(c, bool) and c == number


def _same_type(x: Value, record, *xs: Value):
    """`x`, if it has exactly the type of the op it is to replace."""
    return x if record.infer(*xs) == x.type else None


def _negated(x: Value) -> Value | None:
    return x.op.inputs[0] if x.op is not None and x.op.record is negative else None


def _fold_add(a: Value, b: Value):
    if _negated(b) is not None:
        return a - _negated(b)
    if _negated(a) is not None:
        return b - _negated(a)
    if all(isinstance(x.type, Scalar) and not is_inexact(x.type.dtype) for x in (a, b)):
        return _affine(a, b, 1)
    return None


def _fold_subtract(a: Value, b: Value):
    if _negated(b) is not None:
        return a + _negated(b)
    if all(isinstance(x.type, Scalar) and not is_inexact(x.type.dtype) for x in (a, b)):
        return _affine(a, b, -1)
    return None


def _affine(a: Value, b: Value, sign: int):
    """Integers: x + 0 is x, (x + 1) - 2 is x - 1, (x + 1) - x is 1."""
    (base, offset), (other, shift) = _base_offset(a), _base_offset(b)
    if base is other and base is not None and sign == -1:
        return value(offset - shift)
    if base is None and other is not None and sign == 1:  # 1 + x
        base, offset, other, shift = other, shift, base, offset
        a, b = b, a
    if base is None or other is not None:
        return None
    total = offset + sign * shift
    if total == 0:
        return base
    if offset == 0 and total > 0 and sign == 1 and a is base and isinstance(b.constant, int):
        return None  # already in its simplest form
    if offset == 0 and sign == -1 and shift > 0:
        return None
    return base + total if total > 0 else base - -total


def _base_offset(x: Value) -> tuple[Value | None, int]:
    """x as base + offset; a constant has no base."""
    if isinstance(x.constant, int):
        return None, int(x.constant)
    op = x.op
    if op is not None and op.record.name in ("add", "subtract") and isinstance(op.inputs[1].constant, int):
        base, offset = _base_offset(op.inputs[0])
        sign = 1 if op.record.name == "add" else -1
        return base, offset + sign * op.inputs[1].constant
    return x, 0


def _fold_multiply(a: Value, b: Value):
    for x, y in ((a, b), (b, a)):
        if _is(x, 1):
            return _same_type(y, multiply, a, b)
        if _is(x, -1) and _same_type(y, multiply, a, b) is not None:
            return -y
        if isinstance(x.constant, int) and x.constant == 0 and not isinstance(x.constant, bool):
            if isinstance(y.type, Scalar) and not is_inexact(y.type.dtype):
                return value(0)
    if _negated(a) is not None and _negated(b) is not None:
        return _negated(a) * _negated(b)
    if _negated(a) is not None:
        return -(_negated(a) * b)
    if _negated(b) is not None:
        return -(a * _negated(b))
    return None


def _fold_divide(a: Value, b: Value):
    if _is(b, 1):
        return _same_type(a, divide, a, b)
    if _negated(a) is not None:
        return -(_negated(a) / b)
    return None


def _fold_negative(x: Value):
    return _negated(x)


# ------------------------------------------------------------------------------------------- the table
#                                       ∂y/∂a                        ∂y/∂b

add = elementwise("add",                1,                           1,
                  dtype=_arithmetic, syntax=_binary(ast.Add()), fold=_fold_add)
subtract = elementwise("subtract",      1,                           -1,
                       dtype=_arithmetic, syntax=_binary(ast.Sub()), fold=_fold_subtract)
multiply = elementwise("multiply",      lambda y, a, b: b,           lambda y, a, b: a,
                       dtype=_arithmetic, syntax=_binary(ast.Mult()), fold=_fold_multiply)
divide = elementwise("divide",          lambda y, a, b: 1 / b,       lambda y, a, b: -y / b,
                     syntax=_binary(ast.Div()), evaluate=lambda a, b: a / b, functions=(np.true_divide,),
                     fold=_fold_divide)
negative = elementwise("negative",      -1,
                       dtype=_arithmetic, syntax=lambda a: ast.UnaryOp(ast.USub(), a), evaluate=lambda a: -a,
                       fold=_fold_negative)

#                                       ∂y/∂x

exp = elementwise("exp",                lambda y, x: y,              scalar="math.exp")
log = elementwise("log",                lambda y, x: 1 / x,          scalar="math.log")
sin = elementwise("sin",                lambda y, x: cos(x),         scalar="math.sin")
cos = elementwise("cos",                lambda y, x: -sin(x),        scalar="math.cos")

less = elementwise("less", None, None, dtype=_boolean, syntax=_compare(ast.Lt()))
less_equal = elementwise("less_equal", None, None, dtype=_boolean, syntax=_compare(ast.LtE()))
greater = elementwise("greater", None, None, dtype=_boolean, syntax=_compare(ast.Gt()))
greater_equal = elementwise("greater_equal", None, None, dtype=_boolean, syntax=_compare(ast.GtE()))
equal = elementwise("equal", None, None, dtype=_boolean, syntax=_compare(ast.Eq()))
not_equal = elementwise("not_equal", None, None, dtype=_boolean, syntax=_compare(ast.NotEq()))

OPERATORS.update({name: RECORDS[name] for name in RECORDS if RECORDS[name].elementwise})
