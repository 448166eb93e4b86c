"""Functions of complex numbers in native code are NumPy's at every number: infinite, nan, huge,
tiny, and on both sides of branch cuts.
"""

import cmath

import numpy as np
import pytest
from llvmlite import binding

import s2s
from s2s.runtime.intrinsics import complex_math
from s2s.runtime.numba import native_module

pytestmark = pytest.mark.compile

OF_ONE = sorted(f.__name__ for f in complex_math.FUNCTIONS - {np.power})
OTHERS = [
    "z / w",
    "z / 3.0",
    "z / np.real(w)",
    "z / 0.0",
    "np.abs(z) + 0j",
    "1 / z",
    "np.divide(z, 2)",
    "z ** w",
    "z ** 3",
    "np.power(2.0, z)",
    "np.exp(1j * z)",
    "z.conj() / z",
]
TEXTS = [f"np.{name}(z)" for name in OF_ONE] + OTHERS
# their sums of products round once: what underflows is a zero of either sign
FUSED = ("z / w", "z.conj() / z")
every = s2s.from_source(f"def every(z, w):\n    return {', '.join(TEXTS)}\n", {"np": np})


def special(dtype: str) -> np.ndarray:
    """Numbers of every pair of special parts."""
    f = np.finfo(dtype)
    sizes = [
        0.0,
        f.smallest_subnormal,
        f.tiny,
        f.eps,
        0.5,
        1.0,
        1 + f.eps,
        np.pi / 2,
        22.0,
        100.0,
        400.0,
        710.4,
        1000.0,
        f.max**0.5,
        f.max / 2,
        f.max,
        np.inf,
        np.nan,
    ]
    parts = np.array([sign * x for x in sizes for sign in (1, -1)], f.dtype)
    z = np.empty((len(parts), len(parts)), dtype)
    z.real, z.imag = parts[:, None], parts
    random = np.random.default_rng(5)
    return np.append(
        z,
        (random.normal(size=300) + 1j * random.normal(size=300))
        * 10.0 ** random.uniform(-8, 3, 300),
    ).astype(dtype)


def agree(z, w) -> None:
    with np.errstate(all="ignore"):
        found, expected = s2s.jit(every)(z, w), every(z, w)
    for text, x, y in zip(TEXTS, found, expected, strict=True):
        x, y = np.atleast_1d(x, y)
        assert x.dtype == y.dtype, text
        x, y = (np.stack([a.real, a.imag]) for a in (x, y))
        bound = 8 * np.finfo(y.dtype).eps * np.where(np.isfinite(y), np.abs(y), 0).max(0)
        near = np.isfinite(x) & np.isfinite(y)
        with np.errstate(invalid="ignore"):
            near &= np.abs(x - y) <= bound
        same = (
            (x == y) & (np.signbit(x) == np.signbit(y))
            | np.isnan(x) & np.isnan(y)
            | near & ((x != y) | (text in FUSED))
        )
        wrong = ~same.all(0)
        assert not wrong.any(), (
            text,
            np.atleast_1d(z)[wrong][:3],
            x[:, wrong][:, :3],
            y[:, wrong][:, :3],
        )


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_every_function_at_special_numbers(dtype):
    z = special(dtype)
    agree(z, np.random.default_rng(3).permutation(z))


def test_single_numbers():
    for z in (400 + 1j, -0.0 + 0j, complex(np.inf, 0.0), 710.4 - 1e-300j, 800j, complex(-2, -0.0)):
        agree(np.complex128(z), np.complex128(1.5 - 2j))


def test_python_numbers_divide_as_python():
    f = s2s.jit(lambda z: 2.0 / z)
    assert f(4j) == -0.5j
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        f(0j)


@pytest.mark.parametrize(
    "f, z, error",
    [
        (lambda z: z**-2, 0j, ZeroDivisionError),
        (lambda z: z ** (z + 1j), 0j, ZeroDivisionError),
        (lambda z: cmath.log(z), 0j, ValueError),
    ],
)
def test_python_numbers_raise_as_python(f, z, error):
    compiled = s2s.jit(f)
    assert compiled(z + 2) == pytest.approx(f(z + 2), rel=1e-15)
    with pytest.raises(error):
        f(z)
    with pytest.raises(error):
        compiled(z)


def test_a_division_by_zero_stays_in_compiled_code():
    f = s2s.jit(lambda z: 1 / z)
    z = np.array([0j, 2 + 0j])
    with np.errstate(all="ignore"):
        assert np.array_equal(f(z), 1 / z, equal_nan=True)
        # which does not ask Python when it raises
        assert np.array_equal(native_module._entries[-1](z), 1 / z, equal_nan=True)


def test_derivatives():
    f = s2s.from_source(
        "def f(z):\n"
        "    return np.tanh(z) * np.exp(-z) + np.log(z) ** 3 + np.arctanh(z / 2000) / z\n",
        {"np": np},
    )
    z = np.array([400 + 1j, 0.3 - 2j, -1.5 + 0j, complex(-1.5, -0.0)])
    slope = s2s.vmap(s2s.grad(f, holomorphic=True))
    np.testing.assert_allclose(s2s.jit(slope)(z), slope(z), rtol=1e-13)
    assert s2s.jit(s2s.grad(lambda z: np.tanh(z), holomorphic=True))(400 + 1j) == 0


def test_symbols_have_their_meaning_before_code_from_the_cache_is_linked():
    name = complex_math.symbol("loop", "log1p", "F")
    complex_math.provide(["numba_xxgemm", name])
    assert binding.address_of_symbol(name) == complex_math.loop_of("log1p", "F")[0]


def test_numpy_keeps_all_these_loops():
    assert all(
        complex_math.loop_of(f.__name__, letter) for f in complex_math.FUNCTIONS for letter in "FD"
    )
