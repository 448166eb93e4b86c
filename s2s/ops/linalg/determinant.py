"""Determinants: det and slogdet, also of singular matrices.

Note [Determinants of singular matrices]
The determinant is a polynomial of the elements, and so are its derivatives: the first is the matrix
of cofactors, which is det(a) inv(a).T for an invertible matrix, and finite for a singular one. The
ops here are that derivative and the second; both are closed under differentiation, because the
second is linear in its direction and symmetric. For an invertible matrix the inverse gives them, at
the cost of one inversion. Otherwise let a be u diag(s) vt by the SVD: det(a + e) is det(u) det(vt)
det(diag(s) + u.T e vt.T), and for a diagonal matrix the derivatives are products of the other
elements, without division. Considered:

* rules in terms of det and inv alone, which raise at singular matrices, [[1.0, 2.0], [2.0, 4.0]];
* products of the pivots of an LU decomposition, as in JAX: right only for rank n - 1, and not twice
  differentiable there;
* division-free algorithms (Bird's, 2011), differentiated as they are: of fourth order in the size,
  and inexact;
* one op of a matrix and any number of directions, for derivatives of any order: from the third on,
  the formula with the inverse is used, which raises LinAlgError at a singular matrix.

A determinant of exactly 0 means that the matrix is singular: the same factorisation would raise in
np.linalg.inv. The second derivative cancels where s[-1] is small beside s[-2], so it tests the
accuracy of the inverse.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ...ir.builder import fresh_shape
from ...ir.graph import Value
from ...ir.types import Array, Type, Unknown
from ..arrays.axes import expand_dims
from ..arrays.products import matmul, matrix_transposed
from ..arrays.reduce import sum_record
from ..core.batch_rules import align, batched_over, on_all_lanes
from ..core.chain_rule import like_operand
from ..core.dependence_rules import anything, per_matrix
from ..core.elementwise import imag, multiply, real
from ..core.record import (
    Record,
    array_type,
    becomes,
    define,
    dtype_of,
    numpy_function,
    rank,
    state,
    value,
)
from ..core.shape import length, shaped_like, sum_to
from .solve import inv, linalg_call, real_dtype, square_dims


def _infer_per_matrix(what: str, size: bool = False) -> Callable:
    """A number for each matrix; `size`: real even for complex matrices."""
    def infer(a: Value) -> Type:
        dims, dtype = square_dims(a, what), real_dtype(dtype_of(a.type))
        if size and dtype is not None:
            dtype = np.empty(0, dtype).real.dtype.name
        return Unknown(fresh_shape(), dtype) if dims is None else array_type(dtype, dims[:-2])

    return infer


def _per_matrix(x: Value) -> Value:
    """A number for each matrix, shaped to multiply the matrices."""
    return x if rank(x) == 0 else expand_dims(x, (-2, -1))


def _sum_of_matrix(x: Value) -> Value:
    return sum_record(x, axis=None if rank(x) == 2 else (-2, -1), keepdims=False)


def _trace_of_product(a: Value, b: Value) -> Value:
    """The trace of a @ b, for each matrix."""
    return _sum_of_matrix(multiply(a, matrix_transposed(b)))


# ---------------------------------------------------------------------------------------------- det

det = define(
    "det",
    evaluate=np.linalg.det,
    infer=_infer_per_matrix("np.linalg.det"),
    vjp=lambda bar, y, a: (_per_matrix(bar) * cofactors_of(y, a),),
    jvp=lambda dots, y, a: None if dots[0] is None
        else _sum_of_matrix(cofactors_of(y, a) * dots[0]),
    states_both="a tangent is summed over each matrix, a cotangent is a number for each",
    syntax=lambda a: linalg_call("det", a),
    depends=per_matrix, batch=on_all_lanes, native="matrix", contiguous="operands",
)
numpy_function(np.linalg.det)(det)


def cofactors(det, a):
    """The cofactors of a matrix: what its determinant changes by with each element, of singular matrices, too."""
    if det != 0:
        y = np.linalg.inv(a).T
        y *= det
        return y
    u, s, vt = np.linalg.svd(a)
    others = np.ones_like(s)  # the products of s without one
    for i in range(len(s)):
        others[i] = np.prod(s[:i]) * np.prod(s[i + 1:])
    y = np.conj(u) * others @ np.conj(vt)
    y *= np.linalg.det(u) * np.linalg.det(vt)
    return y


def inverse_if_known(det, a):
    """The inverse of a matrix, and whether there is one that is known well enough."""
    if det != 0:
        x = np.linalg.inv(a)
        return x, not np.linalg.norm(a) * np.linalg.norm(x) > 1e6
    return a, False


def cofactors_moved(det, a, x, known, b):
    """What the cofactors of a, of which x is the inverse if it is known, change by along b."""
    if known:
        t = x @ b
        y = -(t @ x).T
        y += np.trace(t) * x.T
        y *= det
        return y
    u, s, vt = np.linalg.svd(a)
    b = np.conj(u.T) @ b @ np.conj(vt.T)
    others = np.zeros((len(s), len(s)), dtype=s.dtype)  # the products of s without two
    for i in range(len(s)):
        rest = s.copy()
        rest[i] = 1
        for j in range(i):
            others[i, j] = others[j, i] = np.prod(rest[:j]) * np.prod(rest[j + 1:])
    y = -(others * b).T
    for i in range(len(s)):
        y[i, i] = np.sum(others[i] * np.diag(b))
    y = np.conj(u) @ y @ np.conj(vt)
    y *= np.linalg.det(u) * np.linalg.det(vt)
    return y


def cofactors_along(det, a, b):
    """What cofactors(det, a) changes by along b: the second derivative of the determinant."""
    x, known = inverse_if_known(det, a)
    return cofactors_moved(det, a, x, known, b)


def cofactors_of_each(det, a):
    """The cofactors of each matrix of a stack."""
    if np.all(det != 0):
        return np.expand_dims(det, (-2, -1)) * np.swapaxes(np.linalg.inv(a), -1, -2)
    y = np.empty(a.shape, np.result_type(det, a))
    for k in np.ndindex(a.shape[:-2]):
        y[k] = cofactors(det[k], a[k])
    return y


def cofactors_along_each(det, a, b):
    """What the cofactors of each matrix of a stack change by along those of b, which may be more."""
    if np.all(det != 0):
        x = np.linalg.inv(a)
        size = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(x, axis=(-2, -1))
        if np.all(size < 1e6):
            t = x @ b
            y = np.trace(t, axis1=-2, axis2=-1)[..., None, None] * x - t @ x
            return np.expand_dims(det, (-2, -1)) * np.swapaxes(y, -1, -2)
    det, a = np.broadcast_to(det, b.shape[:-2]), np.broadcast_to(a, b.shape)
    y = np.empty(b.shape, np.result_type(det, a, b))
    for k in np.ndindex(b.shape[:-2]):
        y[k] = cofactors_along(det[k], a[k], b[k])
    return y


def cofactors_in_loops(det, a):
    """The cofactors of each matrix of a stack."""
    y = np.empty_like(a)
    for k in np.ndindex(a.shape[:-2]):
        y[k] = cofactors(det[k], a[k])
    return y


def cofactors_along_in_loops(det, a, b):
    """What the cofactors of each matrix of a stack change by along those of b, which may be more."""
    x, known = np.empty_like(a), np.empty(a.shape[:-2], np.bool_)
    for k in np.ndindex(a.shape[:-2]):
        x[k], known[k] = inverse_if_known(det[k], a[k])
    det, known = np.broadcast_to(det, b.shape[:-2]), np.broadcast_to(known, b.shape[:-2])
    a, x = np.broadcast_to(a, b.shape), np.broadcast_to(x, b.shape)
    y = np.empty_like(b)
    for k in np.ndindex(b.shape[:-2]):
        y[k] = cofactors_moved(det[k], a[k], x[k], known[k], b[k])
    return y


def inverse_or_nan(size, a):
    """The inverse of a matrix, NaN of one whose determinant has the logarithm -inf."""
    if size == -np.inf:
        return np.full_like(a, np.nan)
    return np.linalg.inv(a)


def inverse_or_nan_of_each(size, a):
    """inverse_or_nan(size, a) of each matrix of a stack."""
    singular = np.expand_dims(size == -np.inf, (-2, -1))
    return np.where(singular, np.nan, np.linalg.inv(np.where(singular, np.eye(a.shape[-1], dtype=a.dtype), a)))


def inverse_or_nan_in_loops(size, a):
    """inverse_or_nan(size, a) of each matrix of a stack."""
    y = np.empty_like(a)
    for k in np.ndindex(a.shape[:-2]):
        y[k] = inverse_or_nan(size[k], a[k])
    return y


def _of_matrix(helper: Callable, batch: Callable | None = None,
               contiguous: str = "") -> Record:
    """Define an op of a property of the determinant, the matrix, and maybe a direction, with the
    type of the last.
    """

    def infer(det: Value, *xs: Value) -> Type:
        dtypes = [dtype_of(x.type) for x in xs]
        dtype = None if None in dtypes else real_dtype(np.result_type(*dtypes).name)
        match xs[-1].type:
            case Array(_, dims):
                return Array(dtype, dims)
        return Unknown(xs[-1].type.shape, dtype)

    return define(
        helper.__name__,
        evaluate=helper,
        infer=infer,
        helper=helper,
        syntax=lambda *xs: ast.Call(ast.Name(helper.__name__, ast.Load()), list(xs), []),
        depends=anything,
        batch=batch,
        contiguous=contiguous,
    )


def _batch_cofactors(flags, det: Value, a: Value):
    return cofactors_of(det, a) if all(flags) else None


def _batch_inverse(flags, size: Value, a: Value):
    return inverse_of(size, a) if all(flags) else None


def _batch_along(flags, det: Value, a: Value, b: Value):
    """Batch many directions for one matrix, whose inverse is computed once."""
    if flags[0] != flags[1]:
        return None
    if not flags[2]:
        b = batched_over(b, length(a, axis=0))
    if not flags[1]:
        det, a = expand_dims(det, 0), expand_dims(a, 0)
    own = rank(b) - 1
    det, a = align(det, rank(det) - 1, own - 2), align(a, rank(a) - 1, own)
    return second_of(det, a, b)


one = _of_matrix(cofactors, _batch_cofactors, "operands")
each = _of_matrix(cofactors_of_each, _batch_cofactors)
one_along = _of_matrix(cofactors_along, _batch_along, "operands")
each_along = _of_matrix(cofactors_along_each, _batch_along)
inverse = _of_matrix(inverse_or_nan, _batch_inverse, "operands")
each_inverse = _of_matrix(inverse_or_nan_of_each, _batch_inverse)
each.lower = becomes(_of_matrix(cofactors_in_loops))
each_along.lower = becomes(_of_matrix(cofactors_along_in_loops))
each_inverse.lower = becomes(_of_matrix(inverse_or_nan_in_loops))
each.of_one, each_inverse.of_one = one, inverse


def cofactors_of(det: Value, a: Value) -> Value:
    """The cofactors of each matrix with determinants `det`."""
    return (one if rank(a) == 2 else each)(det, a)


def second_of(det: Value, a: Value, b: Value) -> Value:
    """The derivative of the cofactors along b."""
    return (one_along if rank(a) == rank(b) == 2 else each_along)(det, a, b)


def inverse_of(size: Value, a: Value) -> Value:
    """The inverse of each matrix; `size` is the logarithm of its absolute determinant."""
    return (inverse if rank(a) == 2 else each_inverse)(size, a)


def _third_of(det: Value, a: Value, b: Value, c: Value) -> Value:
    """The derivative of that along c, if there is an inverse: derivatives of det(a) tr(x b) x - x b
    x, with x = inv(a).
    """
    x = inv(a)
    p, q = matmul(x, b), matmul(x, c)
    s, t, both = (_per_matrix(_trace_of_product(*pair)) for pair in ((x, b), (x, c), (p, q)))
    of_both = matmul(p, matmul(q, x)) + matmul(q, matmul(p, x))
    return (_per_matrix(det)
            * matrix_transposed((s * t - both) * x - s * matmul(q, x) - t * matmul(p, x) + of_both))


def _vjp_first(bar, y, det, a):
    return None, like_operand(shaped_like(second_of(det, a, bar), a), a)


def _jvp_first(dots, y, det, a):
    return None if dots[1] is None else second_of(det, a, dots[1])


def _vjp_second(bar, y, det, a, b):
    return (None, like_operand(sum_to(_third_of(det, a, b, bar), a), a),
            shaped_like(second_of(det, a, bar), b))


def _jvp_second(dots, y, det, a, b):
    along_b = None if dots[2] is None else second_of(det, a, dots[2])
    if dots[1] is None:
        return along_b
    along_a = _third_of(det, a, b, dots[1])
    return along_a if along_b is None else along_a + along_b


one.vjp = each.vjp = _vjp_first
one.jvp = each.jvp = _jvp_first
one_along.vjp = each_along.vjp = _vjp_second
one_along.jvp = each_along.jvp = _jvp_second
state(one, each, one_along, each_along,
      states_both="both are the next derivative of det, which is its own transpose")

# ------------------------------------------------------------------------------------------ slogdet

inverse.differentiated_as = each_inverse.differentiated_as = lambda y, size, a: (inv, (a,), {})


def _is_complex(x: Value) -> bool:
    return (dtype_of(x.type) or "").startswith("complex")


def _vjp_sign_of_det(bar, y, a):
    if not _is_complex(a):
        return (None,)
    return (_per_matrix(1j * imag(bar * y)) * matrix_transposed(inverse_of(log_of_det(a), a)),)


def _jvp_sign_of_det(dots, y, a):
    """For complex matrices the sign rotates: d log det is tr(inv(a) da), whose imaginary part is
    the change of the angle.
    """
    if dots[0] is None or not _is_complex(a):
        return None
    return 1j * y * imag(_trace_of_product(inverse_of(log_of_det(a), a), dots[0]))


def _jvp_log_of_det(dots, y, a):
    if dots[0] is None:
        return None
    found = _trace_of_product(inverse_of(y, a), dots[0])
    return real(found) if _is_complex(found) else found


sign_of_det = define(
    "sign_of_det",
    evaluate=lambda a: np.linalg.slogdet(a)[0],
    infer=_infer_per_matrix("np.linalg.slogdet"),
    vjp=_vjp_sign_of_det,
    jvp=_jvp_sign_of_det,
    states_both="a tangent is a trace, which needs no transposed inverse",
    syntax=lambda a: ast.Subscript(linalg_call("slogdet", a), ast.Constant(0), ast.Load()),
    depends=anything, batch=on_all_lanes, native="matrix", contiguous="operands",
)
log_of_det = define(
    "log_of_det",  # of its absolute value
    evaluate=lambda a: np.linalg.slogdet(a)[1],
    infer=_infer_per_matrix("np.linalg.slogdet", size=True),
    vjp=lambda bar, y, a: (_per_matrix(bar) * matrix_transposed(inverse_of(y, a)),),
    jvp=_jvp_log_of_det,
    states_both="a tangent is a trace, which needs no transposed inverse",
    syntax=lambda a: ast.Subscript(linalg_call("slogdet", a), ast.Constant(1), ast.Load()),
    depends=per_matrix, batch=on_all_lanes, native="matrix", contiguous="operands",
)


@numpy_function(np.linalg.slogdet, fields="sign logabsdet")
def slogdet(a) -> Value:
    """np.linalg.slogdet, as a pair."""
    return value((sign_of_det(value(a)), log_of_det(value(a))))
