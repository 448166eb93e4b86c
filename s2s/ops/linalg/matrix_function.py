"""Functions of a matrix, f(A) = V diag(f(w)) V^H: first and second derivatives, also at equal
eigenvalues.

Daleckii and Krein (1965): along a step E, with e = V^H E V,

    f(A)'  =  V (D * e) V^H          D[i, j] = (f(w_j) - f(w_i)) / (w_j - w_i), or f'(w_i) if equal
    f(A)'' =  V (sum over k of f[i, k, j] (e1[i, k] e2[k, j] + e2[i, k] e1[k, j])) V^H

where f[i, k, j] are second divided differences.

The derivatives of eigenvectors, which divide by gaps between values, do not occur in it. The
program computes f(w) from `eigh` or `svd` and multiplies by the vectors in some way;
transform/stabilise/spectral_functions.py recognises this, and emits f'(w) and f''(w) beside f(w).

Note [Singular values are eigenvalues]
For A = U diag(s) V^H, the Hermitian matrix H = [[0, A], [A^H, 0]] has eigenvalues s and -s, with
vectors (u, v) and (u, -v), and 0 on the complement of A's range. U g(s) V^H is a block of f(H) for
the odd extension f of g; U g(s) U^H one for the even extension. Vectors of the complement are not
available: only the projector I - Q Q^H is needed.

Note [Near and far]
A divided difference loses digits if its gap is small. Then it is the mean of the slopes at both
ends, with a second-order correction; at the crossover 1e-12 of relative error is left (in double
precision), and 1e-10 in second order. The result does not depend on the scale of the matrix: gaps
are compared with the largest value, since that decides how exact zeros are.

They are also compared with the scale on which f varies, which may be far smaller: sin(1e5 w), a
step at a Fermi energy, a root near 0. There, the correction is not small beside the slopes. If f
has a corner between two values, its slopes differ by what f'' does not account for.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ...ir.graph import Value
from ..arrays.axes import expand_dims
from ..arrays.create import eye
from ..arrays.products import matmul, matrix_transposed
from ..arrays.reduce import is_complex, sum_record
from ..arrays.selection import diagonal
from ..core import elementwise as ew
from ..core.chain_rule import like_operand
from ..core.record import define, dtype_of, its_operand, value
from ..core.shape import length
from .coinciding_values import rounding_record, zero_if_rounding
from .solve import completed, onto_triangle

t = matrix_transposed
# powers of the precision, relative gaps below which differences are not divided
NEAR, NEAR_TWICE = 1 / 5, 1 / 3


def conjugated(x: Value) -> Value:
    """The complex conjugate; real numbers as they are."""
    return ew.conjugate(x) if is_complex(x) else x


def adjoint(x: Value) -> Value:
    """The conjugate transpose."""
    return t(conjugated(x))


def _product(*xs: Value) -> Value:
    return functools.reduce(matmul, xs)


def _both(x: Value) -> tuple[Value, Value]:
    """x_j and x_i, as a row and a column."""
    return expand_dims(x, 0), expand_dims(x, 1)


def _larger(x: Value) -> Value:
    row, column = _both(x)
    return ew.maximum(ew.absolute(row), ew.absolute(column))


def _gaps(w: Value, power: float, g: Value, slope: Value, second: Value,
          jumps: bool) -> tuple[Value, Value, Value]:
    """The gaps w_j - w_i, a mask where they are too small to divide by, and the divisors.

    With `jumps`, f may have two values at neighbouring eigenvalues, one selected and the other not:
    these never count as near.
    """
    row, column = _both(w)
    gap, eps, size = row - column, float(np.finfo(dtype_of(w.type) or "float64").eps), _larger(w)
    is_one = ew.equal(gap, 0)
    turn, bend = (expand_dims(x, 0) - expand_dims(x, 1) for x in (slope, second))
    scale = (_larger(slope) + ew.absolute(gap) * _larger(second)
             + eps**0.5 * _larger(g) / ew.where(is_one, 1.0, size))
    middle = 0.5 * (expand_dims(second, 0) + expand_dims(second, 1))
    near = functools.reduce(ew.bitwise_and, (
        ew.less_equal(ew.absolute(gap), eps ** (power - 1) / 16 * rounding_record(w)),
        ew.less_equal(ew.absolute(gap * bend), 8 * eps ** (2 * power) * scale),
        ew.less_equal(ew.absolute(turn - gap * middle), 8 * eps ** (2 * NEAR) * scale)))
    near = ew.bitwise_or(near, is_one)
    if jumps:
        rise, most = _rise_and_most(gap, g, slope)
        near = ew.bitwise_and(near, ew.less_equal(rise, most))
        return gap, near, ew.where(ew.bitwise_or(near, is_one), 1.0, gap)
    return gap, near, ew.where(near, 1.0, gap)


def _rise_and_most(gap: Value, g: Value, slope: Value) -> tuple[Value, Value]:
    """The absolute differences of f(w), and the most that its slopes and rounding account for."""
    eps = float(np.finfo(dtype_of(g.type) or "float64").eps)
    size = expand_dims(ew.absolute(g), 0) + expand_dims(ew.absolute(g), 1)
    most = ew.absolute(gap * (expand_dims(slope, 0) + expand_dims(slope, 1)))
    return ew.absolute(expand_dims(g, 0) - expand_dims(g, 1)), most + 8 * eps * size


def differences(w: Value, g: Value, slope: Value, second: Value, jumps: bool = False) -> Value:
    """The divided differences of f, from f(w), f'(w) and f''(w); if `jumps`, NaN where f has two
    values at one w, or at two that rounding may have parted.
    """
    gap, near, divisor = _gaps(w, NEAR, g, slope, second, jumps)
    rise, bend = (expand_dims(g, 0) - expand_dims(g, 1),
                  expand_dims(second, 0) - expand_dims(second, 1))
    is_one = ew.equal(gap, 0)
    mean = (0.5 * (expand_dims(slope, 0) + expand_dims(slope, 1))
            - ew.where(is_one, 0.0, gap * bend) / 12)
    found = ew.where(near, mean, rise / divisor)
    if not jumps:
        return found
    is_one = ew.equal(zero_if_rounding(gap, w), 0)
    return ew.where(ew.bitwise_and(is_one, ew.greater(*_rise_and_most(gap, g, slope))), math.nan,
                    found)


def _over(x: Value, w: Value, at_zero: Value) -> Value:
    """x / w, and `at_zero` where both are 0."""
    none = ew.bitwise_and(ew.equal(w, 0), ew.equal(x, 0))
    return ew.where(none, at_zero, x / ew.where(none, 1.0, w))


class Spectrum:
    """The eigenvectors of a matrix, or their conjugates, and a function of its eigenvalues with two
    derivatives.
    """

    def __init__(self, w, v, g, slope, second, *, conjugate: bool, complete: bool, jumps: bool):
        self.w, self.g, self.slope, self.second, self.complete = w, g, slope, second, complete
        self.gaps = functools.partial(_gaps, w, g=g, slope=slope, second=second, jumps=jumps)
        self.v = conjugated(v) if conjugate else v
        self.adjoint = adjoint(self.v)
        self.first = differences(w, g, slope, second, jumps)

    def inside(self, e: Value) -> Value:
        """V^H e V."""
        return _product(self.adjoint, e, self.v)

    def outside(self, e: Value) -> Value:
        """V e V^H."""
        return _product(self.v, e, self.adjoint)

    def beside(self, e: Value) -> tuple[Value, Value]:
        """V^H e (1 - V V^H) and (1 - V V^H) e V: the components in the complement of V, exactly 0
        where V turns out to be square.
        """
        left, right = matmul(self.adjoint, e), matmul(e, self.v)
        inner = matmul(left, self.v)
        return (ew.where(self.is_square, 0.0, left - matmul(inner, self.adjoint)),
                ew.where(self.is_square, 0.0, right - matmul(self.v, inner)))

    @property
    def is_square(self) -> Value:
        return ew.equal(length(self.v, axis=0), length(self.w, axis=0))

    @property
    def is_zero(self) -> Value:
        """Where eigenvalues are 0 but for rounding, as in the complement."""
        return ew.equal(zero_if_rounding(self.w, self.w), 0)

    def from_zero(self) -> Value:
        """The divided differences f[i, 0], where f(0) = 0: in the complement w is 0. NaN where f
        has another value at 0, too; 0 where there is no complement.
        """
        most = 2 * ew.absolute(self.w * self.slope)
        jumps = ew.bitwise_and(self.is_zero, ew.greater(ew.absolute(self.g), most))
        found = ew.where(jumps, math.nan, _over(self.g, self.w, self.slope))
        return ew.where(self.is_square, 0.0, found)

    def from_zero_twice(self, scale: Value) -> Value:
        """The divided differences f[i, k, 0], given f[i, 0]."""
        column, row = expand_dims(self.w, 1), expand_dims(self.w, 0)
        is_row = ew.greater_equal(ew.absolute(row), ew.absolute(column))
        divisor = ew.where(is_row, row, column)  # the larger
        rise = self.first - ew.where(is_row, expand_dims(scale, 1), expand_dims(scale, 0))
        none = ew.bitwise_and(expand_dims(self.is_zero, 0), expand_dims(self.is_zero, 1))
        mean = 0.25 * (expand_dims(self.second, 0) + expand_dims(self.second, 1))
        return ew.where(none, mean, rise / ew.where(none, 1.0, divisor))

    def along(self, e: Value) -> Value:
        """The first derivative of f(A) along e."""
        found = self.outside(self.first * self.inside(e))
        if self.complete:
            return found
        scale = self.from_zero()
        row, column = self.beside(e)
        return found + matmul(self.v * scale, row) + matmul(column * scale, self.adjoint)

    def along_two(self, e: Value, d: Value) -> Value:
        """The second derivative of f(A) along e and d."""
        a, b, first = self.inside(e), self.inside(d), self.first
        gap, near, divisor = self.gaps(NEAR_TWICE)
        # or where all that f[i, k] and f[k, j] differ by is rounding
        sums, eps = _sum(ew.absolute(first), 1), float(np.finfo(dtype_of(self.w.type)).eps)
        most = 64 * eps * (expand_dims(sums, 0) + expand_dims(sums, 1))
        near = ew.bitwise_or(near, ew.bitwise_and(
            ew.equal(zero_if_rounding(gap, self.w), 0),
            ew.less_equal(ew.absolute(gap) * _larger(self.second), most)))
        divisor = ew.where(near, 1.0, divisor)
        slope, second = expand_dims(self.slope, 1), expand_dims(self.second, 1)
        # f[i, i, k]
        twice = ew.where(near, (2 * second + expand_dims(self.second, 0)) / 6,
                         (first - slope) / divisor)
        far = (matmul(a, first * b) + matmul(b, first * a) - matmul(first * a, b)
               - matmul(first * b, a))
        close = (matmul(twice * a, b) + matmul(twice * b, a) + matmul(a, t(twice) * b)
                 + matmul(b, t(twice) * a))
        inner = ew.where(near, 0.5 * close, far / divisor)
        if self.complete:
            return self.outside(inner)
        scale = self.from_zero()
        steep = ew.where(self.is_zero, 0.5 * self.second,
                         scale / ew.where(self.is_zero, 1.0, self.w))  # f[i, 0, 0]
        of_one = self.from_zero_twice(scale)
        (row_e, column_e), (row_d, column_d) = self.beside(e), self.beside(d)
        inner = inner + of_one * (matmul(row_e, column_d) + matmul(row_d, column_e))
        rest_e, rest_d = (x - matmul(self.v, matmul(self.adjoint, x)) for x in (e, d))
        rows = matmul(of_one * a, row_d) + matmul(of_one * b, row_e)
        columns = matmul(column_e, of_one * b) + matmul(column_d, of_one * a)
        past = expand_dims(steep, 1)
        rows = rows + past * (self._rest(matmul(row_e, rest_d)) + self._rest(matmul(row_d, rest_e)))
        columns = columns + (matmul(rest_e, column_d) + matmul(rest_d, column_e)) * steep
        both = matmul(column_e * steep, row_d) + matmul(column_d * steep, row_e)
        return self.outside(inner) + matmul(self.v, rows) + matmul(columns, self.adjoint) + both

    def _rest(self, x: Value) -> Value:
        """x (1 - V V^H)."""
        return x - matmul(matmul(x, self.v), self.adjoint)

    def changed(self, rise: Value, slope: Value, e: Value) -> Value:
        """`along`, for changes of f(w) and f'(w)."""
        _, near, divisor = self.gaps(NEAR_TWICE)
        mean = 0.5 * (expand_dims(slope, 0) + expand_dims(slope, 1))
        change = ew.where(near, mean, (expand_dims(rise, 0) - expand_dims(rise, 1)) / divisor)
        found = self.outside(change * self.inside(e))
        if self.complete:
            return found
        scale = _over(rise, self.w, slope)
        row, column = self.beside(e)
        return found + matmul(self.v * scale, row) + matmul(column * scale, self.adjoint)

    def changing(self, c: Value, e: Value) -> tuple[Value, Value]:
        """The adjoint of `changed`: the cotangents of f(w) and f'(w), given that of its result,
        `c`.
        """
        _, near, divisor = self.gaps(NEAR_TWICE)
        plain = conjugated(self.v)
        left, right = matmul(t(self.v), c), matmul(c, plain)
        bar = self._like_values(matmul(left, plain) * self.inside(e))
        far, mean = ew.where(near, 0.0, bar / divisor), ew.where(near, 0.5 * bar, 0.0)
        g_bar, slope_bar = _sum(far, 0) - _sum(far, 1), _sum(mean, 0) + _sum(mean, 1)
        if not self.complete:
            row, column = self.beside(e)
            bar = self._like_values(_sum(left * row, 1) + _sum(column * right, 0))
            g_bar = g_bar + _over(bar, self.w, value(0.0))
        return g_bar, slope_bar

    def _like_values(self, bar: Value) -> Value:
        return ew.real(bar) if is_complex(bar) and not is_complex(self.g) else bar


