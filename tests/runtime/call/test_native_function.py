"""Native code: results, layouts, errors."""

import itertools
import warnings
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

import s2s
from s2s.errors import S2SError
from s2s.runtime.call.plain_function import PlainNumbaWarning
from s2s.runtime.entry.boundary import CompileError, InterpretedWarning, one_line_message

pytestmark = pytest.mark.compile


def test_layouts_and_read_only_arrays():
    def f(x):
        return np.sum(x * x, axis=0)

    fast = s2s.jit(f)
    x = np.arange(12.0).reshape(3, 4)
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (x, x.T.copy().T, x[:, ::2], x[::-1], frozen):
        np.testing.assert_allclose(fast(given), f(given))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32])
def test_products_of_small_integers_are_small_integers(dtype):
    def f(a, b):
        return a @ b, b @ b, np.dot(b, b), np.tensordot(a, b, 1), a @ a.T

    a, b = np.array([[100, 99, 0], [3, 7, 100]]).astype(dtype), np.array([100, 2, 77]).astype(dtype)
    for found, expected in zip(s2s.jit(f)(a, b), f(a, b)):
        np.testing.assert_array_equal(found, expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype or np.ndim(expected) == 0


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_shifts_by_more_places_than_there_are(dtype):
    def f(a, by):
        return a << by, a >> by, a << by[0], a[0] >> by, np.sign(a)

    a, by = np.array([1, 100, 200, 7, 9]).astype(dtype), np.array([3, 64, 7, 8, -1]).astype(dtype)
    for found, expected in zip(s2s.jit(f)(a, by), f(a, by)):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def test_negative_powers_of_integers_are_errors_in_arrays_too():
    fast = s2s.jit(lambda a, k: a**k)
    np.testing.assert_array_equal(fast(np.array([3, -2]), np.array([0, 5])), [1, -32])
    with pytest.raises(ValueError, match="negative integer powers"):
        fast(np.array([3, 2]), np.array([3, -2]))


def test_nothing_is_compiled_where_numba_is_told_so(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)

    def f(x, p):
        return np.sum(x * x) * p["a"]

    x, p, out = np.arange(3.0), {"a": 2.0}, np.empty(3)
    assert s2s.jit(f)(x, p) == 10.0
    np.testing.assert_array_equal(s2s.jit(s2s.grad(s2s.jit(f)))(x, p, out=out), 4 * x)
    np.testing.assert_array_equal(out, 4 * x)
    value, pullback = s2s.vjp(s2s.jit(f), x, p)
    np.testing.assert_array_equal(pullback(1.0)[0], 4 * x)


def test_arguments_are_not_changed():
    def f(x):
        x[0] = 7.0
        return np.sum(x)

    x = np.ones(3)
    assert s2s.jit(f)(x) == 9.0
    assert x[0] == 1.0


def dot(x, y):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


def test_index_out_of_range_names_the_line():
    fast = s2s.jit(dot)
    assert fast(np.ones(3), np.ones(3)) == 3.0
    assert fast(np.ones(3), np.ones(5)) == 3.0
    with pytest.raises(IndexError, match="index 2 is out of bounds") as caught:
        fast(np.ones(3), np.ones(2))
    assert any(
        "total += x[i] * y[i]" in note
        for note in getattr(caught.value, "__notes__", ["total += x[i] * y[i]"])
    )


@pytest.mark.parametrize("index, expected", [(-1, 3.0), (0, 1.0), (3, None), (-4, None)])
def test_index_given_as_argument(index, expected):
    fast = s2s.jit(lambda x, k: x[k] * 1.0)
    x = np.array([1.0, 2.0, 3.0])
    if expected is None:
        with pytest.raises(IndexError):
            fast(x, index)
    else:
        assert fast(x, index) == expected


def test_index_from_data():
    fast = s2s.jit(lambda x, i: np.sum(x[i]))
    assert fast(np.arange(4.0), np.array([1, -1])) == 4.0
    with pytest.raises(IndexError):
        fast(np.arange(4.0), np.array([1, 4]))


def test_write_out_of_range():
    def f(x, n):
        y = np.zeros(len(x))
        for i in range(n):
            y[i] = x[i] * 2
        return y

    fast = s2s.jit(f)
    np.testing.assert_array_equal(fast(np.ones(3), 2), [2, 2, 0])
    with pytest.raises(IndexError):
        fast(np.ones(3), 4)


def test_loops_that_count_down():
    """Their counters are said not to be negative; what is computed from them may be, and counts
    from the end.
    """
    def f(x, n):
        total = 0.0
        for i in range(n, -1, -1):
            total = 0.5 * total + x[i] * x[i - 1]
            for j in range(i - 1, 0, -2):
                total += x[j] * x[j - i]
        for i in range(1, -3, -1):
            total = total * 0.9 + x[i]
        return total

    x = np.linspace(0.3, 1.7, 7)
    for n in (-1, 0, 3, 6):
        np.testing.assert_allclose(s2s.jit(f)(x, n), f(x, n), 1e-14)
        np.testing.assert_allclose(s2s.jit(s2s.grad(f))(x, n), s2s.grad(f)(x, n), 1e-13)


def test_index_that_is_never_used_may_be_anything():
    def f(x, y, n):
        total = 0.0
        for k in range(n):
            for i in range(len(x)):
                total += x[i] * y[i]
        return total

    assert s2s.jit(f)(np.ones(3), np.ones(2), 0) == 0.0


def test_mismatched_shapes_are_refused_at_the_call():
    def f(x, y):
        return np.sum(x * y)

    with pytest.raises(ValueError, match=r"x.shape\[0\] is 3 and y.shape\[0\] is 4"):
        s2s.jit(f)(np.ones(3), np.ones(4))


def test_division_by_zero_follows_numpy():
    fast = s2s.jit(lambda x, y: x / y)
    np.testing.assert_array_equal(
        fast(np.array([1.0, -1.0, 0.0]), np.zeros(3)), [np.inf, -np.inf, np.nan]
    )


def test_nan_and_infinity_pass_through():
    def f(x):
        return np.sum(np.exp(x)), np.max(x)

    total, top = s2s.jit(f)(np.array([1.0, np.nan, np.inf]))
    assert np.isnan(total) and np.isnan(top)


def test_numbas_refusal_is_one_line():
    from numba.core.errors import TypingError

    error = one_line_message(TypingError("Failed in nopython mode\n"
                                         "No implementation of function f\n- and so on"),
                      s2s.jit(dot).generic())
    assert isinstance(error, CompileError) and isinstance(error, S2SError)
    assert "No implementation of function f" in str(error) and "and so on" not in str(error)


def test_an_unknown_target_is_refused():
    with pytest.raises(S2SError, match="target"):
        s2s.jit(dot, target="abacus")(np.ones(3), np.ones(3))


def test_several_threads_call_at_once():
    fast = s2s.jit(s2s.grad(dot))
    x = np.arange(1000.0)
    fast(x, x)
    with ThreadPoolExecutor(4) as pool:
        for k, result in enumerate(pool.map(lambda k: fast(x, k * x), range(16))):
            np.testing.assert_array_equal(result, k * x)


def test_float32_numbers_stay_float32():
    result = s2s.jit(lambda x: x * 2.0 + 1)(np.float32(0.1))
    assert type(result) is np.float32 and result == np.float32(0.1) * 2.0 + 1


def test_what_numba_does_not_know_is_called_in_python(monkeypatch):
    def interpreted(*args):
        raise AssertionError("nothing was compiled")

    monkeypatch.setattr(s2s.runtime.call.native_function, "interpreted", interpreted)

    def f(A, b):
        return np.sum(np.abs(np.linalg.solve(A + 1j * np.eye(3), b + 0j)) ** 2)

    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3, 1))
    fast = s2s.jit(s2s.grad(f), cache=False)
    np.testing.assert_allclose(fast(A, b), s2s.grad(f)(A, b))
    assert "# Numba does not know this" in fast.lower(A, b).loops


