"""Memory sanitizer of native code: S2S_CHECK=memory (check_flags.py).

    y[i] = x[j]        if not 0 <= j < len(x): raise MemoryCheckError      (after wrap-around)
                       if not 0 <= i < len(y): raise MemoryCheckError
    y = np.empty(n)    guard words before and behind the elements, compared when y is freed or
                       returned; elements that nobody has written, or that are freed, are NaN

Elsewhere in s2s an index is proved to be inside of its array, by ranges and by extents that have
the same name, and nothing is checked.  Here nothing is believed: every index of every element is
compared with the extent that the array has while the program runs, in code that is written
directly (emit/), in code that goes Numba's way, and in what Numba compiles of its own.  What
library routines write beside arrays that native code has made, the guard words show.  The
program's own checks stand before the access, so an error here is an error of s2s's.

Such code differs from other code by its pipeline class (runtime/numba/compiler.py), which its text
names: so it has keys of its own in the cache on disk and in the process.

Note [What cannot be lost]
Compiled code that raises is run again in the interpreter, programs catch exceptions, a loop in
parts knows only that some part has raised, and a buffer may be freed where nothing can be
raised.  So each violation is written into `record`, words of this process that native code knows
by a symbol, and whoever has called native code looks there first, whatever that returned or
raised.  `violations` has all of them, for test runs that ask at their end.

Note [What is not seen]
A slice that is read where it stands has no extents of its own: y = x[:k] may be read beyond k, in
x.  A routine of LAPACK that is handed right lengths and reads beside what they say is not seen,
either, until it writes.  tests/extents.py compares values, for every op.

Considered: Numba's boundscheck, which knows one error for the program's mistakes and for ours,
and sends every function Numba's way, so that the code that is checked is not the code that is
run; AddressSanitizer, which needs an instrumented Python, and sees no element of one row read as
one of the next.
"""

from __future__ import annotations

import ctypes
import functools
import types
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import binding, ir

from ...back.print.printer import Module
from ...errors import Line, MemoryCheckError
from ..llvm.helper_functions import leave_if, outlined
from ..numba_internals import MemInfo, cgutils
from .load_source import line_of

WORD, VOID, BYTES = ir.IntType(64), ir.VoidType(), cgutils.voidptr_t
RECORD = "s2s_sanitizer_record"  # symbols in native code
GUARD_CHECK = "s2s_guard_check"
KIND, LINE, AXIS, INDEX, LENGTH = range(5)  # its words
INDEX_OUTSIDE, GUARD_OVERWRITTEN, LENGTHS_DIFFER = 1, 2, 3  # kinds of violations
SAID = "native code would have touched memory that is not its own"
NUMBAS = ("index is out of bounds",)  # the messages of Numba's own checks

GUARD = 0x5AFE_C0DE_D15C_0B01  # the guard word
GUARDS = 8  # before the elements, and behind them
MAGIC = 0x5325_5347_5541_5244  # magic first word of memory with guard words
HEAD = 8 * (2 + GUARDS)  # bytes: MAGIC, how many bytes the elements take, guard words
ALIGNED = 32  # bytes, to which elements are aligned
UNWRITTEN = 0xFF  # fill byte of uninitialised elements: NaN, -1
REST = HEAD + ALIGNED + 8 * GUARDS  # bytes besides the elements

record = np.zeros(8, np.int64)
violations: list[MemoryCheckError] = []  # all violations in this process
binding.add_symbol(RECORD, record.ctypes.data)


# ------------------------------------------------------------------------------- in native code


def check_index(
    context, builder, indices: Sequence[ir.Value], shape: Sequence[ir.Value], line: int
) -> None:
    """Raise MemoryCheckError where an index, counted from the front, is out of bounds of its axis.
    """
    bad, found = None, None
    for axis in reversed(range(len(indices))):
        k, n = indices[axis], shape[axis]
        outside = builder.icmp_unsigned(">=", k, n)
        word = [WORD(axis), k, n]
        found = (
            word if found is None else [builder.select(outside, x, y) for x, y in zip(word, found)]
        )
        bad = outside if bad is None else builder.or_(bad, outside)
    stop(context, builder, bad, INDEX_OUTSIDE, line, *found)


