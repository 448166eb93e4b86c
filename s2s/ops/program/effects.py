"""Ops with side effects: `print` and `raise`; warnings and logging print through another function.

They have no results. Their text is a template, fixed when code is generated, whose leaves are the
op's inputs: `print(f"{n}: {x:.3f}")` is one op on n and x. So strings with run-time data need no
type of their own, and vanish from programs as tuples do.

An op with side effects is never removed, shared, hoisted or recomputed, and such ops keep their
order (analysis/side_effects.py, back/lower/fusion_groups.py). Derivatives ignore it: it runs in the
forward sweep only.
"""

from __future__ import annotations

import ast
import builtins
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...ir.graph import Block, Function, Op, walk
from ...lazy_import import later
from ..core.dependence_rules import nothing
from ..core.record import define

logging = later("logging")

# ---------------------------------------------------------------------------------------- templates


@dataclass(frozen=True)
class Operand:
    """Template: the input of that number."""

    index: int

    def make(self, xs):
        return xs[self.index]

    def spell(self, xs):
        return xs[self.index]


@dataclass(frozen=True)
class Plain:
    """Template: a constant Python object."""

    content: object

    def make(self, xs):
        return self.content

    def spell(self, xs):
        return ast.Constant(self.content)


@dataclass(frozen=True)
class Several:
    """Template: a tuple or list of templates."""

    kind: type
    items: tuple

    def make(self, xs):
        return self.kind(item.make(xs) for item in self.items)

    def spell(self, xs):
        items = [item.spell(xs) for item in self.items]
        return (ast.Tuple if self.kind is tuple else ast.List)(items, ast.Load())


@dataclass(frozen=True)
class Pairs:
    """Template: a dict of templates."""

    keys: tuple
    items: tuple

    def make(self, xs):
        return {key: item.make(xs) for key, item in zip(self.keys, self.items)}

    def spell(self, xs):
        return ast.Dict([ast.Constant(key) for key in self.keys],
                        [item.spell(xs) for item in self.items])


@dataclass(frozen=True)
class Field:
    """Template: `{x!r:>8}` in a formatted string; `spec` is a Joined."""

    content: object
    conversion: int = -1
    spec: Joined | None = None

    def make(self, xs):
        content = self.content.make(xs)
        content = {-1: lambda x: x, 115: str, 114: repr, 97: ascii}[self.conversion](content)
        return format(content, self.spec.make(xs) if self.spec is not None else "")

    def spell(self, xs):
        return ast.FormattedValue(self.content.spell(xs), self.conversion,
                                  self.spec.spell(xs) if self.spec else None)


@dataclass(frozen=True)
class Joined:
    """Template: a formatted string of texts and Fields."""

    parts: tuple

    def make(self, xs):
        return "".join(part if isinstance(part, str) else part.make(xs) for part in self.parts)

    def spell(self, xs):
        return ast.JoinedStr([ast.Constant(part) if isinstance(part, str) else part.spell(xs)
                              for part in self.parts])


@dataclass(frozen=True)
class Filled:
    """Template: `"%.3f at %d" % (x, n)`, or `"{:.3f} at {n}".format(x, n=n)`."""

    text: str
    method: str  # "%" or "format"
    items: tuple
    keywords: tuple[tuple[str, object], ...] = ()

    def make(self, xs):
        items = [item.make(xs) for item in self.items]
        if self.method == "%":
            return self.text % items[0]
        return self.text.format(*items, **{name: item.make(xs) for name, item in self.keywords})

    def spell(self, xs):
        items = [item.spell(xs) for item in self.items]
        if self.method == "%":
            return ast.BinOp(ast.Constant(self.text), ast.Mod(), items[0])
        function = ast.Attribute(ast.Constant(self.text), "format", ast.Load())
        return ast.Call(function, items,
                        [ast.keyword(name, item.spell(xs)) for name, item in self.keywords])


@dataclass(frozen=True)
class Either:
    """Template: one of two texts, chosen by an input."""

    content: Operand
    first: object
    second: object

    def make(self, xs):
        return (self.first if self.content.make(xs) else self.second).make(xs)

    def spell(self, xs):
        return ast.IfExp(self.content.spell(xs), self.first.spell(xs), self.second.spell(xs))