def test_what_goes_wrong_while_compiling_is_told(monkeypatch):
    tried = []

    def fails(self):
        tried.append(self)
        raise AttributeError("no such thing")

    monkeypatch.setattr(s2s.runtime.numba.compiler.Effort, "_compile_core", fails)
    fast, x = s2s.jit(lambda x: np.sum(np.sin(x) * 1.7321), cache=False), np.ones(3)
    with pytest.warns(PlainNumbaWarning, match="by @njit alone, .*AttributeError: no such thing"):
        np.testing.assert_allclose(fast(x), np.sum(np.sin(x) * 1.7321), rtol=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fast(x) == fast(2 * x / 2)
    assert len(tried) == 1
    # by threads, if there are any
    shared = s2s.jit(lambda x: np.sum(np.sin(x) * 1.7321), cache=False)
    with pytest.warns(PlainNumbaWarning):
        shared(np.ones(300_000))
    for _ in range(2):
        np.testing.assert_allclose(
            shared(np.ones(300_000)), np.sum(np.sin(np.ones(300_000)) * 1.7321), rtol=1e-10
        )
    assert len(tried) == 2


def test_what_native_code_alone_raises_is_told_once_and_the_python_text_is_kept(monkeypatch):
    def f(A, u, n):  # which native code asks before the loop whether it can solve
        for _ in range(n):
            u = np.linalg.solve(A, u)
            A = A + np.eye(len(u))
        return np.sum(u * u)

    rendered, render = [], s2s.runtime.call.native_function.render
    monkeypatch.setattr(
        s2s.runtime.call.native_function,
        "render",
        lambda function: (rendered.append(function), render(function))[1],
    )
    fast, A, u = s2s.jit(f), np.ones((12, 11)), np.ones(12)
    with pytest.warns(InterpretedWarning, match="f runs in Python, slowly, in calls like this one: "
                                                "native code has raised what Python does not "
                                                ".*ValueError"):
        assert fast(A, u, 0) == 12.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fast(A, 2 * u, 0) == 48.0
        with pytest.raises(ValueError, match="shape|broadcast|square"):
            fast(A, u, 1)
        assert fast(np.eye(12), u, 1) == 12.0
    assert len(rendered) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64])
