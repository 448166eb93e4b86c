"""Leaves of the arguments and results of a call, in the order of the generated code and in that of
`s2s.tree`.

Generated code takes the members of a container in the order in which the container has them;
`tree.leaves`, and so the rows and columns of a matrix, the entries of a dict by the order of its
keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from .. import tree
from ..derive.assemble import describe, first_line, line_of_result
from ..errors import TypeMismatchError, UnsupportedError
from ..ir.graph import Function
from ..ir.types import Array, Generator, Scalar, Static, Tuple, Type, carries_derivative
from ..specialisation import key_of


class Structure:
    """The structure of the arguments `argnums` and of the results of `function`, as known before
    any call.

    `results` are the types of the leaves of the results in the order of generated code; `columns`
    and `rows` say in which order a matrix has those of the arguments and results.  Raises where one
    of them is not real.
    """

    def __init__(self, function: Function, argnums: tuple[int, ...]):
        self.function, self.argnums = function, argnums
        self.columns = tree_order([function.params[k].type for k in argnums])
        self.rows = tree_order([y.type for y in function.results])
        self.results = [t for y in function.results for _, t in members_of(y.type, None)]
        check(function, argnums, self.results)


class Leaves:
    """The leaves of the arguments `args` of a call; `inputs` are the differentiated ones,
    `captured` the captured values.
    """

    def __init__(self, structure: Structure, args: Sequence, captured: Sequence):
        self.structure = structure
        params = structure.function.params
        members = [[x for x, _ in members_of(p.type, x)] for p, x in zip(params, args)]
        self.values = [x for leaves in members for x in leaves]
        self.captured = [x for p, x in zip(params[len(args):], captured)
                         for x, _ in members_of(p.type, x)]
        self.inputs = [x for k in structure.argnums for x in members[k]]
        self.sizes = [sum(map(np.size, members[k])) for k in structure.argnums]

    def of_result(self, y) -> list:
        """Return the leaves of a result of the function."""
        function = self.structure.function
        ys = y if function.tupled else (y,)
        return [x for result, member in zip(function.results, ys)
                for x, _ in members_of(result.type, member)]

    @cached_property
    def key(self) -> tuple:
        """A key that is equal for calls with the same pattern, where floats do not decide it."""
        return (self.structure.function, *map(key_of_leaf, self.values),
                *map(key_of_leaf, self.captured))


def members_of(type: Type, x) -> Iterator[tuple[object, Type]]:
    """Return the leaves of `x` that are data, in the order of generated code, with their types; for
    `x` None the types alone.
    """
    match type:
        case Tuple(items, form):
            inside = [None] * len(items) if x is None else x if form is None else form.members(x)
            for item, member in zip(items, inside):
                yield from members_of(item, member)
        case Static():
            return
        case _:
            yield x, type


def tree_order(types: Sequence[Type]) -> list[int]:
    """Return the numbers of the leaves of values of these types, in the order of `tree.leaves`."""
    count = iter(range(10**9))

    def numbered(type: Type):
        match type:
            case Tuple(items, form):
                inside = list(map(numbered, items))
                return tuple(inside) if form is None else form.build(inside)
            case Static():
                return None
        return next(count)

    return [n for type in types for n in tree.leaves(numbered(type))]


def split_columns(rows: np.ndarray, shapes: Sequence[tuple],
                  order: Sequence[int]) -> list[np.ndarray]:
    """Split a matrix with a column for each element of arrays of these shapes, in this order, into
    arrays with a leading axis of rows.
    """
    sizes = [int(np.prod(shapes[k], dtype=np.int64)) for k in order]
    ends = np.cumsum(sizes)
    parts = {k: rows[:, end - size:end].reshape(len(rows), *shapes[k])
             for k, size, end in zip(order, sizes, ends)}
    return [parts[k] for k in range(len(shapes))]


def join_columns(parts: Sequence, count: int, order: Sequence[int]) -> np.ndarray:
    """Join arrays with a leading axis of `count` rows to one matrix: the inverse of
    `split_columns`.
    """
    return np.concatenate([np.asarray(parts[k]).reshape(count, -1) for k in order], axis=1)


def places(shapes: Sequence[tuple], order: Sequence[int]) -> np.ndarray | slice:
    """Return the permutation that sorts the elements of arrays side by side in this order."""
    if list(order) == sorted(order):
        return slice(None)
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    starts = np.cumsum([0, *sizes])
    return np.concatenate([np.arange(starts[k], starts[k] + sizes[k]) for k in order])


def key_of_leaf(x) -> object:
    """Return the part of an argument that the pattern may depend on: of floats the shape, of
    anything else also the value.
    """
    if isinstance(x, np.ndarray):
        content = (None if x.dtype.kind in "fc" else
                   hashlib.sha1(np.ascontiguousarray(x), usedforsecurity=False).digest())
        return x.dtype, x.shape, content
    if isinstance(x, (bool, int, np.integer, np.bool_)):
        return type(x), int(x)
    return key_of(x)


def check(function: Function, argnums: Sequence[int], results: Sequence[Type]) -> None:
    """Raise where a differentiated argument, or a result, is anything but real numbers, or where
    random numbers are drawn.
    """
    for k in argnums:
        name = function.params[k].name
        for _, type in members_of(function.params[k].type, None):
            if not isinstance(type, (Scalar, Array)) or not carries_derivative(type):
                raise TypeMismatchError(f"a sparse derivative with respect to {name}, which is or "
                                        f"holds {describe(type)}: it has no derivative",
                                        first_line(function), "pass floats and arrays of floats, "
                                        f"e.g. `{name} = np.ones(3)`")
            if type.dtype.startswith("complex"):
                raise UnsupportedError(f"a sparse derivative with respect to {name}, which is "
                                       "complex", first_line(function),
                                       "pass the real and the imaginary part")
    for type in results:
        if not isinstance(type, (Scalar, Array)) or not carries_derivative(type):
            raise TypeMismatchError("a sparse derivative of a result that is or holds "
                                    f"{describe(type)}: it has no derivative",
                                    line_of_result(function), "return floats and arrays of floats")
        if type.dtype.startswith("complex"):
            raise UnsupportedError("a sparse derivative of complex numbers",
                                   line_of_result(function),
                                   "return the real and the imaginary part")
    if any(isinstance(t, Generator) for p in function.params for _, t in members_of(p.type, None)):
        raise UnsupportedError("a sparse derivative of a function that draws from a generator: "
                               "each sweep would draw again", first_line(function),
                               "draw before the call, and pass what was drawn")
