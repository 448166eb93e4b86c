"""A write where a mask is true: the cotangent leaves there, and nowhere else."""

import numpy as np


def f(x, low):
    y = np.sin(x)
    y[x < low] = low * 2.0
    return np.sum(y[y > 0.0] ** 2)


ARGS = (np.array([0.3, 0.9, -0.4, 1.2]), 0.1)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", low: "float64"):
    y: "float64[x.0]" = np.sin(x)
    t: "float64" = low * 2.0
    t_1: "bool[x.0]" = x < low
    y[t_1] = t
    t_2: "bool[x.0]" = y > 0.0
    t_3: "float64[d1]" = y[t_2]
    t_4: "float64[d1]" = t_3**2
    t_5: "float64" = np.sum(t_4)
    return t_5


# ------------------------------ what s2s makes of it


def f_grad(x, low):
    """The derivative of f (write_through_a_mask.py, line 6) with respect to x and low, for
    x: float64[:], low: float.
    """
    y = np.sin(x)
    # line 3: y[x < low] = low * 2.0
    t = x < low
    y[t] = low * 2.0
    # line 4: return np.sum(y[y > 0.0] ** 2)
    t_1 = y > 0.0
    # line 4, backwards
    y_bar = np.zeros_like(y)
    y_bar[t_1] += 2 * y[t_1]
    # line 3, backwards
    t_2 = y_bar[t]
    y_bar[t] = 0.0
    low_bar = 2.0 * np.sum(t_2)
    # line 2, backwards: y = np.sin(x)
    x_bar = y_bar * np.cos(x)
    return x_bar, low_bar
