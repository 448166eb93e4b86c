"""Every program's derivatives, in each mode and order, against hyper-dual numbers."""

import numpy as np
import pytest
from oracles import direction, dual, dual_second, inner, is_close
from programs import MORE_RESULTS, PROGRAMS

import s2s

pytestmark = pytest.mark.filterwarnings("error")
SCALAR = [p for p in PROGRAMS if p.name not in MORE_RESULTS]
by_name = {"ids": lambda p: p.name}


def tangents(program, seed: int = 0) -> list:
    rng = np.random.default_rng(seed)
    return [direction(x, rng) if k in program.wrt else None for k, x in enumerate(program.args)]


def copies(program) -> list:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in program.args]


def along(program, gradients, seed: int = 0) -> float:
    """<gradient, direction>, over the arguments differentiated."""
    return inner(tuple(gradients), tuple(tangents(program, seed)[k] for k in program.wrt))


def check_reverse(program, transform=lambda t: t, exact: bool = True):
    args = copies(program)
    expected = program.function(*copies(program))
    value, gradients = transform(s2s.value_and_grad(program.function, argnums=program.wrt))(*args)
    assert (value == expected) if exact else is_close(value, expected, 1e-12)
    for seed in range(3):
        slope = dual(program.function, program.args, tangents(program, seed))[1]
        assert is_close(along(program, gradients, seed), float(slope), 1e-8, 1e-9), gradients
    for k, gradient in zip(program.wrt, gradients):
        assert np.shape(gradient) == np.shape(program.args[k])
    for given, kept in zip(args, program.args):
        assert np.array_equal(given, kept), "an argument was changed"


def check_forward(program, transform=lambda t: t, exact: bool = True):
    """jvp over all arguments; those not differentiated get a zero tangent."""
    varied, args = tangents(program), copies(program)
    expected, slope = dual(program.function, program.args, varied)
    value, value_dot = transform(s2s.jvp(program.function))(*args, *with_zeros(args, varied))
    assert is_close(value, expected, 1e-13 if exact else 1e-11)
    assert is_close(value_dot, slope, 1e-8, 1e-9)
    for given, kept in zip(args, program.args):
        assert np.array_equal(given, kept), "an argument was changed"


def with_zeros(args, tangents) -> tuple:
    """`tangents`, with zeros for what is not varied."""
    return tuple(zero_tangent(x) if t is None else t for x, t in zip(args, tangents))


def zero_tangent(x):
    if isinstance(x, np.ndarray):
        return np.zeros(x.shape)
    return 0.0


def check_second(program, transform=lambda t: t):
    """The derivative, along one direction, of the gradient, paired with another direction."""
    first, second = tangents(program, 1), tangents(program, 2)
    expected = dual_second(program.function, program.args, first, second)
    gradient = s2s.grad(program.function, argnums=program.wrt)
    args = copies(program)
    _, gradient_dot = transform(s2s.jvp(gradient))(*args, *with_zeros(args, second))
    got = inner(tuple(gradient_dot), tuple(first[k] for k in program.wrt))
    assert is_close(got, float(expected), 1e-7, 1e-8)


def check_grad_of_grad(program):
    """The gradient of <gradient, direction>: reverse over reverse."""
    first, second = tangents(program, 1), tangents(program, 2)
    expected = dual_second(program.function, program.args, first, second)
    gradient = s2s.grad(program.function, argnums=program.wrt)
    _, pullback = s2s.vjp(gradient, *copies(program))
    bars = pullback(tuple(first[k] for k in program.wrt))
    got = inner(tuple(bars[k] for k in program.wrt), tuple(second[k] for k in program.wrt))
    assert is_close(got, float(expected), 1e-7, 1e-8)


@pytest.mark.parametrize("program", SCALAR, **by_name)
def test_reverse(program):
    check_reverse(program)


@pytest.mark.parametrize("program", PROGRAMS, **by_name)
def test_forward(program):
    check_forward(program)


@pytest.mark.parametrize("program", SCALAR, **by_name)
def test_forward_over_reverse(program):
    check_second(program)


@pytest.mark.slow
@pytest.mark.parametrize("program", SCALAR, **by_name)
def test_reverse_over_reverse(program):
    check_grad_of_grad(program)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.name in MORE_RESULTS], **by_name)
def test_vjp_of_several_results(program):
    """<y_bar, J x_dot> = <J^T y_bar, x_dot>."""
    rng = np.random.default_rng(3)
    y, y_dot = dual(program.function, program.args, tangents(program))
    y_bar = direction(y, rng)
    value, pullback = s2s.vjp(program.function, *copies(program))
    assert is_close(value, y, 1e-12)
    bars = pullback(y_bar)
    assert is_close(inner(bars, tuple(tangents(program))), inner(y_bar, y_dot), 1e-9)


@pytest.mark.compile
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.compiled], **by_name)
def test_compiled_reverse(program):
    check_reverse(program, s2s.jit, exact=False)


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.compiled], **by_name)
def test_compiled_forward(program):
    check_forward(program, s2s.jit, exact=False)


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.compiled], **by_name)
def test_compiled_second_order(program):
    check_second(program, s2s.jit)
