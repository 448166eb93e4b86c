"""Absolute values, hypot, norms and standard deviations, and their derivatives at 0.

The slope of y = sqrt(x * x + ...) in x is x / y, and 0 where y is 0, by convention: the middle of
the subgradients. That convention holds for first derivatives only.  Of g(y) with g'(0) = 0 a second
derivative exists, g''(0), although the slope of y jumps; a convention of 0 for x / y would make it
0.

Note [Second derivatives at a size of 0]
So `bar * x / y`, the cotangent of x, is an op, `over_size`, and its own derivative at y = 0 is no
convention:

    forward mode    a step along x_dot turns x / y into x_dot / |x_dot|, and increases y by |x_dot|.
                    Both modes of the second pass use that direction, so g''(0) is right for any g;
                    it is NaN where bar is not 0, because the cotangent jumps there.
    reverse mode    no direction is known: NaN, but 0 for a cotangent of 0.

A norm that the program computes has the one-sided derivative |x_dot| only while a derivative is
differentiated (`forwards.one_sided`): elsewhere its tangent at 0 is 0, like its gradient.

Considered: NaN in both modes, which loses Hessians that exist, and poisons those of kernel
matrices, whose diagonal has such zeros; rules that look for an x that cancels y, which recognise
some spellings only.
"""

from __future__ import annotations

import ast
import functools
import math

import numpy as np

from ...ir.graph import Block, Op, Value, walk
from ...ir.types import FLOAT, Scalar, Type
from ..core import elementwise as ew
from ..core.axis_numbers import normal_axes
from ..core.batch_rules import align, shifted
from ..core.chain_rule import SLOPES_OF_SIZES, like_operand, like_tangent, times
from ..core.define_elementwise import elementwise, numpy_syntax, python_syntax
from ..core.dependence_rules import follows, spread_as
from ..core.kinks import SIZE, Kink, kinked, size_zero
from ..core.record import (
    RECORDS,
    Record,
    define,
    dtype_of,
    forwards,
    its_operand,
    rank,
    shared,
    value,
)
from ..core.shape import sum_to, zeros_of
from ..core.signs import is_never_negative, size_of_total
from .axes import expand_dims

# why both rules of norms are stated
ONE_SIDED = "where a size is 0, a tangent is the size of tangents, and a cotangent 0 or NaN"


def has_slopes_of_sizes(block: Block) -> bool:
    """Whether `block` computes a derivative of a norm."""
    return any(op.record in SLOPES or op.record is root_forward for op in walk(block))


# ------------------------------------------------------------------- of lengths and absolute values


def _is_one(x: ast.expr) -> bool:
    return isinstance(x, ast.Constant) and type(x.value) is float and x.value == 1


_quotient, _product = python_syntax("a / b"), python_syntax("a * b")


def _syntax(bar: ast.expr, x: ast.expr, divisor: ast.expr, y: ast.expr) -> ast.expr:
    """The expression bar / divisor * x."""
    return _quotient(x, divisor) if _is_one(bar) else _product(_quotient(bar, divisor), x)


def _zero_or_nan(y: Value, x: Value) -> Value:
    """`y`, replaced where it is 0 by a divisor that turns x = 0 into 0 and any other x into NaN."""
    # of 1 and NaN, NumPy would make float64
    if isinstance(y.type, Scalar) and dtype_of(y.type) == "float32":
        return ew.where(_jumps(y, x), math.nan, y + ew.equal(y, 0))
    return ew.where(_jumps(y, x), math.nan, ew.not_zero(y))


def _jumps(y: Value, x: Value) -> Value:
    """A mask of the places at which y is 0 and x is not."""
    return ew.bitwise_and(ew.equal(y, 0), ew.not_equal(x, 0))


def zero_or_quotient(x: Value, y: Value) -> Value:
    """x / y; where y is 0: 0 if x is 0, else NaN."""
    return over_size(1.0, x, _zero_or_nan(y, x), y)


