"""What elementwise ops are in StableHLO: rules that several share (Note [StableHLO], record.py)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ir.graph import Op
from ...ir.types import Scalar
from .stablehlo_text import NotKnownError, Tensor, Text, part_dtype

SAMPLES = {"bool": True, "int64": 1, "float64": 1.0, "complex128": 1j}  # of Python's numbers


def named(name: str) -> Callable:
    """The rule of the op of this name, of operands in the dtype of the result."""
    return lambda text, op, *xs: text.op(name, *text.together(*xs, dtype=result_dtype(op)))


def rounding(name: str) -> Callable:
    """The rule of the op of this name, which leaves integers as they are."""
    return lambda text, op, x: x if is_integral(x.dtype) else text.op(name, x)


def comparison(how: str) -> Callable:
    """The rule of a comparison: LT, LE, GT, GE, EQ or NE.  Complex numbers have no order here."""

    def rule(text: Text, op: Op, a, b):
        dtype = operand_dtype(op)
        if dtype.startswith("complex") and how not in ("EQ", "NE"):
            return NotImplemented
        return text.compare(how, *text.together(a, b, dtype=dtype))

    return rule


def logical(name: str) -> Callable:
    """The rule of an op of truth values."""
    return lambda text, op, *xs: text.op(name, *text.together(*xs, dtype="bool"))


def in_ops(rule: Callable) -> Callable:
    """The rule of an op that is composed of others: `rule(*values)` emits them."""
    return lambda text, op, *xs: text.inlined(rule, op.inputs, xs)


def as_it_is(text: Text, op: Op, x, *others):
    """The rule of an op that is its first operand, converted to the dtype of the result."""
    return text.tensor(x, result_dtype(op))


def choice(text: Text, op: Op, condition, a, b) -> Tensor:
    """The rule of np.where."""
    dtype = result_dtype(op)
    condition, a, b = text.together(condition, a, b)
    return text.select(text.converted(condition, "bool"), text.converted(a, dtype),
                       text.converted(b, dtype))


def chosen_operand(how: str) -> Callable:
    """The rule of Python's max(a, b), which is b if a < b, and min(a, b), b if b < a."""

    def rule(text: Text, op: Op, a, b) -> Tensor:
        a, b = text.together(a, b, dtype=result_dtype(op))
        return text.select(text.compare(how, a, b), b, a)

    return rule


def skipping_nan(name: str) -> Callable:
    """The rule of np.fmax and np.fmin: the other operand, where one is NaN."""

    def rule(text: Text, op: Op, a, b) -> Tensor:
        a, b = text.together(a, b, dtype=result_dtype(op))
        found = text.select(text.compare("NE", b, b), a, text.op(name, a, b))
        return text.select(text.compare("NE", a, a), b, found)

    return rule


def clipped(text: Text, op: Op, x, low, high) -> Tensor:
    """The rule of np.clip."""
    x, low, high = text.together(x, low, high, dtype=result_dtype(op))
    return text.op("minimum", text.op("maximum", x, low), high)


def magnitude(text: Text, op: Op, x: Tensor) -> Tensor:
    """The rule of abs."""
    if np.dtype(x.dtype).kind in "bu":
        return x
    return text.op("abs", x, dtype=part_dtype(x.dtype))


def power(text: Text, op: Op, x, exponent) -> Tensor:
    """The rule of x ** y: as NumPy, a product for y = 2 and a root for y = 0.5."""
    dtype = result_dtype(op)
    if not isinstance(exponent, Tensor) and np.ndim(exponent) == 0 and not is_integral(dtype):
        if exponent == 2:
            return text.op("multiply", *text.together(x, x, dtype=dtype))
        if exponent == 0.5:
            return text.op("sqrt", text.tensor(x, dtype))
    return text.op("power", *text.together(x, exponent, dtype=dtype))


def remainder(text: Text, op: Op, a, b) -> Tensor:
    """The rule of a % b, which has the sign of b; of integers 0 where b is."""
    return quotient_and_remainder(text, *text.together(a, b, dtype=result_dtype(op)))[1]


def floor_quotient(text: Text, op: Op, a, b) -> Tensor:
    """The rule of a // b; of integers 0 where b is."""
    return quotient_and_remainder(text, *text.together(a, b, dtype=result_dtype(op)))[0]


