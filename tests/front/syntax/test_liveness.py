"""Which names are read later: those of a nested function are its own."""

import gast
import numpy as np
from differences import differences

import s2s
from s2s.front.syntax.liveness import read_names


def names(text):
    return read_names(gast.parse(text).body)


def test_nested_functions_read_what_they_do_not_bind():
    assert names("def f(r, *rest, k=d, **more): r *= x; s = r; s += rest; return more") == {
        "x", "d"}
    assert names("def f(): nonlocal n; n += 1") == {"n"}
    assert names("def f():\n def g(r): return r + s\n s = 1\n return g") == set()
    assert names("def f(): return [r for r in rows], r") == {"rows", "r"}
    assert names("@deco\ndef f(a: kind): return a") == {"deco", "kind"}


def rows_of_two_kinds(x):
    def scale(r):
        r *= x[1]

    pairs = [[v, v * 2] for v in x]
    for r in pairs:
        r[0] += 1.0
    grid = np.outer(x, x)
    for r in grid:
        scale(r)
    return np.sum(grid) + pairs[0][0]


def test_a_parameter_named_like_a_variable_is_not_it():
    x = np.array([0.3, 1.2, 0.7])
    np.testing.assert_allclose(s2s.grad(rows_of_two_kinds)(x), differences(rows_of_two_kinds, x),
                               rtol=1e-6)
