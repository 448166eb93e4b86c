"""Linear systems and square matrices: solve, inv, cholesky."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import BOOL, Array, Type, Unknown, is_inexact
from ..arrays import stablehlo_arrays
from ..arrays.axes import expand_dims, squeeze_record, transpose_record
from ..arrays.create import eye
from ..arrays.products import check_inner, dot_left, matmul, matrix_transposed, product_dtype
from ..arrays.selection import tril, triu
from ..core.batch_rules import align_all, batched_over, on_all_lanes
from ..core.cast import astype
from ..core.chain_rule import like_operand
from ..core.dependence_rules import anything, follows, per_matrix, spread_as
from ..core.elementwise import conjugate
from ..core.raise_conditions import Raises
from ..core.record import (
    broadcast_dims,
    define,
    dtype_of,
    no_jvp,
    no_vjp,
    numpy_function,
    rank,
    value,
)
from ..core.shape import length, shaped_like, sum_to
from ..core.stablehlo_rules import in_ops
from .elimination import by_elimination


def square_dims(x: Value, what: str) -> tuple | None:
    """The extents of a matrix, checked to be square."""
    if rank(x) is None:
        return None
    if rank(x) < 2:
        raise TypeMismatchError(
            f"{what} of {x.type}, which is no matrix", current().line, "give it a square matrix"
        )
    check_inner(x.type.dims[-1], x.type.dims[-2], what)
    return x.type.dims


def real_dtype(dtype: str | None) -> str | None:
    """NumPy's dtype for the results of linalg: float64 for integers."""
    if dtype is None:
        return None
    return np.result_type(dtype, np.float32).name if is_inexact(dtype) else "float64"


def _infer_solve(a: Value, b: Value) -> Type:
    square_dims(a, "np.linalg.solve")
    dtype = real_dtype(product_dtype(a, b))
    match b.type:
        case Unknown(shape):
            return Unknown(shape, dtype)
    if rank(b) == 0:
        raise TypeMismatchError("np.linalg.solve with a number on the right", current().line,
                                "give it a vector or a matrix")
    if rank(a) is not None:
        check_inner(a.type.dims[-1], b.type.dims[0 if rank(b) == 1 else -2], "np.linalg.solve")
        # which later is a matrix
        if rank(a) > 2 and rank(b) == rank(a) - 1 and np.lib.NumpyVersion(np.__version__) < "2.0.0":
            raise UnsupportedError(
                "np.linalg.solve of a stack of systems with a stack of vectors",
                current().line,
                "give the vectors one more axis: b[..., None]",
            )
        if rank(a) > 2:
            return Array(dtype,
                         (*broadcast_dims(a.type.dims[:-2], b.type.dims[:-2]), *b.type.dims[-2:]))
    return Array(dtype, b.type.dims)


def _vjp_solve(bar, y, a, b):
    b_bar = solve(matrix_transposed(a), bar)
    a_bar = -dot_left(b_bar, a, y)  # b is a @ y
    are_single = rank(a) == 2 and rank(b) in (1, 2)  # stacks may broadcast against each other
    return tuple(like_operand((shaped_like if are_single else sum_to)(x_bar, x), x)
                 for x_bar, x in ((a_bar, a), (b_bar, b)))


def _jvp_solve(dots, y, a, b):
    right = dots[1]
    if dots[0] is not None:
        moved = matmul(dots[0], y)
        right = -moved if right is None else right - moved
    return None if right is None else solve(a, right)


def _batch_solve(flags, a: Value, b: Value):
    own = rank(b) - flags[1]
    if flags == (False, True) and own == 1 and rank(a) == 2:
        return transpose_record(solve(a, transpose_record(b, axes=None)), axes=None)
    if flags[0] and not flags[1]:
        b = batched_over(b, length(a, axis=0))
    if own == 1:
        return squeeze_record(solve(a, expand_dims(b, 2)), axis=2)
    return solve(*align_all((flags[0], flags[0] or flags[1]), (a, b)))


