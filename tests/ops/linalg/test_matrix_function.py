"""Functions of a matrix by way of eigh and svd: exact where eigenvalues coincide, nearly coincide,
or do not.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import s2s

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
W = np.array([[0.5, -1.0, 2.0], [0.3, 0.7, -0.4], [1.5, 0.2, -0.6]])
E, D = (
    np.array([[1.0, 0.4, -0.3], [0.4, -0.5, 0.8], [-0.3, 0.8, 0.2]]),
    np.array([[0.2, -0.7, 0.5], [-0.7, 0.1, 0.9], [0.5, 0.9, -0.4]]),
)
TALL = np.linalg.qr(np.array([[1.0, 2.0], [0.3, -1.0], [2.0, 0.5], [-1.0, 1.0]]))[0]
C = np.linalg.qr(W)[0]
POINTS = {
    "all equal": 4 * np.eye(3),
    "two equal": np.diag([2.0, 2.0, 5.0]),
    "two nearly equal": np.diag([2.0, 2.0 + 1e-9, 5.0]),
    "all nearly equal": np.diag([2.0, 2.0 + 1e-5, 2.0 + 3e-4]),
    "apart": C @ np.diag([1.5, 2.0, 5.0]) @ C.T,
}


def helper(w, q):
    return (q * np.sqrt(w)) @ q.T


def root_in_a_helper(a):
    return helper(*np.linalg.eigh(a))


def values_and_vectors(a):
    w, q = np.linalg.eigh(a)
    return w, q


def composed(w, q):
    return q @ np.diag(w) @ q.T


def composed_of_rows(w, rows):
    return rows.T @ np.diag(w) @ rows


def root_in_two_helpers(a):
    w, q = values_and_vectors(a)
    return composed(np.sqrt(w), q)


def root_of_rows_in_two_helpers(a):
    w, q = values_and_vectors(a)
    return composed_of_rows(np.sqrt(w), q.T)


class Spectrum:
    def __init__(self, a):
        self.values, self.vectors = values_and_vectors(a)

    def apply(self, f):
        return composed(f(self.values), self.vectors)


def root_by_names(a):
    found = np.linalg.eigh(a)
    return (found.eigenvectors * np.sqrt(found.eigenvalues)) @ found.eigenvectors.T


def by_eigh(spelled):
    return lambda a: spelled(*np.linalg.eigh((a + a.T) / 2))


def by_svd(spelled):
    return lambda a: spelled(*np.linalg.svd(a, full_matrices=False))


def power(a, x):
    return mpmath.powm(a, x)


FUNCTIONS = {  # as it is spelled, and by mpmath
    "sqrt": (by_eigh(lambda w, q: (q * np.sqrt(w)) @ q.T), mpmath.sqrtm),
    "sqrt in a helper": (lambda a: root_in_a_helper((a + a.T) / 2), mpmath.sqrtm),
    "sqrt in two helpers": (lambda a: root_in_two_helpers((a + a.T) / 2), mpmath.sqrtm),
    "sqrt of rows": (lambda a: root_of_rows_in_two_helpers((a + a.T) / 2), mpmath.sqrtm),
    "sqrt in a method": (lambda a: Spectrum((a + a.T) / 2).apply(np.sqrt), mpmath.sqrtm),
    "sqrt by names": (lambda a: root_by_names((a + a.T) / 2), mpmath.sqrtm),
    "log, np.diag": (by_eigh(lambda w, q: q @ np.diag(np.log(w)) @ q.conj().T), mpmath.logm),
    "inverse root, rows": (
        by_eigh(lambda w, q: q @ (w[:, None] ** -0.5 * np.transpose(q))),
        lambda a: power(a, -0.5),
    ),
    "exp, None": (
        by_eigh(lambda w, q: (q * np.exp(-w)[None, :]) @ q.swapaxes(0, 1)),
        lambda a: mpmath.expm(-a),
    ),
    "power, einsum": (
        by_eigh(lambda w, q: np.einsum("ij,j,kj->ik", q, w**1.5, q)),
        lambda a: power(a, 1.5),
    ),
    "inverse, divided": (by_eigh(lambda w, q: np.dot(q / w, q.T)), lambda a: a**-1),
    "whitening": (
        by_eigh(lambda w, q: W @ (q / np.sqrt(w + 0.5)) @ q.T),
        lambda a: mpmath.matrix(W) * power(a + 0.5 * mpmath.eye(3), -0.5),
    ),
    "solve": (by_eigh(lambda w, q: q @ ((q.T @ W[0]) / w)), lambda a: a**-1 * mpmath.matrix(W[0])),
    "eye": (by_eigh(lambda w, q: q @ (np.eye(3) * np.sqrt(w)) @ q.T), mpmath.sqrtm),
    "where": (by_eigh(lambda w, q: (q * np.where(w > 1e-3, 1 / w, 0.0)) @ q.T), lambda a: a**-1),
    "multi_dot": (
        by_eigh(lambda w, q: np.linalg.multi_dot([q, np.diag(w**3), q.T])),
        lambda a: a**3,
    ),
    "twice": (
        by_eigh(lambda w, q: (q * w**2) @ q.T @ W @ (q / w) @ q.T),
        lambda a: a**2 * mpmath.matrix(W) * a**-1,
    ),
    "polar": (by_svd(lambda u, s, vt: u @ vt), lambda a: a * power(a.T * a, -0.5)),
    "threshold": (
        by_svd(lambda u, s, vt: u * np.maximum(s - 1, 0) @ vt),
        lambda a: a - a * power(a.T * a, -0.5),
    ),
    "inverse by svd": (by_svd(lambda u, s, vt: (vt.T / s) @ u.T), lambda a: a**-1),
    "of a.T @ a": (
        by_svd(lambda u, s, vt: (vt.T * np.log(s)) @ vt),
        lambda a: mpmath.logm(a.T * a) / 2,
    ),
    "of a @ a.T": (by_svd(lambda u, s, vt: u @ np.diag(s**3) @ u.T), lambda a: power(a * a.T, 1.5)),
}
# of matrices that are not symmetric, too
OF_ANY = ("polar", "threshold", "inverse by svd", "of a.T @ a", "of a @ a.T")


def loss(spelled):
    weights = W[0] if spelled(np.eye(3)).ndim == 1 else W
    return lambda a: np.sum(spelled(a) * weights)


def right(exact, a, *steps):
    """The derivative of the loss along `steps`, by differences with 50 digits."""
    with mpmath.workdps(50):
        h = mpmath.mpf(10) ** -10

        def at(*signs):
            moved = sum((s * h * mpmath.matrix(e) for s, e in zip(signs, steps)), mpmath.matrix(a))
            found = exact(moved)
            weights = mpmath.matrix(W[0]) if found.cols == 1 else mpmath.matrix(W)
            return sum(
                (
                    mpmath.re(found[i, k]) * weights[i, k]
                    for i in range(found.rows)
                    for k in range(found.cols)
                ),
                mpmath.mpf(0),
            )

        if len(steps) == 1:
            return float((at(1) - at(-1)) / (2 * h))
        return float((at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * h * h))


@pytest.mark.lengthy
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_first_and_second_order(name, point):
    spelled, exact = FUNCTIONS[name]
    a, f = POINTS[point], loss(FUNCTIONS[name][0])
    e, d = (E + W, D - W) if name in OF_ANY else (E, D)
    first, second = right(exact, a, e), right(exact, a, e, d)
    np.testing.assert_allclose(np.vdot(s2s.grad(f)(a), e), first, rtol=1e-9)
    np.testing.assert_allclose(s2s.jvp(f, (a,), (e,))[1], first, rtol=1e-9)
    np.testing.assert_allclose(np.vdot(s2s.hvp(f, (a,), (e,)), d), second, rtol=1e-6, atol=1e-7)
    if name in ("sqrt", "polar", "solve"):
        for twice in (
            s2s.grad(lambda a: np.vdot(s2s.grad(f)(a), e)),
            s2s.grad(lambda a: s2s.jvp(f, (a,), (e,))[1]),
        ):
            np.testing.assert_allclose(np.vdot(twice(a), d), second, rtol=1e-6, atol=1e-7)
        assert s2s.value_and_grad(f)(a)[0] == f(a)


@pytest.mark.lengthy
def test_third_derivatives_apart():
    f = loss(FUNCTIONS["sqrt"][0])
    a = POINTS["apart"]
    h = 1e-4
    along = lambda a: np.vdot(s2s.hvp(f, (a,), (E,)), D)  # noqa: E731
    np.testing.assert_allclose(
        s2s.jvp(along, (a,), (E,))[1], (along(a + h * E) - along(a - h * E)) / (2 * h), rtol=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
def test_rectangular_at_equal_singular_values(shape):
    a = 3 * TALL if shape == (4, 2) else 3 * TALL.T
    e, d = np.cos(np.arange(8.0)).reshape(shape), np.sin(np.arange(8.0) ** 2).reshape(shape)
    for spelled in (
        lambda u, s, vt: u @ vt,
        lambda u, s, vt: (u * np.maximum(s - 1, 0)) @ vt,
        lambda u, s, vt: (u * s**3) @ u.T,
        lambda u, s, vt: vt.T @ np.diag(np.tanh(s)) @ vt,
    ):
        product = by_svd(spelled)
        f = lambda a, g=product: np.sum(  # noqa: E731
            g(a) * np.cos(np.arange(g(a).size)).reshape(g(a).shape)
        )
        h = 1e-4
        np.testing.assert_allclose(
            np.vdot(s2s.grad(f)(a), e), (f(a + h * e) - f(a - h * e)) / (2 * h), rtol=1e-6
        )
        np.testing.assert_allclose(
            s2s.jvp(f, (a,), (e,))[1], (f(a + h * e) - f(a - h * e)) / (2 * h), rtol=1e-6
        )
        slope = lambda a, f=f: np.vdot(s2s.grad(f)(a), e)  # noqa: E731
        second = (slope(a + h * d) - slope(a - h * d)) / (2 * h)
        np.testing.assert_allclose(np.vdot(s2s.hvp(f, (a,), (d,)), e), second, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(np.vdot(s2s.grad(slope)(a), d), second, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_functions_of_values_alone():
    cases = {
        "sum of cubes": (
            lambda a: np.sum(np.linalg.eigvalsh(a) ** 3),
            lambda a: mpmath.matrix([sum((a**3)[k, k] for k in range(3))]),
        ),
        "log det": (
            lambda a: np.sum(np.log(np.linalg.eigh(a)[0])),
            lambda a: mpmath.matrix([mpmath.log(mpmath.det(a))]),
        ),
        "of singular values": (
            lambda a: np.sum(np.linalg.svd(a, compute_uv=False) ** 4),
            lambda a: mpmath.matrix([sum(((a.T * a) ** 2)[k, k] for k in range(3))]),
        ),
    }
    for spelled, exact in cases.values():
        f = lambda a, g=spelled: g((a + a.T) / 2) * W[0, 0]  # noqa: E731
        for a in POINTS.values():
            np.testing.assert_allclose(
                np.vdot(s2s.hvp(f, (a,), (E,)), D), right(exact, a, E, D), rtol=1e-7
            )


@pytest.mark.slow
def test_parameters_of_the_function():
    f = lambda a, x: np.sum(
        (lambda w, q: (q * np.maximum(w, x) ** x) @ q.T)(*np.linalg.eigh((a + a.T) / 2)) * W
    )  # noqa: E731
    a, x, h = POINTS["two equal"], 0.7, 1e-5
    for point in POINTS.values():
        by_a, by_x = s2s.grad(f, argnums=(0, 1))(point, x)
        np.testing.assert_allclose(by_a, s2s.grad(f)(point, x), rtol=1e-9)
        np.testing.assert_allclose(by_x, (f(point, x + h) - f(point, x - h)) / (2 * h), rtol=1e-7)
    # the first derivative by a, then by x
    mixed = s2s.jacfwd(lambda a, x: np.vdot(s2s.grad(f)(a, x), E), argnums=1)
    slope = lambda x, a=a: np.vdot(s2s.grad(f)(a, x), E)  # noqa: E731
    np.testing.assert_allclose(mixed(a, x), (slope(x + h) - slope(x - h)) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(
        s2s.grad(slope)(x), (slope(x + h) - slope(x - h)) / (2 * h), rtol=1e-7
    )
    a = POINTS["apart"]
    hess = s2s.hessian(f, argnums=(0, 1))(a, x)
    slope = lambda x: s2s.grad(f)(a, x)  # noqa: E731
    np.testing.assert_allclose(
        hess[0][1], (slope(x + h) - slope(x - h)) / (2 * h), rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(hess[1][0], hess[0][1], rtol=1e-7, atol=1e-10)
    both = s2s.jvp(lambda a, x: np.vdot(s2s.grad(f)(a, x), E), (a, x), (D, 1.0))[1]
    slope = lambda t: np.vdot(s2s.grad(f)(a + t * D, x + t), E)  # noqa: E731
    np.testing.assert_allclose(both, (slope(h) - slope(-h)) / (2 * h), rtol=1e-6)


@pytest.mark.slow
def test_some_of_the_vectors():
    cases = {
        "projector": by_eigh(lambda w, q: q[:, 1:] @ q[:, 1:].T),
        "last two": by_eigh(lambda w, q: W @ q[:, -2:] @ q[:, -2:].T),
        "mask": by_eigh(lambda w, q: (q[:, w > 3] / w[w > 3]) @ q[:, w > 3].T),
        "low rank": by_svd(lambda u, s, vt: (u[:, :2] * s[:2]) @ vt[:2]),
        "low rank, np.diag": by_svd(
            lambda u, s, vt: u[:, :2] @ np.diag(np.sqrt(s[:2])) @ vt[:2, :]
        ),
    }
    h = 1e-4
    for spelled in cases.values():
        f = loss(spelled)
        for a in (
            np.diag([1.0, 4.0, 4.0]),
            C @ np.diag([1.0, 4.0, 4.0 + 1e-9]) @ C.T,
            C @ np.diag([1.0, 4.0, 6.0]) @ C.T,
        ):
            slope = lambda a, f=f: np.vdot(s2s.grad(f)(a), W)  # noqa: E731
            np.testing.assert_allclose(slope(a), (f(a + h * W) - f(a - h * W)) / (2 * h), rtol=1e-5)
            np.testing.assert_allclose(s2s.jvp(f, (a,), (W,))[1], slope(a), rtol=1e-9)
            np.testing.assert_allclose(
                np.vdot(s2s.hvp(f, (a,), (D + W,)), W),
                (slope(a + h * (D + W)) - slope(a - h * (D + W))) / (2 * h),
                rtol=1e-5,
            )
        if spelled is not cases["mask"]:
            assert np.isnan(s2s.grad(f)(4 * np.eye(3))).any()  # which two of three?


@pytest.mark.lengthy
def test_quadratic_forms():
    b, c = W[0], W[1]
    cases = (
        lambda w, q: (b @ q) @ ((q.T @ c) * np.sqrt(w)),
        lambda w, q: np.sum((q.T @ b) * np.sqrt(w) * (q.T @ c)),
        lambda w, q: b @ (q * np.sqrt(w)) @ q.T @ c,
    )
    for spelled in cases:
        f = by_eigh(spelled)
        for a in POINTS.values():
            exact = lambda a: mpmath.matrix(
                [(mpmath.matrix(b).T * mpmath.sqrtm(a) * mpmath.matrix(c))[0]]
            )  # noqa: E731
            with mpmath.workdps(50):
                h = mpmath.mpf(10) ** -10
                at = lambda s, r: exact(
                    mpmath.matrix(a) + s * h * mpmath.matrix(E) + r * h * mpmath.matrix(D)
                )[0]  # noqa: E731, B023
                first, second = (
                    float((at(1, 0) - at(-1, 0)) / (2 * h)),
                    float((at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * h * h)),
                )
            np.testing.assert_allclose(np.vdot(s2s.grad(f)(a), E), first, rtol=1e-9)
            np.testing.assert_allclose(np.vdot(s2s.hvp(f, (a,), (E,)), D), second, rtol=1e-6)


@pytest.mark.slow
def test_hermitian_and_one_triangle():
    z = np.array([[2.0, 0.3 + 0.1j, 0.2j], [0.3 - 0.1j, 3.0, 0.5], [-0.2j, 0.5, 1.0]])
    weights = W + 1j * W.T
    f = lambda x: np.sum(
        np.real(
            (lambda w, q: (q * np.sqrt(w)) @ q.conj().T)(*np.linalg.eigh(4 * np.eye(3) + x * z))
            * weights
        )
    )  # noqa: E731
    for x in (0.0, 0.3):
        h = 1e-4
        np.testing.assert_allclose(s2s.grad(f)(x), (f(x + h) - f(x - h)) / (2 * h), rtol=1e-6)
        np.testing.assert_allclose(
            s2s.jvp(s2s.grad(f), (x,), (1.0,))[1],
            (f(x + h) - 2 * f(x) + f(x - h)) / h**2,
            rtol=1e-5,
        )
        np.testing.assert_allclose(
            s2s.grad(s2s.grad(f))(x), (f(x + h) - 2 * f(x) + f(x - h)) / h**2, rtol=1e-5
        )
    p = lambda x: np.sum(
        np.real((lambda u, s, vh: u @ vh)(*np.linalg.svd(np.eye(3) + x * (z + 1j * W))) * weights)
    )  # noqa: E731
    for x in (0.0, 0.3):
        np.testing.assert_allclose(s2s.grad(p)(x), (p(x + h) - p(x - h)) / (2 * h), rtol=1e-6)
        np.testing.assert_allclose(
            s2s.jvp(s2s.grad(p), (x,), (1.0,))[1],
            (p(x + h) - 2 * p(x) + p(x - h)) / h**2,
            rtol=1e-5,
            atol=1e-6,
        )
    for half in ("L", "U"):
        g = s2s.grad(
            lambda a, half=half: np.sum(
                (lambda w, q: (q * np.sqrt(w)) @ q.T)(*np.linalg.eigh(a, half)) * W
            )
        )(4 * np.eye(3))
        whole = (W + W.T) / 4 - np.diag(np.diag(W)) / 4
        np.testing.assert_allclose(g, np.tril(whole) if half == "L" else np.triu(whole), rtol=1e-12)


@pytest.mark.slow
def test_what_needs_the_vectors_themselves_is_nan():
    for f in (
        lambda a: np.linalg.eigh(a)[1][0, 1],
        lambda a: np.sum((lambda w, q: q * np.sqrt(w))(*np.linalg.eigh(a)) * W),
        lambda a: np.linalg.svd(a)[0][0, 1],
        lambda a: np.sum((lambda w, q: (q * (w * np.arange(3.0))) @ q.T)(*np.linalg.eigh(a)) * W),
        lambda a: np.real(np.linalg.eig(a)[1][0, 1]),
    ):
        assert np.isnan(s2s.grad(f)(4 * np.eye(3))).any()
        assert np.isnan(s2s.jvp(f, (4 * np.eye(3),), (E,))[1])
    # of the one that stands apart
    f = lambda a: (np.linalg.eigh(a)[1][:, 2] @ W[0]) ** 2  # noqa: E731
    a, h = C @ np.diag([2.0, 2.0, 5.0]) @ C.T, 1e-6
    assert np.isfinite(s2s.grad(f)(np.diag([2.0, 2.0, 5.0]))).all()
    np.testing.assert_allclose(
        np.vdot(s2s.grad(f)(a), np.tril(E)), (f(a + h * E) - f(a - h * E)) / (2 * h), rtol=1e-6
    )
    assert np.isnan(s2s.hessian(lambda a: np.linalg.eigvalsh(a)[0])(np.eye(3))).any()
    # no polar factor of a singular matrix
    p = lambda a: (lambda u, s, vt: u @ vt)(*np.linalg.svd(a))[0, 1]  # noqa: E731
    assert not np.isfinite(s2s.grad(p)(np.diag([1.0, 0.0, 0.0]))).all()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-158, 1e155, 1e-300, 1e300])
def test_second_derivatives_of_singular_values_at_any_scale(scale):
    a = np.array([[0.3, 1.2, -0.4], [2.0, -0.7, 0.1], [0.5, 0.9, 1.1], [-1.3, 0.2, 0.8]])
    for f in (
        lambda a: np.linalg.svd(a, compute_uv=False)[0],
        lambda a: np.sum(np.linalg.svd(a, compute_uv=False) * np.array([1.0, 2.0, -3.0])),
        lambda a: np.linalg.svd(a, full_matrices=False)[1] @ np.arange(3.0),
        lambda a: np.linalg.norm(a, 2),
        lambda a: np.linalg.norm(a, "nuc"),
    ):
        for second in (s2s.hessian(f), s2s.jacrev(s2s.grad(f))):
            np.testing.assert_allclose(
                second(scale * a) * scale, s2s.hessian(f)(a), rtol=1e-11, atol=1e-12
            )


@pytest.mark.slow
def test_single_precision_and_lanes():
    f = lambda a: np.sum(
        (lambda w, q: (q * np.sqrt(w)) @ q.T)(*np.linalg.eigh(a)) * W.astype(a.dtype)
    )  # noqa: E731
    s = lambda a: np.linalg.svd(a, compute_uv=False)[0]  # noqa: E731
    for a in (4 * np.eye(3), POINTS["apart"]):
        found, second = s2s.grad(f)(a.astype(np.float32)), s2s.hessian(f)(a.astype(np.float32))
        assert found.dtype == second.dtype == np.float32
        np.testing.assert_allclose(found, s2s.grad(f)(a), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(second, s2s.hessian(f)(a), rtol=1e-3, atol=1e-4)
    small = W.astype(np.float32) * np.float32(1e-20)
    assert s2s.hessian(s)(small).dtype == np.float32
    np.testing.assert_allclose(
        s2s.hessian(s)(small) * 1e-20, s2s.hessian(s)(W), rtol=1e-4, atol=1e-5
    )
    stack = np.stack(list(POINTS.values()))
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(f))(stack), [s2s.grad(f)(a) for a in stack], rtol=1e-12
    )
    p = lambda a: np.sum((lambda u, s, vt: u @ vt)(*np.linalg.svd(a)) * W)  # noqa: E731
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(p))(stack), [s2s.grad(p)(a) for a in stack], rtol=1e-10, atol=1e-12
    )
    along = lambda a: s2s.hvp(f, (a,), (E,))  # noqa: E731
    np.testing.assert_allclose(s2s.vmap(along)(stack), [along(a) for a in stack], rtol=1e-12)


@pytest.mark.compile
@pytest.mark.slow
def test_compiled():
    for name in ("sqrt", "polar"):
        f = loss(FUNCTIONS[name][0])
        for a in (POINTS["two equal"], POINTS["apart"]):
            np.testing.assert_allclose(
                s2s.jit(s2s.grad(f))(a), s2s.grad(f)(a), rtol=1e-10, atol=1e-12
            )
            along = lambda a, f=f: s2s.hvp(f, (a,), (E,))  # noqa: E731
            np.testing.assert_allclose(s2s.jit(along)(a), along(a), rtol=1e-9, atol=1e-11)
