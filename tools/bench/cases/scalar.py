"""A function of two numbers, called one at a time: what is measured is a call."""

import math

from numba import njit

WRT = (0, 1)
SIZE = 1
KIND = "loops"
CALL = True


def arguments(size=SIZE):
    return 0.7, 1.3


def program(x, y):
    if x * y > 0.0:
        return math.sin(x) * y + x / (1.0 + y * y)
    return math.exp(-x) * y


def by_hand():
    @njit(error_model="numpy", fastmath={"contract"}, nogil=True)
    def gradient(x, y):
        if x * y > 0.0:
            s, d = math.sin(x), 1.0 / (1.0 + y * y)
            return s * y + x * d, math.cos(x) * y + d, s - 2.0 * x * y * d * d
        e = math.exp(-x)
        return e * y, -e * y, e

    return gradient


def in_jax():
    import jax.numpy as jnp
    from jax import lax

    def program(x, y):
        return lax.cond(x * y > 0.0, lambda: jnp.sin(x) * y + x / (1.0 + y * y),
                        lambda: jnp.exp(-x) * y)

    return program


def in_torch():
    import torch

    def program(x, y):
        if x * y > 0.0:
            return torch.sin(x) * y + x / (1.0 + y * y)
        return torch.exp(-x) * y

    return program


def in_autograd():
    import autograd.numpy as anp

    def program(x, y):
        if x * y > 0.0:
            return anp.sin(x) * y + x / (1.0 + y * y)
        return anp.exp(-x) * y

    return program
