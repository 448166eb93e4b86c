"""Run CUDA kernels: load the CUDA form of a function, and call it on arrays of the device.

`compiled(function)` is a callable on flat positional arguments.  NumPy arrays are copied to the
device and results are copied back; where an argument is on the device already, it is used there,
and results stay there (device_arrays.py).  Numba compiles each kernel when it is first launched.
With NUMBA_ENABLE_CUDASIM=1 the same code runs in Numba's simulator.
"""

from __future__ import annotations

import functools
import importlib.util
import warnings
from collections.abc import Callable

from ..back.cuda.host import render_cuda
from ..back.cuda.kernel import THREADS
from ..back.loop_pipeline import lower
from ..errors import UnsupportedError
from ..ir.graph import Function
from .debug.load_source import load
from .device_arrays import INSTALL, Stream, arrays_of, is_on_device, mapped


class HostWarning(UserWarning):
    """Code for a GPU waits in a loop for a number, or copies arrays to the host and back."""


def compiled(function: Function, *, threads: int = THREADS, stream=None, **options) -> Callable:
    """Compile `function` for the GPU, called with its parameters as flat positional arguments.

    `threads` is the block size, a power of two; kernels and copies are on `stream`, if it is given.
    Raises UnsupportedError without numba-cuda, or for options of the CPU target.
    """
    if importlib.util.find_spec("numba_cuda") is None:
        raise UnsupportedError("target='cuda' without numba-cuda", None,
                               INSTALL)
    if threads < 1 or threads & (threads - 1):
        raise UnsupportedError(f"{threads} threads in a block", None,
                               "use a power of two, such as 128")
    module = render_cuda(lower(function, "cuda"), threads, stream is not None)

    for line, what in module.waits:
        advice = UnsupportedError(f"{what}: the host waits for the GPU", line,
                                  "keep what decides branches and lengths on the host")
        warnings.warn(str(advice), HostWarning, stacklevel=2)

    @functools.cache
    def loaded():
        arrays = arrays_of()
        run = load(module.text, module.entry, module.lines, check=False)
        names = run.__wrapped__.__globals__
        arrays.prepare(names)
        there = Stream(stream, arrays)
        if stream is not None:
            names["STREAM"] = there.numbas
        return run, arrays, there

    def call(*args):
        run, arrays, there = loaded()
        stays = any(map(has_device_arrays, args))
        with there:
            results = run(*(mapped(arrays.put, x) for x in args))
            return mapped(arrays.wrap if stays else arrays.get, results)

    call.module, call.__name__ = module, function.name
    return call


def has_device_arrays(x) -> bool:
    """Whether `x` is an array on the device, or holds one."""
    return any(map(has_device_arrays, x)) if isinstance(x, (tuple, list)) else is_on_device(x)
