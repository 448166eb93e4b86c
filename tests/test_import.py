"""`import s2s` is quick: it loads neither Numba nor SciPy, nor what only notebooks need, which come
when something that is done needs them.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import types

import numpy as np
import pytest

from s2s.lazy_import import Meanings, Named, later

HEAVY = ("numba", "llvmlite", "scipy", "scipy.special", "scipy.sparse", "html")
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import s2s

def f(x):
    return np.sum(np.sin(x) * x)

def loaded():
    return {heavy} & set(sys.modules)

x = np.array([0.5, 1.5])
"""


def run(program: str, tmp_path) -> None:
    """Run it in a process of its own, from a file, for s2s reads the text of functions."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(heavy=set(HEAVY)) + program)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.lengthy
def test_importing_loads_neither_numba_nor_scipy(tmp_path):
    run("assert not loaded(), loaded()", tmp_path)


@pytest.mark.lengthy
def test_threads_are_set_without_numba(tmp_path):
    run("before = s2s.set_threads(1); assert s2s.threads() == 1 and s2s.set_threads(before) == 1 "
        "and not loaded(), loaded()", tmp_path)


@pytest.mark.lengthy
def test_interpreted_derivatives_do_without_numba(tmp_path):
    run("""
assert np.allclose(s2s.grad(f)(x), np.sin(x) + x * np.cos(x))
s2s.jvp(f, (x,), (x,)); s2s.grad(f).source; s2s.vmap(f)(np.ones((2, 3))); s2s.hessian(f)(x)
assert not loaded(), loaded()
""", tmp_path)


@pytest.mark.lengthy
def test_the_trap_of_interpreted_code_does_without_numba(tmp_path, monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "1")
    run("""
s2s.grad(f)(x)
assert "numba" not in sys.modules
""", tmp_path)


@pytest.mark.compile
def test_the_first_jit_loads_numba_and_tells_llvm_before_it_compiles(tmp_path):
    run("""
fast = s2s.jit(s2s.grad(f))
assert np.allclose(fast(x), np.sin(x) + x * np.cos(x))
from llvmlite import binding
assert binding.s2s_vectorises_sums and "numba" in sys.modules and "scipy.special" not in sys.modules
""", tmp_path)


@pytest.mark.lengthy
def test_functions_of_scipy_are_known_whenever_it_is_imported(tmp_path):
    run("""
s2s.grad(f)(x)
assert "scipy.special" not in sys.modules
import scipy.special
from scipy import special

def g(x):
    return np.sum(special.erf(x) + scipy.special.loggamma(x) + special.psi(x))

slope = 2 / np.sqrt(np.pi) * np.exp(-x**2) + special.psi(x) + special.polygamma(1, x)
assert np.allclose(s2s.grad(g)(x), slope)
""", tmp_path)


@pytest.mark.lengthy
def test_source_that_names_scipy_is_loaded_without_it(tmp_path):
    run("""
df = s2s.grad(s2s.from_source(
    "import numpy as np\\nimport scipy.special\\n\\n"
    "def g(x):\\n    return np.sum(scipy.special.erf(x))\\n"))
assert np.allclose(df(x), 2 / np.sqrt(np.pi) * np.exp(-x**2))
""", tmp_path)


# ---------------------------------------------------------------------------------------- mechanism


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that nobody has imported."""
    (tmp_path / "heavy_module.py").write_text("import time\ntime.sleep(0.05)\n"
                                              "def one(): return 1\nother = one\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "heavy_module"
    sys.modules.pop("heavy_module", None)


def test_a_later_module_is_imported_when_a_name_is_wanted(module):
    heavy = later(module)
    assert repr(heavy) == "<heavy_module, imported when it is wanted>" and module not in sys.modules
    assert heavy.one() == 1 and heavy.one is sys.modules[module].one
    with pytest.raises(AttributeError, match="two"):
        heavy.two  # noqa: B018


def test_a_later_module_that_is_not_there_is_an_import_error_when_it_is_wanted():
    missing = later("no_such_module_anywhere")
    with pytest.raises(ImportError, match="no_such_module_anywhere"):
        missing.name  # noqa: B018


def test_threads_that_want_a_module_at_once_all_get_it(module):
    heavy, found = later(module), []
    threads = [threading.Thread(target=lambda: found.append(heavy.one())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 8


def test_what_a_named_function_means_is_found_when_its_module_has_come(module):
    table = Meanings()
    table[np.sin] = "sine"
    table[Named(module, "one")] = "one"
    assert table[np.sin] == "sine" and np.cos not in table and table.get(np.cos, 0) == 0
    with pytest.raises(KeyError):
        table[np.cos]
    assert module not in sys.modules
    one = Named(module, "one")
    assert one() == 1
    assert (
        one.function in table and table[one.function] == "one" and table.get(one.function) == "one"
    )
    assert sys.modules[module].other in table


def test_a_meaning_that_is_given_first_stays(module):
    table = Meanings()
    table[Named(module, "one")] = "ours"
    one = Named(module, "one").function
    table[one] = "theirs"
    assert table[one] == "theirs"
    assert isinstance(sys.modules[module], types.ModuleType)
