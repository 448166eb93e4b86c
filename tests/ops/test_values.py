"""Values are NumPy's and SciPy's, bit for bit, on inputs that are easily forgotten: infinities,
NaN, ties, stacks, ranges and lists in place of arrays.
"""

import numpy as np
import pytest

import s2s

special = pytest.importorskip("scipy.special")
INF, NAN = np.inf, np.nan
X = np.array([1.0, 2.0, 3.0])
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

NOT_ARRAYS = {
    "meshgrid of ranges": lambda x: np.meshgrid(range(3), x, range(2, 9, 3))[0] * x[:, None, None],
    "meshgrid of numbers": lambda x: (
        np.meshgrid(2.0, x)[0] + np.meshgrid(x, [1, 2, 3], indexing="ij")[1]
    ),
    "array_equal": lambda x: (
        x
        * (
            np.array_equal(range(1, 4), x)
            + 2 * np.array_equal(x, 1.0)
            + 4 * np.array_equal([x[0], 2], (1, 2))
        )
    ),
    "array_equal of NaN": lambda x: (
        x
        * (
            np.array_equal(x * NAN, [NAN] * 3, equal_nan=True)
            + 2 * np.array_equal(x * NAN, x * NAN)
        )
    ),
    "array_equiv": lambda x: (
        x
        * (
            np.array_equiv(x, [1.0, 2, 3])
            + 2 * np.array_equiv(np.stack([x, x]), x)
            + 4 * np.array_equiv(x, 1)
        )
    ),
    "joined ranges": lambda x: (
        np.concatenate([range(2), x, range(20)]) * np.sum(np.stack([range(3), x]))
    ),
    "products with ranges": lambda x: (
        np.dot(range(3), x)
        + np.outer(range(2), x)
        + np.einsum("i,i", range(3), x)
        + np.kron(range(1, 3), x)[:3]
    ),
    "an index": lambda x: x[range(2)] * np.take(x, range(1, 3)) + x.take(range(2)),
    "axes": lambda x: np.transpose(x.reshape(1, 3), range(1, -1, -1)) * np.zeros(range(3, 5)),
    "a long range": lambda x: np.cumsum(range(40)) * x[0] + np.interp(x[0], range(40), range(40)),
    "counted": lambda x: (
        np.histogram(range(3), bins=range(4), weights=x)[0]
        + np.bincount(range(3), x)
        + np.searchsorted(range(3), x)
    ),
    "sampled": lambda x: (
        np.trapezoid(x, range(3))
        + np.convolve(range(2), x)[:3]
        + np.mean(range(4))
        + np.where([True, False, True], x, range(3))
    ),
    "a run-time range": lambda x: np.sum(np.sqrt(range(len(x) + 1))) * x,
}
PADDED = {
    "a pair": lambda x: np.pad(x.reshape(3, 1), {0: (1, 2)}),
    "from the end": lambda x: np.pad(x.reshape(3, 1), {-1: 2}),
    "both": lambda x: np.pad(x.reshape(3, 1), {0: 1, 1: (0, 3)}, mode="edge"),
    "constants": lambda x: np.pad(x.reshape(1, 3), {1: (2, 1)}, constant_values=7.0),
}
RANKS = {
    "of a stack": lambda x: (
        np.linalg.matrix_rank(np.stack([np.diag(x), np.ones((3, 3)), np.zeros((3, 3))])) * x
    ),
    "by a tolerance": lambda x: (
        np.linalg.matrix_rank(np.diag(x), tol=1.5) * x + np.linalg.matrix_rank(np.diag(x), rtol=0.5)
    ),
    "by tolerances": lambda x: (
        np.linalg.matrix_rank(np.stack([np.diag(x)] * 2), tol=[1.5, 2.5]) * x[:2]
    ),
    "Hermitian": lambda x: np.linalg.matrix_rank(np.diag(x - 2), hermitian=True) * x,
    "of vectors": lambda x: (np.linalg.matrix_rank(x) + 2 * np.linalg.matrix_rank(0 * x)) * x,
}
try:
    np.pad(np.ones(1), {0: 1})
except TypeError:  # NumPy 2.2 and older pad by no dict
    PADDED = {}


def value_of(f, *args):
    return s2s.jvp(f, args, tuple(0.0 * a for a in args))[0]


def check(f, *args):
    wanted, found = f(*args), value_of(f, *args)
    np.testing.assert_array_equal(found, wanted)
    assert (
        np.shape(found) == np.shape(wanted) and np.asarray(found).dtype == np.asarray(wanted).dtype
    )


@pytest.mark.parametrize(
    "f",
    [*NOT_ARRAYS.values(), *PADDED.values(), *RANKS.values()],
    ids=[*NOT_ARRAYS, *PADDED, *RANKS],
)
def test_values(f):
    check(f, X)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["meshgrid of ranges", "an index", "joined ranges"])
