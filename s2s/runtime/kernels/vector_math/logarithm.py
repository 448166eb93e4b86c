"""log, log2, log10, log1p and logaddexp.

x = 2**k m with m between sqrt(1/2) and sqrt(2), so log(x) = k log(2) + log(m); and with s = f / (2
+ f), f = m - 1, log(1 + f) = 2 atanh(s) = f - s (f - R(s**2)), where R is a polynomial. (As in
FreeBSD's libm, whose order of summation loses nothing near 1.)
"""

from __future__ import annotations

import math

from .exponential import above_one, between, parts, times_power_of_two
from .lanes import absolute, bits, format_of, is_single, like, number, polynomial, where

# (2 atanh(s) / s - 2) / s**2 as a function of s**2, for |f| <= sqrt(2) - 1 and, after that, for 0
# <= f <= 1
LOG_64 = (0.666666666666667, 0.3999999999989322, 0.28571428628810996, 0.22222210674238516,
          0.18182922513515942, 0.15330617306743305, 0.1463003136412286)
LOG_32 = (0.6666666865348816, 0.40000125765800476, 0.28550398349761963, 0.23341943323612213)
LOG1P_64 = (0.6666666666666666, 0.40000000000014585, 0.2857142856710876, 0.22222222717427864,
            0.18181789436132859, 0.15385570064958623, 0.13314144209654935, 0.12001072809590713,
            0.08800738486144674, 0.1616404561194353)
LOG1P_32 = (0.6666666865348816, 0.3999970555305481, 0.285923570394516, 0.2170657515525818,
            0.23224329948425293)


def split(x):
    """(k, m) with x = 2**k m and m between sqrt(1/2) and sqrt(2), for a normal number x > 0."""
    f = format_of(x)
    root = 0x3F3504F3 if is_single(x) else 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
    one = f.bias << f.mantissa
    shifted = bits(x) + (one - root)
    # as the last bits of a large number
    k = number((shifted >> f.mantissa) | (bits_of_integers(f)))
    m = number((shifted & ((1 << f.mantissa) - 1)) + root)
    return k - (2.0**f.mantissa + f.bias), m


def bits_of_integers(f) -> int:
    """The bits of 2**mantissa: adding to its last bits adds an integer."""
    return (f.bias + f.mantissa) << f.mantissa


def scaled(x):
    """(x, 0), or (x 2**n, -n) where x is subnormal."""
    f = format_of(x)
    tiny = x < f.smallest
    return where(tiny, x * 2.0 ** (f.mantissa + 2), x), where(tiny, -2.0 - f.mantissa, like(x, 0.0))


def of_one_plus(f, coefficients):
    """(hfsq, s (hfsq + R)) with log(1 + f) = f - (hfsq - s (hfsq + R))."""
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    return half, s * (half + z * polynomial(z, coefficients))


def with_ends(x, y):
    """y, a logarithm of x, corrected at 0, inf, NaN and negative numbers."""
    y = where(x > format_of(x).largest, x, y)
    return where(x > 0.0, y, where(x == 0.0, -math.inf, like(x, math.nan)))


def log(x):
    """The natural logarithm."""
    high, low = format_of(x).log2
    t, extra = scaled(x)
    k, m = split(t)
    k, f = k + extra, m - 1.0
    half, rest = of_one_plus(f, LOG_32 if is_single(x) else LOG_64)
    return with_ends(x, k * high - ((half - (rest + k * low)) - f))


def log2(x):
    """The logarithm to base 2, exact for powers of 2."""
    t, extra = scaled(x)
    k, m = split(t)
    half, rest = of_one_plus(m - 1.0, LOG_32 if is_single(x) else LOG_64)
    return with_ends(x, (k + extra) + (((m - 1.0) - (half - rest)) * (1 / math.log(2))))


def log10(x):
    """The logarithm to base 10."""
    t, extra = scaled(x)
    k, m = split(t)
    half, rest = of_one_plus(m - 1.0, LOG_32 if is_single(x) else LOG_64)
    return with_ends(x,
                     (k + extra) * math.log10(2) + ((m - 1.0) - (half - rest)) * (1 / math.log(10)))


def log1p(x):
    """log(1 + x), accurate for small x."""
    high, low = format_of(x).log2
    u = 1.0 + x
    k, m = split(u)
    lost = where(u > 2.0, 1.0 - (u - x), x - (u - 1.0)) / u  # by rounding 1 + x
    f = m - 1.0
    half, rest = of_one_plus(f, LOG_32 if is_single(x) else LOG_64)
    y = k * high - ((half - (rest + (k * low + lost))) - f)
    y = where(absolute(x) < format_of(x).smallest, x, y)  # keeps the sign of 0
    y = where(x > format_of(x).largest, x, y)
    return where(x > -1.0, y, where(x == -1.0, -math.inf, like(x, math.nan)))


def logaddexp(a, b):
    """log(exp(a) + exp(b))."""
    larger = where(a > b, a, b)
    d = -absolute(a - b)
    k, r = parts(between(d, -104.0, 0.0) if is_single(a) else between(d, -746.0, 0.0))
    e = times_power_of_two(1.0 + above_one(r), k)
    s = e / (2.0 + e)
    z = s * s
    y = e - s * (e - z * polynomial(z, LOG1P_32 if is_single(a) else LOG1P_64))
    return where(a == b, a + math.log(2), larger + y)
