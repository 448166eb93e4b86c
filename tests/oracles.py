"""What the derivative of a Python function is, found out without the compiler.

The chief oracle runs the user's own function on hyper-dual numbers: v + a*e1 + b*e2 + ab*e1*e2 with
e1*e1 = e2*e2 = 0, so that one run gives two first derivatives and the mixed second one, exactly.  A
`Hyper` is such a number or an array of them, with NumPy's indexing, views, broadcasting and
in-place writes.  The function runs with its own globals, except that `np.zeros` and its kind make
Hypers, so that Hypers can be written into them.

The others are the complex step (programs that are analytic and do not branch), the identity
<y_bar, J x_dot> = <J^T y_bar, x_dot>, and last, Richardson-extrapolated central differences.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
import types
from collections.abc import Callable, Sequence

import numpy as np
from scipy import special

PARTS = ("v", "a", "b", "ab")


class NotCovered(BaseException):
    """The oracle does not know a function: no handler of a program may take it for the program's
    own error.
    """


class Hyper:
    """A hyper-dual number or array: four components of one shape."""

    __slots__ = PARTS
    __array_priority__ = 1000

    def __init__(self, v, a=None, b=None, ab=None):
        self.v = v
        self.a = np.zeros_like(v) if a is None else a
        self.b = np.zeros_like(v) if b is None else b
        self.ab = np.zeros_like(v) if ab is None else ab

    # shape and identity
    shape = property(lambda self: np.shape(self.v))
    ndim = property(lambda self: np.ndim(self.v))
    size = property(lambda self: np.size(self.v))
    dtype = property(lambda self: np.asarray(self.v).dtype)
    T = property(lambda self: each(self, np.transpose))
    real = property(
        lambda self: each(self, np.real), lambda self, new: _write_part(self, "real", new)
    )
    imag = property(
        lambda self: each(self, np.imag), lambda self, new: _write_part(self, "imag", new)
    )

    def __repr__(self): return f"Hyper({self.v!r}, {self.a!r}, {self.b!r}, {self.ab!r})"
    def __format__(self, spec): return format(self.v, spec)
    def __len__(self): return len(self.v)
    def __iter__(self): return (self[i] for i in range(len(self)))
    def __hash__(self): return id(self)

    # NumPy's protocols
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        name = ufunc.__name__
        if method == "at" and name == "add":
            x, key, new = inputs[0], primal(inputs[1]), lift(inputs[2])
            for part in PARTS:
                np.add.at(getattr(x, part), key, getattr(new, part))
            return None
        if method == "reduce":
            return FUNCTIONS[
                {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}[name]
            ](*inputs, **kwargs)
        if method == "at":
            return _at(name, *inputs)
        if method != "__call__":
            raise NotCovered(f"{name}.{method} of hyper-dual numbers")
        where = kwargs.pop("where", True)
        result = apply(name, *inputs)
        if out is not None:
            for part in PARTS:
                np.copyto(getattr(out[0], part), getattr(lift(result), part), where=primal(where))
            return out[0]
        return result

    def __array_function__(self, func, types, args, kwargs):
        kwargs = dict(kwargs)
        out = kwargs.pop("out", None)
        result = FUNCTIONS[func.__name__](*args, **kwargs)
        if out is not None:
            out[...] = result
        return result if out is None else out

    # indexing: the components of a view are views
    def __getitem__(self, key):
        key = primal(key)
        return Hyper(*(getattr(self, part)[key] for part in PARTS))

    def __setitem__(self, key, new):
        key, new = primal(key), lift(new)
        for part in PARTS:
            getattr(self, part)[key] = getattr(new, part)

    # arithmetic
    def __add__(self, o): return apply("add", self, o)
    def __radd__(self, o): return apply("add", o, self)
    def __sub__(self, o): return apply("subtract", self, o)
    def __rsub__(self, o): return apply("subtract", o, self)
    def __mul__(self, o): return apply("multiply", self, o)
    def __rmul__(self, o): return apply("multiply", o, self)
    def __truediv__(self, o): return apply("divide", self, o)
    def __rtruediv__(self, o): return apply("divide", o, self)
    def __floordiv__(self, o): return apply("floor_divide", self, o)
    def __rfloordiv__(self, o): return apply("floor_divide", o, self)
    def __mod__(self, o): return apply("remainder", self, o)
    def __rmod__(self, o): return apply("remainder", o, self)
    def __pow__(self, o): return apply("power", self, o)
    def __rpow__(self, o): return apply("power", o, self)
    def __matmul__(self, o): return bilinear(np.matmul, self, o)
    def __rmatmul__(self, o): return bilinear(np.matmul, o, self)
    def __neg__(self): return apply("negative", self)
    def __pos__(self): return self
    def __abs__(self): return apply("absolute", self)

    def _write(self, new):
        if not isinstance(self.v, np.ndarray):
            return new  # a number, not an array of no axes
        self[...] = new
        return self

    def __iadd__(self, o): return self._write(self + o)
    def __isub__(self, o): return self._write(self - o)
    def __imul__(self, o): return self._write(self * o)
    def __itruediv__(self, o): return self._write(self / o)
    def __ipow__(self, o): return self._write(self ** o)

    # a comparison compares values
    def __lt__(self, o): return self.v < primal(o)
    def __le__(self, o): return self.v <= primal(o)
    def __gt__(self, o): return self.v > primal(o)
    def __ge__(self, o): return self.v >= primal(o)
    def __eq__(self, o): return self.v == primal(o)
    def __ne__(self, o): return self.v != primal(o)
    def __bool__(self): return bool(self.v)
    def __int__(self): return int(self.v)
    def __round__(self, digits=None): return round(float(self.v), digits)

    def astype(self, dtype, copy=True):
        if not copy and self.dtype == dtype:
            return self
        return (
            each(self, lambda x: np.asarray(x).astype(dtype))
            if np.issubdtype(dtype, np.inexact)
            else self.v.astype(dtype)
        )

    def item(self, *key): return each(self, lambda x: x.item(*key))
    def view(self): return each(self, lambda x: x.view())
    def flatten(self): return each(self, np.ravel).copy()
    def fill(self, new): self[...] = new
    def sort(self, axis=-1): self[...] = FUNCTIONS["sort"](self.copy(), axis)
    def put(self, index, new): FUNCTIONS["put"](self, index, new)
    flat = property(lambda self: Flat(self))

    def __getattr__(self, name):
        if name in METHODS:
            return lambda *args, **kwargs: self.__array_function__(
                getattr(np, name), (), (self, *args), kwargs
            )
        raise AttributeError(name)


class Flat:
    """x.flat of a Hyper."""

    def __init__(self, x: Hyper): self.x = x
    def __len__(self): return self.x.size
    def __iter__(self): return (self[k] for k in range(len(self)))
    def __getitem__(self, key): return each(self.x, lambda part: part.flat[primal(key)])

    def __setitem__(self, key, new):
        for part in PARTS:
            getattr(self.x, part).flat[primal(key)] = getattr(lift(new), part)


METHODS = {
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "dot",
    "reshape",
    "transpose",
    "ravel",
    "copy",
    "cumsum",
    "cumprod",
    "clip",
    "argmax",
    "argmin",
    "argsort",
    "squeeze",
    "swapaxes",
    "repeat",
    "take",
    "diagonal",
    "trace",
    "var",
    "std",
    "any",
    "all",
    "conj",
    "conjugate",
}


def lift(x) -> Hyper:
    """`x` as a Hyper: with zero tangents, unless it is one or holds some."""
    if isinstance(x, Hyper):
        return x
    if isinstance(x, (list, tuple)):
        return (
            FUNCTIONS["stack"]([lift(item) for item in x]) if len(x) else Hyper(np.array([], float))
        )
    x = np.asarray(x)
    return Hyper((x if x.dtype.kind == "c" else x.astype(float))[()])


def primal(x):
    """`x` without its tangents."""
    if isinstance(x, (list, tuple)):
        return type(x)(primal(item) for item in x)
    return x.v if isinstance(x, Hyper) else x


def each(x: Hyper, function: Callable) -> Hyper:
    """A linear function applied to each component."""
    return Hyper(*(function(getattr(x, part)) for part in PARTS))


def _write_part(x: Hyper, name: str, new) -> None:
    """`x.real = new`, `x.imag = new`."""
    new = lift(new)
    for part in PARTS:
        setattr(getattr(x, part), name, getattr(new, part))


def scaled(factor, tangent):
    """factor * tangent, and zero where the tangent is zero, even if the factor is infinite
    there.
    """
    with np.errstate(all="ignore"):
        return np.where(np.asarray(tangent) == 0, 0.0, factor * tangent)


def bilinear(function: Callable, x, y) -> Hyper:
    """A product: the product rule, twice."""
    x, y = lift(x), lift(y)
    return Hyper(
        function(x.v, y.v),
        function(x.a, y.v) + function(x.v, y.a),
        function(x.b, y.v) + function(x.v, y.b),
        function(x.ab, y.v) + function(x.a, y.b) + function(x.b, y.a) + function(x.v, y.ab),
    )


def is_complex(x) -> bool:
    return np.iscomplexobj(primal(x))


# ------------------------------------------------------------------------------------ elementwise
#
# dy/dx and d2y/dx2, from any table of derivatives.  Of complex numbers, too: they are derivatives
# of analytic functions; those that are not, `abs` and these, are made of real and imaginary parts.

SPLIT = {
    "conjugate": lambda z: each(z, np.conj),
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
}

SQRT_PI = math.sqrt(math.pi)
UNARY = {
    "negative": (lambda x, y: -1.0, lambda x, y: 0.0),
    "positive": (lambda x, y: 1.0, lambda x, y: 0.0),
    "exp": (lambda x, y: y, lambda x, y: y),
    "exp2": (lambda x, y: y * math.log(2), lambda x, y: y * math.log(2) ** 2),
    "expm1": (lambda x, y: np.exp(x), lambda x, y: np.exp(x)),
    "log": (lambda x, y: 1 / x, lambda x, y: -1 / x**2),
    "log2": (lambda x, y: 1 / x / math.log(2), lambda x, y: -1 / x**2 / math.log(2)),
    "log10": (lambda x, y: 1 / x / math.log(10), lambda x, y: -1 / x**2 / math.log(10)),
    "log1p": (lambda x, y: 1 / (1 + x), lambda x, y: -1 / (1 + x) ** 2),
    "sqrt": (lambda x, y: 0.5 / y, lambda x, y: -0.25 / (x * y)),
    "cbrt": (lambda x, y: y / (3 * x), lambda x, y: -2 * y / (9 * x * x)),
    "square": (lambda x, y: 2 * x, lambda x, y: 2.0),
    "reciprocal": (lambda x, y: -y * y, lambda x, y: 2 * y**3),
    "absolute": (lambda x, y: np.sign(x), lambda x, y: 0.0),
    "fabs": (lambda x, y: np.sign(x), lambda x, y: 0.0),
    "sin": (lambda x, y: np.cos(x), lambda x, y: -y),
    "cos": (lambda x, y: -np.sin(x), lambda x, y: -y),
    "tan": (lambda x, y: 1 + y * y, lambda x, y: 2 * y * (1 + y * y)),
    "arcsin": (lambda x, y: (1 - x * x) ** -0.5, lambda x, y: x * (1 - x * x) ** -1.5),
    "arccos": (lambda x, y: -((1 - x * x) ** -0.5), lambda x, y: -x * (1 - x * x) ** -1.5),
    "arctan": (lambda x, y: 1 / (1 + x * x), lambda x, y: -2 * x / (1 + x * x) ** 2),
    "sinh": (lambda x, y: np.cosh(x), lambda x, y: y),
    "cosh": (lambda x, y: np.sinh(x), lambda x, y: y),
    "tanh": (lambda x, y: 1 / np.cosh(x) ** 2, lambda x, y: -2 * y / np.cosh(x) ** 2),
    "arcsinh": (lambda x, y: (1 + x * x) ** -0.5, lambda x, y: -x * (1 + x * x) ** -1.5),
    "arccosh": (lambda x, y: (x * x - 1) ** -0.5, lambda x, y: -x * (x * x - 1) ** -1.5),
    "arctanh": (lambda x, y: 1 / (1 - x * x), lambda x, y: 2 * x / (1 - x * x) ** 2),
    "lgamma": (lambda x, y: special.digamma(x), lambda x, y: special.polygamma(1, x)),
    "gamma": (
        lambda x, y: y * special.digamma(x),
        lambda x, y: y * (special.digamma(x) ** 2 + special.polygamma(1, x)),
    ),
    "erf": (
        lambda x, y: 2 / SQRT_PI * np.exp(-x * x),
        lambda x, y: -4 * x / SQRT_PI * np.exp(-x * x),
    ),
    "erfc": (
        lambda x, y: -2 / SQRT_PI * np.exp(-x * x),
        lambda x, y: 4 * x / SQRT_PI * np.exp(-x * x),
    ),
    "deg2rad": (lambda x, y: math.pi / 180, lambda x, y: 0.0),
    "rad2deg": (lambda x, y: 180 / math.pi, lambda x, y: 0.0),
    "radians": (lambda x, y: math.pi / 180, lambda x, y: 0.0),
    "degrees": (lambda x, y: 180 / math.pi, lambda x, y: 0.0),
    **dict.fromkeys(
        ["sign", "floor", "ceil", "rint", "trunc"], (lambda x, y: 0.0, lambda x, y: 0.0)
    ),
}


def _zero(x, y, z): return 0.0
def _one(x, y, z): return 1.0


def _logistic(u): return 1 / (1 + np.exp(-u))


# z = f(x, y):  df/dx, df/dy, d2f/dx2, d2f/dxdy, d2f/dy2
BINARY = {
    "add": (_one, _one, _zero, _zero, _zero),
    "subtract": (_one, lambda x, y, z: -1.0, _zero, _zero, _zero),
    "multiply": (lambda x, y, z: y, lambda x, y, z: x, _zero, _one, _zero),
    "divide": (
        lambda x, y, z: 1 / y,
        lambda x, y, z: -z / y,
        _zero,
        lambda x, y, z: -1 / y**2,
        lambda x, y, z: 2 * z / y**2,
    ),
    "power": (
        lambda x, y, z: y * np.power(x, y - 1.0),
        lambda x, y, z: z * np.log(x),
        lambda x, y, z: y * (y - 1.0) * np.power(x, y - 2.0),
        lambda x, y, z: np.power(x, y - 1.0) * (1 + y * np.log(x)),
        lambda x, y, z: z * np.log(x) ** 2,
    ),
    "arctan2": (
        lambda x, y, z: y / (x * x + y * y),
        lambda x, y, z: -x / (x * x + y * y),
        lambda x, y, z: -2 * x * y / (x * x + y * y) ** 2,
        lambda x, y, z: (x * x - y * y) / (x * x + y * y) ** 2,
        lambda x, y, z: 2 * x * y / (x * x + y * y) ** 2,
    ),
    "hypot": (
        lambda x, y, z: x / z,
        lambda x, y, z: y / z,
        lambda x, y, z: y * y / z**3,
        lambda x, y, z: -x * y / z**3,
        lambda x, y, z: x * x / z**3,
    ),
    "logaddexp": (
        lambda x, y, z: _logistic(x - y),
        lambda x, y, z: _logistic(y - x),
        *[lambda x, y, z, s=s: s * _logistic(x - y) * _logistic(y - x) for s in (1, -1, 1)],
    ),
    "maximum": (lambda x, y, z: 1.0 * (x >= y), lambda x, y, z: 1.0 * (x < y), _zero, _zero, _zero),
    "minimum": (lambda x, y, z: 1.0 * (x <= y), lambda x, y, z: 1.0 * (x > y), _zero, _zero, _zero),
    "remainder": (_one, lambda x, y, z: -np.floor(x / y), _zero, _zero, _zero),
    "fmod": (_one, lambda x, y, z: -np.trunc(x / y), _zero, _zero, _zero),
    "floor_divide": (_zero, _zero, _zero, _zero, _zero),
    "copysign": (lambda x, y, z: np.sign(x) * np.sign(z), _zero, _zero, _zero, _zero),
}
BINARY |= {"fmax": BINARY["maximum"], "fmin": BINARY["minimum"], "float_power": BINARY["power"],
           "true_divide": BINARY["divide"], "mod": BINARY["remainder"]}


# of these one operand is the result, and of the other nothing counts, not even an infinite tangent
CHOOSING = {"maximum", "minimum", "fmax", "fmin"}
DIVISIONS = {
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
}
STEPS = {"floor", "ceil", "trunc", "rint", "sign", "heaviside", "spacing"}
PYTHONS = {"add", "subtract", "multiply", "power", "negative", "positive", "absolute", *DIVISIONS}


def apply(name: str, *inputs):
    """A ufunc of Hypers and plain values."""
    ufunc = getattr(np, name, None) or np.vectorize(getattr(math, name), otypes=[float])
    # np.atanh is arctanh
    name = getattr(ufunc, "__name__", name) if isinstance(ufunc, np.ufunc) else name
    if name == "matmul":
        return bilinear(np.matmul, *inputs)
    if name in SPLIT:
        return SPLIT[name](*map(lift, inputs))
    if name == "absolute" and is_complex(inputs[0]):
        return apply("hypot", inputs[0].real, inputs[0].imag)
    if name not in UNARY and name not in BINARY:
        found = ufunc(*map(primal, inputs))
        if name not in STEPS and any(
            np.asarray(part).dtype.kind not in "biu"
            for part in (found if isinstance(found, tuple) else (found,))
        ):
            raise NotCovered(f"the derivative of {name}")
        return found  # of comparisons, isfinite, ... : functions of the values
    values = [primal(x) for x in inputs]
    pythons = name in PYTHONS and all(type(v) in (bool, int, float, complex) for v in values)
    if pythons and name in DIVISIONS and values[1] == 0:
        DIVISIONS[name](*values)  # raises, as Python's own numbers do
    with np.errstate(all="ignore"):
        z = ufunc(*values)
        zero = np.zeros_like(z)
        if pythons:
            z, inputs = (
                z.item(),
                [each(x, np.asarray(0.0).__add__) if isinstance(x, Hyper) else x for x in inputs],
            )
        if len(inputs) == 1:
            x = inputs[0]
            first, second = (rule(x.v, z) for rule in UNARY[name])
            return Hyper(z, scaled(first, x.a) + zero, scaled(first, x.b) + zero,
                         scaled(first, x.ab) + scaled(second, x.a * x.b) + zero)
        x, y = map(lift, inputs)
        fx, fy, fxx, fxy, fyy = (rule(x.v, y.v, z) for rule in BINARY[name])
        if name in CHOOSING:
            return Hyper(
                z,
                *(
                    (
                        np.where(fx, getattr(x, part), 0.0)
                        + np.where(fy, getattr(y, part), 0.0)
                        + zero
                    )[()]
                    for part in PARTS[1:]
                ),
            )
        return Hyper(
            z,
            (scaled(fx, x.a) + scaled(fy, y.a) + zero)[()],
            (scaled(fx, x.b) + scaled(fy, y.b) + zero)[()],
            (scaled(fx, x.ab) + scaled(fy, y.ab) + scaled(fxx, x.a * x.b) + scaled(fyy, y.a * y.b)
             + scaled(fxy, x.a * y.b + x.b * y.a) + zero)[()],
        )


# -------------------------------------------------------------------------------- NumPy's functions

class _Functions(dict):
    def __missing__(self, name):
        raise NotCovered(f"np.{name} of hyper-dual numbers")


FUNCTIONS = _Functions()


def function(*names: str):
    def register(implementation):
        FUNCTIONS.update(dict.fromkeys(names, implementation))
        return implementation
    return register


def _linear(name: str) -> Callable:
    numpy_function = getattr(np, name)

    def run(x, *args, **kwargs):
        results = [
            numpy_function(getattr(lift(x), part), *map(primal, args), **kwargs) for part in PARTS
        ]
        if isinstance(results[0], (list, tuple)):
            return type(results[0])(Hyper(*parts) for parts in zip(*results))
        return Hyper(*results)
    return run


for _name in ("sum mean transpose ravel copy cumsum squeeze expand_dims swapaxes moveaxis repeat "
              "tile take "
              "diagonal diag trace tril triu hsplit vsplit dsplit roll flip flipud fliplr diff "
              "broadcast_to atleast_1d atleast_2d split array_split "
              "trapezoid rot90 real imag conj nansum take_along_axis delete").split():
    FUNCTIONS[_name] = _linear(_name)
for _name in ("fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn "
              "fftshift ifftshift").split():
    FUNCTIONS[_name] = lambda x, *args, _f=getattr(np.fft, _name), **kwargs: each(
        lift(x),
        lambda part: _f(part, *map(primal, args), **{k: primal(v) for k, v in kwargs.items()}),
    )
for _name in (
    "argmax argmin argsort any all shape size ndim isfinite isnan isinf allclose "
    "array_equal searchsorted "
    "count_nonzero nonzero flatnonzero argwhere round around digitize lexsort isin"
).split():
    FUNCTIONS[_name] = lambda *args, _f=getattr(np, _name), **kwargs: _f(
        *map(primal, args), **kwargs
    )
for _name in "matmul dot outer inner vdot tensordot kron convolve cross".split():
    FUNCTIONS[_name] = lambda x, y, *args, _f=getattr(np, _name), **kwargs: bilinear(
        lambda a, b: _f(a, b, *args, **kwargs), x, y)


@function("reshape")
def _reshape(x, *shape, **kwargs):
    return each(x, lambda part: np.reshape(part, shape[0] if len(shape) == 1 else shape, **kwargs))


FUNCTIONS["transpose"] = lambda x, *axes, **kwargs: each(
    x, lambda part: np.asarray(part).transpose(*axes, **kwargs)
)


for _name in "concatenate stack hstack vstack column_stack dstack".split():
    FUNCTIONS[_name] = lambda parts, *args, _f=getattr(np, _name), **kwargs: Hyper(
        *(_f([getattr(lift(x), part) for x in parts], *args, **kwargs) for part in PARTS))


@function("pad")
def _pad(x, pad_width, mode="constant", **constants):
    """What surrounds a constant part is added to the value alone."""
    x, zeros = lift(x), {key: 0.0 for key in constants}
    return Hyper(
        np.pad(x.v, pad_width, mode, **constants),
        *(np.pad(getattr(x, p), pad_width, mode, **zeros) for p in PARTS[1:]),
    )


@function("append")
def _append(x, y, axis=None):
    x, y = lift(x), lift(y)
    return Hyper(*(np.append(getattr(x, p), getattr(y, p), axis) for p in PARTS))


@function("cholesky")
def _cholesky(a):
    np.linalg.cholesky(a.v)  # raises where it does
    low = Hyper(np.zeros(a.shape))
    for i in range(len(a)):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s = s - low[i, k] * low[j, k]
            low[i, j] = apply("sqrt", s) if i == j else s / low[j, j]
    return low


@function("where")
def _where(condition, x, y):
    x, y = lift(x), lift(y)
    return Hyper(
        *(np.where(primal(condition), getattr(x, part), getattr(y, part))[()] for part in PARTS)
    )


@function("compress")
def _compress(condition, x, axis=None):
    return each(x, lambda part: np.compress(primal(condition), part, axis))


@function("extract")
def _extract(condition, x):
    return each(x, lambda part: np.extract(primal(condition), part))


@function("unique")
def _unique(x, return_index=False, return_inverse=False, return_counts=False):
    _, index, inverse, counts = np.unique(x.v, True, True, True)
    found = [x.ravel()[index]]
    found += [
        part
        for part, flag in (
            (index, return_index),
            (inverse, return_inverse),
            (counts, return_counts),
        )
        if flag
    ]
    return tuple(found) if len(found) > 1 else found[0]


@function("bincount")
def _bincount(x, weights=None, minlength=0):
    return each(lift(weights), lambda part: np.bincount(x, part, minlength))


@function("histogram")
def _histogram(x, bins=10, range=None, density=None, weights=None):
    edges = bins if np.ndim(primal(bins)) else NUMPY.linspace(*range, bins + 1)
    if weights is None:
        counts = np.histogram(primal(x), primal(edges))[0]
    else:
        counts = each(
            lift(weights), lambda part: np.histogram(primal(x), primal(edges), weights=part)[0]
        )
    return counts / np.diff(edges) / counts.sum() if density else counts, edges


@function("insert")
def _insert(x, place, new):
    x, new = lift(x), lift(new)
    return Hyper(*(np.insert(getattr(x, p), place, getattr(new, p)) for p in PARTS))


@function("einsum")
def _einsum(subscripts, *operands, **kwargs):
    if len(operands) == 1:
        return each(operands[0], lambda part: np.einsum(subscripts, part))
    return bilinear(lambda a, b: np.einsum(subscripts, a, b), *operands)


@function("clip")
def _clip(x, lo=None, hi=None):
    x = x if lo is None else apply("maximum", x, lo)
    return x if hi is None else apply("minimum", x, hi)


def _extreme(argument: Callable):
    def run(x, axis=None, keepdims=False):
        if axis is None:
            y = each(x, lambda part: np.ravel(part)[argument(x.v)])
            return each(y, lambda part: np.reshape(part, (1,) * x.ndim)) if keepdims else y
        index = np.expand_dims(argument(x.v, axis=axis), axis)
        y = each(x, lambda part: np.take_along_axis(part, index, axis))
        return y if keepdims else each(y, lambda part: np.squeeze(part, axis))
    return run


FUNCTIONS["max"] = FUNCTIONS["amax"] = _extreme(np.argmax)
FUNCTIONS["min"] = FUNCTIONS["amin"] = _extreme(np.argmin)


@function("prod")
def _prod(x, axis=None, keepdims=False):
    moved = each(x, np.ravel) if axis is None else each(x, lambda part: np.moveaxis(part, axis, 0))
    y = functools.reduce(lambda p, q: p * q, moved, lift(1.0))
    if keepdims:
        shape = (
            [1] * x.ndim
            if axis is None
            else [1 if k == axis % x.ndim else n for k, n in enumerate(x.shape)]
        )
        y = each(y, lambda part: np.reshape(part, shape))
    return y


@function("cumprod")
def _cumprod(x, axis=None):
    moved = each(x, np.ravel) if axis is None else each(x, lambda part: np.moveaxis(part, axis, 0))
    rows, total = [], lift(1.0)
    for row in moved:
        total = total * row
        rows.append(total)
    y = FUNCTIONS["stack"](rows)
    return y if axis is None else each(y, lambda part: np.moveaxis(part, 0, axis))


@function("var")
def _var(x, axis=None, ddof=0, keepdims=False):
    deviation = x - FUNCTIONS["mean"](x, axis=axis, keepdims=True)
    total = FUNCTIONS["sum"]((deviation * deviation.conj()).real, axis=axis, keepdims=keepdims)
    return total / (x.size // max(total.size, 1) - ddof)


@function("std")
def _std(x, axis=None, ddof=0, keepdims=False):
    return apply("sqrt", _var(x, axis, ddof, keepdims))


def _at(name: str, x, index, *operands):
    """A ufunc's `at`: one element after the other, as NumPy does it."""
    places = np.arange(x.size).reshape(x.shape)[primal(index)]
    operands = [each(lift(v), lambda part: np.broadcast_to(part, places.shape)) for v in operands]
    for k in np.ndindex(places.shape):
        at = np.unravel_index(places[k], x.shape)
        x[at] = apply(name, x[at], *(v[k] for v in operands))


