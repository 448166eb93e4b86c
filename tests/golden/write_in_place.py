"""An update in place is undone in place; of the overwritten elements only what the sweep reads is saved."""

import numpy as np


def f(u, k, sweeps):
    u = u.copy()
    for s in range(sweeps):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


ARGS = (np.array([0.1, 0.5, 0.4, 0.9, 1.2]), 0.2, 3)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(u: "float64[u.0]", k: "float64", sweeps: "int64"):
    n: "int64" = len(u)
    u: "float64[u.0]" = u.copy()
    t: "int64" = n - 1
    for s in range(sweeps):
        for i in range(1, t):
            t_1: "float64" = u[i]
            t_2: "int64" = i - 1
            t_3: "float64" = u[t_2]
            t_4: "float64" = 2 * t_1
            t_5: "float64" = t_3 - t_4
            t_6: "int64" = i + 1
            t_7: "float64" = u[t_6]
            t_8: "float64" = t_5 + t_7
            t_9: "float64" = k * t_8
            t_10: "float64" = t_1 + t_9
            u[i] = t_10
    t_11: "float64[u.0]" = u * u
    t_12: "float64" = np.sum(t_11)
    return t_12


# ------------------------------ what s2s makes of it


def f_grad(u, k, sweeps):
    """The derivative of f (write_in_place.py, line 6) with respect to u and k, for
    u: float64[:], k: float, sweeps: int.
    """
    n = len(u)
    u = u.copy()
    t_tape = np.empty((max(sweeps, 0), max(n - 2, 0)))
    for s in range(sweeps):
        for i in range(1, n - 1):
            t = u[i - 1] - 2 * u[i] + u[i + 1]
            t_tape[s, i - 1] = t
            u[i] = u[i] + k * t
    u_bar = 2.0 * u
    k_bar = 0.0
    for s in range(sweeps - 1, -1, -1):
        for i in range(n - 2, 0, -1):
            t_1 = u_bar[i]
            t_2 = t_1 * k
            k_bar += t_1 * t_tape[s, i - 1]
            u_bar[i + 1] += t_2
            u_bar[i - 1] += t_2
            u_bar[i] = t_1 - 2 * t_2
    return u_bar, k_bar
