"""Functions that read one triangle of a matrix: the value is that of the triangle, the derivative
zero in the other one.

The matrices are not symmetric, and each entry is moved by itself: comparing forward mode with
reverse mode, or directions that are symmetric, would not tell that a rule takes the matrix for
symmetric.
"""

import inspect

import numpy as np
import pytest
import scipy

import s2s

la = pytest.importorskip("scipy.linalg")
RNG = np.random.default_rng(11)
A = RNG.normal(size=(3, 3)) + 4 * np.eye(3)
Z = A + 0.5j * RNG.normal(size=(3, 3))
W = RNG.normal(size=(3, 3))


def slopes(f, a, h=1e-6):
    """Central differences in each entry, ∂/∂u - i ∂/∂v of complex ones."""
    a = np.asarray(a)
    found = np.zeros(a.shape, np.result_type(a, float))
    for at in np.ndindex(a.shape):
        for unit in (1, 1j) if np.iscomplexobj(a) else (1,):
            step = np.zeros_like(a)
            step[at] = h * unit
            found[at] += (f(a + step) - f(a - step)) / (2 * h * unit)
    return found


def below(f):
    """A number made of the real and imaginary parts of f(a), in which all entries weigh
    differently.
    """
    def loss(a):
        y = f(a)
        return np.sum(np.real(y) ** 2 * W) + np.sum(np.imag(y) * W) + np.sum(np.real(y) * W.T)
    return loss


def spectral(**keywords):
    """Of eigenvalues, and of the squares of eigenvectors' entries."""
    def loss(a):
        w, v = np.linalg.eigh(a, **keywords)
        return np.sum(w**3 * W[0]) + np.sum(np.abs(v) ** 2 * W)
    return loss


LOSSES = {
    "cholesky": below(lambda a: np.linalg.cholesky(a)),
    "upper cholesky": below(lambda a: np.linalg.cholesky(a, upper=True)),
    "eigh": spectral(),
    "upper eigh": spectral(UPLO="U"),
    "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a) ** 3 * W[0]),
    "upper eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a, "u") ** 3 * W[0]),
    "of a helper's matrix": lambda a: np.sum(
        np.log(np.diag(np.linalg.cholesky(2.0 * a - a.conj().T * 0.5))).real * W[0]
    ),
}
POSITIVE = np.eye(3) * 2 + 0.3 * RNG.normal(size=(3, 3))
VECTOR, COLUMNS = RNG.normal(size=3), RNG.normal(size=(3, 2))
WIDE = np.arange(1.0, 13.0).reshape(3, 4)


def solution(assume_a, lower, b):
    return lambda a: np.sum(np.abs(la.solve(a, b, assume_a=assume_a, lower=lower)) ** 2 * b)


def triangular(trans, lower, unit_diagonal):
    return lambda a: np.sum(
        np.abs(
            la.solve_triangular(a, VECTOR, trans=trans, lower=lower, unit_diagonal=unit_diagonal)
        )
        ** 2
        * VECTOR
    )


def generalised(lower, type):
    def loss(a):
        w, v = la.eigh(a, POSITIVE, lower=lower, type=type)
        return np.sum(w**2 * W[0]) + np.sum(np.abs(v) ** 2 * W)
    return loss


def of_second(lower, type):
    def loss(a):
        w, v = la.eigh(W, a, lower=lower, type=type)
        return np.sum(w**2 * W[0]) + np.sum(np.abs(v) ** 2 * W)
    return loss


def of_scipy(lower):
    def loss(a):
        w, v = la.eigh(a, lower=lower)
        return (
            np.sum(np.abs(v) ** 2 * W)
            + np.sum(la.eigvalsh(a, lower=lower, subset_by_index=[1, 2]) ** 3)
            + np.sum(w**2 * W[0])
        )

    return loss


def scipys_factor(lower):
    return below(lambda a: la.cholesky(a, lower))


def by_factor(lower):
    return lambda a: np.sum(np.abs(la.cho_solve(la.cho_factor(a, lower), COLUMNS)) ** 2 * COLUMNS)


