"""Guard ops inside a `try`: test the raise condition of their record before they are emitted.

Python's own numbers raise ZeroDivisionError; NumPy's, and arrays, warn and go on.  The type tells
the two apart, except where the paths that lead to a number differ in that: such a division is
refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from ...ir.builder import not_watched, watching
from ...ir.graph import MISSING, OPERATORS, Function, Value, walk
from ...ir.types import Array, Dim, Scalar, Unknown
from ...ops.core.array_raise_conditions import do_not_agree
from ...ops.core.raise_conditions import Raises
from ...ops.core.record import Record, dims_of, value
from ...ops.core.shape import length
from ..domain.frame import Frame
from ..domain.heap import Cell
from .exceptions import guard, is_caught
from .lists import length_of_list


def guard_known(frame: Frame, error: ArithmeticError) -> None:
    """Throw `error`, raised by static arithmetic."""
    guard(frame, type(error), lambda: True, *error.args)


def guarding(frame: Frame, function=None,
             in_brackets: bool = False) -> contextlib.AbstractContextManager:
    """A context that guards each op emitted inside it, if an enclosing `try` catches what the op
    may raise.

    NumPy's and SciPy's functions convert Python's numbers to their own before they compute
    anything, and arithmetic on these does not raise.  `in_brackets`, numbers that index have been
    guarded (`guard_index`, as the program wrote them: relative to a view, say).
    """
    if not frame.session.tries:
        return contextlib.nullcontext()
    module = getattr(function, "__module__", None) or ""
    is_numpys = isinstance(function, np.ufunc) or module.split(".")[0] in ("numpy", "scipy")

    def look(record: Record, inputs: tuple, attrs: dict, met: tuple) -> None:
        for each in record.raises:
            if (each.kind is not None and is_caught(frame, each.kind)
                and not (each.pythons and is_numpys) and (each.in_brackets or not in_brackets)):
                _guard(frame, record, each, inputs, attrs)
        if met and is_caught(frame, ValueError):
            with not_watched():
                _guard_extents(frame, record, inputs, met)

    return watching(look)


def _guard_extents(frame: Frame, record: Record, inputs: tuple, met: tuple) -> None:
    """Guard the equalities of extents that an op requires."""
    for a, b, broadcasts in met:
        n, m = _length_of(a, inputs), _length_of(b, inputs)
        differ = None if n is None or m is None else do_not_agree(n, m, broadcasts)
        if differ is not None:
            # a non-square matrix
            of_one = any({a, b} <= set(dims_of(x.type)) for x in inputs) and not record.elementwise
            guard(frame, np.linalg.LinAlgError if of_one else ValueError,
                  lambda differ=differ: differ,
                  f"{record.name}: the lengths of the operands do not agree")


def _length_of(dim: Dim, inputs: tuple) -> Value | None:
    """This extent as a number: a literal, or the length of an operand that has it."""
    if isinstance(dim, int):
        return value(dim)
    return next((length(x, axis=k) for x in inputs
                 for k, d in enumerate(dims_of(x.type)) if d == dim), None)


def _guard(frame: Frame, record: Record, each: Raises, inputs: tuple, attrs: dict) -> None:
    condition = each.asked(inputs, attrs)
    if condition is not None and (not each.pythons or _is_pythons(frame, inputs, each.tries)):
        with not_watched():
            guard(frame, each.kind, lambda: condition, *each.arguments(record.evaluate, inputs))


def require_quiet(frame: Frame, function: Function, name: str, node) -> None:
    """Refuse a call that is not inlined statement by statement, if it may raise a caught exception.
    """
    kind = _raised_in(frame, function, frozenset()) if frame.session.tries else None
    if kind is not None:
        raise frame.refuse(
            f"{name} may raise {kind.__name__}, which a `try` around the call catches", node,
            "call it outside the try, or write what it does in a plain function")


def _raised_in(frame: Frame, function: Function, seen: frozenset) -> type | None:
    """The caught exceptions that the ops of a function may raise."""
    for op in walk(function.block):
        if op.name == "call" and op.attrs["callee"] not in seen:
            found = _raised_in(frame, op.attrs["callee"].function_for(op.inputs),
                               seen | {op.attrs["callee"]})
            if found is not None:
                return found
        is_pythons = all(isinstance(x.type, Scalar) and x.type.weak for x in op.inputs)
        for each in op.record.raises:
            if (each.kind is not None and is_caught(frame, each.kind)
                and (is_pythons or not each.pythons) and each.is_possible(op.inputs, op.attrs)):
                return each.kind
    return None


def _is_known(x, test: Callable) -> bool:
    known = x.constant if isinstance(x, Value) else x
    return isinstance(known, (int, float)) and test(known)


def _is_pythons(frame: Frame, operands: tuple, in_doubt: bool) -> bool:
    """Whether all operands are Python numbers; if that depends on the path, refuse, unless
    `in_doubt` says that they may be taken for such.
    """
    types = [x.type for x in operands]
    if any(isinstance(t, Unknown) for t in types) and not any(isinstance(t, Array) for t in types):
        if in_doubt:
            return True
        raise frame.refuse("whether this raises is known only at a call", None,
                           "call the function first, or annotate "
                           "its parameters")
    if not all(isinstance(t, Scalar) for t in types):
        return False
    values = [x for x in operands if x.constant is MISSING]
    if any(not x.type.weak and _is_numpys(frame, x) for x in values):
        return False
    for x in values:
        if not x.type.weak and not in_doubt:
            raise frame.refuse(
                f"whether {x.name or 'this'} is a number of Python's, which raises "
                "ZeroDivisionError, or of NumPy's, which does not, depends on the path taken", None,
                f"say which: `float({x.name or 'x'})`")
    return True


def _is_numpys(frame: Frame, x: Value) -> bool:
    """Whether a number is NumPy's on all paths rather than on some."""
    if not isinstance(x.type, Scalar):
        return True
    if x.type.weak:
        return False
    # a parameter: of the function, whose type is the caller's, or of a loop, which may mix the two
    if x.op is None:
        session = frame.session
        return (x in session.block.params
                or any(x is param for param, _ in session.captures.values()))
    if x.op.name == "if":
        k = x.op.outputs.index(x)
        return all(_is_numpys(frame, block.yields[k]) for block in x.op.blocks)
    if x.op.blocks or x.op.name == "call":
        return False
    scalars = [y for y in x.op.inputs if isinstance(y.type, Scalar) and not y.type.weak]
    return (not x.op.record.elementwise or len(scalars) < 1
            or any(_is_numpys(frame, y) for y in scalars)
            or any(isinstance(y.type, Array) for y in x.op.inputs))


