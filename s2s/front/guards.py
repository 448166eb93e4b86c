"""What operations raise, and when: where a `try` around may catch it, each is asked before it is evaluated.

Python's own numbers raise ZeroDivisionError; NumPy's, and arrays, warn and go on.  Which of the two a number is its
type says, except where the paths that lead to it differ in that: such a division is refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator

import numpy as np

from ..ir.graph import MISSING, OPERATORS, Value
from ..ir.types import Array, Scalar, Unknown, is_inexact
from ..ops.linalg import indefinite, singular
from ..ops.record import FUNCTIONS, RECORDS, value
from ..ops.shape import length
from .alias import Cell
from .frame import Frame
from .lists import length_of_list
from .raising import guard, is_caught

NUMBERS = (bool, int, float, complex)
DIVISIONS = {"divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod}


def guard_known(frame: Frame, error: ArithmeticError) -> None:
    """Arithmetic on known numbers has raised `error`."""
    guard(frame, type(error), lambda: True, *error.args)


def guard_operator(frame: Frame, name: str, a, b) -> None:
    """`a op b`."""
    if name in DIVISIONS and _is_zero_caught(frame):
        if not _is_pythons(frame, a, b):
            return
        guard(frame, ZeroDivisionError, lambda: OPERATORS["equal"](value(b), value(0)),
              _message(DIVISIONS[name], _sample(a), _sample(b)))
    elif name == "power" and _is_zero_caught(frame) and not _is_known(b, lambda x: x >= 0) and _is_pythons(frame, a, b):
        guard(frame, ZeroDivisionError,
              lambda: _both(OPERATORS["equal"](value(a), value(0)), OPERATORS["less"](value(b), value(0))),
              _message(operator.pow, _sample(a), -1.0))


def _is_zero_caught(frame: Frame) -> bool:
    return is_caught(frame, ZeroDivisionError)


def _is_known(x, test: Callable) -> bool:
    known = x.constant if isinstance(x, Value) else x
    return isinstance(known, (int, float)) and test(known)


def _sample(x):
    """Zero, of the kind that `x` is of."""
    dtype = x.type.dtype if isinstance(x, Value) else type(x).__name__
    return 0 if dtype in ("int", "int64", "bool") else 0j if "complex" in dtype else 0.0


def _message(compute: Callable, a, b) -> str:
    try:
        compute(a, b)
    except ZeroDivisionError as error:
        return str(error)
    return ""


def _is_pythons(frame: Frame, *operands) -> bool:
    """Whether all operands are Python's own numbers; refused where that depends on the path taken."""
    if any(isinstance(x, Cell) and isinstance(frame.heap.read(x).type, Unknown) for x in operands) and not any(
            isinstance(x, Cell) and isinstance(frame.heap.read(x).type, Array) for x in operands):
        raise frame.refuse("whether this raises is known only at a call", None, "call the function first, or annotate "
                                                                               "its parameters")
    if not all(isinstance(x, NUMBERS) or isinstance(x, Value) and isinstance(x.type, Scalar) for x in operands):
        return False
    values = [x for x in operands if isinstance(x, Value) and x.constant is MISSING]
    if any(not x.type.weak and _is_numpys(frame, x) for x in values):
        return False
    for x in values:
        if not x.type.weak:
            raise frame.refuse(f"whether {x.name or 'this'} is a number of Python's, which raises ZeroDivisionError, or "
                               "of NumPy's, which does not, depends on the path taken", None,
                               f"say which: `float({x.name or 'x'})`")
    return True


def _is_numpys(frame: Frame, x: Value) -> bool:
    """Whether a number is NumPy's on all paths, and not only on some."""
    if not isinstance(x.type, Scalar):
        return True
    if x.type.weak:
        return False
    if x.op is None:  # a parameter: of the function, whose type is the caller's, or of a loop, which may mix the two
        session = frame.session
        return x in session.block.params or any(x is param for param, _ in session.captures.values())
    if x.op.name == "if":
        k = x.op.outputs.index(x)
        return all(_is_numpys(frame, block.yields[k]) for block in x.op.blocks)
    if x.op.blocks or x.op.name == "call":
        return False
    scalars = [y for y in x.op.inputs if isinstance(y.type, Scalar) and not y.type.weak]
    return not x.op.record.elementwise or len(scalars) < 1 or any(_is_numpys(frame, y) for y in scalars) or any(
        isinstance(y.type, Array) for y in x.op.inputs)


def guard_index(frame: Frame, content: Value, pattern: tuple, operands: list) -> None:
    """`a[i, j]`: IndexError where a number is not among the positions of its axis."""
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
    """`xs[k]`, of a list."""
    if isinstance(key, (slice, Cell)) or not is_caught(frame, IndexError):
        return
    guard(frame, IndexError, lambda: _outside(value(key), value(length_of_list(frame, xs))), "list index out of range")


