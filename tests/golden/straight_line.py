"""What the derivative does not need is gone; what it needs is said once."""

import numpy as np


def f(x, y):
    a = np.sin(x) * y
    return a + np.exp(-x)


ARGS = (0.7, 1.3)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", y: "float64"):
    t: "float64" = np.sin(x)
    a: "float64" = t * y
    t_1: "float64" = -x
    t_2: "float64" = np.exp(t_1)
    t_3: "float64" = a + t_2
    return t_3


# ------------------------------ what s2s makes of it


def f_grad(x, y):
    """The derivative of f (straight_line.py, line 6) with respect to x and y, for x: float,
    y: float.
    """
    y_bar = np.sin(x)
    x_bar = y * np.cos(x) - np.exp(-x)
    return x_bar, y_bar
