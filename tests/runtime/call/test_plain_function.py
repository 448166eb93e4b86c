"""What `@njit` alone compiles is what s2s compiles with private names of Numba: S2S_NUMBA=public,
the fallback.
"""

import subprocess
import sys

import numpy as np
import pytest
from oracles import direction, dual, inner, is_close
from programs import MORE_RESULTS, PROGRAMS

import s2s
from s2s.runtime.call.plain_function import PlainFunction, PlainNumbaWarning
from s2s.runtime.entry.boundary import InterpretedWarning

pytestmark = pytest.mark.compile


@pytest.fixture
def public(monkeypatch):
    monkeypatch.setenv("S2S_NUMBA", "public")


def copies(args) -> list:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in args]


def native_of(fast, *args):
    """The native code that a call with these arguments runs."""
    return fast.specialise(args).call.native


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p.name not in MORE_RESULTS], ids=lambda p: p.name
)
def test_both_ways_compute_the_same(program, monkeypatch):
    """Values as Python has them, gradients as dual numbers have them, and both as the other way has
    them.
    """
    gradient = s2s.value_and_grad(program.function, argnums=program.wrt)
    private = s2s.jit(gradient)(*copies(program.args))
    monkeypatch.setenv("S2S_NUMBA", "public")
    args = copies(program.args)
    value, slopes = s2s.jit(gradient)(*args)
    assert is_close(value, program.function(*copies(program.args)), 1e-12)
    rng = np.random.default_rng(0)
    dots = [direction(x, rng) if k in program.wrt else None for k, x in enumerate(program.args)]
    slope = dual(program.function, program.args, dots)[1]
    assert is_close(
        inner(tuple(slopes), tuple(dots[k] for k in program.wrt)), float(slope), 1e-8, 1e-9
    )
    np.testing.assert_allclose(value, private[0], rtol=1e-11)
    for ours, theirs in zip(slopes, private[1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-11)
    assert all(map(np.array_equal, args, program.args)), "an argument was changed"


def test_the_switch_selects_the_way(public, monkeypatch):
    def f(x):
        return np.sum(np.sin(x) * x)

    x = np.linspace(0.0, 1.0, 5)
    fast = s2s.jit(s2s.grad(f))
    np.testing.assert_allclose(fast(x), np.sin(x) + x * np.cos(x), rtol=1e-12)
    assert isinstance(native_of(fast, x), PlainFunction)
    monkeypatch.setenv("S2S_NUMBA", "all")
    with pytest.raises(s2s.S2SError, match="S2S_NUMBA=all"):
        s2s.jit(s2s.grad(f))(x)
    monkeypatch.delenv("S2S_NUMBA")
    other = s2s.jit(s2s.grad(f))
    other(x)
    assert not isinstance(native_of(other, x), PlainFunction)


def test_layouts_dtypes_and_results_given(public):
    def f(x, k):
        return np.sum(x[::-1] * np.exp(x)) * k

    fast, slow = s2s.jit(s2s.grad(f)), s2s.grad(f)
    x = np.linspace(0.0, 1.0, 12)
    for y in (x, x[::-1], x[::2], x.astype(np.float32), x.astype(">f8")):
        np.testing.assert_allclose(
            fast(y, 2), slow(y, 2), rtol=1e-6 if y.dtype == np.float32 else 1e-12
        )
        assert fast(y, 2).dtype == slow(y, 2).dtype
    given = np.empty(12)
    assert fast(x, 2, out=given) is given
    np.testing.assert_allclose(given, slow(x, 2), rtol=1e-12)


def test_errors_are_those_of_the_program(public):
    def f(x, k):
        if k > 100:
            raise ValueError("too many")
        return x[k] * x[0]

    fast, x = s2s.jit(s2s.value_and_grad(f)), np.ones(3)
    assert fast(x, 1)[0] == 1.0
    with pytest.raises(ValueError, match="too many") as found:
        fast(x, 101)
    assert any(
        "raise ValueError" in note
        for note in getattr(found.value, "__notes__", ["raise ValueError"])
    )
    with pytest.raises(IndexError):
        fast(x, 3)


def test_what_it_does_not_compile_runs_in_python(public):
    special = pytest.importorskip("scipy.special")

    def f(x):
        return np.sum(special.gammainc(2.0, x))

    fast, x = s2s.jit(f), np.linspace(0.5, 1.0, 3)
    with pytest.warns(InterpretedWarning, match="f runs in Python, slowly: @njit alone does not "
                                                "compile it"):
        found = fast(x)
    np.testing.assert_allclose(found, np.sum(special.gammainc(2.0, x)), rtol=1e-12)


def test_it_is_taken_where_a_private_name_is_missing(tmp_path):
    """No s2s module that needs one is imported then."""
    program = tmp_path / "program.py"
    program.write_text("""
import sys
import warnings
import numpy as np
import numba.core.environment
del numba.core.environment.lookup_environment
import s2s

def f(x):
    return np.sum(np.sin(x) * x)

x = np.linspace(0.0, 1.0, 5)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert np.allclose(s2s.jit(s2s.grad(f))(x), np.sin(x) + x * np.cos(x), rtol=1e-12)
    assert np.allclose(s2s.jit(f, parallel=True)(x), f(x), rtol=1e-12)
print([str(w.message) for w in told if "Numba" in type(w.message).__name__])
s2s.jit(f).lower(x).loops
assert "s2s.runtime.numba.compiler" not in sys.modules
""")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("has no numba.core.environment.lookup_environment") == 1, done.stdout


def test_it_is_taken_where_compiling_fails_unforeseen(monkeypatch):
    from s2s.runtime.numba.compiler import Effort

    def fails(self):
        raise AttributeError("no such thing")

    monkeypatch.setattr(Effort, "_compile_core", fails)
    fast, x = s2s.jit(lambda x: np.sum(np.sin(x) * 1.7322), cache=False), np.ones(3)
    with pytest.warns(PlainNumbaWarning, match="by @njit alone, .*AttributeError: no such thing"):
        assert is_close(fast(x), np.sum(np.sin(x) * 1.7322), 1e-12)
    assert native_of(fast, x).whole.plain.code.signatures and is_close(
        fast(2 * x), np.sum(np.sin(2 * x) * 1.7322), 1e-12
    )
