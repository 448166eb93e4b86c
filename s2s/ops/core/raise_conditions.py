"""Raise conditions of ops: when Python raises an exception instead of computing, as a rule on
Values in the op's record.

    divide.raises = (Raises(ZeroDivisionError, is_zero, (1.0, 0.0), operands=(1,)),)

A `try` asks the rule before the op, and makes a branch of what it says
(front/values/raise_guards.py); native code asks it where nobody catches anything
(back/arrays/python_errors.py); a pass asks whether it can hold at all, before it moves the op
(analysis/side_effects.py).

Python's own numbers raise in arithmetic where NumPy's warn; functions of `math`, int() and their
like raise for both. Functions that are written in Python (library/sequences.py) need no rules: they
say `raise`.

Considered: to try, in generated Python, what the program tries, with a `try` of its own.  Its
derivative would have to know which of the ops in it has raised, compiled code has no such
exceptions, and lanes of a batch cannot raise one by one; a condition is a branch to all of them.
Where Python's condition is no simple one (does a ** b overflow?), the op `overflows` tries that op
alone.
"""

from __future__ import annotations

import ast
import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...ir.builder import Builder, not_watched
from ...ir.graph import MISSING, OPERATORS, Block, Value
from ...ir.types import Array, Scalar
from .record import FUNCTIONS, RECORDS, define, no_jvp, no_vjp, value


@dataclass(frozen=True)
class Raises:
    """One exception that an op may raise.

    `kind` is its class; None says that Python gives what has no place in the op's type: an integer
    of more than 64 bits, a complex number.  `condition` is given the operands with the numbers
    `operands` (all, if there are none) and the attributes, and gives whether it is raised, as a
    truth value, or None where it cannot be.  `example` are operands for which it is. It is
    `pythons` if it is for Python's own numbers alone; where the condition `tries` the op, that need
    not be known.  Native code asks `natively`, a rule of the result that it has computed and the
    operands, where that is given; where it is False, another rule of the op says it.  `at_poles`
    says that the op raises wherever one of its slopes would divide by zero.  What is raised
    `in_brackets` as well is tested for `x[k]`, too; otherwise only where a function reads that.
    """

    kind: type[Exception] | None
    condition: Callable
    example: tuple = ()
    pythons: bool = False
    operands: tuple[int, ...] | slice | None = None
    natively: Callable | bool = True
    at_poles: bool = False
    tries: bool = False
    in_brackets: bool = True

    def of(self, xs) -> list[Value]:
        """The operands that the condition tests."""
        if self.operands is None:
            return list(xs)
        return (list(xs[self.operands]) if isinstance(self.operands, slice)
                else [xs[k] for k in self.operands])

    def asked(self, xs, attrs: dict) -> Value | None:
        """The condition for the operands `xs`, as newly emitted ops; None if it is known not to
        hold.
        """
        with not_watched():
            found = self.condition(*self.of(xs), **attrs)
        if (found is None or found is False
            or isinstance(found, Value) and found.constant is not MISSING and not found.constant):
            return None
        return value(found)

    def is_possible(self, xs, attrs: dict) -> bool:
        """Whether the condition may hold, given what is known of `xs`."""
        with Builder(Block()):
            return self.asked(xs, attrs) is not None

    def arguments(self, evaluate: Callable, xs) -> tuple:
        """The arguments of the exception for operands like `xs`: those of Python's exception for
        the example.
        """
        try:
            evaluate(*(_like(x, y) for x, y in zip(self.example, xs)))
        except Exception as error:
            return error.args if isinstance(error, self.kind) else ()
        return ()


def _like(x, operand: Value):
    """The number `x`, of the type of `operand`."""
    dtype = getattr(operand.type, "dtype", None) or ""
    if isinstance(x, np.ndarray):
        return x
    if dtype.startswith("complex"):
        return complex(x)
    return int(x) if dtype.startswith(("int", "bool")) and x == x and abs(x) < math.inf else x


# ------------------------------------------------------------------------------------- truth values


