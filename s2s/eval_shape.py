"""Shapes of a function's results, without computing them.

    s2s.eval_shape(f, s2s.ShapeDtype((1000, 1000), "float64"), 2.0)
    ShapeDtype(shape=(1000,), dtype=float64)

The function's IR is emitted again for arguments of exactly these extents, with the shapes of its
results in the place of the results, and cleaned up like any other: what is left is what shapes
depend on beside shapes, and that is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from . import pipeline, tree
from .errors import UnsupportedError
from .front import definition_line
from .ir.builder import Builder
from .ir.graph import Block, Function, Value, walk
from .ir.interpret import interpret
from .ir.reemit import emit_block
from .ir.types import Array, Static, Tuple
from .ops.core.record import value
from .ops.core.shape import shape_of
from .ops.program.pytree import leaves_of
from .transformed import Transformed


class ShapeDtype:
    """The shape and dtype of an array, or of a number, whose shape is ().  Equal if both are."""

    def __init__(self, shape: Sequence[int], dtype):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    def __repr__(self) -> str:
        return f"ShapeDtype(shape={self.shape}, dtype={self.dtype})"

    def __eq__(self, other) -> bool:
        return isinstance(other, ShapeDtype) and (self.shape,
                                                  self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


def eval_shape(f: Callable, *args, **keywords):
    """Return a tree like the result of `f(*args)`, with a ShapeDtype for each number and array of
    it.

    Arrays among `args` may be given as ShapeDtype.  Raises UnsupportedError where the shape of a
    result depends on what such an array holds, and whatever generating code for `f` raises.
    """
    plain = f if isinstance(f, Transformed) else Transformed("value", f)
    args = plain.bound(args, keywords) if keywords else args
    filled = tuple(tree.map(stand_in, x) for x in args)
    function = plain.function_for_types(plain.types_of(filled))
    asked, leaves = _shapes_of(function, filled)
    hollow = [k for k, x in enumerate(args)
              if any(isinstance(leaf, ShapeDtype) for leaf in tree.leaves(x))]
    _refuse_data(asked, [asked.params[k] for k in hollow], f)
    shapes = interpret(asked, *filled, *(get() for get in function.captures.values()))
    found = iter([ShapeDtype(shape, leaf.type.dtype) for shape, leaf in zip(shapes, leaves)])
    results = [_result(y.type, found) for y in function.results]
    return tuple(results) if function.tupled else results[0]


def stand_in(x):
    """Return a stand-in for an argument that takes no memory."""
    if not isinstance(x, ShapeDtype):
        return x
    zero = x.dtype.type(0)
    return np.broadcast_to(zero, x.shape) if x.shape else zero


def _exact(type, x):
    """Return the type of `x` with its extents as numbers."""
    match type:
        case Array(dtype, dims):
            return Array(dtype, np.shape(x)) if len(dims) == np.ndim(x) else type
        case Tuple(items, form):
            members = x if form is None else form.members(x)
            return replace(type, items=tuple(map(_exact, items, members)))
    return type


def _shapes_of(function: Function, args: tuple) -> tuple[Function, list[Value]]:
    """Return the function that computes the shape of each result leaf for these arguments, and
    these leaves.
    """
    block = Block([Value(_exact(p.type, x), p.name) for p, x in zip(function.params, args)]
                  + [Value(p.type, p.name) for p in function.params[len(args):]])
    with Builder(block):
        known = [value(x) if type(x) in (int, bool) else p for p, x in zip(block.params, args)]
        results = emit_block(function.block, [*known, *block.params[len(args):]], {})
        leaves = [leaf for y in results for leaf in leaves_of(y)
                  if not isinstance(leaf.type, Static)]
        block.yields = [shape_of(leaf) for leaf in leaves]
    return pipeline.finish(function.remade(block, tupled=True)), leaves


def _refuse_data(function: Function, hollow: list[Value], f: Callable) -> None:
    """Raise UnsupportedError if the remaining function reads the elements of a stand-in."""
    hollow = set(hollow)
    for op in walk(function.block):
        if op.name == "item" and op.inputs[0] in hollow:
            hollow.update(op.outputs)
        elif not op.record.asks_extents and op.name != "item" and hollow.intersection(op.inputs):
            name = next(x.name for x in op.inputs if x in hollow)
            raise UnsupportedError(f"a shape that depends on what {name} holds", op.line
                                   or definition_line(f), "pass the array itself")


def _result(type, found):
    """Build the tree of a result of this type, with the next of `found` at its leaves."""
    match type:
        case Tuple(items, form):
            members = [_result(inner, found) for inner in items]
            return tuple(members) if form is None else form.build(members)
        case Static(content):
            return content
    return next(found)
