"""Control flow, calls, tuples and tapes: ops like `sin`, except that some own blocks.

    if_     (condition)               then() -> yields,  otherwise() -> yields
    for_    (lo, hi, step, *carries)  body(i, *carries) -> carries
    while_  (*carries)                test(*carries) -> condition,  body(*carries) -> carries
    call    (*arguments)              a function the user wrote, kept as a call

A loop may have a `plan` (ops/program/checkpoint.py): its reverse sweep runs trips again instead of
saving each of them. With `breaks` set, the first yield of a loop's body is a flag: True ends the
loop after this iteration (with the yielded carries), so `break`, and `return` inside a loop, need
no op of their own.

The builders below (`if_`, `for_loop`, `while_loop`) find the types of carries by emitting the body
until its yields agree with its parameters: a carry that is an int before and a float after the
first trip is a float.  The lattice is of finite height, so this ends.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from ...errors import S2SError, UnsupportedError, VerifyError
from ...ir.builder import (
    Builder,
    add_op,
    current,
    emit,
    fresh_extent,
    fresh_shape,
    join_types,
    meet,
)
from ...ir.graph import MISSING, Block, Op, Value, walk
from ...ir.treedef import Form, form_of, stores_its_arguments, with_attributes
from ...ir.types import (
    FLOAT,
    INT,
    UNDEFINED,
    UNKNOWN,
    Array,
    Dim,
    Extent,
    HashSet,
    HashTable,
    List,
    Scalar,
    Static,
    Tape,
    Tuple,
    Type,
    Unknown,
    forget_weak,
    is_inexact,
    join,
    may_be_one,
)
from . import stablehlo_control
from .dependence_rules import anything, nothing
from .record import ALL, RECORDS, define, dims_of, type_of_constant, value

MOST_MEMBERS = 1024  # of a tuple, list, dict or object
WIDEN_AFTER = 8  # rounds after which a still changing carry gets unknown rank


# ---------------------------------------------------------------------------------------- builders


def _yielding(body: Callable, params: Sequence[Value] = (), inits: Sequence[Value] = (),
              trips: tuple[Value, Value, Value] | None = None) -> tuple[Block, list[Value]]:
    block = Block(params=list(params))
    with Builder(block, inits=dict(zip(params[len(params) - len(inits):], inits)), trips=trips):
        block.yields = [value(y) for y in body(*params)]
    return block, block.yields


def if_(condition, then: Callable, otherwise: Callable,
        names: Sequence[str] = ()) -> tuple[Value, ...]:
    """Emit an `if`; `then()` and `otherwise()` emit the branches and return equally many values."""
    condition = value(condition)
    if condition.constant is not MISSING:
        return tuple(map(value, then() if condition.constant else otherwise()))
    first, a = _yielding(then)
    second, b = _yielding(otherwise)
    types = [join_types(x.type, y.type, names[k] if k < len(names) and names[k] else "a value")
             for k, (x, y) in enumerate(zip(a, b, strict=True))]
    names = [names[k] if k < len(names) and names[k] else x.name if x.name == y.name else ""
             for k, (x, y) in enumerate(zip(a, b))]
    return tuple(add_op(if_record, [condition], {}, types, [first, second], names).outputs)


# Note [Types of carries, again]
# `total = 0.0` before a loop is a Python number, and a NumPy number after the first trip that adds
# an array element to it: the body is emitted twice, and that of a nested loop four times.  When a
# loop is emitted again, its carries most likely get the same types as before.  So such a carry
# starts as a NumPy number at once; starting from the inits would give the same type, if the end of
# each trip is a NumPy number whatever the carry is, or given other carries for which this was
# shown.  Likewise an empty tape of unknown item type starts with the type of the numbers that were
# pushed onto it, if those are pushed again.  If not, the loop is emitted from its inits.


def _carries(inits: list[Value], names: Sequence[str], emit_body: Callable,
             before: Sequence[Type] = (),
             spread: Callable | None = None) -> tuple[list[Type], list]:
    """Emit a loop's body until the types of its carries reach a fixed point; return them and the
    loop's blocks.

    `before` are the previous types of the carries, if the loop is emitted again; spread(init, type,
    body, name) may return an array to start with in place of a number, if a trip makes an array of
    it: then it replaces the number in `inits`.
    """
    likely = [old
              if init.type == FLOAT and old == _NUMPYS
              or init.type == Tape(UNDEFINED) and _is_of_numbers(old) else init.type
              for init, old in zip(inits, before)]
    if before and any(init.type != type for init, type in zip(inits, likely)):
        try:
            types, blocks, yields = _attempt(inits, likely, names, emit_body)
        except S2SError:  # for a carry that is unbound before the first trip: see below
            types = []
        if types == likely:
            guessed = [k - len(inits)
                       for k, (init, type) in enumerate(zip(inits, likely)) if init.type != type]
            if _become(yields, blocks[-1], guessed):
                return _settled(inits, types), blocks
    types = [init.type for init in inits]
    unbound = [k for k, type in enumerate(types) if type == UNDEFINED]
    for attempt in range(WIDEN_AFTER + 1):
        try:
            joined, blocks, yields = _attempt(inits, types, names, emit_body)
        except S2SError as error:
            if not unbound:
                raise
            types, unbound = _types_of_unbound(types, unbound, names, emit_body, error), []
            continue
        if attempt == 0 and spread is not None:
            arrays = {k: array
                      for k, (init, y) in enumerate(zip(inits, yields))
                      if isinstance(init.type, Scalar) and isinstance(y.type, Array)
                      and (array := spread(init, y.type, blocks[-1], names[k])) is not None}
            if arrays:
                inits[:] = [arrays.get(k, init) for k, init in enumerate(inits)]
                types = [init.type for init in inits]
                continue
        if joined == types:
            return _settled(inits, types), blocks
        if attempt == WIDEN_AFTER - 1:
            joined = [UNKNOWN if new != old else new for old, new in zip(types, joined)]
        types = joined
    raise VerifyError("the types of a loop's carries do not settle", current().line)


def _attempt(inits: Sequence[Value], types: list[Type], names: Sequence[str],
             emit_body: Callable) -> tuple[list[Type], list[Block], list[Value]]:
    """Emit a loop's body for carries of `types`; return the join of these and the yielded types,
    the blocks, and the yields.
    """
    blocks, yields = emit_body([Value(type, names[k]) for k, type in enumerate(types)])
    for init, type, y in zip(inits, types, yields, strict=True):
        _say_equal_extents(init, type, y, blocks[-1])
    joined = [join_types(type, y.type, names[k] or "a loop's value", lambda: fresh_extent("any"))
              for k, (type, y) in enumerate(zip(types, yields, strict=True))]
    return joined, blocks, yields


_NUMPYS = forget_weak(FLOAT)


def _is_numpys(x: Value, known: dict[Value, bool], depth: int = 40) -> bool:
    """Whether `x` is NumPy's float64 even if the values in `known` as False are Python's; see Note
    [Types of carries, again].
    """
    if x not in known:
        known[x] = (depth > 0 and getattr(x.type, "dtype", "") == _NUMPYS.dtype and x.type != FLOAT
                    and (x.op is None or _makes_numpys(x, known, depth - 1)))
    return known[x]


def _makes_numpys(x: Value, known: dict[Value, bool], depth: int) -> bool:
    op = x.op
    if op.name == "if":  # a join is NumPy's if either side is
        return any(_is_numpys(block.yields[op.outputs.index(x)], known, depth)
                   for block in op.blocks)
    if op.name in ("for", "while"):
        body, count = op.blocks[-1], len(op.outputs)
        for init, param in zip(op.inputs[-count:], body.params[-count:]):
            known[param] = _is_numpys(init, known, depth)
        end = op.outputs.index(x) - count
        return known[body.params[end]] or _is_numpys(body.yields[end], known, depth)
    numbers = [v for v in op.inputs if is_inexact(getattr(v.type, "dtype", ""))]
    if op.record.elementwise:  # and so is the result of an operation on one
        return any(_is_numpys(v, known, depth) for v in numbers)
    return op.name != "call" and all(_is_numpys(v, known, depth) for v in numbers)


def _is_of_numbers(type: Type) -> bool:
    return isinstance(type, Tape) and isinstance(type.item, Scalar)


def _become(yields: Sequence[Value], body: Block, guessed: Sequence[int]) -> bool:
    """Whether the `guessed` carries get the types assumed for them from the start: NumPy's numbers,
    and tapes of these items.
    """
    tapes = {k for k in guessed if isinstance(yields[k].type, Tape)}
    unsure = {*guessed} - tapes
    # NumPy's only if the guess about the tape is right
    popped = {op.outputs[-1]: False for op in walk(body) if op.record is tape_pop} if tapes else {}
    while found := {k
                    for k in unsure
                    if _is_numpys(yields[k], popped | {body.params[j]: False for j in unsure})}:
        unsure -= found
    return not unsure and all(_holds(yields[k], body.params[k]) for k in tapes)


def _holds(tape: Value, start: Value) -> bool:
    """Whether a tape that was empty at `start` has the items that its type says."""
    has_any, ahead, seen = False, [tape], {start}
    while ahead:
        t = ahead.pop()
        if t in seen:
            continue
        seen.add(t)
        match t.op:
            case Op(inputs=(before, x), record=record) if record is tape_push:
                if x.type != tape.type.item:
                    return False
                has_any = True
                ahead.append(before)
            case Op(inputs=(before,), record=record) if record is tape_pop:
                ahead.append(before)
            case Op(outputs=outputs, blocks=blocks, name="if"):
                ahead += [block.yields[outputs.index(t)] for block in blocks]
            case Op(outputs=outputs, blocks=blocks, inputs=inputs, name="for" | "while"):
                k = outputs.index(t) - len(outputs)
                seen.add(blocks[-1].params[k])
                ahead += [inputs[k], blocks[-1].yields[k]]
            case _:
                return False
    return has_any


def say_what_fills(init: Value, type: Type) -> None:
    """Give the empty list that a loop starts with, or a function is given, the item type that is
    pushed there.

    A trip may read, under a condition, an item that an earlier trip has pushed: emitting the loop
    again needs its type from the start.
    """
    if (init.type in (List(UNDEFINED), HashTable(UNDEFINED), HashSet(UNDEFINED))
        and isinstance(type, List) and init.op is not None
        and init.op.name in ("list_of", "hash_of", "set_of")):
        init.op.attrs["item"], init.type = type.item, type


# Note [Extents that meet]
# `h = np.tanh(U @ x + W @ h)` is as long as U has rows, and as long as W has, or the addition
# raises: neither extent can be 1.  So a carry that starts as long as W has rows keeps that length,
# whichever operand comes first, and what a loop saves of it has a known size.  For a wave equation,
# `un = np.zeros(len(c)); un[1:-1] = 2 * u[1:-1] + c[1:-1] * lap; u = un`, the next u is as long as
# c, and the first as long as u0.  That is one length if both axes are long: u[1:-1] and c[1:-1]
# meet in the first trip, neither has length 1, and the same holds in all following trips.
# Only ops from which the end of the trip is computed count, in the block of the loop: these run in
# each trip, and are not removed.


def _say_equal_extents(init: Value, type: Type, y: Value, body: Block) -> None:
    """Give the yield `y` the extents of the carry's type, if they are proved equal."""
    if not (isinstance(type, Array) and isinstance(y.type, Array) and y.op is not None
            and type.rank == y.type.rank):
        return
    dims = tuple(m
                 if m != n and not getattr(m, "accepts_any", False)
                 and (_met(init, axis) & _met(y, axis) or _meet_behind(m, n, y, body)) else n
                 for axis, (m, n) in zip(range(-type.rank, 0), zip(type.dims, y.type.dims)))
    if dims != y.type.dims:
        y.type = Array(y.type.dtype, dims)


