"""What `build` makes of a program computes what the program computes, to the last bit."""

import numpy as np
import pytest
from constructs import CASES
from scipy import special, stats

import s2s
from s2s.front import build, parameters
from s2s.ir.interpret import interpret
from s2s.ir.types import Unknown
from s2s.ir.verify import verify
from s2s.specialisation import type_of


def copied(args):
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def names_for(function, args):
    names = [p.name for p in parameters(function)]
    return (names + [f"x{k}" for k in range(len(args))])[:len(args)]


def run(function, types, args):
    """The IR of `function` run on `args` by the reference interpreter."""
    built = verify(build(function, types))
    captured = [get() for get in built.captures.values()]
    given = [a for a in copied(args)]
    defaults = [
        built.defaults[p.name] for p in built.params[len(given) : len(built.params) - len(captured)]
    ]
    return interpret(built, *given, *defaults, *captured)


def assert_same(ours, theirs):
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert_same(a, b)
    elif theirs is None:
        assert ours is None
    else:
        assert np.shape(ours) == np.shape(theirs)
        assert np.asarray(ours).dtype.kind == np.asarray(theirs).dtype.kind
        np.testing.assert_array_equal(ours, theirs)


def label(entry):
    return getattr(entry[0], "__name__", type(entry[0]).__name__)


@pytest.mark.parametrize("entry", CASES, ids=label)
def test_known_types_compute_the_same(entry):
    function, args, _ = entry
    types = [type_of(a, name) for a, name in zip(args, names_for(function, args))]
    assert_same(run(function, types, args), function(*copied(args)))


@pytest.mark.parametrize("entry", [e for e in CASES if not e[2]], ids=label)
def test_unknown_types_compute_the_same(entry):
    function, args, _ = entry
    types = [Unknown(name) for name in names_for(function, args)]
    assert_same(run(function, types, args), function(*copied(args)))


DIRECT = {
    "logsumexp": (special.logsumexp, np.array([0.5, 1.0, 2.0])),
    "softmax": (special.softmax, np.array([0.5, 1.0, 2.0])),
    "a distribution's method": (stats.norm.logpdf, np.array([0.5, 1.0, 2.0])),
    "another's": (stats.expon.logpdf, np.array([0.5, 1.0, 2.0])),
    "cond": (np.linalg.cond, np.diag([1.0, 2.0, 4.0])),
    "nanmedian": (np.nanmedian, np.array([0.5, np.nan, 2.0])),
    "outer": (lambda x: np.outer(x, x), np.array([0.5, 1.0])),
}


@pytest.mark.parametrize("name", DIRECT)
def test_a_library_function_means_the_same_by_itself_as_in_a_call(name):
    f, x = DIRECT[name]
    np.testing.assert_allclose(s2s.vmap(f)(np.stack([x, 2 * x])), np.stack([f(x), f(2 * x)]))
    np.testing.assert_allclose(s2s.jacobian(f)(x), s2s.jacobian(lambda x: f(x))(x))


def test_a_library_function_of_two_arrays_by_itself():
    x = np.array([0.5, 1.0, 2.0])
    found = s2s.vmap(np.cross)(np.stack([x, x]), np.stack([x[::-1], x]))
    np.testing.assert_allclose(found, [np.cross(x, x[::-1]), np.zeros(3)])
