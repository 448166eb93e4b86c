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
from ...ir.graph import MISSING, Op, Value
from ...ir.types import INT, NONE, Array, Scalar, Type
from ...ops.arrays.reshape import only
from ...ops.core import elementwise as ew
from ...ops.core.cast import bool_, convert, float_
from ...ops.core.define_elementwise import IN_MATH
from ...ops.core.elementwise import select
from ...ops.core.record import Record, value
from ..syntax.ast_builders import call, dotted_call

# ----------------------------------------------------------------------- ops that only kernels have


def _infer_given(*, type: Type, key: str) -> Type:
    return type


# an array passed to the kernel to write to
given = Record("given", evaluate=None, infer=_infer_given,
               syntax=lambda *, type, key: ast.Call(ast.Name("given", ast.Load()),
                                                    [ast.Constant(key)], []))


# a thread's own memory
lane_row = Record("lane row", evaluate=None,
                  infer=lambda a, i: Array(a.type.dtype, a.type.dims[1:]),
                  syntax=lambda a, i: ast.Subscript(a, i, ast.Load()))
# an array of all lanes, of which a lane writes elements of its own; or one that a thread has
for_lane = Record("for lane", evaluate=None, infer=lambda a: a.type, syntax=lambda a: a)
local_array = Record("local array", evaluate=None, pure=False, infer=lambda *, type: type,
                     syntax=lambda *, type: dotted_call(
                         "cuda.local.array", only([ast.Constant(d) for d in type.dims]),
                         ast.Name("boolean" if type.dtype == "bool" else type.dtype, ast.Load())))
atomic_add = Record("atomic add", evaluate=None, infer=lambda a, v, *index: NONE, pure=False,
                    syntax=lambda a, v, *index: dotted_call("cuda.atomic.add", a, only(index), v))
atomic_max = Record("atomic max", evaluate=None, infer=lambda a, v: NONE, pure=False,
                    syntax=lambda a, v: dotted_call("cuda.atomic.max", a, ast.Constant(0), v))

# what the threads of a block do together
thread_of_team = Record("thread of team", evaluate=None, infer=lambda: INT,
                        syntax=lambda: ast.parse("cuda.threadIdx.x", mode="eval").body)
team_size = Record("team size", evaluate=None, infer=lambda: INT,
                   syntax=lambda: ast.parse("cuda.blockDim.x", mode="eval").body)
team_number = Record("team number", evaluate=None, infer=lambda: INT,
                     syntax=lambda: ast.parse("cuda.blockIdx.x * cuda.blockDim.y + "
                                              "cuda.threadIdx.y", mode="eval").body)
of_team = Record("of team", evaluate=None, pure=False, infer=lambda x, t, size, *, step: x.type,
                 syntax=lambda x, t, size, *, step: call(step, x, t, size))
meeting = Record("meeting", evaluate=None, pure=False, infer=lambda: NONE,
                 syntax=lambda: call("meet"))

# the index of a trip, taken apart: 32 bits, unsigned, as the divisions are quicker by far
unsigned = Record("unsigned", evaluate=None, infer=lambda n: INT,
                  syntax=lambda n: call("uint32", n))
index_quotient = Record("index quotient", evaluate=None, infer=lambda i, n: INT,
                        syntax=lambda i, n: ast.BinOp(i, ast.FloorDiv(), n))
index_remainder = Record("index remainder", evaluate=None, infer=lambda i, n: INT,
                         syntax=lambda i, n: ast.BinOp(i, ast.Mod(), n))
signed = Record("signed", evaluate=None, infer=lambda i: INT, syntax=lambda i: call("int64", i))

# ------------------------------------------------------------------------------ spelling of numbers


LOG_2 = math.log(2.0)


def _of(x: Value, number: float):
    """The number with the dtype of x: a bare literal would make float32 float64."""
    return np.float32(number) if x.type == Scalar("float32") else number


