"""Composite NumPy functions as plain Python, which the front end inlines.

Each takes NumPy's own steps, so that its numbers are NumPy's to the last bit; where NumPy's
documentation names an algorithm (Clenshaw, Horner), it is used.  The alternatives: an op of its
own, where the generated source is to call the function by name or its derivative is no composition
of others (ops/); a composition of Values, where types decide (ops/arrays/statistics.py).  Functions
with loops, calls of user functions, or lists are here.
"""

from __future__ import annotations

import numpy as np

from .declarations import implements
from .questions import is_known, kind_of, may_be_empty


@implements(method="outer", arrays="a b", ranks="b")
def outer(ufunc, a, b):
    """ufunc.outer."""
    return ufunc(np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b)


@implements(method="reduce", arrays="array", static="axis")
def folded(ufunc, array, axis=0):
    """ufunc.reduce, along one axis."""
    return folded_first(ufunc, np.moveaxis(array, axis, 0) if axis != 0 else array)


def folded_first(ufunc, x):
    """ufunc.reduce, along the first axis."""
    total = x[0]
    for k in range(1, len(x)):
        total = ufunc(total, x[k])
    return total


@implements(np.add.reduce)
def reduced_sum(array, axis=0, **options):
    """np.add.reduce."""
    return np.sum(array, axis=axis, **options)


@implements(np.multiply.reduce)
def reduced_product(array, axis=0, **options):
    """np.multiply.reduce."""
    return np.prod(array, axis=axis, **options)


@implements(np.maximum.reduce)
def reduced_maximum(array, axis=0, **options):
    """np.maximum.reduce."""
    return np.max(array, axis=axis, **options)


@implements(np.minimum.reduce)
def reduced_minimum(array, axis=0, **options):
    """np.minimum.reduce."""
    return np.min(array, axis=axis, **options)


@implements(np.logical_and.reduce)
def reduced_and(array, axis=0, **options):
    """np.logical_and.reduce."""
    return np.all(array, axis=axis, **options)


@implements(np.logical_or.reduce)
def reduced_or(array, axis=0, **options):
    """np.logical_or.reduce."""
    return np.any(array, axis=axis, **options)


@implements(np.add.accumulate)
def accumulated_sum(array, axis=0, **options):
    """np.add.accumulate."""
    return np.cumsum(array, axis=axis, **options)


@implements(np.multiply.accumulate)
def accumulated_product(array, axis=0, **options):
    """np.multiply.accumulate."""
    return np.cumprod(array, axis=axis, **options)


@implements(np.maximum.accumulate, arrays="array", static="axis")
def accumulated_maximum(array, axis=0):
    """np.maximum.accumulate."""
    return accumulated(np.maximum, array, from_0(axis, np.ndim(array)))


@implements(np.minimum.accumulate, arrays="array", static="axis")
def accumulated_minimum(array, axis=0):
    """np.minimum.accumulate."""
    return accumulated(np.minimum, array, from_0(axis, np.ndim(array)))


def accumulated(ufunc, x, axis):
    """ufunc.accumulate along an axis counted from 0."""
    return moved_back(running(moved_first(np.asarray(x), axis), ufunc), axis)


def running(x, function):
    """ufunc.accumulate, along the first axis."""
    y = x.copy()
    for k in range(1, len(y)):
        y[k] = function(y[k - 1], y[k])
    return y


@implements("numpy:cumulative_sum", static="include_initial")
def cumulative_sum(x, *, axis=None, dtype=None, out=None, include_initial=False):
    """np.cumulative_sum."""
    if include_initial:
        raise NotImplementedError("s2s: np.cumulative_sum with include_initial=: put a zero in "
                                  "front with np.concatenate")
    return np.cumsum(x, axis=axis, dtype=dtype, out=out)


@implements(np.array_equal, static="equal_nan", ranks="a1 a2")
def equal(a1, a2, equal_nan=False):
    """np.array_equal."""
    a, b = np.asarray(a1), np.asarray(a2)
    if np.ndim(a) != np.ndim(b):
        return False
    if equal_nan:
        return a.shape == b.shape and bool(np.all((a == b) | np.isnan(a) & np.isnan(b)))
    return a.shape == b.shape and bool(np.all(a == b))


@implements(np.array_equiv)
def equivalent(a1, a2):
    """np.array_equiv, of arrays that broadcast."""
    return bool(np.all(np.equal(a1, a2)))


@implements(np.divmod)
def quotient_and_rest(x1, x2):
    """np.divmod."""
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


@implements(np.float_power)
def float_power(x1, x2):
    """np.float_power: in double precision at least."""
    return np.power(np.multiply(x1, np.float64(1.0)), x2)


@implements(np.modf, as_ufunc=True)
def fraction_and_whole(x):
    """np.modf."""
    x = np.multiply(x, 1.0) if np.asarray(x).dtype.kind in "iub" else x
    whole = np.trunc(x)
    return np.where(np.isinf(x), np.copysign(0.0, x), np.subtract(x, whole)), whole


@implements(np.diagflat)
def diagonal_matrix(v, k=0):
    """np.diagflat."""
    return np.diag(np.ravel(v), k)


@implements(np.tril_indices_from)
def lower_indices(arr, k=0):
    """np.tril_indices_from."""
    return np.tril_indices(arr.shape[0], k, arr.shape[1])


@implements(np.triu_indices_from)
def upper_indices(arr, k=0):
    """np.triu_indices_from."""
    return np.triu_indices(arr.shape[0], k, arr.shape[1])


@implements(np.diag_indices_from)
def diagonal_indices(arr):
    """np.diag_indices_from, of a matrix."""
    places = np.arange(len(arr))
    return places, places


@implements(np.average, arrays="weights")
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """np.average, which refuses weights that sum to 0."""
    if weights is not None:
        a = np.asarray(a)
        total = np.sum(weights, axis=axis if np.ndim(a) == np.ndim(weights) else None)
        if np.any(total == 0.0):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return np.average(a, axis=axis, weights=weights, returned=returned, keepdims=keepdims)


def without_nans(a):
    """Return the numbers of an array that are not NaN; one NaN where there are none."""
    flat = np.ravel(a)
    found = flat[~np.isnan(flat)]
    return found if len(found) > 0 else np.full(1, np.nan, flat.dtype)


@implements(np.nanmedian)
def nanmedian(a):
    """np.nanmedian of all elements."""
    return np.median(without_nans(a))


@implements(np.nanquantile)
def nanquantile(a, q):
    """np.nanquantile of all elements."""
    return np.quantile(without_nans(a), q)


@implements(np.nanpercentile)
def nanpercentile(a, q):
    """np.nanpercentile of all elements."""
    return np.percentile(without_nans(a), q)


@implements(np.nanargmax)
def place_of_greatest(a):
    """np.nanargmax of all elements."""
    if np.all(np.isnan(a)):
        raise ValueError("All-NaN slice encountered")
    return np.argmax(np.where(np.isnan(a), -np.inf, a))