def both(a, b):
    """Whether `a` and `b` hold; None means never."""
    for x, other in ((a, b), (b, a)):
        if x is None or x is False:
            return None
        if x is True or isinstance(x, Value) and x.constant is True:
            return other
        if isinstance(x, Value) and x.constant is False:
            return None
    same = _are_one_number(a, b)
    if same is not None:
        return a if same else None
    return OPERATORS["bitwise_and"](value(a), value(b))


def _are_one_number(a, b) -> bool | None:
    """Whether two equality tests of one value with constants compare with the same one; None for
    other conditions.
    """
    ops = [x.op
           for x in (a, b) if isinstance(x, Value) and x.op is not None and x.op.name == "equal"]
    if len(ops) < 2 or ops[0].inputs[0] is not ops[1].inputs[0]:
        return None
    known = [constant_of(op.inputs[1]) for op in ops]
    return None if None in known else known[0] == known[1]


def either(a, b):
    """Whether `a` or `b` holds; None means never."""
    for x, other in ((a, b), (b, a)):
        if x is None or x is False or isinstance(x, Value) and x.constant is False:
            return other
        if x is True or isinstance(x, Value) and x.constant is True:
            return x
    return OPERATORS["bitwise_or"](value(a), value(b))


def negated(a):
    """Whether `a` does not hold."""
    if a is None or type(a) is bool:
        return not a
    return not a.constant if type(a.constant) is bool else RECORDS["not_"](a)


def all_of(*conditions):
    """Whether all hold."""
    found = True
    for condition in conditions:
        found = both(found, condition)
    return found


# ------------------------------------------------------------------------------------ of one number


def dtype_or_float(x: Value) -> str:
    """The dtype of `x`; that of Python's floats where it is not known."""
    return getattr(x.type, "dtype", None) or "float64"


def is_integral(x: Value) -> bool:
    """Whether the type of `x` is integer or boolean."""
    return dtype_or_float(x).startswith(("int", "uint", "bool"))


def is_complex(x: Value) -> bool:
    """Whether the type of `x` is complex."""
    return dtype_or_float(x).startswith("complex")


def constant_of(x: Value):
    """The constant `x`, or None."""
    return x.constant if type(x.constant) in (bool, int, float) else None


def equals(x: Value, number):
    """Whether x equals this constant."""
    known = constant_of(x)
    return known == number if known is not None else OPERATORS["equal"](x, value(number))


def differs(x: Value, number):
    """Whether x differs from this constant."""
    known = constant_of(x)
    return known != number if known is not None else OPERATORS["not_equal"](x, value(number))


def is_zero(x: Value):
    """Whether x is 0."""
    if x.constant is not MISSING and x.constant != 0:
        return None
    return equals(x, 0)


def is_less(x: Value, bound):
    """Whether x < bound."""
    known = constant_of(x)
    return known < bound if known is not None else OPERATORS["less"](x, value(bound))


def is_at_most(x: Value, bound):
    """Whether x <= bound."""
    known = constant_of(x)
    return known <= bound if known is not None else OPERATORS["less_equal"](x, value(bound))


def is_more(x: Value, bound):
    """Whether x > bound."""
    known = constant_of(x)
    return known > bound if known is not None else OPERATORS["greater"](x, value(bound))


def is_infinite(x: Value):
    """Whether x is infinite, for a complex number in either part."""
    return _classified("isinf", x)


def is_nan(x: Value):
    """Whether x is NaN, for a complex number in either part."""
    return _classified("isnan", x)


def is_finite(x: Value):
    """Whether x is finite, for a complex number in both parts."""
    return _classified("isfinite", x)


def _classified(name: str, x: Value):
    if is_integral(x):
        return name == "isfinite"
    if type(x.constant) in (float, complex):
        return getattr(cmath, name)(x.constant)
    if isinstance(x.type, Scalar):
        return RECORDS[f"cmath.{name}" if is_complex(x) else f"math.{name}"](x)
    return OPERATORS[name](x)


def are_finite(*xs: Value):
    """Whether all are finite."""
    return all_of(*map(is_finite, xs))


def is_beyond(bound: float) -> Callable:
    """Make a rule: whether x is larger than `bound`, but not infinite."""
    return lambda x: both(is_more(x, bound), is_less(x, math.inf))


