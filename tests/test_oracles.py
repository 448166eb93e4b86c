"""The oracles against one another: who judges must be judged."""

import math

import generate
import numpy as np
import oracles
import pytest
from programs import MORE_RESULTS, PROGRAMS


@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p.name not in MORE_RESULTS], ids=lambda p: p.name
)
def test_hyper_duals_agree_with_central_differences(program):
    rng = np.random.default_rng(1)
    first, second = (
        [
            oracles.direction(x, rng) if k in program.wrt else None
            for k, x in enumerate(program.args)
        ]
        for _ in range(2)
    )
    f, args = program.function, program.args
    value, slope = oracles.dual(f, args, first)
    kept = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    assert oracles.is_close(value, f(*kept), 1e-13)
    assert oracles.is_close(slope, oracles.central_difference(f, args, first, 1e-4), 1e-6, 1e-7)
    curvature = oracles.dual_second(f, args, first, second)
    difference = oracles.central_difference(
        lambda *a: oracles.dual(f, a, first)[1], args, second, 1e-4
    )
    assert oracles.is_close(curvature, difference, 1e-6, 1e-6)


def test_hyper_duals_agree_with_the_complex_step():
    def f(x, y):
        z = np.exp(x) / (np.sin(x) ** 3 + np.cos(y) ** 3)
        return np.sum(z * np.sqrt(x + y) / (1 + x * y))

    x, y = np.array([0.3, 0.9, 1.4]), 0.7
    direction = (np.array([0.5, -1.0, 0.25]), 2.0)
    assert oracles.is_close(
        oracles.dual(f, (x, y), direction)[1], oracles.complex_step(f, (x, y), direction), 1e-14
    )


def test_hyper_duals_raise_where_pythons_numbers_do():
    def f(x):
        zero = np.mean(x - x)
        try:
            return 1.0 / float(zero)
        except ZeroDivisionError:
            return np.tanh(float(x[:1].sum()))

    x = np.array([0.3, 0.4])
    np.testing.assert_allclose(
        oracles.dual(f, (x,), (np.array([1.0, 5.0]),)), (f(x), 1 - np.tanh(0.3) ** 2), rtol=1e-14
    )


def test_hyper_duals_know_functions_by_all_their_names():
    for name, at in (
        ("asin", 0.3),
        ("acosh", 1.3),
        ("atanh", 0.3),
        ("atan", 0.3),
        ("lgamma", 2.3),
        ("gamma", 1.7),
    ):
        for f in (lambda x: getattr(math, name)(x), lambda x: getattr(np, name)(x))[
            : 1 + hasattr(np, name)
        ]:
            assert oracles.dual(f, (at,), (1.0,))[1] == pytest.approx(
                (f(at + 1e-6) - f(at - 1e-6)) / 2e-6, 1e-6
            )
    with pytest.raises(oracles.NotCovered):
        oracles.dual(
            lambda x: np.spacing(x) + np.logaddexp2(x, 1.0) + np.nextafter(x, 1.0), (0.3,), (1.0,)
        )


def test_hyper_duals_take_nothing_of_what_a_bound_replaces():
    with np.errstate(divide="ignore"):
        for bound in (np.minimum, np.fmin):
            value, slope = oracles.dual(
                lambda x: np.tanh(bound(1.0 / x, 5.0)), (np.array([0.0, 0.5]),), (np.ones(2),)
            )
            np.testing.assert_allclose(value, np.tanh([5.0, 2.0]))
            np.testing.assert_allclose(slope, [0.0, -4.0 / np.cosh(2.0) ** 2], rtol=1e-14)


def test_hyper_duals_of_eigh_and_of_single_precision():
    S = np.array([[2.0, 0.3, 0.1], [9.0, 3.0, 0.2], [7.0, 8.0, 5.0]])

    def f(x):
        w, q = np.linalg.eigh(S + x * S * S, "U")
        return np.sum((q * np.exp(0.1 * w)) @ q.T * S) + w[0] * np.float32(0.5)

    value, slope = oracles.dual(f, (0.3,), (1.0,))
    assert oracles.is_close(value, f(0.3), 1e-14)
    assert oracles.is_close(slope, oracles.central_difference(f, (0.3,), (1.0,), 1e-4), 1e-9)
    curvature = oracles.central_difference(
        lambda x: oracles.dual(f, (x,), (1.0,))[1], (0.3,), (1.0,), 1e-4
    )
    assert oracles.is_close(oracles.dual_second(f, (0.3,), (1.0,), (1.0,)), curvature, 1e-9)
    value, slope = oracles.dual(lambda x: np.float32(x) * 2.0, (0.1,), (1.0,))
    assert value == np.float32(0.1) * 2.0 and slope == 2.0


def test_what_the_oracle_does_not_know_is_no_error_of_the_program():
    def f(x):
        try:
            return np.linalg.eigvals(x)[0]
        except Exception:
            return x[0, 0]

    with pytest.raises(oracles.NotCovered):
        oracles.dual(f, (np.eye(2),), (np.ones((2, 2)),))


def test_hyper_duals_leave_the_arguments_alone():
    def f(x):
        x[0] = 2.0 * x[1]
        return x[0]

    x = np.array([1.0, 3.0])
    assert oracles.gradient(f, (x,), 0).tolist() == [0.0, 2.0]
    assert x.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("seed", range(40))
def test_generated_programs_are_finite_and_smooth(seed):
    text = generate.text(seed)
    assert text == generate.text(seed)
    scope = {"np": np}
    exec(text, scope)
    args = generate.arguments(seed)
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    rng = np.random.default_rng(seed)
    value, slope = oracles.dual(scope["f"], args, [oracles.direction(x, rng) for x in args])
    assert oracles.is_close(value, scope["f"](*copies), 1e-13)
    assert np.isfinite(slope) and abs(slope) < 1e6


def test_reducing_keeps_the_failure():
    program = generate.text(12)
    small = generate.reduce(
        program, lambda candidate: "np.sin" in candidate and "return" in candidate
    )
    assert "np.sin" in small and len(small) < len(program) / 3
