"""A judge of loops in parts, without threads: the parts run in Python, in an order that no thread
would take.

`shuffled(t, *args)` runs the loops of a transformed function, all the independent ones in parts,
and the parts in a random order; `whole(t, *args)` runs the same loops in one piece.  If two trips
depended on one another, or a part left something to the next, the two would differ.
"""

import random

import numpy as np

from s2s import pipeline
from s2s.back.print.printer import Module


class All:
    """The numbers of all loops."""

    def __contains__(self, k: int) -> bool:
        return True


def modules(t, *args) -> tuple[Module, Module]:
    """The loops of `t` for arguments like these: in one piece, and in parts."""
    lowered = pipeline.loops_of(t.lower(*args).function)
    return pipeline.render(lowered, native=True), pipeline.render(lowered, native=True, parts=All())


def run(module: Module, *args, pieces: int = 3, seed: int = 0):
    """What the loops give, their parts made in a random order; each loop is in at most so many."""
    def in_parts(kernel, parts, trips, arguments):
        trips, order = max(trips, 0), list(range(parts))
        random.Random(seed).shuffle(order)
        for part in order:
            kernel(part, part * trips // parts, (part + 1) * trips // parts, *arguments)

    names = dict(module.given)
    exec(module.text, names)
    names.update(in_parts=in_parts, parts_of=lambda trips, work, size=0: max(1, min(trips, pieces)))
    with np.errstate(all="ignore"):
        return names[module.entry](*[x.copy() if isinstance(x, np.ndarray) else x for x in args])


def leaves(x) -> list:
    return (
        [leaf for member in x for leaf in leaves(member)] if isinstance(x, (tuple, list)) else [x]
    )


def is_same(a, b) -> bool:
    """Whether two results agree to rounding."""
    a, b = leaves(a), leaves(b)
    return len(a) == len(b) and all(
        np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=1e-9, atol=1e-11, equal_nan=True)
        for x, y in zip(a, b)
    )
