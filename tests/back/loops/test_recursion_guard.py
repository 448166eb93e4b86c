"""Functions that call themselves count how deep they are, and raise before the stack ends
(back/loops/recursion_guard.py).
"""

import re

import pytest

import s2s
from s2s.analysis.index_ranges import requirements
from s2s.back.loops.recursion_guard import LEAST, STACK
from s2s.pipeline import build, flatten_calls
from s2s.specialisation import type_of

from .test_scalar_replace import loops_of


def power(n, x):
    if n == 0:
        return x
    return power(n - 1, x * 1.0625)


def long(n, x):
    if n == 0:
        return x
    a = x * 1.5 + n
    b = a * x - a / (1.0 + x * x)
    c = a * b + x * b * b
    return long(n - 1, c / (1.0 + c * c) + b * x) * a + b * c


def limit(text: str) -> int:
    return int(re.search(r"if depth > (\d+):", text)[1])


def test_a_call_too_deep_raises_as_python_does():
    loops, text = loops_of(s2s.jit(power), 3, 0.5)
    assert loops(3, 0.5) == power(3, 0.5)
    low = re.sub(r"depth > \d+", "depth > 5", text)
    names: dict = {}
    exec(low, names)
    assert names["power"](5, 0.5) == power(5, 0.5)
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        names["power"](6, 0.5)


@pytest.mark.lengthy
def test_the_limit_is_a_round_number_that_the_stack_has_room_for():
    short, more = (limit(loops_of(s2s.jit(f), 3, 0.5)[1]) for f in (power, long))
    assert LEAST <= more < short <= STACK // 512 and short % 100 == more % 100 == 0


def test_nothing_is_required_of_indices_that_functions_calling_themselves_may_have():
    assert requirements(flatten_calls(build(power, [type_of(3, "n"), type_of(0.5, "x")]))) is None