def _sum(x: Value, axis: int) -> Value:
    return sum_record(x, axis=axis, keepdims=False)


def _whole(a: Value, upper: bool | None) -> Value:
    """The whole matrix, of which LAPACK reads one triangle."""
    return a if upper is None else completed(a, upper)


def _read(bar: Value, upper: bool | None, a: Value) -> Value:
    """A cotangent of `_whole(a)` as one of `a`."""
    return like_operand(bar if upper is None else onto_triangle(bar, upper), a)


def _along(e: Value, a: Value, *spectrum: Value, conjugate: bool, complete: bool, jumps: bool,
           **attrs) -> Value:
    found = Spectrum(*spectrum, conjugate=conjugate, complete=complete, jumps=jumps).along(e)
    return matrix_function_along(found, e, a, *spectrum, conjugate=conjugate, complete=complete,
                                 jumps=jumps, **attrs)


def _apart(spectrum: Spectrum) -> Spectrum:
    """The derivative without the change of f(w) itself, which is differentiated where it is
    computed.
    """
    is_one = eye(length(spectrum.w, axis=0), dtype=value(np.dtype(dtype_of(spectrum.w.type))))
    spectrum.first = spectrum.first * (1 - is_one)
    return spectrum


def _vjp(bar, y, of, a, *spectrum, apart: bool, upper, complete, jumps, alone):
    if not apart:
        a_bar = _along(bar, a, *spectrum, conjugate=True, upper=upper, complete=complete,
                       jumps=jumps, alone=alone)
        return None, _read(a_bar, upper, a), None, None, None, None, None
    known = Spectrum(*spectrum, conjugate=True, complete=complete, jumps=jumps)
    g_bar = known._like_values(diagonal(known.inside(bar)))
    return (None, _read(_apart(known).along(bar), upper, a), None, None,
            like_operand(g_bar, spectrum[2]), None, None)


