"""erf and erfc: a polynomial near 0, and beyond it exp(-x**2) times a polynomial in a bounded
quotient.
"""

from __future__ import annotations

import math

from .exponential import EXP_32, LOG2E, above_one, between, parts, power_of_two, times_power_of_two
from .lanes import (
    absolute,
    bits,
    copysign,
    is_single,
    narrow,
    number,
    polynomial,
    rounded,
    where,
    wide,
)

LOG2 = math.log(2.0)

# erf(x) / x - 1 as a function of x**2, for |x| <= 1
ERF_64 = (0.12837916709551256, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777,
          0.0052239776071164225, -0.0008548325975389692, 0.00012055294904839707,
          -1.492473690741966e-05, 1.6447424703317362e-06, -1.6208483801871705e-07,
          1.3720064546777686e-08, -7.795898827002142e-10)
ERF_32 = (0.12837916612625122, -0.3761262595653534, 0.11283594369888306, -0.02685421146452427,
          0.005189087241888046, -0.000801686430349946, 7.875874871388078e-05)
# erfc(x) exp(x**2) as a function of (x - 2.25) / (x + 2) for 1 <= x <= 6
TAIL_64 = (0.23108725873039188, -0.3760676369371843, 0.20179919566868576, -0.06491404198148189,
           0.0045040211734989856, 0.004894742893818651, -0.0008648198664094311,
           -0.0006144093320284397, 8.567150588829248e-05, 0.0001070292924305122,
           3.5962988263151064e-06, -1.888777135886358e-05, -5.527955222840587e-06,
           2.294390412735127e-06, 1.676312580011474e-06)
# log(erfc(x)) as a function of x - 1 for 1 <= x <= 4: the best in least squares, of weight erfc(x),
# at which its error counts
TAIL_32 = (-1.8496055603027344, -2.63895845413208, -0.8432268500328064, -0.04102613031864166,
           0.009026207029819489, -0.0011504836147651076)
# erfc(x) exp(x**2) (1 + 2 x) as a function of (x - 3.5) / (x + 3) for 0.5 <= x <= 27.5, and of (x -
# 2.5) / (x + 2) to 10.5
WHOLE_64 = (1.2423492448711544, -0.1300085244135036, -0.018387832254763897, 0.0761157219932887,
            -0.06902065450809161, 0.038666504453242344, -0.013687723658845654,
            0.0020107685175802374, 0.0007011735229530711, -0.0003989928938181413,
            5.806487658130157e-09, 4.9931957870763264e-05, -5.669755133872033e-06,
            -6.6027346564161175e-06, 1.0860548825416453e-06, 1.0142941060209376e-06,
            -1.4904894158212628e-07, -1.7346029428075391e-07, 1.3695385002728604e-08,
            2.7885507533336112e-08, -3.766609759672614e-10, -2.8485117463705286e-09)
WHOLE_32 = (1.26483818686879, -0.11012115691472718, -0.09122226142726299, 0.09777119318139955,
            -0.03559425096328708, -0.0011325346099613342, 0.0044841872873677404,
            -2.9619375569514984e-05, -0.0005825275187993241, -8.1837628353642e-05)


def erf(x):
    """The error function."""
    a = absolute(x)
    b = between(a, 1.0, 4.0 if is_single(x) else 6.0)
    k, r = parts(polynomial(b - 1.0, TAIL_32) if is_single(x) else -b * b)
    tail = (1.0 + above_one(r)) * power_of_two(k)
    if not is_single(x):
        tail = tail * polynomial((b - 2.25) / (b + 2.0), TAIL_64)
    small = a * a
    near = a + a * polynomial(where(a < 1.0, small, 1.0), ERF_32 if is_single(x) else ERF_64)
    return copysign(where(a < 1.0, near, 1.0 - tail), x)


def erfc(x):
    """1 - erf(x), accurate for large x."""
    single = is_single(x)
    if single:  # in double precision, accurate to single
        x = wide(x)
        a = absolute(x)
        b = between(a, 0.5, 10.5)
        k = rounded(b * b * -LOG2E)
        r = -b * b - k * LOG2
        above = b + 2.0
        below = 1.0 + 2.0 * b
        inverse = 1.0 / (above * below)  # one division for two
        v = (b - 2.5) * below * inverse
        tail = ((1.0 + r + r * r * polynomial(r, EXP_32)) * power_of_two(k)
                * polynomial(v, WHOLE_32) * (above * inverse))
        near = x + x * polynomial(where(a < 0.5, x * x, 0.25), ERF_32)
    else:
        a = absolute(x)
        b = between(a, 0.5, 27.5)
        head = number(bits(b) & 0xFFFFFFFFF8000000)  # exact: few bits
        k, r = parts(-head * head)
        r = r - (b - head) * (b + head)
        v = (b - 3.5) / (b + 3.0)
        tail = times_power_of_two((1.0 + above_one(r)) * polynomial(v, WHOLE_64) / (1.0 + 2.0 * b),
                                  k)
        near = x + x * polynomial(where(a < 0.5, x * x, 0.25), ERF_64)
    y = where(a < 0.5, 1.0 - near, where(x < 0.0, 2.0 - tail, tail))
    return narrow(y) if single else y
