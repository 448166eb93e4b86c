"""Algebraic simplification by identities that hold bit for bit, for any operands, including NaN,
infinities and -0.0.

So there is no x + 0.0 -> x (it turns -0.0 into 0.0) and no x * 0 -> 0 here. Each rule takes the
record of the op and its operands, and returns a Value of exactly the type that the op would have,
or None.
"""

from __future__ import annotations

import math

import numpy as np

from ...ir.graph import MISSING, Value
from ...ir.types import BOOL, FLOAT, INT, Array, Scalar, is_inexact
from .record import RECORDS, deriving, dtype_of, runs_backwards, value
from .signs import least, sure_least


def _is(x: Value, number) -> bool:
    c = x.constant
    return (type(c) in (int, float) and c == number
            and math.copysign(1, c) == math.copysign(1, number))


def _same_type(y: Value | None, record, *xs: Value):
    """`y`, if it has exactly the type of the op that it replaces, as far as dtypes are known."""
    return y if y is not None and y.type.dtype is not None and record.infer(*xs) == y.type else None


def _converted(x: Value, wanted: Scalar) -> Value:
    """The number `x` in that dtype, if both are known."""
    if None in (x.type.dtype, wanted.dtype) or x.type.dtype == wanted.dtype:
        return x
    return RECORDS["convert"](x, dtype=wanted.dtype)


def _negated(x: Value) -> Value | None:
    """The operand that x negates.  Not for integers, whose negatives wrap before promotion."""
    if x.op is None or x.op.record.name != "negative":
        return None
    return x.op.inputs[0] if is_inexact(x.type.dtype or "float64") else None


def _is_less_than_zero(x: Value) -> bool:
    """Whether `x` is a negative number in an adjoint, to be subtracted instead of added."""
    return type(x.constant) in (int, float) and x.constant < 0 and runs_backwards()


def _surely_inexact(x: Value, depth: int = 4) -> bool:
    """Whether `x`, of unknown dtype, can only be floating-point: a quotient, a sine, a product with
    one.
    """
    if x.type.dtype is not None:
        return is_inexact(x.type.dtype)
    if x.op is None or not x.op.record.elementwise or not depth:
        return False
    if x.op.name in ("add", "subtract", "multiply", "negative"):
        return any(_surely_inexact(v, depth - 1) for v in x.op.inputs)
    return x.op.name in _FLOATS


_FLOATS = frozenset(
    "divide quotient single_quotient exp expm1 log log2 log10 log1p sqrt sin cos tan "
    "arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh".split())


def _integers(*xs: Value) -> bool:
    return all(isinstance(x.type, Scalar) and not is_inexact(x.type.dtype)
               and x.type.dtype != "bool" for x in xs)


def add(record, a: Value, b: Value):
    """a + (-b) is a - b; (i + 1) + 2 is i + 3; merge two equal masks."""
    if runs_backwards() and _negated(a) is not None and _negated(b) is not None:
        return -(_negated(a) + _negated(b))
    if _negated(b) is not None:
        return a - _negated(b)
    if _negated(a) is not None:
        return b - _negated(a)
    return (_same_type(_affine(a, b, 1), record, a, b) if _integers(a, b)
            else _masked_alike(record, a, b))


def _masked_alike(record, a: Value, b: Value):
    """where(c, p, 0) + where(c, q, 0) is where(c, p + q, 0), and so with minus."""
    if (a.op is None or b.op is None or a.op is b.op
        or not a.op.name == b.op.name in ("where", "select")):
        return None
    (condition, *sides), (other, *sides_of_b) = a.op.inputs, b.op.inputs
    for k in (0, 1):
        if condition is other and _is(sides[k], 0) and _is(sides_of_b[k], 0):
            total = record(sides[1 - k], sides_of_b[1 - k])
            branches = [sides[k], total] if k == 0 else [total, sides[k]]
            return _same_type(RECORDS["where"](condition, *branches), record, a, b)
    return None


def subtract(record, a: Value, b: Value):
    """a - (-b) is a + b, also for a number -b; a - 0 is a; (i + 1) - i is 1."""
    if _negated(b) is not None:
        return a + _negated(b)
    if type(b.constant) is float and b.constant < 0:
        return _same_type(a + -b.constant, record, a, b)
    if _is(b, 0):
        return _same_type(a, record, a, b)
    return (_same_type(_affine(a, b, -1), record, a, b) if _integers(a, b)
            else _masked_alike(record, a, b))


