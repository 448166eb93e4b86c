#!/usr/bin/env python3
"""Truncated Newton-CG, written as two nested `while` loops around a Hessian-vector product, compiled as one program.

    python tools/bench/newton_cg.py

The experiment of table 1 of the JAX paper (Frostig, Johnson & Leary 2018): a convex quadratic, the marginal likelihood of
a hidden Markov model, and logistic regression.  s2s compiles the program below as it stands, `s2s.grad` and `s2s.hvp`
inside it; JAX's has the same two loops as `lax.while_loop`s.  Prints milliseconds per solve, medians of interleaved
runs, the ratio, and the objective that both have reached.  JAX is optional.
"""

import statistics
import time

import numpy as np

import s2s

try:
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = None


# ---------------------------------------------------------------------------------------------- objectives


def quadratic(x, A, b):
    return 0.5 * np.sum(x * (A @ x)) - np.sum(b * x)


def logistic(w, X, y):
    z = X @ w
    return np.mean(np.logaddexp(0.0, z) - y * z) + 0.005 * np.sum(w * w)


def hidden_markov(theta, observed):
    """Minus the log marginal likelihood, plus a penalty; theta holds the logits of the rows of both matrices."""
    k = theta.shape[0]
    total = 0.0
    transition = np.exp(theta[:, :k])
    transition = transition / np.sum(transition, axis=1, keepdims=True)
    emission = np.exp(theta[:, k:])
    emission = emission / np.sum(emission, axis=1, keepdims=True)
    alpha = np.ones(k) / k
    for t in range(len(observed)):
        alpha = (alpha @ transition) * emission[:, observed[t]]
        scale = np.sum(alpha)
        alpha = alpha / scale
        total -= np.log(scale)
    return total / len(observed) + 0.05 * np.sum(theta * theta)


# -------------------------------------------------------------------------------------------------- solver


def newton_cg(objective):
    def solve(x, *data):
        """Newton steps, each found by conjugate gradients: two loops that stop when they are done."""
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


def newton_cg_of_jax(objective):
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

            p, *_ = lax.while_loop(lambda s: (s[3] > 1e-4 * rr) & (s[4] < 50), cg, (jnp.zeros_like(x), -g, -g, rr, 0))
            x = x + p
            return x, gradient(x), outer + 1

        return lax.while_loop(lambda s: (jnp.sum(s[1] * s[1]) > 1e-16) & (s[2] < 20), step, (x, gradient(x), 0))[0]

    return solve


def objectives_of_jax():
    def quadratic(x, A, b):
        return 0.5 * jnp.sum(x * (A @ x)) - jnp.sum(b * x)

    def logistic(w, X, y):
        z = X @ w
        return jnp.mean(jnp.logaddexp(0.0, z) - y * z) + 0.005 * jnp.sum(w * w)

    def hidden_markov(theta, observed):
        k = theta.shape[0]
        transition = jax.nn.softmax(theta[:, :k], axis=1)
        emission = jax.nn.softmax(theta[:, k:], axis=1)

        def step(carry, o):
            alpha, total = carry
            alpha = (alpha @ transition) * emission[:, o]
            scale = jnp.sum(alpha)
            return (alpha / scale, total - jnp.log(scale)), None

        (_, total), _ = lax.scan(step, (jnp.ones(k) / k, 0.0), observed)
        return total / len(observed) + 0.05 * jnp.sum(theta * theta)

    return {"quadratic": quadratic, "logistic": logistic, "hidden_markov": hidden_markov}


def cases():
    rng = np.random.default_rng(0)
    n = 200
    Q = rng.normal(size=(n, n)) / np.sqrt(n)
    yield quadratic, (np.zeros(n), Q @ Q.T + np.eye(n), rng.normal(size=n))
    X = rng.normal(size=(2000, 50))
    yield logistic, (np.zeros(50), X, (X @ rng.normal(size=50) + rng.normal(size=2000) > 0) * 1.0)
    yield hidden_markov, (0.1 * rng.normal(size=(5, 5 + 8)), rng.integers(0, 8, size=200))


def milliseconds(runs, count=7):
    """The median time of each of `runs`, taken in turns."""
    times = [[] for _ in runs]
    for _ in range(count):
        for run, found in zip(runs, times):
            began = time.perf_counter()
            run()
            found.append(1e3 * (time.perf_counter() - began))
    return list(map(statistics.median, times))


def main() -> None:
    print(f"{'':16s}{'s2s ms':>10s}{'JAX ms':>10s}{'JAX / s2s':>11s}{'first call s2s':>16s}{'JAX s':>8s}   objective")
    theirs = objectives_of_jax() if jax else {}
    for objective, (x, *data) in cases():
        ours = s2s.jit(newton_cg(objective))
        began = time.perf_counter()
        found = ours(x, *data)
        first = time.perf_counter() - began
        runs, reached, first_jax = [lambda ours=ours, x=x, data=data: ours(x, *data)], [objective(found, *data)], float("nan")
        if jax:
            jitted = jax.jit(newton_cg_of_jax(theirs[objective.__name__]))
            given = [jnp.asarray(v) for v in (x, *data)]
            began = time.perf_counter()
            reached.append(objective(np.asarray(jitted(*given)), *data))
            first_jax = time.perf_counter() - began
            runs.append(lambda jitted=jitted, given=given: jitted(*given).block_until_ready())
        took = milliseconds(runs) + [float("nan")]
        print(f"{objective.__name__:16s}{took[0]:10.2f}{took[1]:10.2f}{took[1] / took[0]:11.2f}{first:16.1f}{first_jax:8.1f}   "
              + "  ".join(f"{v:.12f}" for v in reached))


if __name__ == "__main__":
    main()
