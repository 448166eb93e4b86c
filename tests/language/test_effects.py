"""Programs that print, raise and assert: once, forwards, with the user's message, compiled too."""

from __future__ import annotations

import contextlib
import io
import math
import subprocess
import sys

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import UnsupportedError


class Diverged(ArithmeticError):
    """An exception of the user's own."""

    def __init__(self, step, value, *, limit=0.0):
        super().__init__(f"diverged in step {step}")
        self.step, self.value, self.limit = step, value, limit


# ------------------------------------------------------------------------------------- the programs


def checked_mean(x, n):
    """The mean of the first n."""
    if n <= 0:
        raise ValueError("n must be positive")
    if n > len(x):
        raise IndexError(f"{n} of {len(x)} values")
    s = 0.0
    for i in range(n):
        s += x[i] * x[i]
    return s / n


def newton(x, a):
    for i in range(30):
        step = (x * x - a) / (2 * x)
        x = x - step
        if abs(step) < 1e-10:
            break
        if abs(x) > 1e8:
            raise Diverged(i, x, limit=1e8)
    else:
        raise RuntimeError(f"no convergence after {i + 1} steps: {x:.3e}")
    return x


def bisect(lo, hi, target):
    if (lo**3 - target) * (hi**3 - target) > 0:
        raise ValueError("no sign change", lo, hi)
    while True:
        mid = 0.5 * (lo + hi)
        if hi - lo < 1e-9:
            return mid * target
        assert lo <= mid <= hi, f"{mid} is not between {lo} and {hi}"
        if (mid**3 - target) * (lo**3 - target) < 0:
            hi = mid
        else:
            lo = mid


def positive_root(x):
    if x < 0:
        raise ValueError(f"{x!r} has no root")
    return math.sqrt(x)


def distances(x, y):
    """A called function that raises, in a loop and a branch."""
    s = 0.0
    for i in range(len(x)):
        if y[i] > 0:
            s += positive_root(x[i] * x[i] + y[i])
        elif y[i] < -5.0:
            raise OverflowError(f"y[{i}] = {y[i]:+.1f}")
        else:
            s += x[i]
    return s * s


def reports(x, n):
    print("start", n, sep=": ")
    total = 0.0
    for i in range(n):
        x = x * 1.5 - 0.1
        if i % 2:
            print(f"{i:3d} {x:8.4f}", end=";\n")
        total = total + x * x
    state = "large" if total > 10 else "small"
    print(f"{state}: {total!r}", (n, [total]), "%d|%s" % (n, state), "{0:.1e} {k}".format(x, k=n))
    return total


