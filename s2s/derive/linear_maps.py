"""Linear maps: derivatives split into the part run once and the part run for each direction.

    f(*xs) -> y    becomes    f_fwd(*xs) -> (y, *saved)
                              f_bwd(y_bar, *xs, *saved) -> x_bars       for `vjp`
                              f_lin(*x_dots, *xs, *saved) -> y_dot      for `linearize`

Both come from one function of the arguments and the direction, cleaned up as a whole: what does not
depend on the direction is the first half.  What the second half reads of the first is saved; what
it reads of the arguments, only those.

`LinearMap` is the second half with all of that given: a function of the direction, which may be
called many times, has source, and is transformed like any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np

from .. import pipeline, tree
from ..analysis.alias import content_inputs
from ..analysis.side_effects import maybe_unbound, without_shape
from ..errors import TypeMismatchError
from ..front.syntax.captures import Saved
from ..ir.builder import Builder, emit
from ..ir.graph import Block, Function, Value, free_values, ops_behind, walk
from ..ir.reemit import emit_block, rebuild
from ..ir.substitute import substitute
from ..ir.types import (
    Array,
    List,
    Scalar,
    Static,
    Tape,
    Tuple,
    Type,
    carries_derivative,
    has_unknown,
    may_be_one,
    with_own_extents,
)
from ..ops.core.control import (
    Known,
    call,
    item,
    never_returns,
    tape_copy,
    tape_kept,
    tape_len,
    tape_reversed,
)
from ..ops.core.record import dims_of, value
from ..runtime.debug.load_source import load
from .assemble import (
    always_raising,
    cotangent_of,
    differentiable_arguments,
    name_results,
    place,
    reverse,
    seeds_of,
    tangent,
    with_constant_aux,
    with_pair,
    with_ranks,
)

# Note [What is saved]
# Whatever the second half reads of the first is saved, however cheap: it is called again and again.
# But what costs as much to copy as to make is made where it is read: zeros, which are then written
# into, and the numbers that only count what is saved anyway.



@dataclass(frozen=True, eq=False)
class Halves:
    """The two functions, and how results of the first map to parameters of the second after its
    directions.
    """

    first: Function
    second: Function
    directions: int
    arguments: list[int]
    saved: list[int]  # the results of the first that the second reads, after the arguments
    together: bool  # whether the second returns one value, or one for each argument
    others: dict = field(default_factory=dict)  # the second, for directions of other dtypes


_second: WeakKeyDictionary[Function, Halves] = WeakKeyDictionary()  # by the first


def halves_of(first: Function) -> Halves:
    """Return the halves of which `first` is the first."""
    return _second[first]


def reverse_halves(function: Function, has_aux: bool = False) -> Function:
    """Build the first half of the vjp: f_fwd(*xs) -> (y, *saved), or (y, aux, *saved).  `halves_of`
    gives the second.
    """
    function = with_pair(with_ranks(function), has_aux)
    if never_returns(function):
        return always_raising(function, [], f"{function.name}_fwd")
    own = function.results[:1] if has_aux else function.results
    y_bar = Value(cotangent_of([y.type for y in own], function.tupled and not has_aux), "y_bar")

    def results(ys: list, bars: list):
        return [*(ys if has_aux else [whole(function, ys)]), *bars], True

    joint = reverse(with_constant_aux(function) if has_aux else function,
                    differentiable_arguments(function), lambda: seeds_of(function, y_bar, has_aux),
                    results, function.name, "", [y_bar])
    name_results(joint, [*[""] * (1 + has_aux), *(f"{p.name}_bar" for p in joint.params)])
    late = joint.params[plain_count(function)]
    said = f"{function.name}{place(function)}"
    return split_joint(joint, [late], 1 + has_aux, function.name, ("_fwd", "_bwd"), (
        f"The value of {said}, and what its cotangents need.",
        f"The cotangents of the arguments of {said}, for a cotangent y_bar of its result."))


def forward_halves(function: Function, has_aux: bool = False) -> Function:
    """Build the first half of forward mode: f_fwd(*xs) -> (y, *saved), or (y, aux, *saved).
    `halves_of` gives the second.
    """
    function = with_pair(with_ranks(function), has_aux)
    if never_returns(function):
        return always_raising(function, [], f"{function.name}_fwd")
    joint, plain = tangent(function, pipeline.linearize), plain_count(function)
    if has_aux:
        block = Block([Value(p.type, p.name) for p in joint.params])
        with Builder(block):
            y, y_dot = emit_block(joint.block, block.params, {})
            block.yields = [*(item(y, index=k) for k in range(len(function.results))),
                            item(y_dot, index=0)]
        joint = joint.remade(block)
    late = joint.params[plain:2 * plain]
    said = f"{function.name}{place(function)}"
    return split_joint(joint, late, 1 + has_aux, function.name, ("_fwd", "_lin"), (
        f"The value of {said}, and what its tangents need.",
        f"The tangent of the result of {said}, for tangents of its arguments."))


def whole(function: Function, ys: Sequence[Value]) -> Value:
    """Return the results of `function` as one value."""
    return value(tuple(ys)) if function.tupled else ys[0]


def plain_count(function: Function) -> int:
    """Return the number of arguments, without captures."""
    return len(function.params) - len(function.captures)


def split_joint(joint: Function, late: Sequence[Value], count: int, name: str,
                suffixes: tuple[str, str], docs: tuple[str, str]) -> Function:
    """Split `joint`, a function of arguments and of the directions `late`; return the first half,
    with its first `count` results.
    """
    behind = ops_behind(joint.block, late)
    ys, rest = joint.results[:count], joint.results[count:]
    rear = Block([], [op for op in joint.block.ops if op in behind], rest)
    params = [p for p in joint.params if p not in set(late)]
    own = set(late)
    shapeless = without_shape(joint.block, maybe_unbound(joint))
    tapes = prepend(rear, late, shapeless)
    read = [v for v in free_values(rear) if v not in own]
    rear.params = [*late, *read]
    # of what some path leaves unbound, or is made of that, no length says how long something else
    # is
    types = [with_own_extents(v.type, f"<saved {k}>") if v in shapeless else v.type
             for k, v in enumerate(rear.params)]
    second = pipeline.finish(rebuild(Function(f"{name}{suffixes[1]}", rear, joint.source, docs[1],
                                              len(rest) != 1), types))
    for d in {d for op in walk(second.block) for y in op.outputs for d in dims_of(y.type)}:
        # asked now, on behalf of the calls of the first half: the second is compiled when it is
        # called
        may_be_one(d)
    needed = set(free_values(Block([], second.block.ops, second.results)))
    kept = [k for k, p in enumerate(second.params[len(late):]) if p in needed]
    read = [read[k] for k in kept]
    second.block.params = [*second.params[:len(late)],
                           *(second.params[len(late) + k] for k in kept)]
    plain = len(params) - len(joint.captures)
    arguments = [k for k, p in enumerate(params) if p in set(read)]
    saved = [v for v in read if v not in set(params)]
    held = dict(zip(read, second.params[len(late):]))
    behind_all = [params[k] for k in arguments if k >= plain]
    arguments = [k for k in arguments if k < plain]
    order = [*(params[k] for k in arguments), *saved, *behind_all]
    second.block.params[len(late):] = [held[v] for v in order]
    named_apart(second.params)
    second.captures = {held[v].name: joint.captures[v.name] for v in behind_all}
    results = [*ys, *(v for v in saved if v not in ys)]
    front = Block(params, [op for op in joint.block.ops if op not in behind],
                  [tapes.get(v, v) for v in results])
    with Builder(front):
        front.yields = [tape_kept(y) if v in tapes else y for v, y in zip(results, front.yields)]
    first = Function(f"{name}{suffixes[0]}", front, joint.source, docs[0], True,
                     dict(joint.captures), dict(joint.defaults), joint.meetings)
    first = pipeline.finish(rebuild(first))
    _second[first] = Halves(first, second, len(late), arguments, [results.index(v) for v in saved],
                            suffixes[1] == "_lin")
    return first


def prepend(rear: Block, late: Sequence[Value], shapeless: set[Value]) -> dict[Value, Value]:
    """Prepend to the ops of `rear`, in place, what is cheaper recomputed there than saved:
    Note [What is saved].

    The shapes of `shapeless` values are not read.  Growing tapes are passed as lists, which it
    copies: ops/core/control.py, Note [Kept tapes].  Returns the mapping from tapes to lists.
    """
    read = [v for v in free_values(rear) if v not in set(late)]
    there = list(dict.fromkeys(x for v in read
                               for x in ([v] if v.op is None or v.op.name != "tape_reversed"
                                         else v.op.inputs)))
    lists = {v: Value(List(v.type.item), v.name) for v in there if isinstance(v.type, Tape)}
    block = Block()
    with Builder(block, above=read):
        env = {v: found for v in read
               if (found := recompute(v, [x for x in there if x not in shapeless], lists))
               is not None}
        env.update((v, tape_copy(lists[v])) for v in read if v in lists and v not in env)
    for old, new in env.items():
        substitute(rear, {old: new})
    rear.ops = block.ops + rear.ops
    return {new: old for old, new in lists.items()}


def recompute(v: Value, read: Sequence[Value], lists: dict[Value, Value]) -> Value | None:
    """Recompute `v`, if that takes nothing but constants, saved tapes, and shapes of saved values.
    """
    if isinstance(v.type, Static):
        return value(v.type.value)
    op = v.op
    if op is None or op.blocks or len(op.outputs) != 1:
        return None
    if not op.inputs and op.record.total:
        return emit(op.record, **op.attrs)
    counts = isinstance(v.type, Scalar) and v.type.dtype == "int64" and op.record.elementwise
    is_of_tape = op.record in (tape_len, tape_reversed)
    if not (counts or is_of_tape or op.inputs and not content_inputs(op)):
        return None
    inputs = []
    for k, x in enumerate(op.inputs):
        if is_of_tape:
            found = lists.get(x)
        elif k in op.record.shapes:
            found = next((y for y in read if y.type == x.type and y is not v), None)
        else:
            found = recompute(x, read, lists)
        if found is None:
            return None
        inputs.append(found)
    return op.record(*inputs, **op.attrs)


def named_apart(params: Sequence[Value]) -> None:
    """Give parameters distinct names, in place."""
    taken: set[str] = set()
    for p in params:
        name, k = p.name or "saved", 0
        while name in taken:
            k += 1
            name = f"{p.name or 'saved'}_{k}"
        p.name = name
        taken.add(name)


# ------------------------------------------------------------------------------------- at run time


class LinearMap:
    """The second half of a derivative with the saved results of the first: `pullback(y_bar)`, or
    `pushforward(*x_dots)`.
    """

    def __init__(self, halves: Halves, held: Sequence, accept: Callable[[tuple], tuple],
                 finish: Callable, native: Callable | None):
        self.halves, self.held, self.accept, self.finish = halves, list(held), accept, finish
        self.name = self.__name__ = halves.second.name
        self.__doc__ = halves.second.doc
        names = [p.name for p in halves.second.params[:halves.directions]]
        self.signature = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY)
                                            for n in names])
        self.native = native
        self.run = native(halves.second) if native is not None else interpreted(halves.second)

    def __call__(self, *directions):
        return self.finish(self.run(*self.accept(directions), *self.held))

    def __repr__(self) -> str:
        return f"<s2s linear map {self.name}>"

    def function_for(self, values: Sequence[Value]) -> Function:
        """Return the IR for directions like `values`; saved values are captures."""
        second, count = self.halves.second, self.halves.directions
        types = [*(v.type for v in values[:count]), *(p.type for p in second.params[count:])]
        made = rebuild(second, types)
        return made.remade(made.block, tupled=made.tupled or not self.halves.together,
                           captures={p.name: Saved(x)
                                     for p, x in zip(made.params[count:], self.held)})

    @property
    def source(self) -> str:
        """The source of both halves, and how they fit together."""
        return pipeline.render(together(self.halves)).text


class FirstHalf:
    """The first half of a derivative inside a program: `halves` once it has been called."""

    def __init__(self, transformed):
        self.transformed, self.name, self.__name__ = transformed, transformed.name, transformed.name
        self.signature = transformed.signature
        self.static_positions, self.named_by = transformed.static_positions, lambda keywords: self
        self.made: Function | None = None

    def function_for(self, values: Sequence[Value]) -> Function:
        """Return the IR for arguments like `values`."""
        return self.noted(self.transformed.function_for(values))

    def function_for_types(self, types: Sequence[Type]) -> Function:
        """Return the IR for arguments of these types."""
        return self.noted(self.transformed.function_for_types(types))

    def noted(self, made: Function) -> Function:
        self.made = made
        return made

    @property
    def halves(self) -> Halves | None:
        """Both halves; None where the first raises for any arguments."""
        return _second.get(self.made)


class SecondHalf:
    """The second half of a derivative inside a program: a function of its directions and of saved
    results of the first.
    """

    __signature__ = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])

    def __init__(self, halves: Halves):
        self.halves, self.name, self.__name__ = halves, halves.second.name, halves.second.name

    def function_for(self, values: Sequence[Value]) -> Function:
        """Return the IR for directions like `values`."""
        second, count = self.halves.second, self.halves.directions
        own = [p.type for p in second.params]
        types = [retyped(p.type, x.type, p.name) for p, x in zip(second.params[:count], values)]
        if types == own[:count]:
            return second
        key = tuple(types)
        if key not in self.halves.others:
            self.halves.others[key] = rebuild(second, [*types, *own[count:]])
        return self.halves.others[key]


def retyped(own: Type, given: Type, name: str) -> Type:
    """Return the type of a direction `given` for a variable of type `own`; TypeMismatchError if it
    does not fit.
    """
    match own, given:
        case Tuple(items, form), Tuple(others, its) if form == its and len(items) == len(others):
            return replace(own, items=tuple(retyped(a, b, name) for a, b in zip(items, others)))
        case (Scalar() | Array()), (Scalar() | Array()) if rank_of(own) == rank_of(given):
            if (not carries_derivative(own) or not carries_derivative(given)
                    or own.dtype == given.dtype):
                return own
            if own.dtype.startswith("float") and given.dtype.startswith("complex"):
                raise TypeMismatchError(f"{name} is complex, for a real number", None,
                                        "give its real part")
            return replace(own, dtype=given.dtype)
        case _ if (has_unknown(own) or has_unknown(given)
                   or not isinstance(own, (Tuple, Scalar, Array))):
            return own
    raise TypeMismatchError(f"{name} is {given}, and {own} is needed", None,
                            "make it as long and as deep as what it goes with")


def rank_of(type: Type) -> int:
    """Return the number of axes of a number or an array."""
    return len(getattr(type, "dims", ()))


def interpreted(function: Function) -> Callable:
    """Load the generated source of `function` as a Python function."""
    module = pipeline.readable(function)
    return load(module.text, module.entry, module.lines, given=module.given)


def together(halves: Halves) -> Function:
    """Join the two halves to one function, which calls the first and then the second."""
    first, second, count = halves.first, halves.second, halves.directions
    params = [Value(p.type, p.name) for p in first.params]
    late = [Value(p.type, p.name) for p in second.params[:count]]
    plain = len(params) - len(first.captures)
    block = Block([*params[:plain], *late, *params[plain:]])
    with Builder(block):
        found = call(*params, callee=Known(first))
        found = found if isinstance(found, tuple) else (found,)
        captured = [params[plain + list(first.captures.values()).index(get)]
                    for get in second.captures.values()]
        for j, p in zip(halves.saved, second.params[count + len(halves.arguments):]):
            found[j].name = found[j].name or p.name
        given = [*(params[k] for k in halves.arguments), *(found[j] for j in halves.saved),
                 *captured]
        rest = call(*late, *given, callee=Known(second))
        results = found[:min([j for j in halves.saved if j], default=len(found))]
        block.yields = [*results, *(rest if isinstance(rest, tuple) else (rest,))]
    name = first.name.removesuffix("_fwd") + ("_vjp" if second.name.endswith("_bwd") else "_jvp")
    stem = first.name.removesuffix("_fwd")
    where = first.source.place if first.source is not None else ""
    doc = (f"Both halves: the value of {stem}{where}, and its "
           f"{'cotangents' if name.endswith('_vjp') else 'tangent'}.")
    return Function(name, block, first.source, doc, True, dict(first.captures),
                    dict(first.defaults))


def unshared(held: Sequence, others) -> list:
    """Return `held`, with copies of the arrays that share memory with those of the caller,
    `others`.
    """
    arrays = [x for x in tree.leaves(others) if isinstance(x, np.ndarray)]

    def kept(x):
        if isinstance(x, list):  # items of one type
            return (x if x and isinstance(x[0], (int, float, complex, np.generic))
                    else [*map(kept, x)])
        if isinstance(x, tuple):
            return getattr(type(x), "_make", tuple)(map(kept, x))
        shared = isinstance(x, np.ndarray) and any(np.may_share_memory(x, other)
                                                   for other in arrays)
        return x.copy() if shared else x

    return [kept(x) if isinstance(x, list) else tree.map(kept, x) for x in held]  # lists are tapes
