"""Products of matrices and vectors in compiled code: of any layout and length, and of what is not
finite.
"""

import numpy as np
import pytest

import s2s

pytestmark = pytest.mark.compile


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_vectors_by_matrices_of_any_length(order, dtype):
    def f(a, x, y):
        return (
            a @ x,
            y @ a,
            a.T @ y,
            x @ a.T,
            a.T @ a,
            a @ a.T,
            a[::-1] @ x[::-1],
            a[:, ::-1] @ np.conj(a.T),
        )

    fast, rng = s2s.jit(f), np.random.default_rng(0)
    single = np.finfo(dtype).eps > 1e-10
    for n, m in [
        (2, 3),
        (3, 2),
        (7, 16),
        (32, 32),
        (32, 33),
        (33, 32),
        (2, 512),
        (2, 1000),
        (0, 3),
        (3, 0),
        (50, 60),
    ]:
        a, x, y = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in ((n, m), m, n))
        a, x, y = (
            u.astype(dtype) if np.dtype(dtype).kind == "c" else u.real.astype(dtype)
            for u in (a, x, y)
        )
        a = np.asarray(a, order=order)
        for found, expected in zip(fast(a, x, y), f(a, x, y)):
            assert found.dtype == dtype and found.shape == expected.shape
            np.testing.assert_allclose(
                found, expected, rtol=1e-4 if single else 1e-12, atol=1e-4 if single else 1e-13
            )


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_matrices_of_all_lengths_are_as_exact_as_numpy(dtype):
    def f(a, x, y):
        return a @ x, y @ a

    fast, rng, eps = s2s.jit(f), np.random.default_rng(1), np.finfo(dtype).eps
    for n in range(1, 34):
        for m in (*range(1, 14), *range(28, 38)):
            a, x, y = (rng.normal(size=shape).astype(dtype) for shape in ((n, m), m, n))
            exact = [u.astype(np.longdouble) for u in (a, x, y)]
            for found, expected, size in zip(fast(a, x, y), f(*exact), f(*map(abs, exact))):
                assert np.all(abs(found - expected) <= 0.5 * eps * (max(n, m) + 2) * size)


def test_operands_may_be_parts_of_one_another():
    def f(a, x):
        b = a[1:]  # begins within a
        for _ in range(3):
            x = b @ x / 7.0
        return x, a[2] @ b, a[:, 1] @ a, b[::-1, ::-2] @ a[1::2, 0], b @ a[0], b[:0] @ x

    fast = s2s.jit(f)
    for n in (6, 14):
        a, x = np.random.default_rng(2).normal(size=(n + 1, n)), np.ones(n)
        for found, expected in zip(fast(a, x), f(a, x)):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "dtypes",
    [
        (np.float64, np.float64),
        (np.float32, np.float32),
        (np.float32, np.float64),
        (np.int64, np.float64),
        (np.int64, np.int64),
    ],
)
def test_stacks_of_rows_by_one_matrix(dtypes):
    """One product of BLAS's, also of parts of arrays, of transposed ones, and where nothing is in
    them.
    """
    def f(x, W):
        return x @ W, np.transpose(x, (1, 0, 2)) @ W, x[:, ::2, :] @ W[:, ::-1], x[None] @ W

    fast, rng = s2s.jit(f), np.random.default_rng(4)
    for shape in (
        (3, 4, 5, 6),
        (1, 1, 1, 1),
        (2, 5, 1, 3),
        (0, 2, 3, 4),
        (2, 3, 0, 4),
        (2, 3, 4, 0),
    ):
        x, W = (
            (4 * rng.normal(size=s)).astype(dtype)
            for s, dtype in zip((shape[:3], shape[2:]), dtypes)
        )
        for found, expected in zip(fast(x, W), f(x, W)):
            assert found.dtype == expected.dtype and found.shape == expected.shape
            np.testing.assert_allclose(
                found,
                expected,
                rtol=1e-4 if found.dtype == np.float32 else 1e-12,
                atol=1e-4 if found.dtype == np.float32 else 1e-12,
            )


def test_cotangents_of_a_stack_of_rows_and_one_matrix():
    def f(x, W, b):
        return np.sum(np.tanh(x @ W + b) ** 2)

    rng, gradient = np.random.default_rng(5), s2s.grad(f, argnums=(0, 1, 2))
    fast = s2s.jit(gradient)
    for shape in ((3, 4, 5, 6), (0, 2, 3, 4), (2, 3, 0, 4), (2, 3, 4, 0), (1, 1, 1, 1)):
        args = rng.normal(size=shape[:3]), rng.normal(size=shape[2:]), rng.normal(size=shape[3])
        for found, expected, x in zip(fast(*args), gradient(*args), args):
            assert found.shape == x.shape
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_the_adjoint_of_a_recurrence_of_small_products():
    def f(a, x):
        for _ in range(4):
            x = np.tanh(a @ x) + x @ a
        return np.sum(x)

    rng, gradient = np.random.default_rng(3), s2s.grad(f, argnums=(0, 1))
    a, x = rng.normal(size=(6, 6)), rng.normal(size=6)
    for found, expected in zip(s2s.jit(gradient)(a, x), gradient(a, x)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
