"""Ops between workers, each of which runs the whole program and takes some lanes of each `pmap`.

    def f_pmap(w, X):                     every worker is given w and X
        X = my_lanes(X)                   and takes its lanes,
        y = np.exp(X @ w)                 array code for these alone;
        total = lanes_sum(y, n)           lanes of all workers meet,
        return all_lanes(y / total, n)    and results are gathered again

Outside of a `pmap` all workers hold the same numbers: they compute the same there.  Inside, what a
worker holds is that of its own lanes, or a share of a derivative, which is the sum over workers.
So each op says where it stands, and has its transpose: what all share (`to_lanes`) has the total
of the workers' cotangents, `my_lanes` is the transpose of `all_lanes`, and the total inside is its
own.  A program of one worker takes all lanes, and each op is nearly nothing: that is what these
functions are in Python, in files, and where a program acts on the world outside.  In native code
they are those of s2s/runtime/workers.

There may be more workers than lanes; then those left over take the last lane as well, and are not
counted where lanes meet.  So no array is empty in one worker alone.

Considered: an op with a function inside, which starts workers and waits for them, as a call does;
its derivative would have to be put together from halves, as that of a call is, and a loop that
trains would start workers in each of its trips.  Here a program is one from beginning to end, a
derivative is that of its ops, and workers start once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import TypeMismatchError
from ...ir.graph import Function, Op, Value, walk
from ...ir.types import Array, Extent, Generator, Scalar, Tuple, Type
from ..arrays.axes import moveaxis
from ..arrays.reduce import amax, amin, sum_
from ..core.batch_rules import batched_over
from ..core.cast import as_dtype
from ..core.control import item, packed
from ..core.dependence_rules import anything
from ..core.elementwise import equal, strong_product
from ..core.record import (
    Record,
    array_type,
    define,
    dims_of,
    dtype_of,
    its_operand,
    numpy_function,
    static,
    value,
)
from ..core.shape import extent_of, float_dtype, length
from .effects import acts_outside
from .opaque_call import foreign

# --------------------------------------------------------------------- what they are in one worker


def my_lanes(x):
    """The lanes of `x` that this worker takes."""
    return x


def all_lanes(x, n):
    """The lanes of all workers, of which `x` has this worker's."""
    return x.copy()


def in_place_of_lanes(x, n):
    """Zeros for all `n` lanes, with those of this worker."""
    return x.copy()


def workers_total(x, n):
    """The sum of all workers' `x`."""
    return x


def of_first_worker(x, n):
    """`x` in the first worker, zeros in others."""
    return x


def lanes_sum(x, n):
    """The sum of all lanes of all workers, in order."""
    total = np.sum(x[:1], axis=0)
    for row in x[1:]:
        total = total + row
    return total


def lanes_max(x, n):
    """The largest of all lanes of all workers."""
    largest = x[0]
    for row in x[1:]:
        largest = np.maximum(largest, row)
    return largest


def lanes_min(x, n):
    """The smallest of all lanes of all workers."""
    smallest = x[0]
    for row in x[1:]:
        smallest = np.minimum(smallest, row)
    return smallest


# ------------------------------------------------------------------------------------------ records


def _between(function: Callable, **fields) -> Record:
    """Define the op that is called as `function`, of an array and perhaps the number of lanes."""
    def syntax(*xs: ast.expr, **attrs) -> ast.expr:
        return ast.Call(ast.Name(function.__name__, ast.Load()), list(xs), [])

    return define(function.__name__, **{
        "evaluate": lambda *xs, **attrs: function(*xs), "helper": function, "syntax": syntax,
        "depends": anything, "linear": (0,)} | fields)


def _lanes_behind(record: Callable[[], Record], keeps: bool) -> Callable:
    """The batching rule of an op whose operand has an axis of lanes: it stays in front, and those
    of the vmap around come behind it; the result has it, or not.
    """
    def batch(flags, x: Value, *n: Value, **attrs) -> Value:
        y = record()(moveaxis(x, 0, 1), *n, **attrs)
        return moveaxis(y, 1, 0) if keeps else y

    return batch


def _same_in_lanes(record: Callable[[], Record]) -> Callable:
    """The batching rule of an op whose operand has no axis of lanes."""
    return lambda flags, x, *n, **attrs: record()(x, *n, **attrs)


def extent_of_mine(dim) -> Extent:
    """The number of lanes that a worker takes of so many."""
    return Extent(f"mine.{dim.symbol}{dim.offset or ''}" if isinstance(dim, Extent)
                  else f"mine.{dim}")


