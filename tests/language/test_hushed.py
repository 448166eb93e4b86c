"""A derivative warns of nothing that the program itself would not have warned of, and of what it
would: under warnings and under errors.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import special

import s2s

LINE, ZERO = np.array([0.3, -1.2, 2.0]), np.array([0.0, 4.0])


def distances(x):
    return np.sqrt((x[:, None] - x) ** 2)


def pairs(x):
    return np.sum(1.0 / distances(x)[np.triu_indices(len(x), 1)])


def chosen(x):
    return np.sum(np.where(x > 0.0, np.sqrt(np.abs(x)), x * x))


def python_number(x):
    return math.sqrt(x) + 3.0 * x


def loop(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            r = np.sqrt((x[i] - x[j]) ** 2)
            if i != j:
                s += 1.0 / r
    return s


def ignored(x):
    with np.errstate(divide="ignore"):
        w = 1.0 / distances(x)
    np.fill_diagonal(w, 0.0)
    return np.sum(w)


def helper(x, n):
    y = np.zeros(n)
    for i in range(n):
        y[i] = np.sqrt(x[i])
        if i > 10:
            y[i] = 0.0
    for k in range(3):
        if k > 5:
            y = y * 2.0
    return y


def called(x):
    return np.sum(helper(x, len(x)) ** 3)


SILENT = [
    (pairs, LINE),
    (chosen, np.array([0.3, -0.8, 0.0])),
    (loop, LINE),
    (ignored, LINE),
    (called, ZERO),
    (python_number, 0.0),
    (lambda x: np.sum(np.sqrt(x)), ZERO),  # whose derivative is inf, and no warning
    (lambda x: np.sum(np.sqrt(x * x)), ZERO),
    (lambda x: np.sum(np.arccos(x)), np.array([1.0, 0.0])),
    (lambda x: np.sum(np.abs(x) ** 0.5), ZERO),
    (lambda x: np.sum(x ** x[1]), np.array([0.0, 0.5])),
    (lambda x: np.sum(np.arctan2(x, x)), ZERO),
    (lambda x: np.sum(special.xlogy(x, x)), ZERO),
    (lambda x: np.sum(np.cbrt(x)), ZERO),
]
WARNING = [
    (lambda x: np.sum(np.log(x) * np.sqrt(x)), ZERO, "divide by zero"),
    (lambda x: np.sum(1.0 / x) + np.sum(np.sqrt(x)), ZERO, "divide by zero"),
    (lambda x: np.sum(np.sqrt(np.sqrt(x - 1.0) + x)), ZERO, "invalid value"),
]
WAYS = {
    "grad": lambda f, x: s2s.grad(f)(x),
    "value_and_grad": lambda f, x: s2s.value_and_grad(f)(x),
    "jvp": lambda f, x: s2s.jvp(f, (x,), (x * 0 + 1.0,)),
    "linearize": lambda f, x: s2s.linearize(f, x)[1](x * 0 + 1.0),
    "hessian": lambda f, x: s2s.hessian(f)(x),
    "lanes": lambda f, x: s2s.vmap(s2s.grad(f))(np.stack([x, x])),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f, x", SILENT, ids=lambda a: getattr(a, "__name__", ""))
def test_no_warnings_of_its_own(f, x, way):
    with warnings.catch_warnings(), np.errstate(divide="raise", invalid="raise", over="raise"):
        warnings.simplefilter("error")
        assert np.isfinite(f(x))
        WAYS[way](f, x)


@pytest.mark.parametrize("way", ["value_and_grad", "jvp"])
@pytest.mark.parametrize("f, x, message", WARNING, ids=[message for *_, message in WARNING])
def test_warnings_of_the_program(f, x, message, way):
    for call in (f, lambda x: WAYS[way](f, x)):
        with pytest.warns(RuntimeWarning, match=message):
            call(x)
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=message):
            call(x)


def test_a_program_in_which_nothing_is_steep_is_not_hushed():
    for f in (
        lambda x: np.sum(np.log(x) / x),
        lambda x: np.sum(np.sqrt(1.0 + x * x)),
        lambda x: np.sum(np.exp(x) ** 3 * np.tanh(x)),
    ):
        gradient = s2s.value_and_grad(f)
        gradient(np.array([1.0, 2.0]))
        assert "errstate" not in gradient.source


def test_the_text_warns_of_nothing_either():
    gradient = s2s.grad(called)
    gradient(ZERO)
    namespace: dict = {}
    exec(gradient.source, namespace)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        namespace["called_grad"](ZERO)


@pytest.mark.compile
def test_compiled_code_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert s2s.jit(s2s.grad(pairs))(LINE).shape == LINE.shape
