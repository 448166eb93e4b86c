"""Functions of every kind that Python has, in whole little programs, each judged in every mode and
order.
"""

from __future__ import annotations

import functools
import operator
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from differences import differences
from judge import judge

import s2s

X = np.array([0.3, -0.7, 1.2])
PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


# --------------------------------------------------------------- functions as arguments and results


def runge_kutta(slope, y, t, h):
    k1 = slope(y, t)
    k2 = slope(y + 0.5 * h * k1, t + 0.5 * h)
    k3 = slope(y + 0.5 * h * k2, t + 0.5 * h)
    k4 = slope(y + h * k3, t + h)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@program
def integrates_a_lambda(x):
    y = x
    for step in range(4):
        y = runge_kutta(lambda y, t: np.sin(t) * y - x[0] * y**2, y, 0.1 * step, 0.1)
    return np.sum(y)


@program
def integrates_what_a_maker_returns(x):
    def damped(rate):
        def slope(y, t):
            return -rate * y + np.cos(t)

        return slope

    gentle, hard = damped(x[0]), damped(np.sum(x**2))
    y = x
    for step in range(3):
        y = runge_kutta(gentle, y, 0.1 * step, 0.1)
        if y[1] > -0.6:
            y = runge_kutta(hard, y, 0.1 * step, 0.05)
    return np.sum(y * x)


@program
def composes_functions(x):
    def compose(*functions):
        def run(v):
            for f in functions:
                v = f(v)
            return v

        return run

    layer = compose(np.sin, lambda t: t * x, np.exp)
    return np.sum(compose(layer, layer)(x))


@program
def nested_definitions(x):  # Tangent #77
    def square(t):
        return t * t

    def outer(t):
        def inner(u):
            return square(u) + t

        return inner(t) * 2

    return np.sum(outer(x) * outer(x[0]))


@program
def functions_in_containers(x):
    activations = (np.tanh, lambda t: t * t, functools.partial(np.maximum, 0.1))
    table = [activations, (np.cos, np.sin, np.exp)]
    total = 0.0
    for row in table:
        for k, f in enumerate(row):
            total = total + np.sum(f(x)) * (k + x[k])
    return total


@program
def a_function_chosen_by_data(x):
    f = np.cos if x[0] > 1.0 else np.sin
    if np.sum(x) > 0:
        def g(t):
            return f(t) * x[1]
    else:
        g = np.tanh
    total = 0.0
    for v in x:
        total += g(v) * f(v)
    return total


# ----------------------------------------------------------------------------------------- closures


@program
def closures_see_the_variable_as_it_is_when_they_are_called(x):
    a = 2.0

    def scaled(t):
        return a * t

    first = np.sum(scaled(x))
    a = np.sum(x)
    for _ in range(3):
        a = a * 1.1
    return first * np.sum(scaled(x) ** 2)


@program
def defaults_are_fixed_when_the_function_is_made(x):
    a = x[0]
    early, late = (lambda t, a=a: a * t), (lambda t: a * t)
    a = x[1] * x[2]
    return np.sum(early(x) * late(x))


@program
def a_closure_over_a_running_value(x):
    total = 0.0

    def add(v):
        return total + v * v

    for v in x:
        total = add(v) * 1.1
    return add(2.0)


@program
def closures_in_comprehensions(x):
    k = 10.0
    late, early = [lambda t: t**k for k in range(1, 4)], [lambda t, k=k: t**k for k in range(1, 4)]
    table = [[lambda t: t * a + b for a in (1.0, x[0])] for b in (x[1], 2.0)]
    return np.sum(late[0](x) + early[1](x) * early[2](x)) * k + table[0][0](x[2]) * table[1][1](
        x[1]
    )


@program
def closures_made_in_a_loop(x):
    late, early, f = [], [], np.sin
    for k in range(3):
        late.append(lambda t: t * k)

        def shifted(t, k=k):
            return t * k + x[0]

        early.append(shifted)
        f = functools.partial(lambda g, t: g(t) * 1.5 + k, f)
    y = x
    for g in (*early, late[0]):
        y = g(y)
    by_name = {}
    for name in ("a", "bc"):
        by_name[name] = lambda t: t * len(name)
    return np.sum(y) + np.sum(f(x) * by_name["a"](x))


# --------------------------------------------------------------------------------------- parameters


