#!/usr/bin/env python3
"""What the first call of a gradient costs: s2s with an empty cache against JAX, each in a process
of its own.

    python tools/bench/compile_time.py [case ...] [--rounds N] [--record VERSION]

The cases are those of run.py (tools/bench/cases) and the truncated Newton-CG programs of
newton_cg.py.  The first call makes the derivative, compiles it and runs it once, at the case's own
size.  CPU time of the process, and time by the clock, each the least of the rounds, which take the
libraries in turns: the first is what a machine that does other work as well disturbs least, the
second is what is waited for, and is less where a library compiles with several threads.  Importing
the libraries is not part of it, nor is what each does once in a process: a trivial function is
compiled first.  "of it Numba" is what Numba and LLVM take of it; "lines" is how long the longest
module is that they compile.  Peers that are not installed are left out.

Of what s2s does, LLVM's part runs in two threads, and Python's, which reads, differentiates and
lowers the program, in one: half of the time of most cases. The network of convolutions takes twice
as long as JAX, which has its convolutions compiled already (written as s2s's user writes it, with
gathered patches, JAX takes 1.2 times as long as that): it is 27 innermost loops, for which LLVM
alone, at the lowest level that leaves them fast, takes as long (0.45 s, half of it to choose
instructions and registers) as JAX does for all, and Python as long again.  The adjoint written by
hand takes Numba 6.4 s.  Newton-CG on a hidden Markov model is 600 lines of loops, and more than
half of its time is Python's.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

import libraries
import numpy as np

HERE = Path(__file__).resolve().parent
SOLVERS = "newton_cg_"


def names() -> list[str]:
    return libraries.names() + [
        SOLVERS + name for name in ("quadratic", "logistic", "hidden_markov")
    ]


def first_call(name: str, library: str):
    """A function of no arguments that makes the case's derivative and calls it."""
    if not name.startswith(SOLVERS):
        module = libraries.case(name)
        return libraries.calls(module, library, module.arguments(module.SIZE))["gradient"]
    import newton_cg

    objective, (x, *data) = next(case for case in newton_cg.cases()
                                 if case[0].__name__ == name.removeprefix(SOLVERS))
    if library == "s2s":
        import s2s

        solve = s2s.jit(newton_cg.case.newton_cg(objective))
        return lambda: solve(x, *data)
    import jax

    solve = jax.jit(
        newton_cg.case.newton_cg_of_jax(newton_cg.objectives_of_jax()[objective.__name__]))
    given = [jax.numpy.asarray(v) for v in (x, *data)]
    return lambda: jax.block_until_ready(solve(*given))


def warm_up(library: str) -> None:
    """What a library does once in a process."""
    if library == "s2s":
        import s2s

        s2s.jit(lambda x: np.sum(x * 2.0))(np.ones(3))
    else:
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.block_until_ready(jax.jit(lambda x: (x * 2.0).sum())(np.ones(3)))


def work(connection, name: str, library: str) -> None:
    """What the process of one library and case does: sends {seconds, clock, numba, loops}."""
    os.environ["S2S_CACHE_DIR"] = tempfile.mkdtemp(prefix="s2s-bench-")
    libraries.limit_threads()
    try:
        warm_up(library)
        found = {"numba": None, "loops": None}
        call = first_call(name, library)
        if library == "s2s":
            from numba.core import event
            with event.install_timer("numba:compiler_lock",
                                     lambda seconds: found.update(numba=seconds)):
                found.update(timed(call))
            texts = [path for path in Path(os.environ["S2S_CACHE_DIR"]).rglob("*.py")]
            found["loops"] = max(len(path.read_text().splitlines())
                                 for path in texts) if texts else None
        else:
            found.update(timed(call))
        connection.send(found)
    except Exception as error:
        connection.send({"failed": f"{type(error).__name__}: {error}"})


def timed(call) -> dict[str, float]:
    """CPU time of the process, and time by the clock, that a call takes."""
    began, clock = time.process_time(), time.perf_counter()
    call()
    return {"seconds": time.process_time() - began, "clock": time.perf_counter() - clock}


def measured(name: str, library: str) -> dict:
    """One first call, in a new process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, name, library))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return {"failed": "its process ended"}
    finally:
        process.join()


def least(found: list[dict]) -> dict:
    good = [entry for entry in found if "seconds" in entry]
    if not good:
        return found[0]
    return good[0] | {
        what: min(entry[what] for entry in good)
        for what in ("seconds", "clock", "numba") if good[0].get(what) is not None
    }


def row(name: str, found: dict) -> str:
    ours, jax = found["s2s"], found.get("jax", {})

    def text(value):
        return "" if value is None else f"{value:.2f}"

    def ratio(what):
        return text(ours[what] / jax[what] if what in ours and what in jax else None)

    return (
        f"| {name} | {text(ours.get('seconds'))} | {text(jax.get('seconds'))} | {ratio('seconds')} "
        f"| {text(ours.get('clock'))} | {text(ours.get('numba'))} | {text(jax.get('clock'))} | {ratio('clock')} | {ours.get('loops') or ''} |"
    )


HEAD = "| case | s2s CPU s | jax CPU s | s2s/jax | s2s clock s | of it Numba | jax clock s | s2s/jax | lines |\n|" + "---|" * 9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", metavar="VERSION")
    asked = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None,
               [str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")]))
    lines, everything = [HEAD], {}
    print(HEAD)
    for name in asked.cases or names():
        peers = [
            "s2s",
            *(["jax"] if name.startswith(SOLVERS) and libraries.importlib.util.find_spec("jax") or
              not name.startswith(SOLVERS) and libraries.has(libraries.case(name), "jax") else [])
        ]
        runs = [{library: measured(name, library)
                 for library in peers}
                for _ in range(asked.rounds)]
        found = everything[name] = {
            library: least([run[library] for run in runs])
            for library in peers
        }
        lines.append(row(name, found))
        print(lines[-1], flush=True)
        for library, entry in found.items():
            if "failed" in entry:
                print(f"    {library}: {entry['failed'][:300]}")
    if asked.record:
        folder = HERE / "results"
        folder.mkdir(exist_ok=True)
        (folder
         / f"{asked.record}-compile-time.json").write_text(json.dumps(everything, indent=1) + "\n")
        (folder / f"{asked.record}-compile-time.md").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
