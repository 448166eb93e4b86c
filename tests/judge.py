"""Is everything that s2s makes of a program right?  `judge` asks it of each mode and order, in one
call.

The primal result must be Python's, bit for bit, and the caller's arguments untouched; derivatives
along random directions must be those of hyper-dual numbers run through the user's own function
(oracles.py).
"""

from __future__ import annotations

import builtins
import copy
import types
from collections.abc import Callable, Sequence

import numpy as np
from oracles import hyper_argument, hyper_component, hyper_function

import s2s
from s2s import tree


def judge(
    f: Callable,
    *args,
    wrt: int | Sequence[int] | None = None,
    compiled: bool = False,
    second: bool = True,
    rtol: float = 1e-8,
    atol: float = 1e-9,
) -> None:
    """Assert that `f` at `args` is right in reverse, forward and, with `second`, in second order
    both ways.

    `wrt` are the arguments to differentiate, all that hold floats unless said.  `compiled` asks it
    of native code instead, where the primal may differ in the last bits.
    """
    case = Case(f, args, wrt)
    case.through = s2s.jit if compiled else (lambda t: t)
    case.check_reverse(exact=not compiled, rtol=rtol, atol=atol)
    case.check_forward(exact=not compiled, rtol=rtol, atol=atol)
    if second:
        case.check_second(10 * rtol, 10 * atol)


def classes_in(x) -> dict[type, None]:
    """The classes of the objects in the containers `x`."""
    inside = (
        x.values()
        if isinstance(x, dict)
        else x
        if isinstance(x, (tuple, list))
        else vars(x).values()
        if hasattr(x, "__dict__") and not callable(x)
        else ()
    )
    found = {type(x): None} if type(x).__module__ not in ("builtins", "numpy", "types") else {}
    for member in inside:
        found.update(classes_in(member))
    return found


class Case:
    """A function, its arguments, and the leaves of theirs that are varied."""

    def __init__(self, f: Callable, args: tuple, wrt: int | Sequence[int] | None):
        self.f, self.args = f, args
        self.leaves, self.structure = tree.flatten(args)
        if wrt is None:
            wrt = [k for k, x in enumerate(args) if any(map(is_inexact, tree.leaves(x)))]
        self.wrt = (wrt,) if isinstance(wrt, int) else tuple(wrt)
        owners = [k for k, x in enumerate(args) for _ in tree.leaves(x)]
        self.varied = [owner in self.wrt and is_inexact(x) for owner, x in zip(owners, self.leaves)]
        self.owners = owners
        self.plain = f(*self.copies())
        self.classes = [
            cls
            for cls in classes_in(args)
            if any(isinstance(x, types.FunctionType) for x in vars(cls).values())
        ]
        self.scalar = isinstance(self.plain, (float, np.floating))

    def copies(self) -> tuple:
        return copy.deepcopy(self.args)

    def direction(self, seed: int) -> list:
        """A random tangent for each leaf, zero for those that are not varied."""
        rng = np.random.default_rng(seed)
        drawn = [
            random_like(rng, x) if v else np.zeros(np.shape(x))
            for x, v in zip(self.leaves, self.varied)
        ]
        return [t if t.shape else t.item() for t in drawn]

    def oracle(self, first: list, second: list):
        """The leaves of the result as hyper-dual numbers with these parts: v, a, b, ab."""
        lifted = [hyper_argument(x, a if v else None, b if v else None)
                  for x, v, a, b in zip(tree.leaves(self.copies()), self.varied, first, second)]
        y = tree.leaves(
            hyper_function(self.f, classes=self.classes)(*tree.unflatten(self.structure, lifted))
        )
        return {part: [hyper_component(leaf, part) for leaf in y] for part in ("v", "a", "b", "ab")}

    def pair(self, gradients: tuple, direction: list) -> float:
        """<gradient, direction> over the arguments differentiated."""
        found = []
        for k, gradient in zip(self.wrt, gradients, strict=True):
            mine = tree.flatten(self.args[k])[1].flatten_up_to(gradient)
            found += mine
        total, own = 0.0, [k for j in self.wrt for k, owner in enumerate(self.owners) if owner == j]
        for k, bar in zip(own, found, strict=True):
            if self.varied[k]:
                assert np.shape(bar) == np.shape(self.leaves[k]), (bar, self.leaves[k])
                assert np.asarray(bar).dtype == np.asarray(self.leaves[k]).dtype, (
                    bar,
                    self.leaves[k],
                )
                total += float(np.sum(np.real(np.asarray(bar) * direction[k])))
        return total

    def tangents(self, direction: list) -> tuple:
        return tree.unflatten(self.structure, direction)

    def untouched(self, args: tuple) -> None:
        assert same(args, self.args), "a transformed function changed its caller's arguments"

    def check_reverse(self, exact: bool, rtol: float, atol: float) -> None:
        args = self.copies()
        if self.scalar:
            value, gradients = self.through(s2s.value_and_grad(self.f, argnums=self.wrt))(*args)
            y_bar = [1.0]
        else:
            value, pullback = s2s.vjp(self.through(self.f), *args)
            leaves, structure = tree.flatten(self.plain)
            rng = np.random.default_rng(7)
            y_bar = [t if t.shape else t.item() for t in (random_like(rng, x) for x in leaves)]
            bars = pullback(tree.unflatten(structure, y_bar))
            gradients = tuple(bars[k] for k in self.wrt)
        self.check_value(value, exact)
        self.untouched(args)
        for seed in range(3):
            d = self.direction(seed)
            y_dot = self.oracle(d, d)["a"]
            expected = builtins.sum(
                float(np.sum(np.real(np.asarray(b) * t))) for b, t in zip(y_bar, y_dot, strict=True)
            )
            got = self.pair(gradients, d)
            assert close(got, expected, rtol, atol), f"reverse: {got} for {expected}\n{gradients}"

    def check_forward(self, exact: bool, rtol: float, atol: float) -> None:
        args, d = self.copies(), self.direction(0)
        value, value_dot = self.through(s2s.jvp(self.f))(*args, *self.tangents(d))
        self.check_value(value, exact)
        self.untouched(args)
        for got, expected in zip(tree.leaves(value_dot), self.oracle(d, d)["a"], strict=True):
            assert close(got, expected, rtol, atol), f"forward: {got} for {expected}"

    def check_second(self, rtol: float, atol: float) -> None:
        """Forward over reverse and reverse over reverse; for results that are no number, forward
        over forward.
        """
        first, second = self.direction(1), self.direction(2)
        expected = self.oracle(first, second)["ab"]
        args = self.copies()
        if not self.scalar:
            t, n = s2s.jvp(s2s.jvp(self.f)), self.tangents(first)
            zeros = tree.map(lambda x: np.zeros(np.shape(x)) if np.shape(x) else 0.0, n)
            (_, _), (_, got) = self.through(t)(*args, *n, *self.tangents(second), *zeros)
            for g, e in zip(tree.leaves(got), expected, strict=True):
                assert close(g, e, rtol, atol), f"forward over forward: {g} for {e}"
            return
        gradient = s2s.grad(self.f, argnums=self.wrt)
        _, gradient_dot = self.through(s2s.jvp(gradient))(*args, *self.tangents(second))
        got = self.pair(gradient_dot, first)
        assert close(got, expected[0], rtol, atol), f"forward over reverse: {got} for {expected[0]}"
        _, pullback = s2s.vjp(self.through(gradient), *self.copies())
        trees = self.tangents(first)
        bars = pullback(tuple(trees[k] for k in self.wrt))
        got = self.pair(tuple(bars[k] for k in self.wrt), second)
        assert close(got, expected[0], rtol, atol), f"reverse over reverse: {got} for {expected[0]}"
        self.untouched(args)

    def check_value(self, value, exact: bool) -> None:
        if exact:
            assert same(value, self.plain), f"primal: {value!r} for {self.plain!r}"
        else:
            for x, y in zip(tree.leaves(value), tree.leaves(self.plain), strict=True):
                # np.sum of single precision is added up in double and rounded once, where NumPy
                # rounds each partial sum
                singles = (np.float32, np.complex64, np.float16)
                within = any(getattr(v, "dtype", None) in singles for v in self.leaves)
                rtol = 1e-5 if np.asarray(y).dtype in singles else 1e-6 if within else 1e-11
                assert close(x, y, rtol, 1e-12), f"primal: {x} for {y}"
                assert np.asarray(x).dtype == np.asarray(y).dtype, f"primal: {x!r} for {y!r}"


