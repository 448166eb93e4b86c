"""Linear algebra of one matrix in native code: direct calls of LAPACK and BLAS.

    lu, p = lapack_factors(a)               # for solve(a, b), solve(a.T, c), inv(a), det(a), ...
    x = lapack_solution(lu, p, b)           # np.linalg.solve(a, b)
    l = lapack_cholesky(a)                  # np.linalg.cholesky(a)
    x = lapack_solution_of_lower(l, b)      # np.linalg.solve(l, b), for a triangular l

Numba's np.linalg.solve takes 4 to 6 s to compile for each kind of operands, and its inv, det and
cholesky a third of a second to one: they are Python functions that check, copy and call the same
routines. It also leaks its allocations if a matrix is singular. These take some 20 ms, and can
share a factorisation (share_factorisations.py).

`lu` and `p` are the results of getrf for the matrix itself, column-major, as in NumPy, so that the
same matrices are singular in both: a row-major matrix is transposed in the copy (row_copy.py).

Here are the functions in Python, their types, and what each emits, in terms of lapack_code.py; the
routines are SciPy's, as Numba's are (lapack_routines.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from ...lazy_import import later
from ...ops.linalg.determinant import cofactors
from ...ops.linalg.solve import is_indefinite
from ..intrinsics.noalias_alloc import allocated
from ..numba_internals import cgutils, impl_ret_new_ref
from .lapack_code import INT, WORD, Code, real_of
from .lapack_routines import LETTERS

scipy_linalg = later("scipy.linalg")


# ---------------------------------------------------------------------------------------- in Python


def lapack_factors(a):
    """The LU factors of a square matrix, and its row interchanges (getrf)."""
    return scipy_linalg.lu_factor(a)


def lapack_solution(lu, p, b):
    """np.linalg.solve(a, b), from the factors of `a`."""
    return scipy_linalg.lu_solve((lu, p), b)


def lapack_solution_of_transposed(lu, p, b):
    """np.linalg.solve(a.T, b), from the factors of `a`."""
    return scipy_linalg.lu_solve((lu, p), b, trans=1)


def lapack_inverse(lu, p):
    """np.linalg.inv(a), from the factors of `a`."""
    return scipy_linalg.lu_solve((lu, p), np.eye(len(lu)))


def lapack_sign(lu, p):
    """The sign of the determinant: for a complex one, a number of absolute value 1."""
    return np.prod(np.sign(np.diag(lu))) * (-1.0) ** np.sum(p != np.arange(len(p)))


def lapack_log(lu, p):
    """The logarithm of the determinant's absolute value."""
    return np.sum(np.log(np.abs(np.diag(lu))))


def lapack_determinant(lu, p):
    """The determinant, computed from sign and logarithm as in NumPy."""
    return lapack_sign(lu, p) * np.exp(lapack_log(lu, p))


def lapack_inverse_or_nan(lu, p):
    """np.linalg.inv(a), from the factors of `a`; NaN if it is singular."""
    return np.full_like(lu, np.nan) if lapack_is_singular(lu, p) else lapack_inverse(lu, p)


def lapack_cofactors(det, lu, p, a):
    """cofactors(det, a), from the factors of `a` (ops/linalg/determinant.py)."""
    return cofactors(det, a)


def lapack_is_singular(lu, p):
    """Whether np.linalg.solve and inv raise."""
    return np.any(np.diag(lu) == 0)


def lapack_is_indefinite(a):
    """Whether np.linalg.cholesky raises."""
    return is_indefinite(a)


def lapack_cholesky(a):
    """np.linalg.cholesky(a)."""
    return np.linalg.cholesky(a)


def lapack_solution_of_lower(a, b):
    """np.linalg.solve(a, b) of a lower triangular matrix."""
    return scipy_linalg.solve_triangular(a, b, lower=True)


def lapack_solution_of_upper(a, b):
    """np.linalg.solve(a, b) of an upper triangular matrix."""
    return scipy_linalg.solve_triangular(a, b)


# -------------------------------------------------------------------------------------------- types


def is_matrix(a) -> bool:
    return isinstance(a, types.Array) and a.ndim == 2 and a.dtype in LETTERS


def _in_rows(b: types.Array) -> types.Array:
    return types.Array(b.dtype, b.ndim, "C")


@type_callable(lapack_factors)
def _type_factor(context):
    return lambda a: (types.Tuple((_in_rows(a), types.Array(types.int32, 1, "C"))) if is_matrix(a)
                      else None)


for _function in (lapack_solution, lapack_solution_of_transposed):
    type_callable(_function)(lambda context: lambda lu, p, b: _in_rows(b)
                             if is_matrix(lu) and b.dtype == lu.dtype and b.ndim in (1, 2)
                             else None)
for _function in (lapack_solution_of_lower, lapack_solution_of_upper):
    type_callable(_function)(lambda context: lambda a, b: _in_rows(b)
                             if is_matrix(a) and b.dtype == a.dtype and b.ndim in (1, 2) else None)
