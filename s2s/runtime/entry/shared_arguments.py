"""Refuse calls in which an argument that the program writes to may also be another argument.

    def f(a, b):                  f(x, x) returns 2 in Python: b is written, too
        a[0] = 2.0
        return b[0]               so do f(x, x[:3]) and f({"p": x}, x)

Arguments are separate in generated code, which writes into copies of its own.  What the program
writes to is known when code is generated; whether two arguments are one object, or overlap, only a
call tells.  Programs that write to no argument, or have but one, are not asked.

    m.ravel()[k] = v              writes to m if that is C-contiguous, and else to a copy

So whether an argument is C-contiguous is asked as well, where a program writes in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...errors import Line, UnsupportedError
from ...ir.graph import Function, Recalled
from ...ir.types import Array, Tuple, Type, Unknown


def places_of_written(function: Function | Recalled) -> tuple[list[str], list[str], list[str]]:
    """Python for each argument, or part of one, that the program writes to, for all others that it
    could share memory with, and for those that have to be C-contiguous; `a0` is the first argument.
    """
    written, others, in_order = [], [], []
    places, parameters, contiguous = function.writes
    for k, p in enumerate(function.params):
        if p.name not in parameters:  # a tangent, say
            continue
        for path, place in _mutable(p.type, f"a{k}"):
            (written if (p.name, path) in places else others).append(place)
            if (p.name, path) in contiguous:
                in_order.append(place)
    return written, others, in_order


def _mutable(type: Type, place: str, path: tuple = ()) -> Iterator[tuple[tuple, str]]:
    match type:
        case Array() | Unknown():
            yield path, place
        case Tuple(items, form):
            if form is not None and form.kind != "namedtuple":
                yield path, place
            for k, item in enumerate(items):
                key = k if form is None or form.kind in ("list", "namedtuple") else form.keys[k]
                inner = (f"{place}.{key}" if form is not None and form.kind == "attributes"
                         else f"{place}[{key!r}]")
                yield from _mutable(item, inner, (*path, key))


def condition(function: Function | Recalled) -> str | None:
    """The condition, in Python, on calls of `function`; None if there is none to meet."""
    written, others, in_order = places_of_written(function)
    conditions = [f"{place}.flags.c_contiguous" for place in in_order]
    if written and len(written) + len(others) > 1:
        conditions.append(f"are_apart([{', '.join(written)}], [{', '.join(others)}])")
    return " and ".join(conditions) or None


def are_apart(written: Sequence, others: Sequence) -> bool:
    """Whether no two objects of which one is written are the same, or share memory."""
    seen = {*map(id, others)}
    for k, x in enumerate(written):
        if id(x) in seen:
            return False
        seen.add(id(x))
        if isinstance(x, np.ndarray) and any(_overlap(x, y) for y in (*written[:k], *others)):
            return False
    return True


def _overlap(x: np.ndarray, y) -> bool:
    """Whether two arrays share memory; two that own theirs do not."""
    return (isinstance(y, np.ndarray) and (x.base is not None or y.base is not None)
            and np.may_share_memory(x, y) and _share_exactly(x, y))


def _share_exactly(x: np.ndarray, y: np.ndarray) -> bool:
    try:
        return np.shares_memory(x, y, max_work=10_000)
    except Exception:  # NumPy's TooHardError, which has had several homes
        return True


def sharing_checker(function: Function | Recalled,
                    beginning: Callable[[], Line | None]) -> Callable[..., None] | None:
    """A function of the arguments that raises UnsupportedError where one that is written shares
    memory with another; None if nothing needs checking.
    """
    text = condition(function)
    if text is None:
        return None
    written, others, in_order = places_of_written(function)
    header = f"lambda {', '.join(f'a{k}' for k in range(len(function.params)))}:"
    is_apart = eval(f"{header} {text}", {"are_apart": are_apart})
    read = [(place, eval(f"{header} {place}")) for place in (*written, *others)]
    ordered = [(place, eval(f"{header} {place}")) for place in in_order]

    def check(*args) -> None:
        if is_apart(*args):
            return
        for place, get in ordered:
            if not get(*args).flags.c_contiguous:
                name = _named(place, function)
                raise UnsupportedError(
                    f"{function.name}: {name} is not C-contiguous, and is written to through a "
                    "reshaped view, which NumPy makes of arrays in C order alone",
                    beginning(), f"pass np.ascontiguousarray({name})")
        found = [(place, get(*args)) for place, get in read]
        for k, (place, x) in enumerate(found[:len(written)]):
            for other, y in found[k + 1:]:
                if x is y or isinstance(x, np.ndarray) and _overlap(x, y):
                    a, b = (_named(text, function) for text in (place, other))
                    raise UnsupportedError(
                        f"{function.name}: {a} and {b} "
                        f"{'are the same' if x is y else 'share memory'}, and {a} is written to",
                        beginning(), f"pass a copy as {b}, if it is not meant to change with {a}")

    return check


def _named(place: str, function: Function | Recalled) -> str:
    """Python for a place, with the name of the parameter."""
    end = next((k for k, c in enumerate(place) if c in ".["), len(place))
    return function.params[int(place[1:end])].name + place[end:]
