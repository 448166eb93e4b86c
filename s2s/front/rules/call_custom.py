"""The callee of a call of a function with derivative rules (ops/program/custom_rules.py): builds
the function and its rules on demand.

A call is of the leaves of its arguments.  Compile-time arguments (functions, strings, objects) are
part of the callee.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from weakref import WeakKeyDictionary

from ...errors import (
    DerivativeError,
    Line,
    S2SError,
    SourceError,
    TypeMismatchError,
    UnsupportedError,
)
from ...ir.builder import Builder, emit
from ...ir.graph import Block, Function, Value, identifier, walk
from ...ir.reemit import emit_block
from ...ir.types import FLOAT, Array, Scalar, Static, Tuple, Type, carries_derivative
from ...ops.arrays.reduce import is_complex
from ...ops.core.control import call as call_record
from ...ops.core.control import item, packed
from ...ops.core.record import dtype_of, value
from ...ops.core.shape import spread, zeros_of
from ...ops.program.custom_rules import Halves, in_shape
from ...ops.program.pytree import leaf_types, leaves_of, member_name
from ..domain.functions import Local
from ..eval.build import callee_of
from ..eval.entry_line import definition_line
from ..eval.opaque_calls import argument_names, foreign_function
from ..eval.unwrap_callable import signature_of
from ..syntax.dependencies import (
    collect_dependencies,
    is_current,
    note_dependencies,
    note_dependency,
)


def in_order(type: Type) -> bool:
    """Whether a rule's result is a tuple or a list; the members of a dict have no order."""
    return (isinstance(type, Tuple)
            and (type.form is None or type.form.kind in ("list", "namedtuple")))


@dataclass(frozen=True)
class RuleOf:
    """A getter of a function's current rules."""

    custom: object

    def __call__(self):
        return self.custom.rules()


