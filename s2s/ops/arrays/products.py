"""Products of vectors, matrices and stacks of matrices.

    matmul(a, b)     of vectors, matrices, and stacks of matrices
    dot(a, b)        the same, or a product where one of them is a number

Where ranks are known, the cotangents of a product are products again, as a person would write them:
`y_bar @ X`, `X.T @ y_bar`, `np.outer(y_bar, w)`.  Where they are not, two ops stand for them until
they are: `dot_left(y_bar, a, b)` and `dot_right(y_bar, a, b)`, the cotangents of a and of b, which
are bilinear and so are each other's derivatives.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_shape, meet
from ...ir.graph import OPERATORS, Value
from ...ir.types import Array, Scalar, Type, Unknown, may_be_one
from ..core.axis_numbers import normal_axes
from ..core.batch_rules import align_all, sum_of_lanes
from ..core.cast import convert
from ..core.chain_rule import like_operand
from ..core.dependence_rules import anything, follows, spread_as
from ..core.elementwise import conjugate
from ..core.record import (
    array_type,
    broadcast_dims,
    common_dtype,
    define,
    dims_of,
    dtype_of,
    numpy_function,
    promote,
    rank,
    static,
    value,
)
from ..core.shape import length, matched, numpy_call, shaped_like, sum_to
from ..core.signs import matrix_product
from . import stablehlo_arrays
from .axes import expand_dims, moveaxis, swapaxes, transpose_record
from .reduce import sum_record
from .reshape import ravel, reshape


def product_dtype(a: Value, b: Value) -> str | None:
    """The dtype of a product; None if an operand's is unknown."""
    return common_dtype(dtype_of(a.type), dtype_of(b.type))


def product_with_number(a: Value, b: Value) -> Value:
    """`a * b`, of which one is a number; unlike operators, the functions of matrices take Python's
    numbers for NumPy's.
    """
    wanted = product_dtype(a, b)
    if wanted is not None and promote(a.type, b.type)[0] != wanted:
        a, b = (convert(x, dtype=x.type.dtype) if isinstance(x.type, Scalar) else x
                for x in (a, b))
    return a * b


def check_inner(n, m, what: str) -> None:
    """Check that two contracted lengths agree, if they are known."""
    if isinstance(n, int) and isinstance(m, int) and n != m:
        raise TypeMismatchError(
            f"{what} of axes of lengths {n} and {m}",
            current().line,
            "make the last axis of the first as long as the second-last of the second",
        )
    meet(n, m)


def _infer_matmul(a: Value, b: Value) -> Type:
    dtype = product_dtype(a, b)
    for x in (a, b):
        if rank(x) == 0:
            raise TypeMismatchError(
                f"a matrix product with a number, {x.type}", current().line, "use *"
            )
    if rank(a) is None or rank(b) is None:
        return (
            Scalar(dtype or "float64")
            if (rank(a), rank(b)) == (1, 1)
            else Unknown(fresh_shape(), dtype)
        )
    m, n = dims_of(a.type), dims_of(b.type)
    check_inner(m[-1], n[-2] if len(n) > 1 else n[0], "a product")
    stacks = broadcast_dims(m[:-2], n[:-2])
    return array_type(dtype, stacks + m[-2:-1] + (n[-1:] if len(n) > 1 else ()))


def _fold_matmul(a: Value, b: Value):
    """Fold `y.T @ A.T` for a vector y, as reverse mode makes it, into `A @ y`."""
    if rank(a) == 1 and rank(b) == 2 and _is_transpose(b):
        return matmul(b.op.inputs[0], a)
    if rank(a) == 2 and rank(b) == 1 and _is_transpose(a):
        return matmul(b, a.op.inputs[0])
    return None


def _is_transpose(x: Value) -> bool:
    return x.op is not None and x.op.name == "transpose"


