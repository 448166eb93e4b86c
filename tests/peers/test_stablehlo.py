"""`s2s.to_stablehlo`: its text, compiled by XLA, does what NumPy does, and gradients what s2s's do.
"""

from __future__ import annotations

import math

import numpy as np
import programs
import pytest

import s2s
from s2s.interop.leaf_program import flatten
from s2s.interop.stablehlo import is_parameter

GROWING = {"settle", "newton", "bisection", "return_from_nest", "while_with_break"}


@pytest.fixture(scope="module")
def run(jax):
    """Run a text on arrays."""
    from jax.extend.backend import get_backend
    from jaxlib import xla_client

    backend = get_backend("cpu")
    options = xla_client.CompileOptions()

    def run(text, arrays):
        compiled = (backend.compile_and_load(text, backend.devices()[:1], options)
                    if hasattr(backend, "compile_and_load") else backend.compile(text, options))
        return [np.asarray(x) for x in
                compiled.execute([jax.device_put(np.asarray(x)) for x in arrays])]

    return run


def leaves(x):
    found: list = []
    flatten(x, found)
    return found


def agree(run, t, args, expected, rtol=1e-12, atol=1e-13):
    """The text of `t` computes what is expected, with NumPy's dtypes."""
    found = run(s2s.to_stablehlo(t, *args), [x for x in leaves(args) if is_parameter(x)])
    for k, (got, wanted) in enumerate(zip(found, leaves(expected), strict=True)):
        assert (got.dtype, got.shape) == (np.asarray(wanted).dtype, np.shape(wanted)), k
        assert np.allclose(got, wanted, rtol=rtol, atol=atol, equal_nan=True), k


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda p: p.name)
def test_programs_and_their_gradients(run, program):
    f, args = program.function, program.args
    if program.name in GROWING:  # reverse mode needs a list that grows; forward mode does not
        dots = [np.ones_like(x) if k in program.wrt else x for k, x in enumerate(args)]
        t, args = s2s.jvp(f), (*args, *(x.item() if np.ndim(x) == 0 else x for x in dots))
    elif program.name in programs.MORE_RESULTS:
        t = s2s.jacrev(f, argnums=program.wrt)
    else:
        t = s2s.value_and_grad(f, argnums=program.wrt)
    agree(run, t, args, t(*args), 1e-10, 1e-12)


def floats(x, y):
    return [
        x + y, x - y, x * y, x / y, x // y, x % y, np.fmod(x, y), x**2, x**0.5, abs(x)**y, x**3, -x,
        np.exp(x), np.exp2(x), np.expm1(x), np.log(abs(x)), np.log2(abs(x)), np.log10(abs(x)),
        np.log1p(abs(x)), np.cbrt(x), np.square(x), np.reciprocal(x), np.sin(x), np.cos(x),
        np.tan(x), np.tanh(x), np.arctan2(x, y), np.arctan(x), np.degrees(x), np.arcsin(x / 8),
        np.arccos(x / 8), np.sinh(x), np.cosh(x), np.arcsinh(x), np.arccosh(abs(x) + 1.5),
        np.arctanh(x / 8), np.logaddexp(x, y), np.hypot(x, y), np.maximum(x, y), np.minimum(x, y),
        np.fmax(x, y), np.fmin(x, y), np.where(x > y, x, 0), np.clip(x, -1, 2), np.sign(x),
        np.floor(x), np.ceil(x), np.trunc(x), np.rint(x), np.isnan(x), np.isinf(x), np.isfinite(x),
        x < y, x <= y, x == y, x != y, (x > 0) & (y > 0), (x > 0) | (y > 0), ~(x > 0),
        np.logical_xor(x, y), np.logical_not(x), x.astype(bool), x.astype(np.float16), x * True,
        np.float32(2) * x, np.nanmax(x), np.max(x), np.argmax(x), np.nanmin(x), np.sum(x > 0)
    ]


def integers(x, y):
    return [
        x + y, x - y, x * y, x / y, x // y, x % y, np.fmod(x, y), x**2, -x, abs(x), np.sign(x),
        np.maximum(x, y), x & y, x | y, x ^ y, ~x, x < y, x == y, np.sqrt(abs(x)), np.floor(x),
        x.astype(np.float32), x.astype(np.uint8), x + 1.5, np.isfinite(x), np.clip(x, 0, 2),
        np.sum(x), np.prod(x), np.min(x), np.argmin(x), np.cumsum(x), np.cumprod(x), np.mean(x),
        np.any(x), np.all(x), np.max(x > 0), x @ y, np.bincount(np.array([1, 1, 0]))
    ]


def complexes(x, y):
    return [
        x + y, x * y, x / y, abs(x), np.conj(x), x.real, x.imag, np.exp(x), np.sqrt(x), x == y,
        np.sin(x), x**2, np.sum(x), x @ y, np.log(x), x.astype(np.complex64), x * 2.0,
        np.where(x == y, x, y)
    ]


def numbers(x, n):
    return [
        math.sin(x), math.floor(x), int(x), float(n), n // 2, n % 3, -n // 2, -n % 3,
        x if x > n else n * 1.0, max(x, 1.0), min(x, 5.0), math.sqrt(n), not x, bool(n), n**2,
        round(x), x // 0.4, x % 0.4
    ]


