"""Vector math: at most 4 ulp from the truth for every argument, the same in every lane, and called
where it pays.
"""

import re

import numpy as np
import pytest
from llvmlite import binding
from numba import njit

import s2s
from s2s.back.loop_pipeline import lower
from s2s.back.loops.vectorise_calls import vectorise_calls
from s2s.back.print.printer import render
from s2s.ops.core.record import RECORDS
from s2s.runtime.kernels import vector_math
from s2s.runtime.kernels.vector_math import native

mpmath = pytest.importorskip("mpmath")

PRECISE = np.longdouble
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    1e-300,
    -1e-300,
    5e-324,
    -5e-324,
    2.0**-1022,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    709.78,
    709.79,
    -708.4,
    -745.1,
    -745.2,
    710.4,
    710.5,
    88.7,
    88.8,
    -87.4,
    -103.9,
    -104.0,
    np.pi,
    np.pi / 2,
    -np.pi / 4,
    1e22,
    4194304.0,
    4194305.0,
    1e5,
    0.9999999999999999,
    1.0000000000000002,
    22.0,
    40.0,
    -37.5,
    6.0,
    27.0,
    26.5,
    1.0 - 2.0**-24,
    2.0**-126,
    2.0**-149,
    3.4e38,
]
LOGARITHMS = ("log", "log2", "log10")


def viewed_by_mpmath(function):
    def compute(xs):
        with mpmath.workprec(120):
            return np.array(
                [
                    PRECISE(
                        mpmath.nstr(function(mpmath.mpf(float(x))), 25, min_fixed=1, max_fixed=0)
                    )
                    for x in xs
                ]
            )

    def at(xs):
        y = np.full(xs.shape, np.nan, PRECISE)
        inside = np.abs(xs) < 40
        y[inside] = compute(xs[inside])
        far = np.abs(xs) >= 40
        y[far] = [
            PRECISE(float(function(mpmath.mpf(100 * np.sign(float(x))))))
            if abs(x) < np.inf
            else float(function(mpmath.mpf(float(x))))
            for x in xs[far]
        ]
        return y

    return at


TRUTH = {
    "expit": lambda x: np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x))),
    "erf": viewed_by_mpmath(mpmath.erf),
    "erfc": viewed_by_mpmath(lambda x: mpmath.erfc(x) if x < 99 else mpmath.mpf(0)),
}
NAMES = sorted(vector_math.FUNCTIONS)
needs_long = pytest.mark.skipif(
    np.finfo(PRECISE).nmant < 60, reason="long double is double on this platform"
)


def arguments(name, dtype, count, seed=0):
    """Random bits, numbers of every size, those near which a function is hard, and special ones;
    pairs for two.
    """
    rng = np.random.default_rng(seed)
    bits = np.uint64 if dtype == np.float64 else np.uint32

    def column():
        found = [rng.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(dtype)]
        found += [
            rng.normal(size=count) * size for size in (1e-8, 1e-3, 0.1, 1.0, 10.0, 100.0, 1000.0)
        ]
        found += [
            1 + rng.normal(size=count) * 1e-4,
            rng.uniform(0.5, 2.0, count),
            rng.uniform(-8.0, 8.0, count),
        ]
        turns = np.concatenate([rng.integers(-200, 200, count), rng.integers(-2**21, 2**21, count)])
        found.append((turns * PRECISE(np.pi / 2) + turns * PRECISE(6.123233995736766e-17)))
        with np.errstate(all="ignore"):
            return np.concatenate([np.asarray(x).astype(dtype) for x in (*found, SPECIAL)])

    a = column()
    if name not in vector_math.OF_TWO:
        return (a,)
    b = rng.permutation(column())
    b[::7] = a[::7]
    if name == "power":
        a = np.where(rng.random(len(a)) < 0.9, np.abs(a), a)
        b[::3] = rng.uniform(-20, 20, len(b[::3]))
    if name == "logaddexp":
        a[::2] = 0
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL).astype(dtype)
    return np.concatenate([a, np.repeat(special, len(special))]), np.concatenate(
        [b, np.tile(special, len(special))]
    )


def truth(name, args):
    with np.errstate(all="ignore"):
        return TRUTH.get(name, getattr(np, name, None))(*(x.astype(PRECISE) for x in args))


