"""Special functions: those of scipy.special and of Python's math module.

Arrays go to SciPy.  A single number goes to `math`, or to a few lines printed along with the
generated code: compiled code is made of single numbers, and Numba cannot call SciPy's.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current
from ...ir.graph import Op, Value
from ...ir.types import Scalar, Type
from ...lazy_import import Named
from ..arrays.reduce import as_array, below_maximum, static_axis
from ..core.chain_rule import elementwise_jvp, elementwise_vjp
from ..core.define_elementwise import IN_MATH, builtin_syntax, called, elementwise
from ..core.elementwise import (
    absolute,
    bitwise_or,
    cbrt,
    cos,
    equal,
    exp,
    exp2,
    expm1,
    greater,
    less,
    less_equal,
    log,
    log1p,
    maximum,
    quotient_near_zero,
    select,
    sign,
    sin,
    where,
)
from ..core.kinks import CORNER, STEEP, Kink, at_zero, kinked
from ..core.record import (
    RECORDS,
    Record,
    define,
    dtype_of,
    numpy_function,
    promote,
    state,
    static,
    value,
)
from ..core.signs import ABOVE_ZERO, same_sign
from ..core.stablehlo_rules import in_ops, named
from ..core.stop_gradient import barrier

# --------------------------------------------------------------------------------------- definition


def _scipy_syntax(name: str) -> Callable:
    """scipy.special.name(...)."""
    module = ast.Attribute(ast.Name("scipy", ast.Load()), "special", ast.Load())
    return lambda *args: ast.Call(ast.Attribute(module, name, ast.Load()), list(args), [])


def scipys(name: str) -> Named:
    """The function scipy.special.name."""
    return Named("scipy.special", name)


# functions native for real numbers; SciPy is called for complex ones
OF_REAL_NUMBERS: set[str] = {"polygamma"}
SCIPYS_ALONE: set[str] = set()  # functions that only SciPy has
OF_ORDER: dict[str, int] = {}  # those with attributes as first arguments, and how many


def _refuse_in_kernels(op: Op, *xs: Value) -> None:
    raise UnsupportedError(f"scipy.special.{op.name} on a GPU", op.line,
                           'leave target="cuda" away, or call it outside of what is compiled')


def _state_scipys_alone(record: Record) -> None:
    """State that native code can only call SciPy for this function."""
    SCIPYS_ALONE.add(record.name)
    record.cuda = _refuse_in_kernels


def is_scipys_of_complex(op: Op) -> bool:
    """Whether `op` is a function of scipy.special of complex numbers, for which native code calls
    SciPy.
    """
    return (op.name in OF_REAL_NUMBERS
            and any((dtype_of(x.type) or "").startswith("complex") for x in op.inputs))


def in_precision(y: Value, *xs: Value) -> Value:
    """`y`, a Python number computed from `xs`, in single precision if they are, as in SciPy."""
    if any(x.type.dtype is None for x in xs) or all(x.type.weak for x in xs):
        return y
    dtype = promote(*(x.type for x in xs))[0]
    return (RECORDS["convert"](y, dtype="float32")
            if dtype in ("float16", "float32") and dtype_of(y.type) != "float32" else y)


def _special(name: str, *partials, of_numbers: Callable | None = None, math: Callable | None = None,
             vector: bool = False, slope: str = "", **facts) -> Record:
    """Define a function of scipy.special; `of_numbers(*xs)` computes it for single numbers, if
    `math` has no twin, else SciPy does.
    """

    def fold(record: Record, *xs: Value):
        if not all(isinstance(x.type, Scalar) and not x.type.dtype.startswith("complex")
                   for x in xs):
            return None
        if of_numbers is not None:
            return in_precision(of_numbers(*xs), *xs)
        return in_precision(IN_MATH[record](*xs), *xs) if record in IN_MATH else None

    function = scipys(name)
    OF_REAL_NUMBERS.add(name)
    record = elementwise(name, *partials, evaluate=function, syntax=_scipy_syntax(name), fold=fold,
                         math=math, also=(function,), vector=vector, slope=slope, **facts)
    if of_numbers is None and math is None:
        _state_scipys_alone(record)
    record.warns_at_poles = False
    return record


def _helper(function: Callable, like: Callable, vector: str = "", **facts) -> Record:
    """Define a function of one number whose source is printed along; `like()` is the op that it
    stands in for.
    """
    name = function.__name__
    record = define(f"{name}_of_number", evaluate=function,
                    infer=lambda x, **attrs: Scalar("float64"), helper=function,
                    syntax=lambda x, **attrs: builtin_syntax(name)(
                        *map(ast.Constant, attrs.values()), x),
                    partials=(lambda y, x, **attrs: like().partials[0](y, x, **attrs),),
                    elementwise=True, cheap=True,
                    vector=vector, slope=lambda *xs: like().slope_at(xs),
                    # the numbers of all lanes form an array
                    batch=lambda *xs, **attrs: like()(*xs, **attrs),
                    vjp=elementwise_vjp, jvp=elementwise_jvp, **facts)
    record.warns_at_poles = False
    return record


# ----------------------------------------------------------------------------------- error function
#                                              ∂y/∂x

erf = _special("erf",                          lambda y, x: 2 / math.sqrt(math.pi) * exp(-x * x),     math=math.erf, vector=True, slope="finite", least=same_sign)
erfc = _special("erfc",                        lambda y, x: -2 / math.sqrt(math.pi) * exp(-x * x),    math=math.erfc, vector=True, slope="finite", least=ABOVE_ZERO)
ndtr = _special("ndtr",                        lambda y, x: exp(-0.5 * x * x) / math.sqrt(2 * math.pi),
                of_numbers=lambda x: 0.5 * erfc(-x / math.sqrt(2)), slope="finite", least=ABOVE_ZERO)

# ----------------------------------------------------------------------------------- gamma function


def polygamma(n, x):
    """The n-th derivative of digamma, itself the derivative of log(gamma): Abramowitz and Stegun 6.4.6, 6.4.7, 6.4.11."""
    sign = -1.0 if n % 2 == 0 else 1.0
    if x <= 0 and (x < -4503599627370496.0 or x == math.floor(x)):  # a pole
        return sign * math.inf if n > 0 else -math.copysign(math.inf, x) if x == 0 else math.nan
    factorial = math.gamma(n + 1.0)
    reflected = x < -1000.0
    apart = x - math.floor(x + 0.5) if reflected else 1.0  # from the nearest pole, which says most
    total = 0.0
    for part in range(3 if reflected else 1):
        weight, at = (1.0, x) if not reflected else (1.0, 1 + apart) if part == 0 else (sign, 1 - apart) if part == 1 else (-sign, 1 - x)
        while at < 16 + n:  # polygamma(n, x) = polygamma(n, x + 1) + sign * n! / x ** (n + 1)
            term = weight * factorial
            for _ in range(n + 1):
                term /= at
            total += term
            at += 1.0
        power = factorial
        for _ in range(n):
            power /= at
        total += weight * ((-math.log(at) if n == 0 else power / n) + 0.5 * power / at)
        term = weight * 0.5 * (n + 1) * power / at / at  # Gamma(2 k + n) / (Gamma(2 k + 1) x ** (2 k + n))
        k = 1
        for bernoulli in (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510):
            total += bernoulli * term
            term *= (2 * k + n) * (2 * k + n + 1) / ((2 * k + 1) * (2 * k + 2) * at * at)
            k += 1
    if reflected:
        power = factorial
        for _ in range(n + 1):
            power /= apart
        total += power
    return sign * total


def _polygamma_type(x: Value, *, order: int) -> Type:
    if order and (dtype_of(x.type) or "").startswith("complex"):
        raise TypeMismatchError("polygamma of complex numbers, which the derivative of digamma is",
                                current().line, "SciPy has none: use numbers that are real")
    found = exp.infer(x)
    return (replace(found, dtype="float64") if order and found.dtype in ("float16", "float32")
            else found)  # which SciPy converts to float64


def _polygamma_syntax(x: ast.expr, *, order: int) -> ast.expr:
    return (_scipy_syntax("digamma")(x) if order == 0
            else _scipy_syntax("polygamma")(ast.Constant(order), x))


polygamma_record = define(
    "polygamma",  # (x, order)
    evaluate=lambda x, *, order: scipys("digamma")(x) if order == 0 else scipys("polygamma")(order, x)[()],
    infer=_polygamma_type, syntax=_polygamma_syntax,
    fold=lambda x, *, order: in_precision(polygamma_of_number(x, order=order), *[x] * (order == 0))
    if isinstance(x.type, Scalar) and not (x.type.dtype or "").startswith("complex") else None,
    partials=(lambda y, x, *, order: polygamma_record(x, order=order + 1),), elementwise=True, cheap=True,
    vjp=elementwise_vjp, jvp=elementwise_jvp)
polygamma_of_number = _helper(polygamma, lambda: polygamma_record)
polygamma_of_number.evaluate = lambda x, *, order: polygamma(order, x)


@numpy_function(scipys("digamma"), scipys("psi"))
def digamma(x):
    """The derivative of log(gamma(x))."""
    return polygamma_record(x, order=0)


@numpy_function(scipys("polygamma"))
def polygamma_(n: Value, x: Value) -> Value:
    return polygamma_record(x, order=_number(n, "the order of polygamma"))



def log_gamma(x):
    """scipy.special.gammaln of one number, infinite where math.lgamma raises."""
    if x > 2.556348e305 or x <= 0 and (math.isinf(x) or x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def gamma_function(x):
    """scipy.special.gamma of one number, infinite, or NaN, where math.gamma raises."""
    if x > 171.624 or abs(x) <= 5.562684646268003e-309:
        return math.copysign(math.inf, x)
    return math.nan if x < 0 and (math.isinf(x) or x == math.floor(x)) else math.gamma(x)


log_gamma_of_number = _helper(log_gamma, lambda: gammaln)
gamma_of_number = _helper(gamma_function, lambda: gamma)
gammaln = _special("gammaln",                  lambda y, x: digamma(x), of_numbers=log_gamma_of_number, math=math.lgamma)
gamma = _special("gamma",                      lambda y, x: y * digamma(x), of_numbers=gamma_of_number, math=math.gamma)
state(erf, erfc, gamma, gammaln, cost=6)
state(erf, erfc, ndtr, IN_MATH[erf], IN_MATH[erfc], slope_warns=True)


@numpy_function(scipys("loggamma"))
def loggamma(z: Value) -> Value:
    """scipy.special.loggamma of real numbers, NaN of negative ones, whose logarithm is complex."""
    return where(RECORDS["less"](z, 0.0), np.nan, gammaln(z))



#                                              ∂y/∂a                            ∂y/∂b
beta = _special("beta",                        lambda y, a, b: y * (digamma(a) - digamma(a + b)),
                                                                                lambda y, a, b: y * (digamma(b) - digamma(a + b)))
betaln = _special("betaln",                    lambda y, a, b: digamma(a) - digamma(a + b),
                                                                                lambda y, a, b: digamma(b) - digamma(a + b))

# ------------------------------------------------------------------------ around the error function
# The slopes of erfcx and dawsn cancel where x is large: series replace them there.


def _real(x):
    """The real part of `x` if it is complex: complex numbers have no order."""
    return RECORDS["real"](x) if str(dtype_of(value(x).type)).startswith("complex") else x


def _slope_of_dawsn(y, x):
    """1 - 2 x y; of complex numbers no other, whose tail has a term of exp(-x * x), which need not
    be small.
    """
    slope = 1 - 2 * x * y
    return slope if _real(x) is not x else where(greater(absolute(x), 50.0), -_tail(x, 1), slope)


def _tail(x, sign: int):
    """Σ (2 k - 1)!! (sign / (2 x**2))**k from k = 1 on: NIST's Digital Library 7.12.1, exact for
    |x| > 50.
    """
    far = greater(absolute(x), 50.0)
    t, total = sign * 0.5 / (where(far, x, 50.0) * where(far, x, 50.0)), 0.0
    for k in range(7, 0, -1):
        total = (2 * k - 1) * t * (1 + total)
    return total


def _slope_of_log_ndtr(y, x):
    """The density over ndtr(x), which both underflow where x is far below 0: their quotient is one
    of erfcx.
    """
    below = less(_real(x), 0.0)
    return where(below, math.sqrt(2 / math.pi) / erfcx(where(below, -x, 0.0) / math.sqrt(2)),
                 exp(-0.5 * x * x - y) / math.sqrt(2 * math.pi))


#                                              ∂y/∂x

erfcx = _special("erfcx",                      lambda y, x: where(greater(_real(x), 50.0), 2 / math.sqrt(math.pi) * _tail(x, -1), 2 * x * y - 2 / math.sqrt(math.pi)), least=ABOVE_ZERO)
dawsn = _special("dawsn",                      lambda y, x: _slope_of_dawsn(y, x))
erfinv = _special("erfinv",                    lambda y, x: math.sqrt(math.pi) / 2 * exp(y * y))
erfcinv = _special("erfcinv",                  lambda y, x: -math.sqrt(math.pi) / 2 * exp(y * y))
ndtri = _special("ndtri",                      lambda y, x: math.sqrt(2 * math.pi) * exp(0.5 * y * y))
log_ndtr = _special("log_ndtr",                lambda y, x: _slope_of_log_ndtr(y, x), slope="finite")
state(log_ndtr, slope_warns=True)

# --------------------------------------------------------------------------------- Bessel functions
#                                              ∂y/∂x


# Differences of orders in place of y / x, of which neither the value nor any derivative can be had
# at 0.

i0 = _special("i0",                            lambda y, x: i1(x))
i1 = _special("i1",                            lambda y, x: 0.5 * (i0(x) + iv(x, order=2)))
i0e = _special("i0e",                          lambda y, x: i1e(x) - sign(x) * y)
i1e = _special("i1e",                          lambda y, x: 0.5 * (i0e(x) + ive(x, order=2)) - sign(x) * y)
j0 = _special("j0",                            lambda y, x: -j1(x))
j1 = _special("j1",                            lambda y, x: 0.5 * (j0(x) - jv(x, order=2)))

y0 = _special("y0",                            lambda y, x: -y1(x))
y1 = _special("y1",                            lambda y, x: y0(x) - y / x)


def _number(x, what: str):
    """The constant `x`."""
    found = static(x, what)
    if isinstance(found, (int, float, np.integer, np.floating)):
        return found
    raise TypeMismatchError(f"{what} is {found!r}", current().line, "pass a number")


@functools.lru_cache(maxsize=None, typed=True)
def _dtype_of_order(name: str, dtype: str, *known) -> str:
    """The dtype that SciPy gives of operands of that dtype: float64 of float32 where its loop for
    that stands first.
    """
    return scipys(name)(*known, np.ones(1, dtype)).dtype.name


def _type_of_order(name: str, x: Value, known: tuple) -> Type:
    found = exp.infer(x)
    small = found.dtype in ("float16", "float32", "complex64")
    return replace(found, dtype=_dtype_of_order(name, found.dtype, *known)) if small else found


def _of_order(name: str, partial: Callable, orders: tuple = ("order",)) -> Record:
    """Define a function (order, x) with a static order; derivatives as in NIST's Digital Library of
    Mathematical Functions (8.8, 8.17, 8.19, 10.6, 10.29).
    """
    record = define(
        name,  # (x, order)
        evaluate=lambda x, **known: scipys(name)(*known.values(), x)[()], infer=lambda x, **known: _type_of_order(name, x, tuple(known.values())),
        syntax=lambda x, **known: _scipy_syntax(name)(*map(ast.Constant, known.values()), x), partials=(partial,), elementwise=True, cheap=True,
        vjp=elementwise_vjp, jvp=elementwise_jvp)
    _state_scipys_alone(record)
    OF_REAL_NUMBERS.add(name)
    OF_ORDER[name] = len(orders)
    of = f"the {orders[0]} of {name}" if len(orders) == 1 else f"a parameter of {name}"

    @numpy_function(scipys(name))
    def called_with(*args) -> Value:
        if len(args) != len(orders) + 1:
            raise UnsupportedError(f"scipy.special.{name} of {len(args)} arguments", current().line,
                                   f"give it {len(orders) + 1}")
        return record(args[-1], **{order: _number(v, of) for order, v in zip(orders, args)})

    return record


jv = _of_order("jv", lambda y, x, *, order: 0.5 * (jv(x, order=order - 1) - jv(x, order=order + 1)))
yv = _of_order("yv", lambda y, x, *, order: 0.5 * (yv(x, order=order - 1) - yv(x, order=order + 1)))
iv = _of_order("iv", lambda y, x, *, order: 0.5 * (iv(x, order=order - 1) + iv(x, order=order + 1)))
kv = _of_order("kv", lambda y, x, *, order: -0.5 * (kv(x, order=order - 1) + kv(x, order=order + 1)))

for _record in (cbrt, exp2, expm1, log1p):  # which scipy.special has as well
    numpy_function(scipys(_record.name))(called(_record, 1))

# ----------------------------------------------------------------------------- incomplete functions
#                                              ∂y/∂x

def _reflected(x):
    """The derivative of 1 / gamma(x) = gamma(1 - x) * sin(pi * x) / pi, which is finite at the
    poles of gamma.
    """
    return gamma(1 - x) * (cos(math.pi * x) - digamma(1 - x) * sin(math.pi * x) / math.pi)


def _slope_of_rgamma(y, x):
    """The slope as it is right of 1 / 2, and reflected left of it."""
    left = less(_real(x), 0.5)
    return where(left, _reflected(where(left, x, 0.0)), -y * digamma(where(left, 1.0, x)))


def _density_of_beta(x, a, b):
    """x**(a - 1) * (1 - x)**(b - 1) / B(a, b)."""
    return exp(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x)
               - (math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)))


gammainc = _of_order("gammainc", lambda y, x, *, order: exp((order - 1) * log(x) - x - math.lgamma(order)))
gammaincc = _of_order("gammaincc", lambda y, x, *, order: -exp((order - 1) * log(x) - x - math.lgamma(order)))
betainc = _of_order("betainc", lambda y, x, *, a, b: _density_of_beta(x, a, b), ("a", "b"))
betaincc = _of_order("betaincc", lambda y, x, *, a, b: -_density_of_beta(x, a, b), ("a", "b"))
expn = _of_order("expn", lambda y, x, *, order: -expn(x, order=order - 1) if order else -(1 + 1 / x) * y)
expi = _special("expi",                        lambda y, x: exp(x) / x)
exp1 = _special("exp1",                        lambda y, x: -exp(-x) / x)
rgamma = _special("rgamma",                    lambda y, x: _slope_of_rgamma(y, x))

stdtr = _of_order("stdtr", lambda y, x, *, order: math.exp(math.lgamma(0.5 * order + 0.5) - math.lgamma(0.5 * order)) / math.sqrt(
    math.pi * order) * (1 + x * x / order) ** (-0.5 * order - 0.5))
chdtr = _of_order("chdtr", lambda y, x, *, order: 0.5 * exp((0.5 * order - 1) * log(0.5 * x) - 0.5 * x - math.lgamma(0.5 * order)))
chdtrc = _of_order("chdtrc", lambda y, x, *, order: -0.5 * exp((0.5 * order - 1) * log(0.5 * x) - 0.5 * x - math.lgamma(0.5 * order)))
gammaincinv = _of_order("gammaincinv", lambda y, x, *, order: exp(y - (order - 1) * log(y) + math.lgamma(order)))
gammainccinv = _of_order("gammainccinv", lambda y, x, *, order: -exp(y - (order - 1) * log(y) + math.lgamma(order)))
betaincinv = _of_order("betaincinv", lambda y, x, *, a, b: 1 / _density_of_beta(y, a, b), ("a", "b"))
erfi = _special("erfi",                        lambda y, x: 2 / math.sqrt(math.pi) * exp(x * x))
ndtri_exp = _special("ndtri_exp",              lambda y, x: math.sqrt(2 * math.pi) * exp(x + 0.5 * y * y))
spence = _special("spence",                    lambda y, x: quotient_near_zero(log(x), 1 - x, lambda z: -hyp2f1(z, a=1.0, b=1.0, c=2.0)))
#                                              ∂y/∂h                                                        ∂y/∂a
owens_t = _special("owens_t",                  lambda y, h, a: -erf(a * h / math.sqrt(2)) * exp(-0.5 * h * h) / (2 * math.sqrt(2 * math.pi)),
                   lambda y, h, a: exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a)))


# ----------------------------------------------------- elliptic integrals, hypergeometric functions
#                                              ∂y/∂x


def _series_of_ellipk(x):
    """The derivative of ellipk(x), for small x."""
    return math.pi / 8 * hyp2f1(x, a=1.5, b=1.5, c=2.0)


def _series_of_ellipe(x):
    """The derivative of ellipe(x), for small x."""
    return -math.pi / 8 * hyp2f1(x, a=0.5, b=1.5, c=2.0)


ellipk = _special("ellipk",                    lambda y, x: quotient_near_zero(0.5 * (ellipe(x) / (1 - x) - y), x, _series_of_ellipk))
ellipe = _special("ellipe",                    lambda y, x: quotient_near_zero(0.5 * (y - ellipk(x)), x, _series_of_ellipe))
ellipkm1 = _special("ellipkm1",                lambda y, x: -quotient_near_zero(0.5 * (ellipe(1 - x) / x - y), 1 - x, _series_of_ellipk))
hyp1f1 = _of_order("hyp1f1", lambda y, x, *, a, b: a / b * hyp1f1(x, a=a + 1, b=b + 1), ("a", "b"))
hyp2f1 = _of_order("hyp2f1", lambda y, x, *, a, b, c: a * b / c * hyp2f1(x, a=a + 1, b=b + 1, c=c + 1), ("a", "b", "c"))
#                                              ∂y/∂a                                            ∂y/∂b
poch = _special("poch",                        lambda y, a, b: y * (digamma(a + b) - digamma(a)),
                                                                                lambda y, a, b: y * digamma(a + b))
binom = _special("binom",                      lambda y, a, b: y * (digamma(a + 1) - digamma(a - b + 1)),
                                                                                lambda y, a, b: y * (digamma(a - b + 1) - digamma(b + 1)))

# ---------------------------------------------------------------------------- more Bessel functions
#                                              ∂y/∂x

k0 = _special("k0",                            lambda y, x: -k1(x))
k1 = _special("k1",                            lambda y, x: -k0(x) - y / x)
k0e = _special("k0e",                          lambda y, x: y - k1e(x))
k1e = _special("k1e",                          lambda y, x: y - k0e(x) - y / x)
ive = _of_order("ive", lambda y, x, *, order: 0.5 * (ive(x, order=order - 1) + ive(x, order=order + 1)) - sign(x) * y)
kve = _of_order("kve", lambda y, x, *, order: y - 0.5 * (kve(x, order=order - 1) + kve(x, order=order + 1)))


@numpy_function(scipys("yn"))
def yn(n, x) -> Value:
    """The Bessel function of the second kind of integer order."""
    return yv(x, order=static(n, "the order of yn"))


# ---------------------------------------------------------------- powers, angles in degrees, losses
#                                              ∂y/∂x


exp10 = _special("exp10",                      lambda y, x: math.log(10.0) * y)
exprel = _special("exprel",                    lambda y, x: 0.5 * hyp1f1(x, a=2.0, b=3.0))
cosm1 = _special("cosm1",                      lambda y, x: -sin(x))
sindg = _special("sindg",                      lambda y, x: math.pi / 180 * cosdg(x))
cosdg = _special("cosdg",                      lambda y, x: -math.pi / 180 * sindg(x))
tandg = _special("tandg",                      lambda y, x: math.pi / 180 * (1 + y * y))


def _numpys(x):
    """`x` as a NumPy number, whose powers give infinity where those of a Python number would raise.
    """
    return (RECORDS["convert"](x, dtype="float64")
            if isinstance(x, Value) and isinstance(x.type, Scalar) and x.type.weak else x)


def _transformed(x, power):
    """The derivative of (x**power - 1) / power, or log(x), in the power."""
    x = _numpys(x)
    none, log_x = equal(power, 0), log(x)
    power = where(none, 1, power)
    return where(none, 0.5 * log_x * log_x, (x**power * log_x - (x**power - 1) / power) / power)


def _transformed_back(y, x, power):
    """The derivative of (power * x + 1)**(1 / power), or exp(x), in the power."""
    none, inside = equal(power, 0), power * x + 1
    safe = where(none, 1, power)
    return where(none, -0.5 * x * x, x / (safe * inside) - log(inside) / (safe * safe)) * y


#                                              ∂y/∂a                                    ∂y/∂b
boxcox = _special("boxcox",                    lambda y, a, b: _numpys(a) ** (b - 1),   lambda y, a, b: _transformed(a, b))
boxcox1p = _special("boxcox1p",                lambda y, a, b: _numpys(1 + a) ** (b - 1), lambda y, a, b: _transformed(1 + a, b))
inv_boxcox = _special("inv_boxcox",            lambda y, a, b: y / (a * b + 1),         lambda y, a, b: _transformed_back(y, a, b))
inv_boxcox1p = _special("inv_boxcox1p",        lambda y, a, b: (1 + y) / (a * b + 1),   lambda y, a, b: _transformed_back(1 + y, a, b))
powm1 = _special("powm1",                      lambda y, a, b: b * _numpys(a) ** (b - 1), lambda y, a, b: (y + 1) * log(a))
huber = _special("huber",                      lambda y, a, b: maximum(absolute(b) - a, 0.0),
                                                                                        lambda y, a, b: where(less_equal(absolute(b), a), b, a * sign(b)))


def _stretch(a, b):
    """sqrt(1 + (b / a)**2)."""
    return (1 + (b / a) * (b / a)) ** 0.5


pseudo_huber = _special("pseudo_huber",        lambda y, a, b: 2 * a * (_stretch(a, b) - 1) - b * b / (a * _stretch(a, b)),
                                                                                        lambda y, a, b: b / _stretch(a, b))

# ------------------------------------------------------------------------------- logistic functions


def expit(x):
    """1 / (1 + exp(-x)), without overflow."""
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    return math.exp(x) / (1.0 + math.exp(x))


def log_logistic(x):
    """log(1 / (1 + exp(-x))), without overflow."""
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


expit_record = _special("expit",               lambda y, x: y * (1 - y),        of_numbers=lambda x: expit_of_number(x), slope="finite", least=ABOVE_ZERO, stablehlo="logistic")
expit_of_number = _helper(expit, lambda: expit_record, vector="expit", least=ABOVE_ZERO, stablehlo=named("logistic"))
logit = _special("logit",                      lambda y, x: 1 / (x * (1 - x)),  of_numbers=lambda x: log(x) - log1p(-x), stablehlo=in_ops(lambda x: log(x) - log1p(-x)))
log_expit = _special("log_expit",              lambda y, x: expit_record(-x), of_numbers=lambda x: log_expit_of_number(x), slope="finite")
log_expit_of_number = _helper(log_logistic, lambda: log_expit)



def _finite(a, b, least):
    """`b`, replaced where `a` is 0 and the logarithm of b - `least` is not finite by the number
    with logarithm 0: a * log is 0 there, and constant in b.
    """
    # np.where makes arrays of numbers
    choose = select if all(isinstance(x.type, Scalar) for x in map(value, (a, b))) else where
    return choose(equal(a, 0),
                  choose(bitwise_or(less_equal(b, least), equal(b, math.inf)), least + 1.0, b), b)


#                                              ∂y/∂a                                        ∂y/∂b
xlogy = _special("xlogy",                      lambda y, a, b: log(_finite(a, b, 0)),       lambda y, a, b: a / _finite(a, b, 0),
                 of_numbers=lambda a, b: a * log(_finite(a, b, 0)))
xlog1py = _special("xlog1py",                  lambda y, a, b: log1p(_finite(a, b, -1)),    lambda y, a, b: a / (1 + _finite(a, b, -1)))
#                                              ∂y/∂a                            ∂y/∂b
rel_entr = _special("rel_entr",                lambda y, a, b: log(a / b) + 1,  lambda y, a, b: -a / b)
kl_div = _special("kl_div",                    lambda y, a, b: log(a / b),      lambda y, a, b: 1 - a / b)
entr = _special("entr",                        lambda y, x: -log(x) - 1)

kinked(i0e, Kink(CORNER, at_zero))
kinked(ive, Kink(CORNER, lambda y, x, *, order: np.equal(x, 0) & (order == 0)))
kinked(ellipe, Kink(STEEP, lambda y, x: np.equal(x, 1), always=True))
for _each in (entr, spence):
    kinked(_each, Kink(STEEP, at_zero, always=True))
for _each in (rel_entr, kl_div):
    kinked(_each, Kink(STEEP, lambda y, a, b: np.equal(a, 0), of=(0,), always=True))


@numpy_function(scipys("log_softmax"))
def log_softmax(x: Value, axis=None) -> Value:
    """scipy.special.log_softmax: x minus its maximum, minus a logarithm that would be lost next to
    a large maximum.
    """
    below, total = below_maximum(x, axis)
    return below - log(total)


@numpy_function(scipys("softmax"))
def softmax(x: Value, axis=None) -> Value:
    """scipy.special.softmax; the maximum carries no derivative, and is taken out if infinite, too,
    so that the shares are NaN.
    """
    x, axis = as_array(x), static_axis(axis)
    top = RECORDS["max"](x, axis=axis, keepdims=True)
    shares = exp(x - barrier(top))
    return shares / RECORDS["sum"](shares, axis=axis, keepdims=True)
