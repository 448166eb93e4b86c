"""Differentiate the square of a root as its radicand.

    >>> from s2s.transform.reverse.vjp import vjp  # which runs it first
    >>> show(vjp(read('''
    ... def f(x: 'float64[n]'):
    ...     r = np.hypot(x, 2.0)
    ...     return 3 * r**2
    ... '''), [0]))
    def f_vjp(x, y_bar):
        r = np.hypot(x, 2.0)
        value = 3 * r**2
        x_bar = 6 * y_bar * x
        return value, x_bar

    squares of     sqrt, norm, std, abs, hypot, x ** 0.5, and products, quotients, selections and
                   rearrangements of these
    written as     r ** 2, r ** 4, np.square(r), r * r, r * c * r, r @ r; and (x ** (1 / 3)) ** 3,
                   np.cbrt(x) ** 3, norm(x, 4) ** 4

At a root of 0 the chain rule says 0 * inf, and by the convention for sizes 0, which is right once
and wrong in second order.  The value stays what the program computes, bit for bit; an op beside it,
`as_if`, which is printed as nothing, says what is differentiated.  It is put in before a function
is differentiated, and is gone afterwards.

Considered: a rule of `power` that inspects its operand, which serves reverse mode only and is
needed for each spelling in each rule; to rewrite when a program is read, which changes the source
of programs that nobody differentiates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ...ir.builder import emit
from ...ir.graph import MISSING, Function, Op, Value, walk
from ...ir.reemit import rebuild
from ...ir.types import List, Scalar, Tuple, is_inexact
from ...ops.arrays.concatenate import concatenate_record, stack_record
from ...ops.arrays.create import array_record
from ...ops.arrays.norms import as_if, complex_as_if, norm_of, not_negative, root
from ...ops.arrays.products import dot_record, inner_record, matmul
from ...ops.core.define_elementwise import IN_MATH
from ...ops.core.elementwise import imag, multiply, power, real
from ...ops.core.record import RECORDS, dtype_of, rank, same_shape, value

DEPTH = 6  # the most ops between a square and its root


def mark_squares(function: Function) -> Function:
    """Mark squares of roots in `function` with the expression to differentiate instead."""
    if not any(op.record.root or op.record.size or op.record in (power, root, norm_of)
               for op in walk(function.block)):
        return function
    return rebuild(function, rule=_marked)


def drop_marks(op: Op, inputs: Sequence[Value]) -> Sequence[Value] | None:
    """Remove the marks beside squares (a rule for `rebuild`)."""
    return [inputs[0]] if op.record in (as_if, complex_as_if) else None


def without_marks(function: Function) -> Function:
    """Remove the marks from `function` after differentiation."""
    return (rebuild(function, rule=drop_marks)
            if any(op.record in (as_if, complex_as_if) for op in walk(function.block))
            else function)


def _marked(op: Op, inputs: list[Value]) -> Sequence[Value] | None:
    if len(op.outputs) != 1 or str(dtype_of(op.output.type)).startswith("complex"):
        return None
    if op.record.root == 2 and (size := _norm(inputs[0])) is not None:
        return [size]
    under = _differentiated_as(op, inputs)
    if under is None:
        return None
    y = emit(op.record, *inputs, **op.attrs)
    if not same_shape(y.type, under.type) or dtype_of(y.type) != dtype_of(under.type):
        return [y]
    return [as_if(y, under)]


def _differentiated_as(op: Op, inputs: list[Value]) -> Value | None:
    match op.name:
        case _ if op.record.root == 2:
            return _as_size(inputs[0])
        case _ if op.record in (power, IN_MATH[power]):
            return _power(inputs[0], inputs[1].constant)
        case "square":
            return _square(inputs[0])
        case "multiply":
            return _product([*_factors(inputs[0]), *_factors(inputs[1])])
        case _ if (op.record in (matmul, dot_record, inner_record) and inputs[0] is inputs[1]
                   and rank(inputs[0]) == 1):
            under = _square(inputs[0])
            return None if under is None else RECORDS["sum"](under, axis=None, keepdims=False)
        case "einsum":
            return _contraction(inputs, **op.attrs)
    return None


def _norm(x: Value) -> Value | None:
    """Return the root of `x`, the sum of z * z along axes, as a size."""
    z = _squared(x.op.inputs[0]) if x.op is not None and x.op.name == "sum" else None
    return None if z is None else RECORDS["root"](x, 1, z, **x.op.attrs)


def _as_size(x: Value) -> Value | None:
    """Return abs(z), where `x` is z * z."""
    z = _squared(x)
    if z is None or isinstance(z.type, Scalar) and z.type.weak:
        return None if z is None else RECORDS["abs_"](z)
    return RECORDS["absolute"](z)


def _squared(x: Value) -> Value | None:
    """Return z, where `x` is the square of a real z; None otherwise."""
    op = x.op
    if op is None or not is_inexact(dtype_of(x.type) or "int64"):
        return None
    match op.name:
        case "multiply" if op.inputs[0] is op.inputs[1]:
            return op.inputs[0]
        case "square":
            return op.inputs[0]
        case "power" if op.inputs[1].constant == 2:
            return op.inputs[0]
        case "as_if":
            return _squared(op.inputs[0])
    return None


def _power(x: Value, n) -> Value | None:
    """Return x ** n where x is a root and n a multiple of its order."""
    if type(n) not in (int, float) or n != int(n) or not n:
        return None
    op = x.op
    if op is not None and n % 3 == 0 and op.record.root == 3:
        return _raised(op.inputs[0], int(n) // 3)
    order = _order(op)
    if order is not None and order != 2:
        return _raised(not_negative(op.inputs[0]), int(n) // order) if n % order == 0 else None
    under = _square(x) if n % 2 == 0 else None
    return None if under is None else _raised(under, int(n) // 2)


def _contraction(xs: list[Value], subscripts: str) -> Value | None:
    """Return the sum of products in which a root occurs twice, by the same subscripts."""
    terms, result = subscripts.split("->") if "->" in subscripts else (subscripts, None)
    terms = terms.split(",")
    for k, x in enumerate(xs):
        again = next((n for n in range(k + 1, len(xs)) if xs[n] is x and terms[n] == terms[k]),
                     None)
        if again is None or result is None or (under := _square(x)) is None:
            continue
        rest = [n for n in range(len(xs)) if n not in (k, again)]
        written = ",".join(terms[n] for n in (k, *rest))
        return RECORDS["einsum"](under, *(xs[n] for n in rest), subscripts=f"{written}->{result}")
    return None


def _raised(x: Value, n: int) -> Value:
    return x if n == 1 else x ** n


def _order(op: Op | None) -> int | None:
    """Return k, where `op` is a k-th root."""
    if op is not None and op.record is norm_of:
        return int(op.attrs["ord"]) if op.attrs["ord"] % 1 == 0 else None
    exponent = op.inputs[1].constant if op is not None and op.name == "power" else MISSING
    if type(exponent) is not float or not 0 < exponent < 1:
        return None
    order = round(1 / exponent)
    return order if 1 / order == exponent else None


def _square(x: Value, depth: int = DEPTH) -> Value | None:
    """Return x * x without the roots that x is computed from; None if there are none."""
    op = x.op
    if op is None or not depth:
        return None
    inner = functools.partial(_square, depth=depth - 1)
    match op.name:
        case _ if op.record.root == 2:
            return not_negative(op.inputs[0])
        case "root":
            return op.inputs[0]
        case "power" if _order(op) == 2:
            return not_negative(op.inputs[0])
        case _ if op.record.size:
            return functools.reduce(RECORDS["add"],
                                    [part * part for y in op.inputs for part in _parts(y)])
        case _ if op.record.signs == (-1,) or op.record is as_if:
            return inner(op.inputs[0])
        case _ if op.record is multiply or op.record.divides:
            return _of_both(op.record, op.inputs, inner)
        case _ if op.record.selects:
            return _of_both(lambda *sides: op.record(op.inputs[0], *sides), op.inputs[1:], inner)
        case _ if _moves(op):
            under = inner(op.inputs[0])
            return None if under is None else emit(op.record, under, *op.inputs[1:], **op.attrs)
        case _ if op.record in (array_record, stack_record, concatenate_record):
            return _of_both(lambda *parts: emit(op.record, *parts, **op.attrs), op.inputs, inner)
    return None


def _moves(op: Op) -> bool:
    """Test whether `op` moves the elements of one array, or converts them."""
    is_linear = op.record.linear == (0,)
    return (op.record.converts or op.record.moves == (0,) and is_linear
            and not isinstance(op.inputs[0].type, (List, Tuple)))


def _of_both(made: Callable, xs: Sequence[Value], square: Callable) -> Value | None:
    """Return the squares of all of `xs` combined; None if none is that of a root."""
    found = [square(x) for x in xs]
    return (None if all(y is None for y in found)
            else made(*(x * x if y is None else y for x, y in zip(xs, found))))


def _parts(x: Value) -> list[Value]:
    return [real(x), imag(x)] if str(dtype_of(x.type)).startswith("complex") else [x]


def _factors(x: Value, depth: int = DEPTH) -> list[tuple[Value, bool]]:
    """Return the factors of `x`, each with whether it is a divisor."""
    if x.op is None or not depth:
        return [(x, False)]
    match x.op.name:
        case "multiply":
            return [factor for y in x.op.inputs for factor in _factors(y, depth - 1)]
        case "divide" if depth > 1:
            top, bottom = x.op.inputs
            return [*_factors(top, depth - 1),
                    *((y, not under) for y, under in _factors(bottom, depth - 1))]
    return [(x, False)]


def _product(factors: list[tuple[Value, bool]]) -> Value | None:
    """Return the product, if a root occurs in it twice as a factor."""
    for k, (x, under) in enumerate(factors):
        again = next((n for n in range(k + 1, len(factors)) if factors[n][0] is x
                      and factors[n][1] is under), None)
        if again is None or (square := _square(x)) is None:
            continue
        rest = [(square, under),
                *(factor for n, factor in enumerate(factors) if n not in (k, again))]
        tops = [factor for factor, below in rest if not below] or [value(1.0)]
        # not a reciprocal: a radicand may be an integer
        bottoms = [factor for factor, below in rest if below]
        return functools.reduce(lambda a, b: a / b, bottoms,
                                functools.reduce(lambda a, b: a * b, tops))
    return None
