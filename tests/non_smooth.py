"""Points where a derivative is a convention: an expression of x, the point, what s2s takes its
derivatives to be, what JAX does.

`docs/non-smooth.md` is written from this table (tests/test_non_smooth.py);
tests/peers/test_conventions.py asks JAX.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, pi


@dataclass(frozen=True)
class Point:
    """`text` is an expression of x, an array of one axis if `at` is a tuple, whose derivatives are
    those of its sum.
    """

    text: str
    at: float | tuple
    first: float | tuple
    second: float | None  # of a number: the second derivative
    jax: float | tuple | None  # the first derivative in JAX; None: JAX has no such function


CHOICES = (
    Point("np.maximum(x, 1.0)", 1.0, 0.5, 0.0, 0.5),
    Point("np.minimum(x, 1.0)", 1.0, 0.5, 0.0, 0.5),
    Point("np.fmax(x, 1.0)", 1.0, 0.5, 0.0, 0.0),
    Point("max(x, 1.0)", 1.0, 1.0, 0.0, None),
    Point("max(1.0, x)", 1.0, 0.0, 0.0, None),
    Point("np.max(x)", (2.0, 1.0, 2.0), (0.5, 0.0, 0.5), None, (0.5, 0.0, 0.5)),
    Point("np.min(x)", (2.0, 1.0, 1.0), (0.0, 0.5, 0.5), None, (0.0, 0.5, 0.5)),
    Point("np.ptp(x)", (1.0, 1.0), (0.0, 0.0), None, (0.0, 0.0)),
    Point("np.sort(x)[0]", (1.0, 3.0, 1.0), (1.0, 0.0, 0.0), None, (1.0, 0.0, 0.0)),
    Point("np.clip(x, 1.0, 2.0)", 1.0, 0.5, 0.0, 0.5),
    Point(
        "np.clip(x, 1.0, 2.0)",
        (0.0, 1.0, 1.5, 2.0),
        (0.0, 0.5, 1.0, 0.5),
        None,
        (0.0, 0.5, 1.0, 0.5),
    ),
    Point("np.where(x > 0, x, 0.0)", 0.0, 0.0, 0.0, 0.0),
    Point("np.where(x > 0, np.sqrt(x), 0.0)", 0.0, 0.0, 0.0, nan),
    Point("np.where(x == 0, 1.0, np.sin(x) / x)", 0.0, 0.0, 0.0, nan),
    Point("np.sqrt(x)[x > 0]", (0.0, 4.0), (0.0, 0.25), None, None),
)
SIZES = (
    Point("abs(x)", 0.0, 0.0, 0.0, 1.0),
    Point("np.abs(x)", (-1.0, 0.0, 2.0), (-1.0, 0.0, 1.0), None, (-1.0, 1.0, 1.0)),
    Point("abs(x) ** 2", 0.0, 0.0, 2.0, 0.0),
    Point("np.cos(abs(x))", 0.0, 0.0, -1.0, 0.0),
    Point("np.sqrt(x * x)", 0.0, 0.0, 0.0, nan),
    Point("np.sqrt(np.sum(x**2))", (0.0, 0.0), (0.0, 0.0), None, (nan, nan)),
    Point("np.hypot(x, 0.0)", 0.0, 0.0, nan, 0.5),
    Point("np.hypot(x, 0.0) ** 2", 0.0, 0.0, 2.0, 0.0),
    Point("np.linalg.norm(x)", (0.0, 0.0), (0.0, 0.0), None, (nan, nan)),
    Point("np.linalg.norm(x, 1)", (0.0, 2.0), (0.0, 1.0), None, (1.0, 1.0)),
    Point("np.linalg.norm(x, 3)", (0.0, 0.0), (0.0, 0.0), None, (nan, nan)),
    Point("np.linalg.norm(x, np.inf)", (1.0, -1.0), (0.5, -0.5), None, (0.5, -0.5)),
    Point("np.linalg.norm(x) ** 2", (0.0, 0.0), (0.0, 0.0), None, (nan, nan)),
    Point("np.std(x)", (3.0, 3.0), (0.0, 0.0), None, (nan, nan)),
)
STEPS = (
    Point("np.sign(x)", 0.0, 0.0, 0.0, 0.0),
    Point("np.floor(x)", 1.0, 0.0, 0.0, 0.0),
    Point("np.round(x)", 0.5, 0.0, 0.0, 0.0),
    Point("np.heaviside(x, 0.5)", 0.0, 0.0, 0.0, 0.0),
    Point("x % 1.0", 2.0, 1.0, 0.0, 1.0),
    Point("3.0 % x", 1.0, -3.0, 0.0, -3.0),
    Point("np.copysign(x, 1.0)", 0.0, 0.0, 0.0, 1.0),
)
TRIANGLES = (
    Point(
        "np.linalg.cholesky(x.reshape(2, 2))",
        (4.0, 2.0, 2.0, 5.0),
        (0.1875, 0.0, 0.25, 0.25),
        None,
        (0.1875, 0.125, 0.125, 0.25),
    ),
    Point(
        "np.linalg.eigvalsh(x.reshape(2, 2))[1]",
        (1.0, 2.0, 2.0, 1.0),
        (0.5, 0.0, 1.0, 0.5),
        None,
        (0.5, 0.5, 0.5, 0.5),
    ),
)
POWERS = (
    Point("x ** 0.0", 0.0, 0.0, 0.0, nan),
    Point("x ** 1.0", 0.0, 1.0, 0.0, 1.0),
    Point("x ** 2.0", 0.0, 0.0, 2.0, 0.0),
    Point("0.0 ** x", 0.0, 0.0, 0.0, 0.0),
    Point("np.power(-2.0, x)", 2.0, 0.0, 0.0, nan),
    Point("np.prod(x)", (0.0, 0.0, 3.0), (0.0, 0.0, 0.0), None, (0.0, 0.0, 0.0)),
    Point("np.sinc(x)", 0.0, 0.0, -pi**2 / 3, 0.0),
)
LIMITS = (
    Point("np.sqrt(x)", 0.0, inf, -inf, inf),
    Point("np.log(x)", 0.0, inf, -inf, inf),
    Point("np.log1p(x)", -1.0, inf, -inf, inf),
    Point("np.arcsin(x)", 1.0, inf, inf, inf),
    Point("np.arctan2(x, 0.0)", 0.0, nan, nan, nan),
    Point("np.sqrt(x * x) ** 2", 0.0, 0.0, 2.0, nan),
)
THROWN_AWAY = (
    Point("np.sqrt(x)[1:]", (0.0, 4.0), (0.0, 0.25), None, (nan, 0.25)),
    Point("np.take(np.log(x), [1])", (0.0, 4.0), (0.0, 0.25), None, None),
    Point("np.delete(np.sqrt(x), 0)", (0.0, 4.0), (0.0, 0.25), None, None),
    Point("np.sort(np.sqrt(x))[1:]", (0.0, 4.0), (0.0, 0.25), None, (nan, 0.25)),
    Point("np.max(x ** 0.5)", (0.0, 4.0), (0.0, 0.25), None, (nan, 0.25)),
    Point("np.sqrt(x) * (x > 0)", (0.0, 4.0), (0.0, 0.25), None, (nan, 0.25)),
    Point("np.diag(np.arccos(x), 1)[0, 1:]", (0.0, 1.0), (-1.0, 0.0), None, None),
)
SECTIONS = {
    "Ties: which of several is chosen": CHOICES,
    "Discarded values": THROWN_AWAY,
    "Absolute values and norms at zero": SIZES,
    "Steps": STEPS,
    "Powers": POWERS,
    "Matrices of which one triangle is read": TRIANGLES,
    "Not finite: one-sided limits, and none": LIMITS,
}
POINTS = [point for points in SECTIONS.values() for point in points]
