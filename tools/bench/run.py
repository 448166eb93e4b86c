#!/usr/bin/env python3
"""s2s against the adjoint written by hand in Numba, JAX, PyTorch and autograd, on whole programs.

    python tools/bench/run.py [case ...] [--only s2s,hand,jax] [--size N] [--rounds N] [--wall] [--threads] [--cold]
                              [--record VERSION] [--plot]

The cases are the modules of tools/bench/cases; what a case consists of is said in libraries.py, how it is measured in
measure.py.  Every library's value and gradients are compared with s2s's before anything is timed.  Peers that are not installed
are left out.

    --wall     wall time, for a machine that does nothing else; otherwise the CPU time of each process
    --threads  as many threads as each library likes; otherwise one
    --cold     s2s compiles anew, so that its first call can be compared with JAX's
    --record   the numbers go to tools/bench/results/VERSION.json, the table to VERSION.md
    --plot     a bar chart of the ratios, results/VERSION.png (needs matplotlib)
"""

import argparse
import json
import math
import os
import platform
import sys
import tempfile
from pathlib import Path

import libraries
import measure

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-8  # relative, between libraries; a case in single precision states its own
COLUMNS = ("case", "s2s ms", "s2s/hand", "grad/f", "jax/s2s", "torch/s2s", "autograd/s2s", "peak MB", "peak/hand",
           "first s", "jax s")


def quotient(a, b):
    return None if a is None or b is None or not b else a / b


def row(found: dict) -> dict:
    """The table's columns of one case."""
    of = {name: entry for name, entry in found["libraries"].items() if "failed" not in entry}
    ours = of.get("s2s", {})

    def ratio(name):
        return quotient(of.get(name, {}).get("gradient"), ours.get("gradient"))

    peak, by_hand = ours.get("peak"), of.get("hand", {}).get("peak")
    return {
        "case": found["case"],
        "s2s ms": None if "gradient" not in ours else 1e3 * ours["gradient"],
        "s2s/hand": quotient(1.0, ratio("hand")),
        "grad/f": quotient(ours.get("gradient"), ours.get("function")),
        **{f"{peer}/s2s": ratio(peer) for peer in libraries.PEERS},
        "peak MB": None if peak is None else peak / 2**20,
        "peak/hand": quotient(peak, by_hand) if peak is not None and by_hand and by_hand > 2**20 else None,
        "first s": ours.get("first"),
        "jax s": of.get("jax", {}).get("first"),
    }


def text(value) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def table(rows: list[dict]) -> str:
    """Markdown; the last line is the geometric mean of the ratios."""
    mean: dict = {"case": "geometric mean"}
    for column in COLUMNS[1:]:
        values = [r[column] for r in rows if r[column]]
        mean[column] = math.exp(sum(map(math.log, values)) / len(values)) if values and "/" in column else None
    cells = [COLUMNS, *([text(r[c]) for c in COLUMNS] for r in [*rows, mean])]
    widths = [max(len(line[k]) for line in cells) for k in range(len(COLUMNS))]
    lines = ["| " + " | ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths))) + " |"
             for line in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 1) + (":" if k else "-") for k, w in enumerate(widths)) + "|", *lines[1:]])


def plot(rows: list[dict], path: Path) -> None:
    """How many times the time of s2s each of the others takes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 0.5 * len(rows) + 1.5))
    others = [("hand", lambda r: quotient(1.0, r["s2s/hand"]))] + [
        (label, lambda r, peer=peer: r[f"{peer}/s2s"]) for peer, label in libraries.PEERS.items()]
    for k, (label, ratio) in enumerate(others):
        axes.barh([j + 0.2 * k for j in range(len(rows))], [ratio(r) or 0 for r in rows], 0.2, label=label)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks([j + 0.3 for j in range(len(rows))], [r["case"] for r in rows])
    axes.invert_yaxis()
    axes.set_xlabel("time of value and gradient, in units of s2s's")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    rows, everything, agreed = [], [], True
    for name in asked.cases or libraries.names():
        module = libraries.case(name)
        wanted = [library for library in asked.only.split(",") if libraries.has(module, library)]
        found = measure.measured(name, wanted, asked.size, asked.rounds, not asked.threads, "wall" if asked.wall else "cpu")
        everything.append(found)
        rows.append(row(found))
        print(table(rows[-1:]).splitlines()[2] if len(rows) > 1 else "\n".join(table(rows).splitlines()[:3]), flush=True)
        for library, entry in found["libraries"].items():
            if "failed" in entry:
                print(f"    {library}: {entry['failed'][:300]}")
            elif not entry["error"] <= getattr(module, "TOLERANCE", TOLERANCE):
                agreed = False
                print(f"    {library} DISAGREES with {wanted[0]}: {entry['error']:.2g}")
    if len(rows) > 1:
        print("\n" + table(rows))
    if asked.record:
        folder = HERE / "results"
        folder.mkdir(exist_ok=True)
        how = {"clock": "wall" if asked.wall else "cpu", "threads": "any" if asked.threads else 1, "rounds": asked.rounds,
               "python": platform.python_version(), "machine": platform.machine()}
        (folder / f"{asked.record}.json").write_text(json.dumps({"how": how, "cases": everything}, indent=1) + "\n")
        (folder / f"{asked.record}.md").write_text(f"{table(rows)}\n\n{how}\n")
    if asked.plot:
        (HERE / "results").mkdir(exist_ok=True)
        plot(rows, HERE / "results" / f"{asked.record or 'latest'}.png")
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
