"""Reductions in loops: their identities and accumulation steps.

The order of a sum is as free as NumPy's, which sums pairwise: results differ in the last bits.
`sum_step` is the addition of such a sum; runtime/intrinsics/reassociable_add.py describes its
native code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...ir.builder import emit
from ...ir.graph import Op, Value
from ...ir.types import Array, Extent
from ...ops.arrays.cumulative import prod_record
from ...ops.arrays.nan_reductions import nanmax_record, nanmin_record
from ...ops.arrays.reduce import (
    added_up,
    added_up_lanes,
    all_record,
    any_record,
    max_record,
    min_record,
    sum_record,
)
from ...ops.core.elementwise import (
    add,
    fmax,
    fmin,
    logical_and,
    logical_or,
    maximum,
    minimum,
    multiply,
)
from ...ops.core.record import Record, constant, dims_of
from .ops import as_dtype

sum_step = replace(add)


@dataclass(frozen=True)
class Reduction:
    """A reduction by its identity and its step."""

    identity: Callable[[str], object]  # dtype -> number
    step: Record
    accumulator: Callable[[str], str] = lambda dtype: dtype
    needs_some: bool = False  # an empty operand is an error


def _extreme(sign: int) -> Callable[[str], object]:
    def identity(dtype: str):
        if dtype.startswith("float"):
            return sign * np.inf
        if dtype.startswith("complex"):
            return complex(sign * np.inf, sign * np.inf)
        if dtype == "bool":
            return sign > 0
        info = np.iinfo(dtype)
        return int(info.max if sign > 0 else info.min)

    return identity


def _nothing(dtype: str):
    """The identity of maximum or minimum, which any number replaces."""
    return (np.nan if dtype.startswith("float") else complex(np.nan, np.nan)
            if dtype.startswith("complex") else 0)


# float32 sums run in float64: a running sum in float32 would lose what NumPy's pairwise sum keeps.
_wide = {"float32": "float64", "float16": "float64", "complex64": "complex128"}

SUM = Reduction(lambda dtype: 0.0
                if dtype.startswith("float") else 0j if dtype.startswith("c") else 0,
                sum_step, lambda dtype: _wide.get(dtype, dtype))
# Python's own sum is in order
PYTHONS_SUM = replace(SUM, step=add, accumulator=lambda dtype: dtype)
REDUCTIONS: dict[Record, Reduction] = {
    sum_record: SUM,
    added_up: PYTHONS_SUM,
    added_up_lanes: PYTHONS_SUM,
    prod_record: Reduction(lambda dtype: 1.0 if dtype.startswith("float")
                           else 1 + 0j if dtype.startswith("c") else 1,
                           multiply, lambda dtype: _wide.get(dtype, dtype)),
    max_record: Reduction(_extreme(-1), maximum, needs_some=True),
    min_record: Reduction(_extreme(1), minimum, needs_some=True),
    nanmax_record: Reduction(_nothing, fmax, needs_some=True),
    nanmin_record: Reduction(_nothing, fmin, needs_some=True),
    any_record: Reduction(lambda dtype: False, logical_or),
    all_record: Reduction(lambda dtype: True, logical_and),
}


def reduction(op: Op) -> tuple[Reduction, tuple[int, ...]] | None:
    """The kind and the axes of the reduction `op`; None if it is no reduction."""
    if not op.inputs or not isinstance(op.inputs[0].type, Array):
        return None
    rank = op.inputs[0].type.rank
    if op.name == "sum_to":
        wanted = dims_of(op.inputs[1].type)
        if any(isinstance(d, Extent) and d != e and d.may_be_one
               for d, e in zip(wanted, op.inputs[0].type.dims[rank - len(wanted):])):
            return None  # the axes to sum over are known only at run time
        shift = rank - len(wanted)
        return (SUM,
                tuple(range(shift)) + tuple(k + shift for k, d in enumerate(wanted) if d == 1
                                            and op.inputs[0].type.dims[k + shift] != 1))
    if op.record not in REDUCTIONS or set(op.attrs) - {"axis", "keepdims"}:
        return None
    axis = op.attrs.get("axis")
    axes = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return REDUCTIONS[op.record], tuple(sorted(a % rank for a in axes))


def start(x, dtype: str) -> Value:
    """The initial value of an accumulator, as a person would write it."""
    c = emit(constant, value=x)
    return c if dtype in ("float64", "int64", "bool", "complex128") else as_dtype(c, dtype)


def zero_of(dtype: str) -> Value:
    """The zero of this dtype."""
    return start(False if dtype == "bool" else 0.0 if dtype.startswith("float") else 0j
                 if dtype.startswith("c") else 0, dtype)
