"""Every op on arrays whose extents are 0, 1, 2 or 5 in every position: does s2s do as NumPy does?

A form is an expression on arrays and their ranks.  In each manner of `MANNERS` the extents reach
it in another way, and code that is made once is called with all of them:

    slices       def f(x, i, x0, x1, i0):             known to a run only, and any may be 1
                     x = x[:x0, :x1]
                     i = i[:i0]
                     return x[i, i]
    masks        x = x[np.arange(5) < x0][:, :x1]     lengths that nothing is known of
    arguments    def f(x, i): return x[i, i]          which extents are 1 is known, for each kind
    known        x = x.reshape(2, 1)                  numbers in the program

Python runs the same text.  Both must give the same value, or both raise; where numbers come out,
so must the gradient, by central differences of Python's values, and what `vmap` makes of lanes.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

import s2s
from s2s.runtime.debug import sanitizer
from s2s.transformed import Transformed

EXTENTS = (0, 1, 2, 5)
MOST = max(EXTENTS)
MEMORY = "touches memory"  # what is said of the worst
MANNERS = ("slices", "masks", "arguments", "known")
LANES = 2


class Form(NamedTuple):
    """An expression on arrays, and for each what it holds and its rank.

    "f2" numbers, "m2" positive definite matrices, "s1" numbers in order, "i1" indices of either
    sign, "n1" natural numbers, "b1" truth values.
    """

    text: str
    arrays: dict[str, str]
    derivative: bool = True

    @property
    def axes(self) -> list[str]:
        """The names of all extents: x0, x1, i0."""
        return [
            f"{name}{axis}" for name, kind in self.arrays.items() for axis in range(int(kind[1:]))
        ]


def form(text: str, derivative: bool = True, **arrays: str) -> Form:
    return Form(text, arrays, derivative)


FORMS = [
    # elementwise, and what broadcasts
    form("np.sin(x)", x="f2"),
    form("x * y + x", x="f2", y="f2"),
    form("x - y", x="f2", y="f1"),
    form("x / y", x="f1", y="f3"),
    form("np.maximum(x, y) * z", x="f2", y="f1", z="f0"),
    form("np.arctan2(x, y[:, None])", x="f2", y="f1"),
    form("np.where(b, x, y)", b="b1", x="f2", y="f1"),
    form("np.where(x > y, x * y, 0.0)", x="f1", y="f1"),
    form("np.clip(x, y, 1.1)", x="f2", y="f1"),
    form("np.hypot(x, y) + np.logaddexp(x, y)", x="f1", y="f1"),
    form("np.ldexp(x, i)", x="f2", i="i1"),
    form("np.select([x > 1.1, x > 0.8], [x * y, y], z)", x="f1", y="f1", z="f0"),
    form("np.broadcast_to(x, (3, 2))", x="f2"),
    form("np.isclose(x, y)", False, x="f2", y="f1"),
    form("np.nan_to_num(x / (y - y[0]))", False, x="f1", y="f1"),
    # reductions and scans
    form("np.sum(x)", x="f2"),
    form("np.sum(x, axis=0)", x="f2"),
    form("np.sum(x, axis=-1, keepdims=True) * x", x="f2"),
    form("np.sum(x, axis=(0, 2))", x="f3"),
    form("np.mean(x, axis=1)", x="f2"),
    form("np.prod(x, axis=0)", x="f2"),
    form("np.prod(x)", x="f2"),
    form("np.max(x, axis=1)", x="f2"),
    form("np.min(x)", x="f2"),
    form("np.var(x, axis=0)", x="f2"),
    form("np.std(x, axis=1, ddof=1)", x="f2"),
    form("np.ptp(x, axis=0)", x="f2"),
    form("np.median(x, axis=1)", x="f2"),
    form("np.quantile(x, 0.3, axis=0)", x="f2"),
    form("np.percentile(x, y * 50.0)", x="f1", y="f1"),
    form("np.average(x, axis=0, weights=y)", x="f2", y="f1"),
    form(
        "np.nansum(x, axis=0) + np.nanmax(x, axis=0) + np.nanmean(x, axis=0) "
        "+ np.nanvar(x, axis=0)",
        x="f2",
    ),
    form("np.linalg.norm(x)", x="f2"),
    form("np.linalg.norm(x, axis=1)", x="f2"),
    form("np.linalg.norm(x, 1)", x="f1"),
    form("np.argmax(x, axis=0) + np.argmin(x, axis=0)", False, x="f2"),
    form("np.any(x > 1.0, axis=0) | np.all(x > 1.0, axis=0)", False, x="f2"),
    form("np.count_nonzero(x > 1.0)", False, x="f2"),
    form("np.cumsum(x, axis=0)", x="f2"),
    form("np.cumsum(x)", x="f2"),
    form("np.cumprod(x, axis=1)", x="f2"),
    form("np.maximum.accumulate(x)", x="f1"),
    form("np.diff(x, axis=0)", x="f2"),
    form("np.diff(x, n=2)", x="f1"),
    form("np.ediff1d(x)", x="f1"),
    form("np.gradient(x)", x="f1"),
    form("np.trapezoid(x, y)", x="f1", y="f1"),
    form("np.unwrap(x)", x="f1"),
    # products
    form("x @ y", x="f1", y="f1"),
    form("x @ y", x="f2", y="f1"),
    form("x @ y", x="f1", y="f2"),
    form("x @ y", x="f2", y="f2"),
    form("x @ y", x="f3", y="f2"),
    form("x @ y", x="f3", y="f3"),
    form("x.T @ y", x="f2", y="f2"),
    form("np.dot(x, y)", x="f2", y="f2"),
    form("np.dot(x, y)", x="f1", y="f3"),
    form("np.vdot(x, y)", x="f1", y="f1"),
    form("np.inner(x, y)", x="f2", y="f2"),
    form("np.outer(x, y)", x="f1", y="f1"),
    form("np.kron(x, y)", x="f2", y="f1"),
    form("np.tensordot(x, y, 1)", x="f2", y="f2"),
    form("np.tensordot(x, y, ([0], [1]))", x="f2", y="f2"),
    form("np.einsum('ij,jk->ik', x, y)", x="f2", y="f2"),
    form("np.einsum('ij,ij->i', x, y)", x="f2", y="f2"),
    form("np.einsum('ij,j->', x, y)", x="f2", y="f1"),
    form("np.cross(x, y)", x="f2", y="f1"),
    form("np.convolve(x, y)", x="f1", y="f1"),
    form("np.convolve(x, y, 'valid')", x="f1", y="f1"),
    form("np.correlate(x, y, 'same')", x="f1", y="f1"),
    form("np.polyval(x, y)", x="f1", y="f1"),
    form("np.interp(z, x, y)", x="s1", y="f1", z="f1"),
    form("np.cov(x)", x="f2"),
    form("np.corrcoef(x)", x="f2"),
    form("np.linalg.matrix_power(x, 3)", x="m2"),
    form("np.trace(x)", x="f2"),
    # shapes
    form("x.T * y", x="f2", y="f2"),
    form("np.reshape(x, -1)", x="f2"),
    form("x.reshape(2, -1)", x="f2"),
    form("x.reshape(x.shape[1], x.shape[0])", x="f2"),
    form("np.squeeze(x)", x="f2"),
    form("np.squeeze(x, 0)", x="f2"),
    form("np.expand_dims(x, 1) * y", x="f1", y="f1"),
    form("np.moveaxis(x, 0, 2) + np.swapaxes(x, 0, 1)", x="f3"),
    form("np.concatenate([x, y])", x="f2", y="f2"),
    form("np.concatenate([x, y], axis=1)", x="f2", y="f2"),
    form("np.stack([x, y])", x="f1", y="f1"),
    form("np.hstack([x, y]) + np.vstack([x, y]).sum()", x="f1", y="f1"),
    form("np.column_stack([x, y])", x="f1", y="f1"),
    form("np.append(x, y)", x="f2", y="f1"),
    form("np.split(x, 2)[0]", x="f1"),
    form("np.array_split(x, 2)[1]", x="f1"),
    form("np.tile(x, (2, 1))", x="f2"),
    form("np.repeat(x, 2, axis=0)", x="f2"),
    form("np.repeat(x, i)", x="f1", i="n1"),
    form("np.roll(x, 1)", x="f1"),
    form("np.roll(x, 1, axis=0)", x="f2"),
    form("np.flip(x, 0) * x", x="f2"),
    form("np.rot90(x)", x="f2"),
    form("np.pad(x, 1)", x="f2"),
    form("np.pad(x, (0, 2), mode='edge')", x="f1"),
    form("np.pad(x, (1, 1), mode='wrap')", x="f1"),
    form("np.diag(x)", x="f1"),
    form("np.diag(x)", x="f2"),
    form("np.diagonal(x, 1)", x="f2"),
    form("np.tril(x) + np.triu(x, 1)", x="f2"),
    form("np.vander(x, 3)", x="f1"),
    form("np.meshgrid(x, y)[0]", x="f1", y="f1"),
    form("np.atleast_2d(x) @ y", x="f1", y="f2"),
    form("np.ravel(x)[::-1]", x="f2"),
    form("np.delete(x, 0)", x="f1"),
    form("np.insert(x, 1, y)", x="f1", y="f0"),
    # parts and elements
    form("x[1:] * x[:-1]", x="f1"),
    form("x[0]", x="f2"),
    form("x[-1]", x="f2"),
    form("x[:, 1]", x="f2"),
    form("x[0, 0] * x", x="f2"),
    form("x[::2] + y", x="f1", y="f1"),
    form("x[i]", x="f1", i="i1"),
    form("x[i]", x="f2", i="i1"),
    form("x[:, i]", x="f2", i="i1"),
    form("x[i, j]", x="f2", i="i1", j="i1"),
    form("x[i[:, None], j]", x="f2", i="i1", j="i1"),
    form("x[i] * y", x="f1", i="i1", y="f1"),
    form("x[i].T @ x[j]", x="f2", i="i1", j="i1"),
    form("x[b]", x="f1", b="b1"),
    form("x[b]", x="f2", b="b1"),
    form("np.sum(x[b] * 2.0)", x="f2", b="b2"),
    form("np.take(x, i)", x="f1", i="i1"),
    form("np.take(x, i, axis=1)", x="f2", i="i1"),
    form("np.take_along_axis(x, i, 0)", x="f2", i="i2"),
    form("np.take_along_axis(x, i, 1)", x="f2", i="i2"),
    form("np.compress(b, x)", b="b1", x="f1"),
    form("np.extract(b, x)", b="b1", x="f1"),
    form("put(x, 1, y)", x="f1", y="f0"),
    form("put(x, slice(1, None), y)", x="f1", y="f1"),
    form("put(x, slice(1, 3), y)", x="f2", y="f1"),
    form("put(x, i, y)", x="f1", i="i1", y="f1"),
    form("put(x, i, y)", x="f2", i="i1", y="f1"),
    form("put(x, (i, j), y)", x="f2", i="i1", j="i1", y="f1"),
    form("put(x, b, y)", x="f1", b="b1", y="f0"),
    form("put(x, b, y)", x="f1", b="b1", y="f1"),
    form("plus(x, slice(1, 3), y)", x="f1", y="f1"),
    form("plus(x, slice(None), y)", x="f2", y="f1"),
    form("plus(x, i, y)", x="f1", i="i1", y="f1"),
    form("added_at(x, i, y)", x="f1", i="i1", y="f1"),
    form("added_at(x, (i, j), y)", x="f2", i="i1", j="i1", y="f1"),
    # sorting, searching, counting
    form("np.sort(x, axis=0)", x="f2"),
    form("np.argsort(x)", False, x="f1"),
    form("np.partition(x, 1)", False, x="f1"),
    form("np.unique(x)", False, x="f1"),
    form("np.searchsorted(x, y)", False, x="s1", y="f1"),
    form("np.digitize(y, x)", False, x="s1", y="f1"),
    form("np.bincount(i)", False, i="n1"),
    form("np.bincount(i, weights=x)", i="n1", x="f1"),
    form("np.histogram(x, bins=3)[0]", False, x="f1"),
    form("np.nonzero(x > 1.0)[0]", False, x="f1"),
    form("np.argwhere(x > 1.0)", False, x="f2"),
    form("np.flatnonzero(x > 1.0)", False, x="f1"),
    form("np.isin(i, j)", False, i="i1", j="i1"),
    form("np.lexsort((x, y))", False, x="f1", y="f1"),
    # linear algebra
    form("np.linalg.solve(x, y)", x="m2", y="f1"),
    form("np.linalg.solve(x, y)", x="m2", y="f2"),
    form("np.linalg.solve(x, y)", x="m3", y="f2"),
    form("np.linalg.solve(x, y)", x="m3", y="f3"),
    form("np.linalg.inv(x)", x="m2"),
    form("np.linalg.inv(x)", x="m3"),
    form("np.linalg.det(x)", x="m2"),
    form("np.linalg.slogdet(x)[1]", x="m3"),
    form("np.linalg.cholesky(x)", x="m2"),
    form("np.linalg.cholesky(x)", x="m3"),
    form("np.linalg.eigvalsh(x)", x="m2"),
    form("np.linalg.svd(x, compute_uv=False)", x="f2"),
    form("np.linalg.pinv(x)", False, x="f2"),
    form("np.linalg.lstsq(x, y)[0]", False, x="f2", y="f1"),
    form("np.linalg.qr(x)[1]", False, x="f2"),
    # FFT
    form("np.abs(np.fft.fft(x)) ** 2", x="f1"),
    form("np.fft.irfft(np.fft.rfft(x))", x="f1"),
    # SciPy
    form("scipy.special.logsumexp(x, axis=0)", x="f2"),
    form("scipy.linalg.solve(x, y)", x="m2", y="f2"),
    form("scipy.linalg.solve_triangular(x, y, lower=True)", x="m2", y="f1"),
    form("scipy.spatial.distance.cdist(x, y)", x="f2", y="f2"),
    # arrays whose shapes are made in the program
    form("np.ones((len(x), 1)) * y", x="f1", y="f2"),
    form("np.zeros((len(x), len(y))) + y * np.sum(x)", x="f1", y="f1"),
    form("np.arange(len(x)) * y", x="f1", y="f1"),
    form("np.full((x.shape[1], 2), y[0]) @ np.eye(2)", x="f2", y="f1"),
    # what is written into parts
    form("plus(x, slice(None, len(y)), y)", x="f1", y="f1"),
    form("plus(x, (slice(None), 0), y)", x="f2", y="f1"),
    form("plus(x, (slice(1, None), slice(None, 2)), y)", x="f2", y="f2"),
    form("plus(x, b, y)", x="f1", b="b1", y="f1"),
    form("plus(x, -1, y)", x="f2", y="f1"),
    form("shifted(x, y)", x="f1", y="f1"),
    form("shifted(x, y)", x="f2", y="f1"),
    form("windows(x, y)", x="f1", y="f1"),
    form("in_place(x, y)", x="f2", y="f2"),
    # loops of one's own
    form("zipped(x, y)", x="f1", y="f1"),
    form("np.array([row * y for row in x])", x="f2", y="f1"),
    form("doubled(x, y)", x="f1", y="f2"),
    form("scanned(x, y)", x="f1", y="f1"),
    form("neighbours(x)", x="f2"),
    form("rows(x, y)", x="f2", y="f2"),
]

HELPERS = """
import numpy as np
import scipy.linalg
import scipy.spatial.distance
import scipy.special


