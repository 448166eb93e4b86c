#!/usr/bin/env python3
"""What CUDA code consists of: kernels, those of one thread, and what goes through the host.

    python tools/bench/cuda_counts.py [word ...] [--record VERSION] [--write FOLDER]

The programs are those of tests/cuda/examples.py, of tests/programs.py (value and gradient), and the cases of
tools/bench/cases; words choose those whose names contain one.  Nothing is run, and no GPU is needed: numba-cuda has to be
installed.

    --record   the table goes to tools/bench/results/cuda-VERSION.md
    --write    the modules go to this folder, a file each

The columns: `launches` in the text of the host's function, and those of them in `one thread`; `CuPy`, calls of its functions
that compute; `numbers`, read from the device; `arrays`, copied to the host and back in the midst of a program.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import libraries

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cuda")]

from examples import EXAMPLES  # noqa: E402
from launch_counts import COLUMNS, counts  # noqa: E402
from programs import MORE_RESULTS, PROGRAMS  # noqa: E402

import s2s  # noqa: E402


def programs() -> Iterator[tuple[str, object, tuple]]:
    """The name, the function to compile and the arguments of each program."""
    for name, (f, args) in EXAMPLES.items():
        yield name, f, args
    for p in PROGRAMS:
        yield (p.name, p.function if p.name in MORE_RESULTS
               else s2s.value_and_grad(p.function, argnums=p.wrt), p.args)
    for name in libraries.names():
        case = libraries.case(name)
        f = s2s.value_and_grad(case.program, argnums=case.WRT) if case.WRT else case.program
        yield (f"bench: {name}", s2s.vmap(f, case.AXES) if hasattr(case, "AXES") else f,
               case.arguments(8))


def table(rows: dict[str, dict[str, int] | str]) -> str:
    lines = ["| program | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for name, found in rows.items():
        lines.append(f"| {name} | {found}" + " |" * len(COLUMNS) if isinstance(found, str) else
                     f"| {name} | " + " | ".join(str(found[c] or "") for c in COLUMNS) + " |")
    counted = [found for found in rows.values() if not isinstance(found, str)]
    lines.append(f"| **{len(counted)} of {len(rows)} programs** | "
                 + " | ".join(str(sum(found[c] for found in counted)) for c in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--record", metavar="VERSION")
    parser.add_argument("--write", metavar="FOLDER", type=Path)
    options = parser.parse_args()
    rows: dict[str, dict[str, int] | str] = {}
    for name, f, args in programs():
        if options.words and not any(word in name for word in options.words):
            continue
        try:
            text = s2s.jit(f, target="cuda").lower(*args).loops
        except s2s.UnsupportedError as error:
            rows[name] = "refused: " + str(error).splitlines()[-2]
            continue
        rows[name] = counts(text)
        if options.write:
            options.write.mkdir(parents=True, exist_ok=True)
            (options.write / (re.sub(r"\W+", "_", name) + ".py")).write_text(text)
    print(table(rows))
    if options.record:
        (HERE / "results" / f"cuda-{options.record}.md").write_text(table(rows))


if __name__ == "__main__":
    main()