def errors(name, y, args):
    """How far y is from the truth, in units of its last place; of a sum that cancels, of its terms'
    last place.
    """
    exact, dtype = truth(name, args), y.dtype
    with np.errstate(all="ignore"):
        nearest = exact.astype(dtype)
        size = np.abs(np.where(np.isfinite(nearest), nearest, 1))
        if name == "logaddexp":
            apart = np.minimum(np.abs(args[0] - args[1]), 700)
            terms = np.maximum(np.abs(np.maximum(*args)), apart * np.exp(-apart))
            size = np.fmax(size, np.where(np.isfinite(terms), terms, 0)).astype(dtype)
        unit = np.maximum(
            np.spacing(size).astype(PRECISE), PRECISE(np.finfo(dtype).smallest_subnormal)
        )
        found = np.abs(y.astype(PRECISE) - exact) / unit
    alike = (y == nearest) | (np.isnan(y) & np.isnan(nearest))
    found[alike & ~np.isfinite(nearest)] = 0
    found[np.isnan(found)] = np.inf
    signed = (
        (exact == 0) & (y == 0) & (np.signbit(y) != np.signbit(nearest))
        if name not in ("maximum", "minimum", "erf")
        else False
    )
    return np.where(signed, np.inf, found)


def assert_close(name, y, args):
    found = errors(name, y, args)
    worst = int(np.argmax(found))
    assert found[worst] <= 4, (
        f"{name}({', '.join(repr(x[worst]) for x in args)}) is {y[worst]!r}: "
        f"{float(found[worst]):.3g} ulp"
    )


@needs_long
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_algorithm_without_fused_products(name, dtype):
    args = arguments(name, dtype, 40 if name.startswith("erf") else 1500)
    with np.errstate(all="ignore"):
        y = vector_math.FUNCTIONS[name][0](*args)
    assert y.dtype == dtype
    assert_close(name, y, args)


def loop_over(name):
    function = getattr(vector_math, f"vector_{name}")
    if name in vector_math.OF_TWO:
        def loop(a, b, y):
            for i in range(len(y)):
                y[i] = function(a[i], b[i])
    else:
        def loop(a, y):
            for i in range(len(y)):
                y[i] = function(a[i])
    return njit(loop, error_model="numpy", fastmath={"contract"})


@needs_long
@pytest.mark.compile
@pytest.mark.parametrize("name", NAMES)
def test_compiled_is_vectorised_accurate_and_the_same_in_every_lane(name):
    loop = loop_over(name)
    for dtype in (np.float64, np.float32):
        args = arguments(name, dtype, 40 if name.startswith("erf") else 5000, seed=1)
        y = np.empty_like(args[0])
        loop(*args, y)
        assert_close(name, y, args)
        for shift in (1, 3, 6):  # elsewhere in a vector, or left over at the end
            again = np.empty_like(y[shift:])
            loop(*(x[shift:] for x in args), again)
            np.testing.assert_array_equal(again, y[shift:])
        kind = "double" if dtype == np.float64 else "float"
        assert re.search(rf"<\d+ x {kind}>", loop.inspect_llvm(loop.signatures[-1]))


@pytest.mark.compile
def test_function_with_a_branch_inside_an_if():
    sin, power = vector_math.vector_sin, vector_math.vector_power

    @njit(error_model="numpy")
    def loop(x, y):
        for i in range(len(x)):
            if x[i] > 0:
                y[i] = sin(x[i]) + power(x[i], 1.5)
            else:
                y[i] = x[i]

    x = np.random.default_rng(0).normal(size=1003) * 10
    x[100], x[101], x[500], x[502] = 1e300, np.inf, np.nan, -0.0
    y = np.empty_like(x)
    loop(x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y, np.where(x > 0, np.sin(x) + np.abs(x)**1.5, x), rtol=1e-12)


@pytest.mark.parametrize(
    "triple", ["aarch64-apple-darwin", "aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc"]
)
def test_code_for_other_machines(triple, monkeypatch):
    monkeypatch.setattr(native, "has", lambda feature: False)
    native.text_of.cache_clear()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(triple).create_target_machine()
    for name in ("exp", "sin", "power"):
        algorithm, arity = vector_math.FUNCTIONS[name][0], 2 if name in vector_math.OF_TWO else 1
        module = binding.parse_assembly(
            native.text_of(algorithm, f"s2s_{name}", "double", arity)[0]
        )
        module.verify()
        module.triple, module.data_layout = triple, str(machine.target_data)
        assert f"s2s_{name}" in machine.emit_assembly(module)
    native.text_of.cache_clear()