def put(x, key, v):
    y = x.copy()
    y[key] = v
    return y


def plus(x, key, v):
    y = x.copy()
    y[key] += v
    return y


def added_at(x, key, v):
    y = x.copy()
    np.add.at(y, key, v)
    return y


def scanned(x, y):
    total = 0.0
    for i in range(len(x)):
        total = total * y[i] + x[i]
    return total


def zipped(x, y):
    total = 0.0
    for a, b in zip(x, y):
        total += a * b
    return total


def shifted(x, y):
    z = x.copy()
    z[1:] = z[:-1] * y
    z[:-1] += z[1:]
    return z


def windows(x, y):
    z = np.zeros_like(x)
    for k in range(len(y)):
        z[k:] += y[k] * x[:len(x) - k]
    return z


def in_place(x, y):
    z = x.copy()
    z *= y
    z[0] += y[-1]
    return z


def doubled(x, y):
    z = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(len(x)):
            z[i] += x[j] * y[i, j]
    return z


def neighbours(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] += y[i - 1] * x[i - 1, 0]
    return y


def rows(x, y):
    total = np.zeros(y.shape[1])
    for row in x:
        total += row @ y
    return total
"""


# --------------------------------------------------------------------------------------- arguments


def array(name: str, kind: str, lead: tuple[int, ...] = ()) -> np.ndarray | float:
    """The array of that name, as long as may be in each axis."""
    what, rank = kind[0], int(kind[1:])
    rng = np.random.default_rng([ord(name[0]), rank])
    shape = (*lead, *[MOST] * rank)
    if what == "i":
        return rng.integers(-2, 3, shape)
    if what == "n":
        return rng.integers(0, 3, shape)
    if what == "b":
        return rng.random(shape) < 0.5
    x = rng.uniform(0.5, 1.5, shape)
    if what == "m":
        x = 0.2 * x @ np.swapaxes(x, -1, -2) + np.eye(MOST)
    if what == "s":
        x = np.sort(x, axis=-1)
    return x if shape else float(x)


def combinations(form: Form, most: int | None) -> Iterator[dict[str, int]]:
    """Extents for all axes, equal ones first: all, or `most` of them, the same each time."""
    axes = form.axes
    equal = [dict.fromkeys(axes, n) for n in EXTENTS]
    every = [dict(zip(axes, chosen)) for chosen in itertools.product(EXTENTS, repeat=len(axes))]
    others = [each for each in every if each not in equal]
    if most is not None and len(others) > most:
        chosen = np.random.default_rng(len(form.text)).choice(len(others), most, replace=False)
        others = [others[k] for k in sorted(chosen)]
    return itertools.chain(equal, others)


def narrowed(form: Form, manner: str, extents: dict[str, int]) -> list[str]:
    """The statements that give the arrays their extents."""
    lines = []
    for name, kind in form.arrays.items():
        names = [f"{name}{axis}" for axis in range(int(kind[1:]))]
        if not names or manner == "arguments":
            continue
        if manner == "known":
            lines.append(
                f"{name} = {name}.reshape({', '.join(str(extents[each]) for each in names)})"
            )
        elif manner == "masks":
            rest = f"[:, {', '.join(f':{each}' for each in names[1:])}]" if len(names) > 1 else ""
            lines.append(f"{name} = {name}[np.arange({MOST}) < {names[0]}]{rest}")
        else:
            lines.append(f"{name} = {name}[{', '.join(f':{each}' for each in names)}]")
    return lines


def program(form: Form, manner: str, extents: dict[str, int]) -> str:
    """The text of the function `f` of the arrays, and of the extents where these are given."""
    params = [*form.arrays, *(form.axes if manner in ("slices", "masks") else ())]
    body = [*narrowed(form, manner, extents), f"return {form.text}"]
    return f"def f({', '.join(params)}):\n" + "".join(f"    {line}\n" for line in body)


def function_of(text: str) -> Callable:
    """The function `f` of a program, whose source is found."""
    whole = f"{HELPERS}\n\n{text}"
    filename = f"<extents {hash(whole)}>"
    linecache.cache[filename] = (len(whole), None, whole.splitlines(keepends=True), filename)
    module = types.ModuleType("extents_program")
    exec(compile(whole, filename, "exec"), module.__dict__)
    return module.f


def arguments(form: Form, manner: str, extents: dict[str, int], lead: tuple[int, ...] = ()) -> list:
    """The arguments of the program for these extents."""
    arrays = []
    for name, kind in form.arrays.items():
        x, shape = (
            array(name, kind, lead),
            [extents[f"{name}{axis}"] for axis in range(int(kind[1:]))],
        )
        if manner in ("arguments", "known") and isinstance(x, np.ndarray):
            x = x[(..., *(slice(n) for n in shape))].copy()
            x = x.reshape(*lead, -1) if manner == "known" and 0 not in lead else x
        arrays.append(x)
    return [*arrays, *(extents.values() if manner in ("slices", "masks") else ())]


# --------------------------------------------------------------------------------------- judgement


class Outcome(NamedTuple):
    """What a call gave, or raised."""

    value: object = None
    raised: BaseException | None = None

    @staticmethod
    def of(f: Callable, args: Sequence) -> Outcome:
        copies = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return Outcome(f(*copies))
        except Exception as error:
            return Outcome(raised=error)


def is_refused(outcome: Outcome) -> bool:
    """Whether s2s says that it does not know how, whatever the lengths."""
    return isinstance(outcome.raised, (s2s.UnsupportedError, s2s.DerivativeError))


def shown(x) -> str:
    """An array, shortly."""
    return np.array2string(np.asarray(x), precision=6, threshold=8)


def differs(got, expected, rtol: float, atol: float) -> str | None:
    """How a value differs from what it should be."""
    if np.shape(got) != np.shape(expected):
        return f"has shape {np.shape(got)}, not {np.shape(expected)}"
    if not np.allclose(got, expected, rtol, atol, equal_nan=True):
        return f"is {shown(got)}, not {shown(expected)}"
    return None


def compared(
    got: Outcome, expected: Outcome, rtol: float = 1e-9, atol: float = 1e-11
) -> str | None:
    """What is wrong: None where both have the same value, or both raise."""
    violations = sanitizer.clear()
    if violations:
        return f"{MEMORY}: {str(violations[0]).splitlines()[-2]}"
    if expected.raised is not None:
        return (
            None
            if got.raised is not None
            else f"is {got.value!r:.80}, and Python raises {expected.raised!r:.90}"
        )
    if got.raised is not None:
        said = f"{type(got.raised).__name__}: {str(got.raised).splitlines()[-1]:.100}"
        return f"raises {said}, and Python gives {expected.value!r:.60}"
    return differs(got.value, expected.value, rtol, atol)


def slope(
    f: Callable, args: Sequence, wrt: Sequence[int], directions: Sequence, step: float = 1e-5
) -> Outcome:
    """The derivative of `f` along directions, by central differences."""

    def moved(times: float) -> list:
        return [x + times * directions[wrt.index(k)] if k in wrt else x for k, x in enumerate(args)]

    plus, minus = Outcome.of(f, moved(step)), Outcome.of(f, moved(-step))
    if plus.raised is not None or minus.raised is not None:
        return Outcome(raised=plus.raised or minus.raised)
    return Outcome((plus.value - minus.value) / (2 * step))


class Judge:
    """One form in one manner: `failures()` gives what is wrong, for which extents."""

    def __init__(
        self,
        form: Form,
        manner: str,
        compiled: bool,
        ways: Sequence[str] = ("value", "gradient", "vmap"),
    ):
        self.form, self.manner, self.ways = form, manner, ways
        self.through = (lambda t: s2s.jit(t)) if compiled else (lambda t: t)
        self.made: dict[str, Callable] = {}
        self.refused: set[str] = set()

    def code(self, way: str, text: str) -> tuple[Callable, Callable]:
        """Python's function, and what s2s makes of it; once for a text."""
        if (way, text) not in self.made:
            f = function_of(text)
            t = Transformed("value", f)
            count = len(self.form.arrays)
            if way == "gradient":
                f = function_of(
                    text.replace("return ", "y = ")
                    + "    w = np.cos(np.arange(1.0 * np.size(y)))\n"
                    + "    return np.sum(np.sin(y + 0.1) * np.reshape(w, np.shape(y)))\n"
                )
                t = s2s.value_and_grad(f, self.wrt)
            elif way == "vmap":
                t = s2s.vmap(
                    f, (*[0] * count, *[None] * (text.partition(")")[0].count(",") + 1 - count))
                )
            self.made[way, text] = f, self.through(t)
        return self.made[way, text]

    @property
    def wrt(self) -> tuple[int, ...]:
        return tuple(k for k, kind in enumerate(self.form.arrays.values()) if kind[0] in "fms")

    def failures(self, most: int | None = None) -> Iterator[str]:
        """What is wrong, each as one line."""
        for extents in combinations(self.form, most):
            text = program(self.form, self.manner, extents)
            for way in self.ways:
                if (
                    way == "gradient"
                    and not (self.form.derivative and self.wrt)
                    or way in self.refused
                ):
                    continue
                wrong = getattr(self, way)(text, extents)
                if wrong is not None:
                    what = f"{self.form.text} of {self.form.arrays} {self.manner} {way}"
                    yield f"{what} {extents}: {wrong}"

    def is_refused(self, way: str, got: Outcome, expected: Outcome) -> bool:
        if is_refused(got) and expected.raised is None and self.manner != "known":
            self.refused.add(way)
        return is_refused(got)

    def value(self, text: str, extents: dict[str, int]) -> str | None:
        f, t = self.code("value", text)
        args = arguments(self.form, self.manner, extents)
        expected, got = Outcome.of(f, args), Outcome.of(t, args)
        if self.is_refused("value", got, expected):
            return None
        return compared(got, expected)

    def gradient(self, text: str, extents: dict[str, int]) -> str | None:
        f, t = self.code("gradient", text)
        args = arguments(self.form, self.manner, extents)
        rng = np.random.default_rng(0)
        directions = [rng.normal(size=np.shape(args[k])) for k in self.wrt]
        expected, got = Outcome.of(f, args), Outcome.of(t, args)
        if self.is_refused("gradient", got, expected):
            return None
        if expected.raised is not None or got.raised is not None:
            return compared(got, expected)
        wrong = compared(Outcome(got.value[0]), expected)
        if wrong is not None:
            return wrong
        bars = got.value[1] if isinstance(got.value[1], tuple) else (got.value[1],)
        for bar, k in zip(bars, self.wrt):
            if np.shape(bar) != np.shape(args[k]):
                return f"the gradient has shape {np.shape(bar)}, not {np.shape(args[k])}"
        difference = slope(f, args, self.wrt, directions)
        if difference.raised is not None or not np.isfinite(difference.value):
            return None
        along = sum(float(np.sum(bar * d)) for bar, d in zip(bars, directions))
        return compared(Outcome(along), difference, 2e-5, 2e-6)

    def vmap(self, text: str, extents: dict[str, int]) -> str | None:
        f, t = self.code("vmap", text)
        count = len(self.form.arrays)
        args = arguments(self.form, self.manner, extents, (LANES,))
        args = [
            np.broadcast_to(x, (LANES,)).copy() if k < count and np.ndim(x) == 0 else x
            for k, x in enumerate(args)
        ]
        lanes = [[x[lane] if k < count else x for k, x in enumerate(args)] for lane in range(LANES)]
        each = [Outcome.of(f, lane) for lane in lanes]
        expected = next((x for x in each if x.raised is not None), None)
        if expected is None:
            if len({np.shape(x.value) for x in each}) > 1:
                return None  # lanes of different lengths are refused
            expected = Outcome(np.stack([x.value for x in each]))
        got = Outcome.of(t, args)
        if self.is_refused("vmap", got, expected):
            return None
        return compared(got, expected)


def functions_named(forms: Sequence[Form] = FORMS) -> set[str]:
    """The names of functions that the forms mention: sum of np.sum, inv of np.linalg.inv."""
    nodes = [node for each in forms for node in ast.walk(ast.parse(each.text))]
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)}
