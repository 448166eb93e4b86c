"""Run by test_simulator.py where Numba's CUDA simulator is on: the programs that s2s is judged by,
as kernels, on arrays like CuPy's.
"""

import warnings

import numpy as np
import pytest
from like_cupy import Arrays
from programs import MORE_RESULTS, PROGRAMS
from simulated import agree

import s2s
from s2s.runtime import cuda
from s2s.runtime.cuda import HostWarning


def copies(program) -> list:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in program.args]


@pytest.fixture(autouse=True)
def arrays_like_cupy(monkeypatch):
    monkeypatch.setattr(cuda, "arrays_of", Arrays)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs_and_their_gradients(program):
    f = program.function
    if program.name not in MORE_RESULTS:
        f = s2s.value_and_grad(f, argnums=program.wrt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        found = s2s.jit(f, target="cuda", threads=4)(*copies(program))
    agree(found, f(*copies(program)), 1e-9)


def test_a_number_that_changes_is_not_the_one_it_was():
    def sums(x):
        total = np.sum(x)
        before = total
        for k in range(3):
            total += np.sum(x * k)
        return before, total, x / total

    x = np.array([1.0, 2.0])
    agree(s2s.jit(sums, target="cuda", threads=4)(x), sums(x), 1e-12)
