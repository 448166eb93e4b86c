"""Load generated text as a module: tracebacks show its lines, errors name the user's line.

The text is registered with `linecache` under a stable name, `<s2s f_grad>`, so that pdb and
tracebacks show it as they show any file.  What is raised inside it says which of the user's lines
it came from: as a note where Python has notes (3.11), as the cause of the error in 3.10.
"""

from __future__ import annotations

import ast
import functools
import linecache
import traceback
import weakref
from collections import Counter
from collections.abc import Callable

from ...errors import Line, S2SError, ShapeMismatchError, library_refusal
from ...ops.program.custom_rules import REFUSALS
from .nan_trap import LOCALS, REMEMBER, STOP, Trap, is_checking, remember, stop

TEXT = "__s2s_text__"  # the name of a compiled module's own text
_taken: dict[str, str] = {}  # the name of a generated file -> its text
_users: Counter[str] = Counter()  # ... and how many modules were made of it


class InYourProgram(Exception):
    """Cause that carries the user's line where exceptions have no notes (Python 3.10)."""


def load(text: str, entry: str, lines: dict[int, Line], check: bool | None = None,
         given: dict[str, object] | None = None) -> Callable:
    """Load the function `entry` of the module `text`, whose generated lines come from the user's
    `lines`.

    `given` are the names that the text uses and does not define.  With `check` (S2S_CHECK=nan), the
    first NaN or inf raises FloatingPointError (nan_trap.py).
    """
    filename = register(text, entry)
    tree = ast.parse(text, filename)
    if check is None:
        check = is_checking()
    namespace: dict[str, object] = {**(given or {}), "__name__": f"s2s_{entry}",
                                    "__file__": filename}
    if check:
        tree = ast.fix_missing_locations(Trap().visit(tree))
        namespace.update({STOP: stop, REMEMBER: remember, LOCALS: locals})
    exec(compile(tree, filename, "exec"), namespace)
    weakref.finalize(namespace[entry], release, filename).atexit = False
    return with_user_line(namespace[entry], filename, lines)


def register(text: str, entry: str) -> str:
    """Register `text` with `linecache`, until it is released as often; equal texts get the same
    name.
    """
    number, name = 1, f"<s2s {entry}>"
    while _taken.get(name, text) != text:
        number += 1
        name = f"<s2s {entry} {number}>"
    _taken[name] = text
    _users[name] += 1
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return name


def release(name: str) -> None:
    """Forget the text of a file, if this was the last user of it."""
    _users[name] -= 1
    if not _users[name]:
        for kept in (_users, _taken, linecache.cache):
            kept.pop(name, None)


def with_user_line(function: Callable, filename: str, lines: dict[int, Line]) -> Callable:
    """Wrap `function` so that its exceptions name the user's line."""

    @functools.wraps(function)
    def run(*args):
        try:
            return function(*args)
        except Exception as error:
            add_user_line(error, filename, lines)
            refused = (refusal(error, filename, lines)
                       or library_refusal(error, running_line(error, filename, lines)))
            if refused is not None:
                raise refused from None
            raise

    return run


def add_user_line(error: Exception, filename: str, lines: dict[int, Line]) -> None:
    """Add to `error` the user's line that was running when it was raised."""
    line = running_line(error, filename, lines)
    if line is not None:
        note(error, line)


def running_line(error: Exception, filename: str, lines: dict[int, Line]) -> Line | None:
    """The user's line that was running when `error` was raised."""
    line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == filename:
            line = line_of(number, lines) or line
    return line


def refusal(error: Exception, filename: str, lines: dict[int, Line]) -> S2SError | None:
    """The s2s error that `error` stands for, if a check in the generated text raised it.

    The text does not import s2s, so its checks raise a Python class; REFUSALS lists those that mean
    a refusal.
    """
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    remedy = REFUSALS.get(frame.f_code.co_name) if frame.f_code.co_filename == filename else None
    return (None if remedy is None
            else ShapeMismatchError(str(error), running_line(error, filename, lines), remedy))


def note(error: BaseException, line: Line) -> None:
    """Note on `error` that it comes from `line`."""
    text = describe(line)
    if hasattr(error, "add_note"):
        if text not in getattr(error, "__notes__", ()):
            error.add_note(text)
    elif error.__cause__ is None:
        error.__cause__ = InYourProgram(text)


def line_of(number: int, lines: dict[int, Line]) -> Line | None:
    """The user's line of the generated line `number`, or of the nearest generated line above that
    has one.
    """
    known = [n for n in lines if n <= number]
    return lines[max(known)] if known else None


def describe(line: Line) -> str:
    """Describe `line`: its location, its text, and the direction of the sweep."""
    direction = ", running backwards" if line.backwards else ""
    place = f'  File "{line.source.filename}", line {line.number}, in {line.source.name}'
    return f"{place}{direction}\n    {line.text}"
