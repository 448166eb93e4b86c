"""Rewrite ops that are compositions of other ops, before lowering (legalisation).

    np.outer(a, b)                 a[:, None] * b
    a @ b, np.einsum               see contractions.py
    float(c), of a boolean         np.float64(c)
    math.fmod(a, b), np.fmod       sign(a) * (abs(a) % abs(b)), of integers: Numba's sign is wrong
    math.hypot(a, b, c)            math.hypot(math.hypot(a, b), c); abs(a) of one number
    math.cbrt(x)                   np.cbrt(x), which Numba knows
    np.round(x)                    np.rint(x), one instruction: Numba's np.round is compiled for any
                                   number of decimals
    math.fsum(xs)                  summed_exactly(xs), the same in loops
    k ** n, of integers            k ** natural_exponent(n), also in loops for arrays n: Numba's
                                   result for a negative n is 0
    p + q, p * q, of NumPy bools   p | q, p & q
    k // n, of NumPy's integers    np.where(n == -1, -k, k // n): Numba's least int // -1 is 0
    k << n, of arrays              np.where(0 <= n < 64, k << n, 0), as NumPy does
    x ** 0.5, z ** -1, of arrays   np.sqrt(x), np.reciprocal(z), as NumPy computes them: they differ
                                   for -inf, say, and for 0 where z is complex
    np.stack(xs, axis)             np.concatenate of xs with a new axis each
    cofactors_of_each(det, a)      cofactors_in_loops(det, a), of complex matrices; a loop over the
                                   others (batched_linalg.py)
    np.append(a, v)                np.concatenate((a, np.array([v])))
    a < b, of complex numbers      by real parts, then by imaginary parts, as NumPy compares them
    z.astype(np.float64)           np.real(z).astype(np.float64), of complex numbers
    np.repeat(x, n), np.tile       of an array of one element, if x is a number; sums back to a
                                   number are np.sum
    np.argmax(x), of one number    0
    np.searchsorted, np.digitize   loops over the elements (binary_search.py)
    np.asarray_chkfinite(x)        x, and an error unless all of it is finite
    fitted(x, n, axis)             a part of x, written into zeros
    np.fft.fftfreq(n, d)           0, 1, 2, ..., -2, -1, times 1.0 / (n * d); likewise rfftfreq
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import Line, UnsupportedError
from ...ir.graph import MISSING, Function, Op, Value, walk
from ...ir.reemit import rebuild
from ...ir.types import Array, Scalar, is_inexact
from ...ops.arrays.axes import expand_dims
from ...ops.arrays.concatenate import concatenate_record
from ...ops.arrays.create import array
from ...ops.arrays.fft import as_writes, multiples
from ...ops.arrays.norms import plainly
from ...ops.arrays.reduce import sum_record
from ...ops.core.cast import convert, float_, int_
from ...ops.core.define_elementwise import IN_MATH
from ...ops.core.elementwise import (
    absolute,
    bitwise_and,
    bitwise_or,
    cbrt,
    equal,
    greater_equal,
    hypot,
    imag,
    less,
    not_equal,
    power,
    real,
    reciprocal,
    rint,
    sign,
    sqrt,
    where,
)
from ...ops.core.raise_conditions import Raises, is_complex, unlike
from ...ops.core.record import RECORDS, Record, rank, value
from ...ops.core.shape import length
from ...ops.linalg.determinant import IN_LOOPS
from ...ops.math.python_sum import plain_sum
from ...ops.math.special import SCIPYS_ALONE
from ...ops.program.list_ops import native_exact_sum, native_list_order, native_sum_overflows
from ..loopir.ops import natural_exponent_op
from .batched_linalg import expand_batch, is_of_stacks, matrices
from .binary_search import expand_digitize, expand_search
from .contractions import (
    BLAS,
    expand_convolve,
    expand_correlate,
    expand_einsum,
    expand_matmul,
    of_dtype,
)
from .python_errors import raise_where
from .small_linalg import expand_small_linalg

REWRITTEN = ("einsum", "finite", "outer", "stack", "append", "convolve", "correlate", "math.fmod",
             "math.cbrt", "hypotenuse", "exact_sum", "sum_overflows", "list_order",
             "compensated_sum", "fitted", "fftfreq", "rfftfreq", *IN_LOOPS)


NOT_SQUARE = Raises(np.linalg.LinAlgError, lambda *xs: None)


def legalise(function: Function, has_blas: bool = True) -> Function:
    """`function` with the ops of the table above rewritten; `has_blas` allows calls of BLAS."""
    for block in (function.block, *(inner for op in walk(function.block) for inner in op.blocks)):
        for y in filter(exceeds_word, block.yields):
            raise too_wide(y, y.op.line)
    return rebuild(function, rule=functools.partial(_rewrite, has_blas=has_blas))


def legalise_for_kernels(function: Function) -> Function:
    """`function` with the ops of the table above rewritten, for kernels, which call no BLAS."""
    return legalise(function, has_blas=False)


def legalise_op(record: Record, inputs: Sequence[Value], has_blas: bool) -> Value:
    """The result of an op of this record, rewritten as the table above says."""
    op = Op(record, list(inputs))
    op.outputs = [Value(record.infer(*inputs), "", op)]
    replacement = _rewrite(op, list(inputs), has_blas)
    return record(*inputs) if replacement is None else replacement[0]


def exceeds_word(x) -> bool:
    """Whether `x` is a Python integer, or a Value known to be one, outside the range of int64."""
    known = x.constant if isinstance(x, Value) else x
    return type(known) is int and not -2**63 <= known < 2**63


def too_wide(x: Value, line: Line | None) -> UnsupportedError:
    return UnsupportedError(f"the integer {x.constant} has more than 63 bits, "
                            "and native integers have no more", line,
                            f"write it as a float: {float(x.constant)!r}")


def _rewrite(op: Op, inputs: list[Value], has_blas: bool) -> Sequence[Value] | None:
    wide = list(filter(exceeds_word, inputs))
    if wide:
        return [_with_floats(op, inputs, wide)]
    if op.name in SCIPYS_ALONE and not has_blas:
        raise UnsupportedError(f"scipy.special.{op.name} on a GPU", op.line,
                               'leave target="cuda" away, or call it outside of what is compiled')
    if is_of_stacks(op) and has_blas and rank(matrices(op, inputs)) > 2:
        replacement = _matrix_by_matrix(op, inputs)
        if replacement is not None:
            return [replacement]
    if (plain := plainly(op, inputs)) is not None:
        return [plain]
    if op.name in REWRITES:
        replacement = REWRITES[op.name](op, *inputs)
    elif op.name in WITH_BLAS:
        replacement = WITH_BLAS[op.name](op, has_blas, *inputs)
    else:
        return None
    return [replacement] if isinstance(replacement, Value) else replacement


def _with_floats(op: Op, inputs: list[Value], wide: list[Value]) -> Value:
    """`op` with `wide` integers as floats, to which Python converts them where it meets floats."""
    if not op.record.elementwise or not is_inexact(op.output.type.dtype):
        raise too_wide(wide[0], op.line)
    return op.record(*(value(float(x.constant)) if x in wide else x for x in inputs), **op.attrs)


def _matrix_by_matrix(op: Op, inputs: list[Value]) -> Value | None:
    """`op` of a stack of matrices, as a loop over them."""
    replacement = expand_batch(op, inputs, lambda record, xs: legalise_op(record, xs, True))
    stack = matrices(op, inputs)
    # which is not tested if there are no matrices
    if replacement is not None and stack.type.dims[-1] != stack.type.dims[-2]:
        raise_where(NOT_SQUARE, unlike(length(stack, axis=-2), length(stack, axis=-1)))
    return replacement


def _kind(x: Value) -> str:
    """The letter of NumPy's for the kind of the dtype of `x`: "i", "u", "f", "c" or "b"."""
    return np.dtype(x.type.dtype).kind


