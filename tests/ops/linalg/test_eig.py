"""np.linalg.eig and eigvals of any matrix: complex, differentiated as LAPACK scales
eigenvectors.
"""

from __future__ import annotations

import numpy as np
import pytest
from differences import check, check_compiled

import s2s
from s2s.errors import S2SError

A = np.array([[2.0, 0.3, -0.4], [0.5, 1.5, 0.2], [-0.1, 0.7, 3.0]])  # of real eigenvalues
R = np.array([[0.3, -2.0, 0.5], [1.5, 0.4, -0.3], [0.2, 0.1, 2.5]])  # and of complex ones
N = np.array([[0.2, 1.1, 0.4], [-0.3, 0.5, 0.9], [0.8, -0.6, 0.1]])
C = R + 1j * N


def of_values(m):
    return lambda x: (
        np.sum(np.abs(np.linalg.eigvals(m + x * N)) ** 3)
        + np.sum(np.linalg.eig(m * x)[0].real ** 2)
    )


def of_vectors(m, weights):
    """Of more than what is the same however eigenvectors are scaled."""
    def f(x):
        w, v = np.linalg.eig(m + x * N)
        return np.sum((v * weights).real) + np.sum((v * v * w).imag * N) + np.sum(np.abs(v) ** 4)

    return f


FUNCTIONS = {
    "values": of_values(A),
    "values that are complex": of_values(R),
    "values of a complex matrix": of_values(C),
    "vectors": of_vectors(A, N),
    "vectors that are complex": of_vectors(R, N),
    "vectors of a complex matrix": of_vectors(C, N),
    "a function of a matrix": lambda x: np.sum(
        (lambda w, v: np.real(v @ np.diag(np.exp(w)) @ np.linalg.inv(v)) * N)(*np.linalg.eig(R * x))
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    check(FUNCTIONS[name], x=0.2, exactly=1e-12, rtol=1e-6, atol=1e-7)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["values that are complex", "vectors that are complex"])
def test_compiled(name):
    check_compiled(FUNCTIONS[name], x=0.2, rtol=1e-9)


@pytest.mark.parametrize("name", ["values", "vectors that are complex"])
def test_batched(name):
    xs = np.array([0.1, 0.2])
    slope = s2s.grad(FUNCTIONS[name])
    np.testing.assert_allclose(s2s.vmap(slope)(xs), [slope(x) for x in xs], rtol=1e-9)


@pytest.mark.lengthy
@pytest.mark.parametrize("m", [A, R, C])
def test_values_and_vectors_are_numpys_and_complex(m):
    (w, v), _ = s2s.jvp(lambda m: np.linalg.eig(m), (m,), (m,))
    np.testing.assert_array_equal(w, np.linalg.eig(m)[0])
    np.testing.assert_array_equal(v, np.linalg.eig(m)[1])
    assert w.dtype == v.dtype == np.complex128
    source = s2s.grad(of_values(A))
    assert source(0.2) == pytest.approx(s2s.jvp(of_values(A), (0.2,), (1.0,))[1])


def test_gradients_of_symmetric_matrices_are_those_of_eigh():
    S = A + A.T  # noqa: N806
    found = s2s.grad(lambda m: np.sum(np.linalg.eigvals(m).real ** 3))(S)
    of_triangle = s2s.grad(lambda m: np.sum(np.linalg.eigh(m)[0] ** 3))(S)
    np.testing.assert_allclose(
        np.tril(found) + np.triu(found, 1).T, of_triangle, rtol=1e-9, atol=1e-12
    )


def test_a_stack_is_refused():
    with pytest.raises(S2SError, match="np.linalg.eigvals of something else than one matrix"):
        s2s.grad(lambda x: np.sum(np.abs(np.linalg.eigvals(x * A[None]))))(0.3)


@pytest.mark.parametrize(
    "of", ["eigvalsh(x)", "eigh(x)[0]", "svd(x, compute_uv=False)", "qr(x)[1]", "pinv(x)"]
)
def test_stacks_of_no_matrices_and_of_no_squares(of):
    """The elements of (2, 8, 4) are those of four squares, which they are not."""
    text = f"def f(x):\n    return np.sum(np.linalg.{of})\n"
    scope = {"np": np}
    exec(text, scope)
    f, found = scope["f"], s2s.value_and_grad(s2s.from_source(text, {"np": np}))
    for shape in (
        (2, 8, 4),
        (0, 2, 3),
        (2, 0, 0),
        (2, 2, 3),
        (0, 0, 2),
        (0, 2, 2),
        (2, 2, 2, 3, 3),
        (3, 1, 2, 2),
    ):
        x = np.random.default_rng(0).normal(size=shape) + 1
        try:
            wanted = f(x)
        except np.linalg.LinAlgError:
            with pytest.raises(np.linalg.LinAlgError, match="must be square"):
                found(x)
        else:
            np.testing.assert_allclose(found(x)[0], wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.compile
@pytest.mark.parametrize("function", [np.linalg.inv, np.linalg.cholesky], ids=lambda f: f.__name__)
def test_compiled_stacks_of_no_matrices(function):
    fast = s2s.jit(lambda x, k, m: function(x[:k, :, :m]))
    for k, m in ((0, 1), (0, 3), (2, 1)):
        with pytest.raises(np.linalg.LinAlgError, match="must be square"):
            fast(np.ones((2, 2, 3)), k, m)
    assert fast(np.ones((2, 2, 3)), 0, 2).shape == (0, 2, 2)
