"""Measure the tapes of a derivative: the bytes saved for its reverse sweep, by name and by the
user's line.

The generated Python is run once on the arguments, and its tapes are inspected before and after each
of its loops, where they are largest. So the report counts actual sizes, whatever determines them.
(Considered: computing them from shapes, which does not work for growing tapes, and would duplicate
the knowledge of each construct.) Of a growing tape only the items since the last inspection are
counted, because counting all of them each time would take quadratic time.
"""

from __future__ import annotations

import ast
import copy
import io
import sys
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass

import numpy as np

from ...errors import Line
from .load_source import line_of

SAVED = ("_tape", "_kept")  # in the names of tapes, and of snapshots


@dataclass(frozen=True)
class Saved:
    """One tape, or the snapshots of one value: its name, its content, and the user's line."""

    name: str
    bytes: int
    type: str  # "float64[3, 100]", or "list of 20 float64"
    line: Line | None

    def __str__(self) -> str:
        where = ""
        if self.line is not None:
            number = self.line.number - self.line.source.begins.number + 1
            where = f"  line {number}: {self.line.text}"
        return f"{self.bytes:>14,}  {self.name}: {self.type}{where}"


class Memory(int):
    """The peak number of bytes saved for the reverse sweep; `saved` lists the tapes.

    `str` of it is a table, the largest first.
    """

    saved: tuple[Saved, ...] = ()

    def __new__(cls, saved: tuple[Saved, ...] = ()):
        made = super().__new__(cls, sum(each.bytes for each in saved))
        made.saved = saved
        return made

    def __str__(self) -> str:
        rows = sorted(self.saved, key=lambda each: -each.bytes)
        return "\n".join([f"{int(self):>14,}  bytes saved for the reverse sweep", *map(str, rows)])

    __repr__ = int.__repr__
    __format__ = int.__format__

    def _repr_pretty_(self, printer, cycle) -> None:
        printer.text(str(self))


def measure(text: str, entry: str, args: tuple, lines: dict[int, Line],
            given: dict[str, object] | None = None) -> Memory:
    """Run the function `entry` of the module `text` on `args`, and report what it saves."""
    most, found, known = 0, [], {}

    def look() -> None:
        nonlocal most, found, known
        held = held_by(sys._getframe(1))
        known = {id(x): known.get(id(x)) or ListContents(x)
                 for x in held.values() if isinstance(x, list)}
        for each in known.values():
            each.look()
        sizes = [known[id(x)].bytes if isinstance(x, list) else x.nbytes for x in held.values()]
        if sum(sizes) > most:
            most = sum(sizes)
            found = [(*key, size, known[id(x)].described() if isinstance(x, list) else described(x))
                     for (key, x), size in zip(held.items(), sizes)]

    tree = ast.parse(text)
    wheres = saving_lines(tree)
    namespace: dict[str, object] = {**(given or {}), LOOK: look, "__name__": f"s2s_{entry}",
                                    "__file__": FILE}
    exec(compile(ast.fix_missing_locations(TapeInspector().visit(tree)), FILE, "exec"), namespace)
    with redirect_stdout(io.StringIO()):
        namespace[entry](*copy.deepcopy(args))
    return Memory(tuple(Saved(name, size, type, line_of(wheres[code, name], lines))
                        for code, name, size, type in found if size))


FILE, LOOK = "<s2s measured>", "s2s_look"


class TapeInspector(ast.NodeTransformer):
    """Insert a call before and after each loop that inspects the tapes."""

    def visit_For(self, node):
        self.generic_visit(node)
        return [looking(), node, looking()]

    visit_While = visit_For


def looking() -> ast.Expr:
    """The inspecting statement."""
    return ast.Expr(ast.Call(ast.Name(LOOK, ast.Load()), [], []))


def held_by(frame) -> dict[tuple[str, str], object]:
    """(function, name) -> the value saved under that name by the functions now running; each object
    once.
    """
    found, seen = {}, set()
    while frame is not None and frame.f_code.co_filename == FILE:
        for name, x in frame.f_locals.items():
            if (any(mark in name for mark in SAVED) and isinstance(x, (np.ndarray, list))
                and id(x) not in seen):
                seen.add(id(x))
                found[frame.f_code.co_name, name] = x
        frame = frame.f_back
    return found


def saving_lines(tree: ast.Module) -> dict[tuple[str, str], int]:
    """(function, name) -> the first line that appends to that name, or else creates it."""
    found: dict[tuple[str, str], int] = {}
    made: dict[tuple[str, str], int] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            made.update(((function.name, a.arg), function.lineno) for a in function.args.args)
            for node in ast.walk(function):
                match node:
                    case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()) | ast.Attribute(
                            value=ast.Name(id=name), attr="append"):
                        key = function.name, name
                        found[key] = min(found.get(key, node.lineno), node.lineno)
                    case ast.Name(id=name, ctx=ast.Store()):
                        made.setdefault((function.name, name), node.lineno)
    return {**made, **found}


class ListContents:
    """The inspected part of a list.

    Tapes change at their ends only: a known item that is still at its index, and is the last one
    checked, means that all items before it are unchanged.  For nested lists, this holds for all but
    the last inner list.
    """

    def __init__(self, x: list):
        self.list, self.bytes = x, 0
        self.items: list = []
        self.inner: list[ListContents] = []  # of the items that are lists
        self.kinds: Counter[tuple[bool, object]] = Counter()

    def look(self) -> None:
        """Update for items that were appended or popped."""
        items, now = self.items, self.list
        while items and (len(items) > len(now) or items[-1] is not now[len(items) - 1]):
            self.take()
        if items and isinstance(items[-1], list):
            self.bytes -= self.inner[-1].bytes
            self.inner[-1].look()
            self.bytes += self.inner[-1].bytes
        for item in now[len(items):]:
            self.put(item)

    def put(self, item) -> None:
        self.items.append(item)
        if isinstance(item, list):
            self.inner.append(ListContents(item))
            self.inner[-1].look()
        self.bytes += self.inner[-1].bytes if isinstance(item, list) else bytes_in(item)
        self.kinds[kind_of(item)] += 1

    def take(self) -> None:
        item = self.items.pop()
        self.bytes -= self.inner.pop().bytes if isinstance(item, list) else bytes_in(item)
        self.kinds[kind_of(item)] -= 1

    def described(self) -> str:
        """Describe the list by the types of its items."""
        kinds = [kind for kind, count in self.kinds.items() if count]
        shapes = "arrays of " if kinds and all(is_array for is_array, _ in kinds) else ""
        dtypes = " and ".join(sorted({str(dtype) for _, dtype in kinds}))
        return f"{len(self.items)} {shapes}{dtypes}"


def kind_of(item) -> tuple[bool, object]:
    """Whether an item of a list is an array, and its dtype."""
    if isinstance(item, (list, tuple)):
        return False, "lists"
    return ((True, item.dtype) if isinstance(item, np.ndarray) and item.ndim
            else (False, np.asarray(item).dtype))


def bytes_in(x) -> int:
    """The bytes of a tape's content: an array's size, eight for a number."""
    if isinstance(x, (list, tuple)):
        return sum(map(bytes_in, x))
    return getattr(x, "nbytes", 8)


def described(x: np.ndarray) -> str:
    """`x` by its type."""
    return f"{x.dtype}[{', '.join(map(str, x.shape))}]"
