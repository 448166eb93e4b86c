"""Give empty lists and tapes an item type, which Numba requires.

    f_fwd(x, n, [])      becomes    f_fwd(x, n, [0.0][:0])
    rows = [[], []]      becomes    rows = [[0.0][:0], [0.0][:0]]

The type of a list is inferred from whatever it flows into: what is appended to it, here or on
another path, a list that contains it, a function that takes it. So each list has an `ItemType`,
shared by all lists that it may become (unification). Lists that are appended to where they are
created need no annotation: Numba infers those itself.
"""

from __future__ import annotations

import ast

import numpy as np

from ...analysis.alias_in_trip import parts
from ...ir.builder import Builder
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.types import UNDEFINED, Array, HashSet, HashTable, List, Scalar, Tape, Tuple, Type, join
from ...ops.core.control import tape_new, tape_push
from ...ops.core.copy import copy_again
from ...ops.core.record import Record
from ...ops.program.hash_tables import hash_of, numbered, set_of
from ...ops.program.list_ops import list_get, list_of
from ...ops.program.list_sums import list_full


class ItemType:
    """The item type of a class of lists, with their origins.

    `item` is the class of the items, for lists of lists.
    """

    def __init__(self, type: Type):
        self.type = type
        self.item = ItemType(type.item) if isinstance(type, List) else None
        self.one = self
        self.origins, self.filled = 0, False

    def root(self) -> ItemType:
        while self.one is not self:
            self = self.one
        return self

    def unify(self, other: ItemType) -> None:
        """Unify this class of lists with another."""
        a, b = self.root(), other.root()
        if a is b:
            return
        b.one, a.origins, a.filled = a, a.origins + b.origins, a.filled or b.filled
        a.type = join(a.type, b.type) or a.type
        if a.item is not None and b.item is not None:
            a.item.unify(b.item)
        a.item = a.item or b.item

    def completed(self) -> Type:
        """The type, completed by what is known of each list that was unified into it."""
        root = self.root()
        if isinstance(root.type, (HashTable, HashSet)):
            return type(root.type)(root.item.completed())
        if root.item is None:
            return Scalar("float64") if root.type == UNDEFINED else root.type
        return List(root.item.completed())

    def is_inferred_by_numba(self) -> bool:
        """Whether Numba infers the type by itself."""
        root = self.root()
        return root.origins == 1 and root.filled


def type_empty_lists(function: Function) -> Function:
    """Type the empty lists of `function`, in place; arrays on a tape it receives are copies."""
    held = _ItemTypes()
    ops = list(walk(function.block))
    for op in ops:
        held.visit(op)
    for op in ops:
        if (op.record in (tape_new, list_of) and not op.inputs
                and not held[op.output].is_inferred_by_numba()):
            op.record, op.attrs = empty_list, {"item": held[op.output].completed().item,
                                               "kind": type(op.output.type)}
        elif op.record in (hash_of, set_of) and not op.inputs:
            made = empty_table if op.record is hash_of else empty_set
            op.record, op.attrs = made, {"item": held[op.output].completed().item}
    if any(isinstance(p.type, Tape) for p in function.params):
        _copy_arrays(function.block)
    return function