@implements(np.nanargmin)
def place_of_least(a):
    """np.nanargmin of all elements."""
    if np.all(np.isnan(a)):
        raise ValueError("All-NaN slice encountered")
    return np.argmin(np.where(np.isnan(a), np.inf, a))


@implements("numpy:vecdot", as_ufunc=True)
def dots_of_rows(x1, x2, axis=-1):
    """np.vecdot."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError("vecdot of vectors of different lengths")
    return np.sum(np.conj(x1) * x2, axis=axis)


@implements("numpy.linalg:vecdot")
def linalg_vecdot(x1, x2, *, axis=-1):
    """np.linalg.vecdot."""
    return np.vecdot(x1, x2, axis=axis)


@implements("numpy:matvec", as_ufunc=True)
def products_with_vectors(x1, x2):
    """np.matvec."""
    return np.matmul(x1, x2[..., None])[..., 0]


@implements("numpy:vecmat", as_ufunc=True)
def vectors_times_matrices(x1, x2):
    """np.vecmat."""
    return np.matmul(np.conj(x1)[..., None, :], x2)[..., 0, :]


@implements(np.broadcast_arrays)
def broadcast(*args):
    """np.broadcast_arrays, to be read."""
    zeros = 0.0
    for a in args:
        zeros = zeros + np.zeros(np.shape(a))
    return tuple([np.broadcast_to(a, zeros.shape) for a in args])


@implements(np.ndarray)
def uninitialised(shape, dtype=float):
    """np.ndarray(shape): uninitialised memory."""
    return np.empty(shape, dtype=dtype)


@implements(np.copy)
def copied(a, order="K"):
    """np.copy."""
    return np.array(a) if isinstance(a, (list, tuple)) else np.copy(a)


@implements(np.pad, arrays="array")
def padded(array, pad_width, mode="constant", **keywords):
    """np.pad, with a dict of axes as a pair for each axis."""
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * np.ndim(array)
        for axis, width in pad_width.items():
            widths[axis] = tuple(width) if isinstance(width, (tuple, list)) else (width, width)
        pad_width = tuple(widths)
    return np.pad(array, pad_width, mode=mode, **keywords)


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@implements(np.einsum)
def einsum(*operands, optimize=False):
    """np.einsum, with lists of axes after the operands as subscripts."""
    if len(operands) == 0 or isinstance(operands[0], str):
        return np.einsum(*operands)
    text = ",".join([in_letters(axes) for axes in operands[1::2]])
    if len(operands) % 2 == 0:
        return np.einsum(text, *operands[::2])
    return np.einsum(text + "->" + in_letters(operands[-1]), *operands[:-1:2])


def in_letters(axes):
    """The subscripts of numbered axes."""
    return "".join(["..." if k is Ellipsis else LETTERS[k] for k in axes])


# ---------------------------------------------------------------------------------- lists of arrays


@implements(np.split)
def split(ary, indices_or_sections, axis=0):
    """np.split, a list."""
    return list(np.split(ary, indices_or_sections, axis))


@implements(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    """np.array_split, a list."""
    return list(np.array_split(ary, indices_or_sections, axis))


@implements(np.hsplit)
def hsplit(ary, indices_or_sections):
    """np.hsplit, a list."""
    return list(np.hsplit(ary, indices_or_sections))


@implements(np.vsplit)
def vsplit(ary, indices_or_sections):
    """np.vsplit, a list."""
    return list(np.vsplit(ary, indices_or_sections))


@implements(np.dsplit)
def dsplit(ary, indices_or_sections):
    """np.dsplit, a list."""
    return list(np.dsplit(ary, indices_or_sections))


@implements(np.block)
def block(arrays):
    """np.block: nested lists, the innermost joined along the last axis."""
    if not isinstance(arrays, (list, tuple)):
        raise NotImplementedError("s2s: np.block of lists 0 deep: use np.concatenate")
    if not isinstance(arrays[0], (list, tuple)):
        if any([np.ndim(x) > 1 for x in arrays]):
            raise NotImplementedError("s2s: np.block of arrays with more axes than lists: use "
                                      "np.concatenate")
        return np.concatenate([np.atleast_1d(x) for x in arrays], axis=-1)
    for row in arrays:
        if not isinstance(row, (list, tuple)):
            raise ValueError("List depths are mismatched.")
        for x in row:
            if isinstance(x, (list, tuple)):
                raise NotImplementedError("s2s: np.block of lists 3 deep: use np.concatenate")
            if np.ndim(x) > 2:
                raise NotImplementedError("s2s: np.block of arrays with more axes than lists: use "
                                          "np.concatenate")
    return np.concatenate(
        [np.concatenate([np.atleast_2d(x) for x in row], axis=-1) for row in arrays], axis=-2)


# -------------------------------------------------------------------------------------------- grids


def samples(part):
    """The array that np.r_ makes of a slice, start:stop:step or start:stop:count with an imaginary
    count.
    """
    if isinstance(part, str):
        raise NotImplementedError("s2s: np.r_ or np.c_ with a directive: use np.concatenate or "
                                  "np.stack")
    if isinstance(part, (list, tuple)):
        return np.array(part)
    if not isinstance(part, slice):
        return part
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if isinstance(step, complex):
        return np.linspace(start, part.stop, int(abs(step)))
    return np.arange(start, part.stop, step)


@implements(np.r_)
def joined_rows(*parts):
    """np.r_[parts]: numbers, ranges and arrays concatenated."""
    return np.concatenate([np.atleast_1d(samples(part)) for part in parts], axis=0)


@implements(np.c_)
def joined_columns(*parts):
    """np.c_[parts]: vectors as columns."""
    found = [np.atleast_1d(samples(part)) for part in parts]
    return np.concatenate([np.reshape(x, (-1, 1)) if np.ndim(x) == 1 else x for x in found],
                          axis=-1)


@implements(np.mgrid)
def dense_grid(*parts):
    """np.mgrid[slices]."""
    axes = [samples(part) for part in parts]
    return axes[0] if len(axes) == 1 else np.stack(np.meshgrid(*axes, indexing="ij"))


@implements(np.ogrid)
def open_grid(*parts):
    """np.ogrid[slices]."""
    axes = [samples(part) for part in parts]
    return axes[0] if len(axes) == 1 else np.ix_(*axes)


@implements(np.ix_)
def open_mesh(*args):
    """np.ix_(rows, columns): each along an axis of its own."""
    arrays = [np.asarray(x) for x in args]
    arrays = [np.flatnonzero(x) if x.dtype == np.bool_ else x for x in arrays]
    return tuple([np.reshape(x, tuple([-1 if j == k else 1 for j in range(len(arrays))]))
                  for k, x in enumerate(arrays)])


# -------------------------------------------------------------------------- places in flat arrays


def index_within(k, dims):
    """k, an index of the flattened array of lengths `dims`: an op, unless a search has found it."""
    size = 1
    for n in dims:
        size = size * n
    return within_bounds(k, (0 <= k) & (k < size))


def within_bounds(k, is_inside):
    if not np.all(is_inside):
        raise ValueError("index is out of bounds for array")
    return k


def within_axes(k, is_inside):
    if not np.all(is_inside):
        raise ValueError("invalid entry in coordinates array")
    return k


def integers(k, what):
    """Indices as NumPy counts."""
    dtype = np.asarray(k).dtype
    if dtype.kind not in "iub":
        raise NotImplementedError(f"s2s: {what} of numbers that are no integers: count with "
                                  "integers")
    return k if dtype == np.int64 else np.asarray(k, np.int64)


def is_backwards(order):
    """Test whether the first index changes fastest."""
    if order not in ("C", "F"):
        raise NotImplementedError(f"s2s: the order {order!r}: use 'C' or 'F'")
    return order == "F"


@implements(np.unravel_index, arrays="indices", static="order")
def places_of(indices, shape, order="C"):
    """np.unravel_index."""
    dims = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    backwards, _found = is_backwards(order), []
    _rest = index_within(integers(indices, "np.unravel_index"), dims)
    for n in dims[:-1] if backwards else dims[:0:-1]:
        _quotient, _place = np.divmod(_rest, n)
        _rest, _found = _quotient, [*_found, _place]
    _found = [*_found, _rest] if len(dims) > 0 else []
    return tuple(_found) if backwards else tuple(_found[::-1])


def placed(k, n, mode):
    """Indices along an axis of length n, and where they are indices: with a mode, if n is not 0."""
    k = integers(k, "np.ravel_multi_index")
    if mode == "raise":
        return k, (0 <= k) & (k < n)
    if mode == "wrap":
        return k % n, 0 < n
    if mode == "clip":
        return np.minimum(np.maximum(k, 0), n - 1), 0 < n
    raise NotImplementedError(f"s2s: the mode {mode!r}: use 'raise', 'wrap' or 'clip'")


@implements(np.ravel_multi_index, static="mode order")
def flat_places(multi_index, dims, mode="raise", order="C"):
    """np.ravel_multi_index, of a shape of known length."""
    dims = (dims,) if np.ndim(dims) == 0 else tuple(dims)
    if not isinstance(multi_index, (tuple, list)) or len(multi_index) != len(dims):
        raise NotImplementedError("s2s: np.ravel_multi_index of other than two tuples of one "
                                  "length: write them out")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(dims)
    if len(modes) != len(dims):
        raise NotImplementedError(f"s2s: {len(modes)} modes of {len(dims)} indices: give one for "
                                  "all")
    found = [(*placed(k, n, mode), n) for k, n, mode in zip(multi_index, dims, modes)]
    _inside, _total = True, 0
    for k, (_, _is_inside, _) in enumerate(found):
        _inside = _is_inside if k == 0 else _inside & _is_inside
    for k, (_place, _, n) in enumerate(found[::-1] if is_backwards(order) else found):
        _total = _place if k == 0 else np.add(np.multiply(_total, n), _place)
    return within_axes(_total, _inside)


# -------------------------------------------------------------------------------------- polynomials


@implements(np.polyadd)
def sum_of_polynomials(a1, a2):
    """np.polyadd."""
    a1, a2 = np.atleast_1d(a1), np.atleast_1d(a2)
    more = len(a1) - len(a2)
    return (np.concatenate((np.zeros(max(-more, 0), a1.dtype), a1))
            + np.concatenate((np.zeros(max(more, 0), a2.dtype), a2)))


@implements(np.polysub)
def difference_of_polynomials(a1, a2):
    """np.polysub, as a sum with the negative, which has to have the dtype of the result where it
    wraps.
    """
    if kind_of(a2) in ("b", "u") and kind_of(a1) != "":
        a2 = np.asarray(a2, np.result_type(np.asarray(a1).dtype, np.asarray(a2).dtype))
    return sum_of_polynomials(a1, np.negative(a2))


@implements(np.polymul)
def product_of_polynomials(a1, a2):
    """np.polymul."""
    return np.convolve(without_leading_zeros(a1), without_leading_zeros(a2))


def without_leading_zeros(a):
    """The coefficients from the first that is not 0, as NumPy's polynomials have them; of zeros,
    and of nothing, a single 0.
    """
    a = np.atleast_1d(a)
    if may_be_empty(a) and len(a) == 0:
        return np.zeros(1, a.dtype)
    if a[0] == 0:
        places = np.flatnonzero(a)
        return a[places[0] if len(places) > 0 else len(a) - 1:]
    return a


@implements(np.polyder)
def derivative_of_polynomial(p, m=1):
    """np.polyder."""
    p = np.asarray(p)
    for _ in range(m):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


@implements(np.polyint)
def integral_of_polynomial(p):
    """np.polyint, once, with the constant 0."""
    return np.concatenate((np.asarray(p) / np.arange(len(p), 0, -1), np.zeros(1)))


@implements(np.poly)
def polynomial_of_roots(seq_of_zeros):
    """np.poly of roots, of integers and of half precision in double precision."""
    dtype = np.asarray(seq_of_zeros).dtype
    if dtype.char not in "fdFD":
        dtype = np.dtype(np.float64)
        if not isinstance(seq_of_zeros, (list, tuple)):
            seq_of_zeros = np.asarray(seq_of_zeros, dtype)
    found = np.ones(1, dtype)
    for root in seq_of_zeros:
        found = np.convolve(found, np.asarray(np.array([1.0, -root]), dtype))
    return found


def coefficients(p):
    """The coefficients of a polynomial, a vector."""
    if np.ndim(p) != 1:
        raise NotImplementedError(f"s2s: a polynomial of an array of {np.ndim(p)} axes: give it "
                                  "one of 1")
    return p


@implements(np.polyval, arrays="p x", ranks="p")
def polynomial(p, x):
    """np.polyval: Horner, the highest power first; of no coefficients it is 0."""
    p = coefficients(p)
    if may_be_empty(p):
        y = np.zeros_like(x)
        for k in range(len(p)):
            y = y * x + p[k]
        return y
    y = np.zeros_like(x) * x + p[0]
    for k in range(1, len(p)):
        y = y * x + p[k]
    return y


@implements("numpy.polynomial.polynomial:polyval", arrays="x c", ranks="c")
def polynomial_rising(x, c):
    """np.polynomial.polynomial.polyval: Horner, the lowest power first."""
    c = coefficients(c)
    y = c[-1] + x * 0
    for k in range(2, len(c) + 1):
        y = c[-k] + y * x
    return y


def _ends(x, c):
    """Return the initial values of Clenshaw's recurrences: the last two coefficients at each x."""
    zeros = np.zeros_like(x)
    return (c[-2] + zeros, c[-1] + zeros) if len(c) > 1 else (c[0] + zeros, zeros * c[0])


