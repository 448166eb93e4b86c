"""Elements that one trip hands to the next are scalars in compiled code: the loop form is run as
Python, and compared with the program.
"""

import re

import numpy as np
import pytest

import s2s
from s2s import passes


def sweep(u, k, n):
    u = u.copy()
    for i in range(1, len(u) - 1):
        u[i] = 0.5 * (u[i - 1] + u[i + 1]) * k
    return u


def downwards(u, k, n):
    u = u.copy()
    for i in range(len(u) - 2, 0, -1):
        u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
    return u


def two_back(u, k, n):
    u = u.copy()
    for i in range(2, len(u)):
        u[i] = u[i - 1] + k * u[i - 2]
    return u


def far_back(u, k, n):
    u = u.copy()
    for i in range(3, len(u)):
        u[i] = u[i] * u[i - 3] + k
    return u


def pushes_ahead(u, k, n):
    u = u.copy()
    for i in range(len(u) - 2):
        u[i] = u[i] * k
        u[i + 1] += u[i]
        u[i + 2] = u[i + 1] * 0.3
    return u


def pushes_behind(u, k, n):
    u = u.copy()
    for i in range(2, len(u)):
        u[i - 2] += u[i] * k
        u[i - 1] = u[i - 2] - u[i]
    return u


def written_twice(u, k, n):
    u = u.copy()
    for i in range(1, len(u)):
        u[i] = u[i - 1] * k
        u[i] = u[i] + u[i - 1] * u[i]
    return u


def from_the_end(u, k, n):
    """-1 is another element than the one before 0 would be."""
    u = u.copy()
    for i in range(len(u) - 1):
        u[i] = u[i - 1] * k + u[i + 1]
    return u


def only_some_trips(u, k, n):
    u = u.copy()
    for i in range(1, len(u)):
        if u[i - 1] > 0.5:
            u[i] = u[i - 1] * k
    return u


def other_elements(u, k, n):
    u = u.copy()
    for i in range(1, len(u)):
        u[i] = u[i - 1] * k
        u[n] = u[n] + 1.0
    return u


def stops(u, k, n):
    u = u.copy()
    for i in range(1, len(u)):
        u[i] = u[i - 1] * k
        if u[i] < 0.1:
            break
    return u


def no_trips(u, k, n):
    u = u.copy()
    for i in range(n, n - 3):
        u[i] = u[i - 1] * k + u[i + 1]
    return u


def in_steps(u, k, n):
    u = u.copy()
    for i in range(2, len(u), 2):
        u[i] = u[i - 2] * k + u[i]
    return u


def two_arrays(u, k, n):
    u = u.copy()
    v = np.zeros(len(u))
    for i in range(1, len(u)):
        v[i] = u[i - 1] + v[i - 1] * k
        u[i] = u[i] + v[i - 1] * v[i]
    return u + v


def running(u, k, n):
    total = np.zeros(len(u))
    s = 0.0
    for i in range(1, len(u)):
        total[i] = total[i - 1] + u[i] * k
        s += total[i] * total[i - 1]
    return total * s


def pairs(u, k, n):
    """Elements that stay for a whole inner loop, and others that move away from them."""
    u = u.copy()
    v = np.zeros(len(u))
    for i in range(len(u)):
        for j in range(i):
            t = k / (1.0 + (u[i] - u[j]) ** 2)
            v[i] += t * u[j]
            v[j] -= t * u[i]
            u[i] = u[i] - 0.1 * t * u[j]
    return u * v


def pairs_upwards(u, k, n):
    u = u.copy()
    for i in range(len(u) - 1):
        for j in range(i + 1, len(u)):
            u[i] = u[i] * k - u[j]
            u[j] = u[j] + 0.3 * u[i]
    return u


def pairs_downwards(u, k, n):
    u = u.copy()
    for i in range(len(u)):
        for j in range(len(u) - 1, i, -1):
            u[i] = u[i] * k + 0.2 * u[j]
            u[j] = u[j] - u[i]
    return u


