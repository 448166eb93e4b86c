"""Python's functions on sequences: sum, any, max, sorted, map, filter, reduce, and itertools.

Functions of library/sequences.py are inlined.  Functions that only reorder items, such as `map`,
`product` or `pairwise`, are Iterables: nothing is stored, and a `for` evaluates one element a trip.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import sys
from collections.abc import Callable

import gast
import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.graph import MISSING, Value
from ...ir.types import Array, List, Scalar, Tuple
from ...library import sequences as library
from ...ops.core.array_raise_conditions import unlike
from ...ops.core.record import FUNCTIONS, rank, value
from ...ops.core.shape import length
from ...ops.math.python_sum import compensated_sum, is_compensated
from ...ops.program.list_queries import list_order
from ...ops.program.list_sums import exact_sum
from ..control.generator_cursors import cursors_of
from ..control.iterables import ENDLESS, Iterable, iterable, normalised_range, zip_
from ..control.iterators import ALL, gives_iterator, iterator_of, next_of
from ..domain.frame import Frame
from ..domain.functions import Generator, Method
from ..domain.heap import Cell, Container
from ..domain.rank_promotion import needs_fixed_ranks
from ..syntax.dependencies import note_dependency
from ..values.dicts import is_keyed
from ..values.exceptions import guard, is_caught
from ..values.lists import (
    alike,
    as_list,
    is_list,
    known_range,
    list_value,
    new_list,
    run_time_tuple,
)
from ..values.objects import method_of
from ..values.raise_guards import guarding
from ..values.subscript import take
from ..values.unpacking import require_length
from ..values.unwrap import demand
from .apply import apply, in_place, operate
from .operators import binary, compare, negation, truth, unary
from .python_builtins import BUILTINS, refused

UNGIVEN = object()
MOST_KNOWN = 256  # most members evaluated at compile time


def call_library(frame: Frame, node, function: Callable, *args):
    """A call of a function of library/sequences.py, inlined."""
    return in_place(frame, function, list(args), {}, node, current().line)


def as_sequence(frame: Frame, node, source=()):
    """The members of an iterable as a binding with a length: a list, a tuple, an array."""
    if isinstance(source, Generator):
        return source.fold("list")
    if isinstance(source, (dict, str, range)):
        return new_list(frame, tuple(source))
    if isinstance(source, Container) and source.is_dict:
        return new_list(frame, tuple(source.members))
    if isinstance(source, Container) and method_of(source, "__iter__") is not None:
        return as_sequence(frame, node, iterable(frame, source, node))
    if not isinstance(source, Iterable):
        return source
    if source.is_endless:
        raise frame.refuse("a list of what has no end", node,
                           "take some of it: itertools.islice(..., n), or zip(range(n), ...)")
    if source.trips is not None:
        return new_list(frame, [source.get(k) for k in range(source.trips)])
    indices = known_range(source.bounds)
    if indices is not None and len(indices) <= MOST_KNOWN:
        return new_list(frame, [source.get(k) for k in indices])
    return call_library(frame, node, library.listed, source)


def _tuple(frame: Frame, node, source=()):
    given, source = source, as_sequence(frame, node, source)
    if isinstance(source, Cell) and frame.members(source) is None:
        content = frame.heap.read(source)
        if isinstance(content.type, List):
            return run_time_tuple(_KNOWN_LIST(frame, node, source) if source is given else source)
        members = _KNOWN_LIST(frame, node, source) if isinstance(content.type, Array) else None
        if members is not None and frame.members(members) is None:
            return run_time_tuple(members)
    return _KNOWN_TUPLE(frame, node, source)


def _list(frame: Frame, node, source=()):
    made = as_sequence(frame, node, source)
    return made if isinstance(source,
                              (Generator, Iterable)) and is_list(frame, made) else _KNOWN_LIST(
                                  frame, node, made)


_KNOWN_TUPLE, _KNOWN_LIST, _KNOWN_LEN = BUILTINS[tuple], BUILTINS[list], BUILTINS[len]


def _members(frame: Frame, node, source):
    """The bindings of the members if their number is static; else None."""
    source = as_sequence(frame, node, source)
    return frame.members(source), source


# ------------------------------------------------------------------------------------- one of many


def _sum(frame: Frame, node, source, start=0):
    if isinstance(source, Generator) and source.selects:
        # native code needs one rank, and the sum of no arrays is a number: that of a list has one
        note_dependency(needs_fixed_ranks, needs_fixed_ranks())
        if needs_fixed_ranks():
            return _sum(frame, node, source.fold("list"), start)
    if isinstance(source, Generator) and sys.version_info < (3, 12):
        return source.fold("sum", _number(start))
    if isinstance(source, Iterable) and source.trips is None and sys.version_info < (3, 12):
        return call_library(frame, node, library.summed, source, _number(start))
    members, source = _members(frame, node, source)
    if members is not None:
        return _sum_of_known(frame, node, [start, *members])
    if (isinstance(source, Cell) and not is_list(frame, source)
            and not (frame.is_static(start) and start == 0)):
        return call_library(frame, node, library.summed, source, _number(start))
    return operate(frame, sum, [source, start], {}, node)


def _sum_of_known(frame: Frame, node, terms: list):
    """sum() of individual terms: Python first adds up its own leading numbers separately."""
    numbers = [
        value(x) if isinstance(x, (bool, int, float)) else x
        for x in (frame.contents_of(demand(frame, x)) for x in terms)
    ]
    own = next((k for k in range(len(numbers), 2, -1) if is_compensated(numbers[:k])), 0)
    if own:
        numbers = numbers[1 if numbers[0].constant == 0 else 0:own]
        known = all(map(frame.is_static, numbers))
        terms = [
            sum(x.constant for x in numbers) if known else compensated_sum(*numbers), *terms[own:]
        ]
    return functools.reduce(lambda a, b: binary(frame, gast.Add(), a, b, node), terms)


def _number(start):
    return value(start) if isinstance(start, (bool, int, float, complex)) else start


def _truth_of(function: Callable, meaning: Callable) -> Callable:
    """any or all: evaluated at compile time, or inlined from library/."""
    def truths(frame: Frame, node, source):
        if isinstance(source, Generator):
            return source.fold(function.__name__)
        members = frame.members(source)
        if members is not None and all(map(frame.is_static, members)):
            return function(frame.static(x, "this") for x in members)
        return call_library(frame, node, meaning, source)

    return truths


def _extreme(function, larger: Callable) -> Callable:

    def choose(frame: Frame, node, *args, key=None, default=UNGIVEN):
        if not args:
            raise TypeMismatchError(f"{function.__name__} of nothing", frame.line(node),
                                    "pass what to choose from")
        if len(args) == 1 and isinstance(args[0], Value) and isinstance(args[0].type, Scalar):
            raise TypeMismatchError(f"{function.__name__} of one number", frame.line(node),
                                    "pass a sequence, or several numbers")
        items = list(args) if len(args) > 1 else as_sequence(frame, node, args[0])
        members = frame.members(items)
        if members is not None and not members and default is not UNGIVEN:
            return default
        if members is not None and not members:
            guard(frame, ValueError, lambda: True,
                  f"{function.__name__}() arg is an empty sequence")
            raise TypeMismatchError(f"{function.__name__} of an empty sequence", frame.line(node),
                                    "give it a default=")
        if members is not None and frame.is_static(tuple(members)) and key is None:
            return function(frame.static(tuple(members), "this"))
        if key is None and default is UNGIVEN and members is None and isinstance(
                items, Cell) and not is_list(frame, items) and rank(frame.value(items)) == 1:
            return call_library(
                frame, node,
                library.largest_of_vector if function is max else library.smallest_of_vector, items)
        if key is None and (default is UNGIVEN
                            or members is not None) and not _of_tuples(frame, items):
            return operate(
                frame, function,
                args if len(args) > 1 else [items if members is None else tuple(members)], {}, node)
        key = key if key is not None else _same
        items = new_list(frame, members) if members is not None else items
        if default is UNGIVEN or members is not None:
            return call_library(frame, node, library.extreme, items, key, larger,
                                f"{function.__name__}() arg is an empty sequence")
        return call_library(frame, node, library.extreme_or, items, key, larger, _number(default))

    return choose


def _same(x):
    return x


def _of_tuples(frame: Frame, items) -> bool:
    """Whether the items are tuples, which are compared lexicographically."""
    members = frame.members(items)
    if members is not None:
        return any(isinstance(frame.contents_of(x), tuple) for x in members)
    return isinstance(items, Cell) and is_list(frame, items) and isinstance(
        frame.heap.read(items).type.item, Tuple)


# ------------------------------------------------------------------------------------------- orders


def _sorted(frame: Frame, node, source, *, key=None, reverse=False):
    source = as_sequence(frame, node, source)
    reverse = bool(frame.static(reverse, "reverse=", node))
    if key is None and frame.is_static(source):
        return new_list(frame, sorted(frame.static(source, "this"), reverse=reverse))
    if isinstance(source, tuple):
        source = new_list(frame, source)
    if key is not None and frame.session.tries:  # a key function may raise a caught exception
        return call_library(frame, node, library.sorted_by, source, key, reverse)
    return _by_keys(
        frame, node, source,
        source if key is None else call_library(frame, node, library.mapped, source, key), reverse)


def _by_keys(frame: Frame, node, source, keys, reverse: bool):
    keys = _with_numbers(frame, keys)
    items = frame.members(source)
    if items is not None and not alike(frame, items):
        order = (call_library(frame, node, library.merged_order, keys,
                              operator.lt if reverse else operator.gt)
                 if _of_tuples(frame, keys) else _order_of(frame, node, keys, reverse))
        return new_list(frame, [take(frame, source, take(frame, order, k))
                                for k in range(len(items))])
    if _of_tuples(frame, keys):
        return call_library(frame, node, library.merged, source, keys,
                            operator.lt if reverse else operator.gt)
    return call_library(frame, node, library.ordered, source, keys, reverse)


def _with_numbers(frame: Frame, keys):
    """The keys with numbers in place of strings, in the same order."""
    members = frame.members(keys)
    numbered = None if members is None else _numbered(list(members))
    return keys if numbered is None or numbered == list(members) else new_list(frame, numbered)


def _numbered(column: list) -> list:
    if all(isinstance(x, str) for x in column):
        order = sorted(set(column))
        return [order.index(x) for x in column]
    if column and all(isinstance(x, tuple) and len(x) == len(column[0]) for x in column):
        return list(zip(*map(_numbered, map(list, zip(*column)))))
    return column


def _order_of(frame: Frame, node, keys, reverse):
    known = frame.is_static(keys)
    if known:
        keys = frame.static(keys, "these keys")
        return new_list(frame, sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse))
    content = as_list(frame, keys)
    if not isinstance(content.type.item, Scalar):
        raise frame.refuse(f"sorting by what is a {content.type.item}", node,
                           "sort by a number: key=lambda x: ...")
    return frame.heap.new(list_order(content, reverse=reverse))


# ----------------------------------------------------------------------------------- lazy sequences


def _map(frame: Frame, node, function, *sources):
    source = _zip(frame, node, *sources)
    return Iterable(lambda k: apply(frame, function, list(source.get(k)), {}, node), source.bounds,
                    source.trips, (*source.held, function))


def _starmap(frame: Frame, node, function, source):
    source = _counted(frame, node, source)
    return Iterable(lambda k: apply(frame, function, list(_parts(frame, source.get(k))), {}, node),
                    source.bounds, source.trips, (*source.held, function))


def _parts(frame: Frame, binding):
    return frame.members(binding)


def _counted(frame: Frame, node, source) -> Iterable:
    return normalised_range(frame, iterable(frame, source, node), node)


def _zip(frame: Frame, node, *sources, strict=False):
    sources = [_counted(frame, node, s) for s in sources]
    if frame.static(strict, "strict="):
        _require_equal(frame, node, sources)
    known = [s for s in sources if s.trips is not None]
    if not all(_is_data(s.get(k)) for s in known for k in range(s.trips)):
        return _zip_known(frame, sources, min(s.trips for s in known))
    if known and any(s.trips is None for s in sources):
        sources = [_at_run_time(frame, s) for s in sources]
    endless = [s for s in sources if s.is_endless]
    if endless and len(endless) < len(sources):
        rest = [s for s in sources if not s.is_endless]
        for s in endless:
            if any(other in rest for other in sources[sources.index(s):]):
                for cursor in cursors_of(s):
                    cursor.spend(frame)  # Python takes one more item than it returns
        shortest = zip_(frame, rest, _smaller, node)
        return Iterable(lambda k: tuple(s.get(k) for s in sources), shortest.bounds, shortest.trips,
                        tuple(h for s in sources for h in s.held), extent=shortest.extent)
    return zip_(frame, sources, _smaller, node)


def _require_equal(frame: Frame, node, sources: list[Iterable]) -> None:
    """Raise the ValueError of zip(..., strict=True); Python raises it where the shortest ends, here
    before the first trip.
    """
    first, *others = [
        value(s.trips) if s.trips is not None else value(s.bounds[1]) for s in sources
    ]
    others = [(k, n) for k, n in enumerate(others, 2) if unlike(first, n) is not None]
    if others and is_caught(frame, ValueError):
        raise frame.refuse("zip(..., strict=True) where its ValueError is caught", node,
                           "compare the lengths first")
    for k, n in others:
        call_library(frame, node, library.require_equal, first, n,
                     f"zip() argument {k} is shorter than argument 1",
                     f"zip() argument {k} is longer than argument 1")


def _is_data(binding) -> bool:
    """Whether a run-time list can hold the binding."""
    return (isinstance(binding, (Value, Cell, bool, int, float, complex))
            or isinstance(binding, (tuple, list)) and all(map(_is_data, binding)))


def _zip_known(frame: Frame, sources: list[Iterable], trips: int) -> Iterable:
    """zip(names, xs) of texts, functions or objects: unrolled over the names, for which xs must be
    long enough.
    """
    lengths = [value(s.bounds[1]) for s in sources if s.trips is None and not s.is_endless]
    trips = min([trips, *(n.constant for n in lengths if n.constant is not MISSING)])
    for n in lengths:
        require_length(frame, n, trips, or_more=True)
    return Iterable(lambda k: tuple(s.get(k) for s in sources), trips=trips,
                    held=tuple(h for s in sources for h in s.held))


def _smaller(a, b):
    return FUNCTIONS[min](value(a), value(b))


def _at_run_time(frame: Frame, source: Iterable) -> Iterable:
    """A list of the members of something of known length, for iteration alongside something of
    run-time length.
    """
    if source.trips is None:
        return source
    xs = frame.heap.new(tuple(source.get(k) for k in range(source.trips)))
    as_list(frame, xs)
    return iterable(frame, xs, None)


def _filter(frame: Frame, node, function, source):
    if function is None:
        return call_library(frame, node, library.filtered_true, source)
    return call_library(frame, node, library.filtered, function, source)


def _repeat(frame: Frame, node, x, times=None):
    times = ENDLESS if times is None else frame.static(
        times, "this") if frame.is_static(times) else frame.value(times)
    return Iterable(lambda k: x, (0, times, 1), held=(x,))


def _count(frame: Frame, node, start=0, step=1):
    add, multiply = gast.Add(), gast.Mult()
    return Iterable(
        lambda k: binary(frame, add, start, binary(frame, multiply, k, step, node), node),
        (0, ENDLESS, 1))


def _refuse_cursor(frame: Frame, node, source: Iterable) -> None:
    """Refuse a generator that never ends, which gives each item once, in order."""
    if cursors_of(source):
        raise frame.refuse("leaving out, or taking twice, what a generator yields", node,
                           "call next() on it in a loop")


def _refuse_endless(function: Callable) -> Callable:
    """The function, which makes a list of the last of its arguments, with endless ones refused."""

    @functools.wraps(function)
    def refusing(frame: Frame, node, *args, **keywords):
        if isinstance(args[-1], Iterable) and args[-1].is_endless:
            as_sequence(frame, node, args[-1])
        return function(frame, node, *args, **keywords)

    return refusing


def _pairwise(frame: Frame, node, source):
    source = _counted(frame, node, source)
    _refuse_cursor(frame, node, source)
    if source.trips is not None:
        return Iterable(lambda k: (source.get(k), source.get(k + 1)),
                        trips=max(source.trips - 1, 0), held=source.held)
    lo, hi, step = source.bounds
    return Iterable(lambda k: (source.get(k), source.get(k + 1)), (lo, value(hi) - 1, step),
                    held=source.held)


def _islice(frame: Frame, node, source, *bounds):
    source = _counted(frame, node, source)
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    start, step = (frame.static(b, "a bound of islice", node) for b in (start or 0, step or 1))
    if (start, step) != (0, 1):
        _refuse_cursor(frame, node, source)
    if source.trips is not None:
        places = range(source.trips)[start:stop if stop is
                                     None else frame.static(stop, "a bound of islice", node):step]
        return Iterable(lambda k: source.get(places[k]), trips=len(places), held=source.held)
    stop = source.bounds[1] if stop is None else stop if source.is_endless else _smaller(
        frame.value(stop), source.bounds[1])
    if step != 1:
        count = FUNCTIONS[operator.floordiv](frame.value(stop) - start + (step - 1), value(step))
        return Iterable(lambda k: source.get(k * step + start), (0, count, 1), held=source.held)
    if isinstance(stop, int) and start == 0:
        return Iterable(source.get, (0, stop, 1), held=source.held)
    return Iterable(lambda k: source.get(k + start), (0, frame.value(stop) - start, 1),
                    held=source.held)


def _chain(frame: Frame, node, *sources):
    parts = [as_sequence(frame, node, s) for s in sources]
    known = [frame.members(p) for p in parts]
    if None not in known:
        return tuple(x for part in known for x in part)
    return functools.reduce(lambda a, b: binary(frame, gast.Add(), a, b, node),
                            [_KNOWN_LIST(frame, node, p) for p in parts])


def _chain_from(frame: Frame, node, sources):
    members = frame.members(as_sequence(frame, node, sources))
    if members is None:
        raise frame.refuse("chain.from_iterable of a run-time number of parts", node,
                           "extend a list in a loop")
    return _chain(frame, node, *members)


def _product(frame: Frame, node, *sources, repeat=1):
    sources = [_counted(frame, node, s) for s in sources] * frame.static(repeat, "repeat=", node)
    sizes = [s.trips if s.trips is not None else s.bounds[1] for s in sources]
    if (all(isinstance(n, int) for n in sizes) and int(np.prod(sizes)) <= MOST_KNOWN
            and any(s.trips is not None for s in sources)):
        places = list(itertools.product(*map(range, sizes)))
        return Iterable(lambda k: tuple(s.get(i) for s, i in zip(sources, places[k])),
                        trips=len(places), held=tuple(h for s in sources for h in s.held))
    sources = [_at_run_time(frame, s) for s in sources]

    def get(k):
        found, rest = [], value(k)
        for s in reversed(sources[1:]):
            found.append(s.get(rest % value(s.bounds[1])))
            rest = rest // value(s.bounds[1])
        return (*(source.get(rest) for source in sources[:1]), *found[::-1])

    total = functools.reduce(lambda a, b: a * b, (value(s.bounds[1]) for s in sources), value(1))
    return Iterable(get, (0, total, 1), held=tuple(h for s in sources for h in s.held))


def _ndindex(frame: Frame, node, *shape):
    """np.ndindex(2, 3), np.ndindex(a.shape)."""
    if len(shape) == 1 and (dims := _listed_shape(frame, shape[0])) is not None:
        shape = dims
    return _product(frame, node, *(apply(frame, range, [n], {}, node) for n in shape))


def _listed_shape(frame: Frame, shape) -> list | None:
    """The lengths in a shape, a tuple or `a.shape`; None for a number."""
    if isinstance(shape, Cell):
        content = frame.heap.read(shape)
        if content.op is not None and content.op.name == "shape" and isinstance(
                content.op.inputs[0].type, Array):
            return [
                length(content.op.inputs[0], axis=k) for k in range(content.op.inputs[0].type.rank)
            ]
    return frame.members(shape)


def _ndenumerate(frame: Frame, node, source):
    """np.ndenumerate(a): pairs of an index and the current element of `a` there."""
    if not isinstance(source, Cell) or not isinstance(frame.heap.type_of(source), Array):
        raise frame.refuse("np.ndenumerate of something other than an array whose axes are known",
                           node, "write the loops")
    content = frame.heap.read(source)
    places = _ndindex(frame, node, *(length(content, axis=k) for k in range(content.type.rank)))

    def get(k):
        place = places.get(k)
        return place, take(frame, source, place)

    return Iterable(get, places.bounds, places.trips, held=(source,))


def _choices(known: Callable, run_time: dict[int, Callable]) -> Callable:
    """combinations, permutations: of static members at compile time, of others as loops."""

    def choose(frame: Frame, node, source, r=None):
        members, source = _members(frame, node, source)
        r = None if r is None else frame.static(r, "how many to choose", node)
        if members is not None:
            return tuple(known(members, *([] if r is None else [r])))
        if r not in run_time:
            raise frame.refuse(f"{known.__name__} of {r or 'all'} out of a run-time number", node,
                               "write the loops")
        return call_library(frame, node, run_time[r], source)

    return choose


def _zip_longest(frame: Frame, node, *sources, fillvalue=None):
    parts = [frame.members(as_sequence(frame, node, s)) for s in sources]
    if None in parts:
        raise frame.refuse("zip_longest of run-time lengths", node,
                           "loop over the longer one, and test the index")
    return tuple(itertools.zip_longest(*parts, fillvalue=fillvalue))


def _accumulate(frame: Frame, node, source, func=operator.add, *, initial=None):
    items = as_sequence(frame, node, source)
    items = new_list(frame, items) if isinstance(items, tuple) else items
    if initial is None:
        return call_library(frame, node, library.accumulated, items, func)
    return call_library(frame, node, library.accumulated_from, items, func, initial)


def _reduce(frame: Frame, node, function, source, *start):
    if start:
        return call_library(frame, node, library.reduced_from, function, source, start[0])
    items = as_sequence(frame, node, source)
    if frame.members(items) is not None and not frame.members(items):
        raise TypeMismatchError("reduce of an empty sequence without a start", frame.line(node),
                                "give it a third argument")
    return call_library(frame, node, library.reduced, function, items)


def _len(frame: Frame, node, source):
    if is_keyed(source):
        return frame.session.call(frame, Method(source.cls.__len__, source), [], {}, node)
    if isinstance(source, Iterable) and source.is_range:
        lo, hi, step = source.bounds
        if all(isinstance(b, int) for b in source.bounds):
            return len(range(lo, hi, step))
        if step == 1:
            return FUNCTIONS[max](value(hi) - lo, value(0))
    return _KNOWN_LEN(frame, node, source)


# ---------------------------------------------------------------------------------------- operators


def _binary(kind) -> Callable:
    return lambda frame, node, a, b: binary(frame, kind(), a, b, node)


def _compare(kind) -> Callable:
    return lambda frame, node, a, b: compare(frame, kind(), a, b, node)


def _unary(kind) -> Callable:
    return lambda frame, node, a: unary(frame, kind(), a, node)


def _truth(frame: Frame, node, x=False):
    return truth(frame, x, node)


OPERATORS = {
    **{
        getattr(operator, name): _binary(kind)
        for name, kind in {
            "add": gast.Add,
            "sub": gast.Sub,
            "mul": gast.Mult,
            "truediv": gast.Div,
            "floordiv": gast.FloorDiv,
            "mod": gast.Mod,
            "pow": gast.Pow,
            "matmul": gast.MatMult,
            "and_": gast.BitAnd,
            "or_": gast.BitOr,
            "xor": gast.BitXor,
            "lshift": gast.LShift,
            "rshift": gast.RShift,
            "concat": gast.Add
        }.items()
    },
    **{
        getattr(operator, name): _compare(kind)
        for name, kind in {
            "lt": gast.Lt,
            "le": gast.LtE,
            "gt": gast.Gt,
            "ge": gast.GtE,
            "eq": gast.Eq,
            "ne": gast.NotEq
        }.items()
    }, operator.neg: _unary(gast.USub),
    operator.pos: _unary(gast.UAdd),
    operator.invert: _unary(gast.Invert),
    operator.abs: lambda frame, node, x: apply(frame, abs, [x], {}, node),
    operator.not_: lambda frame, node, x: negation(truth(frame, x, node)),
    operator.truth: _truth,
    operator.contains: lambda frame, node, xs, x: compare(frame, gast.In(), x, xs, node),
    operator.is_: _compare(gast.Is),
    operator.is_not: _compare(gast.IsNot),
}

# --------------------------------------------------------------------------------------------- math


def _integers(function: Callable, meaning: Callable) -> Callable:
    """A function of integers: evaluated at compile time, or inlined from library/."""

    def compute(frame: Frame, node, *args):
        if all(map(frame.is_static, args)):
            try:
                return function(*(frame.static(a, "this") for a in args))
            except (TypeError, ValueError) as error:
                guard(frame, type(error), lambda: True, *error.args)
                raise TypeMismatchError(f"math.{function.__name__}: {error}", frame.line(node),
                                        "pass integers") from None
        for a in args:
            if (getattr(frame.value(a).type, "dtype", None) or "int").startswith(
                ("float", "complex")):
                raise TypeMismatchError(f"math.{function.__name__} of a float", frame.line(node),
                                        "convert with int()")
        return call_library(frame, node, meaning, *args)

    return compute


def _fsum(frame: Frame, node, source):
    source = as_sequence(frame, node, source)
    if is_caught(frame, ValueError):  # elsewhere the op raises it
        return call_library(frame, node, library.exact_sum, source)
    return _finite_sum(frame, node, source)


def _finite_sum(frame: Frame, node, source):
    items = list_value(frame, source) if isinstance(source, tuple) else as_list(frame, source)
    with guarding(frame):
        return exact_sum(items)


def _next(frame: Frame, node, source, default=ALL):
    return next_of(
        frame, node, source, default,
        lambda taken, count: call_library(frame, node, library.require_item, taken, count))


def _cycle(frame: Frame, node, source):
    """itertools.cycle(source): endless even for an empty source, where its index is invalid."""
    items = as_sequence(frame, node, source)
    members = frame.members(items)
    if members and all(isinstance(x, (Value, int, float, complex)) for x in members):
        items = new_list(frame, members)
        as_list(frame, items)  # before all loops that ask for the next one
    count = apply(frame, len, [items], {}, node)
    return Iterable(lambda k: take(frame, items, binary(frame, gast.Mod(), k, count, node)),
                    (0, ENDLESS, 1), held=(items,))


BUILTINS.update({
    **OPERATORS, library.finite_sum: _finite_sum,
    library.by_keys: _by_keys,
    library.order_of: _order_of,
    library.indexable: as_sequence,
    list: _list,
    tuple: _tuple,
    sum: _sum,
    any: _truth_of(any, library.any_of),
    all: _truth_of(all, library.all_of),
    sorted: _sorted,
    len: _len,
    max: _extreme(max, operator.gt),
    min: _extreme(min, operator.lt),
    map: _map,
    filter: _refuse_endless(_filter),
    zip: _zip,
    functools.reduce: _reduce,
    itertools.starmap: _starmap,
    itertools.repeat: _repeat,
    itertools.count: _count,
    itertools.islice: _islice,
    np.ndindex: _ndindex,
    np.ndenumerate: _ndenumerate,
    itertools.chain: _chain,
    itertools.chain.from_iterable: _chain_from,
    itertools.product: _product,
    itertools.accumulate: _accumulate,
    itertools.zip_longest: _zip_longest,
    itertools.combinations: _choices(itertools.combinations, {
        2: library.pairs,
        3: library.triples
    }),
    itertools.combinations_with_replacement: _choices(itertools.combinations_with_replacement,
                                                      {2: library.pairs_with_replacement}),
    itertools.permutations: _choices(itertools.permutations, {2: library.pairs_in_any_order}),
    itertools.filterfalse: _refuse_endless(lambda frame, node, f, xs: call_library(
        frame, node, library.filtered_false, f, xs)),
    itertools.takewhile: lambda frame, node, f, xs: call_library(
        frame, node, library.taken_while, f, xs),
    itertools.dropwhile: _refuse_endless(lambda frame, node, f, xs: call_library(
        frame, node, library.dropped_while, f, xs)),
    itertools.compress: lambda frame, node, xs, s: call_library(
        frame, node, library.selected, xs, s),
    np.fromiter: lambda frame, node, xs, dtype=float, count=-1: apply(
        frame, np.array, [as_sequence(frame, node, xs)], {"dtype": dtype}, node),
    math.fsum: _fsum,
    math.gcd: _integers(math.gcd, library.greatest_divisor),
    math.lcm: _integers(math.lcm, library.least_multiple),
    math.factorial: _integers(math.factorial, library.factorial),
    math.comb: _integers(math.comb, library.choose),
    math.perm: _integers(math.perm, library.arrange),
    math.isqrt: _integers(math.isqrt, library.integer_root),
    iter: iterator_of,
    next: _next,
    itertools.cycle: _cycle,
    itertools.groupby: refused("itertools.groupby",
                               "compare each item with the one before, in a loop"),
    itertools.tee: refused("itertools.tee", "make a list, and loop over it twice"),
})
if hasattr(itertools, "pairwise"):
    BUILTINS[itertools.pairwise] = _pairwise

ITERATORS = [
    map, filter, zip, enumerate, reversed, np.ndindex, np.ndenumerate,
    itertools.chain.from_iterable,
    *(f for f in BUILTINS if getattr(f, "__module__", "") == "itertools")
]
BUILTINS.update({f: gives_iterator(BUILTINS[f], f"{f.__name__}()") for f in ITERATORS})
