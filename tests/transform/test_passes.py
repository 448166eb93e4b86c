"""Passes: before and after, and that they keep what a program means."""

from __future__ import annotations

import doctest
import importlib
import math
import re
import warnings

import numpy as np
import pytest

import s2s
from s2s import passes, pipeline
from s2s.back.print.printer import render
from s2s.derive.assemble import gradient
from s2s.errors import S2SError, VerifyError
from s2s.front import annotated_types, build, load_text
from s2s.ir.builder import Builder, emit
from s2s.ir.graph import Block, Function, Value, walk
from s2s.ir.interpret import interpret
from s2s.ir.reemit import rebuild
from s2s.ir.types import FLOAT, INT, Array, Extent, Scalar
from s2s.ir.verify import verify
from s2s.ops.core import control
from s2s.ops.core.record import RECORDS
from s2s.transform.cleanup.cse import cse
from s2s.transform.cleanup.dce import dce
from s2s.transform.cleanup.hoist_common import hoist_common
from s2s.transform.cleanup.inline import inline, inline_all
from s2s.transform.cleanup.licm import licm
from s2s.transform.cleanup.simplify import simplify

PASSES = [simplify, cse, hoist_common, licm, dce, inline, inline_all]
FLOAT64 = Scalar("float64")
VECTOR = Array("float64", (Extent("x.0", 0, False),))
MATRIX = Array("float64", (Extent("A.0", 0, False), Extent("A.1", 0, False)))


def read(text: str, *types):
    """The IR of the last function in `text`, as the front end gives it."""
    function = load_text(text, {"np": np}, "<test>")
    return build(function, types or annotated_types(function))


def shown(function) -> str:
    """The function's own text: no imports, comments or docstring."""
    text = render(function).text
    text = re.sub(r'\n +"""(.|\n)*?"""', "", text)
    lines = [line for line in text.splitlines() if not re.match(r"\s*#|import |$", line)]
    return "\n".join(lines)


def show(function) -> None:
    print(shown(function))


@pytest.mark.parametrize(
    "name",
    [
        "cleanup.simplify",
        "cleanup.jump_threading",
        "cleanup.cse",
        "cleanup.hoist_common",
        "cleanup.licm",
        "cleanup.dce",
        "cleanup.inline",
        "cleanup.list_to_array",
        "cleanup.dead_stores",
        "cleanup.merge_branches",
        "cleanup.redundant_masks",
        "cleanup.erase_classes",
        "stabilise.square_roots",
        "stabilise.complex_powers",
    ],
)
def test_docstring_shows_before_and_after(name):
    module = importlib.import_module(f"s2s.transform.{name}")
    tests = doctest.DocTestFinder().find(module, extraglobs={"read": read, "show": show, "np": np})
    results = [doctest.DocTestRunner().run(test) for test in tests]
    assert sum(r.attempted for r in results) > 0 and not any(r.failed for r in results)


PROGRAMS = {
    "straight": (
        "def f(x, y):\n    a = np.sin(x) * y\n    return a + np.sin(x) * y + a * 1",
        (0.3, 2.0),
    ),
    "loop": (
        "def f(x, n):\n    s = 0.0\n    c = x\n    for i in range(n):\n"
        "        s = s + np.sin(x) * i\n"
        "        c = c\n    return s + c",
        (0.3, 4),
    ),
    "while": (
        "def f(x, y):\n    n = 0\n    while x < 3.0:\n        if x < y:\n"
        "            x = x + np.exp(y)\n"
        "        else:\n            x = x * 2.0\n        n += 1\n    return x",
        (0.3, 0.2),
    ),
    "writes": (
        "def f(x, y):\n    a = x.copy()\n    b = x.copy()\n    for i in range(len(a)):\n"
        "        a[i] = b[i] * y\n        b[i] = a[i] + len(b)\n"
        "    return np.sum(a) + np.sum(b * a)",
        (np.arange(1.0, 5.0), 0.2),
    ),
    "break": (
        "def f(x, y):\n    for i in range(10):\n        x = x * 1.5\n        if x > y:\n"
        "            break\n"
        "    return x",
        (0.3, 2.0),
    ),
}


