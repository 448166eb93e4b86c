"""Complex derivatives of complex functions: grad(f, holomorphic=True) is f'(z)."""

import cmath

import numpy as np
import pytest

import s2s


def power(z, n):
    w = z
    for _ in range(n - 1):
        w = w * z
    return w


def spiral(z, n):
    """A loop, a branch and writes in place; its derivative is found by the limit in two
    directions.
    """
    u = np.zeros(n, complex)
    for k in range(n):
        u[k] = z * (u[k - 1] + 1.0) if k > 0 else np.exp(z)
        if u[k].real > 1.0:
            u[k] = np.sin(u[k]) / z
    return np.sum(u * u)


def test_powers():
    z = 0.3 - 0.7j
    derivative = s2s.grad(power, holomorphic=True)
    for n in range(1, 5):
        np.testing.assert_allclose(derivative(z, n), n * z ** (n - 1), rtol=1e-14)
    second = s2s.grad(derivative, holomorphic=True)
    np.testing.assert_allclose(second(z, 4), 12 * z ** 2, rtol=1e-14)


@pytest.mark.parametrize("z", [0.3 - 0.7j, 1.1 + 0.2j])
def test_limits_in_both_directions(z):
    value, derivative = s2s.value_and_grad(spiral, holomorphic=True)(z, 4)
    np.testing.assert_allclose(value, spiral(z, 4), rtol=0)
    for h in (1e-5, 1e-5j):
        np.testing.assert_allclose(
            derivative, (spiral(z + h, 4) - spiral(z - h, 4)) / (2 * h), rtol=1e-7
        )


def test_arrays():
    z = np.array([0.1 + 0.2j, 0.3 - 0.4j])
    np.testing.assert_allclose(s2s.grad(lambda z: np.sum(z ** 3) * z[0], holomorphic=True)(z),
                               3 * z ** 2 * z[0] + np.array([np.sum(z ** 3), 0]), rtol=1e-14)


@pytest.mark.compile
def test_compiled():
    z = 0.3 - 0.7j
    np.testing.assert_allclose(
        s2s.jit(s2s.grad(spiral, holomorphic=True))(z, 4),
        s2s.grad(spiral, holomorphic=True)(z, 4),
        rtol=1e-12,
    )


def test_the_convention_for_real_results():
    """By z = u + iv, the derivative is that by u minus i times that by v: of abs(z)**2 it is 2
    conj(z).
    """
    z = 0.3 - 0.7j
    np.testing.assert_allclose(s2s.grad(lambda z: abs(z) ** 2)(z), 2 * z.conjugate(), rtol=1e-14)
    np.testing.assert_allclose(s2s.grad(lambda z: (z * z).real)(z), 2 * z, rtol=1e-14)
    np.testing.assert_allclose(s2s.grad(lambda z: cmath.phase(z))(z), -1j / z, rtol=1e-14)


@pytest.mark.parametrize(
    "f, z, holomorphic, message, remedy",
    [
        (lambda z: np.abs(z), 1j, True, "returns a number", "leave holomorphic=True out"),
        (
            lambda x: x + 0j,
            0.3,
            True,
            "grad with holomorphic=True, and x is a float",
            "pass a complex number",
        ),
        (
            lambda z: z * z,
            1j,
            False,
            "returns one real number, and <lambda> returns a complex",
            "say holomorphic=True",
        ),
    ],
)
def test_refusals(f, z, holomorphic, message, remedy):
    with pytest.raises(s2s.TypeMismatchError, match=message.replace("<lambda>", ".*")) as caught:
        s2s.grad(f, holomorphic=holomorphic)(z)
    assert remedy in str(caught.value)


def loop_of_products(x):
    t = 1.0
    for k in range(len(x)):
        t = t * (x[k] + 1j)
    return t.real


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.abs(np.exp(1j * x))),
        lambda x: np.sum(np.real(np.exp(1j * x) * (2 + 1j))),
        lambda x: np.sum(np.abs(np.sqrt(x + 0j))),
        lambda x: np.sum(np.abs(np.concatenate((x, 1j * x)))),
        lambda x: np.real(np.dot(x, 1j * x + x)),
        lambda x: np.real(np.einsum("i,i->", x, np.exp(1j * x))),
        loop_of_products,
    ],
)
def test_what_is_printed_before_any_call_knows_what_is_complex(f):
    """Parameters are real there; numbers of the program that are not make results complex, whose
    conjugates and real parts are taken.
    """
    x = np.array([0.5, -1.2, 2.0])
    for t in (s2s.grad(f), s2s.value_and_grad(f)):
        namespace = {}
        exec(t.source, namespace)
        found = namespace[t.source.rpartition("\ndef ")[2].partition("(")[0]](x)
        for a, b in zip(
            found if isinstance(found, tuple) else (found,),
            t(x) if isinstance(found, tuple) else (t(x),),
        ):
            np.testing.assert_allclose(a, b, rtol=1e-12)
            assert np.asarray(a).dtype == np.asarray(b).dtype
