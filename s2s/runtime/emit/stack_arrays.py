"""Allocate short, non-escaping arrays on the stack, where LLVM promotes them to registers (escape
analysis and scalar replacement).

    t = np.empty(3)
    for i in range(n):
        for j in range(3):                  LLVM unrolls the loops over j, t is three registers,
            t[j] = x[i, j] * w[j]     ->    and the loop over i is vectorised, with exp and all
        for j in range(3):
            y[i, j] = np.exp(t[j] - m)

On the heap, t would be stored and loaded in each trip, in order, which serialises the trips.

An array qualifies if its lengths are short literals and its only uses are loads and stores of
elements: then it does not escape, and an array allocated in each trip of a loop may reuse the
memory of the previous one.

Considered: scalar variables in the generated text; it would get long, and nobody would want to read
it.
"""

from __future__ import annotations

import ast
import math
from typing import NamedTuple

from numba import types

from ...back.arrays.specialise_lengths import SHORT
from ...back.syntax.ast_names import nodes_in

MOST = 49  # most numbers in a stack array
MAKERS = {"unshared_empty": False, "unshared_zeros": True}  # allocation -> whether zeroed


class ShortArray(NamedTuple):
    """An allocation of a short array: its lengths, and whether it is zeroed."""

    shape: list[int]
    zero: bool


def on_stack(function: ast.FunctionDef, kinds: dict[int, types.Type]) -> dict[int, ShortArray]:
    """The allocations that may be on the stack, by identity of the expression; `kinds` are the
    types of expressions.
    """
    makers: dict[str, dict[int, ShortArray]] = {}
    others = {a.arg for a in function.args.args}
    plain: set[ast.Name] = set()  # names in bindings and element accesses of the array
    ranks: dict[str, set[int]] = {}
    for node in nodes_in(function):
        match node:
            case ast.Assign([ast.Name(name) as target], value) if (
                    (made := made_by(value)) is not None and is_of_numbers(kinds.get(id(value)))):
                makers.setdefault(name, {})[id(value)] = made
                ranks.setdefault(name, set()).add(len(made.shape))
                plain.add(target)
            case ast.Subscript(ast.Name(name) as array, index):
                indices = index.elts if isinstance(index, ast.Tuple) else [index]
                if all(isinstance(kinds.get(id(k)), types.Integer) for k in indices):
                    plain.add(array)
                    ranks.setdefault(name, set()).add(len(indices))
    others |= {node.id
               for node in nodes_in(function) if isinstance(node, ast.Name) and node not in plain}
    return {key: made
            for name, several in makers.items() if name not in others and len(ranks[name]) == 1
            for key, made in several.items()}


def made_by(value: ast.expr) -> ShortArray | None:
    """The short array that this expression allocates, if its lengths are literals."""
    match value:
        case ast.Call(ast.Name("apart"), [inner]):
            return made_by(inner)
        case ast.Call(ast.Name(function), [shape, *_]) if function in MAKERS:
            lengths = [n.value if isinstance(n, ast.Constant) else None
                       for n in (shape.elts if isinstance(shape, ast.Tuple) else [shape])]
            if (all(isinstance(n, int) and 0 < n <= SHORT for n in lengths)
                and math.prod(lengths) <= MOST):
                return ShortArray(lengths, MAKERS[function])
    return None


def is_of_numbers(kind: types.Type | None) -> bool:
    return isinstance(kind, types.Array) and isinstance(kind.dtype, (types.Number, types.Boolean))