@implements("numpy.polynomial.chebyshev:chebval", arrays="x c", ranks="c")
def chebyshev(x, c):
    """np.polynomial.chebyshev.chebval."""
    c = coefficients(c)
    twice = 2 * x
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        c0, c1 = c[-k] - c1, c0 + c1 * twice
    return c0 + c1 * x


@implements("numpy.polynomial.legendre:legval", arrays="x c", ranks="c")
def legendre(x, c):
    """np.polynomial.legendre.legval."""
    c = coefficients(c)
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        n = len(c) + 2 - k
        c0, c1 = c[-k] - c1 * ((n - 1) / n), c0 + c1 * x * ((2 * n - 1) / n)
    return c0 + c1 * x


@implements("numpy.polynomial.hermite:hermval", arrays="x c", ranks="c")
def hermite(x, c):
    """np.polynomial.hermite.hermval, of the physicists' polynomials."""
    c = coefficients(c)
    twice = x * 2
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        n = len(c) + 2 - k
        c0, c1 = c[-k] - c1 * (2 * (n - 1)), c0 + c1 * twice
    return c0 + c1 * twice


@implements("numpy.polynomial.hermite_e:hermeval", arrays="x c", ranks="c")
def hermite_e(x, c):
    """np.polynomial.hermite_e.hermeval, of the probabilists' polynomials."""
    c = coefficients(c)
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        n = len(c) + 2 - k
        c0, c1 = c[-k] - c1 * (n - 1), c0 + c1 * x
    return c0 + c1 * x


