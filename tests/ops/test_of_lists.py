"""Lists and tuples where NumPy's functions take arrays: each makes an array of them, as NumPy
does.
"""

from __future__ import annotations

import numpy as np
import pytest
from differences import check, check_compiled

import s2s
from s2s.errors import S2SError

A = np.array([0.5, 1.5, 2.5])

FUNCTIONS = {
    "log": lambda x: np.sum(np.log([[x, 1.0], [2.0, x]])),
    "exp": lambda x: np.sum(np.exp((x, 2 * x))),
    "minimum": lambda x: np.sum(np.minimum([x, 1.0], [2.0, x])),
    "where": lambda x: np.sum(np.where([True, False], [x, 1.0], [2.0, x])),
    "clip": lambda x: np.sum(np.clip([x, 1.0, 5.0], 0, 2)),
    "dot": lambda x: np.dot([x, 1.0], [2.0, x]),
    "matmul": lambda x: np.sum(np.matmul([[x, 1.0], [2.0, x]], [1.0, x])),
    "outer": lambda x: np.sum(np.outer([x, 1], [x, 2, 3])),
    "einsum": lambda x: np.einsum("i,i", [x, 1.0], [x, 2.0]),
    "tensordot": lambda x: np.tensordot([x, 1.0], [x, 2.0], 1),
    "det": lambda x: np.linalg.det([[x, 1.0], [2.0, x]]),
    "solve": lambda x: np.sum(np.linalg.solve([[x, 1.0], [2.0, x]], [1.0, x])),
    "diff": lambda x: np.sum(np.diff([x, 1.0, x * x]) ** 2),
    "sort": lambda x: np.sort([x, 1.0, x * x])[0],
    "diag": lambda x: np.sum(np.diag([x, 1.0]) ** 2),
    "flip": lambda x: np.flip([x, 1.0])[1],
    "roll": lambda x: np.roll([x, 1.0], 1)[1],
    "tile": lambda x: np.sum(np.tile([x, 1.0], 2)),
    "repeat": lambda x: np.sum(np.repeat([x, 1.0], 2)),
    "reshape": lambda x: np.sum(np.reshape([x, 1.0, 2.0, 3.0], (2, 2))[0]),
    "transpose": lambda x: np.sum(np.transpose([[x, 1.0], [2.0, 3.0]])[0]),
    "arrays": lambda x: np.sum(np.transpose([A * x, A])[0]),
    "tuples": lambda x: np.sum(np.array([(x * k, x**k, 1) for k in range(int(x) + 4)])[:, 1] ** 2),
    "grown": lambda x: np.sum(np.log([x + k for k in range(int(x) + 3)])),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_lists(name):
    check(FUNCTIONS[name])


@pytest.mark.compile
@pytest.mark.parametrize("name", ["log", "solve", "transpose", "diff", "tuples"])
def test_compiled(name):
    check_compiled(FUNCTIONS[name])


def test_an_array_made_of_a_list_is_not_the_list():
    def f(x):
        rows = [x * A, A]
        y = np.reshape(rows, 6)
        y[0] = 10.0
        return np.sum(rows[0] ** 2) + np.sum(y * y)

    check(f)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.log([[x, 1.0], [x]]),
        lambda x: np.log({"a": x}),
        lambda x: np.array({"a": x}),
        lambda x: np.log([x, "a"]),
    ],
)
def test_what_is_no_array_is_refused(f):
    with pytest.raises(S2SError):
        s2s.grad(lambda x: np.sum(f(x)))(0.7)
