"""Emit matrix products as direct calls of BLAS.

Numba's own `a @ b` takes 0.4 s to compile for each kind of operands, four times as long as
everything around it, because it consists of Python functions that check and copy. Here the call of
the same BLAS routines (SciPy's, through Numba's pointers) is emitted in place, with transposes
expressed by BLAS's flags: some 10 ms. The product of a small matrix and a vector is left to
small_matvec.py: the call of BLAS would take longer than the work.

BLAS is column-major: to BLAS, a matrix in C order is its own transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, overload, type_callable

from ..intrinsics.element_access import field, item
from ..intrinsics.noalias_alloc import MEMORY, NO_MEMORY, allocated, described, had, new_memory
from ..llvm.helper_functions import fails, outlined
from ..numba_internals import cgutils, impl_ret_new_ref
from .array_layout import copied
from .small_matvec import dots, row

KINDS = {types.float64: "d", types.float32: "s", types.complex128: "z", types.complex64: "c"}
BYTE, STATUS = ir.IntType(8), ir.IntType(32)
# rows in memory, and numbers, of a matrix; up to them, gemv takes longer than small_matvec.py
FEW, SMALL = 32, 32 * 32


def blas_product(a, b):
    """a @ b."""
    return a @ b


def is_simple(a, b) -> bool:
    """Whether a single call of BLAS multiplies them, once they are contiguous."""
    return (isinstance(a, types.Array) and isinstance(b, types.Array) and a.dtype == b.dtype
            and a.dtype in KINDS and (a.ndim, b.ndim) in ((2, 1), (1, 2), (2, 2)))


@type_callable(blas_product)
def _type_simple(context):
    return lambda a, b: types.Array(a.dtype, a.ndim + b.ndim - 2, "C") if is_simple(a, b) else None


@overload(blas_product)
def _other_product(a, b) -> Callable | None:
    if not isinstance(a, types.Array) or not isinstance(b, types.Array) or is_simple(a, b):
        return None
    return lambda a, b: a @ b


@lower_builtin(blas_product, types.Array, types.Array)
def _lower_simple(context, builder, sig, args):
    """The product; operands that are neither C- nor Fortran-contiguous are copied first."""
    if any(t.layout == "A" for t in sig.args):
        rows, inner = (item(builder, field(context, builder, t, x, "shape"), k)
                       for t, x, k in zip(sig.args, args, (-1 % sig.args[0].ndim, 0)))
        with builder.if_then(builder.icmp_signed("!=", rows, inner), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, (UNEQUAL,))
    kinds = [t.copy(layout="C") if t.layout == "A" else t for t in sig.args]
    args = [copied(context, builder, t, kind, x).value if kind is not t else x
            for t, kind, x in zip(sig.args, kinds, args)]
    made = _product_of(context, builder, sig.replace(args=tuple(kinds)), args)
    for t, kind, x in zip(sig.args, kinds, args):
        if kind is not t:
            context.nrt.decref(builder, kind, x)
    return made


def _product_of(context, builder, sig, args):
    kind, given, shape = sig.return_type, [], []
    for t, x in zip(sig.args, args):
        lengths = [item(builder, field(context, builder, t, x, "shape"), k) for k in range(t.ndim)]
        given += [field(context, builder, t, x, "data"), *lengths]
        shape.append(lengths)
    result = [*shape[0][:-1], *shape[1][1:]]
    if sig.args[0].ndim != sig.args[1].ndim:
        a, b = (Operand(t, field(context, builder, t, x, "data"), lengths)
                for t, x, lengths in zip(sig.args, args, shape))
        return impl_ret_new_ref(context, builder, kind,
                                _with_vector(context, builder, kind, a, b, result))
    # a vector is both C- and Fortran-contiguous
    kinds = "".join(f"_{t.layout if t.ndim == 2 else ''}{t.ndim}" for t in sig.args)
    memory = outlined(context, builder, f"product_{KINDS[kind.dtype]}{kinds}", MEMORY, given,
                      lambda inner, *xs: _product(context, inner, sig, *xs))
    made = described(context, builder, kind, result, had(builder, memory))
    return impl_ret_new_ref(context, builder, kind, made.value)


class Operand(NamedTuple):
    """An operand of a product."""

    kind: types.Array
    data: ir.Value
    shape: Sequence[ir.Value]


def _with_vector(context, builder, kind: types.Array, a: Operand, b: Operand,
                 shape: Sequence[ir.Value]) -> ir.Value:
    """Emit a product of a matrix and a vector: LLVM propagates known lengths, if all such products
    of a module share them, into the loops of small_matvec.py as constant trip counts.
    """
    with builder.if_then(builder.icmp_signed("!=", a.shape[-1], b.shape[0]), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (UNEQUAL,))
    made = allocated(context, builder, kind, shape)
    _fill(context, builder, a, b, shape, made.data)
    return made.value


UNEQUAL = "matmul: the lengths of the operands do not match"


def _product(context, builder, sig, *given: ir.Value) -> None:
    """The memory of a product of operands given by address and lengths."""
    rank = sig.args[0].ndim
    a, b = (Operand(t, data, shape)
            for t, (data, *shape) in zip(sig.args, (given[:rank + 1], given[rank + 1:])))
    fails(context, builder, builder.icmp_signed("!=", a.shape[-1], b.shape[0]), ValueError, UNEQUAL,
          NO_MEMORY)
    shape = [*a.shape[:-1], *b.shape[1:]]
    item_type = context.get_data_type(sig.return_type.dtype)
    memory = new_memory(context, builder, shape[0].type(context.get_abi_sizeof(item_type)), shape)
    with builder.if_then(cgutils.is_null(builder, builder.extract_value(memory, 0)), likely=False):
        builder.ret(memory)
    made = builder.bitcast(builder.extract_value(memory, 1), item_type.as_pointer())
    _fill(context, builder, a, b, shape, made)
    builder.ret(memory)


def _fill(context, builder, a: Operand, b: Operand, shape: Sequence[ir.Value],
          made: ir.Value) -> None:
    """Write the product, which is 0 if the summed axis is empty."""
    item_type = context.get_data_type(a.kind.dtype)
    nothing = shape[0].type(0)
    empty = builder.icmp_signed("==", a.shape[-1], nothing)
    for n in shape:
        empty = builder.or_(empty, builder.icmp_signed("==", n, nothing))
    with builder.if_else(empty, likely=False) as (then, otherwise):
        with then:
            size = shape[0].type(context.get_abi_sizeof(item_type))
            for n in shape:
                size = builder.mul(size, n)
            cgutils.memset(builder, made, size, 0)
        with otherwise:
            _multiply(context, builder, a, b, made)


def _multiply(context, builder, a: Operand, b: Operand, made: ir.Value) -> None:
    """Call gemm, or gemv, or its faster replacement for a small matrix."""
    number = context.get_value_type(a.kind.dtype)
    is_complex = isinstance(a.kind.dtype, types.Complex)
    one, zero = (_in_memory(builder, ir.Constant(number, [x, 0.0] if is_complex else x))
                 for x in (1.0, 0.0))
    kind = _letter(KINDS[a.kind.dtype])
    if a.kind.ndim == b.kind.ndim:
        (n, k), m = a.shape, b.shape[1]
        _call(builder, "numba_xxgemm",
              [kind, _letter("n" if b.kind.layout == "C" else "t"),
               _letter("n" if a.kind.layout == "C" else "t"), m, n, k, one, b.data,
               m if b.kind.layout == "C" else k, a.data, k if a.kind.layout == "C" else n, zero,
               made, m])
        return
    of_rows = a.kind.ndim == 2
    matrix, vector = (a, b) if of_rows else (b, a)
    n, m = matrix.shape
    lead, others = (m, n) if matrix.kind.layout == "C" else (n, m)
    dotted = (matrix.kind.layout == "C") == of_rows
    args = [kind, _letter("t" if dotted else "n"), lead, others, one, matrix.data, lead,
            vector.data, zero, made]
    if is_complex:
        return _call(builder, "numba_xxgemv", args)
    few, small = (builder.icmp_signed("<=", x, ir.Constant(lead.type, most))
                  for x, most in ((others, FEW), (builder.mul(lead, others), SMALL)))
    with builder.if_else(builder.and_(few, small)) as (then, otherwise):
        with then:
            builder.call((dots if dotted else row)(builder.module, number),
                         [matrix.data, lead, others, vector.data, made])
        with otherwise:
            _call(builder, "numba_xxgemv", args)


def _letter(letter: str) -> ir.Constant:
    return ir.Constant(BYTE, ord(letter))


def _in_memory(builder, number: ir.Constant) -> ir.Value:
    place = cgutils.alloca_once(builder, number.type)
    builder.store(number, place)
    return place


def _call(builder, name: str, args: Sequence[ir.Value]) -> None:
    """Call Numba's routine of that name, which takes bytes, lengths and untyped addresses."""
    args = [builder.bitcast(x, cgutils.voidptr_t) if x.type.is_pointer else x for x in args]
    function = cgutils.get_or_insert_function(builder.module,
                                              ir.FunctionType(STATUS, [x.type for x in args]), name)
    builder.call(function, args)