@implements("numpy.polynomial.laguerre:lagval", arrays="x c", ranks="c")
def laguerre(x, c):
    """np.polynomial.laguerre.lagval."""
    c = coefficients(c)
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        n = len(c) + 2 - k
        c0, c1 = c[-k] - (c1 * (n - 1)) / n, c0 + (c1 * ((2 * n - 1) - x)) / n
    return c0 + c1 * (1 - x)


# ------------------------------------------------------------------------------------------ windows


def _places(m):
    """Return the sample positions of a window of m points, symmetric about 0."""
    return np.arange(1 - m, m, 2)


@implements(np.hanning)
def hanning(M):  # noqa: N803  NumPy's own name
    """np.hanning."""
    return np.ones(max(M, 0)) if M < 2 else 0.5 + 0.5 * np.cos(np.pi * _places(M) / (M - 1))


@implements(np.hamming)
def hamming(M):  # noqa: N803
    """np.hamming."""
    return np.ones(max(M, 0)) if M < 2 else 0.54 + 0.46 * np.cos(np.pi * _places(M) / (M - 1))


@implements(np.blackman)
def blackman(M):  # noqa: N803
    """np.blackman."""
    if M < 2:
        return np.ones(max(M, 0))
    n = _places(M)
    return 0.42 + 0.5 * np.cos(np.pi * n / (M - 1)) + 0.08 * np.cos(2.0 * np.pi * n / (M - 1))


@implements(np.bartlett)
def bartlett(M):  # noqa: N803
    """np.bartlett."""
    if M < 2:
        return np.ones(max(M, 0))
    n = _places(M)
    return np.where(np.less_equal(n, 0), 1 + n / (M - 1), 1 - n / (M - 1))


@implements(np.kaiser)
def kaiser(M, beta):  # noqa: N803
    """np.kaiser."""
    if M < 2:
        return np.ones(max(M, 0))
    alpha = (M - 1) / 2.0
    return np.i0(beta * np.sqrt(1 - ((np.arange(0, M) - alpha) / alpha) ** 2.0)) / np.i0(beta)


# ------------------------------------------------------------------------- functions of the program


def grid(shape, dtype):
    """np.indices, one array for each axis."""
    return np.meshgrid(*[np.arange(n, dtype=dtype) for n in shape], indexing="ij")


@implements(np.indices)
def indices(dimensions, dtype=int):
    """np.indices."""
    return np.stack(grid(dimensions, dtype))


@implements(np.fromfunction)
def from_function(function, shape, *, dtype=float):
    """np.fromfunction."""
    return function(*grid(shape, dtype))


@implements(np.piecewise, arrays="x", ranks="x")
def piecewise(x, condlist, funclist):
    """np.piecewise."""
    if (np.ndim(x) == 0 or not isinstance(condlist, (list, tuple))
            or not isinstance(funclist, (list, tuple))
            or not 0 <= len(funclist) - len(condlist) <= 1):
        raise NotImplementedError(
            "s2s: np.piecewise of something else than an array, a list of conditions, and one of "
            "as many pieces, or one more: use np.select or np.where")
    conditions = [np.asarray(c) for c in condlist]
    if len(funclist) > len(condlist):
        any_of = conditions[0]
        for c in conditions[1:]:
            any_of = np.logical_or(any_of, c)
        conditions = [*conditions, np.logical_not(any_of)]
    y = np.zeros_like(x)
    for where, piece in zip(conditions, funclist):
        y[where] = piece(x[where]) if callable(piece) else piece
    return y


@implements(np.vectorize, static="otypes excluded signature")
def vectorize(pyfunc=None, otypes=None, doc=None, excluded=None, cache=False, signature=None):
    """np.vectorize: a loop over elements.

    NumPy gives all results the dtype of the first; here it is that of all of them, and where they
    differ `otypes` has to declare it.
    """
    def of(function):
        def vectorized(*args, **keywords):
            if excluded or signature or len(keywords) > 0 or len(args) == 0:
                raise NotImplementedError("s2s: np.vectorize with excluded=, a signature, or "
                                          "called with keywords: write the loop, or use s2s.vmap")
            if otypes is not None and len(otypes) != 1:
                raise NotImplementedError("s2s: np.vectorize of several results: write the loop")
            arrays = [np.array(x) if isinstance(x, (list, tuple)) else x for x in args]
            if all([np.ndim(x) == 0 for x in arrays]):
                if otypes is None:
                    function(*arrays)  # for its dtype
                found = np.asarray(function(*arrays))
            else:
                found = of_each(function, otypes is None, *arrays)
            return found if otypes is None else np.asarray(found, dtype=np.dtype(otypes[0]))

        return vectorized

    return of if pyfunc is None else of(pyfunc)


def of_each(function, asks, *args):
    """np.vectorize(function), of arguments of which one is an array; if it `asks`, the function is
    called once more, for the dtype, as it may do something besides.
    """
    arrays = np.broadcast_arrays(*args)
    flat = [np.ravel(a) for a in arrays]
    if asks and flat[0].size > 0:
        function(*[a[0] for a in flat])
    return np.reshape(np.array([function(*[a[k] for a in flat]) for k in range(flat[0].size)]),
                      arrays[0].shape)


def from_0(axis, count):
    """The number of an axis of `count`, counted from 0."""
    if not -count <= axis < count:
        raise NotImplementedError(f"s2s: axis {axis} of an array of {count} axes: number the axes "
                                  "from 0")
    return axis % count


@implements(np.apply_along_axis, arrays="arr", ranks="arr", static="axis")
def along_axis(func1d, axis, arr):
    """np.apply_along_axis, of a vector or a matrix."""
    if np.ndim(arr) not in (1, 2):
        raise NotImplementedError(f"s2s: np.apply_along_axis of an array of {np.ndim(arr)} axes: "
                                  "give it one of 1 or 2")
    axis = from_0(axis, np.ndim(arr))
    if np.ndim(arr) == 1:
        return np.asarray(func1d(arr))
    if axis == 1:
        return np.stack([func1d(row) for row in arr])
    found = np.stack([func1d(column) for column in arr.T])
    return found if found.ndim == 1 else np.moveaxis(found, 0, 1)