def guard_index(frame: Frame, content: Value, pattern: tuple, operands: list) -> None:
    """`a[i, j]`: IndexError for an integer index out of range of its axis."""
    if not frame.session.tries or not is_caught(frame, IndexError):
        return
    for axis, index in _numbers(pattern, operands):
        if isinstance(content.type, Array) and axis < content.type.rank:
            count = length(content, axis=axis)
        else:
            return
        if _is_inside(frame, index, count):
            continue
        guard(frame, IndexError, lambda index=index, count=count: _outside(index, count),
              f"index is out of bounds for axis {axis}")


def guard_list_index(frame: Frame, xs: Cell, key) -> None:
    """`xs[k]`, of a list: IndexError for k out of range."""
    if isinstance(key, (slice, Cell)) or not is_caught(frame, IndexError):
        return
    guard(frame, IndexError, lambda: _outside(value(key), value(length_of_list(frame, xs))),
          "list index out of range")


def _outside(index: Value, count: Value):
    high = OPERATORS["greater_equal"](index, count)
    if _is_known(index, lambda k: k >= 0):
        return high
    low = OPERATORS["less"](index, -value(count))
    return low if _is_known(index, lambda k: k < 0) else _either(low, high)


def _is_inside(frame: Frame, index: Value, count: Value) -> bool:
    """Whether an index is a loop counter over the axis: `for i in range(len(x)): x[i]`."""
    bounds = frame.session.counters.get(index)
    if bounds is None:
        return False
    lo, hi, step = bounds
    return _is_known(lo, lambda k: k >= 0) and _is_known(step, lambda k: k > 0) and _same(hi, count)


def _same(a, b) -> bool:
    if a is b:
        return True
    if not all(isinstance(x, Value) and x.op is not None and x.op.name == "length" for x in (a, b)):
        return False
    dims = [
        x.op.inputs[0].type.dims[x.op.attrs["axis"]] for x in (a, b)
        if isinstance(x.op.inputs[0].type, Array)
    ]
    return len(dims) == 2 and dims[0] == dims[1] and not getattr(dims[0], "accepts_any", False)


def _numbers(pattern: tuple, operands: list) -> Iterator[tuple[int, Value]]:
    """The axes with integer indices, as far as known, and the indices."""
    rest = list(operands)
    for axis, p in enumerate(pattern):
        if p is ... or p is None or not isinstance(p, str):
            return
        if p == "i":
            index = rest.pop(0)
            if not isinstance(index.type, Scalar) or index.type.dtype == "bool":
                return
            yield axis, index
        else:
            del rest[:p.count("x")]


def _either(a, b):
    return OPERATORS["bitwise_or"](value(a), value(b))
