"""Tables of passes: their order, the reason for each position, and a look at every stage.

A pass is a function Function -> Function, which may change the one it is given.  Each stands in a
table with the reason for its place; a pass that must follow another says so, and `ordered` checks
that it does.

    S2S_CHECK=1    all checks, or some of them (check_flags.py): the IR is verified after every pass
    S2S_DUMP=dir   every stage is written there, as a file that runs

The tables are in pipeline.py, in back/loop_pipeline.py for loops, and in
runtime/call/loop_program.py for native code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from .back.print.printer import render
from .check_flags import checked as checked
from .check_flags import is_checking
from .errors import VerifyError
from .ir.graph import Function
from .ir.reemit import clone
from .ir.verify import verify

_dumping: ContextVar[str | None] = ContextVar("dumping", default=None)
_stages: ContextVar[list | None] = ContextVar("stages", default=None)


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


def run(passes: Sequence[Pass], function: Function, target: str = "cpu") -> Function:
    """Run each of `passes` for this target in turn on a copy of `function`."""
    return apply(passes, clone(function), target)


def apply(passes: Sequence[Pass], function: Function, target: str = "cpu",
          look: Callable[[Function, str], object] | None = None) -> Function:
    """Run each of `passes` for this target in turn on `function`, which may be changed.

    Each stage is handed to `look`, with its name: by default to `stage`.
    """
    is_seen = is_observed()  # asked once: a pass may take less time than to ask
    for each in passes:
        if each.target in (None, target):
            function = each.run(function)
            if each.then is not None:
                function = each.then(function)
            if is_seen:
                (look or stage)(function, each.name)
    return function


# ------------------------------------------------------------------------- inspection of the stages


@contextmanager
def recorded() -> Iterator[list[tuple[str, Function]]]:
    """Append every stage inside this context to the list that it yields: (pass, function) in order.
    """
    stages: list[tuple[str, Function]] = []
    token = _stages.set(stages)
    try:
        yield stages
    finally:
        _stages.reset(token)


def is_observed() -> bool:
    """Test whether the stages are being observed, so that all of them have to be built."""
    return is_checking() or _stages.get() is not None or bool(dump_directory())


def stage(function: Function, name: str) -> Function:
    """Verify, record and dump `function`, if requested, and return it."""
    return observe(function, name, verify)


def observe(function: Function, name: str, verifier: Callable[[Function], object],
            dumps: bool = True) -> Function:
    """Verify, record and dump `function`, if requested, and return it; what the `verifier` finds is
    said to be so after the pass `name`.
    """
    if is_checking():
        try:
            verifier(function)
        except VerifyError as error:
            error.message = f"after {name}: {error.message}"
            raise
    if _stages.get() is not None:
        _stages.get().append((name, clone(function)))
    if dumps:
        dump(lambda: render(function, annotate=True).text, f"{function.name}_{name}")
    return function


def dump_directory() -> str | None:
    """Return the directory to write stages to: that of `dumping`, or S2S_DUMP."""
    return _dumping.get() or os.environ.get("S2S_DUMP")


@contextmanager
def dumping(directory: str) -> Iterator[None]:
    """Write stages to this directory inside this context, as with S2S_DUMP."""
    token = _dumping.set(directory)
    try:
        yield
    finally:
        _dumping.reset(token)


def dump(text: Callable[[], str], name: str) -> None:
    """Write a stage to the directory in S2S_DUMP, as <number>_<name>.py, numbered in the order in
    which stages are reached.
    """
    directory = dump_directory()
    if directory:
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob("*.py"))) + 1
        (folder / f"{number:03d}_{name}.py").write_text(text())
