"""Functions with rules of their own for their derivatives, as the user writes them and as programs call them.

    @s2s.custom_jvp
    def f(x): ...
    f.defjvp(rule)          rule((x,), (x_dot,)) -> (y, y_dot)

    @s2s.custom_vjp
    def f(x): ...
    f.defvjp(fwd, bwd)      fwd(x) -> (y, residuals), bwd(residuals, y_bar) -> (x_bar,)

A call becomes a `call` op on the leaves of its arguments, whose callee (ops/rules.py) builds the function and its
rules for their types when it is asked.  What cannot be data (functions, strings, objects) is part of the callee.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType, MethodType
from weakref import WeakKeyDictionary

from ..errors import (
    DerivativeError,
    Line,
    S2SError,
    SourceError,
    TypeMismatchError,
    UnsupportedError,
)
from ..ir.builder import Builder, acted, emit
from ..ir.graph import Block, Function, Value, walk
from ..ir.rebuild import emit_block
from ..ir.types import FLOAT, Array, Scalar, Static, Tuple, Type, carries_derivative
from ..ops.acts import acts
from ..ops.control import call as call_record
from ..ops.control import item, never_returns, packed
from ..ops.record import FUNCTIONS, value
from ..ops.rules import RULES, Halves
from ..ops.shape import spread, zeros_of
from ..ops.trees import leaf_types, leaves_of, member_name
from .alias import Cell, Container, cells_in
from .begins import beginning
from .builtin import BUILTINS
from .callee import callee_of
from .calls import apply, captured_in, local_signature, operate, ordered
from .closed import Closed, Group
from .consulted import consulted, consulted_too, consulting, is_current
from .foreign import Of, foreign_function, names_given
from .frame import Ended, Object
from .made import Known, Local, Made
from .target import signature_of


class Custom:
    """A function with rules of its own: what `custom_jvp` and `custom_vjp` make of it."""

    kind = "custom_jvp"

    def __init__(self, function: Callable, nondiff_argnums: int | Sequence[int] = (), like=None):
        if not isinstance(function, Made):
            functools.update_wrapper(self, function, updated=())
        self.function, self.like = function, like
        self.nondiff_argnums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self.jvp = self.fwd = self.bwd = None
        self.each: tuple = ()  # of defjvps
        self.is_elementwise = False
        self.callees: dict[tuple, RuledCallee] = {}

    def __call__(self, *args, **keywords):
        return self.function(*args, **keywords)

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<s2s.{self.kind} of {self.name}>"

    def __reduce__(self):
        return getattr(self, "__qualname__", self.name)  # where its module has it

    @property
    def name(self) -> str:
        name = getattr(self.function, "__name__", None) or getattr(getattr(self.function, "node", None), "name", "f")
        return name if name.isidentifier() else "f"

    @property
    def signature(self) -> inspect.Signature:
        if isinstance(self.function, Local):
            return local_signature(None, self.function)
        try:
            return signature_of(self.function)
        except SourceError:
            if self.like is None:
                raise
        try:
            given = [p for p in inspect.signature(self.function).parameters.values()
                     if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            return inspect.Signature(given)
        except (TypeError, ValueError):  # a function in C
            return inspect.Signature([inspect.Parameter("x", inspect.Parameter.VAR_POSITIONAL)])

    def function_for(self, values: Sequence[Value]) -> Function:
        """The IR of the function itself."""
        return callee_of(self.function).function_for(values)

    def defjvp(self, rule: Callable, symbolic_zeros: bool = False) -> Callable:
        """Give the function the rule `rule(primals, tangents) -> (y, y_dot)`, which must be linear in the tangents.

        `primals` and `tangents` are tuples with an entry for each argument that is not in `nondiff_argnums`; those
        come before, one by one.  A tangent of what is not differentiated is zeros.  The rule serves reverse mode as
        well, where the function has no rule from `defvjp`.  Returns the rule, so that this is a decorator, too.
        """
        without_symbolic_zeros(symbolic_zeros)
        self.jvp = rule
        return rule

    def defjvps(self, *rules: Callable | None) -> None:
        """`defjvp`, one rule for each argument: `rule(x_dot, y, *xs) -> y_dot`, or None where there is no derivative."""
        self.jvp, self.each = None, rules

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False) -> None:
        """Give the function the rules `fwd(*xs) -> (y, residuals)` and `bwd(residuals, y_bar) -> x_bars`.

        The residuals are any tree of data.  `bwd` returns a tuple with the cotangent of each argument, None for zeros;
        arguments in `nondiff_argnums` have none and are given to `bwd` first, one by one.
        """
        without_symbolic_zeros(symbolic_zeros)
        self.fwd, self.bwd = fwd, bwd

    def apply_in(self, frame, args: list, keywords: dict, node):
        """The binding of a call in a program that s2s reads."""
        in_order = arguments_in_order(frame, self, args, keywords, node)
        if any(isinstance(x, Made) for x in (self.function, self.like, *self.rules(), *self.each, *in_order)):
            return apply_in_program(frame, self, in_order, node)
        fixed = {k % len(in_order) for k in self.nondiff_argnums if in_order}
        values = [as_operand(frame, a, k in fixed) for k, a in enumerate(in_order)]
        callee = self.callee(tuple(kind_of(v.type) for v in values))
        leaves = [leaf for v in values for leaf in leaves_of(v) if not isinstance(leaf.type, Static)]
        with consulting():  # what it finds is noted by those who build
            function = callee.function_for(leaves)
        changes, shares = callee.changes_its_arguments(leaves)
        if changes:
            alone = frame.source.filename.startswith("<s2s call")  # the user has not written the call
            raise UnsupportedError(f"{self.name} writes into its argument, and has a rule for its derivative",
                                   beginning(self.function) if alone else frame.line(node),
                                   "let it take a copy first (`x = x.copy()`) and return what it makes")
        if frame.session.tries and acts(function):
            raise frame.refuse(f"{self.name}, which has a rule for its derivative, may raise inside a `try`", node,
                               "call it outside the try")
        outputs = emit(call_record, *leaves, *captured_in(frame, function), callee=callee)
        if acts(function):
            acted()
        if never_returns(function):
            raise Ended
        found = iter(outputs if isinstance(outputs, tuple) else (outputs,))
        binding = frame.wrap(_regrouped(callee.result_type(leaves), found))
        if shares:
            families = frozenset().union(*(cell.family() for a in in_order for cell in cells_in(a) if isinstance(cell, Cell)))
            for cell in cells_in(binding):
                if isinstance(cell, Cell):
                    cell.origins |= families
        return binding

    def or_like(self, refused: S2SError) -> S2SError:
        """`refused`, which also says how to have the function called as it is."""
        if "like=" not in refused.remedy:
            refused.remedy += f"; or say what it returns, and it is called as it is: s2s.{self.kind}({self.name}, like=...)"
        return refused

    def rules(self) -> tuple:
        return self.jvp, self.fwd, self.bwd, self.each

    def callee(self, arguments: tuple) -> RuledCallee:
        """The callee for calls with arguments of these kinds: trees of types, None in the place of each datum."""
        if arguments not in self.callees:
            self.callees[arguments] = RuledCallee(self, arguments)
        return self.callees[arguments]


def without_symbolic_zeros(symbolic_zeros: bool) -> None:
    """UnsupportedError where a rule wants to be told of zeros."""
    if symbolic_zeros:
        raise UnsupportedError("symbolic_zeros=True: rules are given zeros where there is no tangent", None,
                               "leave it out; where a rule stands in place, what is multiplied with zeros vanishes from generated code")


class custom_jvp(Custom):  # noqa: N801
    """`f`, differentiated by a rule that the user gives with `defjvp` or `defjvps`; a decorator.

    Called, it is `f`.  Wherever s2s differentiates it, in either mode, it asks the rule, which is an ordinary function
    and is itself differentiated for higher orders.  The conventions are those of `jax.custom_jvp`: keywords and
    defaults are put in the places of their parameters; `nondiff_argnums` names arguments, functions and strings
    mostly, that have no tangent.  Raises DerivativeError where a derivative is asked and no rule is given,
    TypeMismatchError where the rule's results are not like the function's.

    A function that s2s cannot read, of SciPy or in C, is called as it is; then `like` says what it returns: a
    function of the same arguments that s2s can read, whose result has its type and shape, or an example.
    """

    kind = "custom_jvp"


class custom_vjp(Custom):  # noqa: N801
    """`f`, differentiated in reverse mode by the rules that the user gives with `defvjp`; a decorator.

    Forward mode asks a rule that `defjvp` gives as well, and without one raises DerivativeError.  For the rest, see
    `custom_jvp`.
    """

    kind = "custom_vjp"


@dataclass(frozen=True)
class RuleOf:
    """Reads the rules that a function has now."""

    custom: Custom

    def __call__(self):
        return self.custom.rules()


class Bare:
    """A function that s2s knows, as it is without the rule that it has been given."""

    def __init__(self, function: Callable):
        self.function, self.__name__, self.signature = function, function.__name__, signature_of(function)

    def __call__(self, *args):
        return self.function(*args)

    def function_for(self, values: Sequence[Value]) -> Function:
        return callee_of(self).function_for(values)

    def apply_in(self, frame, args: list, keywords: dict, node):
        return operate(frame, self.function, args, keywords, node)


def defderivative(function: Callable, *partials: Callable | None, jvp: Callable | None = None, fwd: Callable | None = None,
                  bwd: Callable | None = None, like=None) -> Custom:
    """Give `function`, of a library, a derivative wherever a program calls it.

    `partials` are those of an elementwise function, one for each argument: `partial(y, *xs)` is ∂y/∂x of the result y
    and the arguments xs, an ordinary function of numbers or arrays, or None where there is none to ask for.  Any other
    function is given rules as by `custom_jvp` and `custom_vjp`: `jvp(primals, tangents)`, `fwd(*xs)` and
    `bwd(residuals, y_bar)`; and, where s2s does not know it, `like`, what it returns.  A rule may call the function.
    What s2s knows of it otherwise, its values, stays as it is.

        s2s.defderivative(scipy.special.jv, None, lambda y, v, x: (jv(v - 1, x) - jv(v + 1, x)) / 2)

    Returns the function with its rules.  Raises TypeMismatchError where neither partials nor rules are given.
    """
    if not partials and jvp is None and (fwd is None or bwd is None):
        raise TypeMismatchError(f"defderivative of {getattr(function, '__name__', function)} without a derivative", None,
                                "give a partial derivative for each argument, or jvp=, or fwd= and bwd=")
    known = function in FUNCTIONS
    if partials and like is None and not known:
        like = broadcast_together
    none = [k for k, p in enumerate(partials) if p is None]
    made = custom_jvp(Bare(function) if known and like is None else function, none, like)
    made.is_elementwise = bool(partials)
    if partials:
        made.defjvps(*(partial_rule(p) for p in partials if p is not None))
    if jvp is not None:
        made.defjvp(jvp)
    if fwd is not None:
        made.defvjp(fwd, bwd)
    RULES[function] = made
    return made


def broadcast_together(*xs):
    """Something like the result of an elementwise function."""
    total = 0.0
    for x in xs:
        total = total + x
    return total


def partial_rule(partial: Callable) -> Callable:
    """The rule for an argument in which the derivative is `partial(y, *xs)`."""
    def rule(x_dot, y, *xs):
        return partial(y, *xs) * x_dot

    return rule


# ------------------------------------------------------------------------------------------------ callees


class RuledCallee:
    """A `Custom` for arguments of one structure: what a `call` op calls.  See ops/rules.py."""

    def __init__(self, custom: Custom, arguments: tuple):
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
        """Whether a call of the function is to be printed as what it does, the call of a library's function."""
        return isinstance(self.custom.function, Bare)

    @property
    def nondiff(self) -> tuple[int, ...]:
        """The arguments without derivative, counted from 0."""
        return tuple(sorted(k % len(self.arguments) for k in self.custom.nondiff_argnums if -len(self.arguments) <= k < len(self.arguments)))

    def owners(self) -> list[int]:
        """For each leaf, the number of the argument in which it is."""
        return [k for k, tree in enumerate(self.arguments) for _ in _data_in(tree)]

    @property
    def begins(self) -> Line | None:
        return beginning(self.custom.function)

    # the function

    def function_for(self, values: Sequence[Value]) -> Function:
        """f(*leaves, *captures) -> leaves of the result."""
        built = self.built(values)
        if built not in self.flat:
            self.flat[built] = self.flattened(built)
        return self.flat[built]

    def built(self, values: Sequence[Value]) -> Function:
        """The function, of whole arguments."""
        types = self.types(values)
        if self.custom.like is not None:
            key = "foreign", tuple(types)
            if key not in self.made:
                self.made[key] = foreign_function(self.custom.function, self.name, self.custom.like, types)
            return self.made[key]
        try:
            return callee_of(self.custom.function).function_for([Value(t) for t in types])
        except (SourceError, UnsupportedError) as refused:
            raise self.custom.or_like(refused)

    def flattened(self, built: Function) -> Function:
        """A function of arguments, as one of their leaves."""
        block, args, captured = self.opened(built)
        with Builder(block):
            results = emit_block(built.block, [*args, *captured], {})
            block.yields = [leaf for y in results for leaf in leaves_of(y) if not isinstance(leaf.type, Static)]
        return built.remade(block, tupled=len(block.yields) != 1, defaults={}, meetings=())

    def opened(self, built: Function, extra: Sequence[Value] = ()) -> tuple[Block, list[Value], list[Value]]:
        """A block with a parameter for each leaf of the arguments, `extra`, and what `built` captures; the arguments."""
        count = len(built.params) - len(built.captures)
        params: list[Value] = []
        block = Block(params)
        with Builder(block):
            args = [_parameters(p.type, p.name, params) for p in built.params[:count]]
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
        """The type of the result as a whole."""
        built = self.built(values)
        types = [y.type for y in built.results]
        return Tuple(tuple(types)) if built.tupled else types[0]

    # the rules

    def missing(self, mode: str) -> S2SError:
        if mode == "jvp" and self.custom.fwd is not None:
            return DerivativeError(f"{self.name} has a rule for reverse mode only (defvjp), and forward mode is asked", self.begins,
                                   f"give it one for forward mode, too: {self.name}.defjvp(rule), "
                                   "where rule(primals, tangents) returns the value and its tangent")
        method, rule = ("defjvp", "rule") if self.custom.kind == "custom_jvp" else ("defvjp", "fwd, bwd")
        return DerivativeError(f"{self.name} is a {self.custom.kind} function without a rule", self.begins,
                               f"give it one: {self.name}.{method}({rule})")

    def remembered(self, kind: str, values: Sequence[Value], make: Callable):
        """What `make` makes for arguments like these, made once for each rule and each function it is the rule of."""
        consulted(RuleOf(self.custom), self.custom.rules())
        key = kind, self.built(values), self.custom.rules()
        made, depends = self.made.get(key, (None, None))
        if made is None or not is_current(depends):
            with consulting() as depends:
                made = make()
            self.made[key] = made, depends
        else:
            consulted_too(depends)
        return made

    def jvp(self, values: Sequence[Value]) -> Function | None:
        if self.custom.each:
            return self.remembered("jvp", values, lambda: self._jvp_of_each(values))
        if self.custom.jvp is None:
            return None
        return self.remembered("jvp", values, lambda: self._jvp(values))

    def _jvp(self, values: Sequence[Value]) -> Function:
        types, rule = self.types(values), self.custom.jvp
        fixed = [types[k] for k in self.nondiff]
        primals = Tuple(tuple(t for k, t in enumerate(types) if k not in self.nondiff))
        built = built_rule(rule, (*fixed, primals, _tangent_type(primals)))
        result = self.result_type(values)
        function = self.built(values)
        block, args, dots, captured = self.with_dots(function, built)
        with Builder(block):
            known = [args[k] for k in self.nondiff]
            rest = [x for k, x in enumerate(args) if k not in self.nondiff]
            tangents = [_tangents(x, iter_dots) for iter_dots in [iter(dots)] for x in rest]
            found = emit_block(built.block, [*known, packed(rest, None), packed(tangents, None), *captured], {})
            if not built.tupled or len(found) != 2:
                raise self.wrong("jvp", rule, f"returns {_said(built)}, and a pair is needed: the value and its tangent")
            ys = self.like(found[0], result, rule, "the value")
            y_dots = self.like(found[1], result, rule, "the tangent", tangent=True)
            block.yields = [*ys, *self.filled(y_dots, ys, rule)]
        return built.remade(block, tupled=True, defaults={}, meetings=(), captures=dict(built.captures))

    def with_dots(self, function: Function, built: Function) -> tuple[Block, list, list[Value], list[Value]]:
        """A block of the leaves of the arguments, their tangents and what `built` captures; the arguments, and so on."""
        params: list[Value] = []
        count = len(function.params) - len(function.captures)
        block = Block(params)
        with Builder(block):
            args = [_parameters(p.type, p.name, params) for p in function.params[:count]]
        dots = [Value(p.type, f"{p.name}_dot") for k, p in enumerate(params) if k not in self.fixed and carries_derivative(p.type)]
        captured = [Value(p.type, p.name) for p in built.params[len(built.params) - len(built.captures):]]
        params += [*dots, *captured]
        return block, args, dots, captured

    def filled(self, y_dots: Sequence[Value | None], ys: Sequence[Value], rule: Callable) -> list[Value]:
        """The tangents of those of `ys` that have one, in their shapes."""
        found = []
        for y, dot in zip(ys, y_dots):
            if carries_derivative(y.type):
                found.append(zeros_of(y) if dot is None else self.of_shape(dot, y.type, y, rule, "a tangent"))
        return found

    def _jvp_of_each(self, values: Sequence[Value]) -> Function:
        """The sum of what the rule for each argument says."""
        function = self.built(values)
        types, rules = self.types(values), self.custom.each
        wanted = [k for k in range(len(types)) if k not in self.nondiff]
        if len(rules) != len(wanted):
            raise self.wrong("jvps", rules[0] or self.custom.function, f"is one of {len(rules)}, and {self.name} has {len(wanted)} arguments to differentiate")
        block, args, dots, _ = self.with_dots(function, function)
        captures = dict(function.captures)
        with Builder(block):
            results = emit(call_record, *block.params[:self.count], *block.params[self.count + len(dots):], callee=self)
            ys = list(results) if isinstance(results, tuple) else [results]
            y = _regrouped(self.result_type(values), iter(ys))
            total: list[Value | None] = [None] * len(ys)
            rest = iter(dots)
            for k, rule in zip(wanted, rules):
                dot = _tangents(args[k], rest)
                if rule is None or not carries_derivative(types[k]):
                    continue
                built = built_rule(rule, (_tangent_type(types[k]), y.type, *types))
                given = []
                for name, getter in built.captures.items():
                    if getter not in captures.values():
                        param = Value(next(p.type for p in built.params if p.name == name), name)
                        block.params.append(param)
                        captures[name if name not in captures else f"{name}_{len(captures)}"] = getter
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
        return [None if part is None else self.of_shape(part, y.type, y, rule, "a tangent") for part, y in zip(parts, ys)]

    def vjp(self, values: Sequence[Value]) -> Halves | None:
        if self.custom.fwd is None:
            return None
        return self.remembered("vjp", values, lambda: self._vjp(values))

    def _vjp(self, values: Sequence[Value]) -> Halves:
        types, fwd, bwd = self.types(values), self.custom.fwd, self.custom.bwd
        built = built_rule(fwd, types)
        if not built.tupled or len(built.results) != 2:
            raise self.wrong("fwd", fwd, f"returns {_said(built)}, and a pair is needed: the value and the residuals")
        result = self.result_type(values)
        block, args, captured = self.opened(built)
        with Builder(block):
            y, kept = emit_block(built.block, [*args, *captured], {})
            ys = self.like(y, result, fwd, "the value")
            residuals = [leaf for leaf in leaves_of(kept) if not isinstance(leaf.type, Static)]
            block.yields = [*ys, *residuals]
        forward = built.remade(block, tupled=len(block.yields) != 1, defaults={}, meetings=(), captures=dict(built.captures))
        backward, read, covers = self._backward(bwd, types, block.params[:self.count], kept.type, result, ys)
        return Halves(forward, backward, read, covers)

    def _backward(self, bwd: Callable, types: Sequence[Type], leaves: Sequence[Value], kept: Type, result: Type,
                  ys: Sequence[Value]) -> tuple[Function, tuple, tuple]:
        """bwd, of the leaves of what it is given, and those of the arguments that it gives cotangents for."""
        built = built_rule(bwd, (*(types[k] for k in self.nondiff), kept, _tangent_type(result)))
        count = len(built.params) - len(built.captures)
        params: list[Value] = []
        block = Block(params)
        with Builder(block):
            called = _names_of_members(built)
            given = [_parameters(p.type, p.name, params, called, (p,)) for p in built.params[:count - 1]]
            bars = []
            _parameters(built.params[count - 1].type, built.params[count - 1].name, bars, called, (built.params[count - 1],))
            seeds = [bar for bar, y in zip(bars, ys) if carries_derivative(y.type)]
            params += seeds
            rest = iter(bars)
            y_bar = _regrouped_cotangent(result, rest)
            captured = [Value(p.type, p.name) for p in built.params[count:]]
            params += captured
            found = emit_block(built.block, [*given, y_bar, *captured], {})
        owners, wanted = self.owners(), [k for k in range(len(types)) if k not in self.nondiff]
        if not built.tupled and found and isinstance(found[0].type, Tuple) and len(found[0].type.items) == len(wanted) != 1:
            with Builder(block):
                found = [item(found[0], index=k) for k in range(len(wanted))]  # a list instead of a tuple
        elif not built.tupled:
            raise self.wrong("bwd", bwd, f"returns {_said(built)}, and a tuple is needed: a cotangent for each argument")
        if len(found) != len(wanted):
            raise self.wrong("bwd", bwd, f"returns {_said(built)}, and {self.name} has {len(wanted)} arguments to differentiate")
        covers, yields = [], []
        with Builder(block):
            for k, bar in zip(wanted, found):
                places = [n for n, owner in enumerate(owners) if owner == k]
                for n, leaf in zip(places, self.like(bar, types[k], bwd, f"the cotangent of {self.argument(k)}", tangent=True)):
                    if leaf is not None and carries_derivative(leaves[n].type):
                        covers.append(n)
                        yields.append(self.of_shape(leaf, leaves[n].type, None, bwd, f"the cotangent of {self.argument(k)}"))
        block.yields = yields
        made = built.remade(block, tupled=len(yields) != 1, defaults={}, meetings=(), captures=dict(built.captures))
        return made, tuple(n for n, owner in enumerate(owners) if owner in self.nondiff), tuple(covers)

    # the call

    def changes_its_arguments(self, values: Sequence[Value]) -> tuple[bool, bool]:
        """Whether the function may write into its arguments, and whether it may return memory of theirs."""
        if self.custom.like is not None:
            return False, True
        built = callee_of(self.custom.function).built_for([Value(t) for t in self.types(values)])
        return built.changes, built.in_place

    # what rules return

    def argument(self, k: int) -> str:
        return names_given(self.custom.function, len(self.arguments))[k]

    def wrong(self, kind: str, rule: Callable, message: str) -> TypeMismatchError:
        name = _called(rule, kind)
        remedy = {"jvp": "return (y, y_dot)", "fwd": "return (y, residuals)",
                  "jvps": "give one rule for each, or None"}.get(kind, "return a tuple, with None where it is zero")
        return TypeMismatchError(f"the rule {name} of {self.name} {message}", _beginning(rule), remedy)

    def like(self, x: Value, type: Type, rule: Callable, what: str, tangent: bool = False) -> list[Value | None]:
        """The leaves of `x`, which must have the structure of `type`; None for each where it, or a part, is None."""
        if isinstance(x.type, Static) and (tangent or not isinstance(type, Static)):
            if x.type.value is None and tangent:
                return [None] * sum(not isinstance(t, Static) for t in leaf_types(type))
        if isinstance(type, Static):
            return []
        if isinstance(type, Tuple) != isinstance(x.type, Tuple) or isinstance(type, Tuple) and len(type.items) != len(x.type.items):
            name = _called(rule, "rule")
            raise TypeMismatchError(f"the rule {name} of {self.name} gives {what} as {x.type}, where {type} is needed", _beginning(rule),
                                    "give it the structure of what it belongs to")
        if not isinstance(type, Tuple):
            return [x]
        order = range(len(type.items))
        if type.form is not None and x.type.form is not None and set(type.form.keys) == set(x.type.form.keys):
            order = [x.type.form.keys.index(key) for key in type.form.keys]
        return [leaf for k, t in zip(order, type.items) for leaf in self.like(item(x, index=k), t, rule, what, tangent)]

    def of_shape(self, x: Value, type: Type, y: Value | None, rule: Callable, what: str) -> Value:
        """`x`, whose rank must be that of `type`; a literal number stands for an array of it."""
        if isinstance(x.type, (Scalar, Array)) and isinstance(type, (Scalar, Array)):
            ranks = [getattr(t, "rank", 0) for t in (x.type, type)]
            sizes = [d for d in zip(getattr(x.type, "dims", ()), getattr(type, "dims", ())) if (d[0] == 1) != (d[1] == 1) and _known(d)]
            if ranks[0] == ranks[1] and not sizes:
                return x
            if isinstance(x.type, Scalar) and y is not None and (self.custom.is_elementwise or isinstance(x.constant, (int, float))):
                return spread(x, y)
            name = _called(rule, "rule")
            raise TypeMismatchError(f"the rule {name} of {self.name} gives {what} as {x.type}, where {type} is needed", _beginning(rule),
                                    "give it the shape of what it belongs to")
        return x


