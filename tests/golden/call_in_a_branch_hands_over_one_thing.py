"""What a call in a branch keeps crosses to the reverse half of the trip as one thing, and on no
tape; where there was no call, there is nothing.
"""

import numpy as np


def settle(x, a, b):
    y = np.exp(a * x)
    for k in range(3):
        y = np.sin(y) * b + np.sqrt(y * y + 1.0)
        if y > 2.0:
            y = y * y * a
    while y > 1.0:
        y = a * y
    return y * a


def f(x, a, b):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.0:
            total += settle(x[i], a, b) * x[i]
    return total


ARGS = (np.array([0.2, -0.3, 0.7]), 0.9, 0.4)
WRT = (0, 1, 2)


# ------------------------------ the same, as the compiler sees it


def settle(x: "float64", a: "float64", b: "float64"):
    t: "float64" = a * x
    y: "float64" = np.exp(t)
    for k in range(3):
        t_1: "float64" = np.sin(y)
        t_2: "float64" = t_1 * b
        t_3: "float64" = y * y
        t_4: "float64" = t_3 + 1.0
        t_5: "float64" = np.sqrt(t_4)
        y: "float64" = t_2 + t_5
        t_6: "bool" = y > 2.0
        if t_6:
            t_7: "float64" = y * y
            y: "float64" = t_7 * a
    while True:
        t_8: "bool" = y > 1.0
        if not t_8:
            break
        y: "float64" = a * y
    t_9: "float64" = y * a
    return t_9


def f_ssa(x: "float64[x.0]", a: "float64", b: "float64"):
    n: "int64" = len(x)
    total = 0.0
    for i in range(n):
        t: "float64" = x[i]
        t_1: "bool" = t > 0.0
        if t_1:
            t_2: "float64" = settle(t, a, b)
            t_3: "float64" = t_2 * t
            total: "float64" = total + t_3
    return total


# ------------------------------ what s2s makes of it


def settle_fwd(x, a, b):
    """settle (call_in_a_branch_hands_over_one_thing.py, line 34), and what its cotangents need."""
    y = np.exp(a * x)
    y_tape = np.empty(3)
    t_tape = np.empty(3, bool)
    for k in range(3):
        y_tape[k] = y
        y = np.sin(y) * b + np.sqrt(y * y + 1.0)
        t = y > 2.0
        t_tape[k] = t
        if t:
            y = y * y * a
    y_tape_1 = []
    while y > 1.0:
        y_tape_1.append(y)
        y = a * y
    return y * a, (y_tape, t_tape, y, y_tape_1)


def settle_bwd(x, a, b, saved, y_bar):
    """The cotangents of the arguments of settle (call_in_a_branch_hands_over_one_thing.py, line
    34).
    """
    y_tape, t_tape, y, y_tape_1 = saved
    y_1 = np.exp(a * x)
    y_bar_1 = y_bar * a
    a_bar = y_bar * y
    for y in reversed(y_tape_1):
        t = y_bar_1 * y
        y_bar_1 = y_bar_1 * a
        a_bar += t
    b_bar = 0.0
    for k in range(2, -1, -1):
        y = y_tape[k]
        t_1 = np.sin(y)
        t_2 = np.sqrt(y * y + 1.0)
        y_2 = t_1 * b + t_2
        if t_tape[k]:
            a_bar += y_bar_1 * (y_2 * y_2)
            y_bar_1 = 2 * (y_bar_1 * a) * y_2
        b_bar += y_bar_1 * t_1
        y_bar_1 = y_bar_1 / t_2 * y + y_bar_1 * b * np.cos(y)
    t_3 = y_bar_1 * y_1
    x_bar = t_3 * a
    a_bar += t_3 * x
    return x_bar, a_bar, b_bar


def f_grad(x, a, b):
    """The derivative of f (call_in_a_branch_hands_over_one_thing.py, line 19) with respect to x
    and a and b, for x: float64[:], a: float, b: float.
    """
    x_bar = np.zeros_like(x)
    a_bar = b_bar = 0.0
    for i in range(len(x)):
        t = x[i]
        if t > 0.0:
            t_1, saved = settle_fwd(t, a, b)
            x_bar_1, a_bar_1, b_bar_1 = settle_bwd(t, a, b, saved, t)
            a_bar += a_bar_1
            b_bar += b_bar_1
            t_2 = t_1 + x_bar_1
        else:
            t_2 = 0.0
        x_bar[i] += t_2
    return x_bar, a_bar, b_bar
