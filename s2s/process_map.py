"""`pmap` of a function that Python runs: its lanes are calls of the function, in processes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from . import tree
from .errors import ShapeMismatchError, TypeMismatchError, UnsupportedError
from .lazy_import import later
from .runtime.threads import pool
from .specialisation import signature_of

worker_processes = later("s2s.runtime.threads.worker_processes")


class ProcessMap:
    """`f` for each lane, by `count` processes, 0 for as many as `s2s.threads()`; collectives over
    `axis_name` are called in Python.
    """

    def __init__(self, f: Callable, in_axes, out_axes, axis_name: Hashable | None = None,
                 axis_size: int | None = None, count: int = 0):
        functools.update_wrapper(self, f, updated=())
        self.f, self.in_axes, self.out_axes = f, in_axes, out_axes
        self.axis_name, self.axis_size, self.count = axis_name, axis_size, count

    @property
    def __signature__(self):
        return signature_of(self.f)

    def __call__(self, *args):
        axes = (self.in_axes if isinstance(self.in_axes, (tuple, list))
                else [self.in_axes] * len(args))
        if len(axes) != len(args):
            raise TypeMismatchError(f"{self.f.__name__} has {len(args)} arguments and in_axes "
                                    f"{len(axes)} entries", None,
                                    "give one entry, or one for each argument")
        n = self.lanes(args, axes)
        lanes = [[lane_of(x, axis, k) for x, axis in zip(args, axes)] for k in range(n)]
        found = worker_processes.run_in_processes(
            self.f, lanes, self.axis_name, self.count or pool.threads(), pool.usual_threads())
        if isinstance(self.out_axes, (tuple, list)):
            return tuple(stacked([each[k] for each in found], axis)
                         for k, axis in enumerate(self.out_axes))
        return stacked(found, self.out_axes)

    def function_for(self, values: Sequence) -> None:
        """Refuse to be part of a program: what runs in processes is not read."""
        raise UnsupportedError(f"pmap of {self.f.__name__} with processes, inside a program", None,
                               "use threads, or differentiate and compile what is inside of pmap")

    def lanes(self, args: Sequence, axes: Sequence) -> int:
        """Return the number of lanes, of which all arguments with lanes have as many."""
        counts = {np.shape(leaf)[axis] for x, axis in zip(args, axes) if axis is not None
                  for leaf in tree.leaves(x)}
        if self.axis_size is not None:
            counts.add(self.axis_size)
        if len(counts) != 1:
            raise ShapeMismatchError("arguments of pmap have the numbers of lanes "
                                     f"{', '.join(map(str, sorted(counts)))}", None,
                                     "give all batched arguments equally many lanes")
        return counts.pop()


def lane_of(x, axis: int | None, k: int):
    """Return lane `k` of an argument, a tree with lanes along `axis`."""
    return x if axis is None else tree.map(lambda leaf: np.take(leaf, k, axis=axis), x)


def stacked(results: Sequence, axis: int | None):
    """Stack the results of lanes along `axis`; with None they are the same in all."""
    if axis is not None:
        return tree.map(lambda *leaves: np.stack(leaves, axis=axis), *results)
    for other in results[1:]:
        if not all(map(np.array_equal, tree.leaves(other), tree.leaves(results[0]))):
            raise TypeMismatchError("a result differs from lane to lane and has out_axes None",
                                    None, "give it an axis in out_axes")
    return results[0]
