"""Strings that a loop changes: the states of machines, the kinds of events."""

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.3, 0.9, 0.4, 1.2, 0.1])


def state_machine(x):
    state = "idle"
    e = 0.0
    for v in x:
        if state == "idle":
            if v > 0.5:
                state = "run"
                e += v
        elif state == "run":
            e += v * v
            if v < 0.45:
                state = "stop"
        else:
            e -= v
    return e


def chosen_by_the_last(x):
    mode = "a"
    for v in x:
        if mode == "a":
            mode = "b"
        else:
            mode = "a"
    return x[0] ** 2 if mode == "b" else x[1]


class Machine:
    def __init__(self):
        self.state = "off"
        self.e = 0.0
    def step(self, v):
        if self.state == "off" and v > .5:
            self.state = "on"
        elif self.state == "on":
            self.e = self.e + v * v
            if v > 1.0:
                self.state = "off"


def machine(x):
    m = Machine()
    for v in x:
        m.step(v)
    return m.e + (1.0 if m.state == "on" else x[0])


def until_done(x):
    state, k, s = "go", 0, 0.0
    while state != "done":
        s += x[k] * (2.0 if state == "go" else 3.0)
        k += 1
        state = "done" if k == 4 else "slow" if s > 1.0 else state
    return s * s


def shown_where_it_raises(x):
    state = "a"
    for v in x:
        if v > 1:
            state = "b"
    if state == "c":
        raise ValueError(f"bad {state}")
    return x[0] ** 2


def texts_compared(x):
    last = "x"
    n = 0.0
    for v in x:
        kind = "big" if v > .5 else "small"
        if kind != last:
            n += v
        last = kind
        for w in x:
            if w > v:
                last = "mid"
                break
    return n * x[0]


PROGRAMS = [
    state_machine,
    chosen_by_the_last,
    machine,
    until_done,
    shown_where_it_raises,
    texts_compared,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_words(f):
    judge(f, X)


@pytest.mark.compile
@pytest.mark.parametrize("f", [state_machine, machine, texts_compared])
def test_words_compiled(f):
    judge(f, X, compiled=True)


def names_the_state(x):
    state = "cold"
    for v in x:
        if v > 1:
            state = "hot"
    if state != "cold":
        raise ValueError(f"it is {state}")
    return x[0]


def test_the_word_is_shown():
    with pytest.raises(ValueError, match="it is hot"):
        s2s.grad(names_the_state)(X)


def test_a_state_is_a_number_in_generated_code():
    t = s2s.value_and_grad(state_machine)
    t(X)
    assert "if state == 0:" in t.source and "state = 2" in t.source
