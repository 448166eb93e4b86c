"""Reading and writing parts of arrays.

An index is split in two: a static `pattern`, one entry per position,

    "i"   an operand: an integer, or an array of integers or booleans
    "abc" a slice; a, b, c are "." where a bound is absent and "x" where it is the next operand
    None  a new axis        ...  the axes that nothing else names

and the operands it consumes, which follow the array in the op's inputs.

    getitem(x, *operands)      x[...]
    setitem(x, v, *operands)   a new array, equal to x except there; prints as `x[...] = v`
    additem(x, v, *operands)   likewise `x[...] += v`, with repeated indices added once each
"""

from __future__ import annotations

import ast

import numpy as np

from ..errors import TypeMismatchError, UnsupportedError
from ..ir.builder import current, fresh_extent
from ..ir.graph import Value
from ..ir.types import Array, Extent, Scalar, Tuple, Unknown
from .record import array_type, broadcast_dims, define, dims_of, is_static, same_shape, static, value
from .shape import sum_to, zeros_of

Pattern = tuple


def operand_count(pattern: Pattern) -> int:
    """How many operands an index of this pattern consumes."""
    return sum(1 if p == "i" else p.count("x") if isinstance(p, str) else 0 for p in pattern)


def is_advanced(pattern: Pattern, operands) -> bool:
    """Whether the index copies (some operand is an array) rather than views."""
    return any(p == "i" and not _is_integer(x) for p, x in _paired(pattern, operands) if p == "i")


def _is_integer(x: Value) -> bool:
    return isinstance(x.type, Scalar) and x.type.dtype != "bool"


def _paired(pattern: Pattern, operands):
    """Each entry with the operand(s) it consumes."""
    rest = list(operands)
    for p in pattern:
        if p == "i":
            yield p, rest.pop(0)
        elif isinstance(p, str):
            yield p, tuple(rest.pop(0) if c == "x" else None for c in p)
        else:
            yield p, None


def expand(pattern: Pattern, rank: int) -> Pattern:
    """The pattern with its ellipsis, written or implied, spelled out as full slices."""
    named = sum(p is not None and p is not ... for p in pattern)
    if named > rank:
        raise TypeMismatchError(f"{named} indices for an array of {rank} axes", current().line,
                                "use as many indices as the array has axes")
    fill = ("...",) * (rank - named)
    if ... in pattern:
        k = pattern.index(...)
        return pattern[:k] + fill + pattern[k + 1:]
    return pattern + fill


def index_dims(x: Value, operands, pattern: Pattern) -> tuple:
    """The extents of `x[...]`."""
    dims = list(dims_of(x.type))
    basic, advanced, places = [], [], []
    for p, operand in _paired(expand(pattern, len(dims)), operands):
        if p is None:
            basic.append(1)
        elif p == "i":
            extent = dims.pop(0)
            if isinstance(operand.type, Scalar) and operand.type.dtype != "bool":
                if isinstance(operand.constant, int) and isinstance(extent, int) and not -extent <= operand.constant < extent:
                    raise TypeMismatchError(f"index {operand.constant} is out of range for an axis of {extent}", current().line)
                places.append((len(basic), None))
            elif isinstance(operand.type, Array) and operand.type.dtype == "bool":
                for _ in operand.type.dims[1:]:
                    dims.pop(0)
                advanced.append((fresh_extent(),))
                places.append((len(basic), True))
            elif isinstance(operand.type, Array):
                advanced.append(operand.type.dims)
                places.append((len(basic), True))
            else:
                raise UnsupportedError(f"an index of type {operand.type}", current().line,
                                       "index with integers, slices or arrays of integers")
        else:
            basic.append(_slice_extent(dims.pop(0), *operand))
    if not advanced:
        return tuple(basic)
    positions = [at for at, is_array in places]
    shape = broadcast_dims(*advanced)
    first = positions[0] if len(set(positions)) == 1 else 0
    return tuple(basic[:first]) + shape + tuple(basic[first:])


