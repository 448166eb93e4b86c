"""Arrays written into parts of arrays in native code."""

import numba
import numpy as np
import pytest
from numba.core import event

import s2s
from s2s.runtime.numba.compiler import Effort

pytestmark = pytest.mark.compile


class Compiled(event.Listener):
    """The functions that Numba compiles."""

    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass


def windows(x, n):
    parts = []
    for k in range(n):
        parts.append(x[:, None, :, None, None, 3 * k:3 * k + 3])
    return np.sum(np.stack(parts) ** 2)


def test_no_text_of_an_error_is_compiled(monkeypatch, tmp_path):
    # what another test has put on disk is not compiled again
    monkeypatch.setenv("S2S_CACHE_DIR", str(tmp_path))
    x, found = np.arange(24.0).reshape(1, 2, 12), Compiled()
    with event.install_listener("numba:compile", found):
        got = s2s.jit(s2s.grad(windows))(x, 4)
    np.testing.assert_allclose(got, 2 * x, rtol=1e-15)
    assert any("stacked" in name for name in found.names)
    assert not any("shape_context" in name for name in found.names)


def test_arrays_of_unlike_shapes_are_not_stacked():
    x = np.arange(8.0).reshape(1, 2, 4)  # the second part has length 1, and would be broadcast
    for function in (windows, s2s.jit(windows), s2s.jit(s2s.grad(windows))):
        with pytest.raises(ValueError, match="shape"):
            function(x, 2)


def test_shapes_that_do_not_go_together_are_an_error():
    @numba.njit(pipeline_class=Effort)
    def assigned(y, x):
        y[1] = x
        return y

    y = np.zeros((2, 3))
    np.testing.assert_array_equal(assigned(y, np.ones(3)), [[0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(assigned(y, np.full(1, 2.0)), [[0, 0, 0], [2, 2, 2]])
    with pytest.raises(ValueError, match="lengths differ"):
        assigned(y, np.ones(2))
