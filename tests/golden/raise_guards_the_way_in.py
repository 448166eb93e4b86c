"""A guard that raises is two lines above the rest, and costs the derivative nothing."""

import numpy as np


def f(x, n):
    if n < 0:
        raise ValueError(f"n is {n}, and must not be negative")
    total = 0.0
    for k in range(n):
        total += np.sin(x) ** k
    return total


ARGS = (0.7, 4)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", n: "int64"):
    t: "bool" = n < 0
    if t:
        raise ValueError(f"n is {n}, and must not be negative")
    t_1: "float64" = np.sin(x)
    total = 0.0
    for k in range(n):
        t_2: "float64" = t_1**k
        total: "float64" = total + t_2
    return total


# ------------------------------ what s2s makes of it


def f_grad(x, n):
    """The derivative of f (raise_guards_the_way_in.py, line 6) with respect to x, for x: float,
    n: int.
    """
    if n < 0:
        raise ValueError(f"n is {n}, and must not be negative")
    t = np.sin(x)
    t_1 = 0.0
    for k in range(n - 1, -1, -1):
        t_1 += k * t ** (1 if k == 0 else k - 1)
    x_bar = t_1 * np.cos(x)
    return x_bar