def _jvp(dots, y, of, a, *spectrum, apart: bool, upper, complete, jumps, alone):
    a_dot, g_dot = dots[1], dots[4]
    if a_dot is not None:
        a_dot = _whole(a_dot, upper)
    if not apart:
        return (None if a_dot is None
                else _along(a_dot, a, *spectrum, conjugate=False, upper=upper, complete=complete,
                            jumps=jumps, alone=alone))
    known = Spectrum(*spectrum, conjugate=False, complete=complete, jumps=jumps)
    terms = [] if g_dot is None else [_product(known.v * g_dot, known.adjoint)]
    terms += [] if a_dot is None else [_apart(known).along(a_dot)]
    return functools.reduce(ew.add, terms) if terms else None


def _vjp_along(c, y, of, e, a, *spectrum, conjugate: bool, upper, complete, jumps, alone):
    w, v, g, slope, second = spectrum
    attrs = {"upper": upper, "complete": complete, "jumps": jumps, "alone": alone}
    e_bar = like_operand(_along(c, a, *spectrum, conjugate=not conjugate, **attrs), e)
    other = Spectrum(*spectrum, conjugate=not conjugate, complete=complete, jumps=jumps)
    a_bar = other.along_two(t(e), c)
    a_bar = conjugated(a_bar) if conjugate else a_bar
    if alone:
        return None, e_bar, _read(a_bar, upper, a), None, None, None, None, None
    g_bar, slope_bar = Spectrum(*spectrum, conjugate=conjugate, complete=complete,
                                jumps=jumps).changing(c, e)
    # the contribution through g and slope
    moved = conjugated(v) * (g_bar * slope + slope_bar * second)
    a_bar = a_bar - matmul(moved, t(v))
    return (None, e_bar, _read(a_bar, upper, a), None, None, like_operand(g_bar, g),
            like_operand(slope_bar, slope), None)


