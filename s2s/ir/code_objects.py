"""Inspect code objects: test whether two do the same, and whether a person wrote them.

Python's own code generators are told by the name of the file that they give their code, as long as
it has one: cloudpickle 3.1.3 and later puts another in the place of all of them.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing

NAMELESS = "<dynamic-code>"  # the file name of a function pickled by value
KIND = sum(getattr(inspect, f"CO_{name}")
           for name in ("VARARGS", "VARKEYWORDS", "GENERATOR", "COROUTINE", "ASYNC_GENERATOR"))


def fingerprint(code: types.CodeType) -> tuple:
    """Return a key that is equal for code objects that do the same, wherever they are defined."""
    parameters = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
                  code.co_flags & KIND)
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    handlers = getattr(code, "co_exceptiontable", b"")  # Python 3.10 uses instructions for them
    return code.co_code, handlers, tuple(map(_constant, code.co_consts)), parameters, names


def _constant(k) -> tuple:
    if isinstance(k, types.CodeType):
        return fingerprint(k)
    return type(k), repr(sorted(map(repr, k)) if isinstance(k, frozenset) else k)


def is_of_dataclass(owner: type, name: str) -> bool:
    """Test whether `@dataclass` generated the method `name` in the body of the class `owner`."""
    code = getattr(owner.__dict__[name], "__code__", None)
    if code is None or code.co_filename != NAMELESS:
        return code is not None and code.co_filename == "<string>"
    return (dataclasses.is_dataclass(owner)
            and fingerprint(code) == fingerprint(vars(_again(owner)).get(name, _again).__code__))


def _again(owner: type) -> type:
    """Create a class with the fields of the dataclass `owner`, and only the methods that
    `@dataclass` generates.
    """
    kinds = {dataclasses._FIELD: object, dataclasses._FIELD_INITVAR: dataclasses.InitVar[object]}
    fields = [(f.name, kinds[f._field_type], _field(f)) for f in owner.__dataclass_fields__.values()
              if f._field_type in kinds]
    post = {"__post_init__": _again} if hasattr(owner, "__post_init__") else {}
    return dataclasses.make_dataclass(owner.__name__, fields, namespace=post, order=True,
                                      frozen=owner.__dataclass_params__.frozen)


def _field(f: dataclasses.Field) -> dataclasses.Field:
    """Copy the field `f`: the methods of a class depend on whether it has a default, not on which.
    """
    defaults = {name: None if name == "default" else dict for name in ("default", "default_factory")
                if not is_missing(getattr(f, name))}
    return dataclasses.field(init=f.init, compare=f.compare, kw_only=f.kw_only, **defaults)


def is_missing(default) -> bool:
    """Test whether a default or a factory is dataclasses.MISSING, which is another object after
    pickling.
    """
    return isinstance(default, type(dataclasses.MISSING))


def is_of_factory(default) -> bool:
    """Test whether this parameter default stands for a call of a field's factory; another object
    after pickling, too.
    """
    return isinstance(default, type(dataclasses._HAS_DEFAULT_FACTORY))


def is_of_namedtuple(new: typing.Callable) -> bool:
    """Test whether `new`, the `__new__` of a named tuple, is the one that collections.namedtuple
    generates.
    """
    return (new.__code__.co_name == "<lambda>"
            and str(new.__globals__.get("__name__")).startswith("namedtuple_"))
