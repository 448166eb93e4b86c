"""A program may call its variables and functions what generated code calls its own, Python's and
s2s's.
"""

import builtins
import linecache
import re
import sys
import types

import numpy as np
import pytest

import s2s
from s2s.runtime.call import native_function as native
from s2s.runtime.intrinsics.inline_checks import WRITTEN
from s2s.runtime.numba.native_module import NATIVE_NAMES

X = np.array([0.4, 0.7, 1.1])
TEXT = """
import numpy as np

def helper(u, k):
    for i in range(k):
        u = u + np.sin(u) / (i + 1)
    return u

def f(x, n, order):
    VALUE = x * 1.5
    TOTAL = 0.0
    for i in range(n):
        VALUE[i] = VALUE[i] * x[order[i]] + VALUE[i - 1]
        if VALUE[i] > 0.2:
            TOTAL = TOTAL + np.exp(VALUE[i]) + HELPER(VALUE[i], n)
        else:
            TOTAL += max(VALUE[i], 0.3) + abs(x[i])
    OTHER = np.outer(VALUE, x) @ x
    while TOTAL > 3.0:
        TOTAL = TOTAL * 0.5 + 0.1 * HELPER(OTHER[0], 2)
    return TOTAL + np.sum(OTHER) + float(len(VALUE))
"""
ORDER = np.array([2, 0, 1])
NAMES = """t t_1 x_bar x_tape x_dot y_bar n_1 done tape items shape f_grad f_fwd f_bwd lanes
    lane a0 saved0 k i_1 value math scipy cmath numba s2s njit cuda objmode print sum round zip
    type str dict sorted any all next id input locals match case _ __ __class__ αβ naïve ﬁeld
    self cls call""".split()


def made(**renamed: str):
    """The `f` of the text, with other names in it."""
    text = TEXT
    if "HELPER" in renamed:
        text = text.replace("def helper", f"def {renamed['HELPER']}")
    for place, name in {
        "VALUE": "plain_value",
        "OTHER": "plain_other",
        "TOTAL": "plain_total",
        "HELPER": "helper",
        **renamed,
    }.items():
        text = text.replace(place, name)
    name = f"renamed_{abs(hash(text))}"
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module.f


@pytest.fixture(scope="module")
def expected():
    f = made()
    return f(X, 3, ORDER), s2s.grad(f)(X, 3, ORDER), s2s.jacfwd(s2s.grad(f))(X, 3, ORDER)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "names", list(builtins.zip(NAMES[::3], NAMES[1::3], NAMES[2::3], strict=True)), ids="-".join
)
def test_what_variables_and_functions_are_called_changes_nothing(names, expected):
    f = made(**dict(builtins.zip(("VALUE", "TOTAL", "HELPER"), names)))
    value, slope = s2s.value_and_grad(f)(X, 3, ORDER)
    assert value == expected[0] == f(X, 3, ORDER)
    np.testing.assert_array_equal(slope, expected[1])
    assert s2s.vmap(f, (0, None, None))(X[None], 3, ORDER)[0] == value


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES[:6])
def test_nor_in_second_order(name, expected):
    f = made(VALUE=name, HELPER=f"{name}_1")
    np.testing.assert_allclose(s2s.jacfwd(s2s.grad(f))(X, 3, ORDER), expected[2], rtol=1e-13)


def native_text(run) -> str:
    """What is compiled while `run()` runs."""
    texts, plain = [], native.decorated

    def noting(*args, **keywords):
        texts.append(plain(*args, **keywords))
        return texts[-1]

    native.decorated = noting
    try:
        run()
    finally:
        native.decorated = plain
    return "\n".join(module.text for module in texts)


def imported(text: str) -> set[str]:
    lines = [
        line.partition(" import ")[2] for line in text.splitlines() if line.startswith("from ")
    ]
    return {name.split(" as ")[-1].strip() for line in lines for name in line.split(",")}


@pytest.mark.compile
def test_native_code_imports_nothing_by_a_name_that_a_variable_may_have(expected):
    f = made()
    text = native_text(lambda: s2s.jit(s2s.grad(f), cache=False)(X, 3, ORDER))
    names = imported(text) - {"max", "min"}
    assert (
        {"checked_place", "natural_number"}
        <= names
        <= NATIVE_NAMES.union(check.__name__ for check in WRITTEN)
    )
    for k in range(0, len(names), 3):
        g = made(**dict(builtins.zip(("VALUE", "OTHER", "TOTAL"), sorted(names)[k:k + 3])))
        np.testing.assert_allclose(
            s2s.jit(s2s.grad(g), cache=False)(X, 3, ORDER), expected[1], rtol=1e-12
        )


def round(x):
    total = 0.0
    for i in range(3):
        if x > i:
            total = total + np.sin(x)
    return total


def sum(x):
    total = 1.0
    for i in range(3):
        if x > i:
            total = total * np.sin(x)
    return total


def zip(x):
    total = 1.0
    while total < x:
        total = total * 1.3
    return total * x


def f_round(x):
    return round(x[0] * 2) * x[1] + builtins.round(3.7 * x[2]) + round(x[1])


def f_sum(x):
    xs = []
    for i in range(int(x[2] * 3)):
        xs.append(x[i % 3] * i)
    return sum(x[0]) + builtins.sum(xs) * sum(x[1])


def f_zip(x):
    xs = [[x[0] * i for i in range(int(x[2] * 3))] for _ in range(2)]
    ys = [[x[1] * i for i in range(int(x[2] * 3))] for _ in range(2)]
    total = 0.0
    for row, other in builtins.zip(xs, ys):
        for a, b in builtins.zip(row, other):
            total = total + a * b * zip(a)
    return total * zip(x[0]) + zip(x[1])


def f_list(x):
    k = [x[1] * 3, x[0], x[2]]
    for i in range(3):
        k.append(x[i] * x[0])
    j = sorted(k, key=lambda v: -v * v)
    return k[0] * 2 + k[3] + j[0] * j[1]


@pytest.mark.parametrize("f", [f_round, f_sum, f_zip, f_list])
def test_functions_called_as_pythons_are_stand_beside_them(f):
    value, slope = s2s.value_and_grad(f)(X)
    assert value == f(X)
    steps = 1e-6 * np.eye(3)
    np.testing.assert_allclose(
        slope, [(f(X + e) - f(X - e)) / 2e-6 for e in steps], rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(s2s.vmap(f)(X[None]), [value], rtol=1e-14)


@pytest.mark.cuda
def test_kernels_say_nothing_by_a_name_that_a_variable_has():
    f = made(VALUE="cuda", OTHER="uint32", TOTAL="THREADS", HELPER="blocks_of")
    text = s2s.jit(lambda x, n, order: f(x, n, order), target="cuda").lower(X, 3, ORDER).loops
    for name in ("cuda", "uint32", "THREADS"):
        assert not re.search(rf"^ +{name}(?:\[.*\])? [-+*/]?= ", text, re.M), text


def test_checks_for_nan_look_at_a_program_that_says_locals(monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "nan")
    f = made(VALUE="locals")
    assert s2s.value_and_grad(f)(X, 3, ORDER)[0] == f(X, 3, ORDER)
