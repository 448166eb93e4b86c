"""Restore `return` inside loops, where the IR carries a flag and a result out of them.

    for i in range(n):                      for i in range(n):
        if x[i] > limit:                        if x[i] > limit:
            done = True               becomes       return x[i] * i
            t = x[i] * i
            break
    if done:
        return t

The IR has no jumps; this pass undoes the desugaring, on statements just before they are printed.
"""

from __future__ import annotations

import ast
import copy

from ..syntax.ast_names import nodes_in

Body = list[ast.stmt]


def restore_returns(body: Body) -> Body:
    """`body` with the flags of early returns replaced by `return`, outer loops first."""
    for k, statement in enumerate(body):
        match statement, body[k + 1] if k + 1 < len(body) else None:
            case (ast.For() | ast.While()) as loop, ast.If(
                ast.Name(flag), [ast.Return() as leaving], rest
            ) if any(_assigned_constant(s, flag) is False for s in body[:k]):
                inside = _returning(loop.body, flag, leaving)
                around = [s for s in [*body[:k], *rest, *body[k + 2 :]]
                          if _assigned_constant(s, flag) is not False]
                head = loop.iter if isinstance(loop, ast.For) else loop.test
                if inside is not None and not any(
                    _mentions(tree, flag) for tree in (head, *inside, *around)
                ):
                    loop.body = restore_returns(inside)
                    before = [s for s in body[:k] if _assigned_constant(s, flag) is None]
                    return [*before, loop, *restore_returns([*rest, *body[k + 2 :]])]
            case ast.If(), _:
                statement.body, statement.orelse = (
                    restore_returns(statement.body),
                    restore_returns(statement.orelse),
                )
    return body


def _returning(body: Body, flag: str, leaving: ast.Return) -> Body | None:
    """The body of a loop, with `return` for the flag and `break`; None if it does anything else."""
    result: Body = []
    raised = any(_assigned_constant(s, flag) for s in body)
    if raised and not isinstance(body[-1], ast.Break):
        return None
    for k, statement in enumerate(body):
        match statement:
            case ast.If(ast.Name(name), [ast.Break()], []) if (
                name == flag and k and isinstance(body[k - 1], (ast.For, ast.While))
            ):
                continue  # left already, from inside the inner loop
            case _ if _assigned_constant(statement, flag) is not None:
                continue
            case ast.If(test, first, second):
                branches = _returning(first, flag, leaving), _returning(second, flag, leaving)
                if None in branches:
                    return None
                statement = _like(statement, ast.If(test, *branches))
            case ast.For() | ast.While() if _mentions(statement, flag):
                following = body[k + 1] if k + 1 < len(body) else None
                inner = _returning(statement.body, flag, leaving)
                match following:
                    case ast.If(ast.Name(name), [ast.Break()], []) if (
                        name == flag and inner is not None
                    ):
                        again = copy.copy(statement)
                        again.body = inner
                        statement = again
                    case _:
                        return None
        result.append(statement)
    return _ending_with_return(result, leaving) if raised else result


def _ending_with_return(body: Body, leaving: ast.Return) -> Body:
    """`body` with the `break` at its end replaced by `return`, whose value is computed there."""
    kept, value = body[:-1], leaving.value
    match kept[-1] if kept else None, value:
        case ast.Assign([ast.Name(target)], given), ast.Name(read) if target == read:
            kept, value = kept[:-1], given
    return [*kept, _like(body[-1], ast.Return(value))]


def _assigned_constant(statement: ast.stmt, flag: str) -> bool | None:
    """The constant that a statement assigns to `flag`, if it is such an assignment."""
    match statement:
        case ast.Assign([ast.Name(name)], ast.Constant(bool() as value)) if name == flag:
            return value
    return None


def _mentions(tree: ast.AST, flag: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == flag for node in nodes_in(tree))


def _like(old: ast.stmt, new: ast.stmt) -> ast.stmt:
    """`new`, with the user's line of `old`."""
    new.line = getattr(old, "line", None)
    return new