# ------------------------------------------------------------------------------------------ samples


@implements(np.histogram, arrays="x")
def histogram(x, bins=10, range=None, density=None, weights=None):  # noqa: A002  NumPy's own name
    """np.histogram, whose op finds the ends of what has elements."""
    if (range is None and not isinstance(bins, (str, list, tuple)) and np.ndim(bins) == 0
            and may_be_empty(x, None)):
        range = ends_of_samples(x)  # noqa: A001
    return np.histogram(x, bins, range=range, density=density, weights=weights)


def ends_of_samples(x):
    """The ends of the bins of np.histogram: the least and the largest number, half a unit
    apart from it if they are one, and 0 and 1 of nothing; ValueError if they are not finite.
    """
    if x.size == 0:
        return 0.0, 1.0
    lo, hi = np.asarray_chkfinite(np.array([np.min(x), np.max(x)]))
    alike = lo == hi
    return np.where(alike, lo - 0.5, lo), np.where(alike, hi + 0.5, hi)


# ----------------------------------------------------------------------------------------- matrices


@implements(np.lib.stride_tricks.sliding_window_view, arrays="x", ranks="x", static="axis")
def sliding_windows(x, window_shape, axis=None):
    """np.lib.stride_tricks.sliding_window_view, to be read."""
    shape = window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = (tuple(range(np.ndim(x))) if axis is None
            else axis if isinstance(axis, (tuple, list)) else (axis,))
    axes = [from_0(k, np.ndim(x)) for k in axes]
    if len(shape) != len(axes):
        raise NotImplementedError(f"s2s: windows of {len(shape)} axes along {len(axes)}: give a "
                                  "length for each axis")
    one = np.ndim(x) == 1 and len(axes) == 1
    for width, k in zip(shape, axes):
        starts = np.shape(x)[k] - width + 1
        if starts < 1:
            raise ValueError("window shape cannot be larger than input array shape")
        if one:
            return x[np.arange(starts)[:, None] + np.arange(width)]
        x = np.take(x, np.arange(starts)[:, None] + np.arange(width), axis=k)
        x = np.moveaxis(x, k + 1, -1)
    return x


@implements("numpy.linalg:matrix_norm")
def matrix_norm(x, keepdims=False, ord="fro"):
    """np.linalg.matrix_norm, of each of a stack."""
    return np.linalg.norm(x, ord, axis=(-2, -1), keepdims=keepdims)


@implements("numpy.linalg:vector_norm")
def vector_norm(x, axis=None, keepdims=False, ord=2):
    """np.linalg.vector_norm; along several axes the norm of all their elements, never a matrix
    norm.
    """
    if isinstance(axis, tuple):
        behind = np.moveaxis(x, axis, tuple(range(-len(axis), 0)))
        found = np.linalg.norm(np.reshape(behind, (*np.shape(behind)[:-len(axis)], -1)), ord,
                               axis=-1)
        return np.expand_dims(found, axis) if keepdims else found
    if axis is not None:
        return np.linalg.norm(x, ord, axis=axis, keepdims=keepdims)
    found = np.linalg.norm(np.ravel(x), ord)
    return np.reshape(found, [1] * np.ndim(x)) if keepdims else found


@implements(np.linalg.matrix_rank)
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):  # noqa: N803  NumPy's own name
    """np.linalg.matrix_rank, of each of a stack; of a vector whether it is not 0."""
    if np.ndim(A) < 2:
        return np.any(np.not_equal(A, 0)) * 1
    s = np.abs(np.linalg.eigvalsh(A)) if hermitian else np.linalg.svd(A, compute_uv=False)
    if may_be_empty(s, -1) and s.shape[-1] == 0:
        return np.count_nonzero(s, axis=-1)
    if tol is None:
        least = (np.finfo(s.dtype).eps * max(A.shape[-2:]) if rtol is None
                 else np.expand_dims(np.asarray(rtol), -1))
        least = np.max(s, axis=-1, keepdims=True) * least
    else:
        least = np.expand_dims(np.asarray(tol), -1)
    return np.count_nonzero(s > least, axis=-1)


@implements(np.linalg.cond, arrays="x", static="p")
def condition(x, p=None):
    """np.linalg.cond."""
    if p == -2:
        return least_condition(x)
    return condition_number(x) if p is None or p == 2 else condition_in_norm(x, p)


def condition_number(x):
    """np.linalg.cond, by singular values."""
    s = np.linalg.svd(x, compute_uv=False)
    return (s[..., 0] + (s[..., 0] == 0)) / s[..., -1]  # infinite where all are 0


@implements("numpy.linalg:cross")
def linalg_cross(x1, x2, /, *, axis=-1):
    """np.linalg.cross."""
    return np.cross(x1, x2, axis=axis)


@implements("numpy.linalg:matmul")
def linalg_matmul(x1, x2, /):
    """np.linalg.matmul."""
    return np.matmul(x1, x2)


@implements("numpy.linalg:matrix_transpose")
def linalg_matrix_transpose(x, /):
    """np.linalg.matrix_transpose."""
    return np.matrix_transpose(x)


@implements("numpy.linalg:outer")
def linalg_outer(x1, x2, /):
    """np.linalg.outer."""
    return np.outer(x1, x2)


@implements("numpy.linalg:tensordot")
def linalg_tensordot(x1, x2, /, *, axes=2):
    """np.linalg.tensordot."""
    return np.tensordot(x1, x2, axes=axes)


@implements("numpy.linalg:trace")
def linalg_trace(x, /, *, offset=0, dtype=None):
    """np.linalg.trace."""
    if dtype is not None:
        return np.trace(x, offset, -2, -1, dtype=dtype)
    return np.trace(x, offset, -2, -1)


@implements("numpy.linalg:diagonal")
def linalg_diagonal(x, /, *, offset=0):
    """np.linalg.diagonal."""
    return np.diagonal(x, offset, -2, -1)


@implements(np.linalg.norm, arrays="x", static="ord axis keepdims")
def norm(x, ord=None, axis=None, keepdims=False):
    """np.linalg.norm, whose op does all but some norms of matrices."""
    if kind_of(x) in ("b", "i", "u"):
        x = np.asarray(x, np.float64)
    pair = isinstance(axis, (tuple, list)) and len(axis) == 2
    if (ord not in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf) or not is_known(np.ndim(x))
            or not (pair or axis is None and np.ndim(x) == 2 and ord != "fro")):
        return np.linalg.norm(x, ord, axis=axis, keepdims=keepdims)
    places = tuple([from_0(k, np.ndim(x)) for k in (axis if pair else (0, 1))])
    if keepdims:
        return np.expand_dims(norm_of_matrices(moved_last(x, places), ord), tuple(sorted(places)))
    return norm_of_matrices(moved_last(x, places), ord)


