"""Whether native code of a function has something to suppose: ir/lengths.py, Note [Supposed lengths]."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

from ..ir.graph import Function, walk
from ..ir.types import Array, Extent, Generator, Type
from ..ops.record import dims_of
from ..ops.recursive import recursive_callees

MEETINGS = ("spread", "broadcast_to", "sum_to")  # and elementwise ops


def has_suppositions(function: Function) -> bool:
    """Whether a slice whose bounds do not tell its length, which may be 1, meets something of another extent."""
    if recursive_callees(function) or any(isinstance(p.type, Generator) for p in function.params) or any(op.name == "print" for op in walk(function.block)):
        return False  # to run it twice would be something else
    sliced = {d for op in walk(function.block) if op.name == "getitem" and not any(isinstance(x.type, Array) for x in op.inputs[1:])
              for d in dims_of(op.output.type) if isinstance(d, Extent) and may_be_supposed(d) and d not in dims_of(op.inputs[0].type)}
    return bool(sliced) and any(
        len(met := {d for d in here if d not in (None, 1)}) > 1 and not sliced.isdisjoint(met)
        for op in walk(function.block) if op.record.elementwise or op.name in MEETINGS
        for here in zip_longest(*(reversed(dims_of(x.type)) for x in (*op.inputs, *op.outputs))))


def may_be_supposed(d: Extent) -> bool:
    """Whether the length of a slice may be 1, for all that is known before it is there."""
    if d.symbol_may_be_one:
        return not d.offset or d.may_be_one_though_long
    return d.may_be_one_though_long or d.leaves_out_few and not d.symbol_is_long


def as_supposed(type: Type) -> Type:
    """The type of a parameter, of whose short axes the slices are supposed not to have length 1."""
    if not isinstance(type, Array):
        return type
    return replace(type, dims=tuple(replace(d, symbol_is_supposed=True) if isinstance(d, Extent) and not d.symbol_may_be_one and not d.symbol_is_long else d
                                    for d in type.dims))