_without_defaults: dict[Callable, Callable] = {}  # a rule that has some -> it, of the other arguments


def built_rule(rule: Callable, types: Sequence[Type]) -> Function:
    """The IR of a rule for arguments of these types; parameters behind these stand at their defaults."""
    if any(p.default is not p.empty for p in list(signature_of(rule).parameters.values())[len(types):]):
        rule = _without_defaults.setdefault(rule, of_given_arguments(rule))
    return callee_of(rule).function_for([Value(t) for t in types])


def of_given_arguments(rule: Callable) -> Callable:
    """`rule`, of the arguments that it is given."""
    @functools.wraps(rule)
    def given(*args):
        return rule(*args)

    return given


def _called(rule, otherwise: str) -> str:
    name = getattr(rule, "__name__", None) or getattr(getattr(rule, "node", rule), "name", otherwise)
    return otherwise if name == "<lambda>" else name


def _beginning(rule) -> Line | None:
    """Where a rule begins, which may be one of the program's."""
    return rule.frame.line(rule.node) if isinstance(rule, Local) else beginning(rule)


def _known(dims: tuple) -> bool:
    return all(isinstance(d, int) or not d.may_be_one for d in dims)


def _said(function: Function) -> str:
    if function.tupled:
        return f"a tuple of {len(function.results)}"
    return f"{function.results[0].type}" if function.results else "nothing"


