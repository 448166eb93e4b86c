"""Fourier transforms: against sums over exp(-2 pi i j k / n) written as products with a matrix,
whose transposes are the derivatives; programs that use them, against hyper-dual numbers."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.fft
from judge import judge
from judging import judge as judge_op

import s2s
from s2s import pipeline
from s2s.back.cuda.host import render_cuda
from s2s.ops.core.record import FUNCTIONS

RNG = np.random.default_rng(11)
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
REAL = ("rfft", "ihfft", "rfft2", "rfftn")  # of real numbers alone
NORMS = (None, "backward", "ortho", "forward")


def some(name, *shape):
    """Numbers that the function takes."""
    x = RNG.normal(size=shape)
    return x if name in REAL else x + 1j * RNG.normal(size=shape)


def transforms_in(source):
    """Those that generated code calls."""
    return re.findall(r"np\.fft\.(\w*fft\w*)\(", re.sub("#.*", "", source))


# ------------------------------------------------------------------------ by products with a matrix


def along_one(name, x, n=None, axis=-1, norm=None):
    """The transform as NumPy defines it: x is cropped or padded, and multiplied by a matrix."""
    x = np.moveaxis(np.asarray(x), axis, -1)
    from_bins = name in ("irfft", "hfft")
    n = (2 * (x.shape[-1] - 1) if from_bins else x.shape[-1]) if n is None else n
    given = n // 2 + 1 if from_bins else n
    y = np.zeros((*x.shape[:-1], n), complex)
    y[..., :min(given, x.shape[-1])] = x[..., :min(given, x.shape[-1])]
    if from_bins:
        for k in {0, n - n // 2} if n % 2 == 0 else {0}:
            y[..., k] = y[..., k].real
        for k in range(1, (n + 1) // 2):
            y[..., n - k] = np.conj(y[..., k])
    forward = name in ("fft", "rfft", "hfft")
    y = y @ np.exp((-2j if forward else 2j) * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    y *= {"ortho": n**-0.5, "forward": 1 / n if forward else 1.0}.get(
        norm, 1.0 if forward else 1 / n
    )
    y = y.real if from_bins else y[..., :n // 2 + 1] if name in ("rfft", "ihfft") else y
    return np.moveaxis(y, -1, axis)


def along_many(name, x, s=None, axes=None, norm=None):
    axes = (
        tuple(axes)
        if axes is not None
        else (-2, -1)
        if name.endswith("2")
        else tuple(range(-len(s or x.shape), 0))
    )
    s = s or [None] * len(axes)
    core = name.rstrip("2n")
    inner = {"rfft": "fft", "irfft": "ifft"}.get(core, core)
    if core == "rfft":
        x = along_one(core, x, s[-1], axes[-1], norm)
    for n, axis in zip(s[:-1] if "r" in core else s, axes):
        x = along_one(inner, x, n, axis, norm)
    return along_one(core, x, s[-1], axes[-1], norm) if core == "irfft" else x


def directions(x):
    """Each number of x alone, and its imaginary part."""
    for k in np.ndindex(x.shape):
        for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            d = np.zeros_like(x)
            d[k] = unit
            yield d


def paired(a, b):
    """A cotangent of u + iv is that of u minus i times that of v."""
    return np.sum(np.real(a * b))


def agrees(f, linear, x, *more):
    """The bits of f(x, *more), and its derivatives, which are `linear`, a map of arrays like x, and
    its transpose.
    """
    y, pullback = s2s.vjp(f, x, *more)
    expected = f(x, *more)
    np.testing.assert_array_equal(y, expected)
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(expected, linear(x), atol=1e-12)
    y_bar = RNG.normal(size=y.shape) + (
        1j * RNG.normal(size=y.shape) if y.dtype.kind == "c" else 0.0
    )
    x_bar = pullback(y_bar)[0]
    assert x_bar.dtype == x.dtype and x_bar.shape == x.shape
    for d in directions(x):
        np.testing.assert_allclose(paired(x_bar, d), paired(y_bar, linear(d)), atol=1e-12)
    x_dot = RNG.normal(size=x.shape) + (
        1j * RNG.normal(size=x.shape) if x.dtype.kind == "c" else 0.0
    )
    np.testing.assert_allclose(
        s2s.jvp(lambda x: f(x, *more), (x,), (x_dot,))[1], linear(x_dot), atol=1e-12
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_along_one_axis(name, norm):
    """Lengths odd and even, cropped and padded."""
    function = getattr(np.fft, name)
    for m in (5, 6):
        x = some(name, m)
        agrees(lambda x: function(x, norm=norm), lambda x: along_one(name, x, norm=norm), x)
        for n in (1, 3, 4, 8, 9):
            agrees(
                lambda x, n: function(x, n, norm=norm),
                lambda x, n=n: along_one(name, x, n, norm=norm),
                x,
                n,
            )


@pytest.mark.parametrize("axis", [0, 1, -1, -2, -3])
@pytest.mark.parametrize("name", ONE)
def test_along_any_axis(name, axis):
    function, x = getattr(np.fft, name), some(name, 2, 3, 4)
    agrees(lambda x: function(x, axis=axis), lambda x: along_one(name, x, axis=axis), x)
    agrees(lambda x: function(x, 3, axis), lambda x: along_one(name, x, 3, axis), x)
    agrees(lambda x: function(x, n=7, axis=axis), lambda x: along_one(name, x, 7, axis), x)


@pytest.mark.parametrize("s", [None, (3, 4), (2, 5), (-1, 5)])
@pytest.mark.parametrize("axes", [None, (0, 1), (1, 0), (-1, 0), (2, 1)])
@pytest.mark.parametrize("name", MANY)
def test_along_many_axes(name, axes, s):
    function, x = getattr(np.fft, name), some(name, 2, 3, 4)
    where = {} if axes is None else {"axes": axes}
    if s is not None and axes is None and name.endswith("n"):
        where = {"axes": (1, 2)}  # NumPy warns of lengths without axes
    over = where.get("axes", (-2, -1))
    lengths = None if s is None else [x.shape[axis] if n == -1 else n for n, axis in zip(s, over)]
    agrees(
        lambda x: function(x, s, **where, norm="ortho"),
        lambda x: along_many(name, x, lengths, where.get("axes"), "ortho"),
        x,
    )


def test_one_axis_of_many_and_all_of_them():
    x = some("fftn", 3, 4)
    agrees(lambda x: np.fft.fftn(x), lambda x: along_many("fftn", x), x)
    agrees(lambda x: np.fft.ifftn(x, axes=(0,)), lambda x: along_one("ifft", x, axis=0), x)
    agrees(lambda x: np.fft.irfftn(x, (5,), axes=(0,)), lambda x: along_one("irfft", x, 5, 0), x)


@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft", "fft2", "ifftn", "irfftn"])
def test_of_real_numbers(name):
    """Where complex ones are meant: the cotangent is real."""
    function, x = getattr(np.fft, name), RNG.normal(size=(3, 4))
    along = along_one if name in ONE else along_many
    agrees(lambda x: function(x), lambda x: along(name, x), x)


@pytest.mark.parametrize("name", (*ONE, *MANY))
def test_scipys(name):
    """SciPy's bits, which are not always NumPy's."""
    function, x = getattr(scipy.fft, name), some(name, 4, 6)
    along = along_one if name in ONE else along_many
    agrees(lambda x: function(x, norm="forward"), lambda x: along(name, x, norm="forward"), x)
    if name in MANY:
        agrees(lambda x: function(x, (5, 4), (1, 0)), lambda x: along(name, x, (5, 4), (1, 0)), x)
    else:
        agrees(lambda x: function(x, 5, 0), lambda x: along(name, x, 5, 0), x)


@pytest.mark.parametrize("name", ONE)
def test_single_precision_stays(name):
    function, x = getattr(np.fft, name), some(name, 6)
    x = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)

    def loss(x):
        return np.sum(np.abs(function(x)) ** 2)

    slope, double = (
        s2s.grad(loss)(x),
        s2s.grad(loss)(x.astype(complex if x.dtype.kind == "c" else float)),
    )
    assert s2s.vjp(function, x)[0].dtype == function(x).dtype and function(x).dtype.itemsize == (
        8 if function(x).dtype.kind == "c" else 4
    )
    assert slope.dtype == x.dtype
    np.testing.assert_allclose(slope, double, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axis", [0, -1, 1, (0, 1), (-1, -2), None])
@pytest.mark.parametrize("core", ["fft", "ifft", "rfft", "irfft"])
def test_many_lanes(core, axis):
    """vmap is a transform along other axes: one call, and derivatives like those of each lane."""
    name, key = (core, "axis") if isinstance(axis, int) else (f"{core}n", "axes")
    function, x = getattr(np.fft, name), some(name, 3, 4, 5)

    def f(x):
        return function(x, **{key: axis})

    def g(x):
        return s2s.grad(lambda x: np.sum(np.abs(f(x) + 0.5) ** 3))(x)

    np.testing.assert_allclose(s2s.vmap(f)(x), [f(row) for row in x], atol=1e-13)
    np.testing.assert_allclose(s2s.vmap(g)(x), [g(row) for row in x], atol=1e-11)
    source = s2s.vmap(g).lower(x).source
    assert len(transforms_in(source)) == 2 and "range(" not in source


def test_jacobians():
    """A batch of cotangents for one argument: padded and cropped, too."""
    x = RNG.normal(size=5)
    for n in (4, 7):
        rows = np.stack([along_one("rfft", d, n) for d in np.eye(5)], axis=1)
        for jacobian in (s2s.jacrev, s2s.jacfwd):
            np.testing.assert_allclose(
                jacobian(lambda x, n: np.real(np.fft.rfft(x, n)))(x, n), rows.real, atol=1e-14
            )
            np.testing.assert_allclose(
                jacobian(lambda x, n: np.imag(np.fft.rfft(x, n)))(x, n), rows.imag, atol=1e-14
            )


def test_what_is_kept_in_a_sparse_jacobian():
    """A transform mixes what lies along its axes."""
    a = RNG.normal(size=(3, 4))
    found = s2s.jacobian(lambda a: np.real(np.fft.fft(a, 6)) * np.sum(a[0]), sparse=True)(a)
    assert found.nnz == 2 * 6 * 8 + 6 * 4
    np.testing.assert_allclose(
        found.toarray(),
        s2s.jacfwd(lambda a: np.ravel(np.real(np.fft.fft(a, 6)) * np.sum(a[0])))(a).reshape(18, 12),
        atol=1e-13,
    )


def cosines(name, x, type, n, axis, norm):
    """Cosine and sine transforms as SciPy defines them, by sums of cosines and sines."""
    x = np.moveaxis(np.asarray(x), axis, -1)
    n = x.shape[-1] if n is None else n
    y = np.zeros((*x.shape[:-1], n), x.dtype)
    y[..., :min(n, x.shape[-1])] = x[..., :n]
    if name.startswith("i"):
        type, norm = (
            {1: 1, 2: 3, 3: 2, 4: 4}[type],
            {None: "forward", "backward": "forward", "ortho": "ortho", "forward": None}[norm],
        )
    wave, i, j = np.cos if "c" in name else np.sin, np.arange(n)[:, None], np.arange(n)
    if "c" in name:
        angle = {
            1: i * j / max(n - 1, 1),
            2: (i + 0.5) * j / n,
            3: i * (j + 0.5) / n,
            4: (i + 0.5) * (j + 0.5) / n,
        }[type]
        once = {1: [0, n - 1], 3: [0]}.get(type, [])
        period = 2 * (n - 1) if type == 1 else 2 * n
    else:
        angle = {
            1: (i + 1) * (j + 1) / (n + 1),
            2: (i + 0.5) * (j + 1) / n,
            3: (i + 1) * (j + 0.5) / n,
            4: (i + 0.5) * (j + 0.5) / n,
        }[type]
        once = {3: [n - 1]}.get(type, [])
        period = 2 * (n + 1) if type == 1 else 2 * n
    matrix = 2 * wave(np.pi * angle)
    matrix[once] /= 2
    if norm == "ortho":  # SciPy: the matrix that is orthogonal
        matrix = (
            matrix / np.sqrt(np.sum(matrix**2, axis=1, keepdims=True))
            if type == 3
            else matrix / np.sqrt(np.sum(matrix**2, axis=0))
            if type == 2
            else matrix
        )
        if type == 1 and "c" in name:
            matrix[[0, -1]] *= np.sqrt(2)
            matrix[:, [0, -1]] /= np.sqrt(2)
        matrix = matrix if type in (2, 3) else matrix / np.sqrt(period)
    return np.moveaxis(y @ (matrix / period if norm == "forward" else matrix), -1, axis)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_cosines_and_sines(name, type, norm):
    function = getattr(scipy.fft, name)
    for x, axis in ((RNG.normal(size=5), -1), (some("fft", 2, 4), 1), (RNG.normal(size=(3, 2)), 0)):
        agrees(
            lambda x: function(x, type, axis=axis, norm=norm),
            lambda x: cosines(name, x, type, None, axis, norm),
            x,
        )
        for n in (2, 3, 7):
            agrees(
                lambda x, n: function(x, type, n, axis, norm),
                lambda x, n=n: cosines(name, x, type, n, axis, norm),
                x,
                n,
            )


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["dct", "idst"])
def test_cosines_of_many_lanes(name):
    function, x = getattr(scipy.fft, name), RNG.normal(size=(3, 4, 5))

    def cubes(type, axis):
        return lambda x: np.sum(function(x, type, 3, axis=axis) ** 3)

    for type in (1, 3):
        for axis in (0, -1):
            slope = s2s.grad(cubes(type, axis))
            np.testing.assert_allclose(s2s.vmap(slope)(x), [slope(row) for row in x], atol=1e-11)
            s2s.check_grads(cubes(type, axis), (x[0],))
    assert s2s.grad(lambda x: np.sum(function(x) ** 2))(x.astype(np.float32)).dtype == np.float32


@pytest.mark.compile
def test_cosines_compiled():
    x = RNG.normal(size=(3, 5))
    for function in (scipy.fft.dct, scipy.fft.idst):
        for type in (1, 2, 3, 4):
            f = s2s.value_and_grad(
                lambda x, type=type, function=function: np.sum(
                    function(x * x, type, 4, axis=0) ** 3
                )
            )
            for a, b in zip(s2s.jit(f)(x), f(x)):
                np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_frequencies(n):
    for name in ("fftfreq", "rfftfreq"):
        function = getattr(np.fft, name)
        value, slope = s2s.value_and_grad(lambda n, d: np.sum(np.cos(function(n, d))), argnums=1)(
            n, 0.3
        )
        assert value == np.sum(np.cos(function(n, 0.3)))
        np.testing.assert_allclose(
            slope, np.sum(np.sin(function(n, 0.3)) * function(n, 0.3)) / 0.3, rtol=1e-13, atol=1e-13
        )
        np.testing.assert_array_equal(
            s2s.vmap(lambda x: function(n) * x)(np.ones(2))[0], function(n)
        )
        s2s.check_grads(lambda d: np.sum(np.sin(function(n, d))), (0.3,))
    for name in ("fftfreq", "rfftfreq", "fftshift"):
        assert FUNCTIONS[getattr(scipy.fft, name)] is FUNCTIONS[getattr(np.fft, name)]


@pytest.mark.parametrize("axes", [None, 0, -1, (1, 0), (2,)])
def test_shifts(axes):
    x = RNG.normal(size=(3, 4, 5))
    for shift, back in ((np.fft.fftshift, np.fft.ifftshift), (np.fft.ifftshift, np.fft.fftshift)):
        y, pullback = s2s.vjp(lambda x, shift=shift: shift(x, axes), x)
        np.testing.assert_array_equal(y, shift(x, axes))
        np.testing.assert_array_equal(pullback(x)[0], back(x, axes))
        np.testing.assert_array_equal(
            s2s.vmap(lambda x, shift=shift: shift(x, -1))(x), shift(x, -1)
        )


def test_before_any_call():
    """Of arrays of unknown rank, too."""
    weights = RNG.normal(size=4)
    rule = {name: FUNCTIONS[getattr(np.fft, name)] for name in ("rfft", "irfft", "rfftn", "irfftn")}
    for n in (None, 5, 8):
        judge_op(lambda x, n=n: rule["irfft"](rule["rfft"](x * x, n) * 1.5, n),
                 lambda x, n=n: np.fft.irfft(np.fft.rfft(x * x, n) * 1.5, n), weights)
    judge_op(
        lambda x: rule["irfftn"](rule["rfftn"](x * x, axes=(-2, -1)), (5, 3), (-1, -2)),
        lambda x: np.fft.irfftn(np.fft.rfftn(x * x, axes=(-2, -1)), (5, 3), (-1, -2)),
        RNG.normal(size=(3, 4)),
    )


# ----------------------------------------------------------------------------------------- programs


def spectral_derivative(u):
    n = len(u)
    k = 2 * np.pi * np.fft.rfftfreq(n, 1 / n)
    return np.sum(np.fft.irfft(1j * k * np.fft.rfft(np.sin(u)), n) ** 2)


def burgers(u, viscosity, dt, steps):
    """A pseudo-spectral step with the viscous part integrated exactly, and the highest third of the
    frequencies left out.
    """
    n = len(u)
    k = np.fft.fftfreq(n, 1.0 / n)
    decay = np.exp(-viscosity * k**2 * dt)
    v = np.fft.fft(u)
    for step in range(steps):
        u = np.real(np.fft.ifft(v))
        flux = np.fft.fft(0.5 * u * u) * (np.abs(k) < n / 3)
        v = decay * (v - dt * 1j * k * flux)
    return np.sum(np.real(np.fft.ifft(v)) ** 3)


def korteweg_de_vries(u, dt, steps):
    n = len(u)
    k = np.fft.rfftfreq(n, 1.0 / n)
    turn = np.exp(1j * k**3 * dt)
    v = np.fft.rfft(u)
    while steps > 0:
        v = turn * v
        w = np.fft.irfft(v, n)
        v -= 3j * dt * k * np.fft.rfft(w * w)
        steps -= 1
    return np.fft.irfft(v, n)


def power_spectrum(x):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(len(x)) / len(x))
    return np.log1p(np.abs(np.fft.rfft(x * window)) ** 2)


def convolution(x, kernel):
    n = len(x) + len(kernel) - 1
    y = np.fft.irfft(np.fft.rfft(x, n) * np.fft.rfft(kernel, n), n)
    return np.sum(np.tanh(y)) + y[2] ** 2


def autocorrelation(x):
    n = len(x)
    y = x - np.mean(x)
    r = np.fft.irfft(np.abs(np.fft.rfft(y, 2 * n)) ** 2, 2 * n)[:n]
    return r / r[0]


def phase_retrieval(image, magnitudes):
    return np.mean((np.abs(np.fft.fft2(image)) - magnitudes) ** 2)


def angular_spectrum(field, distance):
    """Light some way on: complex numbers in, real ones out."""
    ky, kx = np.fft.fftfreq(field.shape[0]), np.fft.fftfreq(field.shape[1])
    phase = np.exp(1j * distance * (ky[:, None] ** 2 + kx**2))
    intensity = np.abs(np.fft.ifft2(np.fft.fft2(field) * phase)) ** 2
    return np.sum(np.fft.fftshift(intensity) ** 2 * np.arange(field.shape[1]))


def rows(a):
    """One row after the other, written into the parts of an array."""
    y = np.zeros((2, a.shape[1] // 2 + 1), complex)
    for i in range(2):
        y[i] = np.fft.rfft(a[i] * a[i - 1])
        if np.abs(y[i, 0]) > 1.0:
            y[i] *= 0.5
    return (
        np.sum(np.abs(y) ** 2)
        + np.sum(np.fft.hfft(y[0], 5) ** 3)
        + np.sum(np.abs(np.fft.ihfft(a[1], 4)) ** 2)
    )


def poisson(f):
    """A periodic Poisson equation."""
    n, m = f.shape
    k = np.fft.fftfreq(n)[:, np.newaxis] ** 2 + np.fft.rfftfreq(m) ** 2
    k[0, 0] = 1.0
    v = np.fft.rfft2(f) / k
    v[0, 0] = 0.0
    return np.fft.irfft2(v, f.shape) ** 2


PROGRAMS = {
    "spectral_derivative": (spectral_derivative, RNG.normal(size=8)),
    "spectral_derivative_of_an_odd_number": (spectral_derivative, RNG.normal(size=7)),
    "burgers": (burgers, RNG.normal(size=9), 0.1, 0.02, 3),
    "korteweg_de_vries": (korteweg_de_vries, RNG.normal(size=8), 0.01, 3),
    "power_spectrum": (power_spectrum, RNG.normal(size=9)),
    "convolution": (convolution, RNG.normal(size=7), RNG.normal(size=3)),
    "autocorrelation": (autocorrelation, RNG.normal(size=6)),
    "phase_retrieval": (phase_retrieval, RNG.normal(size=(4, 5)), 2.0 + RNG.random((4, 5))),
    "phase_retrieval_of_complex_numbers": (
        phase_retrieval,
        some("fft2", 4, 3),
        2.0 + RNG.random((4, 3)),
    ),
    "angular_spectrum": (angular_spectrum, some("fft2", 3, 4), 0.7),
    "rows": (rows, RNG.normal(size=(2, 5))),
    "poisson": (poisson, RNG.normal(size=(4, 6))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f, *args = PROGRAMS[name]
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compiled(name):
    f, *args = PROGRAMS[name]
    judge(f, *args, compiled=True, second=name in ("convolution", "phase_retrieval"))


@pytest.mark.parametrize(
    "name", ["spectral_derivative", "burgers", "convolution", "phase_retrieval", "rows"]
)
def test_what_is_printed_before_any_call(name):
    """It takes what is not annotated to be real, and says so; results of transforms are complex
    numbers: conjugates are not left out.
    """
    f, *args = PROGRAMS[name]
    gradient, module = s2s.grad(f), {}
    assert re.search(rf"\breal\s+{f.__code__.co_varnames[0]}\b", gradient.source)
    exec(gradient.source, module)
    found, expected = module[f"{f.__name__}_grad"](*args), gradient(*args)
    np.testing.assert_allclose(
        found if expected.dtype.kind == "c" else np.real(found), expected, rtol=1e-12, atol=1e-12
    )


def test_a_gradient_reads_as_one_would_write_it():
    source = s2s.grad(spectral_derivative).lower(np.ones(8)).source
    assert (
        sorted(transforms_in(source)) == ["irfft", "irfft", "rfft", "rfft", "rfftfreq"]
        and "fitted(" not in source
    )
    one = s2s.grad(lambda x: np.sum(np.real(np.fft.fft(x)) ** 2)).lower(np.ones(8)).source
    assert "np.real(np.fft.fft(2 * np.real(np.fft.fft(x))))" in one


@pytest.mark.compile
def test_loops_around_a_transform_are_compiled():
    """And run over its result in one piece, of whatever layout the argument is."""
    f = s2s.jit(lambda x, n: np.fft.fft(x, n, axis=0) * 2.0)
    loops = f.lower(np.ones((3, 4)), 5).loops
    assert (
        "with objmode(y='complex128[:, ::1]'):" in loops
        and "* 2.0" in loops
        and loops.count("for ") == 2
    )
    a = some("fft", 4, 6)
    for x in (
        a,
        a.T,
        a[::2, ::-1],
        a.real,
        a.real.astype(np.float32),
        a.astype(np.complex64)[:, 1:],
    ):
        for n in (3, 7):
            y = f(x, n)
            assert y.dtype == np.fft.fft(x, n, axis=0).dtype
            np.testing.assert_allclose(y, 2 * np.fft.fft(x, n, axis=0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            s2s.jit(lambda x: np.fft.fftn(x))(x), np.fft.fftn(x), rtol=1e-5, atol=1e-5
        )


@pytest.mark.compile
def test_compiling_warns_of_nothing(tmp_path):
    text = """import numpy as np, s2s
