"""What Python raises, where the record of an op says that it raises: in every form of `try`,
interpreted and compiled, as Python does.

The programs are written from the records, so that a new op that says when it raises is tested
without being named here.
"""

from __future__ import annotations

import ast
import cmath
import itertools
import linecache
import math

import numpy as np
import pytest

import s2s
from s2s.front.values import raise_guards
from s2s.ops.core import raise_conditions
from s2s.ops.core.record import RECORDS

INF, NAN = math.inf, math.nan
REALS = (
    0.5,
    0.0,
    -0.0,
    1.0,
    -1.0,
    -2.5,
    3.0,
    400.0,
    -400.0,
    1e300,
    -1e300,
    1e-310,
    1.7e308,
    INF,
    -INF,
    NAN,
)
FEW = (0.5, 0.0, -1.0, -2.5, 2.0, 1e300, -1e300, 1e-300, INF, -INF, NAN)
INTEGERS = (3, 0, 1, -1, -4, 40)
COMPLEX = (
    0.5 + 1j,
    0j,
    1 + 0j,
    -1 + 0j,
    1j,
    -1j,
    1000 + 1000j,
    1.7e308 + 1.7e308j,
    complex(INF, 1),
    complex(-INF, 1),
    complex(1, INF),
    complex(-INF, INF),
    complex(NAN, 1),
    complex(INF, 0.0),
)

FORMS = {
    "its own class": """
    try:
        y = OP
    except KIND:
        y = 7.0 * LAST
    return y
""",
    "a class above it": """
    try:
        y = OP
    except (KeyError, ABOVE) as error:
        y = 7.0 * LAST
    return y
""",
    "a bare except": """
    y = 0.0 * a
    try:
        y = OP + 1
    except:  # noqa: E722
        y = y + 7.0 * LAST
    return y
""",
    "another class": """
    try:
        y = OP
    except OTHER:
        y = 7.0 * LAST
    return y
""",
    "one inside another": """
    n = 1
    try:
        try:
            y = OP
        except OTHER:
            y = 100.0
        n = n + 1
    except KIND:
        y = 7.0 * LAST
    return y * n
""",
    "else and finally": """
    y, n = a, 1
    try:
        y = OP
    except KIND:
        y = 7.0 * LAST
    else:
        n = n + 1
    finally:
        n = n * 2
    return y * n
""",
    "a loop": """
    total = a
    for k in range(3):
        try:
            y = OP
        except KIND:
            total = total + 7.0 * LAST
            continue
        total = total + y * k
    return total
""",
    "a helper": """
    try:
        y = helper(ARGS) * 2
    except KIND:
        y = 7.0 * LAST
    return y
""",
    "raised again": """
    try:
        y = OP
    except KIND as error:
        raise RuntimeError("again") from error
    return y
""",
}
NAMES = ("a", "b", "c")


def kinds_of(record):
    """The classes of exceptions that it raises of numbers."""
    return [each for each in record.raises if each.kind is not None and each.example]


def is_spelled(record) -> bool:
    """Whether it is one expression of numbers or matrices; what is not has a program below."""
    if record.elementwise:
        return True
    if record.syntax is None or any(
        each.kind is not np.linalg.LinAlgError for each in kinds_of(record)
    ):
        return False
    return not isinstance(record.evaluate(np.eye(2), *kinds_of(record)[0].example[1:]), tuple)


ALL_RAISING = [
    record for record in RECORDS.values() if any(each.kind is not None for each in record.raises)
]
RAISING = [record for record in ALL_RAISING if kinds_of(record) and is_spelled(record)]
OF_NUMBERS = [record for record in RAISING if record.elementwise]


def spelled(record) -> str:
    """Its expression of a, b, c."""
    arity = len(kinds_of(record)[0].example)
    text = ast.unparse(record.syntax(*(ast.Name(name) for name in NAMES[:arity])))
    return text if record.elementwise else f"np.sum({text})"


def program(record, kind: type, form: str):
    """A function with the op in this form of `try`."""
    args = ", ".join(NAMES[:len(kinds_of(record)[0].example)])
    above = next((base for base in kind.__mro__[1:] if base is not Exception), Exception).__name__
    text = f"def helper({args}):\n    return OP\n\n\ndef f({args}):{FORMS[form]}"
    for old, new in (
        ("OP", f"({spelled(record)})"),
        ("KIND", _name(kind)),
        ("ABOVE", above),
        ("ARGS", args),
        ("LAST", "a" if record.elementwise else "np.sum(a)"),
        ("OTHER", "IndexError" if kind is KeyError else "KeyError"),
    ):
        text = text.replace(old, new)
    return written(text)