def is_far_beyond(bound: float) -> Callable:
    """Make a rule: whether abs(x) is larger than `bound`, but not infinite."""
    return lambda x: is_beyond(bound)(RECORDS["abs_"](x))


def is_whole(x: Value):
    """Whether x is a whole number."""
    known = constant_of(x)
    if is_integral(x):
        return True
    if known is not None:
        return known == math.floor(known) if math.isfinite(known) else True
    return OPERATORS["equal"](RECORDS["floor"](x), x)


def has_no_word(x: Value):
    """Whether x, as an integer, does not fit in 64 bits, or is none at all: NaN, infinite, or too
    large.
    """
    if is_integral(x):
        return None
    known = constant_of(x)
    if known is not None:
        return not abs(known) < 2.0**63 or None
    return negated(is_less(RECORDS["abs_"](x), 2.0**63))


def _real(z: Value) -> Value:
    return OPERATORS["real"](z)


def _imag(z: Value) -> Value:
    return OPERATORS["imag"](z)


# ----------------------------------------------------------------------------------------- overflow


def overflows(function, *numbers):
    """Whether Python raises OverflowError instead of computing this function of these numbers."""
    try:
        function(*numbers)
    except (ArithmeticError, ValueError) as error:
        return isinstance(error, OverflowError)
    return False


BUILTINS = {"power": pow, "abs_": abs, "round": round}  # ops of Python's built-in functions


def _function_of(name: str) -> Callable:
    """The Python function or operator of the op with that name."""
    return (BUILTINS.get(name)
            or getattr({"math": math, "cmath": cmath}[name.partition(".")[0]],
                       name.partition(".")[2]))


def op_of(function: Callable) -> str:
    """The name of the op of this Python function."""
    known = next((name for name, each in BUILTINS.items() if each is function), None)
    return known or f"{function.__module__}.{function.__name__}"


def _spelled(function: Callable) -> ast.expr:
    return ast.parse(function.__name__ if function in BUILTINS.values() else op_of(function),
                     mode="eval").body


def _overflows_somewhere(*xs, function: Callable):
    """The same for arrays of lanes: in which of them a function of math has become infinite."""
    if not any(isinstance(x, np.ndarray) for x in xs):
        return overflows(function, *xs)
    with np.errstate(all="ignore"):
        y = getattr(np, function.__name__)(*xs)
    if function in BUILTINS.values():
        return np.zeros(y.shape, bool)
    return np.isinf(y) & np.all(np.broadcast_arrays(*map(np.isfinite, xs)), axis=0)


def _overflows_in_lanes(*xs, function: Callable):
    """The op for lanes side by side, which are NumPy's numbers: their operators give inf, and
    functions of math raise.  None where NumPy lacks the function: lane after lane.
    """
    array = next((x for x in xs if isinstance(x.type, Array)), None)
    if array is None:
        return overflows_record(*xs, function=function)
    if function in BUILTINS.values():
        return FUNCTIONS[np.zeros_like](array, dtype=bool)
    arrays = FUNCTIONS.get(getattr(np, function.__name__, None))
    return None if arrays is None else has_overflown_natively(function, arrays(*xs), *xs)


overflows_record = define(
    "overflows", evaluate=_overflows_somewhere, batch=_overflows_in_lanes,
    infer=lambda *xs, function: Scalar("bool", weak=True), elementwise=True, cheap=True,
    syntax=lambda *xs, function: ast.Call(ast.Name("overflows", ast.Load()),
                                          [_spelled(function), *xs], []), helper=overflows,
    vjp=no_vjp, jvp=no_jvp,
    raises=(Raises(None, lambda *xs, function: None,
                   natively=lambda y, *xs, function: y if any(map(is_complex, xs)) else None),))


def has_overflown(y: Value, *xs: Value):
    """Whether y is infinite although its operands are finite: the result of native code where
    Python raises OverflowError.

    For complex numbers, whether that is possible: Python computes some of them from intermediate
    results that overflow.
    """
    if any(map(is_complex, (y, *xs))):
        return either(negated(is_finite(y)),
                      is_infinite(RECORDS["abs_"](xs[0])) if is_complex(xs[0]) and is_complex(y)
                      else None)
    return all_of(is_infinite(y), *map(is_finite, xs))


