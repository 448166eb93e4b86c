"""One judgement of an op: its value and type against NumPy, its two modes against central
differences.
"""

import ast
import math

import numpy as np

from s2s.back.loop_pipeline import lower
from s2s.errors import TypeMismatchError
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value
from s2s.ir.interpret import interpret
from s2s.ir.types import Array, Extent, Scalar, Unknown, carries_derivative
from s2s.ir.verify import verify
from s2s.ops.core.record import type_of_constant, value
from s2s.pipeline import finish
from s2s.sparse.pattern import pattern_of, program
from s2s.transform.forward.jvp import jvp
from s2s.transform.reverse.vjp import vjp

NAMES = "xyzwuv"
RANDOM = np.random.default_rng(7)


def array(*shape):
    """A different array each time, the same in each run."""
    return np.round(RANDOM.normal(size=shape) * 2, 3) + 0.0005


def type_of(x, name: str, known: bool):
    """The type of an argument: of known rank, with run-time extents, or of unknown rank."""
    if isinstance(x, np.ndarray) and known:
        dims = tuple(
            1 if n == 1 else Extent(f"{name}.{k}", 0, False) for k, n in enumerate(x.shape)
        )
        return Array(x.dtype.name, dims)
    return type_of_constant(x) if not isinstance(x, np.ndarray) else Unknown(name, x.dtype.name)


def traced(rule, args, known: bool = True) -> Function:
    """`rule`, which works on Values, as a function of arguments like `args`."""
    block = Block([Value(type_of(x, name, known), name) for x, name in zip(args, NAMES)])
    with Builder(block):
        block.yields = [value(rule(*block.params))]
    return verify(Function("f", block))


def patterned(f: Function, args) -> None:
    """Where an element changes when another does, the pattern has an entry; one that holds for
    other floats has it for any change.
    """
    wrt = [
        k
        for k, p in enumerate(f.params)
        if isinstance(p.type, (Scalar, Array)) and carries_derivative(p.type)
    ]
    if not wrt or not all(isinstance(y.type, (Scalar, Array)) for y in f.results):
        return
    found = pattern_of(program(f), args, wrt)
    expected, column = results_of(f, args), 0
    pattern = found.matrix.toarray()
    for k in wrt:
        for place in range(np.size(args[k])):
            for step in (0.37, -5.0, 1e-6) if found.holds else (1e-6,):
                moved = np.array(args[k])
                moved.flat[place] += step
                changed = [*args[:k], moved if np.ndim(args[k]) else moved[()], *args[k + 1:]]
                with np.errstate(all="ignore"):
                    now = results_of(f, changed)
                differs = ~((now == expected) | (np.isnan(now) & np.isnan(expected)))
                assert not (differs & ~pattern[:, column]).any(), (
                    f"{f.results} changes with element {place} of {f.params[k]}"
                )
            column += 1


def results_of(f: Function, args) -> np.ndarray:
    """All results of `f`, one after another."""
    ys = interpret(f, *[np.array(x) if isinstance(x, np.ndarray) else x for x in args])
    return np.concatenate([np.ravel(y) for y in (ys if f.tupled else (ys,))]) * 1.0


def judge(rule, function, *args, modes=(True, False), derivative=True, second=True, tolerance=2e-6):
    """`rule` on Values must mean what `function` computes on arrays, with known ranks and
    without.
    """
    for known in modes:
        f = traced(rule, args, known)
        expected = function(*args)
        same(interpret(f, *args), expected, f.results[0].type)
        spelled(f, args)
        if known:
            lowered(f, args)
            patterned(f, args)
            if derivative:
                keeps_dtypes(rule, args)
        if derivative:
            differentiate(f, args, expected, tolerance)
            if second:
                twice(f, args)


