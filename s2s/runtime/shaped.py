"""np.ascontiguousarray and np.reshape of arrays that lie in order, and np.transpose, in native code: another description of the same memory.

Numba's are Python functions, compiled anew for each kind of array and of shape, in 30 to 150 ms; the first np.transpose with axes takes 3 s,
because of the text of an error.  Arrays of other layouts go to them.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, lower_builtin, overload, type_callable

from .elements import field, item, structure


def native_in_order(array):
    """np.ascontiguousarray(array)."""
    return np.ascontiguousarray(array)


def native_reshaped(array, shape):
    """np.reshape(array, shape)."""
    return np.reshape(array, shape)


def _is_simple(array, shape=types.UniTuple(types.intp, 1)) -> bool:
    lengths = shape.types if isinstance(shape, types.BaseTuple) else (shape,)
    return (isinstance(array, types.Array) and array.layout == "C" and array.ndim > 0
            and len(lengths) > 0 and all(isinstance(n, types.Integer) and n.signed for n in lengths))


@type_callable(native_in_order)
def _type_in_order(context):
    return lambda array: array if _is_simple(array) else None


@overload(native_in_order)
def _other_in_order(array):
    return None if _is_simple(array) else lambda array: np.ascontiguousarray(array)


@lower_builtin(native_in_order, types.Array)
def _lower_in_order(context, builder, sig, args):
    return impl_ret_borrowed(context, builder, sig.return_type, args[0])


@type_callable(native_reshaped)
def _type_reshaped(context):
    def of(array, shape):
        if _is_simple(array, shape):
            return array.copy(ndim=len(shape) if isinstance(shape, types.BaseTuple) else 1)
    return of


@overload(native_reshaped)
def _other_reshaped(array, shape):
    return None if _is_simple(array, shape) else lambda array, shape: np.reshape(array, shape)


@lower_builtin(native_reshaped, types.Array, types.Any)
def _lower_reshaped(context, builder, sig, args):
    (kind, given), made = sig.args, sig.return_type
    if isinstance(given, types.BaseTuple):
        lengths = [context.cast(builder, item(builder, args[1], k), t, types.intp) for k, t in enumerate(given.types)]
    else:
        lengths = [context.cast(builder, args[1], given, types.intp)]
    word = lengths[0].type
    zero, one = word(0), word(1)
    total, known, missing = one, one, zero
    for k in range(kind.ndim):
        total = builder.mul(total, item(builder, field(context, builder, kind, args[0], "shape"), k))
    for n in lengths:
        is_open = builder.icmp_signed("<", n, zero)  # follows from the others
        known = builder.mul(known, builder.select(is_open, one, n))
        missing = builder.add(missing, builder.select(is_open, one, zero))
    divisor = builder.select(builder.icmp_signed("==", known, zero), one, known)
    rest = builder.sdiv(total, divisor)
    lengths = [builder.select(builder.icmp_signed("<", n, zero), rest, n) for n in lengths]
    size = one
    for n in lengths:
        size = builder.mul(size, n)
    wrong = builder.icmp_signed(">", missing, one)
    unknown = builder.and_(builder.icmp_signed("==", missing, one), builder.icmp_signed("==", known, zero))
    wrong = builder.or_(builder.or_(wrong, unknown), builder.icmp_signed("!=", size, total))
    with builder.if_then(wrong, likely=False):
        context.call_conv.return_user_exc(builder, ValueError, ("total size of new array must be unchanged",))
    step = field(context, builder, kind, args[0], "itemsize")
    strides = [step]
    for n in reversed(lengths[1:]):
        strides.insert(0, builder.mul(strides[0], n))
    value = structure(
        context, builder, made, **{name: field(context, builder, kind, args[0], name) for name in ("meminfo", "parent", "nitems", "data")},
        itemsize=step, shape=cgutils.pack_array(builder, lengths, ty=word), strides=cgutils.pack_array(builder, strides, ty=word))
    return impl_ret_borrowed(context, builder, made, value)


@intrinsic(prefer_literal=True)
def native_permuted(typingctx, array, axes):
    """np.transpose(array, axes), of axes that the text names."""
    if not isinstance(axes, types.BaseTuple) or not all(isinstance(k, types.IntegerLiteral) for k in axes.types):
        return None
    order = [k.literal_value for k in axes.types]

    def emit(context, builder, signature, args):
        kind, made = signature.args[0], signature.return_type
        parts = {name: field(context, builder, kind, args[0], name) for name in ("meminfo", "parent", "nitems", "itemsize", "data")}
        for name in ("shape", "strides"):
            given = field(context, builder, kind, args[0], name)
            parts[name] = cgutils.pack_array(builder, [item(builder, given, k) for k in order])
        return impl_ret_borrowed(context, builder, made, structure(context, builder, made, **parts))

    return array.copy(layout="A")(array, axes), emit