def _in_math(record: Record, *xs):
    return IN_MATH[record](*xs)


# Considered: a field of the record.  Which of NumPy's functions numba.cuda compiles is a fact of
# that compiler, and changes with it.
SPELLED: dict[Record, Callable] = {  # replacements for ops that it does not compile
    ew.square: lambda x: x * x,
    ew.reciprocal: lambda x: _of(x, 1.0) / x,
    ew.exp2: lambda x: _of(x, 2.0) ** x,
    ew.positive: lambda x: x,
    ew.quotient: lambda a, b: a / b,
    ew.sign: lambda x: select(x > _of(x, 0.0), _of(x, 1.0),
                             select(x < _of(x, 0.0), _of(x, -1.0), x * _of(x, 0.0))),
    ew.maximum: lambda a, b: select(ew.not_equal(a, a), a, select(a < b, b, a)),
    ew.minimum: lambda a, b: select(ew.not_equal(a, a), a, select(b < a, b, a)),
    ew.clip: lambda x, lo, hi: select(x < lo, lo, select(x > hi, hi, x)),
    ew.where: select,
    ew.isnan: lambda x: ew.not_equal(x, x),
    ew.logical_and: lambda a, b: select(a, bool_(b), False),
    ew.logical_or: lambda a, b: select(a, True, bool_(b)),
    ew.logical_not: ew.not_,
    ew.logaddexp: lambda a, b: (
        ew.max_(a, b) + _in_math(ew.log1p, _in_math(ew.exp, -ew.abs_(a - b)))),
    ew.logaddexp2: lambda a, b: (
        ew.max_(a, b)
        + _in_math(ew.log1p, _in_math(ew.exp, -ew.abs_(a - b) * _of(a, LOG_2)))
        / _of(a, LOG_2)),
    ew.absolute: ew.abs_,
    ew.heaviside: lambda x, h: select(x > _of(x, 0.0), _of(x, 1.0),
                                     select(x < _of(x, 0.0), _of(x, 0.0), h)),
}


def combined(step: Record, a: Value, b: Value) -> Value:
    """Two numbers combined by `step`, as numba.cuda compiles it."""
    return value(SPELLED[step](a, b)) if step in SPELLED else step(a, b)


def respell(op: Op, inputs: list[Value]):
    """A scalar op as numba.cuda compiles it; None for the op itself."""
    record = op.record
    if not record.elementwise:
        return None
    typed = _typed(inputs)
    if record is ew.power and _constant(typed[1]) == 2:
        return typed[0] * typed[0]  # as NumPy does
    if record in SPELLED:
        return value(SPELLED[record](*typed))
    if record in IN_MATH:
        result = IN_MATH[record](*typed)
        return float_(result) if result.type == INT else result  # math.floor(x)
    spelling = record.syntax(*(ast.Name("x", ast.Load()) for _ in inputs), **op.attrs)
    if (isinstance(spelling, ast.Call) and isinstance(spelling.func, ast.Attribute)
            and record.name != "convert" and getattr(spelling.func.value, "id", "") == "np"):
        raise UnsupportedError(f"np.{spelling.func.attr} in a CUDA kernel", op.line,
                               "write it with functions of Python's math module")
    return emit(record, *typed, **op.attrs)


def _constant(x: Value):
    """The constant that `x` is, perhaps with another dtype."""
    is_converted = x.op is not None and x.op.record is convert
    return x.op.inputs[0].constant if is_converted else x.constant


def _typed(xs: Sequence[Value]) -> list[Value]:
    """Python numbers with the dtype of float32 arithmetic, which a bare literal makes float64."""
    dtypes = {x.type.dtype for x in xs if x.constant is MISSING}
    if "float32" not in dtypes or not dtypes <= {"float32", "bool"}:
        return list(xs)
    return [value(np.float32(x.constant)) if type(x.constant) in (int, float) else x for x in xs]
