"""Checkpointed loops against plain ones: time and memory of compiled gradients.

    python tools/bench/checkpoint.py [--quick]

Each line is one program and one way to run it: what `.lower(*args).memory` says is saved, by how much the process grew while the gradient
ran (each runs in a process of its own), the time of a call, and how many times that of the plain gradient it is.  The time is
the least CPU time of ten calls: another program on the machine can only make a call longer, and wall time on a busy one gave
ratios up to twice as large.  The results are in tools/bench/results/checkpoint.md.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np

import s2s


def logistic(x, r, n):
    for _ in range(n):
        x = r * x * (1 - x)
    return x


def logistic_checkpointed(x, r, n):
    for _ in s2s.checkpoint(range(n)):
        x = r * x * (1 - x)
    return x


def logistic_100(x, r, n):
    for _ in s2s.checkpoint(range(n), snapshots=100):
        x = r * x * (1 - x)
    return x


def pull(t, x, v, drive):
    return drive * np.cos(1.2 * t) + x - x * x * x - 0.3 * v


def stepped(i, h, x, v, drive):
    """One step of Duffing's oscillator by Runge and Kutta's method of fourth order."""
    t = i * h
    k1, l1 = v, pull(t, x, v, drive)
    k2, l2 = v + h / 2 * l1, pull(t + h / 2, x + h / 2 * k1, v + h / 2 * l1, drive)
    k3, l3 = v + h / 2 * l2, pull(t + h / 2, x + h / 2 * k2, v + h / 2 * l2, drive)
    k4, l4 = v + h * l3, pull(t + h, x + h * k3, v + h * l3, drive)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), v + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)


def duffing(x, v, drive, n):
    for i in range(n):
        x, v = stepped(i, 1e-5, x, v, drive)
    return x * v


def duffing_checkpointed(x, v, drive, n):
    for i in s2s.checkpoint(range(n)):
        x, v = stepped(i, 1e-5, x, v, drive)
    return x * v


def stencil(u, k, n):
    for _ in range(n):
        u = u + k * np.sin(np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return np.sum(u * u)


def stencil_checkpointed(u, k, n):
    for _ in s2s.checkpoint(range(n), memory="16MB"):
        u = u + k * np.sin(np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return np.sum(u * u)


def in_place(u, k, n):
    u = u.copy()
    for _ in range(n):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * np.sin(u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


def in_place_checkpointed(u, k, n):
    u = u.copy()
    for _ in s2s.checkpoint(range(n), memory="1MB"):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * np.sin(u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


def problems(quick: bool) -> list[tuple]:
    """(what, the functions, the first the plain one, arguments)."""
    n = 100_000 if quick else 1_000_000
    u, m = np.sin(np.arange(10_000.0)), n // 500
    return [("logistic", n, ["logistic", "logistic_checkpointed", "logistic_100"], (0.3, 3.2, n)),
            ("duffing", n, ["duffing", "duffing_checkpointed"], (0.5, 0.1, 0.3, n)),
            ("stencil", m, ["stencil", "stencil_checkpointed"], (u, 0.1, m)),
            ("in place", m, ["in_place", "in_place_checkpointed"], (u[:500], 0.1, m))]


def grown() -> int:
    """The most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(name: str, args: tuple) -> dict:
    """One function, in this process."""
    gradient = s2s.jit(s2s.grad(globals()[name], argnums=(0, 1)))
    gradient(*args[:-1], 50)
    before = grown()
    gradient(*args)
    more, best = grown() - before, float("inf")
    for _ in range(10):
        start = time.thread_time()
        gradient(*args)
        best = min(best, time.thread_time() - start)
    return {"grown": more, "time": best, "saved": int(s2s.grad(globals()[name]).lower(*args).memory)}


def main() -> None:
    quick = "--quick" in sys.argv
    if "--one" in sys.argv:
        name = sys.argv[-1]
        args = next(args for _, _, names, args in problems(quick) if name in names)
        print(json.dumps(measured(name, args)))
        return
    print(f"{'':24} {'trips':>9} {'saved':>13} {'grown by':>13} {'ms':>9} {'times plain':>12}")
    for _, trips, names, _ in problems(quick):
        plain = None
        for name in names:
            command = [sys.executable, __file__, *(["--quick"] if quick else []), "--one", name]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            plain = plain or found["time"]
            print(f"{name:24} {trips:9,} {found['saved']:13,} {found['grown']:13,} {found['time'] * 1e3:9.2f} {found['time'] / plain:12.2f}")


if __name__ == "__main__":
    main()
