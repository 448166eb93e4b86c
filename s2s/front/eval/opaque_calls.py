"""Opaque functions, whose source is not read: only the type of their result is known, as declared
by the user.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import SourceError, TypeMismatchError
from ...ir.builder import Builder, emit
from ...ir.graph import Block, Function, Value
from ...ir.types import Array, Static, Tuple, Type
from ...ops.core.record import type_of_constant
from ...ops.program.opaque_call import Inside, called, foreign
from ..domain.functions import FunctionValue
from ..syntax.captures import is_data
from .build import callee_of
from .entry_line import definition_line
from .unwrap_callable import names_of


class DeclaredResult:
    """The declared result of a function: `like`, of the same arguments, or an example."""

    def __init__(self, like, name: str, arguments: tuple):
        self.like, self.name, self.arguments = like, name, arguments
        self.tupled = False

    def function_for(self, values: Sequence[Value]) -> Function:
        """A function of the data among the arguments, with results of the types."""
        if not callable(self.like):
            type = type_of_example(self.like)
            self.tupled = isinstance(type, Tuple) and type.form is None
            results = [Value(t) for t in type.items] if self.tupled else [Value(type)]
            return Function(self.name, Block([Value(v.type) for v in values], [], results),
                            tupled=self.tupled)
        rest = iter(values)
        types = [next(rest).type if a is None else a for a in self.arguments]
        function = callee_of(self.like, len(types)).function_for([Value(t) for t in types])
        self.tupled = function.tupled
        params = [p for p, a in zip(function.params, self.arguments) if a is None]
        return Function(self.name, Block(params, [], function.results), tupled=function.tupled)


def type_of_example(x) -> Type:
    """The type of a result like `x`, with the extents of `x`."""
    if isinstance(x, (tuple, list)):
        return Tuple(tuple(map(type_of_example, x)))
    if isinstance(x, np.ndarray) and x.ndim:
        return Array(x.dtype.name, x.shape)
    if is_data(x):
        return type_of_constant(x if not isinstance(x, np.ndarray) else x[()])
    raise TypeMismatchError(
        f"like={x!r} is no example of a result", None,
        "give a number, an array, a tuple of such, or a function of the same arguments")


def argument_names(function: Callable, count: int) -> list[str]:
    """A name for each argument of a function that may be implemented outside Python."""
    try:
        return names_of(function, count)
    except SourceError:
        pass
    try:
        names = [
            p.name for p in inspect.signature(function).parameters.values()
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):
        names = []
    return names[:count] + [f"x{k}" if count > 1 else "x" for k in range(len(names), count)]


def foreign_function(function: Callable, name: str, like, types: Sequence[Type]) -> Function:
    """The IR of a call of the opaque `function` with arguments of these types."""
    arguments = tuple(t if isinstance(t, Static) else None for t in types)
    params = [Value(t, n) for t, n in zip(types, argument_names(function, len(types)))]
    block = Block(params)
    said = like if isinstance(like, DeclaredType) else DeclaredResult(like, name, arguments)
    with Builder(block):
        said.function_for([p for p, a in zip(params, arguments) if a is None])
        found = emit(foreign, *(p for p, a in zip(params, arguments) if a is None),
                     function=function, arguments=arguments, like=said)
        block.yields = list(found) if isinstance(found, tuple) else [found]
    line = definition_line(function)
    return Function(name, block, line.source if line is not None else None, "", said.tupled)


class DeclaredType:
    """A declared result of one fixed type."""

    def __init__(self, name: str, type: Type, why: str = ""):
        self.name, self.type, self.why = name, type, why  # why the function is opaque
        self.tupled = isinstance(type, Tuple) and type.form is None

    def function_for(self, values: Sequence[Value]) -> Function:
        results = [Value(t) for t in self.type.items] if self.tupled else [Value(self.type)]
        return Function(self.name, Block([Value(v.type) for v in values], [], results),
                        tupled=self.tupled)


def foreign_inside(solve: Callable, inner, function, start: Value, like: Type, why: str) -> Value:
    """A call of `solve(function, start)` with a result of type `like`; `why` is the reason that it
    is opaque.

    `inner` has the IR of `function`, and its operands besides its argument.
    """
    if not inner.given and not isinstance(function, FunctionValue):
        handed = Static(function)
    else:
        handed = Inside(inner.function, len(inner.given))
    return emit(foreign, *(() if isinstance(handed, Static) else inner.given), start,
                function=solve, arguments=(handed, None),
                like=DeclaredType(called(solve), like, why))