for _function in (lapack_sign, lapack_determinant):
    type_callable(_function)(lambda context: lambda lu, p: lu.dtype if is_matrix(lu) else None)
type_callable(lapack_log)(lambda context: lambda lu, p: real_of(lu.dtype) if is_matrix(lu)
                          else None)
for _function in (lapack_inverse, lapack_inverse_or_nan):
    type_callable(_function)(lambda context: lambda lu, p: _in_rows(lu) if is_matrix(lu) else None)
type_callable(lapack_cofactors)(lambda context: lambda det, lu, p, a: _in_rows(a)
                                if is_matrix(a) and lu.dtype == a.dtype else None)
type_callable(lapack_is_singular)(lambda context: lambda lu, p: types.boolean if is_matrix(lu)
                                  else None)
type_callable(lapack_is_indefinite)(lambda context: lambda a: types.boolean if is_matrix(a)
                                    else None)
type_callable(lapack_cholesky)(lambda context: lambda a: _in_rows(a) if is_matrix(a) else None)


# --------------------------------------------------------------------------------------- LU factors


@lower_builtin(lapack_factors, types.Array)
def _lower_factor(context, builder, sig, args):
    code = Code(context, builder, sig.args[0].dtype)
    a, (n, columns) = code.array(sig.args[0], args[0])
    code.is_square(n, columns)
    lu = allocated(context, builder, sig.return_type.types[0], [n, n])
    p = allocated(context, builder, sig.return_type.types[1], [n])
    code.copy(lu.data, a.data, n, n, *reversed(cgutils.unpack_tuple(builder, a.strides, 2)))
    with builder.if_then(code.is_some(n)):
        code.call("getrf", n, n, lu.data, n, p.data, code.place())
    return impl_ret_new_ref(context, builder, sig.return_type,
                            context.make_tuple(builder, sig.return_type, [lu.value, p.value]))


def _lower_solve(is_transposed: bool) -> Callable:
    def lower(context, builder, sig, args):
        code = Code(context, builder, sig.return_type.dtype)
        lu, n = code.factors(sig.args[0], args[0])
        p = code.of_shape(sig.args[1], args[1], n)
        b, (rows, *columns) = code.array(sig.args[2], args[2])
        code.are_equal(rows, n)
        code.is_regular(lu.data, n)
        x = code.in_rows(sig.return_type, b, [rows, *columns])
        with builder.if_then(code.is_some(rows, *columns)):
            if columns:
                code.solve_rows(lu.data, p.data, n, x.data, columns[0], is_transposed)
            else:
                code.call("getrs", "T" if is_transposed else "N", n, 1, lu.data, n, p.data, x.data,
                          n, code.place())
        return impl_ret_new_ref(context, builder, sig.return_type, x.value)

    return lower


lower_builtin(lapack_solution, types.Array, types.Array, types.Array)(_lower_solve(False))
lower_builtin(lapack_solution_of_transposed, types.Array, types.Array, types.Array)(_lower_solve(
    True))


def _lower_inverse(raises: bool) -> Callable:
    def lower(context, builder, sig, args):
        code = Code(context, builder, sig.return_type.dtype)
        lu, n = code.factors(sig.args[0], args[0])
        p = code.of_shape(sig.args[1], args[1], n)
        if raises:
            code.is_regular(lu.data, n)
        x = allocated(context, builder, sig.return_type, [n, n], zero=True)
        with cgutils.for_range(builder, n) as loop:
            builder.store(code.constant(1.0), code.on_diagonal(x.data, n, loop.index))
        with builder.if_then(code.is_some(n)):
            code.solve_rows(lu.data, p.data, n, x.data, n, False)
        if not raises:
            with builder.if_then(code.is_singular(lu.data, n), likely=False), cgutils.for_range(
                    builder, builder.mul(n, n)) as loop:
                builder.store(code.constant(float("nan")), builder.gep(x.data, [loop.index]))
        return impl_ret_new_ref(context, builder, sig.return_type, x.value)

    return lower


lower_builtin(lapack_inverse, types.Array, types.Array)(_lower_inverse(raises=True))
lower_builtin(lapack_inverse_or_nan, types.Array, types.Array)(_lower_inverse(raises=False))


@lower_builtin(lapack_cofactors, types.Number, types.Array, types.Array, types.Array)
def _lower_cofactors(context, builder, sig, args):
    code = Code(context, builder, sig.return_type.dtype)
    det = context.cast(builder, args[0], sig.args[0], sig.return_type.dtype)
    lu, n = code.factors(sig.args[1], args[1])
    p = code.of_shape(sig.args[2], args[2], n)
    y = allocated(context, builder, sig.return_type, [n, n], zero=True)
    with builder.if_else(builder.or_(code.is_zero(det), code.is_singular(lu.data, n)),
                         likely=False) as (singular, regular):
        with singular:
            a = code.of_shape(sig.args[3], args[3], n, n)
            with builder.if_then(code.cofactors_of_singular(a, n, y.data), likely=False):
                code.give_up(sig.return_type, y)
                code.fail(np.linalg.LinAlgError, ("SVD did not converge",))
        with regular:
            with cgutils.for_range(builder, n) as loop:
                builder.store(det, code.on_diagonal(y.data, n, loop.index))
            with builder.if_then(code.is_some(n)):
                code.solve_rows(lu.data, p.data, n, y.data, n, True)
    return impl_ret_new_ref(context, builder, sig.return_type, y.value)


