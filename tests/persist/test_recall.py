"""What a first call generated is recalled by the next process exactly where it would generate the
same.
"""

import linecache
import os
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import numpy as np
import pytest

import s2s
from s2s import passes, pipeline
from s2s.runtime.cache import machine_code, program_store
from s2s.runtime.numba import native_module

pytestmark = pytest.mark.compile
X = np.array([0.3, -0.7, 1.2])


class Process:
    """Programs that are run as if each were in a process of its own: what was made for the others
    is forgotten but for the disk.
    """

    def __init__(self, folder: Path, monkeypatch):
        self.folder, self.monkeypatch, self.made = folder, monkeypatch, []
        monkeypatch.setenv("S2S_CACHE_DIR", str(folder / "cache"))
        monkeypatch.setenv("S2S_RECALL", "1")
        build = pipeline.front_build
        monkeypatch.setattr(pipeline, "front_build", lambda *a: self.made.append(a) or build(*a))

    def module(self, text: str, name: str = "program") -> types.ModuleType:
        path = self.folder / f"{name}.py"
        path.write_text(textwrap.dedent(text))
        linecache.checkcache(str(path))
        module = types.ModuleType(name)
        module.__file__ = str(path)
        self.monkeypatch.setitem(sys.modules, name, module)
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
        return module

    def run(self, text: str, *args, name: str = "program"):
        """(the result of the program's `main`, how many functions have been read for it)."""
        self.monkeypatch.setattr(native_module, "_modules", {})
        main, before = self.module(text, name).main, len(self.made)
        return main(*args), len(self.made) - before


@pytest.fixture
def process(tmp_path, monkeypatch):
    return Process(tmp_path, monkeypatch)


SUM = """
import numpy as np
import s2s

{outside}

def f(x):
    return {body}

main = s2s.jit(s2s.grad(f))
"""


def of(body: str, outside: str = "") -> str:
    return SUM.format(body=body, outside=outside)


def close(a, b) -> bool:
    return np.allclose(a, b, rtol=1e-13, atol=0)


def test_the_same_program_is_not_generated_again(process):
    program = of("np.sum(np.sin(x) * helper(x))", "def helper(x):\n    return x * K\n\nK = 2.0")
    wanted = 2 * (np.cos(X) * X + np.sin(X))
    assert [
        (close(found, wanted), made > 0)
        for found, made in (process.run(program, X) for _ in range(3))
    ] == [(True, True), (True, False), (True, False)]


SAME = [  # data may be another
    ("np.sum(x * K)", "K = 2.0", "K = 3.0", 2.0, 3.0),
    ("np.sum(x * D['k'] + len(D))", "D = {'k': 2.0}", "D = {'k': 5.0}", 2.0, 5.0),
    ("np.sum(x * T[1])", "T = (1.0, 2.0)", "T = (1.0, 4.0)", 2.0, 4.0),
    ("np.sum(x * A)", "A = np.ones(3)", "A = np.full(3, 7.0)", 1.0, 7.0),
]


@pytest.mark.parametrize("body, first, second, one, two", SAME)
def test_data_outside_is_read_at_each_call(process, body, first, second, one, two):
    found, made = process.run(of(body, first), X)
    assert made and close(found, one)
    found, made = process.run(of(body, second), X)
    assert not made and close(found, two)