def test_compiled(name):
    f = NOT_ARRAYS[name]
    np.testing.assert_allclose(s2s.jit(f)(X), f(X), rtol=1e-14)


LISTS = [
    [1.0, NAN, 0.5],
    [NAN, 1.0, 2.0],
    [0.5, 1.0, NAN],
    [-INF, NAN, -INF],
    [3.0, 3.0, 1.0],
    [0.0, -0.0, 0.0],
    [-0.0, 0.0, NAN],
]


@pytest.mark.parametrize("numbers", LISTS, ids=str)
def test_extremes_of_python_compare_one_after_the_other(numbers):
    """max(x) of an array is not np.max(x): a NaN is neither larger nor smaller than another number;
    the first of equal ones is taken.
    """
    x = np.array(numbers)
    for f in (lambda x: max(x), lambda x: min(x), lambda x: max(x * 2.0) - min(x)):
        check(f, x)
        assert np.signbit(value_of(f, x)) == np.signbit(f(x))
    np.testing.assert_array_equal(
        s2s.vmap(lambda x: max(x))(np.stack([x, x[::-1]])), [max(x), max(x[::-1])]
    )
    if not np.isnan(x).any():
        np.testing.assert_array_equal(s2s.grad(lambda x: max(x))(x), np.arange(3) == np.argmax(x))


@pytest.mark.parametrize(
    "x",
    [
        [-INF, -INF],
        [INF, 1.0],
        [1.0, -INF],
        [INF, -INF],
        [-INF],
        [NAN, 1.0],
        [1e308, 1e308],
        [1.0, 2.0],
    ],
    ids=str,
)
def test_logsumexp_of_infinite_numbers(x):
    x = np.array(x)
    for f in (
        lambda x: special.logsumexp(x),
        lambda x: special.logsumexp(np.stack([x, x]), axis=1),
        lambda x: special.logsumexp(x, keepdims=True),
        lambda x: special.logsumexp(x, b=2.0 + 0.0 * np.isnan(x)),
        lambda x: np.logaddexp.reduce(x),
        lambda x: np.logaddexp2(x[0], x[-1]),
    ):
        np.testing.assert_allclose(value_of(f, x), f(x), rtol=1e-15)
    if not np.isnan(x).any() and not (x == INF).any():
        weights = np.exp(x - np.max(x)) if x.max() > -INF else 0.0 * np.exp(x)
        weights = weights / max(np.sum(weights), 1.0)
        of_pairs = int(len(x) > 1 and x.max() < 1e308)  # whose sums say how much of them each is
        for f in (lambda x: special.logsumexp(x), *[lambda x: np.logaddexp.reduce(x)] * of_pairs):
            np.testing.assert_allclose(s2s.grad(f)(x), weights, rtol=1e-15)
            np.testing.assert_allclose(
                [s2s.jvp(f, (x,), (d,))[1] for d in np.eye(len(x))], weights, rtol=1e-15
            )


def forward(log_initial, log_steps, log_seen):
    """The forward algorithm of a hidden Markov model, in logarithms."""
    alpha = log_initial + log_seen[0]
    for row in log_seen[1:]:
        alpha = special.logsumexp(alpha[:, None] + log_steps, axis=0) + row
    return special.logsumexp(alpha)


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_a_hidden_markov_model_with_impossible_steps(jit):
    """Probabilities that are 0 leave the derivatives of the others as they are; a state that cannot
    be reached has none.
    """
    initial, steps = (
        np.array([1.0, 0.0, 0.0]),
        np.array([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]]),
    )
    seen = np.array([[0.9, 0.1, 0.2], [0.5, 0.3, 0.0], [0.1, 0.8, 0.6], [0.3, 0.2, 0.7]])

    def plain(weights):
        alpha = initial * seen[0]
        for row in seen[1:]:
            alpha = (alpha @ (steps * weights)) * row
        return np.log(np.sum(alpha))

    with np.errstate(divide="ignore"):
        logs = np.log(initial), np.log(steps), np.log(seen)
    gradient = s2s.value_and_grad(forward, 1)
    value, found = (s2s.jit(gradient) if jit else gradient)(*logs)
    assert value == pytest.approx(plain(np.ones((3, 3))), rel=1e-14)
    step = 1e-6 * np.eye(9).reshape(9, 3, 3)
    wanted = [(plain(np.exp(d)) - plain(np.exp(-d))) / 2e-6 for d in step]
    np.testing.assert_allclose(found, np.reshape(wanted, (3, 3)), atol=1e-9)


