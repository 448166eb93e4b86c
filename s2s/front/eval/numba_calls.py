"""Numba's own names (prange, typed containers, jitclass ...) in a program that is read as Python.

A function under @njit is the function inside, a @jitclass the class inside (unwrap_callable.py).
prange is range: parallel loops are found anew (back/cuda/grid_stride.py).  numba.typed.List and
Dict are lists and dicts, whose types are inferred, too.
"""

from __future__ import annotations

from ...lazy_import import Named
from ..domain.frame import Frame
from .apply import apply
from .python_builtins import BUILTINS


def _prange(frame: Frame, node, *bounds):
    return apply(frame, range, list(bounds), {}, node)


def _typed_list(frame: Frame, node, iterable=()):
    return apply(frame, list, [iterable] if iterable != () else [], {}, node)


def _empty_list(frame: Frame, node, item_type, allocated=0):
    return apply(frame, list, [], {}, node)


def _typed_dict(frame: Frame, node):
    return apply(frame, dict, [], {}, node)


def _empty_dict(frame: Frame, node, key_type, value_type, n_keys=0):
    return apply(frame, dict, [], {}, node)


for _module, _name, _meaning in [("numba", "prange", _prange), ("numba.typed", "List", _typed_list),
                                 ("numba.typed", "List.empty_list", _empty_list),
                                 ("numba.typed", "Dict", _typed_dict),
                                 ("numba.typed", "Dict.empty", _empty_dict),]:
    BUILTINS[Named(_module, _name)] = _meaning