# what is outside decides what is generated: (body, outside, outside the next time, and both slopes)
OTHER = {
    "a function": (
        "np.sum(g(x))",
        "def g(x):\n    return 2 * x",
        "def g(x):\n    return 3 * x",
        2.0,
        3.0,
    ),
    "a function of another's": (
        "np.sum(g(x))",
        "def h(x):\n    return 2 * x\ndef g(x):\n    return h(x)",
        "def h(x):\n    return 5 * x\ndef g(x):\n    return h(x)",
        2.0,
        5.0,
    ),
    "a function that others are named for": (
        "np.sum(g(x))",
        "g = np.sin",
        "g = np.cos",
        np.cos(X),
        -np.sin(X),
    ),
    "a default": (
        "np.sum(g(x))",
        "def g(x, k=2):\n    return x * k",
        "def g(x, k=3):\n    return x * k",
        2.0,
        3.0,
    ),
    "a keyword's default": (
        "np.sum(g(x))",
        "def g(x, *, k=2):\n    return x * k",
        "def g(x, *, k=3):\n    return x * k",
        2.0,
        3.0,
    ),
    "a string": ("np.sum(x * 2 if MODE == 'a' else x * 3)", "MODE = 'a'", "MODE = 'b'", 2.0, 3.0),
    "None": ("np.sum(x * 2 if MODE is None else x * 3)", "MODE = None", "MODE = 'b'", 2.0, 3.0),
    "a rank that only decides": (
        "np.sum(x * 2 if A.ndim == 2 else x * 3)",
        "A = np.ones((2, 2))",
        "A = np.ones(2)",
        2.0,
        3.0,
    ),
    "a dtype that only decides": (
        "np.sum(x * 2 if A.dtype == np.float64 else x * 3)",
        "A = np.ones(2)",
        "A = np.ones(2, np.float32)",
        2.0,
        3.0,
    ),
    "a number's type": ("np.sum(x * (K // 2))", "K = 5", "K = 5.5", 2.0, 2.0),
    "a number that is needed to generate": (
        "np.sum(x.reshape(K, -1)[0])",
        "K = 1",
        "K = 3",
        1.0,
        np.array([1.0, 0, 0]),
    ),
    "one of Python's own functions": (
        "np.sum(abs(x))",
        "",
        "def abs(x):\n    return 4 * x",
        np.sign(X),
        4.0,
    ),
    "a library": (
        "np.sum(xp.sin(x))",
        "xp = np",
        "import types\ndef twice(x):\n    return 2 * x\nxp = types.SimpleNamespace(sin=twice)",
        np.cos(X),
        2.0,
    ),
    "the length of a list": ("np.sum(x * len(L))", "L = [1.0]", "L = [1.0, 2.0]", 1.0, 2.0),
    "the keys of a dict": (
        "np.sum(x * 2 if 'a' in D else x * 3)",
        "D = {'a': 1.0}",
        "D = {'b': 1.0}",
        2.0,
        3.0,
    ),
    "a string in a dict": (
        "np.sum(x * 2 if D['a'] == 'u' else x * 3)",
        "D = {'a': 'u'}",
        "D = {'a': 'v'}",
        2.0,
        3.0,
    ),
    "whether a dict holds anything": (
        "np.sum(x * 2 if D else x * 3)",
        "D = {'a': 1.0}",
        "D = {}",
        2.0,
        3.0,
    ),
    "a transformed function": (
        "np.sum(x * s2s.grad(g)(2.0))",
        "def g(x):\n    return x * x",
        "def g(x):\n    return x * x * x",
        4.0,
        12.0,
    ),
    "a function inside a transformed one": (
        "np.sum(x * g(2.0))",
        "@s2s.grad\ndef g(x):\n    return x * x",
        "@s2s.grad\ndef g(x):\n    return x * x * x",
        4.0,
        12.0,
    ),
    "how one is transformed": (
        "np.sum(x * g(2.0, 3.0))",
        "def h(x, y):\n    return x * y * y\ng = s2s.grad(h)",
        "def h(x, y):\n    return x * y * y\ng = s2s.grad(h, argnums=1)",
        9.0,
        12.0,
    ),
    "a checkpoint": (
        "np.sum(g(x))",
        "@s2s.checkpoint\ndef g(x):\n    return 2 * x",
        "@s2s.checkpoint\ndef g(x):\n    return 3 * x",
        2.0,
        3.0,
    ),
    "a rule": (
        "np.sum(g(x))",
        "@s2s.custom_jvp\ndef g(x):\n    return x\ng.defjvp(lambda p, t: (p[0], 2 * t[0]))",
        "@s2s.custom_jvp\ndef g(x):\n    return x\ng.defjvp(lambda p, t: (p[0], 3 * t[0]))",
        2.0,
        3.0,
    ),
    "an object": (
        "np.sum(x * (2 if M.on else 3))",
        "class M:\n    on = True",
        "class M:\n    on = False",
        2.0,
        3.0,
    ),
    "a method": (
        "np.sum(M.g(x))",
        "class C:\n    def g(self, x):\n        return 2 * x\nM = C()",
        "class C:\n    def g(self, x):\n        return 3 * x\nM = C()",
        2.0,
        3.0,
    ),
}


