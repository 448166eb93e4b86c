"""The tangents run through the loop in the order of the primal, which they leave alone."""

import numpy as np


def f(u, k, sweeps):
    u = u.copy()
    for s in range(sweeps):
        for i in range(1, len(u)):
            u[i] = u[i] + k * np.sin(u[i - 1])
    return u


ARGS = (np.array([0.9, -0.8, 1.1]), 0.7, 2)
OF = "jvp in two"


# ------------------------------ the same, as the compiler sees it


def f_ssa(u: "float64[u.0]", k: "float64", sweeps: "int64"):
    n: "int64" = len(u)
    u: "float64[u.0]" = u.copy()
    for s in range(sweeps):
        for i in range(1, n):
            t: "float64" = u[i]
            t_1: "int64" = i - 1
            t_2: "float64" = u[t_1]
            t_3: "float64" = np.sin(t_2)
            t_4: "float64" = k * t_3
            t_5: "float64" = t + t_4
            u[i] = t_5
    return u


# ------------------------------ what s2s makes of it


def f_fwd(u, k, sweeps):
    """The value of f (linearized_once.py, line 6), and what its tangents need."""
    n = len(u)
    u = u.copy()
    t_tape = np.empty((max(sweeps, 0), max(n - 1, 0)))
    for s in range(sweeps):
        for i in range(1, n):
            t_tape[s, i - 1] = u[i - 1]
            u[i] = u[i] + k * np.sin(u[i - 1])
    return u, n, t_tape


def f_lin(u_dot, k_dot, sweeps_dot, k, sweeps, saved, t_tape):
    """The tangent of the result of f (linearized_once.py, line 6), for tangents of its
    arguments.
    """
    u_dot = u_dot.copy()
    for s in range(sweeps):
        for i in range(1, saved):
            t = k_dot * np.sin(t_tape[s, i - 1]) + u_dot[i - 1] * np.cos(t_tape[s, i - 1]) * k
            u_dot[i] = u_dot[i] + t
    return u_dot


def f_jvp(u, k, sweeps, u_dot, k_dot, sweeps_dot):
    """Both halves: the value of f (linearized_once.py, line 6), and its tangent."""
    u, saved, t_tape = f_fwd(u, k, sweeps)
    return u, f_lin(u_dot, k_dot, sweeps_dot, k, sweeps, saved, t_tape)