def check_lengths(context, builder, n: ir.Value, m: ir.Value) -> None:
    """Raise MemoryCheckError where a library routine gets lengths `n` and `m` that differ."""
    stop(context, builder, builder.icmp_signed("!=", n, m), LENGTHS_DIFFER, 0, WORD(0), n, m)


def stop(context, builder, condition: ir.Value, kind: int, line: int, *words: ir.Value) -> None:
    """If the condition holds, record the violation and raise MemoryCheckError."""
    with builder.if_then(condition, likely=False):
        given = [WORD(line), *words]

        def write(inner, *args: ir.Value) -> None:
            note(inner, kind, *args)
            context.call_conv.set_static_user_exc(inner, MemoryCheckError, (SAID,))
            inner.ret(inner.function.ftype.return_type(1))

        has_raised = outlined(context, builder, f"sanitizer_{kind}", ir.IntType(1), given, write)
        leave_if(builder, has_raised)


def note(builder, kind: int, *words: ir.Value) -> None:
    """Record a violation; the first one stays."""
    module = builder.module
    place = module.globals.get(RECORD) or ir.GlobalVariable(
        module, ir.ArrayType(WORD, len(record)), RECORD
    )

    def word(k: int) -> ir.Value:
        return cgutils.gep_inbounds(builder, place, 0, k)

    is_first = builder.icmp_signed("==", builder.load(word(KIND)), WORD(0))
    with builder.if_then(is_first):
        for k, x in enumerate((WORD(kind), *words)):
            builder.store(x, word(k))


def guarded_memory(context, builder, size: ir.Value) -> tuple[ir.Value, Callable[[], ir.Value]]:
    """Numba's object that owns memory for elements of `size` bytes, or null, and a function that
    writes the guard words, if there is memory, and returns the address of the elements.
    """
    meminfo = context.nrt.meminfo_alloc_dtor_unchecked(
        builder, builder.add(size, WORD(REST)), guard_check(builder.module)
    )

    def guarded() -> ir.Value:
        base = builder.ptrtoint(context.nrt.meminfo_data(builder, meminfo), WORD)
        for k, x in enumerate((WORD(MAGIC), size)):
            builder.store(x, word_at(builder, base, k))
        start = elements_of(builder, base)
        for place in guard_places(builder, start, size):
            builder.store(WORD(GUARD), place, align=1)
        elements = builder.inttoptr(start, BYTES)
        cgutils.memset(builder, elements, size, UNWRITTEN)
        return elements

    return meminfo, guarded


def word_at(builder, address: ir.Value, k: int) -> ir.Value:
    """The address of the k-th word behind an address."""
    return builder.inttoptr(builder.add(address, WORD(8 * k)), WORD.as_pointer())


def elements_of(builder, base: ir.Value) -> ir.Value:
    """The address of the elements in guarded memory."""
    return builder.and_(builder.add(base, WORD(HEAD + ALIGNED - 1)), WORD(-ALIGNED))


def guard_places(builder, start: ir.Value, size: ir.Value) -> list[ir.Value]:
    """The addresses of the guard words around elements."""
    end = builder.add(start, size)
    return [
        *(word_at(builder, start, k) for k in range(-GUARDS, 0)),
        *(word_at(builder, end, k) for k in range(GUARDS)),
    ]


def guard_check(module: ir.Module) -> ir.Function:
    """The function that Numba calls before guarded memory is freed, as a declaration in `module`.

    Its code belongs to the process: an array may outlive the program that made it, whose own code
    is freed with it.
    """
    guard_checks()
    if GUARD_CHECK in module.globals:
        return module.globals[GUARD_CHECK]
    return ir.Function(module, ir.FunctionType(VOID, [BYTES, WORD, BYTES]), GUARD_CHECK)


def provide(names: Sequence[str]) -> None:
    """Define the symbol of the function above if code from the cache names it."""
    if GUARD_CHECK in names:
        guard_checks()


