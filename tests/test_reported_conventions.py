"""`s2s.conventions` names the lines at which calculus is silent, and no others."""

import cmath
import math
import warnings

import numpy as np
import programs
import pytest
import scipy.special
from non_smooth import CHOICES, POWERS, SIZES, STEPS, Point

import s2s

SMOOTH_PROGRAMS = ("x ** 0.0", "x ** 1.0", "x ** 2.0", "np.prod(x)", "np.sinc(x)", "abs(x) ** 2",
                   "np.hypot(x, 0.0) ** 2", "np.linalg.norm(x) ** 2", "np.cos(abs(x))",
                   "np.where(x == 0, 1.0, np.sin(x) / x)")
ONLY_CHOICES = "only through comparisons and steps: the derivative is 0"


def found(t, *args) -> list[tuple[str, str]]:
    """The line that each report shows, from what is underlined on, and what it says."""
    return [
        (
            c.line.text[
                c.line.text.find(
                    c.line.source.text.splitlines()[c.line.number - c.line.source.first_line][
                        c.line.column : c.line.end_column
                    ]
                ) :
            ]
            if c.line
            else "",
            c.what,
        )
        for c in s2s.conventions(t, *args)
    ]


def says(t, args, *phrases) -> None:
    reports = [str(c) for c in s2s.conventions(t, *args)]
    for phrase in phrases:
        assert any(phrase in text for text in reports), (phrase, reports)


def rotated(r, p):
    """Rodrigues' formula, guarded against no rotation."""
    theta = np.linalg.norm(r)
    axis = np.nan_to_num(r / theta)
    return (
        p
        + np.sin(theta) * np.cross(axis, p)
        + (1 - np.cos(theta)) * np.cross(axis, np.cross(axis, p))
    )


def test_the_first_camera_does_not_turn():
    t, p = s2s.jacobian(rotated), np.array([1.0, 2.0, 3.0])
    says(t, (np.zeros(3), p), "theta = np.linalg.norm(r)\n            ^^^^^^^^^^^^^^^^^\n"
                              "a size at 0",
         "0 / 0 has no value", "what is no number is replaced, and has derivative 0 ([0]: nan, 3 "
                               "times)")
    assert s2s.conventions(t, np.array([0.1, 0.0, 0.0]), p) == []


@pytest.mark.parametrize(
    "point",
    [p for p in (*CHOICES, *SIZES, *STEPS, *POWERS) if p.text not in SMOOTH_PROGRAMS],
    ids=lambda p: f"{p.text} at {p.at}",
)
def test_every_convention_of_the_page_is_reported(point: Point):
    f = s2s.from_source(f"def f(x):\n    return np.sum({point.text})\n", {"np": np})
    x = np.array(point.at) if isinstance(point.at, tuple) else point.at
    assert s2s.conventions(s2s.grad(f), x), point.text
    # nothing is compiled for it
    for derivative in (s2s.jit(s2s.grad(f)), s2s.hessian(f), s2s.value_and_grad(f)):
        assert s2s.conventions(derivative, x)


SMOOTH = [p for p in (*CHOICES, *SIZES, *STEPS) if not isinstance(p.at, tuple)]


@pytest.mark.parametrize("point", SMOOTH, ids=lambda p: f"{p.text} at {p.at}")
def test_nothing_is_reported_beside_it(point: Point):
    f = s2s.from_source(f"def f(x):\n    return np.sum({point.text})\n", {"np": np})
    only_steps = "only through" if point.first == 0 and point in STEPS else None
    for x in (point.at + 0.3, point.at - 0.3):
        reports = [c.what for c in s2s.conventions(s2s.grad(f), x)]
        assert all(only_steps and only_steps in what for what in reports), reports


def bisection(target):
    lo, hi = 0.0, 10.0
    while hi - lo > 1e-9:
        mid = (lo + hi) / 2
        if mid * mid < target:
            lo = mid
        else:
            hi = mid
    return lo


def counted(x):
    s = 0.0
    while s < x:
        s += 0.1
    return s


def stopped(x):
    for k in range(10):
        if k * 0.1 > x:
            break
    return k * 2.5


