"""A recurrence over rows: arrays are carried, their tapes are allocated once."""

import numpy as np


def f(W, xs):
    h = np.zeros(2)
    for t in range(xs.shape[0]):
        h = np.tanh(xs[t] + W @ h)
    return np.sum(h)


ARGS = (np.array([[0.1, 0.5], [0.4, 0.9]]), np.array([[0.3, 0.2], [0.6, -0.5], [0.1, 0.8]]))
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(W: "float64[W.0, W.1]", xs: "float64[xs.0, xs.1]"):
    h: "float64[2]" = np.zeros(2)
    n: "int64" = len(xs)
    for t in range(n):
        t_1: "float64[xs.1]" = xs[t]
        t_2: "float64[W.0]" = W @ h
        t_3: "float64[xs.1]" = t_1 + t_2
        h: "float64[xs.1]" = np.tanh(t_3)
    t_4: "float64" = np.sum(h)
    return t_4


# ------------------------------ what s2s makes of it


def f_grad(W, xs):
    """The derivative of f (running_state_in_a_loop.py, line 6) with respect to W and xs, for
    W: float64[:, :], xs: float64[:, :].
    """
    h = np.zeros(2)
    n = len(xs)
    h_tape = []
    h_tape_1 = np.empty((n, xs.shape[1]))
    for t in range(n):
        h_tape.append(h)
        h = np.tanh(xs[t] + W @ h)
        h_tape_1[t] = h
    h_bar = np.ones(h.shape)
    xs_bar = np.zeros_like(xs)
    W_bar = np.zeros_like(W)
    for t in range(n - 1, -1, -1):
        h = h_tape.pop()
        h_1 = h_tape_1[t]
        t_1 = h_bar * (1 - h_1 * h_1)
        h_bar = t_1 @ W
        W_bar += np.outer(t_1, h)
        xs_bar[t] += t_1
    return W_bar, xs_bar