@program
def every_kind_of_parameter(x):
    def f(a, /, b=1.0, *rest, scale=2.0, **more):
        total = a * b * scale
        for r in rest:
            total = total + r
        for name, v in more.items():
            total = total + v * len(name)
        return np.sum(total)

    return f(x) + f(x, 2.0, x[0], x[1], scale=x[2]) + f(x, b=x[0], shift=x[1], tilt=x)


@program
def keywords_forwarded_through_two_wrappers(x):
    def inner(a, b=1.0, *, c=2.0):
        return np.sum(a * b + c)

    def twice(*args, **kwargs):
        return 2 * inner(*args, **kwargs)

    def outer(*args, c=0.5, **kwargs):
        return twice(*args, c=c * x[0], **kwargs)

    return twice(x, b=x[0]) + outer(x, 3.0, c=x[1]) + outer(x, b=x[2]) ** 2


def twofold(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2 * f(*args, **kwargs)

    return wrapper


def scaled_by(factor):
    def decorate(f):
        @functools.wraps(f)
        def wrapper(x, *args, power=1, **kwargs):
            return factor * f(x, *args, **kwargs) ** power

        return wrapper

    return decorate


@program
@twofold
@scaled_by(3.0)
def a_decorated_function(x, k=2.0):
    """Not what it seems: eighteen times this."""
    return np.sum(x**2) * k


@program
def calls_decorated_functions(x):
    @twofold
    def local(t, shift=0.0):
        return t * t + shift

    return (
        a_decorated_function(x, k=x[0], power=2) + np.sum(local(x, shift=x[1])) + np.sum(local(x))
    )


@program
def partials_of_everything(x):
    def f(a, b, c=1.0):
        return a * b + c

    by_two = functools.partial(f, 2.0)
    again = functools.partial(by_two, c=x[1])
    return np.sum(again(x)) * np.sum(functools.partial(f, b=x)(x[0])) + np.sum(
        functools.partial(np.multiply, x)(x)
    )


@program
def getters_and_callers(x):
    second, ends = operator.itemgetter(1), operator.itemgetter(0, -1)
    total = operator.methodcaller("sum")
    first, last = ends(x)
    return total(x * x) * second(x) + first * last


# ------------------------------------------------------------------------------ objects and classes


class Model:
    scale = 2.0

    def __init__(self, w):
        self.w = w

    @property
    def size(self):
        return np.sum(self.w**2)

    @classmethod
    def kind(cls, t):
        return t * cls.scale

    @staticmethod
    def activation(t):
        return np.tanh(t)

    def __call__(self, x):
        return np.sum(self.activation(self.w * x)) * self.scale + self.size * x[0]


class Deeper(Model):
    scale = 3.0

    @property
    def size(self):
        return super().size / 2

    def __call__(self, x):
        return super().__call__(x) * super(Deeper, self).kind(x[1]) + self.kind(x[2])

    def loss(self, x):
        return self(x) ** 2


@dataclass(frozen=True)
class Chain:
    models: tuple
    activation: object = np.sin

    def __call__(self, x):
        for model in self.models:
            x = self.activation(model(x) * x)
        return np.sum(x)


deeper = Deeper(np.array([1.0, 2.0, 3.0]))
PROGRAMS += [
    Model(X),
    deeper,
    deeper.loss,
    Chain((deeper, Model(X))),
    functools.partial(deeper.loss),
    lambda x: (lambda a, *b, c=1.0: np.sum(a * c) + b[0])(x, x[0], c=x[2]),
]


@program
def methods_passed_on(x):
    def total(f, *points):
        found = 0.0
        for p in points:
            found = found + f(p)
        return found

    return total(deeper.loss, x, x * x) + total(Model.activation, x[0], x[1]) + total(deeper, x)


@pytest.mark.lengthy
class Gauge:
    def __init__(self, level):
        self.level = level

    def fill(self, amount):
        self.level = self.level + amount

    def read(self):
        return self.level**2


class Pump:
    def __init__(self, push, show):
        self.push, self.show = push, show

    def run(self, amount):
        if amount > 0:
            self.push(amount)
        return self.show()


def pump_on(level):
    gauge, steps = Gauge(level), [level]

    def push(amount):
        gauge.fill(amount)
        steps[0] += amount * gauge.level

    return Pump(gauge.fill, gauge.read), Pump(push, lambda: gauge.read() * steps[0])


@program
def writes_through_functions_that_objects_hold(x):
    """What they write to in a branch or a loop was lost: nothing else led to it."""
    first, second = pump_on(x[0])
    for k in range(3):
        first.run(x[2])
        second.run(x[2] * k)
    return first.show() + second.run(x[0])


@program
def writes_through_functions_in_lists(x):
    gauge = Gauge(x[0])
    steps = [gauge.fill, gauge.read]
    del gauge
    if x[2] > 0:
        steps[0](x[1])
    return steps[1]()


@pytest.mark.lengthy
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: getattr(f, "__name__", type(f).__name__))
def test_function(f):
    judge(f, X)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f",
    [
        integrates_what_a_maker_returns,
        a_function_chosen_by_data,
        every_kind_of_parameter,
        calls_decorated_functions,
        deeper,
        methods_passed_on,
    ],
    ids=lambda f: getattr(f, "__name__", "object"),
)
def test_function_compiled(f):
    judge(f, X, compiled=True, second=f in (deeper, every_kind_of_parameter))


