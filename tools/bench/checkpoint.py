"""Checkpointed loops against plain ones: time and memory of compiled gradients.

    python tools/bench/checkpoint.py [--quick]

Each line is one program and one way to run it: what `.lower(*args).memory` says is saved, by how
much the process grew while the gradient ran (each runs in a process of its own), the time of a
call, and how many times that of the plain gradient it is.  The time is the least CPU time of ten
calls or more, the ways to run one program in turns in one process: another program on the machine
can only make a call longer, and wall time on a busy one gave ratios up to twice as large; processes
one after the other met the machine in different states, which moved the ratios by a third.  The
results are in tools/bench/results/checkpoint.md.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np

import s2s

SECONDS = 2.0  # of CPU time for the ways to run one program, or ten calls of each if that is more


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


def gradient_of(name: str):
    return s2s.jit(s2s.grad(globals()[name], argnums=(0, 1)))


def memory(name: str, args: tuple) -> dict:
    """What one function saves, and by how much this process grows while its gradient runs."""
    gradient = gradient_of(name)
    gradient(*args[:-1], 50)
    before = grown()
    gradient(*args)
    return {"grown": grown() - before, "saved": int(s2s.grad(globals()[name]).lower(*args).memory)}


def times(names: list[str], args: tuple) -> dict[str, float]:
    """CPU seconds of the gradients of these functions, in turns."""
    gradients = {name: gradient_of(name) for name in names}
    best = dict.fromkeys(names, float("inf"))
    for gradient in gradients.values():
        gradient(*args)
    began, count = time.thread_time(), 0
    while count < 10 or time.thread_time() - began < SECONDS and count < 100:
        for name, gradient in gradients.items():
            start = time.thread_time()
            gradient(*args)
            best[name] = min(best[name], time.thread_time() - start)
        count += 1
    return best


def apart(name: str, quick: bool, how: str) -> dict:
    """What a process of its own finds out about a program."""
    command = [sys.executable, __file__, *(["--quick"] if quick else []), how, name]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    quick = "--quick" in sys.argv
    found = next((p for p in problems(quick) if sys.argv[-1] in p[2]), None)
    if "--memory" in sys.argv:
        print(json.dumps(memory(sys.argv[-1], found[3])))
        return
    if "--times" in sys.argv:
        print(json.dumps(times(found[2], found[3])))
        return
    print(f"{'':24} {'trips':>9} {'saved':>13} {'grown by':>13} {'ms':>9} {'times plain':>12}")
    for _, trips, names, _ in problems(quick):
        took = apart(names[0], quick, "--times")
        for name in names:
            needs = apart(name, quick, "--memory")
            print(
                f"{name:24} {trips:9,} {needs['saved']:13,} {needs['grown']:13,} {took[name] * 1e3:9.2f} {took[name] / took[names[0]]:12.2f}",
                flush=True)


if __name__ == "__main__":
    main()