def pairs_in_steps(u, k, n):
    u = u.copy()
    for i in range(len(u) - 1, 0, -1):
        for j in range(i - 1, -1, -2):
            u[i] = u[i] * k + u[j]
            u[j] *= 0.5
    return u


def pairs_with_itself(u, k, n):
    """The last j is i."""
    u = u.copy()
    for i in range(len(u)):
        for j in range(i + 1):
            u[i] = u[i] * k + u[j]
            u[j] = u[j] * 0.5
    return u


def pairs_one_off(u, k, n):
    """u[j + 1] may be u[i]."""
    u = u.copy()
    for i in range(len(u)):
        for j in range(i):
            u[i] = u[i] + k * u[j]
            u[j + 1] = 0.5 * u[j + 1]
    return u


def pairs_from_the_end(u, k, n):
    """u[j - 1] is the last element where j is 0."""
    u = u.copy()
    for i in range(len(u)):
        for j in range(i):
            u[i] = u[i] + k * u[j - 1]
            u[j - 1] = 0.5 * u[i]
    return u


def all_pairs(u, k, n):
    """The adjoint takes from u_bar[i] and adds to u_bar[j], which may be the same."""
    v = np.zeros(len(u))
    for i in range(len(u)):
        for j in range(len(u)):
            v[i] += np.sin(k * (u[j] - u[i]))
    return v


def all_pairs_of_both_signs(u, k, n):
    v = np.zeros(len(u))
    for i in range(len(u)):
        for j in range(len(u)):
            v[i] += np.sin(u[j] - u[i]) * u[i] * k
    return v


def first_stays(u, k, n):
    u = u.copy()
    for i in range(1, len(u)):
        u[0] = u[0] * k + u[i]
        u[i] = u[0]
    return u


def first_is_met(u, k, n):
    u = u.copy()
    for i in range(len(u)):
        u[0] = u[0] * k + u[i]
        u[i] = 0.5 * u[0]
    return u


def another_may_be_it(u, k, n):
    u = u.copy()
    for i in range(len(u)):
        u[n] = u[n] + k * u[i]
        u[1] = 0.5 * u[n]
    return u


def out_of_range_but_never(u, k, n):
    u = u.copy()
    for i in range(n - 1):
        u[10] = u[10] * k + u[i]
    return u


def out_of_range(u, k, n):
    u = u.copy()
    for i in range(n):
        u[10] = u[10] * k + u[i]
    return u


def added_in_between(u, k, n):
    u = u.copy()
    for i in range(2, len(u)):
        u[0] += u[i] * k
        u[1] += u[0] * u[i]
        u[0] += u[1]
    return u


def overwritten_and_left(u, k, n):
    u = u.copy()
    for i in range(2, len(u)):
        u[0] = u[i] * k
        u[1] = u[1] + u[0] * u[0]
    return u


PAIRS = [
    pairs,
    pairs_upwards,
    pairs_downwards,
    pairs_in_steps,
    pairs_with_itself,
    pairs_one_off,
    pairs_from_the_end,
    all_pairs,
    all_pairs_of_both_signs,
    first_stays,
    first_is_met,
    another_may_be_it,
    out_of_range_but_never,
    out_of_range,
    added_in_between,
    overwritten_and_left,
]
ROWS = [
    sweep,
    downwards,
    two_back,
    far_back,
    pushes_ahead,
    pushes_behind,
    written_twice,
    from_the_end,
    only_some_trips,
    other_elements,
    stops,
    no_trips,
    in_steps,
    two_arrays,
    running,
]


def grid_sweep(u, k, n):
    u = u.copy()
    for s in range(n):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = k * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def along_columns(u, k, n):
    u = u.copy()
    for j in range(u.shape[1]):
        for i in range(1, u.shape[0]):
            u[i, j] = u[i, j] + k * u[i - 1, j]
    return u


def both_rows(u, k, n):
    u = u.copy()
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i, j - 1] * k + u[i - 1, j]
            u[i - 1, j] = u[i - 1, j - 1] + u[i, j]
    return u


def rows_that_may_meet(u, k, n):
    u = u.copy()
    for i in range(u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i, j - 1] * k + u[i - 1, j] + u[n, j]
    return u


