"""Which loops of a call are worth threads, asked of its arguments, before any code for threads is compiled.

A loop in parts takes longer to compile, and a short one longer to run.  So the code of a call has those of its
independent loops in parts that are long for these arguments: most programs are compiled as if there were no threads.

    parallel=None    the loops that surely do LARGE operations, some 200 us
    parallel=True    those, from where threads begin to pay, and those of which the arguments do not tell how long they are
    parallel=False   none: then sums run in order from the first element to the last
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..back.parts import UNKNOWN, Work, spelled
from ..ir.turns import in_turn
from .parts import GRAIN
from .pool import ready

LARGE = 1 << 19  # operations (parts.py, Note [Work])

Loops = frozenset  # the numbers of the loops that are in parts


def chooser(sizes: Sequence[Work], arity: int, parallel: bool | None) -> Callable[..., Loops] | None:
    """Which loops of a call with `arity` arguments are worth threads, if any can be."""
    if parallel is False or not sizes:
        return None
    limit = LARGE if parallel is None else 2 * GRAIN
    always = frozenset(k for k, work in enumerate(sizes) if parallel and any(UNKNOWN in key for key in work))
    texts = [spelled_size(work) for work in sizes]
    parameters = ", ".join(f"a{k}" for k in range(arity))
    some: dict[tuple, int] = {}  # at least as much as any of them
    for work in sizes:
        for key, n in work.items():
            key = tuple(f for f in key if f != UNKNOWN)
            some[key] = max(some.get(key, 0), n)
    first = spelled_size(Work(some))
    if first.isdigit() and int(first) <= limit and not always:
        return None
    is_any = eval(f"lambda {parameters}: {first} > {limit}")
    which = eval(f"lambda {parameters}: [k for k, work in enumerate(({', '.join(texts)},)) if work > {limit}]")

    def loops(*args) -> Loops:
        return always.union(which(*args)) if is_any(*args) else always

    return loops


def spelled_size(work: Work) -> str:
    """The size of a loop as Python over a0, a1, ...; a negative number of trips is none."""
    total = 0
    rest = Work()
    for key, n in work.items():
        factors = []
        for factor in key:
            if factor.lstrip("-").isdigit():
                n *= max(int(factor), 0)
            elif factor != UNKNOWN:
                factors.append(factor if factor.startswith("len(") or ".shape[" in factor and " " not in factor else f"max({factor}, 0)")
        if factors:
            rest[tuple(factors)] += n
        else:
            total += n
    return spelled(rest + Work({(): total}))


def by_size(loops: Callable[..., Loops], native: Callable[[Loops], Callable]) -> Callable:
    """A function that runs the code in which those loops are in parts that are worth it for its arguments."""
    whole = native(frozenset())
    made: dict[Loops, Callable] = {frozenset(): whole}

    @in_turn
    def make(found: Loops) -> None:
        if found not in made:
            ready()  # machine code from the cache refers to it
            made[found] = native(found)

    def call(*args):
        found = loops(*args)
        if not found:
            return whole(*args)
        if found not in made:
            make(found)
        return made[found](*args)

    call.__name__, call.made = whole.__name__, made
    return call
