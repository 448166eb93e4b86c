"""Load native text as a module compiled by Numba: decorate each function, load once per process,
cache on disk.

Note [Flags]
error_model="numpy": division by zero makes inf or nan, as in NumPy.  fastmath={"contract"}: a * b +
c may be one instruction, which rounds once where NumPy rounds twice; results differ from the
interpreted ones in the last bit, never in what NaN and infinity do.  fastmath=True also lets sums
be reordered, which is what makes them vectorise; still never nnan or ninf, because adjoints meet
both.  nogil: compiled code holds no Python object.  The sums of an adjoint are compiled code's to
order and to bracket (back/loops/reassociate/shorten_recurrences.py,
back/loops/reassociate/factor.py): where infinite terms cancel to NaN, a bracket may keep an
infinity.
"""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numba import NumbaError

from ...back.arrays.legalise import exceeds_word
from ...back.print.out_of_ssa import BUILTINS
from ...back.print.printer import Module
from ...check_flags import is_requested
from ...ir.compile_lock import taking_turns
from ...ir.types import Array, Type
from ..cache import machine_code as disk
from ..debug.load_source import TEXT, register
from ..debug.nan_trap import is_checking, watching
from ..debug.nan_trap_native import trapped
from ..debug.progress import telling
from ..entry.layout_adapter import door, in_order
from ..entry.length_guards import asked_first, some_length_is_one, some_length_is_short
from ..entry.out_argument import HELPERS, into_form
from ..entry.print_replay import counted
from ..intrinsics.inline_checks import written_in_place
from ..intrinsics.minmax import shadowing
from ..kernels import vector_math
from ..kernels.runtime_calls import NATURAL, RUNTIME, allocating, imports, name_of, not_negative
from ..threads.parallel_for import natural
from ..threads.parallel_threshold import MoreWork
from .compiler import Effort, Guarded, Sanitized

FLAGS = {False: "{'contract'}", True: "{'contract', 'reassoc', 'nsz', 'arcp'}"}
# what `decorated` imports, or says by name: no variable and no function of a program that is
# compiled may have these names
NATIVE_NAMES = (BUILTINS
                | frozenset({"njit", *map(name_of, RUNTIME), *vector_math.__all__,
                             *(f"into_{name}" for name in HELPERS), NATURAL, trapped.__name__,
                             *(each.__name__
                               for each in (Effort, Guarded, Sanitized, some_length_is_one,
                                            some_length_is_short, MoreWork))}))
# by key and adapted arguments: each program is loaded once per process
_modules: dict[tuple, types.ModuleType] = {}
_entries: list = []  # the dispatchers made in this process


class OtherKind(Exception):
    """The arguments are of another kind than the code is for."""


class NotCompiled(Exception):
    """Compilation failed with an error that is no refusal: Numba met something unforeseen."""


def decorated(module: Module, fastmath: bool, checks: bool, own: bool = False,
              conditions: Mapping[str, Sequence[str]] | None = None) -> Module:
    """The text for Numba: the loop form with a decorator on each function.

    In the process's `own` module Numba works as compiler.py says, and Python can call the entry
    alone; an exported file has neither.  The function starts with checks that raise if one of the
    `conditions` on `a0`, `a1`, ..., listed by exception, holds.
    """
    conditions = {error: texts for error, texts in (conditions or {}).items() if texts}
    said = " ".join(itertools.chain.from_iterable(conditions.values()))
    written, without = written_in_place(module.text) if own else ([], set())
    if own:
        module = replace(module, text="".join(map(allocating, module.text.splitlines(True))))
    options = f"error_model='numpy', fastmath={FLAGS[bool(fastmath)]}, nogil=True"
    if checks:
        options += ", boundscheck=True"
    head, inner = ["from numba import njit"], ""
    if own:
        pipeline = Effort if not is_requested("memory") else Guarded if checks else Sanitized
        head.append(f"from {pipeline.__module__} import {pipeline.__name__}")
        options, inner = (f"{options}, pipeline_class={pipeline.__name__}, no_cfunc_wrapper=True",
                          ", no_cpython_wrapper=True")
    head += (written + imports(module.text)
             + (shadowing("\n".join([module.text,
                                     *itertools.chain.from_iterable(conditions.values())])) if own
                else []))
    head += [f"from {into_form.__module__} import {name} as into_{name}"
             for name in HELPERS if f"into_{name}(" in module.text + said]
    looks = watching(module.text) if is_checking() else {}
    if looks:
        head.append(f"from {trapped.__module__} import trapped")
    if conditions:
        number, asked = asked_first(module, conditions)
        looks[number] = asked
        head += [f"from {each.__module__} import {each.__name__}"
                 for each in (some_length_is_one, some_length_is_short, MoreWork)
                 if each.__name__ in asked]
    known = {number: said
             for number, line in enumerate(module.text.splitlines(), 1)
             if own and (said := not_negative(line))}
    if known:
        head.append(f"from {natural.__module__} import {natural.__name__} as {NATURAL}")
    text, moved = [*head], {}  # the new text, and the new number of each line
    for number, line in enumerate(module.text.splitlines(), 1):
        if number in without:
            continue
        if line.startswith("def "):
            text.append(
                f"@njit({options}{'' if line.startswith(f'def {module.entry}(') else inner})")
        text.append(line)
        moved[number] = len(text)
        text += [each for more in (known, looks) if number in more
                 for each in more[number].splitlines()]
    lines, raises = ({moved[number]: x for number, x in found.items() if number in moved}
                     for found in (module.lines, module.raises))
    return Module("\n".join(text) + "\n", module.entry, lines, module.given, raises)


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
    if (key, arguments) in _modules:
        return _modules[key, arguments]
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
    made.__dict__[TEXT] = module.text
    sys.modules.setdefault(name, made)  # machine code from the cache refers to its module by name
    exec(compile(module.text, filename, "exec"), made.__dict__)
    entry = getattr(made, module.entry)
    _entries.append(entry)
    if folder is not None:
        entry._cache = disk.DiskCache(folder, f"{module.entry}-{key}")
    if own is None:
        admit_layouts_only(entry, module, cache, params, arguments, key)
    _modules[key, arguments] = made
    return made


def statistics() -> tuple[int, int]:
    """The number of signatures that this process has compiled, and loaded from the on-disk cache.
    """
    stats = [entry.stats for entry in _entries]
    return (sum(sum(s.cache_misses.values()) for s in stats),
            sum(sum(s.cache_hits.values()) for s in stats))


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
        with taking_turns(), telling(module.entry):
            try:
                return for_layouts(*args)
            except NumbaError:
                raise
            except Exception as error:  # no error of the program
                raise NotCompiled(f"{type(error).__name__}: {error}") from error

    dispatcher._compile_for_args = admit


def has_wide_integer(x) -> bool:
    """Whether the argument `x` is a Python integer that does not fit int64, or a list with one."""
    return any(map(has_wide_integer, x)) if type(x) is list else exceeds_word(x)


def is_of_type(x, type: Type) -> bool:
    """Whether an array has the dtype and rank of `type`; other types are distinguished before."""
    match type:
        case Array(dtype, dims):
            return isinstance(x, np.ndarray) and x.dtype.name == dtype and x.ndim == len(dims)
    return True
