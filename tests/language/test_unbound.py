"""Names that only some paths bind, and unpacking into more or fewer names than there are members:
what Python raises is raised.
"""

import numpy as np
import pytest
from judge import judge

import s2s


def previous(x, n):
    s = 0.0
    for i in range(n):
        if i >= 0:
            s += prev * x  # noqa: F821
        prev = x  # noqa: F841
    return s


def previous_after_the_first(x, n):
    s = 0.0
    for i in range(n):
        if i > 0:
            s += prev * x  # noqa: F821
        prev = x * i  # noqa: F841
    return s


def bound_in_a_branch(x, n):
    if n > 3:
        y = x * 2
    return y * x


def handed_on(x, n):
    if n > 3:
        y = x * 2
    if n > 1:
        z = y
    else:
        z = x
    return z * x


def bound_in_a_trip(x, n):
    for i in range(1, n):
        y = x * i
    return y


def bound_in_some_trips(x, n):
    s = 0.0
    for i in range(n):
        if i > 3:
            y = x * i
        elif i == 5:
            continue
        if n > 4:
            s += y
    return s


def bound_in_a_while(x, n):
    while n > 2:
        if n == 4:
            y = x * n
        n -= 1
    return y * y


def named_in_a_test(x, n):
    while (v := x * n) > 4.0:
        n -= 1
    return v


def left_in_the_other_arm(x, n):
    s = 0.0
    for i in range(n):
        if x > i:
            z = np.sin(x)
        elif n > 5:
            break
        else:
            continue
        s += z
    return s * z


def caught(x, n):
    try:
        if n > 3:
            y = x * 2
        z = y * x
    except UnboundLocalError:
        z = x**3
    return z


def free(x, n):
    def area():
        return side * side

    if n > 3:
        side = x
    return area()


def bound_by_another(x, n):
    if n > 3:
        y = x

    def put():
        nonlocal y
        y = x * x

    put()
    return y


PROGRAMS = [
    previous,
    previous_after_the_first,
    bound_in_a_branch,
    handed_on,
    bound_in_a_trip,
    bound_in_some_trips,
    bound_in_a_while,
    named_in_a_test,
    left_in_the_other_arm,
    caught,
    free,
    bound_by_another,
]


def outcome(f, *args):
    try:
        return f(*args)
    except (NameError, ValueError) as error:
        return type(error), str(error)


def agree(f, t, args, slope):
    """Whether the value is Python's, or the exception; and the derivative that of the central
    difference.
    """
    expected, found = outcome(f, *args), outcome(t, *args)
    if isinstance(expected, tuple):
        assert found == expected
    else:
        assert found[0] == expected
        np.testing.assert_allclose(found[1], slope(), rtol=1e-6)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 6])
def test_what_python_raises(f, n):
    def slope():
        return (f(1.5 + 1e-6, n) - f(1.5 - 1e-6, n)) / 2e-6

    agree(f, s2s.value_and_grad(f), (1.5, n), slope)
    agree(f, lambda *args: s2s.jvp(lambda x: f(x, args[1]), (args[0],), (1.0,)), (1.5, n), slope)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f", [previous, bound_in_a_branch, bound_in_a_trip, bound_in_a_while], ids=lambda f: f.__name__
)
def test_compiled(f):
    t = s2s.jit(f)
    for n in (0, 1, 2, 5):
        assert outcome(t, 1.5, n) == outcome(f, 1.5, n)


def test_what_follows_from_the_condition_is_not_asked():
    assert "raise" not in s2s.source(s2s.value_and_grad(previous_after_the_first), 1.5, 4)


def pair(x):
    a, b = x
    return a * b


def head(x):
    a, *b = x
    return a * len(b)


def rows(x):
    s = 0.0
    for a, b in (x, x):
        s += a * b
    return s


def grown(x):
    xs = []
    for v in x:
        xs.append(v * v)
    a, b = xs
    return a * b


def pair_or_not(x):
    try:
        a, b = x
    except ValueError:
        return x[0] ** 3
    return a * b


@pytest.mark.parametrize("f", [pair, head, rows, grown, pair_or_not], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 2, 3])
def test_unpacking(f, n):
    if (f, n) == (pair_or_not, 0):
        return  # x[0] of nothing
    x = np.arange(1.0, n + 1)
    steps = np.eye(n) * 1e-6
    agree(f, s2s.value_and_grad(f), (x,), lambda: [(f(x + h) - f(x - h)) / 2e-6 for h in steps])


def only_on_the_other_path(a, x, n):
    if n < n + 1:
        return np.sum(a) + x * a[0] ** 2
    b, c = a.copy(), np.zeros(5)
    for _ in range(n % 3 + 1):
        c[1:] = np.sin(b[:-1]) + np.sin(x)
        b, c = c, b
    k = 0
    while k < 2:
        k += 1
        np.sin(b, out=b)
    return np.sum(b)


