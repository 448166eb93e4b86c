"""Functions of samples, quantiles, and reductions that pass over NaN: bit for bit NumPy's, with
derivatives of every kind.
"""

import warnings

import numpy as np
import pytest

import s2s
from s2s.errors import UnsupportedError

RNG = np.random.default_rng(5)
X, Y, A = np.sort(RNG.normal(size=9)), RNG.normal(size=9), RNG.normal(size=(4, 5))
HOLES = np.where(RNG.random((4, 5)) < 0.3, np.nan, A)
PROGRAMS = {
    "trapezoid": (lambda x, y: np.trapezoid(y**2, x), X, Y),
    "trapezoid_of_rows": (lambda a: np.trapezoid(a * a, dx=0.25), A),
    "trapezoid_down": (lambda a: np.trapezoid(a * a, axis=0), A),
    "gradient": (lambda x: np.gradient(x * x), X),
    "gradient_of_rows": (lambda a, h: np.gradient(a * a, h, axis=1), A, 0.3),
    "interp": (lambda x, xp, fp: np.interp(x, xp, fp), 1.3 * Y, X, Y),
    "interp_of_a_number": (lambda x, xp, fp: np.interp(x, xp, fp, left=-1.0, right=2.0), 0.1, X, Y),
    "convolve": (lambda x, y: np.convolve(x, y[:4]), X, Y),
    "convolve_same": (lambda x, y: np.convolve(x[:4], y, "same"), X, Y),
    "convolve_valid": (lambda x, y: np.convolve(x, y[:3], mode="valid"), X, Y),
    "correlate": (lambda x, y: np.correlate(x, y[:4]), X, Y),
    "correlate_full": (lambda x, y: np.correlate(x, y[:4], "full"), X, Y),
    "correlate_same": (lambda x, y: np.correlate(x, y[:4], "same"), X, Y),
    "ediff1d": (lambda a: np.ediff1d(a * a), A),
    "unwrap": (lambda x: np.unwrap(9 * x), Y),
    "median": (lambda x: np.median(x**3), Y),
    "median_of_rows": (lambda a: np.median(a, axis=1), A),
    "median_of_an_even_number": (lambda a: np.median(a, axis=0, keepdims=True), A),
    "quantile": (lambda x: np.quantile(x, 0.37), Y),
    "quantiles": (lambda x: np.quantile(x, [0.1, 0.5, 0.93]), Y),
    "percentiles_of_rows": (lambda a: np.percentile(a, np.array([10, 77]), axis=1), A),
    "nansum": (lambda a: np.nansum(a * a, axis=0), HOLES),
    "nanmean": (lambda a: np.nanmean(a * a), HOLES),
    "nanmean_of_rows": (lambda a: np.nanmean(a, axis=1, keepdims=True), HOLES),
    "nanstd": (lambda a: np.nanstd(a, axis=1), HOLES),
    "nanvar": (lambda a: np.nanvar(a, ddof=1), HOLES),
    "nanmax": (lambda a: np.nanmax(a * a, axis=1), HOLES),
    "nanmin": (lambda a: np.nanmin(a), HOLES),
    "nanprod": (lambda a: np.nanprod(a), HOLES),
    "nancumsum": (lambda a: np.nancumsum(a, axis=1), HOLES),
    "kron": (lambda a, x: np.kron(a, a[:2, :2]) * x[0], A, X),
    "kron_of_vectors": (lambda x, y: np.kron(x, y[:3]), X, Y),
    "cross": (lambda a: np.cross(a[:, :3], a[:, 2:] * a[:, 2:]), A),
    "cross_of_two": (lambda x, y: np.cross(x[:3], y[:3]), X, Y),
    "rot90": (lambda a: np.rot90(a) + np.rot90(a, 3) * np.rot90(a, 5), A),
    "dstack": (lambda a: np.dstack([a, a * a]), A),
    "meshgrid": (lambda x, y: np.meshgrid(x, y[:4])[0] * np.meshgrid(x, y[:4])[1], X, Y),
    "meshgrid_ij": (lambda x, y: np.meshgrid(x, y[:4], indexing="ij", sparse=True)[0], X, Y),
    "triangles": (
        lambda a: a[:, :4][np.triu_indices(4, 1)] * a[:, 1:][np.tril_indices(4, -1)] * np.tri(6)[2],
        A,
    ),
    "diagonal": (lambda a: a[np.diag_indices(4)], A),
    "pad": (lambda x: np.pad(x * x, (1, 2), constant_values=0.5), X),
    "pad_of_rows": (lambda a: np.pad(a, ((1, 2), (0, 1)), constant_values=0.5), A),
    "pad_edge_of_rows": (lambda a: np.sum(np.pad(a, 1, mode="edge") ** 2), A),
    "take_of_columns": (
        lambda a: np.sum(np.take(a, [1, 2, 2, 0], axis=1) ** 2) + np.take(a, 2, axis=1),
        A,
    ),
    "einsum_trace": (lambda a: np.einsum("ii", a[:, 1:] * a[:, :4]), A),
    "einsum_diagonals": (
        lambda a, x: np.einsum("...ii,ij->...j", x[:, None, None] * a[:, 1:] + a[:, :4], a[:, :3]),
        A,
        X,
    ),
    "einsum_of_stacks": (lambda a, x: np.einsum("...ij,jk", x[:3, None, None] * a, a.T), A, X),
    "einsum_that_broadcasts": (
        lambda a, x: np.einsum("...i,...i->...", x[:3, None, None] * a, a),
        A,
        X,
    ),
    "logspace": (lambda a, b: np.logspace(a, b, 7), 0.3, 1.2),
    "logspace_of_2": (lambda a, b: np.logspace(a, b, 7, base=2.0, endpoint=False), 0.3, 1.2),
    "geomspace": (lambda a, b: np.geomspace(a, b, 6), 0.3, 12.0),
    "geomspace_below_0": (lambda a, b: np.geomspace(-a, -b, 6, endpoint=False), 0.3, 12.0),
    "vander": (lambda x: np.sum(np.vander(x, 4) ** 2) + np.vander(x, 3), Y),
    "vander_increasing": (lambda x: np.vander(x, 4, increasing=True), Y),
    "cov": (lambda a: np.cov(a), A),
    "cov_of_columns": (lambda a: np.cov(a, rowvar=False, bias=True), A),
    "cov_of_one": (lambda x: np.cov(x, ddof=2), Y),
    "corrcoef": (lambda a: np.corrcoef(a), A),
    "pad_edge": (lambda x: np.pad(x, 2, mode="edge"), X),
    "pad_reflect": (lambda a: np.pad(a, ((0, 0), (3, 2)), "reflect"), A),
    "pad_symmetric": (lambda x: np.pad(x, (3, 11), mode="symmetric"), X),
    "pad_wrap": (lambda x: np.pad(x, (3, 1), mode="wrap"), X),
}


