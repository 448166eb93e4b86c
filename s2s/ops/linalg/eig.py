"""np.linalg.eig and eigvals of any square matrix, with complex results, as in JAX.

NumPy returns real results if no imaginary part is left, which is known only at run time; here they
are always complex, with NumPy's numbers.

Note [Eigenvectors as LAPACK scales them]
With P = inv(V) dA V, the change of the eigenvalues is P's diagonal, and that of V is V C with C = P
/ (w_j - w_i) and an arbitrary diagonal (Giles, An extended collection of matrix derivative results,
2008). LAPACK fixes the diagonal: each vector has length 1, and its largest component is real. So
from V C with zero diagonal we subtract v Re(v^H dv), which would change the length, and the
multiple of i v that would rotate that component. Functions that do not depend on the scaling of
eigenvectors are not affected. Where eigenvalues coincide: coinciding_values.py.
"""

from __future__ import annotations

import ast

import numpy as np

from ...ir.graph import Value
from ...ir.types import Array, Type
from ..arrays.axes import expand_dims
from ..arrays.create import arange, eye
from ..arrays.products import matmul, matrix_transposed
from ..arrays.reduce import argmax_record, sum_record
from ..arrays.selection import diagonal
from ..core.array_raise_conditions import is_not_finite_somewhere
from ..core.cast import as_dtype
from ..core.chain_rule import like_operand
from ..core.elementwise import absolute, conjugate, equal, imag, real, where
from ..core.kinks import Kink, kinked
from ..core.raise_conditions import Raises
from ..core.record import define, dtype_of, numpy_function, value
from ..core.shape import length
from .coinciding_values import coincide, over_gaps
from .decompositions import COINCIDE, EACH_ALONG, SOME_RESULTS, is_zero
from .matrix_equations import one_matrix
from .solve import linalg_call, real_dtype, solve, square_dims

t = matrix_transposed


def _infer(a: Value) -> list[Type]:
    dims = square_dims(a, "np.linalg.eig")
    dtype = np.result_type(real_dtype(dtype_of(a.type)), np.complex64).name
    return [Array(dtype, dims[:1]), Array(dtype, dims)]


def _syntax(a: ast.expr) -> ast.expr:
    """The expression [y.astype(complex) for y in np.linalg.eig(a)]."""
    y = ast.Name("y", ast.Load())
    converted = ast.Call(ast.Attribute(y, "astype", ast.Load()), [ast.Name("complex", ast.Load())],
                         [])
    return ast.ListComp(
        converted, [ast.comprehension(ast.Name("y", ast.Store()), linalg_call("eig", a), [], 0)])


def _sum_of_each(x: Value) -> Value:
    """The sum of each column."""
    return sum_record(x, axis=0, keepdims=False)


def _real_one(v: Value) -> tuple[Value, Value]:
    """The position of the component of each vector that LAPACK makes real, and its value."""
    sizes = where(equal(imag(v), 0.0), absolute(v), -1.0)
    is_it = equal(expand_dims(arange(length(v, axis=0)), 1),
                  expand_dims(argmax_record(sizes, axis=0, keepdims=False), 0))
    return is_it, _sum_of_each(where(is_it, real(v), 0.0))


def _vjp(bars, ys, a):
    (w_bar, v_bar), (w, v) = bars, ys
    inner = None
    if not is_zero(v_bar):
        is_it, size = _real_one(v)
        along = _sum_of_each(v_bar * v)
        v_bar = v_bar - conjugate(v) * real(along) - where(is_it, 1j * (imag(along) / size), 0.0)
        inner = over_gaps(matmul(t(v), v_bar), w)
    if not is_zero(w_bar):
        of_values = eye(length(w, axis=0)) * w_bar
        inner = of_values if inner is None else inner + of_values
    return (like_operand(solve(t(v), matmul(inner, t(v))), a),)


def _jvp(dots, ys, a):
    if dots[0] is None:
        return None
    w, v = ys
    moved = solve(v, matmul(dots[0], v))
    v_dot = matmul(v, over_gaps(moved, w))
    is_it, size = _real_one(v)
    longer, turned = (_sum_of_each(real(conjugate(v) * v_dot)),
                      _sum_of_each(where(is_it, imag(v_dot), 0.0)) / size)
    return diagonal(moved), v_dot - v * longer - 1j * (v * turned)


eig_record = define("eig",
                    evaluate=lambda a: tuple(y.astype(np.result_type(y, np.complex64))
                                             for y in np.linalg.eig(a)), infer=_infer, vjp=_vjp,
                    jvp=_jvp, states_both=SOME_RESULTS, syntax=_syntax)
kinked(eig_record, Kink(EACH_ALONG.format("eigenvalues"),
                        lambda ys, a: coincide(ys[0]), through=(0,)))
kinked(eig_record, Kink(COINCIDE.format("eigenvalues"), lambda ys, a: coincide(ys[0]),
                        through=(1,), always=True))


def _eig(a, what: str) -> list[Value]:
    """Eigenvalues and eigenvectors of one matrix, computed in double precision."""
    a = one_matrix(a, what)
    precise = {"float32": "float64", "complex64": "complex128"}.get(dtype_of(a.type))
    found = eig_record(as_dtype(a, precise))
    return [y if precise is None else as_dtype(y, "complex64") for y in found]


@numpy_function(np.linalg.eig, fields="eigenvalues eigenvectors")
def eig(a) -> Value:
    """np.linalg.eig of one matrix: eigenvalues and eigenvectors, complex."""
    return value(tuple(_eig(a, "np.linalg.eig")))


@numpy_function(np.linalg.eigvals)
def eigvals(a) -> Value:
    """np.linalg.eigvals of one matrix, complex: the first of np.linalg.eig."""
    return _eig(a, "np.linalg.eigvals")[0]


eig_record.raises = (Raises(np.linalg.LinAlgError, is_not_finite_somewhere,
                            (np.full((2, 2), np.nan),), natively=False),)