def of_factor(lower):
    return lambda a: np.sum(np.abs(la.cho_solve((a, lower), VECTOR)) ** 2 * VECTOR)


for _lower in (False, True):
    for _name in ("sym", "her", "pos"):
        LOSSES[f"solve {_name} {_lower}"] = solution(_name, _lower, COLUMNS)
    LOSSES[f"scipy cholesky {_lower}"] = scipys_factor(_lower)
    LOSSES |= {
        f"scipy eigh {_lower}": of_scipy(_lower),
        f"cho_factor {_lower}": by_factor(_lower),
        f"cho_solve {_lower}": of_factor(_lower),
    }
    for _type in (1, 2 + _lower):
        LOSSES[f"generalised eigh {_lower} {_type}"] = generalised(_lower, _type)
        LOSSES[f"generalised eigh of the second {_lower} {_type}"] = of_second(_lower, _type)
    for _trans in (0, "T", 2):
        LOSSES[f"solve_triangular {_lower} {_trans}"] = triangular(
            _trans, _lower, _trans == "T" or _lower
        )
LOSSES["solve diagonal columns"] = solution("diagonal", False, COLUMNS)
for _name in (
    "gen",
    "positive definite",
    "diagonal",
    "tridiagonal",
    "banded",
    "upper triangular",
    "lower triangular",
):
    LOSSES[f"solve {_name}"] = solution(_name, False, VECTOR)
if "assume_a" in inspect.signature(la.inv).parameters:  # of SciPy 1.17
    LOSSES["inv"] = below(
        lambda a: (
            la.inv(a, assume_a="sym", lower=True)
            + la.inv(a, assume_a="her")
            + la.inv(a, assume_a="upper triangular")
        )
    )
if np.lib.NumpyVersion(np.__version__) < "2.0.0":  # which has no upper=
    del LOSSES["upper cholesky"]


@pytest.mark.parametrize("a", [A, Z], ids=["real", "complex"])
@pytest.mark.parametrize("name", LOSSES)
def test_each_entry(name, a):
    f = LOSSES[name]
    wanted = slopes(f, a)
    value, found = s2s.value_and_grad(f)(a)
    assert value == pytest.approx(f(a), rel=1e-13)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    for at in np.ndindex(3, 3):
        step = np.zeros_like(a)
        step[at] = 1.0
        assert s2s.jvp(f, (a,), (step,))[1] == pytest.approx(wanted[at].real, rel=1e-6, abs=1e-7)
        if np.iscomplexobj(a):
            assert s2s.jvp(f, (a,), (1j * step,))[1] == pytest.approx(
                -wanted[at].imag, rel=1e-6, abs=1e-7
            )


