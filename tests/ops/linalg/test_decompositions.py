"""Factorisations of matrices and what is made of them: NumPy's bits, derivatives of every kind, and
how they read.
"""

import numpy as np
import pytest
from ops.arrays.test_sampled_functions import check, weighed

import s2s
from s2s.errors import S2SError

RNG = np.random.default_rng(3)
B = RNG.normal(size=(3, 3))
S = B @ B.T + np.diag([1.0, 2.0, 3.0])
TALL, WIDE, RIGHT = RNG.normal(size=(5, 3)), RNG.normal(size=(2, 4)), RNG.normal(size=(5, 2))


def low_rank(a, k):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return (u[:, :k] * s[:k]) @ vt[:k]


def spectral(a):
    w, v = np.linalg.eigh(a @ a.T + 0.1 * a @ a @ a.T @ a.T)
    return v * np.sqrt(w) @ v.T


def orthonormal_and_triangle(a):
    q, r = np.linalg.qr(a)
    return q @ (r * r)


PROGRAMS = {
    "eigenvalues": (lambda a: np.linalg.eigh(a @ a.T)[0], B),
    "eigenvectors": (lambda a: np.abs(np.linalg.eigh(a @ a.T)[1]), B),
    "square_root": (spectral, B),
    "eigvalsh": (lambda a: np.linalg.eigvalsh(a @ a.T), B),
    "singular_values": (lambda a: np.linalg.svd(a, compute_uv=False), TALL),
    "svd_tall": (lambda a: low_rank(a, 2), TALL),
    "svd_wide": (lambda a: low_rank(a, 1), WIDE),
    "left_vectors": (lambda a: np.linalg.svd(a, full_matrices=False)[0] ** 2, TALL),
    "right_vectors": (lambda a: np.linalg.svd(a, full_matrices=False)[2] ** 2, WIDE),
    "qr": (orthonormal_and_triangle, TALL),
    "r": (lambda a: np.linalg.qr(a)[1], B),
    "qr_wide": (orthonormal_and_triangle, WIDE),
    "r_wide": (lambda a: np.linalg.qr(a)[1] ** 2, WIDE),
    "r_of_a_row": (lambda a: np.linalg.qr(a[:1])[1], WIDE),
    "r_of_a_column": (lambda a: np.linalg.qr(a[:, :1])[1], WIDE),
    "pinv_tall": (lambda a: np.linalg.pinv(a), TALL),
    "pinv_wide": (lambda a: np.linalg.pinv(a), WIDE),
    "lstsq": (lambda a, b: np.linalg.lstsq(a, b)[0], TALL, RIGHT[:, 0]),
    "lstsq_of_columns": (lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], TALL, RIGHT),
    "lstsq_of_least_norm": (lambda a, b: np.linalg.lstsq(a, b)[0], WIDE, RIGHT[:2, 0]),
    "lstsq_squares": (lambda a, b: np.linalg.lstsq(a, b)[1], TALL, RIGHT),
    "lstsq_squares_of_a_vector": (
        lambda a, b: np.linalg.lstsq(a, b)[1] * np.linalg.lstsq(a, b)[0],
        TALL,
        RIGHT[:, 0],
    ),
    "lstsq_singular_values": (lambda a, b: np.linalg.lstsq(a, b)[3] * np.sum(b), TALL, RIGHT),
    "cube": (lambda a: np.linalg.matrix_power(a, 3), B),
    "sixth_power": (lambda a: 0.01 * np.linalg.matrix_power(a, 6), B),
    "inverse_square": (lambda a: 0.1 * np.linalg.matrix_power(a, -2), S),
    "zeroth_power": (lambda a: np.linalg.matrix_power(a, 0), B),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_derivatives(name):
    f, *args = PROGRAMS[name]
    check(f, args)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["square_root", "svd_tall", "qr", "lstsq"])
def test_compiled(name):
    f, *args = PROGRAMS[name]
    gradient = s2s.value_and_grad(weighed(f), argnums=tuple(range(len(args))))
    value, slopes = s2s.jit(gradient)(*args)
    wanted, plain = gradient(*args)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    for slope, other in zip(slopes, plain):
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-12)