def _writing(name: str, values: int) -> Callable:
    """A function of NumPy's that writes the argument of this position into the first, part by
    part.
    """

    def run(x, *args, **kwargs):
        args = [
            *args,
            *(kwargs.pop(k) for k in ("val", "vals", "values", "v", "src") if k in kwargs),
        ]
        for part in PARTS:
            own = [
                getattr(lift(a), part) if k + 1 == values else primal(a) for k, a in enumerate(args)
            ]
            getattr(np, name)(getattr(x, part), *own, **{k: primal(v) for k, v in kwargs.items()})
    return run


FUNCTIONS |= {
    name: _writing(name, values)
    for name, values in {
        "copyto": 1,
        "put": 2,
        "putmask": 2,
        "place": 2,
        "fill_diagonal": 1,
        "put_along_axis": 2,
    }.items()
}


@function("nan_to_num")
def _nan_to_num(x, copy=True, nan=0.0):
    result = x.copy() if copy else x
    result[np.isnan(x.v)] = nan
    return result


@function("sort")
def _sort(x, axis=-1):
    index = np.argsort(x.v, axis=axis)
    return each(x, lambda part: np.take_along_axis(part, index, axis))


FUNCTIONS["conj"] = FUNCTIONS["conjugate"] = lambda z: apply("conjugate", z)


