"""The control flow of jax.lax as plain Python functions, for programs that come from JAX; and the
collectives, over the named axes of `vmap`, which are ops (ops/program/collectives.py).

s2s reads these as it reads the user's own functions, so generated code has the loop or the branch
itself.  Programs written for s2s need none of them.  Two other designs were thought of: ops of
their own, which would have to be differentiated, batched and lowered again; and translating the
calls when code is generated, which would leave nothing that runs, or can be read, without s2s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from . import tree
from .ops.program.collectives import (  # noqa: F401
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
)


def cond(pred, true_fun: Callable, false_fun: Callable, *operands, operand=...):
    """Return `true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`: only one of them
    runs.

    As jax.lax.cond; both must return trees of one structure.  One operand may be given by name.

    Raises TypeError if there are operands of both kinds.
    """
    if operand is not ...:
        if len(operands) > 0:
            raise TypeError("cond takes its operands in their places, or one by name")
        operands = (operand,)
    if pred:
        return true_fun(*operands)
    return false_fun(*operands)


def switch(index, branches: Sequence[Callable], *operands):
    """Return `branches[index](*operands)`; an index outside is clamped, as in jax.lax.switch.

    Raises ValueError if there are no branches.
    """
    if len(branches) == 0:
        raise ValueError("switch needs at least one branch")
    last = len(branches) - 1
    for k, branch in enumerate(branches[:last]):
        if index <= k:
            return branch(*operands)
    return branches[last](*operands)


def while_loop(cond_fun: Callable, body_fun: Callable, init_val):
    """Repeat `val = body_fun(val)` as long as `cond_fun(val)`, from `init_val`; return the last
    value.

    As jax.lax.while_loop, but differentiable in reverse as well.
    """
    val = init_val
    while cond_fun(val):
        val = body_fun(val)
    return val


def fori_loop(lower, upper, body_fun: Callable, init_val):
    """Repeat `val = body_fun(i, val)` for i from `lower` to `upper - 1`, from `init_val`; return
    the last value.

    As jax.lax.fori_loop; the bounds may be run-time integers in reverse mode, too.
    """
    val = init_val
    for i in range(lower, upper):
        val = body_fun(i, val)
    return val


def scan(f: Callable, init, xs=None, length=None, reverse: bool = False, unroll: int = 1):
    """Repeat `carry, y = f(carry, x)` for each x along the first axis of `xs`; return the last
    carry and the stacked ys.

    As jax.lax.scan: `xs` is a tree of arrays of one length, or None, when `length` says how often;
    `carry` and `y` are trees, `y` may be None.  Where there are no xs, `f` is called once, with
    zeros, to see what the ys would be.  With `reverse` the xs are taken from the last to the first,
    and the ys stand in the order of the xs.  `unroll` is accepted and changes nothing.

    Raises ValueError if the arrays differ in length, or no length is given.
    """
    n = trips(xs, length)
    carry, ys = init, []
    for i in range(n):
        k = n - 1 - i if reverse else i
        carry, y = f(carry, tree.map(lambda x: x[k], xs))
        if y is not None:
            ys.append(y)
    stacked = tree.stack(ys, lambda: without_trips(f, init, xs))
    return carry, tree.map(lambda y: y[::-1], stacked) if reverse else stacked


def without_trips(f, init, xs):
    """Return a stand-in for the y of a trip where there is none."""
    with np.errstate(all="ignore"):
        return f(init, tree.map(lambda x: np.zeros(np.shape(x)[1:], x.dtype)[()], xs))[1]


def trips(xs, length):
    """Return the common length of the first axes of `xs`; ValueError where they do not agree."""
    leaves = tree.leaves(xs)
    if length is not None:
        n, others = length, leaves
    elif len(leaves) > 0:
        n, others = len(leaves[0]), leaves[1:]
    else:
        raise ValueError("scan needs xs, or a length")
    for other in others:
        if len(other) != n:
            raise ValueError("scan over arrays of different lengths")
    return n


def associative_scan(fn: Callable, elems, reverse: bool = False, axis: int = 0):
    """Return all partial results of the associative `fn` along `axis`: y[0] = x[0], y[k] = fn(y[k -
    1], x[k]).

    As jax.lax.associative_scan: `elems` is a tree of arrays of one length along `axis`; `fn(a, b)`
    combines two such trees element by element, and is given many elements at once.  With `reverse`
    the scan starts at the last element.

    About 2 n combinations in 2 log2(n) calls of `fn`, each of which can run in parallel: the up and
    down sweep of Brent and Kung (1982), as Blelloch (1990) uses it.
    """
    leaves, whole = tree.flatten(elems)
    ys = []
    for leaf in leaves:
        y = np.moveaxis(leaf, axis, 0)
        ys.append(y[::-1].copy() if reverse else y.copy())
    n = len(ys[0])

    def combine(first, d):
        """Combine the elements first + d, first + 3 d, ... with those that stand d before them."""
        a = [np.moveaxis(y[first:n - d:2 * d], 0, axis) for y in ys]
        b = [np.moveaxis(y[first + d::2 * d], 0, axis) for y in ys]
        found = tree.leaves(fn(tree.unflatten(whole, a), tree.unflatten(whole, b)))
        for y, new in zip(ys, found):
            y[first + d::2 * d] = np.moveaxis(new, axis, 0)

    d = 1
    while 2 * d <= n:
        combine(d - 1, d)
        d = 2 * d
    while d > 1:
        d = d // 2
        combine(2 * d - 1, d)
    return tree.unflatten(whole, [np.moveaxis(y[::-1] if reverse else y, 0, axis) for y in ys])
