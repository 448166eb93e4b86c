"""Functions of scipy.special in native code: calls of scipy.special.cython_special on single
numbers.

    y[i] = scipy.special.i0(x[i])    is compiled as    y[i] = scipys_i0(x[i])

SciPy exports them for Cython, as C functions of float64 that need neither Python nor its lock, with
the bits of the ufuncs. Their addresses are valid in this process: code refers to them by symbols,
which `provide` defines before linking, as in lapack_routines.py. Digamma is one of them: our own,
used in exported files (ops/math/special.py), takes ten times as long.

Considered: the inner loops of the ufuncs, as for NumPy's in runtime/intrinsics/complex_math.py,
which report errors to Python; functions of our own, whose accuracy would have to be shown for each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from llvmlite import binding, ir
from numba import types
from numba.extending import get_cython_function_address, lower_builtin, type_callable

from ...lazy_import import Named, later
from ...ops.core.record import RECORDS
from ...ops.math.special import OF_ORDER, SCIPYS_ALONE
from ..numba_internals import cgutils

cython_special = later("scipy.special.cython_special")

PREFIX = "s2s_scipys"  # symbols: s2s_scipys_i0
REAL = ir.DoubleType()
DIGAMMA = "psi"


def _callable(name: str, arity: int) -> Callable:
    """The function that native code calls."""
    plain = Named("scipy.special", name)
    function = {1: lambda x: plain(x), 2: lambda a, b: plain(a, b),
                3: lambda a, b, x: plain(a, b, x), 4: lambda a, b, c, x: plain(a, b, c, x)}[arity]
    function.__name__ = function.__qualname__ = f"scipys_{name}"
    function.__doc__ = f"scipy.special.{name} of numbers."

    type_callable(function)(lambda context: {1: lambda x: _type(x), 2: lambda a, b: _type(a, b),
                                             3: lambda a, b, x: _type(a, b, x),
                                             4: lambda a, b, c, x: _type(a, b, c, x)}[arity])

    @lower_builtin(function, *[types.Any] * arity)
    def lowered(context, builder, sig, args):
        given = [context.cast(builder, x, t, types.float64) for x, t in zip(args, sig.args)]
        symbol = f"{PREFIX}_{name}"
        provide([symbol])
        callee = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(REAL, [REAL] * len(given) + [ir.IntType(32)]), symbol)
        y = builder.call(callee, [*given, ir.IntType(32)(0)], attrs=("nounwind",))
        return context.cast(builder, y, types.float64, sig.return_type)

    return function


def _type(*xs: types.Type) -> types.Type | None:
    """SciPy's result type for numbers of these types."""
    if all(isinstance(x, (types.Integer, types.Boolean, types.Float)) for x in xs):
        return types.float32 if set(xs) == {types.float32} else types.float64
    return None


FUNCTIONS = {name: _callable(name, len(RECORDS[name].partials) + OF_ORDER.get(name, 0))
             for name in sorted(SCIPYS_ALONE)}
FUNCTIONS[DIGAMMA] = _callable(DIGAMMA, 1)
globals().update((function.__name__, function) for function in FUNCTIONS.values())


@functools.cache
def address(name: str) -> int:
    """The address of SciPy's float64 function in this process."""
    known = cython_special.__pyx_capi__
    for each in (name, f"__pyx_fuse_0{name}", f"__pyx_fuse_1{name}"):
        if '"double (double,' in repr(known.get(each)):
            return get_cython_function_address("scipy.special.cython_special", each)
    raise LookupError(f"scipy.special.cython_special has no {name} of float64")


def provide(symbols: Sequence[str]) -> None:
    """Define those of the symbols that are SciPy functions."""
    for each in symbols:
        if each.startswith(PREFIX):
            binding.add_symbol(each, address(each[len(PREFIX) + 1:]))