@pytest.mark.parametrize("num", [1, 2, 7])
@pytest.mark.parametrize("endpoint", [True, False])
def test_lanes_of_linspace_end_where_numpys_do(num, endpoint):
    starts, stops = np.random.default_rng(5).normal(size=(2, 500))
    found = s2s.vmap(lambda a, b: np.linspace(a, b, num, endpoint))(starts, stops)
    np.testing.assert_array_equal(
        found, [np.linspace(a, b, num, endpoint) for a, b in zip(starts, stops)]
    )
    s2s.check_grads(
        lambda a, b: s2s.vmap(lambda a, b: np.linspace(a, b, num, endpoint))(a, b),
        (starts[:3], stops[:3]),
    )


def test_lanes_of_histograms_count_the_largest():
    x = np.random.default_rng(6).normal(size=(300, 20))
    np.testing.assert_array_equal(
        s2s.vmap(lambda x: np.histogram(x, 7)[0])(x), [np.histogram(row, 7)[0] for row in x]
    )


MATRIX = np.arange(12.0).reshape(3, 4) - 3
OTHERS = {
    "copies of lists": lambda x: (
        np.copy([1, 2.5, x[0]]),
        np.copy((1, 2, 3)) * x,
        np.copy([[1, 2], [3, 5]]).T,
    ),
    "shapes of lists": lambda x: x * np.shape([1, 2, x[0]])[0] + len(np.shape([[1, 2]])),
    "like lists": lambda x: (
        np.zeros_like((1, 2, 3)),
        np.ones_like([[1.5, 2]]),
        np.zeros_like(range(3)) + x,
    ),
    "the norm of two axes": lambda x: (
        np.linalg.vector_norm(MATRIX * x[0], axis=(0, 1)),
        np.linalg.vector_norm(np.stack([MATRIX, MATRIX * x[1]]), axis=(0, 2), keepdims=True),
    ),
    "an integer mean": lambda x: (
        np.mean(MATRIX * x[0], dtype=int),
        np.mean(MATRIX + x[1], axis=0, dtype=int),
    ),
    "truth values as indices": lambda x: np.take(x, np.array([True, False])) + x.take([True, True]),
    "parts of integers": lambda x: np.modf(np.array([3, -2, 0]))[1] * x + np.modf(x)[1],
    "sums of integer polynomials": lambda x: (
        np.polyadd([1, 2, 3], [1, 2]),
        np.polysub(np.array([1, 2]), [1, 2, 3]),
        np.polyadd(x, [1, 2]),
    ),
    "powers of integers": lambda x: np.vander(np.array([1, 2, 3])) @ x,
    "bins of a range": lambda x: np.histogram(x, bins=(0, 2, 4))[0] * x[:2],
}
if not hasattr(np.linalg, "vector_norm"):
    del OTHERS["the norm of two axes"]


@pytest.mark.parametrize("name", OTHERS)
def test_other_values(name):
    f = OTHERS[name]
    wanted = f(X)
    for k, part in enumerate(wanted if isinstance(wanted, tuple) else ()):
        found = value_of(lambda x, k=k: f(x)[k] * 1, X)
        np.testing.assert_array_equal(found, part)
        assert (
            np.shape(found) == np.shape(part) and np.asarray(found).dtype == np.asarray(part).dtype
        )
    if not isinstance(wanted, tuple):
        check(f, X)


POLES = [0.0, -0.0, -1.0, -2.5, 3.5, 171.7, np.nan, np.inf]


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["gamma", "gammaln", "loggamma"])
def test_gamma_functions_of_numbers_are_infinite_where_those_of_math_raise(name):
    f = getattr(special, name)
    for x in POLES:
        np.testing.assert_allclose(s2s.vjp(lambda x: f(x), x)[0], f(x), rtol=1e-13)
        np.testing.assert_allclose(
            s2s.vjp(lambda x: f(x), np.array([x]))[0], f(np.array([x])), rtol=1e-13
        )
    assert np.isfinite(s2s.grad(lambda x: f(x))(3.5))


@pytest.mark.compile
def test_compiled_gamma_functions_of_numbers():
    for f in (lambda x: special.gamma(x), lambda x: special.gammaln(x)):
        np.testing.assert_allclose(
            [s2s.jit(f)(x) for x in POLES], [f(x) for x in POLES], rtol=1e-13
        )


@pytest.mark.parametrize(
    "name", ["norm.logpdf", "norm.cdf", "cauchy.pdf", "expon.cdf", "logistic.logpdf", "laplace.pdf"]
)
def test_distributions_of_single_precision_are_computed_in_double(name):
    stats = pytest.importorskip("scipy.stats")
    kind, function = name.split(".")
    f, x = getattr(getattr(stats, kind), function), np.array([0.3, 1.5, -2.0], np.float32)
    found, back = s2s.vjp(lambda x: f(x), x)
    np.testing.assert_allclose(found, f(x), rtol=1e-14)
    assert found.dtype == f(x).dtype and back(np.ones(3))[0].dtype == np.float32
