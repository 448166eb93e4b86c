"""Code for long axes does not reckon with slices of length 1: ir/length_assumptions.py, Note [Long
axes].
"""

import itertools

import numpy as np
import pytest
from oracles import gradient

import s2s

RNG = np.random.default_rng(0)
LENGTHS = (100, 3, 8, 7, 0, 1, 2, 5, 9, 100)


def conducted(u, k):
    return np.sum((u[1:-1] * k[1:-1] + u[1:-1]) ** 2 * np.sin(k[2:]))


def inside(u, k):
    return u[2:] * k[:-2]


def by_a_function(u, k):
    return np.sum(inside(u, k) ** 2) + np.sum(inside(u[1:], k[1:]))


def neighbours(u, k):
    left, right = np.concatenate((k[:1], u[:-1])), np.concatenate((u[1:], k[-1:]))
    flux = np.concatenate((u[:2] * k[:2], u[1:-2] * k[1:-2] - left[2:-1], k[-3:-2] * u[-2:-1]))
    return np.sum((left - 2 * u + right) * k) + np.sum(flux**2) + np.sum(u[1:4] * k[:3])


def ends(u, k):
    head, tail = u[:3], k[-2:]
    return (
        np.sum(head) * np.sum(tail**2)
        + len(head) * np.sum(u)
        + np.sum(np.concatenate((head, tail)) ** 2)
        + np.sum(k[2:1])
        + np.sum(u[-4:-2])
    )


def of_dict(p):
    return conducted(p["u"], p["k"])


def asks_nothing(x, y):
    return np.sum(x[1:] * x[:-1]) * np.sum(y)


def answered(f, *args):
    """What a call gives; None where it raises what NumPy raises."""
    try:
        return f(*args)
    except (ValueError, s2s.S2SError):
        return None


def agree(got, expected):
    assert (got is None) == (expected is None)
    for a, b in zip(got or (), expected or ()):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
        assert np.shape(a) == np.shape(b)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [conducted, by_a_function, neighbours, ends])
def test_short_and_long_axes_in_turns(f):
    slope = s2s.grad(f, argnums=(0, 1))
    for n, m in itertools.product(LENGTHS, LENGTHS):
        u, k = RNG.normal(size=n), RNG.normal(size=m)
        fits = answered(f, u, k) is not None
        agree(answered(slope, u, k), [gradient(f, (u, k), wrt) for wrt in (0, 1)] if fits else None)


@pytest.mark.compile
@pytest.mark.parametrize("f", [conducted, neighbours, ends])
def test_compiled_code_tells_them_apart(f):
    slope, both = (
        s2s.jit(s2s.grad(f, argnums=(0, 1))),
        s2s.jit(s2s.value_and_grad(f, argnums=(0, 1))),
    )
    plain = s2s.grad(f, argnums=(0, 1))
    for n, m in [
        (100, 100),
        (100, 100),
        (100, 3),
        (3, 100),
        (3, 3),
        (5, 5),
        (0, 0),
        (100, 9),
        (9, 9),
        (1, 0),
        (1, 8),
        (8, 8),
        (0, 100),
        (8, 8),
    ]:
        u, k = RNG.normal(size=n), RNG.normal(size=m)
        for _ in range(2):  # the second time without a closer look
            expected = answered(plain, u, k)
            agree(answered(slope, u, k), expected)
            agree(answered(lambda: both(u, k)[1]), expected)
            agree(answered(lambda: both(u, k, out=(0.0, (np.empty(n), np.empty(m))))[1]), expected)


@pytest.mark.compile
@pytest.mark.parametrize("f", [conducted, asks_nothing])
def test_second_halves_are_not_asked(f, monkeypatch):
    def never(*args):
        raise AssertionError("compiled code has refused these lengths")

    compiled = s2s.jit(f)
    monkeypatch.setattr("s2s.runtime.call.native_function.interpreted", never)
    for n in (30, 5, 30, 1):
        x, y = RNG.normal(size=n), RNG.normal(size=n)
        _, pull = s2s.vjp(compiled, x, y)
        _, push = s2s.linearize(compiled, x, y)
        for _ in range(2):
            agree(pull(1.0), s2s.grad(f, argnums=(0, 1))(x, y))
            np.testing.assert_allclose(
                push(x, y),
                sum(np.sum(a * b) for a, b in zip(pull(1.0), (x, y))),
                rtol=1e-9,
                atol=1e-12,
            )


def test_captured_and_contained_axes():
    slope = s2s.grad(of_dict)
    for n, m in [(100, 100), (100, 3), (3, 100), (9, 9), (100, 100)]:
        u, k = RNG.normal(size=n), RNG.normal(size=m)
        captured = s2s.grad(lambda u: conducted(u, k))
        expected = s2s.grad(conducted, argnums=(0, 1))(u, k)
        agree([slope({"u": u, "k": k})[name] for name in "uk"], expected)
        agree([captured(u)], expected[:1])


def test_a_captured_array_becomes_short():
    held = {"k": RNG.normal(size=50)}
    k = held["k"]

    def f(u):
        return conducted(u, k)

    slope, u = s2s.grad(f), RNG.normal(size=50)
    for n in (50, 3, 50):
        k = RNG.normal(size=n)
        agree([slope(u)], [s2s.grad(conducted)(u, k)])


