"""sin, cos and tan.

x = n pi/2 + r with |r| <= pi/4. pi/2 is subtracted in parts with so few bits that n times each is
exact, and r is kept as the sum of two numbers: near a multiple of pi, where the parts cancel, no
digit is lost. Numbers too large for that (beyond about 2**22) are left to libm, which knows some
1,200 bits of pi.
"""

from __future__ import annotations

from .lanes import (
    absolute,
    bits,
    format_of,
    is_single,
    narrow,
    number,
    polynomial,
    rarely,
    rounded,
    where,
    wide,
)

# pi / 2 in parts of 30 bits, and what remains
PI2_64 = (1.570796325802803, 9.920935791635221e-10, 5.17018297889025e-19, 2.9038559739793605e-28)
PI2_32 = (1.5707963267341256, 6.077100506506192e-11)
LARGEST_64, LARGEST_32 = 2.0**22, 2.0**20
# (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4 as functions of r**2
SIN_64 = (-0.16666666666666666, 0.008333333333330946, -0.0001984126983675497, 2.755731610068303e-06,
          -2.5051131455427946e-08, 1.591810123027412e-10)
COS_64 = (0.041666666666666664, -0.0013888888888887395, 2.4801587298763433e-05,
          -2.7557317270560326e-07, 2.0876146024689747e-09, -1.1382614868556325e-11)
SIN_32 = (-0.16666664661114838, 0.008332748037517147, -0.00019587840521305324)
COS_32 = (0.04166666465830042, -0.0013888302802309161, 2.454789161981386e-05)


def turned(x):
    """(n, sin(r), cos(r)) in double precision, with x = n pi/2 + r."""
    if is_single(x):
        x = wide(x)
        n = rounded(x * 0.6366197723675814)
        r = (x - n * PI2_32[0]) - n * PI2_32[1]
        z = r * r
        return n, r + r * z * polynomial(z, SIN_32), (1.0 - 0.5 * z) + z * z * polynomial(z, COS_32)
    n = rounded(x * 0.6366197723675814)
    a = x - n * PI2_64[0]  # exact, as are the products
    p = n * PI2_64[1]
    b = a - p
    low = (a - b) - p
    q = n * PI2_64[2]
    c = b - q
    low = low + (((b - c) - q) - n * PI2_64[3])
    r = c + low
    low = (c - r) + low
    z = r * r
    v = z * r
    sine = r - ((z * (0.5 * low - v * polynomial(z, SIN_64[1:])) - low) - v * SIN_64[0])
    half = 0.5 * z
    w = 1.0 - half
    cosine = w + (((1.0 - w) - half) + (z * z * polynomial(z, COS_64) - r * low))
    return n, sine, cosine


def quarter(n, sine, cosine):
    """sin(r + n pi/2)."""
    q = bits(n + format_of(n).magic)
    y = where((q & 1) == 0, sine, cosine)
    return number(bits(y) ^ ((q & 2) << 62))


def too_large(x):
    """Whether x is too large for argument reduction with these parts of pi / 2."""
    return absolute(x) > (LARGEST_32 if is_single(x) else LARGEST_64)


def sin(x):
    """The sine."""
    n, sine, cosine = turned(x)
    y = quarter(n, sine, cosine)
    y = narrow(y) if is_single(x) else y
    return rarely(too_large(x), "sin", where(x == 0.0, x, y), x)


def cos(x):
    """The cosine."""
    n, sine, cosine = turned(x)
    y = quarter(n + 1.0, sine, cosine)
    return rarely(too_large(x), "cos", narrow(y) if is_single(x) else y, x)


def tan(x):
    """The tangent."""
    n, sine, cosine = turned(x)
    even = (bits(n + format_of(n).magic) & 1) == 0
    y = where(even, sine, -cosine) / where(even, cosine, sine)
    y = narrow(y) if is_single(x) else y
    return rarely(too_large(x), "tan", where(x == 0.0, x, y), x)
