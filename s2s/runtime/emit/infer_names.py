"""Infer the types of a function's names by a forward dataflow analysis over its statements.

A name may be bound to another type later.  Where paths meet, its type is the one that holds both,
as Numba unites them; a loop is gone through until the types at its head stay.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from numba import types

from .infer_expressions import (
    BINARY,
    MIXED,
    SCALARS,
    EmptyList,
    ExpressionTypes,
    ItemTypeFound,
    Types,
    is_handled,
)
from .ssa_names import Bindings, NotDirect

MOST_ROUNDS = 6


def inferred(typing, function: ast.FunctionDef, globals: Mapping[str, object],
             arguments: tuple) -> Inference:
    """Infer the types of `function`'s expressions, again from the start whenever the item type of
    an empty list becomes known.
    """
    bindings, told = Bindings(function), {}
    while True:
        try:
            return Inference(typing, function, globals, arguments, bindings, told)
        except ItemTypeFound:
            pass


class Inference(ExpressionTypes):
    """The types of `function`'s expressions for these argument types, and the type environments at
    the `heads` and `ends` of statements.
    """

    def __init__(self, typing, function: ast.FunctionDef, globals: Mapping[str, object],
                 arguments: tuple, bindings: Bindings, told: dict[ast.List, types.List]):
        super().__init__(typing, globals, bindings, told)
        self.heads: dict[int, Types] = {}
        self.ends: dict[int, Types | None] = {}
        self.results: list[types.Type] = []
        # (name, type) -> whether in a slot
        self.slots: dict[tuple[str, types.Type], bool] = {}
        # the types where `continue` and `break` leave a trip
        self.loops: list[tuple[list[Types], list[Types]]] = []
        start: Types = {}
        if len(function.args.args) != len(arguments):  # other parameters are keyword or variadic
            raise NotDirect
        for a, kind in zip(function.args.args, arguments):
            self.bind(a, a.arg, kind, start)
        if self.block(function.body, start) is not None:
            self.results.append(types.none)
        self.result = self.united(self.results) if self.results else types.none
        if any(isinstance(kind, EmptyList) for kind in self.kinds.values()):
            raise NotDirect

    def block(self, body: list[ast.stmt], known: Types | None) -> Types | None:
        """The type environment after the statements; None if control never reaches their end."""
        for k, stmt in enumerate(body):
            known = self.statement(stmt, known)
            if known is None:
                return None
            for name in self.bindings.over.get((id(body), k), ()):
                known.pop(name, None)
        return known

    def statement(self, stmt: ast.stmt, known: Types) -> Types | None:
        match stmt:
            case ast.Assign([target], value):
                self.assign(target, value, known)
            case ast.AugAssign(target, op, value):
                left = (known.get(target.id) if isinstance(target, ast.Name)
                        else self.type(target, known))
                if isinstance(left, (types.Array, types.List)):  # a written parameter
                    raise NotDirect
                kind = self.operation(stmt, BINARY.get(type(op)), (left, self.type(value, known)))
                if isinstance(target, ast.Name):
                    self.bind(target, target.id, kind, known)
                elif isinstance(self.kinds[id(target.value)], types.List):
                    self.check_item(stmt, kind)
                else:
                    self.check_element(target, kind)
            case ast.For():
                return self.loop(stmt, known)
            case ast.While(orelse=[]):
                return self.loop(stmt, known)
            case ast.If(test, body, others):
                self.choice(test, known)
                return self.meet(stmt,
                                 [self.block(body, dict(known)), self.block(others, dict(known))])
            case ast.Return(value):
                self.results.append(types.none if value is None
                                    else self.plain(self.type(value, known)))
                return None
            case ast.Raise(None):
                raise NotDirect
            case ast.Raise(exc, None):
                self.raised(exc, known)
                return None
            case ast.Break():
                self.loops[-1][1].append(known)
                return None
            case ast.Continue():
                self.loops[-1][0].append(known)
                return None
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(ast.Call() as call):
                self.type(call, known)
            case _:
                raise NotDirect
        return known

    def assign(self, target: ast.expr, value: ast.expr, known: Types) -> None:
        match target, value:
            case ast.Name(name), _:
                self.bind(target, name, self.type(value, known), known)
            case ast.Tuple(targets), ast.Tuple(values) if len(targets) == len(values):
                kinds = [self.type(v, known) for v in values]
                for t, kind in zip(targets, kinds):
                    self.bind_to(t, kind, known)
            case ast.Tuple(targets), _:
                kind = self.type(value, known)
                if not isinstance(kind, types.BaseTuple) or len(kind.types) != len(targets):
                    raise NotDirect
                for t, each in zip(targets, kind.types):
                    self.bind_to(t, each, known)
            case ast.Subscript(), _:
                self.type(target, known, binds=self.type(value, known))
            case _:
                raise NotDirect

    def bind_to(self, target: ast.expr, kind: types.Type, known: Types) -> None:
        match target:
            case ast.Name(name):
                self.bind(target, name, kind, known)
            case ast.Subscript():
                self.type(target, known, binds=kind)
            case _:
                raise NotDirect

    def bind(self, node: ast.AST, name: str, kind: types.Type, known: Types) -> None:
        if not is_handled(kind):
            raise NotDirect
        is_value = id(node) in self.bindings.values
        known[name] = self.kinds[id(node)] = kind if is_value else self.plain(kind)
        self.slots[name, known[name]] = self.slots.get((name, known[name]), False) or not is_value

    def kept(self) -> list[tuple[str, types.Type]]:
        """An estimate of the names and types that need slots."""
        met = {pair: True for types_ in (*self.heads.values(), *self.ends.values()) if types_
               for pair in types_.items() if pair[1] is not MIXED}
        return [pair for pair, is_slot in {**met, **self.slots}.items() if is_slot]

    def loop(self, stmt: ast.For | ast.While, known: Types) -> Types | None:
        if isinstance(stmt, ast.For):
            self.counted(stmt, known)
        head = known
        for _ in range(MOST_ROUNDS):
            self.heads[id(stmt)] = head
            inside = dict(head)
            self.loops.append(([], []))
            if isinstance(stmt, ast.For):
                self.bind(stmt.target, stmt.target.id, types.intp, inside)
            else:
                self.condition(stmt.test, inside)
            last = self.block(stmt.body, inside)
            continued, broken = self.loops.pop()
            again = self.joined([head, *continued, last])
            # every other name bound there is bound before it is read in a trip
            if all(again[name] == kind for name, kind in head.items()):
                break
            head = {name: again[name] for name in head}
        else:
            raise NotDirect
        never = (isinstance(stmt, ast.While) and isinstance(stmt.test, ast.Constant)
                 and stmt.test.value is True)
        return self.meet(stmt, broken if never else [again, *broken])

    def counted(self, stmt: ast.For, known: Types) -> None:
        match stmt:
            case ast.For(ast.Name(), ast.Call(ast.Name("range"), args, []), _,
                         []) if self.means_range() and 0 < len(args) < 4:
                for x in args:
                    if types.unliteral(self.type(x, known)) != types.intp:
                        raise NotDirect
            case _:
                raise NotDirect

    def means_range(self) -> bool:
        return "range" not in self.globals and "range" not in self.bindings.names

    def raised(self, exc: ast.expr, known: Types) -> None:
        made, args = ((exc.func, exc.args) if isinstance(exc, ast.Call) and not exc.keywords
                      else (exc, []))
        of = self.static(made)
        if not isinstance(of, type) or not issubclass(of, BaseException):
            raise NotDirect
        for x in args:
            if (not isinstance(x, ast.Constant)
                and not isinstance(self.plain(self.type(x, known)), SCALARS)):
                raise NotDirect

    def meet(self, stmt: ast.stmt, ways: list[Types | None]) -> Types | None:
        self.ends[id(stmt)] = found = self.joined(ways)
        return None if found is None else dict(found)

    def joined(self, ways: list[Types | None]) -> Types | None:
        """The join of these type environments."""
        ways = [way for way in ways if way is not None]
        if not ways:
            return None
        found = dict(ways[0])
        for way in ways[1:]:
            for name, kind in way.items():
                other = found.setdefault(name, kind)
                if other is not kind and other != kind:
                    found[name] = self.united([other, kind], MIXED)
        return found
