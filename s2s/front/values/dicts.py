"""Dicts, and operations common to all containers: read, store and remove members.

The structure of a container, such as the keys of a dict, is static; only its members are data.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable

import gast

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import Builder, current, emit
from ...ir.graph import MISSING as NOT_KNOWN
from ...ir.graph import OPERATORS, Value
from ...ir.types import List, Scalar, Tuple, Type, Unknown
from ...library.containers import Keyed
from ...ops.core.record import METHODS, value
from ...ops.program.hash_tables import hash_of
from ..domain.frame import Frame, like
from ..domain.functions import Method
from ..domain.heap import Cell, Container
from ..domain.item_places import line_site
from .exceptions import guard, is_caught, raise_unless
from .lists import list_value, share
from .words import is_numbered, keys_by_word, picked

MISSING = object()


class RuntimeKeys(UnsupportedError):
    """Signal that a key depends on run-time data: unroll the loop, or make the dict `Keyed`
    (library/containers.py).
    """

    # where the dict was created, or the line that looks a key up in a dict from outside
    site: gast.AST | tuple | None = None
    keys: tuple[Value, ...] = ()  # what the key consists of
    places: tuple = ()  # those outside that it is computed of, if there is nothing else


def is_key_type(type: Type) -> bool:
    """Whether values of this type may be keys of a hash table."""
    if isinstance(type, Tuple):
        return type.form is None and all(map(is_key_type, type.items))
    return isinstance(type, (Scalar, Unknown))


def may_be_key(binding) -> bool:
    """Whether a binding may be a key of a hash table."""
    if isinstance(binding, tuple):
        return all(map(may_be_key, binding))
    if isinstance(binding, Value):
        return is_key_type(binding.type)
    return isinstance(binding, (bool, int, float, complex, Cell))


def store(frame: Frame, container: Container, members: dict) -> None:
    """Set the members of `container`, visible through all its aliases."""
    frame.live |= frame.pending  # the rest of the statement may still read it
    frame.heap.store(container, members, list(frame.reachable()))


def key_in(frame: Frame, key, node: gast.AST | None = None, base: Container | None = None):
    """The static key of `base` for a binding."""
    if not frame.is_static(key):
        error = RuntimeKeys(
            "a key that depends on run-time data",
            frame.line(node) if node is not None else current().line,
            "use integers, or tuples of them, as keys; or keys that are written out")
        error.keys = tuple(frame.values_in((key,)))
        parts = key if isinstance(key, tuple) else (key,)
        if (base is not None and has_numbers_for_keys(base)
                and all(isinstance(part, (int, Value)) for part in parts)):
            error.site = base.site
        elif base is not None and _can_be_keyed(base, key):
            error.site = line_site("key")
        raise error
    found = frame.static(key, "a key", node)
    try:
        hash(found)
    except TypeError as error:
        raise TypeMismatchError(str(error),
                                current().line,
                                "use a string, a number or a tuple of such") from None
    return found


def has_numbers_for_keys(base: Container, *more: dict) -> bool:
    """Whether a dict that the program makes, and has these members, too, on another path, could
    have any integers, or tuples of them, as keys.
    """
    return (base.is_dict and base.site is not None
            and all(isinstance(k, (int, tuple)) for members in (base.members, *more)
                    for k in members))


def as_keyed(frame: Frame, base: Container, key) -> Container | None:
    """A dict with run-time keys that has what `base`, a dict from outside, has now, to look for a
    `key` that a run decides; None where that is not so, or has not been asked for: a loop that can
    be unrolled is.
    """
    if (frame.is_static(key) or line_site("key") not in frame.session.keyed
            or not _can_be_keyed(base, key)):
        return None
    members, session = base.members, frame.session
    items, content = tuple(members.values()), tuple(frame.values_in(members.values()))
    found = session.lookups.get((*members, *content))
    if found is None:  # made where the function begins, rather than in each trip of a loop
        params = {*session.block.params, *(param for param, _ in session.captures.values())}
        given = all(x.constant is not NOT_KNOWN or x in params for x in content)
        with Builder(session.block if given else current().block, current().line):
            found = emit(hash_of, *map(frame.value, members)), list_value(frame, items)
        if given:
            session.lookups[(*members, *content)] = found
    values = frame.heap.new(found[1])
    share(frame, values, items)
    return frame.heap.new_container(Keyed, {
        "_places": frame.heap.new(found[0]), "_values": values, "_has_gaps": False,
        "_factory": None})


def _can_be_keyed(base: Container, key) -> bool:
    """Whether `key` may be one of a dict from outside, with integers, or tuples of them, for keys.
    """
    keys = base.members
    if base.site is not None or base.cls is defaultdict or not keys or not may_be_key(key):
        return False
    return all(type(k) is int for k in keys) or (
        all(type(k) is tuple and all(type(part) is int for part in k) for k in keys)
        and len(set(map(len, keys))) == 1)


def is_keyed(binding) -> bool:
    """Whether a binding is a dict with run-time keys."""
    return isinstance(binding, Container) and issubclass(binding.cls, Keyed)


def unlike_keys(base: Container, *more: dict) -> RuntimeKeys | None:
    """The error for a dict of which a run decides which keys it has; None for other containers."""
    if not has_numbers_for_keys(base, *more):
        return None
    return runtime_keys(base.site)


def runtime_keys(site: gast.AST) -> RuntimeKeys:
    """The error for the dict that is created at `site`, of which a run decides the keys."""
    error = RuntimeKeys("a dict whose keys depend on run-time data", current().line,
                        "give it all its keys first")
    error.site = site
    return error


def entry(frame: Frame, base: Container, key):
    """`base[key]`, of a dict."""
    several = None if frame.is_static(key) else keys_by_word(key)
    if several is not None and not base.members.keys().isdisjoint(several[1]):
        code, keys = several
        there = [k for k in keys if k in base.members]
        if len(there) < len(keys) and (base.cls is defaultdict or is_caught(frame, KeyError)):
            raise frame.refuse("a key that depends on run-time data, and may not be there", None,
                               "put all keys in first")
        if len(there) < len(keys):
            is_there = is_numbered(code, [i for i, k in enumerate(keys) if k in base.members])
            raise_unless(frame, is_there, KeyError, "a key that is not there")
        return picked(frame, [base.members.get(k, base.members[there[0]]) for k in keys], code)
    if (keyed := as_keyed(frame, base, key)) is not None:
        return frame.session.call(frame, Method(Keyed.__getitem__, keyed), [key], {}, None)
    key = key_in(frame, key, base=base)
    if key in base.members:
        return base.members[key]
    if base.cls is not defaultdict:
        guard(frame, KeyError, lambda: True, key)
    if base.cls is defaultdict and base.factory is not None:
        made = frame.session.call(frame, base.factory, [], {}, _factory_call(base))
        store(frame, base, {**base.members, key: made})
        return made
    raise missing(base, key)


def _factory_call(base: Container) -> gast.AST | None:
    """What stands for the calls of a defaultdict's factory, as places where a set is made."""
    site = base.site
    if site is not None and not hasattr(site, "factory_call"):
        site.factory_call = copy.copy(site)
    return getattr(site, "factory_call", None)