# ----------------------------------------------------------------------------------------- refusals


def grown_list_of_functions(x, n):
    fs = []
    for k in range(n):
        fs.append(lambda t: t * k)
    return fs[0](x[0])


def function_of_each_trip(x, n):
    f = np.sin
    for _ in range(n):
        f = functools.partial(lambda g, t: g(t), f)
    return f(x[0])


def given_twice(x, n):
    return keywords_forwarded(x, **{"n": n}, n=2)


def keywords_forwarded(x, **more):
    return x[0] * more["n"]


def a_key_is_missing(x, n):
    return keywords_forwarded(x, m=n)


@functools.lru_cache
def cached(x):
    return x[0]


def calls_cached(x, n):
    return cached(x)


def returns_a_function(x, n):
    return lambda t: t * x[0]


REFUSED = [
    (
        grown_list_of_functions,
        "fs.append(lambda t: t * k)",
        "a list of functions whose length depends on run-time data",
        "make it in a loop over a tuple, or over a range whose bounds are known",
    ),
    (
        function_of_each_trip,
        "for _ in range(n)",
        "f is a function that a loop makes anew in each trip",
        "loop over a tuple, or over a range whose bounds are known",
    ),
    (
        given_twice,
        'keywords_forwarded(x, **{"n": n}, n=2)',
        "two values for the keyword argument n",
        "pass it once",
    ),
    (
        calls_cached,
        "return cached(x)",
        "cached is inside functools.lru_cache",
        "use cached.__wrapped__, the function itself",
    ),
    (
        returns_a_function,
        "return lambda t: t * x[0]",
        "a function defined inside this one cannot be",
        "call it here",
    ),
]


@pytest.mark.parametrize(
    "f, line, message, remedy", REFUSED, ids=lambda x: getattr(x, "__name__", "")
)
def test_refused(f, line, message, remedy):
    with pytest.raises(s2s.S2SError) as caught:
        s2s.grad(f)(X, 3)
    text = str(caught.value)
    assert line in text and "^" in text and message in text and f"Instead: {remedy}" in text


def test_the_remedies_work():
    def without_cache(x):
        def square(t):
            return t * t

        return square(x[0]) + cached.__wrapped__(x)

    assert np.allclose(s2s.grad(without_cache)(X), [1.6, 0, 0])
    assert np.allclose(
        s2s.grad(s2s.jit(grown_list_of_functions, static_argnums=1))(X, 3), [2, 0, 0]
    )


def cached_sequence(x, n):
    @functools.lru_cache(maxsize=None)
    def term(k):
        return x[k] if k < 2 else term(k - 1) * 0.5 + term(k - 2)

    return term(n)


