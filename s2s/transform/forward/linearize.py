"""Linearisation: forward mode split into the primal, run once, and its tangents, run any number of
times.

    f(*xs) -> *ys    becomes    f_fwd(*xs) -> (*ys, *saved)
                                f_lin(*saved, *x_dots) -> *y_dots

The tangents are those of `jvp`, emitted as if every value of the primal were in scope, in blocks of
their own: their loops make the trips of the primal's loops in the same order.  Primal values that
they read are saved, or recomputed, as for the reverse sweep: `transform/reverse/tape.py` decides,
`transform/reverse/sweeps.py` emits.

Note [Not by transposing twice]
The derivative of the backward half by the cotangents is this function, too.  But it runs through
the loops backwards to find again what it needs, to run through them forwards.  Here both sweeps run
forwards: growing tapes, which are read from the end, are turned round first.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from ...analysis.propagate import loop_parts
from ...errors import UnsupportedError
from ...ir.builder import Builder, add_op, at, current, join_types
from ...ir.graph import Block, Function, Op, Value, blocks_of, walk
from ...ir.reemit import clone
from ...ir.types import INT, Tape, carries_derivative
from ...ops.core.control import Known, call, for_loop, if_record, tape_copy
from ...ops.program.checkpoint import is_plain
from ...ops.program.effects import acts_outside
from ...ops.program.recursive_callee import Recursive
from ..reverse.adjoint import drop_unread
from ..reverse.checkpoint_adjoint import drop_effects
from ..reverse.sweeps import Sweeps
from ..reverse.tape import Region, calls_made_again
from ..reverse.vjp import Halves, split
from ..stabilise import stabilised
from ..stabilise.square_roots import without_marks
from .jvp import Tangents, dot_name, tangent_type


def linearize(function: Function, wrt: Sequence[int]) -> Function:
    """Transform `f(*xs) -> *ys` to `f_lin(*xs, *x_dots) -> (*ys, *y_dots)`, with the primal
    separate from the tangents.

    A result that carries no derivative has no y_dot.  Raises DerivativeError where an op has no
    rule.
    """
    function, before = copy_rerun_tapes(stabilised(function, wrt))
    return without_marks(Sweeps(Linear(function, [function.params[k] for k in wrt],
                                       before)).function())


_halves: WeakKeyDictionary[Function, dict[tuple[int, ...], Halves]] = WeakKeyDictionary()


def split_linear(function: Function, wrt: tuple[int, ...]) -> Halves:
    """Build the two sweeps as two functions, for callers that run other code in between."""
    known = _halves.setdefault(function, {})
    if wrt not in known:
        whole, before = copy_rerun_tapes(stabilised(function, wrt))
        known[wrt] = split(whole, Linear(whole, [whole.params[k] for k in wrt], before), "lin")
    return known[wrt]


def copy_rerun_tapes(function: Function) -> tuple[Function, dict[Op, dict[Value, Value]]]:
    """Copy the tapes that are arguments of calls rerun beside their tangents; return the function
    and these copies.

    A call fills a tape, or takes from it, in place: run again, it begins with the tape as it was.
    """
    if not any(map(takes_tapes, walk(function.block))):
        return function, {}
    function, copies = clone(function), {}
    for block in list(blocks_of(function.block)):
        ops: list[Op] = []
        for op in block.ops:
            if takes_tapes(op):
                with Builder(Block(), op.line) as made:
                    copies[op] = {x: add_op(tape_copy, [x], {}, [x.type], names=[x.name]).output
                                  for x in op.inputs if isinstance(x.type, Tape)}
                ops += made.block.ops
            ops.append(op)
        block.ops = ops
    return function, copies


def takes_tapes(op: Op) -> bool:
    """Test whether `op` is a call that is rerun and takes tapes."""
    return op.name == "call" and is_run_again(op) and any(isinstance(x.type, Tape)
                                                          for x in op.inputs)


class _Itself(dict):
    """The identity mapping: values of the primal stand for themselves."""

    def __missing__(self, value: Value) -> Value:
        return value


class Linear(Tangents):
    """The emitter of the tangents of `function` alone, reading primal values wherever they are
    defined.
    """

    forwards = True

    def __init__(self, function: Function, wrt: list[Value], before: dict[Op, dict[Value, Value]]):
        super().__init__(function, wrt)
        # copies of tapes, by the call that changes them
        self.function, self.env, self.before = function, _Itself(), before
        self.home = {v: block for block in blocks_of(function.block)
                     for v in [*block.params, *(v for op in block.ops for v in op.outputs)]}
        self.made_again = calls_made_again(function)
        self.regions: dict[Block, Region] = {}  # by primal block
        self.calls: dict[Op, tuple[Function, list[Value]]] = {}  # forward part, and its residuals
        self.pairs, self.reruns, self.incoming, self.leaving = {}, {}, {}, {}  # unused here
        self.seeds = [Value(tangent_type(x.type), dot_name(x)) for x in wrt]
        self.seeded = self.reached = wrt
        root = self.regions[function.block] = Region(function.block)
        root.adjoint = Block()
        with Builder(root.adjoint, above=self.home):
            self.dots.update((x, dot) for x, dot in zip(wrt, self.seeds) if x in self.varied)
            self.block(function.block, function.params)
            root.adjoint.yields = [self.tangent(y) for y in function.results
                                   if carries_derivative(y.type)]
        drop_unread(root.adjoint)

    def again(self, op: Op) -> None:
        """Emit nothing: the primal is computed elsewhere."""

    def block(self, block: Block, args: Sequence[Value]) -> list[Value]:
        for op in block.ops:
            if self.any_varied(op):
                with at(op.line):
                    self.op(op)
        return block.yields

    def op(self, op: Op) -> None:
        if is_run_again(op):
            self.rerun_with_tangents(op)
        else:
            super().op(op)

    def rerun_with_tangents(self, op: Op) -> None:
        """Rerun an op that saves nothing together with its tangents."""
        both = Tangents(self.primal, self.wrt)
        # copies, since the linear map is called many times
        before = {x: add_op(tape_copy, [kept], {}, [kept.type]).output
                  for x, kept in self.before.get(op, {}).items()}
        both.env, both.dots = _Itself(before), dict(self.dots)
        ops = current().block.ops
        start = len(ops)
        both.op(op)
        again = Block([], ops[start:])
        if acts_outside(again):  # the primal has acted
            if any(isinstance(x.attrs.get("callee"), Recursive) for x in walk(again)):
                raise UnsupportedError(
                    f"{op.attrs['callee'].name}, which calls itself and prints, or writes outside, "
                    "in what is linearized", op.line, "use jvp, or do it outside")
            drop_effects(again)
            ops[start:] = again.ops
        self.dots.update((out, both.dots[out]) for out in op.outputs if out in both.dots)

    def call(self, op: Op) -> None:
        """Emit a call of the callee's tangents, with the residuals of its forward part."""
        wrt = [k for k, x in enumerate(op.inputs) if x in self.dots]
        if not wrt:
            return
        pair = split_linear(op.attrs["callee"].function_for(op.inputs), tuple(wrt))
        kept = pair.residuals_for(op)
        self.home.update((v, self.home[op.outputs[0]]) for v in kept)
        self.calls[op] = pair.forward, kept
        outs = call(*(op.inputs[k] for k in pair.arguments), *kept,
                    *(self.dots[op.inputs[k]] for k in wrt), callee=Known(pair.backward))
        carried = [out for out in op.outputs if carries_derivative(out.type)]
        for out, dot in zip(carried, outs if isinstance(outs, tuple) else (outs,), strict=True):
            self.set_tangent(out, dot)

    def branch(self, op: Op) -> None:
        varied = [k for k, out in enumerate(op.outputs) if out in self.varied]
        before, blocks = dict(self.dots), []
        for branch in op.blocks:
            region = self.open(branch, op)
            region.adjoint = Block()
            with Builder(region.adjoint):
                self.block(branch, [])
                region.adjoint.yields = [self.tangent(branch.yields[k]) for k in varied]
            self.dots = dict(before)
            blocks.append(region.adjoint)
        types = [join_types(a.type, b.type)
                 for a, b in zip(blocks[0].yields, blocks[1].yields, strict=True)]
        names = [dot_name(op.outputs[k]) for k in varied]
        outs = add_op(if_record, [op.inputs[0]], {}, types, blocks, names).outputs
        self.dots.update(zip([op.outputs[k] for k in varied], outs))

    def loop(self, op: Op) -> None:
        """Emit a loop with the same trips in the same order, whose carries are the tangents of the
        carries.
        """
        inits, params, ends, body = loop_parts(op)
        varied = [k for k, param in enumerate(params) if param in self.varied]
        region, before = self.open(body, op), self.dots

        def step(_, *carries: Value) -> list[Value]:
            self.dots = {**before, **dict(zip((params[k] for k in varied), carries))}
            region.adjoint = current().block
            self.block(body, [])
            return [self.tangent(ends[k]) for k in varied]

        trips = op.inputs[:3] if region.trips is None else (0, region.trips, 1)
        outs = for_loop(*trips, [self.tangent(inits[k]) for k in varied], step,
                        names=[dot_name(params[k]) for k in varied], index=body.params[0].name
                        if op.name == "for" else "k")
        self.dots = {**before, **dict(zip((op.outputs[k] for k in varied), outs))}

    def open(self, block: Block, op: Op) -> Region:
        """Record that the tangents run through `block`; count the trips of loops whose trip count
        is not known.
        """
        if block not in self.regions:
            region = self.regions[block] = Region(block, op, self.regions[self.home[op.outputs[0]]])
            counted = (op.name == "for" and not op.attrs["breaks"]
                       and isinstance(op.inputs[2].constant, int))
            if region.is_loop and not counted:
                region.trips = Value(INT, "trips", op)
        return self.regions[block]


def is_run_again(op: Op) -> bool:
    """Test whether the primal of `op` is rerun beside its tangents.

    So it is where the program asks for that, and in functions that call themselves or have rules of
    their own, which hand nothing on to their tangents.
    """
    if op.name == "call":
        return not is_plain(op.attrs["callee"])
    return "plan" in op.attrs