def same(result, expected, type) -> None:
    """Equal values; and the type says what they are."""
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-13)
    assert np.shape(result) == np.shape(expected)
    expected = np.asarray(expected)
    match type:
        case Scalar(dtype):
            assert expected.shape == () and dtype in (expected.dtype.name, None)
        case Array(dtype, dims):
            assert dtype == expected.dtype.name and len(dims) == expected.ndim
            assert all(d == n for d, n in zip(dims, expected.shape) if isinstance(d, int))
            assert all(
                n != 1
                for d, n in zip(dims, expected.shape)
                if isinstance(d, Extent) and not d.may_be_one
            )
            lengths = {}
            for d, n in zip(dims, expected.shape):
                assert lengths.setdefault(d, n) == n
        case Unknown(_, dtype):
            assert dtype in (expected.dtype.name, None)
        case _:
            raise AssertionError(type)


def lowered(f: Function, args) -> None:
    """The loops that native code is made of compute the same."""
    results, expected = interpret(lower(finish(f)), *map(np.copy, args)), interpret(f, *args)
    for a, b in zip(results, expected, strict=True) if f.tupled else [(results, expected)]:
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        assert np.shape(a) == np.shape(b)


def spelled(f: Function, args) -> None:
    """Every op that prints as an expression prints as one that computes what the op computes."""
    if any(op.blocks for op in f.block.ops):
        return
    env = dict(zip(f.params, args))
    for op in f.block.ops:
        inputs = [env[x] for x in op.inputs]
        env[op.output] = op.record.evaluate(*inputs, **op.attrs)
        if op.record.syntax is None or op.name == "constant":
            continue
        names = [f"x{k}" for k in range(len(inputs))]
        tree = op.record.syntax(*(ast.Name(name, ast.Load()) for name in names), **op.attrs)
        code = compile(ast.fix_missing_locations(ast.Expression(tree)), "<printed>", "eval")
        module = {"np": np, "math": math, **dict(zip(names, inputs))}
        if op.record.helper is not None:
            module[op.record.helper.__name__] = op.record.helper
        np.testing.assert_array_equal(eval(code, module), env[op.output], err_msg=ast.unparse(tree))


NARROW = {"float64": "float32", "complex128": "complex64"}


def narrowed(x):
    """`x` in single precision, as NumPy's number where it is one; Python's own numbers as they
    are.
    """
    name = NARROW.get(getattr(getattr(x, "dtype", None), "name", None))
    return x if name is None else x.astype(name)


def like(x):
    """Ones like `x`, a number of Python's for one."""
    return (
        type(x)(1)
        if isinstance(x, (float, complex)) and not isinstance(x, np.generic)
        else np.ones_like(x)[()]
    )


def keeps_dtypes(rule, args) -> None:
    """In single precision, each cotangent has its argument's dtype and each tangent its result's,
    in both modes and in the second order.
    """
    single = [narrowed(x) for x in args]
    # all of them, and one among doubles
    for case in dict.fromkeys([tuple(range(len(args))), *((k,) for k in range(len(args)))]):
        xs = [single[k] if k in case else x for k, x in enumerate(args)]
        try:
            f = traced(rule, xs)
        except TypeMismatchError:  # LAPACK has no half precision, and some ops no mixed one
            continue
        wrt = active(f)
        y = interpret(f, *xs)
        assert np.asarray(y).dtype.name == f.results[0].type.dtype, (
            f"the value is {np.asarray(y).dtype}"
        )
        y_bar = like(y)
        dots = [like(xs[k]) for k in wrt]
        reverse = verify(vjp(f, wrt))
        forward = verify(jvp(f, wrt))
        for k, bar in zip(wrt, interpret(reverse, *xs, y_bar)[1:], strict=True):
            assert np.asarray(bar).dtype == np.asarray(xs[k]).dtype, (
                f"the cotangent of argument {k}, {np.asarray(xs[k]).dtype}, is "
                f"{np.asarray(bar).dtype}"
            )
        y_dot = interpret(forward, *xs, *dots)[-1]
        assert np.asarray(y_dot).dtype == np.asarray(y).dtype, (
            f"the tangent of {np.asarray(y).dtype} is {np.asarray(y_dot).dtype}"
        )
        again = verify(vjp(reverse, wrt))
        zero = [y_bar] if carries_derivative(f.results[0].type) else []
        bars = interpret(again, *xs, y_bar, *zero, *dots)[-len(wrt):]
        for k, bar in zip(wrt, bars, strict=True):
            assert np.asarray(bar).dtype == np.asarray(xs[k]).dtype, (
                f"the second cotangent of argument {k} is {np.asarray(bar).dtype}"
            )
        both = verify(jvp(reverse, wrt))
        for k, dot in zip(wrt, interpret(both, *xs, y_bar, *dots)[-len(wrt):], strict=True):
            assert np.asarray(dot).dtype == np.asarray(xs[k]).dtype, (
                f"the tangent of the cotangent of argument {k} is {np.asarray(dot).dtype}"
            )


