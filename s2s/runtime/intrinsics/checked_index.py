"""Index intrinsics that tell LLVM that an index is in bounds or not negative.

`checked_place` is the native form of `place_in` of the loop form: an index that is data, checked
where it is used. One unsigned comparison tests that an index counted from the front is neither
negative nor too large; LLVM knows this from then on, and removes the wrap-around. The Python
function in the loop form would be compiled separately for each program, in 60 ms, and makes three
comparisons.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..numba_internals import cgutils


@intrinsic
def checked_place(typingctx, k, n):
    """`k` counted from the front of an axis of length `n`; IndexError if it is out of bounds."""
    if not isinstance(k, types.Integer) or not isinstance(n, types.Integer):
        return None

    def emit(context, builder, signature, args):
        k, n = (context.cast(builder, x, t, types.intp) for x, t in zip(args, signature.args))
        # does not fit a word: saturate
        if not signature.args[0].signed and signature.args[0].bitwidth == k.type.width:
            k = builder.select(builder.icmp_signed("<", k, ir.Constant(k.type, 0)),
                               ir.Constant(k.type, (1 << (k.type.width - 1)) - 1), k)
        from_the_end = builder.icmp_signed("<", k, ir.Constant(k.type, 0))
        place = builder.select(from_the_end, builder.add(k, n), k)
        # which LLVM knows is not negative
        length = builder.and_(n, ir.Constant(n.type, (1 << (n.type.width - 2)) - 1))
        with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", place, length)):
            context.call_conv.return_user_exc(builder, IndexError, ("index out of bounds",))
        return place

    return types.intp(k, n), emit


@intrinsic
def from_front(typingctx, k):
    """`k`, an index known not to be negative, as an unsigned number: no code tests whether it
    counts from the end.
    """
    if not isinstance(k, types.Integer):
        return None

    def emit(context, builder, signature, args):
        return context.cast(builder, args[0], signature.args[0], types.intp)

    return types.uintp(k), emit
