"""Build small statements: assignments, `if` without empty branches, idiomatic `not`."""

from __future__ import annotations

import ast

from ...errors import Line
from ...ir.graph import Block, Op, Value

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_INVERSE = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
LONG_REST = 3  # statements after which `if c: continue` reads better than one more level

Body = list[ast.stmt]


def placed(statement: ast.stmt, line: Line | None) -> ast.stmt:
    if line is not None and getattr(statement, "line", None) is None:
        statement.line = line
    return statement


def do(value: ast.expr) -> ast.stmt:
    return ast.Expr(value)


def call(name: str, *args: ast.expr) -> ast.Call:
    """`name(*args)`, of a function with a plain name."""
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def dotted_call(name: str, *args: ast.expr) -> ast.Call:
    """`name(*args)`, of a function of a module: `np.zeros`."""
    return ast.Call(ast.parse(name, mode="eval").body, list(args), [])


def method_call(name: str, method: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name(name, ast.Load()), method, ast.Load()), list(args), [])


def end_of(x: Value, op: Op, block: Block) -> Value:
    """The value of `x` at the end of `block`, a branch of `op`."""
    return block.yields[op.outputs.index(x)] if x in op.outputs else x


def assignment(name: str, value: ast.expr, operators: str) -> ast.stmt:
    """`name = value`, or `name += rest` for `name + rest`, if `operators` contains the sign."""
    match value:
        case ast.BinOp(ast.Name(left), ast.Add(), ast.UnaryOp(ast.USub(), right)) if (
            left == name and "-" in operators
        ):
            return ast.AugAssign(ast.Name(name, ast.Store()), ast.Sub(), right)
        case ast.BinOp(ast.Name(left), op, right) if (
            left == name and _SIGNS.get(type(op), "none") in operators
        ):
            return ast.AugAssign(ast.Name(name, ast.Store()), op, right)
    return ast.Assign([ast.Name(name, ast.Store())], value)


def range_call(lo: ast.expr, hi: ast.expr, step: ast.expr) -> ast.expr:
    args = [lo, hi, step]
    if isinstance(step, ast.Constant) and step.value == 1:
        args = [hi] if isinstance(lo, ast.Constant) and lo.value == 0 else [lo, hi]
    return ast.Call(ast.Name("range", ast.Load()), args, [])


def negated(test: ast.expr) -> ast.expr:
    """`not test`, as a person would write it."""
    match test:
        case ast.UnaryOp(ast.Not(), inner):
            return inner
        case ast.Compare(left, [(ast.Eq() | ast.NotEq()) as op], [right]):
            return ast.Compare(left, [_INVERSE[type(op)]()], [right])
    return ast.UnaryOp(ast.Not(), test)


def choose(test: ast.expr, first: Body, second: Body) -> Body:
    """An `if` statement, without empty branches."""
    if not first and not second:
        return []
    if not first:
        return [ast.If(negated(test), second, [])]
    return [ast.If(test, first, second)]


def leaves(body: Body) -> bool:
    """Whether control never reaches the end of `body`."""
    match body[-1] if body else None:
        case ast.Break() | ast.Continue() | ast.Return() | ast.Raise():
            return True
        case ast.If(_, first, second):
            return leaves(first) and leaves(second)
    return False


def unnested(body: Body) -> Body:
    """A loop's body; `if c: long rest` at its end becomes `if not c: continue` and the rest."""
    match body[-1] if body else None:
        case ast.If(ast.UnaryOp(ast.Not(), test), rest, []) if len(rest) > LONG_REST or isinstance(
            test, ast.Compare
        ):
            statement = ast.If(test, [ast.Continue()], [])
            statement.line = getattr(body[-1], "line", None)
            return [*body[:-1], statement, *rest]
    return body


def dtype_argument(dtype: str) -> str:
    """The dtype argument of np.empty, after a shape."""
    return "" if dtype == "float64" else f", np.{dtype if dtype != 'bool' else 'bool_'}"
