"""Prepare calls of functions with custom derivative rules (ops/program/custom_rules.py) for forward
and reverse mode.

    lift_captures(f, wrt, mode)      f with trailing parameters for the data that rules capture and
                                     its derivative reads
    expand_rule_calls(f, wrt, ..)    f with the forward parts of rules in place of calls, each
                                     followed by an op, printed as nothing, that holds the rule for
                                     cotangents: so reverse mode sees ordinary ops, saves what is
                                     cheapest of them, and needs to know of no rule

A rule that gives tangents serves reverse mode as well: it is linear in them, so its transpose is
its own reverse mode with respect to them, at tangents of zero.  What it needs of the arguments is
its forward part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from ...analysis.activity import active_values, influenced_values, varied_values
from ...errors import DerivativeError
from ...ir.builder import Builder, add_op, emit
from ...ir.graph import MISSING, Block, Function, Op, Value, free_values, identifier, walk
from ...ir.reemit import clone, emit_block, rebuild
from ...ir.substitute import substitute
from ...ir.types import INT, Array, Type, carries_derivative, with_own_extents
from ...ops.arrays.create import empty
from ...ops.core.chain_rule import like_operand
from ...ops.core.control import Known, call
from ...ops.core.record import value
from ...ops.core.shape import length, zeros_of
from ...ops.program.checkpoint import Rerun
from ...ops.program.custom_rules import (
    Halves,
    Lifted,
    captured,
    differentiable_arguments,
    in_shape,
    is_ruled,
    with_cotangents,
)
from ...ops.program.recursive_callee import Recursive
from ..cleanup.inline import inline_where
from .adjoint import drop_unread
from .constant_terms import has_constant_term
from .shape_only_reads import read_as_values

# ------------------------------------------------------------------------------ captures of rules


def lift_captures(function: Function, wrt: Sequence[int], mode: str) -> Function:
    """Add trailing parameters to `function` for the data that rules capture and its derivative in
    `wrt` reads (lambda lifting).

    `mode` is "jvp" or "vjp".  What a rule reads from outside is read at each call, like anything
    captured.
    """
    made, extra = _lift(function, tuple(wrt), mode, {})
    if not extra:
        return function
    names, captures = {p.name for p in made.params[:len(function.params)]}, dict(function.captures)
    for param, getter in zip(made.params[len(function.params):], extra):
        stem, k = param.name, 0
        while param.name in names:
            k += 1
            param.name = f"{stem}_{k}"
        names.add(param.name)
        captures[param.name] = getter
    made.captures = captures
    return made


def _lift(function: Function, wrt: tuple[int, ...], mode: str,
          done: dict) -> tuple[Function, dict[Callable, Type]]:
    """Return the lifted function, with the getters and types of its extra arguments."""
    if (function, wrt) in done:
        return done[function, wrt]
    varied = varied_values(function, [function.params[k] for k in wrt])
    changes: dict[Op, tuple] = {}  # call -> its new callee and extra arguments
    for op in walk(function.block):
        if op.name != "call" or not any(out in varied for out in op.outputs):
            continue
        callee = op.attrs["callee"]
        if is_ruled(callee):
            known, wanted = captured(op), _captures_of_rule(callee, op.inputs, mode)
            missing = {getter: type for getter, type in wanted.items() if getter not in known}
            if missing:
                changes[op] = Lifted(callee, missing, missing.values()), missing
        elif not isinstance(callee, Recursive):
            inner = callee.function_for(op.inputs)
            made, extra = _lift(inner, tuple(k for k, x in enumerate(op.inputs) if x in varied),
                                mode, done)
            if extra:
                changes[op] = (Rerun(Known(made)) if isinstance(callee, Rerun) else Known(made),
                               extra)
    if not changes:
        done[function, wrt] = function, {}
        return done[function, wrt]
    names = {getter: name for name, getter in function.captures.items()}
    own = dict(zip(function.captures.values(),
                   function.params[len(function.params) - len(function.captures):]))
    extra = {getter: type for _, wanted in changes.values() for getter, type in wanted.items()
             if getter not in own}
    params = [Value(p.type, p.name) for p in function.params]
    added = {getter: Value(with_own_extents(type, f"captured {k}"), names.get(getter)
                           or name_of(getter)) for k, (getter, type) in enumerate(extra.items())}
    given = {**{getter: params[function.params.index(p)] for getter, p in own.items()}, **added}

    def rule(op: Op, inputs: list[Value]):
        if op not in changes:
            return None
        callee, wanted = changes[op]
        return emit(call, *inputs, *(given[getter] for getter in wanted), callee=callee)

    block = Block([*params, *added.values()])
    with Builder(block):
        block.yields = emit_block(function.block, params, {}, rule)
    done[function, wrt] = function.remade(block), extra
    return done[function, wrt]


def name_of(getter: Callable) -> str:
    """Name captured data."""
    return identifier(str(getattr(getter, "name", "")), "captured")


def _captures_of_rule(callee, inputs: Sequence[Value], mode: str) -> dict[Callable, Type]:
    found: dict[Callable, Type] = {}
    rule = callee.vjp(inputs[:callee.count]) if mode == "vjp" else None
    functions = ([rule.forward, rule.backward] if rule is not None
                 else [callee.jvp(inputs[:callee.count])])
    for function in functions:
        if function is not None:
            captures = function.params[len(function.params) - len(function.captures):]
            found.update((getter, p.type)
                         for getter, p in zip(function.captures.values(), captures))
    return found


# ---------------------------------------------------------------------------------- applying a rule


BRIEF = 10  # ops


def is_brief(function: Function) -> bool:
    """Test whether a rule reads better inlined: a few lines without loops or branches."""
    ops = [op for op in walk(function.block) if not op.record.structural]
    return len(ops) <= BRIEF and not any(op.blocks for op in ops)


def invoke(function: Function, args: Sequence[Value]) -> list[Value]:
    """Emit a rule: inline a small one, call others."""
    if is_brief(function):
        return emit_block(function.block, args, {})
    places = {y: k for k, y in enumerate(dict.fromkeys(function.results))}
    found = emit(call, *args, callee=Known(_distinct_results(function)))
    found = found if isinstance(found, tuple) else (found,)
    return [found[places[y]] for y in function.results]


_shorter: WeakKeyDictionary[Function, Function] = WeakKeyDictionary()


def _distinct_results(function: Function) -> Function:
    """Rewrite `function` to return no value twice."""
    results = list(dict.fromkeys(function.results))
    if len(results) == len(function.results):
        return function
    if function not in _shorter:
        block = Block(function.params, function.block.ops, results)
        _shorter[function] = function.remade(block, tupled=len(results) != 1)
    return _shorter[function]


_inlined: WeakKeyDictionary[Function, Function] = WeakKeyDictionary()


def _with_helpers_inlined(function: Function | None) -> Function | None:
    """Return a rule with the small functions that it calls inlined."""
    if function is None:
        return None
    if function not in _inlined:
        _inlined[function] = inline_where(function, lambda callee, again, *_: is_brief(callee)
                                          and not again)
    return _inlined[function]


def captures_for_call(function: Function, known: dict[Callable, Value]) -> list[Value]:
    """Return what a rule captures, from the arguments of its call."""
    found = [known.get(getter) for getter in function.captures.values()]
    if None in found:
        name = list(function.captures)[found.index(None)]
        raise DerivativeError(f"the rule {function.name} captures {name}, in a function that calls "
                              "itself", None, f"make {name} an argument")
    return found


def tangents_by_rule(op: Op, inputs: Sequence[Value], dots: dict[int, Value]) -> list[Value]:
    """Emit a call of a function with rules: its results and their tangents, for the arguments
    numbered in `dots`.
    """
    callee = op.attrs["callee"]
    refuse_fixed(op, dots)
    values = list(inputs[:callee.count])
    function = _with_helpers_inlined(callee.jvp(values))
    if function is None:
        raise callee.missing("jvp")
    wanted = differentiable_arguments(callee, values)
    known = dict(zip(callee.getters(inputs), inputs[callee.count:]))
    made = without_tangents(function, callee.count,
                            [n for n, k in enumerate(wanted) if k not in dots])
    outs = invoke(made,
                  [*values, *(dots[k] for k in wanted if k in dots),
                   *captures_for_call(function, known)])
    count = len(op.outputs)
    tangents = iter(outs[count:])
    return [*outs[:count],
            *(in_shape(next(tangents), y) for y in outs[:count] if carries_derivative(y.type))]


def refuse_fixed(op: Op, wrt) -> None:
    """Raise if an argument in `wrt` is one in which the rule defines no derivative."""
    callee = op.attrs["callee"]
    for k in callee.fixed:
        if k in wrt:
            name = op.inputs[k].name or f"argument {k}"
            if k >= callee.own:
                raise DerivativeError(f"{callee.name} is differentiated with respect to {name}, "
                                      "which it or its rule closes over", op.line,
                                      f"make {name} an argument of the function, or close over "
                                      "s2s.stop_gradient of it")
            raise (DerivativeError(f"{callee.name} is differentiated with respect to {name}, in "
                                   "which it is said to have no derivative", op.line,
                                   "leave it out of nondiff_argnums, or pass s2s.stop_gradient of "
                                   "it"))


def without_tangents(function: Function, first: int, unwanted: Sequence[int]) -> Function:
    """Specialise f_jvp to zero tangents at the numbers in `unwanted`; the first tangent is
    parameter `first`.
    """
    if not unwanted:
        return function
    gone = {first + n for n in unwanted}
    block = Block([Value(p.type, p.name) for k, p in enumerate(function.params) if k not in gone])
    with Builder(block):
        rest = iter(block.params)
        args = [zeros_of(p) if k in gone else next(rest)
                for k, p in enumerate(_map_params(function.params, gone, block.params))]
        block.yields = emit_block(function.block, args, {})
    return function.remade(block)


def _map_params(params: Sequence[Value], gone: set[int], made: Sequence[Value]) -> list[Value]:
    """Map `params` to the new parameters `made`; a parameter that is gone maps to another of the
    same type.
    """
    rest = iter(made)
    new = {p: next(rest) for k, p in enumerate(params) if k not in gone}
    return [new[p] if p in new else next((new[q] for q in params if q in new and q.type == p.type),
                                         p) for p in params]


# ------------------------------------------------------------------------------------- reverse mode


def expand_rule_calls(function: Function, wrt: Sequence[int], split: Callable) -> Function:
    """Replace active calls of functions with rules by their forward parts and an op that holds the
    rule for cotangents.

    `split(function, wrt)` gives the halves of the derivative of an ordinary function.
    """
    if not any(op.name == "call" and is_ruled(op.attrs["callee"]) for op in walk(function.block)):
        return function
    active = active_values(function, [function.params[k] for k in wrt])

    def rule(op: Op, inputs: list[Value]):
        if (op.name != "call" or not is_ruled(op.attrs["callee"])
                or not any(out in active for out in op.outputs)):
            return None
        return _expand(op, inputs,
                       [k for k in range(op.attrs["callee"].count) if op.inputs[k] in active],
                       split)

    return rebuild(function, rule=rule)


def _expand(op: Op, inputs: Sequence[Value], wrt: list[int], split: Callable) -> Sequence[Value]:
    callee, count = op.attrs["callee"], len(op.outputs)
    refuse_fixed(op, wrt)
    known = dict(zip(callee.getters(inputs), inputs[callee.count:]))
    values = list(inputs[:callee.count])
    halves = callee.vjp(values)
    if halves is None:
        function = _with_helpers_inlined(callee.jvp(values))
        if function is None:
            raise callee.missing("vjp")
        halves = transpose_rule(callee, function, values, wrt, count, split)
    outs = invoke(_with_helpers_inlined(halves.forward),
                  [*values, *captures_for_call(halves.forward, known)])
    backward, covers = (_with_helpers_inlined(halves.backward),
                        [k for k in halves.covers if k in wrt])
    pool = [*values, *captures_for_call(halves.forward, known)]
    given = [*(pool[k] for k in halves.arguments), *outs[count:],
             *captures_for_call(backward, known)]
    split_at = len(given) - len(backward.captures)

    backward, read = _only(backward, [n for n, k in enumerate(halves.covers) if k in wrt])
    seeds = sum(carries_derivative(y.type) for y in outs[:count])
    # among the parameters of the backward part
    places = [n if n < split_at else n + seeds for n in range(len(given))]
    given, places = ([x for x, n in zip(given, places) if n in read],
                     [n for n in places if n in read])

    def cotangents(xs, rest, bars):
        args = {**dict(zip(places, rest)), **{split_at + n: bar for n, bar in enumerate(bars)}}
        found = invoke(backward, [args[n] for n in read])
        return [like_operand(in_shape(bar, x), x) for bar, x in zip(found, xs, strict=True)]

    record, operands = with_cotangents(outs[:count], [values[k] for k in covers], given, cotangents)
    made = add_op(record, operands, {}, [y.type for y in outs[:count]])
    for old, raw, new in zip(op.outputs, outs, made.outputs):
        raw.name = raw.name or old.name
        new.name = old.name
    return made.outputs


def _only(function: Function, results: Sequence[int]) -> tuple[Function, list[int]]:
    """Restrict `function` to these results and to the parameters they read; return both."""
    key = tuple(results)
    known = _parts.setdefault(function, {})
    if key not in known:
        made = clone(function)
        made.block.yields = [made.block.yields[k] for k in results]
        made.tupled = len(results) != 1
        drop_unread(made.block)
        free = set(free_values(Block([], made.block.ops, made.block.yields)))
        read = [k for k, p in enumerate(made.params) if p in free]
        made.block.params = [made.params[k] for k in read]
        known[key] = made, read
    return known[key]


_parts: WeakKeyDictionary[Function, dict[tuple, tuple[Function, list[int]]]] = WeakKeyDictionary()


_being_transposed: list = []


def transpose_rule(callee, function: Function, values: Sequence[Value], wrt: Sequence[int],
                   count: int, split: Callable) -> Halves:
    """Transpose f_jvp(*xs, *x_dots, *captures) -> (*ys, *y_dots) to its two halves, for the
    tangents of the arguments `wrt`.
    """
    wanted = differentiable_arguments(callee, values)
    function = without_tangents(function, callee.count,
                                [n for n, k in enumerate(wanted) if k not in wrt])
    first, last = callee.count, callee.count + len([k for k in wanted if k in wrt])
    if callee in _being_transposed:
        raise DerivativeError(f"the rule {function.name} calls {callee.name} on tangents, and its "
                              "reverse would do so without end", function.source.begins
                              if function.source is not None else None, f"give {callee.name} a "
                              "rule for reverse mode with custom_vjp")
    _being_transposed.append(callee)
    try:
        halves = split(function, tuple(range(first, last)))
    finally:
        _being_transposed.remove(callee)
    dots = set(range(first, last))
    params = halves.forward.params
    own = [k for k in wanted if k in wrt]
    halves = _without_shapes_of(halves, [params[k] for k in dots],
                                {first + n: k for n, k in enumerate(own)})
    # the remainder is not linear in them
    without = without_tangents(function, first, range(last - first)).block.yields[count:]
    adds = has_constant_term(function, function.params[first:last], function.block.yields[count:])
    if (halves is None or adds
        or any(y.constant is not MISSING and y.constant != 0 for y in without)):
        raise DerivativeError(f"the rule {function.name} is not linear in the tangents, and "
                              "reverse mode transposes it", function.source.begins
                              if function.source is not None else None, f"give {callee.name} a "
                              "rule for reverse mode with custom_vjp, or make the tangents enter "
                              "it linearly")
    keeps = len(halves.forward.results) - len(halves.residuals)
    block = Block([Value(p.type, p.name) for k, p in enumerate(params) if k not in dots])
    with Builder(block):
        rest = iter(block.params)
        renewed = _map_params(params, dots, block.params)
        args = [zeros_of(renewed[k]) if k in dots else next(rest) for k in range(len(params))]
        found = emit_block(halves.forward.block, args, {})
        block.yields = [*found[:count], *found[keeps:]]
    drop_unread(block)
    forward = function.remade(block, name=f"{callee.name}_fwd", tupled=len(block.yields) != 1,
                              doc="")
    arguments = tuple(k if k < first else k - len(dots) for k in halves.arguments)
    return Halves(forward, _of_tangents_only(halves, function, count, callee), arguments,
                  tuple(own))


def _without_shapes_of(halves, dots: Sequence[Value], primals: dict[int, int]):
    """Rewrite `halves` so that the backward part does not read the shapes of tangents; None where
    it reads their elements.

    A tangent has the shape of its argument, which `primals` says.
    """
    backward = clone(halves.backward)
    count = len(halves.arguments)
    kept = halves.residuals
    depends = influenced_values(halves.forward, dots)
    given = dict(zip(halves.arguments, backward.params))
    held = dict(zip(kept, backward.params[count:count + len(kept)]))
    tangents = ([p for k, p in given.items() if k in primals]
                + [p for r, p in held.items() if r in depends])
    if not tangents:
        return halves
    if read_as_values(backward.block, through=True).intersection(tangents):
        return None
    arguments = [k for k in halves.arguments if k not in primals]
    stands_for: dict[Value, Value] = {}
    for k, p in given.items():
        if k in primals:
            if primals[k] not in arguments:
                arguments.append(primals[k])
                given = {**given, primals[k]: Value(p.type, halves.forward.params[primals[k]].name)}
            stands_for[p] = given[primals[k]]
    results, forward = len(halves.forward.results) - len(kept), clone(halves.forward)
    # residuals of the forward part -> the parameters that take them
    pairs: list[tuple[Value, Value]] = []
    for r, again in zip(kept, forward.results[results:]):
        if r not in depends or not isinstance(r.type, Array):
            pairs.append((again, held[r]))
            continue
        with Builder(forward.block):  # axis lengths of an array of tangents
            lengths = [_length(again, k, [p for p in forward.params if p not in set(dots)])
                       for k in range(r.type.rank)]
        sizes, before = [Value(INT, "n") for _ in lengths], Block()
        with Builder(before, above=backward.params):
            stands_for[held[r]] = empty(value(tuple(sizes)), dtype=r.type.dtype)
        backward.block.ops[:0] = before.ops
        pairs += zip(lengths, sizes)
    substitute(backward.block, stands_for)
    backward.block.params = [*(given[k] for k in arguments), *(p for _, p in pairs),
                             *backward.params[count + len(kept):]]
    forward.block.yields = [*forward.results[:results], *(x for x, _ in pairs)]
    return replace(halves, forward=forward, backward=backward, residuals=forward.results[results:],
                   arguments=arguments)


def _length(x: Value, axis: int, params: Sequence[Value]) -> Value:
    """Emit the length of an axis of `x`, from one of `params` if one has it."""
    dim = x.type.dims[axis]
    if isinstance(dim, int):
        return value(dim)
    known = next((p for p in params if isinstance(p.type, Array) and dim in p.type.dims), None)
    return length(x, axis=axis) if known is None else length(known, axis=known.type.dims.index(dim))


def _of_tangents_only(halves, function: Function, count: int, callee) -> Function:
    """Restrict the backward half to cotangents of tangents: the values do not depend on them."""
    backward = halves.backward
    seeded = sum(carries_derivative(y.type) for y in function.results[:count])
    before = len(halves.arguments) + len(halves.residuals)
    block = Block([Value(p.type, p.name) for k, p in enumerate(backward.params)
                   if not before <= k < before + seeded])
    with Builder(block):
        rest = iter(block.params)
        args = [Value(p.type, p.name) if before <= k < before + seeded else next(rest)
                for k, p in enumerate(backward.params)]
        block.yields = emit_block(backward.block, args, {})
    for op in walk(block):
        for out in op.outputs:
            out.name = re.sub(r"_dot_bar$", "_bar", out.name)
    for y in block.yields:
        y.name = ""
    names = [y.name for y in function.results[:count] if carries_derivative(y.type)]
    for param, name in zip(block.params[before:], names):
        param.name = f"{name}_bar" if name else "y_bar"
    return function.remade(block, name=f"{callee.name}_bwd", tupled=len(block.yields) != 1, doc="",
                           captures={})
