"""Eigenvalues and singular values that are equal but for rounding: what needs their vectors is NaN
in every mode, all else is exact.  The oracles are differences and mpmath.
"""

import mpmath
import numpy as np
import pytest
import scipy.linalg

import s2s
from s2s.ops.linalg.coinciding_values import coincide, rounding_error

RNG = np.random.default_rng(7)
W, E = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))


def turned(values, shape=(3, 3), rng=None, dtype=float):
    """A matrix with these singular values in a random basis, symmetric if it is square."""
    (m, n), rng = shape, rng or np.random.default_rng(5)
    q = np.linalg.qr(rng.normal(size=(m, m)))[0][:, : len(values)]
    p = q if m == n else np.linalg.qr(rng.normal(size=(n, n)))[0][:, : len(values)]
    return ((q * values) @ p.T).astype(dtype)


def parted(values, shape=(3, 3)):
    """The same, where rounding has parted values that are equal, and made others of zeros."""
    while True:
        a = turned(values, shape, RNG)
        found = np.linalg.svd(a, compute_uv=False)
        apart = np.diff(np.linalg.eigvalsh(a)) if shape[0] == shape[1] else np.diff(found)
        if np.all(apart != 0) and found[-1] != 0:
            return a


def eigh(f):
    return lambda a: f(*np.linalg.eigh((a + a.T) / 2))


def svd(f):
    return lambda a: f(*np.linalg.svd(a, full_matrices=False))


def at_loop(u, s, vt):
    total = 0.0
    for k in range(len(s)):
        total = total + np.sum(np.outer(u[:, k] * s[k], vt[k]) * W[: len(u), : vt.shape[1]])
    return total


TWO, TALL = parted([2.0, 2.0, 3.0]), (4, 3)
# none of them has a derivative there
WITHOUT = {
    "vectors": (eigh(lambda w, q: np.sum(q**3 * W[:3, :3])), TWO),
    "scaled vectors": (eigh(lambda w, q: np.sum(q * np.sqrt(w) * W[:3, :3]) ** 2), TWO),
    "one of two": (eigh(lambda w, q: np.sum((q[:, :1] @ q[:, :1].T) * W[:3, :3])), TWO),
    "scipy": (lambda a: np.sum(scipy.linalg.eigh((a + a.T) / 2)[1] ** 3 * W[:3, :3]), TWO),
    "left vector": (svd(lambda u, s, vt: u[0, 1] ** 2), parted([3.0, 2.0, 2.0], TALL)),
    "right vector": (svd(lambda u, s, vt: vt[2, 1] ** 2), parted([3.0, 2.0, 2.0], TALL)),
    "square": (svd(lambda u, s, vt: u[0, 2] ** 2), parted([3.0, 2.0, 2.0])),
    "of zero": (svd(lambda u, s, vt: u[0, 2] ** 2), parted([3.0, 2.0, 0.0], TALL)),
    "of zeros": (svd(lambda u, s, vt: vt[2, 1] ** 2), parted([3.0, 0.0, 0.0], TALL)),
    "polar": (svd(lambda u, s, vt: np.sum((u @ vt) * W[:, :3])), parted([3.0, 2.0, 0.0], TALL)),
    "in a loop": (svd(at_loop), parted([3.0, 2.0, 2.0], TALL)),
}
# of the others, the first derivative
WITH_FIRST = {
    "vector apart": (eigh(lambda w, q: (q[:, 2] @ W[0, :3]) ** 2), TWO),
    "left vector apart": (svd(lambda u, s, vt: u[0, 0] ** 2), parted([3.0, 2.0, 2.0], TALL)),
    "range": (svd(lambda u, s, vt: u[0, 0] ** 2), parted([3.0, 2.0, 0.0], TALL)),
    "kernel": (svd(lambda u, s, vt: vt[2, 0] ** 2), parted([3.0, 2.0, 0.0], TALL)),
    "one value of three": (svd(lambda u, s, vt: u[0, 0] ** 2), parted([3.0, 0.0, 0.0], TALL)),
}
# and the second
WITH = {
    "both of two": (eigh(lambda w, q: np.sum((q[:, :2] @ q[:, :2].T) * W[:3, :3])), TWO),
    "value apart": (lambda a: np.linalg.eigvalsh((a + a.T) / 2)[2] ** 2, TWO),
    "weighted values": (
        lambda a: np.linalg.eigvalsh((a + a.T) / 2) @ np.array([0.0, 0.0, 2.0]),
        TWO,
    ),
    "all values": (lambda a: np.sum(np.linalg.eigvalsh((a + a.T) / 2) ** 3), TWO),
    "largest": (lambda a: np.linalg.norm(a, 2) ** 2, parted([3.0, 0.0, 0.0], TALL)),
    "largest of two": (
        lambda a: np.linalg.svd(a, compute_uv=False)[0],
        parted([3.0, 2.0, 2.0], TALL),
    ),
    "left kernel of a square": (lambda a: np.linalg.svd(a)[0][0, 2] ** 2, parted([3.0, 2.0, 0.0])),
    "the same, in general": (svd(lambda u, s, vt: u[0, 2] ** 2), parted([3.0, 2.0, 0.0])),
    "right kernel of a square": (svd(lambda u, s, vt: vt[2, 0] ** 2), parted([3.0, 2.0, 0.0])),
    "matrix": (svd(lambda u, s, vt: np.sum(((u * s) @ vt) ** 3)), parted([3.0, 2.0, 0.0], TALL)),
    "low rank": (
        svd(lambda u, s, vt: np.sum(((u[:, :2] * s[:2]) @ vt[:2]) * W[:, :3])),
        parted([3.0, 2.0, 0.0], TALL),
    ),
}
CASES = {**WITHOUT, **WITH_FIRST, **WITH}


