"""Functions that yield: what they yield is Python's, and what depends on when they run is
refused.
"""

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([0.3, -0.7, 1.1, 0.4])
W = np.sin(np.arange(26.0))


def layers(w, shapes):
    for m, n in shapes:
        yield w[:m * n].reshape((m, n)), w[m * n:m * n + n]
        w = w[(m + 1) * n:]


def network(w, x):  # autograd's example
    for A, b in layers(w, [(3, 4), (4, 2)]):
        y = x @ A + b
        x = np.tanh(y)
    return np.sum(y**2)


def powers_inside(x, n):
    def powers(k):
        y = 1.0
        for _ in range(k):
            y = y * x
            yield y

    return sum(powers(n)) * max(powers(3)) + list(powers(2))[1]


def halving(x, n):
    while n > 0:
        yield x**n
        n //= 2
    return


def around(x, n):
    yield x
    yield from halving(x, n)
    yield 2.0


def left_early(x, n):
    s = 1.0
    for v in around(x, n):
        s = s * 0.5 + v
        if s > 50:
            break
    return s


def evens(n):
    for i in range(n):
        if i % 2:
            continue
        yield i


def pairs(xs):
    for i in range(len(xs)):
        for j in range(i):
            yield xs[i], xs[j]


def of_integers(x, n):
    s = sum(x[j] ** 2 * k for k, j in enumerate(evens(n)))
    return (
        s
        + sum([v * i for v, i in zip(x, evens(9))])
        + sum(a * b * b for a, b in pairs(x))
        + next(pairs(x))[0]
    )


class Bag:
    def __init__(self, x):
        self.x = x

    def squares(self):
        for v in self.x:
            yield v * v


def of_an_object(x):
    s = 0.0
    for v in Bag(x).squares():
        s = s * 0.5 + v
    return s


def copied(n):
    v = np.zeros(3)
    for i in range(n):
        v[i] = i + 1.0
        yield v.copy()


def of_copies(x):
    return sum([np.sum(v) * x[k] for k, v in enumerate(copied(3))])


PROGRAMS = [
    (network, W, np.outer(X, X[:3])),
    (powers_inside, 1.3, 4),
    (left_early, 1.2, 9),
    (of_integers, X, 4),
    (of_an_object, X),
    (of_copies, X),
]


@pytest.mark.parametrize(
    "f, args", [(f, args) for f, *args in PROGRAMS], ids=lambda f: getattr(f, "__name__", "")
)
def test_programs(f, args):
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args", [(f, args) for f, *args in PROGRAMS[:3]], ids=lambda f: getattr(f, "__name__", "")
)
def test_compiled_programs(f, args):
    judge(f, *args, compiled=True, second=False)


# ------------------------------------------------------------------------ what is seen of the order


def elements(x):
    for i in range(len(x)):
        yield x[i]


def filled(n):
    v = np.zeros(3)
    for i in range(n):
        v[i] = i + 1.0
        yield v


def in_an_inner_loop(n):
    for _ in range(n):
        v = np.zeros(2)
        for j in range(2):
            v[j] = 1.0
            yield v


def growing(n):
    xs = [1.0]
    for _ in range(n):
        xs.append(2.0)
        yield xs


def written_meanwhile(x):
    y, s, k = x.copy(), 0.0, 0
    for v in elements(y):
        s += v
        y[min(k + 1, 3)] = 2.0 * s
        k += 1
    return s


def written_before(x):
    y = x.copy()
    values = elements(y)
    y[0] = 5.0 * x[1]
    return sum(values)


def rebound_before(x):
    factor = 2.0

    def multiples():
        for v in x:
            yield factor * v

    values = multiples()
    factor = 3.0
    return sum(values)


def twice(x):
    values = elements(x)
    return sum(values) + sum(values)


def counted(x):
    count = 0.0

    def elements():
        nonlocal count
        for v in x:
            count += 1.0
            yield v

    s = 0.0
    for v in elements():
        s += v * count
    return s


def counted_by_another(x):
    count = 0.0

    def more():
        nonlocal count
        count += 1.0

    def elements():
        for v in x:
            more()
            yield v

    s = 0.0
    for v in elements():
        s += v * count
    return s


