"""The cotangent is masked before it is multiplied, so that the side not taken cannot make a NaN."""

import numpy as np


def f(x):
    return np.sum(np.where(x > 0.0, np.sqrt(np.abs(x)), x * x))


ARGS = (np.array([0.3, -0.8, 0.0, 0.9]),)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]"):
    t: "bool[x.0]" = x > 0.0
    t_1: "float64[x.0]" = np.abs(x)
    t_2: "float64[x.0]" = np.sqrt(t_1)
    t_3: "float64[x.0]" = x * x
    t_4: "float64[x.0]" = np.where(t, t_2, t_3)
    t_5: "float64" = np.sum(t_4)
    return t_5


# ------------------------------ what s2s makes of it


def f_grad(x):
    """The derivative of f (where_does_not_look_at_the_other_side.py, line 6) with respect to x,
    for x: float64[:].
    """
    t = x > 0.0
    t_1 = np.sqrt(np.abs(x))
    with np.errstate(all="ignore"):
        x_bar = np.where(t, 0.0, x + x) + np.where(t, 0.5 / t_1 * np.sign(x), 0.0)
    return x_bar
