"""Logistic regression: the mean logistic loss of 20,000 rows with 64 features, and a penalty.

By hand, each row is read once: its product with the weights, and its part of their cotangent.
"""

import math

import numpy as np
from numba import njit

WRT = (0, 1)
SIZE = 20_000
KIND = "elementwise"
GROWTH = (200, 200_000)


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    n, d = size, 64
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + rng.normal(size=n) > 0) * 1.0
    return rng.normal(size=d) * 0.1, 0.1, X, y


def program(w, b, X, y):
    z = X @ w + b
    return np.mean(np.logaddexp(0.0, z) - y * z) + 0.01 * np.sum(w * w)


def by_hand():
    @njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)
    def gradient(w, b, X, y):
        n, d = X.shape
        w_bar = np.zeros(d)
        b_bar = 0.0
        value = 0.0
        for i in range(n):
            z = 0.0
            for j in range(d):
                z += X[i, j] * w[j]
            z += b
            e = math.exp(-abs(z))
            value += max(z, 0.0) + math.log1p(e) - y[i] * z
            p = 1.0 / (1.0 + e)
            r = (p if z >= 0.0 else 1.0 - p) - y[i]
            b_bar += r
            for j in range(d):
                w_bar[j] += r * X[i, j]
        value /= n
        for j in range(d):
            value += 0.01 * w[j] * w[j]
            w_bar[j] = w_bar[j] / n + 0.02 * w[j]
        return value, (w_bar, b_bar / n)

    return gradient


def in_jax():
    import jax.numpy as jnp

    def program(w, b, X, y):
        z = X @ w + b
        return jnp.mean(jnp.logaddexp(0.0, z) - y * z) + 0.01 * jnp.sum(w * w)

    return program


def in_torch():
    import torch

    def program(w, b, X, y):
        z = X @ w + b
        return torch.mean(torch.nn.functional.softplus(z) - y * z) + 0.01 * torch.sum(w * w)

    return program


def in_autograd():
    import autograd.numpy as anp

    def program(w, b, X, y):
        z = anp.dot(X, w) + b
        return anp.mean(anp.logaddexp(0.0, z) - y * z) + 0.01 * anp.sum(w * w)

    return program
