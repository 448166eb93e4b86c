"""Lower bounds of values: the least that a value can be, by its form.

    max(n, 0)      at least 0      np.sum(np.exp(x), axis=1)       positive, unless exp underflows
    1 + x * x      at least 1      np.sqrt(np.maximum(x, 1e-9))    positive
    len(x) - 1     at least -1

The record of an op says it, in its field `least` or by other facts (Note [Least values]); here are
the rules that records name, and the walk from a value to the ops that it is computed from.  It is
read in two ways:

`least(x)` is of real numbers: it may be open, as that of exp(x), which is larger than 0, although
exp underflows.  Integers are taken not to wrap around, and quotients to have divisors that are not
-0.0; where no dtype is known yet, numbers are taken to be real.  Slopes, signs and derivatives ask
for it, which are those of the function that a program stands for.

`sure_least(x)` is of what is computed: after rounding, underflow and wraparound.  Who leaves out a
test, or a count from the end of an axis, asks for it.  Python's integers do not wrap around.

Either says nothing of NaN, which is not less than any number, and None where nothing is known: of
complex numbers always, and of values of any other form, as this is no interval analysis.

Considered: a lattice of signs, as it was, of which no index can be read, and which cannot tell that
1 + x * x is not 0 while exp(x) may be computed as 0.  Intervals: upper bounds would be needed for
differences, and nobody asks for them but loops, which prove more by sums of lengths and counters
(back/loops/loop_bounds.py).  A number in the type of a value, computed when it is emitted: every
rule that makes a value would have to say it, and no pass could add what it knows of counters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...ir.graph import MISSING, Op, Value
from ...ir.types import Array, Scalar, Unknown

DEEPEST = 24  # depth of the walk, in ops
MOST = 2**62  # larger bounds are lowered to this
FLOATS = ("float16", "float32", "float64")


class Least(NamedTuple):
    """A lower bound."""

    number: float
    is_open: bool = False  # larger than the number

    @property
    def is_positive(self) -> bool:
        """Whether what it is a bound of is larger than 0."""
        return self.number > 0 or self.number == 0 and self.is_open


ZERO, ABOVE_ZERO = Least(0), Least(0, True)


def least(x) -> Least | None:
    """A lower bound of the real number that `x` stands for; None if unknown."""
    return Walk()(x)


def sure_least(x, known: Callable | None = None) -> float | None:
    """A lower bound of the number that is computed for `x`, unless it is NaN; None if unknown.

    `known(x, bound)` may say more of values, such as counters of loops, which no op computes;
    `bound` is this walk.
    """
    found = Walk(is_sure=True, known=known)(x)
    return None if found is None else found.number


def is_never_negative(x) -> bool:
    """Whether the real number `x` is provably not negative, such as a sum of squares."""
    return (found := least(x)) is not None and found.number >= 0


def is_surely_not_negative(x) -> bool:
    """Whether what is computed for `x` is provably not negative."""
    return (found := sure_least(x)) is not None and found >= 0


def is_nonzero(x) -> bool:
    """Whether the real number `x` is provably not 0: a nonzero constant, or positive."""
    constant = x.constant if isinstance(x, Value) else x
    if type(constant) in (bool, int, float, complex):
        return constant != 0
    return (found := least(x)) is not None and found.is_positive


class Walk:
    """Find lower bounds of values by the records of the ops that compute them.

    Called on a value it gives its bound.  `is_sure` is the second way to read it.
    """

    def __init__(self, is_sure: bool = False, known: Callable | None = None):
        self.is_sure, self.known = is_sure, known
        self.found: dict[Value, Least | None] = {}
        self.depth = 0

    def __call__(self, x) -> Least | None:
        constant = x.constant if isinstance(x, Value) else x
        if isinstance(constant, np.generic):
            constant = constant.item()
        if type(constant) in (bool, int, float):
            return None if math.isnan(constant) else _at_most(Least(constant))
        if not isinstance(x, Value) or not isinstance(x.type, (Scalar, Array, Unknown)):
            return None
        if x not in self.found:
            if self.depth == DEEPEST:
                return None
            self.depth += 1
            self.found[x] = self.bound(x)
            self.depth -= 1
        return self.found[x]

    def bound(self, x: Value) -> Least | None:
        """The bound of a value that is no constant."""
        kind = dtype(x)
        if kind.startswith("complex"):
            return None
        found = self.known(x, self) if self.known is not None else None
        if found is None and x.op is not None and not x.op.blocks and len(x.op.outputs) == 1:
            rule = rule_of(x.op.record)
            found = rule(x.op, self) if callable(rule) else rule
            if found is not None and getattr(rule, "wraps", False) and self.may_wrap(x, kind):
                found = None
        if found is not None:
            found = self.as_computed(_at_most(found), kind)
        # a choice between Python's numbers and NumPy's has one type, so that an unsigned one may be
        # Python's -1
        if ((kind == "bool" or kind.startswith("uint") and isinstance(x.type, Array))
            and (found is None or found.number < 0)):
            return ZERO
        return found

    def may_wrap(self, x: Value, kind: str) -> bool:
        """Whether arithmetic with this result may wrap around, or saturate as that of truth
        values.
        """
        if kind == "bool":
            return True
        is_pythons = isinstance(x.type, Scalar) and x.type.weak
        return self.is_sure and (not kind or _is_integral(kind) and not is_pythons)

    def as_operand(self, found: Least | None, op: Op) -> Least | None:
        """The bound of an operand after it has been converted to the dtype of the result: 0.1 to
        single precision.
        """
        kind = dtype(op.outputs[0])
        if found is None or not self.is_sure or kind not in FLOATS:
            return found
        return Least(_rounded_down(found.number, kind))

    def as_computed(self, found: Least, kind: str) -> Least | None:
        """The bound after the result has been rounded."""
        if not self.is_sure:
            return found
        if kind in FLOATS:
            return Least(_rounded_down(found.number, kind))
        return Least(math.ceil(found.number)) if _is_integral(kind) else None


def _at_most(found: Least) -> Least | None:
    """The bound, lowered where it is huge; None for -inf."""
    if found.number != found.number or found.number == -math.inf:
        return None
    return Least(MOST) if found.number > MOST else found


def _rounded_down(number: float, kind: str) -> float:
    with np.errstate(all="ignore"):
        y = np.dtype(kind).type(number)
        below = np.nextafter(y, np.dtype(kind).type(-np.inf))
    return float(y) if float(y) <= number else float(below)


def dtype(x) -> str:
    """The dtype of a value; "" if unknown."""
    return getattr(getattr(x, "type", None), "dtype", None) or ""


def _is_integral(kind: str) -> bool:
    return kind.startswith(("int", "uint", "bool"))


# Note [Least values]
# `Record.least` is a number, a `Least`, or a rule (op, bound) -> Least or None, where `bound(x)` is
# the bound of a value.  A record that has none has the rule that its other facts imply: a sum, a
# larger operand, elements that are moved, a root.  Rules that compute, instead of choosing among
# operands, say that integers `wraps`: of these nothing is sure.


def wraps(rule: Callable) -> Callable:
    """Decorator: the rule is one of arithmetic, which wraps around in integers."""
    rule.wraps = True
    return rule


def rule_of(record) -> Callable | Least | None:
    """The rule by which a record's results are bounded."""
    if record.least is not None:
        return record.least if callable(record.least) or isinstance(record.least, Least) else Least(
            record.least)
    if record.natural:
        return ZERO
    if record.fill is not None:
        return Least(record.fill)
    if record.stands_for is not None:
        return _of_equal
    if record.extreme:
        return larger if record.extreme > 0 else smaller
    if record.selects:
        return _selected
    if record.signs:
        return total
    if record.root:
        return root
    if record.size:
        return size
    if record.converts:
        return converted
    if record.moves or record.same_elements or record.returns is not None:
        return moved
    return None