def cached_table(x, n):
    @functools.cache
    def best(i, j):
        if i == 0 or j == 0:
            return 0.0
        return np.sin(best(i - 1, j) + best(i, j - 1)) + x[i % 3] * x[j % 2]

    return best(n // 8, n // 9)


def cached_numbers(x, n):
    @functools.lru_cache
    def square(t):
        return t * t

    term = functools.lru_cache(16)(lambda k: square(x[k]) + k)
    return square(x[0]) * square(x[1]) + sum(term(k % 3) for k in range(n))


@pytest.mark.compile
@pytest.mark.parametrize("f", [cached_sequence, cached_table, cached_numbers])
def test_functions_that_keep_their_results(f):
    """Each result is computed once: 40 terms of a sequence would be 300 million calls."""
    x = np.array([0.4, -1.1, 0.7])
    expected = differences(f, x, 40)
    np.testing.assert_allclose(s2s.grad(f)(x, 40), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(s2s.jacfwd(f)(x, 40), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(x, 40), expected, rtol=1e-6, atol=1e-7)


def test_a_cached_function_is_refused():
    with pytest.raises(s2s.SourceError, match="cached is inside functools.lru_cache(.|\n"
                                              ")*use cached.__wrapped__"):
        s2s.grad(cached)(X)
    assert np.allclose(s2s.grad(cached.__wrapped__)(X), [1, 0, 0])


def doubled(g):
    def wrapped(x):
        return 2.0 * g(x)

    return wrapped


class Settings:
    power = 2


def with_defaults_that_are_no_literals(
    x,
    act=doubled(lambda t: t * t),  # noqa: B008
    settings=Settings(),  # noqa: B008
    names={"k": 3.0},  # noqa: B006
):
    return act(x) ** settings.power * names["k"]


def test_defaults_that_are_no_literals():
    judge(of_one(with_defaults_that_are_no_literals), 0.7)
    slope = s2s.grad(with_defaults_that_are_no_literals)
    assert np.isclose(slope(0.7), 48 * 0.7**3) and np.isclose(slope(0.7, act=lambda t: t), 6 * 0.7)
    assert np.isclose(s2s.grad(s2s.grad(with_defaults_that_are_no_literals))(0.7), 144 * 0.7**2)


def test_lanes_of_different_functions_of_one_name():
    square, triple = doubled(lambda x: x * x), doubled(lambda x: 3 * x)

    def f(x):
        return square(x) * triple(x) + x

    assert np.array_equal(s2s.vmap(f)(X), f(X))
    assert np.allclose(s2s.vmap(s2s.grad(f))(X), 36 * X**2 + 1)
    assert np.allclose(s2s.vmap(s2s.jvp(f))(X, np.ones(len(X)))[1], 36 * X**2 + 1)


def of_one(f):
    return lambda x: f(x)


def programs_of(njit):
    @njit
    def inner(x, k=2.0):
        s = 0.0
        for i in range(3):
            s += x**i * k
        return s

    @njit
    def outer(x):
        return inner(x) * np.sin(x)

    class Uses:
        act = staticmethod(inner)

        def __call__(self, x):
            return self.act(x, 3.0) * x

    return [
        inner,
        outer,
        lambda x: inner(x, k=x) + outer(x),
        Uses(),
        functools.partial(inner, k=3.0),
    ]


@pytest.mark.lengthy
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_numba_functions_are_called_as_python(compiled):
    numba = pytest.importorskip("numba")
    run = s2s.jit if compiled else lambda f: f
    for f, python in zip(programs_of(numba.njit), programs_of(lambda f: f)):
        judge(of_one(python), 0.7)
        for way in (s2s.value_and_grad, lambda f: s2s.grad(s2s.grad(f))):
            assert np.allclose(run(way(f))(0.7), way(python)(0.7), rtol=1e-13)
        assert s2s.jvp(f, (0.7,), (1.0,)) == s2s.jvp(python, (0.7,), (1.0,))


def test_modules_are_arguments_of_functions_that_stay_calls():
    def grid(xp):
        return xp.arange(6.0).reshape(2, 3) / 7 + 0.1

    @s2s.checkpoint
    def scaled(xp, x):
        return xp.sin(x) * x

    def down(xp, x, n):
        return down(xp, x, n - 1) * x if n > 0 else xp.cos(x)

    def f(x):
        total = 0.0
        for k in range(3):
            total = total * x + np.sum(grid(np)) + scaled(np, x * k)
        return total + down(np, x, 3)

    judge(f, 0.4)
    assert np.allclose(s2s.vmap(f)(np.array([0.4, 0.5])), [f(0.4), f(0.5)])


@pytest.mark.parametrize("word", ["lambda", "class", "None", "<lambda>", "two words"])
def test_what_a_function_is_called_is_a_word_that_python_takes(word):
    def renamed(f):
        f.__name__ = word
        return f

    ruled = s2s.custom_vjp(renamed(lambda x: np.sin(x) ** 2))
    ruled.defvjp(
        renamed(lambda x: (np.sin(x) ** 2, x)), renamed(lambda x, y_bar: (y_bar * np.sin(2 * x),))
    )
    again = s2s.checkpoint(renamed(lambda x: np.sin(x) ** 2))
    f = renamed(lambda x: ruled(x) + again(x))
    for second in (s2s.grad(s2s.grad(f)), s2s.jvp(s2s.grad(f)), s2s.vmap(s2s.grad(s2s.grad(f)))):
        args = {"jvp": (0.3, 1.0)}.get(
            second.kind, (np.array([0.3]) if second.kind == "vmap" else 0.3,)
        )
        found = second(*args)
        assert np.allclose(found[1] if second.kind == "jvp" else found, 4 * np.cos(0.6), rtol=1e-14)
        compile(second.source, "generated", "exec")


def test_a_lambda_that_may_call_itself_is_called_by_a_word():
    def f(x):
        down = lambda x, n: x if n == 0 else np.sin(down(x, n - 1))  # noqa: E731
        return down(x, 3) * x

    judge(f, 0.7)


def test_an_ellipsis_stands_for_what_was_not_given():
    def scaled(x, by=...):
        return x * x if by is ... else x * by

    judge(lambda x: scaled(x) + scaled(x, 3.0) + scaled(x, by=x * x), 0.7)


@dataclass
class Blocks:
    length: int

    def part(self, k):
        return slice(k * self.length, (k + 1) * self.length)


def window(i, width):
    return slice(i, i + width)


def taken(x, where):
    return x[where]


def corner(i, width):
    return window(i, width), slice(None, width)


@pytest.mark.lengthy
def test_functions_return_and_take_slices():
    def f(x, width):
        blocks, table, total = Blocks(width), np.outer(x, x), 0.0
        for i in range(len(x) - width):
            total += np.sum(x[window(i, width)]) ** 2
            table[window(i, 1), window(1, width)] *= x[i]
        parts = [window(k, width) for k in range(2)]
        total += sum(np.prod(taken(x, part)) for part in parts)
        total += np.sum(x[window(1, width) if total > 0 else window(0, width)])
        return (
            total + np.sum(x[blocks.part(0)] * x[blocks.part(1)]) + np.sum(table[corner(1, width)])
        )

    judge(f, np.array([0.3, -0.7, 1.2, 0.4, 0.9]), 2)


def test_a_slice_that_depends_on_data_stays_inside_the_program():
    with pytest.raises(s2s.UnsupportedError, match="returning a slice(.|\n)*return its bounds"):
        s2s.jit(window)(1, 2)
    with pytest.raises(s2s.TypeMismatchError, match="a slice with start and stop on one path and a "
                                                    "slice with stop on another"):
        s2s.grad(lambda x, n: np.sum(x[window(0, n) if x[0] > 0 else slice(n)]))(X, 2)


# ------------------------------------------------------------------- arguments from an array: *p

TIMES = np.linspace(0.0, 1.0, 5)


def decay(t, a, b, c):
    return a * np.exp(-b * t) + c


def fitted(p):
    return np.sum((decay(TIMES, *p) - TIMES) ** 2)


def stepped_by_parameters(p):
    def rhs(t, y, a, b, *, scale=1.0):
        return scale * np.array([a * y[0] - b * y[1], y[0] * a * t])

    y = np.ones(2)
    for k in range(4):
        y = y + 0.1 * rhs(0.1 * k, y, *p, scale=1.5)
    return np.sum(y)


class Line:
    def at(self, t, a, b):
        return a * t + b**2


LINE = Line()


def of_a_method_and_a_lambda(p):
    q = p * 2.0
    return np.sum(LINE.at(TIMES, *q)) + (lambda t, u, v: u * v * t)(2.0, *p[:2])


@pytest.mark.parametrize(
    "f, p",
    [
        (fitted, np.array([1.0, 2.0, 0.5])),
        (stepped_by_parameters, np.array([0.3, 0.2])),
        (of_a_method_and_a_lambda, np.array([1.0, 2.0])),
    ],
)
def test_the_parameters_that_are_left_say_how_long_an_array_is(f, p):
    judge(f, p)


class Line3:
    def __init__(self, a, b, c):
        self.a, self.b, self.c = a, b, c


Triple = namedtuple("Triple", "a b c")


@dataclass
class Fields:
    a: float
    b: float
    c: float


class Forwarding(Line3):
    def __init__(self, *args):
        super().__init__(*args)


def of_constructors(x):
    made = [Line3(*np.exp(x)), Fields(*x), Forwarding(*x)]
    t = Triple(*x)
    return sum(m.a * m.b + m.c for m in made) + t.a * t.b - t.c


FLOOR = -1e30


def smooth_max(*values, scale=1.0):
    top = max(values)
    if top <= FLOOR:
        return FLOOR
    return top + np.log(sum(np.exp(scale * (v - top)) for v in values))


def of_any_number(x):
    """Each number of arguments is a function of its own, which reads a number from outside."""
    total = smooth_max(x[0]) + smooth_max(x[0], x[1]) * x[2]
    kept = [v * v for v in x if v > -0.5]
    return total + smooth_max(*kept, scale=2.0) + smooth_max(x[0], *kept) + smooth_max(x[1], *x)


def of_tuples_of_any_length(x):
    def count(*values):
        if not isinstance(values, tuple) or isinstance(values, list):
            return 0.0
        more = values
        more += (x[0],)
        rest = values[1:] + more
        return sum(values) + 2 * sum(more) + 3 * sum(rest) + len(rest)

    return count(*[v * v for v in x if v > -0.5]) + sum(tuple(x))


@pytest.mark.parametrize("f", [of_constructors, of_any_number, of_tuples_of_any_length])
def test_arguments_of_run_time_length(f):
    judge(f, X)


@pytest.mark.compile
def test_any_number_of_arguments_compiled():
    judge(of_any_number, X, compiled=True, second=False)


@pytest.mark.parametrize("wrong", ["t[0] = x[0]", "t.append(x[0])", "t += [x[0]]"])
def test_a_tuple_of_run_time_length_is_not_changed(wrong):
    f = s2s.from_source(f"def f(x):\n    t = tuple([v for v in x if v > 0])\n    {wrong}\n"
                        "    return sum(t)\n")
    with pytest.raises(TypeError, match="a tuple|add of a list"):
        s2s.grad(f)(X)


def test_an_array_of_another_length_raises():
    with pytest.raises((TypeError, ValueError)):
        s2s.grad(fitted)(np.ones(4))
    with pytest.raises((TypeError, ValueError)):
        s2s.grad(fitted)(np.ones(2))


def polynomial(t, *p):
    total = 0.0
    for k, c in enumerate(p):
        total = total + c * t**k
    return total


def scaled(a, b=2.0, *rest):
    return a * b + np.sin(a) * sum(rest)


def of_any_length(p):
    return np.sum(polynomial(np.linspace(0.0, 1.0, 5), *p) ** 2)


def of_a_default(p):
    return scaled(*p)


def of_a_part(p):
    def inner(q):
        return scaled(*q[:-1])

    return inner(np.sin(p)) + p[-1]


def of_a_tuple(p):
    t = tuple(p * 2.0)
    return t[0] * t[-1] + sum(t[1:])


def of_a_list_with_another_item(p):
    args = list(p)
    args[-1] = 3.0 * args[0]
    return scaled(*args)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [of_any_length, of_a_default, of_a_part, of_a_tuple,
                               of_a_list_with_another_item])
def test_each_length_has_code_of_its_own(f):
    for p in (np.array([0.5, 0.7]), np.array([0.3, 0.1, -0.4, 0.9]), np.array([0.2, 0.8])):
        judge(f, p)
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(f))(np.array([[0.5, 0.7], [0.1, 0.2]])),
        [s2s.grad(f)(np.array([0.5, 0.7])), s2s.grad(f)(np.array([0.1, 0.2]))], rtol=1e-13)