def nearest(x):
    return np.array([1.0, 4.0, 9.0])[np.argmin(np.abs(np.array([1.1, 2.1, 3.1]) - x))]


@pytest.mark.parametrize(
    "f, x, line",
    [
        (bisection, 2.0, "mid * mid < target"),
        (counted, 0.35, "s < x"),
        (stopped, 0.35, "k * 0.1 > x"),
        (nearest, 2.0, "np.argmin"),
        (lambda x: np.floor(x) * 2.0, 1.5, "np.floor(x)"),
    ],
    ids=["bisection", "counted", "stopped", "nearest", "floor"],
)
def test_results_that_depend_on_an_argument_through_choices(f, x, line):
    assert s2s.grad(f)(x) == 0.0
    says(s2s.grad(f), (x,), ONLY_CHOICES)
    assert any(line in text and ONLY_CHOICES in what for text, what in found(s2s.grad(f), x))


def test_an_argument_that_has_no_influence_is_no_convention():
    assert s2s.conventions(s2s.grad(lambda x, y: x * x, argnums=(0, 1)), 1.0, 2.0) == []


def piece(x):
    return abs(x) + math.floor(x)


def pieces(x):
    s = 0.0
    for k in range(4):
        s += piece(x - k)
    return s


def test_helpers_and_loops():
    says(
        s2s.grad(pieces),
        (2.0,),
        "return abs(x) + math.floor(x)",
        "a step: the derivative is taken as 0 (2.0, 4 times)",
        "a size at 0",
    )
    (only,) = s2s.conventions(s2s.grad(lambda x: abs(x) * 2.0), 0.0)
    assert (only.times, only.order, only.values) == (1, 1, "x = 0.0") and only.line.text.startswith(
        "(only,)"
    )


def test_lanes():
    t = s2s.jit(s2s.vmap(s2s.grad(lambda x, b: np.maximum(x, b)), in_axes=(0, None)))
    (only,) = s2s.conventions(t, np.array([1.0, 0.0, 2.0, 0.0]), 0.0)
    assert only.lane == (1,) and only.times == 2
    says(
        s2s.vmap(s2s.grad(lambda d, k: abs(d["a"]) * k), in_axes=({"a": 0}, None)),
        ({"a": np.array([1.0, 0.0])}, 2.0),
        "first in lane 1",
    )
    assert s2s.conventions(
        s2s.grad(lambda x: np.sum(s2s.vmap(lambda v: abs(v))(x))), np.array([1.0, 0.0])
    )


def test_each_derivative_of_a_derivative():
    bent = s2s.grad(s2s.grad(lambda x: abs(x) * (1 + x)))
    assert [c.order for c in s2s.conventions(bent, 0.0)] == [1, 2]
    assert "in the second derivative" in str(s2s.conventions(bent, 0.0)[1])
    assert 2 in [
        c.order for c in s2s.conventions(s2s.hessian(lambda x: np.linalg.norm(x)), np.zeros(2))
    ]


def test_every_mode_says_the_same():
    def f(x, y):
        return np.hypot(x, y) * 3.0

    for t, args in (
        (s2s.grad(f), (0.0, 0.0)),
        (s2s.jvp(f), (0.0, 0.0, 1.0, 1.0)),
        (s2s.vjp(f), (0.0, 0.0, 1.0)),
        (s2s.jacfwd(f), (0.0, 0.0)),
        (s2s.hvp(f), (0.0, 0.0, 1.0, 0.0)),
    ):
        assert s2s.conventions(t, *args)[0].values == "x = 0.0, y = 0.0"


def test_the_run_leaves_no_trace(capsys):
    rng, table = np.random.default_rng(0), np.zeros(3)

    def f(x, rng):
        print("run")
        table2 = table + x
        table2[0] = 1.0
        return np.sum(np.abs(table2)) + rng.standard_normal()

    before, x = rng.bit_generator.state, np.zeros(3)
    assert s2s.conventions(s2s.grad(f), x, rng)
    assert rng.bit_generator.state == before and not x.any() and capsys.readouterr().out == ""


