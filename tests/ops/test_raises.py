"""What Python raises, where the record of an op says that it raises: in every form of `try`, interpreted and compiled, as Python does.

The programs are written from the records, so that a new op that says when it raises is tested without being named here.
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
from s2s.ops.record import RECORDS

INF, NAN = math.inf, math.nan
REALS = (0.5, 0.0, -0.0, 1.0, -1.0, -2.5, 3.0, 400.0, -400.0, 1e300, -1e300, 1e-310, 1.7e308, INF, -INF, NAN)
FEW = (0.5, 0.0, -1.0, -2.5, 2.0, 1e300, -1e300, 1e-300, INF, -INF, NAN)
INTEGERS = (3, 0, 1, -1, -4, 40)
COMPLEX = (0.5 + 1j, 0j, 1 + 0j, -1 + 0j, 1j, -1j, 1000 + 1000j, 1.7e308 + 1.7e308j, complex(INF, 1), complex(-INF, 1), complex(1, INF),
           complex(-INF, INF), complex(NAN, 1), complex(INF, 0.0))

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


RAISING = [record for record in RECORDS.values() if kinds_of(record)]
OF_NUMBERS = [record for record in RAISING if record.elementwise]


def spelled(record) -> str:
    """Its expression of a, b, c."""
    arity = len(kinds_of(record)[0].example)
    return ast.unparse(record.syntax(*(ast.Name(name) for name in NAMES[:arity])))


def program(record, kind: type, form: str):
    """A function with the op in this form of `try`."""
    args = ", ".join(NAMES[:len(kinds_of(record)[0].example)])
    above = next((base for base in kind.__mro__[1:] if base is not Exception), Exception).__name__
    text = f"def helper({args}):\n    return OP\n\n\ndef f({args}):{FORMS[form]}"
    for old, new in (("OP", f"({spelled(record)})"), ("KIND", _name(kind)), ("ABOVE", above), ("ARGS", args),
                     ("LAST", "a" if record.elementwise else args[-1]),
                     ("OTHER", "IndexError" if kind is KeyError else "KeyError")):
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
        return [[(x,) for x in REALS], *([[(n,) for n in INTEGERS]] if record.name.startswith("math.") else ())]
    if isinstance(examples[0][0], int):
        return [list(itertools.product(INTEGERS, INTEGERS))]
    if isinstance(examples[0][1], int):
        return [list(itertools.product(REALS, (2, 0, -3, -308)))]
    lists = [list(itertools.product(FEW, FEW)), list(itertools.product(FEW, (2, 0, -1, 3)))]
    if record.name in ("divide", "power"):
        lists += [list(itertools.product(COMPLEX[:5], COMPLEX[:5])), list(itertools.product(COMPLEX[:9], (2.0, -1.0, 0.5)))]
    if record.name in ("divide", "floor_divide", "remainder"):
        lists.append(list(itertools.product(INTEGERS, INTEGERS)))
    return lists


def outcome(f, args):
    """What comes of a call: the result, or the class of what was raised, what it was made of, and what it was raised from."""
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
            np.allclose(*parts, rtol=1e-12, atol=0, equal_nan=True) for parts in ((np.real(x), np.real(y)), (np.imag(x), np.imag(y))))


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


def differentiable():
    """The ops of real numbers with a derivative, and arguments: some for which they raise, and one for which they do not."""
    for record in OF_NUMBERS:
        if getattr(record, "partials", None) and record.partials[0] is not None and not record.name.startswith("cmath.") \
                and isinstance(kinds_of(record)[0].example[0], float):
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
    lists = [args for args in itertools.chain(*operands(record)[:1]) if all(map(math.isfinite, args))]
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
        for each in kinds_of(record):
            with pytest.raises(each.kind), np.errstate(all="ignore"):
                record.evaluate(*each.example)
