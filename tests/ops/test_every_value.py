"""Every function of NumPy's that s2s knows, called in the ways its name allows: the value is
NumPy's, its shape and its dtype.

The calls are made of a few forms, and of operands that are easily forgotten: infinities, NaN,
denormal and huge numbers, ties, nothing at all, one element, integers, truth values, single
precision, complex numbers, lists and tuples.  What NumPy refuses or s2s does is not compared.
"""

from __future__ import annotations

import numpy as np
import pytest

import s2s
from s2s import pipeline
from s2s.errors import S2SError
from s2s.front.eval import composites, sequence_calls  # noqa: F401  which enter functions
from s2s.front.eval.python_builtins import BUILTINS
from s2s.ir.interpret import interpret
from s2s.ops.core.record import FUNCTIONS
from s2s.specialisation import type_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
INF, NAN = np.inf, np.nan
FLOATS = np.array([0.0, -0.0, INF, -INF, NAN, 5e-324, 1e308, -1e308, 1.5, -2.5, 0.5, 1.0, -1.0])
OTHERS = np.array([1.0, 2.0, -1.0, INF, 0.0, -INF, NAN, 0.0, 0.5, 3.0, -2.0, 2.0, 5e-324])
TIES = np.array([1.0, 3.0, 3.0, 2.0, -1.0, 2.0, 0.0, 0.25, 4.0, -7.0, 1e-300, 6.0, 3.0])
INTEGERS, SMALL = (
    np.array([0, 1, -1, 3, 7, -8, 2, 2, 5, 63, 4, 1, 1]),
    np.array([1, 2, 3, 0, 2, 3, 1, 5, 2, 2, 2, 3, 1]),
)
MATRICES = [
    np.arange(12.0).reshape(3, 4) - 3,
    np.array([[NAN, 1, 2, 2], [INF, -INF, 0, 0], [3, 3, 3, 3.0]]),
]
SQUARES = [
    np.array([[4.0, 9, 0.5], [1, 3, 7], [0.25, 0.2, 2]]),
    np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]]),
    np.zeros((3, 3)),
]
TENSORS = [np.arange(24.0).reshape(2, 3, 4) % 7]
SINGLE, BYTES, NATURAL = TIES.astype(np.float32), INTEGERS.astype(np.int8), SMALL.astype(np.uint8)
ONE = {
    "floats": [FLOATS, TIES, np.full(13, -INF)],
    "integers": [INTEGERS],
    "truth": [FLOATS > 0],
    "single": [SINGLE],
    "bytes": [BYTES],
    "natural": [NATURAL],
    "complex": [np.array([0j, 1 + 2j, complex(INF, 1), -3 + 0j, 1e-200j])],
    "complex single": [np.array([0j, 1 + 2j, -3 + 0j], np.complex64)],
    "matrices": MATRICES,
    "squares": SQUARES,
    "tensors": TENSORS,
    "nothing": [np.zeros(0)],
    "no rows": [np.zeros((0, 3))],
    "single element": [np.array([2.5])],
    "number": [2.5, -0.5, 0.0, NAN, INF],
    "integer": [3, 0],
    "single number": [np.float32(2.5)],
    "byte": [np.int8(3)],
}
TWO = {
    "floats": [(FLOATS, OTHERS), (TIES, OTHERS)],
    "integers": [(INTEGERS, SMALL)],
    "mixed": [(FLOATS, SMALL)],
    "matrices": [(MATRICES[0], MATRICES[0])],
    "squares": [(SQUARES[0], SQUARES[1])],
    "numbers": [(2.5, -0.5), (0.0, INF)],
    "nothing": [(np.zeros(0), np.zeros(0))],
    "single": [(SINGLE, NATURAL.astype(np.float32))],
    "single and double": [(SINGLE, OTHERS)],
    "single and integers": [(SINGLE, SMALL)],
    "integers and single": [(SMALL, SINGLE)],
    "truth": [(FLOATS > 0, OTHERS > 0)],
    "bytes": [(BYTES, NATURAL.astype(np.int8))],
    "bytes of both kinds": [(BYTES, NATURAL)],
    "truth and integers": [(FLOATS > 0, SMALL)],
    "number and single": [(2.5, SINGLE)],
    "single and integer": [(SINGLE, 2)],
    "byte and integer": [(BYTES, 2)],
    "integer numbers": [(2, 3)],
    "single numbers": [(np.float32(2), 3.5)],
    "complex": [(TIES * (1 + 2j), SINGLE)],
    "complex numbers": [(2j, 1 - 3j)],
    "single matrices": [(MATRICES[0].astype(np.float32), MATRICES[0].astype(np.float32))],
    "single squares": [(SQUARES[0].astype(np.float32), SQUARES[1].astype(np.float32))],
}
KEYWORDS = [
    "axis=0",
    "axis=-1",
    "axis=1",
    "axis=(0, 1)",
    "axis=-2",
    "axis=0, keepdims=True",
    "axis=None, keepdims=True",
    "dtype=np.float32",
    "initial=2.0",
    "where=x > 0, initial=1.0",
    "where=x > 0",
    "ddof=1",
    "k=1",
    "k=-1",
    "out=np.zeros(x.shape)",
]
DIFFER = {"np.ndarray": "NumPy's is not initialised"}  # what is known to be otherwise, and why
# with which NumPy does nothing, whatever its shape
OUT_LEFT_ALONE = {"np.fft.hfft", "np.fft.irfft2"}
# whose results are real where no imaginary part is left, which only a run knows: here they are
# complex
COMPLEX = {"np.linalg.eig", "np.linalg.eigvals", "np.roots"}
# which have fewer axes where a run finds nothing
FEWER_AXES = {"np.nanpercentile", "np.nanquantile", "np.poly"}