def along(f, a):
    """The derivative of f along E, in every mode."""
    e = E[: len(a), : a.shape[1]]
    return {
        "reverse": lambda: np.vdot(s2s.grad(f)(a), e),
        "forward": lambda: s2s.jvp(f, (a,), (e,))[1],
        "batched": lambda: np.vdot(s2s.vmap(s2s.grad(f))(np.stack([np.eye(*a.shape), a]))[1], e),
        "batched, forward": lambda: np.vdot(s2s.jacfwd(f)(a), e),
    }


def twice(f, a):
    """The second derivative of f along E, in every mode."""
    e = E[: len(a), : a.shape[1]]
    return {
        "forward over reverse": lambda: np.vdot(s2s.hvp(f, (a,), (e,)), e),
        "reverse over reverse": lambda: np.vdot(
            s2s.grad(lambda a: np.vdot(s2s.grad(f)(a), e))(a), e
        ),
        "reverse over forward": lambda: np.vdot(
            s2s.grad(lambda a: s2s.jvp(f, (a,), (e,))[1])(a), e
        ),
    }


def differences(f, a):
    """The first two derivatives along E."""
    e, h, r = E[: len(a), : a.shape[1]], 1e-5, 1e-4
    return ((f(a + h * e) - f(a - h * e)) / (2 * h),
            (f(a + r * e) - 2 * f(a) + f(a - r * e)) / r**2)


