"""Compare the derivative by the rules with differences of the program, at one point.

A convention decides nothing where the program has a derivative all the same and the rules give it:
x * abs(x) at 0, a sum of sorted numbers that are equal, two pieces that join smoothly.  Whether
that is so is no matter of one op, but of all that follow it.  So the program is run on eight
lines through the point, at two distances h on either side of it:

    f(h) + f(-h) - 2 f(0)             falls like h at a corner, faster where f has a derivative
    (f(h) - f(-h)) / (2 h) - slope    falls like h or faster where the rules give that derivative

A root found by bisection depends on its arguments through comparisons alone, on which no
derivative passes; differences say clearly that there is one, and another.

What cannot be told from noise, or cannot be run on both sides, is not confirmed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from . import tree
from .derive import assemble
from .errors import S2SError
from .ir.graph import Function
from .ir.interpret import interpret
from .ir.types import Scalar, is_inexact

LINES = 8
NEARER = 8.0  # how much smaller the second distance is
POWER = 1.27  # of h, as which the first has to fall: between that of a corner and a smooth one
SURE, WRONG = 0.02, 0.1  # how well chords agree, and how far off a slope is that they refute
NOISE, MUCH_NOISE = 4, 1000  # the most units of rounding in a sum of results; close to the point


def is_confirmed(function: Function, wrt: tuple[int, ...], values: Sequence,
                 counted: Sequence[int]) -> bool:
    """Test whether the derivative of the results `counted` of `function` in `wrt` at `values`,
    those of captures included, is confirmed by differences.
    """
    with quietly():
        try:
            found = [*map(_confirms, lines(function, wrt, values, counted))]
            return len(found) == LINES and all(found)
        except Exception:  # beside the point is not always in the domain
            return False


def refutation(function: Function, wrt: tuple[int, ...], values: Sequence,
               counted: Sequence[int]) -> tuple[float, float] | None:
    """Return the derivative of a result along a line, as far as the arguments move, and another
    that differences say clearly; None where they say none.
    """
    with quietly():
        try:
            found = map(_refutes, itertools.islice(lines(function, wrt, values, counted), 2))
            return next(filter(None, found), None)
        except Exception:
            return None


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    with contextlib.redirect_stdout(None), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class Along:
    """A line through the arguments: the results `at` a distance, `y` at 0, and the slopes there, by
    the tangent and the gradient.
    """

    at: Callable[[float], np.ndarray]
    y: np.ndarray
    slopes: list[np.ndarray]
    eps: float
    number: int
    length: float  # of the direction that distances are counted in

    def chord(self, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return how far `y` lies off the chord from -h to h, the rounding of that, and the slope
        of the chord.
        """
        above, below = self.at(h), self.at(-h)
        if not above.shape == below.shape == self.y.shape == self.slopes[0].shape:
            raise ValueError("results of other lengths")
        size = self.eps * np.maximum(np.maximum(np.abs(above), np.abs(below)), np.abs(self.y))
        return np.abs(above + below - 2 * self.y), size, (above - below) / (2 * h)


def lines(function: Function, wrt: tuple[int, ...], values: Sequence,
          counted: Sequence[int]) -> Iterator[Along]:
    """Yield lines through `values`; none where `function` has no derivative."""
    if (derivatives := derivatives_of(function, wrt, tuple(counted))) is None:
        return
    tangent, gradient = derivatives
    y, plain, bars = None, len(values) - len(function.captures), None
    for number in range(LINES):
        dots = directions(values, wrt, number)

        def at(h: float, dots=dots) -> np.ndarray:
            return flat(results_of(function, counted, [
                tree.map(functools.partial(moved, h=h), x, dot) if k in wrt else x
                for k, (x, dot) in enumerate(zip(values, dots))]))

        y = at(0.0) if y is None else y
        _, y_dots = interpret(tangent, *map(tree_copied, [*values[:plain], *dots[:plain],
                                                          *values[plain:]]))
        slopes = [flat(_chosen(y_dots, function, counted))]
        if gradient is not None:
            bars = interpret(gradient, *map(tree_copied, values)) if bars is None else bars
            of_arguments = bars if len(counted) == len(function.results) else bars[0]
            slopes.append(np.array(sum(
                np.sum(np.asarray(bar) * dot) for k, x_bar in zip(wrt, of_arguments)
                for x, bar, dot in zip(*map(tree.leaves, (values[k], x_bar, dots[k])))
                if is_number(x))))
        numbers = [y, *(x for k in wrt for x in inexact_leaves(values[k]))]
        eps = max(np.finfo(np.asarray(x).dtype).eps for x in numbers if is_number(x))
        length = np.linalg.norm(flat([dot for k in wrt for dot in inexact_leaves(dots[k])]))
        yield Along(at, y, slopes, eps, number, length)


def _confirms(line: Along) -> bool:
    h = line.eps ** 0.25
    (far, _, chord), (near, size, nearer) = line.chord(h), line.chord(h / NEARER)
    return (all(_falls(np.abs(chord - slope), np.abs(nearer - slope), NEARER**0.5,
                       NOISE * size / (h / NEARER)) for slope in line.slopes)
            and _falls(far, near, NEARER**POWER, NOISE * size)
            and all(_falls(near, left, (h / NEARER / step) ** POWER, MUCH_NOISE * size)
                    for step in (finer(h / NEARER, line.eps) if line.number == 0 else ())
                    for left, size, _ in [line.chord(step)]))


