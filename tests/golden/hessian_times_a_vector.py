"""One direction of the gradient: the work of a few gradients, and no matrix."""

import numpy as np


def f(u, k):
    energy = 0.0
    for i in range(1, len(u)):
        d = u[i] - u[i - 1]
        energy += k * d**4
    return energy


ARGS = (np.array([0.9, -0.8, 1.1, 0.4]), 0.7)
OF = "hvp"


# ------------------------------ the same, as the compiler sees it


def f_ssa(u: "float64[u.0]", k: "float64"):
    n: "int64" = len(u)
    energy = 0.0
    for i in range(1, n):
        t: "float64" = u[i]
        t_1: "int64" = i - 1
        t_2: "float64" = u[t_1]
        d: "float64" = t - t_2
        t_3: "float64" = d**4
        t_4: "float64" = k * t_3
        energy: "float64" = energy + t_4
    return energy


# ------------------------------ what s2s makes of it


def f_hvp(u, k, u_dot, k_dot):
    """The Hessian of f (hessian_times_a_vector.py, line 6), times the tangents of its arguments,
    for u: float64[:], k: float, u_dot: float64[:], k_dot: float.
    """
    t = 4 * k
    t_1 = 4 * k_dot
    u_bar_dot = np.zeros_like(u)
    for i in range(len(u) - 1, 0, -1):
        d = u[i] - u[i - 1]
        d_dot = u_dot[i] - u_dot[i - 1]
        d_bar_dot = t_1 * d**3 + 3 * d_dot * d**2 * t
        u_bar_dot[i - 1] -= d_bar_dot
        u_bar_dot[i] += d_bar_dot
    return u_bar_dot
