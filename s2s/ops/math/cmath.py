"""Python's cmath: functions of one complex number, with the derivatives of NumPy's functions of the
same name.
"""

from __future__ import annotations

import ast
import cmath

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import BOOL, Scalar, Type
from ..core import elementwise as ew
from ..core import raise_conditions
from ..core.cast import astype
from ..core.chain_rule import elementwise_jvp, elementwise_vjp
from ..core.define_elementwise import IN_MATH
from ..core.record import RECORDS, Record, define, dtype_of, no_jvp, no_vjp, numpy_function, value


def _infer(result: Scalar):
    def infer(x: Value) -> Type:
        if not isinstance(x.type, Scalar):
            raise TypeMismatchError(f"a function of cmath is given {x.type}", current().line,
                                    "use NumPy's function")
        return result

    return infer


def _syntax(name: str):
    return lambda x: ast.Call(ast.Attribute(ast.Name("cmath", ast.Load()), name, ast.Load()), [x],
                              [])


def _batch(like: str):
    """NumPy's function, of the complex numbers of all lanes."""
    return lambda z: RECORDS[like](z if dtype_of(z.type) == "complex128"
                                   else astype(z, dtype="complex128"))


def _function(name: str, like: str) -> Record:
    """Define cmath.name with the derivative of np.like."""
    function = getattr(cmath, name)
    record = define(f"cmath.{name}", evaluate=function,
                    infer=_infer(Scalar("complex128", weak=True)), syntax=_syntax(name),
                    partials=RECORDS[like].partials, elementwise=True, cheap=True,
                    raises=raise_conditions.IN_CMATH.get(name, ()), batch=_batch(like),
                    vjp=elementwise_vjp, jvp=elementwise_jvp)
    record.kinks = RECORDS[like].kinks
    numpy_function(function)(record)
    return record


for _name, _like in {"exp": "exp", "log10": "log10", "sqrt": "sqrt", "sin": "sin", "cos": "cos",
                     "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asin": "arcsin",
                     "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
                     "atanh": "arctanh"}.items():
    _function(_name, _like)

_function("log", "log")  # to a base: library/sequences.py

for _name in ("isfinite", "isinf", "isnan"):
    _record = define(f"cmath.{_name}", evaluate=getattr(cmath, _name), infer=_infer(BOOL),
                     syntax=_syntax(_name), partials=(None,), elementwise=True, cheap=True,
                     vjp=no_vjp, jvp=no_jvp,
                     batch=_batch(_name),
                     tests_finite=True)
    numpy_function(getattr(cmath, _name))(_record)


@numpy_function(cmath.phase)
def phase(z: Value) -> Value:
    """The angle of a complex number."""
    return ew.arctan2(ew.imag(z), ew.real(z))


@numpy_function(cmath.polar)
def polar(z: Value) -> Value:
    """(abs(z), phase(z))."""
    return value((ew.abs_(z), phase(z)))


@numpy_function(cmath.rect)
def rect(r: Value, phi: Value) -> Value:
    """The complex number of this absolute value and angle."""
    return ew.complex_of(r * IN_MATH[ew.cos](phi), r * IN_MATH[ew.sin](phi))
