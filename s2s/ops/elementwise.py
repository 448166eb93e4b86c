"""Elementwise ops: a table of the derivatives learned at school.

Each row: the op's name in NumPy, and ∂y/∂x for each operand as a function of the result `y` and the operands.
Both modes, batching and fusion follow from that.  A partial of 1 or -1 is written as the number; None says
that the operand carries no derivative.  `math` names the twin of an op in Python's math module.

Where calculus is silent: at a tie, maximum and minimum give each operand half, as JAX does; Python's max and
min and np.clip follow the operand they return; abs has derivative 0 at 0; a ** b has derivative 0 with respect
to b where a is not positive.
"""

from __future__ import annotations

import ast
import math
import operator

import numpy as np

from ..ir.graph import OPERATORS
from . import fold
from .chain import like_operand, like_tangent
from .record import RECORDS
from .ufunc import (
    binary,
    builtin_syntax,
    compare,
    elementwise,
    joined,
    numpy_syntax,
    sampled,
    unary,
)

# ------------------------------------------------------------------------------------- arithmetic
#                                              ∂y/∂a                            ∂y/∂b

add = elementwise("add",                       1,                               1,
                  evaluate=operator.add, syntax=binary(ast.Add()), operator=True, fold=fold.add)
subtract = elementwise("subtract",             1,                               -1,
                       evaluate=operator.sub, syntax=binary(ast.Sub()), operator=True, fold=fold.subtract)
multiply = elementwise("multiply",             lambda y, a, b: b,               lambda y, a, b: a,
                       evaluate=operator.mul, syntax=binary(ast.Mult()), operator=True, fold=fold.multiply)
divide = elementwise("divide",                 lambda y, a, b: 1 / b,           lambda y, a, b: -y / b,
                     evaluate=operator.truediv, syntax=binary(ast.Div()), operator=True, fold=fold.divide,
                     also=(np.true_divide,))
power = elementwise("power",                   lambda y, a, b: _power_base(y, a, b),
                                                                                lambda y, a, b: y * log(_positive(a)),
                    evaluate=operator.pow, syntax=binary(ast.Pow()), operator=True, fold=fold.power)
floor_divide = elementwise("floor_divide",     None,                            None,
                           evaluate=operator.floordiv, syntax=binary(ast.FloorDiv()), operator=True)
