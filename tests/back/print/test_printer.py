"""The printer gives back what a person wrote, and writes derivatives as a person would."""

from __future__ import annotations

import ast
import inspect
import textwrap

import numpy as np
import pytest

import s2s
from s2s.back.print.inlining import Layout
from s2s.back.print.printer import render
from s2s.errors import VerifyError
from s2s.front import build
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value
from s2s.ir.interpret import interpret
from s2s.ir.types import FLOAT, INT, Array, Extent, Scalar
from s2s.ops.arrays.index import additem, put, take
from s2s.ops.core import elementwise as ew
from s2s.ops.core.control import for_loop
from s2s.ops.core.record import value
from s2s.ops.core.shape import length

F = Scalar("float64")
V = Array("float64", (Extent("v.0", 0, False),))
M = Array("float64", (Extent("m.0", 0, False), Extent("m.1", 0, False)))
COUNTS = Array("int64", (Extent("c.0", 0, False),))

# -------------------------------------------------------------------- functions as they are written


def straight(x: F, y: F):
    a = np.sin(x) * y
    return a + np.exp(-x)


def logistic(w: V, b: F, X: M):
    p = 1 / (1 + np.exp(-(X @ w + b)))
    return -np.sum(np.log(p))


def swap(x: F, y: F, n: INT):
    for i in range(n):
        x, y = y, x + y
    return x * y


def rotate(x: F, y: F, z: F, n: INT):
    for i in range(n):
        x, y, z = y, z, x
    return x, y, z


def break_early(x: V, limit: F):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2
        if total > limit:
            break
    return np.sin(total)


def skip(x: V):
    total = 1.0
    for i in range(len(x)):
        if x[i] < 0.0:
            continue
        total = total * (1.0 + x[i])
    return total


def leave_from_loop(x: V, limit: F):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2
        if total > limit:
            return total * x[i]
    return -total


def search(x: M, limit: F):
    for i in range(len(x)):
        for j in range(x.shape[1]):
            if x[i, j] > limit:
                return x[i, j]
    return limit


def sign(x: F):
    if x > 0.0:
        return 1.0
    if x < 0.0:
        return -1.0
    return x


def chain(x: F, y: F):
    if x > 2.0:
        y = y * x
    elif x > 1.0:
        y = y + x
    else:
        y = y / x
    return y


def only_otherwise(x: F, y: F):
    if not x > 2.0:
        y = y * x
    return y


def both(x: F, y: F, n: INT):
    while x > y and n > 0 or x < 0.0:
        x = x * y
        n -= 1
    return x


def bisect(lo: F, hi: F, target: F):
    while hi - lo > 0.01:
        mid = 0.5 * (lo + hi)
        if mid * mid > target:
            hi = mid
        else:
            lo = mid
    return lo + hi


def write(u: V, k: F, sweeps: INT):
    u = u.copy()
    n = len(u)
    for s in range(sweeps):
        for i in range(1, n - 1):
            u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


def double_buffer(u: V, nu: F, steps: INT):
    for t in range(steps):
        new = u.copy()
        new[1:-1] += nu * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = new
    return np.sum(np.sin(u))


def histogram(x: V, at: COUNTS, n: INT):
    counts = np.zeros(n)
    np.add.at(counts, at, x)
    return counts * counts


def new_axes(x: V, y: V):
    return x[:, None] * y[None, ::-1]


def calls_itself(x: F, n: INT):
    if n == 0:
        return x
    return calls_itself(x * 0.5, n - 1) + x


WRITTEN = [
    straight,
    logistic,
    swap,
    rotate,
    break_early,
    skip,
    leave_from_loop,
    search,
    sign,
    chain,
    only_otherwise,
    both,
    bisect,
    write,
    double_buffer,
    histogram,
    new_axes,
    calls_itself,
]


def types_of(function) -> list:
    return [eval(p.annotation, globals()) for p in inspect.signature(function).parameters.values()]


def written(function) -> str:
    """The text of `function` in this file, without its annotations."""
    lines = textwrap.dedent(inspect.getsource(function)).rstrip().splitlines()
    names = ", ".join(inspect.signature(function).parameters)
    return "\n".join([f"def {function.__name__}({names}):", *lines[1:]])


