"""The texts of functions that travel with a pickled Transformed, because no file at the other end
has them.

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
    """The name under which another process finds what is pickled, as functions are; "" where it is
    not found so.
    """
    found, place = sys.modules.get(made.__module__ or ""), getattr(made, "__qualname__", "")
    for part in place.split("."):
        found = getattr(found, part, None)
    return place if found is made else ""


def texts_of(function: Callable) -> dict[str, str]:
    """File name -> text, for the functions of a program that another process could not read in a
    file.
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
    """Let functions be found in texts that came with a pickle, and `linecache` show those of files
    that are not here.
    """
    for name, text in texts.items():
        carry(name, text)
        if not os.path.exists(name) and name not in linecache.cache:
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