def _meet_behind(m: Dim, n: Dim, y: Value, body: Block) -> bool:
    """Whether the computation of `y` in `body` raises unless these extents are equal."""
    if not (isinstance(m, Extent) and isinstance(n, Extent)) or m.offset != n.offset:
        return False
    inside, behind, pending = set(body.ops), set(), [y]
    while pending:
        op = pending.pop().op
        if op in inside and op not in behind:
            behind.add(op)
            pending += op.inputs
    met = [pair for op in behind if op.record.elementwise for pair in _side_by_side(op)]
    equal = {m.symbol}
    while (found := {symbol for pair in met if not equal.isdisjoint(pair) for symbol in pair}
           - equal):
        equal |= found
    return n.symbol in equal


def _side_by_side(op: Op) -> Iterator[set[str]]:
    """The symbols of extents that an elementwise op proves equal."""
    shapes = [dims_of(x.type) for x in op.inputs]
    for here in zip_longest(*map(reversed, shapes)):
        found = {d
                 for d in here if isinstance(d, Extent) and not d.accepts_any and not d.may_be_one}
        for offset in {d.offset for d in found}:
            alike = [d for d in found if d.offset == offset]
            # of n - 2 and m - 2, both 0 where n is 1 and m is 2
            if len(alike) > 1 and (offset >= 0 or any(d.least > 0 for d in alike)):
                yield {d.symbol for d in alike}


