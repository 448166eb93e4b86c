"""A row is a view: what is written into it is written into its array."""

import numpy as np


def f(x):
    a = x * 1.5
    row = a[1]
    row[0] = row[1] * a[0, 0]
    return np.sum(a * a)


ARGS = (np.array([[0.1, 0.5], [0.4, 0.9]]),)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0, x.1]"):
    a: "float64[x.0, x.1]" = x * 1.5
    t: "float64" = a[1, 1]
    t_1: "float64" = a[0, 0]
    t_2: "float64" = t * t_1
    a[1, 0] = t_2
    t_3: "float64[x.0, x.1]" = a * a
    t_4: "float64" = np.sum(t_3)
    return t_4


# ------------------------------ what s2s makes of it


def f_grad(x):
    """The derivative of f (write_through_a_view.py, line 6) with respect to x, for
    x: float64[:, :].
    """
    a = x * 1.5
    # line 4: row[0] = row[1] * a[0, 0]
    t = a[1, 1]
    t_1 = a[0, 0]
    a[1, 0] = t * t_1
    # line 5, backwards: return np.sum(a * a)
    a_bar = 2.0 * a
    # line 4, backwards
    t_2 = a_bar[1, 0]
    a_bar[1, 0] = 0.0
    a_bar[0, 0] += t_2 * t
    a_bar[1, 1] += t_2 * t_1
    # line 2, backwards: a = x * 1.5
    x_bar = 1.5 * a_bar
    return x_bar
