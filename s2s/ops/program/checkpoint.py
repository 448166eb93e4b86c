"""`checkpoint` (rematerialisation): trade time for memory by recomputing in the reverse sweep what
a function or loop would save.

    layer = s2s.checkpoint(layer)                            # save only the arguments of a call
    for i in s2s.checkpoint(range(n), snapshots=20): ...     # save the state before 20 of n trips
    while s2s.checkpoint(x > 1e-3, snapshots=20): ...        # likewise

Run by Python, both are the identity. In the IR a checkpointed call has a `Rerun` as its callee, a
loop a `Plan` among its attributes; transform/reverse/checkpoint_adjoint.py describes the reverse
sweep.

Why an iterable, or a test, and not a `with` or a decorator: the loop is checkpointed, a reader
looks at its header to see how it runs, and `range(n)` stays the same without s2s.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...errors import TypeMismatchError
from ...ir.graph import Function, Value
from ...ir.reemit import rebuild
from ...ir.types import INT, Tuple, canonical_types
from ..core.batch_rules import on_all_lanes
from ..core.control import item, packed
from ..core.dependence_rules import anything
from ..core.record import define, no_jvp, no_vjp
from .custom_rules import is_ruled
from .recursive_callee import Recursive

# ---------------------------------------------------------------------------------- what users call


@dataclass(frozen=True)
class Plan:
    """The checkpointing schedule of a loop: at most `snapshots` states, or as many as fit in
    `memory` bytes.

    Without both: as many snapshots as needed for each trip to be recomputed at most twice, about
    the root of 2 n.
    """

    snapshots: int | None = None
    memory: int | None = None


class Checkpointed:
    """A function whose calls are recomputed in a reverse sweep."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function, updated=())
        self.function = function

    def __call__(self, *args, **keywords):
        return self.function(*args, **keywords)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self):
        """Pickle by name if it is a decorated function at module level; else by the function."""
        module = sys.modules.get(getattr(self, "__module__", None))
        found = functools.reduce(lambda x, name: getattr(x, name, None),
                                 getattr(self, "__qualname__", "").split("."), module)
        return self.__qualname__ if found is self else (Checkpointed, (self.function,))

    def __repr__(self) -> str:
        return f"<s2s.checkpoint of {getattr(self.function, '__name__', self.function)!r}>"


def checkpoint(f: Callable | Iterable | None = None, snapshots: int | None = None,
               memory: int | str | None = None, *, static_argnums: int | Sequence[int] = (),
               policy: None = None, prevent_cse: bool = True):
    """Wrap `f` so that a reverse sweep saves less and recomputes more.

    Of a function: a function that computes the same.  Where it is called in a program that is
    differentiated, only its arguments are saved; the reverse sweep runs it again.  It may be
    written as a decorator.

    Of what a `for` runs over, such as `range(n)`, or what a `while` tests: that itself.  Of the
    loop's trips, the state before `snapshots` of them is saved, or before as many as `memory` bytes
    hold (an integer, or a text such as "64MB"); the others are computed again from these, by the
    schedule that does so with the fewest trips (Griewank & Walther, Algorithm 799: revolve, ACM
    TOMS 26, 2000).  With s snapshots and n <= C(s + r, s) trips, no trip runs more than r times
    again.  With neither, s is about sqrt(2 n), and r is 2.  A loop that does not know on entry how
    often it runs (a `while`, one with a `break`) runs once more, and so does one inside a loop that
    is not checkpointed.

    `static_argnums` and `prevent_cse` are accepted for programs that come from JAX, and change
    nothing: no argument needs to be marked, and what runs again is not merged with what ran before.

    Raises TypeMismatchError where `snapshots` or `memory` is no positive number, or is given for a
    function; and where there is a `policy`: what is saved of a function is its arguments.
    """
    if policy is not None:
        raise TypeMismatchError(
            "checkpoint with a policy", None,
            "leave it out: the arguments are saved; "
            "or checkpoint the parts whose results are not to be saved")
    if f is None:
        return functools.partial(checkpoint, snapshots=snapshots, memory=memory)
    plan = planned(snapshots, memory)
    if isinstance(f, (classmethod, staticmethod)):
        return type(f)(checkpoint(f.__func__, snapshots, memory))
    if not callable(f):
        return f
    if plan != Plan():
        raise TypeMismatchError(
            "checkpoint of a function with snapshots or memory", None,
            "give those to the loop: `for i in s2s.checkpoint(range(n), snapshots=20)`")
    return Checkpointed(f)