def _name(kind: type) -> str:
    return "np.linalg.LinAlgError" if kind is np.linalg.LinAlgError else kind.__name__


def written(text: str):
    """The function `f` of a program's text."""
    name = f"<raises {next(COUNT)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"math": math, "cmath": cmath, "np": np, "__name__": __name__}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


COUNT = itertools.count()


def operands(record):
    """Lists of arguments, each of one kind, of which some raise."""
    examples = [tuple(each.example) for each in kinds_of(record)]
    if not record.elementwise:
        return [examples]
    if len(examples[0]) == 1:
        if record.name.startswith("cmath.") or record.name == "abs_":
            return [[(z,) for z in COMPLEX]]
        return [
            [(x,) for x in REALS],
            *([[(n,) for n in INTEGERS]] if record.name.startswith("math.") else ()),
        ]
    if isinstance(examples[0][0], int):
        return [list(itertools.product(INTEGERS, INTEGERS))]
    if isinstance(examples[0][1], int):
        return [list(itertools.product(REALS, (2, 0, -3, -308)))]
    lists = [list(itertools.product(FEW, FEW)), list(itertools.product(FEW, (2, 0, -1, 3)))]
    if record.name in ("divide", "power"):
        lists += [
            list(itertools.product(COMPLEX[:5], COMPLEX[:5])),
            list(itertools.product(COMPLEX[:9], (2.0, -1.0, 0.5))),
        ]
    if record.name in ("divide", "floor_divide", "remainder"):
        lists.append(list(itertools.product(INTEGERS, INTEGERS)))
    return lists


def outcome(f, args):
    """What comes of a call: the result, or the class of what was raised, what it was made of, and
    what it was raised from.
    """
    try:
        with np.errstate(all="ignore"):
            return f(*args)
    except Exception as error:
        return type(error), error.args, type(error.__cause__)


def agree(x, y) -> bool:
    """Whether two outcomes are the same, up to the last bits; NaN is like NaN."""
    if isinstance(x, tuple) or isinstance(y, tuple):
        return isinstance(x, tuple) and isinstance(y, tuple) and x == y
    if isinstance(x, int) or isinstance(y, int):
        return x == y
    with np.errstate(all="ignore"):
        return np.shape(x) == np.shape(y) and all(
            np.allclose(*parts, rtol=1e-12, atol=0, equal_nan=True)
            for parts in ((np.real(x), np.real(y)), (np.imag(x), np.imag(y)))
        )


def tried(record, forms):
    """Programs and arguments."""
    for kind in dict.fromkeys(each.kind for each in kinds_of(record)):
        for form in forms:
            f = program(record, kind, form)
            for args in operands(record):
                yield form, f, args


@pytest.mark.parametrize("record", RAISING, ids=lambda record: record.name)
def test_handlers_run_as_python_runs_them(record):
    for form, f, lists in tried(record, FORMS):
        g = generated(f, lists[0])
        for args in lists:
            found, wanted = outcome(g, args), outcome(f, args)
            assert agree(found, wanted), (form, args, found, wanted)


def generated(f, args):
    """The Python that is generated of `f` for arguments like these, as a function."""
    namespace = {}
    exec(s2s.jit(f).lower(*args).source, namespace)
    return namespace["f"]


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("record", RAISING, ids=lambda record: record.name)
def test_compiled_handlers_run_as_python_runs_them(record):
    for form, f, lists in tried(record, ("its own class", "another class", "else and finally")):
        g = s2s.jit(f)
        for args in lists:
            found, wanted = outcome(g, args), outcome(f, args)
            assert agree(found, wanted), (form, args, found, wanted)