def weighed(f):
    """A number made of what `f` returns, in which its elements weigh differently and
    nonlinearly.
    """

    def loss(*args):
        y = f(*args)
        return np.sum(np.sin(y) * (1.0 + np.cos(0.7 * y)))

    return loss


@pytest.mark.lengthy
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_derivatives(name):
    f, *args = PROGRAMS[name]
    check(f, args)


@pytest.mark.compile
@pytest.mark.parametrize(
    "name",
    [
        "trapezoid",
        "gradient",
        "interp",
        "convolve_same",
        "median_of_rows",
        "quantiles",
        "nanstd",
        "nanmax",
    ],
)
def test_compiled(name):
    f, *args = PROGRAMS[name]
    every, loss = tuple(range(len(args))), weighed(f)
    value, slopes = s2s.jit(s2s.value_and_grad(loss, argnums=every))(*args)
    wanted, plain = s2s.value_and_grad(loss, argnums=every)(*args)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    for slope, other in zip(slopes, plain):
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-12)


def check(f, args) -> None:
    """Bits of the value, reverse against forward against differences, and the same of the
    gradient.
    """
    every, loss = tuple(range(len(args))), weighed(f)
    y, pullback = s2s.vjp(f, *args)
    np.testing.assert_array_equal(y, f(*args))
    assert np.asarray(y).dtype == np.asarray(f(*args)).dtype
    value, slopes = s2s.value_and_grad(loss, argnums=every)(*args)
    assert value == loss(*args)
    rng = np.random.default_rng(1)
    directions = tuple(rng.normal(size=np.shape(x)) if np.ndim(x) else 0.7 for x in args)
    moved = [[x + sign * 1e-6 * d for x, d in zip(args, directions)] for sign in (1, -1)]
    along = sum(np.sum(s * d) for s, d in zip(slopes, directions))
    np.testing.assert_allclose(
        along, (loss(*moved[0]) - loss(*moved[1])) / 2e-6, rtol=2e-7, atol=2e-8
    )
    np.testing.assert_allclose(s2s.jvp(loss, args, directions)[1], along, rtol=1e-12, atol=1e-13)
    curved = s2s.hvp(loss, args, directions, argnums=every)
    ends = [s2s.grad(loss, argnums=every)(*m) for m in moved]
    for curve, a, b in zip(curved, *ends):
        np.testing.assert_allclose(curve, (a - b) / 2e-6, rtol=2e-5, atol=2e-6)
    slopes_of = s2s.grad(loss, argnums=every)
    twice = s2s.grad(
        lambda *xs: sum([np.sum(s * d) for s, d in zip(slopes_of(*xs), directions)]), argnums=every
    )(*args)
    for a, b in zip(twice, curved):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "x",
    [
        np.array([100, -100, 27, 101], np.int8),
        np.array([True, False, True]),
        np.array([200, 250], np.uint8),
        np.array([3, 1, 2**62 + 2]),
        np.zeros(0),
        np.full(3, 1.7e308),
        np.array([2.0, 1.0], np.float32),
        np.array([np.nan, 1.0]),
    ],
    ids=str,
)
def test_medians_of_any_numbers(x):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, expected = s2s.vmap(lambda x: np.median(x))(x[None])[0], np.median(x)
    np.testing.assert_array_equal(value, expected)
    assert np.asarray(value).dtype == expected.dtype


