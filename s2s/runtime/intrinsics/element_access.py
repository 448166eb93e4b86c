"""Emit element accesses and loops over ranges as a few LLVM instructions.

Numba emits thirty instructions for `x[i]` and more than a hundred for the head of a loop: it stores
zeroed structures to memory and loads their fields again; Python emits this as text, which LLVM
parses and optimises away. That was half of the code of a derivative. Here the final instructions
are emitted directly, with Numba's index arithmetic, so that the loops come out the same. Other
indices, steps that are data, and code with bounds checks use Numba's lowering.

The emitters belong to the target context of generated code alone (runtime/numba/compiler.py).
Considered: intrinsics in place of `x[i]`, which nobody would want to read; registering the emitters
with Numba, for all code of the process.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba import types

from ..debug.sanitizer import check_index
from ..numba_internals import (
    InsertValue,
    cgutils,
    force_error_model,
    load_item,
    numba_typing,
    store_item,
    ufunc_find_matching_loop,
)
from .complex_math import length, of_complex


def short(context, function, signature) -> Callable | None:
    """The short emitter of `function` for these argument types, `emit(builder, args, loc=None)`, if
    there is one.
    """
    types_, kind = signature.args, signature.return_type
    function = getattr(function, "typing_key", function)
    if isinstance(kind, types.Complex):
        found = of_complex(context, function, signature)
        if found is not None:
            return found
    if function in (abs, np.absolute) and isinstance(types_[0], types.Complex):
        return lambda builder, args, loc=None: length(context, builder, types_[0], args[0])
    if isinstance(function, np.ufunc):
        return _of_numbers(context, function, signature)
    if function is operator.getitem and is_element(context, *types_[:2]):
        return lambda builder, args, loc=None: load_item(context, builder, types_[0],
                                                         _place(context, builder, *types_[:2],
                                                                *args, loc))
    if (function is operator.setitem and is_element(context, *types_[:2])
        and isinstance(types_[2], (types.Number, types.Boolean))):
        return lambda builder, args, loc=None: _set(context, builder, types_, args, loc)
    if function == "getiter" and isinstance(types_[0], types.RangeType):
        return lambda builder, args, loc=None: _begin(context, builder, types_[0], kind, args[0])
    if function == "iternext" and isinstance(types_[0], types.RangeIteratorType):
        return lambda builder, args, loc=None: _next(context, builder, types_[0], kind, args[0])
    if function is range and isinstance(kind, types.RangeType):
        return lambda builder, args, loc=None: _range(context, builder, kind, args)


def field(context, builder, kind: types.Type, structure: ir.Value, name: str) -> ir.Value:
    """A field of a structure of type `kind`."""
    return item(builder, structure, context.data_model_manager[kind].get_field_position(name))


def item(builder, aggregate: ir.Value, k: int) -> ir.Value:
    """Member `k` of a structure, without an `extractvalue` if the inserted value is known."""
    while isinstance(aggregate, InsertValue):
        aggregate_, value, indices = *aggregate.operands, aggregate.indices
        if list(indices) == [k]:
            return value
        if indices[0] == k:
            break
        aggregate = aggregate_
    return builder.extract_value(aggregate, k)


def structure(context, builder, kind: types.Type, **fields: ir.Value) -> ir.Value:
    """A structure of type `kind`."""
    model = context.data_model_manager[kind]
    made = ir.Constant(model.get_value_type(), ir.Undefined)
    for name, value in fields.items():
        made = builder.insert_value(made, value, model.get_field_position(name))
    return made


def _of_numbers(context, function: np.ufunc, signature) -> Callable | None:
    """NumPy's function of single numbers: Numba's scalar kernel, without the loop around it."""
    if (function.nout != 1
        or not all(isinstance(t, (types.Integer, types.Float, types.Boolean))
                   for t in (*signature.args, signature.return_type))):
        return None
    loop = ufunc_find_matching_loop(function, (*signature.args, signature.return_type))
    emit = loop and context.get_ufunc_info(function).get(loop.ufunc_sig)
    if (emit is None
        or not all(isinstance(t, (types.Integer, types.Float, types.Boolean))
                   for t in (*loop.inputs, *loop.outputs))):
        return None
    (of,) = loop.outputs

    def compute(builder, args, loc=None):
        xs = [context.cast(builder, x, t, wanted)
              for x, t, wanted in zip(args, signature.args, loop.inputs)]
        with force_error_model(context, "numpy"):
            found = emit(context, builder, numba_typing.signature(of, *loop.inputs), xs)
        return context.cast(builder, context.data_model_manager[of].from_return(builder, found), of,
                            signature.return_type)

    return compute


# ----------------------------------------------------------------------------------------- elements


def is_element(context, array: types.Type, index: types.Type) -> bool:
    """Whether `index` selects a single number of `array`."""
    indices = index.types if isinstance(index, types.BaseTuple) else (index,)
    return (isinstance(array, types.Array)
            and isinstance(array.dtype, (types.Number, types.Boolean))
            and (context.is_sanitized or not context.enable_boundscheck)
            and 0 < array.ndim == len(indices)
            and all(isinstance(k, types.Integer) for k in indices))


def _place(context, builder, array: types.Array, index: types.Type, x: ir.Value, k: ir.Value,
           loc=None) -> ir.Value:
    given = ([(k, index)] if isinstance(index, types.Integer)
             else [(item(builder, k, n), t) for n, t in enumerate(index.types)])
    return place(context, builder, array, x, given, line=0 if loc is None else loc.line)


def place(context, builder, array: types.Array, x: ir.Value,
          given: Sequence[tuple[ir.Value, types.Type]],
          is_natural: Callable[[ir.Value], bool] = lambda k: False, line: int = 0) -> ir.Value:
    """The address of an element: Numba's get_item_pointer, with the array's fields as values.

    An index marked `is_natural` is known not to be negative.  Sanitized code names the `line` of
    the text if an index is out of bounds.
    """
    shape = field(context, builder, array, x, "shape")
    indices = [k if is_natural(k) else _counted(context, builder, k, t, shape, n)
               for n, (k, t) in enumerate(given)]
    if context.is_sanitized:
        check_index(context, builder, indices, [item(builder, shape, n) for n in range(array.ndim)],
                    line)
    data = field(context, builder, array, x, "data")
    if array.layout == "A":
        strides = field(context, builder, array, x, "strides")
        offset = None
        for n, i in enumerate(indices):
            step = builder.mul(item(builder, strides, n), i)
            offset = step if offset is None else builder.add(offset, step)
        return cgutils.pointer_add(builder, data, offset)
    axes = list(range(array.ndim))
    offset, step = None, None  # starting with the contiguous axis
    for n in (reversed(axes) if array.layout == "C" else axes):
        term = indices[n] if step is None else builder.mul(indices[n], step)
        offset = term if offset is None else builder.add(term, offset)
        if n != (0 if array.layout == "C" else axes[-1]):
            length = item(builder, shape, n)
            step = length if step is None else builder.mul(length, step)
    return builder.gep(data, [offset])


def _counted(context, builder, k: ir.Value, kind: types.Integer, shape: ir.Value,
             axis: int) -> ir.Value:
    """The index counted from the front."""
    if not kind.signed:
        return context.cast(builder, k, kind, types.uintp)
    k = context.cast(builder, k, kind, types.intp)
    if isinstance(k, ir.Constant) and isinstance(k.constant, int) and k.constant >= 0:
        return k
    return builder.select(builder.icmp_signed("<", k, k.type(0)),
                          builder.add(k, item(builder, shape, axis)), k)


def _set(context, builder, kinds: Sequence[types.Type], args: Sequence[ir.Value],
         loc=None) -> ir.Value:
    array, index, kind = kinds
    where = _place(context, builder, array, index, *args[:2], loc)
    store_item(context, builder, array, context.cast(builder, args[2], kind, array.dtype), where)
    return context.get_dummy_value()


# ------------------------------------------------------------------------------------------- ranges


def _range(context, builder, kind: types.RangeType, args: Sequence[ir.Value]) -> ir.Value:
    number = context.get_value_type(kind.dtype)
    start, stop, step = {1: (number(0), *args, number(1)), 2: (*args, number(1)), 3: args}[
        len(args)]
    return structure(context, builder, kind, start=start, stop=stop, step=step)


def _begin(context, builder, kind: types.RangeType, iterator: types.RangeIteratorType,
           given: ir.Value) -> ir.Value:
    """An iterator over a range: its next number, and how many are left."""
    start, stop, step = (field(context, builder, kind, given, name)
                         for name in ("start", "stop", "step"))
    zero, one = start.type(0), start.type(1)
    span = (stop if isinstance(start, ir.Constant) and start.constant == 0
            else builder.sub(stop, start))
    is_up = builder.icmp_signed(">", span, zero)
    if isinstance(step, ir.Constant) and step.constant == 1:
        count = builder.select(is_up, span, zero)
    elif isinstance(step, ir.Constant) and step.constant == -1:
        count = builder.select(is_up, zero, builder.neg(span))
    else:
        count = _count(context, builder, span, step, is_up, zero, one)
    first, left = (cgutils.alloca_once(builder, start.type) for _ in range(2))
    builder.store(start, first)
    builder.store(count, left)
    return structure(context, builder, iterator, iter=first, stop=stop, step=step, count=left)


def count_of(context, builder, start: ir.Value, stop: ir.Value, step: ir.Value) -> ir.Value:
    """The length of a range."""
    zero, one = start.type(0), start.type(1)
    span = builder.sub(stop, start)
    return _count(context, builder, span, step, builder.icmp_signed(">", span, zero), zero, one)


def _count(context, builder, span: ir.Value, step: ir.Value, is_up: ir.Value, zero: ir.Value,
           one: ir.Value) -> ir.Value:
    """The number of steps in the span."""
    if not isinstance(step, ir.Constant) or step.constant == 0:
        with cgutils.if_unlikely(builder, builder.icmp_signed("==", step, zero)):
            context.call_conv.return_user_exc(builder, ValueError,
                                              ("range() arg 3 must not be zero",))
    rest = builder.srem(span, step)
    rest = builder.select(is_up, rest, builder.neg(rest))
    more = builder.select(builder.icmp_signed(">", rest, zero), one, zero)
    is_empty = builder.xor(is_up, builder.icmp_signed(">", step, zero))
    return builder.select(is_empty, zero, builder.add(builder.sdiv(span, step), more))


def _next(context, builder, kind: types.RangeIteratorType, pair: types.Pair,
          given: ir.Value) -> ir.Value:
    """The next number, and whether there is one.  After the last it keeps counting, which is
    harmless: the loop has ended.
    """
    first, left, step = (field(context, builder, kind, given, name)
                         for name in ("iter", "count", "step"))
    value, count = builder.load(first), builder.load(left)
    is_valid = builder.icmp_signed(">", count, count.type(0))
    builder.store(builder.sub(count, count.type(1), flags=["nsw"]), left)
    builder.store(builder.add(value, step), first)
    return structure(context, builder, pair, first=value, second=is_valid)
