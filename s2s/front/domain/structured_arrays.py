"""Structured arrays that a program makes, as the Records of library/records.py; those from outside
are made Records where they are read (Frame.outside).
"""

from __future__ import annotations

import numpy as np

from ...ir.graph import MISSING
from ...library.records import filled, from_rows
from .frame import Frame

CREATORS = (np.zeros, np.ones, np.empty, np.array)


def create_records(frame: Frame, function, args: list, keywords: dict, node):
    """The binding of a call of np.zeros and the like, if the dtype is a structured one; else
    MISSING.
    """
    asked = keywords.get("dtype", args[1] if len(args) > 1 else None)
    if function not in CREATORS or asked is None or not frame.is_static(asked):
        return MISSING
    dtype = frame.static(asked, "dtype=", node)
    if not isinstance(dtype, (list, np.dtype)) or np.dtype(dtype).names is None:
        return MISSING
    dtype = np.dtype(dtype)
    fields = tuple((name, dtype[name].base, dtype[name].shape) for name in dtype.names)
    if any(base.kind not in "biufc" for _, base, _ in fields):
        raise frame.refuse("a structured array of anything but numbers", node,
                           "keep what is no number in a list beside it")
    source = args[0] if args else keywords.get("shape", keywords.get("object"))
    given = [source, fields] if function is np.array else [function, source, fields]
    made = frame.session.call(frame, from_rows if function is np.array else filled, given, {}, node)
    for name, field in made.members["_fields"].members.items():
        frame.heap.read(field).name = frame.label(name) if name.isidentifier() else ""
    return made
