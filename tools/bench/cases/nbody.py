"""Bodies that attract each other, in small steps: a nest over steps and pairs, positions and
velocities overwritten in place.

The adjoint by hand saves the positions of each step, n x 3 numbers, and computes the distances
again.
"""

import math

import numpy as np
from numba import njit

WRT = (0, 1, 2)
SIZE = 100  # steps
KIND = "loops"
GROWTH = (1, 10_000)
STATIC = (4,)
BODIES = 20


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    return rng.normal(
        size=(BODIES, 3)), 0.1 * rng.normal(size=(BODIES, 3)), rng.random(BODIES) + 0.5, 1e-3, size


def program(x, v, m, h, steps):
    x = x.copy()
    v = v.copy()
    n = len(m)
    for s in range(steps):
        for i in range(n):
            for j in range(i):
                dx = x[i, 0] - x[j, 0]
                dy = x[i, 1] - x[j, 1]
                dz = x[i, 2] - x[j, 2]
                r2 = dx * dx + dy * dy + dz * dz + 0.01
                pull = h / (r2 * np.sqrt(r2))
                v[i, 0] -= dx * m[j] * pull
                v[i, 1] -= dy * m[j] * pull
                v[i, 2] -= dz * m[j] * pull
                v[j, 0] += dx * m[i] * pull
                v[j, 1] += dy * m[i] * pull
                v[j, 2] += dz * m[i] * pull
        for i in range(n):
            for k in range(3):
                x[i, k] += h * v[i, k]
    return np.sum(v * v) + np.sum(x * x)


def by_hand():
    flags = dict(error_model="numpy", fastmath={"contract"}, nogil=True)

    @njit(**flags)
    def gradient(x0, v0, m, h, steps):
        n = len(m)
        x, v = x0.copy(), v0.copy()
        tape = np.empty((steps, n, 3))
        for s in range(steps):
            for i in range(n):
                for k in range(3):
                    tape[s, i, k] = x[i, k]
                vx, vy, vz = v[i, 0], v[i, 1], v[i, 2]
                for j in range(i):
                    dx, dy, dz = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
                    r2 = dx * dx + dy * dy + dz * dz + 0.01
                    pull = h / (r2 * math.sqrt(r2))
                    p, q = m[j] * pull, m[i] * pull
                    vx -= dx * p
                    vy -= dy * p
                    vz -= dz * p
                    v[j, 0] += dx * q
                    v[j, 1] += dy * q
                    v[j, 2] += dz * q
                v[i, 0], v[i, 1], v[i, 2] = vx, vy, vz
            for i in range(n):
                for k in range(3):
                    x[i, k] += h * v[i, k]
        value = 0.0
        x_bar, v_bar, m_bar = np.empty((n, 3)), np.empty((n, 3)), np.zeros(n)
        for i in range(n):
            for k in range(3):
                value += v[i, k] * v[i, k] + x[i, k] * x[i, k]
                x_bar[i, k], v_bar[i, k] = 2 * x[i, k], 2 * v[i, k]
        for s in range(steps - 1, -1, -1):
            for i in range(n):
                for k in range(3):
                    v_bar[i, k] += h * x_bar[i, k]
            now = tape[s]
            for i in range(n - 1, -1, -1):
                gx, gy, gz = v_bar[i, 0], v_bar[i, 1], v_bar[i, 2]
                ix, iy, iz, im = 0.0, 0.0, 0.0, 0.0
                for j in range(i):
                    dx, dy, dz = now[i, 0] - now[j, 0], now[i, 1] - now[j, 1], now[i, 2] - now[j, 2]
                    r2 = dx * dx + dy * dy + dz * dz + 0.01
                    pull = h / (r2 * math.sqrt(r2))
                    ui = dx * gx + dy * gy + dz * gz
                    uj = dx * v_bar[j, 0] + dy * v_bar[j, 1] + dz * v_bar[j, 2]
                    m_bar[j] -= ui * pull
                    im += uj * pull
                    p, q = m[j] * pull, m[i] * pull
                    # d pull / d r2 = -3/2 pull / r2, twice
                    r2_bar = -3 * pull / r2 * (uj * m[i] - ui * m[j])
                    dx_bar = q * v_bar[j, 0] - p * gx + r2_bar * dx
                    dy_bar = q * v_bar[j, 1] - p * gy + r2_bar * dy
                    dz_bar = q * v_bar[j, 2] - p * gz + r2_bar * dz
                    ix += dx_bar
                    iy += dy_bar
                    iz += dz_bar
                    x_bar[j, 0] -= dx_bar
                    x_bar[j, 1] -= dy_bar
                    x_bar[j, 2] -= dz_bar
                x_bar[i, 0] += ix
                x_bar[i, 1] += iy
                x_bar[i, 2] += iz
                m_bar[i] += im
        return value, x_bar, v_bar, m_bar

    return gradient


def _over_steps(np_of, step, x, v, steps):
    for _ in range(steps):
        x, v = step(x, v)
    return np_of.sum(v * v) + np_of.sum(x * x)


def in_jax():
    import jax.numpy as jnp
    from jax import lax

    def program(x, v, m, h, steps):
        def step(state, _):
            x, v = state
            d = x[None, :, :] - x[:, None, :]
            r2 = jnp.sum(d * d, axis=-1) + 0.01
            v = v + h * jnp.sum((m[None, :] / (r2 * jnp.sqrt(r2)))[:, :, None] * d, axis=1)
            return (x + h * v, v), None

        x, v = lax.scan(step, (x, v), None, length=steps)[0]
        return jnp.sum(v * v) + jnp.sum(x * x)

    return program


def in_torch():
    import torch

    def program(x, v, m, h, steps):
        def step(x, v):
            d = x[None, :, :] - x[:, None, :]
            r2 = (d * d).sum(-1) + 0.01
            v = v + h * ((m[None, :] / (r2 * torch.sqrt(r2)))[:, :, None] * d).sum(1)
            return x + h * v, v

        return _over_steps(torch, step, x, v, steps)

    return program


def in_autograd():
    import autograd.numpy as anp

    def program(x, v, m, h, steps):
        def step(x, v):
            d = x[None, :, :] - x[:, None, :]
            r2 = anp.sum(d * d, axis=-1) + 0.01
            v = v + h * anp.sum((m[None, :] / (r2 * anp.sqrt(r2)))[:, :, None] * d, axis=1)
            return x + h * v, v

        return _over_steps(anp, step, x, v, steps)

    return program
