"""Loops to `for`, `while` and `break`, and loops over a tape to `for x in reversed(x_tape)`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..ir.graph import MISSING, Block, Op, Value
from ..ops.control import tape_source
from .mentions import nodes_in
from .parts import mark
from .pieces import Body, choose, end_of, leaves, negated, placed, range_call, unnested

if TYPE_CHECKING:
    from .statements import Writer

# what outputs are on a path, whether the path may leave the loop, and whether it does -> the assignments at its end
Finish = Callable[..., Body]


def loop(writer: Writer, op: Op) -> Body:
    """`for` and `while`."""
    is_for = op.name == "for"
    inits = op.inputs[3:] if is_for else op.inputs
    body = op.blocks[-1]
    params = body.params[1:] if is_for else body.params
    yields = body.yields
    stop = None
    if op.attrs["breaks"]:
        stop, yields = yields[0], yields[1:]
    popped = _popped(writer, op) if is_for and not writer.native and not writer.annotate else None
    if popped is not None:
        pop, k = popped
        writer.skipped.add(pop)
        targets = [writer.target(y) for y in pop.outputs[1:]]
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
        trips = _items(writer, inits[k])
        params, inits, yields = ([*xs[:k], *xs[k + 1 :]] for xs in (params, inits, yields))
    elif is_for:
        target = ast.Name(writer.names[body.params[0]], ast.Store())
        trips = range_call(*map(writer.expression, op.inputs[:3]))
    before = writer.moves(params, inits, op.line)
    unread = {p for p, y in zip(params, op.outputs) if stop is not None and not writer.annotate and not writer.reads.get(y)}
    if is_for:
        inner = _loop_body(writer, body, params, yields, stop, inits, unread)
        tree = ast.For(target, trips, inner or [ast.Pass()], [])
        return before + [mark(tree, op, [writer.names[p] for p in params]) if writer.native else tree]
    head, test = op.blocks[0], op.blocks[0].yields[0]
    inner = _loop_body(writer, body, params, yields, stop, inits, unread)
    preparation = writer.statements(head)
    if preparation:
        leave = ast.If(negated(writer.expression(test)), [ast.Break()], [])
        return before + [ast.While(ast.Constant(True), [*preparation, leave, *inner], [])]
    return before + [ast.While(writer.expression(test), inner or [ast.Pass()], [])]


def _popped(writer: Writer, op: Op) -> tuple[Op, int] | None:
    """The pop with which a loop takes one item a trip from the end of a tape, and which carry the tape is.

    Such a loop prints as `for x in reversed(x_tape)`.
    """
    body, (lo, hi, step) = op.blocks[0], op.inputs[:3]
    first = next((inner for inner in body.ops if inner not in writer.layout.inlined), None)
    if (
        first is None
        or first.name != "tape_pop"
        or first.inputs[0] not in body.params
        or op.attrs["breaks"]
    ):
        return None
    k = body.params.index(first.inputs[0]) - 1
    if writer.reads.get(body.params[0]) or writer.reads.get(op.outputs[k]) or k < 0:
        return None
    if body.yields[k] is not first.outputs[0] or writer.reads[first.outputs[0]] != 1:
        return None
    tape = tape_source(op.inputs[3 + k])
    forwards = lo.constant == 0 and step.constant == 1 and _is_length(hi, tape, 0)
    backwards = hi.constant == -1 and step.constant == -1 and _is_length(lo, tape, -1)
    return (first, k) if forwards or backwards else None


def is_read_as_it_is(writer: Writer, op: Op) -> bool:
    """Whether a copy of a tape, or the tape turned round, is only what such a loop runs over: it needs no copy."""
    users = writer.layout.uses.get(op.output, [])
    if len(users) != 1 or writer.native or writer.annotate:
        return False
    ((loop, k),) = users
    if not isinstance(loop, Op) or loop.name != "for":
        return False
    popped = _popped(writer, loop)
    return popped is not None and popped[1] == k - 3 and all(
        isinstance(user, Op) and user.name in ("tape_copy", "tape_reversed", "tape_len", "list_zeros")
        for user, _ in writer.layout.uses[op.inputs[0]])


def _items(writer: Writer, tape: Value) -> ast.expr:
    """What a loop runs over that takes its items from the end of `tape`."""
    whole = tape.op if tape_source(tape) is not tape and is_read_as_it_is(writer, tape.op) else None
    source = writer.expression(tape if whole is None else whole.inputs[0])
    if whole is not None and whole.name == "tape_reversed":
        return source
    return ast.Call(ast.Name("reversed", ast.Load()), [source], [])


def _loop_body(
    writer: Writer,
    body: Block,
    params: Sequence[Value],
    yields: Sequence[Value],
    stop: Value | None,
    inits: Sequence[Value],
    unread: set[Value],
) -> Body:
    """The statements of a loop's body, with what it carries on to the next trip; nothing reads `unread` after the loop."""
    if stop is None or stop.constant is False:
        return unnested(writer.statements(body) + writer.moves(params, yields, bound=True))
    flags = [
        k
        for k, init in enumerate(inits)
        if isinstance(init.constant, (bool, int, float))
        and all(
            y is params[k] or repr(y.constant) == repr(init.constant)
            for y in _continuing(body, stop, yields[k])
        )
    ]

    def finish(ends: dict[Value, Value], stops: bool, leaves: bool = False) -> Body:
        carried = [k for k in range(len(params)) if stops or k not in flags]
        carried = [k for k in carried if not (leaves and params[k] in unread)]
        ends = [ends.get(yields[k], yields[k]) for k in carried]
        return writer.moves([params[k] for k in carried], ends, bound=True)

    return _breaking(writer, body, stop, finish)


