"""Elementwise ops: the table of partial derivatives.

Each row: the op's name in NumPy, and ∂y/∂x for each operand as a function of the result `y` and the
operands. Both modes, batching and fusion follow from that.  A partial of 1 or -1 is written as the
number; None says that the operand carries no derivative.  `python` is the op as Python itself
spells it, if it does; `math` is its twin in Python's math module; `vector` says that
runtime/kernels/vector_math has it; `fold` are identities that hold bit for bit; `least` is a lower
bound (signs.py), where no other fact implies it; `stablehlo` is the op in StableHLO (Note
[StableHLO], record.py).

Where calculus is silent: at a tie, maximum, minimum and clip give each operand half, as JAX does;
Python's max and min follow the operand they return; abs has derivative 0 at 0, and so have hypot,
norms and standard deviations; a ** b has derivative 0 with respect to b where a is not positive.
docs/non-smooth.md is a table of it.
"""

from __future__ import annotations

import ast
import functools
import math
from math import pi

import numpy as np

from ...ir.graph import MISSING, OPERATORS, Op, Value
from ...ir.types import INT, Array, Scalar
from . import identities, raise_conditions, signs, stablehlo_rules
from .cast import as_dtype, astype, float_, int_
from .chain_rule import like_operand, like_tangent, strong_zeros, times
from .define_elementwise import (
    IN_MATH,
    builtin_syntax,
    elementwise,
    joined,
    numpy_syntax,
    python_syntax,
    sampled,
)
from .kinks import (
    ASKED,
    COMPARED,
    ROOT,
    SIZE,
    STEEP,
    Kink,
    at_halves,
    at_integers,
    at_zero,
    equal_operands,
    kinked,
    on_cut,
    size_zero,
    zero_over_zero,
)
from .record import RECORDS, Record, define, forwards, lowers, state, value
from .shape import sum_to

# --------------------------------------------------------------------------------------- arithmetic
#                                         ∂y/∂a                       ∂y/∂b

add = elementwise("add",                  1,                          1,                  python="a + b", fold=identities.add, signs=(1, 1), commutes=True, integral=True, stablehlo="add")
subtract = elementwise("subtract",        1,                          -1,                 python="a - b", fold=identities.subtract, signs=(1, -1), integral=True, stablehlo="subtract")
multiply = elementwise("multiply",        lambda y, a, b: b,          lambda y, a, b: a,  python="a * b", fold=identities.multiply, slope="finite", multilinear=(0, 1), commutes=True, contracts=True, integral=True, least=signs.product, stablehlo="multiply")
divide = elementwise("divide",            lambda y, a, b: 1 / b,      lambda y, a, b: -y / b, python="a / b", fold=identities.divide, slope=signs.of_quotient, divides=True, linear=(0,), exact=True, least=signs.quotient, stablehlo="divide")
quotient = elementwise("quotient",        lambda y, a, b: 1 / b,      lambda y, a, b: -y / b, evaluate=np.divide, syntax=numpy_syntax("divide"),
                       fold=identities.quotient, slope=signs.of_quotient, divides=True, linear=(0,), exact=True, tame_at_one=True, least=signs.quotient, stablehlo="divide")  # see Note [Derivatives do not raise]
single_quotient = elementwise("single_quotient", lambda y, a, b: 1 / b, lambda y, a, b: -y / b,  # the same in single precision
                              evaluate=lambda a, b: np.divide(a, b, dtype=np.float32), syntax=lambda a, b: _in_single(numpy_syntax("divide")(a, b)),
                              fold=identities.single_quotient, slope=signs.of_quotient, divides=True, linear=(0,), exact=True, tame_at_one=True, least=signs.quotient, stablehlo="divide")
power = elementwise("power",              lambda y, a, b: _power_slope(y, a, b),
                                          lambda y, a, b: y * log(_positive(a)),          python="a ** b", fold=identities.power, math=math.pow, vector=True, slope=signs.of_power, contracts=True, tame_at_one=True, least=signs.power, stablehlo=stablehlo_rules.power)
