"""An array chosen by a condition is written into by that name: the one chosen changes, and the other does not."""

import numpy as np


def f(x, y, first):
    a = x * y
    b = np.cos(y)
    chosen = a if first else b
    chosen[0] = x[1] ** 2
    return np.sum(a * b)


ARGS = (np.array([0.3, 0.9]), np.array([0.5, -0.2]), True)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", y: "float64[y.0]", first: "bool"):
    a: "float64[x.0]" = x * y
    b: "float64[y.0]" = np.cos(y)
    t: "float64" = x[1]
    t_1: "float64" = t**2
    if first:
        a[0] = t_1
    else:
        b[0] = t_1
    t_2: "float64[x.0]" = a * b
    t_3: "float64" = np.sum(t_2)
    return t_3


# ------------------------------ what s2s makes of it


def f_grad(x, y, first):
    """The derivative of f (array_chosen_by_a_condition.py, line 6) with respect to x and y, for
    x: float64[:], y: float64[:], first: bool.
    """
    a = x * y
    b = np.cos(y)
    t = x[1] ** 2
    if first:
        a[0] = t
    else:
        b[0] = t
    a_bar = np.full(a.shape, b)
    if first:
        t_1 = a_bar[0]
        a_bar[0] = 0.0
        b_bar = a
    else:
        t_1 = a[0]
        a[0] = 0.0
        b_bar = a
    t_2 = np.zeros_like(x)
    t_2[1] = 2 * t_1 * x[1]
    x_bar = t_2 + a_bar * y
    y_bar = a_bar * x - b_bar * np.sin(y)
    return x_bar, y_bar