@pytest.mark.parametrize("f", [
    lambda x: np.quantile(x, -0.1), lambda x: np.quantile(x, [0.5, 1.2]),
    lambda x: np.percentile(x, -5), lambda x: np.percentile(x, np.array([50, 101.0])),
    lambda x: np.nanquantile(x, 1.1)])
def test_a_quantile_out_of_range_is_refused(f):
    x = np.array([3.0, 1.0, 2.0])
    for call in (f, s2s.jit(f), s2s.jacobian(f)):
        with pytest.raises(ValueError, match="must be in the range|called like this"):
            call(x)


def test_a_quantile_in_single_precision():
    x = np.array([3.0, 1.0, 2.0, 5.0], np.float32)
    for q in (0.3, np.array([0.3, 0.9])):
        value, expected = (
            s2s.vmap(lambda x, q: np.quantile(x, q), in_axes=(0, None))(x[None], q)[0],
            np.quantile(x, q),
        )
        np.testing.assert_allclose(value, expected, rtol=3e-7)
        assert value.dtype == expected.dtype


@pytest.mark.lengthy
def test_trapezoids_along_each_axis():
    """At places that all rows share, or that are of each element; linear in samples and in places,
    so that any step gives the slope.
    """
    rng = np.random.default_rng(2)
    for shape, axes in ((4, 3), (0, -1)), ((2, 4, 3), (0, -2, 2)):
        for axis in axes:
            for places in ((shape[axis],), shape):
                def f(y, x, axis=axis):
                    return np.trapezoid(y, x, axis=axis)

                y, d, x, e = (rng.normal(size=size) for size in (shape, shape, places, places))
                found, back = s2s.vjp(f, y, x)
                np.testing.assert_array_equal(found, f(y, x))
                y_bar, x_bar = back(weights := rng.normal(size=np.shape(found)))
                np.testing.assert_allclose(np.sum(y_bar * d), np.sum(weights * f(d, x)), rtol=1e-10)
                np.testing.assert_allclose(np.sum(x_bar * e), np.sum(weights * f(y, e)), rtol=1e-10)
                np.testing.assert_allclose(
                    s2s.jvp(f, (y, x), (d, e))[1], f(d, x) + f(y, e), rtol=1e-10
                )


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_a_trapezoid_of_samples_of_any_rank(axis):
    """Text made before the first call, when the rank of the samples is not known, is right for all
    of them.
    """
    rng = np.random.default_rng(3)
    places = np.sort(rng.normal(size=6))
    width = np.diff(places)
    half = np.append(width, 0) / 2 + np.append(0, width) / 2

    def f(y):
        return np.sum(np.trapezoid(y, places, axis=axis) ** 2)

    names = {}
    exec(s2s.value_and_grad(f).source, names)
    for shape in ((6,), (6, 4), (4, 6), (6, 4, 5), (4, 6, 5)):
        if len(shape) > (axis if axis >= 0 else -axis - 1) and shape[axis] == 6:
            y = rng.normal(size=shape)
            value, slope = names["f_value_and_grad"](y, places)
            behind = [1] * (len(shape) - 1 - axis % len(shape))
            expected = (
                2
                * np.expand_dims(np.trapezoid(y, places, axis=axis), axis)
                * half.reshape(-1, *behind)
            )
            assert value == f(y)
            np.testing.assert_allclose(slope, expected, rtol=1e-12)


