"""A small function that the user calls is read where it is called."""

import numpy as np


def smooth(x):
    return x / np.sqrt(1.0 + x * x)


def f(w, x):
    return smooth(smooth(w * x) + x)


ARGS = (0.7, 1.2)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(w: "float64", x: "float64"):
    t: "float64" = w * x
    t_1: "float64" = t * t
    t_2: "float64" = 1.0 + t_1
    t_3: "float64" = np.sqrt(t_2)
    t_4: "float64" = t / t_3
    t_5: "float64" = t_4 + x
    t_6: "float64" = t_5 * t_5
    t_7: "float64" = 1.0 + t_6
    t_8: "float64" = np.sqrt(t_7)
    t_9: "float64" = t_5 / t_8
    return t_9


# ------------------------------ what s2s makes of it


def f_grad(w, x):
    """The derivative of f (call_of_another_function.py, line 10) with respect to w and x, for
    w: float, x: float.
    """
    # line 2: return smooth(smooth(w * x) + x)
    t = w * x
    # smooth, line 2: return x / np.sqrt(1.0 + x * x)
    t_1 = np.sqrt(1.0 + t * t)
    t_2 = t / t_1
    # line 2
    t_3 = t_2 + x
    # smooth, line 2
    t_4 = np.sqrt(1.0 + t_3 * t_3)
    # smooth, line 2, backwards
    t_5 = 1.0 / t_4 - t_3 / t_4 / t_4 / t_4 * t_3
    t_6 = t_5 / t_1
    t_7 = t_6 - t_6 * t_2 / t_1 * t
    # line 2, backwards
    w_bar = t_7 * x
    x_bar = t_5 + t_7 * w
    return w_bar, x_bar
