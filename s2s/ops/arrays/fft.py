"""Discrete Fourier transforms: np.fft, and the same functions of scipy.fft.

All transforms are one of four ops, `fft`, `ifft`, `rfft` and `irfft`, along one axis or several:
fft2 and fftn are an `fft` with more axes, hfft is an `irfft` of the conjugate with the norm of the
other direction, as in NumPy, and ihfft likewise. The lengths to which a transform crops or pads are
operands, because they may be computed; there are none if it keeps the lengths of its input. `axes`
is as in the program: a number for np.fft.fft, a tuple or None for np.fft.fftn.

Note [Transforms transposed]
Cotangents are multiplied without conjugation (ops/core/chain_rule.py), so an adjoint is the
transposed matrix. That of fft, w ** (j * k), is symmetric: the adjoint of fft is fft and that of
ifft is ifft, with the same norm. rfft is the first n // 2 + 1 rows of that matrix, applied to real
numbers. Its adjoint is the real part of the sum over those rows, and irfft without its factor 1 / n
is the real part of a sum with w ** (-j * k) in which bins with a mirror image count twice; so the
adjoint is irfft of the conjugate, divided by these counts, with the norm of the other direction.
The adjoint of irfft is the conjugate of rfft, multiplied by them. So the ops are closed under
differentiation. Cropping and padding with zeros are each other's adjoints: the op `fitted`, the
identity where the lengths are proved equal.

Considered: the adjoint of rfft as np.real(np.fft.fft(y_bar, n)), which needs no counts and takes
twice the time; counts written as two elements and a slice that are halved in place, whose
derivatives are writes again; np.fft.hfft for irfft of the conjugate, which is little known and
works along one axis only; an op for each function of np.fft, sixteen instead of four; matrices of w
** (j * k), which take n ** 2 steps.

Compiled code calls NumPy for each transform, because Numba supports none. That takes some
microseconds, and the loops around it stay compiled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_extent, fresh_shape
from ...ir.graph import Op, Value
from ...ir.types import Array, Extent, Scalar, Type, Unknown, is_inexact
from ...lazy_import import Named
from ..core.axis_numbers import normal_axes, static_axis
from ..core.batch_rules import over_one_axis, shifted
from ..core.chain_rule import like_operand, real_if
from ..core.define_elementwise import is_none
from ..core.dependence_rules import follows, spread_as
from ..core.elementwise import conjugate
from ..core.record import RECORDS, Record, define, dtype_of, numpy_function, rank, shared, value
from ..core.record import static as known
from ..core.shape import extent_of, length, literal, members, named_extent, shaped_like
from ..core.signs import and_zero
from . import stablehlo_arrays
from .axes import expand_dims, roll_record
from .concatenate import along
from .create import shape_tuple, zeros_record
from .index import put, take
from .reduce import as_array, sum_record

OTHER_WAY = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": None}

# -------------------------------------------------------------------------------------------- types


def axes_of(x: Value, axes) -> tuple[int, ...]:
    """The transformed axes, the last one first; counted from 0 if the rank is known."""
    if rank(x) is not None:
        return normal_axes(axes, rank(x))
    axes = axes if isinstance(axes, tuple) else (axes,)
    if any(axis is None or axis >= 0 for axis in axes):
        raise UnsupportedError("a Fourier transform along these axes of an array of unknown rank",
                               current().line,
                               "call the function once, or count the axes from the end")
    return axes


def _bins(extent):
    """The length of np.fft.rfft of n numbers."""
    if isinstance(extent, int):
        return extent // 2 + 1
    if extent.accepts_any:
        return fresh_extent()
    made = named_extent(("bins", extent))
    return made if extent.may_be_one else replace(made, symbol_may_be_one=False)


def _from_bins(extent):
    """The default length of np.fft.irfft of so many bins; never 1."""
    if isinstance(extent, int):
        return 2 * (extent - 1)
    made = fresh_extent() if extent.accepts_any else named_extent(("from bins", extent))
    return replace(made, symbol_may_be_one=False)


def _dtype(name: str, dtype: str | None) -> str:
    if dtype is None:  # before a call it is taken to be double precision
        return "float64" if name == "irfft" else "complex128"
    if dtype == "float16":
        raise UnsupportedError("a Fourier transform of float16", current().line,
                               "convert it to np.float32")
    if name == "rfft" and dtype.startswith("complex"):
        raise TypeMismatchError(f"np.fft.rfft of {dtype}", current().line,
                                "use np.fft.fft, or the real part")
    is_single = dtype in ("float32", "complex64")
    if name == "irfft":
        return "float32" if is_single else "float64"
    return "complex64" if is_single else "complex128"


def _infer(name: str) -> Callable:
    def infer(x: Value, *lengths: Value, axes, norm, library) -> Type:
        if rank(x) == 0:
            raise TypeMismatchError(f"a Fourier transform of {x.type}", current().line,
                                    "give it an array")
        dtype = _dtype(name, dtype_of(x.type))
        if rank(x) is None:
            return Unknown(fresh_shape() if lengths or name in ("rfft", "irfft") else x.type.shape,
                           dtype)
        dims, along = list(x.type.dims), axes_of(x, axes)
        for axis, n in zip(along, lengths):
            dims[axis] = extent_of(n)
        if name == "rfft":
            dims[along[-1]] = _bins(dims[along[-1]])
        elif name == "irfft" and not lengths:
            dims[along[-1]] = _from_bins(dims[along[-1]])
        return Array(dtype, tuple(dims))

    return infer


# ------------------------------------------------------------------------------------------ the ops


def _spelling(name: str, axes) -> str:
    """The name of the function: np.fft.fft, fft2 or fftn."""
    return name if isinstance(axes, int) else f"{name}2" if axes == (-2, -1) else f"{name}n"


def _function(name: str, library: str) -> Callable:
    return getattr(np.fft, name) if library == "np" else Named("scipy.fft", name)


def _evaluate(name: str) -> Callable:
    def evaluate(x, *lengths, axes, norm, library):
        function = _function(_spelling(name, axes), library)
        if isinstance(axes, int):
            return function(x, *lengths, axis=axes, norm=norm)
        return function(x, lengths or None, axes, norm)

    return evaluate


def _syntax(name: str) -> Callable:
    def syntax(x: ast.expr, *lengths: ast.expr, axes, norm, library) -> ast.expr:
        spelling = _spelling(name, axes)
        if isinstance(axes, int):
            sizes = list(lengths)
            by_name = {"axis": None if axes == -1 else literal(axes)}
        else:
            sizes = [shape_tuple(lengths)] if lengths else []
            by_name = {"axes": literal(axes) if spelling.endswith("n") else None}
        keywords = [ast.keyword(k, v)
                    for k, v in {**by_name, "norm": literal(norm)}.items() if v is not None]
        return ast.Call(spelled(library, spelling), [x, *sizes], keywords)

    return syntax


def spelled(library: str, name: str) -> ast.expr:
    module = ast.Attribute(ast.Name(library, ast.Load()), "fft", ast.Load())
    return ast.Attribute(module, name, ast.Load())


def _vjp(name: str) -> Callable:
    def vjp(bar, y, x, *lengths, axes, norm, library):
        found = TRANSPOSED[name](unconverted(real_if(bar, y)), x, lengths, axes,
                                 {"axes": axes, "norm": norm, "library": library})
        found = like_operand(found, x)
        for axis in axes_of(x, axes) if lengths else ():
            found = fitted_record(found, length(x, axis=axis), axis=axis)
        return shaped_like(found, x), *[None] * len(lengths)

    return vjp


def unconverted(bar: Value) -> Value:
    """`bar`, or the real array that it was converted from: real transforms are faster."""
    if bar.op is None or bar.op.name != "astype":
        return bar
    pair = dtype_of(bar.op.inputs[0].type), dtype_of(bar.type)
    return (bar.op.inputs[0] if pair in (("float64", "complex128"), ("float32", "complex64"))
            else bar)


@shared
def _batch(record: Record, flags, x: Value, *lengths: Value, axes, **attrs):
    if not flags[0] or any(flags[1:]):
        return None
    from_end = axes is not None and max(axes if isinstance(axes, tuple) else (axes,)) < 0
    return record(x, *lengths, axes=axes if from_end else shifted(axes, rank(x) - 1), **attrs)


@follows(0)
def depends_transform(unions, y, deps, x, *lengths, axes=None, axis=None, **attrs):
    """Rule: all elements along the axes of a Fourier or cosine transform."""
    found = unions.along(spread_as(deps[0], x), axes if axis is None else axis, keepdims=True)
    return np.broadcast_to(found, y.shape).copy()


def _transform(name: str) -> Record:
    return define(name, evaluate=_evaluate(name), infer=_infer(name), vjp=_vjp(name), linear=(0,),
                  syntax=_syntax(name), batch=_batch, depends=depends_transform, contiguous="all",
                  stablehlo=stablehlo_arrays.transformed(name))


fft, ifft, rfft, irfft = map(_transform, ("fft", "ifft", "rfft", "irfft"))


def _transposed_rfft(bar: Value, x: Value, lengths: Sequence[Value], axes, attrs: dict) -> Value:
    along = axes_of(x, axes)
    lengths = lengths or [length(x, axis=axis) for axis in along]
    once = _conjugate(bar) / _counts(lengths[-1], x, along[-1])
    return irfft(once, *lengths, **{**attrs, "norm": OTHER_WAY[attrs["norm"]]})


def _transposed_irfft(bar: Value, x: Value, lengths: Sequence[Value], axes, attrs: dict) -> Value:
    last = axes_of(x, axes)[-1]
    n = lengths[-1] if lengths else length(bar, axis=last)
    return (_counts(n, x, last)
            * _conjugate(rfft(bar, **{**attrs, "norm": OTHER_WAY[attrs["norm"]]})))


TRANSPOSED = {  # (bar, x, lengths, axes, attrs): Note [Transforms transposed]
    "fft": lambda bar, x, lengths, axes, attrs: fft(bar, **attrs),
    "ifft": lambda bar, x, lengths, axes, attrs: ifft(bar, **attrs),
    "rfft": _transposed_rfft,
    "irfft": _transposed_irfft,
}


def _conjugate(x: Value) -> Value:
    if (dtype_of(x.type) or "").startswith("float"):
        return x
    return x.op.inputs[0] if x.op is not None and x.op.record is conjugate else conjugate(x)


# ----------------------------------------------------------------------------- cropping and padding


def fitted(x, n, axis):
    """x, cropped or padded with zeros to n elements along an axis."""
    axis %= x.ndim
    y = np.zeros((*x.shape[:axis], n, *x.shape[axis + 1:]), x.dtype)
    part = (*(slice(None),) * axis, slice(min(n, x.shape[axis])))
    y[part] = x[part]
    return y


def _infer_fitted(x: Value, n: Value, *, axis: int) -> Type:
    if rank(x) is None:
        return Unknown(fresh_shape(), dtype_of(x.type))
    dims = list(x.type.dims)
    dims[axis] = extent_of(n)
    return Array(x.type.dtype, tuple(dims))


def _fold_fitted(x: Value, n: Value, *, axis: int):
    if rank(x) is None:
        return None
    have, want = x.type.dims[axis], extent_of(n)
    if have == want and not getattr(have, "accepts_any", False):
        return x
    return take(x, along(axis, slice(None, n))) if _is_longer(have, want) else None


def _is_longer(have, want) -> bool:
    if isinstance(have, int) and isinstance(want, int):
        return have > want
    return (isinstance(have, Extent) and isinstance(want, Extent) and have.symbol == want.symbol
            and have.offset > want.offset)


def _lower_fitted(op: Op, x: Value, n: Value) -> Value:
    """Write a part of x into an array of zeros."""
    axis = op.attrs["axis"]
    part = along(axis, slice(None, RECORDS["min_"](n, length(x, axis=axis))))
    lengths = [n if k == axis % rank(x) else length(x, axis=k) for k in range(rank(x))]
    return put(zeros_record(*lengths, dtype=x.type.dtype), part, take(x, part))


fitted_record = define(
    "fitted",  # (x, n; axis)
    evaluate=lambda x, n, *, axis: fitted(x, n, axis),
    infer=_infer_fitted,
    fold=_fold_fitted,
    vjp=lambda bar, y, x, n, *, axis: (
        shaped_like(fitted_record(bar, length(x, axis=axis), axis=axis), x), None),
    linear=(0,),
    helper=fitted,
    syntax=lambda x, n, *, axis: ast.Call(ast.Name("fitted", ast.Load()), [x, n, literal(axis)],
                                          []),
    moves=(0,), least=and_zero,
    batch=over_one_axis,
    lower=_lower_fitted,
)


# --------------------------------------------------------------------------- how often a bin counts


def bin_counts(n):
    """How many of the n bins of a whole transform each bin of np.fft.rfft stands for: 1, or 2 with its mirror image."""
    counts = np.full(n // 2 + 1, 2, np.int8)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    return counts


bin_counts_record = define(
    "bin_counts",
    evaluate=bin_counts,
    infer=lambda n: Array("int8", (_bins(extent_of(n)),)),
    helper=bin_counts,
    partials=(None,),
    cheap=True,
    syntax=lambda n: ast.Call(ast.Name("bin_counts", ast.Load()), [n], []),
)


def _counts(n: Value, x: Value, axis: int) -> Value:
    """bin_counts(n), shaped to broadcast along an axis of arrays like `x`."""
    after = (rank(x) - axis if axis >= 0 else -axis) - 1
    return expand_dims(bin_counts_record(n), tuple(range(1, after + 1)))


# ------------------------------------------------------------------------------- functions of NumPy


def checked_norm(norm):
    norm = known(norm, "norm")
    if norm not in (None, "backward", "ortho", "forward"):
        raise TypeMismatchError(f"a Fourier transform with norm={norm!r}", current().line,
                                'use "backward", "ortho" or "forward"')
    return None if norm == "backward" else norm


def checked_length(n) -> Value:
    n = value(n)
    if not isinstance(n.type, (Scalar, Unknown)) or is_inexact(dtype_of(n.type) or "int64"):
        raise TypeMismatchError(f"a Fourier transform of {n.type} numbers", current().line,
                                "use an integer")
    return n


def _along_one(record: Record, x: Value, n, axis, norm: str | None, library: str) -> Value:
    axis = static_axis(axis)
    if not isinstance(axis, int):
        raise TypeMismatchError(f"a Fourier transform along axis={axis}", current().line,
                                "name one axis")
    if rank(x):
        normal_axes(axis, rank(x))
    return record(x, *([] if is_none(n) else [checked_length(n)]), axes=axis, norm=norm,
                  library=library)


def _along_many(record: Record, x: Value, s, axes, norm: str | None, library: str) -> Value:
    axes = static_axis(axes)
    axes = (axes,) if isinstance(axes, int) else axes
    if axes == ():
        raise UnsupportedError("a Fourier transform along no axes", current().line, "leave it out")
    lengths, axes = ([], axes) if is_none(s) else _lengths_along(x, s, axes)
    if rank(x):
        normal_axes(axes, rank(x))
    return record(x, *lengths, axes=axes, norm=norm, library=library)


def _lengths_along(x: Value, s, axes) -> tuple[list[Value], tuple[int, ...]]:
    """The lengths `s` and their axes; -1 means the length of x."""
    found = members(s)
    if found is None:
        raise UnsupportedError("a Fourier transform with an s that is no tuple of lengths",
                               current().line, "write it as a tuple")
    axes = tuple(range(-len(found), 0)) if axes is None else axes
    if len(axes) != len(found):
        raise TypeMismatchError(
            f"a Fourier transform along {len(axes)} axes, of {len(found)} lengths", current().line,
            "give as many of one as of the other")
    return ([length(x, axis=axis) if n.constant == -1 else checked_length(n)
             for n, axis in zip(found, axes)], axes)


def defaults_only(**options) -> None:
    for name, given in options.items():
        if known(given, name):
            raise UnsupportedError(f"scipy.fft with {name}=", current().line, "leave it out")


def _mean(name: str, rule: Callable, default) -> None:
    """Register the meaning of a function of both libraries: rule(record, x, lengths, axes, norm,
    library), with `default` axes.
    """
    is_turned = name in ("hfft", "ihfft")
    record = RECORDS[{"hfft": "irfft", "ihfft": "rfft"}.get(name, name.rstrip("2n"))]

    def transformed(x, lengths, axes, norm, library: str) -> Value:
        x, norm = as_array(x), checked_norm(norm)
        if not is_turned:
            return rule(record, x, lengths, axes, norm, library)
        x = _conjugate(x) if record is irfft and is_inexact(dtype_of(x.type) or "float64") else x
        y = rule(record, x, lengths, axes, OTHER_WAY[norm], library)
        return _conjugate(y) if record is rfft else y

    if rule is _along_one:
        def numpys(a, n=None, axis=default, norm=None):
            return transformed(a, n, axis, norm, "np")

        def scipys(x, n=None, axis=default, norm=None, overwrite_x=False, workers=None, *,
                   plan=None):
            defaults_only(overwrite_x=overwrite_x, workers=workers, plan=plan)
            return transformed(x, n, axis, norm, "scipy")
    else:
        def numpys(a, s=None, axes=default, norm=None):
            return transformed(a, s, axes, norm, "np")

        def scipys(x, s=None, axes=default, norm=None, overwrite_x=False, workers=None, *,
                   plan=None):
            defaults_only(overwrite_x=overwrite_x, workers=workers, plan=plan)
            return transformed(x, s, axes, norm, "scipy")

    numpys.__qualname__ = scipys.__qualname__ = numpys.__name__ = scipys.__name__ = name
    numpy_function(Named("numpy.fft", name))(numpys)
    numpy_function(Named("scipy.fft", name))(scipys)


for _name in ("fft", "ifft", "rfft", "irfft"):
    _mean(_name, _along_one, -1)
    _mean(f"{_name}2", _along_many, (-2, -1))
    _mean(f"{_name}n", _along_many, None)
for _name in ("hfft", "ihfft"):
    _mean(_name, _along_one, -1)

# -------------------------------------------------------------------------------------- frequencies


def _of_both(name: str) -> Callable:
    return numpy_function(Named("numpy.fft", name), Named("scipy.fft", name))


def _turned(x, axes, ahead: bool) -> Value:
    """`x`, each axis rolled by half its length."""
    x = as_array(x)
    if rank(x) is None and is_none(axes):
        raise UnsupportedError("np.fft.fftshift of an array of unknown rank", current().line,
                               "call the function once, or name the axes")
    axes = axes_of(x, static_axis(axes)) if rank(x) is not None or not is_none(axes) else ()
    for axis in axes:
        half = length(x, axis=axis) // 2
        x = roll_record(x, half if ahead else -half, axis=axis)
    return x


@_of_both("fftshift")
def fftshift(x, axes=None) -> Value:
    """np.fft.fftshift: move the frequency 0 to the middle."""
    return _turned(x, axes, True)


@_of_both("ifftshift")
def ifftshift(x, axes=None) -> Value:
    """np.fft.ifftshift, the inverse of fftshift."""
    return _turned(x, axes, False)


def _frequencies(name: str, extent: Callable) -> Record:
    """Multiples of 1 / (n * d)."""

    def infer(n: Value, d: Value) -> Type:
        if rank(d) != 0 or (dtype_of(d.type) or "").startswith("complex"):
            raise TypeMismatchError(f"np.fft.{name} with samples {d.type} apart", current().line,
                                    "give it a real number")
        return Array("float64", (extent(extent_of(n)),))

    def vjp(bar, y, n, d):
        return None, like_operand(-(sum_record(bar * y, axis=None, keepdims=False) / d), d)

    def jvp(dots, y, n, d):
        return None if dots[1] is None else -(y * dots[1] / d)

    return define(name, evaluate=getattr(np.fft, name), infer=infer, vjp=vjp, jvp=jvp,
                  states_both="the sum over a cotangent is divided once",
                  syntax=lambda n, d: ast.Call(spelled("np", name), [n] if is_one(d) else [n, d],
                                               []),
                  # as NumPy computes them
                  lower=lambda op, n, d: bin_numbers(n, name=name) * (1.0 / (n * d)))


def is_one(d: ast.expr) -> bool:
    return isinstance(d, ast.Constant) and d.value == 1.0


bin_numbers = define(
    "bin_numbers",  # multiples of 1 / (n * d): the op for compiled code
    evaluate=lambda n, *, name: np.rint(getattr(np.fft, name)(n, 1 / n)).astype(np.int64),
    infer=lambda n, *, name: Array(
        "int64", ((_bins if name == "rfftfreq" else lambda extent: extent)(extent_of(n)),)),
    partials=(None,),
    cheap=True,
)


fftfreq_record = _frequencies("fftfreq", lambda extent: extent)
rfftfreq_record = _frequencies("rfftfreq", _bins)


@_of_both("fftfreq")
def fftfreq(n, d=1.0, device=None) -> Value:
    """np.fft.fftfreq."""
    defaults_only(device=device)
    return fftfreq_record(checked_length(n), value(d))


@_of_both("rfftfreq")
def rfftfreq(n, d=1.0, device=None) -> Value:
    """np.fft.rfftfreq."""
    defaults_only(device=device)
    return rfftfreq_record(checked_length(n), value(d))
