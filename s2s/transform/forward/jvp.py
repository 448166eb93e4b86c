"""Forward mode (JVP): emit the tangent of every op after it.

    f(*xs) -> *ys    becomes    f_jvp(*xs, *x_dots) -> (*ys, *y_dots)

A loop carries the tangents of its carries beside them; a branch returns the tangents of what it
returns.  A value without a tangent has none: zeros are written down only where a block must return
something.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from ...analysis.activity import varied_values
from ...analysis.linearity import Untouched
from ...analysis.propagate import loop_parts
from ...errors import DerivativeError
from ...ir.builder import Builder, add_op, at, emit, join_types
from ...ir.graph import Block, Function, Op, Value
from ...ir.reemit import emit_op
from ...ir.types import Tape, Tuple, Undefined, carries_derivative
from ...ops.arrays.norms import forwards, has_slopes_of_sizes
from ...ops.core.chain_rule import like_tangent, strong_zeros
from ...ops.core.control import (
    Known,
    call,
    for_loop,
    if_record,
    item,
    make_undefined,
    packed,
    while_loop,
)
from ...ops.core.derivative_rules import has_forward_rule, tangent_of
from ...ops.core.elementwise import strong_product
from ...ops.core.shape import zeros_of
from ...ops.program.checkpoint import Rerun
from ...ops.program.custom_rules import is_ruled
from ...ops.program.recursive_callee import Recursive
from ..cleanup.tables import finished_callee
from ..reverse.adjoint import in_kind
from ..reverse.custom_rule_calls import tangents_by_rule
from ..reverse.recursive_adjoint import closed_wrt
from ..stabilise import stabilised
from ..stabilise.square_roots import without_marks


def jvp(function: Function, wrt: Sequence[int], straight: Container[int] | None = None) -> Function:
    """Transform `f(*xs) -> *ys` to `f_jvp(*xs, *x_dots) -> (*ys, *y_dots)`, for the parameters in
    `wrt`.

    A result that carries no derivative has no y_dot.  Raises DerivativeError where an op has no
    rule.  Of a parameter in `straight` a tangent that is 0 says that it does not change in this
    direction: analysis/linearity.py; None: of all.
    """
    function = stabilised(function, wrt)
    found = None if straight is None else {function.params[k] for k in wrt if k in straight}
    return without_marks(Tangents(function, [function.params[k] for k in wrt], found).build())


class Tangents:
    """The emitter of a function together with its tangents."""

    def __init__(self, primal: Function, wrt: list[Value],
                 straight: Container[Value] | None = None):
        self.primal, self.wrt = primal, wrt
        self.varied = varied_values(primal, wrt)
        self.untouched = Untouched(primal, self.varied,
                                   {x for x in self.wrt if straight is None or x in straight})
        self.env: dict[Value, Value] = {}
        self.dots: dict[Value, Value] = {}  # by primal value; absent where there is no tangent
        # Note [Second derivatives at a size of 0]
        self.one_sided = has_slopes_of_sizes(primal.block)

    def build(self) -> Function:
        primal = self.primal
        params = [Value(p.type, p.name) for p in primal.params]
        dots = [Value(tangent_type(x.type), dot_name(x)) for x in self.wrt]
        block = Block([*params, *dots])
        with Builder(block):
            self.dots.update((x, dot) for x, dot in zip(self.wrt, dots) if x in self.varied)
            results = self.block(primal.block, params)
            tangents = [self.tangent(y) for y in primal.results if carries_derivative(y.type)]
        count = len(params) - len(primal.captures)
        block.params = [*params[:count], *dots, *params[count:]]
        block.yields = results + tangents
        where = primal.source.place if primal.source is not None else ""
        doc = (f"The value of {primal.name}{where} and its tangent, for the tangents of its "
               "arguments.")
        return primal.remade(block, name=f"{primal.name}_jvp", doc=doc, tupled=True)

    def tangent(self, x: Value) -> Value:
        """Return the tangent of `x`, zeros where it has none."""
        y = self.env.get(x, x)
        if isinstance(y.type, Undefined):
            return self.dots[x] if x in self.dots else make_undefined()
        return in_kind(self.dots[x] if x in self.dots else zeros_of(y), y, firm=True)

    def block(self, block: Block, args: Sequence[Value]) -> list[Value]:
        self.env.update(zip(block.params, args, strict=True))
        for op in block.ops:
            with at(op.line):
                self.op(op)
        return [self.env[y] for y in block.yields]

    def op(self, op: Op) -> None:
        """Emit one op and its tangent."""
        match op.name:
            case "if" if self.any_varied(op):
                self.branch(op)
            case "for" | "while" if self.any_varied(op):
                self.loop(op)
            case "call" if self.any_varied(op):
                self.call(op)
            case "tuple" | "item":
                self.member(op)
            case _:
                self.simple(op)

    def again(self, op: Op) -> None:
        """Emit the primal op."""
        emit_op(op, self.env)

    def any_varied(self, op: Op) -> bool:
        return any(out in self.varied for out in op.outputs)

    def simple(self, op: Op) -> None:
        self.again(op)
        dots = tuple(self.dots.get(x) for x in op.inputs)
        if not self.any_varied(op) or all(dot is None for dot in dots):
            return
        with at(op.line.of_tangent() if op.line is not None else None):
            self.tangents_of(op, dots)

    def tangents_of(self, op: Op, dots: tuple) -> None:
        """Emit the tangents of what `op` computes."""
        inputs, outs = [self.env[x] for x in op.inputs], [self.env[out] for out in op.outputs]
        single = len(outs) == 1
        if (places := self.untouched.masks(op)) is not None and dots[places[0]] is None:
            tangents = like_tangent(strong_product(inputs[places[0]], dots[places[1]]), outs[0])
        elif has_forward_rule(op.record):
            asked = ({dots[k] for k, x in enumerate(op.inputs) if x in self.untouched.linear}
                     if self.untouched.asks_strong_zeros(op) else False)
            with strong_zeros(asked), forwards(self.one_sided):
                tangents = tangent_of(op.record, dots, outs[0] if single else tuple(outs), *inputs,
                                      **op.attrs)
        else:
            raise DerivativeError(f"{op.name} has no derivative", op.line,
                                  "give it one with custom_jvp, or " "keep what is differentiated "
                                  "out of its arguments with stop_gradient")
        for out, dot in zip(op.outputs, [tangents] if single else tangents or [None] * len(outs),
                            strict=True):
            self.set_tangent(out, dot)

    def set_tangent(self, out: Value, dot: Value | None) -> None:
        if dot is None or not carries_derivative(out.type):
            return
        dot = in_kind(dot, self.env[out])
        if not dot.name and dot.op is not None and self.env[out].name:
            dot.name = f"{self.env[out].name}_dot"
        self.dots[out] = dot

    def member(self, op: Op) -> None:
        """Emit the tangent of a tuple op: tuples have tuples of tangents."""
        self.again(op)
        if op.name == "tuple":
            if any(x in self.dots for x in op.inputs):
                self.dots[op.output] = packed([self.tangent(x) for x in op.inputs],
                                              op.output.type.form)
        elif op.inputs[0] in self.dots and carries_derivative(op.output.type):
            self.set_tangent(op.output, item(self.dots[op.inputs[0]], **op.attrs))

    def call(self, op: Op) -> None:
        """Emit a call of the callee's own jvp."""
        wrt = [k for k, x in enumerate(op.inputs) if x in self.dots]
        if not wrt:
            return emit_op(op, self.env)
        inputs = [self.env[x] for x in op.inputs]
        if is_ruled(op.attrs["callee"]):
            return self.called(op,
                               tangents_by_rule(op, inputs,
                                                {k: self.dots[op.inputs[k]] for k in wrt}))
        if isinstance(op.attrs["callee"], Recursive):
            return self.recursive_call(op, inputs, wrt)
        function = op.attrs["callee"].function_for(inputs)
        dots, data = [self.dots[op.inputs[k]] for k in wrt], len(inputs) - len(function.captures)
        callee = Known(finished_callee(
            jvp(function, wrt, [k for k in wrt if op.inputs[k] in self.untouched.linear])))
        callee = Rerun(callee) if isinstance(op.attrs["callee"], Rerun) else callee
        outs = emit(call, *inputs[:data], *dots, *inputs[data:], callee=callee)
        return self.called(op, outs)

    def recursive_call(self, op: Op, inputs: list[Value], wrt: list[int]) -> None:
        """Emit a call of the jvp of a recursive function, which is recursive too."""
        made, wrt = recursive_jvp(op.attrs["callee"], wrt)
        self.called(op,
                    emit(call, *inputs, *(self.tangent(op.inputs[k]) for k in wrt), callee=made))

    def called(self, op: Op, outs: Sequence[Value]) -> None:
        """Record the values and tangents that a call has returned."""
        self.env.update(zip(op.outputs, outs))
        tangents = iter(outs[len(op.outputs):])
        for out in op.outputs:
            if carries_derivative(out.type):
                dot = next(tangents)
                # the zero of a tape is an empty tape, from which nothing can be popped
                if out in self.varied:
                    self.set_tangent(out, dot)

    def branch(self, op: Op) -> None:
        varied = [k for k, out in enumerate(op.outputs) if out in self.varied]
        blocks = []
        for branch in op.blocks:
            block = Block()
            with Builder(block):
                block.yields = self.block(branch, [])
                block.yields = block.yields + [self.tangent(branch.yields[k]) for k in varied]
            blocks.append(block)
        types = [join_types(a.type, b.type)
                 for a, b in zip(blocks[0].yields, blocks[1].yields, strict=True)]
        names = [out.name for out in op.outputs] + [dot_name(op.outputs[k]) for k in varied]
        outs = add_op(if_record, [self.env[op.inputs[0]]], {}, types, blocks, names).outputs
        self.env.update(zip(op.outputs, outs))
        self.dots.update(zip([op.outputs[k] for k in varied], outs[len(op.outputs):]))

    def loop(self, op: Op) -> None:
        inits, params, ends, body = loop_parts(op)
        varied = [k for k, param in enumerate(params) if param in self.varied]
        count = len(params)
        breaks, plan = op.attrs["breaks"], op.attrs.get("plan")
        starts = [self.env[x] for x in inits] + [self.tangent(inits[k]) for k in varied]
        names = [p.name for p in params] + [dot_name(params[k]) for k in varied]

        def step(*args: Value) -> list[Value]:
            index, carries = (args[:1], args[1:]) if op.name == "for" else ((), args)
            self.dots.update(zip([params[k] for k in varied], carries[count:]))
            return self.block(body,
                              [*index, *carries[:count]]) + [self.tangent(ends[k]) for k in varied]

        if op.name == "for":
            outs = for_loop(*(self.env[x] for x in op.inputs[:3]), starts, step, breaks, names,
                            body.params[0].name, plan)
        else:
            outs = while_loop(starts, lambda *c: self.test(op.blocks[0], c[:count]), step, breaks,
                              names, plan)
        self.env.update(zip(op.outputs, outs))
        self.dots.update(zip([op.outputs[k] for k in varied], outs[count:]))

    def test(self, head: Block, args: Sequence[Value]) -> Value:
        """Emit the condition of a `while`, which has no tangent."""
        self.env.update(zip(head.params, args, strict=True))
        for op in head.ops:
            with at(op.line):
                emit_op(op, self.env)
        return self.env[head.yields[0]]


