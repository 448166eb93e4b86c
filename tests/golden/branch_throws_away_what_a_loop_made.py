"""A loop whose result a branch throws away has nothing to do on the way back, but to leave its tapes as it would have."""

import numpy as np


def f(x, y):
    while y < 3.0:
        step = 0.1
        for k in range(len(x)):
            step = step * y + x[k]
        if step > 0.8:
            step = 0.8
        y = y + step
    return y


ARGS = (np.array([0.4, 0.7, 0.2]), 0.9)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", y: "float64"):
    n: "int64" = len(x)
    while True:
        t: "bool" = y < 3.0
        if not t:
            break
        step = 0.1
        for k in range(n):
            t_1: "float64" = step * y
            t_2: "float64" = x[k]
            step: "float64" = t_1 + t_2
        t_3: "bool" = step > 0.8
        if t_3:
            step = 0.8
        y: "float64" = y + step
    return y


# ------------------------------ what s2s makes of it


def f_grad(x, y):
    """The derivative of f (branch_throws_away_what_a_loop_made.py, line 6) with respect to x and
    y, for x: float64[:], y: float.
    """
    n = len(x)
    step_tape = []
    saved = []
    while y < 3.0:
        step = 0.1
        for k in range(n):
            step_tape.append(step)
            step = step * y + x[k]
        t = step > 0.8
        saved.append((y, t))
        if t:
            step = 0.8
        y = y + step
    y_bar = 1.0
    x_bar = np.zeros_like(x)
    for y, t_1 in reversed(saved):
        if not t_1:
            step_bar = y_bar
        if t_1:
            for k in range(n - 1, -1, -1):
                step_tape.pop()
        else:
            for k in range(n - 1, -1, -1):
                step = step_tape.pop()
                x_bar[k] += step_bar
                y_bar += step_bar * step
                step_bar = step_bar * y
    return x_bar, y_bar
