"""Every kernel compiled to PTX for sm_90, which needs NVIDIA's compiler but no GPU and no
driver.
"""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from launch_counts import instructions

import s2s

cuda = pytest.importorskip("numba.cuda")
HERE = Path(__file__).parent
COMPILE = """
import sys
import numpy
sys.modules.setdefault("cupy", numpy)  # the host's part of the modules is not run
from examples import EXAMPLES
from numba import cuda, types
from numba.core.sigutils import normalize_signature
import s2s
from by_hand import BY_HAND
from launch_counts import counts
from s2s import pipeline
from s2s.back.cuda.host import render_cuda

for name, (f, args) in EXAMPLES.items():
    function = s2s.jit(f, target="cuda").lower(*args).function
    module = render_cuda(pipeline.loops_of(function, "cuda"))
    print("==", name, "== counts")
    print(counts(module.text))
    namespace = {}
    exec(module.text, namespace)
    for kernel, signature in module.kernels.items():
        types_, _ = normalize_signature(signature)
        ptx, _ = cuda.compile_ptx(namespace[kernel].py_func, types_, cc=(9, 0))
        print("==", name, "==", kernel)
        print(ptx)
    if name in BY_HAND:
        print("==", name, "== by hand")
        print(cuda.compile_ptx(*BY_HAND[name], cc=(9, 0))[0])
"""


def is_missing() -> str:
    """Why PTX cannot be made here; empty if it can."""
    for package in ("numba_cuda", "nvidia"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed: pip install -e .[ptx]"
    found = {path.name for root in importlib.util.find_spec("nvidia").submodule_search_locations
             for path in Path(root).rglob("lib*.so*")}
    for library in ("libnvvm", "libnvrtc"):
        if not any(name.startswith(library) for name in found):
            return f"{library} is not installed: pip install -e .[ptx]"
    return ""


@pytest.fixture(scope="module")
def parts() -> list[tuple[str, str, str]]:
    """Of each example its counts, and the PTX of each kernel: example, kernel, text."""
    reason = is_missing()
    if reason:
        pytest.skip(reason)
    path = f"{HERE}:{HERE.parent.parent}"
    run = subprocess.run(
        [sys.executable, "-c", COMPILE],
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin"},
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-8000:]
    parts = re.split(r"^== (.*) == (.*)$", run.stdout, flags=re.M)[1:]
    return list(zip(parts[::3], parts[1::3], parts[2::3]))


@pytest.fixture(scope="module")
def kernels(parts) -> dict[str, str]:
    """The PTX of each example's kernels."""
    found: dict[str, str] = {}
    for name, kernel, text in parts:
        if kernel not in ("counts", "by hand"):
            found[name] = found.get(name, "") + text
    return found


# by example: at most so many launches, and so many of one thread; of others one, of many threads
MOST = {
    "gradient of newton, lane by lane": (2, 0),
    "tangent of newton, lane by lane": (2, 0),
    "a loop in order": (1, 1),
    "a table": (5, 1),
    "heat in a plane": (4, 0),
    "linear system": (4, 0),
}


pytestmark = pytest.mark.cuda


@pytest.mark.parametrize(
    "name",
    [
        "fused elementwise gradient",
        "sum reduction",
        "newton, lane by lane",
        "gradient of newton, lane by lane",
        "tapes longer than expected",
        "branches, lane by lane",
        "a loop in order",
        "a loop of kernels",
        "sums along rows",
        "vectors, lane by lane",
        "gradient of vectors, lane by lane",
        "a table",
    ],
)
def test_kernels_compile_for_sm_90(kernels, name):
    assert ".target sm_90" in kernels[name]
    assert ".entry" in kernels[name]


def test_launches_are_few_and_arrays_stay_on_the_device(parts):
    counted = {name: ast.literal_eval(text.strip()) for name, kernel, text in parts
               if kernel == "counts"}
    assert len(counted) > 20
    for name, found in counted.items():
        launches, single = MOST.get(name, (1, 0))
        assert (found["launches"] <= launches and found["one thread"] <= single
                and not found["arrays"]), (name, found)


def test_a_call_without_a_gpu_says_so():
    if cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(s2s.UnsupportedError, match="without a GPU .*\n.*NUMBA_ENABLE_CUDASIM=1"):
        s2s.jit(total, target="cuda")(np.ones(3))


def total(x):
    return np.sum(x)


@pytest.mark.parametrize("name", ["fused elementwise gradient", "single precision", "softmax",
                                  "newton, lane by lane"])
def test_kernels_are_hardly_longer_than_by_hand(parts, kernels, name):
    (other,) = (text for example, kernel, text in parts if (example, kernel) == (name, "by hand"))
    assert 20 < instructions(kernels[name]) <= 1.3 * instructions(other)


def test_single_precision_stays_single(kernels):
    text = kernels["single precision"]
    assert ".f32" in text and ".f64" not in text


def test_sums_use_shared_memory(kernels):
    assert ".shared" in kernels["sum reduction"] and "bar.sync" in kernels["sum reduction"]


def test_elements_looked_up_get_their_cotangents_atomically(kernels):
    assert (
        "atom.global.add.f64" in kernels["gradient of elements looked up"]
        or "red.global.add.f64" in kernels["gradient of elements looked up"]
        or "atom.add.f64" in kernels["gradient of elements looked up"]
    )


def test_indices_need_no_division(kernels):
    assert "call.uni" not in kernels["newton, lane by lane"]