def missing(base: Container, key) -> TypeMismatchError:
    """The error for a key that `base` does not have."""
    return TypeMismatchError(
        f"{key!r} is not among the keys {', '.join(map(repr, base.members)) or '(none)'}",
        current().line, "use one of them")


def set_entry(frame: Frame, base: Container, key, binding) -> None:
    """`base[key] = binding`, of a dict."""
    several = None if frame.is_static(key) else keys_by_word(key)
    if several is not None and base.members.keys() >= set(several[1]):
        code, keys = several
        store(frame, base, {
            k: frame.heap.chosen(OPERATORS["equal"](code, value(keys.index(k))), binding, old)
            if k in keys else old for k, old in base.members.items()})
        return
    key = key_in(frame, key, base=base)
    frame.name_member(base, key, binding)
    store(frame, base, {**base.members, key: binding})


def delete_entry(frame: Frame, base: Container, key) -> None:
    """`del base[key]`."""
    key = key_in(frame, key, base=base)
    if key not in base.members:
        raise missing(base, key)
    store(frame, base, {k: v for k, v in base.members.items() if k != key})


def new_dict(frame: Frame, members: dict, cls: type = dict,
             factory: Callable | None = None) -> Container:
    """The binding of a dict."""
    return frame.heap.new_container(cls, dict(members), factory)


def merge(frame: Frame, a: Container, b: Container) -> Container:
    """`a | b`."""
    return new_dict(frame, {**a.members, **b.members}, a.cls, a.factory)


def pairs(frame: Frame, source, node: gast.AST) -> dict:
    """The entries that `dict(source)` and `d.update(source)` take from `source`."""
    source = frame.contents_of(source)
    if isinstance(source, Container) and source.is_dict:
        return dict(source.members)
    items = [frame.members(x) for x in frame.members(frame.session.listed(frame, source)) or ()]
    if frame.members(source) is not None or items:
        if all(x is not None and len(x) == 2 for x in items):
            return {key_in(frame, key, node): member for key, member in items}
    raise frame.refuse("a dict of this", node,
                       "build it from a dict, or from pairs of keys and values")