@lower_builtin(lapack_is_singular, types.Array, types.Array)
def _lower_is_singular(context, builder, sig, args):
    code = Code(context, builder, sig.args[0].dtype)
    lu, n = code.factors(sig.args[0], args[0])
    return code.is_singular(lu.data, n)


def _lower_determinant(result: Callable) -> Callable:
    def lower(context, builder, sig, args):
        code = Code(context, builder, sig.args[0].dtype)
        lu, n = code.factors(sig.args[0], args[0])
        p = code.of_shape(sig.args[1], args[1], n)
        return result(code, *code.sign_and_log(lu.data, p.data, n))

    return lower


for _function, _result in ((lapack_sign, lambda code, sign, log: sign),
                           (lapack_log, lambda code, sign, log: log),
                           (lapack_determinant,
                            lambda code, sign, log: code.scaled(sign, code.math("llvm.exp", log)))):
    lower_builtin(_function, types.Array, types.Array)(_lower_determinant(_result))


# ------------------------------------------------------------------------------ Cholesky, triangles


def _factored(context, builder, kind: types.Array, given: ir.Value) -> tuple:
    """The code, the factor, and whether factorisation fails: NumPy reads the lower triangle by
    rows, which is LAPACK's upper one.
    """
    code = Code(context, builder, kind.dtype)
    a, (n, columns) = code.array(kind, given)
    code.is_square(n, columns)
    x = allocated(context, builder, _in_rows(kind), [n, n])
    code.copy(x.data, a.data, n, n, *cgutils.unpack_tuple(builder, a.strides, 2))
    with cgutils.for_range(builder, n) as row:
        first = builder.add(row.index, WORD(1))
        cgutils.memset(builder,
                       builder.gep(x.data, [builder.add(builder.mul(row.index, n), first)]),
                       builder.mul(builder.sub(n, first), WORD(code.size)), 0)
    info = cgutils.alloca_once_value(builder, INT(0))
    with builder.if_then(code.is_some(n)):
        code.call("potrf", "U", n, x.data, n, info)
    return code, x, builder.icmp_signed("!=", builder.load(info), INT(0))


@lower_builtin(lapack_cholesky, types.Array)
def _lower_cholesky(context, builder, sig, args):
    code, x, is_indefinite = _factored(context, builder, sig.args[0], args[0])
    with builder.if_then(is_indefinite, likely=False):
        code.give_up(sig.return_type, x)
        code.fail(np.linalg.LinAlgError, ("Matrix is not positive definite",))
    return impl_ret_new_ref(context, builder, sig.return_type, x.value)


@lower_builtin(lapack_is_indefinite, types.Array)
def _lower_is_indefinite(context, builder, sig, args):
    code, x, is_indefinite = _factored(context, builder, sig.args[0], args[0])
    code.give_up(_in_rows(sig.args[0]), x)
    return is_indefinite


def _lower_triangle(is_lower: bool) -> Callable:
    def lower(context, builder, sig, args):
        kind = sig.args[0]
        code = Code(context, builder, kind.dtype)
        a, (n, others) = code.array(kind, args[0])
        b, (rows, *columns) = code.array(sig.args[1], args[1])
        code.is_square(n, others)
        code.are_equal(rows, n)
        data, is_in_rows, held = a.data, kind.layout != "F", None
        if kind.layout == "A":
            copy = code.in_rows(_in_rows(kind), a, [n, n])
            data, held = copy.data, (_in_rows(kind), copy)
        code.is_regular(data, n, held)
        x = code.in_rows(sig.return_type, b, [rows, *columns])
        triangle = "U" if is_lower == is_in_rows else "L"  # as LAPACK sees it
        with builder.if_then(code.is_some(rows, *columns)):
            if columns:
                code.divide(triangle, "N" if is_in_rows else "T", "N", data, n, x.data, columns[0])
            else:
                code.call("trsv", triangle, "T" if is_in_rows else "N", "N", n, data, n, x.data, 1)
        if held is not None:
            code.give_up(*held)
        return impl_ret_new_ref(context, builder, sig.return_type, x.value)

    return lower


lower_builtin(lapack_solution_of_lower, types.Array, types.Array)(_lower_triangle(True))
lower_builtin(lapack_solution_of_upper, types.Array, types.Array)(_lower_triangle(False))
