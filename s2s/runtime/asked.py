"""What native code asks of its arguments before it runs: are they of the kind that it is for?

Numba's dispatcher asks dtypes, ranks and layouts.  The rest is lengths: which are 1, which are as long as which.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..agreement import agreements
from ..back.python import Module
from ..ir.graph import Function
from ..ir.types import Array


def unlike(function: Function) -> list[str]:
    """What is true of `a0`, `a1`, ... only if they are of another kind than the parameters of `function`: conditions on lengths."""
    found, long = [], []
    for k, p in enumerate(function.params):
        dims = p.type.dims if isinstance(p.type, Array) else ()
        if dims and not any(isinstance(d, int) or d.may_be_one for d in dims):
            long.append(f"a{k}")
            continue
        for axis, d in enumerate(dims):
            if isinstance(d, int):
                found.append(f"a{k}.shape[{axis}] != {d}")
            elif not d.may_be_one:
                found.append(f"a{k}.shape[{axis}] == 1")
    if long:
        found.insert(0, f"{some_length_is_one.__name__}({', '.join(long)})")
    return found + [f"not ({a.text})" for a in agreements(function)]


def asked_first(module: Module, conditions: Sequence[str]) -> tuple[int, str]:
    """The number of the line after which native code asks whether its arguments are of its kind, and what it says there.

    A call need not ask that in Python then.  The conditions are cheap, and are all evaluated: a branch for each
    would be compiled for longer.
    """
    (entry,) = (node for node in ast.parse(module.text).body if isinstance(node, ast.FunctionDef) and node.name == module.entry)
    tree = ast.parse(" | ".join(f"({text})" for text in conditions), mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id[0] == "a" and node.id[1:].isdigit():
            node.id = entry.args.args[int(node.id[1:])].arg
    number = entry.body[0].end_lineno if ast.get_docstring(entry) is not None else entry.body[0].lineno - 1
    return number, f"    if {ast.unparse(tree)}:\n        raise TypeError"


def some_length_is_one(*arrays) -> bool:
    """Whether some axis of some of the arrays has length 1: one call, which Numba compiles sooner than a comparison for each axis."""
    return any(1 in x.shape for x in arrays)


@infer_global(some_length_is_one)
class SomeLengthIsOne(AbstractTemplate):
    """Its type."""

    def generic(self, args, kws):
        if not kws and all(isinstance(x, types.Array) for x in args):
            return signature(types.boolean, *args)


@lower_builtin(some_length_is_one, types.VarArg(types.Any))
def _lower_some_length_is_one(context, builder, sig, args):
    found = ir.Constant(ir.IntType(1), 0)
    for kind, x in zip(sig.args, args):
        for n in cgutils.unpack_tuple(builder, context.make_array(kind)(context, builder, x).shape, kind.ndim):
            found = builder.or_(found, builder.icmp_signed("==", n, ir.Constant(n.type, 1)))
    return found