def _met(x: Value, axis: int) -> set:
    """The extents other than 1 that an axis of `x`, counted from the end, is proved to equal."""
    found, stack, seen = set(), [x], {x}
    while stack and len(seen) < 100:
        v = stack.pop()
        dims = getattr(v.type, "dims", ())
        if len(dims) < -axis or may_be_one(dims[axis]) or getattr(dims[axis], "accepts_any", False):
            continue
        found.add(dims[axis])
        known = _of_that_length(v)
        stack += [u for u in known if u not in seen]
        seen.update(known)
    return found


def _of_that_length(v: Value) -> Sequence[Value]:
    """The operands that determine the shape of `v`, as equal or broadcast shapes."""
    match v.op:
        case None:
            return ()
        case op if (op.record.elementwise
                    or op.name in ("shaped_like", "copy", "stop_gradient", "again")):
            return op.inputs
        case op if op.record.writes is not None:
            before = op.inputs[op.record.writes]
        case op if op.name in ("for", "while") and v in op.outputs:
            before = op.inputs[op.outputs.index(v) - len(op.outputs)]
        case _:
            return ()
    # a loop may change the lengths of its carries
    return [before] if before.type == v.type else []


def _types_of_unbound(types: list[Type], unbound: list[int], names: Sequence[str],
                      emit_body: Callable, error: S2SError) -> list[Type]:
    """The types of the carries, if the body reads a name that is unbound before the first trip.

    Python allows that if the read is conditional; the bindings of earlier trips determine the type.
    """
    params = [Value(UNKNOWN if k in unbound else type, names[k]) for k, type in enumerate(types)]
    _, yields = emit_body(params)
    if all(yields[k] is params[k] for k in unbound):
        raise error
    return [yields[k].type if k in unbound else type for k, type in enumerate(types)]


