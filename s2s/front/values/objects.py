"""Objects of user classes, created by the program or passed to it: attributes, methods,
constructors.

An instance is a Container whose members are its attributes.  Class attributes (methods, properties,
constants) are looked up as Python does, and inlined on the caller's own bindings.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

import gast

from ...errors import TypeMismatchError
from ...ir.code_objects import is_missing, is_of_dataclass, is_of_factory, is_of_namedtuple
from ...ir.treedef import is_namedtuple
from ...library.containers import (
    Deque,
    HashSet,
    Keyed,
    ListedTally,
    Set,
    Tally,
    from_dict,
    from_keys,
    from_pairs,
)
from ...ops.core.record import VIEWS
from ...ops.program.checkpoint import Checkpointed
from ..domain.frame import ExceptionObject, Frame, Object
from ..domain.functions import FunctionValue, Intrinsic, Method
from ..domain.heap import (
    UNSURE,
    Cell,
    Container,
    Progress,
    Variables,
    require_sure,
    unsure_attribute,
)
from ..syntax.captures import Fixed, is_data
from ..syntax.dependencies import Defined, note_dependency
from .captured_writes import is_outside, write_attribute
from .dicts import deep, is_keyed, key_in, may_be_key, new_dict, pairs, shallow, store
from .exceptions import map_leaves
from .numpy_writes import write_whole

LIBRARY = Set.__module__.rpartition(".")[0]  # the package of the classes that we wrote


@dataclass(eq=False)
class Super(FunctionValue):
    """The result of `super()`: the receiver, seen as an instance of the classes after `after` in
    the MRO.
    """

    receiver: object
    cls: type
    after: type

    def held(self) -> Iterator:
        yield self.receiver


METHODS = (types.FunctionType, property, staticmethod, classmethod)


def class_of(binding) -> type | None:
    """The user's class of which `binding` is an instance."""
    if isinstance(binding, Container) and not binding.is_dict:
        return binding.cls
    if isinstance(binding, tuple) and is_namedtuple(type(binding)):
        return type(binding)
    return None


def found_in(cls: type, name: str, after: type | None = None):
    """(the class in whose body `name` is defined, its definition); (None, None) if there is none.
    """
    mro = cls.__mro__[cls.__mro__.index(after) + 1:] if after is not None else cls.__mro__
    for base in mro:
        if name in base.__dict__:
            defined = base.__dict__[name]
            if isinstance(defined, METHODS) and not _is_foreign(base):
                note_dependency(getter := Defined(cls if after is None else base, name), getter())
            return base, defined
    return None, None


def read(frame: Frame, base, name: str, node: gast.AST):
    """`base.name`, where `base` is an instance of one of the user's classes."""
    cls = class_of(base)
    owner, defined = found_in(cls, name)
    if isinstance(base, Container):
        if name in base.members and not isinstance(defined, property):
            if base.members[name] is UNSURE:
                raise unsure_attribute(name, base)
            return base.members[name]
        if isinstance(defined, functools.cached_property):
            made = frame.session.call(frame, defined.func, [base], {}, node)
            store(frame, base, {**base.members, name: made})
            return made
        if name == "__dict__":
            return attributes_of(frame, base)
    elif name in cls._fields:
        return base[cls._fields.index(name)]
    elif name in NAMEDTUPLE_METHODS:
        return Method(NAMEDTUPLE_METHODS[name], base)
    if name == "__class__":
        return cls
    if issubclass(cls, Progress):
        raise frame.refuse(
            f"a generator that reads {name} after a `yield`, and had not set it before the loop "
            "that asks it", node, f"set it before its own loop: {name} = ...")
    if issubclass(cls, Variables):
        raise frame.unbound(name, node)
    if owner is None or owner is object or isinstance(defined, types.MemberDescriptorType):
        raise TypeMismatchError(
            f"{cls.__name__!r} object has no attribute {name!r}", frame.line(node),
            f"it has {', '.join(getattr(base, 'members', getattr(cls, '_fields', ()))) or 'none'}")
    return of_class(frame, base, cls, defined, name, node)


def attributes_of(frame: Frame, base: Container) -> Container:
    """`base.__dict__`, which shows the attributes as they are, and writes through."""
    require_sure(base)
    attributes = frame.heap.new_container(dict, {})
    attributes.mirrors = base
    return attributes


