"""Programs whose control flow is everything that Python has: loops with `else`, `match`, `with`,
early returns.
"""

from __future__ import annotations

import contextlib
import runpy
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import TypeMismatchError, UnsupportedError

PROGRAMS = []
COMPILED = []
STEP = 3.0


def program(*args, wrt=None, compiled=False):
    def record(f):
        PROGRAMS.append(pytest.param(f, args, wrt, id=f.__name__))
        if compiled:
            COMPILED.append(PROGRAMS[-1])
        return f
    return record


@program(0.5, 6)
def settles_or_is_doubled(x, n):
    k = 0
    while k < n:
        x = np.sin(x) + 0.1 * k
        if x > 10.0:
            break
        k += 1
    else:
        x = x * 2.0
    return x * x


@program(0.5, 6)
def counts_in_its_test(x, n):
    k = 0
    while (k := k + 1) < n:
        x = np.sin(x) + 0.1 * k
        if x > 10.0:
            break
    else:
        x = x * 2.0
    return x * x


@program(np.array([0.3, -0.2, 0.9]), 5.0, compiled=True)
@program(np.array([0.3, -0.2, 0.9]), 0.05)
def stops_all_loops(x, limit):
    s = 0.0
    for i in range(len(x)):
        for j in range(i, len(x)):
            s += x[i] * x[j]
            if s > limit:
                break
        else:
            s = s * 1.1
            continue
        break
    else:
        s = s + x[0]
    return s * s


@program(np.array([0.3, -0.2, 0.9, 1.5]), 1.0, compiled=True)
@program(np.array([0.3, -0.2, 0.9, 1.5]), -1.0)
def returns_from_a_while_in_a_for_in_a_branch(x, limit):
    if limit > 0.0:
        for i in range(len(x)):
            y = x[i]
            while y < 4.0:
                y = y * y + 0.5
                if y > limit and i > 1:
                    return y * x[0]
    else:
        return x[1]
    return x[0] * x[1]


@program(np.array([0.4, 2.0, -0.7, 1.2]))
def skips_and_stops(x):
    """A docstring says nothing to the derivative."""
    total = product = x[0] * 1.0
    for i, v in enumerate(x):
        if v < 0.0:
            continue
        k = 0
        while True:
            k += 1
            if k > 5 or product > 8.0:
                break
            if k % 2:
                pass
                continue
            product *= v
        else:
            return -total
        total += product * i
        del k
    return total


@program(0.5, 0.2)
def chained_and_augmented(x, y):
    a = b = x * y
    a += 1.0
    c = d = np.zeros(2)
    c[0] = a
    d[1] = b
    e, f = g = (a, b)
    del a
    h: float = e if x > y else f
    h **= 2
    return c[1] * d[0] + e * f + g[0] + h


@program(0.5, 0.2, compiled=True)
@program(0.5, 4.0)
def named_on_the_way(x, y):
    if (z := x * y) > 0 and (w := z + x) < 2:
        return z * w
    s = [u := z * 2, u + 1]
    while (v := s[0] - u) + 3.0 < 2.0:
        pass
    return s[0] + u * (y if (q := v + x) > 0 else -q) + q


@program(np.arange(6.0).reshape(2, 3) / 3)
def stars(x):
    a, *b = x[0, 0], x[0, 1], x[0, 2]
    s, (t, *u), *v = a, (x[1, 0], b[0], b[1]), 2.0, x[1, 1]
    *w, z = (s, t, *u)
    return s + t * u[0] * u[1] + v[0] * v[1] * z + w[0]


@program(0.7, 5, compiled=True)
def nested_functions_that_write(x, n):
    total, count = 0.0, 0

    def add(v):
        nonlocal total
        if v > 1.0:
            total = total + v * v
            bump()
        else:
            total = total * x
        return total

    def bump():
        nonlocal count
        count += 1

        def deeper():
            nonlocal total
            total = total + 1.0 * count

        deeper()

    def look():
        return total * count

    for i in range(n):
        add(x * i)
        if i == 3:
            y = look()
            add(y)
    return total * add(x) + count + look()


