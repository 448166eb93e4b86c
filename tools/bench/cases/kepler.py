"""Kepler's equation for many planets at once: a `while` loop of Newton's steps, batched; each lane
stops by itself.

The adjoint by hand keeps the iterates of one lane in a buffer that all lanes use, and runs back
through them.
"""

import math

import numpy as np
from numba import njit

WRT = (0, 1)
AXES = (0, 0)
SIZE = 10_000  # lanes
KIND = "loops"
GROWTH = (100, 1_000_000)


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    return rng.uniform(0.0, math.pi, size), rng.uniform(0.0, 0.97, size)


def program(mean, eccentricity):
    angle = mean
    step = 1.0
    while abs(step) > 1e-10:
        step = (angle - eccentricity * np.sin(angle) - mean) / (1.0 - eccentricity * np.cos(angle))
        angle = angle - step
    return angle


def by_hand():
    @njit(error_model="numpy", fastmath={"contract"}, nogil=True)
    def gradient(mean, eccentricity):
        n = len(mean)
        angles, mean_bar, eccentricity_bar = np.empty(n), np.empty(n), np.empty(n)
        tape = np.empty(16)
        for lane in range(n):
            m, e = mean[lane], eccentricity[lane]
            x, step, count = m, 1.0, 0
            while abs(step) > 1e-10:
                if count == len(tape):
                    longer = np.empty(2 * count)
                    longer[:count] = tape
                    tape = longer
                tape[count] = x
                count += 1
                step = (x - e * math.sin(x) - m) / (1.0 - e * math.cos(x))
                x -= step
            angles[lane] = x
            x_bar, m_bar, e_bar = 1.0, 0.0, 0.0
            for k in range(count - 1, -1, -1):
                x = tape[k]
                s, c = math.sin(x), math.cos(x)
                d = 1.0 / (1.0 - e * c)
                t = (x - e * s - m) * d
                m_bar += x_bar * d
                e_bar += x_bar * d * (s - t * c)
                x_bar *= t * e * s * d
            mean_bar[lane] = m_bar + x_bar  # the first angle is the mean one
            eccentricity_bar[lane] = e_bar
        return angles, mean_bar, eccentricity_bar

    return gradient


def gradient_in_jax():
    """Forward mode: JAX's reverse mode refuses `while_loop`."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def program(mean, eccentricity):
        def body(state):
            angle, _ = state
            step = (angle - eccentricity * jnp.sin(angle)
                    - mean) / (1.0 - eccentricity * jnp.cos(angle))
            return angle - step, step

        return lax.while_loop(lambda state: jnp.abs(state[1]) > 1e-10, body,
                              (mean, jnp.ones_like(mean)))[0]

    def by_tangents(mean, eccentricity):
        one, zero = jnp.ones_like(mean), jnp.zeros_like(mean)
        (angle, a), (_, b) = (jax.jvp(program, (mean, eccentricity), t)
                              for t in ((one, zero), (zero, one)))
        return angle, a, b

    return jax.vmap(by_tangents)


def in_torch():
    """All lanes go on until the last has converged, as there is no loop of a lane's own."""
    import torch

    def program(mean, eccentricity):
        angle, step = mean, torch.ones_like(mean)
        while bool((step.abs() > 1e-10).any()):
            step = (angle - eccentricity * torch.sin(angle)
                    - mean) / (1.0 - eccentricity * torch.cos(angle))
            angle = angle - step
        return angle

    return program


def in_autograd():
    import autograd.numpy as anp

    def program(mean, eccentricity):
        angle, step = mean, anp.ones_like(mean)
        while anp.any(anp.abs(step) > 1e-10):
            step = (angle - eccentricity * anp.sin(angle)
                    - mean) / (1.0 - eccentricity * anp.cos(angle))
            angle = angle - step
        return angle

    return program
