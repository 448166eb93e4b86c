"""A function with rules for reverse mode: one that says what to keep, one that makes cotangents of it; both are called."""

import numpy as np

import s2s


def f(u, k):
    @s2s.custom_vjp
    def smoothed(u, k):
        u = u.copy()
        for s in range(3):
            u[1:-1] = u[1:-1] + k * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        return u

    def fwd(u, k):
        return smoothed(u, k), k

    def bwd(k, v_bar):
        u_bar = v_bar.copy()
        for s in range(3):
            inner = k * u_bar[1:-1]
            u_bar[1:-1] -= 2.0 * inner
            u_bar[2:] += inner
            u_bar[:-2] += inner
        return u_bar, None

    smoothed.defvjp(fwd, bwd)
    v = smoothed(u, k)
    return np.sum(v * v)


ARGS = (np.array([0.3, -0.7, 1.2, 0.4, 0.9]), 0.2)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def smoothed(u: "float64[u.0]", k: "float64"):
    u: "float64[u.0]" = u.copy()
    for s in range(3):
        t: "float64[u.0-2]" = u[1:-1]
        t_1: "float64[u.0-2]" = u[2:]
        t_2: "float64[u.0-2]" = u[1:-1]
        t_3: "float64[u.0-2]" = 2.0 * t_2
        t_4: "float64[u.0-2]" = t_1 - t_3
        t_5: "float64[u.0-2]" = u[:-2]
        t_6: "float64[u.0-2]" = t_4 + t_5
        t_7: "float64[u.0-2]" = k * t_6
        t_8: "float64[u.0-2]" = t + t_7
        u[1:-1] = t_8
    return u


def f_ssa(u: "float64[u.0]", k: "float64"):
    v: "float64[u.0]" = smoothed(u, k)
    t: "float64[u.0]" = v * v
    t_1: "float64" = np.sum(t)
    return t_1


# ------------------------------ what s2s makes of it


def smoothed(u, k):
    u = u.copy()
    for s in range(3):
        u[1:-1] = u[1:-1] + k * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return u


def smoothed_bwd(k, y_bar):
    u_bar = y_bar.copy()
    for s in range(3):
        inner = k * u_bar[1:-1]
        u_bar[1:-1] -= 2.0 * inner
        u_bar[2:] += inner
        u_bar[:-2] += inner
    return u_bar


def f_grad(u, k):
    """The derivative of f (rule_runs_backwards.py, line 8) with respect to u, for u: float64[:],
    k: float.
    """
    v = smoothed(u, k)
    v_bar = 2.0 * v
    u_bar = smoothed_bwd(k, v_bar)
    return u_bar
