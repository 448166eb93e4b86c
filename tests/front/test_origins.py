"""Where functions come from: texts, files that change, prompts, notebooks; and what else a
program's names may hold.
"""

import importlib
import linecache
import os
import pickle
import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pytest

import s2s

# -------------------------------------------------------------------------------------------- texts

TWO = """
def inner(x):
    return x * scale

def outer(x):
    return inner(x) * x
"""


def test_a_text_reads_its_globals_as_they_are():
    module = {"scale": 3.0}
    f = s2s.from_source(TWO, module)
    assert f.__globals__ is module
    slope = s2s.grad(f)
    assert slope(2.0) == 12.0
    module["scale"] = 5.0
    assert slope(2.0) == 20.0
    module["inner"] = s2s.from_source("cube = lambda x: x**3")
    assert f(2.0) == 16.0 and slope(2.0) == 32.0


@pytest.mark.parametrize("text, slope_at_two", [
    ("square = lambda x: x**2", 4.0),
    ("square, cube = lambda x: x**2, lambda x: x**3", 12.0),
    ("cube: object = lambda x: x**3\nLENGTH = 3", 12.0),
    ("@s2s.grad\ndef cube(x):\n    return x**3", 12.0),
    ("slope = s2s.grad(lambda x: x**3)", 12.0),
    ("class Line:\n    def __call__(self, x):\n        return 3 * x\n\nline = Line()", 3.0),
    ("def even(x, n):\n    return x if n == 0 else odd(x * x, n - 1)\n\ndef odd(x, n):\n"
     "    return even(x, n - 1)\n\n"
     "def f(x):\n    return even(x, 2)", 4.0),
    ("import functools\n\ndef twice(f):\n    @functools.wraps(f)\n    def g(*args):\n"
     "        return 2 * f(*args)\n    return g\n\n"
     "@twice\ndef f(x):\n    return x**2", 8.0),
    ("if True:\n    k = 3.0\ndef f(x):\n    return k * x", 3.0),
    ("def f(x):\n    return np.sum(x * np.ones(2))", 2.0),
])
def test_texts_define_functions_in_every_way(text, slope_at_two):
    f = s2s.from_source(text, {"s2s": s2s, "np": np})
    if isinstance(f, s2s.transformed.Transformed):
        assert f(2.0) == slope_at_two
        f = s2s.from_source(f"{text}\nrenamed = lambda x: x * {slope_at_two}", {"s2s": s2s})
    assert s2s.grad(f)(2.0) == slope_at_two
    assert s2s.value_and_grad(f)(2.0)[0] == f(2.0)


def test_a_text_without_globals_has_numpy():
    assert s2s.grad(s2s.from_source("def f(x):\n    return np.sin(x)"))(0.5) == np.cos(0.5)


@pytest.mark.parametrize("text", ["x = 1", "class A:\n    pass", "from math import sin", ""])
def test_texts_without_functions_are_refused(text):
    with pytest.raises(s2s.SourceError, match="this text defines no function\n"
                                              "Instead: define one with `def`"):
        s2s.from_source(text)


def test_tracebacks_show_the_text():
    f = s2s.from_source("def third(x):\n    return x[2] * 2.0\n")
    for call in (f, s2s.grad(f)):
        try:
            call(np.zeros(2))
        except IndexError:
            shown = traceback.format_exc()
        assert "return x[2] * 2.0" in shown and "in third" in shown


def test_one_text_has_one_name_and_another_another():
    names = [
        s2s.from_source(text).__code__.co_filename
        for text in ("f = lambda x: x", "f = lambda x: -x", "f = lambda x: x")
    ]
    assert names[0] == names[2] != names[1]
    a, b = (s2s.from_source(f"def f(x):\n    return x * {k}", None, "<here>") for k in (2, 3))
    assert s2s.grad(a)(1.0) == 2.0 and s2s.grad(b)(1.0) == 3.0


def test_without_source_the_remedy_works():
    text = "def hidden(x):\n    return x * x * k\n"
    namespace = {"k": 2.0}
    exec(text, namespace)
    with pytest.raises(s2s.SourceError) as caught:
        s2s.grad(namespace["hidden"])(3.0)
    assert "the source of hidden cannot be found (it says it is from <string>)" in str(caught.value)
    assert "make it of its text: s2s.from_source(text, globals)" in str(caught.value)
    assert s2s.grad(s2s.from_source(text, namespace))(3.0) == 12.0