def times_slope(bar: Value, slope: Value) -> Value | None:
    """The product of a cotangent and the slope of a norm, as one op; None if `slope` is no such
    slope.
    """
    if slope.op is None:
        return None
    record, inputs = slope.op.record, slope.op.inputs
    return record(bar, *inputs[1:]) if inputs[0].constant == 1 else None


def _vjp_over_size(c, out, bar, x, divisor, y, *, forward):
    if forward:  # bar is a tangent, and c may be 0 only because the function of y is flat at 0
        x_bar = over_size(bar, c, _zero_or_nan(y, bar), y)
        bar_bar = over_size(c, x, ew.not_zero(y), y)
    else:
        x_bar = zero_or_quotient(c * bar, y)
        bar_bar = over_size(c, x, _zero_or_nan(y, c), y)
    y_bar = -over_size(1.0, c * out, ew.not_zero(y), y)
    return (_as_cotangent(bar_bar, bar), _as_cotangent(x_bar, x), None, _as_cotangent(y_bar, y))


def _as_cotangent(found: Value, x: Value) -> Value:
    return like_operand(sum_to(found, x), x)


def _jvp_over_size(dots, out, bar, x, divisor, y):
    bar_dot, x_dot, _, y_dot = dots
    terms = []
    if bar_dot is not None and x_dot is None:
        terms.append(over_size(bar_dot, x, divisor, y))
    elif bar_dot is not None:
        zero = ew.equal(y, 0)
        along = ew.where(zero, x_dot, x)
        size = ew.where(zero, value(0.0) if y_dot is None else y_dot, y)
        terms.append(over_size(bar_dot, along, _zero_or_nan(size, along), size))
    if x_dot is not None:
        terms.append(zero_or_quotient(bar * x_dot, y))
    if y_dot is not None:
        terms.append(-over_size(1.0, out * y_dot, ew.not_zero(y), y))
    return like_tangent(functools.reduce(ew.add, terms), out) if terms else None


def _lower_over_size(op: Op, bar: Value, x: Value, divisor: Value, y: Value) -> Value:
    is_slope = bar.constant == 1 and rank(x) == rank(divisor)
    return x / divisor if is_slope else bar / divisor * x


def _over_size(name: str, forward: bool) -> Record:
    """Define the op (bar, x, divisor, y): bar * x / y, where `divisor` is y without zeros;
    `forward` if bar is a tangent.
    """
    record = elementwise(name, 1, 1, 1, 1, syntax=_syntax,
                         evaluate=lambda bar, x, divisor, y: bar / divisor * x, slope="steep",
                         lower=_lower_over_size)
    record.vjp, record.jvp = functools.partial(_vjp_over_size, forward=forward), _jvp_over_size
    record.states_both = ONE_SIDED
    return record


over_size, over_size_forward = _over_size("over_size", False), _over_size("over_size_forward", True)


def _syntax_of_product(bar: ast.expr, x: ast.expr) -> ast.expr:
    """The expression bar * np.sign(x)."""
    sign = numpy_syntax("sign")(x)
    return sign if _is_one(bar) else _product(bar, sign)


def _vjp_times_sign(c, out, bar, x, *, forward):
    if forward:
        x_bar = ew.where(_jumps(x, bar), math.nan, zeros_of(x))
        return _as_cotangent(c * ew.sign(x), bar), _as_cotangent(x_bar, x)
    return _as_cotangent(ew.where(_jumps(x, c), math.nan, c * ew.sign(x)), bar), None


def _jvp_times_sign(dots, out, bar, x, *, forward):
    bar_dot, x_dot = dots
    along = x if x_dot is None else ew.where(ew.equal(x, 0), x_dot, x)
    dot = None if bar_dot is None else times_sign(bar_dot, along)
    # of a constant slope, 0 on both sides
    if x_dot is not None and (forward or bar_dot is not None):
        dot = ew.where(_jumps(x, bar * x_dot), math.nan, zeros_of(x) if dot is None else dot)
    return None if dot is None else like_tangent(dot, out)


def _lower_times_sign(op: Op, bar: Value, x: Value) -> Value:
    return ew.sign(x) if bar.constant == 1 else bar * ew.sign(x)


