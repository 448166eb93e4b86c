"""What a derivative costs: in time, in memory, and in compilations."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from programs import PROGRAMS, gauss_seidel, heat_equation, relax

import s2s
from s2s.runtime.numba import native_module

pytestmark = [pytest.mark.compile]
ROOT = Path(__file__).parent.parent


def seconds(function, *args, repeats: int = 7) -> float:
    """The best of several runs: what the machine's other work did not disturb."""
    function(*args)
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        function(*args)
        best = min(best, time.perf_counter() - began)
    return best


def grid(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, n)), rng.standard_normal((n, n))


@pytest.mark.slow
def test_gradient_of_gauss_seidel_costs_at_most_five_times_the_function():
    u, f = grid(128)
    primal, gradient = s2s.jit(gauss_seidel), s2s.jit(s2s.grad(gauss_seidel, argnums=(0, 1)))
    ratios = [seconds(gradient, u, f, 20) / seconds(primal, u, f, 20) for _ in range(3)]
    assert min(ratios) < 5, ratios


@pytest.mark.slow
def test_gradient_is_linear_in_sweeps_and_points():
    gradient = s2s.jit(s2s.grad(gauss_seidel, argnums=(0, 1)))
    base = seconds(gradient, *grid(64), 20)
    assert seconds(gradient, *grid(64), 80) / base < 4 * 1.8
    assert seconds(gradient, *grid(128), 20) / base < 4 * 1.8


def test_tape_is_linear_in_sweeps_and_points():
    gradient = s2s.grad(gauss_seidel, argnums=(0, 1))
    small = gradient.lower(*grid(12), 2).memory
    assert gradient.lower(*grid(12), 8).memory <= 4 * small + 4096
    assert gradient.lower(*grid(22), 2).memory <= 4 * small + 4096


def test_a_linear_update_saves_no_element():
    """The elements that Gauss-Seidel overwrites are not read by the sweep back."""
    memory = s2s.grad(gauss_seidel, argnums=(0, 1)).lower(*grid(12), 8).memory
    assert memory <= 4 * 12 * 12 * 8


def test_what_is_asked_only_for_its_shape_is_not_saved():
    """Of the heat equation the stencil's value is saved, for the derivative in nu, and no version
    of u; nothing is zeroed to be added to.
    """
    gradient = s2s.grad(heat_equation, argnums=(0, 1))
    lowered = gradient.lower(np.linspace(0.0, 1.0, 12), 0.1, 4)
    assert lowered.memory <= 4 * 10 * 8 + 512
    assert "u_tape" not in lowered.source and "zeros" not in lowered.source


def test_a_thousand_lengths_are_one_generation_and_one_compilation():
    gradient = s2s.jit(s2s.grad(relax, argnums=(0, 1)))
    gradient(np.linspace(0.0, 1.0, 3), 0.2, 2)
    compilations = native_module.statistics()[0]
    for n in range(4, 1004):
        gradient(np.linspace(0.0, 1.0, n), 0.2, 2)
    assert native_module.statistics()[0] == compilations
    assert len(gradient.functions) == 1


@pytest.mark.slow
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.compiled], ids=lambda p: p.name)
def test_compiles_in_two_seconds(program):
    """Cold: nothing on disk.  The first compilation of a process, which loads Numba, is made
    before.  In CPU time.
    """
    s2s.jit(s2s.grad(lambda x: x * x), cache=False)(2.0)
    times = []
    for _ in range(2):
        gradient = s2s.jit(s2s.value_and_grad(program.function, argnums=program.wrt), cache=False)
        began = time.process_time()
        gradient(*program.args)
        times.append(time.process_time() - began)
        if times[-1] < 2.0:
            break
    assert min(times) < 2.0, times


def test_compile_time_does_not_depend_on_trip_counts():
    gradient = s2s.jit(s2s.grad(relax, argnums=(0, 1)), cache=False)
    gradient(np.linspace(0.0, 1.0, 5), 0.2, 2)
    began = time.process_time()
    gradient(np.linspace(0.0, 1.0, 5), 0.2, 2000)
    assert time.process_time() - began < 0.5


PROCESS = """
import numpy as np
import s2s
from programs import relax
from s2s.runtime.numba import native_module as modules
gradient = s2s.jit(s2s.grad(relax, argnums=(0, 1)))
result = gradient(np.linspace(0.0, 1.0, 9), 0.2, 3)
print(modules.statistics()[0], repr(float(result[1])))
"""


def test_a_second_process_takes_machine_code_from_the_cache(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
                   "S2S_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-c", PROCESS], env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr[-2000:]
        said.append(result.stdout.split())
    assert int(said[0][0]) > 0, "the first process compiles"
    assert int(said[1][0]) == 0, "the second does not"
    assert said[0][1] == said[1][1]