def _affine(a: Value, b: Value, sign: int):
    """Integers: x + 0 is x, (x + 1) - 2 is x - 1, (x + 1) - x is 1."""
    (base, offset), (other, shift) = base_offset(a), base_offset(b)
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
    if offset == 0 and shift > 0:
        return None  # already in its simplest form
    return base + total if total > 0 else base - -total


def base_offset(x: Value) -> tuple[Value | None, int]:
    """x as base + offset; a constant has no base."""
    if type(x.constant) is int:
        return None, x.constant
    op = x.op
    if (op is not None and op.record.name in ("add", "subtract")
        and type(op.inputs[1].constant) is int):
        base, offset = base_offset(op.inputs[0])
        sign = 1 if op.record.name == "add" else -1
        return base, offset + sign * op.inputs[1].constant
    return x, 0


def _number_times(x: Value, times) -> tuple[int | float, Value] | None:
    """Factor out a leading literal number: of 0.5 * a / b, (0.5, a / b)."""
    if x.op is None or len(x.op.inputs) != 2:
        return None
    first, second = x.op.inputs
    if x.op.record is times and type(first.constant) in (int, float):
        return (first.constant, second) if is_inexact(dtype_of(second.type) or "float64") else None
    if x.op.name == "divide" and (found := _number_times(first, times)) is not None:
        number, rest = found
        return number, x.op.record(rest, second)
    return None


def is_normal(product: complex, x: Value) -> bool:
    """Whether the product of two literal factors of `x` neither overflows nor underflows in its
    dtype.

    Otherwise the factors stay separate: the derivative of x * 1e200 * 1e200 * v is 1e100 for v =
    1e-300.
    """
    dtype = dtype_of(x.type) or "float64"
    info = np.finfo(dtype if is_inexact(dtype) else "float64")
    return float(info.tiny) <= abs(product) <= float(info.max)


def multiply(record, a: Value, b: Value):
    """1 * a is a; -1 * a is -a; (-a) * b is -(a * b); 0 * i is 0 and 1.0 * i * x is i * x for an
    integer i; in adjoints 2 * (0.5 * a) is a.
    """
    for x, y in ((a, b), (b, a)):
        if _is(x, 1) or _is(x, -1):
            if (_same_type(y, record, a, b) is None
                and not (y.type.dtype is None and _surely_inexact(y))):
                return None
            return y if x.constant == 1 else -y
        if _is(x, 0) and type(x.constant) is int and _integers(y):
            return _same_type(x, record, a, b)
    if (runs_backwards() and type(a.constant) in (int, float)
        and (found := _number_times(b, record)) is not None
        and is_normal(a.constant * found[0], b)):
        number, rest = found
        return value(a.constant * number) * rest
    if _is_less_than_zero(a) and is_inexact(dtype_of(b.type)):
        return -(value(-a.constant) * b)
    if _negated(a) is not None and _negated(b) is not None:
        return _negated(a) * _negated(b)
    if _negated(a) is not None:
        return -(_negated(a) * b)
    if _negated(b) is not None:
        return -(a * _negated(b))
    if _counted(a) is not None and is_inexact(dtype_of(b.type)):
        return _same_type(_counted(a) * b, record, a, b)
    if _counted(b) is not None and is_inexact(dtype_of(a.type)):
        return _same_type(a * _counted(b), record, a, b)
    return None


def _counted(x: Value) -> Value | None:
    """The integer i, if x is 1.0 * i."""
    if x.op is None or x.op.record.name != "multiply":
        return None
    one, i = x.op.inputs
    return i if type(one.constant) is float and one.constant == 1 and _integers(i) else None


def divide(record, a: Value, b: Value):
    """a / 1 is a; (-a) / b is -(a / b); 1.0 * i / x is i / x for an integer i; in adjoints a * x /
    sqrt(x) is a * sqrt(x).
    """
    if runs_backwards() and (rest := _over_root(a, b)) is not None:
        return _same_type(rest, record, a, b)
    if deriving.quietly and may_raise(a, b):
        return RECORDS["single_quotient"
                       if deriving.single and _beside_single(a) and _beside_single(b)
                       else "quotient"](a, b)
    if _is(b, 1):
        return _same_type(a, record, a, b)
    if _is_less_than_zero(a) and is_inexact(dtype_of(b.type)):
        return -(value(-a.constant) / b)
    if _negated(a) is not None:
        return -(_negated(a) / b)
    if _counted(a) is not None and is_inexact(dtype_of(b.type)):
        return _same_type(_counted(a) / b, record, a, b)
    return None


