"""Evaluate generator functions eagerly: run the body to its end, collect what it yields, iterate
over that once.

    def rows(w, n):                        def rows(w, n):
        while len(w):                          <total> = []
            yield w[:n]        becomes         while len(w):
            w = w[n:]                              <total>.append(<yielded>(w[:n]))
                                                   w = w[n:]
                                               return <total>

Python interleaves such a function with its consumer.  Eager evaluation is equivalent as long as
neither side observes the other meanwhile: the function writes into nothing that existed before, nor
into what it yields; what it reads is not written into before the last item has been used
(iterators.py); and it neither prints nor raises nor runs for ever.  Anything else is refused, but
where Python itself consumes the generator to its end before anything else happens, as in
`sum(rows(w, n))`.  One that ends in a loop which nothing leaves is a cursor
(generator_cursors.py).

Considered: running the loop's body in the place of each `yield`.  That is Python's order for every
program, but only for a `for` over the generator itself, not for zip, enumerate, next or list; and a
`break` or `return` of the body would have to leave another function's loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from inspect import CO_GENERATOR
from weakref import WeakKeyDictionary

import gast

from ...ir.builder import Builder, at, current
from ...ir.graph import Block
from ...ops.program.effects import has_effects
from ..domain.frame import Frame
from ..domain.functions import Intrinsic
from ..domain.heap import Container
from ..syntax.desugar import copy_position, copy_tree
from ..syntax.liveness import inside, may_stop
from ..values.iterator_invalidation import was_written
from .generator_cursors import (
    ITER,
    NEXT,
    cursor_over,
    in_turns,
    is_endless_generator,
    make_cursor,
)
from .iterators import ALL, OneShotIterator, iterator_of, next_of, once


class EndlessLoop(Exception):
    """Signal that a generator runs over what has no end; `error` says so."""

    def __init__(self, error: Exception):
        super().__init__(str(error))
        self.error = error


TOTAL, YIELDED = "<total>", "<yielded>"
CONSUMERS = (list, tuple, set, frozenset, sum, max, min)
REMEDY = "return the values, in an array or a list"

_made: WeakKeyDictionary[gast.FunctionDef, gast.FunctionDef] = WeakKeyDictionary()


def is_generator(node: gast.AST) -> bool:
    """Whether a definition is that of a generator function."""
    return isinstance(node, gast.FunctionDef) and any(
        isinstance(x, (gast.Yield, gast.YieldFrom)) for statement in node.body
        for x in inside(statement))


def is_generator_function(function) -> bool:
    """Whether a Python function is a generator function."""
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & CO_GENERATOR)


def run_generator(frame: Frame, node: gast.AST, definition: gast.FunctionDef, reads: list,
                  run: Callable):
    """The iterator that a call of a generator function returns; `run(definition, names)` runs the
    function that fills the list.
    """
    what, is_alone = f"{definition.name}()", node is frame.session.consumed
    _check(frame, node, definition, is_alone)
    if is_endless_generator(definition):
        return _endless(frame, node, definition, reads, run)
    yielded: set = set()

    def note(frame: Frame, node, item):
        for cell in frame.reachable_cells(item):
            yielded.update((cell,) if isinstance(cell, Container) else cell.roots)
        return item

    outer, before = frame.heap.written, (frame.snapshot(), frame.live, frame.pending)
    frame.heap.written = written = set()
    block = Block()
    try:
        with _quietly(frame, node, block, is_alone):
            total = run(_listing(definition), {YIELDED: Intrinsic(note)})
    except EndlessLoop as loop:
        frame.restore(before[0])
        frame.live, frame.pending = before[1:]
        if (turned := in_turns(definition)) is None:
            raise loop.error from None
        return _endless(frame, node, turned, reads, run)
    finally:
        frame.heap.written = outer
        if outer is not None:
            outer |= written
    if written & {
            own
            for root in yielded
            for own in (
                (root,) if isinstance(root, Container) else {root} | root.held | root.origins)
    }:
        raise frame.refuse("a generator that writes into what it yields", node, "yield a copy")
    return once(frame, total, what, [total, *reads])


def _endless(frame: Frame, node: gast.AST, definition: gast.FunctionDef, reads: list,
             run: Callable) -> OneShotIterator:
    """The iterator over a generator that never ends, which runs in turns with its consumer."""
    helpers = {
        ITER: Intrinsic(iterator_of),
        NEXT: Intrinsic(lambda frame, node, source: next_of(frame, node, source, ALL, None))
    }
    with _quietly(frame, node, Block(), False):
        cursor = make_cursor(frame, node, definition, reads,
                             lambda made, names: run(made, {**helpers, **names}))
    made = once(frame, cursor_over(frame, cursor, node), f"{definition.name}()", [])
    return replace(made, cursor=cursor)


@contextmanager
def _quietly(frame: Frame, node: gast.AST, block: Block, is_alone: bool) -> Iterator:
    """A context in which a generator is run, in a block of its own; refuses one that does something
    that shows, unless it `is_alone`.
    """
    before, names = dict(frame.heap.contents), names_around(frame)
    with Builder(block), at(current().line):
        yield
    current().block.ops.extend(block.ops)
    if not is_alone and (any(at.env.get(name) is not binding for at, name, binding in names)
                         or was_written(frame, before)):
        raise frame.refuse("a generator that writes into what was there before it", node, REMEDY)
    if not is_alone and any(map(has_effects, block.ops)):
        raise frame.refuse("a generator that draws, prints or raises", node, REMEDY)


def names_around(frame: Frame) -> list[tuple]:
    """The names of the enclosing scopes and their bindings."""
    found, seen, pending = [], set(), [frame]
    while pending:
        at = pending.pop()
        if at is not None and id(at) not in seen:
            seen.add(id(at))
            found += [(at, name, binding) for name, binding in at.env.items()]
            pending += [at.lexical, at.caller]
    return found


def consumed_at_once(function, node: gast.Call) -> gast.AST | None:
    """Return the argument of a call that is consumed to its end before anything else happens, if
    it is a call itself.
    """
    if (not node.args or not isinstance(node.args[0], gast.Call)
            or not all(isinstance(x, gast.Constant) for x in node.args[1:])):
        return None
    is_known = (any(function is each for each in CONSUMERS) and not node.keywords
                or function is sorted and all(isinstance(x.value, (gast.Lambda, gast.Constant))
                                              for x in node.keywords))
    return node.args[0] if is_known else None


def _check(frame: Frame, node: gast.AST, definition: gast.FunctionDef, is_alone: bool) -> None:
    """Refuse generators whose interleaving with their consumer can be observed; `is_alone`: it is
    consumed to its end before anything else happens.
    """
    if frame.session.tries:
        raise frame.refuse("a call of a generator inside a `try`", node,
                           "make a list of it before: list(...)")
    if is_endless_generator(definition):
        return
    for statement in definition.body:
        for x in inside(statement):
            match x:
                case gast.Raise() | gast.Assert() | gast.Try() if not is_alone:
                    raise frame.refuse("a generator that may raise", node, REMEDY)
                case gast.While(test=gast.Constant(), body=body) if not (
                        is_alone and may_stop(body)):
                    raise frame.refuse("a generator that may go on for ever", node,
                                       "write the loop where its values are used")
                case gast.Return(value=value) if value is not None:
                    raise frame.refuse("a generator that returns a value", node, REMEDY)


def _listing(definition: gast.FunctionDef) -> gast.FunctionDef:
    """The function that returns the list of all that `definition` yields; cached."""
    if definition not in _made:
        new = copy_tree(definition)
        body = [x for statement in new.body for x in _as_list(_Listing().visit(statement))]
        new.body = [
            _at(gast.Assign([_name(TOTAL, gast.Store())], gast.List([], gast.Load()), None),
                definition), *body,
            _at(gast.Return(_name(TOTAL)), definition)
        ]
        _made[definition] = new
    return _made[definition]


def _as_list(x) -> list:
    return x if isinstance(x, list) else [x]


def _at(new: gast.AST, old: gast.AST) -> gast.AST:
    return copy_position(new, old)


def _name(name: str, context=None) -> gast.Name:
    return gast.Name(name, context or gast.Load(), None, None)


def _append(item: gast.AST) -> gast.Expr:
    noted = gast.Call(_name(YIELDED), [item], [])
    return gast.Expr(gast.Call(gast.Attribute(_name(TOTAL), "append", gast.Load()), [noted], []))


class _Listing(gast.NodeTransformer):
    """Rewrite `yield x` statements as appends; refuse a `yield` whose value is used."""

    def visit_FunctionDef(self, node: gast.FunctionDef) -> gast.AST:
        return node

    visit_Lambda = visit_FunctionDef

    def visit_Expr(self, node: gast.Expr) -> gast.AST:
        match node.value:
            case gast.Yield(value=item):
                return _at(_append(item or gast.Constant(None, None)), node)
            case gast.YieldFrom(value=source):
                return _at(
                    gast.For(_name("<each>", gast.Store()), source, [_append(_name("<each>"))], [],
                             None), node)
        return node

    def visit_Return(self, node: gast.Return) -> gast.AST:
        return _at(gast.Return(_name(TOTAL)), node)
