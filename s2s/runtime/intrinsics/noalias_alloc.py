"""Allocate arrays in native code with LLVM's `noalias`: their memory overlaps nothing else.

Memory allocated by compiled code overlaps neither its arguments nor other allocations, but LLVM
sees pointers loaded from memory, and so guards each vectorised loop with pairwise overlap checks of
its arrays; if these are many, or the loop is a short inner loop, they cost more than the loop, or
it stays scalar. The pointer of an array allocated here is the result of a call marked `noalias`,
like malloc's: an empty piece of inline assembly, opaque to all passes. It counts as a memory
access, so that zeroing stays before it.

Considered: `flags.noalias` of a pipeline class, which covers arguments only, so that each loop
would have to be a function of its own, called with its buffers (measured: as fast as this);
recomputing the contents of buffers.

Note [Allocating]
Numba's np.empty and np.zeros are Python functions, compiled anew for every kind of shape, and so
are their callees: 0.9 of the 3 seconds of the first call of a small hidden Markov model. Here a few
instructions are emitted in place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from ..debug.sanitizer import guarded_memory
from ..llvm.helper_functions import fails, leave_if, outlined
from ..numba_internals import cgutils, impl_ret_new_ref
from .element_access import field, item, structure


def unshared_empty(shape, dtype=np.float64):
    """np.empty(shape, dtype)."""
    return np.empty(shape, dtype)


def unshared_zeros(shape, dtype=np.float64):
    """np.zeros(shape, dtype)."""
    return np.zeros(shape, dtype)


def unshared_like(array):
    """np.empty_like(array), in C order."""
    return np.empty(array.shape, array.dtype)


def with_noalias(context, builder, kind: types.Array, array: ir.Value) -> ir.Value:
    """The LLVM value of an array that others see, too, with the noalias promise; it holds the same
    reference.

    LLVM treats a `noalias` result like malloc's: stores that nobody reads before the function
    returns are dead.  So the pointer is passed to a second piece of inline assembly, through which
    it might escape.
    """
    place = context.data_model_manager[kind].get_field_position("data")
    data = item(builder, array, place)
    if is_promise(data):
        return array
    data = with_promise(builder, data)
    read_before(builder, data)
    return builder.insert_value(array, data, place)


def with_promise(builder, pointer: ir.Value) -> ir.Value:
    """The pointer, marked noalias: nothing else points into its memory."""
    call = builder.asm(ir.FunctionType(pointer.type, [pointer.type]), "", "=r,0,~{memory}",
                       [pointer], True)
    set.add(call.fastmath, "noalias")  # llvmlite prints it where return attributes belong
    return call


def read_before(builder, pointer: ir.Value) -> None:
    """Order loads from an array before its release.

    Memory is freed through Numba's meminfo pointer, not the data pointer, and by the noalias
    promise nothing else points to the data: so LLVM may move loads behind the release.  An empty
    piece of inline assembly that takes the data pointer counts as a write.
    """
    builder.asm(ir.FunctionType(ir.VoidType(), [pointer.type]), "", "r,~{memory}", [pointer], True)


def is_promise(pointer: ir.Value) -> bool:
    """Whether a pointer carries the noalias promise made here."""
    return isinstance(pointer, ir.CallInstr) and isinstance(pointer.callee, ir.InlineAsm)


class New(NamedTuple):
    """A new array: its LLVM value, and the address of its elements."""

    value: ir.Value
    data: ir.Value


def allocated(context, builder, kind: types.Array, shape: Sequence[ir.Value],
              zero: bool = False) -> New:
    """Allocate an array in C order; raise where NumPy would."""
    step = ir.Constant(context.get_value_type(types.intp),
                       context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    return described(context, builder, kind, shape,
                     had(builder, new_memory(context, builder, step, shape, zero)))


def new_memory(context, builder, step: ir.Value, shape: Sequence[ir.Value],
               zero: bool = False) -> ir.Value:
    """Allocate a MEMORY for an array whose elements take `step` bytes each."""
    name = f"new_{'zeros_' if zero else ''}{len(shape)}"
    return outlined(context, builder, name, MEMORY, [step, *shape],
                    functools.partial(allocate, context, zero))


def had(builder, memory: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The two members of a MEMORY, unless the allocation has raised."""
    meminfo = builder.extract_value(memory, 0)
    leave_if(builder, cgutils.is_null(builder, meminfo))
    return meminfo, builder.extract_value(memory, 1)


