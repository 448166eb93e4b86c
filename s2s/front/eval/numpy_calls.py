"""Call NumPy functions that are implemented in library/numpy_functions.py, after making their
options static.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable

import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import Scalar
from ...lazy_import import Named
from ...library import numpy_functions as library
from ...ops.arrays.argument_checks import within_axes, within_bounds
from ...ops.core.axis_numbers import normal_axis
from ...ops.core.cast import as_dtype
from ...ops.core.elementwise import (
    bitwise_and,
    less,
    less_equal,
    maximum,
    minimum,
    remainder,
)
from ...ops.core.record import FUNCTIONS, dims_of, dtype_of, rank
from ...ops.core.shape import length, shape_giver
from ..domain.frame import Frame
from ..domain.functions import Intrinsic
from ..domain.heap import Cell, Container
from ..values.lists import is_list, new_list
from ..values.numpy_writes import write_out
from .apply import apply, in_place, operate
from .python_builtins import BUILTINS


def _run(frame: Frame, node, function: Callable, *args):
    """A call of a function of library/numpy_functions.py."""
    return in_place(frame, function, list(args), {}, node, current().line)


def _may_be_empty(frame: Frame, node, x, axis=0) -> bool:
    dims = dims_of(frame.value(x).type)
    return not dims or (dims[axis] == 0 if isinstance(dims[axis], int) else dims[axis].least == 0)


def _array(frame: Frame, node, x):
    """`x`, or the array that NumPy converts a list to."""
    return (apply(frame, np.array, [x], {}, node)
            if isinstance(x, (tuple, list)) or is_list(frame, x)
            else x)


def _of_rank(frame: Frame, node, x, wanted: tuple, what: str):
    """`x` as an array; refuse it if its rank is not in `wanted`."""
    x = _array(frame, node, x)
    found = rank(frame.value(x))
    if found not in wanted:
        raise frame.refuse(
            f"{what} of an array of {'unknown rank' if found is None else f'{found} axes'}", node,
            f"give it one of {' or '.join(map(str, wanted))}")
    return x


def _polynomial(function: Callable, first: str) -> Callable:
    """A function of a vector of polynomial coefficients and of the points of evaluation."""
    def evaluated(frame: Frame, node, a, b):
        coefficients, x = (a, b) if first == "c" else (b, a)
        coefficients = _of_rank(frame, node, coefficients, (1,), "a polynomial")
        x = _array(frame, node, x)
        return _run(frame, node, function,
                    *((coefficients, x) if first == "c" else (x, coefficients)))

    return evaluated


def _outer(ufunc: np.ufunc) -> Callable:
    def outer(frame: Frame, node, a, b):
        a, b = _array(frame, node, a), _array(frame, node, b)
        if rank(frame.value(b)) is None:
            raise frame.refuse(f"np.{ufunc.__name__}.outer of an array of unknown rank", node,
                               "call the function once")
        return _run(frame, node, library.outer, ufunc, a, b)

    return outer


def _folded(ufunc: np.ufunc) -> Callable:
    def folded(frame: Frame, node, x, axis=0):
        x = _array(frame, node, x)
        if axis != 0:
            x = apply(frame, np.moveaxis, [x, axis, 0], {}, node)
        return _run(frame, node, library.folded, ufunc, x)

    return folded


def _block(frame: Frame, node, arrays):
    """np.block: nested lists, the innermost joined along the last axis."""
    def depth(x) -> int:
        parts = members(x)
        return 0 if parts is None else 1 + (depth(parts[0]) if parts else 0)

    def members(x):
        if isinstance(x, (tuple, list)) or isinstance(x, Cell) and is_list(frame, x):
            return frame.members(x)
        return None

    def joined(x, axis: int):
        parts = members(x)
        if parts is None:
            return apply(frame, at_least, [x], {}, node) if at_least is not None else x
        return apply(frame, np.concatenate, [tuple(joined(part, axis + 1) for part in parts)],
                     {"axis": axis}, node)

    levels = depth(arrays)
    if levels not in (1, 2):
        raise frame.refuse(f"np.block of lists {levels} deep, or of a list of run-time length",
                           node, "use np.concatenate")
    leaves = [x for part in members(arrays) for x in (members(part) if levels == 2 else (part,))]
    if any((rank(frame.value(x)) or 0) > levels for x in leaves):
        raise frame.refuse("np.block of arrays with more axes than lists", node,
                           "use np.concatenate")
    at_least = {1: np.atleast_1d, 2: np.atleast_2d}[levels]
    return joined(arrays, -levels)


def _equal(frame: Frame, node, a1, a2, equal_nan=False):
    a, b = (apply(frame, np.asarray, [x], {}, node) for x in (a1, a2))
    ranks = rank(frame.value(a)), rank(frame.value(b))
    if None in ranks:
        raise frame.refuse("np.array_equal of an array of unknown rank", node,
                           "call the function once")
    if ranks[0] != ranks[1]:
        return False
    return _run(
        frame, node,
        library.equal_with_nans if frame.static(equal_nan, "equal_nan=", node) else library.equal,
        a, b)


def _joined_rows(frame: Frame, node, *parts):
    """np.r_[parts]: numbers, ranges and arrays concatenated."""
    parts = [_range(frame, node, part) for part in parts]
    return apply(frame, np.concatenate,
                 [tuple(apply(frame, np.atleast_1d, [x], {}, node) for x in parts)], {"axis": 0},
                 node)


def _joined_columns(frame: Frame, node, *parts):
    """np.c_[parts]: vectors as columns."""
    def column(x):
        x = apply(frame, np.atleast_1d, [_range(frame, node, x)], {}, node)
        axes = rank(frame.value(x))
        if axes is None:
            raise frame.refuse("np.c_ of an array of unknown rank", node, "call the function once")
        return apply(frame, np.reshape, [x, (-1, 1)], {}, node) if axes == 1 else x

    return apply(frame, np.concatenate, [tuple(map(column, parts))], {"axis": -1}, node)


def _range(frame: Frame, node, part):
    """The array that np.r_ makes of a slice, start:stop:step or start:stop:count with an imaginary
    count.
    """
    if isinstance(part, str):
        raise frame.refuse("np.r_ or np.c_ with a directive", node,
                           "use np.concatenate or np.stack")
    if not isinstance(part, slice):
        return _array(frame, node, part)
    start, step = 0 if part.start is None else part.start, 1 if part.step is None else part.step
    known = frame.static(step, "a step") if frame.is_static(step) else step
    if isinstance(known, complex):
        return apply(frame, np.linspace, [start, part.stop, int(abs(known))], {}, node)
    return apply(frame, np.arange, [start, part.stop, step], {}, node)


def _grid(frame: Frame, node, *parts):
    """np.mgrid[slices]."""
    axes = [_range(frame, node, part) for part in parts]
    return axes[0] if len(axes) == 1 else apply(
        frame, np.stack, [apply(frame, np.meshgrid, axes, {"indexing": "ij"}, node)], {}, node)


def _open_grid(frame: Frame, node, *parts):
    """np.ogrid[slices]."""
    axes = [_range(frame, node, part) for part in parts]
    return axes[0] if len(axes) == 1 else apply(frame, np.ix_, axes, {}, node)


def _indices(frame: Frame, node, dimensions, dtype=int):
    return apply(frame, np.stack, [_run(frame, node, library.grid, dimensions, dtype)], {}, node)


def _from_function(frame: Frame, node, function, shape, *, dtype=float):
    members = frame.members(_run(frame, node, library.grid, shape, dtype))
    if members is None:
        raise frame.refuse("np.fromfunction of a shape of unknown length", node,
                           "write the shape out")
    return apply(frame, function, list(members), {}, node)


def _piecewise(frame: Frame, node, x, condlist, funclist):
    x, conditions, pieces = _array(frame, node, x), frame.members(condlist), frame.members(funclist)
    if (conditions is None or pieces is None or not 0 <= len(pieces) - len(conditions) <= 1
        or not rank(frame.value(x))):
        raise frame.refuse(
            "np.piecewise of something else than an array, a list of conditions, and one of as "
            "many pieces, or one more",
            node, "use np.select or np.where")
    conditions = [_array(frame, node, c) for c in conditions]
    if len(pieces) > len(conditions):
        any_of = conditions[0]
        for c in conditions[1:]:
            any_of = apply(frame, np.logical_or, [any_of, c], {}, node)
        conditions.append(apply(frame, np.logical_not, [any_of], {}, node))
    y = apply(frame, np.zeros_like, [x], {}, node)
    for where, piece in zip(conditions, pieces):
        if isinstance(piece, (Value, int, float, complex)):
            _run(frame, node, library.put_of_number, y, where, piece)
        else:
            _run(frame, node, library.put_of_function, y, where, piece, x)
    return y


def _along_axis(frame: Frame, node, func1d, axis, arr):
    arr = _of_rank(frame, node, arr, (1, 2), "np.apply_along_axis")
    axes, along = rank(frame.value(arr)), frame.static(axis, "axis=", node)
    if along not in range(-axes, axes):
        raise TypeMismatchError(f"axis {along} of an array of {axes} axes",
                                current().line, "number the axes from 0")
    if axes == 1:
        return apply(frame, np.asarray, [apply(frame, func1d, [arr], {}, node)], {}, node)
    return _run(frame, node, library.along_columns if along in (0, -2) else library.along_rows,
                func1d, arr)


def _windows(frame: Frame, node, x, window_shape, axis=None):
    x = _of_rank(frame, node, x, (1, 2, 3, 4, 5),
                 "np.lib.stride_tricks.sliding_window_view")
    axes, known = rank(frame.value(x)), frame.static(axis, "axis=", node)
    shape = frame.members(window_shape)
    shape = (window_shape,) if shape is None else shape
    chosen = (range(axes) if known is None else known if isinstance(known, (tuple, list))
              else (known,))
    if any(k not in range(-axes, axes) for k in chosen):
        raise TypeMismatchError(
            f"axis {known} of " + ("a vector" if axes == 1 else f"an array of {axes} axes"),
            current().line, "number the axes from 0")
    if len(shape) != len(chosen):
        raise TypeMismatchError(f"windows of {len(shape)} axes along {len(chosen)}",
                                current().line, "give a length for each axis")
    if axes == 1 and len(shape) == 1:
        return _run(frame, node, library.sliding_windows, x, *shape)
    return _run(frame, node, library.sliding_windows_along, x, tuple(shape),
                tuple(k % axes for k in chosen))


def _condition(frame: Frame, node, x, p=None):
    x, known = _array(frame, node, x), frame.static(p, "p=", node)
    if known in (None, 2, -2):
        return _run(frame, node,
                    library.least_condition if known == -2 else library.condition_number, x)
    return _run(frame, node, library.condition_in_norm, x, known)


def _insert(frame: Frame, node, arr, obj, values, axis=None):
    arr, obj, values = (_array(frame, node, x) for x in (arr, obj, values))
    along = frame.static(axis, "axis=", node)
    if along is None:
        arr = apply(frame, np.ravel, [arr], {}, node)
    ranks = [rank(frame.value(x)) for x in (arr, obj, values)]
    if (None in ranks or dtype_of(frame.value(obj).type) == "bool" or ranks[1] > 1
        or ranks[2] > ranks[0] or not ranks[0]):
        raise frame.refuse(
            "np.insert at truth values, or of arrays of unknown rank or with more axes", node,
            "put slices together with np.concatenate")
    if ranks[:2] == [1, 0]:
        return operate(frame, np.insert, [arr, obj, values], {}, node)
    along = normal_axis(along or 0, ranks[0])
    values = (apply(frame, np.reshape, [
        values,
        (*[1] * (ranks[0] - ranks[2]),
         *frame.members(apply(frame, np.shape, [values], {}, node)))
    ], {}, node) if ranks[2] < ranks[0] else values)
    # at a single position the axes of the inserted values come first, whichever `axis` is
    if along and ranks[1]:
        values = apply(frame, np.moveaxis, [values, along, 0], {}, node)
    x = apply(frame, np.moveaxis, [arr, along, 0], {}, node) if along else arr
    found = _run(frame, node, library.inserted_at if ranks[1] else library.inserted, x, obj, values)
    return apply(frame, np.moveaxis, [found, 0, along], {}, node) if along else found


def _nan_to_num(frame: Frame, node, x, copy=True, nan=0.0, posinf=None, neginf=None):
    found = _without_nan(frame, node, _array(frame, node, x), nan, posinf, neginf)
    if frame.static(copy, "copy=", node):
        return found
    return write_out(frame, lambda *_: found, np.nan_to_num, [], {}, x, node)


def _without_nan(frame: Frame, node, x, nan, posinf, neginf):
    if (_is_known(frame, nan, 0) and _is_known(frame, posinf, None)
        and _is_known(frame, neginf, None)):
        return operate(frame, np.nan_to_num, [x], {}, node)
    dtype = dtype_of(frame.value(x).type)
    if dtype is None or np.dtype(dtype).kind == "c":
        raise frame.refuse(f"np.nan_to_num of {frame.value(x).type} with numbers of one's own",
                           node, "use np.where(np.isnan(x), ..., x)")
    if np.dtype(dtype).kind != "f":
        return x
    largest = np.finfo(dtype).max.item()
    posinf, neginf = (default if _is_known(frame, n, None) else n
                      for n, default in ((posinf, largest), (neginf, -largest)))
    return _run(frame, node, library.without_infinite, x, nan, posinf, neginf)


def _is_known(frame: Frame, argument, content) -> bool:
    """Whether an argument is statically equal to this value."""
    return frame.is_static(argument) and frame.static(argument, "an argument") == content


def _interp(frame: Frame, node, x, xp, fp, left=None, right=None, period=None):
    if _is_known(frame, period, None):
        return operate(frame, np.interp, [x, xp, fp], {"left": left, "right": right}, node)
    return _run(frame, node, library.interpolated_around,
                *(_array(frame, node, each) for each in (x, xp, fp)), period)


def _squares(frame: Frame, node, a):
    """A stack of matrices that must be square: where that is only known at run time, a reshape
    raises if they are not.
    """
    *above, rows, columns = frame.value(a).type.dims
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise frame.refuse("np.linalg.svd with all of U and V", node, "pass full_matrices=False")
    return a if rows == columns else _run(frame, node, library.square_matrices, a)


def _svd(frame: Frame, node, a, full_matrices=True, compute_uv=True, hermitian=False):
    a = _array(frame, node, a)
    content, known = frame.value(a), all(
        map(frame.is_static, (full_matrices, compute_uv, hermitian)))
    if known and (rank(content) or 0) > 2 and not frame.static(hermitian, "hermitian="):
        if not frame.static(compute_uv, "compute_uv="):
            return _run(frame, node, library.singular_values_of_each, a)
        if not frame.static(full_matrices, "full_matrices="):
            return _run(frame, node, library.singular_parts_of_each, a)
        return _run(frame, node, library.singular_parts_of_each, _squares(frame, node, a))
    if (known and rank(content) == 2 and frame.static(full_matrices, "full_matrices=")
            and frame.static(compute_uv, "compute_uv=")
            and not frame.static(hermitian, "hermitian=")):
        rows, columns = content.type.dims
        if rows != columns and not (isinstance(rows, int) and isinstance(columns, int)):
            return _run(frame, node, library.svd_of_square, a)
    named = {"full_matrices": full_matrices, "compute_uv": compute_uv, "hermitian": hermitian}
    return operate(frame, np.linalg.svd, [a], named, node)


def call_vectorized(frame: Frame, node, function, otypes, excluded, signature, args: list,
                    keywords: dict):
    """The call of np.vectorize(function): a loop over elements.

    NumPy gives all results the dtype of the first; here it is that of all of them, and where they
    differ `otypes` has to declare it.
    """
    if excluded or signature or keywords:
        raise frame.refuse("np.vectorize with excluded=, a signature, or called with keywords",
                           node, "write the loop, or use s2s.vmap")
    arrays = [_array(frame, node, x) for x in args]
    ranks = [rank(frame.value(x)) for x in arrays]
    if None in ranks or not arrays:
        raise frame.refuse("np.vectorize of arrays of unknown rank", node,
                           "call the function once, or annotate the parameters")
    found = (_run(frame, node, library.of_each, function, *arrays) if any(ranks) else apply(
        frame, np.asarray, [apply(frame, function, arrays, {}, node)], {}, node))
    if otypes is None:
        return found
    if len(otypes) != 1:
        raise frame.refuse("np.vectorize of several results", node, "write the loop")
    return apply(frame, np.asarray, [found], {"dtype": np.dtype(otypes[0])}, node)


def _vectorize(frame: Frame, node, pyfunc=np._NoValue, otypes=None, doc=None, excluded=None,
               cache=False, signature=None):
    """np.vectorize, called in the program."""
    settings = [
        frame.static(x, what, node)
        for x, what in ((otypes, "otypes="), (excluded, "excluded="), (signature, "signature="))
    ]
    if pyfunc is np._NoValue:
        return Intrinsic(lambda frame, node, function: _vectorize(frame, node, function, otypes,
                                                                  doc, excluded, cache, signature))
    return Intrinsic(
        lambda frame, node, *args, **keywords: call_vectorized(frame, node, pyfunc, *settings, list(
            args), keywords), (pyfunc,))


def _average(frame: Frame, node, a, axis=None, weights=None, returned=False, *, keepdims=False):
    if not (frame.is_static(weights) and frame.static(weights, "weights=") is None):
        a, weights = _array(frame, node, a), _array(frame, node, weights)
        alike = rank(frame.value(a)) == rank(frame.value(weights))
        _run(frame, node, library.with_weight,
             apply(frame, np.sum, [weights], {"axis": axis if alike else None}, node))
    return operate(frame, np.average, [a], {
        "axis": axis,
        "weights": weights,
        "returned": returned,
        "keepdims": keepdims
    }, node)


def _histogram(frame: Frame, node, x, bins=10, range=None, density=None,  # noqa: A002
               weights=None):
    """np.histogram; its own op finds the ends of what has elements."""
    x = _array(frame, node, x)
    counted = isinstance(bins, int) or isinstance(bins, Value) and isinstance(bins.type, Scalar)
    if (counted and _is_known(frame, range, None)
        and any(_may_be_empty(frame, node, x, k)
                for k in builtins.range(rank(frame.value(x)) or 0))):
        range = _run(frame, node, library.ends_of_samples, x)  # noqa: A001
    return operate(frame, np.histogram, [x, bins],
                   {"range": range, "density": density, "weights": weights}, node)


OF_MATRICES = {
    1: (library.largest_sum, -2),
    np.inf: (library.largest_sum, -1),
    -1: (library.least_sum, -2),
    -np.inf: (library.least_sum, -1),
    2: (library.largest_value,),
    -2: (library.least_value,),
    "nuc": (library.sum_of_values,),
    "fro": (library.root_of_squares,)
}


def _norm(frame: Frame, node, x, ord=None, axis=None, keepdims=False):
    x = _array(frame, node, x)
    if np.dtype(dtype_of(frame.value(x).type) or float).kind in "biu":
        x = apply(frame, np.asarray, [x, np.float64], {}, node)
    along = frame.static(axis, "axis=", node)
    pair = isinstance(along, (tuple, list)) and len(along) == 2
    if (ord is not None and rank(frame.value(x)) is not None
        and (pair or along is None and rank(frame.value(x)) == 2)):
        name = frame.static(ord, "ord=", node)
        function, *args = OF_MATRICES.get(name, (None,))
        if function is not None and (pair or name != "fro"):
            return _norm_of_matrices(frame, node, x, along if pair else (0, 1), keepdims, function,
                                     args)
    return operate(frame, np.linalg.norm, [x], {
        "ord": ord,
        "axis": axis,
        "keepdims": keepdims
    }, node)


def _norm_of_matrices(frame: Frame, node, x, axes: tuple, keepdims, function: Callable, args: list):
    """A norm over two axes, which are moved to the end."""
    count = rank(frame.value(x))
    places = [k % count for k in axes]
    if places != [count - 2, count - 1]:
        x = apply(frame, np.moveaxis, [x, tuple(places), (-2, -1)], {}, node)
    found = _run(frame, node, function, x, *args)
    kept = frame.static(keepdims, "keepdims=", node)
    return apply(frame, np.expand_dims, [found, tuple(sorted(places))], {}, node) if kept else found


def _of_each(function: Callable, each: Callable) -> Callable:
    """A function of one matrix; `each` is its version for a stack of them."""
    def called_with(frame: Frame, node, a, *args, **keywords):
        a = _array(frame, node, a)
        if (rank(frame.value(a)) or 0) > 2 and not args and not keywords:
            return _run(frame, node, each, a)
        return operate(frame, function, [a, *args], keywords, node)

    return called_with


def _eigh(function: Callable, each: Callable) -> Callable:
    """np.linalg.eigh or eigvalsh, of one matrix or of a stack."""
    def called_with(frame: Frame, node, a, UPLO="L"):  # noqa: N803  NumPy's own name
        a = _array(frame, node, a)
        if (rank(frame.value(a)) or 0) > 2:
            return _run(frame, node, each, a, UPLO)
        return operate(frame, function, [a, UPLO], {}, node)

    return called_with


def _qr(frame: Frame, node, a, mode="reduced"):
    a, mode = _array(frame, node, a), frame.static(mode, "mode=", node)
    dims = frame.value(a).type.dims if rank(frame.value(a)) == 2 else None
    if mode == "complete" and dims is not None and dims[0] == dims[1]:
        mode = "reduced"
    if mode not in ("reduced", "r"):
        return operate(frame, np.linalg.qr, [a], {"mode": mode}, node)
    parts = _of_each(np.linalg.qr, library.qr_of_each)(frame, node, a)
    return frame.members(parts)[1] if mode == "r" else parts


def _cholesky(frame: Frame, node, a, *, upper=False):
    a = _array(frame, node, a)
    if not frame.static(upper, "upper=", node):
        return operate(frame, np.linalg.cholesky, [a], {}, node)
    turned = apply(frame, np.swapaxes, [
        operate(frame, np.linalg.cholesky, [apply(frame, np.swapaxes, [a, -1, -2], {}, node)], {},
                node), -1, -2
    ], {}, node)
    return turned


def _of_array(function: Callable) -> Callable:
    """A function of an array, or of a list that NumPy converts to one."""
    def called_with(frame: Frame, node, x, *args, **keywords):
        return operate(frame, function, [_array(frame, node, x), *args], keywords, node)

    return called_with


def _copy(frame: Frame, node, a, order="K"):
    return (apply(frame, np.array, [a], {}, node)
            if isinstance(a, (tuple, list)) or is_list(frame, a)
            else operate(frame, np.copy, [a], {}, node))


def _pad(frame: Frame, node, array, pad_width, mode="constant", **keywords):
    """np.pad, with a dict of axes normalised to a pair for each axis."""
    array, keywords = _array(frame, node, frame.contents_of(array)), {
        k: frame.contents_of(x)
        for k, x in keywords.items()
    }
    if isinstance(pad_width, Container):
        widths = [(0, 0)] * (rank(frame.value(array)) or 0)
        for axis, width in pad_width.members.items():
            pair = frame.static(width, "a width", node)
            widths[axis] = tuple(pair) if isinstance(pair, (tuple, list)) else (pair, pair)
        pad_width = tuple(widths)
    return operate(frame, np.pad, [array, frame.contents_of(pad_width)], {
        "mode": frame.contents_of(mode),
        **keywords
    }, node)


_pad.opens = True  # it receives dicts unconverted


def _trace(frame: Frame, node, x, *, offset=0, dtype=None):
    return apply(frame, np.trace, [x, offset, -2, -1], {} if dtype is None else {"dtype": dtype},
                 node)


def _diagonal(frame: Frame, node, x, *, offset=0):
    return apply(frame, np.diagonal, [x, offset, -2, -1], {}, node)


def _rolled(frame: Frame, node, a, axis, start=0):
    a = _array(frame, node, a)
    count = rank(frame.value(a))
    if count is None:
        raise frame.refuse("np.rollaxis of an array of unknown rank", node, "use np.moveaxis")
    axis, start = frame.static(axis, "axis", node), frame.static(start, "start=", node)
    return _run(frame, node, library.axis_rolled, a, axis % count,
                start + count if start < 0 else start)


def _gradient(frame: Frame, node, f, *varargs, axis=None, edge_order=1):
    """np.gradient: an array along one axis, a tuple along several, with one distance or vector of
    coordinates for each or for all.
    """
    f = _array(frame, node, f)
    count, along = rank(frame.value(f)), frame.static(axis, "axis=", node)
    if count is None:
        return operate(frame, np.gradient, [f, *varargs], {
            "axis": axis,
            "edge_order": edge_order
        }, node)
    axes = (range(count)
            if along is None
            else along
            if isinstance(along, (tuple, list))
            else (along,))
    steps = [_array(frame, node, x) for x in varargs] or [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise TypeMismatchError("invalid number of arguments",
                                current().line,
                                "give np.gradient one distance, or one for each axis")
    found = []
    for k, step in zip(axes, steps):
        if rank(frame.value(step)) == 1:
            if frame.static(edge_order, "edge_order=", node) != 1:
                raise frame.refuse("np.gradient of samples at unequal distances with edge_order=2",
                                   node, "write the differences with slices")
            found.append(_run(frame, node, library.gradient_between, f, step, k))
        else:
            found.append(
                operate(frame, np.gradient, [f, step], {
                    "axis": k,
                    "edge_order": edge_order
                }, node))
    return found[0] if len(found) == 1 else tuple(found)


def _vander(frame: Frame, node, x, N=None, increasing=False):  # noqa: N803  NumPy's own name
    x = _array(frame, node, x)
    count = frame.static(N, "N", node) if frame.is_static(N) else N
    if rank(frame.value(x)) == 1 and (isinstance(count, Value) or count is None and not isinstance(
            frame.value(x).type.dims[0], int)):
        count = length(frame.value(x), axis=0) if count is None else count
        return _run(frame, node, library.powers, x, count,
                    frame.static(increasing, "increasing=", node),
                    str(dtype_of(frame.value(x).type)).startswith("complex"))
    return operate(frame, np.vander, [x, N], {"increasing": increasing}, node)


def _choose(frame: Frame, node, a, choices, mode="raise"):
    members = frame.members(choices)
    if members is None or frame.static(mode, "mode=", node) != "raise":
        raise frame.refuse("np.choose among an unknown number of arrays, or with a mode", node,
                           "use np.where or np.select")
    return _run(frame, node, library.chosen, _array(frame, node, a),
                tuple(_array(frame, node, c) for c in members))


def _polynomial_difference(frame: Frame, node, a1, a2):
    """np.polysub, as a sum with the negative, which has to have the dtype of the result where it
    wraps.
    """
    dtypes = [dtype_of(frame.value(_array(frame, node, x)).type) for x in (a1, a2)]
    if None not in dtypes and np.dtype(dtypes[1]).kind in "bu":
        a2 = apply(frame, np.asarray, [a2, np.result_type(*dtypes)], {}, node)
    return _run(frame, node, library.difference_of_polynomials, a1, a2)


def _polynomial_of_roots(frame: Frame, node, seq_of_zeros):
    dtype = dtype_of(frame.value(_array(frame, node, seq_of_zeros)).type)
    if dtype not in (None, "float32", "float64", "complex64", "complex128"):
        if not isinstance(seq_of_zeros, (tuple, list)) and not is_list(frame, seq_of_zeros):
            seq_of_zeros = apply(frame, np.asarray, [seq_of_zeros, np.float64], {}, node)
        dtype = "float64"
    return _run(frame, node, library.polynomial_of_roots, seq_of_zeros,
                dtype and np.dtype(dtype))


def _roots(frame: Frame, node, p):
    return _run(frame, node, library.roots, _of_rank(frame, node, p, (1,), "np.roots"))


def _between(ufunc: np.ufunc) -> Callable:
    def reduceat(frame: Frame, node, x, indices, axis=0):
        x, indices = _array(frame, node, x), _array(frame, node, indices)
        if axis != 0:
            raise frame.refuse("ufunc.reduceat along another axis than the first", node,
                               "move the axis with np.moveaxis")
        return _run(frame, node, library.folded_between, ufunc, x, indices)

    return reduceat


def _einsum(frame: Frame, node, *operands, optimize=False):
    """np.einsum, with lists of axes after the operands converted to subscripts."""
    if (operands and isinstance(operands[0], str) or not operands
        or frame.is_static(operands[0]) and isinstance(frame.static(operands[0], ""), str)):
        return operate(frame, np.einsum, list(operands), {}, node)
    terms = [frame.members(x) for x in operands[1::2]]
    result = frame.members(operands[-1]) if len(operands) % 2 else None
    if None in terms or len(operands) % 2 and result is None:
        raise frame.refuse("np.einsum with axes that are not written out", node,
                           'write "ij,jk->ik"')
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def named(term) -> str:
        return "".join("..." if k is Ellipsis else letters[frame.static(k, "an axis", node)]
                       for k in term)

    text = ",".join(map(named, terms)) + (f"->{named(result)}" if result is not None else "")
    xs = operands[:-1:2] if len(operands) % 2 else operands[::2]
    return operate(frame, np.einsum, [text, *(_array(frame, node, x) for x in xs)], {}, node)


def _empty(frame: Frame, node, shape, dtype=float):
    """np.ndarray(shape): uninitialised memory."""
    return apply(frame, np.empty, [shape], {"dtype": dtype}, node)


def _list_of(function: Callable) -> Callable:
    """A function that returns a list in NumPy."""
    return lambda frame, node, *args, **keywords: new_list(
        frame, operate(frame, function, list(args), keywords, node))


def _cumulative_sum(frame: Frame, node, x, *, axis=None, dtype=None, out=None,
                    include_initial=False):
    if frame.static(include_initial, "include_initial=", node):
        raise frame.refuse("np.cumulative_sum with include_initial=", node,
                           "put a zero in front with np.concatenate")
    return apply(frame, np.cumsum, [x], {
        k: v
        for k, v in (("axis", axis), ("dtype", dtype), ("out", out)) if v is not None
    }, node)


def _chain(frame: Frame, node, arrays):
    members = frame.members(arrays)
    if members is None or len(members) < 2:
        raise frame.refuse(
            "np.linalg.multi_dot of fewer than two matrices, or of a list of run-time length", node,
            "write the products with @")
    ranks = [rank(frame.value(_array(frame, node, x))) for x in members]
    if len(members) != 3 or ranks != [2, 2, 2]:  # the side of a vector argument
        from_right = ranks[-1] == 1 and ranks[0] != 1
        found, *others = reversed(members) if from_right else members
        for x in others:
            found = apply(frame, np.dot, [x, found] if from_right else [found, x], {}, node)
        return found
    return _run(frame, node, library.chain_of_three,
                *(_of_rank(frame, node, x, (2,), "np.linalg.multi_dot") for x in members))


def _fitted(frame: Frame, node, x, y, deg):
    x = _of_rank(frame, node, x, (1,), "np.polyfit")
    y = _of_rank(frame, node, y, (1, 2), "np.polyfit")
    return _run(frame, node, library.fitted, x, y, deg)


def _places(frame: Frame, node, indices, shape, order="C"):
    """np.unravel_index: multi-indices of flat indices."""
    dims = _lengths(frame, node, shape)
    rest = _integers(frame, node, indices, "np.unravel_index")
    if not _finds_within(frame, rest, shape):
        size = functools.reduce(operator.mul, map(frame.value, dims), 1)
        rest = operate(frame, within_bounds, [rest, _is_inside(frame.value(rest), size)], {}, node)
    backwards = _is_backwards(frame, node, order)
    found = []
    for n in dims[:-1] if backwards else reversed(dims[1:]):
        rest, place = _run(frame, node, library.quotient_and_rest, rest, n)
        found.append(place)
    found = [*found, rest] if dims else []
    return tuple(found) if backwards else tuple(reversed(found))


def _lengths(frame: Frame, node, shape) -> list:
    """The lengths of a shape: a tuple, the shape of an array, or one number."""
    if (dims := frame.members(shape)) is not None:
        return list(dims)
    lengths = frame.value(shape)
    if isinstance(lengths.type, Scalar):
        return [shape]
    if lengths.op is None or lengths.op.name != "shape":
        raise frame.refuse("np.unravel_index of a shape of unknown length", node,
                           "write the shape out")
    return [length(lengths.op.inputs[0], axis=k) for k in range(rank(lengths.op.inputs[0]))]


def _finds_within(frame: Frame, index, shape) -> bool:
    """Whether an index is that of an element of an array of this shape, which a search has found.
    """
    op = frame.value(index).op
    if op is None or not op.record.finds or op.attrs["axis"] is not None:
        return False
    x, giver = op.inputs[0], shape_giver(frame.value(shape))
    return giver is x or dims_of(x.type) == tuple(
        dims_of(giver.type) if giver is not None
        else [frame.value(n).constant for n in frame.members(shape) or [shape]])


def _is_inside(k: Value, n: Value | int) -> Value:
    """Where indices are those of an axis of length n."""
    return bitwise_and(less_equal(0, k), less(k, n))


def _integers(frame: Frame, node, indices, what: str):
    indices = _array(frame, node, indices)
    if (dtype_of(frame.value(indices).type) or "int")[0] not in "iub":
        raise TypeMismatchError(f"{what} of numbers that are no integers", current().line,
                                "count with integers")
    return as_dtype(frame.value(indices), "int64")


def _is_backwards(frame: Frame, node, order) -> bool:
    """Whether the first index changes fastest."""
    if (order := frame.static(order, "order=")) not in ("C", "F"):
        raise frame.refuse(f"the order {order!r}", node, "use 'C' or 'F'")
    return order == "F"


def _placed(frame: Frame, node, k: Value, n: Value, mode: str) -> tuple[Value, Value]:
    """Indices along an axis of length n, and where they are indices: with a mode, if n is not 0."""
    match mode:
        case "raise":
            return k, _is_inside(k, n)
        case "wrap":
            return remainder(k, n), less(0, n)
        case "clip":
            return minimum(maximum(k, 0), n - 1), less(0, n)
    raise frame.refuse(f"the mode {mode!r}", node, "use 'raise', 'wrap' or 'clip'")


def _numbers(frame: Frame, node, multi_index, dims, mode="raise", order="C"):
    """np.ravel_multi_index, of a shape with static rank."""
    places, known = frame.members(multi_index), frame.members(dims)
    if places is None or known is None or len(places) != len(known):
        raise frame.refuse("np.ravel_multi_index of other than two tuples of one length", node,
                           "write them out")
    modes = frame.static(mode, "mode=")
    modes = modes if isinstance(modes, tuple) else (modes,) * len(places)
    if len(modes) != len(places):
        raise frame.refuse(f"{len(modes)} modes of {len(places)} indices", node, "give one for all")
    known = [frame.value(n) for n in known]
    placed = [_placed(frame, node, _integers(frame, node, k, "np.ravel_multi_index"), n, mode)
              for k, n, mode in zip(places, known, modes)]
    places, inside = [k for k, _ in placed], [each for _, each in placed]
    terms = list(zip(places, known))
    if _is_backwards(frame, node, order):
        terms.reverse()
    total = terms[0][0] if terms else 0
    for k, n in terms[1:]:
        total = apply(frame, np.add, [apply(frame, np.multiply, [total, n], {}, node), k], {}, node)
    return operate(frame, within_axes, [total, functools.reduce(bitwise_and, inside or [True])], {},
                   node)


def _renamed(function: Callable) -> Callable:
    return lambda frame, node, *args, **keywords: apply(frame, function, list(args), keywords, node)


BUILTINS.update({
    library.may_be_empty: _may_be_empty,
    np.average: _average,
    np.histogram: _histogram,
    np.vectorize: _vectorize,
    np.polyval: _polynomial(library.polynomial, "c"),
    np.unravel_index: _places,
    np.ravel_multi_index: _numbers,
    np.polysub: _polynomial_difference,
    np.poly: _polynomial_of_roots,
    np.r_: _joined_rows,
    np.c_: _joined_columns,
    np.mgrid: _grid,
    np.ogrid: _open_grid,
    np.array_equal: _equal,
    np.pad: _pad,
    np.copy: _copy,
    np.shape: _of_array(np.shape),
    np.zeros_like: _of_array(np.zeros_like),
    np.ones_like: _of_array(np.ones_like),
    np.block: _block,
    np.indices: _indices,
    np.fromfunction: _from_function,
    np.piecewise: _piecewise,
    np.apply_along_axis: _along_axis,
    np.lib.stride_tricks.sliding_window_view: _windows,
    np.linalg.eigh: _eigh(np.linalg.eigh, library.values_and_vectors_of_each),
    np.linalg.eigvalsh: _eigh(np.linalg.eigvalsh, library.values_of_each),
    np.linalg.pinv: _of_each(np.linalg.pinv, library.pseudo_inverses_of_each),
    np.linalg.qr: _qr,
    np.linalg.cholesky: _cholesky,
    np.rollaxis: _rolled,
    np.gradient: _gradient,
    np.vander: _vander,
    np.choose: _choose,
    np.roots: _roots,
    np.einsum: _einsum,
    np.ndarray: _empty,
    np.linalg.svd: _svd,
    np.linalg.norm: _norm,
    np.linalg.cond: _condition,
    np.linalg.multi_dot: _chain,
    np.polyfit: _fitted,
    np.insert: _insert,
    np.nan_to_num: _nan_to_num,
    np.interp: _interp,
})
for _module, _name, _function in [("polynomial", "polyval", library.polynomial_rising),
                                  ("chebyshev", "chebval", library.chebyshev),
                                  ("legendre", "legval", library.legendre),
                                  ("hermite", "hermval", library.hermite),
                                  ("hermite_e", "hermeval", library.hermite_e),
                                  ("laguerre", "lagval", library.laguerre),]:
    BUILTINS[Named(f"numpy.polynomial.{_module}", _name)] = _polynomial(_function, "x")
for _name, _function in [("cross", np.cross), ("matmul", np.matmul),
                         ("matrix_transpose", np.matrix_transpose), ("outer", np.outer),
                         ("tensordot", np.tensordot)] if hasattr(np.linalg, "matmul") else []:
    BUILTINS[getattr(np.linalg, _name)] = _renamed(_function)
if hasattr(np.linalg, "trace"):
    BUILTINS.update({np.linalg.trace: _trace, np.linalg.diagonal: _diagonal})
BUILTINS.update(
    {f: _list_of(f)
     for f in (np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit)})
if hasattr(np, "cumulative_sum"):
    BUILTINS[np.cumulative_sum] = _cumulative_sum
UFUNCS = [
    f for f in FUNCTIONS
    if isinstance(f, np.ufunc) and f.nin == 2 and f.nout == 1 and f.signature is None
]
BUILTINS.update({f.outer: _outer(f) for f in UFUNCS})
BUILTINS.update({f.reduceat: _between(f) for f in UFUNCS})
BUILTINS.update({f.reduce: _folded(f) for f in UFUNCS if f.reduce not in BUILTINS})
