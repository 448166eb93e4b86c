#!/usr/bin/env python3
"""What CUDA kernels are compiled to for an H100, beside kernels written by hand (tests/cuda/by_hand.py).

    python tools/bench/cuda_code.py [--ptxas PATH] [--record VERSION]

No GPU is needed: numba-cuda makes PTX, and `ptxas` of NVIDIA's toolkit machine code; it is in the wheel nvidia-cuda-nvcc,
of the toolkit's version (13.0).  Without it, instructions of PTX are counted.

The columns: `instructions` of the generated kernel, `by hand` of the other, their `ratio`; `registers` and bytes of
`spills` of the generated one, and whether it has `float64` instructions.

    --record   the table goes to tools/bench/results/cuda-code-VERSION.md
"""

import argparse
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cuda")]
sys.modules.setdefault("cupy", numpy)  # the host's part of the modules is not run

from by_hand import BY_HAND  # noqa: E402
from examples import EXAMPLES, POSITIVE, newton  # noqa: E402
from lanes import LANES  # noqa: E402
from launch_counts import instructions  # noqa: E402
from numba import cuda  # noqa: E402
from numba.core.sigutils import normalize_signature  # noqa: E402

import s2s  # noqa: E402
from s2s import pipeline  # noqa: E402
from s2s.back.cuda.host import render_cuda  # noqa: E402

COLUMNS = ("instructions", "by hand", "ratio", "registers", "spills", "float64")


def programs() -> dict[str, tuple]:
    """By name, the function to compile and its arguments."""
    lanes = {f.__name__: (s2s.vmap(f, axes), args) for f, axes, args, _ in LANES}
    gradients = {f"{f.__name__} with gradient": (s2s.vmap(s2s.value_and_grad(f, wrt), axes), args)
                 for f, axes, args, wrt in LANES}
    gradients["newton with gradient"] = (s2s.vmap(s2s.value_and_grad(newton), (0, None)),
                                         (POSITIVE, 1e-12))
    named = {name: EXAMPLES[name] for name in BY_HAND if name in EXAMPLES}
    return named | lanes | gradients


def kernel_of(f, args) -> tuple:
    """The Python function of the only kernel of a program, and the types of its arguments."""
    module = render_cuda(pipeline.loops_of(s2s.jit(f, target="cuda").lower(*args).function,
                                           "cuda"))
    names: dict = {}
    exec(module.text, names)
    ((name, signature),) = module.kernels.items()
    return names[name].py_func, normalize_signature(signature)[0]


def ptx_of(function, types) -> str:
    return cuda.compile_ptx(function, types, cc=(9, 0))[0]


def machine_code(ptx: str, ptxas: str) -> dict[str, int]:
    """What `ptxas` makes of it: each instruction has 16 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        said = subprocess.run([ptxas, "-arch=sm_90", "-v", str(source), "-o", str(binary)],
                              check=True, capture_output=True, text=True).stderr
        return {"instructions": code_size(binary.read_bytes()) // 16,
                "registers": max(map(int, re.findall(r"Used (\d+) registers", said))),
                "spills": sum(map(int, re.findall(r"(\d+) bytes spill", said)))}


def code_size(elf: bytes) -> int:
    """The bytes in the sections of an ELF file that hold code."""
    (start,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, start + k * size) for k in range(count)]
    strings = headers[names][4]
    return sum(header[5] for header in headers
               if elf[strings + header[0]:].startswith(b".text."))


def row(name: str, f, args, ptxas: str | None) -> dict:
    ptx = ptx_of(*kernel_of(f, args))
    found = machine_code(ptx, ptxas) if ptxas else {"instructions": instructions(ptx)}
    found["float64"] = len(re.findall(r"\.f64\b", ptx))
    if name in BY_HAND:
        other = ptx_of(*BY_HAND[name])
        found["by hand"] = (machine_code(other, ptxas)["instructions"] if ptxas
                            else instructions(other))
        found["ratio"] = round(found["instructions"] / found["by hand"], 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", default=shutil.which("ptxas"))
    parser.add_argument("--record", metavar="VERSION")
    options = parser.parse_args()
    lines = ["| kernel | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for name, (f, args) in programs().items():
        found = row(name, f, args, options.ptxas)
        lines.append(f"| {name} | " + " | ".join(str(found.get(c, "")) for c in COLUMNS) + " |")
        print(lines[-1], flush=True)
    if options.record:
        (HERE / "results" / f"cuda-code-{options.record}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