@pytest.mark.parametrize(
    "record",
    [r for r in OF_NUMBERS if isinstance(kinds_of(r)[0].example[0], float)],
    ids=lambda record: record.name,
)
def test_numpys_numbers_warn_where_pythons_raise(record):
    """As one operand: arithmetic warns then, and functions of math raise as they do."""
    for kind in dict.fromkeys(each.kind for each in kinds_of(record)):
        f, lists = program(record, kind, "its own class"), operands(record)[0]
        for k in range(len(lists[0])):
            of_numpy = [
                (*args[:k], np.float64(args[k]), *args[k + 1 :])
                for args in lists
                if isinstance(args[k], float)
            ]
            g = generated(f, of_numpy[0]) if of_numpy else None
            for args in of_numpy:
                assert agree(outcome(g, args), outcome(f, args)), args


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("record", RAISING, ids=lambda record: record.name)
def test_compiled_code_raises_what_nobody_catches(record):
    args = ", ".join(NAMES[:len(kinds_of(record)[0].example)])
    f = written(f"def f({args}):\n    return {spelled(record)}\n")
    g = s2s.jit(f)
    for args in itertools.chain(*operands(record)):
        found, wanted = outcome(g, args), outcome(f, args)
        assert agree(found, wanted), (args, found, wanted)


@pytest.mark.parametrize(
    "power", ["KNOWN ** x", "x ** KNOWN", "math.pow(KNOWN, x)", "math.pow(x, KNOWN)"]
)
def test_powers_of_which_one_number_is_known(power):
    """Which of them are asked whether they overflow depends on the number: x ** 0.5 never does, and
    0.5 ** x may.
    """
    for known in (
        "0.5",
        "-0.5",
        "1.0",
        "-1.0",
        "0.0",
        "2.0",
        "-0.9",
        "-0.96",
        "1.01",
        "-1.0000001",
        "1e-300",
    ):
        body = (f"    try:\n        y = {power.replace('KNOWN', f'({known})')}\n"
                f"    except OverflowError:\n        y = 7.0 * x\n    return y\n")
        f = written(f"def f(x):\n{body}")
        made = generated(f, (1.5,))
        for x in (1.5, 3.0, -2.0, 2e3, -2001.0, 1.7e308, -1.7e308, 5e-324, 1e-310):
            assert agree(outcome(made, (x,)), outcome(f, (x,))), (known, x)


def differentiable():
    """The ops of real numbers with a derivative, and arguments: some for which they raise, and one
    for which they do not.
    """
    for record in OF_NUMBERS:
        if (
            getattr(record, "partials", None)
            and record.partials[0] is not None
            and not record.name.startswith("cmath.")
            and isinstance(kinds_of(record)[0].example[0], float)
        ):
            yield pytest.param(record, id=record.name)


@pytest.mark.parametrize("record", differentiable())
def test_the_derivative_is_that_of_the_side_that_ran(record):
    _check_derivatives(record, lambda t: t)


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("record", differentiable())
def test_the_compiled_derivative_is_that_of_the_side_that_ran(record):
    _check_derivatives(record, s2s.jit)


def _check_derivatives(record, through):
    arity = len(kinds_of(record)[0].example)
    plain = written(f"def f({', '.join(NAMES[:arity])}):\n    return {spelled(record)}\n")
    lists = [
        args for args in itertools.chain(*operands(record)[:1]) if max(map(abs, args)) <= 1e300
    ]
    for kind in dict.fromkeys(each.kind for each in kinds_of(record)):
        f = program(record, kind, "its own class")
        grad, jvp, twice = through(s2s.grad(f)), through(s2s.jvp(f)), through(s2s.grad(s2s.grad(f)))
        for args in lists:
            raised = outcome(plain, args)
            if isinstance(raised, tuple):
                if raised[0] is kind:
                    tangents = (1.0, *(0.0 for _ in args[1:]))
                    assert grad(*args) == 7.0 and twice(*args) == 0.0
                    assert jvp(*args, *tangents) == (7.0 * args[0], 7.0)
            else:
                assert agree(outcome(grad, args), outcome(s2s.grad(plain), args)), args


@pytest.mark.parametrize("record", differentiable())
def test_each_lane_has_a_handler_of_its_own(record):
    for each in kinds_of(record):
        f = program(record, each.kind, "its own class")
        lanes = np.array([each.example, [0.5] * len(each.example), each.example])
        batched = s2s.vmap(f)(*lanes.T)
        assert agree(batched, np.array([f(*lane) for lane in lanes]))