def _times_sign(name: str, forward: bool) -> Record:
    """Define the op (bar, x): bar * sign(x); `forward` if bar is a tangent."""
    record = elementwise(name, 1, 1 if forward else None, syntax=_syntax_of_product,
                         evaluate=lambda bar, x: bar * np.sign(x), lower=_lower_times_sign)
    record.vjp, record.jvp = (functools.partial(f, forward=forward)
                              for f in (_vjp_times_sign, _jvp_times_sign))
    record.states_both = ONE_SIDED
    return record


times_sign, times_sign_forward = (_times_sign("times_sign", False),
                                  _times_sign("times_sign_forward", True))


def _make_one_sided(record) -> None:
    """Make the tangent of a norm at 0 the norm of the tangents while a derivative is
    differentiated.
    """
    plain = record.jvp

    def jvp(dots, y, *xs, **attrs):
        dot = plain(dots, y, *xs, **attrs)
        if dot is None or not forwards.one_sided:
            return dot
        sizes = [value(0.0) if d is None else d for d in dots]
        return like_tangent(ew.where(ew.equal(y, 0), record(*sizes), dot), y)

    record.jvp, record.states_both = jvp, ONE_SIDED


for _name in ("absolute", "abs_", "fabs", "math.fabs", "hypot", "math.hypot"):
    _make_one_sided(RECORDS[_name])

SLOPES = (over_size, over_size_forward, times_sign, times_sign_forward)
SLOPES_OF_SIZES.update({record.name: times_slope for record in SLOPES})

# ---------------------------------------------------------------------------------------- of arrays


def _infer_root(squares: Value, *xs: Value, axis, keepdims) -> Type:
    return ew.sqrt.infer(squares)


def _aligned(reduced: Value, axis, keepdims: bool, x: Value) -> Value:
    """The result of a reduction of `x` with its reduced axes restored with length 1.

    A value shared by all lanes has fewer leading axes than `x`.
    """
    if axis is None or keepdims or isinstance(reduced.type, Scalar):
        return reduced
    if rank(x) is None or rank(reduced) is None:  # before a call: no lanes
        return expand_dims(reduced, axis)
    axes = normal_axes(axis, rank(x))
    common = rank(x) - len(axes) - rank(reduced)
    return expand_dims(reduced, axis if common == 0 else tuple(k - common for k in axes))


def _vjp_root(bar, y, squares, count, *xs, axis, keepdims):
    bar = bar if count.constant == 1 else RECORDS["quotient"](bar, count)
    bar, divisor, y = (_aligned(v, axis, keepdims, xs[0]) for v in (bar, ew.not_zero(y), y))
    return (None, None,
            *(like_operand(times(bar, over_size(1.0, x, divisor, y), (bar, x, divisor, y)), x)
              for x in xs))


def _total(a: Value, b: Value, axis, keepdims: bool) -> Value:
    """The sum of a * b along axes."""
    if axis is None and not keepdims and rank(a) == 1:
        return RECORDS["matmul"](a, b)
    return RECORDS["sum"](a * b, axis=axis, keepdims=keepdims)


def _jvp_root(dots, y, squares, count, *xs, axis, keepdims):
    pairs = [(dot, x) for dot, x in zip(dots[2:], xs, strict=True) if dot is not None]
    if not pairs:
        return None
    dots, xs = zip(*pairs)
    total = functools.reduce(ew.add, [_total(dot, x, axis, keepdims) for dot, x in pairs])
    dot = root_forward(total, count, ew.not_zero(y), y, *xs, *dots, axis=axis, keepdims=keepdims)
    if forwards.one_sided:
        squares = functools.reduce(ew.add, [_total(dot, dot, axis, keepdims) for dot in dots])
        squares = squares if count.constant == 1 else RECORDS["quotient"](squares, count)
        dot = ew.where(ew.equal(y, 0), root(squares, count, *dots, axis=axis, keepdims=keepdims),
                       dot)
    return like_tangent(dot, y)


