"""An approximate call graph by names: which functions a function may reach, hence which may be
recursive.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator

import gast

from ...errors import SourceError
from ..domain.frame import Frame
from ..domain.functions import Local
from ..syntax.liveness import read_names
from .unwrap_callable import target_of, unwrap_jit

# what stands between the name `super` and the attribute of `super()`
BETWEEN = ("PUSH_NULL", "PRECALL", "CALL", "CALL_FUNCTION")
OUTSIDE = ("numpy", "scipy", "s2s.", "math", "numba")


def may_call_itself(function: Callable) -> bool:
    """Whether a user's `function` may be called again before it has returned."""
    plain, owner = plain_function(function)
    return plain is not None and plain in reachable_functions(plain, owner)


def plain_function(function: Callable) -> tuple[types.FunctionType | None, object]:
    """The function underlying `function`, and the receiver, if it is a method."""
    try:
        target = target_of(unwrap_jit(function))
    except (SourceError, AttributeError):
        return None, None
    return target.function, target.arguments[0]() if target.arguments else None


def reachable_functions(function: types.FunctionType, owner=None) -> set[types.FunctionType]:
    """The functions reachable from `function` in the call graph."""
    found: set[types.FunctionType] = set()
    pending = [(function, owner)]
    while pending:
        for named in named_functions(*pending.pop()):
            plain, its_owner = plain_function(named)
            if (plain is not None and plain not in found
                    and not (plain.__module__ or "").startswith(OUTSIDE)):
                found.add(plain)
                pending.append((plain, its_owner if its_owner is not None else owner))
    return found


def named_functions(function: types.FunctionType, owner=None) -> Iterator[Callable]:
    """The callables referred to by the names in `function`, attributes of modules and of `owner`
    included.
    """
    names, attributes, inherited = names_in_code(function.__code__, function.__globals__)
    modules = []
    yield from _inherited(function, owner, inherited)
    for name in sorted(names):
        content = function.__globals__.get(name)
        if isinstance(content, types.ModuleType):
            modules.append(content)
        yield from _callables(content)
    for cell in function.__closure__ or ():
        try:
            yield from _callables(cell.cell_contents)
        except ValueError:
            continue
    for name in sorted(attributes):
        for module in modules:
            if not module.__name__.startswith(OUTSIDE):
                yield from _callables(vars(module).get(name))
        method = unwrap_jit(getattr(type(owner), name, None))
        if isinstance(method, types.FunctionType):
            yield method


def _inherited(function: types.FunctionType, owner, names: set[str]) -> Iterator[Callable]:
    """The methods `super().name` of a method of the class of `owner`."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    mro = type(owner).__mro__
    if "__class__" in cells and cells["__class__"].cell_contents in mro:
        above = mro[mro.index(cells["__class__"].cell_contents) + 1:]
        for name in sorted(names):
            method = unwrap_jit(next((vars(c)[name] for c in above if name in vars(c)), None))
            if isinstance(method, types.FunctionType):
                yield method


def _callables(content) -> Iterator[Callable]:
    if callable(content) and not isinstance(
            content, (type, types.BuiltinFunctionType, types.ModuleType)):
        yield content


def names_in_code(code: types.CodeType, globals: dict) -> tuple[set[str], set[str], set[str]]:
    """The global names, the attribute names and those of `super()`, in `code` and its nested
    functions.

    Not those of a library's modules: a user's `solve` may call np.linalg.solve and does not call
    itself.
    """
    names: set[str] = set()
    attributes: set[str] = set()
    inherited: set[str] = set()
    is_outside = is_super = False
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            names.add(each.argval)
            is_super = each.argval == "super"
            content = globals.get(each.argval)
            is_outside = (isinstance(content, types.ModuleType)
                          and content.__name__.startswith(OUTSIDE))
        elif each.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            of = inherited if is_super else attributes
            of.update(() if is_outside else (each.argval,))
            is_super = False
        elif each.opname in ("LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"):
            inherited.add(each.argval)
        elif each.opname not in ("EXTENDED_ARG", "CACHE"):
            is_outside = False
            is_super = is_super and each.opname in BETWEEN
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = names_in_code(constant, globals)
            names |= inner[0]
            attributes |= inner[1]
            inherited |= inner[2]
    return names, attributes, inherited


def local_may_call_itself(local: Local) -> bool:
    """Whether a function defined inside the program may be called again before it has returned."""
    return any(other.node is local.node for other in reachable_locals(local))


def reachable_locals(local: Local) -> list[Local]:
    """The local functions of the program reachable from `local`."""
    found: dict[gast.AST, Local] = {}
    pending = [local]
    while pending:
        each = pending.pop()
        for name in sorted(read_names([each.node])):
            binding = _binding(each.frame, name)
            if isinstance(binding, Local) and binding.node not in found:
                found[binding.node] = binding
                pending.append(binding)
    return list(found.values())


def _binding(frame: Frame | None, name: str):
    while frame is not None:
        if name in frame.env:
            return frame.env[name]
        frame = frame.lexical
    return None
