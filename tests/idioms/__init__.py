"""Random programs in all of the Python that numerical code is written in: generate.py's, and idioms
between.

Each function marked `@idiom` writes one with random parts and belongs to a family, so that the
fuzzer can be asked for some of them (`tools/fuzz --wide --idioms lists mutation`).  Like
generate.py's, programs end, stay finite, and are smooth almost everywhere.  An idiom may hold
statements, and so other idioms: all are nested in one another.
"""

from __future__ import annotations

import random

from . import (
    control,
    data,
    discarding,
    functions,
    items,
    lists,
    mutation,
    pointers,
    precision,
    raising,
    roots,
    sizes,
)
from .writer import FAMILIES, Wide

__all__ = [
    "FAMILIES",
    "control",
    "data",
    "discarding",
    "functions",
    "items",
    "lists",
    "mutation",
    "pointers",
    "precision",
    "raising",
    "roots",
    "sizes",
    "text",
]


def text(seed: int, families: tuple[str, ...] = ()) -> str:
    """The program of this seed: the definitions it needs, and `f(x, y, a, m, n)`."""
    # most are small: more of them run, and what fails is short
    size = 12 if seed % 10 == 9 else 2 + seed % 5
    return Wide(random.Random(f"wide {seed}"), size, families).program()