def definition(text: str) -> str:
    """The last function of a module, as text."""
    return text[text.rindex("def ") :].rstrip()


@pytest.mark.parametrize("function", WRITTEN, ids=lambda f: f.__name__)
def test_prints_what_was_written(function):
    assert definition(render(build(function, types_of(function))).text) == written(function)


# ------------------------------------------------------------------------------ what nobody wrote


def ir(name: str, types: dict, body) -> Function:
    """A function from IR: `body(*params)` returns its results."""
    params = [Value(type, name) for name, type in types.items()]
    block = Block(params)
    with Builder(block):
        results = body(*params)
        block.yields = [value(y) for y in results]
    return Function(name, block, tupled=len(results) > 1)


def printed(name: str, types: dict, body) -> str:
    return definition(render(ir(name, types, body)).text)


def named(value: Value, name: str) -> Value:
    value.name = name
    return value


def test_a_parameter_that_is_written_is_copied_once_before_the_loop():
    def body(u, n):
        return for_loop(0, n, 1, [u], lambda i, u: [put(u, i, 0.0)], names=["u"])

    assert (
        printed("f", {"u": V, "n": INT}, body)
        == """\
def f(u, n):
    u = u.copy()
    for i in range(n):
        u[i] = 0.0
    return u"""
    )


def test_an_array_that_is_read_later_is_copied_before_the_write():
    def body(x):
        a = named(ew.sin(x), "a")
        return [a, named(put(a, 0, 1.0), "b")]

    assert (
        printed("f", {"x": V}, body)
        == """\
def f(x):
    a = np.sin(x)
    b = a.copy()
    b[0] = 1.0
    return a, b"""
    )


def test_a_view_that_is_read_later_is_copied_rather_than_its_array():
    def body(x):
        a = named(ew.sin(x), "a")
        part = named(take(a, slice(0, 2)), "part")
        return [named(put(a, 0, 1.0), "a"), part]

    assert (
        printed("f", {"x": V}, body)
        == """\
def f(x):
    a = np.sin(x)
    part = a[0:2].copy()
    a[0] = 1.0
    return a, part"""
    )


def test_the_shape_of_an_overwritten_array_costs_no_copy():
    def body(x, n):
        a = named(ew.sin(x), "a")
        (b,) = for_loop(0, n, 1, [a], lambda i, u: [put(u, i, 0.0)], names=["a"])
        return [b, length(a, axis=0)]

    assert "copy" not in printed("f", {"x": V, "n": INT}, body)


def test_results_are_not_the_arguments():
    assert printed("f", {"x": V}, lambda x: [x, x]) == "def f(x):\n    return x.copy(), x.copy()"


def test_adding_at_an_index_array_adds_repeated_indices_once_each():
    def body(x, at):
        return [named(additem(ew.sin(x), 2.0 * x, at, pattern=("i",)), "y")]

    text = printed("f", {"x": V, "at": COUNTS}, body)
    assert "np.add.at(y, at, 2.0 * x)" in text


def test_a_negative_contribution_is_subtracted():
    def body(x, y):
        return [additem(named(ew.sin(x), "a"), -(2.0 * y), value(1), pattern=("i",))]

    assert "a[1] -= 2.0 * y" in printed("f", {"x": V, "y": F}, body)


def test_a_name_is_not_given_away_while_it_is_read():
    def body(x):
        first = named(x * 2.0, "x")
        second = named(first + x, "x")
        return [first, second, x]

    assert (
        printed("f", {"x": F}, body)
        == """\
def f(x):
    x_1 = x * 2.0
    x_2 = x_1 + x
    return x_1, x_2, x"""
    )


def test_a_bound_is_not_overwritten_by_the_carries_of_its_loop():
    def body(a):
        m = named(a * 2, "m")
        return for_loop(0, m, 1, [a + 5], lambda i, m: [named(m + i, "m")], names=["m"])

    function = ir("f", {"a": INT}, body)
    namespace: dict = {}
    exec(render(function).text, namespace)
    assert namespace["f"](3) == interpret(function, 3)


