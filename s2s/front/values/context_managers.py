"""Context managers without an effect on results: np.errstate, contextlib.nullcontext.

Warnings that a function ignores anywhere are ignored in all code generated from that function:
`@np.errstate(divide="ignore")` above its printed form (back/print/printer.py).  Considered: a
`with` around the statements that stem from those inside the user's.  Passes move them out of loops,
share them, and put the adjoint of one beside that of another; each would have to preserve a block
without a meaning to it, and the text would hold several for one of the user's.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import gast
import numpy as np

from ...errors import ERRORS
from ..domain.frame import Frame


@dataclass(frozen=True)
class Context:
    """The manager of such a `with`: `entered` is bound by `as`."""

    entered: object = None


def _errstate(frame: Frame, node, **settings):
    for kind, setting in settings.items():
        does = frame.static(setting, "what np.errstate does", node)
        if does not in ("ignore", "warn", None):
            raise frame.refuse(
                f"np.errstate({kind}={setting!r})", node,
                "test for the condition; generated code ignores these errors or warns")
        if does == "ignore":
            frame.source.silent.update(ERRORS if kind == "all" else (kind,))
    return Context()


def _nullcontext(frame: Frame, node, enter_result=None):
    return Context(enter_result)


def enter(frame: Frame, item: gast.withitem, evaluate, assign) -> None:
    """Enter one manager of a `with`, whose statements follow."""
    manager = item.context_expr
    if (not isinstance(manager, gast.Call)
            or evaluate(frame, manager.func) not in (np.errstate, contextlib.nullcontext)):
        raise frame.refuse("a `with` statement", manager, "do what it does outside the function")
    context = evaluate(frame, manager)
    if item.optional_vars is not None:
        assign(frame, item.optional_vars, context.entered, item.optional_vars)


def _suppress(frame: Frame, node, *kinds) -> tuple:
    """contextlib.suppress(*kinds), in the place of the classes to catch: front/syntax/desugar.py.
    """
    return kinds


CONTEXTS = {
    np.errstate: _errstate,
    contextlib.nullcontext: _nullcontext,
    contextlib.suppress: _suppress
}
