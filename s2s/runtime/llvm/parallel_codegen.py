"""Run LLVM in two threads: on the Python wrapper of a function, and on the function itself, in
pieces (split_module.py).

    the pieces, one after another     in a second thread, while the wrapper is emitted, and in this
                                      one, once the wrapper is compiled
    the Python wrapper of f           compiled here, at the lowest level, with code that runs once
                                      per call of f

LLVM takes half of a first call, and in a small program the Python wrapper takes a third of that.
Numba never inlines f into it, and it runs once per call, so little is lost by optimising it less:
it then takes a third of the time. It is emitted while LLVM works on f.

llvmlite has one lock around all of its functions, which is held in each of them here, too: LLVM
works for one thread at a time, and while it does, Python emits the wrapper.

Considered: to call LLVM past that lock, on a context, a target machine and passes that no other
thread uses, which LLVM allows. It needs a second core that is free and a short switch interval for
the whole process (a thread that returns from LLVM waits for Python's lock), and was not shown to
pay. A process of its own (30 ms to hand a module over and back, and it has to be there); to begin
with each loop while Python writes the next (on two cores first calls took 0.97 to 1.06 of the time,
and 4 to 10 % more of the processor's).

A piece becomes an object file, which the engine loads beside the others; the cache stores all of
them. Its module is kept as bitcode, for linking or inspection: an LLVM context with a module in it
takes a megabyte.
"""

from __future__ import annotations

import copy
import functools
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from llvmlite import binding
from numba import config

from ..numba_internals import NewPassManager


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
                for function in module.functions:
                    if not function.is_declaration:
                        manager.run(function, builder)
            for manager, builder in passes:
                manager.run(module, builder)
            self.bitcode = module.as_bitcode()
            self.code = machine_code(machine, module)
            self.made = module
        finally:
            del self.given
            for manager, _ in [*passes, *([before] if before is not None else [])]:
                dispose(manager)

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


def parse_in_own_context(text: str) -> binding.ModuleRef:
    """A module in a context of its own, which is freed together with the module.

    By themselves, both are freed by the garbage collector if they are part of a cycle, in any
    order: the context frees its modules, and then the module would be freed twice.
    """
    context = binding.create_context()
    module = binding.parse_assembly(text, context)
    module._owned = True  # by the context
    weakref.finalize(module, context.close).atexit = False
    module.verify()
    return module


def dispose(manager) -> None:
    """Free a pass manager after its last run.

    llvmlite does not, though it has the function: a class without it comes first among the bases
    of its pass managers.  They take 30 to 50 KB each.
    """
    if not manager.closed:
        NewPassManager._dispose(manager)
        manager.detach()


def machine_code(machine: binding.TargetMachine, module: binding.ModuleRef) -> bytes:
    """The object file of a module."""
    return machine.emit_object(module)


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
