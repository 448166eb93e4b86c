"""Dependence rules that ops share: the elements of the operands on which each element of a result
depends, for sparsity patterns.

A record states one of these, or a rule of its own:

    moves=(0,)          elements of this operand are moved, repeated or dropped, so the op itself is
                        run on the dependences
    depends=along_axes  elements are combined as the rule says
    depends=anything    every element of the result depends on everything
    depends=nothing     only shapes are read

A rule is `depends(unions, y, deps, *xs, **attrs)`. `y` is the result and `xs` are the operands, as
NumPy values; `deps` has the dependences of each x: for an array, integers in its shape, which
denote sets of inputs (see sparse/union_graph.py), for a list a list of such, and 0, the empty set,
for a number without any. The rule returns the dependences of y, a superset of the true ones.
`@follows` names the operands whose elements it follows; the others decide which element goes where.

A dependence means that an element is computed from another, not that a derivative is nonzero: the
analysed programs are derivatives already. Elementwise ops need no rule: their result is the union
over the operands. For an op that states nothing, and where a deciding operand has dependences,
every element of the result depends on everything, and the pattern holds for these values only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...ir.treedef import form_of, is_container
from .record import ALL, Record


def follows(*inputs: int) -> Callable:
    """Decorator: a rule that follows the elements of these inputs, or of all."""

    def mark(rule: Callable) -> Callable:
        rule.inputs = inputs or ALL
        return rule

    return mark


def followed(record: Record) -> Sequence[int]:
    """The inputs whose elements are followed into the result."""
    return record.moves if record.depends is None else record.depends.inputs


def moved(record: Record, deps, xs, attrs):
    """The dependences of an op that moves elements: what it computes of those of its operands."""
    operands = [spread_as(d, x) if k in record.moves
                else np.zeros(np.shape(x), np.int64) if k in record.shapes else x
                for k, (d, x) in enumerate(zip(deps, xs))]
    return record.evaluate(*operands, **attrs)


def spread_as(deps, x):
    """The dependences of `x`, broadcast to its shape."""
    if isinstance(x, np.ndarray):
        return (np.full(x.shape, deps, np.int64)
                if np.ndim(deps) == 0 and not isinstance(deps, list) else deps)
    if is_container(x) and not is_container(deps):
        form = form_of(x)
        members = [spread_as(deps, item) for item in (x if form is None else form.members(x))]
        return tuple(members) if form is None else form.build(members)
    return deps


# ------------------------------------------------------------------------------------------- rules


@follows()
def nothing(unions, y, deps, *xs, **attrs):
    """Rule: only the shapes of the operands are read."""
    return 0


@follows()
def anything(unions, y, deps, *xs, **attrs):
    """Rule: every element depends on everything."""
    return spread_as(unions.all_of(*(part for d in deps for part in _parts(d))), y)


def _parts(deps) -> list:
    """The arrays and numbers in nested lists of dependences."""
    return ([part for item in deps for part in _parts(item)] if isinstance(deps, (list, tuple))
            else [deps])


@follows(0)
def along_axes(unions, y, deps, x, *, axis, keepdims=False):
    """Rule: a reduction along axes."""
    return unions.along(spread_as(deps[0], x), axis if np.ndim(x) else (), keepdims)


@follows(0)
def per_matrix(unions, y, deps, a, **attrs):
    """Rule: all elements of each matrix of a stack."""
    found = np.asarray(unions.along(spread_as(deps[0], a), (-2, -1)))
    return np.broadcast_to(found.reshape(found.shape + (1,) * (np.ndim(y) - found.ndim)),
                           np.shape(y)).copy()


def gathered(forward: Callable) -> Callable:
    """Rule: the adjoint of a moving op `forward`: each element gets all that was read from it."""

    @follows(0)
    def depends(unions, y, deps, bar, *xs, **attrs):
        places = np.arange(np.size(y)).reshape(np.shape(y))
        taken = np.asarray(forward(places, bar, *xs, **attrs))
        found = unions.grouped(taken.ravel(), spread_as(deps[0], np.asarray(bar)).ravel(),
                               np.size(y))
        return found.reshape(np.shape(y)) if np.ndim(y) else int(found[0])

    return depends
