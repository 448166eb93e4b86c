"""Writes to an argument through `ravel` and `reshape`, which are views of arrays in C order."""

from __future__ import annotations

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import UnsupportedError

M = np.arange(9.0).reshape(3, 3) / 5 + 0.1


def single_elements(m):
    m.ravel()[1] = m[0, 0] ** 2
    m.reshape(-1)[3] = m[0, 1]
    m.T[1, 2] = 3.0 * m[1, 0]
    return np.sum(m**2)


def a_loop_over_all(m):
    flat = m.ravel()
    for k in range(len(flat)):
        flat[k] = flat[k] * (k + 1)
    return np.sum(m * m)


def fill(m, v):
    m.reshape(-1)[::4] = v


def in_a_function_and_a_dict(d):
    fill(d["m"], d["m"][0, 1] ** 2)
    outer = np.outer(d["m"][0], d["m"][1])
    outer.ravel()[2] = 1.5
    return np.sum(d["m"] ** 3) * np.sum(outer)


PROGRAMS = [(single_elements, M), (a_loop_over_all, M), (in_a_function_and_a_dict, {"m": M})]


@pytest.mark.parametrize("f, x", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_written_through_a_flat_view(f, x):
    judge(f, x, second=f is single_elements)


@pytest.mark.compile
def test_native_code_writes_through_a_flat_view():
    judge(a_loop_over_all, M, compiled=True, second=False)


@pytest.mark.parametrize("x", [M.T, np.asfortranarray(M), np.zeros((3, 6))[:, ::2]])
def test_an_argument_in_another_order_is_refused(x):
    gradient = s2s.grad(single_elements)
    for _ in range(2):
        gradient(M)
        with pytest.raises(UnsupportedError, match="m is not C-contiguous") as caught:
            gradient(x)
    assert "pass np.ascontiguousarray(m)" in str(caught.value)
