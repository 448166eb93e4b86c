"""A `return` inside a loop ends the loop and carries the result out."""

import numpy as np


def f(x, limit):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] * x[i]
        if total > limit:
            return total * x[i]
    return -total


ARGS = (np.array([0.3, 0.8, 0.5, 0.9]), 0.9)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", limit: "float64"):
    n: "int64" = len(x)
    total = 0.0
    done = False
    for i in range(n):
        t: "float64" = x[i]
        t_1: "float64" = t * t
        total: "float64" = total + t_1
        t_2: "bool" = total > limit
        if t_2:
            t_3: "float64" = total * t
            done = True
            break
    if not done:
        t_3: "float64" = -total
    return t_3


# ------------------------------ what s2s makes of it


def f_grad(x, limit):
    """The derivative of f (return_from_a_loop.py, line 6) with respect to x, for x: float64[:],
    limit: float.
    """
    total = 0.0
    done = False
    trips = 0
    for i in range(len(x)):
        trips += 1
        total = total + x[i] * x[i]
        if total > limit:
            done = True
            break
    if done:
        t = 1.0
        total_bar = 0.0
    else:
        t = 0.0
        total_bar = -1.0
    x_bar = np.zeros_like(x)
    for i in range(trips - 1, -1, -1):
        if i == trips - 1 and done:
            total_bar += t * x[i]
            t_1 = t * total
        else:
            t_1 = 0.0
        x_bar[i] += t_1 + 2 * total_bar * x[i]
        t = 0.0
    return x_bar
