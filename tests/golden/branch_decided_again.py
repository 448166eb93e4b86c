"""A branch is not recorded: the sweep back decides it again from the same values."""

import numpy as np


def f(x, y):
    if x * y > 0.5:
        z = np.sin(x) * y
    elif y > 0.0:
        z = x**3
    else:
        return x
    return z * z


ARGS = (0.7, 1.3)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", y: "float64"):
    t: "float64" = x * y
    t_1: "bool" = t > 0.5
    if t_1:
        t_2: "float64" = np.sin(x)
        z: "float64" = t_2 * y
        t_3 = False
    else:
        t_4: "bool" = y > 0.0
        if t_4:
            z: "float64" = x**3
            t_3 = False
        else:
            t_3 = True
    if not t_3:
        x: "float64" = z * z
    return x


# ------------------------------ what s2s makes of it


def f_grad(x, y):
    """The derivative of f (branch_decided_again.py, line 6) with respect to x and y, for
    x: float, y: float.
    """
    t = x * y > 0.5
    if t:
        z = np.sin(x) * y
        t_1 = False
    elif y > 0.0:
        z = x**3
        t_1 = False
    else:
        t_1 = True
    if t_1:
        x_bar = 1.0
        z_bar = 0.0
    else:
        x_bar = 0.0
        z_bar = 2.0 * z
    if t:
        y_bar = z_bar * np.sin(x)
        x_bar = z_bar * y * np.cos(x)
    else:
        if y > 0.0:
            x_bar = 3 * z_bar * x**2
        y_bar = 0.0
    return x_bar, y_bar
