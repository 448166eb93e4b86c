"""Calls of elementwise functions with optional arguments, variable numbers of operands, or Python's
own meaning.
"""

from __future__ import annotations

import functools
import math
import operator
from fractions import Fraction

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current
from ...ir.graph import MISSING, Value
from ...ir.types import BOOL, FLOAT, INT, Array, Scalar, Tuple, Unknown
from ..arrays.index import take
from ..core import elementwise as ew
from ..core import raise_conditions
from ..core.cast import as_dtype, astype, bool_, complex_, convert, float_, int_
from ..core.control import item
from ..core.define_elementwise import IN_MATH, builtin_syntax, is_none
from ..core.kinks import Kink, at_halves, kinked
from ..core.record import (
    ATTRIBUTES,
    FUNCTIONS,
    METHODS,
    define,
    dims_of,
    dtype_of,
    no_jvp,
    no_vjp,
    numpy_function,
    promote,
    rank,
    static,
    value,
)
from ..core.shape import members
from ..core.stablehlo_rules import rounding

FUNCTIONS[abs] = ew.abs_
FUNCTIONS.update({operator.add: ew.add, operator.sub: ew.subtract, operator.mul: ew.multiply,
                  operator.truediv: ew.divide, operator.floordiv: ew.floor_divide,
                  operator.mod: ew.remainder, operator.pow: ew.power, operator.neg: ew.negative})
METHODS["is_integer"] = lambda x: ew.equal(ew.remainder(x, 1), 0)
for _name in ("conj", "conjugate"):
    numpy_function(method=_name, view="maybe", copies=True)(ew.conjugate)
for _record in (ew.real, ew.imag):
    numpy_function(attribute=_record.name, view="component")(_record)


@numpy_function(np.clip, method="clip")
def clip(x: Value, a_min=None, a_max=None, *, min=None, max=None) -> Value:
    """np.clip; each bound may be missing or None."""
    lo, hi = _given(a_min, min), _given(a_max, max)
    if lo is None:
        return ew.positive(x) if hi is None else ew.minimum(x, hi)
    return ew.maximum(x, lo) if hi is None else ew.clip(x, lo, hi)


def _given(*arguments):
    """The argument that is not None, or None."""
    return next((a for a in arguments if not is_none(a)), None)


@numpy_function(np.where)
def where(condition: Value, *branches: Value) -> Value:
    """np.where(condition, a, b), or np.where(condition): the indices where it is true."""
    if len(branches) == 1:
        raise UnsupportedError("np.where of two arguments", current().line,
                               "say what both sides are, or neither")
    if not branches:
        return FUNCTIONS[np.nonzero](condition)
    branches = list(map(value, branches))
    return ew.where(condition, *(_of_one_dtype(branches) if rank(value(condition)) == 0
                                 else branches))


def _of_one_dtype(choices: list[Value]) -> list[Value]:
    """Numbers in the dtype of all together, as NumPy makes an array of them, where a choice between
    objects does not convert them; constants may stay Python's.
    """
    if not all(isinstance(x.type, Scalar) and x.type.dtype is not None for x in choices):
        return choices
    wanted = promote(*(x.type for x in choices))[0]
    pythons = wanted in ("int64", "float64")
    return [x if x.type.dtype == wanted or x.constant is not MISSING and pythons
            else convert(x, dtype=wanted) for x in choices]


@numpy_function(np.select)
def select(condlist, choicelist, default=0) -> Value:
    """np.select: the choice of the first true condition."""
    conditions, choices = members(condlist), members(choicelist)
    if conditions is None or choices is None:
        raise UnsupportedError("np.select of something other than lists", current().line,
                               "write the conditions and choices as lists")
    if len(conditions) != len(choices):
        raise TypeMismatchError(
            f"np.select with {len(conditions)} conditions and {len(choices)} choices",
            current().line, "give one choice for each condition")
    if all(rank(condition) == 0 for condition in conditions):
        *choices, default = _of_one_dtype([*choices, value(default)])
    found = value(default)
    for condition, choice in zip(conditions[::-1], choices[::-1]):
        found = ew.where(condition, choice, found)
    return found


@numpy_function(np.round, np.around, method="round")
def round_(x: Value, decimals=0) -> Value:
    return ew.round_(x, decimals)


round_to_int = define("round_to_int", evaluate=round, infer=lambda x: INT,
                      syntax=builtin_syntax("round"), partials=(None,),
                      raises=raise_conditions.TO_INTEGER, elementwise=True, cheap=True,
                      vjp=no_vjp, jvp=no_jvp,
                      batch=lambda x: astype(ew.round_(x, 0), dtype="int64"), of_numbers=True,
                      stablehlo=rounding("round_nearest_even"))
kinked(round_to_int, Kink("a step: the derivative is taken as 0", at_halves))


round_decimal = define("round_decimal", evaluate=round,
                       infer=lambda x, n: INT if x.type == BOOL else x.type,
                       syntax=builtin_syntax("round"), partials=(None, None), elementwise=True,
                       cheap=True, raises=raise_conditions.ROUND,
                       vjp=no_vjp, jvp=no_jvp,
                       # Python rounds decimals, NumPy binary fractions: lane by lane
                       batch=lambda x, n: None, native="python")
