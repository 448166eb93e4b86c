"""a ** b for a > 0 as exp(b log(a)), with the logarithm in extra precision.

Logarithms are kept as sums of two numbers. Other a, NaN and infinities are left to libm.
"""

from __future__ import annotations

from .exponential import above_one, between, parts, power_of_two, times_power_of_two
from .lanes import (
    absolute,
    format_of,
    is_single,
    like,
    narrow,
    polynomial,
    product,
    rarely,
    where,
    wide,
)
from .logarithm import LOG_64, split

LOG2 = (0.6931471805592082, 7.371002565167799e-13)  # the first of 40 bits
# (R(s**2) - 2/3) / s**2 as a function of s**2; see logarithm.py
TAIL = (0.4, 0.28571428571429425, 0.2222222222162076, 0.18181818343316125, 0.1538459412012637,
        0.13334850282547114, 0.11705021567538627, 0.11735818855512968)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)


def power(a, b):
    """a to the power of b."""
    f = format_of(a)
    usual = (a >= f.smallest) & (a <= f.largest) & (absolute(b) <= f.largest)
    if is_single(a):
        x, y = wide(a), wide(b)
        k, m = split(x)
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        t = y * (k * 0.6931471805599453 + (2.0 * s + s * z * polynomial(z, LOG_64[:5])))
        k, r = parts(between(t, -110.0, 100.0))
        found = narrow((1.0 + above_one(r)) * power_of_two(k))
    else:
        high, low = logarithm(a)
        t, rest = product(b, high)
        rest = where(absolute(t) < 800.0, rest + b * low, 0.0)
        k, r = parts(between(t, -800.0, 800.0))
        found = times_power_of_two(1.0 + above_one(r + rest), k)
    return rarely(~usual, "power", found, a, b)


def logarithm(x):
    """log(x) of a normal number as the sum of two, good to some 68 bits."""
    k, m = split(x)
    f = m - 1.0
    d = 2.0 + f
    d_low = f - (d - 2.0)
    s = f / d
    p, p_low = product(s, d)
    s_low = (((f - p) - p_low) - s * d_low) / d
    z, z_low = product(s, s)
    z_low = z_low + 2.0 * s * s_low
    # log(1 + f) = 2 s + s (2/3 z + z**2 R)
    u, u_low = product(z, like(z, TWO_THIRDS[0]))
    u_low = u_low + (z * TWO_THIRDS[1] + z_low * TWO_THIRDS[0]) + z * z * polynomial(z, TAIL)
    v, v_low = product(s, u)
    v_low = v_low + s * u_low + s_low * u
    # k log(2) + 2 s + v, the largest first
    a = k * LOG2[0]
    b = 2.0 * s
    c = a + b
    c_low = (a - c) + b
    h = c + v
    h_low = (c - h) + v
    low = h_low + (c_low + (k * LOG2[1] + 2.0 * s_low + v_low))
    y = h + low
    return y, (h - y) + low
