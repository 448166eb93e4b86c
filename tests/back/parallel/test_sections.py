"""Loops in order that can run at the same time: which are found, and that they give what they give
one after the other.
"""

import random

import numpy as np
import pytest
import split

import s2s

X, Y = np.linspace(0.3, 1.1, 7), np.linspace(-0.5, 0.8, 9)


def two_recurrences(x, y):
    a = 0.3
    for i in range(len(x)):
        a = 0.9 * a + np.sin(x[i] * a)
    b = 0.2
    for j in range(len(y)):
        b = 0.8 * b + np.cos(y[j] + b)
    return a * b


def forwards_and_backwards(x, y):
    n = len(x)
    left, right = np.zeros(n), np.zeros(n)
    carry = 0.0
    for i in range(n):
        carry = np.tanh(carry + x[i])
        left[i] = carry
    carry = 0.0
    for i in range(n - 1, -1, -1):
        carry = np.tanh(carry - x[i])
        right[i] = carry
    return np.dot(np.sort(left), np.sort(right)) + y[0]


def three_kinds_of_numbers(x, y):
    count, biggest, some = 0, -1.0, False
    for i in range(len(x)):
        if x[i] * (count + 1) > 0.5:
            count += 1
    for j in range(len(y)):
        biggest = max(biggest * 0.9, y[j])
    for i in range(len(x) - 1, -1, -1):
        some = x[i] > 0.9 or not some
    return count * biggest * (2.0 if some else 3.0) + 0.0 * x[0]


def second_reads_a_number(x, y):
    a = 0.3
    for i in range(len(x)):
        a = 0.9 * a + np.sin(x[i] * a)
    b = a
    for j in range(len(y)):
        b = 0.8 * b + np.cos(y[j] + b)
    return b


def second_reads_an_array(x, y):
    out, a = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        a = 0.5 * a + x[i]
        out[i] = a
    b = 0.0
    for j in range(len(y) - 1, 0, -1):
        b = 0.5 * b + y[j] * out[j % 3]
    return b


def both_write_an_array(x, y):
    out, a = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        a = 0.5 * a + x[i]
        out[i] = a
    b = 0.0
    for i in range(len(x) - 1, -1, -1):
        b = 0.5 * b + y[i]
        out[i] = out[i] * b
    return np.sum(out)


def both_write_parts_of_an_array(x, y):
    out = np.zeros((2, len(x)))
    first, second = out[0], out[0]
    a = 0.0
    for i in range(len(x)):
        a = 0.5 * a + x[i]
        first[i] = a
    b = 0.0
    for i in range(len(x) - 1, -1, -1):
        b = 0.5 * b + y[i]
        second[i] = second[i] + b
    return np.sum(out)


def what_stands_between_reads_the_first(x, y):
    out, a = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        a = 0.5 * a + x[i]
        out[i] = a
    scale = out[2]
    b = 0.0
    for j in range(len(y)):
        b = 0.5 * b + y[j] * scale
    return b + a


def a_check_stands_between(x, y):
    a = 0.0
    for i in range(len(x)):
        a = 0.5 * a + x[i]
    if len(y) < 3:
        raise ValueError("too short")
    b = 0.0
    for j in range(len(x) - 1, -1, -1):
        b = 0.5 * b + y[j]
    return a * b


def prints(x, y):
    a = 0.0
    for i in range(len(x)):
        a = 0.5 * a + x[i]
        if a > 100.0:
            print(a)
    b = 0.0
    for j in range(len(y)):
        b = 0.5 * b + y[j]
        if b > 100.0:
            print(b)
    return a * b


AT_ONCE = [two_recurrences, forwards_and_backwards, three_kinds_of_numbers]
IN_TURN = [
    second_reads_a_number,
    second_reads_an_array,
    both_write_an_array,
    both_write_parts_of_an_array,
    what_stands_between_reads_the_first,
    a_check_stands_between,
    prints,
]