def test_each_record_has_an_example_of_what_it_raises():
    for record in RAISING:
        for each in record.raises:
            assert each.kind is None or each.example
        for each in kinds_of(record):
            with pytest.raises(each.kind), np.errstate(all="ignore"):
                record.evaluate(*each.example)


# --------------------------------------------------------------------------------- arrays and lists

X = np.array([0.5, 1.5, 2.5])
M = np.arange(6.0).reshape(2, 3) + 1
Q, S = np.eye(2) * 2, np.ones((2, 2))
IN_IT, BEYOND = np.array([0, 1]), np.array([0, 7])
GROWN = "l = []\nfor j in range(k):\n    l.append(x[0] * j)\n"
PROGRAMS = [  # the exception, the parameters, what is tried, and arguments of which some raise
    ("IndexError", "x, k", "y = x[k]", [(X, 0), (X, 3), (X, -3), (X, -4)]),
    ("LookupError", "x, k", "y = x[1, k]", [(M, 0), (M, 3), (M, -4)]),
    ("IndexError", "x, k", "y = x[k][1]", [(M, 0), (M, 3)]),
    ("IndexError", "x, k", "y = np.sum(x[[k, 0]])", [(X, 0), (X, 3)]),
    ("IndexError", "x, k", "y = np.sum(x[np.array([0, 1]) + k])", [(X, 0), (X, 3), (X, -9)]),
    ("Exception", "x, i", "y = np.sum(x[i])", [(X, IN_IT), (X, BEYOND)]),
    ("IndexError", "x, i", "y = np.sum(x[1, i])", [(M, IN_IT), (M, BEYOND)]),
    ("IndexError", "x, i", "y = np.sum(np.take(x, i))", [(X, IN_IT), (X, BEYOND)]),
    ("IndexError", "x, k", "y = x[1:][k]", [(X, 0), (X, 2)]),
    ("IndexError", "x, k", "y = np.take(x, k) * np.quantile(x, 0.5)", [(X, 0), (X, 3), (X, -4)]),
    ("IndexError", "x, k", "y = np.sum(np.take(x, k, axis=1))", [(M, 0), (M, 9)]),
    ("IndexError", "x, k", "y = np.insert(x, k, 5.0)[0]", [(X, 1), (X, 3), (X, 4), (X, -4)]),
    ("IndexError", "x, k", "y = np.delete(x, k)[0]", [(X, 1), (X, 3), (X, -3), (X, -4)]),
    ("IndexError", "x, k", "y = np.sum(np.delete(x, [k, 0], axis=1))", [(M, 1), (M, 9)]),
    ("ValueError", "x, k", "y = np.bincount(np.array([k, 1]))[0] * x[0]", [(X, 1), (X, -1)]),
    ("ValueError", "x", "y = np.partition(x, 2)[0]", [(X,), (X[:2],)]),
    ("ValueError", "x, k", "y = np.convolve(x, x[k:])[0]", [(X, 0), (X, 3)]),
    ("IndexError", "x, k", "z = x.copy()\nz[k] += 3.0\ny = np.sum(z)", [(X, 0), (X, 3)]),
    (
        "IndexError",
        "x, i",
        "z = x.copy()\nz[i] = 3.0 * x[0]\ny = np.sum(z)",
        [(X, IN_IT), (X, BEYOND)],
    ),
    (
        "IndexError",
        "x, i",
        "z = x.copy()\nnp.add.at(z, i, x[0])\ny = np.sum(z)",
        [(X, IN_IT), (X, BEYOND)],
    ),
    (
        "IndexError",
        "x, m",
        "y = np.sum(x[m])",
        [(X, np.array([True, False, True])), (X, np.array([True, False]))],
    ),
    ("IndexError", "x, k", "y = [x[0], x[1]][k]", [(X, 0), (X, 3)]),
    ("IndexError", "x, k", "y = (x[0], x[1])[k]", [(X, 0), (X, 3)]),
    ("IndexError", "x, k", GROWN + "y = l.pop()", [(X, 2), (X, 0)]),
    ("IndexError", "x, k", GROWN + "y = l.pop(1)", [(X, 2), (X, 1), (X, 0)]),
    ("IndexError", "x, k", GROWN + "del l[1]\ny = l[0]", [(X, 2), (X, 0)]),
    ("IndexError", "x, k", "l = [x[0]]\ny = l.pop(k)", [(X, 0), (X, 3)]),
    ("IndexError", "x, k", "l = []\ny = l.pop()", [(X, 2)]),
    ("ValueError", "x, k", "y = [1, 2, 3].index(k) * x[0]", [(X, 2), (X, 7)]),
    ("ValueError", "x, k", "l = [1, 2, 3]\nl.remove(k)\ny = l[0] * x[0]", [(X, 2), (X, 7)]),
    ("ValueError", "x, k", GROWN + "y = max(l)", [(X, 2), (X, 0)]),
    ("ValueError", "x, k", GROWN + "y = min(l)", [(X, 2), (X, 0)]),
    ("ValueError", "x, k", "y = max(())", [(X, 2)]),
    ("ValueError", "x, k", "y = max(v for v in x if v > k)", [(X, 0), (X, 7)]),
    ("ValueError", "x, k", "y = np.max(x[:k])", [(X, 2), (X, 0)]),
    ("ValueError", "x, k", "y = x[:k].min()", [(X, 2), (X, 0)]),
    ("ValueError", "x, k", "y = np.nanmax(x[:k]) - np.nanmin(x[:k])", [(X, 2), (X, 0)]),
    ("ValueError", "x, k", "y = np.nanmin(x[:k])", [(X, 2), (X, 0)]),
    ("ValueError", "x, k", "y = np.argmax(x[:k]) * x[0]", [(X, 2), (X, 0)]),
    ("ValueError", "x, k", "y = np.argmin(x[:k]) * x[0]", [(X, 2), (X, 0)]),
    ("ValueError", "x, k", "a, b = x[:k]\ny = a * b", [(X, 2), (X, 1), (X, 3)]),
    ("ValueError", "x, z", "y = np.sum(x + z)", [(X, X), (X, X[:2]), (X, X[:1])]),
    ("Exception", "x, k", "y = np.sum(np.where(x > 1, x, x[:k]))", [(X, 3), (X, 2), (X, 1)]),
    ("ValueError", "x, z", "y = x @ z", [(X, X), (X, X[:2])]),
    ("ValueError", "x, k", "y = np.sum(x.reshape(k, 2))", [(M, 3), (M, 4)]),
    ("ValueError", "x, k", "y = np.sum(np.reshape(x, (k, -1)))", [(M, 3), (M, 4)]),
    ("ValueError", "x, z", "y = np.sum(np.concatenate([x, z], axis=1))", [(M, M), (M, M[:1])]),
    ("ValueError", "x, z", "y = np.sum(np.stack([x, z]))", [(X, X), (X, X[:2])]),
    ("ValueError", "x, z", "y = np.einsum('i,i->', x, z)", [(X, X), (X, X[:2])]),
    (
        "ValueError",
        "x, z",
        "v = x.copy()\nv[:] = z\ny = np.sum(v)",
        [(X, X), (X, X[:2]), (X, X[:1])],
    ),
    ("ValueError", "x, z", "v = x.copy()\nv += z\ny = np.sum(v)", [(X, X), (X, X[:2]), (X, X[:1])]),
    ("ValueError", "x, k", "v = x.copy()\nv[:2] = x[:k]\ny = np.sum(v)", [(X, 2), (X, 3), (X, 1)]),
    ("ValueError", "x, k", "y = np.sum(np.zeros(k)) + x[0]", [(X, 2), (X, -1)]),
    ("ValueError", "x, k", "y = np.sum(np.ones((2, k))) + x[0]", [(X, 2), (X, -1)]),
    ("ValueError", "x, k", "y = np.sum(np.empty(k) * 0) + x[0]", [(X, 0), (X, -1)]),
    ("ValueError", "x, k", "y = np.sum(np.full(k, x[0]))", [(X, 2), (X, -1)]),
    ("ValueError", "x, k", "y = np.sum(np.eye(k)) + x[0]", [(X, 2), (X, -1)]),
    ("ValueError", "x, k", "y = np.sum(np.linspace(0.0, x[0], k))", [(X, 2), (X, -1)]),
    ("ValueError", "x, k", "y = np.sum(np.repeat(x, k))", [(X, 2), (X, -1)]),
    ("ValueError", "x, k", "y = np.sum(np.tile(x, k)) + x[0]", [(X, 2), (X, -1)]),
    ("ValueError", "x, k", "y = np.sum(np.broadcast_to(x, (k, 3))) + x[0]", [(X, 2), (X, -1)]),
    (
        "ZeroDivisionError",
        "x, k",
        "y = np.sum(np.arange(0, 4, k)) + x[0]",
        [(X, 2), (X, -1), (X, 0)],
    ),
    (
        "ValueError",
        "x, k",
        "y = x[0]\nfor j in range(0, 4, k):\n    y = y * 2",
        [(X, 2), (X, -1), (X, 0)],
    ),
    ("ValueError", "x, k", "y = np.sum(x[::k])", [(X, 2), (X, -1), (X, 0)]),
    ("ValueError", "x, k", "v = x.copy()\nv[::k] = x[0]\ny = np.sum(v)", [(X, 2), (X, -1), (X, 0)]),
    ("ValueError", "x, k", "y = float('x') + x[0]", [(X, 3)]),
    ("KeyError", "x, k", "y = {1: x[0], 2: x[1]}[k]", [(X, 1), (X, 3)]),
    ("KeyError", "x, k", "d = {1: x[0], 2: x[1]}\ny = d.pop(k)", [(X, 1), (X, 3)]),
    (
        "np.linalg.LinAlgError",
        "a, b",
        "y = np.sum(np.linalg.solve(a, b))",
        [(Q, X[:2]), (S, X[:2])],
    ),
    ("ValueError", "a, b", "y = np.sum(np.linalg.solve(a, b))", [(Q, X[:2]), (Q, X)]),
    ("np.linalg.LinAlgError", "a", "y = np.sum(np.linalg.matrix_power(a, -2))", [(Q,), (S,)]),
    ("np.linalg.LinAlgError", "a", "y = np.sum(np.linalg.svd(a)[1])", [(Q,), (S * np.nan,)]),
    (
        "np.linalg.LinAlgError",
        "a",
        "y = np.sum(np.linalg.svd(a, compute_uv=False))",
        [(Q,), (S * np.nan,)],
    ),
    (
        "np.linalg.LinAlgError",
        "a",
        "y = np.sum(np.abs(np.linalg.eig(a)[0]))",
        [(Q,), (S * np.nan,)],
    ),
    (
        "np.linalg.LinAlgError",
        "a, b",
        "y = np.sum(np.linalg.lstsq(a, b)[0])",
        [(Q, X[:2]), (S * np.nan, X[:2])],
    ),
    (
        "np.linalg.LinAlgError",
        "a, k",
        "y = np.sum(np.linalg.inv(a[k:, k:]))",
        [(Q, 0), (S, 0), (Q, 2)],
    ),
    (
        "ValueError",
        "x, z",
        "y = np.sum(np.asarray_chkfinite(z)) * x[0]",
        [(X, X), (X, X * math.nan)],
    ),
    ("ValueError", "x, k", "y = math.comb(k, 2) * x[0]", [(X, 4), (X, -1)]),
    ("ValueError", "x, k", "y = math.perm(k) * x[0]", [(X, 4), (X, -1)]),
    ("ValueError", "x, k", "y = math.factorial(k) * x[0]", [(X, 4), (X, -1)]),
    ("ValueError", "x, k", "y = math.isqrt(k) * x[0]", [(X, 4), (X, -1)]),
    ("OverflowError", "x, k", "y = math.ldexp(1.0, k) * x[0]", [(X, 4), (X, -1060), (X, 2000)]),
    ("ValueError", "x, k", "y = math.remainder(2.0, k) * x[0]", [(X, 3.0), (X, 0.0)]),
    ("ValueError", "x, k", "y = math.fsum([k, math.inf]) * x[0]", [(X, 3.0), (X, -math.inf)]),
    (
        "OverflowError",
        "x, k",
        "y = math.fsum([k, 1e308, 1e308, -math.inf]) * x[0]",
        [(X, -1e308), (X, 1.0), (X, math.inf)],
    ),
    (
        "(OverflowError, ValueError)",
        "x, k",
        "y = math.fsum([k, 1e308, math.inf]) * x[0]",
        [(X, -1e308), (X, 1e308), (X, -math.inf)],
    ),
    ("ValueError", "x, k", "y = math.isclose(x[0], 1.0, rel_tol=k) * x[0]", [(X, 0.5), (X, -1.0)]),
    ("ValueError", "x, k", "y = math.isclose(x[0], 1.0, abs_tol=k) * x[0]", [(X, 0.5), (X, -1.0)]),
    ("ZeroDivisionError", "x, k", "y = abs(0j ** k) * x[0]", [(X, 2.0), (X, -1.0), (X, -INF)]),
    ("ZeroDivisionError", "x, k", "y = math.log(3.0, k) * x[0]", [(X, 2.0), (X, 1.0)]),
    ("ZeroDivisionError", "x, k", "y = k / len(x[k:])", [(X, 0), (X, 3)]),
    ("ArithmeticError", "x, k", "y = 10.0 ** k + x[0]", [(X, 3), (X, 400)]),
    (
        "ValueError",
        "x, k",
        "i, j = np.unravel_index(k, (3, 4))\ny = x[0] * (i + 5 * j)",
        [(X, 11), (X, 12), (X, -1)],
    ),
    (
        "ValueError",
        "x, k",
        "i, j = np.unravel_index([k, 2], (3, 4), order='F')\ny = x[0] * np.sum(i + 5 * j)",
        [(X, 11), (X, 12), (X, -1)],
    ),
    (
        "ValueError",
        "x, i, j",
        "y = x[0] * np.ravel_multi_index((i, j), (3, 4))",
        [(X, 2, 3), (X, 3, 0), (X, -1, 0), (X, 0, 4), (X, 0, -1)],
    ),
    (
        "ValueError",
        "x, i, j",
        "y = x[0] * np.ravel_multi_index((i, j), (3, 4), mode=('wrap', 'raise'), order='F')",
        [(X, 2, 3), (X, -7, 0), (X, 7, 4)],
    ),
    (
        "ValueError",
        "x, q",
        "y = np.quantile(x, q)",
        [(X, 0.3), (X, 1.0), (X, 1.1), (X, -0.1), (X, NAN), (X, INF)],
    ),
    (
        "ValueError",
        "x, q",
        "y = np.sum(np.quantile(x, [q, 0.5]))",
        [(X, 0.3), (X, 1.1), (X, NAN)],
    ),
    (
        "ValueError",
        "x, q",
        "y = np.percentile(x, q)",
        [(X, 30.0), (X, 100.0), (X, 100.5), (X, -0.1), (X, NAN)],
    ),
]


