"""Let closures made in an arm of an `if` escape from it, with the values that they
capture.

    g = scaled_by(x) if x > 0 else scaled_by(2 * x)      scaled_by(k) returns a function reading k

The activation of `scaled_by` has ended inside the arm, and its `k` exists only there.  So the names
that the function reads become outputs of the `if`, undefined on the other side, and the function
reads these: it is only ever called where the condition says that it is this one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from ..domain.frame import Frame
from ..domain.functions import (
    ConditionalFunction,
    ConditionalObject,
    FunctionValue,
    Local,
    Method,
    Partial,
)
from ..domain.heap import Container
from ..syntax.liveness import read_names


class EscapingClosures:
    """Translate the functions of one arm into ones that are valid after the `if` that `join` joins.
    """

    def __init__(self, join, side: int):
        self.join, self.side = join, side
        self.living = set(_activations(join.frame))
        self.frames: dict[tuple[Frame, frozenset], Callable] = {}

    def function(self, x) -> Callable:
        """A function from the outputs of the `if` to the function `x`, valid after it."""
        match x:
            case Local(node, frame, defaults):
                if frame in self.living and not defaults:
                    return lambda outputs: x
                inner, given = self.activation(frame, read_names([node])), self.bindings(defaults)
                return lambda outputs: Local(node, inner(outputs), given(outputs))
            case Partial(function, args, keywords):
                inner, given = self.function(function), self.bindings(dict(enumerate(args)))
                named = self.bindings(keywords)
                return lambda outputs: Partial(inner(outputs), list(given(outputs).values()),
                                               named(outputs))
            case ConditionalFunction(condition, functions):
                which, each = self.binding(condition, ""), [self.function(f) for f in functions]
                return lambda outputs: ConditionalFunction(which(outputs),
                                                           tuple(f(outputs) for f in each))
            case Method(function, (Container() | ConditionalObject()) as receiver):
                owner = self.join.object(receiver, self.side, "")
                return lambda outputs: Method(function, owner(outputs))
            case ConditionalObject():
                return self.join.object(x, self.side, "")
        return lambda outputs: x

    def binding(self, x, name) -> Callable:
        """A function from the outputs of the `if` to any binding `x`, valid after it."""
        return (self.function(x) if isinstance(x, FunctionValue) else self.join.one(
            x, self.side, str(name)))

    def bindings(self, found: dict) -> Callable:
        """The same for the values of a dict."""
        made = {name: self.binding(x, name) for name, x in found.items()}
        return lambda outputs: {name: x(outputs) for name, x in made.items()}

    def activation(self, frame: Frame | None, names: set[str]) -> Callable:
        """The same for an activation, of which `names` are read."""
        if frame is None or frame in self.living:
            return lambda outputs: frame
        key = frame, frozenset(names)
        if key in self.frames:
            return self.frames[key]
        after = copy.copy(frame)
        self.frames[key] = lambda outputs: after
        env = self.bindings({name: x for name, x in frame.env.items() if name in names})
        around = self.activation(frame.lexical, names)

        def filled(outputs) -> Frame:
            after.env, after.lexical = {**frame.env, **env(outputs)}, around(outputs)
            return after

        return filled


def _activations(frame: Frame | None) -> Iterator[Frame]:
    """`frame`, the activations that enclose it and those that wait for it."""
    pending, seen = [frame], set()
    while pending:
        each = pending.pop()
        if each is not None and each not in seen:
            seen.add(each)
            yield each
            pending += [each.lexical, each.caller]