class Entries(tuple):
    """A view of a dict: its current keys(), values() or items(), refreshed after writes into the
    dict.
    """

    base: Container
    show: Callable  # of the members, what it shows of them

    def refreshed(self) -> Entries:
        """The current entries of the dict."""
        return entries_of(self.base, self.show)

    def now(self) -> tuple:
        """What it shows now."""
        return tuple(self.show(self.base.members))

    def keys(self) -> tuple:
        """The keys of the dict now."""
        return tuple(self.base.members)


def entries_of(base: Container, show: Callable) -> Entries:
    """The entries that a view of a dict shows, now and later."""
    found = Entries(show(base.members))
    found.base, found.show = base, show
    return found


def _keys(frame, base, node):
    return entries_of(base, dict.keys)


def _values(frame, base, node):
    return entries_of(base, dict.values)


def _items(frame, base, node):
    return entries_of(base, dict.items)


def _get(frame, base, node, key, default=None):
    several = None if frame.is_static(key) else keys_by_word(key)
    if several is not None:
        code, keys = several
        found = [base.members.get(k, default) for k in keys]
        if default is not None or None not in found:
            return picked(frame, found, code)
    if (keyed := as_keyed(frame, base, key)) is not None:
        return frame.session.call(frame, Method(Keyed.get, keyed), [key, default], {}, node)
    return base.members.get(key_in(frame, key, node, base), default)


def _pop(frame, base, node, key, default=MISSING):
    key = key_in(frame, key, node, base)
    if key not in base.members:
        if default is MISSING:
            guard(frame, KeyError, lambda: True, key)
            raise missing(base, key)
        return default
    found = base.members[key]
    delete_entry(frame, base, key)
    return found


def _popitem(frame, base, node):
    if not base.members:
        raise TypeMismatchError("popitem of an empty dict", current().line, "test it first")
    key = list(base.members)[-1]
    return key, _pop(frame, base, node, key)


def _setdefault(frame, base, node, key, default=None):
    key = key_in(frame, key, node, base)
    if key not in base.members:
        set_entry(frame, base, key, default)
    return base.members[key]


def _update(frame, base, node, source=(), **more):
    if is_keyed(source):
        raise runtime_keys(base.site)
    new = {**(pairs(frame, source, node) if source != () else {}), **more}
    store(frame, base, {**base.members, **new})


def _clear(frame, base, node):
    store(frame, base, {})


def _copy(frame, base, node):
    return new_dict(frame, base.members, base.cls, base.factory)


DICT_METHODS: dict[str, Callable] = {
    "keys": _keys,
    "values": _values,
    "items": _items,
    "get": _get,
    "pop": _pop,
    "popitem": _popitem,
    "setdefault": _setdefault,
    "update": _update,
    "clear": _clear,
    "copy": _copy,
}


def dict_method(frame: Frame, base: Container, name: str, args: list, keywords: dict,
                node: gast.AST):
    """`base.name(*args, **keywords)`, of a dict."""
    if name not in DICT_METHODS:
        raise frame.refuse(f"the method {name} of a dict", node,
                           f"use one of {', '.join(DICT_METHODS)}")
    try:
        return DICT_METHODS[name](frame, base, node, *args, **keywords)
    except TypeError as error:
        raise TypeMismatchError(f"{name}: {error}", frame.line(node),
                                "pass the arguments that it takes") from None


def shallow(frame: Frame, binding):
    """copy.copy(binding)."""
    match binding:
        case Container():
            return frame.heap.new_container(binding.cls, binding.members, binding.factory)
        case list():
            return list(binding)
        case Cell() if (frame.heap.items(binding) is not None
                        or isinstance(frame.heap.type_of(binding), List)):
            return frame.session.call(frame, list, [binding], {}, None)
        case Cell():
            return duplicate(frame, binding)
    return binding


def deep(frame: Frame, binding, seen: dict | None = None):
    """copy.deepcopy(binding), which preserves identity among its parts."""
    seen = {} if seen is None else seen
    if isinstance(binding, (Cell, Container)) and binding in seen:
        return seen[binding]
    match binding:
        case Container():
            made = seen[binding] = frame.heap.new_container(binding.cls, {}, binding.factory)
            frame.heap.contents[made] = {
                key: deep(frame, b, seen)
                for key, b in binding.members.items()
            }
            return made
        case tuple() | list():
            return like(binding, [deep(frame, b, seen) for b in binding])
        case Cell() if frame.heap.items(binding) is not None:
            made = seen[binding] = frame.heap.new(())
            frame.heap.contents[made] = tuple(
                deep(frame, b, seen) for b in frame.heap.items(binding))
            return made
        case Cell():
            seen[binding] = duplicate(frame, binding)
            return seen[binding]
    return binding


def duplicate(frame: Frame, cell: Cell) -> Cell:
    """A copy of an array."""
    return frame.heap.new(METHODS["copy"](frame.value(cell)))
