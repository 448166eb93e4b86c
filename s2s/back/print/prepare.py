"""Simplify IR for printing, before names are chosen: drop dead ops and unpack tuples."""

from __future__ import annotations

from collections import Counter

from ...ir.builder import Builder, at, emit
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.substitute import substitute
from ...ir.types import Tuple
from ...ops.core.control import call, tape_len, tape_pop
from ...ops.program.effects import is_pure
from ...ops.program.list_ops import list_get, list_of, listed


def drop_dead(function: Function) -> None:
    """Remove dead pure ops and unused outputs of loops and branches, in place."""
    _drop_ops(function)
    while _drop_unused_outputs(function):
        _drop_ops(function)


def _drop_unused_outputs(function: Function) -> bool:
    """Remove unused outputs of loops and branches; return whether there were any."""
    reads: Counter[Value] = Counter(function.results)
    for op in walk(function.block):
        reads.update(op.inputs)
        for block in op.blocks:
            reads.update(block.yields)
    found = False
    for op in walk(function.block):
        if op.name == "if":
            dead = [k for k, y in enumerate(op.outputs) if not reads[y]]
        elif op.name in ("for", "while"):
            first, body = len(op.inputs) - len(op.outputs), op.blocks[-1]
            params = [block.params[len(block.params) - len(op.outputs) :] for block in op.blocks]
            yields = body.yields[len(body.yields) - len(op.outputs) :]
            dead = [
                k
                for k, y in enumerate(op.outputs)
                if not reads[y] and all(reads[p[k]] == (p[k] is yields[k]) for p in params)
            ]
            for k in reversed(dead):
                del op.inputs[first + k]
                for block in op.blocks:
                    del block.params[len(block.params) - len(op.outputs) + k]
                    if block is body:
                        del body.yields[len(body.yields) - len(op.outputs) + k]
                del op.outputs[k]
        else:
            continue
        if op.name == "if":
            for k in reversed(dead):
                del op.outputs[k]
                for block in op.blocks:
                    del block.yields[k]
        found = found or bool(dead)
    return found


def _drop_ops(function: Function) -> None:
    """Remove pure ops that nothing reads."""
    used: set[Value] = set()

    def visit(block: Block) -> None:
        used.update(block.yields)
        kept = []
        for op in reversed(block.ops):
            if any(y in used for y in op.outputs) or not is_pure(op):
                for inner in op.blocks:
                    visit(inner)
                used.update(op.inputs)
                kept.append(op)
        block.ops = kept[::-1]

    visit(function.block)


def drop_shaped_like(function: Function) -> None:
    """Replace `shaped_like(x, y)` by x, as it prints no code: `t = x` would be.

    Not in a call: the types of the arguments select the callee.
    """
    called = {x for op in walk(function.block) if op.name == "call" for x in op.inputs}
    said = [op for op in walk(function.block) if op.name == "shaped_like"
            and op.output not in called]
    for op in reversed(said):
        op.inputs[0].name = op.inputs[0].name or op.output.name
    substitute(function.block, {op.output: op.inputs[0] for op in said})


def name_results(function: Function) -> None:
    """Name the results of a call that has several as the callee names them."""
    for op in walk(function.block):
        if op.name == "call" and len(op.outputs) > 1:
            results = op.attrs["callee"].function_for(op.inputs).results
            for y, result in zip(op.outputs, results):
                y.name = y.name or result.name


def drop_in_place_results(function: Function) -> None:
    """Drop results that are tapes from the caller: they are filled and emptied in place."""
    if function.handed_on:
        function.block.yields = [y for k, y in enumerate(function.results)
                                 if k not in function.handed_on]
        function.tupled = len(function.results) != 1


def in_place_results(op: Op) -> dict[int, int]:
    """By output: the input that the callee of `op` returns after changing it in place."""
    return op.attrs["callee"].function_for(op.inputs).handed_on if op.name == "call" else {}


