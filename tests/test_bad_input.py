"""What s2s refuses, it refuses with the user's line and a remedy; a NaN stays the NaN that NumPy
makes.
"""

import numpy as np
import pytest

import s2s
from s2s.errors import S2SError, SourceError, TypeMismatchError, UnsupportedError


def cube(x):
    return x * x * x


def both(x):
    y = np.sin(x)
    return x, y


def generator(x):
    total = 0.0
    yield total + x


def with_block(x):
    with open("file") as stream:
        return x * len(stream.read())


def product(a, b):
    return np.sum(a * b)


def logarithm(x):
    return np.sum(np.log(x))


def refused(error, call, *phrases):
    with pytest.raises(error) as caught:
        call()
    said = str(caught.value)
    for phrase in phrases:
        assert phrase in said, said
    return said


def test_a_function_without_source():
    scope = {}
    exec("def f(x):\n    return x * x", scope)
    refused(SourceError, lambda: s2s.grad(scope["f"])(2.0), "source")


def test_a_builtin_has_no_source():
    refused(S2SError, lambda: s2s.grad(id)(2.0))


def test_a_construct_that_is_not_supported():
    refused(
        UnsupportedError,
        lambda: s2s.grad(with_block)(2.0),
        "test_bad_input.py",
        'with open("file") as stream',
        "^",
        "Instead:",
    )
    refused(UnsupportedError, lambda: s2s.grad(generator)(2.0), "yield", "Instead:")


def test_a_function_that_is_not_known():
    def f(x):
        return np.busday_count(x)

    refused(
        UnsupportedError,
        lambda: s2s.grad(f)(2.0),
        "busday_count",
        "return np.busday_count(x)",
        "Instead:",
    )


def test_an_integer_argument_to_grad():
    said = refused(TypeMismatchError, lambda: s2s.grad(cube)(2), "integer", "x")
    assert "2.0" in said or "float" in said


def test_an_integer_array_to_grad():
    refused(
        TypeMismatchError, lambda: s2s.grad(product)(np.arange(3), np.ones(3)), "int64", "float"
    )


def test_a_result_that_is_not_a_number():
    refused(TypeMismatchError, lambda: s2s.grad(cube)(np.ones(3)), "grad", "array", "np.sum")
    refused(TypeMismatchError, lambda: s2s.grad(both)(2.0), "grad", "tuple")


def test_an_argument_that_is_not_there():
    refused(TypeMismatchError, lambda: s2s.grad(cube, argnums=3)(2.0), "argnums", "1 argument")


def test_shapes_that_do_not_match_at_run_time():
    with pytest.raises(ValueError, match=r"a\.shape\[0\] is 3 and b\.shape\[0\] is 4") as caught:
        s2s.grad(product)(np.ones(3), np.ones(4))
    assert "return np.sum(a * b)" in shown(caught.value)


def test_shapes_that_can_never_match():
    def f(x):
        return np.sum(np.ones(3) * x * np.ones(4))

    refused(TypeMismatchError, lambda: s2s.grad(f)(2.0), "np.ones(4)", "broadcast")


@pytest.mark.compile
def test_shapes_that_do_not_match_in_compiled_code():
    with pytest.raises(ValueError) as caught:
        s2s.jit(s2s.grad(product))(np.ones(3), np.ones(4))
    assert "return np.sum(a * b)" in shown(caught.value)


def test_an_index_out_of_range_names_the_line():
    def f(x):
        return x[7] * x[0]

    with pytest.raises(IndexError) as caught:
        s2s.grad(f)(np.ones(3))
    assert "return x[7] * x[0]" in shown(caught.value)


def shown(error: BaseException) -> str:
    """The message, its notes, and the message of its cause."""
    return "\n".join([str(error), *getattr(error, "__notes__", []), str(error.__cause__ or "")])


@pytest.mark.filterwarnings("ignore")
def test_nan_in_the_data_stays_nan():
    x = np.array([1.0, np.nan, -2.0])
    value, bar = s2s.value_and_grad(logarithm)(x)
    assert np.isnan(value)
    assert np.array_equal(bar, 1 / x, equal_nan=True)


def test_the_tangents_must_match_the_primals():
    refused(TypeMismatchError, lambda: s2s.jvp(cube, (2.0,), ()), "1 primals and 0 tangents")
    for transform in (s2s.jvp, s2s.hvp):
        refused(
            TypeMismatchError,
            lambda: transform(cube, 2.0, 1.0),
            "takes the arguments, and a tangent for each, as two tuples",
        )
