"""S2S_CHECK=memory: native code that would touch memory of others stops, and nothing hides it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from llvmlite import ir

import s2s
from s2s.back import loop_pipeline
from s2s.back.arrays.index_checks import check_indices
from s2s.check_flags import CHECKS, requested_checks
from s2s.runtime.debug import sanitizer
from s2s.runtime.kernels import blas
from s2s.runtime.numba import compiler

pytestmark = pytest.mark.sanitized

X = np.arange(12.0).reshape(3, 4)
I = np.array([0, 5, 1])


@pytest.fixture
def checking(monkeypatch):
    """Memory is checked, and compiled code checks no indices of its own."""
    monkeypatch.setenv("S2S_CHECK", "memory")
    monkeypatch.setattr(
        loop_pipeline,
        "LEGALISE",
        [each for each in loop_pipeline.LEGALISE if each.run is not check_indices],
    )
    yield monkeypatch
    sanitizer.clear()


def violation(f, *args) -> str:
    """What the error says with which native code of `f` stops."""
    with pytest.raises(s2s.MemoryCheckError) as raised:
        s2s.jit(f, cache=False)(*args)
    assert len(sanitizer.clear()) == 1
    return str(raised.value)


def picked(x, i):
    total = 0.0
    for k in i:
        total += x[k, 1]
    return total


def put(x, i):
    y = x.copy()
    for k in i:
        y[k, 1] = 2.0
    return y


def added(x, i):
    y = np.zeros((3, 4))
    for k in i:
        y[1, k] += x[1, 1]
    return y


def caught(x, i):
    try:
        return x[i[1], 1]
    except Exception:
        return 7.0


def through_a_helper(x, i):
    return picked(x, i) + 1.0


@pytest.mark.compile
@pytest.mark.parametrize("f", [picked, put, added, through_a_helper, s2s.grad(picked)])
def test_an_index_outside_of_its_array_stops(checking, f):
    said = violation(f, X, I)
    assert sanitizer.SAID in said and "index 5 of axis" in said and "report this program" in said


@pytest.mark.compile
@pytest.mark.parametrize(
    "k, shown",
    [
        (-4, "index -1 of axis 0, which has 3 elements"),
        (3, "index 3 of axis 0"),
        (2**62, f"index {2**62}"),
    ],
)
def test_indices_are_compared_after_they_are_counted_from_the_front(checking, k, shown):
    said = violation(picked, X, np.array([k]))
    assert (
        shown in said
        and f"{__file__}, line {picked.__code__.co_firstlineno + 3}, in picked" in said
        and "total += x[k, 1]" in said
    )
    assert s2s.jit(picked, cache=False)(X, np.array([-3, 2])) == 10.0


@pytest.mark.compile
def test_elements_in_code_that_goes_numbas_way(checking):
    checking.setattr(compiler.direct, "emitter", lambda state: None)
    assert "index 5 of axis 0" in violation(picked, X, I)
    assert "index 5 of axis 1" in violation(added, X, I)


def smallest(x, i):
    total = 0.0
    for k in i:
        total += np.sort(x[k])[0]
    return total


def multiplied(x, i):
    total = 0.0
    for k in i:
        total += np.sum(x[k] @ x.T)
    return total


@pytest.mark.compile
@pytest.mark.parametrize("f", [smallest, multiplied])
def test_rows_that_are_handed_to_routines(checking, f):
    assert "an index that no element has" in violation(f, X, I)


@pytest.mark.compile
def test_a_loop_that_threads_share(checking):
    def f(x, i):
        y = np.empty(len(i))
        for k in range(len(i)):
            y[k] = np.sin(x[i[k], 1])
        return y

    i = np.zeros(1_000_000, int)
    i[777_777] = 9
    with pytest.raises(s2s.MemoryCheckError, match="index 9 of axis 0, which has 3 elements"):
        s2s.jit(f, parallel=True, cache=False)(X, i)
    assert sanitizer.clear()


@pytest.mark.compile
@pytest.mark.parametrize("place", [-1, 3, 8])
@pytest.mark.parametrize("is_returned", [True, False], ids=["returned", "freed"])
def test_what_routines_write_beside_an_array(monkeypatch, is_returned, place):
    scale = float(place)  # so that no other code of this process is met
    f = s2s.from_source(
        f"def f(x, y):\n    return {'' if is_returned else 'np.sum'}(x @ (y * {scale}))\n",
        {"np": np},
    )
    monkeypatch.setenv("S2S_CHECK", "memory")
    fill = blas._fill

    def wrong(context, builder, a, b, shape, made):
        fill(context, builder, a, b, shape, made)
        builder.store(
            ir.Constant(made.type.pointee, 1.0), builder.gep(made, [ir.IntType(64)(place)])
        )

    monkeypatch.setattr(blas, "_fill", wrong)
    assert "it has written beside an array of 24 bytes" in violation(f, X, np.ones(4))


@pytest.mark.compile
def test_elements_that_nobody_has_written_are_nan(monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "memory")
    monkeypatch.setattr(blas, "_fill", lambda *args: None)
    assert np.isnan(s2s.jit(lambda x, y: x @ (y * 7.0), cache=False)(X, np.ones(4))).all()


@pytest.mark.compile
def test_the_programs_own_errors_are_what_they_are(monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "memory")

    def summed(x, n):
        total = 0.0
        for i in range(n):
            total += x[i, i]
        return total

    for f, args in (
        (picked, (X, I)),
        (summed, (X, 5)),
        (lambda x, i: x[i[1]], (X, I)),
        (lambda x, i: x[:, 1] + x[1], (X, I)),
    ):
        with pytest.raises((IndexError, ValueError)) as raised:
            f(*args)
        with pytest.raises(type(raised.value)):
            s2s.jit(f)(*args)
    assert s2s.jit(caught)(X, I) == 7.0 and s2s.jit(summed)(X, 3) == 15.0
    assert not sanitizer.violations


@pytest.mark.compile
def test_a_violation_that_nobody_has_asked_about_is_kept(checking):
    f = s2s.jit(picked, cache=False)
    with pytest.raises(s2s.MemoryCheckError):
        f(X, I)
    assert f(X, I[:1]) == 1.0
    assert ["index 5" in str(each) for each in sanitizer.clear()] == [
        True
    ] and not sanitizer.clear()


@pytest.mark.compile
def test_results_that_are_written_into_given_arrays(checking):
    def f(x, i):
        y = np.zeros(len(i))
        for k in range(len(i)):
            y[k] = x[i[k], 1]
        return y

    t, out = s2s.jit(f, cache=False), np.empty(3)
    assert np.array_equal(t(X, np.array([0, 2, 1]), out=out), [1.0, 9.0, 5.0])
    with pytest.raises(s2s.MemoryCheckError, match="index 5 of axis 0, which has 3 elements"):
        t(X, I, out=out)
    assert (
        len(sanitizer.clear()) == 2
    )  # of the form that writes into what it is given, and of the one that is asked why


@pytest.mark.compile
def test_checked_code_has_keys_of_its_own(monkeypatch):
    def f(x):
        return np.sum(x * x)

    plain = s2s.jit(f)
    assert plain(X) == np.sum(X * X)
    monkeypatch.setenv("S2S_CHECK", "memory")
    checked = s2s.jit(f)
    assert checked(X) == plain(X)
    texts = [
        each.lower(X).compile().native.whole.dispatcher.py_func.__globals__["__s2s_text__"]
        for each in (plain, checked)
    ]
    assert "Sanitized" in texts[1]


@pytest.mark.compile
def test_checked_values_and_derivatives_are_those_of_code_that_is_not(monkeypatch):
    def f(x, y):
        for _ in range(3):
            x[1:, 1:] += 0.1 * np.tanh(x[:-1, :-1]) * y[1:]
        return np.sum(np.linalg.solve(x[:, :3] @ x[:, :3].T + 9.0 * np.eye(3), x @ y))

    y = np.linspace(0.0, 1.0, 4)
    plain = s2s.jit(s2s.value_and_grad(f, (0, 1)))(X, y)
    monkeypatch.setenv("S2S_CHECK", "memory")
    checked = s2s.jit(s2s.value_and_grad(f, (0, 1)))(X, y)
    for a, b in zip((plain[0], *plain[1]), (checked[0], *checked[1])):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize(
    "value, checks",
    [("", ()), ("0", ()), ("1", CHECKS), ("memory", ("memory",)), ("nan, ir", ("ir", "nan"))],
)
def test_the_words_of_the_variable(monkeypatch, value, checks):
    monkeypatch.setenv("S2S_CHECK", value)
    assert requested_checks() == checks


def test_a_word_that_is_no_check(monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "memory,speed")
    with pytest.raises(
        s2s.S2SError,
        match="there is no check 'speed'\n"
        "Instead: set it to 1 for all checks, or to some of ir, nan, memory",
    ):
        s2s.grad(lambda x: x * x)(1.0)


def test_memory_alone_lets_nan_pass(monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "memory")
    with np.errstate(all="ignore"):
        assert np.isnan(s2s.grad(lambda x: np.sqrt(x) * x)(-1.0))


def summed_before_it_is_given_up(a, b):
    x = b.copy()
    for i in range(len(b)):
        for j in range(i + 1):
            if j != i:
                x[i] += x[j] * a[i, j]
    return x @ x


@pytest.mark.compile
def test_arrays_are_read_before_they_are_freed(monkeypatch):
    """Freed elements are NaN here: LLVM may not move reads behind what frees an array."""
    monkeypatch.setenv("S2S_CHECK", "memory")
    a, b = np.ones((5, 5)), np.ones(5)
    got = s2s.jit(s2s.jvp(summed_before_it_is_given_up), cache=False)(a, b, a, b)
    assert got == (341.0, 1934.0)


@pytest.mark.lengthy
@pytest.mark.parametrize("kept", [False, True])
def test_an_array_outlives_the_program_that_made_it(tmp_path, kept):
    """What looks at its guard words when it is freed is not of that program's code, which is freed
    before: neither compiled here nor taken from the cache.
    """
    text = """
import gc
import numpy as np
import s2s

def made(k):
    f = s2s.jit(s2s.from_source(f"def f(x):\\n    return x * {k}.0 + 1.0\\n", {"np": np}))
    y = f(np.ones(1000))
    return y

arrays = [made(k) for k in range(20)]
gc.collect()
programs = [made(k) for k in range(20, 40)]  # whose code takes the place of what is freed
gc.collect()
assert [float(y[0]) for y in arrays] == [k + 1.0 for k in range(20)]
del arrays, programs
gc.collect()
print("freed")
"""
    environ = {**os.environ, "S2S_CHECK": "memory", "S2S_CACHE_DIR": str(tmp_path)}
    for _ in range(2 if kept else 1):
        done = subprocess.run([sys.executable, "-c", text], env=environ, capture_output=True,
                              text=True, timeout=300)
        assert done.returncode == 0 and done.stdout == "freed\n", done.stderr
