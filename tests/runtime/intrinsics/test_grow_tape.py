"""Longer arrays for tapes that grow: what native code makes in place of the functions in generated
texts.
"""

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import s2s
from s2s.runtime.intrinsics import grow_tape
from s2s.runtime.numba import native_module

pytestmark = pytest.mark.compile

FUNCTIONS = grow_tape.FUNCTIONS


@pytest.fixture(scope="module")
def native():
    """Those functions as native code has them, by the axes of the tape."""
    made = {}
    for rank, function in FUNCTIONS.items():
        scope = {"function": function}
        exec("def longer(tape, n): return function(tape, n)", scope)
        made[rank] = numba.njit(scope["longer"])
    return made


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "bool"])
@pytest.mark.parametrize(
    "shape", [(0,), (7,), (0, 3), (5, 3), (5, 0), (4, 2, 3), (3, 0, 2), (3, 2000, 1)]
)
def test_a_tape_is_as_long_as_the_text_says_and_begins_as_it_was(native, shape, dtype):
    tape = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for n in (1, 6, 1000, 33_333, 99_999, 100_000, 499_999, 1_000_000):
        if 2 * n * max(np.prod(shape[1:]), 1) > 20_000_000:
            continue
        wanted, found = FUNCTIONS[len(shape)](tape, n), native[len(shape)](tape, n)
        assert (found.shape, found.dtype, found.flags.c_contiguous) == (
            wanted.shape,
            wanted.dtype,
            True,
        )
        np.testing.assert_array_equal(found[:len(tape)], tape)


def test_tapes_that_lie_otherwise_are_copied_too(native):
    tape = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    np.testing.assert_array_equal(native[3](tape, 5)[:4], tape)
    np.testing.assert_array_equal(native[1](np.arange(10)[::-2], 5)[:5], [9, 7, 5, 3, 1])


def test_nothing_is_kept_of_what_was_too_short(native, request):
    _nrt_python.memsys_enable_stats()
    request.addfinalizer(_nrt_python.memsys_disable_stats)
    tape = np.ones((3, 4))
    native[2](tape, 5)
    before = rtsys.get_allocation_stats()
    for _ in range(5):
        native[2](tape, 5)
    after = rtsys.get_allocation_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


def test_too_much_is_refused(native):
    with pytest.raises((ValueError, MemoryError)):
        native[2](np.ones((1, 1 << 20)), 1 << 50)


def halvings(x):
    total = 0.0
    while x > 1e-3:
        total += x * x
        x = 0.999 * x - 1e-7
    return total


def test_the_function_is_not_compiled_for_each_text():
    compiled = s2s.jit(s2s.grad(halvings), cache=False)
    np.testing.assert_allclose(compiled(2.0), s2s.grad(halvings)(2.0), rtol=1e-12)
    text = native_module._entries[-1].py_func.__globals__[native_module.TEXT]
    assert f"from {grow_tape.__name__} import with_room" in text and "def with_room" not in text
    assert "def with_room" in s2s.jit(s2s.grad(halvings)).lower(2.0).loops