def cases():
    """The texts of the programs, and arguments."""
    for kind, parameters, body, lists in PROGRAMS:
        first, lines = parameters.split(",")[0], body.replace("\n", "\n        ")
        text = (f"def f({parameters}):\n    try:\n        {lines}\n    except {kind}:\n"
                f"        y = 7.0 * np.sum({first})\n    return y\n")
        yield pytest.param(text, lists, id=body.splitlines()[-1])


@pytest.mark.parametrize("text, lists", cases())
def test_handlers_of_arrays_and_lists_run(text, lists):
    f = written(text)
    for args in lists:
        wanted = outcome(f, args)
        assert agree(outcome(generated(f, args), args), wanted), args
        grad = outcome(s2s.grad(f), args)
        if agree(wanted, 7.0 * np.sum(args[0])):
            assert agree(grad, np.full(np.shape(args[0]), 7.0))
        else:
            assert isinstance(grad, np.ndarray)


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("text, lists", cases())
def test_compiled_handlers_of_arrays_and_lists_run(text, lists):
    f = written(text)
    g = s2s.jit(f)
    for args in lists:
        assert agree(outcome(g, args), outcome(f, args)), args


@pytest.mark.lengthy
def test_each_op_that_raises_is_in_a_program(monkeypatch):
    """What is new in a record must be tested above."""
    asked, guard = set(), raise_guards._guard
    monkeypatch.setattr(
        raise_guards,
        "_guard",
        lambda frame, record, *rest: (asked.add(record.name), guard(frame, record, *rest))[1],
    )
    for case in cases():
        text, lists = case.values
        generated(written(text), lists[0])
    # of arrays, which their types refuse
    of_truth = [record for record in ALL_RAISING if record.raises is raise_conditions.TRUTH]
    assert {record.name for record in ALL_RAISING} - {
        record.name for record in [*RAISING, *of_truth]
    } - asked == set()
