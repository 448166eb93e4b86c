"""A child-sum Tree-LSTM (Tai et al. 2015) on random trees: the calls of all trees as batches, tree
by tree, and JAX on padded trees, a step for each node. Times of the value and of its gradient in
all weights, in milliseconds; arithmetic is in float64, on one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np  # noqa: E402  after the number of threads

import s2s  # noqa: E402


def sigmoid(x):
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def encode(node, left, right, words, Wi, Wo, Wu, Ui, Uf, Uo, Uu):
    """The cell and the output of a node."""
    if left[node] < 0:
        x = words[node]
        c = sigmoid(Wi @ x) * np.tanh(Wu @ x)
        return c, sigmoid(Wo @ x) * np.tanh(c)
    c1, h1 = encode(left[node], left, right, words, Wi, Wo, Wu, Ui, Uf, Uo, Uu)
    c2, h2 = encode(right[node], left, right, words, Wi, Wo, Wu, Ui, Uf, Uo, Uu)
    h = h1 + h2
    c = sigmoid(Ui @ h) * np.tanh(Uu @ h) + sigmoid(Uf @ h1) * c1 + sigmoid(Uf @ h2) * c2
    return c, sigmoid(Uo @ h) * np.tanh(c)


def output(node, left, right, words, *weights):
    """The output of a node."""
    return encode(node, left, right, words, *weights)[1]


def losses(lanes: str) -> Callable:
    """A loss of all trees, whose lanes run together or apart."""
    of_trees = s2s.vmap(output, (0, 0, 0, 0) + (None,) * 7, lanes=lanes)

    def loss(Wi, Wo, Wu, Ui, Uf, Uo, Uu, root, left, right, words):
        h = of_trees(root, left, right, words, Wi, Wo, Wu, Ui, Uf, Uo, Uu)
        return np.sum(h * h)

    return loss


def padded_loss() -> Callable:
    """The loss in JAX: all trees have as many nodes as the largest, and each step computes one."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jnp, logistic = jax.numpy, jax.nn.sigmoid

    def tree(root, left, right, words, Wi, Wo, Wu, Ui, Uf, Uo, Uu):
        def step(state, k):
            cs, hs = state
            x, is_leaf = words[k], left[k] < 0
            c1, c2, h1, h2 = cs[left[k]], cs[right[k]], hs[left[k]], hs[right[k]]
            h = h1 + h2
            c = jnp.where(is_leaf, logistic(Wi @ x) * jnp.tanh(Wu @ x),
                          logistic(Ui @ h) * jnp.tanh(Uu @ h)
                          + logistic(Uf @ h1) * c1 + logistic(Uf @ h2) * c2)
            o = logistic(jnp.where(is_leaf, Wo @ x, Uo @ h))
            return (cs.at[k].set(c), hs.at[k].set(o * jnp.tanh(c))), None

        start = jnp.zeros((len(left), len(Wi))), jnp.zeros((len(left), len(Wi)))
        (_, hs), _ = jax.lax.scan(step, start, jnp.arange(len(left)))
        return hs[root]

    of_trees = jax.vmap(tree, (0, 0, 0, 0) + (None,) * 7)

    def loss(Wi, Wo, Wu, Ui, Uf, Uo, Uu, root, left, right, words):
        h = of_trees(root, left, right, words, Wi, Wo, Wu, Ui, Uf, Uo, Uu)
        return jnp.sum(h * h)

    return loss


def random_trees(rng, count: int, most: int, width: int) -> tuple:
    """The roots, children and words of trees with up to `most` leaves, children first, padded."""
    size = 2 * most - 1
    root, left, right = np.zeros(count, int), np.full((count, size), -1), np.full((count, size), -1)
    for tree in range(count):
        leaves = rng.integers(most // 4, most + 1)
        roots = list(range(leaves))
        for node in range(leaves, 2 * leaves - 1):
            k = rng.integers(len(roots) - 1)
            left[tree, node], right[tree, node] = roots[k:k + 2]
            roots[k:k + 2] = [node]
        root[tree] = 2 * leaves - 2
    return root, left, right, rng.normal(size=(count, size, width))


def milliseconds(f: Callable, *args) -> float:
    """The least of several times of f(*args)."""
    f(*args)
    found = []
    for _ in range(7):
        start = time.perf_counter()
        result = f(*args)
        for x in result if isinstance(result, tuple) else (result,):
            np.asarray(x)
        found.append(time.perf_counter() - start)
    return 1e3 * min(found)


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=64)
    parser.add_argument("--leaves", type=int, default=30, help="of the largest tree")
    parser.add_argument("--widths", type=int, nargs="*", default=[32, 128])
    chosen = parser.parse_args()
    import jax

    ways = {"batches": losses("together"), "batches, compiled": s2s.jit(losses("together")),
            "tree by tree": losses("apart"), "tree by tree, compiled": s2s.jit(losses("apart")),
            "JAX, padded": jax.jit(padded_loss())}
    gradients = {name: (jax.jit(jax.grad(padded_loss(), tuple(range(7)))) if "JAX" in name else
                        s2s.jit(s2s.grad(f.inner, tuple(range(7)))) if "compiled" in name else
                        s2s.grad(f, tuple(range(7)))) for name, f in ways.items()}
    print(f"{chosen.trees} trees of up to {chosen.leaves} leaves\n{'':26}"
          + "".join(f"{f'value, {n}':>14}{f'gradient, {n}':>16}" for n in chosen.widths))
    rng = np.random.default_rng(0)
    data = [(*rng.normal(size=(7, n, n)) / n ** 0.5,
             *random_trees(rng, chosen.trees, chosen.leaves, n)) for n in chosen.widths]
    expected = [gradients["JAX, padded"](*args) for args in data]
    for name, f in ways.items():
        row = []
        for args, want in zip(data, expected):
            for a, b in zip(gradients[name](*args), want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
            row.append(f"{milliseconds(f, *args):14.1f}"
                       f"{milliseconds(gradients[name], *args):16.1f}")
        print(f"{name:26}" + "".join(row))


if __name__ == "__main__":
    main()
