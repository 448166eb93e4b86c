"""`write_outside`: a statement that writes into an object that the program has captured, carried out
as the program does, once and in order: `problem.nfev += 1`, `history.append(loss)`.

The object is fixed when code is generated.  What is stored is a copy, so that nothing which
generated code writes into later is seen through it.

    p.last = x                 Write(p, Attribute("last"))
    counts[k] += 1             Write(counts, Item(template of k), operator="+")
    history.append(loss)       Write(history, Method("append"))
    n += 1  (global n)         Write(the module, Attribute("n"), operator="+")

Considered: a function of what was captured that also returns its state, stored after the call.  It
needs no op; but an exception would lose what was stored before it, a loop would carry a list that
grows, and each lane of a batch would have a state of its own, where Python's loop has one.
"""

from __future__ import annotations

import ast
import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.graph import Function, walk
from ..core.dependence_rules import nothing
from ..core.record import define
from .effects import within
from .opaque_call import called, spelled


@functools.cache
def augmented(symbol: str):
    """The function of `a op= b`, which returns a, for an operator of Python."""
    scope: dict = {}
    exec(f"def assigned(a, b):\n    a {symbol}= b\n    return a", scope)
    return scope["assigned"]


@dataclass(frozen=True)
class Attribute:
    """The place of a write: an attribute."""

    name: str

    def read(self, owner, xs):
        return getattr(owner, self.name)

    def write(self, owner, xs, content) -> None:
        setattr(owner, self.name, content)

    def spell(self, owner: ast.expr, xs) -> ast.expr:
        return ast.Attribute(owner, self.name, ast.Store())


@dataclass(frozen=True)
class Item:
    """The place of a write: an item; `key` is a template (effects.py)."""

    key: object

    def read(self, owner, xs):
        return owner[self.key.make(xs)]

    def write(self, owner, xs, content) -> None:
        owner[self.key.make(xs)] = content

    def spell(self, owner: ast.expr, xs) -> ast.expr:
        return ast.Subscript(owner, self.key.spell(xs), ast.Store())


@dataclass(frozen=True)
class Elements:
    """The place of a write: all elements of the array at another place."""

    of: Attribute | Item

    @property
    def name(self) -> str:
        return getattr(self.of, "name", "item")

    def write(self, owner, xs, content) -> None:
        self.of.read(owner, xs)[...] = content

    def spell(self, owner: ast.expr, xs) -> ast.expr:
        return ast.Subscript(self.of.spell(owner, xs), ast.Constant(...), ast.Store())


@dataclass(frozen=True)
class Method:
    """A write by a method, such as `append`."""

    name: str


@dataclass(eq=False)
class Write:
    """Where and how a `write_outside` writes."""

    owner: object
    place: Attribute | Item | Elements | Method
    items: tuple  # templates of what is written, or of the arguments of the method
    operator: str = ""  # of an augmented assignment
    carries: bool = False  # the program reads what it is before the call
    name: str = ""  # of the owner in generated code, if not its own

    def __call__(self, *xs) -> None:
        """Carry out the write, with the operands `xs` of the templates."""
        given = [item.make(xs) for item in self.items]
        if isinstance(self.place, Method):
            getattr(self.owner, self.place.name)(*given)
        elif self.operator:
            old = self.place.read(self.owner, xs)
            self.place.write(self.owner, xs, augmented(self.operator)(old, *given))
        else:
            self.place.write(self.owner, xs, *given)

    def spell(self, xs: Sequence[ast.expr]) -> ast.expr | ast.stmt:
        """The statement, or call, of operands that are spelled `xs`."""
        owner, given = spelled(self.owner), [item.spell(xs) for item in self.items]
        if isinstance(self.place, Method):
            return ast.Call(ast.Attribute(owner, self.place.name, ast.Load()), given, [])
        target = self.place.spell(owner, xs)
        if self.operator:
            operator = ast.parse(f"a {self.operator}= b").body[0].op
            return ast.AugAssign(target, operator, *given)
        return ast.Assign([target], *given)

    def objects(self) -> list:
        """The objects that its spelling names."""
        return [self.owner, *(x.content for item in self.items for x in within(item)
                              if isinstance(x, Named))]

    @functools.cached_property
    def deferred(self) -> Deferred:
        """What native code calls for it."""
        return Deferred(self)


@dataclass(frozen=True)
class Copied:
    """Template: a copy of the input of that number."""

    index: int

    def make(self, xs):
        return np.copy(xs[self.index])

    def spell(self, xs):
        return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), "copy", ast.Load()),
                        [xs[self.index]], [])


def _write(*xs, write):
    write(*xs)
    return ()


@dataclass(frozen=True, eq=False)
class Named:
    """Template: an object that generated code has by name, such as a function."""

    content: object

    def make(self, xs):
        return self.content

    def spell(self, xs):
        return spelled(self.content)


write_outside = define(
    "write_outside", evaluate=_write, infer=lambda *xs, **attrs: [], pure=False, outward=True,
    syntax=lambda *xs, write: write.spell(xs), depends=nothing,
)


def writes_in(function: Function, seen: frozenset = frozenset()) -> list[Write]:
    """The writes of a function and of those that it calls."""
    found: list[Write] = []
    for op in walk(function.block):
        if op.record is write_outside:
            found.append(op.attrs["write"])
        callee = op.attrs["callee"] if op.name == "call" else None
        if callee is not None and callee not in seen:
            found += writes_in(callee.function_for(op.inputs), seen | {callee})
    return found


# ------------------------------------------------------------------------------------- native code

_journal = threading.local()


def _pending() -> list:
    if not hasattr(_journal, "writes"):
        _journal.writes = []
    return _journal.writes


class Deferred:
    """What native code calls for a Write: it is noted, and carried out when the call has ended.

    Where native code fails and the interpreted form runs instead, that form writes, and what was
    noted is dropped.
    """

    def __init__(self, write: Write):
        self.write = write
        self.__name__ = f"{write.name or called(write.owner)}_{getattr(write.place, 'name', 'item')}"

    def __call__(self, *xs) -> None:
        # arrays are memory of native code's, which goes on writing
        _pending().append((self, [np.copy(x) if isinstance(x, np.ndarray) else x for x in xs]))


def noted() -> int:
    """How many writes wait in this thread."""
    return len(_pending())


def carry_out(since: int) -> None:
    """Carry out the writes that wait, but for the first `since`, in their order."""
    for deferred, xs in drop(since):
        deferred.write(*xs)


def drop(since: int) -> list:
    """Forget the writes that wait, but for the first `since`; return them."""
    waiting = _pending()
    found = waiting[since:]
    del waiting[since:]
    return found
