"""Tapes that grow are arrays in compiled code: the loop form is run as Python, and compared with
the derivative as it prints.
"""

import numpy as np
import pytest

import s2s
from s2s import pipeline
from s2s.passes import apply
from s2s.runtime.call.loop_program import NATIVE


def halve(x, r):
    while abs(x) > 1e-3:
        x = np.sin(x) * r
    return x


def nested_whiles(x, r):
    total = 0.0
    while x < 3.0:
        y = x
        while y < 4.0:
            y = y * 1.3 + r * y * y
        total += y * x
        x = x * 1.2 + 0.01 * y
    return total


def while_in_for(x, r):
    total = 0.0
    for i in range(5):
        y = x + i
        while y > 0.5:
            y = y * r * np.cos(0.1 * y)
        total += y
    return total


def while_in_arms(x, r):
    if x > 1.0:
        while x > 0.2:
            x = np.sin(x) * r
    else:
        while x < 3.0:
            x = np.exp(x) * 1.1
    return x * x


def while_in_one_arm(x, r):
    for i in range(4):
        if i % 2 == 0:
            y = x
            while y > 0.3:
                y = y * r - 0.1 * y * y
            x = x + y
        else:
            x = x * r
    return x


def ragged(x, r):
    total = 0.0
    for i in range(6):
        for j in range(i):
            t = np.sin(x * j) + r
            x = x + 0.01 * t * t
        total = total + x * i
    return total


def ragged_with_conditions(x, r):
    total = 0.0
    for i in range(6):
        for j in range(i):
            if x * j > 1.0:
                x = np.sin(x) + r
            else:
                x = x * x + 0.1
        total = total + x
    return total


def ragged_downwards(x, r):
    for i in range(6):
        for j in range(7, i, -1):
            x = x + 0.01 * np.sin(x * j) * r
    return x


def ragged_in_steps(x, r):
    for i in range(6):
        for j in range(i, 9, 2):
            x = x + 0.01 * np.sin(x * j) * r
    return x


def breaks(x, r):
    total = 0.0
    for i in range(50):
        while x > 0.1:
            x = x * r
            if x < 0.2:
                break
            total += x * x
        x = x + 1.0
        if total > 20.0:
            break
    return total * x


def never_entered(x, r):
    while x > 100.0:
        x = np.sin(x) * r
    return x * r


def more_than_the_first_room(x, r):
    n = 0
    while n < 300:
        x = x + 0.001 * np.sin(x * r)
        n += 1
    return x


def two_after_one_another(x, r):
    while x > 0.5:
        x = np.sin(x) * r
    while x < 2.0:
        x = np.exp(x) * 1.01
    return x


def chosen_each_trip(x, r):
    total = 0.0
    while abs(x) > 0.05:
        if x > 0.4:
            y = x
            while y > 0.3:
                y = np.sin(y) * r
            total += y * x
        x = x * r * 0.9
    return total


PROGRAMS = [
    halve,
    nested_whiles,
    while_in_for,
    while_in_arms,
    while_in_one_arm,
    ragged,
    ragged_with_conditions,
    ragged_downwards,
    ragged_in_steps,
    breaks,
    never_entered,
    more_than_the_first_room,
    two_after_one_another,
    chosen_each_trip,
]


def loops_of(t, *args):
    """The function that `.loops` shows, without Numba, and its text."""
    text = t.lower(*args).loops
    namespace = {}
    exec(text, namespace)
    name = text[text.rindex("\ndef ") + 5:].split("(")[0]
    return namespace[name], text


def flat(x):
    return [leaf for part in x for leaf in flat(part)] if isinstance(x, (tuple, list)) else [x]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [0.7, 2.5])
def test_gradient_in_loop_form(f, x):
    gradient = s2s.value_and_grad(f, argnums=(0, 1))
    loops, text = loops_of(gradient, x, 0.8)
    assert ".append(" not in text and ".pop(" not in text
    np.testing.assert_allclose(flat(loops(x, 0.8)), flat(gradient(x, 0.8)), rtol=1e-14)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives_in_loop_form(f):
    twice = s2s.grad(lambda x, r: s2s.grad(f, argnums=1)(x, r) * x, argnums=(0, 1))
    loops, _ = loops_of(twice, 0.7, 0.8)
    np.testing.assert_allclose(flat(loops(0.7, 0.8)), flat(twice(0.7, 0.8)), rtol=1e-13)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_lanes_of_tapes(f):
    each = s2s.vmap(s2s.grad(f, argnums=(0, 1)), in_axes=(0, None))
    x = np.array([0.3, 2.5, 0.7, 1.1])
    loops, text = loops_of(each, x, 0.8)
    np.testing.assert_allclose(flat(loops(x, 0.8)), flat(each(x, 0.8)), rtol=1e-14)


def test_lanes_share_one_array():
    _, text = loops_of(s2s.vmap(s2s.grad(halve), in_axes=(0, None)), np.ones(3), 0.8)
    assert text.index("np.empty(64)") < text.index("for lane in")


def test_trips_that_follow_one_another_share_one_array():
    _, text = loops_of(s2s.grad(nested_whiles), 0.7, 0.8)
    main = text[text.index("def nested_whiles"):]
    assert main.count("np.empty(64)") and main.rindex("np.empty(64)") < main.index("while ")


