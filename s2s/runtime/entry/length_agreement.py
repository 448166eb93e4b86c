"""Check that the lengths of a call's arguments agree.

A function's IR records which extents of its arguments meet in an op in every run (ir/graph.py,
`Meeting`). The derivative of `np.sum(x + y)` does not compute the sum, and would treat an x and a y
of unequal lengths wrongly; so the error that the op would have raised is raised at the call.
Arguments of one type, such as a tangent and its primal, share symbols for their lengths, which must
be equal.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...errors import Line, ShapeMismatchError
from ...ir.graph import Function, Meeting, Recalled
from ...ir.types import Array, Dim, Tuple, Type
from ...ops.core.control import member_syntax


@dataclass(frozen=True)
class Agreement:
    """A condition on a call: `text` is a Python expression over `a0`, `a1`, ... that holds where
    they agree.
    """

    text: str
    operands: tuple[str, str]  # Python for the two lengths
    line: Line | None
    remedy: str = Meeting.remedy


def agreements(function: Function) -> list[Agreement]:
    """The conditions that calls of `function` must meet."""
    places: dict[str, str] = {}  # symbol -> Python for the length it stands for
    found = []
    for k, p in enumerate(function.params):
        for symbol, place in _lengths(p.type, f"a{k}"):
            if symbol in places:
                found.append(Agreement(f"{places[symbol]} == {place}", (places[symbol], place),
                                       None))
            else:
                places[symbol] = place
    for m in function.meetings:
        sides = [_spelled(d, places) for d in (m.a, m.b)]
        if None in sides:
            continue
        texts = [f"{sides[0]} == {sides[1]}"]
        if m.broadcasts:
            texts += [f"{side} == 1"
                      for side, d in list(zip(sides, (m.a, m.b)))[m.broadcasts == "second":]
                      if not isinstance(d, int) and d.may_be_one]
        found.append(Agreement(" or ".join(texts), tuple(sides), m.line, m.remedy))
    return found


def _lengths(type: Type, place: str) -> Iterator[tuple[str, str]]:
    """The symbols of an argument's extents, with a Python expression for each."""
    match type:
        case Array(_, dims):
            for axis, d in enumerate(dims):
                if not isinstance(d, int) and not d.offset:
                    yield d.symbol, f"{place}.shape[{axis}]"
        case Tuple(items):
            for k, item in enumerate(items):
                member = member_syntax(ast.Name(place, ast.Load()), type.form, k)
                yield from _lengths(item, ast.unparse(member))


def _spelled(d: Dim, places: dict[str, str]) -> str | None:
    if isinstance(d, int):
        return str(d)
    if d.symbol not in places:
        return None
    return places[d.symbol] if not d.offset else f"max({places[d.symbol]}{d.offset:+d}, 0)"


def checker(function: Function | Recalled,
            beginning: Callable[[], Line | None]) -> Callable[..., None] | None:
    """A function of the arguments that raises ShapeMismatchError where they disagree; None if
    nothing needs checking.

    `beginning` finds the line to name if no op's line is to blame.
    """
    asked = agreements(function)
    if not asked:
        return None
    parameters = ", ".join(f"a{k}" for k in range(len(function.params)))
    agree = eval(f"lambda {parameters}: {' and '.join(f'({a.text})' for a in asked)}")
    each = [(a, eval(f"lambda {parameters}: ({a.text}, {a.operands[0]}, {a.operands[1]})"))
            for a in asked]
    names = {f"a{k}": p.name for k, p in enumerate(function.params)}

    def check(*args) -> None:
        if agree(*args):
            return
        for agreement, ask in each:
            fits, m, n = ask(*args)
            if not fits:
                left, right = (_named(text, names) for text in agreement.operands)
                said = [f"{text} is {number}"
                        for text, number in ((left, m), (right, n)) if text != str(number)]
                raise ShapeMismatchError(f"{function.name}: {' and '.join(said)}"
                                         + (f", and {n if right == str(n) else m} is needed"
                                            if len(said) == 1 else ""),
                                         agreement.line or beginning(), agreement.remedy)

    return check


def _named(text: str, names: dict[str, str]) -> str:
    """Python for a length, using the names of the parameters."""
    head = text.removeprefix("max(")
    first = head.split(".")[0].split("[")[0]
    return text.replace(first, names.get(first, first), 1)
