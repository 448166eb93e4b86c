"""Unwrap a callable (method, partial, jit ...) to a plain Python function, its bound arguments and
its open parameters.

A wrapper made with `functools.wraps` is the wrapper, not what it wraps: Python runs the wrapper.
Only those are left out that look on and do nothing else: profilers, and checks of annotations.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import types
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import SourceError, UnsupportedError
from ...ir.graph import identifier
from ...ops.core.record import FUNCTIONS
from ...ops.program.checkpoint import Checkpointed
from ...ops.program.custom_rules import RULES
from ..syntax.captures import Fixed
from ..syntax.dependencies import Called, note_dependency
from ..syntax.find_source import REMEDY, definition_of

CACHED = type(functools.lru_cache(len))
OF_LIBRARIES = (types.FunctionType, types.BuiltinFunctionType, type(np.sum), type(np.sin))
OBSERVERS = ("line_profiler", "memory_profiler")  # packages whose wrappers only look on
SILENCED = np.errstate()(len).__code__  # code of the wrapper that np.errstate creates


@dataclass(frozen=True)
class Target:
    """A callable taken apart: a plain function and the bound values of its first parameters."""

    function: types.FunctionType
    arguments: tuple = ()  # one zero-argument getter per leading positional parameter that is bound
    keywords: tuple = ()  # (name, getter) pairs


@dataclass(frozen=True, eq=False)
class WithKeywords:
    """`function`, which has a parameter `**keywords`, specialised to the keywords `names`."""

    function: Callable
    names: tuple[str, ...]

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", "f")

    def __call__(self, *args, **keywords):
        return self.function(*args, **keywords)


@dataclass(frozen=True, eq=False)
class Bound:
    """A getter of an argument bound by a functools.partial."""

    read: Callable

    def __call__(self):
        return self.read()


def unwrap_jit(function: Callable) -> Callable:
    """The function f behind s2s.jit(f), whose recursive calls may go by the name of the jitted
    function.
    """
    while (inner := function.means if hasattr(type(function), "means") else None) is not None:
        function = inner
    return function


def python_of_numba(function) -> tuple[str, Callable | type] | None:
    """The Python source of a Numba object: ("class", the class) of a jitclass, ("elements", the
    function of numbers) of a vectorized ufunc; None for others.
    """
    kind = type(function)
    if not str(kind.__module__).startswith("numba."):  # in Cython's classes it is a descriptor
        return None
    match kind.__name__:
        case "JitClassType":
            return "class", function.__bases__[0]
        case "DUFunc":
            return "elements", function._dispatcher.py_func
    return None


def target_of(function: Callable) -> Target:
    """Take apart methods, partials, callable objects, Numba dispatchers; SourceError if there is no
    Python source.
    """
    match function:
        case types.FunctionType() if function.__code__ is SILENCED:
            return target_of(_without_errstate(function))
        case types.FunctionType() if is_observer(function):
            return target_of(function.__wrapped__)
        case types.FunctionType() | types.MethodType() if is_computed(function):
            return Target(stand_in(function))
        case types.FunctionType():
            return Target(function)
        case WithKeywords() | Checkpointed():
            return target_of(function.function)
        case types.MethodType():
            inner = target_of(function.__func__)
            # one getter for all methods of an object
            return Target(inner.function, (*inner.arguments, Fixed(function.__self__)),
                          inner.keywords)
        case functools.partial():
            inner = target_of(function.func)
            given = tuple(Bound(lambda k=k: function.args[k]) for k in range(len(function.args)))
            named = {k: Bound(lambda k=k: function.keywords[k]) for k in function.keywords}
            return Target(inner.function, (*inner.arguments, *given),
                          tuple({**dict(inner.keywords), **named}.items()))
    if hasattr(function, "function_for") or is_known(function):
        return Target(stand_in(function))
    if hasattr(function, "py_func"):  # a Numba dispatcher
        return target_of(function.py_func)
    called = call_of(function)
    if called is not None:
        note_dependency(Called(function), called)
        return target_of(types.MethodType(called, function))
    raise without_python(function)


def is_observer(function: types.FunctionType) -> bool:
    """Whether a wrapper measures or checks calls of the function inside, and passes all on."""
    if not hasattr(function, "__wrapped__"):
        return False
    package = (function.__globals__.get("__name__") or "").partition(".")[0]
    return package in OBSERVERS or hasattr(function, "__beartype_wrapper")


def _without_errstate(function: types.FunctionType) -> Callable:
    """The function below `@np.errstate(...)`, which is printed with that decorator:
    front/values/context_managers.py.
    """
    inner = function.__wrapped__
    state = next(cell.cell_contents for cell in function.__closure__
                 if isinstance(cell.cell_contents, np.errstate))
    with np.errstate(all="warn"):
        does = state(np.geterr)()
    if not {*does.values()} <= {"ignore", "warn"}:
        raise UnsupportedError(
            f"{inner.__name__} below @np.errstate(...), which has NumPy raise or call", None,
            "test for the condition; generated code ignores these errors or warns")
    if isinstance(inner, types.FunctionType):
        definition_of(inner).source.silent.update(kind for kind, setting in does.items()
                                                  if setting == "ignore")
    return inner


def call_of(function) -> Callable | None:
    """The `__call__` of a user's object; None for others."""
    kind = type(function)
    if isinstance(function, type) or (kind.__module__ or "").startswith("numpy"):
        return None
    called = getattr(kind, "__call__", None)  # noqa: B004
    is_readable = isinstance(called, types.FunctionType) or hasattr(called, "function_for")
    return called if is_readable else None


