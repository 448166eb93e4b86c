"""Calls of functions with derivative rules where the function, a rule or an argument is a function
defined inside the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.builder import Builder
from ...ir.graph import Block, Value
from ...ir.reemit import emit_block
from ...ir.types import Static, Tuple, Type, carries_derivative
from ...ops.core.control import item, packed
from ...ops.core.record import value
from ...ops.program.pytree import leaf_types, leaves_of
from ..domain.functions import FunctionValue
from ..domain.rule_closures import ClosedCallee, Group
from ..eval.apply import apply
from ..eval.opaque_calls import DeclaredType, foreign_function
from .call_custom import RuledCallee, in_order, kind_of, parameters_of, tangents_like, unflatten

# depth of calls of one function in its own rules, each with another function: Note [Rules that call
# what they are the rule of]
DEPTH = 4

# Note [Rules that call what they are the rule of]
# The rules of such a call are built together with it, while the captures of the functions are at
# hand, not on demand. The backward rule of a fixed point may solve another fixed point, of a
# function derived from the first, so the rules of that call belong to yet another, without end:
# each adds one order of derivatives.  Beyond DEPTH they are refused on demand.
# Considered: building the rules on demand, as for module-level functions, which would keep the
# activations of the program for as long as its IR lives, and emit into finished blocks.


class RulesInProgram:
    """A function with rules, of which a part is defined inside the program: the Closed of one call.
    """

    def __init__(self, frame, custom, values: Sequence[Value], arguments: Sequence,
                 leaves: Sequence[Value], node):
        self.frame, self.custom, self.node = frame, custom, node
        self.types, self.bindings = [v.type for v in values], list(arguments)
        self.shape = RuledCallee(custom, tuple(kind_of(v.type) for v in values))
        key = custom, self.shape.arguments, tuple(v.type for v in leaves)
        depth = sum(made is custom for (made, *_), *_ in frame.session.closing)
        same = [each for each in frame.session.closing if each[0] == key]
        if same:
            _, self.closed, self.result = same[-1]
            return
        group, leaves = Group(frame), self.called(leaves)
        self.closed = ClosedCallee(custom.name, leaves, group, frame.line(node), frame.source,
                                   self.shape.fixed)
        self.closed.asked = f"give it one: {custom.name}.defjvp(rule)"
        self.result: Type | None = None
        self.closed.add("function", leaves, self.function)
        if depth == DEPTH:
            self.closed.errors = dict.fromkeys(
                ("jvp", "vjp"),
                frame.refuse(
                    f"a derivative of order {DEPTH + 1} of {custom.name}, whose rule gives it "
                    "another function each time",
                    node,
                    "use custom_root or custom_fixed_point, whose derivatives have derivatives of "
                    "any order"
                ))
            group.finish()
            return
        frame.session.closing.append((key, self.closed, self.result))
        try:
            if custom.jvp is not None:
                self.closed.add("jvp", [*leaves, *self.dots(leaves)], self.jvp)
            if custom.fwd is not None:
                self.reverse(leaves)
        finally:
            frame.session.closing.pop()
        if custom.each:
            self.closed.errors["jvp"] = frame.refuse("defjvps of a function that a program makes",
                                                     node, "use defjvp there")
        if custom.fwd is not None and custom.jvp is None:
            self.closed.errors["jvp"] = self.shape.missing("jvp")
        group.finish()

    def called(self, leaves: Sequence[Value]) -> list[Value]:
        """`leaves` as Values with the function's own names for them."""
        params: list[Value] = []
        with Builder(Block()):
            for name, type in zip(self.custom.signature.parameters, self.types):
                parameters_of(type, name, params)
        return params if len(params) == len(leaves) else list(leaves)

    def call(self, leaves: Sequence[Value]):
        found = iter(self.closed.call(leaves))
        return self.frame.wrap(unflatten(self.result, found))

    def dots(self, leaves: Sequence[Value]) -> list[Value]:
        return [Value(leaves[k].type, f"{leaves[k].name}_dot") for k in self.closed.dotted]

    def given(self, params: Sequence[Value]) -> list:
        """The bindings of the arguments."""
        rest = iter(params)
        return [
            self.bindings[k] if isinstance(t, Static) else self.frame.wrap(unflatten(t, rest))
            for k, t in enumerate(self.types)
        ]

    def trees(self, params: Sequence[Value]) -> list[Value]:
        rest = iter(params)
        return [unflatten(t, rest) for t in self.types]

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
        """The call of an opaque function; `like` may be defined inside the program."""
        like = self.custom.like
        if isinstance(like, FunctionValue):
            with Builder(Block(), above=params):
                like = DeclaredType(self.custom.name, self.apply(like, self.given(params)).type)
        if any(isinstance(t, Static) and isinstance(t.value, FunctionValue) for t in self.types):
            raise self.frame.refuse(
                f"{self.custom.name}, which is called as it is, is given a function of the program",
                self.node, "define the function outside, or use custom_root")
        built = foreign_function(self.custom.function, self.custom.name, like, self.types)
        found = emit_block(built.block, self.trees(params), {})
        return packed(found, None) if built.tupled else found[0]

    def jvp(self, params: Sequence[Value]) -> list[Value]:
        shape, rule = self.shape, self.custom.jvp
        given, trees = self.given(params[:len(self.closed.leaves)]), self.trees(
            params[:len(self.closed.leaves)])
        dots = iter(params[len(self.closed.leaves):])
        wanted = [k for k in range(len(given)) if k not in shape.nondiff]
        tangents = [self.frame.wrap(tangents_like(trees[k], dots)) for k in wanted]
        found = self.apply(
            rule,
            [*(given[k] for k in shape.nondiff),
             tuple(given[k] for k in wanted),
             tuple(tangents)])
        if not isinstance(found.type, Tuple) or len(found.type.items) != 2:
            raise shape.wrong(
                "jvp", rule,
                f"returns {found.type}, and a pair is needed: the value and its tangent")
        ys = shape.like(item(found, index=0), self.result, rule, "the value")
        return [
            *ys, *shape.filled(
                shape.like(item(found, index=1), self.result, rule, "the tangent", tangent=True),
                ys, rule)
        ]

    def reverse(self, leaves: Sequence[Value]) -> None:
        """The forward and the backward function."""
        kept: list[Type] = []
        shape, custom, count = self.shape, self.custom, len(leaves)

        def forward(params):
            found = self.apply(custom.fwd, self.given(params))
            if not isinstance(found.type, Tuple) or len(found.type.items) != 2:
                raise shape.wrong(
                    "fwd", custom.fwd,
                    f"returns {found.type}, and a pair is needed: the value and the residuals")
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
            tree = unflatten(kept[0], rest)
            y_bar = cotangent_of(self.result, rest)
            found = self.apply(
                custom.bwd,
                [*(given[k] for k in shape.nondiff),
                 self.frame.wrap(tree),
                 self.frame.wrap(y_bar)])
            wanted = [k for k in range(len(given)) if k not in shape.nondiff]
            if not in_order(found.type) or len(found.type.items) != len(wanted):
                raise shape.wrong(
                    "bwd", custom.bwd,
                    f"returns {found.type}, and {custom.name} has {len(wanted)} arguments to "
                    "differentiate"
                )
            yields = []
            for n, k in enumerate(wanted):
                places = [place for place, owner in enumerate(shape.owners()) if owner == k]
                for place, leaf in zip(
                        places,
                        shape.like(item(found, index=n), self.types[k], custom.bwd, "a cotangent",
                                   tangent=True)):
                    if leaf is not None and carries_derivative(leaves[place].type):
                        self.closed.covered.append(place)
                        yields.append(
                            shape.of_shape(leaf, leaves[place].type, None, custom.bwd,
                                           "a cotangent"))
            return yields

        self.closed.add("backward", [*leaves, *residuals, *bars], backward)


def cotangent_of(type: Type, bars: Iterator[Value]) -> Value:
    """A tree of structure `type`: the next of `bars` for leaves with a derivative, zeros for the
    rest.
    """
    if isinstance(type, Tuple):
        return packed([cotangent_of(t, bars) for t in type.items], type.form)
    if isinstance(type, Static):
        return value(type.value)
    return next(bars) if carries_derivative(type) else value(0.0)
