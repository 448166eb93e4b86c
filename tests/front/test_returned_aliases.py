"""What a function returns keeps its identity: a write through one name is seen through the
others.
"""

from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from differences import STEP

import s2s
from s2s.errors import UnsupportedError
from s2s.front import build
from s2s.ir.graph import walk
from s2s.specialisation import type_of

X = np.array([0.4, 0.7, 1.1])
Pair = namedtuple("Pair", "whole rest")


@dataclass
class Views:
    whole: object
    rest: object


class Scaled:
    def __init__(self, k):
        self.k = k

    def two(self, x):
        v = x * self.k
        return v, v[:2]


OUTSIDE = Scaled(3.0)


def twice(x):
    v = x * 2.0
    return v, v


def beside(x):
    v = x * 2.0
    return v, v[1:]


def through(x):
    return beside(x)


def own(a):
    return a, a[1:]


def in_dict(x):
    v = x * 2.0
    return {"a": v, "b": v[1:]}


def same_dict(x):
    d = {"a": x * 1.0}
    return {"p": d, "q": d}


def in_list(x):
    v = x * 2.0
    return [v, v.reshape(-1)]


def same_list(x):
    xs = [x * 2.0]
    return xs, xs


def in_namespace(x):
    v = x * 2.0
    return SimpleNamespace(a=v, b=v[::-1])


def in_dataclass(x):
    v = x * 2.0
    return Views(v, v)


def in_namedtuple(x):
    v = x * 2.0
    return Pair(v, [v[1:], (v, {"k": v})])


def transposed(x):
    v = np.outer(x, x)
    return v, v.T


def rows(x):
    v = np.outer(x, x)
    return v, [v[i] for i in range(3)]


def halves(x):
    v = np.concatenate((x, x))
    return v, np.split(v, 2)


def flattened(x):
    v = x * 2.0
    return v, v.ravel()


def picked(x, c):
    a, b = x * 2.0, x * 3.0
    return a, b, (a if c > 0.35 else b)


def of_no_axes(x):
    return np.asarray(x[0] * 2.0)


def recursive(x, n):
    if n == 0:
        v = x * 2.0
        return {"p": v, "q": [v, v]}
    return recursive(x * 1.1, n - 1)


def recursive_views(x, n):
    if n == 0:
        v = x * 2.0
        return v, v[1:]
    return recursive_views(x * 1.1, n - 1)


def grown(x, n):
    xs, v = [], x * 1.0
    for _ in range(n):
        xs.append(v)
    return xs


def generator(x):
    v = x * 2.0
    yield v
    yield v[1:]


checkpointed = s2s.checkpoint(beside)


def with_empty(n):
    v = np.zeros(n)
    return v, v[1:]


def f_given(x):
    a, b = with_empty(3)
    b[0] = x[1] ** 2
    return np.sum(a)


def f_twice(x):
    a, b = twice(x)
    b[0] = x[1] ** 2
    a[1] += x[0]
    return np.sum(a * b)


def f_state(x):
    h, total = np.zeros(3), 0.0
    for i in range(3):
        h, y = twice(h + np.tanh(x * i))
        y[0] = x[1]
        total = total + np.sum(h**2)
    return total


def f_loop(x):
    total, k = 0.0, 0
    while k < 3:
        a, b = through(x * (k + 1))
        if a[0] > 0.5:
            b *= x[0]
        else:
            a -= x[1]
        total = total + np.sum(a[1:] * b)
        k += 1
    return total


def f_own(x):
    y = x * 1.0
    a, b = own(y)
    b[0] = x[0] ** 2
    return np.sum(a**2) + np.sum(y**3)


def f_dict(x):
    d = in_dict(x)
    d["b"][0] = x[0] ** 2
    return np.sum(d["a"] ** 2)


def f_same_dict(x):
    d = same_dict(x)
    d["p"]["a"] = x**2
    return np.sum(d["q"]["a"])


def f_list(x):
    xs = in_list(x)
    xs[1][0] = x[1] ** 2
    return np.sum(xs[0] ** 2)


def f_same_list(x):
    a, b = same_list(x)
    b.append(x)
    a[0] = x * x
    return np.sum(b[0]) + len(a) * np.sum(b[1] ** 2)


def f_namespace(x):
    d = in_namespace(x)
    np.multiply(x, x, out=d.b)
    return np.sum(d.a[:2] ** 2)


def f_dataclass(x):
    d = in_dataclass(x)
    d.rest[0] = x[1] ** 2
    return np.sum(d.whole**2)


def f_namedtuple(x):
    d = in_namedtuple(x)
    d.rest[1][1]["k"][0] = x[2] ** 2
    d.rest[0][1] *= x[0]
    return np.sum(d.whole**2) + np.sum(d.rest[1][0])


def f_transposed(x):
    a, b = transposed(x)
    b[0, 1] = x[1] ** 2
    b *= x[0]
    return np.sum(a**3)