X = np.array([-2.5, 0.0, 1e-9, 0.5, 3.0, np.inf, np.nan, 1.0, -3.0, 7.25, -np.inf])
Y = np.array([2.0, 0.5, -0.3, 0.0, 1.0, 1.0, 0.1, 0.1, -0.7, -2.0, -np.inf])
I, J = np.array([-7, 0, 3, 8, 5, 1]), np.array([2, 3, -2, 0, -3, 1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f, args", [
    (floats, (X, Y)), (floats, (X.astype(np.float32), Y.astype(np.float32))),
    (integers, (I, J)), (integers, (I.astype(np.int8), J.astype(np.int8))),
    (integers, (abs(I).astype(np.uint8), abs(J).astype(np.uint8))),
    (complexes, (np.array([1 + 2j, -0.5j, 3.0]), np.array([0.5 - 1j, 1 + 1j, 3.0]))),
    (numbers, (np.float64(2.7), np.int64(7))),
], ids=lambda x: getattr(x, "__name__", None) or str(x[0].dtype))
def test_elements_are_numpys(run, f, args):
    is_single = args[0].dtype.itemsize < 8 and args[0].dtype.kind == "f"
    with np.errstate(all="ignore"):
        expected = f(*args)
    agree(run, f, args, expected, 2e-6 if is_single else 1e-12)


def accesses(x, i, k, b, v):
    y = x.copy()
    y[i, i[::-1]] = v  # the last of equal places stays
    y[k] = x[k - 1] * 2
    y[1:3, ::2] = 7.0
    y[-k, 1:] += 1.0
    np.add.at(y, i, 0.5)
    y[b] = 0.0
    z = np.zeros((3, 4, 5))
    z[1, :, k] = x[:, 1]
    z[::2, [0, 0, 2]] += x[0, k]
    return [
        y, z, x[i], x[:, i], x[i, 1], x[i[:, None], i], x[k, 1:], x[::-1, ::-2],
        x[1:, k], x[::2, None, k], np.roll(x, 1, 0)[::-1].T, x.reshape(2, 2, 5)[:, ::-1].sum(1),
        np.repeat(x, 2, 0), np.tile(x[0], (2, 1)), np.triu(x), np.diagonal(x[:, :4]),
        np.concatenate([x, x[:1] * 2]), np.stack([x[0], x[1]], 1), np.array([x[0, 0], 2.0, v[1]]),
        np.take_along_axis(x[:, :4], i[None, :] * 0 + k, 0), np.outer(x[0], v),
        np.einsum("ij,kj->ik", x, x), np.dot(x, x.T), np.stack([x, x]) @ x.T, x[0] @ x.T,
        np.linalg.norm(x, axis=1), np.var(x, axis=0), np.sort(np.array([3, 1, 2])) + k,
        np.cumsum(x, axis=1), np.max(x, axis=0, keepdims=True), np.argmax(x, axis=1), x.size
    ]


def test_indices_and_shapes_are_numpys(run):
    args = (programs.wave(4, 5), np.array([1, -1, 1, 0]), np.int64(2),
            np.array([True, False, False, True]), np.array([1.0, 2.0, 3.0, 4.0]))
    agree(run, accesses, args, accesses(*args))


def systems(A, b, z):
    S = A @ A.T + np.eye(5) * b[0] ** 2
    L = np.linalg.cholesky(S)
    return [
        np.linalg.solve(A, b), np.linalg.solve(A, A[:, :2]), np.linalg.inv(S), L,
        np.sum(np.log(np.diag(L))) + b @ np.linalg.solve(L.T, np.linalg.solve(L, b)),
        np.sort(A, axis=0), np.argsort(b), np.median(A, axis=1), np.quantile(b, 0.3),
        np.fft.rfft(b), np.fft.irfft2(np.fft.rfft2(A[:4, :4])), np.fft.fft(A, axis=0),
        np.fft.ifft(z, norm="forward"), np.fft.fft2(np.outer(z, b), norm="ortho")
    ]


def test_systems_sorting_and_fourier_transforms(run):
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(5, 5)), rng.normal(size=5)
    args = A, b, b[:4] + 1j * b[1:]
    agree(run, systems, args, systems(*args), 1e-10, 1e-12)

    def cost(A, b):
        L = np.linalg.cholesky(A @ A.T + np.eye(5))
        x = np.sort(np.linalg.solve(L.T, np.linalg.solve(L, b)))
        return x @ b + np.sum(np.abs(np.fft.rfft(x)) ** 2) + np.sum(np.linalg.inv(A))

    t = s2s.grad(cost, argnums=(0, 1))
    agree(run, t, (A, b), t(A, b), 1e-9, 1e-11)


def stairs(x, n):
    """Slices that grow with the trips, a list, and a break."""
    parts, best, at = [], 0.0, 0.0
    for i in range(1, n):
        parts.append(np.sum(x[:i] ** 2))
    for v in x:
        if v > best:
            best = v
            at = v * 2
        if best > 1.9:
            break
    return parts, best + at


def test_trips_of_unlike_lengths_are_written_out(run):
    x = np.array([0.5, 1.5, 0.2, 2.0, 3.0])
    text = s2s.to_stablehlo(stairs, x, 4)
    assert text.count("stablehlo.while") == 1 and text.count("[0:3]") == 1
    agree(run, stairs, (x, 4), stairs(x, 4))


def test_derivatives_of_derivatives_and_lanes(run):
    def f(x, A):
        h = np.tanh(A @ x)
        for k in range(2):
            h = h * np.sin(h + x[k])
        return np.sum(h**2)

    x, A = programs.wave(3), programs.wave(3, 3, phase=0.7)
    for t, args in ((s2s.hessian(f), (x, A)), (s2s.hvp(f), (x, A, x, 0 * A)),
                    (s2s.vmap(s2s.grad(f), in_axes=(0, None)), (A, A))):
        agree(run, t, args, t(*args))
