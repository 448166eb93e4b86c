"""Lower a function on arrays to scalar arithmetic in loops.

    y = np.sin(x) * 2                    y = np.empty(len(x))
    s = np.sum(y)             becomes    s = 0.0
                                         for i in range(len(x)):
                                             t = np.sin(x[i]) * 2
                                             y[i] = t
                                             s = s + t

The result consists of scalar arithmetic, `for`, `while` and `if`, reads and writes of single
elements, allocations, and calls of BLAS: Numba compiles these quickly, and LLVM well. It is the
same IR, printed by the same printer.

What a value has become is in a Scope (scope.py); the ops of each block are lowered by
lower_block.py. Sums run in index order, where NumPy sums pairwise: results differ in the last bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...analysis.python_numbers import PythonNumbers
from ...errors import UnsupportedError
from ...ir.builder import Builder
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.types import Array, Extent, Unknown
from ...ops.core.record import dims_of
from ..arrays.assume_equal_lengths import check_assumptions
from ..arrays.specialise_lengths import check_lengths
from ..loopir.extent_equalities import Equalities
from ..loopir.reductions import REDUCTIONS, sum_step
from .lower_block import lower_block
from .scans import ORDERED
from .scope import Scope


def require_ranks(function: Function) -> Function:
    """Raise UnsupportedError if a value of `function` has no known rank."""
    for each in _all_values(function.block):
        if isinstance(each.type, Unknown):
            raise UnsupportedError(
                f"{each.name or 'a value'} of {function.name} has no known rank",
                each.op.line if each.op else None,
                "give it one rank on every path: let what becomes an array start as one, "
                "np.zeros_like(x) say; or leave jit away")
    return function


def lower_function(function: Function) -> Function:
    """Lower `function` to loops that test whether Python would raise
    (back/arrays/python_errors.py), unless they cannot raise it themselves.
    """
    return _lowered(function, asks=True)


def lower_for_kernels(function: Function) -> Function:
    """Lower `function` to loops without such tests: a kernel cannot raise.

    What threads would do one after the other is left to a library, outside of loops.
    """
    return _lowered(function, asks=False)


def is_in_order(op: Op) -> bool:
    """Whether `op` combines elements in order: threads do not share products, whose parts may
    overflow.
    """
    return op.record in ORDERED or op.record in REDUCTIONS and not (
        REDUCTIONS[op.record].step is sum_step or REDUCTIONS[op.record].step.extreme)


def _lowered(function: Function, asks: bool) -> Function:
    block = Block(params=[Value(p.type, p.name) for p in function.params])
    with Builder(block) as builder:
        builder.counter[0] = _largest_symbol(function) + 1
        scope = Scope({}, {}, Equalities(walk(function.block)), asked=set() if asks else None)
        scope.left = (lambda op: False) if asks else is_in_order
        scope.python_numbers = PythonNumbers(function.block)
        if asks:
            check_lengths(block.params)
            check_assumptions(block.params, function.alike)
        for old, new in zip(function.params, block.params):
            scope.define(old, new)
            if isinstance(old.type, Array):
                scope.elements(old)  # request the lengths here, in the user's order
        block.yields = lower_block(scope, function.block)
    return function.remade(block)


def _all_values(block: Block) -> Iterator[Value]:
    yield from block.params
    for op in walk(block):
        yield from op.outputs
        for inner in op.blocks:
            yield from inner.params


def _largest_symbol(function: Function) -> int:
    """The largest symbol of an extent, so that the loop form's own extents are distinct."""
    digits = [int(n) for v in _all_values(function.block) for d in dims_of(v.type)
              if isinstance(d, Extent) for n in re.findall(r"\d+", d.symbol)]
    return max(digits, default=0)
