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
same matrices are singular in both: a row-major matrix is transposed in the copy. Right sides stay
row-major: to LAPACK they are transposed, and X A^T = B^T is solved with triangles on the right
(trsm), without a second copy.

The routines are SciPy's, as Numba's are. Their addresses are valid in this process: code refers to
them by symbols, which `provide` defines before linking, as in runtime/intrinsics/complex_math.py.
Considered: Numba's own wrappers of LAPACK, which lack getrs, trsm, trsv, and look up each routine
by name again in each process, with Python's lock.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.extending import get_cython_function_address, lower_builtin, type_callable

from ...lazy_import import later
from ...ops.linalg.determinant import cofactors
from ...ops.linalg.solve import is_indefinite
from ..debug.sanitizer import check_lengths
from ..intrinsics.noalias_alloc import allocated
from ..numba_internals import cgutils, impl_ret_new_ref, signature

scipy_linalg = later("scipy.linalg")

PREFIX = "s2s_lapack"  # symbols: s2s_lapack_dgetrf
LETTERS = {types.float64: "d", types.float32: "s", types.complex128: "z", types.complex64: "c"}
BLAS = ("trsm", "trsv")
OF_SINGULAR = "cofactors"  # not a LAPACK routine
BYTE, INT, WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
BYTES = cgutils.voidptr_t
# bytes of a line of the cache: so many columns are read at a time where these lie in one piece as
# fill one
LINE = 64
SIDE = 4  # side of blocks transposed in registers
SINGULAR = (np.linalg.LinAlgError, ("Singular matrix",))


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


def real_of(dtype: types.Type) -> types.Type:
    return dtype.underlying_float if isinstance(dtype, types.Complex) else dtype


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


# --------------------------------------------------------------------------------------------- code