@function("angle")
def _angle(z):
    return apply("arctan2", z.imag, z.real)


@function("norm")
def _norm(x, ord=None, axis=None, keepdims=False):
    return apply("sqrt", FUNCTIONS["sum"]((x * x.conj()).real, axis=axis, keepdims=keepdims))


@function("solve")
def _solve(A, y):
    A, y = lift(A), lift(y)
    v = np.linalg.solve(A.v, y.v)
    a = np.linalg.solve(A.v, y.a - A.a @ v)
    b = np.linalg.solve(A.v, y.b - A.b @ v)
    return Hyper(v, a, b, np.linalg.solve(A.v, y.ab - A.ab @ v - A.a @ b - A.b @ a))


@function("eigh")
def _eigh(A, UPLO="L"):
    """Perturbation theory: w' = diag(Q^T A' Q), Q' = Q W with W_ij = (Q^T A' Q)_ij / (w_j - w_i);
    and once more.
    """
    if np.ndim(A.v) != 2 or is_complex(A):
        raise NotCovered("eigh of a stack, or of complex numbers")
    w, Q = np.linalg.eigh(A.v, UPLO)
    part = np.tril if UPLO.upper() == "L" else np.triu  # the other triangle is not read
    a, b, ab = (Q.T @ (part(p) + part(p).T - np.diag(np.diag(p))) @ Q for p in (A.a, A.b, A.ab))
    gaps = w - w[:, None]
    with np.errstate(all="ignore"):
        inverse = np.where(np.eye(len(w)) == 1.0, 0.0, 1 / gaps)
        turn_a, turn_b = inverse * a, inverse * b
        ab = ab + turn_b.T @ a + a @ turn_b
        slopes = np.diag(b) - np.diag(b)[:, None]
        turn_ab = inverse * ab - inverse**2 * slopes * a
    return (Hyper(w, np.diag(a), np.diag(b), np.diag(ab)),
            Hyper(Q, Q @ turn_a, Q @ turn_b, Q @ (turn_b @ turn_a + turn_ab)))


