"""Reverse mode of recursive functions.

    f(*xs) -> *ys    becomes    f_fwd(*xs, *tapes) -> (*ys, *tapes)
                                f_bwd(*some xs, *tapes, *y_bars, *sums) -> (*x_bars, *tapes)

The functions that call one another share their tapes, growing ones, handed from call to call (Note
[One tape for all calls]).  The cotangent of an array is a sum that is handed in and returned, so
that calls which each read an element do not each make an array of zeros.

Note [One tape for all calls]
Each value that a block saves is pushed when the block ends, so after whatever the calls in it have
pushed; the adjoint of the block pops it first.  So one tape per value is enough, last in, first
out, for calls of any depth.

Note [What the backward part is given]
Parameters that the reverse sweep reads are passed to it by the caller, which often can recompute
them (`n - 1`, a part of an array), and saves them otherwise.  Which ones depends on the arguments
of the inner calls: a fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from ...analysis.activity import active_values
from ...ir.builder import Builder, at, fresh_extent
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.reemit import emit_op
from ...ir.types import Array, Extent, Tape, Tuple, Type, Unknown, carries_derivative
from ...ops.core.control import Known, call
from ...ops.program.recursive_callee import Recursive, recursive_callees, written_params
from .adjoint import Adjoint, differentiable_results
from .custom_rule_calls import expand_rule_calls
from .sweeps import Sweeps, tape_name
from .tape import Region, operands, unstable_values


@dataclass(eq=False)
class Pair:
    """The forward and backward part of a recursive function."""

    wrt: list[int]
    arguments: list[int]  # which arguments the backward part reads
    summed: list[int]  # those of `wrt` whose partial cotangents are passed in
    forward: Recursive
    backward: Recursive
    sketch: Known | None = None  # a stub of the backward part, until the tapes are known
    tapes: list[tuple[str, Type]] = field(default_factory=list)


_pairs: WeakKeyDictionary[Recursive, dict[tuple[int, ...], Pair]] = WeakKeyDictionary()


def recursive_pair(callee: Recursive, wrt: Sequence[int], split: Callable, whole: Callable) -> Pair:
    """Build the two parts for the arguments in `wrt`, and perhaps more; `split` and `whole`
    differentiate functions that are not recursive.
    """
    known = _pairs.setdefault(callee, {})
    if tuple(wrt) not in known:
        wanted = closed_wrt(callee, wrt, active_values)
        for member, pair in _pairs_of(wanted, split, whole).items():
            _pairs.setdefault(member, {})[tuple(pair.wrt)] = pair
        known[tuple(wrt)] = known[tuple(sorted(wanted[callee]))]
    return known[tuple(wrt)]


def mutually_recursive(callee: Recursive) -> list[Recursive]:
    """Return the functions that are mutually recursive with `callee`, itself first."""
    return [callee, *(other for other in recursive_callees(callee.function)
                      if other is not callee and callee in recursive_callees(other.function))]


def calls_of(function: Function, members) -> list[Op]:
    """Return the calls of `members` in `function`."""
    return [op for op in walk(function.block) if op.name == "call"
            and op.attrs["callee"] in members]


def closed_wrt(callee: Recursive, wrt: Sequence[int],
               carrying: Callable) -> dict[Recursive, set[int]]:
    """For each function mutually recursive with `callee`, return the arguments that carry a
    derivative if those in `wrt` of `callee` do.

    `carrying(function, params)` are the values of `function` that do.
    """
    members = mutually_recursive(callee)
    wanted: dict[Recursive, set[int]] = {member: set() for member in members}
    wanted[callee].update(wrt)
    while True:
        before = sum(map(len, wanted.values()))
        for member in members:
            if wanted[member]:
                function = member.function
                carried = carrying(function, [function.params[k] for k in sorted(wanted[member])])
                for op in calls_of(function, wanted):
                    params = op.attrs["callee"].function.params
                    wanted[op.attrs["callee"]].update(k for k, x in enumerate(op.inputs)
                                                      if x in carried
                                                      and carries_derivative(params[k].type))
        if sum(map(len, wanted.values())) == before:
            return {member: ks for member, ks in wanted.items() if ks}


def _pairs_of(wanted: dict[Recursive, set[int]], split: Callable,
              whole: Callable) -> dict[Recursive, Pair]:
    written = written_params(list(wanted))
    pairs = {}
    for member, ks in wanted.items():
        params, wrt = member.function.params, sorted(ks)
        summed = [k for k in wrt if isinstance(params[k].type, (Array, Unknown))
                  and k not in written[member]]
        pairs[member] = Pair(wrt, [], summed, Recursive(f"{member.name}_fwd"),
                             Recursive(f"{member.name}_bwd"))

    def either(callee, wrt, *seeded):
        return pairs[callee] if callee in pairs else split(callee, wrt, *seeded)

    functions = {member: expand_rule_calls(member.function, pair.wrt, split)
                 for member, pair in pairs.items()}
    while True:
        sweeps = {}
        for member, pair in pairs.items():
            pair.sketch = Known(_stub(member.function, pair))
        for member, pair in pairs.items():
            function = functions[member]
            adjoint = Adjoint(function, [function.params[k] for k in pair.wrt], either, whole,
                              [function.params[k] for k in pair.summed], alone=False,
                              partial=range(len(function.results)))
            sweeps[member] = RecursiveSweeps(adjoint, written[member])
        read = {member: each.arguments() for member, each in sweeps.items()}
        if all(read[member] == pair.arguments for member, pair in pairs.items()):
            break
        for member, pair in pairs.items():
            pair.arguments = sorted({*pair.arguments, *read[member]})
    keys = [key for each in sweeps.values() for key in each.kinds]
    for pair in pairs.values():
        pair.tapes = [(tape_name(v), v.type) for _, v in keys]
    for member, pair in pairs.items():
        pair.forward.function, pair.backward.function = sweeps[member].stubs(pair)
    if not keys:
        for member, pair in pairs.items():
            pair.forward = member
    made = {member: sweeps[member].functions(pair, keys) for member, pair in pairs.items()}
    for member, pair in pairs.items():
        if keys:
            pair.forward.function = made[member][0]
        pair.backward.function, pair.sketch = made[member][1], None
    return pairs


def docs_of(function: Function) -> tuple[str, str]:
    """Return the docstrings of f_fwd and f_bwd."""
    where = f"{function.name}{function.source.place if function.source is not None else ''}"
    return (f"{where}, and what its cotangents need.",
            f"The cotangents of the arguments of {where}.")


def _stub(function: Function, pair: Pair) -> Function:
    """Return a stub of the backward part for its callers, before the tapes are known."""
    params = [Value(function.params[k].type) for k in pair.arguments]
    params += [Value(y.type) for y in differentiable_results(function)]
    params += [Value(function.params[k].type) for k in pair.summed]
    results = [Value(function.params[k].type) for k in pair.wrt]
    return Function(pair.backward.name, Block(params, [], results), function.source, "",
                    len(results) != 1)


def tape_type(type: Type) -> Type:
    """Return the item type of a tape whose items come from calls with different lengths."""
    match type:
        case Array(dtype, dims):
            return Array(dtype, tuple(fresh_extent() if isinstance(d, Extent) else d for d in dims))
        case Unknown(_, dtype):
            return Unknown(None, dtype)
        case Tuple(items, form):
            return Tuple(tuple(map(tape_type, items)), form)
        case Tape(item):
            return Tape(tape_type(item))
    return type


class RecursiveSweeps(Sweeps):
    """The two sweeps as two functions, whose recursive calls pass the tapes on."""

    def __init__(self, adjoint: Adjoint, written: set[int]):
        super().__init__(adjoint)
        params = self.primal.params
        stable = {p for k, p in enumerate(params) if k not in written}
        self.unstable = unstable_values(self.primal.block, True, stable)
        self.kept = {}
        self.root = self.regions[self.primal.block]
        self.backs = {op: adjoint.backs[op] for op in walk(self.root.adjoint)
                      if op in adjoint.backs}
        self.live = {primal for primal, _ in self.backs.values()}
        self.among = {primal for primal, _ in adjoint.backs.values()}
        self.keys: list = []
        self.decide(self.root)

    def arguments(self) -> list[int]:
        """Return the parameters that the backward part reads."""
        read = {*self.root_needs,
                *(x for v in self.root.recomputed for x in operands(v, self.kept))}
        return [k for k, p in enumerate(self.primal.params) if p in read]

    # deciding

    def decide(self, region: Region) -> None:
        if region.parent is not None:
            return super().decide(region)
        for child in [r for r in self.regions.values() if r.parent is region]:
            self.decide(child)
        self.root_needs = [v
                           for v in dict.fromkeys([*self.reads(region.adjoint),
                                                   *self.last_trip_reads(region.adjoint)])
                           if v in self.home]
        region.saved, region.recomputed = self.cut(region, self.root_needs,
                                                   given=set(self.primal.params))
        for v in region.saved:
            self.choose_tape(region, v)
        return None

    def choose_tape(self, region: Region, v: Value) -> None:
        self.kinds[region, v] = "stack"

    def is_counted(self, region: Region) -> bool:
        return True

    # emitting

    def stubs(self, pair: Pair) -> tuple[Function, Function]:
        """Create both functions, without their ops."""
        primal = self.primal
        with Builder(Block(), above=self.home):
            tapes = [Value(Tape(tape_type(type)), name) for name, type in pair.tapes]
        again = [Value(tape.type) for tape in tapes]
        forward = Block([*self.again(primal.params), *tapes], [],
                        [*(Value(y.type) for y in primal.results), *again])
        params = [*self.again([primal.params[k] for k in pair.arguments]),
                  *(Value(t.type, t.name) for t in tapes)]
        params += [*(Value(s.type, s.name or "y_bar") for s in self.adjoint.seeds),
                   *self.again(self.adjoint.incoming.values())]
        results = [*(Value(primal.params[k].type) for k in pair.wrt),
                   *(Value(t.type) for t in tapes)]
        docs = docs_of(primal)
        return (Function(pair.forward.name, forward, primal.source, docs[0],
                         len(forward.yields) != 1),
                Function(pair.backward.name, Block(params, [], results), primal.source, docs[1],
                         len(results) != 1))

    def again(self, values) -> list[Value]:
        return [Value(v.type, v.name) for v in values]

    def functions(self, pair: Pair, keys: list) -> tuple[Function, Function]:
        """Emit both functions."""
        primal, count = self.primal, len(self.primal.params)
        self.keys = keys
        self.kinds.update(dict.fromkeys(keys, "stack"))
        made = []
        for stub in self.stubs(pair):
            block, self.env = Block(stub.params), {}
            forwards = not made
            with Builder(block):
                if forwards:
                    self.tapes = dict(zip(keys, block.params[count:]))
                    results = self.forward(primal.block, block.params[:count])
                else:
                    first, last = len(pair.arguments), len(pair.arguments) + len(keys)
                    self.env.update(zip((primal.params[k] for k in pair.arguments), block.params))
                    self.tapes = dict(zip(keys, block.params[first:last]))
                    given = [*self.adjoint.seeds, *self.adjoint.incoming.values()]
                    self.env.update(zip(given, block.params[last:], strict=True))
                    results = self.backward(self.root.adjoint, [])
                block.yields = [*results, *(self.tapes[key] for key in keys)]
            made.append(Function(stub.name, block, primal.source, stub.doc, len(block.yields) != 1))
        return tuple(made)

    def forward(self, block: Block, args: Sequence[Value]) -> list[Value]:
        """Emit a primal block again, saving at its end.  Note [One tape for all calls]"""
        self.env.update(zip(block.params, args, strict=True))
        for param in block.params:
            self.measure(param, None)
        for op in block.ops:
            with at(op.line):
                self.forward_op(op)
                for out in op.outputs:
                    self.measure(out, None)
        region = self.regions.get(block)
        for v in region.saved if region is not None else ():
            self.save(region, v)
        return [self.env[y] for y in block.yields]

    def allocate(self, tapes: list) -> None:
        """Allocate nothing: the tapes are arguments."""

    def tapes_inside(self, op: Op) -> list:
        if any(inner in self.live for block in op.blocks for inner in walk(block)):
            return list(self.keys)
        return super().tapes_inside(op)

    def forward_op(self, op: Op) -> None:
        if op in self.live:
            pair = self.adjoint.pairs[op]
            outs = self.outputs(call(*(self.env[x] for x in op.inputs),
                                     *(self.tapes[key] for key in self.keys), callee=pair.forward))
            self.rename(op, outs[:len(op.outputs)])
            self.pass_tapes(outs[len(op.outputs):])
        elif op in self.among:
            emit_op(op, self.env)  # its backward part is not needed
        else:
            super().forward_op(op)

    def backward(self, block: Block, args: Sequence[Value]) -> list[Value]:
        if block is self.root.adjoint:
            self.load(self.root)
        return super().backward(block, args)

    def backward_op(self, op: Op) -> None:
        if op not in self.backs:
            return super().backward_op(op)
        _, pair = self.backs[op]
        inputs = [self.env.get(x, x) for x in op.inputs]
        count = len(pair.arguments)
        outs = self.outputs(call(*inputs[:count], *(self.tapes[key] for key in self.keys),
                                 *inputs[count:], callee=pair.backward))
        self.rename(op, outs[:len(op.outputs)])
        self.pass_tapes(outs[len(op.outputs):])
        return None

    def pass_tapes(self, tapes: Sequence[Value]) -> None:
        for key, tape in zip(self.keys, tapes, strict=True):
            tape.name = tape_name(key[1])
            self.tapes[key] = tape

    def outputs(self, outs) -> tuple:
        return outs if isinstance(outs, tuple) else (outs,)
