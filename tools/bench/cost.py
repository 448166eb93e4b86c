#!/usr/bin/env python3
"""What derivatives cost, in units of the function: the gradient, and the Hessian times a vector,
all compiled.

    python tools/bench/cost.py [program ...]

The programs of tests/programs.py, with arguments for which a run takes about a millisecond; what
takes numbers, or arrays of a fixed size, runs as a thousand lanes, whose first arguments differ.  A
gradient should cost no more than 5, a product with the Hessian no more than 12; what does is
marked.  The results are in tools/bench/results/cost.md.

How it is measured: the CPU time of the thread, the three in turns in one process, the BLAS on one
thread; the least of at least 15 runs of each, and of more where they are short.  Another program on
the machine can only make a run longer, so the least is what the code itself takes; where medians of
wall time were taken, a busy machine moved the ratios by a third.  The allocator keeps what it is
given back: otherwise a tape of megabytes is memory that the system fills with zeros page by page,
in one run and not in the next, depending on what the other two have just given back.
"""

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests"))

import programs as p  # noqa: E402

import s2s  # noqa: E402

RNG = np.random.default_rng(0)
MOST = 5.0, 12.0  # a gradient, a product with the Hessian
LANES = 1000
SECONDS = 0.4  # of CPU time for each of the three, or 15 runs if that is more


def normal(*shape, scale=1.0):
    return scale * RNG.normal(size=shape)


LARGE = {  # arguments that make a run long enough to be timed
    "logistic_loss": (normal(50), 0.2, normal(5000, 50), (RNG.random(5000) < 0.5) * 1.0),
    "relax": (normal(20000), 0.2, 20),
    "gauss_seidel": (normal(128, 128), normal(128, 128), 20),
    "heat_equation": (normal(5000), 0.1, 100),
    "lotka_volterra": (1.0, 0.5, 1.1, 0.4, 0.1, 0.4, 20000),
    "triangular": (normal(800),),
    "soft_edit_distance": (normal(200), normal(200), 0.7),
    # whose powers stay normal numbers, as others take some processors 50 times as long
    "horner": (normal(20000, scale=0.1), 0.9999),
    "matmul_loops": (normal(80, 80), normal(80, 80)),
    "perceptron": (normal(30, 40, scale=0.3), normal(40), normal(40, 10, scale=0.3), normal(10), normal(300, 30), normal(300, 10)),
    "swap_in_loop": (0.3, 0.4, 1000),
    "break_in_loop": (normal(100000, scale=0.001), 1e9),
    "continue_in_loop": (normal(100000, scale=0.001),),
    "return_from_loop": (normal(100000, scale=0.001), 1e9),
    "written_twice": (normal(20000),),
    "return_from_nest": (normal(200, 200, scale=0.01), 1e9),
    "call_and_global": (normal(20000),),
    "broadcasting": (normal(200, 100), normal(100), normal(200)),
    "softmax_rows": (normal(500, 100),),
    "log_sum_exp": (normal(50000),),
    "masked_where": (normal(50000),),
    "integer_sum": (0.8, 100000),
    "softmax_regression": (normal(50, 10), normal(1000, 50), normal(1000)),
    "convolution": (normal(10000), normal(20)),
    "prefix_sums": (normal(50000),),
    "kalman": (normal(20000), 0.3, 0.5),
    "lstm": (normal(4, 8), normal(2, 8), normal(1000, 4)),
    "n_body_energy": (normal(120, 3), RNG.random(120) + 0.5),
    "zip_and_enumerate": (normal(50000), normal(50000)),
    "reductions": (normal(100, 100, scale=0.01) + 1.0,),
    "dynamic_time_warping": (normal(200), normal(200)),
    "hidden_markov": (RNG.random(20), normal(20, 20), RNG.integers(0, 20, 1000)),
    "power_iteration": (normal(100, 100), normal(100)),
}


def least(runs) -> list[float]:
    """CPU seconds of each: the least of many, taken in turns."""
    best, spent, count = [float("inf")] * len(runs), 0.0, 0
    while count < 15 or spent < SECONDS * len(runs) and count < 1000:
        for k, run in enumerate(runs):
            began = time.thread_time()
            run()
            found = time.thread_time() - began
            best[k], spent = min(best[k], found), spent + found
        count += 1
    return best


def runs_of(program) -> list[Callable]:
    """Calls of the function, of its gradient, of its Hessian times a vector; of many lanes, where
    one run is too short.
    """
    f, wrt = program.function, program.wrt
    args = LARGE.get(program.name, program.args)
    along = [
        np.ones_like(x) if isinstance(x, np.ndarray) else type(x)(k in wrt)
        for k, x in enumerate(args)
    ]
    kinds, gradient = [f, s2s.grad(f, argnums=wrt)], s2s.jvp(s2s.grad(f, argnums=wrt))
    axes = (None,) * len(args)
    if program.name not in LARGE:
        first = np.asarray(args[0])
        args = first + 1e-9 * np.arange(LANES).reshape(-1, *[1] * first.ndim), *args[1:]
        axes = 0, *axes[1:]
        kinds, gradient = [s2s.vmap(kind, axes)
                           for kind in kinds], s2s.vmap(gradient, (*axes, *[None] * len(args)))
    primal, first_order, second_order = map(s2s.jit, (*kinds, gradient))
    return [lambda: primal(*args), lambda: first_order(*args), lambda: second_order(*args, *along)]


def measured(program) -> list[float]:
    """CPU seconds of the function, of its gradient, of its Hessian times a vector."""
    runs = runs_of(program)
    for run in runs:
        run()
    return least(runs)


def keep_memory() -> None:
    """Let the allocator keep up to a gigabyte, where it is glibc's."""
    with contextlib.suppress(OSError, AttributeError):
        trim_threshold, mmap_threshold = -1, -3
        for setting in (trim_threshold, mmap_threshold):
            ctypes.CDLL(None).mallopt(setting, 1 << 30)


def main() -> None:
    keep_memory()
    s2s.set_threads(1)
    wanted = sys.argv[1:]
    print(
        f"| {'program':24s} | {'function, ms':>12s} | {'gradient':>8s} | {'Hessian times vector':>20s} |\n|---|---:|---:|---:|"
    )
    for program in p.PROGRAMS:
        if program.name in p.MORE_RESULTS or wanted and program.name not in wanted:
            continue
        f, *derivatives = measured(program)
        ratios = [f"{t / f:.2f}" + " !" * (t / f > most) for t, most in zip(derivatives, MOST)]
        print(f"| {program.name:24s} | {1e3 * f:12.3f} | {ratios[0]:>8s} | {ratios[1]:>20s} |",
              flush=True)


if __name__ == "__main__":
    main()