def test_executed_code_that_linecache_knows():
    text = "def known(x):\n    return x**3\n\nadd = lambda x: x + known(x)\n"
    name = "<generated model>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {}
    exec(compile(text, name, "exec"), namespace)
    assert s2s.grad(namespace["add"])(2.0) == 13.0


MODULE = """
import s2s

scale = 3.0
square = s2s.from_source("def square(x):\\n    return scale * x * x", globals())
slope = s2s.grad(square)
"""


@pytest.mark.lengthy
def test_texts_are_pickled_where_their_module_is(tmp_path, monkeypatch):
    (tmp_path / "made_of_text.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("made_of_text")
    for t in (module.slope, s2s.grad(module.square)):
        assert pickle.loads(pickle.dumps(t))(2.0) == 12.0
    (tmp_path / "t.pickle").write_bytes(pickle.dumps(s2s.value_and_grad(module.square)))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 't.pickle')!r}, 'rb'))(2.0))"
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.strip() == "(12.0, 12.0)", done.stderr


# -------------------------------------------------------------------------------- files that change


@pytest.fixture
def changing(tmp_path, monkeypatch):
    """A module, and a function that writes its file anew without importing it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / f"changing_{tmp_path.name}.py"

    def write(text):
        path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        return path

    def load(text):
        write(text)
        return importlib.import_module(path.stem)

    yield load, write
    sys.modules.pop(path.stem, None)


OLD = """
    def f(x, k=2.0):
        return x * 2.0

    class Model:
        def f(self, x):
            def inner(y):
                return y * 2.0
            return inner(x)

    g = lambda x: x * 2.0
    """


@pytest.mark.parametrize(
    "old, new",
    [("2.0\n", "3.0\n"), ("x * 2.0", "x + 2.0"), ("y * 2.0", "y ** 2.0"), ("x * 2.0", "2.0 * x")],
)
def test_a_function_whose_text_has_changed_is_refused(changing, old, new):
    load, write = changing
    module = load(OLD)
    write(OLD.replace(old, new))
    functions = (module.Model().f,) if "y" in old else (module.f, module.g)
    for f in functions:
        with pytest.raises(
            s2s.SourceError,
            match=r"py defines another .* than this one\nInstead: import the module again",
        ) as caught:
            s2s.grad(f)(2.0)
        assert "importlib.reload" in str(caught.value)
    module = importlib.reload(module)
    assert s2s.grad(module.f)(1.0) == module.f(1.0) - module.f(0.0)
    assert np.isclose(
        s2s.grad(module.Model().f)(1.0), {"y ** 2.0": 2.0, "3.0\n": 3.0}.get(new, 2.0)
    )


TRIED = """
    def g(x):
        if x < 0:
            raise ValueError
        return x

    def f(x):
        try:
            y = g(x)
            z = g(y - 1)
        except ValueError:
            z = x * x
        return z
    """
ELSE = """
    def g(x):
        if x < 0:
            raise ValueError
        return x

    def f(x):
        try:
            y = g(x)
        except ValueError:
            z = x * x
        else:
            z = g(y - 1)
        return z
    """


@pytest.mark.parametrize(
    "old, new",
    [
        (TRIED, ELSE),
        ("f = lambda x, *y: x * 2.0", "f = lambda x, y=(): x * 2.0"),
        (
            "def f(x):\n    y = x * x\n    y = y * x\n    return y",
            "def f(x):\n    y = x * x\n    return y",
        ),
        (
            "f = [lambda x: x * 2.0, lambda x: x + 2.0][0]",
            "f = [lambda x: x + 2.0, lambda x: x * 3.0][0]",
        ),
    ],
)
def test_what_differs_in_little_is_another_function(changing, old, new):
    load, write = changing
    module = load(old)
    write(new)
    with pytest.raises(s2s.SourceError, match="defines another"):
        s2s.grad(module.f)(0.5)


def test_lambdas_that_changed_places(changing):
    load, write = changing
    module = load("f, g = lambda x: x * 2.0, lambda x: x * 3.0")
    write("\nf, g = lambda x: x * 3.0, lambda x: x * 2.0")
    assert [s2s.grad(f)(1.0) for f in (module.f, module.g)] == [2.0, 3.0]


@pytest.mark.lengthy
def test_a_file_that_changed_before_s2s_was_imported(tmp_path):
    (tmp_path / "early.py").write_text("def f(x):\n    return x * 3.0\n\ndef g(x):\n"
                                       "    x = x * 3.0\n    return x * 3.0\n")
    code = """