remainder = elementwise("remainder",           1,                               lambda y, a, b: -(a // b),
                        evaluate=operator.mod, syntax=binary(ast.Mod()), operator=True, also=(np.mod,))
fmod = elementwise("fmod",                     1,                               lambda y, a, b: -trunc(a / b),
                   math=math.fmod)
negative = elementwise("negative",             -1,
                       evaluate=operator.neg, syntax=unary(ast.USub()), operator=True, fold=fold.negative)
positive = elementwise("positive",             1,
                       evaluate=operator.pos, syntax=unary(ast.UAdd()), operator=True)


def _power_base(y, a, b):
    """∂(a ** b)/∂a: 2 * a for a ** 2, 0.5 / y for a ** 0.5; 0, not 0 * a ** -1, for b = 0 (a may be 0)."""
    match getattr(b, "constant", b):
        case bool():
            return b * a ** 0
        case int() | float() as n if n in (0, 1):
            return n
        case int() | float() as n if n == 2:
            return n * a
        case int() | float() as n if n == 0.5:
            return 0.5 / y
        case int() | float() as n:
            return n * a ** (n - 1)
    return b * a ** where(equal(b, 0), 1, b - 1)


def _positive(a):
    """`a`, with 1 where it is not positive (complex: where it is 0): its logarithm is finite, and 0 there."""
    constant = getattr(a, "constant", a)
    if isinstance(constant, (int, float)) and constant > 0:
        return a
    return where(equal(a, 0), 1, a) if _is_complex(a) else where(greater(a, 0), a, 1)


# ------------------------------------------------------------------------------- exp, log and powers
#                                              ∂y/∂x

exp = elementwise("exp",                       lambda y, x: y,                  math=math.exp)
exp2 = elementwise("exp2",                     lambda y, x: math.log(2) * y)
expm1 = elementwise("expm1",                   lambda y, x: y + 1,              math=math.expm1)
log = elementwise("log",                       lambda y, x: 1 / x,              math=math.log)
log2 = elementwise("log2",                     lambda y, x: 1 / (math.log(2) * x), math=math.log2)
log10 = elementwise("log10",                   lambda y, x: 1 / (math.log(10) * x), math=math.log10)
log1p = elementwise("log1p",                   lambda y, x: 1 / (1 + x),        math=math.log1p)
sqrt = elementwise("sqrt",                     lambda y, x: 0.5 / y,            math=math.sqrt)
cbrt = elementwise("cbrt",                     lambda y, x: 1 / (3 * y * y))
square = elementwise("square",                 lambda y, x: 2 * x)
reciprocal = elementwise("reciprocal",         lambda y, x: -y * y)
logaddexp = elementwise("logaddexp",           lambda y, a, b: exp(a - y),      lambda y, a, b: exp(b - y))
hypot = elementwise("hypot",                   lambda y, a, b: a / y,           lambda y, a, b: b / y,
                    math=math.hypot)

# ------------------------------------------------------------------ trigonometric and hyperbolic
#                                              ∂y/∂x

sin = elementwise("sin",                       lambda y, x: cos(x),             math=math.sin)
cos = elementwise("cos",                       lambda y, x: -sin(x),            math=math.cos)
tan = elementwise("tan",                       lambda y, x: 1 + y * y,          math=math.tan)
arcsin = elementwise("arcsin",                 lambda y, x: 1 / sqrt(1 - x * x),    math=math.asin)
arccos = elementwise("arccos",                 lambda y, x: -1 / sqrt(1 - x * x),   math=math.acos)
arctan = elementwise("arctan",                 lambda y, x: 1 / (1 + x * x),        math=math.atan)
arctan2 = elementwise("arctan2",               lambda y, a, b: b / (a * a + b * b),
                                               lambda y, a, b: -a / (a * a + b * b), math=math.atan2)
sinh = elementwise("sinh",                     lambda y, x: cosh(x),            math=math.sinh)
cosh = elementwise("cosh",                     lambda y, x: sinh(x),            math=math.cosh)
tanh = elementwise("tanh",                     lambda y, x: 1 - y * y,          math=math.tanh)
arcsinh = elementwise("arcsinh",               lambda y, x: 1 / sqrt(x * x + 1),    math=math.asinh)
arccosh = elementwise("arccosh",               lambda y, x: 1 / (sqrt(x - 1) * sqrt(x + 1)), math=math.acosh)
arctanh = elementwise("arctanh",               lambda y, x: 1 / (1 - x * x),        math=math.atanh)
degrees = elementwise("degrees",               lambda y, x: 180 / math.pi,      math=math.degrees, also=(np.rad2deg,))
radians = elementwise("radians",               lambda y, x: math.pi / 180,      math=math.radians, also=(np.deg2rad,))
sinc = elementwise("sinc",                     lambda y, x: where(equal(x, 0), -math.pi ** 2 / 3 * x,
                                                                  (cos(math.pi * x) - y) / where(equal(x, 0), 1, x)))

# ------------------------------------------------------------------------- choices, signs, rounding


def _larger(a, b):
    """1 where a is chosen, 0 where b is, and half of it each at a tie."""
    return where(equal(a, b), 0.5, where(greater(a, b), 1, 0))


def _chosen(y, a, b):
    """The same where a NaN may not have been chosen."""
    return where(equal(a, b), 0.5, where(equal(y, a), 1, 0))


maximum = elementwise("maximum",               lambda y, a, b: _larger(a, b),   lambda y, a, b: _larger(b, a))
minimum = elementwise("minimum",               lambda y, a, b: _larger(b, a),   lambda y, a, b: _larger(a, b))
fmax = elementwise("fmax",                     lambda y, a, b: _chosen(y, a, b),    lambda y, a, b: _chosen(y, b, a))
fmin = elementwise("fmin",                     lambda y, a, b: _chosen(y, a, b),    lambda y, a, b: _chosen(y, b, a))
max_ = elementwise("max_",                     lambda y, a, b: where(less(a, b), 0, 1),
                                               lambda y, a, b: where(less(a, b), 1, 0),
                   evaluate=max, syntax=builtin_syntax("max"), operator=True, result=joined)
min_ = elementwise("min_",                     lambda y, a, b: where(less(b, a), 0, 1),
                                               lambda y, a, b: where(less(b, a), 1, 0),
                   evaluate=min, syntax=builtin_syntax("min"), operator=True, result=joined)
_type_of_where = sampled(np.where, "where")
clip = elementwise("clip",                     lambda y, x, lo, hi: where(equal(y, x), 1, 0),
                                               lambda y, x, lo, hi: where(greater(lo, x), where(greater(lo, hi), 0, 1), 0),
                                               lambda y, x, lo, hi: where(greater(maximum(x, lo), hi), 1, 0),
                   fold=fold.clip)
where = elementwise("where",                   None,
                                               lambda y, c, a, b: where(c, 1, 0),
                                               lambda y, c, a, b: where(c, 0, 1),
                    evaluate=lambda c, a, b: np.where(c, a, b)[()], fold=fold.where)
select = elementwise("select",                 None,
                                               lambda y, c, a, b: where(c, 1, 0),
                                               lambda y, c, a, b: where(c, 0, 1),
                     evaluate=lambda c, a, b: a if c else b, syntax=lambda c, a, b: ast.IfExp(c, a, b),
                     result=lambda c, a, b: joined(a, b) if a.weak and b.weak else _type_of_where(c, a, b), operator=True)



def _jvp_choice(dots, y, c, a, b):
    """A choice between tangents."""
    if dots[1] is None and dots[2] is None:
        return None
    return like_tangent(where(c, *(0.0 if dot is None else dot for dot in dots[1:])), y)


where.jvp = select.jvp = _jvp_choice

#                                              ∂y/∂x

absolute = elementwise("absolute",             lambda y, x: _direction(x),      syntax=numpy_syntax("abs"))
abs_ = elementwise("abs_",                     lambda y, x: _direction(x),
                   evaluate=abs, syntax=builtin_syntax("abs"), operator=True)
fabs = elementwise("fabs",                     lambda y, x: sign(x),            math=math.fabs)
sign = elementwise("sign",                     None)
copysign = elementwise("copysign",             lambda y, a, b: sign(a) * sign(y),   None,   math=math.copysign)
heaviside = elementwise("heaviside",           None,                            lambda y, x, h: where(equal(x, 0), 1, 0),
                        fold=fold.heaviside)
floor = elementwise("floor", None, math=math.floor)
ceil = elementwise("ceil", None, math=math.ceil)
trunc = elementwise("trunc", None, math=math.trunc)
rint = elementwise("rint", None)
nan_to_num = elementwise("nan_to_num",         lambda y, x: where(isfinite(x), 1, 0))
round_ = elementwise("round", None, None, syntax=lambda x, n: _call_round(x, n))


def _direction(x):
    """x / |x|, which is sign(x), conjugated where x is complex; 0 at 0."""
    return conjugate(sign(x)) if _is_complex(x) else sign(x)


def _is_complex(x) -> bool:
    return str(getattr(getattr(x, "type", x), "dtype", None)).startswith("complex")


def _call_round(x: ast.expr, decimals: ast.expr) -> ast.expr:
    """np.round(x, decimals), without decimals if that is 0."""
    integral = isinstance(decimals, ast.Constant) and decimals.value == 0
    return numpy_syntax("round")(x) if integral else numpy_syntax("round")(x, decimals)


# --------------------------------------------------------------------------------- complex numbers

real = elementwise("real",                     1)
imag = elementwise("imag",                     -1j)
real.linear = imag.linear = (0,)
real.jvp = lambda dots, y, x: None if dots[0] is None else real(dots[0])
imag.jvp = lambda dots, y, x: None if dots[0] is None else imag(dots[0])
conjugate = elementwise("conjugate",           1,
                        syntax=numpy_syntax("conj"))  # not holomorphic: its rules are its own
conjugate.vjp = lambda bar, y, x: (like_operand(conjugate(bar), x),)
conjugate.jvp = lambda dots, y, x: None if dots[0] is None else conjugate(dots[0])

# --------------------------------------------------------------------- comparisons, logic and bits

less = elementwise("less", None, None, evaluate=operator.lt, syntax=compare(ast.Lt()), operator=True)
less_equal = elementwise("less_equal", None, None, evaluate=operator.le, syntax=compare(ast.LtE()), operator=True)
greater = elementwise("greater", None, None, evaluate=operator.gt, syntax=compare(ast.Gt()), operator=True)
greater_equal = elementwise("greater_equal", None, None, evaluate=operator.ge, syntax=compare(ast.GtE()), operator=True)
equal = elementwise("equal", None, None, evaluate=operator.eq, syntax=compare(ast.Eq()), operator=True)
not_equal = elementwise("not_equal", None, None, evaluate=operator.ne, syntax=compare(ast.NotEq()), operator=True)

logical_and = elementwise("logical_and", None, None)
logical_or = elementwise("logical_or", None, None)
logical_xor = elementwise("logical_xor", None, None)
logical_not = elementwise("logical_not", None)
not_ = elementwise("not_", None, evaluate=operator.not_, syntax=unary(ast.Not()), operator=True)

bitwise_and = elementwise("bitwise_and", None, None, evaluate=operator.and_, syntax=binary(ast.BitAnd()), operator=True)
bitwise_or = elementwise("bitwise_or", None, None, evaluate=operator.or_, syntax=binary(ast.BitOr()), operator=True)
bitwise_xor = elementwise("bitwise_xor", None, None, evaluate=operator.xor, syntax=binary(ast.BitXor()), operator=True)
invert = elementwise("invert", None, evaluate=operator.invert, syntax=unary(ast.Invert()), operator=True)
left_shift = elementwise("left_shift", None, None, evaluate=operator.lshift, syntax=binary(ast.LShift()), operator=True)
right_shift = elementwise("right_shift", None, None, evaluate=operator.rshift, syntax=binary(ast.RShift()), operator=True)

isnan = elementwise("isnan", None, math=math.isnan)
isinf = elementwise("isinf", None, math=math.isinf)
isfinite = elementwise("isfinite", None, math=math.isfinite)
signbit = elementwise("signbit", None)

OPERATORS.update({name: RECORDS[name] for name in RECORDS if RECORDS[name].elementwise})