@functools.cache
def guard_checks() -> binding.ExecutionEngine:
    """The engine of the function that records a violation if a guard word has changed, compiled
    once and known to machine code by its name.
    """
    module = ir.Module("s2s_sanitizer")
    function = ir.Function(module, ir.FunctionType(VOID, [BYTES, WORD, BYTES]), "check")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    base = builder.ptrtoint(function.args[0], WORD)
    size = builder.load(word_at(builder, base, 1))
    bad = builder.icmp_unsigned("!=", builder.load(word_at(builder, base, 0)), WORD(MAGIC))
    for place in guard_places(builder, elements_of(builder, base), size):
        bad = builder.or_(
            bad, builder.icmp_unsigned("!=", builder.load(place, align=1), WORD(GUARD))
        )
    with builder.if_else(bad, likely=False) as (then, otherwise):
        with then:
            note(builder, GUARD_OVERWRITTEN, WORD(0), WORD(0), WORD(0), size)
        with otherwise:
            cgutils.memset(
                builder, builder.inttoptr(elements_of(builder, base), BYTES), size, UNWRITTEN
            )
    builder.ret_void()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(opt=1)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
    engine.finalize_object()
    binding.add_symbol(GUARD_CHECK, engine.get_function_address("check"))
    return engine


# ------------------------------------------------------------------------------------ in Python


def watched(run: Callable, args: tuple, module: Module, is_careful: bool):
    """Run `run(*args)`; raise MemoryCheckError if native code violated memory.

    `module` is the text of the code.  Code with bounds checks raises Numba's IndexError for the
    program's own mistakes.
    """
    result, raised = None, None
    try:
        result = run(*args)
    except Exception as error:
        raised = error
    else:
        look_at_guards(result)
    if record[KIND]:
        violation = described(module)
    elif isinstance(raised, IndexError) and raised.args == NUMBAS and not is_careful:
        violation = MemoryCheckError(f"{SAID}: an index that no element has", None, REMEDY)
    elif raised is not None:
        raise raised
    else:
        return result
    result = None  # whose guard words are compared again when it is freed
    record[:] = 0
    violations.append(violation)
    raise violation


REMEDY = "report this program: it is an error of s2s, not of the program"


def described(module: Module) -> MemoryCheckError:
    """The recorded violation, as text."""
    kind, number, axis, index, length = map(int, record[: LENGTH + 1])
    line: Line | None = line_of(number, getattr(module, "lines", {})) if number else None
    text = module.text.splitlines()[number - 1].strip() if number else ""
    if kind == INDEX_OUTSIDE:
        what = f"index {index} of axis {axis}, which has {length} elements" + (
            f", in `{text}`" if text else ""
        )
    elif kind == LENGTHS_DIFFER:
        what = f"a routine was handed arrays of {index} elements for {length}"
    else:
        what = f"it has written beside an array of {length} bytes"
    return MemoryCheckError(f"{SAID}: {what}", line, REMEDY)


def look_at_guards(result: object) -> None:
    """Record a violation where the guard words around a returned array have changed."""
    if isinstance(result, (tuple, list)):
        for each in result:
            look_at_guards(each)
    elif isinstance(result, np.ndarray):
        owner = result.base
        while isinstance(owner, np.ndarray):
            owner = owner.base
        if isinstance(owner, MemInfo) and memoryview(owner).nbytes >= REST:
            magic, size = (ctypes.c_uint64.from_address(owner.data + 8 * k).value for k in range(2))
            if magic == MAGIC and has_changed(owner.data, size) and not record[KIND]:
                record[KIND], record[LENGTH] = GUARD_OVERWRITTEN, size


def has_changed(base: int, size: int) -> bool:
    """Whether a guard word has changed around elements of `size` bytes, in memory at `base`."""
    start = (base + HEAD + ALIGNED - 1) & -ALIGNED
    around = [
        *range(start - 8 * GUARDS, start, 8),
        *range(start + size, start + size + 8 * GUARDS, 8),
    ]
    return any(ctypes.c_uint64.from_address(place).value != GUARD for place in around)


def clear() -> Sequence[MemoryCheckError]:
    """Forget all recorded violations, or these."""
    found = [*violations]
    violations.clear()
    if record[KIND]:  # in memory that was freed after the last call
        found.append(described(NO_MODULE))
        record[:] = 0
    return found


NO_MODULE = types.SimpleNamespace(text="", lines={})
