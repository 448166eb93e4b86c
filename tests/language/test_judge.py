"""The judge accepts what is right, and says what is wrong."""

import numpy as np
import pytest
from judge import judge

import s2s


def decay(x, a, n):
    s = 0.0
    for i in range(n):
        a[i] = a[i] * x
        s += np.sin(a[i]) * x
    return s


def layer(p, n):
    w, b = p
    return np.tanh(w * b) * n, w.sum()


@pytest.mark.lengthy
def test_number():
    judge(decay, 0.3, np.arange(4.0), 3)


def test_tree_of_arguments_and_results():
    judge(layer, (np.arange(3.0), 0.2), 3)


@pytest.mark.compile
def test_compiled():
    judge(decay, 0.3, np.arange(4.0), 3, compiled=True)


def test_wrong_gradient_is_noticed(monkeypatch):
    right = s2s.value_and_grad

    def wrong(f, argnums):
        def call(*args):
            value, (x_bar, *others) = right(f, argnums=argnums)(*args)
            return value, (x_bar * 1.001, *others)
        return call

    monkeypatch.setattr(s2s, "value_and_grad", wrong)
    with pytest.raises(AssertionError, match="reverse"):
        judge(decay, 0.3, np.arange(4.0), 3)


def test_changed_argument_is_noticed(monkeypatch):
    def wrong(f, argnums):
        return lambda x, a, n: (f(x, a, n), (0.0, a))

    monkeypatch.setattr(s2s, "value_and_grad", wrong)
    with pytest.raises(AssertionError, match="changed its caller's arguments"):
        judge(decay, 0.3, np.arange(4.0), 3)