# -------------------------------------------------------------------------------------------- calls of them


def arguments_in_order(frame, custom: Custom, args: list, keywords: dict, node) -> list:
    """The arguments of a call, in the order of the parameters; of a function that is not read, those that are given."""
    if custom.like is None:
        try:
            signature = custom.signature
        except SourceError as refused:
            raise custom.or_like(refused) from None
        return ordered(frame, signature, custom.name, args, keywords, node)
    if not keywords:
        return list(args)
    try:
        bound = inspect.signature(custom.function).bind(*args, **keywords)
    except (TypeError, ValueError) as error:
        raise TypeMismatchError(f"{custom.name}: {error}", frame.line(node), "pass its arguments by position") from None
    if bound.kwargs:
        raise frame.refuse(f"the keywords {', '.join(bound.kwargs)} of {custom.name}, which is called as it is", node,
                           "pass them by position")
    return list(bound.args)


def apply_in_program(frame, custom: Custom, arguments: list, node):
    """The binding of a call where the function, a rule or an argument is a function that the program makes."""
    fixed = {k % len(arguments) for k in custom.nondiff_argnums if arguments}
    made = {k: a for k, a in enumerate(arguments) if isinstance(a, Made)}
    values = [Value(Static(a)) if k in made else as_operand(frame, a, k in fixed) for k, a in enumerate(arguments)]
    leaves = [leaf for v in values for leaf in leaves_of(v) if not isinstance(leaf.type, Static)]
    return RulesInProgram(frame, custom, values, arguments, leaves, node).call(leaves)