def read_tables(function: Function) -> None:
    """Read a list of all the members of a container from the container itself.

    xs = [p[0], p[1], p[2]]; x = xs[i]    prints as    x = p[i]
    """
    readers: dict[Value, list[Op]] = {}
    for op in walk(function.block):
        for x in op.inputs:
            readers.setdefault(x, []).append(op)
    kept = {y for op in walk(function.block) for block in op.blocks for y in block.yields}
    kept.update(function.results)
    wholes: dict[Value, Value] = {}
    for op in walk(function.block):
        if op.record is list_of and op.output not in kept and (
                whole := _whole(op.output)) is not None:
            allowed = (list_get, tape_len) + (
                (call,) if whole.type.form is not None else ())
            if all(reader.record in allowed for reader in readers.get(op.output, [])):
                wholes[op.output] = whole

    def visit(block: Block) -> None:
        ops = []
        for op in block.ops:
            for inner in op.blocks:
                visit(inner)
            for k, x in enumerate(op.inputs):
                if x in wholes:
                    with Builder(Block()) as made, at(op.line):
                        op.inputs[k] = emit(listed, wholes[x], type=x.type)
                    ops += made.block.ops
            ops.append(op)
        block.ops = ops

    if wholes:
        visit(function.block)
        _drop_ops(function)


def _whole(x: Value) -> Value | None:
    """The container, if any, all of whose members `x` has, in order."""
    if x.op is None or x.op.record is not list_of and x.op.name != "tuple" or not x.op.inputs:
        return None
    whole = None
    for k, member in enumerate(x.op.inputs):
        inner = _whole(member)
        member = member if inner is None else inner
        if member.op is None or member.op.name != "item" or member.op.attrs["index"] != k:
            return None
        if whole is not None and member.op.inputs[0] is not whole:
            return None
        whole = member.op.inputs[0]
    if not isinstance(whole.type, Tuple) or len(whole.type.items) != len(x.op.inputs):
        return None
    if x.op.name == "tuple":
        own, given = x.op.attrs.get("form"), whole.type.form
        return whole if own == given or own and given and (own.kind, own.keys) == (
            given.kind, given.keys) == ("attributes", given.keys) else None
    return whole if whole.type.form is None or whole.type.form.kind == "list" else None


def unpack_tuples(function: Function) -> None:
    """Give a pop or call whose tuple is only unpacked one output per member, and the read of an
    item of a list.

    t = pop(tape); x = item(t, 0); y = item(t, 1)    prints as    x, y = tape.pop()
    """
    uses: dict[Value, list] = {}
    for op in walk(function.block):
        for x in op.inputs:
            uses.setdefault(x, []).append(op)
        for block in op.blocks:
            for y in block.yields:
                uses.setdefault(y, []).append(block)
    for y in function.results:
        uses.setdefault(y, []).append(function.block)

    def visit(block: Block) -> None:
        for op in block.ops:
            if ((op.record in (tape_pop, list_get) or op.name == "call" and len(op.outputs) == 1)
                    and isinstance(op.outputs[-1].type, Tuple)
                    and (op.outputs[-1].type.form is None
                         or op.outputs[-1].type.form.kind in ("list", "namedtuple"))):
                whole = op.outputs[-1]
                readers = uses.get(whole, [])
                if readers and all(isinstance(r, Op) and r.name == "item" for r in readers) and (
                        op.record is not list_get or _reads_most(whole, readers)):
                    members = [Value(type, "", op) for type in whole.type.items]
                    replaced = {}
                    for reader in readers:
                        member = members[reader.attrs["index"]]
                        member.name = member.name or reader.output.name
                        replaced[reader.output] = member
                    op.outputs[-1:] = members
                    if op.record is not list_get:
                        op.attrs = {**op.attrs, "unpacked": len(members)}
                    _replace(function.block, replaced)
            for inner in op.blocks:
                visit(inner)

    def _reads_most(whole: Value, readers: list[Op]) -> bool:
        """Whether more than one member is read, and all but one."""
        return len({r.attrs["index"] for r in readers}) > max(1, len(whole.type.items) - 2)

    def _replace(block: Block, replaced: dict[Value, Value]) -> None:
        for op in walk(block):
            op.inputs[:] = [replaced.get(x, x) for x in op.inputs]
            for inner in op.blocks:
                inner.yields[:] = [replaced.get(y, y) for y in inner.yields]
        block.yields[:] = [replaced.get(y, y) for y in block.yields]

    visit(function.block)
    drop_dead(function)
