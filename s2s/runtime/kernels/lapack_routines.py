"""Addresses of SciPy's LAPACK and BLAS routines, for native code that refers to them by symbols.

An address is valid in this process only, so code refers to `s2s_lapack_dgetrf`, say, which
`provide` defines before linking, as in runtime/intrinsics/complex_math.py.

Considered: Numba's own wrappers of LAPACK, which lack getrs, trsm, trsv, and look up each routine
by name again in each process, with Python's lock.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import numpy as np
from llvmlite import binding
from numba import types
from numba.extending import get_cython_function_address

from ...ops.linalg.determinant import cofactors

PREFIX = "s2s_lapack"  # symbols: s2s_lapack_dgetrf
LETTERS = {types.float64: "d", types.float32: "s", types.complex128: "z", types.complex64: "c"}
BLAS = ("trsm", "trsv")
OF_SINGULAR = "cofactors"  # not a LAPACK routine


@functools.cache
def of_singular(letter: str):
    """Callback of native code for the cofactors of a singular matrix at an address; returns 1 once
    they are written.

    Any exception in it is reported as an error: ctypes would print it and return an arbitrary
    number.
    """
    dtype = next(np.dtype(str(t)) for t, each in LETTERS.items() if each == letter)

    def write(data: int, over_rows: int, over_columns: int, n: int, to: int) -> int:
        last = max(n - 1, 0)
        ends = over_rows * last, over_columns * last
        first = sum(min(end, 0) for end in ends)  # its start, for negative strides
        memory = (ctypes.c_char * (sum(map(abs, ends)) + dtype.itemsize)).from_address(data + first)
        a = np.ndarray((n, n), dtype, memory, -first, (over_rows, over_columns)).copy("C")
        try:
            y = np.ascontiguousarray(cofactors(dtype.type(0), a), dtype)
        except BaseException:
            return 0
        ctypes.memmove(to, y.ctypes.data, y.nbytes)
        return 1

    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *[ctypes.c_int64] * 3,
                            ctypes.c_void_p)(write)


@functools.cache
def address(routine: str) -> int:
    """The address in this process of a SciPy routine, or of a function beside them, by letter and
    name.
    """
    if routine[1:] == OF_SINGULAR:
        return ctypes.cast(of_singular(routine[0]), ctypes.c_void_p).value
    return get_cython_function_address(
        f"scipy.linalg.cython_{'blas' if routine[1:] in BLAS else 'lapack'}", routine)


def provide(symbols: Sequence[str]) -> None:
    """Define those of the symbols that are LAPACK routines."""
    for each in symbols:
        if each.startswith(PREFIX):
            binding.add_symbol(each, address(each[len(PREFIX) + 1:]))