class RulesInProgram:
    """A function with rules, where they or its arguments are functions that the program makes: a Closed of a call."""

    def __init__(self, frame, custom: Custom, values: Sequence[Value], arguments: Sequence, leaves: Sequence[Value], node):
        self.frame, self.custom, self.node = frame, custom, node
        self.types, self.bindings = [v.type for v in values], list(arguments)
        self.shape = RuledCallee(custom, tuple(kind_of(v.type) for v in values))
        key = custom, self.shape.arguments, tuple(v.type for v in leaves)
        same = [each for each in frame.session.closing if each[0] == key]
        if same:
            _, self.closed, self.result = same[-1]
            return
        group, leaves = Group(frame), self.called(leaves)
        self.closed = Closed(custom.name, leaves, group, frame.line(node), frame.source, self.shape.fixed)
        self.closed.asked = f"give it one: {custom.name}.defjvp(rule)"
        self.result: Type | None = None
        self.closed.add("function", leaves, self.function)
        frame.session.closing.append((key, self.closed, self.result))
        try:
            if custom.jvp is not None:
                self.closed.add("jvp", [*leaves, *self.dots(leaves)], self.jvp)
            if custom.fwd is not None:
                self.reverse(leaves)
        finally:
            frame.session.closing.pop()
        if custom.each:
            self.closed.errors["jvp"] = frame.refuse("defjvps of a function that a program makes", node, "use defjvp there")
        if custom.fwd is not None and custom.jvp is None:
            self.closed.errors["jvp"] = self.shape.missing("jvp")
        group.finish()

    def called(self, leaves: Sequence[Value]) -> list[Value]:
        """Values like `leaves`, called what the function calls them."""
        params: list[Value] = []
        with Builder(Block()):
            for name, type in zip(self.custom.signature.parameters, self.types):
                _parameters(type, name, params)
        return params if len(params) == len(leaves) else list(leaves)

    def call(self, leaves: Sequence[Value]):
        found = iter(self.closed.call(leaves))
        return self.frame.wrap(_regrouped(self.result, found))

    def dots(self, leaves: Sequence[Value]) -> list[Value]:
        return [Value(leaves[k].type, f"{leaves[k].name}_dot") for k in self.closed.dotted]

    def given(self, params: Sequence[Value]) -> list:
        """The bindings of the arguments."""
        rest = iter(params)
        return [self.bindings[k] if isinstance(t, Static) else self.frame.wrap(_regrouped(t, rest)) for k, t in enumerate(self.types)]

    def trees(self, params: Sequence[Value]) -> list[Value]:
        rest = iter(params)
        return [_regrouped(t, rest) for t in self.types]

    def apply(self, function, arguments: list) -> Value:
        return self.frame.value(apply(self.frame, function, arguments, {}, self.node))

    def function(self, params: Sequence[Value]) -> list[Value]:
        if self.custom.like is None:
            y = self.apply(self.custom.function, self.given(params))
        else:
            y = self.foreign(params)
        self.result = y.type
        return [leaf for leaf in leaves_of(y) if not isinstance(leaf.type, Static)]

    def foreign(self, params: Sequence[Value]) -> Value:
        """The function called as it is; `like` may be one of the program's."""
        like = self.custom.like
        if isinstance(like, Made):
            with Builder(Block(), above=params):
                like = Of(self.custom.name, self.apply(like, self.given(params)).type)
        if any(isinstance(t, Static) and isinstance(t.value, Made) for t in self.types):
            raise self.frame.refuse(f"{self.custom.name}, which is called as it is, is given a function of the program", self.node,
                                    "define the function outside, or use custom_root")
        built = foreign_function(self.custom.function, self.custom.name, like, self.types)
        found = emit_block(built.block, self.trees(params), {})
        return packed(found, None) if built.tupled else found[0]

    def jvp(self, params: Sequence[Value]) -> list[Value]:
        shape, rule = self.shape, self.custom.jvp
        given, trees = self.given(params[:len(self.closed.leaves)]), self.trees(params[:len(self.closed.leaves)])
        dots = iter(params[len(self.closed.leaves):])
        wanted = [k for k in range(len(given)) if k not in shape.nondiff]
        tangents = [self.frame.wrap(_tangents(trees[k], dots)) for k in wanted]
        found = self.apply(rule, [*(given[k] for k in shape.nondiff), tuple(given[k] for k in wanted), tuple(tangents)])
        if not isinstance(found.type, Tuple) or len(found.type.items) != 2:
            raise shape.wrong("jvp", rule, f"returns {found.type}, and a pair is needed: the value and its tangent")
        ys = shape.like(item(found, index=0), self.result, rule, "the value")
        return [*ys, *shape.filled(shape.like(item(found, index=1), self.result, rule, "the tangent", tangent=True), ys, rule)]

    def reverse(self, leaves: Sequence[Value]) -> None:
        """The two halves."""
        kept: list[Type] = []
        shape, custom, count = self.shape, self.custom, len(leaves)

        def forward(params):
            found = self.apply(custom.fwd, self.given(params))
            if not isinstance(found.type, Tuple) or len(found.type.items) != 2:
                raise shape.wrong("fwd", custom.fwd, f"returns {found.type}, and a pair is needed: the value and the residuals")
            residuals = item(found, index=1)
            kept.append(residuals.type)
            return [*shape.like(item(found, index=0), self.result, custom.fwd, "the value"),
                    *(leaf for leaf in leaves_of(residuals) if not isinstance(leaf.type, Static))]

        made = self.closed.add("forward", leaves, forward)
        if made is None:
            return
        results = sum(not isinstance(t, Static) for t in leaf_types(self.result))
        residuals = made.yields[results:]
        bars = [Value(t, "y_bar") for t in leaf_types(self.result) if carries_derivative(t)]

        def backward(params):
            given = self.given(params[:count])
            rest = iter(params[count:])
            tree = _regrouped(kept[0], rest)
            y_bar = _cotangent_of(self.result, rest)
            found = self.apply(custom.bwd, [*(given[k] for k in shape.nondiff), self.frame.wrap(tree), self.frame.wrap(y_bar)])
            wanted = [k for k in range(len(given)) if k not in shape.nondiff]
            if not isinstance(found.type, Tuple) or len(found.type.items) != len(wanted):
                raise shape.wrong("bwd", custom.bwd, f"returns {found.type}, and {custom.name} has {len(wanted)} arguments to differentiate")
            yields = []
            for n, k in enumerate(wanted):
                places = [place for place, owner in enumerate(shape.owners()) if owner == k]
                for place, leaf in zip(places, shape.like(item(found, index=n), self.types[k], custom.bwd, "a cotangent", tangent=True)):
                    if leaf is not None and carries_derivative(leaves[place].type):
                        self.closed.covered.append(place)
                        yields.append(shape.of_shape(leaf, leaves[place].type, None, custom.bwd, "a cotangent"))
            return yields

        self.closed.add("backward", [*leaves, *residuals, *bars], backward)


