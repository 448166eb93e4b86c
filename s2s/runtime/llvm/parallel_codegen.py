"""Run LLVM in two threads: on the Python wrapper of a function, and on the function itself, in
pieces (split_module.py).

    the pieces, one after another     in a second thread, while the wrapper is emitted, and in this
                                      one, once the wrapper is compiled
    the Python wrapper of f           compiled here, at the lowest level, with code that runs once
                                      per call of f

LLVM takes half of a first call, and in a small program the Python wrapper takes a third of that.
Numba never inlines f into it, and it runs once per call, so little is lost by optimising it less:
it then takes a third of the time. It is emitted while LLVM works on f.

LLVM allows several threads if each has its own context. llvmlite does not: one lock surrounds all
of its functions. So all functions for a piece are called past the lock, on a context, a target
machine and passes that no other thread uses; where a version of llvmlite keeps its functions
elsewhere, the lock is held, and the threads take turns.

Considered: a process of its own (30 ms to hand a module over and back, and it has to be there); to
begin with each loop while Python writes the next (on two cores first calls took 0.97 to 1.06 of the
time, and 4 to 10 % more of the processor's).

A piece becomes an object file, which the engine loads beside the others; the cache stores all of
them. Its module is kept as bitcode, for linking or inspection: an LLVM context with a module in it
takes a megabyte.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from llvmlite import binding
from numba import config

from ..numba_internals import ContextRef, ffi

SHORT = 1e-4  # switch interval in seconds


class Symbol(NamedTuple):
    """A function or global variable of a module."""

    name: str
    is_declaration: bool


@dataclass
class Symbols:
    """The symbols of a module that is no longer in memory."""

    functions: list[Symbol]
    global_variables: list[Symbol]

    @staticmethod
    def of(module: binding.ModuleRef) -> Symbols:
        return Symbols(*([Symbol(x.name, x.is_declaration) for x in each]
                         for each in (module.functions, module.global_variables)))


class Piece:
    """A module to be compiled with these LLVM passes, after the function passes `before`; `code` is
    its machine code, once compiled.

    `size` is its expected compile time, relative to others.
    """

    def __init__(self, text: str, machine: binding.TargetMachine, passes: list,
                 before: tuple | None = None, each: float = 1.0):
        self.given, self.size = (text, machine, passes, before), each * text.count("\n")

    def make(self) -> None:
        text, machine, passes, before = self.given
        try:
            module = parse_in_own_context(text)
            if before is not None:
                manager, builder = before
                for function in functions_of(module):
                    without_llvmlite_lock("LLVMPY_RunNewFunctionPassManager")(manager, function,
                                                                              builder)
            for manager, builder in passes:
                without_llvmlite_lock("LLVMPY_RunNewModulePassManager")(manager, module, builder)
            self.bitcode = bitcode(module)
            self.code = machine_code(machine, module)
            self.made = module
        finally:
            del self.given

    @functools.cached_property
    def symbols(self) -> Symbols:
        """The symbols that the code defines and refers to, once it is compiled.

        Not read where the code is compiled: after each short call that thread would wait for
        Python's lock while the other is busy.
        """
        found = Symbols.of(self.made)
        del self.made
        return found

    def module(self) -> binding.ModuleRef:
        """The module, parsed again."""
        return binding.parse_bitcode(self.bitcode)


class BackgroundCompilation(threading.Thread):
    """Compile pieces in a thread of its own."""

    def __init__(self, pieces: list[Piece]):
        super().__init__(name="s2s compiles")
        self.pieces, self.waiting, self.failed = pieces, deque(pieces), None
        self.start()

    def also(self, piece: Piece) -> None:
        """Add this piece; the queue is ordered by expected time, so that the last pieces are short.
        """
        self.waiting.insert(next((k
                                  for k, other in enumerate([*self.waiting])
                                  if other.size < piece.size), len(self.waiting)), piece)

    def run(self) -> None:
        with short_switch_interval():
            self.work()

    def work(self) -> None:
        """Compile the remaining pieces."""
        try:
            while self.waiting and self.failed is None:
                try:
                    piece = self.waiting.popleft()
                except IndexError:  # the other thread took it
                    break
                piece.make()
        except BaseException as error:
            self.failed = error

    def result(self) -> list[bytes]:
        """The machine code of all pieces."""
        self.work()
        self.join()
        if self.failed is not None:
            raise self.failed
        return [piece.code for piece in self.pieces]


_intervals: list[float] = []  # the switch intervals that were in force before
_changing = threading.Lock()


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Shorten the switch interval: a thread returning from LLVM would otherwise wait 5 ms for
    Python's lock each time.
    """
    with _changing:
        _intervals.append(sys.getswitchinterval())
        sys.setswitchinterval(SHORT)
    try:
        yield
    finally:
        with _changing:
            first = _intervals[0]
            _intervals.pop()
            if not _intervals:  # the last of them
                sys.setswitchinterval(first)


