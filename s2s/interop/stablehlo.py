"""`to_stablehlo`: a program for arguments of known shapes, as StableHLO text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import UnsupportedError
from ..eval_shape import ShapeDtype, stand_in
from ..front import definition_line
from ..ir.graph import whole
from ..ops.core.stablehlo_text import ELEMENTS, Tensor, Text
from ..transformed import Transformed
from .leaf_program import flatten, unflatten


def to_stablehlo(t: Callable, *args, **keywords) -> str:
    """Return the StableHLO text of `t`, a function or a transformed one, for arguments of the
    shapes and dtypes of these.

    The text is a module whose function `main` has a parameter for each array and each float among
    the leaves of `args`, in their order, and a result for each leaf of what `t` returns.  Arrays
    may be given as ShapeDtype.  Python's integers and booleans, and what is no number, are
    constants of the text, as lengths and numbers of trips may depend on them; so are captured
    values.

        text = s2s.to_stablehlo(s2s.grad(f), s2s.ShapeDtype((3,), "float64"), 0.5)

    It is the program after all passes: what `t.lower(*args).source` shows.  Loops become
    `stablehlo.while`, or are written out where their trips have arrays of unlike lengths; branches
    `stablehlo.if`.  Dtypes are those of NumPy.  StableHLO has no exceptions: what raises while the
    program runs, an index out of range for one, has some value there.

    Raises UnsupportedError, with the line of the program, for what StableHLO has no operation for
    (lists of run-time length, random numbers, printing, special functions, eigenvalues) and for
    shapes that depend on what arrays hold; and whatever generating code for `t` raises.
    """
    t = t if isinstance(t, Transformed) else Transformed("value", t)
    args = t.bound(args, keywords)
    leaves: list = []
    structure = flatten(args, leaves)
    values = [stand_in(x) for x in leaves]
    function = whole(t.specialise(unflatten(structure, iter(values))).function)
    text, params = Text(), []
    names = [p.name for p, x in zip(function.params, args) for _ in _leaves(x)]
    for k, (x, name) in enumerate(zip(values, names)):
        if is_parameter(leaves[k]):
            dtype = np.asarray(x).dtype.name
            if dtype not in ELEMENTS:
                raise UnsupportedError(f"{name} is an array of {dtype}", definition_line(t.base),
                                       "pass an array of numbers")
            params.append(Tensor(text.fresh(), dtype, np.shape(x)))
            text.call(params[-1], name)
            values[k] = params[-1]
    captured = [get() for get in function.captures.values()]
    results: list = []
    for y in text.run(function.block, [*unflatten(structure, iter(values)), *captured]):
        flatten(y, results)
    return text.text(function.name, params, [text.tensor(y) for y in results])


def is_parameter(x) -> bool:
    """Test whether a leaf of the arguments is a parameter of the text: an array, or a number that
    is no integer of Python's.
    """
    return isinstance(x, (ShapeDtype, np.ndarray, np.generic, float, complex))


def _leaves(x) -> list:
    found: list = []
    flatten(x, found)
    return found
