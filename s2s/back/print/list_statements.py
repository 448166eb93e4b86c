"""Statements that change a list, a dict or a set in place: `xs[i] = v`, `xs.insert(i, v)`, `v =
xs.pop(i)`, `del d[key]`, `s.add(key)`.
"""

from __future__ import annotations

import ast

from ...ir.graph import Op
from ...ops.program.hash_tables import hash_put, hash_remove, set_add, set_discard
from ...ops.program.list_cotangents import plus_syntax
from ...ops.program.list_ops import list_insert


def list_statement(writer, op: Op) -> ast.stmt:
    """The statement for an op that writes to a list, once its next version has the same name."""
    name, (first, *rest) = writer.names[op.outputs[0]], [writer.expression(x)
                                                         for x in op.inputs[1:]]
    xs = ast.Name(name, ast.Load())
    if op.record is hash_remove:
        return ast.Delete([ast.Subscript(xs, first, ast.Del())])
    if op.record is hash_put:
        return ast.Assign([ast.Subscript(xs, first, ast.Store())], *rest)
    if op.record in (set_add, set_discard):
        return ast.Expr(_method(xs, "add" if op.record is set_add else "discard", first))
    if op.record is list_insert:
        return ast.Expr(_method(xs, "insert", rest[0], first))
    if op.record.growth < 0:
        popped = (_method(xs, "pop", first) if op.record.helper is None
                  else op.record.syntax(xs, first))
        return (writer.assign_all(op.outputs[1:], popped) if writer.reads.get(op.outputs[1])
                else ast.Expr(popped))
    inner = xs
    for i in rest[:-1]:
        inner = ast.Subscript(inner, i, ast.Load())
    place = ast.Subscript(inner, rest[-1], ast.Store())
    if not op.record.accumulates:
        return ast.Assign([place], first)
    if op.attrs["kind"] == "number" or op.attrs["kind"][0] == "number":
        match first:
            case ast.UnaryOp(ast.USub(), positive):
                return ast.AugAssign(place, ast.Sub(), positive)
        return ast.AugAssign(place, ast.Add(), first)
    return ast.Assign([place], plus_syntax(op.attrs["kind"],
                                           ast.Subscript(inner, rest[-1], ast.Load()), first))


def _method(base: ast.expr, name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(base, name, ast.Load()), list(args), [])
