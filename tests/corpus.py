"""The programs that tests share, as one list: name, function, arguments, and what to differentiate.

`programs(count)` are those of programs.py, compositions.py, constructs.py and refusals.py, the
pages of the golden book, the cases of the benchmarks, the forms of arrays of extents.py, and the
first `count` of each generator.  Files are found by their names, in whatever folder of tests/ they
lie.  Those that import modules of s2s are parsed and not imported: a list of programs must not
depend on the version of s2s that it is given to.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import linecache
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

TESTS = Path(__file__).resolve().parent
while TESTS.name != "tests":
    TESTS = TESTS.parent
CASES = TESTS.parent / "tools" / "bench" / "cases"
SIZE = 10  # of the cases of benchmarks, whose arguments have a size
EXTENT = 5  # of each axis of the arrays of forms


class Program(NamedTuple):
    """A function, arguments, and the positions of those to differentiate."""

    name: str
    function: Callable
    args: tuple
    wrt: tuple[int, ...]


def programs(count: int) -> Iterator[Program]:
    """All programs, with the first `count` of each generator."""
    folders = {str(path.parent) for path in TESTS.rglob("*.py")} - {str(TESTS)}
    sys.path[:0] = [str(TESTS), *sorted(folders - {f"{TESTS}/golden"})]
    yield from shared()
    yield from golden()
    yield from cases()
    yield from forms()
    yield from generated(count)


def floats(args: tuple) -> tuple[int, ...]:
    """The positions of the arguments that hold floating-point numbers."""
    return tuple(k for k, x in enumerate(args) if has_floats(x))


def has_floats(x) -> bool:
    match x:
        case tuple() | list():
            return any(map(has_floats, x))
        case dict():
            return any(map(has_floats, x.values()))
        case bool() | str() | None:
            return False
    return getattr(getattr(x, "dtype", np.dtype(type(x))), "kind", "") in "fc"


def shared() -> Iterator[Program]:
    """The functions of the modules that list their programs."""
    for p in importlib.import_module("programs").PROGRAMS:
        yield Program(f"programs.{p.name}", p.function, p.args, p.wrt)
    module = importlib.import_module("compositions")
    for function in module.PROGRAMS:
        yield Program(f"compositions.{function.__name__}", function, (module.X,), (0,))
    for number, (function, args, _) in enumerate(importlib.import_module("constructs").CASES):
        name = getattr(function, "__name__", type(function).__name__)
        yield Program(f"constructs.{name} {number}", function, args, floats(args))
    for refusal in importlib.import_module("refusals").REFUSALS:
        pairs = [(refusal.program, refusal.args), (refusal.followed, refusal.followed_args)]
        for function, args in pairs:
            yield Program(f"refusals.{function.__name__}", function, args, floats(args))


def module_of(path: Path, prefix: str) -> types.ModuleType:
    """The file as a module."""
    spec = importlib.util.spec_from_file_location(f"{prefix}_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def golden() -> Iterator[Program]:
    """The pages of the golden book."""
    for path in sorted(next(TESTS.rglob("golden")).glob("*.py")):
        page = module_of(path, "golden")
        wrt = getattr(page, "WRT", floats(page.ARGS))
        yield Program(
            f"golden.{path.stem}", page.f, page.ARGS, (wrt,) if isinstance(wrt, int) else wrt
        )


def cases() -> Iterator[Program]:
    """The cases of the benchmarks, which are larger programs, at a small size."""
    for path in sorted(CASES.glob("*.py")):
        case = module_of(path, "case")
        if case.WRT:
            size = min(getattr(case, "GROWTH", (case.SIZE,))[0], case.SIZE)
            yield Program(f"cases.{path.stem}", case.program, case.arguments(size), case.WRT)


def forms() -> Iterator[Program]:
    """Expressions on arrays, with one op or a few: those of extents.py."""
    (path,) = TESTS.rglob("extents.py")
    names = {"form": lambda text, derivative=True, **arrays: (text, arrays)}
    found = {}
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.Assign([ast.Name("FORMS" | "HELPERS" as name)], value):
                found[name] = eval(compile(ast.Expression(value), str(path), "eval"), names)
    for number, (text, arrays) in enumerate(found["FORMS"]):
        source = f"{found['HELPERS']}\n\ndef f({', '.join(arrays)}):\n    return {text}\n"
        args = tuple(array(name, kind) for name, kind in arrays.items())
        name = f"forms.{text} {number}"
        yield Program(name, function_of(source, name), args, floats(args))


def array(name: str, kind: str) -> np.ndarray | float:
    """The array of that name: of numbers "f2", of a positive definite matrix "m2", and so on."""
    rng = np.random.default_rng([ord(name[0]), int(kind[1:])])
    shape = (EXTENT,) * int(kind[1:])
    match kind[0]:
        case "i" | "n":
            return rng.integers(0, 3, shape)
        case "b":
            return rng.random(shape) < 0.5
        case "m":
            x = rng.uniform(0.5, 1.5, shape)
            return 0.2 * x @ np.swapaxes(x, -1, -2) + np.eye(EXTENT)
        case "s":
            return np.sort(rng.uniform(0.5, 1.5, shape), axis=-1)
    return rng.uniform(0.5, 1.5, shape) if shape else float(rng.uniform(0.5, 1.5))


def generated(count: int) -> Iterator[Program]:
    """What the generators of random programs write for the first seeds."""
    generate, idioms = importlib.import_module("generate"), importlib.import_module("idioms")
    for of, text in (("generate", generate.text), ("idioms", idioms.text)):
        for seed in range(count):
            args, name = generate.arguments(seed), f"{of}.{seed}"
            yield Program(name, function_of(f"{IMPORTS}\n\n{text(seed)}", name), args, floats(args))


MODULES = "collections contextlib dataclasses enum functools itertools math operator types s2s"
IMPORTS = "".join(f"import {name}\n" for name in MODULES.split()) + "import numpy as np\n"


def function_of(text: str, name: str) -> Callable:
    """The function `f` of a module of this text, whose source can be found."""
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = sys.modules[name] = types.ModuleType(name)  # where dataclasses look
    exec(compile(text, filename, "exec"), vars(module))
    return module.f
