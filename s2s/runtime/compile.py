"""Native code: the loop form of a function, compiled by Numba.

`compiled(function)` is a callable on flat positional arguments.  Its module is the same text that
`.lower().loops` shows, with `@njit` above each function; layouts and read-only flags are told apart by
Numba's own dispatcher, in C, and each is compiled when it is first met.

Note [Flags]
error_model="numpy": division by zero makes inf or nan, as in NumPy.  fastmath={"contract"}: a * b + c may
be one instruction, which rounds once where NumPy rounds twice; results differ from the interpreted ones in
the last bit, never in what NaN and infinity do.  fastmath=True also lets sums be reordered, which is what
makes them vectorise; still never nnan or ninf, because adjoints meet both.  nogil: compiled code holds no
Python object.  The sums of an adjoint are compiled code's to order and to bracket (back/chains.py, back/factors.py):
where infinite terms cancel to NaN, a bracket may keep an infinity.

Note [Indices]
An index out of range raises IndexError.  Ranges prove most indices; for others back/ranges.py says what
would have to hold of the arguments, which is asked at each call, in Python.  Where it holds, the code runs
that checks nothing but indices that are data (back/checked.py); where not, Numba's boundscheck, a flag for a whole function.

Note [Where an error came from]
Where the program says `raise`, compiled code raises, too, and Numba notes the line (runtime/raised.py).  In
other places it does not know its line, and carrying it would cost every access.  An error is rare and ends
the run, so the interpreted form of the same function is run again on the same arguments, which compiled
code has not changed: it raises the same error, with the index and the user's line.  Compiled code checks
lengths and ranges of indices before loops, so it may complain of what the loop would never have come to;
then the interpreted form returns, and what it returns is the result.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numba
import numpy as np
from numba.core.errors import NumbaError, NumbaPerformanceWarning, NumbaWarning

from ..back.lengths import settled
from ..back.loops import lower
from ..back.python import Draft, Module, render
from ..back.ranges import requirements
from ..back.supposed import has_suppositions
from ..errors import S2SError, UnsupportedError
from ..ir.graph import Function, walk
from ..ir.turns import in_turn, made_in_turn, taking_turns
from ..ir.types import Array, Generator, Scalar, Tuple, Type
from ..ops.recursive import calls_itself, recursive_callees
from . import cache as disk
from .asked import (
    asked_first,
    some_length_is_one,
    some_length_is_short,
    unlike,
)
from .checks import written_in_place
from .effort import Effort
from .extremes import shadowing
from .heap import keep_freed_memory
from .into import HELPERS, into_form
from .lengths import ByLengths, has_use
from .load import TEXT, load, register
from .otherwise import Otherwise
from .parts import natural
from .printed import after, counted, printed
from .raised import raised_again
from .spelling import NATURAL, allocating, imports, not_negative, spelled
from .told import telling
from .trap import first_bad, is_checking, watching
from .trapped import trapped
from .worth import BySize, MoreWork, chooser

FLAGS = {False: "{'contract'}", True: "{'contract', 'reassoc', 'nsz', 'arcp'}"}
keep_freed_memory()
_modules: dict[str, types.ModuleType] = {}  # by key: the same program is loaded once in a process
_entries: list = []  # the dispatchers made in this process


class CompileError(S2SError):
    """Numba refuses what s2s has generated: a bug in s2s, or an op that has no native form."""


def compiled(function: Function, *, target: str = "cpu", fastmath: bool = False, parallel: bool | None = None,
             cache: bool = True) -> Native | BySize | ByLengths:
    """Native code of `function`, called with its parameters as flat positional arguments.

    Compiling happens at the first call, for the layouts met there.  With `parallel` threads share large loops (worth.py).
    Raises UnsupportedError for a target that is not there, CompileError where Numba refuses the code; what the code raises names the user's line.
    """
    if target != "cpu":
        raise UnsupportedError(f"the target {target!r}", remedy='use target="cpu" or target="cuda"')
    # machine code that calls itself loses its own address on the way through Numba's cache, and crashes
    cache = cache and not any(map(calls_itself, recursive_callees(function)))

    def code(known: Function, supposes: bool = True) -> Native | BySize:
        supposes = supposes and has_suppositions(known)
        otherwise = Otherwise(functools.partial(code, known, False)) if supposes else None
        drafted = Draft(spelled(lower(known, supposes=supposes)), native=True)
        loops = chooser(drafted.sizes, len(function.params), parallel)

        def native(parts: frozenset[int]) -> Native:
            more = loops.conditions if loops is not None and not parts else []
            return Native(function, known, functools.partial(drafted.module, parts), fastmath, cache, more, otherwise)

        return native(frozenset()) if loops is None else BySize(loops, native)

    return ByLengths(function, code) if has_use(function) else code(settled(function))


def decorated(module: Module, fastmath: bool, checks: bool, own: bool = False, conditions: Mapping[str, Sequence[str]] | None = None) -> Module:
    """The text that Numba compiles: the loop form with a decorator above each function.

    In the process's `own` module Numba works as runtime/effort.py says, and Python can call the entry alone; a file to keep
    has neither.  The function itself begins by raising where one of the `conditions` on `a0`, `a1`, ... holds, which stand by exception.
    """
    conditions = {error: texts for error, texts in (conditions or {}).items() if texts}
    said = " ".join(itertools.chain.from_iterable(conditions.values()))
    if own:
        module = replace(module, text="".join(map(allocating, module.text.splitlines(True))))
    options = f"error_model='numpy', fastmath={FLAGS[bool(fastmath)]}, nogil=True"
    if checks:
        options += ", boundscheck=True"
    head, inner = ["from numba import njit"], ""
    if own:
        head.append(f"from {Effort.__module__} import {Effort.__name__}")
        options, inner = f"{options}, pipeline_class={Effort.__name__}, no_cfunc_wrapper=True", ", no_cpython_wrapper=True"
    written, without = written_in_place(module.text) if own else ([], set())
    head += written + imports(module.text) + (shadowing(module.text) if own else [])
    head += [f"from {into_form.__module__} import {name} as into_{name}" for name in HELPERS if f"into_{name}(" in module.text + said]
    looks = watching(module.text) if is_checking() else {}
    if looks:
        head.append(f"from {trapped.__module__} import trapped")
    if conditions:
        number, asked = asked_first(module, conditions)
        looks[number] = asked
        head += [f"from {each.__module__} import {each.__name__}" for each in (some_length_is_one, some_length_is_short, MoreWork)
                 if each.__name__ in asked]
    known = {number: said for number, line in enumerate(module.text.splitlines(), 1) if own and (said := not_negative(line))}
    if known:
        head.append(f"from {natural.__module__} import {natural.__name__} as {NATURAL}")
    text, moved = [*head], {}  # where each line goes
    for number, line in enumerate(module.text.splitlines(), 1):
        if number in without:
            continue
        if line.startswith("def "):
            text.append(f"@njit({options}{'' if line.startswith(f'def {module.entry}(') else inner})")
        text.append(line)
        moved[number] = len(text)
        text += [more[number] for more in (known, looks) if number in more]
    lines, raises = ({moved[number]: x for number, x in found.items() if number in moved}
                     for found in (module.lines, module.raises))
    return Module("\n".join(text) + "\n", module.entry, lines, module.given, raises)


def loaded(module: Module, cache: bool, params: Sequence[Type]) -> types.ModuleType:
    """The module object of the text of a function of `params`, its dispatchers connected with the cache on disk."""
    key = disk.key_of(module.text, ", ".join(["cpu", *map(str, params)]))
    if module.given:  # objects of this process, which no other knows
        key, cache = f"{key}_{'_'.join(str(id(x)) for x in module.given.values())}", False
    if key in _modules:
        return _modules[key]
    name = f"s2s_{module.entry}_{key}"
    folder = disk.private_directory() if cache else None
    filename = register(module.text, module.entry) if folder is None else str(folder / f"{module.entry}-{key}.py")
    if folder is not None:
        keep_text(filename, module.text)
    made = types.ModuleType(name)
    made.__file__ = filename
    made.print = counted
    made.__dict__.update(module.given)
    made.__dict__[TEXT] = module.text
    sys.modules[name] = made  # machine code from the cache refers to its module by name
    exec(compile(module.text, filename, "exec"), made.__dict__)
    entry = getattr(made, module.entry)
    _entries.append(entry)
    if folder is not None:
        entry._cache = disk.DiskCache(folder, f"{module.entry}-{key}")
    admitting(entry, module.entry, params)
    _modules[key] = made
    return made


def statistics() -> tuple[int, int]:
    """How many signatures this process has compiled, and how many it has loaded from the cache on disk."""
    stats = [entry.stats for entry in _entries]
    return sum(sum(s.cache_misses.values()) for s in stats), sum(sum(s.cache_hits.values()) for s in stats)


def keep_text(filename: str, text: str) -> None:
    """Write the text beside its machine code, where tracebacks and debuggers find it."""
    path = disk.Path(filename)
    try:
        if path.read_text() == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    disk.write(path, text.encode(), plain=True)


class Native:
    """The native code of `function`, called with its parameters; what it raises is explained on the way out.

    The code is that of `known`, which is `function` for arguments of known lengths; `write` gives its text, which is asked for when it is first
    wanted.  It is for calls of which none of `more` holds.  Where what is needed of lengths and of numbers does not hold, the code that checks
    indices is called, which is compiled when that happens first.  What is needed of numbers is `required`, and asked in Python, whose
    integers do not overflow.  Where what the code supposes of lengths does not hold, `otherwise` is called.
    """

    def __init__(self, function: Function, known: Function, write: Callable[[], Module], fastmath: bool, cache: bool, more: Sequence[str] = (),
                 otherwise: Otherwise | None = None):
        self.function, self.known, self.write, self.__name__ = function, known, write, function.name
        self.fastmath, self.cache, self.otherwise = fastmath, cache, otherwise
        required = requirements(known)
        self.checks = required is None
        self.required = [text for text in required or [] if is_of_numbers(text)]
        self.unlike = {TypeError.__name__: unlike(function), MoreWork.__name__: more}
        self.outside = [f"not ({text})" for text in required or [] if text not in self.required]
        self.modules: dict[str, Module] = {}  # what is compiled, by file
        self.careful: Callable | None = None  # checks indices though nothing that is required fails
        self.holds = condition(function, required) if required else None
        self.narrowed = narrowing(function)
        self.is_in_python = False  # compiling has failed
        self.is_trap = is_checking()
        self.prints = any(op.name == "print" for op in walk(function.block))
        self.generators = [k for k, p in enumerate(function.params) if isinstance(p.type, Generator)]
        self.is_pure = not (self.is_trap or self.prints or self.generators)  # running it twice is running it once

    @property
    def whole(self) -> Native:
        """The code itself, where there may be code for calls of other sizes; what supposes nothing, once that was needed."""
        return self if self.otherwise is None or not self.otherwise.is_made else self.otherwise.code.whole

    fits = "True"

    def conditions(self, checks: bool, *more: str) -> dict[str, list[str]]:
        """Which arguments native code is not for, by what it raises then."""
        return {**self.unlike, TypeError.__name__: [*self.unlike[TypeError.__name__], *([] if checks else self.outside), *more]}

    @made_in_turn
    def module(self) -> Module:
        """The loops, as text."""
        return self.write()

    @made_in_turn
    def dispatcher(self) -> Callable:
        """Numba's dispatcher of the code that is called where what is required holds."""
        return self.dispatcher_of(self.checks)

    @made_in_turn
    def run(self) -> Callable:
        """What returns what the code returns, or raises: nothing is known of the arguments yet, they may be of another kind."""
        return self.where_it_holds if self.required else self.dispatcher

    def dispatcher_of(self, checks: bool) -> Callable:
        """Numba's dispatcher of the code, with checks of indices or without."""
        with taking_turns():
            native = decorated(self.module, self.fastmath, checks, True, self.conditions(checks))
            found = getattr(loaded(native, self.cache, [p.type for p in self.function.params]), native.entry)
            self.modules[found.py_func.__code__.co_filename] = native
            return found

    @made_in_turn
    def into(self) -> Callable:
        """Numba's dispatcher of the form that writes results into arrays behind the arguments, where there are such."""
        params, types = [p.type for p in self.function.params], [y.type for y in self.function.results]
        form, shares = into_form(self.module, params, types)
        native = decorated(form, self.fastmath, self.checks, True, self.conditions(self.checks, shares))
        taken = [type for type in types if isinstance(type, Array)]
        return getattr(loaded(native, self.cache, [*params, *taken]), native.entry)

    def of_numbers(self) -> Callable:
        """What to call where all arguments are numbers of Python's, of the parameters' dtypes: past the dispatcher, if they have been met."""
        kinds = tuple(getattr(numba.types, p.type.dtype) for p in self.function.params)
        found = self.dispatcher.overloads.get(kinds)
        return self.dispatcher if found is None else found.entry_point

    def where_it_holds(self, *args):
        """What the code returns where what is needed holds."""
        if not self.holds(*args):
            raise OtherKind
        return self.dispatcher(*args)

    def __call__(self, *args):
        if self.otherwise is not None and self.otherwise.is_made:
            return self.otherwise.code(*args)
        if self.is_in_python:
            return interpreted(self.function, args)
        function, is_disproved = self.function, False
        before = printed() if self.prints else 0
        drawn = [args[k].bit_generator.state for k in self.generators]
        try:
            if self.holds is None or self.holds(*args):
                result = self.dispatcher(*args)
            else:
                if self.careful is None:
                    self.careful = self.dispatcher_of(checks=True)
                result = self.careful(*args)
            if self.is_trap and first_bad(result) is not None:
                return interpreted(function, args, printed() - before if self.prints else 0)
            return result if self.narrowed is None else self.narrowed(result)
        except NumbaError as error:
            refusal = explained(error, function)
        except NotCompiled as error:
            self.is_in_python, self.is_pure, refusal = True, False, None
            warnings.warn(f"{function.name} runs in Python, slowly: compiling it has failed ({error})", InterpretedWarning, stacklevel=4)
        except Exception as error:
            refusal = raised_again(error, self.modules)
            is_disproved = refusal is None and self.otherwise is not None and self.otherwise.is_wanted(error)
        if is_disproved:
            return self.otherwise.code(*args)
        if refusal is not None:  # raised here, where no other exception is being handled and shown beside it
            raise refusal
        for k, state in zip(self.generators, drawn):  # what compiled code has drawn is drawn again
            args[k].bit_generator.state = state
        return interpreted(function, args, printed() - before if self.prints else 0)