# ------------------------------------------------------------------------------ rules of arithmetic


@wraps
def total(op: Op, bound: Walk) -> Least | None:
    """Of a sum of operands, each times 1 or -1: those that are subtracted are constants."""
    number, is_open = 0, False
    for sign, x in zip(op.record.signs, op.inputs, strict=True):
        if sign < 0 and type(x.constant) not in (int, float):
            return None
        found = bound.as_operand(bound(x) if sign > 0 else Least(-x.constant), op)
        if found is None:
            return None
        number, is_open = number + found.number, is_open or found.is_open
    return Least(number, is_open)


@wraps
def product(op: Op, bound: Walk) -> Least | None:
    """Of a * b: a square, or a product of what is not negative."""
    a, b = (bound.as_operand(bound(x), op) for x in op.inputs)
    return squared(a) if op.inputs[0] is op.inputs[1] else _product(a, b)


def _product(a: Least | None, b: Least | None) -> Least | None:
    if a is None or b is None or min(a.number, b.number) < 0:
        return None
    number = a.number * b.number
    return Least(number, a.is_positive and b.is_positive
                 and (a.is_open or b.is_open or number == 0))


def squared(a: Least | None) -> Least:
    """Of a * a, for a bound of a."""
    return ZERO if a is None or a.number < 0 else _product(a, a)