def active(f: Function) -> list[int]:
    return [k for k, p in enumerate(f.params) if carries_derivative(p.type)]


def moved(args, wrt, directions, step):
    return [x + step * directions[wrt.index(k)] if k in wrt else x for k, x in enumerate(args)]


def differentiate(f: Function, args, y, tolerance) -> None:
    """Reverse, forward and central differences agree, and cotangents have their arguments'
    shapes.
    """
    wrt = active(f)
    y_bar = array(*np.shape(y)) if np.shape(y) else float(array())
    x_dots = [array(*np.shape(args[k])) if np.shape(args[k]) else float(array()) for k in wrt]
    reverse, forward = verify(vjp(f, wrt)), verify(jvp(f, wrt))
    x_bars = interpret(reverse, *args, y_bar)[1:]
    spelled(reverse, (*args, y_bar))
    if not any(isinstance(p.type, Unknown) for p in f.params):
        lowered(reverse, (*args, y_bar))
        patterned(reverse, (*args, y_bar))
    for x_bar, k in zip(x_bars, wrt, strict=True):
        assert np.shape(x_bar) == np.shape(args[k])
    y_dot = interpret(forward, *args, *x_dots)[-1]
    assert np.shape(y_dot) == np.shape(y)
    across = sum(np.vdot(bar, dot) for bar, dot in zip(x_bars, x_dots))
    along = np.vdot(y_bar, y_dot)
    np.testing.assert_allclose(across, along, rtol=1e-9, atol=1e-9)
    step = 1e-5
    difference = (
        np.asarray(interpret(f, *moved(args, wrt, x_dots, step)))
        - np.asarray(interpret(f, *moved(args, wrt, x_dots, -step)))
    ) / (2 * step)
    np.testing.assert_allclose(along, np.vdot(y_bar, difference), rtol=tolerance, atol=tolerance)


def twice(f: Function, args) -> None:
    """The derivative's own derivative: forward over reverse against central differences of the
    derivative, and reverse over reverse against forward over reverse."""
    wrt = active(f)
    y = interpret(f, *args)
    y_bar = array(*np.shape(y)) if np.shape(y) else float(array())
    x_dots = [array(*np.shape(args[k])) if np.shape(args[k]) else float(array()) for k in wrt]
    reverse = vjp(f, wrt)
    results = interpret(verify(jvp(reverse, wrt)), *args, y_bar, *x_dots)
    x_bar_dots = results[1 + len(wrt) + 1 :]
    step = 1e-5
    plus = interpret(reverse, *moved(args, wrt, x_dots, step), y_bar)[1:]
    minus = interpret(reverse, *moved(args, wrt, x_dots, -step), y_bar)[1:]
    for dot, a, b in zip(x_bar_dots, plus, minus, strict=True):
        np.testing.assert_allclose(
            dot, (np.asarray(a) - np.asarray(b)) / (2 * step), rtol=2e-5, atol=2e-5
        )
    weights = [array(*np.shape(bar)) if np.shape(bar) else float(array()) for bar in x_bar_dots]
    zero = [np.zeros_like(y)[()]] if carries_derivative(f.results[0].type) else []
    back = interpret(verify(vjp(reverse, wrt)), *args, y_bar, *zero, *weights)[-len(wrt) :]
    np.testing.assert_allclose(
        sum(map(np.vdot, back, x_dots)),
        sum(map(np.vdot, weights, x_bar_dots)),
        rtol=1e-9,
        atol=1e-9,
    )