@pytest.mark.parametrize("name", ["np", "len", "lambda", "f"])
def test_names_shadow_nothing(name):
    def body(x):
        a = named(x * 2.0, name)
        return [a * a + length(named(ew.sin(x), "y"), axis=0)]

    text = printed("f", {"x": V}, body)
    assert f"{name}_1 = x * 2.0" in text


def test_a_long_expression_is_given_names():
    def body(x):
        y = x
        for k in range(20):
            y = ew.sin(y) * (1.5 + k)
        return [y]

    lines = printed("f", {"x": F}, body).splitlines()
    assert len(lines) > 3 and all(len(line) < 90 for line in lines)


def test_text_is_the_same_every_time():
    texts = {render(build(write, types_of(write))).text for _ in range(3)}
    assert len(texts) == 1


def test_lines_say_where_each_statement_comes_from():
    module = render(build(write, types_of(write)))
    lines = module.text.splitlines()
    for number, place in module.lines.items():
        assert place.source.name == "write"
        assert lines[number - 1].strip() == place.text or "=" in lines[number - 1]
    assert any(place.text.startswith("u[i] = ") for place in module.lines.values())


def test_the_dump_has_one_op_a_line_with_its_type():
    text = definition(render(build(straight, [FLOAT, FLOAT]), annotate=True).text)
    assert (
        text
        == """\
def straight(x: "float64", y: "float64"):
    t: "float64" = np.sin(x)
    a: "float64" = t * y
    t_1: "float64" = -x
    t_2: "float64" = np.exp(t_1)
    t_3: "float64" = a + t_2
    return t_3"""
    )


def test_compiled_code_has_no_variable_that_changes_from_number_to_array():
    def body(x):
        a = named(ew.sin(take(x, 0)), "a")
        b = named(ew.sin(x) * a, "a")
        return [b]

    assert "a_1 = " in definition(render(ir("f", {"x": V}, body), native=True).text)
    assert "a_1 = " not in definition(render(ir("f", {"x": V}, body)).text)


def test_in_a_loop_what_is_viewed_is_copied_and_not_the_array_on_every_trip():
    def smoothed(u):
        u = u.copy()
        for i in range(1, len(u) - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1]) + np.sin(u[i])
        return u

    many = s2s.vmap(s2s.vjp(smoothed), in_axes=(None, 0))
    many(np.ones(5), np.eye(5))
    before, after = many.source.split("for i in range(n - 2, 0, -1):")
    assert (
        "copy(y_bar)" in before and ".copy()" in after and "np.copy" not in after.split("return")[0]
    )


def test_what_stands_behind_a_guard_is_returned():
    def f(x):
        if x < 0.0:
            raise ValueError("negative")
        return x

    for t, y in ((s2s.value_and_grad(f), (2.0, 1.0)), (s2s.jit(f), 2.0)):
        names: dict = {}
        exec(t.lower(2.0).source, names)
        (run,) = (x for x in names.values() if callable(x))
        assert run(2.0) == y
        with pytest.raises(ValueError, match="negative"):
            run(-1.0)


def test_what_a_choice_reads_is_not_read_after_a_write():
    """The choice is printed in a later expression, and so is what its sides are made of (the
    fuzzer, seed 889).
    """
    def f(y, a, n):
        try:
            x = np.exp(-((y if n > 0 else -0.8) ** 2))
            raise ValueError
        except ValueError:
            a[n - 1] = 0.5 * a[n - 1] + np.cos(x if n % 2 == 0 else 1.1)
        return np.arctan(np.exp(-(a[n] ** 2)) * x) + y + np.sum(a)

    a, h = np.array([-0.86, -1.02, 0.24, 0.62]), 1e-6
    found = s2s.grad(f, (0, 1))
    assert (
        abs(
            found(1.02, a.copy(), 2)[0]
            - (f(1.02 + h, a.copy(), 2) - f(1.02 - h, a.copy(), 2)) / (2 * h)
        )
        < 1e-8
    )
    text = found.lower(1.02, a, 2).source
    assert " if " in text[text.index("backwards"):] and "a_bar_1 = a_bar" not in text


