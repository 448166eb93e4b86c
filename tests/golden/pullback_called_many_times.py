"""What is done once, and what is done for each cotangent: the tape is read, not emptied."""

import numpy as np


def f(x, rate):
    while abs(x) > 0.01:
        if x > 1.0:
            x = x * rate
        else:
            x = np.sin(x) * rate
    return x * rate


ARGS = (3.0, 0.6)
OF = "vjp in two"


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", rate: "float64"):
    while True:
        t: "float64" = abs(x)
        t_1: "bool" = t > 0.01
        if not t_1:
            break
        t_2: "bool" = x > 1.0
        if t_2:
            x: "float64" = x * rate
        else:
            t_3: "float64" = np.sin(x)
            x: "float64" = t_3 * rate
    t_4: "float64" = x * rate
    return t_4


# ------------------------------ what s2s makes of it


def f_fwd(x, rate):
    """The value of f (pullback_called_many_times.py, line 6), and what its cotangents need."""
    x_tape = []
    while abs(x) > 0.01:
        x_tape.append(x)
        if x > 1.0:
            x = x * rate
        else:
            x = np.sin(x) * rate
    return x * rate, x_tape, x


def f_bwd(y_bar, rate, x_tape, x):
    """The cotangents of the arguments of f (pullback_called_many_times.py, line 6), for a
    cotangent y_bar of its result.
    """
    x_bar = y_bar * rate
    rate_bar = y_bar * x
    for x in reversed(x_tape):
        if x > 1.0:
            rate_bar += x_bar * x
            x_bar = x_bar * rate
        else:
            rate_bar += x_bar * np.sin(x)
            x_bar = x_bar * rate * np.cos(x)
    return x_bar, rate_bar


def f_vjp(x, rate, y_bar):
    """Both halves: the value of f (pullback_called_many_times.py, line 6), and its cotangents."""
    t, x_tape, x = f_fwd(x, rate)
    x_bar, rate_bar = f_bwd(y_bar, rate, x_tape, x)
    return t, x_bar, rate_bar
