"""Ops that only kernels have, and the spelling of scalar ops that numba.cuda compiles.

numba.cuda compiles Python's `math`, not NumPy's functions, and computes float32 with a bare literal
in float64; so scalar ops are respelled here.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import UnsupportedError
from ...ir.builder import emit
from ...ir.graph import Op, Value
from ...ir.types import NONE, Array, Scalar, Type
from ...ops.core.define_elementwise import IN_MATH
from ...ops.core.elementwise import select
from ...ops.core.record import RECORDS, Record, value

# ----------------------------------------------------------------------- ops that only kernels have


def _infer_given(*, type: Type, key: str) -> Type:
    return type


# an array passed to the kernel to write to
given = Record("given", evaluate=None, infer=_infer_given,
               syntax=lambda *, type, key: ast.Call(ast.Name("given", ast.Load()),
                                                    [ast.Constant(key)], []))


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.parse(name, mode="eval").body, list(args), [])


def _tuple(indices: Sequence[ast.expr]) -> ast.expr:
    return indices[0] if len(indices) == 1 else ast.Tuple(list(indices), ast.Load())


# a thread's own memory
lane_row = Record("lane row", evaluate=None,
                  infer=lambda a, i: Array(a.type.dtype, a.type.dims[1:]),
                  syntax=lambda a, i: ast.Subscript(a, i, ast.Load()))
atomic_add = Record("atomic add", evaluate=None, infer=lambda a, v, *index: NONE, pure=False,
                    syntax=lambda a, v, *index: _call("cuda.atomic.add", a, _tuple(index), v))
atomic_max = Record("atomic max", evaluate=None, infer=lambda a, v: NONE, pure=False,
                    syntax=lambda a, v: _call("cuda.atomic.max", a, ast.Constant(0), v))

# ------------------------------------------------------------------------------ spelling of numbers


def _twins() -> dict[str, Callable]:
    """Replacements for ops that numba.cuda does not compile under NumPy's name."""
    ew = RECORDS
    return {
        "square": lambda x: x * x,
        "reciprocal": lambda x: 1.0 / x,
        "exp2": lambda x: 2.0 ** x,
        "positive": lambda x: x,
        "quotient": lambda a, b: a / b,
        "sign": lambda x: select(x > 0, 1.0, select(x < 0, -1.0, x * 0.0)),
        "maximum": lambda a, b: select(ew["not_equal"](a, a), a, select(a < b, b, a)),
        "minimum": lambda a, b: select(ew["not_equal"](a, a), a, select(b < a, b, a)),
        "clip": lambda x, lo, hi: select(x < lo, lo, select(x > hi, hi, x)),
        "where": lambda c, a, b: select(c, a, b),
        "isnan": lambda x: ew["not_equal"](x, x),
        "logical_and": lambda a, b: select(a, ew["bool_"](b), False),
        "logical_or": lambda a, b: select(a, True, ew["bool_"](b)),
        "logical_not": lambda a: ew["not_"](a),
        "logaddexp": lambda a, b: (
            ew["max_"](a, b) + ew["math.log1p"](ew["math.exp"](-ew["abs_"](a - b)))),
        "logaddexp2": lambda a, b: (
            ew["max_"](a, b)
            + ew["math.log1p"](ew["math.exp"](-ew["abs_"](a - b) * LOG_2)) / LOG_2),
        "absolute": lambda x: ew["abs_"](x),
        "heaviside": lambda x, h: select(x > 0, 1.0, select(x < 0, 0.0, h)),
    }


LOG_2 = math.log(2.0)
ROUNDED = ("floor", "ceil", "trunc")  # math's return integers


def respell(op: Op, inputs: list[Value]):
    """A scalar op as numba.cuda compiles it; None for the op itself."""
    record = op.record
    if not record.elementwise:
        return None
    typed = [_typed(x, op.output.type) for x in inputs]
    if record.name in _twins():
        return value(_twins()[record.name](*typed))
    if record in IN_MATH:
        result = IN_MATH[record](*typed)
        return RECORDS["float_"](result) if record.name in ROUNDED else result
    spelling = record.syntax(*(ast.Name("x", ast.Load()) for _ in inputs), **op.attrs)
    if (isinstance(spelling, ast.Call) and isinstance(spelling.func, ast.Attribute)
            and record.name != "convert" and getattr(spelling.func.value, "id", "") == "np"):
        raise UnsupportedError(f"np.{spelling.func.attr} in a CUDA kernel", op.line,
                               "write it with functions of Python's math module")
    return emit(record, *typed, **op.attrs)


def _typed(x: Value, wanted: Type) -> Value:
    """Python numbers with the dtype of float32 arithmetic: a bare literal would make it float64."""
    if type(x.constant) is float and wanted == Scalar("float32"):
        return value(np.float32(x.constant))
    return x
