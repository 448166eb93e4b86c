#!/usr/bin/env python3
"""How the time of a gradient grows with its size: the slope on a log-log plot, over four decades.

    python tools/bench/growth.py [case ...]

The cases of tools/bench/cases that say `GROWTH = (smallest, largest)`.  The gradient of a linear
program should have slope 1 once it is large enough not to be a mere call: the slope printed last is
that of the upper three decades, and marked where it is beyond 1.05.  `out=` is the slope of calls
that write into arrays of an earlier one: where it is smaller, what grows is the system's work of
clearing the pages of new arrays.  `hand` is that of the adjoint written by hand: where it is as
large, what grows is the time of memory, which large sizes come from.  Each size is the least of
several runs; the CPU time of the thread is measured.
"""

import math
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import libraries  # noqa: E402

POINTS = 9
MOST = 1.05


def seconds(call) -> float:
    """Of one call: the least of as many as a tenth of a second allows, at least three."""
    call()
    best, spent = math.inf, 0.0
    while spent < 0.1 or best == math.inf:
        began = time.thread_time()
        for _ in range(3):
            call()
        took = time.thread_time() - began
        best, spent = min(best, took / 3), spent + took
    return best


def slope(sizes: list[float], times: list[float]) -> float:
    """Of the straight line through the logarithms."""
    x, y = [math.log(s) for s in sizes], [math.log(t) for t in times]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)


def main() -> None:
    if "--help" in sys.argv:
        print(__doc__)
        return
    for name in sys.argv[1:] or libraries.names():
        module = libraries.case(name)
        if not hasattr(module, "GROWTH"):
            continue
        low, high = module.GROWTH
        sizes = [round(low * (high / low) ** (k / (POINTS - 1))) for k in range(POINTS)]
        found: dict[str, list[float]] = {}
        for size in sizes:
            calls = libraries.calls(module, "s2s", module.arguments(size))
            calls["hand"] = libraries.calls(module, "hand", module.arguments(size))["gradient"]
            for which in ("gradient", "reused", "hand"):
                found.setdefault(which, []).append(seconds(calls.get(which, calls["gradient"])))
        upper = [k for k in range(POINTS) if sizes[k] >= high / 1000]
        slopes = {
            which: slope([sizes[k] for k in upper], [times[k] for k in upper])
            for which, times in found.items()
        }
        fresh = found["gradient"]
        print(
            f"{name:16s}" + "".join(f"{n:>9d}:{1e3 * t:9.4f} ms"
                                    for n, t in zip(sizes[::2], fresh[::2]))
            + f"   slope {slope(sizes, fresh):.3f}, upper decades {slopes['gradient']:.3f}" + " !" *
            (slopes["gradient"] > MOST)
            + f", out= {slopes['reused']:.3f}, hand {slopes['hand']:.3f}", flush=True)


if __name__ == "__main__":
    main()