def _of_mine(x: Value, **attrs) -> Type:
    if not isinstance(x.type, Array):
        raise TypeMismatchError(f"lanes of {x.type}, which has no axis")
    first, *rest = x.type.dims
    return Array(x.type.dtype, (extent_of_mine(first), *rest))


def _of_all(x: Value, n: Value, **attrs) -> Type:
    return Array(x.type.dtype, (extent_of(n), *x.type.dims[1:]))


def _of_one(x: Value, n: Value, **attrs) -> Type:
    return array_type(dtype_of(x.type), dims_of(x.type)[1:])


def _of_operand(x: Value, n: Value, **attrs) -> Type:
    return Scalar(x.type.dtype) if isinstance(x.type, Scalar) else x.type


def _my_lanes_vjp(bar, y, x, *, workers, inside):
    n = length(x, axis=0)
    return (placed(value(bar), n, workers=workers) if inside
            else gathered(value(bar), n, workers=workers, inside=False),)


# `inside`: among the ops of a pmap, of numbers that differ from worker to worker
mine = _between(
    my_lanes, infer=_of_mine, vjp=_my_lanes_vjp, views=(0,),
    batch=_lanes_behind(lambda: mine, True),
)
gathered = _between(
    all_lanes, infer=_of_all,
    vjp=lambda bar, y, x, n, *, workers, inside: (mine(
        total(value(bar), n, workers=workers, inside=True) if inside else value(bar),
        workers=workers, inside=inside), None),
    batch=_lanes_behind(lambda: gathered, True), pure=False,
)
placed = _between(
    in_place_of_lanes, infer=_of_all,
    vjp=lambda bar, y, x, n, *, workers: (mine(value(bar), workers=workers, inside=True), None),
    batch=_lanes_behind(lambda: placed, True),
)
total = _between(
    workers_total, infer=_of_operand,
    vjp=lambda bar, y, x, n, *, workers, inside: (
        total(value(bar), n, workers=workers, inside=True) if inside
        else to_lanes(value(bar), n, workers=workers), None),
    batch=_same_in_lanes(lambda: total), pure=False, same_shape=0, views=(0,),
)
of_first = _between(
    of_first_worker, infer=_of_operand,
    vjp=lambda bar, y, x, n, *, workers: (
        total(of_first(value(bar), n, workers=workers), n, workers=workers, inside=False), None),
    batch=_same_in_lanes(lambda: of_first), same_shape=0, views=(0,),
)


def _crossing(name: str, vjp: Callable) -> Record:
    """Define the op that names what all workers hold on the other side of where a pmap begins or
    ends.
    """
    record = define(
        name, evaluate=lambda x, n, **attrs: x, infer=lambda x, n, **attrs: x.type, linear=(0,),
        vjp=lambda bar, y, x, n, *, workers: (vjp(value(bar), n, workers), None),
        syntax=lambda x, n, **attrs: x, stands_for=lambda op, out: op.inputs[0],
        lower=its_operand, cheap=True, views=(0,), moves=(0,), same_shape=0, same_elements=True,
        batch=lambda flags, x, n, **attrs: record(x, n, **attrs))
    return record


to_lanes = _crossing("to_lanes", lambda bar, n, workers: total(bar, n, workers=workers,
                                                               inside=False))
from_lanes = _crossing("from_lanes", lambda bar, n, workers: of_first(bar, n, workers=workers))


summed = _between(
    lanes_sum, infer=_of_one,
    vjp=lambda bar, y, x, n, *, workers: (batched_over(
        total(value(bar), n, workers=workers, inside=True), length(x, axis=0)), None),
    batch=_lanes_behind(lambda: summed, False), pure=False,
)


def _share(y: Value, x: Value, n: Value, workers) -> Value:
    """The parts that lanes have in the derivative of an extreme `y`: those that tie share it."""
    hit = as_dtype(equal(x, y), float_dtype(x.type))
    return hit / summed(hit, n, workers=workers)


# what an extreme is, where it is differentiated: the sum over all lanes of their shares
shares = define(
    "lanes_sum_of_shares",
    evaluate=lambda x, share, n, **attrs: lanes_sum(share * x, n), infer=lambda x, share, n, **_:
        _of_one(x, n),
    fold=lambda x, share, n, *, workers: summed(strong_product(share, x), n, workers=workers),
    linear=(0,), depends=anything,
    syntax=lambda *xs, **attrs: ast.Call(ast.Name("lanes_sum_of_shares", ast.Load()), [*xs], []),
    vjp=lambda bar, y, x, share, n, *, workers: (
        strong_product(share, total(value(bar), n, workers=workers, inside=True)), None, None),
)


