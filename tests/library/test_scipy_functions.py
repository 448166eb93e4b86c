"""SciPy's functions that are said in Python (library/scipy_functions.py): SciPy's numbers, to
rounding, and their differences.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.integrate as integrate
import scipy.linalg as la
import scipy.optimize as optimize
import scipy.signal as signal
import scipy.special as special
import scipy.stats as stats
from differences import check, check_compiled
from scipy.spatial import distance

import s2s
from s2s.errors import S2SError
from s2s.library import scipy_functions
from s2s.library.declarations import DECLARED

A = np.array([0.5, 1.5, 2.5])
M = np.arange(9.0).reshape(3, 3) / 5 + np.diag([2.0, 3.0, 4.0])
S = M @ M.T
B = np.arange(6.0).reshape(3, 2) + 0.5

FUNCTIONS = {
    "solve": lambda x: np.sum(la.solve(M * x, A)) + np.sum(la.solve(S * x, B, assume_a="pos") ** 2),
    "solve, transposed": lambda x: np.sum(la.solve(M * x, A, transposed=True) * A),
    "inv": lambda x: np.sum(la.inv(M * x) * M),
    "det": lambda x: la.det(M * x),
    "norm": lambda x: la.norm(M * x - 0.3) + la.norm(M * x, 1) + la.norm(A * x, 3),
    "pinv": lambda x: np.sum(la.pinv(B * x) ** 2),
    "cholesky": lambda x: (
        np.sum(la.cholesky(S * x, lower=True) * M) + np.sum(la.cholesky(S * x + x) * M)
    ),
    "cho_solve": lambda x: (
        np.sum(la.cho_solve(la.cho_factor(S * x), A))
        + np.sum(la.cho_solve(la.cho_factor(S * x, lower=True), B) ** 2)
    ),
    "solve_triangular": lambda x: (
        np.sum(la.solve_triangular(M * x, A, lower=True) * A)
        + np.sum(la.solve_triangular(M * x, B) ** 2)
    ),
    "solve_triangular, transposed": lambda x: np.sum(
        la.solve_triangular(M * x, A, trans="T", unit_diagonal=True) * A
    ),
    "eigh": lambda x: (
        np.sum(la.eigh(S * x + x)[0] ** 2 * A) + np.sum(la.eigh(S + np.diag(A) * x)[1] ** 2 * M)
    ),
    "eigvalsh": lambda x: np.sum(la.eigvalsh(S + x * np.diag(A)) ** 2 * A),
    "svd": lambda x: np.sum(la.svd(B * x, full_matrices=False)[1] ** 3) + np.sum(la.svdvals(B * x)),
    "qr": lambda x: (
        np.sum(np.abs(la.qr(M * x + x)[1])) + np.sum(np.abs(la.qr(B * x, mode="economic")[0] * x))
    ),
    "expm": lambda x: (
        np.sum(la.expm(M * x * 0.1) * M)
        + np.sum(la.expm(-M * x * 3))
        + np.sum(la.expm(np.zeros((2, 2)) * x))
    ),
    "block_diag": lambda x: np.sum(la.block_diag(M * x, B, x) ** 2 * np.arange(6)),
    "toeplitz": lambda x: (
        np.sum(la.toeplitz(A * x) ** 2 * M) + np.sum(la.toeplitz(A * x, A[:2] ** 2) ** 2 * B)
    ),
    "circulant": lambda x: np.sum(la.circulant(A * x) ** 2 * M),
    "trapezoid": lambda x: (
        integrate.trapezoid(A * x * A, dx=0.1) + integrate.trapezoid(A * x * A, A**2)
    ),
    "cumulative_trapezoid": lambda x: (
        np.sum(integrate.cumulative_trapezoid(M * x * M, dx=0.1) ** 2)
        + np.sum(integrate.cumulative_trapezoid(A * x * A, A * x, initial=0) ** 2)
    ),
    "simpson": lambda x: (
        integrate.simpson(A * x * A, dx=0.1) + integrate.simpson(A * x * A, x=A**2 * x)
    ),
    "convolve": lambda x: (
        np.sum(signal.convolve(A * x, A) ** 2)
        + np.sum(signal.fftconvolve(A * x, A[:2], "same") ** 2)
    ),
    "lfilter": lambda x: np.sum(signal.lfilter([1.0, x], [2.0, 0.5 * x, 0.1], np.arange(6.0)) ** 2),
    "cdist": lambda x: (
        np.sum(distance.cdist(B * x, B + 1)) + np.sum(distance.cdist(B * x, B, "sqeuclidean"))
    ),
    "cdist of other metrics": lambda x: (
        sum(
            np.sum(distance.cdist(B * x, B + x, metric) * 1.5)
            for metric in (
                "cityblock",
                "chebyshev",
                "minkowski",
                "cosine",
                "braycurtis",
                "canberra",
            )
        )
        + np.sum(distance.cdist(B * x, B, "minkowski", p=3))
    ),
    "pdist of other metrics": lambda x: sum(
        np.sum(distance.pdist(M * x * M + A, metric) ** 2)
        for metric in ("cityblock", "correlation", "chebyshev")
    ),
    "pdist": lambda x: np.sum(distance.pdist(B * x * B)) + distance.euclidean(A * x, A**2),
    "rosen": lambda x: (
        optimize.rosen(A * x)
        + np.sum(optimize.rosen(M * x))
        + np.sum(optimize.rosen_der(A * x) * A)
        + np.sum(optimize.rosen_hess(A * x) * M)
        + np.sum(optimize.rosen_hess_prod(A * x, A**2) * A)
    ),
    "zscore": lambda x: (
        stats.zscore(A**2 + A * x)[0] + np.sum(stats.zscore(M * x * M, ddof=1) ** 3)
    ),
    "special": lambda x: (
        np.sum(
            special.log1p(A * x) + special.expm1(A * x) + special.exp2(A * x) + special.cbrt(A * x)
        )
        * special.comb(5, 2)
        + x * special.factorial(4)
    ),
    "bessel": lambda x: (
        np.sum(
            special.jv(1, A * x)
            + special.yv(2, A * x)
            + special.iv(0.5, A * x)
            + special.kv(1, A * x)
        )
        + special.y0(x)
        + special.y1(x)
    ),
    "incomplete": lambda x: (
        np.sum(
            special.gammainc(2.5, A * x) ** 2
            + special.gammaincc(0.5, A * x)
            + special.expn(2, A * x)
            + special.exp1(A * x)
        )
        + special.expi(x)
        + special.rgamma(3 * x)
        + special.expn(0, x)
        + special.multigammaln(3 * x, 3)
    ),
    "distribution functions": lambda x: (
        np.sum(stats.expon.cdf([-1.0, x], scale=x) + stats.uniform.cdf([x, 9.0], scale=2.0))
        + np.sum(stats.logistic.cdf(A, x, x) + stats.cauchy.cdf(A * x, 0.1, x))
    ),
    "more of an order": lambda x: (
        np.sum(
            special.stdtr(3, A * x)
            + special.chdtr(3, A * x) ** 2
            + special.chdtrc(3, A * x) * A
            + special.ive(1.5, A * x)
            + special.kve(1, A * x)
            + special.hyp1f1(0.5, 1.5, A * x)
            + special.hyp2f1(0.5, 1.5, 2.5, A * x / 4)
            + special.yn(2, A * x)
        )
        + special.gammaincinv(2.5, x)
        + special.gammainccinv(2.5, x) ** 2
        + special.betaincinv(1.5, 2.5, x)
    ),
    "polynomials": lambda x: (
        np.sum(
            A
            * (
                special.eval_legendre(4, A * x)
                + special.eval_jacobi(3, 0.5, 0.3, A * x)
                + special.eval_gegenbauer(3, 0.7, A * x)
                + special.eval_genlaguerre(3, 0.5, A * x)
                + special.eval_laguerre(4, A * x)
                + special.eval_chebyt(5, A * x)
                + special.eval_chebyu(4, A * x)
                + special.eval_hermite(4, A * x)
                + special.eval_hermitenorm(3, A * x)
            )
        )
        + special.eval_legendre(0, x)
        + special.eval_chebyt(1, x)
        + special.eval_jacobi(0, 1.0, 2.0, x)
        + special.eval_hermite(1, x)
    ),
    "logsumexp of weights": lambda x: (
        special.logsumexp(A * x, b=[1.0, 0.0, -0.1])
        + special.logsumexp(M * x, axis=1, b=M, return_sign=True)[0][1]
        + np.sum(special.logsumexp(M * x, axis=0, keepdims=True, b=A[:, None]) ** 2)
    ),
    "eigh of two matrices": lambda x: (
        np.sum(la.eigh(S * x + np.diag(A), M @ M.T + np.diag(A**2))[0] ** 2 * A)
        + np.sum(np.abs(la.eigh(np.diag(A**2), S * x)[1]) * M)
        + la.eigvalsh(S + np.diag(A) * x, S, lower=False)[1]
    ),
    "norm.": lambda x: np.sum(
        stats.norm.logpdf(A, x, 2 * x)
        + stats.norm.pdf(A * x)
        + stats.norm.cdf(A * x, 1.0, x)
        + stats.norm.sf(A * x)
    ),
    "norm, its tails": lambda x: (
        np.sum(stats.norm.logcdf(A * x) + stats.norm.logsf(A * x, scale=x))
        + stats.norm.ppf(x * 0.5, x)
    ),
    "expon.": lambda x: (
        np.sum(stats.expon.logpdf(A * x, 0.1, x)) + np.sum(stats.expon.pdf([-1.0, x], scale=x))
    ),
    "uniform.": lambda x: (
        np.sum(stats.uniform.logpdf(A * x, 0, 4 * x)) + np.sum(stats.uniform.pdf(A * x, 0.4, x))
    ),
    "laplace.": lambda x: np.sum(stats.laplace.logpdf(A, x, x)) + np.sum(stats.laplace.pdf(A, x)),
    "logistic.": lambda x: (
        np.sum(stats.logistic.logpdf(A, x, x)) + np.sum(stats.logistic.pdf(A * x))
    ),
    "cauchy.": lambda x: np.sum(stats.cauchy.logpdf(A, x, x)) + np.sum(stats.cauchy.pdf(A * x)),
    "t.": lambda x: np.sum(stats.t.logpdf(A * x, 4 * x, 0.1, x)) + np.sum(stats.t.pdf(A * x, 3)),
    "gamma.": lambda x: (
        np.sum(stats.gamma.logpdf(A, x, 0.1, x)) + np.sum(stats.gamma.pdf([-1.0, x], 2.0))
    ),
    "chi2.": lambda x: np.sum(stats.chi2.logpdf(A * x, 3 * x)) + np.sum(stats.chi2.pdf(A * x, 3)),
    "beta.": lambda x: (
        np.sum(stats.beta.logpdf(A / 5, x, 2 * x)) + np.sum(stats.beta.pdf([x, 2.0], 2.0, 3.0))
    ),
    "lognorm.": lambda x: (
        np.sum(stats.lognorm.logpdf(A, x, 0.1, x)) + np.sum(stats.lognorm.pdf([-1.0, x], x))
    ),
    "poisson.": lambda x: (
        np.sum(stats.poisson.logpmf([0, 1, 3], x)) + np.sum(stats.poisson.pmf([-1, 0.5, 2], x))
    ),
    "binom.": lambda x: (
        np.sum(stats.binom.logpmf([0, 3, 7], 7, x))
        + np.sum(stats.binom.pmf([3, 9], 7, x))
        + stats.bernoulli.logpmf(1, x)
        + stats.bernoulli.pmf(0, x)
    ),
    "multivariate_normal.": lambda x: (
        np.sum(stats.multivariate_normal.logpdf(M, A * x, S * x))
        + stats.multivariate_normal.pdf(A * x, A, S)
    ),
    "dirichlet.": lambda x: (
        stats.dirichlet.logpdf([0.2, 0.3, 0.5], A * x) + stats.dirichlet.pdf([0.2, 0.3, 0.5], A * x)
    ),
}
COMPILED = [
    "cho_solve",
    "solve_triangular",
    "eigh",
    "expm",
    "toeplitz",
    "lfilter",
    "pdist",
    "norm.",
    "gamma.",
    "poisson.",
    "multivariate_normal.",
]


@pytest.mark.lengthy
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    check(FUNCTIONS[name], exactly=1e-12, rtol=2e-7)


@pytest.mark.compile
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    check_compiled(FUNCTIONS[name])


def test_outside_of_where_a_distribution_lives():
    for f in (
        lambda x: stats.gamma.logpdf(x, 2.0),
        lambda x: stats.expon.logpdf(x),
        lambda x: stats.lognorm.logpdf(x, 1.0),
        lambda x: stats.poisson.logpmf(x, 2.0),
        lambda x: stats.uniform.logpdf(x),
    ):
        assert s2s.value_and_grad(f)(-1.5) == (-np.inf, 0.0) == (f(-1.5), 0.0)


KINDS = np.array([0.5, 1.0, 2.0])  # infinite, finite and 0 where it begins


@pytest.mark.parametrize(
    "f",
    [
        lambda x: stats.gamma.logpdf(x, KINDS),
        lambda x: stats.chi2.logpdf(x, 2.0 * KINDS),
        lambda x: stats.gamma.pdf(x, KINDS),
        lambda x: stats.chi2.pdf(x, 2.0 * KINDS),
        lambda x: stats.beta.logpdf(x, KINDS, 1.5),
        lambda x: stats.beta.logpdf(1.0 - x, 1.5, KINDS),
    ],
)
def test_where_a_distribution_begins(f):
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(s2s.jvp(f, (0.0,), (0.0,))[0], f(0.0), rtol=1e-13)


# densities where they begin or end, with the slope from inside and that by their first parameter
EDGES = {
    "expon": (lambda x, s: stats.expon.pdf(x, 0.0, s), 0.0, 2.0, -0.25, -0.25),
    "gamma": (lambda x, a: stats.gamma.pdf(x, a, 0.0, 0.5), 0.0, 2.0, 4.0, 0.0),
    "steep gamma": (lambda x, a: stats.gamma.pdf(x, a), 0.0, 2.5, 0.0, 0.0),
    "flat gamma": (lambda x, a: stats.gamma.pdf(x, a), 0.0, 3.0, 0.0, 0.0),
    "chi2": (lambda x, df: stats.chi2.pdf(x, df), 0.0, 4.0, 0.25, 0.0),
    "left of beta": (lambda x, a: stats.beta.pdf(x, a, 3.0), 0.0, 2.0, 12.0, 0.0),
    "right of beta": (lambda x, b: stats.beta.pdf(x, 3.0, b), 1.0, 2.0, -12.0, 0.0),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", EDGES)
def test_slopes_where_a_density_begins(name):
    f, x, p, *slopes = EDGES[name]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(s2s.grad(f, argnums=(0, 1))(x, p), slopes, rtol=1e-12)
        np.testing.assert_allclose(
            s2s.grad(lambda x, p: np.sum(f(x, p)), argnums=0)(np.array([x, 0.4]), p),
            [slopes[0], s2s.grad(f)(0.4, p)],
            rtol=1e-12,
        )
    s2s.check_grads(f, (0.4, p))


# inside, outside and at the edges
AT = [-np.inf, -1.5, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 2.5, 3.0, 40.0, np.inf, np.nan]
PARAMETERS = [-1.0, 0.0, 0.3, 1.0, 2.0, 7.0, np.nan]
# loc and scale
PLACES = [(0.0, 1.0), (0.25, 2.0), (0.0, 0.0), (0.0, -1.0), (0.0, np.nan), (np.nan, 1.0)]
SHAPES = {
    "t": 1,
    "gamma": 1,
    "chi2": 1,
    "beta": 2,
    "lognorm": 1,
    "poisson": 1,
    "binom": 2,
    "bernoulli": 1,
}
DENSITIES = [
    name.removeprefix("scipy.stats:")
    for declared in DECLARED
    if declared.function.__module__ == scipy_functions.__name__
    for name in declared.implemented
    if name.startswith("scipy.stats:") and "." in name.removeprefix("scipy.stats:")
    and not name.startswith(("scipy.stats:multivariate_normal", "scipy.stats:dirichlet"))
]


def at_a_grid(name):
    """A function of x, SciPy's of the distribution, and what it and its parameters are on a
    grid.
    """
    distribution, function = name.split(".")
    places = [(0.0,), (1.0,), (np.nan,)] if "pmf" in function else PLACES
    grid = np.array(
        [
            (x, *p, *place)
            for x in ([-0.5, 0.0, 0.25, 0.5, 1.0, 1.5, np.nan] if function == "ppf" else AT)
            for p in itertools.product(PARAMETERS, repeat=SHAPES.get(distribution, 0))
            for place in places
        ]
    )
    x, *parameters = grid.T
    if name == "beta.pdf":  # which SciPy refuses to compute where it is infinite
        x, *parameters = grid[(x != 0) & (x != 0.25) & (x != 1) & (x != 2)].T
    signature = ", ".join(f"p{k}" for k in range(len(parameters)))
    f = s2s.from_source(
        f"def f(x, {signature}):\n    return stats.{name}(x, {signature})\n", {"stats": stats}
    )
    return f, getattr(getattr(stats, distribution), function), x, parameters


@pytest.mark.parametrize("name", DENSITIES)
def test_parameters_that_no_distribution_has(name):
    f, scipys, x, parameters = at_a_grid(name)
    with np.errstate(all="ignore"):
        found, slope = s2s.jvp(lambda x: f(x, *parameters), (x,), (np.ones_like(x),))
        expected = scipys(x, *parameters)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    inside = np.isfinite(expected) & np.isfinite(x) & (expected != 0) & ~np.isin(x, (0.0, 1.0))
    assert np.all(np.isfinite(slope[inside]))


@pytest.mark.compile
@pytest.mark.parametrize("name", ["norm.cdf", "gamma.logpdf", "t.logpdf", "beta.pdf", "binom.pmf"])
def test_parameters_that_no_distribution_has_in_native_code(name):
    f, scipys, x, parameters = at_a_grid(name)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(s2s.jit(f)(x, *parameters), scipys(x, *parameters), rtol=1e-11)
        one = s2s.jit(f)
        for k in (0, len(x) // 3, len(x) // 2):
            np.testing.assert_allclose(
                one(x[k], *(p[k] for p in parameters)),
                scipys(x[k], *(p[k] for p in parameters)),
                rtol=1e-11,
            )


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "df, expected",
    [
        (1e3, -1.764319598391336),
        (3e3, -1.7640655349110712),
        (1e8, -1.7639385370144227),
        (1e20, -1.7639385332046729),
        (np.inf, stats.norm.logpdf(1.3)),
    ],
)
def test_student_of_many_degrees_of_freedom(df, expected):
    """The expected logarithms are those of mpmath with 60 digits: in double precision SciPy's loses
    most of them.
    """
    z = 1.3
    slope = -z if df > 1e19 else -(df + 1) * z / (df + z * z)
    np.testing.assert_allclose(
        s2s.value_and_grad(lambda z: stats.t.logpdf(z, df))(z), (expected, slope), rtol=1e-11
    )


@pytest.mark.parametrize(
    "n, shape, axis",
    [(1, (), -1), (2, (2,), 0), (3, (), -1), (4, (2, 3), 1), (5, (2,), -1), (6, (), 0)],
)
def test_integrals_of_samples(n, shape, axis):
    """Of an odd and an even number, along any axis; at equal and unequal distances, some of them 0;
    in the samples and their places.
    """
    rng = np.random.default_rng(n)
    y = np.moveaxis(rng.normal(size=(*shape, n)), -1, axis)
    steps, many = rng.random(n), np.cumsum(rng.random(y.shape), axis=axis)
    again = np.where(np.arange(n) == 2, 0.0, steps)
    fs = [
        lambda y, x: integrate.simpson(y, dx=0.1, axis=axis),
        lambda y, x: integrate.simpson(y, x=x, axis=axis),
        lambda y, x: integrate.simpson(y, x=many, axis=axis),
        lambda y, x: integrate.cumulative_trapezoid(y, x, axis=axis, initial=0),
        lambda y, x: integrate.cumulative_trapezoid(y, many, axis=axis),
        lambda y, x: integrate.trapezoid(y, x, axis=axis),
    ]
    for f in fs:
        for x in (np.cumsum(steps), np.cumsum(again)):
            expected = f(y, x)
            found, moved = s2s.jvp(f, (y, x), (y, 0.0 * x))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(moved, expected, rtol=1e-12, atol=1e-13)  # it is linear
    for f in fs[1:4:2]:
        s2s.check_grads(f, (y, np.cumsum(steps)), order=1)


def test_a_hermitian_toeplitz_matrix():
    c = A + 1j * A**2
    np.testing.assert_array_equal(
        s2s.jvp(lambda c: la.toeplitz(c), (c,), (0 * c,))[0], la.toeplitz(c)
    )


@pytest.mark.parametrize(
    "f, error, text",
    [
        (
            lambda x: np.sum(signal.lfilter([x], [1.0], B)),
            NotImplementedError,
            "of other than vectors",
        ),
        (
            lambda x: special.eval_legendre(1.5, x),
            NotImplementedError,
            "a degree that is no integer",
        ),
        (
            lambda x: np.sum(la.inv(S * x, assume_a="diagonal")),
            NotImplementedError,
            "leave assume_a out, or divide by the diagonal",
        ),
        (
            lambda x: np.sum(la.eigh(S * x, subset_by_index=[0, 1])[1]),
            NotImplementedError,
            r"take them from all, v\[:, first:last \+ 1\]",
        ),
        (
            lambda x: np.sum(la.solve(M * x, A, assume_a="triangular")),
            ValueError,
            "triangular is not a recognized matrix structure",
        ),
        (lambda x: np.sum(la.qr(B * x)[0]), NotImplementedError, "pass mode='economic'"),
        (
            lambda x: np.sum(distance.cdist(B * x, B, "jensenshannon")),
            NotImplementedError,
            "this metric",
        ),
        (
            lambda x: integrate.quad(lambda t: t * x, 0, 1)[0],
            S2SError,
            "s2s does not know scipy.integrate",
        ),
        (lambda x: special.hyperu(1.0, 2.0, x), S2SError, "s2s does not know scipy.special.hyperu"),
    ],
)
def test_what_is_left_is_refused(f, error, text):
    with pytest.raises(error, match=text):
        s2s.grad(f)(0.7)


CHECKED = {
    "solve": (lambda a, b: np.sum(la.solve(a, b)),
              lambda a, b: np.sum(la.solve(a, b, check_finite=False))),
    "inv": (lambda a, b: np.sum(la.inv(a)) + b[0],
            lambda a, b: np.sum(la.inv(a, check_finite=False)) + b[0]),
    "det": (lambda a, b: la.det(a) + b[0], lambda a, b: la.det(a, check_finite=False) + b[0]),
    "norm": (lambda a, b: la.norm(a) + b[0], lambda a, b: la.norm(a, check_finite=False) + b[0]),
    "cholesky": (lambda a, b: np.sum(la.cholesky(a)) + b[0],
                 lambda a, b: np.sum(la.cholesky(a, check_finite=False)) + b[0]),
    "cho_solve": (lambda a, b: np.sum(la.cho_solve(la.cho_factor(a), b)),
                  lambda a, b: np.sum(la.cho_solve(la.cho_factor(a, check_finite=False), b,
                                               check_finite=False))),
    "solve_triangular": (lambda a, b: np.sum(la.solve_triangular(a, b)),
                         lambda a, b: np.sum(la.solve_triangular(a, b, check_finite=False))),
    "eigvalsh": (lambda a, b: np.sum(la.eigvalsh(a)) + b[0],
                 lambda a, b: np.sum(la.eigvalsh(a, check_finite=False)) + b[0]),
    "svdvals": (lambda a, b: np.sum(la.svdvals(a)) + b[0],
                lambda a, b: np.sum(la.svdvals(a, check_finite=False)) + b[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(name, bad):
    checked, unchecked = CHECKED[name]
    a, b = S.copy(), A.copy()
    (b if name == "solve" else a)[-1] = bad
    for way in (
        s2s.grad(checked),
        lambda a, b: s2s.vmap(checked)(a[None], b[None]),
        lambda a, b: s2s.jvp(checked, (a, b), (a, b)),
    ):
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            way(a, b)
    assert s2s.grad(checked)(S, A).shape == S.shape
    assert "chkfinite" not in s2s.grad(unchecked).lower(S, A).source


def solved_or_not(a, b):
    try:
        y = np.sum(la.solve(a, b))
    except np.linalg.LinAlgError:
        y = -1.0 * b[0]
    except ValueError:
        y = -2.0 * len(b)
    return y


@pytest.mark.compile
def test_compiled_code_asks_whether_all_is_finite():
    fast, either = s2s.jit(s2s.grad(CHECKED["solve"][0])), s2s.jit(solved_or_not)
    nan = np.where(S > S[0, 0], np.nan, S)
    for a, b in ((nan, A), (S, A * np.inf)):
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            fast(a, b)
        assert either(a, b) == -6.0 == solved_or_not(a, b)
    assert either(np.ones((3, 3)), A) == -A[0]
    np.testing.assert_allclose(either(S, A), solved_or_not(S, A))
    np.testing.assert_allclose(fast(S, A), s2s.grad(CHECKED["solve"][1])(S, A), rtol=1e-12)


def test_a_stack_that_is_no_stack_of_squares():
    with pytest.raises(ValueError, match="expected square matrix"):
        s2s.vmap(lambda a: la.eigh(a)[0])(np.ones((1, 2, 8, 4)))


@pytest.mark.parametrize("text, remedy", [
    ("la.toeplitz(x)", "toeplitz of other than vectors"),
    ("la.toeplitz(x[0], x)", "toeplitz of other than vectors"),
    ("la.circulant(x)", "circulant of other than a vector"),
])  # fmt: skip
def test_rows_that_are_stacks_to_scipy(text, remedy):
    f = s2s.from_source(f"def f(x):\n    return np.sum({text})\n", {"np": np, "la": la})
    with pytest.raises(S2SError, match=remedy):
        s2s.grad(f)(M)


@pytest.mark.parametrize("b", [np.ones(1), np.ones((1, 3)), 1.0])
def test_a_diagonal_system_of_another_size(b):
    for solver in (
        la.solve,
        lambda a, b, **keywords: s2s.jvp(lambda a: la.solve(a, b, **keywords), (a,), (a,)),
    ):
        with pytest.raises(ValueError):
            solver(S, b, assume_a="diagonal")


@pytest.mark.parametrize("dtype", ["int64", "float32", "complex64", "complex128", "float64"])
def test_dtypes_of_scipy(dtype):
    a = (4 * np.eye(3) + np.arange(9.0).reshape(3, 3) % 2).astype(dtype)
    norms = [lambda a: la.norm(a, 1), lambda a: la.norm(a[0])] if dtype == "int64" else []
    for f in (lambda a: la.det(a), lambda a: la.block_diag(a, a[:1]), *norms):
        found, wanted = s2s.vmap(f)(a[None])[0], f(a)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("a", [np.ones((3, 1)), np.ones((1, 3)), np.eye(2)])
def test_eigenvalues_of_two_matrices_of_other_sizes(a):
    for values in (la.eigvalsh, lambda a, b: s2s.vmap(lambda a: la.eigvalsh(a, b))(a[None])):
        with pytest.raises(ValueError):
            values(a, S)


@pytest.mark.filterwarnings("ignore")
def test_the_exponential_of_what_is_infinite():
    a = M.copy()
    a[0, 0] = np.inf
    assert np.all(np.isnan(s2s.vmap(lambda a: la.expm(a))(a[None])[0]))


def test_the_norm_of_frobenius_is_of_matrices():
    for f in (lambda x: np.linalg.norm(x, "fro"), lambda x: la.norm(x, "fro")):
        with pytest.raises(S2SError, match="norm of a vector with ord='fro'"):
            s2s.grad(f)(A)