def _settled(inits: Sequence[Value], types: list[Type]) -> list[Type]:
    """The types of a loop's carries after the loop."""
    for init, type in zip(inits, types):
        say_what_fills(init, type)
    return [_after(type) for type in types]


def _after(type: Type) -> Type:
    """The type of a carry after the loop: an extent that may change from trip to trip gets a new
    symbol.
    """
    match type:
        case Array(dtype, dims):
            return Array(dtype, tuple(replace(fresh_extent(), symbol_may_be_one=d.may_be_one)
                                      if getattr(d, "accepts_any", False) else d for d in dims))
        case Tuple(items):
            return replace(type, items=tuple(map(_after, items)))
    return type


def for_loop(lo, hi, step, inits: Sequence, body: Callable, breaks: bool = False,
             names: Sequence[str] = (), index: str = "i", plan=None, before: Sequence[Type] = (),
             spread: Callable | None = None) -> tuple[Value, ...]:
    """Emit `for index in range(lo, hi, step)`; `body(i, *carries)` returns `[stop,] *carries`.

    `before` are the types of the carries if the loop is emitted again; `spread`: see `_carries`.
    """
    lo, hi, step = value(lo), value(hi), value(step)
    inits = [value(x) for x in inits]
    names = [names[k] if k < len(names) else x.name for k, x in enumerate(inits)]
    if (MISSING not in (lo.constant, hi.constant, step.constant)
        and not range(lo.constant, hi.constant, step.constant)):
        return tuple(inits)

    def emit_body(params):
        block, yields = _yielding(body, [Value(INT, index), *params], inits, (lo, hi, step))
        return [block], yields[1:] if breaks else yields

    types, blocks = _carries(inits, names, emit_body, before, spread)
    return tuple(add_op(for_record, [lo, hi, step, *inits], _attrs(breaks, plan), types, blocks,
                        names).outputs)


def _attrs(breaks: bool, plan) -> dict:
    return {"breaks": breaks} if plan is None else {"breaks": breaks, "plan": plan}


def while_loop(inits: Sequence, test: Callable, body: Callable, breaks: bool = False,
               names: Sequence[str] = (), plan=None,
               before: Sequence[Type] = ()) -> tuple[Value, ...]:
    """Emit `while test(*carries)`; `body(*carries)` returns `[stop,] *carries`, `test` one
    condition.

    `before` are the types of the carries if the loop is emitted again.
    """
    inits = [value(x) for x in inits]
    names = [names[k] if k < len(names) else x.name for k, x in enumerate(inits)]

    def emit_body(params):
        head, (condition,) = _yielding(lambda *c: [test(*c)],
                                       [Value(p.type, p.name) for p in params], inits)
        block, yields = _yielding(body, params, inits)
        return [head, block], yields[1:] if breaks else yields

    types, blocks = _carries(inits, names, emit_body, before)
    if blocks[0].yields[0].constant is False:
        test(*inits)  # kept for its side effects
        return tuple(inits)
    outs = add_op(while_record, inits, _attrs(breaks, plan), types, blocks, names).outputs
    if breaks and blocks[0].yields[0].constant is True:  # a trip has been made, to its end
        return tuple(out if end.constant is MISSING else value(end.constant)
                     for out, end in zip(outs, blocks[1].yields[1:]))
    return tuple(outs)


