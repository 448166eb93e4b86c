"""`copy(x)`: x again, in memory of its own.

The IR has no memory, so nothing but the printer needs this op: it inserts one where an array is about to
be written into that somebody else may still read.
"""

from __future__ import annotations

import ast

import numpy as np

from ..ir.graph import Value
from ..ir.types import Scalar
from .record import define


def _copy_syntax(x: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(x, "copy", ast.Load()), [], [])


copy = define(
    "copy",
    evaluate=lambda x: np.array(x) if isinstance(x, np.ndarray) else x,
    infer=lambda x: x.type,
    fold=lambda x: x if isinstance(x.type, Scalar) else None,
    syntax=_copy_syntax,
    vjp=lambda bar, y, x: (bar,),
    linear=(0,),
    cheap=True,
)


def is_copy(x: Value) -> bool:
    """Whether `x` is a copy of another value."""
    return x.op is not None and x.op.record is copy
