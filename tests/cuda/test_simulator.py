"""Kernels in Numba's CUDA simulator, which has to be switched on before Numba is imported."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.cuda
@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed: pip install -e .[cuda]")
def test_kernels_in_the_simulator():
    env = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": f"{HERE.parent.parent}:{HERE}"}
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "simulated.py")],
                         env=env, cwd=HERE.parent.parent, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