# --------------------------------------------------------------------------- rebuilding and running


def _rebuild_if(op: Op, inputs: list[Value], inner: Callable) -> Sequence[Value]:
    return if_(inputs[0], lambda: inner(op.blocks[0]), lambda: inner(op.blocks[1]),
               [o.name for o in op.outputs])


def _rebuild_for(op: Op, inputs: list[Value], inner: Callable) -> Sequence[Value]:
    block = op.blocks[0]
    return for_loop(*inputs[:3], inputs[3:], lambda *params: inner(block, params),
                    op.attrs["breaks"], [p.name for p in block.params[1:]], block.params[0].name,
                    op.attrs.get("plan"), [p.type for p in block.params[1:]])


def _rebuild_while(op: Op, inputs: list[Value], inner: Callable) -> Sequence[Value]:
    head, block = op.blocks
    return while_loop(inputs, lambda *params: inner(head, params)[0],
                      lambda *params: inner(block, params), op.attrs["breaks"],
                      [p.name for p in block.params], op.attrs.get("plan"),
                      [p.type for p in block.params])


def _run_if(op: Op, inputs: list, run_block: Callable) -> list:
    return run_block(op.blocks[0] if inputs[0] else op.blocks[1], [])


def _run_for(op: Op, inputs: list, run_block: Callable) -> list:
    carries = inputs[3:]
    for i in range(*inputs[:3]):
        carries = run_block(op.blocks[0], [i, *carries])
        if op.attrs["breaks"]:
            stop, *carries = carries
            if stop:
                break
    return carries


def _run_while(op: Op, inputs: list, run_block: Callable) -> list:
    carries = inputs
    while run_block(op.blocks[0], carries)[0]:
        carries = run_block(op.blocks[1], carries)
        if op.attrs["breaks"]:
            stop, *carries = carries
            if stop:
                break
    return carries


def _check_if(op: Op) -> None:
    counts = {len(block.yields) for block in op.blocks} | {len(op.outputs)}
    if (len(op.inputs) != 1 or len(op.blocks) != 2 or len(counts) != 1
        or any(b.params for b in op.blocks)):
        raise VerifyError(f"a malformed if: {op}", op.line)


def _check_loop(op: Op, inits: list[Value], block: Block, params: list[Value]) -> None:
    yields = block.yields[1:] if op.attrs["breaks"] else block.yields
    if not len(inits) == len(params) == len(yields) == len(op.outputs):
        raise VerifyError(f"a loop whose carries do not match: {op}", op.line)
    for init, param, end, output in zip(inits, params, yields, op.outputs):
        for incoming in (init.type, end.type):
            if (join(param.type, incoming) != param.type
                or join(param.type, output.type) != param.type):
                raise VerifyError(f"a carry of type {param.type} is given {incoming}: {op}",
                                  op.line)


def _check_for(op: Op) -> None:
    (block,) = op.blocks
    _check_loop(op, op.inputs[3:], block, block.params[1:])


def _check_while(op: Op) -> None:
    head, block = op.blocks
    _check_loop(op, op.inputs, block, block.params)
    if len(head.yields) != 1 or len(head.params) != len(op.inputs):
        raise VerifyError(f"a while without one condition: {op}", op.line)


def _no_infer(*inputs, **attrs):
    raise AssertionError("ops with blocks are emitted by if_, for_loop and while_loop")


if_record = define("if", evaluate=None, infer=_no_infer, rebuild=_rebuild_if, run=_run_if,
                   check=_check_if, stablehlo=stablehlo_control.branch)
for_record = define("for", evaluate=None, infer=_no_infer, rebuild=_rebuild_for, run=_run_for,
                    check=_check_for, stablehlo=stablehlo_control.counted)
while_record = define("while", evaluate=None, infer=_no_infer, rebuild=_rebuild_while,
                      run=_run_while, check=_check_while, stablehlo=stablehlo_control.conditional)

# -------------------------------------------------------------------------------------------- calls
#
# `callee` is an object with a `name` and `function_for(values) -> Function`, the callee's IR for
# arguments like these.  The op itself does not know where functions come from.


def _infer_call(*args: Value, callee) -> list[Type]:
    """The callee's result types with the caller's symbols: a symbol means another length in each
    function.
    """
    function = callee.function_for(args)
    known = _known_to_caller((function.params, args))
    for m in function.meetings:
        meet(_translated_dim(m.a, known), _translated_dim(m.b, known), m.broadcasts)
    return [_translated(result.type, known) for result in function.results]


