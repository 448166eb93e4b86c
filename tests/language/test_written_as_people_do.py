"""Small ways of writing that ordinary programs have, each judged in every mode and order."""

from __future__ import annotations

import enum

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.5, -1.0, 2.0])
PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


class Order(enum.IntEnum):
    FIRST = 1
    SECOND = 2


@program
def a_member_of_an_enumeration(x):
    order = Order.SECOND
    return np.sum(x**order) * order + np.sum(x * Order.FIRST)


class _Spring:
    __stiffness = 3.0

    def __init__(self, length):
        self.__length = length

    def energy(self, x, __weight=2.0):
        def __stretched(__y):
            return __y - self.__length

        return self.__half(__stretched(x)) * self.__stiffness * __weight

    def __half(self, y):
        return 0.5 * np.sum(y * y)


SPRING = _Spring(0.5)


@program
def private_names_of_a_class(x):
    return SPRING.energy(x)


class Level:
    def __init__(self, value):
        self.value = value

    def __rsub__(self, other):
        return other - self.value

    def __sub__(self, other):
        return self.value - other

    def __mul__(self, other):
        return self.value * other

    def __neg__(self):
        return -self.value


LEVEL = Level(3.0)


@program
def operators_of_an_object_outside(x):
    return np.sum((LEVEL - x**2) * 2.0) + (LEVEL * x[0]) * -LEVEL


@program
def a_comprehension_over_what_its_variable_is_called(x):
    return np.sum(np.array([[y * x**2 for x in x] for y in x]))


@program
def a_list_beside_a_number_of_numpys(x):
    return np.sum((x[0] - [3.0, 5.0, 2.0]) ** 2) + np.sum([1, 2] / x[2])


@program
def functions_collected_in_nested_loops(x):
    functions = []
    for i in range(2):
        for j in range(3):
            functions.append(lambda v, i=i, j=j: v**2 * i + j * v)
    return sum(np.sum(f(x)) for f in functions)


@program
def ranges_with_steps_side_by_side(x):
    n, s = len(x), 0.0
    for i, j in zip(range(n - 1, -1, -1), range(n)):
        s += x[i] ** 2 * x[j] * i
    for k, i in enumerate(range(n, 0, -2)):
        s += x[i - 1] * k**2
    for i, j, k in zip(range(0, 2 * n, 3), range(n - 1, -n, -1), range(1, n - 2, 4)):
        s += 100.0 * x[i] * j * k
    return s + sum(x[i] * w for i, w in zip(range(1, n, 2), x))


@program
def names_bound_in_comprehensions(x):
    total = 0.0
    partial = [total := total + v**2 for v in x]
    s = sum([y * y for v in x if (y := v * 2) > 0]) * y
    if any((w := v) > 1 for v in x):
        s = s * w

    def doubled(z):
        return [u := a * 2 for a in z][0] * u

    table = {k: (last := v * k) for k, v in enumerate(x)}
    return s + doubled(x) * total + partial[1] + table[2] * last


def as_many_powers_as_coefficients(x):
    c = 0.5 * x[1:]
    return np.sum(np.vander(x, len(c)) @ c) + np.sum(np.vander(x[:2], len(x) + 1, increasing=True))


@program
def axes_by_name(x):
    rows = np.stack([x, 2.0 * x**2])
    return np.sum(np.swapaxes(rows, axis1=0, axis2=1)[0])


@pytest.mark.parametrize("f", PROGRAMS)
def test_programs(f):
    judge(f, X)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_programs(f):
    judge(f, X, compiled=True)