@pytest.mark.lengthy
def test_what_the_sweeps_hand_on_is_bound_on_every_path():
    def slope(a, x):
        return np.sum(s2s.grad(only_on_the_other_path)(a, x, 2) ** 2)

    a = np.arange(1.0, 6.0)
    expected = np.zeros(5)
    expected[0] = 2 * (1.0 + 2 * 0.3 * a[0]) * 2 * 0.3
    np.testing.assert_allclose(s2s.grad(slope)(a, 0.3), expected)


def list_on_one_path(x, y, a):
    if x > 0:
        grown = []
        if a[-1] > 2.0:
            grown.append(np.tanh(np.maximum(y, 1.0 / (1.0 + x ** 2))))
        y = np.tanh(grown[-1]) if len(grown) > 0 else 0.5
    else:
        held = [a * 0.5]
        for _ in range(3):
            held.append(np.sin(held[-1]))
        a = a * 0.8
    return x * y + np.sum(a * a)


@pytest.mark.parametrize("x", [0.7, -0.7])
@pytest.mark.parametrize("last", [1.0, 3.0])
def test_a_list_that_one_path_binds_has_a_cotangent_there_alone(x, last):
    judge(list_on_one_path, x, 0.3, np.array([0.2, -0.4, last]))


def written_on_one_path(y, m, n):
    if n <= 0.5637:
        m[1] = -y ** 2
        for v in m[1]:
            y = 0.7 * y + np.sin(v) * (-0.4 if n < n + 1 else v)
    elif n % 2 == 1:
        m[0, n % 4] = np.tanh(m[0, 1])
    return y + np.sin(np.sum(m * m))


@pytest.mark.parametrize("n", [0, 3, 4])
def test_no_shape_is_asked_of_an_array_that_one_path_binds(n):
    judge(written_on_one_path, 0.3, np.linspace(0.0, 1.0, 12).reshape(3, 4), n)


def left_after_a_decision(x, y, m, n):
    for i in range(n):
        y = y * 0.9 + np.sum(np.sin(m)) * x * i
        if y > 0.5:
            if x > 0:
                m = np.tanh(m + x)
            else:
                m[0] = 2.0 * m[1]
            break
        m[1] = m[0] * y
    return x * y


@pytest.mark.lengthy
def test_what_nobody_reads_after_a_break_is_not_unbound():
    """Neither asked about nor carried as a placeholder without elements, of whose shape its
    cotangent would be.
    """
    m = np.array([[0.1, 0.2], [0.3, -0.4]])
    for args in [(0.3, 0.2, m, 4), (-0.3, 0.9, m, 4), (0.3, 0.9, m, 4), (0.3, 0.2, m, 0)]:
        judge(left_after_a_decision, *args)
    gradient = s2s.grad(left_after_a_decision, argnums=(0, 1, 2))
    assert gradient(0.3, 0.9, m, 4)[2].shape == (2, 2)
    assert "_bound" not in gradient.source and "(0, 0)" not in gradient.source


def returned_before_it_is_bound(m, n, least):
    seen = [1.0]
    for _ in range(n):
        seen.append(np.tanh(np.mean(m[n % 3])))
    last = seen[-1]
    if m[n - 1, n % 4] > least:
        return last
    b = np.tanh(m.T @ m[:, 0])
    return np.sum(b * b) * last


@pytest.mark.lengthy
@pytest.mark.parametrize("least", [0.5, 5.0])
def test_what_is_made_of_an_unbound_array_has_no_shape_to_ask_for(least):
    """Twice backwards: zeros for the cotangent of `b` where nothing binds it were taken for as long
    as a row of `m`.
    """
    m = np.linspace(-1.0, 1.5, 12).reshape(3, 4)
    gradient = s2s.grad(returned_before_it_is_bound)
    along = np.cos(m)
    expected = s2s.jvp(gradient, (m, 3, least), (along, 0, 0.0))[1]
    for half in (s2s.vjp(gradient, m, 3, least), s2s.vjp(s2s.jit(gradient), m, 3, least)):
        np.testing.assert_allclose(half[1](along)[0], expected, atol=1e-13)


def bound_where_it_leaves(u, k, n):
    for s in range(n):
        if u[0] * s > 0.3:
            w = np.cos(u * s)
            z = np.outer(w, w)
            break
    else:
        return np.sum(u * u) * k
    return np.sum(z @ w) * k


def none_before_the_first(u, k, n):
    before, total = None, 0.0
    for s in range(n):
        now = np.outer(u, u) * k * s
        if before is not None and s > 1:
            total += np.sum(before @ now)
            now = now + before
        before = now if s != 2 else None
    return total


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [bound_where_it_leaves, none_before_the_first])
@pytest.mark.parametrize("u", [[0.4, 0.5, 0.2], [0.04, 0.05], [0.04], [0.4]])
def test_zeros_for_what_is_not_there_do_not_say_how_long_it_would_be(f, u):
    """Tapes of them, and what was saved in their place, had lengths that their types claimed."""
    judge(f, np.array(u), 0.3, 4)
