"""Truncated Newton-CG on logistic regression: two nested `while` loops around a Hessian-vector
product, compiled as one program.

The experiment of table 1 of the JAX paper (Frostig, Johnson & Leary, 2018).  The program
differentiates inside, by `s2s.grad` and `s2s.hvp`; what is timed is a whole solve.  ../newton_cg.py
solves two more problems with it.  By hand, the gradient and the product with the Hessian, in one
pass over the rows each.
"""

import math

import numpy as np
from numba import njit

import s2s

WRT = ()  # it differentiates by itself
SIZE = 2_000  # rows
GROWTH = (100, 100_000)
TOLERANCE = 1e-7  # two solvers stop in different places, both after a gradient of 1e-8


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(size, 50))
    return np.zeros(50), X, (X @ rng.normal(size=50) + rng.normal(size=size) > 0) * 1.0


def logistic(w, X, y):
    z = X @ w
    return np.mean(np.logaddexp(0.0, z) - y * z) + 0.005 * np.sum(w * w)


def newton_cg(objective):
    def solve(x, *data):
        """Newton steps, each found by conjugate gradients: two loops that stop when they are done.
        """
        def f(x):
            return objective(x, *data)

        g = s2s.grad(f)(x)
        outer = 0
        while np.sum(g * g) > 1e-16 and outer < 20:
            p = np.zeros_like(x)
            r = -g
            d = r.copy()
            rr = np.sum(r * r)
            target = 1e-4 * rr
            inner = 0
            while rr > target and inner < 50:
                Hd = s2s.hvp(f, (x,), (d,))
                alpha = rr / np.sum(d * Hd)
                p = p + alpha * d
                r = r - alpha * Hd
                new = np.sum(r * r)
                d = r + (new / rr) * d
                rr = new
                inner += 1
            x = x + p
            g = s2s.grad(f)(x)
            outer += 1
        return x

    return solve


program = newton_cg(logistic)


def by_hand():
    flags = dict(error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)

    @njit(**flags)
    def gradient(w, X, y, g, curvatures):
        """The gradient, and what the Hessian needs of each row."""
        n, d = X.shape
        g[:] = 0.0
        for i in range(n):
            z = 0.0
            for j in range(d):
                z += X[i, j] * w[j]
            p = 1.0 / (1.0 + math.exp(-z))
            curvatures[i] = p * (1.0 - p) / n
            r = (p - y[i]) / n
            for j in range(d):
                g[j] += r * X[i, j]
        for j in range(d):
            g[j] += 0.01 * w[j]

    @njit(**flags)
    def product(X, curvatures, d, Hd):
        n, m = X.shape
        for j in range(m):
            Hd[j] = 0.01 * d[j]
        for i in range(n):
            z = 0.0
            for j in range(m):
                z += X[i, j] * d[j]
            z *= curvatures[i]
            for j in range(m):
                Hd[j] += z * X[i, j]

    @njit(**flags)
    def solve(x, X, y):
        n, m = X.shape
        x = x.copy()
        g, d, p, r, Hd, curvatures = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(
            m), np.empty(n)
        gradient(x, X, y, g, curvatures)
        outer = 0
        while np.dot(g, g) > 1e-16 and outer < 20:
            for j in range(m):
                p[j], r[j], d[j] = 0.0, -g[j], -g[j]
            rr = np.dot(r, r)
            target, inner = 1e-4 * rr, 0
            while rr > target and inner < 50:
                product(X, curvatures, d, Hd)
                alpha = rr / np.dot(d, Hd)
                new = 0.0
                for j in range(m):
                    p[j] += alpha * d[j]
                    r[j] -= alpha * Hd[j]
                    new += r[j] * r[j]
                for j in range(m):
                    d[j] = r[j] + new / rr * d[j]
                rr = new
                inner += 1
            for j in range(m):
                x[j] += p[j]
            gradient(x, X, y, g, curvatures)
            outer += 1
        return x

    return solve


def newton_cg_of_jax(objective):
    import jax
    import jax.numpy as jnp
    from jax import lax

    def solve(x, *data):
        def f(x):
            return objective(x, *data)

        gradient = jax.grad(f)

        def step(state):
            x, g, outer = state
            rr = jnp.sum(g * g)

            def cg(state):
                p, r, d, rr, inner = state
                Hd = jax.jvp(gradient, (x,), (d,))[1]
                alpha = rr / jnp.sum(d * Hd)
                p, r = p + alpha * d, r - alpha * Hd
                new = jnp.sum(r * r)
                return p, r, r + (new / rr) * d, new, inner + 1

            p, *_ = lax.while_loop(lambda s: (s[3] > 1e-4 * rr) & (s[4] < 50), cg,
                                   (jnp.zeros_like(x), -g, -g, rr, 0))
            x = x + p
            return x, gradient(x), outer + 1

        return lax.while_loop(lambda s: (jnp.sum(s[1] * s[1]) > 1e-16) & (s[2] < 20), step,
                              (x, gradient(x), 0))[0]

    return solve


def logistic_of_jax(w, X, y):
    import jax.numpy as jnp

    z = X @ w
    return jnp.mean(jnp.logaddexp(0.0, z) - y * z) + 0.005 * jnp.sum(w * w)


def in_jax():
    return newton_cg_of_jax(logistic_of_jax)


def _in_plain_steps(gradient, product):
    """The same two loops for libraries that run op by op."""
    def solve(x, X, y):
        g = gradient(x, X, y)
        outer = 0
        while (g * g).sum() > 1e-16 and outer < 20:
            p, r, d = 0 * x, -g, -g
            rr = (r * r).sum()
            target, inner = 1e-4 * rr, 0
            while rr > target and inner < 50:
                Hd = product(x, d, X, y)
                alpha = rr / (d * Hd).sum()
                p, r = p + alpha * d, r - alpha * Hd
                new = (r * r).sum()
                d, rr = r + new / rr * d, new
                inner += 1
            x = x + p
            g = gradient(x, X, y)
            outer += 1
        return x

    return solve


def gradient_in_torch():
    import torch

    def objective(w, X, y):
        z = X @ w
        return torch.mean(torch.nn.functional.softplus(z) - y * z) + 0.005 * torch.sum(w * w)

    def gradient(x, X, y, keep=False):
        x = x if keep else x.detach().requires_grad_(True)
        return torch.autograd.grad(objective(x, X, y), x, create_graph=keep)[0]

    def product(x, d, X, y):
        x = x.detach().requires_grad_(True)
        return torch.autograd.grad((gradient(x, X, y, keep=True) * d).sum(), x)[0]

    return _in_plain_steps(gradient, product)


def gradient_in_autograd():
    import autograd.numpy as anp
    from autograd import grad

    def objective(w, X, y):
        z = anp.dot(X, w)
        return anp.mean(anp.logaddexp(0.0, z) - y * z) + 0.005 * anp.sum(w * w)

    gradient = grad(objective)

    def product(x, d, X, y):
        return grad(lambda x: anp.sum(gradient(x, X, y) * d))(x)

    return _in_plain_steps(gradient, product)
