"""The scope of a comprehension's variables, for closures created inside it.

`[lambda t: t**k for k in range(3)]` creates functions that all read the `k` of the comprehension,
whose last value is 2, and not a `k` of the enclosing function.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import gast

from ..domain.frame import Frame


@contextmanager
def comprehension_scope(frame: Frame, target: gast.AST) -> Iterator:
    """A context in which functions created by `frame` close over the names in `target`; the
    function it yields sets their current bindings.
    """
    names = {n.id for n in gast.walk(target) if isinstance(n, gast.Name)}
    around = frame.making
    scope = copy.copy(around or frame)
    scope.env, scope.lexical = {}, around or frame
    scope.outline = SimpleNamespace(locals=names, own=names, outer=(), written_inside=(),
                                    liveness=frame.liveness)
    frame.making = scope

    def tell() -> None:
        scope.env.update({name: frame.env[name] for name in names if name in frame.env})

    try:
        yield tell
    finally:
        frame.making = around
