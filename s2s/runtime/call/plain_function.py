"""The fallback: the loop form compiled by `@njit` alone, Numba's documented interface.

It is taken where this version of Numba lacks one of the private names that s2s uses
(runtime/numba_internals.py), with a warning; where compiling with these has failed unforeseen, with
a warning; and where S2S_NUMBA=public asks for it (check_flags.py).

The loops are those that `.lower().loops` shows and an exported file has, with indices checked by
Numba. What it lacks: threads, the cache on disk, vector math (exp and its kind are libm's, one
number at a time), products and solves of s2s's own, versions for short lengths, `out=` without a
copy, and S2S_CHECK=memory beyond bounds; compiling takes two to five times as long, a call some
microseconds more, and machine code stays until the process ends. Where it refuses a program, as one
with a function that only SciPy has, that runs in Python, with a warning.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable

from numba import NumbaError

from ...back.arrays.specialise_lengths import specialise_lengths
from ...back.loop_pipeline import lower
from ...back.print.printer import Module, render
from ...compile_lock import cached_in_turn, taking_turns
from ...ir.graph import Function, Recalled, walk, whole
from ...ir.length_assumptions import depends_on_long_axes, tracking_long_axes
from ...ir.types import Generator
from ...ops.math.special import SCIPYS_ALONE
from ...ops.program.effects import acts_outside
from .. import numba_internals
from ..debug.load_source import load, register, release
from ..debug.nan_trap import first_bad, is_checking
from ..debug.progress import telling
from ..entry.boundary import (
    InterpretedWarning,
    has_wide_integer,
    interpreted,
    narrowing,
    native_byte_order,
)
from ..entry.print_replay import begun, carried_out, counted, given_up, rest
from ..numba.njit_text import njit_text, without_advice
from ..numba.random_states import restore, state_of
from .user_exception import raised_again, raised_by


class PlainNumbaWarning(UserWarning):
    """Warning that code is compiled by Numba's documented interface alone."""


@functools.cache
def warn_of_missing() -> None:
    """Say once which private names of Numba are missing."""
    if numba_internals.MISSING:
        warnings.warn(f"native code is compiled by @njit alone, without threads and cache: "
                      f"{numba_internals.explain()}", PlainNumbaWarning, stacklevel=4)


def compiled(function: Function | Recalled, *, fastmath: bool = False,
             parallel: bool | None = None, cache: bool = True) -> PlainFunction:
    """Compile `function` by `@njit` alone, to native code that takes its parameters as flat
    positional arguments; `parallel` and `cache` change nothing.
    """
    warn_of_missing()
    return PlainFunction(function, fastmath)


class PlainFunction:
    """The native code of `function`, compiled at its first call for arguments of each layout."""

    def __init__(self, function: Function | Recalled, fastmath: bool):
        self.function, self.fastmath, self.__name__ = function, fastmath, function.name
        self.has_asked = depends_on_long_axes()  # ir/length_assumptions.py, Note [Long axes]
        self.narrowed, self.is_trap = narrowing(function), is_checking()
        self.modules: dict[str, Module] = {}  # the compiled text, by file
        self.is_in_python = self.is_told = False

    @cached_in_turn
    def ops(self) -> frozenset[str]:
        """The names of the ops of the function."""
        return frozenset(op.name for op in walk(whole(self.function).block))

    @cached_in_turn
    def acts(self) -> bool:
        """Whether the function prints, or writes into what it has captured."""
        return acts_outside(whole(self.function))

    @cached_in_turn
    def code(self) -> Callable:
        """Numba's dispatcher."""
        with tracking_long_axes() as asked:
            asked.about_lengths = self.has_asked
            lowered = lower(specialise_lengths(whole(self.function)))
            module = njit_text(render(lowered, native=True), self.fastmath)
        filename = register(module.text, module.entry)
        scope: dict[str, object] = {**module.given, "__file__": filename, "print": counted}
        exec(compile(module.text, filename, "exec"), scope)
        self.modules[filename] = module
        weakref.finalize(self, release, filename).atexit = False
        return scope[module.entry]

    @cached_in_turn
    def in_python(self) -> Callable:
        """The interpreted form."""
        module = render(whole(self.function))
        return load(module.text, module.entry, module.lines, given={**module.given, "print": rest})

    def run_native(self, args: tuple):
        """The result of native code, compiled if this is the first call."""
        if self.code.signatures:
            return self.code(*args)
        with taking_turns(), telling(self.__name__), without_advice():
            return self.code(*args)

    def __call__(self, *args):
        if not self.is_in_python and (only := sorted(self.ops & SCIPYS_ALONE)):
            self.stay_in_python(f"it has no {only[0]}")
        if self.is_in_python:
            return interpreted(self, args)
        args = native_byte_order(args)
        generators = [k for k, p in enumerate(self.function.params)
                      if isinstance(p.type, Generator)]
        before = begun() if self.acts else None
        drawn = [state_of(args[k]) for k in generators]
        refusal = raised = None
        try:
            result = self.run_native(args)
            if not self.is_trap or first_bad(result) is None:
                if before is not None:
                    carried_out(before)
                return result if self.narrowed is None else self.narrowed(result)
        except NumbaError as error:
            if not any(map(has_wide_integer, args)):
                self.stay_in_python(" ".join(str(error).split())[:200])
        except Exception as error:
            op = raised_by(error, self.modules)
            refusal = None if op is None else raised_again(error, op)
            raised = None if op is not None else f"{type(error).__name__}: {error}"
        if refusal is not None:
            if before is not None:
                carried_out(before)
            raise refusal
        for k, state in zip(generators, drawn):  # repeat the random draws of compiled code
            restore(args[k], state)
        result = interpreted(self, args, given_up(before))
        if raised is not None and not self.is_told:
            self.is_told = True
            warnings.warn(f"{self.__name__} runs in Python, slowly, in calls like this one: "
                          f"native code has raised what Python does not ({raised})",
                          InterpretedWarning, stacklevel=4)
        return result

    def stay_in_python(self, reason: str) -> None:
        """Compile no more, and say why."""
        self.is_in_python = True
        warnings.warn(f"{self.__name__} runs in Python, slowly: @njit alone does not compile it "
                      f"({reason})", InterpretedWarning, stacklevel=5)