def _cotangent_of(type: Type, bars: Iterator[Value]) -> Value:
    """A tree like `type`, of the next of `bars` for what carries a derivative and zeros for the rest."""
    if isinstance(type, Tuple):
        return packed([_cotangent_of(t, bars) for t in type.items], type.form)
    if isinstance(type, Static):
        return value(type.value)
    return next(bars) if carries_derivative(type) else value(0.0)


def as_operand(frame, binding, is_fixed: bool) -> Value:
    """An argument as a Value: data, or a constant for what is known when code is generated and is none."""
    if isinstance(binding, Object):
        consulted(binding.getter, binding.content)
        return Value(Static(binding.content))
    if is_fixed and frame.is_static(binding):
        return Value(Static(frame.static(binding, "this argument")))
    if isinstance(binding, (Value, Cell, Container, tuple, list, bool, int, float, complex)):
        return frame.value(binding)
    return Value(Static(binding))


# -------------------------------------------------------------------------------------------------- trees


def _data_in(tree) -> Iterator:
    """The places of data in the kind of an argument."""
    if isinstance(tree, Tuple):
        for inner in tree.items:
            yield from _data_in(inner)
    elif tree is None:
        yield tree


def kind_of(type: Type):
    """The kind of an argument of `type`: None in the place of each datum."""
    if isinstance(type, Tuple):
        return replace(type, items=tuple(map(kind_of, type.items)))
    return type if isinstance(type, Static) else None


