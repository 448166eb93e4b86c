"""Specialisation keys of recursive functions: the structure of their arguments and the types in it.

A binding is a tree: tuples and lists, whose leaves are run-time values (numbers, arrays) and things
known now (functions, strings, None).  A function that calls itself is made once for arguments of
one structure; where its own calls differ from the first in what is known of lengths, or in which
numbers are constants, it is made for what they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...errors import UnsupportedError
from ...ir.builder import fresh_extent, fresh_shape
from ...ir.graph import MISSING, Value
from ...ir.treedef import form_of, list_form
from ...ir.types import (
    UNDEFINED,
    Array,
    Extent,
    List,
    Scalar,
    Tuple,
    Type,
    Unknown,
    may_be_one,
)
from ...ops.core.record import type_of_constant
from ..domain.frame import Frame, Object
from ..domain.functions import FunctionValue, Local
from ..domain.heap import Cell, Container
from .join import NUMBERS

NARROW = ("float16", "float32", "complex64", "int8", "int16", "int32", "uint8", "uint16", "uint32",
          "uint64")
LEAF = object()


@dataclass(frozen=True)
class ConstantArgument:
    """A number that is a constant at the call."""

    value: object

    def __eq__(self, other) -> bool:
        return (isinstance(other, ConstantArgument) and type(self.value) is type(other.value)
                and repr(self.value) == repr(other.value))

    def __hash__(self) -> int:
        return hash(repr(self.value))


def split_binding(frame: Frame, binding, seen: dict | None = None) -> tuple[object, list]:
    """The structure of a binding, and its run-time leaves in order.

    A list or object that is met again, which may lie in itself, is ("again", which one of them):
    `seen` are those met before.
    """
    seen = {} if seen is None else seen
    match binding:
        case Container() | Cell() if binding in seen:
            return ("again", seen[binding]), []
        case Cell() if frame.heap.items(binding) is not None:
            seen[binding] = len(seen)
            form, members = list_form(len(frame.heap.items(binding))), frame.heap.items(binding)
        case Container():
            seen[binding] = len(seen)
            form, members = binding.form, binding.members.values()
        case tuple() | list():
            form, members = form_of(binding), binding
        case Value() | Cell() | bool() | int() | float() | complex():
            return LEAF, [binding]
        case _:
            return ("known", binding), []
    parts = [split_binding(frame, member, seen) for member in members]
    return (form, tuple(shape
                        for shape, _ in parts)), [leaf for _, leaves in parts for leaf in leaves]


def join_binding(frame: Frame, shape, leaves: list, made: list | None = None):
    """A binding of this structure with the next of `leaves` at its leaves; its containers are new.
    """
    made = [] if made is None else made
    if shape is LEAF:
        return leaves.pop(0)
    form, parts = shape
    if form == "known":
        return parts
    if form == "again":
        return made[parts]
    if form is None or form.kind == "namedtuple":
        return frame.container_like(form, [join_binding(frame, part, leaves, made)
                                           for part in parts])
    blank = frame.container_like(replace(form, keys=()), [])
    made.append(blank)
    members = [join_binding(frame, part, leaves, made) for part in parts]
    frame.heap.fill(blank, tuple(members) if form.kind == "list"
                    else dict(zip(form.keys, members)))
    return blank


def same_structure(a, b) -> bool:
    """Whether two structures are equal, with the same static objects in the same places."""
    if a is LEAF or b is LEAF or a[0] != b[0]:
        return a is b
    if a[0] == "known":
        return _same_thing(a[1], b[1])
    if a[0] == "again":
        return a[1] == b[1]
    return len(a[-1]) == len(b[-1]) and all(map(same_structure, a[-1], b[-1]))


def _same_thing(a, b) -> bool:
    if isinstance(a, Object) and isinstance(b, Object):
        return a.content is b.content
    if isinstance(a, Local) and isinstance(b, Local):
        return a.node is b.node and a.frame is b.frame
    return (a is b
            or (type(a) is type(b) and not isinstance(a, (FunctionValue, Object)) and bool(a == b)))


# -------------------------------------------------------------------------------------------- types


def key_of(value: Value) -> Type | ConstantArgument:
    """The part of an argument on which a function may be specialised."""
    constant = value.constant
    return (ConstantArgument(constant)
            if constant is not MISSING and isinstance(constant, (*NUMBERS, str)) else value.type)


def common(a: list, b: list) -> list | None:
    """The types that cover both lists; None if the function needs a specialisation for each."""
    pairs: dict[tuple, str] = {}
    narrow = any(getattr(t, "dtype", None) in NARROW for t in (*a, *b))

    def dim(m, n):
        if m == n:
            return m
        symbol = pairs.setdefault((m, n), f"common.{len(pairs)}")
        return Extent(symbol, 0, may_be_one(m) or may_be_one(n))

    def each(s, t):
        if s == t:
            return s
        if isinstance(s, ConstantArgument) or isinstance(t, ConstantArgument):
            return each(*(type_of_constant(x.value) if isinstance(x, ConstantArgument) else x
                          for x in (s, t)))
        match s, t:
            case Scalar(), Scalar() if s.dtype == t.dtype and not narrow:
                return Scalar(s.dtype)
            case Array(), Array() if s.dtype == t.dtype and s.rank == t.rank:
                return Array(s.dtype, tuple(map(dim, s.dims, t.dims)))
            case List(), List() if type(s) is type(t):
                if UNDEFINED in (s.item, t.item):  # an empty list, that is to be filled
                    return s if t.item == UNDEFINED else t
                item = each(s.item, t.item)
                return None if item is None else type(s)(item)
            case (Unknown(), _) | (_, Unknown()) if (isinstance(t, (Unknown, Scalar, Array))
                                                     and isinstance(s, (Unknown, Scalar, Array))):
                shapes = getattr(s, "shape", None), getattr(t, "shape", None)
                shape = (shapes[0] if shapes[0] == shapes[1]
                         else pairs.setdefault(("shape", s, t), f"common.{len(pairs)}"))
                return Unknown(shape, s.dtype if s.dtype == t.dtype else None)
        return None

    found = [each(s, t) for s, t in zip(a, b, strict=True)]
    return None if None in found else rename_symbols(found, Names())


class Names:
    """A renaming of symbols: at the first appearance of each, `fresh()` or its number."""

    def __init__(self, fresh: bool = False, known: dict | None = None):
        self.fresh, self.known = fresh, {} if known is None else known

    def of(self, symbol: str, kind: str) -> str:
        if (kind, symbol) not in self.known:
            number = f"{kind}.{len(self.known)}"
            new = ((fresh_extent().symbol if kind == "n" else fresh_shape()) if self.fresh
                   else number)
            self.known[kind, symbol] = new
        return self.known[kind, symbol]


def rename_symbols(types: list, names: Names) -> list:
    """`types`, with their symbols renamed by `names`."""

    def each(type):
        match type:
            case Array(dtype, dims):
                return Array(
                    dtype,
                    tuple(
                        replace(d, symbol=names.of(d.symbol, "n")) if isinstance(d, Extent) else d
                        for d in dims))
            case Unknown(str() as shape, dtype):
                return Unknown(names.of(shape, "s"), dtype)
            case Tuple(items):
                return replace(type, items=tuple(map(each, items)))
            case List(item):
                return replace(type, item=each(item))
        return type

    return [each(type) for type in types]


def refuse_functions(binding) -> None:
    """Refuse a result that refers to an activation that has ended."""
    match binding:
        case tuple() | list():
            for item in binding:
                refuse_functions(item)
        case FunctionValue():
            raise UnsupportedError("a function that calls itself returns a function", None,
                                   "call it where it is made")
