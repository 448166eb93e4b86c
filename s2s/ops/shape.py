"""Shapes: asking for them, changing them, spreading over them and summing back.

`spread(s, x)` is a number or array spread over the shape of x; `sum_to(x_bar, x)` is its transpose, what
un-broadcasts a cotangent.  Both vanish where the types prove the shapes equal.
"""

from __future__ import annotations

import ast

import numpy as np

from ..errors import TypeMismatchError
from ..ir.builder import current, emit
from ..ir.graph import Value
from ..ir.types import INT, UNKNOWN, Array, Scalar, Tape, Tuple, Type, Unknown, is_inexact
from .control import item, tape_new
from .record import array_type, define, dims_of, dtype_of, numpy_function, same_shape, static, value


def numpy_call(name: str, *args: ast.expr, **keywords: ast.expr) -> ast.expr:
    """The expression np.name(*args, **keywords)."""
    function = ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load())
    return ast.Call(function, list(args), [ast.keyword(k, v) for k, v in keywords.items()])


def float_dtype(type: Type) -> str:
    """The dtype of a cotangent of a value of this type: inexact even where the value is an integer."""
    dtype = dtype_of(type)
    return dtype if dtype is not None and is_inexact(dtype) else "float64"


# ------------------------------------------------------------------------------------- asking for shapes


def _fold_length(x: Value, *, axis: int):
    match x.type:
        case Tuple(items):
            return value(len(items))
        case Array(_, dims):
            return value(dims[axis]) if isinstance(dims[axis], int) else None
    return None


length = define(
    "length",  # of one axis
    evaluate=lambda x, *, axis: np.shape(x)[axis],
    infer=lambda x, *, axis: INT,
    fold=_fold_length,
    syntax=lambda x, *, axis: ast.Call(ast.Name("len", ast.Load()), [x], []) if axis == 0 else
    ast.Subscript(ast.Attribute(x, "shape", ast.Load()), ast.Constant(axis), ast.Load()),
    cheap=True,
)


def _fold_shape(x: Value):
    match x.type:
        case Scalar():
            return value(())
        case Array(_, dims):
            return value(tuple(length(x, axis=k) for k in range(len(dims))))
    return None


shape_of = define(
    "shape", evaluate=np.shape, infer=lambda x: UNKNOWN, fold=_fold_shape, cheap=True,
    syntax=lambda x: numpy_call("shape", x),
)


@numpy_function(np.shape, attribute="shape")
def shape(x: Value) -> Value:
    return shape_of(x)


@numpy_function(len)
def len_(x: Value) -> Value:
    return length(x, axis=0)


size_of = define(
    "size", evaluate=np.size, infer=lambda x: INT, cheap=True,
    fold=lambda x: value(1) if isinstance(x.type, Scalar) else None,
    syntax=lambda x: numpy_call("size", x),
)


@numpy_function(np.size, attribute="size")
def size(x: Value, axis=None) -> Value:
    return size_of(x) if static(axis) is None else length(x, axis=static(axis))


# ------------------------------------------------------------------------------- spreading and summing back


def _infer_spread(s: Value, x: Value) -> Type:
    match x.type:
        case Array(_, dims):
            return Array(dtype_of(s.type) or "float64", dims)
        case Unknown(shape):
            return Unknown(shape, dtype_of(s.type))
    return s.type


spread = define(
    "spread",  # s, with the shape of x
    evaluate=lambda s, x: np.full(np.shape(x), s),
    infer=_infer_spread,
    fold=lambda s, x: s if same_shape(s.type, x.type) else None,
    vjp=lambda bar, y, s, x: (sum_to(bar, s), None),
    linear=(0,),
    syntax=lambda s, x: numpy_call("full", numpy_call("shape", x), s),
)


def sum_to_shape(x_bar, shape):
    """x_bar summed over the axes along which an operand of this shape was broadcast."""
    x_bar = np.asarray(x_bar)
    axes = tuple(range(x_bar.ndim - len(shape)))
    axes += tuple(k + len(axes) for k, n in enumerate(shape) if n == 1 and x_bar.shape[k + len(axes)] != 1)
    return np.sum(x_bar, axis=axes).reshape(shape) if axes else x_bar


def _fold_sum_to(x_bar: Value, x: Value):
    if same_shape(x_bar.type, x.type):
        return x_bar
    if isinstance(x.type, Scalar) and isinstance(x_bar.type, Scalar):
        return x_bar
    return None


def _infer_sum_to(x_bar: Value, x: Value) -> Type:
    match x.type:
        case Array(_, dims):
            return Array(dtype_of(x_bar.type) or "float64", dims)
        case Unknown(shape):
            return Unknown(shape, dtype_of(x_bar.type))
        case Scalar():
            return Scalar(dtype_of(x_bar.type) or "float64")
    raise TypeMismatchError(f"{x.type} has no shape", current().line)


sum_to = define(
    "sum_to",
    evaluate=lambda x_bar, x: sum_to_shape(x_bar, np.shape(x)),
    infer=_infer_sum_to,
    fold=_fold_sum_to,
    vjp=lambda bar, y, x_bar, x: (spread(bar, x_bar), None),
    linear=(0,),
    helper=sum_to_shape,
    syntax=lambda x_bar, x: ast.Call(ast.Name("sum_to_shape", ast.Load()), [x_bar, numpy_call("shape", x)], []),
)


# ------------------------------------------------------------------------------------------------ zeros


def zeros_of(x: Value) -> Value:
    """Zeros for the cotangent or tangent of `x`: its shape, an inexact dtype."""
    match x.type:
        case Scalar():
            return value(0.0)
        case Tuple(items):
            return value(tuple(zeros_of(item(x, index=k)) for k in range(len(items))))
        case Tape():  # a tape is read to its end, so its cotangent starts empty
            return emit(tape_new)
    return zeros_like(x, dtype=float_dtype(x.type))


zeros_like = define(
    "zeros_like",
    evaluate=lambda x, *, dtype: np.zeros(np.shape(x), dtype),
    infer=lambda x, *, dtype: Unknown(x.type.shape, dtype) if isinstance(x.type, Unknown)
    else array_type(dtype, dims_of(x.type)),
    partials=(None,),
    syntax=lambda x, *, dtype: numpy_call("zeros", numpy_call("shape", x)) if dtype == "float64"
    else numpy_call("zeros", numpy_call("shape", x), ast.Attribute(ast.Name("np", ast.Load()), dtype, ast.Load())),
)