class RuledCallee:
    """A `Custom` specialised to arguments of one structure, as the callee of a `call` op.  See
    ops/program/custom_rules.py.
    """

    def __init__(self, custom, arguments: tuple):
        self.custom, self.arguments, self.name = custom, arguments, custom.name
        self.leaves = [type for tree in arguments for type in _data_in(tree)]
        self.count = self.own = len(self.leaves)
        self.fixed = frozenset(k for k, owner in enumerate(self.owners()) if owner in self.nondiff)
        self.flat: WeakKeyDictionary[Function, Function] = WeakKeyDictionary()
        self.made: dict[tuple, object] = {}

    def __repr__(self) -> str:
        return f"<ruled {self.name}>"

    @property
    def is_bare(self) -> bool:
        """Whether a call of the function is printed as the call of a library function that it
        consists of.
        """
        return hasattr(self.custom.function, "is_bare")

    @property
    def nondiff(self) -> tuple[int, ...]:
        """The indices of the arguments without a derivative."""
        return tuple(
            sorted(k % len(self.arguments) for k in self.custom.nondiff_argnums
                   if -len(self.arguments) <= k < len(self.arguments)))

    def owners(self) -> list[int]:
        """For each leaf, the index of its argument."""
        return [k for k, tree in enumerate(self.arguments) for _ in _data_in(tree)]

    @property
    def begins(self) -> Line | None:
        return definition_line(self.custom.function)

    # the function

    def function_for(self, values: Sequence[Value]) -> Function:
        """The IR of f(*leaves, *captures) -> leaves of the result."""
        built = self.built(values)
        if built not in self.flat:
            self.flat[built] = self.flattened(built)
        return self.flat[built]

    def built(self, values: Sequence[Value]) -> Function:
        """The function, of unflattened arguments."""
        types = self.types(values)
        if self.custom.like is not None:
            key = "foreign", tuple(types)
            if key not in self.made:
                self.made[key] = foreign_function(self.custom.function, self.name, self.custom.like,
                                                  types)
            return self.made[key]
        try:
            return callee_of(self.custom.function, len(types)).function_for(
                [Value(t) for t in types])
        except (SourceError, UnsupportedError) as refused:
            raise self.custom.with_like_remedy(refused)

    def flattened(self, built: Function) -> Function:
        """A function of arguments, as a function of their leaves."""
        block, args, captured = self.open_block(built)
        with Builder(block):
            results = emit_block(built.block, [*args, *captured], {})
            block.yields = [
                leaf for y in results for leaf in leaves_of(y) if not isinstance(leaf.type, Static)
            ]
        return built.remade(block, tupled=len(block.yields) != 1, defaults={}, meetings=())

    def open_block(
        self, built: Function,
        extra: Sequence[Value] = ()) -> tuple[Block, list[Value], list[Value]]:
        """A block with a parameter for each leaf of the arguments, `extra`, and the captures of
        `built`; and the arguments.
        """
        count = len(built.params) - len(built.captures)
        params: list[Value] = []
        block = Block(params)
        with Builder(block):
            args = [parameters_of(p.type, p.name, params) for p in built.params[:count]]
        captured = [Value(p.type, p.name) for p in built.params[count:]]
        params += [*extra, *captured]
        return block, args, captured

    def getters(self, values: Sequence[Value]) -> tuple:
        return tuple(self.function_for(values).captures.values())

    def types(self, values: Sequence[Value]) -> list[Type]:
        """The types of the arguments, for leaves like `values`."""
        rest = iter(values)
        return [_typed(tree, rest) for tree in self.arguments]

    def result_type(self, values: Sequence[Value]) -> Type:
        """The type of the unflattened result."""
        built = self.built(values)
        types = [y.type for y in built.results]
        return Tuple(tuple(types)) if built.tupled else types[0]

    # the rules

    def missing(self, mode: str) -> S2SError:
        if mode == "jvp" and self.custom.fwd is not None:
            return DerivativeError(
                f"{self.name} has a rule for reverse mode only (defvjp), and forward mode is asked",
                self.begins, f"give it one for forward mode, too: {self.name}.defjvp(rule), "
                "where rule(primals, tangents) returns the value and its tangent")
        method, rule = (("defjvp", "rule") if self.custom.kind == "custom_jvp"
                        else ("defvjp", "fwd, bwd"))
        return DerivativeError(f"{self.name} is a {self.custom.kind} function without a rule",
                               self.begins, f"give it one: {self.name}.{method}({rule})")

    def cached(self, kind: str, values: Sequence[Value], make: Callable):
        """The result of `make` for these argument types, cached by rule and by the function it
        belongs to.
        """
        note_dependency(RuleOf(self.custom), self.custom.rules())
        key = kind, self.built(values), self.custom.rules()
        made, depends = self.made.get(key, (None, None))
        if made is None or not is_current(depends):
            with collect_dependencies() as depends:
                made = make()
            self.made[key] = made, depends
        else:
            note_dependencies(depends)
        return made

    def jvp(self, values: Sequence[Value]) -> Function | None:
        if self.custom.each:
            return self.cached("jvp", values, lambda: self._jvp_of_each(values))
        if self.custom.jvp is None:
            return None
        return self.cached("jvp", values, lambda: self._jvp(values))

    def _jvp(self, values: Sequence[Value]) -> Function:
        types, rule = self.types(values), self.custom.jvp
        fixed = [types[k] for k in self.nondiff]
        primals = Tuple(tuple(t for k, t in enumerate(types) if k not in self.nondiff))
        built = built_rule(rule, (*fixed, primals, tangent_type(primals)))
        result = self.result_type(values)
        function = self.built(values)
        block, args, dots, captured = self.with_dots(function, built)
        with Builder(block):
            known = [args[k] for k in self.nondiff]
            rest = [x for k, x in enumerate(args) if k not in self.nondiff]
            tangents = [tangents_like(x, iter_dots) for iter_dots in [iter(dots)] for x in rest]
            found = emit_block(
                built.block, [*known, packed(rest, None),
                              packed(tangents, None), *captured], {})
            if not built.tupled or len(found) != 2:
                raise self.wrong(
                    "jvp", rule,
                    f"returns {_said(built)}, and a pair is needed: the value and its tangent")
            ys = self.like(found[0], result, rule, "the value")
            y_dots = self.like(found[1], result, rule, "the tangent", tangent=True)
            block.yields = [*ys, *self.filled(y_dots, ys, rule)]
        return built.remade(block, tupled=True, defaults={}, meetings=(),
                            captures=dict(built.captures))

    def with_dots(self, function: Function,
                  built: Function) -> tuple[Block, list, list[Value], list[Value]]:
        """A block of the leaves of the arguments, their tangents and the captures of `built`; and
        the arguments, and so on.
        """
        params: list[Value] = []
        count = len(function.params) - len(function.captures)
        block = Block(params)
        with Builder(block):
            args = [parameters_of(p.type, p.name, params) for p in function.params[:count]]
        dots = [
            Value(p.type, f"{p.name}_dot") for k, p in enumerate(params)
            if k not in self.fixed and carries_derivative(p.type)
        ]
        captured = [
            Value(p.type, p.name) for p in built.params[len(built.params) - len(built.captures):]
        ]
        params += [*dots, *captured]
        return block, args, dots, captured

    def filled(self, y_dots: Sequence[Value | None], ys: Sequence[Value],
               rule: Callable) -> list[Value]:
        """The tangents of those of `ys` that have one, broadcast to their shapes."""
        found = []
        for y, dot in zip(ys, y_dots):
            if carries_derivative(y.type):
                found.append(
                    zeros_of(y) if dot is
                    None else self.of_shape(dot, y.type, y, rule, "a tangent"))
        return found

    def _jvp_of_each(self, values: Sequence[Value]) -> Function:
        """The sum of the results of the rules for single arguments."""
        function = self.built(values)
        types, rules = self.types(values), self.custom.each
        wanted = [k for k in range(len(types)) if k not in self.nondiff]
        if len(rules) != len(wanted):
            raise self.wrong(
                "jvps", rules[0] or self.custom.function,
                f"is one of {len(rules)}, and {self.name} has {len(wanted)} arguments to "
                "differentiate"
            )
        block, args, dots, _ = self.with_dots(function, function)
        captures = dict(function.captures)
        with Builder(block):
            results = emit(call_record, *block.params[:self.count],
                           *block.params[self.count + len(dots):], callee=self)
            ys = list(results) if isinstance(results, tuple) else [results]
            y = unflatten(self.result_type(values), iter(ys))
            total: list[Value | None] = [None] * len(ys)
            rest = iter(dots)
            for k, rule in zip(wanted, rules):
                dot = tangents_like(args[k], rest)
                if rule is None or not carries_derivative(types[k]):
                    continue
                built = built_rule(rule, (tangent_type(types[k]), y.type, *types))
                given = []
                for name, getter in built.captures.items():
                    if getter not in captures.values():
                        param = Value(next(p.type for p in built.params if p.name == name), name)
                        block.params.append(param)
                        captures[name if name not in
                                 captures else f"{name}_{len(captures)}"] = getter
                    place = list(captures.values()).index(getter)
                    given.append(block.params[self.count + len(dots) + place])
                found = emit_block(built.block, [dot, y, *args, *given], {})
                found = packed(found, None) if built.tupled else found[0]
                parts = self.like(found, y.type, rule, "the tangent", tangent=True)
                for n, (old, part) in enumerate(zip(total, self.filled_all(parts, ys, rule))):
                    total[n] = part if old is None else old if part is None else old + part
            block.yields = [*ys, *self.filled(total, ys, self.custom.function)]
        return Function(f"{self.name}_jvp", block, function.source, "", True, captures)

    def filled_all(self, parts: Sequence, ys: Sequence[Value], rule: Callable) -> list:
        return [
            None if part is None else self.of_shape(part, y.type, y, rule, "a tangent")
            for part, y in zip(parts, ys)
        ]

    def vjp(self, values: Sequence[Value]) -> Halves | None:
        if self.custom.fwd is None:
            return None
        return self.cached("vjp", values, lambda: self._vjp(values))

    def _vjp(self, values: Sequence[Value]) -> Halves:
        types, fwd, bwd = self.types(values), self.custom.fwd, self.custom.bwd
        built = built_rule(fwd, types)
        if not built.tupled or len(built.results) != 2:
            raise self.wrong(
                "fwd", fwd,
                f"returns {_said(built)}, and a pair is needed: the value and the residuals")
        result = self.result_type(values)
        block, args, captured = self.open_block(built)
        with Builder(block):
            y, kept = emit_block(built.block, [*args, *captured], {})
            ys = self.like(y, result, fwd, "the value")
            residuals = [leaf for leaf in leaves_of(kept) if not isinstance(leaf.type, Static)]
            block.yields = [*ys, *residuals]
        forward = built.remade(block, tupled=len(block.yields) != 1, defaults={}, meetings=(),
                               captures=dict(built.captures))
        backward, read, covers = self._backward(bwd, types, block.params[:self.count], kept.type,
                                                result, ys)
        return Halves(forward, backward, read, covers)

    def _backward(self, bwd: Callable, types: Sequence[Type], leaves: Sequence[Value], kept: Type,
                  result: Type, ys: Sequence[Value]) -> tuple[Function, tuple, tuple]:
        """bwd as a function of the leaves of its arguments, and of those of the arguments that it
        returns cotangents for.
        """
        built = built_rule(bwd, (*(types[k] for k in self.nondiff), kept, tangent_type(result)))
        count = len(built.params) - len(built.captures)
        params: list[Value] = []
        block = Block(params)
        with Builder(block):
            called = _names_of_members(built)
            given = [
                parameters_of(p.type, p.name, params, called, (p,))
                for p in built.params[:count - 1]
            ]
            bars = []
            parameters_of(built.params[count - 1].type, built.params[count - 1].name, bars, called,
                          (built.params[count - 1],))
            seeds = [bar for bar, y in zip(bars, ys) if carries_derivative(y.type)]
            params += seeds
            rest = iter(bars)
            y_bar = unflatten_cotangent(result, rest)
            captured = [Value(p.type, p.name) for p in built.params[count:]]
            params += captured
            found = emit_block(built.block, [*given, y_bar, *captured], {})
        owners, wanted = self.owners(), [k for k in range(len(types)) if k not in self.nondiff]
        if (not built.tupled and found and in_order(found[0].type)
            and len(found[0].type.items) == len(wanted) != 1):
            with Builder(block):
                # a list in place of a tuple
                found = [item(found[0], index=k) for k in range(len(wanted))]
        elif not built.tupled:
            raise self.wrong(
                "bwd", bwd,
                f"returns {_said(built)}, and a tuple is needed: a cotangent for each argument")
        if len(found) != len(wanted):
            raise self.wrong(
                "bwd", bwd,
                f"returns {_said(built)}, and {self.name} has {len(wanted)} arguments to "
                "differentiate"
            )
        covers, yields = [], []
        with Builder(block):
            for k, bar in zip(wanted, found):
                places = [n for n, owner in enumerate(owners) if owner == k]
                for n, leaf in zip(
                        places,
                        self.like(bar, types[k], bwd, f"the cotangent of {self.argument(k)}",
                                  tangent=True)):
                    if leaf is not None and carries_derivative(leaves[n].type):
                        covers.append(n)
                        yields.append(
                            self.of_shape(leaf, leaves[n].type, None, bwd,
                                          f"the cotangent of {self.argument(k)}",
                                          any(map(is_complex, [*ys, *leaves]))))
        block.yields = yields
        made = built.remade(block, tupled=len(yields) != 1, defaults={}, meetings=(),
                            captures=dict(built.captures))
        return made, tuple(n for n, owner in enumerate(owners)
                           if owner in self.nondiff), tuple(covers)

    # the call

    def changes_its_arguments(self, values: Sequence[Value]) -> tuple[bool, bool, object]:
        """Whether the function may write into its arguments, whether its results may share memory,
        and which of them are one object.
        """
        if self.custom.like is not None:
            return False, True, None
        types = self.types(values)
        built = callee_of(self.custom.function, len(types)).built_for([Value(t) for t in types])
        return built.changes, built.in_place, built.identities

    # what rules return

    def argument(self, k: int) -> str:
        return argument_names(self.custom.function, len(self.arguments))[k]

    def wrong(self, kind: str, rule: Callable, message: str) -> TypeMismatchError:
        name = code_name(rule, kind)
        remedy = {
            "jvp": "return (y, y_dot)",
            "fwd": "return (y, residuals)",
            "jvps": "give one rule for each, or None"
        }.get(kind, "return a tuple, with None where it is zero")
        return TypeMismatchError(f"the rule {name} of {self.name} {message}",
                                 beginning_of_rule(rule), remedy)

    def like(self, x: Value, type: Type, rule: Callable, what: str,
             tangent: bool = False) -> list[Value | None]:
        """The leaves of `x`, which must have the structure of `type`; None for each leaf where it,
        or a subtree, is None.
        """
        if isinstance(x.type, Static) and (tangent or not isinstance(type, Static)):
            if x.type.value is None and tangent:
                return [None] * sum(not isinstance(t, Static) for t in leaf_types(type))
        if isinstance(type, Static):
            return []
        if (isinstance(type, Tuple) != isinstance(x.type, Tuple)
            or isinstance(type, Tuple) and not _is_alike(type, x.type)):
            raise self.unlike(x, type, rule, what, "structure")
        if not isinstance(type, Tuple):
            return [x]
        order = range(len(type.items))
        if (type.form is not None and x.type.form is not None
            and set(type.form.keys) == set(x.type.form.keys)):
            order = [x.type.form.keys.index(key) for key in type.form.keys]
        return [
            leaf for k, t in zip(order, type.items)
            for leaf in self.like(item(x, index=k), t, rule, what, tangent)
        ]

    def of_shape(self, x: Value, type: Type, y: Value | None, rule: Callable, what: str,
                 may_be_complex: bool = False) -> Value:
        """`x`, whose rank must be that of `type`; a literal number is broadcast.

        The tangent of a real value is real, and so is a cotangent, unless a result or an argument
        is complex (`may_be_complex`): then the real part is taken.
        """
        if not may_be_complex and is_complex(x) and (dtype_of(type) or "").startswith("float"):
            raise self.unlike(x, type, rule, what, "dtype")
        if isinstance(x.type, (Scalar, Array)) and isinstance(type, (Scalar, Array)):
            ranks = [getattr(t, "rank", 0) for t in (x.type, type)]
            sizes = [
                d for d in zip(getattr(x.type, "dims", ()), getattr(type, "dims", ()))
                if (d[0] == 1) != (d[1] == 1) and _known(d)
            ]
            if ranks[0] == ranks[1] and not sizes:
                return x if y is None else in_shape(x, y)
            if (isinstance(x.type, Scalar) and y is not None
                and (self.custom.is_elementwise or isinstance(x.constant, (int, float)))):
                return spread(x, y)
            raise self.unlike(x, type, rule, what, "shape")
        return x

    def unlike(self, x: Value, type: Type, rule: Callable, what: str,
               respect: str) -> TypeMismatchError:
        """The error for a rule that returns `x` for a value of this type."""
        name = code_name(rule, "")
        return TypeMismatchError(
            f"the rule {name and name + ' '}of {self.name} gives {what} as {x.type}, where {type} "
            "is needed",
            beginning_of_rule(rule), f"give it the {respect} of what it belongs to")


