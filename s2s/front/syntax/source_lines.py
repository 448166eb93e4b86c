"""Find the text of a function: in its source file, in what the process was started with or was told
at its prompt, or among texts that came with pickles.

cloudpickle carries a function by value, without its text, and since 3.1.3 without the name of its
file.  Such a function is looked for in the texts that Transformed objects carry along
(persist/pickled_sources.py) and in the file of its module, by its code: its text is where the same
code is, of the same name in the same line.  Considered: writing the names of files into the code on
arrival, which does nothing for the functions that arrive beside a Transformed.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import os
import re
import stat
import sys
import types
from collections.abc import Iterator, Sequence

from ...ir.code_objects import fingerprint
from .code_match import compiled, flags_of, inside

# (file name, text): a name may have several texts, such as a cell that was run again
_carried: dict[tuple[str, str], None] = {}


def lines_of(code: types.CodeType, globals: dict) -> tuple[str, list[str]]:
    """(file name, lines) of the text of a function with these globals; no lines if there is none.
    """
    name = code.co_filename
    linecache.checkcache(name)
    lines = linecache.getlines(name, globals)
    # Python 3.13's prompt stores texts by code object
    if not lines and hasattr(linecache, "_getlines_from_code"):
        lines = linecache._getlines_from_code(code)
    if lines:
        return name, lines
    for place, text in (*texts_of_process(name), *texts_elsewhere(globals)):
        if (code.co_name.strip("<>") in text
                and any(fingerprint(c) == fingerprint(code) for c in codes_of(text, code))):
            return place, text.splitlines(keepends=True)
    return name, []


def texts_of_process(name: str) -> Iterator[tuple[str, str]]:
    """(file name, text) of candidate texts for a function that is from `<string>` or `<stdin>`."""
    if name == "<string>":
        yield from ((name, text) for option, text in itertools.pairwise(sys.orig_argv)
                    if re.fullmatch(r"-[a-zA-Z]*c", option))
    elif name == "<stdin>":
        yield from ((name, text) for text in (file_of_stdin(), *reversed(blocks(history()))))


def file_of_stdin() -> str:
    """The file that the process reads its program from; nothing where that is none."""
    try:
        size = os.fstat(0).st_size if stat.S_ISREG(os.fstat(0).st_mode) else 0
        return os.pread(0, size, 0).decode()
    except (OSError, AttributeError, UnicodeDecodeError):  # closed, or not on this system
        return ""


def history() -> list[str]:
    """The lines typed at the prompt."""
    readline = sys.modules.get("readline")
    if readline is None:
        return []
    return [readline.get_history_item(k) or ""
            for k in range(1, readline.get_current_history_length() + 1)]


def blocks(lines: Sequence[str]) -> list[str]:
    """The statements among the lines: each begins at the margin, unless it goes on there."""
    found: list[str] = []
    for k, line in enumerate(lines):
        goes_on = line[:1].isspace() or re.match(r"(el(if|se)|except|finally)\b|[)\]}]", line)
        if k and (goes_on or lines[k - 1].startswith("@")):
            found[-1] += line + "\n"
        else:
            found.append(line + "\n")
    return found


def texts_elsewhere(globals: dict) -> Iterator[tuple[str, str]]:
    """(file name, text) of candidate texts for a function of these globals that names no file, the
    newest first.
    """
    yield from reversed([*_carried])  # another thread may be unpickling
    file = globals.get("__file__")
    if isinstance(file, str):
        linecache.checkcache(file)
        yield file, "".join(linecache.getlines(file))


def carry(name: str, text: str) -> None:
    """Register `text`, of the file `name` elsewhere, for finding functions."""
    _carried.pop((name, text), None)  # the newest first
    _carried[name, text] = None


def codes_of(text: str, code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects of functions defined in `text` with the name and line of `code`."""
    for apart in (False, True):
        yield from all_codes_of(text, flags_of(code), apart).get(
            (code.co_name, code.co_firstlineno), ())


@functools.lru_cache(maxsize=64)
def all_codes_of(text: str, flags: int, apart: bool) -> dict[tuple[str, int], list[types.CodeType]]:
    """The code objects of the functions defined in `text`, by name and first line; empty if it does
    not compile.

    `apart`, each statement is compiled by itself, as in a notebook.
    """
    found: dict[tuple[str, int], list[types.CodeType]] = {}
    try:
        modules = [ast.Module([s], []) for s in ast.parse(text).body] if apart else [text]
    except SyntaxError:  # IPython's own, with magics
        return found
    rest = [code for code in (compiled(module, flags) for module in modules) if code is not None]
    while rest:
        code = rest.pop()
        found.setdefault((code.co_name, code.co_firstlineno), []).append(code)
        rest += inside(code)
    return found
