"""Poisson's equation by Gauss and Seidel's method: each point is overwritten as soon as its
neighbours are known.

The update is linear: the adjoint by hand saves nothing, and runs through the points in the opposite
order.
"""

import math

import numpy as np
from numba import njit

WRT = (0, 1)
SIZE = 128 * 128  # points
KIND = "loops"
GROWTH = (16 * 16, 1600 * 1600)
STATIC = (2,)


def arguments(size=SIZE):
    n = math.isqrt(size)
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n)), rng.normal(size=(n, n)), 20


def program(u, f, sweeps):
    u = u.copy()
    for s in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
    return np.sum(u * u)


def by_hand():
    @njit(error_model="numpy", fastmath={"contract"}, nogil=True)
    def gradient(u0, f, sweeps):
        u = u0.copy()
        n, m = u.shape
        for s in range(sweeps):
            for i in range(1, n - 1):
                left = u[i, 0]
                for j in range(1, m - 1):
                    left = 0.25 * (u[i - 1, j] + u[i + 1, j] + left + u[i, j + 1] - f[i, j])
                    u[i, j] = left
        value = 0.0
        u_bar, f_bar = np.empty((n, m)), np.zeros((n, m))
        for i in range(n):
            for j in range(m):
                value += u[i, j] * u[i, j]
                u_bar[i, j] = 2 * u[i, j]
        for s in range(sweeps):
            for i in range(n - 2, 0, -1):
                right, here = u_bar[i, m - 1], u_bar[i, m - 2]
                for j in range(m - 2, 0, -1):
                    t = 0.25 * here
                    here = u_bar[i, j - 1] + t
                    u_bar[i, j + 1] = right + t
                    u_bar[i - 1, j] += t
                    u_bar[i + 1, j] += t
                    f_bar[i, j] -= t
                    right = 0.0
                u_bar[i, 1] = right
                u_bar[i, 0] = here
        return value, u_bar, f_bar

    return gradient


def in_jax():
    import jax.numpy as jnp
    from jax import lax

    def program(u, f, sweeps):
        n, m = u.shape

        def point(k, u):
            i, j = 1 + k // (m - 2), 1 + k % (m - 2)
            return u.at[i, j].set(0.25 *
                                  (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j]))

        def sweep(s, u):
            return lax.fori_loop(0, (n - 2) * (m - 2), point, u)

        return jnp.sum(lax.fori_loop(0, sweeps, sweep, u) ** 2)

    return program
