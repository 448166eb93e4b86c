"""Comment groups of generated statements with the user's line and the direction of the sweep."""

from __future__ import annotations

import ast

from ...errors import Line
from ...ir.graph import Function, Op, Value, walk
from ..syntax.unparse import Comment, Unparser

SHORT = 6  # statements at the top of a straight-line function that needs no comments
SHORT_WITH_LOOPS = 12  # the same with loops, which show the structure already
DEEP = 8  # statements in a nested block that is worth comments of its own


def with_comments(body: list[ast.stmt], function: Function) -> list[ast.stmt]:
    """`body` with a comment above each group of statements, if the derivative needs them."""
    lines = [op.line for op in walk(function.block)]
    if not any(line is not None and line.backwards for line in lines):
        return body
    loops = any(isinstance(statement, (ast.For, ast.While, ast.If)) for statement in body)
    if len(body) > (SHORT_WITH_LOOPS if loops else SHORT):
        return _commented(body, function, set())
    first = next((k for k, statement in enumerate(body) if _is_backwards(statement)), 0)
    if (
        loops
        and first
        and any(not _is_backwards(y.op) for y in _results(function) if y.op is not None)
    ):
        return [*body[:first], Comment("backwards"), *body[first:]]
    return body


def _is_backwards(place: ast.stmt | Op) -> bool:
    line = getattr(place, "line", None)
    return line is not None and line.backwards


def _results(function: Function) -> list[Value]:
    """The results of `function`, with tuples flattened."""
    results = list(function.results)
    for y in function.results:
        if y.op is not None and y.op.name == "tuple":
            results += y.op.inputs
    return [y for y in results if y.op is None or y.op.name not in ("tuple", "constant")]


def _commented(body: list[ast.stmt], function: Function, seen: set[tuple]) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for line, statements in _groups(body):
        if (
            line is not None
            and not line.text.startswith(("def ", "@"))
            and not _says_the_same(line, statements)
        ):
            result.append(Comment(_text(line, function, seen)))
        for statement in statements:
            _comment_inside(statement, function, seen)
        result += statements
    return result


def _comment_inside(statement: ast.stmt, function: Function, seen: set[tuple]) -> None:
    """Comment the large blocks inside `statement`, whatever surrounds them."""
    for field in ("body", "orelse"):
        inner = getattr(statement, field, None) or []
        if len(inner) > DEEP:
            setattr(statement, field, _commented(inner, function, seen))
        else:
            for each in inner:
                _comment_inside(each, function, seen)


def _groups(body: list[ast.stmt]) -> list[tuple[Line | None, list[ast.stmt]]]:
    """Runs of statements that come from one user line and belong to one sweep."""
    groups: list[tuple[Line | None, list[ast.stmt]]] = []
    for statement in body:
        line = (
            None
            if isinstance(statement, (ast.Return, ast.Break))
            else getattr(statement, "line", None)
        )
        if groups and (line is None or _key(line) == _key(groups[-1][0])):
            groups[-1][1].append(statement)
        else:
            groups.append((line, [statement]))
    return groups


def _says_the_same(line: Line, statements: list[ast.stmt]) -> bool:
    """Whether a comment would only repeat the statement under it."""
    unparser = Unparser()
    unparser.dispatch(statements)
    return not line.backwards and line.text in (text.strip() for text in unparser.out)


def _key(line: Line | None) -> tuple | None:
    return None if line is None else (line.source, line.number, line.backwards)


def _text(line: Line, function: Function, seen: set[tuple]) -> str:
    """`line 3: total += x`, or only `line 3` if repeated; with the name of an inlined function."""
    number = line.number - line.source.begins.number + 1
    text = f"line {number}, backwards" if line.backwards else f"line {number}"
    if function.source is not None and line.source.name != function.source.name:
        text = f"{line.source.name}, {text}"
    if (line.source, number) not in seen:
        seen.add((line.source, number))
        text += f": {line.text}"
    return text