def test_nan_makes_a_median_nan():
    assert np.isnan(s2s.value_and_grad(lambda x: np.median(x))(np.array([1.0, np.nan, 2.0]))[0])
    assert np.isnan(s2s.value_and_grad(lambda x: np.nanmax(x))(np.full(2, np.nan))[0])


def test_numbers_in_the_place_of_others_in_place():
    def f(x):
        y = x * 1.0
        np.nan_to_num(y, copy=False, nan=2.0, posinf=3.0)
        return np.sum(y * y)

    x = np.array([1.0, np.nan, np.inf, -2.0])
    value, bar = s2s.value_and_grad(f)(x)
    assert value == f(x) == 18.0
    np.testing.assert_array_equal(bar, [2.0, 0.0, 0.0, -4.0])


def test_a_period_of_zero_raises_as_in_numpy():
    x = np.linspace(0.0, 1.0, 4)
    for f in (
        np.interp,
        s2s.grad(lambda x, xp, fp, period: np.sum(np.interp(x, xp, fp, period=period))),
    ):
        with pytest.raises(ValueError, match="non-zero"):
            f(x, x, x, period=0.0) if f is np.interp else f(x, x, x, 0.0)


def test_what_is_nan_has_derivative_zero():
    slope = s2s.grad(lambda a: np.nanmean(a) + np.nansum(a) + np.nanmax(a) + np.nanstd(a))(HOLES)
    assert (slope[np.isnan(HOLES)] == 0).all() and np.isfinite(slope).all()


@pytest.mark.parametrize(
    "f, message",
    [
        (
            lambda x: np.sum(np.gradient(x, x, edge_order=2)),
            "np.gradient of samples at unequal distances with edge_order=2",
        ),
        (
            lambda x: np.sum(np.argsort(np.stack([x, x]), kind="stable") * x),
            "a stable np.argsort of something else than a vector",
        ),
        (lambda x: np.quantile(x, 0.5, method="lower"), "a quantile with method='lower'"),
        (lambda x: np.sum(np.unwrap(x, discont=4.0)), "np.unwrap with discont="),
        (
            lambda x: np.sum(np.geomspace(x, 2 * x, 3)),
            "np.geomspace of less than two numbers, or between arrays",
        ),
    ],
)
def test_refused(f, message):
    with pytest.raises(UnsupportedError, match=message):
        s2s.grad(f)(X)


@pytest.mark.parametrize(
    "f, length",
    [(lambda x: np.sum(np.cross(x[x > -9], x)), 4), (lambda x: np.cross(x, x[:3])[0], 2)],
)
def test_cross_of_vectors_of_another_length_than_3_raises(f, length):
    with pytest.raises(ValueError):
        s2s.grad(f)(X[:length])


