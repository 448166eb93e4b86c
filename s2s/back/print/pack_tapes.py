"""Print tapes that are pushed and popped together as one list of tuples.

    x_tape, v_tape = [], []                         saved = []
    while ...:                                      while ...:
        x_tape.append(x)
        v = drag(x)               prints as             v = drag(x)
        v_tape.append(v)                                saved.append((x, v))
    ...                                             ...
        x = x_tape.pop()                                x, v = saved.pop()
        v = v_tape.pop()

and a loop over `reversed(x_tape)` that pops from `v_tape` is one over both.

It is a matter of the text alone: in the IR each tape is a value of its own, for the derivatives of
derivatives, for lanes, and for native code.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..syntax.ast_names import nodes_in
from .out_of_ssa import Own
from .pack_saved import NAMES


@dataclass(eq=False)
class Site:
    """A statement: the statements that it stands among, and its place; or the header of a loop,
    before all statements of its body.
    """

    body: list[ast.stmt]
    statement: ast.stmt

    @property
    def is_header(self) -> bool:
        return isinstance(self.statement, ast.For)

    @property
    def place(self) -> int:
        if self.is_header:
            return -1
        return next(k for k, each in enumerate(self.body) if each is self.statement)

    @property
    def target(self) -> ast.Name:
        """What is assigned to."""
        return self.statement.target if self.is_header else self.statement.targets[0]


@dataclass(eq=False)
class PrintedTape:
    """A list that one statement makes, one appends to and one pops from."""

    name: str
    made: Site | None = None
    pushed: Site | None = None
    popped: Site | None = None

    @property
    def sites(self) -> tuple[Site | None, ...]:
        return self.made, self.pushed, self.popped


def pack_tapes(body: list[ast.stmt], taken: Container[str]) -> None:
    """Pack tapes in these statements of a function, in place; names in `taken` are not free."""
    together: dict[tuple, list[PrintedTape]] = {}
    for tape in find_tapes(body):
        together.setdefault(tuple(id(site.body) for site in tape.sites), []).append(tape)
    used = {node.id for statement in body for node in nodes_in(statement)
            if isinstance(node, ast.Name)} if together else set()
    for tapes in together.values():
        for pack in packs_of(sorted(tapes, key=lambda tape: tape.pushed.place)):
            number, name = 0, "saved"
            while name in used or name in taken:
                number += 1
                name = f"saved_{number}"
            used.add(name)
            merge(pack, Own(name))


def find_tapes(body: list[ast.stmt]) -> list[PrintedTape]:
    """Find the lists of which nothing else is asked."""
    mentions: Counter[str] = Counter()
    found: dict[str, PrintedTape] = {}
    for statement in body:
        mentions.update(node.id for node in nodes_in(statement) if isinstance(node, ast.Name))
    for site in sites_in(body):
        match site.statement:
            case ast.Assign([ast.Name(name)], ast.List([])):
                found.setdefault(name, PrintedTape(name)).made = site
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [_], [])):
                found.setdefault(name, PrintedTape(name)).pushed = site
            case ast.Assign([ast.Name(target)],
                            ast.Call(ast.Attribute(ast.Name(name), "pop"), [], [])) if (
                                target != name):
                found.setdefault(name, PrintedTape(name)).popped = site
            case ast.For(ast.Name(target), ast.Call(ast.Name("reversed"), [ast.Name(name)], []),
                         inner) if target != name:
                found.setdefault(name, PrintedTape(name)).popped = Site(inner, site.statement)
    return [tape for name, tape in found.items() if None not in tape.sites and mentions[name] == 3]


def sites_in(body: list[ast.stmt]) -> Iterator[Site]:
    """Yield all statements in the order of the text."""
    for statement in body:
        yield Site(body, statement)
        for inner in inner_bodies(statement):
            yield from sites_in(inner)


def inner_bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that `statement` itself holds."""
    for name in ("body", "orelse", "finalbody"):
        if getattr(statement, name, None):
            yield getattr(statement, name)
    for handler in getattr(statement, "handlers", ()):
        yield handler.body


