"""Specialise the loop form to known lengths: short loops are unrolled, small products expanded.

    x = np.zeros(4)                          needs_length(A.shape[0], 4)
    for t in range(n):                       needs_length(A.shape[1], 4)
        x = A @ x               becomes      for t in range(n):
                                                 for i in range(4):
                                                     for j in range(4): ...

Code is otherwise the same for all lengths but 1. A Kalman filter of four numbers took 7 times as
long as its adjoint written for four: each small product was a call of BLAS and an array of its own,
and no loop had a constant trip count.

Note [Needed lengths]
What an argument's length must be follows from the ops that it meets: `specialise_lengths` inserts
the constant if one of them has it. From a loop it takes the lengths that several trips need, and
checks before the first: where a call has other lengths, and would not have reached the op, native
code raises, and the interpreted form of the original function runs
(runtime/call/native_function.py, Note [Where an error came from]). Branches are ignored: another
path may be the usual one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...errors import S2SError
from ...ir.builder import emit
from ...ir.graph import Block, Function, Op, Value
from ...ir.reemit import rebuild
from ...ir.types import Array, Dim, Extent
from ...ops.core.record import dims_of
from ...ops.program.recursive_callee import recursive_callees
from ..loopir.extent_equalities import Equalities
from ..loopir.ops import needs_length_op

# longest length to specialise to: 8 numbers fill vectors, which unrolled loops do not use
SHORT = 7


class LoopEqualities(Equalities):
    """Equalities that hold in some trip of a loop for its carries, whose lengths may change."""

    def tells(self, d: Extent) -> bool:
        return not d.may_be_one


def specialise_lengths(function: Function) -> Function:
    """`function` for arguments of the only lengths it accepts. Note [Needed lengths]"""
    equal = LoopEqualities(())
    _meet(function.block, equal)
    found = {}
    for p in function.params:
        for d in dims_of(p.type):
            n = equal.find(d)
            if isinstance(d, Extent) and not d.offset and isinstance(n, int) and 1 < n <= SHORT:
                found[d.symbol] = n
    return set_lengths(function, found)


def _meet(block: Block, equal: Equalities) -> None:
    equal.add(block.ops)
    for op in block.ops:
        if op.name in ("for", "while"):
            for starts, body in carried_extents(op):
                equal.unite(starts, body)
            for inner in op.blocks:
                _meet(inner, equal)


def carried_extents(op: Op) -> Iterator[tuple[Dim, Dim]]:
    """The extents of a loop's carries: before a trip, and in its block, or after it."""
    inits = op.inputs[len(op.inputs) - len(op.outputs):]
    for block in op.blocks:
        params = block.params[len(block.params) - len(inits):]
        yields = (block.yields[len(block.yields) - len(inits):] if len(block.yields) >= len(inits)
                  else ())
        for others in (inits, yields):
            for p, x in zip(params, others):
                if isinstance(p.type, Array) and isinstance(x.type, Array):
                    yield from zip(p.type.dims, x.type.dims)


def set_lengths(function: Function, lengths: Mapping[str, int]) -> Function:
    """`function` with extents set to numbers, by symbol; unchanged if they are contradictory."""
    if not lengths or recursive_callees(function):
        return function
    types = [Array(p.type.dtype, tuple(_number(d, lengths) for d in p.type.dims))
             if isinstance(p.type, Array) else p.type for p in function.params]
    try:
        return rebuild(function, types)
    except S2SError:  # the interpreted form will report it
        return function


def _number(d: Dim, lengths: Mapping[str, int]) -> Dim:
    return max(lengths[d.symbol] + d.offset,
               0) if isinstance(d, Extent) and d.symbol in lengths else d


def check_lengths(params: Sequence[Value]) -> None:
    """Emit the checks of lengths in the types of arrays, except 1, a part of the signature."""
    for p in params:
        for axis, d in enumerate(dims_of(p.type)):
            if isinstance(d, int) and d != 1:
                emit(needs_length_op, p, axis=axis, needed=d)
