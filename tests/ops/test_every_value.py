"""Every function of NumPy's that s2s knows, called in the ways its name allows: the value is NumPy's, its shape and its dtype.

The calls are made of a few forms, and of operands that are easily forgotten: infinities, NaN, denormal and huge numbers, ties, nothing at all,
one element, integers, truth values, single precision, complex numbers, lists and tuples.  What NumPy refuses or s2s does is not compared.
"""

from __future__ import annotations

import numpy as np
import pytest

import s2s
from s2s import pipeline
from s2s.errors import S2SError
from s2s.front.eval import numpy_calls, sequence_calls  # noqa: F401  which enter functions
from s2s.front.eval.python_builtins import BUILTINS
from s2s.ir.interpret import interpret
from s2s.ops.core.record import FUNCTIONS
from s2s.specialisation import type_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
INF, NAN = np.inf, np.nan
FLOATS = np.array([0.0, -0.0, INF, -INF, NAN, 5e-324, 1e308, -1e308, 1.5, -2.5, 0.5, 1.0, -1.0])
OTHERS = np.array([1.0, 2.0, -1.0, INF, 0.0, -INF, NAN, 0.0, 0.5, 3.0, -2.0, 2.0, 5e-324])
TIES = np.array([1.0, 3.0, 3.0, 2.0, -1.0, 2.0, 0.0, 0.25, 4.0, -7.0, 1e-300, 6.0, 3.0])
INTEGERS, SMALL = np.array([0, 1, -1, 3, 7, -8, 2, 2, 5, 63, 4, 1, 1]), np.array([1, 2, 3, 0, 2, 3, 1, 5, 2, 2, 2, 3, 1])
MATRICES = [np.arange(12.0).reshape(3, 4) - 3, np.array([[NAN, 1, 2, 2], [INF, -INF, 0, 0], [3, 3, 3, 3.0]])]
SQUARES = [np.array([[4.0, 9, 0.5], [1, 3, 7], [0.25, 0.2, 2]]), np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]]), np.zeros((3, 3))]
TENSORS = [np.arange(24.0).reshape(2, 3, 4) % 7]
ONE = {"floats": [FLOATS, TIES, np.full(13, -INF)], "integers": [INTEGERS], "truth": [FLOATS > 0], "single": [TIES.astype(np.float32)],
       "complex": [np.array([0j, 1 + 2j, complex(INF, 1), -3 + 0j, 1e-200j])], "matrices": MATRICES, "squares": SQUARES, "tensors": TENSORS,
       "nothing": [np.zeros(0)], "no rows": [np.zeros((0, 3))], "single element": [np.array([2.5])], "number": [2.5, -0.5, 0.0, NAN, INF], "integer": [3, 0]}
TWO = {"floats": [(FLOATS, OTHERS), (TIES, OTHERS)], "integers": [(INTEGERS, SMALL)], "mixed": [(FLOATS, SMALL)], "matrices": [(MATRICES[0], MATRICES[0])],
       "squares": [(SQUARES[0], SQUARES[1])], "numbers": [(2.5, -0.5), (0.0, INF)], "nothing": [(np.zeros(0), np.zeros(0))]}
KEYWORDS = ["axis=0", "axis=-1", "axis=1", "axis=(0, 1)", "axis=-2", "axis=0, keepdims=True", "axis=None, keepdims=True", "dtype=np.float32", "initial=2.0",
            "where=x > 0, initial=1.0", "where=x > 0", "ddof=1", "k=1", "k=-1", "out=np.zeros(x.shape)"]
DIFFER = {  # what is known to be otherwise, and why
    "np.angle": "of truth values it is of double precision",
    "np.ascontiguousarray": "a number stays one",
    "np.dot": "BLAS multiplies an infinite number by 0 as it likes", "np.inner": "the same",
    "np.gradient": "distances of integers, and of single precision, count as double",
    "np.heaviside": "of Python's integers it is one",
    "np.intersect1d": "it has the dtype of its first argument",
    "np.ldexp": "half precision is double", "np.modf": "the same",
    "np.linalg.eig": "complex whatever the numbers are", "np.linalg.eigvals": "the same", "np.roots": "the same",
    "np.linalg.vecdot": "a product of truth values is a number", "np.vecdot": "the same",
    "np.median": "NaN is of double precision",
    "np.nanpercentile": "of nothing, by several q, NumPy has one NaN", "np.nanquantile": "the same",
    "np.ndarray": "NumPy's is not initialised",
    "np.poly": "of double precision, and a vector",
    "np.vander": "complex powers round otherwise where they overflow",
    # and where Python's loops, or NumPy's other functions, raise of nothing
    "np.histogram": "of nothing", "np.linalg.matrix_rank": "of nothing", "np.linalg.tensorsolve": "of nothing",
    "np.polyval": "of nothing", "np.linalg.svd": "all of U and V of no square", "np.polymul": "of coefficients that begin with 0",
    "np.tile": "of a vector of counts",
}


def functions() -> dict:
    found = {}
    for module, prefix in ((np.fft, "np.fft."), (np.linalg, "np.linalg."), (np, "np.")):
        for f in (*FUNCTIONS, *BUILTINS):
            name = getattr(f, "__name__", "")
            if callable(f) and getattr(module, name, None) is f:
                found[prefix + name] = f
    return {name: found[name] for name in sorted(found) if name not in ("np.empty", "np.empty_like", "np.vectorize")}


def calls(name: str, function):
    """Texts of x and y, and their operands."""
    for xs in ONE.values():
        yield f"{name}(x)", [(x,) for x in xs]
    if not (isinstance(function, np.ufunc) and function.nin == 1):  # whose second argument is `out`
        for pairs in TWO.values():
            yield f"{name}(x, y)", pairs
    for keyword in KEYWORDS:
        for kind in ("matrices", "tensors", "no rows") if "axis" in keyword else ("matrices", "integers"):
            yield f"{name}(x, {keyword})", [(x,) for x in ONE[kind]]
    yield f"{name}([1, 2.5, x])", [(3.0,), (NAN,)]
    yield f"{name}((1, 2, 3))", [()]
    yield f"{name}([[1, 2], [3, 5]])", [()]


def expected(text: str, args: tuple):
    try:
        return eval(text, {"np": np, **dict(zip("xy", map(np.copy, args))), **{n: a for n, a in zip("xy", args) if np.ndim(a) == 0}})
    except Exception:
        return None


def built(text: str, args: tuple):
    names = "xy"[:len(args)]
    f = s2s.from_source(f"def f({', '.join(names)}):\n    return {text}\n", {"np": np})
    try:
        return pipeline.front_build(f, [type_of(x, name) for x, name in zip(args, names)])
    except S2SError:
        return None


def same(found, wanted) -> bool:
    if isinstance(wanted, (tuple, list)):
        return isinstance(found, (tuple, list)) and len(found) == len(wanted) and all(map(same, found, wanted))
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if found.dtype.kind not in "fc":
        return np.array_equal(found, wanted)
    single = found.dtype in (np.float32, np.complex64)
    return np.allclose(found, wanted, rtol=2e-6 if single else 1e-12, atol=1e-6 if single else 1e-14, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in functions() if name not in DIFFER])
def test_every_value(name):
    for text, operands in calls(name, functions()[name]):
        wanted = [(args, y) for args in operands if (y := expected(text, args)) is not None]
        function = built(text, wanted[0][0]) if wanted else None
        for args, y in wanted if function is not None else ():
            found = interpret(function, *[np.copy(x) if isinstance(x, np.ndarray) else x for x in args])
            assert same(found, y), f"{text} of {args} is {y}, and {found} here"
