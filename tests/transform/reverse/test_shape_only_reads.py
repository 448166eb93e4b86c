"""What a derivative asks only for its shape is not saved: its lengths are, or nothing."""

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.3, -0.7, 1.1, 0.4])
A = np.arange(12.0).reshape(3, 4) / 7.0 - 0.5


def sums_that_grow(x, n):
    u, total = x[:1] * 2.0, 0.0
    for k in range(n):
        u = np.concatenate((u, np.sin(x[:k])))
        total += np.sum(u) * np.cos(total)
    return total + np.sum(u)


def sums_that_shrink(x):
    u, total = x * 1.5, 0.0
    while len(u) > 1:
        u = u[1:] * u[:-1]
        total = total + np.sum(np.sin(u[:-1])) + np.mean(u)
    return total


def in_one_arm(x, n):
    total, u = 0.0, x * 1.0
    for k in range(n):
        if k % 2 == 0:
            v = np.outer(u, u[: k + 1])
            total += np.sum(v[1:]) * 0.1
        else:
            u = np.cumsum(u)[::-1] * 0.5
        total = np.tanh(total)
    return total + np.sum(u)


def left_early(x, limit):
    total, u = 0.0, x * 1.0
    for k in range(10):
        v = np.concatenate((u, u[: k + 1]))
        total += np.sum(v)
        if total * total > limit:
            return total * np.sum(v[1:])
        u = v[1:] * 0.9
    return total


def padded(x, n):
    u = x.reshape(2, 2)
    for _ in range(n):
        p = np.pad(u, 1, mode="edge")
        u = u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)
    return np.sum(u**2)


def added_to_in_place(a, k):
    n, m = a.shape
    out = np.zeros((n - 1, m - 1))
    for i in range(2):
        for j in range(2):
            out += k[i, j] * a[i:i + n - 1, j:j + m - 1]
    return np.sum(np.sin(out))


def two_bodies(x, n):
    q, p = x[:2].copy(), x[2:].copy()
    for _ in range(n):
        r = np.sqrt(q @ q)
        p -= 0.1 * q / r**3
        q += 0.1 * p
    return q @ q


def reshaped_in_each_trip(x, n):
    u = np.outer(x, x).reshape(16)
    for q in range(n):
        u = u.reshape(2**q, 2, 2 ** (3 - q)).copy()
        u[:, 1, :] *= -0.5
        u = u.reshape(16)
    return np.sum(np.sin(u))


def rotated(x, n):
    before, u = np.concatenate((x[:2], x[2:])), np.concatenate((x[1:], x[:1]))
    for _ in range(n):
        new = np.zeros(len(x))
        new[1:-1] = 2 * u[1:-1] - before[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        before, u = u, new + u[0]
    return np.sum(u**2)


def part_of_it(x):
    if len(x) < 2:
        return np.sum(x**2)
    half = len(x) // 2
    whole = np.concatenate((x[:half] * x[half:half * 2], x[half * 2:]))
    return part_of_it(whole) + np.sum(np.broadcast_to(x, (3, len(x)))) * 0.1


def only_sometimes_there(x, n):
    total = 0.0
    for k in range(n):
        if k > 0:
            v = np.tanh(x[k:])
        total = total * 0.5 + x[0] * k
        if k > 0:
            total += np.sum(v)
    return total


def seen_from_the_second_trip_on(x, n):
    total = 0.0
    for k in range(n):
        if k > 0:
            total += np.sum(v * 2.0) + np.mean(np.outer(v, v)[1:])  # noqa: F821
        v = np.concatenate((x[k:], x[:1])) * total  # noqa: F841
        total = np.cos(total) + x[1]
    return total


PROGRAMS = [
    (sums_that_grow, X, 3),
    (sums_that_grow, X, 0),
    (sums_that_shrink, X),
    (sums_that_shrink, X[:1]),
    (in_one_arm, X, 3),
    (in_one_arm, X, 0),
    (left_early, X, 4.0),
    (left_early, X, 1e9),
    (padded, X, 3),
    (padded, X, 0),
    (added_to_in_place, A, A[:2, :2]),
    (two_bodies, X, 3),
    (two_bodies, X, 0),
    (reshaped_in_each_trip, X, 3),
    (rotated, X, 3),
    (part_of_it, X),
    (only_sometimes_there, X, 3),
    (only_sometimes_there, X, 0),
    (seen_from_the_second_trip_on, X, 3),
    (seen_from_the_second_trip_on, X, 1),
]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "program", PROGRAMS, ids=lambda p: f"{p[0].__name__}{p[-1] if isinstance(p[-1], int) else ''}"
)
def test_shapes_are_what_they_were(program):
    judge(*program)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "program", PROGRAMS, ids=lambda p: f"{p[0].__name__}{p[-1] if isinstance(p[-1], int) else ''}"
)
def test_in_native_code(program):
    judge(*program, compiled=True, second=False)


@pytest.mark.parametrize(
    "program",
    [p for p in PROGRAMS if p[0] not in (part_of_it, left_early)],
    ids=lambda p: f"{p[0].__name__}{p[-1] if isinstance(p[-1], int) else ''}",
)
def test_in_halves_and_in_lanes(program):
    f, x, *rest = program
    g = s2s.grad(f)
    value, back = s2s.vjp(lambda x: f(x, *rest), x)
    assert value == f(x.copy(), *rest)
    np.testing.assert_allclose(
        back(1.0)[0] if isinstance(back(1.0), tuple) else back(1.0), g(x, *rest), rtol=1e-12
    )
    xs = np.stack((x, x[::-1] * 0.8, x + 0.1))
    lanes = s2s.vmap(lambda x: g(x, *rest))(xs)
    np.testing.assert_allclose(lanes, [g(each, *rest) for each in xs], rtol=1e-11, atol=1e-13)


def text_of(f, *args):
    return s2s.grad(f).lower(*args).source, s2s.jit(s2s.grad(f)).lower(*args).loops


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("f", "args"), [(added_to_in_place, (A, A[:2, :2])), (two_bodies, (X, 3)), (padded, (X, 3))]
)
def test_nothing_is_saved_where_the_shape_is_known(f, args):
    """`x += y` leaves x as long as it was; a padded array is as long as its argument and the
    width.
    """
    source, loops = text_of(f, *args)
    assert "t_tape = []" not in source and "int64" not in source
    assert "with_room" not in loops and "_tape.append" not in loops and "count" not in loops


def test_lengths_are_saved_where_they_change():
    source, loops = text_of(sums_that_grow, X, 3)
    assert source.count(", np.int64)") == 2 and "append" not in source
    assert "append" not in loops


@pytest.mark.lengthy
def test_lengths_of_slices_are_those_of_what_is_sliced():
    """Of u and of before, whose lengths may change; what is made of two of them has others."""
    source, _ = text_of(rotated, X, 3)
    assert source.count("np.int64") == 6 and "len(u)" in source and "len(before)" in source
    assert "append" not in source


def test_an_array_is_saved_rather_than_two_slices_of_it():
    source, _ = text_of(sums_that_shrink, X)
    assert "u_tape.append(u)" in source and source.count(".append") == 1


def test_what_is_reshaped_is_not_saved():
    source, loops = text_of(reshaped_in_each_trip, X, 3)
    assert "append" not in source and "append" not in loops
    assert "broadcast_to" not in source + loops
