"""Integers, truth values, float32 and complex numbers as data, mixed by NumPy's rules; gradients
have their arguments' dtypes.
"""

import math

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.5, -1.2, 2.0, -0.3, 1.5, 0.7, -2.2, 3.1])
F = X.astype(np.float32)
N = np.array([1, 2, 0, 3, 1, 4, 2, 2])
Z = np.array([0.5 - 1.2j, 2.0 - 0.3j, 1.5 + 0.7j, -2.2 + 3.1j])

# ------------------------------------------------------------------------ integers and truth values


def counted(x, n, flags):
    hits, k = 0, 0
    for i in range(len(x)):
        k += n[i]
        if flags[i]:
            hits += 1
    return (
        hits * np.sum(x**n) / k
        + flags.mean() * x[n[1]]
        + np.sum((flags + (x < 1)) * x)
        + np.sum(x[flags] * ~flags[flags])
    )


def integers_beside_floats(x):
    n = len(x)
    k = np.arange(n) * 2
    k -= 1
    s = 0
    for v in x:
        s = s + v if v > 0 else 0
    return (
        s * s
        + np.sum(k * x) / (n // 3)
        + (-n // 3) * x[0]
        + 2**n * x[int(x[2])]
        + float(x[4] > 9)
        + bool(x[0] > 0) * x[1]
    )


def narrow_integers(x, pixels):
    """They wrap, as NumPy's do."""
    total = np.sum(x * (pixels * 100)) + np.sum(x * (pixels - 3))
    return total + np.sum((np.arange(8, dtype=np.uint8) * 40) * x)


# ------------------------------------------------------------------------------ float32 and float64


def normalised(x):
    m = x.mean()
    v = np.mean((x - m) ** 2)
    y = (x - m) / np.sqrt(v + 1e-5)
    return np.sum(y**3) + np.std(x) * np.linalg.norm(x)


def filtered(x, a):
    s = 0.0
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = a * y[i - 1] + x[i]
        s += y[i]
    return np.sum(y * y) + s * 0.5


def single_in_double(x, w):
    y = np.zeros(len(x))
    y[:] = x
    y[1:] += x[:-1] * w[1:]
    z = x.copy()
    z += w
    z[2:] -= w[2:] * 0.5
    return np.sum(y * y) + np.sum(z * z) + np.sum(x.astype(np.float64) * w)


def chosen(x):
    s = x[1] if x[0] > 0 else 1.0
    t = 0
    for v in x:
        t = t + v
    eps = np.finfo(x.dtype).eps
    if np.issubdtype(x.dtype, np.floating) and x.dtype.kind == "f":
        t = t * 2
    return s * t + np.sum(np.log(np.abs(x) + eps)) + math.sin(x[2]) + float(x[3]) ** 2


def to_single(x):
    y = x.astype(np.float32)
    return np.sum(y * y)


# ---------------------------------------------------------------------------------- complex numbers


def schroedinger(x):
    """A few split steps of a nonlinear wave."""
    psi = np.exp(1j * x) / np.sqrt(8)
    for _ in range(3):
        psi = psi * np.exp(-0.1j * np.abs(psi) ** 2)
        psi = psi + 0.1j * (np.roll(psi, 1) - 2 * psi + np.roll(psi, -1))
    return np.sum(np.abs(psi) ** 4)


def spectrum(x):
    n = len(x)
    s = 0.0
    for k in range(n):
        acc = 0j
        for t in range(n):
            acc += x[t] * np.exp(-2j * np.pi * k * t / n)
        s += k * abs(acc) ** 2
    return s


def escape(a, b):
    c = complex(a, b)
    z = 0.0
    n = 0
    while abs(z) < 2 and n < 6:
        z = z * z + c
        n += 1
    return abs(z) + (z * z.conjugate()).real


def phases(x):
    z = np.zeros(len(x), dtype=complex)
    for i in range(len(x)):
        z[i] = x[i] * (1 + 2j) + 1j * x[i - 1] ** 2
    z += x
    w = np.where(x > 0, z, 1j * z)
    angles = np.angle(z) * w.imag
    return np.sum(angles) + np.var(z) + np.std(w) + np.linalg.norm(z) + np.vdot(z, w).real


def turned_or_not(x, turn):
    z = x[0]
    if turn > 0:
        z = z * 1j + x[2]
    return (z * z).real + abs(z)


def analytic(z):
    w = np.sqrt(z) + np.log(z) + np.tanh(z) + z**2.5 + 1 / z
    return np.sum(w.real * np.conj(w[::-1]).imag) + abs(np.prod(z)) + abs(z.mean()) ** 2


def of_complex_arguments(z, x):
    w = z[0]
    n = 0
    while abs(w) < 20:
        w = w * w + z[1] * x[0]
        n += 1
    k = np.argmax(np.abs(z))
    return abs(w) * n + abs(z[k]) ** 3 + np.sum(np.abs(np.outer(z, x[:4]) @ z) ** 2)


def complex_result(z):
    return z * np.conj(z[0]) + 1j


FLAGS = X > 0
PROGRAMS = {
    "counted": (counted, X, N, FLAGS),
    "integers_beside_floats": (integers_beside_floats, X),
    "narrow_integers": (narrow_integers, X, N.astype(np.uint8)),
    "normalised": (normalised, F),
    "filtered": (filtered, F, 0.3),
    "filtered by a NumPy number": (filtered, F, np.float32(0.3)),
    "single_in_double": (single_in_double, F, X),
    "chosen": (chosen, F),
    "to_single": (to_single, X),
    "schroedinger": (schroedinger, X),
    "spectrum": (spectrum, X),
    "escape": (escape, 0.1, 0.2),
    "phases": (phases, X),
    "turned": (turned_or_not, X, 1.0),
    "not turned": (turned_or_not, X, -1.0),
    "analytic": (analytic, Z),
    "of_complex_arguments": (of_complex_arguments, Z, X),
    "of single precision": (complex_result, Z.astype(np.complex64)),
    "complex_result": (complex_result, Z),
}


def tolerances(args, name):
    single = name == "to_single" or any(
        np.asarray(x).dtype in (np.float32, np.complex64) for x in args
    )
    return {"rtol": 3e-4, "atol": 3e-4} if single else {}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    f, *args = PROGRAMS[name]
    judge(f, *args, **tolerances(args, name))


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    "name",
    [
        "counted",
        "integers_beside_floats",
        "narrow_integers",
        "filtered",
        "single_in_double",
        "chosen",
        "schroedinger",
        "escape",
        "not turned",
        "of_complex_arguments",
    ],
)
def test_compiled(name):
    f, *args = PROGRAMS[name]
    judge(f, *args, compiled=True, second=name in ("chosen", "escape"), **tolerances(args, name))


# -------------------------------------------------------------------------------------- conventions


def test_gradient_of_a_complex_argument_is_jax_s():
    """d/du - i d/dv of a real function of u + iv: for |z|^2 that is 2 conj(z)."""
    z = 0.5 + 0.3j
    assert s2s.grad(lambda z: abs(z) ** 2)(z) == 2 * z.conjugate()
    np.testing.assert_allclose(s2s.grad(lambda z: np.sum(np.abs(z) ** 2))(Z), 2 * np.conj(Z))
    np.testing.assert_allclose(s2s.grad(lambda z: (z * z).real)(z), 2 * z)


def test_derivatives_have_the_dtypes_of_their_arguments():
    value, (x_bar, a_bar) = s2s.value_and_grad(filtered, argnums=(0, 1))(F, 0.3)
    assert value.dtype == x_bar.dtype == np.float32 and type(a_bar) is float
    assert s2s.grad(to_single)(X).dtype == np.float64
    assert s2s.grad(lambda z: np.sum(np.abs(z)))(Z.astype(np.complex64)).dtype == np.complex64


@pytest.mark.compile
def test_compiled_sums_of_single_precision_are_python_s():
    def total(x):
        s = 0.0
        for v in x:
            s += v * v
        return s

    def plain(x):
        s = 0.0
        for v in x:
            s += v
        return s

    x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    got = s2s.jit(plain)(x)
    assert (
        got == plain(x) != np.float32(np.sum(x.astype(float)))
        and np.asarray(got).dtype == np.float32
    )
    got = s2s.jit(total)(x)
    # a fused multiply-add rounds once, where the processor has it
    assert abs(got - total(x)) <= 1e-6 * got
    assert np.asarray(got).dtype == np.float32


# ----------------------------------------------------------------------------------------- refusals


def floats_into_integers(x):
    k = np.zeros(8, int)
    k += x
    return np.sum(k * x)


def subtracted_truths(x):
    return np.sum(((x > 0) - (x < 1)) * x)


def complex_loss(x):
    return np.sum(1j * x)


def sign_of_complex(x):
    return np.sum(np.sign(x * 1j).real)


def complex_into_floats(x):
    y = np.zeros(8)
    y[2:] = 1j * x[2:]
    return np.sum(y)


def complex_of_complex(x):
    return complex(x[0] * 1j, x[1]).real


REFUSED = [
    (
        floats_into_integers,
        "float64 values cannot be written into an array of int64 in place",
        "make the array of the wider dtype",
    ),
    (
        subtracted_truths,
        "subtract is not defined for bool and bool",
        "convert the operands, with .astype for example",
    ),
    (
        complex_loss,
        "grad needs a function that returns one real number",
        "reduce the result to a real number",
    ),
    (
        sign_of_complex,
        "sign of complex numbers has no derivative",
        "write it with abs and division, as x / abs(x)",
    ),
    (
        complex_into_floats,
        "complex128 values are written into an array of float64",
        "write their .real",
    ),
    (complex_of_complex, "complex() of parts of which one is complex128", "write x + 1j * y"),
]


@pytest.mark.parametrize("f, message, remedy", REFUSED)
def test_refused(f, message, remedy):
    with pytest.raises(s2s.S2SError) as refusal:
        s2s.grad(f)(X)
    text = str(refusal.value)
    assert message in text and remedy in text and "^" in text and "test_dtypes.py" in text


@pytest.mark.lengthy
def test_remedies():
    def wider(x):
        k = np.zeros(8, int).astype(float)
        k += x
        return np.sum(k * x)

    def differing(x):
        return np.sum(((x > 0).astype(int) - (x < 1)) * x)

    def direction(x):
        z = x * 1j + 1
        return np.sum((z / abs(z)).real)

    def of_complex(x):
        return (x[0] * 1j + 1j * x[1]).imag

    def real_parts(x):
        y = np.zeros(8)
        y[2:] = (1j * x[2:] ** 2 + x[2:]).real
        return np.sum(y * x)

    np.testing.assert_allclose(s2s.grad(wider)(X), 2 * X)
    for f in (differing, direction, of_complex, real_parts):
        judge(f, X)


def test_integers_of_two_kinds():
    """A Python integer beside a narrow one stays what it is on its path."""

    def chosen_integer(x, n, k):
        m = k
        if x > 0:
            m = n[1]
        return m * x

    small = N.astype(np.int8)
    assert s2s.grad(chosen_integer)(-1.0, small, 300) == 300
    assert s2s.grad(chosen_integer)(1.0, small, 300) == 2


@pytest.mark.compile
def test_complex_numbers_are_ordered_as_numpy_orders_them():
    z = np.array([1 + 1j, 1, 0, -1j, 2j, np.nan + 1j, complex(1, np.nan), -1 + 5j])
    for f in (
        lambda z: (z > 0) * 1.0,
        lambda z: (z <= 1) * 1.0,
        lambda z: (z >= z[::-1]) * 1.0,
        lambda z: (z < z[::-1]) * 1.0,
    ):
        np.testing.assert_array_equal(s2s.jit(f)(z), f(z))

    def turned(x):
        return x if np.exp(1j * x) > 0 else 2 * x

    assert s2s.jit(s2s.value_and_grad(turned))(2.0) == (4.0, 2.0)
    assert s2s.value_and_grad(turned)(2.0) == (4.0, 2.0)


@pytest.mark.compile
def test_compiled_indices_that_stand_in_arrays_are_checked():
    """Where they are read: nothing else in the function is checked for them, and they count from
    the end.
    """

    def picked(x, rows, columns):
        a = x[rows[:, None], columns]
        y = np.zeros(len(x))
        np.add.at(y, rows, a[:, 0])
        return np.sum(a * a) + np.sum(y * x[:, 1])

    x = np.arange(20.0).reshape(5, 4)
    fast, plain = s2s.jit(s2s.value_and_grad(picked)), s2s.value_and_grad(picked)
    for rows, columns in (
        ([0, 1, 4], [2, 3]),
        ([-1, -5, 0], [-4, 3]),
        ([1, 1, 1], [0, 0]),
        ([], [0, 1]),
    ):
        args = x, np.array(rows, np.int64), np.array(columns)
        np.testing.assert_allclose(fast(*args)[0], plain(*args)[0], rtol=1e-14)
        np.testing.assert_allclose(fast(*args)[1], plain(*args)[1], rtol=1e-14)
    for rows, columns, said in (
        ([0, 5], [1, 1], "index 5 is out of bounds for axis 0 with size 5"),
        ([-6, 0], [1, 1], "index -6 is out of bounds for axis 0 with size 5"),
        ([0, 1], [4, 0], "index 4 is out of bounds for axis 1 with size 4"),
    ):
        for run in (fast, plain):
            with pytest.raises(IndexError, match=said):
                run(x, np.array(rows), np.array(columns))


LEAST = np.array([-2**63, 5])


@pytest.mark.parametrize("f, args", [
    # np.add of Python's numbers is a number of NumPy's
    (lambda x, a: np.add(x, 1.0) * a, (1.0, np.ones(2, np.float32))),
    (lambda x: np.greater(x, 0) + True, (1.0,)),
    (lambda x: np.greater(x, 0) * True, (1.0,)),
    (lambda x: np.power(x, 2.0), (1e200,)),  # and raises nothing
    (lambda x: np.power(x, -1.0), (0.0,)),
    (lambda x: (x > 0) ** 2, (np.array([1.0, -1.0]),)),
    (lambda x: (x > 0) ** 3, (np.array([1.0, -1.0]),)),
])
def test_functions_of_numpys_make_its_numbers(f, args):
    with np.errstate(all="ignore"):
        found, expected = s2s.jvp(f, args, tuple(map(np.zeros_like, args)))[0], f(*args)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args",
    [
        (lambda k: k // -1, (LEAST,)),
        (lambda k, n: k // n, (LEAST, np.array([-1, -2]))),
        (lambda k, n: np.floor_divide(k, n), (LEAST[0], np.int64(-1))),
        (lambda x: (x > 0) ** 2, (np.array([1.0, -1.0]),)),
        (lambda x: np.greater(x, 0) + True, (1.0,)),
        (lambda x: np.bool_(x > 0) * np.bool_(x > 1), (1.5,)),
    ],
)
def test_integers_and_truth_values_in_native_code_are_numpys(f, args):
    with np.errstate(all="ignore"):
        found, expected = s2s.jit(f)(*args), f(*args)
    np.testing.assert_array_equal(found, expected)
    assert np.asarray(found).dtype == expected.dtype
