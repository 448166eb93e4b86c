"""Checkpoint options of a loop: `for i in s2s.checkpoint(range(n), ...)`, `while
s2s.checkpoint(test, ...)`.
"""

from __future__ import annotations

import gast

from ...ops.program.checkpoint import Plan, checkpoint, planned
from ..syntax.dependencies import note_dependency
from .frame import Frame


def plan_of(frame: Frame, node: gast.AST, snapshots=None, memory=None) -> Plan:
    """The checkpointing Plan for these options, which are bindings of the program."""
    return planned(_option(frame, node, snapshots, "snapshots"),
                   _option(frame, node, memory, "memory"))


def _option(frame: Frame, node: gast.AST, binding, name: str):
    """The value of an option of `checkpoint`; a variable from outside is read now and recorded as a
    dependency.
    """
    for getter, (_, captured) in frame.session.captures.items():
        if captured is binding:
            note_dependency(getter, getter())
            return getter()
    if not frame.is_static(binding):
        raise frame.refuse(f"checkpoint with a number of {name} that depends on run-time data",
                           node, "write it as a literal, or as a variable outside the function")
    return frame.static(binding, name)


def test_and_plan(frame: Frame, test: gast.AST, evaluate) -> tuple[gast.AST, Plan | None]:
    """The test of a `while`, and the plan of the loop if the test is in `checkpoint`."""
    if (isinstance(test, gast.Call) and len(test.args) == 1
            and isinstance(test.func, (gast.Name, gast.Attribute))
            and evaluate(frame, test.func) is checkpoint):
        options = {keyword.arg: evaluate(frame, keyword.value) for keyword in test.keywords}
        return test.args[0], plan_of(frame, test, **options)
    return test, None
