"""SciPy's matrix equations: solve_sylvester, solve_banded, sqrtm.

Each is an op of its own, because its derivative is such an equation again: for a x + x b = q it is
a dx + dx b = dq - da x - x db, for x x = a it is x dx + dx x = da (Higham, Functions of Matrices,
2008, 6.1), and for a banded system one with the same bands. As compositions
(library/scipy_functions.py), the first two would solve a system of n**2 unknowns, and the third a
dense one.
"""

from __future__ import annotations

import ast

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import Array, Type
from ...lazy_import import Named
from ..arrays.create import zeros_like
from ..arrays.index import put, take
from ..arrays.products import matmul, matrix_transposed
from ..arrays.reduce import as_array, sum_record
from ..core.chain_rule import like_operand
from ..core.record import FUNCTIONS, common_dtype, define, dtype_of, numpy_function, rank, static
from .solve import IMPLICIT, real_dtype, square_dims

t = matrix_transposed


def scipys(name: str) -> Named:
    """The function scipy.linalg.name."""
    return Named("scipy.linalg", name)


def scipy_call(name: str, *args: ast.expr) -> ast.expr:
    """The expression scipy.linalg.name(*args)."""
    module = ast.Attribute(ast.Name("scipy", ast.Load()), "linalg", ast.Load())
    return ast.Call(ast.Attribute(module, name, ast.Load()), list(args), [])


def one_matrix(x, what: str) -> Value:
    """`x`, an argument of `what`, checked to be one matrix."""
    x = as_array(x)
    if rank(x) != 2:
        raise UnsupportedError(f"{what} of something else than one matrix", current().line,
                               "call it for each matrix, in a loop or under s2s.vmap"
                               if rank(x) is not None
                               else "call the function once, or annotate the parameter")
    return x


def _common(*xs: Value) -> str | None:
    """LAPACK's result dtype for matrices of these."""
    return real_dtype(common_dtype(*(dtype_of(x.type) for x in xs)))


# ------------------------------------------------------------------------------------ a x + x b = q


def _infer_sylvester(a: Value, b: Value, q: Value) -> Type:
    square_dims(a, "scipy.linalg.solve_sylvester")
    square_dims(b, "scipy.linalg.solve_sylvester")
    return Array(_common(a, b, q), q.type.dims)


def _vjp_sylvester(bar, y, a, b, q):
    q_bar = sylvester(t(a), t(b), bar)
    bars = -matmul(q_bar, t(y)), -matmul(t(y), q_bar), q_bar
    return tuple(like_operand(x_bar, x) for x_bar, x in zip(bars, (a, b, q)))


def _jvp_sylvester(dots, y, a, b, q):
    right = dots[2]
    for moved in (None if dots[0] is None else matmul(dots[0], y),
                  None if dots[1] is None else matmul(y, dots[1])):
        if moved is not None:
            right = -moved if right is None else right - moved
    return None if right is None else sylvester(a, b, right)


sylvester = define("solve_sylvester", evaluate=lambda a, b, q: scipys("solve_sylvester")(a, b, q),
                   infer=_infer_sylvester, vjp=_vjp_sylvester, jvp=_jvp_sylvester,
                   states_both=IMPLICIT,
                   syntax=lambda a, b, q: scipy_call("solve_sylvester", a, b, q))


@numpy_function(scipys("solve_sylvester"))
def solve_sylvester(a, b, q) -> Value:
    """scipy.linalg.solve_sylvester of matrices."""
    return sylvester(*(one_matrix(x, "scipy.linalg.solve_sylvester") for x in (a, b, q)))


@numpy_function(scipys("solve_continuous_lyapunov"), scipys("solve_lyapunov"))
def solve_lyapunov(a, q) -> Value:
    """scipy.linalg.solve_continuous_lyapunov: a x + x a^H = q."""
    a = one_matrix(a, "scipy.linalg.solve_continuous_lyapunov")
    return solve_sylvester(a, FUNCTIONS[np.conj](t(a)), q)


# ------------------------------------------------------------------------------------------ x x = a


def _infer_sqrtm(a: Value, *, dtype: str) -> Type:
    return Array(dtype, square_dims(a, "scipy.linalg.sqrtm"))


def _sqrtm_syntax(a: ast.expr, *, dtype: str) -> ast.expr:
    """scipy.linalg.sqrtm(a).astype(dtype, casting="same_kind"), which raises where the root of a
    real matrix is complex.
    """
    return ast.Call(ast.Attribute(scipy_call("sqrtm", a), "astype", ast.Load()),
                    [ast.Attribute(ast.Name("np", ast.Load()), dtype, ast.Load())],
                    [ast.keyword("casting", ast.Constant("same_kind"))])


