"""The time of an access to a dict with keys that are known at run time, in Python, compiled, and in
a gradient: it is the same for few keys and for many.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import s2s


def totals(x, keys):
    """Three accesses for each item of `x`."""
    d = {}
    for i in range(len(x)):
        d[keys[i]] = d.get(keys[i], 0.0) + x[i] * x[i]
    total = 0.0
    for i in range(len(x)):
        total += d[keys[i]] * x[i]
    return total


def seconds(f: Callable, *args) -> float:
    """The least of several times of f(*args)."""
    f(*args)
    found = []
    for _ in range(5):
        count = max(1, 2000 // len(args[0]))
        start = time.perf_counter()
        for _ in range(count):
            f(*args)
        found.append((time.perf_counter() - start) / count)
    return min(found)


def main() -> None:
    """Print the nanoseconds of an access."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    value, gradient = s2s.jit(totals), s2s.jit(s2s.grad(totals))
    value(np.ones(3), np.arange(3)), gradient(np.ones(3), np.arange(3))
    print(f"compiled in {time.perf_counter() - start:.1f} s")
    print(f"{'keys':>8}{'accesses':>10}{'Python':>10}{'compiled':>10}{'gradient':>10}")
    for count, length in (4, 4), (8, 8), (4, 16_000), (8, 16_000), (100, 16_000), (
            16_000, 16_000), (64_000, 64_000):
        keys = rng.permutation(np.arange(length) % count) * 7 - 50
        x = rng.uniform(size=length)
        times = [seconds(totals, x.tolist(), keys.tolist()), seconds(value, x, keys),
                 seconds(gradient, x, keys)]
        print(f"{count:8}{3 * length:10}", *(f"{t / (3 * length) * 1e9:9.1f}" for t in times))


if __name__ == "__main__":
    main()
