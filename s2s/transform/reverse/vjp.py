"""Reverse mode (VJP): the adjoint of a structured op is a structured op of the same kind, run
backwards.

    f(*xs) -> *ys    becomes    f_vjp(*xs, *y_bars) -> (*ys, *x_bars)

`adjoint.py` writes the reverse sweep, reading primal values wherever they are; `tape.py` decides
which of them are saved and which are computed again; `sweeps.py` emits the two sweeps.  A function
that is called becomes two (`split_vjp`): the sweeps of the caller run between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ...analysis.side_effects import maybe_unbound, without_shape
from ...ir.graph import MISSING, Block, Function, Op, Value, free_values
from ...ir.reemit import rebuild
from ...ir.types import Scalar, carries_derivative, with_own_extents
from ...ops.core.control import types_for_caller
from ...ops.program.recursive_callee import Recursive
from ..cleanup.tables import finished_callee
from ..stabilise import stabilised
from ..stabilise.square_roots import drop_marks, without_marks
from .adjoint import Adjoint, drop_unread
from .custom_rule_calls import expand_rule_calls
from .recursive_adjoint import Pair, docs_of, recursive_pair
from .sweeps import Sweeps
from .tape import is_arithmetic


def vjp(function: Function, wrt: Sequence[int]) -> Function:
    """Transform `f(*xs) -> *ys` to `f_vjp(*xs, *y_bars) -> (*ys, *x_bars)`, for the parameters in
    `wrt`.

    A result that carries no derivative has no y_bar.  Raises DerivativeError where an op has no
    rule.
    """
    return whole_vjp(function, [function.params[k] for k in wrt])


def whole_vjp(function: Function, wrt: Sequence[Value], summed: Sequence[Value] = ()) -> Function:
    """Emit `vjp` as one function; partial cotangents of the parameters in `summed` are passed in
    after the y_bars.
    """
    places = [function.params.index(x) for x in wrt], [function.params.index(x) for x in summed]
    function = expand_rule_calls(stabilised(function, places[0]), places[0], split_vjp)
    wrt, summed = ([function.params[k] for k in ks] for ks in places)
    seeds = [k for k, y in enumerate(function.results) if carries_derivative(y.type)]
    # as for the rows of a Jacobian
    partial = seeds if len(seeds) > 1 or any(not isinstance(function.results[k].type, Scalar)
                                             for k in seeds) else ()
    return without_marks(Sweeps(Adjoint(function, wrt, split_vjp, whole_vjp, summed,
                                        partial=partial)).function())


@dataclass(frozen=True)
class Halves:
    """The two parts of a derivative: forward(*xs) -> (*ys, *residuals), and backward(*xs at
    `arguments`, *residuals, *y_bars) -> x_bars.
    """

    forward: Function
    backward: Function
    residuals: list[Value]  # residuals of the forward part
    arguments: list[int]  # which arguments the backward part reads
    wrt: list[int]  # which arguments get a cotangent from it
    # residuals unbound on some path: their lengths say nothing about other lengths
    loose: frozenset[int] = frozenset()

    def residuals_for(self, op: Op) -> list[Value]:
        """Return the residuals that the forward part returns where it is called for `op`, a call of
        the function.
        """
        own = [Value(with_own_extents(v.type, f"<saved {k}>")) if k in self.loose else v
               for k, v in enumerate(self.residuals)]
        types = types_for_caller(self.forward, op, own)
        return [Value(type, v.name, op) for type, v in zip(types, self.residuals)]


_halves: WeakKeyDictionary[Function, dict[tuple, Halves]] = WeakKeyDictionary()


def split_vjp(function: Function | Recursive, wrt: tuple[int, ...],
              seeded: tuple[int, ...] | None = None, again: bool | None = None,
              partial: tuple[int, ...] = (), doubted: bool = False) -> Halves | Pair:
    """Build the two sweeps as two functions, for callers that run other code in between.

    Given `seeded`, only the results with these numbers have a cotangent, and of the arguments in
    `wrt` only those get one that one of them reaches.  With `again` the backward part computes what
    it reads from the arguments; None: if that is arithmetic.  Entries of the cotangents of results
    numbered in `partial` may be 0 because they were thrown away; if `doubted`, the arguments may be
    infinite or NaN.
    """
    if isinstance(function, Recursive):
        return recursive_pair(function, wrt, split_vjp, whole_vjp)
    known = _halves.setdefault(function, {})
    again = is_arithmetic(function) if again is None else again
    key = wrt, seeded, again, partial, doubted
    if key not in known:
        whole = expand_rule_calls(stabilised(function, wrt), wrt, split_vjp)
        adjoint = Adjoint(whole, [whole.params[k] for k in wrt], split_vjp, whole_vjp,
                          seeded=seeded, partial=partial, doubted=doubted)
        known[key] = split(whole, adjoint, again=again)
    return known[key]


def split(function: Function, second: Adjoint, suffix: str = "bwd", again: bool = False) -> Halves:
    """Split off `second`, the program that runs after `function`: `function` also returns the
    values that `second` reads.

    With `again`, the second computes all that it reads from the arguments.
    """
    block, count = Sweeps(second, apart=suffix == "bwd" and not again).emit()
    shapeless = without_shape(block, maybe_unbound(Function(function.name, block)))
    params, seeds = block.params[:len(function.params)], block.params[len(function.params):]
    ys, x_bars = block.yields[:len(function.results)], block.yields[len(function.results):]
    front_ops, rear = block.ops[:count], Block([], block.ops[0 if again else count:], x_bars)
    drop_unread(rear)
    read = [v for v in free_values(rear) if v not in set(seeds)]
    rear.ops = [v.op for v in read if v.constant is not MISSING] + rear.ops
    read = [*(p for p in params if p in read),
            *in_order(front_ops, [v for v in read if v not in params and v.constant is MISSING])]
    rear.params = [*read, *seeds]
    docs = docs_of(function)
    types = {v: with_own_extents(v.type, f"<saved {k}>") for k, v in enumerate(read)
             if v in shapeless and v not in set(params)}
    backward = Function(f"{function.name}_{suffix}", rear, function.source, docs[1],
                        len(rear.yields) != 1)
    backward = finished_callee(rebuild(backward, [types.get(p, p.type) for p in rear.params],
                                       drop_marks))
    needed = set(free_values(Block([], backward.block.ops, backward.results)))
    used = [k for k, p in enumerate(backward.params[:len(read)]) if p in needed]
    backward.block.params = [*(backward.params[k] for k in used), *backward.params[len(read):]]
    read = [read[k] for k in used]
    arguments = [k for k, p in enumerate(params) if p in read]
    kept = read[len(arguments):]
    loose = frozenset(k for k, v in enumerate(kept) if v in types)
    front = Block(params, front_ops, [*ys, *kept])
    drop_unread(front)
    forward = Function(f"{function.name}_fwd", front, function.source, docs[0],
                       len(front.yields) != 1)
    forward = finished_callee(rebuild(forward, rule=drop_marks))  # they share no values
    wrt = [function.params.index(x) for x in second.reached]
    return Halves(forward, backward, forward.results[len(ys):], arguments, wrt, loose)


def in_order(ops: Sequence[Op], values: Sequence[Value]) -> list[Value]:
    """Sort `values` as `ops` define them: two calls' backward parts may differ in which they read
    first.
    """
    places = {v: k for k, v in enumerate(v for op in ops for v in op.outputs)}
    return sorted(values, key=places.__getitem__)