@pytest.mark.parametrize("body, first, second, one, two", OTHER.values(), ids=OTHER)
def test_what_decides_is_asked_again(process, body, first, second, one, two):
    for _ in range(2):  # the second time both are kept, where they can be
        for outside, wanted in ((first, one), (second, two)):
            # f stands where it stood
            blank = "\n" * max(0, max(first.count("\n"), second.count("\n")) - outside.count("\n"))
            found, _made = process.run(of(body, outside + blank), X)
            assert close(found, wanted)


def test_what_stands_in_other_modules_is_asked_again(process):
    program = of("np.sum(helpers.g(x) * helpers.deeper.K)", "import helpers")
    for k, wanted in ((2.0, 2.0), (3.0, 3.0)):
        process.module(f"K = 1.0\ndef h(x):\n    return x * {k}\n", "deeper")
        process.module("import deeper\ndef g(x):\n    return deeper.h(x)\n", "helpers")
        found, made = process.run(program, X)
        assert made and close(found, wanted)
        found, made = process.run(program, X)
        assert not made and close(found, wanted)


def test_closures_are_asked_again(process):
    program = """
    import numpy as np
    import s2s

    def make(mode, k):
        def f(x):
            return np.sum(x * k if mode == "a" else x * k * 10)
        return s2s.jit(s2s.grad(f))

    main = lambda x, *held: make(*held)(x)
    """
    said = [
        process.run(program, X, *held)
        for held in (("a", 2.0), ("a", 3.0), ("b", 3.0), ("b", 4.0), ("a", 5))
    ]
    assert [close(found, wanted) for (found, _), wanted in zip(said, (2, 3, 30, 40, 5))] == [
        True
    ] * 5
    assert [made > 0 for _, made in said] == [True, False, True, False, True]


def test_types_of_arguments_and_options_are_part_of_the_key(process):
    program = """
    import numpy as np
    import s2s

    def f(x, y):
        return np.sum(x * x * y)

    def main(x, y, **options):
        return s2s.jit(s2s.grad(f, argnums=options.pop("argnums", 0)), **options)(x, y)
    """
    y = np.array([2.0, 3.0, 5.0])
    calls = [
        ((X, y), {}),
        ((X, 2.0), {}),
        ((X, y), {"argnums": 1}),
        ((X[:1], y), {}),
        ((X.astype(np.float32), y.astype(np.float32)), {}),
        ((np.ones((2, 3)), y), {}),
        ((X, y), {"fastmath": True}),
        ((X, y), {"parallel": False}),
    ]
    wanted = [
        2 * X * y,
        4 * X,
        X * X,
        [2 * X[0] * y.sum()],
        2 * X * y,
        2 * np.ones((2, 3)) * y,
        2 * X * y,
        2 * X * y,
    ]
    for again in (False, True):
        for (args, options), right in zip(calls, wanted):
            process.monkeypatch.setattr(native_module, "_modules", {})
            main, before = process.module(program).main, len(process.made)
            found = main(*args, **dict(options))
            assert (
                np.allclose(found, right, rtol=1e-5)
                and found.dtype == args[options.get("argnums", 0)].dtype
            )
            assert (len(process.made) > before) == (not again)


def test_another_version_of_anything_generates(process, monkeypatch):
    program = of("np.sum(x * x)")
    process.run(program, X)
    monkeypatch.setattr(program_store, "versions", lambda: "another")
    assert process.run(program, X)[1] > 0 and process.run(program, X)[1] == 0


