"""The sweep back runs over the trips that were made, and no more."""

import numpy as np


def f(x, limit):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2
        if total > limit:
            break
    return np.sin(total)


ARGS = (np.array([0.3, 0.8, 0.5, 0.9]), 0.9)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", limit: "float64"):
    n: "int64" = len(x)
    total = 0.0
    for i in range(n):
        t: "float64" = x[i]
        t_1: "float64" = t**2
        total: "float64" = total + t_1
        t_2: "bool" = total > limit
        if t_2:
            break
    t_3: "float64" = np.sin(total)
    return t_3


# ------------------------------ what s2s makes of it


def f_grad(x, limit):
    """The derivative of f (break_leaves_a_loop.py, line 6) with respect to x, for x: float64[:],
    limit: float.
    """
    total = 0.0
    trips = 0
    for i in range(len(x)):
        trips += 1
        total += x[i] ** 2
        if total > limit:
            break
    t = 2 * np.cos(total)
    x_bar = np.zeros_like(x)
    for i in range(trips - 1, -1, -1):
        x_bar[i] += t * x[i]
    return x_bar
