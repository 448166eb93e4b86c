"""Function versioning by length: choose which short lengths of a call become constants in its code,
where the call does enough work.

A gradient of a Kalman filter with a state of four numbers over 2000 observations, compiled for
four, takes a ninth of the time of code for any length; a mixture of four Gaussians in three
dimensions half, and compiling takes no longer (back/arrays/specialise_lengths.py). So a call with a
long axis, or with a large integer, which is presumably a trip count, runs code specialised for
those of its other axes that are at most SHORT long. At most FEW versions are compiled; all other
calls, and those with little work, run the general version.

How much work is enough depends on its kind. In the general version each small product or solve is a
call of BLAS or LAPACK: 30 steps of that filter take 61 microseconds, and 10 in code for four, 5
steps 13 and 4, 10 products of 3 x 3 matrices 5 and 3. Optimisers make thousands of such calls.
Without such calls short loops are unrolled, from which 40 bodies in space gain nothing, and
compiling takes a twentieth longer.

Considered: lengths as part of the kind of every call, as lengths of 1 are: tests and first steps in
a notebook try many, and each would be compiled. Specialising after a call has taken long, or after
many calls: later results would then differ from the first in the last bits. Specialising for the
first lengths only: a first call of 5 steps, a short axis, too, would leave those of 100 without.
Branches in the code itself, `if n == 4`: all are compiled, whichever is taken. Faster code for
short unknown lengths, as runtime/kernels/small_matvec.py has it for vectors: with products in
loops, and no arrays allocated, a Kalman filter still took twice as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...back.arrays.specialise_lengths import SHORT, set_lengths, specialise_lengths
from ...compile_lock import cached_in_turn, in_turn
from ...ir.graph import Function, Recalled, walk, whole
from ...ir.length_assumptions import depends_on_long_axes, tracking_long_axes
from ...ir.types import Array, Extent, Scalar
from ...ops.program.recursive_callee import recursive_callees
from ..threads.parallel_threshold import ByArguments

# amount of data and trips from which specialising pays: with matrix products and solves,
# and without
SOME, MUCH = 32, 256
FEW = 4  # versions compiled per function
MANY = 256  # calls whose version is cached


def much(function: Function) -> int | None:
    """The amount of data and trips up to which a call of `function` does little work on short
    arrays; None if it always does little.
    """
    shapes = [p.type.dims for p in function.params if isinstance(p.type, Array)]
    ops = list(walk(function.block))
    many = any(op.name in ("for", "while")
               or any(isinstance(x.type, Array) and len(x.type.dims) > 1 for x in op.outputs)
               for op in ops)
    if (not symbols(function) or not many and all(len(dims) < 2 for dims in shapes)
        or recursive_callees(function)):
        return None
    return SOME if any(op.record.native == "matrix" for op in ops) else MUCH


def symbols(function: Function) -> dict[str, tuple[int, int]]:
    """The symbolic extents of the arguments: symbol -> (argument, axis)."""
    found: dict[str, tuple[int, int]] = {}
    for k, p in enumerate(function.params):
        for axis, d in enumerate(p.type.dims if isinstance(p.type, Array) else ()):
            if isinstance(d, Extent) and not d.offset:
                found.setdefault(d.symbol, (k, axis))
    return found


def extent_of_work(function: Function) -> str:
    """Estimate the data and trips of a call, as Python over a0, a1, ..."""
    terms = [f"a{k}.size" if isinstance(p.type, Array) else f"a{k}"
             for k, p in enumerate(function.params)
             if isinstance(p.type, Array)
             or p.type in (Scalar("int64"), Scalar("int64", weak=True))]
    return " + ".join(terms)


def key_of_lengths(function: Function) -> str:
    """The values that determine lengths and work, as Python over a0, a1, ..."""
    kept = [f"a{k}.shape" if isinstance(p.type, Array) else f"a{k}"
            for k, p in enumerate(function.params)
            if isinstance(p.type, Array) or isinstance(p.type, Scalar) and "int" in p.type.dtype]
    return f"({', '.join(kept)},)"


def chosen(function: Function, least: int) -> Callable[..., dict[str, int]]:
    """The lengths to specialise for, by symbol, in a call with these arguments, if its data and
    trips exceed `least`.
    """
    places = symbols(function)
    parameters = ", ".join(f"a{k}" for k in range(len(function.params)))
    work = eval(f"lambda {parameters}: {extent_of_work(function)}")

    def lengths(*args) -> dict[str, int]:
        if work(*args) <= least:
            return {}
        found = {symbol: args[k].shape[axis] for symbol, (k, axis) in places.items()}
        return {symbol: n for symbol, n in found.items() if 1 < n <= SHORT}

    return lengths


def function_for(function: Function, *args) -> Function:
    """`function` specialised for a call with these arguments, if it is the first."""
    least = much(function)
    return specialise_lengths(set_lengths(function,
                                          {} if least is None else chosen(function, least)(*args)))


class ByLengths(ByArguments):
    """Native code in versions by short lengths; `native(lengths, known)` compiles the version for
    the lengths in the types of `known()`.

    Calls with no more than `least` numbers and trips run the general version.
    """

    def __init__(self, function: Function | Recalled,
                 native: Callable[[tuple[int, ...], Callable[[], Function]], Callable], least: int):
        self.function, self.native, self.least, self.__name__ = (function, native, least,
                                                                 function.name)
        self.has_asked = depends_on_long_axes()  # ir/length_assumptions.py, Note [Long axes]
        self.lengths = chosen(function, least)
        self.work = extent_of_work(function)
        self.made: dict[tuple[int, ...], Callable] = {}
        self.key = key_of_lengths(function)
        self.key_of = eval(
            f"lambda {', '.join(f'a{k}' for k in range(len(function.params)))}: {self.key}")
        self.remembered: dict[tuple, Callable] = {}

    @cached_in_turn
    def general(self) -> Callable:
        """The version for any lengths."""
        return self.made_for((), lambda: whole(self.function))

    def made_for(self, lengths: tuple[int, ...], known: Callable[[], Function]) -> Callable:
        """A new version, compiled after everything else has been generated."""
        with tracking_long_axes() as asked:
            asked.about_lengths = self.has_asked
            return self.native(lengths, lambda: specialise_lengths(known()))

    @property
    def whole(self) -> Callable:
        """Any version, for questions with the same answer for all."""
        return (self.general if self.is_general else next(iter(self.made.values()))).whole

    @property
    def is_general(self) -> bool:
        """Whether the general version, or none yet, has been requested."""
        return "general" in self.__dict__ or not self.made

    @property
    def fits(self) -> str:
        """Condition under which the general version is chosen, as Python over a0, a1, ..."""
        return (f"{self.work} <= {self.least}" if self.is_general and self.general.fits == "True"
                else "False")

    def code_for(self, args: tuple) -> Callable:
        key = self.key_of(*args)
        found = self.remembered.get(key)
        if found is None:
            found = self.chosen(args)
            if isinstance(found, ByArguments):
                found = found.code_for(args)
            if len(self.remembered) == MANY:
                self.remembered.clear()
            self.remembered[key] = found
        return found

    def chosen(self, args: tuple) -> Callable:
        """The version for the lengths of these arguments, or the general one."""
        lengths = self.lengths(*args)
        if not lengths:
            return self.general
        key = tuple(lengths.get(symbol, 0) for symbol in symbols(self.function))
        return self.made.get(key) or self.make(key, lengths)

    @in_turn
    def make(self, key: tuple[int, ...], lengths: Mapping[str, int]) -> Callable:
        if key not in self.made:
            if len(self.made) == FEW:
                return self.general
            self.made[key] = self.made_for(key, lambda: set_lengths(whole(self.function), lengths))
        return self.made[key]