def diagonal(u, k, n):
    u = u.copy()
    for i in range(1, min(u.shape[0], u.shape[1])):
        u[i, i] = u[i - 1, i - 1] * k + u[i, i - 1]
    return u


def swept_bands(u, k, n):
    u = u.copy()
    for i in range(u.shape[0] - 1, -1, -1):
        for j in range(u.shape[1] - 3, -1, -1):
            u[i, j] = u[i, j] + k * u[i, j + 1] - 0.1 * u[i, j + 2]
    return u


GRIDS = [grid_sweep, along_columns, both_rows, rows_that_may_meet, diagonal, swept_bands]
SHAPES = {
    f: shapes
    for fs, shapes in (
        (ROWS, [(7,), (4,), (2,)]),
        (PAIRS, [(6,), (2,)]),
        (GRIDS, [(5, 6), (2, 3), (3, 2)]),
    )
    for f in fs
}
HANDED_ON = [
    sweep,
    downwards,
    two_back,
    far_back,
    pushes_ahead,
    pushes_behind,
    written_twice,
    two_arrays,
    running,
    grid_sweep,
    swept_bands,
]


def loops_of(t, *args):
    with passes.checked():
        text = t.lower(*args).loops
    namespace = {}
    exec(text, namespace)
    return namespace[f"\n{text}"[f"\n{text}".rindex("\ndef ") + 5:].split("(")[0]], text


def given(f, shape, dtype=float):
    rng = np.random.default_rng(len(shape) + shape[0])
    return (rng.random(shape) + 0.2).astype(dtype), dtype(0.7), 1


