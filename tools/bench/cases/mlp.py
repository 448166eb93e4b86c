"""A network of one hidden layer of 256 tanh units, and the cross-entropy of its softmax, for a
batch.

By hand, two products of matrices forwards and three backwards, with one loop over rows after each.
"""

import math

import numpy as np
from numba import njit
from scipy.special import log_softmax

WRT = (0, 1, 2, 3)
SIZE = 256
GROWTH = (64, 4_096)


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    n, d, h, c = size, 128, 256, 10
    labels = np.eye(c)[rng.integers(0, c, n)]
    return (rng.normal(size=(d, h)) / d ** 0.5, np.zeros(h), rng.normal(size=(h, c)) / h ** 0.5,
            np.zeros(c), rng.normal(size=(n, d)), labels)


def program(W1, b1, W2, b2, x, labels):
    h = np.tanh(x @ W1 + b1)
    z = h @ W2 + b2
    return -np.sum(labels * log_softmax(z, axis=1)) / len(x)


def by_hand():
    @njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)
    def gradient(W1, b1, W2, b2, x, labels):
        n = len(x)
        h = np.dot(x, W1)
        k = h.shape[1]
        for i in range(n):
            for j in range(k):
                h[i, j] = math.tanh(h[i, j] + b1[j])
        z = np.dot(h, W2)
        c = z.shape[1]
        b2_bar = np.zeros(c)
        value = 0.0
        for i in range(n):
            m = -np.inf
            for j in range(c):
                z[i, j] += b2[j]
                m = max(m, z[i, j])
            total = 0.0
            for j in range(c):
                total += math.exp(z[i, j] - m)
            lse = m + math.log(total)
            weight = 0.0
            for j in range(c):
                weight += labels[i, j]
            for j in range(c):
                logp = z[i, j] - lse
                value -= labels[i, j] * logp
                r = (weight * math.exp(logp) - labels[i, j]) / n
                z[i, j] = r
                b2_bar[j] += r
        W2_bar = np.dot(h.T, z)
        h_bar = np.dot(z, W2.T)
        b1_bar = np.zeros(k)
        for i in range(n):
            for j in range(k):
                t = h_bar[i, j] * (1 - h[i, j] * h[i, j])
                h_bar[i, j] = t
                b1_bar[j] += t
        W1_bar = np.dot(x.T, h_bar)
        return value / n, (W1_bar, b1_bar, W2_bar, b2_bar)

    return gradient


def in_jax():
    import jax
    import jax.numpy as jnp

    def program(W1, b1, W2, b2, x, labels):
        h = jnp.tanh(x @ W1 + b1)
        z = h @ W2 + b2
        return -jnp.sum(labels * jax.nn.log_softmax(z)) / len(x)

    return program


def in_torch():
    import torch

    def program(W1, b1, W2, b2, x, labels):
        h = torch.tanh(x @ W1 + b1)
        z = h @ W2 + b2
        return -(labels * torch.log_softmax(z, 1)).sum() / len(x)

    return program


def in_autograd():
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp

    def program(W1, b1, W2, b2, x, labels):
        h = anp.tanh(anp.dot(x, W1) + b1)
        z = anp.dot(h, W2) + b2
        return -anp.sum(labels * (z - logsumexp(z, axis=1, keepdims=True))) / len(x)

    return program
