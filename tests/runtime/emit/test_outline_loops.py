"""Loops that are functions of their own compute what they did where they stood, and leave nothing
allocated.
"""

import importlib
import linecache
import textwrap

import numpy as np
import pytest
from numba import njit
from numba.core.runtime import _nrt_python, rtsys

import s2s
from s2s.runtime.debug.load_source import TEXT
from s2s.runtime.emit.emit_statements import Statements
from s2s.runtime.intrinsics.minmax import smaller
from s2s.runtime.intrinsics.noalias_alloc import unshared_empty, unshared_zeros
from s2s.runtime.llvm import split_module
from s2s.runtime.numba import compiler, native_module
from s2s.runtime.numba.compiler import Effort

pytestmark = pytest.mark.compile
# a function of that name stands in the package
extracted = importlib.import_module("s2s.runtime.emit.outline_loops")

PROGRAMS = {
    "numbers come back": ("""
        def f(x, n):
            total, last, count = 0.0, -1, 0
            for i in range(n):
                total += x[i] * x[i]
                last = i
                if x[i] > 0.5:
                    count += 1
            return total, last, count
     """, 1),
    "the counter is read after the loop": ("""
        def f(x, n):
            k, i = 7, -1
            for k in range(2, n):
                x[0] = x[k]
            for i in range(n):
                x[1] = x[1] + x[i]
            return x, k, i
     """, 2),
    "an array is another on some paths": ("""
        def f(x, n):
            a = unshared_zeros(len(x))
            b = unshared_zeros(len(x))
            if n > 2:
                b = a
            for i in range(len(x)):
                a[i] = x[i]
                b[i] = b[i] + 1.0
                a[i] = a[i] * 2.0
            return a, b
     """, 0),
    "what it may be is not read beside it": ("""
        def f(x, n):
            a = unshared_zeros(len(x))
            b = unshared_zeros(len(x))
            if n > 2:
                b = a
            for i in range(len(x)):
                b[i] = b[i] + x[i]
            return a, b
     """, 1),
    "a part of an array beside the array": ("""
        def f(x, n):
            a = unshared_zeros((3, len(x)))
            row = a[1]
            for i in range(len(x)):
                row[i] = x[i]
                a[1, i] = a[1, i] + 1.0
                row[i] = row[i] * 2.0
            return a, row[0]
     """, 0),
    "two names of one array": ("""
        def f(x, n):
            a = unshared_zeros(len(x))
            b = a
            for i in range(len(x)):
                a[i] = x[i]
                b[i] = b[i] + 1.0
                a[i] = a[i] * 2.0
            return a, b[0]
     """, 1),
    "a short array on the stack": ("""
        def f(x, n):
            t = unshared_zeros(3)
            total = 0.0
            for i in range(len(x)):
                for j in range(3):
                    t[j] = x[i] * j
                for j in range(3):
                    total += t[j] * t[j]
            return total
     """, 0),
    "arrays change places": ("""
        def f(x, n):
            a, b = unshared_zeros(len(x)), unshared_empty(len(x))
            for i in range(len(x)):
                b[i] = x[i]
            for k in range(n):
                a, b = b, a
                for i in range(len(x)):
                    b[i] = a[i] + k
                a[0] += 1.0
            return a, b
     """, 2),
    "each trip makes an array, and the last one stays": ("""
        def f(x, n):
            h = unshared_zeros(len(x))
            for k in range(n):
                g = unshared_empty(len(x))
                for i in range(len(x)):
                    g[i] = h[i] * 0.5 + x[i]
                h = g
            return h
     """, 0),
    "bound anew in each trip, and something else before": ("""
        def f(x, n):
            a = unshared_zeros((n + 1, len(x)))
            row = unshared_zeros(len(x))
            if n > 1:
                row = a[0]
            total = row[0]
            for k in range(n):
                row = a[k]
                for i in range(len(x)):
                    row[i] = x[i] + k
                    total += row[i]
            return total, a
     """, 1),
    "bound in a loop alone": ("""
        def f(x, n):
            for i in range(n):
                if x[i] > -9.0:
                    last = x[i] * 2.0
            for i in range(n):
                last = last + x[i]
            return last if n > 0 else 0.0
     """, 2),
    "one of two ways": ("""
        def f(x, n):
            a = unshared_zeros(len(x))
            if n > 2:
                for i in range(len(x)):
                    a[i] = x[i]
            else:
                a = unshared_zeros(len(x) + 1)
                for i in range(len(x)):
                    a[i] = 2.0 * x[i]
            for i in range(len(x)):
                a[i] += 1.0
            return a
     """, 3),
    "leaves early": ("""
        def f(x, n):
            total = 0.0
            for i in range(len(x)):
                if i == n:
                    break
                if x[i] < 0.0:
                    continue
                total += x[i]
            return total
     """, 1),
    "returns": ("""
        def f(x, n):
            for i in range(len(x)):
                if i == n:
                    return x[i]
            return 0.0
     """, 0),
    "raises, and holds something": ("""
        def f(x, n):
            a = unshared_zeros(len(x))
            total = 0.0
            for i in range(len(x)):
                b = unshared_zeros(3)
                b[0] = x[i]
                if i == n:
                    raise ValueError("too far")
                total += b[0]
            a[0] = total
            return a
     """, 1),
}