@follows(0, 1)
def _depends_solve(unions, y, deps, a, b):
    """Rule: the whole matrix, and the column on the right."""
    left = np.asarray(unions.along(spread_as(deps[0], a), (-2, -1)))
    if b.ndim == 1:
        return np.full(b.shape, unions.union(int(left), unions.along(spread_as(deps[1], b), 0)),
                       np.int64)
    right = unions.along(spread_as(deps[1], b), -2, keepdims=True)
    return np.broadcast_to(unions.union(left[..., None, None], right), y.shape).copy()


IMPLICIT = "tangents solve the equation itself, cotangents the transposed one"
solve = define(
    "solve",
    evaluate=np.linalg.solve,
    infer=_infer_solve,
    vjp=_vjp_solve,
    jvp=_jvp_solve,
    states_both=IMPLICIT,
    syntax=lambda a, b: linalg_call("solve", a, b),
    depends=_depends_solve, batch=_batch_solve, native="matrix", contiguous="operands",
    stablehlo=in_ops(by_elimination),
)


@numpy_function(np.linalg.solve)
def solve_(a, b) -> Value:
    """np.linalg.solve; one vector per matrix of a stack is solved as a matrix of one column."""
    a, b = value(a), value(b)
    if rank(b) == 1 and rank(a) is not None and rank(a) > 2:
        above = tuple(range(rank(a) - 2))
        return squeeze_record(solve(a, expand_dims(b, (*above, rank(a) - 1))), axis=rank(a) - 1)
    return solve(a, b)


def linalg_call(name: str, *args: ast.expr) -> ast.expr:
    module = ast.Attribute(ast.Name("np", ast.Load()), "linalg", ast.Load())
    return ast.Call(ast.Attribute(module, name, ast.Load()), list(args), [])


def _infer_matrix(what: str) -> Callable:
    def infer(a: Value) -> Type:
        dims, dtype = square_dims(a, what), real_dtype(dtype_of(a.type))
        return Unknown(a.type.shape, dtype) if dims is None else Array(dtype, dims)

    return infer


def _jvp_inv(dots, y, a):
    return None if dots[0] is None else -matmul(matmul(y, dots[0]), y)


inv = define(
    "inv",
    evaluate=np.linalg.inv,
    infer=_infer_matrix("np.linalg.inv"),
    vjp=lambda bar, y, a: (-matmul(matmul(matrix_transposed(y), bar), matrix_transposed(y)),),
    jvp=_jvp_inv,
    states_both=IMPLICIT,
    syntax=lambda a: linalg_call("inv", a),
    depends=per_matrix, batch=on_all_lanes, native="matrix", contiguous="operands", same_shape=0,
    stablehlo=in_ops(lambda a: by_elimination(a, eye(length(a, axis=-1)))),
)
numpy_function(np.linalg.inv)(inv)


def _is_complex(x: Value) -> bool:
    return (dtype_of(x.type) or "").startswith("complex")


def _conjugate(x: Value) -> Value:
    return conjugate(x) if _is_complex(x) else x


def _adjoint(x: Value) -> Value:
    """The conjugate transpose of each matrix."""
    return _conjugate(matrix_transposed(x))


def _lower_half(x: Value) -> Value:
    """The lower triangle with half of the diagonal: Φ of Murray, Differentiation of the Cholesky
    decomposition, 2016.
    """
    return 0.5 * (tril(x) + tril(x, -1))


# Note [Which triangle is read]
# LAPACK reads one triangle of a symmetric or Hermitian matrix, and the real part of a Hermitian
# diagonal.  The result is a function of these elements alone: others get no cotangent, and their
# tangents do not count.  With H the matrix that a triangle of a stands for,
#
#     forward   H_dot is the triangle of a_dot           np.tril(a_dot) + np.tril(a_dot, -1).T
#               and its adjoint
#     reverse   a_bar is the triangle of H_bar           np.tril(H_bar) + np.triu(H_bar, 1).T
#               plus its mirror image
#
# Considered: symmetrising the matrix first, 0.5 * (a + a.T), as JAX does: if both triangles are
# filled the sum of their gradients is the same, but a matrix with one filled triangle gets half of
# its gradient.


