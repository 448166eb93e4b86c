"""Discrete cosine and sine transforms of scipy.fft: dct, idct, dst, idst, types 1 to 4.

Two ops, `dct` and `dst`: the inverse of one type is another type, or the same, with the norm of the
other direction, as in SciPy.

Note [Cosine transforms transposed]
The matrices of type 4, and of dst type 1, are symmetric. Types 2 and 3 are each other's transpose
except for one input of type 3, the first of a cosine and the last of a sine transform, which has
weight 1 where all others have weight 2: the transpose of type 2 is type 3 with that input doubled,
and the transpose of type 3 is type 2 with that output halved. In dct type 1 the first and the last
input have weight 1. With norm="ortho" SciPy scales them, so there are no such exceptions.

Considered: Fourier transforms of four times the length, with their own derivatives: the results
would differ from SciPy's in the last bits, and take longer.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_shape
from ...ir.graph import Value
from ...ir.types import Array, Type, Unknown
from ...lazy_import import Named
from ..core.axis_numbers import normal_axes, static_axis
from ..core.batch_rules import over_one_axis
from ..core.chain_rule import like_operand
from ..core.define_elementwise import is_none
from ..core.record import Record, define, dtype_of, numpy_function, rank, static, value
from ..core.shape import extent_of, length, literal, shaped_like
from .axes import expand_dims
from .fft import (
    OTHER_WAY,
    checked_length,
    checked_norm,
    defaults_only,
    depends_transform,
    fitted_record,
    spelled,
)
from .reduce import as_array

INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def ends_doubled(n, first, last):
    """n times 1, with 2 for the first, the last or both."""
    y = np.ones(n, np.int8)
    if first:
        y[0] = 2
    if last:
        y[-1] = 2
    return y


ends_record = define(
    "ends_doubled",
    evaluate=lambda n, *, first, last: ends_doubled(n, first, last),
    infer=lambda n, *, first, last: Array("int8", (extent_of(n),)),
    helper=ends_doubled,
    partials=(None,),
    cheap=True,
    syntax=lambda n, *, first, last: ast.Call(ast.Name("ends_doubled", ast.Load()),
                                              [n, ast.Constant(first), ast.Constant(last)], []),
)


def _infer(x: Value, *lengths: Value, type: int, axis: int, norm) -> Type:
    if rank(x) == 0:
        raise TypeMismatchError(f"a cosine transform of {x.type}", current().line,
                                "give it an array")
    dtype = dtype_of(x.type) or "float64"  # before a call
    if dtype == "float16":
        raise UnsupportedError("a cosine transform of float16", current().line,
                               "convert it to np.float32")
    dtype = dtype if dtype in ("float32", "complex64", "complex128") else "float64"
    if rank(x) is None:
        return Unknown(fresh_shape() if lengths else x.type.shape, dtype)
    dims = list(x.type.dims)
    if lengths:
        dims[axis] = extent_of(lengths[0])
    return Array(dtype, tuple(dims))


def _syntax(name: str) -> Callable:
    def syntax(x: ast.expr, *lengths: ast.expr, type, axis, norm) -> ast.expr:
        by_name = {"axis": None if axis == -1 else literal(axis), "norm": literal(norm)}
        keywords = [ast.keyword(k, v) for k, v in by_name.items() if v is not None]
        return ast.Call(spelled("scipy", name),
                        [x, *([ast.Constant(type)] if lengths or type != 2 else []), *lengths],
                        keywords)

    return syntax


def _vjp(name: str) -> Callable:
    def vjp(bar, y, x, *lengths, type, axis, norm):
        def counted() -> Value:
            once = type == 1 or name == "dct", type == 1 or name == "dst"
            n = lengths[0] if lengths else length(x, axis=axis)
            after = -axis - 1 if axis < 0 else rank(x) - axis - 1
            return expand_dims(ends_record(n, first=once[0], last=once[1]),
                               tuple(range(1, after + 1)))

        is_even = norm == "ortho" or type == 4 or (name, type) == ("dst", 1)
        found = bar if is_even or type == 3 else bar * counted()
        found = TRANSFORMS[name](found, type=INVERSE[type], axis=axis, norm=norm)
        found = like_operand(found if is_even or type == 2 else found / counted(), x)
        if lengths:
            found = fitted_record(found, length(x, axis=axis), axis=axis)
        return shaped_like(found, x), *[None] * len(lengths)

    return vjp


def _transform(name: str) -> Record:
    function = Named("scipy.fft", name)
    return define(name,
                  evaluate=lambda x, *lengths, type, axis, norm: function(x, type, *lengths,
                                                                          axis=axis, norm=norm),
                  infer=_infer, vjp=_vjp(name), linear=(0,), syntax=_syntax(name),
                  batch=over_one_axis, depends=depends_transform, contiguous="all")


TRANSFORMS = {name: _transform(name) for name in ("dct", "dst")}


def _mean(name: str) -> None:
    """Register the meaning of scipy.fft.name."""
    record, is_inverse = TRANSFORMS[name.removeprefix("i")], name.startswith("i")

    def transform(x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None,
                  orthogonalize=None):
        defaults_only(overwrite_x=overwrite_x, workers=workers)
        if not is_none(orthogonalize):
            raise UnsupportedError("scipy.fft with orthogonalize=", current().line, "leave it out")
        x, type, axis, norm = (as_array(x), static(type, "type"), static_axis(axis),
                               checked_norm(norm))
        if type not in INVERSE:
            raise TypeMismatchError(f"scipy.fft.{name} of type {type}", current().line,
                                    "use a type from 1 to 4")
        if not isinstance(axis, int):
            raise TypeMismatchError(f"a cosine transform along axis={axis}", current().line,
                                    "name one axis")
        if rank(x):
            normal_axes(axis, rank(x))
        elif rank(x) is None and axis >= 0:
            raise UnsupportedError("a cosine transform along this axis of an array of unknown rank",
                                   current().line,
                                   "call the function once, or count the axis from the end")
        lengths = [] if is_none(n) else [checked_length(n)]
        return record(value(x), *lengths, type=INVERSE[type] if is_inverse else type, axis=axis,
                      norm=OTHER_WAY[norm] if is_inverse else norm)

    transform.__qualname__ = transform.__name__ = name
    numpy_function(Named("scipy.fft", name))(transform)


for _name in ("dct", "idct", "dst", "idst"):
    _mean(_name)