def _over_root(a: Value, root: Value, depth: int = 4) -> Value | None:
    """Simplify a / root, where root is a square root and `a` a product with its radicand: the
    derivative of x * sqrt(x) has it.

    It is finite where x is 0, and so is the derivative of x * sqrt(x) there.
    """
    if (root.op is None or root.op.name not in ("sqrt", "math.sqrt")
        or not is_inexact(dtype_of(root.op.inputs[0].type) or "int64")):
        return None
    if a is root.op.inputs[0]:
        return root
    if a.op is None or a.op.name != "multiply" or not depth:
        return None
    for k, x in enumerate(a.op.inputs):
        if (rest := _over_root(x, root, depth - 1)) is not None:
            return rest * a.op.inputs[1] if k == 0 else a.op.inputs[0] * rest
    return None


def quotient(record, a: Value, b: Value):
    """Python's division where it cannot raise; (-a) / b is -(a / b); in adjoints a * x / sqrt(x) is
    a * sqrt(x).
    """
    if runs_backwards() and (rest := _over_root(a, b)) is not None:
        return _same_type(rest, record, a, b)
    if not may_raise(a, b):
        return RECORDS["divide"](a, b)
    return -record(_negated(a), b) if _negated(a) is not None else None


def single_quotient(record, a: Value, b: Value):
    """Python's division where it cannot raise or widen; (-a) / b is -(a / b)."""
    if not may_raise(a, b) and _beside_single(a) and _beside_single(b):
        return RECORDS["divide"](a, b)
    return -record(_negated(a), b) if _negated(a) is not None else None


def _beside_single(x: Value) -> bool:
    """Whether `x` never widens a single-precision operand."""
    return isinstance(x.type, Scalar) and x.type.weak or dtype_of(x.type) == "float32"


def may_raise(a: Value, b: Value) -> bool:
    """Whether a / b might be a division of Python numbers by zero.  See Note [Derivatives do not
    raise].
    """
    return not _is_numpys(b) and not _is_numpys(a) and not _is_not_zero(b)


def _is_numpys(x: Value, depth: int = 8) -> bool:
    """Whether `x` is certainly no Python number: for a join of paths, or an argument, the type does
    not tell.
    """
    if not isinstance(x.type, Scalar):
        return True
    if x.type.weak or x.op is None or x.op.blocks or not depth:
        return False
    match x.op.name:
        case "select" | "max_" | "min_":
            return all(_is_numpys(side, depth - 1) for side in x.op.inputs[-2:])
        case ("add" | "subtract" | "multiply" | "divide" | "power" | "remainder" | "negative"
              | "abs_"):
            return any(_is_numpys(operand, depth - 1) for operand in x.op.inputs)
        case "constant" | "getitem":
            return True
    return x.op.record.elementwise or any(isinstance(a.type, Array) for a in x.op.inputs[:1])


def _is_not_zero(x: Value) -> bool:
    """Whether `x` is certainly not 0: a nonzero constant, 1 + x * x, x after a test by the program.
    """
    if type(x.constant) in (int, float, complex):
        return x.constant != 0
    if (found := least(x)) is not None and found.number > 0:
        return True
    match x.op.name if x.op is not None else "":
        case "negative" | "abs_":
            return _is_not_zero(x.op.inputs[0])
        case "select":
            condition, *sides = x.op.inputs
            asked = (condition.op.inputs
                     if condition.op is not None and condition.op.name == "equal" else ())
            return _is_not_zero(sides[0]) and sides[1] in asked and any(_is(v, 0) for v in asked)
    return False


def power(record, a: Value, b: Value):
    """a ** 1 is a; booleans ** 2 are products; an int to a negative power is a float, for Python
    through float(a).
    """
    if a.type == INT and type(b.constant) is int and b.constant < 0:
        return RECORDS["float_"](a) ** b
    if (isinstance(a.type, Array) and a.type.dtype == "bool" and type(b.constant) is int
        and b.constant == 2):
        return RECORDS["square"](a)  # of int8, as NumPy has it, which no other power of them is
    return _same_type(a, record, a, b) if _is(b, 1) else None


