"""Custom derivative rules: custom_jvp and custom_vjp as users write them and as programs call them.

    @s2s.custom_jvp
    def f(x): ...
    f.defjvp(rule)          rule((x,), (x_dot,)) -> (y, y_dot)

    @s2s.custom_vjp
    def f(x): ...
    f.defvjp(fwd, bwd)      fwd(x) -> (y, residuals), bwd(residuals, y_bar) -> (x_bar,)

A call becomes a `call` op on the leaves of its arguments, whose callee
(ops/program/custom_rules.py) builds the function and its rules for their types on demand.
Compile-time arguments (functions, strings, objects) are part of the callee.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import MethodType

from ...errors import S2SError, SourceError, TypeMismatchError, UnsupportedError
from ...ir.builder import emit, record_effect
from ...ir.graph import Function, Value, identifier
from ...ir.types import Static
from ...ops.core.control import call as call_record
from ...ops.core.control import never_returns
from ...ops.core.record import FUNCTIONS
from ...ops.program.custom_rules import RULES
from ...ops.program.effects import acts
from ...ops.program.pytree import leaves_of
from ..domain.frame import Object, PathEnded
from ..domain.functions import FunctionValue, Intrinsic, Local
from ..domain.heap import Cell, Container, cells_in
from ..domain.result_aliases import rebind
from ..eval.apply import captured_in, in_parameter_order, local_signature, operate
from ..eval.build import callee_of
from ..eval.entry_line import definition_line
from ..eval.python_builtins import BUILTINS
from ..eval.unwrap_callable import signature_of
from ..syntax.dependencies import collect_dependencies, note_dependency
from ..values.raise_guards import require_quiet
from .call_custom import RuledCallee, kind_of, unflatten
from .nested_custom import RulesInProgram


class Custom:
    """A function with derivative rules, the result of `custom_jvp` and `custom_vjp`."""

    kind = "custom_jvp"

    def __init__(self, function: Callable, nondiff_argnums: int | Sequence[int] = (), like=None, *,
                 nondiff_argnames: str | Sequence[str] = ()):
        if not isinstance(function, FunctionValue):
            functools.update_wrapper(self, function, updated=())
        self.function, self.like = function, like
        self.nondiff_argnums = ((nondiff_argnums,) if isinstance(nondiff_argnums, int)
                                else tuple(nondiff_argnums))
        self.nondiff_argnums += self.numbered((
            nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames))
        self.jvp = self.fwd = self.bwd = None
        self.each: tuple = ()  # of defjvps
        self.is_elementwise = False
        self.callees: dict[tuple, RuledCallee] = {}

    def numbered(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """The indices of the parameters of these names."""
        places = list(self.signature.parameters) if names else []
        for name in names:
            if name not in places:
                raise ValueError(
                    f"nondiff_argnames={name!r}: {self.name} has the parameters {', '.join(places)}"
                )
        return tuple(
            places.index(name) for name in names if places.index(name) not in self.nondiff_argnums)

    def __call__(self, *args, **keywords):
        return self.function(*args, **keywords)

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<s2s.{self.kind} of {self.name}>"

    def __reduce__(self):
        return getattr(self, "__qualname__", self.name)  # where its module defines it

    @property
    def name(self) -> str:
        name = (getattr(self.function, "__name__", None)
                or getattr(getattr(self.function, "node", None), "name", "f"))
        return identifier(name)

    @property
    def signature(self) -> inspect.Signature:
        if isinstance(self.function, Local):
            return local_signature(self.function)
        try:
            return signature_of(self.function)
        except SourceError:
            if self.like is None:
                raise
        try:
            parameters = inspect.signature(self.function).parameters.values()
            given = [
                p for p in parameters
                if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            ]
            if given or not any(p.kind is p.VAR_POSITIONAL for p in parameters):
                return inspect.Signature(given)
        except (TypeError, ValueError):
            pass
        # a C function
        return inspect.Signature([inspect.Parameter("x", inspect.Parameter.VAR_POSITIONAL)])

    def function_for(self, values: Sequence[Value]) -> Function:
        """The IR of the function itself."""
        return callee_of(self.function).function_for(values)

    def defjvp(self, rule: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the function's rule `rule(primals, tangents) -> (y, y_dot)`, which must be linear in
        the tangents.

        `primals` and `tangents` are tuples with an entry for each argument that is not in
        `nondiff_argnums`; those come before, one by one.  Arguments that are not differentiated
        have zeros as tangents.  The rule serves reverse mode as well, where the function has no
        rule from `defvjp`.  Returns the rule, so that this is a decorator, too.
        """
        without_symbolic_zeros(symbolic_zeros)
        self.jvp = rule
        return rule

    def defjvps(self, *rules: Callable | None) -> None:
        """`defjvp`, one rule for each argument: `rule(x_dot, y, *xs) -> y_dot`, or None where there
        is no derivative.
        """
        self.jvp, self.each = None, rules

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False) -> None:
        """Give the function the rules `fwd(*xs) -> (y, residuals)` and `bwd(residuals, y_bar) ->
        x_bars`.

        The residuals are any tree of data.  `bwd` returns a tuple with the cotangent of each
        argument, None for zeros; arguments in `nondiff_argnums` have none and are given to `bwd`
        first, one by one.
        """
        without_symbolic_zeros(symbolic_zeros)
        self.fwd, self.bwd = fwd, bwd

    def apply_in(self, frame, args: list, keywords: dict, node):
        """The binding of a call inside a program."""
        in_order = arguments_in_order(frame, self, args, keywords, node)
        if any(isinstance(x, FunctionValue)
               for x in (self.function, self.like, *self.rules(), *self.each, *in_order)):
            return apply_in_program(frame, self, in_order, node)
        fixed = {k % len(in_order) for k in self.nondiff_argnums if in_order}
        values = [as_operand(frame, a, k in fixed) for k, a in enumerate(in_order)]
        callee = self.callee(tuple(kind_of(v.type) for v in values))
        leaves = [
            leaf for v in values for leaf in leaves_of(v) if not isinstance(leaf.type, Static)
        ]
        with collect_dependencies():  # builders record its dependencies
            function = callee.function_for(leaves)
        changes, shares, same = callee.changes_its_arguments(leaves)
        if changes:
            # the user did not write the call
            alone = frame.source.filename.startswith("<s2s call")
            raise UnsupportedError(
                f"{self.name} writes into its argument, and has a rule for its derivative",
                definition_line(self.function) if alone else frame.line(node),
                "let it take a copy first (`x = x.copy()`) and return what it makes")
        if frame.session.tries and acts(function):
            raise frame.refuse(
                f"{self.name}, which has a rule for its derivative, may raise inside a `try`", node,
                "call it outside the try")
        require_quiet(frame, function, f"{self.name}, which has a rule for its derivative,", node)
        outputs = emit(call_record, *leaves, *captured_in(frame, function), callee=callee)
        if acts(function):
            record_effect()
        if never_returns(function):
            raise PathEnded
        found = iter(outputs if isinstance(outputs, tuple) else (outputs,))
        binding = rebind(frame.heap, frame.wrap(unflatten(callee.result_type(leaves), found)), same)
        if shares:
            families = frozenset([Cell()]).union(*(cell.family() for a in in_order
                                                   for cell in cells_in(a)
                                                   if isinstance(cell, Cell)))
            for cell in cells_in(binding):
                if isinstance(cell, Cell):
                    cell.origins |= families
        return binding

    def with_like_remedy(self, refused: S2SError) -> S2SError:
        """`refused`, with the option `like=` added to its remedy."""
        if "like=" not in refused.remedy:
            refused.remedy += ("; or say what it returns, and it is called as it is: "
                               f"s2s.{self.kind}({self.name}, like=...)")
        return refused

    def rules(self) -> tuple:
        return self.jvp, self.fwd, self.bwd, self.each

    def callee(self, arguments: tuple) -> RuledCallee:
        """The callee for calls with arguments of these kinds: trees of types with None for each
        datum.
        """
        if arguments not in self.callees:
            self.callees[arguments] = RuledCallee(self, arguments)
        return self.callees[arguments]


