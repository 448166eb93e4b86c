"""Let calls of one function call one version of it, where their arguments differ in lengths alone.

    soft_dtw(a, b) - 0.5 * soft_dtw(a, a)

The second is built for arguments of one length, the first for arguments of two, which serves both:
so both call the first, and it is differentiated, and printed, once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Function, Op, walk
from ...ir.types import Array
from ...ops.core.control import Known, types_for_caller
from ...ops.program.checkpoint import is_plain


def share_callees(function: Function) -> Function:
    """Replace, in place, callees of `function` by others built of the same function."""
    calls: dict[object, list[Op]] = {}
    for op in walk(function.block):
        if (op.name == "call" and is_plain(op.attrs["callee"])
                and not isinstance(op.attrs["callee"], Known)):
            calls.setdefault(op.attrs["callee"], []).append(op)
    for callee, ops in calls.items():
        versions = list(dict.fromkeys(callee.function_for(op.inputs) for op in ops))
        for op in ops if len(versions) > 1 else ():
            own = callee.function_for(op.inputs)
            if (other := general_version(own, versions, op)) is not own:
                op.attrs = {**op.attrs, "callee": Known(other)}
    return function


def general_version(own: Function, versions: Sequence[Function], op: Op) -> Function:
    """Return the version of a function that serves the call `op` and supposes fewest lengths to be
    equal; `own` if there is none but this.
    """
    serving = [version for version in versions if version is own or serves(version, op)]
    return max(serving, key=lambda version: (count_lengths(version), version is own))


def serves(version: Function, op: Op) -> bool:
    """Test whether `version` is of the types of the arguments of `op`, for some lengths."""
    inputs = [x.type for x in op.inputs]
    return (len(version.params) == len(inputs) and not version.meetings
            and types_for_caller(version, op, version.params) == inputs
            and all(not isinstance(n, int) or n == m
                    for p, type in zip(version.params, inputs) if isinstance(type, Array)
                    for n, m in zip(type.dims, p.type.dims)))


def count_lengths(version: Function) -> int:
    """Count the different lengths of the parameters of a function."""
    return len({d for p in version.params if isinstance(p.type, Array) for d in p.type.dims})
