"""Ops and carries of a loop that vector instructions can do, and loops too short for them."""

from __future__ import annotations

from ...analysis.dependence import Trip
from ...ir.graph import MISSING, Op, Value
from ...ir.types import Scalar

REAL = ("float32", "float64")
SHORT = 8  # trips: a loop of fewer, known to be, has no vectors to fill
BY_MULTIPLYING = (0.0, 1.0, 2.0, -1.0)  # exponents of which LLVM makes products


def is_short(loop: Op) -> bool:
    """Whether there are too few trips to fill vectors."""
    start, stop = (x.constant for x in loop.inputs[:2])
    return MISSING not in (start, stop) and abs(stop - start) < SHORT


def is_extreme(trip: Trip, param: Value, end: Value) -> bool:
    """Whether a carry is the largest or smallest number so far."""
    return (isinstance(param.type, Scalar) and end.op is not None
            and end.op.record.vector in ("maximum", "minimum") and param in end.op.inputs
            and len(trip.uses.get(param, ())) == 1)


def is_of_reals(op: Op) -> bool:
    """Whether vector math has the op for these operands."""
    if op.output.type.dtype not in REAL or not any(x.type.dtype in REAL for x in op.inputs):
        return False
    if op.record.vector == "power" and (op.inputs[1].constant in BY_MULTIPLYING
                                        or op.inputs[1].type.dtype not in REAL):
        return False
    return all(x.type.dtype in REAL or isinstance(x.constant, int) for x in op.inputs)


def is_long(op: Op) -> bool:
    """Whether `op` is arithmetic of many steps, which trips run several at a time are worth: exp,
    no square and no maximum.
    """
    return bool(op.record.vector) and op.record.vector not in ("maximum",
                                                               "minimum") and is_of_reals(op)
