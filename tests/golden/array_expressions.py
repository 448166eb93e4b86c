"""Ranks are known, so nothing is un-broadcast: `b` is a number, hence a sum."""

import numpy as np


def f(w, b, X, y):
    p = 1 / (1 + np.exp(-(X @ w + b)))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


ARGS = (np.array([0.1, -0.4]), 0.2, np.array([[1.0, 0.5], [-0.3, 0.8], [0.2, 0.9]]), np.array([0.0, 1.0, 1.0]))
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(w: "float64[w.0]", b: "float64", X: "float64[X.0, X.1]", y: "float64[y.0]"):
    t: "float64[X.0]" = X @ w
    t_1: "float64[X.0]" = t + b
    t_2: "float64[X.0]" = -t_1
    t_3: "float64[X.0]" = np.exp(t_2)
    t_4: "float64[X.0]" = 1 + t_3
    p: "float64[X.0]" = 1 / t_4
    t_5: "float64[X.0]" = np.log(p)
    t_6: "float64[y.0]" = y * t_5
    t_7: "float64[y.0]" = 1 - y
    t_8: "float64[X.0]" = 1 - p
    t_9: "float64[X.0]" = np.log(t_8)
    t_10: "float64[y.0]" = t_7 * t_9
    t_11: "float64[y.0]" = t_6 + t_10
    t_12: "float64" = np.sum(t_11)
    size: "int64" = y.size
    t_13: "float64" = t_12 / size
    t_14: "float64" = -t_13
    return t_14


# ------------------------------ what s2s makes of it


def f_grad(w, b, X, y):
    """The derivative of f (array_expressions.py, line 6) with respect to w and b, for
    w: float64[:], b: float, X: float64[:, :], y: float64[:].
    """
    # line 2: p = 1 / (1 + np.exp(-(X @ w + b)))
    t = np.exp(-(X @ w + b))
    t_1 = 1 + t
    p = 1 / t_1
    # line 3, backwards: return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
    t_2 = np.divide(1.0, y.size)
    p_bar = t_2 * (1 - y) / (1 - p) - t_2 * y / p
    # line 2, backwards
    t_3 = p_bar / t_1 * p * t
    b_bar = np.sum(t_3)
    w_bar = t_3 @ X
    return w_bar, b_bar