def _is_alike(a: Tuple, b: Tuple) -> bool:
    """Whether one tuple or container is acceptable for another: any sequence for a sequence, equal
    names for named members.
    """
    names = [
        set(t.form.keys) if t.form is not None and t.form.kind in ("dict", "attributes") else None
        for t in (a, b)
    ]
    return len(a.items) == len(b.items) and names[0] == names[1]


# rule with defaults -> the same rule as a function of its other arguments
_without_defaults: dict[Callable, Callable] = {}


def built_rule(rule: Callable, types: Sequence[Type]) -> Function:
    """The IR of a rule for arguments of these types; further parameters keep their defaults."""
    if any(p.default is not p.empty
           for p in list(signature_of(rule).parameters.values())[len(types):]):
        rule = _without_defaults.setdefault(rule, without_defaults(rule))
    return callee_of(rule, len(types)).function_for([Value(t) for t in types])


def without_defaults(rule: Callable) -> Callable:
    """`rule` as a function of just the arguments that the call passes."""
    @functools.wraps(rule)
    def given(*args):
        return rule(*args)

    return given


def code_name(function, otherwise: str) -> str:
    """The name by which generated code calls a user's function; `otherwise` for a lambda."""
    name = (getattr(function, "__name__", None)
            or getattr(getattr(function, "node", function), "name", otherwise))
    return identifier(name, otherwise)