def packs_of(tapes: Sequence[PrintedTape]) -> Iterator[list[PrintedTape]]:
    """Yield those among these tapes that may be one."""
    left = list(tapes)
    while left:
        pack = left[:1]
        for tape in left[1:]:
            if len(pack) < NAMES and may_be_one([*pack, tape]):
                pack.append(tape)
        left = [tape for tape in left if tape not in pack]
        if len(pack) > 1:
            yield pack


def may_be_one(tapes: Sequence[PrintedTape]) -> bool:
    """Test whether all can be pushed where the last is, and popped where the first is."""
    names = {tape.name for tape in tapes}
    pushed, popped = ([sites[k] for sites in (tape.sites for tape in tapes)] for k in (1, 2))
    last, first = max(site.place for site in pushed), min(site.place for site in popped)
    for site in pushed:
        value = site.statement.value.args[0]
        between = others(pushed, site.place, last)
        if between and (not isinstance(value, (ast.Name, ast.Constant))
                        or leaves_early(between) or names & mentioned(between)
                        or isinstance(value, ast.Name) and value.id in bound(between)):
            return False
    for site in popped:
        between = others(popped, first, site.place)
        if between and (leaves_early(between)
                        or (names | {site.target.id}) & mentioned(between)):
            return False
    targets = [site.target.id for site in popped]
    same = pushed[0].body is popped[0].body
    return len({*targets}) == len(targets) and not (same and last > first)


def others(sites: Sequence[Site], start: int, stop: int) -> list[ast.stmt]:
    """Return the statements between two places that are none of these."""
    own = {id(site.statement) for site in sites}
    return [each for each in sites[0].body[start + 1:max(start, stop, 0)] if id(each) not in own]


def leaves_early(statements: Iterable[ast.stmt]) -> bool:
    """Test whether control may leave these statements other than at their end."""
    for each in statements:
        match each:
            case ast.Break() | ast.Continue() | ast.Return() | ast.Raise() | ast.Try():
                return True
            case ast.For() | ast.While():
                if any(isinstance(node, (ast.Return, ast.Raise, ast.Try))
                       for node in nodes_in(each)):
                    return True
            case _:
                if any(map(leaves_early, inner_bodies(each))):
                    return True
    return False


def mentioned(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names in these statements."""
    return {node.id for each in statements for node in nodes_in(each)
            if isinstance(node, ast.Name)}


def bound(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that these statements assign to."""
    return {node.id for each in statements for node in nodes_in(each)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def merge(tapes: Sequence[PrintedTape], name: str) -> None:
    """Let one list of this name stand for all of these, in place."""
    order = sorted(tapes, key=lambda tape: tape.pushed.place)
    values = [tape.pushed.statement.value.args[0] for tape in order]
    targets = [tape.popped.target for tape in order]
    made = min((tape.made for tape in tapes), key=lambda site: site.place)
    pushed = max((tape.pushed for tape in tapes), key=lambda site: site.place)
    popped = min((tape.popped for tape in tapes), key=lambda site: site.place)
    made.statement.targets = [ast.Name(name, ast.Store())]
    pushed.statement.value.func.value = ast.Name(name, ast.Load())
    pushed.statement.value.args = [ast.Tuple(values, ast.Load())]
    if popped.is_header:
        popped.statement.target = ast.Tuple(targets, ast.Store())
        popped.statement.iter.args = [ast.Name(name, ast.Load())]
    else:
        popped.statement.targets = [ast.Tuple(targets, ast.Store())]
        popped.statement.value.func.value = ast.Name(name, ast.Load())
    kept = {id(site.statement) for site in (made, pushed, popped)}
    for tape in tapes:
        for site in tape.sites:
            if id(site.statement) not in kept:
                del site.body[site.place]
