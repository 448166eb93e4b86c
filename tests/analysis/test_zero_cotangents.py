"""What a branch has thrown away is not swept back; what it has kept is, and tapes are left as they
would have been.
"""

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.3, 0.8, 0.5, 0.9, 0.4, 0.7])


def capped_steps(x, a):
    """Newton's steps, the longest of them replaced: the inner loop's tape stands in a `while`
    loop.
    """
    y, step = 3.0, 1.0
    while abs(step) > 1e-9:
        value, slope, power = -a, 0.0, 1.0
        for k in range(len(x)):
            slope = slope + (k + 1) * x[k] * power
            power = power * y
            value = value + x[k] * power
        step = value / slope
        if step > 0.4 * y:
            step = 0.4 * y
        y = y - step
    return y


def array_replaced(x, a):
    total = 0.0
    for i in range(4):
        u = x * (a + i)
        for k in range(1, len(u)):
            u[k] = u[k] * u[k - 1] + 0.1
        if i % 2 == 0:
            u = x * x
        total = total + np.sum(u * u)
    return total


def nest_of_unequal_loops(x, a):
    y = a
    for i in range(5):
        t = y
        k = 0
        while t < 2.0 and k < 5:
            for j in range(k):
                t = t * (1.0 + x[j])
                if t > 1.5:
                    break
                t = t + 0.05 * x[j] * x[k]
            k += 1
            t = t + 0.1
        if t > 1.8:
            t = np.sin(y)
        y = y * 0.5 + t * 0.3
    return y


def one_of_two(x, a):
    y = a
    for i in range(6):
        p, q = y, y
        for k in range(i):
            p = p * (0.6 + x[k])
        for k in range(6 - i):
            q = np.sin(q) + x[k] * q
        if p < q:
            y = p * a
        else:
            y = q
    return y


def one_feeds_the_other(x, a):
    y = a
    for i in range(6):
        p = y
        for k in range(i):
            p = p * (0.6 + x[k])
        q = p * p
        for k in range(i):
            q = np.cos(q) * x[k]
        if q > 0.3 * y:
            q = y * 0.7
        y = y + 0.2 * q
    return y


def kept_elsewhere(x, a):
    y = a
    for i in range(6):
        p = y
        for k in range(i):
            p = p * (0.6 + x[k])
        q = p
        if q > 1.0:
            q = 1.0
        y = 0.5 * y + q + 0.01 * p
    return y


def branch_in_a_branch(x, a):
    y = a
    for i in range(6):
        p = y
        for k in range(len(x)):
            p = p * (0.6 + x[k])
        if p > 0.5:
            if i > 2:
                p = a * a
            else:
                p = p * y
        y = 0.5 * y + np.tanh(p)
    return y


def thrown_away_where_it_leaves(x, a):
    y = a
    for i in range(6):
        p = y
        for k in range(len(x)):
            p = p * (0.7 + x[k])
        if p > 2.5:
            break
        y = y * 0.8 + 0.1 * p
    return y


def settled(x, y):
    for k in range(len(x)):
        y = y - 0.3 * np.sin(y) * x[k]
        while y > 1.0:
            y = y * (0.5 + 0.1 * x[k])
    return y, x * y


def of_another_function(x, a):
    y = a
    for i in range(6):
        z, u = settled(x, y * i)
        if z > 0.5 * y:
            z = y * y
            u = x
        y = 0.5 * y + z + np.sum(u * x)
    return y


def rough(y, a):
    for k in range(5):
        y = y - 0.3 * np.sin(y) * a
    z = np.cos(y) * a + np.exp(-y * y)
    w = np.tanh(z) * y + np.sqrt(1.0 + z * z)
    return w * 0.5 + z * y, w * z


def of_a_called_function(x, a):
    y = a
    for i in range(6):
        z, w = rough(y * x[i], a)
        y = y * 0.8 + 0.1 * w
        if z > 0.9:
            z = y
        if z < 0.8:
            y = y + z * z
    return y


def called_and_thrown_away(x, a):
    y = a
    for i in range(6):
        z, w = rough(y * x[i], a)
        z = z * w
        if z > 0.7:
            z = y
        y = y * 0.8 + 0.1 * z
    return y


