"""Def-use sets of syntax trees and liveness of names: which names statements bind, mutate and read,
and which are read later.

Branches and loops pass on only live names: a temporary of a loop's body is no carry of the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import gast

SCOPES = (gast.FunctionDef, gast.AsyncFunctionDef, gast.Lambda, gast.ClassDef)
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


def inside(node: gast.AST) -> Iterator[gast.AST]:
    """`node` and its descendants, without the bodies of nested functions, in textual order."""
    yield node
    if isinstance(node, SCOPES):
        return
    for child in gast.iter_child_nodes(node):
        yield from inside(child)


def _all_inside(nodes: Iterable[gast.AST]) -> Iterator[gast.AST]:
    for node in nodes:
        yield from inside(node)


def names_in(target: gast.AST) -> list[str]:
    """The names that an assignment to `target` binds."""
    match target:
        case gast.Name():
            return [target.id]
        case gast.Tuple() | gast.List():
            return [name for item in target.elts for name in names_in(item)]
        case gast.Starred():
            return names_in(target.value)
    return []


def bound_names(nodes: Iterable[gast.AST]) -> dict[str, None]:
    """The names that these statements bind anew (augmented assignments, and the variables of
    comprehensions, apart), in order of appearance.
    """
    found: dict[str, None] = {}
    others = set()
    for node in _all_inside(nodes):
        match node:
            case gast.AugAssign():
                others.add(id(node.target))
            case gast.ListComp() | gast.SetComp() | gast.DictComp() | gast.GeneratorExp():
                others.update(id(n) for loop in node.generators for n in gast.walk(loop.target))
            case gast.Name(ctx=gast.Store() | gast.Del()) if id(node) not in others:
                found[node.id] = None
            case gast.FunctionDef():
                found[node.name] = None
    return found


def changed_names(nodes: Iterable[gast.AST]) -> dict[str, None]:
    """The names whose arrays or lists these statements mutate: `x[i] = v`, `x += v`, `x.append(v)`.
    """
    found: dict[str, None] = {}
    for node in _all_inside(nodes):
        match node:
            case gast.AugAssign(target=gast.Name(id=name)):
                found[name] = None
            case gast.Subscript(value=value, ctx=gast.Store()) | gast.Call(func=gast.Attribute(
                value=value, attr="append" | "pop" | "extend" | "insert" | "remove" | "clear"
                | "reverse" | "sort" | "fill")):
                while isinstance(value, (gast.Subscript, gast.Attribute)):
                    value = value.value
                if isinstance(value, gast.Name):
                    found[value.id] = None
    return found


def read_names(nodes: Iterable[gast.AST]) -> set[str]:
    """The names read, those of augmented assignments and of nested functions included; not those
    that nested functions and comprehensions bind.
    """
    found, pending = set(), list(nodes)
    while pending:
        node = pending.pop()
        below = list(gast.iter_child_nodes(node))
        match node:
            case gast.Name(ctx=gast.Load() | gast.Del()):
                found.add(node.id)
            case gast.AugAssign(target=gast.Name(id=name)):
                found.add(name)
            case gast.Lambda(args=args, body=body):
                found |= read_names([body]) - set(parameter_names(node))
                below = [args]  # defaults
            case gast.FunctionDef(body=body):
                found |= read_names(body) - own_names(node)
                below = [each for each in below if each not in body]  # defaults, decorators
            case gast.ListComp() | gast.SetComp() | gast.DictComp() | gast.GeneratorExp():
                found |= read_names(below) - bound_names(part.target
                                                         for part in node.generators).keys()
                below = [node.generators[0].iter]  # read outside the nested function
        pending += below
    return found


def own_names(node: gast.FunctionDef) -> set[str]:
    """The names that are variables of the function itself."""
    nodes = [*_all_inside(node.body)]
    added = {each.target.id for each in nodes
             if isinstance(each, gast.AugAssign) and isinstance(each.target, gast.Name)}
    declared = {name for each in nodes if isinstance(each, (gast.Nonlocal, gast.Global))
                for name in each.names}
    return {*parameter_names(node), *bound_names(node.body), *added} - declared


def parameter_names(node: gast.FunctionDef | gast.Lambda) -> list[str]:
    """The names of all parameters, in order."""
    a = node.args
    return [
        x.id for x in (*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs,
                       *([a.kwarg] if a.kwarg else []))
    ]


def may_leave(nodes: Iterable[gast.AST], returns_only: bool = False) -> bool:
    """Whether these statements may exit early: by `return`, or by a `break` or `continue` of an
    enclosing loop.
    """
    for node in nodes:
        match node:
            case gast.Return():
                return True
            case gast.Break() | gast.Continue():
                if not returns_only:
                    return True
            case gast.Try():
                if any(may_leave(part, returns_only) for part in parts_of_try(node)):
                    return True
            case gast.If():
                if may_leave(node.body, returns_only) or may_leave(node.orelse, returns_only):
                    return True
            case gast.For() | gast.While():
                if may_leave(node.body, True) or may_leave(node.orelse, returns_only):
                    return True
    return False


def parts_of_try(node: gast.Try) -> list[list]:
    """The statements of a `try`, of its handlers, its `else` and its `finally`."""
    return [node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody]


def may_stop(nodes: Iterable[gast.AST]) -> bool:
    """Whether these statements of a loop's body may end the loop, by `break` or `return`."""
    for node in nodes:
        match node:
            case gast.Return() | gast.Break():
                return True
            case gast.Try():
                if any(map(may_stop, parts_of_try(node))):
                    return True
            case gast.If():
                if may_stop(node.body) or may_stop(node.orelse):
                    return True
            case gast.For() | gast.While():
                if may_leave(node.body, True) or may_stop(node.orelse):
                    return True
    return False


