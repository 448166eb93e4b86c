"""Generators that never end, as cursors: what is left to do after each `yield` is a function that
`next` calls.

    def powers(x):                       def powers(x):
        y = 1.0                              y, resumed = 1.0, False
        while True:                          def advance(sent):
            yield y                              nonlocal y, resumed
            y = y * x            becomes         if resumed:
                                                     y = y * x
                                                 else:
                                                     resumed = True
                                                 return y
                                             return advance

So the generator runs in turns with its consumer, as in Python.  Only what stands before the first
`yield` and the loop is run where the generator is made, and not where it is first asked.

Considered: a thread of control of its own, as Python has it, which no loop could carry; blocks with
a number each for any nesting of loops, which is an interpreter in each trip of the consumer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

import gast

from ...errors import TypeMismatchError
from ...ir.graph import Value
from ..domain.frame import Frame
from ..domain.functions import FunctionValue, Local
from ..domain.heap import Progress
from ..syntax.desugar import copy_position, copy_tree
from ..syntax.liveness import (
    Liveness,
    bound_names,
    inside,
    may_fall_through,
    parameter_names,
    read_names,
)
from ..values.dicts import store
from ..values.iterator_invalidation import State, Watch
from .iterables import ENDLESS, Iterable, ObjectCursor

ITS_METHODS = ("send", "__next__")
SPENT = "spent"
SENT, POINT, RESUMED, ADVANCE = "sent", "point", "resumed", "<advance>"
START = 0  # the point before the first `yield`

ITER, NEXT, ITEMS, ITEM = "<iter>", "<next>", "<items>", "<item>"

_turned: WeakKeyDictionary[gast.FunctionDef, gast.FunctionDef] = WeakKeyDictionary()
_made: WeakKeyDictionary[gast.FunctionDef, tuple] = WeakKeyDictionary()


class Cursor(FunctionValue):
    """The rest of a generator: `advance` runs it to its next `yield`."""

    def __init__(self, frame: Frame, advance: Local, state: str, reads: list):
        self.advance, self.state, self.watch = advance, state, Watch(frame, reads)
        # whether a consumer may have taken one more item than it used
        owner = advance.frame
        if owner.holder:
            owner.env[owner.holder].cls = Progress
        self.spent = frame.heap.new_container(State, {SPENT: False})

    def held(self) -> Iterator:
        yield self.advance
        yield self.spent

    def next(self, frame: Frame, node: gast.AST | None, sent=None):
        """Its next item; `sent` is the value of the `yield` where it waits."""
        started = self._started()
        if started is not True and self.watch.changed(frame):
            raise frame.refuse("a generator that reads what changes before it is first asked", node,
                               "make it after the change")
        if started is not True and sent is not None:
            raise TypeMismatchError("can't send non-None value to a just-started generator",
                                    frame.line(node), "call next() on it first")
        return frame.session.call(frame, self.advance, [sent], {}, node)

    def asked(self, frame: Frame, node: gast.AST, name: str, *sent):
        """A call of its method `name`."""
        if len(sent) != (name == "send"):
            raise TypeMismatchError(f"{name}() with {len(sent)} arguments", frame.line(node),
                                    "next() takes none, send() the value of the `yield`")
        self.require_unspent(frame)
        return self.next(frame, node, *sent)

    def spend(self, frame: Frame) -> None:
        """Note that a consumer takes one more item than it uses: no other may follow."""
        store(frame, self.spent, {SPENT: True})

    def require_unspent(self, frame: Frame) -> None:
        """Refuse a further consumer after one that took one more item than it used."""
        spent = self.spent.members[SPENT]
        if (spent.constant if isinstance(spent, Value) else spent) is not False:
            raise frame.refuse(
                "a generator that is asked again after zip, which took one more item of it", None,
                "let the range come first: zip(range(n), ...)")

    def _started(self) -> bool | Value:
        owner = self.advance.frame
        state = owner.env.get(self.state)
        if owner.holder:
            state = owner.env[owner.holder].members[self.state]
        constant = state.constant if isinstance(state, Value) else state
        return bool(constant) if isinstance(constant, (bool, int)) else state


def cursor_over(frame: Frame, cursor: Cursor, node: gast.AST) -> Iterable:
    """The Iterable of all that a generator yields: each item has to be taken once, in order."""
    return Iterable(lambda k: cursor.next(frame.session.active or frame, node), (0, ENDLESS, 1),
                    held=(cursor,))


def cursors_of(source: Iterable) -> list[Cursor | ObjectCursor]:
    """The generators, and objects with a `__next__`, whose items these are."""
    return [held for held in source.held if isinstance(held, (Cursor, ObjectCursor))]


def is_endless_generator(definition: gast.FunctionDef) -> bool:
    """Whether a generator function ends in a loop that nothing leaves."""
    *before, loop = definition.body
    return (_is_forever(loop) and not _leaves(loop.body)
            and not any(isinstance(x, gast.Return) for stmt in before for x in inside(stmt))
            and any(map(_yields, loop.body)))


def in_turns(definition: gast.FunctionDef) -> gast.FunctionDef | None:
    """The generator function that ends in a loop over something, with a `while True` for it, for
    something that has no end; None for others.

        for v in source:                     items = iter(source)
            yield v * v        becomes       while True:
                                                 v = next(items)
                                                 yield v * v
    """
    if definition not in _turned:
        new = copy_tree(definition)
        match new.body[-1]:
            case gast.For(target=target, iter=source, body=body, orelse=[]):
                pass
            case gast.Expr(value=gast.YieldFrom(value=source)):
                target = _name(ITEM, gast.Store())
                body = [gast.Expr(gast.Yield(_name(ITEM)))]
            case _:
                return None
        items, item = (gast.Call(_name(of), [x], [])
                       for of, x in ((ITER, source), (NEXT, _name(ITEMS))))
        items = gast.Assign([_name(ITEMS, gast.Store())], items, None)
        item = gast.Assign([target], item, None)
        loop = gast.While(_constant(True), [item, *body], [])
        last = new.body.pop()
        new.body += [copy_position(items, last), copy_position(loop, last)]
        _turned[definition] = new
    new = _turned[definition]
    return new if is_endless_generator(new) else None


def _is_forever(stmt: gast.AST) -> bool:
    return (isinstance(stmt, gast.While) and isinstance(stmt.test, gast.Constant)
            and bool(stmt.test.value))


def _leaves(body: list) -> bool:
    """Whether a statement leaves the loop of which this is the body, or goes on with its next trip.
    """
    for stmt in body:
        match stmt:
            case gast.Return() | gast.Break() | gast.Continue():
                return True
            case gast.For() | gast.While():
                if any(isinstance(x, gast.Return) for x in inside(stmt)) or _leaves(stmt.orelse):
                    return True
            case gast.If():
                if _leaves(stmt.body) or _leaves(stmt.orelse):
                    return True
            case gast.Try() | gast.With():
                if any(isinstance(x, (gast.Return, gast.Break, gast.Continue))
                       for x in inside(stmt)):
                    return True
    return False


def _yields(stmt: gast.AST) -> bool:
    return any(isinstance(x, (gast.Yield, gast.YieldFrom)) for x in inside(stmt))


def make_cursor(frame: Frame, node: gast.AST, definition: gast.FunctionDef, reads: list,
                run: Callable) -> Cursor:
    """The cursor of a call of a generator function; `run(definition, names)` runs what stands
    before its first `yield`, and returns the function for the rest.
    """
    if definition not in _made:
        _made[definition] = _Rest(frame, definition).made()
    new, state, names = _made[definition]
    own = names.intersection(parameter_names(definition))
    around = [x.frame for x in reads[-1:] if isinstance(x, Local)]  # a function of the program's
    while around and around[-1].lexical is not None:
        around.append(around[-1].lexical)
    reads_now = own or any(name in outer.env for outer in around for name in names)
    return Cursor(frame, run(new, {}), state, reads if reads_now else ())


class _Rest:
    """The function that does what is left of a generator after each of its `yield`s."""

    def __init__(self, frame: Frame, definition: gast.FunctionDef):
        self.frame, self.definition = frame, copy_tree(definition)
        self.points: list[list] = []  # what is left after each `yield`, before the next trip
        *before, self.loop = self.definition.body
        first = next((k for k, stmt in enumerate(before) if _yields(stmt)), len(before))
        self.before, self.opening = before[:first], before[first:]

    def made(self) -> tuple[gast.FunctionDef, str, set[str]]:
        """The definition; the name of the variable that says where it is; the names that what it
        does at once reads.
        """
        self.sent = self.fresh(SENT)
        first = self.statements(self.opening, [])
        trip = self.statements(self.loop.body, [])
        is_flag = len(self.points) == 1 and not first
        state = self.fresh(RESUMED if is_flag else POINT)
        arms = [(self.at_point(state, k), self.with_state(left, state, is_flag))
                for k, left in enumerate(self.points, 1)]
        first, trip = (self.with_state(body, state, is_flag) for body in (first, trip))
        body = self.dispatch(state, arms, first, is_flag)
        if may_fall_through(trip):
            body.append(gast.While(_constant(True), trip, []))
        else:
            body += trip
        parameters = gast.arguments(args=[_name(self.sent, gast.Param())], posonlyargs=[],
                                    vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None,
                                    defaults=[])
        advance = gast.FunctionDef(ADVANCE, parameters, body, [], None, None, [])
        copy_position(advance, self.loop)
        # what is bound in one turn and not read in a later one is a variable of `advance`
        later = Liveness(advance, body).entry
        kept = [name for name in self.stored([*self.opening, *self.loop.body]) if name in later]
        advance.body = [copy_position(gast.Nonlocal([*dict.fromkeys(kept), state]), self.loop),
                        *body]
        start = _constant(False) if is_flag else _constant(START)
        new = self.definition
        new.body = [*self.before, gast.Assign([_name(state, gast.Store())], start, None),
                    # they are variables of this function, also those that nothing binds yet
                    gast.If(_constant(False), [gast.Assign(
                        [_name(name, gast.Store())], _constant(None), None) for name in kept]
                        or [gast.Pass()], []),
                    advance, gast.Return(_name(ADVANCE))]
        for stmt in new.body:
            copy_position(stmt, self.loop)
        return new, state, read_names(self.before)

    def fresh(self, name: str) -> str:
        """The name, or one like it that the function does not use."""
        used = {x.id for x in gast.walk(self.definition) if isinstance(x, gast.Name)}
        while name in used:
            name += "_"
        return name

    def stored(self, body: list) -> list[str]:
        """The variables that these statements set."""
        augmented = [x.target.id for stmt in body for x in inside(stmt)
                     if isinstance(x, gast.AugAssign) and isinstance(x.target, gast.Name)]
        return [*bound_names(body), *augmented]

    def statements(self, body: list, after: list) -> list:
        """These statements and those that follow, up to the next trip, with a `return` in place of
        each `yield`.
        """
        found = [*body, *after]
        for k, stmt in enumerate(found):
            if not _yields(stmt):
                continue
            found, left = found[:k], found[k + 1:]
            match stmt:
                case gast.Expr(value=gast.Yield(value=item)):
                    return [*found, self.stop(item, left)]
                case gast.Assign(value=gast.Yield(value=item)):
                    sent = copy_position(gast.Assign(stmt.targets, _name(self.sent), None), stmt)
                    return [*found, self.stop(item, [sent, *left])]
                case gast.If(test=test) if not _yields(gast.Expr(test)):
                    arms = (self.statements(arm, copy_tree(left))
                            for arm in (stmt.body, stmt.orelse))
                    return [*found, copy_position(gast.If(test, *arms), stmt)]
            raise self.frame.refuse(
                "a generator that goes on for ever, and yields in an inner loop or an expression",
                self.definition, "write the loop where its values are used")
        return found

    def stop(self, item: gast.AST | None, left: list) -> gast.AST:
        """A statement that stands for `yield item`, where `left` follows."""
        self.points.append(None)
        number = len(self.points)
        self.points[number - 1] = self.statements(copy_tree(left), [])
        stop = gast.Return(item if item is not None else _constant(None))
        stop.point = number
        return copy_position(stop, item or self.loop)

    def with_state(self, body: list, state: str, is_flag: bool) -> list:
        """The statements, which set the state before they stop."""
        found = []
        for stmt in body:
            if hasattr(stmt, "point") and not is_flag:
                found.append(copy_position(
                    gast.Assign([_name(state, gast.Store())], _constant(stmt.point), None), stmt))
            if isinstance(stmt, gast.If):
                stmt.body = self.with_state(stmt.body, state, is_flag)
                stmt.orelse = self.with_state(stmt.orelse, state, is_flag)
            found.append(stmt)
        return found

    def at_point(self, state: str, number: int) -> gast.AST:
        return gast.Compare(_name(state), [gast.Eq()], [_constant(number)])

    def dispatch(self, state: str, arms: list, first: list, is_flag: bool) -> list:
        """The statements that do what is left at the point where it waits."""
        if is_flag:
            begun = gast.Assign([_name(state, gast.Store())], _constant(True), None)
            return [gast.If(_name(state), arms[0][1] or [gast.Pass()], [begun])]
        rest = first
        for test, body in reversed(arms):
            rest = [gast.If(test, body or [gast.Pass()], rest)]
        return rest


def _name(name: str, context=None) -> gast.Name:
    return gast.Name(name, context or gast.Load(), None, None)


def _constant(content) -> gast.Constant:
    return gast.Constant(content, None)
