"""Functions that return functions: closures over what only the call that made them had."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from judge import judge

import s2s


def scaled_by(k):
    half = 0.5 * k

    def scaled(u, more=1.0):
        return np.sin(u) * half * more + k

    return scaled


def shifted_by(k):
    return lambda u: np.sin(u) + k


def compose(f, g):
    return lambda u: f(g(u))


def pair(x):
    return (lambda u: u * x), x * 2


def reader(v):
    w = v * 2
    return lambda k: w[k] * v[0]


def made_and_called(x):
    g, (h, y) = scaled_by(np.sin(x)), pair(x)
    return g(x) + g(0.3, more=x) * h(y)


def composed(x):
    return compose(np.sin, compose(lambda v: v * x, scaled_by(x)))(x)


def kept_in_containers(x):
    gs, d = [shifted_by(x), shifted_by(2 * x)], {"g": scaled_by(x), "h": shifted_by(x)}
    return gs[0](x) * gs[1](x) + d["g"](d["h"](0.1))


def in_a_loop(x, n):
    total = 0.0
    for i in range(n):
        h = compose(shifted_by(x * i), np.sin)
        total = total + h(x)
    return total + sum(shifted_by(x)(k) for k in range(n))


def by_a_condition(x):
    g = shifted_by(x) if x > 0.4 else scaled_by(x * x)
    return g(x) + g(0.3)


def by_three_branches(x):
    if x > 0.5:
        g = compose(shifted_by(x * x), scaled_by(np.sin(x)))
    elif x > 0.2:
        def g(u, k=np.cos(x)):
            return u * k
    else:
        g = functools.partial(scaled_by(np.sin(x)), more=x * x)
    return g(x) + g(0.3)


def by_a_condition_in_a_loop(x, n):
    s = x
    for i in range(n):
        g = scaled_by(s) if s > 0.4 else shifted_by(s * i)
        s = 0.5 * g(s)
    return s


def over_arrays(a, n):
    g = reader(a) if n > 1 else reader(a[::-1])
    return g(1) + g(0)


def handed_to_a_handler(x):
    try:
        g = shifted_by(x)
        if x > 0.2:
            raise ValueError
        return 0.5
    except ValueError:
        return g(x)


PROGRAMS = [
    *(
        (f, (0.3,))
        for f in (
            made_and_called,
            composed,
            kept_in_containers,
            by_a_condition,
            handed_to_a_handler,
        )
    ),
    (by_a_condition, (0.5,)),
    *((by_three_branches, (x,)) for x in (0.05, 0.3, 0.7)),
    (in_a_loop, (0.3, 3)),
    (by_a_condition_in_a_loop, (0.3, 4)),
    *((over_arrays, (np.array([0.3, 0.4]), n)) for n in (1, 2)),
]


@pytest.mark.parametrize("f, args", PROGRAMS)
def test_returned_functions(f, args):
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize("f, args", [(by_three_branches, (0.7,)), (in_a_loop, (0.3, 3))])
def test_returned_functions_compiled(f, args):
    judge(f, *args, compiled=True)


def test_what_they_close_over_is_plain_code():
    gradient = s2s.grad(composed)
    gradient(0.3)
    assert "def " not in gradient.source.split("def composed_grad")[1]


def test_a_function_is_no_result_of_a_program():
    with pytest.raises(
        s2s.UnsupportedError, match="cannot be returned to outside the program"
    ) as caught:
        s2s.grad(shifted_by)(0.3)
    assert "call it here, and return what it computes" in str(caught.value)


def one_name_for_many_functions(x, n):
    """The `g` of the generator expression is not the one that each trip makes."""
    total = 0.0
    while n > 0:
        gs = []
        for k in (0.3, x):
            def g(u, k=k):
                return np.sin(u * k)
            gs.append(g)
        total = total + sum(g(x) for g in gs) + (lambda g: g * x)(0.5)
        n -= 1
    return total


def test_what_comprehensions_and_lambdas_bind_is_not_read():
    judge(one_name_for_many_functions, 0.4, 3)