def types_for_caller(callee, call_op: Op, values: Sequence[Value]) -> list[Type]:
    """The types of `values` of `callee`, in terms of the symbols of the function that owns
    `call_op`, a call of it.

    A value must never be passed from one function to another with its type in the first: the symbol
    `n` of one is not that of the other, even with the same spelling.
    """
    known = _known_to_caller((callee.params, call_op.inputs), (callee.results, call_op.outputs))
    return [_translated(v.type, known) for v in values]


def _known_to_caller(*pairs: tuple[Sequence[Value], Sequence[Value]]) -> dict:
    """The substitution of a callee's symbols, from values of the callee and the caller's values for
    them.
    """
    known: dict = {}
    for inner, outer in pairs:
        for mine, theirs in zip(inner, outer):
            _match(mine.type, theirs.type, known)
    return known


def _match(inner: Type, outer: Type, known: dict) -> None:
    """Record the substitution of the callee's symbols in `inner` by the caller's `outer`."""
    match inner, outer:
        case Array(_, dims), Array(_, others) if len(dims) == len(others):
            for dim, other in zip(dims, others):
                if isinstance(dim, Extent):
                    known.setdefault((dim.symbol, dim.offset), other)
        case Unknown(str() as shape, _), Unknown(other, _):
            known.setdefault(f"shape {shape}", other)
        case Tuple(items), Tuple(others) if len(items) == len(others):
            for item, other in zip(items, others):
                _match(item, other, known)


def _translated(type: Type, known: dict) -> Type:
    match type:
        case Array(dtype, dims):
            return Array(dtype, tuple(_translated_dim(d, known) for d in dims))
        case Unknown(str() as shape, dtype):
            return Unknown(known.setdefault(f"shape {shape}", fresh_shape()), dtype)
        case Tuple(items):
            return replace(type, items=tuple(_translated(t, known) for t in items))
        case List(item):
            return replace(type, item=_translated(item, known))
    return type


def _translated_dim(dim, known: dict):
    """The callee's extent in the caller's symbols."""
    if not isinstance(dim, Extent):
        return dim
    key = dim.symbol, dim.offset
    if key not in known:
        known[key] = _shorter_extent(dim, known)
    return known[key]


def _shorter_extent(dim: Extent, known: dict):
    """The extent `dim` of a callee by one that the caller knows: max(max(n - 2, 0) - 1, 0) is
    max(n - 3, 0).
    """
    for key, base in known.items():
        if not isinstance(key, tuple) or key[0] != dim.symbol:
            continue
        less = dim.offset - key[1]
        if isinstance(base, int) and (less < 0 and key[1] <= 0 or not key[1]):
            return max(base + less, 0)
        if isinstance(base, Extent) and less < 0 and base.offset <= 0 and key[1] <= 0:
            return replace(base, offset=base.offset + less)
    return Extent(fresh_extent().symbol, 0, dim.may_be_one)


call = define("call", evaluate=None, infer=_infer_call,
              run=lambda op, inputs, run_block: run_block(
                  op.attrs["callee"].function_for(op.inputs).block, inputs),
              native="compiled", contiguous="operands")


def never_returns(function) -> bool:
    """Whether a function raises for all arguments: it has no result."""
    return not function.tupled and [y.type for y in function.results] == [UNDEFINED]


class Known:
    """A callee with fixed IR: the result of a transformation of a function."""

    def __init__(self, function):
        self.name, self.function = function.name, function

    def __eq__(self, other) -> bool:
        return isinstance(other, Known) and other.function is self.function

    def __hash__(self) -> int:
        return hash(self.function)

    def function_for(self, values):
        return self.function


# ------------------------------------------------------------------------------------------- tuples


def _infer_item(t: Value, *, index: int) -> Type:
    match t.type:
        case Tuple(items):
            return items[index]
        case Unknown():
            return UNKNOWN
        case Static(content):
            return type_of_constant(content[index])
    raise VerifyError(f"member {index} of {t.type}", current().line)


def _fold_item(t: Value, *, index: int):
    if t.op is not None and t.op.name == "tuple":
        return t.op.inputs[index]
    if t.op is not None and t.op.name == "shape":
        return RECORDS["length"](t.op.inputs[0], axis=index)
    if isinstance(t.constant, tuple):
        return value(t.constant[index])
    return None


def _infer_container(*items: Value, form: Form | None = None) -> Type:
    if len(items) > MOST_MEMBERS:
        raise UnsupportedError(
            f"a container of {len(items)} members", current().line,
            f"make it an array, or nest it: one level holds at most {MOST_MEMBERS}")
    return Tuple(tuple(x.type for x in items), form)


