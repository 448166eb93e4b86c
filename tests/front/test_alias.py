"""Random programs about who shares memory with whom: every name sees every write, or the program is refused."""

import random

import numpy as np
import pytest
from test_build import assert_same, copied

from s2s.errors import UnsupportedError
from s2s.front import build, load_text, parameters
from s2s.ir.interpret import interpret
from s2s.ir.verify import verify
from s2s.signature import type_of

CALLED = """
def fill(p, v):
    p[1] = v

def ident(p):
    return p

def pick(p, q, n):
    if n > 2:
        return p
    return q

def bump(p, q):
    p[0] += q[1]
    q[2] = p[2] + 1.0
    return q * 2.0

"""
ARGUMENTS = (np.array([1.0, 2, 3, 4]), np.array([0.5, -1, 2, 8]), np.arange(12.0).reshape(3, 4), 3)


def statement(r: random.Random, depth: int, in_loop: bool) -> list[str]:
    x, y, z = (r.choice("abcd") for _ in range(3))
    i = r.choice(["0", "-1", "n % 4", "i % 4" if in_loop else "2"])
    k = r.randrange(4)
    simple = [
        [f"{x} = {y}"], [f"{x} = {y}.copy()"], [f"{x} = {y} + {z}"], [f"{x}[{i}] = {y}[{k}] * 0.5 + {k}"],
        [f"{x}[{k}] = {y}[{i}] - 2.0"], [f"{x} += {y}"], [f"{x} *= 0.5"], [f"{x}, {y} = {y}, {z}"],
        [f"v = {x}[::-1]", f"v[{i}] = {y}[0] + 1.0"], [f"{x} = {y}[::-1]"], [f"{x} = {y} if s > {k} else {z}"],
        [f"{x}[1:3] = {y}[0:2]"], [f"p = ({x}, {y})", f"p[{k % 2}][{i}] = s"], [f"fill({x}, {y}[0] + 2.0)"],
        [f"{x} = ident({y})"], [f"{x} = pick({y}, {z}, n)"], [f"{x} = bump({y}, {z})"], [f"s = s + {x}[{i}]"],
        [f"g = lambda t: {x}[0] + t", f"{y}[{i}] = g(s)"], [f"{x} = m[{k % 3}]"],
        ["for row in m:", f"    row[1] = row[0] + {x}[1]", f"    {y}[0] += row[2]"],
        ["w = m.T", f"w[1, {k % 3}] = {x}[0]"],
    ]
    choice = r.randrange(len(simple) + (4 if depth else 0))
    if choice < len(simple):
        return simple[choice]
    inner = [f"    {line}" for line in block(r, depth - 1, in_loop or choice % 4 == 1)]
    if choice % 4 == 0:
        other = [f"    {line}" for line in block(r, depth - 1, in_loop)]
        return [f"if s > {k - 1}:", *inner, "else:", *other]
    if choice % 4 == 1:
        leave = r.choice(["break", "continue", "return a, b, c, d, m, -s", "pass"])
        return [f"for i in range({r.choice(['n', '2'])}):", f"    if i > {k}:", f"        {leave}", *inner]
    if choice % 4 == 2:
        return [f"if s > {k - 1}:", *inner]
    return [f"k = {k}", "while k > 0:", "    k -= 1", *inner]


def block(r: random.Random, depth: int, in_loop: bool) -> list[str]:
    return [line for _ in range(r.randrange(1, 4)) for line in statement(r, depth, in_loop)]


def program(seed: int) -> str:
    r = random.Random(seed)
    lines = ["c = a.copy()", "d = b", "s = 0.5"]
    lines += [line for _ in range(6) for line in statement(r, 2, False)]
    body = "\n".join(f"    {line}" for line in (*lines, "return a, b, c, d, m, s"))
    return f"{CALLED}def f(a, b, m, n):\n{body}\n"


@pytest.mark.parametrize("seed", range(60))
def test_every_name_sees_every_write(seed):
    text = program(seed)
    function = load_text(text, {"np": np}, f"<alias {seed}>")
    expected = tuple(np.copy(y) for y in function(*copied(ARGUMENTS)))
    types = [type_of(a, p.name) for a, p in zip(ARGUMENTS, parameters(function))]
    try:
        built = verify(build(function, types))
    except UnsupportedError as error:
        assert "may or may not share memory" in error.message and error.remedy, text
        return
    assert_same(interpret(built, *copied(ARGUMENTS)), expected)