@dataclass(frozen=True)
class Made:
    """Template: an exception, given its class and arguments."""

    kind: type
    items: tuple = ()
    keywords: tuple[tuple[str, object], ...] = ()
    bare: bool = False  # `raise ValueError`, without parentheses

    def make(self, xs):
        return self.kind(*(item.make(xs) for item in self.items),
                         **{name: x.make(xs) for name, x in self.keywords})

    def spell(self, xs):
        if self.bare:
            return spelled_class(self.kind)
        keywords = [ast.keyword(name, item.spell(xs)) for name, item in self.keywords]
        return ast.Call(spelled_class(self.kind), [item.spell(xs) for item in self.items], keywords)


def within(template) -> Iterator:
    """`template` and all templates nested in it."""
    yield template
    for inner in (*(getattr(template, name, None)
                    for name in ("content", "spec", "first", "second")),
                  *getattr(template, "items", ()), *getattr(template, "parts", ()),
                  *(x for _, x in getattr(template, "keywords", ()))):
        if hasattr(inner, "spell"):
            yield from within(inner)


# ---------------------------------------------------------------------------- classes of exceptions


def is_exception(x) -> bool:
    """Whether `x` is a class of exceptions."""
    return isinstance(x, type) and issubclass(x, BaseException)


def spelled_class(kind: type) -> ast.expr:
    """The expression for a class of exceptions in generated code."""
    if kind is np.linalg.LinAlgError:
        return ast.parse("np.linalg.LinAlgError", mode="eval").body
    return ast.Name(kind.__name__, ast.Load())


def is_builtin(kind: type) -> bool:
    """Whether the class is built in."""
    return getattr(builtins, kind.__name__, None) is kind or kind is np.linalg.LinAlgError


def builtin_base(kind: type) -> type:
    """The nearest built-in base class of `kind`, which compiled code raises."""
    return next(base for base in kind.__mro__ if getattr(builtins, base.__name__, None) is base)


def is_importable(kind) -> bool:
    """Whether `from module import name` finds the class or function in any process."""
    module, name = getattr(kind, "__module__", None), getattr(kind, "__name__", None)
    return (module != "__main__" and name is not None
            and getattr(sys.modules.get(module), name, None) is kind)


# ---------------------------------------------------------------------------------------------- ops

def has_effects(op: Op) -> bool:
    """Whether `op` has side effects."""
    if not op.record.pure:
        return True
    if op.name == "call":
        return callee_has_effects(op)
    for block in op.blocks:
        for inner in block.ops:
            if has_effects(inner):
                return True
    return False


def callee_has_effects(op: Op, seen: frozenset = frozenset()) -> bool:
    """Whether the function that a `call` calls has side effects; a recursive call adds none."""
    callee = op.attrs["callee"]
    return callee not in seen and acts(callee.function_for(op.inputs), seen | {callee})


def acts_outside(function: Function | Block, seen: frozenset = frozenset()) -> bool:
    """Whether a function, or one that it calls, prints, or writes into what was captured."""
    for op in walk(getattr(function, "block", function)):
        callee = op.attrs["callee"] if op.name == "call" else None
        if op.record.outward or callee is not None and callee not in seen and acts_outside(
                callee.function_for(op.inputs), seen | {callee}):
            return True
    return False


def acts(function: Function, seen: frozenset = frozenset()) -> bool:
    """Whether a function has side effects."""
    return any(callee_has_effects(inner, seen) if inner.name == "call" else not inner.record.pure
               for inner in walk(function.block))



def _raise(*xs, thrown, cause=None, again=False):
    raise thrown.make(xs) from cause.make(xs) if isinstance(cause, Made) else None


def _say(*xs, items, keywords=(), function="print"):
    given = [item.kind if isinstance(item, Made) and item.bare else item.make(xs) for item in items]
    eval(function, {"warnings": warnings, "logging": logging})(*given,
                                                               **{name: x.make(xs)
                                                                  for name, x in keywords})
    return ()


def _spell_say(*xs, items, keywords=(), function="print"):
    return ast.Call(ast.parse(function, mode="eval").body, [item.spell(xs) for item in items],
                    [ast.keyword(name, x.spell(xs)) for name, x in keywords])


# `again`: Python decides what is raised, when the interpreted form reruns; only
# compiled code has it
raise_record = define("raise", evaluate=_raise, infer=lambda *xs, **attrs: [], pure=False,
                      depends=nothing)
# `function`: the source of the printing function
print_record = define("print", evaluate=_say, infer=lambda *xs, **attrs: [], pure=False,
                      outward=True, syntax=_spell_say, depends=nothing)


def is_pure(op: Op) -> bool:
    """Whether `op`, with its nested blocks, may be removed if its results are unused."""
    return not has_effects(op)
