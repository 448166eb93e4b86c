"""The log-likelihood of points under a mixture of 20 Gaussians with diagonal covariances, in 8
dimensions.

By hand, one point after the other with a row of 20 numbers; what the reverse sweep needs is
computed again.
"""

import math

import numpy as np
from numba import njit
from scipy.special import logsumexp

WRT = (0, 1, 2)
SIZE = 5_000
KIND = "elementwise"
GROWTH = (100, 100_000)


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    n, d, k = size, 8, 20
    return rng.normal(size=k), rng.normal(size=(k, d)), 0.3 * rng.normal(size=(k, d)), rng.normal(
        size=(n, d))


def program(alphas, means, log_scales, x):
    t = (x[:, None, :] - means) * np.exp(log_scales)
    logp = alphas + np.sum(log_scales, axis=1) - 0.5 * np.sum(t * t, axis=2)
    return np.sum(logsumexp(logp, axis=1)) - len(x) * logsumexp(alphas)


def by_hand():
    @njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)
    def gradient(alphas, means, log_scales, x):
        n, d = x.shape
        k = len(alphas)
        scale = np.exp(log_scales)
        base = alphas.copy()
        for c in range(k):
            for j in range(d):
                base[c] += log_scales[c, j]
        logp = np.empty(k)
        alphas_bar = np.zeros(k)
        means_bar = np.zeros((k, d))
        scales_bar = np.zeros((k, d))
        value = 0.0
        for i in range(n):
            m = -np.inf
            for c in range(k):
                s = 0.0
                for j in range(d):
                    t = (x[i, j] - means[c, j]) * scale[c, j]
                    s += t * t
                s = base[c] - 0.5 * s
                logp[c] = s
                m = max(m, s)
            total = 0.0
            for c in range(k):
                e = math.exp(logp[c] - m)
                logp[c] = e
                total += e
            value += m + math.log(total)
            r = 1.0 / total
            for c in range(k):
                p = logp[c] * r
                alphas_bar[c] += p
                for j in range(d):
                    t = (x[i, j] - means[c, j]) * scale[c, j]
                    means_bar[c, j] += p * t
                    scales_bar[c, j] -= p * t * t
        for c in range(k):
            for j in range(d):
                means_bar[c, j] *= scale[c, j]
                scales_bar[c, j] += alphas_bar[c]
        m = alphas.max()
        total = 0.0
        for c in range(k):
            total += math.exp(alphas[c] - m)
        value -= n * (m + math.log(total))
        for c in range(k):
            alphas_bar[c] -= n * math.exp(alphas[c] - m) / total
        return value, (alphas_bar, means_bar, scales_bar)

    return gradient


def in_jax():
    import jax
    import jax.numpy as jnp

    def program(alphas, means, log_scales, x):
        t = (x[:, None, :] - means) * jnp.exp(log_scales)
        logp = alphas + jnp.sum(log_scales, axis=1) - 0.5 * jnp.sum(t * t, axis=2)
        return jnp.sum(jax.nn.logsumexp(logp, axis=1)) - len(x) * jax.nn.logsumexp(alphas)

    return program


def in_torch():
    import torch

    def program(alphas, means, log_scales, x):
        t = (x[:, None, :] - means) * torch.exp(log_scales)
        logp = alphas + log_scales.sum(1) - 0.5 * (t * t).sum(2)
        return torch.logsumexp(logp, 1).sum() - len(x) * torch.logsumexp(alphas, 0)

    return program


def in_autograd():
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp

    def program(alphas, means, log_scales, x):
        t = (x[:, None, :] - means) * anp.exp(log_scales)
        logp = alphas + anp.sum(log_scales, axis=1) - 0.5 * anp.sum(t * t, axis=2)
        return anp.sum(logsumexp(logp, axis=1)) - len(x) * logsumexp(alphas)

    return program
