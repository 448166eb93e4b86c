"""Assign arrays to slices, `y[k] = x`, with an error without a message: formatting one takes Numba
seconds to compile.

Numba's error names the shapes that do not match, and so compiles the conversion of integers to
text, joining of strings, and the rest of Python's strings: the first `y[k] = x` of a process took 3
s on a quiet machine, whatever the rest of the program. Nobody reads the message: the interpreted
form of the function raises it again (runtime/call/native_function.py, Note [Where an error came
from]).

Considered: loops in place of each such assignment, for each rank.  Helpers of ops that have no loop
form (ops/program/list_ops.py, ops/linalg/determinant.py) read better as they are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from numba import types
from numba.extending import overload

from ..numba_internals import arrayobj

NUMBAS = "raise_with_shape_context"  # its name in arrayobj


def shapes_differ(source, target):
    """Raise ValueError; `source` and `target` are shapes."""
    raise ValueError("could not broadcast input array into shape: their lengths differ")


@overload(shapes_differ)
def _shapes_differ(source, target):
    def raising(source, target):
        raise ValueError("could not broadcast input array into shape: their lengths differ")
    return raising


def is_assignment(function: object, kinds: tuple[types.Type, ...]) -> bool:
    """Whether an array is assigned to a slice of an array."""
    return (function is operator.setitem and isinstance(kinds[0], types.Array)
            and isinstance(kinds[2], types.Array))


def without_text(emit: Callable) -> Callable:
    """Emit `emit` with an error without a message; Numba compiles one function at a time, so no
    other is affected.
    """
    def emitting(*args, **keywords):
        theirs = getattr(arrayobj, NUMBAS, None)
        if theirs is None:  # of another version
            return emit(*args, **keywords)
        setattr(arrayobj, NUMBAS, shapes_differ)
        try:
            return emit(*args, **keywords)
        finally:
            setattr(arrayobj, NUMBAS, theirs)
    return emitting
