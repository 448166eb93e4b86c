"""Arrays on a GPU: which they are, copies there and back, and streams.

An array is on the device if it says so by DLPack or by `__cuda_array_interface__`: CuPy's, Numba's,
JAX's and PyTorch's are.  What s2s makes there is CuPy's.  With NUMBA_ENABLE_CUDASIM=1 the arrays of
Numba's simulator are on the device, and NumPy's take the place of CuPy's.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util

import numpy as np

from .. import tree
from ..errors import TypeMismatchError, UnsupportedError
from ..lazy_import import later

numba = later("numba")
numba_cuda = later("numba.cuda")

DEVICES = (2, 13)  # DLPack's numbers of CUDA memory, and of such that the host shares


def is_on_device(x) -> bool:
    """Whether `x` is an array in GPU memory, or a simulator array."""
    kind = type(x)
    if kind in (np.ndarray, float, int) or isinstance(x, (np.ndarray, np.generic)):
        return False
    if hasattr(kind, "__cuda_ndarray__"):
        return True
    if hasattr(kind, "__dlpack_device__"):  # PyTorch's tensors in the host's memory have both
        return x.__dlpack_device__()[0] in DEVICES
    return hasattr(kind, "__cuda_array_interface__")


def dtype_of_device(x) -> np.dtype:
    """The NumPy dtype of an array on the device, whose library may have dtypes of its own."""
    if isinstance(x.dtype, np.dtype):
        return x.dtype
    if hasattr(type(x), "__cuda_array_interface__"):
        return np.dtype(x.__cuda_array_interface__["typestr"])
    return arrays_of().put(x).dtype


def mapped(function, x):
    """`x`, with its arrays replaced by `function`."""
    if isinstance(x, (tuple, list)):
        return type(x)(mapped(function, item) for item in x)
    return function(x) if isinstance(x, np.ndarray) or is_on_device(x) else x


class OnDevice:
    """Arrays on the device: CuPy's."""

    def __init__(self):
        self.cp = importlib.import_module("cupy")

    def prepare(self, names: dict) -> None:
        """Prepare the names of a module of kernels."""

    def put(self, x):
        """A contiguous copy of `x` on the device; `x` if it is there."""
        if isinstance(x, np.ndarray):
            return self.cp.asarray(x, order="C")
        has_interface = hasattr(type(x), "__cuda_array_interface__")
        array = self.cp.asarray(x) if has_interface else self.cp.from_dlpack(x)
        if not array.flags.c_contiguous:
            raise NOT_CONTIGUOUS
        return array

    def wrap(self, x):
        return x

    def get(self, x) -> np.ndarray | np.generic:
        return self.cp.asnumpy(x)[()]

    def copied_back(self, x) -> np.ndarray:
        """A copy in the host's memory of an array of any library."""
        return self.cp.asnumpy(self.put(x))

    def wait(self) -> None:
        self.cp.cuda.runtime.deviceSynchronize()

    def on_stream(self, pointer: int):
        """A context in which copies and CuPy's functions are on this stream."""
        return self.cp.cuda.ExternalStream(pointer)


class Simulated:
    """NumPy's arrays, which kernels write in place in Numba's simulator."""

    def __init__(self):
        self.array = type(numba_cuda.to_device(np.zeros(1)))

    def prepare(self, names: dict) -> None:
        """Let the kernels among `names` take NumPy's arrays."""
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

    def get(self, x) -> np.ndarray | np.generic:
        return x[()]

    def copied_back(self, x) -> np.ndarray:
        return x.copy_to_host()

    def wait(self) -> None:
        pass  # kernels have ended when their launch returns

    def on_stream(self, pointer: int):
        return contextlib.nullcontext()