def test_long_axes_meet_as_whole_arrays_do():
    u = RNG.normal(size=20)
    text = s2s.grad(conducted, argnums=(0, 1)).lower(u, u).source
    assert "sum_to_shape" not in text
    loops = s2s.grad(conducted, argnums=(0, 1)).lower(u, u).loops
    assert "broadcast_length" not in loops and "spread_length" not in loops
    assert "spread_length" in s2s.grad(conducted, argnums=(0, 1)).lower(u[:5], u[:5]).loops


def flowed(u, v, k):
    """Two fields on a grid, the inside of each by the other's: lengths n - 2 and n - 1 of both
    meet.
    """
    for _ in range(k):
        lap = u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1]
        v[1:-1, 1:-1] = 0.2 * lap * v[1:-1, 1:-1]
        u[:-1, :] = u[:-1, :] - np.sin(v[1:, :] - v[:-1, :])
    return np.sum(u * v)


@pytest.mark.compile
def test_compiled_code_supposes_that_slices_of_short_axes_have_not_length_one():
    fast = s2s.jit(s2s.grad(flowed, argnums=(0, 1)))
    u = RNG.normal(size=(5, 6))
    text = fast.lower(u, u, 2).loops
    assert "supposed_length(" in text and not any(
        each in text for each in ("broadcast_length", "spread_length", "== 1 else 1")
    )
    plain = s2s.grad(flowed, argnums=(0, 1))
    shapes = [
        (5, 6),
        (3, 6),
        (6, 3),
        (3, 3),
        (2, 5),
        (2, 2),
        (4, 4),
        (9, 4),
        (9, 9),
        (3, 9),
        (1, 4),
        (0, 3),
    ]
    for a, b in [*zip(shapes, shapes), ((4, 3), (3, 3)), ((4, 6), (2, 6)), ((3, 3), (5, 3))]:
        u, v = RNG.normal(size=a), RNG.normal(size=b)
        for _ in range(2):
            agree(answered(fast, u, v, 2), answered(plain, u, v, 2))


def test_who_does_not_ask_has_one_code():
    slope = s2s.grad(asks_nothing)
    for n in (100, 3, 8):
        slope(np.ones(n), np.ones(n))
    assert [len(found) for found in slope.specialised.values()] == [1]
    slope = s2s.grad(conducted)
    for n in (100, 3, 8, 100, 4):
        slope(np.ones(n), np.ones(n))
    assert [len(found) for found in slope.specialised.values()] == [2]


@pytest.mark.lengthy
def test_what_is_put_together_again_is_as_long_as_it_was():
    u = RNG.normal(size=20)
    loops = s2s.grad(neighbours, argnums=(0, 1)).lower(u, u).loops
    assert not any(
        text in loops for text in ("broadcast_length", "spread_length", "supposed_length", "== 1")
    )


def test_what_a_loop_carries_and_puts_together_keeps_its_length():
    def swept(u, k):
        for step in range(k):
            u = 0.5 * (np.concatenate((u[:1], u[:-1])) + np.concatenate((u[1:], u[-1:])))
        return np.sum(u**2)

    text = s2s.grad(swept).lower(RNG.normal(size=20), 3).source
    assert "append" not in text and "sum_to_shape" not in text
    for n in (20, 1, 3, 0):
        u = RNG.normal(size=n)
        agree([s2s.grad(swept)(u, 3)], [gradient(swept, (u, 3), 0)])


def waved(c, u, k):
    up, u = u.copy(), u.copy()
    for _ in range(k):
        un = np.zeros(len(c))
        un[1:-1] = 2 * u[1:-1] - up[1:-1] + 0.5 * c[1:-1] ** 2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        up = u
        u = un
    return np.sum(u**2) + u[len(u) // 2]


def waved_if(c, u, k):
    for _ in range(k):
        un = 2 * c
        if k > 2:
            un = np.zeros(len(c))
            un[1:-1] = u[1:-1] * c[1:-1]
        u = un
    return np.sum(u**2)


@pytest.mark.lengthy
def test_what_a_loop_carries_has_one_length_where_its_trips_put_two_side_by_side():
    u = RNG.normal(size=20)
    lowered = s2s.grad(waved, argnums=(0, 1)).lower(u, u, 3)
    assert "append" not in lowered.source and "sum_to_shape" not in lowered.source
    assert not any(text in lowered.loops for text in ("broadcast_length", "spread_length", "== 1"))
    forward = lowered.loops[:lowered.loops.index("backwards")]
    assert forward.count("for i in range(") == 1 and "same_length(" in forward
    # a trip of another path says nothing
    assert "append" in s2s.grad(waved_if, argnums=(0, 1)).lower(u, u, 3).source


@pytest.mark.compile
@pytest.mark.parametrize("f", [waved, waved_if], ids=lambda f: f.__name__)
def test_lengths_that_differ_all_the_same(f):
    plain = s2s.value_and_grad(f, argnums=(0, 1))
    fast = s2s.jit(plain)
    for (n, m), k in itertools.product(
        [(20, 20), (20, 12), (12, 20), (9, 3), (20, 3), (3, 20), (3, 3), (8, 1), (9, 2), (2, 9)],
        (0, 1, 3),
    ):
        c, u = RNG.normal(size=n), RNG.normal(size=m)
        try:
            value = f(c, u, k)
        except (ValueError, IndexError) as error:
            for each in (plain, fast):
                with pytest.raises(type(error)):
                    each(c, u, k)
            continue
        for each in (plain, fast):
            found, slopes = each(c, u, k)
            np.testing.assert_allclose(found, value, rtol=1e-12)
            for wrt, slope in enumerate(slopes):
                np.testing.assert_allclose(slope, gradient(f, (c, u, k), wrt), rtol=1e-6, atol=1e-8)
