"""Print what the user has unpacked as one assignment again.

    n = len(p)
    if n != 3:
        raise ValueError("too many values ...")
    beta = p[0]                                    prints as    beta, gamma, leak = p
    gamma = p[1]
    leak = p[2]

Python checks the length, and says the same.  What has as many elements as `p`, a vector, is then
made of them in one line:

    p_bar = np.zeros_like(p)
    p_bar[2] = leak_bar                            prints as    p_bar = np.array([beta_bar, 0.0,
    p_bar[0] = beta_bar                                                           leak_bar])
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping

from ...ir.types import Array
from ..syntax.ast_names import nodes_in
from .pack_saved import NAMES
from .pack_tapes import inner_bodies

TOO_MANY = re.compile(r"too many values to unpack \(expected (\d+)\)")


def restore_unpacking(body: list[ast.stmt], arrays: Mapping[str, Array]) -> None:
    """Restore, in place, unpacking in these statements of a function, and vectors made of as many
    elements; `arrays` are the types of its variables.
    """
    Unpacking(body, {name: type.dims for name, type in arrays.items()}).restore()
    _make(body, {name for name, type in arrays.items()
                 if type.rank == 1 and type.dtype == "float64"})


class Unpacking:
    """What is unpacked in the statements of one function."""

    def __init__(self, body: list[ast.stmt], shapes: Mapping[str, tuple]):
        self.bodies = [body, *_bodies_inside(body)]
        self.shapes = shapes
        self.mentions: Counter[str] = Counter()
        # what is assigned to a variable, for those to which one statement does
        self.values: dict[str, ast.expr] = {}
        stored: Counter[str] = Counter()
        for statement in body:
            for node in nodes_in(statement):
                match node:
                    case ast.Name(name, context):
                        self.mentions[name] += 1
                        stored[name] += isinstance(context, ast.Store)
                    case ast.Assign([ast.Name(name)], value):
                        self.values[name] = value
        self.values = {name: value for name, value in self.values.items() if stored[name] == 1}
        self.fixed = {name for name, count in stored.items() if not count}
        self.asked: set[str] = set()  # by checks of lengths that are gone
        # of arguments, after so many subscripts, where a check has told
        self.lengths: dict[tuple[str, int], int] = {}

    def restore(self) -> None:
        """Unpack in one assignment what consecutive ones read, in place."""
        for body in self.bodies:
            self.unpack(body)
        if self.asked:
            for body in self.bodies:
                self.unpack(body)
            for body in self.bodies[::-1]:
                self.drop(body)

    def unpack(self, body: list[ast.stmt]) -> None:
        k = 0
        while k < len(body):
            count = _checked(body[k])
            start = k + (count is not None)
            read = _read(body[start]) if start < len(body) else None
            if read is None:
                k += 1
                continue
            whole = read[0]
            if count is None:
                count = self.length(whole)
            elif not self.is_length(body[k].test, whole, count):
                count = None
            found = {} if count is None or count > NAMES else _elements(body, start, count)
            if len(found) >= (2 if start == k else 1):
                if start > k:
                    asked = [x.id for x in nodes_in(body[k]) if isinstance(x, ast.Name)]
                    self.mentions.subtract(asked)
                    self.asked.update(asked)
                    if _place(whole)[0] in self.fixed:
                        self.lengths[_place(whole)] = count
                names = [found.get(place, ast.Name("_", ast.Store())) for place in range(count)]
                made = ast.Assign([ast.Tuple(names, ast.Store())], whole)
                made.line = getattr(body[start], "line", None)
                body[k:start + len(found)] = [made]
            k += 1

    def length(self, whole: ast.expr) -> int | None:
        """Return the number of elements of `whole`, if it is known."""
        name, axis = place = _place(whole)
        dims = self.shapes.get(name, ())[axis:axis + 1]
        return dims[0] if dims and type(dims[0]) is int else self.lengths.get(place)

    def is_length(self, test: ast.expr, whole: ast.expr, count: int) -> bool:
        """Test whether `test` is whether the length of `whole` is another than `count`."""
        match test:
            case ast.Name(name) if name in self.values:
                return self.is_length(self.values[name], whole, count)
            case ast.Compare(n, [ast.NotEq()], [ast.Constant(number)]) if number == count:
                if isinstance(n, ast.Name):
                    n = self.values.get(n.id)
                match n:
                    case ast.Call(ast.Name("len"), [ast.Name(name)], []):
                        asked = name, 0
                    case ast.Subscript(ast.Attribute(ast.Name(name), "shape"),
                                       ast.Constant(axis)):
                        asked = name, axis
                    case _:
                        return False
                (first, m), (second, n) = asked, _place(whole)
                dims = [self.shapes.get(name, ())[axis:axis + 1]
                        for name, axis in ((first, m), (second, n))]
                return asked == _place(whole) or bool(dims[0]) and dims[0] == dims[1]
        return False

    def drop(self, body: list[ast.stmt]) -> None:
        """Drop lengths and comparisons that only checks have asked, in place."""
        for statement in body[::-1]:
            match statement:
                case ast.Assign([ast.Name(name)], (
                        ast.Compare() | ast.Call(ast.Name("len"))
                        | ast.Subscript(ast.Attribute(_, "shape"), ast.Constant())) as value):
                    if name in self.asked and self.mentions[name] == 1:
                        body.remove(statement)
                        asked = [x.id for x in nodes_in(value) if isinstance(x, ast.Name)]
                        self.mentions.subtract(asked)
                        self.asked.update(asked)


def _bodies_inside(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    for statement in body:
        for inner in inner_bodies(statement):
            yield inner
            yield from _bodies_inside(inner)


def _checked(statement: ast.stmt) -> int | None:
    """Return how many values a statement wants, if it raises where there are not so many."""
    match statement:
        case ast.If(_, [ast.Raise(ast.Call(ast.Name("ValueError"), [message]))], []):
            found = TOO_MANY.search(ast.unparse(message))
            return int(found[1]) if found else None
    return None


def _read(statement: ast.stmt) -> tuple[ast.expr, int, ast.Name] | None:
    """Return (p, 2, x) for `x = p[2]`, and (p[i], 2, x) for `x = p[i, 2]`."""
    match statement:
        case ast.Assign([ast.Name() as target], ast.Subscript(ast.Name() as whole, index)):
            *first, last = index.elts if isinstance(index, ast.Tuple) else [index]
            if isinstance(last, ast.Constant) and type(last.value) is int and (
                    all(isinstance(x, ast.Name) for x in first)):
                for x in first:
                    whole = ast.Subscript(whole, x, ast.Load())
                return whole, last.value, target
    return None


def _place(whole: ast.expr) -> tuple[str, int]:
    """Return the name of a container and the number of its subscripts."""
    subscripts = 0
    while isinstance(whole, ast.Subscript):
        whole, subscripts = whole.value, subscripts + 1
    return whole.id, subscripts


def _elements(body: list[ast.stmt], k: int, count: int) -> dict[int, ast.Name]:
    """Return the variables that consecutive statements from `k` on read one container's elements
    into, by index.
    """
    found: dict[int, ast.Name] = {}
    first, line = None, getattr(body[k], "line", None) if k < len(body) else None
    for statement in body[k:]:
        read = _read(statement)
        if read is None or getattr(statement, "line", None) != line:
            break
        whole, place, target = read
        first = first or ast.dump(whole)
        names = {node.id for node in nodes_in(whole) if isinstance(node, ast.Name)}
        if (ast.dump(whole) != first or place in found or not 0 <= place < count
                or target.id in names | {x.id for x in found.values()}):
            break
        found[place] = target
    return found


def _drop(body: list[ast.stmt], names: set[str], mentions: Counter[str]) -> None:
    """Drop the assignments of lengths and comparisons to these names that nothing mentions."""
    for statement in body[::-1]:
        match statement:
            case ast.Assign([ast.Name(name)], (
                    ast.Compare() | ast.Call(ast.Name("len"))
                    | ast.Subscript(ast.Attribute(_, "shape"), ast.Constant())) as value):
                if name in names and mentions[name] == 1:
                    body.remove(statement)
                    asked = [node.id for node in nodes_in(value) if isinstance(node, ast.Name)]
                    mentions.subtract(asked)
                    names.update(asked)


def _make(body: list[ast.stmt], vectors: Container[str]) -> None:
    """Make in one assignment vectors whose elements are set one by one, in place."""
    counts: dict[str, int] = {}
    for statement in [*body]:
        match statement:
            case ast.Assign([ast.Tuple(names)], ast.Name(whole)) if whole in vectors:
                counts[whole] = len(names)
            case ast.Assign([ast.Name(name)], ast.Call(
                    ast.Attribute(ast.Name("np"), "zeros_like"), [ast.Name(whole)], [])) if (
                        whole in counts):
                k = next(k for k, each in enumerate(body) if each is statement)
                found = _stores(body[k + 1:], name)
                if len(found) > 1 and all(0 <= place < counts[whole] for place in found):
                    elements = [found.get(place, ast.Constant(0.0))
                                for place in range(counts[whole])]
                    statement.value.func.attr = "array"
                    statement.value.args = [ast.List(elements, ast.Load())]
                    body[k:k + len(found) + 1] = [statement]


def _stores(body: list[ast.stmt], name: str) -> dict[int, ast.expr]:
    """Return the elements of this variable that the first statements set, by index."""
    found: dict[int, ast.expr] = {}
    for statement in body:
        match statement:
            case ast.Assign([ast.Subscript(ast.Name(whole), ast.Constant(int(place)))],
                            value) if whole == name and place not in found and all(
                                node.id != name for node in nodes_in(value)
                                if isinstance(node, ast.Name)):
                found[place] = value
            case _:
                break
    return found
