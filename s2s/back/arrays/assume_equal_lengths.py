"""Assume, in native code, that lengths are equal (speculation, with a guard at the call).

    for t in range(steps):                            supposed_alike(c.shape[0], u0.shape[0])
        up, u, un = u, un, up           becomes       for t in range(steps):
                                                          up, u, un = u, un, up

Before such a loop, `u` is as long as the argument u0, and `un` as long as the argument c. The loop
exchanges them, so that each trip would have to test the lengths, and the bounds of each index. That
the two arguments are equally long is tested once, by a guard at each call:
ir/length_assumptions.py, Note [Supposed lengths].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from ...ir.builder import emit
from ...ir.graph import Function, Value, walk
from ...ir.length_assumptions import assuming_not_one
from ...ir.reemit import rebuild
from ...ir.types import Array, Extent, Generator, Type
from ...ops.core.record import dims_of
from ...ops.program.recursive_callee import recursive_callees
from ..loopir.extent_equalities import Equalities
from ..loopir.ops import supposed_alike_op
from .specialise_lengths import carried_extents


def has_assumptions(function: Function) -> bool:
    """Whether there is a length worth assuming.

    That is the length of a slice that may be 1 and meets another extent, or those of two arguments
    that loops exchange.
    """
    if (recursive_callees(function) or any(isinstance(p.type, Generator) for p in function.params)
            or any(op.record.outward for op in walk(function.block))):
        return False  # a second run would repeat effects
    sliced = {d for op in walk(function.block) if op.name == "getitem"
              and not any(isinstance(x.type, Array) for x in op.inputs[1:])
              for d in dims_of(op.output.type) if isinstance(d, Extent) and may_be_one_long(d)
              and d not in dims_of(op.inputs[0].type)}
    return bool(exchanged_extents(function)) or bool(sliced) and any(
        len(met := {d for d in here if d not in (None, 1)}) > 1 and not sliced.isdisjoint(met)
        for op in walk(function.block) if op.record.elementwise or op.record.broadcasts
        for here in zip_longest(*(reversed(dims_of(x.type)) for x in (*op.inputs, *op.outputs))))


def may_be_one_long(d: Extent) -> bool:
    """Whether the length of a slice is unknown and may be 1."""
    if d.symbol_may_be_one:
        return not d.offset or d.may_be_one_though_long
    return d.may_be_one_though_long or d.leaves_out_few and not d.symbol_is_long


def assume_lengths(function: Function) -> Function:
    """`function` specialised to arguments for which the assumptions hold, which it lists."""
    alike = exchanged_extents(function)
    types = [replace(p.type, dims=tuple(alike.get(d, d) for d in p.type.dims))
             if isinstance(p.type, Array) else p.type for p in function.params]
    with assuming_not_one():
        found = rebuild(function, [assumed_type(type) for type in types])
    found.alike = tuple(axes_alike(function, alike))
    return found


def axes_alike(function: Function, alike: dict[Extent, Extent]
               ) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The pairs of axes (parameter, axis) whose extents `alike` maps to the same."""
    places: dict[Extent | int | None, tuple[int, int]] = {}
    for k, p in enumerate(function.params):
        for axis, d in enumerate(dims_of(p.type)):
            first = places.setdefault(alike.get(d, d), (k, axis))
            if d in alike:
                yield first, (k, axis)


def exchanged_extents(function: Function) -> dict[Extent, Extent]:
    """Extents of parameters mapped to others assumed equal, because loops carry both in one place.

    If a trip computes an array of any other length, as `u = u[1:]` does, lengths do change and
    nothing is assumed.
    """
    own = dict.fromkeys(d for p in function.params for d in dims_of(p.type) if isinstance(d, Extent)
                        and not d.offset)
    one, carries, after = Equalities(()), {}, set()
    for op in walk(function.block):
        if op.name in ("for", "while"):
            ended = [pair for x, y in zip(op.inputs[-len(op.outputs):], op.outputs)
                     for pair in zip(dims_of(x.type), dims_of(y.type))]
            after.update(y for _, y in ended)
            for pair in (*carried_extents(op), *ended):
                one.unite(*pair)
                carries.update(dict.fromkeys(pair))
    changing = {one.find(d) for d in carries
                if not (isinstance(d, Extent) and d.accepts_any or d in own or d in after)}
    first, found = {}, {}
    for d in own:
        other = first.setdefault((one.find(d), d.symbol_is_long), d)
        if other != d and one.find(d) not in changing:
            found[d] = other
    return found


def check_assumptions(params: Sequence[Value],
                      alike: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    """Emit the guards of native code for the axes of `params` that `assume_lengths` lists."""
    for (j, first), (k, axis) in alike:
        emit(supposed_alike_op, params[j], params[k], axes=(first, axis))


def assumed_type(type: Type) -> Type:
    """The type of a parameter whose slices are assumed not to have length 1."""
    if not isinstance(type, Array):
        return type
    return replace(type, dims=tuple(replace(d, symbol_is_supposed=True) if isinstance(d, Extent)
                                    and not d.symbol_may_be_one and not d.symbol_is_long else d
                                    for d in type.dims))