def _infer_root_forward(total: Value, count: Value, divisor: Value, y: Value, *pairs: Value, axis,
                        keepdims) -> Type:
    return over_size.infer(total, count, divisor, y)


def _vjp_root_forward(c, out, total, count, divisor, y, *pairs, axis, keepdims):
    y_bar = _as_cotangent(-over_size(1.0, c * out, divisor, y), y)
    c = c if count.constant == 1 else RECORDS["quotient"](c, count)
    c, divisor, y = (_aligned(v, axis, keepdims, pairs[-1]) for v in (c, divisor, y))
    xs, dots = pairs[:len(pairs) // 2], pairs[len(pairs) // 2:]
    # as those of `over_size_forward`
    x_bars = [over_size(dot, c, _zero_or_nan(y, dot), y) for dot in dots]
    dot_bars = [over_size(c, x, divisor, y) for x in xs]
    return (None, None, None, y_bar,
            *(_as_cotangent(bar, x) for bar, x in zip([*x_bars, *dot_bars], pairs, strict=True)))


def _jvp_root_forward(dots, out, total, count, divisor, y, *pairs, axis, keepdims):
    half, terms = len(pairs) // 2, []
    for k, dot in enumerate(dots[4:]):
        if dot is not None:
            found = _total(dot, pairs[(k + half) % len(pairs)], axis, keepdims)
            found = found if count.constant == 1 else RECORDS["quotient"](found, count)
            terms.append(zero_or_quotient(found, y) if k < half
                         else over_size(1.0, found, divisor, y))
    if dots[3] is not None:
        terms.append(-over_size(1.0, out * dots[3], divisor, y))
    return like_tangent(functools.reduce(ew.add, terms), out) if terms else None


def _syntax_root_forward(total: ast.expr, count: ast.expr, divisor: ast.expr, *rest: ast.expr, axis,
                         keepdims) -> ast.expr:
    """The expression total / count / divisor."""
    is_one = isinstance(count, ast.Constant) and count.value == 1
    return _quotient(total if is_one else _quotient(total, count), divisor)


def _lower_root_forward(op: Op, total: Value, count: Value, divisor: Value, *rest: Value) -> Value:
    return (total if count.constant == 1 else total / count) / divisor


def _batch_root(count: int):
    """Of the operands the first `count` are reduced; the first has all axes of the result."""

    @shared
    def batch(record: Record, flags, *xs: Value, axis, keepdims, **attrs):
        own, most = rank(xs[-1]) - flags[-1], rank(xs[0]) - 1
        if not flags[0]:
            return None
        first = [align(x, rank(x) - flag, most, flag) for x, flag in zip(xs[:count], flags)]
        rest = [x if flag else expand_dims(x, 0) for x, flag in zip(xs[count:], flags[count:])]
        return record(*first, *rest, axis=shifted(axis, own) if own else (), keepdims=keepdims,
                      **attrs)

    return batch


@follows()
def _depends_root(unions, y, deps, squares, *xs, **attrs):
    """The squares are computed from the xs."""
    return spread_as(deps[0], y)


@follows()
def _depends_root_forward(unions, y, deps, *xs, **attrs):
    return spread_as(unions.union(*deps[:4]), y)


root_forward = define(
    # (total, count, divisor, y, *xs, *x_dots): the tangent of y = root(..., count, *xs), as
    # `over_size_forward`
    "root_forward",
    evaluate=lambda total, count, divisor, *rest, axis, keepdims: total / count / divisor,
    infer=_infer_root_forward,
    partials=(None, None, None),  # differentiated by y, the xs and their tangents
    vjp=_vjp_root_forward,
    jvp=_jvp_root_forward,
    states_both=ONE_SIDED,
    syntax=_syntax_root_forward,
    cheap=True,
    depends=_depends_root_forward,
    batch=_batch_root(4),
    lower=_lower_root_forward,
    total=True,
)


root = define(
    # (squares, count, *xs): the square root of `squares`, which are x * x of all xs, added up along
    # axes, over `count`
    "root",
    evaluate=lambda squares, *xs, axis, keepdims: np.sqrt(squares),
    infer=_infer_root,
    partials=(None, None),  # differentiated by xs
    vjp=_vjp_root,
    jvp=_jvp_root,
    states_both=ONE_SIDED,
    syntax=lambda squares, *xs, axis, keepdims: numpy_syntax("sqrt")(squares),
    cheap=True,
    depends=_depends_root,
    batch=_batch_root(2),
    lower=lambda op, squares, *rest: ew.sqrt(squares),
    total=True, exact=True, least=size_of_total,
)


kinked(root, Kink(SIZE, size_zero, shown=(2,)))



def _slope_of_norm(y: Value, x: Value, ord, axis, keepdims: bool) -> Value:
    """(x / y) ** (ord - 1), and 0 where y is 0."""
    y = _aligned(y, axis, keepdims, x)
    return ew.power(over_size(1.0, x, ew.not_zero(y), y), ord - 1)


def _vjp_norm_of(bar, y, total, x, *, ord, axis, keepdims):
    slope = _slope_of_norm(y, x, ord, axis, keepdims)
    bar = _aligned(bar, axis, keepdims, x)
    return None, like_operand(times(bar, slope, (bar, x, y)), x)


def _jvp_norm_of(dots, y, total, x, *, ord, axis, keepdims):
    x_dot = dots[1]
    if x_dot is None:
        return None
    dot = _total(_slope_of_norm(y, x, ord, axis, keepdims), x_dot, axis, keepdims)
    if forwards.one_sided:
        sizes = RECORDS["sum"](ew.power(ew.absolute(x_dot), ord), axis=axis, keepdims=keepdims)
        dot = ew.where(ew.equal(y, 0), ew.power(sizes, 1 / ord), dot)
    return like_tangent(dot, y)


# Considered: the derivative of the composition of powers, which is 0 * inf where x is 0, or where
# x ** ord underflows, and inf / inf where it overflows though the norm does not
norm_of = define(
    # (total, x): the `ord`-norm of x >= 0, where `total` is the sum of x ** ord along axes
    "norm_of",
    evaluate=lambda total, x, *, ord, axis, keepdims: total ** (1 / ord),
    infer=lambda total, x, *, ord, axis, keepdims: ew.power.infer(total, Value(FLOAT)),
    partials=(None,),  # differentiated by x
    vjp=_vjp_norm_of,
    jvp=_jvp_norm_of,
    states_both=ONE_SIDED,
    syntax=lambda total, x, *, ord, axis, keepdims: python_syntax("a ** b")(
        total, ast.Constant(1 / ord)),
    depends=_depends_root,
    batch=_batch_root(1),
    lower=lambda op, total, x: ew.power(total, 1 / op.attrs["ord"]),
    cheap=True, least=size_of_total,
)
kinked(norm_of, Kink(SIZE, size_zero, shown=(1,)))

# ------------------------------------------------------------------------------------------ squares



@follows()
def _depends_as_if(unions, y, deps, *xs):
    return spread_as(unions.union(*deps), y)


def _as_if(name: str, elementwise: bool) -> Record:
    """Define the op (y, under): y, differentiated as `under`, which is equal up to rounding."""
    return define(name, evaluate=lambda y, under: y, infer=lambda y, under: y.type,
                  partials=(None, 1), elementwise=elementwise, cheap=True, slope="finite",
                  differentiated_as=lambda y, x, under: under,
                  syntax=lambda y, under: y, stands_for=lambda op, out: op.inputs[0],
                  lower=its_operand, depends=None if elementwise else _depends_as_if)


# discarded entries are a matter of the first operand only
as_if, complex_as_if = _as_if("as_if", True), _as_if("complex_as_if", False)


def not_negative(x: Value) -> Value:
    """`x`, with derivative NaN where it is negative, as that of its root is."""
    return x if is_never_negative(x) else no_negative(x)


no_negative = elementwise("no_negative", lambda y, x: ew.where(ew.less(x, 0), math.nan, 1),
                          evaluate=lambda x: x, syntax=lambda x: x, lower=its_operand)
