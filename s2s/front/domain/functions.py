"""Function-valued bindings of a program: lambdas, nested defs, partials, bound methods, conditional
functions and objects, generators.

They exist only at compile time; generated code has only the effects of their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import Signature

import gast

from ...errors import TypeMismatchError, UnsupportedError


class CarriesFunction(UnsupportedError):
    """Signal that a loop carries functions: it must be unrolled."""


class UnstableCarry(TypeMismatchError):
    """Signal that a loop carry changes its structure in a trip: the loop must be unrolled."""


class GrowsFixedList(CarriesFunction):
    """Signal that a loop grows a list that must have a known length: the loop must be unrolled."""


class MixedMembers(UnsupportedError):
    """Signal that a run-time number indexes members of different types: the loops that count it
    must be unrolled.

    `ranges` are the (lo, hi, step) of those loops, none where the number comes from elsewhere.
    """

    def __init__(self, *args, ranges=()):
        super().__init__(*args)
        self.ranges = ranges


class NeedsInlining(UnsupportedError):
    """Signal that a function returns a compile-time-only object: the call must be inlined."""


class FunctionValue:
    """A function that exists only at compile time, inside the program."""

    def held(self) -> Iterator:
        """The bindings that the function refers to."""
        return iter(())


@dataclass(eq=False)
class Spread(FunctionValue):
    """The arguments that `*args` receives, as a tuple of run-time length."""

    items: object

    def held(self) -> Iterator:
        yield self.items


@dataclass(eq=False)
class Local(FunctionValue):
    """A lambda or a nested def of the program, with the activation it closes over."""

    node: gast.FunctionDef | gast.Lambda
    frame: object
    defaults: dict

    def held(self) -> Iterator:
        return iter(self.defaults.values())


@dataclass(eq=False)
class Method(FunctionValue):
    """A bound method: a function of a class, with its receiver, an object of the program or the
    class.
    """

    function: Callable
    receiver: object

    def held(self) -> Iterator:
        yield self.receiver


@dataclass(eq=False)
class Partial(FunctionValue):
    """functools.partial(function, *args, **keywords)."""

    function: object
    args: list
    keywords: dict

    def held(self) -> Iterator:
        yield from (self.function, *self.args, *self.keywords.values())


@dataclass(eq=False)
class CheckpointedFunction(FunctionValue):
    """checkpoint(function), of a function of the program."""

    function: object

    def held(self) -> Iterator:
        yield self.function


@dataclass(eq=False)
class ConditionalFunction(FunctionValue):
    """One function or another, chosen by a run-time condition."""

    condition: object  # a Value
    functions: tuple

    def held(self) -> Iterator:
        return iter(self.functions)


@dataclass(eq=False)
class ConditionalObject(FunctionValue):
    """One object of the program or another, of unlike classes, chosen by a run-time condition.

    What is done with it is done in a branch, with the one and with the other: front/control/join.py
    """

    condition: object  # a Value
    objects: tuple

    def held(self) -> Iterator:
        return iter(self.objects)


@dataclass(eq=False)
class Intrinsic(FunctionValue):
    """A function implemented by the front end: run(frame, node, *args, **keywords)."""

    run: Callable
    holds: tuple = field(default=())
    signature: Signature | None = None  # its signature, if it can be transformed
    name: str = "f"

    def held(self) -> Iterator:
        return iter(self.holds)


@dataclass(eq=False)
class Generator(FunctionValue):
    """An unevaluated generator expression: `fold` consumes it whole, `iterate` gives a `for` its
    Iterable.
    """

    fold: Callable  # (kind, start) -> binding
    iterate: Callable  # () -> Iterable
    holds: tuple = field(default=())
    selects: bool = False  # whether conditions leave out some items

    def held(self) -> Iterator:
        return iter(self.holds)
