"""Closure conversion of functions with derivative rules defined inside a program: captured values
become arguments.

The values of the enclosing program that such a function and its rules read become their arguments,
so that they are IR of their own (ops/program/custom_rules.py).  They are built at once, for the
program is gone when a derivative is taken.  A rule may call the function that it is the rule of:
such a call is noted, and receives the arguments when all of them are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import DerivativeError, Line, S2SError
from ...ir.builder import Builder, emit
from ...ir.graph import MISSING, Block, Function, Op, Value, free_values, walk
from ...ir.reemit import rebuild
from ...ir.substitute import substitute
from ...ir.types import Tuple, Type, carries_derivative
from ...ops.core.control import call as call_record
from ...ops.core.control import make_undefined, packed
from ...ops.core.record import value
from ...ops.program.custom_rules import Halves, differentiable_arguments
from ...ops.program.pytree import leaves_of, member_name


class Group:
    """Mutually recursive functions with rules, under construction: all of them receive the same
    captured values.
    """

    def __init__(self, frame):
        self.frame = frame
        self.members: list[ClosedCallee] = []
        self.calls: list[Op] = []  # of members, which lack the captures
        self.extras: list[Value] | None = None  # the captures, once they are known

    def block(self, leaves: Sequence[Value], make: Callable) -> Block:
        """The block of the ops and results of `make(params)` for parameters like `leaves`; the
        enclosing program is left unchanged.
        """
        frame = self.frame
        block = Block([Value(v.type, v.name) for v in leaves])
        state, before = frame.snapshot(), dict(frame.heap.contents)
        live, frame.live = frame.live, frame.live | frame.pending
        with Builder(block, above=leaves):
            block.yields = list(make(block.params))
        changed = any(
            frame.heap.contents.get(cell) is not content for cell, content in before.items())
        frame.restore(state)
        frame.live = live
        if changed:
            raise frame.refuse(
                "a function with a rule for its derivative writes into an array of the program "
                "around it",
                None, "let it take a copy, and return what it makes")
        return block

    def finish(self) -> None:
        """Give every member the captures of all members."""
        free = self.free_in([block for member in self.members for block in member.blocks.values()])
        self.extras = [leaf for v in free for leaf in leaves_of(v)]
        for member in self.members:
            member.close(free)

    def free_in(self, blocks: Sequence[Block]) -> list[Value]:
        """The free values of `blocks`; constants are rematerialised."""
        tangents = {dot for member in self.members for dot in member.dots.values()}
        outside = dict.fromkeys(v for block in blocks for v in free_values(block)
                                if v not in tangents)
        return [v for v in outside if v.constant is MISSING and not _is_undefined(v)]

    def bound(self, block: Block, free: Sequence[Value]) -> list[Value]:
        """Fresh parameters in place of the free values `free` in `block`."""
        params: list[Value] = []
        before, stands_for = Block(), {}
        tangents = {dot for member in self.members for dot in member.dots.values()}
        others = [v for v in free_values(block) if v not in {*free, *tangents}]
        with Builder(before, above=[*free, *block.params]):
            for k, v in enumerate(free):
                stands_for[v] = _parameters(v.type, v.name or f"captured_{k}", params)
            for v in others:
                stands_for[v] = make_undefined() if _is_undefined(v) else value(v.constant)
        block.ops[:0] = before.ops
        substitute(block, stands_for)
        inside = set(walk(block))
        for op in self.calls:
            if op in inside:
                op.inputs = [*op.inputs, *params]
        return params


def closed_function(frame, name: str, leaves: Sequence[Value],
                    make: Callable) -> tuple[Function, list[Value]]:
    """The IR of `make(params)`, a function of values like `leaves` and then of the captures; and
    the captures, leaf by leaf.
    """
    group = Group(frame)
    block = group.block(leaves, make)
    free = group.free_in([block])
    given = [leaf for v in free for leaf in leaves_of(v)]
    block.params = [*block.params, *group.bound(block, free)]
    return Function(name, block, frame.source, "", len(block.yields) != 1), given


def _is_undefined(v: Value) -> bool:
    return v.op is not None and v.op.name == "undefined"


def _parameters(type: Type, name: str, params: list[Value]) -> Value:
    if isinstance(type, Tuple):
        return packed(
            [_parameters(t, member_name(name, type, k), params) for k, t in enumerate(type.items)],
            type.form)
    params.append(Value(type, name))
    return params[-1]


class ClosedCallee:
    """A callee with derivative rules, whose function and rules are IR, built from blocks (see
    `Group`):

    function    (*xs) -> *ys
    jvp         (*xs, x_dots) -> (*ys, *y_dots)       for arguments `dotted`, captures in `dots`
    forward     (*xs) -> (*ys, *residuals)
    backward    (*xs, *residuals, *y_bars) -> x_bars  of arguments `covered`, captures in `barred`

    where the blocks receive the arguments of calls, `leaves`, and `close` appends the captures.
    """

    def __init__(self, name: str, leaves: Sequence[Value], group: Group, line: Line | None = None,
                 source=None, fixed: Sequence[int] = ()):
        self.name, self.leaves, self.group, self.line, self.source = name, list(
            leaves), group, line, source
        self.count, self.own, self.fixed = len(leaves), len(leaves), frozenset(fixed)
        self.is_constant = True  # no derivative in its captures
        self.blocks: dict[str, Block] = {}
        self.functions: dict[str, Function] = {}
        self.made: dict[tuple, object] = {}
        self.errors: dict[str, S2SError] = {}
        # captures, leaf by leaf -> tangent in the block "jvp"
        self.dots: dict[Value, Value] = {}
        self.covered: list[int] = []
        self.barred: list[Value] = []
        self.arguments: tuple[int, ...] = ()
        self.asked = ""  # how to add the missing rule
        group.members.append(self)

    def __repr__(self) -> str:
        return f"<ruled {self.name}>"

    @property
    def dotted(self) -> list[int]:
        """The arguments of calls that have a tangent."""
        return [
            k for k, v in enumerate(self.leaves)
            if k not in self.fixed and carries_derivative(v.type)
        ]

    # under construction

    def add(self, kind: str, leaves: Sequence[Value], make: Callable) -> Block | None:
        """Add a block; an error in a rule is stored until the rule is needed."""
        try:
            block = self.group.block(leaves, make)
        except S2SError as error:
            if kind == "function":
                raise
            self.errors["jvp" if kind == "jvp" else "vjp"] = error
            return None
        self.blocks[kind] = block
        if kind == "function":
            self.functions[kind] = Function(self.name, block, self.source, "",
                                            len(block.yields) != 1)
        return block

    def call(self, leaves: Sequence[Value]) -> list[Value]:
        """Emit a call."""
        extras = self.group.extras
        found = emit(call_record, *leaves, *(extras or ()), callee=self)
        found = list(found) if isinstance(found, tuple) else [found]
        if extras is None:
            self.group.calls.append(found[0].op)
        return found

    def close(self, free: Sequence[Value]) -> None:
        """Append the captures to the arguments."""
        own, extras = len(self.leaves), self.group.extras
        self.count = own + len(extras)
        if self.is_constant:
            self.fixed = self.fixed | set(range(own, self.count))
        for kind, block in self.blocks.items():
            added = self.group.bound(block, free)
            given, rest = block.params[:own], block.params[own:]
            if kind == "jvp":
                dots = dict(zip(self.dotted, rest))
                dots.update((own + k, self.dots[leaf]) for k, leaf in enumerate(extras)
                            if leaf in self.dots)
                xs = [*given, *added]
                rest = [dots.get(k) if k in dots else Value(xs[k].type, f"{xs[k].name}_dot")
                        for k in differentiable_arguments(self, xs)]
            elif kind == "backward":
                read = {x for op in walk(block) for x in op.inputs} | set(block.yields)
                read.update(y for op in walk(block) for inner in op.blocks for y in inner.yields)
                xs = [*given, *added]
                self.arguments = tuple(k for k, x in enumerate(xs) if x in read)
                given, added = [xs[k] for k in self.arguments], []
            block.params = [*given, *added, *rest]
            name = self.name + {"jvp": "_jvp", "forward": "_fwd", "backward": "_bwd"}.get(kind, "")
            self.functions[kind] = Function(name, block, self.source, "", len(block.yields) != 1)

    # a callee with derivative rules

    def function_for(self, values: Sequence[Value]) -> Function:
        return self.typed("function", [v.type for v in values])

    def getters(self, values: Sequence[Value]) -> tuple:
        return ()

    def jvp(self, values: Sequence[Value]) -> Function | None:
        if "jvp" in self.errors:
            raise self.errors["jvp"]
        if "jvp" not in self.functions:
            return None
        return self.typed("jvp", [
            *(v.type for v in values), *(values[k].type
                                         for k in differentiable_arguments(self, values))
        ])

    def vjp(self, values: Sequence[Value]) -> Halves | None:
        if "vjp" in self.errors:
            raise self.errors["vjp"]
        if "backward" not in self.functions:
            return None
        types = [v.type for v in values]
        key = "halves", tuple(types)
        if key not in self.made:
            forward = self.typed("forward", types)
            count = len(self.functions["function"].results)
            ys, residuals = forward.results[:count], forward.results[count:]
            bars = [y.type for y in ys if carries_derivative(y.type)]
            backward = self.typed(
                "backward",
                [*(types[k] for k in self.arguments), *(v.type for v in residuals), *bars])
            own, extras = len(self.leaves), self.group.extras
            covers = (*self.covered, *(own + extras.index(leaf) for leaf in self.barred))
            self.made[key] = Halves(forward, backward, self.arguments, covers)
        return self.made[key]

    def missing(self, mode: str) -> S2SError:
        which = "forward" if mode == "jvp" else "reverse"
        return DerivativeError(f"{self.name} has no rule for {which} mode", self.line, self.asked)

    def typed(self, kind: str, types: Sequence[Type]) -> Function:
        """One of its functions, for parameters of these types."""
        function, types = self.functions[kind], tuple(types)
        if len(types) != len(function.params) or types == tuple(p.type for p in function.params):
            return function
        if (kind, types) not in self.made:
            self.made[kind, types] = rebuild(function, types)
        return self.made[kind, types]
