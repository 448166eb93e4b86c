"""Recursive callees, and fixed-point analyses over mutually recursive functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...ir.graph import Block, Function, Value, walk
from ...ir.reemit import clone
from ...ir.types import Array, List, Scalar, Static, Tape, Tuple, Type, Unknown


class Recursive:
    """A callee that may call itself: one function, and all calls of it, including its own, call
    this object.

    While the function is being built, `function` has its parameters and results, and no ops.
    """

    def __init__(self, name: str, function: Function | None = None):
        self.name, self.function = name, function
        self.cleaned = False  # whether the passes have been run on the function
        self._changes: tuple[list[Function], Changes] | None = None

    def __repr__(self) -> str:
        return f"<recursive {self.name}>"

    def function_for(self, values) -> Function:
        return self.function

    @property
    def given(self) -> frozenset[int]:
        """The parameters whose memory a caller gives away, because the function, or one that it
        calls, changes them.
        """
        return frozenset(self.changes.written)

    @property
    def handed_on(self) -> dict[int, int]:
        """By result: the parameter tape that it is, filled or emptied; the caller has it already.
        """
        found = {}
        for k, (y, sources) in enumerate(zip(self.function.results, self.changes.results)):
            if isinstance(y.type, Tape) and len(sources) == 1 and NEW not in sources:
                (found[k],) = sources
        return found

    @property
    def changes(self) -> Changes:
        """The parameters changed by the function and all functions that it calls."""
        linked = list(dict.fromkeys([self, *recursive_callees(self.function)]))
        functions = [each.function for each in linked]
        if self._changes is None or self._changes[0] != functions:
            self._changes = functions, changes_of(linked)[self]
        return self._changes[1]


def recursive_callees(function: Function) -> list[Recursive]:
    """The recursive callees that `function` calls, directly or indirectly."""
    found: dict[Recursive, None] = {}
    seen: set[Function] = set()

    def visit(caller: Function) -> None:
        for op in walk(caller.block):
            if op.name == "call":
                callee = op.attrs["callee"]
                body = callee.function_for(op.inputs)
                if isinstance(callee, Recursive):
                    found[callee] = None
                if body not in seen:
                    seen.add(body)
                    visit(body)

    visit(function)
    return list(found)


def whole_program(function: Function) -> list[Function]:
    """`function`, and the recursive functions that it calls, directly or indirectly."""
    return [function, *(callee.function for callee in recursive_callees(function))]


def with_callees(function: Function, run: Callable[[Function], Function]) -> Function:
    """`function`, with each recursive callee replaced by `run` of it."""
    new = {callee: Recursive(callee.name, callee.function)
           for callee in recursive_callees(function)}
    if not new:
        return function

    def redirected(function: Function) -> Function:
        function = clone(function)
        for op in walk(function.block):
            if op.name == "call" and op.attrs["callee"] in new:
                op.attrs = {**op.attrs, "callee": new[op.attrs["callee"]]}
        return function

    for made in new.values():
        made.function = redirected(made.function)
    done = {made: run(made.function) for made in new.values()}
    for made, body in done.items():
        made.function = body
    return redirected(function)


def calls_itself(callee) -> bool:
    """Whether `callee` is (mutually) recursive."""
    return isinstance(callee, Recursive) and callee in recursive_callees(callee.function)


def written_params(members: Iterable[Recursive]) -> dict[Recursive, set[int]]:
    """For each function, the array parameters that it, or a callee, changes."""
    return {member: each.written
            for member, each in changes_of(list(dict.fromkeys(members))).items()}


def changes_of(members: list[Recursive]) -> dict[Recursive, Changes]:
    """For each function, its Changes."""
    known = {member: Changes(set(), [set() for _ in member.function.results]) for member in members}
    while True:
        before = sum(each.size() for each in known.values())
        for member in members:
            known[member] = _changes(member.function, known)
        if sum(each.size() for each in known.values()) == before:
            return known


NEW = -1  # a source of a result: a tape that is no parameter


@dataclass
class Changes:
    """The parameters that a function writes into, and for each result the parameters of which it
    may be a later version.
    """

    written: set[int]
    results: list[set[int]]

    def size(self) -> int:
        return len(self.written) + sum(map(len, self.results))


def is_flat(type: Type) -> bool:
    """Whether values of this type are lists, dicts or sets that hold no memory of others."""
    return isinstance(type, List) and not isinstance(type, Tape) and _is_number(type.item)


def _is_number(type: Type) -> bool:
    return (all(map(_is_number, type.items)) if isinstance(type, Tuple)
            else isinstance(type, (Scalar, Static)))


def _changes(function: Function, known: dict[Recursive, Changes]) -> Changes:
    versions: dict[Value, set[int]] = {
        p: {k} for k, p in enumerate(function.params)
        if isinstance(p.type, (Array, Unknown, Tape)) or is_flat(p.type)}
    found: set[int] = set()

    def flow(x: Value, y: Value) -> None:
        versions.setdefault(y, set()).update(versions.get(x, ()))

    def visit(block: Block) -> None:
        for op in block.ops:
            if op.name in ("for", "while"):
                body, count = op.blocks[-1], len(op.outputs)
                carried = zip(op.inputs[len(op.inputs) - count:],
                              body.params[len(body.params) - count:],
                              body.yields[len(body.yields) - count:], op.outputs)
                for init, param, end, out in [*carried] * 2:
                    for x, y in ((init, param), (end, param), (param, out), (end, out)):
                        flow(x, y)
                    for inner in op.blocks:
                        visit(inner)
            elif op.name == "if":
                for branch in op.blocks:
                    visit(branch)
                    for y, out in zip(branch.yields, op.outputs):
                        flow(y, out)
            elif op.name == "call" and op.attrs["callee"] in known:
                changes = known[op.attrs["callee"]]
                for k in changes.written:
                    found.update(versions.get(op.inputs[k], ()))
                for out, sources in zip(op.outputs, changes.results):
                    for k in sources:
                        if k == NEW:
                            versions.setdefault(out, set()).add(NEW)
                        else:
                            flow(op.inputs[k], out)
            elif op.record.writes is not None:
                found.update(versions.get(op.inputs[op.record.writes], ()))
                flow(op.inputs[op.record.writes], op.outputs[0])
            if not op.blocks and not (op.name == "call" and op.attrs["callee"] in known):
                for out in op.outputs:
                    if isinstance(out.type, Tape) and out not in versions:
                        versions[out] = {NEW}

    visit(function.block)
    written = {k for k in found - {NEW} if not isinstance(function.params[k].type, Tape)}
    return Changes(written, [set(versions.get(y, ())) for y in function.results])
