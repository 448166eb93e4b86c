"""np.ascontiguousarray, np.reshape and np.transpose in native code: views of contiguous memory,
copies of other arrays.

Numba's versions are Python functions, compiled anew for each kind of array and of shape, in 30 to
150 ms; the first np.transpose with axes takes 3 s, because of an error message. Non-contiguous
arrays of numbers are copied by a function of the module, one for each rank: an einsum of six small
tensors, which makes 35 arrays contiguous, took 3.5 s instead of 1.6. They are copied even if they
turn out to be contiguous at run time; a test took more code than the copy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, overload, type_callable

from ..intrinsics.element_access import field, item, structure
from ..intrinsics.noalias_alloc import MEMORY, New, described, had, new_memory
from ..llvm.helper_functions import fails, leave_if, outlined
from ..numba_internals import cgutils, impl_ret_borrowed, impl_ret_new_ref
from .row_copy import copier


def native_in_order(array):
    """np.ascontiguousarray(array)."""
    return np.ascontiguousarray(array)


def native_copy(array):
    """array.copy()."""
    return array.copy()


def native_reshaped(array, shape):
    """np.reshape(array, shape)."""
    return np.reshape(array, shape)


def is_simple(array, shape=types.UniTuple(types.intp, 1)) -> bool:
    lengths = shape.types if isinstance(shape, types.BaseTuple) else (shape,)
    return (isinstance(array, types.Array) and array.layout == "C" and array.ndim > 0
            and len(lengths) > 0
            and all(isinstance(n, types.Integer) and n.signed for n in lengths))


def is_copied(array) -> bool:
    """Whether np.ascontiguousarray(array) is a copy emitted here."""
    return (isinstance(array, types.Array) and array.layout != "C" and array.ndim > 0
            and is_of_numbers(array))


def is_of_numbers(array: types.Array) -> bool:
    return isinstance(array.dtype, (types.Number, types.Boolean))


@type_callable(native_in_order)
def _type_in_order(context):
    return lambda array: (array if is_simple(array)
                          else types.Array(array.dtype, array.ndim, "C") if is_copied(array)
                          else None)


@overload(native_in_order)
def _other_in_order(array):
    return (None if is_simple(array) or is_copied(array)
            else lambda array: np.ascontiguousarray(array))


def _in_order(context, builder, sig, args):
    return args[0]


@lower_builtin(native_in_order, types.Array)
def _lower_in_order(context, builder, sig, args):
    (kind,), made = sig.args, sig.return_type
    if kind.layout == "C":
        return impl_ret_borrowed(context, builder, made, args[0])
    return impl_ret_new_ref(context, builder, made,
                            copied(context, builder, kind, made, args[0]).value)


@type_callable(native_copy)
def _type_copy(context):
    return lambda array: (types.Array(array.dtype, array.ndim, "C")
                          if is_simple(array) and is_of_numbers(array) or is_copied(array)
                          else None)


@overload(native_copy)
def _other_copy(array):
    return (None if is_simple(array) and is_of_numbers(array) or is_copied(array)
            else lambda array: array.copy())


@lower_builtin(native_copy, types.Array)
def _lower_copy(context, builder, sig, args):
    return impl_ret_new_ref(context, builder, sig.return_type,
                            copied(context, builder, sig.args[0], sig.return_type, args[0]).value)


def copied(context, builder, kind: types.Array, made: types.Array, array: ir.Value) -> New:
    """A C-ordered copy, of type `made`, of an array of type `kind`."""
    shape, strides = ([item(builder, field(context, builder, kind, array, name), k)
                       for k in range(kind.ndim)] for name in ("shape", "strides"))
    memory = outlined(context, builder, f"in_order_{kind.ndim}_{kind.dtype}", MEMORY,
                      [field(context, builder, kind, array, "data"), *shape, *strides],
                      functools.partial(_copy, context, kind))
    return described(context, builder, made, shape, had(builder, memory))


def _copy(context, kind: types.Array, builder, data: ir.Value, *given: ir.Value) -> None:
    """The memory of a C-ordered copy."""
    shape, strides = given[:kind.ndim], given[kind.ndim:]
    item_type, word = context.get_data_type(kind.dtype), given[0].type
    step = word(context.get_abi_sizeof(item_type))
    memory = new_memory(context, builder, step, shape)
    with builder.if_then(cgutils.is_null(builder, builder.extract_value(memory, 0)), likely=False):
        builder.ret(memory)
    made = builder.bitcast(builder.extract_value(memory, 1), item_type.as_pointer())
    copy = copier(builder.module, item_type, step.constant)
    if kind.ndim == 1:
        builder.call(copy,
                     [made, builder.bitcast(data, cgutils.voidptr_t), word(1), shape[0], word(0),
                      strides[0], shape[0]])
    else:
        _copy_planes(builder, copy, step, made, data, shape, strides)
    builder.ret(memory)


def _copy_planes(builder, copy: ir.Function, step: ir.Value, made: ir.Value, data: ir.Value,
                 shape: Sequence[ir.Value], strides: Sequence[ir.Value]) -> None:
    """Copy plane by plane: the planes of the last axis and the one before it, or the first, if that
    is contiguous.
    """
    places = [step.type(1)]  # contiguous in the copy
    for n in reversed(shape[1:]):
        places.insert(0, builder.mul(places[0], n))
    is_first = builder.icmp_signed("==", strides[0], step)
    rows, over_rows, apart = (builder.select(is_first, of[0], of[-2])
                              for of in (shape, strides, places))
    lengths, over, steps = ([builder.select(is_first, b, a) for a, b in zip(of[:-2], of[1:-1])]
                            for of in (shape, strides, places))
    with cgutils.loop_nest(builder, lengths, step.type) as index:
        to, offset = step.type(0), step.type(0)
        for i, stride, place in zip(index, over, steps):
            to, offset = (builder.add(to, builder.mul(i, place)),
                          builder.add(offset, builder.mul(i, stride)))
        start = builder.gep(builder.bitcast(data, cgutils.voidptr_t), [offset])
        builder.call(
            copy, [builder.gep(made, [to]), start, rows, shape[-1], over_rows, strides[-1], apart])


@type_callable(native_reshaped)
def _type_reshaped(context):
    def of(array, shape):
        if is_simple(array, shape):
            return array.copy(ndim=len(shape) if isinstance(shape, types.BaseTuple) else 1)
    return of


@overload(native_reshaped)
def _other_reshaped(array, shape):
    return None if is_simple(array, shape) else lambda array, shape: np.reshape(array, shape)


def _reshaped(context, builder, sig, args):
    (kind, given), made = sig.args, sig.return_type
    if isinstance(given, types.BaseTuple):
        lengths = [context.cast(builder, item(builder, args[1], k), t, types.intp)
                   for k, t in enumerate(given.types)]
    else:
        lengths = [context.cast(builder, args[1], given, types.intp)]
    shape = [item(builder, field(context, builder, kind, args[0], "shape"), k)
             for k in range(kind.ndim)]
    total = shape[0]
    for n in shape[1:]:
        total = builder.mul(total, n)
    rest = known_length(shape, lengths)
    if rest is None:
        rest = outlined(context, builder, f"reshaped_{len(lengths)}", total.type, [total, *lengths],
                        functools.partial(_find_length, context))
        leave_if(builder, builder.icmp_signed("<", rest, rest.type(0)))
    lengths = [rest if is_open(n) else n if is_constant(n)
               else builder.select(builder.icmp_signed("<", n, n.type(0)), rest, n)
               for n in lengths]
    step = field(context, builder, kind, args[0], "itemsize")
    strides = [step]
    for n in reversed(lengths[1:]):
        strides.insert(0, builder.mul(strides[0], n))
    return structure(context, builder, made,
                     **{name: field(context, builder, kind, args[0], name)
                        for name in ("meminfo", "parent", "nitems", "data")}, itemsize=step,
                     shape=cgutils.pack_array(builder, lengths, ty=rest.type),
                     strides=cgutils.pack_array(builder, strides, ty=rest.type))


def is_constant(n: ir.Value) -> bool:
    return isinstance(n, ir.Constant) and isinstance(n.constant, int)


def known_length(shape: Sequence[ir.Value], lengths: Sequence[ir.Value]) -> ir.Value | None:
    """The length for -1 in the shape, if all others are known and it divides."""
    if not all(map(is_constant, [*shape, *lengths])):
        return None
    size, known = (math.prod(n.constant for n in several if n.constant >= 0)
                   for several in (shape, lengths))
    missing = sum(map(is_open, lengths))
    rest = size // known if missing == 1 and known else 1
    return shape[0].type(rest) if missing < 2 and rest * known == size else None


def is_open(n: ir.Value) -> bool:
    """Whether this length is known to be -1."""
    return is_constant(n) and n.constant < 0


def _find_length(context, builder, total: ir.Value, *lengths: ir.Value) -> None:
    """The length that replaces negative ones, for an array of so many numbers; negative where it
    raises.
    """
    zero, one = total.type(0), total.type(1)
    known, missing = one, zero
    for n in lengths:
        is_open = builder.icmp_signed("<", n, zero)
        known = builder.mul(known, builder.select(is_open, one, n))
        missing = builder.add(missing, builder.select(is_open, one, zero))
    rest = builder.sdiv(total, builder.select(builder.icmp_signed("==", known, zero), one, known))
    size = one
    for n in lengths:
        size = builder.mul(size, builder.select(builder.icmp_signed("<", n, zero), rest, n))
    wrong = builder.icmp_signed(">", missing, one)
    unknown = builder.and_(builder.icmp_signed("==", missing, one),
                           builder.icmp_signed("==", known, zero))
    wrong = builder.or_(builder.or_(wrong, unknown), builder.icmp_signed("!=", size, total))
    fails(context, builder, wrong, ValueError, "total size of new array must be unchanged",
          total.type(-1))
    builder.ret(rest)


# (condition on types, emitter)
AGAIN = {native_in_order: (is_simple, _in_order), native_reshaped: (is_simple, _reshaped)}


def _borrowed(emit: Callable) -> Callable:
    """Numba's lowering for a result that aliases its first argument's memory, with a reference of
    its own.
    """
    return lambda context, builder, sig, args: impl_ret_borrowed(context, builder, sig.return_type,
                                                                 emit(context, builder, sig, args))


lower_builtin(native_reshaped, types.Array, types.Any)(_borrowed(_reshaped))


@intrinsic(prefer_literal=True)
def native_permuted(typingctx, array, axes):
    """np.transpose(array, axes), with literal axes."""
    if (not isinstance(axes, types.BaseTuple)
        or not all(isinstance(k, types.IntegerLiteral) for k in axes.types)):
        return None
    order = [k.literal_value for k in axes.types]

    def emit(context, builder, signature, args):
        kind, made = signature.args[0], signature.return_type
        parts = {name: field(context, builder, kind, args[0], name)
                 for name in ("meminfo", "parent", "nitems", "itemsize", "data")}
        for name in ("shape", "strides"):
            given = field(context, builder, kind, args[0], name)
            parts[name] = cgutils.pack_array(builder, [item(builder, given, k) for k in order])
        return impl_ret_borrowed(context, builder, made, structure(context, builder, made, **parts))

    return array.copy(layout="A")(array, axes), emit
