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
from collections.abc import Sequence

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
from ...ops.core.raise_conditions import Raises, unlike
from ...ops.core.record import RECORDS, Record, rank, value
from ...ops.core.shape import length
from ...ops.linalg.determinant import IN_LOOPS
from ...ops.math.python_sum import plain_sum
from ...ops.math.special import SCIPYS_ALONE
from ...ops.program.list_ops import native_exact_sum, native_list_order, native_sum_overflows
from ..loopir.ops import natural_exponent_op
from .batched_linalg import OF_STACKS, expand_batch, matrices
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
    if wide:  # Python converts it to a float where it meets one
        if not op.record.elementwise or not is_inexact(op.output.type.dtype):
            raise too_wide(wide[0], op.line)
        return [op.record(*(value(float(x.constant)) if x in wide else x for x in inputs),
                          **op.attrs)]
    if op.name in SCIPYS_ALONE and not has_blas:
        raise UnsupportedError(f"scipy.special.{op.name} on a GPU", op.line,
                               'leave target="cuda" away, or call it outside of what is compiled')
    if op.name in OF_STACKS and has_blas and rank(matrices(op, inputs)) > 2:
        def of_one(record, xs):
            return legalise_op(record, xs, has_blas)

        replacement = expand_batch(op, inputs, of_one)
        if replacement is not None:
            stack = matrices(op, inputs)
            # which is not tested if there are no matrices
            if stack.type.dims[-1] != stack.type.dims[-2]:
                raise_where(NOT_SQUARE, unlike(length(stack, axis=-2), length(stack, axis=-1)))
            return [replacement]
    match op.name:
        case "outer":
            a, b = inputs
            return [expand_dims(a, 1) * b]
        case ("root" | "root_forward" | "over_size" | "over_size_forward" | "times_sign"
              | "times_sign_forward" | "as_if" | "complex_as_if" | "no_negative"
              | "matrix_function" | "matrix_function_along"):
            return [plainly(op, inputs)]
        case "finite":
            (x,), (raising,) = inputs, op.record.raises
            if has_blas:
                raise_where(raising, raising.asked(inputs, {}))
            return [x]
        case "float_" if inputs[0].type.dtype == "bool":
            return [convert(inputs[0], dtype="float64")]
        case "math.fmod" if all(x.type.dtype in ("int64", "bool") for x in inputs):
            return [op.record(*map(float_, inputs))]
        case "hypotenuse":
            return [functools.reduce(IN_MATH[hypot], inputs) if len(inputs) > 1
                    else float_(absolute(inputs[0]))]
        case "math.cbrt":
            return [float_(cbrt(*inputs))]
        case "round" if inputs[1].constant == 0 and np.dtype(op.output.type.dtype).kind == "f":
            return [rint(inputs[0])]
        case "compensated_sum":
            return [float_(plain_sum(*inputs))]
        case "cofactors_of_each" | "cofactors_along_each" | "inverse_or_nan_of_each":
            return [IN_LOOPS[op.name](*inputs)]
        case "exact_sum":
            return [native_exact_sum(*inputs)]
        case "sum_overflows":
            return [native_sum_overflows(*inputs)]
        case "list_order":
            return [native_list_order(*inputs, **op.attrs)]
        # Numba's sign of an uint8 of 200 is -1
        case "sign" if np.dtype(op.output.type.dtype).kind == "u":
            return [of_dtype(op.output.type.dtype, not_equal(inputs[0], 0))]
        case "fmod" if np.dtype(op.output.type.dtype).kind == "i":
            a, b = inputs
            return [sign(a) * (absolute(a) % absolute(b))]
        case "power" if (np.dtype(op.output.type.dtype).kind in "iu"
                         and isinstance(inputs[1].type, Scalar)):
            exponent = int_(inputs[1]) if inputs[1].type.dtype == "bool" else inputs[1]
            return [power(inputs[0], natural_exponent_op(exponent))]
        case "add" | "multiply" if op.output.type.dtype == "bool":
            return [(bitwise_or if op.name == "add" else bitwise_and)(*inputs)]
        case "floor_divide" if (op.output.type.dtype == "int64"
                                and inputs[1].constant in (MISSING, -1)
                                and not (isinstance(op.output.type, Scalar)
                                         and op.output.type.weak)):
            a, b = inputs
            return [-a if b.constant == -1 else where(equal(b, -1), -a, op.record(a, b))]
        case "left_shift" | "right_shift" if (isinstance(op.output.type, Array)
                                              and inputs[1].type.dtype != "bool"):
            return _shifted(op, *inputs)
        case "power" if (isinstance(inputs[0].type, Array)
                         and np.dtype(inputs[0].type.dtype).kind in "fc"):
            x, exponent = inputs
            if type(exponent.constant) is float and exponent.constant == 0.5:
                return [sqrt(x)]
            if (type(exponent.constant) is int and exponent.constant == -1
                    and x.type.dtype.startswith("complex")):
                return [reciprocal(x)]
        case "matmul":
            replacement = expand_matmul(*inputs, op.output.type.dtype, has_blas)
            return None if replacement is None else [replacement]
        case "convolve" | "correlate" if op.output.type.dtype in BLAS:
            return [(expand_convolve if op.name == "convolve"
                     else expand_correlate)(*inputs, op.output.type.dtype)]
        case "einsum":
            replacement = expand_einsum(op, inputs, {})
            return None if replacement is None else [replacement]
        case ("inv" | "inverse_or_nan" | "solve" | "det" | "sign_of_det" | "log_of_det"
              | "cofactors" | "cholesky"):
            return expand_small_linalg(op, inputs)
        case "searchsorted" | "digitize" if has_blas:
            replacement = (expand_search(op, *inputs) if op.name == "searchsorted"
                           else expand_digitize(*inputs, **op.attrs))
            return None if replacement is None else [replacement]
        case "fitted":
            return [as_writes(*inputs, op.attrs["axis"])]
        case "fftfreq" | "rfftfreq":
            return [multiples(op.name, *inputs)]
        case "append":
            return [concatenate_record(inputs[0], array((inputs[1],)), axis=0)]
        case "less" | "less_equal" | "greater" | "greater_equal" if any(
                x.type.dtype.startswith("complex") for x in inputs):
            return [complex_order(op.record, *inputs)]
        case "astype" if (inputs[0].type.dtype.startswith("complex")
                          and np.dtype(op.attrs["dtype"]).kind in "iuf"):
            return [of_dtype(op.attrs["dtype"], real(inputs[0]))]
        case "repeat" | "tile" if isinstance(inputs[0].type, Scalar):
            return [op.record(array((inputs[0],)), *inputs[1:], **op.attrs)]
        case "unrepeat" | "untile" if isinstance(op.output.type, Scalar):
            return [sum_record(inputs[0], axis=None, keepdims=False)]
        case "argmax" | "argmin" if isinstance(inputs[0].type, Scalar):
            return [value(np.int64(0))]
        case "stack" if isinstance(inputs[0].type, Array):
            axis = op.attrs["axis"]
            return [concatenate_record(*(expand_dims(x, axis) for x in inputs), axis=axis)]
    return None


def _shifted(op: Op, a: Value, by: Value) -> Sequence[Value] | None:
    """Shifts by a count out of range, 0 in NumPy: the machine takes the count modulo 64."""
    places = 8 * np.dtype(op.output.type.dtype).itemsize
    if type(by.constant) is int and 0 <= by.constant < places:
        return None
    is_near = bitwise_and(greater_equal(by, 0), less(by, places))
    if op.name == "left_shift":
        return [where(is_near, op.record(a, by), 0)]
    return [op.record(a, where(is_near, by, places - 1))]


def complex_order(compare, a: Value, b: Value) -> Value:
    """`compare` of numbers of which one is complex, in lexicographic order."""
    (a, p), (b, q) = ((real(x), imag(x)) if x.type.dtype.startswith("complex") else (x, value(0.0))
                      for x in (a, b))
    strictly = RECORDS[compare.name.removesuffix("_equal")]
    # and no part is NaN
    apart = [strictly(a, b), *(equal(x, x) for x in (p, q) if x.constant is MISSING)]
    alike = bitwise_and(equal(a, b), compare(p, q))
    return bitwise_or(functools.reduce(bitwise_and, apart), alike)
