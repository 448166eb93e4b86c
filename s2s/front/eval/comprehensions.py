"""Evaluate comprehensions and generator expressions as loops in a scope of their own, as Python
does.

    [f(x) for x in xs if x > 0]            def <list>(<source>):
                                               <total> = []
                                               for x in <source>:
                                                   if x > 0:
                                                       <total>.append(f(x))
                                               return <total>

A generator expression is not run until something consumes it: `sum` adds up as it goes, `any` stops
at the first, a `for` evaluates one element a trip.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import gast

from ...ir.graph import MISSING, Value
from ..control.iterables import Iterable, iterable, mapped, normalised_range
from ..control.iterators import once
from ..control.join import branch
from ..domain.frame import BOUND, Frame
from ..domain.functions import Generator, Local
from ..domain.item_places import line_site
from ..values.activation import run
from ..values.comprehension_scope import comprehension_scope
from ..values.dict_views import TripCheck
from ..values.dicts import new_dict
from ..values.iterator_invalidation import was_written
from ..values.list_views import askable, is_asked, view_of_all
from ..values.lists import new_list
from ..values.nonlocals import borrow
from ..values.objects import new_dict_at as placed_dict
from ..values.subscript import take
from .assignment import assign
from .expressions import condition, evaluate, evaluate_any

UNROLL_AT_MOST = 16  # most trips of a range that are unrolled into a list of known length
STATIC_AT_MOST = 64  # ... and most items of nested loops, all of them static

_made: WeakKeyDictionary[gast.AST, dict[str, gast.FunctionDef]] = WeakKeyDictionary()


def comprehension(frame: Frame, node: gast.ListComp | gast.GeneratorExp):
    """The binding of `[... for ...]` or `(... for ...)`."""
    first = node.generators[0].iter
    binding = evaluate(frame, first)
    source = iterable(frame, binding, first)
    if isinstance(node, gast.GeneratorExp):
        is_early = len(node.generators) > 1 or bool(node.generators[0].ifs)
        return once(frame, _generator(frame, node, source), "a generator expression",
                    (binding, Local(node, frame, {})), is_early)
    return _listed(frame, node, source)


def _listed(frame: Frame, node, source: Iterable):
    items = _unroll(frame, node, source)
    if items is None and isinstance(node, gast.DictComp):
        return _run(frame, node, "dict", source, placed_dict(frame, new_dict(frame, {}), node))
    if items is not None:
        return new_list(frame, items)
    is_copy = source.of is not None and _lists_all(node)
    if is_copy and is_asked(frame) and (view := view_of_all(frame, source.of, take)) is not None:
        return view
    site = line_site("list")
    made = _run(frame, node, "list", source, new_list(frame, ()))
    return askable(made, site) if is_copy else made


def _lists_all(node) -> bool:
    """Whether a comprehension is `[x for x in xs]`."""
    loop = node.generators[0]
    return (len(node.generators) == 1 and not loop.ifs and isinstance(loop.target, gast.Name)
            and isinstance(node.elt, gast.Name) and node.elt.id == loop.target.id)


def _generator(frame: Frame, node: gast.GeneratorExp, source: Iterable) -> Generator:
    def fold(kind: str, start=None):
        return (_listed(frame, node, source) if kind == "list"
                else _run(frame, node, kind, source, start))

    def iterate() -> Iterable:
        first = node.generators[0]
        if len(node.generators) > 1 or first.ifs:
            before = dict(frame.heap.contents)
            items = fold("list")
            if was_written(frame, before):
                raise frame.refuse(
                    "a generator expression with an `if` that writes into something, run over by a "
                    "loop",
                    node, "make a list of it first: list(...); or write a loop with an `if`")
            return iterable(frame, items, node)

        def elements(plain: Iterable) -> Iterable:
            return replace(plain, get=lambda k: _run(frame, node, "element", plain.get(k), None),
                           is_range=False, tabulate=lambda: mapped(elements, plain))

        return elements(normalised_range(frame, source, node))

    return Generator(fold, iterate, source.held, any(loop.ifs for loop in node.generators))


def _unroll(frame: Frame, node, source: Iterable) -> list | None:
    """The items of a comprehension whose trips and conditions are static; else None.  Of several
    loops, only where the items are static, too.
    """
    if any(isinstance(n, gast.NamedExpr) for n in gast.walk(node)) or len(
            node.generators) > 1 and not _is_plain(node):
        return None
    saved, items, pending = dict(frame.env), [], frame.pending
    names = {n.id for loop in node.generators for n in gast.walk(loop.target)
             if isinstance(n, gast.Name)}
    frame.pending |= names  # only the comprehension reads it, to its end
    is_known = _run_loops(frame, node, 0, source, items)
    frame.pending = pending
    for name in names:
        frame.env.pop(name, None)
        if name in saved:
            frame.env[name] = saved[name]
    return items if is_known else None


def _run_loops(frame: Frame, node, depth: int, source: Iterable, items: list) -> bool:
    """Add the items of the loops from this depth on; whether all trips and conditions are static.
    """
    loop, is_last = node.generators[depth], depth + 1 == len(node.generators)
    trips = _static_trips(frame, node, source)
    if trips is None:
        return False
    checked = None
    with comprehension_scope(frame, loop.target) as tell:
        for k in trips:
            if checked is not None:
                checked.run(frame, loop.iter, frame.live | frame.pending, branch)
            checked = TripCheck(frame, source.held)
            assign(frame, loop.target, source.get(k), loop.target)
            tell()
            taken = [condition(frame, test) for test in loop.ifs]
            if any(test.constant is MISSING for test in taken):
                return False
            if not all(test.constant for test in taken):
                continue
            if not is_last:
                inner = node.generators[depth + 1].iter
                if not _run_loops(frame, node, depth + 1,
                                  iterable(frame, evaluate(frame, inner), inner), items):
                    return False
                continue
            items.append(evaluate_any(frame, node.elt) if not isinstance(node, gast.DictComp)
                         else (evaluate(frame, node.key), evaluate(frame, node.value)))
            if depth and (not frame.is_static(items[-1]) or len(items) > STATIC_AT_MOST):
                return False
        if checked is not None:
            checked.run(frame, loop.iter, frame.live | frame.pending, branch)
    return True


def _static_trips(frame: Frame, node, source: Iterable) -> range | None:
    if source.trips is not None:
        return range(source.trips)
    if not all(isinstance(b, int) or isinstance(b, Value) and frame.is_static(b)
               for b in source.bounds):
        return None
    trips = range(*(frame.static(b, "a bound") for b in source.bounds))
    return trips if len(trips) <= UNROLL_AT_MOST or isinstance(node, gast.DictComp) else None


def _is_plain(node) -> bool:
    """Whether the items of a list comprehension may be evaluated twice: it makes nothing but
    numbers, strings and tuples, and calls nothing but `range`.
    """
    return isinstance(node, gast.ListComp) and all(
        isinstance(n.func, gast.Name) and n.func.id == "range"
        for n in gast.walk(node) if isinstance(n, gast.Call))


def _run(frame: Frame, node, kind: str, source, start):
    """Run the function equivalent to a comprehension."""
    named = _names_bound_outside(node)
    if named and frame.session.active not in (None, frame):
        raise frame.refuse("`:=` in a comprehension of a function that is called from another one",
                           node, "write the comprehension as a loop")
    definition = _definition(node, kind)
    inner = Frame(definition, definition.body, frame.source, frame.session, frame.globals,
                  frame.closure, frame, frame, place=frame.place, meaning=frame.meaning,
                  foreign=frame.foreign)
    borrowed = borrow(inner, node) if frame.session.active in (None, frame) else ()
    inner.borrowed |= frozenset(named)  # bound already, or by the comprehension
    flags = [each for name in named for each in (name, BOUND.format(name))]
    inner.env.update({each: frame.env[each] for each in flags if each in frame.env})
    result = run(inner, {"<source>": source, "<total>": start}, node)
    for name in borrowed:
        frame.env[name] = inner.env[name]
    frame.env.update({each: inner.env[each] for each in flags if each in inner.env})
    return result


def _names_bound_outside(node) -> list[str]:
    """The names that `:=` binds in a comprehension: they are of the function around it."""
    return list(dict.fromkeys(
        n.target.id for n in gast.walk(node)
        if isinstance(n, gast.NamedExpr) and isinstance(n.target, gast.Name)))


def _definition(node, kind: str) -> gast.FunctionDef:
    """The function equivalent to a comprehension; cached per comprehension."""
    kept = _made.setdefault(node, {})
    if kind not in kept:
        made = _function(node, kind)
        if named := _names_bound_outside(node):
            made.body.insert(0, gast.Nonlocal(named))
        kept[kind] = _copy_position(made, node)
    return kept[kind]


def _copy_position(definition: gast.FunctionDef, node: gast.AST) -> gast.FunctionDef:
    """Give nodes without a position the position of the comprehension."""
    for inner in gast.walk(definition):
        if not hasattr(inner, "lineno"):
            for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
                setattr(inner, name, getattr(node, name))
    return definition


def _name(name: str, store: bool = False) -> gast.Name:
    return gast.Name(name, gast.Store() if store else gast.Load(), None, None)


def _function(node, kind: str) -> gast.FunctionDef:
    total, end = _name("<total>"), None
    match kind:
        case "list":
            call = gast.Call(gast.Attribute(total, "append", gast.Load()), [node.elt], [])
            inner, end = [gast.Expr(call)], total
        case "dict":
            item = gast.Subscript(total, node.key, gast.Store())
            inner, end = [gast.Assign([item], node.value, None)], total
        case "first" | "first or":
            inner, end = [gast.Return(node.elt)], total
        case "sum":
            inner = [
                gast.Assign([_name("<total>", True)], gast.BinOp(total, gast.Add(), node.elt), None)
            ]
            end = total
        case "any":
            inner = [gast.If(node.elt, [gast.Return(gast.Constant(True, None))], [])]
            end = gast.Constant(False, None)
        case "all":
            inner = [
                gast.If(gast.UnaryOp(gast.Not(), node.elt),
                        [gast.Return(gast.Constant(False, None))], [])
            ]
            end = gast.Constant(True, None)
        case "element":
            body = [
                gast.Assign([node.generators[0].target], _name("<source>"), None),
                gast.Return(node.elt)
            ]
            return _def(body)
    for k, loop in reversed(list(enumerate(node.generators))):
        for test in reversed(loop.ifs):
            inner = [gast.If(test, inner, [])]
        inner = [gast.For(loop.target, loop.iter if k else _name("<source>"), inner, [], None)]
    if kind == "first":
        return _def([*inner, gast.Raise(_name("StopIteration"), None)])
    return _def([*inner, gast.Return(end)])


def _def(body: list) -> gast.FunctionDef:
    parameters = [gast.Name(name, gast.Param(), None, None) for name in ("<source>", "<total>")]
    arguments = gast.arguments(args=parameters, posonlyargs=[], vararg=None, kwonlyargs=[],
                               kw_defaults=[], kwarg=None, defaults=[])
    return gast.FunctionDef("<comprehension>", arguments, body, [], None, None, [])