def parse_in_own_context(text: str) -> binding.ModuleRef:
    """A module in a context of its own, which is freed together with the module.

    By themselves, both are freed by the garbage collector if they are part of a cycle, in any
    order: the context frees its modules, and then the module would be freed twice.
    """
    context = ContextRef(without_llvmlite_lock("LLVMPY_ContextCreate")())
    with llvm_string() as error:
        module = binding.ModuleRef(without_llvmlite_lock("LLVMPY_ParseAssembly")(
            context, text.encode(), ctypes.byref(error)), context)
        context._owned = module._owned = True
        weakref.finalize(module, ffi.lib.LLVMPY_ContextDispose, context).atexit = False
        if error:
            raise RuntimeError(f"LLVM IR parsing error: {error.value.decode()}")
    with llvm_string() as error:
        if without_llvmlite_lock("LLVMPY_VerifyModule")(module, ctypes.byref(error)):
            raise RuntimeError(error.value.decode())
    return module


def functions_of(module: binding.ModuleRef) -> Iterator[ctypes.c_void_p]:
    """The functions defined in a module."""
    functions = without_llvmlite_lock("LLVMPY_ModuleFunctionsIter")(module)
    try:
        while function := without_llvmlite_lock("LLVMPY_FunctionsIterNext")(functions):
            if not without_llvmlite_lock("LLVMPY_IsDeclaration")(function):
                yield function
    finally:
        without_llvmlite_lock("LLVMPY_DisposeFunctionsIter")(functions)


@contextmanager
def llvm_string() -> Iterator[ctypes.c_char_p]:
    """A string that LLVM allocates and that is freed here."""
    text = ctypes.c_char_p()
    try:
        yield text
    finally:
        if text:
            without_llvmlite_lock("LLVMPY_DisposeString")(text)


def without_llvmlite_lock(name: str):
    """A function of llvmlite's, called without llvmlite's global lock."""
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


def bitcode(module: binding.ModuleRef) -> bytes:
    """The bitcode of a module."""
    size = ctypes.c_size_t()
    with llvm_string() as text:
        without_llvmlite_lock("LLVMPY_WriteBitcodeToString")(module, ctypes.byref(text),
                                                             ctypes.byref(size))
        return ctypes.string_at(text, size.value)


def machine_code(machine: binding.TargetMachine, module: binding.ModuleRef) -> bytes:
    """The object file of a module."""
    with llvm_string() as error:
        buffer = without_llvmlite_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1,
                                                                   ctypes.byref(error))
        if not buffer:
            raise RuntimeError(error.value.decode())
    try:
        return ctypes.string_at(without_llvmlite_lock("LLVMPY_GetBufferStart")(buffer),
                                without_llvmlite_lock("LLVMPY_GetBufferSize")(buffer))
    finally:
        without_llvmlite_lock("LLVMPY_DisposeMemoryBuffer")(buffer)


def beside(codegen, level: int | None = None):
    """A code generator like Numba's at this optimisation level, with its own target machine; it
    takes less than a millisecond.
    """
    options = {"opt": config.OPT if level is None else level}
    codegen._customize_tm_options(options)
    found = copy.copy(codegen)
    found._tm = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        **options)
    return found


def hand_over(codegen, code: bytes) -> None:
    """Add an object file to the engine, which links it with the next compiled module."""
    codegen._engine._ee.add_object_file(binding.ObjectFileRef.from_data(code))
