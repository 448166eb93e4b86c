"""An element that is read, overwritten and read again has two cotangents, one after the other."""

import numpy as np


def f(x):
    a = np.zeros(2)
    a[0] = np.sin(x)
    y = a[0] * x
    a[0] = y * y
    a[1] = a[0] * y
    return a[0] * a[1]


ARGS = (0.8,)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64"):
    a: "float64[2]" = np.zeros(2)
    t: "float64" = np.sin(x)
    y: "float64" = t * x
    t_1: "float64" = y * y
    a[0] = t_1
    t_2: "float64" = t_1 * y
    a[1] = t_2
    t_3: "float64" = a[0]
    t_4: "float64" = t_3 * t_2
    return t_4


# ------------------------------ what s2s makes of it


def f_grad(x):
    """The derivative of f (written_twice_and_read_between.py, line 6) with respect to x, for
    x: float.
    """
    a = np.zeros(2)
    # line 3: a[0] = np.sin(x)
    t = np.sin(x)
    # line 4: y = a[0] * x
    y = t * x
    # line 5: a[0] = y * y
    t_1 = y * y
    a[0] = t_1
    # line 6: a[1] = a[0] * y
    t_2 = t_1 * y
    a[1] = t_2
    # line 7, backwards: return a[0] * a[1]
    a_bar = np.zeros_like(a)
    a_bar[0] = t_2
    # line 6, backwards
    t_3 = a_bar[1]
    a_bar[1] = 0.0
    t_4 = a[0] + t_3
    # line 5, backwards
    y_bar = t_4 * t_1 + 2 * (t_4 * y + a_bar[0]) * y
    # line 3, backwards
    x_bar = y_bar * t + y_bar * x * np.cos(x)
    return x_bar
