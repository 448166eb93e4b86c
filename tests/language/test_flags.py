"""Flags that decide which lines run: literals, defaults, arguments and captured values."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import s2s
from s2s.errors import S2SError

SETTINGS = SimpleNamespace(full=False, order=1, verbose=False)
DEBUG = False


def update(x, full=False):
    y = np.sin(x) * x
    if full:
        return y, 2.0 * x
    return y


def with_the_default(x):
    return update(x) * 3.0


def with_literals(x):
    y, slope = update(x, full=True)
    return y * slope + update(x, False)


def of_a_mode(x, mode="plain", order=1):
    if mode == "both":
        return x, x * x
    if order == 2:
        return [x * x]
    return x * x * x


def of_a_default_mode(x):
    return of_a_mode(x) + of_a_mode(x, "both")[1] + of_a_mode(x, order=2)[0]


def of_settings(x):
    if SETTINGS.full:
        return x, SETTINGS
    if SETTINGS.order == 2:
        with open("nowhere") as file:
            return float(file.read())
    return x**3


def of_a_variable(x):
    if DEBUG:
        breakpoint()
    return x * x


def by_two_calls(x, full):
    return update(x, full)


def of_a_flag_that_is_handed_on(x):
    return by_two_calls(x, True)[1] * by_two_calls(x, False)


class Model:
    def __init__(self, deep):
        self.deep = deep

    def value(self, x):
        if self.deep:
            return {"y": x, "z": x * x}
        return x * x

    def loss(self, x):
        y = self.value(x)
        return y["z"] * 2 if self.deep else y


PROGRAMS = [with_the_default, with_literals, of_a_default_mode, of_settings, of_a_variable,
            of_a_flag_that_is_handed_on, update, Model(False).loss, Model(True).loss]


@pytest.mark.parametrize("f", PROGRAMS)
def test_only_the_arm_that_a_flag_chooses_is_read(f):
    wanted = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(s2s.grad(f)(0.7), wanted, rtol=1e-8)
    np.testing.assert_allclose(s2s.jvp(f)(0.7, *[1.0] if f is not update else [False, 1.0, 0.0])[1],
                               wanted, rtol=1e-8)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_only_the_arm_that_a_flag_chooses_is_compiled(f):
    wanted = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(0.7), wanted, rtol=1e-8)


def test_a_captured_flag_may_change():
    model = Model(False)
    slope = s2s.grad(model.loss)
    assert slope(3.0) == 6.0
    model.deep = True
    assert slope(3.0) == 12.0
    model.deep = False
    assert slope(3.0) == 6.0


def test_an_argument_may_choose_the_kind_of_result():
    f = s2s.jit(update)
    assert f(2.0) == update(2.0) and f(2.0, True) == update(2.0, True) == f(2.0, full=True)


def test_a_flag_of_a_run_is_refused_as_before():
    with pytest.raises(S2SError, match="the result is a tuple of 2 on one path"):
        s2s.grad(lambda x: update(x, x > 1.0))(2.0)


def scaled(x, twice=False):
    y = x
    for _ in range(3):
        y = np.sin(y) * x
    if twice:
        y = y * 2
    return y


def test_a_flag_both_of_whose_arms_are_read_is_an_argument():
    """So that one text serves both."""
    source = s2s.grad(lambda x: scaled(x) * scaled(x, True)).lower(0.5).source
    assert source.count("def scaled_fwd(x, twice):") == 1
