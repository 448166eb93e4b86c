"""What the user has unpacked is printed as one assignment again, where it is of that length."""

from __future__ import annotations

import ast
from textwrap import dedent

import numpy as np
import pytest
from differences import differences

import s2s
from s2s.back.print.chain_constants import chain_constants

X = np.array([0.4, 1.3, -0.7])
V = np.array([[0.5, 0.2], [1.5, -0.3], [0.1, 0.9]])


def all_of_it(p, v):
    a, b, c = p
    return a * b + np.sin(c) * a


def first_two(p, v):
    a, b = p[:2]
    return a * a * b


def head(p):
    return p[:2]


def of_a_call(p, v):
    a, b = head(p)
    return a * a * b


def exponentials(p, v):
    a, b, c = np.exp(p)
    return a * b + c * c


def not_all_are_read(p, v):
    a, _, c = p
    return np.sin(a) * c


def rows(p, v):
    total = 0.0
    for x, y in v:
        total += np.sin(x * y) * p[0]
    return total


@pytest.mark.parametrize("f, said", [
    (all_of_it, ["a, b, c = p\n", "p_bar = np.array(["]), (first_two, ["a, b = t\n"]),
    (of_a_call, ["a, b = t\n"]),
    (exponentials, ["a, b, c = "]), (not_all_are_read, ["a, _, c = p\n", ", 0.0, "]),
    (rows, ["x, y = v["])], ids=lambda x: getattr(x, "__name__", ""))
def test_unpacked_again(f, said):
    gradient = s2s.grad(f)
    np.testing.assert_allclose(gradient(X, V), differences(f, X, V), rtol=1e-8, atol=1e-9)
    assert all(text in gradient.source for text in said), gradient.source
    assert "raise" not in gradient.source
    if "c = p\n" in "".join(said):
        for short in (X[:2], np.append(X, X)):
            with pytest.raises(ValueError) as of_python:
                f(short, V)
            with pytest.raises(ValueError) as of_s2s:
                gradient(short, V)
            assert str(of_python.value) == str(of_s2s.value)


def test_single_precision_stays():
    gradient = s2s.grad(all_of_it)(np.float32(X), V)
    assert gradient.dtype == np.float32


@pytest.mark.parametrize("text, chained", [
    ("a = 0.0\nb = 0.0\nc = 0", "a = b = 0.0\nc = 0"),
    ("a = 0.0\nb = -0.0\nc = False", "a = 0.0\nb = -0.0\nc = False"),
    ("if c:\n    a = 1\n    b = 1\n    x[0] = 1", "if c:\n    a = b = 1\n    x[0] = 1"),
    ("a = 'n'\nb = 'n'", "a = 'n'\nb = 'n'")])
def test_one_number_in_one_line(text, chained):
    body = ast.parse(dedent(text)).body
    chain_constants(body)
    assert ast.unparse(body) == chained