@pytest.mark.lengthy
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_what_needs_vectors_is_nan_and_all_else_exact(name):
    f, a = CASES[name]
    first, second = differences(f, a)
    for mode, found in along(f, a).items():
        if name in WITHOUT:
            assert np.isnan(found()), mode
        else:
            np.testing.assert_allclose(found(), first, rtol=1e-6, err_msg=mode)
    for mode, found in twice(f, a).items():
        if name == "all values" and mode == "reverse over forward":
            continue  # it sees but the changes of the values, and not of which function
        if name in WITH:
            np.testing.assert_allclose(found(), second, rtol=1e-5, atol=1e-5, err_msg=mode)
        else:
            assert np.isnan(found()), mode


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["vectors", "of zero", "vector apart", "kernel", "value apart"])
def test_compiled(name):
    f, a = CASES[name]
    plain = s2s.value_and_grad(f)(a)
    for found, wanted in zip(s2s.jit(s2s.value_and_grad(f))(a), plain, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    stack = np.stack([a, a + E[: len(a), : a.shape[1]]])
    for found, wanted in zip(s2s.jit(s2s.vmap(s2s.grad(f)))(stack), stack, strict=True):
        np.testing.assert_allclose(found, s2s.grad(f)(wanted), rtol=1e-9, atol=1e-12)


SAID = {
    "vectors": "eigenvalues coincide, so that",
    "scaled vectors": "eigenvalues coincide, so that",
    "scipy": "eigenvalues coincide, so that",
    "left vector": "singular values coincide, so that",
    "right vector": "singular values coincide, so that",
    "square": "singular values coincide, so that",
    "of zeros": "singular values coincide, so that",
    "in a loop": "singular values coincide, so that",
    "of zero": "a singular value of 0 of a matrix that is not square",
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SAID)
def test_conventions_name_the_line(name):
    f, a = CASES[name]
    said = s2s.conventions(s2s.grad(f), a)
    assert any(SAID[name] in each.what for each in said)
    apart = a + np.diag(np.arange(1.0, 5.0))[: len(a), : a.shape[1]]
    assert not [each for each in s2s.conventions(s2s.grad(f), apart) if "value" in each.what]


@pytest.mark.parametrize("gap", [1e-12, 1e-10, 1e-8, 1e-5])
def test_small_gaps_that_are_no_rounding_errors(gap):
    """The derivative is large, and as exact as the vectors are."""
    a = turned(np.array([2.0, 2.0 + gap, 4.0]))
    a, e = (a + a.T) / 2, E[:3, :3] + E[:3, :3].T
    with mpmath.workdps(60):
        exact, step = mpmath.matrix(a), mpmath.matrix(e) * gap / 10**12
        ends = [mpmath.eigsy(exact + sign * step)[1][1, 0] ** 2 for sign in (1, -1)]
        wanted = float((ends[0] - ends[1]) / 2 / gap * 10**12)
    f = eigh(lambda w, q: q[1, 0] ** 2)
    exactness = 40 * np.finfo(float).eps / gap
    assert abs(wanted) > 0.01 / gap
    np.testing.assert_allclose(np.vdot(s2s.grad(f)(a), e), wanted, rtol=exactness)
    np.testing.assert_allclose(s2s.jvp(f, (a,), (e,))[1], wanted, rtol=exactness)
    assert s2s.conventions(s2s.grad(f), a) == []


M = RNG.normal(size=(3, 3))
WEIGHTED = {
    "symmetric": (
        lambda a, c: eigh(lambda w, q: np.sum((q * c) @ q.T * W[:3, :3]))(a),
        M,
    ),
    "of all values": (
        lambda a, c: eigh(lambda w, q: np.sum((q * (M @ w * c)) @ q.T * W[:3, :3]))(a),
        M,
    ),
    "singular vectors": (
        lambda a, c: svd(lambda u, s, vt: np.sum((u * c) @ vt * W[:, :3]))(a),
        RNG.normal(size=TALL),
    ),
    "some of them": (
        lambda a, c: svd(lambda u, s, vt: np.sum((u[:, :2] * c[:2]) @ vt[:2] * W[:, :3]))(a),
        RNG.normal(size=TALL),
    ),
    "of a vector": (
        lambda a, c: eigh(lambda w, q: W[0, :3] @ (q @ (c * (q.T @ W[1, :3]))))(a),
        M,
    ),
    "Hermitian": (
        lambda a, c: (
            lambda w, q: np.sum(np.abs((q * c) @ q.conj().T * W[:3, :3]) ** 2)
        )(*np.linalg.eigh(a + a.T + 1j * (a - a.T))),
        M,
    ),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_vectors_change_from_zero(name):
    """Vectors with weights of 0 are left out, but not the derivatives by the weights."""
    f, a = WEIGHTED[name]
    c, d, e, h = np.array([0.0, 1.3, 0.0]), W[0, :3], E[: len(a), : a.shape[1]], 1e-4
    first = (f(a + h / 9 * e, c + h / 9 * d) - f(a - h / 9 * e, c - h / 9 * d)) / (h / 9 * 2)
    second = (f(a + h * e, c + h * d) - 2 * f(a, c) + f(a - h * e, c - h * d)) / h**2
    by_both = s2s.grad(f, argnums=(0, 1))

    def backwards(a, c):
        a_bar, c_bar = by_both(a, c)
        return np.vdot(a_bar, e) + c_bar @ d

    def forwards(a, c):
        return s2s.jvp(f, (a, c), (e, d))[1]

    np.testing.assert_allclose(backwards(a, c), first, rtol=1e-6)
    np.testing.assert_allclose(forwards(a, c), first, rtol=1e-6)
    np.testing.assert_allclose(s2s.jvp(backwards, (a, c), (e, d))[1], second, rtol=1e-4)
    for g in (backwards, forwards):
        a_bar, c_bar = s2s.grad(g, argnums=(0, 1))(a, c)
        np.testing.assert_allclose(np.vdot(a_bar, e) + c_bar @ d, second, rtol=1e-4)
    stacks = np.stack([e, a]), np.stack([d, c])
    for found, wanted in zip(s2s.vmap(by_both)(*stacks), by_both(a, c), strict=True):
        np.testing.assert_allclose(found[1], wanted, rtol=1e-9)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["of all values", "singular vectors"])
def test_weights_compiled(name):
    f, a = WEIGHTED[name]
    c, by_both = np.array([0.0, 1.3, 0.0]), s2s.grad(f, argnums=(0, 1))
    for found, wanted in zip(s2s.jit(by_both)(a, c), by_both(a, c), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    twice = lambda a, c: s2s.jvp(s2s.grad(f), (a, c), (a[::-1], c + 1))[1]  # noqa: E731
    np.testing.assert_allclose(s2s.jit(twice)(a, c), twice(a, c), rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 3, 6, 10, 40, 150])
def test_equal_values_are_found_equal_and_random_ones_are_not(n, dtype):
    rng = np.random.default_rng(n)
    for _ in range(max(2, 300 // n**2)):
        for values in (
            np.where(np.arange(n) < 2, 2.0, 3.0 + np.arange(n) / n),
            np.where(np.arange(n) < max(n // 2, 2), 2.0, 3.0),
            np.where(np.arange(n) < max(n - 1, 2), 1e-3, 3.0),
        ):
            equal = int(np.sum(values == values.min()))
            w = np.linalg.eigvalsh(turned(values, (n, n), rng, dtype))
            assert coincide(w)[: equal - 1].all() and w.dtype == dtype
            assert w[equal - 1] - w[0] <= rounding_error(w)
        noise = rng.normal(size=(n, n)).astype(dtype)
        assert not coincide(np.linalg.eigvalsh(noise + noise.T)).any()
        thin = rng.normal(size=(n, 1 + n // 3)).astype(dtype)
        s = np.linalg.svd(thin @ thin.T, compute_uv=False)
        assert (s[1 + n // 3 :] <= rounding_error(s)).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_single_precision_has_its_own_rounding_errors():
    a = TWO.astype(np.float32)
    for name in ("vectors", "vector apart"):
        f = CASES[name][0]
        found = s2s.grad(f)(a)
        assert found.dtype == np.float32 and np.isnan(found).any() == (name in WITHOUT)
    f = eigh(lambda w, q: np.sum(q[0] ** 2 * w))
    close = turned([2.0, 2.0 + 1e-6, 3.0])
    assert np.isnan(s2s.grad(eigh(lambda w, q: q[0, 0] ** 2))(close.astype(np.float32))).any()
    assert np.isfinite(s2s.grad(f)(turned([2.0, 2.0005, 3.0], dtype=np.float32))).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_vectors_of_eig():
    f = lambda a: np.sum(np.abs(np.linalg.eig(a)[1][0]) ** 3)  # noqa: E731
    assert np.isnan(s2s.grad(f)(TWO)).any()
    said = [str(each) for each in s2s.conventions(s2s.grad(f), TWO)]
    assert any("eigenvalues coincide" in each for each in said)
    assert np.isfinite(s2s.grad(f)(turned([2.0, 2.5, 3.0]))).all()


def test_matrices_of_nothing():
    f = eigh(lambda w, q: np.sum(np.sin(q)))
    assert s2s.grad(f)(np.zeros((0, 0))).shape == (0, 0)
    assert s2s.grad(svd(lambda u, s, vt: np.sum(np.sin(u))))(np.zeros((3, 0))).shape == (3, 0)


# of several singular values, or eigenvalues, that are 0 but for rounding
OF_ZEROS = {
    "a @ a.T": (svd(lambda u, s, vt: (u * s**2) @ u.T), lambda a: a @ a.T),
    "a.T @ a": (svd(lambda u, s, vt: (vt.T * s**2) @ vt), lambda a: a.T @ a),
    "a @ a.T @ a": (svd(lambda u, s, vt: (u * s**3) @ vt), lambda a: a @ a.T @ a),
    "fourth": (svd(lambda u, s, vt: (vt.T * s**4) @ vt), lambda a: a.T @ a @ a.T @ a),
    "exp": (eigh(lambda w, q: (q * np.exp(w)) @ q.T), lambda a: scipy.linalg.expm((a + a.T) / 2)),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("values", [(3.0, 0.0, 0.0), (3.0, 2.0, 0.0), (3.0, 1e-7, 1e-9)])
@pytest.mark.parametrize("name", OF_ZEROS)
def test_functions_of_matrices_of_less_than_full_rank(name, values):
    by_values, exact = OF_ZEROS[name]
    for a in (turned(values), turned(values, TALL)):
        if name == "exp":
            a = a.T @ a
        e, h = E[: len(a), :3], 1e-3
        weights = W[: len(exact(a)), : exact(a).shape[1]]
        f, g = lambda a: np.sum(by_values(a) * weights), lambda a: np.sum(exact(a) * weights)  # noqa: E731, B023
        first = (g(a + h / 9 * e) - g(a - h / 9 * e)) / (h / 9 * 2)
        second = (g(a + h * e) - 2 * g(a) + g(a - h * e)) / h**2
        np.testing.assert_allclose(np.vdot(s2s.grad(f)(a), e), first, rtol=1e-5)
        np.testing.assert_allclose(s2s.jvp(f, (a,), (e,))[1], first, rtol=1e-5)
        np.testing.assert_allclose(np.vdot(s2s.hvp(f, (a,), (e,)), e), second, rtol=1e-4)
        twice = s2s.grad(lambda a: np.vdot(s2s.grad(f)(a), e))  # noqa: B023
        np.testing.assert_allclose(np.vdot(twice(a), e), second, rtol=1e-4)


# ---------------------------------------------------------------- divided differences of functions

FUNCTIONS = {
    "log": (np.log, mpmath.log),
    "sqrt": (np.sqrt, mpmath.sqrt),
    "exp": (np.exp, mpmath.exp),
    "power": (lambda w: w**2.3, lambda w: w ** mpmath.mpf(2.3)),
    "inverse root": (lambda w: 1 / np.sqrt(w), lambda w: 1 / mpmath.sqrt(w)),
    "fast": (lambda w: np.sin(50 * w), lambda w: mpmath.sin(50 * w)),
    "step": (
        lambda w: np.tanh((w - 2.00001) * 1e5),
        lambda w: mpmath.tanh((w - mpmath.mpf(2.00001)) * 100000),
    ),
    "fastest": (lambda w: np.sin(1e5 * w), lambda w: mpmath.sin(100000 * w)),
    "corner": (
        lambda w: np.maximum(w - 2.00001, 0),
        lambda w: max(w - mpmath.mpf(2.00001), mpmath.mpf(0)),
    ),
}
GAPS = [1e-4, 1e-16, 1e-13, 1e-10, 1e-8, 1e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-3]
EXACT = {"step": (1e-8, 1e-8), "fastest": (1e-8, 1e-6)}  # as far as the function itself is


@pytest.mark.lengthy
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("gap", GAPS)
def test_functions_of_matrices_at_nearly_equal_eigenvalues(name, gap):
    f, exact = FUNCTIONS[name]
    a = turned(np.array([2.0, 2.0 * (1 + gap), 5.0]))
    a = (a + a.T) / 2
    e, d, weights = (x[:3, :3] + x[:3, :3].T for x in (E, W, E @ W))
    loss = eigh(lambda w, q: np.sum(weights * ((q * f(w)) @ q.T)))
    with mpmath.workdps(60):
        steps = [mpmath.matrix(x) * mpmath.mpf(10) ** -14 for x in (e, d)]

        def at(s, r):
            w, q = mpmath.eigsy(mpmath.matrix(a) + s * steps[0] + r * steps[1])
            y = q * mpmath.diag([exact(x) for x in w]) * q.T
            return sum(y[i, k] * mpmath.mpf(weights[i, k]) for i in range(3) for k in range(3))

        first = float((at(1, 0) - at(-1, 0)) / 2 * mpmath.mpf(10) ** 14)
        mixed = at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)
        second = float(mixed / 4 * mpmath.mpf(10) ** 28)
    once, again = EXACT.get(name, (1e-9, 1e-8))
    np.testing.assert_allclose(np.vdot(s2s.grad(loss)(a), e), first, rtol=once)
    np.testing.assert_allclose(s2s.jvp(loss, (a,), (e,))[1], first, rtol=once)
    np.testing.assert_allclose(np.vdot(s2s.hvp(loss, (a,), (e,)), d), second, rtol=again)
    backwards = s2s.grad(lambda a: np.vdot(s2s.grad(loss)(a), e))
    np.testing.assert_allclose(np.vdot(backwards(a), d), second, rtol=again)