@pytest.mark.lengthy
def test_no_squares_are_left_of_a_square_system():
    """NumPy has none where the equations hold."""
    for a, b in ((B, RIGHT[:3]), (WIDE, RIGHT[:2, 0])):
        f = lambda a, b: (  # noqa: E731
            np.sum(np.linalg.lstsq(a, b)[1]) + np.sum(np.linalg.lstsq(a, b)[3] ** 2)
        )
        s2s.check_grads(f, (a, b), order=1)
        np.testing.assert_allclose(s2s.grad(f)(a, b), 2 * a, rtol=1e-9)


def test_lanes():
    stack = np.stack([S, 2 * S, S @ S])
    slopes = s2s.vmap(s2s.grad(lambda a: np.log(np.linalg.eigh(a)[0][0])))(stack)
    for slope, a in zip(slopes, stack):
        w, v = np.linalg.eigh(a)
        whole = np.outer(v[:, 0], v[:, 0]) / w[0]
        # what NumPy reads
        np.testing.assert_allclose(slope, np.tril(whole) + np.tril(whole, -1), rtol=1e-10)


def test_equal_eigenvalues_leave_what_does_not_depend_on_the_vectors():
    slope = s2s.grad(lambda a: np.trace((lambda w, v: (v * w) @ v.T)(*np.linalg.eigh(a)) ** 2))(
        np.diag([2.0, 2.0, 5.0])
    )
    np.testing.assert_allclose(slope, np.diag([4.0, 4.0, 10.0]))


def test_a_matrix_is_taken_apart_once():
    gradient = s2s.value_and_grad(lambda a: (lambda w, v: np.sum(w**2 * v[0]))(*np.linalg.eigh(a)))
    gradient(S)
    assert gradient.source.count("np.linalg") == 1, gradient.source


@pytest.mark.parametrize(
    "f, message, remedy",
    [
        (
            lambda a: np.sum(np.linalg.qr(a, "complete")[0]),
            "np.linalg.qr with mode='complete'",
            "leave the mode out",
        ),
        (
            lambda a: np.sum(np.linalg.lstsq(a[None], a)[0]),
            "np.linalg.lstsq of something else than one matrix",
            "under s2s.vmap",
        ),
        (
            lambda a: np.sum(np.abs(np.linalg.pinv(a @ a.T + 1j))),
            "np.linalg.pinv of a complex matrix",
            "its real and imaginary parts",
        ),
    ],
)
def test_refused(f, message, remedy):
    with pytest.raises(S2SError, match="Instead: ") as caught:
        s2s.grad(f)(TALL)
    assert message in str(caught.value) and remedy in str(caught.value)


MEMBERS = {
    "eigh": lambda a: np.sum(np.linalg.eigh(a + a.T).eigenvalues ** 3),
    "eig": lambda a: np.sum(np.linalg.eig(a).eigenvalues ** 2).real,
    "svd": lambda a: np.linalg.svd(a).S[0] + np.linalg.svd(a, full_matrices=False).U[0, 0] ** 2,
    "Vh": lambda a: np.linalg.svd(a).Vh[1, 1] ** 2,
    "qr": lambda a: np.sum(np.linalg.qr(a).R) + np.sum(np.linalg.qr(a).Q ** 3),
    "slogdet": lambda a: np.linalg.slogdet(a).logabsdet * np.linalg.slogdet(a).sign,
    "stack": lambda a: np.sum(np.linalg.eigh(np.stack([a, 2 * a])).eigenvalues ** 3),
    "tuple": lambda a: sum(np.sum(x) for x in [*np.linalg.eigh(a)]) + len(np.linalg.eigh(a)),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_results_have_the_names_that_numpy_gives_them(name):
    f, a = MEMBERS[name], np.array([[3.0, 0.4, -0.5], [1.0, 2.0, 0.7], [0.2, -0.6, 1.0]])
    value, found = s2s.value_and_grad(f)(a)
    assert value == f(a)
    wanted, h = np.zeros((3, 3)), 1e-6
    for k in np.ndindex(3, 3):
        e = np.zeros((3, 3))
        e[k] = h
        wanted[k] = (f(a + e) - f(a - e)) / (2 * h)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    np.testing.assert_allclose(s2s.vmap(f)(np.stack([a, 2 * a])), [f(a), f(2 * a)])


def test_what_is_returned_of_named_members_is_a_tuple():
    found = s2s.jit(lambda a: np.linalg.eigh(a))(np.eye(2))
    assert type(found) is tuple and len(found) == 2
    with pytest.raises(s2s.UnsupportedError, match="the attribute U of a tuple"):
        s2s.grad(lambda a: np.linalg.eigh(a).U[0, 0])(np.eye(2))
