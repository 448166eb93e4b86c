"""Tables of passes: what a pass is, and how one after the other is run.

A pass is a function Function -> Function, which may change the one it is given.  Each stands in a
table with the reason for its place; a pass that must follow another says so, and `ordered` checks
that it does.  Every stage of a program is verified and dumped on demand: passes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .check_flags import is_checking
from .errors import VerifyError
from .ir.graph import Function
from .ir.verify import verify


@dataclass(frozen=True)
class Pass:
    """One pass, the reason for its position, and the pass that must have run before it.

    `then` is run on what it returns, as a part of it: dead-code elimination, where it leaves dead
    code.  It may be for one `target` alone.
    """

    run: Callable[[Function], Function]
    reason: str
    after: Callable[[Function], Function] | None = None
    then: Callable[[Function], Function] | None = None
    target: str | None = None

    @property
    def name(self) -> str:
        return self.run.__name__


def ordered(*passes: Pass) -> tuple[Pass, ...]:
    """Check that each of `passes` comes after the pass that it says it must follow."""
    for k, each in enumerate(passes):
        if each.after is not None and all(earlier.run is not each.after for earlier in passes[:k]):
            raise ValueError(f"{each.name} must follow {each.after.__name__}")
    return passes


def run_each(passes: Sequence[Pass], function: Function, target: str = "cpu",
             look: Callable[[Function, str], object] | None = None) -> Function:
    """Run each of `passes` for this target in turn on `function`, which may be changed; each stage
    is handed to `look`, with its name.
    """
    for each in passes:
        if each.target in (None, target):
            function = each.run(function)
            if each.then is not None:
                function = each.then(function)
            if look is not None:
                look(function, each.name)
    return function


def verified(function: Function, name: str,
             verifier: Callable[[Function], object] = verify) -> Function:
    """Verify `function` as the pass `name` has left it, if requested, and return it."""
    if is_checking():
        try:
            verifier(function)
        except VerifyError as error:
            error.message = f"after {name}: {error.message}"
            raise
    return function
