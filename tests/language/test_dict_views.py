"""Loops over dicts and sets that change meanwhile, and views of dicts, do what Python does, which
is asked: the same values, or the same error.
"""

import inspect

import numpy as np
import pytest

import s2s


def table(x, n):
    d = {}
    for i in range(n):
        d[i % 3] = x * i
    return d


def grows_with_known_keys(x):
    d = {"a": x}
    for _ in d:
        d["b"] = x
    return d["a"]


def shrinks_in_the_last_trip(x):
    d, s = {"a": x, "b": 2 * x}, 0.0
    for k in d:
        s = s + d[k]
        if k == "b":
            del d["a"]
    return s


def shrinks_and_is_left(x):
    d = {"a": x, "b": 2 * x}
    for k in d:
        if k == "a":
            del d[k]
            break
    return d["b"] * x


def grows(x, n):
    d, s = table(x, n), 0.0
    for k in d:
        s = s + d[k] ** 2
        if k == n - 6:  # the key 1, for the n that is given here
            d[100 + k] = s
    return s


def grows_as_values_are_run_over(x, n):
    d, s = table(x, n), 0.0
    for v in d.values():
        s = s + v
        d[n + 5] = s
    return s


def keys_are_replaced(x, n):
    d, s = table(x, n), 0.0
    for k in d:
        s = s + d.pop(k)
        d[k + n] = s
    return s


def pops_in_a_comprehension(x, n):
    d = table(x, n)
    return sum([d.pop(k) for k in d])


def pops_from_a_copy(x, n):
    d = table(x, n)
    return sum([d.pop(k) ** 2 for k in list(d)]) + len(d)


def pops_and_is_left(x, n):
    d = table(x, n)
    for k in d:
        if k == 1:
            d.pop(k)
            break
    return sum(d.values()) * x


def looks_up_in_a_defaultdict(x, n):
    from collections import defaultdict

    d, s = defaultdict(float), 0.0
    for i in range(n):
        d[i % 3] += x
    for k in d:
        s = s + d[k + 1]
    return s


def caught(x, n):
    d, s = table(x, n), 0.0
    try:
        for k in d:
            s = s + d[k] ** 2
            d[k + n - 6] = s
    except RuntimeError as error:
        s = s * len(str(error))
    return s


def counted(x, n):
    d, s = table(x, n), 0.0
    for i, k in enumerate(d):
        s = s + i * d[k]
        if i == 2:
            d[99] = x
    return s


def a_set_grows(x):
    seen, s = {1, 2}, 0.0
    for i in seen:
        s = s + x * i
        seen.add(i + 100)
    return s


def a_set_shrinks(x, n):
    seen, s = {1, 2}, 0.0
    for i in seen:
        s = s + x * i
        seen.discard(n - 5)
    return s


def a_set_is_read(x):
    seen, s = {1, 2}, 0.0
    for i in seen:
        s = s + x**i
        seen.add(i)
    return s


def values_change_as_items_are_run_over(x, n):
    d, s = table(x, n), 0.0
    for _, v in d.items():
        s = s + v**2
        d[2] = v * 10
    return s


def values_change_after_a_deletion(x, n):
    d, s = table(x, n), 0.0
    del d[0]
    for k, v in d.items():
        d[k] = v * v + k
        s = s + d[k] * v
    return s + sum(d.values())


def pairs_for_keys(x, n):
    d, s = {}, 0.0
    for i in range(n):
        d[i % 2, i % 3] = x + i
    for (i, j), v in d.items():
        d[i, j] = v * (i + 2 * j)
        if (j, i) in d:
            s = s + d[j, i]
    return s + sum(d.values()) ** 2


def views_are_live(x, n):
    d, s = table(x, n), 0.0
    keys, values, items = d.keys(), d.values(), d.items()
    d[77] = x
    d.pop(0)
    for k in keys:
        s = s + k * x
    for k, v in items:
        s = s + k * v**2
    return s + len(keys) + (77 in keys) * x + max(values) + len(items) * sorted(values)[0]


CASES = [
    grows_with_known_keys,
    shrinks_in_the_last_trip,
    shrinks_and_is_left,
    grows,
    grows_as_values_are_run_over,
    pops_in_a_comprehension,
    pops_from_a_copy,
    pops_and_is_left,
    looks_up_in_a_defaultdict,
    caught,
    counted,
    a_set_grows,
    a_set_shrinks,
    a_set_is_read,
    values_change_as_items_are_run_over,
    values_change_after_a_deletion,
    pairs_for_keys,
    views_are_live,
]


def outcome(f, *args):
    """The value; or the class and text of the error."""
    try:
        return f(*args)
    except Exception as error:
        return type(error), error.args


def check(f, wrap):
    rest = (7,) * (len(inspect.signature(f).parameters) - 1)
    value, found = outcome(f, 1.5, *rest), outcome(wrap(s2s.value_and_grad(f)), 1.5, *rest)
    along = outcome(lambda x: wrap(lambda x, d: s2s.jvp(lambda x: f(x, *rest), (x,), (d,)))(x, 1.0),
                    1.5) if wrap is not s2s.jit else found
    if isinstance(value, tuple):
        assert found == along == value
        return
    slope = (f(1.5 + 1e-5, *rest) - f(1.5 - 1e-5, *rest)) / 2e-5
    np.testing.assert_allclose(found, (value, slope), rtol=1e-8)
    np.testing.assert_allclose(along, (value, slope), rtol=1e-8)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_as_python_does(f):
    check(f, lambda f: f)


@pytest.mark.compile
@pytest.mark.parametrize("f", [grows, caught, a_set_shrinks,
                               values_change_after_a_deletion, views_are_live],
                         ids=lambda f: f.__name__)
def test_compiled(f):
    check(f, s2s.jit)


def test_keys_of_the_loop_are_not_looked_up():
    gradient = s2s.grad(lambda x, n: values_change_after_a_deletion(x, n))
    gradient(1.5, 7)
    loop = gradient.source.split("items = list(d)")[1]
    assert ".get(" not in loop and "RuntimeError" not in loop


def test_keys_that_are_replaced():
    """Python raises that, too, unless the dict happens to be packed anew meanwhile."""
    with pytest.raises(RuntimeError, match="dictionary keys changed during iteration"):
        s2s.grad(keys_are_replaced)(1.5, 7)


def emptied(x, n):
    d, s = table(x, n), 0.0
    while d:
        k, v = d.popitem()
        s = s + (k + 1) * v * len(d)
    return s


@pytest.mark.lengthy
def test_the_last_key_is_found_without_listing_the_others():
    for wrap in (lambda f: f, s2s.jit):
        gradient = wrap(s2s.grad(emptied))
        np.testing.assert_allclose(
            gradient(1.5, 7), (emptied(2.0, 7) - emptied(1.0, 7)), rtol=1e-12)
    assert "list(d)" not in s2s.grad(emptied).lower(1.5, 7).source


def sets_of_several(x, n):
    a = {k % 3 for k in range(n)}
    s = a.union({7, n}, [8])
    left = s.difference(a, {8})
    words = sorted(set().union(*({w: 1 for w in text.split()} for text in ("b a", "c a"))))
    return x * sum(sorted(s)) + len(a.intersection(s, {1, 2})) * len(left) * x**2 + len(words)


def test_sets_take_several_others():
    check(sets_of_several, lambda f: f)
