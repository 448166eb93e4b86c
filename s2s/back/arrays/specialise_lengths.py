"""Lengths that are known are numbers in the loop form: short loops of them are unrolled, small
matrices multiplied in place.

    x = np.zeros(4)                          needs_length(A.shape[0], 4)
    for t in range(n):                       needs_length(A.shape[1], 4)
        x = A @ x               becomes      for t in range(n):
                                                 for i in range(4):
                                                     for j in range(4): ...

Code is otherwise the same for all lengths but 1. A Kalman filter of four numbers took 7 times as
long as its adjoint written for four: each small product was a call of BLAS and an array of its own,
and no loop had a number of trips that LLVM knew.

Note [Needed lengths]
What an argument's length must be follows from the ops that meet it: `settled` puts the number there
if one of them has it. Of a loop it takes what several trips need, and asks before the first: where
a call has other lengths, and would not have come so far, native code raises, and the interpreted
form of the function as it was before runs (runtime/call/native_function.py, Note [Where an error
came from]). Of what stands in branches nothing is taken: another path may be the usual one.
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

# lengths up to which it is worth knowing them: 8 numbers fill vectors, which loops that are
# unrolled have none of
SHORT = 7


class InSomeTrip(Equalities):
    """Those that hold in some trip of a loop of what it carries, which may be of another length in
    each.
    """

    def tells(self, d: Extent) -> bool:
        return not d.may_be_one


def settled(function: Function) -> Function:
    """`function` for arguments of the lengths that it cannot do without.  Note [Needed lengths]"""
    equal = InSomeTrip(())
    _meet(function.block, equal)
    found = {}
    for p in function.params:
        for d in dims_of(p.type):
            n = equal.find(d)
            if isinstance(d, Extent) and not d.offset and isinstance(n, int) and 1 < n <= SHORT:
                found[d.symbol] = n
    return for_lengths(function, found)


def _meet(block: Block, equal: Equalities) -> None:
    equal.add(block.ops)
    for op in block.ops:
        if op.name in ("for", "while"):
            for starts, body in carried(op):
                equal.unite(starts, body)
            for inner in op.blocks:
                _meet(inner, equal)


def carried(op: Op) -> Iterator[tuple[Dim, Dim]]:
    """The extents of what a loop carries: before a trip, and in its block, or after it."""
    inits = op.inputs[len(op.inputs) - len(op.outputs):]
    for block in op.blocks:
        params = block.params[len(block.params) - len(inits):]
        yields = (block.yields[len(block.yields) - len(inits):] if len(block.yields) >= len(inits)
                  else ())
        for others in (inits, yields):
            for p, x in zip(params, others):
                if isinstance(p.type, Array) and isinstance(x.type, Array):
                    yield from zip(p.type.dims, x.type.dims)


def for_lengths(function: Function, lengths: Mapping[str, int]) -> Function:
    """`function` for arguments whose extents have these numbers, by symbol; `function` itself where
    they do not go together.
    """
    if not lengths or recursive_callees(function):
        return function
    types = [Array(p.type.dtype, tuple(_number(d, lengths) for d in p.type.dims))
             if isinstance(p.type, Array) else p.type for p in function.params]
    try:
        return rebuild(function, types)
    except S2SError:  # what the interpreted form will say
        return function


def _number(d: Dim, lengths: Mapping[str, int]) -> Dim:
    return max(lengths[d.symbol] + d.offset,
               0) if isinstance(d, Extent) and d.symbol in lengths else d


def ask_lengths(params: Sequence[Value]) -> None:
    """Emit the checks that arrays have the lengths that their types say, but for lengths of 1,
    which are part of a function's kind.
    """
    for p in params:
        for axis, d in enumerate(dims_of(p.type)):
            if isinstance(d, int) and d != 1:
                emit(needs_length_op, p, axis=axis, needed=d)
