"""What programs ask about the classes of their values is what Python says of the values of a
call.
"""

import collections.abc
import dataclasses
import functools
import math
import numbers
import types
import warnings

import numpy as np
import pytest

import s2s


class Model:
    width = 3

    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.k * x


VALUES = {
    "array": np.ones(3),
    "matrix": np.ones((2, 2)),
    "float": 2.0,
    "int": 3,
    "float64": np.float64(2.0),
    "float32": np.float32(2.0),
    "int32": np.int32(2),
    "complex": 1 + 2j,
    "list": [1.0, 2.0],
    "tuple": (1.0, 2.0),
    "dict": {"a": 1.0},
    "str": "abc",
    "None": None,
    "object": Model(2.0),
    "ufunc": np.sin,
    "builtin": len,
    "class": Model,
    "partial": functools.partial(max, 1.0),
}
NAMES = (
    "shape",
    "__len__",
    "ndim",
    "T",
    "dtype",
    "type",
    "op",
    "name",
    "constant",
    "item",
    "real",
    "sum",
    "__iter__",
    "copy",
    "is_integer",
    "__call__",
    "append",
    "index",
    "keys",
    "k",
    "width",
)
CLASSES = (
    np.ndarray,
    float,
    int,
    complex,
    np.float64,
    np.floating,
    np.generic,
    list,
    tuple,
    dict,
    str,
    Model,
    numbers.Number,
    numbers.Real,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Callable,
    int | float,
    (np.ndarray, list),
)


def asked(x, y):
    """As many questions as there are, each with its own power of y."""
    total = 0.0 * y
    for k, name in enumerate(NAMES):
        if hasattr(x, name):
            total = total + (k + 1) * y
    for k, kind in enumerate(CLASSES):
        if isinstance(x, kind):
            total = total + (k + 1) * y ** 2
    for k, kind in enumerate(CLASSES):
        if type(x) is kind or type(x) == kind:  # noqa: E721
            total = total + (k + 1) * y ** 3
        if x.__class__ in (kind, type(None)):
            total = total + (k + 1) * y ** 4
    if callable(x):
        total = total + y ** 5
    if np.isscalar(x):
        total = total + y ** 6
    if np.iterable(x):
        total = total + y ** 7
    if getattr(x, "ndim", 0) > 1:
        total = total + y ** 8
    return total + len(type(x).__name__) * y ** 9


@pytest.mark.parametrize("name", VALUES)
def test_questions_are_answered_as_python_does(name):
    x = VALUES[name]
    slope = (asked(x, 1.1 + 1e-6) - asked(x, 1.1 - 1e-6)) / 2e-6
    value, inside = s2s.value_and_grad(lambda y: asked(x, y))(1.1)  # x is from outside
    given = s2s.grad(asked, 1)(x, 1.1)
    assert value == asked(x, 1.1)
    np.testing.assert_allclose([inside, given], slope, rtol=1e-8)


def test_values_that_the_program_makes():
    def f(x):
        made = {1.0, 2.0}
        text = f"{x}"
        return x * (
            1
            + isinstance(made, set)
            + 2 * isinstance(text, str)
            + 4 * isinstance(np.array(x), np.ndarray)
            + 8 * callable(lambda t: t)
            + 16 * isinstance(lambda t: t, types.FunctionType)
            + 32 * hasattr(x * x, "shape")
            + 64 * hasattr(math.sin(x), "shape")
        )

    assert s2s.grad(f)(2.0) == 32.0


@pytest.mark.compile
def test_compiled():
    @s2s.jit
    def f(w, rate):
        step = rate(2.0) if callable(rate) else rate
        return step * (np.sum(w) if hasattr(w, "shape") else w)

    assert s2s.grad(f)(2.0, 3.0) == 3.0
    np.testing.assert_array_equal(s2s.jit(s2s.grad(f))(np.ones(2), 3.0), [3.0, 3.0])
    np.testing.assert_array_equal(
        s2s.jit(s2s.grad(f))(np.ones(2), math.sqrt), np.full(2, math.sqrt(2))
    )


@pytest.mark.parametrize("f, message", [
    (lambda x: x if isinstance(x > 0, bool) else 2 * x, "isinstance of a truth value"),
    (lambda x: x if type(x > 0) is bool else 2 * x, "the type of a truth value"),
])
def test_what_may_be_of_two_classes_is_refused(f, message):
    with pytest.raises(s2s.UnsupportedError, match=message):
        s2s.grad(f)(1.0)


@pytest.mark.parametrize(
    "f, message",
    [
        (
            lambda x: x if hasattr(x, "shape") else 2 * x,
            "hasattr of a value whose type is known only at a call",
        ),
        (
            lambda x: x if type(x) is float else 2 * x,
            "the type of a value that is known only at a call",
        ),
    ],
)
def test_before_any_call_nothing_is_guessed(f, message):
    with pytest.raises(s2s.UnsupportedError, match=message):
        print(s2s.grad(f).source)


def test_defaults_that_are_names_of_modules_are_printed_with_their_imports():
    def f(x, kind=np.float32, kept=np.ndarray, sine=math.sin):
        return sine(x) if isinstance(x, float) else x * x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient = s2s.grad(f)
        assert gradient(0.5) == math.cos(0.5)
    namespace = {}
    exec(gradient.source, namespace)
    assert namespace["f_grad"](0.5) == math.cos(0.5)


def test_methods_are_called_by_the_names_of_their_classes():
    def f(x):
        kept = [x]
        list.append(kept, x * x)
        return (
            np.ndarray.sum(kept[1]) * len(str.upper("abc"))
            + sum(map(np.ndarray.mean, kept))
            + np.ndarray.dot(x, x)
        )

    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(s2s.grad(f)(x), 6 * x + (1 + 2 * x) / 3 + 2 * x, rtol=1e-14)
    with pytest.raises(s2s.UnsupportedError, match="the method __add__"):
        s2s.grad(lambda x: float.__add__(x, 1.0))(2.0)


@dataclasses.dataclass
class Unhashable:
    k: float

    def __call__(self, x):
        return self.k * x


@dataclasses.dataclass(frozen=True)
class Doubled:
    k: float

    def __post_init__(self):
        object.__setattr__(self, "k", self.k * 2)


class Plainly:
    def __init__(self, k):
        super().__init__()
        self.k = k


scaled = Unhashable(3.0)


@pytest.mark.parametrize(
    "f, slope",
    [
        (lambda x: scaled(x), 3.0),
        (lambda x: Doubled(x).k * x, 8.0),
        (lambda x: Plainly(x).k * x, 4.0),
    ],
)
def test_what_is_called_may_have_no_hash_or_be_a_method_of_object(f, slope):
    assert s2s.grad(f)(2.0) == slope


def test_a_callable_object_of_a_librarys_without_a_hash_is_refused():
    polynomial = np.poly1d([1.0, 2.0])
    with pytest.raises(s2s.UnsupportedError):
        s2s.grad(lambda x: polynomial(x))(2.0)