def drawn(x):
    rng = np.random.default_rng(0)

    def draws():
        for _ in range(3):
            yield rng.normal()

    s = x[0]
    for v in draws():
        s += v * x[1] * rng.normal()
    return s


def printed(x):
    def elements():
        for v in x:
            print(v)
            yield v

    return sum([v for v in elements()])


def writes(x):
    y = x.copy()

    def doubled():
        for i in range(3):
            y[i] = 2 * y[i]
            yield y[i]

    return sum(v * y[2] for v in doubled())


def caught(x):
    try:
        return sum(elements(x))
    except ValueError:
        return x[0]


def asked(x):
    def echo():
        y = yield x[0]
        yield 2.0 if y is None else y

    return sum(echo())


@pytest.mark.parametrize(
    "f, message",
    [
        (
            lambda x: sum([np.sum(v) * x[0] for v in filled(3)]),
            "a generator that writes into what it yields",
        ),
        (
            lambda x: sum([np.sum(v) * x[0] for v in in_an_inner_loop(2)]),
            "a generator that writes into what it yields",
        ),
        (
            lambda x: sum([len(v) * x[0] for v in growing(3)]),
            "a generator that writes into what it yields",
        ),
        (written_meanwhile, "changes before it is run over to its end"),
        (written_before, "changes before it is run over to its end"),
        (rebound_before, "changes before it is run over to its end"),
        (twice, "is run over a second time"),
        (counted, "writes into what was there before"),
        (counted_by_another, "writes into what was there before"),
        (writes, "writes into what was there before"),
        (drawn, "a generator that draws, prints or raises"),
        (printed, "a generator that draws, prints or raises"),
        (caught, "a generator inside a `try`"),
        (asked, "generators and coroutines"),
    ],
)
def test_refused(f, message):
    with pytest.raises(S2SError, match="Instead: ") as caught:
        s2s.grad(f)(X)
    assert message in str(caught.value)


# ------------------------------------------------------------------------------- consumed at once

NOTED = []


def squares_below(x, most):
    for v in x:
        if v > most:
            raise ValueError("too large")
        yield v**2


def noted_squares(x):
    for v in x:
        NOTED.append(float(v))
        yield v**2


def raises_meanwhile(x):
    return sum(squares_below(x, 100.0)) * max(squares_below(x, 100.0)) + sum(
        sorted(squares_below(x, 100.0), key=lambda v: -v)[:2])


def notes_meanwhile(x):
    return sum(list(noted_squares(x)), 1.0) * x[0]


def draws_meanwhile(x):
    def drawn(rng):
        for v in x:
            yield v * rng.normal()

    return sum(drawn(np.random.default_rng(0))) ** 2


def counts_meanwhile(x):
    count = 0

    def squares():
        nonlocal count
        for v in x:
            count += 1
            yield v**2

    total = sum(squares())
    return total * count


AT_ONCE = [raises_meanwhile, notes_meanwhile, draws_meanwhile, counts_meanwhile]


@pytest.mark.parametrize("f", AT_ONCE)
def test_generators_that_are_consumed_at_once_do_as_they_like(f):
    x = np.array([0.7, -0.4, 1.3])
    expected = f(x)
    NOTED.clear()
    value, slope = s2s.value_and_grad(f)(x)
    assert value == expected and NOTED == (list(x) if f is notes_meanwhile else [])
    near = [(f(x + d) - f(x - d)) / 2e-6 for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slope, near, rtol=1e-6, atol=1e-7)


@pytest.mark.compile
@pytest.mark.parametrize("f", AT_ONCE)
def test_compiled_generators_that_are_consumed_at_once(f):
    x = np.array([0.7, -0.4, 1.3])
    value, slope = s2s.jit(s2s.value_and_grad(f))(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    np.testing.assert_allclose(slope, s2s.grad(f)(x), rtol=1e-12)


@pytest.mark.compile
def test_what_a_generator_raises_is_raised():
    def f(x):
        return sum(squares_below(x, 1.0))

    for g in (s2s.grad(f), s2s.jit(s2s.grad(f))):
        with pytest.raises(ValueError, match="too large"):
            g(np.array([0.7, 2.0, 0.1]))
    with pytest.raises(S2SError, match="a generator that may raise"):
        s2s.grad(lambda x: sum([v for v in squares_below(x, 1.0)]))(np.ones(2))