def watched(monkeypatch, everything: bool = True) -> list[bool]:
    """Which loops become functions, from here on: of short functions, too."""
    if everything:
        for name, least in (("LEAST", 0), ("LEFT", -1), ("HEAVY", 0)):
            monkeypatch.setattr(extracted, name, least)
        for name in ("LEAST", "PIECE"):
            monkeypatch.setattr(split_module, name, 0)
    extract, found = Statements.extract, []
    monkeypatch.setattr(
        Statements, "extract", lambda self, loop: (found.append(extract(self, loop)), found[-1])[1]
    )
    return found


def compiled(text: str, monkeypatch, everything: bool = True):
    """The function `f` of a text as Python, compiled, and which of its loops have become
    functions.
    """
    found = watched(monkeypatch, everything)
    text = textwrap.dedent(text)
    name = f"<extracted {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    plain = {
        "np": np,
        "unshared_empty": unshared_empty,
        "unshared_zeros": unshared_zeros,
        TEXT: text,
        "__name__": "extracted",
    }
    native = {**plain, "min": smaller}
    for each in (plain, native):
        exec(compile(text, name, "exec"), each)
    return (
        plain["f"],
        njit(error_model="numpy", nogil=True, pipeline_class=Effort, no_cfunc_wrapper=True)(
            native["f"]
        ),
        found,
    )


def outcome(f, *args):
    try:
        return f(*args)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_compute_what_they_did(name, monkeypatch, request):
    text, count = PROGRAMS[name]
    plain, native, found = compiled(text, monkeypatch)
    _nrt_python.memsys_enable_stats()
    request.addfinalizer(_nrt_python.memsys_disable_stats)
    x = np.linspace(-1.0, 2.0, 11)
    outcome(native, x, 0)  # compiles it
    for n in (0, 1, 3, 7):
        before = rtsys.get_allocation_stats()
        given, wanted = outcome(native, x.copy(), n), outcome(plain, x.copy(), n)
        if isinstance(wanted, str):
            assert given == wanted
        else:
            for a, b in (
                zip(given, wanted, strict=True) if isinstance(wanted, tuple) else [(given, wanted)]
            ):
                np.testing.assert_array_equal(a, b)
            a = None
        del given
        after = rtsys.get_allocation_stats()
        assert after.alloc - before.alloc == after.free - before.free
        assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
    assert all(each.library.is_direct for each in native.overloads.values())
    assert found.count(True) == count


def test_what_is_promised_is_said_of_arguments(monkeypatch):
    """LLVM has no need to ask whether arrays overlap."""
    text, _ = PROGRAMS["what it may be is not read beside it"]
    more = text.replace("b[i] = b[i] + x[i]", "b[i] = b[i] + x[i]\n"
                                              "            c = unshared_zeros(len(x))\n"
                                              "            for i in range(len(x)):\n"
                                              "                c[i] = a[i] + x[i]")
    _, native, found = compiled(more, monkeypatch)
    said = []
    monkeypatch.setattr(
        compiler,
        "in_pieces",
        lambda given, *others: (
            said.extend(given.defined.values()),
            split_module.in_pieces(given, *others),
        )[1],
    )
    native(np.ones(3), 1)
    heads = [
        head for head, _, _ in (each.partition("\n") for each in said) if split_module.LOOP in head
    ]
    assert found == [True, True] and [head.count(" noalias ") for head in heads] == [0, 2]