def moved_last(x, axes):
    """An array with these axes, counted from 0, at the end."""
    last = tuple(range(np.ndim(x) - len(axes), np.ndim(x)))
    return x if axes == last else np.moveaxis(x, axes, last)


def norm_of_matrices(x, ord):
    """np.linalg.norm of the last two axes."""
    if ord == "fro":
        return np.linalg.norm(x, axis=(-2, -1))
    if ord == "nuc":
        return np.sum(np.linalg.svd(x, compute_uv=False), axis=-1)
    if ord == 2:
        return np.max(np.linalg.svd(x, compute_uv=False), axis=-1)
    if ord == -2:
        return np.min(np.linalg.svd(x, compute_uv=False), axis=-1)
    if ord == 1 or ord == np.inf:
        return np.max(np.sum(np.abs(x), axis=-2 if ord == 1 else -1), axis=-1)
    return np.min(np.sum(np.abs(x), axis=-2 if ord == -1 else -1), axis=-1)


@implements(np.linalg.multi_dot)
def chain(arrays):
    """np.linalg.multi_dot."""
    if not isinstance(arrays, (list, tuple)) or len(arrays) < 2:
        raise NotImplementedError("s2s: np.linalg.multi_dot of fewer than two matrices, or of a "
                                  "list of run-time length: write the products with @")
    arrays = [np.asarray(x) for x in arrays]
    ranks = [np.ndim(x) if is_known(np.ndim(x)) else -1 for x in arrays]
    if len(arrays) == 3 and all([rank == 2 for rank in ranks]):
        return chain_of_three(*arrays)
    if ranks[-1] == 1 and ranks[0] != 1:  # the side of a vector
        _product = arrays[-1]
        for x in arrays[-2::-1]:
            _product = np.dot(x, _product)
        return _product
    _product = arrays[0]
    for x in arrays[1:]:
        _product = np.dot(_product, x)
    return _product


def chain_of_three(a, b, c):
    """np.linalg.multi_dot of three matrices: in the cheaper of the two orders."""
    rows, inner = a.shape
    outer, columns = c.shape
    if rows * outer * (inner + columns) < inner * columns * (rows + outer):
        return np.dot(np.dot(a, b), c)
    return np.dot(a, np.dot(b, c))


@implements(np.polyfit, arrays="x y", ranks="x y")
def fitted(x, y, deg):
    """np.polyfit of equal weights, the highest power first."""
    if np.ndim(x) != 1 or np.ndim(y) not in (1, 2):
        raise NotImplementedError(f"s2s: np.polyfit of arrays of {np.ndim(x)} and {np.ndim(y)} "
                                  "axes: fit each vector")
    if may_be_empty(x) and len(x) == 0:
        raise TypeError("expected non-empty vector for x")
    x, y = x + 0.0, y + 0.0
    lhs = np.vander(x, deg + 1)
    scale = np.sqrt((lhs * lhs).sum(axis=0))
    lhs = lhs / scale
    found = np.linalg.lstsq(lhs, y)[0]
    return (found.T / scale).T


@implements(np.rollaxis, arrays="a", ranks="a", static="axis start")
def axis_rolled(a, axis, start=0):
    """np.rollaxis."""
    count = np.ndim(a)
    axis, start = axis % count, start + count if start < 0 else start
    return np.moveaxis(a, axis, start - 1 if axis < start else start)


@implements("numpy:fix")
def truncated(x):
    """np.fix."""
    return np.trunc(x)


@implements(np.gradient, arrays="f varargs", static="axis edge_order")
def gradient(f, *varargs, axis=None, edge_order=1):
    """np.gradient: an array along one axis, a tuple along several, with one distance or vector of
    coordinates for each or for all.
    """
    if not is_known(np.ndim(f)):
        return np.gradient(f, *varargs, axis=axis, edge_order=edge_order)
    axes = (tuple(range(np.ndim(f))) if axis is None
            else axis if isinstance(axis, (tuple, list)) else (axis,))
    steps = varargs if len(varargs) > 0 else (1.0,)
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise TypeError("invalid number of arguments")
    if edge_order != 1 and any([np.ndim(step) == 1 for step in steps]):
        raise NotImplementedError("s2s: np.gradient of samples at unequal distances with "
                                  "edge_order=2: write the differences with slices")
    found = [gradient_between(f, step, k) if np.ndim(step) == 1
             else np.gradient(f, step, axis=k, edge_order=edge_order)
             for k, step in zip(axes, steps)]
    return found[0] if len(found) == 1 else tuple(found)


def gradient_between(f, x, axis):
    """np.gradient of samples at the places `x`, along an axis."""
    f = np.moveaxis(f, axis, -1)
    f = f.astype(np.float64) if f.dtype.kind in "iu" else f
    h = np.diff(x.astype(np.float64) if x.dtype.kind in "iu" else x)
    before, after = h[:-1], h[1:]
    slopes = np.zeros(f.shape, f.dtype)
    slopes[..., 1:-1] = (f[..., :-2] * (-after / (before * (before + after)))
                         + f[..., 1:-1] * ((after - before) / (before * after))
                         + f[..., 2:] * (before / (after * (before + after))))
    slopes[..., 0] = (f[..., 1] - f[..., 0]) / h[0]
    slopes[..., -1] = (f[..., -1] - f[..., -2]) / h[-1]
    return np.moveaxis(slopes, -1, axis)


@implements(np.vander, arrays="x", static="increasing")
def powers(x, N=None, increasing=False):  # noqa: N803  NumPy's own name
    """np.vander, of a number of columns that a run says; 1 * x is x, unless x is complex and
    infinite.
    """
    if (not is_known(np.ndim(x)) or np.ndim(x) != 1
            or is_known(N) and (N is not None or is_known(len(x)))):
        return np.vander(x, N, increasing=increasing)
    count, is_complex = len(x) if N is None else N, x.dtype.kind == "c"
    y = np.ones((len(x), count), dtype=int) * np.ones_like(x)[:, None]
    for k in range(1, count):
        y[:, k] = x if is_complex and k == 1 else y[:, k - 1] * x
    return y if increasing else y[:, ::-1]


@implements(np.roots, arrays="p", ranks="p")
def roots(p):
    """np.roots: the eigenvalues of the companion matrix, and zeros for the coefficients of 0 at the
    end.
    """
    p = coefficients(p)
    places = np.flatnonzero(p)
    dtype = p.dtype if p.dtype.kind in "fc" else np.float64
    if len(places) == 0:
        return np.zeros(0, dtype) + 0j
    zeros = len(p) - 1 - places[-1]
    q = p[places[0]:places[-1] + 1]
    q = q if p.dtype.kind in "fc" else q.astype(dtype)
    if len(q) < 2:
        return np.zeros(zeros, dtype) + 0j
    a = np.diag(np.ones(len(q) - 2, dtype), -1)
    a[0] = -q[1:] / q[0]
    return np.concatenate((np.linalg.eigvals(a), np.zeros(zeros, dtype)))