def negative(record, a: Value):
    """-(-a) is a, for integers too; in adjoints the sign moves to the nonzero side of a choice."""
    if a.op is not None and a.op.record is record:
        return a.op.inputs[0]
    if a.op is not None and a.op.name in ("where", "select") and runs_backwards() \
            and [_is(side, 0) for side in a.op.inputs[1:]].count(True) == 1:
        condition, *sides = a.op.inputs
        return _same_type(RECORDS["where"](condition, *(x if _is(x, 0) else -x for x in sides)),
                          record, a)
    return None


def decided(record, condition: Value, a: Value, b: Value):
    """What a constant condition chooses."""
    if type(condition.constant) is not bool:
        return None
    chosen = a if condition.constant else b
    # of Python's numbers
    if (type(chosen.constant) in (int, float)
            and RECORDS["select"].infer(condition, a, b) == FLOAT):
        return value(float(chosen.constant))
    return _same_type(chosen, record, condition, a, b)


def where(record, condition: Value, a: Value, b: Value):
    """Fold a choice with a constant condition, or between equals; a choice between numbers is
    Python's own.
    """
    if type(condition.constant) is bool:
        return decided(record, condition, a, b)
    if (a is b
        or type(a.constant) in (int, float) and type(a.constant) is type(b.constant)
        and repr(a.constant) == repr(b.constant)):
        return _same_type(a, record, condition, a, b)
    if all(isinstance(x.type, Scalar) for x in (condition, a, b)):
        return RECORDS["select"](condition, a, b)
    return None


def strong_product(record, a: Value, b: Value):
    """With a nonzero constant it is an ordinary product; with 0 it is 0."""
    if type(a.constant) in (int, float):
        return a * b if a.constant != 0 else _same_type(a, record, a, b)
    return a * b if type(b.constant) in (int, float) and math.isfinite(b.constant) else None


def both(record, a: Value, b: Value):
    """True and x is x."""
    for x, y in ((a, b), (b, a)):
        if x.constant is True:
            return _same_type(y, record, a, b)
    return None


# of `x < number`, where x is at least `low`: what is known then; None: the answer is not known
_COMPARED = {
    "less": lambda low, number: False if low >= number else None,
    "less_equal": lambda low, number: False if low > number else None,
    "greater": lambda low, number: True if low > number else None,
    "greater_equal": lambda low, number: True if low >= number else None,
    "equal": lambda low, number: False if low > number else None,
    "not_equal": lambda low, number: True if low > number else None,
}
_TURNED = {"less": "greater", "greater": "less", "less_equal": "greater_equal",
           "greater_equal": "less_equal"}
_OF_ALL_DTYPES = 2**11  # whole numbers up to this one are the same in each dtype


def comparison(record, a: Value, b: Value):
    """max(n, 0) < 0 is False, and len(x) >= 0 is True: a comparison of a number with a small whole
    one, decided by its lower bound.

    NaN is larger than none, so `sqrt(x) >= 0` stays.
    """
    name = record.name
    if type(a.constant) in (int, float):
        name, a, b = _TURNED.get(name, name), b, a
    number = b.constant
    if (type(number) not in (int, float) or number % 1 or abs(number) > _OF_ALL_DTYPES
        or not isinstance(a.type, Scalar) or a.constant is not MISSING
        or (low := sure_least(a)) is None):
        return None
    known = _COMPARED[name](low, number)
    if known is None or known and name in ("greater", "greater_equal") and not _integers(a):
        return None
    is_pythons = record.infer(a, b) == BOOL
    return _same_type(value(known if is_pythons else np.bool_(known)), record, a, b)


def clip(record, x: Value, lo: Value, hi: Value):
    """For numbers: min of max, which compiled code supports."""
    if all(isinstance(v.type, Scalar) for v in (x, lo, hi)):
        return _converted(RECORDS["minimum"](RECORDS["maximum"](x, lo), hi),
                          record.infer(x, lo, hi))
    return None


def heaviside(record, x: Value, h: Value):
    """For numbers: a choice, which compiled code supports."""
    if not isinstance(x.type, Scalar) or not isinstance(h.type, Scalar):
        return None
    wanted = record.infer(x, h)
    return _converted(RECORDS["where"](
        RECORDS["equal"](x, 0), _converted(h, wanted),
        _converted(0.5 * (RECORDS["sign"](_converted(x, wanted)) + 1), wanted)), wanted)
