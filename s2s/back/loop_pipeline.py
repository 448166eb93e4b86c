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

The ops of a block are partitioned into groups that share an index space
(back/lower/fusion_groups.py), and each group is emitted as one nest (back/lower/nest.py). Views and
generated arrays are index arithmetic (back/loopir/elements.py). Sums run in index order, where
NumPy sums pairwise: results differ in the last bits.
"""

from __future__ import annotations

import re

from ..analysis.python_numbers import PythonNumbers
from ..errors import UnsupportedError
from ..ir.builder import Builder
from ..ir.graph import Block, Function, Value, walk
from ..ir.length_assumptions import assuming_not_one
from ..ir.types import Array, Extent, Unknown
from ..ops.core.record import dims_of
from ..ops.program.recursive_callee import recursive_callees, with_callees
from ..transform.cleanup.hoist_tape_lengths import hoist_tape_lengths
from .arrays.assume_equal_lengths import assume_lengths, check_assumptions
from .arrays.fuse_matvec_pairs import fuse_matvec_pairs
from .arrays.hoist_tables import hoist_tables
from .arrays.index_checks import check_indices
from .arrays.legalise import legalise
from .arrays.move_reshapes import move_reshapes
from .arrays.scatter_columns import scatter_columns
from .arrays.share_exponentials import share_exponentials
from .arrays.specialise_lengths import check_lengths
from .arrays.strip_mine_batch import strip_mine
from .loopir.extent_equalities import Equalities
from .loops.axis_order import permute_axes
from .loops.distribute_gathers import distribute_gathers
from .loops.distribute_long import divide_long_loops
from .loops.distribute_stages import distribute_stages
from .loops.drop_unused import drop_unused
from .loops.forward_stores import forward_stores
from .loops.fuse import fuse_loops
from .loops.hoist_buffers import hoist_buffers
from .loops.loop_bounds import check_loops
from .loops.reassociate.carried_product import postpone_products
from .loops.reassociate.factor import share_factors
from .loops.reassociate.shorten_recurrences import shorten_chains
from .loops.reassociate.sink_factors import sink_factors
from .loops.recursion_guard import guard_depth
from .loops.rematerialise import rematerialise
from .loops.reuse_dying_buffers import reuse_dying_buffers
from .loops.scalar_replace import replace_by_scalars
from .loops.split_at_wraparound import split_at_wraparound
from .loops.tape_arrays import stack_rows, stack_tapes
from .loops.type_empty_lists import type_empty_lists
from .lower.lower_block import lower_block
from .lower.scope import Scope


def lower(function: Function, asks: bool = True, supposes: bool = False,
          of: Function | None = None) -> Function:
    """Lower `function`, whose types have known rank, and the recursive functions it calls.

    With `asks` it tests whether Python would raise (back/arrays/python_errors.py), unless it cannot
    raise itself. It may be specialised to slices that have not length 1: ir/length_assumptions.py,
    Note [Supposed lengths]; then it was specialised from `of`.
    """
    if supposes:
        with assuming_not_one():
            return lower(assume_lengths(function), asks, of=function)
    function = hoist_tape_lengths(function)
    lowered = _lowered(with_callees(function, lambda callee: _lowered(callee, asks)), asks, of)
    if asks:  # kernels are launched from Python, which needs no types of lists
        for each in (lowered, *(callee.function for callee in recursive_callees(lowered))):
            stack_tapes(each)
            replace_by_scalars(each)
            share_factors(each)
            shorten_chains(each)
            postpone_products(each)
            drop_unused(each)
            if sink_factors(each):
                drop_unused(each)
            if distribute_stages(each):
                drop_unused(each)
                hoist_buffers(each)
            type_empty_lists(each)
            check_loops(each, function if each is lowered else None)
            divide_long_loops(each)
    guard_depth(lowered)
    return lowered


def _lowered(function: Function, asks: bool, of: Function | None = None) -> Function:
    for value_ in _all_values(function.block):
        if isinstance(value_.type, Unknown):
            raise UnsupportedError(
                f"{value_.name or 'a value'} of {function.name} has no known rank",
                value_.op.line if value_.op else None,
                "give it one rank on every path: let what becomes an array start as one, "
                "np.zeros_like(x) say; or leave jit away")
    function = legalise(share_exponentials(fuse_matvec_pairs(hoist_tables(check_indices(function)))
                                           if asks else function), asks)
    if asks:
        if (moved := scatter_columns(move_reshapes(function))) is not function:
            drop_unused(moved)
        function = strip_mine(stack_rows(moved))
    block = Block(params=[Value(p.type, p.name) for p in function.params])
    with Builder(block) as builder:
        builder.counter[0] = _largest_symbol(function) + 1
        scope = Scope({}, {}, Equalities(walk(function.block)), asked=set() if asks else None)
        scope.python_numbers = PythonNumbers(function.block)
        if asks:
            check_lengths(block.params)
            if of is not None:
                check_assumptions(of, block.params)
        for old, new in zip(function.params, block.params):
            scope.define(old, new)
            if isinstance(old.type, Array):
                scope.elements(old)  # request the lengths here, in the user's order
        block.yields = lower_block(scope, function.block)
    lowered = function.remade(block)
    drop_unused(lowered)
    if asks:  # a kernel has a thread for each trip, and sums that threads share
        fuse_loops(lowered)
        forward_stores(lowered)
        rematerialise(lowered)
        drop_unused(lowered)
        reuse_dying_buffers(lowered)
        drop_unused(lowered)
        split_at_wraparound(lowered)
        drop_unused(lowered)
        distribute_gathers(lowered)
        drop_unused(lowered)
        permute_axes(lowered)
    return hoist_buffers(lowered)


def _all_values(block: Block):
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
