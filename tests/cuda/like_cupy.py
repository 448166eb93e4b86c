"""NumPy's arrays with what distinguishes CuPy's: elements and sums are arrays of rank 0.

To make a Python number of one, or to branch on it, is an error here, where CuPy waits for the
device.
"""

import types

import numpy as np

from s2s.runtime.device_arrays import Simulated, is_on_device


class LikeCupy(np.ndarray):
    def __getitem__(self, index):
        found = super().__getitem__(index)
        if isinstance(found, np.ndarray):
            return found
        return super().__getitem__((*(index if isinstance(index, tuple) else (index,)), ...))

    def __setitem__(self, index, x):
        self.view(np.ndarray)[index] = plain(x)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **rest):
        into = {"out": tuple(map(plain, out))} if out else {}
        found = getattr(ufunc, method)(*map(plain, inputs), **into, **rest)
        return out[0] if out else like_cupy(found)

    def __array_function__(self, function, kinds, args, kwargs):
        return like_cupy(function(*plain(args), **{key: plain(x) for key, x in kwargs.items()}))

    def __bool__(self):
        raise TypeError("a number is read from the device, and the source does not say so")

    __float__ = __int__ = __index__ = __bool__


for name in ("sum", "max", "min"):
    setattr(LikeCupy, name, lambda self, *args, _name=name, **kwargs: like_cupy(
        getattr(plain(self), _name)(*args, **kwargs)))


def like_cupy(x):
    if isinstance(x, tuple):
        return type(x)(*map(like_cupy, x)) if hasattr(x, "_fields") else tuple(map(like_cupy, x))
    return np.asarray(x).view(LikeCupy) if isinstance(x, (np.ndarray, np.generic)) else x


def plain(x):
    if isinstance(x, (tuple, list)):
        return type(x)(map(plain, x))
    return x.view(np.ndarray) if isinstance(x, LikeCupy) else x


class Functions(types.ModuleType):
    """The functions of a module of NumPy's, which make such arrays."""

    def __init__(self, module):
        super().__init__(module.__name__)
        self.module = module

    def __getattr__(self, name):
        found = getattr(self.module, name)
        if isinstance(found, types.ModuleType):
            return Functions(found)
        return (found if isinstance(found, type) or not callable(found)
                else lambda *args, **kwargs: like_cupy(found(*plain(args), **kwargs)))


class Arrays(Simulated):
    def prepare(self, names):
        super().prepare(names)
        names.update({"cp": Functions(np)} if "cp" in names else {})

    def prepare_args(self, type, x, **rest):
        return super().prepare_args(type, plain(x), **rest)

    def put(self, x):
        return like_cupy(np.array(x.copy_to_host() if is_on_device(x) else x, order="C"))

    def get(self, x):
        return plain(x)[()]
