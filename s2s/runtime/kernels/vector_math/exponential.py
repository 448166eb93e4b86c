"""exp, exp2 and expm1.

x = k log(2) + r with |r| <= log(2) / 2, so exp(x) = 2**k exp(r): k by rounding, 2**k by writing the
exponent bits, exp(r) by a polynomial. Here and in the other families, polynomials interpolate at
Chebyshev nodes, which is nearly minimax.
"""

from __future__ import annotations

import math

from .lanes import absolute, bits, format_of, is_single, number, polynomial, rounded, where

LOG2E = 1.4426950408889634
# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2
EXP_64 = (0.5000000000000001, 0.16666666666666669, 0.041666666666623824, 0.008333333333330039,
          0.0013888888917367081, 0.00019841269863171557, 2.4801521057868204e-05,
          2.7557268276905696e-06, 2.7620201591031547e-07, 2.5100472505694996e-08)
EXP_32 = (0.5, 0.16666576266288757, 0.04166655242443085, 0.00836323294788599, 0.0013926250394433737)


def parts(x):
    """(k, r) with x = k log(2) + r."""
    high, low = format_of(x).log2
    k = rounded(x * LOG2E)
    return k, (x - k * high) - k * low


def power_of_two(k):
    """2**k, for an integer k such that this is a normal number."""
    f = format_of(k)
    return number(bits(k + (f.magic + f.bias)) << f.mantissa)


def times_power_of_two(y, k):
    """y * 2**k, where 2**k itself may overflow or underflow."""
    half = rounded(k * 0.5)
    return y * power_of_two(half) * power_of_two(k - half)


def above_one(r):
    """exp(r) - 1 for |r| <= log(2) / 2."""
    return r + r * r * polynomial(r, EXP_32 if is_single(r) else EXP_64)


def between(x, low: float, high: float):
    """x clamped to these bounds; NaN stays."""
    return where(x < low, low, where(x > high, high, x))


def exp(x):
    """e to the power of x."""
    # beyond it the result is 0 or inf in any case
    x = between(x, -104.0, 89.0) if is_single(x) else between(x, -746.0, 710.0)
    k, r = parts(x)
    return times_power_of_two(1.0 + above_one(r), k)


def exp2(x):
    """2 to the power of x."""
    x = between(x, -150.0, 129.0) if is_single(x) else between(x, -1075.0, 1025.0)
    k = rounded(x)
    return times_power_of_two(1.0 + above_one((x - k) * math.log(2)), k)


def expm1(x):
    """exp(x) - 1, accurate for small x."""
    t = between(x, -18.0, 89.0) if is_single(x) else between(x, -40.0, 710.0)
    k, r = parts(t)
    half = power_of_two(k - 1.0)  # 2**k may overflow
    y = (half * above_one(r) + (half - 0.5)) * 2.0
    return where(absolute(x) < format_of(x).smallest, x, y)  # keeps the sign of 0