def _hypotenuse(op: Op, *sides: Value) -> Value:
    return (functools.reduce(IN_MATH[hypot], sides) if len(sides) > 1
            else float_(absolute(sides[0])))


def _power(op: Op, x: Value, exponent: Value) -> Value | None:
    if _kind(op.output) in "iu" and isinstance(exponent.type, Scalar):
        natural = int_(exponent) if exponent.type.dtype == "bool" else exponent
        return power(x, natural_exponent_op(natural))
    if not isinstance(x.type, Array) or _kind(x) not in "fc":
        return None
    if type(exponent.constant) is float and exponent.constant == 0.5:
        return sqrt(x)
    is_inverse = type(exponent.constant) is int and exponent.constant == -1
    return reciprocal(x) if is_inverse and is_complex(x) else None


def _floor_divide(op: Op, a: Value, b: Value) -> Value | None:
    quotient = op.output.type
    if (quotient.dtype != "int64" or b.constant not in (MISSING, -1)
            or isinstance(quotient, Scalar) and quotient.weak):
        return None
    return -a if b.constant == -1 else where(equal(b, -1), -a, op.record(a, b))


def _stack(op: Op, *xs: Value) -> Value | None:
    axis = op.attrs["axis"]
    return (concatenate_record(*(expand_dims(x, axis) for x in xs), axis=axis)
            if isinstance(xs[0].type, Array) else None)


def _repeat(op: Op, x: Value, *counts: Value) -> Value | None:
    return op.record(array((x,)), *counts, **op.attrs) if isinstance(x.type, Scalar) else None


def _sum_of_repeated(op: Op, x: Value, *_) -> Value | None:
    return (sum_record(x, axis=None, keepdims=False) if isinstance(op.output.type, Scalar)
            else None)


def _finite(op: Op, has_blas: bool, x: Value) -> Value:
    (raising,) = op.record.raises
    if has_blas:
        raise_where(raising, raising.asked([x], {}))
    return x


