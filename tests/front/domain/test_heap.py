"""Random programs about who shares memory with whom: every name sees every write, or the program is
refused.
"""

import random

import numpy as np
import pytest
from front.test_build import assert_same, copied

from s2s.errors import UnsupportedError
from s2s.front import build, load_text, parameters
from s2s.ir.interpret import interpret
from s2s.ir.verify import verify
from s2s.specialisation import type_of

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

def twice(p):
    v = p * 0.5
    return v, v

def beside(p):
    v = p + 1.0
    return v, v[1:]

def nested(p):
    v, w = beside(p)
    return {"whole": v, "rest": [w, v]}

def turned(p, q):
    v, w = twice(p)
    return (w[::-1], v, q) if q[0] > 1.0 else (v[::-1], v, q)

"""
ARGUMENTS = (np.array([1.0, 2, 3, 4]), np.array([0.5, -1, 2, 8]), np.arange(12.0).reshape(3, 4), 3)


def statement(r: random.Random, depth: int, in_loop: bool, returns: bool = False) -> list[str]:
    x, y, z = (r.choice("abcd") for _ in range(3))
    i = r.choice(["0", "-1", "n % 4", "i % 4" if in_loop else "2"])
    k = r.randrange(4)
    simple = [
        [f"{x} = {y}"],
        [f"{x} = {y}.copy()"],
        [f"{x} = {y} + {z}"],
        [f"{x}[{i}] = {y}[{k}] * 0.5 + {k}"],
        [f"{x}[{k}] = {y}[{i}] - 2.0"],
        [f"{x} += {y}"],
        [f"{x} *= 0.5"],
        [f"{x}, {y} = {y}, {z}"],
        [f"v = {x}[::-1]", f"v[{i}] = {y}[0] + 1.0"],
        [f"{x} = {y}[::-1]"],
        [f"{x} = {y} if s > {k} else {z}"],
        [f"{x}[1:3] = {y}[0:2]"],
        [f"p = ({x}, {y})", f"p[{k % 2}][{i}] = s"],
        [f"fill({x}, {y}[0] + 2.0)"],
        [f"{x} = ident({y})"],
        [f"{x} = pick({y}, {z}, n)"],
        [f"{x} = bump({y}, {z})"],
        [f"s = s + {x}[{i}]"],
        [f"g = lambda t: {x}[0] + t", f"{y}[{i}] = g(s)"],
        [f"{x} = m[{k % 3}]"],
        ["for row in m:", f"    row[1] = row[0] + {x}[1]", f"    {y}[0] += row[2]"],
        ["w = m.T", f"w[1, {k % 3}] = {x}[0]"],
    ]
    if returns:
        simple += [
            [f"{x}, {y} = twice({z})", f"{y}[{i}] = {z}[1]"],
            [f"{x}, t = beside({y})", f"t[{k % 3}] = s", f"s = s + {x}[{i}]"],
            [f"h = nested({x})", f"h['rest'][0][{k % 3}] = {z}[0]", f"{y} = h['whole']"],
            [
                f"h = nested({x})",
                f"h['rest'][1][{i}] = s",
                f"{y} = h['whole']",
                f"{z} = h['rest'][1]",
            ],
            [f"{x}, {y}, t = turned({z}, {x})", f"{x}[{k}] = s", f"t[{i}] = 2.0"],
        ]
    choice = r.randrange(len(simple) + (4 if depth else 0))
    if choice < len(simple):
        return simple[choice]
    inner = [f"    {line}" for line in block(r, depth - 1, in_loop or choice % 4 == 1, returns)]
    if choice % 4 == 0:
        other = [f"    {line}" for line in block(r, depth - 1, in_loop, returns)]
        return [f"if s > {k - 1}:", *inner, "else:", *other]
    if choice % 4 == 1:
        leave = r.choice(["break", "continue", "return a, b, c, d, m, -s", "pass"])
        return [
            f"for i in range({r.choice(['n', '2'])}):",
            f"    if i > {k}:",
            f"        {leave}",
            *inner,
        ]
    if choice % 4 == 2:
        return [f"if s > {k - 1}:", *inner]
    return [f"k = {k}", "while k > 0:", "    k -= 1", *inner]


def block(r: random.Random, depth: int, in_loop: bool, returns: bool = False) -> list[str]:
    return [
        line for _ in range(r.randrange(1, 4)) for line in statement(r, depth, in_loop, returns)
    ]


def program(seed: int, returns: bool = False) -> str:
    r = random.Random(seed)
    lines = ["c = a.copy()", "d = b", "s = 0.5"]
    lines += [line for _ in range(6) for line in statement(r, 2, False, returns)]
    body = "\n".join(f"    {line}" for line in (*lines, "return a, b, c, d, m, s"))
    return f"{CALLED}def f(a, b, m, n):\n{body}\n"


@pytest.mark.parametrize("seed", range(60))
def test_every_name_sees_every_write(seed):
    check(program(seed), seed)


@pytest.mark.parametrize("seed", range(60))
def test_every_name_of_what_a_call_returns_sees_every_write(seed):
    check(program(seed, returns=True), seed)


def check(text: str, seed: int) -> None:
    function = load_text(text, {"np": np}, f"<alias {seed}>")
    expected = tuple(np.copy(y) for y in function(*copied(ARGUMENTS)))
    types = [type_of(a, p.name) for a, p in zip(ARGUMENTS, parameters(function))]
    try:
        built = verify(build(function, types))
    except UnsupportedError as error:
        assert "may or may not share memory" in error.message and error.remedy, text
        return
    assert_same(interpret(built, *copied(ARGUMENTS)), expected)
