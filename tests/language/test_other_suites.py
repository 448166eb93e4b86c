"""Programs of the kinds that the test suites of other systems are made of, those that once showed
something.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError, TypeMismatchError, UnsupportedError

V = np.array([0.5, -1.0, 2.0, 0.3])
M = np.arange(12.0).reshape(3, 4) / 7 - 0.4


def einsum_rows(a, b):
    return np.einsum("ij,ij->i", a, b)


def einsum_product(a, v):
    return np.sum(np.einsum("ij,j->i", a, v) ** 2)


def written_ahead(x, n):
    xs = [x * i for i in range(n)]
    s = 0.0
    for i, v in enumerate(xs):
        if i + 1 < len(xs):
            xs[i + 1] += v * 0.5
        s = s * 0.9 + v * v
    return s


def written_ahead_known(x):
    xs = [x, x * 2, x * 3]
    s, i = 0.0, 0
    for v in xs:
        if i + 1 < len(xs):
            xs[i + 1] += v * 0.5
        i += 1
        s = s * 0.9 + v * v
    return s


def written_ahead_zip(x, n):
    xs, ys = [x * i for i in range(n)], [1.0 + x] * n
    s = 0.0
    for i, (v, w) in enumerate(zip(xs, ys)):
        if i + 1 < len(xs):
            ys[i + 1] = v * w
            xs[i + 1] += w
        s = s * 0.9 + v * w
    return s


def written_behind_backwards(x, n):
    xs = [x * i for i in range(n)]
    s, i = 0.0, n - 1
    for v in reversed(xs):
        if i > 0:
            xs[i - 1] += v * v
        i -= 1
        s = s * 0.9 + v
    return s


def written_argument(xs):
    s = 0.0
    for i, v in enumerate(xs):
        if i + 1 < len(xs):
            xs[i + 1] *= v
        s += v * v
    return s


def rebound_in_the_loop(x, n):
    xs = [x * i for i in range(n)]
    for v in xs:
        xs = xs + [v]
        xs.append(v * v)
    return sum(xs)


def dict_written_ahead(d):
    s = 0.0
    for k, v in d.items():
        d["c"] += v * v
        s = s * 0.9 + v * len(k)
    for v in d.values():
        d["c"] *= v
        s += v * v
    return s


def repeated_in_place(x):
    a = [x, x * 2]
    b = a
    b *= 2
    a[3] = x * x
    return len(a) * sum(b)


class Holder:
    def __init__(self, xs):
        self.xs = xs


def member_repeated_in_place(x):
    xs = [x, x * x]
    h = Holder(xs)
    h.xs *= 2
    h.xs += [3.0 * x]
    return sum(xs) * len(xs)


def choices(x):
    return np.select([x > 0.4, x < -0.5], [x**2, np.sin(x)], default=3.0 * x)


def first_choice_wins(x):
    return np.select([x > 0.4, x > 0], [x**2, 1.0])


def taken_at_a_list(a):
    return np.take(a, [0, 2], axis=1) * a.take((1, 2), axis=1)


def slice_of_pairs(x):
    pairs = [(v, v * v) for v in x]
    s = 0.0
    for a, b in pairs:
        s += a * b
    for i, (a, _) in enumerate(pairs[1:]):
        s += i * a
    return s * pairs[2][1]


def slices_of_nested_lists(x, n):
    xs = [(x * i, [x, x * i]) for i in range(n)]
    some, back = xs[1:3], xs[::-1]
    both = xs + some
    return some[0][0] * some[1][1][1] + sum(xs[2][1]) + back[0][0] * both[-1][1][1]


CASES = [
    (einsum_rows, M, M + 1),
    (einsum_product, M, V),
    (written_ahead, 0.3, 5),
    (written_ahead_known, 0.3),
    (written_ahead_zip, 0.3, 5),
    (written_behind_backwards, 0.3, 5),
    (written_argument, [1.0, 2.0, 0.5]),
    (rebound_in_the_loop, 0.3, 4),
    (dict_written_ahead, {"a": 1.0, "bb": 0.5, "c": 0.3}),
    (repeated_in_place, 0.3),
    (member_repeated_in_place, 0.3),
    (taken_at_a_list, M),
    (slice_of_pairs, V),
    (slices_of_nested_lists, 0.4, 4),
]


@pytest.mark.parametrize(
    "f, args", [(f, args) for f, *args in CASES], ids=lambda x: getattr(x, "__name__", "")
)
def test_programs(f, args):
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args",
    [(einsum_product, (M, V)), (written_ahead, (0.3, 5)), (dict_written_ahead, CASES[8][1:])],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_programs_compiled(f, args):
    judge(f, *args, compiled=True, second=False)


def test_select_is_not_where():
    for f in choices, first_choice_wins:
        assert np.array_equal(s2s.vjp(f, V)[0], f(V))
    assert np.allclose(s2s.vjp(choices, V)[1](np.ones(4))[0], [1.0, np.cos(-1.0), 4.0, 3.0])
    with pytest.raises(UnsupportedError, match="(?s)np.select of something other than lists.*as "
                                               "lists"):
        s2s.vjp(lambda x: np.select(x > 0, x), M)
    with pytest.raises(TypeMismatchError, match="(?s)np.select with 1 conditions and 2 "
                                                "choices.*one choice for each"):
        s2s.vjp(lambda x: np.select([x > 0], [x, x]), V)


def appended_while_run_over(xs):
    s = 0.0
    for v in xs:
        if len(xs) < 6:
            xs.append(v * 0.5)
        s = s * 0.9 + v
    return s


def appended_by_index(xs):
    s, k = 0.0, 0
    while k < len(xs):
        v = xs[k]
        k += 1
        if len(xs) < 6:
            xs.append(v * 0.5)
        s = s * 0.9 + v
    return s


def popped_while_run_over(x):
    xs = [x, 2 * x, 3 * x]
    for v in xs:
        xs.pop()
    return sum(xs) + v


def repeated_while_run_over(x):
    xs = [x, 2 * x]
    for v in xs:
        xs *= 2
        if v > 0:
            break
    return sum(xs)


def removed_from_a_copy(x):
    xs = [x, 2 * x, 3 * x]
    for v in xs[:]:
        if v > 0:
            xs.append(v * x)
    return sum(xs)


@pytest.mark.lengthy
def test_lists_that_change_their_length_while_a_loop_runs_over_them():
    for f, x in (
        (appended_while_run_over, [1.0, 2.0, 3.0]),
        (popped_while_run_over, 1.0),
        (repeated_while_run_over, 1.0),
    ):
        with pytest.raises(UnsupportedError) as error:
            s2s.grad(f)(x)
        assert "a list that changes its length while a loop runs over it" in str(error.value)
        assert "loop over a copy, xs[:], or say `while k < len(xs)`" in str(error.value)
    judge(appended_by_index, [1.0, 2.0, 3.0])
    assert appended_by_index([1.0, 2.0, 3.0]) == appended_while_run_over([1.0, 2.0, 3.0])
    judge(removed_from_a_copy, 0.7)


def dict_that_shrinks(d):
    s = 0.0
    for k, v in d.items():
        s += v
        if k == "a":
            del d["b"]
    return s


def test_dicts_that_change_their_size():
    with pytest.raises(RuntimeError, match="dictionary changed size during iteration"):
        s2s.grad(dict_that_shrinks)({"a": 1.0, "b": 2.0})


def test_has_aux_wants_a_pair():
    for t in s2s.grad, s2s.value_and_grad:
        with pytest.raises(
            TypeMismatchError,
            match="(?s)has_aux=True, and .* returns .*float.*return a tuple: the number first",
        ):
            t(lambda x: x * x, has_aux=True)(1.0)
    with pytest.raises(TypeMismatchError, match="(?s)has_aux=True, and .* returns no pair.*return "
                                                "a tuple of two"):
        s2s.vjp(lambda x: (x, x, x), 1.0, has_aux=True)


def test_cotangents_are_nested_as_results():
    _, pull = s2s.vjp(lambda x: {"a": x, "b": x * x}, 2.0)
    assert pull({"a": 1.0, "b": 1.0}) == (5.0,)
    with pytest.raises(
        TypeMismatchError,
        match=r"(?s)has the shapes \(\(\), \(\)\), and {'a': \(\), 'b': \(\)} is needed.*nest it",
    ):
        pull((1.0, 1.0))
    with pytest.raises(TypeMismatchError, match="nest it as what it goes with is nested"):
        s2s.vjp(lambda x: x * x, V)[1]((V,))
    with pytest.raises(TypeMismatchError, match="nest it as what it goes with is nested"):
        s2s.jvp(lambda t: t[0], ((1.0, 2.0),), ({"a": 1.0, "b": 0.0},))


def test_jacobians_of_nothing():
    empty = np.zeros(0)
    assert (
        s2s.jacrev(lambda x: x * x)(empty).shape
        == s2s.jacfwd(lambda x: x * x)(empty).shape
        == (0, 0)
    )
    assert s2s.hessian(lambda x: np.sum(x * x))(np.zeros((0, 2))).shape == (0, 2, 0, 2)


def test_arrays_with_an_arithmetic_of_their_own():
    f = s2s.grad(lambda x: np.sum(x * x))
    f(np.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy does not recommend it either
        matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    for x in masked, matrix:
        with pytest.raises(UnsupportedError, match="(?s)whose arithmetic is its own.*np.asarray"):
            f(x)
        assert np.array_equal(f(np.asarray(x)), 2 * np.asarray(x))
    with pytest.raises(UnsupportedError, match="(?s)masked is a MaskedArray, whose arithmetic is "
                                               "its own.*with np.asarray"):
        s2s.grad(lambda x: np.sum(x * masked))(np.ones(3))


masked = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])


def test_vmap_over_nothing():
    with pytest.raises(S2SError, match="(?s)in_axes=None: vmap over no argument.*say which axis"):
        s2s.vmap(lambda x: x, in_axes=None)
