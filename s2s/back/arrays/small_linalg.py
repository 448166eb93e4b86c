"""Expand linear algebra on small matrices into loops, which are faster than a call of LAPACK.

    np.linalg.solve(a, b)       w[:, :n], w[:, n:] = a, b
                                eliminate(w)
                                x = w[:, n:]
    np.linalg.inv(a)            the same with np.eye(n) for b, as NumPy does it
    np.linalg.det(a)            determinant(w) of w = a.copy(); sign and logarithm from np.diag(w)
    np.linalg.cholesky(a)       factorise(w) of w = a.copy()
    cofactors(det, a)           minors(a), up to three rows

for matrices that are known to be small. Numba checks and copies the operands, queries LAPACK for
the size of its workspace, allocates arrays, and takes 0.3 s to compile each of these: a 2x2 inverse
takes 230 ns, here 20. The loops do what LAPACK does, elimination with partial pivoting, in an array
that is allocated once before a loop.

They raise where a number is infinite or NaN, and where NumPy would raise: what happens then is
decided by NumPy, in the interpreted form (runtime/call/native_function.py, Note [Where an error
came from]). Numba raises there, too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ...ir.graph import Op, Value
from ...ir.types import Array, Scalar
from ...ops.arrays.axes import expand_dims
from ...ops.arrays.create import empty, eye
from ...ops.arrays.cumulative import prod
from ...ops.arrays.index import put, take
from ...ops.arrays.reduce import sum_record
from ...ops.arrays.selection import diagonal
from ...ops.core.elementwise import absolute, equal, log, sign, where
from ...ops.core.record import Record, define, lowers, rank
from ...ops.linalg.determinant import det, inverse, log_of_det, sign_of_det
from ...ops.linalg.determinant import one as cofactors
from ...ops.linalg.solve import cholesky, inv, solve
from ..loopir.ops import as_dtype
from .specialise_lengths import SHORT


def eliminate(w):
    """Make a triangle of a small matrix, in place, the product of whose diagonal is its determinant; columns behind it become what solves for them.

    Once there is no pivot the rest of the diagonal is 0, too: NumPy looks no further, either.
    """
    n, m = w.shape
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(w[i, k]) > abs(w[p, k]) or w[i, k] != w[i, k]:
                p = i
        if not abs(w[p, k]) < np.inf:
            raise np.linalg.LinAlgError("numbers that are not finite")
        if w[p, k] == 0.0:
            if m > n:
                raise np.linalg.LinAlgError("Singular matrix")
            for i in range(k, n):
                w[i, i] = 0.0
            return
        if p != k:
            for j in range(k, m):
                w[k, j], w[p, j] = w[p, j], -w[k, j]
        for i in range(k + 1, n):
            factor = w[i, k] / w[k, k]
            for j in range(k + 1, m):
                w[i, j] -= factor * w[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(n, m):
            for i in range(k + 1, n):
                w[k, j] -= w[k, i] * w[i, j]
            w[k, j] /= w[k, k]
            if not abs(w[k, j]) < np.inf:
                raise np.linalg.LinAlgError("numbers that are not finite")


def determinant(w):
    """The determinant of a matrix of which `eliminate` has made the triangle; where products of pivots leave the numbers there are, by logarithms."""
    y, is_near = 1.0, True
    for k in range(len(w)):
        y *= w[k, k]
        size = abs(y)
        is_near = is_near and 1e-290 < size < 1e290
    if is_near:
        return y
    y, size = 1.0, 0.0
    for k in range(len(w)):
        if w[k, k] == 0.0:
            return 0.0
        y *= np.sign(w[k, k])
        size += np.log(abs(w[k, k]))
    return y * np.exp(size)


def factorise(w):
    """Replace a small matrix by the lower triangle whose product with its transpose it is."""
    for i in range(len(w)):
        for j in range(i + 1):
            for k in range(j):
                w[i, j] -= w[i, k] * w[j, k]
            if i > j:
                w[i, j] /= w[j, j]
            elif 0.0 < w[i, i] < np.inf:
                w[i, i] = np.sqrt(w[i, i])
            else:
                raise np.linalg.LinAlgError("Matrix is not positive definite")
        for j in range(i + 1, len(w)):
            w[i, j] = 0.0


def minors(a):
    """The cofactors of a matrix of at most three rows: with indices that go round, no sign is left of three."""
    n = len(a)
    y = np.empty_like(a)
    for i in range(n):
        for j in range(n):
            if n == 3:
                k, l, p, q = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
                y[i, j] = a[k, p] * a[l, q] - a[k, q] * a[l, p]
            elif n == 2:
                y[i, j] = a[1 - i, 1 - j] if i == j else -a[1 - i, 1 - j]
            else:
                y[i, j] = 1.0
    return y


def _in_place(function: Callable) -> Record:
    """An op that modifies the array it is given, and returns it."""
    def evaluate(w):
        w = w.copy()
        function(w)
        return w

    return define(function.__name__, evaluate=evaluate, infer=lambda w: w.type, helper=function,
                  writes=0, views=(0,), contiguous="operands",
                  syntax=lambda w: ast.Call(ast.Name(function.__name__, ast.Load()), [w], []))


ELIMINATE, FACTORISE = _in_place(eliminate), _in_place(factorise)
DETERMINANT = define(
    determinant.__name__, evaluate=determinant, infer=lambda w: Scalar("float64"),
    helper=determinant, contiguous="operands",
    syntax=lambda w: ast.Call(ast.Name(determinant.__name__, ast.Load()), [w], []))
MINORS = define(
    minors.__name__, evaluate=minors, infer=lambda a: a.type, helper=minors,
    contiguous="operands",
    syntax=lambda a: ast.Call(ast.Name(minors.__name__, ast.Load()), [a], []))


def small(record: Record) -> Callable:
    """Decorator: the rule by which this op is lowered, if its matrices are known to be small."""

    def attach(rule: Callable) -> Callable:
        @lowers(record)
        def lower(op: Op, *inputs: Value) -> Value | None:
            arrays = [x for x in inputs if isinstance(x.type, Array)]  # first the matrix
            is_small = (rank(arrays[0]) == 2 and all(_is_real_and_short(x, arrays[0].type.dtype)
                                                     for x in arrays))
            return rule(*inputs) if is_small else None

        return rule

    return attach


@small(inv)
def _inverse(a: Value) -> Value:
    return _solution(a, _unit(a))


@small(inverse)
def _inverse_or_nan(size: Value, a: Value) -> Value:
    is_singular = equal(size, -np.inf)
    return where(is_singular, np.nan, _solution(where(is_singular, _unit(a), a), _unit(a)))


@small(solve)
def _solve(a: Value, b: Value) -> Value | None:
    if rank(b) == 1:
        return take(_solution(a, expand_dims(b, 1)), (slice(None), 0))
    return _solution(a, b) if rank(b) == 2 else None


@small(det)
def _determinant(a: Value) -> Value:
    return as_dtype(DETERMINANT(ELIMINATE(_copied(a))), a.type.dtype)


@small(sign_of_det)
def _sign_of_determinant(a: Value) -> Value:
    return prod(sign(_pivots(a)))


@small(log_of_det)
def _log_of_determinant(a: Value) -> Value:
    return sum_record(log(absolute(_pivots(a))), axis=None, keepdims=False)


@small(cofactors)
def _cofactors(det: Value, a: Value) -> Value | None:
    return MINORS(a) if a.type.dims[0] <= 3 else None


@small(cholesky)
def _factor(a: Value) -> Value:
    return FACTORISE(_copied(a))


def _solution(a: Value, b: Value) -> Value:
    n, m = b.type.dims
    w = put(empty((n, n + m), dtype=a.type.dtype), (slice(None), slice(None, n)), a)
    return take(ELIMINATE(put(w, (slice(None), slice(n, None)), b)), (slice(None), slice(n, None)))


def _pivots(a: Value) -> Value:
    return diagonal(ELIMINATE(_copied(a)))


def _copied(a: Value) -> Value:
    return put(empty(a.type.dims, dtype=a.type.dtype), ..., a)


def _is_real_and_short(x: Value, dtype: str) -> bool:
    return (dtype in ("float64", "float32") and x.type.dtype == dtype
            and all(isinstance(d, int) and 0 < d <= SHORT for d in x.type.dims))


def _unit(a: Value) -> Value:
    return eye(a.type.dims[0], dtype=a.type.dtype)