@implements(np.choose, arrays="a", static="mode")
def chosen(a, choices, mode="raise"):
    """np.choose."""
    if not isinstance(choices, (list, tuple)) or mode != "raise":
        raise NotImplementedError("s2s: np.choose among an unknown number of arrays, or with a "
                                  "mode: use np.where or np.select")
    if np.any((a < 0) | (a >= len(choices))):
        raise ValueError("invalid entry in choice array")
    y = choices[0]
    for place in range(1, len(choices)):
        y = np.where(a == place, choices[place], y)
    return y


@implements(np.resize)
def resized(a, new_shape):
    """np.resize: the elements repeated."""
    flat = np.ravel(a)
    y = np.zeros(new_shape, flat.dtype)
    return np.reshape(flat[np.arange(y.size) % len(flat)], np.shape(y))


@implements(method="reduceat", arrays="array indices", static="axis")
def folded_between(ufunc, array, indices, axis=0):
    """ufunc.reduceat, along the first axis; sums and products of small integers are not small."""
    if axis != 0:
        raise NotImplementedError("s2s: ufunc.reduceat along another axis than the first: move the "
                                  "axis with np.moveaxis")
    x = array
    y = x[indices]
    if ufunc is np.add or ufunc is np.multiply:
        y = y.astype(np.sum(x).dtype)
    for k in range(len(indices)):
        end = indices[k + 1] if k + 1 < len(indices) else len(x)
        for i in range(indices[k] + 1, end):
            y[k] = ufunc(y[k], x[i])
    return y


def inexact(a):
    """Convert integers to floats, as NumPy's linear algebra does."""
    return a * 1.0


def real_of(a):
    """Convert to the dtype of singular values."""
    return np.real(inexact(a))


def matrices_of(a):
    """Return the matrices of a stack, one behind the other."""
    count = 1
    for n in a.shape[:-2]:  # -1 says nothing of matrices of no elements
        count = count * n
    return np.reshape(a, (count, a.shape[-2], a.shape[-1]))


@implements(np.linalg.eigh, arrays="a", ranks="a")
def values_and_vectors_of_each(a, UPLO="L"):  # noqa: N803  NumPy's own name
    """np.linalg.eigh of a stack of matrices."""
    if np.ndim(a) <= 2:
        return np.linalg.eigh(a, UPLO)
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    flat = matrices_of(a)
    w, v = np.zeros(flat.shape[:2], real_of(a).dtype), np.zeros(flat.shape, inexact(a).dtype)
    for k in range(len(flat)):
        w[k], v[k] = np.linalg.eigh(flat[k], UPLO)
    return np.reshape(w, a.shape[:-1]), np.reshape(v, a.shape)


@implements(np.linalg.eigvalsh, arrays="a", ranks="a")
def values_of_each(a, UPLO="L"):  # noqa: N803
    """np.linalg.eigvalsh of a stack."""
    if np.ndim(a) <= 2:
        return np.linalg.eigvalsh(a, UPLO)
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    flat = matrices_of(a)
    w = np.zeros(flat.shape[:2], real_of(a).dtype)
    for k in range(len(flat)):
        w[k] = np.linalg.eigvalsh(flat[k], UPLO)
    return np.reshape(w, a.shape[:-1])


@implements(np.linalg.svd, arrays="a", ranks="a", static="full_matrices compute_uv hermitian")
def singular_values_and_vectors(a, full_matrices=True, compute_uv=True, hermitian=False):
    """np.linalg.svd, whose op does one matrix with full_matrices=False."""
    if (compute_uv and full_matrices and not hermitian and np.ndim(a) > 1
            and a.shape[-2] != a.shape[-1]):
        raise NotImplementedError("s2s: all of U and V of a matrix that is not square: pass "
                                  "full_matrices=False")
    if np.ndim(a) <= 2 or hermitian:
        return np.linalg.svd(a, False, compute_uv, hermitian)
    return singular_parts_of_each(a) if compute_uv else singular_values_of_each(a)


def singular_parts_of_each(a):
    """np.linalg.svd of a stack, with full_matrices=False."""
    m, n = a.shape[-2:]
    r = min(m, n)
    flat = matrices_of(a)
    dtype = inexact(a).dtype
    u, s, vt = (np.zeros((len(flat), m, r), dtype), np.zeros((len(flat), r), real_of(a).dtype),
                np.zeros((len(flat), r, n), dtype))
    for k in range(len(flat)):
        u[k], s[k], vt[k] = np.linalg.svd(flat[k], full_matrices=False)
    above = a.shape[:-2]
    return np.reshape(u, (*above, m, r)), np.reshape(s, (*above, r)), np.reshape(vt, (*above, r, n))


def singular_values_of_each(a):
    """np.linalg.svd of a stack, with compute_uv=False."""
    m, n = a.shape[-2:]
    flat = matrices_of(a)
    s = np.zeros((len(flat), min(m, n)), real_of(a).dtype)
    for k in range(len(flat)):
        s[k] = np.linalg.svd(flat[k], compute_uv=False)
    return np.reshape(s, (*a.shape[:-2], min(m, n)))


@implements(np.linalg.qr, arrays="a", static="mode", ranks="a")
def factors(a, mode="reduced"):
    """np.linalg.qr, of one matrix or of a stack."""
    if mode == "complete" and np.ndim(a) == 2 and a.shape[0] != a.shape[1]:
        raise NotImplementedError("s2s: np.linalg.qr with mode='complete', of a matrix that is not "
                                  "square: leave the mode out")
    if mode not in ("reduced", "r", "complete") or mode == "complete" and np.ndim(a) != 2:
        return np.linalg.qr(a, mode=mode)
    parts = np.linalg.qr(a) if np.ndim(a) <= 2 else qr_of_each(a)
    return parts[1] if mode == "r" else parts


def qr_of_each(a):
    """np.linalg.qr of a stack."""
    m, n = a.shape[-2:]
    k = min(m, n)
    flat = matrices_of(a)
    q, r = (np.zeros((len(flat), m, k), inexact(a).dtype),
            np.zeros((len(flat), k, n), inexact(a).dtype))
    for j in range(len(flat)):
        q[j], r[j] = np.linalg.qr(flat[j])
    return np.reshape(q, (*a.shape[:-2], m, k)), np.reshape(r, (*a.shape[:-2], k, n))


@implements(np.linalg.cholesky, arrays="a", static="upper")
def cholesky(a, *, upper=False):
    """np.linalg.cholesky."""
    if upper:
        return np.swapaxes(np.linalg.cholesky(np.swapaxes(a, -1, -2)), -1, -2)
    return np.linalg.cholesky(a)


@implements(np.linalg.pinv, arrays="a", ranks="a")
def pseudo_inverses_of_each(a, *args, **keywords):
    """np.linalg.pinv of a stack."""
    if np.ndim(a) <= 2 or len(args) > 0 or len(keywords) > 0:
        return np.linalg.pinv(a, *args, **keywords)
    m, n = a.shape[-2:]
    flat = matrices_of(a)
    y = np.zeros((len(flat), n, m), inexact(a).dtype)
    for k in range(len(flat)):
        y[k] = np.linalg.pinv(flat[k])
    return np.reshape(y, (*a.shape[:-2], n, m))


