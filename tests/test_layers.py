"""Imports point one way only, as s2s/LAYERS says; modules are in order."""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import gc
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from s2s.ops.core.record import RECORDS

ROOT = Path(__file__).parent.parent / "s2s"

@functools.cache
def trees() -> dict[Path, ast.Module]:
    """The modules of s2s, read when the first test asks: each process that collects tests would
    read them all.
    """
    # it would look through half a million nodes again and again: as long as reading them
    gc.disable()
    try:
        return {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    finally:
        gc.enable()


@functools.cache
def places() -> dict[str, tuple[int, str, int]]:
    """What s2s/LAYERS says of each part: the paragraph, the folder, the place in the folder's
    order.
    """
    found, height = {}, 0
    for line in (ROOT / "LAYERS").read_text().splitlines():
        name, *order = line.partition("#")[0].split(maxsplit=1)[:2] or [""]
        if not name:
            height += 1
        elif not order:
            found[name] = height, name, 0
        else:
            groups = [group.split() for group in order[0].split("<")]
            found[name] = height, name, len(groups)  # its __init__.py
            found |= {
                f"{name}/{part}": (height, name, k)
                for k, group in enumerate(groups)
                for part in group
            }
    return found


def part_of(module: str) -> str:
    """The part of s2s that a module belongs to: the longest that s2s/LAYERS names."""
    name = module.removeprefix("s2s").removeprefix(".").replace(".", "/") or "__init__"
    whole = name
    while name not in places():
        name = name.rpartition("/")[0]
        assert name, f"s2s/LAYERS has no place for {whole}"
    return name


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(path: Path) -> set[str]:
    """The modules of s2s that a file imports, the packages around them not counted."""
    modules = {module_of(path) for path in trees()}
    package = ["s2s", *path.relative_to(ROOT).parent.parts]
    found = set()
    for node in ast.walk(trees()[path]):
        match node:
            case ast.ImportFrom(module=module, names=names, level=level) if (
                level or module.split(".")[0] == "s2s"
            ):
                base = package[: len(package) - level + 1] if level else []
                name = ".".join(base + (module.split(".") if module else []))
                found |= {
                    f"{name}.{alias.name}" if f"{name}.{alias.name}" in modules else name
                    for alias in names
                }
            case ast.Import(names=names):
                found |= {alias.name for alias in names if alias.name.split(".")[0] == "s2s"}
            case ast.Call(ast.Name("later"), [ast.Constant(module)]) if (
                module.split(".")[0] == "s2s"
            ):
                found.add(module)
    return found


def may_import(part: str, other: str) -> bool:
    """Whether modules of the one part may import those of the other."""
    height, folder, place = places()[part]
    below, other_folder, other_place = places()[other]
    return part == other or below < height or folder == other_folder and other_place < place


def test_imports_point_down():
    wrong = [
        f"{module_of(path)} imports {other}"
        for path in trees()
        for other in imported_modules(path)
        if not may_import(part_of(module_of(path)), part_of(other))
    ]
    assert not wrong


def test_an_import_upwards_is_found():
    assert may_import("front/eval", "front/control") and not may_import(
        "front/control", "front/eval"
    )
    assert may_import("runtime/call", "back/print") and not may_import("back/print", "runtime/call")
    assert not may_import("front/rules", "back/loopir") and not may_import(
        "transform/forward", "transform/batch"
    )
    assert part_of("s2s.runtime.kernels.vector_math.lanes") == "runtime/kernels/vector_math"


def test_no_modules_import_one_another():
    graph = {module_of(path): imported_modules(path) - {module_of(path)} for path in trees()}
    tuple(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


def test_base_names_are_unique():
    """A module is found by its name alone."""
    count = collections.Counter(path.name for path in trees() if path.name != "__init__.py")
    assert [name for name, times in count.items() if times > 1] == []


def is_later(node: ast.AST) -> bool:
    """Whether this imports a module when it is first wanted, as s2s/lazy_import.py says."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "later"
    )


def test_every_part_has_a_layer():
    assert {part_of(module_of(path)) for path in trees()} == set(places())


def outermost_functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """The functions in `tree` that are in no other function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, (ast.stmt, ast.excepthandler)):
            yield from outermost_functions(node)


def test_imports_stand_at_the_top_of_their_module():
    inside = [
        f"{path.relative_to(ROOT)}, line {node.lineno}"
        for path, tree in trees().items()
        for function in outermost_functions(tree)
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or is_later(node)
    ]
    assert not inside, "imports inside functions"


def test_modules_say_what_they_mean():
    silent = [
        str(path.relative_to(ROOT))
        for path, tree in trees().items()
        if tree.body and not ast.get_docstring(tree)
    ]
    assert not silent, "modules without a docstring"


def test_the_linter_finds_nothing():
    """ruff, as pyproject.toml configures it."""
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "s2s", "tests", "tools"],
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout


def tables_of_exceptions(tree: ast.Module):
    """The dicts in a module that say of ops, or of functions of Python's and NumPy's, which
    exceptions they raise.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and len(node.keys) > 1:
            names = [
                k.value in RECORDS
                if isinstance(k, ast.Constant)
                else isinstance(k, ast.Attribute)
                and isinstance(k.value, ast.Name)
                and k.value.id in ("math", "cmath", "np", "operator")
                for k in node.keys
            ]
            classes = {
                n.id for value in node.values for n in ast.walk(value) if isinstance(n, ast.Name)
            }
            if all(names) and any(
                isinstance(getattr(builtins, name, None), type)
                and issubclass(getattr(builtins, name), Exception)
                for name in classes
            ):
                yield node.lineno


def test_only_records_say_what_ops_raise():
    """`raises` of the records in s2s/ops says it, and no table beside it."""
    found = [
        (path.name, line)
        for path, tree in trees().items()
        if module_of(path).split(".")[1:2] != ["ops"]
        for line in tables_of_exceptions(tree)
    ]
    assert found == []
    example = ast.parse("RAISES = {'divide': (ZeroDivisionError, f), 'math.sqrt': (ValueError, g)}")
    assert list(tables_of_exceptions(example)) == [1]
