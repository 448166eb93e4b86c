"""Complex numbers of their parts: `z.real = a` keeps the imaginary parts as they are, to the sign
of a zero, where `a + 1j * z.imag` would not.
"""

from __future__ import annotations

import numpy as np

from .cast import as_dtype
from .define_elementwise import builtin_syntax, elementwise
from .elementwise import complex_of
from .record import dtype_of


def complex_of_parts(a, b):
    kind = np.result_type(np.asarray(a).dtype, np.asarray(b).dtype, np.complex64)
    z = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)), kind)
    z.real, z.imag = a, b
    return z[()]


def _lower(op, a, b):
    kind = dtype_of(op.outputs[0].type)
    if kind != "complex64":
        return complex_of(a, b)
    return as_dtype(complex_of(as_dtype(a, "float64"), as_dtype(b, "float64")), kind)


of_parts = elementwise("complex_of_parts", 1, 1j, evaluate=complex_of_parts,
                       syntax=builtin_syntax("complex_of_parts"), helper=complex_of_parts,
                       lower=_lower)
