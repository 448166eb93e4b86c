#!/usr/bin/env python3
"""s2s against the adjoint written by hand in Numba, JAX, PyTorch and autograd, on whole programs.

    python tools/bench/run.py [case ...] [--only s2s,hand,jax] [--size N] [--rounds N] [--wall] [--threads] [--cold]
                              [--record VERSION] [--plot]

The cases are the modules of tools/bench/cases; what a case consists of is said in libraries.py, how
it is measured in measure.py.  Every library's value and gradients are compared with s2s's before
anything is timed.  Peers that are not installed are left out.

    --wall     wall time, for a machine that does nothing else; otherwise the CPU time of each process
    --threads  as many threads as each library likes; otherwise one
    --cold     s2s compiles anew, so that its first call can be compared with JAX's
    --record   the numbers go to tools/bench/results/VERSION.json, the table to VERSION.md, after each case; cases that are there
               already, from the same commit and measured in the same way, stay
    --plot     a chart of the ratios, results/VERSION.svg (or latest.svg)

The columns: `s2s ms`, value and gradient; `/hand`, in units of the time of the adjoint written by
hand; `grad/f`, in units of the function's; then how many times as long the others take, `out=`
where s2s writes into arrays of an earlier call; `peak MB`, by how much the process grows in a call,
and `peak/hand`, where that is megabytes; seconds of the first calls, compilation included. What
misses a goal is marked: at most 1.25 times the hand-written adjoint (2.5 where a call is all there
is), none faster than s2s, gradient over function at most 3 for loops of scalars and 2.5 for
elementwise passes, memory at most 1.2 times that of the hand-written.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import chart
import libraries
import measure

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-8  # relative, between libraries; a case in single precision states its own
COLUMNS = ("case", "s2s ms", "/hand", "grad/f", "jax", "torch", "autograd", "jax, out=", "peak MB",
           "peak/hand", "first s", "jax s")
RATIOS = COLUMNS[2:8] + ("peak/hand",)
MOST = {"/hand": 1.25, "peak/hand": 1.2}
MOST_OF_CALL = 2.5  # of a function that does next to nothing
MOST_OVER_FUNCTION = {"loops": 3.0, "elementwise": 2.5}


def quotient(a, b):
    return None if a is None or b is None or not b else a / b


def row(found: dict) -> dict:
    """The table's columns of one case."""
    of = {name: entry for name, entry in found["libraries"].items() if "failed" not in entry}
    ours = of.get("s2s", {})

    def ratio(name, which="gradient"):
        return quotient(of.get(name, {}).get("gradient"), ours.get(which))

    peak, by_hand = ours.get("peak"), of.get("hand", {}).get("peak")
    return {
        "case": found["case"],
        "s2s ms": None if "gradient" not in ours else 1e3 * ours["gradient"],
        "/hand": quotient(1.0, ratio("hand")),
        "grad/f": quotient(ours.get("gradient"), ours.get("function")),
        **{
            peer: ratio(peer)
            for peer in libraries.PEERS
        }, "jax, out=": ratio("jax", "reused"),
        "peak MB": None if peak is None else peak / 2 ** 20,
        "peak/hand": quotient(peak, by_hand)
                     if peak is not None and by_hand and by_hand > 2 ** 20 else None,
        "first s": ours.get("first"),
        "jax s": of.get("jax", {}).get("first"),
    }


def misses(row: dict, column: str) -> bool:
    """Whether the number in this column is beyond what is wanted."""
    value = row[column]
    if value is None or row["case"] not in libraries.names():
        return False
    if column in libraries.PEERS:
        return value < 1.0
    most, module = MOST.get(column), libraries.case(row["case"])
    if column == "grad/f":
        most = MOST_OVER_FUNCTION.get(getattr(module, "KIND", None))
    if column == "/hand" and hasattr(module, "CALL"):
        most = MOST_OF_CALL
    return most is not None and value > most


def text(value) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def table(rows: list[dict]) -> str:
    """Markdown; the last line is the geometric mean of the ratios."""
    mean: dict = {"case": "geometric mean"}
    for column in COLUMNS[1:]:
        values = [r[column] for r in rows if r[column]]
        mean[column] = math.exp(sum(map(math.log, values))
                                / len(values)) if values and column in RATIOS else None
    cells = [COLUMNS, *([text(r[c]) + " !" * misses(r, c) for c in COLUMNS] for r in [*rows, mean])]
    widths = [max(len(line[k]) for line in cells) for k in range(len(COLUMNS))]
    lines = [
        "| " + " | ".join(
            c.ljust(w) if k == 0 else c.rjust(w)
            for k, (c, w) in enumerate(zip(line, widths))) + " |" for line in cells
    ]
    return "\n".join([
        lines[0], "|" + "|".join("-" * (w + 1) + (":" if k else "-")
                                 for k, w in enumerate(widths)) + "|", *lines[1:]
    ])


