"""Reductions: `sum`, and what is stated with it."""

from __future__ import annotations

import ast

import numpy as np

from ..ir.graph import Value
from ..ir.types import Scalar, Unknown
from .record import array_type, define, dims_of, dtype_of, numpy_function, rank, static
from .shape import numpy_call, spread


def _infer_sum(x: Value, *, axis, keepdims: bool):
    dtype = dtype_of(x.type)
    dtype = np.sum(np.empty(0, dtype)).dtype.name if dtype else None
    if axis is None and not keepdims:
        return Scalar(dtype or "float64")  # of rank-generic code: the dtype does not show in its text
    if isinstance(x.type, Unknown):
        return Unknown(None, dtype)
    axes = {a % rank(x) for a in (range(rank(x)) if axis is None else axis if isinstance(axis, tuple) else (axis,))}
    dims = [1 if k in axes else d for k, d in enumerate(dims_of(x.type)) if keepdims or k not in axes]
    return array_type(dtype, tuple(dims))


def _vjp_sum(bar, y, x, *, axis, keepdims):
    if axis is None:
        return (spread(bar, x),)
    raise NotImplementedError


def _sum_syntax(x, *, axis, keepdims):
    keywords = {}
    if axis is not None:
        keywords["axis"] = ast.Constant(axis)
    if keepdims:
        keywords["keepdims"] = ast.Constant(True)
    return numpy_call("sum", x, **keywords)


sum_record = define("sum", evaluate=lambda x, *, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims),
                    infer=_infer_sum, vjp=_vjp_sum, linear=(0,), syntax=_sum_syntax)


@numpy_function(np.sum, method="sum")
def sum_(x: Value, axis=None, keepdims=False) -> Value:
    return sum_record(x, axis=static(axis), keepdims=static(keepdims))
