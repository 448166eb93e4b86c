"""Single-use iterators: the results of iter(), map(), zip(), enumerate() and generator expressions.

A read of an iterator's items consumes it (`Frame.contents_of`), and a second consumer is refused:
how many items the first has left is only known at run time.  `next` takes one item; how many it
took is in `state`, a dict of the program's, so that branches and loops join it like anything else.
Considered: an object with a cursor, written in Python, which would make a `while` of every `for`
over a `zip`; a mark on the binding itself, which would not be undone on the other path of an `if`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import gast

from ...errors import TypeMismatchError
from ...ir.graph import MISSING, Value
from ...ops.core.record import value
from ..domain.frame import Frame
from ..domain.functions import FunctionValue, Generator, Method
from ..domain.heap import Container
from ..values.dict_views import KeyedView
from ..values.dicts import store
from ..values.exceptions import is_caught
from ..values.iterator_invalidation import State, Watch, was_written
from ..values.objects import method_of
from .generator_cursors import Cursor
from .iterables import Iterable, iterable, normalised_range
from .join import branch

TAKEN, USED = "taken", "used"
ALL = object()


@dataclass(eq=False)
class OneShotIterator(FunctionValue):
    """An iterator over `content`: an Iterable, a Generator, or the list of its items."""

    content: object
    state: Container  # {"taken": how many `next` took, "used": whether something else ran over it}
    what: str
    watch: Watch  # a snapshot of what it reads, taken at its creation
    # evaluated eagerly at its creation, though Python evaluates it lazily
    was_early: bool = False
    is_early: bool = False  # evaluated before a loop over it begins
    cursor: Cursor | None = None  # of a generator that never ends, which knows where it is

    def held(self) -> Iterator:
        yield self.state
        yield from (self.content.held if isinstance(self.content, Iterable) else self.content.held()
                    if isinstance(self.content, FunctionValue) else (self.content,))

    def consumed(self, frame: Frame):
        """The remaining items, for a consumer."""
        self.check(frame)
        taken = _unused(frame, self)
        if self.cursor is not None:
            self.cursor.require_unspent(frame)
            return self.content
        store(frame, self.state, {TAKEN: taken, USED: True})
        if taken == 0:
            return self.content
        rest = normalised_range(frame, iterable(frame, self.content, None), None)
        if rest.trips is not None and isinstance(taken, int):
            return replace(rest, get=lambda k: rest.get(k + taken),
                           trips=max(rest.trips - taken, 0),
                           tabulate=rest.tabulate if taken == 0 else None)
        lo, hi, step = rest.bounds
        return replace(rest, get=lambda k: rest.get(k + taken), bounds=(0, value(hi) - taken, 1),
                       is_range=False, extent=None)

    def check(self, frame: Frame) -> None:
        """Refuse to read an iterator if its sources have changed since."""
        if (self.watch.changed if self.was_early else self.watch.resized)(frame):
            self.refuse(frame)

    def refuse(self, frame: Frame) -> None:
        """Refuse an iterator whose source is written into."""
        raise frame.refuse(f"what {self.what} reads changes before it is run over to its end", None,
                           "make a list of it first: list(...); or write a loop with an `if`")


# Python copies what they read
POOLED = ("product()", "combinations()", "combinations_with_replacement()", "permutations()",
          "zip(*...)")


def once(frame: Frame, content, what: str, reads, is_early: bool = False) -> OneShotIterator:
    """A fresh iterator over `content`, which reads these bindings."""
    inner = [x for x in reads if isinstance(x, OneShotIterator)]
    was_early = any(x.was_early or x.is_early for x in inner) or what in POOLED or (
        what != "iter()" and not isinstance(content, (Iterable, Generator)))
    watch = Watch(frame, (x for x in reads if not isinstance(x, OneShotIterator))).joined(
        x.watch.again(frame) for x in inner)
    return OneShotIterator(content, frame.heap.new_container(State, {
        TAKEN: 0,
        USED: False
    }), what, watch, was_early, was_early or is_early)


def gives_iterator(function: Callable, what: str) -> Callable:
    """Wrap `function`, of front/eval/python_builtins.py or front/eval/sequence_calls.py, whose
    result is an iterator in Python.
    """
    def make(frame: Frame, node, *args, **keywords):
        opened, named = [_opened(frame, a) for a in args], {
            name: _opened(frame, a)
            for name, a in keywords.items()
        }
        # opening an iterator argument loses what that reads, and when
        reads = [
            a if isinstance(a, OneShotIterator) else b
            for a, b in zip((*args, *keywords.values()), (*opened, *named.values()))
        ]
        before = dict(frame.heap.contents)
        made = once(frame, function(frame, node, *opened, **named), what, reads)
        if made.was_early and was_written(frame, before):
            made.refuse(frame)
        return made

    make.opens = True
    return make


def _opened(frame: Frame, binding):
    return binding if isinstance(binding, KeyedView) else frame.contents_of(binding)


def iterator_of(frame: Frame, node: gast.AST, source):
    """iter(source)."""
    if isinstance(source, OneShotIterator):
        return source
    if method_of(source, "__next__") is not None:
        step = Method(method_of(source, "__iter__"), source)
        return frame.session.call(frame, step, [], {}, node)
    return once(frame, _opened(frame, source), "iter()", (source,))


def next_of(frame: Frame, node: gast.AST, source, default, require_item: Callable):
    """next(source, default); `require_item(taken, count)` raises StopIteration in the program if
    nothing is left, for which there is no default.
    """
    if method_of(source, "__next__") is not None:
        if default is not ALL:
            raise frame.refuse("next() of an object with a second argument", node,
                               "catch StopIteration")
        step = Method(method_of(source, "__next__"), source)
        return frame.session.call(frame, step, [], {}, node)
    if not isinstance(source, OneShotIterator):
        raise TypeMismatchError("next() of what is no iterator", frame.line(node),
                                "make one: it = iter(...)")
    if source.cursor is not None:
        source.cursor.require_unspent(frame)
        return source.cursor.next(frame, node)
    if is_caught(frame, StopIteration):
        raise frame.refuse("next() where StopIteration is caught", node,
                           "give next() a second argument, and test for it")
    source.check(frame)
    taken = _unused(frame, source)
    if isinstance(source.content, Generator) and taken == 0:
        store(frame, source.state, {TAKEN: 0, USED: not any(
            isinstance(x, Cursor) for x in source.content.held())})
        return source.content.fold("first" if default is ALL else "first or",
                                   None if default is ALL else default)
    items = normalised_range(frame, iterable(frame, source.content, node), node)
    store(frame, source.state, {TAKEN: taken + 1, USED: False})
    if default is ALL:
        if items.trips is not None and isinstance(taken, int) and taken >= items.trips:
            raise TypeMismatchError("next() of an iterator that has nothing left", frame.line(node),
                                    "give it a second argument")
        if not items.is_endless and (items.trips is None or not isinstance(taken, int)):
            require_item(taken, items.trips if items.trips is not None else items.bounds[1])
        return items.get(taken)
    if items.trips is not None and isinstance(taken, int):
        return items.get(taken) if taken < items.trips else default
    count = items.trips if items.trips is not None else items.bounds[1]
    return branch(frame,
                  value(taken) < value(count), lambda: items.get(taken), lambda: default,
                  frame.live | frame.pending)


def _unused(frame: Frame, source: OneShotIterator):
    """The number of items that `next` took from an iterator; refuse one that has been consumed."""
    used, taken = source.state.members[USED], source.state.members[TAKEN]
    if (used.constant if isinstance(used, Value) else used) is not False:
        raise frame.refuse(
            f"{source.what} is run over a second time, and the first may have left nothing", None,
            "make a list of it first: list(...)")
    constant = taken.constant if isinstance(taken, Value) else taken
    return taken if constant is MISSING else constant
