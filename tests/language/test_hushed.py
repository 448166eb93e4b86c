"""A derivative warns of nothing that the program itself would not have warned of, and of what it
would: under warnings and under errors.
"""

from __future__ import annotations

import contextlib
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


# ----------------------------------------------------------- what the program does not want to hear


@contextlib.contextmanager
def quietly():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def says(x):
    if x[0] < 5.0:
        warnings.warn("a small number", stacklevel=1)
    return np.sum(x**2)


def in_its_own_manager(x):
    with quietly():
        y = np.log(x) + says(x)
    return np.sum(y[1:])


def said_by_a_function(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return says(x) * 2.0


def said_in_some_trips(x):
    s = 0.0
    for v in x:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="a small")
            if v > 1.0:
                s += v
                continue
            s += says(x) * v
    return s


def made_real(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=np.exceptions.ComplexWarning)
        return np.sum(((x + 1j) ** 3).astype(float))


def made_real_elsewhere(x):
    def real(z):
        return z.astype(np.float64)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = real(np.exp(1j * x))
    return np.sum(y * x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [in_its_own_manager, said_by_a_function, said_in_some_trips,
                               made_real, made_real_elsewhere], ids=lambda f: f.__name__)
def test_ignored_by_the_program(f, way):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, _ = f(ZERO), WAYS[way](f, ZERO)
        assert s2s.value_and_grad(f)(ZERO)[0] == value


def said_after(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = says(x)
    return y + says(x)


def other_class(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        y = says(x) + np.sum(np.sqrt(x - 9.0))
    return y


def other_text(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "a large")
        y = says(x)
    return y


@pytest.mark.parametrize("way", ["value_and_grad", "jvp"])
@pytest.mark.parametrize("f", [said_after, other_class, other_text], ids=lambda f: f.__name__)
def test_not_ignored_by_the_program(f, way):
    def heard(call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call(ZERO)
        return [str(each.message) for each in found]

    plain = heard(f)
    assert heard(lambda x: WAYS[way](f, x)) == plain and "a small number" in plain
