"""Workers: the time of a psum, and of gradients that workers share the data of, against one worker.

The least of many short runs, for a shared machine: with the load that it has meanwhile.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np

import s2s
from s2s import lax


def mixture(p, x):
    """The mean log-likelihood of a Gaussian mixture, of the points `x`."""
    weights, means, scales = p["weights"], p["means"], p["scales"]
    d = (x[:, None, :] - means) / np.exp(scales)
    logs = weights - np.sum(scales, axis=1) - 0.5 * np.sum(d * d, axis=2)
    top = np.max(logs, axis=1)
    return np.mean(top + np.log(np.sum(np.exp(logs - top[:, None]), axis=1)))


def perceptron(p, x):
    """The mean squared error of a perceptron of two layers, of rows with what they are to give."""
    h = np.tanh(x[:, 1:] @ p["W"] + p["b"])
    return np.mean((np.tanh(h @ p["V"]) - x[:, 0]) ** 2)


def programs(rng: np.random.Generator) -> dict:
    """The name of each program, its loss, its parameters and its data."""
    return {
        "Gaussian mixture": (mixture, {
            "weights": np.zeros(8), "means": rng.normal(size=(8, 4)),
            "scales": np.zeros((8, 4))}, rng.normal(size=(20_000, 4))),
        "perceptron": (perceptron, {
            "W": rng.normal(size=(16, 32)), "b": np.zeros(32), "V": rng.normal(size=32)},
            rng.normal(size=(20_000, 17))),
    }


def least(f: Callable, *args, repeats: int = 60) -> float:
    """The least of the times of f(*args), in seconds."""
    f(*args)
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        f(*args)
        found.append(time.perf_counter() - start)
    return min(found)


def gradient(loss: Callable, workers: int) -> Callable:
    """The gradient of the mean loss of parts of the data."""
    parts = s2s.pmap(loss, in_axes=(None, 0), workers=workers)
    return s2s.jit(s2s.grad(lambda p, x: np.mean(parts(p, x))))


def repeated(x, k):
    for _ in range(k):
        x = lax.psum(x, "i") * 0.5
    return x


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    count = parser.parse_args().workers
    print(f"{count} workers, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    for workers in count, 2 * len(os.sched_getaffinity(0)):
        over = s2s.pmap(repeated, "i", in_axes=(0, None), workers=workers)
        for size, k in ((), 500), ((1000,), 500), ((1_000_000,), 4):
            x = np.ones((workers, *size))
            each = (least(over, x, 2 * k) - least(over, x, k)) / k
            print(f"psum of {int(np.prod(size)):7} numbers, {workers} workers:"
                  f"{each * 1e6:10.1f} us")
    x = np.ones(1_000_000)
    print(f"a copy of {len(x)} numbers: {least(np.copyto, np.empty_like(x), x) * 1e6:.1f} us")
    rng = np.random.default_rng(0)
    for name, (loss, p, x) in programs(rng).items():
        plain = least(s2s.jit(s2s.grad(loss), parallel=False), p, x)
        shared = [least(gradient(loss, n), p, s2s.shard(x, count)) for n in (1, count)]
        print(f"gradient of a {name}: {plain * 1e3:.2f} ms by one thread, {shared[0] * 1e3:.2f} ms "
              f"by one worker, {shared[1] * 1e3:.2f} ms by {count}: {shared[0] / shared[1]:.2f} "
              "times")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
