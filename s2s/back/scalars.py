"""Where Python's own numbers raise, compiled code raises, too.

Native division of numbers gives inf where Python raises ZeroDivisionError; native sqrt gives NaN where math.sqrt
raises ValueError.  So before an op that Python might refuse, compiled code asks:

    if n == 0:
        raise ZeroDivisionError
    mean = total / n

NumPy's numbers do not raise, and are not asked.  What exactly Python does, the interpreted form says when it
runs again (runtime/compile.py, Note [Where an error came from]): `(-8.0) ** (1 / 3)` is a complex number.
What overflows becomes inf, and integers wrap around at 64 bits, as in NumPy; math.exp and its like raise.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.builder import emit
from ..ir.graph import MISSING, OPERATORS, Op, Value
from ..ir.types import Scalar
from ..ops.acts import Made, raise_record
from ..ops.control import if_
from ..ops.fold import base_offset
from ..ops.record import RECORDS, value

LARGEST_EXPONENT = 709.782712893384  # of exp
LARGEST_OF_COSH = 710.4758600739439


def _is_zero(*xs: Value) -> Value | None:
    """Whether the last operand is 0; None where it cannot be."""
    divisor = xs[-1]
    if divisor.constant is not MISSING and divisor.constant != 0:
        return None
    return OPERATORS["equal"](divisor, value(0))


def _has_no_power(a: Value, b: Value) -> Value | None:
    """Whether a ** b divides by zero or is complex."""
    if a.type.dtype.startswith("complex") or b.type.dtype.startswith("complex"):
        return _has_no_complex_power(a, b)
    if _at_least(a, 0, strictly=True):
        return None
    if b.type.dtype in ("int64", "bool"):
        if _at_least(b, 0):
            return None
        if a.type.dtype == "float64":
            return _both(_equal(a, 0), b < 0)
        return _abs(RECORDS["float_"](RECORDS["int_"](a)) ** b) >= 2.0**63
    if b.constant is not MISSING:
        if b.constant == int(b.constant):
            return None if b.constant >= 0 else _equal(a, 0)
        return a < 0 if b.constant > 0 else a <= 0
    fractional = OPERATORS["not_equal"](RECORDS["floor"](b), b)
    return _either(_both(_equal(a, 0), b < 0), _both(a < 0, fractional))


def _has_no_complex_power(a: Value, b: Value) -> Value | None:
    """Whether a ** b divides by zero: 0 ** -1 does, and 0 ** 1j."""
    if b.type.dtype.startswith("complex"):
        return _both(_equal(a, 0), _either(RECORDS["real"](b) < 0, OPERATORS["not_equal"](RECORDS["imag"](b), value(0))))
    return None if _at_least(b, 0) else _both(_equal(a, 0), b < 0)


def _equal(a: Value, b) -> Value:
    return OPERATORS["equal"](a, value(b))


def _both(a: Value, b: Value) -> Value:
    return if_(a, lambda: [b], lambda: [value(False)])[0]


def _either(a: Value, b: Value) -> Value:
    return if_(a, lambda: [value(True)], lambda: [b])[0]


def _at_least(x: Value, bound, strictly: bool = False) -> bool:
    c = x.constant
    return isinstance(c, (int, float)) and (c > bound if strictly else c >= bound)


def _is_not_finite(x: Value) -> Value | None:
    return None if x.type.dtype in ("int64", "bool") else RECORDS["not_"](RECORDS["math.isfinite"](x))


def _is_pole(x: Value) -> Value:
    """Whether x is an integer that is not positive."""
    return _both(x <= 0, OPERATORS["equal"](RECORDS["math.floor"](x), x))


def _is_beyond(bound: float) -> Callable:
    return lambda x: _both(x > bound, RECORDS["not_"](RECORDS["math.isinf"](x)))


def _abs(x: Value) -> Value:
    return RECORDS["abs_"](x)


RAISES: dict[str, tuple[type, Callable]] = {  # op -> what Python raises of its own numbers, and where
    "divide": (ZeroDivisionError, _is_zero),
    "floor_divide": (ZeroDivisionError, _is_zero),
    "remainder": (ZeroDivisionError, _is_zero),
    "power": (ArithmeticError, _has_no_power),
    "left_shift": (ValueError, lambda a, b: None if b.constant in range(32) else _either(b < 0, b > 62)),
    "right_shift": (ValueError, lambda a, b: None if _at_least(b, 0) else b < 0),
}
ALWAYS: dict[str, tuple[type, Callable]] = {  # the same for functions that make any number Python's own
    "int_": (ValueError, _is_not_finite),
    "round_to_int": (ValueError, _is_not_finite),
    "math.floor": (ValueError, _is_not_finite),
    "math.ceil": (ValueError, _is_not_finite),
    "math.trunc": (ValueError, _is_not_finite),
    "math.sqrt": (ValueError, lambda x: x < 0),
    "math.log": (ValueError, lambda x: x <= 0),
    "math.log2": (ValueError, lambda x: x <= 0),
    "math.log10": (ValueError, lambda x: x <= 0),
    "math.log1p": (ValueError, lambda x: x <= -1),
    "math.asin": (ValueError, lambda x: _abs(x) > 1),
    "math.acos": (ValueError, lambda x: _abs(x) > 1),
    "math.acosh": (ValueError, lambda x: x < 1),
    "math.atanh": (ValueError, lambda x: _abs(x) >= 1),
    "math.sin": (ValueError, lambda x: RECORDS["math.isinf"](x)),
    "math.cos": (ValueError, lambda x: RECORDS["math.isinf"](x)),
    "math.tan": (ValueError, lambda x: RECORDS["math.isinf"](x)),
    "math.pow": (ValueError, _has_no_power),
    "cmath.log": (ValueError, _is_zero),
    "cmath.log10": (ValueError, _is_zero),
    "math.fmod": (ValueError, _is_zero),
    "math.gamma": (ValueError, _is_pole),
    "math.lgamma": (ValueError, _is_pole),
    "math.exp": (OverflowError, _is_beyond(LARGEST_EXPONENT)),
    "math.expm1": (OverflowError, _is_beyond(LARGEST_EXPONENT)),
    "math.cosh": (OverflowError, lambda x: _is_beyond(LARGEST_OF_COSH)(_abs(x))),
    "math.sinh": (OverflowError, lambda x: _is_beyond(LARGEST_OF_COSH)(_abs(x))),
}


def ask_first(op: Op, inputs: list[Value], asked: set[tuple]) -> None:
    """Emit what raises where Python would refuse `op` on these operands, unless that has been `asked` already."""
    found = ALWAYS.get(op.name)
    if found is None and all(isinstance(x.type, Scalar) and x.type.weak for x in op.inputs):
        found = RAISES.get(op.name)
    if found is None:
        return
    kind, refuses = found
    key = (refuses, *(inputs[-1:] if refuses is _is_zero else inputs))
    if key in asked:
        return
    asked.add(key)
    if op.line is not None and op.line.again:  # the forward sweep has asked
        return
    condition = refuses(*inputs)
    if condition is not None:
        if_(condition, lambda: _refuse(kind), lambda: ())


def answered_by_trips(lo: Value, hi: Value, step: Value) -> list[tuple]:
    """What need not be asked where `range(lo, hi, step)` makes a trip: whether the length is 0 that all its numbers are below."""
    first, last = (lo, hi) if step.constant == 1 else (hi, lo)
    before = 0 if step.constant == 1 else -1  # the first number of the range that ends with `last`, or the one before it
    (n, offset), is_natural = base_offset(last), type(first.constant) is int and first.constant >= before
    return [(_is_zero, n)] if step.constant in (1, -1) and is_natural and n is not None and offset <= before else []


def _refuse(kind: type) -> tuple:
    emit(raise_record, thrown=Made(kind, bare=True), cause=None, again=True)
    return ()