@function("zeros_like", "empty_like")
def _zeros_like(x, dtype=None, **_):
    return _made(np.zeros(np.shape(primal(x)), dtype or np.asarray(primal(x)).dtype))


@function("ones_like")
def _ones_like(x, dtype=None, **_):
    return _made(np.ones(np.shape(primal(x)), dtype or np.asarray(primal(x)).dtype))


@function("full_like")
def _full_like(x, fill, dtype=None, **_):
    return _full(np.shape(primal(x)), fill, dtype or np.asarray(primal(x)).dtype)


# ---------------------------------------------------------------------- running the user's function


def _made(array):
    return Hyper(array) if np.issubdtype(array.dtype, np.inexact) else array


def _full(shape, fill, dtype=None):
    if isinstance(fill, Hyper):
        return Hyper(*(np.full(shape, getattr(fill, part)) for part in PARTS))
    return _made(np.full(shape, fill, dtype))


def _array(x, dtype=None, copy=True, **_):
    if isinstance(x, Hyper):
        return each(x, np.array) if copy else x
    flat = np.ravel(np.array(x, object))
    if any(isinstance(item, Hyper) for item in flat):
        return each(lift(x), np.array)
    return _made(np.array(x, dtype))


OF_SEQUENCES = "concatenate stack hstack vstack column_stack dstack where einsum".split()