def missed(rows: list[dict]) -> str:
    """What is marked in the table, column by column."""
    found = {c: [r["case"] for r in rows if misses(r, c)] for c in COLUMNS}
    return "\n".join(f"* {column}: {', '.join(cases)}" for column, cases in found.items() if cases)


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def circumstances(asked) -> dict:
    """How the numbers are measured, and of what."""
    told = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty"],
                          capture_output=True, text=True)
    return {
        "commit": told.stdout.strip() or None,
        "clock": "wall" if asked.wall else "cpu",
        "threads": "any" if asked.threads else 1,
        "rounds": asked.rounds,
        "cold": asked.cold,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{
            name: installed(name)
            for name in ("numpy", "numba", "jax", "torch", "autograd") if installed(name)
        }
    }


def recorded(path: Path, how: dict) -> list[dict]:
    """The cases that are in a record already, measured in the same way."""
    if not path.exists():
        return []
    found = json.loads(path.read_text())
    return found["cases"] if found["how"] == how else []


def record(path: Path, how: dict, cases: list[dict]) -> None:
    """The numbers as JSON, and the table beside them."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"how": how, "cases": cases}, indent=1) + "\n")
    rows = [row(found) for found in cases]
    loads = [found["load"] for found in cases if found.get("load") is not None]
    told = [
        f"`python tools/bench/run.py --record {path.stem}`, whose docstring says what the columns mean.",
        "CPU time of each process, one thread each, medians of rounds in turns."
        if how["clock"] == "cpu" else "Wall time, medians of rounds in turns."
    ]
    if loads:
        told.append(
            f"While it was measured {min(loads):.0f} to {max(loads):.0f} other programs wanted to run on {how['cores']} cores."
            if max(loads) >= 1.5 else "The machine did little else.")
    path.with_suffix(".md").write_text(
        f"# Speed of {path.stem}\n\n" + "\n".join(told)
        + f"\n\n{table(rows)}\n\nMarked:\n\n{missed(rows) or 'nothing'}\n\n" + "Measured with "
        + ", ".join(f"{name} {value}" for name, value in how.items() if value is not None) + ".\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(libraries.names()))
    parser.add_argument("--only", default="s2s,hand,jax,torch,autograd")
    parser.add_argument("--size", type=int)
    parser.add_argument("--rounds", type=int, default=measure.ROUNDS)
    for flag in ("wall", "threads", "cold", "plot"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--record", metavar="VERSION")
    asked = parser.parse_args()
    sys.path.insert(0, str(HERE.parent.parent))  # each library's process gets it from here
    if asked.cold:
        os.environ["S2S_CACHE_DIR"] = tempfile.mkdtemp(prefix="s2s-bench-")
    how, file = circumstances(asked), HERE / "results" / f"{asked.record or 'latest'}.json"
    everything = recorded(file, how) if asked.record else []
    rows, agreed = [], True
    for name in asked.cases or libraries.names():
        module = libraries.case(name)
        wanted = [library for library in asked.only.split(",") if libraries.has(module, library)]
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        found = measure.measured(name, wanted, asked.size, asked.rounds, not asked.threads,
                                 "wall" if asked.wall else "cpu")
        everything = sorted([each for each in everything if each["case"] != name] + [{
            **found, "load": load
        }], key=lambda each: each["case"])
        rows.append(row(found))
        print(
            table(rows[-1:]).splitlines()[2] if len(rows) > 1 else "\n".join(
                table(rows).splitlines()[:3]), flush=True)
        for library, entry in found["libraries"].items():
            if "failed" in entry:
                print(f"    {library}: {entry['failed'][:300]}")
            elif not entry["error"] <= getattr(module, "TOLERANCE", TOLERANCE):
                agreed = False
                print(f"    {library} DISAGREES with {wanted[0]}: {entry['error']:.2g}")
        if asked.record:
            record(file, how, everything)
    if len(rows) > 1:
        print("\n" + table(rows))
    if asked.plot:
        file.parent.mkdir(exist_ok=True)
        file.with_suffix(".svg").write_text(chart.bars([row(found) for found in everything]))
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
