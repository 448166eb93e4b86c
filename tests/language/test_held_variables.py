"""Variables that functions inside write after their function has returned, or in calls that others
make.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([0.3, 1.2, 0.7, -0.4])


def averager():
    total = 0.0
    n = 0

    def add(v):
        nonlocal total, n
        total += v
        n += 1
        return total / n

    return add


def running(start):
    def add(v):
        nonlocal start
        start = start + v * start

    def get():
        return start

    return add, get


def smoother(a):
    state = None

    def step(v):
        nonlocal state
        state = v if state is None else a * v + (1 - a) * state
        return state

    return step


def momentum(n):
    m = np.zeros(n)
    t = 0

    def step(g):
        nonlocal m, t
        t += 1
        m *= 0.9
        m += 0.1 * g
        return m / (1 - 0.9**t)

    return step


def average_of_squares(x):
    avg = averager()
    total = 0.0
    for v in x:
        total += np.sin(avg(v * v))
    return total


def two_instances_in_a_branch(x):
    first, second = averager(), averager()
    total = 0.0
    for v in x:
        if v > 0.5:
            total += first(v) * second(v**2)
        else:
            total -= first(v * v)
    return total


def one_of_two_by_condition(x):
    first, second = averager(), averager()
    total = 0.0
    for v in x:
        chosen = first if v > 0.5 else second
        total += chosen(v) * v
        first, second = second, first
    return total + first(1.0) * second(2.0)


def one_variable_of_two_functions(x):
    add, get = running(x[0])
    table = {"add": add, "get": get}
    while get() < 4.0:
        table["add"](get())
    for v in x:
        add(v)
    return get() ** 2


class Meter:
    def __init__(self):
        n = 0.0

        def tick(v):
            nonlocal n
            n += v
            return n

        self.tick = tick


def stored_in_objects_and_lists(x):
    meters = [Meter(), Meter()]
    total = 0.0
    for k in range(len(x)):
        total += meters[k % 2].tick(x[k]) * x[k]
    return total


def handed_to_others(x):
    count = 0
    best = np.inf

    def callback(v):
        nonlocal count, best
        count += 1
        if v < best:
            best = v
        return v

    def descend(y, tell):
        for _ in range(3):
            y = 0.8 * y
            tell(np.sum(y**2))
        return y

    descend(x, callback)
    order = sorted(x, key=callback)
    return best * count * order[1] + sum(map(functools.partial(callback), x)) * count


def state_that_begins_as_none(x):
    step = smoother(0.3)
    return sum(step(v) ** 2 for v in x)


def an_array_written_in_place(x):
    step = momentum(len(x))
    y = x.copy()
    for _ in range(4):
        y = y - 0.1 * step(2 * y**3)
    return np.sum(y**2)


def a_parameter_and_three_levels(x):
    def outer(c):
        def middle():
            def inner(v):
                nonlocal c
                c += v
                return c + sum(c * v for c in (1.0, 2.0)) + (lambda c: c)(v)

            return inner

        return middle

    made = outer(x[1])
    first, second = made(), made()
    return sum([first(v) * second(v) for v in x])


def bound_by_statements_of_all_kinds(x):
    def use(f, v):
        return f(v)

    def change(v):
        nonlocal k, last, step
        k, last = k + 1, last * v

        def step(v):
            return v * v * k

        return step(v)

    def step(v):
        return v

    last: float = 1.0
    total = step(x[0])
    for k in range(len(x)):
        if (last := x[k] + 1.0) > 0:
            total += use(change, x[k]) * last
    total += step(x[1])
    del k
    return total


def counted_recursion(x):
    calls = 0
    best = -np.inf

    def search(k, acc):
        nonlocal calls, best
        calls += 1
        if k == len(x):
            if acc > best:
                best = acc
            return
        search(k + 1, acc)
        search(k + 1, acc + x[k])

    search(0, 0.0)
    return best**2 * calls


class Tally:
    def __init__(self):
        self.n, self.total = 0, 0.0


def recursion_that_fills_an_object(x):
    tally = Tally()

    def go(k, acc):
        tally.n += 1
        tally.total += acc
        return acc if k == 0 else go(k - 1, acc * x[k] + 1)

    return go(len(x) - 1, 1.0) * tally.n + tally.total**2


def left_early(x):
    avg = averager()
    for v in x:
        try:
            if avg(v) > 0.7:
                raise ValueError
        except ValueError:
            avg(v * v)
            break
    return avg(x[-1]) ** 2


def called_by_library_functions(x):
    import functools

    n = 0.0

    def weigh(v):
        nonlocal n
        n = n + 1.0
        return v * v * n

    def fold(a, b):
        nonlocal n
        n = n + b
        return a * n

    # NumPy asks for the dtype with one more call
    return np.sum(np.vectorize(weigh)(x)) * n + functools.reduce(fold, x, 1.0)


PROGRAMS = [
    average_of_squares,
    two_instances_in_a_branch,
    one_of_two_by_condition,
    one_variable_of_two_functions,
    stored_in_objects_and_lists,
    handed_to_others,
    state_that_begins_as_none,
    an_array_written_in_place,
    a_parameter_and_three_levels,
    bound_by_statements_of_all_kinds,
    counted_recursion,
    recursion_that_fills_an_object,
    left_early,
    called_by_library_functions,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_variables_keep_what_was_written(f):
    judge(f, X, second=f in (average_of_squares, an_array_written_in_place))


def all_of_them(x):
    return average_of_squares(x) + stored_in_objects_and_lists(x) + counted_recursion(x)


@pytest.mark.compile
def test_native_code_keeps_them():
    judge(all_of_them, X, compiled=True, second=False)


def test_lanes_have_variables_of_their_own():
    found = s2s.vmap(s2s.grad(two_instances_in_a_branch))(np.stack([X, 2 * X]))
    expected = [s2s.grad(two_instances_in_a_branch)(x) for x in (X, 2 * X)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def read_before_it_is_bound(x):
    def make():
        def put(v):
            nonlocal t
            t = v

        def get():
            return t

        return put, get
        t = 0.0

    put, get = make()
    first = get()
    put(x)
    return first


def bound_by_a_branch(x):
    def make():
        def put(v):
            nonlocal t
            t = v

        if x > 0:
            t = 2.0 * x
        return put, lambda: t

    put, get = make()
    first = get()
    put(x)
    return first + get()


def applied(f, v):
    return f(v)


def named_like_an_exception(x):
    e = x

    def grow(v):
        nonlocal e
        e = e * v
        return e

    try:
        total = applied(grow, 2.0)
    except ValueError as e:  # noqa: F811, F841
        total = 0.0
    return total


def written_while_differentiated(x):
    n = 0.0

    def loss(v):
        nonlocal n
        n = n + 1.0
        return v * v * n

    slope = s2s.grad(loss)
    return slope(x) + slope(2.0 * x) + n


def object_written_while_batched(x):
    tally = Tally()

    def counted(v):
        tally.n += 1
        return v * v * tally.n

    many = s2s.jit(counted)
    return many(x) + many(x) + tally.n


@pytest.mark.parametrize("f, message", [
    (written_while_differentiated, "loss, which the program transforms, writes to what lies"),
    (object_written_while_batched, "counted, which the program transforms, writes to what lies"),
    (read_before_it_is_bound, "t is read before it is bound"),
    (bound_by_a_branch, "the variable t, which an inner function writes, is bound by a branch"),
    (named_like_an_exception, "writing to e in a call that the function it belongs to does not"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_refused_with_a_line_and_a_remedy(f, message):
    with pytest.raises(S2SError) as caught:
        s2s.grad(f)(0.7)
    text = str(caught.value)
    assert message in text and "^" in text and "Instead: " in text and __file__ in text