def container_syntax(*items: ast.expr, form: Form | None = None) -> ast.expr:
    """The display or call that builds the container of these members."""
    made = _display(items, form)
    made.members = items  # for `member_syntax`
    return made


def _display(items: Sequence[ast.expr], form: Form | None) -> ast.expr:
    match form and form.kind:
        case None:
            return ast.Tuple(list(items), ast.Load())
        case "list":
            return ast.List(list(items), ast.Load())
        case "dict":
            display = ast.Dict([ast.Constant(key) for key in form.keys], list(items))
            if form.cls is dict:
                return display
            factory = [] if form.factory is None else [_class_name(form.factory)]
            return ast.Call(_class_name(form.cls),
                            [*([] if form.cls is not defaultdict
                               else factory or [ast.Constant(None)]), display], [])
    named = [ast.keyword(key, x) for key, x in zip(form.keys, items)]
    cls = _class_name(form.cls)
    if stores_its_arguments(form):
        return ast.Call(cls, [], named)
    return ast.Call(ast.Name(with_attributes.__name__, ast.Load()), [cls], named)


def _class_name(cls) -> ast.Name:
    """The name of a class; the printer resolves how the module imports it."""
    name = ast.Name(cls.__name__, ast.Load())
    if cls.__module__ != "builtins":
        name.cls = cls
    return name


def member_syntax(container: ast.expr, form: Form | None, index: int) -> ast.expr:
    """The expression that reads member `index` of a container, or is it, where the expression of
    the container shows it.
    """
    if hasattr(container, "members"):
        return container.members[index]
    if form is not None and form.kind in ("namedtuple", "attributes"):
        return ast.Attribute(container, form.keys[index], ast.Load())
    return ast.Subscript(container, ast.Constant(index if form is None else form.keys[index]),
                         ast.Load())


tuple_record = define(
    "tuple",
    evaluate=lambda *items, form=None: made_of(items, form),
    infer=_infer_container,
    syntax=container_syntax,
    vjp=lambda bar, y, *items, form=None: tuple(item(bar, index=k) for k in range(len(items))),
    jvp=None,  # transform/forward/jvp keeps tuples member by member
    cheap=True,
    views=tuple(range(MOST_MEMBERS)),
    moves=ALL,
    total=True, structural=True,
    native="compiled", contiguous="operands",
)


def made_of(items: Iterable, form: Form | None):
    """Build the container of this form from these objects."""
    return tuple(items) if form is None else form.build(list(items))


def members_of(x) -> Sequence:
    """The members of a container."""
    form = None if type(x) is tuple else form_of(x)
    return x if form is None else form.members(x)


item = define(
    "item",
    evaluate=lambda t, *, index: members_of(t)[index],
    infer=_infer_item,
    fold=_fold_item,
    syntax=lambda t, *, index: ast.Subscript(t, ast.Constant(index), ast.Load()),
    # see ops/program/list_ops.py: not needed for tuples known member by member
    vjp=None,
    cheap=True,
    views=(0,),
    moves=(0,),
    total=True, structural=True,
    native="compiled",
)

def packed(items: Sequence, form: Form | None) -> Value:
    """Build the container of this form from these members, as Values."""
    return emit(tuple_record, *map(value, items), **({} if form is None else {"form": form}))


undefined = define("undefined", evaluate=lambda: None, infer=lambda: UNDEFINED, cheap=True,
                   syntax=lambda: ast.Constant(None), depends=nothing, total=True,
                   native="compiled")


def make_undefined() -> Value:
    """An unbound name; it prints as no statement at all."""
    return emit(undefined)


# -------------------------------------------------------------------------------------------- tapes
#
# Note [Kept tapes]
# A tape passed from the first half of a derivative to a second half that may be called never, once
# or often is a list (`tape_kept`), which each call copies into a tape of its own (`tape_copy`).  So
# its cotangent is as long as it is, and the contributions of the calls add up; that of a tape
# starts empty, because a tape is emptied once.
#
# Note [Tapes are values]
# A growing tape is a value like any other: push and pop return a new tape.  They are linear, and
# each is the other's adjoint, so a derivative of a derivative needs nothing new.  In print a tape
# is a list that is appended to and popped in place.  A tape of fixed length is an ordinary array
# (`empty`, `setitem`).


def _infer_push(tape: Value, x: Value) -> Type:
    item = tape.type.item
    if isinstance(tape.type, Tape):
        return Tape(join_types(item, x.type, "what a tape holds"))
    return join_types(tape.type, List(x.type), "an item of a list")