kinked(round_decimal, Kink("a step: the derivative is taken as 0",
                           lambda y, x, n: np.isfinite(x) and Fraction(x) * Fraction(10)**n % 1
                           == Fraction(1, 2)))


@numpy_function(round)
def python_round(number: Value, ndigits=None) -> Value:
    """round(x) is an int; round(x, n) keeps its type, with derivative 0; Python numbers are rounded
    as decimals.
    """
    if is_none(ndigits):
        return round_to_int(number)
    return (round_decimal(number, ndigits) if number.type in (BOOL, INT, FLOAT)
            else ew.round_(number, ndigits))


def _choice(record, reduction):
    """Python's max and min: of several numbers, of the members of a tuple, or of an array."""

    def choose(*args: Value, **keywords) -> Value:
        if keywords:
            raise UnsupportedError(f"{record.name[:-1]} with {', '.join(keywords)}=",
                                   current().line, "write the comparison out")
        if len(args) == 1 and isinstance(args[0].type, Tuple):
            args = tuple(item(args[0], index=k) for k in range(len(args[0].type.items)))
        if len(args) == 1 and rank(args[0]) in (None, 0, 1):
            return FUNCTIONS[reduction](args[0])
        if len(args) == 1 and dims_of(args[0].type)[:1] == (1,):
            return take(args[0], 0)
        if any(isinstance(a.type, Array) for a in args):
            raise UnsupportedError(
                f"{record.name[:-1]} of arrays compares them as a whole", current().line,
                f"use np.{record.name[:-1]}imum, or np.{record.name[:-1]} of all elements")
        return functools.reduce(record, args)

    return choose


FUNCTIONS[max] = _choice(ew.max_, np.max)
FUNCTIONS[min] = _choice(ew.min_, np.min)


@numpy_function(divmod)
def divmod_(a: Value, b: Value) -> Value:
    return value((a // b, a % b))


@numpy_function(pow)
def pow_(a: Value, b: Value) -> Value:
    return a ** b


@numpy_function(math.log)
def math_log(x: Value, base=None) -> Value:
    log = IN_MATH[ew.log]
    return log(x) if is_none(base) else log(x) / log(value(base))


@numpy_function(np.isclose)
def isclose(a: Value, b: Value, rtol=1e-05, atol=1e-08, equal_nan=False) -> Value:
    """|a - b| <= atol + rtol * |b|, or a == b (infinities)."""
    near = ew.logical_and(ew.isfinite(b),
                          ew.less_equal(ew.absolute(a - b), atol + rtol * ew.absolute(b)))
    near = ew.logical_or(near, ew.equal(a, b))
    return (ew.logical_or(near, ew.logical_and(ew.isnan(a), ew.isnan(b))) if static(equal_nan)
            else near)


@numpy_function(np.allclose)
def allclose(a: Value, b: Value, rtol=1e-05, atol=1e-08, equal_nan=False) -> Value:
    """Whether np.isclose says so of each element."""
    return bool_(FUNCTIONS[np.all](isclose(a, b, rtol, atol, equal_nan)))


@numpy_function(method="item")
def item_method(x: Value, *places) -> Value:
    """x.item(), of a number or an array of one element; x.item(i, j), an element; x.item(k), an
    element of the flattened array.
    """
    if not isinstance(x.type, Scalar):
        if rank(x) is None:
            raise UnsupportedError("the method item of an array of unknown rank", current().line,
                                   "call the function once, or annotate the parameter")
        if len(places) > 1:
            x = take(x, tuple(places))
        else:
            x = take(FUNCTIONS[np.ravel](x if places else FUNCTIONS[np.reshape](x, 1)),
                     places[0] if places else 0)
    return {"b": bool_, "i": int_, "u": int_, "f": float_, "c": complex_}[
        np.dtype(x.type.dtype).kind](x)


@numpy_function(complex)
def complex_call(real: Value = 0.0, imag=None) -> Value:
    """complex(z), complex(x, y) of real numbers."""
    if imag is None:
        return value(complex(real)) if not isinstance(real, Value) else complex_(real)
    for x in (value(real), value(imag)):
        if not isinstance(x.type, (Scalar, Unknown)) or (x.type.dtype or "").startswith("complex"):
            raise TypeMismatchError(f"complex() of parts of which one is {x.type}", current().line,
                                    "write x + 1j * y")
    return ew.complex_of(value(real), value(imag))


@numpy_function(np.iscomplexobj)
def iscomplexobj(x: Value) -> Value:
    """np.iscomplexobj: known when code is generated."""
    return value(_dtype_now(x).kind == "c")


@numpy_function(np.isrealobj)
def isrealobj(x: Value) -> Value:
    """np.isrealobj: known when code is generated."""
    return value(_dtype_now(x).kind != "c")


def _dtype_now(x: Value) -> np.dtype:
    return ATTRIBUTES["dtype"](value(x)).constant


@numpy_function(np.angle)
def angle(z: Value) -> Value:
    """np.angle, which takes truth values for integers."""
    z = as_dtype(value(z), "int64") if dtype_of(value(z).type) == "bool" else z
    return ew.arctan2(ew.imag(z), ew.real(z))