def of_class(frame: Frame, receiver, cls: type, defined, name: str, node: gast.AST):
    """The attribute of `receiver` for the class attribute `defined`: descriptors are bound."""
    if isinstance(defined, staticmethod):
        return defined.__func__
    if isinstance(defined, classmethod):
        return Method(defined.__func__, cls)
    if isinstance(defined, property):
        return frame.session.call(frame, defined.fget, [receiver], {}, node)
    if (isinstance(defined, (types.FunctionType, Checkpointed)) or hasattr(defined, "py_func")
        or hasattr(defined, "function_for")):
        return Method(defined, receiver)
    if is_data(defined) or isinstance(defined, (tuple, list, dict)):
        return frame.attribute_of(Object(cls, Fixed(cls), cls.__name__), name)
    return frame.outside(defined, Fixed(defined), name)


def read_super(frame: Frame, base: Super, name: str, node: gast.AST):
    """`super().name`."""
    owner, defined = found_in(base.cls, name, base.after)
    if owner is object and name in ("__init__", "__setattr__"):
        return Method(defined, base.receiver)
    if name == "__init__" and owner is not None and issubclass(owner, BaseException) and (
            not isinstance(defined, types.FunctionType)):
        return Intrinsic(lambda frame, node, *args, **keywords: None)  # it only keeps its `args`
    if owner is None:
        raise TypeMismatchError(f"'super' object has no attribute {name!r}", frame.line(node),
                                "define it in a base class")
    return of_class(frame, base.receiver, base.cls, defined, name, node)


def read_of_exception(frame: Frame, thrown: ExceptionObject, name: str, node: gast.AST):
    """`error.name`: an attribute that the __init__ of its class sets; it is run where one is read.
    """
    _, init = found_in(thrown.kind, "__init__")
    if not isinstance(init, types.FunctionType):
        raise frame.refuse(f"the attribute {name} of an exception", node,
                           "read what it was made of: `.args`")
    made = frame.heap.new_container(thrown.kind, {})
    args, keywords = (map_leaves(x, frame.wrap) for x in (thrown.args, thrown.keywords))
    frame.session.call(frame, Method(init, made), list(args), keywords, node)
    return read(frame, made, name, node)


# ------------------------------------------------------------------------------------------ writing


def write(frame: Frame, base, name: str, binding, node: gast.AST, plainly: bool = False) -> None:
    """`base.name = binding`."""
    cls = class_of(base)
    if cls is None and is_outside(base):
        return write_attribute(frame, base, name, binding, node)
    if cls is None or not isinstance(base, Container):
        if cls is not None:
            raise TypeMismatchError("can't set attribute", frame.line(node), "use _replace")
        if isinstance(base, Cell):
            if VIEWS.get(name) == "component":
                return _write_component(frame, base, name, binding, node)
            raise frame.refuse(
                f"writing to the attribute {name} of an array", node,
                "make a new array: y = x.reshape(...), x.astype(...)")
        what = getattr(base, "__name__", "this")
        raise frame.refuse(
            f"writing to an attribute of {what}, which is no object of the program", node,
            "return the new value, or make the object inside the function; dataclasses may be "
            "arguments"
        )
    if not plainly:
        if is_frozen(cls):
            raise TypeMismatchError(
                f"cannot assign to field {name!r} of {cls.__name__}, which is frozen",
                frame.line(node), "use dataclasses.replace")
        _, defined = found_in(cls, name)
        if isinstance(defined, property):
            if defined.fset is None:
                raise TypeMismatchError(
                    f"property {name!r} of {cls.__name__!r} object has no setter", frame.line(node),
                    "write to the attribute behind it")
            frame.session.call(frame, defined.fset, [base, binding], {}, node)
            return
        if isinstance(found_in(cls, "__setattr__")[1], types.FunctionType):
            raise frame.refuse(
                f"writing to an attribute of a {cls.__name__}, which defines __setattr__", node,
                "give the class plain attributes")
    frame.name_member(base, name, binding)
    store(frame, base, {**base.members, name: binding})


def _write_component(frame: Frame, base: Cell, name: str, binding, node: gast.AST) -> None:
    """`z.real = binding`, `z.imag = binding`: a write into that view of the array `z`."""
    part = frame.session.attribute(frame, base, name, node)
    if part is not base and getattr(part, "base", None) is None:
        raise TypeMismatchError(
            f"this writes into the {name} part of an array that is not known to be complex",
            frame.line(node), "make it one of complex numbers first: z = x.astype(complex)")
    write_whole(frame, part, frame.value(binding))


