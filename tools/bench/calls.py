#!/usr/bin/env python3
"""What a call costs: of a compiled gradient, beside a bare call of a Numba function that takes and
returns as much.

    python tools/bench/calls.py [--peers] [--all]

The bare function has the arguments and results as a flat list, and does as little work; `out=`
writes into arrays that are there.  With --peers, JAX's jitted gradient is called on the same
arguments, in the same process. With --all there is a tree of a hundred arrays, which Numba takes
minutes to compile.  Processor time of the thread, the calls in turns, the least of 25 rounds: what
a call costs where nothing else runs.
"""

import sys
import time

import numpy as np
from numba import njit

import s2s

ROUNDS = 25


def least(runs, count):
    """For each run, the least nanoseconds a call takes, over rounds of `count` calls in turns."""
    best = [float("inf")] * len(runs)
    for run, args, keywords in runs:
        run(*args, **keywords)
    for _ in range(ROUNDS):
        for k, (run, args, keywords) in enumerate(runs):
            begin = time.thread_time_ns()
            if keywords:
                for _ in range(count): run(*args, **keywords)
            else:
                for _ in range(count): run(*args)
            best[k] = min(best[k], (time.thread_time_ns() - begin) / count)
    return best


def one(x): return np.sin(x) * x


def three(x, y, z): return np.sin(x) * y + z * x


def arrays(x, y, z): return np.sum(x * y + np.sin(z))


def tree(p):
    total = 0.0
    for key in p:
        total = total + np.sum(p[key] * p[key])
    return total


def numbers(p):
    total = 0.0
    for key in p:
        total = total + p[key] * p[key]
    return total


@njit
def bare_one(x): return np.sin(x) + x * np.cos(x)


@njit
def bare_three(x, y, z): return np.cos(x) * y + z, np.sin(x), x


@njit
def bare_arrays(x, y, z):
    a, b, c = np.empty(len(x)), np.empty(len(x)), np.empty(len(x))
    for i in range(len(x)):
        a[i], b[i], c[i] = y[i], x[i], np.cos(z[i])
    return a, b, c


def bare_leaves(count, body, result):
    """The bare function of `count` leaves."""
    names = [f"a{k}" for k in range(count)]
    text = f"def bare({', '.join(names)}):\n" + "".join(f"    {body.format(a)}\n" for a in names)
    text += f"    return {', '.join(result.format(a) for a in names)}\n"
    namespace = {"np": np}
    exec(text, namespace)
    return njit(namespace["bare"])


def row(name, bare, bare_args, fast, args, out=None, count=2000, peer=None):
    fast(*args)
    runs = [(bare, bare_args, {}), (fast, args, {})]
    runs += [(fast_out, args, {
        "out": out
    }) for fast_out in [s2s.jit(fast.inner)] if out is not None]
    runs += [(peer, args, {})] if peer is not None else []
    found = least(runs, count)
    written = found[2] if out is not None else None
    text = f"{name:28s}{found[0]:9.0f}{found[1]:9.0f}{found[1] / found[0]:7.2f}"
    text += f"{written:9.0f}{written / found[0]:7.2f}" if written is not None else f"{'':16s}"
    print(text + (f"{found[-1]:10.0f}" if peer is not None else ""), flush=True)


def main() -> None:
    peers = "--peers" in sys.argv
    if peers:
        import jax
        jax.config.update("jax_enable_x64", True)

    def peer(f, **options):
        import jax.numpy as jnp
        text = f.__code__
        return jax.jit(jax.grad(type(f)(text, {"np": jnp}), **options)) if peers else None

    print(f"{'ns a call':28s}{'bare':>9s}{'s2s':>9s}{'ratio':>7s}{'out=':>9s}{'ratio':>7s}"
          + (f"{'JAX':>10s}" if peers else ""))
    xs = [np.linspace(0.1, 1.0, 4) for _ in range(3)]
    row("one number", bare_one, (1.5,), s2s.jit(s2s.grad(one)), (1.5,), count=20000, peer=peer(one))
    wrt = (0, 1, 2)
    row("three numbers, a tuple", bare_three, (1.5, 2.0, 3.0), s2s.jit(s2s.grad(three,
                                                                                argnums=wrt)),
        (1.5, 2.0, 3.0), count=20000, peer=peer(three, argnums=wrt))
    row("three arrays, a tuple", bare_arrays, xs, s2s.jit(s2s.grad(arrays, argnums=wrt)), xs,
        tuple(np.empty(4) for _ in xs), 10000, peer=peer(arrays, argnums=wrt))
    for count in (10, 100):
        p = {f"w{k}": np.linspace(0.1, 1.0, 4) for k in range(count)}
        out = {key: np.empty(4) for key in p}
        if count == 10 or "--all" in sys.argv:
            bare = bare_leaves(count, "b_{0} = {0} * 2.0", "b_{0}") if count == 10 else bare_leaves(
                count, "pass", "{0}.size")
            row(f"{count} arrays in a dict", bare, tuple(p.values()), s2s.jit(s2s.grad(tree)), (p,),
                out, 500, peer=peer(tree))
        q = {key: 1.5 for key in p}
        row(f"{count} numbers in a dict", bare_leaves(count, "pass", "{0} * 2.0"),
            tuple(q.values()), s2s.jit(s2s.grad(numbers)), (q,), count=1000, peer=peer(numbers))


if __name__ == "__main__":
    main()