class Code:
    """Emit these functions for one dtype."""

    def __init__(self, context, builder, dtype: types.Type):
        self.context, self.builder, self.letter, self.dtype = (context, builder, LETTERS[dtype],
                                                               dtype)
        self.number, self.real = (context.get_value_type(t) for t in (dtype, real_of(dtype)))
        self.is_complex = dtype != real_of(dtype)
        self.size = context.get_abi_sizeof(self.number)

    def array(self, kind: types.Array, value: ir.Value) -> tuple:
        """An array as its fields and lengths."""
        array = self.context.make_array(kind)(self.context, self.builder, value)
        return array, cgutils.unpack_tuple(self.builder, array.shape, kind.ndim)

    def of_shape(self, kind: types.Array, value: ir.Value, *lengths: ir.Value):
        """Check in sanitized code that an array has these lengths (runtime/debug/sanitizer.py)."""
        array, found = self.array(kind, value)
        if getattr(self.context, "is_sanitized", False):
            for n, m in zip(found, lengths):
                check_lengths(self.context, self.builder, n, m)
        return array

    def factors(self, kind: types.Array, value: ir.Value) -> tuple:
        """The factors of a square matrix, and their number of rows."""
        _, (n, _) = self.array(kind, value)
        return self.of_shape(kind, value, n, n), n

    def place(self) -> ir.Value:
        """A stack slot for a number that a routine writes."""
        return cgutils.alloca_once(self.builder, INT)

    def call(self, routine: str, *args) -> None:
        """Call a routine whose arguments are all passed by address: letters, numbers (lengths and
        constants), or addresses.
        """
        name = f"{PREFIX}_{self.letter}{routine}"
        provide([name])
        given = [x if isinstance(x, ir.Value) and x.type.is_pointer else self.stored(x)
                 for x in args]
        function = cgutils.get_or_insert_function(self.builder.module,
                                                  ir.FunctionType(ir.VoidType(),
                                                                  [BYTES] * len(given)), name)
        self.builder.call(function, [self.builder.bitcast(x, BYTES) for x in given])

    def stored(self, x) -> ir.Value:
        if isinstance(x, str):
            x = BYTE(ord(x))
        elif isinstance(x, float):
            x = self.constant(x)
        else:
            x = INT(x) if isinstance(x, int) else self.builder.trunc(x, INT)
        place = cgutils.alloca_once(self.builder, x.type)
        self.builder.store(x, place)
        return place

    def is_some(self, *lengths: ir.Value) -> ir.Value:
        """Whether none of these lengths is 0: LAPACK requires a leading dimension of at least 1."""
        return functools.reduce(self.builder.and_,
                                [self.builder.icmp_signed("!=", n, WORD(0)) for n in lengths])

    # ---------------------------------------------------------------------------------- what raises

    def fail(self, error: type, said: tuple) -> None:
        self.context.call_conv.return_user_exc(self.builder, error, said)

    def is_square(self, n: ir.Value, m: ir.Value) -> None:
        with self.builder.if_then(self.builder.icmp_signed("!=", n, m), likely=False):
            self.fail(np.linalg.LinAlgError, ("Last 2 dimensions of the array must be square",))

    def are_equal(self, n: ir.Value, m: ir.Value) -> None:
        with self.builder.if_then(self.builder.icmp_signed("!=", n, m), likely=False):
            self.fail(ValueError, ("solve: the lengths of the operands do not match",))

    def is_regular(self, data: ir.Value, n: ir.Value, held: tuple | None = None) -> None:
        """Raise if a triangular matrix has a 0 on its diagonal."""
        with self.builder.if_then(self.is_singular(data, n), likely=False):
            if held is not None:
                self.give_up(*held)
            self.fail(*SINGULAR)

    def is_singular(self, data: ir.Value, n: ir.Value) -> ir.Value:
        """Whether a number on the diagonal is 0."""
        found = cgutils.alloca_once_value(self.builder, cgutils.false_bit)
        with cgutils.for_range(self.builder, n) as loop:
            number = self.builder.load(self.on_diagonal(data, n, loop.index))
            self.builder.store(self.builder.or_(self.builder.load(found), self.is_zero(number)),
                               found)
        return self.builder.load(found)

    def give_up(self, kind: types.Array, made) -> None:
        """Free an array allocated here."""
        self.context.nrt.decref(self.builder, kind, made.value)

    def cofactors_of_singular(self, a, n: ir.Value, to: ir.Value) -> ir.Value:
        """Call Python to write the cofactors; return whether it failed.  Singular matrices are
        rare, and singular values would take Numba 3 s in each program.
        """
        name = f"{PREFIX}_{self.letter}{OF_SINGULAR}"
        provide([name])
        given = [a.data, *cgutils.unpack_tuple(self.builder, a.strides, 2), n, to]
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(INT, [BYTES, WORD, WORD, WORD, BYTES]), name)
        given = [self.builder.bitcast(x, BYTES) if x.type.is_pointer else x for x in given]
        return self.builder.icmp_signed("!=", self.builder.call(function, given), INT(1))

    # -------------------------------------------------------------------------------------- numbers

    def constant(self, x: float) -> ir.Constant:
        return ir.Constant(self.number,
                           [ir.Constant(self.real, x), ir.Constant(self.real, 0.0)]
                           if self.is_complex else x)

    def members(self, x: ir.Value) -> list[ir.Value]:
        """The number, or its real and its imaginary part."""
        return cgutils.unpack_tuple(self.builder, x, 2) if self.is_complex else [x]

    def of_members(self, members: Sequence[ir.Value]) -> ir.Value:
        return (cgutils.make_anonymous_struct(self.builder, members, self.number) if self.is_complex
                else members[0])

    def is_zero(self, x: ir.Value) -> ir.Value:
        zero = ir.Constant(self.real, 0.0)
        return functools.reduce(self.builder.and_,
                                [self.builder.fcmp_ordered("==", each, zero)
                                 for each in self.members(x)])

    def scaled(self, x: ir.Value, factor: ir.Value) -> ir.Value:
        return self.of_members([self.builder.fmul(each, factor) for each in self.members(x)])

    def times(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """The product of two complex numbers."""
        (a, b), (c, d) = self.members(x), self.members(y)
        add, sub, mul = self.builder.fadd, self.builder.fsub, self.builder.fmul
        return self.of_members([sub(mul(a, c), mul(b, d)), add(mul(a, d), mul(b, c))])

    def absolute(self, x: ir.Value) -> ir.Value:
        """The absolute value; for a complex number computed as in Numba, without overflow or
        underflow.
        """
        if not self.is_complex:
            return self.math("llvm.fabs", x)
        return self.context.get_function(abs, signature(real_of(self.dtype), self.dtype))(
            self.builder, [x])

    def on_diagonal(self, data: ir.Value, n: ir.Value, k: ir.Value) -> ir.Value:
        return self.builder.gep(data, [self.builder.mul(k, self.builder.add(n, WORD(1)))])

    def math(self, name: str, x: ir.Value) -> ir.Value:
        return self.builder.call(self.builder.module.declare_intrinsic(name, [x.type]), [x])

    def sign_and_log(self, lu: ir.Value, p: ir.Value, n: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Sign and logarithm of the determinant, summed as in NumPy; 0 and -inf if a pivot is 0."""
        builder = self.builder
        sign, log = (cgutils.alloca_once_value(builder, self.constant(1.0)),
                     cgutils.alloca_once_value(builder, ir.Constant(self.real, 0.0)))
        with cgutils.for_range(builder, n) as loop:
            pivot = builder.load(self.on_diagonal(lu, n, loop.index))
            is_moved = builder.icmp_signed("!=",
                                           builder.sext(builder.load(builder.gep(p, [loop.index])),
                                                        WORD), builder.add(loop.index, WORD(1)))
            size = self.absolute(pivot)
            builder.store(self.turned(builder.load(sign), pivot, size, is_moved), sign)
            builder.store(builder.fadd(builder.load(log), self.math("llvm.log", size)), log)
        none = self.is_singular(lu, n)
        return (builder.select(none, self.constant(0.0), builder.load(sign)),
                builder.select(none, ir.Constant(self.real, float("-inf")), builder.load(log)))

    def turned(self, sign: ir.Value, pivot: ir.Value, size: ir.Value,
               is_moved: ir.Value) -> ir.Value:
        """The sign after one more pivot, whose row was interchanged or not."""
        builder = self.builder
        if self.is_complex:
            sign = self.times(sign,
                              self.of_members([builder.fdiv(each, size)
                                               for each in self.members(pivot)]))
            negative = self.of_members([builder.fneg(each) for each in self.members(sign)])
            return builder.select(is_moved, negative, sign)
        is_negative = builder.fcmp_ordered("<", pivot, ir.Constant(self.real, 0.0))
        return builder.select(builder.xor(is_moved, is_negative), builder.fneg(sign), sign)

    # -------------------------------------------------------------------------- right sides in rows

    def in_rows(self, kind: types.Array, array, shape: Sequence[ir.Value]):
        """A C-ordered copy of an array."""
        made = allocated(self.context, self.builder, kind, shape)
        rows, columns = shape if len(shape) == 2 else (WORD(1), shape[0])
        strides = cgutils.unpack_tuple(self.builder, array.strides, len(shape))
        self.copy(made.data, array.data, rows, columns,
                  *(strides if len(shape) == 2 else [WORD(0), strides[0]]))
        return made

    def copy(self, to: ir.Value, data: ir.Value, rows: ir.Value, columns: ir.Value,
             over_rows: ir.Value, over_columns: ir.Value) -> None:
        """Write rows and columns of what lies at `data`, so many bytes apart, one after the other.
        """
        function = copier(self.builder.module, self.number, self.size)
        self.builder.call(function,
                          [self.builder.bitcast(to, self.number.as_pointer()),
                           self.builder.bitcast(data, BYTES), rows, columns, over_rows,
                           over_columns, columns])

    def divide(self, triangle: str, form: str, diagonal: str, a: ir.Value, n: ir.Value, x: ir.Value,
               columns: ir.Value) -> None:
        """Solve a triangular system for right sides in rows: for LAPACK the triangle is on the
        right.
        """
        self.call("trsm", "R", triangle, form, diagonal, columns, n, 1.0, a, n, x, columns)

    def solve_rows(self, lu: ir.Value, p: ir.Value, n: ir.Value, x: ir.Value, columns: ir.Value,
                   is_transposed: bool) -> None:
        """Solve for right sides in rows: a = P L U, so x = U^-1 L^-1 P^T b; for a.T it is P L^-T
        U^-T b.
        """
        if is_transposed:
            self.divide("U", "N", "N", lu, n, x, columns)
            self.divide("L", "N", "U", lu, n, x, columns)
            self.change_places(p, n, x, columns, backwards=True)
        else:
            self.change_places(p, n, x, columns, backwards=False)
            self.divide("L", "T", "U", lu, n, x, columns)
            self.divide("U", "T", "N", lu, n, x, columns)

    def change_places(self, p: ir.Value, n: ir.Value, x: ir.Value, columns: ir.Value,
                      backwards: bool) -> None:
        """Interchange rows k and p[k], in order of k."""
        builder = self.builder
        with cgutils.for_range(builder, n) as loop:
            k = builder.sub(builder.sub(n, loop.index), WORD(1)) if backwards else loop.index
            other = builder.sub(builder.sext(builder.load(builder.gep(p, [k])), WORD), WORD(1))
            with builder.if_then(builder.icmp_signed("!=", k, other)):
                rows = [builder.gep(x, [builder.mul(row, columns)]) for row in (k, other)]
                with cgutils.for_range(builder, columns) as inner:
                    places = [builder.gep(row, [inner.index]) for row in rows]
                    numbers = [builder.load(place) for place in places]
                    for number, place in zip(reversed(numbers), places):
                        builder.store(number, place)


def copier(module: ir.Module, real: ir.Type, size: int) -> ir.Function:
    """The module's function that copies rows and columns to rows with this distance.

    If columns are further apart than rows, a few are copied at a time, and in square blocks if they
    are contiguous.
    """
    name = f"s2s_in_rows_{real}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module,
                           ir.FunctionType(ir.VoidType(),
                                           [real.as_pointer(), BYTES, WORD, WORD, WORD, WORD,
                                            WORD]), name)
    function.linkage = "internal"
    for attribute in ("nounwind", "noinline", "optsize"):
        function.attributes.add(attribute)
    to, data, rows, columns, over_rows, over_columns, apart = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))

    def copy(first_row: ir.Value, last_row: ir.Value, first_column: ir.Value,
             last_column: ir.Value) -> None:
        """Copy these rows and columns number by number."""
        with cgutils.for_range_slice(builder, first_row, last_row, WORD(1)) as (row, _):
            start, target = (builder.gep(data, [builder.mul(row, over_rows)]),
                             builder.gep(to, [builder.mul(row, apart)]))
            with cgutils.for_range_slice(builder, first_column, last_column, WORD(1)) as (column,
                                                                                          _):
                number = builder.load(builder.bitcast(
                    builder.gep(start, [builder.mul(column, over_columns)]), real.as_pointer()))
                builder.store(number, builder.gep(target, [column]))

    with builder.if_else(builder.icmp_signed("==", over_columns, WORD(size))) as (then, otherwise):
        with then, cgutils.for_range(builder, rows) as row:
            start = builder.gep(data, [builder.mul(row.index, over_rows)])
            cgutils.raw_memcpy(builder, builder.gep(to, [builder.mul(row.index, apart)]),
                               builder.bitcast(start, real.as_pointer()), columns, size)
        with otherwise:
            is_far = builder.icmp_signed(">",
                                         *(builder.select(builder.icmp_signed("<", x, WORD(0)),
                                                          builder.neg(x), x)
                                           for x in (over_columns, over_rows)))
            wide = max(LINE // size, 1)
            many = builder.and_(is_far, builder.icmp_signed(">=", rows, WORD(SIDE)))
            ends = cgutils.alloca_once_value(builder, WORD(0))
            with builder.if_then(many):
                whole = builder.mul(builder.sdiv(columns, WORD(wide)), WORD(wide))
                builder.store(whole, ends)
                is_piece = builder.icmp_signed("==", over_rows, WORD(size))
                with cgutils.for_range_slice(builder, WORD(0), whole, WORD(wide)) as (first, _):
                    done = cgutils.alloca_once_value(builder, WORD(0))
                    builder.store(WORD(0), done)
                    if isinstance(real, (ir.DoubleType, ir.FloatType)):
                        with builder.if_then(is_piece):
                            end = builder.mul(builder.sdiv(rows, WORD(SIDE)), WORD(SIDE))
                            builder.store(end, done)
                            with cgutils.for_range_slice(builder, WORD(0), end, WORD(SIDE)) as (row,
                                                                                                _):
                                for k in range(0, wide, SIDE):
                                    square(builder, real, size, to, data, row,
                                           builder.add(first, WORD(k)), over_columns, apart)
                    copy(builder.load(done), rows, first, builder.add(first, WORD(wide)))
            copy(WORD(0), rows, builder.load(ends), columns)
    builder.ret_void()
    return function


def square(builder, real: ir.Type, size: int, to: ir.Value, data: ir.Value, row: ir.Value,
           column: ir.Value, over_columns: ir.Value, apart: ir.Value) -> None:
    """Transpose a SIDE by SIDE block, whose columns are contiguous, in vector registers: exchange
    halves of pairs.
    """
    several, index = ir.VectorType(real, SIDE), ir.VectorType(ir.IntType(32), SIDE)

    def mixed(a: ir.Value, b: ir.Value, *places: int) -> ir.Value:
        return builder.shuffle_vector(a, b, ir.Constant(index, list(places)))

    vectors = []
    for k in range(SIDE):
        place = builder.add(builder.mul(builder.add(column, WORD(k)), over_columns),
                            builder.mul(row, WORD(size)))
        vectors.append(builder.load(builder.bitcast(builder.gep(data, [place]),
                                                    several.as_pointer()), align=size))
    a, b, c, d = vectors
    low, high, low_, high_ = (mixed(a, b, 0, 4, 2, 6), mixed(a, b, 1, 5, 3, 7),
                              mixed(c, d, 0, 4, 2, 6), mixed(c, d, 1, 5, 3, 7))
    made = [mixed(low, low_, 0, 1, 4, 5), mixed(high, high_, 0, 1, 4, 5),
            mixed(low, low_, 2, 3, 6, 7), mixed(high, high_, 2, 3, 6, 7)]
    for k, vector in enumerate(made):
        place = builder.add(builder.mul(builder.add(row, WORD(k)), apart), column)
        builder.store(vector, builder.bitcast(builder.gep(to, [place]), several.as_pointer()),
                      align=size)


@functools.cache
def of_singular(letter: str):
    """Callback of native code for the cofactors of a singular matrix at an address; returns 1 once
    they are written.

    Any exception in it is reported as an error: ctypes would print it and return an arbitrary
    number.
    """
    dtype = next(np.dtype(str(t)) for t, each in LETTERS.items() if each == letter)

    def write(data: int, over_rows: int, over_columns: int, n: int, to: int) -> int:
        last = max(n - 1, 0)
        ends = over_rows * last, over_columns * last
        first = sum(min(end, 0) for end in ends)  # its start, for negative strides
        memory = (ctypes.c_char * (sum(map(abs, ends)) + dtype.itemsize)).from_address(data + first)
        a = np.ndarray((n, n), dtype, memory, -first, (over_rows, over_columns)).copy("C")
        try:
            y = np.ascontiguousarray(cofactors(dtype.type(0), a), dtype)
        except BaseException:
            return 0
        ctypes.memmove(to, y.ctypes.data, y.nbytes)
        return 1

    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *[ctypes.c_int64] * 3,
                            ctypes.c_void_p)(write)


@functools.cache
def address(routine: str) -> int:
    """The address in this process of a SciPy routine, or of a function beside them, by letter and
    name.
    """
    if routine[1:] == OF_SINGULAR:
        return ctypes.cast(of_singular(routine[0]), ctypes.c_void_p).value
    return get_cython_function_address(
        f"scipy.linalg.cython_{'blas' if routine[1:] in BLAS else 'lapack'}", routine)


def provide(symbols: Sequence[str]) -> None:
    """Define those of the symbols that are LAPACK routines."""
    for each in symbols:
        if each.startswith(PREFIX):
            binding.add_symbol(each, address(each[len(PREFIX) + 1:]))
