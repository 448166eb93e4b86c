"""Rewrite ops that native code computes by others, before lowering (legalisation).

    np.outer(a, b), np.stack(xs, axis)   a[:, None] * b; np.concatenate of xs with a new axis each
    a @ b, np.einsum                     sums, loops, products for BLAS (contractions.py)
    np.linalg.solve, np.linalg.det       elimination in loops, of small matrices (small_linalg.py),
                                         and a loop over stacks of others (batched_linalg.py)
    np.searchsorted, np.digitize         loops over the elements (binary_search.py)
    math.fsum(xs), np.fft.fftfreq(n)     loops that are printed along; 0, 1, ..., -1 times 1.0 / n
    k // n, k ** n, k << n, z < w        other arithmetic, where Numba's differs from NumPy's
    x ** 0.5, np.round(x)                np.sqrt(x), np.rint(x): as exact as NumPy, or faster
    the slope of a norm                  x / y, which is not differentiated any more

What becomes of an op is in its record: `lower`, and `cuda` for kernels of a GPU, which call no
library (ops/core/record.py, Note [Lowering rules]).  Here is what all ops have in common: integers
that int64 does not hold are floats where an op makes floats of them, or else refused.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...errors import Line, UnsupportedError
from ...ir.graph import Function, Op, Value, walk
from ...ir.reemit import rebuild
from ...ir.types import is_inexact
from ...ops.core.array_raise_conditions import unlike
from ...ops.core.raise_conditions import Raises
from ...ops.core.record import Record, rank, value
from ...ops.core.shape import length
from . import binary_search, contractions, small_linalg  # noqa: F401  they state rules
from .batched_linalg import expand_batch, is_of_stacks, matrices
from .python_errors import raise_where

NOT_SQUARE = Raises(np.linalg.LinAlgError, lambda *xs: None)


def legalise(function: Function, target: str = "cpu") -> Function:
    """`function` with its ops rewritten by the rules in their records."""
    for block in (function.block, *(inner for op in walk(function.block) for inner in op.blocks)):
        for y in filter(exceeds_word, block.yields):
            raise too_wide(y, y.op.line)
    return rebuild(function, rule=functools.partial(_lowered, target=target))


def legalise_for_kernels(function: Function) -> Function:
    """`function` with its ops rewritten for kernels of a GPU."""
    return legalise(function, target="cuda")


def legalise_op(record: Record, inputs: Sequence[Value]) -> Value:
    """The result of an op of this record in native code."""
    op = Op(record, list(inputs))
    op.outputs = [Value(record.infer(*inputs), "", op)]
    replacement = _lowered(op, inputs)
    return record(*inputs) if replacement is None else replacement


def exceeds_word(x) -> bool:
    """Whether `x` is a Python integer, or a Value known to be one, outside the range of int64."""
    known = x.constant if isinstance(x, Value) else x
    return type(known) is int and not -2**63 <= known < 2**63


def too_wide(x: Value, line: Line | None) -> UnsupportedError:
    return UnsupportedError(f"the integer {x.constant} has more than 63 bits, "
                            "and native integers have no more", line,
                            f"write it as a float: {float(x.constant)!r}")


def _lowered(op: Op, inputs: Sequence[Value], target: str = "cpu") -> Value | None:
    """The value that stands for `op` of these inputs; None for itself."""
    wide = list(filter(exceeds_word, inputs))
    if wide:
        return _with_floats(op, inputs, wide)
    if target == "cpu" and is_of_stacks(op) and rank(matrices(op, inputs)) > 2:
        replacement = _matrix_by_matrix(op, inputs)
        if replacement is not None:
            return replacement
    rule = (op.record.cuda if target == "cuda" else None) or op.record.lower
    return None if rule is None else rule(op, *inputs)


def _with_floats(op: Op, inputs: Sequence[Value], wide: list[Value]) -> Value:
    """`op` with `wide` integers as floats, to which Python converts them where it meets floats."""
    if not op.record.elementwise or not is_inexact(op.output.type.dtype):
        raise too_wide(wide[0], op.line)
    return op.record(*(value(float(x.constant)) if x in wide else x for x in inputs), **op.attrs)


def _matrix_by_matrix(op: Op, inputs: Sequence[Value]) -> Value | None:
    """`op` of a stack of matrices, as a loop over them."""
    replacement = expand_batch(op, inputs, legalise_op)
    stack = matrices(op, inputs)
    # which is not tested if there are no matrices
    if replacement is not None and stack.type.dims[-1] != stack.type.dims[-2]:
        raise_where(NOT_SQUARE, unlike(length(stack, axis=-2), length(stack, axis=-1)))
    return replacement