def check(t, args) -> str:
    """The text in sections, which in any order give what the loops give."""
    whole, parts = split.modules(t, *args)
    expected = split.run(whole, *args)
    for seed in range(4):
        assert split.is_same(split.run(parts, *args, seed=seed), expected), parts.text
    return parts.text


@pytest.mark.parametrize("f", AT_ONCE, ids=lambda f: f.__name__)
def test_loops_that_can_run_at_once(f):
    assert "_sections(" in check(s2s.jit(f), (X, Y))
    check(s2s.jit(s2s.value_and_grad(f, argnums=(0, 1))), (X, Y))


@pytest.mark.parametrize("f", IN_TURN, ids=lambda f: f.__name__)
def test_loops_that_need_one_another_stay_in_turn(f):
    assert "sections" not in check(s2s.jit(f), (X, Y))
    check(s2s.jit(s2s.value_and_grad(f, argnums=(0, 1))), (X, Y))


@pytest.mark.lengthy
def test_the_way_back_through_each_is_a_section():
    text = check(s2s.jit(s2s.grad(two_recurrences, argnums=(0, 1))), (X, Y))
    assert text.count("in_parts(") == 2
    assert "apart(y_bar)" in text and "apart(b_bar)" not in text  # which is a number
    assert """\
            for j in range(n_1 - 1, -1, -1):
                t_1 = b_bar * np.sin(t_tape[j])
                y_bar[j] -= t_1
                b_bar = 0.8 * b_bar - t_1
""" in text


LOOPS = """
    for i in range({n}):
        {a} = 0.5 * {a} + {s}[i] * {t}
        {u}[i] = {a} + {v}[i]
""", """
    for i in range({n} - 1, -1, -1):
        {t} = 0.3 * {a}
        {a} = {t} - {s}[i]
        {u}[i] = {u}[i] * {t} + {v}[i]
""", """
    for k in range(3):
        for i in range({n}):
            {a} = np.cos({a} + {v}[i] * {s}[k])
        {u}[k] = {a}
""", """
    for i in range(1, {n}):
        {u}[i] = {u}[i - 1] * 0.5 + {s}[i] * {a}
""", """
    for i in range({n}):
        {b} = {a} + {b} * {s}[i]
        if {b} > 2.0:
            {b} = {b} - 2.0
"""
BETWEEN = [
    "{a} = {b} * 0.5",
    "{u} = np.zeros(7)",
    "{u} = {v}[:] * 1.0",
    "{t} = {u}[2]",
    "{u} = {v}",
    "{a} = 0.25",
    "{u}[1] = {a}",
    "{b} = {t} + {a}",
    "{u} = {v} if {a} > 0.0 else {w}",
]


def some_program(seed: int) -> str:
    r = random.Random(seed)
    lines = [
        "def f(x, y):",
        "    a, b, c, d, t, e = 0.3, 0.2, 0.1, 0.4, 0.5, 0.6",
        "    u, v, w = np.zeros(7), np.ones(7), np.zeros(7)",
    ]
    for _ in range(r.randint(3, 6)):
        numbers, arrays = r.sample("abcdte", 3), r.sample("uvw", 3)
        names = (
            dict(zip("abt", numbers))
            | dict(zip("uvw", arrays))
            | {"s": r.choice([*"xyuvw"]), "n": r.choice([5, 7])}
        )
        lines.append(r.choice(LOOPS).strip("\n").format(**names))
        if r.random() < 0.4:
            lines.append("    " + r.choice(BETWEEN).format(**names))
    lines.append("    return a + b + c * d + t + e + np.sum(u) + 2.0 * np.sum(v * w)")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    f = s2s.from_source(some_program(seed), {"np": np})
    args = X, np.linspace(0.7, -0.4, 7)
    check(s2s.jit(f), args)
    check(s2s.jit(s2s.grad(f, argnums=(0, 1))), args)
