"""How often a `while` turns is not known on entry: what the sweep back needs is appended, and popped."""

import numpy as np


def f(x, rate):
    n = 0
    while abs(x) > 1e-3:
        if x > 1.0:
            x = x * rate
        else:
            x = np.sin(x) * rate
        n += 1
    return x + n


ARGS = (1.9, 0.8)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", rate: "float64"):
    n = 0
    while True:
        t: "float64" = abs(x)
        t_1: "bool" = t > 1e-3
        if not t_1:
            break
        t_2: "bool" = x > 1.0
        if t_2:
            x: "float64" = x * rate
        else:
            t_3: "float64" = np.sin(x)
            x: "float64" = t_3 * rate
        n: "int64" = n + 1
    t_4: "float64" = x + n
    return t_4


# ------------------------------ what s2s makes of it


def f_grad(x, rate):
    """The derivative of f (while_keeps_a_growing_tape.py, line 6) with respect to x and rate,
    for x: float, rate: float.
    """
    x_tape = []
    while abs(x) > 1e-3:
        x_tape.append(x)
        if x > 1.0:
            x = x * rate
        else:
            x = np.sin(x) * rate
    x_bar = 1.0
    rate_bar = 0.0
    for x in reversed(x_tape):
        if x > 1.0:
            rate_bar += x_bar * x
            x_bar = x_bar * rate
        else:
            rate_bar += x_bar * np.sin(x)
            x_bar = x_bar * rate * np.cos(x)
    return x_bar, rate_bar
