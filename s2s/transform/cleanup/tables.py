"""The passes that clean a function up before it is transformed (PREPARE), and what a transformation
has made (FINISH).

A called function is cleaned up when it is built, as its caller is by pipeline.py, and so are the
parts of its derivative: common subexpressions are saved once, and what a loop does not change is
computed before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...check_flags import is_checking
from ...ir.graph import Function
from ...ir.reemit import clone
from ...pass_table import Pass, ordered, run_each, verified
from .cse import cse
from .dce import dce
from .dead_stores import drop_dead_stores
from .hoist_common import hoist_common
from .inline import inline
from .jump_threading import thread_jumps
from .licm import licm
from .list_to_array import lists_to_arrays
from .merge_branches import merge_branches
from .redundant_masks import drop_redundant_masks
from .simplify import simplify
from .store_merging import merge_stores

PREPARE = ordered(
    Pass(inline, "a derivative rule applies better to the body of a small function than to a call"),
    Pass(thread_jumps, "flags set in one branch and tested in another would be saved, and simplify "
         "makes conditions of them", after=inline),
    Pass(simplify, "carries and branch results that never change would each get a cotangent",
         after=inline),
    Pass(cse, "a value computed once is differentiated once", after=simplify),
    Pass(merge_branches, "cse has found which branches test the same condition", after=cse),
    Pass(lists_to_arrays, "a tape would save every version of a list, but nothing of an array that "
         "a loop fills", after=simplify),
    Pass(licm, "a hoisted value needs no tape", after=cse),
    Pass(simplify, "reads at hoisted indices now meet the writes to the same element", after=licm),
    Pass(cse, "and their users become common subexpressions", after=simplify),
    Pass(dce, "dead values need no cotangent", after=cse),
)

FINISH = ordered(
    Pass(simplify, "seeds of 1 and zeros of untouched cotangents fold away"),
    Pass(dce, "a value that only the result needed is gone, and its name with it", after=simplify),
    Pass(cse, "the reverse sweep recomputes values of the forward sweep", after=simplify),
    Pass(hoist_common, "both arms of a branch start the same cotangents from zero", after=cse),
    Pass(licm, "adjoints repeat loop-invariant factors", after=cse),
    Pass(drop_redundant_masks, "it is known by now which cotangents are zero on which paths",
         after=cse),
    Pass(simplify, "carries that lost their other readers are constant now", after=dce),
    Pass(cse, "hoisted ops repeat ops before the loop", after=licm),
    Pass(merge_stores, "an adjoint clears an element and adds to it again", after=cse),
    Pass(drop_dead_stores, "dead stores are visible once elements are written once",
         after=merge_stores),
    Pass(dce, "folding has left operands behind", after=simplify),
)


def prepared_callee(function: Function) -> Function:
    """Clean up a function that another calls, before either is transformed."""
    return _run_on_callee(PREPARE, clone(function))


def finished_callee(function: Function) -> Function:
    """Clean up a part of a derivative that another part calls; it may be changed."""
    return _run_on_callee(FINISH, function)


def _run_on_callee(passes: Sequence[Pass], function: Function) -> Function:
    return run_each(passes, function, look=verified if is_checking() else None)
