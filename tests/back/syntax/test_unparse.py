"""Text of expressions: the parentheses that are needed, and no others."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from s2s.back.syntax.literals import literal
from s2s.back.syntax.unparse import WIDTH, Unparser, expression_text
from s2s.errors import UnsupportedError

AS_WRITTEN = """
    a - (b - c)
    a - b - c
    -a * b / c
    -(a + b) * c
    (-2)**x
    -2**x
    x**-2
    x ** (y + 1)
    (a * b) ** 2
    x[1:2, None]
    x[(1, 2), :]
    x[..., 0]
    x[::-1]
    x[i,]
    f(a, (b, c), *d, e=(f, g))
    a if b else c if d else e
    (a if b else c) + 1
    not (a and b) or c
    not a == b
    (a < b) < c
    a < b < c
    (a, b)[0]
    ()
    (a,)
    X.T @ (y @ z)
    -(X @ w)
    a * (b / c)
    a / (b * c)
    1 / -x
    a - -b
    -f(x) ** 2
    ~(a | b) & c
    lambda x: x + 1
    (lambda x: x)(2)
    [a, (b, c)]
    {(a, b), (1, 1)}
    {(a, b): (c, d)}
    [(a, b) for a in (b, c)]
    f(x)(y)
    a.b[c].d
    a % b // c
    1e-9 * x
"""


@pytest.mark.parametrize("text", [line.strip() for line in AS_WRITTEN.strip().splitlines()])
def test_what_a_person_would_write_stays(text):
    assert expression_text(ast.parse(text, mode="eval").body) == text


@pytest.mark.parametrize(
    "given, expected",
    [
        ("(a * b) + c", "a * b + c"),
        ("((a))[(1)]", "a[1]"),
        ("-(a * b)", "-a * b"),
        ("-(a / b * c)", "-a / b * c"),
        ("-(-a * b)", "-(-a * b)"),
        ("-(2 * a)", "-2 * a"),
        ("-(a + b)", "-(a + b)"),
        ("x[(1, 2)]", "x[1, 2]"),
        ("1.5e-05", "1.5e-5"),
    ],
)
def test_needless_parentheses_go(given, expected):
    assert expression_text(ast.parse(given, mode="eval").body) == expected


@pytest.mark.parametrize(
    "x",
    [
        0,
        -3,
        2.5,
        1e-5,
        float("inf"),
        -float("inf"),
        float("nan"),
        1e300,
        2j,
        1 + 2j,
        True,
        None,
        "a",
        np.float32(0.1),
        np.int64(3),
        np.bool_(True),
        np.float64,
        np.dtype("int32"),
        (1, 2.0),
        (1,),
        (),
        slice(1, None),
        ...,
        np.sin,
        np.array([1.0, 2.0]),
    ],
)
def test_literals_evaluate_to_the_constant(x):
    again = eval(literal(x), {"np": np})
    assert type(again) is type(x) or isinstance(x, np.dtype)
    assert (
        np.array_equal(again, x, equal_nan=True)
        if isinstance(x, (float, np.ndarray))
        else again == x
    )


def test_what_has_no_literal_is_refused():
    with pytest.raises(UnsupportedError, match="cannot be written as Python text"):
        literal(object())


def test_long_lines_are_broken_inside_brackets():
    text = f"def f({', '.join(f'parameter_{k}' for k in range(12))}):\n"
    text += (
        "    total = "
        + " + ".join(f"first_{k} * np.maximum(second_{k}, third_{k})" for k in range(9))
        + "\n"
    )
    text += "    return " + ", ".join(f"a_result_of_some_length_{k}" for k in range(9)) + "\n"
    tree = ast.parse(text)
    unparser = Unparser()
    unparser.dispatch(tree.body)
    assert all(len(line) <= WIDTH for line in unparser.text.splitlines())
    assert ast.dump(ast.parse(unparser.text)) == ast.dump(tree)


def test_a_comprehension_is_broken_before_its_for():
    items = ", ".join(f"a_long_name_{k}" for k in range(3))
    unparser = Unparser()
    unparser.dispatch(ast.parse(f"xs = [a + b for a, b in zip([{items}], [{items}])]").body)
    lines = [line for line in unparser.text.splitlines() if line]
    assert lines[:2] == ["xs = [a + b", "      for a, b in zip([a_long_name_0, a_long_name_1, "
                                        "a_long_name_2],"]


def test_a_long_string_is_not_broken():
    tree = ast.parse(f"x = f('{'a b ' * 40}', y)")
    unparser = Unparser()
    unparser.dispatch(tree.body)
    assert ast.dump(ast.parse(unparser.text)) == ast.dump(tree)