class _NumPy(types.SimpleNamespace):
    """NumPy, except that what makes a fresh float array makes a Hyper."""

    def __getattr__(self, name):
        function = getattr(np, name)
        if name not in FUNCTIONS:
            return function

        def run(x, *args, **kwargs):
            """NumPy asks the members of a list of numbers for nothing: it is made an array
            first.
            """
            if (
                isinstance(x, list)
                and any(isinstance(item, Hyper) for item in x)
                and name not in OF_SEQUENCES
            ):
                x = lift(x)
            return function(x, *args, **kwargs)

        return run


def _maker(make: Callable) -> Callable:
    return lambda *args, **kwargs: _made(make(*map(primal, args), **kwargs))


def _linspace(start, stop, num=50, endpoint=True, **_):
    weights = np.linspace(0.0, 1.0, primal(num), endpoint)
    made = lift(start) * (1 - weights) + lift(stop) * weights
    made.v = np.linspace(primal(start), primal(stop), primal(num), endpoint)
    return made


def _rounded(dtype: type) -> Callable:
    """np.float32(x), which is a dtype, too."""
    def run(x=0.0):
        return each(x, lambda part: dtype(part)) if isinstance(x, Hyper) else dtype(x)
    run.dtype = np.dtype(dtype)
    return run


NUMPY = _NumPy(
    float32=_rounded(np.float32),
    float64=_rounded(np.float64),
    **{
        name: _maker(getattr(np, name))
        for name in ("zeros", "ones", "empty", "eye", "identity", "arange")
    },
    linspace=_linspace,
    full=_full,
    array=_array,
    asarray=lambda x, dtype=None: x if isinstance(x, Hyper) else _array(x, dtype),
    ascontiguousarray=lambda x: x,
    fft=np.fft,
    **{name: FUNCTIONS[name] for name in ("zeros_like", "empty_like", "ones_like", "full_like")},
)