@wraps
def square(op: Op, bound: Walk) -> Least:
    """Of the square of the operand."""
    return squared(bound(op.inputs[0]))


@wraps
def power(op: Op, bound: Walk) -> Least | None:
    """Of a ** b: even powers, and powers of what is not negative; (-0.0) ** -1 is -inf."""
    a, n = bound(op.inputs[0]), op.inputs[1].constant
    if type(n) in (int, float) and n % 2 == 0:
        return ABOVE_ZERO if n > 0 and a is not None and a.is_positive else ZERO
    if a is None or a.number < 0:
        return None
    if a.is_positive:
        return ABOVE_ZERO
    return ZERO if (b := bound(op.inputs[1])) is not None and b.number >= 0 else None


def quotient(op: Op, bound: Walk) -> Least | None:
    """Of a / b, where neither is negative; 1 / -0.0 is -inf."""
    a, b = bound(op.inputs[0]), bound(op.inputs[1])
    if a is None or b is None or min(a.number, b.number) < 0:
        return None
    if bound.is_sure and not b.is_positive and not _is_integral(dtype(op.inputs[1])):
        return None
    return ABOVE_ZERO if a.is_positive and b.is_positive else ZERO


def floor_quotient(op: Op, bound: Walk) -> Least | None:
    """Of a // b, where neither is negative."""
    return None if quotient(op, bound) is None else ZERO


def remainder(op: Op, bound: Walk) -> Least | None:
    """Of a % b, which has the sign of b; by 0 it is NaN, 0 for NumPy's integers, or raises."""
    return ZERO if (b := bound(op.inputs[1])) is not None and b.number >= 0 else None


def same_sign(op: Op, bound: Walk) -> Least | None:
    """Of a function with the sign of its first operand."""
    a = bound(op.inputs[0])
    return None if a is None or a.number < 0 else ABOVE_ZERO if a.is_positive else ZERO


def not_less_than_zero(op: Op, bound: Walk) -> Least | None:
    """Of what is not negative if the first operand is not."""
    return None if (a := bound(op.inputs[0])) is None or a.number < 0 else ZERO


def rounded(op: Op, bound: Walk) -> Least | None:
    """Of a rounded float; integers wrap around when they are rounded to tens."""
    return None if _is_integral(dtype(op.inputs[0])) else not_less_than_zero(op, bound)


def whole(op: Op, bound: Walk) -> Least | None:
    """Of an integer next to the operand."""
    a = bound(op.inputs[0])
    return None if a is None else Least(math.floor(a.number))


def root(op: Op, bound: Walk) -> Least | None:
    """Of a root of the first operand; an even one is NaN where that is negative."""
    a = bound(op.inputs[0])
    if a is None or a.number < 0:
        return None if op.record.root % 2 else ZERO
    if op.record.root == 2:
        return Least(math.sqrt(a.number), a.is_open)
    return ABOVE_ZERO if a.is_positive else ZERO


def size_of_total(op: Op, bound: Walk) -> Least:
    """Of a root of the first operand, a total of what is not negative."""
    return same_sign(op, bound) or ZERO


@wraps
def size(op: Op, bound: Walk) -> Least:
    """Of the root of the sum of the operands' squares; of one operand, its absolute value."""
    found = [bound(x) for x in op.inputs]
    if len(found) == 1:
        return found[0] if found[0] is not None and found[0].number >= 0 else ZERO
    return ABOVE_ZERO if any(a is not None and a.is_positive for a in found) else ZERO


@wraps
def of_elements(op: Op, bound: Walk) -> Least | None:
    """Of a sum or product of elements: of none, too, a sum is taken to be positive if they are."""
    return same_sign(op, bound)


@wraps
def matrix_product(op: Op, bound: Walk) -> Least | None:
    """Of x @ x, for a vector x."""
    a, b = op.inputs
    return ZERO if a is b and isinstance(a.type, Array) and a.type.rank == 1 else None


# --------------------------------------------------------------------------------- rules of choices


def _larger_of(a: Least | None, b: Least | None) -> Least | None:
    if a is None or b is None:
        return a or b
    return max(a, b)