def planned(snapshots, memory) -> Plan:
    """The Plan for these options of `checkpoint`."""
    if (snapshots is not None
        and (isinstance(snapshots, bool) or not isinstance(snapshots, int) or snapshots < 1)):
        raise TypeMismatchError(f"checkpoint with snapshots={snapshots!r}", None,
                                "give a number of at least 1")
    if snapshots is not None and memory is not None:
        raise TypeMismatchError("checkpoint with snapshots and memory", None, "give one of the two")
    return Plan(snapshots, None if memory is None else bytes_of(memory))


UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20,
         "GIB": 2**30}


def bytes_of(size: int | str) -> int:
    """Parse a number of bytes: 65536, "64kB", "1.5 GB", "64MiB"."""
    found = (re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", size) if isinstance(size, str)
             else None)
    if found and found[2].upper() in UNITS:
        size = int(float(found[1]) * UNITS[found[2].upper()])
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise TypeMismatchError(f"{size!r} is no number of bytes", None,
                                'give an integer, or a text such as "64MB"')
    return size


# ---------------------------------------------------------------------------------------- in the IR


class Rerun:
    """A callee that a reverse sweep calls again, instead of saving residuals of its forward part.
    """

    def __init__(self, callee):
        self.callee, self.name = callee, callee.name

    def __repr__(self) -> str:
        return f"<checkpointed {self.name}>"

    def function_for(self, values) -> Function:
        return self.callee.function_for(values)

    def __eq__(self, other) -> bool:
        return isinstance(other, Rerun) and self.callee == other.callee

    def __hash__(self) -> int:
        return hash((Rerun, self.callee))


def is_plain(callee) -> bool:
    """Whether a callee is an ordinary function: not checkpointed, recursive, or with custom rules.
    """
    return not isinstance(callee, (Rerun, Recursive)) and not is_ruled(callee)


class Outlined:
    """A callee outlined from ops of its caller: one function for all calls that differ in names of
    lengths alone.
    """

    def __init__(self, function: Function):
        self.name, self.made = function.name, {_key_of(function.params): function}

    def function_for(self, values) -> Function:
        key = _key_of(values)
        if key not in self.made:
            self.made[key] = rebuild(next(iter(self.made.values())), [v.type for v in values])
        return self.made[key]


def _key_of(values: Sequence[Value]) -> tuple:
    return canonical_types([v.type for v in values], map(str, range(len(values))))


def gap(trips, free):
    """How many of `trips` to run to where the next snapshot is best left, with room for `free` more."""
    if free == 0:
        return trips
    if trips <= free + 2:
        return 1
    again, reach, before = 1, free + 2, 1
    while reach < trips:
        again += 1
        before, reach = reach, reach * (free + 1 + again) // again
    return min(before, trips - before * (free + 1) // (free + again))


# Note [The schedule]
# With s snapshots, that of the state before the first trip among them (s = free + 1), C(s + r, s)
# trips can be reversed if none is run more than r times.  `reach` is that for r = again, `before`
# for one less.  The trips to the next snapshot are reversed with s snapshots, those behind it with
# s - 1: every split that needs r no higher than for all is optimal, and this is the longest first
# part (Griewank & Walther 2000, sections 2 and 3).
gap_record = define(
    "gap",
    evaluate=gap,
    infer=lambda trips, free: INT,
    syntax=lambda trips, free: ast.Call(ast.Name("gap", ast.Load()), [trips, free], []),
    helper=gap,
    partials=(None, None),
    vjp=no_vjp,
    jvp=no_jvp,
    cheap=True,
    depends=anything,
)


# Values computed from it differ from those computed from x, and in another run: so CSE leaves
# the recomputation alone.
again = define(
    "again",
    evaluate=lambda x, *, run: x,
    infer=lambda x, *, run: x.type,
    linear=(0,),
    vjp=lambda bar, y, x, *, run: (bar,),
    syntax=lambda x, *, run: x,
    cheap=True,
    views=(0,),
    batch=on_all_lanes,
    moves=(0,),
)


def anew(x: Value, run: int) -> Value:
    """`x`, marked so that values computed from it in this run are recomputed and not shared; tuples
    member by member.
    """
    if isinstance(x.type, Tuple):
        return packed([anew(item(x, index=k), run) for k in range(len(x.type.items))], x.type.form)
    return again(x, run=run)
