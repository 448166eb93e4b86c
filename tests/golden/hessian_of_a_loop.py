"""Forward over reverse: the gradient, and beside each of its lines the tangents of all directions."""

import numpy as np


def f(x, n):
    y = x
    for _ in range(n):
        y = y - 0.1 * y**3
    return np.sum(y)


ARGS = (np.array([0.9, -0.8, 1.1]), 3)
WRT = 0
OF = "hessian"


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", n: "int64"):
    y = x
    for _ in range(n):
        t: "float64[x.0]" = y**3
        t_1: "float64[x.0]" = 0.1 * t
        y: "float64[x.0]" = y - t_1
    t_2: "float64" = np.sum(y)
    return t_2


# ------------------------------ what s2s makes of it


def f_hessian(x, n):
    """The second derivatives of f (hessian_of_a_loop.py, line 6) with respect to x, for
    x: float64[:], n: int.
    """
    n_1 = len(x)
    x_dot = np.eye(n_1)
    y_tape = np.empty((max(n, 0), n_1))
    y = x
    y_dot = x_dot
    y_tape_dot = np.zeros((n_1, len(y_tape), n_1))
    for i in range(n):
        y_tape[i] = y
        y_tape_dot[:, i, :] = y_dot
        t = y**2
        y = y - 0.1 * y**3
        y_dot -= 0.1 * (3 * y_dot * t)
    # backwards
    y_bar = np.ones(y.shape)
    y_bar_dot = np.zeros((n_1, n_1))
    for i in range(n - 1, -1, -1):
        y = y_tape[i]
        y_dot = y_tape_dot[:, i, :]
        t_1 = y**2
        t_2 = 0.30000000000000004 * y_bar
        y_bar -= t_2 * t_1
        y_bar_dot -= 0.30000000000000004 * y_bar_dot * t_1 + 2 * y_dot * y * t_2
    return y_bar_dot.T
