"""Structured arrays, from outside and made by the program."""

import numpy as np
import pytest
from differences import differences

import s2s

X = np.array([0.3, 1.2, 0.7, 2.1, 0.9, 1.6])
TABLE = np.array([(1.0, 2.0, "x"), (3.0, 4.0, "y"), (0.5, 0.2, "z")],
                 dtype=[("a", float), ("b", float), ("label", "U3")])
BODY = np.dtype([("pos", float, 2), ("vel", float, 2), ("mass", float)])


def columns(x):
    chosen = TABLE[TABLE["a"] > 0.7]
    return np.sum(TABLE["a"] * x[0]**2 + TABLE["b"][1] * x[1]) + chosen["b"][0] * x[2]


def rows(x):
    total = 0.0
    for k, row in enumerate(TABLE):
        total += row["a"] * x[k] + TABLE[k]["b"] * x[0] * x[1]
    return total * len(TABLE) * TABLE.size


def bodies(x):
    p = np.zeros(3, dtype=BODY)
    p["pos"] = x.reshape(3, 2)
    p["mass"] = [1.0, 2.0, x[5]]
    for _ in range(2):
        for i in range(3):
            for j in range(3):
                if i != j:
                    d = p[j]["pos"] - p[i]["pos"]
                    p[i]["vel"] += 0.1 * p[j]["mass"] * d / (np.sum(d**2) + 0.1)**1.5
        p["pos"] += 0.1 * p["vel"]
    for one, other in zip(p[:-1], p[1:]):
        other["vel"] += one["pos"] * x[4]
    return np.sum(p["pos"]**2) + np.sum(p["vel"])


def elements(x):
    p = np.zeros(3, dtype=[("a", float), ("b", float)])
    for i in range(3):
        p[i] = (x[i], x[i] * x[i + 1])
    q, view = p.copy(), p[1:]
    q["a"][0], view["b"][0] = 5.0, x[5]
    p[2] = p[0]
    p[p["a"] > 1.0] = (x[2], x[3])
    a, b = p[1]
    return np.sum(p["a"] * p["b"]) + a * b + q["a"][0] * q[2][1]


def literal(x):
    p = np.array([(x[0], 1), (x[2], 2)], dtype=[("a", float), ("k", int)])
    p["k"] += 1
    grid = np.ones((2, 3), dtype=[("u", float), ("v", float)])
    grid["u"] = x.reshape(2, 3)
    grid[1, 2] = (x[1], x[2]**2)
    named = sum(len(name) for name in p.dtype.names) if isinstance(p, np.ndarray) else 0
    return p["a"] @ p["a"] + x[p["k"][0]] + np.sum(grid["u"] * grid["v"]) * named + grid[1]["u"][2]


def planes(x):
    g = np.zeros((2, 3), dtype=[("p", float, 2), ("w", float)])
    g["w"] = x.reshape(2, 3)
    g[1][2]["w"] = x[0] * x[1]  # a row is a view, and so is its element
    g[0, 1]["p"] = x[:2]
    row = g[1, 1:]
    row["p"][0] = x[4]
    total = sum(element["w"] * element["p"][1] for element in g[0, :])
    corner = g[[0, 1], [1, 2]]
    return (total * len(row) + np.sum(g["w"] * g["p"][:, :, 0]) * row.ndim * g[1].shape[0]
            + corner[1]["w"] * g[:, 1].size)


PROGRAMS = [columns, rows, bodies, elements, literal, planes]


@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives_are_those_of_differences(f):
    value, slope = s2s.value_and_grad(f)(X.copy())
    np.testing.assert_allclose(value, f(X.copy()), rtol=1e-14)
    expected = differences(f, X)
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(s2s.jacfwd(f)(X.copy()), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_derivatives_are_those_of_differences(f):
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(X.copy()), differences(f, X), rtol=1e-6,
                               atol=1e-8)


def test_another_dtype_is_another_program(monkeypatch):
    slope = s2s.grad(lambda x: np.sum(TABLE["a"]) * x)
    assert slope(2.0) == 4.5
    other = np.array([(1, 2.0)], dtype=[("b", int), ("a", np.float32)])
    monkeypatch.setitem(globals(), "TABLE", other)
    assert slope(2.0) == 2.0


@pytest.mark.lengthy
def test_writes_outside_stay():
    table = TABLE.copy()

    def store(x):
        table["a"][1] = x**2
        return np.sum(table["a"]) * x

    assert s2s.grad(store)(2.0) == 13.5 and table["a"][1] == 4.0


@pytest.mark.parametrize("f, message", [
    (lambda x: x * (TABLE == TABLE)[0], "comparing structured arrays"),
    (lambda x: x * (TABLE[0] == TABLE[1]), "comparing records"),
    (lambda x: x * (TABLE.dtype == TABLE.dtype), "comparing structured dtypes"),
    (lambda x: x if TABLE else -x, "the truth of a structured array"),
    (lambda x: np.zeros(2, [("a", "U3")])["a"], "a structured array of anything but numbers"),
    (lambda x: x * TABLE["label"][0], "'label' is not among the keys 'a', 'b'"),
    (lambda x: (x, np.zeros(2, BODY))[1], "a structured array is an operand, or is returned"),
    (lambda x: np.sum(TABLE) * x, "a structured array is an operand"),
])
def test_what_is_not_read_is_refused(f, message):
    with pytest.raises((s2s.UnsupportedError, s2s.TypeMismatchError), match=message):
        s2s.grad(f)(2.0)