def test_one_precision_is_kept():
    gradient = s2s.grad(halve)
    loops, text = loops_of(gradient, np.float32(2.0), np.float32(0.7))
    assert "np.empty(64, dtype=np.float32)" in text
    np.testing.assert_allclose(
        loops(np.float32(2.0), np.float32(0.7)),
        gradient(np.float32(2.0), np.float32(0.7)),
        rtol=1e-5,
    )


def test_a_counted_loop_asks_for_room_once():
    _, text = loops_of(s2s.grad(ragged), 0.7, 0.8)
    lines = [line.strip() for line in text.split("\n")]
    asked = [k for k, line in enumerate(lines) if line.startswith("if len(")]
    assert asked and all(k < lines.index("for j in range(i):") for k in asked)


def settles(x):
    while np.sum(x) > 0.1:
        x = np.sin(x) * 0.7
    return np.sum(x)


def settles_by_matrices(x):
    m = np.outer(x, x) + np.eye(2)
    n = 0
    while np.sum(m) > 0.1 and n < 40:
        m = np.sin(m) * 0.7 + 0.01 * m @ m
        n += 1
        if n % 3 == 0:
            m = m * m
    return np.sum(m) + np.sum(x) * n


def settles_twice(x):
    y = x
    while np.max(y) > 0.5:
        y = np.sin(y) * 0.9
    z = x * y
    for i in range(3):
        while np.max(z) > 0.1 * i + 0.1:
            z = z * np.cos(z * y)
    return np.sum(z)


def more_rows_than_the_first_room(x):
    n = 0
    while n < 100:
        x = np.sin(x) + 0.1 * x
        n += 1
    return np.sum(x * x)


def counted(x):
    y = np.zeros(2)
    for i in range(3):
        y = np.sin(y + x)
    return np.sum(y)


@pytest.mark.parametrize(
    "f",
    [settles, settles_by_matrices, settles_twice, more_rows_than_the_first_room, counted],
    ids=lambda f: f.__name__,
)
def test_tapes_of_arrays_of_one_shape_are_arrays(f):
    x = np.array([0.5, 1.5])
    loops, text = loops_of(s2s.grad(f), x)
    assert ".append(" not in text and "ascontiguousarray" not in text
    np.testing.assert_allclose(loops(x), s2s.grad(f)(x), rtol=1e-13)


def test_what_is_popped_is_read_where_it_stands():
    """Nothing is copied, neither on the way to the tape nor from it, and nothing is made in a
    trip.
    """
    _, text = loops_of(s2s.grad(settles), np.array([0.5, 1.5]))
    (on_the_way_back,) = [part for part in text.split("for k in ")[1:]]
    # of the argument
    assert (
        "np.empty" not in on_the_way_back
        and "np.cos(x_tape[" in on_the_way_back
        and text.count(".copy()") == 1
    )


def test_as_many_rows_as_a_counted_loop_needs():
    _, text = loops_of(s2s.grad(lambda x, n: np.sum(grows_not(x, n))), np.array([0.5, 1.5]), 4)
    assert "with_room" not in text and ".append(" not in text


def grows_not(x, n):
    y = np.zeros(2)
    for i in range(n):
        y = np.sin(y * x[:2])
    return y


def test_tapes_of_arrays_of_several_lengths_stay_lists():
    def f(x):
        while len(x) > 1:
            x = np.sin(x[1:]) * x[:-1]
        return np.sum(x)

    x = np.array([0.5, 1.5, 0.7, 1.1])
    loops, text = loops_of(s2s.grad(f), x)
    assert ".append(" in text
    np.testing.assert_allclose(loops(x), s2s.grad(f)(x), rtol=1e-14)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f",
    [settles, settles_by_matrices, settles_twice, more_rows_than_the_first_room],
    ids=lambda f: f.__name__,
)
def test_rows_compiled(f):
    x = np.array([0.5, 1.5])
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(x), s2s.grad(f)(x), rtol=1e-13)
    s2s.check_grads(f, (x,), order=1, modes=("rev",))


@pytest.mark.compile
@pytest.mark.parametrize(
    "f", [nested_whiles, ragged_with_conditions, more_than_the_first_room], ids=lambda f: f.__name__
)
def test_compiled(f):
    gradient = s2s.grad(f, argnums=(0, 1))
    np.testing.assert_allclose(s2s.jit(gradient)(0.7, 0.8), gradient(0.7, 0.8), rtol=1e-13)


def called_on_each_trip(x, r):
    total = 0.0
    for i in range(3):
        total += two_after_one_another(halve(x + i, r) + x, r)
    return total * total  # so that the way back begins when the way forth has ended


def test_a_tape_that_is_kept_on_another_stays_a_list():
    """What a function saves that is called in a loop: all these tapes are there at once."""
    gradient = s2s.grad(called_on_each_trip, argnums=(0, 1))
    loops, text = loops_of(gradient, 0.7, 0.8)
    assert "_tape_tape.append(" in text
    np.testing.assert_allclose(flat(loops(0.7, 0.8)), flat(gradient(0.7, 0.8)), rtol=1e-14)


def test_native_code_does_not_ask_whether_a_place_on_a_tape_counts_from_the_end():
    function = s2s.grad(ragged).lower(0.7, 0.8).function
    text = pipeline.render(apply(NATIVE, pipeline.loops_of(function)), native=True).text
    assert "_tape[from_front(" in text and "_tape[" not in text.replace("_tape[from_front(", "")
    assert "_tape[" in pipeline.loops_text(function) and "from_front" not in pipeline.loops_text(
        function
    )
