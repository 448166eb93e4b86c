"""Native code: the loop form of a function, compiled by Numba.

`compiled(function)` is a callable on flat positional arguments.  Its module is the same text that
`.lower().loops` shows, with `@njit` above each function; layouts and read-only flags are told apart by
Numba's own dispatcher, in C, and each is compiled when it is first met.

Note [Flags]
error_model="numpy": division by zero makes inf or nan, as in NumPy.  fastmath={"contract"}: a * b + c may
be one instruction, which rounds once where NumPy rounds twice; results differ from the interpreted ones in
the last bit, never in what NaN and infinity do.  fastmath=True also lets sums be reordered, which is what
makes them vectorise; still never nnan or ninf, because adjoints meet both.  nogil: compiled code holds no
Python object.

Note [Indices]
An index out of range raises IndexError.  Ranges prove most indices; for the others back/ranges.py says what
would have to hold of the arguments, which is asked at each call, in Python.  Where it holds, the code runs
that checks nothing; where not, or where an index is data, Numba's boundscheck, a flag for a whole function.

Note [Where an error came from]
Where the program says `raise`, compiled code raises, too, and Numba notes the line (runtime/raised.py).  In
other places it does not know its line, and carrying it would cost every access.  An error is rare and ends
the run, so the interpreted form of the same function is run again on the same arguments, which compiled
code has not changed: it raises the same error, with the index and the user's line.  Compiled code checks
lengths and ranges of indices before loops, so it may complain of what the loop would never have come to;
then the interpreted form returns, and what it returns is the result.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable

import numpy as np
from numba.core.errors import NumbaError, NumbaPerformanceWarning, NumbaWarning

from ..back.loops import lower
from ..back.python import Module, render
from ..back.ranges import requirements
from ..errors import S2SError, UnsupportedError
from ..ir.graph import Function, walk
from ..ir.turns import in_turn
from ..ir.types import Generator, Scalar, Tuple, Type
from ..ops.recursive import calls_itself, recursive_callees
from . import cache as disk
from .effort import Effort
from .load import load, register
from .printed import after, counted, printed
from .raised import raised_again
from .spelling import imports, spelled
from .trap import first_bad, is_checking, trapped, watching
from .worth import by_size, chooser

FLAGS = {False: "{'contract'}", True: "{'contract', 'reassoc', 'nsz', 'arcp'}"}
_modules: dict[str, types.ModuleType] = {}  # by key: the same program is loaded once in a process
_entries: list = []  # the dispatchers made in this process


class CompileError(S2SError):
    """Numba refuses what s2s has generated: a bug in s2s, or an op that has no native form."""


def compiled(function: Function, *, target: str = "cpu", fastmath: bool = False, parallel: bool | None = None,
             cache: bool = True) -> Callable:
    """Native code of `function`, called with its parameters as flat positional arguments.

    Compiling happens at the first call, for the layouts met there.  With `parallel` threads share large loops (worth.py).
    Raises UnsupportedError for a target that is not there, CompileError where Numba refuses the code; what the code raises names the user's line.
    """
    if target != "cpu":
        raise UnsupportedError(f"the target {target!r}", remedy='use target="cpu" or target="cuda"')
    # machine code that calls itself loses its own address on the way through Numba's cache, and crashes
    cache = cache and not any(map(calls_itself, recursive_callees(function)))
    required = requirements(function)
    lowered = spelled(lower(function))

    def native(module: Module) -> Callable:
        natives: dict[str, Module] = {}  # by file

        def dispatcher(checks: bool) -> Callable:
            native = decorated(module, fastmath, checks, own=True)
            found = getattr(loaded(native, cache), native.entry)
            natives[found.py_func.__code__.co_filename] = native
            return found

        if required is None:
            return guarded(dispatcher(True), function, module, natives)
        if not required:
            return guarded(dispatcher(False), function, module, natives)
        return guarded(dispatcher(False), function, module, natives, condition(function, required), lambda: dispatcher(True))

    whole = render(lowered, native=True, parts=())
    loops = chooser(whole.sizes, len(function.params), parallel)
    if loops is None:
        return native(whole)
    return by_size(loops, lambda parts: native(render(lowered, native=True, parts=parts) if parts else whole))


def condition(function: Function, required: list[str]) -> Callable:
    """Whether the arguments are such that no index can leave its array."""
    parameters = ", ".join(f"a{k}" for k in range(len(function.params)))
    return eval(f"lambda {parameters}: {' and '.join(required)}")


def decorated(module: Module, fastmath: bool, checks: bool, own: bool = False) -> Module:
    """The text that Numba compiles: the loop form with a decorator above each function.

    In the process's `own` module Numba works as runtime/effort.py says, and Python can call the entry alone; a file to keep
    has neither.
    """
    options = f"error_model='numpy', fastmath={FLAGS[bool(fastmath)]}, nogil=True"
    if checks:
        options += ", boundscheck=True"
    head, inner = ["from numba import njit"], ""
    if own:
        head.append(f"from {Effort.__module__} import {Effort.__name__}")
        options, inner = f"{options}, pipeline_class={Effort.__name__}", ", no_cpython_wrapper=True, no_cfunc_wrapper=True"
    head += imports(module.text)
    looks = watching(module.text) if is_checking() else {}
    if looks:
        head.append(f"from {trapped.__module__} import trapped")
    text, moved = [*head], {}  # where each line goes
    for number, line in enumerate(module.text.splitlines(), 1):
        if line.startswith("def "):
            text.append(f"@njit({options}{'' if line.startswith(f'def {module.entry}(') else inner})")
        text.append(line)
        moved[number] = len(text)
        text += [looks[number]] if number in looks else []
    lines, raises = ({moved[number]: x for number, x in found.items() if number in moved}
                     for found in (module.lines, module.raises))
    return Module("\n".join(text) + "\n", module.entry, lines, module.given, raises)


def loaded(module: Module, cache: bool) -> types.ModuleType:
    """The module object of the text, its dispatchers connected with the cache on disk."""
    key = disk.key_of(module.text, "cpu")
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
    sys.modules[name] = made  # machine code from the cache refers to its module by name
    exec(compile(module.text, filename, "exec"), made.__dict__)
    entry = getattr(made, module.entry)
    _entries.append(entry)
    if folder is not None:
        entry._cache = disk.DiskCache(folder, f"{module.entry}-{key}")
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


def guarded(dispatcher: Callable, function: Function, module: Module, natives: dict[str, Module], safe: Callable | None = None,
            careful: Callable | None = None) -> Callable:
    """Call `dispatcher`; what it raises is explained on the way out.

    Where `safe(*args)` does not hold, the code that checks indices is called, which `careful()` makes.
    """
    checked: list[Callable] = []
    narrowed = narrowing(function)
    is_trap = is_checking()
    prints = any(op.name == "print" for op in walk(function.block))
    generators = [k for k, p in enumerate(function.params) if isinstance(p.type, Generator)]

    def call(*args):
        before = printed() if prints else 0
        drawn = [args[k].bit_generator.state for k in generators]
        try:
            if safe is None or safe(*args):
                result = dispatcher(*args)
            else:
                if not checked:
                    in_turn(lambda: checked or checked.append(careful()))()
                result = checked[0](*args)
            if is_trap and first_bad(result) is not None:
                return interpreted(function, args, printed() - before if prints else 0)
            return result if narrowed is None else narrowed(result)
        except NumbaError as error:
            refusal = explained(error, function)
        except Exception as error:
            refusal = raised_again(error, natives)
        if refusal is not None:  # raised here, where no other exception is being handled and shown beside it
            raise refusal
        for k, state in zip(generators, drawn):  # what compiled code has drawn is drawn again
            args[k].bit_generator.state = state
        return interpreted(function, args, printed() - before if prints else 0)

    call.dispatcher, call.module, call.__name__ = dispatcher, module, function.name
    return call


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
