"""A function that writes into its argument is read in place, and so are its writes."""

import numpy as np


def relax(u, k):
    for i in range(1, len(u)):
        u[i] += k * u[i - 1]


def f(x, k):
    u = x * x
    relax(u, k)
    return np.sum(u)


ARGS = (np.array([0.3, 0.9, -0.4]), 0.5)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", k: "float64"):
    u: "float64[x.0]" = x * x
    n: "int64" = len(x)
    for i in range(1, n):
        t: "float64" = u[i]
        t_1: "int64" = i - 1
        t_2: "float64" = u[t_1]
        t_3: "float64" = k * t_2
        t_4: "float64" = t + t_3
        u[i] = t_4
    t_5: "float64" = np.sum(u)
    return t_5


# ------------------------------ what s2s makes of it


def f_grad(x, k):
    """The derivative of f (callee_writes_into_its_argument.py, line 11) with respect to x and k,
    for x: float64[:], k: float.
    """
    u = x * x
    for i in range(1, len(x)):
        u[i] += k * u[i - 1]
    u_bar = np.ones(u.shape)
    k_bar = 0.0
    for i in range(len(x) - 1, 0, -1):
        k_bar += u_bar[i] * u[i - 1]
        u_bar[i - 1] += u_bar[i] * k
    x_bar = 2 * u_bar * x
    return x_bar, k_bar