def may_fall_through(nodes: list[gast.AST]) -> bool:
    """Whether control may reach the end of these statements."""
    for node in nodes:
        match node:
            case gast.Return() | gast.Break() | gast.Continue() | gast.Raise():
                return False
            case gast.If() if (node.orelse and not may_fall_through(node.body)
                               and not may_fall_through(node.orelse)):
                return False
    return True


def outer_names(nodes: Iterable[gast.AST]) -> dict[str, None]:
    """The names that these nodes declare `nonlocal`."""
    return {name: None for node in nodes if isinstance(node, gast.Nonlocal) for name in node.names}


class Liveness:
    """For each statement of a function, by identity: the names live after it.

    `heads[loop]` are the names that the next trip of a loop, or what follows it, may read.
    """

    def __init__(self, node: gast.FunctionDef | gast.Lambda, body: list):
        self.after: dict[int, frozenset[str]] = {}
        self.heads: dict[int, frozenset[str]] = {}
        # of an `if`: names live once its test is decided
        self.arms: dict[int, frozenset[str]] = {}
        self.reads: dict[int, frozenset[str]] = {}  # names that each statement itself reads
        # names that handlers around each statement may read
        self.caught: dict[int, frozenset[str]] = {}
        # the same, of the current statement
        self.handling: frozenset[str] = frozenset()
        self.tries: dict[int, frozenset[str]] = {}  # names live after the body of each `try`
        # names live after its handlers and its `else`, its `finally` included
        self.ends: dict[int, frozenset[str]] = {}
        # names that a trip of each loop may read before it binds them
        self.exposed: dict[int, frozenset[str]] = {}
        self.always = frozenset(name for inner in _all_inside(gast.iter_child_nodes(node))
                                if isinstance(inner, SCOPES) for name in read_names([inner]))
        # names that the function may read before it binds them
        self.entry = self._before(body, frozenset(), frozenset(), frozenset())

    def _before(self, body: list, after: frozenset, broken: frozenset,
                continued: frozenset) -> frozenset:
        for stmt in reversed(body):
            after |= self.handling
            self.after[id(stmt)], self.caught[id(stmt)] = after, self.handling
            if id(stmt) not in self.reads:
                self.reads[id(stmt)] = frozenset(read_names([stmt]))
            after = self._before_one(stmt, after, broken, continued)
        return after | self.handling

    def add(self, body: list, after: frozenset, stmt: gast.AST) -> None:
        """Add the liveness of statements that replace `stmt`."""
        self.handling = self.caught[id(stmt)]
        self._before(body, after, frozenset(), frozenset())
        self.handling = frozenset()

    def _before_one(self, stmt: gast.AST, after: frozenset, broken: frozenset,
                    continued: frozenset) -> frozenset:
        match stmt:
            case gast.Return() | gast.Raise():
                return frozenset(read_names([stmt]))
            case gast.Break():
                return broken
            case gast.Continue():
                return continued
            case gast.If():
                arms = (self._before(stmt.body, after, broken, continued)
                        | self._before(stmt.orelse, after, broken, continued))
                self.arms[id(stmt)] = arms
                return arms | read_names([stmt.test])
            case gast.For() | gast.While():
                return self._before_loop(stmt, after, broken, continued)
            case gast.Try():
                return self._before_try(stmt, after, broken, continued)
            case gast.Assign():
                killed = {name for target in stmt.targets for name in names_in(target)}
                return (after - killed) | read_names([stmt])
            case gast.AugAssign():
                return after | read_names([stmt])
            case gast.AnnAssign():
                killed = set(names_in(stmt.target)) if stmt.value is not None else set()
                read = read_names([stmt.value]) if stmt.value is not None else set()
                return (after
                        - killed) | read | (read_names([stmt.target]) if not killed else set())
            case gast.FunctionDef():
                return (after - {stmt.name}) | read_names([stmt])
        return after | read_names([stmt])

    def _before_try(self, stmt: gast.Try, after: frozenset, broken: frozenset,
                    continued: frozenset) -> frozenset:
        around = self.handling
        if stmt.finalbody:
            after = self._before(stmt.finalbody, after | broken | continued | around, broken,
                                 continued)
            broken, continued = after, after
            self.handling = around = around | after
        self.ends[id(stmt)] = after | around
        handlers = frozenset()
        for handler in stmt.handlers:
            name = frozenset(names_in(handler.name)) if handler.name is not None else frozenset()
            handlers |= self._before(handler.body, after, broken, continued) - name
            handlers |= read_names([handler.type]) if handler.type is not None else frozenset()
        orelse = self._before(stmt.orelse, after, broken, continued)
        self.tries[id(stmt)] = orelse | handlers | after | around
        self.handling = around | handlers
        before = self._before(stmt.body, orelse, broken, continued)
        self.arms[id(stmt)] = before | self.tries[id(stmt)]
        self.handling = self.caught[id(stmt)]
        return before

    def _before_loop(self, stmt, after: frozenset, broken: frozenset,
                     continued: frozenset) -> frozenset:
        head = self._before(stmt.orelse, after, broken, continued)
        targets = frozenset(names_in(stmt.target)) if isinstance(stmt, gast.For) else frozenset()
        nothing = frozenset()
        self.exposed[id(stmt)] = self._before(stmt.body, nothing, nothing, nothing) - targets
        if isinstance(stmt, gast.While):
            head |= read_names([stmt.test])
        while True:
            new = head | (self._before(stmt.body, head, after, head) - targets)
            if new == head:
                break
            head = new
        self.heads[id(stmt)] = head | after
        return head | read_names([stmt.iter]) if isinstance(stmt, gast.For) else head


