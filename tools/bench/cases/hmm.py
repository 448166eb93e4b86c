"""The likelihood of a hidden Markov model by the forward algorithm: a recurrence of short vectors,
scaled at each step.

The adjoint by hand saves the probabilities of each step before and after the observation, and the
scales.
"""

import math

import numpy as np
from numba import njit

WRT = (0, 1, 2)
SIZE = 1000  # observations
KIND = "loops"
GROWTH = (10, 100_000)
STATES, SYMBOLS = 16, 32


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    start = rng.dirichlet(np.ones(STATES))
    return (start, rng.dirichlet(np.ones(STATES), size=STATES),
            rng.dirichlet(np.ones(SYMBOLS), size=STATES), rng.integers(0, SYMBOLS, size=size))


def program(start, transition, emission, observed):
    alpha = start * emission[:, observed[0]]
    scale = np.sum(alpha)
    alpha = alpha / scale
    total = np.log(scale)
    for t in range(1, len(observed)):
        alpha = (alpha @ transition) * emission[:, observed[t]]
        scale = np.sum(alpha)
        alpha = alpha / scale
        total += np.log(scale)
    return -total


def by_hand():
    @njit(error_model="numpy", fastmath={"contract"}, nogil=True)
    def gradient(start, transition, emission, observed):
        n, m, k = len(observed), emission.shape[1], len(start)
        columns = np.empty((m, k))  # a symbol's probabilities side by side
        for i in range(k):
            for j in range(m):
                columns[j, i] = emission[i, j]
        alphas, tape, scales = np.empty((n, k)), np.empty((n, k)), np.empty(n)
        total = 0.0
        for t in range(n):
            e, a, sums = columns[observed[t]], alphas[t], tape[t]
            if t == 0:
                for j in range(k):
                    sums[j] = start[j]
            else:
                for j in range(k):
                    sums[j] = 0.0
                for i in range(k):
                    p = alphas[t - 1, i]
                    for j in range(k):
                        sums[j] += p * transition[i, j]
            scale = 0.0
            for j in range(k):
                a[j] = sums[j] * e[j]
                scale += a[j]
            inverse = 1.0 / scale
            for j in range(k):
                a[j] *= inverse
            scales[t] = inverse
            total += math.log(scale)
        transition_bar, columns_bar, start_bar = np.zeros((k, k)), np.zeros((m, k)), np.empty(k)
        alpha_bar, next_bar = np.zeros(k), np.empty(k)
        for t in range(n - 1, -1, -1):
            # alpha = raw / scale, total += log(scale), scale = sum(raw)
            o, inverse = observed[t], scales[t]
            e, e_bar, a, sums = columns[o], columns_bar[o], alphas[t], tape[t]
            inner = 0.0
            for j in range(k):
                inner += alpha_bar[j] * a[j]
            for j in range(k):
                raw_bar = (alpha_bar[j] - inner - 1.0) * inverse
                e_bar[j] += raw_bar * sums[j]
                next_bar[j] = raw_bar * e[j]
            if t == 0:
                for j in range(k):
                    start_bar[j] = next_bar[j]
            else:
                for i in range(k):
                    p, total_bar = alphas[t - 1, i], 0.0
                    for j in range(k):
                        transition_bar[i, j] += p * next_bar[j]
                        total_bar += transition[i, j] * next_bar[j]
                    alpha_bar[i] = total_bar
        emission_bar = np.empty((k, m))
        for i in range(k):
            for j in range(m):
                emission_bar[i, j] = columns_bar[j, i]
        return -total, start_bar, transition_bar, emission_bar

    return gradient


def in_jax():
    import jax.numpy as jnp
    from jax import lax

    def program(start, transition, emission, observed):
        alpha = start * emission[:, observed[0]]
        scale = jnp.sum(alpha)

        def step(carry, o):
            alpha, total = carry
            alpha = (alpha @ transition) * emission[:, o]
            scale = jnp.sum(alpha)
            return (alpha / scale, total + jnp.log(scale)), None

        return -lax.scan(step, (alpha / scale, jnp.log(scale)), observed[1:])[0][1]

    return program


def in_torch():
    import torch

    def program(start, transition, emission, observed):
        columns = emission.T[observed]
        alpha = start * columns[0]
        scale = alpha.sum()
        alpha, total = alpha / scale, torch.log(scale)
        for column in columns[1:]:
            alpha = (alpha @ transition) * column
            scale = alpha.sum()
            alpha, total = alpha / scale, total + torch.log(scale)
        return -total

    return program


def in_autograd():
    import autograd.numpy as anp

    def program(start, transition, emission, observed):
        alpha, total = start * emission[:, observed[0]], 0.0
        for o in observed[1:]:
            scale = anp.sum(alpha)
            total = total + anp.log(scale)
            alpha = ((alpha / scale) @ transition) * emission[:, o]
        return -(total + anp.log(anp.sum(alpha)))

    return program
