"""Type conversion: x.astype(np.float32), np.float32(x), float(x), int(x), bool(x).

A conversion has derivative 1 where both sides can carry one, and none elsewhere.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

import numpy as np

from ...errors import ArrayNeededError, TypeMismatchError, UnsupportedError
from ...ir.builder import current
from ...ir.graph import MISSING, Value
from ...ir.types import Array, Scalar, Type, Unknown, is_inexact
from . import raise_conditions
from .chain_rule import elementwise_vjp
from .define_elementwise import builtin_syntax, is_none
from .kinks import ASKED, Kink, at_integers, at_zero, kinked
from .record import (
    FUNCTIONS,
    RECORDS,
    Record,
    array_type,
    define,
    dims_of,
    dtype_of,
    numpy_function,
    static,
    value,
)
from .stablehlo_rules import as_it_is

# ----------------------------------------------------------------------------------- NumPy's dtypes


def dtype_name(dtype) -> str:
    """NumPy's name of a dtype argument: np.float32, "f4", float."""
    dtype = static(dtype, "a dtype")
    try:
        name = np.dtype(dtype).name
    except TypeError:
        raise UnsupportedError(f"{dtype!r} is not a dtype", current().line,
                               "write np.float64, for example") from None
    if np.dtype(dtype).kind not in "biufc":
        raise UnsupportedError(f"the dtype {name}", current().line, "use numbers or booleans")
    return name


def dtype_syntax(dtype: str) -> ast.expr:
    """The expression np.float32; Python's bool for booleans."""
    return (ast.Name("bool", ast.Load()) if dtype == "bool"
            else ast.Attribute(ast.Name("np", ast.Load()), dtype, ast.Load()))


def _infer(x: Value, *, dtype: str) -> Type:
    match x.type:
        case Unknown(shape):
            return Unknown(shape, dtype)
        case Scalar() | Array():
            return array_type(dtype, dims_of(x.type))
    raise ArrayNeededError(x, current().line)


def _converted(x, *, dtype: str):
    return x.astype(dtype) if isinstance(x, (np.ndarray, np.generic)) else np.dtype(dtype).type(x)


def _define(name: str, syntax, batch: Callable | None = None) -> Record:
    record = define(name, evaluate=_converted, infer=_infer, syntax=syntax, partials=(1,),
                    elementwise=True, cheap=True, slope="finite", batch=batch, linear=(0,),
                    exact=True, converts=True, warns="never", stablehlo=as_it_is)
    record.vjp = lambda bar, y, x, *, dtype: (
        elementwise_vjp(record, bar, y, x) if is_inexact(dtype) else (None,))
    return record


astype = _define("astype",
                 lambda x, *, dtype: ast.Call(ast.Attribute(x, "astype", ast.Load()),
                                              [dtype_syntax(dtype)], []))
convert = _define(  # of numbers: np.float32(x)
    "convert", lambda x, *, dtype: ast.Call(
        ast.Attribute(ast.Name("np", ast.Load()), "bool_" if dtype == "bool" else dtype,
                      ast.Load()), [x], []), batch=astype)


def _fold_astype(x: Value, *, dtype: str):
    line, given = current().line, dtype_of(x.type)
    if (line is not None and line.casts_quietly and str(given).startswith("complex")
            and not dtype.startswith(("complex", "bool"))):
        return astype(RECORDS["real"](x), dtype=dtype)
    return convert(x, dtype=dtype) if isinstance(x.type, Scalar) else None


def _fold_convert(x: Value, *, dtype: str):
    return x if x.type == Scalar(dtype) else None


astype.fold, convert.fold = _fold_astype, _fold_convert
astype.quick = True
for _each in (astype, convert):
    kinked(_each,
           Kink("a step: the derivative is taken as 0",
                lambda y, x, *, dtype: at_integers(y, x) if dtype.startswith(("int", "uint"))
                    else at_zero(y, x) & (dtype == "bool")))


def as_dtype(x: Value, dtype) -> Value:
    """`x` converted to that dtype; unchanged if it has it (for a Python number: if NumPy converts
    it to that).
    """
    if is_none(dtype):
        return x
    name = dtype_name(dtype)
    return x if dtype_of(x.type) == name else astype(x, dtype=name)


@numpy_function(method="astype", view="maybe", copies=True)
def astype_method(x: Value, dtype, copy=True) -> Value:
    """x.astype(dtype): a copy, unless copy=False and nothing changes."""
    return astype(x, dtype=dtype_name(dtype)) if static(copy) else as_dtype(x, dtype)


for _name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
              "float16", "float32", "float64", "complex64", "complex128"):
    FUNCTIONS[np.dtype(_name).type] = functools.partial(lambda x, *, dtype: convert(x, dtype=dtype),
                                                        dtype=_name)

# ----------------------------------------------------------------------------------- Python's types


def _python_type(kind: type, dtype: str, **facts) -> Record:
    def infer(x: Value) -> Type:
        if isinstance(x.type, Array):
            raise TypeMismatchError(f"{kind.__name__}() of an array", current().line,
                                    "use .astype, or index one element")
        return Scalar(dtype, weak=True)

    def fold(x: Value):
        if x.type == Scalar(dtype, weak=True):
            return x
        if type(x.constant) in (bool, int, float):
            return (value(kind(x.constant)) if x.constant == x.constant and abs(x.constant) < 2**63
                    else None)
        return None

    record = define(f"{kind.__name__}_", evaluate=kind, infer=infer, fold=fold,
                    syntax=builtin_syntax(kind.__name__),
                    partials=(1 if is_inexact(dtype) else None,), elementwise=True, cheap=True,
                    slope="finite", batch=lambda x: astype(x, dtype=dtype),
                    vjp=elementwise_vjp, of_numbers=True, stablehlo=as_it_is, **facts)
    FUNCTIONS[kind] = lambda x=MISSING: value(kind()) if x is MISSING else record(x)
    return record


float_ = _python_type(float, "float64", linear=(0,), exact=True, converts=True,
                      lower=lambda op, x: convert(x, dtype="float64")
                          if x.type.dtype == "bool" else None)
float_.warns = "never"
int_ = _python_type(int, "int64")
bool_ = _python_type(bool, "bool")
complex_ = _python_type(complex, "complex128", linear=(0,))
kinked(int_, Kink("a step: the derivative is taken as 0", at_integers))
kinked(bool_, Kink(ASKED, at_zero))
int_.raises, bool_.raises = raise_conditions.TO_INTEGER, raise_conditions.TRUTH

