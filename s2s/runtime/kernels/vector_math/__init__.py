"""Vectorisable math functions (exp, log, sin, ...) of one number, for the loops of compiled code.

    def f(x):                               from s2s.runtime.kernels.vector_math import vector_exp
        return np.sum(np.exp(x))    ->      ...
                                                for i in range(n):
                                                    total = total + vector_exp(x[i])

LLVM does not vectorise calls of libm.  These functions are arithmetic alone, of at most 4 ulp for
every argument, NaN, infinities, subnormals and zeros' signs included, in double and single
precision.  The algorithms stand in the modules of this package, one for a family; lanes.py says
what they are made of, native.py how LLVM gets them.

Only loops that may be vectorised call them (back/loops/vectorise_calls.py).  A single number is
libm's: one after the other, its exp takes 11 ns where this one takes 16.
"""

from __future__ import annotations

import numpy as np
from llvmlite import binding

from ....check_flags import may_set_llvm_options
from ....ops.core.record import RECORDS
from . import (
    error_function,
    exponential,
    extremes,
    hyperbolic,
    inverse,
    logarithm,
    power,
    trigonometric,
)
from .native import compile_as

FAMILIES = (exponential, logarithm, hyperbolic, inverse, trigonometric, error_function, power,
            extremes)
# name -> its algorithm, and NumPy's or SciPy's function of that meaning
FUNCTIONS = {name: (next(vars(family)[name] for family in FAMILIES if name in vars(family)),
                    getattr(np, name, RECORDS[name].evaluate))
             for name in dict.fromkeys(record.vector for record in RECORDS.values()) if name}
OF_TWO = tuple(name for name in FUNCTIONS if len(RECORDS[name].partials) == 2)


def _callable(name: str):
    algorithm, plain = FUNCTIONS[name]
    arity = 2 if name in OF_TWO else 1
    function = (lambda a, b: plain(a, b)) if arity == 2 else (lambda x: plain(x))

    function.__name__ = function.__qualname__ = f"vector_{name}"
    function.__doc__ = f"{name} of a number; in compiled code, of the lanes of a vector."
    compile_as(function, algorithm, name, arity)
    return function


globals().update((f"vector_{_name}", _callable(_name)) for _name in FUNCTIONS)
__all__ = [f"vector_{_name}" for _name in FUNCTIONS]


def vectorise_sums() -> None:
    """Let LLVM vectorise the code around an ordered sum, `total + exp(x[i])`, while the sum stays
    in program order.

    It does so by default on some processors, but not on x86; the result is the same to the last
    bit.  The option applies to the whole process, may be set once, and exists in the versions named
    here; S2S_LLVM_OPTIONS=0 leaves it alone.  Considered: hints in the metadata of loops, by which
    LLVM reorders sums.
    """
    if (may_set_llvm_options() and 15 <= binding.llvm_version_info[0] <= 22
        and not hasattr(binding, "s2s_vectorises_sums")):
        binding.set_option("", "-force-ordered-reductions")
        binding.s2s_vectorises_sums = True


vectorise_sums()