def test_every_name_in_the_table_of_ops_is_there():
    names = {record.vector for record in RECORDS.values()} - {""}
    assert names == set(vector_math.FUNCTIONS)
    assert set(vector_math.__all__) <= set(vars(vector_math))


def test_functions_can_be_called_in_python():
    assert vector_math.vector_exp(1.5) == np.exp(1.5)
    assert vector_math.vector_arctan2(1.0, -2.0) == np.arctan2(1.0, -2.0)


# ------------------------------------------------------------------------------- where it is called


def compiled_text(f, *args):
    function = s2s.jit(f).lower(*args).function
    return render(vectorise_calls(lower(function)), native=True).text


X = np.linspace(0.1, 1.0, 20)


def test_loop_over_an_array_calls_vector_math():
    text = compiled_text(lambda x: np.sum(np.exp(x) * np.tanh(x)) + np.max(x), X)
    assert "vector_exp(x[i]) * vector_tanh(x[i])" in text
    assert re.search(r"(total\w*) = vector_maximum\(\1, x\[i\]\)", text)


def test_loop_along_any_axis_of_what_it_writes_calls_vector_math():
    def layer(w, b, x):
        z = x @ w + b
        y = np.where(z > 0, z, np.expm1(z))
        return np.sum(y * y)

    text = compiled_text(
        s2s.grad(layer, argnums=(0, 1)), np.ones((4, 3)), np.ones(3), np.ones((5, 4))
    )
    assert "vector_expm1(" in text and "np.expm1" not in text

    def turned(x):
        y = np.empty((x.shape[1], x.shape[0], 2))
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[j, i, 0] = np.exp(x[i, j])
                y[j, i, 1] = -y[j, i, 0]
        return y

    def from_the_left(x):
        y = np.zeros(x.shape)
        for i in range(x.shape[0]):
            for j in range(1, x.shape[1]):
                y[i, j] = np.exp(x[i, j] - y[i, j - 1])
        return y

    assert "vector_exp(" in compiled_text(turned, np.ones((4, 9)))
    assert "vector_" not in compiled_text(from_the_left, np.ones((4, 9)))


def test_recurrence_stays_with_libm():
    def recurrence(x, n):
        for _ in range(n):
            x = np.sin(x) + 0.1
        return x

    def neighbours(x):
        y = x.copy()
        for i in range(1, len(x)):
            y[i] = np.exp(-y[i - 1]) * x[i]
        return y

    assert "vector_" not in compiled_text(recurrence, 1.0, 10)
    assert "vector_" not in compiled_text(neighbours, X)


def test_single_number_stays_with_libm():
    assert "vector_" not in compiled_text(lambda x: np.exp(x) * np.tanh(x), 1.0)


def test_powers_that_are_products_stay_operators():
    assert "vector_" not in compiled_text(lambda x: x**2 + x**2.0 + x**3, X)
    assert "vector_power(x[i], 2.5)" in compiled_text(lambda x: x**2.5, X)


def test_complex_numbers_and_integers_stay_with_numpy():
    assert "vector_" not in compiled_text(lambda x: np.exp(x * 1j), X)
    assert "vector_" not in compiled_text(lambda n: np.exp(n), np.arange(5))


@pytest.mark.compile
def test_gradient_compiled_agrees_with_interpreted():
    def loss(x, w):
        z = np.tanh(x * w) + np.log1p(np.exp(x)) - np.arctan2(x, w)
        return np.sum(np.sin(z) * np.cos(z * w) + np.sqrt(z * z) ** 1.5) + np.log(
            np.sum(np.exp(z - np.max(z)))
        )

    x = np.random.default_rng(0).normal(size=101)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 2e-4)):
        a, b = x.astype(dtype), x[::-1].astype(dtype)
        gradient = s2s.grad(loss, argnums=(0, 1))
        for fast, plain in zip(s2s.jit(gradient)(a, b), gradient(a, b)):
            assert fast.dtype == dtype
            np.testing.assert_allclose(fast, plain, rtol=tolerance, atol=tolerance)


def test_few_numbers_are_libms_but_for_tanh():
    """One at a time, libm's tanh takes twice as long as ours, its exp no longer."""
    def f(x):
        y = np.zeros(4)
        for i in range(4):
            y[i] = np.exp(x * i) * np.tanh(x * i)
        return y

    text = compiled_text(f, 0.5)
    assert "np.exp(" in text and "vector_tanh(" in text and "np.tanh" not in text