MATH_OF_HYPERS = {
    "fsum": lambda xs: _sum(list(xs)),
    "prod": lambda xs, start=1: functools.reduce(lambda p, q: p * q, xs, start),
    "modf": lambda x: (x - float(np.trunc(x.v)), float(np.trunc(x.v))),
    "ldexp": lambda x, i: x * 2.0**i,
    "isclose": lambda a, b, **options: math.isclose(primal(a), primal(b), **options),
}


def _math_function(name: str) -> Callable:
    numpy_name = {
        "asin": "arcsin",
        "acos": "arccos",
        "atan": "arctan",
        "atan2": "arctan2",
        "pow": "power",
        "fabs": "fabs",
    }.get(name, name)

    def run(*args, **options):
        if name in MATH_OF_HYPERS and any(
            isinstance(x, Hyper) for a in args for x in (a if isinstance(a, list) else [a])
        ):
            return MATH_OF_HYPERS[name](*args, **options)
        if not any(isinstance(x, Hyper) for x in args):
            return getattr(math, name)(*args, **options)
        v = getattr(math, name)(*map(primal, args))  # raises outside its domain
        y = apply(numpy_name, *args)
        return Hyper(v, y.a, y.b, y.ab) if isinstance(y, Hyper) else y
    return run


MATH = types.SimpleNamespace(
    **{
        name: _math_function(name) if callable(getattr(math, name)) else getattr(math, name)
        for name in dir(math)
        if not name.startswith("_")
    }
)