def functions() -> dict:
    found = {}
    for module, prefix in ((np.fft, "np.fft."), (np.linalg, "np.linalg."), (np, "np.")):
        for f in (*FUNCTIONS, *BUILTINS):
            name = getattr(f, "__name__", "")
            if callable(f) and getattr(module, name, None) is f:
                found[prefix + name] = f
    return {
        name: found[name]
        for name in sorted(found)
        if name not in ("np.empty", "np.empty_like", "np.vectorize")
    }


def calls(name: str, function):
    """Texts of x and y, and their operands."""
    for xs in ONE.values():
        yield f"{name}(x)", [(x,) for x in xs]
    if not (isinstance(function, np.ufunc) and function.nin == 1):  # whose second argument is `out`
        for pairs in TWO.values():
            yield f"{name}(x, y)", pairs
    for keyword in KEYWORDS:
        if "out=" in keyword and name in OUT_LEFT_ALONE:
            continue
        for kind in (
            ("matrices", "tensors", "no rows") if "axis" in keyword else ("matrices", "integers")
        ):
            yield f"{name}(x, {keyword})", [(x,) for x in ONE[kind]]
    yield f"{name}([1, 2.5, x])", [(3.0,), (NAN,)]
    yield f"{name}((1, 2, 3))", [()]
    yield f"{name}([[1, 2], [3, 5]])", [()]


def expected(text: str, args: tuple):
    try:
        return eval(
            text,
            {
                "np": np,
                **dict(zip("xy", map(np.copy, args))),
                **{n: a for n, a in zip("xy", args) if np.ndim(a) == 0},
            },
        )
    except Exception:
        return None


def built(text: str, args: tuple):
    names = "xy"[:len(args)]
    f = s2s.from_source(f"def f({', '.join(names)}):\n    return {text}\n", {"np": np})
    try:
        return pipeline.front_build(f, [type_of(x, name) for x, name in zip(args, names)])
    except S2SError:
        return None


def as_complex(y):
    return (
        tuple(map(as_complex, y))
        if isinstance(y, tuple)
        else y.astype(np.result_type(y, np.complex64))
    )


def same(found, wanted) -> bool:
    if isinstance(wanted, (tuple, list)):
        return (
            isinstance(found, (tuple, list))
            and len(found) == len(wanted)
            and all(map(same, found, wanted))
        )
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if found.dtype.kind not in "fc":
        return np.array_equal(found, wanted)
    single = found.dtype in (np.float32, np.complex64)
    return np.allclose(
        found,
        wanted,
        rtol=2e-6 if single else 1e-12,
        atol=1e-6 if single else 1e-14,
        equal_nan=True,
    )