def test_the_diagonal_of_a_matrix_that_is_not_square_raises():
    def f(x, n):
        if n > 2:
            return np.einsum("ii", np.outer(x, x[1:]))
        return x[0]

    with pytest.raises(ValueError):
        s2s.grad(f)(X, 3)


def test_an_index_that_names_every_axis_beside_an_ellipsis_is_a_number():
    """NumPy's x[..., -1] of a vector is a view of rank 0: its cotangent must not be cleared before
    it is read.
    """

    def f(x, w):
        y = np.empty_like(x)
        y[..., 1:-1] = x[..., 2:] - x[..., :-2]
        y[..., 0] = x[..., 1] * x[..., 0]
        y[..., -1] = x[..., -1] ** 2
        return np.sum(y * w)

    slope, step = s2s.grad(f)(X, Y), 1e-6 * np.eye(9)
    np.testing.assert_allclose(
        slope, [(f(X + d, Y) - f(X - d, Y)) / 2e-6 for d in step], rtol=1e-6, atol=1e-8
    )


def test_the_gradient_of_a_convolution_takes_as_many_steps_as_it():
    """Of long arrays and short kernels, a full convolution of the cotangent with the array would
    take the square of its length.
    """
    source = (
        s2s.grad(lambda x, y: np.sum(np.sin(np.convolve(x, y))), argnums=(0, 1)).lower(X, Y).source
    )
    assert source.count("np.convolve(") == 1 and source.count("np.correlate(") == 2


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("function", [np.convolve, np.correlate])
def test_the_part_of_a_convolution_that_is_kept(function, mode):
    """Of lengths of any parity; np.correlate conjugates its second argument, and turns the result
    round where that is longer.
    """
    def f(x, y):
        return function(x, y, mode)

    rng = np.random.default_rng(4)
    for n, m in [
        (6, 3),
        (6, 4),
        (5, 3),
        (5, 4),
        (3, 6),
        (4, 6),
        (3, 5),
        (4, 5),
        (2, 2),
        (3, 3),
        (1, 4),
        (4, 1),
    ]:
        x, y = rng.normal(size=n), rng.normal(size=m)
        for a, b in [(x, y), (x + 1j * x[::-1], y), (x, y - 1j * y[::-1]), (x - 2j, y + 0.5j)]:
            value, dot = s2s.jvp(f, (a, b), (0.5 * a, 0 * b))
            np.testing.assert_allclose(value, f(a, b), rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(dot, 0.5 * f(a, b), rtol=1e-13, atol=1e-14)


@pytest.mark.compile
@pytest.mark.parametrize("n, m", [(9, 3), (3, 9), (1, 1), (5, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_convolutions_are_loops_in_compiled_code(n, m, dtype):
    rng = np.random.default_rng(3)
    x, y = (rng.normal(size=k).astype(dtype) for k in (n, m))

    def f(x, y):
        return np.sum(np.abs(np.convolve(x, y) + 0.5) ** 2)

    gradient = s2s.value_and_grad(f, argnums=(0, 1))
    compiled = s2s.jit(gradient)
    assert " = numpy_convolve(" not in compiled.lower(x, y).loops
    (value, those), (found, these) = gradient(x, y), compiled(x, y)
    np.testing.assert_allclose(found, value, rtol=1e-5)
    for a, b in zip(these, those, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError):
        compiled(x[:0], y)


INTEGERS, SINGLE, EDGES = (
    np.array([[1, 2, 5], [9, 3, 200]], np.uint8),
    A.astype(np.float32),
    np.array([[np.nan, 1.0, 3.0], [np.inf, 0.5, 2.0]]),
)
CONVERTED = {
    "gradient_of_integers": (lambda a: np.gradient(a, axis=1), INTEGERS.astype(int)),
    "gradient_of_bytes": (lambda a: np.gradient(a, 0.3, axis=0), INTEGERS),
    "interp_of_bytes": (lambda a: np.interp(1.3, np.arange(3.0), a[1]), INTEGERS),
    "interp_of_singles": (lambda a: np.interp(a[0], np.arange(5, dtype=np.float32), a[1]), SINGLE),
    "cov_of_singles": (np.cov, SINGLE),
    "corrcoef_of_singles": (np.corrcoef, SINGLE),
    "nanmean_of_singles": (lambda a: np.nanmean(a, axis=0), SINGLE),
    "nanstd_of_singles": (lambda a: np.nanstd(a, axis=1), SINGLE),
    "nanvar_of_infinity": (lambda a: np.nanvar(a, axis=1), EDGES),
    "nanvar_of_too_few": (lambda a: np.nanvar(a, axis=0, ddof=3), EDGES),
    "var_of_nothing": (lambda a: np.var(a[:, :0], axis=1, ddof=1), EDGES),
    "var_of_too_few": (lambda a: np.var(a[:, 1:], axis=1, ddof=3), EDGES),
    "columns_of_three_axes": (lambda a: np.column_stack([a[:, :, None], a[:, :, None] * 2]), EDGES),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_in_the_dtype_that_numpy_computes_in(name):
    f, a = CONVERTED[name]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = s2s.jvp(f, (a,), (0.0 * a,))[0], f(a)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.compile
def test_the_variance_of_one_vector_is_a_number():
    """np.cov's reshape to no axes is an element, which compiled code knows."""
    compiled = s2s.jit(s2s.value_and_grad(lambda x: np.cov(x) + np.corrcoef(x)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope = compiled(X)
    np.testing.assert_allclose(value, np.var(X, ddof=1) + 1.0, rtol=1e-13)
    np.testing.assert_allclose(slope, (X - X.mean()) / 4.0, rtol=1e-12, atol=1e-15)


# ----------------------------------------------------------------- np.interp of what is not finite

INF, NAN = np.inf, np.nan
ODD = [0.0, -0.0, 1.0, 2.0, INF, -INF, NAN, 1e308, -1e308, 0.3]
POINTS = [
    [0.0, 1.0, 2.0],
    [0.0, 0.0, 2.0],
    [-INF, 0.0, 1.0],
    [-INF, 0.0, INF],
    [-INF, INF],
    [-INF, INF, INF],
    [-1e308, 0.0, 1e308],
    [0.0, 1.0, 2.0, 3.0, 4.0, INF],
    [1.0],
    [-INF],
]
PLACES = np.array([-INF, -1e308, -1.0, -0.0, 0.0, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.5, INF, NAN])


def assert_same_bits(got, wanted):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    for a, b in ((got.real, wanted.real), (got.imag, wanted.imag)):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a)[~np.isnan(b)], np.signbit(b)[~np.isnan(b)])


def odd_samples(points):
    """Samples, real and complex, at these points."""
    rng = np.random.default_rng(7)
    for _ in range(12):
        fp = rng.choice(ODD, len(points))
        yield fp
        z = np.empty(len(points), complex)
        z.real, z.imag = fp, rng.choice(ODD, len(points))
        yield z


def all_of_interp(x, xp, fp):
    """What np.interp makes of x, without its period, with ends of one's own, and around."""
    around = np.interp(x, np.where(np.abs(xp) > 1e9, 0.25, xp), fp, period=2.75)
    return np.interp(x, xp, fp), np.interp(x, xp, fp, left=NAN, right=-0.0), around


@pytest.mark.lengthy
@pytest.mark.parametrize("points", POINTS, ids=str)
def test_interp_of_what_is_not_finite_is_numpys(points):
    xp = np.array(points)
    lanes = s2s.vmap(all_of_interp, in_axes=(0, None, None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns about inf % period
        for fp in odd_samples(points):
            for got in (s2s.jvp(all_of_interp, (PLACES, xp, fp), (PLACES, xp, fp))[0],
                        lanes(PLACES, xp, fp)):
                for y, wanted in zip(got, all_of_interp(PLACES, xp, fp), strict=True):
                    assert_same_bits(y, wanted)
            x = float(PLACES[len(points)])
            got = s2s.jvp(all_of_interp, (x, xp, fp), (1.0, xp, fp))[0]
            for y, wanted in zip(got, all_of_interp(x, xp, fp), strict=True):
                assert_same_bits(y, wanted)


@pytest.mark.compile
def test_compiled_interp_of_what_is_not_finite_is_numpys():
    """Compiled, the product of slope and distance may not be rounded before it is added."""
    f = s2s.jit(all_of_interp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for points in POINTS:
            xp = np.array(points)
            for fp in odd_samples(points):
                for y, wanted in zip(f(PLACES, xp, fp), all_of_interp(PLACES, xp, fp), strict=True):
                    if np.iscomplexobj(wanted):
                        np.testing.assert_allclose(y.imag, wanted.imag, rtol=1e-15, atol=1e293)
                    np.testing.assert_allclose(y.real, wanted.real, rtol=1e-15, atol=1e293)
                    if np.nanmax(np.abs([*fp.real, *fp.imag, *xp])) < 9:
                        np.testing.assert_allclose(y, wanted, rtol=1e-15, atol=1e-15)


# x, xp, fp: the derivatives in x, in xp and in fp of what np.interp makes of them
SLOPES_OF_INTERP = {
    "at a sample beside nan": (
        1.0, [0, 1, 2, 3], [5, 7, NAN, 2], NAN, [0, NAN, 0, 0], [0, 1, 0, 0]),
    "at a sample beside inf": (
        1.0, [0, 1, 2, 3], [5, 7, INF, 2], INF, [0, -INF, 0, 0], [0, 1, 0, 0]),
    "beside it": (0.25, [0, 1, 2, 3], [5, 7, NAN, 2], 2, [-1.5, -0.5, 0, 0], [0.75, 0.25, 0, 0]),
    "from minus infinity": (0.5, [-INF, 1, 2], [5, 7, 2], 0, [0, 0, 0], [0, 1, 0]),
    "at minus infinity": (-INF, [-INF, 1, 2], [5, 7, 2], 0, [0, 0, 0], [1, 0, 0]),
    "to infinity": (1.5, [0, 1, INF], [5, 7, 2], 0, [0, 0, 0], [0, 1, 0]),
    "at infinity": (INF, [0, 1, INF], [5, 7, 2], 0, [0, 0, 0], [0, 0, 1]),
    "between infinities": (3.0, [-INF, INF], [7, 7], 0, [0, 0], [1, 0]),
    "of equal infinities": (0.25, [0, 1, 2], [INF, INF, 2], 0, [0, 0, 0], [0.75, 0.25, 0]),
    "left of all": (-5.0, [-1, 1, INF], [NAN, 7, 2], 0, [0, 0, 0], [1, 0, 0]),
    "right of all": (5.0, [-INF, 1, 2], [5, 7, INF], 0, [0, 0, 0], [0, 0, 1]),
    "of one sample": (1.0, [1], [5], 0, [0], [1]),
}


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compile)])
@pytest.mark.parametrize("name", SLOPES_OF_INTERP)
def test_slopes_of_interp_of_what_is_not_finite(name, compiled):
    x, xp, fp, *wanted = SLOPES_OF_INTERP[name]
    args = x, np.array(xp, float), np.array(fp, float)

    def f(x, xp, fp):
        return np.interp(x, xp, fp)

    kind = s2s.jit if compiled else lambda f: f
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slopes = kind(s2s.grad(f, argnums=(0, 1, 2)))(*args)
        for slope, exact in zip(slopes, wanted, strict=True):
            np.testing.assert_array_equal(slope, exact)
        forward = kind(s2s.jvp(f))
        if np.all(np.isfinite(wanted[1])):  # or the forward mode multiplies that by 0
            dots = 2.0, np.arange(1.0, 1 + len(xp)), np.arange(3.0, 3 + len(xp))
            along = sum(np.sum(dot * slope) for dot, slope in zip(dots, wanted))
            np.testing.assert_array_equal(forward(*args, *dots)[1], along)
