"""A function that calls itself has two that call themselves: one that saves, and one that runs back."""

import numpy as np


def f(x, depth):
    def settle(x, depth):
        if depth == 0:
            return x
        return np.sin(settle(x, depth - 1)) * x

    return settle(x * x, depth)


ARGS = (0.7, 3)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def settle(x: "float64", depth: "int64"):
    t: "bool" = depth == 0
    if not t:
        t_1: "int64" = depth - 1
        t_2: "float64" = settle(x, t_1)
        t_3: "float64" = np.sin(t_2)
        x: "float64" = t_3 * x
    return x


def f_ssa(x: "float64", depth: "int64"):
    t: "float64" = x * x
    t_1: "float64" = settle(t, depth)
    return t_1


# ------------------------------ what s2s makes of it


def settle_fwd(x, depth, t_tape):
    """settle (recursion_backwards.py, line 6), and what its cotangents need."""
    if depth == 0:
        return x
    t = settle_fwd(x, depth - 1, t_tape)
    t_tape.append(t)
    return np.sin(t) * x


def settle_bwd(x, depth, t_tape, y_bar):
    """The cotangents of the arguments of settle (recursion_backwards.py, line 6)."""
    if depth == 0:
        x_bar = y_bar
    else:
        t = t_tape.pop()
        x_bar = settle_bwd(x, depth - 1, t_tape, y_bar * x * np.cos(t))
        x_bar = y_bar * np.sin(t) + x_bar
    return x_bar


def f_grad(x, depth):
    """The derivative of f (recursion_backwards.py, line 6) with respect to x, for x: float,
    depth: int.
    """
    t = x * x
    t_tape = []
    settle_fwd(t, depth, t_tape)
    x_bar = settle_bwd(t, depth, t_tape, 1.0)
    x_bar = 2 * x_bar * x
    return x_bar