def beginning_of_rule(rule) -> Line | None:
    """The line of the `def` of a rule, which may be local to the program."""
    return rule.frame.line(rule.node) if isinstance(rule, Local) else definition_line(rule)


def _known(dims: tuple) -> bool:
    return all(isinstance(d, int) or not d.may_be_one for d in dims)


def _said(function: Function) -> str:
    if function.tupled:
        return f"a tuple of {len(function.results)}"
    return f"{function.results[0].type}" if function.results else "nothing"


# -------------------------------------------------------------------------------------------- trees


def _data_in(tree) -> Iterator:
    """The positions of data in the kind of an argument."""
    if isinstance(tree, Tuple):
        for inner in tree.items:
            yield from _data_in(inner)
    elif tree is None:
        yield tree


def kind_of(type: Type):
    """The kind of an argument of `type`: its structure with None for each datum."""
    if isinstance(type, Tuple):
        return replace(type, items=tuple(map(kind_of, type.items)))
    return type if isinstance(type, Static) else None


def _typed(tree, rest: Iterator[Value]) -> Type:
    if isinstance(tree, Tuple):
        return replace(tree, items=tuple(_typed(inner, rest) for inner in tree.items))
    return next(rest).type if tree is None else tree


def parameters_of(
    type: Type, name: str, params: list[Value], called: Mapping[tuple, str] = MappingProxyType({}),
    path: tuple = ()) -> Value:
    """The tree of new parameters, one for each datum in `type`, appended to `params`.

    `called` maps the position of a member (the parameter, and the indices on the way) to its name.
    """
    name = called.get(path, name)
    if isinstance(type, Tuple):
        return packed([
            parameters_of(t, member_name(name, type, k), params, called, (*path, k))
            for k, t in enumerate(type.items)
        ], type.form)
    if isinstance(type, Static):
        return value(type.value)
    params.append(Value(type, name))
    return params[-1]


