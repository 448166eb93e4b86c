#!/usr/bin/env python3
"""Truncated Newton-CG on three problems: the experiment of table 1 of the JAX paper (Frostig,
Johnson & Leary 2018).

    python tools/bench/newton_cg.py

A convex quadratic, the marginal likelihood of a hidden Markov model, and logistic regression, by
the solver of cases/newton_cg.py: `s2s.grad` and `s2s.hvp` inside two `while` loops, compiled as one
program, against the same loops as JAX's `lax.while_loop`s.  Prints milliseconds per solve, CPU time
of the process with one thread for each, the least of runs in turns, the ratio, and the objective
that both have reached.  JAX is optional.  (run.py newton_cg has logistic regression against the
other libraries and the solver by hand.)
"""

import os
import sys
import time
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "S2S_THREADS"),
                  "1"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import libraries
import numpy as np

import s2s

try:
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = None

case = libraries.case("newton_cg")


def quadratic(x, A, b):
    return 0.5 * np.sum(x * (A @ x)) - np.sum(b * x)


def hidden_markov(theta, observed):
    """Minus the log marginal likelihood, plus a penalty; theta holds the logits of the rows of both
    matrices.
    """
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


def objectives_of_jax():
    def quadratic(x, A, b):
        return 0.5 * jnp.sum(x * (A @ x)) - jnp.sum(b * x)

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

    return {
        "quadratic": quadratic,
        "logistic": case.logistic_of_jax,
        "hidden_markov": hidden_markov
    }


def cases():
    rng = np.random.default_rng(0)
    n = 200
    Q = rng.normal(size=(n, n)) / np.sqrt(n)
    yield quadratic, (np.zeros(n), Q @ Q.T + np.eye(n), rng.normal(size=n))
    yield case.logistic, case.arguments()
    yield hidden_markov, (0.1 * rng.normal(size=(5, 5 + 8)), rng.integers(0, 8, size=200))


def milliseconds(runs, count=25):
    """The CPU time of each of `runs`, the least of many taken in turns."""
    times = [[] for _ in runs]
    for _ in range(count):
        for run, found in zip(runs, times):
            began = time.process_time()
            run()
            found.append(1e3 * (time.process_time() - began))
    return list(map(min, times))


def main() -> None:
    print(
        f"{'':16s}{'s2s ms':>10s}{'JAX ms':>10s}{'JAX / s2s':>11s}{'first call s2s':>16s}{'JAX s':>8s}   objective"
    )
    theirs = objectives_of_jax() if jax else {}
    for objective, (x, *data) in cases():
        ours = s2s.jit(case.newton_cg(objective))
        began = time.perf_counter()
        found = ours(x, *data)
        first = time.perf_counter() - began
        runs, reached, first_jax = [lambda ours=ours, x=x, data=data: ours(x, *data)
                                    ], [objective(found, *data)], float("nan")
        if jax:
            jitted = jax.jit(case.newton_cg_of_jax(theirs[objective.__name__]))
            given = [jnp.asarray(v) for v in (x, *data)]
            began = time.perf_counter()
            reached.append(objective(np.asarray(jitted(*given)), *data))
            first_jax = time.perf_counter() - began
            runs.append(lambda jitted=jitted, given=given: jitted(*given).block_until_ready())
        took = milliseconds(runs) + [float("nan")]
        print(
            f"{objective.__name__:16s}{took[0]:10.2f}{took[1]:10.2f}{took[1] / took[0]:11.2f}{first:16.1f}{first_jax:8.1f}   "
            + "  ".join(f"{v:.12f}" for v in reached))


if __name__ == "__main__":
    main()
