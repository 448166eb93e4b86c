"""The loop form as a text that Numba's documented `@njit` compiles: for exported files, and where
private names of Numba are missing or unwanted (runtime/call/plain_function.py).

Note [Flags]
error_model="numpy": division by zero makes inf or nan, as in NumPy.  fastmath={"contract"}: a * b +
c may be one instruction, which rounds once where NumPy rounds twice; results differ from the
interpreted ones in the last bit, never in what NaN and infinity do.  fastmath=True also lets sums
be reordered, which is what makes them vectorise; still never nnan or ninf, because adjoints meet
both.  nogil: compiled code holds no Python object.  The sums of an adjoint are compiled code's to
order and to bracket (back/loops/reassociate/shorten_recurrences.py,
back/loops/reassociate/factor.py): where infinite terms cancel to NaN, a bracket may keep an
infinity.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from numba import NumbaPerformanceWarning, NumbaWarning

from ...back.print.printer import Module
from ..debug.nan_trap import is_checking, watching
from ..debug.nan_trap_native import trapped

FLAGS = {False: "{'contract'}", True: "{'contract', 'reassoc', 'nsz', 'arcp'}"}


def options(fastmath: bool, checks: bool) -> str:
    """The options of `@njit`.  Note [Flags]"""
    found = f"error_model='numpy', fastmath={FLAGS[bool(fastmath)]}, nogil=True"
    return f"{found}, boundscheck=True" if checks else found


def njit_text(module: Module, fastmath: bool = False) -> Module:
    """The loop form `module` with `@njit` above each function, and checked indices."""
    head, looks = ["from numba import njit"], {}
    if is_checking():
        head.append(f"from {trapped.__module__} import {trapped.__name__}")
        looks = watching(module.text)
    return with_decorators(module, head, lambda line: f"@njit({options(fastmath, True)})", [looks])


def with_decorators(module: Module, head: Sequence[str], decorator: Callable[[str], str],
                    more: Sequence[Mapping[int, str]] = (),
                    without: frozenset[int] | set[int] = frozenset()) -> Module:
    """`module` after the lines of `head`, with a decorator above each function, which depends on
    its first line, the lines `more` after those of these numbers, and `without` some lines.
    """
    text, moved = [*head], {}  # the new text, and the new number of each line
    for number, line in enumerate(module.text.splitlines(), 1):
        if number in without:
            continue
        if line.startswith("def "):
            text.append(decorator(line))
        text.append(line)
        moved[number] = len(text)
        text += [each for lines in more if number in lines for each in lines[number].splitlines()]
    lines, raises = ({moved[number]: x for number, x in found.items() if number in moved}
                     for found in (module.lines, module.raises))
    return Module("\n".join(text) + "\n", module.entry, lines, module.given, raises)


@contextmanager
def without_advice() -> Iterator[None]:
    """Silence Numba's performance advice while generated code is compiled: the user did not write
    it.  The filters of the process are put back, as Numba itself does it.
    """
    ours = r"<s2s |.*-[0-9a-f]{32}$"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=NumbaPerformanceWarning, module=ours)
        warnings.filterwarnings("ignore", "Code running in object mode", NumbaWarning, module=ours)
        # a tape passed between the halves of a derivative through Python is a list
        for file in (r"-[0-9a-f]{32}\.py", "<s2s "):
            warnings.filterwarnings("ignore", f"(?s).*reflected list.*{file}", NumbaWarning)
        yield
