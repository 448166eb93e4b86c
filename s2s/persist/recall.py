"""Recall of generated code from disk, so that the first call of the next process generates nothing.

    <cache>/<name>-<key>.met      what was consulted, and found, while code was generated: for up
                                  to kept.SEVERAL programs of this key
    <cache>/<name>-<key>.piece    what the loops of one of them require, or the text that is
                                  compiled; runtime/cache/program_store.py

Machine code from the cache loads in hundredths of a second; reading the program, differentiating it
and making loops of it, only to find the name of that code, took ten times as long.

Note [What generated code depends on]
The key of a first call consists of what is certain to matter: the transformations and their
options, the function (its code and its text), the types of the arguments, all files of s2s and the
versions of its dependencies.  Everything else that a program's meaning may depend on is read
through `front/syntax/dependencies.py`, which a process reads again before it uses code generated
earlier.  So that is stored: the addresses of all that was consulted (addresses.py) and the
fingerprints of what was found there (fingerprints.py).  A process that finds the same at each of
these addresses would follow the same path, and generate the same.  Another process needs more than
the same process later: which library modules names stand for, what lists and dicts hold, and that a
builtin's name is not a global variable.  Code that depends on an object without an address or a
fingerprint is generated anew.

Considered: to store the IR instead, which holds code objects, namespaces and cells, and takes as
long to load as a small program takes to generate; to include everything that a function can reach
in the key, where any change in a module would invalidate everything in it; to store interpreted
functions too, which mostly have fewer calls, and whose source is usually read.

A recalled function stands in for the original (`ir.graph.Recalled`): its parameters and results are
known; its source, its loops for other lengths, or the explanation of an error, are generated on
demand.

    S2S_RECALL=0    nothing is recalled or kept: for those who change s2s while it runs, as its
                    tests do
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import FunctionType

from .. import pipeline
from ..front.syntax.captures import Saved
from ..front.syntax.dependencies import LENGTHS, Code, Inside, Kind, is_nested
from ..ir.graph import Function, Recalled, Value
from ..ir.types import Type
from ..lazy_import import later
from ..ops.program.custom_rules import rules_given
from ..passes import is_observed
from .addresses import Finder, NoAddress, Places, is_transformed
from .fingerprints import (
    NoFingerprint,
    code_fingerprint,
    container_fingerprint,
    fingerprint_of,
    kind_fingerprint,
    type_fingerprint,
)

store = later("s2s.runtime.cache.program_store")

def stored_programs(transformed, types: Sequence[Type]):
    """Return the stored programs of such a first call; None where there are none, and code is
    generated.
    """
    options = transformed.options
    if (transformed.kind != "jit" or options.get("target", "cpu") != "cpu"
            or not options.get("cache", True)):
        return None
    if (os.environ.get("S2S_RECALL", "1") in ("", "0") or is_nested() or is_observed()
            or pipeline.numba.config.DISABLE_JIT or pipeline.is_plain()):
        return None
    base = transformed
    while is_transformed(base):
        base = base.inner
    if not isinstance(base, FunctionType):
        return None
    try:
        said = repr((fingerprint_of(transformed), transformed.name,
                     tuple(map(type_fingerprint, types))))
    except NoFingerprint:
        return None
    return store.StoredPrograms.of(transformed.name, said)


def recall(transformed, types: Sequence[Type], kept):
    """Return (function, what was consulted, what is stored of its native code), as an earlier
    process had them, of those `kept`; None if there is none.
    """
    for entry in kept.entries:
        finder = Finder(transformed)
        try:
            if all(content_fingerprint(getter := finder.getter(place), getter()) == said
                   for place, said in entry["asked"]):
                return found_again(transformed, types, entry, finder, kept)
        except Exception:  # something is no longer there, or is of another kind
            continue
    return None


def found_again(transformed, types: Sequence[Type], entry: dict, finder: Finder, kept):
    function = stand_in(lambda: transformed.function_for_types(types), entry["function"], finder)
    flat = stand_in(lambda: pipeline.flattened(function.whole), entry["flat"], finder)
    found = {getter: getter() for getter in (finder.getter(place) for place, _ in entry["asked"])}
    if entry["lengths"]:
        found[LENGTHS] = LENGTHS.content
    return function, found, kept.program(entry["asked"], flat, entry["facts"])


def keep(transformed, function: Function, found: dict[Callable, object], kept):
    """Return what will be stored of the native code of `function`, for which `found` was consulted;
    None where nothing is.
    """
    places, asked = Places(transformed), []
    ahead = {getter: content for getter, content in found.items() if getter is not LENGTHS}
    try:
        while ahead:  # the object at one address is how others are reached
            left = {}
            for getter, content in ahead.items():
                try:
                    place = places.of_getter(getter)
                except NoAddress:
                    left[getter] = content
                else:
                    asked.append((place, content_fingerprint(getter, content)))
                    places.know(content, ("read", place))
            if len(left) == len(ahead):
                return None
            ahead = left
        flat = pipeline.flattened(function)
        facts = store.facts_of(flat)
        entry = {"asked": asked, "function": outline(function, places),
                 "flat": outline(flat, places), "facts": facts}
    except (NoFingerprint, NoAddress):
        return None
    return kept.program(asked, flat, facts, entry) if facts is not None else None


def content_fingerprint(getter: Callable, content) -> object:
    """Return the fingerprint of what a getter reads."""
    if isinstance(getter, Kind):
        return kind_fingerprint(content)
    if getter is rules_given and content:  # keyed by id
        raise NoFingerprint("rules of libraries' functions")
    if isinstance(getter, Inside):
        return container_fingerprint(content)
    if isinstance(getter, Code):
        return "code", code_fingerprint(content, getter.function.__globals__)
    return fingerprint_of(content)


def outline(function: Function, places: Places) -> dict:
    """Return the stored form of a function; raise NoFingerprint where that could not be read again.
    """
    for x in (*function.params, *function.results):
        type_fingerprint(x.type)
    if any(isinstance(getter, Saved) for getter in function.captures.values()):
        raise NoAddress("a second half")
    return {"name": function.name, "tupled": function.tupled, "meetings": function.meetings,
            "writes": function.writes,
            "params": [(p.name, p.type) for p in function.params],
            "results": [y.type for y in function.results],
            "captures": {name: places.of_getter(getter)
                         for name, getter in function.captures.items()}}


def stand_in(make: Callable[[], Function], kept: dict, finder: Finder) -> Recalled:
    """Return the function of which `kept` is the outline."""
    return Recalled(make, kept["name"], [Value(type, name) for name, type in kept["params"]],
                    [Value(type) for type in kept["results"]], kept["tupled"],
                    {name: finder.getter(place) for name, place in kept["captures"].items()},
                    kept["meetings"], kept["writes"])
