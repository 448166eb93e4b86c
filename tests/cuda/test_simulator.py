"""Kernels in Numba's CUDA simulator, which has to be switched on before Numba is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.cuda


@pytest.mark.parametrize(
    "name", ["simulated.py", pytest.param("simulated_programs.py", marks=pytest.mark.slow)]
)
def test_kernels_in_the_simulator(name):
    path = os.pathsep.join(map(str, (HERE.parent.parent, HERE.parent, HERE)))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / name)],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": path},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
