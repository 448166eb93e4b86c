"""Of a checkpointed function only the arguments are kept: `layer_vjp` runs it again."""

import numpy as np

import s2s


def layer(x, w):
    h = np.tanh(w @ x)
    return np.sin(h) * h


kept_apart = s2s.checkpoint(layer)


def f(x, w):
    for _ in range(3):
        x = x + kept_apart(x, w)
    return np.sum(x)


ARGS = (np.array([0.3, -0.2]), np.array([[0.1, 0.4], [-0.6, 0.2]]))
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def layer(x: "float64[x.0]", w: "float64[w.0, w.1]"):
    t: "float64[w.0]" = w @ x
    h: "float64[w.0]" = np.tanh(t)
    t_1: "float64[w.0]" = np.sin(h)
    t_2: "float64[w.0]" = t_1 * h
    return t_2


def f_ssa(x: "float64[x.0]", w: "float64[w.0, w.1]"):
    for _ in range(3):
        t: "float64[w.0]" = layer(x, w)
        x: "float64[x.0]" = x + t
    t_1: "float64" = np.sum(x)
    return t_1


# ------------------------------ what s2s makes of it


def layer(x, w):
    h = np.tanh(w @ x)
    return np.sin(h) * h


def layer_vjp(x, w, y_bar):
    """The cotangents of the arguments of layer (checkpointed_function.py, line 8), which runs
    again.
    """
    h = np.tanh(w @ x)
    h_bar = y_bar * np.sin(h) + y_bar * h * np.cos(h)
    t = h_bar * (1 - h * h)
    w_bar = np.outer(t, x)
    x_bar = t @ w
    return x_bar, w_bar


def f_grad(x, w):
    """The derivative of f (checkpointed_function.py, line 16) with respect to x and w, for
    x: float64[:], w: float64[:, :].
    """
    x_tape = np.empty((3, len(x)))
    for i in range(3):
        x_tape[i] = x
        x = x + layer(x, w)
    x_bar = np.ones(x.shape)
    w_bar = np.zeros_like(w)
    for i in range(2, -1, -1):
        x = x_tape[i]
        x_bar_1, w_bar_1 = layer_vjp(x, w, x_bar)
        x_bar += x_bar_1
        w_bar += w_bar_1
    return x_bar, w_bar
