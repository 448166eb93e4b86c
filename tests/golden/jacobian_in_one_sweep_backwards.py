"""All rows of a Jacobian are carried by one sweep: only the cotangents have an axis of them, the primal runs once."""

import numpy as np


def f(x, k):
    y = np.sin(x)
    for i in range(1, len(x)):
        y[i] = y[i] * y[i - 1] + k
    return y


ARGS = (np.array([0.3, -0.8, 1.1, 0.5]), 0.2)
WRT = 0
OF = "jacrev"


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", k: "float64"):
    y: "float64[x.0]" = np.sin(x)
    n: "int64" = len(x)
    for i in range(1, n):
        t: "float64" = y[i]
        t_1: "int64" = i - 1
        t_2: "float64" = y[t_1]
        t_3: "float64" = t * t_2
        t_4: "float64" = t_3 + k
        y[i] = t_4
    return y


# ------------------------------ what s2s makes of it


def f_jacrev(x, k):
    """The Jacobian of f (jacobian_in_one_sweep_backwards.py, line 6) with respect to x, for
    x: float64[:], k: float.
    """
    y = np.sin(x)
    n = len(x)
    t_tape = np.empty(max(n - 1, 0))
    for i in range(1, n):
        t_tape[i - 1] = y[i]
        y[i] = y[i] * y[i - 1] + k
    y_bar = np.eye(n)
    for i in range(n - 1, 0, -1):
        t = y_bar[:, i]
        t_1 = t * y[i - 1]
        y_bar[:, i - 1] += t * t_tape[i - 1]
        y_bar[:, i] = t_1
    x_bar = y_bar * np.cos(x)
    return x_bar