def test_matrix_products_of_every_layout(dtype):
    rng = np.random.default_rng(0)
    A, B = (9 * rng.normal(size=(5, 7))).astype(dtype), (9 * rng.normal(size=(7, 4))).astype(dtype)
    wide = np.zeros((10, 14), dtype)
    wide[::2, ::2] = A
    product = s2s.jit(lambda a, b: a @ b)
    left, right = (
        (A, np.asfortranarray(A), wide[::2, ::2]),
        (B, np.asfortranarray(B), B[:, 1], B[:, 1].copy()),
    )
    # each pair is compiled
    for a, b in itertools.product(left, right) if dtype is np.float64 else zip(left, right[1:]):
        np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-5)
        assert product(a, b).dtype == dtype
    for a in (A, np.asfortranarray(A)):
        np.testing.assert_allclose(product(B.T, a.T), B.T @ a.T, rtol=1e-5)
        np.testing.assert_allclose(product(B[:5, 0], a), B[:5, 0] @ a, rtol=1e-5)
    assert product(A[:, :0], B[:0]).shape == (5, 4)
    with pytest.raises(ValueError):
        product(A, A)


def says(x, n, w):
    print(f"{n!r:>4}|{x:{w}.3f}|{x!s:>9}|{x}|{n:%}", x, f"{'a':>3} it's {n:>4d}", end=" ")
    return 2 * x


@pytest.mark.compile
def test_numbers_are_printed_in_the_formats_that_are_asked_for(capsys):
    says(2.0, 3, 8)
    expected = capsys.readouterr().out
    s2s.jit(says)(2.0, 3, 8)
    assert capsys.readouterr().out == expected


def test_bytes_in_the_order_of_another_machine():
    def f(x, p):
        return np.sum(x * x * p["k"][0])

    fast = s2s.jit(s2s.value_and_grad(f, argnums=(0, 1)))
    x, k = np.arange(4.0), np.array([2.0, 3.0])
    wanted = s2s.value_and_grad(f, argnums=(0, 1))(x, {"k": k})
    for given, more in (
        (x.astype(">f8"), k),
        (x, k),
        (x.astype(">f8"), k.astype(">f8")),
        (x, k.astype(">f8")),
    ):
        value, (x_bar, p_bar) = fast(given, {"k": more})
        assert value == wanted[0] and x_bar.dtype.isnative
        np.testing.assert_array_equal(x_bar, wanted[1][0])
        np.testing.assert_array_equal(p_bar["k"], wanted[1][1]["k"])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64, np.int8])
def test_ranges_between_elements_of_arrays_of_integers(dtype):
    def f(n):
        return (
            np.arange(n[1]),
            np.arange(n[0], n[1]),
            np.arange(n[0], n[2], n[1]),
            np.linspace(n[1], n[0], 5),
            np.arange(2, n[1]) * 2.5,
        )

    n = np.array([1, 4, 100]).astype(dtype)
    for found, expected in zip(s2s.jit(f)(n), f(n)):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def test_a_range_of_small_unsigned_numbers_wraps():
    n = np.array([250, 3], dtype=np.uint8)
    np.testing.assert_array_equal(
        s2s.jit(lambda n: np.arange(n[0], n[1]))(n), np.arange(n[0], n[1])
    )


def test_python_integers_that_a_word_does_not_hold():
    """They are computed with as Python does, whatever they are handed in."""
    def f(x, n, ns, table):
        return x + n % 7 + ns[0] % 11 + table["n"] % 13

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = s2s.jit(f)
        for n in (3, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -2**63, -2**63 - 1, 5):
            for args in (
                (1.0, n, [4, 5], {"n": 6}),
                (1.0, 3, [n, 5], {"n": 6}),
                (1.0, 3, [4, 5], {"n": n}),
            ):
                assert fast(*args) == f(*args)
                assert s2s.jit(s2s.grad(f))(*args) == 1.0
