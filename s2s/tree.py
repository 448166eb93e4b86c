"""Trees of values: tuples, lists and dicts, nested; what is at their leaves is what derivatives are of."""

from __future__ import annotations

from collections.abc import Callable

import optree


def map(function: Callable, tree, *others):
    """A tree like `tree`, with `function` applied to each leaf, and to the leaves of `others` beside it."""
    return optree.tree_map(function, tree, *others)


def leaves(tree) -> list:
    """The leaves of `tree`, from left to right; the entries of a dict in the order of its keys."""
    return optree.tree_leaves(tree)


def flatten(tree) -> tuple[list, object]:
    """(leaves, structure): what `unflatten` puts together again."""
    found, structure, *_ = optree.tree_flatten(tree)
    return found, structure


def unflatten(structure, leaves: list):
    """The tree of this structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)