def kind(x):
    return (
        VECTOR
        if isinstance(x, np.ndarray)
        else Scalar("int64", True)
        if isinstance(x, int)
        else FLOAT64
    )


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("each", PASSES, ids=lambda p: p.__name__)
def test_pass_keeps_the_meaning(name, each):
    text, args = PROGRAMS[name]
    before = verify(read(text, *map(kind, args)))
    assert interpret(verify(each(before)), *args) == interpret(before, *args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_passes_together_keep_the_meaning(name):
    text, args = PROGRAMS[name]
    before = read(text, *map(kind, args))
    with passes.checked():
        after = pipeline.finish(pipeline.run(pipeline.PREPARE, before))
    assert interpret(after, *args) == interpret(before, *args)


def names(function) -> list[str]:
    return [op.name for op in walk(function.block)]


def test_dead_loop_carry_goes():
    f = read("def f(x, n):\n    c = 0\n    for i in range(n):\n        c = c + 1\n"
             "        x = x * 2.0\n    return x",
             FLOAT64, Scalar("int64", True))
    loop = next(op for op in dce(f).block.ops if op.name == "for")
    assert [v.name for v in loop.outputs] == ["x"]


def test_dead_while_goes():
    f = read("def f(x):\n    y = x\n    while y < 3.0:\n        y = y + 1.0\n    return x", FLOAT64)
    assert dce(f).block.ops == []


def test_two_buffers_that_are_written_stay_two():
    f = read("def f(x):\n    a = np.zeros(3)\n    b = np.zeros(3)\n    a[0] = x\n    b[1] = x\n"
             "    return np.sum(a) - np.sum(b)",
             FLOAT64)
    assert names(cse(f)).count("setitem") == 2
    assert interpret(cse(f), 2.0) == 0.0
    text = shown(pipeline.finish(f))
    assert "copy" not in text


def test_constants_of_different_kinds_are_not_one():
    f = read("def f(x):\n    return x * 0.0 + x * -0.0 + x * 1.5, 1, 1.0, True", FLOAT64)
    got = interpret(cse(f), 2.0)
    assert [type(v) for v in got[1:]] == [int, float, bool]


def test_what_may_raise_stays_in_a_loop_that_may_not_run():
    f = read("def f(x, n):\n    s = 0.0\n    for i in range(n):\n        s = s + 1.0 / x\n"
             "    return s",
             FLOAT64, Scalar("int64", True))
    g = licm(f)
    assert "divide" not in [op.name for op in g.block.ops]
    assert interpret(g, 0.0, 0) == 0.0


def test_what_reads_an_unbound_name_stays_in_its_loop():
    f = read("def f(x, n):\n    for i in range(n):\n        y = x * i\n    for j in range(n):\n"
             "        x += np.sin(y)\n    return x", FLOAT64, Scalar("int64", True))
    assert "sin" not in [op.name for op in licm(f).block.ops]


def test_what_may_raise_leaves_a_loop_that_runs():
    f = read("def f(x):\n    s = 0.0\n    for i in range(3):\n        s = s + 1.0 / x\n"
             "    return s", FLOAT64)
    assert "divide" in [op.name for op in licm(f).block.ops]


WHOLE_PASSES = {
    "while": "    while r > 1 and k < 50:\n        r = r / np.sum(A @ x)\n        k += 1\n"
             "    return r + k",
    "for": "    for i in range(k):\n        r = r / np.sum(A @ x)\n    return r",
    "down": "    for i in range(k, 0, -1):\n        r = r / np.sum(A @ x)\n    return r",
    "left": "    for i in range(k):\n        r = r / np.sum(A @ x)\n        if r < 2:\n"
            "            break\n    return r + i",
}


@pytest.mark.parametrize("name", WHOLE_PASSES)
def test_what_goes_through_an_array_leaves_a_loop_behind_a_test(name):
    f = read(
        f"def f(A, x, r, k):\n{WHOLE_PASSES[name]}", MATRIX, VECTOR, FLOAT64, Scalar("int64", True)
    )
    after = verify(licm(pipeline.run(pipeline.PREPARE, f)))
    loops = [op for op in walk(after.block) if op.name in ("for", "while")]
    assert loops and not any(
        op.name == "matmul" for loop in loops for block in loop.blocks for op in walk(block)
    )
    A, x = np.ones((3, 2)), np.ones(2)
    assert interpret(after, A, x, 100.0, 3) == interpret(f, A, x, 100.0, 3)
    if name != "left":  # i has no value there
        no_trips = 0.5, 0
        assert interpret(after, A, np.ones(5), *no_trips) == interpret(f, A, x, *no_trips)


def test_a_loop_behind_a_test_loses_a_carry_that_nothing_reads():
    def f(a, m, n):
        for _ in range(len(a)):
            for _ in range(n % 3):
                # only what leaks from it is carried
                fs = [lambda u, k=k: u * k for k in range(3)]  # noqa: F841
            for w in (m[0], m):
                s = np.mean(w)
        return s

    a, m = np.ones(3), np.ones((2, 3))
    np.testing.assert_allclose(s2s.grad(f, argnums=1)(a, m, 2), m / 6)
    with pytest.raises(UnboundLocalError):
        s2s.grad(f, argnums=1)(a[:0], m, 2)


STEEP = {  # of slopes that are infinite at 0, in loops that make no trip where k is 0
    "log": "    for i in range(n):\n        r += x * np.log(k)\n    return r",
    "root": "    for i in range(n):\n        r += x * k**0.5\n    return r",
    "inner": "    for i in range(3):\n        for j in range(n):\n"
             "            r += x * np.log(k)\n    return r",
    "down": "    for i in range(n, 0, -1):\n        r += np.sqrt(k) / i\n    return r",
    "while": "    while r < n:\n        r += x * np.log(k + 1.0 - k * k) + np.log(k) + 1.0\n"
             "    return r",
    "array": "    for i in range(n):\n        r += np.sum(np.log(k * np.arange(1.0, 5.0)))\n"
             "    return r",
    "of two": "    for i in range(n):\n        r += np.arctan2(k, k * x)\n    return r",
}


@pytest.mark.parametrize("name", STEEP)
def test_a_slope_before_a_loop_of_no_trips_is_zero(name):
    f = s2s.from_source(f"def f(x, k, n):\n    r = 0.0\n{STEEP[name]}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert s2s.grad(f, argnums=(0, 1))(2.0, 0.0, 0) == (0.0, 0.0)
        assert s2s.jvp(f, (2.0, 0.0, 0), (1.0, 1.0, 0)) == (0.0, 0.0)
        assert s2s.grad(s2s.grad(f, argnums=1), argnums=(0, 1))(2.0, 0.0, 0) == (0.0, 0.0)
    s2s.check_grads(f, (2.0, 0.7, 2), order=2)


def test_a_test_that_prints_is_not_repeated():
    f = read("def f(A, x, r):\n    while print(r) is None and r > 1:\n"
             "        r = r / np.sum(A @ x)\n    return r",
             MATRIX, VECTOR, FLOAT64)
    assert all(op.name != "if" for op in licm(f).block.ops)


def test_length_of_a_carried_array_is_that_of_the_argument():
    f = read("def f(x):\n    a = x.copy()\n    for i in range(3):\n        a = a * 2.0\n"
             "    return len(a)", VECTOR)
    g = dce(simplify(f))
    assert names(g) == ["length"] and g.block.ops[0].inputs == g.params


def test_pass_that_must_follow_another_is_checked():
    with pytest.raises(ValueError, match="dce must follow cse"):
        passes.ordered(passes.Pass(dce, "", after=cse), passes.Pass(cse, ""))


def test_broken_pass_is_named():
    f = read("def f(x):\n    return x * 2.0 + np.sin(x)", FLOAT64)

    def breaks(function):
        function.block.ops.reverse()
        return function

    with (
        passes.checked(),
        pytest.raises(VerifyError, match="after breaks: .* before it is defined"),
    ):
        pipeline.run([passes.Pass(breaks, "it is broken")], f)


SUMS = """
def f(x, n):
    total = 0.0
    last = 1.0
    for i in range(n):
        for j in range(i):
            total = total + x * j
        last = last * 2.0
    return total, last
"""


def test_carries_of_a_loop_emitted_again_have_the_types_they_would_have_anyway():
    numpys = read(SUMS, FLOAT64, INT)
    assert [y.type for y in numpys.results] == [FLOAT64, FLOAT]
    assert [y.type for y in rebuild(numpys).results] == [FLOAT64, FLOAT]
    assert [y.type for y in rebuild(numpys, [FLOAT, INT]).results] == [FLOAT, FLOAT]
    assert [y.type for y in rebuild(numpys, [Scalar("float32"), INT]).results] == [
        Scalar("float32"),
        FLOAT,
    ]
    assert [y.type for y in rebuild(rebuild(numpys, [FLOAT, INT]), [FLOAT64, INT]).results] == [
        FLOAT64,
        FLOAT,
    ]


def bodies(function) -> int:
    """How many ops are emitted when `function` is emitted again."""
    count = 0

    def rule(op, inputs):
        nonlocal count
        count += 1

    rebuild(function, rule=rule)
    return count


def test_bodies_of_loops_in_loops_are_emitted_again_once():
    function = read(SUMS, FLOAT64, INT)
    assert bodies(function) == len(list(walk(function.block)))


NEWTON = """
def f(x, rate):
    y = 1.0
    step = 1.0
    while np.abs(step) > 1e-9:
        value = 0.0
        factor = 1.0
        for k in range(4):
            factor = factor / (1.0 + y)
            value = value + factor * x
        step = (value - rate) / x
        y = y - 0.1 * step
    return y
"""
LEAVES = """
def f(x, rate):
    total = 0.0
    for i in range(9):
        t = x * i
        while t > rate:
            if t > 2.0 * rate:
                t = 0.5 * t
            else:
                t = t * t * 0.1
        total = total + t * t
    return total
"""
COUNTS = """
def f(x, rate):
    total = 1.0
    k = 0
    while total < rate:
        total = total * 1.5
        k = k + 1
        if total > x:
            total = total + x
    return total * x
"""


def types_in(function) -> list:
    """The types of all values of a function, those of loops' carries among them."""
    return [
        x.type
        for op in walk(function.block)
        for x in (*op.outputs, *(p for block in op.blocks for p in block.params))
    ]


@pytest.mark.parametrize("text", [NEWTON, LEAVES, COUNTS])
@pytest.mark.parametrize(
    "again",
    [
        (FLOAT64, FLOAT64),
        (FLOAT, FLOAT),
        (FLOAT64, FLOAT),
        (FLOAT, FLOAT64),
        (Scalar("float32"), FLOAT),
        (Scalar("complex128"), FLOAT),
    ],
)
def test_tapes_of_a_loop_emitted_again_have_the_types_they_would_have_anyway(
    text, again, monkeypatch
):
    """What is likely of a carry or a tape is only a shorter way to what its loop makes of it."""
    function = gradient(read(text, FLOAT64, FLOAT64), (0,))

    def emitted() -> list:
        try:
            return types_in(rebuild(function, [*again]))
        except S2SError as error:
            return [str(error)]

    found = emitted()
    monkeypatch.setattr(control, "_become", lambda *args: False)
    assert emitted() == found


def test_what_a_trip_takes_from_the_tape_that_it_has_filled_proves_nothing():
    """Each would be NumPy's because the other is said to be."""
    block = Block(params=[Value(FLOAT64, "x")])
    (x,) = block.params

    def body(i, tape, v):
        return control.tape_pop(control.tape_push(tape, emit(RECORDS["multiply"], v, x)))

    with Builder(block):
        block.yields = [control.for_loop(0, 3, 1, [emit(control.tape_new), 1.0], body)[1]]
    function = Function("f", block)
    assert [y.type for y in function.results] == [FLOAT64]
    assert [y.type for y in rebuild(function, [FLOAT]).results] == [FLOAT]


@pytest.mark.parametrize("text", [NEWTON, LEAVES, COUNTS])
def test_bodies_of_loops_with_tapes_are_emitted_again_once(text):
    function = gradient(read(text, FLOAT64, FLOAT64), (0,))
    assert any(op.name == "tape_push" for op in walk(function.block))
    assert bodies(function) == len(list(walk(function.block)))


def test_what_is_finished_is_not_finished_again():
    """`jit` of a gradient has nothing to add to it; whatever is emitted again is not finished."""
    once = gradient(read(NEWTON, FLOAT64, FLOAT64), (0,))
    with passes.recorded() as stages:
        twice = pipeline.finish(once)
    assert (
        not stages
        and twice is not once
        and twice.is_finished
        and render(twice).text == render(once).text
    )
    again = rebuild(once)
    assert not again.is_finished
    with passes.recorded() as stages:
        pipeline.finish(again)
    assert [name for name, _ in stages] == [each.name for each in pipeline.FINISH]


def test_powers_and_total_functions_of_python_leave_loops():
    def f(a, c, n):
        s = 0.0
        for i in range(n):
            s = s + np.sum(a ** 2) * c ** 3 + math.atan(c) + math.sqrt(c)
        return s

    before, inside = s2s.jit(f).lower(np.ones(3), 2.0, 3).source.split("for i in range(n):")
    assert all(text in before for text in ("a**2", "c**3", "math.atan(c)"))
    assert "math.sqrt(c)" in inside  # which may raise