def is_of_numbers(text: str) -> bool:
    """Whether a condition on `a0`, `a1`, ... asks for more than shapes."""
    return re.search(r"a\d+(?!\d*\.shape)", text) is not None


def condition(function: Function, required: list[str]) -> Callable:
    """Whether the arguments are such that no index can leave its array."""
    parameters = ", ".join(f"a{k}" for k in range(len(function.params)))
    return eval(f"lambda {parameters}: {' and '.join(required)}")


class OtherKind(Exception):
    """The arguments are of another kind than the code is for."""


class NotCompiled(Exception):
    """Compiling has ended in an error which is no refusal: Numba has met what it did not foresee."""


class InterpretedWarning(UserWarning):
    """A function that was to be compiled runs in Python."""

def admitting(dispatcher: Callable, name: str, params: Sequence[Type]) -> None:
    """Have the dispatcher compile for other layouts only, not for other dtypes and ranks, when arguments come that it does not know."""
    compile_for = dispatcher._compile_for_args

    def admit(*args, **keywords):
        if not all(map(is_of_type, args, params)):
            raise OtherKind
        with taking_turns(), telling(name):
            try:
                return compile_for(*args, **keywords)
            except NumbaError:
                raise
            except Exception as error:  # nothing that the program would raise
                raise NotCompiled(f"{type(error).__name__}: {error}") from error

    dispatcher._compile_for_args = admit


