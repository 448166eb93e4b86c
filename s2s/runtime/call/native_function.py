"""Native functions: the loop form of a function, compiled by Numba.

`compiled(function)` is a callable on flat positional arguments. Its module is the text that
`.lower().loops` shows, with `@njit` above each function; Numba's own dispatcher, in C,
distinguishes layouts and read-only flags. The code is compiled for C order, and arguments in
another order are copied first where that pays (runtime/entry/layout_adapter.py).

Note [Indices]
An index out of range raises IndexError. Range analysis proves most indices in bounds; for others
analysis/index_ranges.py states conditions on the arguments, which are checked at each call: on
lengths in native code, on numbers in Python. If they hold, the code runs that checks only indices
that are data (back/arrays/index_checks.py); if not, a version with Numba's boundscheck, a flag for
a whole function.

Note [Where an error came from]
Where the program has a `raise`, compiled code raises, too, and Numba records the line
(user_exception.py). Elsewhere compiled code does not know its line, and tracking it would cost
every access. An error is rare and ends the run, so the interpreted form of the same function is run
again on the same arguments, which compiled code has not changed: it raises the same error, with the
index and the user's line. Compiled code hoists checks of lengths and indices out of loops, so it
may raise for an iteration that would never run; then the interpreted form returns, and its result
is used. A warning says so, once per function: it is slow, and without such a hoisted check it
indicates wrong machine code. There is no warning where the code itself defers to Python, as for `2
** 70` of its integers.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numba
from numba import NumbaError

from ...back.arrays.specialise_lengths import specialise_lengths
from ...back.print.printer import Module, render
from ...check_flags import is_requested, requested_checks
from ...compile_lock import cached_in_turn, taking_turns
from ...errors import MemoryCheckError, UnsupportedError
from ...ir.graph import Function, Recalled, whole
from ...ir.types import Array, Generator, Scalar
from ...ops.program.effects import acts_outside
from ...ops.program.recursive_callee import calls_itself, recursive_callees
from ...passes import dump
from ..cache.program_store import Facts, Program
from ..debug.load_source import load
from ..debug.nan_trap import first_bad, is_checking
from ..debug.sanitizer import watched
from ..entry.boundary import (
    InterpretedWarning,
    has_wide_integer,
    interpreted,
    narrowing,
    native_byte_order,
    one_line_message,
)
from ..entry.layout_adapter import overlaps_itself
from ..entry.length_guards import unlike
from ..entry.length_versions import ByLengths, much
from ..entry.out_argument import into_form
from ..entry.print_replay import begun, carried_out, given_up, rest
from ..numba.native_module import NotCompiled, OtherKind, Unforeseen, decorated, loaded
from ..numba.random_states import restore, state_of
from ..threads.parallel_threshold import BySize, MoreWork, chooser
from ..workers.meeting_point import LeftAlone, Parted, is_worker
from .deoptimise import Deoptimised
from .loop_program import LoopProgram
from .plain_function import PlainFunction, PlainNumbaWarning
from .user_exception import raised_again, raised_by


def compiled(function: Function, *, target: str = "cpu", fastmath: bool = False,
             parallel: bool | None = None, cache: bool = True,
             kept: Program | None = None) -> Native | BySize | ByLengths:
    """Compile `function` to native code that takes its parameters as flat positional arguments.

    Code is compiled at the first call, for its layouts.  With `parallel`, threads share large loops
    (runtime/threads/parallel_threshold.py).  Raises UnsupportedError for an unavailable target,
    CompileError if Numba refuses the code; run-time errors name the user's line.
    """
    if target != "cpu":
        raise UnsupportedError(f"the target {target!r}", remedy='use target="cpu" or target="cuda"')
    # machine code that calls itself loses its own address on the way through Numba's cache, and
    # crashes
    cache = cache and (kept is not None or not any(map(calls_itself, recursive_callees(function))))
    facts = (kept.facts if kept is not None
             else Facts(acts_outside(function), much(function)))

    def code(lengths: tuple[int, ...], known: Callable[[], Function],
             supposes: bool = True) -> Native | BySize:
        drafted = LoopProgram(known, lengths, supposes, kept)
        otherwise = (Deoptimised(functools.partial(code, lengths, known, False)) if drafted.supposes
                     else None)
        loops = chooser(drafted.sizes, len(function.params), parallel)

        def native(parts: frozenset[int]) -> Native:
            more = loops.conditions if loops is not None and not parts else []
            return Native(function, drafted, parts, fastmath, cache, facts.acts, more, otherwise)

        return native(frozenset()) if loops is None else BySize(loops, native)

    return (code((), lambda: specialise_lengths(whole(function))) if facts.much is None
            else ByLengths(function, code, facts.much))


@dataclass
class Failure:
    """The failure of a call of native code: the exception to raise, or else what native code has
    `raised`, and whether that is because a supposition on lengths is disproved.
    """

    refusal: Exception | None = None
    raised: str | None = None
    is_disproved: bool = False


class Native:
    """The native code of `function`, called with its parameters; errors are explained on the way
    out.

    The code is that of `drafted`, which may be for arguments of known lengths, with the loops in
    parts that have the numbers `parts`; it `acts` on the world outside, or not. It is for calls of
    which none of `more` holds. Where what is needed of lengths and of numbers does not hold, the
    code that checks indices is called, which is compiled when that happens first. What is needed of
    numbers is `required`, and asked in Python, whose integers do not overflow. Where what the code
    supposes of lengths does not hold, `otherwise` is called.
    """

    def __init__(self, function: Function | Recalled, drafted: LoopProgram, parts: frozenset[int],
                 fastmath: bool, cache: bool, acts: bool, more: Sequence[str] = (),
                 otherwise: Deoptimised | None = None):
        self.function, self.drafted, self.parts, self.__name__ = (function, drafted, parts,
                                                                  function.name)
        self.fastmath, self.cache, self.acts, self.otherwise = fastmath, cache, acts, otherwise
        required = drafted.required
        self.checks = required is None
        self.required = [text for text in required or [] if is_of_numbers(text)]
        self.unlike = {TypeError.__name__: unlike(function), MoreWork.__name__: more}
        self.outside = [f"not ({text})" for text in required or [] if text not in self.required]
        self.modules: dict[str, Module] = {}  # compiled texts, by file
        self.careful: Callable | None = None  # bounds checks even where the requirements hold
        self.holds = condition(function, required) if required else None
        self.narrowed = narrowing(function)
        self.plain: PlainFunction | None = None  # compiling has failed unforeseen
        # Numba does not take the arguments; a spurious native error was reported
        self.is_in_python = self.is_told = False
        self.is_trap, self.is_sanitized = is_checking(), is_requested("memory")
        self.generators = [k
                           for k, p in enumerate(function.params) if isinstance(p.type, Generator)]
        # running it twice has the effect of running it once
        self.is_pure = not (self.is_trap or self.acts or self.generators)

    @property
    def whole(self) -> Native:
        """The code itself if there are versions by length; the deoptimised code once it was needed.
        """
        return (self if self.otherwise is None or not self.otherwise.is_made
                else self.otherwise.code.whole)

    fits = "True"

    def conditions(self, checks: bool, *more: str) -> dict[str, list[str]]:
        """Conditions under which native code does not apply, by the exception that it then raises.
        """
        return {**self.unlike,
                TypeError.__name__: [*self.unlike[TypeError.__name__],
                                     *([] if checks else self.outside), *more]}

    @cached_in_turn
    def module(self) -> Module:
        """The loop form, as text."""
        return self.drafted.module(self.parts)

    @cached_in_turn
    def dispatcher(self) -> Callable:
        """Numba's dispatcher of the code for calls that meet the requirements."""
        return self.dispatcher_of(self.checks)

    @cached_in_turn
    def run(self) -> Callable:
        """Run the code on arguments that are not checked yet and may be of another kind; return its
        result, or raise.
        """
        return self.where_it_holds if self.required else self.dispatcher

    def dispatcher_of(self, checks: bool, in_order: bool = True) -> Callable:
        """Numba's dispatcher of the code, with or without bounds checks; its arguments are first
        put `in_order` (runtime/entry/layout_adapter.py), or not.
        """
        with taking_turns():
            form = ",".join(["checked" if checks else "plain", *requested_checks()])
            native = self.drafted.native(self.parts, form, lambda: decorated(
                self.module, self.fastmath, checks, self.conditions(checks)))
            params = [p.type for p in self.function.params]
            found = getattr(loaded(native, self.cache, params, len(params) if in_order else None),
                            native.entry)
            self.modules[found.py_func.__code__.co_filename] = native
            dump(lambda: native.text, f"{self.__name__}_native")
            return found

    @cached_in_turn
    def into(self) -> Callable:
        """Numba's dispatcher of the form that writes its results into `out` arrays, if there is
        one.
        """
        params, types = ([p.type for p in self.function.params],
                         [y.type for y in self.function.results])

        def make() -> Module:
            form, shares = into_form(self.module, params, types)
            return decorated(form, self.fastmath, self.checks,
                             self.conditions(self.checks, shares))

        native = self.drafted.native(self.parts, ",".join(["into", *requested_checks()]), make)
        dump(lambda: native.text, f"{self.__name__}_native_into")
        taken = [type for type in types if isinstance(type, Array)]
        found = getattr(loaded(native, self.cache, [*params, *taken], len(params)), native.entry)
        if not self.is_sanitized:
            return found
        self.modules[found.py_func.__code__.co_filename] = native
        return lambda *args: self.result_of(found, args, self.checks)

    def of_numbers(self) -> Callable:
        """The function to call for Python numbers of the parameters' dtypes: it bypasses the
        dispatcher once their types were seen.
        """
        # captured data may be more than numbers
        if not all(isinstance(p.type, Scalar) for p in self.function.params):
            return self.dispatcher
        kinds = tuple(getattr(numba.types, p.type.dtype) for p in self.function.params)
        found = self.dispatcher.overloads.get(kinds)
        return self.dispatcher if found is None else found.entry_point

    def where_it_holds(self, *args):
        """The result of the code, if the requirements hold."""
        if not self.holds(*args):
            raise OtherKind
        return self.dispatcher(*args)

    def no_code(self, *args):
        """The `run` and `into` of a function that failed to compile: it is not tried again."""
        raise OtherKind

    def __call__(self, *args):
        if self.otherwise is not None and self.otherwise.is_made:
            return self.otherwise.code(*args)
        if self.is_in_python:
            return interpreted(self, args)
        if self.plain is not None:
            return self.plain(*args)
        args = native_byte_order(args)
        before = begun() if self.acts else None
        drawn = [state_of(args[k]) for k in self.generators]
        try:
            result = self.native_result(args)
            if self.is_trap and first_bad(result) is not None:
                return interpreted(self, args, given_up(before))
            if before is not None:
                carried_out(before)
            return result if self.narrowed is None else self.narrowed(result)
        except (MemoryCheckError, Parted):
            raise
        except Exception as error:
            failure = self.failure(error, args)
        if failure.is_disproved:
            given_up(before)
            if is_worker():  # the others are in the middle of this code
                raise LeftAlone
            return self.otherwise.code(*args)
        if self.plain is not None:
            given_up(before)
            return self.plain(*args)
        # raised here, where no other exception is being handled and shown beside it
        if failure.refusal is not None:
            if before is not None:
                carried_out(before)
            raise failure.refusal
        for k, state in zip(self.generators, drawn):  # repeat the random draws of compiled code
            restore(args[k], state)
        result = interpreted(self, args, given_up(before))
        self.tell(failure, args)
        return result

    def native_result(self, args: tuple):
        """The result of the code, or of the one that checks indices if the requirements do not
        hold.
        """
        if self.holds is None or self.holds(*args):
            overlap = any(map(overlaps_itself, args))
            return self.result_of(self.dispatcher if not overlap
                                  else self.dispatcher_of(self.checks, in_order=False), args,
                                  self.checks)
        if self.careful is None:
            self.careful = self.dispatcher_of(checks=True, in_order=False)
        return self.result_of(self.careful, args, True)

    def failure(self, error: Exception, args: tuple) -> Failure:
        """The Failure that an exception of compiling or of compiled code is."""
        if isinstance(error, NumbaError):
            return Failure(None if any(map(has_wide_integer, args))
                           else one_line_message(error, self.function))
        if isinstance(error, Unforeseen):
            self.plain, self.is_pure = PlainFunction(self.function, self.fastmath), False
            self.run = self.into = self.no_code
            warnings.warn(f"{self.function.name} is compiled by @njit alone, without threads and "
                          f"cache: compiling it otherwise has failed ({error})", PlainNumbaWarning,
                          stacklevel=5)
            return Failure()
        if isinstance(error, NotCompiled):
            self.is_in_python, self.is_pure = True, False
            self.run = self.into = self.no_code
            warnings.warn(
                f"{self.function.name} runs in Python, slowly: compiling it has failed ({error})",
                InterpretedWarning, stacklevel=5)
            return Failure()
        op = raised_by(error, self.modules)
        refusal = None if op is None else raised_again(error, op)
        return Failure(refusal, f"{type(error).__name__}: {error}" if op is None else None,
                       refusal is None and self.otherwise is not None
                       and self.otherwise.is_wanted(error))

    def tell(self, failure: Failure, args: tuple) -> None:
        """Warn, once, if native code has raised what Python does not."""
        # for which Numba has no type
        if (failure.raised is not None and not self.is_told
            and not any(type(x) is list and not x or has_wide_integer(x) for x in args)):
            self.is_told = True
            warnings.warn(
                f"{self.function.name} runs in Python, slowly, in calls like this one: "
                f"native code has raised what Python does not ({failure.raised})",
                InterpretedWarning, stacklevel=5)

    def result_of(self, code: Callable, args: tuple, checks: bool):
        """The result of the dispatcher `code`; with S2S_CHECK=memory, check that it touched no
        foreign memory.
        """
        if not self.is_sanitized:
            return code(*args)
        return watched(code, args, self.modules[code.py_func.__code__.co_filename], checks)

    @cached_in_turn
    def in_python(self) -> Callable:
        """The interpreted form, generated on first use."""
        module = render(whole(self.function))
        return load(module.text, module.entry, module.lines, given={**module.given, "print": rest})


def is_of_numbers(text: str) -> bool:
    """Whether a condition on `a0`, `a1`, ... reads values and not just shapes."""
    return re.search(r"a\d+(?!\d*\.shape)", text) is not None


def condition(function: Function, required: list[str]) -> Callable:
    """Whether the arguments guarantee that all indices are in bounds."""
    parameters = ", ".join(f"a{k}" for k in range(len(function.params)))
    return eval(f"lambda {parameters}: {' and '.join(required)}")
