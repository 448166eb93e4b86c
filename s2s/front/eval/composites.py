"""Inline the functions of s2s/library where a program calls what they implement.

library/declarations.py says which these are, and what is asked of their arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.types import Scalar, Type
from ...lazy_import import Named
from ...library import (  # noqa: F401
    lane_functions,
    memo,
    numba_functions,
    numpy_functions,
    questions,
    sequences,
)
from ...library.declarations import DECLARED, Declaration
from ...ops.core.cast import as_dtype
from ...ops.core.record import FUNCTIONS, dims_of, dtype_of, rank
from ..domain.frame import Frame
from ..values.lists import is_list
from .apply import apply, in_place
from .python_builtins import BUILTINS

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
    title = _title(declared, *given)
    variadic = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]

    def fitted(frame: Frame, node, name: str, x):
        if name in declared.arrays:
            x = (tuple(as_array(frame, node, each) for each in x) if name in variadic
                 else as_array(frame, node, x))
        if name in declared.ranks and rank(frame.value(as_array(frame, node, x))) is None:
            raise frame.refuse(f"{title} of an array of unknown rank", node,
                               "call the function once")
        return frame.static(x, f"{name}=", node) if name in declared.static else x

    def meaning(frame: Frame, node, *args, **keywords):
        bound = signature.bind(*given, *args, **keywords)
        for name, x in bound.arguments.items():
            bound.arguments[name] = fitted(frame, node, name, x)
        found = in_place(frame, declared.function, list(bound.args), bound.kwargs, node,
                         current().line, meaning)
        return (_with_dtypes(frame, node, declared.implemented[0], args, found)
                if declared.as_ufunc else found)

    first = [p.replace(kind=p.POSITIONAL_ONLY)
             for p in list(inspect.signature(meaning).parameters.values())[:2]]
    meaning.__signature__ = inspect.Signature(
        [*first, *list(signature.parameters.values())[len(given):]])
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


def _title(declared: Declaration, *given) -> str:
    """The name of the function that is implemented, for a person: np.linalg.svd, np.add.reduce."""
    first = next(iter(declared.implemented), None)
    if isinstance(first, str):
        return first.replace(":", ".").replace("numpy.", "np.").replace("numpy", "np")
    if first is None:
        return f"np.{given[0].__name__}.{declared.method}" if given else declared.method
    module = (getattr(first, "__module__", None) or "np").replace("numpy", "np")
    return f"{module}.{getattr(first, '__name__', declared.function.__name__)}"


def _function_named(name: str) -> Callable:
    return Named(*name.split(":")).function


# ------------------------------------------------------------------------------------- questions


def _may_be_empty(frame: Frame, node, x, axis=0) -> bool:
    dims, axis = dims_of(frame.value(x).type), frame.static(axis, "axis=", node)
    if axis is not None:
        dims = dims[axis:][:1] or (0,)
    return any(n == 0 if isinstance(n, int) else n.least == 0 for n in dims)


def _kind(frame: Frame, node, x) -> str:
    dtype = dtype_of(frame.value(as_array(frame, node, x)).type)
    return np.dtype(dtype).kind if dtype is not None else ""


def _is_known(frame: Frame, node, x) -> bool:
    return frame.is_static(x)


# ------------------------------------------------------------------------------------- the table


def _entries(declared: Declaration) -> Iterator[tuple[object, Callable]]:
    """What a function of the library implements, and its meaning."""
    for f in UFUNCS if declared.method else ():
        yield getattr(f, declared.method), meaning_of(declared, f)
    meaning = meaning_of(declared)
    for each in declared.implemented:
        yield Named(*each.split(":")) if isinstance(each, str) else each, meaning


BUILTINS.declared, BUILTINS.entries = DECLARED, _entries
# SciPy's are declared once it has been imported, since they import it themselves
BUILTINS.declaring["scipy"] = "s2s.library.scipy_functions"
BUILTINS.update({questions.may_be_empty: _may_be_empty, questions.kind_of: _kind,
                 questions.is_known: _is_known})
