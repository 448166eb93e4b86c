"""Ops that exist only in the loop form: allocation, conversion, selection, and hoisted checks.

The loop form is ordinary IR, so these are ordinary records; they carry no derivative, because the
loop form is never differentiated.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...ir.graph import MISSING, Value
from ...ir.types import BOOL, INT, NONE, Array, Scalar
from ...ops.core import elementwise as ew
from ...ops.core.cast import convert, int_
from ...ops.core.raise_conditions import has_overflown_natively, op_of, overflows_record
from ...ops.core.record import RECORDS, define, emit, promote, value
from ...ops.core.signs import is_surely_not_negative

PLAIN = ("bool", "int64", "float64", "complex128")  # the dtypes that Numba computes with by itself


def _np(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load())


def dtype_syntax(dtype: str) -> ast.expr:
    """The spelling of a dtype, np.float32 but np.bool_, that Numba and every NumPy understand."""
    return _np("bool_" if dtype == "bool" else dtype)


# --------------------------------------------------------------------------------------- allocation


def _buffer_syntax(*lengths: ast.expr, dtype: str, dims: tuple, zero: bool) -> ast.expr:
    shape = lengths[0] if len(lengths) == 1 else ast.Tuple(list(lengths), ast.Load())
    kind = [] if dtype == "float64" else [ast.keyword("dtype", dtype_syntax(dtype))]
    return ast.Call(_np("zeros" if zero else "empty"), [shape], kind)


buffer = define(
    "buffer",  # contiguous, with these lengths; zeros or uninitialised
    evaluate=lambda *lengths, dtype, dims, zero: np.zeros(lengths, dtype),
    infer=lambda *lengths, dtype, dims, zero: Array(dtype, dims),
    syntax=_buffer_syntax,
    native="compiled", allocates=0,
)


def lies_in_order(x: Value) -> bool:
    """Whether `x` is contiguous in C order: a buffer or the result of a matrix product."""
    while (op := x.op) is not None:
        if op.record in (buffer, contiguous) or op.name == "matmul":
            return True
        if op.name == "for":
            x = op.inputs[3 + op.outputs.index(x)]
        elif op.record.writes_elements:
            x = op.inputs[0]
        else:
            break
    return False


contiguous = define(
    "contiguous",
    fold=lambda x: x if lies_in_order(x) else None,
    evaluate=lambda x: np.ascontiguousarray(x),
    infer=lambda x: x.type,
    syntax=lambda x: ast.Call(_np("ascontiguousarray"), [x], []),
    views=(0,),
    native="compiled",
    same_shape=0,
)

# ------------------------------------------------------------------------------- scalars of a dtype


def as_dtype(x: Value, dtype: str) -> Value:
    """Convert the number `x` to `dtype`, unless that makes no difference."""
    return x if x.type.dtype == dtype else convert(x, dtype=dtype)


narrow = define(
    # Converts a number that Numba computes in a wider dtype than NumPy does; its type is the narrow
    # one already.
    "narrow",
    evaluate=lambda x, *, dtype: np.dtype(dtype).type(x),
    infer=lambda x, *, dtype: x.type,
    converts=True,
    syntax=lambda x, *, dtype: ast.Call(dtype_syntax(dtype), [x], []),
)


def compute(op_record, *xs: Value, of: Sequence[Value] = (), **attrs) -> Value:
    """Emit one elementwise op on numbers, with NumPy's dtypes where Numba's differ.

    `of` are the original operands: elements of arrays are no Python numbers, even where they are
    computed from the index.

    Numba computes float32 * float64 in float64 even where the latter is a literal, int8 + int8 in
    int64, and math.sin and float() of a float32 in float32; NumPy and Python do not (NEP 50).
    """
    stated = op_record
    if op_record is overflows_record:  # which native code detects in the result
        result = compute(RECORDS[op_of(attrs["function"])], *xs)
        return value(has_overflown_natively(attrs["function"], result, *xs))
    if op_record.name == "math.fmod":  # unknown to Numba
        op_record = RECORDS["fmod"]
    if op_record.name == "single_quotient":  # Numba does not know its dtype=
        return RECORDS["quotient"](*(as_dtype(x, "float32") for x in xs))
    of = of or xs
    if (op_record.name == "power" and isinstance(of[-1].type, Array)
            and all(np.dtype(x.type.dtype).kind in "biu" for x in xs)):
        xs = xs[0], as_dtype(ew.natural_exponent_op(xs[1]), xs[1].type.dtype)
    if any(x.type.dtype == "bool" for x in xs):
        op_record, changed = _of_truths(op_record, xs, of)
        xs, of = changed, [x if x is y else z for x, y, z in zip(changed, xs, of)]
    types = [Scalar(x.type.dtype) if isinstance(y.type, Array) else x.type for x, y in zip(xs, of)]
    if all(t.dtype in PLAIN for t in types):
        return emit(op_record, *xs, **attrs)
    common, result = promote(*types)[0], stated.infer(*xs, **attrs).dtype
    kind = np.dtype(common).kind
    if kind in "iu":
        if result == "bool" or common in PLAIN:
            return emit(op_record, *xs, **attrs)
        xs = [x if x.type.dtype in (common, "bool") else as_dtype(in_range(x, common), common)
              for x in xs]
        y = emit(op_record, *xs, **attrs)
        return (narrow(y, dtype=y.type.dtype) if y.type.dtype == common
                and not op_record.keeps_dtype else y)
    wanted = result if result in ("float64", "complex128") and kind == "f" else common
    for k, x in enumerate(xs):
        if x.type.dtype not in (wanted, "bool") and (common not in PLAIN
                                                     or x.type.dtype not in PLAIN):
            xs = [*xs[:k], as_dtype(x, wanted), *xs[k + 1:]]
    y = emit(op_record, *xs, **attrs)
    return (convert(y, dtype=y.type.dtype) if y.type.dtype not in PLAIN and common != y.type.dtype
            else y)


def _of_truths(op_record, xs: tuple[Value, ...], of: Sequence[Value]):
    """Emit arithmetic on booleans, whose sum is an int in Python and a boolean in NumPy."""
    if op_record.of_truths is not None and all(
            x.type.dtype == "bool" and (isinstance(y.type, Array) or not x.type.weak)
            for x, y in zip(xs, of)):
        return op_record.of_truths, xs
    # an element that is printed as a Python number
    if op_record is ew.invert and isinstance(of[0].type, Array) and xs[0].type == BOOL:
        return ew.logical_not, xs
    if op_record in OF_INTEGERS and all(x.type in (BOOL, INT) for x in xs):
        return op_record, [int_(x) for x in xs]
    return op_record, xs


# ops of which Numba makes no integers where the operands are Python's booleans
OF_INTEGERS = (ew.invert, ew.negative, ew.positive, ew.floor_divide, ew.remainder, ew.power,
               ew.left_shift, ew.right_shift, ew.abs_)


# ----------------------------------------------------------------------------------- hoisted checks


def same_length(n, m):
    if n != m:
        raise ValueError("operands could not be broadcast together: their lengths differ")
    return n


def needs_length(n, m):
    if n != m:
        raise ValueError("operands could not be broadcast together: their lengths differ")


def broadcast_length(n, m):
    if n != m and n != 1 and m != 1:
        raise ValueError("operands could not be broadcast together: their lengths differ")
    return m if n == 1 else n


def spread_length(n, m):
    if m != n and m != 1:
        raise ValueError("could not broadcast input array: its length differs")
    return n


def stays_inside(n, end, length):
    if end > length and n > 0:
        raise IndexError("a loop would leave an array: its lengths differ from those of others")
    return n


def nonempty_length(n):
    if n == 0:
        raise ValueError("zero-size array to reduction operation which has no identity")
    return n


def supposed_length(n):
    if n == 1:
        raise ValueError("a slice has length 1, and may be broadcast: what was supposed does not hold")
    return n


def supposed_alike(n, m):
    if n != m:
        raise ValueError("two arrays differ in length: what was supposed does not hold")


def in_bounds(k, low, high):
    if not low <= k <= high:
        raise OverflowError("a Python integer is out of bounds for the NumPy integers that it is to be one of")
    return k


def slice_bound(k, n):
    if k < 0:
        return max(k + n, 0)
    return min(k, n)


def masked_step(count, n):
    if n == 1:
        return 0
    if n != count:
        raise ValueError("cannot assign: not as many values as the mask is true")
    return 1


def count_of(n):
    if n < 0:
        raise ValueError("counts cannot be negative")
    return n


def place_in(k, n):
    if not -n <= k < n:
        raise IndexError("index out of bounds")
    return k + n if k < 0 else k


def of_numbers(function, fold, **facts):
    """Define an op on integers that calls `function`, whose source is printed along."""
    name = function.__name__
    return define(
        name, evaluate=function, infer=lambda *ns: INT, fold=fold, helper=function,
        syntax=lambda *ns: ast.Call(ast.Name(name, ast.Load()), list(ns), []),
        **facts,
    )


def checked_place(k: Value, n: Value) -> Value:
    """The position of the index `k` on an axis of length n.

    An unsigned index too large for int64 names none.
    """
    return place_in_op(k if k.type.dtype == "uint64" else as_dtype(k, "int64"), n)


def _fold_same(n: Value, m: Value):
    return n if n is m or (n.constant is not MISSING and n.constant == m.constant) else None


def _fold_place(k: Value, n: Value):
    return k if k.op is not None and k.op.record is place_in_op and k.op.inputs[1] is n else None


def _fold_spread(n: Value, m: Value):
    return n if m.constant == 1 else _fold_same(n, m)


def _fold_broadcast(n: Value, m: Value):
    return m if n.constant == 1 else n if m.constant == 1 else _fold_same(n, m)


def _fold_nonempty(n: Value):
    asked = n.op is not None and n.op.record is nonempty_length_op
    return n if asked or (n.constant is not MISSING and n.constant > 0) else None


same_length_op = of_numbers(same_length, _fold_same, checks=True, returns=0)
broadcast_length_op = of_numbers(broadcast_length, _fold_broadcast, checks=True, natural=True)
spread_length_op = of_numbers(spread_length, _fold_spread, checks=True, returns=0)
stays_inside_op = of_numbers(stays_inside, lambda n, end, length: None, checks=True, returns=0)
nonempty_length_op = of_numbers(nonempty_length, _fold_nonempty, checks=True, returns=0)
supposed_length_op = of_numbers(supposed_length, lambda n: n if n.constant is not MISSING
                                and n.constant != 1 else None, checks=True, returns=0)

needs_length_op = define(
    "needs_length",  # of an axis, checked where its type already implies it
    evaluate=lambda x, *, axis, needed: needs_length(x.shape[axis], needed),
    infer=lambda x, *, axis, needed: NONE,
    helper=needs_length,
    pure=False, checks=True,
    syntax=lambda x, *, axis, needed: ast.Call(
        ast.Name("needs_length", ast.Load()),
        [ast.Subscript(ast.Attribute(x, "shape", ast.Load()), ast.Constant(axis), ast.Load()),
         ast.Constant(needed)], []),
)
supposed_alike_op = define(
    "supposed_alike",  # for an axis of x and one of y whose types imply that they are equal
    evaluate=lambda x, y, *, axes: supposed_alike(x.shape[axes[0]], y.shape[axes[1]]),
    infer=lambda x, y, *, axes: NONE,
    helper=supposed_alike,
    pure=False, checks=True,
    syntax=lambda x, y, *, axes: ast.Call(
        ast.Name("supposed_alike", ast.Load()),
        [ast.Subscript(ast.Attribute(a, "shape", ast.Load()), ast.Constant(k), ast.Load())
         for a, k in zip((x, y), axes)], []),
)
masked_step_op = of_numbers(masked_step, lambda count, n: None, checks=True)
# of a single place, where the step is not used, and the question is left
asked_step = replace(masked_step_op, pure=False, only_raises=True)
count_of_op = of_numbers(count_of, lambda n: n if is_surely_not_negative(n) else None, checks=True,
                         least=0)
place_in_op = of_numbers(place_in, _fold_place, checks=True, natural=True)
slice_bound_op = of_numbers(slice_bound, lambda k, n: k if k.constant == 0 else None, natural=True)


in_bounds_op = of_numbers(in_bounds, lambda k, low, high: k if type(k.constant) is int
                          and low.constant <= k.constant <= high.constant else None, checks=True)


def in_range(x: Value, dtype: str) -> Value:
    """`x`, if it is a Python integer, checked to be representable in this dtype."""
    if x.type != INT or np.dtype(dtype).kind not in "iu":
        return x
    return in_bounds_op(x, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def new_buffer(dtype: str, dims: tuple, lengths, zero: bool = False) -> Value:
    """Allocate an array of these lengths."""
    return emit(buffer, *lengths, dtype=dtype, dims=dims, zero=zero)