def _outside(index: Value, count: Value):
    high = OPERATORS["greater_equal"](index, count)
    if _is_known(index, lambda k: k >= 0):
        return high
    low = OPERATORS["less"](index, -value(count))
    return low if _is_known(index, lambda k: k < 0) else _either(low, high)


def _is_inside(frame: Frame, index: Value, count: Value) -> bool:
    """Whether an index counts through the positions of the axis: `for i in range(len(x)): x[i]`."""
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
    dims = [x.op.inputs[0].type.dims[x.op.attrs["axis"]] for x in (a, b) if isinstance(x.op.inputs[0].type, Array)]
    return len(dims) == 2 and dims[0] == dims[1] and not getattr(dims[0], "accepts_any", False)


def _numbers(pattern: tuple, operands: list) -> Iterator[tuple[int, Value]]:
    """The axes that are indexed by numbers, as far as they can be told, and the numbers."""
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


def _both(a, b):
    return OPERATORS["bitwise_and"](value(a), value(b))


def _either(a, b):
    return OPERATORS["bitwise_or"](value(a), value(b))


# ------------------------------------------------------------------------------------------------ functions

DOMAIN = {  # of Python's math: where it raises ValueError
    math.sqrt: lambda x: x < 0,
    math.log: lambda x, *base: x <= 0, math.log2: lambda x: x <= 0, math.log10: lambda x: x <= 0,
    math.log1p: lambda x: x <= -1,
    math.acos: lambda x: _either(x < -1, x > 1), math.asin: lambda x: _either(x < -1, x > 1),
    math.acosh: lambda x: x < 1, math.atanh: lambda x: _either(x <= -1, x >= 1),
    math.sin: lambda x: FUNCTIONS[np.isinf](x), math.cos: lambda x: FUNCTIONS[np.isinf](x),
    math.tan: lambda x: FUNCTIONS[np.isinf](x),
    math.fmod: lambda x, y: _either(OPERATORS["equal"](value(y), value(0)), FUNCTIONS[np.isinf](value(x))),
}
RANGE = {  # where it raises OverflowError: the last x for which the result is a number
    math.exp: math.log(1.7976931348623157e308), math.expm1: math.log(1.7976931348623157e308),
    math.sinh: 710.4758600739439, math.cosh: 710.4758600739439,
}
MESSAGES = {  # of ValueError, by what Python itself says
    math.sqrt: -1.0, math.log: 0.0, math.log2: 0.0, math.log10: 0.0, math.log1p: -1.0, math.acos: 2.0,
    math.asin: 2.0, math.acosh: 0.0, math.atanh: 1.0, math.sin: math.inf, math.cos: math.inf, math.tan: math.inf,
}


def guard_function(frame: Frame, function: Callable, args: list) -> None:
    """`function(*args)`, a function that s2s knows."""
    if function not in LINALG and function not in DOMAIN and function not in RANGE:
        return
    if function in LINALG and is_caught(frame, np.linalg.LinAlgError):
        _guard_linalg(frame, function, frame.value(args[0]))
        return
    numbers = [frame.value(a) if isinstance(a, (Value, Cell)) else a for a in args]
    if not all(isinstance(x, (Value, *NUMBERS)) for x in numbers):
        return
    numbers = [value(x) for x in numbers]
    if function in DOMAIN and is_caught(frame, ValueError):
        guard(frame, ValueError, lambda: DOMAIN[function](*numbers), _said(function))
    if function in RANGE and is_caught(frame, OverflowError):
        limit = RANGE[function]
        x = numbers[0]
        guard(frame, OverflowError, lambda: _both(x > limit, x < math.inf) if function in (math.exp, math.expm1) else
              _both(FUNCTIONS[np.abs](x) > limit, FUNCTIONS[np.abs](x) < math.inf), "math range error")


LINALG = {np.linalg.solve: (singular, "Singular matrix"), np.linalg.inv: (singular, "Singular matrix"),
          np.linalg.cholesky: (indefinite, "Matrix is not positive definite")}


def _guard_linalg(frame: Frame, function: Callable, a: Value) -> None:
    """The matrix is factorised once to know, and again to compute: LAPACK alone knows what it refuses."""
    question, message = LINALG[function]
    if not isinstance(a.type, Array) or a.type.rank != 2:
        raise frame.refuse(f"np.linalg.{function.__name__} of a stack of matrices, or of one whose rank is known only at a "
                           "call, where LinAlgError is caught", None, "loop over the matrices, or call the function first")
    if not is_inexact(a.type.dtype):
        a = RECORDS["astype"](a, dtype="float64")
    guard(frame, np.linalg.LinAlgError, lambda: question(a), message)


def _said(function: Callable) -> str:
    try:
        function(MESSAGES[function]) if function in MESSAGES else function(1.0, 0.0)
    except ValueError as error:
        return str(error)
    return "math domain error"
