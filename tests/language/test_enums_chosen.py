"""Members of enums that a run chooses: states of machines, kinds of things."""

from collections import Counter
from enum import Enum, auto

import numpy as np
import pytest
from differences import differences

import s2s

P = np.array([0.8, 1.5, 0.3])


class Mode(Enum):
    IDLE = 0
    RUN = 1
    STOP = 2


class Side(Enum):
    LEFT = auto()
    RIGHT = auto()

    @property
    def sign(self):
        return 1.0 if self is Side.LEFT else -1.0


class Machine:
    def __init__(self, gain):
        self.mode, self.x, self.gain, self.ticks = Mode.IDLE, 0.1, gain, 0
        self.handlers = {Mode.IDLE: self.idle, Mode.RUN: self.run, Mode.STOP: self.stop}

    def idle(self):
        self.x += 0.1 * self.gain
        if self.x > 0.3:
            self.mode = Mode.RUN

    def run(self):
        self.x *= 1 + 0.2 * self.gain
        if self.x > 1.0:
            self.mode = Mode.STOP

    def stop(self):
        self.x *= 0.9

    def step(self):
        self.handlers[self.mode]()
        self.ticks += 1


def machine(p, n):
    made = Machine(p[0])
    for _ in range(n):
        made.step()
    return made.x * p[1] + 0.01 * made.ticks


def compared(p, n):
    mode, x = Mode.IDLE, p[0]
    for k in range(n):
        if mode is Mode.IDLE and k > 1:
            mode = Mode.RUN
        elif mode == Mode.RUN:
            x = x * p[1]
            mode = Mode.STOP if x > 2 else mode
        elif mode in (Mode.STOP, None):
            x = np.sin(x) + p[2]
    return x if mode is not Mode.STOP else 2 * x


def matched(p, n):
    x, modes = p[0], [Mode.IDLE, Mode.RUN, Mode.STOP, Mode.RUN]
    for k in range(n):
        match modes[k % 4]:
            case Mode.IDLE:
                x = x + p[1]
            case Mode.RUN:
                x = x * p[2]
            case _:
                x = np.cos(x)
    return x


def its_value(p, n):
    side, x = Side.LEFT, p[0]
    rates = {Side.LEFT: p[1], Side.RIGHT: p[2]}
    for k in range(n):
        x = 0.9 * x + side.sign * rates[side] * (k + side.value) * len(side.name)
        rates[side] *= 1.1
        side = Side.RIGHT if side is Side.LEFT else Side.LEFT
    return x + (1.0 if isinstance(side, Side) else x)


def perhaps_none(p, n):
    found = None
    for k in range(n):
        if p[k % 3] > 1.0:
            found = Mode.RUN if k > 2 else Mode.STOP
            break
    if found is None:
        return p[0]
    return p[1] ** 2 if found is Mode.RUN else p[1] * p[2]


def no_name_yet(p, n):
    name, x = None, p[0]
    for k in range(n):
        if name is None and x > 0.5:
            name = "big" if k else "first"
        elif name == "big":
            x = x + p[1]
        x = x * p[2] + 0.5
    return x * p[1] if name else x


def counted(p, n):
    words = "the cat sat on the mat the end cat".split()
    counts = Counter(words)
    weights = dict(zip(sorted(counts), [p[0], p[1], p[2], p[0] * p[1], p[1] * p[2], 1.0]))
    score = sum(weights[w] * counts[w] for w in words)
    return score + sum(c * weights[w] for w, c in counts.most_common(2))


PROGRAMS = [machine, compared, matched, its_value, perhaps_none, no_name_yet, counted]


@pytest.mark.lengthy
@pytest.mark.parametrize("n", [0, 1, 4, 9])
@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives_are_those_of_differences(f, n):
    value, slope = s2s.value_and_grad(f)(P, n)
    expected = differences(f, P, n)
    np.testing.assert_allclose(value, f(P, n), rtol=1e-14)
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(s2s.jacfwd(f)(P, n), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_derivatives_are_those_of_differences(f):
    gradient = s2s.jit(s2s.grad(f))
    for n in (0, 9):
        np.testing.assert_allclose(gradient(P, n), differences(f, P, n), rtol=1e-6, atol=1e-7)


def test_lanes_choose_each_for_itself():
    def f(p):
        mode = Mode.RUN if p[0] > 0.5 else Mode.STOP
        return p[1] ** 2 if mode is Mode.RUN else p[2]

    several = np.stack([P, P - 0.6])
    np.testing.assert_allclose(s2s.vmap(f)(several), [f(p) for p in several])


def test_a_mode_is_shown_as_python_shows_it(capsys):
    def f(x):
        mode = Mode.RUN if x > 0 else Mode.STOP
        print(f"now {mode}", mode.name)
        return x * mode.value

    f(0.3)
    expected = capsys.readouterr().out
    assert s2s.grad(f)(0.3) == 1.0
    assert capsys.readouterr().out == expected
