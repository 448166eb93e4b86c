"""Tapes that are pushed and popped together are printed as one list."""

from __future__ import annotations

import ast
import re
from textwrap import dedent

import numpy as np
import pytest
from differences import check

import s2s
from s2s.back.print.pack_tapes import pack_tapes


def packed(text: str, taken: tuple[str, ...] = ()) -> str:
    body = ast.parse(dedent(text)).body
    pack_tapes(body, taken)
    return re.sub(r"\((\w+(?:, \w+)*)\)(?= =| in )", r"\1", ast.unparse(body))  # as after 3.10


TAPES = """
a_tape = []
b_tape = []
for i in range(n):
    a_tape.append(a)
    {between}
    b_tape.append({pushed})
for i in range(n):
    a = a_tape.pop()
    {after}
    b = b_tape.pop()
"""


def filled(between: str = "b = f(a)", pushed: str = "b", after: str = "c = g(a)") -> str:
    return TAPES.format(between=between, pushed=pushed, after=after)


def test_two_tapes_are_one():
    assert packed(filled()) == dedent("""\
        saved = []
        for i in range(n):
            b = f(a)
            saved.append((a, b))
        for i in range(n):
            a, b = saved.pop()
            c = g(a)""")


def test_a_loop_over_one_of_them_is_one_over_both():
    head = "for i in range(n):\n    a = a_tape.pop()"
    text = filled().replace(head, "for a in reversed(a_tape):")
    assert "for a, b in reversed(saved):\n    c = g(a)" in packed(text)


def test_the_last_value_may_be_any():
    assert "saved.append((a, x[i] + 1))" in packed(filled(pushed="x[i] + 1"))


def test_names_that_are_taken():
    assert "saved_2.append((a, b))" in packed("saved = 1" + filled(), taken=("saved_1",))


@pytest.mark.parametrize("between", [
    "a = f(a)", "a += 1", "(a, b) = f(a)", "if a > 1: break", "if a > 1: continue",
    "if a > 1: raise E", "n = len(a_tape)", "for a in xs: pass"])
def test_what_happens_between_two_pushes_keeps_them_apart(between):
    assert "saved" not in packed(filled(between=between))


@pytest.mark.parametrize("after", ["c = g(b)", "b = g(a)", "if a: break", "n = len(b_tape)"])
def test_what_happens_between_two_pops_keeps_them_apart(after):
    assert "saved" not in packed(filled(after=after))


def test_an_expression_is_not_moved():
    text = filled(between="x[0] = 1").replace("append(a)", "append(x[0])")
    assert "saved" not in packed(text)


@pytest.mark.parametrize("changed", [
    ("    b = b_tape.pop()", "    if a: b = b_tape.pop()"),  # pops in another block
    ("    b_tape.append(b)", "    if a: b_tape.append(b)"),
    ("b_tape = []", "b_tape = [0]"),
    ("    b = b_tape.pop()", "    b = b_tape.pop(0)"),
    ("    b = b_tape.pop()", "    a = b_tape.pop()"),
])
def test_tapes_of_other_lengths_stay_apart(changed):
    assert "saved" not in packed(filled().replace(*changed))


def collatz_like(x):
    y, z = x, 1.0
    while y > 0.05:
        z = z * np.cos(y) + y * z
        y = 0.5 * np.sin(y) * np.exp(-y * z)
        z = np.tanh(z) * y
    return y * z


@pytest.mark.lengthy
def test_a_loop_that_saves_several_values():
    source = s2s.grad(collatz_like).lower(0.9).source
    assert source.count(".append(") == source.count("saved.append((") == 1
    assert source.count("in reversed(saved)") == 1 and "pop()" not in source
    check(collatz_like, 0.9)
