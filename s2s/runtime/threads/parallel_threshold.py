"""Choose the parallel loops of a call by its arguments, before any code for threads is compiled.

A parallel loop takes longer to compile, and a short one longer to run. So the code of a call runs
those of its independent loops in parallel that are long for these arguments: most programs are
compiled as if there were no threads.

    parallel=None    the loops that certainly do LARGE operations, some 200 us
    parallel=True    the loops for which threads begin to pay, and those of unknown length
    parallel=False   none: then sums run in order from the first element to the last
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...back.parallel.cost import UNKNOWN, Work, spelled
from ...compile_lock import in_turn
from ...ir.graph import Function
from .parallel_for import GRAIN
from .pool_native import ready

LARGE = 1 << 19  # operations (parallel_for.py, Note [Work])

Loops = frozenset  # the numbers of the parallel loops


class MoreWork(Exception):
    """The arguments bring more work than the code is for."""


class Chooser:
    """Chooses the loops to run in parallel, given their `sizes` of work in terms of the arguments
    a0, a1, ...

    Several loops that can run concurrently are worth it if each of them is.
    """

    def __init__(self, sizes: Sequence[tuple[Work, ...]], arity: int, parallel: bool):
        self.limit = 2 * GRAIN if parallel else LARGE
        self.always = frozenset(k
                                for k, works in enumerate(sizes)
                                if parallel
                                and any(UNKNOWN in key for work in works for key in work))
        self.texts = [least(list(map(spelled_size, works))) for works in sizes]
        parameters = ", ".join(f"a{k}" for k in range(arity))
        self.which = eval(
            f"lambda {parameters}: [k for k, work in enumerate(({', '.join(self.texts)},))"
            f" if work > {self.limit}]")

    @property
    def conditions(self) -> list[str]:
        """The conditions on the arguments under which each loop is run in parallel; none for loops
        that never are.
        """
        return [f"{text} > {self.limit}"
                for text in dict.fromkeys(self.texts)
                if not text.isdigit() or int(text) > self.limit]

    def __call__(self, *args) -> Loops:
        return self.always.union(self.which(*args))


def chooser(sizes: Sequence[tuple[Work, ...]], arity: int, parallel: bool | None) -> Chooser | None:
    """The Chooser of the loops of a call with `arity` arguments; None if no loop can be parallel.
    """
    if parallel is False or not sizes:
        return None
    found = Chooser(sizes, arity, bool(parallel))
    return found if found.always or found.conditions else None


def least(texts: Sequence[str]) -> str:
    """The least of some sizes, as Python: nested two-argument calls, which compile fast."""
    half = len(texts) // 2
    return f"min({least(texts[:half])}, {least(texts[half:])})" if half else texts[0]


def spelled_size(work: Work) -> str:
    """The size of a loop as Python over a0, a1, ...; a negative trip count is 0."""
    total = 0
    rest = Work()
    for key, n in work.items():
        factors = []
        for factor in key:
            if factor.lstrip("-").isdigit():
                n *= max(int(factor), 0)
            elif factor != UNKNOWN:
                factors.append(factor if " " not in factor and factor[-1] in ")]"
                               else f"max({factor}, 0)")
        if factors:
            rest[tuple(factors)] += n
        else:
            total += n
    return spelled(rest + Work({(): total}))


class ByArguments:
    """Native code of `function`, selected at each call by `code_for(args)`.

    `whole` runs in one piece for any lengths where `fits` holds for a0, a1, ...; the choice depends
    on the `key` alone, a function of a0, a1, ..., and is `remembered` by it, if there is one.
    """

    function: Function
    fits: str
    key = ""

    def code_for(self, args: tuple) -> Callable:
        """The code for arguments of these lengths."""
        raise NotImplementedError

    def __call__(self, *args):
        return self.code_for(args)(*args)

    def run(self, *args):
        """Run the code on arguments that may be of another kind: then it raises."""
        return self.code_for(args).run(*args)

    def into(self, *args):
        """Run the code with result arrays after the arguments."""
        return self.code_for(args[:len(self.function.params)]).into(*args)


class BySize(ByArguments):
    """Native code in versions by parallel loops; `native(numbers of loops)` compiles the version.

    Most calls are small, and a check in Python is expensive for them (0.03 us of 0.7, 0.3 of 2).
    So the `whole` code itself checks, and raises MoreWork.
    """

    def __init__(self, loops: Chooser, native: Callable[[Loops], Callable]):
        self.loops, self.native = loops, native
        self.whole = native(frozenset())
        self.function, self.fits = self.whole.function, str(not loops.always)
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