def arrays_of() -> OnDevice | Simulated:
    """The arrays of this process; UnsupportedError, which says what is missing, if there are none.
    """
    if importlib.util.find_spec("numba_cuda") is None:
        raise UnsupportedError("arrays on a GPU without numba-cuda", None, INSTALL)
    if numba.config.ENABLE_CUDASIM:
        return Simulated()
    if importlib.util.find_spec("cupy") is None:
        if not numba_cuda.is_available():
            raise no_device()
        raise NO_CUPY
    if not numba_cuda.is_available():
        raise no_device()
    missing = missing_compilers()
    if missing:
        raise UnsupportedError(f"target='cuda' without {missing}, by which Numba compiles kernels",
                               None, INSTALL)
    return OnDevice()


def no_device() -> UnsupportedError:
    """What to raise where Numba finds no GPU, with what it says."""
    why = numba_cuda.cuda_error()
    said = f" ({' '.join(str(why).split())})" if why is not None else ""
    return UnsupportedError(f"target='cuda' without a GPU that a driver of NVIDIA knows of{said}",
                            None, f"run it where `nvidia-smi` lists one; {SIMULATOR}")


def missing_compilers() -> str:
    """The libraries of NVIDIA's toolkit that Numba does not find, of those that it needs; a version
    without the function that is asked says so by itself, later.
    """
    libraries = getattr(numba_cuda.cudadrv, "libs", None)
    missing: list[str] = []
    if not hasattr(libraries, "open_cudalib"):
        return ""
    for name in ("nvvm", "nvrtc"):
        try:
            libraries.open_cudalib(name)
        except Exception:  # each version of numba-cuda has errors of its own
            missing.append(f"lib{name}")
    return " and ".join(missing)


class Stream:
    """The stream that calls are on: the default one where `given` is None.

    It may be CuPy's, Numba's, PyTorch's, what has `__cuda_stream__`, or the address of one.
    """

    def __init__(self, given, arrays: OnDevice | Simulated):
        self.pointer = None if given is None else pointer_of(given)
        self.arrays = arrays
        if self.pointer is None or isinstance(arrays, Simulated):
            self.numbas = 0
        else:
            self.numbas = numba_cuda.external_stream(self.pointer)

    def __enter__(self) -> None:
        self.entered = (contextlib.nullcontext() if self.pointer is None
                        else self.arrays.on_stream(self.pointer))
        self.entered.__enter__()

    def __exit__(self, *error) -> None:
        self.entered.__exit__(*error)


def pointer_of(stream) -> int:
    """The address of a stream of any library; TypeMismatchError for what is none."""
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__
        return int((found() if callable(found) else found)[1])
    for name in ("ptr", "cuda_stream", "handle"):  # of CuPy, PyTorch and Numba
        found = getattr(stream, name, None)
        if found is not None:
            return int(getattr(found, "value", found) or 0)
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    raise TypeMismatchError(f"stream={stream!r}", None,
                            "pass a stream of CuPy, Numba or PyTorch, or the address of one")


# ------------------------------------------------------------------------------------ for everybody


def device_put(x):
    """Copy the NumPy arrays in `x`, an array or a tree of them, to the GPU: as CuPy's.

    What is there stays as it is, and so do numbers.  UnsupportedError without a GPU.
    """
    arrays = arrays_of()
    return tree.map(lambda leaf: arrays.wrap(arrays.put(leaf)) if isinstance(leaf, np.ndarray)
                    else leaf, x)


def device_get(x):
    """Copy the arrays on a GPU in `x`, an array or a tree of them, to the host: as NumPy's."""
    return tree.map(lambda leaf: arrays_of().copied_back(leaf) if is_on_device(leaf) else leaf, x)


def block_until_ready(x):
    """Wait until the GPU has computed the arrays in `x`, an array or a tree of them; return it."""
    if any(map(is_on_device, tree.leaves(x))):
        arrays_of().wait()
    return x


SIMULATOR = "NUMBA_ENABLE_CUDASIM=1 in the environment chooses Numba's simulator"
INSTALL = "install it with: pip install 's2s[cuda]'"
NO_CUPY = UnsupportedError("target='cuda' without CuPy, whose arrays it computes with", None,
                           f"{INSTALL}; {SIMULATOR}")
NOT_CONTIGUOUS = UnsupportedError("a device array that is not contiguous", None,
                                  "copy it, with .copy() for example")