@pytest.mark.parametrize("name", [name for k, name in enumerate(LOSSES) if k < 10 or k % 3 == 0])
def test_lanes(name):
    f, stack = LOSSES[name], np.stack([A, 2 * A + np.eye(3)])
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(f))(stack), [s2s.grad(f)(a) for a in stack], rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("name", [name for k, name in enumerate(LOSSES) if k < 10 or k % 3 == 1])
def test_second_derivatives(name):
    f = LOSSES[name]
    gradient = s2s.grad(f)
    wanted = np.array([slopes(lambda a: gradient(a)[at], A) for at in np.ndindex(3, 3)]).reshape(
        (3, 3, 3, 3)
    )
    np.testing.assert_allclose(s2s.hessian(f)(A), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.compile
@pytest.mark.parametrize(
    "name",
    [
        "cholesky",
        "upper cholesky",
        "upper eigh",
        "solve pos False",
        "solve her True",
        "generalised eigh False 1",
    ],
)
def test_compiled(name):
    f = LOSSES[name]
    for a in (A, Z):
        np.testing.assert_allclose(s2s.jit(s2s.grad(f))(a), s2s.grad(f)(a), rtol=1e-11, atol=1e-12)


@pytest.mark.compile
@pytest.mark.parametrize("n", [3, 12])
def test_a_kernel_matrix_of_which_half_is_written(n):
    """It would get half of its gradient if the other half had a part in it; of few rows the factor
    is computed in loops.
    """
    def f(s):
        k = np.zeros((n, n))
        for i in range(n):
            for j in range(i + 1):
                k[i, j] = np.exp(-s * (i - j) ** 2) + (i == j)
        return np.sum(np.linalg.cholesky(k))

    wanted = (f(0.5 + 1e-6) - f(0.5 - 1e-6)) / 2e-6
    assert n != 3 or wanted == pytest.approx(-0.88228, abs=1e-5)
    for found in (s2s.grad(f)(0.5), s2s.jvp(f, (0.5,), (1.0,))[1], s2s.jit(s2s.grad(f))(0.5)):
        assert found == pytest.approx(wanted, rel=1e-7)


def test_a_whole_symmetric_matrix_has_the_sum_over_both_triangles():
    """What is written in both triangles keeps its gradient."""
    def f(s):
        d = np.arange(4.0)
        return np.sum(np.linalg.cholesky(np.exp(-s * (d[:, None] - d) ** 2) + np.eye(4)))

    assert s2s.grad(f)(0.7) == pytest.approx((f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6, rel=1e-7)


@pytest.mark.lengthy
def test_vectors_of_an_upper_half_have_numpys_signs():
    for k in range(20):
        a = np.random.default_rng(k).normal(size=(4, 4))
        for part in (0, 1):
            np.testing.assert_array_equal(
                s2s.value_and_grad(
                    lambda a, part=part: np.sum(np.linalg.eigh(a, "U")[part] * a[part])
                )(a)[0],
                np.sum(np.linalg.eigh(a, "U")[part] * a[part]),
            )


@pytest.mark.lengthy
def test_vectors_of_scipy_have_its_signs():
    for k in range(20):
        a = np.random.default_rng(k).normal(size=(4, 4))
        for lower in (True, False):
            found = s2s.jvp(lambda a: la.eigh(a, lower=lower)[1], (a,), (a,))[0]
            np.testing.assert_array_equal(found, la.eigh(a, lower=lower)[1])
    stack = np.random.default_rng(0).normal(size=(3, 4, 4))
    np.testing.assert_array_equal(
        s2s.jvp(lambda a: la.eigh(a)[1], (stack,), (stack,))[0], [la.eigh(a)[1] for a in stack]
    )


RAISES = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17)


@pytest.mark.parametrize("a, b, options", [
    (np.array([[0.0, 1.0], [1.0, 1.0]]), np.ones(2), {"assume_a": "diagonal"}),
    (-np.eye(2), np.ones(2), {"assume_a": "pos"}),
    (np.array([[1.0, 5.0], [0.0, 0.0]]), np.ones(2), {"assume_a": "upper triangular"}),
])
def test_singular_matrices_raise(a, b, options):
    # older ones warn of a zero on the diagonal, and give infinities
    scipys = (la.solve,) if RAISES else ()
    for f in (
        *scipys,
        lambda *args, **named: s2s.jvp(lambda a: la.solve(a, b, **options), (a,), (a,)),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            f(a, b, **options)


@pytest.mark.parametrize("f, shape", [
    (lambda a: np.sum(np.tril(a, -1) ** 2 * WIDE), (3, 4)),
    (lambda a: np.sum(np.triu(np.sin(a), 1) ** 3 * WIDE), (3, 4)),
    (lambda a: np.sum(np.triu(np.tril(a * a, 1), -1) * WIDE), (2, 3, 4)),
])
def test_triangles_of_all_lanes_are_taken_at_once(f, shape):
    stack = np.random.default_rng(4).normal(size=(5, *shape))
    gradient = s2s.grad(f)
    batched = s2s.vmap(gradient)
    np.testing.assert_allclose(batched(stack), [gradient(a) for a in stack], rtol=1e-13)
    assert "for lane" not in s2s.source(batched, stack)
    np.testing.assert_allclose(
        s2s.vmap(s2s.hessian(f))(stack), [s2s.hessian(f)(a) for a in stack], rtol=1e-13
    )