def _smaller_of(*found: Least | None) -> Least | None:
    return None if None in found or not found else min(found)


def larger(op: Op, bound: Walk) -> Least | None:
    """Of the larger operand.  Where one may be NaN, and the other is chosen, its bound is none."""
    a, b = (bound(x) for x in op.inputs)
    if op.record.skips_nan:
        sure = [x for x, y in zip((a, b), op.inputs) if not _may_be_nan(y)]
        return _larger_of(_smaller_of(a, b), max(sure, default=None, key=_key))
    if op.record.returns_operand and _may_be_nan(op.inputs[1]):  # the first, where that is NaN
        return a
    return _larger_of(a, b)


def _key(a: Least | None) -> Least:
    return Least(-math.inf) if a is None else a


def _may_be_nan(x: Value) -> bool:
    return type(x.constant) not in (bool, int, float) and not _is_integral(dtype(x))


def smaller(op: Op, bound: Walk) -> Least | None:
    """Of the smaller operand."""
    return _smaller_of(*map(bound, op.inputs))


def _selected(op: Op, bound: Walk) -> Least | None:
    return _smaller_of(*map(bound, op.inputs[1:]))


def clipped(op: Op, bound: Walk) -> Least | None:
    """Of min(max(x, lo), hi), where a limit may be None."""
    x, lo, hi = op.inputs
    found = _larger_of(bound(x), bound(lo))
    return found if hi.constant is None else _smaller_of(found, bound(hi))


def and_zero(op: Op, bound: Walk) -> Least | None:
    """Of 0, or elements of the first operand."""
    return _smaller_of(bound(op.inputs[0]), ZERO)


def bits_of_both(op: Op, bound: Walk) -> Least | None:
    """Of a & b, which is not negative if one of them is not."""
    return ZERO if any(a is not None and a.number >= 0 for a in map(bound, op.inputs)) else None


def bits_of_either(op: Op, bound: Walk) -> Least | None:
    """Of a | b or a ^ b, which is not negative if both are not."""
    return ZERO if all(a is not None and a.number >= 0 for a in map(bound, op.inputs)) else None


def _of_equal(op: Op, bound: Walk) -> Least | None:
    """Of an op that stands for one of its operands."""
    x = op.record.stands_for(op, op.outputs[0])
    return None if x is None else bound(x)


def converted(op: Op, bound: Walk) -> Least | None:
    """Of the first operand in another dtype."""
    return _converted(bound(op.inputs[0]), op.inputs[0], op.outputs[0], bound)


def _converted(found: Least | None, x: Value, y: Value, bound: Walk) -> Least | None:
    """The bound of x as an element of y: from float to integer it loses its fraction, and, as that
    of a wider integer, may wrap around.
    """
    kind, source = dtype(y), dtype(x)
    if found is None or not kind.startswith(("int", "uint")):
        return found
    if bound.is_sure and not (source and np.can_cast(source, kind)):
        return None
    return found if _is_integral(source) else Least(math.floor(found.number))


def moved(op: Op, bound: Walk) -> Least | None:
    """Of elements of the operands that are moved, or of the one that is returned."""
    record = op.record
    moves = record.moves or ((record.returns,) if record.returns is not None else (0,))
    return _smaller_of(*(_converted(bound(x), x, op.outputs[0], bound)
                         for k, x in enumerate(op.inputs) if k in moves))


# ------------------------------------------------------------------------- Note [Slopes], record.py


def steep_at_zero(x) -> str:
    """The boundedness of the slopes of sqrt and cbrt."""
    return "finite" if is_nonzero(x) else "steep"


def pole_at_zero(x) -> str:
    """The boundedness of the slopes of log and of 1 / x."""
    return "finite" if is_nonzero(x) else "pole"


def of_quotient(a, b) -> str:
    """The boundedness of the slopes of a / b, a // b and a % b."""
    return pole_at_zero(b)


def of_power(a, b) -> str:
    """The boundedness of the slopes of a ** b."""
    n = b.constant if isinstance(b, Value) else b
    if type(n) in (bool, int, float) and n >= 1 or n == 0 and n is not MISSING:
        return "finite"
    if is_nonzero(a):
        return "finite"
    return "steep" if type(n) in (int, float) and n > 0 else "pole"


def of_angle(y, x) -> str:
    """The boundedness of the slopes of arctan2(y, x)."""
    return "finite" if is_nonzero(x) or is_nonzero(y) else "steep"
