"""The NaN trap (nan_trap.py) of compiled code: it raises at the first NaN or inf, without its
location.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload

from .nan_trap import first_bad


def trapped(x) -> None:
    """Raise FloatingPointError if `x`, a number or an array, holds a NaN or an inf; called by
    compiled code.
    """
    if first_bad(x) is not None:
        raise FloatingPointError


@overload(trapped)
def _compiled_trap(x):
    match x:
        case types.Float():
            def look(x):
                if not math.isfinite(x):
                    raise FloatingPointError
        case types.Complex():
            def look(x):
                if not (math.isfinite(x.real) and math.isfinite(x.imag)):
                    raise FloatingPointError
        case types.Array(dtype=types.Float() | types.Complex()):
            def look(x):
                for y in x.flat:
                    if not np.isfinite(y):
                        raise FloatingPointError
        case _:
            def look(x):
                pass
    return look