def _jvp_along(dots, y, of, e, a, *spectrum, conjugate: bool, upper, complete, jumps, alone):
    w, v, g, slope, second = spectrum
    attrs = {"upper": upper, "complete": complete, "jumps": jumps, "alone": alone}
    _, e_dot, a_dot, _, _, g_dot, slope_dot, _ = dots
    terms = []
    if e_dot is not None:
        terms.append(_along(e_dot, a, *spectrum, conjugate=conjugate, **attrs))
    known = Spectrum(*spectrum, conjugate=conjugate, complete=complete, jumps=jumps)
    if a_dot is not None:
        a_dot = _whole(a_dot, upper)
        a_dot = conjugated(a_dot) if conjugate else a_dot
        terms.append(known.along_two(e, a_dot))
    if not alone and not (g_dot is None and slope_dot is None):
        g_dot, slope_dot = (value(0.0) if dot is None else dot for dot in (g_dot, slope_dot))
        if a_dot is not None:
            w_dot = ew.real(diagonal(known.inside(a_dot)))
            g_dot, slope_dot = g_dot - slope * w_dot, slope_dot - second * w_dot
        zeros = 0.0 * w
        terms.append(known.changed(g_dot + zeros, slope_dot + zeros, e))
    return functools.reduce(ew.add, terms) if terms else None


def _infer(of: Value, *inputs: Value, **attrs):
    return of.type


OF_SPECTRUM = "the function along a direction is an op of its own, with a flag for its transpose"
matrix_function = define(
    "matrix_function",  # (y, a, w, v, f(w), f'(w), f''(w)): y, the function f of the matrix a
    evaluate=lambda y, *inputs, **attrs: y,
    infer=_infer,
    partials=(None, 1, None, None, 1, None, None),
    vjp=_vjp,
    jvp=_jvp,
    states_both=OF_SPECTRUM,
    syntax=lambda y, *inputs, **attrs: y,
    cheap=True,
    stands_for=lambda op, out: op.inputs[0],
    lower=its_operand,
)
matrix_function_along = define(
    "matrix_function_along",  # (y, e, a, w, v, f(w), f'(w), f''(w)): y, its derivative along e
    evaluate=lambda y, *inputs, **attrs: y,
    infer=_infer,
    partials=(None, 1, 1, None, None, 1, 1, None),
    vjp=_vjp_along,
    jvp=_jvp_along,
    states_both=OF_SPECTRUM,
    syntax=lambda y, *inputs, **attrs: y,
    cheap=True,
    stands_for=lambda op, out: op.inputs[0],
    lower=its_operand,
)
