"""The types of the expressions of a function, found in the order in which they run.

A name may be bound to another type later.  Where paths meet, its type is the one that holds both, as Numba unites them; a loop
is gone through until the types at its head stay.  What calls and operators give Numba's own tables say.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Mapping
from types import ModuleType

import numpy as np
from numba.core import types

from .bindings import Bindings, NotDirect

Types = dict[str, types.Type]

BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
          ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
          ast.LShift: operator.lshift, ast.RShift: operator.rshift}
UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert}
COMPARED = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
PLAIN = {*BINARY.values(), *UNARY.values(), *COMPARED.values(), operator.getitem, operator.setitem, len, slice, abs, float, int}
SCALARS = (types.Number, types.Boolean)
MOST_ROUNDS = 6

_signatures: dict = {}  # what Numba's tables said: a call of this, with arguments of these types


class Mixed(types.Type):
    """The type of a name whose values have nothing in common where paths meet: it is not read there."""


MIXED = Mixed("of several types")


def is_handled(kind: types.Type) -> bool:
    """Whether values of this type are handled here."""
    match kind:
        case types.Array():
            return isinstance(kind.dtype, SCALARS)
        case types.BaseTuple():
            return not isinstance(kind, types.BaseNamedTuple) and all(map(is_handled, kind.types))
    return isinstance(kind, (*SCALARS, types.IntegerLiteral, types.BooleanLiteral))


def is_element(of: types.Type, index: types.Type) -> bool:
    """Whether the index means one element."""
    indices = index.types if isinstance(index, types.BaseTuple) else (index,)
    return isinstance(of, types.Array) and 0 < of.ndim == len(indices) and all(isinstance(k, types.Integer) for k in indices)


def is_constant(node: ast.expr) -> bool:
    """Whether Python's compiler computes it: without the limits of machine numbers, and `2**-1` is 0.5."""
    return isinstance(node, ast.Constant) or isinstance(node, ast.UnaryOp) and is_constant(node.operand)


def is_negative(node: ast.UnaryOp) -> bool:
    """Whether it is a number with a minus before it."""
    return isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and not isinstance(node.operand.value, bool)


