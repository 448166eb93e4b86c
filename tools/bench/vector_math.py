#!/usr/bin/env python3
"""exp, log, sin and their kin over arrays: s2s's compiled loops against JAX, NumPy and PyTorch, and
how exact each is.

    python tools/bench/vector_math.py [function ...] [--record VERSION] [--wall]

Nanoseconds for an element of an array of 20,000, which stays in the cache; every library with one
thread, all in turns in one process, the least of many runs (of the CPU time of the process: on a
busy machine it is what repeats).  Each writes a new array. ulp is the largest error on these
arguments, in units of the last place, of s2s and of JAX.

    --record   the table goes to tools/bench/results/vector_math-VERSION.md
    --wall     wall time
"""

import argparse
import os
import platform
import time
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
from scipy import special

import s2s

try:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
except ImportError:
    jax = None
try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

COUNT, RUNS = 20_000, 40
LIBRARIES = ("s2s", "jax", "numpy", "torch")

# name: (s2s's and NumPy's, JAX's, PyTorch's, from, to); of two operands the second is the first
# reversed
FUNCTIONS = {
    "exp": (lambda x, y: np.exp(x), lambda x, y: jnp.exp(x), lambda x, y: torch.exp(x), -5, 5),
    "log": (lambda x, y: np.log(x), lambda x, y: jnp.log(x), lambda x, y: torch.log(x), 0.1, 50),
    "sin": (lambda x, y: np.sin(x), lambda x, y: jnp.sin(x), lambda x, y: torch.sin(x), -10, 10),
    "cos": (lambda x, y: np.cos(x), lambda x, y: jnp.cos(x), lambda x, y: torch.cos(x), -10, 10),
    "tan": (lambda x, y: np.tan(x), lambda x, y: jnp.tan(x), lambda x, y: torch.tan(x), -10, 10),
    "tanh": (lambda x, y: np.tanh(x), lambda x, y: jnp.tanh(x), lambda x, y: torch.tanh(x), -4, 4),
    "expm1":
        (lambda x, y: np.expm1(x), lambda x, y: jnp.expm1(x), lambda x, y: torch.expm1(x), -2, 2),
    "log1p":
        (lambda x, y: np.log1p(x), lambda x, y: jnp.log1p(x), lambda x, y: torch.log1p(x), -0.5, 5),
    "pow": (lambda x, y: x ** y, lambda x, y: x ** y, lambda x, y: x ** y, 0.1, 5),
    "sqrt": (lambda x, y: np.sqrt(x), lambda x, y: jnp.sqrt(x), lambda x, y: torch.sqrt(x), 0.1, 5),
    "erf": (lambda x, y: special.erf(x), lambda x, y: jax.scipy.special.erf(x),
            lambda x, y: torch.erf(x), -3, 3),
    "erfc": (lambda x, y: special.erfc(x), lambda x, y: jax.scipy.special.erfc(x),
             lambda x, y: torch.erfc(x), -3, 6),
    "atan":
        (lambda x, y: np.arctan(x), lambda x, y: jnp.arctan(x), lambda x, y: torch.atan(x), -5, 5),
    "atan2": (lambda x, y: np.arctan2(x, y), lambda x, y: jnp.arctan2(x, y),
              lambda x, y: torch.atan2(x, y), -5, 5),
    "sigmoid": (lambda x, y: special.expit(x), lambda x, y: jax.nn.sigmoid(x),
                lambda x, y: torch.sigmoid(x), -5, 5),
    "softplus": (lambda x, y: np.logaddexp(0, x), lambda x, y: jax.nn.softplus(x),
                 lambda x, y: torch.nn.functional.softplus(x), -5, 5),
    "logsumexp": (lambda x, y: special.logsumexp(x), lambda x, y: jax.scipy.special.logsumexp(x),
                  lambda x, y: torch.logsumexp(x, 0), -5, 5),
}


def calls(name: str, dtype) -> dict:
    """What each library runs, on arrays of its own."""
    plain, of_jax, of_torch, low, high = FUNCTIONS[name]
    x = np.linspace(low, high, COUNT).astype(dtype)
    y = np.ascontiguousarray(x[::-1])
    fast = s2s.jit(plain, parallel=False)
    found = {"s2s": lambda: fast(x, y), "numpy": lambda: plain(x, y)}
    if jax is not None:
        compiled, a, b = jax.jit(of_jax), jnp.asarray(x), jnp.asarray(y)
        found["jax"] = lambda: compiled(a, b).block_until_ready()
    if torch is not None:
        c, d = torch.tensor(x), torch.tensor(y)
        found["torch"] = lambda: of_torch(c, d)
    return found


def least(runs: dict, now) -> dict:
    """Nanoseconds for an element, the least of many runs in turns."""
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():
        run()
    for _ in range(RUNS):
        for name, run in runs.items():
            began = now()
            run()
            best[name] = min(best[name], now() - began)
    return {name: seconds / COUNT * 1e9 for name, seconds in best.items()}


def errors(runs: dict, name: str, dtype) -> dict:
    """The largest error of s2s and JAX in ulp, against the same in long double; None where that is
    double, or has no such function.
    """
    plain, *_, low, high = FUNCTIONS[name]
    if np.finfo(np.longdouble).nmant < 60 or name in ("erf", "erfc", "sigmoid", "logsumexp"):
        return {}
    x = np.linspace(low, high, COUNT).astype(dtype)
    exact = plain(x.astype(np.longdouble), x[::-1].astype(np.longdouble))
    unit = np.spacing(np.abs(exact.astype(dtype))).astype(np.longdouble)
    return {
        k: float(np.max(np.abs(np.asarray(runs[k]()).astype(np.longdouble) - exact) / unit))
        for k in ("s2s", "jax") if k in runs
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS))
    parser.add_argument("--record")
    parser.add_argument("--wall", action="store_true")
    options = parser.parse_args()
    now = time.perf_counter if options.wall else time.process_time
    lines = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    say("| ns an element | dtype | " + " | ".join(LIBRARIES) + " | jax / s2s | ulp s2s | ulp jax |")
    say("|---|---|" + "---:|" * (len(LIBRARIES) + 3))
    for name in options.functions or FUNCTIONS:
        for dtype in (np.float64, np.float32):
            runs = calls(name, dtype)
            times, ulp = least(runs, now), errors(runs, name, dtype)
            cells = [f"{times[k]:.2f}" if k in times else "-" for k in LIBRARIES]
            cells.append(f"{times['jax'] / times['s2s']:.1f}" if "jax" in times else "-")
            cells += [f"{ulp[k]:.1f}" if k in ulp else "-" for k in ("s2s", "jax")]
            say(f"| {name} | {dtype.__name__} | " + " | ".join(cells) + " |")
    if options.record:
        folder = Path(__file__).resolve().parent / "results"
        folder.mkdir(exist_ok=True)
        versions = f"NumPy {np.__version__}" + (f", JAX {jax.__version__}" if jax else "") + (
            f", PyTorch {torch.__version__}" if torch else "")
        head = (
            f"# Vector math\n\n{platform.machine()}, Python {platform.python_version()}, {versions}; one thread each, "
            f"{'wall' if options.wall else 'CPU'} time, the least of {RUNS} runs in turns over {COUNT:,} elements.\n\n"
        )
        (folder / f"vector_math-{options.record}.md").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