@pytest.mark.parametrize("name", [name for name in functions() if name not in DIFFER])
def test_every_value(name):
    for text, operands in calls(name, functions()[name]):
        wanted = [(args, y) for args in operands if (y := expected(text, args)) is not None]
        if name in COMPLEX:
            wanted = [(args, as_complex(y)) for args, y in wanted]
        if name in FEWER_AXES:
            wanted = [(args, y) for args, y in wanted if all(np.size(x) for x in args)]
        function = built(text, wanted[0][0]) if wanted else None
        for args, y in wanted if function is not None else ():
            try:
                found = interpret(
                    function, *[np.copy(x) if isinstance(x, np.ndarray) else x for x in args]
                )
            except NotImplementedError:  # what s2s refuses when it runs
                continue
            assert same(found, y), f"{text} of {args} is {y}, and {found} here"


# -------------------------------------------- dtypes that a function of its own steps has to see to

OTHER_DTYPES = [
    ("np.angle(x)", FLOATS > 0),
    ("np.heaviside(x[0], 1)", BYTES),
    ("np.intersect1d(x, y)", SMALL, SINGLE),
    ("np.ldexp(x, 3)", BYTES),
    ("np.ldexp(x, y)", SINGLE, SMALL),
    ("np.modf(x)", BYTES),
    ("np.vecdot(x, x)", FLOATS > 0),
    ("np.median(x)", FLOATS.astype(np.float32)),
    ("np.gradient(x, y)", SINGLE, np.arange(13)),
    ("np.gradient(x, y)", SINGLE, SINGLE.cumsum()),
    ("np.poly(x)", NATURAL),
    ("np.poly(x)", SINGLE),
    ("np.linalg.norm(x)", BYTES),
    ("np.dot(2.5, x)", SINGLE),
    ("np.vdot(x[1], x[1])", TIES * (1 + 2j)),
    ("np.union1d(2.5, x)", SINGLE),
    ("np.clip(3, x[0], 9)", SINGLE),
    ("np.ascontiguousarray(x[1])", SINGLE),
    ("np.polysub(x, y)", BYTES, NATURAL),
    ("np.linalg.eigvals(x[:9].reshape(3, 3))", SINGLE + 0j),
]


@pytest.mark.compile
@pytest.mark.parametrize(
    "text, args",
    [(text, args) for text, *args in OTHER_DTYPES],
    ids=[text for text, *_ in OTHER_DTYPES],
)
def test_other_dtypes_compiled(text, args):
    found = s2s.jit(
        s2s.from_source(f"def f({', '.join('xy'[: len(args)])}):\n    return {text}\n", {"np": np})
    )(*args)
    assert same(found, expected(text, tuple(args)))


@pytest.mark.compile
@pytest.mark.parametrize(
    "text",
    [
        "np.ldexp(x, y)",
        "np.modf(x)[0]",
        "np.vecdot(x, x)",
        "np.gradient(x, y)",
        "np.gradient(y, x.cumsum())",
        "np.poly(x)",
        "np.median(x)",
        "np.intersect1d(x, x + 0.0 * y)",
        "np.heaviside(y[0] * 0, x[1])",
        "np.linalg.norm(x)",
        "np.kron(2, x)",
        "np.abs(np.roots(x))",
    ],
)
def test_derivatives_in_single_precision(text):
    """They are those in double precision, as exact as single precision is, in both modes, of lanes,
    and compiled.
    """
    f = s2s.from_source(f"def f(x, y):\n    return np.sum(np.asarray({text}) ** 2)\n", {"np": np})
    x, y = np.array([1.5, -0.25, 3.5, 0.5, 2.25]), np.array([1, 2, 4, 5, 7])
    wanted, single = s2s.grad(f)(x, y), x.astype(np.float32)
    # of a length that only a lane knows
    lanes = (
        s2s.vmap(s2s.grad(f), in_axes=(0, None))(np.stack([single, single]), y)
        if "poly" not in text
        else ()
    )
    along = s2s.jvp(lambda x: f(x, y), (single,), (single,))[1]
    for found in (s2s.grad(f)(single, y), s2s.jit(s2s.grad(f))(single, y), *lanes):
        assert found.dtype == np.float32 and np.allclose(
            found, wanted, rtol=1e-4, atol=1e-4 * np.max(np.abs(wanted))
        )
    assert np.allclose(along, wanted @ x, rtol=1e-3)
