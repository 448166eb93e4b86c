"""Products of matrices and vectors in compiled code: of any layout and length, and of what is not finite."""

import numpy as np
import pytest

import s2s

pytestmark = pytest.mark.compile


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_vectors_by_matrices_of_any_length(order, dtype):
    def f(a, x, y):
        return a @ x, y @ a, a.T @ y, x @ a.T

    fast, rng = s2s.jit(f), np.random.default_rng(0)
    for n, m in [(2, 3), (3, 2), (7, 16), (32, 32), (32, 33), (2, 1000), (0, 3), (3, 0), (50, 60)]:
        a, x, y = (rng.normal(size=shape).astype(dtype) for shape in ((n, m), m, n))
        a = np.asarray(a, order=order)
        for found, expected in zip(fast(a, x, y), f(a, x, y)):
            assert found.dtype == dtype and found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype is np.float64 else 1e-4, atol=1e-4 if dtype is np.float32 else 1e-13)


def test_what_is_not_finite_is_not_lost():
    def f(a, x):
        return a @ x, x @ a

    a = np.array([[0.0, 1.0, np.inf], [np.nan, 0.0, 1.0], [1.0, 2.0, 3.0]])
    x = np.array([0.0, np.inf, 1.0])
    for found, expected in zip(s2s.jit(f)(a, x), f(a, x)):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
    with pytest.raises(ValueError):
        s2s.jit(lambda a, x: a @ x)(np.ones((3, 2)), np.ones(3))