def has_overflown_natively(function: Callable, y: Value, *xs: Value):
    """The op `overflows` in native code, given the function's result y."""
    if function in (pow, math.pow):  # possibly a division by zero
        return both(has_overflown(y, *xs), differs(xs[0], 0))
    return has_overflown(y, *xs)


def _overflows(name: str, *xs: Value):
    return overflows_record(*xs, function=_function_of(name))


# ------------------------------------------------------------------------------------------- powers


def divides_by_zero(a: Value, b: Value):
    """Whether a ** b divides by zero: 0 ** -1 does, and 0 ** 1j, not 0.0 ** -inf, but 0j ** -inf."""
    if is_complex(b):
        return both(equals(a, 0), either(is_less(_real(b), 0), negated(equals(_imag(b), 0))))
    below = is_less(b, 0)
    if not is_integral(b) and constant_of(b) is None and not is_complex(a):
        below = both(below, is_more(b, -math.inf))
    return None if below in (None, False) else both(equals(a, 0), below)


def _power_overflows(a: Value, b: Value):
    if is_integral(a) and is_integral(b) and (constant_of(b) is None or constant_of(b) >= 0):
        return None  # Python's integers do not overflow
    if _is_tame_power(a, b):
        return None
    return _overflows("power", a, b)


def _is_tame_power(a: Value, b: Value) -> bool:
    """Whether no finite base overflows with this exponent."""
    exponent, base = constant_of(b), constant_of(a)
    # infinite operands do not overflow
    tame = base is not None and (base in (0, 1, -1) or not math.isfinite(base))
    return not is_complex(a) and (exponent is not None and -0.95 < exponent <= 1 or tame)


def _leaves_known_power(a: Value, b: Value):
    """Whether Python's a ** b differs from native code's, for one constant operand, as a test of
    the other alone.

    Rounding makes bounds a little too narrow, and infinity is out of bounds: then Python is asked
    in vain, and returns the result.
    """
    exponent, base = constant_of(b), constant_of(a)
    if any(map(is_complex, (a, b))) or is_integral(a) and is_integral(b):
        return None
    if exponent is not None and math.isfinite(exponent):
        bound = math.inf if 0 <= exponent < 1 else _bound(exponent)
        if exponent == int(exponent):
            if exponent in (0, 1):
                return None
            return (is_more(RECORDS["abs_"](a), bound) if exponent > 0
                    else is_less(RECORDS["abs_"](a), bound))
        if exponent > 0:
            return is_less(a, 0) if exponent < 1 else either(is_less(a, 0), is_more(a, bound))
        return is_less(a, bound) if bound > 0 else is_at_most(a, 0)
    if base is not None and base > 0 and base != 1 and math.isfinite(base):
        limit = (1 - 1e-12) * math.log(MAX) / math.log(base)
        return is_beyond(limit)(b) if base > 1 else both(is_less(b, limit), is_more(b, -math.inf))
    return None


def _bound(exponent: float) -> float:
    """The base whose power with this exponent is just below the largest float."""
    return math.exp(math.log(MAX) / exponent) * (1 - 1e-12 if exponent > 0 else 1 + 1e-12)


MAX = 1.7976931348623157e308


def _has_no_power(y: Value, a: Value, b: Value):
    """Whether Python's a ** b differs from native code's y: it raises, or returns a complex number
    or a long integer.
    """
    exponent, base = constant_of(b), constant_of(a)
    if is_complex(y) or is_complex(a) or is_complex(b):
        return either(has_overflown(y, a, b), divides_by_zero(a, b) if is_complex(b) else None)
    if is_integral(a) and is_integral(b):
        if exponent is not None and exponent >= 0:  # squares and cubes wrap around like products
            return None if exponent <= 3 else is_more(RECORDS["abs_"](a), int(2 ** (63 / exponent)))
        if base is not None and base > 1:
            return is_more(b, max(n for n in range(63) if base**n < 2**63))
        return OPERATORS["greater_equal"](RECORDS["abs_"](OPERATORS["power"](RECORDS["float_"](
            RECORDS["int_"](a)), b)), value(2.0**63))
    if (exponent is not None and math.isfinite(exponent)
        or base is not None and base > 0 and math.isfinite(base)):
        return None  # the other operand was tested
    return both(negated(is_finite(y)), are_finite(a, b))