class Outline:
    """The names of one function by role, from its text."""

    def __init__(self, node: gast.FunctionDef | gast.Lambda, body: list):
        self.node = node
        self.liveness = Liveness(node, body)
        augmented = {
            n.target.id
            for n in _all_inside(body)
            if isinstance(n, gast.AugAssign) and isinstance(n.target, gast.Name)
        }
        declared = outer_names(_all_inside(body))
        # statements inside a `try`, and their replacements: one_raise_per_statement.py
        self.parts: dict[int, list] = {}
        self.part_count = 0
        self.locals = {*parameter_names(node), *bound_names(body), *augmented}
        self.outer = tuple(name for name in declared if name in self.locals)
        self.own = self.locals - set(declared)
        self.written_inside = tuple(outer_names(n for stmt in body for n in gast.walk(stmt)))
        dump = any(
            isinstance(n, gast.AnnAssign) and isinstance(n.annotation, gast.Constant)
            for n in _all_inside(body))
        self.is_dump = dump
        # names invented by the printer in a dump of the IR: `t_3: "float64" = ...`
        self.temporaries = frozenset(name for name in self.locals - set(parameter_names(node))
                                     if dump and re.fullmatch(r"t(_\d+)*", name))


    def __deepcopy__(self, memo: dict) -> None:
        """No outline: what copies a definition may change it."""


def outline_of(node: gast.FunctionDef | gast.Lambda, body: list) -> Outline:
    """The outline of a function; cached with its definition."""
    if getattr(node, "outline", None) is None:
        node.outline = Outline(node, body)
    return node.outline
