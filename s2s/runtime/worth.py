"""Which loops of a call are worth threads, asked of its arguments, before any code for threads is compiled.

A loop in parts takes longer to compile, and a short one longer to run.  So the code of a call has those of its
independent loops in parts that are long for these arguments: most programs are compiled as if there were no threads.

    parallel=None    the loops that surely do LARGE operations, some 200 us
    parallel=True    those, from where threads begin to pay, and those of which the arguments do not tell how long they are
    parallel=False   none: then sums run in order from the first element to the last
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ..back.parts import UNKNOWN, Work, spelled
from ..ir.graph import Function
from ..ir.turns import in_turn
from .hand_out import ready
from .parts import GRAIN

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
    first = upper_bound(sizes)
    if first.isdigit() and int(first) <= limit and not always:
        return None
    is_any = eval(f"lambda {parameters}: {first} > {limit}")
    which = eval(f"lambda {parameters}: [k for k, work in enumerate(({', '.join(texts)},)) if work > {limit}]")

    def loops(*args) -> Loops:
        return always.union(which(*args)) if is_any(*args) else always

    loops.small = "False" if always else f"{first} <= {limit}"  # where there surely are none
    return loops


def upper_bound(sizes: Sequence[Work]) -> str:
    """About as much work as the largest of the loops has, or more, in few words: every call asks for it."""
    some: dict[tuple, int] = {}
    for work in sizes:
        for key, n in work.items():
            key = tuple(sorted(unclamped(f) for f in key if f != UNKNOWN))
            some[key] = max(some.get(key, 0), n)
    found = Work()
    for key, n in some.items():  # n * m counts for n, too
        found[next((k for k in sorted(some, key=len, reverse=True) if not Work(key) - Work(k)), key)] += n
    return spelled_size(found, clamped=False)


def unclamped(factor: str) -> str:
    """m, of max(m, 0)."""
    match ast.parse(factor, mode="eval").body:
        case ast.Call(ast.Name("max"), [inner, ast.Constant(0)]):
            return unclamped(ast.unparse(inner))
    return factor


def spelled_size(work: Work, clamped: bool = True) -> str:
    """The size of a loop as Python over a0, a1, ...; a negative number of trips is none, if it is `clamped`."""
    total = 0
    rest = Work()
    for key, n in work.items():
        factors = []
        for factor in key:
            if factor.lstrip("-").isdigit():
                n *= max(int(factor), 0)
            elif factor != UNKNOWN:
                factors.append(factor if not clamped or " " not in factor and factor[-1] in ")]" else f"max({factor}, 0)")
        if factors:
            rest[tuple(factors)] += n
        else:
            total += n
    return spelled(rest + Work({(): total}))


class ByArguments:
    """Native code of `function` that is chosen at each call: `code_for(args)`."""

    function: Function

    def code_for(self, args: tuple) -> Callable:
        """The code for arguments as long as these."""
        raise NotImplementedError

    def __call__(self, *args):
        return self.code_for(args)(*args)

    def run(self, *args):
        """The same for arguments that may be of another kind: then it raises."""
        return self.code_for(args).run(*args)

    def into(self, *args):
        """The same, with arrays for the results behind the arguments."""
        return self.code_for(args[:len(self.function.params)]).into(*args)


class BySize(ByArguments):
    """Native code that has those loops in parts that are worth it for its arguments; `native(numbers of loops)` makes it."""

    def __init__(self, loops: Callable[..., Loops], native: Callable[[Loops], Callable]):
        self.loops, self.native = loops, native
        self.whole = native(frozenset())
        self.function, self.simple = self.whole.function, loops.small
        self.made: dict[Loops, Callable] = {frozenset(): self.whole}
        self.__name__ = self.whole.__name__

    def code_for(self, args: tuple) -> Callable:
        found = self.loops(*args)
        return self.made[found] if found in self.made else self.make(found)

    @in_turn
    def make(self, found: Loops) -> Callable:
        if found not in self.made:
            ready()  # machine code from the cache refers to it
            self.made[found] = self.native(found)
        return self.made[found]
