"""Arrays that LLVM may take to share memory with nothing.

What compiled code allocates overlaps neither its arguments nor anything else that it has allocated, but LLVM sees
pointers that were loaded from memory, and so guards each vectorised loop with comparisons of all its arrays in
pairs; where these are many, or the loop is the inner one of a nest and short, they cost more than the loop, or it
stays scalar.  `unshared_memory(np.empty(n))` is the same array, whose pointer comes out of a call that is marked
`noalias`, as malloc's is: an empty piece of assembler, which no pass looks into.  It counts as touching memory, so
that what `np.zeros` has written is written before.

Considered and left: `flags.noalias` of a pipeline class speaks of arguments only, so that each loop would have to be
a function of its own, called with its buffers (measured: as fast as this); recomputing what is kept in buffers.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic


@intrinsic
def unshared_memory(typingctx, array):
    """`array`, which has just been allocated."""
    if not isinstance(array, types.Array):
        return None

    def emit(context, builder, signature, args):
        return promised(context, builder, signature.args[0], args[0])

    return array(array), emit


def promised(context, builder, kind: types.Array, array: ir.Value) -> ir.Value:
    """LLVM's value of the array, with the promise."""
    made = context.make_array(kind)(context, builder, array)
    pointer = made.data
    call = builder.asm(ir.FunctionType(pointer.type, [pointer.type]), "", "=r,0,~{memory}", [pointer], True)
    set.add(call.fastmath, "noalias")  # it stands where llvmlite prints what is said of a result
    made.data = call
    return impl_ret_borrowed(context, builder, kind, made._getvalue())
