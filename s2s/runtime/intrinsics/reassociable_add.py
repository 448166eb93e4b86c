"""Reassociable addition: sums whose terms LLVM may add in any order.

np.sum uses pairwise summation, a BLAS routine an order of its own: the order of addition is not
part of their contract. The additions of such a sum carry LLVM's `reassoc` flag, so that the loop
adds several terms at a time; no other addition of the program has it. (fastmath={"reassoc"} would
apply to a whole function, including compensated sums, which would then compensate nothing.)
"""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

FLAGS = ("contract", "reassoc", "nsz")


@intrinsic
def added_in_any_order(typingctx, total, term):
    """total + term."""
    if not isinstance(total, types.Float) or not isinstance(term, types.Float):
        return None
    wide = max(total, term, key=lambda t: t.bitwidth)

    def emit(context, builder, signature, args):
        a, b = (context.cast(builder, x, t, wide) for x, t in zip(args, signature.args))
        return builder.fadd(a, b, flags=FLAGS)

    return wide(total, term), emit
