"""Forward mode: each line is followed by its tangent."""

import numpy as np


def f(x, y):
    a = np.sin(x) * y
    return a + np.exp(-x)


ARGS = (0.7, 1.3)
OF = "jvp"


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", y: "float64"):
    t: "float64" = np.sin(x)
    a: "float64" = t * y
    t_1: "float64" = -x
    t_2: "float64" = np.exp(t_1)
    t_3: "float64" = a + t_2
    return t_3


# ------------------------------ what s2s makes of it


def f_jvp(x, y, x_dot, y_dot):
    """The value of f (tangent_beside_each_line.py, line 6) and its tangent, for the tangents of
    its arguments, for x: float, y: float, x_dot: float, y_dot: float.
    """
    t = np.sin(x)
    a = t * y
    a_dot = x_dot * np.cos(x) * y + y_dot * t
    t_1 = np.exp(-x)
    return a + t_1, a_dot - x_dot * t_1
