"""Arrays of another shape over the same memory, in native code."""

import numba
import numpy as np
import pytest

import s2s
from s2s.runtime.kernels.array_layout import (
    native_copy,
    native_in_order,
    native_permuted,
    native_reshaped,
)
from s2s.runtime.numba.compiler import Effort

pytestmark = pytest.mark.compile
LAYOUTS = [lambda x: x, np.asfortranarray, lambda x: np.repeat(x, 2, 0)[::2], lambda x: x[::-1]]


def native(f):
    return numba.njit(f, pipeline_class=Effort)


def outcome(f, *args):
    try:
        return np.asarray(f(*args)).tolist()
    except ValueError:
        return ValueError


def test_shapes_as_numpy_has_them():
    two, one = (
        native(lambda x, n, m: native_reshaped(native_in_order(x), (n, m))),
        native(lambda x, n: native_reshaped(native_in_order(x), n)),
    )
    for x in (np.arange(12.0).reshape(3, 4), np.zeros((0, 4)), np.zeros((3, 0))):
        for given in (layout(x) for layout in LAYOUTS):
            for n, m in [
                (3, 4),
                (4, 3),
                (-1, 4),
                (6, -1),
                (-1, -1),
                (5, -1),
                (2, 5),
                (-2, -6),
                (0, -1),
                (-1, 0),
                (0, 7),
                (12, 1),
                (-1, 12),
            ]:
                assert outcome(two, given, n, m) == outcome(
                    lambda x, n, m: np.reshape(x, (n, m)), given, n, m
                ), (x.shape, n, m)
            for n in (12, -1, 11, 0, -12):
                assert outcome(one, given, n) == outcome(np.reshape, given, n), (x.shape, n)


def test_the_memory_is_the_same_where_it_lies_in_order_and_stays_when_the_array_goes():
    fast = native(lambda x: native_reshaped(native_in_order(x), (2, -1)))
    x = np.arange(6.0)
    assert np.shares_memory(fast(x), x) and not np.shares_memory(fast(x[::-1]), x)
    kept = native(lambda n: native_reshaped(native_in_order(np.ones(n)), (2, -1)))(6)
    assert kept.tolist() == [[1.0] * 3] * 2

    def written(x):
        y = native_reshaped(native_in_order(x), (3, 2))
        y[1, 1] = 7.0
        return y.shape, y.T[1, 1] + x[3]

    assert native(written)(x) == ((3, 2), 14.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64, np.bool_])
def test_what_does_not_lie_in_order_is_copied(dtype):
    turned = {
        2: native(lambda x: native_in_order(native_permuted(x, (1, 0)))),
        3: native(lambda x: native_in_order(native_permuted(x, (1, 0, 2)))),
        4: native(lambda x: native_in_order(native_permuted(x, (3, 1, 0, 2)))),
    }
    again, orders = native(native_copy), {2: (1, 0), 3: (1, 0, 2), 4: (3, 1, 0, 2)}
    for shape in [
        (3, 5),
        (70, 60),
        (0, 4),
        (4, 0),
        (3, 4, 5),
        (2, 70, 41),
        (2, 0, 3),
        (2, 3, 4, 5),
        (3, 1, 2, 0),
    ]:
        x = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
        for given in (layout(x) for layout in LAYOUTS):
            found = turned[x.ndim](given)
            assert (
                found.flags.c_contiguous
                and found.dtype == dtype
                and np.array_equal(found, np.transpose(given, orders[x.ndim]))
            )
            assert (
                np.array_equal(again(given), given)
                and again(given).flags.c_contiguous
                and not np.shares_memory(again(given), given)
            )
    one = native(lambda x: native_in_order(x[::-2]))
    assert one(np.arange(7).astype(dtype)).tolist() == np.arange(7).astype(dtype)[::-2].tolist()


def test_arrays_that_may_not_be_written():
    x = np.arange(6.0)
    x.flags.writeable = False
    found = native(lambda x: native_reshaped(native_in_order(x), (3, 2)))(x)
    assert found.tolist() == x.reshape(3, 2).tolist()


def test_programs_that_reshape():
    def f(x, n):
        reshaped = np.reshape(x * 2.0, (n, -1))
        return np.sum(reshaped @ np.reshape(x.T, (-1, n)))

    for x in (np.arange(12.0).reshape(4, 3), np.asfortranarray(np.arange(12.0).reshape(4, 3))):
        assert np.allclose(s2s.jit(s2s.grad(f))(x, 2), s2s.grad(f)(x, 2), rtol=1e-12)


def test_axes_in_another_order():
    fast = native(lambda x: native_permuted(x, (2, 0, 1)))
    flat = native(lambda x: native_reshaped(native_in_order(native_permuted(x, (1, 0, 2))), (-1,)))
    for x in (
        np.arange(24.0).reshape(2, 3, 4),
        np.zeros((2, 0, 4)),
        np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
        np.arange(48.0).reshape(4, 3, 4)[::-2],
    ):
        found = fast(x)
        np.testing.assert_array_equal(found, np.transpose(x, (2, 0, 1)))
        assert found.strides == np.transpose(x, (2, 0, 1)).strides
        np.testing.assert_array_equal(flat(x), np.transpose(x, (1, 0, 2)).ravel())
    kept = native(lambda n: native_permuted(np.ones((n, 2, 1)), (2, 0, 1)))(3)
    np.testing.assert_array_equal(kept, np.ones((1, 3, 2)))  # its memory is still there
