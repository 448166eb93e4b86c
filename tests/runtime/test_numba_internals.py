"""What s2s uses of Numba beyond its documentation is named in one module, which checks that it is
there.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest

import s2s
from s2s.runtime import numba_internals

ROOT = Path(s2s.__file__).parent
PUBLIC = {"numba.extending": None, "numba.typed": None, "numba.cuda": None,
          "llvmlite": {"ir", "binding"},
          # module -> its documented names
          "numba": {*numba.__all__, "types", "config", "cuda", "objmode", "typed", "carray"}}
OURS = "numba.njit_text"  # of s2s.runtime
PYTHONS = {"_replace", "_fields", "_asdict", "_getframe"}  # of named tuples, syntax trees and sys


def modules() -> dict[str, ast.Module]:
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for path in sorted(ROOT.rglob("*.py"))
    }


def private_imports(tree: ast.Module) -> Iterator[str]:
    """What a module imports of Numba and llvmlite that is not documented, by a statement or by
    name.
    """
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] in (
                "numba",
                "llvmlite",
            ):
                yield from (
                    f"{module}.{alias.name}"
                    for alias in node.names
                    if module not in PUBLIC
                    or PUBLIC[module] is not None
                    and alias.name not in PUBLIC[module]
                )
            case ast.Import():
                yield from (
                    alias.name
                    for alias in node.names
                    if alias.name.split(".")[0] in ("numba", "llvmlite") and "." in alias.name
                )
            case ast.Constant(str(text)) if (
                re.fullmatch(r"(numba|llvmlite)(\.\w+)+(:\w+)?", text)
                and text not in PUBLIC
                and PUBLIC.get(text.partition(":")[0], ()) is not None
                and text != OURS
            ):
                yield text
            case ast.Attribute(ast.Name("numba"), attr) if attr not in PUBLIC[
                "numba"
            ] and not attr.startswith("__"):
                yield f"numba.{attr}"
            case ast.Attribute(ast.Name("binding"), "ffi"):
                yield "llvmlite.binding.ffi"


@pytest.mark.lengthy
def test_private_names_are_imported_by_one_module():
    trees = modules()
    own = trees.pop("runtime/numba_internals.py")
    assert set(numba_internals.NAMES.values()) <= set(private_imports(own))  # the search finds them
    wrong = [f"{name}: {found}" for name, tree in trees.items() for found in private_imports(tree)]
    assert not wrong


@pytest.mark.lengthy
def test_each_private_name_is_used():
    taken = {
        alias.name
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module
        and node.module.endswith("numba_internals")
        for alias in node.names
    }
    # classes met only by their objects
    checked = {name for name in numba_internals.NAMES if name in numba_internals.MEMBERS}
    assert set(numba_internals.NAMES) <= taken | checked and taken - {"numba_internals"} <= {
        *numba_internals.NAMES,
        "DYNAMIC_GLOBALS",
        "MISSING",
        "explain",
    }


@pytest.mark.lengthy
def test_private_attributes_are_declared():
    """An attribute with an underscore that s2s does not define is one of MEMBERS."""
    declared = {
        member for members in numba_internals.MEMBERS.values() for member in members.split()
    }
    defined, read = set(), {}
    for name, tree in modules().items():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef() | ast.ClassDef():
                    defined.add(node.name)
                case ast.Name(ctx=ast.Store()):
                    defined.add(node.id)
                case ast.Attribute(attr=attr) if (
                    attr.startswith("_")
                    and not attr.startswith("__")
                    and name.startswith("runtime/")
                ):
                    (
                        defined.add(attr)
                        if isinstance(node.ctx, ast.Store)
                        else read.setdefault(attr, name)
                    )
    assert {"_engine", "_reload_init"} <= set(read)
    ours = {"_ARRAY_API", "_core", "_multiarray_umath"}  # NumPy's, in runtime/intrinsics/boxing.py
    assert {
        attr: name for attr, name in read.items() if attr not in defined | declared | PYTHONS | ours
    } == {}


@pytest.mark.lengthy
def test_what_subclasses_override_is_declared():
    for name in modules():
        if name.startswith("runtime/") and "cuda" not in name:
            importlib.import_module(
                f"s2s.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
            )
    bases = {
        getattr(numba_internals, alias): members.split()
        for alias, members in numba_internals.MEMBERS.items()
    }
    found, undeclared = set(), {}
    for base, members in bases.items():
        ahead = base.__subclasses__()
        while ahead:
            cls = ahead.pop()
            ahead += cls.__subclasses__()
            if cls.__module__.startswith("s2s."):
                found.add(cls.__name__)
                overridden = {x for x in vars(cls) if hasattr(base, x) and not x.startswith("__")}
                undeclared[cls.__name__] = overridden - {*members, "_name", "_abc_impl", "pass_id"}
    assert not any(undeclared.values()), undeclared  # but for what decorators set
    assert {"Library", "Effort", "DiskCache", "Boxing", "DirectLower"} <= found


def test_this_version_has_all_of_them():
    assert numba_internals.MISSING == () and numba_internals.explain() == ""


def test_what_is_missing_is_named(monkeypatch):
    objects = numba_internals.available_objects()
    monkeypatch.setitem(numba_internals.NAMES, "gone", "numba.core.cgutils:no_such_function")
    monkeypatch.setitem(numba_internals.NAMES, "nowhere", "numba.no_such_module")
    monkeypatch.setitem(numba_internals.MEMBERS, "Lower", "init no_such_method")
    missing = (
        "numba.core.cgutils.no_such_function",
        "numba.no_such_module",
        "numba.core.lowering.Lower.no_such_method",
    )
    assert (
        tuple(numba_internals.missing(objects)) == missing
        and numba_internals.available_objects().keys() == objects.keys()
    )
    monkeypatch.setattr(numba_internals, "MISSING", missing)
    with pytest.raises(
        ImportError,
        match=rf"Numba {numba.__version__} with llvmlite .* has no "
        r"numba\.core\.cgutils\.no_such_function, ",
    ):
        numba_internals.gone  # noqa: B018
    with pytest.raises(AttributeError):
        numba_internals.never_there  # noqa: B018


def test_attributes_of_instances_are_seen():
    """Numba 0.62 has no `_reload_init`, which only methods mention."""
    class Before:
        def __init__(self):
            self._linking_libraries = []

    class After(Before):
        @property
        def names(self):
            return self._reload_init

    assert "_linking_libraries" in numba_internals.members_of(After)
    assert "_reload_init" in numba_internals.members_of(
        After
    ) and "_reload_init" not in numba_internals.members_of(Before)
