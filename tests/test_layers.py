"""Imports point one way only; modules are in order."""

from __future__ import annotations

import ast
import builtins
import functools
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from s2s.ops.record import RECORDS

ROOT = Path(__file__).parent.parent / "s2s"

LAYERS = [
    {"errors", "later"},
    {"checking"},
    {"ir"},
    {"tree"},
    {"structured"},
    {"ops"},
    {"front", "transform", "back"},
    {"agreement"},
    {"runtime"},
    {"flat"},
    {"pipeline"},
    {"arguments", "signature", "display", "names"},
    {"assemble"},
    {"halves", "implicit", "jacobians", "sweeps"},
    {"kinds", "carried", "calling", "conventions"},
    {"recalled"},
    {"transformed"},
    {"sparse", "shapes"},
    {"api"},
    {"__init__"},
    {"__main__"},
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """The modules of s2s, read when the first test asks: each process that collects tests would read them all."""
    gc.disable()  # it would look through half a million nodes again and again: as long as reading them
    try:
        return {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    finally:
        gc.enable()


def part_of(path: Path) -> str:
    """The part of s2s that a file belongs to."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported_parts(path: Path) -> set[str]:
    """The parts of s2s that a file imports."""
    package = ["s2s", *path.relative_to(ROOT).parent.parts]
    found = set()
    for node in ast.walk(trees()[path]):
        match node:
            case ast.ImportFrom(module=module, names=names, level=level) if level:
                base = package[:len(package) - level + 1] + (module.split(".") if module else [])
                paths = [base] if len(base) > 1 else [[*base, alias.name] for alias in names]
            case ast.ImportFrom(module=module) if module and module.split(".")[0] == "s2s":
                paths = [module.split(".")]
            case ast.Import(names=names):
                paths = [alias.name.split(".") for alias in names if alias.name.split(".")[0] == "s2s"]
            case ast.Call(ast.Name("later"), [ast.Constant(module)]) if module.split(".")[0] == "s2s":
                paths = [module.split(".")]
            case _:
                continue
        found |= {p[1] if len(p) > 1 else "__init__" for p in paths}
    return found


def test_imports_point_down():
    wrong = [f"{path.relative_to(ROOT)} imports {other}" for path in trees() for other in imported_parts(path) - {part_of(path)}
             if HEIGHT[other] >= HEIGHT[part_of(path)]]
    assert not wrong


def is_later(node: ast.AST) -> bool:
    """Whether this imports a module when it is first wanted, as s2s/later.py says."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "later"


def test_every_part_has_a_layer():
    assert {part_of(path) for path in trees()} == set(HEIGHT)


def outermost_functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """The functions in `tree` that are in no other function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, (ast.stmt, ast.excepthandler)):
            yield from outermost_functions(node)


def test_imports_stand_at_the_top_of_their_module():
    inside = [f"{path.relative_to(ROOT)}, line {node.lineno}" for path, tree in trees().items() for function in outermost_functions(tree)
              for node in ast.walk(function) if isinstance(node, (ast.Import, ast.ImportFrom)) or is_later(node)]
    assert not inside, "imports inside functions"


def test_modules_say_what_they_mean():
    silent = [str(path.relative_to(ROOT)) for path, tree in trees().items() if tree.body and not ast.get_docstring(tree)]
    assert not silent, "modules without a docstring"


def test_the_linter_finds_nothing():
    """ruff, as pyproject.toml configures it."""
    found = subprocess.run([sys.executable, "-m", "ruff", "check", "s2s", "tests", "tools"], cwd=ROOT.parent,
                           capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def tables_of_exceptions(tree: ast.Module):
    """The dicts in a module that say of ops, or of functions of Python's and NumPy's, which exceptions they raise."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and len(node.keys) > 1:
            names = [k.value in RECORDS if isinstance(k, ast.Constant) else isinstance(k, ast.Attribute) and isinstance(k.value, ast.Name)
                     and k.value.id in ("math", "cmath", "np", "operator") for k in node.keys]
            classes = {n.id for value in node.values for n in ast.walk(value) if isinstance(n, ast.Name)}
            if all(names) and any(isinstance(getattr(builtins, name, None), type) and issubclass(getattr(builtins, name), Exception)
                                  for name in classes):
                yield node.lineno


def test_only_records_say_what_ops_raise():
    """`raises` of the records in s2s/ops says it, and no table beside it."""
    found = [(path.name, line) for path, tree in trees().items() if part_of(path) != "ops" for line in tables_of_exceptions(tree)]
    assert found == []
    example = ast.parse("RAISES = {'divide': (ZeroDivisionError, f), 'math.sqrt': (ValueError, g)}")
    assert list(tables_of_exceptions(example)) == [1]
