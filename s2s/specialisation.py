"""The specialisation key of generated code: the dtype and rank of each argument, and which extents
are 1.

`key_of` is the part of an argument that decides which generated code runs it, `type_of` the same as
a type of the IR.  Lengths other than 1 are in neither, so that 1,000 lengths are one generation.
"""

from __future__ import annotations

import inspect
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import NoneType

import numpy as np

from .errors import SourceError, TypeMismatchError, UnsupportedError
from .front.eval.unwrap_callable import signature_of as front_signature
from .front.syntax.captures import require_plain
from .ir.length_assumptions import SHORT
from .ir.treedef import Form, form_of, is_container, is_fixed
from .ir.types import (
    BOOL,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    RANDOM_STATE,
    Array,
    Extent,
    Scalar,
    Static,
    Tuple,
    Type,
    Unknown,
    dims_of_argument,
    has_equality,
)
from .runtime.device_arrays import dtype_of_device, is_on_device

_PLAIN = (float, int, bool, complex)
MOST_GUESSED = 3  # the most parameters whose ranks are tried in turn


def key_of(x) -> object:
    """Return a key that is equal for arguments that the same generated code runs."""
    kind = type(x)
    if kind in _PLAIN:
        return kind
    if kind is np.ndarray:
        return x.dtype, tuple([n == 1 for n in x.shape])
    if isinstance(x, np.generic):
        return x.dtype
    if isinstance(x, (np.random.Generator, np.random.RandomState)):
        return type(x)
    if kind is tuple or kind is list:
        return kind, tuple(map(key_of, x))
    if kind is dict:
        return kind, tuple(x), tuple(map(key_of, x.values()))
    if is_container(x):
        form = form_of(x)
        return form, tuple(key_of_fixed(m) if fixed else key_of(m)
                           for m, fixed in members_of(x, form))
    if is_on_device(x):
        return "on device", dtype_of_device(x), tuple([n == 1 for n in x.shape])
    return key_of_fixed(x)


def short_axes(x) -> object:
    """Return which axes of the arrays in `x` are short, for code that depends on it:
    ir/length_assumptions.py, Note [Long axes].
    """
    if type(x) is np.ndarray or is_on_device(x):
        return tuple([n in SHORT for n in x.shape])
    return (tuple(short_axes(m) for m, fixed in members_of(x, form_of(x)) if not fixed)
            if is_container(x) else ())


def key_of_fixed(x) -> object:
    """Return a key that is equal for objects that generated code need not distinguish."""
    if not has_equality(x):
        return type(x), id(x)
    try:
        hash(x)
    except TypeError:
        return type(x), id(x)
    return type(x), x


def members_of(x, form: Form | None) -> list[tuple[object, bool]]:
    """Return the members of a container, each with whether it is part of the structure instead of
    data.
    """
    if form is None:
        return [(member, False) for member in x]
    if form.kind != "attributes":
        return [(member, False) for member in form.members(x)]
    return [(member, is_fixed(x, name)) for name, member in zip(form.keys, form.members(x))]


def shapes_of(x) -> object:
    """Return the shapes of the arrays in the argument `x`."""
    if is_container(x):
        return tuple(shapes_of(m) for m, fixed in members_of(x, form_of(x)) if not fixed)
    return np.shape(x) if type(x) is np.ndarray or is_on_device(x) else ()


def type_of(x, name: str | None) -> Type:
    """Return the type of the argument `x` for the parameter `name`; with the lengths of this very
    argument, if there is no name for them.
    """
    if is_container(x):
        form = form_of(x)
        keys = range(len(x)) if form is None else form.keys
        return Tuple(tuple(Static(member) if fixed
                           else type_of(member, None if name is None else f"{name}.{key}")
                           for key, (member, fixed) in zip(keys, members_of(x, form))), form)
    if isinstance(x, (tuple, list, dict, deque)):
        raise UnsupportedError(f"{name} is a {type(x).__name__}", None,
                               "pass a tuple, a list or a dict")
    x = accepted_by_kernels(x)
    match x:
        case bool():
            return BOOL
        case int() if type(x) is int:
            return INT
        case float() if type(x) is float:
            return FLOAT
        case complex() if type(x) is complex:
            return Scalar("complex128", weak=True)
        case np.generic():
            return Scalar(x.dtype.name)
        case _ if isinstance(x, np.ndarray) or is_on_device(x):
            dims = tuple(x.shape) if name is None else dims_of_argument(x.shape, name)
            dtype = x.dtype if isinstance(x, np.ndarray) else dtype_of_device(x)
            if dtype.kind not in "biufc":
                raise UnsupportedError(f"{name} is an array of {dtype}", None,
                                       "pass an array of numbers")
            return Array(dtype.name, dims) if dims else Scalar(dtype.name)
        case NoneType():
            return NONE
        case np.random.Generator():
            return GENERATOR
        case np.random.RandomState():
            return RANDOM_STATE
    return Static(x)