@implements(np.linalg.tensorsolve)
def solution_of_tensors(a, b):
    """np.linalg.tensorsolve, of axes in their order."""
    n = b.size
    return np.reshape(np.linalg.solve(np.reshape(a, (n, n)), np.ravel(b)),
                      np.shape(a)[-(np.ndim(a) - np.ndim(b)):])  # all of it where it is that of b


@implements(np.linalg.tensorinv)
def inverse_of_tensor(a, ind=2):
    """np.linalg.tensorinv."""
    before, after = np.shape(a)[:ind], np.shape(a)[ind:]
    n = 1
    for length in before:
        n = n * length
    return np.reshape(np.linalg.inv(np.reshape(a, (n, n))), (*after, *before))


# -------------------------------------------------------------------------- insertion, replacement


@implements(np.insert, arrays="arr obj values", ranks="arr obj values", static="axis")
def insert(arr, obj, values, axis=None):
    """np.insert, whose op does a vector at one place."""
    count = 1 if axis is None else np.ndim(arr)
    if (np.asarray(obj).dtype == np.bool_ or np.ndim(obj) > 1 or np.ndim(values) > count
            or count == 0):
        raise NotImplementedError("s2s: np.insert at truth values, or of arrays with more axes: "
                                  "put slices together with np.concatenate")
    if count == 1 and np.ndim(obj) == 0:
        return np.insert(np.ravel(arr) if axis is None else arr, obj, values)
    if axis is None:
        return inserted_along(np.ravel(arr), obj, values, 0)
    return inserted_along(arr, obj, values, from_0(axis, count))


def inserted_along(x, place, values, axis):
    """np.insert along an axis counted from 0."""
    _x, _values = moved_first(x, axis), with_axes(values, np.ndim(x))
    if np.ndim(place) == 1:
        return moved_back(inserted_at(_x, place, moved_first(_values, axis)), axis)
    # at a single position the axes of the inserted values come first, whichever `axis` is
    return moved_back(inserted(_x, place, _values), axis)


def moved_first(x, axis):
    """An array with this axis, counted from 0, in front."""
    return x if axis == 0 else np.moveaxis(x, axis, 0)


def moved_back(x, axis):
    """An array with its first axis where `axis` was."""
    return x if axis == 0 else np.moveaxis(x, 0, axis)


def with_axes(x, count):
    """An array with axes of length 1 in front, so that it has `count`."""
    return x if np.ndim(x) == count else np.reshape(x, (1,) * (count - np.ndim(x)) + np.shape(x))


def inserted(x, place, values):
    """np.insert of rows, an array or a number, at one place."""
    n = len(x)
    if place < -n or place > n:
        raise IndexError("index is out of bounds")
    i = place + n if place < 0 else place
    rows = np.broadcast_to(values, (len(values), *x.shape[1:])).astype(x.dtype)
    return np.concatenate((x[:i], rows, x[i:]))


def inserted_at(x, places, values):
    """np.insert at an array of positions: each value comes before the row of that number; of
    several at one position, the first comes first.
    """
    n, count = len(x), max(len(places), len(values))
    if np.any((places < -n) | (places > n)):
        raise IndexError("index is out of bounds")
    places = np.broadcast_to(np.where(places < 0, places + n, places), (count,))
    rows = np.broadcast_to(values, (count, *x.shape[1:])).astype(x.dtype)
    order = np.argsort(np.concatenate((2 * np.arange(n) + 1, 2 * places)), kind="stable")
    return np.concatenate((x, rows))[order]


@implements(np.nan_to_num, arrays="x", static="copy")
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """np.nan_to_num."""
    plain = is_known(nan) and nan == 0 and posinf is None and neginf is None
    if copy:
        return np.nan_to_num(x) if plain else replaced(x, nan, posinf, neginf)
    x[...] = np.nan_to_num(x) if plain else replaced(x, nan, posinf, neginf)
    return x


@implements(np.real_if_close, arrays="a", static="tol")
def real_if_close(a, tol=100):
    """np.real_if_close, whose result is real: of which dtype it is, is known when code is
    generated.
    """
    a = np.asanyarray(a)
    if a.dtype.kind != "c":
        return a
    limit = tol * float(np.finfo(a.dtype).eps) if tol > 1 else tol
    if not np.all(np.abs(a.imag) < limit):
        raise NotImplementedError("s2s: np.real_if_close of complex numbers that are not close to "
                                  "real ones: leave it out, as they stay complex, or take .real")
    return a.real


def replaced(x, nan, posinf, neginf):
    """np.nan_to_num with given replacements."""
    dtype = np.asarray(x).dtype
    if dtype.kind == "c":
        raise NotImplementedError("s2s: np.nan_to_num of complex numbers with numbers of one's "
                                  "own: use np.where(np.isnan(x), ..., x)")
    if dtype.kind != "f":
        return x
    largest = float(np.finfo(dtype).max)
    return without_infinite(x, nan, largest if posinf is None else posinf,
                            -largest if neginf is None else neginf)


def without_infinite(x, nan, posinf, neginf):
    """np.nan_to_num of floats."""
    return np.where(np.isnan(x), nan, np.where(
        x == np.inf, posinf, np.where(x == -np.inf, neginf, x))).astype(x.dtype)


@implements(np.interp)
def interpolated_around(x, xp, fp, left=None, right=None, period=None):
    """np.interp, of samples of a periodic function, too."""
    if period is None:
        return np.interp(x, xp, fp, left=left, right=right)
    x, xp, fp = np.asarray(x), np.asarray(xp), np.asarray(fp)
    if period == 0:
        raise ValueError("period must be a non-zero value")
    period = abs(period)
    xp, fp = xp % period, fp - 0.0
    order = np.argsort(xp)
    xp, fp = xp[order], fp[order]
    return np.interp(x % period, np.concatenate((xp[-1:] - period, xp, xp[:1] + period)),
                     np.concatenate((fp[-1:], fp, fp[:1])))


def condition_in_norm(x, p):
    """np.linalg.cond in a norm other than the largest singular value: infinite for a singular
    matrix, with NaN slopes.
    """
    if p == "nuc":  # of which NumPy asks what raises
        return (np.linalg.norm(x, p, axis=(-2, -1))
                * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1)))
    size = np.linalg.slogdet(x)[1]
    inverse = np.linalg.inv(np.where(np.reshape(size > -np.inf, (*x.shape[:-2], 1, 1)), x,
                                     np.eye(x.shape[-1], dtype=x.dtype)))
    found, singular = (
        np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(inverse, p, axis=(-2, -1)),
        size == -np.inf)
    return np.where(singular, (found + singular) * np.inf, found)


def least_condition(x):
    """np.linalg.cond with p=-2."""
    s = np.linalg.svd(x, compute_uv=False)
    return (s[..., -1] + (s[..., 0] == 0)) / s[..., 0]