def divided_and_capped(x, a):
    best = 0.0
    for t in range(3):
        total = 0.0
        for k in range(len(x)):
            total = total + np.sqrt(a * x[k]) * total + x[k]
        step = total / a
        if step > best:
            step = best + 0.5 * a
        best = best + step
    return best


def rectified(x, a):
    """What a loop has summed, where it is positive: Python's max takes one of two."""
    total = 0.0
    for i in range(len(x) - 2):
        s = -1.0
        for j in range(3):
            s += a * x[i + j] * (1.0 + x[j])
        total += max(s, 0.0) ** 2
    return total


def rectified_twice(x, a):
    """Of two maxima one may take a number where the other does not."""
    total = 0.0
    for i in range(len(x) - 2):
        s = -1.0
        for j in range(3):
            s += a * x[i + j] * (1.0 + x[j])
        total += max(s, 0.0) ** 2 + max(s - 0.3, 0.0)
    return total


def clipped(x, a):
    y = np.zeros(len(x))
    for i in range(len(x)):
        s = 0.0
        for j in range(i + 1):
            s += a * np.exp(x[j]) * x[i]
        y[i] = min(max(s - 1.5, 0.2), 1.0)
    return np.sum(y * x)


def hinge(x, a):
    total = 0.0
    for k in range(4):
        margin = 0.0
        for j in range(len(x)):
            margin += x[j] * np.sin(a * j + k)
        total += max(0.0, 0.3 - margin)
    return total


def shrunk(x, a):
    """The tape of a loop whose states have other lengths: an arm that leaves it full hands on zeros
    for each item.
    """
    z = x.copy()
    while len(z) > 1:
        z = np.sin(z[1:])
    return np.arctan(np.tanh(np.sum(z)) * a if a > 1.0 else a)


PROGRAMS = (
    rectified,
    rectified_twice,
    clipped,
    hinge,
    capped_steps,
    array_replaced,
    nest_of_unequal_loops,
    one_of_two,
    one_feeds_the_other,
    kept_elsewhere,
    branch_in_a_branch,
    of_another_function,
    of_a_called_function,
    called_and_thrown_away,
    thrown_away_where_it_leaves,
    divided_and_capped,
)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [shrunk, *PROGRAMS])
def test_derivatives(f):
    for a in (0.6, 1.3):
        judge(f, X, a)


@pytest.mark.compile
@pytest.mark.parametrize("f", [shrunk, *PROGRAMS])
def test_compiled(f):
    judge(f, X, 0.6, compiled=True)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_of_many_lanes(f):
    many = np.array([0.4, 0.6, 1.3])
    one = [s2s.grad(f, (0, 1))(X, a) for a in many]
    for lanes in (
        s2s.vmap(s2s.grad(f, (0, 1)), (None, 0)),
        s2s.jit(s2s.vmap(s2s.grad(f, (0, 1)), (None, 0))),
    ):
        for found, wanted in zip(lanes(X, many), zip(*one)):
            np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", [shrunk, *PROGRAMS])
def test_in_two_halves(f):
    value, back = s2s.vjp(f, X, 0.6)
    assert value == f(X, 0.6)
    for found, wanted in zip(back(2.0), s2s.grad(f, (0, 1))(X, 0.6)):
        np.testing.assert_allclose(found, 2.0 * wanted, rtol=1e-12)


def thrown_away_if_too_large(x, a):
    total = 0.0
    for i in range(3):
        p = a
        for k in range(len(x)):
            p = p * np.exp(x[k] * i)
        if p > 1e300:
            p = a
        total = total + p
    return total


def slope_thrown_away(x, a):
    total = 0.0
    for i in range(3):
        p = a
        for k in range(len(x)):
            p = p + np.sqrt(x[k] * i)
        if i == 0:
            p = a * a
        total = total + p
    return total


