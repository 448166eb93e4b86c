#!/usr/bin/env python3
"""What threads gain, over sizes: time on one core divided by time with threads, of compiled
gradients.

    python tools/bench/threads.py [--threads N] [--most 7] [--cpu]

For each program and each size 10^2 .. 10^most: the ratios of wall time of `jit(t, parallel=False)`
to that of `jit(t)`, which shares what is worth it, and to that of `jit(t, parallel=True)`.  At
least 1 is never slower; 2 is what two cores can give.  Calls are interleaved in one process and the
least of many is taken.  The code for one core runs twice in each turn: how far the two are apart is
the noise, and `jit(t)` counts as slower where it is slower by more than that.  The exit status says
whether it is.  With --cpu one thread does all, and the thread's own time is measured: what parts
cost that nobody shares, whatever else the machine does.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from loops_for_threads import elementwise, heat, logistic, root  # noqa: E402

import s2s  # noqa: E402


def copy(x):
    return x + 1.0


def cases(n: int):
    """Name, transformed function, arguments; n is the number of elements, of trips times their
    length.
    """
    rng = np.random.default_rng(0)
    rows, side = max(1, n // 10), max(3, int(n**0.5))
    yield "elements, sin and exp", s2s.value_and_grad(elementwise), (rng.normal(size=n),)
    yield "rows, a sum and a gradient of 10", s2s.value_and_grad(logistic, argnums=2), (
        rng.normal(size=(rows, 10)), np.sign(rng.normal(size=rows)), rng.normal(size=10))
    yield "lanes of Newton's method", s2s.vmap(s2s.grad(root)), (rng.uniform(1, 9, size=rows),)
    yield "5 steps of a stencil", s2s.grad(heat), (rng.random((side, side)), 5)
    yield "memory: x + 1", s2s.jit(copy), (rng.random(n),)


def least(calls, clock, seconds: float) -> list[float]:
    """The least time of each call, in turns."""
    best = [np.inf] * len(calls)
    end, turns = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or turns < 5:
        turns += 1
        for k, call in enumerate(calls):
            start = clock()
            call()
            best[k] = min(best[k], clock() - start)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--most", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each program and size")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    s2s.set_threads(1 if options.cpu else options.threads)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(
        f"{s2s.threads()} threads on {os.cpu_count()} cores{load}; one core / parallel=None, one core / parallel=True\n"
    )
    compiled: dict[str, list] = {}
    print(f"{'':34}" + "".join(f"{'10^' + str(k):>14}" for k in range(2, options.most + 1)))
    rows: dict[str, list[str]] = {}
    slower: list[str] = []
    noise = 0.02  # at least
    for k in range(2, options.most + 1):
        for name, t, args in cases(10**k):
            fast = compiled.setdefault(
                name, [s2s.jit(t, parallel=parallel) for parallel in (False, None, True)])
            calls = [lambda f=f, args=args: f(*args) for f in fast]
            for call in calls:
                call()
            one, unasked, asked, again = least(
                [*calls, calls[0]], time.thread_time if options.cpu else time.perf_counter,
                options.seconds)
            noise = max(noise, abs(one / again - 1))
            if unasked > min(one, again) * (1 + abs(one / again - 1) + 0.02):
                slower.append(f"{name}, 10^{k}: {min(one, again) / unasked:.2f}")
            rows.setdefault(name, []).append(f"{one / unasked:.2f}, {one / asked:.2f}")
    for name, ratios in rows.items():
        print(f"{name:34}" + "".join(f"{ratio:>14}" for ratio in ratios))
    print(
        f"\nTwo runs of the same code differ by up to {100 * noise:.0f} %.  parallel=None is slower than one core beyond that: "
        + ("; ".join(slower) or "nowhere"))
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