def without_symbolic_zeros(symbolic_zeros: bool) -> None:
    """Refuse symbolic_zeros=True."""
    if symbolic_zeros:
        raise UnsupportedError(
            "symbolic_zeros=True: rules are given zeros where there is no tangent", None,
            "leave it out; where a rule stands in place, what is multiplied with zeros vanishes "
            "from generated code"
        )


class custom_jvp(Custom):  # noqa: N801
    """A function `f` with a derivative rule of its own, added with `defjvp` or `defjvps`; a
    decorator.

    A call of the result is a call of `f`.  Derivatives of it, in either mode, use the rule, an
    ordinary function that is itself differentiated for higher orders.  The conventions are those of
    `jax.custom_jvp`: keywords and defaults are put in the places of their parameters;
    `nondiff_argnums` and `nondiff_argnames` name the arguments without tangents, mostly functions
    and strings.  Raises DerivativeError for a derivative without a rule, TypeMismatchError where
    the rule's results do not match the function's.

    A function that s2s cannot read, of SciPy or in C, is called as it is; then `like` declares its
    result: a function of the same arguments that s2s can read, whose result has the same type and
    shape, or an example.
    """

    kind = "custom_jvp"


class custom_vjp(Custom):  # noqa: N801
    """A function `f` with reverse-mode derivative rules of its own, added with `defvjp`; a
    decorator.

    Forward mode uses a rule that `defjvp` adds, and raises DerivativeError without one. For the
    rest, see `custom_jvp`.
    """

    kind = "custom_vjp"


class OriginalFunction:
    """A function known to s2s, without its added derivative rule."""

    is_bare = True

    def __init__(self, function: Callable):
        self.function, self.__name__, self.signature = function, function.__name__, signature_of(
            function)

    def __call__(self, *args):
        return self.function(*args)

    def function_for(self, values: Sequence[Value]) -> Function:
        return callee_of(self).function_for(values)

    def apply_in(self, frame, args: list, keywords: dict, node):
        return operate(frame, self.function, args, keywords, node)


