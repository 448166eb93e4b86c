"""`s2s.conventions` names the lines at which calculus is silent, and no others."""

import math
import warnings

import numpy as np
import programs
import pytest
from non_smooth import CHOICES, POWERS, SIZES, STEPS, Point

import s2s

SMOOTH_POWERS = ("x ** 1.0", "x ** 2.0", "np.prod(x)", "np.sinc(x)")
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
    [p for p in (*CHOICES, *SIZES, *STEPS, *POWERS) if p.text not in SMOOTH_POWERS],
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
    cubed = s2s.grad(s2s.grad(lambda x: abs(x) ** 3))
    assert [c.order for c in s2s.conventions(cubed, 0.0)] == [1, 2]
    assert "in the second derivative" in str(s2s.conventions(cubed, 0.0)[1])
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
    assert len(said) == bool(reported) and all(f"{reported} coincide" in each for each in said)
    apart = s2s.conventions(s2s.grad(f), np.diag([1.0, 2.0, 4.0]))
    assert not any("coincide" in str(each) for each in apart)


def test_nothing_is_written_while_conventions_are_looked_for():
    seen = []

    def f(x):
        seen.append(x)
        return abs(x)

    assert len(s2s.conventions(s2s.grad(f), 0.0)) == 1 and seen == []
    assert s2s.grad(f).lower(2.0).memory is not None and seen == []
