"""Run CUDA kernels: load the CUDA form of a function, and copy arrays to the device and back.

`compiled(function)` is a callable on flat positional arguments.  NumPy arrays are copied to the
device and results are copied back; where an argument is on the device already (CuPy, PyTorch,
Numba: whatever has `__cuda_array_interface__`), it is used there, and results stay there, as
CuPy's.  Numba compiles each kernel when it is first launched.  With NUMBA_ENABLE_CUDASIM=1 the same
code runs in Numba's simulator, on NumPy's arrays in the place of CuPy's.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable

import numpy as np

from ..back.cuda.host import render_cuda
from ..back.cuda.kernel import THREADS
from ..back.loop_pipeline import lower
from ..errors import UnsupportedError
from ..ir.graph import Function
from ..lazy_import import later
from .debug.load_source import load

numba = later("numba")
numba_cuda = later("numba.cuda")


def compiled(function: Function, *, threads: int = THREADS, **options) -> Callable:
    """Compile `function` for the GPU, called with its parameters as flat positional arguments.

    `threads` is the block size, a power of two.  Raises UnsupportedError without numba-cuda, or for
    options of the CPU target.
    """
    if importlib.util.find_spec("numba_cuda") is None:
        raise UnsupportedError("target='cuda' without numba-cuda", None,
                               "install it with: pip install 's2s[cuda]'")
    if threads < 1 or threads & (threads - 1):
        raise UnsupportedError(f"{threads} threads in a block", None,
                               "use a power of two, such as 128")
    module = render_cuda(lower(function, "cuda"), threads)

    @functools.cache
    def loaded() -> tuple[Callable, OnDevice | Simulated]:
        is_simulated = numba.config.ENABLE_CUDASIM
        if not is_simulated and not numba_cuda.is_available():
            raise NO_DEVICE
        if not is_simulated and importlib.util.find_spec("cupy") is None:
            raise NO_CUPY
        run = load(module.text, module.entry, module.lines, check=False)
        return run, Simulated(run.__wrapped__.__globals__) if is_simulated else OnDevice()

    def call(*args):
        run, arrays = loaded()
        stays = any(is_on_device(x) for x in args)
        results = run(*(mapped(arrays.put, x) for x in args))
        return mapped(arrays.wrap if stays else arrays.get, results)

    call.module, call.__name__ = module, function.name
    return call


def is_on_device(x) -> bool:
    """Whether `x` is an array in GPU memory, or a simulator array."""
    return hasattr(type(x), "__cuda_array_interface__") or hasattr(type(x), "__cuda_ndarray__")


def mapped(function: Callable, x):
    """`x`, with its arrays replaced by `function`."""
    if isinstance(x, (tuple, list)):
        return type(x)(mapped(function, item) for item in x)
    return function(x) if isinstance(x, np.ndarray) or is_on_device(x) else x


class OnDevice:
    """Arrays on the device: CuPy's."""

    def __init__(self):
        self.cp = importlib.import_module("cupy")

    def put(self, x):
        """A contiguous copy of `x` on the device; `x` if it is there."""
        if isinstance(x, np.ndarray):
            return self.cp.asarray(x, order="C")
        array = self.cp.asarray(x)
        if not array.flags.c_contiguous:
            raise NOT_CONTIGUOUS
        return array

    def wrap(self, x):
        return x

    def get(self, x) -> np.ndarray:
        return self.cp.asnumpy(x)


class Simulated:
    """NumPy's arrays, which the kernels among `names` write in place in Numba's simulator."""

    def __init__(self, names: dict):
        self.array = type(names["cuda"].to_device(np.zeros(1)))
        for kernel in names.values():
            if hasattr(kernel, "extensions"):
                kernel.extensions.append(self)

    def prepare_args(self, type, x, **_):
        """What a kernel is passed for the argument `x`: an interface of Numba's."""
        return type, self.wrap(x) if isinstance(x, np.ndarray) and x.ndim else x

    def put(self, x) -> np.ndarray:
        if is_on_device(x) and not x.is_c_contiguous():
            raise NOT_CONTIGUOUS
        return np.array(x.copy_to_host() if is_on_device(x) else x, order="C")

    def wrap(self, x):
        return self.array(x)

    def get(self, x) -> np.ndarray:
        return x


SIMULATOR = "NUMBA_ENABLE_CUDASIM=1 in the environment chooses Numba's simulator"
NO_DEVICE = UnsupportedError("target='cuda' without a GPU that a driver of NVIDIA knows of", None,
                             f"run it where `nvidia-smi` lists one; {SIMULATOR}")
NO_CUPY = UnsupportedError("target='cuda' without CuPy, whose arrays it computes with", None,
                           f"install it with: pip install 's2s[cuda]'; {SIMULATOR}")
NOT_CONTIGUOUS = UnsupportedError("a device array that is not contiguous", None,
                                  "copy it, with .copy() for example")