def _is_outside_of_pow(a: Value, b: Value):
    """Whether math.pow(a, b) is undefined: math.pow(0, -1), math.pow(-8, 1 / 3)."""
    fractional = (None if is_whole(b) is True else True if is_whole(b) is False
                  else OPERATORS["less"](RECORDS["floor"](b), b))
    return either(divides_by_zero(a, b),
                  both(both(is_less(a, 0), is_more(a, -math.inf)), fractional))


# ------------------------------------------------------------------------------------------- shifts


def _shifts_out(a: Value, b: Value):
    """Whether a << b leaves 64 bits by the number of places."""
    return None if b.constant in range(32) else is_more(b, 62)


# ------------------------------------------------------------------------------- what Python raises

TO_INTEGER = (
    Raises(ValueError, is_nan, (math.nan,), natively=False),
    Raises(OverflowError, is_infinite, (math.inf,), natively=False),
    Raises(None, has_no_word),
)
DIVISION = (Raises(ZeroDivisionError, is_zero, (1.0, 0.0), pythons=True, operands=(1,)),)
TRUE_DIVISION = (Raises(ZeroDivisionError, is_zero, (1.0, 0.0), pythons=True, operands=(1,),
                        at_poles=True),)
POWER = (
    Raises(ZeroDivisionError, divides_by_zero, (0.0, -1.0), pythons=True, natively=False),
    Raises(OverflowError, _power_overflows, (1e300, 2.0), pythons=True, natively=False, tries=True),
    Raises(None, _leaves_known_power, pythons=True),
    Raises(None, lambda a, b: None, pythons=True, natively=_has_no_power),
)
LEFT_SHIFT = (
    Raises(ValueError, lambda b: is_less(b, 0), (1, -1), pythons=True, operands=(1,)),
    Raises(None, _shifts_out, pythons=True),
)
RIGHT_SHIFT = (Raises(ValueError, lambda b: is_less(b, 0), (1, -1), pythons=True, operands=(1,)),)


def _domain(condition: Callable, *example, at_poles: bool = False) -> tuple[Raises, ...]:
    return (Raises(ValueError, condition, example, at_poles=at_poles),)


def _range(condition: Callable, *example) -> tuple[Raises, ...]:
    return (Raises(OverflowError, condition, example),)


def _is_pole(x: Value):
    """Whether gamma has a pole at x: an integer that is not positive, or -inf."""
    return both(is_at_most(x, 0), is_whole(x))


def _is_small(x: Value):
    """Whether 1 / x overflows."""
    return all_of(is_less(RECORDS["abs_"](x), 5.562684646268003e-309 * (1 + 2**-52)), differs(x, 0))


