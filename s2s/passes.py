"""A look at every stage of a program: run the tables of passes (pass_table.py), and verify, record
and dump what each pass leaves.

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
from pathlib import Path

from .back.print.printer import render
from .check_flags import checked as checked
from .check_flags import is_checking
from .ir.graph import Function
from .ir.reemit import clone
from .ir.verify import verify
from .pass_table import Pass as Pass
from .pass_table import ordered as ordered
from .pass_table import run_each, verified

_dumping: ContextVar[str | None] = ContextVar("dumping", default=None)
_stages: ContextVar[list | None] = ContextVar("stages", default=None)


def run(passes: Sequence[Pass], function: Function, target: str = "cpu") -> Function:
    """Run each of `passes` for this target in turn on a copy of `function`."""
    return apply(passes, clone(function), target)


def apply(passes: Sequence[Pass], function: Function, target: str = "cpu",
          look: Callable[[Function, str], object] | None = None) -> Function:
    """Run each of `passes` for this target in turn on `function`, which may be changed.

    Each stage is handed to `look`, with its name: by default to `stage`.
    """
    # asked once: a pass may take less time than to ask
    return run_each(passes, function, target, (look or stage) if is_observed() else None)


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
    verified(function, name, verifier)
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