def delete(frame: Frame, base, name: str, node: gast.AST) -> None:
    """`del base.name`."""
    if not isinstance(base, Container) or base.is_dict or name not in base.members:
        raise frame.refuse("deleting this attribute", node,
                           "delete attributes that objects of the program have")
    if base.members[name] is UNSURE:
        raise unsure_attribute(name, base)
    store(frame, base, {k: v for k, v in base.members.items() if k != name})


def is_frozen(cls: type) -> bool:
    """Whether `cls` is a frozen dataclass."""
    return dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen


# ------------------------------------------------------------------------------------- constructors


def is_users(cls) -> bool:
    """Whether the program can create instances of `cls`."""
    if not isinstance(cls, type) or issubclass(cls, (Enum, BaseException)):
        return False
    if cls is types.SimpleNamespace or is_namedtuple(cls):
        return True
    return not _is_foreign(cls) and not any(_is_foreign(base) for base in cls.__mro__[:-1])


def constructor_of(cls: type) -> Callable:
    """The function that is called to make an instance of `cls`, of which it takes one more
    argument than the call.
    """
    return cls.__new__ if is_namedtuple(cls) else cls.__init__


def _is_foreign(cls: type) -> bool:
    """Whether instances of `cls` are implemented outside readable Python."""
    root = cls.__module__.split(".")[0]
    if root in ("typing", "abc") or cls.__module__.startswith(LIBRARY):
        return False  # Generic, Protocol, ABC: no attributes in these
    return root in ("numpy", "scipy", "numba", "s2s") or root in sys.stdlib_module_names


def instantiate(frame: Frame, cls: type, args: list, keywords: dict, node: gast.AST):
    """`cls(*args, **keywords)`."""
    if cls is types.SimpleNamespace:
        return frame.heap.new_container(cls, keywords)
    if is_namedtuple(cls):
        if not is_of_namedtuple(cls.__new__):
            raise frame.refuse(f"{cls.__name__} defines __new__", node, "make it with a function")
        bound = bind(frame, inspect.signature(cls.__new__), (cls, *args), keywords, cls.__name__,
                     node)
        return cls._make(bound[name] for name in cls._fields)
    if cls.__new__ is not object.__new__ and cls.__new__.__module__ not in ("typing", "abc"):
        raise frame.refuse(f"{cls.__name__} defines __new__", node,
                           "make instances with __init__ alone")
    if type(cls).__call__ is not type.__call__:
        raise frame.refuse(f"{cls.__name__} has a metaclass that makes its instances", node,
                           "use a plain class")
    for hook in ("__getattribute__", "__getattr__"):
        if found_in(cls, hook)[0] not in (None, object):
            raise frame.refuse(f"{cls.__name__} defines {hook}", node,
                               "give the class plain attributes")
    made = frame.heap.new_container(cls, {})
    owner, init = found_in(cls, "__init__")
    if dataclasses.is_dataclass(cls) and is_of_dataclass(owner, "__init__"):
        _fill_fields(frame, made, args, keywords, node)
    elif owner is object:
        if args or keywords:
            raise TypeMismatchError(f"{cls.__name__}() takes no arguments", frame.line(node),
                                    "leave them out")
    else:
        frame.session.call(frame, Method(init, made), args, keywords, node)
    return made


def _fill_fields(frame: Frame, made: Container, args: list, keywords: dict, node: gast.AST) -> None:
    """The __init__ that `@dataclass` generates."""
    cls = made.cls
    bound = bind(frame, inspect.signature(cls.__init__), (made, *args), keywords, cls.__name__,
                 node)
    members, given_on = {}, {}
    for name, f in cls.__dataclass_fields__.items():
        initial_only = f._field_type is dataclasses._FIELD_INITVAR
        if f._field_type is not dataclasses._FIELD and not initial_only:
            continue  # a ClassVar
        binding = bound.get(name, UNSET) if f.init else UNSET
        if binding is UNSET or is_of_factory(binding):
            if not is_missing(f.default_factory):
                binding = frame.session.call(frame, f.default_factory, [], {}, node)
            elif not is_missing(f.default):
                binding = frame.session.default(frame, f.default, name)
            else:
                continue
        if initial_only:
            given_on[name] = binding
        else:
            frame.name_member(made, name, binding)
            members[name] = binding
    store(frame, made, members)
    _, post = found_in(cls, "__post_init__")
    if post is not None:
        frame.session.call(frame, Method(post, made), list(given_on.values()), {}, node)