@pytest.mark.lengthy
def test_a_run_says_how_many_powers():
    f, steps = as_many_powers_as_coefficients, 1e-6 * np.eye(3)
    wanted = [(f(X + e) - f(X - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(s2s.grad(f)(X), wanted, rtol=1e-7)
    for x in (X, X + 1j, np.arange(3), X.astype(np.float32)):
        for n in (0, 1, 2, 5):
            of_lanes = s2s.vmap(lambda x, n: np.vander(x, n), (0, None))
            found, expected = of_lanes(x[None], n)[0], np.vander(x, n)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype


def test_the_right_operand_may_be_an_object_outside():
    def f(x):
        return (x * x - LEVEL) ** 2

    assert s2s.grad(f)(2.0) == 2 * (4.0 - 3.0) * 4.0
    assert s2s.jit(s2s.grad(f))(2.0) == 8.0


def test_a_list_beside_pythons_number_raises_as_in_python():
    with pytest.raises(s2s.errors.S2SError):
        s2s.grad(lambda x: np.sum(x - [1.0, 2.0]))(2.0)


def test_a_message_names_no_function_of_s2s():
    def f(x, n):
        functions = []
        for i in range(n):
            functions.append(lambda v, i=i: v * i)
        return functions[0](x)

    with pytest.raises(s2s.errors.S2SError, match="a list of functions whose length depends") as e:
        s2s.grad(f)(1.0, 3)
    assert "activation" not in str(e.value)


def test_a_truth_that_is_matched_or_compared_by_identity():
    def matched(x):
        match x > 1:
            case True:
                return x * x
            case False:
                return x
        return 7 * x  # np.bool_ is neither

    def identical(x, flag):
        return x * x if flag is True else 3 * x

    for f, *args in ((matched, 1.5), (matched, 0.5), (matched, np.float64(1.5)),
                     (identical, 2.0, True), (identical, 2.0, False), (identical, 2.0, 1)):
        y, slope = s2s.value_and_grad(f)(*args)
        more = (args[0] + 1e-6, *args[1:]) if type(args[0]) is float else (args[0] + 1e-6,)
        assert y == f(*args)
        assert abs(slope - (f(*more) - y) / 1e-6) < 1e-4


def test_a_shape_that_is_set():
    def f(x):
        c = x * 2
        d = c
        c.shape = 2, -1
        d[0, 1] = x[5] * 3
        c.shape = 6
        return c[1] * c[5] + d.shape[0] * c[2]

    def in_a_loop(x):
        c = x * 1.0
        for _ in range(2):
            c = c * 2
            c.shape = (2, 3)
            c = c[::-1].copy()
            c.shape = (6,)
        return c[0] * c[4]

    x = np.arange(6.0) + 0.5
    for g in (f, in_a_loop):
        right = [(g(x + h) - g(x - h)) / 2e-6 for h in 1e-6 * np.eye(6)]
        for t in (s2s.grad(g), s2s.jacfwd(g)):
            np.testing.assert_allclose(t(x), right, rtol=1e-7, atol=1e-7)


def test_real_if_close_leaves_what_is_real():
    f = s2s.grad(lambda x: np.sum(np.real_if_close(x * x)) + np.real_if_close(x)[0])
    np.testing.assert_array_equal(f(X), 2 * X + [1.0, 0.0, 0.0])
    z = np.array([1.0 + 1e-18j, 2.0])
    found = s2s.jit(lambda z: np.real_if_close(z))(z)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [1.0, 2.0])
    for t in (s2s.value_and_grad, s2s.jit):
        with pytest.raises(s2s.S2SError, match="(?s)not close to real ones.*or take .real"):
            t(lambda x: np.sum(np.real_if_close(x + x * 1e-6j)))(X)


@pytest.mark.lengthy
def test_real_if_close_of_what_comes_out_real():
    def f(x):
        spectrum = np.fft.fft(x) * np.array([1.0, 0.5, 0.5])
        return np.sum(np.real_if_close(np.fft.ifft(spectrum), tol=1000) ** 3)

    right = [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    for t in (s2s.grad(f), s2s.jacfwd(f), s2s.jit(s2s.grad(f))):
        np.testing.assert_allclose(t(X), right, rtol=1e-7)
