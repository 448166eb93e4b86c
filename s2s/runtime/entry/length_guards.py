"""What native code asks of its arguments before it runs: are they of the kind that it is for?

Numba's dispatcher asks dtypes, ranks and layouts.  The rest is lengths: which are 1, which are as long as which.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ...back.print.printer import Module
from ...ir.graph import Function
from ...ir.length_assumptions import LONG, has_asked
from ...ir.types import Array, Dim
from ..intrinsics.element_access import field, item
from .length_agreement import agreements


def unlike(function: Function) -> list[str]:
    """What is true of `a0`, `a1`, ... only if they are of another kind than the parameters of `function`: conditions on lengths.

    Short axes are of another kind than long ones where that was asked of code that is generated now: ir/length_assumptions.py, Note [Long axes].
    """
    agreed = [f"not ({a.text})" for a in agreements(function)]
    found, of_all = [], {some_length_is_one: [], some_length_is_short: []}
    for k, p in enumerate(function.params):
        kinds = [_other_kind(d) for d in p.type.dims] if isinstance(p.type, Array) else []
        if len(set(kinds)) == 1 and kinds[0] in of_all:
            of_all[kinds[0]].append(f"a{k}")
        else:
            texts = {None: None, some_length_is_one: "{} == 1", some_length_is_short: f"{{}} < {LONG}"}
            each = [texts.get(kind, f"{{}} != {kind}") for kind in kinds]
            found += [text.format(f"a{k}.shape[{axis}]") for axis, text in enumerate(each) if text]
    return [f"{ask.__name__}({', '.join(arrays)})" for ask, arrays in of_all.items() if arrays] + found + agreed


def _other_kind(d: Dim):
    """What an axis of another kind than `d` has: a length of 1, a short one, another than this number; None: there is none."""
    if isinstance(d, int):
        return d
    if d.may_be_one:
        return None
    return some_length_is_short if d.symbol_is_long and not d.offset and has_asked() else some_length_is_one


def asked_first(module: Module, conditions: Mapping[str, Sequence[str]]) -> tuple[int, str]:
    """The number of the line after which native code asks whether its arguments are of its kind, and what it says there.

    `conditions` has, by the name of an exception, where it is raised.

    A call need not ask that in Python then.  The conditions are cheap, and are all evaluated: a branch for each
    would be compiled for longer.
    """
    begins = f"\n{module.text}".index(f"\ndef {module.entry}(")
    entry = head_of(module.text[begins:])
    lines = []
    for error, texts in conditions.items():
        tree = ast.parse(" | ".join(f"({text})" for text in texts), mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id[0] == "a" and node.id[1:].isdigit():
                node.id = entry.args.args[int(node.id[1:])].arg
        lines.append(f"    if {ast.unparse(tree)}:\n        raise {error}")
    number = entry.body[0].end_lineno if ast.get_docstring(entry) is not None else entry.body[0].lineno - 1
    return module.text.count("\n", 0, begins) + number, "\n".join(lines)


def head_of(text: str) -> ast.FunctionDef:
    """The function with which `text` begins, as far as its first statement, or a few more: most of a long function need not be read."""
    lines = text.split("\n")
    for count in itertools.chain((2**k for k in range(4, len(lines).bit_length())), [len(lines)]):
        try:
            found = ast.parse("\n".join(lines[:count])).body[0]
        except SyntaxError:  # in the middle of a statement
            continue
        return found
    raise ValueError(f"no function at the beginning of {text[:100]!r}")


def some_length_is_one(*arrays) -> bool:
    """Whether some axis of some of the arrays has length 1: one call, which Numba compiles sooner than a comparison for each axis."""
    return any(1 in x.shape for x in arrays)


def some_length_is_short(*arrays) -> bool:
    """Whether some axis of some of the arrays, which are to be long, has a length that no long axis has."""
    return any(n < LONG for x in arrays for n in x.shape)


@infer_global(some_length_is_one)
@infer_global(some_length_is_short)
class SomeLength(AbstractTemplate):
    """Its type."""

    def generic(self, args, kws):
        if not kws and all(isinstance(x, types.Array) for x in args):
            return signature(types.boolean, *args)


def _lower_some_length(least: int, below: int):
    """Whether some length is `least` or more, and less than `below`."""

    def lower(context, builder, sig, args):
        found = ir.Constant(ir.IntType(1), 0)
        for kind, x in zip(sig.args, args):
            shape = field(context, builder, kind, x, "shape")
            for k in range(kind.ndim):
                n = item(builder, shape, k)
                past = builder.sub(n, ir.Constant(n.type, least))
                found = builder.or_(found, builder.icmp_unsigned("<", past, ir.Constant(n.type, below - least)))
        return found

    return lower


lower_builtin(some_length_is_one, types.VarArg(types.Any))(_lower_some_length(1, 2))
lower_builtin(some_length_is_short, types.VarArg(types.Any))(_lower_some_length(0, LONG))