def checked(function, *args):
    try:
        return function(*args)
    except (IndexError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize(
    "f, shape",
    [(f, shape) for f in SHAPES for shape in SHAPES[f]],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_value_in_loop_form(f, shape):
    args = given(f, shape)
    loops, _ = loops_of(s2s.jit(f), *args)
    before = args[0].copy()
    expected, found = checked(f, *args), checked(loops, *args)
    assert np.array_equal(args[0], before)
    if isinstance(expected, type):
        assert found is expected
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(
    "f, shape",
    [(f, shape) for f in SHAPES for shape in SHAPES[f]],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_gradient_in_loop_form(f, shape):
    u, k, n = given(f, shape)
    weights = np.arange(1.0, 1 + u.size).reshape(shape)

    def loss(u, k, n, weights):
        y = f(u, k, n)
        return np.sum(weights * y * y)

    gradient, args = s2s.value_and_grad(loss, argnums=(0, 1)), (u, k, n, weights)
    expected = checked(gradient, *args)
    loops, _ = loops_of(gradient, *args)
    found = checked(loops, *args)
    if isinstance(expected, type):
        assert found is expected
        return
    value, u_bar, k_bar = found
    np.testing.assert_allclose(value, loss(*args), rtol=1e-13)
    np.testing.assert_allclose(u_bar, expected[1][0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(k_bar, expected[1][1], rtol=1e-12)


@pytest.mark.parametrize("f", HANDED_ON, ids=lambda f: f.__name__)
def test_what_a_trip_hands_on_is_not_read_back(f):
    """The window is filled before the loop: an `if` asks whether there is a first trip."""
    _, text = loops_of(s2s.jit(f), *given(f, SHAPES[f][0]))
    lines = [line.strip() for line in text.split("\n")]
    loop = max(k for k, line in enumerate(lines) if line.startswith("for "))
    begins = max(k for k, line in enumerate(lines[:loop]) if line.startswith("if "))
    assert any(
        " = u[" in line or " = total[" in line or " = v[" in line for line in lines[begins:loop]
    )


LOADED_BEFORE_A_LOOP = re.compile(r"^( +)t(_\d+)? = u\[(i|0|n)\]\n(\1t.* = .*\n)*\1for ", re.M)


@pytest.mark.parametrize(
    "f", [pairs, pairs_upwards, pairs_downwards, first_stays], ids=lambda f: f.__name__
)
def test_what_stays_is_a_scalar(f):
    _, text = loops_of(s2s.jit(f), *given(f, (6,)))
    assert LOADED_BEFORE_A_LOOP.search(text)


@pytest.mark.parametrize(
    "f",
    [pairs_with_itself, pairs_one_off, pairs_from_the_end, first_is_met, another_may_be_it],
    ids=lambda f: f.__name__,
)
def test_what_may_be_met_elsewhere_stays_in_memory(f):
    _, text = loops_of(s2s.jit(f), *given(f, (6,)))
    assert not LOADED_BEFORE_A_LOOP.search(text)


def test_what_an_adjoint_adds_to_one_element_is_added_up_first():
    """Loops around may then share the element between threads."""
    def loss(w, x, n):
        total = 0.0
        for i in range(len(x)):
            for j in range(n):
                total += np.sin(w[i] * x[i] + j)
        return total

    args = np.ones(3), np.arange(3.0), 4
    found = s2s.grad(loss)
    loops, text = loops_of(found, *args)
    np.testing.assert_allclose(loops(*args), found(*args), rtol=1e-14)
    assert re.search(r"^ +w_bar\[i\] \+= t(_\d+)?$", text, re.M)


@pytest.mark.parametrize(
    "f, sign",
    [(all_pairs, "-"), (all_pairs_of_both_signs, "+")],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_what_an_adjoint_adds_to_two_elements_that_may_be_one_is_added_up_first(f, sign):
    """LLVM makes no vectors of a loop that takes from u_bar[i], or writes it, in each trip."""
    found, args = s2s.grad(lambda u, k, n: np.sum(f(u, k, n)), argnums=(0, 1)), given(f, (6,))
    _, text = loops_of(found, *args)
    assert re.search(rf"^ +u_bar\[i\] \{sign}= t(_\d+)?$", text, re.M)
    assert len(re.findall(r"u_bar\[j\] [+-]= ", text)) == 1 and not re.search(
        r"^ +t\w* -= ", text, re.M
    )


def test_single_precision_stays_single():
    args = given(sweep, (7,), np.float32)
    loops, _ = loops_of(s2s.jit(sweep), *args)
    assert loops(*args).dtype == np.float32
    np.testing.assert_allclose(loops(*args), sweep(*args), rtol=1e-6)


@pytest.mark.lengthy
def test_a_loop_that_surely_has_a_trip_stands_in_no_if():
    def total(x):
        y = np.zeros(5)
        for i in range(1, 5):
            y[i] = y[i - 1] * 0.5 + x[i]
        for i in range(4):
            y[0] = y[0] + x[i] * y[4]
        return y

    x = np.arange(5.0)
    loops, text = loops_of(s2s.jit(total), x)
    assert "if " not in text, text
    np.testing.assert_allclose(loops(x), total(x), rtol=1e-14)


@pytest.mark.compile
def test_compiled():
    u, k, n = given(grid_sweep, (9, 8))
    gradient = s2s.grad(lambda u, k, n: np.sum(grid_sweep(u, k, n) ** 2), argnums=(0, 1))
    for found, expected in zip(s2s.jit(gradient)(u, k, 3), gradient(u, k, 3)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_is_read_after_it_is_overwritten_is_a_copy():
    """Arrays of length 1: their nests are single ops, and the adjoint clears q_bar[0, 0] before it
    reads what that was.
    """
    def loss(a, b, q):
        for i in range(len(a)):
            q[:] = np.outer(b, np.sin(a))
            a[i] = b[i]
        return np.sum(np.tanh(q[::-1]))

    args = np.array([0.2]), np.array([0.3]), np.array([[0.4]])
    loops, _ = loops_of(s2s.jit(s2s.grad(loss, argnums=(0, 1, 2))), *args)
    t = np.tanh(0.3 * np.sin(0.2))
    for found, expected in zip(
        loops(*args), [(1 - t * t) * 0.3 * np.cos(0.2), (1 - t * t) * np.sin(0.2), 0.0], strict=True
    ):
        np.testing.assert_allclose(found.item(), expected, rtol=1e-14)
