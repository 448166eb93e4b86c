"""arctan and arctan2: a quotient no larger than tan(pi / 8), by one division, and its arctangent by
a polynomial.
"""

from __future__ import annotations

import math

from .lanes import absolute, copysign, format_of, is_single, like, polynomial, where

# (arctan(t) / t - 1) / t**2 as a function of t**2, for |t| <= tan(pi / 8)
ARCTAN_64 = (-0.3333333333333333, 0.1999999999999548, -0.14285714284657894, 0.11111111014561013,
             -0.09090904549884611, 0.07692182535116648, -0.06664502215671447, 0.058580687568615106,
             -0.05085030492810941, 0.03921955253255129, -0.019162068915902577)
ARCTAN_32 = (-0.3333333134651184, 0.19999538362026215, -0.14263896644115448, 0.10743099451065063,
             -0.06449835002422333)
TAN_PI_8 = 0.41421356237309503
PI_64, PI_32 = (math.pi, 1.2246467991473532e-16), (3.1415927410125732, -8.742278000372475e-08)


def of_quotient(a, b):
    """arctan(a / b) as the sum of two numbers, for 0 <= a <= b."""
    high, low = PI_32 if is_single(a) else PI_64
    far = a > b * TAN_PI_8
    t = where(far, a - b, a) / where(far, a + b, b)
    z = t * t
    y = t + t * z * polynomial(z, ARCTAN_32 if is_single(a) else ARCTAN_64)
    return where(far, high / 4, like(a, 0.0)), where(far, y + low / 4, y)


def arctan(x):
    """The arctangent."""
    high, low = PI_32 if is_single(x) else PI_64
    a = absolute(x)
    a = where(a > format_of(x).largest, format_of(x).largest, a)
    beyond = a > 1.0
    y, rest = of_quotient(where(beyond, 1.0, a), where(beyond, a, 1.0))
    return copysign(where(beyond, (high / 2 - y) + (low / 2 - rest), y + rest), x)


def arctan2(y, x):
    """The angle of the point (x, y)."""
    high, low = PI_32 if is_single(x) else PI_64
    f = format_of(x)
    a, b = absolute(y), absolute(x)
    steep = a > b
    less, more = where(steep, b, a), where(steep, a, b)
    both = less > f.largest
    less = where(both, 1.0, where(more > f.largest, 0.0, less))  # inf / inf is 1 here,
    # and 0 / 0 is 0
    more = where(both | (more == 0.0), 1.0, where(more > f.largest, f.largest, more))
    large, small = more > f.largest / 4, more < f.smallest * 2.0**f.mantissa
    scale = where(large, 2.0**-60, where(small, 2.0**60, like(x, 1.0)))
    angle, rest = of_quotient(less * scale, more * scale)
    angle, rest = where(steep, high / 2 - angle, angle), where(steep, low / 2 - rest, rest)
    left = copysign(like(x, 1.0), x) < 0.0
    angle, rest = where(left, high - angle, angle), where(left, low - rest, rest)
    return where((x == x) & (y == y), copysign(angle + rest, y), x + y)
