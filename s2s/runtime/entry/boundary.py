"""The boundary that all forms of compiled code share: byte order of arguments, dtypes of results,
errors, and the interpreted form.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import NumbaError

from ...back.arrays.legalise import exceeds_word
from ...errors import S2SError
from ...ir.graph import Function
from ...ir.types import Scalar, Tuple, Type
from ..entry.print_replay import without


class CompileError(S2SError):
    """Numba's refusal of generated code: a bug in s2s, or an op without a native form."""


class InterpretedWarning(UserWarning):
    """Warning that a function that was to be compiled runs in Python."""


def native_byte_order(args: tuple) -> tuple:
    """`args` with byte-swapped arrays copied to native byte order, the only one that Numba
    supports.
    """
    if all(type(x) is not np.ndarray or x.dtype.isnative for x in args):
        return args
    return tuple(x.astype(x.dtype.newbyteorder("=")) if isinstance(x, np.ndarray) else x
                 for x in args)


def narrowing(function: Function) -> Callable | None:
    """A function that restores the dtypes of narrow numbers among the results; None where none is
    needed.

    Numba returns every number as Python's int, float or complex, even a float32.
    """
    types_of_results = [y.type for y in function.results]
    if not any(map(is_narrow, types_of_results)):
        return None
    if function.tupled:
        return lambda results: tuple(map(as_type, results, types_of_results))
    return lambda result: as_type(result, types_of_results[0])


def is_narrow(type: Type) -> bool:
    """Whether values of `type` hold numbers of a dtype that Python's own numbers lack."""
    match type:
        case Scalar(dtype):
            return dtype not in ("bool", "int64", "float64", "complex128")
        case Tuple(items):
            return any(map(is_narrow, items))
    return False


def as_type(x, type: Type):
    """`x`, with its numbers cast to the dtypes of `type`."""
    match type:
        case Scalar(dtype) if is_narrow(type):
            return np.dtype(dtype).type(x)
        case Tuple(items):
            return tuple(map(as_type, x, items))
    return x


def one_line_message(error: NumbaError, function: Function) -> CompileError:
    """Numba's error message, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(("Failed in", "-", "File"))),
                  lines[0] if lines else "")
    return CompileError(f"{function.name} cannot be compiled: {reason}", None,
                        "call it without jit, and report this program")


def interpreted(native, args: tuple, printed: int = 0):
    """Run the interpreted form on arguments for which compiled code raised; normally it raises,
    too.

    Lines already `printed` by compiled code are not printed again.  Note [Where an error came from]
    """
    with np.errstate(all="ignore"), without(printed):
        return native.in_python(*args)


def has_wide_integer(x) -> bool:
    """Whether the argument `x` is a Python integer that does not fit int64, or a list with one."""
    return any(map(has_wide_integer, x)) if type(x) is list else exceeds_word(x)
