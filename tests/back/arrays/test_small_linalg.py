"""Linear algebra of small matrices, in loops: LAPACK's numbers, and its exceptions."""

import numpy as np
import pytest

import s2s
from s2s.back.arrays.small_linalg import determinant, eliminate, factorise, minors

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("n", range(1, 9))
def test_columns_behind_become_the_solution(n):
    for _ in range(20):
        a, b = RNG.normal(size=(n, n)), RNG.normal(size=(n, 3))
        w = np.hstack((a, b))
        eliminate(w)
        np.testing.assert_allclose(w[:, n:], np.linalg.solve(a, b), rtol=1e-9)
        np.testing.assert_allclose(np.prod(np.diag(w)), np.linalg.det(a), rtol=1e-10)


def test_pivots_are_the_largest():
    w = np.array([[1e-20, 1.0, 1.0], [1.0, 1.0, 2.0]])
    eliminate(w)
    np.testing.assert_allclose(w[:, 2], [1.0, 1.0], rtol=1e-15)


def test_singular_matrices():
    for a in (np.zeros((3, 3)), np.ones((3, 3)), np.array([[0.0, 1.0], [0.0, 2.0]])):
        w = a.copy()
        eliminate(w)
        assert np.prod(np.diag(w)) == 0.0
        with pytest.raises(np.linalg.LinAlgError):
            eliminate(np.hstack((a, np.eye(len(a)))))


@pytest.mark.parametrize("n", (3, 2, 1))
def test_cofactors_of_few_rows(n):
    a = RNG.normal(size=(n, n))
    np.testing.assert_allclose(minors(a), np.linalg.det(a) * np.linalg.inv(a).T, rtol=1e-9)
    np.testing.assert_array_equal(
        minors(np.zeros((n, n), np.float32)), np.full((n, n), float(n == 1))
    )


ODD = [
    np.diag(d)
    for d in (
        (1e200, 1e200, 1e-300),
        (1e-200, 1e-200, 1e300),
        (-1e-200, 1e-200, 1e300),
        (1e160, 1e160, 1e160),
        (1e-310, 1e10, 1e300),
        (0.0, np.nan, 1.0),
        (0.0, 1.0, np.inf),
        (-1.0, -0.0, 2.0),
        (2.0, 3.0, -4.0),
    )
]


@pytest.mark.parametrize("a", ODD, ids=lambda a: str(np.diag(a)))
def test_determinants_of_pivots_far_apart_and_of_none(a):
    w = a.copy()
    with np.errstate(all="ignore"):
        eliminate(w)
        np.testing.assert_allclose(determinant(w), np.linalg.det(a), rtol=1e-12)
        sign, size = np.linalg.slogdet(a)
        assert np.prod(np.sign(np.diag(w))) == sign
        np.testing.assert_allclose(np.sum(np.log(np.abs(np.diag(w)))), size, rtol=1e-14)


def test_a_nan_below_a_pivot_is_seen():
    with pytest.raises(np.linalg.LinAlgError):
        eliminate(np.array([[0.0, 1.0, 2.0], [np.nan, 0.0, 0.0], [0.0, 0.0, 1.0]]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_left_to_numpy(bad):
    for place in np.ndindex(3, 6):
        w = np.hstack((RNG.normal(size=(3, 3)), np.eye(3)))
        w[place] = bad
        with pytest.raises(np.linalg.LinAlgError):
            eliminate(w)


def test_triangles_of_positive_matrices():
    for n in range(1, 9):
        x = RNG.normal(size=(n, n))
        w = x @ x.T + np.eye(n)
        expected = np.linalg.cholesky(w)
        w[np.triu_indices(n, 1)] = np.nan  # which is not read
        factorise(w)
        np.testing.assert_allclose(w, expected, rtol=1e-10, atol=1e-14)
    for a in (
        np.array([[1.0, 0.0], [2.0, 1.0]]),
        np.zeros((2, 2)),
        np.array([[np.nan, 0.0], [0.0, 1.0]]),
        np.array([[1.0, 0.0], [np.inf, 1.0]]),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            factorise(a.copy())


def everything(a, b):
    c = a + np.zeros((3, 3), a.dtype)
    sign, size = np.linalg.slogdet(c)
    x = np.linalg.solve(c, b)
    return (
        np.sum(np.linalg.inv(c) * b[0])
        + np.linalg.det(c)
        + sign * size
        + np.sum(x**2)
        + np.sum(np.linalg.cholesky(c @ c.T))
        + np.sum(np.linalg.solve(c, b[:, 0]))
    )


def test_loops_of_a_gradient_agree():
    a, b = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
    gradient = s2s.grad(everything, argnums=(0, 1))
    text, names = s2s.jit(gradient).lower(a, b).loops, {}
    code = "\n".join(line for line in text.splitlines() if "#" not in line)
    assert (
        "eliminate(" in code
        and "factorise(" in code
        and "linalg.solve" not in code
        and "linalg.slogdet" not in code
    )
    exec(text, names)
    for found, expected in zip(names["everything_grad"](a, b), gradient(a, b)):
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_what_is_written_over_is_an_array_of_its_own():
    def f(a):
        c = a + np.zeros((2, 2))
        return np.linalg.inv(c), c, np.linalg.inv(c) @ c

    a = RNG.normal(size=(2, 2))
    text, names = s2s.jit(f).lower(a).loops, {}
    exec(text, names)
    for found, expected in zip(names["f"](a), f(a)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.compile
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_code_gives_and_raises_what_numpy_does(dtype):
    def f(a, b):
        total = np.zeros((2, 2), a.dtype)
        for k in range(len(a)):
            total = (
                total
                + np.linalg.inv(a[k] + np.zeros((2, 2), a.dtype))
                + np.linalg.solve(a[k], b) * np.linalg.det(a[k])
            )
        return total

    fast, b = s2s.jit(f), RNG.normal(size=(2, 2)).astype(dtype)
    odd = [np.full((2, 2), x) for x in (0.0, 1.0, np.nan, np.inf)] + [
        np.diag([1.0, np.inf]),
        np.array([[0.0, 1.0], [1.0, 0.0]]),
    ]
    for last in odd:
        a = np.stack([RNG.normal(size=(2, 2)), last]).astype(dtype)
        try:
            expected = f(a, b)
        except np.linalg.LinAlgError:
            with pytest.raises(np.linalg.LinAlgError):
                fast(a, b)
            continue
        found = fast(a, b)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-10 if dtype is np.float64 else 1e-3)
