"""Sparsity patterns by propagating dependences: a program is run once, op by op, with the set of
inputs that each value depends on.

    f(x, n)  becomes  (the Boolean matrix of which result may depend on which input,
                       whether it holds for other x)

The program is not the user's but its derivative, f_columns(x, x_dot) -> y_dot, which is linear in
x_dot: what y_dot depends on is the pattern of the Jacobian.  So the pattern is that of what the
sweeps compute, whatever rules of derivatives, the user's own or NumPy's, they have followed, and
constants, masks and stop_gradient are no entries.  The program itself, x -> y, would take half the
time; but a rule that says more than the program does (a straight-through estimator) would be lost,
and a pattern must never be too small.

Loops run with their actual trips and indices with their actual values, so the pattern is exact to
the element, in programs that write `a[i + 1]` as in those that write `a[1:]`.  What the program
asks of floats could be otherwise at the next call:

* both sides of a branch are run, and what they return depends on what either side says
  (`if u[i] > 0.0`);
* where floats decide how often a loop runs or which element is read, the pattern is that of these
  arguments only: `holds` is False, and who keeps the pattern must find it again at each call.

Integers, truth values and lengths are part of the key that a pattern is valid for.

Also considered: a source transformation, whose tangents are these integers.  It would run faster,
but it cannot see whether an index came from data, and both sides of a branch would need their own
copies of every array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..back.print.insert_copies import insert_copies
from ..ir.graph import Block, Function, Op, Value
from ..ir.treedef import form_of, is_container
from ..ir.types import Generator, carries_derivative
from ..lazy_import import later
from ..ops.arrays.index import add_into, additem, setitem
from ..ops.arrays.index_pattern import python_index
from ..ops.core.control import tape_pop, tape_push
from ..ops.core.dependence_rules import anything, followed, moved, nothing, spread_as
from ..ops.core.record import ALL
from .union_graph import NONE, Unions

sparse = later("scipy.sparse")


@dataclass
class Pattern:
    """A Boolean matrix of which results depend on which inputs, and whether it holds for other
    floats, too.
    """

    matrix: sparse.csr_array
    holds: bool
    shapes: list[tuple[int, ...]]  # of the results


def program(function: Function) -> Function:
    """Insert the copies that let writes be done in place, for `pattern_of`."""
    return insert_copies(function, augmented=False)


def pattern_of(function: Function, args: Sequence, wrt: Sequence[int]) -> Pattern:
    """Compute the pattern of a `program` of numbers and arrays: its results by its arguments in
    `wrt`, in that order.

    Rows are the elements of the results, one result after another, and columns those of the
    arguments.
    """
    sizes = [np.size(args[k]) for k in wrt]
    unions = Unions(sum(sizes))
    first, deps = 1, [NONE] * len(args)
    for k, size in zip(wrt, sizes):
        deps[k] = (np.arange(first, first + size).reshape(np.shape(args[k])) if np.ndim(args[k])
                   else first)
        first += size
    data = [carries_derivative(p.type) or isinstance(p.type, Generator) for p in function.params]
    run = Run(unions)
    with np.errstate(all="ignore"):
        ys, found = run.function(function, list(args), deps, data, True)
    nodes = [np.ravel(spread_as(d, np.asarray(y))) for y, d in zip(ys, found)]
    matrix = unions.matrix(np.concatenate(nodes) if nodes else np.zeros(0, np.int64))
    return Pattern(matrix, run.holds, list(map(np.shape, ys)))


class BranchRaises(Exception):
    """The program raises on the branch that is not taken: no result comes from there."""


class UndecidableBranch(Exception):
    """The branch that is not taken cannot be followed without knowing the floats that would take
    it.
    """


def alike(a, b) -> bool:
    """Test whether two values have one structure, and their arrays the same shapes."""
    if not is_container(a) or not is_container(b):
        return np.shape(a) == np.shape(b)
    form = form_of(a)
    return (form == form_of(b)
            and all(map(alike, *((x if form is None else form.members(x)) for x in (a, b)))))


class Step:
    """The facts about an op that each run of it needs: the operands that it reads, and those of
    them that decide what goes where.
    """

    def __init__(self, op: Op):
        record = op.record
        self.evaluate, self.several = record.evaluate, len(op.outputs) != 1
        # of these only the shape is read
        measured = ALL if record.depends is nothing else record.shapes
        self.followed = followed(record)
        self.read = tuple(x for k, x in enumerate(op.inputs) if k not in measured)
        self.deciding = () if record.elementwise else tuple(
            x for k, x in enumerate(op.inputs) if k not in measured and k not in self.followed)
        self.written = IN_PLACE.get(record)


class Run:
    """One run of a program.  `holds` is False once floats have decided what depends on what."""

    def __init__(self, unions: Unions):
        self.unions = unions
        self.holds = True
        self.supposed = 0  # the depth of branches around this point that are not taken
        self.values: dict[Value, object] = {}
        self.deps: dict[Value, object] = {}
        self.data: set[Value] = set()  # values that depend on floats
        self.in_place = True
        self.steps: dict[Op, Step] = {}

    def function(self, function: Function, args: list, deps: list, data: list[bool],
                 in_place: bool) -> tuple[list, list]:
        """Return the results and their dependences; each call has an environment of its own, since
        calls may be nested.
        """
        outer = self.values, self.deps, self.data, self.in_place
        self.values, self.deps, self.data, self.in_place = {}, {}, set(), in_place
        try:
            for param, x, d, flag in zip(function.params, args, deps, data, strict=True):
                self.bind(param, x, d, flag)
            self.block(function.block)
            self.flags = [y in self.data for y in function.results]
            return ([self.values[y] for y in function.results],
                    [self.deps[y] for y in function.results])
        finally:
            self.values, self.deps, self.data, self.in_place = outer

    def bind(self, name: Value, x, deps, data: bool) -> None:
        self.values[name], self.deps[name] = x, deps
        if data:
            self.data.add(name)
        else:
            self.data.discard(name)

    def block(self, block: Block) -> None:
        for op in block.ops:
            match op.name:
                case "if":
                    self.branch(op)
                case "for":
                    self.counted_loop(op)
                case "while":
                    self.while_loop(op)
                case "call":
                    self.call(op)
                case "raise" if self.supposed:
                    raise BranchRaises
                case _ if not op.record.outward:
                    self.simple(op)

    def decide(self) -> None:
        """Record that floats decide here what depends on what."""
        if self.supposed:
            raise UndecidableBranch
        self.holds = False

    # ------------------------------------------------------------------------------------ ops

    def simple(self, op: Op) -> None:
        step = self.steps.get(op)
        if step is None:
            step = self.steps[op] = Step(op)
        values, known = self.values, self.deps
        xs = [values[x] for x in op.inputs]
        deps = [known[x] for x in op.inputs]
        data = not self.data.isdisjoint(step.read)
        if data and not self.data.isdisjoint(step.deciding):
            self.decide()
        if self.in_place and step.written is not None and all(d is NONE for d in deps[2:]):
            ys, found = step.written(self.unions, xs, deps, op.attrs)
        else:
            result = step.evaluate(*xs, **op.attrs)
            ys = result if step.several else (result,)
            found = self.dependences(op, result, deps, xs)
        for name, y, d in zip(op.outputs, ys, found, strict=True):
            values[name], known[name] = y, d
            if data:
                self.data.add(name)
            else:
                self.data.discard(name)

    def dependences(self, op: Op, result, deps: list, xs: list) -> Sequence:
        """Return the dependences of each output."""
        record, count = op.record, len(op.outputs)
        told = ([k for k, d in enumerate(deps) if d is not NONE and k not in record.shapes] if deps
                else deps)
        if not told or not count or record.depends is nothing:
            return (NONE,) * count
        if record.elementwise:
            return [self.elementwise(result, [deps[k] for k in told])]
        if all(k in followed(record) for k in told):
            found = (moved(record, deps, xs, op.attrs) if record.depends is None
                     else record.depends(self.unions, result, deps, *xs, **op.attrs))
            return found if count > 1 else [_as_number(found)]
        return [anything(self.unions, y, deps, *xs) for y in (result if count > 1 else [result])]

    def elementwise(self, y, deps: list):
        """Return the union of the dependences of the operands."""
        found = self.unions.union(*deps) if len(deps) > 1 else deps[0]
        if not isinstance(y, np.ndarray):
            return found if type(found) is int else _as_number(found)
        return (found if len(deps) > 1 and np.shape(found) == y.shape
                else np.array(np.broadcast_to(found, y.shape)))

    # ------------------------------------------------------------------------------------ control

    def yielded(self, block: Block, skip: int = 0) -> list[tuple]:
        return [(self.values[y], self.deps[y], y in self.data) for y in block.yields[skip:]]

    def branch(self, op: Op) -> None:
        condition = op.inputs[0]
        taken, other = op.blocks if self.values[condition] else op.blocks[::-1]
        known = condition not in self.data
        supposed = None if known or not self.holds else self.suppose(other)
        found = self.suppose(taken) if self.supposed and not known else self.run(taken)
        if found is None:
            if supposed is None:
                raise BranchRaises
            found, supposed = supposed, None
        for k, (name, (y, deps, data)) in enumerate(zip(op.outputs, found)):
            if supposed is not None:
                deps = self.either(y, deps, *supposed[k][:2])
            self.bind(name, y, self.told(y, deps, self.asked(condition)), data or not known)

    def run(self, block: Block) -> list[tuple]:
        """Return the yields of a block without parameters."""
        self.block(block)
        return self.yielded(block)

    def suppose(self, block: Block) -> list[tuple] | None:
        """Return the yields of a block that this run does not reach; None where it raises, or
        cannot be followed.
        """
        in_place, self.in_place, self.supposed = self.in_place, False, self.supposed + 1
        try:
            return self.run(block)
        except BranchRaises:
            return None
        except Exception:  # the branch not taken may fail for these arguments in any way
            if self.supposed == 1:
                self.holds = False
                return None
            raise UndecidableBranch from None
        finally:
            self.in_place, self.supposed = in_place, self.supposed - 1

    def asked(self, *conditions: Value) -> int:
        """Return the dependences of conditions: none, except for rules that are not linear, or that
        solve by iteration.
        """
        return (self.unions.all_of(*(self.deps[x] for x in conditions))
                if any(self.deps[x] is not NONE for x in conditions) else NONE)

    def told(self, y, deps, asked: int):
        """Return the dependences of `y`, computed under conditions that depend on `asked`."""
        return deps if asked is NONE else self.united(spread_as(deps, y), spread_as(asked, y))

    def either(self, y, deps, other, others):
        """Return the dependences of `y`, which could have been `other`."""
        if not alike(y, other):
            self.decide()
            return deps
        if deps is others:
            return deps
        return self.united(spread_as(deps, y), spread_as(others, y))

    def united(self, a, b):
        """Return the union of the dependences of two values of one structure."""
        if not is_container(a):
            return self.unions.union(a, b)
        form = form_of(a)
        inside = [self.united(m, n)
                  for m, n in zip(*((x if form is None else form.members(x)) for x in (a, b)))]
        return tuple(inside) if form is None else form.build(inside)

    def counted_loop(self, op: Op) -> None:
        lo, hi, step = (self.values[x] for x in op.inputs[:3])
        if any(x in self.data for x in op.inputs[:3]):
            self.decide()
        asked = self.asked(*op.inputs[:3])
        (body,) = op.blocks
        carries = [(self.values[x], self.deps[x], x in self.data) for x in op.inputs[3:]]
        for i in range(lo, hi, step):
            self.bind(body.params[0], i, asked, False)
            stop, carries, on = self.trip(op, body, body.params[1:], carries)
            asked = self.unions.both(asked, on)
            if stop:
                break
        for name, (y, deps, data) in zip(op.outputs, carries):
            self.bind(name, y, self.told(y, deps, asked), data)

    def while_loop(self, op: Op) -> None:
        head, body = op.blocks
        carries = [(self.values[x], self.deps[x], x in self.data) for x in op.inputs]
        stop, asked = False, NONE
        while not stop:
            for param, found in zip(head.params, carries):
                self.bind(param, *found)
            self.block(head)
            (test,) = head.yields
            if test in self.data:
                self.decide()
            asked = self.unions.both(asked, self.asked(test))
            if not self.values[test]:
                break
            stop, carries, on = self.trip(op, body, body.params, carries)
            asked = self.unions.both(asked, on)
        for name, (y, deps, data) in zip(op.outputs, carries):
            self.bind(name, y, self.told(y, deps, asked), data)

    def trip(self, op: Op, body: Block, params: list[Value],
             carries: list[tuple]) -> tuple[bool, list[tuple], int]:
        """Run a loop's body once; return whether to stop, the carries, and what the decision to
        stop depends on.
        """
        for param, found in zip(params, carries):
            self.bind(param, *found)
        self.block(body)
        if not op.attrs["breaks"]:
            return False, self.yielded(body), NONE
        stop = body.yields[0]
        if stop in self.data:
            self.decide()
        return bool(self.values[stop]), self.yielded(body, 1), self.asked(stop)

    def call(self, op: Op) -> None:
        """Run a call of a recursive function; all others are inlined."""
        if self.supposed:  # it may never end
            raise UndecidableBranch
        function = op.attrs["callee"].function_for(op.inputs)
        data = [x in self.data for x in op.inputs]
        ys, deps = self.function(function, [self.values[x] for x in op.inputs],
                                 [self.deps[x] for x in op.inputs], data, False)
        for name, y, d, flag in zip(op.outputs, ys, deps, self.flags):
            self.bind(name, y, d, flag)


# ------------------------------------------------------------------------------------- in place
#
# `insert_copies` has seen to it that what is written into is read by nobody afterwards: so are its
# dependences.


def _as_number(deps):
    """Convert the dependences of a number to a number."""
    return int(deps) if isinstance(deps, (np.ndarray, np.generic)) and deps.ndim == 0 else deps


def _set(unions: Unions, xs: list, deps: list, attrs: dict) -> tuple[list, list]:
    x, index = xs[0], python_index(attrs["pattern"], xs[2:])
    x[index] = xs[1]
    if deps[0] is NONE and deps[1] is NONE:
        return [x], [NONE]
    found = spread_as(deps[0], x)
    found[index] = deps[1]
    return [x], [found]


def _add(unions: Unions, xs: list, deps: list, attrs: dict) -> tuple[list, list]:
    x, index = xs[0], python_index(attrs["pattern"], xs[2:])
    np.add.at(x, index, xs[1])
    if deps[1] is NONE:
        return [x], [deps[0]]
    return [x], [add_into(unions, spread_as(deps[0], x), deps[1], index)]


def _push(unions: Unions, xs: list, deps: list, attrs: dict) -> tuple[list, list]:
    tape, found = xs[0], spread_as(deps[0], xs[0])
    found.append(spread_as(deps[1], xs[1]))
    tape.append(xs[1])
    return [tape], [found]


def _pop(unions: Unions, xs: list, deps: list, attrs: dict) -> tuple[list, list]:
    tape, found = xs[0], spread_as(deps[0], xs[0])
    return [tape, tape.pop()], [found, found.pop()]


IN_PLACE = {setitem: _set, additem: _add, tape_push: _push, tape_pop: _pop}
