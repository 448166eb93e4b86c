"""Run CUDA kernels: load the CUDA form of a function, and copy arrays to the device and back.

`compiled(function)` is a callable on flat positional arguments.  NumPy arrays are copied to the
device and results are copied back; where an argument is on the device already (CuPy, PyTorch,
Numba: whatever has `__cuda_array_interface__`), it is used there, and results stay there.  Numba
compiles each kernel when it is first launched.  With NUMBA_ENABLE_CUDASIM=1 the same code runs in
Numba's simulator.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np

from ..back.cuda.host import render_cuda
from ..back.cuda.kernel import THREADS
from ..back.loop_pipeline import lower
from ..errors import UnsupportedError
from ..ir.graph import Function
from .debug.load_source import load


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
    run = load(module.text, module.entry, module.lines, check=False)
    cuda = run.__wrapped__.__globals__["cuda"]

    def call(*args):
        stays = any(is_on_device(x) for x in args)
        results = run(*(to_device(cuda, x) for x in args))
        return results if stays else to_host(results)

    call.module, call.__name__ = module, function.name
    return call


def is_on_device(x) -> bool:
    """Whether `x` is an array in GPU memory, or a simulator array."""
    return hasattr(type(x), "__cuda_array_interface__") or hasattr(type(x), "__cuda_ndarray__")


def to_device(cuda, x):
    """A contiguous copy of `x` on the device; numbers as they are."""
    if isinstance(x, np.ndarray):
        return cuda.to_device(np.ascontiguousarray(x))
    if isinstance(x, (tuple, list)):
        return type(x)(to_device(cuda, item) for item in x)
    if is_on_device(x) and not hasattr(type(x), "__cuda_ndarray__"):
        x = cuda.as_cuda_array(x)
    if is_on_device(x) and not x.is_c_contiguous():
        raise UnsupportedError("a device array that is not contiguous", None,
                               "copy it, with .copy() for example")
    return x


def to_host(x):
    """A result as a NumPy array."""
    if isinstance(x, tuple):
        return tuple(map(to_host, x))
    return x.copy_to_host() if is_on_device(x) else x
