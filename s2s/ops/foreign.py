"""`foreign`: a call of a Python function that s2s does not read, of SciPy or in C: Python calls it when the code runs.

What it returns is said beforehand.  It must not write into what it is given, and its results depend on nothing else,
so a call may be shared, or left out if nobody wants its result.  Two other designs: to run the function while code is
generated and look at what it returns, which needs arguments that nobody has then; and a result of unknown rank, which
makes generated code general and native code impossible.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence

import numpy as np

from ..ir.graph import Function, Op, Value
from ..ir.types import Static
from .acts import is_importable
from .control import call
from .record import define


def _interleaved(xs: Sequence, arguments: Sequence, fixed) -> list:
    """The arguments: the next of `xs` where `arguments` has None, else what is fixed there."""
    rest = iter(xs)
    return [next(rest) if a is None else fixed(a.value) for a in arguments]


def _infer_foreign(*xs: Value, function, arguments: tuple[Static | None, ...], like):
    types = call.infer(*xs, callee=like)
    return types if like.tupled else types[0]


def _spell_foreign(*xs: ast.expr, function, arguments, like) -> ast.expr:
    return ast.Call(spelled(function), _interleaved(xs, arguments, spelled_fixed), [])


def spelled(function) -> ast.expr:
    """The name of an object; the printer finds out what the module calls it."""
    name = ast.Name(called(function), ast.Load())
    name.cls = function
    return name


def spelled_fixed(content) -> ast.expr:
    """Python for an argument that is known when code is generated."""
    if content is None or isinstance(content, (bool, int, float, complex, str, bytes)):
        return ast.Constant(content)
    if isinstance(content, tuple):
        return ast.Tuple([spelled_fixed(x) for x in content], ast.Load())
    return spelled(content)


def called(x) -> str:
    """What generated code calls an object."""
    name = getattr(x, "__name__", None) or type(x).__name__.lower()
    return name if name.isidentifier() else "f"


def home_of(x) -> str | None:
    """The module from which any process can import `x` under its own name; None where there is none."""
    if isinstance(x, np.ufunc):
        places = [module for module in ("numpy", "scipy.special") if getattr(sys.modules.get(module), x.__name__, None) is x]
        return places[0] if places else None
    return x.__module__ if is_importable(x) or _is_inside(x) else None


def _is_inside(x) -> bool:
    """Whether `x` is the function of one with rules of its own that has its name."""
    kept = getattr(sys.modules.get(getattr(x, "__module__", None)), getattr(x, "__name__", ""), None)
    return getattr(x, "__module__", "__main__") != "__main__" and hasattr(type(kept), "apply_in") and kept.function is x


def objects_named(op) -> list:
    """The objects that the spelling of a `foreign` op names."""
    found = [op.attrs["function"]]

    def visit(content) -> None:
        if isinstance(content, tuple):
            for x in content:
                visit(x)
        elif content is not None and not isinstance(content, (bool, int, float, complex, str, bytes)):
            found.append(content)

    for a in op.attrs["arguments"]:
        if a is not None:
            visit(a.value)
    return found


def foreign_call(function: Function) -> Op | None:
    """The `foreign` op that is all that `function` does, on its parameters as they come; None for other functions."""
    ops = [op for op in function.block.ops if op.name != "constant"]
    if len(ops) == 1 and ops[0].record is foreign and ops[0].inputs == function.params and ops[0].outputs == function.results:
        return ops[0]
    return None


foreign = define(
    "foreign",
    evaluate=lambda *xs, function, arguments, like: function(*_interleaved(xs, arguments, lambda content: content)),
    infer=_infer_foreign,
    syntax=_spell_foreign,
)