def is_of_type(x, type: Type) -> bool:
    """Whether an array has the dtype and the rank of `type`; other things are told apart before."""
    match type:
        case Array(dtype, dims):
            return isinstance(x, np.ndarray) and x.dtype.name == dtype and x.ndim == len(dims)
    return True


def narrowing(function: Function) -> Callable | None:
    """Give numbers among the results back their dtype; None where there is nothing to do.

    Numba returns every number as Python's int, float or complex, which float32 is not.
    """
    types_of_results = [y.type for y in function.results]
    if not any(map(is_narrow, types_of_results)):
        return None
    if function.tupled:
        return lambda results: tuple(map(as_type, results, types_of_results))
    return lambda result: as_type(result, types_of_results[0])


def is_narrow(type: Type) -> bool:
    """Whether values of `type` hold numbers that are none of Python's."""
    match type:
        case Scalar(dtype):
            return dtype not in ("bool", "int64", "float64", "complex128")
        case Tuple(items):
            return any(map(is_narrow, items))
    return False


def as_type(x, type: Type):
    """`x`, its numbers of the dtypes that `type` says."""
    match type:
        case Scalar(dtype) if is_narrow(type):
            return np.dtype(dtype).type(x)
        case Tuple(items):
            return tuple(map(as_type, x, items))
    return x


def explained(error: NumbaError, function: Function) -> CompileError:
    """Numba's refusal in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(("Failed in", "-", "File"))), lines[0] if lines else "")
    return CompileError(f"{function.name} cannot be compiled: {reason}", None,
                        "call it without jit, and report this program")


def interpreted(function: Function, args: tuple, printed: int = 0):
    """What the interpreted form does with arguments that made compiled code raise: normally, raise too.

    What compiled code has `printed` is not printed again.
    Note [Where an error came from]
    """
    module = in_turn(render)(function)
    with np.errstate(all="ignore"):
        return load(module.text, module.entry, module.lines, given={**module.given, "print": after(printed)})(*args)


def silence() -> None:
    """Numba's advice on contiguous arrays and object mode is about code that its user did not write."""
    ours = r"<s2s |.*-[0-9a-f]{32}$"
    warnings.filterwarnings("ignore", category=NumbaPerformanceWarning, module=ours)
    warnings.filterwarnings("ignore", "Code running in object mode", NumbaWarning, module=ours)
    # a tape that one half of a derivative hands to the other through Python is a list
    warnings.filterwarnings("ignore", r"(?s).*reflected list.*-[0-9a-f]{32}\.py", NumbaWarning)


silence()