def without_python(function) -> SourceError:
    """The error for a callable without Python source."""
    name = getattr(function, "__qualname__", None) or repr(function)
    if isinstance(function, CACHED):
        return SourceError(
            f"{name} is inside functools.lru_cache, which hands out results that it kept", None,
            f"use {name}.__wrapped__, the function itself")
    if hasattr(function, "__wrapped__"):
        return SourceError(
            f"{name} is wrapped in a {type(function).__name__}, which is not written in Python",
            None, f"use {name}.__wrapped__, the function inside")
    return SourceError(f"{name} is not written in Python: it has no source", None, REMEDY)


# --------------------------------------------------------------------------------------- signatures


def signature_of(function: Callable) -> inspect.Signature:
    """The signature of `function` itself, whatever it claims to wrap; SourceError if there is none.
    """
    match function:
        case types.FunctionType() if function.__code__ is SILENCED or is_observer(function):
            return signature_of(function.__wrapped__)
        case types.FunctionType() | types.MethodType() if is_computed(function):
            return _of_code(stand_in(function))
        case types.FunctionType():
            return _of_code(function)
        case Checkpointed():
            return signature_of(function.function)
        case WithKeywords():
            given = [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in function.names
            ]
            parameters = list(signature_of(function.function).parameters.values())
            return inspect.Signature(
                [*(p for p in parameters if p.kind is not p.VAR_KEYWORD), *given])
        case types.MethodType():
            return _without_first(signature_of(function.__func__))
        case functools.partial():
            def said():
                pass

            said.__signature__ = signature_of(function.func)
            try:
                return inspect.signature(
                    functools.partial(said, *function.args, **function.keywords))
            except ValueError as error:
                raise SourceError(f"{function!r}: {error}", None,
                                  "give it arguments that the function takes") from None
    if hasattr(function, "function_for"):
        return getattr(function, "signature", None) or function.__signature__
    if is_known(function):
        return _of_code(stand_in(function))
    if hasattr(function, "py_func"):
        return signature_of(function.py_func)
    called = call_of(function)
    if called is not None:
        return _without_first(signature_of(called))
    raise without_python(function)


def _of_code(function: types.FunctionType) -> inspect.Signature:
    if "__signature__" in function.__dict__:  # a declared __signature__
        bare = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                                  function.__defaults__, function.__closure__)
        bare.__kwdefaults__ = function.__kwdefaults__
        bare.__annotations__ = function.__annotations__
        function = bare
    return inspect.signature(function, follow_wrapped=False)


def _without_first(signature: inspect.Signature) -> inspect.Signature:
    parameters = list(signature.parameters.values())
    first = parameters[:1]
    if first and first[0].kind in (inspect.Parameter.POSITIONAL_ONLY,
                                   inspect.Parameter.POSITIONAL_OR_KEYWORD):
        return signature.replace(parameters=parameters[1:])
    return signature