def quotient_and_remainder(text: Text, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a // b and a % b, as NumPy computes them: npy_divmod of floats."""
    def like(x) -> Tensor:
        return text.tensor(x, a.dtype, a.shape)

    zero, one, integral = like(0), like(1), is_integral(a.dtype)
    by_zero, divisor = text.compare("EQ", b, zero), b
    if integral:  # StableHLO says nothing of division by 0
        divisor = text.select(by_zero, one, b)
    rest = text.op("remainder", a, divisor)
    quotient = text.op("divide", a if integral else text.op("subtract", a, rest), divisor)
    if np.dtype(a.dtype).kind != "u":
        unlike = text.op("xor", text.compare("LT", rest, zero), text.compare("LT", b, zero))
        turns = text.op("and", text.compare("NE", rest, zero), unlike)
        rest = text.select(turns, text.op("add", rest, b), rest)
        quotient = text.select(turns, text.op("subtract", quotient, one), quotient)
    if integral:
        return (text.select(by_zero, zero, quotient), text.select(by_zero, zero, rest))
    low = text.op("floor", quotient)
    is_off = text.compare("GT", text.op("subtract", quotient, low), like(0.5))
    low = text.select(is_off, text.op("add", low, one), low)
    return text.select(by_zero, text.op("divide", a, b), low), rest


def rest(text: Text, op: Op, a, b) -> Tensor:
    """The rule of np.fmod, which has the sign of a; of integers 0 where b is."""
    a, b = text.together(a, b, dtype=result_dtype(op))
    if not is_integral(a.dtype):
        return text.op("remainder", a, b)
    zero, one = text.tensor(0, a.dtype, a.shape), text.tensor(1, a.dtype, a.shape)
    by_zero = text.compare("EQ", b, zero)
    found = text.op("remainder", a, text.select(by_zero, one, b))
    return text.select(by_zero, zero, found)


def sign(text: Text, op: Op, x: Tensor) -> Tensor:
    """The rule of np.sign."""
    if np.dtype(x.dtype).kind == "u":
        return text.converted(text.converted(x, "bool"), x.dtype)
    return text.op("sign", x)


def truncated(text: Text, op: Op, x: Tensor) -> Tensor:
    """The rule of np.trunc."""
    if is_integral(x.dtype):
        return x
    below = text.compare("LT", x, text.tensor(0, x.dtype, x.shape))
    return text.select(below, text.op("ceil", x), text.op("floor", x))


def is_nan(text: Text, op: Op, x: Tensor) -> Tensor:
    """The rule of np.isnan."""
    return text.compare("NE", x, x)


def is_infinite(text: Text, op: Op, x: Tensor) -> Tensor:
    """The rule of np.isinf, of real numbers."""
    if x.dtype.startswith("complex"):
        return NotImplemented
    if is_integral(x.dtype):
        return text.tensor(False, "bool", x.shape)
    return text.compare("EQ", text.op("abs", x), text.tensor(np.inf, x.dtype, x.shape))


def is_finite(text: Text, op: Op, x: Tensor) -> Tensor:
    """The rule of np.isfinite, of real numbers."""
    if x.dtype.startswith("complex"):
        return NotImplemented
    return (text.tensor(True, "bool", x.shape) if is_integral(x.dtype)
            else text.op("is_finite", x, dtype="bool"))


def real_part(text: Text, op: Op, x: Tensor) -> Tensor:
    """The rule of np.real."""
    return (text.op("real", x, dtype=part_dtype(x.dtype)) if x.dtype.startswith("complex")
            else x)


def imaginary_part(text: Text, op: Op, x: Tensor) -> Tensor:
    """The rule of np.imag."""
    return (text.op("imag", x, dtype=part_dtype(x.dtype)) if x.dtype.startswith("complex")
            else text.tensor(0, x.dtype, x.shape))


def conjugated(text: Text, op: Op, x: Tensor) -> Tensor:
    """The rule of np.conj."""
    if not x.dtype.startswith("complex"):
        return x
    part = part_dtype(x.dtype)
    turned = text.op("negate", text.op("imag", x, dtype=part))
    return text.op("complex", text.op("real", x, dtype=part), turned, dtype=x.dtype)


def product_or_zero(text: Text, op: Op, a, b) -> Tensor:
    """The rule of a strong product: 0 where a is, whatever b is."""
    a, b = text.together(a, b, dtype=result_dtype(op))
    zero = text.tensor(0, a.dtype, a.shape)
    return text.select(text.compare("NE", a, zero), text.op("multiply", a, b), zero)


def is_integral(dtype: str) -> bool:
    """Whether numbers of this dtype are integers or truth values."""
    return np.dtype(dtype).kind in "biu"


def result_dtype(op: Op) -> str:
    """The dtype of the only result of an op."""
    dtype = getattr(op.output.type, "dtype", None)
    if dtype is None:
        raise NotKnownError(f"a result of {op.name} whose dtype is not known", op.line)
    return dtype


def operand_dtype(op: Op) -> str:
    """The dtype that NumPy converts all operands of an op to."""
    if any(getattr(x.type, "dtype", None) is None for x in op.inputs):
        raise NotKnownError(f"an operand of {op.name} whose dtype is not known", op.line)
    return np.result_type(*(SAMPLES[x.type.dtype] if isinstance(x.type, Scalar) and x.type.weak
                            else np.dtype(x.type.dtype) for x in op.inputs)).name
