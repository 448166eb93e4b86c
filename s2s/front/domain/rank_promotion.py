"""Rank promotion for native code: a scalar carry, `total = 0` before `total = total + x[i]`,
broadcast to an array before the loop.

In Python it is a number until the first trip, and so it is in generated source.  Native code needs
one rank: if there is no other way, code is generated again with the number broadcast to the shape
of the array of a trip, and raises where there is no trip, after which Python would have a number.
Considered: broadcasting it always, which changes the meaning of interpreted code and shows in the
source of every such program; refusing, as before, which is right where the shape is not known
before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from ...ir.builder import emit
from ...ir.graph import OPERATORS, Block, Function, Value, free_values, walk
from ...ir.types import Array, Unknown
from ...ops.arrays.create import full
from ...ops.core.control import if_
from ...ops.core.record import value
from ...ops.core.shape import length
from ...ops.program.effects import Made, Plain, raise_record
from ..syntax.dependencies import note_dependency

_ranked: ContextVar[bool] = ContextVar("ranked", default=False)


def needs_fixed_ranks() -> bool:
    """Whether the generated code needs one rank per variable."""
    return _ranked.get()


@contextmanager
def fixed_ranks() -> Iterator[None]:
    """A context in which generated code has one rank per variable, if possible."""
    token = _ranked.set(True)
    try:
        yield
    finally:
        _ranked.reset(token)


def has_ranks(function: Function) -> bool:
    """Whether the rank of each value is known."""
    return not any(isinstance(x.type, Unknown) for op in walk(function.block) for x in op.outputs)


def broadcast_init(init: Value, type: Array, bounds: tuple, body: Block, name: str) -> Value | None:
    """`init`, a number before the loop, broadcast to this array type of the carry after a trip;
    None where that does not apply.
    """
    note_dependency(needs_fixed_ranks, needs_fixed_ranks())
    if not needs_fixed_ranks():
        return None
    lengths = [_length(extent, body) for extent in type.dims]
    if None in lengths or type.dtype is None:
        return None
    lo, hi, step = map(value, bounds)

    def fail() -> tuple:
        text = (f"a loop makes no trip, and {name or 'what it makes an array of'} stays a number, "
                "which compiled code has no rank for")
        emit(raise_record, thrown=Made(ValueError, (Plain(text),)), cause=None)
        return ()

    if_(OPERATORS["less_equal"]((hi - lo) * step, value(0)), fail, lambda: ())
    return full(tuple(lengths), init, value(np.dtype(type.dtype)))


def _length(extent, body: Block) -> Value | None:
    """A value available before the loop that equals this extent."""
    if isinstance(extent, int):
        return value(extent)
    for x in free_values(body):
        if isinstance(x.type, Array) and extent in x.type.dims:
            return length(x, axis=x.type.dims.index(extent))
    return None
