"""Reductions by the threads of a block: a tree in shared memory, in the same order every time.

Each thread has combined what its trips give, from the identity on. The threads of a team combine
theirs where a loop that they share ends; those of a block do so where the kernel ends, and the
host combines what the blocks have left.
"""

from __future__ import annotations

import numpy as np

from ...ops.core import elementwise as ew
from ...ops.core.record import Record, value
from ..loopir.reductions import REDUCTIONS, Reduction, sum_step

# by what threads combine their numbers, and how kernels spell it
# Considered: products.  Threads would meet inf * 0 where NumPy, in order, does not.
STEPS: dict[Record, str] = {
    ew.add: "x + y",
    ew.maximum: "x if x != x or x > y else y",
    ew.minimum: "x if x != x or x < y else y",
    ew.fmax: "y if x != x or y > x else x",
    ew.fmin: "y if x != x or y < x else x",
}


def reduction_by(step: Record) -> tuple[str, Reduction]:
    """NumPy's and CuPy's name of the reduction by `step`, and what it is."""
    wanted = sum_step if step is ew.add else step
    return next((record.name, how) for record, how in REDUCTIONS.items() if how.step is wanted)


def identity(step: Record, dtype: str):
    """The number that changes nothing when it is combined with another."""
    found = reduction_by(step)[1].identity(dtype)
    number = np.dtype(dtype).type(found)
    return number.item() if dtype in ("int64", "float64", "bool") else number


def identity_value(step: Record, dtype: str):
    return value(identity(step, dtype))


def name_of(step: Record, dtype: str) -> str:
    """The name of the device function that combines numbers of several threads."""
    return f"{reduction_by(step)[0]}_of" + ("" if dtype == "float64" else f"_{dtype}")


def text_of(step: Record, dtype: str) -> str:
    """That function."""
    kind = "boolean" if dtype == "bool" else dtype
    return f'''
@cuda.jit(device=True, inline="always")
def {name_of(step, dtype)}(x, t, size):
    """The {reduction_by(step)[0]} of x over the threads 0, 1, ..., size - 1, in each of them."""
    shared = cuda.shared.array(THREADS, {kind})
    if size > 1:
        shared[t] = x
        cuda.syncthreads()
        half = size // 2
        while half > 0:
            if t < half:
                y = shared[t + half]
                x = {STEPS[step]}
                shared[t] = x
            cuda.syncthreads()
            half //= 2
        x = shared[0]
        cuda.syncthreads()
    return x
'''


MEET = '''
@cuda.jit(device=True, inline="always")
def meet():
    """Wait until the other threads of the team have come here."""
    if cuda.blockDim.x > 1:
        cuda.syncthreads()
'''
