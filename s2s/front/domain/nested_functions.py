"""Functions defined inside a program as operands of transformations, such as `grad` of a lambda.

`grad(lambda z: z * z * x)(x)` differentiates a function that exists only while the program around
it runs. It becomes IR of its own; what it closes over becomes captured parameters, whose values the
enclosing program hands on where it calls what the transformation has made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import UnsupportedError
from ...ir.builder import Builder
from ...ir.graph import Block, Function, Value, free_values
from ...ir.substitute import substitute
from ...ops.core.control import make_undefined
from .checkpoint_calls import outline
from .frame import PathEnded
from .heap import Cell


@dataclass(frozen=True, eq=False)
class EnclosingValue:
    """A captured value of the enclosing program."""

    value: Value

    def __call__(self):
        raise UnsupportedError(f"{self.value} exists only inside the program that defines it", None,
                               "call the function there")


class NestedFunction:
    """A function of the program: `run(args)` runs it on bindings, `signature` is its signature."""

    def __init__(self, name: str, signature: inspect.Signature, run: Callable, frame):
        self.__name__ = self.name = name
        self.__signature__ = signature
        self.run, self.frame = run, frame

    def __call__(self, *args):
        raise UnsupportedError(f"{self.name} exists only inside the program that defines it", None,
                               "call it there")

    def _bound_outside(self) -> dict:
        """What the captured arrays hold now, and what else the program writes to outside (None)."""
        session = self.frame.session
        arrays = [binding for _, binding in session.captures.values() if isinstance(binding, Cell)]
        state = session.outside.state
        return {None: None if state is None else state.members,
                **{cell: session.heap.contents.get(cell, cell.made) for cell in arrays}}

    def function_for(self, values: Sequence[Value]) -> Function:
        """The IR for arguments like `values`, followed by the captured values."""
        names = list(self.__signature__.parameters)
        before = self._bound_outside()
        block = Block(
            [Value(v.type, names[k] if k < len(names) else "") for k, v in enumerate(values)])
        with Builder(block, above=values):
            try:
                result = self.run([self.frame.wrap(p) for p in block.params])
                members = self.frame.members(result)
                tupled = members is not None
                block.yields = [self.frame.value(y) for y in (members if tupled else [result])]
            except PathEnded:
                tupled, block.yields = False, [make_undefined()]
        if any(now is not before.get(cell, cell and cell.made)
               for cell, now in self._bound_outside().items()):
            raise self.frame.refuse(
                f"{self.name}, which the program transforms, writes outside what is read, too",
                None, "return what changes, and store it after the call")
        outline(block, self.frame.session)
        captures = {}
        for k, outer in enumerate(free_values(block)):
            inner = Value(outer.type,
                          outer.name if outer.name and outer.name not in names else f"captured_{k}")
            names.append(inner.name)
            substitute(block, {outer: inner})
            block.params.append(inner)
            captures[inner.name] = EnclosingValue(outer)
        return Function(self.name, block, self.frame.source, "", tupled, captures)