IN_MATH = {  # by the name of the function
    "sqrt": _domain(lambda x: is_less(x, 0), -1.0),
    "log": _domain(lambda x: is_at_most(x, 0), 0.0, at_poles=True),
    "log2": _domain(lambda x: is_at_most(x, 0), 0.0, at_poles=True),
    "log10": _domain(lambda x: is_at_most(x, 0), 0.0, at_poles=True),
    "log1p": _domain(lambda x: is_at_most(x, -1), -1.0, at_poles=True),
    "asin": _domain(lambda x: is_more(RECORDS["abs_"](x), 1), 2.0),
    "acos": _domain(lambda x: is_more(RECORDS["abs_"](x), 1), 2.0),
    "acosh": _domain(lambda x: is_less(x, 1), 0.0),
    "atanh": _domain(lambda x: OPERATORS["greater_equal"](RECORDS["abs_"](x), value(1)), 1.0, at_poles=True),
    "sin": _domain(is_infinite, math.inf),
    "cos": _domain(is_infinite, math.inf),
    "tan": _domain(is_infinite, math.inf),
    "fmod": _domain(lambda x, y: all_of(either(is_zero(y), is_infinite(x)), negated(is_nan(x)), negated(is_nan(y))), 1.0, 0.0),
    "gamma": _domain(_is_pole, -1.0) + _range(lambda x: either(is_beyond(171.6243769563027)(x), _is_small(x)), 200.0),
    "lgamma": _domain(lambda x: both(_is_pole(x), is_more(x, -math.inf)), -1.0) + _range(is_beyond(2.5599833278516383e305), 1e308),
    "pow": _domain(_is_outside_of_pow, 0.0, -1.0) + (
        Raises(OverflowError, lambda a, b: None if _is_tame_power(a, b) else _overflows("math.pow", a, b), (1e300, 2.0), natively=has_overflown),),
    "exp": _range(is_beyond(709.782712893384), 1000.0),
    "exp2": _range(is_beyond(1023.9999999999999), 2000.0),
    "expm1": _range(is_beyond(709.782712893384), 1000.0),
    "cosh": _range(is_far_beyond(710.4758600739439), 1000.0),
    "sinh": _range(is_far_beyond(710.4758600739439), 1000.0),
    "floor": TO_INTEGER,
    "ceil": TO_INTEGER,
    "trunc": TO_INTEGER,
}


def _overflow_in(name: str) -> tuple[Raises, ...]:
    return (Raises(OverflowError, lambda z: _overflows(f"cmath.{name}", z), (1000.0 + 1000j,),
                   natively=has_overflown),)


def _unless_nan(infinite: Callable, other: Callable) -> Callable:
    """Make a rule: whether one part of z is infinite and the other a number."""
    return lambda z: both(is_infinite(infinite(z)), negated(is_nan(other(z))))


def _is(real: float, imag: float) -> Callable:
    """Make a rule: whether z is one of the numbers ±real ± imag * 1j."""
    return lambda z: both(equals(RECORDS["abs_"](_real(z)), real),
                          equals(RECORDS["abs_"](_imag(z)), imag))


IN_CMATH = {
    "log": _domain(is_zero, 0j, at_poles=True),
    "log10": _domain(is_zero, 0j, at_poles=True),
    "exp": _domain(lambda z: all_of(is_infinite(_imag(z)), negated(is_nan(_real(z))),
                                    differs(_real(z), -math.inf)), complex(0, math.inf))
    + _overflow_in("exp"),
    "sinh": _domain(_unless_nan(_imag, _real), complex(1, math.inf)) + _overflow_in("sinh"),
    "cosh": _domain(_unless_nan(_imag, _real), complex(1, math.inf)) + _overflow_in("cosh"),
    "sin": _domain(_unless_nan(_real, _imag), complex(math.inf, 1)) + _overflow_in("sin"),
    "cos": _domain(_unless_nan(_real, _imag), complex(math.inf, 1)) + _overflow_in("cos"),
    "tanh": _domain(lambda z: both(is_infinite(_imag(z)), is_finite(_real(z))),
                    complex(1, math.inf)),
    "tan": _domain(lambda z: both(is_infinite(_real(z)), is_finite(_imag(z))),
                   complex(math.inf, 1)),
    "atanh": _domain(_is(1.0, 0.0), 1 + 0j),
    "atan": _domain(_is(0.0, 1.0), 1j),
}
ABSOLUTE = (Raises(OverflowError, lambda z: _overflows("abs_", z) if is_complex(z) else None,
                   (1.7e308 + 1.7e308j,), pythons=True,
                   natively=lambda y, z: has_overflown(y, z) if is_complex(z) else None,
                   tries=True),)
ROUND = (Raises(OverflowError,  # native code calls Python for it
                lambda x, n: None
                    if (constant_of(n) or 0) >= 0 and constant_of(n) is not None or is_integral(x)
                    else _overflows("round", x, n), (1.7e308, -308), natively=False, tries=True),)
# arrays have none
TRUTH = (Raises(ValueError,
                lambda *xs: None if all(isinstance(x.type, Scalar) for x in xs) else True),)
