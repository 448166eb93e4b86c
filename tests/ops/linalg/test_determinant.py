"""Determinants of singular matrices: what they and their cofactors change by, against minors of
integers, which are exact.
"""

import itertools

import numpy as np
import pytest

import s2s


def minor(a, rows, columns) -> int:
    """The determinant of `a`, a list of lists of integers, without these rows and columns:
    Leibniz's sum.
    """
    left = [
        [x for j, x in enumerate(row) if j not in columns]
        for i, row in enumerate(a)
        if i not in rows
    ]
    total = 0
    for order in itertools.permutations(range(len(left))):
        term = (-1) ** sum(order[i] > order[j] for j in range(len(order)) for i in range(j))
        for row, j in zip(left, order):
            term *= row[j]
        total += term
    return total


def first(a) -> np.ndarray:
    n = range(len(a))
    return np.array([[(-1) ** (i + j) * minor(a, {i}, {j}) for j in n] for i in n], float)


def second(a) -> np.ndarray:
    n = len(a)
    found = np.zeros((n, n, n, n))
    for i, j, k, m in itertools.product(range(n), repeat=4):
        if i != k and j != m:
            found[i, j, k, m] = (
                (-1) ** (i + j + k + m)
                * (1 if (i < k) == (j < m) else -1)
                * minor(a, {i, k}, {j, m})
            )
    return found


def product(rank, n, seed):
    """An n by n matrix of integers, of the given rank."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-3, 4, (n, rank)) @ rng.integers(-3, 4, (rank, n))).tolist()


MATRICES = {
    "rank 1 of 2": [[1, 2], [2, 4]],
    "rank 2 of 3": [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
    "equal rows": [[1, 2, 3], [1, 2, 3], [2, 0, 5]],
    "rank 1 of 3": [[1, 1, 1]] * 3,
    "rank 0": [[0, 0, 0]] * 3,
    "rank 0 of 1": [[0]],
    "diagonal": [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 3]],
    "rank 2 of 4": product(2, 4, 0),
    "rank 3 of 4": product(3, 4, 1),
    "regular": [[2, 1, 0], [-1, 3, 1], [0, 1, 4]],
}


def close(found, expected, a, order) -> None:
    """To the rounding of the elements of `a`: a derivative of this order is a form of degree n -
    order in them, and which of them are rounded how depends on the kernels that BLAS has for a
    processor."""
    assert np.shape(found) == np.shape(expected)
    size = np.max(np.linalg.norm(a, 2, axis=(-2, -1))) ** max(np.shape(a)[-1] - order, 0)
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=16 * np.finfo(float).eps * max(1, size)
    )


def agrees(a, direction, wrapped=lambda f: f) -> None:
    det, x = np.linalg.det, np.array(a, float)
    close(wrapped(s2s.grad(det))(x), first(a), a, 1)
    close(wrapped(s2s.hessian(det))(x), second(a), a, 2)
    np.testing.assert_allclose(
        s2s.jvp(det, (x,), (direction,))[1], np.sum(first(a) * direction), atol=1e-12
    )
    expected = np.einsum("ijkl,kl->ij", second(a), direction)
    close(wrapped(lambda x, d: s2s.jvp(s2s.grad(det), (x,), (d,))[1])(x, direction), expected, a, 2)
    close(
        wrapped(s2s.grad(lambda x, d: np.sum(s2s.grad(det)(x) * d)))(x, direction), expected, a, 2
    )


@pytest.mark.parametrize("name", MATRICES)
def test_both_derivatives(name):
    a = MATRICES[name]
    agrees(a, np.random.default_rng(2).normal(size=np.shape(a)))


@pytest.mark.compile
def test_both_derivatives_compiled():
    for name in ("rank 2 of 3", "rank 0", "rank 2 of 4", "regular"):
        a = MATRICES[name]
        agrees(a, np.random.default_rng(2).normal(size=np.shape(a)), s2s.jit)


STACK = np.array([a for a in MATRICES.values() if len(a) == 3], float)
FIRST, SECOND = (np.stack([of(a.astype(int).tolist()) for a in STACK]) for of in (first, second))


def stacked(wrapped) -> None:
    det = np.linalg.det
    close(wrapped(s2s.vmap(s2s.grad(det)))(STACK), FIRST, STACK, 1)
    close(wrapped(s2s.vmap(s2s.hessian(det)))(STACK), SECOND, STACK, 2)
    close(wrapped(s2s.grad(lambda a: np.sum(np.linalg.det(a))))(STACK), FIRST, STACK, 1)
    close(
        wrapped(lambda a, d: s2s.jvp(s2s.grad(lambda a: np.sum(np.linalg.det(a))), (a,), (d,))[1])(
            STACK, STACK[::-1].copy()
        ),
        np.einsum("bijkl,bkl->bij", SECOND, STACK[::-1]),
        STACK,
        1,
    )


def test_of_stacks():
    """Singular and regular ones beside each other."""
    stacked(lambda f: f)


@pytest.mark.compile
def test_of_stacks_compiled():
    stacked(s2s.jit)


def test_nearly_singular_matrices_are_as_exact_as_others():
    """Elements that differ from integers by less than the rounding of what is computed with
    them.
    """
    a = MATRICES["rank 2 of 3"]
    for size in (1e-15, 1e-12, 1e-9):
        x = np.array(a) + size * np.array([[0, 1, 0], [1, 0, -1], [0, 0, 1]])
        np.testing.assert_allclose(
            s2s.grad(np.linalg.det)(x), first(a), rtol=0, atol=1e-13 + 20 * size
        )
        np.testing.assert_allclose(
            s2s.hessian(np.linalg.det)(x), second(a), rtol=0, atol=1e-13 + 20 * size
        )


def test_of_a_complex_matrix():
    a, z = MATRICES["rank 2 of 3"], 1 + 2j
    close(
        s2s.grad(np.linalg.det, holomorphic=True)(z * np.array(a)),
        z**2 * first(a),
        z * np.array(a),
        1,
    )
    close(
        s2s.hessian(np.linalg.det, holomorphic=True)(z * np.array(a)),
        z * second(a),
        z * np.array(a),
        2,
    )


def test_single_precision_stays():
    a = np.array(MATRICES["rank 2 of 3"], np.float32)
    for f in (s2s.grad(np.linalg.det), s2s.hessian(np.linalg.det)):
        assert f(a).dtype == f(np.eye(3, dtype=np.float32)).dtype == np.float32


def test_third_derivatives_need_an_inverse():
    third = s2s.jacfwd(s2s.hessian(np.linalg.det))
    a = np.array(MATRICES["regular"], float)
    step = np.zeros((3, 3))
    step[0, 1] = 1  # the determinant is linear in each element
    np.testing.assert_allclose(
        third(a)[..., 0, 1],
        second((a + step).astype(int).tolist()) - second(MATRICES["regular"]),
        atol=1e-13,
    )
    with pytest.raises(np.linalg.LinAlgError):
        third(np.array(MATRICES["equal rows"], float))  # eliminated without rounding


def test_the_logarithm_of_zero_has_no_slope():
    """As with np.log: the value is -inf, and what is computed beside it goes on."""
    def logarithm(a):
        return np.linalg.slogdet(a)[1]

    a = np.array(MATRICES["rank 1 of 2"], float)
    assert logarithm(a) == -np.inf
    assert np.isnan(s2s.grad(logarithm)(a)).all()
    found = s2s.vmap(s2s.grad(logarithm))(np.stack([a, 2 * np.eye(2)]))
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], np.eye(2) / 2)