@pytest.mark.parametrize(
    "inside, is_bare",
    [
        ("total += 1.0", False),
        ("total += x[k]", False),
        ("for i in range(len(x)):\n            total += x[i] * k", True),
    ],
)
def test_what_is_left_is_compiled_at_the_lowest_level_if_no_loop_is_left(
    inside, is_bare, monkeypatch
):
    """A loop of numbers alone would take several times as long there, and so would one that LLVM
    makes vectors of.
    """
    text = f"""
def f(x, n):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    k = 0
    while k < n:
        {inside}
        k += 1
    return total
"""
    plain, native, found = compiled(text, monkeypatch)
    x = np.linspace(0.0, 1.0, 11)
    assert native(x, 3) == plain(x, 3) and all(found)
    (library,) = [each.library for each in native.overloads.values()]
    assert library.bare == (
        {overload.fndesc.llvm_func_name for overload in native.overloads.values()}
        if is_bare
        else set()
    )


@pytest.mark.parametrize("rows, count", [("min(len(x) - k, n + 1)", 3), ("n + 1", 1)])
def test_of_loops_over_strips_all_loops_are_functions(rows, count, monkeypatch):
    """They have few trips, each of which is long; loops inside of others have to be heavy."""
    text = f"""
def f(x, n):
    total, t, u = 0.0, unshared_zeros(n + 1), unshared_zeros(n + 1)
    for i in range(len(x) // (n + 1)):
        k = i * (n + 1)
        m = {rows}
        for j in range(m):
            t[j] = x[k + j] - n
        for j in range(m):
            u[j] = (np.sqrt(t[j] * t[j] + 1.0) + t[j] * t[j] * 0.5 - t[j] * 0.25) / (1.0 + t[j] * t[j] + (t[j] - 1.0) * (t[j] - 1.0))
            u[j] = u[j] * u[j] - (u[j] + t[j]) * (u[j] - t[j]) / (1.0 + u[j] * u[j] + t[j] * t[j]) + u[j] * t[j] * (u[j] + 2.0)
            u[j] = u[j] + (u[j] - t[j]) / (2.0 + u[j] * u[j]) if u[j] > t[j] else u[j] * 0.5 - t[j] * t[j]
        for j in range(m):
            total += t[j] * u[j] + (t[j] - u[j]) * (t[j] - u[j]) / (1.0 + u[j] * u[j])
    return total
"""
    plain, native, found = compiled(text, monkeypatch, everything=False)
    x = np.linspace(0.0, 1.0, 11)
    np.testing.assert_allclose(native(x, 3), plain(x, 3), rtol=1e-12)
    assert found == count * [True]


def test_small_functions_stay_whole(monkeypatch):
    text, _ = PROGRAMS["numbers come back"]
    _, native, found = compiled(text, monkeypatch, everything=False)
    assert native(np.ones(3), 2) == (2.0, 1, 2) and not found


def test_functions_of_vectors_are_called_in_extracted_loops(monkeypatch):
    """sin has a branch, and variants for vectors: the loop's piece needs them too."""
    def program(x, y):
        total = 0.0
        z = np.sin(x) * np.cos(y) + np.exp(-x * x)
        for i in range(len(x)):
            total += np.tanh(z[i]) * np.exp(-y[i] * z[i]) / (1.0 + z[i] * z[i])
        return total + np.sum(np.sin(z) ** 2 * np.cos(x * z) + np.log1p(z * z))

    found = watched(monkeypatch)
    monkeypatch.setattr(native_module, "_modules", {})
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1000))
    gradient = s2s.value_and_grad(program, argnums=(0, 1))
    fast = s2s.jit(gradient, cache=False)
    value, slopes = fast(x, y)
    wanted, others = gradient(x, y)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    for a, b in zip(slopes, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert any(found)
    library = [each.library for each in native_module._entries[-1].overloads.values()][-1]
    for piece in library.pieces:
        said = str(piece.module())
        assert ("call double @s2s_sin_f64(" in said) <= ("@s2s_sin_f64_4(" in said)