def names_of(function: Callable, count: int) -> list[str]:
    """A name for each of the first `count` arguments: those of `*args` are named as in the wrapped
    function.
    """
    names: list[str] = []
    parameters = [
        p for p in signature_of(function).parameters.values() if p.kind is not p.VAR_KEYWORD
    ]
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            inside = _names_inside(function)[len(names):]
            spread = count - (len(parameters) - 1)
            names += [inside[k] if k < len(inside) and inside[k] not in names else f"{p.name}_{k}"
                      for k in range(max(spread, 0))]
        else:
            names.append(p.name)
    return names[:count] + [f"x{k}" for k in range(len(names), count)]


def _names_inside(function: Callable) -> list[str]:
    """The positional parameters of the function that `function` claims to wrap."""
    while isinstance(function, (WithKeywords, Checkpointed)):
        function = function.function
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


# ---------------------------------------------------------------------------------------- stand-ins

_stand_ins: dict[object, types.FunctionType] = {}  # of library functions, which are never deleted


def is_known(function) -> bool:
    """Whether s2s has an op for `function`, `np.sin` for example, or may know what it computes."""
    try:
        return ((function in FUNCTIONS or function in RULES or is_of_library(function))
                and not isinstance(function, type))
    except TypeError:
        return False


def is_computed(function: types.FunctionType | types.MethodType) -> bool:
    """Whether s2s does not read the text of `function`, but knows what it computes."""
    return is_of_library(function) or function in FUNCTIONS


def is_of_library(function) -> bool:
    """Whether this is a function of NumPy's or SciPy's, or a method of a distribution of SciPy's:
    it means the same as in a call (front/eval/apply.py), where most are known.
    """
    if isinstance(function, types.MethodType):
        return (type(function.__self__).__module__ or "").startswith("scipy.stats.")
    return (isinstance(function, OF_LIBRARIES)
            and (function.__module__ or "").split(".")[0] in ("numpy", "scipy"))


def stand_in(function: Callable) -> types.FunctionType:
    """`def sin(x): return function(x)`: a plain function around one without Python source."""
    kept = getattr(function, "__dict__", None)
    if isinstance(kept, dict) and not isinstance(function, types.MethodType):
        if "stand_in" not in kept:
            kept["stand_in"] = _made_stand_in(function)
        return kept["stand_in"]
    if function not in _stand_ins:
        _stand_ins[function] = _made_stand_in(function)
    return _stand_ins[function]


def _made_stand_in(function: Callable) -> types.FunctionType:
    if hasattr(function, "function_for"):
        open_ones = list(signature_of(function).parameters.values())
    elif isinstance(function, np.ufunc):
        open_ones = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY)
            for name in "xyz"[:function.nin]
        ]
    else:
        try:
            open_ones = [p for p in inspect.signature(function).parameters.values()
                         if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.KEYWORD_ONLY)]
        except (TypeError, ValueError):
            raise SourceError(f"Python does not say what {function!r} takes", None,
                              "write `lambda x: ...` around it") from None
    name = identifier(getattr(function, "__name__", "f"))
    named = [p for p in open_ones if p.kind is p.KEYWORD_ONLY]
    bare = ["*"] if named and not any(p.kind is p.VAR_POSITIONAL for p in open_ones) else []
    first = [_declared(p) for p in open_ones if p not in named and p.kind is not p.VAR_KEYWORD]
    last = [_declared(p) for p in open_ones if p.kind is p.VAR_KEYWORD]
    declared = ", ".join([*first, *bare, *map(_declared, named), *last])
    passed = ", ".join(_passed(p) for p in open_ones)
    text = f"def {name}({declared}):\n    return function({passed})\n"
    filename = f"<s2s call of {name} {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {
        "function": function,
        "defaults": {
            p.name: p.default
            for p in open_ones
        },
        "__name__": "s2s.stand_in"
    }
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]


_numbers = itertools.count()


def _declared(p: inspect.Parameter) -> str:
    return _starred(p) if p.default is p.empty else f"{p.name}=defaults[{p.name!r}]"


def _passed(p: inspect.Parameter) -> str:
    return f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else _starred(p)


def _starred(p: inspect.Parameter) -> str:
    return {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
