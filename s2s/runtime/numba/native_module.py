"""Load native text as a module compiled by Numba: decorate each function, load once per process,
cache on disk.

Its options: njit_text.py, Note [Flags].
"""

from __future__ import annotations

import itertools
import sys
import types
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numba import NumbaError

from ...back.print.out_of_ssa import BUILTINS
from ...back.print.printer import Module
from ...check_flags import is_requested
from ...compile_lock import taking_turns
from ...ir.types import Array, Type
from ..cache import machine_code as disk
from ..debug.load_source import TEXT, register, release
from ..debug.nan_trap import is_checking, watching
from ..debug.nan_trap_native import trapped
from ..debug.progress import telling
from ..entry.boundary import has_wide_integer
from ..entry.layout_adapter import door, in_order
from ..entry.length_guards import entry_guard, some_length_is_one, some_length_is_short
from ..entry.out_argument import HELPERS, into_form
from ..entry.print_replay import counted
from ..intrinsics.inline_checks import written_in_place
from ..intrinsics.minmax import shadowing
from ..kernels import vector_math
from ..kernels.runtime_calls import NATURAL, RUNTIME, allocating, imports, name_of, not_negative
from ..llvm.program_engine import CODEGEN
from ..numba_internals import Dispatcher
from ..threads.parallel_for import natural
from ..threads.parallel_threshold import MoreWork
from .compiler import Effort, Guarded, Sanitized, let_go
from .njit_text import options, with_decorators, without_advice

# what `decorated` imports, or says by name: no variable and no function of a program that is
# compiled may have these names
NATIVE_NAMES = (BUILTINS
                | frozenset({"njit", *map(name_of, RUNTIME), *vector_math.__all__,
                             *(f"into_{name}" for name in HELPERS), NATURAL, trapped.__name__,
                             *(each.__name__
                               for each in (Effort, Guarded, Sanitized, some_length_is_one,
                                            some_length_is_short, MoreWork))}))
# global of a generated module: itself, which so lives as long as its functions
MODULE = "__s2s_module__"
RECENT = 8  # modules that stay after they were dropped
# by key and adapted arguments: a program that is in use is loaded once
_modules: weakref.WeakValueDictionary[tuple, types.ModuleType] = weakref.WeakValueDictionary()
_recent: deque[types.ModuleType] = deque(maxlen=RECENT)  # may be compiled and dropped in a loop


class Entries:
    """The dispatchers that are in use, in the order in which they were made, and the number of
    signatures that the others have compiled and loaded.
    """

    def __init__(self):
        self.references: list[weakref.ref] = []
        self.compiled = self.loaded = 0

    def append(self, entry) -> None:
        self.references.append(weakref.ref(entry, self.references.remove))
        weakref.finalize(entry, self.add, entry._cache_misses, entry._cache_hits).atexit = False

    def add(self, misses: Counter, hits: Counter) -> None:
        self.compiled += sum(misses.values())
        self.loaded += sum(hits.values())

    def __iter__(self):
        found = [reference() for reference in self.references]
        return iter([entry for entry in found if entry is not None])

    def __getitem__(self, k: int):
        return [*self][k]

    def statistics(self) -> tuple[int, int]:
        stats = [entry.stats for entry in self]
        return (self.compiled + sum(sum(s.cache_misses.values()) for s in stats),
                self.loaded + sum(sum(s.cache_hits.values()) for s in stats))


_entries = Entries()


class OtherKind(Exception):
    """The arguments are of another kind than the code is for."""


class NotCompiled(Exception):
    """The arguments are none that Numba takes."""


class Unforeseen(NotCompiled):
    """Compilation failed with an error that is no refusal: of s2s in Numba, or of Numba."""


def decorated(module: Module, fastmath: bool, checks: bool,
              conditions: Mapping[str, Sequence[str]] | None = None) -> Module:
    """The text for Numba: the loop form with a decorator on each function.

    Numba works as compiler.py says, and Python can call the entry alone.  The function starts with
    checks that raise if one of the `conditions` on `a0`, `a1`, ..., listed by exception, holds.
    """
    conditions = {error: texts for error, texts in (conditions or {}).items() if texts}
    said = " ".join(itertools.chain.from_iterable(conditions.values()))
    written, without = written_in_place(module.text)
    module = replace(module, text="".join(map(allocating, module.text.splitlines(True))))
    pipeline = Effort if not is_requested("memory") else Guarded if checks else Sanitized
    given = (f"{options(fastmath, checks)}, pipeline_class={pipeline.__name__}, "
             "no_cfunc_wrapper=True")
    head = ["from numba import njit", f"from {pipeline.__module__} import {pipeline.__name__}",
            *written, *imports(module.text),
            *shadowing("\n".join([module.text,
                                  *itertools.chain.from_iterable(conditions.values())])),
            *(f"from {into_form.__module__} import {name} as into_{name}"
              for name in HELPERS if f"into_{name}(" in module.text + said)]
    looks = watching(module.text) if is_checking() else {}
    if looks:
        head.append(f"from {trapped.__module__} import trapped")
    if conditions:
        number, asked = entry_guard(module, conditions)
        looks[number] = asked
        head += [f"from {each.__module__} import {each.__name__}"
                 for each in (some_length_is_one, some_length_is_short, MoreWork)
                 if each.__name__ in asked]
    known = {number: said
             for number, line in enumerate(module.text.splitlines(), 1)
             if (said := not_negative(line))}
    if known:
        head.append(f"from {natural.__module__} import {natural.__name__} as {NATURAL}")
    return with_decorators(
        module, head, lambda line: f"@njit({given})" if line.startswith(f"def {module.entry}(")
        else f"@njit({given}, no_cpython_wrapper=True)", [known, looks], without)