floor_divide = elementwise("floor_divide", None,                      None,               python="a // b", integral=True, least=signs.floor_quotient, stablehlo=stablehlo_rules.floor_quotient)
remainder = elementwise("remainder",      1,                          lambda y, a, b: -(a // b), python="a % b", slope=signs.of_quotient, integral=True, least=signs.remainder, stablehlo=stablehlo_rules.remainder)
fmod = elementwise("fmod",                1,                          lambda y, a, b: -trunc(a / b), math=math.fmod, slope=signs.of_quotient, least=signs.not_less_than_zero, stablehlo=stablehlo_rules.rest)
negative = elementwise("negative",        -1,                                             python="-a", fold=identities.negative, signs=(-1,), integral=True, exact=True, stablehlo="negate")
positive = elementwise("positive",        1,                                              python="+a", signs=(1,), exact=True, stablehlo=stablehlo_rules.as_it_is)

# ------------------------------------------------------------------------------ exp, log and powers
#                                         ∂y/∂x

exp = elementwise("exp",                  lambda y, x: y,                       math=math.exp, vector=True, slope="finite", least=signs.ABOVE_ZERO, stablehlo="exponential")
exp2 = elementwise("exp2",                lambda y, x: math.log(2) * y,         math=getattr(math, "exp2", None), vector=True, slope="finite", least=signs.ABOVE_ZERO, stablehlo=stablehlo_rules.in_ops(lambda x: power(2.0, x)))  # of Python 3.11
expm1 = elementwise("expm1",              lambda y, x: exp(x),                  math=math.expm1, vector=True, slope="finite", least=signs.same_sign, stablehlo="exponential_minus_one")
log = elementwise("log",                  lambda y, x: 1 / x,                   math=math.log, vector=True, slope=signs.pole_at_zero, tame_at_one=True, stablehlo="log")
log2 = elementwise("log2",                lambda y, x: 1 / (math.log(2) * x),   math=math.log2, vector=True, slope=signs.pole_at_zero, tame_at_one=True, stablehlo=stablehlo_rules.in_ops(lambda x: log(x) / math.log(2)))
log10 = elementwise("log10",              lambda y, x: 1 / (math.log(10) * x),  math=math.log10, vector=True, slope=signs.pole_at_zero, tame_at_one=True, stablehlo=stablehlo_rules.in_ops(lambda x: log(x) / math.log(10)))
log1p = elementwise("log1p",              lambda y, x: 1 / (1 + x),             math=math.log1p, vector=True, tame_at_one=True, least=signs.same_sign, stablehlo="log_plus_one")
sqrt = elementwise("sqrt",                lambda y, x: 0.5 / y,                 math=math.sqrt, slope=signs.steep_at_zero, root=2, exact=True, tame_at_one=True, stablehlo="sqrt")
cbrt = elementwise("cbrt",                lambda y, x: 1 / (3 * y * y),         math=getattr(math, "cbrt", None), slope=signs.steep_at_zero, root=3, tame_at_one=True, stablehlo="cbrt")
square = elementwise("square",            lambda y, x: 2 * x, slope="finite", contracts=True, least=signs.square, stablehlo=stablehlo_rules.in_ops(lambda x: x * x))
ldexp = elementwise("ldexp",              lambda y, x, n: ldexp(1.0, n),          None, linear=(0,), slope="finite", exact=True, least=signs.same_sign)
reciprocal = elementwise("reciprocal",    lambda y, x: -y * y, slope=signs.pole_at_zero, exact=True, tame_at_one=True, stablehlo=stablehlo_rules.in_ops(lambda x: 1 / x))
#                                         ∂y/∂a                       ∂y/∂b
def _share(y, a, b, exponential):
    """The share of exp(a) in exp(y) = exp(a) + exp(b): exp(a - y), 0 where all are 0, and decided
    by a - b where y is infinite.

    If one of the terms is a known finite number, the sum is not -inf, and infinite only because of
    the other.
    """
    if any(isinstance(n := getattr(x, "constant", x), (int, float)) and math.isfinite(n)
           for x in (a, b)):
        return where(equal(a, math.inf), 1.0, exponential(a - y))
    infinite = equal(y, math.inf)
    return exponential(where(infinite, minimum(a - b, 0.0),
                             a - where(bitwise_or(infinite, equal(y, -math.inf)), 0.0, y)))


logaddexp = elementwise("logaddexp",      lambda y, a, b: _share(y, a, b, exp), lambda y, a, b: _share(y, b, a, exp), vector=True, slope="finite", stablehlo=stablehlo_rules.in_ops(lambda a, b: where(equal(a, b), a + math.log(2), maximum(a, b) + log1p(exp(-absolute(a - b))))))
logaddexp2 = elementwise("logaddexp2",    lambda y, a, b: _share(y, a, b, exp2), lambda y, a, b: _share(y, b, a, exp2), slope="finite")
hypot = elementwise("hypot",              lambda y, a, b: slope_of_size(y, a), lambda y, a, b: slope_of_size(y, b), math=math.hypot, slope="finite", size=True, stablehlo=stablehlo_rules.in_ops(lambda a, b: _length(a, b)))

# --------------------------------------------------------------------- trigonometric and hyperbolic
#                                         ∂y/∂x

sin = elementwise("sin",                  lambda y, x: cos(x),                  math=math.sin, vector=True, slope="finite", stablehlo="sine")
cos = elementwise("cos",                  lambda y, x: -sin(x),                 math=math.cos, vector=True, slope="finite", stablehlo="cosine")
tan = elementwise("tan",                  lambda y, x: 1 + y * y,               math=math.tan, vector=True, tame_at_one=True, stablehlo="tan")
arcsin = elementwise("arcsin",            lambda y, x: 1 / sqrt(1 - x * x),     math=math.asin, slope="steep", least=signs.same_sign, stablehlo=stablehlo_rules.in_ops(lambda x: arctan2(x, sqrt((1 - x) * (1 + x)))))
arccos = elementwise("arccos",            lambda y, x: -1 / sqrt(1 - x * x),    math=math.acos, slope="steep", least=signs.ZERO, stablehlo=stablehlo_rules.in_ops(lambda x: arctan2(sqrt((1 - x) * (1 + x)), x)))
arctan = elementwise("arctan",            lambda y, x: 1 / (1 + x * x),         math=math.atan, vector=True, slope="finite", least=signs.same_sign, stablehlo=stablehlo_rules.in_ops(lambda x: arctan2(x, 1.0)))
sinh = elementwise("sinh",                lambda y, x: cosh(x),                 math=math.sinh, vector=True, slope="finite", least=signs.same_sign, stablehlo=stablehlo_rules.in_ops(lambda x: _sinh(x)))
cosh = elementwise("cosh",                lambda y, x: sinh(x),                 math=math.cosh, vector=True, slope="finite", least=0.5, stablehlo=stablehlo_rules.in_ops(lambda x: exp(absolute(x) - math.log(2)) + exp(-absolute(x) - math.log(2))))  # 1, however it is rounded
tanh = elementwise("tanh",                lambda y, x: 1 - y * y,               math=math.tanh, vector=True, slope="finite", least=signs.same_sign, stablehlo="tanh")
arcsinh = elementwise("arcsinh",          lambda y, x: 1 / _length_with_one(x),   math=math.asinh, slope="finite", least=signs.same_sign, stablehlo=stablehlo_rules.in_ops(lambda x: _arcsinh(x)))
arccosh = elementwise("arccosh",          lambda y, x: 1 / (sqrt(x - 1) * sqrt(x + 1)), math=math.acosh, slope="steep", least=signs.ZERO, stablehlo=stablehlo_rules.in_ops(lambda x: where(x > 1e9, log(x) + math.log(2), log1p((x - 1) + sqrt((x - 1) * (x + 1))))))
arctanh = elementwise("arctanh",          lambda y, x: 1 / (1 - x * x),         math=math.atanh, least=signs.same_sign, stablehlo=stablehlo_rules.in_ops(lambda x: 0.5 * (log1p(x) - log1p(-x))))
degrees = elementwise("degrees",          lambda y, x: 180 / pi,                math=math.degrees, also=(np.rad2deg,), slope="finite", least=signs.same_sign, stablehlo=stablehlo_rules.in_ops(lambda x: x * (180 / pi)))
radians = elementwise("radians",          lambda y, x: pi / 180,                math=math.radians, also=(np.deg2rad,), slope="finite", least=signs.same_sign, stablehlo=stablehlo_rules.in_ops(lambda x: x * (pi / 180)))
sinc = elementwise("sinc",                lambda y, x: _sinc_slope(y, x), slope="finite")
#                                         ∂y/∂a                                 ∂y/∂b
arctan2 = elementwise("arctan2",          lambda y, a, b: b / hypot(a, b) / hypot(a, b), lambda y, a, b: -a / hypot(a, b) / hypot(a, b),
                      math=math.atan2, vector=True, slope=signs.of_angle, tame_at_one=True, stablehlo="atan2")

# ----------------------------------------------------------------------------- choices: 1 if chosen
#                                         ∂y/∂a                              ∂y/∂b

maximum = elementwise("maximum",          lambda y, a, b: _larger(a, b),     lambda y, a, b: _larger(b, a), vector=True, slope="finite", chooses=True, extreme=1, halves_ties=True, integral=True, stablehlo="maximum")
minimum = elementwise("minimum",          lambda y, a, b: _larger(b, a),     lambda y, a, b: _larger(a, b), vector=True, slope="finite", chooses=True, extreme=-1, halves_ties=True, integral=True, stablehlo="minimum")
fmax = elementwise("fmax",                lambda y, a, b: _chosen(y, a, b),  lambda y, a, b: _chosen(y, b, a), slope="finite", chooses=True, extreme=1, skips_nan=True, halves_ties=True, stablehlo=stablehlo_rules.skipping_nan("maximum"))
fmin = elementwise("fmin",                lambda y, a, b: _chosen(y, a, b),  lambda y, a, b: _chosen(y, b, a), slope="finite", chooses=True, extreme=-1, skips_nan=True, halves_ties=True, stablehlo=stablehlo_rules.skipping_nan("minimum"))
max_ = elementwise("max_",                lambda y, a, b: where(less(a, b), 0, 1),
                                                                             lambda y, a, b: where(less(a, b), 1, 0),
                   python="max(a, b)", result=joined, slope="finite", batch=lambda a, b: where(less(a, b), b, a), chooses=True, extreme=1, returns_operand=True, of_numbers=True, stablehlo=stablehlo_rules.chosen_operand("LT"))
min_ = elementwise("min_",                lambda y, a, b: where(less(b, a), 0, 1),
                                                                             lambda y, a, b: where(less(b, a), 1, 0),
                   python="min(a, b)", result=joined, slope="finite", batch=lambda a, b: where(less(b, a), b, a), chooses=True, extreme=-1, returns_operand=True, of_numbers=True, stablehlo=stablehlo_rules.chosen_operand("GT"))
#                                         ∂y/∂c    ∂y/∂a                            ∂y/∂b
where = elementwise("where",              None,    lambda y, c, a, b: where(c, 1, 0), lambda y, c, a, b: where(c, 0, 1),
                    evaluate=lambda c, a, b: np.where(c, a, b)[()], fold=identities.where, slope="finite", linear=(1, 2), selects=True, chooses=True, stablehlo=stablehlo_rules.choice)
select = elementwise("select",            None,    lambda y, c, a, b: where(c, 1, 0), lambda y, c, a, b: where(c, 0, 1),
                     python="b if a else c", result=lambda c, a, b: _type_of_choice(c, a, b), fold=identities.decided, slope="finite", batch=where, linear=(1, 2), selects=True, chooses=True, returns_operand=True, stablehlo=stablehlo_rules.choice)
#                                         ∂y/∂x                              ∂y/∂lo, ∂y/∂hi
clip = elementwise("clip",                lambda y, x, lo, hi: where(equal(y, x), where(bitwise_or(equal(x, lo), equal(x, hi)), 0.5, 1), 0),
                                                                             lambda y, x, lo, hi: _below(x, lo, hi),
                                                                             lambda y, x, lo, hi: _above(x, lo, hi),
                   fold=identities.clip, slope="finite", chooses=True, halves_ties=True, least=signs.clipped, stablehlo=stablehlo_rules.clipped)

# ------------------------------------------------------------------------------- signs and rounding
#                                         ∂y/∂x

absolute = elementwise("absolute",        lambda y, x: _direction(y, x),        syntax=numpy_syntax("abs"), slope="finite", size=True, integral=True, exact=True, stablehlo=stablehlo_rules.magnitude)
abs_ = elementwise("abs_",                lambda y, x: _direction(y, x),        python="abs(a)", slope="finite", batch=absolute, size=True, integral=True, exact=True, stablehlo=stablehlo_rules.magnitude)
fabs = elementwise("fabs",                lambda y, x: _direction(y, x),                 math=math.fabs, slope="finite", size=True, exact=True, stablehlo=stablehlo_rules.magnitude)
sign = elementwise("sign",                None, exact=True, least=signs.same_sign, stablehlo=stablehlo_rules.sign)
floor = elementwise("floor",              None,                                 math=math.floor, exact=True, least=signs.whole, stablehlo=stablehlo_rules.rounding("floor"))
ceil = elementwise("ceil",                None,                                 math=math.ceil, exact=True, least=signs.whole, stablehlo=stablehlo_rules.rounding("ceil"))
trunc = elementwise("trunc",              None,                                 math=math.trunc, exact=True, least=signs.whole, stablehlo=stablehlo_rules.truncated)
rint = elementwise("rint",                None, exact=True, least=signs.whole, stablehlo=stablehlo_rules.rounding("round_nearest_even"))
nan_to_num = elementwise("nan_to_num",    lambda y, x: where(isfinite(x), 1, 0), slope="finite", chooses=True, least=signs.and_zero)
#                                         ∂y/∂a                                 ∂y/∂b
nextafter = elementwise("nextafter",      1,                                    None,     math=math.nextafter)
spacing = elementwise("spacing",          None)
copysign = elementwise("copysign",        lambda y, a, b: sign(a) * sign(y),    None,     math=math.copysign, slope="finite", exact=True)
heaviside = elementwise("heaviside",      None,                                 lambda y, a, b: where(equal(a, 0), 1, 0),
                        fold=identities.heaviside, slope="finite")
round_ = elementwise("round",             None,                                 None,     syntax=lambda x, n: _round_syntax(x, n), least=signs.rounded)

# ---------------------------------------------------------------------------------- complex numbers
#                                         ∂y/∂x

real = elementwise("real",                1, linear=(0,), read_only=True, exact=True, least=signs.moved, stablehlo=stablehlo_rules.real_part)
imag = elementwise("imag",                -1j, linear=(0,), read_only=True, exact=True, stablehlo=stablehlo_rules.imaginary_part)
conjugate = elementwise("conjugate",      1,  linear=(0,), syntax=numpy_syntax("conj"), exact=True, stablehlo=stablehlo_rules.conjugated)  # not holomorphic: its rules are below

#                                         ∂y/∂a    ∂y/∂b
complex_of = elementwise("complex_of",    1,       1j,  evaluate=complex, syntax=builtin_syntax("complex"),
                         result=lambda a, b: Scalar("complex128", weak=True),  # of two numbers
                         batch=lambda a, b: a + 1j * b, stablehlo="complex")

# ---------------------------------------------------------------------- comparisons, logic and bits

less = elementwise("less",                      None, None, python="a < b", compares=True, fold=identities.comparison, stablehlo=stablehlo_rules.comparison("LT"))
less_equal = elementwise("less_equal",          None, None, python="a <= b", compares=True, fold=identities.comparison, stablehlo=stablehlo_rules.comparison("LE"))
greater = elementwise("greater",                None, None, python="a > b", compares=True, fold=identities.comparison, stablehlo=stablehlo_rules.comparison("GT"))
greater_equal = elementwise("greater_equal",    None, None, python="a >= b", compares=True, fold=identities.comparison, stablehlo=stablehlo_rules.comparison("GE"))
equal = elementwise("equal",                    None, None, python="a == b", commutes=True, compares=True, fold=identities.comparison, stablehlo=stablehlo_rules.comparison("EQ"))
not_equal = elementwise("not_equal",            None, None, python="a != b", commutes=True, compares=True, fold=identities.comparison, stablehlo=stablehlo_rules.comparison("NE"))
logical_and = elementwise("logical_and",        None, None, stablehlo=stablehlo_rules.logical("and"))
logical_or = elementwise("logical_or",          None, None, stablehlo=stablehlo_rules.logical("or"))
logical_xor = elementwise("logical_xor",        None, None, stablehlo=stablehlo_rules.logical("xor"))
logical_not = elementwise("logical_not",        None, negates=True, stablehlo=stablehlo_rules.logical("not"))
not_ = elementwise("not_",                      None,       python="not a", batch=logical_not, negates=True, of_numbers=True, stablehlo=stablehlo_rules.logical("not"))
and_ = elementwise("and_",                      None, None, python="a and b", result=lambda a, b: Scalar("bool"), batch=logical_and, of_numbers=True, stablehlo=stablehlo_rules.logical("and"))  # of truth values
or_ = elementwise("or_",                        None, None, python="a or b", result=lambda a, b: Scalar("bool"), batch=logical_or, of_numbers=True, stablehlo=stablehlo_rules.logical("or"))
bitwise_and = elementwise("bitwise_and",        None, None, python="a & b", fold=identities.both, least=signs.bits_of_both, stablehlo="and")
bitwise_or = elementwise("bitwise_or",          None, None, python="a | b", least=signs.bits_of_either, stablehlo="or")
bitwise_xor = elementwise("bitwise_xor",        None, None, python="a ^ b", least=signs.bits_of_either, stablehlo="xor")
invert = elementwise("invert",                  None,       python="~a", stablehlo="not")
left_shift = elementwise("left_shift",          None, None, python="a << b")
right_shift = elementwise("right_shift",        None, None, python="a >> b", least=signs.not_less_than_zero)
isnan = elementwise("isnan",                    None,       math=math.isnan, tests_finite=True, stablehlo=stablehlo_rules.is_nan)
isinf = elementwise("isinf",                    None,       math=math.isinf, tests_finite=True, stablehlo=stablehlo_rules.is_infinite)
isfinite = elementwise("isfinite",              None,       math=math.isfinite, tests_finite=True, stablehlo=stablehlo_rules.is_finite)
signbit = elementwise("signbit",                None)

# -------------------------------------------------------------- derivatives of what was thrown away

#                                                 ∂y/∂a                  ∂y/∂b
strong_product = elementwise("strong_product",    lambda y, a, b: b,     lambda y, a, b: a,  slope="finite", fold=identities.strong_product,
                             syntax=python_syntax("np.where(a != 0, a * b, 0.0)"),
                             evaluate=lambda a, b: _strong_product(a, b), stablehlo=stablehlo_rules.product_or_zero)  # Note [Strong zeros], chain_rule.py
strong_both = elementwise("strong_both",          lambda y, a, b: b,     lambda y, a, b: a,  slope="finite",
                          syntax=python_syntax("np.where((a != 0) & (b != 0), a * b, 0.0)"),
                          evaluate=lambda a, b: _strong_product(a, b, b))  # 0 where either is 0

# ------------------------------------------------------- facts for the printer and for native code

# NumPy's warnings, besides those at poles
state(ldexp, exp, exp2, expm1, sinh, cosh, sqrt, cbrt, square, floor_divide, warns="overflow")
state(logaddexp, logaddexp2, hypot, arctan, arcsinh, remainder, fmod, slope_warns=True)
state(less, less_equal, greater, greater_equal, equal, not_equal, where, select, logical_not, not_, and_, or_,
      bitwise_and, bitwise_or, isnan, isinf, isfinite, sign, negative, positive, real, imag, conjugate, warns="never")
state(exp, exp2, expm1, log, log2, log10, log1p, logaddexp, power, hypot, cbrt, sin, cos, tan, sinh, cosh, tanh,
      arcsin, arccos, arctan, arctan2, arcsinh, arccosh, arctanh, cost=6)  # 3 where vectorised, 12 by libm
state(where, select, minimum, maximum, min_, max_, keeps_dtype=True)
state(add, subtract, multiply, negative, positive, maximum, minimum, absolute, quick=True)
positive.same_elements = True
state(add, subtract, multiply, ring=True)
add.of_truths, multiply.of_truths = bitwise_or, bitwise_and

OPERATORS.update({name: RECORDS[name] for name in RECORDS if RECORDS[name].elementwise})

divide.raises, floor_divide.raises, remainder.raises = raise_conditions.TRUE_DIVISION, raise_conditions.DIVISION, raise_conditions.DIVISION
power.raises, left_shift.raises, right_shift.raises = raise_conditions.POWER, raise_conditions.LEFT_SHIFT, raise_conditions.RIGHT_SHIFT
abs_.raises = raise_conditions.ABSOLUTE
for _record in (max_, min_, not_, and_, or_):
    _record.raises = raise_conditions.TRUTH
for _record in (hypot, arctan, arcsinh, fmod, power):
    IN_MATH[_record].slope_warns = True

# ------------------------------------------------------ where the derivatives above are conventions

for _each in (absolute, abs_, fabs):
    kinked(_each, Kink("a size at 0: the derivative is taken as 0, between -1 and 1", at_zero))
kinked(hypot, Kink(SIZE, size_zero))
kinked(sqrt, Kink(ROOT, at_zero, always=True))
kinked(cbrt, Kink(STEEP, at_zero, always=True))
for _each in (arcsin, arccos):
    kinked(_each, Kink(STEEP, lambda y, x: np.equal(np.abs(x), 1), always=True))
kinked(arccosh, Kink(STEEP, lambda y, x: np.equal(x, 1), always=True))
kinked(power, Kink(ROOT,
                   lambda y, a, b: np.equal(a, 0) & (np.real(b) > 0) & (np.real(b) < 1), of=(0,), always=True))
kinked(sign, Kink("a step: the derivative is taken as 0", at_zero))
for _each in (floor, ceil, trunc):
    kinked(_each, Kink("a step: the derivative is taken as 0", at_integers))
kinked(rint, Kink("a step: the derivative is taken as 0", at_halves))
kinked(round_, Kink("a step: the derivative is taken as 0", at_halves))
kinked(heaviside, Kink("a step: the derivative is taken as 0", lambda y, a, b: np.equal(a, 0), of=(0,)))
kinked(copysign, Kink("a size at 0: the derivative is taken as 0", lambda y, a, b: np.equal(a, 0), of=(0,)),
       Kink("a step: the derivative is taken as 0", lambda y, a, b: np.equal(b, 0), of=(1,)))
kinked(signbit, Kink("a step: the derivative is taken as 0", at_zero))
for _each in (remainder, fmod):
    kinked(_each,
           Kink("a step, where the remainder begins again: that of the next period is taken",
                size_zero))
kinked(floor_divide, Kink("a step: the derivative is taken as 0", lambda y, a, b: np.equal(a, y * b)))
for _each in (maximum, minimum, fmax, fmin):
    kinked(_each, Kink("a tie: each operand gets half of the derivative", equal_operands))
for _each in (max_, min_):
    kinked(_each, Kink("a tie: the operand that is returned gets the derivative", equal_operands))
kinked(clip, Kink("at a bound: half of the derivative is taken", lambda y, x, lo, hi: np.equal(x, lo) | np.equal(x, hi)))
kinked(nan_to_num, Kink("what is no number is replaced, and has derivative 0", lambda y, x: ~np.isfinite(x), always=True))
for _each in (divide, quotient, single_quotient):
    kinked(_each, Kink("0 / 0 has no value, and its derivative is nan", zero_over_zero, always=True))
kinked(arctan2, Kink("the angle of 0 has no derivative, and nan is taken", zero_over_zero, always=True),
       Kink("an angle of pi, where it jumps to -pi: the derivative is that of the side that it is on", lambda y, a, b: np.equal(a, 0) & np.less(b, 0), of=(0,)))
for _each in (sqrt, log, log2, log10, power):
    kinked(_each, Kink("a negative number, at which complex functions jump: the derivative is that of the side that it is on", on_cut))
kinked(power, Kink("0 ** 0: the derivative in the base is taken as that of a constant", zero_over_zero, of=(0,)),
       Kink("a power of what is not positive: the derivative in the exponent is taken as 0", lambda y, a, b: ~np.iscomplexobj(a) & np.less(np.real(a), 0) | np.equal(a, 0) & (np.real(b) <= 0), of=(1,), always=True))
for _each in (less, less_equal, greater, greater_equal, equal, not_equal):
    kinked(_each, Kink(COMPARED, equal_operands))
for _each in (logical_and, logical_or, logical_xor, logical_not, not_):
    kinked(
        _each,
        Kink(
            ASKED,
            lambda y, *xs: np.any([np.equal(x, 0) for x in np.broadcast_arrays(*xs)], axis=0)))

# ----------------------------------------------------------------------- what does not fit in a row




def _in_single(call: ast.Call) -> ast.Call:
    """The call with dtype=np.float32."""
    return ast.Call(call.func, call.args,
                    [ast.keyword("dtype",
                                 ast.Attribute(ast.Name("np", ast.Load()), "float32", ast.Load()))])


def _power_slope(y, a, b):
    """∂(a ** b)/∂a: 2 * a for a ** 2, 0.5 / y for a ** 0.5; 0, not 0 * a ** -1, for b = 0 (a may be
    0).
    """
    match getattr(b, "constant", b):
        case bool():
            return b * a ** 0
        case int() | float() as n if n in (0, 1):
            return n
        case int() | float() as n if n == 2:
            return n * a
        case int() | float() as n if n == 0.5:
            return 0.5 / y
        case int() | float() as n if n < 1 and _is_pythons(a):
            # a power of 0 would raise, and one of a large number
            return n / a ** (1 - n) if n > 0 else n * y / a
        case int() | float() as n:
            return n * a ** (n - 1)
    base = (RECORDS["convert"](a, dtype="float64")
            if _is_pythons(a) and _is_pythons(b) and b.type.dtype == "float64" else a)
    return b * base ** where(equal(b, 0), 1, b - 1)


def _is_pythons(x) -> bool:
    return isinstance(x, Value) and isinstance(x.type, Scalar) and x.type.weak


def _positive(a):
    """`a`, replaced by 1 where it is not positive (complex: where it is 0), so that its logarithm
    is finite, and 0 there.
    """
    constant = getattr(a, "constant", a)
    if isinstance(constant, (int, float)) and constant > 0:
        return a
    return where(equal(a, 0), 1, a) if _is_complex(a) else where(greater(a, 0), a, 1)


def _is_complex(x) -> bool:
    return str(getattr(getattr(x, "type", x), "dtype", None)).startswith("complex")


def _length_with_one(x):
    """sqrt(x * x + 1): of real numbers np.hypot has it, which squares none that are large."""
    return sqrt(x * x + 1) if _is_complex(x) else hypot(x, 1)


def quotient_near_zero(numerator, x, series):
    """numerator / x, and `series(x)` where |x| < 0.1: there the numerator has lost its digits, and
    at 0 it is 0 / 0.

    The series is right for derivatives of any order.  Considered: the limit at 0 alone, which is
    right only for the first, and only at 0.
    """
    near = less(absolute(x), 0.1)
    return where(near, series(where(near, x, 0)), numerator / where(near, 1, x))


def _sinc_slope(y, x):
    """(cos(πx) - sinc(x)) / x: -π times the spherical Bessel function j1(πx)."""
    return quotient_near_zero(cos(pi * x) - y, x, _series_of_sinc)


def _series_of_sinc(x):
    """The derivative of sinc for |x| < 0.1: Σ (-1)**k (2 k) / (2 k + 1)! π**(2 k) x**(2 k - 1) from
    k = 1 on.
    """
    terms = [(-1) ** k * 2 * k / math.factorial(2 * k + 1) * pi ** (2 * k) for k in range(1, 7)]
    square = x * x
    return x * functools.reduce(lambda total, term: term + square * total, reversed(terms))


def _larger(a, b):
    """1 where a is larger, 0 where b is, 1/2 at a tie."""
    return where(equal(a, b), 0.5, where(greater(a, b), 1, 0))


def _chosen(y, a, b):
    """1 where y is a, also because b is NaN; 1/2 at a tie."""
    return where(equal(a, b), 0.5, where(equal(y, a), 1, 0))


def _below(x, lo, hi):
    """1 where clip(x, lo, hi) is lo; 1/2 where x equals lo."""
    return where(greater(lo, hi), 0, _larger(lo, x))


def _above(x, lo, hi):
    """1 where clip(x, lo, hi) is hi; 1/2 where x equals hi."""
    return _larger(maximum(x, lo), hi)


def _direction(y, x):
    """x / |x|, conjugated, with y = |x|; 0 at 0.  Of a real number it is the sign, which is
    constant on both sides.
    """
    if _is_complex(x):
        return slope_of_size(y, conjugate(x))
    return RECORDS["times_sign_forward" if forwards.active else "times_sign"](1.0, x)


def slope_of_size(y, x):
    """The derivative of the norm y = sqrt(x * x + ...) in x; 0 at 0."""
    return RECORDS["over_size_forward" if forwards.active else "over_size"](1.0, x, not_zero(y), y)


def not_zero(y):
    """`y`, replaced by 1 where it is 0, as a divisor of what is 0 there."""
    return where(equal(y, 0), 1, y)


def _strong_product(a, b, other=1):
    """`a * b`, and 0 where a is 0, whatever b is, or where `other` is."""
    with np.errstate(all="ignore"):
        return np.where((a != 0) & (other != 0), a * b, np.zeros_like(a * b))[()]


def _strong_vjp(bar, y, a, b):
    """The cotangents of a strong product: where a is 0, b does not matter, but a change of a does.
    Where a or b is 0, that of b is 0.
    """
    return (like_operand(sum_to(times(bar, b, (y, a, b)), a), a),
            like_operand(sum_to(strong_both(bar, a), b), b))


def _strong_jvp(dots, y, a, b):
    """The tangent as two strong products: a zero tangent of a masks b out."""
    with strong_zeros():
        terms = [times(x, other)
                 for x, other in ((dots[0], b), (a, dots[1]))
                 if x is not None and other is not None]
    return like_tangent(functools.reduce(add, terms), y) if terms else None


def _strong_both_jvp(dots, y, a, b):
    terms = [strong_both(x, other)
             for x, other in ((dots[0], b), (a, dots[1])) if x is not None and other is not None]
    return like_tangent(functools.reduce(add, terms), y) if terms else None


strong_both.vjp = lambda bar, y, a, b: tuple(like_operand(sum_to(strong_both(bar, other), x), x) for x, other in ((a, b), (b, a)))
strong_both.jvp = _strong_both_jvp
strong_product.vjp, strong_product.jvp = _strong_vjp, _strong_jvp
state(strong_both, strong_product,
      states_both="what is 0 masks the other in a tangent, and not in its own cotangent")

_type_of_where = sampled(np.where, "where")


def _type_of_choice(condition, a, b):
    """Python numbers stay Python numbers; NumPy's are promoted as by np.where."""
    return joined(a, b) if a.weak and b.weak else _type_of_where(condition, a, b)


def _round_syntax(x: ast.expr, decimals: ast.expr) -> ast.expr:
    """The syntax np.round(x, decimals), without decimals if they are 0."""
    integral = isinstance(decimals, ast.Constant) and decimals.value == 0
    return numpy_syntax("round")(x) if integral else numpy_syntax("round")(x, decimals)


real.views = imag.views = (0,)  # of an array of complex numbers; of reals, np.real gives the array itself
conjugate.vjp = lambda bar, y, x: (like_operand(conjugate(bar), x),)

# ------------------------------------------- what native code computes instead: Note [Lowering rules]


def _kind(x: Value) -> str:
    """The letter of NumPy's for the kind of the dtype of `x`: "i", "u", "f", "c" or "b"."""
    return np.dtype(x.type.dtype).kind


@lowers(add, multiply)
def _lower_arithmetic(op: Op, a: Value, b: Value) -> Value | None:
    """NumPy's p + q and p * q of booleans are p | q and p & q; Numba computes with integers."""
    return op.record.of_truths(a, b) if op.output.type.dtype == "bool" else None


@lowers(floor_divide)
def _lower_floor_divide(op: Op, a: Value, b: Value) -> Value | None:
    """Numba's least int // -1 is 0."""
    quotient = op.output.type
    if (quotient.dtype != "int64" or b.constant not in (MISSING, -1)
            or isinstance(quotient, Scalar) and quotient.weak):
        return None
    return -a if b.constant == -1 else where(equal(b, -1), -a, floor_divide(a, b))


def natural_exponent(k):
    if k < 0:
        raise ValueError("integers to negative integer powers are no integers: make one of the two a float")
    return k


natural_exponent_op = define(
    natural_exponent.__name__,
    evaluate=natural_exponent,
    infer=lambda k: INT,
    fold=lambda k: k if k.constant is not MISSING and k.constant >= 0 else None,
    helper=natural_exponent, checks=True,
    syntax=builtin_syntax(natural_exponent.__name__),
)


@lowers(power)
def _lower_power(op: Op, x: Value, exponent: Value) -> Value | None:
    """Numba's power of integers is 0 for a negative exponent.  NumPy computes x ** 0.5 as
    np.sqrt(x), and z ** -1 as np.reciprocal(z): they differ for -inf, say, and where z is 0.
    """
    if _kind(op.output) in "iu" and isinstance(exponent.type, Scalar):
        natural = int_(exponent) if exponent.type.dtype == "bool" else exponent
        return power(x, natural_exponent_op(natural))
    if not isinstance(x.type, Array) or _kind(x) not in "fc":
        return None
    if type(exponent.constant) is float and exponent.constant == 0.5:
        return sqrt(x)
    is_inverse = type(exponent.constant) is int and exponent.constant == -1
    return reciprocal(x) if is_inverse and _is_complex(x) else None


# 2.0 ** n may overflow, or underflow, where its product with a cotangent does not
ldexp.vjp = lambda bar, y, x, n: (like_operand(sum_to(ldexp(bar, n), x), x), None)


@lowers(ldexp)
def _lower_ldexp(op: Op, x: Value, n: Value) -> Value:
    """Products with powers of 2 that are numbers, of which at most the last is rounded."""
    k = as_dtype(minimum(maximum(n, -2124), 2200), "float64")
    huge, large = greater(k, 2000.0), greater(k, 1000.0)
    small, least = less(k, -1074.0), less(k, -2070.0)
    first = where(large, 1000.0, where(least, -1050.0, where(small, -1000.0, 0.0)))
    second = where(huge, 1000.0, 0.0)
    near = (as_dtype(x, "float64")
            * where(large, 2.0 ** 1000, where(least, 2.0 ** -1050, where(small, 2.0 ** -1000, 1.0)))
            * where(huge, 2.0 ** 1000, 1.0))
    rest = power(value(2.0), k - first - second)
    return as_dtype(near * rest, op.output.type.dtype)


@lowers(fmod)
def _lower_fmod(op: Op, a: Value, b: Value) -> Value | None:
    """The sign of Numba's is wrong for integers."""
    return sign(a) * (absolute(a) % absolute(b)) if _kind(op.output) == "i" else None


@lowers(IN_MATH[fmod])
def _lower_fmod_of_numbers(op: Op, *xs: Value) -> Value | None:
    if any(x.type.dtype not in ("int64", "bool") for x in xs):
        return None
    return op.record(*map(float_, xs))


if cbrt in IN_MATH:
    IN_MATH[cbrt].lower = lambda op, x: float_(cbrt(x))  # Numba knows only NumPy's


@lowers(sign)
def _lower_sign(op: Op, x: Value) -> Value | None:
    """Numba's sign of an uint8 of 200 is -1."""
    return as_dtype(not_equal(x, 0), op.output.type.dtype) if _kind(op.output) == "u" else None


@lowers(round_)
def _lower_round(op: Op, x: Value, decimals: Value) -> Value | None:
    """np.rint is one instruction; Numba's np.round is compiled for any number of decimals."""
    return rint(x) if decimals.constant == 0 and _kind(op.output) == "f" else None


@lowers(left_shift, right_shift)
def _lower_shift(op: Op, a: Value, by: Value) -> Value | None:
    """The machine takes the count modulo 64; in NumPy nothing is left where it is out of range."""
    if not isinstance(op.output.type, Array) or by.type.dtype == "bool":
        return None
    places = 8 * np.dtype(op.output.type.dtype).itemsize
    if type(by.constant) is int and 0 <= by.constant < places:
        return None
    is_near = bitwise_and(greater_equal(by, 0), less(by, places))
    if op.record is left_shift:
        return where(is_near, left_shift(a, by), 0)
    return right_shift(a, where(is_near, by, places - 1))


@lowers(less, less_equal, greater, greater_equal)
def _lower_comparison(op: Op, a: Value, b: Value) -> Value | None:
    """Numba compares no complex numbers."""
    return complex_order(op.record, a, b) if _is_complex(a) or _is_complex(b) else None


def complex_order(compare: Record, a: Value, b: Value) -> Value:
    """`compare` of numbers of which one is complex, in lexicographic order."""
    (a, p), (b, q) = ((real(x), imag(x)) if _is_complex(x) else (x, value(0.0)) for x in (a, b))
    strictly = less if compare in (less, less_equal) else greater
    # and no part is NaN
    apart = [strictly(a, b), *(equal(x, x) for x in (p, q) if x.constant is MISSING)]
    alike = bitwise_and(equal(a, b), compare(p, q))
    return bitwise_or(functools.reduce(bitwise_and, apart), alike)


@lowers(astype)
def _lower_astype(op: Op, x: Value) -> Value | None:
    """Of complex numbers NumPy takes the real parts, and Numba converts none."""
    dtype = op.attrs["dtype"]
    if not _is_complex(x) or np.dtype(dtype).kind not in "iuf":
        return None
    return as_dtype(real(x), dtype)


# ------------------------------------------------------------------ of what StableHLO has no op for


def _sinh(x):
    """sinh, exact near 0 and finite as far as it is."""
    near = expm1(where(absolute(x) < 1, x, 0.0))
    far = exp(absolute(x) - math.log(2)) - exp(-absolute(x) - math.log(2))
    return where(absolute(x) < 1, 0.5 * (near + near / (near + 1)), where(x < 0, -far, far))


def _arcsinh(x):
    """arcsinh, exact near 0, and without squares of large numbers."""
    size = absolute(x)
    near = where(size > 1e9, 1.0, size)
    found = where(size > 1e9, log(size) + math.log(2),
                  log1p(near + near * near / (1 + sqrt(near * near + 1))))
    return where(x < 0, -found, found)


def _length(a, b):
    """hypot, without squares of large or small numbers."""
    large, small = maximum(absolute(a), absolute(b)), minimum(absolute(a), absolute(b))
    ratio = small / where(equal(large, 0), 1.0, large)
    infinite = bitwise_or(isinf(a), isinf(b))
    return where(infinite, math.inf, large * sqrt(1 + ratio * ratio))
