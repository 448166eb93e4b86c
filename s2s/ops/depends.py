"""Dependence rules of ops: the elements of the operands on which each element of a result depends,
for sparsity patterns.

A rule is `depends(unions, y, deps, *xs, **attrs)`. `y` is the result and `xs` are the operands, as
NumPy values; `deps` has the dependences of each x: for an array, integers in its shape, which
denote sets of inputs (see sparse/union_graph.py), for a list a list of such, and 0, the empty set,
for a number without any. The rule returns the dependences of y, a superset of the true ones.

A dependence means that an element is computed from another, not that a derivative is nonzero: the
analysed programs are derivatives already. Most ops move elements, and are run on the dependences as
they are on the elements. Elementwise ops need no rule: their result is the union over the operands.
For an op without a rule, and for an index with dependences, every element of the result depends on
everything.

The rules are in one file, like those for batching, because they follow from a few patterns of
dependence and not from the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..ir.treedef import form_of, is_container
from .arrays.index_pattern import python_index
from .core.record import RECORDS, Record
from .core.shape import normal_axes

# ----------------------------------------------------------------------------------- of one operand


def nothing(unions, y, deps, *xs, **attrs):
    """Rule: only the shape of an operand is read."""
    return 0


def moved(record: Record) -> Callable:
    """Rule: elements are moved, repeated or dropped; run the op itself on dependences."""

    def depends(unions, y, deps, *xs, **attrs):
        operands = [spread_as(d, x) if k in record.moves else x
                    for k, (d, x) in enumerate(zip(deps, xs))]
        operands = [np.zeros(np.shape(x), np.int64) if k in record.shapes else x
                    for k, x in enumerate(operands)]
        return record.evaluate(*operands, **attrs)

    return depends


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


def reduced(unions, y, deps, x, *, axis, keepdims=False):
    """Rule: a reduction along axes."""
    axes = normal_axes(axis, x.ndim) if isinstance(x, np.ndarray) else ()
    return unions.along(spread_as(deps[0], x), tuple(axes), keepdims)


def running(unions, y, deps, x, *, axis):
    """Rule: all previous elements along an axis (a scan)."""
    found = spread_as(deps[0], x)
    found = np.moveaxis(found.ravel() if axis is None else found, -1 if axis is None else axis,
                        0).copy()
    for k in range(1, len(found)):
        found[k] = unions.union(found[k - 1], found[k])
    return found if axis is None else np.moveaxis(found, 0, axis)


def transformed(unions, y, deps, x, *lengths, axes=None, axis=None, **attrs):
    """Rule: all elements along the axes of a Fourier or cosine transform."""
    found = unions.along(spread_as(deps[0], x), normal_axes(axes if axis is None else axis, x.ndim),
                         keepdims=True)
    return np.broadcast_to(found, y.shape).copy()


def matrices(unions, y, deps, a, **attrs):
    """Rule: all elements of each matrix of a stack."""
    found = np.asarray(unions.along(spread_as(deps[0], a), (a.ndim - 2, a.ndim - 1)))
    return np.broadcast_to(found.reshape(found.shape + (1,) * (np.ndim(y) - found.ndim)),
                           np.shape(y)).copy()


def gathered(forward: Callable) -> Callable:
    """Rule: the adjoint of a moving op `forward`: each element gets all that was read from it."""

    def depends(unions, y, deps, bar, *xs, **attrs):
        places = np.arange(np.size(y)).reshape(np.shape(y))
        taken = np.asarray(forward(places, bar, *xs, **attrs))
        found = unions.grouped(taken.ravel(), spread_as(deps[0], np.asarray(bar)).ravel(),
                               np.size(y))
        return found.reshape(np.shape(y)) if np.ndim(y) else int(found[0])

    return depends


# --------------------------------------------------------------------------------------- of several


def anything(unions, y, deps, *xs, **attrs):
    """Rule: every element depends on everything."""
    return everywhere(unions.all_of(*(part for d in deps for part in parts(d))), y)


def parts(deps) -> list:
    """The arrays and numbers in nested lists of dependences."""
    return ([part for item in deps for part in parts(item)] if isinstance(deps, (list, tuple))
            else [deps])


def everywhere(node: int, y):
    """One set for each element of `y`."""
    return spread_as(node, y)


def product(unions, y, deps, a, b, **attrs):
    """Rule: products of vectors, matrices and stacks: a row of the first and a column of the
    second.
    """
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return unions.union(*deps)
    left, right = spread_as(deps[0], a), spread_as(deps[1], b)
    left = np.asarray(unions.along(left, (a.ndim - 1,)))
    right = np.asarray(unions.along(right, (max(b.ndim - 2, 0),)))
    if b.ndim > 1:
        left = left[..., None]
    if a.ndim > 1 and b.ndim > 1:
        right = right[..., None, :]
    return unions.union(left, right) if np.ndim(y) else unions.union(int(left), int(right))


def outer(unions, y, deps, a, b, **attrs):
    """Rule: the outer product of two vectors."""
    left, right = (spread_as(d, x) for d, x in zip(deps, (a, b)))
    return unions.union(np.ravel(left)[:, None], np.ravel(right)[None, :])


def summed(unions, y, deps, *xs, subscripts):
    """Rule: np.einsum: of each operand the elements along the summed axes."""
    terms, result = subscripts.replace(" ", "").split("->")
    if "." in subscripts:
        return anything(unions, y, deps, *xs)
    found = 0
    for term, dep, x in zip(terms.split(","), deps, xs, strict=True):
        dep = spread_as(dep, x)
        for letter in sorted(set(term)):  # a repeated letter means the diagonal
            while term.count(letter) > 1:
                first, second = term.index(letter), term.rindex(letter)
                dep = np.moveaxis(np.diagonal(dep, axis1=first, axis2=second), -1, first)
                term = term[:second] + term[second + 1:]
        dep = np.asarray(unions.along(
            dep, tuple(k for k, letter in enumerate(term) if letter not in result)))
        term = "".join(letter for letter in term if letter in result)
        dep = np.transpose(dep, sorted(range(len(term)), key=lambda k: result.index(term[k])))
        found = unions.union(found,
                             dep.reshape([dep.shape[sorted(term, key=result.index).index(letter)]
                                          if letter in term else 1 for letter in result]))
    return np.broadcast_to(found, np.shape(y)).copy() if np.ndim(y) else int(found)


def convolved(unions, y, deps, a, b):
    """Rule: np.convolve in full mode: element n of elements k of the first and n - k of the second.
    """
    places = np.add.outer(np.arange(np.size(a)), np.arange(np.size(b))).ravel()
    left = np.repeat(spread_as(deps[0], np.ravel(a)), np.size(b))
    right = np.tile(spread_as(deps[1], np.ravel(b)), np.size(a))
    return unions.grouped(np.concatenate([places, places]), np.concatenate([left, right]),
                          np.size(y))


def correlated(unions, y, deps, a, b):
    """Rule: np.correlate in valid mode: element n of elements n + k of the first and k of the
    second.
    """
    places = np.subtract.outer(np.arange(np.size(a)), np.arange(np.size(b))).ravel()
    inside = (places >= 0) & (places < np.size(y))
    left = np.repeat(spread_as(deps[0], np.ravel(a)), np.size(b))[inside]
    right = np.tile(spread_as(deps[1], np.ravel(b)), np.size(a))[inside]
    return unions.grouped(np.concatenate([places[inside], places[inside]]),
                          np.concatenate([left, right]), np.size(y))


def solved(unions, y, deps, a, b):
    """Rule: the whole matrix, and the column on the right."""
    left = np.asarray(unions.along(spread_as(deps[0], a), (a.ndim - 2, a.ndim - 1)))
    if b.ndim == 1:
        return np.full(b.shape, unions.union(int(left), unions.along(spread_as(deps[1], b), (0,))),
                       np.int64)
    right = unions.along(spread_as(deps[1], b), (b.ndim - 2,), keepdims=True)
    return np.broadcast_to(unions.union(left[..., None, None], right), y.shape).copy()


def spaced(unions, y, deps, start, stop, num, **attrs):
    """Rule: np.linspace: both ends."""
    return np.broadcast_to(unions.union(deps[0], deps[1]), np.shape(y)).copy()


def counted(unions, y, deps, x, least, *weights):
    """Rule: np.bincount: the weights of each number."""
    return unions.grouped(x, spread_as(deps[2], weights[0]), y.size) if weights else 0


def written(unions, y, deps, x, v, *operands, pattern):
    """Rule: x[...] = v."""
    found = np.array(spread_as(deps[0], x))
    found[python_index(pattern, operands)] = deps[1]
    return found


def added(unions, y, deps, x, v, *operands, pattern):
    """Rule: x[...] += v."""
    return add_into(unions, np.array(spread_as(deps[0], x)), deps[1],
                    python_index(pattern, operands))


def add_into(unions, found: np.ndarray, deps, index):
    """`found`, with `deps` added at each element that `index` names, as often as it is named."""
    places = np.arange(found.size).reshape(found.shape)[index]
    if np.ndim(places) == 0:
        found[index] = unions.both(int(found[index]), int(deps))
        return found
    named, groups = np.unique(places, return_inverse=True)
    members = np.broadcast_to(deps, places.shape).ravel()
    all_groups = np.concatenate([np.arange(named.size), groups.ravel()])
    found.flat[named] = unions.grouped(all_groups, np.concatenate([found.flat[named], members]),
                                       named.size)
    return found


def joined(unions, y, deps, *leaves, shape, dtype):
    """Rule: np.array of numbers."""
    return np.array(list(deps), np.int64).reshape(shape)


def member_by_member(unions, y, deps, a, b, **attrs):
    """Rule: lists of equal nesting, item by item."""
    return _both(unions, spread_as(deps[0], a), spread_as(deps[1], b))


def added_to_item(unions, y, deps, xs, v, *indices, kind):
    """Rule: xs[i][j] += v, for nested lists."""
    added = spread_as(deps[1], v)

    def at(found, indices):
        if not indices:
            return _both(unions, found, added)
        found = list(found)
        found[indices[0]] = at(found[indices[0]], indices[1:])
        return found

    return at(spread_as(deps[0], xs), indices)


def _both(unions, a, b):
    if isinstance(a, list):
        return [_both(unions, m, n) for m, n in zip(a, b)]
    return unions.union(a, b)


# ------------------------------------------------------------------------------------------- tables

ALL = tuple(range(1024))


def _say(names: str, rule: Callable | None = None, moves: Sequence[int] = ()) -> None:
    for name in names.split():
        record = RECORDS[name]
        record.moves = tuple(moves)
        record.depends = moved(record) if rule is None else rule


_say("concatenate stack tuple list_of", moves=ALL)
_say("append list_join list_insert list_set tape_push", moves=(0, 1))
_say("""as_array atleast_1d atleast_2d atleast_3d broadcast_to copy diagonal expand_dims finite flip full full_like moveaxis ravel
     repeat reshape reshape_like roll shaped_like as_long_as spread squeeze swapaxes take_along_axis tile transpose tril triu getitem
     delete list_concatenate list_copy list_full list_get list_pick list_put list_slice list_stack list_unstack
     contiguous again list_cut stop_gradient aside tape_copy tape_kept tape_reversed""", moves=(0,))
_say("fitted", moves=(0,))
_say("fft ifft rfft irfft dct dst", transformed, moves=(0,))
_say("insert", moves=(0, 2))
_say("list_pop_at item tape_pop", moves=(0,))
_say("array", joined, moves=ALL)
_say("setitem", written, moves=(0, 1))
_say("additem", added, moves=(0, 1))
# which are computed from the xs
_say("root", lambda unions, y, deps, squares, *xs, **attrs: spread_as(deps[0], y), moves=ALL)
_say("root_forward", lambda unions, y, deps, *xs, **attrs: spread_as(unions.union(*deps[:4]), y),
     moves=ALL)
_say("complex_as_if", lambda unions, y, deps, *xs: spread_as(unions.union(*deps), y), moves=ALL)
_say("sum added_up prod max min nanmax nanmin", reduced, moves=(0,))
_say("cumsum cumprod", running, moves=(0,))
_say("cholesky inv det log_of_det", matrices, moves=(0,))
_say(
    "cofactors cofactors_along cofactors_of_each cofactors_along_each inverse_or_nan "
    "inverse_or_nan_of_each", anything, moves=ALL)
_say("sum_to", gathered(lambda places, bar, x, **attrs: np.broadcast_to(places, np.shape(bar))),
     moves=(0,))
_say("unrepeat",
     gathered(lambda places, bar, x, count, *, axis: RECORDS["repeat"].evaluate(places, count,
                                                                                axis=axis)),
     moves=(0,))
_say("untile", gathered(lambda places, bar, x, *counts: RECORDS["tile"].evaluate(places, *counts)),
     moves=(0,))
_say("add_along_axis",
     gathered(lambda places, bar, indices, x, *, axis: RECORDS["take_along_axis"].evaluate(
         places, indices, axis=axis)), moves=(0,))
_say("matmul dot", product, moves=(0, 1))
_say("inner list_sum list_total list_max list_min exact_sum dot_left dot_right", anything,
     moves=(0, 1, 2))
_say("outer", outer, moves=(0, 1))
_say("einsum", summed, moves=ALL)
_say("solve", solved, moves=(0, 1))
_say("convolve", convolved, moves=(0, 1))
_say("correlate", correlated, moves=(0, 1))
_say("linspace", spaced, moves=(0, 1))
_say("bincount", counted, moves=(2,))
_say("list_plus", member_by_member, moves=(0, 1))
_say("list_add", added_to_item, moves=(0, 1))
_say("slice_plus nested_slice_plus", anything, moves=(0, 1))
_say("foreign", anything, moves=ALL)
_say(
    """empty_like length list_zeros ndim ones_like print raise shape size tape_len tape_new undefined zeros_like""",
    nothing, moves=ALL)
_say("""all any argmax argmin argsort at_least_zero broadcast_length count_of digitize in_bounds insertion is_indefinite
     is_singular isin lexsort list_contains list_count list_index list_order sum_overflows masked_step narrow natural_exponent nonempty_length on_tape supposed_length
     direction_length place_in rule_length same_lanes same_length searchsorted sign_of_det slice_bound spread_length stays_inside gap within is_last""", anything, moves=ALL)
_say("buffer constant default_rng empty eye ones zeros", nothing)
_say("arange fftfreq rfftfreq", anything)
_say("bin_counts ends_doubled", nothing)