def ranks_to_try(types: Sequence[Type]) -> Iterator[list[Type]]:
    """Yield `types` with numbers, vectors and matrices for those of unknown rank, the fewest and
    lowest first.

    For a program that writes into an element of what may be a number or an array, only known ranks
    decide.
    """
    def choices(type: Type, k: int) -> list[Type]:
        if not isinstance(type, Unknown):
            return [type]
        dims = tuple(Extent(f"{type.shape or f'x{k}'}.{axis}", 0, False) for axis in range(2))
        return [type, FLOAT, Array("float64", dims[:1]), Array("float64", dims)]

    offered = [choices(type, k) for k, type in enumerate(types)]
    picks = sorted(itertools.product(*(range(len(c)) for c in offered[:MOST_GUESSED])), key=sum)
    for pick in picks[1:]:
        yield [c[k] for c, k in zip(offered, pick)] + list(types[len(pick):])


def members_of_axes(type: Type, axes, name: str) -> list:
    """Return the axes of the members of a container of `type`; TypeMismatchError where `axes` does
    not match it.
    """
    form = form_of(axes)
    fits = isinstance(type, Tuple) and is_container(axes) and (
        len(axes) == len(type.items) if isinstance(axes, (tuple, list)) else
        form is not None and type.form is not None and set(form.keys) == set(type.form.keys))
    if not fits:
        raise TypeMismatchError(f"the axes {axes!r} are no tree like {name}, which is {type}", None,
                                "give one axis, None, or a container with an axis for each member")
    return list(axes) if isinstance(axes, (tuple, list)) else type.form.members(axes)


def lane_type(type: Type, axis: int | None, name: str) -> Type:
    """Return the type of one lane of a batched argument; before any call, a lane is a number."""
    match type:
        case Static():
            return type
        case _ if axis is None:
            return FLOAT if isinstance(type, Unknown) else type
        case Tuple() if not isinstance(axis, int):
            inner = members_of_axes(type, axis, name)
            return replace(type,
                           items=tuple(lane_type(item, a, name)
                                       for item, a in zip(type.items, inner)))
        case Unknown():
            return FLOAT
        case Array(dtype, dims) if -len(dims) <= axis < len(dims):
            rest = dims[:axis % len(dims)] + dims[axis % len(dims) + 1:]
            return Array(dtype, rest) if rest else Scalar(dtype)
        case Tuple(items):
            return replace(type, items=tuple(lane_type(item, axis, name) for item in items))
    raise TypeMismatchError(f"vmap over axis {axis} of {name}, which is {type}", None,
                            "pass an array with that axis, or None for it in in_axes")


def normalised(x):
    """Convert `x` to the form that generated code takes: arrays of rank 0 to numbers, other
    libraries' arrays to NumPy's.
    """
    if type(x) in _PLAIN or x is None:
        return x
    if isinstance(x, np.ndarray):
        require_plain(x, "an argument")
        return x[()] if x.ndim == 0 else x
    if type(x) is tuple:
        return tuple(map(normalised, x))
    if is_container(x):
        form = form_of(x)
        members = form.members(x)
        inside = list(map(normalised, members))
        return x if all(a is b for a, b in zip(inside, members)) else form.build(inside)
    if not isinstance(x, np.generic) and hasattr(x, "__array__"):
        return normalised(np.asarray(x))
    return x


def accepted_by_kernels(x):
    """Convert `x` to the form that code for a GPU takes; arrays on the device stay there."""
    if is_on_device(x):
        return x
    if type(x) is tuple or is_container(x):
        form = form_of(x)
        members = x if form is None else form.members(x)
        inside = list(map(accepted_by_kernels, members))
        if all(a is b for a, b in zip(inside, members)):
            return x
        return tuple(inside) if form is None else form.build(inside)
    return normalised(x)


def signature_of(function: Callable) -> inspect.Signature:
    """Return the signature of `function` itself, whatever it wraps; SourceError where Python does
    not know it, or it is no function.
    """
    if not callable(function):
        raise SourceError(f"{function!r} is not a function", None, "pass a function that is "
                          "written in Python")
    return front_signature(function)


def parameters_of(function: Callable) -> list[inspect.Parameter]:
    """Return the parameters of `function`, in order."""
    return list(signature_of(function).parameters.values())


def bind(signature: inspect.Signature, args: tuple, kwargs: dict) -> tuple:
    """Return the arguments in the order of the parameters, defaults filled in; `*args` stay spread.
    """
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = []
    for name, p in signature.parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            values.extend(bound.arguments[name])
        elif p.kind is p.VAR_KEYWORD:
            if bound.arguments[name]:
                raise UnsupportedError(f"the keywords {', '.join(bound.arguments[name])} here",
                                       None, "call it from a lambda that passes them")
        else:
            values.append(bound.arguments[name])
    return tuple(values)
