"""LLVM code of the functions in lapack.py, for one dtype: calls of LAPACK, checks, arithmetic of
real and complex numbers, right sides in rows.

    code = Code(context, builder, dtype)
    code.call("getrf", n, n, lu.data, n, p.data, code.place())
    code.is_regular(lu.data, n)                  # raises LinAlgError: Singular matrix
    code.solve_rows(lu.data, p.data, n, x.data, columns, is_transposed=False)

Right sides stay row-major: to LAPACK they are transposed, and X A^T = B^T is solved with triangles
on the right (trsm), without a second copy.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from llvmlite import ir
from numba import types

from ..debug.sanitizer import check_lengths
from ..intrinsics.noalias_alloc import allocated
from ..numba_internals import cgutils, signature
from .lapack_routines import LETTERS, OF_SINGULAR, PREFIX, provide
from .row_copy import BYTES, WORD, copier

BYTE, INT = ir.IntType(8), ir.IntType(32)
SINGULAR = (np.linalg.LinAlgError, ("Singular matrix",))


def real_of(dtype: types.Type) -> types.Type:
    return dtype.underlying_float if isinstance(dtype, types.Complex) else dtype


class Code:
    """Emit linear algebra of one matrix for one dtype."""

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