@pytest.mark.parametrize("through", [lambda g: g, pytest.param(s2s.jit, marks=pytest.mark.compile)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_was_infinite_and_thrown_away_has_no_part(through):
    x = np.array([1.0, 800.0, 2.0])
    found = through(s2s.grad(thrown_away_if_too_large, (0, 1)))(x, 1.5)
    assert np.array_equal(found[0], np.zeros(3)) and found[1] == 3.0
    found = through(s2s.grad(slope_thrown_away, (0, 1)))(x, 1.5)
    np.testing.assert_allclose(found[0], (0.5 + 0.5 * 2 ** 0.5) / np.sqrt(x), rtol=1e-14)
    assert found[1] == 5.0


def roots_thrown_away(x, a):
    xs = []
    for k in range(3):
        xs.append(np.sqrt(a) * (k + 1))
    if a <= 0.0:
        xs = [x[0]]
    return sum(xs) * x[1]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_leaves_a_loop_that_was_thrown_away_has_no_part():
    found = s2s.grad(roots_thrown_away, (0, 1))(X, np.float64(0.0))
    assert found[1] == 0.0 and np.array_equal(found[0][:2], X[1::-1])


@pytest.mark.parametrize("through", [lambda g: g, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_single_precision_stays(through):
    def power(x, y):
        p = x
        for _ in range(3):
            p = p * x
        if p > 2.0:
            p = y * y
        return p

    for x in (0.5, 2.0):
        found = through(s2s.grad(power, (0, 1)))(np.float32(x), np.float32(3.0))
        assert isinstance(found[0], np.float32) and found[0] == (0.5 if x == 0.5 else 0.0)


def branches(f) -> list[str]:
    """The lines of the gradient of `f` that ask something on the way back."""
    source = s2s.grad(f).lower(X, 0.6).source
    return [
        line.strip()
        for line in source[source.index("y_bar = 1.0") :].splitlines()
        if line.strip().startswith("if ")
    ]


def test_a_loop_is_swept_back_where_it_has_a_part():
    assert branches(one_of_two) == 3 * ["if t_tape[i]:"]
    assert branches(one_feeds_the_other) == 3 * ["if t_tape[i]:"]
    assert branches(kept_elsewhere) == ["if not t_tape[i]:"]


def test_what_is_swept_back_on_one_way_is_not_masked_once_more():
    source = s2s.grad(divided_and_capped, (0, 1)).lower(X, 0.6).source
    assert " x_bar[k] += " in source and "np.where" not in source


@pytest.mark.parametrize("f", [rectified, rectified_twice, clipped, hinge])
def test_where_a_maximum_takes_a_number_the_loop_before_has_no_part(f):
    """Not afterwards, which takes arrays of zeros in each trip of the loop around: the gradient
    would cost a power more than the function.
    """
    source = s2s.grad(f, (0, 1)).lower(X, 0.6).source
    assert (
        source.count("np.zeros_like(x)") <= 1
        and "np.where" not in source
        and "x_bar_1" not in source
    )


def test_the_way_that_leaves_a_loop_is_but_one_trip():
    assert len(branches(thrown_away_where_it_leaves)) == 1


def halved(y, n):
    return y if n == 0 else np.sin(halved(y, n - 1)) * 0.8 + halved(y * 0.5, n - 1)


def of_a_recursive_function(x, a):
    y = a
    for i in range(3):
        p = y
        for k in range(2):
            p = halved(p, k + 1) * x[i]
        if p > 0.4:
            p = y * a
        y = y + 0.5 * p
    return y


@pytest.mark.lengthy
def test_a_recursive_function_is_called_once():
    judge(of_a_recursive_function, X, 0.6)
    # its definition, its own calls, and that of the loop
    assert s2s.grad(of_a_recursive_function).lower(X, 0.6).source.count("halved_bwd(") == 4


def read_before_as_well(x, a):
    """What the loop makes is read before the branch, too: its cotangent is a sum of which but one
    term is zero.
    """
    y = a
    for i in range(6):
        p = y
        for k in range(i):
            p = p * (0.6 + x[k])
        r = 0.01 * p
        q = p
        if q > 1.0:
            q = 1.0
        y = 0.5 * y + q + r
    return y


def test_what_is_read_before_the_branch_has_its_part():
    judge(read_before_as_well, X, 1.1)


def test_a_quotient_of_what_was_thrown_away_has_no_part():
    def divided(x, a):
        y = a
        for i in range(6):
            p = y
            for k in range(i):
                p = p * (0.6 + x[k])
            q = p / (1.0 + a)
            if q > 0.5:
                q = 0.5
            y = 0.5 * y + q
        return y

    judge(divided, X, 1.1)
    assert branches(divided) == 2 * ["if t_tape[i]:"]  # of the cotangent, and of the loop