def _refutes(line: Along) -> tuple[float, float] | None:
    """Return slope and chord where chords of two lengths agree, are straight, and differ much from
    a slope.
    """
    h = line.eps ** (1 / 6)
    (far, _, chord), (near, size, nearer) = line.chord(h), line.chord(h / NEARER)
    least = SURE * np.abs(nearer)
    clear = ((np.abs(chord - nearer) <= least) & (far <= least * h)
             & (near <= least * h / NEARER) & (MUCH_NOISE * size <= np.abs(nearer) * h / NEARER))
    for slope in line.slopes:
        off = clear & (np.abs(nearer - slope) > WRONG * np.maximum(np.abs(nearer), np.abs(slope)))
        if off.any():
            slope = np.broadcast_to(slope, off.shape)
            return (slope[off][0] / line.length).item(), (nearer[off][0] / line.length).item()
    return None


def _falls(far: np.ndarray, near: np.ndarray, times: float, noise: np.ndarray) -> bool:
    """Whether what is left falls by so many times, or to noise, in all results."""
    return bool(np.all(np.isfinite(far) & ((near <= noise) | (times * near <= far))))


def finer(h: float, eps: float) -> list[float]:
    """Distances down to rounding, at which a corner may show that is smooth from afar, such as
    abs(x) * np.exp(-(x / 1e-9) ** 2).
    """
    return [h / 64.0**k for k in range(1, 6) if h / 64.0**k > 16 * eps]


@functools.lru_cache(maxsize=16)
def derivatives_of(function: Function, wrt: tuple[int, ...],
                   counted: tuple[int, ...]) -> tuple[Function, Function | None] | None:
    """Return the tangent of `function` and, where it is one real number of real arguments, its
    gradient; None where it has none.
    """
    try:
        tangent = assemble.tangent(function)
        of_one = [function.results[k].type for k in counted]
        is_real = (len(of_one) == 1 and isinstance(of_one[0], Scalar)
                   and assemble.is_real(of_one[0])
                   and not any(is_complex(function.params[k].type) for k in wrt))
        has_aux = len(counted) < len(function.results)
        return tangent, assemble.gradient(function, wrt, has_aux) if is_real else None
    except S2SError:
        return None


def is_complex(type) -> bool:
    return "complex" in str(type)


def is_number(x) -> bool:
    """Whether a leaf is a number or an array that is differentiated."""
    return (isinstance(x, (float, complex, np.ndarray, np.generic))
            and is_inexact(np.asarray(x).dtype.name))


def inexact_leaves(x) -> list:
    return [*filter(is_number, tree.leaves(x))]


def directions(values: Sequence, wrt: Sequence[int], number: int) -> list:
    """Return directions of `values`, as long as their numbers are large, and 0 but for `wrt`.

    Of up to four numbers the eight directions have all combinations of signs, so that they come to
    each side of a corner such as that of max(min(x, y), 0).
    """
    rng, count = np.random.default_rng(number), 0

    def of_leaf(x, k: int):
        nonlocal count
        if not is_number(x):
            return 0.0
        x = np.asarray(x)
        size = np.abs(x)
        size = np.where(size > 0, size, np.max(size, initial=0.0) or 1.0)
        if k not in wrt:
            return np.zeros_like(x)[()]
        signs = rng.choice([-1, 1], x.size) if number else np.ones(x.size)
        first = max(min(4 - count, x.size), 0)
        signs[:first] = [-1 if number & (0, 1, 2, 4)[count + n] else 1 for n in range(first)]
        count += x.size
        by = signs * rng.uniform(1, 2, x.size)
        if np.iscomplexobj(x):
            by = by * np.exp(1j * rng.uniform(0.5, 1.0, x.size))
        return (size * by.reshape(x.shape)).astype(x.dtype)[()]

    return [tree.map(functools.partial(of_leaf, k=k), x) for k, x in enumerate(values)]


def moved(x, dot, h: float):
    """Return `x` moved by `h` along `dot`, in its kind."""
    if not is_number(x):
        return x
    by = np.asarray(x + h * dot, np.asarray(x).dtype)
    return by if isinstance(x, np.ndarray) else type(x)(by[()])


def tree_copied(x):
    return tree.map(copied, x)


def copied(x):
    """Copy what a run may change: arrays, and generators, whose draws would otherwise differ in the
    following call.
    """
    return copy.deepcopy(x) if isinstance(
        x, (np.ndarray, np.random.Generator, np.random.RandomState)) else x


def results_of(function: Function, counted: Sequence[int], values: Sequence) -> list:
    """Run `function`; return the leaves of its results `counted`."""
    return _chosen(interpret(function, *map(tree_copied, values)), function, counted)


def _chosen(result, function: Function, counted: Sequence[int]) -> list:
    results = result if function.tupled else [result]
    return [leaf for k in counted for leaf in tree.leaves(results[k])]


def flat(numbers: Sequence) -> np.ndarray:
    return np.concatenate([np.ravel(x) for x in numbers]) if numbers else np.zeros(0)
