"""tanh and the logistic function, sinh and cosh: by exp(-|x|), which neither overflows nor cancels.
"""

from __future__ import annotations

from .exponential import above_one, between, exp, parts, power_of_two, times_power_of_two
from .lanes import absolute, copysign, format_of, is_single, like, where


def tanh(x):
    """The hyperbolic tangent: -t / (2 + t) with t = expm1(-2|x|)."""
    k, r = parts(between(-2.0 * absolute(x), -20.0 if is_single(x) else -44.0, 0.0))
    scale = power_of_two(k)
    t = scale * above_one(r) + (scale - 1.0)
    return copysign(t / (2.0 + t), x)


def expit(x):
    """The logistic function 1 / (1 + exp(-x))."""
    e = exp(-absolute(x))
    return where(x < 0.0, e, like(e, 1.0)) / (1.0 + e)


def half_exp(a):
    """exp(a) / 2 for a >= 0, which is finite wherever cosh(a) is."""
    k, r = parts(between(a, 0.0, 90.0 if is_single(a) else 711.0))
    return times_power_of_two(1.0 + above_one(r), k - 1.0)


def cosh(x):
    """The hyperbolic cosine."""
    e = half_exp(absolute(x))
    return where(x == x, e + 0.25 / e, x)


def sinh(x):
    """The hyperbolic sine."""
    a = absolute(x)
    k, r = parts(where(a < 1.0, a, like(a, 0.0)))
    scale = power_of_two(k)
    t = scale * above_one(r) + (scale - 1.0)
    e = half_exp(a)
    y = where(a < 1.0, 0.5 * (t + t / (t + 1.0)), e - 0.25 / e)
    return where(a < format_of(a).smallest, x, copysign(y, x))
