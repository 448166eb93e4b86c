"""Lambdas of one line are told apart by their code, with columns and without."""

import linecache
import subprocess
import sys
import types
from pathlib import Path

import lambda_lines
import numpy as np
import pytest

import s2s
from s2s.front.syntax import code_match
from s2s.front.syntax.find_source import definition_of


@pytest.mark.lengthy
@pytest.mark.parametrize("functions", lambda_lines.GROUPS, ids=lambda fs: f"{len(fs)}")
def test_each_lambda_of_a_line_is_the_one_that_runs(functions):
    assert [
        *filter(None, (lambda_lines.wrong(f, at) for f in functions for at in (0.6, 1.7)))
    ] == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 never records columns")
@pytest.mark.lengthy
def test_where_columns_are_left_out():
    command = [sys.executable, "-X", "no_debug_ranges", "-B", lambda_lines.__file__]
    root = Path(s2s.__file__).parent.parent
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=root, env={"PYTHONPATH": str(root)}
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_equal_lambdas_of_a_line_keep_their_closures():
    scaled = [[lambda x: x * k, lambda x: x * k][i] for i, k in ((0, 2.0), (1, 3.0))]
    (nested,) = [(lambda k: lambda x: x * k)(7.0)]
    assert [s2s.grad(f)(1.0) for f in (*scaled, nested)] == [3.0, 3.0, 7.0], (
        "k is one variable of the comprehension"
    )


def defined(text: str, name: str) -> dict:
    """What a text defines, which linecache knows by this name."""
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    space = {"np": np, "s2s": s2s}
    exec(compile(text, name, "exec"), space)
    return space


@pytest.mark.parametrize(
    "one, other",
    [
        ("lambda x, y: x * 2.0", "lambda x, *y: x * 2.0"),
        ("lambda x, y: x * 2.0", "lambda x, *, y: x * 2.0"),
        ("lambda x, y: x * 2.0", "lambda x, **y: x * 2.0"),
        ("lambda x, y: x * 2.0", "lambda x, y, /: x * 2.0"),
        ("lambda x: x * 2", "lambda x: x * 2.0"),
        ("lambda x: x + 0.0", "lambda x: x + -0.0"),
        ("lambda x: (lambda y: y * 2)(x)", "lambda x: (lambda y: y * 3)(x)"),
        ("lambda x: x if x > 1 else 2 * x", "lambda x: x if not x > 1 else 2 * x"),
    ],
)
def test_lambdas_that_differ_in_one_thing(one, other):
    for order in ((one, other), (other, one)):
        space = defined(f"f, g = {order[0]}, {order[1]}", f"<{order}>")
        for name, text in zip("fg", order):
            assert definition_of(space[name]).source.text.count("lambda") == f"{order}".count(
                "lambda"
            )
            space["h"] = eval(text)
            assert code_match.distance(space[name].__code__, space["h"].__code__) is not None
            found = definition_of(space[name]).node
            assert found.col_offset == f"f, g = {order[0]}, {order[1]}".index(
                text, 7 if name == "f" else 9 + len(order[0])
            )


def test_which_lambda_was_rewritten_by_a_tool():
    """Checks may be added to a lambda; then it is the one of which all is there, or nobody
    knows.
    """
    space = defined("f, g, h = lambda x: x * 2.0, lambda x: x * 3.0, lambda x: x", "<rewritten>")
    code = space["f"].__code__
    checked = [
        eval(text).__code__.replace(co_filename=code.co_filename, co_firstlineno=1)
        for text in (
            "lambda x: (float(7.0), x / 1.0, 3.0 * x)[2]",
            "lambda x: (float(7.0), x, x * 2.0)[2]",
        )
    ]
    with pytest.raises(
        s2s.SourceError,
        match="defines 2 functions that <lambda> may be, for a tool has rewritten its code\n"
        "Instead: write each lambda in a line of its own, "
        "or use `def`",
    ):
        s2s.grad(types.FunctionType(checked[1], {}))(1.0)
    space = defined("f, g = lambda x: x * 2.0, lambda x: x * 3.0", "<rewritten>")
    assert s2s.grad(types.FunctionType(checked[1], {}))(1.0) == 2.0
    with pytest.raises(s2s.SourceError, match="line 1 of <rewritten> defines another <lambda> "
                                              "than this one"):
        s2s.grad(types.FunctionType(checked[0].replace(co_consts=(None, 5.0) * 4), {}))(1.0)


def test_the_cells_of_a_notebook_are_compiled_statement_by_statement():
    """Where a module is imported in the same text, Python calls its functions by other
    instructions.
    """
    text = ("import s2s\n"
            "f, g = lambda x: s2s.grad(lambda x: x**3)(x), lambda x: s2s.grad(lambda x: x**4)(x)\n")
    linecache.cache["<cell>"] = len(text), None, text.splitlines(keepends=True), "<cell>"
    space = {}
    for statement in code_match.ast.parse(text).body:
        exec(compile(code_match.ast.Module([statement], []), "<cell>", "exec"), space)
    assert [s2s.grad(space[name])(1.0) for name in "fg"] == [6.0, 12.0]


def test_a_cell_that_awaits():
    text = "await nothing()\nf, g = lambda x: x * 2.0, lambda x: x * 3.0\n"
    linecache.cache["<awaits>"] = len(text), None, text.splitlines(keepends=True), "<awaits>"
    space = {"nothing": dict}
    exec(compile(text.replace("await ", ""), "<awaits>", "exec"), space)
    assert [s2s.grad(space[name])(1.0) for name in "fg"] == [2.0, 3.0]
