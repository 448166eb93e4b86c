"""`return` inside loops, where the IR carries a flag and a result out of them.

    for i in range(n):                      for i in range(n):
        if x[i] > limit:                        if x[i] > limit:
            done = True               becomes       return x[i] * i
            t = x[i] * i
            break
    if done:
        return t

The IR has no jumps; this puts back what the user wrote, on the statements just before they are printed.
"""

from __future__ import annotations

import ast

Body = list[ast.stmt]


def with_returns(body: Body) -> Body:
    """`body` with the flags of early returns replaced by `return`, loop by loop from the outside in."""
    result: Body = []
    for k, statement in enumerate(body):
        following = body[k + 1] if k + 1 < len(body) else None
        match statement, following:
            case (ast.For() | ast.While()), ast.If(ast.Name(flag), [ast.Return() as leaving], rest) if (
                    _is_only_a_flag(body, statement, following, flag)):
                statement.body = with_returns(_returning(statement.body, flag, leaving))
                result = [s for s in result if _sets(s, flag) is None]
                return [*result, statement, *with_returns([*rest, *body[k + 2:]])]
        if isinstance(statement, ast.If):
            statement.body, statement.orelse = with_returns(statement.body), with_returns(statement.orelse)
        result.append(statement)
    return result


def _is_only_a_flag(body: Body, loop: ast.stmt, test: ast.If, flag: str) -> bool:
    """Whether `flag` is False before the loop, True where the loop is left for good, and read by `test` alone."""
    initial = [s for s in body if _sets(s, flag) is False]
    raised = [inner for inner in _bodies(loop.body) if any(_sets(s, flag) for s in inner)]
    mentions = sum(isinstance(node, ast.Name) and node.id == flag for s in body for node in ast.walk(s))
    return (len(initial) == 1 and body.index(initial[0]) < body.index(loop) and bool(raised)
            and all(isinstance(inner[-1], ast.Break) for inner in raised)
            and mentions == len(raised) + 2)


def _sets(statement: ast.stmt, flag: str) -> bool | None:
    """The constant that a statement gives to `flag`, if that is what it does."""
    match statement:
        case ast.Assign([ast.Name(name)], ast.Constant(bool() as value)) if name == flag:
            return value
    return None


def _bodies(body: Body) -> list[Body]:
    """`body` and the branches in it, from which a `break` leaves the same loop."""
    found = [body]
    for statement in body:
        if isinstance(statement, ast.If):
            found += _bodies(statement.body) + _bodies(statement.orelse)
    return found


def _returning(body: Body, flag: str, leaving: ast.Return) -> Body:
    """`body`, returning where it raised the flag and broke out of its loop."""
    for statement in body:
        if isinstance(statement, ast.If):
            statement.body = _returning(statement.body, flag, leaving)
            statement.orelse = _returning(statement.orelse, flag, leaving)
    if not any(_sets(s, flag) for s in body):
        return body
    kept = [s for s in body[:-1] if not _sets(s, flag)]
    value = leaving.value
    match kept[-1] if kept else None, value:
        case ast.Assign([ast.Name(target)], given), ast.Name(read) if target == read:
            kept, value = kept[:-1], given
    end = ast.Return(value)
    end.line = getattr(body[-1], "line", None)
    return [*kept, end]
