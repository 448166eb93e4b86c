"""Container structure: how members are stored and accessed, and how a container is built from them.

    Form("dict", ("w", "b"), dict)              x["w"]    {"w": w, "b": b}
    Form("list", (0, 1), list)                  x[0]      [a, b]
    Form("namedtuple", ("w", "b"), Layer)       x.w       Layer(w=w, b=b)
    Form("attributes", ("w", "b"), Params)      x.w       Params(w=w, b=b)

A form is part of a type: it is known when code is generated, and members are data.  A plain tuple
has no form.  An object whose constructor does more than store its arguments is built without
calling it.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .code_objects import is_of_dataclass

DICTS = (dict, OrderedDict, defaultdict)
# a registered class -> the function that lists the children of an instance
_children: dict[type, Callable] = {}


@dataclass(frozen=True)
class Form:
    """The structure of a container, apart from its members."""

    kind: str  # list, dict, namedtuple, attributes
    keys: tuple  # the keys of its members, in order
    cls: type
    factory: Callable | None = None  # of a defaultdict

    def build(self, members: Sequence):
        """Build the container of these members."""
        match self.kind:
            case "list":
                return list(members)
            case "dict" if self.cls is defaultdict:
                return defaultdict(self.factory, zip(self.keys, members))
            case "dict":
                return self.cls(zip(self.keys, members))
            case "namedtuple":
                return self.cls._make(members)
        return with_attributes(self.cls, **dict(zip(self.keys, members)))

    def members(self, x) -> list:
        """Return the members of `x`, which has this form."""
        match self.kind:
            case "list" | "namedtuple":
                return list(x)
            case "dict":
                return [x[key] for key in self.keys]
        return [getattr(x, name) for name in self.keys]

    def __str__(self) -> str:
        match self.kind:
            case "list":
                return f"a list of {len(self.keys)}"
            case "dict":
                return (f"a {self.cls.__name__} with the keys "
                        f"{', '.join(map(repr, self.keys)) or '(none)'}")
            case "namedtuple":
                return f"a {self.cls.__name__}"
        return f"a {self.cls.__name__} with the attributes {', '.join(self.keys) or '(none)'}"


def with_attributes(cls, **attributes):
    """Create an instance of `cls` with these attributes, without calling its constructor."""
    # SimpleNamespace has its own, in C
    made = (object if hasattr(cls.__new__, "__code__") else cls).__new__(cls)
    for name, content in attributes.items():
        object.__setattr__(made, name, content)
    return made


def list_form(count: int) -> Form:
    """Return the form of a list of `count` members."""
    return Form("list", tuple(range(count)), list)


def form_of(x) -> Form | None:
    """Return the form of the container `x`; None for a plain tuple and for other objects."""
    kind = type(x)
    if kind is list:
        return list_form(len(x))
    if kind in DICTS:
        return Form("dict", tuple(x), kind, getattr(x, "default_factory", None))
    if is_namedtuple(kind):
        return Form("namedtuple", kind._fields, kind)
    if has_members(kind):
        return Form("attributes", tuple(attributes_of(x)), kind)
    return None


def is_container(x) -> bool:
    """Test whether `x` has members."""
    kind = type(x)
    return (kind is tuple or kind is list or kind in DICTS or is_namedtuple(kind)
            or has_members(kind))


def is_namedtuple(kind: type) -> bool:
    """Test whether `kind` is a class that `namedtuple` created, or one derived from such."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make")


def has_members(kind: type) -> bool:
    """Test whether the attributes of an instance of `kind` are its members."""
    return (kind is types.SimpleNamespace or kind in _children
            or hasattr(kind, "__dataclass_fields__") and kind is not type)


def register(kind: type, children: Callable) -> None:
    """Register `kind` as a container; `children(x)` are the members that are data, the rest is
    structure.
    """
    _children[kind] = children


def attributes_of(x) -> dict[str, object]:
    """Return the attributes of an instance, fields first."""
    names = [f.name for f in dataclasses.fields(x)] if dataclasses.is_dataclass(x) else []
    names += [name for kind in type(x).__mro__ for name in slots_of(kind)]
    found = {name: getattr(x, name) for name in names if hasattr(x, name)}
    found.update({name: content for name, content in getattr(x, "__dict__", {}).items()
                  if name not in found})
    return found


def slots_of(kind: type) -> list[str]:
    """Return the attributes in the `__slots__` of `kind`."""
    slots = kind.__dict__.get("__slots__", ())
    slots = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in slots if name not in ("__dict__", "__weakref__")]


def is_fixed(x, name: str) -> bool:
    """Test whether the attribute `name` of `x` is part of its structure: code is specialised to its
    value.

    That is a dataclass's field with metadata={"static": True}, and what a registered class does not
    call a child.
    """
    children = _children.get(type(x))
    if children is not None:
        content = getattr(x, name)
        return not any(content is child for child in children(x))
    field = getattr(type(x), "__dataclass_fields__", {}).get(name)
    return field is not None and bool(field.metadata.get("static"))


def stores_its_arguments(form: Form) -> bool:
    """Test whether calling the class with its members by name builds the container."""
    cls = form.cls
    if form.kind == "namedtuple" or cls is types.SimpleNamespace:
        return True
    if (not dataclasses.is_dataclass(cls) or hasattr(cls, "__post_init__")
            or cls.__new__ is not object.__new__):
        return False
    fields = dataclasses.fields(cls)
    made = is_of_dataclass(next(base for base in cls.__mro__ if "__init__" in vars(base)),
                           "__init__")
    names = tuple(inspect.signature(cls.__init__).parameters)[1:] if made else ()
    return made and all(f.init for f in fields) and sorted(names) == sorted(form.keys)