def reports_arrays(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[i] * x[i]
        print(i, y)
    before = f"{y}"
    y[0] = 0.0
    print("y was", before, "and is", y, str(x.shape))
    return np.sum(y * x)


def reports_one_or_the_other(x, n):
    if n > 1:
        y = np.sin(x)
        said = f"sin {y:.4f} {2 * y!r}"
    elif n > 0:
        y, said = x, "itself"
    else:
        y = np.cos(x)
        said = "cos {:.3f} of {}".format(y, n)
    print(said, "or", said if x > 1 else f"<{said}>")
    for i in range(n):
        print(f"even {i}" if i % 2 == 0 else "odd {}".format(i * x))
    if y > 1:
        raise ValueError("large" if n > 1 else f"too large: {y}")
    return x * y


def chosen_kernel(x, n):
    kind = "linear"
    if n > 2:
        kind = "cubic" if n > 3 else "square"
    if kind == "cubic":
        y = x**3
    elif kind == "square":
        y = x * x
    else:
        y = x + 0.0
    assert kind != "cubic" or n < 10, "n is " + str(n) + " for " + kind
    return y * x


PROGRAMS = [
    pytest.param(f, args, id=f"{f.__name__}-{k}")
    for k, (f, args) in enumerate(
        [
            (checked_mean, (np.array([1.0, 2.0, 3.0]), 2)),
            (newton, (1.0, 2.0)),
            (bisect, (0.5, 2.0, 3.0)),
            (distances, (np.array([0.5, 1.0, 2.0]), np.array([1.0, -1.0, 2.0]))),
            (chosen_kernel, (1.5, 1)),
            (chosen_kernel, (1.5, 3)),
            (chosen_kernel, (1.5, 5)),
        ]
    )
]


@pytest.mark.parametrize("f, args", PROGRAMS)
def test_programs_that_may_raise(f, args):
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize("f, args", [PROGRAMS[1], PROGRAMS[3]])
def test_compiled_programs_that_may_raise(f, args):
    judge(f, *args, compiled=True)


# -------------------------------------------------------------------------------------- what raises

RAISING = [
    (checked_mean, (np.ones(3), 0), "raise ValueError("),
    (checked_mean, (np.ones(3), 7), "raise IndexError("),
    (newton, (1.0, -3.0), "raise RuntimeError("),
    (newton, (1e-12, 2.0), "raise Diverged("),
    (bisect, (0.5, 1.0, 3.0), "raise ValueError("),
    (bisect, (0.5, float("nan"), 3.0), "assert lo <= mid"),
    (distances, (np.ones(2), np.array([1.0, -9.0])), "raise OverflowError("),
    (positive_root, (-1.5,), "raise ValueError("),
    (chosen_kernel, (1.5, 20), "assert kind"),
]


def raised(f, args) -> BaseException:
    with (
        contextlib.redirect_stdout(io.StringIO()),
        np.errstate(all="ignore"),
        pytest.raises(Exception) as caught,
    ):
        f(*args)
    return caught.value


def tangents(args):
    return [
        np.ones_like(x) if isinstance(x, np.ndarray) else 1.0 if isinstance(x, float) else 0
        for x in args
    ]


def check_raises(through, f, args, text):
    expected = raised(f, args)
    assert not isinstance(expected, s2s.errors.S2SError)
    for t, its in (
        (s2s.grad(f), args),
        (s2s.value_and_grad(f), args),
        (s2s.jvp(f), (*args, *tangents(args))),
    ):
        error = raised(through(t), its)
        if isinstance(expected, AssertionError):  # pytest adds to what the oracle says
            expected.args = (str(expected).split("\n")[0],)
        assert (
            type(error) is type(expected)
            and error.args == expected.args
            and vars(error).keys() >= vars(expected).keys()
        )
        assert {k: v for k, v in vars(error).items() if k != "__notes__"} == vars(expected)
        note = getattr(error, "__notes__", [str(error.__cause__)])[0]
        assert __file__ in note and text in note and "running backwards" not in note


@pytest.mark.parametrize("f, args, text", RAISING)
def test_the_users_exception_is_raised_with_its_line(f, args, text):
    check_raises(lambda t: t, f, args, text)


@pytest.mark.compile
@pytest.mark.parametrize("f, args, text", [RAISING[1], RAISING[3], RAISING[6]])
def test_compiled_code_raises_the_users_exception(f, args, text):
    check_raises(s2s.jit, f, args, text)


def test_a_check_reads_as_it_was_written():
    lines = s2s.grad(checked_mean).lower(np.ones(3), 2).source.splitlines()
    k = lines.index("    if n <= 0:")
    assert lines[k : k + 4] == [
        "    if n <= 0:",
        '        raise ValueError("n must be positive")',
        "    if n > len(x):",
        '        raise IndexError(f"{n} of {len(x)} values")',
    ]
    assert "for i in range(n - 1, -1, -1):" in "\n".join(
        lines
    ) and "for i in range(n):" not in "\n".join(lines)


def test_an_assertion_reads_as_one():
    source = s2s.grad(bisect).lower(0.5, 2.0, 3.0).source
    assert 'assert lo <= mid and mid <= hi, f"{mid} is not between {lo} and {hi}"' in source


def test_an_assertion_may_say_a_tuple():
    def f(x):
        assert x > 0, ("x is", x)
        return x * x

    assert 'assert x > 0, ("x is", x)' in s2s.grad(f).lower(1.0).source
    assert s2s.grad(f)(2.0) == 4.0


def test_what_always_raises_for_these_arguments_raises_at_the_call():
    def of_vectors(x):
        if x.ndim != 1:
            raise TypeError(f"a vector is needed, not {x.ndim} axes", x.shape)
        return np.sum(x * x)

    np.testing.assert_array_equal(s2s.grad(of_vectors)(np.ones(2)), [2.0, 2.0])
    x = np.ones((2, 3))
    for t, args in [
        (s2s.grad(of_vectors), (x,)),
        (s2s.jvp(of_vectors), (x, x)),
        (s2s.vmap(of_vectors), (np.ones((4, 2, 3)),)),
        (s2s.grad(lambda z: of_vectors(z) * 2), (x,)),
    ]:
        error = raised(t, args)
        assert type(error) is TypeError and error.args == ("a vector is needed, not 2 axes", (2, 3))


def test_lengths_are_checked_after_the_programs_own_checks():
    def dot(x, y):
        if len(x) != len(y):
            raise ValueError(f"{len(x)} against {len(y)}")
        return np.sum(x * y)

    assert raised(s2s.grad(dot), (np.ones(2), np.ones(3))).args == ("2 against 3",)


def test_lanes_raise_what_a_lane_raises():
    error = raised(s2s.vmap(s2s.grad(positive_root)), (np.array([4.0, -2.0]),))
    assert type(error) is ValueError and "has no root" in str(error)


@pytest.mark.lengthy
def test_a_message_may_be_a_string_or_a_text_that_shows_data():
    assert output(s2s.grad(reports_one_or_the_other), 1.5, 1) == output(
        reports_one_or_the_other, 1.5, 1
    )


def test_a_cause_is_kept():
    def f(x):
        if x > 1.0:
            raise ValueError("large") from KeyError(x)
        return x * x

    assert repr(raised(s2s.grad(f), (2.0,)).__cause__) == "KeyError(2.0)"


# -------------------------------------------------------------------------------------- what prints


def output(f, *args) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            f(*args)
        except Exception as error:  # noqa: BLE001 - what is printed before counts
            print(type(error).__name__, error)
    return out.getvalue()


PRINTING = [
    (reports, (1.0, 4)),
    (reports, (0.1, 1)),
    (reports_arrays, (np.array([1.0, -2.0, 0.5]),)),
    *((reports_one_or_the_other, args) for args in [(0.7, 0), (0.7, 1), (1.1, 3)]),
]


@pytest.mark.parametrize("f, args", PRINTING)
def test_what_is_printed_is_printed_once(f, args):
    expected = output(f, *args)
    assert output(s2s.grad(f), *args) == output(s2s.value_and_grad(f), *args) == expected
    assert output(s2s.jvp(f), *args, *tangents(args)) == expected
    assert output(s2s.grad(lambda *xs: np.sum(s2s.grad(f)(*xs))), *args) == expected
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize("f, args", PRINTING[::2])
def test_compiled_code_prints_the_same(f, args):
    assert output(s2s.jit(s2s.grad(f)), *args) == output(f, *args)


@pytest.mark.compile
def test_compiled_code_that_fails_later_does_not_print_twice():
    def f(x, n):
        s = 0.0
        for i in range(n):
            print("step", i, s)
            s += x[i]
        return s

    assert output(s2s.jit(s2s.grad(f)), np.ones(2), 4) == output(f, np.ones(2), 4)


def test_lanes_print_one_after_the_other():
    def f(x):
        if x > 1:
            print("large", x)
        return x * x

    assert output(s2s.vmap(f), np.array([0.5, 2.0, 3.0])) == "large 2.0\nlarge 3.0\n"


def test_a_called_function_prints_even_if_its_result_is_not_used():
    def report(x):
        print("at", x)
        for i in range(3):
            x = x * 2 + i - x / 3 + x * x * i
        return x

    def f(x):
        report(x)
        return x * x

    assert output(s2s.grad(f), 1.0) == "at 1.0\n"


# ----------------------------------------------------------------------------- Python's own numbers

ARITHMETIC = [
    (lambda a, b: a / b, (1.0, 0.0)),
    (lambda a, b: a // b, (7, 0)),
    (lambda a, b: a % b, (7.0, 0.0)),
    (lambda a, b: a**b, (0.0, -1.0)),
    (lambda a, b: a**b, (-8.0, 1 / 3)),
    (lambda a, b: a**b, (2, 70)),
    (lambda a: math.sqrt(a), (-1.0,)),
    (lambda a: math.log(a), (0.0,)),
    (lambda a: math.exp(a), (1000.0,)),
    (lambda a: int(a), (float("nan"),)),
    (lambda a, b: a << b, (1, -1)),
    (lambda a, b: math.fmod(a, b), (1.0, 0.0)),
    (lambda a, b: math.pow(a, b), (-1.0, 0.5)),
    (lambda a: ~a, (True,)),
    (lambda a, b: a + b - (a > b), (True, True)),
    (lambda a: round(a, 2), (2.675,)),
    (lambda a, b: a // b, (True, True)),
]


def outcome(f, args):
    try:
        return f(*args)
    except Exception as error:  # noqa: BLE001 - that is the outcome
        return type(error), str(error)


@pytest.mark.compile
@pytest.mark.parametrize("f, args", ARITHMETIC)
def test_compiled_arithmetic_of_pythons_numbers_is_pythons(f, args):
    assert outcome(s2s.jit(f), args) == outcome(f, args)


@pytest.mark.compile
def test_numpys_numbers_do_not_raise():
    one, zero = np.float64(1.0), np.float64(0.0)
    with np.errstate(all="ignore"):
        assert s2s.jit(lambda a, b: a / b)(one, zero) == np.inf
        assert s2s.jit(lambda a, b: a + b)(np.bool_(True), np.bool_(True)) is True
        assert s2s.jit(lambda a, b: a // b)(np.int64(7), np.int64(0)) == 0


def test_a_division_is_asked_about_once():
    def f(x, n):
        return x / n + x * x / n

    assert s2s.jit(f).lower(1.0, 3).loops.count("raise ZeroDivisionError") == 1


# ----------------------------------------------------------------------------------------- the trap


def logs(x, y):
    s = 0.0
    for i in range(len(x)):
        t = np.log(x[i]) * y
        s = s + t
    return s * s


def roots(x):
    u = np.sqrt(x)
    return np.sum(u * 2.0)


def smallest(x):
    best = np.inf
    for i in range(len(x)):
        best = min(best, x[i] * x[i])
    return best


TRAPPED = [
    (
        logs,
        (np.array([1.0, -1.0]), 2.0),
        ["t becomes nan", "t = np.log(x[i]) * y", "where x[i] = -1.0, y = 2.0"],
        "t = np.log(x[i]) * y",
    ),
    (
        roots,
        (np.array([1.0, 0.0]),),
        ["x_bar[1] becomes inf", "where u[1] = 0.0"],
        "running backwards",
    ),
]


@pytest.mark.parametrize("f, args, said, line", TRAPPED)
def test_the_trap_shows_the_values_that_made_a_nan(f, args, said, line, monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "1")
    error = raised(s2s.grad(f), args)
    assert type(error) is FloatingPointError and all(text in str(error) for text in said)
    note = getattr(error, "__notes__", [str(error.__cause__)])[0]
    assert __file__ in note and line in note


@pytest.mark.compile
def test_compiled_code_falls_into_the_trap(monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "1")
    f, args, said, _ = TRAPPED[0]
    error = raised(s2s.jit(s2s.grad(f)), args)
    assert type(error) is FloatingPointError and all(text in str(error) for text in said)


def test_an_infinity_that_the_program_writes_is_no_trap(monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "1")
    np.testing.assert_array_equal(s2s.grad(smallest)(np.array([3.0, 1.0])), [0.0, 2.0])


# ---------------------------------------------------------------------------------- what is refused


def returns_text(x):
    return f"{x}"


def compares_text(x):
    text = f"{x:.1f}"
    if text == "1.0":
        return x
    return 2 * x


def reads_text(x):
    return float(str(x))


def text_is_true(x):
    return x if f"{x}" else 2 * x


def grows_text(x, n):
    text = ""
    for i in range(n):
        text = text + f"{x}"
    print(text)
    return x


def prints_to_a_file(x, file=sys.stderr):
    print(x, file=sys.stderr)
    return x


def raises_a_number(x):
    raise x


def raises_nothing(x):
    if x > 0:
        raise
    return x


def orders_text(x):
    return x if f"{x}" < "2" else 2 * x


REFUSED = [
    (
        returns_text,
        (1.0,),
        "a text that shows run-time data can be printed and raised, and nothing else",
        "return the data, and make the text after the call",
    ),
    (compares_text, (1.0,), "comparing a text that shows run-time data", "compare the data"),
    (
        reads_text,
        (1.0,),
        "a text that shows run-time data",
        "return the data, and make the text after the call",
    ),
    (text_is_true, (1.0,), "the truth of a text that shows run-time data", "test the data"),
    (orders_text, (1.0,), "comparing texts by order", "compare the data that they show"),
    (
        grows_text,
        (1.0, 2),
        "text is '' before the loop and something else after a trip",
        "give it a number or an array",
    ),
    (
        prints_to_a_file,
        (1.0,),
        "print to a file",
        "return what is to be written, and write it after the call",
    ),
    (
        raises_a_number,
        (1.0,),
        "raise of something that is no exception",
        "raise an exception, as ValueError(...)",
    ),
    (raises_nothing, (1.0,), "`raise` without an exception", "name the exception that is raised"),
]


@pytest.mark.parametrize("f, args, message, remedy", REFUSED)
def test_what_is_refused_says_what_to_write(f, args, message, remedy):
    with pytest.raises(s2s.errors.S2SError) as caught:
        s2s.grad(f)(*args)
    text = str(caught.value)
    assert message in text and remedy in text and "^" in text and __file__ in text


def test_a_class_that_a_file_cannot_import_is_not_exported(tmp_path):
    class Local(ValueError):
        pass

    def f(x):
        if x < 0:
            raise Local(x)
        return x * x

    with pytest.raises(UnsupportedError, match="raises Local") as caught:
        s2s.grad(f).export(tmp_path / "f.py", 1.0)
    assert "define it at the top of a module" in str(caught.value)


def test_an_exported_file_prints_and_raises(tmp_path):
    path = s2s.grad(reports).export(tmp_path / "reports_grad.py", 1.0, 4)
    run = subprocess.run(
        [sys.executable, "-c", "import reports_grad as m; m.reports_grad(1.0, 4)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == output(reports, 1.0, 4) and "s2s" not in path.read_text()


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f, what", [(positive_root, "raise"), (lambda x: print(x) or x * x, "print")]
)
def test_kernels_do_not_act(f, what):
    with pytest.raises(UnsupportedError, match=f"{what} in CUDA code") as caught:
        s2s.pipeline.loops_text(s2s.vmap(f).lower(np.ones(3)).function, "cuda")
    assert 'compile for target="cpu"' in str(caught.value) and __file__ in str(caught.value)


def told(x, n):
    print("none" if n > 4 else f"{x:.2f} of {n}", end=" ")
    if n > 3:
        s = f"big {x * n:.3f}"
    elif n > 2:
        s = "three %.3f of %d" % (x, n)
    else:
        y = x * 2
        s = f"small {y:.1f} {n}"
    print(s)
    if n > 5:
        raise ValueError("too many" if n > 6 else f"{n} are many")
    return x * x


@pytest.mark.parametrize("n", [1, 3, 4, 5, 6, 7])
def test_a_condition_chooses_among_texts_with_run_time_data(n, capsys):
    def run(f):
        try:
            f(0.3, n)
        except ValueError as error:
            return capsys.readouterr().out, str(error)
        return capsys.readouterr().out

    expected = run(told)
    assert expected == run(s2s.grad(told)) == run(lambda x, n: s2s.jvp(told, (x, n), (1.0, 0)))


def reads_beyond_the_end(x, i):
    w = x[i]  # noqa: F841
    return x[0] * 2.0


def reads_beyond_the_end_and_catches_it(x, i):
    try:
        w = x[i]  # noqa: F841
    except IndexError:
        return x[0] * 3.0
    return x[0] * 2.0


def asserts_and_reads(x, i):
    assert i < len(x), "beyond"
    return reads_beyond_the_end(x, i)


def test_what_no_result_needs_does_not_raise_but_where_it_is_caught_or_asserted():
    x = np.array([1.0, 2.0])
    with pytest.raises(IndexError):
        reads_beyond_the_end(x, 9)
    for t in (s2s.grad, s2s.jacfwd):
        assert t(reads_beyond_the_end)(x, 9).tolist() == [2.0, 0.0]
        assert t(reads_beyond_the_end_and_catches_it)(x, 9).tolist() == [3.0, 0.0]
        assert t(reads_beyond_the_end_and_catches_it)(x, 1).tolist() == [2.0, 0.0]
        with pytest.raises(AssertionError, match="beyond"):
            t(asserts_and_reads)(x, 9)
        with pytest.raises(IndexError):
            t(lambda x, i: x[i] * x[i])(x, 9)