class _ItemTypes(dict):
    """The item types of every list."""

    def __missing__(self, value: Value) -> ItemType:
        self[value] = held = ItemType(value.type)
        return held

    def same(self, a: Value, b: Value) -> None:
        if isinstance(a.type, List) and isinstance(b.type, List):
            self[a].unify(self[b])

    def visit(self, op: Op) -> None:
        """Infer from one op."""
        if op.name == "if":
            for first, second, output in zip(op.blocks[0].yields, op.blocks[1].yields, op.outputs):
                self.same(first, output)
                self.same(second, output)
                self[output].root().origins += 1
        elif op.name in ("for", "while"):
            first, params, skip = parts(op)
            for init, param, end, output in zip(op.inputs[first:], params,
                                                op.blocks[-1].yields[skip:], op.outputs):
                for value in (init, end, output):
                    self.same(param, value)
            for param, output in zip(op.blocks[0].params if op.name == "while" else (), op.outputs):
                self.same(param, output)
        elif op.name == "call":
            for x, param in zip(op.inputs, op.attrs["callee"].function_for(op.inputs).params):
                if isinstance(x.type, List) and isinstance(param.type, List):
                    self[x].unify(ItemType(param.type))
                    self[x].root().origins += 1
        else:
            self._data(op)

    def _data(self, op: Op) -> None:
        writes = op.record.writes
        for k, y in enumerate(op.outputs):
            if not isinstance(y.type, List):
                continue
            if writes is not None and k == 0:
                self.same(op.inputs[writes], y)
            else:
                self[y].root().origins += 1
        if op.record in (list_of, list_full):
            for k, x in enumerate(op.inputs):
                if k in op.record.moves:
                    self._enters(x, op.output, 1)
        elif op.record.stores and writes is not None:
            self._enters(op.inputs[1], op.output, max(len(op.inputs) - 2, 1))
            if op.record.growth > 0:
                self[op.output].root().filled = True
        elif op.record is list_get:
            self._enters(op.output, op.inputs[0], len(op.inputs) - 1)
        elif op.record.growth < 0:
            self._enters(op.outputs[1], op.outputs[0], 1)
        elif writes is None:  # perhaps a list of items of others, of sums of them, or of zeros
            for y in op.outputs:
                for k, x in enumerate(op.inputs):
                    if k in op.record.linear or op.record.fill is not None:
                        self._items(x, y)

    def _enters(self, x: Value, xs: Value, depth: int) -> None:
        """Record that `x` is an item of `xs`, or of one of its items."""
        outer = self[xs].root()
        for _ in range(depth - 1):
            outer = outer.item.root()
        if isinstance(x.type, List):
            if outer.item is None:
                outer.item = ItemType(x.type)
            self[x].unify(outer.item)
        elif outer.item is not None:
            outer.item.unify(ItemType(x.type))

    def _items(self, a: Value, b: Value) -> None:
        """Record that the items of `a` are of the kind of those of `b`, if both are lists."""
        if not isinstance(a.type, List) or not isinstance(b.type, List):
            return
        if _is_known(a.type) and _is_known(b.type) and a.type != b.type:
            return  # cotangents of pairs of an integer and a number are pairs of numbers
        if self[a].root().item is not None and self[b].root().item is not None:
            self[a].root().item.unify(self[b].root().item)


def _is_known(type: Type) -> bool:
    """Whether no item of a list, or member of a tuple, is still of any type."""
    if isinstance(type, List):
        return _is_known(type.item)
    return all(map(_is_known, type.items)) if isinstance(type, Tuple) else type != UNDEFINED


def _copy_arrays(block: Block) -> None:
    ops, block.ops = block.ops, []
    for op in ops:
        if op.record is tape_push and isinstance(op.inputs[1].type, Array):
            with Builder(Block(), op.line) as builder:
                op.inputs[1] = copy_again(op.inputs[1])
            block.ops += builder.block.ops
        for inner in op.blocks:
            _copy_arrays(inner)
        block.ops.append(op)


def spelled(type: Type) -> str:
    """An expression for some value of this type; for a list, an empty one."""
    match type:
        case Scalar("float64" | "int64" | "bool" | "complex128" as dtype):
            return {"float64": "0.0", "int64": "0", "bool": "False", "complex128": "0j"}[dtype]
        case Scalar(dtype):
            return f"np.{np.dtype(dtype).name}(0)"
        case Array(dtype, dims):
            return f"np.empty({(0,) * len(dims)}, np.{np.dtype(dtype).name})"
        case HashTable(item):
            return f"numbered([{spelled(item)}][:0])"
        case HashSet(item):
            return f"set([{spelled(item)}][:0])"
        case List(item):
            return f"[{spelled(item)}][:0]"
        case Tuple(items):
            return f"({', '.join(map(spelled, items))},)"
    return "0.0"


empty_list = Record("empty_list", evaluate=lambda
                    *, item, kind: [], infer=lambda *, item, kind: kind(item), syntax=lambda
                    *, item, kind: ast.parse(f"[{spelled(item)}][:0]", mode="eval").body)

empty_table = Record("empty_table", evaluate=lambda *, item: {},
                     infer=lambda *, item: HashTable(item), helper=numbered,
                     syntax=lambda *, item: ast.parse(spelled(HashTable(item)), mode="eval").body)
empty_set = Record("empty_set", evaluate=lambda *, item: set(), infer=lambda *, item: HashSet(item),
                   syntax=lambda *, item: ast.parse(spelled(HashSet(item)), mode="eval").body)
