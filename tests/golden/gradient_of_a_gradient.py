"""The derivative of a derivative is one more program of loops: what it reads of both sweeps is saved by their rules."""

import numpy as np


def f(x, n):
    y = x
    for _ in range(n):
        y = y * (1.0 - 0.3 * np.sin(y))
    return y


ARGS = (0.7, 4)
OF = "grad of grad"


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", n: "int64"):
    y = x
    for _ in range(n):
        t: "float64" = np.sin(y)
        t_1: "float64" = 0.3 * t
        t_2: "float64" = 1.0 - t_1
        y: "float64" = y * t_2
    return y


# ------------------------------ what s2s makes of it


def f_grad_grad(x, n):
    """The derivative of f_grad (gradient_of_a_gradient.py, line 6) with respect to x, for
    x: float, n: int.
    """
    # line 3: for _ in range(n):
    t = max(n, 0)
    y_tape = np.empty(t)
    y = x
    for i in range(n):
        y_tape[i] = y
        y = y * (1.0 - 0.3 * np.sin(y))
    # line 3, backwards
    y_bar_tape = np.empty(t)
    y_bar = 1.0
    for i in range(n - 1, -1, -1):
        y_bar_tape[n - 1 - i] = y_bar
        y = y_tape[i]
        y_bar = y_bar * (1.0 - 0.3 * np.sin(y)) - 0.3 * (y_bar * y) * np.cos(y)
    y_bar_bar = 1.0
    y_tape_bar = np.zeros_like(y_tape)
    for i in range(n):
        # line 3, backwards
        y_bar = y_bar_tape[n - 1 - i]
        y = y_tape[i]
        # line 4, backwards: y = y * (1.0 - 0.3 * np.sin(y))
        t_1 = np.sin(y)
        t_2 = np.cos(y)
        t_3 = y_bar_bar * (0.3 * (y_bar * y))
        t_4 = 0.3 * (y_bar_bar * t_2)
        t_5 = y_bar_bar * y_bar
        y_bar_bar = y_bar_bar * (1.0 - 0.3 * t_1) - t_4 * y
        # line 3, backwards
        y_tape_bar[i] += t_3 * t_1 - t_4 * y_bar - 0.3 * t_5 * t_2
    y_bar = 0.0
    for i in range(n - 1, -1, -1):
        y = y_tape[i]
        t_6 = y_bar * (1.0 - 0.3 * np.sin(y)) - 0.3 * (y_bar * y) * np.cos(y)
        y_bar = t_6 + y_tape_bar[i]
    return y_bar
