"""What can raise inside a `try` is asked before: an exception that is caught is a branch."""

import math

import numpy as np


def f(x, y):
    try:
        r = math.sqrt(x - y)
    except ValueError:
        r = 0.0
    return r * x


ARGS = (1.7, 0.3)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", y: "float64"):
    t: "float64" = x - y
    t_1: "bool" = t < 0
    if t_1:
        r = 0.0
    else:
        r: "float64" = math.sqrt(t)
    t_2: "float64" = r * x
    return t_2


# ------------------------------ what s2s makes of it


def f_grad(x, y):
    """The derivative of f (caught_exception_is_a_branch.py, line 8) with respect to x and y, for
    x: float, y: float.
    """
    t = x - y
    t_1 = t < 0
    if t_1:
        r = 0.0
    else:
        r = math.sqrt(t)
    with np.errstate(all="ignore"):
        if t_1:
            t_2 = 0.0
        else:
            t_2 = np.divide(0.5 * x, math.sqrt(t))
        y_bar = -t_2
        x_bar = r + t_2
    return x_bar, y_bar
