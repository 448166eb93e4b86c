"""Reassociable addition: sums whose terms LLVM may add in any order.

np.sum adds in pairs of pairs, a BLAS routine in an order of its own: the order in which their terms
are added is no part of what they promise.  The additions of such a sum carry LLVM's permission to
be done in another order, so that the loop adds several terms at a time; no other addition of the
program carries it.  (fastmath={"reassoc"} would give it to all of a function: also to those of a
compensated sum, which would then compensate nothing.)
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
