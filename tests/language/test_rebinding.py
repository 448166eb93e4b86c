"""What a program reads from outside may change between calls: values are seen, functions and
strings regenerate the code.
"""

import functools
import types
from types import SimpleNamespace

import numpy as np
import pytest

import s2s

WAYS = [
    pytest.param(s2s.grad, id="grad"),
    pytest.param(lambda f: s2s.grad(lambda x: f(x)), id="called"),
    pytest.param(lambda f: lambda x: s2s.jvp(f, (x,), (1.0,))[1], id="jvp"),
    pytest.param(lambda f: lambda x: s2s.vmap(s2s.grad(f))(np.array([x, x]))[1], id="vmap"),
    pytest.param(lambda f: s2s.jit(s2s.grad(f)), id="jit", marks=pytest.mark.compile),
]


def tripled(t):
    return 3.0 * t


def cubed(t):
    return t * t * t


def module():
    return s2s.from_source("""
def first(x):
    return x

def second(x):
    return first(x) * scale

def f(x):
    return second(x) * x
""", {"scale": 2.0, "np": np})


def globals_change():
    f = module()
    names = f.__globals__
    yield f
    names["scale"] = 3.0
    yield f
    names["scale"] = np.float64(4.0)
    yield f
    names["first"] = cubed
    yield f
    names["second"] = np.sin
    yield f
    names["second"] = functools.partial(np.multiply, 3.0)
    yield f


def closures_change():
    inner, scale, kind, exponent = tripled, 2.0, "inner", 2

    def f(x):
        return (inner(x) if kind == "inner" else x) * scale * x**exponent

    yield f
    scale = 5.0
    yield f
    inner = cubed
    yield f
    kind = "outer"
    yield f
    exponent = 4
    yield f


def attributes_change():
    space, table, library = (
        SimpleNamespace(f=tripled, k=2.0),
        {"f": tripled, "k": 2.0},
        types.ModuleType("library"),
    )
    library.f, library.k, library.deep = tripled, 2.0, SimpleNamespace(f=tripled)
    functions = [tripled]

    def f(x):
        return (space.f(x) * space.k + table["f"](x) * table["k"]) * library.f(
            x
        ) * library.k + functions[0](x) * library.deep.f(x)

    yield f
    space.k = table["k"] = library.k = 3.0
    yield f
    space.f = cubed
    yield f
    table["f"] = np.sin
    yield f
    library.f = np.exp
    yield f
    functions[0] = cubed
    yield f
    library.deep.f = np.tanh
    yield f
    library.deep = SimpleNamespace(f=cubed)
    yield f


class Layer:
    scale = 2.0
    act = staticmethod(tripled)

    def __init__(self):
        self.w = np.array([1.0, 2.0])
        self.last = cubed

    def before(self, x):
        return x * self.scale

    def energy(self, x):
        return np.sum(self.w * self.act(self.before(x))) + self.last(x)

    @property
    def twice(self):
        return 2.0 * self.scale

    def __call__(self, x):
        return self.energy(x) * self.twice


def methods_change():
    class Own(Layer):
        pass

    layer = Own()
    for f in (layer.energy, layer):
        yield f
        layer.w = np.array([3.0, 4.0, 5.0])
        yield f
        layer.last = np.sin
        yield f
        Own.scale = 7.0
        yield f
        Own.act = staticmethod(cubed)
        yield f
        Own.before = lambda self, x: x * x * self.scale
        yield f
        layer.before = lambda x: 7.0 * x
        yield f
        del layer.before, Own.before, Own.act, Own.scale
        yield f


def transformed_functions_inside_change():
    f = s2s.from_source("""
def outer(x):
    return inner(x) ** 2

slope = s2s.grad(outer)

def f(x):
    return slope(x) * x
""", {"s2s": s2s, "inner": tripled})
    names = f.__globals__
    yield f
    names["inner"] = cubed
    yield f
    names["slope"] = s2s.grad(cubed)
    yield f
    names["slope"] = np.sin
    yield f


def code_and_defaults_change():  # as IPython's autoreload does it
    def inner(x, k=2.0):
        return x * k

    def f(x):
        return inner(x) * x

    yield f
    inner.__defaults__ = (5.0,)
    yield f
    inner.__code__ = (lambda x, k=2.0: x * x * k).__code__
    yield f
    f.__code__ = (lambda inner: lambda x: inner(x) * x * x * x)(inner).__code__
    yield f


def wrappers_change():
    def doubled(g):
        def wrapped(x):
            return 2.0 * g(x)

        return wrapped

    def inner(x):
        return x * x

    wrapped = doubled(inner)
    table = {"a": wrapped}

    def f(x):
        return wrapped(x) * table["a"](x) + x

    yield f
    inner = cubed
    yield f
    wrapped = doubled(inner)
    yield f
    table["a"] = doubled(tripled)
    yield f


PROGRAMS = [
    globals_change,
    closures_change,
    attributes_change,
    methods_change,
    transformed_functions_inside_change,
    code_and_defaults_change,
    wrappers_change,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_changes_between_calls_are_seen(program, way):
    last = transformed = None
    for f in program():
        if f is not last:
            last, transformed = f, way(f)
        wanted = (f(0.5 + 1e-6) - f(0.5 - 1e-6)) / 2e-6
        for _ in range(2):
            assert np.isclose(transformed(0.5), wanted, rtol=1e-6), f"{wanted} is wanted"


def test_what_has_not_changed_is_not_generated_again():
    f = module()
    slope = s2s.grad(f)
    slope(0.5)
    before = slope.last
    f.__globals__["scale"] = 3.0
    slope(0.7)
    assert slope.last is before
    f.__globals__["first"] = cubed
    slope(0.7)
    assert slope.last is not before
    f.__globals__["first"] = f.__globals__["second"]
    with pytest.raises(s2s.S2SError):
        slope(0.7)