def _typed(tree, rest: Iterator[Value]) -> Type:
    if isinstance(tree, Tuple):
        return replace(tree, items=tuple(_typed(inner, rest) for inner in tree.items))
    return next(rest).type if tree is None else tree


def _parameters(type: Type, name: str, params: list[Value], called: Mapping[tuple, str] = MappingProxyType({}),
                path: tuple = ()) -> Value:
    """A parameter for each datum in `type`, appended to `params`; the tree of them.

    `called` says what a member is called, by where it is: the parameter, and the numbers on the way.
    """
    name = called.get(path, name)
    if isinstance(type, Tuple):
        return packed([_parameters(t, member_name(name, type, k), params, called, (*path, k)) for k, t in enumerate(type.items)],
                      type.form)
    if isinstance(type, Static):
        return value(type.value)
    params.append(Value(type, name))
    return params[-1]


def _names_of_members(function: Function) -> dict[tuple, str]:
    """What a function calls the members of its arguments that it unpacks (`a, b = residuals`)."""
    paths, found = {p: (p,) for p in function.params}, {}
    for op in walk(function.block):
        if op.name == "item" and op.inputs[0] in paths:
            paths[op.output] = (*paths[op.inputs[0]], op.attrs["index"])
            if op.output.name:
                found.setdefault(paths[op.output], op.output.name)
    return found