def _names_of_members(function: Function) -> dict[tuple, str]:
    """The names under which a function unpacks its arguments (`a, b = residuals`)."""
    paths, found = {p: (p,) for p in function.params}, {}
    for op in walk(function.block):
        if op.name == "item" and op.inputs[0] in paths:
            paths[op.output] = (*paths[op.inputs[0]], op.attrs["index"])
            if op.output.name:
                found.setdefault(paths[op.output], op.output.name)
    return found


def tangent_type(type: Type) -> Type:
    """The type of a tangent or cotangent: floating point even if the value is not."""
    match type:
        case Tuple(items):
            return replace(type, items=tuple(map(tangent_type, items)))
        case Scalar() if not carries_derivative(type):
            return FLOAT
        case Array(_, dims) if not carries_derivative(type):
            return Array("float64", dims)
    return type


def tangents_like(x: Value, dots: Iterator[Value]) -> Value:
    """A tree of tangents like `x`: the next of `dots`, zeros for leaves without a derivative."""
    if isinstance(x.type, Tuple):
        return packed([tangents_like(item(x, index=k), dots) for k in range(len(x.type.items))],
                      x.type.form)
    if isinstance(x.type, Static):
        return x
    return next(dots) if carries_derivative(x.type) else zeros_of(x)


def unflatten(type: Type, rest: Iterator[Value]) -> Value:
    """A tree of structure `type` with the next of `rest` as leaves."""
    if isinstance(type, Tuple):
        return packed([unflatten(t, rest) for t in type.items], type.form)
    return value(type.value) if isinstance(type, Static) else next(rest)


def unflatten_cotangent(type: Type, bars: Iterator[Value]) -> Value:
    """A tree of structure `type` with the next of `bars` as leaves; zeros where the result carries
    no derivative.
    """
    if isinstance(type, Tuple):
        return packed([unflatten_cotangent(t, bars) for t in type.items], type.form)
    if isinstance(type, Static):
        return value(type.value)
    bar = next(bars)
    return bar if carries_derivative(type) else value(0.0)