def outcome(f, *args):
    """What `f` returns, or the type of what it raises."""
    try:
        with np.errstate(all="ignore"):
            return f(*args)
    except Exception as error:
        return type(error)


def random_like(rng: np.random.Generator, x) -> np.ndarray:
    """A tangent for `x`, of its dtype.

    The product of a cotangent and a tangent counts by its real part: a cotangent of u + iv is d/du
    - i d/dv.
    """
    drawn = np.asarray(rng.standard_normal(np.shape(x)))
    if np.iscomplexobj(x):
        drawn = drawn + 1j * rng.standard_normal(np.shape(x))
    return drawn.astype(np.asarray(x).dtype)


def is_inexact(x) -> bool:
    """Whether a leaf is a number or an array of them that is not of integers."""
    return not isinstance(x, (bool, int, str)) and np.issubdtype(np.asarray(x).dtype, np.inexact)


def close(x, y, rtol: float, atol: float) -> bool:
    return np.shape(x) == np.shape(y) and bool(
        np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
    )


def same(x, y) -> bool:
    """Whether two trees are equal bit for bit: structure, shapes, dtypes, signs of zeros, NaN
    beside NaN.
    """
    xs, a = tree.flatten(x)
    ys, b = tree.flatten(y)
    return a == b and all(map(_same_leaf, xs, ys))


def _same_leaf(x, y) -> bool:
    if isinstance(x, np.random.Generator):  # draws move it on
        return type(x) is type(y)
    if isinstance(x, (float, complex, int, np.ndarray, np.generic)) and not isinstance(x, bool):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype != y.dtype or x.shape != y.shape:
            return False
        return np.array_equal(x, y, equal_nan=x.dtype.kind in "fc") and (
            x.dtype.kind != "f" or np.array_equal(np.signbit(x), np.signbit(y)))
    return x is y or x == y
