"""Length guards: checks at the start of native code that its arguments have the lengths that it was
compiled for.

Numba's dispatcher asks dtypes, ranks and layouts.  The rest is lengths: which are 1, which are as
long as which.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin

from ...back.print.printer import Module
from ...ir.graph import Function
from ...ir.length_assumptions import LONG, depends_on_long_axes
from ...ir.types import Array, Dim
from ..intrinsics.element_access import field, item
from ..numba_internals import AbstractTemplate, infer_global, signature
from .length_agreement import agreements


def unlike(function: Function) -> list[str]:
    """Conditions on `a0`, `a1`, ... that hold only if their lengths are of another kind than those
    of the parameters of `function`.

    Short axes are of another kind than long ones if the code being generated was specialised on
    that: ir/length_assumptions.py, Note [Long axes].
    """
    agreed = [f"not ({a.text})" for a in agreements(function)]
    found, of_all = [], {some_length_is_one: [], some_length_is_short: []}
    for k, p in enumerate(function.params):
        kinds = [_other_kind(d) for d in p.type.dims] if isinstance(p.type, Array) else []
        if len(set(kinds)) == 1 and kinds[0] in of_all:
            of_all[kinds[0]].append(f"a{k}")
        else:
            texts = {None: None, some_length_is_one: "{} == 1",
                     some_length_is_short: f"{{}} < {LONG}"}
            each = [texts.get(kind, f"{{}} != {kind}") for kind in kinds]
            found += [text.format(f"a{k}.shape[{axis}]") for axis, text in enumerate(each) if text]
    return ([f"{ask.__name__}({', '.join(arrays)})" for ask, arrays in of_all.items() if arrays]
            + found + agreed)


def _other_kind(d: Dim):
    """Condition that an axis is not of the kind of `d` (of length 1, short, of this number); None
    if every axis is.
    """
    if isinstance(d, int):
        return d
    if d.may_be_one:
        return None
    return (some_length_is_short if d.symbol_is_long and not d.offset and depends_on_long_axes()
            else some_length_is_one)


def entry_guard(module: Module, conditions: Mapping[str, Sequence[str]]) -> tuple[int, str]:
    """The number of the line after which native code checks its arguments, and the lines of the
    check.

    `conditions` maps exception names to the conditions under which they are raised.  Python then
    need not check them at each call.  The conditions are cheap, and all are evaluated: a branch for
    each would take longer to compile.
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
    number = (entry.body[0].end_lineno if ast.get_docstring(entry) is not None
              else entry.body[0].lineno - 1)
    return module.text.count("\n", 0, begins) + number, "\n".join(lines)


def head_of(text: str) -> ast.FunctionDef:
    """The first function in `text`, up to its first statement or a little further: most of a long
    function need not be read.
    """
    lines = text.split("\n")
    for count in itertools.chain((2**k for k in range(4, len(lines).bit_length())), [len(lines)]):
        try:
            found = ast.parse("\n".join(lines[:count])).body[0]
        except SyntaxError:  # in the middle of a statement
            continue
        return found
    raise ValueError(f"no function at the beginning of {text[:100]!r}")


def some_length_is_one(*arrays) -> bool:
    """Whether an axis of one of the arrays has length 1: one call compiles faster than a comparison
    per axis.
    """
    return any(1 in x.shape for x in arrays)


def some_length_is_short(*arrays) -> bool:
    """Whether an axis of one of the arrays, which should be long, is short."""
    return any(n < LONG for x in arrays for n in x.shape)


@infer_global(some_length_is_one)
@infer_global(some_length_is_short)
class SomeLength(AbstractTemplate):
    """Typing template of these functions."""

    def generic(self, args, kws):
        if not kws and all(isinstance(x, types.Array) for x in args):
            return signature(types.boolean, *args)


def _lower_some_length(least: int, below: int):
    """Emit the test whether some length is in [`least`, `below`)."""

    def lower(context, builder, sig, args):
        found = ir.Constant(ir.IntType(1), 0)
        for kind, x in zip(sig.args, args):
            shape = field(context, builder, kind, x, "shape")
            for k in range(kind.ndim):
                n = item(builder, shape, k)
                past = builder.sub(n, ir.Constant(n.type, least))
                found = builder.or_(found,
                                    builder.icmp_unsigned("<", past,
                                                          ir.Constant(n.type, below - least)))
        return found

    return lower


lower_builtin(some_length_is_one, types.VarArg(types.Any))(_lower_some_length(1, 2))
lower_builtin(some_length_is_short, types.VarArg(types.Any))(_lower_some_length(0, LONG))
