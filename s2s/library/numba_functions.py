"""Numba's own names (prange, typed containers) as plain Python, which the front end inlines.

A function under @njit is the function inside, a @jitclass the class inside
(front/eval/unwrap_callable.py).  prange is range: parallel loops are found anew
(back/cuda/grid_stride.py).  numba.typed.List and Dict are lists and dicts, whose types are
inferred, too.
"""

from __future__ import annotations

from .declarations import implements


@implements("numba:prange")
def parallel_range(*bounds):
    """numba.prange."""
    return range(*bounds)


@implements("numba.typed:List")
def typed_list(iterable=()):
    """numba.typed.List."""
    return list(iterable)


@implements("numba.typed:List.empty_list")
def empty_list(item_type, allocated=0):
    """numba.typed.List.empty_list."""
    return []


@implements("numba.typed:Dict")
def typed_dict():
    """numba.typed.Dict."""
    return {}


@implements("numba.typed:Dict.empty")
def empty_dict(key_type, value_type, n_keys=0):
    """numba.typed.Dict.empty."""
    return {}
