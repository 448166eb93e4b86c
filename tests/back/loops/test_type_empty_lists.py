"""Empty lists that Numba cannot type by themselves are written with the type of their items."""

import re

import numpy as np
import pytest

import s2s
from s2s import passes
from s2s.back.print.printer import render


def around_the_pass(f, *args):
    """The loops of `f` before and after its empty lists are typed."""
    with passes.recorded() as stages:
        _ = s2s.jit(f).lower(*args).loops
    k = [name for name, _ in stages].index("type_empty_lists")
    return [render(function).text for _, function in stages[k - 1:k + 1]]


def run(text, *args):
    module = {}
    exec(text, module)
    return module[re.findall(r"^def (\w+)", text, re.M)[-1]](*args)


def total(xs):
    found = 0.0
    for x in xs:
        found += x
    return found


def in_a_branch(x, n):
    """What a branch appends to may be another list."""
    xs = []
    for i in range(n):
        if i * x < 2.0:
            xs.append(x * i)
    return total(xs)


def of_integers(x, n):
    ks = [] if x > 0.0 else [1]
    for i in range(n):
        if i % 2 == 0:
            ks.append(i)
    found = 0
    for k in ks:
        found = found * 3 + k
    return found * x


def lists_in_a_list(x, n):
    rows = [[], []]
    for i in range(n):
        rows[i % 2].append(x + i)
    return total(rows[0]) - total(rows[1])


def never_filled(x, n):
    xs = [] if n > 0 else [x]
    return len(xs) + x


def of_arrays(x, n):
    xs = [] if n > 1 else [np.ones(2)]
    for i in range(n):
        xs.append(np.full(2, x * i))
    found = np.zeros(2)
    for v in xs:
        found = found * 0.5 + v
    return np.sum(found)


def appended_at_once(x, n):
    """Numba infers this by itself."""
    xs = []
    while x < n + 10.0:
        xs.append(x)
        x = 2.0 * x
    return total(xs)


@pytest.mark.parametrize("f", [in_a_branch, of_integers, lists_in_a_list, never_filled, of_arrays,
                               appended_at_once], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [4, 1])
def test_typing_changes_no_result(f, n):
    for text in around_the_pass(f, 0.5, n):
        np.testing.assert_allclose(run(text, 0.5, n), f(0.5, n), rtol=1e-14)


@pytest.mark.lengthy
@pytest.mark.parametrize("f, item", [(of_integers, "[0][:0]"), (never_filled, "[0.0][:0]"),
                                     (lists_in_a_list, "[0.0][:0]"), (in_a_branch, "[0.0][:0]")],
                         ids=lambda x: getattr(x, "__name__", x))
def test_the_items_say_the_type(f, item):
    before, after = around_the_pass(f, 0.5, 3)
    assert item not in before and item in after


def test_what_numba_infers_is_left_as_it_is():
    before, after = around_the_pass(appended_at_once, 0.5, 3)
    assert before == after and "= []" in after


@pytest.mark.compile
@pytest.mark.parametrize("f", [of_integers, lists_in_a_list, never_filled, of_arrays],
                         ids=lambda f: f.__name__)
def test_numba_compiles_them(f):
    for x in (0.5, -0.5):
        np.testing.assert_allclose(s2s.jit(f, cache=False)(x, 3), f(x, 3), rtol=1e-14)