# The conditions are those under which the text would compute something else, or not compile.
# name of an op: what it becomes, from the op and its inputs; None where it stays as it is
REWRITES: dict[str, Callable] = {
    "outer": lambda op, a, b: expand_dims(a, 1) * b,
    "float_": lambda op, x: convert(x, dtype="float64") if x.type.dtype == "bool" else None,
    "math.fmod": lambda op, *inputs: (op.record(*map(float_, inputs))
                                      if all(x.type.dtype in ("int64", "bool") for x in inputs)
                                      else None),
    "hypotenuse": _hypotenuse,
    "math.cbrt": lambda op, x: float_(cbrt(x)),
    "round": lambda op, x, decimals: (rint(x) if decimals.constant == 0 and _kind(op.output) == "f"
                                      else None),
    "compensated_sum": lambda op, *inputs: float_(plain_sum(*inputs)),
    **dict.fromkeys(IN_LOOPS, lambda op, *inputs: IN_LOOPS[op.name](*inputs)),
    "exact_sum": lambda op, *inputs: native_exact_sum(*inputs),
    "sum_overflows": lambda op, *inputs: native_sum_overflows(*inputs),
    "list_order": lambda op, *inputs: native_list_order(*inputs, **op.attrs),
    # Numba's sign of an uint8 of 200 is -1
    "sign": lambda op, x: (of_dtype(op.output.type.dtype, not_equal(x, 0))
                           if _kind(op.output) == "u" else None),
    "fmod": lambda op, a, b: (sign(a) * (absolute(a) % absolute(b)) if _kind(op.output) == "i"
                              else None),
    "power": _power,
    **{name: lambda op, a, b: (op.record.of_truths(a, b) if op.output.type.dtype == "bool"
                               else None)
       for name, record in RECORDS.items() if record.of_truths is not None},
    "floor_divide": _floor_divide,
    **dict.fromkeys(("left_shift", "right_shift"),
                    lambda op, a, by: (_shift(op, a, by) if isinstance(op.output.type, Array)
                                       and by.type.dtype != "bool" else None)),
    "convolve": lambda op, a, v: (expand_convolve(a, v, op.output.type.dtype)
                                  if op.output.type.dtype in BLAS else None),
    "correlate": lambda op, a, v: (expand_correlate(a, v, op.output.type.dtype)
                                   if op.output.type.dtype in BLAS else None),
    "einsum": lambda op, *inputs: expand_einsum(op, list(inputs), {}),
    **dict.fromkeys(("inv", "inverse_or_nan", "solve", "det", "sign_of_det", "log_of_det",
                     "cofactors", "cholesky"),
                    lambda op, *inputs: expand_small_linalg(op, list(inputs))),
    "fitted": lambda op, *inputs: as_writes(*inputs, op.attrs["axis"]),
    **dict.fromkeys(("fftfreq", "rfftfreq"), lambda op, *inputs: multiples(op.name, *inputs)),
    "append": lambda op, x, v: concatenate_record(x, array((v,)), axis=0),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"),
                    lambda op, a, b: (complex_order(op.record, a, b)
                                      if is_complex(a) or is_complex(b) else None)),
    "astype": lambda op, x: (of_dtype(op.attrs["dtype"], real(x)) if is_complex(x)
                             and np.dtype(op.attrs["dtype"]).kind in "iuf" else None),
    **dict.fromkeys(("repeat", "tile"), _repeat),
    **dict.fromkeys(("unrepeat", "untile"), _sum_of_repeated),
    **dict.fromkeys(("argmax", "argmin"),
                    lambda op, x: value(np.int64(0)) if isinstance(x.type, Scalar) else None),
    "stack": _stack,
}

# the same, where it matters whether BLAS can be called: from the op, that and the inputs
WITH_BLAS: dict[str, Callable] = {
    "finite": _finite,
    "matmul": lambda op, has_blas, a, b: expand_matmul(a, b, op.output.type.dtype, has_blas),
    "searchsorted": lambda op, has_blas, *inputs: (expand_search(op, *inputs) if has_blas
                                                   else None),
    "digitize": lambda op, has_blas, *inputs: (expand_digitize(*inputs, **op.attrs) if has_blas
                                               else None),
}


def _shift(op: Op, a: Value, by: Value) -> Value | None:
    """Shifts by a count out of range, 0 in NumPy: the machine takes the count modulo 64."""
    places = 8 * np.dtype(op.output.type.dtype).itemsize
    if type(by.constant) is int and 0 <= by.constant < places:
        return None
    is_near = bitwise_and(greater_equal(by, 0), less(by, places))
    if op.name == "left_shift":
        return where(is_near, op.record(a, by), 0)
    return op.record(a, where(is_near, by, places - 1))


def complex_order(compare, a: Value, b: Value) -> Value:
    """`compare` of numbers of which one is complex, in lexicographic order."""
    (a, p), (b, q) = ((real(x), imag(x)) if is_complex(x) else (x, value(0.0))
                      for x in (a, b))
    strictly = RECORDS[compare.name.removesuffix("_equal")]
    # and no part is NaN
    apart = [strictly(a, b), *(equal(x, x) for x in (p, q) if x.constant is MISSING)]
    alike = bitwise_and(equal(a, b), compare(p, q))
    return bitwise_or(functools.reduce(bitwise_and, apart), alike)
