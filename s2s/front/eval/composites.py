"""Inline the functions of s2s/library where a program calls what they implement.

library/declarations.py says which these are, and what is asked of their arguments.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice

import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.types import Scalar, Type
from ...lazy_import import Named
from ...library import numpy_functions  # noqa: F401  declares its functions
from ...library.declarations import DECLARED, Declaration
from ...ops.core.cast import as_dtype
from ...ops.core.record import FUNCTIONS, dtype_of
from ..domain.frame import Frame
from ..values.lists import is_list
from .apply import apply, in_place
from .python_builtins import BUILTINS

# the libraries that are read once a package is imported, since they need it themselves
LIBRARIES = {"scipy": "s2s.library.scipy_functions"}
UFUNCS = [
    f for f in FUNCTIONS
    if isinstance(f, np.ufunc) and f.nin == 2 and f.nout == 1 and f.signature is None
]


def as_array(frame: Frame, node, x):
    """`x`, or the array that NumPy converts a list to."""
    return (apply(frame, np.array, [x], {}, node)
            if isinstance(x, (tuple, list)) or is_list(frame, x)
            else x)


def meaning_of(declared: Declaration, *given) -> Callable:
    """The meaning of what a function of the library implements, with all its arguments; those
    `given` come first.
    """
    signature = inspect.signature(declared.function)
    variadic = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]

    def fitted(frame: Frame, node, name: str, x):
        if name in declared.arrays:
            x = (tuple(as_array(frame, node, each) for each in x) if name in variadic
                 else as_array(frame, node, x))
        return frame.static(x, f"{name}=", node) if name in declared.static else x

    def meaning(frame: Frame, node, *args, **keywords):
        bound = signature.bind(*given, *args, **keywords)
        for name, x in bound.arguments.items():
            bound.arguments[name] = fitted(frame, node, name, x)
        found = in_place(frame, declared.function, list(bound.args), bound.kwargs, node,
                         current().line, meaning)
        return (_with_dtypes(frame, node, declared.implemented[0], args, found)
                if declared.as_ufunc else found)

    own = inspect.signature(meaning).parameters
    parameters = list(signature.parameters.values())[len(given):]
    meaning.__signature__ = inspect.Signature([own["frame"], own["node"], *parameters])
    return meaning


def _with_dtypes(frame: Frame, node, ufunc: np.ufunc | str, args: tuple, found):
    """The results `found` in the dtypes that NumPy's function gives them: of half precision, of
    small integers, of truth values.
    """
    ufunc = _function_named(ufunc) if isinstance(ufunc, str) else ufunc
    results = found if isinstance(found, tuple) else (found,)
    kinds = [_kind_of(frame.value(as_array(frame, node, x)).type) for x in args]
    if None in kinds or len(args) != ufunc.nin:
        return found
    try:
        dtypes = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))[ufunc.nin:]
    except TypeError:
        raise TypeMismatchError(
            f"np.{ufunc.__name__} is not defined for {' and '.join(map(str, kinds))}",
            current().line, "convert the operands, with .astype for example") from None
    results = [as_dtype(frame.value(x), dtype) for x, dtype in zip(results, dtypes)]
    return tuple(results) if isinstance(found, tuple) else results[0]


def _kind_of(type: Type):
    """A Python number's type, or a dtype, as ufuncs take them; None if it is not known."""
    if dtype_of(type) is None:
        return None
    dtype = np.dtype(type.dtype)
    return (dtype.type(0).item().__class__ if isinstance(type, Scalar) and type.weak
            and dtype.kind != "b" else dtype)


def _function_named(name: str) -> Callable:
    return Named(*name.split(":")).function


# ------------------------------------------------------------------------------------- the table


class _Reader:
    """Read the declarations of the library, each of them once."""

    def __init__(self):
        self.count = 0  # of the declarations that have been read

    def __call__(self) -> Iterator[tuple[object, Callable]]:
        """What is implemented by functions declared since the last call, and its meanings."""
        for package in [each for each in LIBRARIES if each in sys.modules]:
            import_module(LIBRARIES.pop(package))
        new = list(islice(DECLARED, self.count, None))
        for declared in new:
            for f in UFUNCS if declared.method else ():
                yield getattr(f, declared.method), meaning_of(declared, f)
            meaning = meaning_of(declared)
            for each in declared.implemented:
                yield Named(*each.split(":")) if isinstance(each, str) else each, meaning
        self.count += len(new)


BUILTINS.more = _Reader()