def described(context, builder, kind: types.Array, shape: Sequence[ir.Value],
              memory: tuple[ir.Value, ir.Value]) -> New:
    """A C-ordered array in this memory."""
    meminfo, place = memory
    return laid_out(context, builder, kind, shape, meminfo,
                    with_promise(builder,
                                 builder.bitcast(place,
                                                 context.get_data_type(kind.dtype).as_pointer())))


def laid_out(context, builder, kind: types.Array, shape: Sequence[ir.Value], meminfo: ir.Value,
             data: ir.Value) -> New:
    """A C-ordered array whose elements are at `data`."""
    word = context.get_value_type(types.intp)
    step = ir.Constant(word, context.get_abi_sizeof(data.type.pointee))
    count, strides = shape[0], [step]
    for n in shape[1:]:
        count = builder.mul(count, n)
    for n in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], n))
    return New(structure(context, builder, kind, meminfo=meminfo,
                         parent=context.get_constant_null(types.pyobject), nitems=count,
                         itemsize=step, data=data,
                         shape=cgutils.pack_array(builder, shape, ty=word),
                         strides=cgutils.pack_array(builder, strides, ty=word)), data)


NO_ROOM = "Allocation failed (probably too large)."
# Numba's object that holds it, or null; where it is
MEMORY = ir.LiteralStructType([cgutils.voidptr_t, cgutils.voidptr_t])
NO_MEMORY = ir.Constant(MEMORY, None)


def allocate(context, zero: bool, builder, step: ir.Value, *shape: ir.Value) -> None:
    """Allocate the memory of an array whose elements take `step` bytes each."""
    size, wrong = shape[0], None
    for n in [*shape[1:], step]:
        product = builder.smul_with_overflow(size, n)
        size, over = builder.extract_value(product, 0), builder.extract_value(product, 1)
        wrong = over if wrong is None else builder.or_(wrong, over)
    for n in shape:
        wrong = builder.or_(wrong, builder.icmp_signed("<", n, n.type(0)))
    fails(context, builder, wrong, ValueError, "the shape of a new array is negative, or too large",
          NO_MEMORY)
    guarded = None
    if getattr(context, "has_guards", False):
        meminfo, guarded = guarded_memory(context, builder, size)
    else:
        meminfo = context.nrt.meminfo_alloc_aligned_unchecked(builder, size,
                                                              context.get_preferred_array_alignment(
                                                                  types.intp))
    fails(context, builder, cgutils.is_null(builder, meminfo), MemoryError, NO_ROOM, NO_MEMORY)
    data = context.nrt.meminfo_data(builder, meminfo) if guarded is None else guarded()
    if zero:
        cgutils.memset(builder, data, size, 0)
    builder.ret(builder.insert_value(builder.insert_value(NO_MEMORY, meminfo, 0), data, 1))


def _typed(context) -> Callable:
    def of(shape, dtype=types.NumberClass(types.float64)):
        lengths = shape.types if isinstance(shape, types.BaseTuple) else (shape,)
        if (isinstance(dtype, types.DTypeSpec) and lengths
            and all(isinstance(n, types.Integer) for n in lengths)):
            return types.Array(dtype.dtype, len(lengths), "C")

    return of


def _lowered(zero: bool) -> Callable:
    def lower(context, builder, sig, args):
        shape, given = sig.args[0], args[0]
        if isinstance(shape, types.BaseTuple):
            lengths = [context.cast(builder, item(builder, given, k), t, types.intp)
                       for k, t in enumerate(shape.types)]
        else:
            lengths = [context.cast(builder, given, shape, types.intp)]
        made = allocated(context, builder, sig.return_type, lengths, zero)
        return impl_ret_new_ref(context, builder, sig.return_type, made.value)

    return lower


for _function, _zero in ((unshared_empty, False), (unshared_zeros, True)):
    type_callable(_function)(_typed)
    lower_builtin(_function, types.Any)(_lowered(_zero))
    lower_builtin(_function, types.Any, types.Any)(_lowered(_zero))


@type_callable(unshared_like)
def _type_unshared_like(context):
    return lambda array: (types.Array(array.dtype, array.ndim, "C")
                          if isinstance(array, types.Array) and array.ndim else None)


@lower_builtin(unshared_like, types.Array)
def _lower_unshared_like(context, builder, sig, args):
    shape = field(context, builder, sig.args[0], args[0], "shape")
    made = allocated(context, builder, sig.return_type,
                     [item(builder, shape, k) for k in range(sig.args[0].ndim)])
    return impl_ret_new_ref(context, builder, sig.return_type, made.value)
