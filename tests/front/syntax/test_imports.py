"""Imports inside functions: names for what is known when code is generated."""

from __future__ import annotations

import importlib
import linecache
import sys
from pathlib import Path

import numpy as np
import pytest

import s2s
from s2s.errors import UnsupportedError


def of_all_kinds(x):
    import math as m
    import os.path

    import numpy.linalg
    from numpy import linalg as la
    from numpy import pi, sin
    from scipy import special

    a = numpy.array([x, 2.0 * x])
    return (
        m.exp(x)
        + sin(x) * pi
        + la.norm(a)
        + numpy.linalg.det(numpy.diag(a))
        + special.expit(x)
        + len(os.path.sep)
    )


def on_a_path(x):
    if x > 0:
        from math import cos
        y = cos(x)
    else:
        y = x

    def inner(t):
        import numpy as xp
        return xp.tanh(t)

    for _ in range(3):
        import numpy as xp
        y = xp.sin(y)
    return inner(x) * y


@pytest.mark.parametrize("f", [of_all_kinds, on_a_path], ids=lambda f: f.__name__)
def test_names_that_are_imported(f):
    slope = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    gradient = s2s.grad(f)
    np.testing.assert_allclose(gradient(0.7), slope, rtol=1e-8)
    np.testing.assert_allclose(s2s.jvp(f, (0.7,), (1.0,)), (f(0.7), slope), rtol=1e-8)
    assert "special import" not in gradient.source.partition("def ")[2]


LAW = "K = {}\ndef law(x):\n    return x * x * K\n"


@pytest.fixture
def laws(tmp_path, monkeypatch):
    """A function that puts another module of the name in place, in a folder of its own."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def put(folder, k):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "law_of_the_day.py").write_text(LAW.format(k))
        monkeypatch.syspath_prepend(tmp_path / folder)
        sys.modules.pop("law_of_the_day", None)

    yield put
    sys.modules.pop("law_of_the_day", None)


def of_the_day(x):
    import law_of_the_day
    return law_of_the_day.law(x)


def from_the_day(x):
    def inner(y):
        from law_of_the_day import law as of
        return of(y)

    return inner(x)


@pytest.mark.parametrize("f", [from_the_day, of_the_day], ids=lambda f: f.__name__)
def test_a_module_that_was_replaced_is_found(laws, f):
    slope = s2s.grad(f)
    for folder, k in (("one", 1.0), ("two", 10.0), ("one", 100.0)):
        laws(folder, k)
        assert slope(1.0) == s2s.grad(f)(1.0) == 2.0 * k


def test_a_module_that_was_loaded_again_is_found(laws):
    laws("one", 1.0)
    slope = s2s.grad(of_the_day)
    assert slope(1.0) == 2.0
    laws("one", 30.0)
    importlib.invalidate_caches()
    module = importlib.import_module("law_of_the_day")
    assert slope(1.0) == 60.0
    file = Path(module.__file__)
    file.write_text(LAW.format(500.0))
    importlib.reload(module)
    assert slope(1.0) == 1000.0


def test_imports_are_relative_to_the_package_of_each_function(tmp_path, monkeypatch):
    """Of two functions of one code, in one file, too."""
    text = "def f(x):\n    from .parts import law\n    return law(x)\n"
    linecache.cache["<shared>"] = len(text), None, text.splitlines(keepends=True), "<shared>"
    monkeypatch.syspath_prepend(tmp_path)
    for package, k in (("first_of_two", 1.0), ("second_of_two", 4.0)):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
        (tmp_path / package / "parts.py").write_text(LAW.format(k))
        space = {"__package__": package}
        exec(compile(text, "<shared>", "exec"), space)
        assert s2s.grad(space["f"])(1.0) == 2.0 * k


def test_what_is_not_there_is_refused():
    def f(x):
        import nowhere_to_be_found
        return nowhere_to_be_found.sin(x)

    with pytest.raises(UnsupportedError, match="an import of what is not there"):
        s2s.grad(f)(0.7)
