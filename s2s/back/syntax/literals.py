"""Print constants: Python's literals, or names where there is no literal (`np.inf`)."""

from __future__ import annotations

import ast
import math
from enum import Enum

import numpy as np

from ...errors import UnsupportedError


def literal(x) -> str:
    """The Python expression for the constant `x`."""
    match x:
        case Enum():
            return f"{type(x).__name__}.{x.name}"
        case str() if repr(x) == f"'{x}'" and '"' not in x:
            return f'"{x}"'
        case None | bool() | str() | bytes():
            return repr(x)
        case np.bool_():
            return f"np.bool_({bool(x)})"
        case np.generic():
            return f"np.{x.dtype.name}({literal(x.item())})"
        case int():
            return repr(x)
        case float():
            return _float(x)
        case complex():
            return _complex(x)
        case tuple():
            return f"({', '.join(map(literal, x))}{',' if len(x) == 1 else ''})"
        case list():
            return f"[{', '.join(map(literal, x))}]"
        case slice():
            return f"slice({literal(x.start)}, {literal(x.stop)}, {literal(x.step)})"
        case np.dtype():
            return f"np.{_scalar_type(x.type)}"
        case type() if issubclass(x, np.generic):
            return f"np.{_scalar_type(x)}"
        case type() if x in (bool, int, float, complex):
            return x.__name__
        case np.ndarray():
            return f"np.array({literal(x.tolist())}, dtype={literal(x.dtype)})"
    return "..." if x is ... else _named(x)


def _named(x) -> str:
    """The name of a function or class of NumPy's or math's."""
    name = getattr(x, "__name__", "")
    for module in (np, math):
        if name and vars(module).get(name) is x:
            return f"{'np' if module is np else 'math'}.{name}"
    raise UnsupportedError(
        f"{x!r} cannot be written as Python text",
        None,
        "pass it as an argument, or make it a number, a string or a dtype",
    )


def is_literal(x) -> bool:
    """Whether `x` can be written as Python text."""
    try:
        literal(x)
    except UnsupportedError:
        return False
    return True


def modules_said(x) -> set[str]:
    """The modules that the text for the constant `x` names: {"np"} for infinity."""
    if x is None or type(x) in (bool, int, str, bytes) or type(x) is float and math.isfinite(x):
        return set()
    if isinstance(x, (np.ndarray, np.generic, float)):
        return {"np"}
    if not is_literal(x):  # the printer will report it
        return set()
    return {node.id for node in ast.walk(ast.parse(literal(x))) if isinstance(node, ast.Name)
            and node.id in ("np", "math")}


def _scalar_type(type) -> str:
    return np.dtype(type).name if type is not np.bool_ else "bool_"


def _complex(x: complex) -> str:
    if x.real == 0 and math.copysign(1, x.real) == 1 and math.isfinite(x.imag):
        return repr(x)
    return f"complex({_float(x.real)}, {_float(x.imag)})"


def _float(x: float) -> str:
    if math.isnan(x):
        return "np.nan"
    if math.isinf(x):
        return "np.inf" if x > 0 else "-np.inf"
    plain, scientific = repr(x), f"{x:e}"
    mantissa, _, exponent = plain.partition("e")
    if exponent:
        return f"{mantissa}e{int(exponent)}"  # 1e-05 is written 1e-5
    mantissa, _, exponent = scientific.partition("e")
    scientific = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return (
        scientific
        if len(scientific) < len(plain) and abs(x) < 1 and float(scientific) == x
        else plain
    )