def _extreme(function: Callable) -> Record:
    record = _between(
        function, infer=_of_one, linear=(), pure=False,
        differentiated_as=lambda y, x, n, *, workers: (
            shares, (x, _share(y, x, n, workers), n), {"workers": workers}),
        batch=_lanes_behind(lambda: record, False))
    return record


largest, smallest = _extreme(lanes_max), _extreme(lanes_min)

# op -> what it is for one worker
ALONE: dict[Record, Callable[[Value], Value]] = {
    **dict.fromkeys((mine, gathered, placed, total, of_first, to_lanes, from_lanes), lambda x: x),
    summed: lambda x: sum_(x, axis=0),
    largest: lambda x: amax(x, axis=0),
    smallest: lambda x: amin(x, axis=0),
}


def of_one_worker(op: Op, inputs: Sequence[Value]) -> Value | None:
    """The value that stands for `op` in a program of one worker; None for itself."""
    return ALONE[op.record](inputs[0]) if op.record in ALONE else None

# ------------------------------------------------------------------------------ parts of programs


def part_of_worker(x, workers):
    """The rows of the arrays in `x` that this one of so many workers takes."""
    return x


@numpy_function(part_of_worker)
def _part_of_worker(x, workers) -> Value:
    return by_leaf(value(x), lambda x: mine(x, workers=static(workers), inside=False))


def total_of_parts(x, n, workers):
    """The sum, number by number, of what so many workers have made of their parts of `n` rows."""
    return x


@numpy_function(total_of_parts)
def _total_of_parts(x, n, workers) -> Value:
    return by_leaf(value(x), lambda x: total(x, value(n), workers=static(workers), inside=False))


# ------------------------------------------------------------------------------------ collectives


@dataclass(frozen=True)
class Share:
    """The lanes of a pmap that a worker takes: there are `all` lanes, and `mine` of them here."""

    all: Value
    mine: Value
    workers: Hashable

    def of(self, x: Value) -> Value:
        """The worker's lanes of what has all lanes in front."""
        return by_leaf(x, lambda x: mine(x, workers=self.workers, inside=True))

    def across(self, op: Op, flags: tuple[bool, ...], xs: list[Value]) -> Value:
        """What the collective `op` is for the worker's lanes, which the flagged of `xs` have in
        front: what its record says, `among`, or else what it is of all lanes, gathered.
        """
        attrs = {key: x for key, x in op.attrs.items() if key != "name"}
        if op.record.among is not None:
            return op.record.among(self, flags, *xs, **attrs)
        xs = [gathered(x, self.all, workers=self.workers, inside=True) if flag else x
              for x, flag in zip(xs, flags)]
        y = op.record.across(self.all, flags, *xs, **attrs)
        return y if op.record.alike else self.of(y)

    def sum(self, x: Value) -> Value:
        return summed(x, self.all, workers=self.workers)

    def largest(self, x: Value) -> Value:
        return largest(x, self.all, workers=self.workers)

    def smallest(self, x: Value) -> Value:
        return smallest(x, self.all, workers=self.workers)


def by_leaf(x: Value, rule: Callable[[Value], Value]) -> Value:
    """`x` with each number and array in it replaced by what `rule` makes of it."""
    if isinstance(x.type, Tuple):
        return packed([by_leaf(item(x, index=k), rule) for k in range(len(x.type.items))],
                      x.type.form)
    return rule(x) if isinstance(x.type, (Array, Scalar)) else x


# ---------------------------------------------------------------------------------- whole programs


def workers_of(function: Function) -> Hashable | None:
    """The number of workers that a program asks for, 0 for as many as there are threads; None if it
    has no pmap, or is for one worker: it acts on the world outside, draws from a generator of its
    caller's, or calls a function that may not give all workers the same.
    """
    wanted = {op.attrs["workers"] for op in between_workers(function)}
    if (not wanted or acts_outside(function) or any(op.record is foreign for op in ops_of(function))
            or any(isinstance(p.type, Generator) for p in function.params)):
        return None
    return max(wanted)


def between_workers(function: Function) -> Iterator[Op]:
    """The ops between workers in a function, and in those that it calls."""
    return (op for op in ops_of(function) if op.record in ALONE)


def ops_of(function: Function) -> Iterator[Op]:
    """The ops of a function, and of those that it calls."""
    pending, seen = [function], set()
    for each in pending:
        for op in walk(each.block):
            yield op
            if op.name == "call" and (key := (op.attrs["callee"],
                                              tuple(x.type for x in op.inputs))) not in seen:
                seen.add(key)
                pending.append(op.attrs["callee"].function_for(op.inputs))