def _slice_extent(extent, lo, hi, step):
    """The length of a slice of an axis of length `extent`, exactly where offsets from its ends are known."""
    bounds = [None if b is None or b.constant is None else b for b in (lo, hi, step)]
    known = [None if b is None else b.constant if isinstance(b.constant, int) else "?" for b in bounds]
    if isinstance(extent, int):
        return fresh_extent() if "?" in known else len(range(extent)[slice(*known)])
    start, stop, stride = known
    if start in (None, 0) and stop is None and stride in (None, 1, -1):
        return extent
    if "?" in known or stride not in (None, 1) or extent.offset > 0:
        return fresh_extent()
    start = start or 0
    if start >= 0 and (stop is None or stop < 0):
        return Extent(extent.symbol, extent.offset - start + (stop or 0))
    return fresh_extent()


def _infer_getitem(x: Value, *operands: Value, pattern: Pattern):
    match x.type:
        case Unknown(_, dtype):
            return Unknown(dtype=dtype)
        case Array(dtype):
            return array_type(dtype, index_dims(x, operands, pattern))
        case Tuple(items):
            if len(set(items)) == 1 and pattern == ("i",):
                return items[0]
            raise UnsupportedError(f"indexing {x.type} with a run-time index", current().line,
                                   "index a tuple with literals, or use an array")
    raise TypeMismatchError(f"{x.name or 'this'} is {x.type} and cannot be indexed", current().line)


def _infer_setitem(x: Value, v: Value, *operands: Value, pattern: Pattern):
    if isinstance(x.type, (Array, Unknown)):
        return x.type
    raise TypeMismatchError(f"{x.name or 'this'} is {x.type} and cannot be written into", current().line,
                            "write into an array")


def _infer_additem(x: Value, v: Value, *operands: Value, pattern: Pattern):
    return _infer_setitem(x, v, *operands, pattern=pattern)


def python_index(pattern: Pattern, operands):
    """The index as a Python object, from operands that are arrays and numbers."""
    entries = tuple(slice(*o) if isinstance(p, str) and p != "i" else o if p == "i" else p
                    for p, o in _paired(pattern, operands))
    return entries[0] if len(entries) == 1 else entries


def index_syntax(pattern: Pattern, operands) -> ast.expr:
    """The index as a Python expression."""
    entries = []
    for p, o in _paired(pattern, operands):
        if p == "i":
            entries.append(o)
        elif isinstance(p, str):
            entries.append(ast.Slice(*o))
        else:
            entries.append(ast.Constant(p))
    return entries[0] if len(entries) == 1 else ast.Tuple(entries, ast.Load())


def _set(x, v, *operands, pattern):
    result = np.array(x)
    result[python_index(pattern, operands)] = v
    return result


def _add(x, v, *operands, pattern):
    result = np.array(x)
    np.add.at(result, python_index(pattern, operands), v)
    return result


def _vjp_getitem(bar, y, x, *operands, pattern):
    def accumulate(x_bar):
        return additem(zeros_of(x) if x_bar is None else x_bar, bar, *operands, pattern=pattern)

    return accumulate, *(None for _ in operands)


def _vjp_setitem(bar, y, x, v, *operands, pattern):
    return (lambda x_bar: _plus(x_bar, setitem(bar, 0.0, *operands, pattern=pattern)),
            sum_to(getitem(bar, *operands, pattern=pattern), v), *(None for _ in operands))


def _vjp_additem(bar, y, x, v, *operands, pattern):
    return bar, sum_to(getitem(bar, *operands, pattern=pattern), v), *(None for _ in operands)


def _plus(a: Value | None, b: Value) -> Value:
    return b if a is None else a + b


def _jvp_getitem(dots, y, x, *operands, pattern):
    return None if dots[0] is None else getitem(dots[0], *operands, pattern=pattern)


