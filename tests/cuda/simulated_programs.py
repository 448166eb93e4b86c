"""Run by test_simulator.py where Numba's CUDA simulator is on: the programs that s2s is judged by,
as kernels.
"""

import numpy as np
import pytest
from programs import MORE_RESULTS, PROGRAMS
from simulated import agree

import s2s


def copies(program) -> list:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in program.args]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs_and_their_gradients(program):
    f = program.function
    if program.name not in MORE_RESULTS:
        f = s2s.value_and_grad(f, argnums=program.wrt)
    agree(s2s.jit(f, target="cuda", threads=4)(*copies(program)), f(*copies(program)), 1e-9)
