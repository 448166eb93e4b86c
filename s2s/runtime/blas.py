"""Matrix products in compiled code, straight from BLAS.

Numba's own `a @ b` takes 0.4 s to compile for each kind of operands, four times what everything around it
takes, because it is made of Python functions that check and copy.  These call the same BLAS routines
(SciPy's, through the pointers that Numba holds) and leave transposing to BLAS's flags: 0.1 s.

BLAS counts in columns: a matrix in C order is, to BLAS, its own transpose.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import types
from numba.extending import overload

from .unshared import unshared_memory

KINDS = {types.float64: ord("d"), types.float32: ord("s")}
AS_IT_IS, TRANSPOSED = ord("n"), ord("t")


def blas_product(a, b):
    """a @ b."""
    return a @ b


def _gemv(dtype) -> types.ExternalFunction:
    pointer = types.CPointer(dtype)
    return types.ExternalFunction("numba_xxgemv", types.intc(
        types.char, types.char, types.intp, types.intp, pointer, pointer, types.intp, pointer, pointer, pointer))


def _gemm(dtype) -> types.ExternalFunction:
    pointer = types.CPointer(dtype)
    return types.ExternalFunction("numba_xxgemm", types.intc(
        types.char, types.char, types.char, types.intp, types.intp, types.intp, pointer, pointer, types.intp, pointer,
        types.intp, pointer, pointer, types.intp))


@overload(blas_product)
def _blas_product(a, b) -> Callable | None:
    if not isinstance(a, types.Array) or not isinstance(b, types.Array):
        return None
    if a.layout == "A":
        return lambda a, b: blas_product(np.ascontiguousarray(a), b)
    if b.layout == "A":
        return lambda a, b: blas_product(a, np.ascontiguousarray(b))
    simple = a.dtype == b.dtype and a.dtype in KINDS
    match a.ndim, b.ndim:
        case 2, 1 if simple:
            return _matrix_vector(a.dtype, a.layout == "C")
        case 1, 2 if simple:
            return _vector_matrix(b.dtype, b.layout == "C")
        case 2, 2 if simple:
            return _matrix_matrix(a.dtype, a.layout == "C", b.layout == "C")
    return lambda a, b: a @ b


def _matrix_vector(dtype, in_c_order: bool) -> Callable:
    gemv, kind, trans = _gemv(dtype), KINDS[dtype], TRANSPOSED if in_c_order else AS_IT_IS
    real = np.dtype(dtype.name)

    def product(a, b):
        n, m = a.shape
        if m != len(b):
            raise ValueError("matmul: the lengths of the operands do not match")
        if n == 0 or m == 0:
            return np.zeros(n, real)
        out, factors = unshared_memory(np.empty(n, real)), np.ones(2, real)
        factors[1] = 0
        rows, columns = (m, n) if in_c_order else (n, m)
        gemv(kind, trans, rows, columns, factors.ctypes, a.ctypes, rows, b.ctypes, factors[1:].ctypes, out.ctypes)
        return out

    return product


def _vector_matrix(dtype, in_c_order: bool) -> Callable:
    gemv, kind, trans = _gemv(dtype), KINDS[dtype], AS_IT_IS if in_c_order else TRANSPOSED
    real = np.dtype(dtype.name)

    def product(a, b):
        m, n = b.shape
        if m != len(a):
            raise ValueError("matmul: the lengths of the operands do not match")
        if n == 0 or m == 0:
            return np.zeros(n, real)
        out, factors = unshared_memory(np.empty(n, real)), np.ones(2, real)
        factors[1] = 0
        rows, columns = (n, m) if in_c_order else (m, n)
        gemv(kind, trans, rows, columns, factors.ctypes, b.ctypes, rows, a.ctypes, factors[1:].ctypes, out.ctypes)
        return out

    return product


def _matrix_matrix(dtype, a_in_c_order: bool, b_in_c_order: bool) -> Callable:
    gemm, kind = _gemm(dtype), KINDS[dtype]
    trans_a, trans_b = (AS_IT_IS if c else TRANSPOSED for c in (a_in_c_order, b_in_c_order))
    real = np.dtype(dtype.name)

    def product(a, b):
        n, k = a.shape
        inner, m = b.shape
        if k != inner:
            raise ValueError("matmul: the lengths of the operands do not match")
        if n == 0 or m == 0 or k == 0:
            return np.zeros((n, m), real)
        out, factors = unshared_memory(np.empty((n, m), real)), np.ones(2, real)
        factors[1] = 0
        lead_a, lead_b = k if a_in_c_order else n, m if b_in_c_order else k
        gemm(kind, trans_b, trans_a, m, n, k, factors.ctypes, b.ctypes, lead_b, a.ctypes, lead_a, factors[1:].ctypes,
             out.ctypes, m)
        return out

    return product