def _jvp_written(op):
    def jvp(dots, y, x, v, *operands, pattern):
        x_dot, v_dot = dots[:2]
        if x_dot is None and v_dot is None:
            return None
        x_dot = zeros_of(x) if x_dot is None else x_dot
        if v_dot is None:
            return x_dot if op is additem else setitem(x_dot, 0.0, *operands, pattern=pattern)
        return op(x_dot, v_dot, *operands, pattern=pattern)

    return jvp


getitem = define(
    "getitem",
    evaluate=lambda x, *operands, pattern: x[python_index(pattern, operands)],
    infer=_infer_getitem,
    syntax=lambda x, *operands, pattern: ast.Subscript(x, index_syntax(pattern, operands), ast.Load()),
    vjp=_vjp_getitem,
    jvp=_jvp_getitem,
    cheap=True,
    views=(0,),
)


def _same_place(a: Value, operands, pattern: Pattern) -> bool:
    """Whether `a` is made by reading or writing just there."""
    first = 1 if a.op.record is getitem else 2
    return a.op.attrs["pattern"] == pattern and len(a.op.inputs) == len(operands) + first and all(
        x is y or (type(x.constant) is int and x.constant == y.constant)
        for x, y in zip(a.op.inputs[first:], operands))


def _fold_setitem(x: Value, v: Value, *operands: Value, pattern: Pattern):
    """Storing what is there already changes nothing; what is overwritten at once need not be written."""
    if v.op is not None and v.op.record is getitem and v.op.inputs[0] is x and _same_place(v, operands, pattern):
        return x
    if x.op is not None and x.op.record in (setitem, additem) and _same_place(x, operands, pattern):
        return setitem(x.op.inputs[0], v, *operands, pattern=pattern)
    return None


def _fold_additem(x: Value, v: Value, *operands: Value, pattern: Pattern):
    """In a reverse sweep, adding to a zero that was just stored is storing; elsewhere -0.0 forbids it."""
    line = current().line
    if (line is not None and line.backwards and x.op is not None and x.op.record is setitem
            and x.op.inputs[1].constant == 0 and _same_place(x, operands, pattern)
            and not is_advanced(pattern, operands)
            and same_shape(v.type, getitem.infer(x, *operands, pattern=pattern))):
        return setitem(x.op.inputs[0], v, *operands, pattern=pattern)
    return None


setitem = define("setitem", evaluate=_set, infer=_infer_setitem, fold=_fold_setitem, vjp=_vjp_setitem, writes=0,
                 views=(0,))
additem = define("additem", evaluate=_add, infer=_infer_additem, fold=_fold_additem, vjp=_vjp_additem, writes=0,
                 views=(0,))
setitem.jvp, additem.jvp = _jvp_written(setitem), _jvp_written(additem)


def parse_index(key) -> tuple[Pattern, list[Value]]:
    """Pattern and operands of what stands between the brackets: Values, numbers, slices, None, ..., tuples."""
    pattern, operands = [], []
    for k in key if isinstance(key, tuple) else (key,):
        if k is None or k is ...:
            pattern.append(k)
        elif isinstance(k, slice):
            bounds = [k.start, k.stop, k.step]
            absent = [b is None or (isinstance(b, Value) and is_static(b) and static(b) is None) for b in bounds]
            pattern.append("".join("." if a else "x" for a in absent))
            operands += [value(b) for b, a in zip(bounds, absent) if not a]
        else:
            pattern.append("i")
            operands.append(value(k))
    return tuple(pattern), operands


def take(x: Value, key) -> Value:
    """`x[key]`."""
    pattern, operands = parse_index(key)
    return getitem(x, *operands, pattern=pattern)


def put(x: Value, key, v) -> Value:
    """The array that `x` is after `x[key] = v`."""
    pattern, operands = parse_index(key)
    return setitem(x, value(v), *operands, pattern=pattern)