def matrix_transposed(x: Value) -> Value:
    """The transpose of a matrix, or of each matrix of a stack."""
    return transpose_record(x, axes=None) if rank(x) == 2 else swapaxes(x, -1, -2)


def _matched_factor(x: Value, y: Value, axis: int, other: int) -> Value:
    """The other factor of a cotangent, with its length checked against the operand's if both may be
    1.

    For two matrices, one of them with a length known not to be 1, the cotangent has that length:
    NumPy raises where it is accumulated.  A check would keep a network's gradient, of `h.reshape(n,
    -1) @ V`, from being strip-mined.
    """
    are_matrices = rank(x) > 1 and rank(y) > 1
    return (x
            if are_matrices
            and not (may_be_one(x.type.dims[axis]) and may_be_one(y.type.dims[other]))
            else matched(x, y, axis, other))


def _matmul_left(bar: Value, a: Value, b: Value) -> Value:
    """The cotangent of a in a @ b, for known ranks."""
    b = _matched_factor(b, a, 0 if rank(b) == 1 else -2, -1)
    match rank(a), rank(b):
        case 1, 1:
            return bar * b
        case 2, 2:
            return shaped_like(matmul(bar, matrix_transposed(b)), a)
        case 2, 1:
            return outer_record(bar, b)
        case 1, 2:
            return matmul(b, bar)
        case _, 1:
            return sum_to(expand_dims(bar, -1) * b, a)
        case 1, _:
            return sum_to(sum_record(b * expand_dims(bar, -2), axis=-1, keepdims=False), a)
    return sum_to(matmul(bar, matrix_transposed(b)), a)


def _matmul_right(bar: Value, a: Value, b: Value) -> Value:
    """The cotangent of b in a @ b, for known ranks."""
    a = _matched_factor(a, b, -1, 0 if rank(b) == 1 else -2)
    match rank(a), rank(b):
        case 1, 1:
            return bar * a
        case 2, 1:
            return matmul(bar, a)
        case 1, 2:
            return outer_record(a, bar)
        case 2, 2:
            return shaped_like(matmul(matrix_transposed(a), bar), b)
        case _, 1:
            return sum_to(expand_dims(bar, -1) * a, b)
        case 1, _:
            return sum_to(expand_dims(a, -1) * expand_dims(bar, -2), b)
        case _, 2:
            return matmul(transpose_record(_rows(a), axes=None), _rows(bar))
    return sum_to(matmul(matrix_transposed(a), bar), b)


def _rows(x: Value) -> Value:
    """The rows of a stack of matrices, as one matrix."""
    if rank(x) == 2:
        return x
    *above, columns = (length(x, axis=k) for k in range(rank(x)))
    return reshape(x, *_together(above), columns)


def _vjp_product(bar, y, a, b):
    return like_operand(shaped_like(dot_left(bar, a, b), a), a), like_operand(
        shaped_like(dot_right(bar, a, b), b), b
    )


def _batch_matmul(flags, a: Value, b: Value):
    """Many products of one matrix with a vector are one product of two matrices."""
    # sums of products, which would broadcast an axis of length 1
    if all(flags) and 1 in (rank(a) - 1, rank(b) - 1):
        a = matched(a, b, -1, -1 if rank(b) == 2 else -2)
    match rank(a) - flags[0], rank(b) - flags[1]:
        case 1, 1:
            return (sum_of_lanes(a * b, (1,), False) if all(flags) else matmul(a, b) if flags[0]
                    else matmul(b, a))
        case 2, 1 if flags == (False, True):
            return matmul(b, transpose_record(a, axes=None))
        case 2, 1 if all(flags):
            return sum_of_lanes(a * expand_dims(b, 1), (2,), False)
        case 1, 2 if flags == (False, True):
            return matmul(a, b)
        case 1, 2 if all(flags):
            return sum_of_lanes(expand_dims(a, 2) * b, (1,), False)
        case 1, own:
            return matmul(a, b) if not flags[0] or own == 2 else None  # of vectors and stacks
        case own, 1:
            return matmul(a, b) if not flags[1] else None
    return matmul(*align_all(flags, (a, b)))