# Transformations inside a program, of functions of one number that say by hand what their slope is.
TRANSFORMATIONS = {
    "grad": lambda g: g.slope,
    "value_and_grad": lambda g: lambda x: (g(x), g.slope(x)),
    "vmap": lambda g: g,
    "jit": lambda g: g,
    "jvp": lambda g, primals, tangents: (g(*primals), g.slope(*primals) * tangents[0]),
}


def _transformations(module: types.ModuleType) -> types.SimpleNamespace:
    def either(name: str) -> Callable:
        return lambda g, *rest, **options: (
            TRANSFORMATIONS[name] if hasattr(g, "slope") else getattr(module, name)
        )(g, *rest, **options)

    return types.SimpleNamespace(
        **{**vars(module), **{name: either(name) for name in TRANSFORMATIONS}}
    )


def _complex(real=0.0, imag=0.0):
    return (
        real + 1j * imag
        if isinstance(real, Hyper) or isinstance(imag, Hyper)
        else complex(real, imag)
    )


def _float(x=0.0):
    """Python's number, whose operators raise where NumPy's warn."""
    return (
        Hyper(float(x.v), *(np.reshape(p, ())[()] for p in (x.a, x.b, x.ab)))
        if isinstance(x, Hyper)
        else float(x)
    )


# they are dtypes, too: np.zeros(n, dtype=complex)
_float.dtype, _complex.dtype = np.dtype(float), np.dtype(complex)


def _sum(items, start=0):
    for item in items:
        start = start + item
    return start


