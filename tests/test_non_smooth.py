"""Where calculus is silent: the conventions of docs/non-smooth.md hold in every mode, and the page
says them.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from non_smooth import POINTS, SECTIONS, Point

import s2s

PAGE = Path(__file__).parent.parent / "docs" / "non-smooth.md"
INTRODUCTION = """\
# Derivatives at ties, corners and singular points

At a tie, a corner or zero a derivative is a convention. Where several values are the largest, each gets an equal
share of the derivative, as in JAX; Python's own `max` and `min` follow the operand that they return. What grows like
a distance has derivative 0 at 0, the middle of its subgradients: `abs`, `hypot`, norms, standard deviations, and
roots written as such (of `x * x`, and of its sum). Functions that grow infinitely steep have the derivative that
NumPy's division gives: inf, or nan where even the limit is not known. Second derivatives are those of the branch that
the first chooses.

`s2s.conventions(t, *args)` says which lines of a program were decided by a convention in one call; with
`S2S_CHECK=conventions` calls warn of them.

**Triangles.** Of a symmetric or Hermitian matrix `cholesky`, `eigh`, `eigvalsh`, `cho_factor` and
`solve(assume_a="pos")` read one triangle, so the derivative is zero in the other one, and that by a Hermitian
diagonal is real. JAX makes the matrix symmetric first, `(a + a.T) / 2`, and shares the derivative between both
triangles. Where a program writes both, what reaches its arguments is the same.

**Second derivatives at zero.** Where an absolute value or a norm is 0, second derivatives are exact where they exist,
and NaN otherwise. A square of a root, an absolute value or a norm is differentiated as what is under the root, in
whatever way it is written (`r ** 2`, `r * r`, `np.square(r)`, `r @ r`), in every mode. In forward over reverse
(`hessian`, `hvp`, `jvp` of `grad`), any function of a norm that has a second derivative has it:
`np.cos(np.linalg.norm(x))`. In the other orders that is NaN unless such a square is recognised.

**Equal eigenvalues.** Where eigenvalues or singular values coincide, their vectors have no derivative, but a function
of the matrix has one. Products of the vectors of `eigh` or `svd` around functions of the values, `(Q * f(w)) @ Q.T`,
`U * f(s) @ Vt`, `U @ Vt`, `Q @ ((Q.T @ b) / w)` and their other spellings, one matrix at a time (stacks under
`s2s.vmap`), are differentiated as such functions, by the divided differences of Daleckii and Krein: exact at values
that are equal or nearly so, in both modes and in second order. So are second derivatives of functions of the values
alone, in forward over reverse and reverse over reverse.

Any other derivative of a vector there is NaN, as of parts of `Q`, or of sums of outer products in a loop; or 0, where
the cotangents of the vectors cancel. So it is with the vectors of a singular value of 0 of a matrix that is not square.
`s2s.conventions` names the line.

Values that rounding may have parted count as equal, because their vectors are made of rounding errors: those of
`q @ np.diag([2, 2, 3]) @ q.T`, computed as 2.0 and 2.0000000000000004. That is a gap of at most
`16 * np.sqrt(n) * eps` times the largest of the n values, with the `eps` of their dtype: in double precision, about
6e-15 of it for three values. At greater gaps the derivative of a vector is as large and as exact as the gap makes it.

**Discarded values.** What a program discards has no influence on a derivative, not even a NaN, in whatever way it is
discarded: by an index, a slice or a mask, `np.where`, `np.triu`, `np.delete`, by being overwritten, as
`np.fill_diagonal` does, by never being read (in a loop, on the path taken, from a list), by sorting and taking some,
by a bound that takes its place (`np.minimum(1 / x, 5)`), or by a factor from a mask: an array that is not
differentiated and is 0 there. (If the value is infinite, the product is NaN, and so is its derivative.)

In a value of which entries may have been discarded, a cotangent that is exactly 0 makes 0 of an infinite slope. A
second derivative where an entry that counts has a cotangent of 0 and an infinite slope, as in the square of
`np.triu(np.sqrt(x))` at 0, is 0 or nan. In forward mode, a direction that does not touch an entry has derivative 0
there; an infinite tangent is discarded with its entry, but a matrix product multiplies it by 0, which gives nan.

Values may be infinite where a function is steep or divides. Arguments are taken for finite, unless the program asks: if
it calls `np.isnan`, `np.isfinite` or the like, or compares data (`w < 5`, for an array that is not differentiated),
then what that is made of may be infinite or NaN, so that missing data, left out by `~np.isnan(data)`, have no
influence. An infinite weight left out by its index alone, `(x * w)[1:]`, makes its derivative nan, as does an infinite
value that an op mixes with others (`np.outer`, `@`) before it is discarded. So does a number by which all of an array
is divided, `np.minimum(x / h, 5)` at h = 0.

**Underflow and infinities.** Where `np.linalg.norm` squares numbers below 1e-162 it gives 0, and the derivative is 0
to within such numbers; where it squares numbers above 1e154 it gives inf, and the derivative is 0. So it is with other
orders, at other numbers. `np.hypot` and `abs` of a complex number do neither. The slopes of `tanh` and `expit` are
made of their values (`1 - y * y`) and as exact as these: 0 where the value has been rounded to 1.

