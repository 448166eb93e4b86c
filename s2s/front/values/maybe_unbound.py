"""Definite assignment: a flag beside each name that only some paths bind, tested by reads.

The flag of `y` is stored under a name that no program can have, so branches and loops join it like
any other variable.  Where each trip of a loop over a range binds the name, whether it is bound
follows from the number of the trip, and nothing is carried.  So generated code raises what Python
raises, compiled code included, in which an unbound variable is 0.
"""

from __future__ import annotations

import sys

import gast

from ...ir.graph import MISSING, Value
from ..domain.frame import BOUND, EXIT, Frame
from .exceptions import raise_unless

BOUND_ON = "<bound on {}>"
OWN = ("cannot access local variable '{}' where it is not associated with a value"
       if sys.version_info >= (3, 11) else "local variable '{}' referenced before assignment")
FREE = (
    "cannot access free variable '{}' where it is not associated with a value in enclosing scope"
    if sys.version_info >= (3, 11) else
    "free variable '{}' referenced before assignment in enclosing scope")


def is_bound(env: dict, name: str):
    """Whether `name` is bound: True, False, or a run-time Value."""
    flag = env.get(BOUND.format(name), True) if name in env else False
    return bool(flag.constant) if isinstance(flag, Value) and flag.constant is not MISSING else flag


def note_bound(frame: Frame, name: str, flag=True) -> None:
    """Record whether `name` is bound."""
    if flag is not True or BOUND.format(name) in frame.env:
        frame.env[BOUND.format(name)] = flag


def note_arms(frame: Frame, first: dict, second: dict, live: frozenset) -> None:
    """Add, to the states after two arms, the flags of names that one of them leaves unbound.

    The following statements run only where no `break`, `continue` or `return` has left: there, a
    name is in its BOUND_ON state.
    """
    if frame.outline.is_dump:
        return
    for name in dict.fromkeys((*first, *second)):
        if name.startswith("<") or not frame.is_live(name, live):
            continue
        flags = [is_bound(env, name) for env in (first, second)]
        going_on = [
            True if env[EXIT] is True else env.get(BOUND_ON.format(name), flag)
            for env, flag in zip((first, second), flags)
        ]
        _set(first, second, BOUND.format(name), flags, flags[0] is flags[1]
             and not isinstance(flags[0], Value))
        _set(first, second, BOUND_ON.format(name), going_on,
             all(a is b for a, b in zip(flags, going_on)))


def _set(first: dict, second: dict, key: str, flags: list, is_clear: bool) -> None:
    for env, flag in zip((first, second), flags):
        env.pop(key, None)
        if not is_clear:
            env[key] = flag


def go_on_bound(env: dict) -> None:
    """Resolve flags, given that no earlier statement has left."""
    for key in [key for key in env if isinstance(key, str) and key.startswith(BOUND_ON[:10])]:
        env[BOUND.format(key[10:-1])] = env.pop(key)


def read_name(frame: Frame, name: str, node: gast.AST):
    """The binding of `name` at a read; raises as Python does if it is unbound."""
    owner = frame
    while owner is not None and name not in owner.env and name not in owner.locals:
        owner = owner.lexical
    flag = True if owner is None else is_bound(owner.env, name)
    if isinstance(flag, Value):
        _require(frame, owner, name, flag)
    return frame.lookup(name, node)


def _require(frame: Frame, owner: Frame, name: str, flag: Value) -> None:
    kind, text = (UnboundLocalError, OWN) if owner is frame else (NameError, FREE)
    raise_unless(frame, flag, kind, text.format(name))
    if owner is frame:
        note_bound(frame, name)
