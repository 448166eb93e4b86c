"""Infer the types of expressions from the types of names.

What calls and operators give Numba's own tables say.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Mapping
from types import ModuleType

import numpy as np
from numba import types

from ...back.syntax.ast_names import nodes_in
from .ssa_names import Bindings, NotDirect

Types = dict[str, types.Type]

BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
          ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
          ast.Pow: operator.pow, ast.BitOr: operator.or_, ast.BitAnd: operator.and_,
          ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift}
UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_,
         ast.Invert: operator.invert}
COMPARED = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
            ast.Gt: operator.gt, ast.GtE: operator.ge}
PLAIN = {*BINARY.values(), *UNARY.values(), *COMPARED.values(), operator.getitem, operator.setitem,
         len, slice, abs, float, int}
SCALARS = (types.Number, types.Boolean)

_signatures: dict = {}  # cached signatures: (function, argument types)


class EmptyList(types.Type):
    """The type of the empty list made by this node, before anything is appended."""

    def __init__(self, node: ast.List):
        super().__init__(f"list that {id(node)} makes")
        self.node = node


class ItemTypeFound(Exception):
    """The item type of an empty list became known: type inference starts again."""


class NoCommonType(types.Type):
    """The type of a name whose values have no common type at a join: it must not be read there."""


MIXED = NoCommonType("of several types")


def is_handled(kind: types.Type) -> bool:
    """Whether direct lowering supports this type."""
    match kind:
        case types.Array():
            return isinstance(kind.dtype, SCALARS)
        case types.BaseTuple():
            return not isinstance(kind, types.BaseNamedTuple) and all(map(is_handled, kind.types))
        case types.List():
            return not kind.reflected and is_handled(kind.dtype)  # reflected lists belong to Python
    return (kind == types.none or isinstance(kind, EmptyList)
            or isinstance(kind, (*SCALARS, types.IntegerLiteral, types.BooleanLiteral)))


def is_element(of: types.Type, index: types.Type) -> bool:
    """Whether the index selects a single element."""
    indices = index.types if isinstance(index, types.BaseTuple) else (index,)
    return (isinstance(of, types.Array) and 0 < of.ndim == len(indices)
            and all(isinstance(k, types.Integer) for k in indices))


def is_constant(node: ast.expr) -> bool:
    """Whether Python's compiler folds the expression: without machine limits, and with `2**-1`
    equal to 0.5.
    """
    return (isinstance(node, ast.Constant)
            or isinstance(node, ast.UnaryOp) and is_constant(node.operand))


def is_negative(node: ast.UnaryOp) -> bool:
    """Whether it is a number literal with a minus."""
    return (isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)
            and not isinstance(node.operand.value, bool))


class ExpressionTypes:
    """The inferred types of expressions: `kinds` and `calls` by node, for a function with these
    `bindings`.
    """

    def __init__(self, typing, globals: Mapping[str, object], bindings: Bindings,
                 told: dict[ast.List, types.List]):
        self.typing, self.globals, self.bindings = typing, globals, bindings
        self.told = told  # item types of empty lists
        self.kinds: dict[int, types.Type] = {}
        self.calls: dict[int, object] = {}  # signatures
        self.statics: dict[int, object] = {}
        self.puts: dict[int, object] = {}  # signatures of storing an item back into a list
        self.pairs: dict[int, list[ast.Compare]] = {}  # the comparisons of a chain

    def united(self, kinds: list[types.Type], otherwise: types.Type | None = None) -> types.Type:
        """The common type of all of these."""
        first, *others = dict.fromkeys(map(self.plain, kinds))
        for kind in others:
            for a, b in ((first, kind), (kind, first)):
                if isinstance(a, EmptyList) and isinstance(b, types.List):
                    self.tell(a, b)
            first = None if MIXED in (first, kind) else self.typing.unify_types(first, kind)
            if first is None or not is_handled(first):
                if otherwise is None:
                    raise NotDirect
                return otherwise
        return first

    def tell(self, empty: EmptyList, kind: types.List) -> None:
        """Record the type of an empty list."""
        if not is_handled(kind):
            raise NotDirect
        self.told[empty.node] = kind
        raise ItemTypeFound

    @staticmethod
    def plain(kind: types.Type) -> types.Type:
        """The type without a literal value."""
        kind = types.unliteral(kind)
        return (types.Tuple.from_types([types.unliteral(t) for t in kind.types])
                if isinstance(kind, types.BaseTuple) else kind)

    def static(self, node: ast.expr) -> object:
        """The module-level or built-in object that the expression names; NotDirect if there is
        none.
        """
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
        except (ValueError, TypeError):  # no Numba type, or a number that is too large
            raise NotDirect from None

    def is_static(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.bindings.names

    def type(self, node: ast.expr, known: Types, binds: types.Type | None = None) -> types.Type:
        """The type of an expression; with `binds`, check that a value of that type can be stored in
        the element or slice.
        """
        if self.is_static(node):
            self.statics[id(node)] = found = self.static(node)
            kind = self.of_object(found)
            if isinstance(kind, (types.Array, types.BaseTuple)):
                raise NotDirect
        else:
            kind = self.typed(node, known, binds)
            if not is_handled(kind) and not isinstance(kind, (types.DType, types.SliceType)):
                raise NotDirect
        self.kinds[id(node)] = kind
        return kind

    def typed(self, node: ast.expr, known: Types, binds: types.Type | None) -> types.Type:
        match node:
            case ast.Constant(bool() | int() | float() | complex() as value):
                return self.of_object(value)
            case ast.Constant(None):
                return types.none
            case ast.Name(name):
                if name in known and known[name] is not MIXED:
                    return known[name]
            case ast.Tuple(items):
                return self.tuple_of([self.type(x, known) for x in items])
            case ast.BinOp(left, op, right) if not (is_constant(left) and is_constant(right)):
                return self.operation(node, BINARY.get(type(op)),
                                      (self.type(left, known), self.type(right, known)))
            case ast.UnaryOp(op, operand) if is_negative(node) or not is_constant(operand):
                return self.unary(node, self.type(operand, known))
            case ast.Compare(left, [op], [right]) if type(op) in COMPARED:
                return self.operation(node, COMPARED[type(op)],
                                      (self.type(left, known), self.type(right, known)))
            case ast.Compare(ops=ops) if len(ops) > 1:
                return self.united([self.type(pair, known) for pair in self.pairs_of(node)])
            case ast.BoolOp(_, values):
                if all(self.plain(self.type(v, known)) == types.boolean for v in values):
                    return types.boolean
            case ast.IfExp(test, body, other):
                self.choice(test, known)
                return self.united([self.type(body, known), self.type(other, known)])
            case ast.Attribute(value, attr):
                kind = self.type(value, known)
                return self.typing.resolve_getattr(kind, attr)
            case ast.List([]):
                return self.told.get(node) or EmptyList(node)
            case ast.List(items):
                return types.List(self.united([self.type(x, known) for x in items]))
            # an empty one, spelled out
            case ast.Subscript(ast.List([_]) as value, ast.Slice(None, ast.Constant(0), None)):
                return self.type(value, known)
            case ast.Subscript(value, index):
                return self.subscript(node, self.type(value, known), index, known, binds)
            case ast.Slice(lower, upper, step):
                kinds = [types.none if x is None else self.type(x, known)
                         for x in (lower, upper, *[step] * (step is not None))]
                return self.called(node, slice, tuple(kinds), {}).return_type
            case ast.Call(function, args, keywords) if all(k.arg for k in keywords):
                kinds = tuple(self.type(x, known) for x in args)
                return self.call(node, function, kinds,
                                 {k.arg: self.type(k.value, known) for k in keywords}, known)
        raise NotDirect

    def tuple_of(self, kinds: list[types.Type]) -> types.Type:
        if all(isinstance(k, types.Literal) for k in kinds):
            return types.Tuple(kinds)
        return types.Tuple.from_types([self.plain(k) for k in kinds])

    def unary(self, node: ast.UnaryOp, kind: types.Type) -> types.Type:
        if (isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)
            and isinstance(kind, types.IntegerLiteral)):
            return types.literal(-node.operand.value)
        return self.operation(node, UNARY[type(node.op)], (kind,))

    def pairs_of(self, node: ast.Compare) -> list[ast.Compare]:
        """The comparisons `a < b` and `b < c` of `a < b < c`."""
        if any(isinstance(each, ast.Call) for x in node.comparators[:-1] for each in nodes_in(x)):
            raise NotDirect  # it would be called for both comparisons
        operands = [node.left, *node.comparators]
        return self.pairs.setdefault(id(node), [ast.Compare(a, [op], [b]) for a, op, b in zip(
            operands, node.ops, node.comparators)])

    def operation(self, node: ast.AST, function: Callable | None, kinds: tuple) -> types.Type:
        if (function is None
            or not all(isinstance(k,
                                  (*SCALARS, types.IntegerLiteral, types.BooleanLiteral,
                                   types.Array, types.List)) for k in kinds)):
            raise NotDirect
        return self.called(node, function, kinds, {}).return_type

    def check_item(self, stmt: ast.AugAssign, kind: types.Type) -> None:
        """Check that the result of an augmented assignment to a list item can be stored back."""
        of, index = self.kinds[id(stmt.target.value)], self.kinds[id(stmt.target.slice)]
        if not isinstance(index, types.Integer) or self.plain(kind) != of.dtype:
            raise NotDirect
        self.puts[id(stmt)] = self.signature(operator.setitem, (of, index, of.dtype), {})

    def condition(self, node: ast.expr, known: Types) -> None:
        """Check that an expression is a valid `if` condition."""
        if self.plain(self.type(node, known)) != types.boolean:
            raise NotDirect

    def choice(self, test: ast.expr, known: Types) -> None:
        """Check that an expression is a valid condition of a two-way choice; of a constant
        condition, Python and Numba type one branch only.
        """
        if isinstance(test, ast.Constant):
            raise NotDirect
        self.condition(test, known)

    def subscript(self, node: ast.Subscript, of: types.Type, index: ast.expr, known: Types,
                  binds: types.Type | None) -> types.Type:
        if isinstance(of, types.BaseTuple) and binds is None:
            match self.type(index, known):
                case types.IntegerLiteral(literal_value=k) if -len(of.types) <= k < len(of.types):
                    return of.types[k]
        if isinstance(of, types.List) and not isinstance(index, ast.Tuple):
            kind = self.part(index, known)
            if kind == types.none or binds is not None and not isinstance(kind, types.Integer):
                raise NotDirect
            if binds is None:
                return self.called(node, operator.getitem, (of, kind), {}).return_type
            if self.plain(binds) != of.dtype:
                raise NotDirect
            self.called(node, operator.setitem, (of, kind, of.dtype), {})
            return of.dtype
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
        """The type of one entry of an index: a number or a slice; None is a new axis."""
        if isinstance(index, ast.Constant) and index.value is None:
            self.kinds[id(index)] = types.none
            return types.none
        if isinstance(index, ast.Slice):
            kind = self.kinds[id(index)] = self.typed(index, known, None)
            return kind
        kind = self.plain(self.type(index, known))
        if not isinstance(kind, types.Integer):
            raise NotDirect
        self.kinds[id(index)] = kind
        return kind

    def check_element(self, target: ast.expr, kind: types.Type) -> None:
        """Check that a number of this type can be stored in `target`."""
        if not isinstance(target, ast.Subscript):
            raise NotDirect
        of, index = self.kinds[id(target.value)], self.kinds[id(target.slice)]
        kind = self.plain(kind)
        if (not (is_element(of, index) and of.mutable and isinstance(kind, SCALARS))
            or isinstance(kind, types.Complex) and not isinstance(of.dtype, types.Complex)):
            raise NotDirect

    def call(self, node: ast.Call, function: ast.expr, kinds: tuple,
             keywords: Mapping[str, types.Type], known: Types) -> types.Type:
        if self.is_static(function):
            # its item type is found later
            if self.static(function) is len and isinstance(kinds[0], EmptyList):
                return types.intp
            if (self.static(function) is np.shape and len(kinds) == 1 and not keywords
                and isinstance(kinds[0], types.Array)):
                return types.UniTuple(types.intp, kinds[0].ndim)
            return self.called(node, self.static(function), kinds, keywords).return_type
        if isinstance(function, ast.Attribute):
            of = self.type(function.value, known)
            if isinstance(of, EmptyList) and function.attr == "append" and len(kinds) == 1:
                self.tell(of, types.List(self.plain(kinds[0])))
            bound = self.typing.resolve_getattr(of, function.attr)
            if isinstance(bound, types.BoundFunction):
                self.kinds[id(function)] = bound
                found = self.called(node, bound, kinds, keywords)
                # its type would change here
                if isinstance(of, types.List) and found.recvr not in (None, of):
                    raise NotDirect
                return found.return_type
        raise NotDirect

    def called(self, node: ast.AST, function: object, kinds: tuple,
               keywords: Mapping[str, types.Type]):
        """The signature of a call."""
        self.calls[id(node)] = found = self.signature(function, kinds, keywords)
        return found

    def signature(self, function: object, kinds: tuple, keywords: Mapping[str, types.Type]):
        """The signature in Numba's tables for this function and these argument types."""
        # that would compile a function of the module
        if any(isinstance(kind, EmptyList) for kind in (*kinds, *keywords.values())):
            raise NotDirect
        key = function, kinds, tuple(keywords.items())
        found = _signatures.get(key)
        if found is None:
            kind = function if isinstance(function, types.Type) else self.of_object(function)
            found = self.typing.resolve_function_type(kind, kinds, dict(keywords))
            if found is None:
                raise NotDirect
            # Numba compiles other functions on request, for the flags in force
            if function in PLAIN or isinstance(function, (np.ufunc, types.NumberClass)):
                _signatures[key] = found
        return found