def defderivative(function: Callable, *partials: Callable | None, jvp: Callable | None = None,
                  fwd: Callable | None = None, bwd: Callable | None = None, like=None) -> Custom:
    """Give a library's `function` a derivative rule, used wherever a program calls it.

    `partials` are those of an elementwise function, one for each argument: `partial(y, *xs)` is
    ∂y/∂x of the result y and the arguments xs, an ordinary function of numbers or arrays, or None
    for an argument without a derivative.  Any other function takes rules as `custom_jvp` and
    `custom_vjp` do: `jvp(primals, tangents)`, `fwd(*xs)` and `bwd(residuals, y_bar)`; and, if s2s
    does not know it, `like`, which declares its result.  A rule may call the function.  Its values
    remain those that s2s knows.

        s2s.defderivative(scipy.special.jv, None, lambda y, v, x: (jv(v - 1, x) - jv(v + 1, x)) / 2)

    Returns the function with its rules.  Raises TypeMismatchError where neither partials nor rules
    are given.
    """
    if not partials and jvp is None and (fwd is None or bwd is None):
        raise TypeMismatchError(
            f"defderivative of {getattr(function, '__name__', function)} without a derivative",
            None, "give a partial derivative for each argument, or jvp=, or fwd= and bwd=")
    known = function in FUNCTIONS
    if partials and like is None and not known:
        like = broadcast_together
    none = [k for k, p in enumerate(partials) if p is None]
    made = custom_jvp(
        OriginalFunction(function) if known and like is None else function, none, like)
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
    """An example result of an elementwise function."""
    total = 0.0
    for x in xs:
        total = total + x
    return total


def partial_rule(partial: Callable) -> Callable:
    """The rule for an argument whose partial derivative is `partial(y, *xs)`."""
    def rule(x_dot, y, *xs):
        return partial(y, *xs) * x_dot

    return rule


# ------------------------------------------------------------------------------------ calls of them


def arguments_in_order(frame, custom: Custom, args: list, keywords: dict, node) -> list:
    """The arguments of a call in the order of the parameters; of an opaque function, as passed."""
    if custom.like is None:
        try:
            signature = custom.signature
        except SourceError as refused:
            raise custom.with_like_remedy(refused) from None
        return in_parameter_order(frame, signature, custom.name, args, keywords, node)
    if not keywords:
        return list(args)
    try:
        bound = inspect.signature(custom.function).bind(*args, **keywords)
    except (TypeError, ValueError) as error:
        raise TypeMismatchError(f"{custom.name}: {error}", frame.line(node),
                                "pass its arguments by position") from None
    if bound.kwargs:
        raise frame.refuse(
            f"the keywords {', '.join(bound.kwargs)} of {custom.name}, which is called as it is",
            node, "pass them by position")
    return list(bound.args)


def apply_in_program(frame, custom: Custom, arguments: list, node):
    """The binding of a call where the function, a rule or an argument is a function defined inside
    the program.
    """
    fixed = {k % len(arguments) for k in custom.nondiff_argnums if arguments}
    made = {k: a for k, a in enumerate(arguments) if isinstance(a, FunctionValue)}
    values = [
        Value(Static(a)) if k in made else as_operand(frame, a, k in fixed)
        for k, a in enumerate(arguments)
    ]
    leaves = [leaf for v in values for leaf in leaves_of(v) if not isinstance(leaf.type, Static)]
    return RulesInProgram(frame, custom, values, arguments, leaves, node).call(leaves)


def as_operand(frame, binding, is_fixed: bool) -> Value:
    """An argument as a Value: data, or a constant of type Static for compile-time objects."""
    if isinstance(binding := binding if is_fixed else frame.contents_of(binding), Object):
        note_dependency(binding.getter, binding.content)
        return Value(Static(binding.content))
    if is_fixed and frame.is_static(binding):
        return Value(Static(frame.static(binding, "this argument")))
    if isinstance(binding, (Value, Cell, Container, tuple, list, bool, int, float, complex)):
        return frame.value(binding)
    return Value(Static(binding))


# --------------------------------------------------------------------------------- inside a program


def _made_inside(kind: type) -> Callable:
    def make(frame, node, function=None, nondiff_argnums=(), like=None, nondiff_argnames=()):
        fixed, names = frame.static(nondiff_argnums, "nondiff_argnums",
                                    node), frame.static(nondiff_argnames, "nondiff_argnames", node)
        if function is None:
            return Intrinsic(lambda frame, node, function: make(
                frame, node, function, nondiff_argnums, like, nondiff_argnames))
        return kind(function, fixed, like, nondiff_argnames=names)

    return make


BUILTINS.update({custom_jvp: _made_inside(custom_jvp), custom_vjp: _made_inside(custom_vjp)})