def _tangent_type(type: Type) -> Type:
    """The type of a tangent or cotangent: floats, where the value is none."""
    match type:
        case Tuple(items):
            return replace(type, items=tuple(map(_tangent_type, items)))
        case Scalar() if not carries_derivative(type):
            return FLOAT
        case Array(_, dims) if not carries_derivative(type):
            return Array("float64", dims)
    return type


def _tangents(x: Value, dots: Iterator[Value]) -> Value:
    """A tree like `x` of tangents: the next of `dots`, zeros for what carries no derivative."""
    if isinstance(x.type, Tuple):
        return packed([_tangents(item(x, index=k), dots) for k in range(len(x.type.items))], x.type.form)
    if isinstance(x.type, Static):
        return x
    return next(dots) if carries_derivative(x.type) else zeros_of(x)


def _regrouped(type: Type, rest: Iterator[Value]) -> Value:
    """A tree like `type` of the next of `rest`."""
    if isinstance(type, Tuple):
        return packed([_regrouped(t, rest) for t in type.items], type.form)
    return value(type.value) if isinstance(type, Static) else next(rest)


def _regrouped_cotangent(type: Type, bars: Iterator[Value]) -> Value:
    """A tree like `type` of the next of `bars`; zeros where the result carries no derivative."""
    if isinstance(type, Tuple):
        return packed([_regrouped_cotangent(t, bars) for t in type.items], type.form)
    if isinstance(type, Static):
        return value(type.value)
    bar = next(bars)
    return bar if carries_derivative(type) else value(0.0)


# --------------------------------------------------------------------------------------- inside a program


def _made_inside(kind: type) -> Callable:
    def make(frame, node, function=None, nondiff_argnums=(), like=None):
        fixed = frame.static(nondiff_argnums, "nondiff_argnums", node)
        if function is None:
            return Known(lambda frame, node, function: make(frame, node, function, nondiff_argnums, like))
        return kind(function, fixed, like)

    return make


BUILTINS.update({custom_jvp: _made_inside(custom_jvp), custom_vjp: _made_inside(custom_vjp)})
