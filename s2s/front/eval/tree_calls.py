"""`s2s.tree` inside a program: structures of trees are static, and only leaves remain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gast
import numpy as np
import optree

from ... import tree
from ...errors import TypeMismatchError
from ...ir.builder import current, emit
from ...ir.graph import Value
from ...ir.treedef import form_of
from ...ir.types import List, Tuple
from ...ops.core.control import for_loop, item, tape_len, tape_push
from ...ops.program.list_arrays import list_stack
from ...ops.program.list_ops import list_get, list_of
from ..domain.frame import Frame, like
from ..domain.functions import FunctionValue
from ..domain.heap import Cell, Container
from ..values.lists import as_list, new_list
from .apply import apply
from .python_builtins import BUILTINS


@dataclass(frozen=True)
class Node:
    """One level of a tree: its kind of container, the names of its members, the members, and a
    constructor of a copy with other members.
    """

    kind: object
    keys: tuple
    members: list
    rebuild: Callable[[Sequence], object]


@dataclass(eq=False)
class Structure(FunctionValue):
    """The structure that `tree.flatten` returns beside the leaves."""

    whole: object


@dataclass(frozen=True)
class Place:
    """The position of the k-th leaf of a tree."""

    k: int


def node_of(frame: Frame, binding) -> Node | None:
    """The container node of a binding; None for a leaf."""
    match binding:
        case None:
            return Node(None, (), [], lambda members: None)
        case tuple() | list():
            return Node(type(binding), tuple(range(len(binding))), list(binding),
                        lambda members: like(binding, list(members)))
        case Container(members=members):
            keys = sorted(members, key=str) if binding.is_dict else [
                name for name in members if not _is_fixed(frame, binding.cls, name, members[name])]
            return Node(
                binding.cls, tuple(keys), [members[key] for key in keys],
                lambda new: frame.heap.new_container(
                    binding.cls, {**members, **dict(zip(keys, new))}, binding.factory))
        case Cell() if frame.heap.items(binding) is not None:
            items = frame.heap.items(binding)
            return Node(list, tuple(range(len(items))), list(items),
                        lambda members: new_list(frame, members))
    return None


def _is_fixed(frame: Frame, cls: type, name: str, member) -> bool:
    """Whether an attribute is part of the static structure."""
    declared = getattr(cls, "__dataclass_fields__", {}).get(name)
    if declared is not None and declared.metadata.get("static"):
        return True
    return node_of(frame, member) is None and frame.is_static(member) and not isinstance(
        frame.static(member, "an attribute"), (int, float, complex, np.number, np.ndarray))


def leaves_of(frame: Frame, binding) -> list:
    """The leaves of a tree, from left to right."""
    node = node_of(frame, binding)
    return [binding] if node is None else [
        leaf for member in node.members for leaf in leaves_of(frame, member)
    ]


def map_tree(frame: Frame, function: Callable, first, others: Sequence = ()):
    """A tree of the structure of `first`: `function` applied to its leaves and to the corresponding
    parts of the others.
    """
    node = node_of(frame, first)
    if node is None:
        return function(first, *others)
    beside = [node_of(frame, other) for other in others]
    if any(b is None or (b.kind, b.keys) != (node.kind, node.keys) for b in beside):
        raise TypeMismatchError("tree.map over trees of different structure",
                                current().line, "nest them alike")
    return node.rebuild([
        map_tree(frame, function, member, [b.members[k] for b in beside])
        for k, member in enumerate(node.members)
    ])


def _map(frame: Frame, node: gast.AST, function, first, *others):
    return map_tree(frame, lambda *leaves: apply(frame, function, list(leaves), {}, node), first,
                    others)


def _leaves(frame: Frame, node: gast.AST, whole):
    return new_list(frame, leaves_of(frame, whole))


def _flatten(frame: Frame, node: gast.AST, whole):
    return new_list(frame, leaves_of(frame, whole)), Structure(whole)


def _structure(frame: Frame, node: gast.AST, whole):
    return Structure(whole)


def _unflatten(frame: Frame, node: gast.AST, structure, leaves):
    given = leaves_of(frame, leaves)
    # created outside the program: unravel of `ravel_pytree`
    outside = isinstance(structure, optree.PyTreeSpec)
    if not outside and not isinstance(structure, Structure):
        raise frame.refuse(f"tree.unflatten of a {type(structure).__name__}", node,
                           "give it what tree.flatten returns")
    wanted = structure.num_leaves if outside else len(leaves_of(frame, structure.whole))
    if len(given) != wanted:
        raise TypeMismatchError(f"{len(given)} leaves for a tree of {wanted}", frame.line(node),
                                "pass one for each leaf")
    if outside:
        return _in_places(frame, tree.unflatten(structure, [Place(k) for k in range(wanted)]),
                          given)
    rest = iter(given)
    return map_tree(frame, lambda leaf: next(rest), structure.whole)


def _in_places(frame: Frame, x, leaves: list):
    """The binding of a tree from outside, with the k-th of `leaves` at Place(k)."""
    if isinstance(x, Place):
        return leaves[x.k]
    form = form_of(x)
    if form is None and not isinstance(x, tuple):
        return x
    return frame.container_like(
        form,
        [_in_places(frame, member, leaves) for member in (x if form is None else form.members(x))])


def _stack(frame: Frame, node: gast.AST, trees, one=None):
    """The tree of the stacked leaves of a list of trees.

    The option `one` does not apply: the number of trees in a list of run-time length is unknown
    here, and of no trees NumPy makes arrays of one axis.
    """
    known = frame.heap.items(trees) if isinstance(trees, Cell) else trees
    if known == ():
        return None
    if isinstance(known, (tuple, list)):
        return map_tree(frame,
                        lambda *leaves: apply(frame, np.stack, [new_list(frame, leaves)], {}, node),
                        known[0], known[1:])
    xs = as_list(frame, trees)

    def part(type, path: tuple[int, ...]):
        if isinstance(type, Tuple):
            return frame.container_like(
                type.form, [part(inner, (*path, k)) for k, inner in enumerate(type.items)])
        return frame.heap.new(list_stack(_members(xs, path) if path else xs))

    if not isinstance(xs.type, List):
        raise TypeMismatchError(f"tree.stack of a {xs.type}", frame.line(node),
                                "pass a list of trees")
    return part(xs.type.item, ())


def _members(xs: Value, path: tuple[int, ...]) -> Value:
    """The list of one component of each item of a list of tuples."""
    def step(k: Value, found: Value) -> list[Value]:
        part = list_get(xs, k)
        for index in path:
            part = item(part, index=index)
        return [tape_push(found, part)]

    (found,) = for_loop(0, tape_len(xs), 1, [emit(list_of)], step)
    return found


BUILTINS.update({
    tree.map: _map,
    tree.leaves: _leaves,
    tree.flatten: _flatten,
    tree.unflatten: _unflatten,
    tree.structure: _structure,
    tree.stack: _stack
})
