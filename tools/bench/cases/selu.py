"""A layer of self-normalizing units (Klambauer et al., 2017), and the mean of its squares.

By hand, a product, one loop over the results, and a product.
"""

import math

import numpy as np
from numba import njit

WRT = (0, 1)
SIZE = 1_024
KIND = "elementwise"
GROWTH = (64, 16_384)


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    n, d, h = size, 64, 256
    return rng.normal(size=(d, h)) / d**0.5, np.zeros(h), rng.normal(size=(n, d))


def program(W, b, x):
    z = x @ W + b
    y = 1.0507009873554805 * np.where(z > 0, z, 1.6732632423543772 * np.expm1(z))
    return np.sum(y * y) / len(x)


def by_hand():
    @njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)
    def gradient(W, b, x):
        n = len(x)
        z = np.dot(x, W)
        k = z.shape[1]
        b_bar = np.zeros(k)
        value = 0.0
        s, a = 1.0507009873554805, 1.6732632423543772
        for i in range(n):
            for j in range(k):
                t = z[i, j] + b[j]
                if t > 0:
                    y, slope = s * t, s
                else:
                    e = a * s * math.expm1(t)
                    y, slope = e, e + a * s
                value += y * y
                t = 2 * y * slope / n
                z[i, j] = t
                b_bar[j] += t
        return value / n, (np.dot(x.T, z), b_bar)

    return gradient


def in_jax():
    import jax
    import jax.numpy as jnp

    def program(W, b, x):
        y = jax.nn.selu(x @ W + b)
        return jnp.sum(y * y) / len(x)

    return program


def in_torch():
    import torch

    def program(W, b, x):
        y = torch.nn.functional.selu(x @ W + b)
        return (y * y).sum() / len(x)

    return program


def in_autograd():
    import autograd.numpy as anp

    def program(W, b, x):
        z = anp.dot(x, W) + b
        y = 1.0507009873554805 * anp.where(z > 0, z, 1.6732632423543772 * anp.expm1(z))
        return anp.sum(y * y) / len(x)

    return program
