"""The pass pipeline from a function on arrays to fused scalar loops: the passes, their order, and
the reason for each position.

    ENTER -> LEGALISE -> LOWER -> LOOPS -> LEAVE

LEGALISE is of arrays, LOWER makes loops of them, LOOPS are passes over these.  They are run on a
function and on the recursive functions that it calls; ENTER and LEAVE are run once, on all of it.
What a pass is, and how every stage is verified and dumped, is said in passes.py.
The passes from here to native code are in runtime/call/loop_program.py.

Few passes are for kernels of GPUs, too: those have a thread for each trip, and sums that threads
share; they call no BLAS, cannot raise, and are launched from Python, which needs no types of lists.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..analysis.index_ranges import analyse
from ..ir.graph import Function, walk
from ..ir.length_assumptions import assuming_not_one
from ..ir.verify import verify
from ..ops.program.recursive_callee import with_callees
from ..passes import Pass, apply, is_checking, observe, ordered, run, stage
from ..transform.cleanup.hoist_tape_lengths import hoist_tape_lengths
from .arrays.assume_equal_lengths import assume_lengths
from .arrays.fuse_matvec_pairs import fuse_matvec_pairs
from .arrays.hoist_tables import hoist_tables
from .arrays.index_checks import check_indices
from .arrays.legalise import legalise, legalise_for_kernels
from .arrays.move_reshapes import move_reshapes
from .arrays.scatter_columns import adds_rows, scatter_columns
from .arrays.share_exponentials import share_exponentials
from .arrays.strip_mine_batch import strip_mine
from .cuda.fuse_nests import fuse_nests
from .cuda.hoist_in_lanes import hoist_in_lanes
from .loops.axis_order import permute_axes
from .loops.decide import decide
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
from .lower.lower_function import lower_for_kernels, lower_function, require_ranks
from .print.insert_copies import copies_in_innermost_loops
from .verify_loops import verify_loops


def list_requirements(function: Function) -> Function:
    """List what `function` requires of its arguments, so that its indices are in range."""
    found, function.bounded = analyse(function)
    function.required = tuple(found.required)
    return function


# passes of native code alone, and of kernels alone
Native, Kernel = partial(Pass, target="cpu"), partial(Pass, target="cuda")

ENTER = ordered(
    Pass(hoist_tape_lengths, "the types of a call say which lengths no trip changes"),
    Native(list_requirements, "calls check what follows from the program's own indices",
           after=hoist_tape_lengths),
)

ROWS = ordered(  # of what has reshapes, or adds rows
    Native(move_reshapes, "a reshape ends a nest"),
    Native(scatter_columns, "cotangents are whole rows once reshapes have moved off them",
           after=move_reshapes, then=drop_unused),
)


def reshapes_or_adds_rows(function: Function) -> bool:
    """Whether `function` has ops that `move_reshapes` or `scatter_columns` may move."""
    return any(op.record.reshapes or adds_rows(op) for op in walk(function.block))


def move_rows(function: Function) -> Function:
    """Move reshapes to where they are free, and scatter-add columns without their rows."""
    return apply(ROWS, function) if reshapes_or_adds_rows(function) else function


LEGALISE = ordered(
    Pass(require_ranks, "loops need a counter for each axis"),
    Native(check_indices, "ranges of indices can be read off the program's own loops"),
    Native(hoist_tables, "rows that inner loops compute are arrays from here on"),
    Native(fuse_matvec_pairs, "legalising would leave both products of a pair to BLAS"),
    Native(share_exponentials, "legalising would take the logistic loss apart"),
    Native(legalise, "only ops that have loops, an index or a call of a library may be lowered",
           after=share_exponentials),
    Kernel(legalise_for_kernels, "only ops that have loops or an index may be lowered"),
    Native(move_rows, "legalised ops have brought more reshapes", after=legalise),
    Native(stack_rows, "a tape of arrays is one array, whose rows loops fill", after=legalise),
    Native(strip_mine, "the products of the batch are final, and arrays are arrays still",
           after=move_rows),
)

LOWER = ordered(
    Native(lower_function, "ops that share an index space become one nest", then=drop_unused),
    Kernel(lower_for_kernels, "ops that share an index space become one nest", then=drop_unused),
)

LOOPS = ordered(
    Kernel(fuse_nests, "every nest is a kernel, whose launch takes longer than many a loop",
           then=drop_unused),
    Native(fuse_loops, "nests pass rows to one another, and so do loops of the program"),
    Native(forward_stores, "fused loops pass elements on through memory", after=fuse_loops),
    Native(rematerialise, "cheap elements that fused loops still store are computed twice",
           after=forward_stores, then=drop_unused),
    Native(reuse_dying_buffers, "arrays that fusion and recomputation have left need memory",
           after=rematerialise, then=drop_unused),
    Native(split_at_wraparound, "pieces of unlike ranges would not have been fused",
           after=fuse_loops, then=drop_unused),
    Native(distribute_gathers, "a loop is distributed with all that was fused into it",
           after=fuse_loops, then=drop_unused),
    Native(permute_axes, "it is known by now which loop traverses an array innermost",
           after=distribute_gathers),
    Native(hoist_buffers, "it is known by now what each trip allocates"),
    Kernel(hoist_in_lanes, "it is known by now what each lane allocates"),
    Native(stack_tapes, "a push becomes a write to an element, which the passes below read"),
    Native(replace_by_scalars, "a window of scalars would keep its loop from being fused",
           after=stack_tapes),
    Native(share_factors, "elements that are scalars now are factors", after=replace_by_scalars),
    Native(shorten_chains, "the terms of a sum are known once common factors are out",
           after=share_factors),
    Native(postpone_products, "what the trip before passes on is added last now",
           after=shorten_chains, then=drop_unused),
    Native(sink_factors, "of the factors that are left some are loop-invariant",
           after=share_factors, then=drop_unused),
    Native(distribute_stages, "the arithmetic between inner loops is final",
           after=sink_factors, then=drop_unused),
    Native(hoist_buffers, "each strip would allocate the rows that stages pass on",
           after=distribute_stages),
    Native(decide, "what tapes have room for is asked, and lengths are known",
           after=stack_tapes, then=drop_unused),
    Native(type_empty_lists, "lists that could be arrays are arrays", after=stack_tapes),
    Native(check_loops, "all loops and indices are made, but for those of strips below",
           after=distribute_stages),
    Native(divide_long_loops, "a check in its bound belongs to the whole loop", after=check_loops),
)

LEAVE = ordered(
    Pass(guard_depth, "what a call takes of the stack is known once its arrays are"),
)


def lower(function: Function, target: str = "cpu", supposes: bool = False) -> Function:
    """Lower `function`, whose types have known rank, and the recursive functions that it calls, to
    loops for this target.

    With `supposes` it is specialised to slices that have not length 1: ir/length_assumptions.py,
    Note [Supposed lengths].
    """
    if supposes:
        with assuming_not_one():
            return lower(stage(assume_lengths(function), "assume_lengths"), target)

    def lowered(each: Function) -> Function:
        each = apply(LOWER, apply(LEGALISE, each, target), target, loop_stage)
        return apply(LOOPS, each, target, loop_stages(each))

    function = run(ENTER, function, target)
    return apply(LEAVE, lowered(with_callees(function, lowered)), target, loop_stage)


def loop_stages(lowered: Function) -> Callable[[Function, str], Function]:
    """Return what looks at `lowered` after each pass over its loops: it verifies, records and dumps
    it, if requested.
    """
    copies = copies_in_innermost_loops(lowered) if is_checking() else 0
    passed: set[str] = set()

    def look(function: Function, name: str) -> Function:
        passed.add(name)
        guarded = check_loops.__name__ in passed
        return observe(function, name, lambda stage: verify_loops(verify(stage, lengths=False),
                                                                  copies, guarded))

    return look


def loop_stage(function: Function, name: str) -> Function:
    """Verify, record and dump `function`, a loop form, if requested, and return it."""
    return observe(function, name, partial(verify, lengths=False))
