#!/usr/bin/env python3
"""What derivatives cost, in units of the function: the gradient, and the Hessian times a vector, all compiled.

    python tools/bench/cost.py [program ...]

The programs of tests/programs.py that the tests compile, at sizes where a run takes about a millisecond.  Each row is
measured in one go, the three in turns, medians of 15.  A gradient should cost no more than 5, a product with the Hessian no
more than 12.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests"))

import programs as p

import s2s

RNG = np.random.default_rng(0)


def grid(n):
    return RNG.standard_normal((n, n))


LARGE = {  # arguments that make a run long enough to be timed
    "logistic_loss": (RNG.normal(size=50), 0.2, RNG.normal(size=(5000, 50)), (RNG.random(5000) < 0.5) * 1.0),
    "relax": (RNG.normal(size=20000), 0.2, 20),
    "gauss_seidel": (grid(128), grid(128), 20),
    "heat_equation": (RNG.normal(size=5000), 0.1, 100),
    "lotka_volterra": (1.0, 0.5, 1.1, 0.4, 0.1, 0.4, 20000),
    "triangular": (RNG.normal(size=800),),
    "soft_edit_distance": (RNG.normal(size=200), RNG.normal(size=200), 0.7),
    "horner": (RNG.normal(size=20000) * 0.1, 0.9),
    "matmul_loops": (RNG.normal(size=(80, 80)), RNG.normal(size=(80, 80))),
    "continue_in_loop": (RNG.normal(size=100000),),
    "break_in_loop": (0.001 * RNG.normal(size=100000), 1e9),
    "prefix_sums": (RNG.normal(size=50000),),
    "softmax_rows": (RNG.normal(size=(500, 100)),),
    "log_sum_exp": (RNG.normal(size=50000),),
    "n_body_energy": (RNG.normal(size=(120, 3)), RNG.random(120) + 0.5),
    "dynamic_time_warping": (RNG.normal(size=200), RNG.normal(size=200)),
    "strided_slices": (RNG.normal(size=100000), 0.3),
}


def medians(runs, count=15):
    times = [[] for _ in runs]
    for _ in range(count):
        for run, found in zip(runs, times):
            began = time.perf_counter()
            run()
            found.append(time.perf_counter() - began)
    return list(map(statistics.median, times))


def main() -> None:
    wanted = sys.argv[1:] or list(LARGE)
    print(f"{'':24s}{'f ms':>9s}{'grad / f':>10s}{'hvp / f':>10s}")
    for program in p.PROGRAMS:
        if program.name not in wanted or program.name not in LARGE:
            continue
        f, args, wrt = program.function, LARGE[program.name], program.wrt
        primal, gradient = s2s.jit(f), s2s.jit(s2s.grad(f, argnums=wrt))
        along = [np.ones_like(x) if isinstance(x, np.ndarray) else type(x)(k in wrt) for k, x in enumerate(args)]
        product = s2s.jit(s2s.jvp(s2s.grad(f, argnums=wrt)))
        runs = [lambda: primal(*args), lambda: gradient(*args), lambda: product(*args, *along)]
        try:
            for run in runs:
                run()
        except Exception as error:
            print(f"{program.name:24s}{type(error).__name__}: {str(error).splitlines()[-1]}")
            continue
        a, b, c = medians(runs)
        print(f"{program.name:24s}{1e3 * a:9.3f}{b / a:10.2f}{c / a:10.2f}", flush=True)


if __name__ == "__main__":
    main()
