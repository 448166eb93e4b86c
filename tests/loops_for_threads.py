"""Programs whose loops threads share, for tests and for tools/bench/threads.py."""

import numpy as np


def logistic(X, y, w):
    total = 0.0
    for i in range(X.shape[0]):
        t = 0.0
        for j in range(X.shape[1]):
            t += X[i, j] * w[j]
        total += np.log1p(np.exp(-y[i] * t))
    return total


def root(a):
    x = 1.0
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def elementwise(x):
    return np.sum(np.sin(x) * np.exp(-x))


def heat(u, n):
    for _ in range(n):
        u = u.copy()
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return np.sum(u**2)
