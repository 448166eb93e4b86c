"""Which arrays are on a GPU, what a stream is, and what is said where something is missing: none of
this needs a GPU.
"""

import importlib.util

import numpy as np
import pytest

import s2s
from s2s.runtime import device_arrays
from s2s.runtime.device_arrays import arrays_of, is_on_device, pointer_of


class Tensor:
    """What PyTorch's tensors show, in the host's memory or a GPU's."""

    def __init__(self, device):
        self.device = device

    @property
    def __cuda_array_interface__(self):
        raise AttributeError("it is not on a GPU")

    def __dlpack_device__(self):
        return self.device, 0


class OfCupy:
    __cuda_array_interface__ = {"typestr": "<f4"}
    dtype = "a dtype of its own"


def test_an_array_is_where_it_says():
    assert is_on_device(Tensor(2)) and is_on_device(OfCupy())
    for x in (Tensor(1), np.ones(3), np.float32(1.0), 1.0, None, "x", [1.0]):
        assert not is_on_device(x)
    assert device_arrays.dtype_of_device(OfCupy()) == np.float32


@pytest.mark.parametrize("name", ["ptr", "cuda_stream", "handle", "__cuda_stream__", ""])
def test_a_stream_has_an_address(name):
    class OfLibrary:
        pass

    stream = OfLibrary()
    setattr(stream, name or "x", (0, 48) if name == "__cuda_stream__" else 48)
    assert pointer_of(stream if name else 48) == 48


@pytest.mark.parametrize("stream", ["first", 1.5, True, object()])
def test_what_is_no_stream_is_refused(stream):
    with pytest.raises(s2s.TypeMismatchError, match="pass a stream of CuPy, Numba or PyTorch"):
        pointer_of(stream)


@pytest.mark.cuda
def test_what_is_missing_is_named_before_anything_runs(monkeypatch):
    cuda = pytest.importorskip("numba.cuda")
    have, found = {"numba_cuda", "cupy"}, importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: (
        name in have if name in ("numba_cuda", "cupy") else found(name, *rest)) or None)
    monkeypatch.setattr(cuda, "is_available", lambda: False)
    with pytest.raises(s2s.UnsupportedError, match="without a GPU"):
        arrays_of()
    monkeypatch.setattr(cuda, "is_available", lambda: True)
    have.remove("cupy")
    with pytest.raises(s2s.UnsupportedError, match="without CuPy"):
        s2s.device_put(np.ones(2))
    have.add("cupy")
    monkeypatch.setattr(device_arrays, "missing_compilers", lambda: "libnvrtc")
    with pytest.raises(s2s.UnsupportedError, match="without libnvrtc"):
        s2s.jit(lambda x: x + 1.0, target="cuda")(np.ones(2))
    have.remove("numba_cuda")
    with pytest.raises(s2s.UnsupportedError, match="without numba-cuda"):
        arrays_of()


def test_what_is_on_the_host_is_left_alone():
    tree = {"a": np.ones(2), "b": (1.5, None)}
    assert s2s.device_get(tree)["a"] is tree["a"]
    assert s2s.block_until_ready(tree) is tree


def test_a_stream_is_an_option_of_kernels_alone():
    with pytest.raises(s2s.TypeMismatchError, match="no option stream"):
        s2s.jit(lambda x: x, stream=0)
