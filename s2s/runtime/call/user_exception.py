"""Translate an exception of compiled code into the user's exception.

Compiled code raises one of Python's own classes, given the run-time data; Numba notes the line of
the text. The op that stands on that line says what the program raises, and where.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping

import numpy as np

from ...back.print.printer import Module
from ...errors import library_refusal
from ...ir.graph import Op
from ...ir.types import Scalar, Type
from ...ops.program.effects import Made
from ..debug.load_source import note


def raised_by(error: Exception, modules: Mapping[str, Module]) -> Op | None:
    """The `raise` of the program at which compiled code stopped; None where the error is its own.

    `modules` are the compiled texts, by file name.
    """
    for frame, number in traceback.walk_tb(error.__traceback__):
        module = modules.get(frame.f_code.co_filename)
        op = module.raises.get(number) if module is not None else None
        if op is not None:
            return op
    return None


def raised_again(error: Exception, op: Op) -> BaseException | None:
    """The exception that the program raises at `op`; None where only Python can build it."""
    if op.attrs.get("again"):
        return None
    values = error.args[len(error.args) - len(op.inputs):]
    xs = [as_python(x, v.type) for x, v in zip(values, op.inputs, strict=True)]
    made, cause = op.attrs["thrown"].make(xs), op.attrs["cause"]
    if (refusal := library_refusal(made, op.line)) is not None:
        return refusal
    if isinstance(cause, Made):
        made.__cause__ = cause.make(xs)
    if op.line is not None:
        note(made, op.line)
    return made


def as_python(x, type: Type):
    """`x`, a Python number from Numba, with the type that it has in the program."""
    match type:
        case Scalar(dtype, False):
            return np.dtype(dtype).type(x)
    return x
