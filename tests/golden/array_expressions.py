"""Ranks are known, so nothing is un-broadcast: `b` is a number, hence a sum."""

import numpy as np


def f(w, b, X, y):
    p = 1 / (1 + np.exp(-(X @ w + b)))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


ARGS = (np.array([0.1, -0.4]), 0.2, np.array([[1.0, 0.5], [-0.3, 0.8], [0.2, 0.9]]), np.array([0.0, 1.0, 1.0]))
WRT = (0, 1)