import pathlib, sys, early
text = pathlib.Path(early.__file__).read_text()
pathlib.Path(early.__file__).write_text(
    text.replace("return x * 3.0", "return x + 3.0", 1).replace("    x = x * 3.0\\n", ""))
import s2s
for f in (early.f, early.g):
    try:
        print(s2s.grad(f)(1.0))
    except s2s.SourceError as error:
        print("defines another" in str(error))
"""
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_what_changed_elsewhere_in_the_file_does_not_matter(changing):
    load, write = changing
    module = load(OLD)
    write(OLD.replace("g = lambda x: x * 2.0", "g = lambda x: x * 3.0\n\n    def more(x):\n"
                                               "        return x\n"))
    assert s2s.grad(module.f)(1.0) == 2.0
    with pytest.raises(s2s.SourceError, match="defines another <lambda> than this one"):
        s2s.grad(module.g)(1.0)


def test_what_has_moved_is_found_by_its_code(changing):
    load, write = changing
    module = load(OLD)
    write("\n    K = 3.0\n" + OLD)
    for f in (module.f, module.Model().f, module.g):
        assert s2s.grad(f)(1.0) == 2.0


def test_a_reloaded_module_is_read_anew(changing):
    load, write = changing
    module = load(OLD)
    slope = s2s.grad(module.f)
    assert slope(1.0) == 2.0
    write(OLD.replace("2.0\n", "3.0\n"))
    assert slope(1.0) == 2.0, "the function that it was made of has not changed"
    assert s2s.grad(importlib.reload(module).f)(1.0) == 3.0


def test_asserts_that_pytest_rewrites():
    def checked(x):
        assert x > 0.0, "x has to be positive"
        return np.sqrt(x)

    def compared(x, y):
        assert 0.0 < x <= 8.0 and (not y < 1 or abs(x - y) > 2.0), f"{x} and {y}"
        z = x * x
        assert z == x * x, (lambda v: v)("squares")
        return (lambda x: x * z)(x) + y

    assert s2s.grad(checked)(4.0) == 0.25
    assert s2s.grad(compared)(4.0, 1.0) == 48.0
    assert s2s.grad(lambda x: (lambda x: x * 3.0)(x) * x)(1.0) == 6.0


def test_an_object_is_called_as_its_class_says_now():
    """IPython's autoreload gives objects the new class."""
    class Law:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x * self.k

    class NewLaw(Law):
        def __call__(self, x):
            return x * x * self.k

    law = Law(3.0)
    slope, fast = s2s.grad(law), s2s.grad(lambda x: law(x) * 2.0)
    assert (slope(1.0), fast(1.0)) == (3.0, 6.0)
    law.__class__ = NewLaw
    assert (slope(1.0), fast(1.0)) == (6.0, 12.0)
    NewLaw.__call__ = lambda self, x: x**3
    assert (slope(1.0), fast(1.0)) == (3.0, 6.0)


def test_methods_of_what_the_program_makes_are_those_of_now():
    class Law:
        def __init__(self, k):
            self.k = k

        def at(self, x):
            return x * self.k

        @property
        def half(self):
            return self.k / 2.0

    class Steep(Law):
        def at(self, x):
            return super().at(x) * x

    slopes = [
        s2s.grad(lambda x: Law(3.0).at(x) * Law(3.0).half),
        s2s.grad(lambda x: Steep(3.0).at(x) * Steep(3.0).half),
    ]
    assert [slope(1.0) for slope in slopes] == [4.5, 9.0]
    Law.at = lambda self, x: x * self.k * 10.0
    assert [slope(1.0) for slope in slopes] == [45.0, 90.0]
    Law.half = property(lambda self: 1.0)
    assert [slope(1.0) for slope in slopes] == [30.0, 60.0]
    Steep.at = lambda self, x: x**3
    assert [slope(1.0) for slope in slopes] == [30.0, 3.0]
