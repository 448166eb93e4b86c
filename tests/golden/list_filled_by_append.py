"""What is appended on the way there is popped on the way back: append and pop are each other's adjoint."""

import numpy as np


def f(x, n):
    states = [x]
    for _ in range(n):
        states.append(np.sin(states[-1]) * x)
    return states[n // 2] * states[-1]


ARGS = (0.7, 5)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", n: "int64"):
    states: "list of float64" = [x]
    for _ in range(n):
        t: "float64" = states[-1]
        t_1: "float64" = np.sin(t)
        t_2: "float64" = t_1 * x
        states.append(t_2)
    t_3: "int64" = n // 2
    t_4: "float64" = states[t_3]
    t_5: "float64" = states[-1]
    t_6: "float64" = t_4 * t_5
    return t_6


# ------------------------------ what s2s makes of it


def f_grad(x, n):
    """The derivative of f (list_filled_by_append.py, line 6) with respect to x, for x: float,
    n: int.
    """
    t_tape = np.empty(max(n, 0))
    states = [x]
    for i in range(n):
        t = states[-1]
        t_tape[i] = t
        states.append(np.sin(t) * x)
    t_1 = n // 2
    states_bar = [0.0] * len(states)
    states_bar[-1] += states[t_1]
    states_bar[t_1] += states[-1]
    x_bar = 0.0
    for i in range(n - 1, -1, -1):
        t_2 = states_bar.pop()
        x_bar += t_2 * np.sin(t_tape[i])
        states_bar[-1] += t_2 * x * np.cos(t_tape[i])
    x_bar += states_bar[0]
    return x_bar
