"""All columns of a Jacobian beside the primal: a loop that no direction decides makes its trips once for all of them."""

import numpy as np


def f(x, tolerance):
    while np.sum(x * x) > tolerance:
        x = x - 0.3 * np.sin(x)
    return x


ARGS = (np.array([0.9, -0.8, 1.1]), 0.5)
WRT = 0
OF = "jacfwd"


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", tolerance: "float64"):
    while True:
        t: "float64[x.0]" = x * x
        t_1: "float64" = np.sum(t)
        t_2: "bool" = t_1 > tolerance
        if not t_2:
            break
        t_3: "float64[x.0]" = np.sin(x)
        t_4: "float64[x.0]" = 0.3 * t_3
        x: "float64[x.0]" = x - t_4
    return x


# ------------------------------ what s2s makes of it


def f_jacfwd(x, tolerance):
    """The Jacobian of f (jacobian_in_one_sweep_forwards.py, line 6) with respect to x, for
    x: float64[:], tolerance: float.
    """
    x_dot = np.eye(len(x))
    while np.sum(x * x) > tolerance:
        t = np.cos(x)
        x = x - 0.3 * np.sin(x)
        x_dot -= 0.3 * (x_dot * t)
    return x_dot.T
