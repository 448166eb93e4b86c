"""Loop ops and carries that LLVM can vectorise, and loops too short for vectors."""

from __future__ import annotations

from ...analysis.dependence import Trip
from ...ir.graph import MISSING, Op, Value
from ...ir.types import Scalar

REAL = ("float32", "float64")
SHORT = 8  # trips: loops known to have fewer cannot fill vectors
BY_MULTIPLYING = (0.0, 1.0, 2.0, -1.0)  # exponents that LLVM turns into products


def is_short(loop: Op) -> bool:
    """Whether the trip count is known to be too small to fill vectors."""
    start, stop = (x.constant for x in loop.inputs[:2])
    return MISSING not in (start, stop) and abs(stop - start) < SHORT


def is_extreme(trip: Trip, param: Value, end: Value) -> bool:
    """Whether a carry is a running maximum or minimum."""
    return (isinstance(param.type, Scalar) and end.op is not None
            and end.op.record.vector and end.op.record.extreme and param in end.op.inputs
            and len(trip.uses.get(param, ())) == 1)


def is_of_reals(op: Op) -> bool:
    """Whether vector math supports the op on these operands."""
    if op.output.type.dtype not in REAL or not any(x.type.dtype in REAL for x in op.inputs):
        return False
    if op.record.vector == "power" and (op.inputs[1].constant in BY_MULTIPLYING
                                        or op.inputs[1].type.dtype not in REAL):
        return False
    return all(x.type.dtype in REAL or isinstance(x.constant, int) for x in op.inputs)


def is_long(op: Op) -> bool:
    """Whether `op` is expensive enough to be worth vectorising: exp, but no square or maximum."""
    return bool(op.record.vector) and not op.record.extreme and is_of_reals(op)