f = s2s.from_source("def f(x):\\n    return np.sum(np.abs(np.fft.rfft(x)) ** 2)", {"np": np})
print(s2s.jit(s2s.grad(f))(np.array([2.0])))"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"S2S_CACHE_DIR": str(tmp_path)},
    )
    assert (run.stdout, run.stderr) == ("[4.]\n", "")


@pytest.mark.compile
def test_frequencies_compiled():
    for n in (1, 2, 7, 8):
        for f in (
            lambda n, d: np.fft.fftfreq(n, d) * 1.0,
            lambda n, d: np.fft.rfftfreq(n, d) * 1.0,
        ):
            np.testing.assert_array_equal(s2s.jit(f)(n, 0.3), f(n, 0.3))
        f = s2s.value_and_grad(lambda d, n: np.sum(np.sin(np.fft.fftfreq(n, d))))
        np.testing.assert_allclose(s2s.jit(f)(0.3, n), f(0.3, n), rtol=1e-13, atol=1e-13)


@pytest.mark.compile
def test_errors_are_numpys_in_compiled_code():
    for f in (np.fft.fft, np.fft.irfft):
        with pytest.raises(ValueError, match="Invalid number of FFT data points"):
            s2s.jit(lambda x, n, f=f: f(x, n))(np.ones(3), 0)
    with pytest.raises(ZeroDivisionError):
        s2s.jit(lambda n: np.fft.fftfreq(n))(0)