_recursive: WeakKeyDictionary[Recursive,
                              dict[tuple[int, ...], tuple[Recursive, list[int]]]] = (
                                  WeakKeyDictionary())


def recursive_jvp(callee: Recursive, wrt: Sequence[int]) -> tuple[Recursive, list[int]]:
    """Return the jvp of a recursive function for the arguments in `wrt`, and perhaps more, and
    which these are.
    """
    known = _recursive.setdefault(callee, {})
    if tuple(wrt) not in known:
        tapes = {k for k, p in enumerate(callee.function.params) if isinstance(p.type, Tape)
                 and carries_derivative(p.type)}
        # an allocated tape has its type at its allocation
        wanted = closed_wrt(callee, tapes.union(wrt), varied_values)
        for member, ks in wanted.items():
            function, made = member.function, Recursive(f"{member.name}_jvp")
            dots = [Value(tangent_type(function.params[k].type)) for k in sorted(ks)]
            results = [Value(y.type) for y in function.results]
            results += [Value(tangent_type(y.type)) for y in function.results
                        if carries_derivative(y.type)]
            block = Block([*(Value(p.type) for p in function.params), *dots], [], results)
            made.function = Function(made.name, block, function.source, function.doc, True)
            _recursive.setdefault(member, {})[tuple(sorted(ks))] = made, sorted(ks)
        known[tuple(wrt)] = known[tuple(sorted(wanted[callee]))]
        for member, ks in wanted.items():
            made, _ = _recursive[member][tuple(sorted(ks))]
            made.function = jvp(member.function, sorted(ks), ())
    return known[tuple(wrt)]


def tangent_type(type):
    """Return the type of a tangent of a value of this type."""
    return (replace(type, items=tuple(map(tangent_type, type.items))) if isinstance(type, Tuple)
            else type)


def dot_name(x: Value) -> str:
    """Name the tangent of `x`."""
    return f"{x.name}_dot" if x.name else ""