@pytest.mark.compile
@pytest.mark.parametrize("f", [of_any_length, of_a_list_with_another_item])
def test_each_length_has_code_of_its_own_compiled(f):
    g = s2s.jit(s2s.grad(f))
    for p in (np.array([0.5, 0.7]), np.array([0.3, 0.1, -0.4]), np.array([0.2, 0.8])):
        np.testing.assert_allclose(g(p), s2s.grad(f)(p), rtol=1e-12)


def test_a_captured_place_decides_where_a_tuple_is_cut():
    def power(a, b, c):
        return a * b**2 + np.sin(c) * a

    def by_place(args, n):
        return s2s.grad(lambda x: power(*args[:n], x, *args[n + 1 :]))(args[n])

    def by_list(args, n):
        def f(x):
            given = list(args)
            given[n] = x
            return power(*given)

        return s2s.grad(f)(args[n])

    args = 1.0, 2.0, 3.0
    right = 4.0 + np.sin(3.0), 4.0, np.cos(3.0)
    for n in range(3):
        np.testing.assert_allclose([by_place(args, n), by_list(args, n)], right[n], rtol=1e-14)


def test_a_list_of_several_items_is_repeated():
    def f(x, n=3):
        return sum([x, x * x] * n)

    for n in (1, 3):
        assert s2s.grad(f)(2.0, n) == 5.0 * n