A = RNG.normal(size=(2, 3))


@pytest.mark.parametrize(
    "f, error, message",
    [
        (
            lambda x: np.fft.rfft(x * 1j),
            s2s.TypeMismatchError,
            "np.fft.rfft of complex128\nInstead: use np.fft.fft",
        ),
        (lambda x: np.fft.fftn(x, axes=(0, -2)), s2s.TypeMismatchError, "names an axis twice"),
        (
            lambda x: np.fft.fftn(x, axes=()),
            s2s.UnsupportedError,
            "a Fourier transform along no axes",
        ),
        (
            lambda x: np.fft.fft(x, axis=None),
            s2s.TypeMismatchError,
            "a Fourier transform along axis=None",
        ),
        (
            lambda x: np.fft.fft(x, norm="unitary"),
            s2s.TypeMismatchError,
            "(?s)norm='unitary'.*\"ortho\"",
        ),
        (lambda x: np.fft.fft2(x, 4), s2s.UnsupportedError, "an s that is no tuple of lengths"),
        (
            lambda x: np.fft.fftn(x, (4,), (0, 1)),
            s2s.TypeMismatchError,
            "along 2 axes, of 1 lengths",
        ),
        (lambda x: np.fft.fft(np.sum(x)), s2s.TypeMismatchError, "a Fourier transform of float64"),
        (
            lambda x: np.fft.fft(x, 2.5),
            s2s.TypeMismatchError,
            "a Fourier transform of float64 numbers",
        ),
        (
            lambda x: np.fft.fft(x.astype(np.float16)),
            s2s.UnsupportedError,
            "a Fourier transform of float16",
        ),
        (
            lambda x: np.fft.fft(x, n_=3),
            s2s.UnsupportedError,
            "fft called like this: fft\\(\\) got an unexpected",
        ),
        (
            lambda x: np.fft.fftfreq(3, x),
            s2s.TypeMismatchError,
            "np.fft.fftfreq with samples float64.* apart",
        ),
        (lambda x: scipy.fft.dct(x, 5), s2s.TypeMismatchError, "scipy.fft.dct of type 5"),
        (
            lambda x: scipy.fft.dct(x, axis=(0, 1)),
            s2s.TypeMismatchError,
            "a cosine transform along axis=",
        ),
        (
            lambda x: scipy.fft.dst(np.sum(x)),
            s2s.TypeMismatchError,
            "a cosine transform of float64",
        ),
        (
            lambda x: scipy.fft.dst(x.astype(np.float16)),
            s2s.UnsupportedError,
            "a cosine transform of float16",
        ),
        (
            lambda x: scipy.fft.dct(x, orthogonalize=True),
            s2s.UnsupportedError,
            "scipy.fft with orthogonalize=",
        ),
        (lambda x: scipy.fft.fft(x, workers=2), s2s.UnsupportedError, "scipy.fft with workers="),
    ],
)
def test_refused(f, error, message):
    with pytest.raises(error, match=message):
        s2s.vjp(f, A)


def test_refused_before_any_call():
    with pytest.raises(s2s.UnsupportedError, match="(?s)along these axes of an array of unknown "
                                                   "rank.*count the axes from the end"):
        _ = s2s.grad(lambda x: np.sum(np.abs(np.fft.rfft(x, axis=0)))).source
    with pytest.raises(
        s2s.UnsupportedError, match="a cosine transform along this axis of an array of unknown rank"
    ):
        _ = s2s.grad(lambda x: np.sum(scipy.fft.dct(x, axis=0))).source
    with pytest.raises(s2s.UnsupportedError, match="np.fft.fftshift of an array of unknown rank"):
        _ = s2s.grad(lambda x: np.sum(np.fft.fftshift(x))).source


def test_not_on_a_gpu():
    function = s2s.jit(power_spectrum).lower(np.ones(5)).function
    with pytest.raises(
        s2s.UnsupportedError, match='(?s)np.fft.rfft, which Python does, in CUDA code.*target="cpu"'
    ):
        render_cuda(pipeline.loops_of(function, "cuda"))
