"""A recurrent network with long short-term memory that reads a sequence: a product and a gated
update at each step.

The adjoint by hand saves the gates and states of each step; each step's product takes one pass over
the weights, and so do the two products of its adjoint.
"""

import math

import numpy as np
from numba import njit

WRT = (0, 1, 2)
SIZE = 200  # length of the sequence
KIND = "loops"
GROWTH = (10, 100_000)
INPUTS, HIDDEN = 16, 32


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    return (0.2 * rng.normal(size=(4 * HIDDEN, INPUTS)),
            0.2 * rng.normal(size=(4 * HIDDEN, HIDDEN)), 0.1 * rng.normal(size=4 * HIDDEN),
            rng.normal(size=(size, INPUTS)), rng.normal(size=HIDDEN))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def program(W, U, b, xs, target):
    n = U.shape[1]
    h = np.zeros(n)
    c = np.zeros(n)
    for t in range(len(xs)):
        z = W @ xs[t] + U @ h + b
        i, f, o = sigmoid(z[:n]), sigmoid(z[n:2 * n]), sigmoid(z[2 * n:3 * n])
        g = np.tanh(z[3 * n:])
        c = f * c + i * g
        h = o * np.tanh(c)
    return np.sum((h - target) ** 2)


def by_hand():
    @njit(error_model="numpy", fastmath={"contract"}, nogil=True)
    def gradient(W, U, b, xs, target):
        steps, inputs, n, m = len(xs), W.shape[1], U.shape[1], len(b)
        # transposed, so that the inner loops go over the gates, side by side
        WT, UT = np.empty((inputs, m)), np.empty((n, m))
        for j in range(m):
            for k in range(inputs):
                WT[k, j] = W[j, k]
            for k in range(n):
                UT[k, j] = U[j, k]
        gates, cs, hs = np.empty((steps, m)), np.zeros((steps + 1, n)), np.zeros((steps + 1, n))
        tanhs = np.empty((steps, n))
        for t in range(steps):
            z = gates[t]
            for j in range(m):
                z[j] = b[j]
            for k in range(inputs):
                x = xs[t, k]
                for j in range(m):
                    z[j] += x * WT[k, j]
            for k in range(n):
                h = hs[t, k]
                for j in range(m):
                    z[j] += h * UT[k, j]
            for j in range(3 * n):
                z[j] = 1 / (1 + math.exp(-z[j]))
            for j in range(n):
                z[3 * n + j] = math.tanh(z[3 * n + j])
                c = z[n + j] * cs[t, j] + z[j] * z[3 * n + j]
                cs[t + 1, j] = c
                tanhs[t, j] = math.tanh(c)
                hs[t + 1, j] = z[2 * n + j] * tanhs[t, j]
        value = 0.0
        h_bar, c_bar, z_bar = np.empty(n), np.zeros(n), np.empty(m)
        for j in range(n):
            d = hs[steps, j] - target[j]
            value += d * d
            h_bar[j] = 2 * d
        W_bar, U_bar, b_bar = np.zeros((m, inputs)), np.zeros((m, n)), np.zeros(m)
        for t in range(steps - 1, -1, -1):
            z = gates[t]
            for j in range(n):
                i, f, o, g, th = z[j], z[n + j], z[2 * n + j], z[3 * n + j], tanhs[t, j]
                ct = c_bar[j] + h_bar[j] * o * (1 - th * th)
                z_bar[j] = ct * g * i * (1 - i)
                z_bar[n + j] = ct * cs[t, j] * f * (1 - f)
                z_bar[2 * n + j] = h_bar[j] * th * o * (1 - o)
                z_bar[3 * n + j] = ct * i * (1 - g * g)
                c_bar[j] = ct * f
                h_bar[j] = 0.0
            for j in range(m):
                d = z_bar[j]
                b_bar[j] += d
                for k in range(inputs):
                    W_bar[j, k] += d * xs[t, k]
                for k in range(n):
                    U_bar[j, k] += d * hs[t, k]
                    h_bar[k] += d * U[j, k]
        return value, W_bar, U_bar, b_bar

    return gradient


def in_jax():
    import jax
    import jax.numpy as jnp
    from jax import lax

    def program(W, U, b, xs, target):
        n = U.shape[1]

        def step(state, x):
            h, c = state
            z = W @ x + U @ h + b
            i, f, o = jax.nn.sigmoid(z[:n]), jax.nn.sigmoid(z[n:2 * n]), jax.nn.sigmoid(z[2 * n:3
                                                                                          * n])
            c = f * c + i * jnp.tanh(z[3 * n:])
            return (o * jnp.tanh(c), c), None

        h, _ = lax.scan(step, (jnp.zeros(n), jnp.zeros(n)), xs)[0]
        return jnp.sum((h - target) ** 2)

    return program


def in_torch():
    import torch

    def program(W, U, b, xs, target):
        n = U.shape[1]
        h, c = torch.zeros(n, dtype=xs.dtype), torch.zeros(n, dtype=xs.dtype)
        for x in xs @ W.T + b:
            z = x + U @ h
            i, f, o, g = z.split(n)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return ((h - target) ** 2).sum()

    return program


def in_autograd():
    import autograd.numpy as anp

    def program(W, U, b, xs, target):
        n = U.shape[1]
        h, c = anp.zeros(n), anp.zeros(n)
        for x in xs:
            z = anp.dot(W, x) + anp.dot(U, h) + b
            i, f, o = 1 / (1 + anp.exp(-z[:n])), 1 / (1 + anp.exp(-z[n:2 * n])), 1 / (
                1 + anp.exp(-z[2 * n:3 * n]))
            c = f * c + i * anp.tanh(z[3 * n:])
            h = o * anp.tanh(c)
        return anp.sum((h - target) ** 2)

    return program