def _breaking(writer: Writer, block: Block, stop: Value, finish: Finish, once: bool = True) -> Body:
    """The statements of `block`, what has to be done at its end, and `break` if `stop` holds.

    `once` says that the blocks around do nothing with `stop` but break.
    """
    once = once and block.yields.count(stop) == 1
    if stop.constant is not MISSING:
        return (
            writer.statements(block)
            + finish({}, bool(stop.constant), bool(stop.constant))
            + ([ast.Break()] if stop.constant else [])
        )
    printed = [
        op for op in block.ops if op not in writer.layout.inlined and op not in writer.skipped
    ]
    if once and _is_question(stop.op) and printed and stop.op is printed[-1]:
        test = stop.op.inputs[0]  # as if `stop` were the condition itself
        return writer.statements(block, printed[:-1]) + _tested(writer, writer.expression(test), writer.layout.leaves(test), finish)
    if stop.op is not None and printed and stop.op is printed[-1] and stop.op.name == "if":
        return writer.statements(block, printed[:-1]) + _breaking_branches(
            writer, stop.op, block, stop, finish, once
        )
    return writer.statements(block) + _tested(
        writer, writer.expression(stop), writer.layout.leaves(stop), finish
    )


def _is_question(op: Op | None) -> bool:
    """Whether `op` is an `if` that says nothing but whether its condition holds."""
    return (op is not None and op.name == "if" and len(op.outputs) == 1 and all(x.name == "constant" for inner in op.blocks for x in inner.ops)
            and [inner.yields[0].constant for inner in op.blocks] == [True, False])


def _breaking_branches(writer: Writer, op: Op, block: Block, stop: Value, finish: Finish, once: bool) -> Body:
    """The `if` at the end of `block` that says whether to leave the loop."""
    k = op.outputs.index(stop)
    carried = [all(user is block for user, _ in writer.layout.uses.get(y, [])) for y in op.outputs]
    bodies = []
    for inner in op.blocks:

        def finish_branch(ends: dict[Value, Value], stops: bool, leaves: bool = False, inner=inner) -> Body:
            last = {y: ends.get(x, x) for y, x in zip(op.outputs, inner.yields)}
            kept = [y for y, direct in zip(op.outputs, carried) if not direct]
            direct = {y: last[y] for y in op.outputs if y not in kept}
            return writer.moves(kept, [last[y] for y in kept]) + finish(direct, stops, leaves)

        bodies.append(_breaking(writer, inner, inner.yields[k], finish_branch, once))
    test = writer.expression(op.inputs[0])
    first, second = bodies
    if leaves(first):
        return [placed(ast.If(test, first, []), op.line), *second]
    if leaves(second):
        return [placed(ast.If(negated(test), second, []), op.line), *first]
    return [placed(statement, op.line) for statement in choose(test, first, second)]


def _tested(writer: Writer, test: ast.expr, read, finish) -> Body:
    """`finish`, then `if test: break`, where finishing may overwrite what the test reads."""
    after = finish({}, True)
    overwritten = {
        node.id
        for statement in after
        for node in nodes_in(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if any(writer.names[x] in overwritten for x in read if x in writer.names.order):
        if not after:
            return [ast.If(test, [ast.Break()], [])]
        return [ast.If(test, [*after, ast.Break()], []), *finish({}, True)]
    return [*after, ast.If(test, [ast.Break()], [])]


def _continuing(block: Block, stop: Value, y: Value) -> list[Value]:
    """What `y`, read at the end of `block`, may be where `stop` does not hold."""
    if stop.constant is not MISSING:
        return [] if stop.constant else [y]
    op = stop.op
    if op is None or op.name != "if" or op not in block.ops:
        return [y]
    k = op.outputs.index(stop)
    return [
        end
        for inner in op.blocks
        for end in _continuing(inner, inner.yields[k], end_of(y, op, inner))
    ]


def _is_length(value: Value, tape: Value, offset: int) -> bool:
    """Whether `value` is the number of items on `tape`, plus `offset`."""
    if (
        offset
        and value.op is not None
        and value.op.name == "subtract"
        and value.op.inputs[1].constant == -offset
    ):
        return _is_length(value.op.inputs[0], tape, 0)
    return (
        not offset
        and value.op is not None
        and value.op.name == "tape_len"
        and value.op.inputs[0] is tape
    )
