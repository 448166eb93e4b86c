"""The chain rule for elementwise ops: reverse and forward rules derived from the partial
derivatives.

    reverse   x_bar = sum_to(y_bar * ∂y/∂x, x)
    forward   y_dot = Σ x_dot * ∂y/∂x

Note [Complex numbers]
For complex operands the partials are those of holomorphic functions, and a cotangent is multiplied
by them without conjugation, as in JAX: the gradient of a real function of z = u + iv is ∂/∂u - i
∂/∂v. Where a real value meets a complex derivative, in either mode, the real part is taken, which
is also what `abs` and `real`, which are not holomorphic, need.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import add

import numpy as np

from ...ir.builder import current
from ...ir.graph import MISSING, Value
from ...ir.types import Array, Scalar, Type, carries_derivative, is_inexact
from .identities import is_normal
from .record import RECORDS, Record, deriving, dims_of, dtype_of, same_shape, shared, value
from .shape import shaped_like, spread, spread_as, sum_to

MOST_TERMS = 32  # of one cotangent
FIRST_OF = ("negative", "divide", "quotient", "single_quotient", "astype", "convert", "real",
            "imag", "conjugate",
            # 0 where the first operand is
            "over_size", "over_size_forward", "times_sign", "times_sign_forward")
# the op of a slope -> what its product with a cotangent is (ops/arrays/norms.py)
SLOPES_OF_SIZES: dict = {}

# Note [Strong zeros]
# Elements that a program discards (`d[1:]`, np.triu(d, 1), `d[k, k] = 0.0`, a row that no trip of a
# loop reads) have a cotangent of exactly 0, and no influence, though their slope may be infinite:
# np.sqrt at 0.  So where entries may have been discarded and a slope may be infinite
# (analysis/discarded_entries.py, Note [Slopes]) the rule emits a strong product: `a * b`, and 0
# where a is 0 whatever b is.  It stays outermost, as masks do: later factors multiply b, so that
# `a` remains the cotangent from where entries were discarded, and an accidental 0 later on, as 2 *
# y at y = 0, does not hide an infinite slope.
#
#     np.sum(np.triu(np.sqrt(z * z), 1))     d_bar = np.triu(np.ones_like(d), 1)
#                                            z_bar = np.where(d_bar != 0.0, d_bar / d * z, 0.0)
#
# It is an op of its own until the code is written (transform/cleanup/strong_products.py), because
# its derivative is not that of np.where: in the sum of np.triu((d - 1) ** 2) the cotangent of an
# entry that counts is 0 at d = 1, and a Hessian needs its tangent times the slope.  Tangents are
# treated alike where they are 0 because the direction does not affect their values
# (transform/forward/jvp.py).
#
# Considered: masks of the selected entries, for gathers and scatters as for `x[mask]`.  They are
# exact for entries that count and have a cotangent of 0 (there a strong zero gives 0, the masks
# NaN), but cost an array of booleans each, and loops that read single elements would have to fill
# them.  Applying the slope to the selected entries only computes nothing in vain, but several uses
# need several chains, and loops have none.


@contextmanager
def strong_zeros(wanted: bool | Container[Value] = True) -> Iterator[None]:
    """Context manager: `times` emits strong products of cotangents and tangents (Note [Strong
    zeros]), only of those in `wanted` if it is a set.
    """
    before, _strong[0] = _strong[0], wanted
    try:
        yield
    finally:
        _strong[0] = before


_strong: list[bool | Container[Value]] = [False]
# whether `times` multiplies tangents, whose factors may have larger shapes
_of_tangents = [False]


def _asks_strong(bar: Value) -> bool:
    wanted = _strong[0]
    return (wanted if isinstance(wanted, bool)
            else bar in wanted or bar.op is not None and bar.op.name == "strong_product")


def _times_strongly(bar: Value, partial: Value, atoms: tuple):
    """`bar * partial` as a strong product, or None if nothing was masked out."""
    if bar.constant is not MISSING:
        return value(0.0) if bar.constant == 0 else None
    with strong_zeros(False):
        if bar.op is not None and bar.op.name == "strong_product":
            a, b = bar.op.inputs
            return RECORDS["strong_product"](a, times(b, partial, (b, *atoms)))
        number, rest = _number_in(bar) or (1, bar)
        return RECORDS["strong_product"](rest,
                                         _times_number(partial, number) if number else partial)


def strong_sum(x: Value, y: Value, plus: Callable) -> Value | None:
    """x + y as one strong product, if both are products of one cotangent, and one of them is
    strong; `plus` adds the other factors.
    """
    if (all(z.op is None or z.op.name != "strong_product" for z in (x, y))
        or not same_shape(x.type, y.type)):
        return None
    (a, p), (other, q) = _cotangent_in(x), _cotangent_in(y)
    if a is not other:
        return None
    return RECORDS["strong_product"](a,
                                     plus(p, q) if isinstance(p, Value) and isinstance(q, Value)
                                     else q + p if isinstance(q, Value) else p + q)


def _cotangent_in(x: Value) -> tuple[Value, object]:
    """(a, b), if `x` is the product of the cotangent a with b."""
    if x.op is not None and x.op.name == "strong_product":
        return tuple(x.op.inputs)
    if x.op is not None and x.op.name == "negative":
        a, b = _cotangent_in(x.op.inputs[0])
        return a, -b
    number, rest = _number_in(x) or (1, x)
    return rest, number


def _has_kept_axis(of_bar: Type, of_product: Type) -> bool:
    """Whether a cotangent is that of a reduction that has kept its axes, with length 1, of which
    the product has all elements.
    """
    dims, others = dims_of(of_bar), dims_of(of_product)
    return (len(dims) == len(others) and dims != others
            and all(n in (1, m) for n, m in zip(dims, others)))


def times(bar, partial, atoms: tuple = (), left_out: bool = False):
    """The product `bar * partial`, simplified as a person would write it: bar, -bar, bar / b, 2 *
    bar * x, where(c, bar, 0).

    If `bar` is spread over a shape, the partial must broadcast to that shape, unless `bar` is a
    tangent or has axes of length 1 that the partial has whole. `partial` is taken apart where a
    rule has just put it together; `atoms` are the values that existed before and stay whole.

    Note [Masks stay outermost]: a choice with a constant side, `where(c, p, 0)`, becomes a choice
    between products, in the partial as in the cotangent, and so through a whole chain of ops: what
    belongs to the side not taken never multiplies, so an inf or a nan there stays there.  A sum of
    which each term is such a choice is one, too: what no term chooses has no part in it.  With
    `left_out` that is seen to.  So it is with partials that are inf or nan themselves.
    """
    if not isinstance(partial, Value):
        return _times_number(bar, partial)
    if (type(partial.constant) is int
        or type(partial.constant) in (float, complex) and cmath.isfinite(partial.constant)):
        return _times_number(bar, partial.constant)  # 0 where a mask has made it 0
    if not isinstance(bar, Value):
        bar = value(bar)
    if (bar.constant is not MISSING and bar.constant == 1
        and is_inexact(dtype_of(partial.type) or "float64")):
        return partial
    if bar.op is not None and bar.op.name == "spread":
        s, like = bar.op.inputs
        product = times(s, partial, atoms, left_out)
        if not same_shape(product.type, bar.type) and _of_tangents[0]:
            return bar * partial
        if _has_kept_axis(bar.type, product.type):
            return product
        return (product if same_shape(product.type, bar.type)
                else spread_as(product, like, bar.op.attrs.get("dtype")))
    choice = bar.op.inputs[0].op if bar.op is not None and bar.op.record is shaped_like else bar.op
    if (choice is not None and choice.name in ("where", "select")
        and any(_is_zero(x) for x in choice.inputs[1:])):
        condition, *sides = choice.inputs
        return RECORDS["where"](condition,
                                *(x if _is_zero(x) else times(x, partial, atoms) for x in sides))
    if bar.op is not None and bar.op.name == "negative":
        return -times(bar.op.inputs[0], partial, atoms, left_out)
    if not left_out and (chosen := chosen_by_a_term(bar)) is not None:
        return where_chosen(chosen, times(bar, partial, atoms, left_out=True))
    is_open = partial.op is not None and all(partial is not atom for atom in atoms)
    if (_asks_strong(bar) and not (is_open and _is_choice_of_constants(partial))
        and (product := _times_strongly(bar, partial, atoms)) is not None):
        return product
    if is_open:
        inputs = partial.op.inputs
        if (partial.op.name in SLOPES_OF_SIZES
            and (product := SLOPES_OF_SIZES[partial.op.name](bar, partial)) is not None):
            return product
        match partial.op.name:
            case "negative":
                return -times(bar, inputs[0], atoms, left_out)
            case "divide" | "quotient" | "single_quotient" if (
                    MISSING is inputs[0].constant is inputs[1].constant is bar.constant
                    and same_shape(inputs[1].type, bar.type) and not _is_seed(bar)):
                # for y = a / b, the cotangent of a; if b is smaller, sum first
                return times(bar / inputs[1], inputs[0], atoms, left_out)
            case "divide" | "quotient" | "single_quotient":
                return times(bar, inputs[0], atoms, left_out) / inputs[1]
            case "multiply" if not (_is_seed(bar) and inputs[0].constant is not MISSING):
                return times(times(bar, inputs[0], atoms, left_out), inputs[1], atoms, left_out)
            case "where" | "select" if _is_choice_of_constants(partial):
                return RECORDS["where"](inputs[0], times(bar, inputs[1], atoms, left_out),
                                        times(bar, inputs[2], atoms, left_out))
    return (_times_number(bar, partial.constant) if type(partial.constant) in (float, complex)
            else bar * partial)


def chosen_by_a_term(*bars: Value) -> Value | None:
    """The mask under which one of `bars`, or one of its terms, is not masked out; None unless all
    terms are choices with 0.
    """
    terms, conditions, seen = [*bars], {}, 0
    while terms:
        x, seen = terms.pop(), seen + 1
        if _is_zero(x):
            continue
        if x.op is None or seen > MOST_TERMS:
            return None
        if (found := _choice(x)) is not None:
            conditions[found] = None
        elif x.op.name in ("add", "subtract"):
            terms += reversed(x.op.inputs)
        elif x.op.record is shaped_like or x.op.name in FIRST_OF:
            terms.append(x.op.inputs[0])
        elif (x.op.name == "multiply"
              and (factor := next((y for y in x.op.inputs if _is_left_out(y)), None)) is not None):
            terms.append(factor)
        else:
            return None
    if not conditions or len({condition for condition, _ in conditions}) < len(conditions):
        return None  # or the masks are complementary
    chosen = [c if holds else RECORDS["logical_not"](c) for c, holds in conditions]
    return reduce(RECORDS["bitwise_or"], chosen)


def _choice(x: Value) -> tuple[Value, bool] | None:
    """The condition of a choice between something and 0, and whether 0 is its `else` value."""
    if x.op.name not in ("where", "select") or dtype_of(x.op.inputs[0].type) != "bool":
        return None
    is_zero = [_is_zero(side) for side in x.op.inputs[1:]]
    return (x.op.inputs[0], is_zero[1]) if is_zero[0] != is_zero[1] else None


def _is_left_out(x: Value) -> bool:
    """Whether an earlier derivative has masked out elements of `x`; a mask of the program itself
    may stay in the product.
    """
    while x.op is not None and x.op.line is not None and x.op.line.backwards:
        if x.op.name in ("multiply", "add", "subtract") or _choice(x) is not None:
            return chosen_by_a_term(x) is not None
        if x.op.name not in FIRST_OF and x.op.record is not shaped_like:
            break
        x = x.op.inputs[0]
    return False


def where_chosen(chosen: Value, x: Value) -> Value:
    """`x` where it is chosen, else 0."""
    is_not = chosen.op is not None and chosen.op.name == "logical_not"
    return (RECORDS["where"](chosen.op.inputs[0], 0.0, x) if is_not
            else RECORDS["where"](chosen, x, 0.0))


def _is_zero(x: Value) -> bool:
    return type(x.constant) in (int, float) and x.constant == 0


def _is_choice_of_constants(x: Value) -> bool:
    """Whether `x` is a choice of which a side is a number, as the slopes of np.minimum are.

    It stays outside of strong products, whose first factor tells nothing of what it leaves out.
    """
    return x.op.name in ("where", "select") and any(y.constant is not MISSING
                                                    for y in x.op.inputs[1:])


def _is_seed(bar: Value) -> bool:
    """Whether `bar` is an argument of the function, for which 1.0 may be substituted later; 2 * x
    should then not show it.
    """
    return bar.op is None and current().outer is None


def _times_number(bar, number):
    """`number * bar`, with constant factors multiplied out: 2 * (0.5 * z / y) is z / y."""
    if not isinstance(bar, Value) or not isinstance(number, (int, float, complex)):
        return bar * number
    if number == 0:
        return value(0.0)
    if number == 1:
        return bar
    if number == -1:
        return -bar
    match bar.op.name if bar.op is not None else "":
        case "negative":
            return -_times_number(bar.op.inputs[0], number)
        case "spread":
            return spread_as(_times_number(bar.op.inputs[0], number), bar.op.inputs[1],
                             bar.op.attrs.get("dtype"))
        case "strong_product":
            return bar.op.record(bar.op.inputs[0], _times_number(bar.op.inputs[1], number))
        case "where" | "select" if any(_is_zero(x) for x in bar.op.inputs[1:]):
            condition, *sides = bar.op.inputs
            return RECORDS["where"](condition,
                                    *(x if _is_zero(x) else _times_number(x, number)
                                      for x in sides))
        case "multiply" if ((found := _number_in(bar)) is not None
                            and is_normal(number * found[0], bar)):
            return _times_number(found[1], number * found[0])
        case "divide" | "quotient" if ((n := bar.op.inputs[0]).op is not None
                                       and n.op.name == "multiply"
                                       and type(n.op.inputs[0].constant) in (int, float)):
            # np.divide stays np.divide
            return bar.op.record(_times_number(n, number), bar.op.inputs[1])
    return number * bar


def _number_in(product: Value) -> tuple | None:
    """(n, rest), if `product` is n * rest for a literal number n; for arrays only if it comes
    first.
    """
    if product.op is None or product.op.name != "multiply":
        return None
    a, b = product.op.inputs
    if type(a.constant) in (int, float):
        return a.constant, b
    if not isinstance(product.type, Scalar):
        return None
    if (found := _number_in(a)) is not None:
        return found[0], found[1] * b
    if (found := _number_in(b)) is not None:
        return found[0], a * found[1]
    return None


@shared
def elementwise_vjp(record: Record, bar, y, *xs, **attrs) -> tuple:
    """The contributions of y's cotangent to those of the operands, each in its operand's shape and
    dtype.
    """
    return tuple(None if partial is None or not _differentiable(x) else
                 like_operand(sum_to(_product(bar, partial, y, xs, attrs, record), x), x)
                 for partial, x in zip(record.partials, xs, strict=True))


@shared
def elementwise_jvp(record: Record, dots, y, *xs, **attrs):
    """The tangent of y, in its shape; None if no relevant operand has one."""
    total, covered = None, True
    for dot, partial, x in zip(dots, record.partials, xs, strict=True):
        if dot is None or partial is None or not _differentiable(x):
            covered = covered and isinstance(x, Value) and isinstance(x.type, Scalar)
            continue
        if isinstance(dot, Value) and dot.op is not None and dot.op.name == "spread":
            dot, covered = dot.op.inputs[0], False
        before, _of_tangents[0] = _of_tangents[0], True
        try:
            term = _product(dot, partial, y, xs, attrs, record)
        finally:
            _of_tangents[0] = before
        total = term if total is None else _sum_of_tangents(total, term)
    if total is None:
        return None
    return like_tangent(total, y, covered)


@shared
def vjp_by_partial(record: Record, bar, y, *xs, **attrs) -> tuple:
    """The contributions to any number of operands, which are numbers, by the partial derivative
    that they share.
    """
    return tuple(times(bar, record.partial(y, x), (y, *xs)) for x in xs)


@shared
def jvp_by_partial(record: Record, dots, y, *xs, **attrs):
    """The tangent of a function of any number of operands, which are numbers."""
    terms = [times(dot, record.partial(y, x), (y, *xs)) for dot, x in zip(dots, xs, strict=True)
             if dot is not None]
    return reduce(add, terms) if terms else None


def _sum_of_tangents(a, b):
    found = (strong_sum(a, b, lambda p, q: times(p, 2) if p is q else p + q)
             if isinstance(a, Value) and isinstance(b, Value) else None)
    return a + b if found is None else found


def like_tangent(total, y, covered: bool = False):
    """`total` as a tangent of `y`: real if y is, and broadcast to its shape, unless it is
    `covered`.
    """
    total = real_if(total, y)
    return total if covered else spread(total, y)


def _product(bar, partial, y, xs, attrs, record):
    with deriving(record, y):
        product = times(bar, partial(y, *xs, **attrs) if callable(partial) else partial, (y, *xs))
    if isinstance(product, Value) and isinstance(bar, Value) and product.constant is not MISSING \
            and not isinstance(bar.type, Scalar):
        return spread(product, bar)
    return product


def _differentiable(x) -> bool:
    if isinstance(x, Value):
        return carries_derivative(x.type)
    return is_inexact(np.asarray(x).dtype.name)


def _dtype(x) -> str | None:
    return dtype_of(x.type) if isinstance(x, Value) else np.asarray(x).dtype.name


def real_if(bar, x):
    """The real part of `bar` if `x` is real."""
    # real unless known otherwise
    if (_dtype(bar) or "").startswith("complex") and (_dtype(x) or "float").startswith("float"):
        return RECORDS["real"](bar)
    return bar


# Note [A cotangent has its primal's dtype]
# So has a tangent.  The contributions of rules are converted where they are added
# (transform/reverse/adjoint.py), tangents where they are set (transform/forward/jvp.py), so that no
# rule can widen either.  Python numbers, mostly 1.0 and 0.0, stay Python numbers while they are
# computed with, since they adopt the dtype of the other operand (NEP 50), and are converted where a
# value leaves a branch, a loop or the function: `like_operand(bar, x, firm=True)`.  A number
# broadcast to an array, `spread`, names its dtype.
# Considered: seeds and zeros of type np.float32, which break the simplification of products with a
# factor 1.0.


def like_operand(bar, x, firm: bool = False):
    """`bar` as a cotangent of `x`: real if x is, and of its dtype; if `firm`, for Python numbers,
    too.
    """
    bar = real_if(bar, x)
    if not isinstance(bar, Value) or not isinstance(x, Value) or not firm and _is_weak(bar.type):
        return bar
    dtype, own = dtype_of(x.type), dtype_of(bar.type)
    if (dtype is None or own is None or dtype == own and not _is_weak(bar.type)
        or not is_inexact(dtype)):
        return bar
    if isinstance(x.type, Scalar) and isinstance(bar.type, Scalar):
        if _is_weak(x.type):
            return (bar if dtype == own or _is_weak(bar.type)
                    else RECORDS["float_" if dtype == "float64" else "complex_"](bar))
        if _is_weak(bar.type) and dtype in ("float64", "complex128"):
            return bar  # the dtypes of Python's numbers
        if not firm and (own, dtype) in (("float32", "complex64"), ("float64", "complex128")):
            return bar  # the accumulated cotangent is complex
    return RECORDS["astype"](bar, dtype=dtype)


def _is_weak(type: Type) -> bool:
    return (isinstance(type, Scalar) and type.weak
            or not isinstance(type, (Scalar, Array)) and type.dtype is None)