def test_every_file_of_s2s_is_part_of_the_version(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(machine_code, "ROOT", tmp_path)
    monkeypatch.setattr(machine_code, "own_files", machine_code.own_files.__wrapped__)
    first = program_store.versions.__wrapped__()
    assert first == program_store.versions.__wrapped__() and machine_code.versions() in first
    (tmp_path / "inner" / "a.py").write_text("x = 2\n")
    assert program_store.versions.__wrapped__() != first


def test_where_somebody_looks_all_is_generated(process, monkeypatch):
    program = of("np.sum(x * x)")
    process.run(program, X)
    for name in ("S2S_CHECK", "S2S_DUMP"):
        with monkeypatch.context() as inside:
            inside.setenv(name, "1" if name == "S2S_CHECK" else str(process.folder / "dump"))
            assert process.run(program, X)[1] > 0
    with passes.recorded() as stages:
        process.run(program, X)
    assert stages


def test_rules_of_libraries_functions_are_not_kept(process, monkeypatch):
    import scipy.special

    from s2s.ops.program.custom_rules import RULES

    program = of("np.sum(scipy.special.expit(x))", "import scipy.special")
    plain, _ = process.run(program, X)
    monkeypatch.setitem(RULES, object(), object())
    assert process.run(program, X)[1] > 0
    assert process.run(program, X)[1] > 0  # nor then
    assert close(plain, scipy.special.expit(X) * scipy.special.expit(-X))


@pytest.mark.parametrize(
    "damage",
    [lambda b: b[:50], lambda b: b"", lambda b: b[:-1] + bytes([b[-1] ^ 1])],
    ids=["torn", "empty", "flipped"],
)
@pytest.mark.parametrize("kind", ["met", "piece"])
def test_damaged_entries_are_generated_anew(process, kind, damage):
    program = of("np.sum(x * x)")
    process.run(program, X)
    entries = list((process.folder / "cache").glob(f"*.{kind}"))
    for entry in entries:
        entry.write_bytes(damage(entry.read_bytes()))
    assert entries and close(process.run(program, X)[0], 2 * X)
    assert close(process.run(program, X)[0], 2 * X) and process.run(program, X)[1] == 0


# ---------------------------------------------------------- what is recalled, beyond its first call


def test_the_source_is_generated_when_it_is_asked_for(process):
    program = """
    import numpy as np
    import s2s

    def f(x):
        return np.sum(x * x)

    def main(x):
        fast = s2s.jit(s2s.grad(f))
        return fast(x), fast
    """
    (_, first), made = process.run(program, X)
    assert made
    (_, again), made = process.run(program, X)
    assert not made and again.source == first.source and "2.0 * x" in again.source
    assert again.lower(X).loops == first.lower(X).loops and again.lower(X).ssa == first.lower(X).ssa


def test_other_calls_of_what_is_recalled(process):
    program = """
    import numpy as np
    import s2s

    def f(x, w, n):
        total = 0.0
        for i in range(n):
            total += np.sum(np.sin(w @ x) * x) / (1 + i)
        return total

    main = s2s.jit(s2s.grad(f))
    """

    def wanted(x, w, n):
        return s2s.grad(lambda x: sum(np.sum(np.sin(w @ x) * x) / (1 + i) for i in range(n)))(x)

    rng = np.random.default_rng(0)
    calls = [(3, 400), (40, 30), (4, 400), (2, 2), (60, 2000), (5, 1)]
    for order in (calls[:1], calls, calls[::-1]):
        process.monkeypatch.setattr(native_module, "_modules", {})
        fast = process.module(program).main
        for size, n in order:
            x, w = rng.normal(size=size), rng.normal(size=(size, size))
            assert np.allclose(fast(x, w, n), wanted(x, w, n), rtol=1e-10)
            out = np.empty(size)
            assert fast(x, w, n, out=out) is out and np.allclose(out, wanted(x, w, n), rtol=1e-10)
        with pytest.raises(ValueError, match="size 3 is different from 4"):
            fast(np.ones(3), np.ones((4, 4)), 2)


def test_errors_of_what_is_recalled_are_the_programs(process):
    program = """
    import numpy as np
    import s2s

    def f(x, k):
        if x[0] < 0:
            raise ValueError(f"negative: {x[0]}")
        return x[k] * x[0]

    main = s2s.jit(s2s.grad(f))
    """
    for _ in range(2):
        process.monkeypatch.setattr(native_module, "_modules", {})
        fast = process.module(program).main
        assert close(fast(np.array([2.0, 3.0]), 1), [3.0, 2.0])
        with pytest.raises(ValueError, match="negative: -1.0") as raised:
            fast(np.array([-1.0, 3.0]), 1)
        assert "line 7, in f" in "".join(getattr(raised.value, "__notes__", ["line 7, in f"]))
        with pytest.raises(IndexError) as raised:
            fast(np.array([2.0, 3.0]), 5)
        assert "line 8, in f" in "".join(getattr(raised.value, "__notes__", ["line 8, in f"]))


def test_what_prints_and_draws_does_so_once(process, capfd):
    program = """
    import numpy as np
    import s2s

    def f(x, rng):
        print("drawn")
        return np.sum(x * rng.normal())

    def main(x, seed):
        return s2s.jit(s2s.grad(f))(x, np.random.default_rng(seed))
    """
    for _ in range(2):
        found, _made = process.run(program, X, 3)
        assert close(found, np.random.default_rng(3).normal())
        assert capfd.readouterr().out == "drawn\n"


def test_names_that_change_after_a_recalled_call(process):
    program = of("np.sum(g(x) * K)", "def g(x):\n    return 2 * x\n\nK = 1.0")
    process.run(program, X)
    module = process.module(program)
    assert close(module.main(X), 2.0) and close(module.main(X), 2.0)
    module.K = 3.0
    assert close(module.main(X), 6.0)
    module.K = np.array([1.0, 2.0, 3.0])
    assert close(module.main(X), [2.0, 4.0, 6.0])
    module.g = np.sin
    assert close(module.main(X), np.cos(X) * module.K)


def test_containers(process):
    program = """
    import numpy as np
    import s2s

    def f(p, x):
        return np.sum((p["w"] * x + p["b"][0]) ** 2)

    main = s2s.jit(s2s.value_and_grad(f))
    """
    p = {"w": np.array([1.0, 2.0, 3.0]), "b": [0.5, None]}
    first, made = process.run(program, p, X)
    assert made
    again, made = process.run(program, p, X)
    assert (
        not made
        and again[0] == first[0]
        and close(again[1]["w"], first[1]["w"])
        and again[1]["b"] == first[1]["b"]
    )
    other, made = process.run(program, {"b": (0.5, None), "w": p["w"]}, X)
    assert made and type(other[1]["b"]) is tuple and list(other[1]) == ["b", "w"]


PROGRAM = """
import sys
import numpy as np
import s2s
from s2s import pipeline

made = []
build = pipeline.front_build
pipeline.front_build = lambda *a: made.append(a) or build(*a)

def helper(x):
    return np.sin(x) * {k}

def f(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * helper(x[i])
    return total

print(s2s.jit(s2s.grad(f))(np.arange(4.0)).sum(), len(made))
"""


def test_processes_one_after_another(tmp_path):
    script, root = tmp_path / "program.py", Path(s2s.__file__).parent.parent
    env = {
        **os.environ,
        "S2S_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(root),
        "S2S_RECALL": "1",
    }
    said = []
    for k, seed in ((2.0, "1"), (2.0, "2"), (3.0, "3"), (2.0, "4")):
        script.write_text(PROGRAM.format(k=k))
        out = subprocess.run(
            [sys.executable, str(script)],
            env={**env, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        value, made = out.stdout.split()
        said.append((float(value) / k, int(made) > 0))
    x = np.arange(4.0)
    assert np.allclose([value for value, _ in said], np.sum(np.sin(x) + x * np.cos(x)))
    assert [made for _, made in said] == [True, False, True, False]


WRITTEN_ONCE = """
import math
import numpy
import s2s

def f(x, xp={default}):
    return xp.{function}(x)

main = s2s.jit(s2s.grad(f))
"""


def test_a_module_that_is_an_argument_is_kept_by_its_name(process):
    program = WRITTEN_ONCE.format(default="numpy", function="sin")
    assert [(found, made > 0) for found, made in (process.run(program, 0.5) for _ in range(2))] == [
        (np.cos(0.5), True),
        (np.cos(0.5), False),
    ]
    found, made = process.run(WRITTEN_ONCE.format(default="math", function="sin"), 0.5)
    assert made and found == np.cos(0.5)


def test_a_function_of_no_module_with_attributes(process):
    inner = s2s.from_source("def inner(x):\n    return np.sum(np.sin(x) * x)\n", {"np": np})
    inner.order = 2
    outer = s2s.from_source("def outer(x):\n    return inner(x) ** 2\n", {"inner": inner})
    assert inner.__module__ is None
    np.testing.assert_allclose(s2s.jit(s2s.grad(outer))(X), s2s.grad(outer)(X), rtol=1e-12)