**Sums of exponentials.** `np.logaddexp` at infinities has the limits of its slopes, 1 and 0; of two of -inf they are 0,
as of a sum of nothing, of two of inf NaN. `logsumexp` has these limits where numbers are -inf; where one is inf, the
slopes of finite numbers are 0 in reverse mode, and all others NaN, as `softmax` is itself.

**Complex powers.** `(-4.0) ** 0.5` of Python's numbers is 2j, of NumPy's nan. `abs((-x) ** 0.5)`, and what else makes
real numbers of such powers again, is not differentiated: it raises a `ValueError` where the power is complex. Write
`abs(complex(-x) ** 0.5)`.

Each line is checked in reverse and forward mode and, for numbers, in second order; the column of JAX's values is
compared with JAX. This page is written from `tests/non_smooth.py` (`pytest tests/test_non_smooth.py --update-golden`
writes it).
"""
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def shown(x) -> str:
    """A number, or numbers, as the page says them; -0.0 is 0."""
    if isinstance(x, tuple):
        return f"({', '.join(map(shown, x))})"
    return "" if x is None else f"{x + 0.0:.4g}"


def page() -> str:
    parts = [INTRODUCTION]
    for title, points in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts.append("| expression | x | derivative | second | JAX |\n|---|---|---|---|---|")
        parts += [
            f"| `{p.text}` | {shown(p.at)} | {shown(p.first)} | {shown(p.second)} | {shown(p.jax)} |"
            for p in points
        ]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def function(point: Point):
    return s2s.from_source(f"def f(x):\n    return {point.text}\n", {"np": np})


def check(point: Point, x, through=lambda t: t) -> None:
    f = function(point)
    assert np.isfinite(f(x)).all() or point.text.startswith("np.log")
    summed = lambda x: np.sum(f(x))  # noqa: E731
    np.testing.assert_allclose(through(s2s.grad(summed))(x), point.first, rtol=1e-15)
    np.testing.assert_allclose(through(s2s.vjp(summed))(x, 1.0)[0], point.first, rtol=1e-15)
    directions = np.eye(np.size(x)).reshape(-1, *np.shape(x))
    if np.isfinite(point.first).all():
        slopes = [through(s2s.jvp(summed))(x, d if d.ndim else float(d))[1] for d in directions]
        np.testing.assert_allclose(np.reshape(slopes, np.shape(x)), point.first, rtol=1e-15)
    if point.second is not None:
        np.testing.assert_allclose(
            through(lambda x: s2s.jvp(s2s.grad(f), (x,), (1.0,))[1])(x), point.second, rtol=1e-14
        )
        for twice in (s2s.grad(s2s.grad(f)), s2s.grad(lambda x: s2s.jvp(f, (x,), (1.0,))[1])):
            found = through(twice)(x)
            if (
                point not in SECTIONS["Absolute values and norms at zero"]
                or "** 2" in point.text
                or not np.isnan(found)
            ):
                np.testing.assert_allclose(found, point.second, rtol=1e-14)
    elif np.isfinite(point.first).all() and (
        point not in SECTIONS["Absolute values and norms at zero"] or "** 2" in point.text
    ):
        assert np.isfinite(through(s2s.hessian(summed))(x)).all()


@pytest.mark.parametrize("point", POINTS, ids=lambda p: f"{p.text} at {p.at}")
def test_conventions(point):
    if isinstance(point.at, tuple):
        return check(point, np.array(point.at))
    check(point, point.at)
    return check(point, np.float64(point.at))


@pytest.mark.parametrize(
    "point",
    [p for p in POINTS if not isinstance(p.at, tuple) and "max(" not in p.text],
    ids=lambda p: f"{p.text} at {p.at}",
)
def test_arrays_and_numbers_agree(point):
    f = function(point)
    np.testing.assert_allclose(
        s2s.grad(lambda x: np.sum(f(x)))(np.full(2, point.at)), point.first, rtol=1e-15
    )


OF_NUMBERS = {
    title: points
    for title, points in SECTIONS.items()
    if not all(isinstance(p.at, tuple) for p in points)
}


@pytest.mark.compile
@pytest.mark.parametrize("points", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_conventions_compiled(points):
    texts = [p.text for p in points if not isinstance(p.at, tuple)]
    names = [f"x{k}" for k in range(len(texts))]
    terms = " + ".join(re.sub(r"\bx\b", name, f"({text})") for text, name in zip(texts, names))
    f = s2s.from_source(f"def f({', '.join(names)}):\n    return {terms}\n", {"np": np})
    args = [p.at for p in points if not isinstance(p.at, tuple)]
    slopes = s2s.jit(s2s.grad(f, argnums=tuple(range(len(args)))))(*args)
    np.testing.assert_allclose(
        slopes, [p.first for p in points if not isinstance(p.at, tuple)], rtol=1e-15
    )


def test_the_page(pytestconfig):
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page(), ("docs/non-smooth.md is out of date: pytest "
                                        "tests/test_non_smooth.py --update-golden")
