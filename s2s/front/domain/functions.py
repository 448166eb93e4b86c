"""What a program makes while it runs: lambdas and nested defs, partials, methods, a choice of two,
generators.

They exist only while code is generated; what is left of them is what their calls do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import Signature

import gast

from ...errors import TypeMismatchError, UnsupportedError


class FunctionKept(UnsupportedError):
    """A loop keeps functions from trip to trip: it can only be followed trip by trip."""


class Unsteady(TypeMismatchError):
    """What a loop carries is of another kind after a trip: it can only be followed trip by trip."""


class LengthKept(FunctionKept):
    """A loop makes longer what must be of known length: it can only be followed trip by trip."""


class UnlikeMembers(UnsupportedError):
    """What is indexed by a run-time number holds unlike things: the loops that count it can only be
    followed trip by trip.

    `ranges` are the (lo, hi, step) of those loops, none where the number comes from elsewhere.
    """

    def __init__(self, *args, ranges=()):
        super().__init__(*args)
        self.ranges = ranges


class StaysInside(UnsupportedError):
    """A function returns what exists only inside the program: whoever calls it there has to run it
    in place.
    """


class Made:
    """A function that exists only inside the program that makes it."""

    def held(self) -> Iterator:
        """The bindings that it holds on to."""
        return iter(())


@dataclass(eq=False)
class Local(Made):
    """A lambda or a nested def of the program, with the activation it closes over."""

    node: gast.FunctionDef | gast.Lambda
    frame: object
    defaults: dict

    def held(self) -> Iterator:
        return iter(self.defaults.values())


@dataclass(eq=False)
class Method(Made):
    """A function of a class, with what it is a method of: an object that the program made, or the
    class.
    """

    function: Callable
    receiver: object

    def held(self) -> Iterator:
        yield self.receiver


@dataclass(eq=False)
class Partial(Made):
    """functools.partial(function, *args, **keywords)."""

    function: object
    args: list
    keywords: dict

    def held(self) -> Iterator:
        yield from (self.function, *self.args, *self.keywords.values())


@dataclass(eq=False)
class Again(Made):
    """checkpoint(function), of a function of the program."""

    function: object

    def held(self) -> Iterator:
        yield self.function


@dataclass(eq=False)
class Chosen(Made):
    """One function or another, as a condition says at run time."""

    condition: object  # a Value
    functions: tuple

    def held(self) -> Iterator:
        return iter(self.functions)


@dataclass(eq=False)
class Known(Made):
    """What the front end itself does when it is called: run(frame, node, *args, **keywords)."""

    run: Callable
    holds: tuple = field(default=())
    signature: Signature | None = None  # what it takes, where it may be transformed
    name: str = "f"

    def held(self) -> Iterator:
        return iter(self.holds)


@dataclass(eq=False)
class Generator(Made):
    """A generator expression, not yet run: `fold` consumes it whole, `iterate` says how a `for`
    runs over it.
    """

    fold: Callable  # (kind, start) -> binding
    iterate: Callable  # () -> Iterable
    holds: tuple = field(default=())

    def held(self) -> Iterator:
        return iter(self.holds)