def _infer_pop(tape: Value) -> list[Type]:
    return [tape.type, item_type(tape.type)]


def item_type(type: List) -> Type:
    """The type of one item of a list; if the items' lengths differ, it has an extent of its own."""
    return type.item if isinstance(type, Tape) else _after(type.item)


tape_new = define("tape_new", evaluate=lambda: [], infer=lambda: Tape(UNDEFINED),
                  syntax=lambda: ast.List([], ast.Load()), depends=nothing, on_tapes=True,
                  native="compiled")
tape_push = define("tape_push", evaluate=lambda tape, x: [*tape, x], infer=_infer_push, writes=0,
                   views=(0, 1), linear=(0, 1), vjp=lambda bar, y, tape, x: tape_pop(bar),
                   moves=(0, 1), on_tapes=True, stores=True, growth=1,
                   native="compiled", contiguous="operands")
tape_pop = define("tape_pop", evaluate=lambda tape: (tape[:-1], tape[-1]), infer=_infer_pop,
                  writes=0, views=(0,), linear=(0,), vjp=lambda bars, y, tape: (tape_push(*bars),),
                  moves=(0,), on_tapes=True, growth=-1, native="compiled")
tape_kept = define("tape_kept", evaluate=lambda tape: tape, infer=lambda tape: List(tape.type.item),
                   linear=(0,), views=(0,), vjp=lambda bar, y, tape: (tape_copy(bar),),
                   syntax=lambda tape: tape, moves=(0,), on_tapes=True, native="compiled")
tape_copy = define("tape_copy", evaluate=lambda tape: tape[:],
                   infer=lambda tape: Tape(tape.type.item), linear=(0,), views=(0,),
                   fold=lambda tape: tape_copy(tape.op.inputs[0]) if _is_kept(tape) else None,
                   vjp=lambda bar, y, tape: (_like_read(bar, tape),),
                   syntax=lambda tape: ast.Call(ast.Attribute(tape, "copy", ast.Load()), [], []),
                   moves=(0,), on_tapes=True, native="compiled")
tape_reversed = define(
    "tape_reversed", evaluate=lambda tape: tape[::-1], infer=lambda tape: Tape(tape.type.item),
    linear=(0,), fold=lambda tape: tape_reversed(tape.op.inputs[0]) if _is_kept(tape) else None,
    views=(0,), vjp=lambda bar, y, tape: (_like_read(tape_reversed(bar), tape),),
    syntax=lambda tape: ast.Subscript(tape, ast.Slice(None, None, ast.Constant(-1)), ast.Load()),
    moves=(0,), on_tapes=True, native="compiled")
tape_len = define("tape_len", evaluate=len, infer=lambda tape: INT,
                  fold=lambda tape: value(0) if tape.type == List(UNDEFINED) else
                  tape_len(tape_source(tape)) if tape_source(tape) is not tape else None,
                  syntax=lambda tape: ast.Call(ast.Name("len", ast.Load()), [tape], []),
                  depends=nothing, native="compiled", least=0,
                  stablehlo=lambda text, op, tape: len(tape))


def _is_kept(tape: Value) -> bool:
    return tape.op is not None and tape.op.record is tape_kept


def _like_read(bar: Value, tape: Value) -> Value:
    """The cotangent of the source of a tape copy, once it has been filled."""
    return bar if isinstance(tape.type, Tape) else tape_kept(bar)


def tape_source(tape: Value) -> Value:
    """The tape that `tape` copies, in any order; itself if it is no copy."""
    return (tape.op.inputs[0]
            if tape.op is not None and tape.op.name in ("tape_copy", "tape_reversed", "tape_kept")
            else tape)


at_least_zero = define(
    "at_least_zero",  # the trips of a range, from its span
    evaluate=lambda n: max(n, 0),
    infer=lambda n: INT,
    fold=lambda n: value(max(n.constant, 0)) if isinstance(n.constant, int) else
    n if n.op is not None and n.op.name in ("length", "at_least_zero") else None,
    syntax=lambda n: ast.Call(ast.Name("max", ast.Load()), [n, ast.Constant(0)], []),
    partials=(None,),
    cheap=True,
    depends=anything,
    batch=lambda flags, n: RECORDS["maximum"](n, 0),
    natural=True,
)


def longer_by(n: Value, offset: int = 0) -> Value:
    """The length of an axis whose extent differs by this offset from that of an axis of length `n`.
    """
    return n if not offset else n + offset if offset > 0 else at_least_zero(n - -offset)
