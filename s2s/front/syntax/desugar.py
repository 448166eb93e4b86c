"""Desugar `match` and `with`, before anything else looks at the function.

`match` becomes a chain of `if`s on its subject: a pattern is a test, and captures are assigned
where the test holds.  `with suppress(E)` becomes `try: ... except E: pass`; `with np.errstate()`,
which must not change results, an empty `with`, which checks the manager, and its own statements.
Any other becomes an empty `with`, which enters the manager, and a `try` that leaves it:

    with M as x:                           with M as x, None as <with 0>: pass
        y = g(x)                           try:
                                               y = g(x)
                                           finally:
                                               leave(<with 0>)

Later passes see no `match`, and no `with` but such empty ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import gast

from ...library.match_markers import has_key, is_mapping, is_sequence, member, others_of
from ...library.with_markers import leave

SUBJECT = "match {}"  # not an identifier
MANAGER = "<with {}>"
WITHOUT_EFFECT = ("errstate", "nullcontext", "catch_warnings")


def desugar(definition: gast.AST) -> gast.AST:
    """The definition with `match` and `with` desugared, in place."""
    return _Plain().visit(definition)


class _Plain(gast.NodeTransformer):

    def __init__(self):
        self.count = itertools.count()

    def visit_With(self, node: gast.With) -> list:
        self.generic_visit(node)
        body = node.body
        for item in reversed(node.items):
            if _is_named(item.context_expr, ("suppress",)):
                handler = gast.ExceptHandler(item.context_expr, None, [gast.Pass()])
                body = [copy_position(gast.Try(body, [handler], [], []), node)]
            elif _is_named(item.context_expr, WITHOUT_EFFECT):
                begin, end = self._quiet(item, body[-1])
                body = [*(copy_position(each, node) for each in begin), *body,
                        *(copy_position(each, node) for each in end)]
            else:
                body = [copy_position(each, node) for each in self._entered(item, body)]
        return body

    def _quiet(self, item: gast.withitem, last: gast.AST) -> tuple[list, list]:
        """What begins `with item: ...; last` and ends it, of a manager that changes at most who
        hears of warnings.
        """
        if (not _is_named(item.context_expr, ("catch_warnings",))
                or isinstance(last, (gast.Return, gast.Raise, gast.Break, gast.Continue))):
            return [gast.With([item], [], None)], []
        entered, finished = self._entered(item, [])
        return [entered], finished.finalbody

    def _entered(self, item: gast.withitem, body: list) -> list:
        """The statements of `with item: body`."""
        name = MANAGER.format(next(self.count))
        kept = gast.withitem(gast.Constant(None, None), _store(name))
        left = gast.Expr(_ask(leave, gast.Name(name, gast.Load(), None, None)))
        return [gast.With([item, kept], [], None), gast.Try(body, [], [], [left])]

    def visit_Match(self, node: gast.Match) -> list:
        self.generic_visit(node)
        name = SUBJECT.format(next(self.count))

        def subject() -> gast.AST:
            return copy_position(gast.Name(name, gast.Load(), None, None), node.subject)

        assign = copy_position(
            gast.Assign([gast.Name(name, gast.Store(), None, None)], node.subject, None),
            node.subject)
        orelse: list = []
        for case in reversed(node.cases):
            tests, captures = pattern_test(case.pattern, subject)
            bindings = [(_store(n), path()) for n, path in captures]
            body = case.body
            if case.guard is not None:
                named = [gast.NamedExpr(target, path) for target, path in bindings]
                # a nonempty tuple is true
                tests += [gast.Tuple(named, gast.Load())] if named else []
                tests.append(case.guard)
            else:
                body = [
                    *(copy_position(gast.Assign([target], path, None), case.pattern)
                      for target, path in bindings), *body
                ]
            test = _all(tests)
            orelse = [copy_position(gast.If(test, body, orelse), case.pattern)]
        return [assign, *orelse]


def _is_named(manager: gast.AST, names: tuple) -> bool:
    """Whether a manager looks like a call of one of these functions of a library; that it is is
    checked when it is evaluated.
    """
    name = getattr(manager, "func", None)
    return getattr(name, "attr", getattr(name, "id", "")) in names


def is_leaving(statements: list) -> bool:
    """Whether this is the `finally` of a `with`."""
    match statements:
        case [gast.Expr(value=gast.Call(func=gast.Constant(value=function)))]:
            return function is leave
    return False


def _all(tests: list) -> gast.AST:
    if not tests:
        return gast.Constant(True, None)
    return tests[0] if len(tests) == 1 else gast.BoolOp(gast.And(), tests)


def copy_position(new: gast.AST, old: gast.AST) -> gast.AST:
    """Give `new` and nodes in it without a position the position of `old`."""
    gast.copy_location(new, old)
    for node in gast.walk(new):
        if not hasattr(node, "lineno"):
            gast.copy_location(node, old)
    return new


def copy_tree(node):
    """A copy of a syntax tree; what it holds besides nodes, such as modules that are imported
    inside a function, is shared, and its outline is left out.
    """
    if isinstance(node, list):
        return [copy_tree(x) for x in node]
    if not isinstance(node, gast.AST):
        return node
    new = type(node)()
    new.__dict__.update({name: copy_tree(x) for name, x in node.__dict__.items()
                         if name != "outline"})
    return new


def _store(name: str) -> gast.Name:
    return gast.Name(name, gast.Store(), None, None)


# builds the expression for a part of the subject, a new tree each time
Path = Callable[[], gast.AST]


def pattern_test(pattern: gast.AST, path: Path) -> tuple[list, list[tuple[str, Path]]]:
    """The conjunction of tests for a pattern, and the names that it captures."""
    match pattern:
        case gast.MatchValue(value=value):
            return [gast.Compare(path(), [gast.Eq()], [value])], []
        case gast.MatchSingleton(value=value):
            return [gast.Compare(path(), [gast.Is()], [gast.Constant(value, None)])], []
        case gast.MatchAs(pattern=None, name=name):
            return [], [] if name is None else [(name, path)]
        case gast.MatchAs(pattern=inner, name=name):
            tests, captures = pattern_test(inner, path)
            return tests, [*captures, (name, path)]
        case gast.MatchOr(patterns=alternatives):
            return _any_of([pattern_test(p, path) for p in alternatives])
        case gast.MatchSequence(patterns=items):
            return _sequence(items, path)
        case gast.MatchMapping(keys=keys, patterns=items, rest=rest):
            tests = [_ask(is_mapping, path())]
            tests += [_ask(has_key, path(), key) for key in keys]
            parts = [(p, lambda key=key: _item(path, key)) for key, p in zip(keys, items)]
            if rest is not None:
                parts.append((gast.MatchAs(None, rest),
                              lambda: _ask(others_of, path(), gast.Tuple(keys, gast.Load()))))
            return _parts(tests, parts)
        case gast.MatchClass(cls=kind, patterns=items, kwd_attrs=names, kwd_patterns=named):
            tests = [_ask(isinstance, path(), kind)]
            parts = [(p, lambda k=k: _ask(member, path(), kind, gast.Constant(k, None)))
                     for k, p in enumerate(items)]
            parts += [(p, lambda name=name: gast.Attribute(path(), name, gast.Load()))
                      for name, p in zip(names, named)]
            return _parts(tests, parts)
    raise AssertionError(pattern)


def _ask(question: Callable, *args: gast.AST) -> gast.AST:
    return gast.Call(gast.Constant(question, None), list(args), [])


def _item(path: Path, key: gast.AST) -> gast.AST:
    return gast.Subscript(path(), key, gast.Load())


def _parts(tests: list, parts: list[tuple[gast.AST, Path]]) -> tuple[list, list]:
    captures = []
    for pattern, path in parts:
        more, names = pattern_test(pattern, path)
        tests, captures = tests + more, captures + names
    return tests, captures


def _sequence(items: list, path: Path) -> tuple[list, list]:
    stars = [k for k, item in enumerate(items) if isinstance(item, gast.MatchStar)]
    count = len(items) - len(stars)
    tests = [
        _ask(is_sequence, path(), gast.Constant(count, None), gast.Constant(bool(stars), None))
    ]
    return _parts(tests, list(_members(items, path, stars[0] if stars else len(items))))


def _members(items: list, path: Path, star: int) -> Iterator[tuple[gast.AST, Path]]:
    after = len(items) - 1 - star
    for k, item in enumerate(items):
        if k == star:
            if item.name is not None:
                stop = gast.UnaryOp(gast.USub(), gast.Constant(after, None)) if after else None
                yield gast.MatchAs(None, item.name), lambda stop=stop: _ask(
                    list, _item(path, gast.Slice(gast.Constant(star, None), stop, None)))
        else:
            index = k if k < star else k - len(items)
            yield item, lambda index=index: _item(path, gast.Constant(index, None))


def _any_of(alternatives: list[tuple[list, list]]) -> tuple[list, list]:
    test = gast.BoolOp(gast.Or(), [_all(tests) for tests, _ in alternatives])
    *others, (_, last) = alternatives
    captures = []
    for name, path in last:
        for tests, names in reversed(others):

            def path(tests=tests, first=dict(names)[name], second=path) -> gast.AST:
                return gast.IfExp(_all(tests), first(), second())

        captures.append((name, path))
    return [test], captures
