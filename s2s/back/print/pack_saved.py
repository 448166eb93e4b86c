"""Print what the forward half of a call hands to the backward half as one thing, `saved`.

    y, q, r, s, t = f_fwd(x)                        y, saved = f_fwd(x)
    ...                               prints as     ...
    x_bar = f_bwd(x, q, r, s, t, y_bar)             x_bar = f_bwd(x, saved, y_bar)

and f_bwd begins with `q, r, s, t = saved`.  Only so where every call hands all of it on to the
calls of other functions that take it, at once or through branches that leave it unbound otherwise.

Considered: tuples in the IR.  A transformation of such functions, and native code, would take them
apart again, so that each member has a tape and a cotangent of its own.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ...ir.graph import Function, Op, Value, walk
from ...ir.types import Tuple
from ...ops.core.control import Known

FEW = 3  # so many values are handed over one by one
NAMES, WIDTH = 12, 80  # bound by one line


@dataclass
class Packs:
    """The functions that return `saved`, and those that are given it."""

    # the number of the first result that is packed
    returned: dict[Function, int] = field(default_factory=dict)
    # the first parameter that is unpacked, and how many are
    given: dict[Function, tuple[int, int]] = field(default_factory=dict)


def callee_of(op: Op) -> Function | None:
    """Return the function that `op` calls, where that does not depend on its arguments."""
    is_known = op.name == "call" and isinstance(op.attrs["callee"], Known)
    return op.attrs["callee"].function if is_known else None


def find_packs(functions: Iterable[Function]) -> Packs:
    """Find what calls in these functions, which are a module's, may hand over as one value."""
    calls = [op for function in functions for op in walk(function.block)
             if callee_of(op) is not None]
    ways: dict[Function, set] = {}  # of a function that is given something, from which
    for op in calls:
        ways.setdefault(callee_of(op), set()).add(_handed(op))
    ways = {function: way for function, (way, *others) in ways.items() if way and not others}
    while True:
        starts: dict[Function, set[int]] = {}
        for _, _, source, start in ways.values():
            starts.setdefault(source, set()).add(start)
        uses = Counter(x for function in functions for x in _uses(function))
        passed: set[Link] = set()
        for op in calls:
            if callee_of(op) in ways:
                first, count, _, _ = ways[callee_of(op)]
                for x in op.inputs[first:first + count]:
                    uses[x] -= 1
                    for link in _links(x):
                        if uses[link.given]:
                            break
                        if link not in passed:
                            passed.add(link)
                            uses[link.taken] -= 1
        whole = {source for source, found in starts.items() if len(found) == 1}
        whole -= {callee_of(op) for op in calls if callee_of(op) in whole
                  and any(uses[y] for y in op.outputs[min(starts[callee_of(op)]):])}
        kept = {function: way for function, way in ways.items() if way[2] in whole}
        if len(kept) == len(ways):
            return Packs({source: min(starts[source]) for source in whole},
                         {function: way[:2] for function, way in ways.items()})
        ways = kept


def _handed(op: Op) -> tuple[int, int, Function, int] | None:
    """Return where a call takes all that another function returns from some result on: the
    argument, how many, the function, and the result.
    """
    for first, x in enumerate(op.inputs):
        x, *through = _origin(x)
        source = None if x.op is None else callee_of(x.op)
        if source is None or x not in x.op.outputs:
            continue
        start = x.op.outputs.index(x)
        count = len(x.op.outputs) - start
        if (start and count > FEW and count == len(source.results) - start
                and [_origin(y) for y in op.inputs[first:first + count]]
                == [(y, *through) for y in x.op.outputs[start:]]):
            return first, count, source, start
    return None


class Link(NamedTuple):
    """A branch that hands a value on from one arm, where the other has none."""

    op: Op
    arm: int
    taken: Value
    given: Value


def _links(x: Value) -> Iterator[Link]:
    """Yield the branches that hand `x` on, the last first."""
    while x.op is not None and x.op.name == "if":
        sides = [block.yields[x.op.outputs.index(x)] for block in x.op.blocks]
        defined = [k for k, y in enumerate(sides) if y.op is None or y.op.name != "undefined"]
        if len(defined) != 1:
            return
        yield Link(x.op, defined[0], sides[defined[0]], x)
        x = sides[defined[0]]


def _origin(x: Value) -> tuple:
    """Return the value that branches hand on as `x`, and these branches."""
    links = [*_links(x)]
    return (links[-1].taken if links else x, *(link.op for link in links))


def _uses(function: Function) -> Iterable[Value]:
    """Yield what is read in `function`, as often as it is."""
    yield from function.results
    for op in walk(function.block):
        yield from op.inputs
        for block in op.blocks:
            yield from block.yields


def pack(function: Function, packs: Packs) -> None:
    """Pack, in place, what `function` is returned by calls, and hands on to others."""
    saved: dict[Value, Value] = {}  # by the first member
    for op in walk(function.block):
        callee = callee_of(op)
        if callee in packs.returned:
            members = op.outputs[packs.returned[callee]:]
            whole = saved[members[0]] = Value(Tuple(tuple(y.type for y in members)), "saved", op)
            op.outputs[packs.returned[callee]:] = [whole]
        if callee in packs.given:
            first, count = packs.given[callee]
            members = op.inputs[first:first + count]
            for link, *others in [*zip(*map(_links, members))][::-1]:
                _hand_on(link, others, saved)
            op.inputs[first:first + count] = [saved[members[0]]]
            op.attrs = {**op.attrs, "packed": (first, count)}


def _hand_on(link: Link, others: Iterable[Link], saved: dict[Value, Value]) -> None:
    """Let a branch hand on, in place, one value for those of these links."""
    if link.given in saved:
        return
    whole = saved[link.taken]
    saved[link.given] = Value(whole.type, "saved", link.op)
    places = [link.op.outputs.index(each.given) for each in (link, *others)]
    link.op.outputs[places[0]] = saved[link.given]
    link.op.blocks[link.arm].yields[places[0]] = whole
    for values in (link.op.outputs, *(block.yields for block in link.op.blocks)):
        values[:] = [y for k, y in enumerate(values) if k not in places[1:]]


def pack_returned(nodes: Iterable[ast.AST], start: int) -> None:
    """Return the members of results from `start` on as one, in these nodes of a function."""
    for node in nodes:
        if isinstance(node, ast.Return):
            node.value.elts[start:] = [ast.Tuple(node.value.elts[start:], ast.Load())]


def unpack(args: list[ast.arg], first: int, count: int, read: Container[str],
           name: str) -> list[ast.stmt]:
    """Replace arguments by one of this `name`, and return the statements that take it apart."""
    lines: list[list[str]] = [[]]
    for arg in args[first:first + count]:
        target = arg.arg if arg.arg in read else "_"
        if len(lines[-1]) == NAMES or sum(len(x) + 2 for x in (*lines[-1], target)) > WIDTH:
            lines.append([])
        lines[-1].append(target)
    args[first:first + count] = [ast.arg(name, None)]
    found, start = [], 0
    for names in lines:
        stop = start + len(names)
        bounds = [ast.Constant(k) if 0 < k < count else None for k in (start, stop)]
        part = ast.Name(name, ast.Load())
        if len(lines) > 1:
            part = ast.Subscript(part, ast.Slice(*bounds), ast.Load())
        found.append(ast.Assign([ast.Tuple([ast.Name(x, ast.Store()) for x in names],
                                           ast.Store())], part))
        start = stop
    return found
