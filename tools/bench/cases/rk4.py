"""The Lorenz system by Runge and Kutta's method: three numbers carried through many small steps.

The adjoint by hand saves the three states of each step and computes the stages again.
"""

import math

import numpy as np
from numba import njit

WRT = (0, 1, 2, 3)
SIZE = 10_000
KIND = "loops"
GROWTH = (100, 1_000_000)
STATIC = (5,)


def arguments(size=SIZE):
    return np.array([1.0, 0.5, 1.05]), 10.0, 28.0, 8 / 3, 2.0 / max(size, 2000), size


def lorenz(x, y, z, sigma, rho, beta):
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


def program(start, sigma, rho, beta, h, steps):
    x, y, z = start
    for i in range(steps):
        a1, b1, c1 = lorenz(x, y, z, sigma, rho, beta)
        a2, b2, c2 = lorenz(x + h / 2 * a1, y + h / 2 * b1, z + h / 2 * c1, sigma, rho, beta)
        a3, b3, c3 = lorenz(x + h / 2 * a2, y + h / 2 * b2, z + h / 2 * c2, sigma, rho, beta)
        a4, b4, c4 = lorenz(x + h * a3, y + h * b3, z + h * c3, sigma, rho, beta)
        x = x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        y = y + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
        z = z + h / 6 * (c1 + 2 * c2 + 2 * c3 + c4)
    return np.sin(x) + np.sin(y) + np.sin(z)


def by_hand():
    flags = dict(error_model="numpy", fastmath={"contract"}, nogil=True)

    @njit(inline="always", **flags)
    def slope(x, y, z, sigma, rho, beta):
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    @njit(inline="always", **flags)
    def back(x, y, z, sigma, rho, beta, a_bar, b_bar, c_bar):
        """Cotangents of x, y, z, sigma, rho and beta, from those of the slopes."""
        return (b_bar * (rho - z) + c_bar * y - sigma * a_bar, sigma * a_bar - b_bar + c_bar * x,
                -b_bar * x - beta * c_bar, a_bar * (y - x), b_bar * x, -c_bar * z)

    @njit(**flags)
    def gradient(start, sigma, rho, beta, h, steps):
        x, y, z = start[0], start[1], start[2]
        tape = np.empty((steps, 3))
        half, sixth = h / 2, h / 6
        for i in range(steps):
            tape[i, 0], tape[i, 1], tape[i, 2] = x, y, z
            a1, b1, c1 = slope(x, y, z, sigma, rho, beta)
            a2, b2, c2 = slope(x + half * a1, y + half * b1, z + half * c1, sigma, rho, beta)
            a3, b3, c3 = slope(x + half * a2, y + half * b2, z + half * c2, sigma, rho, beta)
            a4, b4, c4 = slope(x + h * a3, y + h * b3, z + h * c3, sigma, rho, beta)
            x += sixth * (a1 + 2 * a2 + 2 * a3 + a4)
            y += sixth * (b1 + 2 * b2 + 2 * b3 + b4)
            z += sixth * (c1 + 2 * c2 + 2 * c3 + c4)
        value = math.sin(x) + math.sin(y) + math.sin(z)
        p, q, r = math.cos(x), math.cos(y), math.cos(z)  # the cotangents of the state
        s_bar, rho_bar, beta_bar = 0.0, 0.0, 0.0
        for i in range(steps - 1, -1, -1):
            x, y, z = tape[i, 0], tape[i, 1], tape[i, 2]
            a1, b1, c1 = slope(x, y, z, sigma, rho, beta)
            x2, y2, z2 = x + half * a1, y + half * b1, z + half * c1
            a2, b2, c2 = slope(x2, y2, z2, sigma, rho, beta)
            x3, y3, z3 = x + half * a2, y + half * b2, z + half * c2
            a3, b3, c3 = slope(x3, y3, z3, sigma, rho, beta)
            x4, y4, z4 = x + h * a3, y + h * b3, z + h * c3
            u, v, w = sixth * p, sixth * q, sixth * r
            x4_bar, y4_bar, z4_bar, s4, r4, t4 = back(x4, y4, z4, sigma, rho, beta, u, v, w)
            x3_bar, y3_bar, z3_bar, s3, r3, t3 = back(x3, y3, z3, sigma, rho, beta,
                                                      2 * u + h * x4_bar, 2 * v + h * y4_bar,
                                                      2 * w + h * z4_bar)
            x2_bar, y2_bar, z2_bar, s2, r2, t2 = back(x2, y2, z2, sigma, rho, beta,
                                                      2 * u + half * x3_bar, 2 * v + half * y3_bar,
                                                      2 * w + half * z3_bar)
            x1_bar, y1_bar, z1_bar, s1, r1, t1 = back(x, y, z, sigma, rho, beta, u + half * x2_bar,
                                                      v + half * y2_bar, w + half * z2_bar)
            p += x1_bar + x2_bar + x3_bar + x4_bar
            q += y1_bar + y2_bar + y3_bar + y4_bar
            r += z1_bar + z2_bar + z3_bar + z4_bar
            s_bar += s1 + s2 + s3 + s4
            rho_bar += r1 + r2 + r3 + r4
            beta_bar += t1 + t2 + t3 + t4
        return value, np.array([p, q, r]), s_bar, rho_bar, beta_bar

    return gradient


def of_vectors(xp, stack, run):
    """The same with the state as an array, in a library that names its functions as NumPy does;
    `run(step, u, steps)` steps.
    """
    def program(start, sigma, rho, beta, h, steps):
        def slope(u):
            x, y, z = u
            return stack((sigma * (y - x), x * (rho - z) - y, x * y - beta * z))

        def step(u):
            k1 = slope(u)
            k2 = slope(u + h / 2 * k1)
            k3 = slope(u + h / 2 * k2)
            k4 = slope(u + h * k3)
            return u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return xp.sum(xp.sin(run(step, start, steps)))

    return program


def by_a_loop(step, u, steps):
    for _ in range(steps):
        u = step(u)
    return u


def in_jax():
    import jax.numpy as jnp
    from jax import lax

    def by_a_scan(step, u, steps):
        return lax.scan(lambda u, _: (step(u), None), u, None, length=steps)[0]

    return of_vectors(jnp, jnp.stack, by_a_scan)


def in_torch():
    import torch

    return of_vectors(torch, torch.stack, by_a_loop)


def in_autograd():
    import autograd.numpy as anp

    return of_vectors(anp, anp.array, by_a_loop)
