"""Source texts that travel with a pickled Transformed, for functions that no file at the other end
has.

A function that is pickled by its name is found again in its module.  One that cloudpickle carries
by value (a lambda, a function of a notebook) arrives without its text, which s2s needs.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable

from ..front.syntax.source_lines import carry, lines_of
from .referenced_functions import functions_named


def place_of(made) -> str:
    """Return the name under which another process finds a pickled object, as for functions; ""
    where there is none.
    """
    found, place = sys.modules.get(made.__module__ or ""), getattr(made, "__qualname__", "")
    for part in place.split("."):
        found = getattr(found, part, None)
    return place if found is made else ""


def texts_of(function: Callable) -> dict[str, str]:
    """Map file names to texts, for the functions of a program that another process could not read
    in a file.
    """
    found = {}
    for plain in functions_named(function):
        by_name = (plain.__module__ != "__main__" and place_of(plain)
                   and os.path.exists(plain.__code__.co_filename))
        if not by_name:
            name, lines = lines_of(plain.__code__, plain.__globals__)
            if lines:
                found[name] = "".join(lines)
    return found


def register_texts(texts: dict[str, str]) -> None:
    """Register texts that came with a pickle, for finding functions in them, and with `linecache`
    for files that do not exist here.
    """
    for name, text in texts.items():
        carry(name, text)
        if not os.path.exists(name) and name not in linecache.cache:
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
