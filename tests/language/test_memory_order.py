"""Sums round as Python's do: what stands in the memory of an array, and in which order, is as in
the program.
"""

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.transformed import Transformed


def through_a_transpose(m):
    v = m.T
    v[1] = np.cos(v[0, 0])
    return np.sum(m * m)


def an_argument_written_into(m):
    m[0, 1] = 3.0
    return np.sum(m)


def a_block(m):
    v = m[1:, 1:]
    v *= 0.3
    return np.sum(v) + np.sum(m)


def every_other_column(m):
    v = m[:, ::2]
    v[0] = np.sum(v)
    return np.sum(v * v) + np.mean(v)


def copies_in_both_orders(m):
    v, w = np.copy(m.T), m.T.copy()
    v[0, 0] = w[0, 0] = 2.0
    return np.sum(v) + 3 * np.sum(w) + 5 * np.sum(np.array(m.T)) + 7 * np.sum(m.copy(order="F"))


def one_of_two_orders(m):
    b = m.T
    if m[0, 0] > 0:
        b = b * 2
    else:
        b[0] = 0.1
    b[1] = 0.2
    return np.sum(b)


def carried_around_a_loop(m):
    v = m.T
    for i in range(3):
        v = np.sin(v) + v
        v[i] = 0.1 * i
    return np.sum(v)


def likenesses(m):
    a, b = np.zeros_like(m.T), np.empty_like(m)
    a[:] = m.T
    np.sin(m, out=b)
    return np.sum(a) + np.sum(b)


LAYOUTS = {
    "rows": lambda base: base[:12, :17].copy(),
    "columns": lambda base: np.asfortranarray(base[:12, :17]),
    "gaps": lambda base: base[::2, ::2],
    "backwards": lambda base: base[::-2, ::-2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "f",
    [
        through_a_transpose,
        an_argument_written_into,
        a_block,
        every_other_column,
        copies_in_both_orders,
        one_of_two_orders,
        carried_around_a_loop,
        likenesses,
    ],
)
def test_sums_add_in_the_order_of_the_program(f, layout):
    plain, gradient = Transformed("value", f), s2s.value_and_grad(f)
    for seed in range(6):
        def argument(seed=seed):
            return LAYOUTS[layout](np.random.default_rng(seed).uniform(-1, 1, (24, 34)))
        expected = f(argument())
        assert plain(argument()) == expected
        assert gradient(argument())[0] == expected


def test_a_copy_of_a_matrix_keeps_its_order_and_one_of_a_vector_reads_as_ever():
    gradient = s2s.grad(an_argument_written_into)
    value = s2s.value_and_grad(an_argument_written_into)
    value(np.ones((2, 2)))
    assert "m = np.copy(m)" in value.source

    def first(v):
        v[0] = 3.0
        return np.sum(v)

    value = s2s.value_and_grad(first)
    value(np.ones(2))
    assert "v = v.copy()" in value.source
    assert np.array_equal(gradient(np.ones((2, 2))), [[1.0, 0.0], [1.0, 1.0]])


def viewed(a):
    v = a.view()
    v[0] = a[1] * 2
    w = a.copy().view()
    w[1] = 3.0
    return np.sum(a * a) + v[0] + np.sum(w)


def test_a_view_is_the_array_by_another_name_and_never_its_bytes():
    judge(viewed, np.array([0.3, 0.4, 0.5]))
    with pytest.raises(
        s2s.UnsupportedError, match="the bytes of an array taken for another dtype"
    ) as caught:
        s2s.grad(lambda a: np.sum(a.view(np.int64)))(np.ones(3))
    assert "use x.astype(dtype), or x.real and x.imag" in str(caught.value)
