"""Elements and ranges in native code: written in a short way of our own, they mean what they mean
in Python.
"""

import itertools

import numba
import numpy as np
import pytest

from s2s.runtime.numba.compiler import Effort

pytestmark = pytest.mark.compile


def native(f, **options):
    return numba.njit(f, error_model="numpy", pipeline_class=Effort, **options)


def element(x, i, j):
    return x[i, j], x[j, -1], x[0, i], x[-2, -3]


def written(x, i, j, v):
    x[i, j] = v
    x[-1, j] += v
    x[j, 1] = x[i, j]


KINDS = ["float64", "float32", "complex128", "int32", "uint8", "bool"]
LAYOUTS = [
    lambda x: x,
    np.asfortranarray,
    lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    lambda x: x[::-1, ::-1],
]


@pytest.fixture(scope="module")
def compiled():
    return native(element), native(written)


@pytest.mark.parametrize("dtype", KINDS)
def test_elements_of_any_layout(compiled, dtype):
    x = (np.arange(12).reshape(4, 3) % 5).astype(dtype)
    for layout in LAYOUTS:
        given = layout(x.copy())
        for i, j in itertools.product(range(-3, 3), range(-3, 3)):
            assert compiled[0](given, i, j) == element(given, i, j)
            ours, theirs = layout(x.copy()), layout(x.copy())
            compiled[1](ours, i, j, 1)
            if dtype == "bool":
                theirs[i, j], theirs[-1, j] = True, True
                theirs[j, 1] = theirs[i, j]
            else:
                written(theirs, i, j, np.dtype(dtype).type(1))
            assert np.array_equal(ours, theirs)


def test_indices_of_any_width():
    def f(x, i):
        return x[i]

    fast = native(f)
    x = np.arange(300.0)
    for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        assert fast(x, np.dtype(kind).type(100)) == 100.0
        if kind.startswith("i"):
            assert fast(x, np.dtype(kind).type(-3)) == 297.0
    assert fast(x[:256][::-1], np.uint8(255)) == 0.0


def test_four_axes_and_none_of_length():
    def f(x, y):
        t = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                for k in range(x.shape[2]):
                    for l in range(x.shape[3]):
                        t += x[i, j, k, l] * y[l, k, j, i]
        return t

    fast = native(f)
    x, y = (
        np.random.default_rng(0).normal(size=(2, 3, 4, 5)),
        np.random.default_rng(1).normal(size=(5, 4, 3, 2)),
    )
    for a, b in (
        (x, y),
        (np.asfortranarray(x), y),
        (y.T, x.T),
        (x, x.T.copy()),
        (x[:, :0], y[:, :, :0]),
    ):
        assert np.isclose(fast(a, b), f(a, b), rtol=1e-13)


def trips(a, b, step):
    t, n = 0, 0
    for i in range(a, b, step):
        n += 1
        t = t * 31 + i
    return n, t


@pytest.mark.parametrize("step", [1, 2, 3, 5, -1, -2, -7])
def test_ranges_of_a_known_step(step):
    fast = native(eval(f"lambda a, b: trips(a, b, {step})", {"trips": native(trips)}))
    text = {}
    exec(f"def f(a, b):\n    t, n = 0, 0\n    for i in range(a, b, {step}):\n        n += 1\n"
         f"        t = t * 31 + i\n    return n, t\n", text)
    known = native(text["f"])
    for a, b in itertools.product(range(-6, 7), repeat=2):
        assert known(a, b) == fast(a, b) == text["f"](a, b)


def test_ranges_that_are_stopped_and_begun_again():
    def f(n, m):
        t = 0
        for i in range(n):
            for j in range(i):
                if j == m:
                    break
                t += i * j
            else:
                t += 1000
            for i in range(2):
                t += i
        return t, i

    fast = native(f)
    for n, m in itertools.product((1, 2, 5), range(4)):
        assert fast(n, m) == f(n, m)


def test_a_step_of_zero_raises():
    with pytest.raises(ValueError, match="must not be zero"):
        native(trips)(0, 3, 0)


def test_code_that_checks_indices_checks_them():
    fast = native(element, boundscheck=True)
    x = np.arange(12.0).reshape(4, 3)
    assert fast(x, 1, 2) == element(x, 1, 2)
    with pytest.raises(IndexError):
        fast(x, 1, 3)
    with pytest.raises(IndexError):
        fast(x, 1, -4)


def test_what_is_written_in_one_call_of_an_array_expression():
    def f(x, n):
        y = x * 2.0 + n
        return [k * y[k] for k in range(n)], np.exp(y)

    made, exponents = native(f)(np.arange(4.0), 3)
    assert made == [0.0, 5.0, 14.0] and np.allclose(exponents, np.exp(np.arange(4.0) * 2.0 + 3))


def test_functions_that_native_code_alone_calls():
    def raising(k):
        if k > 3:
            raise ValueError("more than three")
        return k * 2

    called = native(raising, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    fast = native(eval("lambda k: raising(raising(k))", {"raising": called}))
    assert fast(1) == 4
    with pytest.raises(ValueError, match="more than three"):
        fast(2)
    (part,) = [overload.library for overload in called.overloads.values()]
    (whole,) = [overload.library for overload in fast.overloads.values()]
    assert part.is_part and not whole.is_part


def test_functions_that_call_one_another():
    text = {}
    exec("def even(n):\n    if n == 0:\n        return True\n    return odd(n - 1)\n\n"
         "def odd(n):\n    if n == 0:\n        return False\n    return even(n - 1)\n", text)
    for name in ("even", "odd"):
        text[name] = native(text[name], no_cpython_wrapper=True, no_cfunc_wrapper=True)
    fast = native(eval("lambda n: even(n)", text))
    assert [fast(n) for n in range(5)] == [True, False, True, False, True]
