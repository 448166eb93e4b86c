"""Matrix products in compiled code, straight from BLAS.

Numba's own `a @ b` takes 0.4 s to compile for each kind of operands, four times what everything around it
takes, because it is made of Python functions that check and copy.  These write the call of the same BLAS routines (SciPy's,
through the pointers that Numba holds) where the product is, and leave transposing to BLAS's flags: some 10 ms.
A small matrix times a vector is done by small.py instead: a call of BLAS would take longer than what it does.

BLAS counts in columns: a matrix in C order is, to BLAS, its own transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_new_ref
from numba.extending import lower_builtin, overload, type_callable

from .small import dots, row
from .unshared import allocated

KINDS = {types.float64: "d", types.float32: "s"}
BYTE, STATUS = ir.IntType(8), ir.IntType(32)
FEW, SMALL = 32, 32 * 32  # rows in memory, and numbers, of a matrix; up to them, gemv takes longer than small.py


def blas_product(a, b):
    """a @ b."""
    return a @ b


def is_simple(a, b) -> bool:
    """Whether one call of BLAS multiplies them, as they lie in memory."""
    return (isinstance(a, types.Array) and isinstance(b, types.Array) and "A" not in (a.layout, b.layout)
            and a.dtype == b.dtype and a.dtype in KINDS and (a.ndim, b.ndim) in ((2, 1), (1, 2), (2, 2)))


@type_callable(blas_product)
def _type_simple(context):
    return lambda a, b: types.Array(a.dtype, a.ndim + b.ndim - 2, "C") if is_simple(a, b) else None


@overload(blas_product)
def _other_product(a, b) -> Callable | None:
    if not isinstance(a, types.Array) or not isinstance(b, types.Array) or is_simple(a, b):
        return None
    if a.layout == "A":
        return lambda a, b: blas_product(np.ascontiguousarray(a), b)
    if b.layout == "A":
        return lambda a, b: blas_product(a, np.ascontiguousarray(b))
    return lambda a, b: a @ b


@lower_builtin(blas_product, types.Array, types.Array)
def _lower_simple(context, builder, sig, args):
    (a_kind, b_kind), kind = sig.args, sig.return_type
    a, b = (context.make_array(t)(context, builder, x) for t, x in zip(sig.args, args))
    a_shape, b_shape = (cgutils.unpack_tuple(builder, x.shape, t.ndim) for t, x in zip(sig.args, (a, b)))
    shape = [*a_shape[:-1], *b_shape[1:]]
    with builder.if_then(builder.icmp_signed("!=", a_shape[-1], b_shape[0]), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, ("matmul: the lengths of the operands do not match",))
    made = allocated(context, builder, kind, shape)
    nothing = ir.Constant(shape[0].type, 0)
    empty = builder.icmp_signed("==", a_shape[-1], nothing)
    for n in shape:
        empty = builder.or_(empty, builder.icmp_signed("==", n, nothing))
    with builder.if_else(empty, likely=False) as (then, otherwise):
        with then:
            cgutils.memset(builder, made.data, made.size, 0)
        with otherwise:
            _multiply(context, builder, (a_kind, a, a_shape), (b_kind, b, b_shape), made)
    return impl_ret_new_ref(context, builder, kind, made.value)


def _multiply(context, builder, first: tuple, second: tuple, made) -> None:
    """The call of gemm, or of gemv and what is faster for a small matrix."""
    (a_kind, a, a_shape), (b_kind, b, b_shape) = first, second
    real = context.get_value_type(a_kind.dtype)
    one, zero = (_in_memory(builder, ir.Constant(real, x)) for x in (1.0, 0.0))
    kind = _letter(KINDS[a_kind.dtype])
    if a_kind.ndim == b_kind.ndim:
        (n, k), m = a_shape, b_shape[1]
        _call(builder, "numba_xxgemm", [
            kind, _letter("n" if b_kind.layout == "C" else "t"), _letter("n" if a_kind.layout == "C" else "t"), m, n, k,
            one, b.data, m if b_kind.layout == "C" else k, a.data, k if a_kind.layout == "C" else n, zero, made.data, m])
        return
    of_rows = a_kind.ndim == 2
    (t, matrix, (n, m)), vector = ((a_kind, a, a_shape), b) if of_rows else ((b_kind, b, b_shape), a)
    lead, others = (m, n) if t.layout == "C" else (n, m)
    dotted = (t.layout == "C") == of_rows
    few, small = (builder.icmp_signed("<=", x, ir.Constant(lead.type, most)) for x, most in ((others, FEW), (builder.mul(lead, others), SMALL)))
    with builder.if_else(builder.and_(few, small)) as (then, otherwise):
        with then:
            builder.call((dots if dotted else row)(builder.module, real), [matrix.data, lead, others, vector.data, made.data])
        with otherwise:
            _call(builder, "numba_xxgemv", [kind, _letter("t" if dotted else "n"), lead, others,
                                            one, matrix.data, lead, vector.data, zero, made.data])


def _letter(letter: str) -> ir.Constant:
    return ir.Constant(BYTE, ord(letter))


def _in_memory(builder, number: ir.Constant) -> ir.Value:
    place = cgutils.alloca_once(builder, number.type)
    builder.store(number, place)
    return place


def _call(builder, name: str, args: Sequence[ir.Value]) -> None:
    """Call Numba's routine of that name, which takes bytes, lengths and addresses of anything."""
    args = [builder.bitcast(x, cgutils.voidptr_t) if x.type.is_pointer else x for x in args]
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(STATUS, [x.type for x in args]), name)
    builder.call(function, args)