@pytest.mark.compile
def test_what_a_choice_reads_is_not_moved_to_the_end_of_a_loop():
    """The new s has no name of its own before the last use of the old one."""
    def f(a, x, c, n):
        s = 1.0
        for i in range(n):
            s, a[i] = np.sin((lambda u: u * x if c > 0 else x)(a[i])), s
        return s + np.sum(a)

    a, h = np.arange(4.0), 1e-6
    wanted = f(a.copy(), 0.7, 1, 4)
    assert abs(s2s.jit(f)(a.copy(), 0.7, 1, 4) - wanted) < 1e-14
    value, slope = s2s.value_and_grad(f, 1)(a.copy(), 0.7, 1, 4)
    assert (
        value == wanted
        and abs(slope - (f(a.copy(), 0.7 + h, 1, 4) - f(a.copy(), 0.7 - h, 1, 4)) / (2 * h)) < 1e-8
    )


def test_what_is_printed_too_late_is_found():
    a = Value(V, "a")
    block = Block(params=[a])
    with Builder(block):
        first = take(a, 0)
        block.yields = [ew.sin(first) + take(put(a, 0, 5.0), 1)]
    layout = Layout(Function("f", block))
    layout.verify()
    assert first.op not in layout.inlined
    layout.inline(first.op)
    with pytest.raises(VerifyError, match="getitem.* is printed where what it reads has been "
                                          "written to"):
        layout.verify()


def test_a_parameter_that_is_assigned_keeps_its_name():
    def f(_, y):
        for k in range(3):
            _ = _ * y + k
        return _

    assert "def f_value_and_grad(_, y):" in s2s.value_and_grad(f).lower(2.0, 0.5).source
    assert s2s.value_and_grad(f)(_=2.0, y=0.5) == (2.0 * 0.5**3 + 2.5, 0.5**3)


@pytest.mark.lengthy
def test_variables_of_large_compiled_functions_have_names_of_their_own():
    """Numba goes through all statements for each name that both sweeps assign."""
    lines = "".join(f"        v{k + 1} = np.sin(v{k}) * x + v{max(k - 3, 0)}\n" for k in range(160))
    f = s2s.from_source(f"def f(x, n):\n    v0 = x\n    for i in range(n):\n"
                        f"{lines}        v0 = v160 * 0.1\n    return v0\n", {"np": np})
    body = ast.parse(s2s.jit(s2s.grad(f)).lower(0.5, 3).loops).body[-1].body
    loops = [node for node in body if isinstance(node, ast.For)]
    forwards, backwards = (
        {x.id for x in ast.walk(loop) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
        for loop in loops
    )
    assert len(forwards) > 150 and len(backwards) > 150
    assert len(forwards & backwards) <= 3  # the counter, what the loop carries, and its tape
    assert {"v7", "v7_1"} <= forwards | backwards
    assert s2s.grad(f).lower(0.5, 3).source.count("v7 = ") == 2  # readers see one name


def test_a_dictionary_needs_no_import():
    def renamed(d):
        return {"a": d["b"] * 2.0, "b": d["a"]}

    pair = {"a": 1.0, "b": 2.0}
    assert "import" not in s2s.jvp(renamed).lower(pair, pair).source


def test_elements_of_lists_of_complex_numbers_are_added_to():
    def f(z, n):
        squares = []
        for k in range(n):
            squares.append(z[k] * z[k])
        total = 0j
        for k in range(1, n):
            total += squares[k] * squares[k - 1]
        return np.real(total)

    assert "squares_bar[k - 1] += " in s2s.grad(f).lower(np.ones(4) * 1j, 4).source


def test_a_return_out_of_two_loops_is_one():
    def first_above(a, limit):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if a[i, j] > limit:
                    return a[i, j] * i
        return -1.0

    def counts_too(a, limit):
        count = np.zeros(8)
        for i in range(a.shape[0]):
            count[0] += a[i, 0]
            count[1] += a[i, 1]
            count[2] += count[0]
            count[3] += count[1]
            count[4] += count[2]
            count[5] += count[3]
            count[6] += count[4]
            count[7] += count[5]
            for j in range(a.shape[1]):
                if a[i, j] > limit:
                    return count
        return -count

    for f in (first_above, counts_too):
        text = s2s.jvp(f).lower(np.ones((2, 3)), 3.5, np.ones((2, 3)), 0.0).source
        assert "break" not in text and text.count("return ") == 2