@follows(0, 1)
def _depends_product(unions, y, deps, a, b):
    """Rule: a row of the first and a column of the second."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return unions.union(*deps)
    left, right = spread_as(deps[0], a), spread_as(deps[1], b)
    left = np.asarray(unions.along(left, -1))
    right = np.asarray(unions.along(right, max(b.ndim - 2, 0)))
    if b.ndim > 1:
        left = left[..., None]
    if a.ndim > 1 and b.ndim > 1:
        right = right[..., None, :]
    return unions.union(left, right) if np.ndim(y) else unions.union(int(left), int(right))


matmul = define(
    "matmul",
    evaluate=lambda a, b: a @ b,
    infer=_infer_matmul,
    fold=_fold_matmul,
    vjp=_vjp_product,
    python="a @ b",
    syntax=lambda a, b: ast.BinOp(a, ast.MatMult(), b),
    depends=_depends_product, batch=_batch_matmul, multilinear=(0, 1), native="matrix",
    contiguous="operands", warns="overflow", least=matrix_product,
    stablehlo=stablehlo_arrays.product,
)
OPERATORS["matmul"] = matmul
numpy_function(np.matmul)(matmul)


def _fold_dot(a: Value, b: Value):
    if rank(a) == 0 or rank(b) == 0:
        return a * b
    if rank(a) is not None and rank(b) is not None:
        return matmul(a, b) if rank(b) <= 2 else None
    return None


def _infer_dot(a: Value, b: Value) -> Type:
    if rank(a) is None or rank(b) is None:
        return Unknown(fresh_shape(), product_dtype(a, b))
    (*rows, n), (*stacks, m, columns) = dims_of(a.type), dims_of(b.type)
    check_inner(n, m, "dot")
    return Array(product_dtype(a, b), (*rows, *stacks, columns))


def _vjp_dot(bar, y, a, b):
    """y[i, j, k, m] = sum over n of a[i, j, n] * b[k, n, m]."""
    if rank(a) is None or rank(b) is None:
        return _vjp_product(bar, y, a, b)
    rows = rank(a) - 1
    right = tuple(range(rows, rank(y)))
    a_bar = tensordot(bar, moveaxis(b, -2, -1), axes=(right, tuple(range(rank(b) - 1))))
    b_bar = tensordot(a, bar, axes=(tuple(range(rows)), tuple(range(rows))))
    return (like_operand(shaped_like(a_bar, a), a),
            like_operand(shaped_like(moveaxis(b_bar, 0, -2), b), b))


dot_record = define(
    "dot",  # for unknown ranks, or a stack on the right
    evaluate=np.dot,
    infer=_infer_dot,
    fold=_fold_dot,
    vjp=_vjp_dot,
    syntax=lambda a, b: numpy_call("dot", a, b),
    depends=_depends_product, multilinear=(0, 1), warns="overflow",
)


@numpy_function(np.dot, method="dot")
def dot(a, b, out=None) -> Value:
    """np.dot."""
    a, b = value(a), value(b)
    return product_with_number(a, b) if 0 in (rank(a), rank(b)) else dot_record(a, b)


def product_left(y_bar, a, b):
    """The cotangent of a in y = a @ b, or in y = a * b if one of them is a number."""
    a, b, y_bar = np.asarray(a), np.asarray(b), np.asarray(y_bar)
    if b.ndim == 0 or a.ndim == 0:
        return np.sum(y_bar * b) if a.ndim == 0 else y_bar * b
    left, right = np.atleast_2d(a), b if b.ndim > 1 else b[:, None]
    a_bar = y_bar.reshape(np.matmul(left, right).shape) @ np.swapaxes(right, -1, -2)
    extra = a_bar.ndim - left.ndim
    axes = tuple(k for k in range(a_bar.ndim - 2) if k < extra or left.shape[k - extra] == 1)
    return np.sum(a_bar, axis=axes, keepdims=True).reshape(a.shape)


def product_right(y_bar, a, b):
    """The cotangent of b in y = a @ b, or in y = a * b if one of them is a number."""
    a, b, y_bar = np.asarray(a), np.asarray(b), np.asarray(y_bar)
    if b.ndim == 0 or a.ndim == 0:
        return np.sum(y_bar * a) if b.ndim == 0 else y_bar * a
    left, right = np.atleast_2d(a), b if b.ndim > 1 else b[:, None]
    b_bar = np.swapaxes(left, -1, -2) @ y_bar.reshape(np.matmul(left, right).shape)
    extra = b_bar.ndim - right.ndim
    axes = tuple(k for k in range(b_bar.ndim - 2) if k < extra or right.shape[k - extra] == 1)
    return np.sum(b_bar, axis=axes, keepdims=True).reshape(b.shape)


def _like(k: int) -> Callable:
    def infer(bar: Value, a: Value, b: Value) -> Type:
        like = (a, b)[k].type
        dtype = product_dtype(bar, (b, a)[k])
        match like:
            case Unknown(shape):
                return Unknown(shape, dtype)
        return array_type(dtype or "float64", dims_of(like))

    return infer


def _when_known(rule: Callable) -> Callable:
    """The cotangent as a product, once ranks are known."""

    def fold(bar: Value, a: Value, b: Value):
        if rank(a) is None or rank(b) is None:
            return None
        if rank(a) == 0 or rank(b) == 0:
            return sum_to(
                bar * (b if rule is _matmul_left else a), a if rule is _matmul_left else b
            )
        return rule(bar, a, b)

    return fold


def _side(name: str, helper: Callable, k: int, rule: Callable, multilinear: tuple[int, int]):
    return define(
        name,
        evaluate=helper,
        infer=_like(k),
        fold=_when_known(rule),
        helper=helper,
        syntax=lambda bar, a, b: ast.Call(ast.Name(helper.__name__, ast.Load()), [bar, a, b], []),
        multilinear=multilinear, depends=anything, warns="overflow",
    )


dot_left = _side("dot_left", product_left, 0, _matmul_left, (0, 2))
dot_right = _side("dot_right", product_right, 1, _matmul_right, (0, 1))
dot_left.vjp = lambda bar, y, y_bar, a, b: (dot_record(bar, b), None, dot_right(y_bar, bar, b))
dot_right.vjp = lambda bar, y, y_bar, a, b: (dot_record(a, bar), dot_left(y_bar, a, bar), None)


def _infer_outer(a: Value, b: Value) -> Type:
    return Array(product_dtype(a, b), (dims_of(a.type)[0], dims_of(b.type)[0]))


def _batch_outer(flags, a: Value, b: Value):
    a = expand_dims(a, rank(a))
    return a * (expand_dims(b, 1) if flags[1] else b)


@follows(0, 1)
def _depends_outer(unions, y, deps, a, b):
    left, right = (spread_as(d, x) for d, x in zip(deps, (a, b)))
    return unions.union(np.ravel(left)[:, None], np.ravel(right)[None, :])


outer_record = define(
    "outer",  # of vectors
    evaluate=np.outer,
    infer=_infer_outer,
    vjp=lambda bar, y, a, b: (
        like_operand(shaped_like(matmul(bar, b), a), a),
        like_operand(shaped_like(matmul(a, bar), b), b),
    ),
    syntax=lambda a, b: numpy_call("outer", a, b),
    cheap=True,
    depends=_depends_outer, batch=_batch_outer, multilinear=(0, 1), warns="overflow",
    lower=lambda op, a, b: expand_dims(a, 1) * b,
    stablehlo=stablehlo_arrays.outer_product,
)


@numpy_function(np.outer)
def outer(a, b, out=None) -> Value:
    """np.outer: arrays are flattened."""
    return outer_record(_as_vector(value(a)), _as_vector(value(b)))


def _as_vector(x: Value) -> Value:
    return expand_dims(x, 0) if rank(x) == 0 else ravel(x)


inner_record = define(
    "inner",  # for unknown ranks; the second is a vector or a matrix
    evaluate=np.inner,
    infer=lambda a, b: Unknown(fresh_shape(), product_dtype(a, b)),
    fold=lambda a, b: (
        None
        if rank(a) is None or rank(b) is None
        else dot_record(a, transpose_record(b, axes=None))
    ),
    vjp=lambda bar, y, a, b: (
        dot_left(bar, a, transpose_record(b, axes=None)),
        transpose_record(dot_right(bar, a, transpose_record(b, axes=None)), axes=None),
    ),
    syntax=lambda a, b: numpy_call("inner", a, b),
    depends=anything, multilinear=(0, 1), warns="overflow",
)


@numpy_function(np.inner)
def inner(a, b) -> Value:
    """np.inner of vectors and matrices."""
    a, b = value(a), value(b)
    if rank(a) == 0 or rank(b) == 0:
        return product_with_number(a, b)
    if (rank(b) or 0) > 2:
        raise UnsupportedError(
            f"np.inner with {b.type}", current().line, "use np.tensordot(a, b, (-1, -1)) or @"
        )
    return inner_record(a, b)


@numpy_function(np.vdot)
def vdot(a, b) -> Value:
    """np.vdot: the first argument is conjugated, both are flattened."""
    a, b = value(a), value(b)
    first = conjugate(a) if (dtype_of(a.type) or "").startswith("complex") else a
    if rank(a) == 0 and rank(b) == 0:
        return product_with_number(first, b)
    return matmul(ravel(first), ravel(b))


@numpy_function(np.tensordot)
def tensordot(a, b, axes=2) -> Value:
    """np.tensordot: transposes that group the axes, then one matrix product."""
    a, b, axes = value(a), value(b), static(axes, "axes")
    if rank(a) is None or rank(b) is None:
        raise UnsupportedError(
            "np.tensordot of arrays of unknown rank",
            current().line,
            "call the function once, or use @",
        )
    if isinstance(axes, int):
        left, right = tuple(range(rank(a) - axes, rank(a))), tuple(range(axes))
    else:
        left, right = (
            normal_axes(tuple(x) if isinstance(x, (tuple, list)) else x, rank(y))
            for x, y in zip(axes, (a, b))
        )
    if (len(left) != len(right) or any(not 0 <= p < rank(a) for p in left)
        or any(not 0 <= q < rank(b) for q in right)):
        raise TypeMismatchError(
            f"np.tensordot along {len(left)} axes of arrays of {rank(a)} and {rank(b)}",
            current().line, "name axes that both have")
    for p, q in zip(left, right):
        check_inner(a.type.dims[p], b.type.dims[q], "np.tensordot")
        a = matched(a, b, p, q) if len(left) > 1 else a
    kept = (
        [k for k in range(rank(a)) if k not in left],
        [k for k in range(rank(b)) if k not in right],
    )
    first = transpose_record(a, axes=(*kept[0], *left))
    second = transpose_record(b, axes=(*right, *kept[1]))
    if len(left) == 1 and rank(b) <= 2:
        return matmul(first, second)
    summed = [length(a, axis=k) for k in left]
    rows, columns = [length(a, axis=k) for k in kept[0]], [length(b, axis=k) for k in kept[1]]
    between = _together(summed) or [value(1)]
    product = matmul(
        reshape(first, *_together(rows), *between), reshape(second, *between, *_together(columns))
    )
    return reshape(product, *rows, *columns)


def _together(lengths: list[Value]) -> list[Value]:
    """Merge axes into one, if there are any."""
    count = lengths[0] if lengths else None
    for n in lengths[1:]:
        count = count * n
    return [] if count is None else [count]