@program(0.7)
def reads_a_global(x):
    global STEP
    return x * x * STEP


@program(0.7, 2)
@program(0.7, 0)
@program(0.7, 9)
def by_degree(x, n):
    match n:
        case 0:
            return x
        case 1 | 2:
            y = x * x
        case _:
            y = np.sin(x)
    return y * 3.0


@program((0.7, 0.2, 0.4), "a")
@program((0.3, 0.2, 0.4), "a")
@program((0.3, 0.2), None)
def by_shape(p, mode):
    match p, mode:
        case (a, *rest), "a" if a > 0.5:
            s = a * rest[0] * rest[1]
        case (a, b, c), ("a" | "b"):
            s = a + b * c
        case [a, _] as pair, None:
            s = a * pair[1]
        case _:
            s = 1.0
    return s * s


@program(np.array([0.3, 0.2, 0.4]), 5, compiled=True)
@program(np.array([0.3, 0.8, 0.4]), 5)
def by_turns(x, n):
    s = 0.0
    for i in range(n):
        match i % 3, x[i % 3]:
            case 0, v:
                s = s + v * v
            case 1, v if v > 0.5:
                break
            case 1, v:
                s = s * v
                continue
            case k, v:
                s = s + np.sin(v) * k
        s = s + 0.1
    return s


@program(0.3, 0.5, "pair")
@program(0.3, 0.5, "single")
@program(0.3, 0.2, "single")
def by_alternatives(x, y, kind):
    match (x, (kind, (y, x) if kind == "pair" else y)):
        case (x, ("single", y) | ("pair", (y, _))) if y > 0.4:
            return x * y
    return 1.0


@dataclass
class Disc:
    radius: float
    centre: tuple = (0.0, 0.0)


class Box(NamedTuple):
    width: float
    height: float


def area(shape):
    match shape:
        case Disc(r, centre=(0.0, y)):
            return 3.0 * r * r + y
        case Disc(radius=r):
            return 3.0 * r * r
        case Box(w, h) if h > w:
            return w * h
        case Box():
            return 0.0 * shape.width
        case {"side": a, **more}:
            return a * a * len(more)
        case [a, b, *others]:
            return a * b * len(others)
        case [a]:
            return a
        case None:
            return 1.0
    return -1.0


@program(0.3, 0.5)
@program(0.5, 0.3)
def by_form(x, y):
    total = (
        area(Disc(x))
        + area(Disc(x, (1.0, y))) * area(Box(x, y))
        + area({"side": y, "name": "square"})
    )
    return total + area([x, y, x, y]) * area([y]) + area(None) * area([]) * x


@program(np.array([0.3, 0.2, -0.4]))
def warnings_off(x):
    with np.errstate(divide="ignore", invalid="ignore"), contextlib.nullcontext(x * 2.0) as y:
        for v in x:
            with np.errstate(over="ignore"):
                if v < 0:
                    return np.sum(np.log(np.abs(y))) * v
    return np.sum(y)


@pytest.mark.parametrize("f, args, wrt", PROGRAMS)
def test_program(f, args, wrt):
    judge(f, *args, wrt=wrt)


@pytest.mark.compile
@pytest.mark.parametrize("f, args, wrt", COMPILED)
def test_compiled_program(f, args, wrt):
    judge(
        f,
        *args,
        wrt=wrt,
        compiled=True,
        second=f.__name__ not in ("returns_from_a_while_in_a_for_in_a_branch", "stops_all_loops"),
    )


def by_class(x):
    match x:
        case int() | bool():
            return 1.0
        case float(y):
            return y * y
    return np.sum(x)


def test_a_class_pattern_asks_for_the_type():
    assert s2s.grad(by_class)(0.3) == 0.6
    assert np.array_equal(s2s.grad(by_class)(np.ones(3)), np.ones(3))
    assert s2s.vjp(by_class, 3)[0] == 1.0


def an_array_is_no_sequence(x):
    match x:
        case [a, b]:
            return a * b
    return np.sum(x) * 3.0


def test_an_array_is_no_sequence_to_match():
    assert np.array_equal(s2s.grad(an_array_is_no_sequence)(np.ones(2)), [3.0, 3.0])


