"""Loops that LLVM can vectorise call vector math, and others libm: by the text before and after."""

import re

import numpy as np
import pytest

import s2s
from s2s.back.loop_pipeline import lower
from s2s.back.loops.vectorise_calls import vectorise_calls
from s2s.back.print.printer import render
from s2s.runtime.kernels import vector_math

X, Y = np.linspace(0.1, 1.0, 40), np.linspace(-0.5, 0.5, 40)


def around_the_pass(f, *args):
    """The loops of `f` before and after the pass; both compute what `f` does."""
    lowered = lower(s2s.jit(f).lower(*args).function)
    texts = [render(lowered).text]
    texts.append(render(vectorise_calls(lowered)).text)
    for text in texts:
        module = {name: getattr(vector_math, name) for name in vector_math.__all__}
        exec(text, module)
        found = module[re.findall(r"^def (\w+)", text, re.M)[-1]](*map(np.copy, args))
        np.testing.assert_allclose(found, f(*map(np.copy, args)), rtol=1e-13)
    return texts


def calls(text):
    """The names of the functions that are called in a text, but for those of loops and lengths."""
    return sorted(set(re.findall(r"(?:np\.|vector_)(?:exp|sin|cos|log|tanh|sqrt|power)\b", text)))


def elementwise(x, y):
    return np.exp(x) * np.sin(y)


def summed(x, y):
    total = 0.0
    for i in range(len(x)):
        total += np.cos(x[i]) * y[i]
    return total


def backwards(x, y):
    z = np.empty(len(x))
    for i in range(len(x) - 1, -1, -1):
        z[i] = np.log(x[i]) + y[i]
    return z


def largest(x, y):
    return np.max(np.exp(-x * y))


@pytest.mark.parametrize("f", [elementwise, summed, backwards, largest], ids=lambda f: f.__name__)
def test_independent_trips_call_vector_math(f):
    before, after = around_the_pass(f, X, Y)
    assert calls(before) == sorted(name.replace("vector_", "np.") for name in calls(after))
    assert all(name.startswith("vector_") for name in calls(after)) and calls(after)


def recurrence(x, y):
    s = x[0]
    for i in range(len(x)):
        s = np.sin(s) + y[i]
    return s


def until_it_is_large(x, y):
    total = 0.0
    for i in range(len(x)):
        total += np.exp(x[i])
        if total > 9.0:
            break
    return total


def read_after_it_is_written(x, y):
    z = np.zeros(len(x) + 1)
    for i in range(len(x)):
        z[i + 1] = np.cos(z[i]) * x[i]
    return z


@pytest.mark.parametrize("f", [recurrence, until_it_is_large, read_after_it_is_written],
                         ids=lambda f: f.__name__)
def test_trips_that_wait_for_one_another_call_libm(f):
    before, after = around_the_pass(f, X, Y)
    assert before == after and calls(after)


def of_one_number(x, y):
    return np.sin(x[0]) * np.exp(y[1])


def test_a_number_alone_calls_libm():
    before, after = around_the_pass(of_one_number, X, Y)
    assert before == after


def rows_of_three(x, y):
    z = np.empty((len(x), 3))
    for i in range(len(x)):
        for k in range(3):
            z[i, k] = np.exp(x[i] * k)
    return z


def test_a_short_loop_inside_is_unrolled_and_counts_as_none():
    _, after = around_the_pass(rows_of_three, X, Y)
    assert calls(after) == ["vector_exp"]


def of_integers(x, y):
    total = 0
    for i in range(len(x)):
        total += abs(i - 3) ** 2
    return total + np.sqrt(x[0])


def test_what_vector_math_has_not_stays():
    before, after = around_the_pass(of_integers, X, Y)
    assert before == after
