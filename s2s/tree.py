"""Trees of values: nested tuples, lists, dicts and objects, with differentiable data at the leaves.

Dataclasses and `types.SimpleNamespace` are trees as they stand; other classes are once they are
registered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import optree

from .ir import treedef

NAMESPACE = "s2s"


def map(function: Callable, tree, *others):
    """Apply `function` to each leaf of `tree`, and to the corresponding leaves of `others`; return
    a tree like `tree`.
    """
    known(tree)
    return optree.tree_map(function, tree, *others, namespace=NAMESPACE)


def leaves(tree) -> list:
    """Return the leaves of `tree`, from left to right; the entries of a dict in the order of its
    keys.
    """
    known(tree)
    return optree.tree_leaves(tree, namespace=NAMESPACE)


def flatten(tree) -> tuple[list, object]:
    """Return (leaves, structure), which `unflatten` puts together again."""
    known(tree)
    found, structure, *_ = optree.tree_flatten(tree, namespace=NAMESPACE)
    return found, structure


def unflatten(structure, leaves: list):
    """Build the tree of this structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def structure(tree):
    """Return the structure of `tree` without its leaves: equal for trees of one structure."""
    return flatten(tree)[1]


def stack(trees: Sequence, one: Callable = lambda: None):
    """Stack the leaves of `trees` along a new first axis; return a tree like each of them.

        stack([(x, a), (y, b)])  is  (np.stack([x, y]), np.stack([a, b]))

    Where there are no trees, the axis has length 0, and `one()` is such a tree as there might have
    been.
    """
    if trees:
        return map(lambda *leaves: np.stack(leaves), *trees)
    return map(lambda leaf: np.stack([leaf])[:0], one())


def ravel(tree):
    """Return (vector, unravel): the leaves of `tree` one after the other, and the function that
    builds such a tree from a vector.

    The vector has the dtype that all leaves promote to; `unravel` gives each leaf its shape again,
    and leaves the dtype.  It raises ValueError for anything but a vector of that length.
    """
    parts, whole = flatten(tree)
    vector = np.concatenate([np.ravel(part) for part in parts]) if len(parts) > 0 else np.zeros(0)
    shapes = tuple([np.shape(part) for part in parts])
    count = sum([math.prod(shape) for shape in shapes])

    def unravel(vector):
        if np.shape(vector) != (count,):
            raise ValueError(f"unravel of something else than a vector of length {count}")
        found, start = [], 0
        for shape in shapes:
            end = start + math.prod(shape)
            found.append(np.reshape(vector[start:end], shape) if len(shape) > 0 else vector[start])
            start = end
        return unflatten(whole, found)

    return vector, unravel


def register(kind: type, flatten: Callable, unflatten: Callable) -> None:
    """Register the class `kind`, so that its instances are trees.

    `flatten(x)` is (children, rest): children are data, each an attribute of `x`; the rest, which
    must be hashable, is fixed when code is generated.  `unflatten(rest, children)` makes the
    instance again.
    """
    treedef.register(kind, lambda x: tuple(flatten(x)[0]))
    optree.register_pytree_node(kind, flatten, unflatten, namespace=NAMESPACE)
    _known.add(kind)


_known: set[type] = set()


def known(tree) -> None:
    """Register with optree the classes of the objects in `tree` whose attributes are their members.
    """
    while True:
        found = {type(x) for x in optree.tree_leaves(tree, namespace=NAMESPACE)}
        new = [kind for kind in found if kind not in _known and treedef.has_members(kind)]
        for kind in new:
            _known.add(kind)
            optree.register_pytree_node(kind, _flatten_attributes, _unflatten_attributes(kind),
                                        namespace=NAMESPACE)
        if not new:
            return


def _flatten_attributes(x) -> tuple[list, tuple]:
    """Return the attributes that are data; the names of all, and those whose content is part of the
    structure.
    """
    content = treedef.attributes_of(x)
    fixed = tuple((name, content[name]) for name in content if treedef.is_fixed(x, name))
    names = tuple(name for name in content if not treedef.is_fixed(x, name))
    return [content[name] for name in names], (names, fixed)


def _unflatten_attributes(kind: type) -> Callable:
    def unflatten(rest: tuple, children):
        names, fixed = rest
        return treedef.with_attributes(kind, **dict(zip(names, children)), **dict(fixed))

    return unflatten


__all__ = ["flatten", "leaves", "map", "register", "structure", "unflatten"]