def errors_on(x):
    with np.errstate(divide="raise"):
        return np.log(x)


def test_errors_that_numpy_raises_on_request_are_refused():
    with pytest.raises(
        UnsupportedError, match=r"np.errstate\(divide='raise'\)(.|\n)*test for the condition"
    ):
        s2s.grad(errors_on)(0.5)


def masked_logarithm(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(x)
    with np.errstate(over="warn"):
        return np.sum(np.where(x > 0, y, 0.0) + x * x)


def test_what_the_program_silences_is_silent_in_what_is_made_of_it(tmp_path):
    x = np.array([0.0, 0.5, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient = s2s.grad(masked_logarithm)
        (
            gradient(x),
            s2s.jvp(masked_logarithm, (x,), (np.ones(3),)),
            s2s.hessian(masked_logarithm)(x),
        )
        (
            s2s.vmap(gradient)(np.stack([x, x])),
            s2s.vjp(masked_logarithm, x)[1](1.0),
            s2s.vmap(masked_logarithm)(np.stack([x, x])),
        )
        s2s.grad(lambda x: 2.0 * masked_logarithm(x))(x)
        gradient.export(tmp_path / "masked.py", x)
        names = runpy.run_path(str(tmp_path / "masked.py"))
        names["masked_logarithm_grad"](x)
    assert (
        '@np.errstate(divide="ignore", invalid="ignore")\ndef masked_logarithm_grad(x):'
        in gradient.source
    )
    assert "errstate" not in s2s.jit(gradient).lower(x).loops
    assert np.geterr() == {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


@np.errstate(all="ignore")
def below_errstate(x, k=2.0):
    return np.sum(np.where(x > 0, np.log(x), 0.0) + x * k)


@np.errstate(invalid="raise")
def raising_below_errstate(x):
    return np.sum(np.log(x))


def test_functions_below_errstate_are_read():
    x = np.array([0.0, 0.5, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient = s2s.grad(below_errstate)
        np.testing.assert_array_equal(gradient(x)[1:], [4.0, 2.5])
        np.testing.assert_array_equal(
            s2s.grad(lambda x: below_errstate(x, k=1.0) * 2.0)(x)[1:], [6.0, 3.0]
        )
    assert '@np.errstate(all="ignore")\ndef below_errstate_grad(x, k=2.0):' in gradient.source
    names = {}
    exec(gradient.source, names)
    again = s2s.from_source(
        gradient.source + "\ndef twice(x):\n    return np.sum(below_errstate_grad(x) ** 2)\n", names
    )
    np.testing.assert_allclose(s2s.grad(again)(x)[1:], [-2 * 4.0 / 0.25, -2 * 2.5 / 4.0])
    with pytest.raises(
        UnsupportedError,
        match=r"raising_below_errstate below @np.errstate(.|\n)*test for the condition",
    ):
        s2s.grad(raising_below_errstate)(x)


def too_many_positions(x):
    match x:
        case complex(a, b):
            return a * b
    return x


def test_a_class_without_positions_has_no_positional_patterns():
    with pytest.raises(TypeMismatchError, match="complex accepts 0 positional patterns(.|\n"
                                                ")*name the attributes"):
        s2s.grad(too_many_positions)(1j)


def told_and_counted(x):
    if x > 0:
        positive = True
    else:
        positive = False
    return x * x, (positive, positive + positive)


def test_what_the_program_can_see_of_a_flag_stays_a_truth_value_of_python():
    _, aux = s2s.value_and_grad(told_and_counted, has_aux=True)(np.float64(1.5))[0]
    assert aux == (True, 2) and type(aux[0]) is bool


def test_what_is_only_asked_is_the_condition_itself():
    def f(x):
        total = 0.0
        for v in x:
            if v < 0:
                low, step = True, v * v
            else:
                low, step = False, v
            for _ in range(2):
                total = np.sin(total) + step
            if low:
                total = total * v
        return total

    source = s2s.grad(f).lower(np.ones(3)).source
    assert "t = v < 0\n" in source and "True" not in source