UNSET = object()


def bind(frame: Frame, signature: inspect.Signature, args: tuple, keywords: dict, name: str,
         node: gast.AST) -> dict:
    """The arguments of a call of `name` by parameter, with defaults filled in."""
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeMismatchError(f"{name}(): {error}", frame.line(node),
                                "pass the arguments that it takes") from None
    found = dict(bound.arguments)
    for p in signature.parameters.values():
        if p.name not in found and p.default is not p.empty:
            found[p.name] = p.default if is_of_factory(p.default) else frame.session.default(
                frame, p.default, p.name)
    return found


def replaced(frame: Frame, node: gast.AST, base, **changes):
    """dataclasses.replace(base, **changes)."""
    cls = class_of(base)
    if cls is None or not dataclasses.is_dataclass(cls):
        raise TypeMismatchError("replace() should be called on dataclass instances",
                                frame.line(node), "pass one")
    for f in dataclasses.fields(cls):
        if not f.init:
            if f.name in changes:
                raise TypeMismatchError(
                    f"field {f.name} is declared with init=False, it cannot be specified with "
                    "replace()", frame.line(node), "leave it out")
        elif f.name not in changes:
            changes[f.name] = base.members[f.name]
    return instantiate(frame, cls, [], changes, node)


def as_dict(frame: Frame, node: gast.AST, base):
    """dataclasses.asdict(base): arrays are copied, as deepcopy does."""
    return _deep_fields(
        frame, base, lambda names, items: frame.heap.new_container(dict, dict(zip(names, items))))


def as_tuple(frame: Frame, node: gast.AST, base):
    """dataclasses.astuple(base)."""
    return _deep_fields(frame, base, lambda names, items: tuple(items))


def _deep_fields(frame: Frame, binding, make: Callable):
    cls = class_of(binding)
    if isinstance(binding, Container) and cls is not None and dataclasses.is_dataclass(cls):
        names = [f.name for f in dataclasses.fields(cls)]
        return make(names, [_deep_fields(frame, binding.members[name], make) for name in names])
    if isinstance(binding, Container) and binding.is_dict:
        members = {key: _deep_fields(frame, b, make) for key, b in binding.members.items()}
        return frame.heap.new_container(binding.cls, members, binding.factory)
    if isinstance(binding, (tuple, list)):
        items = [_deep_fields(frame, b, make) for b in binding]
        return binding._make(items) if hasattr(binding, "_make") else type(binding)(items)
    return deep(frame, binding)


def variables(frame: Frame, node: gast.AST, base=UNSET):
    """vars(base)."""
    if not isinstance(base, Container) or base.is_dict:
        raise frame.refuse("vars of this", node, "use it on objects with attributes")
    return attributes_of(frame, base)


def set_attribute(frame: Frame, node: gast.AST, base, name, binding) -> None:
    """setattr(base, name, binding)."""
    write(frame, base, frame.static(name, "the name of an attribute", node), binding, node)


def make_dict(frame: Frame, node: gast.AST, source=(), **more):
    """dict(source, **more)."""
    made = None
    if is_keyed(source):
        made = frame.session.call(frame, from_dict, [source], {}, node)
    elif not isinstance(source, (dict, Object)) and not (
            isinstance(source, Container) and source.is_dict):
        source = frame.session.listed(frame, source)
        if frame.members(source) is None:
            made = frame.session.call(frame, from_pairs, [source], {}, node)
    if made is not None:
        for key, binding in more.items():
            frame.session.call(frame, Method(Keyed.__setitem__, made), [key, binding], {}, node)
        return made
    members = {**(pairs(frame, source, node) if source != () else {}), **more}
    return new_dict_at(frame, new_dict(frame, members), node)


def make_ordered(frame: Frame, node: gast.AST, source=(), **more):
    """OrderedDict(source, **more)."""
    members = {**(pairs(frame, source, node) if source != () else {}), **more}
    return new_dict_at(frame, new_dict(frame, members, OrderedDict), node)


def make_defaulting(frame: Frame, node: gast.AST, factory=None, source=(), **more):
    """defaultdict(factory, source, **more)."""
    members = {**(pairs(frame, source, node) if source != () else {}), **more}
    return new_dict_at(frame, new_dict(frame, members, defaultdict, factory), node)