def f_rows(x):
    v, r = rows(x)
    r[0][1] = 7 * x[0]
    np.add.at(r[2], [0, 0], x[1])
    return np.sum(v**2)


def f_halves(x):
    v, (a, b) = halves(x)
    a += x[0]
    b[::2] = x[1] * a[1:]
    return np.sum(v**2)


def f_flattened(x):
    a, b = flattened(x)
    np.multiply(a, x, out=b)
    return np.sum(a**2)


def f_picked(x):
    a, b, c = picked(x, x[0])
    c[0] = x[1] ** 2
    return np.sum(a**2) + np.sum(b**3)


def f_method(x):
    a, b = OUTSIDE.two(x)
    b[:] = x[1:] ** 2
    c, d = Scaled(2.0).two(a)
    d[0] *= x[2]
    return np.sum(a**2) + np.sum(c)


def f_of_no_axes(x):
    z = of_no_axes(x)
    w = z
    z += x[1] ** 2
    return w * 1.0


def f_recursive(x):
    d = recursive(x, 2)
    d["q"][1][0] = x[2]
    return np.sum(d["p"] ** 2) + np.sum(d["q"][0])


def f_generator(x):
    a, b = generator(x)
    b[0] = x[0] ** 2
    return np.sum(a**2)


def f_checkpointed(x):
    a, b = checkpointed(x)
    b[0] = x[0] ** 2
    return np.sum(a**2)


def f_closure(x):
    def two(k):
        v = x * k
        return v, v[1:], lambda i: v[i]

    a, b, at = two(2.0)
    b[0] = x[1] ** 2
    return np.sum(a**2) * at(1)


def with_conjugate(x):
    z = x + 1j * x**2
    return z, z.conj()


def f_conjugate(x):
    z, c = with_conjugate(x)
    z[0] = x[1]
    return np.sum(np.abs(c) ** 2) + np.sum(z.real**2)


PROGRAMS = [f for name, f in sorted(globals().items()) if name.startswith("f_")]


def differences(f, x):
    steps = STEP * np.eye(len(x))
    return np.array([(f(x + e) - f(x - e)) / (2 * STEP) for e in steps])


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_write_is_seen_through_every_name_that_was_returned(f):
    value, slope = s2s.value_and_grad(f)(X)
    assert value == f(X)
    expected = differences(f, X)
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(s2s.jacfwd(f)(X), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("f", PROGRAMS)
def test_second_derivatives_and_lanes_see_it_too(f):
    np.testing.assert_allclose(
        s2s.hessian(f)(X),
        [differences(lambda x, k=k: s2s.grad(f)(x)[k], X) for k in range(3)],
        rtol=1e-5,
        atol=1e-6,
    )
    lanes = np.array([X, X + 0.1])
    np.testing.assert_allclose(s2s.vmap(f)(lanes), [f(x) for x in lanes], rtol=1e-13)


@pytest.mark.compile
@pytest.mark.parametrize("f", [f_twice, f_loop, f_namedtuple, f_halves, f_recursive])
def test_native_code_sees_the_write_too(f):
    np.testing.assert_allclose(s2s.jit(f)(X), f(X), rtol=1e-12)
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(X), differences(f, X), rtol=1e-6, atol=1e-7)


def test_a_function_that_returns_an_array_twice_stays_a_call():
    def f(x):
        h = x
        for _ in range(3):
            h, y = twice(h)
        return np.sum(y)

    assert "call" in {op.name for op in walk(build(f, [type_of(X, "x")]).block)}


@s2s.custom_jvp
def ruled(x):
    v = x * 2.0
    return v, v


ruled.defjvp(lambda primals, tangents: (ruled(*primals), (2 * tangents[0], 2 * tangents[0])))


def test_a_function_with_a_rule_returns_one_array_by_two_names():
    def f(x):
        a, b = ruled(x)
        b[0] = x[1] ** 2
        return np.sum(a**2)

    assert s2s.value_and_grad(f)(X)[0] == f(X)
    np.testing.assert_allclose(s2s.grad(f)(X), differences(f, X), rtol=1e-6)


def f_of_recursive_views(x):
    a, b = recursive_views(x, 2)
    b[0] = x[0]
    return np.sum(a)


def f_of_grown(x, n=3):
    xs = grown(x, n)
    xs[0][0] = x[1]
    return np.sum(xs[2])


@pytest.mark.parametrize("f", [f_of_recursive_views, f_of_grown])
def test_what_only_the_run_knows_to_share_is_refused_where_it_is_written(f):
    with pytest.raises(UnsupportedError, match="may or may not (share memory with|write into)"):
        s2s.grad(f)(X)


def test_views_from_a_recursive_function_may_be_read():
    def f(x):
        a, b = recursive_views(x, 2)
        return np.sum(a[1:] * b)

    np.testing.assert_allclose(s2s.grad(f)(X), differences(f, X), rtol=1e-6, atol=1e-7)