sqrtm_record = define(
    "sqrtm", evaluate=lambda a, *, dtype: scipys("sqrtm")(a).astype(dtype, casting="same_kind"),
    infer=_infer_sqrtm, syntax=_sqrtm_syntax,
    vjp=lambda bar, y, a, *, dtype: (like_operand(sylvester(t(y), t(y), bar), a),),
    jvp=lambda dots, y, a, *, dtype: None if dots[0] is None else sylvester(y, y, dots[0]),
    states_both=IMPLICIT)


@numpy_function(scipys("sqrtm"))
def sqrtm(A) -> Value:  # noqa: N803  SciPy's own name
    """scipy.linalg.sqrtm of a matrix; real for a real one, so for a complex root of a real matrix
    pass A.astype(complex).
    """
    a = one_matrix(A, "scipy.linalg.sqrtm")
    return sqrtm_record(a, dtype=_common(a) or "float64")


# ----------------------------------------------------------------------------------- banded systems


def _infer_banded(ab: Value, b: Value, *, below: int, above: int) -> Type:
    rows = ab.type.dims[0]
    if isinstance(rows, int) and rows != below + above + 1:
        raise TypeMismatchError(
            f"scipy.linalg.solve_banded of {rows} diagonals, {below} below and {above} above "
            "the main one", current().line, "give it a row for each diagonal")
    return Array(_common(ab, b), b.type.dims)


def _moved(x: Value, by: int) -> Value:
    """`x` shifted to later positions along its first axis, filled with zeros."""
    if by == 0:
        return x
    to, of = (slice(by, None), slice(None, -by)) if by > 0 else (slice(None, by), slice(-by, None))
    return put(zeros_like(x), to, take(x, of))


def _diagonals(ab: Value, below: int, above: int) -> dict[int, Value]:
    """k -> the k-th diagonal, with the element of column j at j."""
    return {k: take(ab, above - k) for k in range(-below, above + 1)}


def _transposed(ab: Value, below: int, above: int) -> Value:
    """The bands of the transposed matrix, with `above` bands below the main diagonal."""
    diagonals = _diagonals(ab, below, above)
    return FUNCTIONS[np.stack](tuple(_moved(diagonals[-k], k)
                                     for k in range(below, -above - 1, -1)))


def _times_banded(ab: Value, x: Value, below: int, above: int) -> Value:
    """The product with the matrix of these bands."""
    total = None
    for k, band in _diagonals(ab, below, above).items():
        if rank(x) == 2:
            band = FUNCTIONS[np.expand_dims](band, 1)
        part = _moved(band * x, -k)
        total = part if total is None else total + part
    return total


def _vjp_banded(bar, y, ab, b, *, below, above):
    b_bar = banded(_transposed(ab, below, above), bar, below=above, above=below)
    rows = []
    for k in range(above, -below - 1, -1):
        row = _moved(b_bar, k) * y
        rows.append(-(row if rank(b) == 1 else sum_record(row, axis=1, keepdims=False)))
    return like_operand(FUNCTIONS[np.stack](tuple(rows)), ab), like_operand(b_bar, b)


def _jvp_banded(dots, y, ab, b, *, below, above):
    right = dots[1]
    if dots[0] is not None:
        moved = _times_banded(dots[0], y, below, above)
        right = -moved if right is None else right - moved
    return None if right is None else banded(ab, right, below=below, above=above)


banded = define(
    "solve_banded",
    evaluate=lambda ab, b, *, below, above: scipys("solve_banded")((below, above), ab, b),
    infer=_infer_banded, vjp=_vjp_banded, jvp=_jvp_banded, states_both=IMPLICIT,
    syntax=lambda ab, b, *, below, above: scipy_call(
        "solve_banded", ast.Tuple([ast.Constant(below), ast.Constant(above)], ast.Load()), ab, b))


@numpy_function(scipys("solve_banded"))
def solve_banded(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True) -> Value:
    """scipy.linalg.solve_banded of a vector or a matrix."""
    below, above = static(l_and_u, "how many diagonals there are")
    b = as_array(b)
    if rank(b) not in (1, 2):
        raise UnsupportedError(
            "scipy.linalg.solve_banded of something else than a vector or a matrix", current().line,
            "call it for each, under s2s.vmap")
    return banded(one_matrix(ab, "scipy.linalg.solve_banded"), b, below=int(below),
                  above=int(above))
