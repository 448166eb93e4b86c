"""Batched sweeps for several columns or rows of a Jacobian at once: a sweep, batched over its
seeds.

    columns   f(*xs) -> y   becomes   f_columns(*xs, *x_dots) -> y_dots    forward mode
    rows      f(*xs) -> y   becomes   f_rows(*xs, *y_bars) -> x_bars       reverse mode

with one lane for each seed.

Seeds and results are leaves, those that carry derivatives, in order; lanes are their first axis.
The primal is not batched, so it runs once, and its control flow stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import pipeline
from ..ir.builder import Builder
from ..ir.graph import Block, Function, Value
from ..ir.reemit import clone, emit_block
from ..ir.types import Type
from ..ops.program.pytree import leaf_types, leaves_of
from .assemble import describe_arguments, flatten_arguments, place, with_ranks


def columns(function: Function, argnums: Sequence[int], types: Sequence[Type],
            lanes: bool) -> Function:
    """Transform f(*xs) -> y to f_columns(*xs, *x_dots) -> y_dots, for the leaves of the arguments
    `argnums`.

    `types` are those of the arguments and of the seeds, which have an axis in front if there are to
    be `lanes`.
    """
    return _seeded(function, argnums, types if lanes else None, pipeline.push_forward, "columns",
                   "The tangents of {}, for several tangents of its arguments at once.")


def rows(function: Function, argnums: Sequence[int], types: Sequence[Type],
         lanes: bool) -> Function:
    """Transform f(*xs) -> y to f_rows(*xs, *y_bars) -> x_bars, for the leaves of the arguments
    `argnums`; see `columns`.
    """
    return _seeded(function, argnums, types if lanes else None, pipeline.differentiate, "rows",
                   "The cotangents of {}, for several cotangents of its result at once.")


def _seeded(function: Function, argnums: Sequence[int], types: Sequence[Type] | None,
            differentiate: Callable, kind: str, doc: str) -> Function:
    function = with_ranks(function)
    flat, wrt = leaf_by_leaf(function, argnums)
    return select_derivatives(differentiate(flat, wrt), flat, function, types,
                              f"{function.name}_{kind}",
                              doc.format(f"{function.name}{place(function)}"))


def leaf_by_leaf(function: Function, argnums: Sequence[int]) -> tuple[Function, list[int]]:
    """Flatten `function` to leaves; return it, and which leaves are differentiated."""
    flat, leaves = flatten_arguments(function,
                                     list(range(len(function.params) - len(function.captures))))
    return flat, [n for k in argnums for n in leaves[k]]


def select_derivatives(inner: Function, flat: Function, function: Function,
                       types: Sequence[Type] | None, name: str, doc: str) -> Function:
    """Return the function of the arguments of `function` and of seeds that returns what `inner`
    returns beyond the results of `flat`.

    `types` are those of arguments and seeds together, the seeds with lanes; None where there are
    none.
    """
    inner = clone(inner)
    del inner.block.yields[:len(flat.results)]
    inner.tupled = True
    inner = pipeline.finish(inner)
    plain = len(function.params) - len(function.captures)
    leaves = sum(len(leaf_types(p.type)) for p in function.params[:plain])
    if types is not None:
        axes = [*[None] * leaves, *[0] * len(types[plain:])]
        inner = pipeline.batch(inner, axes, 0,
                               [*(leaf for type in types[:plain] for leaf in leaf_types(type)),
                                *types[plain:]])
    params = [Value(p.type, p.name) for p in function.params[:plain]]
    rest = [Value(p.type, p.name) for p in inner.params[leaves:]]
    block = Block([*params, *rest])
    with Builder(block):
        block.yields = emit_block(inner.block,
                                  [*(leaf for p in params for leaf in leaves_of(p)), *rest], {})
    return describe_arguments(pipeline.finish(inner.remade(block, name=name, doc=doc, defaults={})))
