"""Grow tapes (back/loops/tape_arrays.py) in native code: reallocate with room for more rows, in a
function of the module.

What `.loops` shows, and what an exported module has, is a function in Python; Numba compiles it
anew for each kind of tape, in 10 ms of a first call of 200.  How much longer, `TIMES` says as those
functions do.
"""

from __future__ import annotations

import functools

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, overload, type_callable

from ...back.loops.tape_arrays import with_room, with_room_for_matrices, with_room_for_rows
from ..llvm.helper_functions import outlined
from ..numba_internals import cgutils, impl_ret_new_ref
from .element_access import field, item
from .noalias_alloc import MEMORY, described, had, new_memory

# by the axes of the tape
FUNCTIONS = {1: with_room, 2: with_room_for_rows, 3: with_room_for_matrices}
# growth factor below this many numbers; else
TIMES, MOST = ((100_000, 8), (1_000_000, 4)), 2
# memory, and its capacity in rows
ROOM = ir.LiteralStructType([*MEMORY.elements, ir.IntType(64)])


def is_in_order(tape, n) -> bool:
    return isinstance(tape, types.Array) and tape.layout == "C" and isinstance(n, types.Integer)


def _typed(context):
    return lambda tape, n: tape.copy(readonly=False) if is_in_order(tape, n) else None


def _lowered(context, builder, sig, args):
    kind, tape = sig.args[0], args[0]
    rows, *others = (item(builder, field(context, builder, kind, tape, "shape"), k)
                     for k in range(kind.ndim))
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    data = builder.bitcast(field(context, builder, kind, tape, "data"), cgutils.voidptr_t)
    n = context.cast(builder, args[1], sig.args[1], types.intp)
    found = outlined(context, builder, f"with_room_{kind.ndim}_{size}", ROOM,
                     [data, n, rows, *others], functools.partial(_filled, context, size))
    memory = had(builder, found)
    return impl_ret_new_ref(context, builder, sig.return_type,
                            described(context, builder, sig.return_type,
                                      [builder.extract_value(found, 2), *others], memory).value)


def _filled(context, size: int, builder, data: ir.Value, n: ir.Value, rows: ir.Value,
            *others: ir.Value) -> None:
    """Memory for n rows and more, starting with a copy of the existing rows."""
    word, numbers = n.type, n.type(1)
    for m in others:
        numbers = builder.mul(numbers, m)
    held = builder.mul(rows, numbers)
    numbers = builder.select(builder.icmp_signed(">", numbers, word(1)), numbers, word(1))
    asked, times = builder.mul(n, numbers), word(MOST)
    for most, factor in reversed(TIMES):
        times = builder.select(builder.icmp_signed("<", asked, word(most)), word(factor), times)
    longer = builder.add(builder.mul(times, n), builder.sdiv(word(1000), numbers))
    memory = new_memory(context, builder, word(size), [longer, *others])
    meminfo, place = (builder.extract_value(memory, k) for k in (0, 1))
    with builder.if_then(cgutils.is_not_null(builder, meminfo)):
        cgutils.raw_memcpy(builder, place, data, held, size)
    found = ir.Constant(ROOM, ir.Undefined)
    for k, x in enumerate((meminfo, place, longer)):
        found = builder.insert_value(found, x, k)
    builder.ret(found)


def _register(function) -> None:
    type_callable(function)(_typed)
    lower_builtin(function, types.Array, types.Integer)(_lowered)

    @overload(function)
    def other(tape, n):
        return None if is_in_order(tape, n) else function


for _function in FUNCTIONS.values():
    _register(_function)
