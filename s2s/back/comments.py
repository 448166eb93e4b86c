"""Comments that tie groups of generated statements to the user's lines, and say which way they run."""

from __future__ import annotations

import ast

from ..errors import Line
from ..ir.graph import Function, walk
from .unparse import Comment

SHORT = 6  # statements of a function that needs no comments


def with_comments(body: list[ast.stmt], function: Function) -> list[ast.stmt]:
    """`body` with a comment above each group of statements, if it is a derivative long enough to need them."""
    lines = [op.line for op in walk(function.block)]
    if not any(line is not None and line.backwards for line in lines) or _count(body) <= SHORT:
        return body
    return _commented(body, set())


def _count(body: list[ast.stmt]) -> int:
    return sum(isinstance(node, ast.stmt) for statement in body for node in ast.walk(statement))


def _commented(body: list[ast.stmt], seen: set[int]) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    current: Line | None = None
    for statement in body:
        line = getattr(statement, "line", None)
        if line is not None and not isinstance(statement, ast.Return) and _key(line) != _key(current):
            result.append(Comment(_text(line, seen)))
            current = line
        for field in ("body", "orelse"):
            inner = getattr(statement, field, None)
            if inner and not isinstance(statement, ast.FunctionDef):
                setattr(statement, field, _commented(inner, seen))
        result.append(statement)
    return result


def _key(line: Line | None) -> tuple | None:
    return None if line is None else (line.source, line.number, line.backwards)


def _text(line: Line, seen: set[int]) -> str:
    number = line.number - line.source.first_line + 1
    text = f"line {number}, backwards" if line.backwards else f"line {number}"
    if line.number not in seen:
        seen.add(line.number)
        text += f": {line.text}"
    return text