def new_dict_at(frame: Frame, made: Container, node: gast.AST) -> Container:
    """A dict created at `node`; with run-time keys, an object of another class."""
    made.site = node
    if node not in frame.session.keyed:
        return made
    keyed = instantiate(frame, Keyed, [made.factory], {}, node)
    for key, binding in made.members.items():
        frame.session.call(frame, Method(Keyed.__setitem__, keyed), [key, binding], {}, node)
    return keyed


def make_from_keys(frame: Frame, node: gast.AST, keys, binding=None):
    """dict.fromkeys(keys, binding)."""
    keys = frame.session.listed(frame, keys)
    known = frame.members(keys)
    if known is None:
        return frame.session.call(frame, from_keys, [keys, binding], {}, node)
    members = {key_in(frame, key, node): binding for key in known}
    return new_dict_at(frame, new_dict(frame, members), node)


def make_counter(frame: Frame, node: gast.AST, source=()):
    """collections.Counter(source)."""
    if _has_others(frame, node, source):
        return instantiate(frame, ListedTally, [source], {}, node)
    made = instantiate(frame, Tally, [source], {}, node)
    made.members["_places"].site = node
    return made


def make_set(frame: Frame, node: gast.AST, source=()) -> Container:
    """set(source), and frozenset(source)."""
    if _has_others(frame, node, source):
        return instantiate(frame, Set, [source], {}, node)
    made = instantiate(frame, HashSet, [source], {}, node)
    made.members["_members"].site = node
    return made


def _has_others(frame: Frame, node: gast.AST, source) -> bool:
    """Whether something in a set, or among the keys of a counter, created at `node` is no number.
    """
    members = frame.members(source)
    return (node in frame.session.keyed or isinstance(source, str)
            or members is not None and not all(map(may_be_key, members)))


def fields_of(frame: Frame, node: gast.AST, base) -> tuple:
    """dataclasses.fields(base)."""
    cls = class_of(base) or (type(base.content) if isinstance(base, Object) else base)
    if not dataclasses.is_dataclass(cls):
        raise TypeMismatchError("must be called with a dataclass type or instance",
                                frame.line(node), "pass one")
    return dataclasses.fields(cls)


def _replace(frame: Frame, node: gast.AST, base, **changes):
    unknown = [name for name in changes if name not in base._fields]
    if unknown:
        raise TypeMismatchError(f"Got unexpected field names: {unknown!r}", frame.line(node),
                                f"it has {', '.join(base._fields)}")
    return type(base)._make(changes.get(name, x) for name, x in zip(base._fields, base))


def _as_dict_of_namedtuple(frame: Frame, node: gast.AST, base):
    return new_dict(frame, dict(zip(base._fields, base)))


NAMEDTUPLE_METHODS = {"_replace": _replace, "_asdict": _as_dict_of_namedtuple}

FUNCTIONS_OF_OBJECTS = {
    setattr: set_attribute,
    vars: variables,
    set: make_set,
    frozenset: make_set,
    deque: lambda frame, node, *args, **keywords: instantiate(frame, Deque, list(args), keywords,
                                                              node),
    Counter: make_counter,
    dict: make_dict,
    dict.fromkeys: make_from_keys,
    OrderedDict: make_ordered,
    defaultdict: make_defaulting,
    object.__init__: lambda frame, node, base: None,
    object.__setattr__: lambda frame, node, base, name, binding: write(
        frame, base, frame.static(name, "the name of an attribute", node), binding, node, plainly=
        True),
    dataclasses.replace: replaced,
    dataclasses.asdict: as_dict,
    dataclasses.astuple: as_tuple,
    dataclasses.fields: fields_of,
    copy.copy: lambda frame, node, x: shallow(frame, x),
    copy.deepcopy: lambda frame, node, x: deep(frame, x),
    **{
        function: function
        for function in NAMEDTUPLE_METHODS.values()
    },
}

MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def method_of(binding, name: str):
    """The special method `name` in the class of `binding`; None if it has no Python source."""
    cls = class_of(binding)
    if cls is None and isinstance(binding, Object) and is_users(type(binding.content)):
        cls = type(binding.content)
    if cls is None:
        return None
    owner, defined = found_in(cls, name)
    if not isinstance(defined, types.FunctionType) or is_of_dataclass(owner, name):
        return None
    return defined