class Inference:
    """The types of `function`'s expressions for arguments of these types: `kinds` and `calls` by node, `heads` and `ends` of statements where paths meet."""

    def __init__(self, typing, function: ast.FunctionDef, globals: Mapping[str, object], arguments: tuple, bindings: Bindings):
        self.typing, self.globals, self.bindings = typing, globals, bindings
        self.kinds: dict[int, types.Type] = {}
        self.calls: dict[int, object] = {}  # signatures
        self.statics: dict[int, object] = {}
        self.pairs: dict[int, list[ast.Compare]] = {}  # the comparisons of a chain
        self.heads: dict[int, Types] = {}
        self.ends: dict[int, Types | None] = {}
        self.results: list[types.Type] = []
        self.slots: dict[tuple[str, types.Type], bool] = {}  # names, of which types: whether in a slot
        self.loops: list[tuple[list[Types], list[Types]]] = []  # the types where `continue` and `break` leave a trip
        start: Types = {}
        if len(function.args.args) != len(arguments):  # others are given by keyword, or are several
            raise NotDirect
        for a, kind in zip(function.args.args, arguments):
            self.bind(a, a.arg, kind, start)
        if self.block(function.body, start) is not None:
            self.results.append(types.none)
        self.result = self.united(self.results) if self.results else types.none

    # ------------------------------------------------------------------------------------------ statements

    def block(self, body: list[ast.stmt], known: Types | None) -> Types | None:
        """The types after the statements; None if they are never left at their end."""
        for stmt in body:
            known = self.statement(stmt, known)
            if known is None:
                return None
        return known

    def statement(self, stmt: ast.stmt, known: Types) -> Types | None:
        match stmt:
            case ast.Assign([target], value):
                self.assign(target, value, known)
            case ast.AugAssign(target, op, value):
                left = known.get(target.id) if isinstance(target, ast.Name) else self.type(target, known)
                kind = self.operation(stmt, BINARY.get(type(op)), (left, self.type(value, known)))
                if isinstance(target, ast.Name):
                    self.bind(target, target.id, kind, known)
                else:
                    self.check_element(target, kind)
            case ast.For():
                return self.loop(stmt, known)
            case ast.While(orelse=[]):
                return self.loop(stmt, known)
            case ast.If(test, body, others):
                self.choice(test, known)
                return self.meet(stmt, [self.block(body, dict(known)), self.block(others, dict(known))])
            case ast.Return(value):
                self.results.append(types.none if value is None else self.plain(self.type(value, known)))
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
                self.type(call, known, of_nothing=True)
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
        if not isinstance(target, ast.Name):
            raise NotDirect
        self.bind(target, target.id, kind, known)

    def bind(self, node: ast.AST, name: str, kind: types.Type, known: Types) -> None:
        if not is_handled(kind):
            raise NotDirect
        is_value = id(node) in self.bindings.values
        known[name] = self.kinds[id(node)] = kind if is_value else self.plain(kind)
        self.slots[name, known[name]] = self.slots.get((name, known[name]), False) or not is_value

    def kept(self) -> list[tuple[str, types.Type]]:
        """The names and types for which slots are needed, more or less."""
        met = {pair: True for types_ in (*self.heads.values(), *self.ends.values()) if types_ for pair in types_.items() if pair[1] is not MIXED}
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
            if all(again[name] == kind for name, kind in head.items()):  # what else is bound there, a trip binds before it reads it
                break
            head = {name: again[name] for name in head}
        else:
            raise NotDirect
        never = isinstance(stmt, ast.While) and isinstance(stmt.test, ast.Constant) and stmt.test.value is True
        return self.meet(stmt, broken if never else [again, *broken])

    def counted(self, stmt: ast.For, known: Types) -> None:
        match stmt:
            case ast.For(ast.Name(), ast.Call(ast.Name("range"), args, []), _, []) if self.means_range() and 0 < len(args) < 4:
                for x in args:
                    if types.unliteral(self.type(x, known)) != types.intp:
                        raise NotDirect
            case _:
                raise NotDirect

    def means_range(self) -> bool:
        return "range" not in self.globals and "range" not in self.bindings.names

    def raised(self, exc: ast.expr, known: Types) -> None:
        made, args = (exc.func, exc.args) if isinstance(exc, ast.Call) and not exc.keywords else (exc, [])
        of = self.static(made)
        if not isinstance(of, type) or not issubclass(of, BaseException):
            raise NotDirect
        for x in args:
            if not isinstance(x, ast.Constant) and not isinstance(self.plain(self.type(x, known)), SCALARS):
                raise NotDirect

    def meet(self, stmt: ast.stmt, ways: list[Types | None]) -> Types | None:
        self.ends[id(stmt)] = found = self.joined(ways)
        return None if found is None else dict(found)

    def joined(self, ways: list[Types | None]) -> Types | None:
        """The types where these ways meet."""
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

    def united(self, kinds: list[types.Type], otherwise: types.Type | None = None) -> types.Type:
        """The type that holds values of all of these."""
        first, *others = dict.fromkeys(map(self.plain, kinds))
        for kind in others:
            first = None if MIXED in (first, kind) else self.typing.unify_types(first, kind)
            if first is None or not is_handled(first):
                if otherwise is None:
                    raise NotDirect
                return otherwise
        return first

    @staticmethod
    def plain(kind: types.Type) -> types.Type:
        """The type without what is known of its value."""
        kind = types.unliteral(kind)
        return types.Tuple.from_types([types.unliteral(t) for t in kind.types]) if isinstance(kind, types.BaseTuple) else kind

    # ----------------------------------------------------------------------------------------- expressions

    def static(self, node: ast.expr) -> object:
        """The object that the text of an expression names, of the module's or of Python's; NotDirect if there is none."""
        match node:
            case ast.Name(name) if name not in self.bindings.names:
                if name in self.globals:
                    return self.globals[name]
                if hasattr(builtins, name):
                    return getattr(builtins, name)
            case ast.Attribute(value, attr):
                of = self.static(value)
                if isinstance(of, ModuleType) and hasattr(of, attr):
                    return getattr(of, attr)
        raise NotDirect

    def of_object(self, found: object) -> types.Type:
        try:
            return self.typing.resolve_value_type_prefer_literal(found)
        except (ValueError, TypeError):  # no type of Numba's, a number that is too large
            raise NotDirect from None

    def is_static(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.bindings.names

    def type(self, node: ast.expr, known: Types, of_nothing: bool = False, binds: types.Type | None = None) -> types.Type:
        """The type of an expression; with `binds` of an element or part of an array, that what is put there has that type."""
        if self.is_static(node):
            self.statics[id(node)] = found = self.static(node)
            kind = self.of_object(found)
            if isinstance(kind, (types.Array, types.BaseTuple)):
                raise NotDirect
        else:
            kind = self.typed(node, known, binds)
            if not is_handled(kind) and not isinstance(kind, types.DType) and not (of_nothing and kind == types.none):
                raise NotDirect
        self.kinds[id(node)] = kind
        return kind

    def typed(self, node: ast.expr, known: Types, binds: types.Type | None) -> types.Type:
        match node:
            case ast.Constant(bool() | int() | float() | complex() as value):
                return self.of_object(value)
            case ast.Name(name):
                if name in known and known[name] is not MIXED:
                    return known[name]
            case ast.Tuple(items):
                kinds = [self.type(x, known) for x in items]
                if all(isinstance(k, types.Literal) for k in kinds):
                    return types.Tuple(kinds)
                return types.Tuple.from_types([self.plain(k) for k in kinds])
            case ast.BinOp(left, op, right) if not (is_constant(left) and is_constant(right)):
                return self.operation(node, BINARY.get(type(op)), (self.type(left, known), self.type(right, known)))
            case ast.UnaryOp(op, operand) if is_negative(node) or not is_constant(operand):
                kind = self.type(operand, known)
                if isinstance(op, ast.USub) and isinstance(operand, ast.Constant) and isinstance(kind, types.IntegerLiteral):
                    return types.literal(-operand.value)
                return self.operation(node, UNARY[type(op)], (kind,))
            case ast.Compare(left, [op], [right]) if type(op) in COMPARED:
                return self.operation(node, COMPARED[type(op)], (self.type(left, known), self.type(right, known)))
            case ast.Compare(left, ops, rights) if len(ops) > 1:
                operands = [left, *rights]
                if any(isinstance(each, ast.Call) for x in rights[:-1] for each in ast.walk(x)):
                    raise NotDirect  # it would be called for both comparisons
                pairs = self.pairs.setdefault(id(node), [ast.Compare(a, [op], [b]) for a, op, b in zip(operands, ops, rights)])
                return self.united([self.type(pair, known) for pair in pairs])
            case ast.BoolOp(_, values):
                if all(self.plain(self.type(v, known)) == types.boolean for v in values):
                    return types.boolean
            case ast.IfExp(test, body, other):
                self.choice(test, known)
                return self.united([self.type(body, known), self.type(other, known)])
            case ast.Attribute(value, attr):
                kind = self.type(value, known)
                return self.typing.resolve_getattr(kind, attr)
            case ast.Subscript(value, index):
                return self.subscript(node, self.type(value, known), index, known, binds)
            case ast.Slice(lower, upper, None):
                kinds = [types.none if x is None else self.type(x, known) for x in (lower, upper)]
                return self.called(node, slice, tuple(kinds), {}).return_type
            case ast.Call(function, args, keywords) if all(k.arg for k in keywords):
                kinds = tuple(self.type(x, known) for x in args)
                return self.call(node, function, kinds, {k.arg: self.type(k.value, known) for k in keywords}, known)
        raise NotDirect

    def operation(self, node: ast.AST, function: Callable | None, kinds: tuple) -> types.Type:
        if function is None or not all(isinstance(k, (*SCALARS, types.IntegerLiteral, types.BooleanLiteral)) for k in kinds):
            raise NotDirect
        return self.called(node, function, kinds, {}).return_type

    def condition(self, node: ast.expr, known: Types) -> None:
        """That an expression may stand after `if`."""
        if self.plain(self.type(node, known)) != types.boolean:
            raise NotDirect

    def choice(self, test: ast.expr, known: Types) -> None:
        """That an expression may choose one of two ways; where it is a constant, Python and Numba know but one."""
        if isinstance(test, ast.Constant):
            raise NotDirect
        self.condition(test, known)

    def subscript(self, node: ast.Subscript, of: types.Type, index: ast.expr, known: Types, binds: types.Type | None) -> types.Type:
        if isinstance(of, types.BaseTuple) and binds is None:
            match self.type(index, known):
                case types.IntegerLiteral(literal_value=k) if -len(of.types) <= k < len(of.types):
                    return of.types[k]
        if not isinstance(of, types.Array):
            raise NotDirect
        if isinstance(index, ast.Tuple):
            kinds = [self.part(x, known) for x in index.elts]
            kind = self.kinds[id(index)] = types.Tuple.from_types(kinds)
        else:
            kind = self.part(index, known)
        if binds is not None:
            if isinstance(binds, types.Array) or not is_element(of, kind):
                self.called(node, operator.setitem, (of, kind, binds), {})
            else:
                self.check_element(node, binds)
            return of.dtype
        return self.called(node, operator.getitem, (of, kind), {}).return_type

    def part(self, index: ast.expr, known: Types) -> types.Type:
        """The type of an index of one axis: a number or a slice."""
        if isinstance(index, ast.Slice):
            kind = self.kinds[id(index)] = self.typed(index, known, None)
            return kind
        kind = self.plain(self.type(index, known))
        if not isinstance(kind, types.Integer):
            raise NotDirect
        self.kinds[id(index)] = kind
        return kind

    def check_element(self, target: ast.expr, kind: types.Type) -> None:
        """That a number of this type may be put where `target` says."""
        if not isinstance(target, ast.Subscript):
            raise NotDirect
        of, index = self.kinds[id(target.value)], self.kinds[id(target.slice)]
        kind = self.plain(kind)
        if not (is_element(of, index) and of.mutable and isinstance(kind, SCALARS)) or isinstance(kind, types.Complex) and not isinstance(of.dtype, types.Complex):
            raise NotDirect

    def call(self, node: ast.Call, function: ast.expr, kinds: tuple, keywords: Mapping[str, types.Type], known: Types) -> types.Type:
        if self.is_static(function):
            return self.called(node, self.static(function), kinds, keywords).return_type
        if isinstance(function, ast.Attribute):
            of = self.type(function.value, known)
            bound = self.typing.resolve_getattr(of, function.attr)
            if isinstance(bound, types.BoundFunction):
                self.kinds[id(function)] = bound
                return self.called(node, bound, kinds, keywords).return_type
        raise NotDirect

    def called(self, node: ast.AST, function: object, kinds: tuple, keywords: Mapping[str, types.Type]):
        """The signature of a call."""
        key = function, kinds, tuple(keywords.items())
        found = _signatures.get(key)
        if found is None:
            kind = function if isinstance(function, types.Type) else self.of_object(function)
            found = self.typing.resolve_function_type(kind, kinds, dict(keywords))
            if found is None:
                raise NotDirect
            if function in PLAIN or isinstance(function, (np.ufunc, types.NumberClass)):  # Numba compiles others for the flags in force, when it is asked
                _signatures[key] = found
        self.calls[id(node)] = found
        return found
