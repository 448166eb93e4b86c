"""`foreign`: an opaque call of a Python, SciPy or C function that s2s does not read; Python calls
it when the code runs.

Its result type is declared. It must not write into its arguments, and its results depend on nothing
else, so a call may be shared, or removed if its result is unused. Considered: running the function
while code is generated to see what it returns, which needs arguments that nobody has then; a result
of unknown rank, which makes generated code general and native code impossible.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.graph import Function, Op, Value, identifier
from ...ir.interpret import interpret
from ...ir.types import Static
from ..core.control import call
from ..core.dependence_rules import anything
from ..core.record import define
from .effects import is_importable


@dataclass(frozen=True, eq=False)
class Inside:
    """An argument that is a function of the program: its IR, whose parameters are its arguments and
    then captured `held` values, operands of the op.
    """

    function: Function
    held: int


def _interleaved(xs: Sequence, arguments: Sequence, fixed: Callable, inside: Callable) -> list:
    """The arguments: the next of `xs` for None in `arguments`, a closure over the next few for an
    Inside, else the constant.
    """
    rest, found = iter(xs), []
    for a in arguments:
        if isinstance(a, Inside):
            found.append(inside(a.function, [next(rest) for _ in range(a.held)]))
        else:
            found.append(next(rest) if a is None else fixed(a.value))
    return found


def _evaluate(*xs, function, arguments, like):
    return function(*_interleaved(xs, arguments, lambda content: content,
                                  lambda inner, held: lambda *args: interpret(inner, *args, *held)))


def _infer_foreign(*xs: Value, function, arguments: tuple[Static | Inside | None, ...], like):
    types = call.infer(*xs, callee=like)
    return types if like.tupled else types[0]


def _spell_foreign(*xs: ast.expr, function, arguments, like) -> ast.expr:
    return ast.Call(spelled(function), _interleaved(xs, arguments, spelled_fixed, spelled_inside),
                    [])


def spelled_inside(function: Function, held: Sequence[ast.expr]) -> ast.expr:
    """The expression `lambda x: f(x, held)`; the printer resolves the name of `f`."""
    name = ast.Name(function.name, ast.Load())
    name.function = function
    if not held:
        return name
    params = [p.name or f"x{k}"
              for k, p in enumerate(function.params[:len(function.params) - len(held)])]
    taken = {node.id for x in held for node in ast.walk(x) if isinstance(node, ast.Name)}
    for k, p in enumerate(params):
        while p in taken:
            p += "_"
        params[k] = p
        taken.add(p)
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg(p) for p in params], kwonlyargs=[],
                              kw_defaults=[], defaults=[])
    return ast.Lambda(arguments,
                      ast.Call(name, [*(ast.Name(p, ast.Load()) for p in params), *held], []))


def functions_in(op: Op) -> list[Function]:
    """The functions of the program that a `foreign` op passes on."""
    return ([a.function for a in op.attrs["arguments"] if isinstance(a, Inside)]
            if op.record is foreign else [])


def spelled(function) -> ast.expr:
    """The name of an object; the printer resolves it."""
    name = ast.Name(called(function), ast.Load())
    name.cls = function
    return name


def spelled_fixed(content) -> ast.expr:
    """Python source of a constant argument."""
    if content is None or isinstance(content, (bool, int, float, complex, str, bytes)):
        return ast.Constant(content)
    if isinstance(content, tuple):
        return ast.Tuple([spelled_fixed(x) for x in content], ast.Load())
    return spelled(content)


def called(x) -> str:
    """The name that generated code uses for an object."""
    name = getattr(x, "__name__", None) or type(x).__name__.lower()
    return identifier(name)


def home_of(x) -> str | None:
    """The module from which any process can import `x` by name; None if there is none."""
    if isinstance(x, np.ufunc):
        places = [module
                  for module in ("numpy", "scipy.special")
                  if getattr(sys.modules.get(module), x.__name__, None) is x]
        return places[0] if places else None
    return x.__module__ if is_importable(x) or _is_inside(x) else None


def _is_inside(x) -> bool:
    """Whether `x` is the function wrapped by one with custom rules under its name."""
    kept = getattr(sys.modules.get(getattr(x, "__module__", None)), getattr(x, "__name__", ""),
                   None)
    return (getattr(x, "__module__", "__main__") != "__main__" and hasattr(type(kept), "apply_in")
            and kept.function is x)


def objects_named(op) -> list:
    """The objects mentioned in the spelling of an op that calls a function by its name."""
    found = [op.attrs["function"]]

    def visit(content) -> None:
        if isinstance(content, tuple):
            for x in content:
                visit(x)
        elif (content is not None
              and not isinstance(content, (bool, int, float, complex, str, bytes))):
            found.append(content)

    for a in op.attrs.get("arguments", ()):
        if isinstance(a, Static):
            visit(a.value)
    return found


def foreign_call(function: Function) -> Op | None:
    """The `foreign` op that is the entire body of `function`, applied to its parameters in order;
    None for other functions.
    """
    ops = [op for op in function.block.ops if op.name != "constant"]
    if (len(ops) == 1 and not functions_in(ops[0]) and ops[0].record is foreign
        and ops[0].inputs == function.params and ops[0].outputs == function.results):
        return ops[0]
    return None


def printed_op(op: Op) -> Op | None:
    """The op that prints a `call` of a library's function directly, without a wrapper."""
    callee = op.attrs["callee"]
    function = callee.function_for(op.inputs)
    if getattr(callee, "is_bare", False):
        ops = function.block.ops
        if (len(ops) == 1 and ops[0].inputs == function.params
            and ops[0].outputs == function.results and ops[0].record.syntax):
            return ops[0]
    return foreign_call(function)


foreign = define(
    "foreign",
    evaluate=_evaluate,
    infer=_infer_foreign,
    syntax=_spell_foreign,
    depends=anything, native="python", contiguous="operands", calls_by_name=True,
)