def hyper_function(f: Callable, memo: dict | None = None, classes: Sequence[type] = ()) -> Callable:
    """`f` with NumPy, math and the user functions that it names replaced by their hyper-dual
    selves.

    The methods of the classes that it names, and of `classes`, are replaced while it runs.
    """
    if memo is None:
        memo = {}
        for cls in classes:
            hyper_class(cls, memo)
        return with_methods(hyper_function(f, memo), memo)
    f = getattr(f, "py_func", f)
    if isinstance(f, functools.partial):
        return functools.partial(hyper_function(f.func, memo), *f.args, **f.keywords)
    if isinstance(f, types.MethodType):
        return types.MethodType(hyper_function(f.__func__, memo), f.__self__)
    if not isinstance(f, types.FunctionType):
        return f
    if f in memo:
        return memo[f]

    def replaced(x):
        if x is np:
            return NUMPY
        if x is math:
            return MATH
        if isinstance(x, types.ModuleType) and x.__name__ == "s2s":
            return _transformations(x)
        if isinstance(x, np.ndarray) and np.issubdtype(x.dtype, np.inexact):
            return Hyper(x)
        if isinstance(x, types.FunctionType) and x.__module__ == f.__module__ and x is not f:
            return hyper_function(x, memo)
        if isinstance(x, type) and x.__module__ == f.__module__:
            hyper_class(x, memo)
        return x

    # only the names that f (or a function inside it) uses: a module may hold much else
    names, codes = set(), [f.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
    scope: dict = {
        "__builtins__": builtins,
        "__name__": f.__module__,
        "float": _float,
        "complex": _complex,
        "sum": _sum,
    }
    copy = types.FunctionType(f.__code__, scope, f.__name__, f.__defaults__,
                              tuple(types.CellType() for _ in f.__closure__ or ()))
    copy.__kwdefaults__ = f.__kwdefaults__
    memo[f] = copy
    copy.__dict__.update({name: replaced(x) for name, x in vars(f).items() if name == "slope"})
    scope.update({name: copy if f.__globals__[name] is f else replaced(f.__globals__[name])
                  for name in names if name in f.__globals__})
    for cell, old in zip(copy.__closure__ or (), f.__closure__ or ()):
        cell.cell_contents = copy if old.cell_contents is f else replaced(old.cell_contents)
    return copy


def hyper_class(cls: type, memo: dict) -> None:
    """Note in `memo` the hyper-dual selves of what `cls` and its bases define in Python."""
    for base in cls.__mro__:
        if base in memo or base.__module__ != cls.__module__:
            continue
        found = memo[base] = {}
        for name, x in list(vars(base).items()):
            if isinstance(x, types.FunctionType):
                found[name] = hyper_function(x, memo)
            elif isinstance(x, property):
                found[name] = property(
                    *(part and hyper_function(part, memo) for part in (x.fget, x.fset))
                )
            elif isinstance(x, (staticmethod, classmethod)):
                found[name] = type(x)(hyper_function(x.__func__, memo))
            elif isinstance(x, functools.cached_property):
                found[name] = functools.cached_property(hyper_function(x.func, memo))
                found[name].__set_name__(base, name)


def with_methods(f: Callable, memo: dict) -> Callable:
    """`f`, while it runs the classes in `memo` have the methods noted there."""

    def run(*args):
        own = [
            (cls, name, vars(cls)[name])
            for cls, found in memo.items()
            if isinstance(cls, type)
            for name in found
        ]
        try:
            for cls, name, _ in own:
                setattr(cls, name, memo[cls][name])
            return f(*args)
        finally:
            for cls, name, old in own:
                setattr(cls, name, old)

    return run


def hyper_argument(x, a, b):
    """One argument as Hypers: floats and float arrays are lifted, all else stays."""
    if isinstance(x, (tuple, list)):
        a, b = (t if t is not None else [None] * len(x) for t in (a, b))
        return type(x)(map(hyper_argument, x, a, b))
    if isinstance(x, dict):
        return {k: hyper_argument(x[k], a and a[k], b and b[k]) for k in x}
    if isinstance(x, (bool, int, str, type(None))) or not np.issubdtype(
        np.asarray(x).dtype, np.inexact
    ):
        return x.copy() if isinstance(x, np.ndarray) else x
    kind = complex if np.iscomplexobj(x) else float
    if isinstance(x, np.ndarray):
        parts = [np.zeros(x.shape, kind) if t is None else np.array(t, kind) for t in (a, b)]
        return Hyper(np.array(x, kind), *parts)
    if a is None and b is None:
        return x
    return Hyper(x, *(kind(0) if t is None else kind(t) for t in (a, b)), kind(0))


def hyper_component(y, part: str):
    if isinstance(y, (tuple, list)):
        return type(y)(hyper_component(item, part) for item in y)
    if isinstance(y, dict):
        return {k: hyper_component(item, part) for k, item in y.items()}
    if isinstance(y, Hyper):
        return getattr(y, part)
    return y if part == "v" else np.zeros(np.shape(y))


def dual(f: Callable, args: Sequence, tangents: Sequence):
    """(y, y_dot): `f(*args)` and its derivative in the direction `tangents` (None: not varied)."""
    y = hyper_function(f)(*map(hyper_argument, args, tangents, [None] * len(args)))
    return hyper_component(y, "v"), hyper_component(y, "a")


def dual_second(f: Callable, args: Sequence, first: Sequence, second: Sequence):
    """The mixed second derivative of `f` in the directions `first` and `second`."""
    y = hyper_function(f)(*map(hyper_argument, args, first, second))
    return hyper_component(y, "ab")


def gradient(f: Callable, args: Sequence, argnum: int) -> np.ndarray | float:
    """The gradient of a scalar `f` by one run for each element of an argument."""
    x = np.asarray(args[argnum], float)
    result = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        direction = np.zeros(x.shape)
        direction[index] = 1.0
        tangents = [None] * len(args)
        tangents[argnum] = direction if x.shape else 1.0
        result[index] = dual(f, args, tangents)[1]
    return result[()] if not x.shape else result


# -------------------------------------------------------------------------------- the other oracles


def _moved(args: Sequence, tangents: Sequence, step) -> list:
    return [x if t is None else x + step * np.asarray(t) for x, t in zip(args, tangents)]


def complex_step(f: Callable, args: Sequence, tangents: Sequence, step: float = 1e-30):
    """The derivative in direction `tangents` of an `f` that is analytic and writes into no fresh
    real array.
    """
    return np.imag(f(*_moved(args, tangents, 1j * step))) / step


def central_difference(f: Callable, args: Sequence, tangents: Sequence, step: float = 1e-3):
    """The derivative in direction `tangents`: central differences, extrapolated twice
    (Richardson).
    """
    def difference(h):
        return (
            np.asarray(f(*_moved(args, tangents, h))) - np.asarray(f(*_moved(args, tangents, -h)))
        ) / (2 * h)

    d1, d2, d4 = difference(step), difference(step / 2), difference(step / 4)
    e1, e2 = (4 * d2 - d1) / 3, (4 * d4 - d2) / 3
    return (16 * e2 - e1) / 15


def inner(xs, ys) -> float:
    """The sum of the products of all leaves."""
    if isinstance(xs, (tuple, list)):
        return builtins.sum(inner(x, y) for x, y in zip(xs, ys, strict=True))
    if xs is None or ys is None:
        return 0.0
    return float(np.sum(np.asarray(xs) * np.asarray(ys)))


def direction(x, rng: np.random.Generator):
    """A random tangent for `x`: None where `x` is not a float or a float array."""
    if isinstance(x, (tuple, list)):
        return type(x)(direction(item, rng) for item in x)
    if isinstance(x, (bool, int, str, type(None))) or not np.issubdtype(
        np.asarray(x).dtype, np.inexact
    ):
        return None
    drawn = rng.standard_normal(np.shape(x))
    return drawn if np.shape(x) else float(drawn)


def is_close(x, y, rtol: float = 1e-9, atol: float = 1e-9) -> bool:
    """Whether two results agree, leaf by leaf, NaN equal to NaN."""
    if isinstance(x, (tuple, list)) or isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(is_close(a, b, rtol, atol) for a, b in zip(x, y))
    return np.shape(x) == np.shape(y) and bool(
        np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
    )