def test_calls_warn_where_they_are_asked_to(monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "conventions")
    t = s2s.grad(lambda x: abs(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert t(1.0) == 1.0
    for _ in range(2):
        with pytest.warns(
            s2s.ConventionWarning,
            match=r"(?s)abs\(x\).*a size at 0: the derivative is taken as 0.*x = 0.0",
        ) as caught:
            assert t(0.0) == 0.0
        assert caught[0].filename == __file__


def test_what_is_no_derivative_is_refused():
    for t in (abs, s2s.jit(bisection), s2s.vmap(bisection)):
        with pytest.raises(
            s2s.TypeMismatchError,
            match="(?s)which is no derivative.*Instead: give it one, such as s2s.grad",
        ):
            s2s.conventions(t, np.ones(2))


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda p: p.name)
def test_programs_run_through(program):
    """Reports of programs at points chosen by nobody for it: at most of ties and edges that they
    contain.
    """
    t = s2s.grad(program.function, argnums=tuple(program.wrt))
    for each in s2s.conventions(t, *program.args):
        assert each.line is not None and each.what and each.values


# a result that depends on x beside a step, too; where the step is, and where it is not
STEPS_ON_THE_WAY = {
    "np.floor": (lambda x: np.floor(x) * x, 1.0, 1.5),
    "math.ceil": (lambda x: math.ceil(x) * x, 1.0, 1.5),
    "np.trunc of arrays": (lambda x: np.sum(np.trunc(x) * x), np.ones(2), np.full(2, 1.5)),
    "np.round": (lambda x: np.round(x) * x, 0.5, 1.0),
    "np.rint": (lambda x: np.rint(x) * x, 1.5, 1.0),
    "np.sign": (lambda x: np.sign(x) * np.cos(x), 0.0, 1.0),
    "np.heaviside": (lambda x: x + np.heaviside(x, 0.5), 0.0, 1.0),
    "//": (lambda x: x * (x // 0.5), 1.0, 1.2),
    "in a helper": (lambda x: helper_of_steps(x) + x, 2.0, 2.5),
    "sorted": (lambda x: sorted([x, 1.0])[0], 1.0, 2.0),
    "sorted by a key": (lambda x: sorted([x, 1.0], key=lambda t: -t)[0], 1.0, 2.0),
    "np.unique": (lambda x: np.sum(np.unique(x)), np.ones(2), np.arange(2.0)),
    "nuclear norm": (lambda a: np.linalg.norm(a, "nuc"), np.diag([1.0, 0.0]), np.diag([1.0, 2.0])),
    "singular values": (lambda a: np.linalg.svd(a)[1][1], np.diag([1.0, 0.0]), np.diag([1.0, 2.0])),
}


def helper_of_steps(x):
    return np.floor(x) * x


@pytest.mark.parametrize("f, at, beside", STEPS_ON_THE_WAY.values(), ids=STEPS_ON_THE_WAY)
def test_steps_on_the_way_to_a_result(f, at, beside):
    for t in (s2s.grad, s2s.jacfwd):
        assert s2s.conventions(t(f), at)
        assert s2s.conventions(t(f), beside) == []


# ----------------------------------------------------------------------- values that coincide

WEIGHTS = np.array([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [0.3, 1.0, 2.0]])


def by_an_inverse(a):
    w, q = np.linalg.eigh(a)
    return np.sum(WEIGHTS * (q @ np.diag(w**1.5) @ np.linalg.inv(q)))


def of_the_matrix(a):
    w, q = np.linalg.eigh(a)
    return np.sum(WEIGHTS * ((q * np.sqrt(w)) @ q.T))


def of_the_values(a):
    return np.sum(np.linalg.eigvalsh(a) ** 2)


def polar(a):
    u, _, vt = np.linalg.svd(a)
    return np.sum(WEIGHTS * (u @ vt))


def of_one_vector(a):
    u, _, _ = np.linalg.svd(a)
    return u[0, 0]


@pytest.mark.parametrize("f, reported", [(by_an_inverse, "eigenvalues"), (of_the_matrix, ""),
                                         (of_the_values, ""), (polar, ""),
                                         (of_one_vector, "singular values")])
def test_values_that_coincide_are_reported_where_vectors_count(f, reported):
    found = s2s.conventions(s2s.grad(f), 4.0 * np.eye(3))
    said = [str(each) for each in found if "coincide" in str(each)]
    assert bool(said) == bool(reported) and all(f"{reported} coincide" in each for each in said)
    apart = s2s.conventions(s2s.grad(f), np.diag([1.0, 2.0, 4.0]))
    assert not any("coincide" in str(each) for each in apart)


def test_nothing_is_written_while_conventions_are_looked_for():
    seen = []

    def f(x):
        seen.append(x)
        return abs(x)

    assert len(s2s.conventions(s2s.grad(f), 0.0)) == 1 and seen == []
    assert s2s.grad(f).lower(2.0).memory is not None and seen == []


# ------------------------------------------------------------- questions, orders, steps, and slopes


def first_of_largest(x):
    return np.sum(np.partition(x, 2)[2:])


def in_bins(x):
    counts, _ = np.histogram(x, bins=2, range=(0.0, 2.0))
    return np.sum(counts * x)


def while_above(x, step=2.0):
    total = 0.0
    while x * 2.0 > 2.0:
        total += x * x
        x = x - step
    return total


def asked_in_a_loop(x):
    return sum(v if abs(v) in [1.0, 2.0] else 2.0 * v for v in x)


def listed(x):
    return list(x).count(2.0) * x[0]


VECTOR = np.array([1.0, 2.0, 2.0, 3.0])
APART = np.array([1.0, 2.25, 2.5, 3.0])
NONE_ZERO, ONE_ZERO = np.array([1.0, 0.5]), np.array([1.0, 0.0])
SINGULAR, REGULAR = np.diag([1.0, 0.0]), np.diag([1.0, 2.0])
REPORTED = {  # program, where a convention decides, where none does, what is said
    "partition": (first_of_largest, VECTOR, APART, "a tie"),
    "argpartition": (lambda x: x[np.argpartition(x, 1)[1]], VECTOR, APART, "a tie"),
    "lexsort": (lambda x: x[np.lexsort((x,))][1], VECTOR, APART, "a tie"),
    "lexsort, two keys": (lambda x: x[np.lexsort((np.arange(4), x))][1], VECTOR, APART, "a tie"),
    "isin": (lambda x: np.sum(x[np.isin(x, [2.0])]), VECTOR, APART, "a comparison of equals"),
    "in": (asked_in_a_loop, VECTOR, np.array([1.5]), "a comparison of equals"),
    "count": (listed, VECTOR, APART, "a comparison of equals"),
    "histogram": (in_bins, np.array([0.5, 1.0]), np.array([0.5, 1.5]), "[1]: x = [0.5, 1.0]"),
    "np.all": (lambda x: np.sum(x) if np.all(x) else np.sum(x**2), ONE_ZERO, NONE_ZERO, "asked"),
    "np.any": (lambda x: np.sum(x) if np.any(x) else np.sum(x**2), np.zeros(2), ONE_ZERO, "asked"),
    "nonzero": (lambda x: np.sum(x[np.nonzero(x)]), ONE_ZERO, NONE_ZERO, "asked"),
    "signbit": (lambda x: np.signbit(x) * x, 0.0, 0.5, "a step"),
    "copysign": (lambda x: math.copysign(1.0, x) * x, 0.0, 0.5, "a step"),
    "round of Python": (lambda x: round(x, 1) * x, 2.25, 2.26, "x = 2.25"),
    "decimals": (lambda x: round(x, 2) * x, 2.125, 2.675, "a step"),  # 2.675 is a little less
    "arange": (lambda x: np.sum(np.arange(0.0, x, 0.25)) * x, 1.0, 1.1, "as many numbers"),
    "condition of while": (while_above, 3.0, 3.5, "a comparison of equals"),
    "np.cbrt": (np.cbrt, 0.0, 0.5, "infinitely steep"),
    "math.acos": (lambda x: math.acos(x), 1.0, 0.5, "infinitely steep"),
    "np.arccosh": (np.arccosh, 1.0, 1.5, "infinitely steep"),
    "entr": (scipy.special.entr, 0.0, 0.5, "infinitely steep"),
    "i0e": (scipy.special.i0e, 0.0, 0.5, "a corner"),
    "three coordinates": (lambda x: math.hypot(x, x, x), 0.0, 0.5, "a size at 0"),
    "np.arctan2": (lambda y: np.arctan2(y, -1.0), 0.0, 0.5, "an angle of pi"),
    "np.angle": (lambda z: np.angle(z), -1.0 + 0j, 1j, "an angle of pi"),
    "complex log": (lambda z: np.log(z).imag, -1.0 + 0j, 1j, "at which complex functions jump"),
    "cmath.sqrt": (lambda z: cmath.sqrt(z).imag, -1.0 + 0j, 1j, "at which complex functions jump"),
    "pinv": (lambda a: np.sum(np.linalg.pinv(a)), SINGULAR, REGULAR, "[1.0, 0.0, 0.0, 0.0]"),
    "lstsq": (lambda a: np.linalg.lstsq(a, np.ones(2))[0][0], SINGULAR, REGULAR, "columns"),
    "eig": (lambda a: abs(np.linalg.eig(a)[1][0, 0]), np.eye(2), REGULAR, "eigenvalues coincide"),
    "negative power": (lambda x: 0.0**x, 0.0, 0.5, "a power of what is not positive"),
    "distances": (lambda x: np.sum(np.sqrt(np.sum((x[:, None] - x) ** 2, 2))),
                  np.zeros((2, 2)), np.eye(2), "[0, 1]: "),
}


@pytest.mark.parametrize("f, at, apart, said", REPORTED.values(), ids=REPORTED)
def test_what_decides_is_reported_and_nothing_beside_it(f, at, apart, said):
    says(s2s.grad(f), (at,), said)
    assert s2s.conventions(s2s.grad(f), apart) == []


# ------------------------------------------------------------------------ what decides of nothing


def pairs(x):
    return np.sum(np.abs(x[:, None] - x[None, :]))


def least(x):
    best = x[0]
    for k in range(len(x)):
        if x[k] < best:
            best = x[k]
    return best


def rectified_twice(x):
    return np.sum(np.maximum(np.maximum(x, 0.0), 0.0))


SMOOTH_THERE = {
    "a number and itself": (pairs, np.array([1.0, 2.0])),
    "the first element": (least, np.array([1.0, 2.0])),
    "twice the same": (rectified_twice, np.array([-1.0, 2.0])),
    "a larger of one": (lambda x: np.sum(np.maximum(x, x)), np.ones(2)),
    "sums under roots": (lambda x: np.sum(np.sqrt(np.sum((x[:, None] - x) ** 2, 2))), np.eye(2)),
    "norms": (lambda x: np.sum(np.linalg.norm(x[:, None] - x, axis=2)), np.eye(2)),
    "a square of a norm": (lambda x: np.linalg.norm(x) ** 2, np.zeros(2)),
    "times 0": (lambda x: x * abs(x) + 0.0 * np.sign(x), 0.0),
    "a power": (lambda x: np.sum(np.abs(x) ** 1.5), np.zeros(2)),
    "Huber's pieces": (lambda x: x * x / 2 if x <= 1.0 else x - 0.5, 1.0),
    "in single precision": (lambda x: np.where(x > 0, x**3, 0 * x), np.float32(0.0)),
    "beside sin(x) / x": (lambda x: np.where(x == 0, 1.0, np.sin(x) / x), 0.0),
    "a sum of ordered numbers": (lambda x: np.sum(np.sort(x)), np.ones(3)),
    "a median between two": (np.median, np.array([1.0, 2.0, 2.0, 3.0])),
    "roots that are left out": (lambda x: np.sqrt(x)[1:][0] + 0 * x[0], np.array([1.0, 4.0])),
    "closeness": (lambda x: x * 3.0 if np.isclose(x, 1.0, 0.1) else x, 1.0),
    "along the cut": (lambda x: np.log(x + 0j).real, -2.0),
    "extremes in bins": (lambda x: np.sum(np.histogram(x, weights=x)[0]), np.array([0.0, 0.3, 1])),
}


@pytest.mark.parametrize("f, x", SMOOTH_THERE.values(), ids=SMOOTH_THERE)
def test_what_decides_nothing_is_not_reported(f, x):
    for t in (s2s.grad(f), s2s.jacfwd(f), s2s.jit(s2s.value_and_grad(f))):
        assert s2s.conventions(t, x) == []


DECIDED = {  # what nearly passes for smooth
    "a corner in large numbers": (lambda x: 1e8 + abs(x), 0.0),
    "a slight corner": (lambda x: x + 1e-7 * abs(x), 0.0),
    "a small argument": (lambda x: abs(x - 1e-9), 1e-9),
    "one quadrant": (lambda x: min(x) if x[0] > 0.0 and x[1] > 0.0 else 0.0, np.zeros(2)),
    "another quadrant": (lambda x: x[0] * 1.0 if x[0] > 0.0 > x[1] else 0.0, np.zeros(2)),
    "mass that moves": (lambda x: np.sum(np.bincount(x.astype(int), weights=x) ** 2),
                        np.array([1.0, 1.0, 2.0])),
    "one octant": (lambda x: min(x) if x[0] > 0 and x[1] > 0 and x[2] > 0 else 0.0, np.zeros(3)),
    "a narrow corner": (lambda x: abs(x) * np.exp(-((x / 1e-9) ** 2)), 0.0),
    "a corner in one of many": (lambda x: np.sum(np.sin(x)) + np.max(x[:2]), np.ones(100)),
    "twice the derivative of x": (lambda x: max(x, 0.0) + min(x, 0.0), 0.0),
    "an integer on one side": (lambda x: max(x, 0), 0.0),
    "joined, with a slope that is neither": (lambda x: 3.0 * x if x == 0.5 else x + 1.0, 0.5),
    "a square at one point": (lambda x: x if x == 1.0 else x * x, 1.0),
    "steep": (lambda x: np.cbrt(x), 0.0),
    "a step from 0 to 0": (lambda x: (x > 0.0) * 1e-6 + x, 0.0),
    "single precision": (lambda x: np.where(x > 0, x, 0 * x), np.float32(0.0)),
    "within a tolerance": (lambda x: np.where(np.abs(x) < 1e-6, np.abs(x), 1e-6), 0.0),
    "least eigenvalue": (lambda a: np.linalg.eigvalsh(a)[0], np.eye(3)),
    "largest singular value": (lambda a: np.linalg.svd(a)[1][0], np.eye(3)),
    "condition number": (lambda a: np.linalg.cond(a), 2.0 * np.eye(3)),
    "greatest of eig": (lambda a: np.linalg.eig(a)[0][0].real, np.eye(3)),
}


@pytest.mark.parametrize("f, x", DECIDED.values(), ids=DECIDED)
def test_what_nearly_passes_for_smooth_is_reported(f, x):
    for t in (s2s.grad(f), s2s.jacfwd(f), s2s.jit(s2s.value_and_grad(f))):
        assert s2s.conventions(t, x)


@pytest.mark.lengthy
def test_what_is_smooth_once_is_reported_of_the_second_derivative():
    for f, x in ((lambda x: np.where(x == 0, 1.0, np.sin(x) / x), 0.0),
                 (lambda x: np.where(np.abs(x) <= 1.0, x * x / 2, np.abs(x) - 0.5), 1.0),
                 (lambda x: np.maximum(x, 0.0) ** 2, 0.0)):
        assert s2s.conventions(s2s.grad(f), x) == []
        assert {c.order for c in s2s.conventions(s2s.hessian(f), x)} == {2}


def test_what_lies_outside_the_domain_beside_it():
    (only,) = s2s.conventions(s2s.grad(lambda x: math.sqrt(x) * x), 0.0)
    assert "infinitely steep" in only.what


def test_rules_of_the_user_are_no_conventions():
    @s2s.custom_jvp
    def soft(x):
        return abs(x)

    soft.defjvp(lambda primals, tangents: (abs(primals[0]), tangents[0]))
    assert s2s.conventions(s2s.grad(lambda x: soft(x) * 2.0), 0.0) == []
    (only,) = s2s.conventions(s2s.grad(lambda x: soft(abs(x))), 0.0)
    assert only.values == "x = 0.0"


def test_what_is_returned_beside_the_result():
    def f(x):
        return np.sum(x * x), np.abs(x)

    for t in (s2s.grad(f, has_aux=True), s2s.jacobian(f, has_aux=True),
              s2s.hessian(f, has_aux=True)):
        assert s2s.conventions(t, np.zeros(2)) == []
    with pytest.raises(s2s.TypeMismatchError, match="which is an integer: it has no derivative"):
        s2s.conventions(s2s.grad(lambda n: 1.0 * n), 2)


def test_names_are_those_of_the_user():
    def f(x):
        rest = x - 1.0
        return np.maximum(
            rest,
            0.0) + np.linalg.norm(np.array([rest])) + max([x, -1.0], key=abs)

    values = [c.values for c in s2s.conventions(s2s.grad(f), 1.0)]
    assert values == ["rest = 0.0, 0.0", "[0.0]", "1.0, 1.0"]


def test_arguments_by_name_and_default():
    def f(x, edge=1.0):
        return max(x, edge)

    assert len(s2s.conventions(s2s.grad(f), 1.0)) == 1 and s2s.conventions(s2s.grad(f), 2.0) == []
    assert len(s2s.conventions(s2s.grad(f), 2.0, edge=2.0)) == 1
    t = s2s.vmap(s2s.grad(f), in_axes=(0, None))
    assert s2s.conventions(t, edge=2.0, x=np.array([1.0, 2.0]))[0].lane == (1,)


# --------------------------------------------------------------------- what loops find by comparing


def root_between(target, low, high):
    while high - low > 1e-10:
        middle = (low + high) / 2
        if middle * middle < target:
            low = middle
        else:
            high = middle
    return low


def root_by_newton(a, start):
    x = start
    for _ in range(30):
        if abs(x * x - a) < 1e-13:
            break
        x = (x + a / x) / 2
    return x


FOUND_BY_COMPARING = {  # program, argument, derivative that is taken, that of the program
    "beside what is smooth": (lambda x: root_between(x, 0.0, 9.0) + x, 2.0, 1.0, 1 + 8**-0.5),
    "between bounds that move": (lambda x: root_between(x, 0.0, max(x, 1.0)), 2.0, None, 8**-0.5),
    "a member": (lambda p: root_between(p["a"], 0.0, 9.0) * p["b"], {"a": 2.0, "b": 1.0}, None,
                 None),
    "an element": (lambda x: root_between(x[0], 0.0, 9.0) + x[1], np.array([2.0, 1.0]), None, None),
    "a start that solves it": (lambda x: root_by_newton(x, x), 1.0, 1.0, 0.5),
}


@pytest.mark.parametrize("f, x, taken, true", FOUND_BY_COMPARING.values(), ids=FOUND_BY_COMPARING)
def test_results_that_loops_find_by_comparing(f, x, taken, true):
    (only,) = s2s.conventions(s2s.grad(f), x)
    assert "no derivative passes through comparisons" in only.what
    assert only.line.text.strip().startswith("if ") and "by differences" in only.values
    if true is not None:
        slope, chord = (float(part.split()[-1]) for part in only.values.split(", by differences"))
        assert slope == pytest.approx(s2s.grad(f)(x), rel=1e-3) and taken in (None, s2s.grad(f)(x))
        assert chord == pytest.approx(true, rel=1e-3)
    (again,) = s2s.conventions(s2s.jacobian(lambda x: np.array([f(x), 1.0])), x)
    assert again.what == only.what


def test_loops_that_compare_and_have_a_derivative():
    for f, x in ((lambda x: root_by_newton(x, 1.0), 2.0), (counted_above, 2.0),
                 (counted_above, 1e-8), (lambda x: least(x) * x[0], np.array([3.0, 1.0, 2.0]))):
        assert s2s.conventions(s2s.grad(f), x) == []


def counted_above(x):
    total = x
    for k in range(5):
        if x > k - 0.5:
            total = total + x * k
    return total
