"""Resolution of `argnums` and `static_argnums`: arguments by number, from the end, or by name."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from inspect import Parameter
from types import MethodType

from ..errors import TypeMismatchError
from ..front.eval.unwrap_callable import names_of, signature_of
from ..ir.treedef import form_of, is_container
from ..ir.types import Static


class FirstArgument(int):
    """The default of `argnums`: argument 0, or of a method the first one after `self`."""


FIRST = FirstArgument(0)
POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def numbers(argnums, what: str = "argnums") -> int | str | tuple:
    """Return `argnums` as a number, a name, or a tuple of these; TypeMismatchError for anything
    else.
    """
    if isinstance(argnums, (str, FirstArgument)):
        return argnums
    try:
        return operator.index(argnums)
    except TypeError:
        pass
    if isinstance(argnums, Sequence):
        if not argnums and what == "argnums":
            raise TypeMismatchError("argnums names no argument", None,
                                    "name one, by its number or its name")
        found = tuple(numbers(k, what) for k in argnums)
        if not any(isinstance(k, tuple) for k in found):
            return found
    raise TypeMismatchError(f"{what} is {argnums!r}", None, "give the numbers of arguments, from "
                            "0, or their names")


def checked_axes(axes, what: str):
    """Return `axes`: a number, None, or a nested container of such; TypeMismatchError for anything
    else.
    """
    if is_container(axes):
        for member in members_of(axes):
            checked_axes(member, what)
        return axes
    try:
        return None if axes is None else operator.index(axes)
    except TypeError:
        raise TypeMismatchError(f"{what} is or has {axes!r}", None, "give the number of an axis, "
                                "None, or a container of these") from None


def checked_name(axis_name) -> Hashable:
    """Return the name of an axis; TypeMismatchError for what is none."""
    if isinstance(axis_name, (int, tuple)) or not isinstance(axis_name, Hashable):
        raise TypeMismatchError(f"axis_name is {axis_name!r}", None, "give a string")
    return axis_name


def checked_size(axis_size) -> int:
    """Return a number of lanes; TypeMismatchError for what is none."""
    try:
        found = operator.index(axis_size)
    except TypeError:
        found = -1
    if found < 0:
        raise TypeMismatchError(f"axis_size is {axis_size!r}", None, "give the number of lanes")
    return found


def checked_workers(workers) -> int:
    """Return a number of workers, 0 for as many as there are threads; TypeMismatchError for what is
    none.
    """
    try:
        found = 0 if workers is None else operator.index(workers)
    except TypeError:
        found = -1
    if found < 0 or workers is not None and (found == 0 or isinstance(workers, bool)):
        raise TypeMismatchError(f"workers is {workers!r}", None,
                                "give the number of workers, or None for s2s.threads()")
    return found


def checked_processes(workers) -> int:
    """Return the number of processes of "processes" or ("processes", n), 0 for as many as there are
    threads; TypeMismatchError for what is none of these.
    """
    kind, *count = (workers,) if isinstance(workers, str) else workers
    if kind != "processes" or len(count) > 1:
        raise TypeMismatchError(f"workers is {workers!r}", None,
                                'give the number of workers, "processes", or ("processes", n)')
    return checked_workers(count[0]) if count else 0


def members_of(container) -> Sequence:
    """Return the members of a tuple, list, dict or other container."""
    form = form_of(container)
    return container if form is None else form.members(container)


def resolve_argnums(argnums, function: Callable, types: Sequence) -> int | tuple[int, ...]:
    """Return `argnums` as numbers from 0, for a call of `function` with arguments of these types.
    """
    if isinstance(argnums, tuple):
        return tuple(resolve_argnums(k, function, types) for k in argnums)
    if isinstance(argnums, FirstArgument):
        if not types or not isinstance(types[0], Static) or isinstance(function, MethodType):
            return 0
        owner = types[0].value if isinstance(types[0].value, type) else type(types[0].value)
        # for a method, the first argument after the object
        return int(any(name_of(function) in vars(cls) for cls in owner.__mro__))
    if isinstance(argnums, str):
        names = names_of(function, len(types))
        if argnums not in names:
            raise TypeMismatchError(f"{name_of(function)} is given no argument {argnums}, which "
                                    "argnums names", None, f"name one of {', '.join(names)}")
        return names.index(argnums)
    if argnums >= 0:
        return argnums
    named = sum(p.kind is p.KEYWORD_ONLY for p in signature_of(function).parameters.values())
    if argnums + len(types) - named < 0:
        raise TypeMismatchError(f"{name_of(function)} has {len(types)} arguments, and argnums "
                                f"names argument {argnums}", None, "number them from 0, or from -1 "
                                "backwards")
    return argnums + len(types) - named


def as_method(argnums):
    """Shift `argnums` of a function that is called as a method."""
    return 1 if isinstance(argnums, FirstArgument) else argnums


def static_names(function: Callable, argnums, argnames) -> tuple[int | str, ...]:
    """Return the arguments in `static_argnums` and `static_argnames`, by number and by name;
    TypeMismatchError for those that do not exist.
    """
    parameters = list(signature_of(function).parameters.values())
    open_ended = {p.kind for p in parameters} & {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}
    positional = names_of(function, len([p for p in parameters if p.kind in POSITIONAL]))
    found: list[int | str] = []
    for k in _each(numbers(argnums, "static_argnums")):
        if not isinstance(k, int):
            raise TypeMismatchError(f"static_argnums is {argnums!r}", None,
                                    "give names as static_argnames")
        if -len(positional) <= k < len(positional):
            found.append(positional[k])
        elif Parameter.VAR_POSITIONAL in open_ended and k >= 0:
            found.append(k)
        else:
            raise TypeMismatchError(f"static_argnums names argument {k}, and {name_of(function)} "
                                    f"takes {len(positional)}", None, "number them from 0")
    for name in _each(argnames):
        if not isinstance(name, str):
            raise TypeMismatchError(f"static_argnames is {argnames!r}", None,
                                    "give the names of arguments")
        if not open_ended and all(p.name != name for p in parameters):
            raise TypeMismatchError(f"static_argnames names {name}, and {name_of(function)} has no "
                                    "such argument", None, "name one of "
                                    f"{', '.join(p.name for p in parameters)}")
        found.append(name)
    return tuple(dict.fromkeys(found))


def is_choice(x) -> bool:
    """Test whether an argument may be made static because code cannot be generated without it: an
    axis, a norm, a tuple of such.
    """
    return (all(map(is_choice, x)) if isinstance(x, tuple)
            else isinstance(x, (bool, int, float, str, type(None))))


def is_flag(x) -> bool:
    """Test whether an argument may be made static because it decides which lines run."""
    return isinstance(x, (bool, str, type(None)))


def fixed_key(x, name: str) -> tuple:
    """Return a key that is equal for static arguments that are interchangeable in every program;
    TypeMismatchError for an array.
    """
    if isinstance(x, (tuple, frozenset)):
        return type(x), tuple(fixed_key(item, name)
                              for item in (x if isinstance(x, tuple) else sorted(x, key=repr)))
    if isinstance(x, (float, complex)):
        return type(x), repr(x)
    try:
        hash(x)
    except TypeError:
        raise TypeMismatchError(f"the static argument {name} is a {type(x).__name__}, which cannot "
                                "be hashed", None, "pass numbers, strings, tuples or functions "
                                "there, or do not make it static") from None
    return type(x), x


def name_of(function: Callable) -> str:
    """Return the name of `function` in messages."""
    return getattr(function, "__name__", "f")


def _each(names) -> tuple:
    return (names if isinstance(names, tuple) else tuple(names) if isinstance(names, list)
            else (names,))
