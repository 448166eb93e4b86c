"""A function of numbers is called again by the reverse sweep: of a step by Heun's method, only the state is saved."""

import numpy as np


def f(x, v, drag, steps):
    def slope(x, v):
        return v * (1.0 - 0.1 * v * v), -np.sin(x) - drag * v * abs(v)

    for i in range(steps):
        a, b = slope(x, v)
        c, d = slope(x + 0.1 * a, v + 0.1 * b)
        x = x + 0.05 * (a + c)
        v = v + 0.05 * (b + d)
    return x * v


ARGS = (0.5, 0.9, 0.2, 5)
WRT = (0, 1, 2)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", v: "float64", drag: "float64", steps: "int64"):
    for i in range(steps):
        t: "float64" = 0.1 * v
        t_1: "float64" = t * v
        t_2: "float64" = 1.0 - t_1
        a: "float64" = v * t_2
        t_3: "float64" = np.sin(x)
        t_4: "float64" = -t_3
        t_5: "float64" = drag * v
        t_6: "float64" = abs(v)
        t_7: "float64" = t_5 * t_6
        b: "float64" = t_4 - t_7
        t_8: "float64" = 0.1 * a
        t_9: "float64" = x + t_8
        t_10: "float64" = 0.1 * b
        t_11: "float64" = v + t_10
        t_12: "float64" = 0.1 * t_11
        t_13: "float64" = t_12 * t_11
        t_14: "float64" = 1.0 - t_13
        c: "float64" = t_11 * t_14
        t_15: "float64" = np.sin(t_9)
        t_16: "float64" = -t_15
        t_17: "float64" = drag * t_11
        t_18: "float64" = abs(t_11)
        t_19: "float64" = t_17 * t_18
        d: "float64" = t_16 - t_19
        t_20: "float64" = a + c
        t_21: "float64" = 0.05 * t_20
        x: "float64" = x + t_21
        t_22: "float64" = b + d
        t_23: "float64" = 0.05 * t_22
        v: "float64" = v + t_23
    t_24: "float64" = x * v
    return t_24


# ------------------------------ what s2s makes of it


def f_grad(x, v, drag, steps):
    """The derivative of f (arithmetic_is_called_again.py, line 6) with respect to x and v and
    drag, for x: float, v: float, drag: float, steps: int.
    """
    t = max(steps, 0)
    x_tape = np.empty(t)
    v_tape = np.empty(t)
    for i in range(steps):
        x_tape[i] = x
        v_tape[i] = v
        a = v * (1.0 - 0.1 * v * v)
        b = -np.sin(x) - drag * v * abs(v)
        t_1 = v + 0.1 * b
        c = t_1 * (1.0 - 0.1 * t_1 * t_1)
        d = -np.sin(x + 0.1 * a) - drag * t_1 * abs(t_1)
        x = x + 0.05 * (a + c)
        v = v + 0.05 * (b + d)
    x_bar = v
    v_bar = x
    drag_bar = 0.0
    for i in range(steps - 1, -1, -1):
        x = x_tape[i]
        v = v_tape[i]
        t_2 = 0.1 * v
        t_3 = 1.0 - t_2 * v
        t_4 = drag * v
        t_5 = abs(v)
        a = v * t_3
        b = -np.sin(x) - t_4 * t_5
        t_6 = v + 0.1 * b
        t_7 = 0.1 * t_6
        d_bar = 0.05 * v_bar
        c_bar = 0.05 * x_bar
        t_8 = d_bar * abs(t_6)
        t_9 = np.cos(x + 0.1 * a)
        t_10 = c_bar * (1.0 - t_7 * t_6) - (d_bar * (drag * t_6) * np.sign(t_6) + t_8 * drag)
        t_11 = t_10 - c_bar * t_6 * t_7 - 0.005000000000000001 * (x_bar * t_6 * t_6)
        b_bar = d_bar + 0.1 * t_11
        a_bar = c_bar - 0.005000000000000001 * (v_bar * t_9)
        t_12 = b_bar * t_5
        x_bar = x_bar - d_bar * t_9 - b_bar * np.cos(x)
        t_13 = a_bar * v
        t_14 = v_bar + t_11 - b_bar * t_4 * np.sign(v) - t_12 * drag + a_bar * t_3 - t_13 * t_2
        v_bar = t_14 - 0.1 * (t_13 * v)
        drag_bar = drag_bar - t_8 * t_6 - t_12 * v
    return x_bar, v_bar, drag_bar