def completed(a: Value, upper: bool = False) -> Value:
    """Return the symmetric or Hermitian matrix of which LAPACK reads one triangle of `a`: Note
    [Which triangle is read].
    """
    read = triu if upper else tril
    if _is_complex(a):
        half = 0.5 * (read(a) + read(a, 1 if upper else -1))
        return half + _adjoint(half)
    return read(a) + matrix_transposed(read(a, 1 if upper else -1))


def onto_triangle(bar: Value, upper: bool = False) -> Value:
    """Return the cotangent of the triangle that LAPACK reads, from `bar`, that of the whole
    symmetric or Hermitian matrix.
    """
    read, other = (triu, tril) if upper else (tril, triu)
    if _is_complex(bar):
        bar = bar + _adjoint(bar)
        return 0.5 * (read(bar) + read(bar, 1 if upper else -1))
    return read(bar) + matrix_transposed(other(bar, -1 if upper else 1))


def _vjp_cholesky(bar, y, a):
    """Murray's, with adjoints for transposes; cotangents are multiplied without conjugation
    (ops/core/chain_rule.py), hence those of bar and result.
    """
    middle = _lower_half(matmul(_adjoint(y), _conjugate(bar)))
    middle = middle + _adjoint(middle)
    left = solve(_adjoint(y), middle)
    return (_conjugate(_lower_half(_adjoint(solve(_adjoint(y), _adjoint(left))))),)


def _jvp_cholesky(dots, y, a):
    if dots[0] is None:
        return None
    middle = solve(y, _adjoint(solve(y, completed(dots[0]))))
    return matmul(y, _lower_half(middle))


cholesky = define(
    "cholesky",  # of the lower triangle: Note [Which triangle is read]
    evaluate=np.linalg.cholesky,
    infer=_infer_matrix("np.linalg.cholesky"),
    vjp=_vjp_cholesky,
    jvp=_jvp_cholesky,
    states_both="a cotangent is made symmetric between its two solves, a tangent before them",
    syntax=lambda a: linalg_call("cholesky", a),
    depends=per_matrix, batch=on_all_lanes, native="matrix", contiguous="operands", same_shape=0,
    stablehlo=stablehlo_arrays.lower_factor,
)
numpy_function(np.linalg.cholesky)(cholesky)

# ----------------------------------------------------------------- which matrices raise LinAlgError


def is_singular(a):
    """Whether np.linalg.solve and np.linalg.inv raise LinAlgError."""
    try:
        np.linalg.solve(a, a[:1].T)  # which is a vector also where there are no rows
    except Exception:
        return True
    return False


def is_indefinite(a):
    """Whether np.linalg.cholesky raises LinAlgError."""
    try:
        np.linalg.cholesky(a)
    except Exception:
        return True
    return False


def _question(function: Callable):
    return define(
        function.__name__,
        evaluate=function,
        infer=lambda a: BOOL,
        syntax=lambda a: ast.Call(ast.Name(function.__name__, ast.Load()), [a], []),
        helper=function,
        vjp=no_vjp,
        jvp=no_jvp,
        depends=anything,
    )


singular, indefinite = _question(is_singular), _question(is_indefinite)


def _asks(question: Callable, name: str) -> Callable:
    """A raise condition that evaluates `question` on a matrix, which is factorised once for the
    question and again for the result: only LAPACK knows what it refuses.
    """

    def rule(a: Value) -> Value:
        if rank(a) != 2:
            raise UnsupportedError(
                f"np.linalg.{name} of a stack of matrices, or of one whose rank is known only at a "
                "call, where LinAlgError is caught",
                current().line,
                "loop over the matrices, or call the function first",
            )
        return question(a if is_inexact(a.type.dtype) else astype(a, dtype="float64"))

    return rule


def _refuses(question: Callable, name: str, *example: np.ndarray) -> tuple[Raises, ...]:
    return (Raises(np.linalg.LinAlgError, _asks(question, name), example, operands=(0,),
                   natively=False),)


solve.raises = _refuses(singular, "solve", np.zeros((2, 2)), np.zeros(2))
inv.raises = _refuses(singular, "inv", np.zeros((2, 2)))
cholesky.raises = _refuses(indefinite, "cholesky", -np.eye(2))
