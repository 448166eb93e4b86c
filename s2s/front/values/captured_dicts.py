"""Keys of captured dicts: `key in d` and `d.get(key, default)`, of which code depends on that key
alone, so that the program may write to it and to others.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable

from ...ir.graph import MISSING
from ..domain.frame import Frame, Object
from ..domain.heap import UNSURE
from ..domain.outside import place_of
from ..syntax.captures import Item
from ..syntax.dependencies import HasKey, note_dependency


def is_captured_dict(binding) -> bool:
    """Whether a binding is a dict that lives outside the function."""
    return isinstance(binding, Object) and type(binding.content) in (dict, OrderedDict)


def is_key(frame: Frame, binding) -> bool:
    """Whether a binding is known now, and may be a key."""
    try:
        return frame.is_static(binding) and hash(frame.static(binding, "this key")) is not None
    except TypeError:
        return False


def has_key(frame: Frame, base: Object, key) -> bool:
    """Whether a captured dict has this key, where the program is now."""
    present, getter, outside = key in base.content, Item(base.getter, key), frame.session.outside
    note_dependency(HasKey(base.getter, key), present)
    outside.asked.add(place_of(getter))
    if outside.state is not None and place_of(getter) in outside.tracked:
        kept = outside.state.members.get(place_of(getter), MISSING)
        if kept is UNSURE:
            raise frame.refuse(f"{outside.tracked[place_of(getter)][1]}, which lives outside the "
                               "function, has a value on some paths only", None,
                               "give it a value before the call")
        return kept is not MISSING
    if outside.note_read(place_of(getter), getter, re.sub(r"\W", "_", f"{base.name}_{key}")):
        raise frame.refuse_both(base.name)
    return present


def note_asked(frame: Frame, depends: Iterable[Callable]) -> None:
    """Record which keys a function asks for that the program calls and that is built by itself, as
    its dependencies say; refused where the program has written there.
    """
    outside = frame.session.outside
    for asked in depends:
        if isinstance(asked, HasKey):
            getter = Item(asked.of, asked.key)
            if place_of(getter) in outside.tracked or outside.note_read(
                    place_of(getter), getter, str(asked.key)):
                raise frame.refuse_both("a dict")


def item_or(frame: Frame, base: Object, key, default):
    """`base.get(key, default)`."""
    return frame.item_of(base, key) if has_key(frame, base, key) else default