def loaded(module: Module, cache: bool, params: Sequence[Type], arguments: int | None = None,
           own: Mapping[str, object] | None = None) -> types.ModuleType:
    """The module object of the text of a function of `params`, its dispatchers connected to the
    on-disk cache.

    The first `arguments` of the parameters are put in order at entry; None: all are used in any
    layout.  The text refers to the `own` objects by name.
    """
    key = disk.key_of(module.text, ", ".join(["cpu", *map(str, params)]))
    if module.given:  # objects of this process only
        key, cache = f"{key}_{'_'.join(str(id(x)) for x in module.given.values())}", False
    if (found := _modules.get((key, arguments))) is not None:
        return found
    name = f"s2s_{module.entry}_{key}"
    folder = disk.private_directory() if cache else None
    filename = (register(module.text, module.entry) if folder is None
                else str(folder / f"{module.entry}-{key}.py"))
    if folder is not None:
        keep_text(filename, module.text)
    made = types.ModuleType(name)
    made.__file__ = filename
    made.print = counted
    made.__dict__.update(module.given)
    made.__dict__.update(own or {})
    made.__dict__.update({TEXT: module.text, MODULE: made, CODEGEN: None})
    if "objmode" in module.text:  # which looks for its module when it runs; so this one stays
        sys.modules.setdefault(name, made)
    if folder is None:
        weakref.finalize(made, release, filename).atexit = False
    exec(compile(module.text, filename, "exec"), made.__dict__)
    for x in [*made.__dict__.values()]:
        if isinstance(x, Dispatcher) and x.py_func.__globals__ is made.__dict__:
            let_go(x, made.__dict__)
    entry = getattr(made, module.entry)
    _entries.append(entry)
    if folder is not None:
        entry._cache = disk.DiskCache(folder, f"{module.entry}-{key}", made.__dict__)
    if own is None:
        admit_layouts_only(entry, module, cache, params, arguments, key)
    _modules[key, arguments] = made
    _recent.append(made)
    return made


def statistics() -> tuple[int, int]:
    """The number of signatures that this process has compiled, and loaded from the on-disk cache.
    """
    return _entries.statistics()


@contextmanager
def importable(scope: Mapping[str, object]) -> Iterator[None]:
    """Let a generated module, whose globals are `scope`, be imported by its name, as Numba does to
    compile it and to load it from the cache.  Before and after, it is no module of the process.
    """
    name, is_there = scope["__name__"], scope["__name__"] in sys.modules
    if not is_there:
        sys.modules[name] = scope[MODULE]
    try:
        yield
    finally:
        if not is_there:
            sys.modules.pop(name, None)


def keep_text(filename: str, text: str) -> None:
    """Write the text next to its machine code, for tracebacks and debuggers."""
    path = disk.Path(filename)
    try:
        if path.read_text() == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    disk.write(path, text.encode(), plain=True)


def admit_layouts_only(dispatcher: Callable, module: Module, cache: bool, params: Sequence[Type],
              arguments: int | None, key: str) -> None:
    """Make the dispatcher compile for new layouts only, not for new dtypes and ranks.

    Other layouts of the first `arguments` go through an adapter (runtime/entry/layout_adapter.py).
    """
    compile_for = dispatcher._compile_for_args

    def for_layouts(*args):
        kinds = tuple(map(dispatcher.typeof_pyval, args))
        inside = in_order(kinds, module.text, module.entry, arguments or 0)
        if inside == kinds:
            return compile_for(*args)
        made = door(dispatcher, kinds, inside, module.text, key,
                    lambda text, own: getattr(loaded(text, cache and not module.given, params,
                                                     own=own), text.entry))
        with importable(made.py_func.__globals__):
            entered = made.compile(kinds)
        dispatcher.add_overload(made.overloads[kinds])
        return entered

    def admit(*args):
        if not all(map(is_of_type, args, params)):
            raise OtherKind("the arguments are of other dtypes or ranks than the code is for")
        if any(map(has_wide_integer, args)):
            # Numba would take uint64, and compute modulo 2**64
            raise NumbaError("an integer of Python's that int64 does not hold")
        if any(isinstance(x, list) and any(isinstance(item, list) for item in x) for x in args):
            raise NotCompiled(
                "it is handed lists of lists, which Numba does not take from Python: "
                "put arrays into the list")
        with (taking_turns(), telling(module.entry), without_advice(),
              importable(dispatcher.py_func.__globals__)):
            try:
                return for_layouts(*args)
            except NumbaError:
                raise
            except Exception as error:  # no error of the program
                raise Unforeseen(f"{type(error).__name__}: {error}") from error

    dispatcher._compile_for_args = admit


def is_of_type(x, type: Type) -> bool:
    """Whether an array has the dtype and rank of `type`; other types are distinguished before."""
    match type:
        case Array(dtype, dims):
            return isinstance(x, np.ndarray) and x.dtype.name == dtype and x.ndim == len(dims)
    return True
